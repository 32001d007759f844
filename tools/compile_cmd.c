// `fusec FILE.fk`: compiles one file and writes what --emit says.
// Input: a file or standard input. Output: one file, or text on standard output.
// Invariant: the output appears whole, and only when the compilation succeeded.
#include "tools/commands.h"
#include "tools/fileio.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    FuseEmit emit;
    bool is_text;
} emit_rows[] = {{"ast", FUSE_EMIT_AST, true},
                 {"tile", FUSE_EMIT_TILE, true},
                 {"llvm", FUSE_EMIT_LLVM, true},
                 {"ptx", FUSE_EMIT_PTX, true},
                 {"obj", FUSE_EMIT_OBJ, false}};
enum { EMIT_ROWS = sizeof emit_rows / sizeof emit_rows[0] };

// The index in emit_rows of what to write, or -1 with the message printed.
static int choose_emit(const OptParse *opts, const FuseOptions *fuse) {
    const char *word = opts_value(opts, OPT_EMIT);
    bool is_gpu = strncmp(fuse->target, "sm_", 3) == 0;
    if (!word)
        word = fuse->stop_after || fuse->passes ? "tile" : is_gpu ? "ptx" : "obj";
    for (int i = 0; i < EMIT_ROWS; i++)
        if (strcmp(emit_rows[i].word, word) == 0) {
            if (is_gpu ? emit_rows[i].emit == FUSE_EMIT_OBJ : emit_rows[i].emit == FUSE_EMIT_PTX) {
                command_fail(EXIT_USAGE, "target %s has no %s", fuse->target, word);
                return -1;
            }
            return i;
        }
    command_fail(EXIT_USAGE, "--emit=%s is not supported yet", word);
    return -1;
}

// What was not given comes from this machine; only code for a GPU depends on the choice.
static void choose_target(CompilerOptions *options, const OptParse *opts) {
    if (options->fuse.target)
        return;
    const char *emit = opts_value(opts, OPT_EMIT);
    bool matters = !emit || (strcmp(emit, "ast") != 0 && strcmp(emit, "tile") != 0);
    if (local_gpu_target(options->detected_target, sizeof options->detected_target)) {
        options->fuse.target = options->detected_target;
        return;
    }
    options->fuse.target = "sm_80";
    if (matters)
        command_note("no GPU here; compiling for sm_80 (--target chooses)");
}

static ExitCode write_output(const FuseResult *result, const char *path) {
    size_t length;
    const char *text = fuse_result_output(result, &length);
    OutFile file;
    ToolError error;
    if (!outfile_open(&file, path, &error))
        return command_fail(EXIT_IO, "%s", error.text);
    // A short write is a stream error, which commit reports.
    outfile_write(&file, text, length);
    if (!outfile_commit(&file, &error))
        return command_fail(EXIT_IO, "%s", error.text);
    return EXIT_OK;
}

static ExitCode compile_file(const FuseOptions *fuse, const char *path, const char *output) {
    char *source;
    size_t length;
    ToolError error;
    if (!file_read_all(path, &source, &length, &error))
        return command_fail(EXIT_IO, "%s", error.text);
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    FuseResult *result = fuse_compile(fuse, name, source, length);
    free(source);
    ExitCode code = EXIT_OK;
    if (!result)
        code = command_fail(EXIT_INTERNAL, "out of memory");
    else if (fuse_result_internal(result))
        code = EXIT_INTERNAL;
    else if (!fuse_result_ok(result))
        code = EXIT_INPUT;
    else
        code = write_output(result, output);
    fuse_result_free(result);
    return code;
}

static ExitCode explain_error(const char *id) {
    const char *text = fuse_explain_error(id);
    if (!text)
        return command_fail(EXIT_USAGE, "unknown diagnostic '%s'", id);
    printf("%s%s", text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
    return EXIT_OK;
}

static ExitCode compile_with(CompilerOptions *options, const OptParse *opts) {
    const char *output = opts_value(opts, OPT_OUTPUT);
    if (opts->operand_count == 0)
        return command_fail(EXIT_USAGE, "no input file");
    if (opts->operand_count > 1)
        return command_fail(EXIT_USAGE, "one input file at a time; '%s' is the second",
                            opts->operands[1]);
    choose_target(options, opts);
    int row = choose_emit(opts, &options->fuse);
    if (row < 0)
        return EXIT_USAGE;
    options->fuse.emit = emit_rows[row].emit;
    if (!output && !emit_rows[row].is_text)
        return command_fail(EXIT_USAGE, "binary output needs a place: -o FILE, or -o - for "
                                        "standard output");
    return compile_file(&options->fuse, opts->operands[0], output ? output : "-");
}

ExitCode compile_command(const OptParse *opts) {
    const char *id = opts_value(opts, OPT_EXPLAINERROR);
    if (id)
        return explain_error(id);
    CompilerOptions options;
    ExitCode code = compiler_options(&options, opts);
    if (code == EXIT_OK)
        code = compile_with(&options, opts);
    compiler_options_free(&options);
    return code;
}

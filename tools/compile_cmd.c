// `fusec FILE.fk`: compiles one file and writes what --emit says.
// Input: a file or standard input. Output: one file, or text on standard output.
// Invariant: the output appears whole, and only when the compilation succeeded.
#include "tools/commands.h"
#include "tools/cubin.h"
#include "tools/fileio.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    FuseEmit emit;
    bool is_text, is_cubin; // cubin: PTX that goes through ptxas
} emit_rows[] = {{"ast", FUSE_EMIT_AST, true, false},   {"tile", FUSE_EMIT_TILE, true, false},
                 {"llvm", FUSE_EMIT_LLVM, true, false}, {"ptx", FUSE_EMIT_PTX, true, false},
                 {"cubin", FUSE_EMIT_PTX, false, true}, {"obj", FUSE_EMIT_OBJ, false, false}};
enum { EMIT_ROWS = sizeof emit_rows / sizeof emit_rows[0] };

// The index in emit_rows of what to write, or -1 with the message printed.
static int choose_emit(const OptParse *opts, const FuseOptions *fuse) {
    const char *word = opts_value(opts, OPT_EMIT);
    bool is_gpu = strncmp(fuse->target, "sm_", 3) == 0;
    if (!word)
        word = fuse->stop_after || fuse->passes ? "tile" : is_gpu ? "ptx" : "obj";
    for (int i = 0; i < EMIT_ROWS; i++)
        if (strcmp(emit_rows[i].word, word) == 0) {
            FuseEmit emit = emit_rows[i].emit;
            if (is_gpu ? emit == FUSE_EMIT_OBJ : emit == FUSE_EMIT_PTX) {
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

// What to make of the compiler's result.
typedef struct Job {
    const FuseOptions *fuse;
    const char *path, *output;
    const char *rule; // file of the make rule; NULL: none
    bool is_cubin;
} Job;

static ExitCode write_file(const char *path, const char *text, size_t length) {
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

static ExitCode write_output(const Job *job, FuseResult *result) {
    size_t length;
    const char *text = fuse_result_output(result, &length);
    if (!job->is_cubin)
        return write_file(job->output, text, length);
    Cubin cubin;
    ExitCode code;
    if (cubin_make(text, length, job->fuse->target, job->fuse->line_info, &cubin))
        code = fuse_result_note_use(result, cubin.nfunction, cubin.function)
                   ? write_file(job->output, cubin.data, cubin.size)
                   : EXIT_INPUT;
    else
        code = command_fail(cubin.no_tools ? EXIT_IO : EXIT_INTERNAL, "%s",
                            cubin.error ? cubin.error : "out of memory");
    cubin_free(&cubin);
    return code;
}

// A name as make reads it: blanks, # and $ are escaped.
static void rule_add(FILE *out, const char *name) {
    for (; *name; name++) {
        if (*name == ' ' || *name == '\t' || *name == '#')
            fputc('\\', out);
        if (*name == '$')
            fputc('$', out);
        fputc(*name, out);
    }
}

// `out: k.fk lib.fk`, and for each import an empty rule, so that make does not stop at one that has
// gone.
static ExitCode write_rule(const Job *job, const FuseResult *result) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return command_fail(EXIT_INTERNAL, "out of memory");
    rule_add(out, job->output);
    fputc(':', out);
    for (int i = 0; fuse_result_dep_at(result, i); i++) {
        fputs(i ? " \\\n  " : " ", out);
        rule_add(out, fuse_result_dep_at(result, i));
    }
    fputc('\n', out);
    for (int i = 1; fuse_result_dep_at(result, i); i++) {
        fputc('\n', out);
        rule_add(out, fuse_result_dep_at(result, i));
        fputs(":\n", out);
    }
    fclose(out);
    ExitCode code = write_file(job->rule, text, length);
    free(text);
    return code;
}

static ExitCode compile_file(const Job *job) {
    char *source;
    size_t length;
    ToolError error;
    if (!file_read_source(job->path, &source, &length, &error))
        return command_fail(EXIT_IO, "%s", error.text);
    const char *name = strcmp(job->path, "-") == 0 ? "<stdin>" : job->path;
    FuseResult *result = fuse_compile(job->fuse, name, source, length);
    free(source);
    ExitCode code = EXIT_OK;
    if (!result)
        code = command_fail(EXIT_INTERNAL, "out of memory");
    else if (fuse_result_internal(result))
        code = EXIT_INTERNAL;
    else if (!fuse_result_ok(result))
        code = EXIT_INPUT;
    else
        code = write_output(job, result);
    if (code == EXIT_OK && job->rule)
        code = write_rule(job, result);
    fuse_result_free(result);
    return code;
}

// The file of -MF, or for -MD the output's name with the ending .d; NULL without either.
static char *rule_name(const OptParse *opts, const char *output) {
    const char *given = opts_value(opts, OPT_DEPENDENCYFILE);
    if (given)
        return strdup(given);
    if (!opts_has(opts, OPT_DEPENDENCIES))
        return NULL;
    size_t length = strlen(output);
    const char *slash = strrchr(output, '/'), *dot = strrchr(output, '.');
    if (dot && dot != output && (!slash || dot > slash + 1))
        length = (size_t)(dot - output);
    char *name = malloc(length + 3);
    if (name)
        snprintf(name, length + 3, "%.*s.d", (int)length, output);
    return name;
}

// "-" is a stream in both places, never a file of that name.
static bool is_one_file(const char *a, const char *b) {
    return strcmp(a, "-") != 0 && strcmp(b, "-") != 0 && file_is_same(a, b);
}

static ExitCode list_diagnostics(FILE *out) {
    for (int i = 0; fuse_diagnostic_at(i); i++)
        fprintf(out, "%-18s %s\n", fuse_diagnostic_at(i),
                fuse_explain_title(fuse_diagnostic_at(i)));
    return EXIT_OK;
}

// Ids that have a word of `id` in them, or begin alike: "did you mean".
static ExitCode unknown_diagnostic(const char *id) {
    char near[512] = "";
    size_t used = 0;
    for (int i = 0; fuse_diagnostic_at(i); i++) {
        const char *known = fuse_diagnostic_at(i);
        bool is_near = false;
        for (const char *word = id; *word; word += strcspn(word, "-_ "), word += *word != '\0') {
            size_t length = strcspn(word, "-_ ");
            if (length < 3)
                continue;
            char part[8] = "";
            memcpy(part, word, length < 4 ? length : 4);
            is_near |= strstr(known, part) != NULL;
        }
        if (is_near && used < sizeof near)
            used +=
                (size_t)snprintf(near + used, sizeof near - used, "%s%s", used ? ", " : "", known);
    }
    if (used)
        return command_fail(EXIT_USAGE, "unknown diagnostic '%s'; near it are %s", id, near);
    return command_fail(EXIT_USAGE,
                        "unknown diagnostic '%s'; --explain-error without an id lists "
                        "them all",
                        id);
}

// `--explain-error=ID`, or the id as the operand behind it.
static ExitCode explain_error(const OptParse *opts) {
    const char *id = opts_value(opts, OPT_EXPLAINERROR);
    if (!id && opts->operand_count == 0)
        return list_diagnostics(stdout);
    if (!id)
        id = opts->operands[0];
    const char *text = fuse_explain_error(id);
    if (!text)
        return unknown_diagnostic(id);
    printf("%s: %s\n\n%s", id, fuse_explain_title(id), text);
    if (fuse_explain_example(id, false))
        printf("\nWrong:\n\n%s\nRight:\n\n%s", fuse_explain_example(id, false),
               fuse_explain_example(id, true));
    return EXIT_OK;
}

static ExitCode compile_with(CompilerOptions *options, const OptParse *opts) {
    const char *output = opts_value(opts, OPT_OUTPUT);
    if (opts->operand_count == 0)
        return command_fail(EXIT_USAGE, "no input file");
    if (opts->operand_count > 1)
        return command_fail(EXIT_USAGE, "one input file at a time; '%s' is the second",
                            opts->operands[1]);
    const char *input = opts->operands[0];
    if (output && is_one_file(input, output))
        return command_fail(EXIT_USAGE, "-o %s would overwrite the input", output);
    choose_target(options, opts);
    int row = choose_emit(opts, &options->fuse);
    if (row < 0)
        return EXIT_USAGE;
    options->fuse.emit = emit_rows[row].emit;
    if (!output && !emit_rows[row].is_text)
        return command_fail(EXIT_USAGE, "binary output needs a place: -o FILE, or -o - for "
                                        "standard output");
    bool wants_rule = opts_has(opts, OPT_DEPENDENCIES) || opts_has(opts, OPT_DEPENDENCYFILE);
    if (wants_rule && (!output || strcmp(output, "-") == 0))
        return command_fail(EXIT_USAGE, "-MD and -MF need -o FILE: the rule is for that file");
    char *rule = wants_rule ? rule_name(opts, output) : NULL;
    if (wants_rule && !rule)
        return command_fail(EXIT_INTERNAL, "out of memory");
    if (rule && (is_one_file(input, rule) || strcmp(output, rule) == 0)) {
        command_fail(EXIT_USAGE, "the make rule in %s would overwrite the %s", rule,
                     strcmp(output, rule) == 0 ? "output" : "input");
        free(rule);
        return EXIT_USAGE;
    }
    Job job = {.fuse = &options->fuse,
               .path = input,
               .output = output ? output : "-",
               .rule = rule,
               .is_cubin = emit_rows[row].is_cubin};
    ExitCode code = compile_file(&job);
    free(rule);
    return code;
}

ExitCode compile_command(const OptParse *opts) {
    if (opts_has(opts, OPT_EXPLAINERROR))
        return explain_error(opts);
    CompilerOptions options;
    ExitCode code = compiler_options(&options, opts);
    if (code == EXIT_OK)
        code = compile_with(&options, opts);
    compiler_options_free(&options);
    return code;
}

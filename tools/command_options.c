// From the command line to FuseOptions: what `fusec` and `fusec run` share.
// Input: OptParse. Output: CompilerOptions, or a message and an exit code.
// Invariant: whatever the command line asks for is passed on or refused, never dropped.
#include "tools/commands.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ExitCode command_fail(ExitCode code, const char *format, ...) {
    va_list args;
    fputs("fusec: error: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

void command_note(const char *format, ...) {
    va_list args;
    fputs("fusec: note: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static void print_message(void *user, const char *text, size_t length) {
    (void)user;
    fwrite(text, 1, length, stderr);
}

// NAME=VALUE, where NAME may be kernel.NAME.
static bool is_define(const char *text) {
    const char *at = text;
    if (!isalpha((unsigned char)*at) && *at != '_')
        return false;
    while (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
        at++;
    return *at == '=' && at[1];
}

static ExitCode bad_warning(const char *text) {
    return command_fail(
        EXIT_USAGE,
        "-W%s names nothing: write -Werror, -Wno-ID or -Werror=ID, where ID is that "
        "of a warning or performance note (--explain-error lists them), or perf",
        text);
}

static ExitCode add_use(CompilerOptions *out, const OptUse *use, size_t *defines, size_t *includes,
                        size_t *warnings) {
    FuseOptions *fuse = &out->fuse;
    switch (use->id) {
    case OPT_DEFINE:
        if (!is_define(use->value))
            return command_fail(EXIT_USAGE, "-D takes NAME=VALUE, not '%s'", use->value);
        out->defines[(*defines)++] = use->value;
        break;
    case OPT_INCLUDE:
        out->includes[(*includes)++] = use->value;
        break;
    case OPT_OPTIMIZE:
        if (use->value && (use->value[0] < '0' || use->value[0] > '3' || use->value[1]))
            return command_fail(EXIT_USAGE, "-O takes a level from 0 to 3, not '%s'", use->value);
        fuse->opt_level = use->value ? use->value[0] - '0' : 2;
        break;
    case OPT_CHECK:
        if (use->value && strcmp(use->value, "tiles") != 0)
            return command_fail(EXIT_USAGE, "--check takes nothing or tiles, not '%s'", use->value);
        if (use->value)
            out->check_tiles = true;
        else
            fuse->check = true;
        break;
    case OPT_WARNING:
        if (!fuse_is_warning_flag(use->value))
            return bad_warning(use->value);
        out->warnings[(*warnings)++] = use->value;
        break;
    case OPT_TARGET:
        fuse->target = use->value;
        break;
    case OPT_KERNEL:
        fuse->kernel = use->value;
        break;
    case OPT_DUMP:
        fuse->dump = use->value;
        break;
    case OPT_PASSES:
        fuse->passes = use->value;
        break;
    case OPT_STOPAFTER:
        fuse->stop_after = use->value;
        break;
    case OPT_DEBUGINFO:
        fuse->line_info = true;
        break;
    case OPT_DEBUG:
        fuse->debug = true;
        break;
    case OPT_DETERMINISTIC:
        fuse->deterministic = true;
        break;
    case OPT_FASTMATH:
        fuse->fast_math = true;
        break;
    case OPT_NOFUSE:
        fuse->no_fuse = true;
        break;
    case OPT_TIME:
        fuse->time = true;
        break;
    case OPT_EXPLAIN:
        fuse->explain = true;
        break;
    case OPT_OUTPUT: // the commands' own
    case OPT_EMIT:
    case OPT_HEADER:
    case OPT_DEPENDENCIES:
    case OPT_DEPENDENCYFILE:
    case OPT_EXPLAINERROR:
    case OPT_DEVICE:
    case OPT_SHAPE:
    case OPT_RANDOM:
    case OPT_SEED:
    case OPT_COMPARE:
    case OPT_TOLERANCE:
    case OPT_REPEAT:
    case OPT_VERSION:
    case OPT_HELP:
    case OPT_HELPMAN:
    case OPT_COUNT:
        break;
    }
    return EXIT_OK;
}

static bool is_pass(const char *name, size_t length) {
    for (int i = 0; fuse_pass_at(i); i++)
        if (strlen(fuse_pass_at(i)) == length && memcmp(fuse_pass_at(i), name, length) == 0)
            return true;
    return false;
}

static ExitCode unknown_pass(const char *option, const char *name, size_t length) {
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; fuse_pass_at(i) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 fuse_pass_at(i));
    return command_fail(EXIT_USAGE, "%s: there is no pass '%.*s'; the passes are %s", option,
                        (int)length, name, known);
}

static ExitCode check_passes(const FuseOptions *fuse) {
    const char *dump = fuse->dump, *stop = fuse->stop_after;
    bool is_word = dump && (strcmp(dump, "all") == 0 || strcmp(dump, "generic") == 0);
    if (dump && !is_word && !is_pass(dump, strlen(dump)))
        return unknown_pass("--dump", dump, strlen(dump));
    if (stop && !is_pass(stop, strlen(stop)))
        return unknown_pass("--stop-after", stop, strlen(stop));
    for (const char *at = fuse->passes; at;) {
        size_t length = strcspn(at, ",");
        if (!is_pass(at, length))
            return unknown_pass("--passes", at, length);
        at = at[length] ? at + length + 1 : NULL;
    }
    return EXIT_OK;
}

static ExitCode check_target(const char *target) {
    if (!target)
        return EXIT_OK;
    char known[256] = "";
    size_t used = 0;
    for (int i = 0; fuse_target_at(i); i++) {
        if (strcmp(fuse_target_at(i), target) == 0)
            return EXIT_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                     fuse_target_at(i));
    }
    return command_fail(EXIT_USAGE, "unknown target '%s'; there are %s", target, known);
}

ExitCode compiler_options(CompilerOptions *out, const OptParse *opts) {
    *out = (CompilerOptions){.fuse = {.opt_level = 2, .message = print_message}};
    out->defines = calloc(opts->use_count + 1, sizeof *out->defines);
    out->includes = calloc(opts->use_count + 1, sizeof *out->includes);
    out->warnings = calloc(opts->use_count + 1, sizeof *out->warnings);
    if (!out->defines || !out->includes || !out->warnings)
        return command_fail(EXIT_INTERNAL, "out of memory");
    size_t defines = 0, includes = 0, warnings = 0;
    for (size_t i = 0; i < opts->use_count; i++) {
        ExitCode code = add_use(out, &opts->uses[i], &defines, &includes, &warnings);
        if (code != EXIT_OK)
            return code;
    }
    out->fuse.defines = out->defines;
    out->fuse.includes = out->includes;
    out->fuse.warnings = out->warnings;
    out->fuse.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
    ExitCode code = check_passes(&out->fuse);
    return code == EXIT_OK ? check_target(out->fuse.target) : code;
}

void compiler_options_free(CompilerOptions *options) {
    free(options->defines);
    free(options->includes);
    free(options->warnings);
    *options = (CompilerOptions){0};
}

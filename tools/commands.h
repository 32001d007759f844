// The commands of `fusec`, and what they share. Each takes the parsed command line, prints, and
// returns the exit code; nothing else in the project does either.
#ifndef FUSE_TOOLS_COMMANDS_H
#define FUSE_TOOLS_COMMANDS_H

#include "include/fusec.h"
#include "tools/opts.h"

ExitCode compile_command(const OptParse *opts);
ExitCode run_command(const OptParse *opts);

// "fusec: error: ..." on standard error; returns `code`. For EXIT_USAGE main adds where to look.
ExitCode command_fail(ExitCode code, const char *format, ...) __attribute__((format(printf, 2, 3)));
void command_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The options that all commands hand to the compiler. The lists point into argv.
typedef struct CompilerOptions {
    FuseOptions fuse;
    const char **defines, **includes, **warnings;
    bool check_tiles;
    char detected_target[16]; // what `fuse.target` points to when it was not given
} CompilerOptions;

// Checks and translates; EXIT_OK, or the message is printed. Free either way.
ExitCode compiler_options(CompilerOptions *out, const OptParse *opts);
void compiler_options_free(CompilerOptions *options);

// The target for this machine's first NVIDIA GPU in `out`; false where there is none or it is older
// than every target.
bool local_gpu_target(char *out, size_t size);

#endif

// `fusec`: reads the command line and hands over to the command.
// Input: argv. Output: the exit code of opts.def. Everything that prints or exits is in tools/.
#include "tools/commands.h"
#include "tools/opts_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static ExitCode dispatch(const OptParse *opts) {
    if (opts_has(opts, OPT_HELP)) {
        opts_print_help(stdout, opts->command);
        return EXIT_OK;
    }
    if (opts_has(opts, OPT_HELPMAN)) {
        opts_print_man(stdout, fuse_version());
        return EXIT_OK;
    }
    if (opts_has(opts, OPT_VERSION)) {
        printf("fusec %s\n", fuse_version());
        return EXIT_OK;
    }
    switch (opts->command) {
    case CMD_COMPILE:
        return compile_command(opts);
    case CMD_RUN:
        return run_command(opts);
    case CMD_BENCH: // refused by opts_parse
    case CMD_TUNE:
    case CMD_FMT:
    case CMD_COUNT:
        break;
    }
    return EXIT_INTERNAL;
}

// A closed standard stream would be the number of the next file that is opened, and messages would
// go into it: a stream that refuses to be used stands in its place.
static void keep_standard_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 &&
            open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv) {
    OptParse opts;
    keep_standard_streams();
    signal(SIGXFSZ, SIG_IGN); // the write fails instead, and the temporary file is removed
    ExitCode code = opts_parse(&opts, argc, argv) ? dispatch(&opts)
                                                  : command_fail(EXIT_USAGE, "%s", opts.error);
    if (code == EXIT_USAGE)
        fprintf(stderr, "try 'fusec %s%s--help'\n", command_rows[opts.command].word,
                *command_rows[opts.command].word ? " " : "");
    opts_free(&opts);
    // A full disk or a closed pipe shows only here.
    if ((ferror(stdout) || fflush(stdout) != 0) && code == EXIT_OK)
        code = command_fail(EXIT_IO, "standard output: %s", strerror(errno));
    return code;
}

// `fusec`: reads the command line and hands over to the command.
// Input: argv. Output: the exit code of opts.def. Everything that prints or exits is in tools/.
#include "tools/opts.h"

#include <stdio.h>

static int usage_error(const char *message) {
    fprintf(stderr, "fusec: error: %s\ntry 'fusec --help'\n", message);
    return EXIT_USAGE;
}

static int dispatch(const OptParse *opts) {
    if (opts_has(opts, OPT_HELP)) {
        opts_print_help(stdout, opts->command);
        return EXIT_OK;
    }
    if (opts_has(opts, OPT_HELPMAN)) {
        opts_print_man(stdout, FUSE_VERSION);
        return EXIT_OK;
    }
    if (opts_has(opts, OPT_VERSION)) {
        puts("fusec " FUSE_VERSION);
        return EXIT_OK;
    }
    return usage_error("no input file");
}

int main(int argc, char **argv) {
    OptParse opts;
    int code = opts_parse(&opts, argc, argv) ? dispatch(&opts) : usage_error(opts.error);
    opts_free(&opts);
    // A full disk or a closed pipe shows only here.
    if (fflush(stdout) != 0 && code == EXIT_OK) {
        perror("fusec: error: standard output");
        code = EXIT_IO;
    }
    return code;
}

// The command line of the built `fusec`: for each wrong use the message and the exit code, and that
// a failure leaves no file behind.
#include <criterion/criterion.h>

#include "tests/command.h"
#include "tools/opts.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Runs `fusec ARGS` in a shell; *text is standard output and error together, the caller's to free.
// With a sanitizer a crash or leak is an exit code that no row expects.
static int run_fusec(const char *args, char **text) {
    char command[1024];
    snprintf(command, sizeof command, FUSEC_PROGRAM " 2>&1 %s", args);
    return run_command(command, text);
}

static void check_outcome(const char *args, int code, const char *expect) {
    char *text;
    int got = run_fusec(args, &text);
    cr_expect_eq(got, code, "fusec %s: exit code %d, expected %d:\n%s", args, got, code, text);
    cr_expect(strstr(text, expect), "fusec %s: expected '%s' in:\n%s", args, expect, text);
    free(text);
}

Test(tools_cli, wrong_use) {
    static const char *const rows[][2] = {
        {"", "no input file"},
        {"--emti=ast a.fk", "unknown option '--emti'; did you mean '--emit'?"},
        {"-target=sm_80 a.fk", "unknown option '-target'; did you mean '--target'?"},
        {"--quux a.fk", "unknown option '--quux'\n"},
        {"--=3 a.fk", "unknown option"},
        {"-Q a.fk", "unknown option '-Q'\n"},
        {"--emit=foo a.fk", "option '--emit' takes one of ast|tile|llvm|ptx|cubin|obj, not 'foo'"},
        {"--emit", "option '--emit' needs a value"},
        {"--emit= a.fk", "empty value"},
        {"a.fk -MF", "option '-MF' needs a value: -MF FILE"},
        {"-D", "option '-D' needs a value: -D NAME=VALUE"},
        {"-D NAME a.fk", "-D takes NAME=VALUE, not 'NAME'"},
        {"-W a.fk", "option '-W' needs its text directly after it"},
        {"-Wfoo a.fk", "-Wfoo names nothing: write -Werror, -Wno-ID or -Werror=ID"},
        {"-O7 a.fk", "-O takes a level from 0 to 3, not '7'"},
        {"--target=sm_81 a.fk", "unknown target 'sm_81'"},
        {"--dump=nope a.fk",
         "--dump: there is no pass 'nope'; the passes are simplify, inline_take, fuse, "},
        {"--stop-after=all a.fk", "--stop-after: there is no pass 'all'; the passes are "},
        {"--passes=simplify,,fuse a.fk", "--passes: there is no pass ''; the passes are "},
        {"--passes=simplify, a.fk", "--passes: there is no pass ''"},
        {"--passes=simplify,fuze a.fk", "--passes: there is no pass 'fuze'"},
        {"--quux a.fk", "\ntry 'fusec --help'\n"},
        {"run --device=gpu a.fk", "\ntry 'fusec run --help'\n"},
        {"run a.fk --tolerance=1", "\ntry 'fusec run --help'\n"},
        {"--help=3", "option '--help' takes no value"},
        {"--header=k.h a.fk", "option '--header' is not supported yet"},
        {"runn a.fk", "unknown command 'runn'; did you mean 'run'?"},
        {"bench a.fk", "'fusec bench' is not supported yet"},
        {"tune", "'fusec tune' is not supported yet"},
        {"fmt", "'fusec fmt' is not supported yet"},
        {"--shape=y=3 a.fk", "option '--shape' belongs to 'fusec run'"},
        {"run --emit=ast a.fk", "option '--emit' belongs to 'fusec'"},
        {"run", "no input file"},
        {"run a.fk --check=foo", "--check takes nothing or tiles, not 'foo'"},
        {"--check a.fk", "option '--check' belongs to 'fusec run'"},
        {"run --device=gpu a.fk", "option '--device' takes one of cpu|sim|eval|cuda, not 'gpu'"},
        {"a.fk b.fk", "one input file at a time"},
        {"run -Wno-race a.fk", "-Wno-race names nothing"}, // an error stays one
        {"--explain-error=nothing-such", "unknown diagnostic 'nothing-such'"},
        {"--explain-error=xyz", "--explain-error without an id lists them all"},
        {"--explain-error unused", "; near it are unused-value, unused-name, unused-axis"},
        {"--explain-error axes-missmatch", "axes-mismatch"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_outcome(rows[i][0], EXIT_USAGE, rows[i][1]);
}

Test(tools_cli, information) {
    check_outcome("--version", EXIT_OK, "fusec ");
    check_outcome("--help", EXIT_OK, "usage: fusec [OPTION...] FILE.fk");
    check_outcome("--help", EXIT_OK, "optimisation level, 0 to 3 (default 2)");
    check_outcome("run --help", EXIT_OK, "--device=cpu|sim|eval|cuda");
    check_outcome("--explain-error", EXIT_OK, "\naxes-mismatch      a value with axes");
    check_outcome("--explain-error race", EXIT_OK, "race: elements that may be written twice");
    check_outcome("--explain-error=race", EXIT_OK, "\nRight:\n\n    kernel k(x: f32[N])");
    check_outcome("-h", EXIT_OK, "5  no such device, or it failed");
    check_outcome("--help-man", EXIT_OK, ".TH FUSEC 1");
}

// Every row of the table is in the help and in the manual page, but for those that are refused.
Test(tools_cli, help_and_manual_show_every_option) {
    enum { READY, LATER };
    const struct {
        const char *word;
        int status;
    } rows[] = {
#define OPTION(id, long, short, commands, kind, value, standard, status, help)                     \
    {*long ? "--" long : "-" short, status},
#include "tools/opts.def"
    };
    char *compile, *run, *man;
    run_fusec("--help", &compile);
    run_fusec("run --help", &run);
    run_fusec("--help-man | sed 's/\\\\-/-/g'", &man);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *word = rows[i].word;
        bool ready = rows[i].status == READY;
        bool helped = strstr(compile, word) || strstr(run, word);
        cr_expect_eq(helped, ready, "%s in --help", word);
        cr_expect_eq(strstr(man, word) != NULL, ready, "%s in the manual page", word);
    }
    cr_expect_null(strstr(compile, "fusec tune"));
    free(compile);
    free(run);
    free(man);
}

Test(tools_cli, files_that_cannot_be_read_or_written) {
    check_outcome("/tmp/no-such-folder-of-fuse/a.fk", EXIT_IO, "No such file");
    check_outcome("/tmp", EXIT_IO, "directory");
    check_outcome("--version >/dev/full", EXIT_IO, "No space left");
}

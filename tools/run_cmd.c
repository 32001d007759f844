// `fusec run FILE.fk[:KERNEL] NAME=VALUE...`: compiles one kernel and runs it on files.
#include "tools/commands.h"

ExitCode run_command(const OptParse *opts) {
    if (opts->operand_count == 0)
        return command_fail(EXIT_USAGE, "no input file");
    return command_fail(EXIT_USAGE, "'fusec run' is not supported yet");
}

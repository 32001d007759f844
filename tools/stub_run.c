// Stands in for `fusec run` until libfuse_rt is linked.
#include "tools/commands.h"

ExitCode run_command(const OptParse *opts) {
    if (opts->operand_count == 0)
        return command_fail(EXIT_USAGE, "no input file");
    return command_fail(EXIT_INTERNAL, "this build has no compiler");
}

// The command line of `fusec`, parsed by the table in opts.def.
// Input: argv. Output: what was asked, as a list of option uses and operands that point into argv.
// Invariant: an OptParse that opts_parse accepted names one ready command, holds only ready options
// that this command has, and every CHOICE value is one of its row's.
#ifndef FUSE_TOOLS_OPTS_H
#define FUSE_TOOLS_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum CommandId {
#define COMMAND(id, ...) CMD_##id,
#include "tools/opts.def"
    CMD_COUNT
} CommandId;

typedef enum OptId {
#define OPTION(id, ...) OPT_##id,
#include "tools/opts.def"
    OPT_COUNT
} OptId;

typedef enum ExitCode {
#define EXIT(id, code, ...) EXIT_##id = code,
#include "tools/opts.def"
} ExitCode;

typedef struct OptUse {
    OptId id;
    const char *value; // NULL for a flag, and for MAYBE without a value
} OptUse;

typedef struct OptParse {
    CommandId command;
    OptUse *uses; // in order
    size_t use_count;
    const char **operands; // what is no option
    size_t operand_count;
    char error[512]; // why opts_parse returned false
} OptParse;

// Parses argv[1..argc). False: `error` says what is wrong (exit code EXIT_USAGE). Free either way.
bool opts_parse(OptParse *out, int argc, char **argv);
void opts_free(OptParse *opts);

bool opts_has(const OptParse *opts, OptId id);
// The last value given, or the row's default, or NULL.
const char *opts_value(const OptParse *opts, OptId id);

void opts_print_help(FILE *to, CommandId command);
void opts_print_man(FILE *to, const char *version);

#endif

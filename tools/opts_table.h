// The rows of opts.def as data, for parsing (opts.c) and printing (opts_help.c).
#ifndef FUSE_TOOLS_OPTS_TABLE_H
#define FUSE_TOOLS_OPTS_TABLE_H

#include "tools/opts.h"

typedef enum OptKind { FLAG, VALUE, CHOICE, MAYBE, GLUED } OptKind;
typedef enum OptStatus { READY, LATER } OptStatus;
enum { ON_COMPILE = 1, ON_RUN = 2, ON_ALL = 3 };

typedef struct CommandRow {
    const char *word;
    OptStatus status;
    const char *usage, *summary;
} CommandRow;

typedef struct OptionRow {
    const char *long_name, *short_name;
    unsigned commands;
    OptKind kind;
    const char *value, *standard; // standard: the default
    OptStatus status;
    const char *help;
} OptionRow;

typedef struct ExitRow {
    int code;
    const char *meaning;
} ExitRow;

extern const CommandRow command_rows[CMD_COUNT];
extern const OptionRow option_rows[OPT_COUNT];
extern const ExitRow exit_rows[];
extern const size_t exit_row_count;

bool option_is_on(OptId id, CommandId command);

#endif

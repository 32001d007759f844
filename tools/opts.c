// The command line of `fusec`: parsing by the table in opts.def.
// Input: argv. Output: OptParse, or one message that says what is wrong and, where a name is nearly
// right, what was probably meant. Help and manual page are printed in opts_help.c.
// Invariant: nothing here knows a particular option; a new option is a row.
#include "tools/opts.h"
#include "tools/opts_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const CommandRow command_rows[CMD_COUNT] = {
#define COMMAND(id, ...) [CMD_##id] = {__VA_ARGS__},
#include "tools/opts.def"
};

const OptionRow option_rows[OPT_COUNT] = {
#define OPTION(id, ...) [OPT_##id] = {__VA_ARGS__},
#include "tools/opts.def"
};

const ExitRow exit_rows[] = {
#define EXIT(id, ...) {__VA_ARGS__},
#include "tools/opts.def"
};
const size_t exit_row_count = sizeof exit_rows / sizeof exit_rows[0];

bool option_is_on(OptId id, CommandId command) {
    // The commands that are not ready take what `run` takes.
    unsigned bit = command == CMD_COMPILE ? ON_COMPILE : ON_RUN;
    return option_rows[id].commands & bit;
}

__attribute__((format(printf, 2, 3))) static bool fail(OptParse *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(out->error, sizeof out->error, format, args);
    va_end(args);
    return false;
}

// --- Nearest names ---

enum { LONGEST_NAME = 32 };

static size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

// Edits (insert, delete, replace, swap of neighbours) from a[0..n) to b; LONGEST_NAME where too
// long.
static size_t edit_distance(const char *a, size_t n, const char *b) {
    size_t m = strlen(b);
    size_t rows[3][LONGEST_NAME + 1];
    if (n >= LONGEST_NAME || m >= LONGEST_NAME)
        return LONGEST_NAME;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] =
                min_size(above[j - 1] + (a[i - 1] != b[j - 1]), 1 + min_size(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_size(row[j], above2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

// A third of the letters may be wrong.
static size_t allowed_edits(size_t length) {
    return length < 6 ? 1 : length / 3;
}

static const char *nearest_option(const char *name, size_t length, CommandId command) {
    const char *best = NULL;
    size_t best_distance = allowed_edits(length) + 1;
    for (OptId id = 0; id < OPT_COUNT; id++) {
        const char *candidate = option_rows[id].long_name;
        if (!*candidate || !option_is_on(id, command))
            continue;
        size_t distance = edit_distance(name, length, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

static const char *nearest_command(const char *word) {
    for (CommandId id = 1; id < CMD_COUNT; id++)
        if (edit_distance(word, strlen(word), command_rows[id].word) <= allowed_edits(strlen(word)))
            return command_rows[id].word;
    return NULL;
}

static bool unknown_option(OptParse *out, const char *arg) {
    const char *name = arg + strspn(arg, "-");
    const char *dashes = arg[1] == '-' ? "--" : "-";
    int length = (int)strcspn(name, "=");
    // -target for --target is the likeliest slip of all.
    const char *nearest = length > 1 ? nearest_option(name, (size_t)length, out->command) : NULL;
    if (nearest)
        return fail(out, "unknown option '%s%.*s'; did you mean '--%s'?", dashes, length, name,
                    nearest);
    return fail(out, "unknown option '%s%.*s'", dashes, length, name);
}

// --- Parsing ---

static bool choice_is_valid(const char *choices, const char *value) {
    size_t length = strlen(value);
    for (const char *at = choices; *at;) {
        size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, value, n) == 0)
            return true;
        at += n + (at[n] == '|');
    }
    return false;
}

// Records one use; `shown` is how the user spelt the option.
static bool add_use(OptParse *out, OptId id, const char *shown, const char *value) {
    const OptionRow *row = &option_rows[id];
    int length = (int)strcspn(shown, "=");
    if (!option_is_on(id, out->command)) {
        const char *other = row->commands & ON_COMPILE ? "fusec" : "fusec run";
        return fail(out, "option '%.*s' belongs to '%s'", length, shown, other);
    }
    if (row->status == LATER)
        return fail(out, "option '%.*s' is not supported yet", length, shown);
    if (value && !*value)
        return fail(out, "option '%.*s' has an empty value", length, shown);
    if (row->kind == CHOICE && !choice_is_valid(row->value, value))
        return fail(out, "option '%.*s' takes one of %s, not '%s'", length, shown, row->value,
                    value);
    out->uses[out->use_count++] = (OptUse){id, value};
    return true;
}

static bool parse_long(OptParse *out, int argc, char **argv, int *at) {
    const char *arg = argv[*at], *name = arg + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    for (OptId id = 0; id < OPT_COUNT; id++) {
        const OptionRow *row = &option_rows[id];
        if (strlen(row->long_name) != length || length == 0 ||
            memcmp(row->long_name, name, length) != 0)
            continue;
        if (row->kind == FLAG && value)
            return fail(out, "option '--%s' takes no value", row->long_name);
        if ((row->kind == VALUE || row->kind == CHOICE) && !value) {
            if (*at + 1 >= argc)
                return fail(out, "option '--%s' needs a value: --%s=%s", row->long_name,
                            row->long_name, row->value);
            value = argv[++*at];
        }
        return add_use(out, id, arg, value);
    }
    return unknown_option(out, arg);
}

static bool parse_short(OptParse *out, int argc, char **argv, int *at) {
    const char *arg = argv[*at], *name = arg + 1;
    for (OptId id = 0; id < OPT_COUNT; id++) { // whole words (-MD) before glued letters (-D...)
        const OptionRow *row = &option_rows[id];
        if (!*row->short_name || strcmp(row->short_name, name) != 0)
            continue;
        if (row->kind == FLAG || row->kind == MAYBE)
            return add_use(out, id, arg, NULL);
        if (row->kind != VALUE || strlen(row->short_name) == 1)
            continue;
        if (*at + 1 >= argc)
            return fail(out, "option '%s' needs a value: %s %s", arg, arg, row->value);
        return add_use(out, id, arg, argv[++*at]);
    }
    for (OptId id = 0; id < OPT_COUNT; id++) {
        const OptionRow *row = &option_rows[id];
        if (strlen(row->short_name) != 1 || row->short_name[0] != name[0] || row->kind == FLAG)
            continue;
        const char *value = name[1] ? name + 1 : NULL;
        const char shown[] = {'-', name[0], 0};
        if (row->kind == VALUE && !value) {
            if (*at + 1 >= argc)
                return fail(out, "option '%s' needs a value: %s %s", shown, shown, row->value);
            value = argv[++*at];
        }
        if (row->kind == GLUED && !value)
            return fail(out, "option '%s' needs its text directly after it: %s%s", shown, shown,
                        row->value);
        return add_use(out, id, shown, value);
    }
    return unknown_option(out, arg);
}

static bool parse_command(OptParse *out, int argc, char **argv, int *at) {
    if (argc < 2)
        return true;
    for (CommandId id = 1; id < CMD_COUNT; id++) {
        if (strcmp(argv[1], command_rows[id].word) != 0)
            continue;
        out->command = id;
        *at = 2;
        if (command_rows[id].status == LATER)
            return fail(out, "'fusec %s' is not supported yet", argv[1]);
        return true;
    }
    if (argv[1][0] == '-' || strpbrk(argv[1], "./"))
        return true;
    const char *nearest = nearest_command(argv[1]);
    if (nearest)
        return fail(out, "unknown command '%s'; did you mean '%s'?", argv[1], nearest);
    return true;
}

bool opts_parse(OptParse *out, int argc, char **argv) {
    *out = (OptParse){.command = CMD_COMPILE};
    size_t most = argc > 0 ? (size_t)argc : 1;
    out->uses = malloc(most * sizeof *out->uses);
    out->operands = malloc(most * sizeof *out->operands);
    if (!out->uses || !out->operands)
        return fail(out, "out of memory");

    int at = 1;
    if (!parse_command(out, argc, argv, &at))
        return false;
    bool only_operands = false;
    for (; at < argc; at++) {
        const char *arg = argv[at];
        bool ok = true;
        if (only_operands || arg[0] != '-' || !arg[1])
            out->operands[out->operand_count++] = arg;
        else if (strcmp(arg, "--") == 0)
            only_operands = true;
        else if (arg[1] == '-')
            ok = parse_long(out, argc, argv, &at);
        else
            ok = parse_short(out, argc, argv, &at);
        if (!ok)
            return false;
    }
    return true;
}

void opts_free(OptParse *opts) {
    free(opts->uses);
    free(opts->operands);
    *opts = (OptParse){0};
}

bool opts_has(const OptParse *opts, OptId id) {
    for (size_t i = 0; i < opts->use_count; i++)
        if (opts->uses[i].id == id)
            return true;
    return false;
}

const char *opts_value(const OptParse *opts, OptId id) {
    for (size_t i = opts->use_count; i-- > 0;)
        if (opts->uses[i].id == id && opts->uses[i].value)
            return opts->uses[i].value;
    return *option_rows[id].standard ? option_rows[id].standard : NULL;
}

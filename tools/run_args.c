// The operands and lists of `fusec run`: FILE.fk[:KERNEL], NAME=VALUE, --shape, --random.
// Input: OptParse. Output: RunArgs, or what is wrong.
// Invariant: no file is touched here; whether a name is a parameter is found out by the caller.
#include "tools/run_args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_name(const char *text, size_t length) {
    if (length == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// A copy that lives as long as the RunArgs, to be cut into pieces.
static char *copy_text(RunArgs *args, const char *text) {
    char *copy = strdup(text);
    if (copy)
        args->text[args->text_count++] = copy;
    return copy;
}

// Cuts "NAME=rest" in a copy; NULL where there is no name.
static char *split_name(RunArgs *args, const char *text, const char **name) {
    const char *equals = strchr(text, '=');
    if (!equals || !is_name(text, (size_t)(equals - text)))
        return NULL;
    char *copy = copy_text(args, text);
    if (!copy)
        return NULL;
    copy[equals - text] = 0;
    *name = copy;
    return copy + (equals - text) + 1;
}

// --- Operands ---

static bool parse_source(RunArgs *args, const char *text, ToolError *error) {
    char *copy = copy_text(args, text);
    if (!copy)
        return tool_fail(error, "out of memory");
    args->source = copy;
    char *colon = strrchr(copy, ':');
    if (!colon)
        return true;
    if (!is_name(colon + 1, strlen(colon + 1)))
        return tool_fail(error, "'%s' is not FILE.fk:KERNEL", text);
    *colon = 0;
    args->kernel = colon + 1;
    return true;
}

// There are no octal numbers.
static int number_base(const char *text) {
    return strncmp(text + (*text == '-'), "0x", 2) == 0 ? 16 : 10;
}

static bool parse_number(RunValue *value, const char *text) {
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value->kind = RUN_INTEGER;
        value->integer = text[0] == 't';
        value->real = (double)value->integer;
        return true;
    }
    if (!*text || isspace((unsigned char)*text))
        return false;
    errno = 0;
    value->integer = strtoll(text, &end, number_base(text));
    if (!*end && errno == 0) {
        value->kind = RUN_INTEGER;
        value->real = (double)value->integer;
        return true;
    }
    value->kind = RUN_FLOAT;
    errno = 0;
    value->real = strtod(text, &end);
    return !*end && !(errno && isinf(value->real));
}

static bool parse_value(RunArgs *args, const char *text, ToolError *error) {
    RunValue value = {0};
    char *rest = split_name(args, text, &value.name);
    if (!rest)
        return tool_fail(error, "'%s' is not NAME=VALUE", text);
    if (run_args_value(args, value.name))
        return tool_fail(error, "'%s' is given twice", value.name);
    static const char safetensors[] = ".safetensors";
    char *suffix = strstr(rest, ".safetensors:");
    if (ends_with(rest, ".npy")) {
        value.kind = RUN_NPY;
        value.path = rest;
    } else if (suffix || ends_with(rest, safetensors)) {
        value.kind = RUN_SAFETENSORS;
        value.path = rest;
        value.key = value.name;
        if (suffix) {
            suffix[sizeof safetensors - 1] = 0;
            value.key = suffix + sizeof safetensors;
        }
        if (!*value.key)
            return tool_fail(error, "'%s' names no tensor after the colon", text);
    } else if (!parse_number(&value, rest)) {
        return tool_fail(
            error, "'%s': the value is neither a number nor a .npy or .safetensors file", text);
    }
    args->values[args->value_count++] = value;
    return true;
}

// --- Lists ---

// A size at *text, which moves behind it and behind a comma.
static bool take_size(const char **text, int64_t *size) {
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *size = strtoll(*text, &end, 10);
    if (errno != 0 || (*end && *end != ',') || (*end == ',' && !end[1]))
        return false;
    *text = end + (*end == ',');
    return true;
}

static bool parse_shape(RunArgs *args, const char *text, ToolError *error) {
    RunShape shape = {0};
    const char *at = split_name(args, text, &shape.name);
    bool ok = at;
    while (ok && *at) {
        if (shape.rank == TENSOR_MAX_RANK)
            return tool_fail(error, "--shape=%s: more than %d dims", text, TENSOR_MAX_RANK);
        ok = take_size(&at, &shape.dims[shape.rank++]);
    }
    if (!ok)
        return tool_fail(error, "--shape takes NAME=D0,D1,..., not '%s'", text);
    if (run_args_shape(args, shape.name))
        return tool_fail(error, "--shape: '%s' is given twice", shape.name);
    args->shapes[args->shape_count++] = shape;
    return true;
}

static bool parse_random(RunArgs *args, const char *text, ToolError *error) {
    size_t room = args->dim_count + 1;
    for (const char *at = text; *at; at++)
        room += *at == ',';
    RunDim *more = realloc(args->dims, room * sizeof *more);
    char *copy = copy_text(args, text);
    if (more)
        args->dims = more;
    if (!more || !copy)
        return tool_fail(error, "out of memory");
    const char *at = copy;
    while (*at) {
        char *equals = strchr(at, '=');
        RunDim dim = {.name = at};
        if (!equals || !is_name(at, (size_t)(equals - at)))
            return tool_fail(error, "--random takes DIM=SIZE,..., not '%s'", text);
        *equals = 0;
        at = equals + 1;
        if (!take_size(&at, &dim.size))
            return tool_fail(error, "--random takes DIM=SIZE,..., not '%s'", text);
        if (run_args_dim(args, dim.name))
            return tool_fail(error, "--random: '%s' is given twice", dim.name);
        args->dims[args->dim_count++] = dim;
    }
    args->is_random = true;
    return true;
}

static bool parse_numbers(RunArgs *args, const OptParse *opts, ToolError *error) {
    const char *seed = opts_value(opts, OPT_SEED), *repeat = opts_value(opts, OPT_REPEAT);
    const char *tolerance = opts_value(opts, OPT_TOLERANCE);
    char *end;
    errno = 0;
    args->seed = strtoull(seed, &end, 0);
    if (*end || errno != 0 || *seed == '-')
        return tool_fail(error, "--seed takes a number, not '%s'", seed);
    long times = strtol(repeat, &end, 10);
    if (*end || times < 1 || times > 1000000)
        return tool_fail(error, "--repeat takes a number from 1 to 1000000, not '%s'", repeat);
    args->repeat = (int)times;
    args->tolerance = -1;
    if (tolerance) {
        args->tolerance = strtod(tolerance, &end);
        if (*end || !(args->tolerance >= 0))
            return tool_fail(error, "--tolerance takes a number from 0 up, not '%s'", tolerance);
    }
    return true;
}

bool run_args_parse(RunArgs *out, const OptParse *opts, ToolError *error) {
    *out = (RunArgs){0};
    if (opts->operand_count == 0)
        return tool_fail(error, "no input file");
    out->values = calloc(opts->operand_count, sizeof *out->values);
    out->shapes = calloc(opts->use_count + 1, sizeof *out->shapes);
    out->text = calloc(opts->operand_count + opts->use_count, sizeof *out->text);
    if (!out->values || !out->shapes || !out->text)
        return tool_fail(error, "out of memory");
    if (!parse_source(out, opts->operands[0], error) || !parse_numbers(out, opts, error))
        return false;
    for (size_t i = 1; i < opts->operand_count; i++)
        if (!parse_value(out, opts->operands[i], error))
            return false;
    for (size_t i = 0; i < opts->use_count; i++) {
        const OptUse *use = &opts->uses[i];
        if ((use->id == OPT_SHAPE && !parse_shape(out, use->value, error)) ||
            (use->id == OPT_RANDOM && !parse_random(out, use->value, error)))
            return false;
    }
    return true;
}

void run_args_free(RunArgs *args) {
    for (size_t i = 0; i < args->text_count; i++)
        free(args->text[i]);
    free(args->text);
    free(args->values);
    free(args->shapes);
    free(args->dims);
    *args = (RunArgs){0};
}

const RunValue *run_args_value(const RunArgs *args, const char *name) {
    for (size_t i = 0; i < args->value_count; i++)
        if (strcmp(args->values[i].name, name) == 0)
            return &args->values[i];
    return NULL;
}

const RunShape *run_args_shape(const RunArgs *args, const char *name) {
    for (size_t i = 0; i < args->shape_count; i++)
        if (strcmp(args->shapes[i].name, name) == 0)
            return &args->shapes[i];
    return NULL;
}

const RunDim *run_args_dim(const RunArgs *args, const char *name) {
    for (size_t i = 0; i < args->dim_count; i++)
        if (strcmp(args->dims[i].name, name) == 0)
            return &args->dims[i];
    return NULL;
}

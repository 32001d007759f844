// The operands and lists of `fusec run`, parsed: which kernel, which files, numbers, shapes.
// Invariant: names are unique within each list; text points into argv or into `text`, which is
// owned.
#ifndef FUSE_TOOLS_RUN_ARGS_H
#define FUSE_TOOLS_RUN_ARGS_H

#include "tools/opts.h"
#include "tools/tensor.h"

typedef enum RunValueKind { RUN_NPY, RUN_SAFETENSORS, RUN_INTEGER, RUN_FLOAT } RunValueKind;

typedef struct RunValue { // NAME=VALUE
    const char *name;
    RunValueKind kind;
    const char *path, *key; // files; key: the tensor inside a .safetensors file, by default `name`
    int64_t integer;        // INTEGER
    double real;            // INTEGER and FLOAT
} RunValue;

typedef struct RunShape { // --shape NAME=D0,D1,...
    const char *name;
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
} RunShape;

typedef struct RunDim { // --random DIM=SIZE,...
    const char *name;
    int64_t size;
} RunDim;

typedef struct RunArgs {
    const char *source, *kernel; // kernel: NULL where the file has to have one only
    RunValue *values;
    size_t value_count;
    RunShape *shapes;
    size_t shape_count;
    bool is_random; // --random was given
    RunDim *dims;
    size_t dim_count;
    uint64_t seed;
    int repeat;
    double tolerance; // negative: none
    char **text;      // owned copies of argv
    size_t text_count;
} RunArgs;

// False: the command line is wrong, as `error` says. Free either way.
bool run_args_parse(RunArgs *out, const OptParse *opts, ToolError *error);
void run_args_free(RunArgs *args);

const RunValue *run_args_value(const RunArgs *args, const char *name);
const RunShape *run_args_shape(const RunArgs *args, const char *name);
const RunDim *run_args_dim(const RunArgs *args, const char *name);

#endif

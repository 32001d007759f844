// The arguments of one run: every parameter of the kernel with its tensor or number.
#ifndef FUSE_TOOLS_RUN_BIND_H
#define FUSE_TOOLS_RUN_BIND_H

#include "include/fuse_rt.h"
#include "lang/base/arena.h"
#include "tools/run_args.h"

// The files of `args->values`, each read once, when it is first asked for.
typedef struct RunFiles {
    const RunArgs *args;
    HostTensor *tensors; // one per value; empty until read
} RunFiles;

bool run_files_open(RunFiles *files, const RunArgs *args, ToolError *error);
void run_files_close(RunFiles *files);
// NULL with the error set. `i` is an index of args->values, a file.
HostTensor *run_files_read(RunFiles *files, size_t i, ToolError *error);

typedef struct RunArgument {
    const FuseRtParam *param;
    DType dtype;
    const RunValue *value; // what the command line gives it, or NULL
    bool is_input, is_output;
    bool is_given;     // false: an absent tensor, or a scalar that takes its default
    Scalar scalar;     // of the parameter's type
    HostTensor tensor; // of the declared type and shape; empty when absent
} RunArgument;

typedef struct RunBinding {
    FuseKernel *kernel;
    RunArgument *arguments; // one per parameter, in order
    int count;
    FuseRtArg *sizes; // dims given by --random and --shape, as integer arguments
    int size_count;
} RunBinding;

// Reads, converts, makes up and allocates all arguments. EXIT_OK, or why not. Free either way.
ExitCode run_bind(Arena *arena, FuseKernel *kernel, const RunArgs *args, RunFiles *files,
                  RunBinding *out, ToolError *error);
// Copies of all tensors.
bool run_binding_copy(Arena *arena, const RunBinding *from, RunBinding *out, ToolError *error);
void run_binding_free(RunBinding *binding);

// The arguments of a launch, in `arena`. Tensors are at `memory[i]`, or where they are on the host.
FuseRtArg *run_launch_arguments(Arena *arena, const RunBinding *binding, DLDevice device,
                                void *const *memory, int *count);

// False: outputs go to one place, or over a file that another argument is read from.
bool run_check_outputs(const RunBinding *binding, ToolError *error);
// Writes every output that the command line gives a file.
bool run_write_outputs(const RunBinding *binding, ToolError *error);

#endif

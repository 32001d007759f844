// What `fusec run` reads off the source text before it compiles: which kernel, and which types its
// generics take.
#ifndef FUSE_TOOLS_RUN_GENERICS_H
#define FUSE_TOOLS_RUN_GENERICS_H

#include "lang/base/arena.h"
#include "tools/tensor.h"

// The element type of the file given for a parameter, DT_NONE where none is.
typedef DType GivenDType(void *user, const char *parameter);

typedef struct RunKernel {
    const char *name; // in the arena
    const char *
        *defines; // those given, then "T=bf16" for each type that was inferred; NULL at the end
} RunKernel;

// `wanted` NULL: the file must have one kernel only. A type that no define binds is that of the
// first given file of a parameter with this type; `assume`: else the usual one of its class. A text
// that does not parse succeeds with `name` NULL: compiling it says what is wrong.
bool run_kernel_find(Arena *arena, const char *source, size_t length, const char *wanted,
                     const char *const *defines, bool assume, GivenDType *given, void *user,
                     RunKernel *out, ToolError *error);

#endif

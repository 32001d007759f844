// The back end's entry: a `placed` module to PTX, LLVM IR text or a host object file.
//
// Input: a module of stage `placed` that ir_verify accepts. Output: bytes in the arena. Every
// `launch` becomes one function named by its attribute `entry` (<kernel>_<n> when it has none). PTX
// starts with comment lines `//! `: the version line `//! fuse 1 <target> <hash>` and the launch
// plan, ir_print(..., plan = true).
//
// Thread-safety: may be called from several threads at once on different modules. The only
// process-wide state is LLVM's, initialised once.
#ifndef FUSE_BACKEND_BACKEND_H
#define FUSE_BACKEND_BACKEND_H

#include "ir/ir.h"
#include "ir/target_desc.h"
#include "lang/base/diag.h"

typedef enum BackendEmit { BACKEND_PTX, BACKEND_LLVM, BACKEND_OBJECT } BackendEmit;

typedef struct BackendOptions {
    BackendEmit emit;
    int opt_level;  // 0..3
    bool line_info; // .loc from spans
    bool debug;     // asserts are kept
    bool fast_math;
    bool native;              // host: code for this machine's processor (set by host_jit)
    bool time;                // report the time of code generation through `message`
    const SourceMap *sources; // for line information; may be NULL
    void (*message)(void *user, const char *text, size_t len);
    void *user;
} BackendOptions;

typedef struct BackendOutput {
    char *data; // in the arena; NUL-terminated, len without it
    size_t len;
    const char *plan; // the launch plan's text, without comment marks
    size_t plan_len;
} BackendOutput;

// False when an error was added to `diags`.
bool backend_emit(Arena *arena, Module *placed, const TargetDesc *target,
                  const BackendOptions *options, BackendOutput *out, Diags *diags);

// Symbol of the kernel's n-th launch (from 0, in program order): its attribute `entry`, or
// <kernel>_<n>. (entry.c)
const char *backend_entry_name(Arena *arena, const Kernel *kernel, const Op *launch, int n);

// LLVM's targets and process-wide options, once; backend_emit calls it.
void backend_llvm_start(void);

// Bytes of shared memory that lowering `op` needs besides buffers (cross-warp reductions,
// conversions, scans); 0 for most conversions, scans): pass `place` gives it an offset by attribute
// `at` (convert) or reserves the largest of them behind the buffers. attribute `smem` at least
// align16(end of buffers) + the largest scratch.
int64_t lower_scratch_bytes(const Op *op);

#endif

// libfusec: compiles .fk source to PTX, host code, or text of any stage.
//
// Thread-safety: every function may be called from several threads at once on different results.
// Nothing is printed and no call exits; errors are diagnostics in the result. All pointers that a
// result gives out live until fuse_result_free.
#ifndef FUSEC_H
#define FUSEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEC_API __attribute__((visibility("default")))

typedef enum FuseEmit {
    FUSE_EMIT_AST,  // canonical .fk text
    FUSE_EMIT_TILE, // textual tile IR (at `stop_after`, or as the front end made it)
    FUSE_EMIT_LLVM, // LLVM IR
    FUSE_EMIT_PTX,  // PTX with the launch plan as comments
    FUSE_EMIT_OBJ,  // host object file
    FUSE_EMIT_HOST, // host code loaded into this process, run by fuse_host_launch (targets cpu,
                    // sim-*)
    FUSE_EMIT_EVAL, // nothing but the tile IR for fuse_eval_run
} FuseEmit;

typedef struct FuseOptions {
    const char *target; // NULL: sm_80
    FuseEmit emit;
    const char *const *defines; // "NAME=value" or "kernel.NAME=value", NULL-terminated; may be NULL
    const char *const *includes; // import folders, NULL-terminated; may be NULL
    const char *kernel;          // only this kernel of the file; NULL: all
    // deterministic: refuses what could give different bits from run to run. check: EVAL only, see
    // fuse_eval_run.
    bool no_fuse, fast_math, deterministic, debug, check, time, explain, line_info;
    bool no_perf_notes; // as "no-perf" in `warnings`
    int opt_level;      // 0..3; `fusec`, the runtime and fuse_compile(NULL, ...) take 2 by default
    const char *dump;   // pass name, "all", "generic"; NULL: none
    const char *passes, *stop_after;
    bool color; // diagnostics with colour
    // Called with each diagnostic's text, dump or timing as it is made; may be NULL (then they are
    // collected).
    void (*message)(void *user, const char *text, size_t len);
    void *user;
    // What stands behind -W, in order, NULL-terminated: "error", "no-ID", "error=ID", "ID", where
    // ID is that of a warning or performance note, or "perf". May be NULL.
    const char *const *warnings;
} FuseOptions;

typedef struct FuseResult FuseResult;

// Compiles `source` (need not be NUL-terminated); `name` is shown in diagnostics. Always returns a
// result (NULL only when out of memory); fuse_result_ok tells whether it has an artefact.
FUSEC_API FuseResult *fuse_compile(const FuseOptions *options, const char *name, const char *source,
                                   size_t len);
FUSEC_API void fuse_result_free(FuseResult *r);
FUSEC_API bool fuse_result_ok(const FuseResult *r);
// The artefact's bytes (AST, TILE, LLVM, PTX, OBJ).
FUSEC_API const char *fuse_result_output(const FuseResult *r, size_t *len);
// All diagnostics as text, "" when there are none.
FUSEC_API const char *fuse_result_messages(const FuseResult *r);
FUSEC_API int fuse_result_errors(const FuseResult *r);
// Files that were read, each once: the i-th (0: the source itself, by the `name` that was given to
// fuse_compile), then the imports found through `includes`; NULL at the end. The embedded library
// and names in angle brackets (<stdin>) are no files.
FUSEC_API const char *fuse_result_dep_at(const FuseResult *r, int i);
// true when an internal error (a bug of the compiler) stopped the compilation.
FUSEC_API bool fuse_result_internal(const FuseResult *r);
// The launch plan: textual IR of stage placed without the launches' regions (PTX, HOST, OBJ), or
// the tensor-stage IR (EVAL).
FUSEC_API const char *fuse_result_plan(const FuseResult *r, size_t *len);

// What assembling made of one function of the PTX, as ptxas or the CUDA driver tells it.
typedef struct FuseFunctionUse {
    const char *entry; // the launch's, in the plan
    int registers;     // of a thread
    int local_bytes;   // local memory of a thread
} FuseFunctionUse;
// PTX: adds the performance notes `spills` to the messages, which go where the others went, and
// with `explain` what each function takes. False where a note became an error: the result is not ok
// any more.
FUSEC_API bool fuse_result_note_use(FuseResult *r, int n, const FuseFunctionUse *uses);

// HOST: runs launch `entry` over programs [0, grid) with `warps` warps and `smem` bytes of shared
// memory per program. `args[i]` points at entry parameter i (ir/abi.h). Returns NULL, or a message
// (sim: a race, a deadlock, an out-of-bounds access, with the place in the source) that lives until
// the next call on this result. Not to be called twice at once on one result. `seed` picks the
// interleaving in sim.
FUSEC_API const char *fuse_host_launch(FuseResult *r, const char *entry, void *const *args,
                                       int64_t grid, int warps, int64_t smem, int threads,
                                       uint64_t seed);

// A tensor in host memory. dtype by name ("bf16"); strides in elements.
typedef struct FuseTensor {
    void *data; // NULL: absent
    const char *dtype;
    int rank;
    int64_t dims[8], strides[8];
} FuseTensor;
typedef struct FuseArg {
    const char *name; // parameter name; NULL: by position
    const FuseTensor *tensor;
    const char *dtype; // scalar: i64 in i, or f64 in f (converted to the parameter's dtype)
    int64_t i;
    double f;
    bool is_float;
} FuseArg;
// EVAL: runs a kernel on the reference evaluator. Returns NULL or an error message (lives until the
// next call). `seed` picks the order of iterations and of the elements of atomics and scatters; 0:
// as written. With FuseOptions.check what the run does wrong is diagnostics for `message`, and
// errors among them are an error of the call (without `message` its text has them).
FUSEC_API const char *fuse_eval_run(FuseResult *r, const char *kernel, int nargs,
                                    const FuseArg *args, uint64_t seed);

FUSEC_API const char *fuse_version(void);
FUSEC_API const char *fuse_target_at(int i); // names of the targets, NULL at the end
FUSEC_API const char *fuse_pass_at(int i);   // names of the passes, NULL at the end
// What a diagnostic id means, in lines; one line of it; and a program that gives it, or the same
// put right (NULL where no program alone shows it). NULL for what is no id.
FUSEC_API const char *fuse_explain_error(const char *id);
FUSEC_API const char *fuse_explain_title(const char *id);
FUSEC_API const char *fuse_explain_example(const char *id, bool right);
FUSEC_API const char *fuse_diagnostic_at(int i);       // ids of diagnostics, NULL at the end
FUSEC_API bool fuse_is_warning_flag(const char *flag); // whether `warnings` takes it

#ifdef __cplusplus
}
#endif
#endif

// The pass manager: passes are rows of passes.def, pipelines are const arrays in pipeline.c (the
// only place that knows order). After each pass the IR is verified; dumps and timings are taken
// here.
#ifndef FUSE_IR_PASS_H
#define FUSE_IR_PASS_H

#include "ir/ir.h"
#include "ir/target_desc.h"
#include "lang/base/diag.h"

typedef enum PassId {
#define PASS(name, what) PASS_##name,
#include "ir/passes.def"
#undef PASS
    PASS_COUNT
} PassId;

// A schedule entry as written in the source: `m = 128 | 256`, `split(k) = 4`, `order = grouped(8)`.
// First alternative wins until a tuner says otherwise.
typedef struct ScheduleEntry {
    Str name;      // binder, dim, or one of: warps stages persistent order split
    Str of;        // split(k): "k"; else NULL
    int64_t value; // of the first alternative
    int nalt;      // number of alternatives in `alt` (0: only `value`)
    int64_t alt[8];
    Str word; // order = grouped(8): "grouped"
    Span span;
} ScheduleEntry;
typedef struct Schedule {
    Str kernel; // Kernel.name of the instance it belongs to
    int n;
    ScheduleEntry *entry;
} Schedule;

typedef struct PassOptions {
    bool no_fuse, fast_math, debug;
    bool explain;     // remarks
    const char *dump; // pass name, "all", or NULL
    bool dump_generic;
    const char *stop_after; // pass name or NULL
    const char *passes;     // comma-separated list that replaces the pipeline, or NULL
    bool time;
    int nschedule;
    const Schedule *schedule;
} PassOptions;

typedef struct PassCtx {
    Module *module;
    const TargetDesc *target;
    const PassOptions *options;
    Arena *scratch; // reset after each pass
    // Shared memory that lowering an op needs besides buffers (the back end's answer; NULL: none).
    // Pass place reserves it.
    int64_t (*scratch_bytes)(const Op *op);
    const char *running;          // the pass that runs, and
    const char *kernel;           // on what: for a report of a crash
    const char *text, *text_name; // of a module that was read with channels and copies, else NULL
    Diags *diags;                 // errors, performance notes and remarks
    void (*sink)(void *user, const char *text, size_t len); // dumps, timings
    void *user;
} PassCtx;

// Returns false when a diagnostic of severity error was added (or an internal error was reported
// through `diags`).
typedef bool (*PassFn)(PassCtx *ctx, Kernel *kernel);
#define PASS(name, what) bool pass_##name(PassCtx *ctx, Kernel *kernel);
#include "ir/passes.def"
#undef PASS

// Runs the pipeline that takes the module from its stage to `placed`, or what `options` ask for.
bool passes_run(PassCtx *ctx);
const char *pass_name(PassId id);

#endif

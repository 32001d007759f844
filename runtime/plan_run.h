// Running a variant's program over a bound frame.
#ifndef FUSE_RUNTIME_PLAN_RUN_H
#define FUSE_RUNTIME_PLAN_RUN_H

#include "runtime/bind.h"

typedef enum RunResult {
    RUN_DONE,
    RUN_NO_FIT, // a guard or a `when` does not hold: try the next variant
    RUN_FAILED, // status and the thread's message say why
} RunResult;

// Where launches go. `start` runs one grid; `zero` clears workspace in stream order; `map` makes
// the tensor map of a parameter (NULL: no launch has one); `resident` says how many programs of a
// launch fit on a multiprocessor at once (NULL: one).
typedef struct RunTarget {
    FuseRtStatus (*start)(void *user, LaunchPlan *launch, int64_t grid, void **params);
    FuseRtStatus (*zero)(void *user, void *memory, int64_t bytes);
    FuseRtStatus (*map)(void *user, const LaunchParam *p, const TensorBind *t, void *out);
    FuseRtStatus (*resident)(void *user, LaunchPlan *launch, int *out);
    void *user;
} RunTarget;

typedef struct Run {
    const Program *program;
    Frame *frame;
    const RunTarget *target; // NULL: a dry run, which measures and checks but starts nothing
    int sms;
    char *workspace;
    int64_t used, peak; // bytes of workspace now and at most
    int launches;
    FuseRtStatus status;
} Run;

bool run_guards_hold(const Program *p, const Frame *f);
RunResult run_program(Run *run);

#endif

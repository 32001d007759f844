// What fuse_compile leaves behind; private to the driver.
#ifndef FUSE_DRIVER_RESULT_H
#define FUSE_DRIVER_RESULT_H

#include "backend/host/host.h"
#include "frontend/frontend.h"
#include "include/fusec.h"
#include "ir/pass.h"

struct FuseResult {
    Arena *arena, *scratch; // arena: everything below lives in it
    FuseOptions options;
    const char *name;
    Interner *interner;
    SourceMap *sources;
    Diags *diags;
    DiagOptions levels; // of the compilation's reports and of the checks'
    const TargetDesc *target;
    AstFile *ast;
    Module *module;
    ScheduleList schedules;
    HostModule *host;
    const char *step;      // that runs, and
    const PassCtx *passes; // its state, where it is the passes: for a report of a crash
    bool ok, internal;
    const char *output, *plan;
    char *messages;
    size_t noutput, nplan, nmessages, message_room;
    Arena *call; // of the last fuse_eval_run: its message
};

// To the caller's function, or to fuse_result_messages. `user` is the result.
void result_say(void *user, const char *text, size_t len);

#endif

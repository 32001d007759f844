// Modules and kernels: what the public handles hold.
#ifndef FUSE_RUNTIME_MODULE_H
#define FUSE_RUNTIME_MODULE_H

#include <pthread.h>

#include "runtime/device.h"
#include "runtime/plan.h"

// Temporaries of a kernel on one stream, kept for the next launch.
typedef struct Workspace {
    uint64_t stream; // its id, or its handle where the driver has no ids
    void *memory;
    int64_t bytes;
    uint64_t used; // number of the last launch that took it
} Workspace;

enum { WORKSPACES_MAX = 16 }; // streams of a kernel that keep their own

// One per instance. The lock is held while a launch with temporaries puts its grids on the stream:
// two launches that share a workspace must not mix.
typedef struct WorkspaceCache {
    pthread_mutex_t lock;
    Workspace slot[WORKSPACES_MAX];
    uint64_t clock;
} WorkspaceCache;

struct FuseKernel {
    FuseModule *module;
    const char *name;
    int ninstance;
    FuseKernel **handle;        // of each instance; an instance's own is itself
    const Instance *instance;   // the first
    WorkspaceCache *workspaces; // of an instance
    FuseRtParam *param;         // as shown
    size_t frame_bytes;         // of the instance that needs most
};

struct FuseModule {
    FuseDevice *device;
    Arena *arena;
    Plan plan;
    const char *plan_text, *messages;
    const char **diagnostic; // NULL at the end
    FuseKernel *kernel;      // instances, then families
    int ninstance, nkernel;
    CudaModule *cuda;
    FuseResult *result; // cpu, sim, eval
    const FuseCompilerApi *compiler;
    pthread_mutex_t lock; // of `result`: one launch at a time
};

// --- ptx_text.c ---
typedef struct PtxHeader {
    const char *target; // "sm_90a"
    const char *plan;   // the plan's text, without comment marks
    size_t plan_len;
    const char *version; // of PTX: "8.7"
} PtxHeader;
// Reads the comment lines at the head of a PTX file. False: *error says what is not as it should
// be.
bool ptx_header_read(Arena *arena, const char *ptx, size_t len, PtxHeader *out, const char **error);
// Whether `data` is a cubin, and where the same lines stand behind it; *plan is NULL where there
// are none.
bool cubin_plan_find(const char *data, size_t len, const char **plan, size_t *plan_len);

// --- spills.c ---
// Tells the compiler what the driver made of the launches of each instance's most special variant;
// m->result gets notes of those that spill. False: one of them is an error.
bool module_note_spills(FuseModule *m);

// --- launch.c ---
void workspace_cache_free(const FuseDevice *device, WorkspaceCache *cache);

#endif

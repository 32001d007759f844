// Runs placed modules in this process, on target `cpu` or `sim-*`.
//
// Input: a module of stage `placed`. Output: native code, and launches of it. `args[i]` points at
// entry parameter i (ir/abi.h). cpu spreads programs over threads in contiguous runs; sim runs them
// one after another under backend/host/sim.h and reports what it finds wrong.
//
// Thread-safety: different HostModules are independent; one HostModule runs one launch at a time.
#ifndef FUSE_BACKEND_HOST_HOST_H
#define FUSE_BACKEND_HOST_HOST_H

#include "backend/backend.h"
#include "backend/host/sim.h"

typedef struct HostModule HostModule;

// The row of the table that fits this machine best; what the device `cpu` compiles source for.
const TargetDesc *host_target_of_machine(void);

// NULL when an error was added to `diags`. `arena` and options->sources must outlive the module,
// which host_module_free ends. options: opt_level, debug, fast_math, sources, message; `emit` and
// `native` are set here.
HostModule *host_jit(Arena *arena, Module *placed, const TargetDesc *target,
                     const BackendOptions *options, Diags *diags);
void host_module_free(HostModule *h);
const char *host_module_plan(const HostModule *h, size_t *len);

// Programs [0, grid) of `entry`. warps 0: those of the launch op. threads (cpu) 0: one per
// processor. NULL, or a message that lives until the next launch.
const char *host_launch(HostModule *h, const char *entry, void *const *args, int64_t grid,
                        int warps, int64_t smem, int threads, uint64_t seed);
// Accesses to shared memory of all launches on sim so far.
SimBanks host_sim_banks(const HostModule *h, SimAccess kind);

#endif

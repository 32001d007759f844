// Insides of the simulator, shared by sim.c (scheduler, barriers), sim_shared.c (shadow memory,
// copies), sim_global.c and sim_matrix.c.
//
// Clocks: every warp and every warp's copy engine is an agent with a counter. A warp's vector clock
// tells up to which count it has seen each agent; a barrier joins those of its warps. An access by
// agent u at count c is ordered before what warp v does now exactly when clock[v][u] >= c.
#ifndef FUSE_BACKEND_HOST_SIM_IMPL_H
#define FUSE_BACKEND_HOST_SIM_IMPL_H

#include "backend/host/coro.h"
#include "backend/host/sim.h"

enum { SIM_AGENTS = 2 * SIM_WARPS_MAX, AGENT_NONE = 255, SIM_RANGES_MAX = 64 };

typedef enum WarpState { WARP_READY, WARP_BLOCKED, WARP_ENDED } WarpState;

typedef struct SimCopy { // an asynchronous copy in flight
    uint32_t to, group;
    uint8_t bytes, valid;
    const uint8_t *from;
} SimCopy;

struct SimWarp {
    Sim *sim;
    int32_t id;
    Coro *coro;
    WarpState state;
    const char *op; // what it waits in
    int32_t barrier;
    uint64_t span;
    uint32_t clock[SIM_AGENTS];
    uint32_t commits; // copy groups so far
    SimCopy *copy;
    uint32_t ncopy, copy_cap;
};

typedef struct SimBarrier {
    uint32_t arrived; // warps that wait, as a mask
    int32_t expected;
    uint64_t span; // of the first that came
    int32_t first;
} SimBarrier;

typedef struct SimCell { // shadow of a byte of shared memory
    uint32_t generation; // of another CTA: the cell is empty
    uint32_t write_clock;
    uint32_t write_at, read_at; // source offsets of the accesses
    uint8_t writer;             // agent
} SimCell;

typedef struct SimRange {
    const char *name;
    uintptr_t lo, hi;
} SimRange;

struct Sim {
    int32_t warps;
    uint32_t shared_bytes, generation;
    uint64_t random;
    const SourceMap *sources;
    uint8_t *shared;
    SimCell *cell;
    uint32_t *readers; // [byte * warps + warp]: count of the last read
    SimRange range[SIM_RANGES_MAX];
    int nrange;
    bool unbounded;
    SimBarrier barrier[SIM_BARRIERS];
    SimWarp *warp;
    SimEntry *entry;
    void *const *args;
    int64_t program;
    bool failed;
    char report[2048];
};

uint64_t sim_random(Sim *sim);
// Records a report at the place of `span`; the first one stays.
void sim_report_add(Sim *sim, uint64_t span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// sim_fail ends the launch: it comes back only to the scheduler.
void sim_stop(SimWarp *w) __attribute__((noreturn));
#define sim_fail(w, span, ...) (sim_report_add((w)->sim, (span), __VA_ARGS__), sim_stop(w))
// "k.fk:3:9", or "" when nowhere; buf holds at least 160 bytes.
const char *sim_place(const Sim *sim, uint32_t at, char *buf, size_t cap);

// Shadow checks of a warp's access to shared bytes; they fail the launch.
void sim_shared_read(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span);
void sim_shared_write(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                      uint32_t clock);
void sim_global_check(SimWarp *w, int lane, const void *p, uint32_t bytes, bool aligned,
                      const char *what, uint64_t span);
// Lets some copies of the warp arrive, by chance.
void sim_copies_advance(SimWarp *w);

#endif

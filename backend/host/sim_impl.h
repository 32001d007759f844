// Insides of the simulator, shared by sim.c (scheduler, barriers), sim_shared.c (shadow memory,
// copies), sim_mbar.c, sim_bulk.c, sim_wgmma.c, sim_global.c and sim_matrix.c.
//
// Clocks: every agent has a counter. A warp's vector clock tells up to which count it has seen each
// agent; a barrier joins those of its warps. An access by agent u at count c is ordered before what
// warp v does now exactly when clock[v][u] >= c. Agents are
//   a warp; its cp.async engine, counting groups; its bulk stores, counting groups; its part of the
//   matrix unit, counting groups; an mbarrier, counting phases, for the bulk copies that signal it;
//   "fenced": up to which count writes of a warp, or of its cp.async engine, are visible to the
//   asynchronous proxy (bulk copies and the matrix unit).
#ifndef FUSE_BACKEND_HOST_SIM_IMPL_H
#define FUSE_BACKEND_HOST_SIM_IMPL_H

#include "backend/host/coro.h"
#include "backend/host/sim.h"
#include "ir/abi.h"

enum {
    AGENT_WARP = 0,
    AGENT_COPY = SIM_WARPS_MAX,
    AGENT_BULK = 2 * SIM_WARPS_MAX,
    AGENT_MMA = 3 * SIM_WARPS_MAX,
    AGENT_MBAR = 4 * SIM_WARPS_MAX,
    SIM_MBARS_MAX = 64,
    AGENT_FENCED = AGENT_MBAR + SIM_MBARS_MAX, // of warps, then of their cp.async engines
    SIM_AGENTS = AGENT_FENCED + 2 * SIM_WARPS_MAX,
    AGENT_NONE = 255,
    READER_KINDS = 3, // warps, bulk stores, matrix unit
    SIM_RANGES_MAX = 64,
};

typedef enum WarpState { WARP_READY, WARP_BLOCKED, WARP_ENDED } WarpState;

typedef struct SimCopy { // an asynchronous copy in flight
    uint32_t to, group;
    uint8_t bytes, valid;
    const uint8_t *from;
} SimCopy;

typedef struct SimMbar {
    uint32_t at;
    int32_t arrivals, pending; // of a phase; still missing in this one
    int64_t tx;                // bytes that are expected and have not come
    int64_t coming;            // bytes of copies in flight
    uint32_t phase;            // phases that are over
    bool fenced;               // its initialisation is visible to bulk copies
    int32_t owner;             // the warp that made it, at this count
    uint32_t made;
    int64_t waited[SIM_WARPS_MAX];               // the last phase that a warp has waited for
    uint64_t span;                               // of the last expectation
    uint32_t next[SIM_AGENTS], done[SIM_AGENTS]; // what arrivals have seen: now; in phases over
} SimMbar;

typedef struct SimBulk { // a bulk copy in flight
    AbiHostMap map;
    int32_t at[ABI_MAP_RANK];
    uint32_t shared, group;
    int32_t warp, mbar; // mbar -1: a store
    uint64_t span;
} SimBulk;

typedef struct SimMma { // a product in flight: the warp's 16 rows of it
    uint64_t a, b;      // descriptors
    uint32_t regs[4 * SIM_LANES];
    int32_t dtype, n, k, flags;
    uint32_t group;
    uint32_t *slot; // [n / 2] accumulators
} SimMma;

typedef struct SimAcc { // a register of an accumulator in flight
    uint32_t value[SIM_LANES];
    uint32_t group; // the last one that writes it, from 1
    bool used;
} SimAcc;

typedef struct SimUnit { // a warp's part of the matrix unit
    SimMma *queue;       // [done, issued)
    uint32_t done, issued, cap, commits;
    SimAcc *acc;
    uint32_t nacc, acc_cap;
    bool fenced;
} SimUnit;

struct SimWarp {
    Sim *sim;
    int32_t id;
    Coro *coro;
    WarpState state;
    const char *op; // what it waits in
    int32_t barrier;
    uint64_t span;
    uint32_t clock[SIM_AGENTS];
    // Blocked until it holds; NULL: until another warp says so. `wait` is what it compares with.
    bool (*ready)(const SimWarp *w);
    int64_t wait;
    int32_t mbar; // that it waits for, or -1
    int32_t regs;
    SimUnit unit;
    uint32_t bulk_commits;
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
    bool is_mbar, is_read;      // read since it was written
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
    // [(byte * READER_KINDS + kind) * warps + warp]: count of the last read; of bytes with is_read
    uint32_t *readers;
    SimRange range[SIM_RANGES_MAX];
    int nrange;
    bool unbounded;
    SimBarrier barrier[SIM_BARRIERS];
    SimMbar mbar[SIM_MBARS_MAX];
    int nmbar;
    SimBulk *bulk;
    uint32_t nbulk, bulk_cap;
    SimWarp *warp;
    SimEntry *entry;
    void *const *args;
    int64_t program;
    SimBanks banks[SIM_ACCESSES];
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

// Counts an access of `bytes` at off[lane] by the lanes of the mask.
void sim_banks_count(SimWarp *w, SimAccess kind, const int32_t *off, int lanes, uint32_t mask,
                     int bytes);
// Shadow checks of a warp's access to shared bytes; they fail the launch.
void sim_shared_read(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span);
void sim_shared_write(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                      uint32_t clock);
// The same of the asynchronous proxy on behalf of the warp: `agent` is its BULK or MMA one.
void sim_shared_read_async(SimWarp *w, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                           uint32_t clock);
// Bytes of a barrier: nothing else may touch them.
void sim_shared_mbar(SimWarp *w, uint32_t at, uint64_t span);
void sim_global_check(SimWarp *w, int lane, const void *p, uint32_t bytes, bool aligned,
                      const char *what, uint64_t span);
// Lets some copies of the warp arrive, by chance.
void sim_copies_advance(SimWarp *w);

// Stops the warp until ready(w).
void sim_block(SimWarp *w, const char *op, int32_t which, bool (*ready)(const SimWarp *w),
               int64_t wait, uint64_t span);
void sim_clock_join(uint32_t *into, const uint32_t *from);

// `bytes` of a copy have come; its phase ends when they were the last thing missing.
void sim_mbar_complete(Sim *sim, SimMbar *m, int64_t bytes);
SimMbar *sim_mbar_find(SimWarp *w, uint32_t at, uint64_t span);
void sim_mbars_begin(Sim *sim);
int32_t sim_regs_at_start(const Sim *sim); // registers of a thread
// What the barrier waits for, as text.
int sim_mbar_text(const SimMbar *m, char *buf, size_t cap);

void sim_bulk_begin(Sim *sim);
// Lets a bulk copy arrive: by chance, or one for certain; false when there is none.
void sim_bulk_advance(Sim *sim);
bool sim_bulk_force(Sim *sim);
// Reports stores that have not read their buffer when the warp ends.
void sim_bulk_end(SimWarp *w);
// Address of a byte of a box in swizzled lines.
uint32_t sim_swizzled(uint32_t at, uint32_t swizzle);

void sim_unit_begin(SimWarp *w);
void sim_unit_advance(SimWarp *w);
void sim_unit_free(SimWarp *w);
float sim_float(DType dtype, uint32_t bits);

#endif

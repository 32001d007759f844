// The simulator of a GPU's CTA: warps as coroutines, shared memory under a shadow, asynchronous
// copies that come late.
//
// Compiled code (or a test) is entered once per warp and calls the sim_* helpers below; each takes
// the warp, values of all 32 lanes as arrays, and the span of the IR op as one word (sim_span).
// CTAs run one after another. A seed picks the interleaving and the moment at which copies
// complete, so runs repeat. The first violation ends the launch: a race on shared memory, an
// uninitialised or out-of-bounds or misaligned access, a misused barrier, a deadlock.
//
// Values of lanes: element `r` of lane `l` lies at index r * 32 + l. Bit l of a mask stands for
// lane l; lanes that are off touch nothing.
#ifndef FUSE_BACKEND_HOST_SIM_H
#define FUSE_BACKEND_HOST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/base/source.h"

enum { SIM_LANES = 32, SIM_WARPS_MAX = 32, SIM_BARRIERS = 16 };

typedef struct Sim Sim;
typedef struct SimWarp SimWarp;
typedef void SimEntry(void *const *args, int64_t program, int32_t warp, SimWarp *self);

typedef struct SimOptions {
    int warps;            // 1 .. SIM_WARPS_MAX
    int64_t shared_bytes; // of a CTA
    uint64_t seed;
    const SourceMap *sources; // for places in reports; may be NULL
} SimOptions;

// NULL when out of memory or the options make no sense.
Sim *sim_new(const SimOptions *options);
void sim_free(Sim *sim);
// Global memory that helpers may touch. Without any range, or after sim_unbounded, addresses are
// not checked.
void sim_allow(Sim *sim, const char *name, const void *base, size_t bytes);
void sim_unbounded(Sim *sim);
// Runs one CTA to its end; false when there is a report (then the Sim is good for nothing but
// sim_report).
bool sim_run(Sim *sim, SimEntry *entry, void *const *args, int64_t program);
// The violation, or NULL. Lives as long as the Sim.
const char *sim_report(const Sim *sim);

static inline uint64_t sim_span(Span span) {
    return (uint64_t)span.end << 32 | span.begin;
}

// Phases of accesses to shared memory, each of which takes a turn, and the turns that bank
// conflicts add.
typedef enum SimAccess { SIM_LOADS, SIM_STORES, SIM_MATRICES, SIM_COPIES, SIM_ACCESSES } SimAccess;
typedef struct SimBanks {
    int64_t phases, conflicts;
} SimBanks;
// Since sim_new. SIM_MATRICES are ldmatrix and stmatrix, SIM_COPIES the writes of cp.async.
SimBanks sim_banks(const Sim *sim, SimAccess kind);

// --- helpers of compiled code ------------------------------------------------------------------

// `width` consecutive elements a lane at base + off[lane]. dst keeps its contents where a lane is
// off.
void sim_load_global(SimWarp *w, const void *base, const int64_t *off, uint32_t mask, void *dst,
                     int32_t elem_bytes, int32_t width, uint64_t span);
void sim_store_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, const void *src,
                      int32_t elem_bytes, int32_t width, uint64_t span);
void sim_load_shared(SimWarp *w, const int32_t *off, uint32_t mask, void *dst, int32_t elem_bytes,
                     int32_t width, uint64_t span);
void sim_store_shared(SimWarp *w, const int32_t *off, uint32_t mask, const void *src,
                      int32_t elem_bytes, int32_t width, uint64_t span);
// kind is an AtomicKind, dtype a DType; old may be NULL.
void sim_atomic_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, int32_t kind,
                       int32_t dtype, const void *value, void *old, uint64_t span);
// Elements of `bytes`; expected_old: in what is expected, out what was there (0 where not in mask).
void sim_cas_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, int32_t bytes,
                    const void *value, void *expected_old, uint64_t span);

// 16-byte rows of 8x8 matrices of 16-bit elements: lane 8*i + r gives the offset of row r of matrix
// i. dst[i * 32 + lane].
void sim_ldmatrix(SimWarp *w, const int32_t *off, uint32_t *dst, int32_t n, int32_t trans,
                  uint64_t span);
void sim_stmatrix(SimWarp *w, const int32_t *off, const uint32_t *src, int32_t n, int32_t trans,
                  uint64_t span);

// unit is a MmaUnit of ir/layout.h, dtypes those of a and b. Registers as in PTX: a[r * 32 + lane]
// words (f64: doubles), c and d of f32, i32 or f64. f32 operands are rounded to tf32, nearest, ties
// away from zero. Products are exact, sums go by ascending k in the accumulator's type.
void sim_mma(SimWarp *w, int32_t unit, int32_t dtype_a, int32_t dtype_b, const void *a,
             const void *b, const void *c, void *d, uint64_t span);

// Each lane copies `bytes` (4, 8 or 16): src_bytes[lane] of them from base + goff, zeros for the
// rest.
void sim_cp_async(SimWarp *w, const int32_t *soff, const void *base, const int64_t *goff,
                  uint32_t mask, const int32_t *src_bytes, int32_t bytes, uint64_t span);
void sim_cp_commit(SimWarp *w, uint64_t span);
// Until at most `pending` of this warp's committed groups are in flight.
void sim_cp_wait(SimWarp *w, int32_t pending, uint64_t span);

// --- bulk copies, mbarriers, matrix unit of a warp group (sm_90) ---

// A barrier of 8 bytes at `at`; `arrivals` end a phase once all expected bytes have come.
void sim_mbar_init(SimWarp *w, int32_t at, int32_t arrivals, uint64_t span);
void sim_mbar_init_fence(SimWarp *w, uint64_t span);
void sim_mbar_expect(SimWarp *w, int32_t at, int32_t bytes, uint64_t span); // arrives once
void sim_mbar_arrive(SimWarp *w, int32_t at, uint32_t mask, uint64_t span); // one for each lane
// Until the phase of this parity is over.
void sim_mbar_wait(SimWarp *w, int32_t at, int32_t parity, uint64_t span);
// What the warp has written becomes visible to bulk copies and the matrix unit.
void sim_fence_async(SimWarp *w, uint64_t span);
// setmaxnreg: `more` waits until the program's 65536 registers suffice.
void sim_set_regs(SimWarp *w, int32_t regs, int32_t more, uint64_t span);

// map is an AbiHostMap; at[rank] the first element of the box, innermost first. Elements outside of
// the tensor are read as 0 and not written.
void sim_bulk_load(SimWarp *w, const void *map, const int32_t *at, int32_t to, int32_t bar,
                   uint64_t span);
void sim_bulk_store(SimWarp *w, const void *map, const int32_t *at, int32_t from, uint64_t span);
// `bytes` in a row, a multiple of 16.
void sim_bulk_line(SimWarp *w, const void *from, int32_t bytes, int32_t to, int32_t bar,
                   uint64_t span);
void sim_bulk_commit(SimWarp *w, uint64_t span);
// Until all but `pending` committed groups of stores have read their buffers (and, here, written).
void sim_bulk_wait(SimWarp *w, int32_t pending, uint64_t span);

enum { SIM_MMA_START = 1, SIM_MMA_REGS = 2, SIM_MMA_TRANS_A = 4, SIM_MMA_TRANS_B = 8 };
// wgmma.mma_async m64 n k with operands of `dtype`: descriptors as in PTX, or a's fragment in
// regs[4 * 32]. acc[n / 2 * 32]: the accumulator's registers become marks (NaNs as f32) that stand
// for them until sim_mma_take.
void sim_mma_issue(SimWarp *w, int32_t dtype, int32_t n, int32_t k, int32_t flags, uint64_t desc_a,
                   uint64_t desc_b, const void *regs, void *acc, uint64_t span);
void sim_mma_fence(SimWarp *w, uint64_t span);
void sim_mma_commit(SimWarp *w, uint64_t span);
void sim_mma_wait(SimWarp *w, int32_t pending, uint64_t span);
// After a wait: marks of finished groups among n registers become values. `all`: every mark must.
void sim_mma_take(SimWarp *w, int32_t pending, int32_t n, void *acc, int32_t all, uint64_t span);

// Barrier `id` among `warps` warps (0: all).
void sim_barrier(SimWarp *w, int32_t id, int32_t warps, uint64_t span);
// Ends the launch with the message; sim_check only when `bad` has a lane.
void sim_trap(SimWarp *w, const char *message, uint64_t span);
void sim_check(SimWarp *w, uint32_t bad, const char *message, uint64_t span);

#endif

// The simulator's run time: coroutines, barriers, the shadow of shared memory, late copies, matrix
// fragments.
#include <criterion/criterion.h>
#include <string.h>

#include "backend/host/coro.h"
#include "backend/host/sim.h"
#include "ir/ir.h"
#include "ir/target_desc.h"
#include "lang/base/numeric.h"

enum { ALL = -1 };

typedef struct Run {
    char report[2048]; // "" when there was none
} Run;

static Run run_seed(SimEntry *entry, void *const *args, int warps, int64_t bytes, uint64_t seed) {
    Run r = {0};
    Sim *sim = sim_new(&(SimOptions){.warps = warps, .shared_bytes = bytes, .seed = seed});
    cr_assert_not_null(sim);
    sim_unbounded(sim);
    if (!sim_run(sim, entry, args, 0))
        strncpy(r.report, sim_report(sim), sizeof r.report - 1);
    sim_free(sim);
    return r;
}

static void expect_report(SimEntry *entry, void *const *args, int warps, const char *part) {
    for (uint64_t seed = 0; seed < 8; seed++) {
        Run r = run_seed(entry, args, warps, 4096, seed);
        if (part)
            cr_expect(strstr(r.report, part), "seed %d: '%s' lacks '%s'", (int)seed, r.report,
                      part);
        else
            cr_expect_str_eq(r.report, "", "seed %d: %s", (int)seed, r.report);
    }
}

static void offsets(int32_t off[32], int32_t base, int32_t step) {
    for (int i = 0; i < 32; i++)
        off[i] = base + i * step;
}

// --- coroutines --------------------------------------------------------------------------------

typedef struct Count {
    Coro *coro;
    int n;
} Count;
static void count_up(void *arg) {
    Count *c = arg;
    for (int i = 0; i < 3; i++) {
        c->n++;
        coro_yield(c->coro);
    }
}

Test(host_sim, coroutine) {
    Count c = {.coro = coro_new(65536)};
    for (int round = 0; round < 2; round++) { // the second start abandons the first run
        coro_start(c.coro, count_up, &c);
        cr_assert(coro_resume(c.coro));
        cr_assert(coro_resume(c.coro));
        cr_assert_eq(c.n, 2 * round + 2);
    }
    cr_assert(coro_resume(c.coro));
    cr_assert_not(coro_resume(c.coro));
    cr_assert_not(coro_resume(c.coro));
    cr_assert_eq(c.n, 5);
    coro_free(c.coro);
}

// --- shared memory and barriers ----------------------------------------------------------------

// Each warp stores its number, all meet unless args[0] is set, each reads its neighbour's.
static void exchange(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    int32_t off[32], v[32];
    offsets(off, warp * 128, 4);
    for (int i = 0; i < 32; i++)
        v[i] = warp * 100 + i;
    sim_store_shared(w, off, (uint32_t)ALL, v, 4, 1, 1);
    if (!args[0])
        sim_barrier(w, 0, 0, 2);
    offsets(off, (warp + 1) % 4 * 128, 4);
    sim_load_shared(w, off, (uint32_t)ALL, v, 4, 1, 3);
    memcpy((int32_t *)args[1] + warp * 32, v, sizeof v);
}

Test(host_sim, exchange_is_clean) {
    int32_t out[128];
    expect_report(exchange, (void *[]){NULL, out}, 4, NULL);
    for (int i = 0; i < 128; i++)
        cr_assert_eq(out[i], (i / 32 + 1) % 4 * 100 + i % 32);
}

Test(host_sim, missing_barrier) {
    int32_t out[128];
    int yes = 1;
    int races = 0, empty = 0;
    for (uint64_t seed = 0; seed < 16; seed++) {
        Run r = run_seed(exchange, (void *[]){&yes, out}, 4, 4096, seed);
        // Read before written, or after without order: an error either way.
        races += strstr(r.report, "race") != NULL;
        empty += strstr(r.report, "uninitialised") != NULL;
    }
    cr_expect_eq(races + empty, 16);
    cr_expect_gt(empty, 0);
}

static void write_after_read(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    int32_t off[32], v[32] = {0};
    offsets(off, 0, 4);
    if (warp == 0)
        sim_store_shared(w, off, (uint32_t)ALL, v, 4, 1, 1);
    sim_barrier(w, 0, 0, 2);
    if (warp == 1)
        sim_load_shared(w, off, 1, v, 4, 1, 3);
    else
        sim_store_shared(w, off, 1, v, 4, 1, 4);
}
static void write_twice(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    (void)warp;
    int32_t off[32], v[32] = {0};
    offsets(off, 0, 4);
    sim_store_shared(w, off, (uint32_t)ALL, v, 4, 1, 1);
}
static void write_neighbours(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    int32_t off[32];
    uint8_t v[32] = {0};
    offsets(off, warp, 2); // bytes of one word from two warps: no race
    sim_store_shared(w, off, (uint32_t)ALL, v, 1, 1, 1);
}

Test(host_sim, races) {
    expect_report(write_after_read, NULL, 2, "race");
    expect_report(write_twice, NULL, 2, "race: warp");
    expect_report(write_twice, NULL, 1, NULL);
    expect_report(write_neighbours, NULL, 2, NULL);
}

static void read_empty(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    (void)warp;
    int32_t off[32], v[32] = {0};
    offsets(off, 0, 4);
    sim_store_shared(w, off, 0xffff, v, 4, 1, 1);
    sim_load_shared(w, off, args ? 0x1ffff : 0xffff, v, 4, 1, 77);
}
static void out_of_bounds(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    (void)warp;
    int32_t off[32], v[32] = {0};
    offsets(off, 4096 - 124, 4);
    sim_store_shared(w, off, (uint32_t)ALL, v, 4, 1, 1);
}
static void misaligned(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    (void)warp;
    int32_t off[32], v[64] = {0};
    offsets(off, 4, 8);
    sim_store_shared(w, off, 1, v, 4, 2, 1);
}

Test(host_sim, single_accesses) {
    expect_report(read_empty, NULL, 1, NULL);
    expect_report(read_empty, (void *[]){NULL}, 1, "!77: program 0: uninitialised");
    expect_report(out_of_bounds, NULL, 1, "out of bounds");
    expect_report(misaligned, NULL, 1, "misaligned");
}

// The shadow is empty again in the next CTA.
Test(host_sim, next_program_is_fresh) {
    Sim *sim = sim_new(&(SimOptions){.warps = 1, .shared_bytes = 4096});
    cr_assert(sim_run(sim, read_empty, NULL, 0));
    cr_assert_not(sim_run(sim, read_empty, (void *[]){NULL}, 1));
    cr_assert(strstr(sim_report(sim), "program 1: uninitialised"));
    sim_free(sim);
}

static void half_barrier(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    if (warp < 2)
        sim_barrier(w, 0, 0, 5);
}
static void named_pairs(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    for (int i = 0; i < 5; i++)
        sim_barrier(w, 1 + warp / 2, 2, 5);
    sim_barrier(w, 0, 0, 6);
}
static void two_uses(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    sim_barrier(w, 1, warp < 2 ? 4 : 3, 5);
}
static void two_places(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)args;
    (void)program;
    sim_barrier(w, 0, 0, warp == 3 ? 8 : 5);
}

Test(host_sim, barriers) {
    expect_report(named_pairs, NULL, 4, NULL);
    expect_report(half_barrier, NULL, 4, "deadlock; warp 0 waits at barrier 0 at !5");
    expect_report(half_barrier, NULL, 4, "warp 3 has ended");
    expect_report(two_uses, NULL, 4, "two ways");
    expect_report(two_places, NULL, 4, "two ways");
}

// Names of warps in the order in which they passed.
static void order_log(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    for (int i = 0; i < 4; i++) {
        char *log = args[0];
        log[strlen(log)] = (char)('0' + warp);
        sim_barrier(w, 0, 0, 1);
    }
}

Test(host_sim, seeds_repeat) {
    int different = 0;
    char first[64] = "";
    for (uint64_t seed = 0; seed < 6; seed++) {
        char a[64] = "", b[64] = "";
        run_seed(order_log, (void *[]){a}, 4, 0, seed);
        run_seed(order_log, (void *[]){b}, 4, 0, seed);
        cr_assert_eq(strlen(a), 16);
        cr_assert_str_eq(a, b);
        if (!seed)
            strcpy(first, a);
        different += strcmp(a, first) != 0;
    }
    cr_assert_gt(different, 0);
}

// --- global memory -----------------------------------------------------------------------------

static void global_copy(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    (void)warp;
    int64_t off[32];
    int32_t v[32] = {0};
    for (int i = 0; i < 32; i++)
        off[i] = i * 4;
    sim_load_global(w, args[0], off, (uint32_t)ALL, v, 4, 1, 1);
    sim_store_global(w, args[1], off, (uint32_t)ALL, v, 4, 1, 2);
}

Test(host_sim, global_bounds) {
    int32_t from[32], to[32] = {0};
    for (int i = 0; i < 32; i++)
        from[i] = i;
    for (int full = 0; full < 2; full++) {
        Sim *sim = sim_new(&(SimOptions){.warps = 1});
        sim_allow(sim, "x", from, sizeof from);
        sim_allow(sim, "y", to, full ? sizeof to : sizeof to - 1);
        bool ok = sim_run(sim, global_copy, (void *[]){from, to}, 0);
        cr_assert_eq(ok, full);
        if (!ok)
            cr_assert(strstr(sim_report(sim), "offset 124 of `y`"), "%s", sim_report(sim));
        sim_free(sim);
    }
    cr_assert_eq(to[31], 31);
}

static void atomics(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    (void)warp;
    int64_t off[32];
    int32_t v[32], old[32];
    uint16_t h[32];
    for (int i = 0; i < 32; i++) {
        off[i] = 0;
        v[i] = i;
        h[i] = f16_from_f64(0.5);
    }
    sim_atomic_global(w, args[0], off, (uint32_t)ALL, ATOMIC_ADD, DT_I32, v, old, 1);
    cr_assert_eq(old[31], 30 * 31 / 2);
    sim_atomic_global(w, args[1], off, 0xff, ATOMIC_ADD, DT_F16, h, NULL, 1);
    sim_atomic_global(w, args[2], off, (uint32_t)ALL, ATOMIC_MAX, DT_U32, v, NULL, 1);
}

Test(host_sim, atomic_values) {
    int32_t sum = 0;
    uint16_t half = 0;
    uint32_t most = 7;
    Run r = run_seed(atomics, (void *[]){&sum, &half, &most}, 1, 0, 0);
    cr_assert_str_eq(r.report, "");
    cr_assert_eq(sum, 31 * 16);
    cr_assert_eq(half, f16_from_f64(4.0));
    cr_assert_eq(most, 31);
}

// --- asynchronous copies -----------------------------------------------------------------------

// args: source, mode (0 right; 1 no wait; 2 waits for too few; 3 other warp without barrier; 4
// rewritten at once), out
static void pipeline(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    int mode = *(int *)args[1];
    int64_t goff[32];
    int32_t soff[32], valid[32], v[32] = {0};
    for (int stage = 0; stage < 2; stage++) {
        offsets(soff, (warp * 2 + stage) * 128, 4);
        for (int i = 0; i < 32; i++) {
            goff[i] = soff[i];
            valid[i] = i == 31 ? 0 : 4;
        }
        sim_cp_async(w, soff, args[0], goff, (uint32_t)ALL, valid, 4, 10 + (uint64_t)stage);
        sim_cp_commit(w, 12);
    }
    if (mode == 4)
        sim_store_shared(w, soff, 1, v, 4, 1, 13);
    if (mode != 1)
        sim_cp_wait(w, mode == 2 ? 1 : 0, 14);
    if (mode != 3)
        sim_barrier(w, 0, 0, 15);
    offsets(soff, ((warp + 1) % 2 * 2 + 1) * 128, 4);
    sim_load_shared(w, soff, (uint32_t)ALL, v, 4, 1, 16);
    memcpy((int32_t *)args[2] + warp * 32, v, sizeof v);
}

Test(host_sim, copies) {
    int32_t from[128], out[64];
    for (int i = 0; i < 128; i++)
        from[i] = i;
    int mode = 0;
    void *args[] = {from, &mode, out};
    expect_report(pipeline, args, 2, NULL);
    cr_assert_eq(out[0], 96);
    cr_assert_eq(out[30], 126);
    cr_assert_eq(out[31], 0);
    mode = 1;
    expect_report(pipeline, args, 2, "unfinished copy of warp");
    mode = 2;
    expect_report(pipeline, args, 2, "unfinished copy of warp");
    mode = 3;
    for (uint64_t seed = 0; seed < 8; seed++)
        cr_assert_neq(run_seed(pipeline, args, 2, 4096, seed).report[0], 0);
    mode = 4;
    expect_report(pipeline, args, 2, "unfinished copy of warp");
}

// --- matrices ----------------------------------------------------------------------------------

static void matrix_product(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    (void)warp;
    const float *x = args[0], *y = args[1]; // 16x16 and 16x8, row major
    uint32_t a[4 * 32], b[2 * 32];
    float c[4 * 32], d[4 * 32];
    for (int l = 0; l < 32; l++) {
        int g = l / 4, t = l % 4;
        for (int r = 0; r < 4; r++) {
            int row = g + r % 2 * 8, col = t * 2 + r / 2 * 8;
            a[r * 32 + l] = bf16_from_f64(x[row * 16 + col]) |
                            (uint32_t)bf16_from_f64(x[row * 16 + col + 1]) << 16;
            c[r * 32 + l] = 1;
        }
        for (int r = 0; r < 2; r++) {
            int k = t * 2 + r * 8;
            b[r * 32 + l] =
                bf16_from_f64(y[k * 8 + g]) | (uint32_t)bf16_from_f64(y[(k + 1) * 8 + g]) << 16;
        }
    }
    sim_mma(w, MMA_M16N8K16, DT_BF16, DT_BF16, a, b, c, d, 1);
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < 4; r++)
            ((float *)args[2])[(l / 4 + r / 2 * 8) * 8 + l % 4 * 2 + r % 2] = d[r * 32 + l];
}

Test(host_sim, mma_m16n8k16) {
    float x[256], y[128], z[128];
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < 128; i++)
        y[i] = (float)(i * 5 % 13 - 6) / 2;
    expect_report(matrix_product, (void *[]){x, y, z}, 1, NULL);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            float sum = 1;
            for (int k = 0; k < 16; k++)
                sum += x[m * 16 + k] * y[k * 8 + n];
            cr_assert_eq(z[m * 8 + n], sum, "%d %d", m, n);
        }
}

// Stores two 8x8 matrices, reads them back both ways.
static void matrix_move(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    (void)warp;
    int32_t off[32] = {0};
    uint32_t regs[64];
    for (int i = 0; i < 16; i++)
        off[i] = i * 16;
    for (int m = 0; m < 2; m++)
        for (int l = 0; l < 32; l++) {
            uint32_t e = (uint32_t)(m * 64 + l / 4 * 8 + l % 4 * 2);
            regs[m * 32 + l] = e | (e + 1) << 16;
        }
    sim_stmatrix(w, off, regs, 2, false, 1);
    sim_ldmatrix(w, off, args[0], 2, false, 2);
    sim_ldmatrix(w, off, args[1], 2, true, 3);
}

Test(host_sim, ldmatrix) {
    uint32_t plain[64], trans[64];
    expect_report(matrix_move, (void *[]){plain, trans}, 1, NULL);
    for (int m = 0; m < 2; m++)
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 2; i++) {
                uint32_t g = (uint32_t)l / 4, t = (uint32_t)l % 4 * 2 + (uint32_t)i;
                uint32_t base = (uint32_t)m * 64;
                cr_assert_eq(plain[m * 32 + l] >> (16 * i) & 0xffff, base + g * 8 + t);
                cr_assert_eq(trans[m * 32 + l] >> (16 * i) & 0xffff, base + t * 8 + g);
            }
}

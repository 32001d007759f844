// The simulator's sm_90 part: barriers with phases, bulk copies of boxes, the proxy fence, register
// budgets, the matrix unit of a warp group.
#include <criterion/criterion.h>
#include <string.h>

#include "backend/host/sim.h"
#include "ir/abi.h"
#include "lang/base/numeric.h"

enum { ALL = -1, SEEDS = 12, SHARED = 32768, BAR = 32000 };

typedef struct Run {
    char report[2048]; // "" when there was none
} Run;

static Run run_seed(SimEntry *entry, void *const *args, int warps, uint64_t seed) {
    Run r = {0};
    Sim *sim = sim_new(&(SimOptions){.warps = warps, .shared_bytes = SHARED, .seed = seed});
    cr_assert_not_null(sim);
    sim_unbounded(sim);
    if (!sim_run(sim, entry, args, 0))
        strncpy(r.report, sim_report(sim), sizeof r.report - 1);
    sim_free(sim);
    return r;
}

// The report of every seed has the part; NULL: there is none.
static void expect_report(SimEntry *entry, void *const *args, int warps, const char *part) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Run r = run_seed(entry, args, warps, seed);
        if (part)
            cr_expect(strstr(r.report, part), "seed %d: '%s' lacks '%s'", (int)seed, r.report,
                      part);
        else
            cr_expect_str_eq(r.report, "", "seed %d: %s", (int)seed, r.report);
    }
}

static void store_line(SimWarp *w, int32_t at, int32_t value, uint64_t span) {
    int32_t off[32], v[32];
    for (int i = 0; i < 32; i++) {
        off[i] = at + 4 * i;
        v[i] = value + i;
    }
    sim_store_shared(w, off, (uint32_t)ALL, v, 4, 1, span);
}

static int32_t load_line(SimWarp *w, int32_t at, uint64_t span) {
    int32_t off[32], v[32];
    for (int i = 0; i < 32; i++)
        off[i] = at + 4 * i;
    sim_load_shared(w, off, (uint32_t)ALL, v, 4, 1, span);
    return v[0];
}

static void make_barrier(SimWarp *w, int32_t warp, int32_t at, int32_t arrivals) {
    if (warp == 0) {
        sim_mbar_init(w, at, arrivals, 90);
        sim_mbar_init_fence(w, 90);
    }
    sim_barrier(w, 0, 0, 91);
}

// --- barriers ----------------------------------------------------------------------------------

// Warp 0 writes ROUNDS lines, the others read them, through one slot with a full and an empty
// barrier. *args[0]: what is wrong.
enum Wrong {
    WRONG_NOTHING,
    WRONG_NO_INIT,
    WRONG_NO_ARRIVE,
    WRONG_NO_EMPTY_WAIT,
    WRONG_PARITY,
    WRONG_TWICE,
    WRONG_BYTES,
    WRONG_OVER,
    WRONG_UNSEEN,
};
enum { ROUNDS = 5 };

static void produce(SimWarp *w, int wrong, int round) {
    int empty = BAR + 8;
    if (wrong != WRONG_NO_EMPTY_WAIT)
        sim_mbar_wait(w, empty, (round & 1) ^ 1, 10);
    store_line(w, 0, 100 * round, 11);
    if (wrong == WRONG_BYTES)
        sim_mbar_expect(w, BAR, 16, 12);
    else if (wrong != WRONG_NO_ARRIVE || round < 3)
        sim_mbar_arrive(w, BAR, 1, 12);
    if (wrong == WRONG_TWICE && round == 2)
        for (int i = 0; i < 2; i++)
            sim_mbar_arrive(w, empty, 0xffff, 13);
}

static void ring(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    int wrong = *(const int *)args[0];
    if (wrong != WRONG_NO_INIT && warp == 0) {
        sim_mbar_init(w, BAR, 1, 1);
        sim_mbar_init(w, BAR + 8, 2, 2);
    }
    if (wrong != WRONG_UNSEEN)
        sim_barrier(w, 0, 0, 3);
    if (wrong == WRONG_OVER && warp == 0)
        store_line(w, BAR - 64, 0, 4);
    for (int round = 0; round < ROUNDS; round++) {
        if (warp == 0) {
            produce(w, wrong, round);
            continue;
        }
        sim_mbar_wait(w, BAR, (round & 1) ^ (wrong == WRONG_PARITY), 20);
        *(int *)args[1] += load_line(w, 0, 21) != 100 * round;
        sim_mbar_arrive(w, BAR + 8, 1, 22);
    }
}

static void expect_ring(int wrong, const char *part) {
    int others = 0;
    expect_report(ring, (void *[]){&wrong, &others}, 3, part);
    cr_expect_eq(others, 0);
}

Test(host_sim_async, ring) {
    expect_ring(WRONG_NOTHING, NULL);
    expect_ring(WRONG_NO_INIT, "there is no mbarrier at byte");
    expect_ring(WRONG_NO_ARRIVE, "waits at mbarrier 32000 at !20 (phase 3 lacks 1 arrivals");
    expect_ring(WRONG_TWICE, "warp 0 arrives once more");
    expect_ring(WRONG_BYTES, "lacks 0 arrivals and 16 bytes");
    expect_ring(WRONG_OVER, "which belongs to an mbarrier");
}

// What is reported depends on who comes first.
static void expect_some(int wrong, const char *const *parts, int n) {
    int others = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Run r = run_seed(ring, (void *[]){&wrong, &others}, 3, seed);
        bool found = false;
        for (int i = 0; i < n; i++)
            found = found || strstr(r.report, parts[i]);
        cr_expect(found, "seed %d: '%s'", (int)seed, r.report);
    }
}

Test(host_sim_async, ring_without_order) {
    static const char *const parts[] = {"shared-memory race", "uninitialised", "phase overrun",
                                        "there is no mbarrier", "without a barrier after its init"};
    expect_some(WRONG_NO_EMPTY_WAIT, parts, 3);
    expect_some(WRONG_PARITY, parts, 3);
    expect_some(WRONG_UNSEEN, parts + 3, 2);
}

// --- bulk copies -------------------------------------------------------------------------------

enum { ROWS = 5, COLS = 40, PITCH = 48 }; // a tensor of 16-bit elements
static uint16_t tensor[ROWS * PITCH];

static AbiHostMap make_map(uint16_t *base, uint32_t box_cols, uint32_t box_rows, int swizzle) {
    return (AbiHostMap){.magic = ABI_HOST_MAP,
                        .rank = 2,
                        .bytes = 2,
                        .swizzle = (uint16_t)swizzle,
                        .base = base,
                        .dim = {COLS, ROWS},
                        .stride = {2, PITCH * 2},
                        .box = {box_cols, box_rows}};
}

typedef struct Box {
    AbiHostMap map;
    int32_t at[2], expect, to;
    uint16_t got[64 * 64];
} Box;

// One warp loads a box and reads its lines as they lie.
static void load_box(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    Box *b = args[0];
    make_barrier(w, warp, BAR, 1);
    if (warp == 0) {
        sim_mbar_expect(w, BAR, b->expect, 1);
        sim_bulk_load(w, &b->map, b->at, b->to, BAR, 2);
    }
    sim_mbar_wait(w, BAR, 0, 3);
    int32_t bytes = (int32_t)(b->map.box[0] * b->map.box[1] * 2);
    for (int32_t at = 0; warp == 1 && at < bytes; at += 2) {
        int32_t off[32] = {b->to + at};
        uint16_t v[32];
        sim_load_shared(w, off, 1, v, 2, 1, 4);
        b->got[at / 2] = v[0];
    }
}

static uint16_t element_at(int32_t row, int32_t col) {
    bool inside = row >= 0 && row < ROWS && col >= 0 && col < COLS;
    return inside ? tensor[row * PITCH + col] : 0;
}

static void fill_tensor(void) {
    for (int i = 0; i < ROWS * PITCH; i++)
        tensor[i] = (uint16_t)(i + 1);
}

// Where the manual says element (row, col) lies in lines of `swizzle` bytes: the 16-byte piece is
// XORed with bits of the row.
static int swizzled(int row, int col, int line, int swizzle) {
    int at = row * line + 2 * col, unit = at / 16;
    int key = swizzle == 128  ? row % 8
              : swizzle == 64 ? row / 2 % 4
              : swizzle == 32 ? row / 4 % 2
                              : 0;
    return (unit ^ key) * 16 + at % 16;
}

Test(host_sim_async, box) {
    fill_tensor();
    static const struct { int swizzle, cols; } forms[] = {{128, 64}, {64, 32}, {32, 16}, {0, 16}};
    static const int32_t starts[][2] = {{0, 0}, {16, 2}, {-8, -3}, {33, 4}, {100, 0}};
    for (int f = 0; f < 4; f++)
        for (int s = 0; s < 5; s++) {
            int cols = forms[f].cols, swizzle = forms[f].swizzle;
            Box b = {.map = make_map(tensor, (uint32_t)cols, 16, swizzle),
                     .at = {starts[s][0], starts[s][1]},
                     .expect = cols * 32,
                     .to = 4096};
            expect_report(load_box, (void *[]){&b}, 2, NULL);
            for (int row = 0; row < 16; row++)
                for (int col = 0; col < cols; col++)
                    cr_assert_eq(b.got[swizzled(row, col, cols * 2, swizzle) / 2],
                                 element_at(starts[s][1] + row, starts[s][0] + col),
                                 "swizzle %d, start %d: row %d, column %d", swizzle, s, row, col);
        }
}

Test(host_sim_async, box_refused) {
    fill_tensor();
    Box good = {.map = make_map(tensor, 64, 8, 128), .expect = 1024, .to = 2048}, b = good;
    b.expect = 1000;
    expect_report(load_box, (void *[]){&b}, 2, "tx mismatch");
    b = good;
    b.expect = 1040;
    expect_report(load_box, (void *[]){&b}, 2, "lacks 0 arrivals and 16 bytes");
    b = good;
    b.to = 2064;
    expect_report(load_box, (void *[]){&b}, 2, "misaligned bulk copy");
    b = good;
    b.to = SHARED - 512;
    expect_report(load_box, (void *[]){&b}, 2, "write out of bounds");
    b = good;
    b.to = BAR - 1024 + 128;
    b.map.swizzle = 0;
    expect_report(load_box, (void *[]){&b}, 2, "belongs to an mbarrier");
    b = good;
    b.map.magic = 0;
    expect_report(load_box, (void *[]){&b}, 2, "a tensor map that nothing has made");
    b = good;
    b.map.swizzle = 64;
    expect_report(load_box, (void *[]){&b}, 2, "lines of 128 bytes with a swizzle of 64");
    b = good;
    b.map.stride[1] = 90;
    expect_report(load_box, (void *[]){&b}, 2, "stride of 90 bytes");
}

// A copy without a wait is a race or reads what nothing wrote; one without the fence of the
// barrier's initialisation is reported too.
static void load_unordered(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    const Box *b = args[0];
    if (warp == 0)
        sim_mbar_init(w, BAR, 1, 1);
    if (warp == 0 && args[1])
        sim_mbar_init_fence(w, 1);
    sim_barrier(w, 0, 0, 2);
    if (warp == 0) {
        sim_mbar_expect(w, BAR, b->expect, 3);
        sim_bulk_load(w, &b->map, b->at, b->to, BAR, 4);
    }
    sim_barrier(w, 0, 0, 5);
    load_line(w, b->to, 6);
}

Test(host_sim_async, box_without_wait) {
    fill_tensor();
    Box b = {.map = make_map(tensor, 64, 8, 128), .expect = 1024, .to = 2048};
    expect_report(load_unordered, (void *[]){&b, &b}, 2, "an unfinished bulk copy, which signals");
    expect_report(load_unordered, (void *[]){&b, NULL}, 2, "fence.mbarrier_init");
}

static void load_row(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    make_barrier(w, warp, BAR, 1);
    if (warp == 0) {
        sim_mbar_expect(w, BAR, 128, 1);
        sim_bulk_line(w, args[0], 128, 256, BAR, 2);
    }
    sim_mbar_wait(w, BAR, 0, 3);
    *(int32_t *)args[1] = load_line(w, 256, 4);
}

Test(host_sim_async, line) {
    _Alignas(16) int32_t from[32] = {77}, got = 0;
    expect_report(load_row, (void *[]){from, &got}, 2, NULL);
    cr_assert_eq(got, 77);
}

// Threads write a box, an elected one stores it. args: the map, then what is left out.
enum {
    STORE_WELL,
    STORE_NO_FENCE,
    STORE_EARLY_FENCE,
    STORE_NO_BARRIER,
    STORE_NO_WAIT,
    STORE_REUSE
};

static void store_box(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    const AbiHostMap *map = args[0];
    int wrong = *(const int *)args[1];
    int32_t at[2] = {8, 2};
    if (wrong == STORE_EARLY_FENCE)
        sim_fence_async(w, 1);
    for (int i = 0; i < 4; i++)
        store_line(w, (warp * 4 + i) * 128, warp * 4 + i, 2);
    if (wrong != STORE_NO_FENCE && wrong != STORE_EARLY_FENCE)
        sim_fence_async(w, 3);
    if (wrong != STORE_NO_BARRIER)
        sim_barrier(w, 0, 0, 4);
    if (warp == 0) {
        sim_bulk_store(w, map, at, 0, 5);
        sim_bulk_commit(w, 6);
        if (wrong != STORE_NO_WAIT && wrong != STORE_REUSE)
            sim_bulk_wait(w, 0, 7);
    }
    if (wrong == STORE_REUSE) {
        sim_barrier(w, 0, 0, 8);
        store_line(w, 0, 0, 9);
    }
}

Test(host_sim_async, store) {
    uint16_t out[ROWS * PITCH];
    memset(out, 0xee, sizeof out);
    AbiHostMap map = make_map(out, 64, 8, 128);
    int wrong = STORE_WELL;
    expect_report(store_box, (void *[]){&map, &wrong}, 2, NULL);
    for (int row = 0; row < ROWS; row++)
        for (int col = 0; col < PITCH; col++) {
            bool inside = row >= 2 && col >= 8 && col < COLS;
            int at = swizzled(row - 2, col - 8, 128, 128);
            uint16_t want = 0xeeee;
            if (inside) // words: line + index
                want = at / 2 % 2 ? 0 : (uint16_t)(at / 128 + at % 128 / 4);
            cr_assert_eq(out[row * PITCH + col], want, "row %d, column %d", row, col);
        }
}

Test(host_sim_async, store_refused) {
    uint16_t out[ROWS * PITCH];
    AbiHostMap map = make_map(out, 64, 8, 128);
    static const struct {
        int wrong;
        const char *part;
    } cases[] = {{STORE_NO_FENCE, "missing proxy fence"},
                 {STORE_EARLY_FENCE, "missing proxy fence"},
                 {STORE_NO_WAIT, "ends before its bulk store has read"},
                 {STORE_REUSE, "that an unfinished bulk store of warp 0 reads"}};
    for (int i = 0; i < 4; i++) {
        int wrong = cases[i].wrong;
        int found = 0;
        for (uint64_t seed = 0; seed < 24; seed++) {
            Run r = run_seed(store_box, (void *[]){&map, &wrong}, 2, seed);
            found += strstr(r.report, cases[i].part) != NULL;
            // A store that happens to be done when the warp ends is no error that shows.
            cr_expect(wrong == STORE_NO_WAIT || *r.report, "case %d, seed %d", i, (int)seed);
        }
        cr_expect(found > 0, "case %d", i);
    }
    int wrong = STORE_NO_BARRIER;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Run r = run_seed(store_box, (void *[]){&map, &wrong}, 2, seed);
        cr_expect(strstr(r.report, "race") || strstr(r.report, "uninitialised"), "%s", r.report);
    }
}

// --- registers ---------------------------------------------------------------------------------

static void registers(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    const int *regs = args[0];
    if (warp < 4)
        sim_set_regs(w, regs[0], 0, 1);
    else
        sim_set_regs(w, regs[1], 1, 2);
}

Test(host_sim_async, registers) {
    int fit[2] = {40, 232}, many[2] = {64, 240}, odd[2] = {41, 232};
    expect_report(registers, (void *[]){fit}, 12, NULL);
    expect_report(registers, (void *[]){many}, 12, "waits at setmaxnreg 240");
    expect_report(registers, (void *[]){odd}, 12, "to 41 registers");
}

// --- matrix unit -------------------------------------------------------------------------------

// c[64][n] = 2 a b over `steps` instructions: operands of one box each, along k or along the rows.
typedef struct Product {
    DType dtype;
    int n, swizzle, steps;
    bool trans_a, trans_b, regs, no_fence, no_mma_fence, early;
    int chain; // groups; pending of the last wait
    int pending;
    double a[64][64], b[256][64], c[64][256];
} Product;

static int k_step(const Product *p) {
    return 256 / (int)dtype_bits(p->dtype);
}
// Byte of an element of an operand of `rows` rows: boxes of lines, one after another.
static int operand_at(const Product *p, bool trans, int rows, int row, int k, int all_k) {
    int bytes = (int)dtype_bits(p->dtype) / 8, per = p->swizzle / bytes;
    int line = trans ? k : row, along = trans ? row : k, lines = trans ? all_k : rows;
    int at = along / per * lines * p->swizzle;
    return at + swizzled(line, 0, p->swizzle, 0) +
           ((along % per * bytes / 16) ^ (p->swizzle == 128  ? line % 8
                                          : p->swizzle == 64 ? line / 2 % 4
                                                             : line / 4 % 2)) *
               16 +
           along % per * bytes % 16;
}

static void put_operand(SimWarp *w, const Product *p, int base, bool trans, int rows, int first,
                        int n, double (*x)[64]) {
    int all_k = p->steps * k_step(p), bytes = (int)dtype_bits(p->dtype) / 8;
    for (int row = first; row < first + n; row++)
        for (int k = 0; k < all_k; k++) {
            int32_t off[32] = {base + operand_at(p, trans, rows, row, k, all_k)};
            uint32_t v[32] = {
                (uint32_t)scalar_bits(scalar_cast(scalar_float(DT_F64, x[row][k]), p->dtype))};
            sim_store_shared(w, off, 1, v, bytes, 1, 1);
        }
}

static uint64_t descriptor(const Product *p, int base, bool trans, int rows, int step) {
    int bytes = (int)dtype_bits(p->dtype) / 8, per = p->swizzle / bytes;
    int all_k = p->steps * k_step(p);
    int leading = trans && rows > per ? all_k * p->swizzle : 0;
    int at = base;
    if (trans)
        at += step * k_step(p) * p->swizzle;
    else
        at += step * 32 / p->swizzle * rows * p->swizzle + step * 32 % p->swizzle;
    uint64_t mode = p->swizzle == 128 ? 1 : p->swizzle == 64 ? 2 : 3;
    return (uint64_t)at >> 4 | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(8 * p->swizzle >> 4) << 32 | mode << 62;
}

static void put_fragment(const Product *p, int warp, int step, uint32_t regs[128]) {
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 8; i++) {
            int row = warp * 16 + lane / 4 + 8 * (i / 2 % 2);
            int k = step * 16 + lane % 4 * 2 + i % 2 + 8 * (i / 4);
            uint32_t bits =
                (uint32_t)scalar_bits(scalar_cast(scalar_float(DT_F64, p->a[row][k]), p->dtype));
            uint32_t *word = &regs[i / 2 * 32 + lane];
            *word = i % 2 ? *word | bits << 16 : bits;
        }
}

static void issue_group(SimWarp *w, const Product *p, int warp, uint32_t *acc, bool start) {
    int flags = (p->trans_a ? SIM_MMA_TRANS_A : 0) | (p->trans_b ? SIM_MMA_TRANS_B : 0) |
                (p->regs ? SIM_MMA_REGS : 0);
    if (!p->no_mma_fence)
        sim_mma_fence(w, 5);
    for (int step = 0; step < p->steps; step++) {
        uint32_t regs[128];
        if (p->regs)
            put_fragment(p, warp, step, regs);
        sim_mma_issue(w, (int32_t)p->dtype, p->n, k_step(p),
                      flags | (start && step == 0 ? SIM_MMA_START : 0),
                      descriptor(p, 0, p->trans_a, 64, step),
                      descriptor(p, 8192, p->trans_b, p->n, step), regs, acc, 6);
    }
    sim_mma_commit(w, 7);
}

static void product(void *const *args, int64_t program, int32_t warp, SimWarp *w) {
    (void)program;
    Product *p = args[0];
    if (!p->regs)
        put_operand(w, p, 0, p->trans_a, 64, warp * 16, 16, p->a);
    put_operand(w, p, 8192, p->trans_b, p->n, warp * p->n / 4, p->n / 4, p->b);
    if (!p->no_fence)
        sim_fence_async(w, 2);
    sim_barrier(w, 0, 0, 3);
    uint32_t acc[128 * 32];
    memset(acc, 0x7f, sizeof acc);
    issue_group(w, p, warp, acc, true);
    if (p->early)
        store_line(w, 8192 + warp * 128, 0, 8);
    issue_group(w, p, warp, acc, false);
    sim_mma_wait(w, p->pending, 9);
    sim_mma_take(w, p->pending, p->n / 2, acc, 1, 10);
    for (int r = 0; r < p->n / 2; r++)
        for (int lane = 0; lane < 32; lane++) {
            int row = warp * 16 + lane / 4 + 8 * (r / 2 % 2),
                col = r / 4 * 8 + lane % 4 * 2 + r % 2;
            float f;
            memcpy(&f, &acc[r * 32 + lane], sizeof f);
            p->c[row][col] =
                dtype_is_integer(p->dtype) ? (double)(int32_t)acc[r * 32 + lane] : (double)f;
        }
}

// Small integers: every sum is exact.
static void fill_product(Product *p) {
    for (int k = 0; k < 64; k++) {
        for (int m = 0; m < 64; m++)
            p->a[m][k] = (m * 5 + k * 3) % 7 - 3;
        for (int n = 0; n < 256; n++)
            p->b[n][k] = (n * 3 + k) % 5 - 2;
    }
}

static void expect_product(Product *p, const char *what) {
    fill_product(p);
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(p->c, 0xff, sizeof p->c);
        Run r = run_seed(product, (void *[]){p}, 4, seed);
        cr_assert_str_eq(r.report, "", "%s: %s", what, r.report);
        for (int m = 0; m < 64; m++)
            for (int n = 0; n < p->n; n++) {
                double sum = 0;
                for (int k = 0; k < p->steps * k_step(p); k++)
                    sum += 2 * p->a[m][k] * p->b[n][k];
                cr_assert_eq(p->c[m][n], sum, "%s: row %d, column %d: %g, not %g", what, m, n,
                             p->c[m][n], sum);
            }
    }
}

Test(host_sim_async, products, .timeout = 120) {
    static const struct {
        const char *what;
        Product p;
    } cases[] = {
        {"bf16", {.dtype = DT_BF16, .n = 64, .swizzle = 128, .steps = 4}},
        {"f16, two boxes", {.dtype = DT_F16, .n = 24, .swizzle = 64, .steps = 4}},
        {"f16, lines of 32 bytes", {.dtype = DT_F16, .n = 32, .swizzle = 32, .steps = 2}},
        {"tf32", {.dtype = DT_F32, .n = 16, .swizzle = 128, .steps = 4}},
        {"e4m3", {.dtype = DT_E4M3, .n = 40, .swizzle = 64, .steps = 2}},
        {"e5m2", {.dtype = DT_E5M2, .n = 8, .swizzle = 32, .steps = 1}},
        {"i8", {.dtype = DT_I8, .n = 32, .swizzle = 64, .steps = 2}},
        {"b along n", {.dtype = DT_BF16, .n = 128, .swizzle = 128, .steps = 2, .trans_b = true}},
        {"a along m",
         {.dtype = DT_F16, .n = 64, .swizzle = 64, .steps = 2, .trans_a = true, .trans_b = true}},
        {"a in registers", {.dtype = DT_BF16, .n = 64, .swizzle = 128, .steps = 4, .regs = true}},
    };
    static Product p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p = cases[i].p;
        expect_product(&p, cases[i].what);
    }
}

// f32 operands lose their last 13 bits.
Test(host_sim_async, product_of_tf32_truncates) {
    static Product p = {.dtype = DT_F32, .n = 8, .swizzle = 32, .steps = 1};
    for (int m = 0; m < 64; m++)
        p.a[m][0] = 1 + 0x1p-10 + 0x1p-11;
    p.b[3][0] = 1;
    Run r = run_seed(product, (void *[]){&p}, 4, 1);
    cr_assert_str_eq(r.report, "");
    cr_assert_eq(p.c[17][3], 2 * (1 + 0x1p-10));
}

Test(host_sim_async, products_refused) {
    static const struct {
        const char *part;
        Product p;
    } cases[] = {
        {"missing proxy fence: a product of warp", {.no_fence = true}},
        {"protocol rule A4", {.no_mma_fence = true}},
        {"an unfinished product of warp", {.early = true}},
        {"the wait leaves 1 groups", {.pending = 1}},
    };
    static Product p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p = cases[i].p;
        p.dtype = DT_BF16;
        p.n = 16;
        p.swizzle = 32;
        p.steps = 1;
        fill_product(&p);
        expect_report(product, (void *[]){&p}, 4, cases[i].part);
    }
    p = (Product){.dtype = DT_BF16, .n = 16, .swizzle = 32, .steps = 1};
    fill_product(&p);
    expect_report(product, (void *[]){&p}, 2, "a part of a warp group");
}

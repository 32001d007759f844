// Loads, stores, shuffles, atomics and matrix operations of the host target, for cpu and sim,
// through its own functions.
#include <string.h>

#include "backend/host/sim.h"
#include "lang/base/numeric.h"
#include "tests/host_build.h"

typedef void CpuEntry(void *const *args, int64_t lo, int64_t hi, const char **message);

static char last_report[1024];

// Runs programs [0, grid); false when there was a report.
static bool run(const Built *b, const char *target, void *const *data, int n, int grid, int warps,
                int64_t smem) {
    void *args[BUILD_PARAMS_MAX];
    for (int i = 0; i < n; i++)
        args[i] = (void *)&data[i];
    const char *message = NULL;
    last_report[0] = 0;
    if (target_find(target)->family == TARGET_CPU) {
        ((CpuEntry *)(uintptr_t)b->entry)(args, 0, grid, &message);
        strncat(last_report, message ? message : "", sizeof last_report - 1);
        return !message;
    }
    Sim *sim = sim_new(&(SimOptions){.warps = warps, .shared_bytes = smem, .seed = 1});
    sim_unbounded(sim);
    bool ok = true;
    for (int p = 0; ok && p < grid; p++)
        ok = sim_run(sim, (SimEntry *)(uintptr_t)b->entry, args, p);
    if (!ok)
        strncat(last_report, sim_report(sim), sizeof last_report - 1);
    sim_free(sim);
    return ok;
}

static const char *const targets[] = {"cpu", "sim-sm_80"};
#define EACH_TARGET(name) for (int i_ = 0; i_ < 2 && ((name) = targets[i_]); i_++)

static Lane lanes_scaled(Target *t, int64_t step, int64_t first) {
    Lane x = lane_op2(t, OP_MUL, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, step));
    return lane_op2(t, OP_ADD, DT_I32, x, lane_int(t, DT_I32, first));
}

// --- global accesses of every shape ------------------------------------------------------------

typedef struct Shape {
    DType dtype;
    int width, step;     // bytes from lane to lane
    int mask;            // lanes below it are on; -1: no predicate
    bool fill, is_table; // is_table: offsets read from memory, so that nothing is known about them
} Shape;

static void copy_body(Build *b) {
    Target *t = &b->t;
    const Shape *s = b->user;
    int bytes = (int)dtype_bits(s->dtype) / 8;
    Access a = {.dtype = s->dtype, .width = s->width, .align = bytes};
    Lane off = lanes_scaled(t, s->step, 0), pred = {NULL}, x[8], fill[8];
    Access i32 = {.dtype = DT_I32, .width = 1, .align = 4};
    Lane always = {NULL};
    if (s->is_table)
        t->ops->load_global(t, &i32, (Ptr){.base = b->value[2], .offset = lanes_scaled(t, 4, 0)},
                            always, NULL, &off);
    if (s->mask >= 0)
        pred = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, s->mask));
    for (int i = 0; i < s->width; i++) {
        Lane seven = lane_int(t, DT_I32, 7 + i);
        t->ops->cast(t, DT_I32, s->dtype, 1, &seven, &fill[i]);
    }
    t->ops->load_global(t, &a, (Ptr){.base = b->value[0], .offset = off}, pred,
                        s->fill ? fill : NULL, x);
    // Out: as it lies in registers, then back through a predicated store of the same shape.
    for (int i = 0; i < s->width; i++) {
        Access one = {.dtype = s->dtype, .width = 1, .align = bytes};
        t->ops->store_global(t, &one,
                             (Ptr){.base = b->value[1],
                                   .offset = lanes_scaled(t, bytes, 0),
                                   .imm = (int64_t)i * t->desc->lanes * bytes},
                             always, &x[i]);
    }
    t->ops->store_global(t, &a, (Ptr){.base = b->value[3], .offset = off}, pred, x);
}

static void check_shape(const char *target, Shape s) {
    int lanes = target_find(target)->lanes, bytes = (int)dtype_bits(s.dtype) / 8;
    Built built = build_kernel(target, 2, 4, 0, copy_body, &s);
    uint8_t in[8192] __attribute__((aligned(64))) = {0};
    uint8_t out[8192] __attribute__((aligned(64))) = {0};
    uint8_t back[8192] __attribute__((aligned(64)));
    int32_t table[32];
    memset(back, 0xee, sizeof back);
    for (int i = 0; i < (int)sizeof in / bytes; i++)
        scalar_store(in, i, scalar_int(s.dtype, i % 100));
    for (int i = 0; i < 32; i++)
        table[i] = i * s.step;
    void *data[4] = {in, out, table, back};
    cr_assert(run(&built, target, data, 4, 1, 1, 0), "%s", last_report);
    built_free(&built);
    uint8_t expect[8192];
    memset(expect, 0xee, sizeof expect);
    for (int l = 0; l < lanes; l++)
        for (int i = 0; i < s.width; i++) {
            bool on = s.mask < 0 || l < s.mask;
            Scalar want = on ? scalar_load(s.dtype, in + l * s.step, i)
                             : scalar_int(s.dtype, s.fill ? 7 + i : 0);
            Scalar got = scalar_load(s.dtype, out, i * lanes + l);
            cr_assert_eq(scalar_bits(got), scalar_bits(want), "%s %s width %d step %d lane %d.%d",
                         target, dtype_name(s.dtype), s.width, s.step, l, i);
            if (on)
                scalar_store(expect + l * s.step, i, want);
        }
    cr_assert_eq(memcmp(expect, back, sizeof back), 0, "%s %s width %d step %d: stored", target,
                 dtype_name(s.dtype), s.width, s.step);
}

Test(host_memory, shapes, .timeout = 300) {
    static const DType types[] = {DT_F32, DT_BF16, DT_BOOL, DT_I64};
    const char *target;
    EACH_TARGET(target)
    for (int k = 0; k < 4; k++)
        for (int width = 1; width <= 4; width *= 4) {
            DType d = types[k];
            int bytes = (int)dtype_bits(d) / 8, each = bytes * width;
            int steps[] = {each, 0, 2 * each};
            for (int i = 0; i < 3; i++) {
                check_shape(target, (Shape){d, width, steps[i], -1, false, false});
                check_shape(target, (Shape){d, width, steps[i], 5, true, false});
                check_shape(target, (Shape){d, width, steps[i], 0, false, false});
                check_shape(target, (Shape){d, width, steps[i], 32, true, false});
            }
            check_shape(target, (Shape){d, width, 3 * each, 5, true, true});
        }
}

// Lanes next to each other move as one vector, whatever form the offset has.
static void affine_body(Build *b) {
    Target *t = &b->t;
    Access a = {.dtype = DT_F32, .width = 1, .align = 4};
    Lane x, always = {NULL};
    Lane id = t->ops->lane_id(t), program = t->ops->splat(t, b->program), wide;
    // (program * lanes + lane) << 2, a sum in i32 that is widened, and base - ... + lane
    t->ops->cast(t, DT_I32, DT_I64, 1, &id, &wide);
    Lane i = lane_op2(t, OP_MUL, DT_I64, program, lane_int(t, DT_I64, t->desc->lanes));
    i = lane_op2(t, OP_ADD, DT_I64, i, wide);
    Lane bytes = lane_op2(t, OP_SHL, DT_I64, i, lane_int(t, DT_I64, 2));
    t->ops->load_global(t, &a, (Ptr){.base = b->value[0], .offset = bytes}, always, NULL, &x);
    Uni small = uni_resize(t, b->program, 32, true);
    Lane sum = lane_op2(t, OP_ADD, DT_I32, t->ops->splat(t, small), lanes_scaled(t, 4, 8));
    t->ops->cast(t, DT_I32, DT_I64, 1, &sum, &wide);
    t->ops->store_global(t, &a, (Ptr){.base = b->value[0], .offset = wide}, always, &x);
    Lane less = lane_op2(t, OP_SUB, DT_I32, lanes_scaled(t, 4, 0), t->ops->splat(t, small));
    Lane pred = lane_cmp(t, CMP_LT, DT_I32, sum, lane_int(t, DT_I32, 100));
    t->ops->store_global(t, &a, (Ptr){.base = b->value[0], .offset = less, .imm = 64}, pred, &x);
}

Test(host_memory, affine_offsets_are_vectors) {
    Arena *arena = arena_new("test");
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    BackendOutput text =
        build_output(arena, diags, BACKEND_LLVM, "cpu", 0, 1, 0, affine_body, NULL);
    cr_expect(strstr(text.data, "load <8 x float>"), "%s", text.data);
    cr_expect(strstr(text.data, "store <8 x float>"), "%s", text.data);
    cr_expect(strstr(text.data, "call void @llvm.masked.store"), "%s", text.data);
    cr_expect_not(strstr(text.data, "gather"));
    cr_expect_not(strstr(text.data, "scatter"));
    arena_free(arena);
}

// Lanes that are off may point anywhere.
static void wild_body(Build *b) {
    Target *t = &b->t;
    Access a = {.dtype = DT_F32, .width = 1, .align = 4};
    Lane pred = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 3)), x;
    for (int step = 4; step <= 1 << 20; step <<= 9) {
        Ptr p = {.base = b->value[0], .offset = lanes_scaled(t, step, 0)};
        if (step > 4) // lane 0 only
            pred = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 1));
        t->ops->load_global(t, &a, p, pred, NULL, &x);
        t->ops->store_global(t, &a, p, pred, &x);
    }
    pred = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 0));
    Ptr null = {.base = {LLVMConstNull(LLVMTypeOf(b->value[0].v))}};
    t->ops->load_global(t, &a, null, pred, NULL, &x);
    // A predicate that is one scalar, false here: element 1 becomes the 0 that is read.
    Lane program = t->ops->splat(t, b->program);
    pred = lane_cmp(t, CMP_LT, DT_I64, program, lane_int(t, DT_I64, 0));
    t->ops->load_global(t, &a, null, pred, NULL, &x);
    pred = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 1));
    Ptr one = {.base = b->value[0], .offset = lanes_scaled(t, 4, 4)};
    t->ops->store_global(t, &a, one, pred, &x);
}

Test(host_memory, masked_lanes_touch_nothing) {
    const char *target;
    EACH_TARGET(target) {
        float *data = malloc(3 * sizeof *data);
        for (int i = 0; i < 3; i++)
            data[i] = (float)i;
        Built built = build_kernel(target, 2, 1, 0, wild_body, NULL);
        cr_assert(run(&built, target, (void *[]){data}, 1, 1, 1, 0), "%s", last_report);
        cr_assert_eq(data[1], 0);
        cr_assert_eq(data[2], 2);
        built_free(&built);
        free(data);
    }
}

// --- shuffles ----------------------------------------------------------------------------------

static void shuffle_body(Build *b) {
    Target *t = &b->t;
    DType dtype = *(DType *)b->user;
    Access i32 = {.dtype = DT_I32, .width = 1, .align = 4}, a = i32;
    a.dtype = dtype;
    a.align = (int)dtype_bits(dtype) / 8;
    Lane always = {NULL}, id = t->ops->lane_id(t), x, source, y[3];
    t->ops->load_global(t, &i32, (Ptr){.base = b->value[0], .offset = lanes_scaled(t, 4, 0)},
                        always, NULL, &source);
    t->ops->cast(t, DT_I32, dtype, 1, &id, &x);
    y[0] = t->ops->shuffle_xor(t, dtype, x, 3);
    y[1] = t->ops->shuffle_idx(t, dtype, x, source);
    y[2] =
        t->ops->shuffle_idx(t, dtype, x, lane_op2(t, OP_SUB, DT_I32, lane_int(t, DT_I32, 7), id));
    for (int i = 0; i < 3; i++)
        t->ops->store_global(t, &a,
                             (Ptr){.base = b->value[1],
                                   .offset = lanes_scaled(t, a.align, 0),
                                   .imm = (int64_t)i * t->desc->lanes * a.align},
                             always, &y[i]);
}

Test(host_memory, shuffles) {
    static const DType types[] = {DT_F32, DT_BF16, DT_BOOL, DT_I64};
    const char *target;
    EACH_TARGET(target)
    for (int k = 0; k < 4; k++) {
        int lanes = target_find(target)->lanes;
        Built built = build_kernel(target, 0, 2, 0, shuffle_body, (void *)&types[k]);
        int32_t source[32];
        uint64_t out[96] = {0};
        for (int i = 0; i < 32; i++)
            source[i] = i * 5 % lanes;
        cr_assert(run(&built, target, (void *[]){source, out}, 2, 1, 1, 0), "%s", last_report);
        built_free(&built);
        for (int l = 0; l < lanes; l++) {
            int from[3] = {l ^ 3, source[l], (7 - l) & (lanes - 1)};
            for (int i = 0; i < 3; i++)
                cr_assert_eq(scalar_bits(scalar_load(types[k], out, i * lanes + l)),
                             scalar_bits(scalar_int(types[k], from[i])), "%s %s %d lane %d", target,
                             dtype_name(types[k]), i, l);
        }
    }
}

// --- atomics -----------------------------------------------------------------------------------

typedef struct AtomicCase {
    DType dtype;
    AtomicKind kind;
} AtomicCase;

static void atomic_body(Build *b) {
    Target *t = &b->t;
    const AtomicCase *c = b->user;
    int bytes = (int)dtype_bits(c->dtype) / 8;
    Access a = {.dtype = c->dtype, .width = 1, .align = bytes};
    Lane id = t->ops->lane_id(t), x, old, always = {NULL};
    Lane pred = lane_cmp(t, CMP_LT, DT_I32, id, lane_int(t, DT_I32, 6));
    t->ops->cast(t, DT_I32, c->dtype, 1, &id, &x);
    t->ops->atomic(t, &a, c->kind, (Ptr){.base = b->value[0]}, pred, x, &old);
    t->ops->store_global(t, &a, (Ptr){.base = b->value[1], .offset = lanes_scaled(t, bytes, 0)},
                         always, &old);
}

Test(host_memory, atomics) {
    static const DType types[] = {DT_I32,  DT_U64, DT_F32, DT_F64,  DT_F16,
                                  DT_BF16, DT_I8,  DT_U16, DT_E4M3, DT_E5M2};
    enum { TYPES = sizeof types / sizeof *types };
    static const struct {
        AtomicKind kind;
        int start, result;
    } cases[] = {{ATOMIC_ADD, 3, 18}, {ATOMIC_MAX, 2, 5}, {ATOMIC_MIN, 9, 0}, {ATOMIC_XCHG, 1, 5}};
    const char *target;
    EACH_TARGET(target)
    for (int k = 0; k < TYPES; k++)
        for (int c = 0; c < 4; c++) {
            AtomicCase ac = {types[k], cases[c].kind};
            if (ac.dtype == DT_E5M2 && ac.kind == ATOMIC_ADD)
                continue; // sums of some lanes would be rounded
            Built built = build_kernel(target, 2, 2, 0, atomic_body, &ac);
            uint64_t cell = 0, old[32];
            scalar_store(&cell, 0, scalar_int(ac.dtype, cases[c].start));
            cr_assert(run(&built, target, (void *[]){&cell, old}, 2, 1, 1, 0), "%s", last_report);
            built_free(&built);
            cr_assert_eq(scalar_bits(scalar_load(ac.dtype, &cell, 0)),
                         scalar_bits(scalar_int(ac.dtype, cases[c].result)), "%s %s %d", target,
                         dtype_name(ac.dtype), c);
            cr_assert_eq(scalar_bits(scalar_load(ac.dtype, old, 0)),
                         scalar_bits(scalar_int(ac.dtype, cases[c].start)));
        }
}

// --- shared memory, copies, matrices -----------------------------------------------------------

// Through shared memory and back, reversed; the copy is asynchronous on sim.
static void shared_body(Build *b) {
    Target *t = &b->t;
    Access a = {.dtype = DT_F32, .width = 1, .align = 4};
    Lane x, always = {NULL};
    Lane even = lane_op2(t, OP_AND, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 1));
    even = lane_cmp(t, CMP_EQ, DT_I32, even, lane_int(t, DT_I32, 0));
    int bytes = 4 * t->desc->lanes;
    Ptr from = {.base = b->value[0], .offset = lanes_scaled(t, 4, 0)};
    t->ops->load_global(t, &a, from, always, NULL, &x);
    t->ops->store_shared(t, &a, (Shared){.offset = lanes_scaled(t, 4, 0)}, always, &x);
    t->ops->cp_async(t, &a, (Shared){.offset = lanes_scaled(t, 4, 0), .imm = bytes}, from, even,
                     always);
    t->ops->cp_commit(t);
    t->ops->cp_wait(t, 0);
    t->ops->block_barrier(t);
    for (int i = 0; i < 2; i++) {
        Shared back = {.base = uni_int(t, 32, i * bytes), .offset = lanes_scaled(t, -4, bytes - 4)};
        t->ops->load_shared(t, &a, back, always, &x);
        t->ops->store_global(
            t, &a,
            (Ptr){.base = b->value[1], .offset = lanes_scaled(t, 4, 0), .imm = (int64_t)i * bytes},
            always, &x);
    }
}

Test(host_memory, shared) {
    const char *target;
    EACH_TARGET(target) {
        int lanes = target_find(target)->lanes;
        Built built = build_kernel(target, 2, 2, 4096, shared_body, NULL);
        float in[32], out[64] = {0};
        for (int i = 0; i < 32; i++)
            in[i] = (float)i + 1;
        cr_assert(run(&built, target, (void *[]){in, out}, 2, 1, 1, 4096), "%s", last_report);
        built_free(&built);
        for (int l = 0; l < lanes; l++) {
            int from = lanes - 1 - l;
            cr_assert_eq(out[l], in[from]);
            cr_assert_eq(out[lanes + l], from % 2 ? 0 : in[from]);
        }
    }
}

// Two warps write one place: the report names the span.
static void race_body(Build *b) {
    Target *t = &b->t;
    Access a = {.dtype = DT_F32, .width = 1, .align = 4};
    Lane x = lane_int(t, DT_I32, 1), always = {NULL};
    x = t->ops->bitcast(t, DT_I32, DT_F32, x);
    ((Op *)t->op)->span = (Span){55, 60};
    t->ops->store_shared(t, &a, (Shared){.offset = lanes_scaled(t, 4, 0)}, always, &x);
    (void)b;
}

Test(host_memory, race_is_reported) {
    Built built = build_kernel("sim-sm_80", 0, 0, 4096, race_body, NULL);
    cr_assert(run(&built, "sim-sm_80", NULL, 0, 1, 1, 4096), "%s", last_report);
    cr_assert_not(run(&built, "sim-sm_80", NULL, 0, 1, 2, 4096));
    cr_assert(strstr(last_report, "!55: program 0: shared-memory race"), "%s", last_report);
    built_free(&built);
}

static void check_body(Build *b) {
    Target *t = &b->t;
    Lane ok = lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, 4));
    Lane guard =
        lane_cmp(t, CMP_LT, DT_I32, t->ops->lane_id(t), lane_int(t, DT_I32, *(int *)b->user));
    t->ops->check(t, ok, guard, "too many");
}

Test(host_memory, check_reports) {
    const char *target;
    EACH_TARGET(target)
    for (int n = 4; n <= 5; n++) {
        Built built = build_kernel(target, 2, 0, 0, check_body, &n);
        cr_assert_eq(run(&built, target, NULL, 0, 2, 1, 0), n == 4);
        cr_assert((strstr(last_report, "too many") != NULL) == (n == 5), "%s", last_report);
        built_free(&built);
    }
}

// ldmatrix of A (16x16) and B (transposed, 16x8) and one mma.
static void mma_body(Build *b) {
    Target *t = &b->t;
    Access row = {.dtype = DT_BF16, .width = 8, .align = 16};
    Access f32 = {.dtype = DT_F32, .width = 1, .align = 4};
    Access bf = {.dtype = DT_BF16, .width = 1, .align = 2};
    (void)bf;
    Lane always = {NULL}, id = t->ops->lane_id(t), x[8], a[8], y[4], c[4], d[4];
    // A: 32 lanes store 8 elements each: row lane / 2, half lane % 2, as 8x8 matrices of 128 bytes.
    Lane half = lane_op2(t, OP_AND, DT_I32, id, lane_int(t, DT_I32, 1));
    Lane r = lane_op2(t, OP_SHR, DT_I32, id, lane_int(t, DT_I32, 1));
    Lane to = lane_op2(t, OP_ADD, DT_I32, lane_op2(t, OP_MUL, DT_I32, r, lane_int(t, DT_I32, 16)),
                       lane_op2(t, OP_MUL, DT_I32, half, lane_int(t, DT_I32, 256)));
    t->ops->load_global(t, &row, (Ptr){.base = b->value[0], .offset = lanes_scaled(t, 16, 0)},
                        always, NULL, x);
    t->ops->store_shared(t, &row, (Shared){.offset = to}, always, x);
    Lane low = lane_cmp(t, CMP_LT, DT_I32, id, lane_int(t, DT_I32, 16));
    t->ops->load_global(t, &row, (Ptr){.base = b->value[1], .offset = lanes_scaled(t, 16, 0)}, low,
                        NULL, x);
    t->ops->store_shared(t, &row, (Shared){.offset = lanes_scaled(t, 16, 512)}, low, x);
    t->ops->block_barrier(t);
    t->ops->ldmatrix(t, &row, 4, false, (Shared){.offset = lanes_scaled(t, 16, 0)}, a);
    t->ops->ldmatrix(t, &row, 2, true, (Shared){.offset = lanes_scaled(t, 16, 512)}, y);
    for (int i = 0; i < 4; i++)
        c[i] = t->ops->bitcast(t, DT_I32, DT_F32, lane_int(t, DT_I32, 0));
    t->ops->mma(t, MMA_M16N8K16, DT_BF16, DT_BF16, a, y, c, d);
    for (int i = 0; i < 4; i++)
        t->ops->store_global(
            t, &f32, (Ptr){.base = b->value[2], .offset = lanes_scaled(t, 4, 0), .imm = i * 128},
            always, &d[i]);
}

Test(host_memory, mma) {
    Built built = build_kernel("sim-sm_80", 0, 3, 1024, mma_body, NULL);
    uint16_t a[256] __attribute__((aligned(16))), y[128] __attribute__((aligned(16)));
    float d[128];
    for (int i = 0; i < 256; i++)
        a[i] = bf16_from_f64(i % 7 - 3);
    for (int i = 0; i < 128; i++)
        y[i] = bf16_from_f64(i % 5 - 2);
    cr_assert(run(&built, "sim-sm_80", (void *[]){a, y, d}, 3, 1, 1, 1024), "%s", last_report);
    built_free(&built);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            int m = l / 4 + i / 2 * 8, n = l % 4 * 2 + i % 2;
            float sum = 0;
            for (int k = 0; k < 16; k++)
                sum += f32_from_bf16(a[m * 16 + k]) * f32_from_bf16(y[k * 8 + n]);
            cr_assert_eq(d[i * 32 + l], sum, "%d %d: %g %g", m, n, d[i * 32 + l], sum);
        }
}

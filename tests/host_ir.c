// Placed IR, written by hand, on cpu and sim: axpy, row softmax, matrix products, and programs that
// are wrong.
#include <math.h>
#include <string.h>

#include "backend/host/host.h"
#include "lang/base/numeric.h"
#include "tests/host_build.h"
#include "tests/ir_examples.h"

typedef struct Loaded {
    Arena *arena;
    Diags *diags;
    SourceMap *sources;
    HostModule *host; // NULL: see diags
} Loaded;

static Loaded load_level(const char *text, const char *target, int opt_level) {
    Loaded l = {.arena = arena_new("host_ir")};
    Interner *names = interner_new(l.arena);
    l.sources = source_map_new(l.arena);
    source_add(l.sources, "k.fk", text, strlen(text));
    l.diags = diags_new(l.arena, l.sources, NULL);
    const char *error = NULL;
    Module *m = ir_parse(l.arena, names, text, strlen(text), &error);
    cr_assert_not_null(m, "%s", error);
    cr_assert(ir_verify(l.arena, m, &error), "%s", error);
    BackendOptions options = {.opt_level = opt_level, .debug = true, .sources = l.sources};
    l.host = host_jit(l.arena, m, target_find(target), &options, l.diags);
    return l;
}

static Loaded load(const char *text, const char *target) {
    Loaded l = load_level(text, target, 2);
    cr_assert_not_null(l.host, "%s", diags_text(l.diags, l.arena));
    return l;
}

static void unload(Loaded *l) {
    host_module_free(l->host);
    arena_free(l->arena);
}

static uint64_t random_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}
static float random_float(uint64_t *state) {
    return (float)random_next(state) / (float)(1u << 30) - 1;
}

// --- axpy --------------------------------------------------------------------------------------

#define AXPY(TARGET, SIZE, LAYOUT, ATTRS)                                                          \
    "tir placed " TARGET "\nlayout #v = " LAYOUT "\n"                                              \
    "kernel axpy(dim N, in @x: f32[%N] {inner = 0}, inout @y: f32[%N] {inner = 0}, %a: f32) {\n"   \
    "  axis n of N by " SIZE "; %g = cdiv %N, " SIZE " : index\n"                                  \
    "  launch %pid in 0..%g args(%N, %a; @x, @y) {entry = \"axpy_0\"" ATTRS "} {\n"                \
    "    %n0 = mul %pid, " SIZE " : index\n"                                                       \
    "    with n in %n0..%N {\n"                                                                    \
    "      %xv = load @x[n] {check = [0]} : f32[n]#v; %yv = load @y[n] {check = [0]} : f32[n]#v\n" \
    "      %r = fma %xv, %a, %yv : f32[n]#v; store @y[n], %r {det = [n], check = [0]}\n"           \
    "    }\n  }\n}\n"

static const char axpy_sim[] =
    AXPY("sim-sm_80", "256", "reg(n:1, n:2) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128)",
         ", warps = 2");
static const char axpy_cpu[] =
    AXPY("cpu", "64", "reg(n:8, n:16, n:32) lane(n:1, n:2, n:4)", ", warps = 1");

static void check_axpy(const char *text, const char *target, int64_t size, int threads) {
    Loaded l = load(text, target);
    static const int64_t lengths[] = {0, 1, 7, 64, 255, 256, 257, 1000};
    for (int k = 0; k < 8; k++) {
        int64_t n = lengths[k];
        float *x = aligned_alloc(64, 4096), *y = aligned_alloc(64, 4096), a = 2.5f;
        for (int i = 0; i < 1024; i++) {
            x[i] = (float)i;
            y[i] = 1;
        }
        void *args[] = {&x, &y, &n, &a};
        const char *message =
            host_launch(l.host, "axpy_0", args, (n + size - 1) / size, 0, 0, threads, 1);
        cr_assert_null(message, "%s", message);
        for (int i = 0; i < 1024; i++)
            cr_assert_eq(y[i], i < n ? a * (float)i + 1 : 1, "%s n %d i %d", target, (int)n, i);
        free(x);
        free(y);
    }
    cr_assert(strstr(host_launch(l.host, "nothing", NULL, 1, 0, 0, 1, 0), "nothing"));
    unload(&l);
}

Test(host_ir, axpy_sim) {
    check_axpy(axpy_sim, "sim-sm_80", 256, 1);
}
Test(host_ir, axpy_cpu) {
    check_axpy(axpy_cpu, "cpu", 64, 1);
    check_axpy(axpy_cpu, "cpu", 64, 3);
}

// A load without its check reads beyond the tensor: sim says where.
Test(host_ir, missing_check_is_reported) {
    char text[sizeof axpy_sim];
    strcpy(text, axpy_sim);
    char *check = strstr(text, "{check = [0]} : f32[n]#v; %yv");
    memset(check, ' ', strlen("{check = [0]}"));
    Loaded l = load(text, "sim-sm_80");
    int64_t n = 200;
    float *x = aligned_alloc(64, 1024), *y = aligned_alloc(64, 1024), a = 1;
    memset(x, 0, 1024);
    memset(y, 0, 1024);
    const char *message = host_launch(l.host, "axpy_0", (void *[]){&x, &y, &n, &a}, 1, 0, 0, 1, 1);
    cr_assert(message && strstr(message, "read out of bounds") && strstr(message, "`x`"), "%s",
              message ? message : "no report");
    free(x);
    free(y);
    unload(&l);
}

// An object for other machines: made without this one's features, linked here.
Test(host_ir, object_file) {
    Arena *arena = arena_new("host_ir");
    Interner *names = interner_new(arena);
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    const char *error = NULL;
    Module *m = ir_parse(arena, names, axpy_cpu, strlen(axpy_cpu), &error);
    cr_assert_not_null(m, "%s", error);
    BackendOptions options = {.emit = BACKEND_OBJECT, .opt_level = 2};
    BackendOutput object;
    cr_assert(backend_emit(arena, m, target_find("cpu"), &options, &object, diags), "%s",
              diags_text(diags, arena));
    HostCode *code = host_code_load(arena, object.data, object.len, diags);
    cr_assert_not_null(code);
    void (*entry)(void *const *, int64_t, int64_t, const char **) =
        (void (*)(void *const *, int64_t, int64_t, const char **))(uintptr_t)host_code_find(
            code, "axpy_0", &error);
    cr_assert_not_null(entry, "%s", error);
    float data[2][64] = {{0}}, *x = data[0], *y = data[1], a = 3;
    x[40] = 5;
    y[40] = 1;
    int64_t n = 50;
    const char *message = NULL;
    entry((void *[]){&x, &y, &n, &a}, 0, 1, &message);
    cr_assert_eq(y[40], 16);
    host_code_free(code);
    arena_free(arena);
}

// --- softmax -----------------------------------------------------------------------------------

#define SOFTMAX(TARGET, V, ROW, ATTRS)                                                             \
    "tir placed " TARGET "\nlayout #v = " V "\nlayout #row = " ROW "\n"                            \
    "kernel softmax(dim M, dim N, in @x: bf16[%M, %N] {inner = 1}, out @y: f32[%M, %N] {inner = "  \
    "1}) {\n"                                                                                      \
    "  axis m of M by 4; axis n of N by 256; %g = cdiv %M, 4 : index\n"                            \
    "  launch %pid in 0..%g args(%M, %N; @x, @y) {entry = \"softmax_0\"" ATTRS "} {\n"             \
    "    %m0 = mul %pid, 4 : index\n"                                                              \
    "    with m in %m0..%M, n in 0..%N {\n"                                                        \
    "      %xb = load @x[m, n] {check = [0, 1]} : bf16[m, n]#v; %xv = cast %xb : f32[m, n]#v\n"    \
    "      %in = inside n : bool[n]#w; %xs = select %in, %xv, -inf:f32 : f32[m, n]#v\n"            \
    "      %mx = reduce.max[n] %xs : f32[m]#row; %d = sub %xs, %mx : f32[m, n]#v\n"                \
    "      %e = exp %d : f32[m, n]#v; %s = reduce.sum[n] %e : f32[m]#row\n"                        \
    "      %r = div %e, %s : f32[m, n]#v; store @y[m, n], %r {det = [m, n], check = [0, 1]}\n"     \
    "    }\n  }\n}\n"

static const char softmax_sim[] =
    SOFTMAX("sim-sm_80",
            "reg(n:1, n:2, m:1, m:2) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128)\n"
            "layout #w = reg(n:1, n:2) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128)",
            "reg(m:1, m:2) lane(0, 0, 0, 0, 0) warp(0)", ", warps = 2, smem = 1024");
static const char softmax_cpu[] =
    SOFTMAX("cpu",
            "reg(n:8, n:16, n:32, n:64, n:128, m:1, m:2) lane(n:1, n:2, n:4)\n"
            "layout #w = reg(n:8, n:16, n:32, n:64, n:128) lane(n:1, n:2, n:4)",
            "reg(m:1, m:2) lane(0, 0, 0)", ", warps = 1");

static void check_softmax(const char *text, const char *target, int64_t m, int64_t n) {
    Loaded l = load(text, target);
    uint16_t *x = aligned_alloc(64, 16384);
    float *y = aligned_alloc(64, 32768);
    uint64_t seed = 5;
    int64_t sx = n + n % 2, sy = n + n % 2; // rows of a stride of their own
    for (int i = 0; i < 8192; i++) {
        x[i] = bf16_from_f64(4 * random_float(&seed));
        y[i] = -1;
    }
    void *args[] = {&x, &sx, &y, &sy, &m, &n};
    for (uint64_t s = 0; s < 3; s++) {
        const char *message = host_launch(l.host, "softmax_0", args, (m + 3) / 4, 0, 1024, 2, s);
        cr_assert_null(message, "%s", message);
    }
    for (int i = 0; i < m; i++) {
        double sum = 0, top = -INFINITY;
        for (int j = 0; j < n; j++)
            top = fmax(top, f32_from_bf16(x[i * sx + j]));
        for (int j = 0; j < n; j++)
            sum += exp(f32_from_bf16(x[i * sx + j]) - top);
        for (int j = 0; j < n; j++) {
            double want = exp(f32_from_bf16(x[i * sx + j]) - top) / sum;
            cr_assert(fabs(y[i * sy + j] - want) <= 2e-6 * want, "%s %d %d: %g, not %g", target, i,
                      j, y[i * sy + j], want);
        }
    }
    cr_assert_eq(y[m * sy], -1);
    free(x);
    free(y);
    unload(&l);
}

Test(host_ir, softmax, .timeout = 120) {
    check_softmax(softmax_sim, "sim-sm_80", 7, 200);
    check_softmax(softmax_sim, "sim-sm_80", 1, 1);
    check_softmax(softmax_cpu, "cpu", 7, 200);
    check_softmax(softmax_cpu, "cpu", 9, 255);
}

// --- matrix products ---------------------------------------------------------------------------

typedef struct Product {
    const char *entry;
    int tile_m, tile_n;
    bool any_stride; // no dim is known to have stride 1
    int64_t smem;
    uint64_t seeds;
} Product;

static void check_product(Loaded *l, const Product *p, int64_t m, int64_t k, int64_t n) {
    uint16_t *x = aligned_alloc(64, 65536), *w = aligned_alloc(64, 65536);
    float *y = aligned_alloc(64, 131072);
    uint64_t seed = 9;
    for (int i = 0; i < 32768; i++) {
        x[i] = bf16_from_f64(random_float(&seed));
        w[i] = bf16_from_f64(random_float(&seed));
        y[i] = 99;
    }
    int64_t one = 1, nn = (n + p->tile_n - 1) / p->tile_n;
    int64_t grid = (m + p->tile_m - 1) / p->tile_m * nn;
    void *strided[] = {&x, &k, &one, &w, &n, &one, &y, &n, &one, &m, &k, &n, &nn};
    void *dense[] = {&x, &k, &w, &n, &y, &n, &m, &k, &n, &nn};
    for (uint64_t s = 0; s < p->seeds; s++) {
        const char *message =
            host_launch(l->host, p->entry, p->any_stride ? strided : dense, grid, 0, p->smem, 2, s);
        cr_assert_null(message, "%s", message);
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double want = 0, size = 0;
            for (int e = 0; e < k; e++) {
                double term = (double)f32_from_bf16(x[i * k + e]) * f32_from_bf16(w[e * n + j]);
                want += term;
                size += fabs(term);
            }
            cr_assert(fabs(y[i * n + j] - want) <= 1e-5 * size, "%d %d: %g, not %g", i, j,
                      y[i * n + j], want);
        }
    cr_assert_eq(y[m * n], 99);
    free(x);
    free(w);
    free(y);
}

// The example of the IR's description: cp.async, three stages, mma.sync.
Test(host_ir, mma_pipeline, .timeout = 300) {
    char text[8192] = "tir placed sim-sm_80\n";
    strcat(text, strchr(example_linear_mma_placed, '\n') + 1);
    char *at;
    while ((at = strstr(text, "engine = cp_async"))) // any stride: copies of one element
        memcpy(at, "engine = plain   ", strlen("engine = plain   "));
    Loaded l = load_level(text, "sim-sm_80", 0);
    cr_assert_not_null(l.host, "%s", diags_text(l.diags, l.arena));
    Product p = {"linear_0", 128, 128, true, 49152, 2};
    check_product(&l, &p, 64, 64, 64);
    check_product(&l, &p, 37, 70, 50);
    unload(&l);
}

static const char product_cpu[] =
    "tir placed cpu\n"
    "layout #a = reg(k:1, k:2, k:4, k:8, m:1, m:2) lane(0, 0, 0)\n"
    "layout #b = reg(k:1, k:2, k:4, k:8, n:8) lane(n:1, n:2, n:4)\n"
    "layout #c = reg(m:1, m:2, n:8) lane(n:1, n:2, n:4)\n"
    "kernel product(dim M, dim K, dim N, in @x: bf16[%M, %K] {inner = 1}, in @w: bf16[%K, %N] "
    "{inner = 1}, out @y: f32[%M, %N] {inner = 1}) {\n"
    "  axis m of M by 4; axis n of N by 16; axis k of K by 16\n"
    "  %nm = cdiv %M, 4 : index; %nn = cdiv %N, 16 : index; %nt = mul %nm, %nn : index\n"
    "  launch %pid in 0..%nt args(%M, %K, %N, %nn; @x, @w, @y) {entry = \"product_0\", warps = 1} "
    "{\n"
    "    %pm = div %pid, %nn : index; %pn = rem %pid, %nn : index\n"
    "    %m0 = mul %pm, 4 : index; %n0 = mul %pn, 16 : index\n"
    "    with m in %m0..%M, n in %n0..%N {\n"
    "      %d = for k in 0..%K carry (%acc = 0.0:f32 : f32[m, n]#c) : f32[m, n]#c {\n"
    "        %xv = load @x[m, k] {check = [0, 1]} : bf16[m, k]#a\n"
    "        %wv = load @w[k, n] {check = [0, 1]} : bf16[k, n]#b\n"
    "        %r = dot[k] %xv, %wv, %acc {unit = fma, rows = [m], cols = [n]} : f32[m, n]#c\n"
    "        yield %r\n"
    "      }\n"
    "      store @y[m, n], %d {det = [m, n], check = [0, 1]}\n"
    "    }\n  }\n}\n";

Test(host_ir, product_cpu) {
    Loaded l = load(product_cpu, "cpu");
    Product p = {"product_0", 4, 16, false, 0, 1};
    check_product(&l, &p, 64, 64, 64);
    check_product(&l, &p, 5, 33, 17);
    unload(&l);
}

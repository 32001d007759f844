// Scans, arg-reductions, conversions and reductions of the lowering, run by the simulator: numbers
// against plain loops, and no race reported. Layouts mix registers, lanes and warps on purpose.
#include <math.h>
#include <string.h>

#include "backend/host/host.h"
#include "backend_support.h"

typedef struct Loaded {
    Arena *arena;
    HostModule *host;
} Loaded;

static Loaded load(const char *text) {
    Loaded l = {.arena = arena_new("test")};
    const char *error = NULL;
    Module *m = ir_parse(l.arena, interner_new(l.arena), text, strlen(text), &error);
    cr_assert(m, "%s", error);
    cr_assert(ir_verify(l.arena, m, &error), "%s", error);
    SourceMap *sources = source_map_new(l.arena);
    Diags *diags = diags_new(l.arena, sources, NULL);
    BackendOptions options = {.opt_level = 1, .sources = sources};
    l.host = host_jit(l.arena, m, target_find("sim-sm_80"), &options, diags);
    cr_assert(l.host, "%s", diags_text(diags, l.arena));
    return l;
}

static void unload(Loaded *l) {
    host_module_free(l->host);
    arena_free(l->arena);
}

static uint64_t state = 1;
static int random_int(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

// 2 rows of 96 = 32 x 3 positions: registers, lanes, a warp bit and an odd factor.
static const char scan_odd[] =
    "tir placed sim-sm_80\n"
    "layout #t = reg(n:2) lane(n:1, n:8, m:1, 0, 0) warp(n:4, n:16) rep(n:3)\n"
    "kernel k(in @x: i32[2, 96], out @y: i32[2, 96]) {\n"
    "  axis m in 0..2 by 2; axis n in 0..96 by 96\n"
    "  launch %pid in 0..1 args(; @x, @y) {entry = \"k_0\", warps = 4, smem = 4096} {\n"
    "    %v = load @x[m, n] : i32[m, n]#t; %s = scan.sum[n] %v : i32[m, n]#t\n"
    "    store @y[m, n], %s {det = [m, n]}\n"
    "  }\n}\n";

static void scan_loaded(Loaded *l) {
    int32_t x[192], y[192];
    for (int i = 0; i < 192; i++)
        x[i] = random_int(100) - 50;
    void *px = x, *py = y;
    int64_t stride_m = 96, stride_n = 1;
    void *args[] = {&px, &stride_m, &stride_n, &py, &stride_m, &stride_n};
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(y, 0, sizeof y);
        const char *message = host_launch(l->host, "k_0", args, 1, 0, 4096, 1, seed);
        cr_assert(!message, "%s", message);
        for (int m = 0; m < 2; m++) {
            int32_t sum = 0;
            for (int n = 0; n < 96; n++) {
                sum += x[m * 96 + n];
                cr_assert_eq(y[m * 96 + n], sum, "row %d position %d: %d, not %d", m, n,
                             y[m * 96 + n], sum);
            }
        }
    }
}

Test(backend_along, scan_over_registers_lanes_warps_and_odd_factors, .timeout = 60) {
    Loaded l = load(scan_odd);
    scan_loaded(&l);
    unload(&l);
}

// Two axes in lexicographic order, b fastest, and the largest so far.
static const char scan_two[] =
    "tir placed sim-sm_80\n"
    "layout #t = reg(a:1, b:4) lane(a:2, b:1, b:2, a:4, b:8) warp(a:8)\n"
    "kernel k(in @x: f32[16, 16] {inner = 1}, out @y: f32[16, 16] {inner = 1}) {\n"
    "  axis a in 0..16 by 16; axis b in 0..16 by 16\n"
    "  launch %pid in 0..1 args(; @x, @y) {entry = \"k_0\", warps = 2, smem = 1024} {\n"
    "    %v = load @x[a, b] : f32[a, b]#t; %s = scan.max[a, b] %v : f32[a, b]#t\n"
    "    store @y[a, b], %s {det = [a, b]}\n"
    "  }\n}\n";

Test(backend_along, scan_of_two_axes, .timeout = 60) {
    Loaded l = load(scan_two);
    float x[256], y[256], top = -INFINITY;
    for (int i = 0; i < 256; i++)
        x[i] = (float)random_int(10000) + (float)i;
    void *px = x, *py = y;
    int64_t stride = 16;
    void *args[] = {&px, &stride, &py, &stride};
    const char *message = host_launch(l.host, "k_0", args, 1, 0, 1024, 1, 5);
    cr_assert(!message, "%s", message);
    for (int i = 0; i < 256; i++) {
        top = fmaxf(top, x[i]);
        cr_assert_eq(y[i], top, "%d", i);
    }
    unload(&l);
}

// The global index of the largest, the lowest of equals, NaN first; over warps.
static const char argmax[] =
    "tir placed sim-sm_80\n"
    "layout #t = reg(n:1, m:1) lane(n:2, n:4, n:8, n:16, n:32) warp(n:64, m:2)\n"
    "layout #r = reg(m:1) lane(0, 0, 0, 0, 0) warp(0, m:2)\n"
    "kernel k(in @x: f32[4, 128] {inner = 1}, out @y: index[4] {inner = 0}) {\n"
    "  axis m in 0..4 by 4; axis n in 0..128 by 128\n"
    "  launch %pid in 0..1 args(; @x, @y) {entry = \"k_0\", warps = 4, smem = 1024} {\n"
    "    %v = load @x[m, n] : f32[m, n]#t; %i = argreduce.max[n] %v : index[m]#r\n"
    "    store @y[m], %i {det = [m]}\n"
    "  }\n}\n";

Test(backend_along, argmax_over_warps, .timeout = 60) {
    Loaded l = load(argmax);
    float x[512];
    int64_t y[4] = {-7, -7, -7, -7}, stride = 128;
    for (int i = 0; i < 512; i++)
        x[i] = (float)random_int(50); // many equals
    x[128 + 77] = x[128 + 100] = NAN;
    void *px = x, *py = y;
    void *args[] = {&px, &stride, &py};
    for (uint64_t seed = 0; seed < 3; seed++) {
        const char *message = host_launch(l.host, "k_0", args, 1, 0, 1024, 1, seed);
        cr_assert(!message, "%s", message);
        for (int m = 0; m < 4; m++) {
            int best = 0;
            for (int n = 1; n < 128; n++) {
                float a = x[m * 128 + n], b = x[m * 128 + best];
                if (!isnan(b) && (isnan(a) || a > b))
                    best = n;
            }
            cr_assert_eq(y[m], best, "row %d: %d, not %d", m, (int)y[m], best);
        }
    }
    unload(&l);
}

// (a, x) then (b, y) = (a b, b x + y) does not commute: over registers, lanes, warps and an odd
// factor, as a fold and as a scan.
static const char fold_odd[] =
    "tir placed sim-sm_80\n"
    "layout #t = reg(n:2) lane(n:1, n:8, m:1, 0, 0) warp(n:4, n:16) rep(n:3)\n"
    "layout #r = lane(0, 0, m:1, 0, 0) warp(0, 0)\n"
    "kernel k(in @a: u32[2, 96], in @x: u32[2, 96], out @y: u32[2, 96], out @z: u32[2]) {\n"
    "  axis m in 0..2 by 2; axis n in 0..96 by 96\n"
    "  launch %pid in 0..1 args(; @a, @x, @y, @z) {entry = \"k_0\", warps = 8, smem = 4096} {\n"
    "    %a = load @a[m, n] : u32[m, n]#t; %x = load @x[m, n] : u32[m, n]#t\n"
    "    %p, %h = scanfn[n] %a, %x args(%a1: u32, %x1: u32, %a2: u32, %x2: u32) : u32[m, n]#t, "
    "u32[m, n]#t {\n"
    "      %ab = mul %a1, %a2 : u32; %bx = mul %a2, %x1 : u32; %s = add %bx, %x2 : u32; yield %ab, "
    "%s\n"
    "    }\n"
    "    %q, %l = fold[n] %a, %x else 1:u32, 0:u32 args(%b1: u32, %y1: u32, %b2: u32, %y2: u32) : "
    "u32[m]#r, u32[m]#r {\n"
    "      %bb = mul %b1, %b2 : u32; %by = mul %b2, %y1 : u32; %t = add %by, %y2 : u32; yield %bb, "
    "%t\n"
    "    }\n"
    "    store @y[m, n], %h {det = [m, n]}; store @z[m], %l {det = [m]}\n"
    "  }\n}\n";

Test(backend_along, functions_that_do_not_commute, .timeout = 60) {
    Loaded l = load(fold_odd);
    uint32_t a[192], x[192], y[192], z[2];
    for (int i = 0; i < 192; i++) {
        a[i] = (uint32_t)random_int(1000) | 1;
        x[i] = (uint32_t)random_int(1000);
    }
    void *pa = a, *px = x, *py = y, *pz = z;
    int64_t row = 96, one = 1;
    void *args[] = {&pa, &row, &one, &px, &row, &one, &py, &row, &one, &pz, &one};
    for (uint64_t seed = 0; seed < 3; seed++) {
        memset(y, 0, sizeof y);
        memset(z, 0, sizeof z);
        const char *message = host_launch(l.host, "k_0", args, 1, 0, 4096, 1, seed);
        cr_assert(!message, "%s", message);
        for (int m = 0; m < 2; m++) {
            uint32_t h = 0;
            for (int n = 0; n < 96; n++) {
                h = a[m * 96 + n] * h + x[m * 96 + n];
                cr_assert_eq(y[m * 96 + n], h, "row %d position %d", m, n);
            }
            cr_assert_eq(z[m], h, "row %d", m);
        }
    }
    unload(&l);
}

// Through shared memory, twice in a loop: the scratch area is reused behind a barrier.
static const char convert_text[] =
    "tir placed sim-sm_80\n"
    "layout #t = reg(n:1, n:2) lane(n:4, n:8, n:16, m:1, m:2) warp(m:4, m:8)\n"
    "layout #u = reg(m:1, m:2) lane(m:4, m:8, n:1, n:2, n:4) warp(n:8, n:16)\n"
    "kernel k(in @x: f32[16, 32] {inner = 1}, out @y: f32[16, 32] {inner = 1}) {\n"
    "  axis m in 0..16 by 16; axis n in 0..32 by 32\n"
    "  launch %pid in 0..1 args(; @x, @y) {entry = \"k_0\", warps = 4, smem = 2048} {\n"
    "    %v = load @x[m, n] : f32[m, n]#t\n"
    "    %w = for %i in 0..3 carry (%c = %v : f32[m, n]#t) : f32[m, n]#t {\n"
    "      %a = convert %c : f32[m, n]#u; %b = add %a, 1.0:f32 : f32[m, n]#u; %d = convert %b : "
    "f32[m, n]#t\n"
    "      yield %d\n"
    "    }\n"
    "    store @y[m, n], %w {det = [m, n]}\n"
    "  }\n}\n";

Test(backend_along, conversions_in_a_loop, .timeout = 60) {
    Loaded l = load(convert_text);
    float x[512], y[512];
    for (int i = 0; i < 512; i++)
        x[i] = (float)i;
    void *px = x, *py = y;
    int64_t stride = 32;
    void *args[] = {&px, &stride, &py, &stride};
    for (uint64_t seed = 0; seed < 5; seed++) {
        const char *message = host_launch(l.host, "k_0", args, 1, 0, 2048, 1, seed);
        cr_assert(!message, "%s", message);
        for (int i = 0; i < 512; i++)
            cr_assert_eq(y[i], x[i] + 3);
    }
    unload(&l);
}

// Planes of a tile: through registers where the axis lives in them, else through shared memory; a
// position outside the window gives the fill.
static const char take_text[] =
    "tir placed sim-sm_80\n"
    "layout #r = reg(u:1, n:1) lane(n:2, n:4, n:8, n:16, n:32) warp(0)\n"
    "layout #l = reg(n:1, n:2) lane(u:1, n:4, n:8, n:16, n:32) warp(0)\n"
    "layout #p = reg(n:1) lane(n:2, n:4, n:8, n:16, n:32) warp(0)\n"
    "kernel k(%i: i32, in @x: f32[64, 2] {inner = 1}, out @y: f32[3, 64] {inner = 1}) {\n"
    "  axis n in 0..64 by 64; axis u in 0..2 by 2\n"
    "  launch %pid in 0..1 args(%i; @x, @y) {entry = \"k_0\", warps = 2, smem = 512} {\n"
    "    %v = load @x[n, u] : f32[n, u]#r; %w = load @x[n, u] : f32[n, u]#l\n"
    "    %a = take %v, u = 1 : f32[n]#p; %b = take %w, u = 0 : f32[n]#p\n"
    "    %c = take %v, u = %i else 7.0:f32 : f32[n]#p\n"
    "    store @y[0, n], %a {det = [_, n]}; store @y[1, n], %b {det = [_, n]}; store @y[2, n], %c "
    "{det = [_, n]}\n"
    "  }\n}\n";

Test(backend_along, takes_of_planes, .timeout = 60) {
    Loaded l = load(take_text);
    float x[128], y[192];
    for (int i = 0; i < 128; i++)
        x[i] = (float)i;
    void *px = x, *py = y;
    int64_t two = 2, row = 64;
    for (int32_t i = -1; i < 3; i++) {
        void *args[] = {&px, &two, &py, &row, &i};
        const char *message = host_launch(l.host, "k_0", args, 1, 0, 512, 1, 1);
        cr_assert(!message, "%s", message);
        for (int n = 0; n < 64; n++) {
            cr_assert_eq(y[n], x[2 * n + 1]);
            cr_assert_eq(y[64 + n], x[2 * n]);
            cr_assert_eq(y[128 + n], i == 0 || i == 1 ? x[2 * n + i] : 7.0f, "%d %d: %g", i, n,
                         y[128 + n]);
        }
    }
    unload(&l);
}

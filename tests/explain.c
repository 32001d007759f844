// Remarks (--explain) and performance notes, by the public interface: their exact text.
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"

static const char gelu[] =
    "import std.nn;\n"
    "kernel linear_gelu<T: float>(x: T[M, K], w: T[K, N], b: T[N]?) -> (y: T[M, N])\n"
    "    schedule { M = 64; N = 64; K = 32; warps = 4; stages = 3; } {\n"
    "    y = gelu(dot[K](x, w) + b);\n"
    "}\n";
static const char softmax[] = "import std.nn;\n"
                              "kernel s(x: f16[M, N]) -> (y: f16[M, N]) {\n"
                              "    y = softmax[N](x);\n"
                              "}\n";

// The messages without the lines of source and their carets.
static char *messages(const char *source, FuseOptions options) {
    bool code = options.emit == FUSE_EMIT_LLVM;
    if (!code)
        options.emit = FUSE_EMIT_TILE;
    if (!code && !options.stop_after)
        options.stop_after = "pipeline";
    if (!options.target)
        options.target = "sm_80";
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    char *out = calloc(1, strlen(fuse_result_messages(r)) + 1), *at = out;
    for (const char *line = fuse_result_messages(r); *line;) {
        size_t n = strcspn(line, "\n") + 1;
        if (*line != ' ') {
            memcpy(at, line, n);
            at += n;
        }
        line += n;
    }
    fuse_result_free(r);
    return out;
}

static void check(const char *source, FuseOptions options, const char *expect) {
    char *got = messages(source, options);
    cr_expect_str_eq(got, expect, "%s", got);
    free(got);
}

static const char *const half[] = {"T=f16", NULL};
static const char *const single[] = {"T=f32", NULL};

Test(explain, product) {
    check(gelu, (FuseOptions){.explain = true, .defines = half},
          "k.fk:2:1: note[variant]: linear_gelu.f16.v0: aligned, contiguous tensors, rows of whole "
          "vectors\n"
          "k.fk:2:1: note[variant]: linear_gelu.f16.v1: any argument\n"
          "k.fk:4:5: note[fused]: `y` has a launch of its own, its grid is M, N\n"
          "k.fk:4:5: note[schedule]: linear_gelu.f16.v0: m by 64, n by 64, k by 32; 4 warps\n"
          "k.fk:4:5: note[schedule]: linear_gelu.f16.v1: m by 64, n by 64, k by 32; 4 warps\n"
          "k.fk:4:21: note[staged]: linear_gelu.f16.v0: `x` goes through shared memory by "
          "cp.async, 3 stages\n"
          "k.fk:4:21: note[staged]: linear_gelu.f16.v1: `x` goes through shared memory by plain "
          "copies, 1 stage: it is not known which dim is contiguous\n"
          "k.fk:4:24: note[staged]: linear_gelu.f16.v0: `w` goes through shared memory by "
          "cp.async, 3 stages\n"
          "k.fk:4:24: note[staged]: linear_gelu.f16.v1: `w` goes through shared memory by plain "
          "copies, 1 stage: it is not known which dim is contiguous\n");
    check(gelu, (FuseOptions){.defines = half}, "");
}

Test(explain, rows) {
    check(softmax, (FuseOptions){.explain = true},
          "k.fk:2:1: note[variant]: s.v0: aligned, contiguous tensors, rows of whole vectors; "
          "holds N up to 256\n"
          "k.fk:2:1: note[variant]: s.v1: aligned, contiguous tensors, rows of whole vectors; "
          "holds N up to 1024\n"
          "k.fk:2:1: note[variant]: s.v2: aligned, contiguous tensors, rows of whole vectors; "
          "holds N up to 4096\n"
          "k.fk:2:1: note[variant]: s.v3: aligned, contiguous tensors, rows of whole vectors; "
          "holds N up to 8192\n"
          "k.fk:2:1: note[variant]: s.v4: aligned, contiguous tensors, rows of whole vectors; "
          "holds N up to 16384\n"
          "k.fk:2:1: note[variant]: s.v5: aligned, contiguous tensors, rows of whole vectors; "
          "streams N\n"
          "k.fk:2:1: note[variant]: s.v6: any argument; streams N\n"
          "k.fk:3:5: note[fused]: `y` has a launch of its own, its grid is M\n"
          "k.fk:3:5: note[schedule]: s.v0: m by 8, n by 256; 4 warps\n"
          "k.fk:3:5: note[schedule]: s.v1: m by 4, n by 1024; 4 warps\n"
          "k.fk:3:5: note[schedule]: s.v2: m by 1, n by 4096; 8 warps\n"
          "k.fk:3:5: note[schedule]: s.v3: m by 1, n by 8192; 16 warps\n"
          "k.fk:3:5: note[schedule]: s.v4: m by 1, n by 16384; 32 warps\n"
          "k.fk:3:5: note[schedule]: s.v5: m by 1; 4 warps\n"
          "k.fk:3:5: note[schedule]: s.v6: m by 1; 4 warps\n"
          "k.fk:3:5: note[whole-axis]: s.v5: N is streamed, 1024 at a time\n"
          "k.fk:3:5: note[whole-axis]: s.v6: N is streamed, 128 at a time\n");
    check(softmax, (FuseOptions){0}, "");
}

Test(explain, statements) {
    static const char text[] =
        "kernel k(x: f16[M, K], w: f16[K, F], v: f16[F, N]) -> (y: f32[M, N], z: f16[M, K], u: "
        "f16[M, K]) {\n"
        "    y = dot[F](dot[K](x, w) as f16, v);\n"
        "    z = x * 2;\n"
        "    u = x * 3;\n"
        "}\n";
    check(
        text, (FuseOptions){.explain = true, .stop_after = "fuse"},
        "k.fk:2:5: note[fused]: not in the launch of the statement before: its grid is another "
        "one\n"
        "k.fk:2:5: note[fused]: `y` has a launch of its own, its grid is M, N\n"
        "k.fk:2:16: note[kept]: this value is kept in memory as f16[M, F]: the loop of the product "
        "that uses it would compute it again\n"
        "k.fk:2:16: note[fused]: a temporary of the compiler has a launch of its own, its grid is "
        "M, F\n"
        "k.fk:3:5: note[fused]: not in the launch of the statement before: its grid is another "
        "one\n"
        "k.fk:4:5: note[fused]: 2 statements share this launch: `z`, `u`; its grid is M, K\n");
    check(
        text, (FuseOptions){.explain = true, .no_fuse = true, .stop_after = "fuse"},
        "k.fk:2:5: note[fused]: not in the launch of the statement before: --no-fuse\n"
        "k.fk:2:5: note[fused]: `y` has a launch of its own, its grid is M, N\n"
        "k.fk:2:16: note[kept]: this value is kept in memory as f16[M, F]: the loop of the product "
        "that uses it would compute it again\n"
        "k.fk:2:16: note[fused]: a temporary of the compiler has a launch of its own, its grid is "
        "M, F\n"
        "k.fk:3:5: note[fused]: not in the launch of the statement before: --no-fuse\n"
        "k.fk:3:5: note[fused]: `z` has a launch of its own, its grid is M, K\n"
        "k.fk:4:5: note[fused]: not in the launch of the statement before: --no-fuse\n"
        "k.fk:4:5: note[fused]: `u` has a launch of its own, its grid is M, K\n");
}

// A norm beside the store of its operand; a sum of columns beside it is apart.
Test(explain, one_grid_of_two) {
    check("kernel k(x: f32[M, N], r: f32[M, N]) -> (h: f32[M, N], y: f32[M, N], c: f32[N]) {\n"
          "    h = x + r;\n"
          "    y = h / sum[N](h);\n"
          "    c = sum[M](x);\n"
          "}\n",
          (FuseOptions){.explain = true, .stop_after = "fuse"},
          "k.fk:3:5: note[fused]: 2 statements share this launch: `h`, `y`; its grid is M\n"
          "k.fk:4:5: note[fused]: not in the launch of the statement before: its grid is another "
          "one\n"
          "k.fk:4:5: note[fused]: `c` has a launch of its own, its grid is N\n");
}

Test(explain, performance_notes) {
    check(gelu, (FuseOptions){.defines = single},
          "k.fk:4:14: perf[no-matrix-unit]: this product of f32 and f32 does not use the matrix "
          "unit of sm_80\n"
          "note: in `linear_gelu.f32.v0` for sm_80\n"
          "hint: convert the operands, `... as f16`, or write `precision = tf32` as the last "
          "argument\n");
    check(gelu, (FuseOptions){.defines = single, .no_perf_notes = true}, "");
    check(gelu, (FuseOptions){.defines = single, .target = "cpu"}, "");
    // Once, for the kernel's most special variant, though two of them stream.
    check("import std.nn;\n"
          "kernel s(x: f16[M, 20000]) -> (y: f16[M, 20000]) {\n"
          "    axis n in 20000, m in M;\n"
          "    y[m, n] = softmax[n](x[m, n]);\n"
          "}\n",
          (FuseOptions){0},
          "k.fk:4:5: perf[streamed]: n does not fit in a program: it is read in 3 passes\n"
          "note: in `s.v0` for sm_80\n"
          "hint: reductions that need each other's results take a pass each; one `reduce` with a "
          "fn of tuples takes one\n");
    check("kernel k(x: f16[M, K], w: f16[N, K]) -> (y: f32[M, N]) {\n"
          "    parallel m in tiles(M, 8), n in tiles(N) {\n"
          "        var acc: f32[m, n] = 0;\n"
          "        for k in tiles(K, 4) { acc += dot[k](x[m, k], w[n, k]); }\n"
          "        y[m, n] = acc;\n"
          "    }\n"
          "}\n",
          (FuseOptions){.stop_after = "layouts"},
          "k.fk:4:32: perf[no-matrix-unit]: this product does not use the matrix unit: its tile of "
          "8 x 128 x 4 is smaller than the unit's\n"
          "note: in `k.v0` for sm_80\n"
          "hint: make its tiles larger: in the `schedule`, or in `tiles(...)`\n"
          "k.fk:4:55: perf[plain-copy]: `w` is not copied ahead for the product: the tile is "
          "narrower than 16 bytes along its contiguous dim\n"
          "note: in `k.v0` for sm_80\n"
          "hint: make the tile of `k` a multiple of 8\n");
}

Test(explain, notes_of_accesses) {
    // One side of a transposition is narrow; a gather is; reversed rows are.
    check("kernel k(x: f16[M, N]) -> (y: f16[N, M]) {\n"
          "    axis m in M, n in N;\n"
          "    y[n, m] = x[m, n];\n"
          "}\n",
          (FuseOptions){.emit = FUSE_EMIT_LLVM},
          "k.fk:3:5: perf[narrow-access]: `y` is written in pieces of 8 bytes along M, where it is "
          "contiguous: the tile lies along another axis than `m`\n"
          "note: in `k.v0` for sm_80\n"
          "hint: of a transposition one side is narrow; else let the axes of both sides agree\n");
    check("kernel k(x: f16[M, N], p: i32[N]) -> (y: f16[M, N]) {\n"
          "    axis n in N;\n"
          "    y[:, n] = x[:, p[n]] + x[:, N - 1 - n];\n"
          "}\n",
          (FuseOptions){.emit = FUSE_EMIT_LLVM},
          "k.fk:3:15: perf[narrow-access]: `x` is read in pieces of 2 bytes along N, where it is "
          "contiguous: its index there is no sum of axes\n"
          "note: in `k.v0` for sm_80\n"
          "hint: lay the tensor out so that a gathered dim is not the contiguous one\n"
          "k.fk:3:28: perf[narrow-access]: `x` is read in pieces of 2 bytes along N, where it is "
          "contiguous: its index takes steps there\n"
          "note: in `k.v0` for sm_80\n"
          "hint: read whole rows and pick from the value: `let v = x[..., i]; v[i = 2*j]`\n");
    // Narrow rows that follow each other, gathered rows and vectors are not.
    check("kernel k(x: f16[M, 4], t: f16[V, N], p: i32[M], b: f32[N]) -> (y: f16[M, 4], z: f16[M, "
          "N]) {\n"
          "    axis m in M, c in 4;\n"
          "    y[:, c] = x[:, c] * 2;\n"
          "    z[m, :] = t[p[m], :] + b;\n"
          "}\n",
          (FuseOptions){.emit = FUSE_EMIT_LLVM}, "");
}

Test(explain, notes_of_exchanges) {
    check("kernel k(x: f16[M, N], w: f16[N, L]) -> (y: f16[M, L]) {\n"
          "    let s = x * sum[M](x);\n"
          "    y = dot[N](s as f16, w);\n"
          "}\n",
          (FuseOptions){.stop_after = "fuse"},
          "k.fk:3:16: perf[through-memory]: this value goes from launch to launch through memory, "
          "as f16[M, N]: the loop of the product that uses it would compute it again\n"
          "note: in `k` for sm_80\n"
          "hint: a `parallel` written by hand, whose programs hold their rows, moves nothing\n");
    // In a function of the library: the kernel has its place, too.
    check("import std.nn;\n"
          "kernel a(x: f16[M, K], w: f16[K, N], v: f16[N, L]) -> (y: f16[M, L]) {\n"
          "    y = dot[N](relu(dot[K](x, w)), v * 1.0);\n"
          "}\n",
          (FuseOptions){.stop_after = "fuse"},
          "<std.nn>:6:14: perf[through-memory]: this value goes from launch to launch through "
          "memory, as f32[M, N]: the loop of the product that uses it would compute it again\n"
          "k.fk:2:1: note: in `a` for sm_80\n"
          "hint: a narrower type halves what is moved (`... as f16`); a `parallel` written by "
          "hand, whose programs hold their rows, moves nothing\n");
    // 32 rows are two warps' rows: the others share them, column by column.
    check("kernel k(q: f16[S, 64], x: f16[L, 64], v: f16[L, 128]) -> (o: f32[S, 128]) schedule { i "
          "= 32; } {\n"
          "    parallel i in tiles(S) {\n"
          "        axis d in 64, e in 128;\n"
          "        var acc: f32[i, e] = 0;\n"
          "        for j in tiles(L) {\n"
          "            let p = dot[d](q[i, d], x[j, d]);\n"
          "            acc = acc * max[j](p) + dot[j](p as f16, v[j, e]);\n"
          "        }\n"
          "        o[i, e] = acc;\n"
          "    }\n"
          "}\n",
          (FuseOptions){.emit = FUSE_EMIT_LLVM},
          "k.fk:7:19: perf[layout-conversion]: each pass of the loop moves this tile through "
          "shared memory: what follows needs its elements in other threads\n"
          "note: in `k.v0` for sm_80\n"
          "hint: tiles with 16 rows for each warp, by fewer `warps` or more rows, keep rows in a "
          "warp\n");
}

// What the assembler says of the first variant's function, and what becomes of it.
typedef struct Spill {
    const char *source;
    FuseOptions options;
    int registers, local_bytes;
    bool is_error;
    const char *expect;
} Spill;

static void check_spill(Spill s) {
    s.options.emit = FUSE_EMIT_PTX;
    s.options.target = s.options.target ? s.options.target : "sm_80";
    FuseResult *r = fuse_compile(&s.options, "k.fk", s.source, strlen(s.source));
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    size_t before = strlen(fuse_result_messages(r));
    // The second one is of the variant for any stride, the third one unknown.
    const FuseFunctionUse uses[] = {
        {"k_v0__0", s.registers, s.local_bytes}, {"k_v1__0", 255, 400}, {"k_v2__0", 255, 400}};
    cr_expect_eq(fuse_result_note_use(r, 3, uses), !s.is_error);
    cr_expect_eq(fuse_result_ok(r), !s.is_error);
    cr_expect_eq(fuse_result_errors(r), s.is_error);
    cr_expect_str_eq(fuse_result_messages(r) + before, s.expect, "%s",
                     fuse_result_messages(r) + before);
    fuse_result_free(r);
}

static const char squares[] = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                              "    parallel m in tiles(M), n in tiles(N) {\n"
                              "        y[m, n] = x[m, n] * x[m, n];\n"
                              "    }\n"
                              "}\n";

Test(explain, notes_of_spills) {
#define PLACE                                                                                      \
    "    2 |     parallel m in tiles(M), n in tiles(N) {\n"                                        \
    "      |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
    check_spill((Spill){
        squares,
        {0},
        200,
        24,
        false,
        "k.fk:2:5: perf[spills]: `k_v0__0` spills: 24 bytes of each thread do not fit in its 200 "
        "registers and go through memory\n" PLACE "note: in `k.v0` for sm_80\n"
        "hint: smaller tiles or more warps leave a thread less to hold: `schedule { N = 256; warps "
        "= 8; }`, or a smaller size in `tiles(...)`\n"});
    check_spill((Spill){squares, {0}, 200, 0, false, ""});
    check_spill((Spill){squares, {0}, 0, 24, false, ""}); // a report in other words
    check_spill((Spill){squares, {.no_perf_notes = true}, 200, 24, false, ""});
    // `print` has an array of its own, and a call has a stack.
    check_spill((Spill){"kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                        "    parallel m in tiles(M), n in tiles(N) {\n"
                        "        y[m, n] = x[m, n];\n"
                        "        print(\"{}\", x[m, n]);\n"
                        "    }\n"
                        "}\n",
                        {.debug = true},
                        200,
                        24,
                        false,
                        ""});
    check_spill((Spill){"kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n",
                        {.explain = true, .no_perf_notes = true},
                        200,
                        24,
                        false,
                        "k.fk:1:38: note[schedule]: k.v0: each thread takes 200 registers and 24 "
                        "bytes of memory\n"
                        "    1 | kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n"
                        "      |                                      ^~~~~~\n"
                        "k.fk:1:38: note[schedule]: k.v1: each thread takes 255 registers and 400 "
                        "bytes of memory\n"
                        "    1 | kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n"
                        "      |                                      ^~~~~~\n"});
    static const char *const error[] = {"error=perf", NULL};
    check_spill((Spill){
        squares,
        {.warnings = error},
        200,
        24,
        true,
        "k.fk:2:5: error[spills]: `k_v0__0` spills: 24 bytes of each thread do not fit in its 200 "
        "registers and go through memory\n" PLACE "note: in `k.v0` for sm_80\n"
        "hint: smaller tiles or more warps leave a thread less to hold: `schedule { N = 256; warps "
        "= 8; }`, or a smaller size in `tiles(...)`\n"});
}

static void check_refused(const char *define, const char *target, const char *expect) {
    const char *const defines[] = {"T=f32", define, NULL};
    FuseOptions options = {.target = target, .defines = defines, .emit = FUSE_EMIT_TILE};
    options.stop_after = "schedule";
    FuseResult *r = fuse_compile(&options, "k.fk", gelu, strlen(gelu));
    cr_expect_eq(fuse_result_ok(r), !expect, "%s: %s", define, fuse_result_messages(r));
    cr_expect(!expect || strstr(fuse_result_messages(r), expect), "%s: %s", define,
              fuse_result_messages(r));
    cr_expect(!fuse_result_internal(r));
    fuse_result_free(r);
}

// A tile that registers cannot hold is named, with what they can hold.
Test(explain, tiles_that_are_too_large) {
    check_refused("M=512", "sm_80", NULL);
    check_refused("M=1024", "sm_80",
                  "error[too-large]: a tile of 65536 elements (m = 1024, n = 64) in 4 warps; a "
                  "thread holds at most "
                  "256 elements, these warps 32768: choose smaller tiles or more warps");
    check_refused("M=4096", "cpu", NULL); // a clause cannot make tiles larger there
}

// Of shared memory: how much is needed and there, which tile needs the most of it, and what helps.
Test(explain, shared_memory_that_is_too_small) {
    const char source[] = "kernel k(x: f64[M, N]) -> (y: f64[M, N]) {\n"
                          "    parallel m in tiles(M, 96), n in tiles(N, 256) {\n"
                          "        let v = x[m, n];\n"
                          "        y[m, n] = v[m = m - n % 2];\n"
                          "    }\n"
                          "}\n";
    FuseOptions options = {.target = "sm_80", .emit = FUSE_EMIT_LLVM};
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    cr_expect(!fuse_result_ok(r));
    cr_expect(strstr(fuse_result_messages(r),
                     "k.fk:2:5: error[too-large]: this nest needs 196608 bytes of shared memory; "
                     "sm_80 has 166912 for a program. 196608 are for a tile of f64 (m by 96, n by "
                     "256) that threads exchange in `take`: choose smaller tiles\n"),
              "%s", fuse_result_messages(r));
    fuse_result_free(r);
}

// Every pass by name, and nothing behind the last.
Test(explain, pass_names) {
    int n = 0;
    while (fuse_pass_at(n))
        n++;
    cr_expect(n > 10);
    cr_expect_str_eq(fuse_pass_at(0), "simplify");
    cr_expect_null(fuse_pass_at(-1));
    cr_expect_null(fuse_pass_at(n + 1));
}

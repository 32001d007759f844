// The nvptx target on hand-written placed IR: what the PTX contains, and that ptxas takes it.
#include "backend_support.h"

#include "ir_examples.h"

// 8 f32 a thread, 4 warps: tiles of 1024.
static const char axpy[] =
    "tir placed sm_80\n"
    "layout #v = reg(n:1, n:2, n:512) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128, n:256)\n"
    "kernel axpy(dim N, %a: f32, in @x: f32[%N] {align = 16, inner = 0}, inout @y: f32[%N] {align "
    "= 16, inner = 0}) {\n"
    "  %r = rem %N, 4 : index; %ok = cmp.eq %r, 0 : bool; when %ok\n"
    "  axis n of N by 1024; %g = cdiv %N, 1024 : index\n"
    "  launch %pid in 0..%g args(%N, %a; @x, @y) {entry = \"axpy_0\", warps = 4} {\n"
    "    %n0 = mul %pid, 1024 : index\n"
    "    with n in %n0..%N {\n"
    "      %xv = load @x[n] {check = [0]} : f32[n]#v; %yv = load @y[n] {check = [0]} : f32[n]#v\n"
    "      %p = mul %xv, %a {contract = true} : f32[n]#v; %s = add %p, %yv {contract = true} : "
    "f32[n]#v\n"
    "      store @y[n], %s {det = [n], check = [0]}\n"
    "    }\n"
    "  }\n"
    "}\n";

Test(backend_ptx, axpy) {
    Emitted e = emit_ptx(axpy, "sm_80");
    cr_expect(count_of(e.text, "ld.global.nc.v4.b32") == 2, "%s", e.text);
    cr_expect(count_of(e.text, "ld.global.v4.b32") == 2);
    cr_expect(count_of(e.text, "st.global.v4.b32") == 2);
    cr_expect(count_of(e.text, "fma.rn.f32") == 8);
    cr_expect(strncmp(e.text, "//! fuse 1 sm_80 ", 17) == 0);
    cr_expect(strstr(e.text, "//!   launch %pid in 0..%g args(%N, %a; @x, @y) {entry = \"axpy_0\""),
              "%s", e.text);
    cr_expect(!strstr(e.text, ".local"));
    no_spills(assemble(&e, "sm_80"));
    arena_free(e.arena);
}

// The right one for every stride and alignment: no vectors.
static const char axpy_any[] =
    "tir placed sm_90a\n"
    "layout #v = reg(n:128) lane(n:1, n:2, n:4, n:8, n:16) warp(n:32, n:64)\n"
    "kernel axpy(dim N, %a: bf16, in opt @x: bf16[%N], inout @y: bf16[%N]) {\n"
    "  axis n of N by 256; %g = cdiv %N, 256 : index\n"
    "  launch %pid in 0..%g args(%N, %a; @x, @y) {entry = \"axpy_1\", warps = 4} {\n"
    "    %n0 = mul %pid, 256 : index\n"
    "    with n in %n0..%N {\n"
    "      %xv = load @x[n] else 1.0:bf16 {check = [0]} : bf16[n]#v; %yv = load @y[n] {check = "
    "[0], guard = [n]} : bf16[n]#v\n"
    "      %p = mul %xv, %a : bf16[n]#v; %s = add %p, %yv : bf16[n]#v; %i = inside n : bool[n]#v\n"
    "      %z = select %i, %s, 0.0:bf16 : bf16[n]#v\n"
    "      store @y[n], %z {det = [n], check = [0]}\n"
    "    }\n"
    "  }\n"
    "}\n";

Test(backend_ptx, axpy_any_stride) {
    Emitted e = emit_ptx(axpy_any, "sm_90a");
    cr_expect(count_of(e.text, "ld.global.nc.b16") == 2, "%s", e.text);
    cr_expect(count_of(e.text, "st.global.b16") == 2, "%s", e.text);
    no_spills(assemble(&e, "sm_90a"));
    arena_free(e.arena);
}

// Rows of up to 1024 held by 4 warps: reductions by shuffles, then shared memory.
static const char softmax[] =
    "tir placed sm_90a\n"
    "layout #t = reg(n:1, n:2, n:512) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128, n:256)\n"
    "layout #r = reg() lane(0, 0, 0, 0, 0) warp(0, 0)\n"
    "kernel softmax(dim M, dim N, in @x: f32[%M, %N] {align = 16, inner = 1, sdiv = 4}, out @y: "
    "f32[%M, %N] {align = 16, inner = 1, sdiv = 4}) {\n"
    "  axis m of M by 1; axis n of N in 0..%N by 1024\n"
    "  launch %pid in 0..%M args(%M, %N; @x, @y) {entry = \"softmax_0\", warps = 4, smem = 512} {\n"
    "    with m in %pid..%M {\n"
    "      %xv = load @x[m, n] else -inf:f32 {check = [1]} : f32[m, n]#t\n"
    "      %mx = reduce.max[n] %xv : f32[m]#r; %d = sub %xv, %mx : f32[m, n]#t; %e = exp %d : "
    "f32[m, n]#t\n"
    "      %s = reduce.sum[n] %e : f32[m]#r; %q = div %e, %s : f32[m, n]#t\n"
    "      store @y[m, n], %q {det = [m, n], check = [1]}\n"
    "    }\n"
    "  }\n"
    "}\n";

Test(backend_ptx, softmax_across_warps) {
    Emitted e = emit_ptx(softmax, "sm_90a");
    cr_expect(count_of(e.text, "shfl.sync.bfly") == 10, "%s", e.text);
    // max: write, barrier, read; sum: barrier, write, barrier, read
    cr_expect(count_of(e.text, "bar") >= 3);
    cr_expect(count_of(e.text, "st.shared.b32") == 2);
    cr_expect(strstr(e.text, "ld.global.nc.v4.b32"));
    cr_expect(strstr(e.text, "max.NaN.f32"));
    cr_expect(count_of(e.text, "ex2.approx.ftz.f32") == 8);
    no_spills(assemble(&e, "sm_90a"));
    arena_free(e.arena);
}

Test(backend_ptx, matrix_product_by_mma_sync) {
    Emitted e = emit_ptx(example_linear_mma_placed, "sm_80");
    // 128 x 128 x 32 by 2 x 2 warps: 4 x 8 fragments, 2 steps of k
    cr_expect(count_of(e.text, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") == 64, "%d",
              count_of(e.text, "mma.sync"));
    cr_expect(strstr(e.text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16"), "%s", e.text);
    cr_expect(strstr(e.text, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"));
    cr_expect(!strstr(e.text, ".local"));
    no_spills(assemble(&e, "sm_80"));
    arena_free(e.arena);
}

// The same with the guards of the fast variant: cp.async of 16 bytes.
Test(backend_ptx, matrix_product_with_cp_async) {
    Arena *arena = arena_new("text");
    const char *text = example_linear_mma_placed;
    static const char *const edits[][2] = {
        {"in @x: bf16[%M, %K]", "in @x: bf16[%M, %K] {align = 16, inner = 1, sdiv = 8}"},
        {"in @w: bf16[%K, %N]", "in @w: bf16[%K, %N] {align = 16, inner = 1, sdiv = 8}"},
        {"out @y: f32[%M, %N]", "out @y: f32[%M, %N] {align = 16, inner = 1, sdiv = 4}"},
        {"  axis m of M by 128;", "  %rk = rem %K, 8 : index; %ok = cmp.eq %rk, 0 : bool; when "
                                  "%ok; %rn = rem %N, 8 : index; "
                                  "%on = cmp.eq %rn, 0 : bool; when %on; axis m of M by 128;"},
    };
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(text, edits[i][0]);
        cr_assert(at);
        text = arena_printf(arena, "%.*s%s%s", (int)(at - text), text, edits[i][1],
                            at + strlen(edits[i][0]));
    }
    Emitted e = emit_ptx(text, "sm_80");
    cr_expect(count_of(e.text, "cp.async.cg.shared.global") == 16, "%d",
              count_of(e.text, "cp.async.cg"));
    cr_expect(count_of(e.text, "cp.async.wait_group") == 1);
    cr_expect(count_of(e.text, "mma.sync") == 64);
    cr_expect(!strstr(e.text, "ld.global"));
    cr_expect(count_of(e.text, "st.global.v2.b32") == 64, "%d", count_of(e.text, "st.global"));
    no_spills(assemble(&e, "sm_80"));
    arena_free(e.arena);
    arena_free(arena);
}

// 16 x 32 x 64 in one warp: a thread's operands are 512 elements, more than it has registers.
static const char fma_product[] =
    "tir placed sm_80\n"
    "layout #c = reg(n:1, n:2, m:1, m:2) lane(n:4, n:8, n:16, m:4, m:8) warp()\n"
    "layout #a = reg(k:1, k:2, k:4, k:8, k:16, k:32, m:1, m:2) lane(0, 0, 0, m:4, m:8) warp()\n"
    "layout #b = reg(k:1, k:2, k:4, k:8, k:16, k:32, n:1, n:2) lane(n:4, n:8, n:16, 0, 0) warp()\n"
    "kernel f(in @x: f32[16, 64] {align = 16, inner = 1}, in @w: f32[32, 64] {align = 16, inner = "
    "1}, out @y: f32[16, 32] {align = 16, inner = 1}) {\n"
    "  axis m in 0..16 by 16; axis n in 0..32 by 32; axis k in 0..64 by 64\n"
    "  launch %pid in 0..1 args(; @x, @w, @y) {entry = \"f_0\", warps = 1} {\n"
    "    %xv = load @x[m, k] : f32[m, k]#a; %wv = load @w[n, k] : f32[n, k]#b\n"
    "    %d = dot[k] %xv, %wv {unit = fma, rows = [m], cols = [n]} : f32[m, n]#c\n"
    "    store @y[m, n], %d {det = [m, n]}\n"
    "  }\n"
    "}\n";

Test(backend_ptx, operands_of_multiply_adds_are_loaded_late) {
    Emitted e = emit_ptx(fma_product, "sm_80");
    cr_expect(count_of(e.text, "fma.rn.f32") == 16 * 64, "%d", count_of(e.text, "fma.rn.f32"));
    const char *fma = strstr(e.text, "fma.rn.f32");
    cr_assert(fma);
    cr_expect(count_of(fma, "ld.global") > 8 * count_of(e.text, "ld.global") / 10, "%s", e.text);
    no_spills(assemble(&e, "sm_80"));
    arena_free(e.arena);
}

// Every elementwise op of floats on one element a thread; ptxas takes all of it.
static const char functions_head[] =
    "tir placed sm_90a\n"
    "layout #v = reg() lane(n:1, n:2, n:4, n:8, n:16) warp()\n"
    "kernel f(in @x: %s[32] {inner = 0}, in @z: %s[32] {inner = 0}, out @y: %s[32] {inner = 0}, "
    "out "
    "@b: bool[32] {inner = 0}, out @u: u32[32] {inner = 0}) {\n"
    "  axis n in 0..32 by 32\n"
    "  launch %%pid in 0..1 args(; @x, @z, @y, @b, @u) {entry = \"f_0\", warps = 1} {\n"
    "    %%a = load @x[n] : %s[n]#v; %%c = load @z[n] : %s[n]#v; %%s0 = add %%a, %%c : %s[n]#v\n";

static void check_functions(const char *dtype, const char *const *unary, int n,
                            const char *target) {
    Arena *arena = arena_new("text");
    const char *text =
        arena_printf(arena, functions_head, dtype, dtype, dtype, dtype, dtype, dtype);
    int k = 0;
    for (int i = 0; i < n; i++, k++) {
        bool two = unary[i][0] == '2';
        text = arena_printf(
            arena, "%s    %%r%d = %s %%a%s : %s[n]#v; %%s%d = add %%s%d, %%r%d : %s[n]#v\n", text,
            k, unary[i] + two, two ? ", %c" : "", dtype, k + 1, k, k, dtype);
    }
    text = arena_printf(arena,
                        "%s    store @y[n], %%s%d {det = [n]}; %%l = cmp.lt %%a, %%c : bool[n]#v\n"
                        "    store @b[n], %%l {det = [n]}; %%ci = cast n : u32[n]#v; %%ra = rand "
                        "%%ci, %%ci : u32[n]#v\n"
                        "    store @u[n], %%ra {det = [n]}\n  }\n}\n",
                        text, k);
    Emitted e = emit_ptx(text, target);
    cr_expect(!strstr(e.text, "extern .func"), "%s", e.text);
    assemble(&e, target);
    arena_free(e.arena);
    arena_free(arena);
}

static const char *const float_functions[] = {
    "sqrt", "rsqrt", "rcp",   "exp2", "log2",  "exp",   "log",  "sin", "cos",
    "tanh", "erf",   "floor", "ceil", "trunc", "round", "neg",  "abs", "2pow",
    "2div", "2rem",  "2min",  "2max", "2fmin", "2fmax", "2mul", "2sub"};

// 4096 elements in 8 warps: 78 rounds of 16 registers.
static const char sorted[] =
    "tir placed sm_90a\n"
    "layout #v = reg(n:1, n:2, n:1024, n:2048) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128, n:256, "
    "n:512)\n"
    "kernel sorted(dim M, in @x: f32[%M, 4096] {align = 16, inner = 1, sdiv = 4}, out @y: f32[%M, "
    "4096] {align = 16, inner = 1, sdiv = 4}) {\n"
    "  axis n in 0..4096 by 4096\n"
    "  launch %m in 0..%M args(%M; @x, @y) {entry = \"sorted_0\", warps = 8, smem = 32768} {\n"
    "    %xv = load @x[%m, n] : f32[n]#v\n"
    "    %s, %i = sort[n] %xv : f32[n]#v, index[n]#v\n"
    "    store @y[%m, n], %s {det = [m, n]}\n"
    "  }\n"
    "}\n";

Test(backend_ptx, sort_is_loops) {
    Emitted e = emit_ptx(sorted, "sm_90a");
    cr_expect(count_of(e.text, "shfl.sync.idx") == 2 * 16, "%s", e.text);
    cr_expect(count_of(e.text, "bar") <= 4 && count_of(e.text, "st.shared.b64") == 16);
    cr_expect(strlen(e.text) < 32000, "%zu", strlen(e.text));
    cr_expect(!strstr(e.text, ".local"));
    no_spills(assemble(&e, "sm_90a"));
    arena_free(e.arena);
}

Test(backend_ptx, functions_of_floats) {
    check_functions("f32", float_functions, 26, "sm_80");
    check_functions("bf16", float_functions, 26, "sm_90a");
    check_functions("f16", float_functions, 26, "sm_80");
}

Test(backend_ptx, functions_of_doubles) {
    check_functions("f64", float_functions, 26, "sm_80");
    check_functions("f64", float_functions, 26, "sm_90a");
}

static const char *const integer_functions[] = {
    "2div", "2rem", "2cdiv", "2floordiv", "2mod", "2min", "2max", "neg", "abs",
    "2and", "2or",  "2xor",  "not",       "2shl", "2shr", "popc", "clz", "2mul"};
Test(backend_ptx, functions_of_integers) {
    check_functions("i32", integer_functions, 18, "sm_80");
    check_functions("u64", integer_functions, 18, "sm_80");
    check_functions("i8", integer_functions, 18, "sm_90a");
}

// Lines of the source in the PTX, without a debug target.
Test(backend_ptx, line_information) {
    Arena *arena = arena_new("test");
    const char *source = "kernel axpy\n\n  y = a * x + y\n";
    SourceMap *sources = source_map_new(arena);
    source_add(sources, "axpy.fk", source, strlen(source));
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), axpy, strlen(axpy), &error);
    cr_assert(m, "%s", error);
    const Op *launch = m->kernel[0]->body->last;
    cr_assert(launch->kind == OP_LAUNCH);
    Span line3 = {16, 20};
    for (Op *op = launch->region[0]->first; op; op = op->next)
        for (int r = 0; r < op->nregion; r++)
            for (Op *in = op->region[r]->first; in; in = in->next)
                in->span = line3;
    Diags *diags = diags_new(arena, sources, NULL);
    BackendOptions options = {.opt_level = 2, .line_info = true, .sources = sources};
    BackendOutput out;
    bool ok = backend_emit(arena, m, target_find("sm_80"), &options, &out, diags);
    cr_assert(ok, "%s", diags_text(diags, arena));
    cr_expect(strstr(out.data, "\"./axpy.fk\""), "%s", out.data);
    cr_expect(strstr(out.data, ".loc\t1 3 "), "%s", out.data);
    cr_expect(!strstr(out.data, ", debug"));
    Emitted e = {.arena = arena, .text = out.data};
    assemble(&e, "sm_80");
    arena_free(arena);
}

// What cannot be lowered is an error with the op's name, not a crash.
Test(backend_ptx, unsupported_is_reported) {
    Arena *arena = arena_new("text");
    const char *text =
        arena_printf(arena, functions_head, "e4m3", "e4m3", "e4m3", "e4m3", "e4m3", "e4m3");
    text = arena_printf(arena, "%s    store @y[n], %%s0 {det = [n]}\n  }\n}\n", text);
    Emitted e = emit_text(text, "sm_80", (BackendOptions){.emit = BACKEND_PTX});
    cr_expect(!e.text);
    cr_expect(strstr(e.messages, "add: not available for e4m3"), "%s", e.messages);
    arena_free(e.arena);
    arena_free(arena);
}

// The worked examples of the IR's description, as text. Included by the tests of text and verifier.
#ifndef FUSE_TESTS_IR_EXAMPLES_H
#define FUSE_TESTS_IR_EXAMPLES_H

// clang-format off
static const char example_linear_gelu_tensor[] =
    "tir tensor sm_90a\n"
    "kernel linear_gelu(dim M, dim K, dim N, in @x: bf16[%M, %K], in @w: bf16[%K, %N], in opt @b: bf16[%N], out @y: bf16[%M, %N]) {\n"
    "  %xv = load @x[M, K] : bf16[M, K]; %wv = load @w[K, N] : bf16[K, N]; %d = dot[K] %xv, %wv : f32[M, N]; %bv = load @b[N] : bf16[N]; %bf = cast %bv : f32[N]; %z = add %d, %bf : f32[M, N]\n"
    "  %u = mul %z, 0.70710678:f32 : f32[M, N]; %e = erf %u : f32[M, N]; %e1 = add %e, 1.0:f32 : f32[M, N]; %h = mul %z, 0.5:f32 : f32[M, N]; %g = mul %h, %e1 : f32[M, N]; %r = cast %g : bf16[M, N]\n"
    "  store @y[M, N], %r; }\n";

static const char example_linear_gelu_nests[] =
    "tir nests sm_90a\n"
    "kernel linear_gelu(dim M, dim K, dim N, in @x: bf16[%M, %K], in @w: bf16[%K, %N], in opt @b: bf16[%N], out @y: bf16[%M, %N]) {\n"
    "  axis m of M; axis n of N; axis k of K; parallel m in 0..%M, n in 0..%N {\n"
    "    %d = for k in 0..%K carry (%acc = 0.0:f32 : f32[m, n]) : f32[m, n] {\n"
    "      %xv = load @x[m, k] : bf16[m, k]; %wv = load @w[k, n] : bf16[k, n]; %a = dot[k] %xv, %wv, %acc : f32[m, n]; yield %a; }; %bv = load @b[n] : bf16[n]; %bf = cast %bv : f32[n]\n"
    "    %z = add %d, %bf : f32[m, n]; %u = mul %z, 0.70710678:f32 : f32[m, n]; %e = erf %u : f32[m, n]; %e1 = add %e, 1.0:f32 : f32[m, n]; %h = mul %z, 0.5:f32 : f32[m, n]; %g = mul %h, %e1 : f32[m, n]\n"
    "    %r = cast %g : bf16[m, n]; store @y[m, n], %r {det = [m, n]}; }; }\n";

static const char example_linear_gelu_scheduled[] =
    "tir scheduled sm_90a\n"
    "kernel linear_gelu(dim M, dim K, dim N, in @x: bf16[%M, %K] {align = 16, inner = 1, sdiv = 8}, in @w: bf16[%K, %N] {align = 16, inner = 1, sdiv = 8}, in opt @b: bf16[%N], out @y: bf16[%M, %N] {align = 16, inner = 1, sdiv = 8}) {\n"
    "  axis m of M by 128; axis n of N by 256; axis k of K by 64; parallel m in 0..%M, n in 0..%N {order = grouped, group = 16, persistent = true} {\n"
    "    @a = buf.shared {stages = 3} : bf16[m, k]; @bb = buf.shared {stages = 3} : bf16[k, n]; @o = buf.shared : bf16[m, n]; @ab = chan @a, @bb {stages = 3, tx = 49152}\n"
    "    %d, %pe = for k in 0..%K carry (%acc = 0.0:f32 : f32[m, n], %p = 0:i32 : i32) : f32[m, n], i32 {\n"
    "      acquire @ab(%p); copy @x[m, k] to @a(%p) signal @ab {engine = tma, check = [0, 1]}; copy @w[k, n] to @bb(%p) signal @ab {engine = tma, check = [0, 1]}; commit @ab(%p); wait @ab(%p)\n"
    "      %xv = get @a(%p) : bf16[m, k]; %wv = get @bb(%p) : bf16[k, n]; %a1 = dot[k] %xv, %wv, %acc : f32[m, n]; release @ab(%p); %p1 = add %p, 1:i32 : i32; yield %a1, %p1; }\n"
    "    %bv = load @b[n] {check = [0]} : bf16[n]; %bf = cast %bv : f32[n]; %z = add %d, %bf : f32[m, n]; %u = mul %z, 0.70710678:f32 : f32[m, n]; %e = erf %u : f32[m, n]; %e1 = add %e, 1.0:f32 : f32[m, n]\n"
    "    %h = mul %z, 0.5:f32 : f32[m, n]; %g = mul %h, %e1 : f32[m, n]; %r = cast %g : bf16[m, n]; put @o(0), %r; copy @o(0) to @y[m, n] {engine = tma, det = [m, n], check = [0, 1]}; }; }\n";

static const char example_linear_mma_placed[] =
    "tir placed sm_80\n"
    "layout #as = off(k:1, k:2, k:4, k:8, k:16, m:1, m:2^k:8, m:4^k:16, m:8, m:16, m:32, m:64); layout #bs = off(n:1, n:2, n:4, n:8, n:16, n:32, n:64, k:1^n:8, k:2^n:16, k:4^n:32, k:8, k:16)\n"
    "layout #xa = reg(k:1, m:8, k:8, k:16, m:16, m:32) lane(k:2, k:4, m:1, m:2, m:4) warp(m:64, 0); layout #wb = reg(k:1, k:8, k:16, n:8, n:16, n:32) lane(k:2, k:4, n:1, n:2, n:4) warp(0, n:64)\n"
    "layout #acc = reg(n:1, m:8, n:8, n:16, n:32, m:16, m:32) lane(n:2, n:4, m:1, m:2, m:4) warp(m:64, n:64)\n"
    "kernel linear(dim M, dim K, dim N, in @x: bf16[%M, %K], in @w: bf16[%K, %N], out @y: f32[%M, %N]) {\n"
    "  axis m of M by 128; axis n of N by 128; axis k of K by 32; %nm = cdiv %M, 128 : index; %nn = cdiv %N, 128 : index; %nt = mul %nm, %nn : index\n"
    "  launch %pid in 0..%nt args(%M, %K, %N, %nn; @x, @w, @y) {entry = \"linear_0\", warps = 4, smem = 49152} {\n"
    "    %pm = div %pid, %nn : index; %pn = rem %pid, %nn : index; %m0 = mul %pm, 128 : index; %n0 = mul %pn, 128 : index\n"
    "    with m in %m0..%M, n in %n0..%N {\n"
    "@a = buf.shared {stages = 3, at = 0} : bf16[m, k]#as; @bb = buf.shared {stages = 3, at = 24576} : bf16[k, n]#bs; @ab = chan @a, @bb {mode = group, stages = 3}; axis kp of K by 32\n"
    "%f0 = for %i in 0..2 carry (%f = 0:i32 : i32) : i32 {\n"
    "  acquire @ab(%f); %k0 = mul %i, 32 : index; with kp in %k0..%K {\n"
    "    copy @x[m, kp] to @a(%f)[k = kp] {engine = cp_async, check = [0, 1]}; copy @w[kp, n] to @bb(%f)[k = kp] {engine = cp_async, check = [0, 1]}; }; commit @ab(%f); %f1 = add %f, 1:i32 : i32; yield %f1\n"
    "}; %d, %pe, %fe = for k in 0..%K carry (%acc = 0.0:f32 : f32[m, n]#acc, %p = 0:i32 : i32, %f.1 = %f0 : i32) : f32[m, n]#acc, i32, i32 {\n"
    "  wait @ab(%p); acquire @ab(%f.1); %bk = begin k : index; %k1 = add %bk, 64 : index; with kp in %k1..%K {\n"
    "    copy @x[m, kp] to @a(%f.1)[k = kp] {engine = cp_async, check = [0, 1]}; copy @w[kp, n] to @bb(%f.1)[k = kp] {engine = cp_async, check = [0, 1]}; }; commit @ab(%f.1)\n"
    "  %xv = get @a(%p) : bf16[m, k]#xa; %wv = get @bb(%p) : bf16[k, n]#wb; %a1 = dot[k] %xv, %wv, %acc {unit = m16n8k16, rows = [m], cols = [n]} : f32[m, n]#acc; release @ab(%p); %p1 = add %p, 1:i32 : i32\n"
    "  %f2 = add %f.1, 1:i32 : i32; yield %a1, %p1, %f2; }\n"
    "store @y[m, n], %d {det = [m, n], check = [0, 1]}\n"
    "    }\n"
    "  }\n"
    "}\n";

static const char example_attention_scheduled[] =
    "tir scheduled sm_90a\n"
    "kernel attention_loop(dim B, dim H, dim S, dim D = 128, dim G, dim L, in @q: bf16[%B, %H, %S, %D], in @k: bf16[%B, %G, %L, %D], in @v: bf16[%B, %G, %L, %D], %c: f32, out @o: bf16[%B, %H, %S, %D]) {\n"
    "  axis i of S by 128; axis j of L by 128; axis d of D in 0..%D by 128; parallel %b in 0..%B, %h in 0..%H, i in 0..%S {\n"
    "    %r = div %H, %G : index; %g = div %h, %r : index; %off = sub %L, %S : index; %io = add i, %off : index[i]; %ei = end i : index; %eo = add %ei, %off : index; %hi = min %L, %eo : index\n"
    "    %qv = load @q[%b, %h, i, d] {check = [2]} : bf16[i, d]\n"
    "    %m1, %l1, %o1 = for j in 0..%hi carry (%m = -1e30:f32 : f32[i], %l = 0.0:f32 : f32[i], %acc = 0.0:f32 : f32[i, d]) : f32[i], f32[i], f32[i, d] {\n"
    "      %kv = load @k[%b, %g, j, d] {check = [2]} : bf16[j, d]; %s0 = dot[d] %qv, %kv : f32[i, j]; %s1 = mul %s0, %c : f32[i, j]; %ok = cmp.le j, %io : bool[i, j]\n"
    "      %s = select %ok, %s1, -inf:f32 : f32[i, j]; %t = reduce.max[j] %s : f32[i]; %mn = max %m, %t : f32[i]; %x = sub %s, %mn : f32[i, j]; %p = exp2 %x : f32[i, j]; %y = sub %m, %mn : f32[i]\n"
    "      %f = exp2 %y : f32[i]; %ls = reduce.sum[j] %p : f32[i]; %ln = fma %l, %f, %ls : f32[i]; %pt = cast %p : bf16[i, j]; %af = mul %acc, %f : f32[i, d]\n"
    "      %vv = load @v[%b, %g, j, d] {check = [2], guard = [j]} : bf16[j, d]; %an = dot[j] %pt, %vv, %af : f32[i, d]; yield %mn, %ln, %an; }; %lm = max %l1, 1e-30:f32 : f32[i]\n"
    "    %od = div %o1, %lm : f32[i, d]; %oc = cast %od : bf16[i, d]; store @o[%b, %h, i, d], %oc {det = [b, h, i, d], check = [2], guard = [i]}; }; }\n";

static const char example_conv_relu_pool_nests[] =
    "tir nests sm_90a\n"
    "kernel conv_relu_pool(dim B, dim H, dim W, dim C, dim K, dim R, dim S, dim P, dim Q, dim U, dim V, in @x: f16[%B, %H, %W, %C], in @f: f16[%K, %R, %S, %C], in @b: f16[%K], %pad: i32, out @y: f16[%B, %U, %V, %K]) {\n"
    "  axis n of B; axis u of U; axis v of V; axis k of K; axis c of C; axis i in 0..2; axis j in 0..2; %o = cast %pad : index; parallel n in 0..%B, u in 0..%U, v in 0..%V, k in 0..%K {\n"
    "    %u2 = mul u, 2 : index[u]; %p = add %u2, i : index[u, i]; %v2 = mul v, 2 : index[v]; %q = add %v2, j : index[v, j]\n"
    "    %d = for %r in 0..%R, %s in 0..%S, c in 0..%C carry (%acc = 0.0:f32 : f32[n, u, v, k, i, j]) : f32[n, u, v, k, i, j] {\n"
    "      %pr = add %p, %r : index[u, i]; %h = sub %pr, %o : index[u, i]; %qs = add %q, %s : index[v, j]; %w = sub %qs, %o : index[v, j]; %xv = load @x[n, %h, %w, c] : f16[n, u, v, c, i, j]\n"
    "      %fv = load @f[k, %r, %s, c] : f16[k, c]; %a = dot[c] %xv, %fv, %acc : f32[n, u, v, k, i, j]; yield %a; }; %bv = load @b[k] : f16[k]; %bf = cast %bv : f32[k]\n"
    "    %z = add %d, %bf : f32[n, u, v, k, i, j]; %g = max %z, 0.0:f32 : f32[n, u, v, k, i, j]; %m = reduce.max[i, j] %g : f32[n, u, v, k]; %t = cast %m : f16[n, u, v, k]\n"
    "    store @y[n, u, v, k], %t {det = [n, u, v, k]}; }; }\n";

// clang-format on

static const char *const examples[] = {
    example_linear_gelu_tensor, example_linear_gelu_nests,   example_linear_gelu_scheduled,
    example_linear_mma_placed,  example_attention_scheduled, example_conv_relu_pool_nests,
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

#endif

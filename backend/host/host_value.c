// Values of the host targets: vectors of lanes, arithmetic on them, shuffles.
//
// Arithmetic is arith.c's, but f16 and bf16 go through small_float.c's bit operations, so that no
// half-precision hardware or run-time library is needed.
#include "backend/host/host_impl.h"

#include <string.h>

enum { LANES_MAX = 64 };

LLVMTypeRef host_vector(Target *t, LLVMTypeRef element) {
    return LLVMVectorType(element, (unsigned)t->desc->lanes);
}

LLVMTypeRef host_lanes_int(Target *t, int bits) {
    return host_vector(t, target_int(t, bits));
}

LLVMTypeRef host_pointer(Target *t) {
    return LLVMPointerTypeInContext(t->llvm, 0);
}

V host_splat(Target *t, V scalar) {
    unsigned n = (unsigned)t->desc->lanes;
    V same[LANES_MAX];
    for (unsigned i = 0; i < n; i++)
        same[i] = scalar;
    if (LLVMIsConstant(scalar))
        return LLVMConstVector(same, n);
    LLVMTypeRef type = host_vector(t, LLVMTypeOf(scalar));
    V first = LLVMBuildInsertElement(t->builder, LLVMGetPoison(type), scalar,
                                     LLVMConstInt(target_int(t, 32), 0, false), "");
    return LLVMBuildShuffleVector(t->builder, first, LLVMGetPoison(type),
                                  LLVMConstNull(host_lanes_int(t, 32)), "");
}

V host_iota(Target *t, int bits, int64_t step) {
    unsigned n = (unsigned)t->desc->lanes;
    V lane[LANES_MAX];
    for (unsigned i = 0; i < n; i++)
        lane[i] = LLVMConstInt(target_int(t, bits), (unsigned long long)(step * i), true);
    return LLVMConstVector(lane, n);
}

V host_mask_any(Target *t, V mask) {
    LLVMTypeRef word = target_int(t, t->desc->lanes);
    V bits = LLVMBuildBitCast(t->builder, mask, word, "");
    return LLVMBuildICmp(t->builder, LLVMIntNE, bits, LLVMConstNull(word), "");
}

V host_alloca(Target *t, LLVMTypeRef type, unsigned align) {
    LLVMBasicBlockRef at = LLVMGetInsertBlock(t->builder);
    LLVMPositionBuilderAtEnd(t->builder, host_state(t)->entry);
    V p = LLVMBuildAlloca(t->builder, type, "");
    LLVMSetAlignment(p, align);
    LLVMPositionBuilderAtEnd(t->builder, at);
    return p;
}

V host_call(Target *t, const char *name, LLVMTypeRef result, int n, V *args) {
    LLVMTypeRef types[16];
    for (int i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef out = result ? result : LLVMVoidTypeInContext(t->llvm);
    LLVMTypeRef type = LLVMFunctionType(out, types, (unsigned)n, false);
    V f = LLVMGetNamedFunction(t->module, name);
    if (!f)
        f = LLVMAddFunction(t->module, name, type);
    return LLVMBuildCall2(t->builder, type, f, args, (unsigned)n, "");
}

V host_text(Target *t, const char *text) {
    V data = LLVMConstStringInContext2(t->llvm, text, strlen(text), false);
    V g = LLVMAddGlobal(t->module, LLVMTypeOf(data), "text");
    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}

// --- identity ----------------------------------------------------------------------------------

// In a role: among its warps.
Uni host_warp_id(Target *t) {
    if (!host_is_sim(t))
        return uni_int(t, 32, 0);
    V warp = host_state(t)->warp;
    if (t->role)
        warp = LLVMBuildSub(t->builder, warp, uni_int(t, 32, t->warp_first).v, "");
    return (Uni){warp};
}

Lane host_lane_id(Target *t) {
    return (Lane){host_iota(t, 32, 1)};
}

Lane host_splat_uni(Target *t, Uni x) {
    return (Lane){host_splat(t, x.v)};
}

Uni host_lane_first(Target *t, Lane x) {
    return (Uni){
        LLVMBuildExtractElement(t->builder, x.v, LLVMConstInt(target_int(t, 32), 0, false), "")};
}

// --- arithmetic --------------------------------------------------------------------------------

static Lane arith_wide(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                       const Lane *args) {
    Lane r = arith_generic(t, kind, sub, dtype, flags, args);
    if (r.v)
        return r;
    V x[3] = {0};
    for (int i = 0; i < op_info(kind)->nin && i < 3; i++)
        x[i] = args[i].v;
    r.v = host_math(t, kind, dtype, x);
    if (r.v)
        return r;
    target_fail(t, "no such operation on %s", dtype_name(dtype));
    return (Lane){LLVMGetUndef(host_vector(t, target_type(t, dtype)))};
}

Lane host_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                const Lane *args) {
    bool narrow = dtype == DT_F16 || dtype == DT_BF16 || dtype_is_fp8(dtype);
    if (!narrow || ((kind == OP_NEG || kind == OP_ABS) && !dtype_is_fp8(dtype)))
        return arith_wide(t, kind, sub, dtype, flags, args);
    Lane x[3], r;
    int n = op_info(kind)->nin;
    for (int i = 0; i < n && i < 3; i++)
        host_cast(t, dtype, DT_F32, 1, &args[i], &x[i]);
    Lane y = arith_wide(t, kind, sub, DT_F32, flags, x);
    if (kind == OP_CMP)
        return y;
    host_cast(t, DT_F32, dtype, 1, &y, &r);
    return r;
}

// Half-precision vectors are selected as their bits: no back end must know the type.
static LLVMTypeRef bits_type(Target *t, LLVMTypeRef type) {
    LLVMTypeRef e = LLVMGetElementType(type);
    if (e != target_type(t, DT_F16) && e != target_type(t, DT_BF16))
        return NULL;
    return host_lanes_int(t, 16);
}

Lane host_select(Target *t, Lane cond, Lane a, Lane b) {
    LLVMTypeRef type = LLVMTypeOf(a.v), bits = bits_type(t, type);
    if (!bits)
        return arith_select(t, cond, a, b);
    V x = LLVMBuildBitCast(t->builder, a.v, bits, ""),
      y = LLVMBuildBitCast(t->builder, b.v, bits, "");
    V r = LLVMBuildSelect(t->builder, cond.v, x, y, "");
    return (Lane){LLVMBuildBitCast(t->builder, r, type, "")};
}

Lane host_bitcast(Target *t, DType from, DType to, Lane x) {
    (void)from;
    return (Lane){LLVMBuildBitCast(t->builder, x.v, host_vector(t, target_type(t, to)), "")};
}

// --- shuffles ----------------------------------------------------------------------------------

static V shuffle_const(Target *t, V x, const uint32_t *source) {
    LLVMTypeRef type = LLVMTypeOf(x), bits = bits_type(t, type);
    unsigned n = (unsigned)t->desc->lanes;
    V index[LANES_MAX];
    for (unsigned i = 0; i < n; i++)
        index[i] = LLVMConstInt(target_int(t, 32), source[i], false);
    V y = bits ? LLVMBuildBitCast(t->builder, x, bits, "") : x;
    y = LLVMBuildShuffleVector(t->builder, y, LLVMGetPoison(LLVMTypeOf(y)),
                               LLVMConstVector(index, n), "");
    return bits ? LLVMBuildBitCast(t->builder, y, type, "") : y;
}

Lane host_shuffle_xor(Target *t, DType dtype, Lane x, uint32_t mask) {
    (void)dtype;
    uint32_t source[LANES_MAX], n = (uint32_t)t->desc->lanes;
    for (uint32_t i = 0; i < n; i++)
        source[i] = (i ^ mask) % n;
    return (Lane){shuffle_const(t, x.v, source)};
}

Lane host_shuffle_idx(Target *t, DType dtype, Lane x, Lane source) {
    (void)dtype;
    uint32_t n = (uint32_t)t->desc->lanes, lane[LANES_MAX];
    LLVMTypeRef i32 = target_int(t, 32);
    if (LLVMIsConstant(source.v)) {
        bool known = true;
        for (uint32_t i = 0; i < n; i++) {
            V s = LLVMGetAggregateElement(source.v, i);
            known = known && s && LLVMIsAConstantInt(s);
            lane[i] = known ? (uint32_t)LLVMConstIntGetZExtValue(s) % n : 0;
        }
        if (known)
            return (Lane){shuffle_const(t, x.v, lane)};
    }
    // Through memory: a variable extract from a register would do the same once per lane.
    LLVMTypeRef type = LLVMTypeOf(x.v), bits = bits_type(t, type);
    LLVMTypeRef vector = bits ? bits : type, element = LLVMGetElementType(vector);
    if (element == target_int(t, 1))
        vector = host_lanes_int(t, 8), element = target_int(t, 8);
    V y = x.v;
    if (bits)
        y = LLVMBuildBitCast(t->builder, y, bits, "");
    else if (vector != type)
        y = LLVMBuildZExt(t->builder, y, vector, "");
    V slot = host_alloca(t, vector, 64), r = LLVMGetPoison(vector);
    LLVMBuildStore(t->builder, y, slot);
    for (uint32_t i = 0; i < n; i++) {
        V k = LLVMConstInt(i32, i, false);
        V from = LLVMBuildExtractElement(t->builder, source.v, k, "");
        from = LLVMBuildAnd(t->builder, from, LLVMConstInt(i32, n - 1, false), "");
        V p = LLVMBuildGEP2(t->builder, element, slot, &from, 1, "");
        r = LLVMBuildInsertElement(t->builder, r, LLVMBuildLoad2(t->builder, element, p, ""), k,
                                   "");
    }
    if (bits)
        return (Lane){LLVMBuildBitCast(t->builder, r, type, "")};
    return (Lane){vector == type ? r : LLVMBuildTrunc(t->builder, r, type, "")};
}

void host_cast(Target *t, DType from, DType to, int n, const Lane *in, Lane *out) {
    for (int i = 0; i < n; i++)
        out[i].v = small_float_cast(t, from, to, in[i].v);
}

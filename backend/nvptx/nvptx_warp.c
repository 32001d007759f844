// Packing of registers, shuffles, barriers and matrix units of the nvptx target.
//
// Input: Lanes. Output: intrinsics; all threads of a warp (or program) execute them together.
// Fragments (PTX ISA, mma.m16n8k*): pairs of 16-bit or fours of 8-bit elements share a 32-bit word.
#include "backend/nvptx/nvptx_impl.h"

#include <stdio.h>
#include <string.h>

static int register_bits(DType dtype) {
    uint32_t bits = dtype_bits(dtype);
    return bits < 8 ? 8 : (int)bits;
}

// The integer with a register's bits (bool as a byte).
static V to_integer(Target *t, DType dtype, V x) {
    if (dtype == DT_BOOL)
        return nvptx_resize(t, x, 8);
    if (dtype_is_float(dtype) && !dtype_is_fp8(dtype))
        return LLVMBuildBitCast(t->builder, x, target_int(t, register_bits(dtype)), "");
    return x;
}

static V from_integer(Target *t, DType dtype, V x) {
    if (dtype == DT_BOOL)
        return LLVMBuildIsNotNull(t->builder, x, "");
    if (dtype_is_float(dtype) && !dtype_is_fp8(dtype))
        return LLVMBuildBitCast(t->builder, x, target_type(t, dtype), "");
    return x;
}

V nvptx_pack(Target *t, DType dtype, int n, const Lane *x) {
    if (n == 1)
        return to_integer(t, dtype, x[0].v);
    // A vector and a bitcast: LLVM sees through pack and unpack.
    bool integer = dtype == DT_BOOL;
    LLVMTypeRef element = integer ? target_int(t, 8) : target_type(t, dtype);
    V v = LLVMGetUndef(LLVMVectorType(element, (unsigned)n));
    for (int i = 0; i < n; i++) {
        V e = integer ? to_integer(t, dtype, x[i].v) : x[i].v;
        v = LLVMBuildInsertElement(t->builder, v, e, nvptx_const(t, 32, i), "");
    }
    return LLVMBuildBitCast(t->builder, v, target_int(t, register_bits(dtype) * n), "");
}

void nvptx_unpack(Target *t, DType dtype, int n, V word, Lane *out) {
    if (n == 1) {
        out[0].v = from_integer(t, dtype, word);
        return;
    }
    bool integer = dtype == DT_BOOL;
    LLVMTypeRef element = integer ? target_int(t, 8) : target_type(t, dtype);
    V v = LLVMBuildBitCast(t->builder, word, LLVMVectorType(element, (unsigned)n), "");
    for (int i = 0; i < n; i++) {
        V e = LLVMBuildExtractElement(t->builder, v, nvptx_const(t, 32, i), "");
        out[i].v = integer ? from_integer(t, dtype, e) : e;
    }
}

// --- shuffles ---

static V shuffle_word(Target *t, const char *name, V x, V source) {
    V args[4] = {nvptx_const(t, 32, -1), x, source, nvptx_const(t, 32, 31)};
    return nvptx_call(t, name, 4, args);
}

static Lane shuffle(Target *t, const char *name, DType dtype, Lane x, V source) {
    LLVMBuilderRef b = t->builder;
    V word = to_integer(t, dtype, x.v);
    int bits = (int)LLVMGetIntTypeWidth(LLVMTypeOf(word));
    if (bits <= 32) {
        V r = shuffle_word(t, name, nvptx_resize(t, word, 32), source);
        return (Lane){from_integer(t, dtype, nvptx_resize(t, r, bits))};
    }
    V high = LLVMBuildLShr(b, word, nvptx_const(t, 64, 32), "");
    V lo = shuffle_word(t, name, nvptx_resize(t, word, 32), source);
    V hi = shuffle_word(t, name, nvptx_resize(t, high, 32), source);
    hi = LLVMBuildShl(b, nvptx_resize(t, hi, 64), nvptx_const(t, 64, 32), "");
    return (Lane){from_integer(t, dtype, LLVMBuildOr(b, hi, nvptx_resize(t, lo, 64), ""))};
}

Lane nvptx_shuffle_xor(Target *t, DType dtype, Lane x, uint32_t mask) {
    return shuffle(t, "llvm.nvvm.shfl.sync.bfly.i32", dtype, x, nvptx_const(t, 32, mask));
}

Lane nvptx_shuffle_idx(Target *t, DType dtype, Lane x, Lane source) {
    return shuffle(t, "llvm.nvvm.shfl.sync.idx.i32", dtype, x, source.v);
}

// --- barriers: the number must be an immediate ---

// In a role: of its warps. Barriers 15, 14, .. are kept for that.
void nvptx_block_barrier(Target *t) {
    if (t->role) {
        nvptx_named_barrier(t, 16 - t->role, t->warps);
        return;
    }
    V id = nvptx_const(t, 32, 0);
    nvptx_call(t, "llvm.nvvm.barrier.cta.sync.aligned.all", 1, &id);
}

void nvptx_named_barrier(Target *t, int id, int warps) {
    V args[2] = {nvptx_const(t, 32, id), nvptx_const(t, 32, warps * 32)};
    nvptx_call(t, "llvm.nvvm.barrier.cta.sync.aligned.count", 2, args);
}

// --- matrix units ---

// Elements in a word of an operand, and the type of the word.
static LLVMTypeRef mma_word(Target *t, MmaUnit unit, DType dtype, int *per) {
    *per = unit == MMA_M8N8K4 || unit == MMA_M16N8K8_TF32 ? 1 : unit == MMA_M16N8K32 ? 4 : 2;
    if (dtype == DT_F64)
        return LLVMDoubleTypeInContext(t->llvm);
    return dtype == DT_F16 ? LLVMVectorType(LLVMHalfTypeInContext(t->llvm), 2)
                           : LLVMInt32TypeInContext(t->llvm);
}

static const char *mma_name(MmaUnit unit, DType da, DType db) {
    bool same = da == db;
    switch (unit) {
    case MMA_M16N8K16:
        return !same          ? NULL
               : da == DT_F16 ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
                              : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    case MMA_M16N8K8:
        return !same          ? NULL
               : da == DT_F16 ? "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"
                              : "llvm.nvvm.mma.m16n8k8.row.col.bf16";
    case MMA_M16N8K8_TF32:
        return "llvm.nvvm.mma.m16n8k8.row.col.tf32";
    case MMA_M16N8K32:
        if (da == DT_I8)
            return same ? "llvm.nvvm.mma.m16n8k32.row.col.s8"
                        : "llvm.nvvm.mma.m16n8k32.row.col.s8.u8";
        if (da == DT_U8)
            return same ? "llvm.nvvm.mma.m16n8k32.row.col.u8"
                        : "llvm.nvvm.mma.m16n8k32.row.col.u8.s8";
        if (da == DT_E4M3)
            return same ? "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"
                        : "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32";
        return same ? "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32"
                    : "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32";
    case MMA_M8N8K4:
        return "llvm.nvvm.mma.m8n8k4.row.col.f64";
    }
    return NULL;
}

// The words of `n` elements; returns how many.
static int mma_words(Target *t, MmaUnit unit, DType dtype, int n, const Lane *x, V *out) {
    int per, words = 0;
    LLVMTypeRef type = mma_word(t, unit, dtype, &per);
    for (int i = 0; i < n; i += per) {
        V word = x[i].v;
        if (unit == MMA_M16N8K8_TF32)
            word = nvptx_call(t, "llvm.nvvm.f2tf32.rna", 1, &word);
        else if (per > 1)
            word = nvptx_pack(t, dtype, per, x + i);
        out[words++] = LLVMBuildBitCast(t->builder, word, type, "");
    }
    return words;
}

void nvptx_mma(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
               const Lane *c, Lane *out) {
    MmaShape shape = mma_shape(unit);
    const char *name = mma_name(unit, da, db);
    if (!name) {
        target_fail(t, "no matrix unit for %s and %s", dtype_name(da), dtype_name(db));
        for (int i = 0; i < shape.c; i++)
            out[i] = c[i];
        return;
    }
    V args[16];
    int n = mma_words(t, unit, da, shape.a, a, args);
    n += mma_words(t, unit, db, shape.b, b, args + n);
    for (int i = 0; i < shape.c; i++)
        args[n++] = c[i].v;
    V r = nvptx_call(t, name, n, args);
    for (int i = 0; i < shape.c; i++)
        out[i].v = LLVMBuildExtractValue(t->builder, r, (unsigned)i, "");
}

// Recognises offsets that grow evenly over the lanes, so that a vector can be moved at once instead
// of lane by lane.
//
//   add (splat %a), <0, 4, 8, 12>   =>   base %a, step 4
//
// Input: a vector of integers as the lowering built it. Output: a scalar in front of the current
// instruction. Sign extension is looked through: a lane that is used has not wrapped (an offset
// that wrapped would lie outside its tensor).
#include "backend/host/host_impl.h"

enum { DEPTH_MAX = 16 };

static bool int_of(V v, int64_t *x) {
    if (!v || !LLVMIsAConstantInt(v))
        return false;
    *x = LLVMConstIntGetSExtValue(v);
    return true;
}

static Affine affine_const(Target *t, V v) {
    Affine a = {.ok = true};
    if (LLVMIsNull(v))
        return a;
    int64_t second;
    if (!int_of(LLVMGetAggregateElement(v, 0), &a.constant) ||
        !int_of(LLVMGetAggregateElement(v, 1), &second))
        return (Affine){0};
    a.step = second - a.constant;
    for (int i = 2; i < t->desc->lanes; i++) {
        int64_t x;
        if (!int_of(LLVMGetAggregateElement(v, (unsigned)i), &x) || x != a.constant + i * a.step)
            return (Affine){0};
    }
    return a;
}

// shufflevector (insertelement _, %s, 0), _, zeroinitializer
static Affine affine_splat(V v) {
    for (unsigned i = 0; i < LLVMGetNumMaskElements(v); i++)
        if (LLVMGetMaskValue(v, i) != 0)
            return (Affine){0};
    V first = LLVMGetOperand(v, 0);
    int64_t at;
    if (!LLVMIsAInsertElementInst(first) || !int_of(LLVMGetOperand(first, 2), &at) || at)
        return (Affine){0};
    return (Affine){.ok = true, .base = LLVMGetOperand(first, 1)};
}

// The uniform part as one scalar of the given type.
static V affine_scalar(Target *t, const Affine *a, LLVMTypeRef type) {
    V c = LLVMConstInt(type, (unsigned long long)a->constant, true);
    if (!a->base)
        return c;
    return a->constant ? LLVMBuildAdd(t->builder, a->base, c, "") : a->base;
}

static Affine affine_add(Target *t, Affine x, Affine y, bool minus) {
    Affine r = {.ok = true};
    r.constant = minus ? x.constant - y.constant : x.constant + y.constant;
    r.step = minus ? x.step - y.step : x.step + y.step;
    if (!y.base)
        r.base = x.base;
    else if (minus)
        r.base = x.base ? LLVMBuildSub(t->builder, x.base, y.base, "")
                        : LLVMBuildNeg(t->builder, y.base, "");
    else
        r.base = x.base ? LLVMBuildAdd(t->builder, x.base, y.base, "") : y.base;
    return r;
}

static Affine affine_mul(Target *t, Affine x, Affine y, LLVMTypeRef type) {
    if (x.base || x.step) {
        Affine swap = x;
        x = y;
        y = swap;
    }
    if (x.base || x.step) { // both vary: fine when neither does over the lanes
        if (x.step || y.step)
            return (Affine){0};
        V p = LLVMBuildMul(t->builder, affine_scalar(t, &x, type), affine_scalar(t, &y, type), "");
        return (Affine){.ok = true, .base = p};
    }
    Affine r = {.ok = true, .constant = x.constant * y.constant, .step = x.constant * y.step};
    if (y.base)
        r.base = LLVMBuildMul(t->builder, y.base,
                              LLVMConstInt(type, (unsigned long long)x.constant, true), "");
    return r;
}

static Affine affine_of(Target *t, V v, int depth) {
    if (LLVMIsConstant(v))
        return affine_const(t, v);
    if (!LLVMIsAInstruction(v) || depth == DEPTH_MAX)
        return (Affine){0};
    LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (opcode == LLVMShuffleVector)
        return affine_splat(v);
    if (opcode == LLVMSelect) { // by a constant: guards that are known to hold
        V cond = LLVMGetOperand(v, 0);
        if (!LLVMIsConstant(cond))
            return (Affine){0};
        bool yes = cond == LLVMConstAllOnes(LLVMTypeOf(cond));
        if (!yes && !LLVMIsNull(cond))
            return (Affine){0};
        return affine_of(t, LLVMGetOperand(v, yes ? 1 : 2), depth + 1);
    }
    bool binary = opcode == LLVMAdd || opcode == LLVMSub || opcode == LLVMMul || opcode == LLVMShl;
    if (!binary && opcode != LLVMSExt && opcode != LLVMZExt)
        return (Affine){0};
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(v));
    V operand = LLVMGetOperand(v, 0);
    Affine x = affine_of(t, operand, depth + 1);
    if (!x.ok)
        return x;
    if (!binary) {
        LLVMTypeRef inner = LLVMGetElementType(LLVMTypeOf(operand));
        if (opcode == LLVMZExt) {
            if (x.step)
                return (Affine){0};
            V s = affine_scalar(t, &x, inner);
            return (Affine){.ok = true, .base = LLVMBuildZExt(t->builder, s, type, "")};
        }
        if (x.base) {
            x.base = LLVMBuildSExt(t->builder, affine_scalar(t, &x, inner), type, "");
            x.constant = 0;
        }
        return x;
    }
    Affine y = affine_of(t, LLVMGetOperand(v, 1), depth + 1);
    if (!y.ok)
        return y;
    if (opcode == LLVMShl) {
        if (y.base || y.step || y.constant < 0 || y.constant > 31)
            return (Affine){0};
        y.constant = INT64_C(1) << y.constant;
        return affine_mul(t, x, y, type);
    }
    return opcode == LLVMMul ? affine_mul(t, x, y, type) : affine_add(t, x, y, opcode == LLVMSub);
}

Affine host_affine(Target *t, V offset) {
    Affine a = {.ok = true};
    if (!offset)
        return a;
    a = affine_of(t, offset, 0);
    if (!a.ok)
        return a;
    // The caller adds 64-bit numbers.
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(offset));
    if (a.base) {
        V s = affine_scalar(t, &a, type);
        a.base = LLVMBuildIntCast2(t->builder, s, target_int(t, 64), true, "");
        a.constant = 0;
    }
    return a;
}

// --- predicates ---------------------------------------------------------------------------------

static V uniform_compare(Target *t, V v) {
    V a = LLVMGetOperand(v, 0), b = LLVMGetOperand(v, 1);
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(a));
    Affine x = affine_of(t, a, 0), y = affine_of(t, b, 0);
    if (!x.ok || !y.ok || x.step || y.step)
        return NULL;
    V p = affine_scalar(t, &x, type), q = affine_scalar(t, &y, type);
    return LLVMBuildICmp(t->builder, LLVMGetICmpPredicate(v), p, q, "");
}

static V uniform_mask(Target *t, V v, int depth) {
    if (LLVMIsConstant(v)) {
        bool all = v == LLVMConstAllOnes(LLVMTypeOf(v));
        return all || LLVMIsNull(v) ? LLVMConstInt(target_int(t, 1), all, false) : NULL;
    }
    if (!LLVMIsAInstruction(v) || depth == DEPTH_MAX)
        return NULL;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(v);
    if (opcode == LLVMShuffleVector)
        return affine_splat(v).base;
    if (opcode == LLVMICmp && LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind)
        return uniform_compare(t, v);
    if (opcode != LLVMAnd && opcode != LLVMOr)
        return NULL;
    V a = uniform_mask(t, LLVMGetOperand(v, 0), depth + 1);
    V b = a ? uniform_mask(t, LLVMGetOperand(v, 1), depth + 1) : NULL;
    if (!b)
        return NULL;
    return opcode == LLVMAnd ? LLVMBuildAnd(t->builder, a, b, "")
                             : LLVMBuildOr(t->builder, a, b, "");
}

V host_uniform_mask(Target *t, V mask) {
    return uniform_mask(t, mask, 0);
}

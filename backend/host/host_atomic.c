// Atomics of `cpu`: one lane after another, because programs run on several threads and lanes may
// meet.
//
// Floats of 8 and 16 bits have no instruction anywhere: a compare-and-swap loop around f32
// arithmetic.
#include "backend/host/host_impl.h"

static bool atomic_operation(AtomicKind kind, DType dtype, LLVMAtomicRMWBinOp *op) {
    bool is_float = dtype_is_float(dtype), is_signed = dtype_is_signed(dtype);
    bool is_bits =
        kind == ATOMIC_AND || kind == ATOMIC_OR || kind == ATOMIC_XOR || kind == ATOMIC_XCHG;
    if (dtype == DT_BOOL && !is_bits)
        return false;
    switch (kind) {
    case ATOMIC_ADD:
        *op = is_float ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
        return true;
    case ATOMIC_MAX:
        *op = is_float    ? LLVMAtomicRMWBinOpFMaximum
              : is_signed ? LLVMAtomicRMWBinOpMax
                          : LLVMAtomicRMWBinOpUMax;
        return true;
    case ATOMIC_MIN:
        *op = is_float    ? LLVMAtomicRMWBinOpFMinimum
              : is_signed ? LLVMAtomicRMWBinOpMin
                          : LLVMAtomicRMWBinOpUMin;
        return true;
    case ATOMIC_AND:
        *op = LLVMAtomicRMWBinOpAnd;
        return !is_float;
    case ATOMIC_OR:
        *op = LLVMAtomicRMWBinOpOr;
        return !is_float;
    case ATOMIC_XOR:
        *op = LLVMAtomicRMWBinOpXor;
        return !is_float;
    case ATOMIC_XCHG:
        *op = LLVMAtomicRMWBinOpXchg;
        return true;
    case ATOMIC_CAS: // host_cas
    case ATOMIC_COUNT:
        break;
    }
    return false;
}

// Floats of 8 and 16 bits: compare-and-swap of the bits around f32 arithmetic on a vector of which
// one lane is looked at.
static V atomic_small(Target *t, DType dtype, AtomicKind kind, V p, V value, V lane) {
    LLVMBuilderRef b = t->builder;
    static const OpKind ops[ATOMIC_COUNT] = {
        [ATOMIC_ADD] = OP_ADD, [ATOMIC_MAX] = OP_MAX, [ATOMIC_MIN] = OP_MIN};
    int width = (int)dtype_bits(dtype);
    LLVMTypeRef bits = target_int(t, width), type = host_vector(t, target_type(t, dtype));
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef again = LLVMAppendBasicBlockInContext(t->llvm, t->function, "again");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(t->llvm, t->function, "done");
    V first = LLVMBuildLoad2(b, bits, p, "");
    LLVMSetAlignment(first, (unsigned)width / 8);
    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMBuildBr(b, again);
    LLVMPositionBuilderAtEnd(b, again);
    V old = LLVMBuildPhi(b, bits, "");
    LLVMAddIncoming(old, &first, &before, 1);
    V next = value;
    if (kind != ATOMIC_XCHG) {
        Lane x[2] = {{LLVMBuildBitCast(b, host_splat(t, old), type, "")},
                     {LLVMBuildBitCast(b, host_splat(t, value), type, "")}};
        V sum = host_arith(t, ops[kind], 0, dtype, 0, x).v;
        sum = LLVMBuildBitCast(b, sum, host_lanes_int(t, width), "");
        next = LLVMBuildExtractElement(b, sum, lane, "");
    }
    V pair = LLVMBuildAtomicCmpXchg(b, p, old, next, LLVMAtomicOrderingMonotonic,
                                    LLVMAtomicOrderingMonotonic, false);
    V seen = LLVMBuildExtractValue(b, pair, 0, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(old, &seen, &latch, 1);
    LLVMBuildCondBr(b, LLVMBuildExtractValue(b, pair, 1, ""), done, again);
    LLVMPositionBuilderAtEnd(b, done);
    return seen;
}

// One lane's operation, at `p`; gives what was there.
typedef V Step(Target *t, const void *what, V p, V lane);

// Runs `step` for one lane after another, where the mask is set; gives the old values, elsewhere 0.
static V each_lane(Target *t, Ptr p, Lane pred, LLVMTypeRef raw, Step *step, const void *what) {
    LLVMBuilderRef b = t->builder;
    V pointers = host_lane_pointers(t, p), mask = host_mask(pred), result = LLVMConstNull(raw);
    for (int i = 0; i < t->desc->lanes; i++) {
        V k = LLVMConstInt(target_int(t, 32), (unsigned)i, false);
        LLVMBasicBlockRef from = LLVMGetInsertBlock(b), exit = NULL;
        if (mask) {
            LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(t->llvm, t->function, "lane");
            exit = LLVMAppendBasicBlockInContext(t->llvm, t->function, "next");
            LLVMBuildCondBr(b, LLVMBuildExtractElement(b, mask, k, ""), then, exit);
            LLVMPositionBuilderAtEnd(b, then);
        }
        V seen = step(t, what, LLVMBuildExtractElement(b, pointers, k, ""), k);
        V with = LLVMBuildInsertElement(b, result, seen, k, "");
        if (mask) {
            LLVMBasicBlockRef end = LLVMGetInsertBlock(b);
            LLVMBuildBr(b, exit);
            LLVMPositionBuilderAtEnd(b, exit);
            V phi = LLVMBuildPhi(b, LLVMTypeOf(result), "");
            LLVMAddIncoming(phi, (V[]){result, with}, (LLVMBasicBlockRef[]){from, end}, 2);
            with = phi;
        }
        result = with;
    }
    return result;
}

typedef struct Modify {
    DType dtype;
    AtomicKind kind;
    LLVMAtomicRMWBinOp op;
    V raw; // the lanes' values as they lie in memory
} Modify;

static V modify_step(Target *t, const void *what, V p, V lane) {
    const Modify *m = what;
    V x = LLVMBuildExtractElement(t->builder, m->raw, lane, "");
    if (dtype_is_float(m->dtype) && dtype_bits(m->dtype) < 32)
        return atomic_small(t, m->dtype, m->kind, p, x, lane);
    return LLVMBuildAtomicRMW(t->builder, m->op, p, x, LLVMAtomicOrderingMonotonic, false);
}

void host_atomic(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                 Lane *old) {
    Modify m = {.dtype = access->dtype, .kind = kind, .op = LLVMAtomicRMWBinOpXchg};
    if (!atomic_operation(kind, access->dtype, &m.op)) {
        target_fail(t, "no such operation on %s", dtype_name(access->dtype));
        return;
    }
    m.raw = host_to_memory(t, access->dtype, v.v);
    V result = each_lane(t, p, pred, LLVMTypeOf(m.raw), modify_step, &m);
    if (old)
        old->v = host_from_memory(t, access->dtype, result);
}

typedef struct Compare {
    V expected, next; // as integers of the element's width
} Compare;

static V compare_step(Target *t, const void *what, V p, V lane) {
    const Compare *c = what;
    V pair = LLVMBuildAtomicCmpXchg(
        t->builder, p, LLVMBuildExtractElement(t->builder, c->expected, lane, ""),
        LLVMBuildExtractElement(t->builder, c->next, lane, ""), LLVMAtomicOrderingMonotonic,
        LLVMAtomicOrderingMonotonic, false);
    return LLVMBuildExtractValue(t->builder, pair, 0, "");
}

void host_cas(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v, Lane *old) {
    V next = host_to_memory(t, access->dtype, v.v);
    LLVMTypeRef type = LLVMTypeOf(next), bits = host_lanes_int(t, (int)dtype_bits(access->dtype));
    Compare c = {.expected = LLVMBuildBitCast(
                     t->builder, host_to_memory(t, access->dtype, expected.v), bits, ""),
                 .next = LLVMBuildBitCast(t->builder, next, bits, "")};
    V result = each_lane(t, p, pred, bits, compare_step, &c);
    if (old)
        old->v = host_from_memory(t, access->dtype, LLVMBuildBitCast(t->builder, result, type, ""));
}

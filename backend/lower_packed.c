// Loads and stores of i4 and u4, two elements to a byte, the lower nibble first.
//
// Input: an access whose unit is a nibble: strides, offsets, alignment and vectors are counted in
// elements. Output: accesses of bytes and their unpacking in registers. A vector starts at an even
// element and is whole bytes, which one thread loads or stores. An element alone is loaded with its
// byte; its store changes four bits of the byte by two atomics, because the other four may be
// another thread's. Invariant: as for other tensors, memory is touched only where the predicate
// holds.
#include "backend/lower.h"

enum { NIBBLE_MASK = 15 };

static Lane byte_op(Lower *l, OpKind kind, DType dtype, Lane x, int64_t y) {
    return lane_op2(l->t, kind, dtype, x, lane_int(l->t, dtype, y));
}

// Address of the byte of an element; *odd, if asked for: 1 (an i64) where it is the upper nibble.
static Ptr byte_pointer(Lower *l, TileAccess *a, uint32_t reg, Lane *odd) {
    Target *t = l->t;
    Uni uniform;
    Ptr nibble = access_units(l, a, reg, &uniform);
    // base + uniform / 2 + imm / 2 bytes; the halves that are left go to the lanes.
    LLVMValueRef one = uni_int(t, 64, 1).v;
    LLVMValueRef low = LLVMBuildAnd(t->builder, uniform.v, one, "");
    LLVMValueRef bytes = LLVMBuildAShr(t->builder, uniform.v, one, "");
    LLVMValueRef base = LLVMBuildGEP2(t->builder, target_int(t, 8), nibble.base.v, &bytes, 1, "");
    int64_t left = nibble.imm & 1;
    Uni rest = uni_add(t, (Uni){low}, uni_int(t, 64, left));
    Ptr p = {.base = {base}, .imm = (nibble.imm - left) / 2};
    Lane whole = nibble.offset;
    if (!whole.v)
        whole = t->ops->splat(t, rest);
    else if (!uni_is_int(rest, 0))
        whole = lane_op2(t, OP_ADD, DT_INDEX, whole, t->ops->splat(t, rest));
    if (nibble.offset.v || !uni_is_int(rest, 0))
        p.offset = byte_op(l, OP_SHR, DT_INDEX, whole, 1);
    if (odd)
        *odd = byte_op(l, OP_AND, DT_INDEX, whole, 1);
    return p;
}

static Access byte_access(Lower *l, const TileAccess *a, const Op *op) {
    Access access = access_plain(l, a, 1, op);
    int bytes = 1 << a->vector_log2 >> 1;
    access.dtype = DT_U8;
    access.width = bytes ? bytes : 1;
    access.align = bytes > 1 && a->align > 1 ? a->align / 2 : 1;
    return access;
}

// The value of the lower four bits, as a register of i4 or u4 has it.
static Lane low_nibble(Lower *l, DType dtype, Lane byte) {
    if (dtype == DT_U4)
        return byte_op(l, OP_AND, DT_U8, byte, NIBBLE_MASK);
    return byte_op(l, OP_SHR, DT_I8, byte_op(l, OP_SHL, DT_I8, byte, 4), 4);
}

static Lane high_nibble(Lower *l, DType dtype, Lane byte) {
    return byte_op(l, OP_SHR, dtype == DT_U4 ? DT_U8 : DT_I8, byte, 4);
}

// 4 in the lanes whose element is the upper nibble, else 0.
static Lane shift_of(Lower *l, Lane odd) {
    return byte_op(l, OP_SHL, DT_U8, lane_resize(l->t, odd, DT_INDEX, DT_U8), 2);
}

void packed_load(Lower *l, const Op *op, TileAccess *a, uint32_t reg, Lane pred, Lane *out) {
    Target *t = l->t;
    DType dtype = a->mem->dtype;
    Access access = byte_access(l, a, op);
    Lane byte[PACKED_WIDTH_MAX / 2], odd;
    if (a->vector_log2 == 0) {
        Ptr p = byte_pointer(l, a, reg, &odd);
        t->ops->load_global(t, &access, p, pred, NULL, byte);
        byte[0] = lane_op2(t, OP_SHR, DT_U8, byte[0], shift_of(l, odd));
        out[0] = low_nibble(l, dtype, byte[0]);
        return;
    }
    t->ops->load_global(t, &access, byte_pointer(l, a, reg, NULL), pred, NULL, byte);
    for (int i = 0; i < access.width; i++) {
        out[2 * i] = low_nibble(l, dtype, byte[i]);
        out[2 * i + 1] = high_nibble(l, dtype, byte[i]);
    }
}

// The nibble becomes 0, then the value: nobody reads it between, as nobody else may access an
// element that this store writes.
static void store_alone(Lower *l, const Access *access, TileAccess *a, uint32_t reg, Lane pred,
                        Lane value) {
    Target *t = l->t;
    Lane odd;
    Ptr p = byte_pointer(l, a, reg, &odd);
    Lane shift = shift_of(l, odd);
    Lane bits = byte_op(l, OP_AND, DT_U8, value, NIBBLE_MASK);
    bits = lane_op2(t, OP_SHL, DT_U8, bits, shift);
    Lane others = lane_op2(t, OP_SHR, DT_U8, lane_int(t, DT_U8, 0xf0), shift);
    t->ops->atomic(t, access, ATOMIC_AND, p, pred, others, NULL);
    t->ops->atomic(t, access, ATOMIC_OR, p, pred, bits, NULL);
}

void packed_store(Lower *l, const Op *op, TileAccess *a, uint32_t reg, Lane pred,
                  const Lane *value) {
    Target *t = l->t;
    Access access = byte_access(l, a, op);
    if (a->vector_log2 == 0) {
        store_alone(l, &access, a, reg, pred, value[0]);
        return;
    }
    Lane byte[PACKED_WIDTH_MAX / 2];
    for (int i = 0; i < access.width; i++) {
        Lane high = byte_op(l, OP_SHL, DT_U8, value[2 * i + 1], 4);
        byte[i] =
            lane_op2(t, OP_OR, DT_U8, byte_op(l, OP_AND, DT_U8, value[2 * i], NIBBLE_MASK), high);
    }
    t->ops->store_global(t, &access, byte_pointer(l, a, reg, NULL), pred, byte);
}

// Memory, barriers and matrix units of `sim`: every operation is a call of a helper of sim.h, with
// the lanes' values in arrays on the warp's stack.
#include "backend/host/host_sim_slots.h"

// Stores offset + imm of every lane as i64 in a slot.
static void put_global_offsets(Target *t, int which, Ptr p) {
    LLVMTypeRef type = host_lanes_int(t, 64);
    V off = p.offset.v ? LLVMBuildIntCast2(t->builder, p.offset.v, type, true, "")
                       : LLVMConstNull(type);
    if (p.imm)
        off = LLVMBuildAdd(t->builder, off, arith_int_like(t, type, p.imm), "");
    slot_put(t, which, 0, off);
}

void put_shared_offsets(Target *t, int which, Shared p) {
    LLVMTypeRef type = host_lanes_int(t, 32);
    V off = p.offset.v ? p.offset.v : LLVMConstNull(type);
    if (p.base.v)
        off = LLVMBuildAdd(t->builder, off, host_splat(t, p.base.v), "");
    if (p.imm)
        off = LLVMBuildAdd(t->builder, off, arith_int_like(t, type, p.imm), "");
    slot_put(t, which, 0, off);
}

// An access that the slots cannot hold never comes from a layout of at most 16 bytes a lane.
static bool fits(Target *t, const Access *access) {
    int bytes = host_memory_bytes(t, access->dtype) * t->desc->lanes * access->width;
    if (bytes <= HOST_SCRATCH_BYTES)
        return true;
    target_fail(t, "access of %d bytes", bytes);
    return false;
}

static void put_values(Target *t, const Access *access, int which, const Lane *in) {
    if (!fits(t, access))
        return;
    int bytes = host_memory_bytes(t, access->dtype) * t->desc->lanes;
    for (int i = 0; i < access->width; i++)
        slot_put(t, which, i * bytes, host_to_memory(t, access->dtype, in[i].v));
}

static LLVMTypeRef memory_type(Target *t, DType dtype) {
    if (dtype == DT_F32 || dtype == DT_F64)
        return host_vector(t, target_type(t, dtype));
    return host_lanes_int(t, 8 * host_memory_bytes(t, dtype));
}

static void get_values(Target *t, const Access *access, int which, Lane *out) {
    int bytes = host_memory_bytes(t, access->dtype) * t->desc->lanes;
    for (int i = 0; i < access->width; i++)
        out[i].v = host_from_memory(t, access->dtype,
                                    slot_get(t, which, i * bytes, memory_type(t, access->dtype)));
}

// What lanes hold that are off.
static void put_fill(Target *t, const Access *access, int which, Lane pred, const Lane *fill) {
    if (!pred.v || !fits(t, access))
        return;
    int bytes = host_memory_bytes(t, access->dtype) * t->desc->lanes;
    for (int i = 0; i < access->width; i++) {
        V x = fill && fill[i].v ? host_to_memory(t, access->dtype, fill[i].v)
                                : LLVMConstNull(memory_type(t, access->dtype));
        slot_put(t, which, i * bytes, x);
    }
}

void sim_emit_load_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                          Lane *out) {
    put_global_offsets(t, SLOT_OFFSET, p);
    put_fill(t, access, SLOT_VALUE, pred, fill);
    V args[] = {warp_of(t),
                p.base.v,
                slot(t, SLOT_OFFSET),
                mask_word(t, pred),
                slot(t, SLOT_VALUE),
                int32(t, host_memory_bytes(t, access->dtype)),
                int32(t, access->width),
                span_of(t)};
    host_call(t, "sim_load_global", NULL, 8, args);
    get_values(t, access, SLOT_VALUE, out);
}

void sim_emit_store_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in) {
    put_global_offsets(t, SLOT_OFFSET, p);
    put_values(t, access, SLOT_VALUE, in);
    V args[] = {warp_of(t),
                p.base.v,
                slot(t, SLOT_OFFSET),
                mask_word(t, pred),
                slot(t, SLOT_VALUE),
                int32(t, host_memory_bytes(t, access->dtype)),
                int32(t, access->width),
                span_of(t)};
    host_call(t, "sim_store_global", NULL, 8, args);
}

void sim_emit_atomic(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                     Lane *old) {
    put_global_offsets(t, SLOT_OFFSET, p);
    put_values(t, access, SLOT_VALUE, &v);
    V result = LLVMConstNull(host_pointer(t));
    if (old) {
        put_fill(t, access, SLOT_RESULT, pred, NULL);
        result = slot(t, SLOT_RESULT);
    }
    V args[] = {warp_of(t),          p.base.v,       slot(t, SLOT_OFFSET),
                mask_word(t, pred),  int32(t, kind), int32(t, access->dtype),
                slot(t, SLOT_VALUE), result,         span_of(t)};
    host_call(t, "sim_atomic_global", NULL, 9, args);
    if (old)
        get_values(t, access, SLOT_RESULT, old);
}

void sim_emit_cas(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v,
                  Lane *old) {
    put_global_offsets(t, SLOT_OFFSET, p);
    put_values(t, access, SLOT_VALUE, &v);
    put_values(t, access, SLOT_RESULT, &expected);
    V args[] = {warp_of(t),
                p.base.v,
                slot(t, SLOT_OFFSET),
                mask_word(t, pred),
                int32(t, host_memory_bytes(t, access->dtype)),
                slot(t, SLOT_VALUE),
                slot(t, SLOT_RESULT),
                span_of(t)};
    host_call(t, "sim_cas_global", NULL, 8, args);
    if (old)
        get_values(t, access, SLOT_RESULT, old);
}

void sim_emit_load_shared(Target *t, const Access *access, Shared p, Lane pred, Lane *out) {
    put_shared_offsets(t, SLOT_OFFSET, p);
    put_fill(t, access, SLOT_VALUE, pred, NULL);
    V args[] = {warp_of(t),
                slot(t, SLOT_OFFSET),
                mask_word(t, pred),
                slot(t, SLOT_VALUE),
                int32(t, host_memory_bytes(t, access->dtype)),
                int32(t, access->width),
                span_of(t)};
    host_call(t, "sim_load_shared", NULL, 7, args);
    get_values(t, access, SLOT_VALUE, out);
}

void sim_emit_store_shared(Target *t, const Access *access, Shared p, Lane pred, const Lane *in) {
    put_shared_offsets(t, SLOT_OFFSET, p);
    put_values(t, access, SLOT_VALUE, in);
    V args[] = {warp_of(t),
                slot(t, SLOT_OFFSET),
                mask_word(t, pred),
                slot(t, SLOT_VALUE),
                int32(t, host_memory_bytes(t, access->dtype)),
                int32(t, access->width),
                span_of(t)};
    host_call(t, "sim_store_shared", NULL, 7, args);
}

void sim_emit_barrier(Target *t, int id, int warps) {
    V args[] = {warp_of(t), int32(t, id), int32(t, warps), span_of(t)};
    host_call(t, "sim_barrier", NULL, 4, args);
}

// --- matrices ----------------------------------------------------------------------------------

// Element i of a packed 32-bit register, as a Lane of the dtype.
static Lane unpack(Target *t, V reg, DType dtype, int i) {
    int bits = (int)dtype_bits(dtype);
    V x = reg;
    if (i)
        x = LLVMBuildLShr(t->builder, x, arith_int_like(t, LLVMTypeOf(x), bits * i), "");
    x = LLVMBuildTrunc(t->builder, x, host_lanes_int(t, bits), "");
    return (Lane){LLVMBuildBitCast(t->builder, x, host_vector(t, target_type(t, dtype)), "")};
}

// Packs `n` elements into 32-bit registers of a slot.
void put_packed(Target *t, int which, DType dtype, int n, const Lane *x) {
    int bits = (int)dtype_bits(dtype), pack = 32 / bits;
    LLVMTypeRef i32 = host_lanes_int(t, 32);
    for (int r = 0; r < n / pack; r++) {
        V reg = NULL;
        for (int i = 0; i < pack; i++) {
            V e = LLVMBuildBitCast(t->builder, x[r * pack + i].v, host_lanes_int(t, bits), "");
            e = LLVMBuildZExt(t->builder, e, i32, "");
            if (i)
                e = LLVMBuildShl(t->builder, e, arith_int_like(t, i32, bits * i), "");
            reg = reg ? LLVMBuildOr(t->builder, reg, e, "") : e;
        }
        slot_put(t, which, r * 4 * t->desc->lanes, reg);
    }
}

void sim_emit_ldmatrix(Target *t, const Access *access, int count, bool trans, Shared p,
                       Lane *out) {
    put_shared_offsets(t, SLOT_OFFSET, p);
    V args[] = {warp_of(t),      slot(t, SLOT_OFFSET), slot(t, SLOT_RESULT),
                int32(t, count), int32(t, trans),      span_of(t)};
    host_call(t, "sim_ldmatrix", NULL, 6, args);
    for (int m = 0; m < count; m++) {
        V reg = slot_get(t, SLOT_RESULT, m * 4 * t->desc->lanes, host_lanes_int(t, 32));
        for (int i = 0; i < 2; i++)
            out[2 * m + i] = unpack(t, reg, access->dtype, i);
    }
}

// Operand registers as the unit has them: packed words, or f64.
static void put_fragment(Target *t, int which, DType dtype, int n, const Lane *x) {
    Access wide = {.dtype = dtype, .width = n};
    if (dtype_bits(dtype) > 32)
        put_values(t, &wide, which, x);
    else
        put_packed(t, which, dtype, n, x);
}

void sim_emit_mma(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
                  const Lane *c, Lane *out) {
    MmaShape shape = mma_shape(unit);
    DType sum = da == DT_F64 ? DT_F64 : dtype_is_integer(da) ? DT_I32 : DT_F32;
    Access sums = {.dtype = sum, .width = shape.c};
    put_fragment(t, SLOT_VALUE, da, shape.a, a);
    put_fragment(t, SLOT_SECOND, db, shape.b, b);
    put_values(t, &sums, SLOT_THIRD, c);
    V args[] = {warp_of(t),          int32(t, unit),       int32(t, da),
                int32(t, db),        slot(t, SLOT_VALUE),  slot(t, SLOT_SECOND),
                slot(t, SLOT_THIRD), slot(t, SLOT_RESULT), span_of(t)};
    host_call(t, "sim_mma", NULL, 9, args);
    get_values(t, &sums, SLOT_RESULT, out);
}

// --- asynchronous copies, checks ---------------------------------------------------------------

void sim_emit_cp_async(Target *t, const Access *access, Shared to, Ptr from, Lane pred,
                       Lane active) {
    int bytes = host_memory_bytes(t, access->dtype) * access->width;
    LLVMTypeRef type = host_lanes_int(t, 32);
    put_shared_offsets(t, SLOT_OFFSET, to);
    put_global_offsets(t, SLOT_SECOND, from);
    V valid = arith_int_like(t, type, bytes);
    if (pred.v)
        valid = LLVMBuildSelect(t->builder, pred.v, valid, LLVMConstNull(type), "");
    slot_put(t, SLOT_THIRD, 0, valid);
    V args[] = {warp_of(t),           slot(t, SLOT_OFFSET), from.base.v,     slot(t, SLOT_SECOND),
                mask_word(t, active), slot(t, SLOT_THIRD),  int32(t, bytes), span_of(t)};
    host_call(t, "sim_cp_async", NULL, 8, args);
}

void sim_emit_cp_commit(Target *t) {
    host_call(t, "sim_cp_commit", NULL, 2, (V[]){warp_of(t), span_of(t)});
}

void sim_emit_cp_wait(Target *t, int pending) {
    host_call(t, "sim_cp_wait", NULL, 3, (V[]){warp_of(t), int32(t, pending), span_of(t)});
}

void sim_emit_check(Target *t, Lane ok, Lane guard, const char *message) {
    V bad = LLVMBuildNot(t->builder, ok.v, "");
    if (guard.v)
        bad = LLVMBuildAnd(t->builder, bad, guard.v, "");
    V args[] = {warp_of(t), mask_word(t, (Lane){bad}), host_text(t, message), span_of(t)};
    host_call(t, "sim_check", NULL, 4, args);
}

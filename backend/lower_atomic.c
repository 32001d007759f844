// Atomics on tensors.
//
// Input: `atomic.k @t[idx...], v` walked by the value's layout. Output: one operation for each
// element, by the copy whose free lane and warp bits are 0; the old value goes from there to the
// other copies. Invariant: pass bounds has reduced what the index lacks.
#include "backend/lower.h"

// --- the old value of copies ---

enum { OLD_SLOT = 8 }; // bytes of a value in the scratch area

// Bits of a lane or warp number that tell elements apart.
static uint32_t kept_bits(const Layout *layout, unsigned dim) {
    if (!layout)
        return 0;
    return ((UINT32_C(1) << layout->nin[dim]) - 1) & ~layout_free_bits(layout, dim);
}

static Shared old_slot(Lower *l, const Layout *layout) {
    Target *t = l->t;
    uint32_t lanes = (uint32_t)t->desc->lanes;
    Lane lane = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t),
                         lane_int(t, DT_U32, kept_bits(layout, IN_LANE)));
    Uni warp = {LLVMBuildAnd(t->builder, t->ops->warp_id(t).v,
                             uni_int(t, 32, kept_bits(layout, IN_WARP)).v, "")};
    uint32_t row = (layout ? UINT32_C(1) << layout->nin[IN_LANE] : lanes) * OLD_SLOT;
    return (Shared){
        .base = uni_add(t, uni_int(t, 32, l->scratch_at), uni_mul(t, warp, uni_int(t, 32, row))),
        .offset = lane_op2(t, OP_MUL, DT_U32, lane, lane_int(t, DT_U32, OLD_SLOT))};
}

int64_t atomic_scratch(const Op *op) {
    if (!op->nres)
        return 0;
    const Layout *layout = op->res[0]->type.layout;
    return layout ? (INT64_C(1) << (layout->nin[IN_LANE] + layout->nin[IN_WARP])) * OLD_SLOT
                  : OLD_SLOT;
}

static void share_by_warps(Lower *l, const Layout *layout, DType dtype, Lane active, int n,
                           Lane *reg) {
    Target *t = l->t;
    Access access = {.dtype = dtype, .width = 1, .align = storage_bytes(dtype)};
    Shared slot = old_slot(l, layout);
    for (int r = 0; r < n; r++) {
        scratch_begin(l);
        t->ops->store_shared(t, &access, slot, active, &reg[r]);
        t->ops->block_barrier(t);
        t->ops->load_shared(t, &access, slot, (Lane){NULL}, &reg[r]);
    }
}

// Gives every copy what the active one has.
static void share_old(Lower *l, const Layout *layout, DType dtype, Lane active, int n, Lane *reg) {
    Target *t = l->t;
    uint32_t lanes = kept_bits(layout, IN_LANE), warps = 1;
    while (warps < (uint32_t)t->warps)
        warps *= 2;
    if ((warps - 1) & ~kept_bits(layout, IN_WARP)) {
        share_by_warps(l, layout, dtype, active, n, reg);
        return;
    }
    if (lanes == (uint32_t)t->desc->lanes - 1)
        return;
    Lane source = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, lanes));
    for (int r = 0; r < n; r++)
        reg[r] = t->ops->shuffle_idx(t, dtype, reg[r], source);
}

// --- the op ---

void lower_atomic(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *ref = &op->mem[0];
    const Value *v = op_store_value(op);
    if (dtype_is_packed(ref->mem->dtype)) {
        target_fail(t, "atomics of %s", dtype_name(ref->mem->dtype));
        return;
    }
    if (axes_minus(v->type.axes, access_axes(op, ref)).n) {
        target_fail(t, "this atomic over an axis that no index has");
        return;
    }
    const Layout *layout = op->nres && op->res[0]->type.layout ? op->res[0]->type.layout
                                                               : access_store_layout(l, op, ref, v);
    TileAccess a = access_of(l, op, ref, layout, 1);
    if (t->failed)
        return;
    a.vector_log2 = 0;
    Operand value = operand_of(l, v, layout), expected = value;
    if (op->sub == ATOMIC_CAS && !t->failed)
        expected = operand_of(l, op->in[ref->nidx], layout);
    if (t->failed)
        return;
    Lane active = lower_active(l, layout);
    int n = layout ? (int)layout_registers(layout) : 1;
    Lane *old = ARENA_ARRAY(l->arena, Lane, (size_t)n);
    Access access = access_plain(l, &a, 1, op);
    for (int i = 0; i < n; i++) {
        uint32_t r = (uint32_t)i;
        Lane pred = lane_and(t, active, access_predicate(l, &a, r));
        Lane x = operand_lane(l, &value, r);
        Lane *seen = op->nres ? &old[i] : NULL;
        Ptr at = access_pointer(l, &a, r);
        if (op->sub == ATOMIC_CAS)
            t->ops->cas(t, &access, at, pred, operand_lane(l, &expected, r), x, seen);
        else
            t->ops->atomic(t, &access, (AtomicKind)op->sub, at, pred, x, seen);
    }
    if (!op->nres || t->failed)
        return;
    share_old(l, layout, a.mem->dtype, active, n, old);
    Tile *tile = lower_result(l, op->res[0]);
    bool scalar = op->res[0]->type.axes.n == 0;
    for (int i = 0; i < tile->n && i < n; i++)
        tile->reg[i] = scalar ? t->ops->lane_first(t, old[i]).v : old[i].v;
}

// Takes with uniform positions that are left at `placed`: `take v, u = 1`.
//
// Input: a tile and one scalar per taken axis. Output: the plane of the tile at that position, or
// the fill where the position lies outside the window. Where the position is a constant and the
// axis lives in registers it is a choice of registers; else the tile goes through shared memory,
// where the plane is an offset. Invariant: the scratch area is free again after the next barrier
// (scratch_begin).
#include "backend/lower.h"

static const Layout *plane_buffer(LayoutTable *table, const Op *op, const Layout *from,
                                  bool whole) {
    AxisSize sizes[AXES_MAX];
    unsigned n = 0;
    for (int taken = 0; taken <= (whole ? 1 : 0); taken++) {
        for (int i = 0; i < from->naxes; i++) {
            bool is_taken = false;
            for (int k = 0; k < op->naxes; k++)
                is_taken = is_taken || op->axes[k]->id == from->axis[i];
            if (is_taken == (taken == 1))
                sizes[n++] = (AxisSize){from->axis[i], layout_size(from, from->axis[i])};
        }
    }
    return layout_shared_linear(table, sizes, n);
}

static bool is_uniform(const Op *op) {
    for (int i = 0; i < op->naxes; i++) {
        if (op->in[1 + i]->kind == VALUE_IOTA || op->in[1 + i]->type.axes.n)
            return false;
    }
    return op->in[0]->type.layout && op->in[0]->type.layout->nrep == 0;
}

int64_t take_scratch(const Op *op) {
    if (!is_uniform(op))
        return 0;
    return (int64_t)layout_elements(op->in[0]->type.layout) * storage_bytes(op->in[0]->type.dtype);
}

// Positions in the window, and whether all of them lie inside.
static Uni positions(Lower *l, const Op *op, Uni *at) {
    Target *t = l->t;
    LLVMBuilderRef b = t->builder;
    Uni inside = uni_int(t, 1, 1);
    for (int i = 0; i < op->naxes; i++) {
        Window w = lower_window(l, op->axes[i]);
        LLVMValueRef e = lower_index(l, op->in[1 + i]).v;
        LLVMValueRef in = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSGE, e, w.begin.v, ""),
                                       LLVMBuildICmp(b, LLVMIntSLT, e, w.end.v, ""), "");
        at[i].v = LLVMBuildSub(b, e, w.begin.v, "");
        inside.v = LLVMBuildAnd(b, inside.v, in, "");
    }
    return inside;
}

// False when some position is no constant or its axis is not in registers alone.
static bool pick_registers(Lower *l, const Op *op, const Uni *at, LLVMValueRef *out) {
    const Layout *from = op->in[0]->type.layout, *to = op->res[0]->type.layout;
    if (!to || !layout_is_slice(from, to))
        return false;
    for (int k = 0; k < op->naxes; k++) {
        uint16_t axis = op->axes[k]->id;
        if (!LLVMIsAConstantInt(at[k].v))
            return false;
        for (unsigned dim = IN_LANE; dim <= IN_WARP; dim++)
            for (unsigned i = 0; i < from->nin[dim]; i++)
                if (layout_column(from, dim, i, axis))
                    return false;
    }
    for (uint32_t r = 0; r < layout_registers(from); r++) {
        bool here = true;
        for (int k = 0; k < op->naxes; k++)
            here = here && uni_is_int(at[k], coord_register(from, op->axes[k]->id, r));
        if (here)
            out[layout_slice_register(from, to, r)] = lower_lane(l, op->in[0], (int)r).v;
    }
    return true;
}

static void through_shared(Lower *l, const Op *op, const Uni *at, Uni inside, LLVMValueRef *out) {
    Target *t = l->t;
    const Value *v = op->in[0];
    const Layout *from = v->type.layout, *to = op->res[0]->type.layout;
    const Layout *whole = plane_buffer(l->layouts, op, from, true);
    const Layout *plane = plane_buffer(l->layouts, op, from, false);
    if (!whole || !plane || !to || t->desc->shared_bytes == 0) {
        target_fail(t, "this take");
        return;
    }
    int64_t stride = (int64_t)layout_offsets(plane) * storage_bytes(v->type.dtype);
    Uni base = uni_int(t, 32, l->scratch_at), from_base = base, zero = uni_int(t, 64, 0);
    // the taken axes follow the others, in the order of the layout's axes
    for (int i = 0; i < from->naxes; i++) {
        for (int k = 0; k < op->naxes; k++) {
            if (op->axes[k]->id != from->axis[i])
                continue;
            Uni safe = {LLVMBuildSelect(t->builder, inside.v, at[k].v, zero.v, "")};
            safe = uni_mul(t, uni_resize(t, safe, 32, true), uni_int(t, 32, stride));
            from_base = uni_add(t, from_base, safe);
            stride *= layout_size(from, from->axis[i]);
        }
    }
    int n = type_registers(v->type);
    LLVMValueRef *in = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    for (int r = 0; r < n; r++)
        in[r] = lower_lane(l, v, r).v;
    scratch_begin(l);
    shared_write(l, v->type.dtype, NULL, from, whole, base, in);
    t->ops->block_barrier(t);
    shared_read(l, v->type.dtype, NULL, to, plane, from_base, out);
}

void lower_take(Lower *l, const Op *op) {
    Target *t = l->t;
    Value *res = op->res[0];
    if (!is_uniform(op) || op->in[0]->kind == VALUE_IOTA || res->type.axes.n == 0) {
        target_fail(t, "a take whose position differs between elements");
        return;
    }
    Tile *tile = lower_result(l, res);
    Uni at[AXES_MAX];
    Uni inside = positions(l, op, at);
    if (!pick_registers(l, op, at, tile->reg))
        through_shared(l, op, at, inside, tile->reg);
    if (t->failed || uni_is_int(inside, -1))
        return;
    const Value *other = op->has_else ? op->in[op->nin - 1] : NULL;
    Lane cond = t->ops->splat(t, inside);
    Lane zero = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, res->type.dtype))});
    Operand fill = {0};
    if (other)
        fill = operand_of(l, other, res->type.layout);
    for (int r = 0; r < tile->n && !t->failed; r++) {
        Lane f = other ? operand_lane(l, &fill, (uint32_t)r) : zero;
        // a position that no register holds lies outside
        Lane x = tile->reg[r] ? (Lane){tile->reg[r]} : f;
        tile->reg[r] = t->ops->select(t, cond, x, f).v;
    }
}

// Conversions between layouts: nothing, other register numbers, or a round trip through shared
// memory.
//
// Input: a tile in one layout. Output: the same elements in another. Invariant: the scratch area is
// free again when everyone has passed the next barrier (scratch_begin).
#include "backend/lower.h"

static const Layout *through(LayoutTable *table, const Op *op) {
    return layout_swizzle_best(table, op->in[0]->type.layout, op->res[0]->type.layout,
                               (unsigned)storage_bytes(op->in[0]->type.dtype) * 8);
}

static bool needs_shared(const Layout *src, const Layout *dst) {
    LayoutMap map;
    if (!src || !dst || src == dst)
        return false;
    return !layout_convert(src, dst, &map) || layout_map_class(&map) > CONVERT_REGISTERS;
}

int64_t convert_scratch(const Op *op) {
    const Layout *src = op->in[0]->type.layout, *dst = op->res[0]->type.layout;
    if (op->in[0]->kind == VALUE_IOTA || op->in[0]->type.axes.n == 0 || !needs_shared(src, dst))
        return 0;
    return (int64_t)layout_elements(dst) * storage_bytes(op->in[0]->type.dtype);
}

void lower_convert(Lower *l, const Op *op) {
    Target *t = l->t;
    const Value *in = op->in[0];
    Value *res = op->res[0];
    const Layout *src = in->type.layout, *dst = res->type.layout;
    Tile *tile = lower_result(l, res);
    if (in->kind == VALUE_IOTA || in->type.axes.n == 0 || src == dst) {
        lower_flatten(l, in, res->type, tile->reg);
        return;
    }
    LayoutMap map;
    if (!src || !dst || !layout_convert(src, dst, &map)) {
        target_fail(t, "the two layouts do not hold the same elements");
        return;
    }
    if (!needs_shared(src, dst)) {
        for (int r = 0; r < tile->n; r++) {
            uint32_t at[IN_DIMS] = {[IN_REG] = (uint32_t)r}, from[IN_DIMS];
            layout_map_apply(&map, at, from);
            tile->reg[r] = lower_lane(l, in, (int)from[IN_REG]).v;
        }
        return;
    }
    const Layout *buffer = through(l->layouts, op);
    if (!buffer || t->desc->shared_bytes == 0) {
        target_fail(t, "no way between the two layouts");
        return;
    }
    int n = type_registers(in->type);
    LLVMValueRef *regs = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    lower_flatten(l, in, in->type, regs);
    int64_t at = op_attr_int(op, ATTR_at);
    Uni base = uni_int(t, 32, at >= 0 ? at : l->scratch_at);
    scratch_begin(l);
    shared_write(l, in->type.dtype, NULL, src, buffer, base, regs);
    t->ops->block_barrier(t);
    shared_read(l, in->type.dtype, NULL, dst, buffer, base, tile->reg);
}

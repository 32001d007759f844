// Conversions between layouts: nothing, other register numbers, shuffles inside a warp, or a round
// trip through shared memory, whichever is cheaper (layout_convert_price).
//
// Input: a tile in one layout. Output: the same elements in another. Invariant: the scratch area is
// free again when everyone has passed the next barrier (scratch_begin).
#include "backend/lower.h"

static const Layout *through(LayoutTable *table, const Op *op) {
    return layout_swizzle_best(table, op->in[0]->type.layout, op->res[0]->type.layout,
                               (unsigned)storage_bytes(op->in[0]->type.dtype) * 8);
}

static ConvertClass convert_class(const Layout *src, const Layout *dst, LayoutMap *map) {
    return layout_convert(src, dst, map) ? layout_map_class(map) : CONVERT_CTA;
}

// Where there is shared memory the price decides; elsewhere a warp is all there is.
static bool through_shared(LayoutTable *table, const Layout *src, const Layout *dst, DType dtype,
                           bool has_shared) {
    LayoutMap map;
    if (!src || !dst || src == dst)
        return false;
    ConvertClass class = convert_class(src, dst, &map);
    if (class <= CONVERT_REGISTERS)
        return false;
    if (class > CONVERT_LANES || !has_shared)
        return class > CONVERT_LANES;
    return layout_convert_price(table, src, dst, (unsigned)storage_bytes(dtype) * 8).shared;
}

int64_t convert_scratch(const Op *op) {
    const Layout *src = op->in[0]->type.layout, *dst = op->res[0]->type.layout;
    if (op->in[0]->kind == VALUE_IOTA || op->in[0]->type.axes.n == 0)
        return 0;
    // The scratch arena of a table of its own: prices build layouts.
    Arena *arena = arena_new("price");
    bool shared = through_shared(layout_table_new(arena), src, dst, op->in[0]->type.dtype, true);
    arena_free(arena);
    return shared ? (int64_t)layout_elements(dst) * storage_bytes(op->in[0]->type.dtype) : 0;
}

// --- shuffles ---

typedef struct Shuffles {
    Lower *l;
    DType dtype;
    const LayoutMap *map;
    LayoutChoice choice;
    Lane cond[LAYOUT_BITS_MAX]; // by bit of the choice
    Lane source;                // lane part of the source lane; NULL: the lane stays
    Uni warp_part;              // i32, of the source lane; NULL: 0
} Shuffles;

static int lane_bits(const Target *t) {
    int n = 0;
    while (1 << n < t->desc->lanes)
        n++;
    return n;
}

static uint32_t mask_bit(uint32_t mask, int bit) {
    return mask >> bit & 1;
}

// parity(lane & lanes) ^ parity(warp & warps) is 1
static Lane parity_condition(Lower *l, uint32_t lanes, uint32_t warps) {
    Target *t = l->t;
    uint32_t col[LAYOUT_BITS_MAX] = {0};
    Lane p = {NULL};
    if (lanes) {
        for (int i = 0; i < LAYOUT_BITS_MAX; i++)
            col[i] = mask_bit(lanes, i);
        p = lane_linear(l, t->ops->lane_id(t), lane_bits(t), col);
    }
    if (warps) {
        for (int i = 0; i < LAYOUT_BITS_MAX; i++)
            col[i] = mask_bit(warps, i);
        Lane w = t->ops->splat(t, uni_linear(l, t->ops->warp_id(t), LAYOUT_BITS_MAX, col));
        p = p.v ? lane_op2(t, OP_XOR, DT_U32, p, w) : w;
    }
    return lane_cmp(t, CMP_NE, DT_U32, p, lane_int(t, DT_U32, 0));
}

// Lane and warp bits that the source lane depends on, besides the register.
static void source_lane(Shuffles *s) {
    Target *t = s->l->t;
    uint32_t col[LAYOUT_BITS_MAX] = {0}, warp_col[LAYOUT_BITS_MAX] = {0};
    bool warps = false;
    for (int i = 0; i < s->map->nin[IN_LANE]; i++)
        col[i] = s->map->col[IN_LANE][i][IN_LANE];
    for (int i = 0; i < s->map->nin[IN_WARP]; i++) {
        warp_col[i] = s->map->col[IN_WARP][i][IN_LANE];
        warps |= warp_col[i] != 0;
    }
    s->source = lane_linear(s->l, t->ops->lane_id(t), s->map->nin[IN_LANE], col);
    if (!s->source.v)
        s->source = lane_int(t, DT_U32, 0);
    if (warps) {
        Uni w = uni_linear(s->l, t->ops->warp_id(t), s->map->nin[IN_WARP], warp_col);
        s->source = lane_op2(t, OP_XOR, DT_U32, s->source, t->ops->splat(t, w));
    }
}

static Lane shuffled(Shuffles *s, const LLVMValueRef *regs, uint32_t reg, uint32_t lane_xor,
                     bool moves) {
    Target *t = s->l->t;
    Lane x = {regs[reg]};
    if (!moves)
        return x;
    Lane from = s->source;
    if (lane_xor)
        from = lane_op2(t, OP_XOR, DT_U32, from, lane_int(t, DT_U32, lane_xor));
    return t->ops->shuffle_idx(t, s->dtype, x, from);
}

static void convert_by_lanes(Lower *l, const LayoutMap *map, DType dtype, const LLVMValueRef *regs,
                             Tile *tile) {
    Target *t = l->t;
    Shuffles s = {.l = l, .dtype = dtype, .map = map, .choice = layout_map_choice(map)};
    bool moves = layout_map_class(map) == CONVERT_LANES;
    source_lane(&s);
    for (int i = 0; i < s.choice.n; i++)
        s.cond[i] = parity_condition(l, s.choice.lanes[i], s.choice.warps[i]);
    for (int r = 0; r < tile->n && !t->failed; r++) {
        uint32_t at[IN_DIMS] = {[IN_REG] = (uint32_t)r}, from[IN_DIMS];
        layout_map_apply(map, at, from);
        Lane candidate[1 << 6];
        if (s.choice.n > 6) {
            target_fail(t, "no way between the two layouts");
            return;
        }
        for (uint32_t m = 0; m < UINT32_C(1) << s.choice.n; m++) {
            uint32_t reg = from[IN_REG];
            for (int i = 0; i < s.choice.n; i++)
                reg ^= mask_bit(m, i) ? s.choice.reg[i] : 0;
            candidate[m] = shuffled(&s, regs, reg, from[IN_LANE], moves);
        }
        for (int i = s.choice.n - 1; i >= 0; i--)
            for (uint32_t m = 0; m < UINT32_C(1) << i; m++)
                candidate[m] =
                    t->ops->select(t, s.cond[i], candidate[m | UINT32_C(1) << i], candidate[m]);
        tile->reg[r] = candidate[0].v;
    }
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
    if (layout_map_class(&map) <= CONVERT_REGISTERS) {
        for (int r = 0; r < tile->n; r++) {
            uint32_t at[IN_DIMS] = {[IN_REG] = (uint32_t)r}, from[IN_DIMS];
            layout_map_apply(&map, at, from);
            tile->reg[r] = lower_lane(l, in, (int)from[IN_REG]).v;
        }
        return;
    }
    int n = type_registers(in->type);
    LLVMValueRef *regs = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    lower_flatten(l, in, in->type, regs);
    if (!through_shared(l->layouts, src, dst, in->type.dtype, t->desc->shared_bytes > 0)) {
        convert_by_lanes(l, &map, in->type.dtype, regs, tile);
        return;
    }
    const Layout *buffer = through(l->layouts, op);
    if (!buffer || t->desc->shared_bytes == 0) {
        target_fail(t, "no way between the two layouts");
        return;
    }
    lower_note_conversion(l, op);
    int64_t at = op_attr_int(op, ATTR_at);
    Uni base = uni_int(t, 32, at >= 0 ? at : l->scratch_at);
    scratch_begin(l);
    shared_write(l, in->type.dtype, NULL, src, buffer, base, regs);
    t->ops->block_barrier(t);
    shared_read(l, in->type.dtype, NULL, dst, buffer, base, tile->reg);
}

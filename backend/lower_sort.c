// sort and topk: one network of compare-exchanges over the bits of an axis.
//
// Input: a tile whose axis n has bits of its own in the layout (each position bit is one register,
// lane or warp bit). Output of sort: values and indices in the same layout; of topk: the first |j|
// positions, in the layout that layout_first gives, equal in all copies.
//
// Every element becomes a key, an unsigned number that stands before another exactly when the
// element does (ir/eval_sort.c has the order): the value's bits, made monotone, above the position.
// No two keys are equal, so the order is total and the result stable, whatever the network does.
// What lies outside the window has the largest value bits and a position behind everything inside.
// So has what a tile lacks to the next power of two: its keys are in the layout that
// layout_round_up gives. The element is read back from its key: nothing else is moved.
//
//   8- and 16-bit types    value 16 | position 15 | -0        one word of 32 bits
//   32-bit types           value 32 | position 31 | -0        one word of 64 bits
//   64-bit types           value 64, position 31 | -0         two words
//
// lower_sort_network.c puts keys in order.
#include <math.h>

#include "backend/sort.h"
#include "lang/base/numeric.h"

// --- the layout ---

// False when the bit is not exactly one input bit, or that one moves along other axes too.
static bool find_place(const Layout *layout, uint16_t axis, unsigned bit, Place *place) {
    int found = 0;
    for (int dim = IN_REG; dim <= IN_WARP; dim++) {
        for (unsigned i = 0; i < layout->nin[dim]; i++) {
            if (!(layout_column(layout, (unsigned)dim, i, axis) >> bit & 1))
                continue;
            for (int a = 0; a < layout->naxes; a++) {
                uint32_t c = layout_column(layout, (unsigned)dim, i, layout->axis[a]);
                if (c != (layout->axis[a] == axis ? UINT32_C(1) << bit : 0))
                    return false;
            }
            *place = (Place){dim, i};
            found++;
        }
    }
    return found == 1;
}

static bool find_places(const Layout *layout, uint16_t axis, int *nbits, Place *place) {
    *nbits = (int)layout_axis_bits(layout, axis);
    if (*nbits > POSITION_BITS_MAX)
        return false;
    for (int b = 0; b < *nbits; b++)
        if (!find_place(layout, axis, (unsigned)b, &place[b]))
            return false;
    return true;
}

// --- shared memory ---

// Registers of one exchange between warps go in groups, so that it never needs more than this.
enum { SCRATCH_MOST = 32768 };

static int key_width(DType value) {
    uint32_t bits = dtype_bits(value);
    return bits <= 16 ? 16 : (int)bits;
}

static int key_low(int width, int nbits) {
    return width == 64 ? 0 : width == 16 && nbits < 16 ? 16 : 32;
}

int sort_key_bytes(int width, int low) {
    return width == 64 ? 12 : low == 16 ? 4 : 8;
}

static int layout_threads(const Layout *layout) {
    return 1 << (layout->nin[IN_LANE] + layout->nin[IN_WARP]);
}

uint32_t sort_exchange_group(const Layout *layout, int bytes) {
    uint32_t n = (uint32_t)(SCRATCH_MOST / (layout_threads(layout) * bytes));
    return n ? n : 1;
}

static int64_t exchange_bytes(const Op *op, const Layout *layout) {
    Place place[POSITION_BITS_MAX];
    int nbits;
    bool warps = false;
    if (!layout || !find_places(layout, op->axes[0]->id, &nbits, place))
        return 0;
    for (int b = 0; b < nbits; b++)
        warps |= place[b].dim == IN_WARP;
    if (!warps)
        return 0;
    int width = key_width(op->in[0]->type.dtype),
        bytes = sort_key_bytes(width, key_low(width, nbits));
    uint32_t group = sort_exchange_group(layout, bytes), n = layout_registers(layout);
    return (int64_t)(group < n ? group : n) * layout_threads(layout) * bytes;
}

int64_t sort_scratch(const Op *op) {
    const Layout *tile = op->in[0]->type.layout;
    Arena *arena = arena_new("sort");
    const Layout *keys = tile ? layout_round_up(layout_table_new(arena), tile) : NULL;
    int64_t bytes = exchange_bytes(op, keys);
    arena_free(arena);
    return bytes;
}

// --- keys ---

Lane sort_constant(Sort *s, DType dtype, uint64_t x) {
    return lane_int(s->l->t, dtype, (int64_t)x);
}

Lane sort_op2(Sort *s, OpKind kind, DType dtype, Lane a, uint64_t b) {
    return lane_op2(s->l->t, kind, dtype, a, sort_constant(s, dtype, b));
}

Lane sort_choose(Sort *s, Lane cond, Lane a, Lane b) {
    return s->l->t->ops->select(s->l->t, cond, a, b);
}

// Bits of the value itself: 8 for what lies in a byte.
static int value_bits(const Sort *s) {
    return dtype_bits(s->value) < 8 ? 8 : (int)dtype_bits(s->value);
}

// The unsigned type that the value's bits are worked on in.
static DType bits_type(const Sort *s) {
    return s->width == 64 ? DT_U64 : DT_U32;
}

static uint64_t low_ones(int n) {
    return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static DType unsigned_of(const Sort *s) {
    int bits = value_bits(s);
    return bits == 8 ? DT_U8 : bits == 16 ? DT_U16 : bits == 32 ? DT_U32 : DT_U64;
}

// The largest bits of a float that are no NaN, without the sign.
static uint64_t infinity_bits(DType dtype) {
    if (dtype_is_fp8(dtype)) // e4m3 has no infinity, and conversions to e5m2 saturate
        return dtype == DT_E4M3 ? 0x7e : 0x7c;
    return scalar_bits(scalar_float(dtype, INFINITY));
}

static Lane raw_bits(Sort *s, Lane v) {
    Target *t = s->l->t;
    DType as = unsigned_of(s);
    if (s->value == DT_BOOL)
        return lane_resize(t, v, DT_BOOL, bits_type(s));
    // a register of 8 bits is what it is; narrow floats are reinterpreted
    if (value_bits(s) > 8 && s->value != as)
        v = t->ops->bitcast(t, s->value, as, v);
    return lane_resize(t, v, as, bits_type(s));
}

// Monotone bits of the value; *zero: 1 where it is -0 (floats only, else NULL).
static Lane ordered_bits(Sort *s, Lane raw, Lane *zero) {
    Target *t = s->l->t;
    DType u = bits_type(s);
    int bits = value_bits(s);
    uint64_t sign = UINT64_C(1) << (bits - 1), all = low_ones(bits);
    zero->v = NULL;
    if (!dtype_is_float(s->value))
        return s->value != DT_BOOL && dtype_is_signed(s->value) ? sort_op2(s, OP_XOR, u, raw, sign)
                                                                : raw;
    Lane magnitude = sort_op2(s, OP_AND, u, raw, sign - 1);
    Lane negative = lane_cmp(t, CMP_GE, u, raw, sort_constant(s, u, sign));
    Lane is_zero = lane_cmp(t, CMP_EQ, u, magnitude, sort_constant(s, u, 0));
    Lane is_nan = lane_cmp(t, CMP_GT, u, magnitude, sort_constant(s, u, infinity_bits(s->value)));
    Lane x = sort_choose(s, negative, sort_op2(s, OP_XOR, u, raw, all),
                         sort_op2(s, OP_OR, u, raw, sign));
    x = sort_choose(s, is_zero, sort_constant(s, u, sign), x);
    Lane minus = lane_cmp(t, CMP_EQ, u, raw, sort_constant(s, u, sign));
    *zero = sort_choose(s, minus, sort_constant(s, DT_U32, 1), sort_constant(s, DT_U32, 0));
    return sort_choose(s, is_nan, sort_constant(s, u, all), x);
}

static Key key_make(Sort *s, Lane v, Lane position, Lane inside) {
    Target *t = s->l->t;
    DType u = bits_type(s);
    Lane zero, x = ordered_bits(s, raw_bits(s, v), &zero);
    if (s->largest)
        x = sort_op2(s, OP_XOR, u, x, low_ones(s->width));
    x = sort_choose(s, inside, x, sort_constant(s, u, low_ones(s->width)));
    Lane low = sort_op2(s, OP_SHL, DT_U32, position, 1);
    if (zero.v)
        low = lane_op2(t, OP_OR, DT_U32, low, zero);
    if (s->width == 64)
        return (Key){x, low};
    x = sort_op2(s, OP_SHL, s->word, lane_resize(t, x, u, s->word), (uint64_t)s->low);
    return (Key){.hi = lane_op2(t, OP_OR, s->word, x, lane_resize(t, low, DT_U32, s->word))};
}

// Position and -0 bit.
static Lane key_low_word(Sort *s, Key k) {
    if (s->width == 64)
        return k.lo;
    Lane low = sort_op2(s, OP_AND, s->word, k.hi, low_ones(s->low));
    return lane_resize(s->l->t, low, s->word, DT_U32);
}

static Lane key_value(Sort *s, Key k, Lane low) {
    Target *t = s->l->t;
    DType u = bits_type(s), as = unsigned_of(s);
    int bits = value_bits(s);
    uint64_t sign = UINT64_C(1) << (bits - 1), all = low_ones(bits);
    Lane x = k.hi;
    if (s->width != 64)
        x = lane_resize(t, sort_op2(s, OP_SHR, s->word, x, (uint64_t)s->low), s->word, u);
    if (s->largest)
        x = sort_op2(s, OP_XOR, u, x, low_ones(s->width));
    x = sort_op2(s, OP_AND, u, x, all);
    if (dtype_is_float(s->value)) {
        Lane positive = lane_cmp(t, CMP_GE, u, x, sort_constant(s, u, sign));
        x = sort_choose(s, positive, sort_op2(s, OP_XOR, u, x, sign),
                        sort_op2(s, OP_XOR, u, x, all));
        Lane zero = lane_resize(t, sort_op2(s, OP_AND, DT_U32, low, 1), DT_U32, u);
        x = lane_op2(t, OP_OR, u, x, sort_op2(s, OP_SHL, u, zero, (uint64_t)bits - 1));
    } else if (s->value == DT_BOOL) {
        return lane_cmp(t, CMP_NE, u, x, sort_constant(s, u, 0));
    } else if (dtype_is_signed(s->value)) {
        x = sort_op2(s, OP_XOR, u, x, sign);
    }
    x = lane_resize(t, x, u, as);
    return bits > 8 && s->value != as ? t->ops->bitcast(t, as, s->value, x) : x;
}

// Registers of the keys that hold elements of no row: past the end of another axis than `along`.
static bool *idle_registers(const Sort *s, uint16_t along) {
    bool *idle = ARENA_ARRAY(s->l->arena, bool, s->n);
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t in[IN_DIMS] = {[IN_REG] = r};
        for (int a = 0; a < s->tile->naxes; a++) {
            uint16_t axis = s->tile->axis[a];
            idle[r] |=
                axis != along && layout_coord(s->layout, in, axis) >= layout_size(s->tile, axis);
        }
    }
    return idle;
}

// --- the ops ---

static Lane zero_lane(Sort *s) {
    Target *t = s->l->t;
    return t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, s->value))});
}

static void make_keys(Sort *s, const Op *op) {
    Lower *l = s->l;
    Target *t = l->t;
    uint16_t axis = op->axes[0]->id;
    Coord coord = coord_of(l, s->layout, axis);
    Window w = lower_window(l, op->axes[0]);
    Uni left = lower_clamp_i32(l, lower_sub(l, w.end, w.begin));
    Operand o = operand_of(l, op->in[0], s->tile);
    Lane nothing = zero_lane(s);
    for (uint32_t r = 0; r < s->n && !t->failed; r++) {
        uint32_t rest;
        int from = layout_rounded_register(s->tile, r);
        Lane at = coord_lane(l, &coord, coord_register(s->layout, axis, r), &rest);
        if (coord.warp.v) {
            Lane warp = t->ops->splat(t, coord.warp);
            at = at.v ? lane_op2(t, OP_ADD, DT_U32, at, warp) : warp;
        }
        at = at.v ? sort_op2(s, OP_ADD, DT_U32, at, rest) : sort_constant(s, DT_U32, rest);
        Lane inside = lane_cmp(t, CMP_LT, DT_I32, at, t->ops->splat(t, left));
        Lane v = from < 0 ? nothing : operand_lane(l, &o, (uint32_t)from);
        if (from < 0)
            inside = lane_int(t, DT_BOOL, 0);
        Key k = key_make(s, v, at, inside);
        if (r == 0)
            sort_make_memory(s, k);
        sort_set_key(s, (Reg){.i = r}, k);
    }
}

// The register that holds what register q of the result holds; -1: n has no such position.
static int source_register(const Sort *s, const Op *op, const Layout *to, uint32_t q) {
    uint16_t n = op->axes[0]->id, j = op->axes[op->naxes - 1]->id;
    uint32_t want[IN_DIMS] = {[IN_REG] = q};
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t have[IN_DIMS] = {[IN_REG] = r};
        bool same = layout_coord(to, want, j) == layout_coord(s->layout, have, n);
        for (int a = 0; a < to->naxes; a++)
            same = same && (to->axis[a] == j || layout_coord(to, want, to->axis[a]) ==
                                                    layout_coord(s->layout, have, to->axis[a]));
        if (same && !sort_is_joined(s, r))
            return (int)r;
    }
    return -1;
}

static void read_keys(Sort *s, const Op *op, const Layout *to) {
    Lower *l = s->l;
    Target *t = l->t;
    Tile *value = lower_result(l, op->res[0]), *index = lower_result(l, op->res[1]);
    Window w = lower_window(l, op->axes[0]);
    Lane left = t->ops->splat(t, lower_clamp_i32(l, lower_sub(l, w.end, w.begin)));
    Lane begin = t->ops->splat(t, w.begin);
    Lane nothing = zero_lane(s), nowhere = sort_constant(s, DT_INDEX, UINT64_MAX);
    for (int q = 0; q < value->n; q++) {
        int r = source_register(s, op, to, (uint32_t)q);
        value->reg[q] = nothing.v;
        index->reg[q] = nowhere.v;
        if (r < 0)
            continue;
        Key key = sort_key(s, (Reg){.i = (uint32_t)r});
        Lane low = key_low_word(s, key), v = key_value(s, key, low);
        Lane at = sort_op2(s, OP_SHR, DT_U32, low, 1);
        Lane i = lane_op2(t, OP_ADD, DT_INDEX, lane_resize(t, at, DT_U32, DT_INDEX), begin);
        if (op->kind == OP_TOPK) { // what is outside of n stands behind all that is inside
            Lane inside = lane_cmp(t, CMP_LT, DT_I32, at, left);
            v = sort_choose(s, inside, v, nothing);
            i = sort_choose(s, inside, i, nowhere);
        }
        value->reg[q] = v.v;
        index->reg[q] = i.v;
    }
}

static const Layout *result_layout(Lower *l, const Op *op, const Layout *from) {
    if (op->kind == OP_SORT)
        return from;
    uint32_t size = axis_size_of(op->axes[1]);
    return layout_first(l->layouts, from, op->axes[0]->id, op->axes[1]->id, size ? size : 1);
}

void lower_sort(Lower *l, const Op *op) {
    Target *t = l->t;
    DType value = op->in[0]->type.dtype;
    const Layout *from = op->in[0]->type.layout;
    Sort s = {.l = l, .tile = from, .value = value, .largest = op->kind == OP_TOPK};
    const Layout *to = from ? result_layout(l, op, from) : NULL;
    s.layout = from ? layout_round_up(l->layouts, from) : NULL;
    if (!to || !s.layout || !find_places(s.layout, op->axes[0]->id, &s.nbits, s.place)) {
        target_fail(t, "the layout does not keep the positions along %s apart", op->axes[0]->name);
        return;
    }
    if (op->res[0]->type.layout != to || op->res[1]->type.layout != to) {
        target_fail(t, "the results do not have the layout of the operand's first elements");
        return;
    }
    if (sort_scratch(op) > 0 && t->desc->shared_bytes == 0) {
        target_fail(t, "an exchange between warps without shared memory");
        return;
    }
    s.width = key_width(value);
    s.low = key_low(s.width, s.nbits);
    s.word = s.low == 16 ? DT_U32 : DT_U64;
    s.n = layout_registers(s.layout);
    s.key = ARENA_ARRAY(l->arena, Key, s.n);
    s.idle = idle_registers(&s, op->axes[0]->id);
    make_keys(&s, op);
    if (t->failed)
        return;
    int k = op->kind == OP_SORT ? s.nbits : (int)layout_axis_bits(to, op->axes[1]->id);
    sort_network(&s, k < s.nbits ? k : s.nbits);
    read_keys(&s, op, to);
}

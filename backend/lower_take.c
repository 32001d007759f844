// Takes that are left at `placed`: `take v, a = e` puts e for axis a, element by element.
//
// Input: a tile and one position per taken axis: a scalar, or a tile over some of the result's
// axes. Output: the elements at those positions, or the fill where a position lies outside the
// window of its axis. Where an element comes from is linear over F2 in the bits of the kept
// coordinates and of the position, so its register, lane and warp are XORs of parts of these; the
// digits of odd factors of sizes count registers above the bits, and add up. Three ways, the first
// that does:
//
//   registers  the element is in the same thread: a choice among a few registers
//   lanes      it is in the same warp: that choice, after a shuffle from the lane that has it
//   shared     the whole tile goes through shared memory, and is read at an address per element
//
// Invariant: the scratch area is free again after the next barrier (scratch_begin).
#include "backend/lower.h"

#include <string.h>

// How the inputs that hold an element of the tile follow from a bit; `above`: registers that its
// digits count.
typedef struct Source {
    uint32_t reg, lane, warp, above;
} Source;

enum { CHOICES_MAX = 8, SHUFFLES_MAX = 4 };

typedef struct TakePlan {
    const Layout *from, *to;               // to: NULL for a scalar result
    int64_t known[AXES_MAX];               // a position that is known, from begin; -1: it is not
    Source taken[AXES_MAX][32];            // by taken axis and bit of the position
    Source kept[IN_DIMS][LAYOUT_BITS_MAX]; // by input bit of `to`
    uint32_t choices;                      // register bits that differ between threads or positions
    bool moves;                            // the lane does too
    bool shared;
} TakePlan;

// The inputs that hold offset `at` along an axis of the tile.
static Source locate(const Layout *from, uint16_t axis, uint32_t at) {
    uint32_t coord[AXES_MAX] = {0}, in[IN_DIMS];
    int i = layout_axis_index(from, axis);
    if (i < 0)
        return (Source){0};
    coord[i] = at;
    layout_locate(from, coord, in);
    uint32_t bits = (UINT32_C(1) << from->nin[IN_REG]) - 1;
    return (Source){in[IN_REG] & bits, in[IN_LANE], in[IN_WARP], in[IN_REG] & ~bits};
}

static Source source_join(Source a, Source b) {
    return (Source){a.reg ^ b.reg, a.lane ^ b.lane, a.warp ^ b.warp, a.above + b.above};
}

// A constant position along an axis that begins at a constant.
static int64_t known_position(const Op *op, int k) {
    const Value *e = op->in[1 + k];
    const Axis *a = op->axes[k];
    bool fixed = a->is_dim || (a->lo && a->lo->kind == VALUE_CONST && !a->like);
    if (e->kind != VALUE_CONST || !fixed)
        return -1;
    int64_t at = e->u.i - (a->is_dim ? 0 : a->lo->u.i);
    return at >= 0 && at < (int64_t)layout_size(op->in[0]->type.layout, a->id) ? at : 0;
}

static bool is_taken(const Op *op, uint16_t axis) {
    for (int k = 0; k < op->naxes; k++)
        if (op->axes[k]->id == axis)
            return true;
    return false;
}

static void plan_positions(TakePlan *p, const Op *op) {
    for (int k = 0; k < op->naxes; k++) {
        uint16_t axis = op->axes[k]->id;
        p->known[k] = known_position(op, k);
        p->shared |= p->known[k] < 0 && layout_axis_rep(p->from, axis) > 1;
        for (unsigned b = 0; b < layout_axis_bits(p->from, axis); b++) {
            Source s = p->taken[k][b] = locate(p->from, axis, UINT32_C(1) << b);
            if (p->known[k] >= 0)
                continue;
            p->choices |= s.reg;
            p->moves |= s.lane != 0;
            p->shared |= s.warp != 0;
        }
        if (p->known[k] > 0) {
            Source s = locate(p->from, axis, (uint32_t)p->known[k]);
            p->moves |= s.lane != 0;
            p->shared |= s.warp != 0;
        }
    }
}

// The thread of a result's element that keeps its lane and warp; copies stay where they are.
static void plan_kept(TakePlan *p, const Op *op) {
    for (unsigned dim = IN_REG; p->to && dim <= IN_WARP; dim++) {
        for (unsigned i = 0; i < p->to->nin[dim]; i++) {
            Source s = {0};
            for (int a = 0; a < p->from->naxes; a++)
                if (!is_taken(op, p->from->axis[a]))
                    s = source_join(s, locate(p->from, p->from->axis[a],
                                              layout_column(p->to, dim, i, p->from->axis[a])));
            p->kept[dim][i] = s;
            p->choices |= dim == IN_REG ? 0 : s.reg;
        }
    }
    uint32_t free_lanes = layout_free_bits(p->from, IN_LANE),
             free_warps = layout_free_bits(p->from, IN_WARP);
    for (unsigned i = 0; i < LAYOUT_BITS_MAX; i++) {
        uint32_t bit = UINT32_C(1) << i;
        bool lane_in = i < p->from->nin[IN_LANE] && !(free_lanes & bit);
        bool warp_in = i < p->from->nin[IN_WARP] && !(free_warps & bit);
        p->moves |= p->kept[IN_REG][i].lane || p->kept[IN_WARP][i].lane ||
                    p->kept[IN_LANE][i].lane != (lane_in ? bit : 0);
        p->shared |= p->kept[IN_REG][i].warp || p->kept[IN_LANE][i].warp ||
                     p->kept[IN_WARP][i].warp != (warp_in ? bit : 0);
    }
}

static TakePlan take_plan(const Op *op) {
    TakePlan p = {.from = op->in[0]->type.layout, .to = op->res[0]->type.layout};
    if (!p.from)
        return p;
    plan_positions(&p, op);
    plan_kept(&p, op);
    uint32_t n = UINT32_C(1) << __builtin_popcount(p.choices);
    p.shared |= n > (p.moves ? SHUFFLES_MAX : CHOICES_MAX);
    return p;
}

// i4 and u4 lie in bytes.
static DType memory_dtype(DType t) {
    return t == DT_I4 ? DT_I8 : t == DT_U4 ? DT_U8 : t;
}

int64_t take_scratch(const Op *op) {
    TakePlan p = take_plan(op);
    if (!p.shared)
        return 0;
    return (int64_t)layout_elements(p.from) * storage_bytes(memory_dtype(op->in[0]->type.dtype));
}

// --- positions ---

// The position of a taken axis in registers of the result.
typedef struct Position {
    Operand e;
    DType dtype;
    Lane begin, end; // i64
    uint32_t last;   // position that exists
} Position;

static Position position_of(Lower *l, const Op *op, int k) {
    Target *t = l->t;
    const Value *e = op->in[1 + k];
    Window w = lower_window(l, op->axes[k]);
    return (Position){
        .e = operand_of(l, e, op->res[0]->type.layout),
        .dtype = e->type.dtype,
        .begin = t->ops->splat(t, w.begin),
        .end = t->ops->splat(t, w.end),
        .last = layout_size(op->in[0]->type.layout, op->axes[k]->id) - 1,
    };
}

// The distance from the begin of the window, cut to the tile, and whether it lies inside.
static Lane position_at(Lower *l, const Position *p, uint32_t reg, Lane *inside) {
    Target *t = l->t;
    Lane e = operand_lane(l, &p->e, reg);
    e = lane_resize(t, e, p->dtype, dtype_is_signed(p->dtype) ? DT_INDEX : DT_U64);
    Lane in = lane_and(t, lane_cmp(t, CMP_GE, DT_INDEX, e, p->begin),
                       lane_cmp(t, CMP_LT, DT_INDEX, e, p->end));
    *inside = lane_and(t, *inside, in);
    Lane at = lane_resize(t, lane_op2(t, OP_SUB, DT_INDEX, e, p->begin), DT_INDEX, DT_U32);
    bool bits = (p->last & (p->last + 1)) == 0;
    return lane_op2(t, bits ? OP_AND : OP_MIN, DT_U32, at, lane_int(t, DT_U32, p->last));
}

static Lane lane_xor(Target *t, Lane a, Lane b) {
    return !a.v ? b : !b.v ? a : lane_op2(t, OP_XOR, DT_U32, a, b);
}

// --- in the warp ---

// The part of `source` (a field of Source) that the position at[k] gives; NULL: none.
static Lane part_of_position(Lower *l, const TakePlan *p, int k, Lane at, size_t field) {
    uint32_t col[32] = {0};
    for (int b = 0; b < 32; b++)
        memcpy(&col[b], (const char *)&p->taken[k][b] + field, sizeof col[b]);
    return lane_linear(l, at, 32, col);
}

// The part that lane and warp of the result's element give.
static Lane part_of_thread(Lower *l, const TakePlan *p, size_t field) {
    Target *t = l->t;
    uint32_t lane[LAYOUT_BITS_MAX] = {0}, warp[LAYOUT_BITS_MAX] = {0};
    for (int i = 0; i < LAYOUT_BITS_MAX; i++) {
        memcpy(&lane[i], (const char *)&p->kept[IN_LANE][i] + field, sizeof lane[i]);
        memcpy(&warp[i], (const char *)&p->kept[IN_WARP][i] + field, sizeof warp[i]);
    }
    Lane x = lane_linear(l, t->ops->lane_id(t), LAYOUT_BITS_MAX, lane);
    Uni w = uni_linear(l, t->ops->warp_id(t), LAYOUT_BITS_MAX, warp);
    return w.v ? lane_xor(t, x, t->ops->splat(t, w)) : x;
}

// Constant part: the register of the result, and positions that are known.
static Source part_known(const TakePlan *p, const Op *op, uint32_t reg) {
    Source s = {0};
    for (int a = 0; p->to && a < p->from->naxes; a++) {
        uint16_t axis = p->from->axis[a];
        if (!is_taken(op, axis))
            s = source_join(s, locate(p->from, axis, coord_register(p->to, axis, reg)));
    }
    for (int k = 0; k < op->naxes; k++)
        if (p->known[k] > 0)
            s = source_join(s, locate(p->from, op->axes[k]->id, (uint32_t)p->known[k]));
    return s;
}

// The register that `base` XOR the bits of `which` names, after a shuffle from lane `source`.
static Lane choose(Lower *l, const Op *op, const TakePlan *p, Source base, Lane which,
                   Lane source) {
    Target *t = l->t;
    uint32_t bit[8];
    int n = 0;
    for (uint32_t i = 0; i < 32; i++)
        if (p->choices >> i & 1)
            bit[n++] = UINT32_C(1) << i;
    Lane candidate[CHOICES_MAX];
    for (uint32_t m = 0; m < UINT32_C(1) << n; m++) {
        uint32_t reg = base.reg;
        for (int i = 0; i < n; i++)
            reg ^= m >> i & 1 ? bit[i] : 0;
        candidate[m] = lower_lane(l, op->in[0], (int)(reg + base.above));
        if (p->moves)
            candidate[m] = t->ops->shuffle_idx(t, op->in[0]->type.dtype, candidate[m], source);
    }
    for (int i = n - 1; i >= 0; i--) {
        Lane set = lane_op2(t, OP_AND, DT_U32, which, lane_int(t, DT_U32, bit[i]));
        set = lane_cmp(t, CMP_NE, DT_U32, set, lane_int(t, DT_U32, 0));
        for (uint32_t m = 0; m < UINT32_C(1) << i; m++)
            candidate[m] = t->ops->select(t, set, candidate[m | UINT32_C(1) << i], candidate[m]);
    }
    return candidate[0];
}

static void in_warp(Lower *l, const Op *op, const TakePlan *p, const Position *position, int n,
                    Lane *out, Lane *inside) {
    Target *t = l->t;
    Lane reg_thread = part_of_thread(l, p, offsetof(Source, reg));
    Lane lane_thread = part_of_thread(l, p, offsetof(Source, lane));
    for (int r = 0; r < n && !t->failed; r++) {
        Source s = part_known(p, op, (uint32_t)r);
        Lane which = reg_thread, source = lane_thread;
        for (int k = 0; k < op->naxes; k++) {
            Lane at = position_at(l, &position[k], (uint32_t)r, &inside[r]);
            if (p->known[k] >= 0)
                continue;
            which = lane_xor(t, which, part_of_position(l, p, k, at, offsetof(Source, reg)));
            source = lane_xor(t, source, part_of_position(l, p, k, at, offsetof(Source, lane)));
        }
        if (s.lane)
            source = lane_xor(t, source, lane_int(t, DT_U32, s.lane));
        Lane zero = lane_int(t, DT_U32, 0);
        out[r] = choose(l, op, p, s, which.v ? which : zero, source.v ? source : zero);
    }
}

// --- through shared memory ---

// Bytes between elements along an axis: below the odd factor, and between two of its digits.
typedef struct Stride {
    unsigned bits;
    int64_t low, digit; // digit 0: there is none
} Stride;

// The bits of the tile in the order of its axes, the first fastest, then the digits.
static const Layout *tile_buffer(Lower *l, const Layout *from, int bytes, Stride *stride) {
    AxisSize sizes[AXES_MAX];
    int64_t s = bytes;
    for (int i = 0; i < from->naxes; i++) {
        sizes[i] = (AxisSize){from->axis[i], layout_size(from, from->axis[i])};
        stride[i] = (Stride){.bits = from->bits[i], .low = s};
        s <<= from->bits[i];
    }
    for (unsigned r = 0; r < from->nrep; r++) {
        stride[layout_axis_index(from, from->rep[r].axis)].digit = s;
        s *= from->rep[r].count;
    }
    return layout_shared_linear(l->layouts, sizes, from->naxes);
}

static int64_t known_offset(Stride s, uint32_t at) {
    uint32_t low = (UINT32_C(1) << s.bits) - 1;
    return (at & low) * s.low + (at >> s.bits) * s.digit;
}

static Lane scaled(Target *t, Lane x, int64_t stride) {
    return lane_op2(t, OP_MUL, DT_U32, x, lane_int(t, DT_U32, stride));
}

static Lane lane_sum(Target *t, Lane a, Lane b) {
    return !a.v ? b : !b.v ? a : lane_op2(t, OP_ADD, DT_U32, a, b);
}

static Lane position_offset(Target *t, Stride s, Lane at) {
    if (s.digit == 0)
        return scaled(t, at, s.low);
    int64_t low = (INT64_C(1) << s.bits) - 1;
    Lane digit = lane_op2(t, OP_SHR, DT_U32, at, lane_int(t, DT_U32, s.bits));
    Lane below = lane_op2(t, OP_AND, DT_U32, at, lane_int(t, DT_U32, low));
    return lane_sum(t, scaled(t, below, s.low), scaled(t, digit, s.digit));
}

static void through_shared(Lower *l, const Op *op, const TakePlan *p, const Position *position,
                           int n, Lane *out, Lane *inside) {
    Target *t = l->t;
    const Layout *from = p->from;
    DType dtype = memory_dtype(op->in[0]->type.dtype);
    Stride stride[AXES_MAX];
    const Layout *buffer = tile_buffer(l, from, storage_bytes(dtype), stride);
    if (!buffer) {
        target_fail(t, "a take from this tile");
        return;
    }
    int nfrom = type_registers(op->in[0]->type);
    LLVMValueRef *in = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)nfrom);
    lower_flatten(l, op->in[0], op->in[0]->type, in);
    Uni base = uni_int(t, 32, l->scratch_at);
    scratch_begin(l);
    shared_write(l, dtype, NULL, from, buffer, base, in);
    t->ops->block_barrier(t);
    Coord kept[AXES_MAX];
    for (int i = 0; i < from->naxes; i++)
        kept[i] = coord_of(l, p->to, from->axis[i]);
    Access access = {.dtype = dtype, .width = 1, .align = storage_bytes(dtype)};
    for (int r = 0; r < n && !t->failed; r++) {
        Lane offset = {NULL};
        int64_t imm = 0;
        for (int i = 0; i < from->naxes; i++) {
            if (is_taken(op, from->axis[i]))
                continue;
            uint32_t rest, c = coord_register(p->to, from->axis[i], (uint32_t)r);
            Lane lane = coord_lane(l, &kept[i], c, &rest);
            if (kept[i].warp.v)
                lane = lane_sum(t, lane, t->ops->splat(t, kept[i].warp));
            imm += known_offset(stride[i], rest);
            offset = lane_sum(t, offset, lane.v ? scaled(t, lane, stride[i].low) : lane);
        }
        for (int k = 0; k < op->naxes; k++) {
            int i = layout_axis_index(from, op->axes[k]->id);
            Lane at = position_at(l, &position[k], (uint32_t)r, &inside[r]);
            if (i >= 0)
                offset = lane_sum(t, offset, position_offset(t, stride[i], at));
        }
        Shared place = {.base = base, .offset = offset, .imm = (int32_t)imm};
        t->ops->load_shared(t, &access, place, (Lane){NULL}, &out[r]);
    }
}

void lower_take(Lower *l, const Op *op) {
    Target *t = l->t;
    Value *res = op->res[0];
    TakePlan p = take_plan(op);
    if (!p.from) {
        target_fail(t, "a take from this tile");
        return;
    }
    Tile *tile = lower_result(l, res);
    Position position[AXES_MAX];
    for (int k = 0; k < op->naxes; k++)
        position[k] = position_of(l, op, k);
    Lane *out = ARENA_ARRAY(l->arena, Lane, (size_t)tile->n);
    Lane *inside = ARENA_ARRAY(l->arena, Lane, (size_t)tile->n);
    if (t->failed)
        return;
    (p.shared ? through_shared : in_warp)(l, op, &p, position, tile->n, out, inside);
    const Value *other = op->has_else ? op->in[op->nin - 1] : NULL;
    Lane zero = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, res->type.dtype))});
    Operand fill = {0};
    if (other)
        fill = operand_of(l, other, res->type.layout);
    for (int r = 0; r < tile->n && !t->failed; r++) {
        Lane f = other ? operand_lane(l, &fill, (uint32_t)r) : zero;
        Lane x = t->ops->select(t, inside[r], out[r], f);
        tile->reg[r] = res->type.axes.n ? x.v : t->ops->lane_first(t, x).v;
    }
}

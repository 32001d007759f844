// Axes: windows, coordinates of lanes and registers, and what is known about integers.
//
// Input: layouts and values of the launch. Output: uniform and per-lane parts of coordinates.
// Invariant: a coordinate along an axis is (warp + lane ^ overlapping register bits) + the other
// register bits, so that register parts become constants of addresses wherever bits do not overlap.
#include "backend/lower.h"

// --- linear maps over F2 ---

// For each distance d between an input and an output bit, the input bits that move by d.
enum { DISTANCE_MAX = 32 };
static uint32_t distance_mask(int n, const uint32_t *col, int d) {
    uint32_t mask = 0;
    for (int i = 0; i < n; i++) {
        int out = i + d;
        if (out >= 0 && out < 32 && (col[i] >> out & 1))
            mask |= UINT32_C(1) << i;
    }
    return mask;
}

Uni uni_linear(Lower *l, Uni x, int n, const uint32_t *col) {
    LLVMBuilderRef b = l->t->builder;
    LLVMTypeRef i32 = target_int(l->t, 32);
    LLVMValueRef sum = NULL;
    for (int d = -DISTANCE_MAX; d < DISTANCE_MAX; d++) {
        uint32_t mask = distance_mask(n, col, d);
        if (!mask)
            continue;
        LLVMValueRef v = LLVMBuildAnd(b, x.v, LLVMConstInt(i32, mask, false), "");
        if (d > 0)
            v = LLVMBuildShl(b, v, LLVMConstInt(i32, (unsigned)d, false), "");
        if (d < 0)
            v = LLVMBuildLShr(b, v, LLVMConstInt(i32, (unsigned)-d, false), "");
        sum = sum ? LLVMBuildXor(b, sum, v, "") : v;
    }
    return (Uni){sum};
}

Lane lane_linear(Lower *l, Lane x, int n, const uint32_t *col) {
    Target *t = l->t;
    Lane sum = {NULL};
    for (int d = -DISTANCE_MAX; d < DISTANCE_MAX; d++) {
        uint32_t mask = distance_mask(n, col, d);
        if (!mask)
            continue;
        Lane v = lane_op2(t, OP_AND, DT_U32, x, lane_int(t, DT_U32, mask));
        if (d > 0)
            v = lane_op2(t, OP_SHL, DT_U32, v, lane_int(t, DT_U32, d));
        if (d < 0)
            v = lane_op2(t, OP_SHR, DT_U32, v, lane_int(t, DT_U32, -d));
        sum = sum.v ? lane_op2(t, OP_XOR, DT_U32, sum, v) : v;
    }
    return sum;
}

// --- coordinates ---

static uint32_t columns(const Layout *layout, unsigned dim, uint16_t axis, uint32_t *col) {
    uint32_t all = 0;
    for (unsigned i = 0; i < layout->nin[dim]; i++) {
        uint32_t c = layout_column(layout, dim, i, axis);
        if (col)
            col[i] = c;
        all |= c;
    }
    return all;
}

static uint32_t lowest_bit(uint32_t x) {
    return x ? x & (~x + 1) : UINT32_C(1) << 30;
}

Coord coord_of(Lower *l, const Layout *layout, uint16_t axis) {
    Coord c = {.divisor = UINT32_C(1) << 30};
    if (!layout || layout_axis_index(layout, axis) < 0)
        return c;
    uint32_t lane_col[LAYOUT_BITS_MAX] = {0}, warp_col[LAYOUT_BITS_MAX] = {0};
    uint32_t reg = columns(layout, IN_REG, axis, NULL);
    uint32_t lane = columns(layout, IN_LANE, axis, lane_col);
    uint32_t warp = columns(layout, IN_WARP, axis, warp_col);
    if (lane)
        c.lane = lane_linear(l, l->t->ops->lane_id(l->t), layout->nin[IN_LANE], lane_col);
    if (warp)
        c.warp = uni_linear(l, l->t->ops->warp_id(l->t), layout->nin[IN_WARP], warp_col);
    if (warp && ((warp & lane) || (warp & reg))) {
        Lane w = l->t->ops->splat(l->t, c.warp);
        c.lane = c.lane.v ? lane_op2(l->t, OP_XOR, DT_U32, c.lane, w) : w;
        c.warp.v = NULL;
        lane |= warp;
    }
    c.overlap = reg & lane;
    c.divisor = lowest_bit(lane | warp);
    return c;
}

uint32_t coord_register(const Layout *layout, uint16_t axis, uint32_t reg) {
    if (!layout)
        return 0;
    uint32_t in[IN_DIMS] = {[IN_REG] = reg};
    return layout_coord(layout, in, axis);
}

Lane coord_lane(Lower *l, const Coord *c, uint32_t reg_coord, uint32_t *rest) {
    *rest = reg_coord & ~c->overlap;
    uint32_t mixed = reg_coord & c->overlap;
    if (!mixed)
        return c->lane;
    return lane_op2(l->t, OP_XOR, DT_U32, c->lane, lane_int(l->t, DT_U32, mixed));
}

// --- windows ---

uint32_t axis_size_of(const Axis *axis) {
    while (axis->like && axis->size == 0)
        axis = axis->like;
    return axis->size;
}

int window_bits(Lower *l, const Value *lo, const Value *hi) {
    int a = lower_bits(l, lo), b = lower_bits(l, hi);
    return a > b ? a : b;
}

Window lower_window(Lower *l, const Axis *axis) {
    Window *w = &l->window[axis->id];
    if (w->begin.v)
        return *w;
    if (axis->like)
        return lower_window(l, axis->like);
    if (axis->lo && axis->hi) {
        return (Window){.begin = lower_index(l, axis->lo),
                        .end = lower_index(l, axis->hi),
                        .divisor = lower_divisor(l, axis->lo),
                        .nonneg = lower_nonneg(l, axis->lo),
                        .wraps = !lower_nonneg_exact(l, axis->lo),
                        .bits = window_bits(l, axis->lo, axis->hi),
                        .moderate = lower_is_moderate(l, axis->hi)};
    }
    Uni zero = uni_int(l->t, 64, 0);
    if (axis->is_dim && axis->extent) {
        return (Window){.begin = zero,
                        .end = lower_index(l, axis->extent),
                        .divisor = UINT32_C(1) << 30,
                        .nonneg = true,
                        .bits = ABI_DIM_BITS,
                        .moderate = true};
    }
    if (axis->of && axis->of != axis)
        return lower_window(l, axis->of);
    target_fail(l->t, "axis %s is not bound", axis->name);
    return (Window){.begin = zero, .end = zero, .divisor = 1};
}

Lane lower_active(Lower *l, const Layout *layout) {
    Target *t = l->t;
    uint32_t lanes = (uint32_t)t->desc->lanes, inside = 0, warps_in = 1;
    uint32_t free_lanes = 0, free_warps = 0;
    if (layout) {
        inside = (UINT32_C(1) << layout->nin[IN_LANE]) - 1;
        free_lanes = layout_free_bits(layout, IN_LANE);
        warps_in = UINT32_C(1) << layout->nin[IN_WARP];
        free_warps = layout_free_bits(layout, IN_WARP);
    }
    free_lanes |= (lanes - 1) & ~inside;
    Lane ok = {NULL};
    if (free_lanes) {
        Lane bits =
            lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, free_lanes));
        ok = lane_cmp(t, CMP_EQ, DT_U32, bits, lane_int(t, DT_U32, 0));
    }
    if (free_warps || (uint32_t)t->warps > warps_in) {
        // bits above the layout's are free too
        uint32_t mask = free_warps | ~(warps_in - 1);
        LLVMBuilderRef b = t->builder;
        LLVMTypeRef i32 = target_int(t, 32);
        LLVMValueRef bits =
            LLVMBuildAnd(b, t->ops->warp_id(t).v, LLVMConstInt(i32, mask, false), "");
        LLVMValueRef first = LLVMBuildICmp(b, LLVMIntEQ, bits, LLVMConstInt(i32, 0, false), "");
        ok = lane_and(t, ok, t->ops->splat(t, (Uni){first}));
    }
    return ok;
}

// --- what is known about integers ---

static uint32_t divisor_min(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t divisor_of_int(int64_t i) {
    uint64_t u = (uint64_t)i;
    uint64_t low = u & (~u + 1);
    return u == 0 || low > (UINT64_C(1) << 30) ? UINT32_C(1) << 30 : (uint32_t)low;
}

static uint32_t divisor_product(uint32_t a, uint32_t b) {
    uint64_t p = (uint64_t)a * b;
    return p > (UINT64_C(1) << 30) ? UINT32_C(1) << 30 : (uint32_t)p;
}

// The scalar binder of which v is the variable.
static const Op *binder_of(const Value *v, const Binder **binder) {
    const Op *owner = v->kind == VALUE_ARG ? v->region->owner : NULL;
    for (int i = 0; owner && i < owner->nbinders; i++) {
        if (owner->binder[i].var == v) {
            *binder = &owner->binder[i];
            return owner;
        }
    }
    return NULL;
}

static uint32_t divisor_at(Lower *l, const Value *v, int depth) {
    if (v->kind == VALUE_CONST && !dtype_is_float(v->type.dtype))
        return divisor_of_int(v->u.i);
    uint32_t known = l->fact[v->id] ? l->fact[v->id] : 1;
    if (depth > 16)
        return known;
    const Binder *binder;
    const Op *owner = binder_of(v, &binder);
    if (owner && owner->kind != OP_LAUNCH) {
        uint32_t d = divisor_at(l, owner->in[binder->first], depth + 1);
        uint32_t step =
            binder->has_step ? divisor_at(l, owner->in[binder->first + 2], depth + 1) : 1;
        return divisor_min(d, step);
    }
    if (v->kind != VALUE_OP)
        return known;
    const Op *op = v->def;
    if (op->kind == OP_MUL)
        return divisor_product(divisor_at(l, op->in[0], depth + 1),
                               divisor_at(l, op->in[1], depth + 1));
    if (op->kind == OP_ADD || op->kind == OP_SUB || op->kind == OP_MIN || op->kind == OP_MAX) {
        uint32_t d =
            divisor_min(divisor_at(l, op->in[0], depth + 1), divisor_at(l, op->in[1], depth + 1));
        return d > known ? d : known;
    }
    if (op->kind == OP_SELECT)
        return divisor_min(divisor_at(l, op->in[1], depth + 1),
                           divisor_at(l, op->in[2], depth + 1));
    if (op->kind == OP_CAST && !dtype_is_float(op->in[0]->type.dtype))
        return divisor_at(l, op->in[0], depth + 1);
    if (op->kind == OP_SHL && value_is_const(op->in[1]) && op->in[1]->u.i >= 0 &&
        op->in[1]->u.i < 31)
        return divisor_product(divisor_at(l, op->in[0], depth + 1), UINT32_C(1) << op->in[1]->u.i);
    if (op->kind == OP_BEGIN)
        return lower_window(l, op->axes[0]).divisor;
    if (op->kind == OP_EXTENT) {
        const Mem *mem = op->mem[0].mem;
        return divisor_at(l, mem->dim[op_attr_int(op, ATTR_dim)], depth + 1);
    }
    return known;
}

uint32_t lower_divisor(Lower *l, const Value *v) {
    return divisor_at(l, v, 0);
}

// --- sizes ---

enum { BITS_UNKNOWN = 64, BITS_MODERATE = 62, DEPTH_MAX = 12 };

static int most(int a, int b) {
    return a > b ? a : b;
}

// The least n with |i| <= 2^n.
static int bits_of_int(int64_t i) {
    uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    return size > 1 ? 64 - __builtin_clzll(size - 1) : 0;
}

static int bits_at(Lower *l, const Value *v, int depth);

static int quotient_bits(const Value *by, int bits) {
    bool known = value_is_const(by) && by->u.i > 0;
    return known ? most(bits - (63 - __builtin_clzll((uint64_t)by->u.i)), 0) : bits;
}

// Divisors of 0 count as 1 (arith.c). Differences and casts of negative numbers wrap in unsigned
// types.
static int op_bits(Lower *l, const Value *v, int depth) {
    const Op *op = v->def;
    bool is_signed = dtype_is_signed(v->type.dtype);
    switch ((int)op->kind) {
    case OP_ADD:
        return most(bits_at(l, op->in[0], depth), bits_at(l, op->in[1], depth)) + 1;
    case OP_SUB:
        if (!is_signed)
            return BITS_UNKNOWN;
        return most(bits_at(l, op->in[0], depth), bits_at(l, op->in[1], depth)) + 1;
    case OP_MUL:
        return bits_at(l, op->in[0], depth) + bits_at(l, op->in[1], depth);
    case OP_MIN:
    case OP_MAX:
        return most(bits_at(l, op->in[0], depth), bits_at(l, op->in[1], depth));
    case OP_SELECT:
        return most(bits_at(l, op->in[1], depth), bits_at(l, op->in[2], depth));
    case OP_CAST: {
        DType from = op->in[0]->type.dtype;
        bool same = !dtype_is_float(from) && (is_signed || !dtype_is_signed(from));
        return same ? bits_at(l, op->in[0], depth) : BITS_UNKNOWN;
    }
    case OP_DIV:
    case OP_FLOORDIV:
    case OP_CDIV:
        return quotient_bits(op->in[1], bits_at(l, op->in[0], depth));
    case OP_BEGIN:
    case OP_END:
        return lower_window(l, op->axes[0]).bits;
    case OP_EXTENT:
        return bits_at(l, op->mem[0].mem->dim[op_attr_int(op, ATTR_dim)], depth);
    case OP_ORDER: // a tile's number in its range
        for (int i = 0; i < op->nres; i++)
            if (op->res[i] == v)
                return bits_at(l, op->in[1 + i], depth);
        return BITS_UNKNOWN;
    default:
        return BITS_UNKNOWN;
    }
}

static int arg_bits(Lower *l, const Value *v, int depth) {
    const Binder *binder;
    const Op *owner = binder_of(v, &binder);
    if (!owner)
        return BITS_UNKNOWN;
    const Value *lo = owner->in[binder->first], *hi = owner->in[binder->first + 1];
    int bits = most(bits_at(l, lo, depth), bits_at(l, hi, depth));
    // There are less than 2^31 programs.
    return owner->kind == OP_LAUNCH && value_is_int(lo, 0) && bits > 31 ? 31 : bits;
}

static bool is_dim(const Lower *l, const Value *v) {
    for (int i = 0; i < l->kernel->nparam; i++)
        if (l->kernel->param[i].value == v)
            return l->kernel->param[i].kind == PARAM_DIM;
    return false;
}

// The least n that is known with |v| <= 2^n.
static int bits_at(Lower *l, const Value *v, int depth) {
    DType dtype = v->type.dtype;
    if (dtype_is_float(dtype))
        return BITS_UNKNOWN;
    int bits = dtype_bits(dtype) < 64 ? (int)dtype_bits(dtype) : BITS_UNKNOWN, found = bits;
    if (v->kind == VALUE_CONST)
        return bits_of_int(v->u.i);
    if (v->kind == VALUE_PARAM && is_dim(l, v))
        return ABI_DIM_BITS;
    if (depth < DEPTH_MAX && v->kind == VALUE_ARG)
        found = arg_bits(l, v, depth + 1);
    if (depth < DEPTH_MAX && v->kind == VALUE_OP)
        found = op_bits(l, v, depth + 1);
    return found < bits ? found : bits;
}

int lower_bits(Lower *l, const Value *v) {
    return bits_at(l, v, 0);
}

// v <= 2^62
static bool moderate_at(Lower *l, const Value *v, int depth) {
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (op && depth < DEPTH_MAX && op->kind == OP_MIN)
        return moderate_at(l, op->in[0], depth + 1) || moderate_at(l, op->in[1], depth + 1);
    if (op && depth < DEPTH_MAX && op->kind == OP_MAX)
        return moderate_at(l, op->in[0], depth + 1) && moderate_at(l, op->in[1], depth + 1);
    if (op && depth < DEPTH_MAX && op->kind == OP_SELECT)
        return moderate_at(l, op->in[1], depth + 1) && moderate_at(l, op->in[2], depth + 1);
    if (op && op->kind == OP_END)
        return lower_window(l, op->axes[0]).moderate;
    return bits_at(l, v, depth) <= BITS_MODERATE;
}

bool lower_is_moderate(Lower *l, const Value *v) {
    return moderate_at(l, v, 0);
}

// --- signs ---

static bool nonneg_at(Lower *l, const Value *v, int depth, bool exact);

// A variable lies between lo and hi: at lo or after it, or after hi where the step is negative.
static bool binder_nonneg(Lower *l, const Op *owner, const Binder *binder, int depth, bool exact) {
    const Value *lo = owner->in[binder->first], *hi = owner->in[binder->first + 1];
    const Value *step = binder->has_step ? owner->in[binder->first + 2] : NULL;
    bool up = !step || !value_is_const(step) || step->u.i > 0;
    bool down = step && (!value_is_const(step) || step->u.i < 0);
    return (!up || nonneg_at(l, lo, depth, exact)) && (!down || nonneg_at(l, hi, depth, exact));
}

static bool nonneg_at(Lower *l, const Value *v, int depth, bool exact) {
    if (v->kind == VALUE_CONST)
        return !dtype_is_float(v->type.dtype) && v->u.i >= 0;
    if (v->kind == VALUE_PARAM)
        return is_dim(l, v);
    if (depth > 16)
        return false;
    const Binder *binder;
    const Op *owner = binder_of(v, &binder);
    if (owner)
        return binder_nonneg(l, owner, binder, depth + 1, exact);
    if (v->kind != VALUE_OP)
        return false;
    const Op *op = v->def;
    if (exact && (op->kind == OP_MUL || op->kind == OP_ADD) && lower_bits(l, v) > BITS_MODERATE)
        return false;
    if (op->kind == OP_MUL || op->kind == OP_ADD || op->kind == OP_DIV || op->kind == OP_CDIV ||
        op->kind == OP_FLOORDIV || op->kind == OP_REM || op->kind == OP_MOD || op->kind == OP_MIN)
        return nonneg_at(l, op->in[0], depth + 1, exact) &&
               nonneg_at(l, op->in[1], depth + 1, exact);
    if (op->kind == OP_MAX)
        return nonneg_at(l, op->in[0], depth + 1, exact) ||
               nonneg_at(l, op->in[1], depth + 1, exact);
    if (op->kind == OP_BEGIN)
        return lower_window(l, op->axes[0]).nonneg &&
               !(exact && lower_window(l, op->axes[0]).wraps);
    return op->kind == OP_EXTENT || op->kind == OP_ORDER || op->kind == OP_SMS;
}

bool lower_nonneg(Lower *l, const Value *v) {
    return nonneg_at(l, v, 0, false);
}

bool lower_nonneg_exact(Lower *l, const Value *v) {
    return nonneg_at(l, v, 0, true);
}

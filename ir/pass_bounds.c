// Pass bounds: the only place where masks are made.
//
// In and out: stage scheduled. Adds
//   check = [dims]  to accesses: dims whose index is compared with the tensor's extent, unless it
//   is proven to lie inside guard = [axes]  to stores: axes whose window end is compared, unless
//   the tensor's extent already ends the window select(inside a, x, neutral) in front of
//   reductions, products and scans that would mix padding in
// An absent tensor has extent 0, so accesses to optional tensors are always checked.
#include <math.h>

#include "ir/nest.h"

typedef struct Bounds {
    PassCtx *ctx;
    Kernel *k;
    AxisWindow *window; // by axis id
    bool failed;
} Bounds;

// --- windows ---

static bool is_edge(const Value *v, OpKind kind) {
    return v->kind == VALUE_OP && v->def->kind == kind;
}

// A window in another axis's starts where that one does or later.
static bool starts_at_or_after_0(const Bounds *b, const Value *lo) {
    while (lo && is_edge(lo, OP_BEGIN))
        lo = b->window[lo->def->axes[0]->id].lo;
    return !lo || (lo->kind == VALUE_CONST && lo->u.i >= 0);
}

// Windows of the axis are always full: no padding.
static bool axis_is_exact(const Bounds *b, const Axis *a) {
    const AxisWindow *w = &b->window[a->id];
    if (a->size == 1 && w->binder)
        return true;
    if (a->size == 0 || !w->hi || !value_is_const(w->hi) || (w->lo && !value_is_const(w->lo)))
        return a->size == 0;
    // What a loop or grid binds is never empty; a fixed window has one tile even so.
    int64_t n = w->hi->u.i - (w->lo ? w->lo->u.i : 0);
    return n >= (w->binder ? 0 : 1) && n % a->size == 0;
}

// A part of a range (pass split), %b .. min(%x, %b + %n * c) with c a multiple of the tile's size:
// tiles that end before %x are full. Padding is beyond %x then, as if the range ended there.
static void window_end(const Axis *a, AxisWindow *w) {
    const Op *min = w->hi && w->hi->kind == VALUE_OP ? w->hi->def : NULL;
    if (!min || min->kind != OP_MIN || a->size == 0)
        return;
    const Value *end = min->in[1];
    const Op *add = end->kind == VALUE_OP ? end->def : NULL;
    if (!add || add->kind != OP_ADD || add->in[0] != w->lo)
        return;
    const Op *mul = add->in[1]->kind == VALUE_OP ? add->in[1]->def : NULL;
    const Value *unit = mul && mul->kind == OP_MUL ? mul->in[1] : NULL;
    if (unit && value_is_const(unit) && unit->u.i % (int64_t)a->size == 0)
        w->hi = min->in[0];
}

static bool window_ends_at(const Bounds *b, const Axis *a, const Value *extent) {
    const Value *hi = b->window[a->id].hi;
    while (hi && is_edge(hi, OP_END)) // it ends no later than that axis
        hi = b->window[hi->def->axes[0]->id].hi;
    return hi && (hi == extent || (hi->kind == VALUE_CONST && extent->kind == VALUE_CONST &&
                                   hi->u.i <= extent->u.i));
}

// --- checks ---

static bool arg_is_inside(const Bounds *b, const Value *v, const Value *extent) {
    const Op *loop = v->region->owner;
    if (!loop || (loop->kind != OP_PARALLEL && loop->kind != OP_FOR))
        return false;
    for (int i = 0; i < loop->nbinders; i++) {
        if (loop->binder[i].var != v || loop->binder[i].has_step)
            continue;
        const Value *hi = op_binder_hi(loop, i);
        bool below = hi == extent ||
                     (value_is_const(hi) && value_is_const(extent) && hi->u.i <= extent->u.i);
        return below && starts_at_or_after_0(b, op_binder_lo(loop, i));
    }
    return false;
}

// %v = kind %a, %b; NULL where it is something else.
static const Op *binary_of(const Value *v, OpKind kind) {
    return v->kind == VALUE_OP && v->def->kind == kind && v->def->nin == 2 ? v->def : NULL;
}

static bool is_begin_of(const Value *v, const Axis *a) {
    return v->kind == VALUE_OP && v->def->kind == OP_BEGIN && v->def->axes[0] == a;
}

// The number of a tile, begin a / size of cdiv(hi, size), and a place in one, a - begin a of size.
static bool tile_index_is_inside(const Bounds *b, const Value *v, const Value *extent) {
    const Op *in_tile = binary_of(v, OP_SUB), *tile = binary_of(v, OP_DIV);
    if (in_tile && in_tile->in[0]->kind == VALUE_IOTA) {
        const Axis *a = in_tile->in[0]->axis;
        return is_begin_of(in_tile->in[1], a) && value_is_const(extent) && a->size > 0 &&
               a->size <= extent->u.i;
    }
    if (!tile || tile->in[0]->kind != VALUE_OP || tile->in[0]->def->kind != OP_BEGIN)
        return false;
    const Axis *a = tile->in[0]->def->axes[0];
    const AxisWindow *w = &b->window[a->id];
    const Op *count = binary_of(extent, OP_CDIV);
    return count && w->binder && count->in[0] == w->hi && starts_at_or_after_0(b, w->lo) &&
           value_is_int(tile->in[1], a->size) && value_is_int(count->in[1], a->size);
}

static bool index_is_inside(const Bounds *b, const Value *v, const Mem *t, int dim) {
    const Value *extent = t->dim[dim];
    if (t->opt)
        return false;
    if (v->kind == VALUE_CONST)
        return value_is_const(extent) && v->u.i >= 0 && v->u.i < extent->u.i;
    if (v->kind == VALUE_ARG)
        return arg_is_inside(b, v, extent);
    if (v->kind == VALUE_OP)
        return tile_index_is_inside(b, v, extent);
    if (v->kind != VALUE_IOTA)
        return false;
    const Axis *a = v->axis;
    return axis_is_exact(b, a) && window_ends_at(b, a, extent) &&
           starts_at_or_after_0(b, b->window[a->id].lo);
}

static void access_check(Bounds *b, Op *op) {
    const MemRef *m = &op->mem[0];
    int64_t dims[RANK_MAX];
    int n = 0;
    for (int i = 0; i < m->nidx; i++)
        if (!index_is_inside(b, op->in[m->first + i], m->mem, i))
            dims[n++] = i;
    if (n > 0)
        op_set_ints(b->k, op, ATTR_check, n, dims);
}

// An axis whose padding the checks already drop: it is the index of a dim where its windows end.
static bool check_drops_padding(const Bounds *b, const Op *op, const Axis *a) {
    const MemRef *m = &op->mem[0];
    for (int i = 0; i < m->nidx; i++) {
        const Value *v = op->in[m->first + i];
        if (v->kind == VALUE_IOTA && v->axis == a && b->window[a->id].hi == m->mem->dim[i] &&
            op_attr_has_int(op, ATTR_check, i))
            return true;
    }
    return false;
}

static void guard_axes(Bounds *b, Op *op, AxisSet s) {
    Axis *guards[AXES_MAX];
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        Axis *a = b->k->axis[s.id[i]];
        if (!axis_is_exact(b, a) && !(op->nmem > 0 && check_drops_padding(b, op, a)))
            guards[n++] = a;
    }
    if (n > 0)
        op_set_axes(b->k, op, ATTR_guard, n, guards);
}

static AxisSet operand_axes(const Op *op) {
    AxisSet s = axes_none();
    for (int i = 0; i < op->nin; i++)
        axes_union(s, op->in[i]->type.axes, &s);
    return s;
}

static AxisSet access_axes(const Op *op) {
    AxisSet s = op->kind == OP_LOAD ? op->res[0]->type.axes : op_store_value(op)->type.axes;
    for (int i = 0; i < op->mem[0].nidx; i++)
        axes_union(s, op->in[op->mem[0].first + i]->type.axes, &s);
    return s;
}

static void access_guard(Bounds *b, Op *op) {
    guard_axes(b, op, access_axes(op));
}

// --- padding facts ---

// Every padding position of `v` along `a` holds the constant c.
static bool padding_is(const Bounds *b, const Value *v, const Axis *a, double c) {
    if (v->kind == VALUE_CONST) {
        double x = dtype_is_float(v->type.dtype) ? v->u.f : (double)v->u.i;
        return x == c;
    }
    if (v->kind != VALUE_OP)
        return false;
    const Op *op = v->def;
    if (op->kind == OP_CAST)
        return (c == 0 || isinf(c)) && padding_is(b, op->in[0], a, c);
    if (op->kind == OP_LOAD) {
        const Value *fill = op_load_else(op);
        bool fill_is_c = fill ? padding_is(b, fill, a, c) && fill->kind == VALUE_CONST : c == 0;
        bool guarded = axes_has(op_attr_axes(op, ATTR_guard), a->id);
        return fill_is_c && (guarded || check_drops_padding(b, op, a));
    }
    if (op->kind == OP_SELECT) {
        const Value *cond = op->in[0];
        bool by_window = cond->kind == VALUE_OP && cond->def->kind == OP_INSIDE &&
                         cond->def->nmem == 0 && cond->def->axes[0] == a;
        return by_window && padding_is(b, op->in[2], a, c);
    }
    return false;
}

static Value *mask_padding(Bounds *b, Op *user, Value *v, Axis *a, Value *neutral) {
    Builder at = ir_builder_before(b->k, user);
    at.span = user->span;
    return ir_select(&at, ir_inside_axis(&at, a), v, neutral, NULL);
}

static void neutral_bounds(Bounds *b, Op *op, ReduceKind kind) {
    for (int i = 0; i < op->naxes; i++) {
        Axis *a = op->axes[i];
        Value *neutral = reduce_identity(b->k, kind, op->in[0]->type.dtype);
        double c = dtype_is_float(neutral->type.dtype) ? neutral->u.f : (double)neutral->u.i;
        if (axis_is_exact(b, a) || padding_is(b, op->in[0], a, c))
            continue;
        op->in[0] = mask_padding(b, op, op->in[0], a, neutral);
    }
}

static void reduce_bounds(Bounds *b, Op *op) {
    neutral_bounds(b, op, (ReduceKind)op->sub);
}

// Padding that holds the identity never wins: of equal elements the one with the lowest position
// does, and where all are the identity that is the first one inside. Constants of e5m2 have no
// infinity, its elements do.
static void argreduce_bounds(Bounds *b, Op *op) {
    bool exact = true;
    for (int i = 0; i < op->naxes; i++)
        exact &= axis_is_exact(b, op->axes[i]);
    if (!exact && op->in[0]->type.dtype == DT_E5M2) {
        Builder at = ir_builder_before(b->k, op);
        at.span = op->span;
        op->in[0] = ir_cast(&at, DT_F16, op->in[0], NULL);
    }
    neutral_bounds(b, op, op->sub == ARG_MAX ? RED_MAX : RED_MIN);
}

// Both factors must be 0 in the padding of a contracted axis: 0 * inf is NaN.
static void dot_bounds(Bounds *b, Op *op) {
    for (int i = 0; i < op->naxes; i++) {
        Axis *a = op->axes[i];
        for (int j = 0; j < 2 && !axis_is_exact(b, a); j++) {
            DType t = op->in[j]->type.dtype;
            if (padding_is(b, op->in[j], a, 0))
                continue;
            op->in[j] = mask_padding(b, op, op->in[j], a,
                                     dtype_is_float(t) ? ir_float(b->k, t, 0) : ir_int(b->k, t, 0));
        }
    }
}

// Axes of an atomic's value that no index has are reduced in front of it.
//
//   atomic.add @y[i], %v   =>   %s = reduce.sum[j] %v; atomic.add @y[i], %s
static void atomic_bounds(Bounds *b, Op *op) {
    AxisSet index = axes_none();
    for (int i = 0; i < op->mem[0].nidx; i++)
        axes_union(index, op->in[op->mem[0].first + i]->type.axes, &index);
    AxisSet extra = axes_minus(op_store_value(op)->type.axes, index);
    ReduceKind kind;
    if (extra.n == 0 || !atomic_reduce((AtomicKind)op->sub, &kind))
        return;
    Builder at = ir_builder_before(b->k, op);
    at.span = op->span;
    Value *r = ir_reduce(&at, kind, op_store_value(op), extra, NULL);
    reduce_bounds(b, r->def);
    op->in[op->nin - 1] = r;
}

// Each value of a fold holds its identity in the padding.
static void fold_bounds(Bounds *b, Op *op) {
    int n = op_fold_values(op);
    for (int i = 0; i < op->naxes; i++) {
        for (int j = 0; j < n && !axis_is_exact(b, op->axes[i]); j++)
            if (op->in[j] != op->in[n + j])
                op->in[j] = mask_padding(b, op, op->in[j], op->axes[i], op->in[n + j]);
    }
}

// Axes whose padding stands in front of elements: all but the first, which is the slowest.
static bool scan_mixes(const Bounds *b, const Op *op, int i) {
    return i > 0 && !axis_is_exact(b, op->axes[i]);
}

static void scan_bounds(Bounds *b, Op *op) {
    static const ReduceKind kinds[SCAN_COUNT] = {RED_SUM, RED_PROD, RED_MAX};
    Value *neutral = reduce_identity(b->k, kinds[op->sub], op->in[0]->type.dtype);
    for (int i = 0; i < op->naxes; i++)
        if (scan_mixes(b, op, i))
            op->in[0] = mask_padding(b, op, op->in[0], op->axes[i], neutral);
}

static void too_many_values(Bounds *b, const Op *op) {
    diag_add(b->ctx->diags, DIAG_UNSUPPORTED, op->span,
             "not supported yet: a scan of %d values along axes whose tiles are not full",
             op->nres);
    b->failed = true;
}

// A function has no neutral element: padding carries a flag, and what has none is skipped.
//   %s = scanfn[a, b] %x {f}
//   => %i = inside b; %t, %s = scanfn[a, b] %i, %x {(v, x), (w, y): v && w ? f(x, y) : v ? x : y}
static void scanfn_bounds(Bounds *b, Op *op) {
    Builder at = ir_builder_before(b->k, op);
    at.span = op->span;
    Value *inside = NULL;
    for (int i = 0; i < op->naxes; i++) {
        if (!scan_mixes(b, op, i))
            continue;
        Value *in = ir_inside_axis(&at, op->axes[i]);
        inside = inside ? ir_binary(&at, OP_AND, inside, in, NULL) : in;
    }
    int n = op->nres;
    if (!inside)
        return;
    if (n == FOLD_VALUES_MAX) {
        too_many_values(b, op);
        return;
    }
    Value *v[FOLD_VALUES_MAX] = {inside}, *out[FOLD_VALUES_MAX];
    const char *names[FOLD_VALUES_MAX] = {NULL};
    for (int i = 0; i < n; i++) {
        v[1 + i] = op->in[i];
        names[1 + i] = op->res[i]->name;
    }
    Op *guarded = ir_fold(&at, n + 1, v, NULL, op->naxes, op->axes, names);
    Value **x = guarded->region[0]->arg, **y = x + n + 1;
    Builder in = ir_builder_at_end(b->k, guarded->region[0]);
    ir_inline_function(&in, b->ctx->scratch, op, x + 1, y + 1, out + 1);
    Value *both = ir_binary(&in, OP_AND, x[0], y[0], NULL);
    out[0] = ir_binary(&in, OP_OR, x[0], y[0], NULL);
    IrMap map = ir_map_new(b->ctx->scratch, b->k);
    for (int i = 1; i <= n; i++) {
        out[i] = ir_select(&in, both, out[i], ir_select(&in, x[0], x[i], y[i], NULL), NULL);
        ir_map_value(&map, op->res[i - 1], guarded->res[i]);
    }
    ir_yield(&in, n + 1, out, NULL);
    ir_op_unlink(op);
    ir_substitute(b->k->body, &map);
}

static void op_bounds(void *user, Op *op) {
    Bounds *b = user;
    switch ((int)op->kind) {
    case OP_LOAD:
        access_check(b, op);
        break;
    case OP_ATOMIC:
        atomic_bounds(b, op);
        access_check(b, op);
        access_guard(b, op);
        break;
    case OP_STORE:
    case OP_SCATTER:
        access_check(b, op);
        access_guard(b, op);
        break;
    case OP_ASSERT:
    case OP_PRINT:
        guard_axes(b, op, operand_axes(op));
        break;
    case OP_REDUCE:
        reduce_bounds(b, op);
        break;
    case OP_DOT:
        dot_bounds(b, op);
        break;
    case OP_FOLD:
        fold_bounds(b, op);
        break;
    case OP_SCAN:
        scan_bounds(b, op);
        break;
    case OP_SCANFN:
        scanfn_bounds(b, op);
        break;
    case OP_ARGREDUCE:
        argreduce_bounds(b, op);
        break;
    default:
        break;
    }
}

bool pass_bounds(PassCtx *ctx, Kernel *k) {
    Bounds b = {.ctx = ctx, .k = k, .window = axis_windows(ctx->scratch, k)};
    for (int i = 0; i < k->naxis; i++)
        window_end(k->axis[i], &b.window[i]);
    ir_walk(k->body, op_bounds, &b);
    return !b.failed;
}

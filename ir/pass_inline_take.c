// Pass inline_take: `take` of a value over whole axes => the value computed at those positions.
//
// In and out: stage tensor.
//
//   %x = load @x[P]; %r = max %x, 0; %t = take %r, P = %e else -inf
//   => %x' = load @x[%e]; %r' = max %x', 0; %in = %e in 0..%P; %t = select %in, %r', -inf
//
// Everything between the loads and the take is computed again at the positions. A product, a
// reduction or a scan is not, unless the positions are one-to-one (`P = 2*u + i`) and nobody else
// uses it; else it is kept in memory, and what is computed again is its load. So a pool becomes a
// reduction of the convolution's accumulator, or a windowed load. Takes along short axes, and
// inside nests along axes that are bound there, stay: a program holds what they need.
#include "ir/fuse.h"

#include <stdlib.h>

#include "lang/base/vec.h"

typedef struct Push {
    PassCtx *ctx;
    Kernel *k;
    Op *take;
    AxisSet taken, free; // axes that are replaced; axes of the positions
    Value *position[AXES_MAX];
    Value **done; // by value id: the value at the positions
    const uint32_t *uses;
    bool one_to_one;
    Value *heavy; // set by can_push: the product, reduction or scan that stands in the way
} Push;

static bool is_along(const Push *p, const Value *v) {
    return axes_intersect(v->type.axes, p->taken).n > 0;
}

static AxisSet op_bracket(const Op *op) {
    AxisSet s = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(&s, op->axes[i]->id);
    return s;
}

// --- one-to-one ---

typedef struct Linear {
    int n;
    int64_t coeff[AXES_MAX];
    const Axis *axis[AXES_MAX];
    int64_t plus;     // constant part
    bool ok, shifted; // shifted: a part that is no constant is added
} Linear;

static void linear_add(Linear *l, const Axis *a, int64_t c) {
    for (int i = 0; i < l->n; i++) {
        if (l->axis[i] == a) {
            l->coeff[i] += c;
            return;
        }
    }
    l->ok &= l->n < AXES_MAX;
    if (!l->ok)
        return;
    l->axis[l->n] = a;
    l->coeff[l->n++] = c;
}

enum { COEFF_MAX = 1 << 20 };

// Adds c * v; a part that has no axis counts as a shift.
static void linear_of(Linear *l, const Value *v, int64_t c, int depth) {
    if (depth > 16 || c > COEFF_MAX || c < -COEFF_MAX) {
        l->ok = false;
        return;
    }
    if (v->kind == VALUE_CONST && v->u.i <= COEFF_MAX && v->u.i >= -COEFF_MAX) {
        l->plus += c * v->u.i;
        return;
    }
    if (v->kind == VALUE_IOTA) {
        linear_add(l, v->axis, c);
        return;
    }
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (v->type.axes.n == 0) {
        l->shifted = true;
    } else if (op && (op->kind == OP_ADD || op->kind == OP_SUB)) {
        linear_of(l, op->in[0], c, depth + 1);
        linear_of(l, op->in[1], op->kind == OP_ADD ? c : -c, depth + 1);
    } else if (op && op->kind == OP_MUL && value_is_const(op->in[1])) {
        linear_of(l, op->in[0], c * op->in[1]->u.i, depth + 1);
    } else if (op && op->kind == OP_MUL && value_is_const(op->in[0])) {
        linear_of(l, op->in[1], c * op->in[0]->u.i, depth + 1);
    } else if (op && op->kind == OP_CAST && op->res[0]->type.dtype == DT_INDEX) {
        linear_of(l, op->in[0], c, depth + 1);
    } else {
        l->ok = false;
    }
}

// Number of indices of the axis; -1: unknown.
static int64_t axis_count(const Axis *a) {
    const Value *hi = a->is_dim ? a->extent : a->hi;
    const Value *lo = a->is_dim ? NULL : a->lo;
    if (!hi || !value_is_const(hi) || (lo && !value_is_const(lo)))
        return -1;
    int64_t n = hi->u.i - (lo ? lo->u.i : 0);
    return n > 0 ? n : 0;
}

// -1: there is none.
static int largest_term(const Linear *l) {
    int best = -1;
    for (int i = 0; i < l->n; i++)
        if (l->coeff[i] && (best < 0 || llabs(l->coeff[i]) > llabs(l->coeff[best])))
            best = i;
    return best;
}

// Terms below the largest reach less far than its step, and so on: a mixed radix.
static bool linear_is_one_to_one(Linear l) {
    for (;;) {
        int top = largest_term(&l);
        if (top < 0)
            return true;
        int64_t step = llabs(l.coeff[top]), reach = 0;
        l.coeff[top] = 0;
        for (int i = 0; i < l.n; i++) {
            if (!l.coeff[i])
                continue;
            int64_t n = axis_count(l.axis[i]);
            if (n < 0 || n > COEFF_MAX)
                return false;
            reach += llabs(l.coeff[i]) * (n > 0 ? n - 1 : 0);
        }
        if (reach >= step)
            return false;
    }
}

// Each new axis stands in one position, which its terms determine; an axis that the value keeps is
// given.
static bool positions_one_to_one(const Op *take) {
    AxisSet kept = axes_minus(take->in[0]->type.axes, op_bracket(take)), seen = kept;
    for (int k = 0; k < take->naxes; k++) {
        const Value *e = take->in[1 + k];
        AxisSet fresh = axes_minus(e->type.axes, kept);
        if (axes_intersect(fresh, axes_minus(seen, kept)).n > 0)
            return false;
        axes_union(seen, fresh, &seen);
        Linear l = {.ok = true};
        linear_of(&l, e, 1, 0);
        for (int i = 0; i < l.n; i++)
            if (axes_has(kept, l.axis[i]->id))
                l.coeff[i] = 0;
        if (fresh.n > 0 && (!l.ok || !linear_is_one_to_one(l)))
            return false;
    }
    return true;
}

// --- inside the window ---

// x == hi / c: by definition, or because the launch requires it.
static bool is_quotient(const Kernel *k, const Value *x, const Value *hi, int64_t c) {
    if (c == 1 && x == hi)
        return true;
    const Op *div = x->kind == VALUE_OP ? x->def : NULL;
    if (div && div->kind == OP_DIV && div->in[0] == hi && value_is_int(div->in[1], c))
        return true;
    for (const Op *op = k->body->first; op; op = op->next) {
        const Op *eq =
            op->kind == OP_REQUIRE && op->in[0]->kind == VALUE_OP ? op->in[0]->def : NULL;
        if (!eq || eq->kind != OP_CMP || eq->sub != CMP_EQ)
            continue;
        for (int i = 0; i < 2; i++) {
            const Value *y = eq->in[1 - i];
            const Op *d = y->kind == VALUE_OP ? y->def : NULL;
            if (eq->in[i] == x &&
                ((c == 1 && y == hi) ||
                 (d && d->kind == OP_DIV && d->in[0] == hi && value_is_int(d->in[1], c))))
                return true;
        }
    }
    return false;
}

static const Value *axis_end(const Axis *a) {
    return a->is_dim ? a->extent : a->hi;
}

static bool axis_from_0(const Axis *a) {
    return a->is_dim || (a->lo && value_is_int(a->lo, 0));
}

// 0 <= e < hi wherever e's axes are inside: c*u + r with r < c and u < hi / c.
static bool is_inside(const Kernel *k, const Value *e, const Axis *a) {
    Linear l = {.ok = true};
    linear_of(&l, e, 1, 0);
    int top = largest_term(&l);
    if (!l.ok || l.shifted || l.plus < 0 || !axis_from_0(a) || !axis_end(a))
        return false;
    int64_t reach = l.plus;
    for (int i = 0; i < l.n; i++) {
        int64_t n = axis_count(l.axis[i]);
        if (l.coeff[i] < 0 || !axis_from_0(l.axis[i]) || (i != top && (n < 0 || n > COEFF_MAX)))
            return false;
        if (i != top)
            reach += l.coeff[i] * (n > 0 ? n - 1 : 0);
    }
    const Value *hi = axis_end(a);
    int64_t n = top >= 0 ? axis_count(l.axis[top]) : 1;
    if (value_is_const(hi) && n >= 0 && n <= COEFF_MAX)
        return reach + (top >= 0 ? l.coeff[top] * (n - 1) : 0) < hi->u.i;
    const Value *x = top >= 0 ? axis_end(l.axis[top]) : NULL;
    return x && reach < l.coeff[top] && is_quotient(k, x, hi, l.coeff[top]);
}

// --- may the value be computed again? ---

static bool op_is_heavy(const Op *op) {
    return op->kind == OP_DOT || op->kind == OP_REDUCE || op->kind == OP_SCAN ||
           op->kind == OP_ARGREDUCE || op_has(op->kind, TRAIT_FUNCTION);
}

// Nothing writes the load's tensor before the take.
static bool load_stays(const Push *p, const Op *load) {
    if (load->parent != p->take->parent) {
        for (const Op *op = p->k->body->first; op; op = op->next)
            if (op_writes((Op *)op, load->mem[0].mem))
                return false;
        return true;
    }
    for (Op *op = load->next; op && op != p->take; op = op->next)
        if (op_writes(op, load->mem[0].mem))
            return false;
    return true;
}

static bool can_push(Push *p, Value *v, uint8_t *seen);

static bool can_push_heavy(Push *p, const Op *op) {
    bool kind = op->kind == OP_DOT || op->kind == OP_REDUCE;
    bool captured = axes_intersect(op_bracket(op), p->free).n > 0;
    if (kind && p->one_to_one && !captured && p->uses[op->res[0]->id] == 1)
        return true;
    p->heavy = op->res[0];
    return false;
}

// An inner take along a taken axis: that axis is its own in the value, and ours in its positions.
static bool take_is_own(const Push *p, const Op *op) {
    return op->kind == OP_TAKE && axes_intersect(op_bracket(op), p->taken).n > 0;
}

// Positions may not be caught by the axes that an inner take replaces.
static bool take_is_clear(const Push *p, const Op *op) {
    AxisSet kept = axes_minus(op->in[0]->type.axes, op_bracket(op));
    if (axes_intersect(kept, p->taken).n == 0)
        return true;
    return !take_is_own(p, op) && axes_intersect(op_bracket(op), p->free).n == 0;
}

static bool can_push_op(Push *p, Op *op, uint8_t *seen) {
    bool plain = op->nregion == 0 && op->nres == 1;
    if (op_is_heavy(op)) {
        if (!can_push_heavy(p, op))
            return false;
    } else if (op->kind == OP_LOAD) {
        if (!load_stays(p, op))
            return false;
    } else if (!plain || !(op_has(op->kind, TRAIT_ELEMENTWISE) || op->kind == OP_INSIDE ||
                           (op->kind == OP_TAKE && take_is_clear(p, op)))) {
        return false;
    }
    for (int i = take_is_own(p, op) ? 1 : 0; i < op->nin; i++)
        if (!can_push(p, op->in[i], seen))
            return false;
    return true;
}

static bool can_push(Push *p, Value *v, uint8_t *seen) {
    if (!is_along(p, v) || seen[v->id])
        return true;
    seen[v->id] = 1;
    if (v->kind == VALUE_IOTA)
        return true;
    if (v->kind != VALUE_OP)
        return false;
    if (can_push_op(p, v->def, seen))
        return true;
    if (p->heavy == v->def->res[0]) // of several results the one that is wanted
        p->heavy = v;
    return false;
}

// --- computing it ---

static Value *position_of(const Push *p, const Axis *a) {
    for (int k = 0; k < p->take->naxes; k++)
        if (p->take->axes[k] == a)
            return p->position[k];
    return NULL;
}

static Value *window_begin(Builder *b, Axis *a) {
    return a->is_dim ? ir_index(b->kernel, 0) : a->lo ? a->lo : ir_begin(b, a);
}

static Value *window_end(Builder *b, Axis *a) {
    return a->is_dim ? a->extent : a->hi ? a->hi : ir_end(b, a);
}

// begin a <= e < end a
static Value *in_window(Builder *b, Value *e, Axis *a) {
    Value *low = ir_cmp(b, CMP_GE, e, window_begin(b, a), NULL);
    return ir_binary(b, OP_AND, low, ir_cmp(b, CMP_LT, e, window_end(b, a), NULL), NULL);
}

static AxisSet pushed_axes(const Op *op) {
    AxisSet s = axes_none();
    bool is_take = op->kind == OP_TAKE;
    for (int i = 0; i < op->nin; i++) {
        AxisSet x = op->in[i]->type.axes;
        axes_union(s, is_take && i == 0 ? axes_minus(x, op_bracket(op)) : x, &s);
    }
    return op_is_heavy(op) ? axes_minus(s, op_bracket(op)) : s;
}

static Value *push(Push *p, Builder *b, Value *v);

static Value *push_op(Push *p, Builder *b, Op *op) {
    if (op->kind == OP_INSIDE && op->nmem == 0)
        return in_window(b, position_of(p, op->axes[0]), op->axes[0]);
    bool own = take_is_own(p, op);
    Value **in = ARENA_ARRAY(p->ctx->scratch, Value *, (size_t)op->nin + 1);
    for (int i = 0; i < op->nin; i++)
        in[i] = own && i == 0 ? op->in[0] : push(p, b, op->in[i]);
    b->span = op->span;
    IrMap none = ir_map_new(p->ctx->scratch, p->k);
    Op *copy = ir_clone(b, op, &none);
    ir_op_set_in(p->k, copy, op->nin, in);
    copy->res[0]->type.axes = pushed_axes(copy);
    return copy->res[0];
}

static Value *push(Push *p, Builder *b, Value *v) {
    if (!is_along(p, v))
        return v;
    if (v->kind == VALUE_IOTA)
        return position_of(p, v->axis);
    if (!p->done[v->id])
        p->done[v->id] = push_op(p, b, v->def);
    return p->done[v->id];
}

static Value *zero_of(Kernel *k, DType t) {
    return dtype_is_float(t) ? ir_float(k, t, 0)
           : t == DT_BOOL    ? ir_bool(k, false)
                             : ir_int(k, t, 0);
}

static void inline_take(Push *p) {
    Op *take = p->take;
    Builder b = ir_builder_before(p->k, take);
    b.span = take->span;
    Value *inside = NULL;
    for (int i = 0; i < take->naxes; i++) {
        Value *e = p->position[i] = ir_cast(&b, DT_INDEX, take->in[1 + i], NULL);
        if (is_inside(p->k, e, take->axes[i]))
            continue;
        Value *in = in_window(&b, e, take->axes[i]);
        inside = inside ? ir_binary(&b, OP_AND, inside, in, NULL) : in;
    }
    p->done = ARENA_ARRAY(p->ctx->scratch, Value *, (size_t)p->k->nvalue + 1);
    Value *v = push(p, &b, take->in[0]);
    b.span = take->span;
    if (!inside && !axes_equal(v->type.axes, take->res[0]->type.axes))
        inside = in_window(&b, p->position[0], take->axes[0]);
    Value *fill =
        take->has_else ? take->in[take->nin - 1] : zero_of(p->k, take->res[0]->type.dtype);
    if (inside)
        v = ir_select(&b, inside, v, fill, take->res[0]->name);
    IrMap map = ir_map_new(p->ctx->scratch, p->k);
    ir_map_value(&map, take->res[0], v);
    ir_substitute(p->k->body, &map);
    ir_op_unlink(take);
}

// --- which takes ---

static bool in_nest(const Op *op) {
    for (; op; op = op->parent ? op->parent->owner : NULL)
        if (op->kind == OP_PARALLEL)
            return true;
    return false;
}

// A program holds the whole axis, or its current tile.
static bool axis_is_held(const Axis *a, bool nest) {
    bool whole = a->is_dim || (a->lo && a->hi && !a->like);
    return whole ? axis_is_short(a) : nest;
}

static bool take_is_inlined(const Op *take) {
    bool nest = in_nest(take);
    for (int i = 0; i < take->naxes; i++)
        if (!axis_is_held(take->axes[i], nest))
            return true;
    return false;
}

// False: an error was reported.
static bool try_inline(PassCtx *ctx, Kernel *k, Op *take) {
    for (int round = 0; round < 2; round++) {
        Push p = {.ctx = ctx, .k = k, .take = take, .taken = op_bracket(take)};
        p.free = axes_none();
        for (int i = 0; i < take->naxes; i++)
            axes_union(p.free, take->in[1 + i]->type.axes, &p.free);
        p.one_to_one = positions_one_to_one(take);
        p.uses = ir_count_uses(ctx->scratch, k);
        uint8_t *seen = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nvalue + 1);
        if (can_push(&p, take->in[0], seen)) {
            inline_take(&p);
            return true;
        }
        Value *keep = p.heavy && !p.one_to_one ? take->in[0] : p.heavy ? p.heavy : take->in[0];
        if (in_nest(take) || keep->kind != VALUE_OP || keep->def->parent != take->parent)
            return true;
        if (!fuse_keep_value(ctx, k, keep, "it is indexed, and computing it again costs more"))
            return false;
    }
    return true;
}

static bool region_inline(PassCtx *ctx, Kernel *k, Region *r) {
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nregion; i++)
            if (!region_inline(ctx, k, op->region[i]))
                return false;
        if (op->kind == OP_TAKE && take_is_inlined(op) && !try_inline(ctx, k, op))
            return false;
    }
    return true;
}

bool pass_inline_take(PassCtx *ctx, Kernel *k) {
    return region_inline(ctx, k, k->body);
}

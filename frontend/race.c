/* Races: no element of a tensor is written twice by one store or by two iterations of a nest.
 *
 * Input: a store with its index values. Output: the attribute `det` (per dim, the binder or axis
 * that the index there determines, or `_`), or a report that names what is not determined.
 *
 * A set D of determined variables (binders, iotas) grows to a fixed point. An index value is a sum
 * of terms; when all but one term depend only on D and that one is c*x, x is determined. Mixed
 * radix sums determine all their digits, x / C together with x % C determines x, an equality that
 * holds around the store determines its variable, and an axis that walks the chunk p*c ..
 * min(M, (p + 1)*c) or the segment s[e] .. s[e + 1] determines p or e.
 */
#include "frontend/fe.h"

#include <string.h>

enum { TERMS_MAX = 16, VARS_MAX = 40 };

typedef struct Term {
    Value *leaf;
    int64_t scale;
    Value *factor; /* a symbolic factor, or NULL */
} Term;

typedef struct Sum {
    Term term[TERMS_MAX];
    int n;
    int64_t constant;
    bool ok;
} Sum;

/* Larger coefficients prove nothing: the index arithmetic may wrap around 64 bits. */
#define SCALE_MAX    ((int64_t)1 << 31)
#define CONSTANT_MAX ((int64_t)1 << 53)

typedef struct Vars {
    Value *v[VARS_MAX];
    int n;
    bool all; /* too many to follow: depends on anything */
} Vars;

typedef struct Proof {
    Fe *fe;
    Vars known;
    AxisSet axes;
    Value **index;
    int rank;
    const char *det[RANK_MAX];
    bool guarded; /* a condition was needed */
} Proof;

static bool vars_has(const Vars *s, const Value *v) {
    for (int i = 0; i < s->n; i++)
        if (s->v[i] == v)
            return true;
    return false;
}

static void vars_add(Vars *s, Value *v) {
    if (vars_has(s, v))
        return;
    if (s->n == VARS_MAX)
        s->all = true;
    else
        s->v[s->n++] = v;
}

/* --- what a value depends on ---------------------------------------------------------------- */

static void vars_drop(Vars *s, const Value *v) {
    for (int i = 0; i < s->n; i++)
        if (s->v[i] == v)
            s->v[i--] = s->v[--s->n];
}

/* Ops whose result is no function of their operands while the nest runs. */
static bool is_opaque(Fe *fe, const Op *op) {
    if (op->nregion > 0 || op_has(op->kind, TRAIT_WRITES))
        return true;
    if (op->kind != OP_LOAD)
        return false;
    const Mem *mem = op->mem[0].mem;
    if (mem->kind == MEM_PARAM && mem->mode != MODE_IN)
        return true;
    for (uint32_t i = 0; i < fe->accesses.len; i++)
        if (fe->accesses.data[i].is_store && fe->accesses.data[i].tensor->mem == mem)
            return true;
    return false;
}

/* Where the tiles of an axis start, or NULL. */
static Value *window_lo(Fe *fe, const Axis *axis) {
    while (axis->like)
        axis = axis->like;
    return axis->is_dim ? ir_index(fe->kernel, 0) : axis_info(fe, axis)->lo;
}

static Value *window_hi(Fe *fe, const Axis *axis) {
    while (axis->like)
        axis = axis->like;
    return axis->is_dim ? axis->extent : axis_info(fe, axis)->hi;
}

static void depends(Fe *fe, Value *v, Vars *out, int depth) {
    if (depth > 200)
        out->all = true;
    if (out->all || v->kind == VALUE_CONST || v->kind == VALUE_PARAM)
        return;
    if (v->kind != VALUE_OP || is_opaque(fe, v->def)) {
        vars_add(out, v);
        return;
    }
    Op *op = v->def;
    if (op->kind == OP_BEGIN || op->kind == OP_END) {
        Value *lo = window_lo(fe, op->axes[0]), *hi = window_hi(fe, op->axes[0]);
        vars_add(out, op->axes[0]->iota);
        if (lo)
            depends(fe, lo, out, depth + 1);
        if (hi && op->kind == OP_END)
            depends(fe, hi, out, depth + 1);
        return;
    }
    bool removes = op->kind == OP_REDUCE || op->kind == OP_DOT || op->kind == OP_ARGREDUCE;
    bool makes = op->kind == OP_TOPK || op->kind == OP_HISTOGRAM;
    if (removes || makes || op->kind == OP_TAKE) {
        Vars inner = {0};
        depends(fe, op->in[0], &inner, depth + 1);
        if (op->kind == OP_DOT)
            depends(fe, op->in[1], &inner, depth + 1);
        for (int i = 0; i < (makes ? 1 : op->naxes); i++)
            vars_drop(&inner, op->axes[i]->iota);
        for (int i = 0; i < inner.n; i++)
            vars_add(out, inner.v[i]);
        out->all |= inner.all;
        if (makes) // the result differs along the axis that is made
            vars_add(out, op->axes[1]->iota);
        if (removes || makes)
            return;
    }
    for (int i = op->kind == OP_TAKE ? 1 : 0; i < op->nin; i++)
        depends(fe, op->in[i], out, depth + 1);
}

static bool is_known(const Proof *p, Value *v) {
    Vars d = {0};
    depends(p->fe, v, &d, 0);
    if (d.all)
        return false;
    for (int i = 0; i < d.n; i++)
        if (!vars_has(&p->known, d.v[i]))
            return false;
    return true;
}

static bool is_invariant(Fe *fe, Value *v) {
    Vars d = {0};
    depends(fe, v, &d, 0);
    return d.n == 0 && !d.all;
}

/* --- sums ----------------------------------------------------------------------------------- */

static bool is_at_most(int64_t v, int64_t bound) {
    return v >= -bound && v <= bound;
}

static void sum_add(Sum *s, Value *leaf, int64_t scale, Value *factor) {
    s->ok &= is_at_most(scale, SCALE_MAX);
    if (!s->ok)
        return;
    for (int i = 0; i < s->n; i++)
        if (s->term[i].leaf == leaf && s->term[i].factor == factor) {
            s->term[i].scale += scale;
            s->ok &= is_at_most(s->term[i].scale, SCALE_MAX);
            return;
        }
    if (s->n == TERMS_MAX)
        s->ok = false;
    else
        s->term[s->n++] = (Term){leaf, scale, factor};
}

static bool is_negative(const Value *v) {
    return v->kind == VALUE_CONST && v->u.i < 0;
}

/* A cast after which the number is the same, as an index: integers as 64 bits or as wider ones. */
static bool keeps_values(const Value *v) {
    if (v->kind != VALUE_OP || v->def->kind != OP_CAST)
        return false;
    DType from = v->def->in[0]->type.dtype, to = v->type.dtype;
    if (!dtype_is_integer(from) || !dtype_is_integer(to))
        return false;
    if (from == to || dtype_bits(to) == 64)
        return true;
    return dtype_bits(to) > dtype_bits(from) && (dtype_is_signed(to) || !dtype_is_signed(from));
}

/* The index of the elements that a store or a read reaches: `c ? e : -1` is e, where it is the
 * whole index, since the others are outside. */
static Value *inside(Value *v) {
    while (v->kind == VALUE_OP) {
        Op *op = v->def;
        if (keeps_values(v))
            v = op->in[0];
        else if (op->kind == OP_SELECT && is_negative(op->in[2]))
            v = op->in[1];
        else if (op->kind == OP_SELECT && is_negative(op->in[1]))
            v = op->in[2];
        else
            break;
    }
    return v;
}

/* Arithmetic of 32 bits may wrap, so that what it gives is a number of its own and no sum of its
 * parts: `let q = a + b;` of i32 is not the `a + b` of an index, which has 64 bits. */
static bool may_wrap(const Value *v) {
    return dtype_bits(v->type.dtype) < 64;
}

static void sum_of(Fe *fe, Sum *s, Value *v, int64_t scale) {
    s->ok &= is_at_most(scale, SCALE_MAX);
    if (!s->ok)
        return;
    if (v->kind == VALUE_CONST) {
        int64_t product;
        s->ok &= !__builtin_mul_overflow(scale, v->u.i, &product) &&
                 is_at_most(product, CONSTANT_MAX) && is_at_most(s->constant, CONSTANT_MAX);
        s->constant += s->ok ? product : 0;
        return;
    }
    Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (!op || (may_wrap(v) && !keeps_values(v))) {
        sum_add(s, v, scale, NULL);
        return;
    }
    if (op->kind == OP_ADD || op->kind == OP_SUB) {
        sum_of(fe, s, op->in[0], scale);
        sum_of(fe, s, op->in[1], op->kind == OP_ADD ? scale : -scale);
    } else if (op->kind == OP_MUL &&
               (op->in[0]->kind == VALUE_CONST || op->in[1]->kind == VALUE_CONST)) {
        int k = op->in[1]->kind == VALUE_CONST ? 1 : 0;
        s->ok &= !__builtin_mul_overflow(scale, op->in[k]->u.i, &scale);
        sum_of(fe, s, op->in[1 - k], scale);
    } else if (op->kind == OP_MUL && is_invariant(fe, op->in[1])) {
        sum_add(s, op->in[0], scale, op->in[1]);
    } else if (op->kind == OP_MUL && is_invariant(fe, op->in[0])) {
        sum_add(s, op->in[1], scale, op->in[0]);
    } else if (op->kind == OP_NEG) {
        sum_of(fe, s, op->in[0], -scale);
    } else if (keeps_values(v)) {
        sum_of(fe, s, op->in[0], scale);
    } else {
        sum_add(s, v, scale, NULL);
    }
}

static bool is_variable(const Value *v) {
    return v->kind == VALUE_IOTA || v->kind == VALUE_ARG;
}

static bool is_dim(const Fe *fe, const Value *v) {
    for (uint32_t i = 0; i < fe->kernel->nparam; i++)
        if (fe->kernel->param[i].kind == PARAM_DIM && fe->kernel->param[i].value == v)
            return true;
    return false;
}

/* --- ranges of variables -------------------------------------------------------------------- */

bool variable_range(Fe *fe, const Value *v, Value **lo, Value **hi) {
    if (v->kind == VALUE_IOTA) {
        AxisInfo *info = axis_info(fe, v->axis);
        *lo = v->axis->is_dim ? ir_index(fe->kernel, 0) : info->lo;
        *hi = v->axis->is_dim ? v->axis->extent : info->hi;
        return *lo && *hi;
    }
    const Op *op = v->region->owner;
    if (!op)
        return false;
    for (int i = 0; i < op->nbinders; i++)
        if (op->binder[i].var == v && !op->binder[i].has_step) {
            *lo = op_binder_lo(op, i);
            *hi = op_binder_hi(op, i);
            return true;
        }
    return false;
}

static bool same_value(const Value *a, const Value *b, int depth) {
    if (a == b)
        return true;
    if (depth > 40 || a->kind != VALUE_OP || b->kind != VALUE_OP)
        return false;
    const Op *x = a->def, *y = b->def;
    if (x->kind != y->kind || x->sub != y->sub || x->nin != y->nin || x->naxes != y->naxes ||
        !type_equal(a->type, b->type) || !op_has(x->kind, TRAIT_PURE) || x->nregion || x->nmem)
        return false;
    for (int i = 0; i < x->naxes; i++)
        if (x->axes[i] != y->axes[i])
            return false;
    for (int i = 0; i < x->nin; i++)
        if (!same_value(x->in[i], y->in[i], depth + 1))
            return false;
    return true;
}

/* Digits: x*C + y with y in 0..C, for constant or symbolic C. */
static bool is_digit_below(Fe *fe, const Term *low, const Term *high) {
    Value *lo, *hi;
    if (!variable_range(fe, low->leaf, &lo, &hi) || !value_is_int(lo, 0))
        return false;
    if (low->factor || low->scale == 0)
        return false;
    int64_t unit = low->scale < 0 ? -low->scale : low->scale;
    int64_t step = high->scale < 0 ? -high->scale : high->scale;
    if (high->factor)
        return unit == 1 && step >= 1 && same_value(high->factor, hi, 0);
    return hi->kind == VALUE_CONST && hi->u.i > 0 && hi->u.i <= step / unit;
}

/* --- growing D ------------------------------------------------------------------------------ */

static void learn(Proof *p, Value *v);

/* The index of a load of rank 1 behind casts, or NULL. */
static Value *loaded_at(Value *v, Mem **mem) {
    while (keeps_values(v))
        v = v->def->in[0];
    if (v->kind != VALUE_OP || v->def->kind != OP_LOAD || v->def->mem[0].nidx != 1)
        return NULL;
    *mem = v->def->mem[0].mem;
    return v->def->in[v->def->mem[0].first];
}

/* hi - lo == step along x, as sums: hi has the terms of lo and the constant or factor once more. */
static Value *single_variable(Fe *fe, Value *v) {
    Sum s = {.ok = true};
    sum_of(fe, &s, v, 1);
    return s.ok && s.n == 1 && is_variable(s.term[0].leaf) && s.term[0].scale != 0 &&
                   !s.term[0].factor
               ? s.term[0].leaf
               : NULL;
}

static bool is_plus_one(const Value *v, const Value *base) {
    return v->kind == VALUE_OP && v->def->kind == OP_ADD &&
           ((v->def->in[0] == base && value_is_int(v->def->in[1], 1)) ||
            (v->def->in[1] == base && value_is_int(v->def->in[0], 1)));
}

static bool is_product(const Value *v, Value **a, Value **b) {
    if (v->kind != VALUE_OP || v->def->kind != OP_MUL)
        return false;
    *a = v->def->in[0];
    *b = v->def->in[1];
    return true;
}

/* `hi` of the chunk that starts at p*c: min(M, (p + 1)*c) or (p + 1)*c. */
static bool is_chunk_end(const Value *hi, const Value *p, const Value *c) {
    if (hi->kind == VALUE_OP && hi->def->kind == OP_MIN)
        return is_chunk_end(hi->def->in[0], p, c) || is_chunk_end(hi->def->in[1], p, c);
    Value *a, *b;
    if (is_product(hi, &a, &b))
        return (b == c && is_plus_one(a, p)) || (a == c && is_plus_one(b, p));
    if (hi->kind == VALUE_OP && hi->def->kind == OP_ADD) {
        Value *l = hi->def->in[0], *r = hi->def->in[1];
        return (r == c && is_product(l, &a, &b) && ((a == p && b == c) || (a == c && b == p)));
    }
    return false;
}

/* What the window of a determined axis determines. */
static void learn_window(Proof *p, const Value *iota) {
    AxisInfo *info = axis_info(p->fe, iota->axis);
    if (iota->axis->like && !axes_has(p->axes, iota->axis->like->id))
        learn(p, iota->axis->like->iota);
    if (!info->lo || !info->hi)
        return;
    Mem *s0 = NULL, *s1 = NULL;
    Value *e0 = loaded_at(info->lo, &s0), *e1 = loaded_at(info->hi, &s1);
    if (e0 && e1 && s0 == s1 && is_plus_one(e1, e0)) {
        Value *e = single_variable(p->fe, e0);
        if (e)
            learn(p, e);
        return;
    }
    Value *a, *b;
    if (!is_product(info->lo, &a, &b))
        return;
    if ((a->kind == VALUE_CONST && !is_at_most(a->u.i, SCALE_MAX)) ||
        (b->kind == VALUE_CONST && !is_at_most(b->u.i, SCALE_MAX)))
        return;
    if (is_variable(a) && is_invariant(p->fe, b) && is_chunk_end(info->hi, a, b))
        learn(p, a);
    else if (is_variable(b) && is_invariant(p->fe, a) && is_chunk_end(info->hi, b, a))
        learn(p, b);
}

static void learn(Proof *p, Value *v) {
    if (vars_has(&p->known, v))
        return;
    vars_add(&p->known, v);
    if (v->kind == VALUE_IOTA)
        learn_window(p, v);
}

static const char *variable_name(const Value *v) {
    return v->kind == VALUE_IOTA ? v->axis->name : v->name;
}

/* All unknown terms of a dim are digits of one number. */
static bool learn_digits(Proof *p, int dim, Term *unknown, int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && is_digit_below(p->fe, &unknown[j], &unknown[j - 1]) == false;
             j--) {
            Term t = unknown[j];
            unknown[j] = unknown[j - 1];
            unknown[j - 1] = t;
        }
    for (int i = 0; i + 1 < n; i++)
        if (!is_digit_below(p->fe, &unknown[i + 1], &unknown[i]))
            return false;
    p->det[dim] = variable_name(unknown[0].leaf);
    for (int i = 0; i < n; i++)
        learn(p, unknown[i].leaf);
    return true;
}

/* `v` is never negative, whatever the data are. */
static bool is_natural(Fe *fe, Value *v, int depth) {
    if (depth > 40)
        return false;
    if (v->kind == VALUE_CONST)
        return v->u.i >= 0;
    if (v->kind == VALUE_PARAM)
        return is_dim(fe, v);
    Value *lo, *hi;
    if (is_variable(v))
        return variable_range(fe, v, &lo, &hi) && is_natural(fe, lo, depth + 1);
    if (v->kind != VALUE_OP)
        return false;
    Op *op = v->def;
    bool first = op->nin > 0 && is_natural(fe, op->in[0], depth + 1);
    switch (op->kind) {
    case OP_BEGIN:
        lo = window_lo(fe, op->axes[0]);
        return lo && is_natural(fe, lo, depth + 1);
    case OP_LOAD:
        return dtype_is_integer(v->type.dtype) && !dtype_is_signed(v->type.dtype) &&
               dtype_bits(v->type.dtype) < 64;
    case OP_CAST:
        return first && keeps_values(v);
    case OP_REM:
        return first;
    case OP_MAX:
        return first || is_natural(fe, op->in[1], depth + 1);
    case OP_ADD:
    case OP_MUL:
        if (may_wrap(v) && dtype_is_signed(v->type.dtype))
            return false;
        return first && is_natural(fe, op->in[1], depth + 1);
    case OP_MIN:
    case OP_DIV:
    case OP_CDIV:
    case OP_FLOORDIV:
        return first && is_natural(fe, op->in[1], depth + 1);
    default:
        return false;
    }
}

/* All tiles of the axis, whatever the unknown variables are, start at one number modulo its size:
 * two different starts are at least the size apart. */
static bool is_aligned(const Proof *p, const Axis *axis) {
    Value *lo = window_lo(p->fe, axis);
    if (!lo || axis->size == 0)
        return false;
    Sum s = {.ok = true};
    sum_of(p->fe, &s, lo, 1);
    for (int i = 0; i < s.n; i++) {
        const Term *t = &s.term[i];
        if (t->scale % axis->size != 0 && !is_known(p, t->leaf))
            return false;
    }
    return s.ok;
}

/* begin(i), or begin(i) / size, stands for the tile of i where i itself is not in the value: a
 * number that grows by the size (by 1) from tile to tile. Where the tiles of one iteration may
 * start between those of another, begin(i) is just a number and the quotient says nothing. */
static void tile_term(const Proof *p, Term *t) {
    const Op *op = t->leaf->kind == VALUE_OP ? t->leaf->def : NULL;
    const Value *size = NULL;
    bool truncates = op && op->kind == OP_DIV;
    if (op && (op->kind == OP_DIV || op->kind == OP_FLOORDIV) && op->in[1]->kind == VALUE_CONST &&
        op->in[0]->kind == VALUE_OP) {
        size = op->in[1];
        op = op->in[0]->def;
    }
    if (!op || op->kind != OP_BEGIN || axes_has(p->axes, op->axes[0]->id))
        return;
    const Axis *axis = op->axes[0];
    bool aligned = is_aligned(p, axis);
    Value *lo = window_lo(p->fe, axis);
    if (size && (!aligned || axis->size != size->u.i || (truncates && !is_natural(p->fe, lo, 0))))
        return;
    t->leaf = axis->iota;
    t->scale *= !size && aligned ? axis->size : 1;
}

static bool learn_dim(Proof *p, int dim) {
    Sum s = {.ok = true};
    sum_of(p->fe, &s, inside(p->index[dim]), 1);
    if (!s.ok)
        return false;
    Term unknown[TERMS_MAX];
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        Term t = s.term[i];
        if (t.scale == 0 || is_known(p, t.leaf))
            continue;
        tile_term(p, &t);
        if (!is_variable(t.leaf))
            return false;
        unknown[n++] = t;
    }
    if (n == 1 && !unknown[0].factor) {
        p->det[dim] = variable_name(unknown[0].leaf);
        learn(p, unknown[0].leaf);
        return true;
    }
    return n > 1 && learn_digits(p, dim, unknown, n);
}

/* x / C in one dim and x % C in another. */
static bool learn_quotient(Proof *p) {
    for (int i = 0; i < p->rank; i++) {
        const Value *q = p->index[i];
        if (q->kind != VALUE_OP || (q->def->kind != OP_DIV && q->def->kind != OP_FLOORDIV))
            continue;
        for (int j = 0; j < p->rank; j++) {
            const Value *r = p->index[j];
            OpKind rest = q->def->kind == OP_DIV ? OP_REM : OP_MOD;
            if (r->kind != VALUE_OP || (r->def->kind != OP_REM && r->def->kind != OP_MOD) ||
                r->def->in[0] != q->def->in[0] || r->def->in[1] != q->def->in[1] ||
                !is_known(p, q->def->in[1]))
                continue;
            if (r->def->kind != rest && !is_natural(p->fe, q->def->in[0], 0))
                continue;
            Value *x = single_variable(p->fe, q->def->in[0]);
            if (!x || vars_has(&p->known, x))
                continue;
            p->det[i] = p->det[j] = variable_name(x);
            learn(p, x);
            return true;
        }
    }
    return false;
}

static bool learn_equal(Proof *p, const Value *c) {
    if (c->kind != VALUE_OP)
        return false;
    if (c->def->kind == OP_AND) {
        bool first = learn_equal(p, c->def->in[0]), second = learn_equal(p, c->def->in[1]);
        return first || second;
    }
    if (c->def->kind != OP_CMP || c->def->sub != CMP_EQ)
        return false;
    for (int i = 0; i < 2; i++) {
        Value *x = c->def->in[i], *other = c->def->in[1 - i];
        if (!is_known(p, other))
            continue;
        if (x->kind == VALUE_OP && x->def->kind == OP_BEGIN &&
            !axes_has(p->axes, x->def->axes[0]->id))
            x = x->def->axes[0]->iota;
        else
            x = x->type.axes.n == 0 ? single_variable(p->fe, x) : NULL;
        if (!x || vars_has(&p->known, x))
            continue;
        learn(p, x);
        return true;
    }
    return false;
}

static void grow(Proof *p) {
    bool more = true;
    while (more) {
        more = false;
        for (int d = 0; d < p->rank; d++)
            if (!p->det[d])
                more |= learn_dim(p, d);
        if (!more)
            more = learn_quotient(p);
        for (uint32_t i = 0; !more && i < p->fe->guards.len; i++)
            if (learn_equal(p, p->fe->guards.data[i]))
                p->guarded = more = true;
    }
}

/* --- the check ------------------------------------------------------------------------------ */

static bool has_one_value(Fe *fe, const Value *v) {
    Value *lo, *hi;
    return variable_range(fe, v, &lo, &hi) && lo->kind == VALUE_CONST && hi->kind == VALUE_CONST &&
           hi->u.i - lo->u.i <= 1;
}

static void report_binder(Fe *fe, Tensor *t, const char *name, Span span, Span note) {
    Diag *d = fe_error(fe, DIAG_RACE, span, "iterations of `%s` may write the same element of `%s`",
                       name, t->mem->name);
    const Entry *e = scope_find(fe, intern_cstr(fe->interner, name));
    diag_note(fe->diags, d, e ? e->span : note, "`%s` is bound here", name);
    diag_hint(fe->diags, d, "index `%s` by `%s`, or write `atomic %s += ...` or `scatter %s = ...`",
              t->mem->name, name, span_text(fe, span), span_text(fe, span));
}

static void report_axis(Fe *fe, Tensor *t, const char *name, Span span) {
    Diag *d = fe_error(fe, DIAG_RACE, span, "elements along `%s` may meet in one element of `%s`",
                       name, t->mem->name);
    diag_hint(fe->diags, d,
              "write `scatter %s = ...` if any of them may win, or `atomic %s += ...` to add them",
              span_text(fe, span), span_text(fe, span));
}

static Value *binder_variable(const Binder *b) {
    return b->axis ? b->axis->iota : b->var;
}

static void set_det(Proof *p, Op *store) {
    Str names[RANK_MAX];
    for (int i = 0; i < p->rank; i++)
        names[i] = intern_cstr(p->fe->interner, p->det[i] ? p->det[i] : "_");
    op_set_names(p->fe->kernel, store, ATTR_det, p->rank, names);
}

bool race_check_store(Fe *fe, Tensor *t, Op *store, Value *const *index, AxisSet axes, Span span) {
    Proof p = {.fe = fe, .axes = axes, .rank = t->mem->rank};
    p.index = ARENA_ARRAY(fe->arena, Value *, (size_t)p.rank + 1);
    for (int i = 0; i < p.rank; i++)
        p.index[i] = index[i];
    grow(&p);
    for (int i = 0; fe->nest && i < fe->nest->nbinders; i++) {
        Value *v = binder_variable(&fe->nest->binder[i]);
        if (has_one_value(fe, v))
            learn(&p, v);
    }
    grow(&p);
    for (int i = 0; fe->nest && i < fe->nest->nbinders; i++) {
        const Binder *b = &fe->nest->binder[i];
        Value *v = binder_variable(b);
        if (!vars_has(&p.known, v)) {
            report_binder(fe, t, variable_name(v), span, fe->nest->span);
            return false;
        }
    }
    for (uint32_t i = 0; fe->nest && i < fe->ragged.len; i++)
        if (!vars_has(&p.known, fe->ragged.data[i])) {
            report_binder(fe, t, variable_name(fe->ragged.data[i]), span, fe->nest->span);
            return false;
        }
    for (int i = 0; i < axes.n; i++) {
        Axis *axis = axis_by_id(fe, axes.id[i]);
        if (!vars_has(&p.known, axis->iota)) {
            report_axis(fe, t, axis->name, span);
            return false;
        }
    }
    if (fe->nest)
        set_det(&p, store);
    return p.guarded;
}

/* --- stores against other accesses of the nest ---------------------------------------------- */

static Value *access_index(const Op *op, int dim) {
    return op->in[op->mem[0].first + dim];
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* c*i + k and c*j + l never meet where c does not divide k - l. */
static bool never_equal(Fe *fe, Value *a, Value *b) {
    Sum sums[2] = {{.ok = true}, {.ok = true}}, fixed = {.ok = true};
    sum_of(fe, &sums[0], a, 1);
    sum_of(fe, &sums[1], b, 1);
    int64_t unit = 0, difference = sums[0].constant - sums[1].constant;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < sums[k].n; i++) {
            const Term *t = &sums[k].term[i];
            if (t->factor)
                return false;
            if (is_invariant(fe, t->leaf))
                sum_add(&fixed, t->leaf, k ? -t->scale : t->scale, NULL);
            else
                unit = gcd(unit, t->scale);
        }
    /* What does not change in the nest must cancel. */
    for (int i = 0; i < fixed.n; i++)
        if (fixed.term[i].scale != 0)
            return false;
    if (!sums[0].ok || !sums[1].ok || !fixed.ok)
        return false;
    return unit == 0 ? difference != 0 : difference % unit != 0;
}

/* Adds the least value that scale*v has in the nest: its variables at the ends of their ranges. */
static void sum_least(Fe *fe, Sum *out, Value *v, int64_t scale) {
    Sum s = {.ok = true};
    sum_of(fe, &s, v, scale);
    out->constant += s.constant;
    out->ok &= s.ok;
    for (int i = 0; i < s.n; i++) {
        const Term *t = &s.term[i];
        Value *lo, *hi;
        if (t->scale == 0)
            continue;
        if (!t->factor && is_variable(t->leaf) && variable_range(fe, t->leaf, &lo, &hi)) {
            sum_of(fe, out, t->scale > 0 ? lo : hi, t->scale);
            out->constant -= t->scale < 0 ? t->scale : 0; /* hi - 1 */
        } else {
            sum_add(out, t->leaf, t->scale, t->factor);
        }
    }
}

/* `a` is always below `b`: the least b - a is a positive number, and dims, which are not negative.
 */
static bool is_below(Fe *fe, Value *a, Value *b) {
    Sum least = {.ok = true};
    sum_least(fe, &least, b, 1);
    sum_least(fe, &least, a, -1);
    for (int i = 0; i < least.n; i++) {
        const Term *t = &least.term[i];
        bool is_fine = t->scale == 0 ? is_invariant(fe, t->leaf)
                                     : t->scale > 0 && !t->factor && is_dim(fe, t->leaf);
        if (!is_fine)
            return false;
    }
    return least.ok && least.constant > 0;
}

static bool are_disjoint(Fe *fe, const Op *store, const Op *other) {
    for (int d = 0; d < store->mem[0].nidx; d++) {
        Value *a = inside(access_index(store, d)), *b = inside(access_index(other, d));
        if (never_equal(fe, a, b) || is_below(fe, a, b) || is_below(fe, b, a))
            return true;
    }
    return false;
}

/* `v` depends on nothing but what tells one iteration of the grid from another. */
static bool is_of_grid(Fe *fe, Value *v) {
    Vars d = {0}, grid = {0};
    depends(fe, v, &d, 0);
    for (int i = 0; i < fe->nest->nbinders; i++)
        vars_add(&grid, binder_variable(&fe->nest->binder[i]));
    for (uint32_t i = 0; i < fe->ragged.len; i++)
        vars_add(&grid, fe->ragged.data[i]);
    for (int i = 0; i < d.n; i++)
        if (!vars_has(&grid, d.v[i]))
            return false;
    return !d.all;
}

/* Whether two accesses agree in the dims that determine `v`. An index with a variable of a loop or
 * an axis in it, such as `y[e + n, n]`, determines `v` only together with the other dims. */
static bool agree_on(Fe *fe, const Attr *det, const Access *access, const Op *other,
                     const Value *v) {
    const Op *store = access->op;
    bool direct = false, equal = true;
    for (int d = 0; d < det->n; d++) {
        bool is_it =
            !strcmp(det->names[d], variable_name(v)) && is_of_grid(fe, access_index(store, d));
        direct |= is_it;
        if (is_it)
            equal &= same_value(access_index(store, d), access_index(other, d), 0);
    }
    /* Determined through others: all of them must agree. A condition says nothing of the other. */
    if (!direct && access->guarded)
        return false;
    for (int d = 0; !direct && d < det->n; d++)
        if (strcmp(det->names[d], "_"))
            equal &= same_value(access_index(store, d), access_index(other, d), 0);
    return equal;
}

/* The same for every binder of the grid. */
static bool agree(Fe *fe, const Access *store, const Op *other) {
    const Attr *det = op_attr(store->op, ATTR_det);
    if (!det)
        return true; /* reported already */
    for (int i = 0; i < fe->nest->nbinders; i++) {
        Value *v = binder_variable(&fe->nest->binder[i]);
        if (!has_one_value(fe, v) && !agree_on(fe, det, store, other, v))
            return false;
    }
    for (uint32_t i = 0; i < fe->ragged.len; i++)
        if (!agree_on(fe, det, store, other, fe->ragged.data[i]))
            return false;
    return true;
}

void race_check_nest(Fe *fe, uint32_t first) {
    for (uint32_t i = first; i < fe->accesses.len; i++) {
        const Access *store = &fe->accesses.data[i];
        for (uint32_t j = first; store->is_store && j < fe->accesses.len; j++) {
            const Access *other = &fe->accesses.data[j];
            bool skip = i == j || other->tensor != store->tensor || (other->is_store && j < i);
            if (skip || agree(fe, store, other->op) || are_disjoint(fe, store->op, other->op))
                continue;
            Diag *d = fe_error(fe, DIAG_RACE, store->op->span,
                               "one iteration writes elements of `%s` that another may %s",
                               store->tensor->mem->name, other->is_store ? "write" : "read");
            diag_note(fe->diags, d, other->op->span, "the other access is here");
            diag_hint(fe->diags, d, "write to a `temp` first, or use equal indices in both");
        }
    }
}

/* `reduce` and `scan` with a function of the text: the ops fold and scanfn.
 *
 * Input: a value or a tuple of values, a fn of two such, for `reduce` its identity. Output: a Val
 * of the same shape. The types of the elements are those that the function gives back: they start
 * as the values' own and are widened until it does (a sum of f16 is f32, the larger of two stays
 * f16).
 */
#include "frontend/builtins.h"

enum { TUPLE_MAX = 8, WIDENINGS_MAX = 3 };

typedef struct FoldCall {
    BuiltinCall *c;
    bool scan, tuple;
    uint32_t n;
    Val v[TUPLE_MAX], id[TUPLE_MAX];
    DType type[TUPLE_MAX];
    AxisSet axes; /* of all values */
} FoldCall;

/* A value or the values of a tuple; false after a report. */
static bool fold_items(Fe *fe, Val v, Span span, Val *out, uint32_t *n) {
    *n = v.kind == VAL_TUPLE ? v.n : 1;
    if (*n > TUPLE_MAX) {
        fe_error(fe, DIAG_TUPLE, span, "a tuple of %u: at most %d values are combined", *n,
                 TUPLE_MAX);
        return false;
    }
    bool ok = true;
    for (uint32_t i = 0; i < *n; i++) {
        out[i] = val_force(fe, v.kind == VAL_TUPLE ? v.items[i] : v, span);
        ok &= val_ok(out[i]);
    }
    return ok;
}

static bool fold_fn(Fe *fe, FoldCall *f) {
    Val fn = f->c->arg[1];
    if (fn.kind == VAL_FN && fn.fn.decl->fn.params.len == 2 && fn.fn.decl->fn.axes.len == 0)
        return true;
    const char *name = f->c->row->name;
    if (fn.kind != VAL_FN) {
        Diag *d =
            fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(f->c, 1),
                     "`%s` needs a fn of two values or tuples, this is %s", name, val_text(fe, fn));
        diag_hint(fe->diags, d,
                  "the order is `%s`; a fn is declared at the top level, `fn add(a, b) = a + b;`",
                  f->c->row->shape);
        return false;
    }
    const Decl *decl = fn.fn.decl;
    Diag *d =
        fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(f->c, 1),
                 "`%s` needs a fn of two values or tuples without axes, `%s` takes %u%s", name,
                 decl->name.text, decl->fn.params.len, decl->fn.axes.len ? " along axes" : "");
    if (decl->name.span.begin != builtin_span(f->c, 1).begin)
        diag_note(fe->diags, d, decl->name.span, "`%s` is declared here", decl->name.text);
    return false;
}

static bool fold_identity(Fe *fe, FoldCall *f) {
    uint32_t n;
    Span span = builtin_span(f->c, 2);
    if (!fold_items(fe, f->c->arg[2], span, f->id, &n))
        return false;
    if (n != f->n || (f->c->arg[2].kind == VAL_TUPLE) != f->tuple) {
        fe_error(fe, DIAG_TUPLE, span, "the identity of %u value%s has %u", f->n,
                 f->n == 1 ? "" : "s", n);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f->id[i].axes.n == 0)
            continue;
        fe_error(fe, DIAG_NOT_SCALAR, span, "an identity is a scalar, this is %s",
                 val_text(fe, f->id[i]));
        return false;
    }
    return true;
}

static bool fold_axes(Fe *fe, FoldCall *f) {
    Val all = {.kind = VAL_VALUE};
    for (uint32_t i = 0; i < f->n; i++)
        if (!val_union(fe, all, f->v[i], f->c->e->span, &all.axes))
            return false;
    f->axes = all.axes;
    for (int i = 0; i < f->c->naxes; i++) {
        if (axes_has(f->axes, f->c->axis[i]->id))
            continue;
        Diag *d = fe_error(fe, DIAG_NO_SUCH_AXIS, f->c->e->call.axes.data[i].span,
                           "`%s` along `%s`, which the value does not have: its axes are %s",
                           f->c->row->name, f->c->axis[i]->name,
                           f->axes.n ? axes_text(fe, f->axes) : "none");
        diag_note(fe->diags, d, builtin_span(f->c, 0), "the value is here");
        return false;
    }
    return true;
}

/* The types to start with: a literal's is its identity's. */
static void fold_types(FoldCall *f) {
    for (uint32_t i = 0; i < f->n; i++) {
        Val v = f->v[i];
        if (v.kind == VAL_LITERAL && !f->scan && f->id[i].kind != VAL_LITERAL)
            v = f->id[i];
        bool is_float = v.is_float || (!f->scan && f->id[i].is_float);
        f->type[i] = v.kind != VAL_LITERAL ? val_dtype(v) : is_float ? DT_F32 : DT_INDEX;
    }
}

/* Operands in the element types; one of them has all axes. */
static bool fold_operands(Fe *fe, FoldCall *f, Value **in, Value **id) {
    bool full = false, ok = true;
    for (uint32_t i = 0; i < f->n; i++) {
        Span span = builtin_span(f->c, 0);
        Val v = val_with_axes(val_cast(fe, f->v[i], f->type[i], span), f->v[i].axes);
        in[i] = val_spread(fe, v, span);
        full |= axes_equal(in[i]->type.axes, f->axes);
        if (f->scan)
            continue;
        Val e = val_coerce(fe, f->id[i], f->type[i], false, builtin_span(f->c, 2), "the identity");
        ok &= val_ok(e);
        id[i] = e.v;
    }
    if (!full)
        in[0] = val_spread(fe, val_with_axes(in[0], f->axes), builtin_span(f->c, 0));
    return ok;
}

static Val fold_argument(Fe *fe, const FoldCall *f, Value *const *arg) {
    if (!f->tuple)
        return val_of(arg[0]);
    Val t = {.kind = VAL_TUPLE, .n = f->n, .items = ARENA_ARRAY(fe->arena, Val, f->n)};
    for (uint32_t i = 0; i < f->n; i++)
        t.items[i] = val_of(arg[i]);
    return t;
}

static const char *what_it_does(const Op *op) {
    if (op->kind == OP_FOR || op->kind == OP_WHILE)
        return "has no loops";
    if (op->kind == OP_PRINT || op->kind == OP_ASSERT || op->kind == OP_PARALLEL)
        return "prints and asserts nothing";
    return "makes no axes";
}

/* The function's body has become ops on single elements. */
static bool body_is_elementwise(Fe *fe, const FoldCall *f, const Op *op) {
    for (const Op *e = op->region[0]->first; e->kind != OP_YIELD; e = e->next) {
        if (op_has(e->kind, TRAIT_ELEMENTWISE) && e->nres == 1)
            continue;
        Diag *d = fe_error(fe, DIAG_BAD_COMBINER, e->span,
                           "`%s` combines single elements: its function %s", f->c->row->name,
                           what_it_does(e));
        diag_note(fe->diags, d, builtin_span(f->c, 1), "the function is given here");
        diag_hint(fe->diags, d,
                  "it may have `let`, `var`, `if` and calls; compute what needs more for each "
                  "element, in front of the `%s`",
                  f->c->row->name);
        return false;
    }
    return true;
}

static bool widens(DType from, DType to) {
    if (from == DT_BOOL || to == DT_BOOL)
        return false;
    if (dtype_is_float(from) && dtype_is_float(to))
        return dtype_bits(to) > dtype_bits(from);
    return dtype_is_integer(from) && dtype_is_integer(to) && dtype_bits(to) >= dtype_bits(from) &&
           (to == DT_INDEX || dtype_is_signed(from) == dtype_is_signed(to));
}

/* What the function gives for elements of the types: builds its body and yields; *widened where a
 * type was too narrow and another attempt is needed. */
static bool fold_body(Fe *fe, FoldCall *f, Op *op, bool *widened) {
    const Region *r = op->region[0];
    Val args[2] = {fold_argument(fe, f, r->arg), fold_argument(fe, f, r->arg + f->n)};
    Val got[TUPLE_MAX];
    uint32_t n;
    Span span = builtin_span(f->c, 1);
    fe->hint = NULL;
    Val result = fn_apply(fe, f->c->arg[1].fn, 2, args, span);
    if (!val_ok(result) || !fold_items(fe, result, span, got, &n))
        return false;
    if (n != f->n || (result.kind == VAL_TUPLE) != f->tuple) {
        fe_error(fe, DIAG_TUPLE, span, "the function gives %s for %u value%s", val_text(fe, result),
                 f->n, f->n == 1 ? "" : "s");
        return false;
    }
    Value *out[TUPLE_MAX];
    *widened = false;
    for (uint32_t i = 0; i < n; i++) {
        DType to = got[i].kind == VAL_LITERAL ? f->type[i] : val_dtype(got[i]);
        bool wider = widens(f->type[i], to) && to != f->type[i];
        if (to != f->type[i] && !wider) {
            Diag *d =
                fe_error(fe, DIAG_TYPE_MISMATCH, span, "the function gives %s where it takes %s",
                         dtype_name(to), dtype_name(f->type[i]));
            diag_hint(fe->diags, d, "what it gives has to be what it takes: convert with `as`");
            return false;
        }
        *widened |= wider;
        f->type[i] = to;
        out[i] = *widened ? NULL : val_cast(fe, got[i], to, span);
    }
    if (*widened)
        return true;
    ir_yield(&fe->b, (int)n, out, NULL);
    IrMap map = ir_map_new(fe->arena, fe->kernel);
    region_flatten(fe, op->region[0], &map);
    return body_is_elementwise(fe, f, op);
}

static Op *fold_attempt(Fe *fe, FoldCall *f, bool *widened) {
    Value *in[TUPLE_MAX], *id[TUPLE_MAX];
    if (!fold_operands(fe, f, in, id))
        return NULL;
    fe->b.span = f->c->e->span;
    Op *op = ir_fold(&fe->b, (int)f->n, in, f->scan ? NULL : id, f->c->naxes, f->c->axis,
                     f->tuple ? NULL : &f->c->hint);
    Builder outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    bool ok = fold_body(fe, f, op, widened);
    fe->b = outer;
    if (ok && !*widened)
        return op;
    ir_op_unlink(op);
    return NULL;
}

/* The value is never negative, whatever the data are: for the identity's check. */
static bool is_natural(const Value *v, int depth) {
    if (v->kind == VALUE_CONST)
        return dtype_is_float(v->type.dtype) ? v->u.f >= 0 : v->u.i >= 0;
    if (v->kind != VALUE_OP || depth > 8)
        return v->kind == VALUE_IOTA || !dtype_is_signed(v->type.dtype);
    const Op *op = v->def;
    switch ((int)op->kind) {
    case OP_ABS:
    case OP_EXP:
    case OP_EXP2:
    case OP_SQRT:
        return true;
    case OP_MUL:
        if (op->in[0] == op->in[1] && dtype_is_float(v->type.dtype))
            return true;
        return dtype_is_float(v->type.dtype) && is_natural(op->in[0], depth + 1) &&
               is_natural(op->in[1], depth + 1);
    case OP_CAST:
    case OP_MAX:
        return is_natural(op->in[0], depth + 1) ||
               (op->kind == OP_MAX && is_natural(op->in[1], depth + 1));
    default:
        return !dtype_is_signed(v->type.dtype);
    }
}

static uint32_t naturals_of(const FoldCall *f) {
    uint32_t naturals = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const Val *v = &f->v[i];
        bool is_natural_one = v->kind == VAL_VALUE     ? is_natural(v->v, 0)
                              : v->kind == VAL_LITERAL ? (v->is_float ? v->f >= 0 : v->i >= 0)
                                                       : false;
        naturals |= (uint32_t)is_natural_one << i;
    }
    return naturals;
}

Val builtin_fold(Fe *fe, BuiltinCall *c) {
    FoldCall f = {.c = c, .scan = c->id == BUILTIN_SCANFN, .tuple = c->arg[0].kind == VAL_TUPLE};
    if (!fold_items(fe, c->arg[0], builtin_span(c, 0), f.v, &f.n) || !fold_fn(fe, &f) ||
        !fold_axes(fe, &f) || (!f.scan && !fold_identity(fe, &f)))
        return val_poison();
    fold_types(&f);
    Op *op = NULL;
    bool widened = true;
    for (int i = 0; i < WIDENINGS_MAX && widened; i++) {
        widened = false;
        op = fold_attempt(fe, &f, &widened);
    }
    if (widened)
        fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 1),
                 "the function gives wider types for every type that it is given");
    if (!op || (!f.scan && !identity_check(fe, op, naturals_of(&f), builtin_span(c, 2))))
        return val_poison();
    return fold_argument(fe, &f, op->res);
}

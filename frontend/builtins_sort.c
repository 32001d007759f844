/* Built-in functions that order or count elements: sort, topk, histogram.
 *
 * Input: a call with its argument and axes. Output: (values, indices), of the histogram its counts.
 * What is chosen keeps its type; indices and counts are `index`. An axis that is made comes last in
 * the brackets: it is whole (no `tiles`), and the argument does not have it.
 */
#include "frontend/builtins.h"

static Val pair_of(Fe *fe, Op *op) {
    Val t = {.kind = VAL_TUPLE, .n = 2, .items = ARENA_ARRAY(fe->arena, Val, 2)};
    t.items[0] = val_of(op->res[0]);
    t.items[1] = val_of(op->res[1]);
    return t;
}

Val builtin_sort(Fe *fe, BuiltinCall *c) {
    Val v;
    if (c->naxes != 1) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`sort` is along one axis");
        diag_hint(fe->diags, d, "write `%s`", c->row->shape);
        return val_poison();
    }
    if (!along_value(fe, c, 1, &v))
        return val_poison();
    fe->b.span = c->e->span;
    return pair_of(fe, ir_sort(&fe->b, v.v, c->axis[0], NULL));
}

/* The axis that is made. */
static bool made_axis_fits(Fe *fe, BuiltinCall *c, Val v) {
    Span span = c->e->call.axes.data[1].span;
    Axis *made = c->axis[1];
    AxisInfo *info = axis_info(fe, made);
    if (axes_has(v.axes, made->id)) {
        Diag *d =
            fe_error(fe, DIAG_AXIS_TWICE, span, "`%s` makes `%s`, which the value has: it is %s",
                     c->row->name, made->name, val_text(fe, v));
        diag_hint(fe->diags, d, "name a new one: `axis j in ...;`");
        return false;
    }
    if (!info->parallel && !info->sequential && !made->like)
        return true;
    Diag *d = fe_error(fe, DIAG_NOT_AN_AXIS, span,
                       "`%s` gives its elements along a whole axis, `%s` is one of tiles",
                       c->row->name, made->name);
    diag_hint(fe->diags, d, "name a new one: `axis j in ...;`");
    return false;
}

Val builtin_topk(Fe *fe, BuiltinCall *c) {
    Val v;
    if (c->naxes != 2) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`%s` names two axes: %s",
                           c->row->name, "the one that goes, then the one that it makes");
        diag_hint(fe->diags, d, "write `%s`", c->row->shape);
        return val_poison();
    }
    if (!along_value(fe, c, 1, &v) || !made_axis_fits(fe, c, v))
        return val_poison();
    if (c->row->op == OP_TOPK) {
        fe->b.span = c->e->span;
        return pair_of(fe, ir_topk(&fe->b, v.v, c->axis[0], c->axis[1], NULL));
    }
    DType type = val_dtype(v);
    if (!dtype_is_integer(type) && type != DT_BOOL) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 0),
                           "`histogram` counts integers, this is %s", val_text(fe, v));
        diag_hint(fe->diags, d, "write `%s`", cast_text(fe, builtin_span(c, 0), DT_I32));
        return val_poison();
    }
    fe->b.span = c->e->span;
    return val_of(ir_histogram(&fe->b, v.v, c->axis[0], c->axis[1], c->hint));
}

/* expand24[c, k](v, at): the dense form of 2:4 sparsity.
 *
 * Input: along `c` the two kept elements of each group of four, and their places 0 .. 3 in it.
 * Output: the elements along `k`; elements that were not kept are 0. Of two with one place the
 * first counts; a place outside 0 .. 3 keeps nothing. Written in ops that every stage knows:
 *
 *     first = v[c = 2*(k/4)], second = v[c = 2*(k/4) + 1], likewise of at
 *     at_first == k % 4 ? first : at_second == k % 4 ? second : 0
 */
#include "frontend/builtins.h"

/* Element 2*(k/4) + `which` along c. */
static Value *kept(Fe *fe, BuiltinCall *c, Value *x, int which) {
    Value *group = ir_binary(&fe->b, OP_DIV, c->axis[1]->iota, ir_index(fe->kernel, 4), NULL);
    Value *at = ir_binary(&fe->b, OP_MUL, group, ir_index(fe->kernel, 2), NULL);
    if (which)
        at = ir_binary(&fe->b, OP_ADD, at, ir_index(fe->kernel, which), NULL);
    return ir_take(&fe->b, x, 1, &c->axis[0], &at, NULL, NULL);
}

static Value *is_here(Fe *fe, BuiltinCall *c, Value *places, int which) {
    Value *place = ir_cast(&fe->b, DT_INDEX, kept(fe, c, places, which), NULL);
    Value *here = ir_binary(&fe->b, OP_REM, c->axis[1]->iota, ir_index(fe->kernel, 4), NULL);
    return ir_cmp(&fe->b, CMP_EQ, place, here, NULL);
}

static bool has_axes(Fe *fe, BuiltinCall *c, Val v, uint32_t i) {
    const char *had = axes_has(v.axes, c->axis[0]->id) ? NULL : c->axis[0]->name;
    if (had) {
        fe_error(fe, DIAG_NO_SUCH_AXIS, builtin_span(c, i), "the value has no axis `%s`: it is %s",
                 had, val_text(fe, v));
        return false;
    }
    if (!axes_has(v.axes, c->axis[1]->id))
        return true;
    Diag *d = fe_error(fe, DIAG_AXIS_TWICE, c->e->call.axes.data[1].span,
                       "`expand24` makes `%s`, which the value has: it is %s", c->axis[1]->name,
                       val_text(fe, v));
    diag_hint(fe->diags, d, "name a new one: `axis k in ...;`");
    return false;
}

Val builtin_expand24(Fe *fe, BuiltinCall *c) {
    if (c->naxes != 2) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span,
                           "`expand24` names two axes: the one that goes, then the one that it "
                           "makes");
        diag_hint(fe->diags, d, "write `%s`", c->row->shape);
        return val_poison();
    }
    Val v = val_settle(fe, c->arg[0]), at = val_settle(fe, c->arg[1]);
    if (!has_axes(fe, c, v, 0) || !has_axes(fe, c, at, 1))
        return val_poison();
    if (!dtype_is_integer(val_dtype(at))) {
        fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 1),
                 "places in a group are integers, this is %s", val_text(fe, at));
        return val_poison();
    }
    Value *x = val_spread(fe, v, c->e->span), *places = val_spread(fe, at, c->e->span);
    fe->b.span = c->e->span;
    Value *zero = ir_cast(&fe->b, val_dtype(v), ir_index(fe->kernel, 0), NULL);
    Value *r = ir_select(&fe->b, is_here(fe, c, places, 1), kept(fe, c, x, 1), zero, NULL);
    return val_of(ir_select(&fe->b, is_here(fe, c, places, 0), kept(fe, c, x, 0), r, c->hint));
}

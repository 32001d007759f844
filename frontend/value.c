/* Values: what an expression is, how types meet, and what may become what without being asked.
 *
 * Input: Vals. Output: Vals and IR values of a wanted type. The rules are the language's: literals
 * take the type of the computation, narrow types compute in f32 and i32, `index` mixes with every
 * integer, and whatever loses more than float rounding at a store needs `as`.
 */
#include "frontend/fe.h"
#include "lang/base/numeric.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

Val val_poison(void) {
    return (Val){.kind = VAL_POISON};
}

Val val_of(Value *v) {
    return (Val){.kind = VAL_VALUE, .v = v, .axes = v->type.axes};
}

Val val_with_axes(Value *v, AxisSet axes) {
    return (Val){.kind = VAL_VALUE, .v = v, .axes = axes};
}

Val val_int(int64_t i) {
    return (Val){.kind = VAL_LITERAL, .i = i, .f = (double)i};
}

Val val_float(double f) {
    return (Val){.kind = VAL_LITERAL, .is_float = true, .f = f};
}

bool val_ok(Val v) {
    return v.kind != VAL_POISON;
}

bool val_is_literal(Val v) {
    return v.kind == VAL_LITERAL;
}

bool val_is_number(Val v) {
    return v.kind == VAL_LITERAL && !v.choice;
}

bool val_const_int(Val v, int64_t *out) {
    if (val_is_number(v) && !v.is_float) {
        *out = v.i;
        return true;
    }
    if (v.kind == VAL_VALUE && v.v->kind == VALUE_CONST && dtype_is_integer(v.v->type.dtype)) {
        *out = v.v->u.i;
        return true;
    }
    return false;
}

bool val_const_bool(Val v, bool *out) {
    if (v.kind != VAL_VALUE || v.v->kind != VALUE_CONST || v.v->type.dtype != DT_BOOL)
        return false;
    *out = v.v->u.i != 0;
    return true;
}

DType val_dtype(Val v) {
    if (v.kind == VAL_TENSOR)
        return v.tensor->mem->dtype;
    return v.kind == VAL_VALUE ? v.v->type.dtype : DT_NONE;
}

/* --- texts ---------------------------------------------------------------------------------- */

const char *axes_text(Fe *fe, AxisSet axes) {
    if (axes.n == 0)
        return "no axes";
    char *text = arena_printf(fe->arena, "[%s", axis_by_id(fe, axes.id[0])->name);
    for (int i = 1; i < axes.n; i++)
        text = arena_printf(fe->arena, "%s, %s", text, axis_by_id(fe, axes.id[i])->name);
    return arena_printf(fe->arena, "%s]", text);
}

const char *val_text(Fe *fe, Val v) {
    switch (v.kind) {
    case VAL_POISON:
        return "an error";
    case VAL_LITERAL:
        return v.is_float ? "a float literal" : "an integer literal";
    case VAL_VALUE:
        if (v.axes.n == 0)
            return dtype_name(v.v->type.dtype);
        return arena_printf(fe->arena, "%s%s", dtype_name(v.v->type.dtype), axes_text(fe, v.axes));
    case VAL_TENSOR:
        return arena_printf(fe->arena, "a tensor of %s", dtype_name(v.tensor->mem->dtype));
    case VAL_TUPLE:
        return v.n ? arena_printf(fe->arena, "a tuple of %u", v.n) : "a statement";
    case VAL_FN:
        return "a fn";
    case VAL_STRING:
        return "a string";
    }
    return "";
}

const char *span_text(Fe *fe, Span span) {
    uint32_t len = 0;
    const char *text = source_span_text(fe->sources, span, &len);
    return text ? arena_strndup(fe->arena, text, len) : "";
}

const char *cast_text(Fe *fe, Span span, DType to) {
    const char *text = span_text(fe, span);
    bool simple = *text;
    int depth = 0; /* of brackets: x[i + 1] is as simple as x */
    for (const char *c = text; *c; c++) {
        depth += *c == '[' || *c == '(' ? 1 : *c == ']' || *c == ')' ? -1 : 0;
        simple &= depth > 0 || isalnum((unsigned char)*c) || strchr("_.)]", *c) != NULL;
    }
    if (strlen(text) > 60)
        text = "...";
    return arena_printf(fe->arena, simple ? "%s as %s" : "(%s) as %s", text, dtype_name(to));
}

/* --- converting ----------------------------------------------------------------------------- */

Val val_force(Fe *fe, Val v, Span span) {
    switch (v.kind) {
    case VAL_TENSOR:
        return tensor_load(fe, v.tensor, span);
    case VAL_TUPLE:
    case VAL_FN:
    case VAL_STRING: {
        Diag *d = fe_error(fe, DIAG_NOT_A_VALUE, span, "a single value is needed here, this is %s",
                           val_text(fe, v));
        if (v.kind == VAL_TUPLE && v.n == 2)
            diag_hint(fe->diags, d, "name its values: `let (a, b) = ...;`");
        return val_poison();
    }
    case VAL_POISON:
    case VAL_LITERAL:
    case VAL_VALUE:
        break;
    }
    return v;
}

Value *const_of(Fe *fe, DType type, Val literal) {
    const Choice *c = literal.choice;
    if (c)
        return build_select(fe, c->test, c->yes, c->no, type, fe->b.span).v;
    if (type == DT_BOOL)
        return ir_bool(fe->kernel, literal.is_float ? literal.f != 0 : literal.i != 0);
    if (dtype_is_float(type))
        return ir_float(fe->kernel, type,
                        numeric_round(type, literal.is_float ? literal.f : (double)literal.i));
    return ir_int(fe->kernel, type,
                  literal.is_float ? numeric_saturate(type, literal.f)
                                   : numeric_wrap(type, literal.i));
}

Val val_settle(Fe *fe, Val v) {
    if (v.kind != VAL_LITERAL)
        return v;
    return val_with_axes(const_of(fe, v.is_float ? DT_F32 : DT_INDEX, v), v.axes);
}

static Value *const_cast_to(Fe *fe, const Value *v, DType to) {
    Scalar s = {.dtype = v->type.dtype};
    if (dtype_is_float(s.dtype))
        s.u.f = v->u.f;
    else
        s.u.i = v->u.i;
    Scalar r = scalar_cast(s, to);
    return dtype_is_float(to) ? ir_float(fe->kernel, to, r.u.f) : ir_int(fe->kernel, to, r.u.i);
}

Value *val_cast(Fe *fe, Val v, DType to, Span span) {
    fe->b.span = span;
    if (v.kind == VAL_LITERAL)
        return const_of(fe, to, v);
    if (v.v->type.dtype == to)
        return v.v;
    if (v.v->kind == VALUE_CONST)
        return const_cast_to(fe, v.v, to);
    fe->b.span = span;
    return ir_cast(&fe->b, to, v.v, NULL);
}

static bool is_wider(DType to, DType from) {
    return dtype_bits(to) >= dtype_bits(from);
}

/* Whether `from` becomes `to` without `as`: the same kind, and nothing lost. */
static bool converts(DType from, DType to, bool is_store) {
    if (from == to)
        return true;
    if (dtype_is_float(from) && dtype_is_float(to))
        return is_store || (is_wider(to, from) && dtype_bits(to) != dtype_bits(from));
    if (!dtype_is_integer(from) || !dtype_is_integer(to))
        return false;
    if (from == DT_INDEX || to == DT_INDEX)
        return is_wider(to, from);
    return dtype_is_signed(from) == dtype_is_signed(to) && is_wider(to, from);
}

static bool literal_fits(Val v, DType to);

/* Of a choice, the side that does not fit. */
static Val literal_misfit(Val v, DType to) {
    while (v.choice)
        v = literal_fits(v.choice->yes, to) ? v.choice->no : v.choice->yes;
    return v;
}

static bool literal_fits(Val v, DType to) {
    if (v.choice)
        return literal_fits(v.choice->yes, to) && literal_fits(v.choice->no, to);
    if (to == DT_BOOL)
        return false;
    if (dtype_is_float(to))
        return true;
    return !v.is_float && numeric_wrap(to, v.i) == v.i;
}

Val val_coerce(Fe *fe, Val v, DType to, bool is_store, Span span, const char *what) {
    v = val_force(fe, v, span);
    if (!val_ok(v) || to == DT_NONE)
        return val_poison();
    if (v.kind == VAL_LITERAL) {
        if (literal_fits(v, to))
            return val_with_axes(val_cast(fe, v, to, span), v.axes);
        v = literal_misfit(v, to);
        bool range = !v.is_float && dtype_is_integer(to);
        Diag *d = range ? fe_error(fe, DIAG_NARROWING, span, "%s is %s, which does not hold %lld",
                                   what, dtype_name(to), (long long)v.i)
                        : fe_error(fe, DIAG_TYPE_MISMATCH, span, "%s is %s, this is %s", what,
                                   dtype_name(to), val_text(fe, v));
        if (to == DT_BOOL)
            diag_hint(fe->diags, d, "write `true` or `false`");
        else if (!range)
            diag_hint(fe->diags, d, "write an integer");
        return val_poison();
    }
    DType from = val_dtype(v);
    if (!converts(from, to, is_store)) {
        bool narrows =
            dtype_is_float(from) == dtype_is_float(to) && from != DT_BOOL && to != DT_BOOL;
        Diag *d = fe_error(fe, narrows ? DIAG_NARROWING : DIAG_TYPE_MISMATCH, span,
                           "%s is %s, the value is %s", what, dtype_name(to), val_text(fe, v));
        if (to == DT_BOOL)
            diag_hint(fe->diags, d, "compare: `%s != 0`", span_text(fe, span));
        else
            diag_hint(fe->diags, d, "write `%s`", cast_text(fe, span, to));
        return val_poison();
    }
    AxisSet axes = v.axes;
    return val_with_axes(val_cast(fe, v, to, span), axes);
}

/* Axes that only the declared type has get into the value by a select that is always true. */
Value *val_spread(Fe *fe, Val v, Span span) {
    if (v.kind == VAL_LITERAL)
        v = val_settle(fe, v);
    AxisSet missing = axes_minus(v.axes, v.v->type.axes);
    if (missing.n == 0)
        return v.v;
    fe->b.span = span;
    Value *all = NULL;
    for (int i = 0; i < missing.n; i++) {
        Value *iota = axis_by_id(fe, missing.id[i])->iota;
        Value *same = ir_cmp(&fe->b, CMP_EQ, iota, iota, NULL);
        all = all ? ir_binary(&fe->b, OP_AND, all, same, NULL) : same;
    }
    return ir_select(&fe->b, all, v.v, v.v, NULL);
}

Value *val_index(Fe *fe, Val v, Span span, const char *what) {
    v = val_force(fe, v, span);
    if (!val_ok(v))
        return NULL;
    if (v.kind == VAL_LITERAL ? v.is_float : !dtype_is_integer(val_dtype(v))) {
        Diag *d = fe_error(fe, DIAG_NOT_AN_INDEX, span, "%s is an integer, this is %s", what,
                           val_text(fe, v));
        if (val_dtype(v) == DT_BOOL)
            diag_hint(fe->diags, d, "write `%s ? 1 : 0`", span_text(fe, span));
        else if (v.kind != VAL_LITERAL && v.axes.n == 0)
            diag_hint(fe->diags, d, "write `%s`", cast_text(fe, span, DT_I64));
        return NULL;
    }
    return val_cast(fe, v, DT_INDEX, span);
}

/* --- meeting -------------------------------------------------------------------------------- */

DType dtype_promote(DType t) {
    if (dtype_is_float(t))
        return t == DT_F64 ? DT_F64 : DT_F32;
    if (dtype_is_integer(t) && dtype_bits(t) < 32)
        return DT_I32;
    return t;
}

bool val_union(Fe *fe, Val a, Val b, Span span, AxisSet *out) {
    AxisSet left = a.axes, right = b.axes;
    if (axes_union(left, right, out))
        return true;
    fe_error(fe, DIAG_TOO_MANY_AXES, span, "the result would have more than %d axes: %s and %s",
             AXES_MAX, axes_text(fe, left), axes_text(fe, right));
    return false;
}

void sides_set(Fe *fe, Span left, Span right) {
    fe->sides[0] = left;
    fe->sides[1] = right;
}

/* The side to convert: an integer that meets a float, else the second. */
static DType meet_fail(Fe *fe, Val a, Val b, Span span, const char *what) {
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, span, "%s of %s and %s", what, val_text(fe, a),
                       val_text(fe, b));
    DType ta = val_dtype(a), tb = val_dtype(b);
    if (ta == DT_BOOL || tb == DT_BOOL) {
        bool left = ta == DT_BOOL;
        Span side = fe->sides[left ? 0 : 1];
        DType other = left ? tb : ta;
        if (span_is_none(side))
            diag_hint(fe->diags, d, "choose: `c ? x : y`");
        else
            diag_hint(fe->diags, d, "choose: `%s ? x : y`, or convert: `%s`", span_text(fe, side),
                      cast_text(fe, side, other == DT_NONE ? DT_I32 : dtype_promote(other)));
        return DT_NONE;
    }
    bool float_a = dtype_is_float(ta) || (ta == DT_NONE && a.is_float);
    bool float_b = dtype_is_float(tb) || (tb == DT_NONE && b.is_float);
    bool first = float_b && !float_a;
    DType to = first ? tb : ta;
    to = to == DT_NONE ? DT_F32 : dtype_promote(to);
    if (fe->in_index)
        diag_hint(fe->diags, d, "an index is computed in integers; `as i64` makes one of a float");
    else if (span_is_none(fe->sides[first ? 0 : 1]))
        diag_hint(fe->diags, d, "convert one side: `... as %s`", dtype_name(to));
    else
        diag_hint(fe->diags, d, "write `%s`", cast_text(fe, fe->sides[first ? 0 : 1], to));
    return DT_NONE;
}

static DType meet_literal(Fe *fe, Val literal, Val other, bool keep, Span span, const char *what,
                          bool literal_first) {
    DType t = keep ? val_dtype(other) : dtype_promote(val_dtype(other));
    if (t == DT_BOOL || (literal.is_float && !dtype_is_float(t)))
        return literal_first ? meet_fail(fe, literal, other, span, what)
                             : meet_fail(fe, other, literal, span, what);
    if (!literal.is_float && fe->in_index && dtype_is_integer(t))
        return DT_INDEX;
    return t;
}

static DType meet_integers(Fe *fe, Val a, Val b, DType ta, DType tb, Span span, const char *what) {
    if (fe->in_index || ta == DT_INDEX || tb == DT_INDEX)
        return DT_INDEX;
    if (ta == tb)
        return ta;
    ta = dtype_promote(ta);
    tb = dtype_promote(tb);
    if (dtype_is_signed(ta) != dtype_is_signed(tb))
        return meet_fail(fe, a, b, span, what);
    return dtype_bits(ta) >= dtype_bits(tb) ? ta : tb;
}

DType val_meet(Fe *fe, Val a, Val b, bool keep, Span span, const char *what) {
    if (a.kind == VAL_LITERAL && b.kind == VAL_LITERAL)
        return a.is_float || b.is_float ? DT_F32 : DT_INDEX;
    if (a.kind == VAL_LITERAL)
        return meet_literal(fe, a, b, keep, span, what, true);
    if (b.kind == VAL_LITERAL)
        return meet_literal(fe, b, a, keep, span, what, false);
    DType ta = val_dtype(a), tb = val_dtype(b);
    if (ta == DT_BOOL && tb == DT_BOOL)
        return DT_BOOL;
    if (dtype_is_float(ta) && dtype_is_float(tb)) {
        if (keep && ta == tb)
            return ta;
        return ta == DT_F64 || tb == DT_F64 ? DT_F64 : DT_F32;
    }
    if (dtype_is_integer(ta) && dtype_is_integer(tb)) {
        if (!keep) {
            ta = dtype_promote(ta);
            tb = dtype_promote(tb);
        }
        return meet_integers(fe, a, b, ta, tb, span, what);
    }
    return meet_fail(fe, a, b, span, what);
}

/* Built-in functions along axes: reductions, scans, products.
 *
 * Input: a call with its arguments and axes. Output: its Val. Every named axis must be in the
 * value; sums are f32 (f64 of f64) or the integer's own width, of bools a count.
 */
#include "frontend/builtins.h"

#include <string.h>

bool along_value(Fe *fe, BuiltinCall *c, int n, Val *out) {
    Val v = val_settle(fe, c->arg[0]);
    for (int i = 0; i < n; i++) {
        if (axes_has(v.axes, c->axis[i]->id))
            continue;
        Diag *d = fe_error(fe, DIAG_NO_SUCH_AXIS, c->e->call.axes.data[i].span,
                           "`%s` along `%s`, which the value does not have: it is %s", c->row->name,
                           c->axis[i]->name, val_text(fe, v));
        diag_note(fe->diags, d, builtin_span(c, 0), "the value is here");
        if (v.axes.n == 1 && c->naxes == n)
            diag_hint(fe->diags, d, "write `%s[%s](...)`", c->row->name,
                      axis_by_id(fe, v.axes.id[0])->name);
        return false;
    }
    *out = val_with_axes(val_spread(fe, v, c->e->span), v.axes);
    return true;
}

static Val retyped(Fe *fe, Val v, DType type, Span span) {
    return val_with_axes(val_cast(fe, v, type, span), v.axes);
}

static Val reduce_value(Fe *fe, BuiltinCall *c, ReduceKind kind, Val v) {
    fe->b.span = c->e->span;
    Value *r = ir_reduce(&fe->b, kind, v.v, c->axes, c->hint);
    return val_with_axes(r, axes_minus(v.axes, c->axes));
}

Val builtin_reduce(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, c->naxes, &v))
        return val_poison();
    DType type = val_dtype(v);
    ReduceKind kind = c->id == BUILTIN_SUM    ? RED_SUM
                      : c->id == BUILTIN_PROD ? RED_PROD
                      : c->id == BUILTIN_MAX  ? RED_MAX
                      : c->id == BUILTIN_MIN  ? RED_MIN
                      : c->id == BUILTIN_ANY  ? RED_ANY
                                              : RED_ALL;
    bool logical = kind == RED_ANY || kind == RED_ALL, adds = kind == RED_SUM || kind == RED_PROD;
    if (logical != (type == DT_BOOL) && !(kind == RED_SUM && type == DT_BOOL)) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 0), "`%s` needs %s, this is %s",
                           c->row->name, logical ? "bools" : "numbers", val_text(fe, v));
        if (logical)
            diag_hint(fe->diags, d, "compare: `%s%s(%s != 0)`", c->row->name,
                      axes_text(fe, c->axes), span_text(fe, builtin_span(c, 0)));
        else if (kind == RED_MAX || kind == RED_MIN)
            diag_hint(fe->diags, d, "write `%s%s(%s)`", kind == RED_MAX ? "any" : "all",
                      axes_text(fe, c->axes), span_text(fe, builtin_span(c, 0)));
        return val_poison();
    }
    if (adds && type == DT_BOOL)
        v = retyped(fe, v, DT_INDEX, c->e->span);
    else if (adds)
        v = retyped(fe, v, dtype_promote(type), c->e->span);
    Val r = reduce_value(fe, c, kind, v);
    if (kind != RED_SUM && kind != RED_ANY)
        doubt_outside(fe, v, c->axes, c->row->name, c->e->span, r);
    return r;
}

/* The number of elements inside the named axes, as a float. */
static Val count_of(Fe *fe, BuiltinCall *c, DType type) {
    Val n = val_int(1);
    for (int i = 0; i < c->naxes; i++) {
        Value *lo, *hi;
        axis_bounds(fe, c->axis[i], &lo, &hi);
        Val size = build_binary(fe, OP_SUB, val_of(hi), val_of(lo), DT_INDEX, c->e->span);
        n = build_binary(fe, OP_MUL, n, size, DT_INDEX, c->e->span);
    }
    return retyped(fe, n, type, c->e->span);
}

static Val mean_value(Fe *fe, BuiltinCall *c, Val v, DType type, const char *hint) {
    const char *keep = c->hint;
    c->hint = NULL;
    Val sum = reduce_value(fe, c, RED_SUM, v);
    c->hint = keep;
    Val count = count_of(fe, c, type);
    fe->hint = hint;
    return build_binary(fe, OP_DIV, sum, count, type, c->e->span);
}

Val builtin_mean(Fe *fe, BuiltinCall *c, bool variance) {
    Val v;
    if (!along_value(fe, c, c->naxes, &v))
        return val_poison();
    DType type = builtin_float(fe, v, c, 0);
    if (type == DT_NONE)
        return val_poison();
    v = retyped(fe, v, type, c->e->span);
    Val mean = mean_value(fe, c, v, type, variance ? NULL : c->hint);
    doubt_outside(fe, v, c->axes, c->row->name, c->e->span, mean);
    if (!variance)
        return mean;
    Val d = build_binary(fe, OP_SUB, v, mean, type, c->e->span);
    Val square = build_binary(fe, OP_MUL, d, d, type, c->e->span);
    return mean_value(fe, c, square, type, c->hint);
}

Val builtin_arg(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, c->naxes, &v))
        return val_poison();
    if (val_dtype(v) == DT_BOOL) {
        Diag *d =
            fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 0), "`%s` of bools", c->row->name);
        diag_hint(fe->diags, d, "write `%s`", cast_text(fe, builtin_span(c, 0), DT_I32));
        return val_poison();
    }
    AxisSet rest = axes_minus(v.axes, c->axes);
    Type types[AXES_MAX];
    for (int i = 0; i < c->naxes; i++)
        types[i] = type_tile(DT_INDEX, rest);
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_ARGREDUCE,
                                        .sub = c->id == BUILTIN_ARGMAX ? ARG_MAX : ARG_MIN,
                                        .nin = 1,
                                        .in = &v.v,
                                        .nres = (uint16_t)c->naxes,
                                        .types = types,
                                        .naxes = (uint16_t)c->naxes,
                                        .axes = c->axis});
    doubt_outside(fe, v, c->axes, c->row->name, c->e->span, val_of(op->res[0]));
    if (c->naxes == 1)
        return val_of(op->res[0]);
    Val t = {.kind = VAL_TUPLE,
             .n = (uint32_t)c->naxes,
             .items = ARENA_ARRAY(fe->arena, Val, (size_t)c->naxes)};
    for (int i = 0; i < c->naxes; i++)
        t.items[i] = val_of(op->res[i]);
    return t;
}

Val builtin_scan(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, c->naxes, &v))
        return val_poison();
    DType type = val_dtype(v);
    ScanKind kind = c->id == BUILTIN_CUMSUM    ? SCAN_SUM
                    : c->id == BUILTIN_CUMPROD ? SCAN_PROD
                                               : SCAN_MAX;
    if (kind != SCAN_MAX)
        v = retyped(fe, v, type == DT_BOOL ? DT_INDEX : dtype_promote(type), c->e->span);
    Type result = v.v->type;
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_SCAN,
                                        .sub = (uint8_t)kind,
                                        .nin = 1,
                                        .in = &v.v,
                                        .nres = 1,
                                        .types = &result,
                                        .names = &c->hint,
                                        .naxes = (uint16_t)c->naxes,
                                        .axes = c->axis});
    if (kind != SCAN_SUM)
        doubt_outside(fe, v, c->axes, c->row->name, c->e->span, val_of(op->res[0]));
    return val_of(op->res[0]);
}

/* --- dot ------------------------------------------------------------------------------------ */

static bool dot_types(Fe *fe, BuiltinCall *c, Val a, Val b) {
    DType ta = val_dtype(a), tb = val_dtype(b);
    bool pairs =
        (dtype_is_fp8(ta) && dtype_is_fp8(tb)) || (dtype_bits(ta) == 8 && dtype_bits(tb) == 8 &&
                                                   dtype_is_integer(ta) && dtype_is_integer(tb));
    if (ta == DT_BOOL || tb == DT_BOOL || (ta != tb && !pairs)) {
        Diag *d =
            fe_error(fe, DIAG_DOT_TYPES, c->e->span, "`dot` needs operands of one type: %s and %s",
                     val_text(fe, a), val_text(fe, b));
        bool left = dtype_is_float(ta) != dtype_is_float(tb) ? dtype_is_float(tb)
                                                             : dtype_bits(ta) > dtype_bits(tb);
        if (ta == DT_BOOL && tb == DT_BOOL)
            diag_hint(fe->diags, d, "convert both: `%s`, `%s`",
                      cast_text(fe, builtin_span(c, 0), DT_I8),
                      cast_text(fe, builtin_span(c, 1), DT_I8));
        else
            diag_hint(fe->diags, d, "write `%s`",
                      cast_text(fe, builtin_span(c, left ? 0 : 1), left ? tb : ta));
        return false;
    }
    return true;
}

/* `precision = tf32` in the call or the schedule: a property of f32 products, `fast` of fp8 ones;
 * for other types it says nothing, so that a generic kernel may have it. */
static void dot_precision(Fe *fe, Op *dot, const char *given) {
    const char *word = given ? given : schedule_word(fe, fe->decl, "precision");
    DType type = dot->in[0]->type.dtype;
    if (!word)
        return;
    bool tf32 = !strcmp(word, "tf32") || !strcmp(word, "tf32x3");
    if ((tf32 && type == DT_F32) || (!strcmp(word, "fast") && dtype_is_fp8(type)))
        op_set_str(fe->kernel, dot, ATTR_precision, word);
}

/* No matrix unit takes 4 bits: they are multiplied as 8. */
static Val unpacked(Fe *fe, Val v, Span span) {
    if (!val_ok(v) || !dtype_is_packed(val_dtype(v)))
        return v;
    return val_with_axes(val_cast(fe, v, val_dtype(v) == DT_I4 ? DT_I8 : DT_U8, span), v.axes);
}

Val builtin_dot(Fe *fe, BuiltinCall *c) {
    Val a = val_settle(fe, c->arg[0]), b = val_settle(fe, c->arg[1]);
    a = unpacked(fe, a, c->e->span);
    b = unpacked(fe, b, c->e->span);
    bool ok = true;
    for (int i = 0; i < c->naxes; i++) {
        bool in_a = axes_has(a.axes, c->axis[i]->id), in_b = axes_has(b.axes, c->axis[i]->id);
        if (in_a && in_b)
            continue;
        Diag *d = fe_error(fe, DIAG_NO_SUCH_AXIS, c->e->call.axes.data[i].span,
                           "axis `%s` of `dot` is not in %s: %s and %s", c->axis[i]->name,
                           in_a || in_b ? (in_a ? "the second operand" : "the first operand")
                                        : "the operands",
                           val_text(fe, a), val_text(fe, b));
        diag_note(fe->diags, d, builtin_span(c, in_a ? 1 : 0), "this one lacks it");
        AxisSet shared = axes_intersect(a.axes, b.axes);
        if (shared.n == 1)
            diag_hint(fe->diags, d, "write `dot[%s](...)`", axis_by_id(fe, shared.id[0])->name);
        ok = false;
    }
    AxisSet both;
    if (!ok || !dot_types(fe, c, a, b) || !val_union(fe, a, b, c->e->span, &both))
        return val_poison();
    Value *x = val_spread(fe, a, c->e->span), *y = val_spread(fe, b, c->e->span);
    if (val_dtype(a) == DT_INDEX) {
        Diag *d = fe_error(fe, DIAG_DOT_TYPES, c->e->span, "`dot` of index values");
        diag_hint(fe->diags, d, "convert them to a type that is stored: `%s`",
                  cast_text(fe, builtin_span(c, 0), DT_I32));
        return val_poison();
    }
    fe->b.span = c->e->span;
    Value *r = ir_dot(&fe->b, x, y, NULL, c->axes, c->hint);
    dot_precision(fe, r->def, c->precision);
    return val_of(r);
}

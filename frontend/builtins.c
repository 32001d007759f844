/* Built-in functions: one builder for each family of lang/builtins.def.
 *
 * Input: a call whose name is a builtin. Output: its Val. What computes does so in f32 (f64 of
 * f64); what chooses keeps the type; reductions name their axes in brackets.
 */
#include "frontend/builtins.h"

#include <string.h>

static const Builtin builtins[BUILTIN_COUNT] = {
#define BUILTIN(id, text, family, op, axes, least, most, shape)                                    \
    [BUILTIN_##id] = {text, FAMILY_##family, OP_##op, BRACKETS_##axes, least, most, shape},
#include "lang/builtins.def"
#undef BUILTIN
};

static int builtin_find(const char *name) {
    for (int i = 0; i < BUILTIN_COUNT; i++)
        if (!strcmp(builtins[i].name, name))
            return i;
    return -1;
}

bool builtin_exists(const char *name) {
    return builtin_find(name) >= 0;
}

const Builtin *builtin_row(const char *name) {
    int id = builtin_find(name);
    return id >= 0 ? &builtins[id] : NULL;
}

const char *builtin_shape(const char *name) {
    const Builtin *row = builtin_row(name);
    return row ? row->shape : NULL;
}

bool builtin_along(const char *name) {
    int id = builtin_find(name);
    return id >= 0 && builtins[id].brackets != BRACKETS_NO && builtins[id].least == 1 &&
           builtins[id].family != FAMILY_TOPK;
}

bool builtin_has_effect(const Expr *call) {
    int id = call->kind == EXPR_CALL ? builtin_find(call->call.callee->name.name.text) : -1;
    return id >= 0 && builtins[id].family == FAMILY_ATOMIC_CAS;
}

const char *builtin_nearest(const char *name, int *distance) {
    const char *best = NULL;
    size_t len = strlen(name);
    for (int i = 0; i < BUILTIN_COUNT; i++) {
        /* One wrong, missing or additional letter; names here are too short for more. */
        const char *b = builtins[i].name;
        size_t lb = strlen(b), p = 0, s = 0;
        while (p < len && p < lb && name[p] == b[p])
            p++;
        while (s < len - p && s < lb - p && name[len - 1 - s] == b[lb - 1 - s])
            s++;
        size_t longest = len > lb ? len : lb;
        if (longest > 2 && longest - p - s <= 1 && *distance > 1) {
            *distance = 1;
            best = b;
        }
    }
    return best;
}

Span builtin_span(const BuiltinCall *c, uint32_t i) {
    return c->e->call.args.data[i].span;
}

/* --- elementwise ---------------------------------------------------------------------------- */

DType builtin_float(Fe *fe, Val v, const BuiltinCall *c, uint32_t i) {
    if (v.kind == VAL_LITERAL)
        return DT_F32;
    DType t = dtype_promote(val_dtype(v));
    if (dtype_is_float(t))
        return t;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, i), "`%s` needs a float, this is %s",
                       c->row->name, val_text(fe, v));
    diag_hint(fe->diags, d, "write `%s`", cast_text(fe, builtin_span(c, i), DT_F32));
    return DT_NONE;
}

/* Whether the 0 that is read outside a tensor becomes something else. */
static bool is_nonzero_at_zero(OpKind op) {
    return op == OP_EXP || op == OP_EXP2 || op == OP_LOG || op == OP_LOG2 || op == OP_COS ||
           op == OP_RSQRT || op == OP_RCP;
}

static Val math_call(Fe *fe, BuiltinCall *c) {
    DType type = builtin_float(fe, c->arg[0], c, 0);
    if (type == DT_NONE)
        return val_poison();
    fe->hint = c->hint;
    Val r = build_unary(fe, c->row->op, c->arg[0], type, c->e->span);
    if (is_nonzero_at_zero(c->row->op))
        doubt_outside(fe, c->arg[0], axes_none(), c->row->name, c->e->span, r);
    return r;
}

static Val pow_call(Fe *fe, BuiltinCall *c) {
    DType a = builtin_float(fe, c->arg[0], c, 0), b = builtin_float(fe, c->arg[1], c, 1);
    if (a == DT_NONE || b == DT_NONE)
        return val_poison();
    fe->hint = c->hint;
    return build_binary(fe, OP_POW, val_settle(fe, c->arg[0]), c->arg[1],
                        a == DT_F64 || b == DT_F64 ? DT_F64 : DT_F32, c->e->span);
}

static Val fma_call(Fe *fe, BuiltinCall *c) {
    DType type = DT_F32;
    AxisSet axes = axes_none();
    for (uint32_t i = 0; i < 3; i++) {
        DType t = builtin_float(fe, c->arg[i], c, i);
        if (t == DT_NONE ||
            !val_union(fe, c->arg[i], (Val){.kind = VAL_VALUE, .axes = axes}, c->e->span, &axes))
            return val_poison();
        if (t == DT_F64)
            type = t;
    }
    Value *v[3];
    for (uint32_t i = 0; i < 3; i++)
        v[i] = val_cast(fe, c->arg[i], type, builtin_span(c, i));
    fe->b.span = c->e->span;
    return val_with_axes(ir_fma(&fe->b, v[0], v[1], v[2], c->hint), axes);
}

static Val abs_call(Fe *fe, BuiltinCall *c) {
    Val v = c->arg[0];
    if (v.choice)
        v = val_settle(fe, v);
    if (v.kind == VAL_LITERAL)
        return v.is_float ? val_float(v.f < 0 ? -v.f : v.f) : val_int(v.i < 0 ? -v.i : v.i);
    if (val_dtype(v) == DT_BOOL) {
        fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 0), "`abs` needs a number, this is %s",
                 val_text(fe, v));
        return val_poison();
    }
    fe->hint = c->hint;
    return build_unary(fe, OP_ABS, v, val_dtype(v), c->e->span);
}

/* The last axis that an expression surely has, by its name: one that it names or that a value in it
 * has, else the last dim of the tensor that it names first. In `other` too, where that is not NULL.
 * NULL: not known. */
static const char *last_axis_of(Fe *fe, const Expr *e, const Tensor *other) {
    StrVec names = {0};
    const Tensor *t = NULL;
    expr_names(fe->arena, e, &names);
    bool whole = strchr(span_text(fe, e->span), ':') != NULL;
    for (uint32_t i = names.len; i > 0; i--) {
        const Entry *entry = scope_find(fe, names.data[i - 1]);
        if (entry && entry->kind == ENTRY_AXIS && !other && !whole)
            return entry->name;
        bool is_value = entry && entry->kind == ENTRY_LET && entry->val.kind == VAL_VALUE;
        AxisSet axes = is_value                            ? entry->val.axes
                       : entry && entry->kind == ENTRY_VAR ? entry->axes
                                                           : axes_none();
        if (axes.n > 0 && !other)
            return axis_by_id(fe, axes.id[axes.n - 1])->name;
        if (entry && entry->kind == ENTRY_TENSOR)
            t = entry->tensor;
    }
    for (int d = t ? t->mem->rank : 0; d-- > 0;)
        for (int k = 0; t->dim[d] && k < (other ? other->mem->rank : 1); k++)
            if (!other || other->dim[k] == t->dim[d])
                return t->dim[d];
    return NULL;
}

static const Tensor *tensor_named(Fe *fe, const Expr *e) {
    bool is_name = e->kind == EXPR_NAME && !e->name.module.text;
    const Entry *entry = is_name ? scope_find(fe, e->name.name.text) : NULL;
    return entry && entry->kind == ENTRY_TENSOR ? entry->tensor : NULL;
}

/* The row's example, its first axis one that the arguments have: "sum[N](x)". */
static const char *along_text(Fe *fe, const BuiltinCall *c) {
    const char *shape = c->row->shape, *open = strchr(shape, '['), *args = strchr(shape, '(');
    const char *end = open ? open + strcspn(open, ",]") : NULL;
    if (!open || c->e->call.axes.len > 0 || c->n == 0)
        return shape;
    const Expr *first = c->e->call.args.data[0].value;
    bool is_product = c->row->family == FAMILY_DOT;
    const Tensor *other =
        is_product && c->n == 2 ? tensor_named(fe, c->e->call.args.data[1].value) : NULL;
    const char *axis = is_product && !other ? NULL : last_axis_of(fe, first, other);
    if (!axis)
        return shape;
    const char *given = "";
    for (uint32_t i = 0; i < c->n; i++)
        given = arena_printf(fe->arena, "%s%s%s", given, i ? ", " : "",
                             span_text(fe, c->e->call.args.data[i].value->span));
    bool complete = c->n >= c->row->least && c->n <= c->row->most;
    return arena_printf(fe->arena, "%s[%s%.*s%s", c->row->name, axis, (int)(args - end), end,
                        complete ? arena_printf(fe->arena, "(%s)", given) : args);
}

static Val choose_call(Fe *fe, BuiltinCall *c) {
    if (c->n < 2) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span,
                           "`%s` of one value needs the axes to reduce", c->row->name);
        diag_hint(fe->diags, d, "write `%s`", along_text(fe, c));
        return val_poison();
    }
    Val r = c->arg[0];
    for (uint32_t i = 1; i < c->n; i++) {
        if (c->n == 2)
            sides_set(fe, builtin_span(c, 0), builtin_span(c, 1));
        DType type = val_meet(fe, r, c->arg[i], true, c->e->span, c->row->name);
        sides_set(fe, (Span){0}, (Span){0});
        if (type == DT_NONE)
            return val_poison();
        if (type == DT_BOOL) {
            Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, c->e->span, "`%s` of bools", c->row->name);
            bool or = c->row->op == OP_MAX || c->row->op == OP_FMAX;
            diag_hint(fe->diags, d, "write `a %s b`", or ? "||" : "&&");
            return val_poison();
        }
        if (i + 1 == c->n)
            fe->hint = c->hint;
        r = build_binary(fe, c->row->op, r, c->arg[i], type, c->e->span);
        if (!val_ok(r))
            return r;
    }
    return r;
}

bool builtin_integer(Fe *fe, BuiltinCall *c, uint32_t i) {
    Val v = c->arg[i];
    if (v.kind == VAL_LITERAL ? !v.is_float : dtype_is_integer(val_dtype(v)))
        return true;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, i),
                       "`%s` needs an integer, this is %s", c->row->name, val_text(fe, v));
    if (c->row->op == OP_CDIV)
        diag_hint(fe->diags, d, "of floats write `ceil(a / b)`");
    if (c->row->op == OP_FLOORDIV)
        diag_hint(fe->diags, d, "of floats write `floor(a / b)`");
    return false;
}

static Val divide_call(Fe *fe, BuiltinCall *c) {
    if (!builtin_integer(fe, c, 0) || !builtin_integer(fe, c, 1))
        return val_poison();
    DType type = val_meet(fe, c->arg[0], c->arg[1], false, c->e->span, c->row->name);
    if (type == DT_NONE)
        return val_poison();
    fe->hint = c->hint;
    return build_binary(fe, c->row->op, c->arg[0], c->arg[1], type, c->e->span);
}

static Val bits_call(Fe *fe, BuiltinCall *c) {
    if (!builtin_integer(fe, c, 0))
        return val_poison();
    Val v = val_settle(fe, c->arg[0]);
    fe->hint = c->hint;
    return build_unary(fe, c->row->op, v, dtype_promote(val_dtype(v)), c->e->span);
}

/* log2i(n) = 63 - clz(n), a constant of a constant. */
static Val log2i_call(Fe *fe, BuiltinCall *c) {
    if (!builtin_integer(fe, c, 0))
        return val_poison();
    int64_t n;
    if (val_const_int(c->arg[0], &n)) {
        int64_t bits = -1;
        for (uint64_t u = (uint64_t)n; u; u >>= 1)
            bits++;
        return val_of(ir_index(fe->kernel, bits));
    }
    Val wide = val_with_axes(val_cast(fe, c->arg[0], DT_INDEX, c->e->span), c->arg[0].axes);
    Val zeros = build_unary(fe, OP_CLZ, wide, DT_INDEX, c->e->span);
    fe->hint = c->hint;
    return build_binary(fe, OP_SUB, val_int(63), zeros, DT_INDEX, c->e->span);
}

/* --- questions ------------------------------------------------------------------------------ */

static Val window_call(Fe *fe, BuiltinCall *c) {
    const Expr *e = c->e->call.args.data[0].value;
    Val v = c->arg[0];
    if (v.kind != VAL_VALUE || v.v->kind != VALUE_IOTA) {
        Diag *d = fe_error(fe, DIAG_NOT_AN_AXIS, e->span, "`%s` needs an axis variable, this is %s",
                           c->row->name, val_text(fe, v));
        diag_hint(fe->diags, d, "it is for an axis of `tiles`; a dim goes from 0 to its name");
        return val_poison();
    }
    Value *lo, *hi;
    Axis *axis = v.v->axis;
    AxisInfo *info = axis_info(fe, axis);
    fe->b.span = c->e->span;
    if (info->parallel || info->sequential || (!axis->is_dim && !info->lo))
        return val_of(c->row->op == OP_BEGIN ? ir_begin(&fe->b, axis) : ir_end(&fe->b, axis));
    axis_bounds(fe, axis, &lo, &hi);
    return val_of(c->row->op == OP_BEGIN ? lo : hi);
}

static Val present_call(Fe *fe, BuiltinCall *c) {
    const Expr *e = c->e->call.args.data[0].value;
    Val v = expr_any(fe, e);
    if (!val_ok(v))
        return v;
    if (v.kind != VAL_TENSOR) {
        fe_error(fe, DIAG_TYPE_MISMATCH, e->span, "`present` asks about a tensor, this is %s",
                 val_text(fe, v));
        return val_poison();
    }
    if (!v.tensor->mem->opt)
        return val_of(ir_bool(fe->kernel, true));
    MemRef ref = {.mem = v.tensor->mem, .pos = -1};
    Type type = type_scalar(DT_BOOL);
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_PRESENT,
                                        .nres = 1,
                                        .types = &type,
                                        .names = &c->hint,
                                        .nmem = 1,
                                        .mem = &ref});
    return val_of(op->res[0]);
}

/* --- dispatch ------------------------------------------------------------------------------- */

/* "1 argument", "2 to 4 arguments": what a built-in takes, of a call with so many axes. */
static const char *count_text(Fe *fe, const Builtin *row, uint32_t axes) {
    uint32_t least = row->least, most = row->most;
    if (row->brackets == BRACKETS_ANY && axes > 0)
        least = most = 1;
    if (least == most)
        return arena_printf(fe->arena, "%u argument%s", least, least == 1 ? "" : "s");
    return arena_printf(fe->arena, "%u to %u arguments", least, most);
}

static bool check_shape(Fe *fe, BuiltinCall *c) {
    const Builtin *row = c->row;
    uint32_t n = c->n, axes = c->e->call.axes.len;
    bool brackets_ok =
        row->brackets == BRACKETS_ANY || (row->brackets == BRACKETS_YES) == (axes > 0);
    bool count_ok = n >= row->least && n <= row->most;
    if (row->brackets == BRACKETS_ANY && axes > 0)
        count_ok = n == 1;
    if (brackets_ok && count_ok)
        return true;
    Diag *d;
    if (!brackets_ok && axes == 0)
        d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`%s` names its axes in brackets",
                     row->name);
    else if (!brackets_ok)
        d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`%s` takes no axes", row->name);
    else
        d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`%s` takes %s, %u given", row->name,
                     count_text(fe, row, axes), n);
    diag_hint(fe->diags, d, "write `%s`", along_text(fe, c));
    if (row->family == FAMILY_TOPK && axes == 0)
        diag_hint(fe->diags, d, "the second axis is the result's: `axis %c in 8;`",
                  *(strchr(row->shape, ',') + 2));
    return false;
}

static bool check_names(Fe *fe, BuiltinCall *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        const Arg *arg = &c->e->call.args.data[i];
        if (!arg->name.text)
            continue;
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, arg->span, "`%s` has no parameter `%s`",
                           c->row->name, arg->name.text);
        if (c->row->family == FAMILY_DOT)
            diag_hint(fe->diags, d, "what has a name is `precision = ...`, as the last argument");
        else
            diag_hint(fe->diags, d, "it is built in: write its arguments without names");
        return false;
    }
    return true;
}

static bool call_axes(Fe *fe, BuiltinCall *c) {
    bool ok = true;
    c->axes = axes_none();
    for (uint32_t i = 0; i < c->e->call.axes.len; i++) {
        Axis *axis = axis_find(fe, c->e->call.axes.data[i]);
        if (!axis) {
            ok = false;
            continue;
        }
        if (axes_has(c->axes, axis->id)) {
            fe_error(fe, DIAG_AXIS_TWICE, c->e->call.axes.data[i].span, "axis `%s` is named twice",
                     axis->name);
            ok = false;
        } else if (axes_add(&c->axes, axis->id)) {
            c->axis[c->naxes++] = axis;
        }
    }
    return ok;
}

/* Texts and types are looked at by their builders. */
static bool is_value(Fe *fe, const BuiltinCall *c, uint32_t i, const Expr *e) {
    Family family = c->row->family;
    bool asserts = family == FAMILY_ASSERT || family == FAMILY_STATIC_ASSERT;
    if (family == FAMILY_ASM)
        return i > 0 && !(i > 1 && i + 1 == c->n && builtin_names_type(fe, e));
    if (family == FAMILY_PRINT)
        return i > 0;
    return i == 0 || (family != FAMILY_BITCAST && !(asserts && e->kind == EXPR_STRING));
}

static bool call_values(Fe *fe, BuiltinCall *c) {
    bool ok = true;
    bool whole = c->row->family == FAMILY_PRESENT || c->row->family == FAMILY_INSIDE ||
                 c->row->family == FAMILY_ATOMIC_CAS;
    for (uint32_t i = 0; !whole && i < c->n; i++) {
        const Expr *e = c->e->call.args.data[i].value;
        if (!is_value(fe, c, i, e))
            continue;
        c->arg[i] = c->row->family == FAMILY_FOLD ? expr_any(fe, e) : expr_value(fe, e);
        ok &= val_ok(c->arg[i]);
    }
    return ok;
}

static Val dispatch(Fe *fe, BuiltinCall *c) {
    switch (c->row->family) {
    case FAMILY_MATH:
        return math_call(fe, c);
    case FAMILY_POW:
        return pow_call(fe, c);
    case FAMILY_FMA:
        return fma_call(fe, c);
    case FAMILY_ABS:
        return abs_call(fe, c);
    case FAMILY_CHOOSE:
        return c->naxes ? builtin_reduce(fe, c) : choose_call(fe, c);
    case FAMILY_DIVIDE:
        return divide_call(fe, c);
    case FAMILY_BITS:
        return bits_call(fe, c);
    case FAMILY_LOG2I:
        return log2i_call(fe, c);
    case FAMILY_REDUCE:
        return builtin_reduce(fe, c);
    case FAMILY_MEAN:
        return builtin_mean(fe, c, false);
    case FAMILY_VARIANCE:
        return builtin_mean(fe, c, true);
    case FAMILY_ARG:
        return builtin_arg(fe, c);
    case FAMILY_SCAN:
        return builtin_scan(fe, c);
    case FAMILY_FOLD:
        return builtin_fold(fe, c);
    case FAMILY_SORT:
        return builtin_sort(fe, c);
    case FAMILY_TOPK:
        return builtin_topk(fe, c);
    case FAMILY_EXPAND24:
        return builtin_expand24(fe, c);
    case FAMILY_DOT:
        return builtin_dot(fe, c);
    case FAMILY_WINDOW:
        return window_call(fe, c);
    case FAMILY_INSIDE:
        return inside_expr(fe, c->e->call.args.data[0].value);
    case FAMILY_PRESENT:
        return present_call(fe, c);
    case FAMILY_RAND:
        return builtin_rand(fe, c);
    case FAMILY_RANDBITS:
        return builtin_randbits(fe, c);
    case FAMILY_ASM:
        return builtin_asm(fe, c);
    case FAMILY_BITCAST:
        return builtin_bitcast(fe, c);
    case FAMILY_ATOMIC_CAS:
        return stmt_atomic_cas(fe, c->e, c->hint);
    case FAMILY_ASSERT:
        return builtin_assert(fe, c, false);
    case FAMILY_STATIC_ASSERT:
        return builtin_assert(fe, c, true);
    case FAMILY_PRINT:
        return builtin_print(fe, c);
    }
    return val_poison();
}

/* The last argument of a product may be `precision = word`. */
static bool call_precision(Fe *fe, BuiltinCall *c) {
    const Arg *last = c->n > 0 ? &c->e->call.args.data[c->n - 1] : NULL;
    if (c->row->family != FAMILY_DOT || !last->name.text || strcmp(last->name.text, "precision"))
        return true;
    static const char *const words[] = {"ieee", "tf32", "tf32x3", "fast"};
    const Expr *e = last->value;
    for (int i = 0; i < 4 && e->kind == EXPR_NAME && !e->name.module.text; i++)
        if (!strcmp(e->name.name.text, words[i]))
            c->precision = words[i];
    c->n--;
    if (c->precision || e->kind == EXPR_ERROR)
        return c->precision != NULL;
    fe_error(fe, DIAG_UNKNOWN_NAME, e->span,
             "the precision of a product is `ieee`, `tf32`, `tf32x3` or `fast`");
    return false;
}

bool builtin_check_call(Fe *fe, const Expr *e) {
    int id = builtin_find(e->call.callee->name.name.text);
    if (id < 0)
        return false;
    BuiltinCall c = {.id = (BuiltinId)id, .row = &builtins[id], .e = e, .n = e->call.args.len};
    return call_precision(fe, &c) && check_names(fe, &c) && check_shape(fe, &c);
}

Val builtin_call(Fe *fe, const Expr *e) {
    const char *hint = hint_take(fe);
    int id = builtin_find(e->call.callee->name.name.text);
    if (id < 0)
        return val_poison();
    BuiltinCall c = {
        .id = (BuiltinId)id, .row = &builtins[id], .e = e, .n = e->call.args.len, .hint = hint};
    if (!call_precision(fe, &c))
        return val_poison();
    if (!check_names(fe, &c) || !check_shape(fe, &c))
        return val_poison();
    bool debugs = c.row->family == FAMILY_ASSERT || c.row->family == FAMILY_PRINT;
    Program program = {0};
    if (debugs)
        program_open(fe, &program, e->span);
    bool axes_ok = call_axes(fe, &c), values_ok = call_values(fe, &c);
    Val r = axes_ok && values_ok ? dispatch(fe, &c) : val_poison();
    if (debugs)
        program_close(fe, &program);
    fe->hint = NULL;
    return r;
}

/* Built-in functions: one builder for each family of lang/builtins.def.
 *
 * Input: a call whose name is a builtin. Output: its Val. What computes does so in f32 (f64 of
 * f64); what chooses keeps the type; reductions name their axes in brackets.
 */
#include "frontend/fe.h"

#include <string.h>

typedef enum Family {
    FAMILY_MATH,
    FAMILY_POW,
    FAMILY_FMA,
    FAMILY_ABS,
    FAMILY_CHOOSE,
    FAMILY_DIVIDE,
    FAMILY_BITS,
    FAMILY_LOG2I,
    FAMILY_REDUCE,
    FAMILY_MEAN,
    FAMILY_VARIANCE,
    FAMILY_ARG,
    FAMILY_SCAN,
    FAMILY_DOT,
    FAMILY_WINDOW,
    FAMILY_INSIDE,
    FAMILY_PRESENT,
    FAMILY_RAND,
    FAMILY_ASSERT,
    FAMILY_STATIC_ASSERT,
    FAMILY_LATER
} Family;

typedef enum Brackets { BRACKETS_NO, BRACKETS_YES, BRACKETS_ANY } Brackets;

typedef enum BuiltinId {
#define BUILTIN(id, ...) BUILTIN_##id,
#include "lang/builtins.def"
#undef BUILTIN
    BUILTIN_COUNT
} BuiltinId;

typedef struct Builtin {
    const char *name;
    Family family;
    OpKind op;
    Brackets brackets;
    uint32_t least, most;
    const char *shape;
} Builtin;

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

const char *builtin_nearest(Fe *fe, const char *name, int *distance) {
    (void)fe;
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

/* A call with its arguments evaluated. */
typedef struct BuiltinCall {
    BuiltinId id;
    const Builtin *row;
    const Expr *e;
    uint32_t n;
    Val arg[ARGS_MAX];
    AxisSet axes;
    Axis *axis[AXES_MAX];
    int naxes;
    const char *hint;
} BuiltinCall;

static Span arg_span(const BuiltinCall *c, uint32_t i) {
    return c->e->call.args.data[i].span;
}

/* --- elementwise ---------------------------------------------------------------------------- */

static DType float_type(Fe *fe, Val v, const BuiltinCall *c, uint32_t i) {
    if (v.kind == VAL_LITERAL)
        return DT_F32;
    DType t = dtype_promote(val_dtype(v));
    if (dtype_is_float(t))
        return t;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, i), "`%s` needs a float, this is %s",
                       c->row->name, val_text(fe, v));
    diag_hint(fe->diags, d, "write `%s`", cast_text(fe, arg_span(c, i), DT_F32));
    return DT_NONE;
}

static Val math_call(Fe *fe, BuiltinCall *c) {
    DType type = float_type(fe, c->arg[0], c, 0);
    if (type == DT_NONE)
        return val_poison();
    fe->hint = c->hint;
    return build_unary(fe, c->row->op, c->arg[0], type, c->e->span);
}

static Val pow_call(Fe *fe, BuiltinCall *c) {
    DType a = float_type(fe, c->arg[0], c, 0), b = float_type(fe, c->arg[1], c, 1);
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
        DType t = float_type(fe, c->arg[i], c, i);
        if (t == DT_NONE ||
            !val_union(fe, c->arg[i], (Val){.kind = VAL_VALUE, .axes = axes}, c->e->span, &axes))
            return val_poison();
        if (t == DT_F64)
            type = t;
    }
    Value *v[3];
    for (uint32_t i = 0; i < 3; i++)
        v[i] = val_cast(fe, c->arg[i], type, arg_span(c, i));
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
        fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, 0), "`abs` needs a number, this is %s",
                 val_text(fe, v));
        return val_poison();
    }
    fe->hint = c->hint;
    return build_unary(fe, OP_ABS, v, val_dtype(v), c->e->span);
}

static Val choose_call(Fe *fe, BuiltinCall *c) {
    if (c->n < 2) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span,
                           "`%s` of one value needs the axes to reduce", c->row->name);
        diag_hint(fe->diags, d, "write `%s`", c->row->shape);
        return val_poison();
    }
    Val r = c->arg[0];
    for (uint32_t i = 1; i < c->n; i++) {
        DType type = val_meet(fe, r, c->arg[i], true, c->e->span, c->row->name);
        if (type == DT_NONE)
            return val_poison();
        if (type == DT_BOOL) {
            fe_error(fe, DIAG_TYPE_MISMATCH, c->e->span, "`%s` of bools", c->row->name);
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

static bool need_integer(Fe *fe, BuiltinCall *c, uint32_t i) {
    Val v = c->arg[i];
    if (v.kind == VAL_LITERAL ? !v.is_float : dtype_is_integer(val_dtype(v)))
        return true;
    fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, i), "`%s` needs an integer, this is %s",
             c->row->name, val_text(fe, v));
    return false;
}

static Val divide_call(Fe *fe, BuiltinCall *c) {
    if (!need_integer(fe, c, 0) || !need_integer(fe, c, 1))
        return val_poison();
    DType type = val_meet(fe, c->arg[0], c->arg[1], false, c->e->span, c->row->name);
    if (type == DT_NONE)
        return val_poison();
    fe->hint = c->hint;
    return build_binary(fe, c->row->op, c->arg[0], c->arg[1], type, c->e->span);
}

static Val bits_call(Fe *fe, BuiltinCall *c) {
    if (!need_integer(fe, c, 0))
        return val_poison();
    Val v = val_settle(fe, c->arg[0]);
    fe->hint = c->hint;
    return build_unary(fe, c->row->op, v, dtype_promote(val_dtype(v)), c->e->span);
}

/* log2i(n) = 63 - clz(n), a constant of a constant. */
static Val log2i_call(Fe *fe, BuiltinCall *c) {
    if (!need_integer(fe, c, 0))
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

/* --- along axes ----------------------------------------------------------------------------- */

/* The argument as a tile that has the named axes. */
static bool along_value(Fe *fe, BuiltinCall *c, Val *out) {
    Val v = val_settle(fe, c->arg[0]);
    for (int i = 0; i < c->naxes; i++) {
        if (axes_has(v.axes, c->axis[i]->id))
            continue;
        Diag *d = fe_error(fe, DIAG_NO_SUCH_AXIS, c->e->call.axes.data[i].span,
                           "`%s` along `%s`, which the value does not have: it is %s", c->row->name,
                           c->axis[i]->name, val_text(fe, v));
        diag_note(fe->diags, d, arg_span(c, 0), "the value is here");
        if (v.axes.n == 1)
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

static Val reduce_call(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, &v))
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
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, 0), "`%s` needs %s, this is %s",
                           c->row->name, logical ? "bools" : "numbers", val_text(fe, v));
        if (logical)
            diag_hint(fe->diags, d, "compare: `%s[...](... != 0)`", c->row->name);
        return val_poison();
    }
    if (adds && type == DT_BOOL)
        v = retyped(fe, v, DT_INDEX, c->e->span);
    else if (adds)
        v = retyped(fe, v, dtype_promote(type), c->e->span);
    return reduce_value(fe, c, kind, v);
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

static Val mean_call(Fe *fe, BuiltinCall *c, bool variance) {
    Val v;
    if (!along_value(fe, c, &v))
        return val_poison();
    DType type = float_type(fe, v, c, 0);
    if (type == DT_NONE)
        return val_poison();
    v = retyped(fe, v, type, c->e->span);
    Val mean = mean_value(fe, c, v, type, variance ? NULL : c->hint);
    if (!variance)
        return mean;
    Val d = build_binary(fe, OP_SUB, v, mean, type, c->e->span);
    Val square = build_binary(fe, OP_MUL, d, d, type, c->e->span);
    return mean_value(fe, c, square, type, c->hint);
}

static Val arg_call(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, &v))
        return val_poison();
    if (val_dtype(v) == DT_BOOL) {
        fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, 0), "`%s` of bools", c->row->name);
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
    if (c->naxes == 1)
        return val_of(op->res[0]);
    Val t = {.kind = VAL_TUPLE,
             .n = (uint32_t)c->naxes,
             .items = ARENA_ARRAY(fe->arena, Val, (size_t)c->naxes)};
    for (int i = 0; i < c->naxes; i++)
        t.items[i] = val_of(op->res[i]);
    return t;
}

static Val scan_call(Fe *fe, BuiltinCall *c) {
    Val v;
    if (!along_value(fe, c, &v))
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
        bool left = dtype_bits(ta) > dtype_bits(tb);
        diag_hint(fe->diags, d, "write `%s`",
                  cast_text(fe, arg_span(c, left ? 0 : 1), left ? tb : ta));
        return false;
    }
    return true;
}

/* `schedule { precision = tf32; }` is a property of the products: f32 ones, or fp8 ones for fast.
 */
void dot_precision(Fe *fe, Op *dot) {
    const char *word = schedule_word(fe, fe->decl, "precision");
    DType type = dot->in[0]->type.dtype;
    if (!word)
        return;
    bool tf32 = !strcmp(word, "tf32") || !strcmp(word, "tf32x3");
    if ((tf32 && type == DT_F32) || (!strcmp(word, "fast") && dtype_is_fp8(type)))
        op_set_str(fe->kernel, dot, ATTR_precision, word);
}

static Val dot_call(Fe *fe, BuiltinCall *c) {
    Val a = val_settle(fe, c->arg[0]), b = val_settle(fe, c->arg[1]);
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
        diag_note(fe->diags, d, arg_span(c, in_a ? 1 : 0), "this one lacks it");
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
        fe_error(fe, DIAG_DOT_TYPES, c->e->span, "`dot` of index values");
        return val_poison();
    }
    fe->b.span = c->e->span;
    Value *r = ir_dot(&fe->b, x, y, NULL, c->axes, c->hint);
    dot_precision(fe, r->def);
    return val_of(r);
}

/* --- questions ------------------------------------------------------------------------------ */

static Val window_call(Fe *fe, BuiltinCall *c) {
    const Expr *e = c->e->call.args.data[0].value;
    Val v = c->arg[0];
    if (v.kind != VAL_VALUE || v.v->kind != VALUE_IOTA) {
        fe_error(fe, DIAG_NOT_AN_AXIS, e->span, "`%s` needs an axis variable, this is %s",
                 c->row->name, val_text(fe, v));
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

/* A word of Philox to [0, 1): its upper 24 bits. */
static Val rand_call(Fe *fe, BuiltinCall *c) {
    if (!need_integer(fe, c, 0) || !need_integer(fe, c, 1))
        return val_poison();
    Value *in[2] = {val_cast(fe, c->arg[0], DT_INDEX, arg_span(c, 0)),
                    val_cast(fe, c->arg[1], DT_INDEX, arg_span(c, 1))};
    AxisSet axes;
    if (!axes_union(in[0]->type.axes, in[1]->type.axes, &axes))
        return val_poison();
    Type type = type_tile(DT_U32, axes);
    fe->b.span = c->e->span;
    Op *op =
        ir_build(&fe->b, &(OpInit){.kind = OP_RAND, .nin = 2, .in = in, .nres = 1, .types = &type});
    Value *high = ir_binary(&fe->b, OP_SHR, op->res[0], ir_int(fe->kernel, DT_U32, 8), NULL);
    Value *f = ir_cast(&fe->b, DT_F32, high, NULL);
    return val_of(ir_binary(&fe->b, OP_MUL, f, ir_float(fe->kernel, DT_F32, 0x1p-24), c->hint));
}

static const char *message_of(Fe *fe, BuiltinCall *c) {
    if (c->n < 2)
        return span_text(fe, arg_span(c, 0));
    const Expr *e = c->e->call.args.data[1].value;
    return e->kind == EXPR_STRING ? arena_strndup(fe->arena, e->string.data, e->string.len)
                                  : span_text(fe, e->span);
}

static Val assert_call(Fe *fe, BuiltinCall *c, bool is_static) {
    Val v = c->arg[0];
    if (val_dtype(v) != DT_BOOL) {
        fe_error(fe, DIAG_TYPE_MISMATCH, arg_span(c, 0), "`%s` needs a bool, this is %s",
                 c->row->name, val_text(fe, v));
        return val_poison();
    }
    bool known;
    const char *message = message_of(fe, c);
    if (val_const_bool(v, &known)) {
        if (!known)
            fe_error(fe, DIAG_ASSERT, c->e->span, "assertion failed: %s", message);
        return val_poison();
    }
    if (is_static) {
        fe_error(fe, DIAG_NOT_CONSTANT, arg_span(c, 0), "this is not known at compile time");
        return val_poison();
    }
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_ASSERT, .nin = 1, .in = &v.v});
    op_set_str(fe->kernel, op, ATTR_msg, message);
    return val_poison();
}

/* --- dispatch ------------------------------------------------------------------------------- */

static bool check_shape(Fe *fe, BuiltinCall *c) {
    const Builtin *row = c->row;
    uint32_t n = c->e->call.args.len, axes = c->e->call.axes.len;
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
        d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`%s` is given %u arguments", row->name,
                     n);
    diag_hint(fe->diags, d, "write `%s`", row->shape);
    return false;
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

static bool call_values(Fe *fe, BuiltinCall *c) {
    bool ok = true;
    bool whole = c->row->family == FAMILY_PRESENT || c->row->family == FAMILY_INSIDE;
    for (uint32_t i = 0; !whole && i < c->n; i++) {
        const Expr *e = c->e->call.args.data[i].value;
        bool text = e->kind == EXPR_STRING &&
                    (c->row->family == FAMILY_ASSERT || c->row->family == FAMILY_STATIC_ASSERT);
        if (text && i > 0)
            continue;
        c->arg[i] = expr_value(fe, e);
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
        return c->naxes ? reduce_call(fe, c) : choose_call(fe, c);
    case FAMILY_DIVIDE:
        return divide_call(fe, c);
    case FAMILY_BITS:
        return bits_call(fe, c);
    case FAMILY_LOG2I:
        return log2i_call(fe, c);
    case FAMILY_REDUCE:
        return reduce_call(fe, c);
    case FAMILY_MEAN:
        return mean_call(fe, c, false);
    case FAMILY_VARIANCE:
        return mean_call(fe, c, true);
    case FAMILY_ARG:
        return arg_call(fe, c);
    case FAMILY_SCAN:
        return scan_call(fe, c);
    case FAMILY_DOT:
        return dot_call(fe, c);
    case FAMILY_WINDOW:
        return window_call(fe, c);
    case FAMILY_INSIDE:
        return inside_expr(fe, c->e->call.args.data[0].value);
    case FAMILY_PRESENT:
        return present_call(fe, c);
    case FAMILY_RAND:
        return rand_call(fe, c);
    case FAMILY_ASSERT:
        return assert_call(fe, c, false);
    case FAMILY_STATIC_ASSERT:
        return assert_call(fe, c, true);
    case FAMILY_LATER:
        break;
    }
    return fe_unsupported(fe, c->e->span, arena_printf(fe->arena, "`%s`", c->row->name));
}

Val builtin_call(Fe *fe, const Expr *e) {
    const char *hint = hint_take(fe);
    int id = builtin_find(e->call.callee->name.name.text);
    if (id < 0)
        return val_poison();
    BuiltinCall c = {
        .id = (BuiltinId)id, .row = &builtins[id], .e = e, .n = e->call.args.len, .hint = hint};
    if (c.row->family == FAMILY_LATER)
        return dispatch(fe, &c);
    if (!check_shape(fe, &c))
        return val_poison();
    for (uint32_t i = 0; i < c.n; i++)
        if (e->call.args.data[i].name.text) {
            fe_error(fe, DIAG_ARGUMENT_COUNT, e->call.args.data[i].span,
                     "`%s` is built in and has no named parameters", c.row->name);
            return val_poison();
        }
    bool axes_ok = call_axes(fe, &c), values_ok = call_values(fe, &c);
    Val r = axes_ok && values_ok ? dispatch(fe, &c) : val_poison();
    fe->hint = NULL;
    return r;
}

/* Expressions: names, literals, operators, conditions and casts.
 *
 * Input: the tree. Output: Vals, with ops appended to the open region. A hint names the op of the
 * outermost expression (`let z = ...` gives %z); inner ops take names of their own.
 */
#include "frontend/fe.h"

#include <string.h>

Val const_value(Fe *fe, Global g, Span span) {
    if (!fn_enter(fe, g.decl, span))
        return val_poison();
    SourceModule *names = fe->names;
    uint32_t floor = fe->floor;
    bool in_index = fe->in_index;
    fe->names = g.module;
    fe->floor = fe->entries.len;
    fe->in_index = false;
    const Expr *e = g.decl->constant.value;
    DType type = type_find(fe, g.decl->constant.type);
    Val v = val_coerce(fe, expr_any(fe, e), type, true, e->span, "the constant");
    fn_leave(fe);
    fe->names = names;
    fe->floor = floor;
    fe->in_index = in_index;
    if (val_ok(v) && v.v->kind != VALUE_CONST) {
        fe_error(fe, DIAG_NOT_CONSTANT, e->span, "`%s` is not known at compile time",
                 g.decl->name.text);
        return val_poison();
    }
    return v;
}

static Val entry_value(Fe *fe, Entry *entry, Name name) {
    switch (entry->kind) {
    case ENTRY_LET:
        return entry->val;
    case ENTRY_VAR:
        return val_ok(entry->val) ? val_with_axes(entry->val.v, entry->axes) : val_poison();
    case ENTRY_AXIS:
        return val_of(entry->axis->iota);
    case ENTRY_DIM:
        return entry->val;
    case ENTRY_TENSOR:
        return (Val){.kind = VAL_TENSOR, .tensor = entry->tensor};
    case ENTRY_TYPE:
        fe_error(fe, DIAG_NOT_A_VALUE, name.span, "`%s` is a type, a value is needed here",
                 name.text);
        return val_poison();
    case ENTRY_POISON:
        break;
    }
    return val_poison();
}

static Val name_expr(Fe *fe, const Expr *e) {
    Name name = e->name.name;
    if (!e->name.module.text) {
        Entry *entry = scope_find(fe, name.text);
        if (entry)
            return entry_value(fe, entry, name);
    }
    Global g;
    if (global_find(fe, e->name.module, name, &g)) {
        if (!g.decl)
            return val_poison();
        if (g.decl->kind == DECL_CONST)
            return const_value(fe, g, e->span);
        return (Val){.kind = VAL_FN, .fn = g};
    }
    if (!e->name.module.text && builtin_exists(name.text)) {
        if (builtin_fn(fe, name, &g))
            return (Val){.kind = VAL_FN, .fn = g};
        builtin_report_name(fe, name);
        return val_poison();
    }
    if (!e->name.module.text && dtype_parse_cstr(name.text) != DT_NONE) {
        fe_error(fe, DIAG_NOT_A_VALUE, name.span, "`%s` is a type, a value is needed here",
                 name.text);
        return val_poison();
    }
    report_unknown(fe, name);
    return val_poison();
}

/* --- operators ------------------------------------------------------------------------------ */

static Val need_kind(Fe *fe, Val v, Span span, BinaryOp op, const char *what) {
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, span, "`%s` needs %s, this is %s",
                       binary_op_text(op), what, val_text(fe, v));
    if (op == BINARY_MOD && dtype_is_float(val_dtype(v)))
        diag_hint(fe->diags, d, "write `a - b * trunc(a / b)`");
    if (op == BINARY_AND || op == BINARY_OR)
        diag_hint(fe->diags, d, "compare it: `... != 0`");
    if (op == BINARY_BITXOR && dtype_is_float(val_dtype(v)))
        diag_hint(fe->diags, d, "`^` is of bits; a power is `pow(a, b)`, or `exp2(x)` of 2");
    if (op == BINARY_SHL && dtype_is_float(val_dtype(v)))
        diag_hint(fe->diags, d, "multiply by a power of two");
    return val_poison();
}

static Val arith(Fe *fe, BinaryOp op, OpKind kind, Val a, Val b, Span span) {
    const char *what = kind == OP_ADD   ? "sum"
                       : kind == OP_SUB ? "difference"
                       : kind == OP_MUL ? "product"
                       : kind == OP_DIV ? "quotient"
                                        : "remainder";
    DType type = val_meet(fe, a, b, false, span, what);
    if (type == DT_NONE)
        return val_poison();
    if (type == DT_BOOL) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, span, "`%s` of bools", binary_op_text(op));
        diag_hint(fe->diags, d, "count with `c as i32`, or combine with `&&` and `||`");
        return val_poison();
    }
    if (kind == OP_REM && dtype_is_float(type))
        return need_kind(fe, a, span, op, "integers");
    return build_binary(fe, kind, a, b, type, span);
}

static Val shift(Fe *fe, BinaryOp op, OpKind kind, Val a, Val b, Span span) {
    DType ta = a.kind == VAL_LITERAL ? dtype_promote(val_dtype(b)) : dtype_promote(val_dtype(a));
    if (ta == DT_NONE)
        ta = DT_INDEX;
    if (fe->in_index && dtype_is_integer(ta))
        ta = DT_INDEX;
    bool count_ok = b.kind == VAL_LITERAL ? !b.is_float : dtype_is_integer(val_dtype(b));
    if (!dtype_is_integer(ta) || (a.kind == VAL_LITERAL && a.is_float))
        return need_kind(fe, a, span, op, "an integer");
    if (!count_ok)
        return need_kind(fe, b, span, op, "an integer count");
    return build_binary(fe, kind, a, b, ta, span);
}

static Val bitwise(Fe *fe, BinaryOp op, OpKind kind, Val a, Val b, Span span) {
    DType type = val_meet(fe, a, b, false, span, "bit operation");
    if (type == DT_NONE)
        return val_poison();
    if (dtype_is_float(type))
        return need_kind(fe, dtype_is_float(val_dtype(a)) || a.is_float ? a : b, span, op,
                         "integers or bools");
    return build_binary(fe, kind, a, b, type, span);
}

static Val logical(Fe *fe, BinaryOp op, OpKind kind, Val a, Val b, Span span) {
    if (val_dtype(a) != DT_BOOL)
        return need_kind(fe, a, span, op, "bools");
    if (val_dtype(b) != DT_BOOL)
        return need_kind(fe, b, span, op, "bools");
    bool known;
    bool stop = kind == OP_OR; /* the value that decides */
    if (val_const_bool(a, &known))
        return known == stop ? a : b;
    if (val_const_bool(b, &known))
        return known == stop ? b : a;
    return build_binary(fe, kind, a, b, DT_BOOL, span);
}

static Val comparison(Fe *fe, CmpKind kind, Val a, Val b, Span span) {
    DType type = val_meet(fe, a, b, false, span, "comparison");
    if (type == DT_NONE)
        return val_poison();
    if (type == DT_BOOL && kind != CMP_EQ && kind != CMP_NE) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, span, "bools have no order");
        if (!span_is_none(fe->sides[0]))
            diag_hint(fe->diags, d, "compare numbers: `%s`, or write `==`, `!=`, `&&`, `||`",
                      cast_text(fe, fe->sides[0], DT_I32));
        return val_poison();
    }
    return build_cmp(fe, kind, a, b, type, span);
}

Val op_apply(Fe *fe, BinaryOp op, Val a, Val b, Span span) {
    if (!val_ok(a) || !val_ok(b))
        return val_poison();
    switch (op) {
    case BINARY_NONE:
        return b;
    case BINARY_OR:
        return logical(fe, op, OP_OR, a, b, span);
    case BINARY_AND:
        return logical(fe, op, OP_AND, a, b, span);
    case BINARY_BITOR:
        return bitwise(fe, op, OP_OR, a, b, span);
    case BINARY_BITXOR:
        return bitwise(fe, op, OP_XOR, a, b, span);
    case BINARY_BITAND:
        return bitwise(fe, op, OP_AND, a, b, span);
    case BINARY_EQ:
        return comparison(fe, CMP_EQ, a, b, span);
    case BINARY_NE:
        return comparison(fe, CMP_NE, a, b, span);
    case BINARY_LT:
        return comparison(fe, CMP_LT, a, b, span);
    case BINARY_GT:
        return comparison(fe, CMP_GT, a, b, span);
    case BINARY_LE:
        return comparison(fe, CMP_LE, a, b, span);
    case BINARY_GE:
        return comparison(fe, CMP_GE, a, b, span);
    case BINARY_SHL:
        return shift(fe, op, OP_SHL, a, b, span);
    case BINARY_SHR:
        return shift(fe, op, OP_SHR, a, b, span);
    case BINARY_ADD:
        return arith(fe, op, OP_ADD, a, b, span);
    case BINARY_SUB:
        return arith(fe, op, OP_SUB, a, b, span);
    case BINARY_MUL:
        return arith(fe, op, OP_MUL, a, b, span);
    case BINARY_DIV:
        return arith(fe, op, OP_DIV, a, b, span);
    case BINARY_MOD:
        return arith(fe, op, OP_REM, a, b, span);
    }
    return val_poison();
}

static bool is_dot_call(const Expr *e) {
    return e->kind == EXPR_CALL && !e->call.callee->name.module.text &&
           !strcmp(e->call.callee->name.name.text, "dot");
}

/* a + dot[k](x, y) becomes dot[k] x, y, a where a has the product's type: inside loops only, where
 * the sum is a running one. `from` is the tree of b; that it is the call shows that nobody else
 * has the product. */
Val op_accumulate(Fe *fe, Val a, Val b, const Expr *from, Span span, bool *done) {
    *done = false;
    if (!fe->nest && fe->loops == 0)
        return b;
    if (!is_dot_call(from) || a.kind != VAL_VALUE || b.kind != VAL_VALUE || !b.v->def)
        return b;
    Op *dot = b.v->def;
    if (dot->kind != OP_DOT || dot->nin != 2 || !type_equal(a.v->type, b.v->type))
        return b;
    AxisSet along = axes_none();
    for (int i = 0; i < dot->naxes; i++)
        axes_add(&along, dot->axes[i]->id);
    fe->b.span = span;
    Value *v = ir_dot(&fe->b, dot->in[0], dot->in[1], a.v, along, hint_take(fe));
    if (op_attr(dot, ATTR_precision))
        op_set_str(fe->kernel, v->def, ATTR_precision, op_attr_str(dot, ATTR_precision));
    ir_op_unlink(dot);
    *done = true;
    return val_of(v);
}

static Val binary_expr(Fe *fe, const Expr *e, const char *hint) {
    Val a = expr_value(fe, e->binary.left);
    Val b = expr_value(fe, e->binary.right);
    if (!val_ok(a) || !val_ok(b))
        return val_poison();
    fe->hint = hint;
    if (e->binary.op == BINARY_ADD) {
        bool done;
        Val sum = op_accumulate(fe, a, b, e->binary.right, e->span, &done);
        if (done)
            return sum;
    }
    sides_set(fe, e->binary.left->span, e->binary.right->span);
    Val r = op_apply(fe, e->binary.op, a, b, e->span);
    sides_set(fe, (Span){0}, (Span){0});
    fe->hint = NULL;
    return r;
}

static Val unary_expr(Fe *fe, const Expr *e, const char *hint) {
    Val v = expr_value(fe, e->unary.value);
    if (!val_ok(v))
        return v;
    fe->hint = hint;
    DType type = val_dtype(v);
    switch (e->unary.op) {
    case UNARY_NEG:
        if (type == DT_BOOL)
            break;
        if (v.choice)
            v = val_settle(fe, v), type = val_dtype(v);
        if (fe->in_index && dtype_is_integer(type))
            type = DT_INDEX;
        return build_unary(fe, OP_NEG, v, type, e->span);
    case UNARY_NOT:
        if (type != DT_BOOL)
            break;
        return build_unary(fe, OP_NOT, v, type, e->span);
    case UNARY_BITNOT:
        if (val_is_number(v) && !v.is_float)
            return val_int(~v.i);
        if (!v.is_float)
            v = val_settle(fe, v), type = val_dtype(v);
        if (!dtype_is_integer(type))
            break;
        return build_unary(fe, OP_NOT, v, dtype_promote(type), e->span);
    }
    fe->hint = NULL;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, e->span, "`%s` of %s", unary_op_text(e->unary.op),
                       val_text(fe, v));
    if (e->unary.op == UNARY_NOT)
        diag_hint(fe->diags, d, "compare: `%s == 0`", span_text(fe, e->unary.value->span));
    if (e->unary.op == UNARY_NEG)
        diag_hint(fe->diags, d, "write `!%s`", span_text(fe, e->unary.value->span));
    return val_poison();
}

Val expr_bool(Fe *fe, const Expr *e, const char *what) {
    Val v = expr_value(fe, e);
    if (!val_ok(v) || val_dtype(v) == DT_BOOL)
        return v;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, e->span, "%s is a bool, this is %s", what,
                       val_text(fe, v));
    bool rest = e->kind == EXPR_BINARY && e->binary.op == BINARY_MOD; /* "is divisible" */
    diag_hint(fe->diags, d, "compare: `%s %s 0`", span_text(fe, e->span), rest ? "==" : "!=");
    return val_poison();
}

/* Two literals to choose from are a literal too: `y = c ? 1 : 0` fits any y. */
static Val choice_of(Fe *fe, Val test, Val yes, Val no, Span span) {
    Choice *c = ARENA_NEW(fe->arena, Choice);
    *c = (Choice){test, yes, no};
    Val v = {.kind = VAL_LITERAL, .is_float = yes.is_float || no.is_float, .choice = c};
    if (!val_union(fe, yes, no, span, &v.axes) || !val_union(fe, test, v, span, &v.axes))
        return val_poison();
    return v;
}

static Val cond_expr(Fe *fe, const Expr *e, const char *hint) {
    Val c = expr_bool(fe, e->cond.test, "what `?` asks");
    bool known;
    if (val_ok(c) && val_const_bool(c, &known)) {
        fe->hint = hint;
        return expr_any(fe, known ? e->cond.yes : e->cond.no);
    }
    Val a = expr_value(fe, e->cond.yes);
    Val b = expr_value(fe, e->cond.no);
    if (!val_ok(c) || !val_ok(a) || !val_ok(b))
        return val_poison();
    if (a.kind == VAL_LITERAL && b.kind == VAL_LITERAL)
        return choice_of(fe, c, a, b, e->span);
    sides_set(fe, e->cond.yes->span, e->cond.no->span);
    DType type = val_meet(fe, a, b, true, e->span, "choice");
    sides_set(fe, (Span){0}, (Span){0});
    if (type == DT_NONE)
        return val_poison();
    fe->hint = hint;
    return build_select(fe, c, a, b, type, e->span);
}

static Val cast_expr(Fe *fe, const Expr *e, const char *hint) {
    Val v = expr_value(fe, e->cast.value);
    DType to = type_find(fe, e->cast.type);
    if (!val_ok(v) || to == DT_NONE)
        return val_poison();
    if (v.kind == VAL_LITERAL)
        return val_with_axes(val_cast(fe, v, to, e->span), v.axes);
    if (v.v->type.dtype == to || v.v->kind == VALUE_CONST)
        return val_with_axes(val_cast(fe, v, to, e->span), v.axes);
    fe->b.span = e->span;
    return val_with_axes(ir_cast(&fe->b, to, v.v, hint), v.axes);
}

static Val tuple_expr(Fe *fe, const Expr *e) {
    Val t = {
        .kind = VAL_TUPLE, .n = e->tuple.len, .items = ARENA_ARRAY(fe->arena, Val, e->tuple.len)};
    for (uint32_t i = 0; i < e->tuple.len; i++) {
        t.items[i] = expr_any(fe, e->tuple.data[i]);
        t.i += t.items[i].kind == VAL_TUPLE ? t.items[i].i : 1;
    }
    if (t.i <= TUPLE_VALUES_MAX)
        return t;
    fe_error(fe, DIAG_TOO_MANY, e->span,
             "a tuple of more than %d values, those of tuples in it "
             "counted",
             TUPLE_VALUES_MAX);
    return val_poison();
}

static Val expr_kind(Fe *fe, const Expr *e, const char *hint) {
    switch (e->kind) {
    case EXPR_ERROR:
        return val_poison();
    case EXPR_NAME:
        return name_expr(fe, e);
    case EXPR_INT:
        return val_int((int64_t)e->integer.value);
    case EXPR_FLOAT:
        return val_float(e->real.value);
    case EXPR_BOOL:
        return val_of(ir_bool(fe->kernel, e->boolean));
    case EXPR_INF:
        return val_float(__builtin_inf());
    case EXPR_NAN:
        return val_float(__builtin_nan(""));
    case EXPR_STRING:
        return (Val){.kind = VAL_STRING, .text = e};
    case EXPR_UNARY:
        return unary_expr(fe, e, hint);
    case EXPR_BINARY:
        return binary_expr(fe, e, hint);
    case EXPR_COND:
        return cond_expr(fe, e, hint);
    case EXPR_CAST:
        return cast_expr(fe, e, hint);
    case EXPR_INDEX:
        fe->hint = hint;
        return index_expr(fe, e, NULL);
    case EXPR_ELSE:
        fe->hint = hint;
        return index_expr(fe, e->otherwise.value, e->otherwise.fill);
    case EXPR_CALL:
        fe->hint = hint;
        return call_expr(fe, e);
    case EXPR_TUPLE:
        return tuple_expr(fe, e);
    }
    return val_poison();
}

Val expr_any(Fe *fe, const Expr *e) {
    const char *hint = hint_take(fe);
    if (!kernel_has_room(fe, e->span))
        return val_poison();
    if (fe->depth >= EXPR_DEPTH) {
        fe_error(fe, DIAG_TOO_DEEP, e->span, "this expression is nested too deeply");
        return val_poison();
    }
    fe->depth++;
    Val v = expr_kind(fe, e, hint);
    fe->depth--;
    return v;
}

Val expr_value(Fe *fe, const Expr *e) {
    return val_force(fe, expr_any(fe, e), e->span);
}

Value *expr_integer(Fe *fe, const Expr *e, const char *what) {
    bool in_index = fe->in_index;
    fe->in_index = true;
    Val v = expr_any(fe, e);
    Value *r = val_index(fe, v, e->span, what);
    fe->in_index = in_index;
    return r;
}

Value *expr_index(Fe *fe, const Expr *e) {
    return expr_integer(fe, e, "an index");
}

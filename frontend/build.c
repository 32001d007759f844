/* Building elementwise ops: operands are brought to one type, constants are folded, axes united.
 *
 * Input: Vals that are not poison. Output: Vals; literals only from literals. Every float add, sub
 * and mul may contract into a fused multiply-add, as the language allows.
 */
#include "frontend/fe.h"
#include "lang/base/numeric.h"

#include <math.h>

const char *hint_take(Fe *fe) {
    const char *hint = fe->hint;
    fe->hint = NULL;
    return hint;
}

static bool fold_int(OpKind op, DType type, int64_t a, int64_t b, int64_t *out) {
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    bool divides = b != 0 && !(b == -1 && a == INT64_MIN) && type != DT_U64;
    int64_t q = divides ? a / b : 0, r = divides ? a % b : 0;
    switch ((int)op) {
    case OP_ADD:
        *out = (int64_t)(ua + ub);
        break;
    case OP_SUB:
        *out = (int64_t)(ua - ub);
        break;
    case OP_MUL:
        *out = (int64_t)(ua * ub);
        break;
    case OP_DIV:
        *out = q;
        break;
    case OP_REM:
        *out = r;
        break;
    case OP_CDIV:
        *out = q + (r != 0 && (r < 0) == (b < 0));
        break;
    case OP_FLOORDIV:
        *out = q - (r != 0 && (r < 0) != (b < 0));
        break;
    case OP_MOD:
        *out = r != 0 && (r < 0) != (b < 0) ? r + b : r;
        break;
    case OP_MIN:
        *out = a < b ? a : b;
        break;
    case OP_MAX:
        *out = a > b ? a : b;
        break;
    case OP_AND:
        *out = a & b;
        break;
    case OP_OR:
        *out = a | b;
        break;
    case OP_XOR:
        *out = a ^ b;
        break;
    case OP_SHL:
        *out = b >= 0 && b < 64 ? (int64_t)(ua << b) : 0;
        break;
    case OP_SHR:
        *out = a >> (b >= 0 && b < 64 ? b : 63);
        divides = type != DT_U64 && type != DT_U32;
        break;
    default:
        return false;
    }
    bool needs_division =
        op == OP_DIV || op == OP_REM || op == OP_CDIV || op == OP_FLOORDIV || op == OP_MOD;
    if ((needs_division || op == OP_SHR) && !divides)
        return false;
    *out = numeric_wrap(type, *out);
    return true;
}

static bool fold_float(OpKind op, double a, double b, double *out) {
    switch ((int)op) {
    case OP_ADD:
        *out = a + b;
        return true;
    case OP_SUB:
        *out = a - b;
        return true;
    case OP_MUL:
        *out = a * b;
        return true;
    case OP_DIV:
        *out = a / b;
        return true;
    default:
        return false;
    }
}

/* Whether a constant sum, difference or product of a signed type leaves it. */
static bool overflows(OpKind op, DType type, int64_t a, int64_t b) {
    int64_t exact;
    bool over = op == OP_ADD   ? __builtin_add_overflow(a, b, &exact)
                : op == OP_SUB ? __builtin_sub_overflow(a, b, &exact)
                : op == OP_MUL ? __builtin_mul_overflow(a, b, &exact)
                               : (exact = 0, false);
    return dtype_is_signed(type) && (over || numeric_wrap(type, exact) != exact);
}

static void report_overflow(Fe *fe, DType type, Span span) {
    if (fe->in_where) {
        fe_error(fe, DIAG_WHERE, span, "`%s` leaves the range of %s", span_text(fe, span),
                 dtype_name(type));
        return;
    }
    Diag *d = fe_error(fe, DIAG_OVERFLOW, span, "this constant leaves the range of %s and wraps",
                       dtype_name(type));
    if (!span_is_none(fe->sides[0]) && dtype_bits(type) < 64)
        diag_hint(fe->diags, d, "compute in a wider type: `%s`",
                  cast_text(fe, fe->sides[0], DT_I64));
}

static void warn_overflow(Fe *fe, OpKind op, DType type, Val a, Val b, Span span) {
    int64_t x, y;
    if (val_const_int(a, &x) && val_const_int(b, &y) && dtype_is_integer(type) &&
        overflows(op, type, x, y))
        report_overflow(fe, type, span);
}

static bool fold_literals(OpKind op, Val x, Val y, Val *out) {
    if (x.is_float || y.is_float) {
        double r;
        if (!fold_float(op, x.is_float ? x.f : (double)x.i, y.is_float ? y.f : (double)y.i, &r))
            return false;
        *out = val_float(r);
        return true;
    }
    int64_t r;
    if (!fold_int(op, DT_I64, x.i, y.i, &r))
        return false;
    *out = val_int(r);
    return true;
}

static bool fold_constants(Fe *fe, OpKind op, DType type, const Value *a, const Value *b,
                           Value **out) {
    if (a->kind != VALUE_CONST || b->kind != VALUE_CONST)
        return false;
    if (dtype_is_float(type)) {
        double r;
        if (!fold_float(op, a->u.f, b->u.f, &r))
            return false;
        *out = ir_float(fe->kernel, type, numeric_round(type, r));
        return true;
    }
    int64_t r;
    if (!fold_int(op, type, a->u.i, b->u.i, &r))
        return false;
    *out = type == DT_BOOL ? ir_bool(fe->kernel, r != 0) : ir_int(fe->kernel, type, r);
    return true;
}

/* x*1, x+0, x-0, x/1 on integers, and the same from the left. */
static Value *neutral(OpKind op, Value *a, Value *b) {
    if (!dtype_is_integer(a->type.dtype))
        return NULL;
    bool one = op == OP_MUL || op == OP_DIV, zero = op == OP_ADD || op == OP_SUB;
    if ((one && value_is_int(b, 1)) || (zero && value_is_int(b, 0)))
        return a;
    if ((op == OP_MUL && value_is_int(a, 1)) || (op == OP_ADD && value_is_int(a, 0)))
        return b;
    return NULL;
}

Val build_unary(Fe *fe, OpKind op, Val x, DType type, Span span) {
    if (val_is_number(x) && op == OP_NEG)
        return x.is_float ? val_float(-x.f) : val_int((int64_t)(0 - (uint64_t)x.i));
    const char *hint = hint_take(fe);
    AxisSet axes = x.axes;
    Value *v = val_cast(fe, x, type, span);
    if (v->kind == VALUE_CONST && op == OP_NEG)
        return val_with_axes(
            dtype_is_float(type)
                ? ir_float(fe->kernel, type, -v->u.f)
                : ir_int(fe->kernel, type, numeric_wrap(type, (int64_t)(0 - (uint64_t)v->u.i))),
            axes);
    if (v->kind == VALUE_CONST && op == OP_NOT)
        return val_with_axes(type == DT_BOOL
                                 ? ir_bool(fe->kernel, !v->u.i)
                                 : ir_int(fe->kernel, type, numeric_wrap(type, ~v->u.i)),
                             axes);
    fe->b.span = span;
    return val_with_axes(ir_unary(&fe->b, op, v, hint), axes);
}

Val build_binary(Fe *fe, OpKind op, Val x, Val y, DType type, Span span) {
    Val folded;
    warn_overflow(fe, op, type, x, y, span);
    if (val_is_number(x) && val_is_number(y)) {
        if (fold_literals(op, x, y, &folded))
            return folded;
    }
    const char *hint = hint_take(fe);
    AxisSet axes;
    if (!val_union(fe, x, y, span, &axes))
        return val_poison();
    Value *a = val_cast(fe, x, type, span);
    bool shifts = op == OP_SHL || op == OP_SHR;
    Value *b = shifts && y.kind == VAL_VALUE ? y.v : val_cast(fe, y, type, span);
    Value *r;
    if (fold_constants(fe, op, type, a, b, &r))
        return val_with_axes(r, axes);
    r = neutral(op, a, b);
    if (r)
        return val_with_axes(r, axes);
    fe->b.span = span;
    r = ir_binary(&fe->b, op, a, b, hint);
    if (dtype_is_float(type) && (op == OP_ADD || op == OP_SUB || op == OP_MUL))
        op_set_int(fe->kernel, r->def, ATTR_contract, 1);
    return val_with_axes(r, axes);
}

static bool compare(CmpKind kind, int order, bool unordered) {
    switch (kind) {
    case CMP_EQ:
        return !unordered && order == 0;
    case CMP_NE:
        return unordered || order != 0;
    case CMP_LT:
        return !unordered && order < 0;
    case CMP_LE:
        return !unordered && order <= 0;
    case CMP_GT:
        return !unordered && order > 0;
    case CMP_GE:
        return !unordered && order >= 0;
    case CMP_COUNT:
        break;
    }
    return false;
}

Val build_cmp(Fe *fe, CmpKind kind, Val x, Val y, DType type, Span span) {
    const char *hint = hint_take(fe);
    AxisSet axes;
    if (!val_union(fe, x, y, span, &axes))
        return val_poison();
    Value *a = val_cast(fe, x, type, span), *b = val_cast(fe, y, type, span);
    if (a->kind == VALUE_CONST && b->kind == VALUE_CONST && type != DT_U64) {
        int order;
        bool unordered = false;
        if (dtype_is_float(type)) {
            unordered = isnan(a->u.f) || isnan(b->u.f);
            order = (a->u.f > b->u.f) - (a->u.f < b->u.f);
        } else {
            order = (a->u.i > b->u.i) - (a->u.i < b->u.i);
        }
        return val_with_axes(ir_bool(fe->kernel, compare(kind, order, unordered)), axes);
    }
    fe->b.span = span;
    return val_with_axes(ir_cmp(&fe->b, kind, a, b, hint), axes);
}

Val build_select(Fe *fe, Val c, Val x, Val y, DType type, Span span) {
    const char *hint = hint_take(fe);
    AxisSet axes, both;
    if (!val_union(fe, x, y, span, &both) ||
        !val_union(fe, c, (Val){.kind = VAL_VALUE, .axes = both}, span, &axes))
        return val_poison();
    Value *a = val_cast(fe, x, type, span), *b = val_cast(fe, y, type, span);
    bool known;
    if (val_const_bool(c, &known))
        return val_with_axes(known ? a : b, axes);
    fe->b.span = span;
    return val_with_axes(ir_select(&fe->b, c.v, a, b, hint), axes);
}

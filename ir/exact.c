// Exact values of scalars: the meaning of eval_scalar_op with overflow and division by zero found.
#include "ir/exact.h"

#include "ir/eval.h"

enum { DEPTH_MAX = 64, STEPS_MAX = 4096 };

typedef struct Exact {
    ExactKnown known;
    void *user;
    int steps;
} Exact;

bool exact_is_fault(ExactKind kind) {
    return kind == EXACT_OVERFLOW || kind == EXACT_DIVISION;
}

const char *exact_text(ExactKind kind) {
    return kind == EXACT_DIVISION ? "divides by zero" : "leaves 64 bits";
}

static bool divides(const Op *op) {
    return op->kind == OP_DIV || op->kind == OP_REM || op->kind == OP_CDIV ||
           op->kind == OP_FLOORDIV || op->kind == OP_MOD;
}

static bool overflows(const Op *op, const Scalar *in) {
    DType t = in[0].dtype, to = op->res[0]->type.dtype;
    if (op->kind == OP_CAST)
        return t == DT_U64 && dtype_bits(to) == 64 && dtype_is_signed(to) && in[0].u.i < 0;
    if (!dtype_is_integer(t) || !dtype_is_signed(t))
        return false;
    int64_t a = in[0].u.i, b = op->nin > 1 ? in[1].u.i : 0, exact = 0;
    bool over = false;
    switch ((int)op->kind) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, &exact);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &exact);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, &exact);
        break;
    case OP_NEG:
        over = __builtin_sub_overflow(0, a, &exact);
        break;
    case OP_ABS:
        over = a < 0 && __builtin_sub_overflow(0, a, &exact);
        break;
    case OP_SHL:
        return b >= 0 && b < 63 ? a > INT64_MAX >> b || a < INT64_MIN >> b : a != 0;
    default:
        return divides(op) && a == INT64_MIN && b == -1;
    }
    return over || numeric_wrap(t, exact) != exact;
}

static ExactKind exact_of(Exact *e, const Value *v, int depth, Scalar *out);

// `&&`, `||`: one side may decide alone.
static ExactKind exact_logical(Exact *e, const Op *op, int depth, Scalar *out) {
    Scalar in[2];
    ExactKind kind[2];
    for (int i = 0; i < 2; i++) {
        kind[i] = exact_of(e, op->in[i], depth + 1, &in[i]);
        if (kind[i] == EXACT_VALUE && in[i].u.i == (op->kind == OP_OR)) {
            out->u.i = in[i].u.i;
            return EXACT_VALUE;
        }
    }
    for (int i = 0; i < 2; i++)
        if (kind[i] == EXACT_UNKNOWN)
            return EXACT_UNKNOWN;
    for (int i = 0; i < 2; i++)
        if (kind[i] != EXACT_VALUE)
            return kind[i];
    out->u.i = op->kind == OP_AND;
    return EXACT_VALUE;
}

static ExactKind exact_select(Exact *e, const Op *op, int depth, Scalar *out) {
    Scalar test;
    ExactKind kind = exact_of(e, op->in[0], depth + 1, &test);
    return kind == EXACT_VALUE ? exact_of(e, op->in[test.u.i ? 1 : 2], depth + 1, out) : kind;
}

static ExactKind exact_op(Exact *e, const Op *op, int depth, Scalar *out) {
    Scalar in[3];
    bool unknown = false;
    if (op->nres != 1 || op->nin < 1 || op->nin > 3 || !op_has(op->kind, TRAIT_ELEMENTWISE))
        return EXACT_UNKNOWN;
    if (op->kind == OP_SELECT)
        return exact_select(e, op, depth, out);
    if ((op->kind == OP_AND || op->kind == OP_OR) && op->res[0]->type.dtype == DT_BOOL)
        return exact_logical(e, op, depth, out);
    for (int i = 0; i < op->nin; i++) {
        ExactKind kind = exact_of(e, op->in[i], depth + 1, &in[i]);
        if (exact_is_fault(kind))
            return kind;
        unknown |= kind == EXACT_UNKNOWN;
        if (i == 1 && kind == EXACT_VALUE && divides(op) && dtype_is_integer(in[1].dtype) &&
            in[1].u.i == 0)
            return EXACT_DIVISION;
    }
    if (unknown)
        return EXACT_UNKNOWN;
    if (overflows(op, in))
        return EXACT_OVERFLOW;
    return eval_scalar_op(op, in, out) ? EXACT_VALUE : EXACT_UNKNOWN;
}

static ExactKind exact_of(Exact *e, const Value *v, int depth, Scalar *out) {
    *out = (Scalar){.dtype = v->type.dtype};
    if (v->type.axes.n || depth > DEPTH_MAX || ++e->steps > STEPS_MAX)
        return EXACT_UNKNOWN;
    bool is_fact = v->kind == VALUE_OP && (v->def->kind == OP_PRESENT ||
                                           v->def->kind == OP_EXTENT || v->def->kind == OP_STRIDE);
    if (v->kind == VALUE_PARAM || is_fact)
        return e->known && e->known(e->user, v, out) ? EXACT_VALUE : EXACT_UNKNOWN;
    if (v->kind == VALUE_OP)
        return exact_op(e, v->def, depth, out);
    if (v->kind != VALUE_CONST)
        return EXACT_UNKNOWN;
    if (dtype_is_float(v->type.dtype))
        out->u.f = v->u.f;
    else
        out->u.i = v->u.i;
    return EXACT_VALUE;
}

ExactKind value_exact(const Value *v, ExactKnown known, void *user, Scalar *out) {
    Exact e = {.known = known, .user = user};
    return exact_of(&e, v, 0, out);
}

static bool may_fault(const Value *v, int depth, int *steps) {
    if (v->kind != VALUE_OP)
        return false;
    const Op *op = v->def;
    if (depth > DEPTH_MAX || ++*steps > STEPS_MAX || op->kind == OP_ADD || op->kind == OP_SUB ||
        op->kind == OP_MUL || op->kind == OP_NEG || op->kind == OP_ABS || op->kind == OP_SHL ||
        (op->kind == OP_CAST && op->in[0]->type.dtype == DT_U64) ||
        (divides(op) && (op->in[1]->kind != VALUE_CONST || value_is_int(op->in[1], 0) ||
                         value_is_int(op->in[1], -1))))
        return true;
    for (int i = 0; i < op->nin; i++)
        if (may_fault(op->in[i], depth + 1, steps))
            return true;
    return false;
}

bool value_may_fault(const Value *v) {
    int steps = 0;
    return may_fault(v, 0, &steps);
}

// Values of expressions over what is bound, straight from the IR: the slow way, for dims that are
// defined by an expression and for the shapes of outputs that do not exist yet.
#include "ir/exact.h"
#include "runtime/bind.h"
#include "runtime/error.h"

enum { EQUATION_DEPTH = 12 };

static bool evaluate_param(const Frame *f, const Value *v, Scalar *out) {
    const Instance *k = f->instance;
    for (int i = 0; i < k->ndim; i++) {
        if (k->dim[i].value == v) {
            out->u.i = f->dim[i];
            return f->dim[i] >= 0;
        }
    }
    for (int i = 0; i < k->nparam; i++) {
        const PlanParam *p = &k->param[i];
        if (p->value != v)
            continue;
        if (dtype_is_float(p->dtype))
            out->u.f = f->scalar[i].f;
        else
            out->u.i = f->scalar[i].i;
        return f->arg[i] != NULL || p->shown.has_default;
    }
    return false;
}

static bool evaluate_memory(const Frame *f, const Op *op, Scalar *out) {
    const Instance *k = f->instance;
    int at = 0;
    while (at < k->nparam && k->param[at].mem != op->mem[0].mem)
        at++;
    if (at == k->nparam || (!f->arg[at] && !k->param[at].shown.optional))
        return false;
    const TensorBind *t = &f->tensor[at];
    int64_t d = op->kind == OP_PRESENT ? 0 : op_attr_int(op, ATTR_dim);
    if (d < 0 || d >= FUSE_RT_MAX_RANK)
        return false;
    out->u.i = op->kind == OP_PRESENT  ? t->present
               : op->kind == OP_EXTENT ? t->shape[d]
                                       : t->stride[d];
    return true;
}

static bool known(void *user, const Value *v, Scalar *out) {
    const Frame *f = user;
    return v->kind == VALUE_PARAM ? evaluate_param(f, v, out) : evaluate_memory(f, v->def, out);
}

static ExactKind exact(const Frame *f, const Value *v, Scalar *out) {
    return value_exact(v, known, (void *)(uintptr_t)f, out);
}

bool bind_evaluate(const Frame *f, const Value *v, int64_t *out) {
    Scalar s;
    if (dtype_is_float(v->type.dtype) || exact(f, v, &s) != EXACT_VALUE)
        return false;
    *out = s.u.i;
    return true;
}

FuseRtStatus bind_conditions(const Frame *f) {
    const Instance *k = f->instance;
    for (int i = 0; i < k->ncondition; i++) {
        Scalar s;
        ExactKind kind = exact(f, k->condition[i].value, &s);
        if (exact_is_fault(kind))
            return rt_fail(FUSE_RT_INVALID_ARGUMENT, "%s: with these arguments `%s` %s", k->name,
                           k->condition[i].text, exact_text(kind));
    }
    return FUSE_RT_OK;
}

// --- equations ---

// factor * dim + constant; dim -1: a number.
typedef struct Linear {
    int dim;
    int64_t factor, constant;
} Linear;

static bool linear_of(const Frame *f, const Value *v, int depth, Linear *out);

// a + sign * b
static bool linear_sum(const Linear *a, const Linear *b, int64_t sign, Linear *out) {
    if (a->dim >= 0 && b->dim >= 0 && a->dim != b->dim)
        return false;
    int64_t factor, constant;
    bool wrong = __builtin_mul_overflow(b->factor, sign, &factor) |
                 __builtin_mul_overflow(b->constant, sign, &constant);
    out->dim = a->dim >= 0 ? a->dim : b->dim;
    return !(wrong | __builtin_add_overflow(a->factor, factor, &out->factor) |
             __builtin_add_overflow(a->constant, constant, &out->constant));
}

static bool linear_product(const Linear *a, const Linear *b, Linear *out) {
    if (a->dim >= 0 && b->dim >= 0)
        return false;
    const Linear *x = a->dim >= 0 ? a : b, *number = x == a ? b : a;
    out->dim = x->dim;
    return !(__builtin_mul_overflow(x->factor, number->constant, &out->factor) |
             __builtin_mul_overflow(x->constant, number->constant, &out->constant));
}

static bool linear_op(const Frame *f, const Op *op, int depth, Linear *out) {
    bool sum = op->kind == OP_ADD || op->kind == OP_SUB;
    Linear a, b;
    if (!(sum || op->kind == OP_MUL) || !linear_of(f, op->in[0], depth + 1, &a) ||
        !linear_of(f, op->in[1], depth + 1, &b))
        return false;
    return sum ? linear_sum(&a, &b, op->kind == OP_ADD ? 1 : -1, out) : linear_product(&a, &b, out);
}

static bool linear_of(const Frame *f, const Value *v, int depth, Linear *out) {
    *out = (Linear){.dim = -1};
    if (bind_evaluate(f, v, &out->constant))
        return true;
    for (int i = 0; i < f->instance->ndim; i++) {
        if (f->instance->dim[i].value != v)
            continue;
        *out = (Linear){.dim = i, .factor = 1};
        return true;
    }
    return v->kind == VALUE_OP && depth < EQUATION_DEPTH && linear_op(f, v->def, depth, out);
}

Solution bind_solve(const Frame *f, const Equation *e, int *dim, int64_t *value) {
    Linear left, right, zero;
    if (!linear_of(f, e->left, 0, &left) || !linear_of(f, e->right, 0, &right) ||
        !linear_sum(&left, &right, -1, &zero) || zero.dim < 0 || zero.factor == 0 ||
        zero.constant == INT64_MIN)
        return SOLUTION_UNKNOWN;
    bool exact = zero.factor == -1 || zero.constant % zero.factor == 0;
    *dim = zero.dim;
    *value = exact ? -zero.constant / zero.factor : -1;
    return *value >= 0 ? SOLUTION_FOUND : SOLUTION_NONE;
}

// --deterministic: finds atomics and scatters whose result depends on who comes first.
//
// Any order is the same for integer sums, bit operations, minima and maxima, as long as nobody
// looks at the tensor in between, and for a scatter where all write one value.
#include "ir/deterministic.h"

// The outermost `parallel` around an op: its iterations may be in any order. Else the op.
static const Op *nest_of(const Op *op) {
    const Op *nest = op;
    for (const Op *at = op; at; at = at->parent->owner)
        if (at->kind == OP_PARALLEL || at->kind == OP_LAUNCH)
            nest = at;
    return nest;
}

// Whether the order of two accesses of one tensor makes no difference.
static bool commutes(const Op *a, const Op *b) {
    if (a->kind == OP_ATOMIC)
        return b->kind == OP_ATOMIC && a->sub == b->sub;
    bool stores = b->kind == OP_SCATTER || b->kind == OP_STORE;
    return stores && op_store_value(a) == op_store_value(b);
}

// An access in `root` of the op's tensor that does not commute with it.
static bool meets_other(const Op *root, const Op *op) {
    bool accesses = op_has(root->kind, TRAIT_READS | TRAIT_WRITES);
    for (int i = 0; i < root->nmem && accesses; i++)
        if (root->mem[i].mem == op->mem[0].mem && !commutes(op, root))
            return true;
    for (int i = 0; i < root->nregion; i++)
        for (const Op *at = root->region[i]->first; at; at = at->next)
            if (meets_other(at, op))
                return true;
    return false;
}

static bool is_float_sum(const Op *op) {
    return op->kind == OP_ATOMIC && op->sub == ATOMIC_ADD && dtype_is_float(op->mem[0].mem->dtype);
}

static const char *reason(const Op *op) {
    if (op->kind == OP_ATOMIC) {
        if (op->nres)
            return "the old value tells which atomics came before";
        if (op->sub == ATOMIC_XCHG)
            return "the last one stays";
        if (op->sub == ATOMIC_CAS)
            return "the first one decides what the others find";
        if (is_float_sum(op))
            return "each order of a sum of floats rounds differently";
    } else {
        const Value *v = op_store_value(op);
        if (v->kind != VALUE_CONST && v->kind != VALUE_PARAM)
            return "any one of the elements that meet stays";
    }
    if (meets_other(nest_of(op), op))
        return "other accesses of the nest may come before or after it";
    return NULL;
}

static void check_region(const Region *r, Diags *diags, bool *ok) {
    for (const Op *op = r->first; op; op = op->next) {
        bool watched = op->kind == OP_ATOMIC || op->kind == OP_SCATTER;
        const char *why = watched ? reason(op) : NULL;
        if (why) {
            Diag *d =
                diag_add(diags, DIAG_NOT_DETERMINISTIC, op->span,
                         "this %s to `%s` depends on the order of iterations: %s",
                         op->kind == OP_ATOMIC ? "atomic" : "scatter", op->mem[0].mem->name, why);
            if (is_float_sum(op) && !op->nres)
                diag_hint(diags, d, "sum along an axis with `sum` or `dot`, or count in integers");
            *ok = false;
        }
        for (int i = 0; i < op->nregion; i++)
            check_region(op->region[i], diags, ok);
    }
}

bool check_deterministic(const Module *m, Diags *diags) {
    bool ok = true;
    for (int i = 0; i < m->nkernel; i++)
        check_region(m->kernel[i]->body, diags, &ok);
    return ok;
}

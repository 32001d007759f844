// Attributes of ops: a short array in the op, in no order; the row gives the printing order.
//
// Invariant: an attribute that has its default value is not stored.
#include "ir/ir_impl.h"

#include <string.h>

const Attr *op_attr(const Op *op, AttrId id) {
    for (int i = 0; i < op->nattr; i++)
        if (op->attr[i].id == id)
            return &op->attr[i];
    return NULL;
}

int64_t op_attr_int(const Op *op, AttrId id) {
    const Attr *a = op_attr(op, id);
    return a ? a->i : attr_default(id);
}

Str op_attr_str(const Op *op, AttrId id) {
    const Attr *a = op_attr(op, id);
    return a ? a->s : NULL;
}

AxisSet op_attr_axes(const Op *op, AttrId id) {
    AxisSet s = {0};
    const Attr *a = op_attr(op, id);
    for (int i = 0; a && i < a->n; i++)
        axes_add(&s, a->axes[i]->id);
    return s;
}

bool op_attr_has_int(const Op *op, AttrId id, int64_t i) {
    const Attr *a = op_attr(op, id);
    for (int at = 0; a && at < a->n; at++)
        if (a->ints[at] == i)
            return true;
    return false;
}

void op_clear_attr(Op *op, AttrId id) {
    for (int i = 0; i < op->nattr; i++) {
        if (op->attr[i].id == id) {
            op->attr[i] = op->attr[--op->nattr];
            return;
        }
    }
}

// The op's entry, made when absent. Arrays are never shared between ops.
static Attr *attr_entry(Kernel *k, Op *op, AttrId id) {
    for (int i = 0; i < op->nattr; i++)
        if (op->attr[i].id == id)
            return &op->attr[i];
    Attr *grown = ARENA_ARRAY(kernel_arena(k), Attr, (size_t)op->nattr + 1);
    if (op->nattr)
        memcpy(grown, op->attr, op->nattr * sizeof *grown);
    op->attr = grown;
    Attr *a = &op->attr[op->nattr++];
    a->id = id;
    return a;
}

void op_set_int(Kernel *k, Op *op, AttrId id, int64_t i) {
    if (i == attr_default(id))
        op_clear_attr(op, id);
    else
        attr_entry(k, op, id)->i = i;
}

void op_set_str(Kernel *k, Op *op, AttrId id, const char *s) {
    if (s)
        attr_entry(k, op, id)->s = intern_cstr(k->module->interner, s);
    else
        op_clear_attr(op, id);
}

void op_set_ints(Kernel *k, Op *op, AttrId id, int n, const int64_t *ints) {
    if (n == 0) {
        op_clear_attr(op, id);
        return;
    }
    Attr *a = attr_entry(k, op, id);
    a->n = (uint16_t)n;
    a->ints = arena_copy(kernel_arena(k), ints, (size_t)n * sizeof *ints);
}

void op_set_names(Kernel *k, Op *op, AttrId id, int n, const Str *names) {
    if (n == 0) {
        op_clear_attr(op, id);
        return;
    }
    Attr *a = attr_entry(k, op, id);
    a->n = (uint16_t)n;
    a->names = ARENA_ARRAY(kernel_arena(k), Str, (size_t)n);
    for (int i = 0; i < n; i++)
        a->names[i] = intern_cstr(k->module->interner, names[i]);
}

void op_set_axes(Kernel *k, Op *op, AttrId id, int n, Axis *const *axes) {
    if (n == 0) {
        op_clear_attr(op, id);
        return;
    }
    Attr *a = attr_entry(k, op, id);
    a->n = (uint16_t)n;
    a->axes = arena_copy(kernel_arena(k), axes, (size_t)n * sizeof *axes);
}

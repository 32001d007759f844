// Two modules that say the same: ops, values, types and attributes compared one by one.
#ifndef FUSE_TESTS_IR_EQUAL_H
#define FUSE_TESTS_IR_EQUAL_H

#include <string.h>

#include "ir/ir_impl.h"

typedef struct IrPair {
    Arena *arena;
    const Kernel *a, *b;
    AxisOrder order_a, order_b;
    const Op *op; // where they differ
} IrPair;

static inline bool equal_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static inline bool equal_axis(const Axis *a, const Axis *b) {
    return a == b || (a && b && equal_text(a->name, b->name));
}

static inline bool equal_layout(const IrPair *p, const Layout *a, const Layout *b) {
    if (!a || !b)
        return a == b;
    return equal_text(layout_text(p->arena, p->a, &p->order_a, a),
                      layout_text(p->arena, p->b, &p->order_b, b));
}

static inline bool equal_axes(const IrPair *p, AxisSet a, AxisSet b) {
    bool same = a.n == b.n;
    for (int i = 0; i < a.n && same; i++) {
        bool found = false;
        for (int j = 0; j < b.n; j++)
            found |= equal_axis(p->a->axis[a.id[i]], p->b->axis[b.id[j]]);
        same = found;
    }
    return same;
}

static inline bool equal_type(const IrPair *p, Type a, Type b) {
    return a.dtype == b.dtype && a.is_async == b.is_async && equal_axes(p, a.axes, b.axes) &&
           equal_layout(p, a.layout, b.layout);
}

static inline bool equal_value(const IrPair *p, const Value *a, const Value *b) {
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || !equal_type(p, a->type, b->type))
        return false;
    if (a->kind == VALUE_CONST)
        return memcmp(&a->u, &b->u, sizeof a->u) == 0;
    return a->kind == VALUE_IOTA ? equal_axis(a->axis, b->axis) : equal_text(a->name, b->name);
}

static inline bool equal_memref(const IrPair *p, const MemRef *a, const MemRef *b) {
    bool same = equal_text(a->mem->name, b->mem->name) && a->nidx == b->nidx && a->pos == b->pos &&
                a->nrename == b->nrename && (a->nidx == 0 || a->first == b->first);
    for (int i = 0; i < a->nrename && same; i++)
        same = equal_axis(p->a->axis[a->rename[i].from], p->b->axis[b->rename[i].from]) &&
               equal_axis(p->a->axis[a->rename[i].to], p->b->axis[b->rename[i].to]);
    return same;
}

static inline bool equal_attr(const Attr *a, const Attr *b) {
    if (!a || !b)
        return a == b;
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++) {
        if (attr_type(a->id) == ATTR_TYPE_INTS)
            same = a->ints[i] == b->ints[i];
        else if (attr_type(a->id) == ATTR_TYPE_NAMES)
            same = equal_text(a->names[i], b->names[i]);
        else
            same = equal_axis(a->axes[i], b->axes[i]);
    }
    return same && a->i == b->i && equal_text(a->s, b->s);
}

static inline bool equal_mem(const IrPair *p, const Mem *a, const Mem *b) {
    if (!a || !b)
        return a == b;
    bool same = a->kind == b->kind && a->space == b->space && equal_text(a->name, b->name) &&
                a->dtype == b->dtype && a->rank == b->rank && a->mode == b->mode &&
                a->opt == b->opt && a->align == b->align && a->inner == b->inner &&
                a->sdiv == b->sdiv && a->fits32 == b->fits32 && a->absent == b->absent &&
                equal_axes(p, a->axes, b->axes) && equal_layout(p, a->layout, b->layout) &&
                a->nbufs == b->nbufs;
    for (int i = 0; i < a->rank && same; i++)
        same = equal_value(p, a->dim[i], b->dim[i]);
    for (int i = 0; i < a->nbufs && same; i++)
        same = equal_text(a->bufs[i]->name, b->bufs[i]->name);
    return same;
}

static inline bool equal_declared(const IrPair *p, const Axis *a, const Axis *b) {
    return equal_axis(a, b) && equal_axis(a->of, b->of) && equal_axis(a->like, b->like) &&
           equal_value(p, a->lo, b->lo) && equal_value(p, a->hi, b->hi) && a->size == b->size;
}

static inline bool equal_region(IrPair *p, const Region *a, const Region *b);

static inline bool equal_op(IrPair *p, const Op *a, const Op *b) {
    p->op = a;
    if (a->kind != b->kind || a->sub != b->sub || a->has_else != b->has_else ||
        a->has_stop != b->has_stop || a->nin != b->nin || a->nres != b->nres ||
        a->naxes != b->naxes || a->nmem != b->nmem || a->nbinders != b->nbinders ||
        a->ncarry != b->ncarry || a->nattr != b->nattr || a->nregion != b->nregion)
        return false;
    bool same = equal_mem(p, a->def_mem, b->def_mem);
    for (int i = 0; i < a->nin; i++)
        same &= equal_value(p, a->in[i], b->in[i]);
    for (int i = 0; i < a->nres; i++)
        same &= equal_value(p, a->res[i], b->res[i]);
    for (int i = 0; i < a->naxes; i++)
        same &= a->kind == OP_AXIS ? equal_declared(p, a->axes[i], b->axes[i])
                                   : equal_axis(a->axes[i], b->axes[i]);
    for (int i = 0; i < a->nmem; i++)
        same &= equal_memref(p, &a->mem[i], &b->mem[i]);
    for (int i = 0; i < a->nbinders; i++)
        same &= equal_axis(a->binder[i].axis, b->binder[i].axis) &&
                a->binder[i].first == b->binder[i].first &&
                a->binder[i].has_step == b->binder[i].has_step &&
                equal_value(p, a->binder[i].var, b->binder[i].var);
    for (int i = 0; i < ATTR_COUNT; i++)
        same &= equal_attr(op_attr(a, (AttrId)i), op_attr(b, (AttrId)i));
    for (int i = 0; i < a->nregion && same; i++)
        same = equal_region(p, a->region[i], b->region[i]);
    return same;
}

static inline bool equal_region(IrPair *p, const Region *a, const Region *b) {
    bool same = a->narg == b->narg;
    for (int i = 0; i < a->narg && same; i++)
        same = equal_value(p, a->arg[i], b->arg[i]);
    const Op *x = a->first, *y = b->first;
    for (; x && y && same; x = x->next, y = y->next)
        same = equal_op(p, x, y);
    return same && !x && !y;
}

// The kernels `a` and `b` are equal but for names of kernels; *where: an op in which they differ.
static inline bool equal_kernel(Arena *arena, const Kernel *a, const Kernel *b, const Op **where) {
    IrPair p = {.arena = arena, .a = a, .b = b};
    p.order_a = axis_order(arena, a);
    p.order_b = axis_order(arena, b);
    bool same = a->nparam == b->nparam;
    for (int i = 0; i < a->nparam && same; i++) {
        const Param *x = &a->param[i], *y = &b->param[i];
        same = x->kind == y->kind && equal_text(x->name, y->name) && equal_axis(x->axis, y->axis) &&
               equal_value(&p, x->value, y->value) && equal_mem(&p, x->mem, y->mem) &&
               equal_value(&p, x->dflt, y->dflt);
    }
    same = same && equal_region(&p, a->body, b->body);
    *where = p.op;
    return same;
}

#endif

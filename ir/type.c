// Sets of axes and types: value types without allocation.
//
// Invariant: ids of a set are sorted and unique; unused slots are zero.
#include "ir/ir.h"

#include <string.h>

AxisSet axes_none(void) {
    return (AxisSet){0};
}

AxisSet axes_of(const Axis *axis) {
    return (AxisSet){.n = 1, .id = {axis->id}};
}

bool axes_has(AxisSet s, uint16_t id) {
    for (int i = 0; i < s.n; i++)
        if (s.id[i] == id)
            return true;
    return false;
}

bool axes_equal(AxisSet a, AxisSet b) {
    return a.n == b.n && memcmp(a.id, b.id, a.n * sizeof *a.id) == 0;
}

bool axes_subset(AxisSet inner, AxisSet outer) {
    for (int i = 0; i < inner.n; i++)
        if (!axes_has(outer, inner.id[i]))
            return false;
    return true;
}

bool axes_add(AxisSet *s, uint16_t id) {
    if (axes_has(*s, id))
        return true;
    if (s->n == AXES_MAX)
        return false;
    int at = s->n;
    for (; at > 0 && s->id[at - 1] > id; at--)
        s->id[at] = s->id[at - 1];
    s->id[at] = id;
    s->n++;
    return true;
}

bool axes_union(AxisSet a, AxisSet b, AxisSet *out) {
    AxisSet r = a;
    for (int i = 0; i < b.n; i++) {
        if (!axes_add(&r, b.id[i])) {
            *out = a;
            return false;
        }
    }
    *out = r;
    return true;
}

AxisSet axes_minus(AxisSet a, AxisSet b) {
    AxisSet r = {0};
    for (int i = 0; i < a.n; i++)
        if (!axes_has(b, a.id[i]))
            r.id[r.n++] = a.id[i];
    return r;
}

AxisSet axes_intersect(AxisSet a, AxisSet b) {
    AxisSet r = {0};
    for (int i = 0; i < a.n; i++)
        if (axes_has(b, a.id[i]))
            r.id[r.n++] = a.id[i];
    return r;
}

Type type_scalar(DType dtype) {
    return (Type){.dtype = dtype};
}

Type type_tile(DType dtype, AxisSet axes) {
    return (Type){.dtype = dtype, .axes = axes};
}

bool type_equal(Type a, Type b) {
    return a.dtype == b.dtype && a.is_async == b.is_async && axes_equal(a.axes, b.axes) &&
           a.layout == b.layout;
}

// Contractions: mma.sync fragments, or one multiply-add per element and k.
//
// Input: operands and accumulator in the unit's layouts (layout_mma_*, layout_fma_*). Output: the
// result's registers. The matrix number of a register follows from its coordinates at lane 0, warp
// 0: row, column, k and batch; the fragment's register from their low bits (PTX ISA, mma
// fragments). Invariant: k runs upwards for every element.
#include "backend/lower.h"

#include <string.h>

// Which registers hold a fragment: [outer][inner][batch] fragments of `size` registers.
typedef struct Fragments {
    int outer, inner, batch, size;
    int *reg; // register numbers, -1 = missing
} Fragments;

// A number from coordinates along axes, lowest bits first.
static uint32_t number_of(const Layout *layout, AxisSet axes, const uint16_t *order, int n,
                          uint32_t reg) {
    (void)axes;
    uint32_t x = 0, weight = 1;
    for (int i = 0; i < n; i++) {
        x += coord_register(layout, order[i], reg) * weight;
        weight *= layout_size(layout, order[i]);
    }
    return x;
}

typedef struct DotPlan {
    uint16_t rows[AXES_MAX], cols[AXES_MAX], ks[AXES_MAX], batch[AXES_MAX];
    int nrows, ncols, nks, nbatch;
} DotPlan;

static int attr_order(const Op *op, AttrId id, uint16_t *out) {
    const Attr *attr = op_attr(op, id);
    int n = attr ? attr->n : 0;
    for (int i = 0; i < n; i++)
        out[i] = attr->axes[i]->id;
    return n;
}

static bool in_list(const uint16_t *list, int n, uint16_t axis) {
    for (int i = 0; i < n; i++) {
        if (list[i] == axis)
            return true;
    }
    return false;
}

static DotPlan dot_plan(const Op *op) {
    DotPlan p = {0};
    p.nrows = attr_order(op, ATTR_rows, p.rows);
    p.ncols = attr_order(op, ATTR_cols, p.cols);
    for (int i = 0; i < op->naxes; i++)
        p.ks[p.nks++] = op->axes[i]->id;
    AxisSet all = op->res[0]->type.axes;
    for (int i = 0; i < all.n; i++) {
        if (!in_list(p.rows, p.nrows, all.id[i]) && !in_list(p.cols, p.ncols, all.id[i]))
            p.batch[p.nbatch++] = all.id[i];
    }
    return p;
}

static uint32_t span_of(const Layout *layout, const uint16_t *order, int n) {
    uint32_t x = 1;
    for (int i = 0; i < n; i++)
        x *= layout_size(layout, order[i]);
    return x;
}

// --- the fragment's register of an element ---

static uint32_t index_a(MmaKind kind, uint32_t row, uint32_t k) {
    uint32_t high = row >> 3 & 1;
    switch (kind) {
    case MMA_KIND_M16N8K16:
        return (k & 1) | high << 1 | (k >> 3 & 1) << 2;
    case MMA_KIND_M16N8K8:
        return (k & 1) | high << 1;
    case MMA_KIND_M16N8K8_TF32:
        return high | (k >> 2 & 1) << 1;
    case MMA_KIND_M16N8K32:
        return (k & 3) | high << 2 | (k >> 4 & 1) << 3;
    }
    return 0;
}

static uint32_t index_b(MmaKind kind, uint32_t k) {
    switch (kind) {
    case MMA_KIND_M16N8K16:
        return (k & 1) | (k >> 3 & 1) << 1;
    case MMA_KIND_M16N8K8:
        return k & 1;
    case MMA_KIND_M16N8K8_TF32:
        return k >> 2 & 1;
    case MMA_KIND_M16N8K32:
        return (k & 3) | (k >> 4 & 1) << 2;
    }
    return 0;
}

static uint32_t index_c(uint32_t row, uint32_t col) {
    return (row >> 3 & 1) << 1 | (col & 1);
}

static Fragments fragments_new(Lower *l, int outer, int inner, int batch, int size) {
    Fragments f = {.outer = outer, .inner = inner, .batch = batch, .size = size};
    int n = outer * inner * batch * size;
    f.reg = ARENA_ARRAY(l->arena, int, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        f.reg[i] = -1;
    return f;
}

static int *fragment_at(const Fragments *f, uint32_t outer, uint32_t inner, uint32_t batch) {
    return &f->reg[((outer * (uint32_t)f->inner + inner) * (uint32_t)f->batch + batch) *
                   (uint32_t)f->size];
}

enum { SIDE_A, SIDE_B, SIDE_C };

// Sorts the registers of an operand into fragments; missing ones stay -1 (other warps hold them).
static Fragments sort_registers(Lower *l, const DotPlan *p, MmaKind kind, int side,
                                const Layout *layout) {
    MmaShape shape = mma_shape(kind);
    uint32_t rows = span_of(layout, p->rows, p->nrows), cols = span_of(layout, p->cols, p->ncols);
    uint32_t ks = span_of(layout, p->ks, p->nks), batches = span_of(layout, p->batch, p->nbatch);
    uint32_t unit_k = (uint32_t)shape.k;
    int outer = (int)(side == SIDE_B ? (cols + 7) / 8 : (rows + 15) / 16);
    int inner = (int)(side == SIDE_C ? (cols + 7) / 8 : (ks + unit_k - 1) / unit_k);
    int size = side == SIDE_A ? shape.a : side == SIDE_B ? shape.b : shape.c;
    Fragments f = fragments_new(l, outer, inner, (int)batches, size);
    AxisSet none = axes_none();
    for (uint32_t r = 0; r < layout_registers(layout); r++) {
        uint32_t row = number_of(layout, none, p->rows, p->nrows, r);
        uint32_t col = number_of(layout, none, p->cols, p->ncols, r);
        uint32_t k = number_of(layout, none, p->ks, p->nks, r);
        uint32_t batch = number_of(layout, none, p->batch, p->nbatch, r);
        uint32_t at = side == SIDE_A   ? index_a(kind, row, k)
                      : side == SIDE_B ? index_b(kind, k)
                                       : index_c(row, col);
        uint32_t o = side == SIDE_B ? col / 8 : row / 16, i = side == SIDE_C ? col / 8 : k / unit_k;
        fragment_at(&f, o, i, batch)[at] = (int)r;
    }
    return f;
}

static bool gather(const int *reg, int n, const Lane *from, Lane *out) {
    for (int i = 0; i < n; i++) {
        if (reg[i] < 0)
            return false;
        out[i] = from[reg[i]];
    }
    return true;
}

static void tile_lanes(Lower *l, const Value *v, Type type, Lane *out) {
    LLVMValueRef *regs = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)type_registers(type));
    lower_flatten(l, v, type, regs);
    for (int r = 0; r < type_registers(type); r++)
        out[r].v = regs[r];
}

static Lane *operand_lanes(Lower *l, const Value *v) {
    Lane *out = ARENA_ARRAY(l->arena, Lane, (size_t)type_registers(v->type));
    tile_lanes(l, v, v->type, out);
    return out;
}

static void lower_mma(Lower *l, const Op *op, MmaKind kind) {
    Target *t = l->t;
    const Value *a = op->in[0], *b = op->in[1];
    Value *res = op->res[0];
    const Layout *layout = res->type.layout;
    if (!a->type.layout || !b->type.layout || !layout) {
        target_fail(t, "operands without layouts");
        return;
    }
    DotPlan p = dot_plan(op);
    Fragments fa = sort_registers(l, &p, kind, SIDE_A, a->type.layout);
    Fragments fb = sort_registers(l, &p, kind, SIDE_B, b->type.layout);
    Fragments fc = sort_registers(l, &p, kind, SIDE_C, layout);
    Lane *ra = operand_lanes(l, a), *rb = operand_lanes(l, b);
    Tile *tile = lower_result(l, res);
    Lane *acc = ARENA_ARRAY(l->arena, Lane, (size_t)tile->n);
    if (op->nin > 2) {
        tile_lanes(l, op->in[2], res->type, acc);
    } else {
        Lane zero = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, res->type.dtype))});
        for (int r = 0; r < tile->n; r++)
            acc[r] = zero;
    }
    MmaShape shape = mma_shape(kind);
    int done = 0;
    for (int batch = 0; batch < fc.batch; batch++)
        for (int k = 0; k < fa.inner; k++)
            for (int m = 0; m < fc.outer; m++)
                for (int n = 0; n < fc.inner && !t->failed; n++) {
                    const int *rc = fragment_at(&fc, (uint32_t)m, (uint32_t)n, (uint32_t)batch);
                    Lane va[16], vb[8], vc[4];
                    if (!gather(rc, shape.c, acc, vc))
                        continue; // another warp's
                    if (k >= fb.inner || m >= fa.outer || n >= fb.outer ||
                        !gather(fragment_at(&fa, (uint32_t)m, (uint32_t)k, (uint32_t)batch),
                                shape.a, ra, va) ||
                        !gather(fragment_at(&fb, (uint32_t)n, (uint32_t)k, (uint32_t)batch),
                                shape.b, rb, vb)) {
                        target_fail(t, "operands do not have the layouts of the unit");
                        return;
                    }
                    Lane out[4];
                    t->ops->mma(t, kind, a->type.dtype, va, vb, vc, out);
                    for (int i = 0; i < shape.c; i++)
                        acc[rc[i]] = out[i];
                    done += shape.c;
                }
    if (done != tile->n * fa.inner) {
        target_fail(t, "the result does not have the layout of the unit");
        return;
    }
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = acc[r].v;
}

// --- without a matrix unit ---

static Lane *converted(Lower *l, const Value *v, DType to) {
    Lane *x = operand_lanes(l, v);
    if (v->type.dtype != to)
        l->t->ops->cast(l->t, v->type.dtype, to, type_registers(v->type), x, x);
    return x;
}

static void lower_fma(Lower *l, const Op *op) {
    Target *t = l->t;
    const Value *a = op->in[0], *b = op->in[1];
    Value *res = op->res[0];
    const Layout *la = a->type.layout, *lb = b->type.layout, *lc = res->type.layout;
    if (!la || !lb || !lc) {
        target_fail(t, "operands without layouts");
        return;
    }
    AxisSize ks[AXES_MAX];
    int nks = 0;
    for (int i = 0; i < op->naxes; i++) {
        uint16_t axis = op->axes[i]->id;
        uint32_t size = layout_size(la, axis) > layout_size(lb, axis) ? layout_size(la, axis)
                                                                      : layout_size(lb, axis);
        ks[nks++] = (AxisSize){.axis = axis, .size = size};
    }
    const Layout *full = layout_expand(l->layouts, lc, ks, (unsigned)nks);
    if (!full || !layout_is_slice(full, la) || !layout_is_slice(full, lb) ||
        !layout_is_slice(full, lc)) {
        target_fail(t, "operands do not have the layouts of the result");
        return;
    }
    DType dtype = res->type.dtype;
    Lane *ra = converted(l, a, dtype), *rb = converted(l, b, dtype);
    Tile *tile = lower_result(l, res);
    Lane *acc = ARENA_ARRAY(l->arena, Lane, (size_t)tile->n);
    Lane zero = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, dtype))});
    if (op->nin > 2)
        tile_lanes(l, op->in[2], res->type, acc);
    for (int r = 0; r < tile->n && op->nin <= 2; r++)
        acc[r] = zero;
    for (uint32_t r = 0; r < layout_registers(full) && !t->failed; r++) {
        uint32_t c = layout_slice_register(full, lc, r);
        Lane x = ra[layout_slice_register(full, la, r)], y = rb[layout_slice_register(full, lb, r)];
        acc[c] = t->ops->arith(t, OP_FMA, 0, dtype, 0, (Lane[]){x, y, acc[c]});
    }
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = acc[r].v;
}

void lower_dot(Lower *l, const Op *op) {
    Str unit = op_attr_str(op, ATTR_unit);
    DType dtype = op->in[0]->type.dtype;
    if (!unit || strcmp(unit, "fma") == 0)
        lower_fma(l, op);
    else if (strcmp(unit, "m16n8k16") == 0)
        lower_mma(l, op, MMA_KIND_M16N8K16);
    else if (strcmp(unit, "m16n8k8") == 0)
        lower_mma(l, op, dtype == DT_F32 ? MMA_KIND_M16N8K8_TF32 : MMA_KIND_M16N8K8);
    else if (strcmp(unit, "m16n8k32") == 0)
        lower_mma(l, op, MMA_KIND_M16N8K32);
    else
        target_fail(l->t, "matrix unit %s", unit);
}

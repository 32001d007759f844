// Contractions: mma.sync fragments, or one multiply-add per element and k.
//
// Input: operands and accumulator in the unit's layouts (layout_mma_*, layout_fma_*). Output: the
// result's registers. The matrix number of a register follows from its coordinates at lane 0, warp
// 0: row, column, k and batch; the fragment's register from their low bits (PTX ISA, mma
// fragments). Invariant: k runs upwards for every element.
#include "backend/lower.h"

#include <math.h>
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

static uint32_t index_a(MmaUnit unit, uint32_t row, uint32_t k) {
    uint32_t high = row >> 3 & 1;
    switch (unit) {
    case MMA_M16N8K16:
        return (k & 1) | high << 1 | (k >> 3 & 1) << 2;
    case MMA_M16N8K8:
        return (k & 1) | high << 1;
    case MMA_M16N8K8_TF32:
        return high | (k >> 2 & 1) << 1;
    case MMA_M16N8K32:
        return (k & 3) | high << 2 | (k >> 4 & 1) << 3;
    case MMA_M8N8K4:
        return 0;
    }
    return 0;
}

static uint32_t index_b(MmaUnit unit, uint32_t k) {
    switch (unit) {
    case MMA_M16N8K16:
        return (k & 1) | (k >> 3 & 1) << 1;
    case MMA_M16N8K8:
        return k & 1;
    case MMA_M16N8K8_TF32:
        return k >> 2 & 1;
    case MMA_M16N8K32:
        return (k & 3) | (k >> 4 & 1) << 2;
    case MMA_M8N8K4:
        return 0;
    }
    return 0;
}

static uint32_t index_c(MmaUnit unit, uint32_t row, uint32_t col) {
    uint32_t high = unit == MMA_M8N8K4 ? 0 : row >> 3 & 1;
    return high << 1 | (col & 1);
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
static Fragments sort_registers(Lower *l, const DotPlan *p, MmaUnit unit, int side,
                                const Layout *layout) {
    MmaShape shape = mma_shape(unit);
    uint32_t rows = span_of(layout, p->rows, p->nrows), cols = span_of(layout, p->cols, p->ncols);
    uint32_t ks = span_of(layout, p->ks, p->nks), batches = span_of(layout, p->batch, p->nbatch);
    uint32_t unit_k = (uint32_t)shape.k, unit_m = (uint32_t)shape.m;
    int outer = (int)(side == SIDE_B ? (cols + 7) / 8 : (rows + unit_m - 1) / unit_m);
    int inner = (int)(side == SIDE_C ? (cols + 7) / 8 : (ks + unit_k - 1) / unit_k);
    int size = side == SIDE_A ? shape.a : side == SIDE_B ? shape.b : shape.c;
    Fragments f = fragments_new(l, outer, inner, (int)batches, size);
    AxisSet none = axes_none();
    for (uint32_t r = 0; r < layout_registers(layout); r++) {
        uint32_t row = number_of(layout, none, p->rows, p->nrows, r);
        uint32_t col = number_of(layout, none, p->cols, p->ncols, r);
        uint32_t k = number_of(layout, none, p->ks, p->nks, r);
        uint32_t batch = number_of(layout, none, p->batch, p->nbatch, r);
        uint32_t at = side == SIDE_A   ? index_a(unit, row, k)
                      : side == SIDE_B ? index_b(unit, k)
                                       : index_c(unit, row, col);
        uint32_t o = side == SIDE_B ? col / 8 : row / unit_m,
                 i = side == SIDE_C ? col / 8 : k / unit_k;
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

static Lane zero_of(Target *t, DType dtype) {
    return t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, dtype))});
}

// The accumulator's registers, or zeros.
static Lane *accumulator(Lower *l, const Op *op) {
    Type type = op->res[0]->type;
    int n = type_registers(type);
    Lane *acc = ARENA_ARRAY(l->arena, Lane, (size_t)n + 1);
    if (op->nin > 2)
        tile_lanes(l, op->in[2], type, acc);
    for (int r = 0; r < n && op->nin <= 2; r++)
        acc[r] = zero_of(l->t, type.dtype);
    return acc;
}

// --- f32 as the sum of two tf32 (three products; the fourth is below f32's last bit) ---

// Rounds to the 10 stored bits of tf32; NaN stays NaN.
static Lane tf32_high(Target *t, Lane x) {
    const TargetOps *ops = t->ops;
    Lane bits = ops->bitcast(t, DT_F32, DT_U32, x);
    Lane half = ops->splat(t, (Uni){LLVMConstInt(target_int(t, 32), 0x1000, false)});
    Lane mask = ops->splat(t, (Uni){LLVMConstInt(target_int(t, 32), 0xffffe000u, false)});
    bits = lane_op2(t, OP_AND, DT_U32, lane_op2(t, OP_ADD, DT_U32, bits, half), mask);
    Lane same = ops->arith(t, OP_CMP, CMP_EQ, DT_F32, 0, (Lane[]){x, x});
    return ops->select(t, same, ops->bitcast(t, DT_U32, DT_F32, bits), x);
}

// What tf32_high leaves; 0 where that is infinite or NaN.
static Lane tf32_low(Target *t, Lane x, Lane high) {
    const TargetOps *ops = t->ops;
    Lane inf = ops->splat(t, (Uni){LLVMConstReal(target_type(t, DT_F32), HUGE_VAL)});
    Lane size = ops->arith(t, OP_ABS, 0, DT_F32, 0, &high);
    Lane finite = ops->arith(t, OP_CMP, CMP_LT, DT_F32, 0, (Lane[]){size, inf});
    return ops->select(t, finite, lane_op2(t, OP_SUB, DT_F32, x, high), zero_of(t, DT_F32));
}

typedef struct MmaOperand {
    Lane *reg, *low; // low: what the unit's type cuts off (tf32x3), else NULL
    DType dtype;
    Fragments frag;
} MmaOperand;

static MmaOperand mma_operand(Lower *l, const DotPlan *p, MmaUnit unit, int side, const Value *v,
                              bool split) {
    MmaOperand o = {.reg = operand_lanes(l, v), .dtype = v->type.dtype};
    o.frag = sort_registers(l, p, unit, side, v->type.layout);
    int n = type_registers(v->type);
    o.low = split ? ARENA_ARRAY(l->arena, Lane, (size_t)n + 1) : NULL;
    for (int r = 0; r < n && split; r++) {
        Lane x = o.reg[r];
        o.reg[r] = tf32_high(l->t, x);
        o.low[r] = tf32_low(l->t, x, o.reg[r]);
    }
    return o;
}

// c += a * b for one fragment of each; false: registers are missing.
static bool mma_fragment(Target *t, MmaUnit unit, const MmaOperand *a, const int *ra,
                         const MmaOperand *b, const int *rb, Lane *c) {
    MmaShape shape = mma_shape(unit);
    Lane va[16], vb[8], wa[16], wb[8];
    if (!gather(ra, shape.a, a->reg, va) || !gather(rb, shape.b, b->reg, vb))
        return false;
    if (a->low) { // the small products first
        gather(ra, shape.a, a->low, wa);
        gather(rb, shape.b, b->low, wb);
        t->ops->mma(t, unit, a->dtype, b->dtype, wa, vb, c, c);
        t->ops->mma(t, unit, a->dtype, b->dtype, va, wb, c, c);
    }
    t->ops->mma(t, unit, a->dtype, b->dtype, va, vb, c, c);
    return true;
}

// 8-bit floats: the unit's own sums have fewer bits than f32 (about 14 on sm_90); they are added to
// the accumulator in f32 after this much of k.
enum { FP8_SUM_K = 128 };

static int fragments_in_a_sum(const Op *op, MmaUnit unit, int along) {
    Str precision = op_attr_str(op, ATTR_precision);
    if (!dtype_is_fp8(op->in[0]->type.dtype) || (precision && strcmp(precision, "fast") == 0))
        return 0;
    int n = FP8_SUM_K / mma_shape(unit).k;
    return n < along ? n : along;
}

typedef struct MmaPlan {
    MmaUnit unit;
    MmaOperand a, b;
    Fragments c;
    Lane *acc, *part; // registers of the result; part: the sums that are not in acc yet, or NULL
    int sum_of;       // fragments along k in such a sum
} MmaPlan;

// One instruction: fragment (m, n) of the result, number k of the contraction. 1: done, 0: another
// warp's fragment, -1: the operands have another layout.
static int mma_step(Target *t, const MmaPlan *p, int m, int n, int k, int batch) {
    MmaShape shape = mma_shape(p->unit);
    const int *rc = fragment_at(&p->c, (uint32_t)m, (uint32_t)n, (uint32_t)batch);
    Lane c[4];
    if (!gather(rc, shape.c, p->part ? p->part : p->acc, c))
        return 0;
    if (k >= p->b.frag.inner || m >= p->a.frag.outer || n >= p->b.frag.outer)
        return -1;
    for (int i = 0; i < shape.c && p->part && k % p->sum_of == 0; i++)
        c[i] = zero_of(t, DT_F32);
    const int *ra = fragment_at(&p->a.frag, (uint32_t)m, (uint32_t)k, (uint32_t)batch);
    const int *rb = fragment_at(&p->b.frag, (uint32_t)n, (uint32_t)k, (uint32_t)batch);
    if (!mma_fragment(t, p->unit, &p->a, ra, &p->b, rb, c))
        return -1;
    bool last = k + 1 == p->a.frag.inner || (p->part && (k + 1) % p->sum_of == 0);
    for (int i = 0; i < shape.c; i++) {
        if (!p->part)
            p->acc[rc[i]] = c[i];
        else if (last)
            p->acc[rc[i]] = lane_op2(t, OP_ADD, DT_F32, p->acc[rc[i]], c[i]);
        else
            p->part[rc[i]] = c[i];
    }
    return 1;
}

static void mma_plan(Lower *l, const Op *op, MmaUnit unit, MmaPlan *m) {
    DotPlan p = dot_plan(op);
    bool swapped = p.nrows > 0 && axes_has(op->in[1]->type.axes, p.rows[0]);
    Str precision = op_attr_str(op, ATTR_precision);
    bool split = unit == MMA_M16N8K8_TF32 && precision && strcmp(precision, "tf32x3") == 0;
    *m = (MmaPlan){
        .unit = unit,
        .a = mma_operand(l, &p, unit, SIDE_A, op->in[swapped], split),
        .b = mma_operand(l, &p, unit, SIDE_B, op->in[!swapped], split),
        .c = sort_registers(l, &p, unit, SIDE_C, op->res[0]->type.layout),
        .acc = accumulator(l, op),
    };
    m->sum_of = fragments_in_a_sum(op, unit, m->a.frag.inner);
    if (m->sum_of)
        m->part = ARENA_ARRAY(l->arena, Lane, (size_t)type_registers(op->res[0]->type) + 1);
}

static void lower_mma(Lower *l, const Op *op, MmaUnit unit) {
    Target *t = l->t;
    Value *res = op->res[0];
    if (!op->in[0]->type.layout || !op->in[1]->type.layout || !res->type.layout) {
        target_fail(t, "operands without layouts");
        return;
    }
    MmaPlan p;
    mma_plan(l, op, unit, &p);
    Tile *tile = lower_result(l, res);
    int done = 0;
    for (int batch = 0; batch < p.c.batch; batch++)
        for (int k = 0; k < p.a.frag.inner; k++)
            for (int m = 0; m < p.c.outer; m++)
                for (int n = 0; n < p.c.inner && !t->failed; n++) {
                    int step = mma_step(t, &p, m, n, k, batch);
                    if (step < 0) {
                        target_fail(t, "operands do not have the layouts of the unit");
                        return;
                    }
                    done += step * mma_shape(unit).c;
                }
    if (done != tile->n * p.a.frag.inner) {
        target_fail(t, "the result does not have the layout of the unit");
        return;
    }
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = p.acc[r].v;
}

// --- without a matrix unit ---

static Lane *converted(Lower *l, const Value *v, DType to) {
    Lane *x = operand_lanes(l, v);
    if (v->type.dtype != to)
        l->t->ops->cast(l->t, v->type.dtype, to, type_registers(v->type), x, x);
    return x;
}

// Loads of global memory are issued together, for their latency, unless that many values leave no
// registers.
static bool holds_too_much(const Op *op) {
    enum { REGISTERS_MOST = 160 };
    int n = 0;
    for (int i = 0; i < op->nin; i++)
        n += type_registers(op->in[i]->type) * (int)dtype_bits(op->res[0]->type.dtype) / 32;
    return n > REGISTERS_MOST;
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
    Lane *acc = accumulator(l, op);
    Late *late = late_begin(l, holds_too_much(op));
    for (uint32_t r = 0; r < layout_registers(full) && !t->failed; r++) {
        uint32_t c = layout_slice_register(full, lc, r);
        Lane x = ra[layout_slice_register(full, la, r)], y = rb[layout_slice_register(full, lb, r)];
        late_move(late, x);
        late_move(late, y);
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
        lower_mma(l, op, MMA_M16N8K16);
    else if (strcmp(unit, "m16n8k8") == 0)
        lower_mma(l, op, dtype == DT_F32 ? MMA_M16N8K8_TF32 : MMA_M16N8K8);
    else if (strcmp(unit, "m16n8k32") == 0)
        lower_mma(l, op, MMA_M16N8K32);
    else if (strcmp(unit, "m8n8k4") == 0)
        lower_mma(l, op, MMA_M8N8K4);
    else
        target_fail(l->t, "matrix unit %s", unit);
}

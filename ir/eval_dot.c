// dot: contraction over the op's axes, every other axis kept.
//
// Products of operands of at most 24 bits of precision are exact in double; the sum is accumulated
// in double, in an order that is not promised, and rounded once. Integers accumulate with wrap. All
// positions take part, padding too.
#include "ir/eval_impl.h"

#include <string.h>

// One row of results along the last axis of the domain, for one point of the others.
typedef struct DotRow {
    int64_t n; // results
    const Tile *a, *b;
    int64_t a_step, b_step; // along the row
    Walk along;             // over the contracted axes; a full walk ends at its start
} DotRow;

// Both operands lie along one contracted axis: partial sums, for a machine with several adders.
static double dot_dense(const Cell *x, const Cell *y, int64_t n) {
    double s[4] = {0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        for (int i = 0; i < 4; i++)
            s[i] += x[k + i].f * y[k + i].f;
    }
    for (; k < n; k++)
        s[0] += x[k].f * y[k].f;
    return (s[0] + s[1]) + (s[2] + s[3]);
}

// One operand is constant along the row, the other dense: four contracted positions at a time, so
// that the row of sums is read and written a quarter as often.
static void row_outer(DotRow *r, const Cell *a, const Cell *b, Cell *acc) {
    const Walk *w = &r->along;
    int64_t sa = w->step[0][0], sb = w->step[1][0], k = 0;
    for (; k + 4 <= w->count; k += 4, a += 4 * sa, b += 4 * sb) {
        const Cell *y0 = b, *y1 = b + sb, *y2 = b + 2 * sb, *y3 = b + 3 * sb;
        double x0 = a[0].f, x1 = a[sa].f, x2 = a[2 * sa].f, x3 = a[3 * sa].f;
        for (int64_t j = 0; j < r->n; j++)
            acc[j].f += (x0 * y0[j].f + x1 * y1[j].f) + (x2 * y2[j].f + x3 * y3[j].f);
    }
    for (; k < w->count; k++, a += sa, b += sb) {
        for (int64_t j = 0; j < r->n; j++)
            acc[j].f += a->f * b[j].f;
    }
}

static void row_floats(DotRow *r, const Cell *a, const Cell *b, Cell *acc) {
    Walk *w = &r->along;
    if (w->axes.n == 1 && w->step[0][0] == 1 && w->step[1][0] == 1) {
        for (int64_t j = 0; j < r->n; j++)
            acc[j].f += dot_dense(a + j * r->a_step, b + j * r->b_step, w->count);
        return;
    }
    if (w->axes.n == 1 && r->a_step == 0 && r->b_step == 1) {
        row_outer(r, a, b, acc);
        return;
    }
    for (int64_t q = 0; q < w->count; q++, walk_next(w)) {
        const Cell *x = a + w->at[0], *y = b + w->at[1];
        if (r->a_step == 0 && r->b_step == 1) {
            double factor = x->f;
            for (int64_t j = 0; j < r->n; j++)
                acc[j].f += factor * y[j].f;
        } else {
            for (int64_t j = 0; j < r->n; j++)
                acc[j].f += x[j * r->a_step].f * y[j * r->b_step].f;
        }
    }
}

static void row_ints(DotRow *r, const Cell *a, const Cell *b, Cell *acc) {
    Walk *w = &r->along;
    for (int64_t q = 0; q < w->count; q++, walk_next(w)) {
        const Cell *x = a + w->at[0], *y = b + w->at[1];
        for (int64_t j = 0; j < r->n; j++)
            acc[j].i = (int64_t)((uint64_t)acc[j].i +
                                 (uint64_t)x[j * r->a_step].i * (uint64_t)y[j * r->b_step].i);
    }
}

static void row_bads(DotRow *r, int64_t a, int64_t b, uint8_t *bad) {
    Walk *w = &r->along;
    for (int64_t q = 0; q < w->count; q++, walk_next(w)) {
        const uint8_t *x = r->a->bad ? r->a->bad + a + w->at[0] : NULL;
        const uint8_t *y = r->b->bad ? r->b->bad + b + w->at[1] : NULL;
        for (int64_t j = 0; j < r->n; j++)
            bad[j] |= (x ? x[j * r->a_step] : 0) | (y ? y[j * r->b_step] : 0);
    }
}

static void dot_check(Eval *e, const Op *op, const Tile *out) {
    Walk w;
    if (!out->bad || e->opts.check)
        return;
    walk_start(e, op, &w, out->axes);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        if (out->bad[p] == BAD_POISON && walk_is_inside(&w))
            eval_fail(e, op, "poison reaches the inside element %s", eval_point(e, w.axes, w.pos));
    }
}

static void contract(Eval *e, const Op *op, const Tile *a, const Tile *b, const Tile *acc) {
    Type type = op->res[0]->type;
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    AxisSet contracted = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(&contracted, op->axes[i]->id);

    Walk w;
    walk_start(e, op, &w, type.axes);
    walk_part(e, op, &w, a);
    walk_part(e, op, &w, b);
    if (acc) {
        int k = walk_tile(e, op, &w, acc);
        for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
            out->cell[p] = acc->cell[w.at[k]];
            if (acc->bad && acc->bad[w.at[k]])
                tile_bad(e, op, out)[p] = acc->bad[w.at[k]];
        }
    }
    if (a->bad || b->bad)
        tile_bad(e, op, out);

    int last = type.axes.n - 1;
    DotRow row = {.n = last < 0 ? 1 : w.n[last], .a = a, .b = b};
    if (last >= 0) {
        row.a_step = w.step[0][last];
        row.b_step = w.step[1][last];
        w.axes.n--;
        w.count = row.n ? w.count / row.n : 0;
    }
    walk_start(e, op, &row.along, contracted);
    eval_count_cells(e, op, out->count, row.along.count);
    walk_part(e, op, &row.along, a);
    walk_part(e, op, &row.along, b);
    for (int64_t at = 0; at < w.count; at++, walk_next(&w)) {
        Cell *cell = out->cell + at * row.n;
        if (dtype_is_float(a->dtype))
            row_floats(&row, a->cell + w.at[0], b->cell + w.at[1], cell);
        else
            row_ints(&row, a->cell + w.at[0], b->cell + w.at[1], cell);
        if (a->bad || b->bad)
            row_bads(&row, w.at[0], w.at[1], out->bad + at * row.n);
    }
    Walk point;
    walk_start(e, op, &point, type.axes);
    for (int64_t p = 0; p < out->count; p++, walk_next(&point)) {
        if (dtype_is_float(type.dtype)) {
            out->cell[p].f = numeric_round(type.dtype, out->cell[p].f);
        } else {
            if (!out->bad || !out->bad[p])
                check_sum(e, op, type.dtype, out->cell[p].i, false, &point);
            out->cell[p].i = numeric_wrap(type.dtype, out->cell[p].i);
        }
    }
    if (axes_sliced(e, op))
        memset(tile_bad(e, op, out), BAD_UNKNOWN, (size_t)out->count);
    dot_check(e, op, out);
    eval_set(e, op->res[0], out);
}

// To 10 bits of mantissa, to nearest even; infinities and NaNs stay.
static double round_tf32(double x) {
    union {
        float f;
        uint32_t u;
    } v = {.f = (float)x};
    if ((v.u & 0x7f800000) == 0x7f800000)
        return x;
    v.u += 0xfff + (v.u >> 13 & 1);
    v.u &= ~UINT32_C(0x1fff);
    return v.f;
}

// A new reference to the operand as the product takes it.
static Tile *dot_operand(Eval *e, const Op *op, int i) {
    Tile *t = eval_value(e, op, op->in[i]);
    Str precision = op_attr_str(op, ATTR_precision);
    if (!precision || strcmp(precision, "tf32") != 0 || t->dtype != DT_F32)
        return tile_ref(t);
    Tile *r = tile_new(e, op, t->dtype, t->axes);
    for (int64_t p = 0; p < t->count; p++)
        r->cell[p].f = round_tf32(t->cell[p].f);
    if (t->bad)
        memcpy(tile_bad(e, op, r), t->bad, (size_t)t->count);
    return r;
}

void eval_dot(Eval *e, const Op *op) {
    Tile *a = dot_operand(e, op, 0), *b = dot_operand(e, op, 1);
    contract(e, op, a, b, op->nin > 2 ? eval_value(e, op, op->in[2]) : NULL);
    tile_drop(e, a);
    tile_drop(e, b);
}

void eval_mma(Eval *e, const Op *op) {
    MmaParts m = op_mma_parts(op);
    Tile *a = m.a ? tile_ref(eval_value(e, op, m.a)) : eval_slot(e, op, m.a_ref);
    Tile *b = eval_slot(e, op, m.b);
    contract(e, op, a, b, m.acc ? eval_value(e, op, m.acc) : NULL);
    tile_drop(e, a);
    tile_drop(e, b);
}

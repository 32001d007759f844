// Ops along axes: take, reduce, argreduce, scan.
//
// Reductions visit all positions of a tile, padding included, as a machine does: at the late stages
// it is a `select` in front of them, or a fill, that keeps padding neutral.
#include "ir/eval_impl.h"

#include <math.h>

static AxisSet op_axes(const Op *op) {
    AxisSet axes = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(&axes, op->axes[i]->id);
    return axes;
}

// --- take ---

// The axes that the index lacks are those kept. What is outside the window of a replaced axis gives
// the fill.
void eval_take(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    const Tile *v = eval_value(e, op, op->in[0]);
    AxisSet replaced = op_axes(op);
    int64_t stride[AXES_MAX] = {0};
    tile_strides(v, stride);
    Walk w;
    walk_start(e, op, &w, type.axes);
    // The kept axes of v: its offsets along the replaced ones are added by hand.
    int base = walk_part(e, op, &w, v);
    for (int i = 0; i < w.axes.n; i++) {
        if (axes_has(replaced, w.axes.id[i]))
            w.step[base][i] = 0;
    }
    const Tile *index[AXES_MAX], *fill = NULL;
    int at[AXES_MAX], fill_at = 0;
    Window window[AXES_MAX];
    int64_t step[AXES_MAX];
    int64_t left_out[AXES_MAX]; // of a sliced axis: its extent
    for (int k = 0; k < op->naxes; k++) {
        index[k] = eval_value(e, op, op->in[1 + k]);
        at[k] = walk_tile(e, op, &w, index[k]);
        window[k] = eval_window(e, op, op->axes[k]);
        step[k] = 0;
        left_out[k] = axis_slice(e, op->axes[k]) ? eval_int(e, op, op->axes[k]->extent) : 0;
        for (int j = 0; j < v->axes.n; j++) {
            if (v->axes.id[j] == op->axes[k]->id)
                step[k] = stride[j];
        }
    }
    if (op->has_else) {
        fill = eval_value(e, op, op->in[op->nin - 1]);
        fill_at = walk_tile(e, op, &w, fill);
    }
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        uint8_t bad = 0;
        bool outside = false;
        int64_t from = w.at[base];
        for (int k = 0; k < op->naxes; k++) {
            if (index[k]->bad && index[k]->bad[w.at[at[k]]]) {
                bad |= index[k]->bad[w.at[at[k]]];
                continue;
            }
            int64_t i = index[k]->cell[w.at[at[k]]].i;
            if (i >= 0 && i < left_out[k] && (i < window[k].begin || i >= window[k].end))
                bad |= BAD_UNKNOWN;
            else if (i < window[k].begin || i >= window[k].end)
                outside = true;
            else
                from += (i - window[k].begin) * step[k];
        }
        if (outside) {
            out->cell[p] = fill ? fill->cell[w.at[fill_at]] : (Cell){.i = 0};
            bad = fill && fill->bad ? fill->bad[w.at[fill_at]] : 0;
        } else if (!bad) {
            out->cell[p] = v->cell[from];
            bad = v->bad ? v->bad[from] : 0;
        }
        if (bad)
            tile_bad(e, op, out)[p] = bad;
    }
    eval_set(e, op->res[0], out);
}

// --- reduce ---

static Cell reduce_identity(ReduceKind kind, DType dtype) {
    bool is_float = dtype_is_float(dtype);
    switch (kind) {
    case RED_SUM:
    case RED_ANY:
    case RED_OR:
    case RED_XOR:
        return (Cell){.i = 0}; // 0.0 too
    case RED_PROD:
    case RED_ALL:
        return is_float ? (Cell){.f = 1} : (Cell){.i = 1};
    case RED_MAX:
        return cell_from(scalar_float(dtype, -INFINITY));
    case RED_MIN:
        return cell_from(scalar_float(dtype, INFINITY));
    case RED_AND:
        return (Cell){.i = dtype == DT_BOOL ? 1 : scalar_int(dtype, -1).u.i};
    case RED_COUNT:
        break;
    }
    return (Cell){.i = 0};
}

// Sums and products of floats stay in double; `eval_reduce` rounds them.
static Cell reduce_step(ReduceKind kind, DType dtype, Cell acc, Cell x) {
    bool is_float = dtype_is_float(dtype);
    switch (kind) {
    case RED_SUM:
        if (is_float)
            return (Cell){.f = acc.f + x.f};
        return cell_binary(OP_ADD, DT_I64, acc, x);
    case RED_PROD:
        if (is_float)
            return (Cell){.f = acc.f * x.f};
        return cell_binary(OP_MUL, DT_I64, acc, x);
    case RED_MAX:
        return cell_binary(OP_MAX, dtype, acc, x);
    case RED_MIN:
        return cell_binary(OP_MIN, dtype, acc, x);
    case RED_ANY:
        return (Cell){.i = acc.i || x.i};
    case RED_ALL:
        return (Cell){.i = acc.i && x.i};
    case RED_AND:
        return cell_binary(OP_AND, dtype, acc, x);
    case RED_OR:
        return cell_binary(OP_OR, dtype, acc, x);
    case RED_XOR:
        return cell_binary(OP_XOR, dtype, acc, x);
    case RED_COUNT:
        break;
    }
    return acc;
}

// Whether the sum or product of integers leaves the 64 bits that it is made in.
static bool sum_overflows(ReduceKind kind, DType dtype, Cell acc, Cell x) {
    int64_t r;
    if (dtype_is_float(dtype))
        return false;
    return kind == RED_SUM    ? __builtin_add_overflow(acc.i, x.i, &r)
           : kind == RED_PROD ? __builtin_mul_overflow(acc.i, x.i, &r)
                              : false;
}

// A poisoned result is an error where it is inside; padding may hold anything.
void result_bad(Eval *e, const Op *op, Tile *out, const Walk *w, int64_t p, uint8_t bad) {
    if (!bad)
        return;
    if (bad == BAD_POISON && walk_is_inside(w) && !e->opts.check)
        eval_fail(e, op, "poison reaches the inside element %s", eval_point(e, w->axes, w->pos));
    tile_bad(e, op, out)[p] = bad;
}

void eval_reduce(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    ReduceKind kind = (ReduceKind)op->sub;
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    const Tile *v = eval_value(e, op, op->in[0]);
    Walk outer, inner;
    walk_start(e, op, &outer, type.axes);
    walk_part(e, op, &outer, v);
    walk_start(e, op, &inner, op_axes(op));
    walk_part(e, op, &inner, v);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        Cell acc = reduce_identity(kind, v->dtype);
        uint8_t bad = axes_sliced(e, op) ? BAD_UNKNOWN : 0;
        bool lost = false;
        for (int64_t q = 0; q < inner.count; q++, walk_next(&inner)) {
            int64_t at = outer.at[0] + inner.at[0];
            if (v->bad)
                bad |= v->bad[at];
            lost = lost || sum_overflows(kind, type.dtype, acc, v->cell[at]);
            acc = reduce_step(kind, v->dtype, acc, v->cell[at]);
        }
        if (dtype_is_float(type.dtype)) {
            out->cell[p].f = numeric_round(type.dtype, acc.f);
        } else {
            if (!bad)
                check_sum(e, op, type.dtype, acc.i, lost, &outer);
            out->cell[p].i = numeric_wrap(type.dtype, acc.i);
        }
        result_bad(e, op, out, &outer, p, bad);
    }
    eval_set(e, op->res[0], out);
}

// --- argreduce ---

// Whether x comes before the best so far: NaN before all, equal ones keep the earlier.
static bool arg_better(ArgKind kind, DType dtype, Cell x, Cell best) {
    if (dtype_is_float(dtype)) {
        if (isnan(best.f) || isnan(x.f))
            return isnan(x.f) && !isnan(best.f);
        return kind == ARG_MAX ? x.f > best.f : x.f < best.f;
    }
    if (dtype == DT_U64)
        return kind == ARG_MAX ? (uint64_t)x.i > (uint64_t)best.i
                               : (uint64_t)x.i < (uint64_t)best.i;
    return kind == ARG_MAX ? x.i > best.i : x.i < best.i;
}

// A walk over the op's axes in the order written: the last is the fastest.
void walk_along(Eval *e, const Op *op, Walk *w, const Tile *v) {
    walk_start(e, op, w, axes_none());
    int64_t stride[AXES_MAX] = {0};
    tile_strides(v, stride);
    w->ntile = 1;
    for (int i = 0; i < op->naxes; i++) {
        Window window = eval_window(e, op, op->axes[i]);
        w->axes.id[w->axes.n] = op->axes[i]->id; // unsorted: this walk is ours alone
        w->n[w->axes.n] = window.n;
        w->left[w->axes.n] = window.end - window.begin;
        w->count *= window.n;
        for (int j = 0; j < v->axes.n; j++) {
            if (v->axes.id[j] == op->axes[i]->id)
                w->step[0][w->axes.n] = stride[j];
        }
        w->axes.n++;
    }
}

void eval_argreduce(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    const Tile *v = eval_value(e, op, op->in[0]);
    Tile *out[AXES_MAX];
    if (op->nres != op->naxes)
        eval_fail(e, op, "has %d results for %d axes", op->nres, op->naxes);
    for (int i = 0; i < op->nres; i++)
        out[i] = tile_new(e, op, op->res[i]->type.dtype, type.axes);
    Walk outer, inner;
    walk_start(e, op, &outer, type.axes);
    walk_part(e, op, &outer, v);
    walk_along(e, op, &inner, v);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        Cell best = {0};
        uint8_t bad = axes_sliced(e, op) ? BAD_UNKNOWN : 0;
        for (int i = 0; i < op->nres; i++)
            out[i]->cell[p].i = -1;
        for (int64_t q = 0; q < inner.count; q++, walk_next(&inner)) {
            int64_t at = outer.at[0] + inner.at[0];
            if (v->bad)
                bad |= v->bad[at];
            if (q > 0 && !arg_better((ArgKind)op->sub, v->dtype, v->cell[at], best))
                continue;
            best = v->cell[at];
            for (int i = 0; i < op->nres; i++)
                out[i]->cell[p].i = eval_window(e, op, op->axes[i]).begin + inner.pos[i];
        }
        for (int i = 0; i < op->nres; i++)
            result_bad(e, op, out[i], &outer, p, bad);
    }
    for (int i = 0; i < op->nres; i++)
        eval_set(e, op->res[i], out[i]);
}

// --- scan ---

static ReduceKind scan_reduce(ScanKind kind) {
    switch (kind) {
    case SCAN_SUM:
        return RED_SUM;
    case SCAN_PROD:
        return RED_PROD;
    case SCAN_MAX:
        return RED_MAX;
    case SCAN_COUNT:
        break;
    }
    return RED_SUM;
}

// Inclusive. Poison stays in what follows it along the axes: a later element is an inside one.
void eval_scan(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    ReduceKind kind = scan_reduce((ScanKind)op->sub);
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    const Tile *v = eval_value(e, op, op->in[0]);
    if (!axes_equal(v->axes, type.axes))
        eval_fail(e, op, "the result has other axes than the operand");
    Walk outer, inner;
    walk_start(e, op, &outer, axes_minus(type.axes, op_axes(op)));
    walk_part(e, op, &outer, v);
    walk_along(e, op, &inner, v);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        Cell acc = reduce_identity(kind, v->dtype);
        uint8_t bad = axes_sliced(e, op) ? BAD_UNKNOWN : 0;
        bool lost = false;
        for (int64_t q = 0; q < inner.count; q++, walk_next(&inner)) {
            int64_t at = outer.at[0] + inner.at[0];
            if (v->bad)
                bad |= v->bad[at];
            lost = lost || sum_overflows(kind, type.dtype, acc, v->cell[at]);
            acc = reduce_step(kind, v->dtype, acc, v->cell[at]);
            if (dtype_is_float(type.dtype)) {
                out->cell[at].f = numeric_round(type.dtype, acc.f);
            } else {
                if (!bad)
                    check_sum(e, op, type.dtype, acc.i, lost, &outer);
                out->cell[at].i = numeric_wrap(type.dtype, acc.i);
            }
            if (bad)
                tile_bad(e, op, out)[at] = bad;
        }
    }
    eval_set(e, op->res[0], out);
}

// Ops that order elements along an axis: sort, topk; and histogram, which counts them.
//
// One order for all types: numbers ascending, -0 and +0 equal, NaN behind everything; equal ones
// keep the order of their indices. sort[n] gives it along n; topk[n, j] gives, along j, the
// elements from its other end (NaN first, then the largest), equal ones again by the lowest index.
// Only what lies inside the window of n takes part: padding is never read. Positions of j that n
// has no elements for hold the value 0 and the index -1.
#include "ir/eval_impl.h"

#include <math.h>

typedef struct Entry {
    Cell v;
    int64_t at; // position in the window
} Entry;

// Whether x stands before y for another reason than its place.
static bool cell_before(DType dtype, bool largest_first, Cell x, Cell y) {
    if (dtype_is_float(dtype)) {
        if (isnan(x.f) || isnan(y.f))
            return largest_first ? isnan(x.f) && !isnan(y.f) : isnan(y.f) && !isnan(x.f);
        return largest_first ? x.f > y.f : x.f < y.f;
    }
    if (dtype == DT_U64)
        return largest_first ? (uint64_t)x.i > (uint64_t)y.i : (uint64_t)x.i < (uint64_t)y.i;
    return largest_first ? x.i > y.i : x.i < y.i;
}

// Merge sort, bottom up: what is equal keeps its order. The result is in a or in `other`.
static Entry *sort_entries(DType dtype, bool largest_first, Entry *a, Entry *other, int64_t n) {
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = lo + run < n ? lo + run : n, hi = lo + 2 * run < n ? lo + 2 * run : n;
            int64_t i = lo, j = mid;
            for (int64_t k = lo; k < hi; k++) {
                bool right =
                    i == mid || (j < hi && cell_before(dtype, largest_first, a[j].v, a[i].v));
                other[k] = right ? a[j++] : a[i++];
            }
        }
        Entry *t = a;
        a = other;
        other = t;
    }
    return a;
}

static int64_t stride_along(const Tile *t, const Axis *axis) {
    int64_t stride[AXES_MAX] = {0};
    tile_strides(t, stride);
    for (int i = 0; i < t->axes.n; i++)
        if (t->axes.id[i] == axis->id)
            return stride[i];
    return 0;
}

static void set_result(Eval *e, const Op *op, Tile *out, int64_t at, Cell c, uint8_t bad,
                       bool is_inside) {
    if (bad == BAD_POISON && is_inside)
        eval_fail(e, op, "poison reaches an inside element");
    out->cell[at] = c;
    if (bad)
        tile_bad(e, op, out)[at] = bad;
}

void eval_sort(Eval *e, const Op *op) {
    bool is_topk = op->kind == OP_TOPK;
    const Axis *n = op->axes[0], *to = op->axes[is_topk];
    const Tile *v = eval_value(e, op, op->in[0]);
    Tile *value = tile_new(e, op, op->res[0]->type.dtype, op->res[0]->type.axes);
    Tile *index = tile_new(e, op, op->res[1]->type.dtype, op->res[1]->type.axes);
    Window from = eval_window(e, op, n), along = eval_window(e, op, to);
    int64_t count = from.end > from.begin ? from.end - from.begin : 0;
    int64_t step = stride_along(v, n), out_step = stride_along(value, to);
    Entry *a = eval_calloc(e, op, count + 1, sizeof *a),
          *b = eval_calloc(e, op, count + 1, sizeof *b);
    Walk outer;
    walk_start(e, op, &outer, axes_minus(v->axes, axes_of(n)));
    walk_part(e, op, &outer, v);
    walk_part(e, op, &outer, value);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        uint8_t bad = axes_sliced(e, op) ? BAD_UNKNOWN : 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t at = outer.at[0] + i * step;
            a[i] = (Entry){v->cell[at], i};
            bad |= v->bad ? v->bad[at] : 0;
        }
        const Entry *order = sort_entries(v->dtype, is_topk, a, b, count);
        for (int64_t r = 0; r < along.n; r++) {
            int64_t at = outer.at[1] + r * out_step;
            bool is_inside = walk_is_inside(&outer) && r < along.end - along.begin;
            Cell x = {.i = 0}, place = {.i = -1};
            if (r < count) {
                x = order[r].v;
                place.i = from.begin + order[r].at;
            }
            set_result(e, op, value, at, x, bad, is_inside);
            set_result(e, op, index, at, place, bad, is_inside);
        }
    }
    eval_free(e, a);
    eval_free(e, b);
    eval_set(e, op->res[0], value);
    eval_set(e, op->res[1], index);
}

void eval_histogram(Eval *e, const Op *op) {
    const Axis *n = op->axes[0], *bins = op->axes[1];
    const Tile *v = eval_value(e, op, op->in[0]);
    Tile *out = tile_new(e, op, DT_INDEX, op->res[0]->type.axes);
    Window from = eval_window(e, op, n), to = eval_window(e, op, bins);
    int64_t step = stride_along(v, n), out_step = stride_along(out, bins);
    Walk outer;
    walk_start(e, op, &outer, axes_minus(v->axes, axes_of(n)));
    walk_part(e, op, &outer, v);
    walk_part(e, op, &outer, out);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        uint8_t bad = axes_sliced(e, op) ? BAD_UNKNOWN : 0;
        for (int64_t i = 0; i < from.end - from.begin; i++) {
            int64_t at = outer.at[0] + i * step, bin = v->cell[at].i;
            bad |= v->bad ? v->bad[at] : 0;
            bool is_huge = v->dtype == DT_U64 && bin < 0; // above every bin
            if (!is_huge && bin >= to.begin && bin < to.end)
                out->cell[outer.at[1] + (bin - to.begin) * out_step].i++;
        }
        for (int64_t b = 0; bad && b < to.n; b++) {
            int64_t at = outer.at[1] + b * out_step;
            set_result(e, op, out, at, out->cell[at], bad, walk_is_inside(&outer));
        }
    }
    eval_set(e, op->res[0], out);
}

// Tiles, windows and walks of the evaluator: what a value is, and how several of them are visited
// together.
#include "ir/eval_impl.h"

#include <string.h>

static const int64_t CELLS_MAX = INT64_C(1) << 32;

Axis *eval_axis(Eval *e, uint16_t id) {
    return e->kernel->axis[id];
}

const EvalSlice *axis_slice(const Eval *e, const Axis *axis) {
    for (int i = 0; i < e->opts.nslices && axis->is_dim; i++) {
        if (strcmp(e->opts.slices[i].dim, axis->name) == 0)
            return &e->opts.slices[i];
    }
    return NULL;
}

bool axes_sliced(const Eval *e, const Op *op) {
    for (int i = 0; i < op->naxes; i++) {
        if (axis_slice(e, op->axes[i]))
            return true;
    }
    return false;
}

Window eval_window(Eval *e, const Op *op, const Axis *axis) {
    Window w = e->window[axis->id];
    if (w.bound)
        return w;
    if (axis->like) {
        w = eval_window(e, op, axis->like);
        if (axis->size && !e->exact)
            w.n = axis->size;
        return w;
    }
    if (!axis->is_dim)
        eval_fail(e, op, "axis %s is not bound here", axis->name);
    w = (Window){.bound = true, .end = eval_int(e, op, axis->extent)};
    const EvalSlice *slice = axis_slice(e, axis);
    if (slice) {
        w.begin = slice->begin < 0 ? 0 : slice->begin;
        w.end = slice->end > w.end ? w.end : slice->end;
        w.end = w.end < w.begin ? w.begin : w.end;
    }
    w.n = w.end - w.begin;
    if (axis->size && !e->exact) {
        if (w.end > axis->size)
            eval_fail(e, op, "axis %s of %lld elements is larger than its size %u", axis->name,
                      (long long)w.end, axis->size);
        w.n = axis->size;
    }
    return w;
}

Tile *tile_new(Eval *e, const Op *op, DType dtype, AxisSet axes) {
    Tile *t = eval_calloc(e, op, 1, sizeof *t);
    *t = (Tile){.refs = 1, .dtype = dtype, .axes = axes, .count = 1};
    for (int i = 0; i < axes.n; i++) {
        t->n[i] = eval_window(e, op, eval_axis(e, axes.id[i])).n;
        if (t->n[i] > 0 && t->count > CELLS_MAX / t->n[i])
            eval_fail(e, op, "a tile of more than %lld elements", (long long)CELLS_MAX);
        t->count *= t->n[i];
    }
    t->cell = eval_calloc(e, op, t->count, sizeof(Cell));
    return t;
}

Tile *tile_ref(Tile *t) {
    t->refs++;
    return t;
}

void tile_drop(Eval *e, Tile *t) {
    if (!t || --t->refs > 0)
        return;
    eval_free(e, t->cell);
    eval_free(e, t->bad);
    eval_free(e, t);
}

uint8_t *tile_bad(Eval *e, const Op *op, Tile *t) {
    if (!t->bad)
        t->bad = eval_calloc(e, op, t->count, 1);
    return t->bad;
}

void tile_strides(const Tile *t, int64_t *stride) {
    int64_t s = 1;
    for (int i = t->axes.n - 1; i >= 0; i--) {
        stride[i] = s;
        s *= t->n[i];
    }
}

void eval_set(Eval *e, const Value *v, Tile *t) {
    tile_drop(e, e->value[v->id]);
    e->value[v->id] = t;
}

void eval_set_int(Eval *e, const Op *op, const Value *v, int64_t i) {
    Tile *t = tile_new(e, op, v->type.dtype, axes_none());
    t->cell[0].i = numeric_wrap(v->type.dtype, i);
    eval_set(e, v, t);
}

// Iotas are made anew when their window has moved; constants once.
static Tile *value_iota(Eval *e, const Op *op, const Value *v) {
    Window w = eval_window(e, op, v->axis);
    Tile *old = e->value[v->id];
    if (old && old->count == w.n && (w.n == 0 || old->cell[0].i == w.begin))
        return old;
    AxisSet axes = axes_none();
    axes_add(&axes, v->axis->id);
    Tile *t = tile_new(e, op, v->type.dtype, axes);
    for (int64_t i = 0; i < t->count; i++)
        t->cell[i].i = (int64_t)((uint64_t)w.begin + (uint64_t)i);
    eval_set(e, v, t);
    return t;
}

Tile *eval_value(Eval *e, const Op *op, const Value *v) {
    if (v->kind == VALUE_IOTA)
        return value_iota(e, op, v);
    Tile *t = e->value[v->id];
    if (t)
        return t;
    if (v->kind != VALUE_CONST)
        eval_fail(e, op, "uses %%%s, which has no value here", v->name ? v->name : "?");
    t = tile_new(e, op, v->type.dtype, axes_none());
    if (dtype_is_float(v->type.dtype))
        t->cell[0].f = v->u.f;
    else
        t->cell[0].i = v->u.i;
    eval_set(e, v, t);
    return t;
}

int64_t eval_int(Eval *e, const Op *op, const Value *v) {
    const Tile *t = eval_value(e, op, v);
    const char *name = v->name ? v->name : "?";
    if (t->axes.n != 0)
        eval_fail(e, op, "%%%s must be a scalar", name);
    if (t->bad && t->bad[0] & BAD_UNKNOWN)
        eval_fail(e, op, "%%%s decides what runs, but sampling left out what it depends on", name);
    if (t->bad && t->bad[0] && e->opts.check)
        check_undetermined(e, op, "a condition or bound", axes_none(), NULL);
    else if (t->bad && t->bad[0])
        eval_fail(e, op, "the scalar %%%s is poison", name);
    return t->cell[0].i;
}

const char *eval_point(Eval *e, AxisSet axes, const int64_t *pos) {
    const char *text = "(a scalar)";
    for (int i = 0; i < axes.n; i++) {
        const Axis *axis = eval_axis(e, axes.id[i]);
        int64_t at = eval_window(e, NULL, axis).begin + pos[i];
        text = arena_printf(e->arena, "%s%s%s = %lld", i ? text : "", i ? ", " : "", axis->name,
                            (long long)at);
    }
    return text;
}

void walk_start(Eval *e, const Op *op, Walk *w, AxisSet axes) {
    *w = (Walk){.axes = axes, .count = 1};
    for (int i = 0; i < axes.n; i++) {
        Window window = eval_window(e, op, eval_axis(e, axes.id[i]));
        w->n[i] = window.n;
        w->left[i] = window.end - window.begin;
        w->count *= window.n;
    }
}

int walk_part(Eval *e, const Op *op, Walk *w, const Tile *t) {
    int64_t stride[AXES_MAX] = {0};
    tile_strides(t, stride);
    int k = w->ntile++;
    for (int i = 0; i < w->axes.n; i++) {
        for (int j = 0; j < t->axes.n; j++) {
            if (t->axes.id[j] != w->axes.id[i])
                continue;
            if (t->n[j] != w->n[i])
                eval_fail(e, op, "an operand has %lld positions of axis %s, not %lld",
                          (long long)t->n[j], eval_axis(e, t->axes.id[j])->name,
                          (long long)w->n[i]);
            w->step[k][i] = stride[j];
        }
    }
    return k;
}

int walk_tile(Eval *e, const Op *op, Walk *w, const Tile *t) {
    if (!axes_subset(t->axes, w->axes))
        eval_fail(e, op, "an operand has an axis that the result lacks");
    return walk_part(e, op, w, t);
}

void walk_next(Walk *w) {
    for (int i = w->axes.n - 1; i >= 0; i--) {
        if (++w->pos[i] < w->n[i]) {
            for (int k = 0; k < w->ntile; k++)
                w->at[k] += w->step[k][i];
            return;
        }
        w->pos[i] = 0;
        for (int k = 0; k < w->ntile; k++)
            w->at[k] -= w->step[k][i] * (w->n[i] - 1);
    }
}

void walk_seek(Walk *w, int64_t p) {
    memset(w->at, 0, sizeof w->at);
    for (int i = w->axes.n - 1; i >= 0; i--) {
        w->pos[i] = p % w->n[i];
        p /= w->n[i];
        for (int k = 0; k < w->ntile; k++)
            w->at[k] += w->step[k][i] * w->pos[i];
    }
}

bool walk_is_inside(const Walk *w) {
    for (int i = 0; i < w->axes.n; i++) {
        if (w->pos[i] >= w->left[i])
            return false;
    }
    return true;
}

Tile *tile_broadcast(Eval *e, const Op *op, Tile *t, Type type) {
    if (axes_equal(t->axes, type.axes))
        return tile_ref(t);
    Tile *out = tile_new(e, op, t->dtype, type.axes);
    Walk w;
    walk_start(e, op, &w, type.axes);
    walk_tile(e, op, &w, t);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        out->cell[p] = t->cell[w.at[0]];
        if (t->bad && t->bad[w.at[0]])
            tile_bad(e, op, out)[p] = t->bad[w.at[0]];
    }
    return out;
}

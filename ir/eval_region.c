// Ops with regions: how axes and scalars are bound, and what loops carry.
#include "ir/eval_impl.h"

#include <string.h>

#include "ir/random.h"

// --- binding ---

// Size of an axis's windows; 0: one window over the whole range.
static int64_t window_size(const Eval *e, const Op *op, const Axis *axis) {
    if (axis->size)
        return axis->size;
    for (int i = 0; i < e->opts.nwindows; i++) {
        if (strcmp(e->opts.windows[i].axis, axis->name) == 0)
            return e->opts.windows[i].size;
    }
    // Iterations of any tile size meet in an element only if those of one index do.
    return e->opts.check && op->kind == OP_PARALLEL ? 1 : e->opts.window;
}

// Elements of lo..hi: up to 2^64 - 1.
static uint64_t range_length(int64_t lo, int64_t hi) {
    return hi > lo ? (uint64_t)hi - (uint64_t)lo : 0;
}

// The distance from begin to end is a number: a range that is empty may end far before it begins.
static Window window_of(Eval *e, const Op *op, const Axis *axis, int64_t begin, int64_t end) {
    Window w = {.bound = true, .begin = begin, .end = end};
    if (range_length(begin, end) > INT64_MAX)
        eval_fail(e, op, "axis %s has more than 2^63 elements", axis->name);
    if (range_length(end, begin) > INT64_MAX)
        w.end = begin;
    w.n = (int64_t)range_length(begin, end);
    return w;
}

static void bind_window(Eval *e, const Op *op, const Axis *axis, int64_t begin, int64_t hi) {
    int64_t size = window_size(e, op, axis);
    bool full = size && range_length(begin, hi) > (uint64_t)size;
    Window w = window_of(e, op, axis, begin, full ? begin + size : hi);
    if (axis->size && !e->exact)
        w.n = axis->size;
    if (e->window[axis->id].bound)
        eval_fail(e, op, "binds axis %s, which is bound around it", axis->name);
    e->window[axis->id] = w;
}

static void unbind(Eval *e, const Op *op) {
    for (int i = 0; i < op->nbinders; i++) {
        if (op->binder[i].axis)
            e->window[op->binder[i].axis->id].bound = false;
    }
}

// One binder's iterations: number i is at lo + i * step, which never leaves lo..hi.
typedef struct Range {
    int64_t lo, hi, step;
    uint64_t count;
} Range;

static Range binder_range(Eval *e, const Op *op, int i) {
    const Binder *b = &op->binder[i];
    check_segment(e, op, op->in[b->first], op->in[b->first + 1]);
    Range r = {eval_int(e, op, op->in[b->first]), eval_int(e, op, op->in[b->first + 1]), 1, 0};
    if (b->has_step)
        r.step = eval_int(e, op, op->in[b->first + 2]);
    else if (b->axis)
        r.step = window_size(e, op, b->axis);
    uint64_t up = range_length(r.lo, r.hi), down = range_length(r.hi, r.lo);
    if (r.step == 0 && b->axis && !b->has_step) // one window over the whole range
        r.count = up > 0;
    else if (r.step == 0) // what makes no progress has no iteration
        check_step(e, op);
    else if (r.step > 0)
        r.count = up / (uint64_t)r.step + (up % (uint64_t)r.step != 0);
    else
        r.count = down / (0 - (uint64_t)r.step) + (down % (0 - (uint64_t)r.step) != 0);
    return r;
}

static void bind(Eval *e, const Op *op, int i, const Range *r, uint64_t at) {
    const Binder *b = &op->binder[i];
    int64_t x = (int64_t)((uint64_t)r->lo + at * (uint64_t)r->step);
    if (b->axis)
        bind_window(e, op, b->axis, x, r->hi);
    else
        eval_set_int(e, op, b->var, x);
}

// --- parallel, launch ---

// Iterations to run, in order: all, or the first, the last and random ones between; shuffled where
// there is a seed.
static int64_t *grid_choose(Eval *e, const Op *op, int64_t total, int64_t *n) {
    int64_t limit = e->opts.max_programs;
    bool all = limit <= 0 || limit >= total;
    *n = all ? total : limit;
    int64_t *chosen = eval_calloc(e, op, *n, sizeof *chosen);
    for (int64_t i = 0; i < *n; i++) {
        if (all || i == 0) {
            chosen[i] = i;
            continue;
        }
        // The i-th of n equal parts: distinct without a table. The last part gives its last.
        int64_t lo = total / *n * i, hi = i + 1 == *n ? total : total / *n * (i + 1);
        chosen[i] = hi - 1;
        if (i + 1 < *n)
            chosen[i] = lo + (int64_t)random_below(e->opts.seed, e->draws++, (uint64_t)(hi - lo));
    }
    for (int64_t i = *n - 1; i > 0 && e->opts.seed; i--) {
        int64_t j = (int64_t)random_below(e->opts.seed, e->draws++, (uint64_t)i + 1), x = chosen[i];
        chosen[i] = chosen[j];
        chosen[j] = x;
    }
    return chosen;
}

static void count_step(Eval *e, const Op *op) {
    if (++e->steps > e->opts.max_steps)
        eval_fail(e, op, "gave up after %lld iterations", (long long)e->opts.max_steps);
}

// n * count, at most INT64_MAX; a range that is empty makes the whole grid so.
static int64_t grid_size(int64_t n, uint64_t count) {
    int64_t size;
    if (n == 0 || count == 0)
        return 0;
    bool large = count > INT64_MAX || __builtin_mul_overflow(n, (int64_t)count, &size);
    return large ? INT64_MAX : size;
}

void eval_parallel(Eval *e, const Op *op) {
    enum { BINDERS_MAX = 16 };
    Range range[BINDERS_MAX];
    int64_t total = 1, n;
    if (op->nbinders > BINDERS_MAX)
        eval_fail(e, op, "has more than %d binders", BINDERS_MAX);
    for (int i = 0; i < op->nbinders; i++) {
        range[i] = binder_range(e, op, i);
        total = grid_size(total, range[i].count);
    }
    if (total == INT64_MAX)
        eval_fail(e, op, "has more than 2^63 iterations");
    int64_t *chosen = grid_choose(e, op, total, &n);
    uint32_t around = e->iteration; // a parallel in a parallel is one grid with it
    if (!around)
        e->grid_first = e->iterations + 1;
    for (int64_t t = 0; t < n; t++) {
        int64_t rest = chosen[t];
        e->iteration = ++e->iterations;
        count_step(e, op);
        for (int i = op->nbinders - 1; i >= 0; i--) { // the last binder is the fastest
            bind(e, op, i, &range[i], (uint64_t)rest % range[i].count);
            rest = (int64_t)((uint64_t)rest / range[i].count);
        }
        check_iteration_start(e, op, around);
        eval_region(e, op->region[0]);
        staging_finish(e);
        eval_region_end(e, op->region[0]);
        unbind(e, op);
    }
    e->iteration = around;
    e->programs += total;
    e->programs_run += n;
    eval_free(e, chosen);
}

// --- regions with values ---

// What a region yields, as new references with the given types; the region is ended.
static void take_yield(Eval *e, const Op *op, const Region *r, int n, Value *const *like,
                       Tile **out, bool *stop) {
    const Op *yield = region_yield(r);
    int has = yield ? yield->nin - yield->has_stop : 0;
    if (has != n)
        eval_fail(e, op, "its region yields %d values, not %d", has, n);
    for (int i = 0; i < n; i++)
        out[i] = tile_broadcast(e, yield, eval_value(e, yield, yield->in[i]), like[i]->type);
    if (stop)
        *stop = yield && yield->has_stop && eval_int(e, yield, yield->in[yield->nin - 1]);
    eval_region_end(e, r);
}

void eval_if(Eval *e, const Op *op) {
    int side = eval_int(e, op, op->in[0]) ? 0 : 1;
    if (side >= op->nregion)
        return;
    Tile **out = eval_calloc(e, op, op->nres, sizeof(Tile *));
    eval_region(e, op->region[side]);
    take_yield(e, op, op->region[side], op->nres, op->res, out, NULL);
    for (int i = 0; i < op->nres; i++)
        eval_set(e, op->res[i], out[i]);
    eval_free(e, out);
}

void eval_with(Eval *e, const Op *op) {
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        int64_t lo = eval_int(e, op, op->in[b->first]), hi = eval_int(e, op, op->in[b->first + 1]);
        if (b->axis)
            bind_window(e, op, b->axis, lo, hi);
        else
            eval_set_int(e, op, b->var, lo);
    }
    Tile **out = eval_calloc(e, op, op->nres, sizeof(Tile *));
    eval_region(e, op->region[0]);
    take_yield(e, op, op->region[0], op->nres, op->res, out, NULL);
    unbind(e, op);
    for (int i = 0; i < op->nres; i++)
        eval_set(e, op->res[i], out[i]);
    eval_free(e, out);
}

// A loop's carried values between iterations.
typedef struct Loop {
    const Op *op;
    Tile **carry; // one reference each, while no iteration runs
    AxisSet lag;
    const Axis *followed[AXES_MAX]; // by each lagging axis
} Loop;

static void loop_start(Eval *e, const Op *op, Loop *l) {
    l->op = op;
    l->carry = eval_calloc(e, op, op->ncarry, sizeof(Tile *));
    for (int i = 0; i < op->ncarry; i++)
        l->carry[i] =
            tile_broadcast(e, op, eval_value(e, op, op_carry_init(op, i)), op->res[i]->type);
}

// Returns whether to stop.
static bool loop_iteration(Eval *e, Loop *l) {
    const Op *op = l->op;
    bool stop;
    count_step(e, op);
    for (int i = 0; i < op->ncarry; i++)
        eval_set(e, op_carry_arg(op, i), l->carry[i]);
    eval_region(e, op->region[0]);
    take_yield(e, op, op->region[0], op->ncarry, op->res, l->carry, &stop);
    return stop;
}

static void loop_end(Eval *e, Loop *l) {
    for (int i = 0; i < l->op->ncarry; i++)
        eval_set(e, l->op->res[i], l->carry[i]);
    eval_free(e, l->carry);
}

// Each lagging axis is bound to the window that the axis of a binder had in the iteration before:
// the last binder that walks the same index space. Before the first iteration it is empty.
static void lag_start(Eval *e, const Op *op, const Range *range, Loop *l) {
    l->lag = op_attr_axes(op, ATTR_lag);
    for (int i = 0; i < l->lag.n; i++) {
        const Axis *axis = e->kernel->axis[l->lag.id[i]];
        int from = -1;
        for (int b = 0; b < op->nbinders; b++) {
            const Axis *walked = op->binder[b].axis;
            if (walked && walked->of == axis->of && walked->size == axis->size)
                from = b;
        }
        if (from < 0)
            eval_fail(e, op, "no binder has windows that axis %s could lag behind", axis->name);
        if (e->window[axis->id].bound)
            eval_fail(e, op, "binds axis %s, which is bound around it", axis->name);
        l->followed[i] = op->binder[from].axis;
        int64_t lo = range[from].lo;
        e->window[axis->id] =
            (Window){.bound = true, .begin = lo, .end = lo, .n = e->exact ? 0 : axis->size};
    }
}

static void lag_step(Eval *e, Loop *l) {
    for (int i = 0; i < l->lag.n; i++)
        e->window[l->lag.id[i]] = e->window[l->followed[i]->id];
}

static void lag_end(Eval *e, Loop *l) {
    for (int i = 0; i < l->lag.n; i++)
        e->window[l->lag.id[i]].bound = false;
}

// The binders from `level` on; returns whether a `stop` ended the loop. An outer binder's variable
// is dropped when an iteration ends, so it is bound again for each.
static bool for_level(Eval *e, Loop *l, int level, const Range *range, uint64_t *at) {
    const Op *op = l->op;
    if (level == op->nbinders) {
        for (int i = 0; i < op->nbinders; i++)
            bind(e, op, i, &range[i], at[i]);
        bool stop = loop_iteration(e, l);
        lag_step(e, l);
        unbind(e, op);
        return stop;
    }
    for (at[level] = 0; at[level] < range[level].count; at[level]++) {
        if (for_level(e, l, level + 1, range, at))
            return true;
    }
    return false;
}

void eval_for(Eval *e, const Op *op) {
    enum { BINDERS_MAX = 16 };
    Range range[BINDERS_MAX];
    uint64_t at[BINDERS_MAX];
    if (op->nbinders > BINDERS_MAX)
        eval_fail(e, op, "has more than %d binders", BINDERS_MAX);
    for (int i = 0; i < op->nbinders; i++)
        range[i] = binder_range(e, op, i);
    Loop l;
    lag_start(e, op, range, &l);
    loop_start(e, op, &l);
    for_level(e, &l, 0, range, at);
    loop_end(e, &l);
    lag_end(e, &l);
}

void eval_while(Eval *e, const Op *op) {
    Loop l;
    loop_start(e, op, &l);
    while (!loop_iteration(e, &l))
        continue;
    loop_end(e, &l);
}

// --- axes and orders ---

// A fixed window is bound here, until the op runs again; other axes are bound by regions.
void eval_axis_op(Eval *e, const Op *op) {
    const Axis *axis = op->axes[0];
    if (!axis->lo)
        return;
    check_segment(e, op, axis->lo, axis->hi);
    Window w = window_of(e, op, axis, eval_int(e, op, axis->lo), eval_int(e, op, axis->hi));
    if (axis->size && !e->exact) {
        if (w.n > axis->size)
            eval_fail(e, op, "axis %s has %lld elements, more than its size %u", axis->name,
                      (long long)w.n, axis->size);
        w.n = axis->size;
    }
    e->window[axis->id] = w;
}

// The t-th tile of a grid; any bijection would be right, `grouped` is the usual one: `group` rows
// at a time, in a group column by column.
void eval_order(Eval *e, const Op *op) {
    int n = op->nin - 1;
    int64_t t = eval_int(e, op, op->in[0]), total = 1, count[AXES_MAX], at[AXES_MAX] = {0};
    if (n < 1 || n > AXES_MAX || op->nres != n)
        eval_fail(e, op, "has %d counts for %d results", n, op->nres);
    for (int i = 0; i < n; i++) {
        count[i] = eval_int(e, op, op->in[1 + i]);
        total *= count[i];
    }
    if (t < 0 || t >= total)
        eval_fail(e, op, "tile %lld of %lld", (long long)t, (long long)total);
    if (op->sub == ORDER_LONGEST)
        t = total - 1 - t;
    int64_t group = op_attr_int(op, ATTR_group);
    int rest = n - 1;
    if (op->sub == ORDER_GROUPED && n >= 2 && group > 1) {
        int64_t rows = count[n - 2], cols = count[n - 1], u = t % (rows * cols);
        int64_t first = u / (group * cols) * group;
        int64_t height = rows - first < group ? rows - first : group;
        at[n - 2] = first + u % (group * cols) % height;
        at[n - 1] = u % (group * cols) / height;
        t /= rows * cols;
        rest = n - 3;
    }
    for (int i = rest; i >= 0; i--) {
        at[i] = t % count[i];
        t /= count[i];
    }
    for (int i = 0; i < n; i++)
        eval_set_int(e, op, op->res[i], at[i]);
}

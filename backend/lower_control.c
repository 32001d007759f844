// Control flow: loops over windows, ifs, windows given by `with`, orders of tiles.
//
// Input: ops with regions. Output: LLVM blocks; carried tiles become one phi per register.
// Invariant: inside a region its axes are bound; afterwards their former binding is back.
#include "backend/lower.h"

// --- carried values as flat lists of registers ---

static int flat_count(int n, Value *const *v) {
    int count = 0;
    for (int i = 0; i < n; i++)
        count += type_registers(v[i]->type);
    return count;
}

// `like` gives the layouts.
static LLVMValueRef *flatten(Lower *l, int n, Value *const *from, Value *const *like) {
    LLVMValueRef *out = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)flat_count(n, like) + 1);
    int at = 0;
    for (int i = 0; i < n; i++) {
        lower_flatten(l, from[i], like[i]->type, out + at);
        at += type_registers(like[i]->type);
    }
    return out;
}

static void unflatten(Lower *l, int n, Value *const *to, const LLVMValueRef *in) {
    int at = 0;
    for (int i = 0; i < n; i++) {
        Tile *tile = lower_result(l, to[i]);
        for (int r = 0; r < tile->n; r++)
            tile->reg[r] = in[at++];
    }
}

static Value **carried_args(Lower *l, const Op *op) {
    Value **args = ARENA_ARRAY(l->arena, Value *, (size_t)op->ncarry + 1);
    for (int i = 0; i < op->ncarry; i++)
        args[i] = op_carry_arg(op, i);
    return args;
}

static Value **carried_inits(Lower *l, const Op *op) {
    Value **inits = ARENA_ARRAY(l->arena, Value *, (size_t)op->ncarry + 1);
    for (int i = 0; i < op->ncarry; i++)
        inits[i] = op_carry_init(op, i);
    return inits;
}

// --- windows ---

static Uni uni_min(Target *t, Uni a, Uni b) {
    LLVMValueRef less = LLVMBuildICmp(t->builder, LLVMIntSLT, a.v, b.v, "");
    return (Uni){LLVMBuildSelect(t->builder, less, a.v, b.v, "")};
}

// min(begin + size, hi) for any numbers, where begin + size may not be one.
static Uni window_end_exact(Target *t, Uni begin, Uni hi, Uni end) {
    LLVMBuilderRef b = t->builder;
    LLVMValueRef left = LLVMBuildSub(b, hi.v, begin.v, "");
    LLVMValueRef size = LLVMBuildSub(b, end.v, begin.v, "");
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntSGT, hi.v, begin.v, "");
    LLVMValueRef full = LLVMBuildICmp(b, LLVMIntUGT, left, size, "");
    full = LLVMBuildAnd(b, some, full, "");
    // Of a range without elements, end - begin must not look like some.
    LLVMValueRef is_far = LLVMBuildICmp(b, LLVMIntSGT, left, LLVMConstNull(LLVMTypeOf(left)), "");
    is_far = LLVMBuildAnd(b, LLVMBuildNot(b, some, ""), is_far, "");
    LLVMValueRef last = LLVMBuildSelect(b, is_far, begin.v, hi.v, "");
    return (Uni){LLVMBuildSelect(b, full, end.v, last, "")};
}

// `lo_value` and `hi_value`: begin lies between them.
static Window window_at(Lower *l, const Axis *axis, Uni begin, Uni hi, const Value *lo_value,
                        const Value *hi_value) {
    uint32_t size = axis_size_of(axis);
    Window w = {.begin = begin, .end = hi, .divisor = 1};
    w.bits = window_bits(l, lo_value, hi_value);
    w.moderate = lower_is_moderate(l, hi_value);
    w.nonneg = lower_nonneg(l, lo_value);
    w.wraps = !lower_nonneg_exact(l, lo_value);
    Uni full = size ? uni_add(l->t, begin, uni_int(l->t, 64, size)) : hi;
    if (size)
        w.end = w.moderate ? uni_min(l->t, full, hi) : window_end_exact(l->t, begin, hi, full);
    return w;
}

// What divides the end of a window: min(begin + size, hi).
static uint32_t end_divisor(Lower *l, const Axis *axis, uint32_t begin_divisor, const Value *hi) {
    uint32_t size = axis_size_of(axis), d = lower_divisor(l, hi);
    uint32_t s = size & (~size + 1);
    if (size)
        d = d < s ? d : s;
    return d < begin_divisor ? d : begin_divisor;
}

static uint32_t power_of(uint64_t x) {
    uint64_t low = x & (~x + 1);
    return low == 0 || low > (UINT64_C(1) << 30) ? UINT32_C(1) << 30 : (uint32_t)low;
}

// --- for ---

enum { LOOP_RANGES_MAX = 8 };

// One range of a loop while it is open.
typedef struct Range {
    const Binder *binder;
    const Value *lo_value, *hi_value, *step_value; // step NULL: the tile's size, or 1
    Uni lo, hi, step;
    int bits;
    bool exact; // lo + n * step may leave its type before it has reached hi
    LoopState loop;
    Window saved;
} Range;

// The loop over the tiles of a persistent grid: its step is the number of programs, which is less
// than 2^31, so that it ends long before 2^63 however many tiles there are: no program walks 2^32.
static bool is_persistent_walk(const Lower *l, const Range *r) {
    const Value *programs = l->launch->in[1];
    const Op *least = programs->kind == VALUE_OP ? programs->def : NULL;
    if (r->step_value != programs || !least || least->kind != OP_MIN)
        return false;
    const Value *fit = least->in[1];
    while (fit->kind == VALUE_OP && fit->def->nin > 0)
        fit = fit->def->in[0];
    return fit->kind == VALUE_OP && fit->def->kind == OP_SMS;
}

// What has not reached hi can take a step more without leaving its type.
static bool step_stays_in_type(Lower *l, const Range *r) {
    if (is_persistent_walk(l, r))
        return true;
    if (!LLVMIsAConstantInt(r->step.v))
        return false;
    int64_t step = LLVMConstIntGetSExtValue(r->step.v);
    if (step == 1 || step == -1)
        return true;
    if (r->bits < 64 || step == 0 || step > INT64_C(1) << 31 || step < -(INT64_C(1) << 31))
        return false;
    return step > 0 ? lower_is_moderate(l, r->hi_value) : lower_bits(l, r->hi_value) <= 62;
}

static Range range_of(Lower *l, const Op *op, int i) {
    Target *t = l->t;
    const Binder *binder = &op->binder[i];
    Range r = {.binder = binder, .lo_value = op_binder_lo(op, i), .hi_value = op_binder_hi(op, i)};
    r.bits = binder->axis ? 64 : (int)dtype_bits(binder->var->type.dtype);
    r.lo = uni_resize(t, lower_index(l, r.lo_value), r.bits, true);
    r.hi = uni_resize(t, lower_index(l, r.hi_value), r.bits, true);
    int64_t size = binder->axis ? (int64_t)axis_size_of(binder->axis) : 1;
    r.step = uni_int(t, r.bits, size ? size : INT64_MAX / 2);
    if (binder->has_step) {
        r.step_value = op->in[binder->first + 2];
        r.step = uni_resize(t, lower_index(l, r.step_value), r.bits, true);
    }
    r.exact = !step_stays_in_type(l, &r);
    return r;
}

// The variable, or the axis's window, of the iteration at `at`.
static void range_bind(Lower *l, const Range *r, Uni at) {
    const Axis *axis = r->binder->axis;
    if (!axis) {
        lower_result(l, r->binder->var)->reg[0] = at.v;
        return;
    }
    Window w = window_at(l, axis, at, r->hi, r->lo_value, r->hi_value);
    uint32_t d = lower_divisor(l, r->lo_value), s = power_of(axis_size_of(axis));
    if (r->step_value)
        s = lower_divisor(l, r->step_value);
    w.divisor = d < s ? d : s;
    w.end_divisor = end_divisor(l, axis, w.divisor, r->hi_value);
    w.nonneg &= !r->step_value;
    l->window[axis->id] = w;
}

// All of its iterations from `lo` on.
static void range_begin_rest(Lower *l, Range *r, Uni lo, int n, const LLVMValueRef *init) {
    if (r->binder->axis)
        r->saved = l->window[r->binder->axis->id];
    (r->exact ? loop_begin_exact : loop_begin)(l->t, &r->loop, lo, r->hi, r->step, n, init);
    range_bind(l, r, r->loop.at);
}

static void range_end(Lower *l, Range *r, Uni step, const LLVMValueRef *next, Uni stop) {
    if (r->binder->axis)
        l->window[r->binder->axis->id] = r->saved;
    loop_end(l->t, &r->loop, step, next, stop);
}

// A loop's body once: carried registers `now` (the last is the stop flag) => those of the next
// iteration.
static LLVMValueRef *loop_body(Lower *l, const Op *op, int n, const LLVMValueRef *now) {
    Value **args = carried_args(l, op);
    unflatten(l, op->ncarry, args, now);
    l->loop_depth++;
    const Op *yield = lower_region(l, op->region[0]);
    l->loop_depth--;
    LLVMValueRef *next = NULL;
    if (yield && !l->t->failed)
        next = flatten(l, op->ncarry, yield->in, args);
    else
        next = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n + 1);
    next[n] = LLVMConstInt(target_int(l->t, 1), 0, false);
    if (yield && yield->has_stop && !l->t->failed)
        next[n] = lower_uni(l, yield->in[yield->nin - 1]).v;
    return next;
}

// The innermost range: its body once in an iteration. Returns the registers after it.
static LLVMValueRef *range_walk(Lower *l, const Op *op, Range *r, Uni lo, int n,
                                const LLVMValueRef *now) {
    range_begin_rest(l, r, lo, n + 1, now);
    LLVMValueRef *next = loop_body(l, op, n, r->loop.phi);
    if (!l->t->failed)
        range_end(l, r, r->step, next, (Uni){next[n]});
    return r->loop.phi;
}

// `times` iterations at once, without a test between them, as long as so many are left.
static LLVMValueRef *range_walk_unrolled(Lower *l, const Op *op, Range *r, int times, int n,
                                         LLVMValueRef *now) {
    Target *t = l->t;
    LLVMBuilderRef b = t->builder;
    Uni all = uni_mul(t, r->step, uni_int(t, r->bits, times));
    LLVMValueRef zero = uni_int(t, r->bits, 0).v, length = LLVMBuildSub(b, r->hi.v, r->lo.v, "");
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntSGT, r->hi.v, r->lo.v, "");
    length = LLVMBuildSelect(b, some, length, zero, "");
    LLVMValueRef groups = LLVMBuildUDiv(b, length, all.v, "");
    Uni end = uni_add(t, r->lo, (Uni){LLVMBuildMul(b, groups, all.v, "")});
    if (r->binder->axis)
        r->saved = l->window[r->binder->axis->id];
    loop_begin(t, &r->loop, r->lo, end, all, n + 1, now);
    const LLVMValueRef *at = r->loop.phi;
    LLVMValueRef *next = NULL;
    for (int i = 0; i < times && !t->failed; i++) {
        Uni skipped = uni_mul(t, r->step, uni_int(t, r->bits, i));
        range_bind(l, r, uni_add(t, r->loop.at, skipped));
        next = loop_body(l, op, n, at);
        at = next;
    }
    if (!t->failed)
        range_end(l, r, all, next, (Uni){NULL});
    return t->failed ? now : range_walk(l, op, r, end, n, r->loop.phi);
}

// How often the body is repeated: `unroll`, of a loop that counts up by a known step and that no
// `stop` leaves.
static int unroll_times(const Op *op, const Range *r) {
    const Op *yield = region_yield(op->region[0]);
    bool known = !r->binder->axis || axis_size_of(r->binder->axis) > 0;
    if (r->step_value)
        known = value_is_const(r->step_value) && r->step_value->u.i > 0 &&
                r->step_value->u.i < INT64_C(1) << r->bits / 2;
    int64_t times = op_attr_int(op, ATTR_unroll);
    if (!known || (yield && yield->has_stop) || times < 1)
        return 1;
    return times > 32 ? 32 : (int)times;
}

void lower_for(Lower *l, const Op *op) {
    Target *t = l->t;
    if (op->nbinders > LOOP_RANGES_MAX || op->nbinders < 1) {
        target_fail(t, "a loop over %d ranges", op->nbinders);
        return;
    }
    if (op_attr_axes(op, ATTR_lag).n) {
        target_fail(t, "not supported yet: an axis of the window before");
        return;
    }
    Value **args = carried_args(l, op);
    int n = flat_count(op->ncarry, args), last = op->nbinders - 1;
    LLVMValueRef *now = flatten(l, op->ncarry, carried_inits(l, op), args);
    now[n] = LLVMConstInt(target_int(t, 1), 0, false);
    Range range[LOOP_RANGES_MAX];
    for (int i = 0; i < last; i++) {
        range[i] = range_of(l, op, i);
        // The flag of an inner `stop` leaves the outer loops too.
        range_begin_rest(l, &range[i], range[i].lo, n + 1, now);
        now = range[i].loop.phi;
    }
    Range *inner = &range[last];
    *inner = range_of(l, op, last);
    int times = unroll_times(op, inner);
    LLVMValueRef *next = times > 1 ? range_walk_unrolled(l, op, inner, times, n, now)
                                   : range_walk(l, op, inner, inner->lo, n, now);
    for (int i = last; i-- > 0 && !t->failed;) {
        range_end(l, &range[i], range[i].step, next, (Uni){next[n]});
        next = range[i].loop.phi;
    }
    if (!t->failed)
        unflatten(l, op->nres, op->res, next);
}

// Runs until a `stop`.
void lower_while(Lower *l, const Op *op) {
    Target *t = l->t;
    Value **args = carried_args(l, op);
    int n = flat_count(op->ncarry, args);
    LLVMValueRef *init = flatten(l, op->ncarry, carried_inits(l, op), args);
    LoopState loop;
    Uni none = {NULL};
    loop_begin(t, &loop, none, none, none, n, init);
    unflatten(l, op->ncarry, args, loop.phi);
    l->loop_depth++;
    const Op *yield = lower_region(l, op->region[0]);
    l->loop_depth--;
    if (t->failed)
        return;
    if (!yield || !yield->has_stop) {
        target_fail(t, "a `while` without `stop`");
        return;
    }
    LLVMValueRef *next = flatten(l, op->ncarry, yield->in, args);
    loop_end(t, &loop, none, next, lower_uni(l, yield->in[yield->nin - 1]));
    unflatten(l, op->nres, op->res, loop.phi);
}

void lower_if(Lower *l, const Op *op) {
    Target *t = l->t;
    IfState s;
    int n = flat_count(op->nres, op->res);
    if_begin(t, &s, lower_uni(l, op->in[0]));
    const Op *yield = lower_region(l, op->region[0]);
    if (t->failed)
        return;
    LLVMValueRef *yes = flatten(l, yield ? op->nres : 0, yield ? yield->in : NULL, op->res);
    if_else(t, &s);
    yield = op->nregion > 1 ? lower_region(l, op->region[1]) : NULL;
    if (t->failed)
        return;
    LLVMValueRef *no = flatten(l, yield ? op->nres : 0, yield ? yield->in : NULL, op->res);
    LLVMValueRef *out = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n + 1);
    if_end(t, &s, n, yes, no, out);
    unflatten(l, op->nres, op->res, out);
}

// --- with ---

void lower_with(Lower *l, const Op *op) {
    Window saved[AXES_MAX];
    if (op->nbinders > AXES_MAX) {
        target_fail(l->t, "`with` of %d windows", op->nbinders);
        return;
    }
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *binder = &op->binder[i];
        const Value *lo = op_binder_lo(op, i), *hi = op_binder_hi(op, i);
        if (!binder->axis) {
            lower_result(l, binder->var)->reg[0] =
                uni_resize(l->t, lower_index(l, lo), (int)dtype_bits(binder->var->type.dtype), true)
                    .v;
            continue;
        }
        Window w = window_at(l, binder->axis, lower_index(l, lo), lower_index(l, hi), lo, hi);
        w.divisor = lower_divisor(l, lo);
        w.end_divisor = end_divisor(l, binder->axis, w.divisor, hi);
        saved[i] = l->window[binder->axis->id];
        l->window[binder->axis->id] = w;
    }
    Value **args = carried_args(l, op);
    LLVMValueRef *init = flatten(l, op->ncarry, carried_inits(l, op), args);
    unflatten(l, op->ncarry, args, init);
    const Op *yield = lower_region(l, op->region[0]);
    if (!l->t->failed && yield)
        unflatten(l, op->nres, op->res, flatten(l, op->nres, yield->in, op->res));
    for (int i = 0; i < op->nbinders; i++) {
        if (op->binder[i].axis)
            l->window[op->binder[i].axis->id] = saved[i];
    }
}

// An axis with a window of its own has it from here on.
void lower_axis(Lower *l, const Op *op) {
    const Axis *axis = op->axes[0];
    if (!axis->lo || !axis->hi)
        return;
    Window w =
        window_at(l, axis, lower_index(l, axis->lo), lower_index(l, axis->hi), axis->lo, axis->hi);
    w.divisor = lower_divisor(l, axis->lo);
    w.end_divisor = end_divisor(l, axis, w.divisor, axis->hi);
    l->window[axis->id] = w;
}

// --- order: the t-th tile of a grid ---

static void order_row(Lower *l, const Op *op, LLVMValueRef t) {
    LLVMBuilderRef b = l->t->builder;
    for (int i = op->nres; i-- > 0;) {
        LLVMValueRef index = t;
        if (i > 0) {
            LLVMValueRef count = lower_index(l, op->in[1 + i]).v;
            index = LLVMBuildSRem(b, t, count, "");
            t = LLVMBuildSDiv(b, t, count, "");
        }
        lower_result(l, op->res[i])->reg[0] = index;
    }
}

// Groups of `group` rows; inside a group all rows of one column before the next column. Counts
// before the last two are slowest.
static void order_grouped(Lower *l, const Op *op, LLVMValueRef t) {
    LLVMBuilderRef b = l->t->builder;
    int n = op->nres;
    int64_t group = op_attr_int(op, ATTR_group);
    LLVMValueRef rows = lower_index(l, op->in[1 + n - 2]).v, cols = lower_index(l, op->in[n]).v;
    LLVMValueRef size = uni_int(l->t, 64, group).v;
    LLVMValueRef plane = LLVMBuildMul(b, rows, cols, "");
    LLVMValueRef in_plane = n > 2 ? LLVMBuildSRem(b, t, plane, "") : t;
    LLVMValueRef rest = n > 2 ? LLVMBuildSDiv(b, t, plane, "") : NULL;
    LLVMValueRef span = LLVMBuildMul(b, size, cols, "");
    LLVMValueRef first = LLVMBuildMul(b, LLVMBuildSDiv(b, in_plane, span, ""), size, "");
    LLVMValueRef at = LLVMBuildSRem(b, in_plane, span, "");
    Uni height = uni_min(l->t, (Uni){LLVMBuildSub(b, rows, first, "")}, (Uni){size});
    LLVMValueRef row = LLVMBuildAdd(b, first, LLVMBuildSRem(b, at, height.v, ""), "");
    lower_result(l, op->res[n - 2])->reg[0] = row;
    lower_result(l, op->res[n - 1])->reg[0] = LLVMBuildSDiv(b, at, height.v, "");
    for (int i = n - 2; i-- > 0;) {
        LLVMValueRef count = lower_index(l, op->in[1 + i]).v;
        lower_result(l, op->res[i])->reg[0] = i > 0 ? LLVMBuildSRem(b, rest, count, "") : rest;
        rest = LLVMBuildSDiv(b, rest, count, "");
    }
}

void lower_order(Lower *l, const Op *op) {
    LLVMBuilderRef b = l->t->builder;
    LLVMValueRef t = lower_index(l, op->in[0]).v;
    if (op->sub == ORDER_LONGEST) {
        // from the last tile to the first
        Uni total = uni_int(l->t, 64, 1);
        for (int i = 0; i < op->nres; i++)
            total = uni_mul(l->t, total, lower_index(l, op->in[1 + i]));
        t = LLVMBuildSub(b, LLVMBuildSub(b, total.v, uni_int(l->t, 64, 1).v, ""), t, "");
    }
    if (op->sub == ORDER_GROUPED && op->nres >= 2 && op_attr_int(op, ATTR_group) > 1)
        order_grouped(l, op, t);
    else
        order_row(l, op, t);
}

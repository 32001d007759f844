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

static Window window_at(Lower *l, const Axis *axis, Uni begin, Uni hi) {
    uint32_t size = axis_size_of(axis);
    Uni end = hi;
    if (size)
        end = uni_min(l->t, uni_add(l->t, begin, uni_int(l->t, 64, size)), hi);
    return (Window){.begin = begin, .end = end, .divisor = 1};
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

typedef struct Nest {
    LoopState loop[8];
    Uni step[8];
    Window saved[8];
} Nest;

static bool nest_open(Lower *l, const Op *op, Nest *nest, int ncarry, LLVMValueRef *init) {
    Target *t = l->t;
    int extra = ncarry + 1; // carried registers and the stop flag
    LLVMValueRef *now = init;
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *binder = &op->binder[i];
        const Value *lo_value = op_binder_lo(op, i), *hi_value = op_binder_hi(op, i);
        bool is_axis = binder->axis != NULL;
        int bits = is_axis ? 64 : (int)dtype_bits(binder->var->type.dtype);
        Uni lo = uni_resize(t, lower_index(l, lo_value), bits, true);
        Uni hi = uni_resize(t, lower_index(l, hi_value), bits, true);
        int64_t size = is_axis ? (int64_t)axis_size_of(binder->axis) : 1;
        Uni step = uni_int(t, bits, size ? size : INT64_MAX / 2);
        if (binder->has_step)
            step = uni_resize(t, lower_index(l, op->in[binder->first + 2]), bits, true);
        nest->step[i] = step;
        loop_begin(t, &nest->loop[i], lo, hi, step, extra, now);
        // The flag of an inner `stop` leaves the outer loops too.
        now = nest->loop[i].phi;
        Uni counter = {nest->loop[i].counter};
        if (is_axis) {
            nest->saved[i] = l->window[binder->axis->id];
            Window w = window_at(l, binder->axis, counter, hi);
            uint32_t d = lower_divisor(l, lo_value), s = power_of((uint64_t)(size ? size : 0));
            if (binder->has_step)
                s = lower_divisor(l, op->in[binder->first + 2]);
            w.divisor = d < s ? d : s;
            w.end_divisor = end_divisor(l, binder->axis, w.divisor, op->in[binder->first + 1]);
            w.nonneg = lower_nonneg(l, lo_value);
            l->window[binder->axis->id] = w;
        } else {
            lower_result(l, binder->var)->reg[0] = counter.v;
        }
    }
    return true;
}

void lower_for(Lower *l, const Op *op) {
    Target *t = l->t;
    if (op->nbinders > 8 || op->nbinders < 1) {
        target_fail(t, "a loop over %d ranges", op->nbinders);
        return;
    }
    Value **args = carried_args(l, op);
    int n = flat_count(op->ncarry, args);
    LLVMValueRef *init = flatten(l, op->ncarry, carried_inits(l, op), args);
    init[n] = LLVMConstInt(target_int(t, 1), 0, false);
    Nest nest;
    nest_open(l, op, &nest, n, init);
    const LoopState *inner = &nest.loop[op->nbinders - 1];
    unflatten(l, op->ncarry, args, inner->phi);
    l->loop_depth++;
    const Op *yield = lower_region(l, op->region[0]);
    l->loop_depth--;
    if (t->failed)
        return;
    LLVMValueRef *next;
    Uni stop = {LLVMConstInt(target_int(t, 1), 0, false)};
    if (yield) {
        next = flatten(l, op->ncarry, yield->in, args);
        if (yield->has_stop)
            stop = lower_uni(l, yield->in[yield->nin - 1]);
    } else {
        next = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n + 1);
    }
    next[n] = stop.v;
    for (int i = op->nbinders; i-- > 0;) {
        if (op->binder[i].axis)
            l->window[op->binder[i].axis->id] = nest.saved[i];
        loop_end(t, &nest.loop[i], nest.step[i], next, stop);
        next = nest.loop[i].phi;
        stop.v = nest.loop[i].phi[n];
    }
    unflatten(l, op->nres, op->res, nest.loop[0].phi);
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
        Window w = window_at(l, binder->axis, lower_index(l, lo), lower_index(l, hi));
        w.divisor = lower_divisor(l, lo);
        w.end_divisor = end_divisor(l, binder->axis, w.divisor, hi);
        w.nonneg = lower_nonneg(l, lo);
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
    Window w = window_at(l, axis, lower_index(l, axis->lo), lower_index(l, axis->hi));
    w.divisor = lower_divisor(l, axis->lo);
    w.end_divisor = end_divisor(l, axis, w.divisor, axis->hi);
    w.nonneg = lower_nonneg(l, axis->lo);
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

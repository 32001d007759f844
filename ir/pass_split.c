// Pass split: a loop that only sums up, cut into parts that run side by side, as the schedule's
// `split(k) = n` asks.
//
// In and out: stage nests, before variants, so that both nests are made for each. The parts are
// summed in a fixed order from a temp, by a nest of its own: results do not depend on which part is
// done first.
//
//   parallel m in 0..%M { PRE; %s = for k in %lo..%hi carry (%a = %init) { .. yield %a + .. }; POST
//   }
//   => @part = temp : f32[n, %M]
//      parallel %p in 0..n, m in 0..%M {
//        PRE; %c = cdiv (%hi - %lo), n * unit * unit; %b = %lo + %p * %c
//        %s = for k in %b..min(%hi, %b + %c) carry (%a = 0) { .. yield %a + .. }
//        store @part[%p, m], %s }
//      axis m.1 of M
//      parallel m.1 in 0..%M {split = n} {
//        PRE; %s = for %p in 0..n carry (%a = %init) { yield %a + load @part[%p, m.1] }; POST }
//
// What of PRE a nest does not need, pass simplify drops. A part begins at a multiple of `unit`, the
// size that the loop's axis has in the text or in the schedule, so that alignment is known and
// tiles are whole.
//
// Legal where what the loop carries is sums alone: each value that comes out of it is the one that
// went in with something added that does not depend on what is carried.
#include "ir/nest.h"
#include "ir/remark.h"

#include <string.h>

enum { PRODUCT_UNIT = 64, OTHER_UNIT = 512, BINDERS_MAX = 16, CARRY_MAX = 64, UNROLL_MOST = 8 };

typedef struct Split {
    PassCtx *ctx;
    Kernel *k;
    const ScheduleEntry *entry;
    Op *par, *loop;
    int range; // of the loop
    bool found, failed;
} Split;

static void refuse(Split *s, Span at, const char *what) {
    Diag *d = diag_add(s->ctx->diags, DIAG_BAD_SCHEDULE, s->entry->span, "`split(%s)`: %s",
                       s->entry->of, what);
    if (at.begin != at.end)
        diag_note(s->ctx->diags, d, at, "this is the loop");
    s->failed = true;
}

// --- which loop ---

static bool has_name(Split *s, const Binder *b) {
    if (!b->axis)
        return strcmp(written_name(s->ctx->scratch, b->var->name), s->entry->of) == 0;
    for (const Axis *a = b->axis; a; a = a->of)
        if (strcmp(written_name(s->ctx->scratch, a->name), s->entry->of) == 0)
            return true;
    return false;
}

static int range_with_name(Split *s, const Op *op) {
    for (int i = 0; op->kind == OP_FOR && i < op->nbinders; i++)
        if (has_name(s, &op->binder[i]))
            return i;
    return -1;
}

static void find_loop(void *user, Op *op) {
    Split *s = user;
    int range = s->loop ? -1 : range_with_name(s, op);
    if (range < 0)
        return;
    s->loop = op;
    s->range = range;
}

// --- sums alone ---

typedef struct Sums {
    const Kernel *k;
    uint8_t *of;     // by value id: 1 + the number of the carried value that it has added to
    const Op *wrong; // the first op that does something else with one
} Sums;

static int sum_of(const Sums *s, const Value *v) {
    return s->of[v->id];
}

static void sums_region(Sums *s, const Region *r);

// The operand that `op` adds to: its number, -1 where it adds to none.
static int addend(const Sums *s, const Op *op) {
    int at = -1;
    for (int i = 0; i < op->nin; i++) {
        if (!sum_of(s, op->in[i]))
            continue;
        if (at >= 0)
            return -1;
        at = i;
    }
    bool adds = op->kind == OP_ADD || (op->kind == OP_SUB && at == 0) ||
                (op->kind == OP_FMA && at == 2) || (op->kind == OP_DOT && at == 2);
    return adds && op->res[0]->type.dtype == op->in[at]->type.dtype ? at : -1;
}

// What regions yield in the places of `out`: sums of one carried value in all of them.
static void sums_yield(Sums *s, const Op *op, int nout, Value *const *out) {
    for (int i = 0; i < nout; i++) {
        int of = -1;
        for (int r = 0; r < op->nregion; r++) {
            const Op *y = region_yield(op->region[r]);
            int one = y && i < y->nin ? sum_of(s, y->in[i]) : 0;
            of = of < 0 || of == one ? one : 0;
            if (one != of || (one == 0 && of > 0))
                s->wrong = s->wrong ? s->wrong : op;
        }
        s->of[out[i]->id] = (uint8_t)(of > 0 ? of : 0);
    }
}

static void sums_loop(Sums *s, const Op *op) {
    for (int i = 0; i < op->ncarry; i++)
        s->of[op_carry_arg(op, i)->id] = s->of[op_carry_init(op, i)->id];
    sums_region(s, op->region[0]);
    const Op *y = region_yield(op->region[0]);
    for (int i = 0; i < op->ncarry; i++) {
        int of = s->of[op_carry_init(op, i)->id];
        if (y && of != sum_of(s, y->in[i]))
            s->wrong = s->wrong ? s->wrong : op;
        s->of[op->res[i]->id] = (uint8_t)of;
    }
}

static bool uses_sums(const Sums *s, const Op *op, int n) {
    for (int i = 0; i < n; i++)
        if (sum_of(s, op->in[i]))
            return true;
    return false;
}

static void sums_op(Sums *s, const Op *op) {
    bool is_loop = op->kind == OP_FOR || op->kind == OP_WHILE;
    if (op->kind == OP_YIELD) {
        if (op->has_stop && sum_of(s, op->in[op->nin - 1]))
            s->wrong = op;
        return;
    }
    if (uses_sums(s, op, op->nin - (is_loop ? op->ncarry : 0))) {
        int at = op->nres == 1 && op->nregion == 0 ? addend(s, op) : -1;
        if (at < 0)
            s->wrong = op;
        else
            s->of[op->res[0]->id] = s->of[op->in[at]->id];
        return;
    }
    if (is_loop) {
        sums_loop(s, op);
    } else if (op->nregion > 0 && !op_has(op->kind, TRAIT_FUNCTION)) {
        for (int i = 0; i < op->nregion; i++)
            sums_region(s, op->region[i]);
        sums_yield(s, op, op->nres, op->res);
    }
}

static void sums_region(Sums *s, const Region *r) {
    for (const Op *op = r->first; op && !s->wrong; op = op->next)
        sums_op(s, op);
}

// The op that makes it something else than sums; NULL: there is none. *which: the carried value.
static const Op *not_a_sum(Split *s, int *which) {
    const Op *loop = s->loop;
    Sums sums = {.k = s->k, .of = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1)};
    for (int i = 0; i < loop->ncarry; i++)
        sums.of[op_carry_arg(loop, i)->id] = (uint8_t)(i + 1);
    sums_region(&sums, loop->region[0]);
    const Op *y = region_yield(loop->region[0]);
    *which = -1;
    for (int i = 0; sums.wrong && i < sums.wrong->nin && *which < 0; i++)
        *which = sum_of(&sums, sums.wrong->in[i]) - 1;
    if (sums.wrong)
        return sums.wrong;
    for (int i = 0; i < loop->ncarry; i++)
        if (sum_of(&sums, y->in[i]) != i + 1) {
            *which = i;
            return y;
        }
    return NULL;
}

// --- what else forbids it ---

static void find_write(void *user, Op *op) {
    bool *writes = user;
    *writes |= op_has(op->kind, TRAIT_WRITES);
}

static bool writes_until_end_of_loop(const Split *s) {
    bool writes = false;
    for (Op *op = s->par->region[0]->first; op && op != s->loop->next; op = op->next) {
        find_write(&writes, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], find_write, &writes);
    }
    return writes;
}

static bool is_outside(const Split *s, const Value *v) {
    if (v->kind == VALUE_OP)
        return !op_is_in(v->def, s->par->region[0]);
    return v->kind != VALUE_ARG || !region_contains(s->par->region[0], v->region);
}

static bool is_grid_axis(const Split *s, const Axis *a) {
    for (int i = 0; i < s->par->nbinders; i++)
        if (s->par->binder[i].axis == a)
            return true;
    return false;
}

static Value *axis_lo(const Axis *a) {
    return a->is_dim ? NULL : a->lo;
}

static Value *axis_hi(const Axis *a) {
    return a->is_dim ? a->extent : a->hi;
}

// NULL, or why the sums cannot be kept in memory.
static const char *why_not_kept(const Split *s, AxisSet axes) {
    int rank = 1 + s->par->nbinders;
    for (int i = 0; i < s->par->nbinders; i++) {
        const Axis *a = s->par->binder[i].axis;
        if (a && !axes_has(axes, a->id))
            return arena_printf(s->ctx->scratch, "what the loop carries does not extend along `%s`",
                                a->name);
    }
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = s->k->axis[axes.id[i]];
        const Value *lo = axis_lo(a), *hi = axis_hi(a);
        if (is_grid_axis(s, a))
            continue;
        rank++;
        if (a->like || !hi || !is_outside(s, hi) || (lo && !is_outside(s, lo)))
            return arena_printf(s->ctx->scratch,
                                "the extent of `%s`, along which the loop's sums "
                                "lie, is not known at launch",
                                a->name);
    }
    return rank > RANK_MAX ? "the loop's sums have too many axes" : NULL;
}

static const char *carried_name(const Split *s, int which) {
    const Value *v = op_carry_arg(s->loop, which);
    return v->name ? written_name(s->ctx->scratch, v->name) : "a value";
}

static bool check_loop(Split *s) {
    const Op *loop = s->loop, *y = region_yield(loop->region[0]);
    const Binder *b = &loop->binder[s->range];
    Arena *a = s->ctx->scratch;
    int which = -1;
    const char *why = NULL;
    if (loop->parent != s->par->region[0])
        why = "the loop is in another loop or condition of its nest";
    else if (loop->ncarry == 0 || loop->ncarry > CARRY_MAX)
        why = "the loop carries no sums";
    else if (y->has_stop)
        why = "a `break` may leave the loop";
    else if (b->has_step &&
             !(value_is_const(loop->in[b->first + 2]) && loop->in[b->first + 2]->u.i > 0))
        why = "the loop's step is not a positive number";
    else if (b->has_step && loop->in[b->first + 2]->u.i > INT32_MAX)
        why = "the loop's step is more than 2^31";
    else if (writes_until_end_of_loop(s))
        why = "the loop, or what its nest does before it, writes to memory";
    else if (s->par->nbinders + 1 > BINDERS_MAX)
        why = "the nest has too many ranges";
    const Op *wrong = why ? NULL : not_a_sum(s, &which);
    if (wrong && which >= 0)
        why = arena_printf(a,
                           "only sums can be added up from parts; `%s`, which the loop carries, "
                           "is more than a sum%s%s",
                           carried_name(s, which),
                           wrong->kind == OP_YIELD ? "" : ": it goes through ",
                           wrong->kind == OP_YIELD ? "" : op_info(wrong->kind)->text);
    else if (wrong)
        why = "only sums can be added up from parts; the loop carries something else";
    for (int i = 0; i < loop->nres && !why; i++)
        why = why_not_kept(s, loop->res[i]->type.axes);
    if (why)
        refuse(s, loop->span, why);
    return !why;
}

// --- the two nests ---

static Value *minus(Builder *b, Value *x, Value *lo) {
    return !lo || value_is_int(lo, 0) ? x : ir_binary(b, OP_SUB, x, lo, NULL);
}

static Value *extent_of(Builder *b, Value *lo, Value *hi) {
    if (!lo || value_is_int(lo, 0))
        return hi;
    return ir_binary(b, OP_SUB, ir_binary(b, OP_MAX, hi, lo, NULL), lo, NULL);
}

static Value *zero_of(Kernel *k, DType t) {
    return dtype_is_float(t) ? ir_float(k, t, 0) : ir_int(k, t, 0);
}

// A temp for one carried value: the part, the grid, the other axes.
static Mem *part_temp(Split *s, Builder *b, const Value *v) {
    Value *dims[RANK_MAX];
    int n = 0;
    dims[n++] = ir_index(s->k, s->entry->value);
    for (int i = 0; i < s->par->nbinders; i++)
        dims[n++] = extent_of(b, op_binder_lo(s->par, i), op_binder_hi(s->par, i));
    for (int i = 0; i < v->type.axes.n; i++) {
        const Axis *a = s->k->axis[v->type.axes.id[i]];
        if (!is_grid_axis(s, a))
            dims[n++] = extent_of(b, axis_lo(a), axis_hi(a));
    }
    return ir_temp(b, "part", v->type.dtype, n, dims);
}

// Where it lies in the nest `par`, whose axes and variables `map` gives.
static void part_index(Split *s, Builder *b, IrMap *map, const Op *par, int first, const Value *v,
                       Value *part, Value **index) {
    int n = 0;
    index[n++] = part;
    for (int i = 0; i < s->par->nbinders; i++) {
        const Binder *now = &par->binder[first + i];
        index[n++] = minus(b, now->axis ? now->axis->iota : now->var, op_binder_lo(s->par, i));
    }
    for (int i = 0; i < v->type.axes.n; i++) {
        Axis *a = s->k->axis[v->type.axes.id[i]];
        if (!is_grid_axis(s, a))
            index[n++] = minus(b, ir_mapped_axis(map, a)->iota, axis_lo(a));
    }
}

// A product, or with `loops` a loop over tiles, is in the region.
static bool has_product(const Region *r, bool loops) {
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_DOT)
            return true;
        for (int i = 0; i < op->nbinders && loops && op->kind == OP_FOR; i++)
            if (op->binder[i].axis)
                return true;
        for (int i = 0; i < op->nregion; i++)
            if (has_product(op->region[i], loops))
                return true;
    }
    return false;
}

// Ranges of the grid with axes of their own: what adds up parts has tiles of other sizes.
static void new_axes(Split *s, Builder *b, IrMap *map) {
    for (int i = 0; i < s->k->naxis; i++)
        if (s->k->axis[i]->like && is_grid_axis(s, s->k->axis[i]->like))
            return; // its tiles have to be those
    for (int i = 0; i < s->par->nbinders; i++) {
        Axis *a = s->par->binder[i].axis;
        if (a)
            ir_map_axis(map, a, ir_axis(b, a->name, a->of, a->size));
    }
}

// The nest after the loop, which adds up the parts.
static Op *make_sums(Split *s, Mem *const *part) {
    Kernel *k = s->k;
    Builder b = {.kernel = k, .region = s->par->parent, .before = s->par->next};
    b.span = s->par->span;
    IrMap map = ir_map_new(s->ctx->scratch, k);
    new_axes(s, &b, &map);
    Op *par = ir_clone(&b, s->par, &map);
    Op *loop = ir_mapped(&map, s->loop->res[0])->def;
    Value *init[CARRY_MAX], *next[CARRY_MAX];
    Type type[CARRY_MAX];
    const char *name[CARRY_MAX];
    for (int i = 0; i < loop->ncarry; i++) {
        init[i] = op_carry_init(loop, i);
        type[i] = loop->res[i]->type;
        name[i] = op_carry_arg(loop, i)->name;
    }
    Builder at = ir_builder_before(k, loop);
    at.span = loop->span;
    BinderInit parts = {.name = "part", .lo = ir_index(k, 0), .hi = ir_index(k, s->entry->value)};
    Op *sum = ir_for_typed(&at, 1, &parts, loop->ncarry, init, type, name);
    op_set_int(k, sum, ATTR_unroll, s->entry->value < UNROLL_MOST ? s->entry->value : UNROLL_MOST);
    Builder in = ir_builder_at_end(k, sum->region[0]);
    in.span = loop->span;
    for (int i = 0; i < loop->ncarry; i++) {
        Value *index[RANK_MAX];
        part_index(s, &in, &map, par, 0, s->loop->res[i], sum->region[0]->arg[0], index);
        Value *one = ir_load(&in, part[i], index, NULL, "part");
        next[i] = ir_binary(&in, OP_ADD, op_carry_arg(sum, i), one, NULL);
    }
    ir_yield(&in, loop->ncarry, next, NULL);
    IrMap results = ir_map_new(s->ctx->scratch, k);
    for (int i = 0; i < loop->nres; i++)
        ir_map_value(&results, loop->res[i], sum->res[i]);
    ir_substitute(par->region[0], &results);
    ir_op_unlink(loop);
    if (!has_product(par->region[0], true))
        op_set_int(k, par, ATTR_split, s->entry->value);
    return par;
}

// Elements, or steps, of which a part has a multiple.
static int64_t unit_of(Split *s, const Binder *b) {
    if (!b->axis)
        return 1;
    if (b->axis->size > 0)
        return b->axis->size;
    const ScheduleEntry *e = schedule_find_axis(s->ctx, s->k, b->axis);
    if (e && e->value > 0)
        return e->value;
    return has_product(s->loop->region[0], false) ? PRODUCT_UNIT
                                                  : OTHER_UNIT; // of most targets' tiles
}

// Far enough from 2^63 for what is added to it here: a number, a dim, or of 32 bits.
static bool is_moderate(const Kernel *k, const Value *v) {
    if (v->kind == VALUE_CONST)
        return v->u.i < INT64_C(1) << 62;
    for (int i = 0; i < k->nparam && v->kind == VALUE_PARAM; i++)
        if (k->param[i].value == v)
            return k->param[i].kind == PARAM_DIM;
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (op && op->kind == OP_MIN)
        return is_moderate(k, op->in[0]) || is_moderate(k, op->in[1]);
    return op && op->kind == OP_CAST && dtype_bits(op->in[0]->type.dtype) <= 32;
}

// The loop walks part number `part` of its range.
static void narrow_range(Split *s, Value *part) {
    Kernel *k = s->k;
    Op *loop = s->loop;
    const Binder *range = &loop->binder[s->range];
    Builder b = ir_builder_before(k, loop);
    b.span = loop->span;
    int64_t unit = unit_of(s, range);
    if (range->has_step)
        unit *= loop->in[range->first + 2]->u.i;
    Value *lo = loop->in[range->first], *hi = loop->in[range->first + 1];
    Value *all = extent_of(&b, lo, hi);
    Value *units = ir_binary(&b, OP_CDIV, all, ir_index(k, unit * s->entry->value), NULL);
    Value *length = ir_binary(&b, OP_MUL, units, ir_index(k, unit), NULL);
    Value *begin = ir_binary(&b, OP_MUL, part, length, NULL);
    if (!is_moderate(s->k, hi)) { // begin + length may be no number
        begin = ir_binary(&b, OP_MIN, begin, all, NULL);
        length = ir_binary(&b, OP_MIN, length, minus(&b, all, begin), NULL);
        begin = ir_binary(&b, OP_ADD, lo, begin, NULL);
        loop->in[range->first] = begin;
        loop->in[range->first + 1] = ir_binary(&b, OP_ADD, begin, length, NULL);
        return;
    }
    if (!value_is_int(lo, 0))
        begin = ir_binary(&b, OP_ADD, lo, begin, NULL);
    loop->in[range->first] = begin;
    loop->in[range->first + 1] =
        ir_binary(&b, OP_MIN, hi, ir_binary(&b, OP_ADD, begin, length, NULL), NULL);
}

static void store_parts(Split *s, Op *par, Mem *const *part) {
    Kernel *k = s->k;
    Builder b = ir_builder_at_end(k, par->region[0]);
    b.span = s->loop->span;
    IrMap same = ir_map_new(s->ctx->scratch, k);
    for (int i = 0; i < s->loop->nres; i++) {
        Value *index[RANK_MAX];
        Str names[RANK_MAX];
        Mem *m = part[i];
        part_index(s, &b, &same, par, 1, s->loop->res[i], par->region[0]->arg[0], index);
        Op *store = ir_store(&b, m, index, s->loop->res[i]);
        int n = 0;
        for (int j = 0; j < par->nbinders; j++)
            names[n++] = par->binder[j].axis ? par->binder[j].axis->name : par->binder[j].var->name;
        for (int j = 0; j < s->loop->res[i]->type.axes.n; j++) {
            const Axis *a = k->axis[s->loop->res[i]->type.axes.id[j]];
            if (!is_grid_axis(s, a))
                names[n++] = a->name;
        }
        op_set_names(k, store, ATTR_det, n, names);
    }
}

// The nest up to the loop, once for each part.
static void make_parts(Split *s, Mem *const *part) {
    Kernel *k = s->k;
    Op *old = s->par;
    Builder b = ir_builder_before(k, old);
    b.span = old->span;
    BinderInit binder[BINDERS_MAX] = {
        {.name = "part", .lo = ir_index(k, 0), .hi = ir_index(k, s->entry->value)}};
    for (int i = 0; i < old->nbinders; i++)
        binder[i + 1] = (BinderInit){.axis = old->binder[i].axis,
                                     .name = old->binder[i].axis ? NULL : old->binder[i].var->name,
                                     .lo = op_binder_lo(old, i),
                                     .hi = op_binder_hi(old, i)};
    Op *par = ir_parallel(&b, old->nbinders + 1, binder);
    for (Op *op = old->region[0]->last, *previous; op != s->loop; op = previous) {
        previous = op->prev;
        ir_op_unlink(op);
    }
    for (Op *op = old->region[0]->first, *next; op; op = next) {
        next = op->next;
        ir_op_move_end(op, par->region[0]);
    }
    IrMap map = ir_map_new(s->ctx->scratch, k);
    for (int i = 0; i < old->region[0]->narg; i++)
        ir_map_value(&map, old->region[0]->arg[i], par->region[0]->arg[i + 1]);
    ir_substitute(par->region[0], &map);
    for (int i = 0; i < s->loop->ncarry; i++)
        s->loop->in[s->loop->nin - s->loop->ncarry + i] = zero_of(k, s->loop->res[i]->type.dtype);
    narrow_range(s, par->region[0]->arg[0]);
    store_parts(s, par, part);
    ir_op_unlink(old);
}

static bool nest_split(PassCtx *ctx, Kernel *k, Op *par, const ScheduleEntry *e, bool *found) {
    Split s = {.ctx = ctx, .k = k, .entry = e, .par = par};
    for (;;) {
        s.loop = NULL;
        ir_walk(s.par->region[0], find_loop, &s);
        if (!s.loop)
            return true;
        *found = true;
        if (!check_loop(&s))
            return false;
        remark(ctx, DIAG_SCHEDULED, s.loop->span,
               "%s: the loop over `%s` is cut into %lld parts, "
               "which a launch of its own adds up",
               k->name, e->of, (long long)e->value);
        Mem *part[CARRY_MAX];
        Builder b = ir_builder_before(k, s.par);
        b.span = s.par->span;
        for (int i = 0; i < s.loop->nres; i++)
            part[i] = part_temp(&s, &b, s.loop->res[i]);
        Op *sums = make_sums(&s, part);
        make_parts(&s, part);
        s.par = sums;
    }
}

static bool region_split(PassCtx *ctx, Kernel *k, Region *r, const ScheduleEntry *e, bool *found) {
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_PARALLEL) {
            if (!nest_split(ctx, k, op, e, found))
                return false;
            continue;
        }
        for (int i = 0; i < op->nregion; i++)
            if (!region_split(ctx, k, op->region[i], e, found))
                return false;
    }
    return true;
}

bool pass_split(PassCtx *ctx, Kernel *k) {
    Str base = kernel_base_name(k);
    for (int i = 0; i < ctx->options->nschedule; i++) {
        const Schedule *schedule = &ctx->options->schedule[i];
        for (int j = 0; j < schedule->n && strcmp(schedule->kernel, base) == 0; j++) {
            const ScheduleEntry *e = &schedule->entry[j];
            bool found = false;
            if (!e->of || strcmp(e->name, "split") != 0 || e->value <= 1)
                continue;
            if (!region_split(ctx, k, k->body, e, &found))
                return false;
            if (found)
                continue;
            Split s = {.ctx = ctx, .k = k, .entry = e};
            refuse(&s, (Span){0}, arena_printf(ctx->scratch, "no loop walks `%s`", e->of));
            return false;
        }
    }
    return true;
}

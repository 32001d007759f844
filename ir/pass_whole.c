// Pass whole: full windows have a copy of their code without masks.
//
// In and out: stage scheduled, after bounds; the CPU only, where tiles are small and a mask costs
// as much as the work, or a branch for each lane. What is copied: the body of a nest whose own
// windows may be short; else its innermost loops over tiles. Bodies that are long as they are
// stay alone.
//
//   for n in 0..%N carry (%c ..) { BODY; yield %v }
//   => for n .. { %b = begin n; %e = end n; %s = sub %e, %b; %f = cmp.eq %s, 64
//        %r = if %f { BODY without checks, guards and insides of n; yield %v } else { BODY; yield
//        %v } yield %r }
#include "ir/nest.h"

typedef struct Whole {
    Kernel *k;
    AxisSet full;             // axes whose windows are known to be full
    const AxisWindow *window; // by axis id
    IrMap map;                // of what is true there
    int ops;
    bool has_masks, is_long;
} Whole;

// Inside a full window of an axis that ends where the dim does.
static bool is_inside(const Whole *w, const Value *v, const Mem *t, int dim) {
    if (t->opt || v->kind != VALUE_IOTA || !axes_has(w->full, v->axis->id))
        return false;
    const AxisWindow *of = &w->window[v->axis->id];
    return of->hi == t->dim[dim] && (!of->lo || (value_is_const(of->lo) && of->lo->u.i >= 0));
}

static void drop_checks(const Whole *w, Op *op) {
    int64_t dims[RANK_MAX];
    int n = 0;
    const MemRef *m = &op->mem[0];
    for (int i = 0; i < m->nidx; i++)
        if (op_attr_has_int(op, ATTR_check, i) && !is_inside(w, op->in[m->first + i], m->mem, i))
            dims[n++] = i;
    if (n > 0)
        op_set_ints(w->k, op, ATTR_check, n, dims);
    else
        op_clear_attr(op, ATTR_check);
}

static void drop_guards(const Whole *w, Op *op) {
    AxisSet left = axes_minus(op_attr_axes(op, ATTR_guard), w->full);
    Axis *axes[AXES_MAX];
    for (int i = 0; i < left.n; i++)
        axes[i] = w->k->axis[left.id[i]];
    if (left.n > 0)
        op_set_axes(w->k, op, ATTR_guard, left.n, axes);
    else
        op_clear_attr(op, ATTR_guard);
}

static bool is_true(const Whole *w, const Op *op) {
    return op->kind == OP_INSIDE && op->nmem == 0 && axes_has(w->full, op->axes[0]->id);
}

static void drop_masks(void *user, Op *op) {
    Whole *w = user;
    if (is_true(w, op))
        ir_map_value(&w->map, op->res[0], ir_bool(w->k, true));
    if (op_attr(op, ATTR_check) && op->nmem > 0)
        drop_checks(w, op);
    if (op_attr(op, ATTR_guard))
        drop_guards(w, op);
}

// --- is it worth it ---

static void note_op(void *user, Op *op) {
    Whole *w = user;
    enum { OPS_MOST = 100 };
    bool many = op->kind == OP_SCAN || op_has(op->kind, TRAIT_FUNCTION) || op->kind == OP_SORT ||
                op->kind == OP_TOPK || op->kind == OP_TAKE || op->kind == OP_ARGREDUCE;
    w->is_long |= many || ++w->ops > OPS_MOST;
    const MemRef *m = op->nmem > 0 ? &op->mem[0] : NULL;
    for (int i = 0; m && i < m->nidx; i++)
        w->has_masks |=
            op_attr_has_int(op, ATTR_check, i) && is_inside(w, op->in[m->first + i], m->mem, i);
    w->has_masks |= is_true(w, op) || axes_intersect(op_attr_axes(op, ATTR_guard), w->full).n > 0;
}

// --- copies ---

// The op's windows that may be short.
static AxisSet short_windows(const Op *op) {
    AxisSet axes = axes_none();
    for (int i = 0; i < op->nbinders; i++)
        if (op->binder[i].axis && op->binder[i].axis->size > 1)
            axes_add(&axes, op->binder[i].axis->id);
    return axes;
}

static Value *all_full(Builder *b, AxisSet axes) {
    Value *all = NULL;
    for (int i = 0; i < axes.n; i++) {
        Axis *a = b->kernel->axis[axes.id[i]];
        Value *size = ir_binary(b, OP_SUB, ir_end(b, a), ir_begin(b, a), NULL);
        Value *full = ir_cmp(b, CMP_EQ, size, ir_index(b->kernel, a->size), NULL);
        all = all ? ir_binary(b, OP_AND, all, full, NULL) : full;
    }
    return all;
}

// A yield of carried values stands in each copy; the region's own passes on what they give.
static void body_copy(Whole *w, Arena *scratch, Region *body, Span span) {
    Op *first = body->first, *last = body->last, *yield = region_yield(body);
    int n = yield ? yield->nin : 0;
    Type *types = ARENA_ARRAY(scratch, Type, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        types[i] = yield->in[i]->type;
    Builder b = ir_builder_at_end(w->k, body);
    b.span = span;
    Op *choice = ir_if(&b, all_full(&b, w->full), n, types);
    if (yield)
        ir_yield(&b, n, choice->res, NULL);
    Builder in = ir_builder_at_end(w->k, choice->region[0]);
    IrMap map = ir_map_new(scratch, w->k);
    for (Op *op = first, *next; op; op = next) {
        next = op == last ? NULL : op->next;
        ir_clone(&in, op, &map);
        ir_op_move_end(op, choice->region[1]);
    }
    w->map = ir_map_new(scratch, w->k);
    ir_walk(choice->region[0], drop_masks, w);
    ir_substitute(choice->region[0], &w->map);
}

// False: the region is left as it is.
static bool region_whole(PassCtx *ctx, Kernel *k, Op *op) {
    Region *body = op->region[0];
    Op *yield = region_yield(body);
    Whole w = {.k = k, .full = short_windows(op), .window = ctx->user};
    if (w.full.n == 0 || !body->first || (yield && yield->has_stop))
        return false;
    ir_walk(body, note_op, &w);
    if (!w.has_masks || w.is_long)
        return false;
    body_copy(&w, ctx->scratch, body, op->span);
    return true;
}

static void loops_whole(PassCtx *ctx, Kernel *k, Region *r) {
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_FOR && !region_has_loop(op->region[0])) {
            (void)region_whole(ctx, k, op);
            continue;
        }
        for (int i = 0; i < op->nregion && !op_has(op->kind, TRAIT_FUNCTION); i++)
            loops_whole(ctx, k, op->region[i]);
    }
}

static bool nest_whole_windows(PassCtx *ctx, Kernel *k, Op *par) {
    if (!region_whole(ctx, k, par) && nest_of(par).ndots == 0)
        loops_whole(ctx, k, par->region[0]);
    return true;
}

bool pass_whole(PassCtx *ctx, Kernel *k) {
    if (ctx->target->family != TARGET_CPU)
        return true;
    PassCtx walk = *ctx;
    walk.user = axis_windows(ctx->scratch, k);
    return each_nest(&walk, k, nest_whole_windows);
}

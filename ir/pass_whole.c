// Pass whole: programs whose windows are full run a copy of a product's nest without masks.
//
// In and out: stage scheduled, after bounds; the CPU only, where a mask in a product's loop costs
// more than the product and its tiles are small. Of the nest's own windows alone: what loops in it
// bind is left as it is.
//
//   parallel m in 0..%M { BODY }
//   => parallel m in 0..%M { %b = begin m; %e = end m; %s = sub %e, %b; %f = cmp.eq %s, 8
//        if %f { BODY without checks and guards of m } else { BODY } }
#include "ir/nest.h"

typedef struct Whole {
    Kernel *k;
    AxisSet full;             // axes whose windows are known to be full
    const AxisWindow *window; // by axis id
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

static void drop_masks(void *user, Op *op) {
    const Whole *w = user;
    if (op_attr(op, ATTR_check) && op->nmem > 0)
        drop_checks(w, op);
    if (op_attr(op, ATTR_guard))
        drop_guards(w, op);
}

// The windows of `par` that may be short, and whether all of them are full.
static Value *full_windows(Builder *b, const Op *par, AxisSet *axes) {
    Value *all = NULL;
    for (int i = 0; i < par->nbinders; i++) {
        Axis *a = par->binder[i].axis;
        if (!a || a->size <= 1)
            continue;
        Value *size = ir_binary(b, OP_SUB, ir_end(b, a), ir_begin(b, a), NULL);
        Value *full = ir_cmp(b, CMP_EQ, size, ir_index(b->kernel, a->size), NULL);
        all = all ? ir_binary(b, OP_AND, all, full, NULL) : full;
        axes_add(axes, a->id);
    }
    return all;
}

static bool nest_whole_windows(PassCtx *ctx, Kernel *k, Op *par) {
    if (nest_of(par).ndots == 0 || !par->region[0]->first)
        return true;
    Region *body = par->region[0];
    Op *first = body->first, *last = body->last;
    Whole w = {.k = k, .full = axes_none(), .window = ctx->user};
    Builder b = ir_builder_at_end(k, body);
    b.span = par->span;
    Value *full = full_windows(&b, par, &w.full);
    if (!full)
        return true;
    Op *choice = ir_if(&b, full, 0, NULL);
    Builder in = ir_builder_at_end(k, choice->region[0]);
    IrMap map = ir_map_new(ctx->scratch, k);
    for (Op *op = first, *next; op; op = next) {
        next = op == last ? NULL : op->next;
        ir_clone(&in, op, &map);
        ir_op_move_end(op, choice->region[1]);
    }
    ir_walk(choice->region[0], drop_masks, &w);
    return true;
}

bool pass_whole(PassCtx *ctx, Kernel *k) {
    if (ctx->target->family != TARGET_CPU)
        return true;
    PassCtx walk = *ctx;
    walk.user = axis_windows(ctx->scratch, k);
    return each_nest(&walk, k, nest_whole_windows);
}

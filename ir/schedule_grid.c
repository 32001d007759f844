// Pass schedule, second part: what the schedule's `order`, `persistent`, `cluster` and `unroll` say
// of a nest's grid and of its loops.
//
// In: a `parallel` with its sizes. Out: its attributes order, group, persistent, cluster, which
// pass place turns into the map from programs to tiles. None of them changes a result.
//
// Without an entry, a product with rows and columns of tiles visits them in groups of rows: the
// programs that run at one time then share what they read of both operands in the L2 cache, where
// row by row they would share one row of tiles and read all columns. Everything else goes row by
// row.
#include "ir/schedule.h"

#include <string.h>

enum { DEFAULT_GROUP = 8, CLUSTERS_FROM = 90 };

// The last two ranges walk tiles of the rows and columns of a product; others in front of them are
// batches. (Rows of several axes, a convolution's, are near each other in any order.)
static bool is_product_grid(const Op *par, const Nest *n) {
    int last = par->nbinders - 1;
    if (n->ndots == 0 || last < 1)
        return false;
    DotAxes d = dot_axes(n->dot);
    if (last > 1 && (d.rows.n != 1 || d.cols.n != 1))
        return false;
    for (int i = last - 1; i <= last; i++) {
        const Axis *a = par->binder[i].axis;
        if (!a || !axes_has(n->dot->res[0]->type.axes, a->id))
            return false;
    }
    return true;
}

static void set_order(PassCtx *ctx, Kernel *k, Op *par, const Nest *n) {
    const ScheduleEntry *e = schedule_find(ctx, k, "order", NULL);
    const char *order = e ? e->word : is_product_grid(par, n) ? "grouped" : NULL;
    if (!order || par->nbinders == 0)
        return;
    if (!strcmp(order, "row"))
        return;
    bool grouped = !strcmp(order, "grouped");
    if (grouped && par->nbinders < 2)
        return; // one range has one order in groups
    op_set_str(k, par, ATTR_order, order);
    if (grouped)
        op_set_int(k, par, ATTR_group, e && e->value > 0 ? e->value : DEFAULT_GROUP);
}

// On the CPU a program has nothing that clusters could share.
static bool set_cluster(PassCtx *ctx, Kernel *k, Op *par) {
    const ScheduleEntry *e = schedule_find(ctx, k, "cluster", NULL);
    if (!e || e->value <= 1 || ctx->target->family == TARGET_CPU)
        return true;
    if (ctx->target->sm < CLUSTERS_FROM) {
        Diag *d = diag_add(ctx->diags, DIAG_BAD_SCHEDULE, e->span,
                           "`cluster`: %s has no clusters; sm_%d is the first that has",
                           ctx->target->name, CLUSTERS_FROM);
        diag_hint(ctx->diags, d, "write it for the targets that have: `schedule sm_%da { ... }`",
                  CLUSTERS_FROM);
        return false;
    }
    op_set_int(k, par, ATTR_cluster, e->value);
    return true;
}

bool schedule_grid(PassCtx *ctx, Kernel *k, Op *par, const Nest *n) {
    set_order(ctx, k, par, n);
    const ScheduleEntry *e = schedule_find(ctx, k, "persistent", NULL);
    op_set_int(k, par, ATTR_persistent, e && e->value && par->nbinders > 0);
    return set_cluster(ctx, k, par);
}

// --- loops ---

static const ScheduleEntry *unroll_of(PassCtx *ctx, Kernel *k, const Binder *b) {
    const ScheduleEntry *e = NULL;
    if (!b->axis)
        return schedule_find(ctx, k, "unroll", written_name(ctx->scratch, b->var->name));
    for (const Axis *a = b->axis; a && !e; a = a->of)
        e = schedule_find(ctx, k, "unroll", written_name(ctx->scratch, a->name));
    return e;
}

typedef struct Unroll {
    PassCtx *ctx;
    Kernel *k;
} Unroll;

static void unroll_loop(void *user, Op *op) {
    Unroll *u = user;
    if (op->kind != OP_FOR || op->nbinders == 0)
        return;
    const ScheduleEntry *e = unroll_of(u->ctx, u->k, &op->binder[op->nbinders - 1]);
    if (!e && !region_has_loop(op->region[0]))
        e = schedule_find(u->ctx, u->k, "unroll", NULL);
    if (e && e->value > 1)
        op_set_int(u->k, op, ATTR_unroll, e->value);
}

void schedule_unroll(PassCtx *ctx, Kernel *k, Region *r) {
    Unroll u = {ctx, k};
    ir_walk(r, unroll_loop, &u);
}

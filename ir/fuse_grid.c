// Pass fuse, fourth part: a long axis that a hand-written nest has as a whole, but that nothing in
// it needs as a whole => one more axis of the grid.
//
//   parallel %e in 0..%E { %m = for n in .. carry (%a : f32[D]) { .. }; store @y[%e, D], %m }
//   => axis d of D; parallel %e in 0..%E, d in 0..%D { %m = for n in .. carry (%a : f32[d]) { .. };
//                                                      store @y[%e, d], %m }
//
// Done where pass stream could not put the axis into loops of its own: an inner loop uses it, the
// nest has another such axis, or the old values of an atomic are along it. Programs do not meet:
// every write extends along the axis, whose index its race proof determines, and what is written is
// read at the same place only.
#include "ir/fuse.h"
#include "ir/nest.h"
#include "ir/remark.h"

enum { GRID_MAX = 8 };

typedef struct Spread {
    const Kernel *k;
    const Op *par;
    const Axis *axis;
    bool needed_whole; // something is along it, or would be done again by every program
    bool nested;       // an inner region uses it
    bool old; // the old values of an atomic are along it: they exist once, no loop repeats it
} Spread;

static bool is_along(const Op *op, const Axis *a) {
    bool along = op_takes_axis(op, a);
    for (int i = 0; i < op->nres; i++)
        along |= axes_has(op->res[i]->type.axes, a->id);
    return along;
}

typedef struct Meeting {
    const Op *write;
    bool elsewhere;
} Meeting;

static void find_meeting(void *user, Op *op) {
    Meeting *m = user;
    for (int i = 0; i < op->nmem; i++)
        m->elsewhere |= op->mem[i].mem == m->write->mem[0].mem && !op_same_place(op, m->write);
}

static void spread_op(void *user, Op *op) {
    Spread *s = user;
    for (int i = 0; i < op->naxes; i++)
        s->needed_whole |= op->axes[i] == s->axis && op->kind != OP_AXIS && op->kind != OP_INSIDE;
    s->nested |= op->parent != s->par->region[0] && is_along(op, s->axis);
    s->old |= op->kind == OP_ATOMIC && op->nres > 0 && is_along(op, s->axis);
    if (!op_has(op->kind, TRAIT_WRITES)) {
        bool harmless = !op_has(op->kind, TRAIT_EFFECT | TRAIT_SYNC) || op->kind == OP_AXIS ||
                        op->kind == OP_YIELD || op->kind == OP_ASSERT ||
                        op_has(op->kind, TRAIT_REGIONS);
        s->needed_whole |= !harmless;
        return;
    }
    Meeting m = {.write = op};
    ir_walk(s->par->region[0], find_meeting, &m);
    s->needed_whole |= m.elsewhere || op->kind == OP_COPY || !axes_has(root_axes(op), s->axis->id);
}

// The ends of the axis are known in front of the nest.
static bool known_outside(const Op *par, const Axis *a) {
    const Value *end[2] = {a->lo, a->is_dim ? a->extent : a->hi};
    for (int i = 0; i < 2; i++) {
        const Value *v = end[i];
        if (v && ((v->kind == VALUE_OP && op_is_in(v->def, par->region[0])) ||
                  (v->kind == VALUE_ARG && region_contains(par->region[0], v->region))))
            return false;
    }
    return end[1] && !a->like;
}

// A declaration inside of the nest moves in front of it.
static void declare_outside(Op *par, const Axis *a) {
    for (Op *op = par->region[0]->first; op; op = op->next) {
        if (op->kind != OP_AXIS || op->axes[0] != a)
            continue;
        ir_op_move_before(op, par);
        return;
    }
}

// The same nest with one more binder.
static Op *nest_add_binder(Kernel *k, Op *par, BinderInit add) {
    BinderInit binders[GRID_MAX];
    for (int i = 0; i < par->nbinders; i++) {
        const Binder *old = &par->binder[i];
        binders[i] = (BinderInit){.axis = old->axis,
                                  .name = old->var ? old->var->name : NULL,
                                  .lo = par->in[old->first],
                                  .hi = par->in[old->first + 1],
                                  .step = old->has_step ? par->in[old->first + 2] : NULL};
    }
    binders[par->nbinders] = add;
    Builder b = ir_builder_before(k, par);
    b.span = par->span;
    Op *with = ir_parallel(&b, par->nbinders + 1, binders);
    for (Op *op = par->region[0]->first, *next; op; op = next) {
        next = op->next;
        ir_op_move_end(op, with->region[0]);
    }
    return with;
}

static Op *spread_axis(PassCtx *ctx, Kernel *k, Op *par, Axis *whole) {
    declare_outside(par, whole);
    Builder b = ir_builder_before(k, par);
    b.span = par->span;
    Axis *tile = ir_axis(&b, tile_name(ctx->scratch, whole), whole, 0);
    IrMap map = ir_map_new(ctx->scratch, k);
    ir_map_axis(&map, whole, tile);
    Value *lo = whole->is_dim || !whole->lo ? ir_index(k, 0) : whole->lo;
    Op *with = nest_add_binder(
        k, par,
        (BinderInit){.axis = tile, .lo = lo, .hi = whole->is_dim ? whole->extent : whole->hi});
    for (int i = 0, n = 0; i < par->nbinders; i++) {
        if (!par->binder[i].var)
            continue;
        ir_map_value(&map, par->binder[i].var, with->region[0]->arg[n++]);
    }
    with->attr = par->attr;
    with->nattr = par->nattr;
    ir_substitute(with->region[0], &map);
    ir_op_unlink(par);
    remark(ctx, DIAG_FUSED, par->span, "%s is an axis of the grid: nothing needs it as a whole",
           whole->name);
    return with;
}

static int long_whole_axes(const Kernel *k, const Nest *n) {
    int count = 0;
    for (int i = 0; i < n->whole.n; i++)
        count += !axis_is_short(k->axis[n->whole.id[i]]);
    return count;
}

// Returns the nest, or the one that has taken its place.
Op *fuse_spread_whole(PassCtx *ctx, Kernel *k, Op *par) {
    for (bool again = true; again;) {
        again = false;
        Nest n = nest_of(par);
        for (int i = 0; i < n.whole.n && par->nbinders < GRID_MAX && !again; i++) {
            Axis *a = k->axis[n.whole.id[i]];
            if (axis_is_short(a) || !known_outside(par, a) || n.ndots > 0)
                continue;
            Spread s = {.k = k, .par = par, .axis = a};
            ir_walk(par->region[0], spread_op, &s);
            if (s.needed_whole || !(s.nested || s.old || long_whole_axes(k, &n) > 1))
                continue;
            par = spread_axis(ctx, k, par, a);
            again = true;
        }
    }
    return par;
}

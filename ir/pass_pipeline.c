// Pass pipeline: copies run ahead of their use in a ring of stages.
//
// In and out: stage scheduled, after stage. Channels in `block` mode, or with one stage, stay as
// they are.
//
//   for k in lo..hi carry (.., %p) { acquire @c(%p); copy t[.. k ..] to @b(%p); commit @c(%p); wait
//   @c(%p); BODY; release @c(%p) }
//   => axis kp of K by 32
//      %f0 = for %i in 0..d carry (%f = 0) {                                           // d =
//      stages - 1 fills ahead
//        acquire @c(%f); with kp in lo + i*32..hi { copy t[.. kp ..] to @b(%f)[k = kp] }; commit
//        @c(%f); yield %f + 1 }
//      for k in lo..hi carry (.., %p, %f = %f0) {
//        wait @c(%p) {pending = d - 1}; acquire @c(%f)
//        with kp in begin k + d*32..hi { copy t[.. kp ..] to @b(%f)[k = kp] }; commit @c(%f); BODY;
//        release @c(%p) }
//
// The surplus fills at the end have empty windows: their copies are all out of range and write
// zeros; in a persistent grid they are waited for after the loop. `pending` counts the commits
// after the one that is waited for (rule C4: constant).
#include "ir/loop.h"
#include "ir/nest.h"
#include "lang/base/vec.h"

typedef struct Ring {
    PassCtx *ctx;
    Kernel *k;
    Op *loop;
    Axis *axis, *ahead;
    Op *acquire, *commit, *wait;
    Mem *chan;
    int distance;
    bool again; // the nest's programs handle several tiles: the ring starts again with each
} Ring;

// acquire; copies; commit; wait, in this order and once: as pass stage writes them.
static bool find_ring(Ring *r) {
    Op *op = r->loop->region[0]->first;
    while (op && op->kind != OP_ACQUIRE)
        op = op->next;
    if (!op)
        return false;
    r->acquire = op;
    for (op = op->next; op && op->kind == OP_COPY && op->mem[1].mem->kind == MEM_BUF;)
        op = op->next;
    r->commit = op;
    r->wait = op ? op->next : NULL;
    if (!r->wait || r->commit->kind != OP_COMMIT || r->wait->kind != OP_WAIT ||
        r->commit->mem[0].mem != r->acquire->mem[0].mem ||
        r->wait->mem[0].mem != r->acquire->mem[0].mem)
        return false;
    for (op = r->wait->next; op; op = op->next)
        if (op->kind == OP_ACQUIRE || op->kind == OP_COMMIT || op->kind == OP_WAIT)
            return false;
    r->chan = r->acquire->mem[0].mem;
    r->distance = (int)op_attr_int(r->chan->def, ATTR_stages) - 1;
    Str mode = op_attr_str(r->chan->def, ATTR_mode);
    return r->distance > 0 && mode && mode[0] == 'g';
}

// acquire; with kp in from..hi { the loop's copies, at kp and position f }; commit
static void build_fill(Ring *r, Builder *b, Value *from, Value *hi, Value *f) {
    build_chan_op(b, OP_ACQUIRE, r->chan, f);
    BinderInit binder = {.axis = r->ahead, .lo = from, .hi = hi};
    Op *with = ir_with(b, 1, &binder, 0, NULL);
    Builder in = ir_builder_at_end(r->k, with->region[0]);
    for (Op *op = r->acquire->next; op != r->commit; op = op->next) {
        IrMap map = ir_map_new(r->ctx->scratch, r->k);
        ir_map_value(&map, r->axis->iota, r->ahead->iota);
        ir_map_value(&map, r->acquire->in[0], f);
        in.span = op->span;
        Op *copy = ir_clone(&in, op, &map);
        MemRef *to = &copy->mem[1];
        to->rename[0].from = r->axis->id;
        to->rename[0].to = r->ahead->id;
        to->nrename = axes_has(to->mem->axes, r->axis->id) ? 1 : 0;
    }
    build_chan_op(b, OP_COMMIT, r->chan, f);
}

static Value *add_const(Kernel *k, Builder *b, Value *x, int64_t c) {
    return value_is_int(x, 0) ? ir_index(k, c)
           : c == 0           ? x
                              : ir_binary(b, OP_ADD, x, ir_index(k, c), NULL);
}

// The surplus fills land before the ring starts again.
static void build_drain(Ring *r, Value *p) {
    Kernel *k = r->k;
    Builder b = {.kernel = k, .region = r->loop->parent, .before = r->loop->next};
    b.span = r->loop->span;
    BinderInit count = {.name = "i", .lo = ir_index(k, 0), .hi = ir_index(k, r->distance)};
    const char *name = "p";
    Op *drain = ir_for(&b, 1, &count, 1, &p, &name);
    Builder in = ir_builder_at_end(k, drain->region[0]);
    in.span = b.span;
    Value *q = op_carry_arg(drain, 0);
    op_set_int(k, build_chan_op(&in, OP_WAIT, r->chan, q), ATTR_pending, 0);
    build_chan_op(&in, OP_RELEASE, r->chan, q);
    Value *next = ir_binary(&in, OP_ADD, q, ir_int(k, DT_I32, 1), "p");
    ir_yield(&in, 1, &next, NULL);
}

// The value that the loop carries as `arg`, after it.
static Value *carried_result(const Op *loop, const Value *arg) {
    for (int i = 0; i < loop->ncarry; i++)
        if (op_carry_arg(loop, i) == arg)
            return loop->res[i];
    return NULL;
}

static void ring_pipeline(Ring *r) {
    Kernel *k = r->k;
    Builder b = ir_builder_before(k, r->loop);
    b.span = r->loop->span;
    Value *lo = op_binder_lo(r->loop, 0), *hi = op_binder_hi(r->loop, 0),
          *zero = ir_int(k, DT_I32, 0);
    r->ahead = ir_axis(&b, arena_printf(r->ctx->scratch, "%s.ahead", r->axis->name),
                       r->axis->of ? r->axis->of : r->axis, r->axis->size);
    BinderInit count = {.name = "i", .lo = ir_index(k, 0), .hi = ir_index(k, r->distance)};
    const char *name = "f";
    Op *prologue = ir_for(&b, 1, &count, 1, &zero, &name);
    Builder in = ir_builder_at_end(k, prologue->region[0]);
    in.span = b.span;
    Value *step =
        ir_binary(&in, OP_MUL, prologue->region[0]->arg[0], ir_index(k, r->axis->size), NULL);
    Value *from = value_is_int(lo, 0) ? step : ir_binary(&in, OP_ADD, lo, step, NULL);
    Value *f = op_carry_arg(prologue, 0);
    build_fill(r, &in, from, hi, f);
    Value *next = ir_binary(&in, OP_ADD, f, ir_int(k, DT_I32, 1), "f");
    ir_yield(&in, 1, &next, NULL);

    r->loop = loop_add_carry(k, r->ctx->scratch, r->loop, prologue->res[0], "f");
    f = op_carry_arg(r->loop, r->loop->ncarry - 1);
    Op *after_wait = r->wait->next;
    Builder body = ir_builder_before(k, after_wait);
    body.span = b.span;
    op_set_int(k, r->wait, ATTR_pending, r->distance - 1);
    Value *begin = ir_begin(&body, r->axis);
    build_fill(r, &body, add_const(k, &body, begin, (int64_t)r->distance * r->axis->size), hi, f);
    for (Op *op = r->acquire, *nx; op != r->wait; op = nx) {
        nx = op->next;
        ir_op_unlink(op);
    }
    Op *y = region_yield(r->loop->region[0]);
    Builder end = ir_builder_before(k, y);
    end.span = b.span;
    loop_yield_add(k, r->loop, ir_binary(&end, OP_ADD, f, ir_int(k, DT_I32, 1), "f"));
    if (r->again)
        build_drain(r, carried_result(r->loop, r->wait->in[r->wait->mem[0].pos]));
}

// A ring inside another loop starts again in each iteration: surplus fills of the one before would
// still be in flight.
static bool starts_again(const Op *loop) {
    for (const Op *op = loop->parent->owner; op; op = op->parent ? op->parent->owner : NULL)
        if (op->kind == OP_FOR || op->kind == OP_WHILE)
            return true;
    return false;
}

static void region_pipeline(PassCtx *ctx, Kernel *k, const Op *par, Region *region) {
    for (Op *op = region->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nregion; i++)
            region_pipeline(ctx, k, par, op->region[i]);
        if (op->kind != OP_FOR || op->nbinders != 1 || !op->binder[0].axis)
            continue;
        Ring r = {.ctx = ctx, .k = k, .loop = op, .axis = op->binder[0].axis};
        r.again = op_attr_int(par, ATTR_persistent) != 0;
        if (find_ring(&r) && !starts_again(op))
            ring_pipeline(&r);
    }
}

static bool nest_pipeline(PassCtx *ctx, Kernel *k, Op *par) {
    region_pipeline(ctx, k, par, par->region[0]);
    return true;
}

bool pass_pipeline(PassCtx *ctx, Kernel *k) {
    return each_nest(ctx, k, nest_pipeline);
}

// Pass protocol: proves that every read of a ring is after its fill and every refill after its last
// read.
//
// In and out: stage placed, unchanged. Control flow is uniform and the ops of a channel depend on
// nothing but positions, so the proof is by execution: the body of each launch is walked with the
// positions as numbers, loops of unknown length several times (0, 1, 2, the ring's size and once
// round it and more), and each op is checked against the state of the slots.
//   C1  a position is used by one acquire..commit and one wait..release, in order, and counts up
//       by 1
//   C2  copies into a buffer lie between acquire and commit and fill each buffer once, with as many
//       bytes as the mbarrier expects; gets lie between wait and release
//   C4  in group mode, the wait's `pending` leaves no needed group in flight
//   C5  roles: as many fills as reads, whatever the loops' lengths
//   C6  nothing waits for what nobody fills; no fill is left unread where a ring starts again
//   A2  a slot is released after the mma.wait for every issue that reads it
//   R1  a slot is refilled only after the release of what it held
// Loops that are reached again as before are not walked again (protocol_loop.c). A ring whose
// positions go on through loops around loops is walked in each of their iterations: more than
// STEPS_MAX ops are refused.
// Rules F1 to F3, fences before asynchronous accesses: protocol_fences.c. Rules C3, B2 and R2, and
// why A4 and X1 have nothing to prove: protocol_static.c.
#include <string.h>

#include "ir/protocol.h"
#include "ir/protocol_walk.h"

enum { STAGES_MAX = 64, STEPS_MAX = 1 << 22 };

void protocol_report(const PassCtx *ctx, const Kernel *k, const Op *op, const Mem *m,
                     const char *rule, const char *what) {
    Arena *a = ctx->scratch;
    const char *message = arena_printf(a, "protocol rule %s: %s (%s @%s in kernel %s)", rule, what,
                                       op_info(op->kind)->text, m ? m->name : "", k->name);
    if (ctx->text && op->text_at)
        diag_add(ctx->diags, DIAG_BAD_IR, (Span){0}, "%s:%s: %s", ctx->text_name,
                 ir_text_place(a, ctx->text, op->text_at), message);
    else if (ctx->text) // an op that a pass has made
        diag_add(ctx->diags, DIAG_BAD_IR, (Span){0}, "%s: %s", ctx->text_name, message);
    else
        diag_add(ctx->diags, DIAG_INTERNAL, op->span, "%s", message);
}

static void report(Walk *w, const Op *op, const char *rule, const char *what) {
    if (!w->failed)
        protocol_report(w->ctx, w->k, op, op->nmem ? op->mem[0].mem : NULL, rule, what);
    w->failed = true;
}

ChanState *chan_state(Walk *w, Mem *chan) {
    for (int i = 0; i < w->nchan; i++)
        if (w->chan[i].chan == chan)
            return &w->chan[i];
    ChanState *c = &w->chan[w->nchan++];
    *c = (ChanState){.chan = chan,
                     .stages = (int)op_attr_int(chan->def, ATTR_stages),
                     .filled = ARENA_ARRAY(w->ctx->scratch, int64_t, (size_t)chan->nbufs + 1)};
    return c;
}

static ChanState *chan_of_buffer(Walk *w, const Mem *buf, int *index) {
    for (int i = 0; i < w->nchan; i++) {
        for (int j = 0; j < w->chan[i].chan->nbufs; j++) {
            if (w->chan[i].chan->bufs[j] == buf) {
                *index = j;
                return &w->chan[i];
            }
        }
    }
    return NULL;
}

// A ring that is declared in a loop starts again, all its fills read.
static void chan_start(Walk *w, const Op *op) {
    ChanState *c = chan_state(w, op->def_mem);
    if (c->acquired != c->released)
        report(w, op, "C6", "starts again with fills that nothing has read");
    c->acquired = c->committed = c->waited = c->released = c->issue = 0;
}

static bool position(Walk *w, const Op *op, const Value *v, int64_t *p) {
    if (v->kind == VALUE_CONST)
        *p = v->u.i;
    else if (w->known[v->id])
        *p = w->number[v->id];
    else
        report(w, op, "C1", "the position is not a counter");
    return !w->failed;
}

static bool is_mbarrier(const Mem *chan) {
    Str mode = op_attr_str(chan->def, ATTR_mode);
    return mode && strcmp(mode, "mbarrier") == 0;
}

static void chan_op(Walk *w, const Op *op) {
    ChanState *c = chan_state(w, op->mem[0].mem);
    int64_t p = 0;
    if (!position(w, op, op->in[op->mem[0].pos], &p))
        return;
    switch ((int)op->kind) {
    case OP_ACQUIRE:
        if (p != c->acquired || c->acquired != c->committed)
            report(w, op, "C1", "slots are not acquired one after another");
        else if (!w->roles && p >= c->stages && c->released < p - c->stages + 1)
            report(w, op, "R1", "the slot is refilled before it was released");
        c->acquired = p + 1;
        memset(c->filled, 0, c->chan->nbufs * sizeof *c->filled);
        c->bytes = 0;
        break;
    case OP_COMMIT:
        if (p != c->committed || p + 1 != c->acquired)
            report(w, op, "C1", "the commit does not belong to the last acquire");
        for (int i = 0; i < c->chan->nbufs; i++)
            if (c->filled[i] != 1)
                report(w, op, "C2", "a buffer of the slot is not filled exactly once");
        if (is_mbarrier(c->chan) && c->bytes != op_attr_int(c->chan->def, ATTR_tx))
            report(w, op, "C2", "the bytes of the copies are not `tx`");
        c->committed = p + 1;
        break;
    case OP_WAIT:
        if (p != c->waited || c->waited != c->released)
            report(w, op, "C1", "slots are not waited for one after another");
        else if (!w->roles && p >= c->committed)
            report(w, op, "C6", "waits for a slot that nothing has filled");
        else if (!w->roles && c->committed - op_attr_int(op, ATTR_pending) <= p)
            report(w, op, "C4", "the fill may still be in flight");
        c->waited = p + 1;
        break;
    case OP_RELEASE:
        if (p != c->released || p + 1 != c->waited)
            report(w, op, "C1", "the release does not belong to the last wait");
        else if (c->issue > w->retired)
            report(w, op, "A2", "an mma that reads the slot is not waited for");
        c->released = p + 1;
        break;
    default:
        break;
    }
}

static int64_t slot_bytes(const Kernel *k, const Mem *buf) {
    int64_t n = 1;
    for (int i = 0; i < buf->axes.n; i++)
        n *= k->axis[buf->axes.id[i]]->size;
    return (n * dtype_bits(buf->dtype) + 7) / 8;
}

static void fill_op(Walk *w, const Op *op, const MemRef *to) {
    int i = 0;
    ChanState *c = chan_of_buffer(w, to->mem, &i);
    int64_t p = 0;
    if (!c || !position(w, op, op->in[to->pos], &p))
        return;
    if (p + 1 != c->acquired || c->committed == c->acquired)
        report(w, op, "C2", "fills a slot that is not acquired");
    c->filled[i]++;
    c->bytes += protocol_is_bulk(op) ? slot_bytes(w->k, to->mem) : 0;
}

static void read_op(Walk *w, const Op *op, const MemRef *from) {
    int i = 0;
    ChanState *c = chan_of_buffer(w, from->mem, &i);
    int64_t p = 0;
    if (!c || from->pos < 0 || !position(w, op, op->in[from->pos], &p))
        return;
    if (p + 1 != c->waited || c->released == c->waited)
        report(w, op, "C2", "reads a slot that is not waited for");
    if (op->kind == OP_MMA_ISSUE)
        c->issue = w->issued;
}

void set_number(Walk *w, const Value *v, bool known, int64_t n) {
    w->known[v->id] = known && w->matters[v->id];
    w->number[v->id] = n;
}

bool get_number(const Walk *w, const Value *v, int64_t *n) {
    bool is_const = v->kind == VALUE_CONST && !dtype_is_float(v->type.dtype);
    *n = is_const ? v->u.i : w->number[v->id];
    return is_const || w->known[v->id];
}

static void walk_region(Walk *w, const Region *r);

static void take_yield(Walk *w, const Op *op) {
    const Op *y = region_yield(op->region[0]);
    int64_t n;
    for (int i = 0; y && i < op->nres; i++) {
        bool known = get_number(w, y->in[i], &n);
        set_number(w, op->res[i], known, n);
    }
}

static int loop_trips(const Walk *w, const Op *op) {
    int64_t lo, hi;
    bool simple = op->nbinders == 1 && !op->binder[0].has_step;
    if (!simple || !get_number(w, op_binder_lo(op, 0), &lo) ||
        !get_number(w, op_binder_hi(op, 0), &hi))
        return w->trips;
    int64_t size = op->binder[0].axis && op->binder[0].axis->size ? op->binder[0].axis->size : 1;
    int64_t n = hi > lo ? (hi - lo + size - 1) / size : 0;
    return n > 2 * STAGES_MAX ? w->trips : (int)n;
}

// A loop without ops of channels is not walked: of its results those are known that it hands on.
static void walk_quiet_loop(Walk *w, const Op *op) {
    const Op *y = region_yield(op->region[0]);
    int64_t n = 0;
    for (int i = 0; i < op->ncarry; i++) {
        bool known =
            y && y->in[i] == op_carry_arg(op, i) && get_number(w, op_carry_init(op, i), &n);
        set_number(w, op->res[i], known, n);
    }
}

static void walk_iterations(Walk *w, const Op *op) {
    int64_t n;
    for (int i = 0; i < op->ncarry; i++) {
        bool known = get_number(w, op_carry_init(op, i), &n);
        set_number(w, op_carry_arg(op, i), known, n);
    }
    int trips = loop_trips(w, op);
    for (int t = 0; t < trips && !w->failed; t++) {
        walk_region(w, op->region[0]);
        take_yield(w, op);
        for (int i = 0; i < op->ncarry; i++)
            set_number(w, op_carry_arg(op, i), w->known[op->res[i]->id], w->number[op->res[i]->id]);
    }
    for (int i = 0; i < op->ncarry; i++)
        set_number(w, op->res[i], w->known[op_carry_arg(op, i)->id],
                   w->number[op_carry_arg(op, i)->id]);
}

static void walk_loop(Walk *w, const Op *op) {
    LoopWalk *l = loop_walk(w, op);
    if (loop_is_quiet(l)) {
        walk_quiet_loop(w, op);
        return;
    }
    if (loop_is_known(w, l))
        return;
    walk_iterations(w, op);
    if (!w->failed)
        loop_remember(w, l);
}

// Each role alone; afterwards what was filled has been read.
static void walk_roles(Walk *w, const Op *op) {
    w->roles = true;
    walk_region(w, op->region[0]);
    w->roles = false;
    for (int i = 0; i < w->nchan; i++)
        if (w->chan[i].committed != w->chan[i].released)
            report(w, w->chan[i].chan->def, "C5", "the roles fill and read a different number");
}

static void walk_add(Walk *w, const Op *op) {
    int64_t a = 0, b = 0;
    bool known = op->res[0]->type.axes.n == 0 && get_number(w, op->in[0], &a) &&
                 get_number(w, op->in[1], &b);
    set_number(w, op->res[0], known, (int64_t)((uint64_t)a + (uint64_t)b));
}

// False: refused.
static bool count_step(Walk *w, const Op *op) {
    if (++w->steps <= STEPS_MAX)
        return true;
    diag_add(w->ctx->diags, DIAG_UNSUPPORTED, op->span,
             "not supported: a ring that goes on through so many loops around each other (kernel "
             "%s)",
             w->k->name);
    w->failed = true;
    return false;
}

static void walk_op(Walk *w, const Op *op) {
    switch ((int)op->kind) {
    case OP_ADD:
        walk_add(w, op);
        break;
    case OP_CHAN:
        chan_start(w, op);
        break;
    case OP_ACQUIRE:
    case OP_COMMIT:
    case OP_WAIT:
    case OP_RELEASE:
        chan_op(w, op);
        break;
    case OP_COPY:
        if (op->mem[1].mem->kind == MEM_BUF)
            fill_op(w, op, &op->mem[1]);
        break;
    case OP_MMA_WAIT:
        if (w->issued - op_attr_int(op, ATTR_pending) > w->retired)
            w->retired = w->issued - op_attr_int(op, ATTR_pending);
        break;
    case OP_GET:
    case OP_MMA_ISSUE:
        w->issued += op->kind == OP_MMA_ISSUE;
        for (int i = 0; i < op->nmem; i++)
            read_op(w, op, &op->mem[i]);
        break;
    case OP_ROLES:
        walk_roles(w, op);
        break;
    case OP_WITH:
        walk_region(w, op->region[0]);
        take_yield(w, op);
        break;
    case OP_FOR:
    case OP_WHILE:
        walk_loop(w, op);
        break;
    default:
        for (int i = 0; i < op->nregion; i++)
            walk_region(w, op->region[i]);
        break;
    }
}

static void walk_region(Walk *w, const Region *r) {
    for (const Op *op = r->first; op && !w->failed && count_step(w, op); op = op->next)
        walk_op(w, op);
}

static void walk_launch(void *user, Op *op) {
    Walk *w = user;
    if (op->kind != OP_LAUNCH || op->nregion == 0)
        return;
    static const int trips[] = {0, 1, 2, 3, 5, 11};
    loops_start(w, op);
    w->steps = 0;
    for (size_t i = 0; i < sizeof trips / sizeof *trips && !w->failed; i++) {
        w->trips = trips[i];
        w->nchan = 0;
        w->issued = w->retired = 0;
        walk_region(w, op->region[0]);
    }
    if (!w->failed && !(protocol_fences(w->ctx, w->k, op) && protocol_static(w->ctx, w->k, op)))
        w->failed = true;
}

bool pass_protocol(PassCtx *ctx, Kernel *k) {
    Walk w = {.ctx = ctx,
              .k = k,
              .matters = ARENA_ARRAY(ctx->scratch, bool, (size_t)k->nvalue + 1),
              .chan = ARENA_ARRAY(ctx->scratch, ChanState, (size_t)k->nmem + 1),
              .number = ARENA_ARRAY(ctx->scratch, int64_t, (size_t)k->nvalue + 1),
              .known = ARENA_ARRAY(ctx->scratch, bool, (size_t)k->nvalue + 1)};
    ir_walk(k->body, walk_launch, &w);
    return !w.failed;
}

// Part of pass protocol: which numbers matter, and what is known of loops that were walked before.
//
// A loop's walk depends on the numbers that it takes from outside and on the slots of the channels
// that it uses; those that it declares start again. Reached again with the same, it leaves the
// same. So loops around a loop with a ring of its own walk that once, not once in each of their
// iterations.
#include <string.h>

#include "ir/protocol_walk.h"
#include "lang/base/vec.h"

struct LoopWalk {
    const Op *op;
    bool quiet;
    VEC(Value *) in;  // numbers from outside that matter
    VEC(Mem *) chan;  // that it uses
    VEC(bool) is_own; // by channel: it is declared in the loop
    VEC(int64_t) before, after, now;
    bool done; // before and after are those of one walk
    LoopWalk *next;
};

// --- what matters ---

typedef struct Marks {
    Walk *w;
    VEC(Value *) todo;
} Marks;

static void mark(Marks *m, Value *v) {
    if (v->kind == VALUE_CONST || m->w->matters[v->id])
        return;
    m->w->matters[v->id] = true;
    vec_push(m->w->ctx->scratch, &m->todo, v);
}

static void mark_uses(void *user, Op *op) {
    Marks *m = user;
    for (int i = 0; i < op->nmem; i++)
        if (op->mem[i].pos >= 0)
            mark(m, op->in[op->mem[i].pos]);
    for (int i = 0; i < op->nbinders && op->kind == OP_FOR; i++) {
        mark(m, op_binder_lo(op, i));
        mark(m, op_binder_hi(op, i));
    }
}

// Result number i of an op whose region yields it: in a loop what is carried as well.
static void mark_yielded(Marks *m, const Op *op, int i) {
    const Op *yield = region_yield(op->region[0]);
    if (yield && i < yield->nin)
        mark(m, yield->in[i]);
    if (i >= op->ncarry)
        return;
    mark(m, op->res[i]);
    mark(m, op_carry_arg(op, i));
    mark(m, op_carry_init(op, i));
}

static void mark_sources(Marks *m, const Value *v) {
    if (v->kind == VALUE_OP) {
        const Op *op = v->def;
        for (int i = 0; i < op->nin && op->kind == OP_ADD; i++)
            mark(m, op->in[i]);
        for (int i = 0; i < op->nres && op->nregion; i++)
            if (op->res[i] == v)
                mark_yielded(m, op, i);
    }
    const Op *owner = v->kind == VALUE_ARG ? v->region->owner : NULL;
    for (int i = 0; owner && i < owner->ncarry; i++)
        if (op_carry_arg(owner, i) == v)
            mark_yielded(m, owner, i);
}

void loops_start(Walk *w, const Op *launch) {
    memset(w->matters, 0, w->k->nvalue * sizeof *w->matters);
    w->loops = NULL;
    Marks m = {.w = w};
    ir_walk(launch->region[0], mark_uses, &m);
    while (m.todo.len > 0)
        mark_sources(&m, m.todo.data[--m.todo.len]);
}

// --- what a loop uses ---

typedef struct Uses {
    Walk *w;
    LoopWalk *l;
    bool *seen; // by value id
} Uses;

static bool is_outside(const Op *loop, const Value *v) {
    if (v->kind == VALUE_OP)
        return !op_is_in(v->def, loop->region[0]);
    return v->kind != VALUE_ARG || !region_contains(loop->region[0], v->region);
}

static void use_values(Uses *u, const Op *op) {
    for (int i = 0; i < op->nin; i++) {
        Value *v = op->in[i];
        if (v->kind == VALUE_CONST || !u->w->matters[v->id] || u->seen[v->id] ||
            !is_outside(u->l->op, v))
            continue;
        u->seen[v->id] = true;
        vec_push(u->w->ctx->scratch, &u->l->in, v);
    }
}

static void use_channel(Uses *u, Mem *chan) {
    for (uint32_t i = 0; i < u->l->chan.len; i++)
        if (u->l->chan.data[i] == chan)
            return;
    vec_push(u->w->ctx->scratch, &u->l->chan, chan);
    vec_push(u->w->ctx->scratch, &u->l->is_own, op_is_in(chan->def, u->l->op->region[0]));
}

// A channel, or those that a buffer is part of.
static void use_mem(Uses *u, Mem *m) {
    const Kernel *k = u->w->k;
    if (m->kind == MEM_CHAN)
        use_channel(u, m);
    for (int i = 0; m->kind == MEM_BUF && i < k->nmem; i++)
        for (int j = 0; k->mem[i]->kind == MEM_CHAN && j < k->mem[i]->nbufs; j++)
            if (k->mem[i]->bufs[j] == m && k->mem[i]->def)
                use_channel(u, k->mem[i]);
}

static void use_op(void *user, Op *op) {
    Uses *u = user;
    use_values(u, op);
    for (int i = 0; i < op->nmem; i++)
        use_mem(u, op->mem[i].mem);
    if (op->def_mem)
        use_mem(u, op->def_mem);
    bool reads = false;
    for (int i = 0; op->kind == OP_GET && i < op->nmem; i++)
        reads |= op->mem[i].pos >= 0;
    if (reads || op->kind == OP_CHAN || op->kind == OP_ACQUIRE || op->kind == OP_COMMIT ||
        op->kind == OP_WAIT || op->kind == OP_RELEASE || op->kind == OP_COPY ||
        op->kind == OP_MMA_ISSUE || op->kind == OP_MMA_WAIT || op->kind == OP_ROLES)
        u->l->quiet = false;
}

LoopWalk *loop_walk(Walk *w, const Op *op) {
    for (LoopWalk *l = w->loops; l; l = l->next)
        if (l->op == op)
            return l;
    Arena *a = w->ctx->scratch;
    LoopWalk *l = ARENA_NEW(a, LoopWalk);
    *l = (LoopWalk){.op = op, .quiet = true, .next = w->loops};
    Uses u = {.w = w, .l = l, .seen = ARENA_ARRAY(a, bool, (size_t)w->k->nvalue + 1)};
    use_values(&u, op);
    ir_walk(op->region[0], use_op, &u);
    return w->loops = l;
}

bool loop_is_quiet(const LoopWalk *l) {
    return l->quiet;
}

// --- the state ---

enum { COUNTS = 6 };

static int64_t *chan_counts(ChanState *c, int i) {
    int64_t *counts[COUNTS] = {&c->acquired, &c->committed, &c->waited,
                               &c->released, &c->bytes,     &c->issue};
    return i < COUNTS ? counts[i] : &c->filled[i - COUNTS];
}

static void put(Walk *w, LoopWalk *l, int64_t x) {
    vec_push(w->ctx->scratch, &l->now, x);
}

static void put_channels(Walk *w, LoopWalk *l, bool all) {
    for (uint32_t i = 0; i < l->chan.len; i++) {
        ChanState *c = chan_state(w, l->chan.data[i]);
        if (l->is_own.data[i] && !all)
            put(w, l, c->acquired != c->released);
        else
            for (int j = 0; j < COUNTS + c->chan->nbufs; j++)
                put(w, l, *chan_counts(c, j));
    }
}

// Only differences of the numbers of matrix products in flight count.
static void count_issues_from_0(Walk *w) {
    for (int i = 0; i < w->nchan; i++)
        w->chan[i].issue = w->chan[i].issue > w->retired ? w->chan[i].issue - w->retired : 0;
    w->issued -= w->retired;
    w->retired = 0;
}

static void put_before(Walk *w, LoopWalk *l) {
    l->now.len = 0;
    put(w, l, w->trips);
    put(w, l, w->roles);
    put(w, l, w->issued);
    for (uint32_t i = 0; i < l->in.len; i++) {
        int64_t n = 0;
        bool known = get_number(w, l->in.data[i], &n);
        put(w, l, known);
        put(w, l, known ? n : 0);
    }
    put_channels(w, l, false);
}

static void put_after(Walk *w, LoopWalk *l) {
    l->now.len = 0;
    put(w, l, w->issued);
    put(w, l, w->retired);
    for (int i = 0; i < l->op->nres; i++) {
        put(w, l, w->known[l->op->res[i]->id]);
        put(w, l, w->number[l->op->res[i]->id]);
    }
    put_channels(w, l, true);
}

static void take_after(Walk *w, const LoopWalk *l) {
    const int64_t *x = l->after.data;
    w->issued = *x++;
    w->retired = *x++;
    for (int i = 0; i < l->op->nres; i++, x += 2)
        set_number(w, l->op->res[i], x[0] != 0, x[1]);
    for (uint32_t i = 0; i < l->chan.len; i++) {
        ChanState *c = chan_state(w, l->chan.data[i]);
        for (int j = 0; j < COUNTS + c->chan->nbufs; j++)
            *chan_counts(c, j) = *x++;
    }
}

bool loop_is_known(Walk *w, LoopWalk *l) {
    count_issues_from_0(w);
    put_before(w, l);
    bool same = l->done && l->now.len == l->before.len &&
                memcmp(l->now.data, l->before.data, l->now.len * sizeof *l->now.data) == 0;
    if (same) {
        take_after(w, l);
        return true;
    }
    l->done = false;
    l->before.len = 0;
    for (uint32_t i = 0; i < l->now.len; i++)
        vec_push(w->ctx->scratch, &l->before, l->now.data[i]);
    return false;
}

void loop_remember(Walk *w, LoopWalk *l) {
    put_after(w, l);
    l->after.len = 0;
    for (uint32_t i = 0; i < l->now.len; i++)
        vec_push(w->ctx->scratch, &l->after, l->now.data[i]);
    l->done = true;
}

// Buffers, channels and copies.
//
// A buffer is a ring of slots, each with the elements of one tile in order of the buffer's own
// axes; whoever walks an axis under another name has the same positions. Time is bent against the
// program: a copy into a channel's buffer arrives only when its fill is waited for, an outgoing
// copy reads its buffer only at `copy.wait` (or when the program ends), and a slot is poison from
// `acquire` on.
#include "ir/eval_impl.h"

#include <string.h>

// --- slots ---

static MemState *buffer_state(Eval *e, const Op *op, const Mem *m) {
    MemState *s = &e->mem[m->id];
    if (!s->defined || m->kind == MEM_PARAM || m->kind == MEM_TEMP)
        eval_fail(e, op, "@%s is not a buffer here", m->name);
    return s;
}

static int64_t buffer_position(Eval *e, const Op *op, const MemRef *ref) {
    return ref->pos < 0 ? 0 : eval_int(e, op, op->in[ref->pos]);
}

// Position p is in slot p mod stages.
static int slot_of(const MemState *s, int64_t position) {
    int64_t slot = position % s->nslot;
    return (int)(slot < 0 ? slot + s->nslot : slot);
}

static void slot_poison(MemState *s, Slot *slot) {
    for (int64_t i = 0; i < s->slot_count; i++)
        slot->bad[i] = BAD_POISON;
}

// The slot that `ref` names; in a ring it must hold that very fill.
static Slot *buffer_slot(Eval *e, const Op *op, const MemRef *ref) {
    MemState *s = buffer_state(e, op, ref->mem);
    int64_t position = buffer_position(e, op, ref);
    Slot *slot = &s->slot[slot_of(s, position)];
    if (s->chan && slot->position != position)
        eval_fail(e, op, "uses fill %lld of @%s, but its slot holds fill %lld", (long long)position,
                  ref->mem->name, (long long)slot->position);
    return slot;
}

// The axis by which `ref` walks the i-th axis of its buffer.
static uint16_t buffer_axis(const MemRef *ref, const MemState *s, int i) {
    for (int r = 0; r < ref->nrename; r++) {
        if (ref->rename[r].from == s->axes.id[i])
            return ref->rename[r].to;
    }
    return s->axes.id[i];
}

static AxisSet buffer_axes(const MemRef *ref, const MemState *s) {
    AxisSet axes = axes_none();
    for (int i = 0; i < s->axes.n; i++)
        axes_add(&axes, buffer_axis(ref, s, i));
    return axes;
}

// Follows the slot along a walk over buffer_axes; returns which.
static int walk_slot(Eval *e, const Op *op, Walk *w, const MemRef *ref) {
    const MemState *s = &e->mem[ref->mem->id];
    int k = w->ntile++;
    int64_t stride = 1;
    for (int i = s->axes.n - 1; i >= 0; i--) {
        uint16_t id = buffer_axis(ref, s, i);
        bool found = false;
        for (int j = 0; j < w->axes.n; j++) {
            if (w->axes.id[j] != id)
                continue;
            found = true;
            w->step[k][j] += stride;
            if (w->n[j] != s->n[i])
                eval_fail(e, op, "@%s has %lld positions, axis %s has %lld", ref->mem->name,
                          (long long)s->n[i], eval_axis(e, id)->name, (long long)w->n[j]);
        }
        if (!found)
            eval_fail(e, op, "axis %s of @%s is not walked", eval_axis(e, id)->name,
                      ref->mem->name);
        stride *= s->n[i];
    }
    return k;
}

static bool op_waits(const Region *r, const Mem *m) {
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_COPY_WAIT && op->mem[0].mem == m)
            return true;
        for (int i = 0; i < op->nregion; i++) {
            if (op_waits(op->region[i], m))
                return true;
        }
    }
    return false;
}

void eval_buf(Eval *e, const Op *op) {
    const Mem *m = op->def_mem;
    MemState *s = &e->mem[m->id];
    for (int i = 0; i < s->nslot; i++) {
        eval_free(e, s->slot[i].cell);
        eval_free(e, s->slot[i].bad);
    }
    eval_free(e, s->slot);
    *s = (MemState){.defined = true, .axes = m->axes, .slot_count = 1};
    for (int i = 0; i < s->axes.n; i++) {
        Axis *axis = eval_axis(e, s->axes.id[i]);
        s->n[i] = axis->size ? axis->size : eval_window(e, op, axis).n;
        s->slot_count *= s->n[i];
    }
    s->nslot = (int)op_attr_int(op, ATTR_stages);
    if (s->nslot < 1)
        s->nslot = 1;
    s->slot = eval_calloc(e, op, s->nslot, sizeof(Slot));
    s->late = op_waits(e->kernel->body, m);
    for (int i = 0; i < s->nslot; i++) {
        s->slot[i].position = -1;
        s->slot[i].cell = eval_calloc(e, op, s->slot_count, sizeof(Cell));
        s->slot[i].bad = eval_calloc(e, op, s->slot_count, 1);
        slot_poison(s, &s->slot[i]);
    }
}

Tile *eval_slot(Eval *e, const Op *op, const MemRef *ref) {
    MemState *s = buffer_state(e, op, ref->mem);
    Slot *slot = buffer_slot(e, op, ref);
    Tile *out = tile_new(e, op, ref->mem->dtype, buffer_axes(ref, s));
    Walk w;
    walk_start(e, op, &w, buffer_axes(ref, s));
    int from = walk_slot(e, op, &w, ref), to = walk_tile(e, op, &w, out);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        out->cell[w.at[to]] = slot->cell[w.at[from]];
        if (slot->bad[w.at[from]])
            tile_bad(e, op, out)[w.at[to]] = slot->bad[w.at[from]];
    }
    return out;
}

void eval_get(Eval *e, const Op *op) {
    eval_set(e, op->res[0], eval_slot(e, op, &op->mem[0]));
}

void eval_put(Eval *e, const Op *op) {
    const MemRef *ref = &op->mem[0];
    MemState *s = buffer_state(e, op, ref->mem);
    Slot *slot = buffer_slot(e, op, ref);
    const Tile *v = eval_value(e, op, op->in[op->nin - 1]);
    Walk w;
    walk_start(e, op, &w, buffer_axes(ref, s));
    int to = walk_slot(e, op, &w, ref), from = walk_tile(e, op, &w, v);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        slot->cell[w.at[to]] = v->cell[w.at[from]];
        slot->bad[w.at[to]] = v->bad ? v->bad[w.at[from]] : 0;
    }
}

// --- copies ---

static Pending *pending_new(Eval *e, const Op *op, const MemRef *buf) {
    Pending *p = eval_calloc(e, op, 1, sizeof *p);
    p->op = op;
    p->buf = buf->mem;
    p->position = buffer_position(e, op, buf);
    Pending **end = &e->pending;
    while (*end)
        end = &(*end)->next;
    *end = p;
    return p;
}

static void pending_remove(Eval *e, Pending *p) {
    Pending **at = &e->pending;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    eval_free(e, p->cell);
    eval_free(e, p->bad);
    eval_free(e, p->offset);
    eval_free(e, p->linear);
    eval_free(e, p);
}

static void pending_arrive(Eval *e, Pending *p) {
    MemState *s = &e->mem[p->buf->id];
    Slot *slot = &s->slot[slot_of(s, p->position)];
    for (int64_t i = 0; i < s->slot_count; i++) {
        slot->cell[i] = p->cell[i];
        slot->bad[i] = p->bad[i];
    }
}

static void pending_leave(Eval *e, Pending *p) {
    MemState *s = &e->mem[p->buf->id], *t = &e->mem[p->to->id];
    Slot *slot = &s->slot[slot_of(s, p->position)];
    for (int64_t i = 0; i < s->slot_count; i++) {
        if (p->offset[i] < 0)
            continue;
        if (slot->bad[i] & BAD_UNKNOWN)
            continue;
        if (slot->bad[i])
            eval_fail(e, p->op, "copies poison from @%s to @%s, element %lld", p->buf->name,
                      p->to->name, (long long)p->linear[i]);
        race_write(e, p->op, p->to, p->linear[i]);
        cell_store(p->to, t, p->offset[i], p->linear[i], slot->cell[i]);
    }
}

static void copy_in(Eval *e, const Op *op) {
    const MemRef *ref = &op->mem[1];
    MemState *s = buffer_state(e, op, ref->mem);
    buffer_slot(e, op, ref);
    Access a;
    access_start(e, op, &a, &op->mem[0], buffer_axes(ref, s));
    int to = walk_slot(e, op, &a.walk, ref);
    Pending *p = pending_new(e, op, ref);
    p->cell = eval_calloc(e, op, s->slot_count, sizeof(Cell));
    p->bad = eval_calloc(e, op, s->slot_count, 1);
    for (int64_t i = 0; i < a.walk.count; i++, walk_next(&a.walk)) {
        int64_t at = a.walk.at[to];
        switch (access_place(e, &a)) {
        case PLACE_IN:
            race_read(e, op, a.mem, a.linear);
            p->cell[at] = cell_load(a.mem, a.state, a.offset);
            p->bad[at] = a.state->bad ? a.state->bad[a.linear] : 0;
            break;
        case PLACE_OUT: // 0, as allocated
            break;
        case PLACE_POISON:
        case PLACE_PADDING:
            p->bad[at] = BAD_POISON;
            break;
        case PLACE_UNKNOWN:
            p->bad[at] = BAD_UNKNOWN;
            break;
        }
    }
    if (s->chan)
        return;
    pending_arrive(e, p);
    pending_remove(e, p);
}

static void copy_out(Eval *e, const Op *op) {
    const MemRef *ref = &op->mem[0];
    MemState *s = buffer_state(e, op, ref->mem);
    buffer_slot(e, op, ref);
    Access a;
    access_start(e, op, &a, &op->mem[1], buffer_axes(ref, s));
    int from = walk_slot(e, op, &a.walk, ref);
    Pending *p = pending_new(e, op, ref);
    p->outgoing = true;
    p->to = op->mem[1].mem;
    p->offset = eval_calloc(e, op, s->slot_count, sizeof(int64_t));
    p->linear = eval_calloc(e, op, s->slot_count, sizeof(int64_t));
    for (int64_t i = 0; i < a.walk.count; i++, walk_next(&a.walk)) {
        int64_t at = a.walk.at[from];
        Place place = access_place(e, &a);
        if (place == PLACE_PADDING)
            eval_fail(e, op, "copies the padding position %s to @%s; is a guard missing?",
                      eval_point(e, a.walk.axes, a.walk.pos), p->to->name);
        if (place == PLACE_POISON)
            eval_fail(e, op, "poison reaches the address of a copy to @%s", p->to->name);
        p->offset[at] = place == PLACE_IN ? a.offset : -1;
        p->linear[at] = a.linear;
    }
    if (s->late)
        return;
    pending_leave(e, p);
    pending_remove(e, p);
}

void eval_copy(Eval *e, const Op *op) {
    MemKind to = op->mem[1].mem->kind;
    if (to == MEM_BUF)
        copy_in(e, op);
    else
        copy_out(e, op);
}

static void outgoing_leave(Eval *e, const Mem *buf, int64_t keep) {
    int64_t n = 0;
    for (Pending *p = e->pending; p; p = p->next)
        n += p->outgoing && (!buf || p->buf == buf);
    for (Pending *p = e->pending, *next; p; p = next) {
        next = p->next;
        if (!p->outgoing || (buf && p->buf != buf) || n-- <= keep)
            continue;
        pending_leave(e, p);
        pending_remove(e, p);
    }
}

void eval_copy_wait(Eval *e, const Op *op) {
    outgoing_leave(e, op->mem[0].mem, op_attr_int(op, ATTR_pending));
}

void staging_finish(Eval *e) {
    outgoing_leave(e, NULL, 0);
    while (e->pending) // fills that nobody waited for
        pending_remove(e, e->pending);
}

// --- channels ---

void eval_chan(Eval *e, const Op *op) {
    const Mem *m = op->def_mem;
    MemState *s = &e->mem[m->id];
    eval_free(e, s->group);
    eval_free(e, s->slot);
    *s = (MemState){.defined = true};
    s->nslot = (int)op_attr_int(op, ATTR_stages);
    if (s->nslot < 1)
        s->nslot = 1;
    s->slot = eval_calloc(e, op, s->nslot, sizeof(Slot));
    s->group = eval_calloc(e, op, s->nslot, sizeof(int64_t));
    for (int i = 0; i < s->nslot; i++) {
        s->slot[i].position = -1;
        s->group[i] = -1;
    }
    for (int i = 0; i < m->nbufs; i++) {
        MemState *b = buffer_state(e, op, m->bufs[i]);
        if (b->nslot != s->nslot)
            eval_fail(e, op, "@%s has %d slots, @%s %d stages", m->bufs[i]->name, b->nslot, m->name,
                      s->nslot);
        b->chan = m;
    }
}

static bool chan_is_mbarrier(const Mem *m) {
    Str mode = m->def ? op_attr_str(m->def, ATTR_mode) : NULL;
    return mode && strcmp(mode, "mbarrier") == 0;
}

static void chan_acquire(Eval *e, const Op *op, const Mem *m, MemState *s, int64_t position) {
    Slot *slot = &s->slot[slot_of(s, position)];
    while (e->roles && chan_is_mbarrier(m) && slot->busy)
        roles_wait(e, op);
    if (chan_is_mbarrier(m) && slot->busy) // it would wait for ever
        eval_fail(e, op, "acquires fill %lld of @%s while fill %lld in its slot is not released",
                  (long long)position, m->name, (long long)slot->position);
    slot->position = position;
    slot->busy = true;
    s->group[slot_of(s, position)] = -1;
    for (int i = 0; i < m->nbufs; i++) {
        MemState *b = &e->mem[m->bufs[i]->id];
        Slot *bs = &b->slot[slot_of(b, position)];
        bs->position = position;
        slot_poison(b, bs);
        for (Pending *p = e->pending, *next; p; p = next) { // a fill that nobody waited for
            next = p->next;
            if (!p->outgoing && p->buf == m->bufs[i] &&
                slot_of(b, p->position) == slot_of(b, position))
                pending_remove(e, p);
        }
    }
}

// Arrived are the fill waited for and those before it: no more than any mode promises. A `pending`
// of `group` mode says how many commits may be under way; the fill must not be one of them.
static void chan_wait(Eval *e, const Op *op, const Mem *m, MemState *s, int64_t position) {
    int index = slot_of(s, position);
    while (e->roles && (s->slot[index].position < position ||
                        (s->slot[index].position == position && s->group[index] < 0)))
        roles_wait(e, op);
    if (s->slot[index].position != position)
        eval_fail(e, op, "waits for fill %lld of @%s, but its slot was last acquired for fill %lld",
                  (long long)position, m->name, (long long)s->slot[index].position);
    if (s->group[index] < 0)
        eval_fail(e, op, "waits for fill %lld of @%s, which was not committed", (long long)position,
                  m->name);
    int64_t pending = op_attr_int(op, ATTR_pending);
    if (pending > 0 && s->group[index] >= e->commits - pending)
        eval_fail(e, op, "waits for fill %lld of @%s, which may be among the last %lld commits",
                  (long long)position, m->name, (long long)pending);
    for (Pending *p = e->pending, *next; p; p = next) {
        next = p->next;
        if (p->outgoing || e->mem[p->buf->id].chan != m || p->position > position)
            continue;
        pending_arrive(e, p);
        pending_remove(e, p);
    }
}

void eval_chan_op(Eval *e, const Op *op) {
    const Mem *m = op->mem[0].mem;
    MemState *s = buffer_state(e, op, m);
    int64_t position = eval_int(e, op, op->in[op->mem[0].pos < 0 ? 0 : op->mem[0].pos]);
    Slot *slot = &s->slot[slot_of(s, position)];
    switch ((int)op->kind) {
    case OP_ACQUIRE:
        chan_acquire(e, op, m, s, position);
        return;
    case OP_COMMIT:
        if (slot->position != position)
            eval_fail(e, op, "commits fill %lld of @%s, which was not acquired",
                      (long long)position, m->name);
        s->group[slot_of(s, position)] = e->commits;
        roles_went_on(e);
        if (!chan_is_mbarrier(m))
            e->commits++;
        return;
    case OP_WAIT:
        chan_wait(e, op, m, s, position);
        return;
    case OP_RELEASE:
        if (slot->position != position)
            eval_fail(e, op, "releases fill %lld of @%s, which its slot does not hold",
                      (long long)position, m->name);
        slot->busy = false;
        roles_went_on(e);
        return;
    }
}

// Part of pass protocol: what is written by stores and read asynchronously, and the reverse.
//
// In and out: a launch at stage placed, unchanged. Copies by the bulk engines and the matrix unit
// of warp groups access memory by another path than loads and stores (CUDA's async proxy):
//   F1  a buffer that `put` wrote is read by them after a `fence.async` of the writers and then a
//       barrier or the commit of its ring
//   F2  a buffer that a bulk copy reads is written again, by put or copy, after a `copy.wait` and
//   then
//       a barrier
//   A2  a buffer of one slot that an mma.issue reads is written again after its mma.wait (rings:
//       pass_protocol.c, where the slot is released)
//   F3  a tensor that the launch has written is read by a bulk copy after the fence and barrier of
//   F1
// The body is walked in program order with the state of each memory; loops until
// nothing changes and roles twice, so that what one iteration or role leaves meets the next. After
// an `if` the worse of both sides holds.
#include <string.h>

#include "ir/protocol.h"

typedef enum Written { VISIBLE, FENCED, WRITTEN } Written; // in order of what is still missing

typedef struct MemFence {
    uint8_t written;
    // Bulk copies that read a buffer: not waited for; and as far as the writers know by a barrier.
    uint8_t reading, known;
    uint8_t issue; // the last mma.issue that reads it, counted back from 1; 0: waited for, or none
} MemFence;

enum { READING_MAX = 100 }; // more than a ring has slots

// What the last walk of a loop has found: a loop in loops is not walked again for nothing.
typedef struct LoopFence {
    const Op *op;
    MemFence *before, *after; // an iteration changes nothing in `after`
    struct LoopFence *next;
} LoopFence;

typedef struct Fences {
    PassCtx *ctx;
    Kernel *k;
    MemFence *mem; // by id
    LoopFence *loops;
    bool failed;
} Fences;

static void report(Fences *f, const Op *op, const Mem *m, const char *rule, const char *what) {
    if (!f->failed)
        protocol_report(f->ctx, f->k, op, m, rule, what);
    f->failed = true;
}

static bool attr_is(const Op *op, AttrId id, const char *text) {
    Str s = op_attr_str(op, id);
    return s && strcmp(s, text) == 0;
}

bool protocol_is_bulk(const Op *copy) {
    return attr_is(copy, ATTR_engine, "tma") || attr_is(copy, ATTR_engine, "bulk") ||
           attr_is(copy, ATTR_engine, "im2col");
}

static void barrier(Fences *f) {
    for (int i = 0; i < f->k->nmem; i++) {
        if (f->mem[i].written == FENCED)
            f->mem[i].written = VISIBLE;
        f->mem[i].known = f->mem[i].reading;
    }
}

static void fence(Fences *f) {
    for (int i = 0; i < f->k->nmem; i++)
        if (f->mem[i].written == WRITTEN)
            f->mem[i].written = FENCED;
}

static void commit(Fences *f, const Mem *chan) {
    for (int i = 0; i < chan->nbufs; i++)
        if (f->mem[chan->bufs[i]->id].written == FENCED)
            f->mem[chan->bufs[i]->id].written = VISIBLE;
}

static void write_buffer(Fences *f, const Op *op, const Mem *m) {
    const MemFence *s = &f->mem[m->id];
    if (s->issue && op_attr_int(m->def, ATTR_stages) == 1)
        report(f, op, m, "A2", "an mma that reads the buffer is not waited for");
    if (s->known >= op_attr_int(m->def, ATTR_stages) || s->known == READING_MAX)
        report(f, op, m, "F2", "a copy that reads the buffer may still be under way");
}

static void read_async(Fences *f, const Op *op, const Mem *m, const char *rule, const char *what) {
    if (f->mem[m->id].written != VISIBLE)
        report(f, op, m, rule, what);
}

static void copy(Fences *f, const Op *op) {
    const Mem *from = op->mem[0].mem, *to = op->mem[1].mem;
    if (to->kind == MEM_BUF)
        write_buffer(f, op, to);
    else
        f->mem[to->id].written = WRITTEN;
    if (!protocol_is_bulk(op))
        return;
    if (to->kind == MEM_BUF) {
        read_async(f, op, from, "F3", "the launch has written the tensor without a fence");
        return;
    }
    read_async(f, op, from, "F1", "the buffer is written without a fence and a barrier");
    MemFence *s = &f->mem[from->id];
    s->reading += s->reading < READING_MAX;
    s->known += s->known < READING_MAX;
}

static void copy_wait(Fences *f, const Op *op) {
    MemFence *s = &f->mem[op->mem[0].mem->id];
    int64_t pending = op_attr_int(op, ATTR_pending);
    if (pending < s->reading)
        s->reading = (uint8_t)(pending < 0 ? 0 : pending);
}

static void issue(Fences *f, const Op *op) {
    for (int i = 0; i < op->nmem; i++)
        read_async(f, op, op->mem[i].mem, "F1",
                   "the buffer is written without a fence and a barrier");
    for (int i = 0; i < f->k->nmem; i++)
        f->mem[i].issue += f->mem[i].issue && f->mem[i].issue < READING_MAX;
    for (int i = 0; i < op->nmem; i++)
        f->mem[op->mem[i].mem->id].issue = 1;
}

static void mma_wait(Fences *f, int64_t pending) {
    for (int i = 0; i < f->k->nmem; i++)
        if (f->mem[i].issue > pending)
            f->mem[i].issue = 0;
}

static void walk_region(Fences *f, const Region *r);

static MemFence worse(MemFence a, MemFence b) {
    bool later = a.issue && (!b.issue || a.issue < b.issue);
    return (MemFence){.written = a.written > b.written ? a.written : b.written,
                      .issue = later ? a.issue : b.issue,
                      .reading = a.reading > b.reading ? a.reading : b.reading,
                      .known = a.known > b.known ? a.known : b.known};
}

// Region i and, besides, what was there before.
static void walk_maybe(Fences *f, const Region *r, MemFence *joined) {
    size_t bytes = f->k->nmem * sizeof *f->mem;
    MemFence *before = arena_copy(f->ctx->scratch, f->mem, bytes);
    walk_region(f, r);
    for (int i = 0; i < f->k->nmem; i++)
        joined[i] = worse(joined[i], f->mem[i]);
    memcpy(f->mem, before, bytes);
}

static void walk_if(Fences *f, const Op *op) {
    MemFence *joined = ARENA_ARRAY(f->ctx->scratch, MemFence, f->k->nmem);
    for (int i = 0; i < op->nregion; i++)
        walk_maybe(f, op->region[i], joined);
    memcpy(f->mem, joined, f->k->nmem * sizeof *joined);
}

static LoopFence *loop_fence(Fences *f, const Op *op) {
    for (LoopFence *l = f->loops; l; l = l->next)
        if (l->op == op)
            return l;
    LoopFence *l = ARENA_NEW(f->ctx->scratch, LoopFence);
    *l = (LoopFence){.op = op, .next = f->loops};
    return f->loops = l;
}

// No iteration, one, or more: until another one changes nothing. States only get worse, and counts
// end at READING_MAX.
static void walk_loop(Fences *f, const Op *op) {
    size_t bytes = f->k->nmem * sizeof *f->mem;
    LoopFence *last = loop_fence(f, op);
    if (bytes == 0 || (last->after && (memcmp(f->mem, last->before, bytes) == 0 ||
                                       memcmp(f->mem, last->after, bytes) == 0))) {
        if (bytes)
            memcpy(f->mem, last->after, bytes);
        return;
    }
    MemFence *before = arena_copy(f->ctx->scratch, f->mem, bytes);
    MemFence *joined = arena_copy(f->ctx->scratch, f->mem, bytes);
    do {
        memcpy(f->mem, joined, bytes);
        walk_maybe(f, op->region[0], joined);
    } while (!f->failed && memcmp(f->mem, joined, bytes) != 0);
    last->before = before;
    last->after = joined;
}

static void walk_op(Fences *f, const Op *op) {
    switch ((int)op->kind) {
    case OP_PUT:
        write_buffer(f, op, op->mem[0].mem);
        f->mem[op->mem[0].mem->id].written = WRITTEN;
        return;
    case OP_STORE:
    case OP_ATOMIC:
    case OP_SCATTER:
        f->mem[op->mem[0].mem->id].written = WRITTEN;
        return;
    case OP_COPY:
        copy(f, op);
        return;
    case OP_COPY_WAIT:
        copy_wait(f, op);
        return;
    case OP_MMA_ISSUE:
        issue(f, op);
        return;
    case OP_MMA_WAIT:
        mma_wait(f, op_attr_int(op, ATTR_pending));
        return;
    case OP_FENCE:
        if (op->sub == FENCE_ASYNC)
            fence(f);
        return;
    case OP_BARRIER:
        barrier(f);
        return;
    case OP_COMMIT:
        commit(f, op->mem[0].mem);
        return;
    case OP_ACQUIRE:
    case OP_WAIT: // a barrier of the program, but where warps meet in mbarriers
        if (!attr_is(op->mem[0].mem->def, ATTR_mode, "mbarrier"))
            barrier(f);
        return;
    case OP_IF:
        walk_if(f, op);
        return;
    case OP_FOR:
    case OP_WHILE:
        walk_loop(f, op);
        return;
    case OP_ROLES:
        walk_region(f, op->region[0]);
        walk_region(f, op->region[0]);
        return;
    default:
        for (int i = 0; i < op->nregion; i++)
            walk_region(f, op->region[i]);
        return;
    }
}

static void walk_region(Fences *f, const Region *r) {
    for (const Op *op = r->first; op && !f->failed; op = op->next)
        walk_op(f, op);
}

bool protocol_fences(PassCtx *ctx, Kernel *k, const Op *launch) {
    Fences f = {
        .ctx = ctx, .k = k, .mem = ARENA_ARRAY(ctx->scratch, MemFence, (size_t)k->nmem + 1)};
    walk_region(&f, launch->region[0]);
    return !f.failed;
}

// Pass sync: a program that reads elements of a tensor which other threads of it have just written
// waits for them.
//
// In and out: stage scheduled, with layouts. Statements are as if finished one after another, but
// inside a program every warp runs on its own: between two accesses to one tensor, one of them a
// write, that may touch one element from different threads, stands a barrier (which also makes the
// writes visible). None is needed where both name the same element with the same index in the same
// layout, of which no thread holds copies: then one thread does both (one thread writes for all
// that hold a copy, and a scalar is held by all). Buffers of rings are ordered by their channels.
// One-warp hosts need nothing.
//
//   store @y[m, n], %a; %q = load @y[m, %r]  =>  store @y[m, n], %a; barrier; %q = load @y[m, %r]
#include "ir/pass.h"
#include "ir/nest.h"
#include "lang/base/vec.h"

typedef struct Access {
    const Op *op;
    const MemRef *ref;
    const Layout *layout;
    bool writes;
} Access;
typedef VEC(Access) AccessVec; // since the last barrier

typedef struct Sync {
    PassCtx *ctx;
    Kernel *k;
    int warps;
} Sync;

static const Layout *access_layout(const Op *op) {
    if (op->kind == OP_LOAD)
        return op->res[0]->type.layout;
    return op->nin > 0 && op->kind != OP_COPY ? op->in[op->nin - 1]->type.layout : NULL;
}

static int log2_of(int x) {
    int n = 0;
    while (x >>= 1)
        n++;
    return n;
}

// Each thread of the program holds elements of its own.
static bool has_no_copies(const Sync *s, const Layout *l) {
    return l && l->nin[IN_LANE] == log2_of(s->ctx->target->lanes) &&
           l->nin[IN_WARP] == log2_of(s->warps) && layout_free_bits(l, IN_LANE) == 0 &&
           layout_free_bits(l, IN_WARP) == 0;
}

static bool same_place(const Sync *s, const Access *a, const Access *b) {
    if (!has_no_copies(s, a->layout) || a->layout != b->layout || a->ref->nidx != b->ref->nidx ||
        a->op->kind == OP_COPY || b->op->kind == OP_COPY)
        return false;
    for (int i = 0; i < a->ref->nidx; i++)
        if (a->op->in[a->ref->first + i] != b->op->in[b->ref->first + i])
            return false;
    return true;
}

static bool conflicts(const Sync *s, const Access *a, const Access *b) {
    return a->ref->mem == b->ref->mem && (a->writes || b->writes) && !same_place(s, a, b);
}

// Accesses of one op to tensors; a copy may have one on either side.
static int op_accesses(const Op *op, Access out[4]) {
    int n = 0;
    for (int i = 0; i < op->nmem && n < 4; i++) {
        const MemRef *ref = &op->mem[i];
        bool tensor = ref->mem->kind == MEM_PARAM || ref->mem->kind == MEM_TEMP;
        bool touches = op_has(op->kind, TRAIT_READS) || op_has(op->kind, TRAIT_WRITES);
        if (!tensor || !touches || op->nregion > 0)
            continue;
        bool writes = op->kind == OP_COPY ? i == 1 : op_has(op->kind, TRAIT_WRITES);
        out[n++] = (Access){op, ref, access_layout(op), writes};
    }
    return n;
}

typedef struct Collect {
    Arena *scratch;
    AccessVec *list;
} Collect;

static void collect_op(void *user, Op *op) {
    Collect *c = user;
    Access a[4];
    int n = op_accesses(op, a);
    for (int i = 0; i < n; i++)
        vec_push(c->scratch, c->list, a[i]);
}

static AccessVec region_accesses(Sync *s, Region *r) {
    AccessVec list = {0};
    Collect c = {s->ctx->scratch, &list};
    ir_walk(r, collect_op, &c);
    return list;
}

// One iteration's accesses against another's. An op against itself is proven by the race rules.
static bool loop_conflicts(Sync *s, Region *body) {
    AccessVec list = region_accesses(s, body);
    for (uint32_t i = 0; i < list.len; i++)
        for (uint32_t j = 0; j < i; j++)
            if (list.data[i].op != list.data[j].op && conflicts(s, &list.data[i], &list.data[j]))
                return true;
    return false;
}

static void insert_barrier(Sync *s, Op *before, AccessVec *since) {
    Builder b = ir_builder_before(s->k, before);
    b.span = before->span;
    ir_build(&b, &(OpInit){.kind = OP_BARRIER});
    since->len = 0;
}

static void region_sync(Sync *s, Region *r, AccessVec *since);

static AccessVec copy_of(Sync *s, const AccessVec *v) {
    AccessVec c = {0};
    for (uint32_t i = 0; i < v->len; i++)
        vec_push(s->ctx->scratch, &c, v->data[i]);
    return c;
}

// A region that may not run: what came before it stays open behind it.
static void optional_sync(Sync *s, Op *op, AccessVec *since) {
    AccessVec before = copy_of(s, since);
    bool loop = op->kind == OP_FOR || op->kind == OP_WHILE;
    for (int i = 0; i < op->nregion; i++) {
        AccessVec inside = copy_of(s, &before);
        Op *first = op->region[i]->first;
        while (first && first->kind == OP_AXIS)
            first = first->next;
        if (loop && first && loop_conflicts(s, op->region[i]))
            insert_barrier(s, first, &inside);
        region_sync(s, op->region[i], &inside);
        for (uint32_t j = 0; j < inside.len; j++)
            vec_push(s->ctx->scratch, since, inside.data[j]);
    }
}

static void region_sync(Sync *s, Region *r, AccessVec *since) {
    for (Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_WITH)
            region_sync(s, op->region[0], since);
        else if (op->nregion > 0)
            optional_sync(s, op, since);
        Access a[4];
        int n = op_accesses(op, a);
        bool conflict = false;
        for (int i = 0; i < n; i++)
            for (uint32_t j = 0; j < since->len; j++)
                conflict |= conflicts(s, &a[i], &since->data[j]);
        if (conflict)
            insert_barrier(s, op, since);
        for (int i = 0; i < n; i++)
            vec_push(s->ctx->scratch, since, a[i]);
    }
}

static bool nest_sync(PassCtx *ctx, Kernel *k, Op *par) {
    int warps = (int)op_attr_int(par, ATTR_warps);
    Sync s = {ctx, k, warps ? warps : 1};
    AccessVec since = {0};
    region_sync(&s, par->region[0], &since);
    return true;
}

bool pass_sync(PassCtx *ctx, Kernel *k) {
    return ctx->target->family == TARGET_CPU || each_nest(ctx, k, nest_sync);
}

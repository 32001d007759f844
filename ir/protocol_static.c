// Rules of the protocol that the text shows without being walked.
//
// In: the body of a launch at stage placed. Out: the first fault, reported.
//   C3  arrivals: `full` and `empty` of an mbarrier are as many as the roles that commit and
//   release make:
//       one of a role's single thread, one of each warp, or one of each group of four warps
//   B2  a named barrier is one set of warps: its name is not used by others, who could be pending
//   on it R2  buffers and mbarriers do not share bytes; nothing places them so
// Rule A4 (a fence between the writes of registers and the matrix unit's reads) is the lowering's:
// it makes the fence with each first issue, and there is no op to leave out. Rule X1 (clusters) has
// nothing to prove: no op reaches another program's shared memory.
#include <string.h>

#include "ir/layout.h"
#include "ir/protocol.h"

enum { PLACES_MAX = 64, NAMES_MAX = 16 };

// A range of shared memory.
typedef struct Bytes {
    const Op *op;
    int64_t begin, end;
} Bytes;

// What the hardware's barrier of a number is used for.
typedef struct Named {
    const Op *role; // one of the roles; NULL: nothing, or a launch without roles
    int64_t warps;  // that reach it
    int64_t sum;    // of the roles that do
} Named;

typedef struct Check {
    PassCtx *ctx;
    const Kernel *k;
    const Op *launch, *role; // role: NULL outside of roles
    Bytes place[PLACES_MAX];
    int nplace;
    Named named[NAMES_MAX];
    bool failed;
} Check;

static void report(Check *c, const Op *op, const char *rule, const char *what) {
    const Mem *mem = op->def_mem ? op->def_mem : op->nmem ? op->mem[0].mem : NULL;
    if (!c->failed)
        protocol_report(c->ctx, c->k, op, mem, rule, what);
    c->failed = true;
}

// --- R2 ---

static void take_place(Check *c, const Op *op, int64_t bytes) {
    int64_t at = op_attr_int(op, ATTR_at);
    if (at < 0 || bytes <= 0)
        return;
    Bytes now = {op, at, at + bytes};
    for (int i = 0; i < c->nplace; i++)
        if (now.begin < c->place[i].end && c->place[i].begin < now.end)
            report(c, op, "R2", "shares bytes with what was placed before");
    if (c->nplace < PLACES_MAX)
        c->place[c->nplace++] = now;
}

// --- C3 ---

static bool is_mbarrier(const Op *chan) {
    Str mode = op_attr_str(chan, ATTR_mode);
    return mode && strcmp(mode, "mbarrier") == 0;
}

static void arrivals(Check *c, const Op *op) {
    const Op *chan = op->mem[0].mem->def;
    if (!is_mbarrier(chan))
        return;
    int64_t warps = op_attr_int(c->role ? c->role : c->launch, ATTR_warps);
    int64_t tx = op_attr_int(chan, ATTR_tx);
    if (op->kind == OP_COMMIT && tx > 0) { // the thread that expects the bytes
        if (op_attr_int(chan, ATTR_full) != 1)
            report(c, op, "C3", "a slot that copies fill has one arrival, `full = 1`");
        return;
    }
    int64_t count = op_attr_int(chan, op->kind == OP_COMMIT ? ATTR_full : ATTR_empty);
    if (count == 1 || count == warps || count * 4 == warps)
        return;
    if (op->kind == OP_COMMIT)
        report(c, op, "C3", "`full` is not the number of arrivals of the role's warps");
    else
        report(c, op, "C3", "`empty` is not the number of arrivals of the role's warps");
}

// --- B2 ---

// A barrier of fewer warps than the role has is one for each group of them, numbered from its name
// on.
static void barrier(Check *c, const Op *op) {
    int64_t name = op_attr_int(op, ATTR_name);
    int64_t own = op_attr_int(c->role ? c->role : c->launch, ATTR_warps);
    int64_t warps = op_attr_int(op, ATTR_warps);
    warps = warps > 0 ? warps : own;
    int64_t groups = c->role && warps < own ? own / warps : 1;
    for (int64_t i = name; name > 0 && i < name + groups && i < NAMES_MAX; i++) {
        Named *n = &c->named[i];
        if (n->warps && n->warps != warps)
            report(c, op, "B2", "the name is that of a barrier of another number of warps");
        if (n->warps == 0 || n->role != c->role)
            n->sum += groups > 1 ? warps : own;
        if (n->sum > warps)
            report(c, op, "B2", "the name is that of a barrier of other warps");
        n->warps = warps;
        n->role = c->role;
    }
}

// --- the walk ---

static void check_op(void *user, Op *op) {
    Check *c = user;
    c->role = NULL;
    for (const Op *o = op->parent->owner; o && o != c->launch; o = o->parent->owner)
        if (o->kind == OP_ROLE)
            c->role = o;
    switch ((int)op->kind) {
    case OP_BUF:
        if (op->sub == BUF_SHARED && op->def_mem->layout)
            take_place(c, op,
                       (int64_t)layout_offsets(op->def_mem->layout) *
                           dtype_bits(op->def_mem->dtype) / 8 * op_attr_int(op, ATTR_stages));
        break;
    case OP_CHAN:
        if (is_mbarrier(op))
            take_place(c, op, 2 * 8 * op_attr_int(op, ATTR_stages));
        break;
    case OP_COMMIT:
    case OP_RELEASE:
        arrivals(c, op);
        break;
    case OP_BARRIER:
        barrier(c, op);
        break;
    default:
        break;
    }
}

bool protocol_static(PassCtx *ctx, const Kernel *k, const Op *launch) {
    Check c = {.ctx = ctx, .k = k, .launch = launch};
    ir_walk(launch->region[0], check_op, &c);
    return !c.failed;
}

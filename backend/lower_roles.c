// Roles of warp groups, and channels whose slots are guarded by mbarriers.
//
// Input: `roles` with one region for each group of warps; acquire .. release of channels in mode
// mbarrier, whose attribute `at` is the place of 2 * stages barriers: first those of full slots,
// then those of empty ones. Output: a branch by the warp's number; waits, arrivals. A role of
// nothing but scalars, bulk copies and channels runs in one thread. Invariant: a position's slot
// and phase are computed from the position alone, so roles need to agree on nothing but rule C1.
#include "backend/lower.h"

#include <string.h>

// --- one thread ---

int group_warps(Lower *l, const Op *op) {
    int all = l->t->warps, warps = (int)op_attr_int(op, ATTR_warps);
    if (warps <= 0 || warps >= all)
        return all;
    if (warps & (warps - 1) || all % warps)
        target_fail(l->t, "groups of %d of %d warps", warps, all);
    return warps;
}

void elected_begin(Lower *l, Elected *e, int warps) {
    Target *t = l->t;
    *e = (Elected){.on = !l->single};
    if (!e->on)
        return;
    // The branch on the warp first: the election needs a whole warp.
    Uni warp = t->ops->warp_id(t);
    if (warps && warps < t->warps)
        warp.v = LLVMBuildAnd(t->builder, warp.v, uni_int(t, 32, warps - 1).v, "");
    Uni first = {LLVMBuildICmp(t->builder, LLVMIntEQ, warp.v, uni_int(t, 32, 0).v, "")};
    if_begin(t, &e->warp, first);
    if_begin(t, &e->lane, t->ops->elect(t));
}

void elected_end(Lower *l, Elected *e) {
    if (!e->on)
        return;
    if_end(l->t, &e->lane, 0, NULL, NULL, NULL);
    if_end(l->t, &e->warp, 0, NULL, NULL, NULL);
}

// --- mbarriers ---

static bool chan_is_mbarrier(const Mem *chan) {
    Str mode = chan->def ? op_attr_str(chan->def, ATTR_mode) : NULL;
    return mode && strcmp(mode, "mbarrier") == 0;
}

static int chan_stages(const Mem *chan) {
    int64_t stages = op_attr_int(chan->def, ATTR_stages);
    return stages < 1 ? 1 : (int)stages;
}

typedef struct Turn {
    Shared full, empty;
    Uni parity; // of the fill's phase
} Turn;

static Turn turn_of(Lower *l, const Mem *chan, Uni position) {
    Target *t = l->t;
    LLVMBuilderRef b = t->builder;
    LLVMValueRef stages = uni_int(t, 32, chan_stages(chan)).v;
    Uni pos = uni_resize(t, position, 32, true);
    LLVMValueRef slot = LLVMBuildURem(b, pos.v, stages, "");
    LLVMValueRef round = LLVMBuildUDiv(b, pos.v, stages, "");
    int32_t at = (int32_t)op_attr_int(chan->def, ATTR_at);
    Turn turn = {.parity = {LLVMBuildAnd(b, round, uni_int(t, 32, 1).v, "")}};
    turn.full.base = uni_mul(t, (Uni){slot}, uni_int(t, 32, 8));
    turn.empty.base = turn.full.base;
    turn.full.imm = at;
    turn.empty.imm = at + 8 * chan_stages(chan);
    return turn;
}

Shared mbarrier_full(Lower *l, const Mem *chan, Uni position) {
    return turn_of(l, chan, position).full;
}

typedef struct Reads {
    const Mem *chan;
    bool by_threads;
} Reads;

static void find_get(void *user, Op *op) {
    Reads *r = user;
    for (int i = 0; op->kind == OP_GET && i < r->chan->nbufs; i++)
        r->by_threads |= op->mem[0].mem == r->chan->bufs[i];
}

// A group's first warp knows when the matrix unit has read a slot, not when other warps have.
static bool is_read_by_threads(Lower *l, const Mem *chan) {
    Reads r = {.chan = chan};
    ir_walk(l->launch->region[0], find_get, &r);
    return r.by_threads;
}

// `count` arrivals of the role: of each warp, of each group of four warps, or of its one thread.
static void arrive(Lower *l, Shared bar, int64_t count) {
    Target *t = l->t;
    if (l->single && count == 1) {
        t->ops->mbar_arrive(t, bar, (Lane){NULL});
        return;
    }
    bool each = count == t->warps, group = count * 4 == t->warps;
    if (l->single || (!each && !group)) {
        target_fail(t, "%lld arrivals of %d warps", (long long)count, l->single ? 1 : t->warps);
        return;
    }
    Lane pred = lane_cmp(t, CMP_EQ, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, 0));
    if (group) {
        LLVMValueRef in_group =
            LLVMBuildAnd(t->builder, t->ops->warp_id(t).v, uni_int(t, 32, 3).v, "");
        Uni leads = {LLVMBuildIsNull(t->builder, in_group, "")};
        pred = lane_and(t, pred, t->ops->splat(t, leads));
    } else {
        t->ops->warp_barrier(t); // the other lanes have read too
    }
    t->ops->mbar_arrive(t, bar, pred);
}

void lower_mbarrier(Lower *l, const Op *op) {
    Target *t = l->t;
    const Mem *chan = op->mem[0].mem;
    if (!t->desc->has_tma || !t->ops->mbar_wait || op_attr_int(chan->def, ATTR_at) < 0) {
        target_fail(t, "channels in mode mbarrier");
        return;
    }
    int64_t tx = op_attr_int(chan->def, ATTR_tx);
    Turn turn = turn_of(l, chan, lower_index(l, op->in[op->mem[0].pos]));
    if (op->kind == OP_ACQUIRE) {
        LLVMValueRef before = LLVMBuildXor(t->builder, turn.parity.v, uni_int(t, 32, 1).v, "");
        t->ops->mbar_wait(t, turn.empty, (Uni){before});
        if (!tx)
            return;
        if (op_attr_int(chan->def, ATTR_full) != 1) {
            target_fail(t, "a channel that copies by threads and by TMA fill together");
            return;
        }
        Elected e;
        elected_begin(l, &e, 0);
        t->ops->mbar_expect(t, turn.full, (int)tx);
        elected_end(l, &e);
    } else if (op->kind == OP_COMMIT) {
        for (int i = 0; i < chan->nbufs; i++)
            if (l->async[chan->bufs[i]->id])
                target_fail(t, "copies by cp.async in a channel in mode mbarrier");
        if (!tx)
            arrive(l, turn.full, op_attr_int(chan->def, ATTR_full));
    } else if (op->kind == OP_WAIT) {
        t->ops->mbar_wait(t, turn.full, turn.parity);
    } else {
        int64_t empty = op_attr_int(chan->def, ATTR_empty);
        if (!l->single && empty != t->warps && is_read_by_threads(l, chan))
            target_fail(t, "@%s is read by threads and has not one arrival of each warp",
                        chan->name);
        arrive(l, turn.empty, empty);
    }
}

typedef struct ChanList {
    const Mem *chan[16];
    int n;
} ChanList;

static void list_chan(void *user, Op *op) {
    ChanList *list = user;
    if (op->kind == OP_CHAN && chan_is_mbarrier(op->def_mem) && list->n < 16)
        list->chan[list->n++] = op->def_mem;
}

void lower_mbarriers_init(Lower *l) {
    Target *t = l->t;
    ChanList list = {.n = 0};
    ir_walk(l->launch->region[0], list_chan, &list);
    if (list.n == 0)
        return;
    if (!t->desc->has_tma || !t->ops->mbar_init) {
        target_fail(t, "channels in mode mbarrier");
        return;
    }
    Elected e;
    elected_begin(l, &e, 0);
    for (int i = 0; i < list.n; i++) {
        const Op *def = list.chan[i]->def;
        int stages = chan_stages(list.chan[i]);
        t->op = def;
        for (int s = 0; s < 2 * stages; s++) {
            Shared bar = {.imm = (int32_t)op_attr_int(def, ATTR_at) + 8 * s};
            t->ops->mbar_init(t, bar, (int)op_attr_int(def, s < stages ? ATTR_full : ATTR_empty));
        }
    }
    t->ops->mbar_init_fence(t);
    elected_end(l, &e);
    t->ops->block_barrier(t);
}

// --- barriers and fences ---

// Barriers of groups have consecutive numbers; the number has to be an immediate.
static void group_barrier(Lower *l, int id, int warps, int group, int groups) {
    Target *t = l->t;
    IfState s;
    if (group + 1 == groups) {
        t->ops->named_barrier(t, id + group, warps);
        return;
    }
    LLVMValueRef end = uni_int(t, 32, (group + 1) * warps).v;
    if_begin(t, &s, (Uni){LLVMBuildICmp(t->builder, LLVMIntULT, t->ops->warp_id(t).v, end, "")});
    t->ops->named_barrier(t, id + group, warps);
    if_else(t, &s);
    group_barrier(l, id, warps, group + 1, groups);
    if_end(t, &s, 0, NULL, NULL, NULL);
}

void lower_barrier(Lower *l, const Op *op) {
    Target *t = l->t;
    int id = (int)op_attr_int(op, ATTR_name), warps = (int)op_attr_int(op, ATTR_warps);
    if (t->role && id && warps && warps < t->warps)
        group_barrier(l, id, group_warps(l, op), 0, t->warps / warps);
    else if (t->role ? id == 0 : warps == 0 || warps == t->warps)
        t->ops->block_barrier(t);
    else
        t->ops->named_barrier(t, id, warps ? warps : t->warps);
}

void lower_fence(Lower *l, const Op *op) {
    if (l->t->desc->has_tma && l->t->ops->fence)
        l->t->ops->fence(l->t, (FenceKind)op->sub);
    else
        target_fail(l->t, "fences");
}

// --- roles ---

// No op needs more than one thread.
static bool runs_single(const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        bool bulk = op->kind == OP_COPY && copy_is_tma(op);
        bool chan = op_info(op->kind)->form == FORM_CHANOP && chan_is_mbarrier(op->mem[0].mem);
        bool structure =
            op->nregion || op->kind == OP_YIELD || op->kind == OP_AXIS || op->kind == OP_COPY_WAIT;
        if (!bulk && !chan && !structure && !op_has(op->kind, TRAIT_PURE))
            return false;
        for (int i = 0; i < op->nres; i++)
            if (op->res[i]->type.axes.n)
                return false;
        for (int i = 0; i < op->nregion; i++)
            if (!runs_single(op->region[i]))
                return false;
    }
    return true;
}

static void role_registers(Lower *l, const Op *role, int launch_warps) {
    int64_t regs = op_attr_int(role, ATTR_regs);
    int start = 65536 / (launch_warps * l->t->desc->lanes) / 8 * 8;
    if (start > l->t->desc->max_regs)
        start = l->t->desc->max_regs / 8 * 8;
    if (regs && regs != start)
        l->t->ops->set_regs(l->t, (int)regs, regs > start);
}

static void lower_role(Lower *l, const Op *role, int launch_warps) {
    Target *t = l->t;
    role_registers(l, role, launch_warps);
    Elected e = {.on = false};
    bool single = runs_single(role->region[0]);
    if (single)
        elected_begin(l, &e, 0);
    l->single = single;
    l->stores_bulk = false;
    l->store_warps = 0;
    lower_region(l, role->region[0]);
    if (l->stores_bulk && !t->failed) { // shared memory lives until the stores are done
        Elected last;
        elected_begin(l, &last, l->store_warps);
        t->ops->tma_wait(t, 0, false);
        elected_end(l, &last);
    }
    l->single = false;
    if (single)
        elected_end(l, &e);
}

static void lower_role_chain(Lower *l, const Op *role, int first, int number, int launch_warps) {
    Target *t = l->t;
    int warps = (int)op_attr_int(role, ATTR_warps);
    IfState s;
    if (role->next) {
        LLVMValueRef end = uni_int(t, 32, first + warps).v;
        if_begin(t, &s, (Uni){LLVMBuildICmp(t->builder, LLVMIntULT, t->warp_all.v, end, "")});
    }
    t->role = number;
    t->warps = warps;
    t->warp_first = first;
    lower_role(l, role, launch_warps);
    if (!role->next || t->failed)
        return;
    if_else(t, &s);
    lower_role_chain(l, role->next, first + warps, number + 1, launch_warps);
    if (!t->failed)
        if_end(t, &s, 0, NULL, NULL, NULL);
}

static void count_scratch(void *user, Op *op) {
    int *n = user;
    *n += lower_scratch_bytes(op) > 0;
}

void lower_roles(Lower *l, const Op *op) {
    Target *t = l->t;
    int with_scratch = 0;
    for (const Op *role = op->region[0]->first; role; role = role->next) {
        int n = 0;
        ir_walk(role->region[0], count_scratch, &n);
        with_scratch += n > 0;
    }
    if (with_scratch > 1) {
        target_fail(t, "several roles that need scratch memory");
        return;
    }
    if (!t->desc->has_tma || !t->ops->warp_uniform || t->role) {
        target_fail(t, t->role ? "roles in a role" : "warp groups with roles of their own");
        return;
    }
    int warps = t->warps;
    t->warp_all = t->ops->warp_uniform(t);
    lower_role_chain(l, op->region[0]->first, 0, 1, warps);
    t->role = 0;
    t->warps = warps;
    t->warp_first = 0;
    if (op->next && !t->failed) // a join
        t->ops->block_barrier(t);
}

// Barriers in shared memory, bulk copies and the matrix unit of a warp group on `sim`: calls of the
// helpers of sim.h.
//
// A warp is one thread of control here, so what one elected thread does, the warp does once.
#include "backend/host/host_sim_slots.h"

enum { ACC_MAX = 128 }; // registers of an accumulator that one instruction takes

// Bytes from the start of shared memory.
static V shared_at(Target *t, Shared p) {
    V at = p.base.v ? p.base.v : int32(t, 0);
    return p.imm ? LLVMBuildAdd(t->builder, at, int32(t, p.imm), "") : at;
}

static void call(Target *t, const char *name, int n, V *args) {
    V all[12];
    all[0] = warp_of(t);
    for (int i = 0; i < n; i++)
        all[1 + i] = args[i];
    all[1 + n] = span_of(t);
    host_call(t, name, NULL, n + 2, all);
}

Uni sim_emit_warp_uniform(Target *t) {
    return (Uni){host_state(t)->warp};
}

Uni sim_emit_elect(Target *t) {
    return uni_int(t, 1, 1);
}

void sim_emit_set_regs(Target *t, int regs, bool more) {
    call(t, "sim_set_regs", 2, (V[]){int32(t, regs), int32(t, more)});
}

// Memory of other programs and of the device is always in order here.
void sim_emit_fence(Target *t, FenceKind kind) {
    if (kind == FENCE_ASYNC)
        call(t, "sim_fence_async", 0, NULL);
}

void sim_emit_stmatrix(Target *t, const Access *access, int count, bool trans, Shared p,
                       const Lane *in) {
    put_shared_offsets(t, SLOT_OFFSET, p);
    put_packed(t, SLOT_VALUE, access->dtype, 2 * count, in);
    call(t, "sim_stmatrix", 4,
         (V[]){slot(t, SLOT_OFFSET), slot(t, SLOT_VALUE), int32(t, count), int32(t, trans)});
}

// --- barriers ----------------------------------------------------------------------------------

void sim_emit_mbar_init(Target *t, Shared bar, int arrivals) {
    call(t, "sim_mbar_init", 2, (V[]){shared_at(t, bar), int32(t, arrivals)});
}
void sim_emit_mbar_init_fence(Target *t) {
    call(t, "sim_mbar_init_fence", 0, NULL);
}
void sim_emit_mbar_expect(Target *t, Shared bar, int bytes) {
    call(t, "sim_mbar_expect", 2, (V[]){shared_at(t, bar), int32(t, bytes)});
}
void sim_emit_mbar_arrive(Target *t, Shared bar, Lane pred) {
    V mask = pred.v ? mask_word(t, pred) : int32(t, 1);
    call(t, "sim_mbar_arrive", 2, (V[]){shared_at(t, bar), mask});
}
void sim_emit_mbar_wait(Target *t, Shared bar, Uni parity) {
    call(t, "sim_mbar_wait", 2, (V[]){shared_at(t, bar), parity.v});
}
// Lanes go in step.
void sim_emit_warp_barrier(Target *t) {
    (void)t;
}

// --- bulk copies -------------------------------------------------------------------------------

static void put_coordinates(Target *t, int rank, const Uni *at) {
    for (int i = 0; i < rank; i++)
        LLVMSetAlignment(LLVMBuildStore(t->builder, at[i].v, slot_at(t, SLOT_OFFSET, 4 * i)), 4);
}

void sim_emit_tma_load(Target *t, Uni map, int rank, const Uni *at, Shared to, Shared bar) {
    put_coordinates(t, rank, at);
    call(t, "sim_bulk_load", 4,
         (V[]){map.v, slot(t, SLOT_OFFSET), shared_at(t, to), shared_at(t, bar)});
}
void sim_emit_tma_store(Target *t, Uni map, int rank, const Uni *at, Shared from) {
    put_coordinates(t, rank, at);
    call(t, "sim_bulk_store", 3, (V[]){map.v, slot(t, SLOT_OFFSET), shared_at(t, from)});
}
void sim_emit_tma_commit(Target *t) {
    call(t, "sim_bulk_commit", 0, NULL);
}
// A store reads its buffer and writes the tensor in one step.
void sim_emit_tma_wait(Target *t, int pending, bool read) {
    (void)read;
    call(t, "sim_bulk_wait", 1, (V[]){int32(t, pending)});
}

// --- matrix unit -------------------------------------------------------------------------------

static V descriptor(Target *t, const MmaDesc *d) {
    LLVMBuilderRef b = t->builder;
    uint64_t swizzle = d->swizzle == 128 ? 1 : d->swizzle == 64 ? 2 : d->swizzle == 32 ? 3 : 0;
    uint64_t rest =
        (uint64_t)(d->leading >> 4) << 16 | (uint64_t)(d->stride >> 4) << 32 | swizzle << 62;
    V at = LLVMBuildLShr(b, shared_at(t, d->at), int32(t, 4), "");
    at = LLVMBuildZExt(b, at, target_int(t, 64), "");
    return LLVMBuildOr(b, at, LLVMConstInt(target_int(t, 64), rest, false), "");
}

static V acc_at(Target *t, int r) {
    HostState *s = host_state(t);
    V k = int32(t, r * 4 * t->desc->lanes);
    return LLVMBuildGEP2(t->builder, target_int(t, 8), s->accumulators, &k, 1, "");
}

static void put_accumulators(Target *t, int n, const Lane *acc) {
    HostState *s = host_state(t);
    if (!s->accumulators) {
        uint64_t bytes = (uint64_t)(ACC_MAX * 4 * t->desc->lanes);
        s->accumulators = host_alloca(t, LLVMArrayType2(target_int(t, 8), bytes), 64);
    }
    for (int r = 0; r < n; r++)
        LLVMSetAlignment(LLVMBuildStore(t->builder, acc[r].v, acc_at(t, r)), 32);
}

static void get_accumulators(Target *t, int n, Lane *acc) {
    for (int r = 0; r < n; r++) {
        acc[r].v = LLVMBuildLoad2(t->builder, LLVMTypeOf(acc[r].v), acc_at(t, r), "");
        LLVMSetAlignment(acc[r].v, 32);
    }
}

void sim_emit_mma_issue(Target *t, const MmaIssue *m, Lane *acc) {
    bool fits = m->acc == DT_F32 || (m->acc == DT_I32 && dtype_is_integer(m->ab));
    if (!fits || m->n > 2 * ACC_MAX) {
        target_fail(t, "products of %s", dtype_name(m->ab));
        return;
    }
    int flags = (m->start ? SIM_MMA_START : 0) | (m->regs ? SIM_MMA_REGS : 0) |
                (!m->regs && m->a.transposed ? SIM_MMA_TRANS_A : 0) |
                (m->b.transposed ? SIM_MMA_TRANS_B : 0);
    if (m->regs)
        put_packed(t, SLOT_VALUE, m->ab, 8, m->regs);
    put_accumulators(t, m->n / 2, acc);
    V none = LLVMConstInt(target_int(t, 64), 0, false);
    V args[] = {int32(t, m->ab),
                int32(t, m->n),
                int32(t, m->k),
                int32(t, flags),
                m->regs ? none : descriptor(t, &m->a),
                descriptor(t, &m->b),
                slot(t, SLOT_VALUE),
                host_state(t)->accumulators};
    call(t, "sim_mma_issue", 8, args);
    get_accumulators(t, m->n / 2, acc);
}

void sim_emit_mma_fence(Target *t) {
    call(t, "sim_mma_fence", 0, NULL);
}
void sim_emit_mma_commit(Target *t) {
    call(t, "sim_mma_commit", 0, NULL);
}

void sim_emit_mma_wait(Target *t, int pending, int n, Lane *acc) {
    call(t, "sim_mma_wait", 1, (V[]){int32(t, pending)});
    bool all = !t->op || t->op->nres == 0 || !t->op->res[0]->type.is_async;
    for (int from = 0; from < n; from += ACC_MAX) {
        int part = n - from < ACC_MAX ? n - from : ACC_MAX;
        put_accumulators(t, part, acc + from);
        call(t, "sim_mma_take", 4,
             (V[]){int32(t, pending), int32(t, part), host_state(t)->accumulators, int32(t, all)});
        get_accumulators(t, part, acc + from);
    }
}

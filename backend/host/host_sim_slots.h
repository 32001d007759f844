// Arrays on a warp's stack through which code of `sim` and the helpers of sim.h exchange the values
// of lanes; shared by host_sim.c and host_sim_async.c.
#ifndef FUSE_BACKEND_HOST_HOST_SIM_SLOTS_H
#define FUSE_BACKEND_HOST_HOST_SIM_SLOTS_H

#include "backend/host/host_impl.h"
#include "backend/host/sim.h"

enum { SLOT_OFFSET, SLOT_VALUE, SLOT_SECOND, SLOT_THIRD, SLOT_RESULT };

static inline V slot(Target *t, int which) {
    return host_state(t)->scratch[which];
}
static inline V int32(Target *t, int64_t x) {
    return LLVMConstInt(target_int(t, 32), (unsigned long long)x, true);
}
static inline V warp_of(Target *t) {
    return host_state(t)->context;
}
static inline V span_of(Target *t) {
    Span none = {0, 0};
    return LLVMConstInt(target_int(t, 64), sim_span(t->op ? t->op->span : none), false);
}
static inline V mask_word(Target *t, Lane pred) {
    if (!pred.v)
        return int32(t, -1);
    return LLVMBuildBitCast(t->builder, pred.v, target_int(t, 32), "");
}

static inline V slot_at(Target *t, int which, int byte) {
    V k = int32(t, byte);
    return byte ? LLVMBuildGEP2(t->builder, target_int(t, 8), slot(t, which), &k, 1, "")
                : slot(t, which);
}
static inline void slot_put(Target *t, int which, int byte, V x) {
    LLVMSetAlignment(LLVMBuildStore(t->builder, x, slot_at(t, which, byte)), 32);
}
static inline V slot_get(Target *t, int which, int byte, LLVMTypeRef type) {
    V x = LLVMBuildLoad2(t->builder, type, slot_at(t, which, byte), "");
    LLVMSetAlignment(x, 32);
    return x;
}

// Offsets of a shared access as i32, one a lane (host_sim.c).
void put_shared_offsets(Target *t, int which, Shared p);
// Packs `n` elements into 32-bit registers of a slot (host_sim.c).
void put_packed(Target *t, int which, DType dtype, int n, const Lane *x);

#endif

// Bulk copies, mbarriers, fences and register budgets of the nvptx target (sm_90).
//
// Input: addresses in shared memory, tensor maps in constant parameters. Output: intrinsics; what
// LLVM has none for as inline PTX. Invariant: every access of memory counts as one for LLVM, so
// nothing moves across a wait or a fence.
#include "backend/nvptx/nvptx_impl.h"

#include <stdio.h>
#include <string.h>

Uni nvptx_elect(Target *t) {
    V all = nvptx_const(t, 32, -1);
    V r = nvptx_call(t, "llvm.nvvm.elect.sync", 1, &all);
    return (Uni){LLVMBuildExtractValue(t->builder, r, 1, "")};
}

void nvptx_set_regs(Target *t, int regs, bool more) {
    V n = nvptx_const(t, 32, regs);
    nvptx_call(t,
               more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                    : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
               1, &n);
}

void nvptx_fence(Target *t, FenceKind kind) {
    switch (kind) {
    case FENCE_ASYNC:
        nvptx_call(t, "llvm.nvvm.fence.proxy.async.shared_cta", 0, NULL);
        return;
    case FENCE_GPU:
        nvptx_call(t, "llvm.nvvm.membar.gl", 0, NULL);
        return;
    case FENCE_CLUSTER:
        nvptx_asm(t, NULL, "fence.acq_rel.cluster;", "~{memory}", 0, NULL, true);
        return;
    case FENCE_COUNT:
        break;
    }
}

void nvptx_warp_barrier(Target *t) {
    V all = nvptx_const(t, 32, -1);
    nvptx_call(t, "llvm.nvvm.bar.warp.sync", 1, &all);
}

// --- mbarriers ---

void nvptx_mbar_init(Target *t, Shared bar, int arrivals) {
    V args[2] = {nvptx_shared_pointer(t, bar, true), nvptx_const(t, 32, arrivals)};
    nvptx_call(t, "llvm.nvvm.mbarrier.init.shared", 2, args);
}

void nvptx_mbar_init_fence(Target *t) {
    nvptx_call(t, "llvm.nvvm.fence.mbarrier_init.release.cluster", 0, NULL);
}

void nvptx_mbar_expect(Target *t, Shared bar, int bytes) {
    V args[2] = {nvptx_shared_pointer(t, bar, true), nvptx_const(t, 32, bytes)};
    nvptx_call(t, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", 2, args);
}

void nvptx_mbar_arrive(Target *t, Shared bar, Lane pred) {
    V word =
        LLVMBuildPtrToInt(t->builder, nvptx_shared_pointer(t, bar, false), target_int(t, 32), "");
    V args[2] = {word, pred.v};
    char text[96];
    snprintf(text, sizeof text, "%smbarrier.arrive.shared::cta.b64 _, [$0+%d];",
             pred.v ? "@$1 " : "", (int)bar.imm);
    nvptx_asm(t, NULL, text, pred.v ? "r,b,~{memory}" : "r,~{memory}", pred.v ? 2 : 1, args, true);
}

// try_wait sleeps for a while by itself.
void nvptx_mbar_wait(Target *t, Shared bar, Uni parity) {
    LLVMBuilderRef b = t->builder;
    LLVMBasicBlockRef spin = LLVMAppendBasicBlockInContext(t->llvm, t->function, "wait");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(t->llvm, t->function, "arrived");
    V args[2] = {nvptx_shared_pointer(t, bar, true), parity.v};
    LLVMBuildBr(b, spin);
    LLVMPositionBuilderAtEnd(b, spin);
    V ok = nvptx_call(t, "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta", 2, args);
    LLVMBuildCondBr(b, ok, done, spin);
    LLVMPositionBuilderAtEnd(b, done);
}

// --- boxes ---

void nvptx_tma_load(Target *t, Uni map, int rank, const Uni *at, Shared to, Shared bar) {
    char name[80];
    V args[10] = {nvptx_shared_pointer(t, to, true), nvptx_shared_pointer(t, bar, true), map.v};
    int n = 3;
    for (int i = 0; i < rank; i++)
        args[n++] = at[i].v;
    args[n++] = nvptx_const(t, 64, 0); // no cache hint
    args[n++] = nvptx_const(t, 1, 0);
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.%dd", rank);
    nvptx_call(t, name, n, args);
}

void nvptx_tma_store(Target *t, Uni map, int rank, const Uni *at, Shared from) {
    char name[80];
    V args[9] = {nvptx_shared_pointer(t, from, true), map.v};
    int n = 2;
    for (int i = 0; i < rank; i++)
        args[n++] = at[i].v;
    args[n++] = nvptx_const(t, 64, 0);
    args[n++] = nvptx_const(t, 1, 0);
    snprintf(name, sizeof name, "llvm.nvvm.cp.async.bulk.tensor.s2g.tile.%dd", rank);
    nvptx_call(t, name, n, args);
}

void nvptx_tma_commit(Target *t) {
    nvptx_call(t, "llvm.nvvm.cp.async.bulk.commit.group", 0, NULL);
}

void nvptx_tma_wait(Target *t, int pending, bool read) {
    V n = nvptx_const(t, 32, pending);
    nvptx_call(
        t, read ? "llvm.nvvm.cp.async.bulk.wait.group.read" : "llvm.nvvm.cp.async.bulk.wait.group",
        1, &n);
}

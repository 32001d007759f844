// What the files of the nvptx target share. One LLVM value per thread; a Lane is an LLVM scalar.
#ifndef FUSE_BACKEND_NVPTX_IMPL_H
#define FUSE_BACKEND_NVPTX_IMPL_H

#include <llvm-c/TargetMachine.h>

#include "backend/target.h"

typedef LLVMValueRef V;

typedef struct Nvptx {
    LLVMTargetMachineRef machine;
    V shared; // the dynamic shared memory
    LLVMDIBuilderRef di;
    LLVMMetadataRef di_file, di_scope; // of the function being built
    FileId di_file_id;
    char *error; // from LLVM's diagnostic handler
} Nvptx;

static inline Nvptx *nvptx_of(const Target *t) {
    return t->state;
}

// --- nvptx.c ---
V nvptx_const(Target *t, int bits, int64_t value);
V nvptx_call(Target *t, const char *intrinsic, int n, V *args); // not overloaded
// Inline PTX. `out` NULL: no result. memory: it may read or write memory that LLVM knows of.
V nvptx_asm(Target *t, LLVMTypeRef out, const char *text, const char *constraints, int n, V *args,
            bool effect);
V nvptx_resize(Target *t, V x, int bits); // integers, unsigned

// --- nvptx_emit.c ---
bool nvptx_module_begin(Target *t);
bool nvptx_module_end(Target *t, BackendOutput *out);
void nvptx_span(Target *t, Span span);
void nvptx_function_scope(Target *t, Span span);

// --- nvptx_math.c ---
Lane nvptx_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                 const Lane *args);
void nvptx_cast(Target *t, DType from, DType to, int n, const Lane *in, Lane *out);

// --- nvptx_memory.c ---
void nvptx_load_global(Target *t, const Access *a, Ptr p, Lane pred, const Lane *fill, Lane *out);
void nvptx_store_global(Target *t, const Access *a, Ptr p, Lane pred, const Lane *in);
void nvptx_cas(Target *t, const Access *a, Ptr p, Lane pred, Lane expected, Lane v, Lane *old);
void nvptx_atomic(Target *t, const Access *a, AtomicKind kind, Ptr p, Lane pred, Lane v, Lane *old);
void nvptx_load_shared(Target *t, const Access *a, Shared p, Lane pred, Lane *out);
void nvptx_store_shared(Target *t, const Access *a, Shared p, Lane pred, const Lane *in);
void nvptx_ldmatrix(Target *t, const Access *a, int count, bool trans, Shared p, Lane *out);
void nvptx_cp_async(Target *t, const Access *a, Shared to, Ptr from, Lane pred, Lane active);
void nvptx_cp_commit(Target *t);
void nvptx_cp_wait(Target *t, int pending);
void nvptx_stmatrix(Target *t, const Access *a, int count, bool trans, Shared p, const Lane *in);
V nvptx_shared_pointer(Target *t, Shared p, bool with_imm); // address space 3

// --- nvptx_pressure.c ---
// Whether there are loops, and a thread has registers for what they compute again in every step.
bool pressure_hoists(Arena *arena, LLVMValueRef f);

// --- nvptx_warp.c ---
Lane nvptx_shuffle_xor(Target *t, DType dtype, Lane x, uint32_t mask);
Lane nvptx_shuffle_idx(Target *t, DType dtype, Lane x, Lane source);
void nvptx_block_barrier(Target *t);
void nvptx_named_barrier(Target *t, int id, int warps);
void nvptx_mma(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
               const Lane *c, Lane *out);
// --- nvptx_tma.c ---
Uni nvptx_elect(Target *t);
void nvptx_set_regs(Target *t, int regs, bool more);
void nvptx_fence(Target *t, FenceKind kind);
void nvptx_warp_barrier(Target *t);
void nvptx_mbar_init(Target *t, Shared bar, int arrivals);
void nvptx_mbar_init_fence(Target *t);
void nvptx_mbar_expect(Target *t, Shared bar, int bytes);
void nvptx_mbar_arrive(Target *t, Shared bar, Lane pred);
void nvptx_mbar_wait(Target *t, Shared bar, Uni parity);
void nvptx_tma_load(Target *t, Uni map, int rank, const Uni *at, Shared to, Shared bar);
void nvptx_tma_store(Target *t, Uni map, int rank, const Uni *at, Shared from);
void nvptx_tma_commit(Target *t);
void nvptx_tma_wait(Target *t, int pending, bool read);

// --- nvptx_wgmma.c ---
void nvptx_mma_fence(Target *t);
void nvptx_mma_issue(Target *t, const MmaIssue *m, Lane *acc);
void nvptx_mma_commit(Target *t);
void nvptx_mma_wait(Target *t, int pending, int n, Lane *acc);

// `n` elements of a register type <= 32 bits as 32-bit words, lowest first.
V nvptx_pack(Target *t, DType dtype, int n, const Lane *x);
void nvptx_unpack(Target *t, DType dtype, int n, V word, Lane *out);

#endif

// Insides of the host targets, shared by host_target.c (module, kernel), host_value.c,
// host_math.c, host_memory.c (cpu) and host_sim.c (sim).
//
// A Lane is a vector of desc->lanes elements. Entry points:
//   cpu   void f(void **args, i64 lo, i64 hi, ptr context)        programs [lo, hi); context: const
//   char *message sim   void f(void **args, i64 program, i32 warp, ptr warp)    once per warp;
//   calls the sim_* helpers by name
// args[i] points at entry parameter i.
#ifndef FUSE_BACKEND_HOST_HOST_IMPL_H
#define FUSE_BACKEND_HOST_HOST_IMPL_H

#include <llvm-c/TargetMachine.h>

#include "backend/target.h"

typedef LLVMValueRef V;

enum { HOST_SCRATCH = 5, HOST_SCRATCH_BYTES = 2048 };

typedef struct HostState {
    LLVMTargetMachineRef machine;
    bool is_large; // too large for optimisation
    // The function being built.
    LLVMBasicBlockRef entry; // allocas; ends in a branch once the kernel is complete
    LLVMBasicBlockRef first; // where the entry goes
    LLVMBasicBlockRef head, exit;
    V program, context, warp; // cpu: phi; sim: arguments
    V shared;                 // cpu: the program's shared memory, or NULL
    V nowhere;                // cpu: 64 zero bytes for lanes that are off, or NULL
    V accumulators;           // sim: an array for those of a product, or NULL
    V scratch[HOST_SCRATCH];  // sim: arrays that helpers read and write, in the entry block
} HostState;

static inline HostState *host_state(Target *t) {
    return t->state;
}
static inline bool host_is_sim(const Target *t) {
    return t->desc->family == TARGET_SIM;
}

// --- the machine (host_machine.c) ---
// NULL after target_fail.
LLVMTargetMachineRef host_machine_new(Target *t, bool optimise);

// With its vectors come masked accesses of small elements and an instruction for ldexp.
static inline bool host_has_avx512(const Target *t) {
    return t->desc->family == TARGET_CPU && t->desc->vec_bytes == 64;
}

// --- types and constants (host_value.c) ---
LLVMTypeRef host_vector(Target *t, LLVMTypeRef element);
LLVMTypeRef host_lanes_int(Target *t, int bits); // <L x i#bits>
LLVMTypeRef host_pointer(Target *t);
V host_splat(Target *t, V scalar);
V host_iota(Target *t, int bits, int64_t step); // <0, step, 2 step, ...>
V host_mask_any(Target *t, V mask);             // i1
V host_alloca(Target *t, LLVMTypeRef type, unsigned align);
// Calls an external function, declared from the arguments' types. `result` NULL: void.
V host_call(Target *t, const char *name, LLVMTypeRef result, int n, V *args);
V host_text(Target *t, const char *text); // pointer to a constant string

Uni host_warp_id(Target *t);
Lane host_lane_id(Target *t);
Lane host_splat_uni(Target *t, Uni x);
Uni host_lane_first(Target *t, Lane x);
Lane host_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags, const Lane *args);
Lane host_select(Target *t, Lane cond, Lane a, Lane b);
Lane host_bitcast(Target *t, DType from, DType to, Lane x);
Lane host_shuffle_xor(Target *t, DType dtype, Lane x, uint32_t mask);
Lane host_shuffle_idx(Target *t, DType dtype, Lane x, Lane source);

// --- casts (host_value.c) ---
void host_cast(Target *t, DType from, DType to, int n, const Lane *in, Lane *out);

// --- functions (host_math.c) ---
// NULL when `kind` is none of them. f32 in vectors, at most 2 ulp; f64 by the C library, lane by
// lane.
V host_math(Target *t, OpKind kind, DType dtype, const V *args);

// --- memory: types (host_memory.c) ---
int host_memory_bytes(Target *t,
                      DType dtype); // of one element; packed ones are bytes in shared memory
V host_to_memory(Target *t, DType dtype, V x); // register vector to <L x i#> of memory width
V host_from_memory(Target *t, DType dtype, V x);

// --- cpu (host_memory.c, host_atomic.c, host_affine.c) ---
// An offset that is base + i * step over the lanes. base is a scalar of the offset's type (NULL:
// 0).
typedef struct Affine {
    bool ok;
    V base;
    int64_t constant, step;
} Affine;
Affine host_affine(Target *t, V offset);
// The scalar that all lanes of a predicate are equal to, where that is plain to see; else NULL.
V host_uniform_mask(Target *t, V mask);

V host_mask(Lane pred);                 // NULL when it is always true
V host_lane_pointers(Target *t, Ptr p); // <L x ptr>
void host_load_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                      Lane *out);
void host_store_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in);
void host_cas(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v, Lane *old);
void host_atomic(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                 Lane *old);
void host_load_shared(Target *t, const Access *access, Shared p, Lane pred, Lane *out);
void host_store_shared(Target *t, const Access *access, Shared p, Lane pred, const Lane *in);

// --- sim (host_sim.c) ---
void sim_emit_load_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                          Lane *out);
void sim_emit_store_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in);
void sim_emit_cas(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v,
                  Lane *old);
void sim_emit_atomic(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                     Lane *old);
void sim_emit_load_shared(Target *t, const Access *access, Shared p, Lane pred, Lane *out);
void sim_emit_store_shared(Target *t, const Access *access, Shared p, Lane pred, const Lane *in);
void sim_emit_ldmatrix(Target *t, const Access *access, int count, bool trans, Shared p, Lane *out);
void sim_emit_barrier(Target *t, int id, int warps);
void sim_emit_mma(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
                  const Lane *c, Lane *out);
void sim_emit_cp_async(Target *t, const Access *access, Shared to, Ptr from, Lane pred,
                       Lane active);
void sim_emit_cp_commit(Target *t);
void sim_emit_cp_wait(Target *t, int pending);
void sim_emit_check(Target *t, Lane ok, Lane guard, const char *message);

// --- sim (host_sim_async.c): as in target.h ---
Uni sim_emit_warp_uniform(Target *t);
Uni sim_emit_elect(Target *t);
void sim_emit_set_regs(Target *t, int regs, bool more);
void sim_emit_fence(Target *t, FenceKind kind);
void sim_emit_stmatrix(Target *t, const Access *access, int count, bool trans, Shared p,
                       const Lane *in);
void sim_emit_mbar_init(Target *t, Shared bar, int arrivals);
void sim_emit_mbar_init_fence(Target *t);
void sim_emit_mbar_expect(Target *t, Shared bar, int bytes);
void sim_emit_mbar_arrive(Target *t, Shared bar, Lane pred);
void sim_emit_mbar_wait(Target *t, Shared bar, Uni parity);
void sim_emit_warp_barrier(Target *t);
void sim_emit_tma_load(Target *t, Uni map, int rank, const Uni *at, Shared to, Shared bar);
void sim_emit_tma_store(Target *t, Uni map, int rank, const Uni *at, Shared from);
void sim_emit_tma_commit(Target *t);
void sim_emit_tma_wait(Target *t, int pending, bool read);
void sim_emit_mma_fence(Target *t);
void sim_emit_mma_issue(Target *t, const MmaIssue *m, Lane *acc);
void sim_emit_mma_commit(Target *t);
void sim_emit_mma_wait(Target *t, int pending, int n, Lane *acc);

#endif

// The target interface: what a lowering may ask of a machine.
//
// Lowering sees three kinds of value:
//   Uni     one LLVM scalar for the whole program (or warp): dims, loop counters, conditions, bases
//   Lane    one value per lane. nvptx: an LLVM scalar of the thread; cpu, sim: `<L x T>`
//   Ptr     global memory: uniform base pointer + byte offset per lane + constant bytes
//   Shared  shared memory: uniform byte offset + byte offset per lane + constant bytes
// The struct types keep them apart: the LLVM builder is called on a Lane only inside a target (and
// in target.c, arith.c, whose code holds for scalars and vectors alike).
//
// Control flow is uniform in every target (per program, or per warp): there are no lane masks for
// branches; predicates are Lane booleans given to memory operations. `Lane.v == NULL` as a
// predicate means "always", as a fill "zero", as an offset "0".
//
// Register types: bool i1; i4, u4, e4m3, e5m2, i8, u8 as i8; f16 half; bf16 bfloat; index i64; the
// others as they are. i4 and u4 are extended to their i8.
//
// Semantics of all operations are those of the evaluator (language SPEC): integers wrap, division
// by zero gives some value but is never undefined behaviour, shifts past the width give 0 or the
// sign, min and max propagate NaN, float to integer saturates with NaN to 0, f16 and bf16
// arithmetic is done in f32 and rounded once per operation.
#ifndef FUSE_BACKEND_TARGET_H
#define FUSE_BACKEND_TARGET_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

#include "backend/backend.h"
#include "ir/abi.h"
#include "ir/ir.h"
#include "ir/layout.h"
#include "ir/target_desc.h"
#include "lang/base/diag.h"

typedef struct Uni {
    LLVMValueRef v;
} Uni;
typedef struct Lane {
    LLVMValueRef v;
} Lane;

typedef struct Ptr {
    Uni base;    // pointer of the target's global address space
    Lane offset; // bytes, i32 or i64 (signed); NULL: 0
    int64_t imm; // bytes, added
} Ptr;

typedef struct Shared {
    Uni base;    // i32, bytes from the start of the program's shared memory; NULL: 0
    Lane offset; // i32 bytes; NULL: 0
    int32_t imm; // bytes, added
} Shared;

typedef enum CacheHint { CACHE_DEFAULT, CACHE_STREAM, CACHE_KEEP } CacheHint;

// A memory access of `width` consecutive elements per lane (a vector access).
typedef struct Access {
    DType dtype;
    int width; // elements, a power of two
    int align; // bytes that the address of every lane is known to be aligned to
    CacheHint cache;
    const Mem *mem; // for reports and shadow memory
    bool read_only; // global: nothing in this launch writes mem
} Access;

// Elements of one fragment that a lane holds (as in layout_mma_a/b/c).
typedef struct MmaShape {
    int a, b, c; // m16n8k16: 8, 4, 4; m16n8k8: 4, 2, 4; tf32: 4, 2, 4; m16n8k32: 16, 8, 4;
                 // m8n8k4: 1, 1, 2
    int m, k;    // n is 8
} MmaShape;
MmaShape mma_shape(MmaUnit kind);

// An operand of a warp group's matrix unit in shared memory: lines of `swizzle` bytes, eight of
// them a core; strides in bytes.
typedef struct MmaDesc {
    Shared at;
    bool transposed; // the outer axis, not the contracted one, lies along a line
    int swizzle;
    int leading; // transposed: from one line's outer elements to the next ones
    int stride;  // from one core to the next
} MmaDesc;
typedef struct MmaIssue {
    DType ab, acc;
    int n, k;         // the instruction is m64 n k
    bool start;       // the result does not add to the accumulator
    const Lane *regs; // a as a fragment, 32 bytes of k in 4 words; NULL: in shared memory
    MmaDesc a, b;
} MmaIssue;

// A line of text for each lane: C's printf format, 64-bit integers and doubles.
typedef struct Print {
    const char *format;
    int n;
    const bool *is_float;
    const Lane *values;
    bool of_failure; // an assert's: may be left out once one has failed
} Print;

typedef struct Target Target;

// One table per family. All functions are required unless a comment says otherwise.
typedef struct TargetOps {
    const char *name;

    // --- module: create `module` with its target and layout; at the end run passes and emit ---
    bool (*module_begin)(Target *t);
    bool (*module_end)(Target *t, BackendOutput *out);

    // --- kernel: makes t->function for a `launch` and leaves the builder in its body ---
    // values[i] becomes the Uni of entry parameter i (pointers, strides as i64, scalars as register
    // types); *program_id the i64 number of this program, between the launch's lo and hi.
    void (*kernel_begin)(Target *t, const Op *launch, const char *symbol, int n,
                         const AbiParam *params, Uni *values, Uni *program_id);
    void (*kernel_end)(Target *t);

    // --- identity ---
    Uni (*warp_id)(Target *t);  // i32
    Lane (*lane_id)(Target *t); // i32, 0 .. lanes - 1

    // --- values ---
    Lane (*splat)(Target *t, Uni x);
    Uni (*lane_first)(Target *t, Lane x); // of a value that is equal in all lanes

    // Elementwise op of ops.def (add .. cmp, bool ops; not cast, not select). `dtype` is that of
    // the operands; args are 1 to 3 Lanes. Math functions (sqrt .. round) come here too.
    Lane (*arith)(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                  const Lane *args);
    Lane (*select)(Target *t, Lane cond, Lane a, Lane b);
    // n registers at once, so that pairs can be converted by one instruction.
    void (*cast)(Target *t, DType from, DType to, int n, const Lane *in, Lane *out);
    Lane (*bitcast)(Target *t, DType from, DType to, Lane x);
    // Assembler text: $0 is the result, $1 to $n the values; types[1 + n]. NULL: there is none.
    Lane (*text)(Target *t, const char *text, int n, const DType *types, const Lane *x);
    // Memory of this thread (of the warp's vectors) for the rest of the launch, for registers that
    // a loop counts. NULL where registers cannot be counted: code for all of them is cheaper there.
    LLVMValueRef (*thread_memory)(Target *t, LLVMTypeRef type);

    // --- global memory ---
    // out[access.width] registers; where pred is false they are fill[i] (fill NULL, or fill[i].v
    // NULL: zero) and memory is not touched.
    void (*load_global)(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                        Lane *out);
    void (*store_global)(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in);
    // One element per lane. *old may be asked for (old NULL: not wanted).
    void (*atomic)(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                   Lane *old);
    // Stores v where the bits there are those of `expected`; *old (may be NULL): what was there.
    void (*cas)(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v,
                Lane *old);

    // --- shared memory ---
    void (*load_shared)(Target *t, const Access *access, Shared p, Lane pred, Lane *out);
    void (*store_shared)(Target *t, const Access *access, Shared p, Lane pred, const Lane *in);
    // `count` (1, 2, 4) 8x8 matrices of 16-bit elements; lanes 8i .. 8i+7 give the row addresses of
    // matrix i; out[2 * count]: two elements of each matrix per lane. Where desc->has_ldmatrix.
    void (*ldmatrix)(Target *t, const Access *access, int count, bool trans, Shared p, Lane *out);

    // --- between lanes and warps ---
    Lane (*shuffle_xor)(Target *t, DType dtype, Lane x, uint32_t mask);
    Lane (*shuffle_idx)(Target *t, DType dtype, Lane x, Lane source); // i32 lane number per lane
    void (*block_barrier)(Target *t);
    void (*named_barrier)(Target *t, int id, int warps);

    // --- matrix units: elements in the order of the fragment's registers; out[c] = a * b + c ---
    // The operands have types da and db (different ones: i8 with u8, e4m3 with e5m2). tf32: f32
    // operands, rounded to nearest here, ties away from zero.
    void (*mma)(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
                const Lane *c, Lane *out);

    // --- asynchronous copies (desc->has_cp_async) ---
    // access.width elements (4, 8 or 16 bytes) per lane; where `pred` is false the destination is
    // zeroed. `active` false: the lane does nothing.
    void (*cp_async)(Target *t, const Access *access, Shared to, Ptr from, Lane pred, Lane active);
    void (*cp_commit)(Target *t);
    void (*cp_wait)(Target *t, int pending);

    // --- bulk copies, barriers in shared memory, roles, matrix units of a warp group. NULL where
    // the target has none of it (desc->has_tma, UNIT_WGMMA) ---
    Uni (*warp_uniform)(Target *t); // warp of the program, known to be the same in the whole warp
    Uni (*elect)(Target *t);        // i1, true in one thread of the warp and always in the same
    void (*set_regs)(Target *t, int regs, bool more); // registers a thread of this warp group
    void (*fence)(Target *t, FenceKind kind);
    void (*stmatrix)(Target *t, const Access *access, int count, bool trans, Shared p,
                     const Lane *in);
    void (*mbar_init)(Target *t, Shared bar, int arrivals);
    void (*mbar_init_fence)(Target *t);
    void (*mbar_expect)(Target *t, Shared bar, int bytes); // one arrival; bytes are to come
    void (*mbar_arrive)(Target *t, Shared bar, Lane pred);
    void (*mbar_wait)(Target *t, Shared bar, Uni parity); // i32: of the phase that has to end
    void (*warp_barrier)(Target *t);
    // at[rank]: i32 coordinates of the box, innermost first
    void (*tma_load)(Target *t, Uni map, int rank, const Uni *at, Shared to, Shared bar);
    void (*tma_store)(Target *t, Uni map, int rank, const Uni *at, Shared from);
    void (*tma_commit)(Target *t);
    void (*tma_wait)(Target *t, int pending, bool read); // read: sources may be written again
    void (*mma_fence)(Target *t);
    void (*mma_issue)(Target *t, const MmaIssue *m, Lane *acc); // acc[n / 2], in place
    void (*mma_commit)(Target *t);
    void (*mma_wait)(Target *t, int pending, int n, Lane *acc); // nothing of acc is read before

    // --- debugging ---
    // Called when the source position of what follows changes. May do nothing.
    void (*span)(Target *t, Span span);
    // Stops the program with a report where `ok` is false in a lane and `guard` (may be NULL) is
    // true.
    void (*check)(Target *t, Lane ok, Lane guard, const char *message);
    // Writes to standard output where `pred` holds.
    void (*print)(Target *t, Lane pred, const Print *print);
} TargetOps;

// Flags of `arith`.
enum { ARITH_CONTRACT = 1, ARITH_FAST = 2 };

// The state of one compilation. Lowering reads `desc`, `launch`, `op`; the rest belongs to targets.
struct Target {
    const TargetOps *ops;
    const TargetDesc *desc;
    const BackendOptions *options;
    Arena *arena;
    Diags *diags;
    Module *ir;
    const Op *launch; // being lowered
    const Op *op; // being lowered: set by the driver before each op, for reports and shadow memory
    int warps;    // of the launch; in a role: of the role
    int role;     // number of the role that is being lowered, from 1; 0: none
    int warp_first; // of the role
    Uni warp_all;   // warp of the program, once roles have asked for it; else NULL

    LLVMContextRef llvm;
    LLVMModuleRef module;
    int part; // number of the module among those of one text: part of the names of its own
              // functions
    LLVMBuilderRef builder;
    LLVMValueRef function;
    bool failed;       // target_fail was called
    int64_t registers; // lowered so far, of the launch
    void *state;       // the target's own
};

const TargetOps *target_ops_nvptx(void);
const TargetOps *target_ops_host(void); // cpu and sim (backend/host)

// --- what holds for every target (target.c) ---

// Reports that the op cannot be lowered (an error at its span) and marks the compilation failed.
void target_fail(Target *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The same for code that is too large: LLVM's time and memory grow faster than it.
void target_too_large(Target *t, int64_t instructions, int64_t most);
// Instructions of the module's largest function; `inlined`: with those of the module's functions at
// each call.
int64_t target_code_size(Target *t, bool inlined);
LLVMTypeRef target_type(Target *t, DType dtype); // register type of one element
LLVMTypeRef target_int(Target *t, int bits);
// Uniform values are ordinary LLVM scalars.
Uni uni_int(Target *t, int bits, int64_t value);
Uni uni_const(Target *t, const Value *constant); // VALUE_CONST in its register type
Uni uni_add(Target *t, Uni a, Uni b);            // same integer type; folds zeros
Uni uni_mul(Target *t, Uni a, Uni b);
Uni uni_resize(Target *t, Uni a, int bits, bool is_signed);
bool uni_is_int(Uni a, int64_t value); // a constant of that value
// Lane helpers through ops->arith and ops->splat.
Lane lane_int(Target *t, DType dtype, int64_t value);
Lane lane_op2(Target *t, OpKind kind, DType dtype, Lane a, Lane b);
Lane lane_cmp(Target *t, CmpKind kind, DType dtype, Lane a, Lane b);
Lane lane_and(Target *t, Lane a, Lane b); // booleans; NULL is true
Lane lane_resize(Target *t, Lane a, DType from, DType to);

// Control flow. Loop-carried registers are phis; types are those of the initial values.
typedef struct LoopState {
    LLVMBasicBlockRef head, body, exit;
    LLVMValueRef *phi; // n of them: Uni or Lane registers
    int n;
    LLVMValueRef counter; // NULL for `while`
    bool counts;          // the counter is the number of iterations before
    Uni at;               // what the loop counts: of the type of lo
} LoopState;
// for (at = lo; at < hi; at += step), at > hi where the step is negative. The builder is left in
// the body. at + step must not leave its type while at has not reached hi.
void loop_begin(Target *t, LoopState *loop, Uni lo, Uni hi, Uni step, int n,
                const LLVMValueRef *init);
// The same for any lo, hi and step; a step of 0 has no iteration. Costs a division in front of the
// loop.
void loop_begin_exact(Target *t, LoopState *loop, Uni lo, Uni hi, Uni step, int n,
                      const LLVMValueRef *init);
// next[n]; stop (may be NULL) ends the loop after this iteration. Then phi[] holds the results: the
// carried values when the loop ended.
void loop_end(Target *t, LoopState *loop, Uni step, const LLVMValueRef *next, Uni stop);
// Of a loop with a counter that has ended: LLVM does not unroll it.
void loop_stay_rolled(Target *t, const LoopState *loop);
typedef struct IfState {
    LLVMBasicBlockRef then, other, exit, then_end;
} IfState;
void if_begin(Target *t, IfState *s, Uni cond);
void if_else(Target *t, IfState *s);
void if_end(Target *t, IfState *s, int n, const LLVMValueRef *then_values,
            const LLVMValueRef *else_values, LLVMValueRef *out);

// --- arithmetic that is the same on scalars and vectors (arith.c); NULL when the op is a function
// of the target's own (sqrt excepted all of sqrt .. pow) ---
Lane arith_generic(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                   const Lane *args);
Lane arith_random(Target *t, Lane seed, Lane index); // arith_random.c
// exp .. pow of f64 scalars; NULL: no such function (math_f64.c)
LLVMValueRef math_f64(Target *t, OpKind kind, const LLVMValueRef *x);
Lane arith_cast(Target *t, DType from, DType to, Lane x); // NULL for e4m3, e5m2
Lane arith_select(Target *t, Lane cond, Lane a, Lane b);
LLVMValueRef arith_const_like(Target *t, LLVMTypeRef scalar_or_vector,
                              double f); // splat of a float
LLVMValueRef arith_int_like(Target *t, LLVMTypeRef scalar_or_vector, int64_t i);
// As arith_cast, of f16, bf16, e4m3 and e5m2 too, by integer operations (small_float.c).
LLVMValueRef small_float_cast(Target *t, DType from, DType to, LLVMValueRef x);
LLVMTypeRef arith_type_like(LLVMValueRef shape, LLVMTypeRef element); // element, or a vector of it
LLVMValueRef arith_intrinsic(Target *t, const char *name, LLVMTypeRef overload, int n,
                             LLVMValueRef *args);

#endif

// The launch plan, compiled: what a kernel takes, and per variant a short program that the launch
// runs.
//
// Input: textual IR of stage placed without the launches' regions (the evaluator's: stage tensor).
// Output: instances. An instance ("gelu.bf16") groups the kernels that are its variants
// ("gelu.bf16.v0", ...) in order; its parameters are those of the last one, the general variant.
// Tensors are numbered: parameter p is tensor p, temporaries follow. Invariant: everything is in
// the arena and only read once it is made, launches' `function` and `resident` excepted.
#ifndef FUSE_RUNTIME_PLAN_H
#define FUSE_RUNTIME_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/fuse_rt.h"
#include "ir/abi.h"
#include "ir/ir.h"
#include "lang/base/arena.h"

typedef union Reg { // a scalar: integers and bool in i, floats (exact values of their type) in f
    int64_t i;
    double f;
} Reg;

// What a tensor of a variant has to be (Mem's fields of the same names).
typedef struct Guard {
    uint16_t tensor;
    uint32_t align, sdiv;
    int8_t inner;
    bool fits32, absent;
} Guard;

// One entry parameter of a launch: a tensor's map, address or stride, or a slot.
typedef struct LaunchParam {
    AbiKind kind;
    DType dtype;
    uint16_t tensor;
    uint8_t dim;
    uint32_t slot;
    const AbiMap *map;
} LaunchParam;

typedef struct LaunchPlan {
    const char *entry;
    uint32_t lo, hi; // slots
    int warps, cluster;
    int64_t smem;
    bool pdl;
    uint32_t nparam;
    const LaunchParam *param;
    _Atomic(void *) function; // CUDA: looked up at the first launch
    _Atomic int resident;     // CUDA: programs that fit on a multiprocessor; 0: not asked yet
} LaunchPlan;

typedef enum InstrCode {
    I_MOVE, // dst = a
    I_ADD,
    I_SUB,
    I_MUL,
    I_DIV,
    I_REM,
    I_CDIV,
    I_MIN,
    I_MAX,
    I_AND,
    I_OR, // of 64-bit integers; and, or: of bool too
    I_EQ,
    I_NE,
    I_LT,
    I_LE,
    I_GT,
    I_GE,     // of signed integers and bool
    I_NOT,    // of bool
    I_SELECT, // dst = a ? b : c
    I_OP,     // any scalar op, by its meaning
    I_PRESENT,
    I_EXTENT,
    I_STRIDE,      // tensor [dim b]
    I_SMS,         // programs that fit at once: of `launch`, or one on each multiprocessor
    I_CHECK,       // dim b of `tensor` has to be a
    I_REQUIRE,     // a, or the launch fails
    I_WHEN,        // a, or the variant does not fit
    I_JUMP,        // to dst
    I_JUMP_UNLESS, // a; to dst
    I_FOR,         // while a has not reached b by step c, else to dst
    I_STEP,        // dst a step of c further, but not beyond b
    I_MARK,        // dst = bytes of workspace in use
    I_RESET,       // a = those again
    I_TEMP,        // `tensor` gets workspace; its dims are the slots at a
    I_GRID,        // a op b has to be a number of 64 bits, and a product less than 2^62
    I_LAUNCH,
} InstrCode;

typedef struct Instr {
    InstrCode code;
    uint16_t tensor;
    uint32_t dst, a, b, c;
    const Op *op;       // OP, REQUIRE
    LaunchPlan *launch; // LAUNCH; SMS, or NULL
} Instr;

typedef struct SlotOf {
    uint16_t index; // of a dim or a parameter
    uint32_t slot;
} SlotOf;

typedef struct Program {
    const char *name; // of the variant
    uint32_t nguard, ndim_slot, nscalar_slot, ninstr, nslot;
    const Guard *guard;
    const SlotOf *dim_slot, *scalar_slot; // filled in before it runs
    const Instr *instr;
    const Reg *initial;       // of every slot: the constants
    const uint32_t *temp_dim; // slots of temporaries' dims
    uint16_t ntemp;           // tensors nparam .. nparam + ntemp
    const DType *temp_dtype;
    const uint8_t *temp_rank;
    const bool *temp_zero;
    uint32_t launch_words; // of the launch whose parameters need the most words of 8 bytes
    bool several;          // it has, or may have, more than one launch
} Program;

// A dim of the kernel.
typedef struct PlanDim {
    const char *name;
    int64_t fixed; // -1: bound by the arguments
    const Value *value;
} PlanDim;

// Of a tensor parameter's dim: the kernel's dim, or a number, or (both -1) a value of the program.
typedef struct DimRef {
    int16_t dim;
    int64_t fixed;
    const Value *value;
} DimRef;

typedef struct PlanParam {
    FuseRtParam shown;
    DType dtype;
    DLDataType dlpack;
    DimRef *dim;
    uint32_t bits;      // of an element
    const Value *value; // scalars
    const Mem *mem;     // tensors
    Reg dflt;           // where shown.has_default
} PlanParam;

// `require` of the form left == right: defines a dim that no argument carries, if it is linear in
// it.
typedef struct Equation {
    const Value *left, *right;
    const char *text; // of the condition
} Equation;

// A `require` with arithmetic that may overflow or divide by zero.
typedef struct Condition {
    const Value *value;
    const char *text;
} Condition;

typedef struct Instance {
    const char *name, *family; // "gelu.bf16", "gelu"
    const Kernel *kernel;      // the general variant
    int nparam, ndim, nvariant, nequation;
    PlanParam *param;
    PlanDim *dim;
    Program *variant; // the most special first
    Equation *equation;
    int ncondition;
    Condition *condition;
    uint32_t max_slots, max_tensors, max_launch_words;
    bool rehearse; // a dry run comes first: for the size of temporaries, and so that nothing fails
                   // between two launches
} Instance;

typedef struct Plan {
    int n;
    Instance *instance;
} Plan;

// How much of the body is compiled: all of it, or the scalars in front of the first statement (the
// evaluator runs it itself; what the program says of arguments is checked before).
typedef enum PlanForm { PLAN_LAUNCHES, PLAN_CHECKS } PlanForm;

// False: *error is a message in the arena. `text` is textual IR.
bool plan_read(Arena *arena, const char *text, size_t len, PlanForm form, Plan *out,
               const char **error);

// --- between plan.c and plan_program.c ---
typedef struct ProgramInit {
    Arena *arena;
    const Instance *instance; // its parameters are there
    const Kernel *kernel;     // the variant
    PlanForm form;
} ProgramInit;
bool plan_program(const ProgramInit *init, Program *out, const char **error);

#endif

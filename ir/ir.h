// The tile IR: entities, builder and traversal.
//
// One SSA IR with nested regions from whole-tensor statements to placed tiles. Everything is
// allocated in the module's arena and never freed one by one. Names, axes and memories are
// kernel-wide; values are defined once.
//
// Invariants (checked by ir_verify): definitions dominate uses, every axis that a type names is
// declared and, inside a `parallel`, bound; operands meet the type rule of the op's row; a region
// that carries values ends in `yield`.
#ifndef FUSE_IR_IR_H
#define FUSE_IR_IR_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/layout.h"
#include "lang/base/arena.h"
#include "lang/base/dtype.h"
#include "lang/base/intern.h"
#include "lang/base/source.h"

typedef struct Module Module;
typedef struct Kernel Kernel;
typedef struct Region Region;
typedef struct Op Op;
typedef struct Value Value;
typedef struct Axis Axis;
typedef struct Mem Mem;

#define RANK_MAX 8 // dims of a tensor; DLPack has no limit, we do

// --- types
// ------------------------------------------------------------------------------------------------------

// A set of axes, sorted by axis id (= order of declaration). Value type.
typedef struct AxisSet {
    uint8_t n;
    uint16_t id[AXES_MAX];
} AxisSet;

AxisSet axes_none(void);
AxisSet axes_of(const Axis *axis);
bool axes_has(AxisSet s, uint16_t id);
bool axes_equal(AxisSet a, AxisSet b);
bool axes_subset(AxisSet inner, AxisSet outer);
// Union; false (and *out = a) when more than AXES_MAX axes would result.
bool axes_union(AxisSet a, AxisSet b, AxisSet *out);
AxisSet axes_minus(AxisSet a, AxisSet b);
AxisSet axes_intersect(AxisSet a, AxisSet b);
bool axes_add(AxisSet *s, uint16_t id); // false when full

// dtype + axes (+ layout at `placed`); no axes = a scalar, uniform over the program.
typedef struct Type {
    DType dtype;
    bool is_async;
    AxisSet axes;
    const Layout *layout;
} Type;

Type type_scalar(DType dtype);
Type type_tile(DType dtype, AxisSet axes);
bool type_equal(Type a, Type b);

// --- values
// -----------------------------------------------------------------------------------------------------

typedef enum ValueKind {
    VALUE_OP,    // result of an op
    VALUE_ARG,   // argument of a region: loop variable, carried value, program id
    VALUE_PARAM, // scalar parameter or dim of the kernel
    VALUE_CONST, // interned, without an op; broadcasts as a tile
    VALUE_IOTA,  // an axis used as an operand: index[axis], its global indices
} ValueKind;

struct Value {
    ValueKind kind;
    uint32_t id; // dense in the kernel
    Type type;
    Str name;       // without the '%'; unique in the kernel; NULL for constants and iotas
    Op *def;        // VALUE_OP
    Region *region; // VALUE_ARG: the region it is an argument of
    Axis *axis;     // VALUE_IOTA
    union { // VALUE_CONST: integers and bool in i; floats in f (a value of the dtype, exactly)
        int64_t i;
        double f;
    } u;
};

// --- axes
// -------------------------------------------------------------------------------------------------------

struct Axis {
    uint16_t id; // order of declaration in the kernel
    Str name;
    Axis *of;       // the axis whose index space it walks (NULL: its own)
    Axis *like;     // shares that axis's window
    Value *lo, *hi; // fixed window [lo, hi), or NULL when a region binds it
    uint32_t size;  // compile-time tile size; 0 = not chosen yet, the whole range
    bool is_dim;    // the default axis of a kernel dim: window [0, extent)
    Value *iota;    // index[axis]
    Value *extent;  // is_dim: the dim's scalar value
};

// --- memory
// -----------------------------------------------------------------------------------------------------

typedef enum MemKind { MEM_PARAM, MEM_TEMP, MEM_BUF, MEM_CHAN } MemKind;
typedef enum MemMode { MODE_IN, MODE_OUT, MODE_INOUT } MemMode;
typedef enum MemSpace { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL } MemSpace;

struct Mem {
    MemKind kind;
    MemSpace space;
    uint16_t id;
    Str name; // without the '@'
    DType dtype;
    Span span;
    Op *def; // TEMP, BUF, CHAN
    // tensors (PARAM, TEMP): dims are dims of the kernel, constants or host-region scalars
    uint8_t rank;
    Value *dim[RANK_MAX];
    MemMode mode;
    bool opt; // may be absent: null with extents 0
    // guards of this variant (facts the runtime has checked before choosing it)
    uint32_t align; // bytes: alignment of the base; 0 = element size
    int8_t inner;   // the dim of stride 1, -1 = none known
    uint32_t sdiv;  // divisor of all other strides, in elements; 0 or 1 = none known
    bool fits32;    // every element's byte offset is below 2^31
    bool absent;    // known to be absent
    // buffers
    AxisSet axes;         // BUF: the tile's axes
    const Layout *layout; // BUF at placed: offset -> element
    uint16_t nbufs;       // CHAN: its buffers
    Mem **bufs;
};

// A use of a memory by an op. For tensors: one index value per dim. For buffers: an optional
// position (slot) and renames `[k = j]` (the buffer's axis k is walked by axis j). Values are
// slices of Op.in.
typedef struct MemRef {
    Mem *mem;
    uint16_t first, nidx; // tensors: in[first .. first + nidx)
    int16_t pos;          // buffers, channels: operand number of the position, -1 = none
    uint8_t nrename;
    struct {
        uint16_t from, to;
    } rename[4];
} MemRef;
// A reference to a whole memory: no index, no position.
static inline MemRef memref(Mem *mem) {
    return (MemRef){.mem = mem, .pos = -1};
}

// Binds an axis to windows, or a scalar, over lo..hi [step]: in[first], in[first + 1], [in[first +
// 2]].
typedef struct Binder {
    Axis *axis; // NULL: a scalar binder
    Value *var; // scalar binder: the region's argument
    uint16_t first;
    bool has_step;
} Binder;

// --- ops
// --------------------------------------------------------------------------------------------------------

typedef enum OpKind {
#define OP(id, ...) OP_##id,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} OpKind;

// Op.sub of ops with kinds.
typedef enum ReduceKind {
    RED_SUM,
    RED_PROD,
    RED_MAX,
    RED_MIN,
    RED_ANY,
    RED_ALL,
    RED_AND, // and, or, xor: bit by bit
    RED_OR,
    RED_XOR,
    RED_COUNT
} ReduceKind;
typedef enum CmpKind { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_COUNT } CmpKind;
typedef enum ArgKind { ARG_MAX, ARG_MIN, ARG_COUNT } ArgKind;
typedef enum ScanKind { SCAN_SUM, SCAN_PROD, SCAN_MAX, SCAN_COUNT } ScanKind;
typedef enum OrderKind {
    ORDER_ROW,
    ORDER_GROUPED,
    ORDER_LONGEST,
    ORDER_HILBERT,
    ORDER_COUNT
} OrderKind;
typedef enum FenceKind { FENCE_ASYNC, FENCE_GPU, FENCE_CLUSTER, FENCE_COUNT } FenceKind;
typedef enum RoleKind { ROLE_PRODUCER, ROLE_CONSUMER, ROLE_COUNT } RoleKind;
typedef enum BufKind { BUF_SHARED, BUF_LOCAL, BUF_COUNT } BufKind;
typedef enum AtomicKind {
    ATOMIC_ADD,
    ATOMIC_MAX,
    ATOMIC_MIN,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_XCHG,
    ATOMIC_CAS, // has two values: what is expected and, last, what replaces it; compares bits
    ATOMIC_COUNT
} AtomicKind;

// How an op is written, and how its operands lie in Op.in.
typedef enum OpForm {
    FORM_PLAIN,   // res = op in... {attrs} : types
    FORM_ALONG,   // res = op[axes] in... : types
    FORM_FOLD,    // res... = op[axes] v... [else id...] args(a..., b...) : types region
                  //   in = v..., [id...]: elements of several values, combined by the region
    FORM_DOT,     // res = dot[axes] a, b [, acc] : type
    FORM_AXISREF, // res = begin m : index                 axes[0]
    FORM_INSIDE,  // res = inside m : bool[m]              axes[0]; or inside @t[idx...] : bool[...]
                  // mem[0]
    FORM_MEMREF,  // res = stride @x {dim = 1} : index     mem[0], no index
    FORM_TAKE,  // res = take v, p = e, ... [else f] : type   in = v, e..., [f]; axes[i] is replaced
                // by in[1 + i]
    FORM_LOAD,  // res = load @t[idx...] [else f] : type      in = idx..., [f]
    FORM_STORE, // [res =] store @t[idx...], v                 in = idx..., [expected], v
    FORM_AXIS,  // axis m of M in lo..hi like j by 128         in = [lo, hi]; axes[0] is declared
    FORM_BINDERS, // op binders [carry (...)] [: types] region   in = (lo, hi [, step])..., carry
                  // inits...;
                  //   while has no binder; launch appends its captured scalars: `args` (see
                  //   ir_launch_args)
    FORM_IF, // res... = if c : types region region         in = c; both regions yield the results
    FORM_YIELD,  // yield v... [stop c]                         in = v..., [c] (has_stop)
    FORM_TEMP,   // @t = temp : f32[dims]                       in = dims
    FORM_BUF,    // @b = buf.shared {stages = 3} : bf16[m, k]
    FORM_CHAN,   // @c = chan @a, @b {mode = group, stages = 3}
    FORM_CHANOP, // wait @c(pos)                                in = pos, mem[0]
    FORM_GET,    // res = get @b(pos) : type                    in = [pos], mem[0]
    FORM_PUT,    // put @b(pos), v                              in = [pos], v
    FORM_COPY,   // copy @t[idx] to @b(pos) [signal @c] or copy @b(pos) to @t[idx]; mem[0] from,
                 // mem[1] to, mem[2] signal
    FORM_MMA, // res = mma.issue[axes] a, b [, acc] : async type   a, b: %v or @b(pos), b always a
              // buffer;
              //   in = [a or its pos], [pos of b], [acc]; mem = [a], b (see op_mma_parts)
} OpForm;

// Traits; see ops.def.
enum {
    TRAIT_PURE = 1 << 0,
    TRAIT_ELEMENTWISE = 1 << 1,
    TRAIT_MOVES = 1 << 2,
    TRAIT_COMMUTATIVE = 1 << 3,
    TRAIT_ASSOCIATIVE = 1 << 4,
    TRAIT_READS = 1 << 5,
    TRAIT_WRITES = 1 << 6,
    TRAIT_SYNC = 1 << 7,
    TRAIT_SCALAR = 1 << 8,
    TRAIT_REGIONS = 1 << 9,
    TRAIT_EFFECT = 1 << 10,
    TRAIT_FUNCTION = 1 << 11, // its region is a function of elements, not control flow
};

typedef enum Stage { STAGE_TENSOR, STAGE_NESTS, STAGE_SCHEDULED, STAGE_PLACED, STAGE_COUNT } Stage;

typedef enum TypeRule {
    RULE_NONE,
    RULE_CARRY,
    RULE_ORDER,
    RULE_INDEX,
    RULE_BOOL,
    RULE_INSIDE,
    RULE_SAME,   // all operands and the result have one dtype; axes = union
    RULE_FLOAT,  // as SAME, of floats
    RULE_BITS,   // as SAME, of integers or bool
    RULE_SELECT, // bool, then two of the result's dtype
    RULE_SHIFT,  // as SAME, but the shift count may be any integer type
    RULE_CMP,
    RULE_CAST,
    RULE_BITCAST, // the declared dtype, of as many bits
    RULE_RAND,
    RULE_TAKE,
    RULE_REDUCE,
    RULE_ARGREDUCE,
    RULE_SCAN,
    RULE_FOLD,
    RULE_SCANFN,
    RULE_SORT,      // the operand, then index[its axes]: sort[n]
    RULE_TOPK,      // the same with the first axis replaced by the second: topk[n, j]
    RULE_HISTOGRAM, // index, with the first axis replaced by the second: histogram[n, b]
    RULE_DOT,
    RULE_LOAD,
    RULE_CONVERT,
    RULE_GET,
    RULE_MMA,
    RULE_MMA_WAIT,
} TypeRule;

typedef enum AttrId {
#define ATTR(name, type, dflt) ATTR_##name,
#include "ir/attrs.def"
#undef ATTR
    ATTR_COUNT
} AttrId;
typedef enum AttrType {
    ATTR_TYPE_INT,
    ATTR_TYPE_BOOL,
    ATTR_TYPE_NAME,
    ATTR_TYPE_STR,
    ATTR_TYPE_INTS,
    ATTR_TYPE_NAMES,
    ATTR_TYPE_AXES
} AttrType;

typedef struct Attr {
    AttrId id;
    uint16_t n;    // INTS, NAMES, AXES: number of elements
    int64_t i;     // INT, BOOL
    Str s;         // NAME, STR
    int64_t *ints; // INTS
    Str *names;    // NAMES
    Axis **axes;   // AXES
} Attr;

#define OP_ATTRS_MAX 8
typedef struct OpInfo {
    const char *text;
    const char *const *kinds; // names of Op.sub, NULL-terminated, or NULL
    OpForm form;
    int8_t nin;
    uint32_t traits;
    uint8_t stages; // bit per Stage
    bool host;      // also in the host region
    TypeRule rule;
    uint8_t nattrs;
    AttrId attrs[OP_ATTRS_MAX];
} OpInfo;

const OpInfo *op_info(OpKind kind);
static inline bool op_has(OpKind kind, uint32_t trait) {
    return (op_info(kind)->traits & trait) != 0;
}
// The elementwise op that combines two partial results.
OpKind reduce_combine(ReduceKind kind);
// The reduction that combines as the atomic does; false of exchanges.
bool atomic_reduce(AtomicKind kind, ReduceKind *reduce);
const char *attr_name(AttrId id);
AttrType attr_type(AttrId id);
int64_t attr_default(AttrId id); // INT and BOOL; 0 for the others

struct Op {
    OpKind kind;
    uint8_t sub; // enum of the row's kinds
    bool has_else, has_stop, is_dead;
    Span span;
    uint32_t text_at; // byte of the IR's text where ir_parse has read it
    Region *parent;
    Op *prev, *next;
    uint16_t nin, nres, naxes, nmem, nbinders, ncarry, nattr, nregion;
    Value **in;
    Value **res;
    Axis **axes; // bracket axes; axis declared or referenced
    MemRef *mem;
    Mem *def_mem; // TEMP, BUF, CHAN: the memory that it defines
    Binder *binder;
    Attr *attr;
    Region **region;
};

struct Region {
    Op *owner; // NULL: the kernel's body
    Op *first, *last;
    uint16_t narg; // scalar binder variables in binder order, then carried values
    Value **arg;
};

// --- kernel and module
// ------------------------------------------------------------------------------------------

typedef enum ParamKind { PARAM_DIM, PARAM_SCALAR, PARAM_TENSOR } ParamKind;
typedef struct Param {
    ParamKind kind;
    Axis *axis;   // DIM: its default axis
    Value *value; // DIM: the extent (index; a constant when fixed), SCALAR: the value
    Mem *mem;     // TENSOR
    Str name;     // as written in the source
    bool has_default;
    Value *dflt; // SCALAR: a constant
} Param;

struct Kernel {
    Module *module;
    Str name; // instance name, e.g. linear_gelu.bf16
    Span span;
    uint32_t text_at; // byte of the IR's text where ir_parse has read it
    uint16_t nparam;
    Param *param;
    Region *body;
    uint16_t naxis, axis_cap;
    Axis **axis; // by id
    uint16_t nmem, mem_cap;
    Mem **mem;          // by id
    uint32_t nvalue;    // values so far (ids are dense below it)
    Kernel *variant_of; // specialised copy of that kernel; variants of one kernel follow each
                        // other, most special first
    struct NameTable *names;
    struct ConstTable *consts;
};

struct Module {
    Arena *arena;
    Interner *interner;
    LayoutTable *layouts;
    Stage stage;
    Str target;
    uint16_t nkernel, kernel_cap;
    Kernel **kernel;
    struct LayoutNames *layout_names; // names that layouts have in the text
};

Module *ir_module_new(Arena *arena, Interner *interner, Str target);
Kernel *ir_kernel_new(Module *module, const char *name, Span span); // appended to the module
const char *stage_name(Stage stage);

// Parameters, in order. A fixed dim has a constant extent.
Axis *ir_param_dim(Kernel *k, const char *name);
Axis *ir_param_dim_fixed(Kernel *k, const char *name, int64_t extent);
Value *ir_param_scalar(Kernel *k, const char *name, DType dtype);
Mem *ir_param_tensor(Kernel *k, const char *name, MemMode mode, bool opt, DType dtype, int rank,
                     Value **dims);

// Constants (interned per kernel).
Value *ir_int(Kernel *k, DType dtype, int64_t i);
Value *ir_index(Kernel *k, int64_t i);
Value *ir_float(Kernel *k, DType dtype, double f); // rounded to dtype
Value *ir_bool(Kernel *k, bool b);
bool value_is_int(const Value *v, int64_t i); // a constant of integer dtype with that value
bool value_is_const(const Value *v);
double ir_round(DType dtype,
                double f); // to the nearest value of a float dtype, ties to even; fp8 saturates
int64_t ir_wrap(DType dtype, int64_t i); // to the bits of an integer dtype
// Lookups by name; NULL when there is none.
Value *ir_find_value(const Kernel *k, const char *name);
Axis *ir_find_axis(const Kernel *k, const char *name);
Mem *ir_find_mem(const Kernel *k, const char *name);
Kernel *ir_find_kernel(const Module *m, const char *name);
// "softmax.f16" of the variant "softmax.f16.v0".
Str kernel_base_name(const Kernel *k);
bool kernel_is_most_special(const Kernel *k); // before variants, or the first of them
// "k" of "k.1", the second value or axis of the kernel that the source calls k.
const char *written_name(Arena *arena, const char *name);
// Names a layout of the kernel in the text (`#acc`); without it layouts print as #l0, #l1...
void ir_layout_name(Kernel *k, const Layout *layout, const char *name);

// --- builder
// ----------------------------------------------------------------------------------------------------

// Inserts ops at the end of `region`, or before `before`. Result types are inferred from the rows.
typedef struct Builder {
    Kernel *kernel;
    Region *region;
    Op *before; // NULL: append
    Span span;  // given to new ops
} Builder;

Builder ir_builder_at_end(Kernel *k, Region *region);
Builder ir_builder_before(Kernel *k, Op *op);

// Generic construction: the op is inserted; result values are made from `types`. `name_hint` may be
// NULL.
typedef struct OpInit {
    OpKind kind;
    uint8_t sub;
    uint16_t nin, nres, naxes, nmem, nbinders, ncarry, nregion;
    bool has_else, has_stop;
    Value *const *in;
    const Type *types;        // nres; arguments of a function (fold, scanfn) have their dtypes
    const char *const *names; // nres hints, or NULL
    Axis *const *axes;
    const MemRef *mem;
    const Binder *binder;         // `var` is ignored: scalar binders get fresh variables
    const char *const *arg_names; // hints of the region's arguments (scalar binders, then carried;
                                  // the two sides of a function), or NULL
} OpInit;
// Carried region arguments take the types of the results (`types`).
Op *ir_build(Builder *b, const OpInit *init);

Value *ir_unary(Builder *b, OpKind kind, Value *x, const char *hint);
Value *ir_binary(Builder *b, OpKind kind, Value *x, Value *y, const char *hint);
Value *ir_fma(Builder *b, Value *x, Value *y, Value *z, const char *hint);
Value *ir_select(Builder *b, Value *c, Value *x, Value *y, const char *hint);
Value *ir_cmp(Builder *b, CmpKind kind, Value *x, Value *y, const char *hint);
Value *ir_cast(Builder *b, DType to, Value *x, const char *hint); // x itself when it has that dtype
Value *ir_reduce(Builder *b, ReduceKind kind, Value *x, AxisSet along, const char *hint);
// fold (with `id`: one scalar of each value's dtype) or scanfn (id NULL) of n values along the axes
// in their order, the last fastest. The region is empty: the caller fills it and yields n scalars.
// Its arguments are n elements of the earlier part, then n of the later.
Op *ir_fold(Builder *b, int n, Value *const *v, Value *const *id, int naxes, Axis *const *axes,
            const char *const *names);
enum { FOLD_VALUES_MAX = 16 };
int op_fold_values(const Op *op); // of fold and scanfn
// The operand of an op along axes that has every axis of the operands, an iota only where there is
// no other; NULL: malformed.
Value *op_full_operand(const Op *op);
// What the function of `op` (fold, scanfn) gives for x and y, elementwise in front of the builder's
// place: out[n].
void ir_inline_function(Builder *b, Arena *scratch, const Op *op, Value *const *x, Value *const *y,
                        Value **out);
// (values, indices) are the results of the op; `hints`, one for each, may be NULL.
Op *ir_sort(Builder *b, Value *x, Axis *along, const char *const *hints);
Op *ir_topk(Builder *b, Value *x, Axis *along, Axis *to, const char *const *hints);
Value *ir_histogram(Builder *b, Value *x, Axis *along, Axis *bins, const char *hint);
Value *ir_dot(Builder *b, Value *x, Value *y, Value *acc, AxisSet along, const char *hint);
Value *ir_take(Builder *b, Value *x, int n, Axis *const *axes, Value *const *index, Value *fill,
               const char *hint);
Value *ir_load(Builder *b, Mem *t, Value *const *index, Value *fill, const char *hint);
Op *ir_store(Builder *b, Mem *t, Value *const *index, Value *v);
Value *ir_inside_axis(Builder *b, Axis *axis);
Value *ir_begin(Builder *b, Axis *axis);
Value *ir_end(Builder *b, Axis *axis);
Op *ir_require(Builder *b, Value *cond, const char *msg);

// Axes. `axis` declares in the current region.
Axis *ir_axis(Builder *b, const char *name, Axis *of, uint32_t size);
Axis *ir_axis_window(Builder *b, const char *name, Axis *of, Value *lo, Value *hi, uint32_t size);
Axis *ir_axis_like(Builder *b, const char *name, Axis *of, Axis *like, uint32_t size);

// Memory ops.
Mem *ir_temp(Builder *b, const char *name, DType dtype, int rank, Value *const *dims);
Mem *ir_buf(Builder *b, BufKind kind, const char *name, DType dtype, AxisSet axes, int stages);
Mem *ir_chan(Builder *b, const char *name, const char *mode, int stages, int nbufs,
             Mem *const *bufs);

// Ops with regions. Bounds: an axis binder takes lo, hi; a scalar binder (axis NULL) gets a fresh
// variable named `name`.
typedef struct BinderInit {
    Axis *axis;
    const char *name;
    Value *lo, *hi, *step;
} BinderInit;
Op *ir_parallel(Builder *b, int n, const BinderInit *binders);
Op *ir_with(Builder *b, int n, const BinderInit *binders, int nres, const Type *types);
// Region args: scalar binder variables, then `ncarry` carried values with the inits' types.
Op *ir_for(Builder *b, int n, const BinderInit *binders, int ncarry, Value *const *inits,
           const char *const *names);
// The same with the carried values' types given: an init that is a scalar starts a tile (`0.0:f32 :
// f32[m, n]`).
Op *ir_for_typed(Builder *b, int n, const BinderInit *binders, int ncarry, Value *const *inits,
                 const Type *types, const char *const *names);
Op *ir_while_typed(Builder *b, int ncarry, Value *const *inits, const Type *types,
                   const char *const *names);
Op *ir_while(Builder *b, int ncarry, Value *const *inits, const char *const *names);
Op *ir_if(Builder *b, Value *cond, int nres, const Type *types);
Op *ir_yield(Builder *b, int n, Value *const *values, Value *stop);
Op *ir_launch(Builder *b, const char *pid_name, Value *grid);
// What the launch's region uses from outside (see ir/abi.h); replaces an earlier list.
void ir_launch_args(Kernel *k, Op *launch, int nmem, Mem *const *mems, int nvalue,
                    Value *const *values);
Value *op_carry_init(const Op *op, int i);
Value *op_carry_arg(const Op *op, int i); // the region's argument of carried value i
Value *op_binder_lo(const Op *op, int i);
Value *op_binder_hi(const Op *op, int i);
// The operands of mma.issue: registers or a buffer; acc NULL starts from 0.
typedef struct MmaParts {
    Value *a, *acc;          // a NULL: in a buffer
    const MemRef *a_ref, *b; // b NULL: malformed
} MmaParts;
MmaParts op_mma_parts(const Op *op);
Value *op_load_else(const Op *op); // NULL when the fill is 0
Value *op_store_value(const Op *op);
Op *region_yield(const Region *r); // last op when it is a yield, else NULL

// --- attributes
// -------------------------------------------------------------------------------------------------

const Attr *op_attr(const Op *op, AttrId id); // NULL when it has its default
int64_t op_attr_int(const Op *op, AttrId id);
Str op_attr_str(const Op *op, AttrId id); // NAME or STR; NULL when absent
AxisSet op_attr_axes(const Op *op, AttrId id);
bool op_attr_has_int(const Op *op, AttrId id, int64_t i); // INTS contains i
void op_set_int(Kernel *k, Op *op, AttrId id, int64_t i);
void op_set_str(Kernel *k, Op *op, AttrId id, const char *s);
void op_set_ints(Kernel *k, Op *op, AttrId id, int n, const int64_t *ints);
void op_set_names(Kernel *k, Op *op, AttrId id, int n, const Str *names);
void op_set_axes(Kernel *k, Op *op, AttrId id, int n, Axis *const *axes);

void op_clear_attr(Op *op, AttrId id);

// --- traversal and rewriting
// --------------------------------------------------------------------------------------

// Calls `fn` on every op, regions included, in program order (an op before its regions). `fn` may
// delete its own op.
typedef void (*OpFn)(void *user, Op *op);
void ir_walk(Region *region, OpFn fn, void *user);

void ir_op_unlink(Op *op); // removes it from its region (its values must be unused)
void ir_op_move_before(Op *op, Op *before);
void ir_op_move_end(Op *op, Region *region);
// Replaces all operands (offsets in MemRefs and Binders are the caller's to keep right).
void ir_op_set_in(Kernel *k, Op *op, int n, Value *const *in);
// After a change of its operands: what `axis` and `temp` declare (window, dims) follows them.
void ir_refresh_definition(Op *op);
bool op_is_in(const Op *op, const Region *region); // nested anywhere below
bool region_contains(const Region *outer, const Region *inner);

// Substitutions in one step (a mapped value is not mapped again), dense by id: value -> value, axis
// -> axis, mem -> mem (NULL = unchanged).
typedef struct IrMap {
    Kernel *kernel;
    Arena *arena;
    uint32_t nvalue;
    Value **value;
    uint32_t naxis;
    Axis **axis;
    uint32_t nmem;
    Mem **mem;
    Kernel *to; // where clones go, when it is not `kernel`
} IrMap;
IrMap ir_map_new(Arena *scratch, Kernel *k);
void ir_map_value(IrMap *m, Value *from, Value *to);
void ir_map_axis(IrMap *m, Axis *from, Axis *to);
void ir_map_mem(IrMap *m, Mem *from, Mem *to);
Value *ir_mapped(IrMap *m, Value *v); // iotas follow their axis
Axis *ir_mapped_axis(IrMap *m, Axis *a);
Mem *ir_mapped_mem(IrMap *m, Mem *mem);
Type ir_mapped_type(IrMap *m, Type t);
// Rewrites every use (operands, axes, types, attributes, memory references) in the region.
void ir_substitute(Region *region, IrMap *m);
// Copies an op with its regions at the builder's place; operands are mapped; its results, region
// arguments, axes declared and memories defined inside are fresh and entered into the map.
Op *ir_clone(Builder *b, const Op *op, IrMap *m);
void ir_clone_region_ops(Builder *b, const Region *from,
                         IrMap *m); // all ops of a region, a final yield excepted
Kernel *ir_clone_kernel(Module *to, const Kernel *k, const char *name);

// Number of uses of every value (index by Value.id), yields included.
uint32_t *ir_count_uses(Arena *scratch, const Kernel *k);

// --- text
// ---------------------------------------------------------------------------------------------------------

typedef struct IrText {
    char *data;
    size_t len;
} IrText;
typedef struct IrPrintOptions {
    bool generic;     // every attribute, quoted op names
    bool spans;       // print !begin+len
    bool plan;        // leave out the regions of `launch` (the launch plan of a PTX file)
    bool kernel_only; // no module line
} IrPrintOptions;
IrText ir_print(Arena *arena, const Module *m, IrPrintOptions opts);
// By value id: a power of two that the kernel's `when` and `require` promise to divide it, 0 =
// none.
uint32_t *ir_known_divisors(Arena *arena, const Kernel *k);
// Placed: two launches with equal text have equal code, but for the name of the function.
const char *ir_launch_code(Arena *arena, const Kernel *k, const Op *launch);
// Reads a module. On error returns NULL and *error is "line:col: message".
Module *ir_parse(Arena *arena, Interner *interner, const char *text, size_t len,
                 const char **error);
const char *ir_text_place(Arena *arena, const char *text, uint32_t at); // "line:col"
// Checks everything that the module's stage promises. On error returns false and *error names
// kernel, op and rule.
bool ir_verify(Arena *scratch, const Module *m, const char **error);
// The same of a module that ir_parse has made of `text`: *error is "line:col: message".
bool ir_verify_text(Arena *scratch, const Module *m, const char *text, const char **error);

#endif

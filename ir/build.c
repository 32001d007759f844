// The builder: makes ops in place, with inferred result types.
//
// Input: operands of one kernel. Output: an op linked into a region. Invariants: the operand layout
// of each form is the one documented in ir.h; every op with regions gets them, with their
// arguments, when it is made.
#include "ir/ir_impl.h"

#include <string.h>

Builder ir_builder_at_end(Kernel *k, Region *region) {
    return (Builder){.kernel = k, .region = region};
}

Builder ir_builder_before(Kernel *k, Op *op) {
    return (Builder){.kernel = k, .region = op->parent, .before = op, .span = op->span};
}

void op_insert(Builder *b, Op *op) {
    Region *r = b->before ? b->before->parent : b->region;
    op->parent = r;
    op->is_dead = false;
    op->next = b->before;
    op->prev = b->before ? b->before->prev : r->last;
    if (op->prev)
        op->prev->next = op;
    else
        r->first = op;
    if (op->next)
        op->next->prev = op;
    else
        r->last = op;
}

static void *copy_or_null(Arena *arena, const void *data, size_t n, size_t size) {
    return n ? arena_copy(arena, data, n * size) : NULL;
}

static const char *default_hint(const Op *op) {
    const OpInfo *row = op_info(op->kind);
    return row->kinds && op->kind != OP_ORDER ? row->kinds[op->sub] : row->text;
}

// The elements of the earlier part, then those of the later.
static Region *function_region(Kernel *k, Region *r, const OpInit *init) {
    r->narg = (uint16_t)(2 * init->nres);
    r->arg = ARENA_ARRAY(kernel_arena(k), Value *, r->narg);
    for (int i = 0; i < r->narg; i++) {
        const char *hint = init->arg_names ? init->arg_names[i] : i < init->nres ? "a" : "b";
        r->arg[i] = value_named(k, VALUE_ARG, type_scalar(init->types[i % init->nres].dtype), hint);
        r->arg[i]->region = r;
    }
    return r;
}

static Region *op_region(Kernel *k, Op *op, const OpInit *init) {
    Region *r = region_new(k, op);
    if (op_has(op->kind, TRAIT_FUNCTION))
        return function_region(k, r, init);
    int scalars = 0;
    for (int i = 0; i < op->nbinders; i++)
        scalars += op->binder[i].axis == NULL;
    r->narg = (uint16_t)(scalars + op->ncarry);
    r->arg = ARENA_ARRAY(kernel_arena(k), Value *, r->narg);
    int at = 0;
    for (int i = 0; i < op->nbinders; i++) {
        Binder *binder = &op->binder[i];
        if (binder->axis)
            continue;
        Type type = type_scalar(op->in[binder->first]->type.dtype);
        const char *hint = init->arg_names ? init->arg_names[at] : NULL;
        binder->var = value_named(k, VALUE_ARG, type, hint ? hint : "i");
        r->arg[at++] = binder->var;
    }
    for (int i = 0; i < op->ncarry; i++) {
        const char *hint = init->arg_names ? init->arg_names[at] : NULL;
        r->arg[at++] = value_named(k, VALUE_ARG, init->types[i], hint ? hint : "c");
    }
    for (int i = 0; i < r->narg; i++)
        r->arg[i]->region = r;
    return r;
}

Op *ir_build(Builder *b, const OpInit *init) {
    Kernel *k = b->kernel;
    Arena *arena = kernel_arena(k);
    Op *op = ARENA_NEW(arena, Op);
    op->kind = init->kind;
    op->sub = init->sub;
    op->has_else = init->has_else;
    op->has_stop = init->has_stop;
    op->span = b->span;
    op->nin = init->nin;
    op->in = copy_or_null(arena, init->in, init->nin, sizeof *init->in);
    op->naxes = init->naxes;
    op->axes = copy_or_null(arena, init->axes, init->naxes, sizeof *init->axes);
    op->nmem = init->nmem;
    op->mem = copy_or_null(arena, init->mem, init->nmem, sizeof *init->mem);
    for (int i = 0; i < op->nmem; i++)
        if (op->mem[i].nidx || op->mem[i].mem->kind == MEM_PARAM ||
            op->mem[i].mem->kind == MEM_TEMP)
            op->mem[i].pos = -1;
    op->nbinders = init->nbinders;
    op->binder = copy_or_null(arena, init->binder, init->nbinders, sizeof *init->binder);
    op->ncarry = init->ncarry;
    op->nregion = init->nregion;
    op->region = ARENA_ARRAY(arena, Region *, op->nregion);
    for (int i = 0; i < op->nregion; i++)
        op->region[i] = op_region(k, op, init);
    op->nres = init->nres;
    op->res = ARENA_ARRAY(arena, Value *, op->nres);
    for (int i = 0; i < op->nres; i++) {
        const char *hint = init->names ? init->names[i] : NULL;
        if (!hint && op->ncarry && op->nregion)
            hint = op->region[0]->arg[op->region[0]->narg - op->ncarry + i]->name;
        op->res[i] = value_named(k, VALUE_OP, init->types[i], hint ? hint : default_hint(op));
        op->res[i]->def = op;
    }
    op_insert(b, op);
    return op;
}

// --- elementwise ---

// Union of the operands' axes; the layout of an operand that has them all.
static Type union_type(DType dtype, int n, Value *const *in) {
    Type t = type_scalar(dtype);
    for (int i = 0; i < n; i++)
        axes_union(t.axes, in[i]->type.axes, &t.axes);
    for (int i = 0; i < n && !t.layout; i++)
        if (t.axes.n && axes_equal(in[i]->type.axes, t.axes))
            t.layout = in[i]->type.layout;
    return t;
}

static Value *build_one(Builder *b, OpInit init, Type type, const char *hint) {
    init.nres = 1;
    init.types = &type;
    init.names = &hint;
    return ir_build(b, &init)->res[0];
}

static Value *build_ew(Builder *b, OpKind kind, int sub, DType dtype, int n, Value *const *in,
                       const char *hint) {
    OpInit init = {.kind = kind, .sub = (uint8_t)sub, .nin = (uint16_t)n, .in = in};
    return build_one(b, init, union_type(dtype, n, in), hint);
}

Value *ir_unary(Builder *b, OpKind kind, Value *x, const char *hint) {
    return build_ew(b, kind, 0, x->type.dtype, 1, &x, hint);
}

Value *ir_binary(Builder *b, OpKind kind, Value *x, Value *y, const char *hint) {
    DType dtype = op_info(kind)->rule == RULE_RAND ? DT_U32 : x->type.dtype;
    return build_ew(b, kind, 0, dtype, 2, (Value *[]){x, y}, hint);
}

Value *ir_fma(Builder *b, Value *x, Value *y, Value *z, const char *hint) {
    return build_ew(b, OP_FMA, 0, x->type.dtype, 3, (Value *[]){x, y, z}, hint);
}

Value *ir_select(Builder *b, Value *c, Value *x, Value *y, const char *hint) {
    return build_ew(b, OP_SELECT, 0, x->type.dtype, 3, (Value *[]){c, x, y}, hint);
}

Value *ir_cmp(Builder *b, CmpKind kind, Value *x, Value *y, const char *hint) {
    return build_ew(b, OP_CMP, kind, DT_BOOL, 2, (Value *[]){x, y}, hint);
}

Value *ir_cast(Builder *b, DType to, Value *x, const char *hint) {
    return x->type.dtype == to ? x : build_ew(b, OP_CAST, 0, to, 1, &x, hint);
}

// --- along axes ---

static int axes_list(const Kernel *k, AxisSet s, Axis **out) {
    for (int i = 0; i < s.n; i++)
        out[i] = k->axis[s.id[i]];
    return s.n;
}

Value *ir_reduce(Builder *b, ReduceKind kind, Value *x, AxisSet along, const char *hint) {
    Axis *axes[AXES_MAX];
    OpInit init = {.kind = OP_REDUCE, .sub = (uint8_t)kind, .nin = 1, .in = &x, .axes = axes};
    init.naxes = (uint16_t)axes_list(b->kernel, along, axes);
    return build_one(b, init, type_tile(x->type.dtype, axes_minus(x->type.axes, along)), hint);
}

Op *ir_fold(Builder *b, int n, Value *const *v, Value *const *id, int naxes, Axis *const *axes,
            const char *const *names) {
    Value *in[2 * FOLD_VALUES_MAX];
    Type types[FOLD_VALUES_MAX];
    AxisSet all = axes_none(), along = axes_none();
    for (int i = 0; i < n; i++) {
        in[i] = v[i];
        if (id)
            in[n + i] = id[i];
        axes_union(all, v[i]->type.axes, &all);
    }
    for (int i = 0; id && i < naxes; i++)
        axes_add(&along, axes[i]->id);
    for (int i = 0; i < n; i++)
        types[i] = type_tile(v[i]->type.dtype, axes_minus(all, along));
    return ir_build(b, &(OpInit){.kind = id ? OP_FOLD : OP_SCANFN,
                                 .nin = (uint16_t)(id ? 2 * n : n),
                                 .in = in,
                                 .has_else = id != NULL,
                                 .nres = (uint16_t)n,
                                 .types = types,
                                 .names = names,
                                 .naxes = (uint16_t)naxes,
                                 .axes = axes,
                                 .nregion = 1});
}

int op_fold_values(const Op *op) {
    return op->has_else ? op->nin / 2 : op->nin;
}

Value *op_full_operand(const Op *op) {
    int n = op_has(op->kind, TRAIT_FUNCTION) ? op_fold_values(op) : op->nin;
    AxisSet all = axes_none();
    for (int i = 0; i < n; i++)
        axes_union(all, op->in[i]->type.axes, &all);
    Value *found = NULL;
    for (int i = 0; i < n; i++)
        if (axes_equal(op->in[i]->type.axes, all) && (!found || found->kind == VALUE_IOTA))
            found = op->in[i];
    return found;
}

void ir_inline_function(Builder *b, Arena *scratch, const Op *op, Value *const *x, Value *const *y,
                        Value **out) {
    const Region *f = op->region[0];
    const Op *yield = region_yield(f);
    IrMap map = ir_map_new(scratch, b->kernel);
    for (int i = 0; i < op->nres; i++) {
        ir_map_value(&map, f->arg[i], x[i]);
        ir_map_value(&map, f->arg[op->nres + i], y[i]);
    }
    for (const Op *e = f->first; e != yield; e = e->next) {
        b->span = e->span;
        Op *copy = ir_clone(b, e, &map);
        copy->res[0]->type = union_type(copy->res[0]->type.dtype, copy->nin, copy->in);
    }
    for (int i = 0; i < op->nres; i++)
        out[i] = ir_mapped(&map, yield->in[i]);
}

Op *ir_sort(Builder *b, Value *x, Axis *along, const char *const *hints) {
    Type types[2] = {type_tile(x->type.dtype, x->type.axes), type_tile(DT_INDEX, x->type.axes)};
    return ir_build(b, &(OpInit){.kind = OP_SORT,
                                 .nin = 1,
                                 .in = &x,
                                 .nres = 2,
                                 .types = types,
                                 .names = hints,
                                 .naxes = 1,
                                 .axes = &along});
}

// The operand's axes with `to` in the place of `along`.
static AxisSet axes_replaced(AxisSet s, const Axis *along, const Axis *to) {
    s = axes_minus(s, axes_of(along));
    axes_add(&s, to->id);
    return s;
}

Op *ir_topk(Builder *b, Value *x, Axis *along, Axis *to, const char *const *hints) {
    AxisSet axes = axes_replaced(x->type.axes, along, to);
    Type types[2] = {type_tile(x->type.dtype, axes), type_tile(DT_INDEX, axes)};
    return ir_build(b, &(OpInit){.kind = OP_TOPK,
                                 .nin = 1,
                                 .in = &x,
                                 .nres = 2,
                                 .types = types,
                                 .names = hints,
                                 .naxes = 2,
                                 .axes = (Axis *[]){along, to}});
}

Value *ir_histogram(Builder *b, Value *x, Axis *along, Axis *bins, const char *hint) {
    OpInit init = {
        .kind = OP_HISTOGRAM, .nin = 1, .in = &x, .naxes = 2, .axes = (Axis *[]){along, bins}};
    return build_one(b, init, type_tile(DT_INDEX, axes_replaced(x->type.axes, along, bins)), hint);
}

// What a contraction gives without an accumulator: f32 of narrow floats, 32 bits of narrow
// integers.
static DType dot_dtype(const Value *x, const Value *y) {
    DType t = x->type.dtype;
    if (dtype_is_float(t))
        return t == DT_F64 ? DT_F64 : DT_F32;
    if (dtype_bits(t) == 64)
        return t;
    bool is_unsigned = !dtype_is_signed(t) && !dtype_is_signed(y->type.dtype);
    return is_unsigned ? DT_U32 : DT_I32;
}

Value *ir_dot(Builder *b, Value *x, Value *y, Value *acc, AxisSet along, const char *hint) {
    Axis *axes[AXES_MAX];
    Value *in[3] = {x, y, acc};
    OpInit init = {.kind = OP_DOT, .nin = acc ? 3 : 2, .in = in, .axes = axes};
    init.naxes = (uint16_t)axes_list(b->kernel, along, axes);
    Type type = type_scalar(acc ? acc->type.dtype : dot_dtype(x, y));
    axes_union(x->type.axes, y->type.axes, &type.axes);
    type.axes = axes_minus(type.axes, along);
    if (acc) {
        axes_union(type.axes, acc->type.axes, &type.axes);
        type.layout = axes_equal(type.axes, acc->type.axes) ? acc->type.layout : NULL;
    }
    return build_one(b, init, type, hint);
}

Value *ir_take(Builder *b, Value *x, int n, Axis *const *axes, Value *const *index, Value *fill,
               const char *hint) {
    Value *in[AXES_MAX + 2] = {x};
    Type type = x->type;
    type.layout = NULL;
    for (int i = 0; i < n; i++)
        type.axes = axes_minus(type.axes, axes_of(axes[i]));
    for (int i = 0; i < n; i++) {
        in[1 + i] = index[i];
        axes_union(type.axes, index[i]->type.axes, &type.axes);
    }
    if (fill) {
        in[1 + n] = fill;
        axes_union(type.axes, fill->type.axes, &type.axes);
    }
    OpInit init = {.kind = OP_TAKE,
                   .nin = (uint16_t)(1 + n + (fill != NULL)),
                   .in = in,
                   .naxes = (uint16_t)n,
                   .axes = axes,
                   .has_else = fill != NULL};
    return build_one(b, init, type, hint);
}

// --- memory ---

// idx..., last: the operands of loads and stores; *n = their number.
static Value **tensor_operands(Builder *b, const Mem *t, Value *const *index, Value *last, int *n) {
    Value **in = ARENA_ARRAY(kernel_arena(b->kernel), Value *, t->rank + 1);
    for (int i = 0; i < t->rank; i++)
        in[i] = index[i];
    if (last)
        in[t->rank] = last;
    *n = t->rank + (last != NULL);
    return in;
}

Value *ir_load(Builder *b, Mem *t, Value *const *index, Value *fill, const char *hint) {
    int n;
    Value **in = tensor_operands(b, t, index, fill, &n);
    MemRef ref = memref(t);
    ref.nidx = t->rank;
    OpInit init = {.kind = OP_LOAD,
                   .nin = (uint16_t)n,
                   .in = in,
                   .nmem = 1,
                   .mem = &ref,
                   .has_else = fill != NULL};
    Type type = union_type(t->dtype, n, in);
    type.layout = NULL;
    return build_one(b, init, type, hint);
}

Op *ir_store(Builder *b, Mem *t, Value *const *index, Value *v) {
    int n;
    Value **in = tensor_operands(b, t, index, v, &n);
    MemRef ref = memref(t);
    ref.nidx = t->rank;
    OpInit init = {.kind = OP_STORE, .nin = (uint16_t)n, .in = in, .nmem = 1, .mem = &ref};
    return ir_build(b, &init);
}

Mem *ir_temp(Builder *b, const char *name, DType dtype, int rank, Value *const *dims) {
    OpInit init = {.kind = OP_TEMP, .nin = (uint16_t)rank, .in = dims};
    Op *op = ir_build(b, &init);
    Mem *m = mem_new(b->kernel, MEM_TEMP, name ? name : "t", dtype);
    m->space = SPACE_GLOBAL;
    m->mode = MODE_INOUT;
    m->span = b->span;
    m->rank = (uint8_t)(rank < RANK_MAX ? rank : RANK_MAX);
    for (int i = 0; i < m->rank; i++)
        m->dim[i] = dims[i];
    m->inner = (int8_t)(m->rank - 1);
    m->def = op;
    op->def_mem = m;
    return m;
}

Mem *ir_buf(Builder *b, BufKind kind, const char *name, DType dtype, AxisSet axes, int stages) {
    Op *op = ir_build(b, &(OpInit){.kind = OP_BUF, .sub = (uint8_t)kind});
    Mem *m = mem_new(b->kernel, MEM_BUF, name ? name : "b", dtype);
    m->space = kind == BUF_SHARED ? SPACE_SHARED : SPACE_LOCAL;
    m->mode = MODE_INOUT;
    m->span = b->span;
    m->axes = axes;
    m->def = op;
    op->def_mem = m;
    op_set_int(b->kernel, op, ATTR_stages, stages);
    return m;
}

Mem *ir_chan(Builder *b, const char *name, const char *mode, int stages, int nbufs,
             Mem *const *bufs) {
    Kernel *k = b->kernel;
    MemRef *refs = ARENA_ARRAY(kernel_arena(k), MemRef, (size_t)nbufs);
    for (int i = 0; i < nbufs; i++)
        refs[i] = memref(bufs[i]);
    Op *op = ir_build(b, &(OpInit){.kind = OP_CHAN, .nmem = (uint16_t)nbufs, .mem = refs});
    Mem *m = mem_new(k, MEM_CHAN, name ? name : "c", DT_NONE);
    m->space = SPACE_SHARED;
    m->mode = MODE_INOUT;
    m->span = b->span;
    m->nbufs = (uint16_t)nbufs;
    m->bufs = copy_or_null(kernel_arena(k), bufs, (size_t)nbufs, sizeof *bufs);
    m->def = op;
    op->def_mem = m;
    op_set_str(k, op, ATTR_mode, mode);
    op_set_int(k, op, ATTR_stages, stages);
    return m;
}

// --- axes ---

Value *ir_inside_axis(Builder *b, Axis *axis) {
    OpInit init = {.kind = OP_INSIDE, .naxes = 1, .axes = &axis};
    return build_one(b, init, type_tile(DT_BOOL, axes_of(axis)), NULL);
}

Value *ir_begin(Builder *b, Axis *axis) {
    OpInit init = {.kind = OP_BEGIN, .naxes = 1, .axes = &axis};
    return build_one(b, init, type_scalar(DT_INDEX), NULL);
}

Value *ir_end(Builder *b, Axis *axis) {
    OpInit init = {.kind = OP_END, .naxes = 1, .axes = &axis};
    return build_one(b, init, type_scalar(DT_INDEX), NULL);
}

static Axis *build_axis(Builder *b, const char *name, Axis *of, Axis *like, Value *lo, Value *hi,
                        uint32_t size) {
    Axis *a = axis_new(b->kernel, name ? name : "a");
    a->of = of;
    a->like = like;
    a->lo = lo;
    a->hi = hi;
    a->size = size;
    Value *in[2] = {lo, hi};
    OpInit init = {.kind = OP_AXIS, .nin = lo ? 2 : 0, .in = in, .naxes = 1, .axes = &a};
    ir_build(b, &init);
    return a;
}

Axis *ir_axis(Builder *b, const char *name, Axis *of, uint32_t size) {
    return build_axis(b, name, of, NULL, NULL, NULL, size);
}

Axis *ir_axis_window(Builder *b, const char *name, Axis *of, Value *lo, Value *hi, uint32_t size) {
    return build_axis(b, name, of, NULL, lo, hi, size);
}

Axis *ir_axis_like(Builder *b, const char *name, Axis *of, Axis *like, uint32_t size) {
    return build_axis(b, name, of, like, NULL, NULL, size);
}

// --- structure ---

Op *ir_require(Builder *b, Value *cond, const char *msg) {
    Op *op = ir_build(b, &(OpInit){.kind = OP_REQUIRE, .nin = 1, .in = &cond});
    op_set_str(b->kernel, op, ATTR_msg, msg);
    return op;
}

typedef struct LoopInit {
    OpKind kind;
    int nbinders, ncarry, nres;
    const BinderInit *binders;
    Value *const *inits;
    const Type *types;
    const char *const *names; // of the carried values
} LoopInit;

static Op *build_loop(Builder *b, const LoopInit *loop) {
    Arena *arena = kernel_arena(b->kernel);
    int n = loop->nbinders, ncarry = loop->ncarry, at = 0, nargs = 0;
    Binder *binders = ARENA_ARRAY(arena, Binder, (size_t)n);
    Value **in = ARENA_ARRAY(arena, Value *, (size_t)(3 * n + ncarry));
    const char **hints = ARENA_ARRAY(arena, const char *, (size_t)(n + ncarry));
    for (int i = 0; i < n; i++) {
        const BinderInit *from = &loop->binders[i];
        binders[i].axis = from->axis;
        binders[i].first = (uint16_t)at;
        binders[i].has_step = from->step != NULL;
        in[at++] = from->lo;
        in[at++] = from->hi;
        if (from->step)
            in[at++] = from->step;
        if (!from->axis)
            hints[nargs++] = from->name;
    }
    for (int i = 0; i < ncarry; i++) {
        in[at++] = loop->inits[i];
        hints[nargs++] = loop->names ? loop->names[i] : NULL;
    }
    OpInit init = {.kind = loop->kind,
                   .nin = (uint16_t)at,
                   .in = in,
                   .nres = (uint16_t)loop->nres,
                   .types = loop->types,
                   .nbinders = (uint16_t)n,
                   .binder = binders,
                   .ncarry = (uint16_t)ncarry,
                   .nregion = 1,
                   .arg_names = hints};
    return ir_build(b, &init);
}

Op *ir_parallel(Builder *b, int n, const BinderInit *binders) {
    return build_loop(b, &(LoopInit){.kind = OP_PARALLEL, .nbinders = n, .binders = binders});
}

Op *ir_with(Builder *b, int n, const BinderInit *binders, int nres, const Type *types) {
    return build_loop(
        b, &(LoopInit){
               .kind = OP_WITH, .nbinders = n, .binders = binders, .nres = nres, .types = types});
}

static const Type *types_of(Builder *b, int n, Value *const *values) {
    Type *types = ARENA_ARRAY(kernel_arena(b->kernel), Type, (size_t)n);
    for (int i = 0; i < n; i++)
        types[i] = values[i]->type;
    return types;
}

Op *ir_for_typed(Builder *b, int n, const BinderInit *binders, int ncarry, Value *const *inits,
                 const Type *types, const char *const *names) {
    return build_loop(b, &(LoopInit){.kind = OP_FOR,
                                     .nbinders = n,
                                     .binders = binders,
                                     .ncarry = ncarry,
                                     .nres = ncarry,
                                     .inits = inits,
                                     .types = types,
                                     .names = names});
}

Op *ir_for(Builder *b, int n, const BinderInit *binders, int ncarry, Value *const *inits,
           const char *const *names) {
    return ir_for_typed(b, n, binders, ncarry, inits, types_of(b, ncarry, inits), names);
}

Op *ir_while_typed(Builder *b, int ncarry, Value *const *inits, const Type *types,
                   const char *const *names) {
    return build_loop(b, &(LoopInit){.kind = OP_WHILE,
                                     .ncarry = ncarry,
                                     .nres = ncarry,
                                     .inits = inits,
                                     .types = types,
                                     .names = names});
}

Op *ir_while(Builder *b, int ncarry, Value *const *inits, const char *const *names) {
    return ir_while_typed(b, ncarry, inits, types_of(b, ncarry, inits), names);
}

Op *ir_if(Builder *b, Value *cond, int nres, const Type *types) {
    return ir_build(b, &(OpInit){.kind = OP_IF,
                                 .nin = 1,
                                 .in = &cond,
                                 .nres = (uint16_t)nres,
                                 .types = types,
                                 .nregion = 2});
}

Op *ir_yield(Builder *b, int n, Value *const *values, Value *stop) {
    Value **in = ARENA_ARRAY(kernel_arena(b->kernel), Value *, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        in[i] = values[i];
    in[n] = stop;
    return ir_build(b, &(OpInit){.kind = OP_YIELD,
                                 .nin = (uint16_t)(n + (stop != NULL)),
                                 .in = in,
                                 .has_stop = stop != NULL});
}

Op *ir_launch(Builder *b, const char *pid_name, Value *grid) {
    BinderInit binder = {.name = pid_name ? pid_name : "pid",
                         .lo = ir_int(b->kernel, grid->type.dtype, 0),
                         .hi = grid};
    return build_loop(b, &(LoopInit){.kind = OP_LAUNCH, .nbinders = 1, .binders = &binder});
}

void ir_launch_args(Kernel *k, Op *launch, int nmem, Mem *const *mems, int nvalue,
                    Value *const *values) {
    Arena *arena = kernel_arena(k);
    Value **in = ARENA_ARRAY(arena, Value *, (size_t)nvalue + 2);
    in[0] = launch->in[0];
    in[1] = launch->in[1];
    for (int i = 0; i < nvalue; i++)
        in[2 + i] = values[i];
    launch->in = in;
    launch->nin = (uint16_t)(2 + nvalue);
    launch->mem = ARENA_ARRAY(arena, MemRef, (size_t)nmem);
    launch->nmem = (uint16_t)nmem;
    for (int i = 0; i < nmem; i++)
        launch->mem[i] = memref(mems[i]);
}

// --- parts of ops ---

Value *op_carry_init(const Op *op, int i) {
    return op->in[op->nin - op->ncarry + i];
}

Value *op_carry_arg(const Op *op, int i) {
    const Region *r = op->region[0];
    return r->arg[r->narg - op->ncarry + i];
}

Value *op_binder_lo(const Op *op, int i) {
    return op->in[op->binder[i].first];
}

Value *op_binder_hi(const Op *op, int i) {
    return op->in[op->binder[i].first + 1];
}

MmaParts op_mma_parts(const Op *op) {
    MmaParts p = {0};
    int at = 0;
    if (op->nmem == 0)
        return p;
    if (op->nmem == 2)
        p.a_ref = &op->mem[0];
    else if (op->nin)
        p.a = op->in[at++];
    p.b = &op->mem[op->nmem - 1];
    for (int i = 0; i < op->nmem; i++)
        at += op->mem[i].pos >= 0;
    if (at < op->nin)
        p.acc = op->in[at];
    return p;
}

Value *op_load_else(const Op *op) {
    return op->has_else ? op->in[op->nin - 1] : NULL;
}

Value *op_store_value(const Op *op) {
    return op->in[op->nin - 1];
}

Op *region_yield(const Region *r) {
    return r->last && r->last->kind == OP_YIELD ? r->last : NULL;
}

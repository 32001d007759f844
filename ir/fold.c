// Rewriting of folds and scans shared by passes.
#include "ir/fold.h"

#include "ir/nest.h"

bool op_is_scan(const Op *op) {
    return op->kind == OP_SCAN || op->kind == OP_SCANFN;
}

static Op *fold_part(Builder *b, Arena *scratch, const Op *op, Value *const *v, int naxes,
                     Axis *const *axes) {
    int n = op->nres;
    const char *names[FOLD_VALUES_MAX];
    Value *out[FOLD_VALUES_MAX];
    for (int i = 0; i < n; i++)
        names[i] = op->res[i]->name;
    Op *part = ir_fold(b, n, v, op->in + n, naxes, axes, names);
    Builder in = ir_builder_at_end(b->kernel, part->region[0]);
    Value **arg = part->region[0]->arg;
    ir_inline_function(&in, scratch, op, arg, arg + n, out);
    ir_yield(&in, n, out, NULL);
    return part;
}

void fold_split(Kernel *k, Arena *scratch, Op *op, int at) {
    Builder b = ir_builder_before(k, op);
    b.span = op->span;
    Op *late = fold_part(&b, scratch, op, op->in, op->naxes - at, op->axes + at);
    Op *early = fold_part(&b, scratch, op, late->res, at, op->axes);
    IrMap map = ir_map_new(scratch, k);
    for (int i = 0; i < op->nres; i++)
        ir_map_value(&map, op->res[i], early->res[i]);
    ir_op_unlink(op);
    ir_substitute(k->body, &map);
}

// --- a scan over tiles ---

static ReduceKind scan_kind(const Op *scan) {
    static const ReduceKind kinds[SCAN_COUNT] = {RED_SUM, RED_PROD, RED_MAX};
    return kinds[scan->sub];
}

// Sums of narrow floats are carried in f32.
static DType carry_dtype(const Op *scan, DType dtype) {
    bool adds = scan->kind == OP_SCAN && scan->sub != SCAN_MAX;
    return adds && dtype_is_float(dtype) && dtype_bits(dtype) < 32 ? DT_F32 : dtype;
}

static Value *zero_of(Kernel *k, DType t) {
    return dtype_is_float(t) ? ir_float(k, t, 0)
           : t == DT_BOOL    ? ir_bool(k, false)
                             : ir_int(k, t, 0);
}

void scan_carry(Kernel *k, const Op *scan, Value **inits, Type *types) {
    for (int i = 0; i < scan->nres; i++) {
        Type t = scan->res[i]->type;
        for (int j = 0; j < scan->naxes; j++)
            t.axes = axes_minus(t.axes, axes_of(scan->axes[j]));
        t.dtype = carry_dtype(scan, t.dtype);
        types[i] = t;
        // A function has no neutral element: its first tile does not look at the prefix.
        inits[i] = scan->kind == OP_SCAN ? reduce_identity(k, scan_kind(scan), t.dtype)
                                         : zero_of(k, t.dtype);
    }
}

// The values at the last position inside the windows:
//   %l = n == end n - 1; %f, %p = fold[n] %l, %v else false, 0 {(f, x), (g, y): f || g, g ? y : x}
static void last_elements(Builder *b, int n, Value *const *v, int naxes, Axis *const *axes,
                          Value **out) {
    Kernel *k = b->kernel;
    Value *in[FOLD_VALUES_MAX], *id[FOLD_VALUES_MAX], *got[FOLD_VALUES_MAX];
    Value *last = NULL;
    for (int i = 0; i < naxes; i++) {
        Value *end = ir_binary(b, OP_SUB, ir_end(b, axes[i]), ir_index(k, 1), NULL);
        Value *here = ir_cmp(b, CMP_EQ, axes[i]->iota, end, NULL);
        last = last ? ir_binary(b, OP_AND, last, here, NULL) : here;
    }
    in[0] = last;
    id[0] = ir_bool(k, false);
    for (int i = 0; i < n; i++) {
        in[1 + i] = v[i];
        id[1 + i] = zero_of(k, v[i]->type.dtype);
    }
    Op *pick = ir_fold(b, n + 1, in, id, naxes, axes, NULL);
    Value **x = pick->region[0]->arg, **y = x + n + 1;
    Builder f = ir_builder_at_end(k, pick->region[0]);
    f.span = b->span;
    got[0] = ir_binary(&f, OP_OR, x[0], y[0], NULL);
    for (int i = 1; i <= n; i++)
        got[i] = ir_select(&f, y[0], y[i], x[i], NULL);
    ir_yield(&f, n + 1, got, NULL);
    for (int i = 0; i < n; i++)
        out[i] = pick->res[1 + i];
}

void scan_tile(Builder *b, IrMap *map, Op *scan, Value *lo, Value *const *prefix, Value **next) {
    int n = scan->nres;
    Value *out[FOLD_VALUES_MAX];
    b->span = scan->span;
    Op *part;
    if (scan->kind == OP_SCAN) {
        DType wide = carry_dtype(scan, scan->res[0]->type.dtype);
        Value *x = ir_cast(b, wide, ir_mapped(map, scan->in[0]), NULL);
        part = ir_clone(b, scan, map);
        part->in[0] = x;
        part->res[0]->type.dtype = wide;
        out[0] = ir_binary(b, reduce_combine(scan_kind(scan)), prefix[0], part->res[0], NULL);
    } else {
        part = ir_clone(b, scan, map);
        Value *behind = ir_cmp(b, CMP_GT, ir_begin(b, part->axes[0]), lo, NULL);
        ir_inline_function(b, map->arena, scan, prefix, part->res, out);
        for (int i = 0; i < n; i++)
            out[i] = ir_select(b, behind, out[i], part->res[i], NULL);
    }
    b->span = scan->span;
    last_elements(b, n, out, part->naxes, part->axes, next);
    for (int i = 0; i < n; i++)
        ir_map_value(map, scan->res[i], ir_cast(b, scan->res[i]->type.dtype, out[i], NULL));
}

// --- a scan along several axes ---

static Value *row_before(Builder *b, Axis *rows, Value *v, Value *fill) {
    Value *at = ir_binary(b, OP_SUB, rows->iota, ir_index(b->kernel, 1), NULL);
    return ir_take(b, v, 1, &rows, &at, fill, NULL);
}

static Op *along_others(Builder *b, const Op *op, Value *const *v, IrMap *map) {
    Op *inner = ir_clone(b, op, map);
    inner->naxes = op->naxes - 1;
    for (int i = 0; i < inner->naxes; i++)
        inner->axes[i] = op->axes[1 + i];
    for (int i = 0; v && i < op->nin; i++)
        inner->in[i] = v[i];
    return inner;
}

// Of what the rows give, one element for each.
static Op *along_first(Builder *b, const Op *op, Value *const *v, IrMap *none) {
    Op *outer = ir_clone(b, op, none);
    outer->naxes = 1;
    for (int i = 0; i < op->nin; i++)
        outer->in[i] = v[i];
    for (int i = 0; i < op->nres; i++)
        outer->res[i]->type = v[i]->type;
    return outer;
}

Op *scan_peel(Kernel *k, Arena *scratch, Op *op) {
    Builder b = ir_builder_before(k, op);
    b.span = op->span;
    Axis *rows = op->axes[0];
    AxisSet others = axes_none();
    for (int i = 1; i < op->naxes; i++)
        axes_add(&others, op->axes[i]->id);
    Value *total[FOLD_VALUES_MAX], *before[FOLD_VALUES_MAX], *out[FOLD_VALUES_MAX];
    IrMap none = ir_map_new(scratch, k), none2 = ir_map_new(scratch, k);
    IrMap map = ir_map_new(scratch, k);
    Op *inner;
    if (op->kind == OP_SCAN) {
        DType wide = carry_dtype(op, op->res[0]->type.dtype);
        Value *x = ir_cast(&b, wide, op->in[0], NULL);
        total[0] = ir_reduce(&b, scan_kind(op), x, others, NULL);
        Op *outer = along_first(&b, op, total, &none2);
        inner = along_others(&b, op, &x, &none);
        inner->res[0]->type.dtype = wide;
        Value *nothing = reduce_identity(k, scan_kind(op), wide);
        before[0] = row_before(&b, rows, outer->res[0], nothing);
        out[0] = ir_binary(&b, reduce_combine(scan_kind(op)), before[0], inner->res[0], NULL);
        out[0] = ir_cast(&b, op->res[0]->type.dtype, out[0], NULL);
    } else {
        inner = along_others(&b, op, NULL, &none);
        last_elements(&b, op->nres, inner->res, inner->naxes, inner->axes, total);
        Op *outer = along_first(&b, op, total, &none2);
        for (int i = 0; i < op->nres; i++)
            before[i] = row_before(&b, rows, outer->res[i], NULL);
        ir_inline_function(&b, scratch, op, before, inner->res, out);
        Value *behind = ir_cmp(&b, CMP_GT, rows->iota, ir_begin(&b, rows), NULL);
        for (int i = 0; i < op->nres; i++)
            out[i] = ir_select(&b, behind, out[i], inner->res[i], NULL);
    }
    for (int i = 0; i < op->nres; i++)
        ir_map_value(&map, op->res[i], out[i]);
    ir_op_unlink(op);
    ir_substitute(k->body, &map);
    return inner;
}

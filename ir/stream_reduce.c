// Pass stream, third part: what a loop over the tiles of an axis carries for a reduction along it.
//
//   %s = reduce.sum[N] %x       => carry (%a = 0);        %t = reduce.sum[n] %x; %b = add %a, %t
//   %s.. = fold[N] %x.. {f}     => carry (%a.. = id..);   %t.. = fold[n] %x..; %b.. = f(%a.., %t..)
//   %d = dot[N] %x, %w [, %c]   => carry (%a = 0 or %c);  %b = dot[n] %x, %w, %a
//   %i, %j = argreduce.max[N, u] %x
//     => carry (%v = -inf, %i = -1, %j = -1)
//        %w = reduce.max[n, u] %x; %k, %l = argreduce.max[n, u] %x
//        %take = .. %w comes before %v, or is equal and (%k, %l) comes before (%i, %j)
//        %v' = select %take, %w, %v; ..
#include "ir/stream.h"

#include "ir/fold.h"
#include "ir/nest.h"

bool stream_reduces(const Op *op, const Axis *whole) {
    if (op->kind != OP_REDUCE && op->kind != OP_FOLD && op->kind != OP_DOT &&
        op->kind != OP_ARGREDUCE)
        return false;
    for (int i = 0; i < op->naxes; i++)
        if (op->axes[i] == whole)
            return true;
    return false;
}

// Which of the loop's values is the first result.
static int reduction_first(const Op *red) {
    return red->kind == OP_ARGREDUCE ? 1 : 0;
}

int reduction_values(const Op *red) {
    return reduction_first(red) + red->nres;
}

// Constants of e5m2 have no infinity, its elements do.
static DType compared_dtype(const Op *red) {
    DType t = red->in[0]->type.dtype;
    return t == DT_E5M2 ? DT_F16 : t;
}

static ReduceKind arg_reduce(const Op *red) {
    return red->sub == ARG_MAX ? RED_MAX : RED_MIN;
}

static Value *zero_of(Kernel *k, DType t) {
    return dtype_is_float(t) ? ir_float(k, t, 0) : ir_int(k, t, 0);
}

static Value *start_of(Kernel *k, const Op *red, int i) {
    if (red->kind == OP_FOLD)
        return red->in[red->nres + i];
    DType t = red->res[0]->type.dtype;
    if (red->kind == OP_REDUCE)
        return reduce_identity(k, (ReduceKind)red->sub, t);
    return red->nin > 2 ? red->in[2] : zero_of(k, t);
}

// Where the axis's windows begin; NULL: not known.
static const Value *first_position(const Op *red, const Axis *a) {
    for (const Op *o = red->parent->owner; o && !a->lo; o = o->parent ? o->parent->owner : NULL)
        for (int i = 0; i < o->nbinders; i++)
            if (o->binder[i].axis == a)
                return op_binder_lo(o, i);
    return a->lo;
}

// -1 may be a position: nothing is one behind all others then, until the loop has ended.
static bool has_negative_positions(const Op *red) {
    const Value *lo = first_position(red, red->axes[0]);
    return !red->axes[0]->is_dim && !(lo && value_is_const(lo) && lo->u.i >= 0);
}

static int64_t nothing_of(const Op *red) {
    return has_negative_positions(red) ? INT64_MAX : -1;
}

Value *reduction_result(Builder *b, const Op *red, const Op *loop, int at, int i) {
    Value *result = loop->res[at + reduction_first(red) + i];
    if (red->kind != OP_ARGREDUCE || !has_negative_positions(red))
        return result;
    Value *first = loop->res[at + reduction_first(red)];
    DType t = result->type.dtype;
    Value *none = ir_cmp(b, CMP_EQ, first, ir_int(b->kernel, t, INT64_MAX), NULL);
    return ir_select(b, none, ir_int(b->kernel, t, -1), result, NULL);
}

void reduction_start(Kernel *k, const Op *red, Value **inits, Type *types) {
    int first = reduction_first(red);
    for (int i = 0; i < red->nres; i++)
        types[first + i] = red->res[i]->type;
    if (red->kind == OP_ARGREDUCE) {
        types[0] = red->res[0]->type;
        types[0].dtype = compared_dtype(red);
        inits[0] = reduce_identity(k, arg_reduce(red), types[0].dtype);
        for (int i = 1; i <= red->nres; i++)
            inits[i] = ir_int(k, types[i].dtype, nothing_of(red));
        return;
    }
    for (int i = 0; i < red->nres; i++)
        inits[i] = start_of(k, red, i);
}

static Value *both(Builder *b, Value *x, Value *y) {
    return ir_binary(b, OP_AND, x, y, NULL);
}

static Value *either(Builder *b, Value *x, Value *y) {
    return ir_binary(b, OP_OR, x, y, NULL);
}

// Whether (x, at) comes before (y, best), as argreduce has it. Positions of nothing are -1, or the
// largest number and -1 in a tile, for which y is what it was then.
static Value *arg_before(Builder *b, const Op *red, Value *x, Value *y, Value *const *at,
                         Value *const *best) {
    ArgKind kind = (ArgKind)red->sub;
    int n = red->nres;
    Value *zero = ir_int(b->kernel, at[0]->type.dtype, 0);
    Value *better = ir_cmp(b, kind == ARG_MAX ? CMP_GT : CMP_LT, x, y, NULL);
    Value *equal = ir_cmp(b, CMP_EQ, x, y, NULL);
    if (dtype_is_float(x->type.dtype)) {
        Value *x_nan = ir_cmp(b, CMP_NE, x, x, NULL), *y_nan = ir_cmp(b, CMP_NE, y, y, NULL);
        Value *y_number = ir_cmp(b, CMP_EQ, y, y, NULL);
        better = either(b, better, both(b, x_nan, y_number));
        equal = either(b, equal, both(b, x_nan, y_nan));
    }
    Value *earlier = NULL; // in lexicographic order
    for (int i = n - 1; i >= 0; i--) {
        Value *less = ir_cmp(b, CMP_LT, at[i], best[i], NULL);
        Value *same = earlier ? ir_cmp(b, CMP_EQ, at[i], best[i], NULL) : NULL;
        earlier = earlier ? either(b, less, both(b, same, earlier)) : less;
    }
    Value *wins = either(b, better, both(b, equal, earlier));
    if (has_negative_positions(red))
        return wins;
    Value *first = ir_cmp(b, CMP_LT, best[0], zero, NULL);
    Value *some = ir_cmp(b, CMP_GE, at[0], zero, NULL);
    return both(b, some, either(b, first, wins));
}

static void argreduce_tile(Builder *b, IrMap *map, Op *red, Value *const *acc, Value **next) {
    Value *x = ir_cast(b, compared_dtype(red), ir_mapped(map, red->in[0]), NULL);
    AxisSet along = axes_none();
    for (int i = 0; i < red->naxes; i++)
        axes_add(&along, ir_mapped_axis(map, red->axes[i])->id);
    Value *value = ir_reduce(b, arg_reduce(red), x, along, NULL);
    Op *part = ir_clone(b, red, map);
    part->in[0] = x;
    Value *take = arg_before(b, red, value, acc[0], part->res, acc + 1);
    next[0] = ir_select(b, take, value, acc[0], NULL);
    for (int i = 0; i < red->nres; i++)
        next[1 + i] = ir_select(b, take, part->res[i], acc[1 + i], NULL);
}

static Op *dot_tile(Builder *b, IrMap *map, const Op *red, Value *acc) {
    AxisSet along = axes_none();
    for (int i = 0; i < red->naxes; i++)
        axes_add(&along, ir_mapped_axis(map, red->axes[i])->id);
    Op *dot =
        ir_dot(b, ir_mapped(map, red->in[0]), ir_mapped(map, red->in[1]), acc, along, NULL)->def;
    dot->attr = red->attr;
    dot->nattr = red->nattr;
    return dot;
}

void reduction_tile(Builder *b, IrMap *map, Op *red, Value *const *acc, Value **next) {
    b->span = red->span;
    if (red->kind == OP_ARGREDUCE) {
        argreduce_tile(b, map, red, acc, next);
        return;
    }
    if (red->kind == OP_DOT) {
        next[0] = dot_tile(b, map, red, acc[0])->res[0];
        return;
    }
    Op *part = ir_clone(b, red, map);
    if (red->kind == OP_FOLD)
        ir_inline_function(b, map->arena, red, acc, part->res, next);
    else
        next[0] = ir_binary(b, reduce_combine((ReduceKind)red->sub), acc[0], part->res[0], NULL);
}

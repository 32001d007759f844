// Pass fuse, third part: a product over a whole axis inside a nest => a loop over its tiles.
//
//   %x = load @x[m, K]; %w = load @w[K, n]; %d = dot[K] %x, %w
//   => axis k of K; %d = for k in 0..%K carry (%acc = 0.0) { %x = load @x[m, k]; %w = load @w[k,
//   n];
//                                                           %a = dot[k] %x, %w, %acc; yield %a }
//
// Short contractions of a known length stay whole: both operands are held.
#include "ir/fuse.h"
#include "ir/nest.h"

#include "lang/base/vec.h"

enum { HELD_DOT_MAX = 256 };

static Value *whole_hi(const Axis *a) {
    return a->is_dim ? a->extent : a->hi;
}

static bool axis_is_long(const Axis *a) {
    if (!a->is_dim && !(a->lo && a->hi))
        return false; // bound by a loop or grid
    const Value *hi = whole_hi(a);
    return !(value_is_const(hi) && hi->u.i <= HELD_DOT_MAX);
}

// What stands in front of `op` in the nest: its neighbour, else the op in front of the loop it is
// in.
static Op *op_before(const Op *op) {
    const Region *r = op->parent;
    if (op->prev || !r->owner || r->owner->kind == OP_PARALLEL)
        return op->prev;
    return op_before(r->owner);
}

// Ops in front of the dot, in the loops around it too, that extend along the axis: they move into
// the loop.
static int cone_along(Arena *scratch, const Kernel *k, const Op *dot, const Axis *a, Op ***out) {
    uint8_t *needed = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    VEC(Op *) ops = {0};
    needed[dot->in[0]->id] = needed[dot->in[1]->id] = 1;
    for (Op *op = op_before(dot); op; op = op_before(op)) {
        if (op->nres != 1 || !needed[op->res[0]->id] || !axes_has(op->res[0]->type.axes, a->id))
            continue;
        vec_push(scratch, &ops, op);
        for (int i = 0; i < op->nin; i++)
            needed[op->in[i]->id] = 1;
    }
    for (uint32_t i = 0; i < ops.len / 2; i++) {
        Op *t = ops.data[i];
        ops.data[i] = ops.data[ops.len - 1 - i];
        ops.data[ops.len - 1 - i] = t;
    }
    *out = ops.data;
    return (int)ops.len;
}

// The load cannot move to the dot: its tensor is written on the way (a loop around the dot alone
// goes around all of it).
static bool load_is_stuck(const Op *load, const Op *dot) {
    const Mem *mem = load->mem[0].mem;
    bool around = load->parent != dot->parent;
    Op *from = around ? load->parent->first : load->next;
    for (Op *op = from; op && (around || op != dot); op = op->next)
        if (op_writes(op, mem))
            return true;
    return false;
}

static void replace_all(Kernel *k, Arena *scratch, Op *old, Value *with) {
    IrMap m = ir_map_new(scratch, k);
    ir_map_value(&m, old->res[0], with);
    ir_substitute(k->body, &m);
}

// An operand is overwritten on the way, or something else along the axis makes it: pass stream has
// loops for that.
static bool dot_stays(PassCtx *ctx, const Kernel *k, const Op *dot, const Axis *whole) {
    Op **cone;
    int n = cone_along(ctx->scratch, k, dot, whole, &cone);
    for (int i = 0; i < n; i++) {
        if (cone[i]->kind == OP_LOAD && load_is_stuck(cone[i], dot))
            return true;
        for (int j = 0; j < cone[i]->naxes; j++)
            if (cone[i]->axes[j] == whole)
                return true;
    }
    return false;
}

static void dot_to_loop(PassCtx *ctx, Kernel *k, Op *dot, Axis *whole) {
    Op **cone;
    int n = cone_along(ctx->scratch, k, dot, whole, &cone);
    Builder b = ir_builder_before(k, dot);
    b.span = dot->span;
    Axis *tile = ir_axis(&b, tile_name(ctx->scratch, whole), whole, 0);
    Value *init = dot->nin > 2 ? dot->in[2] : NULL;
    if (!init)
        init = dtype_is_float(dot->res[0]->type.dtype) ? ir_float(k, dot->res[0]->type.dtype, 0)
                                                       : ir_int(k, dot->res[0]->type.dtype, 0);
    Value *lo = whole->is_dim || !whole->lo ? ir_index(k, 0) : whole->lo;
    BinderInit binder = {.axis = tile, .lo = lo, .hi = whole_hi(whole)};
    Type type = dot->res[0]->type;
    const char *acc = "acc";
    Op *loop = ir_for_typed(&b, 1, &binder, 1, &init, &type, &acc);
    Builder in = ir_builder_at_end(k, loop->region[0]);
    IrMap map = ir_map_new(ctx->scratch, k);
    ir_map_axis(&map, whole, tile);
    for (int i = 0; i < n; i++) {
        in.span = cone[i]->span;
        ir_clone(&in, cone[i], &map);
    }
    in.span = dot->span;
    AxisSet along = axes_none();
    for (int i = 0; i < dot->naxes; i++)
        axes_add(&along, dot->axes[i] == whole ? tile->id : dot->axes[i]->id);
    Value *sum = ir_dot(&in, ir_mapped(&map, dot->in[0]), ir_mapped(&map, dot->in[1]),
                        op_carry_arg(loop, 0), along, dot->res[0]->name);
    Op *new_dot = sum->def;
    if (op_attr(dot, ATTR_precision))
        op_set_str(k, new_dot, ATTR_precision, op_attr_str(dot, ATTR_precision));
    ir_yield(&in, 1, &sum, NULL);
    replace_all(k, ctx->scratch, dot, loop->res[0]);
    ir_op_unlink(dot);
}

static bool axis_becomes_loop(PassCtx *ctx, const Kernel *k, const Op *dot, const Axis *a) {
    return axis_is_long(a) && !dot_stays(ctx, k, dot, a);
}

// The loaded operand's elements lie next to each other along the axis, as far as the order of dims
// tells.
static bool is_contiguous_along(const Value *v, const Axis *a) {
    while (v->kind == VALUE_OP && v->def->kind == OP_CAST)
        v = v->def->in[0];
    if (v->kind != VALUE_OP || v->def->kind != OP_LOAD || v->def->mem[0].nidx == 0)
        return false;
    const MemRef *m = &v->def->mem[0];
    const Value *inner = v->def->in[m->first + m->nidx - 1];
    return inner->kind == VALUE_IOTA && inner->axis == a;
}

// The long axis that becomes the outermost loop: the first one, or on the CPU, where the innermost
// loop takes one step at a time, the first that memory is not contiguous along. NULL: there is
// none.
static Axis *outermost_axis(PassCtx *ctx, const Kernel *k, const Op *dot) {
    Axis *contiguous = NULL;
    for (int i = 0; i < dot->naxes; i++) {
        Axis *a = dot->axes[i];
        if (!axis_becomes_loop(ctx, k, dot, a))
            continue;
        if (ctx->target->family != TARGET_CPU || !is_contiguous_along(dot->in[0], a))
            return a;
        contiguous = a;
    }
    return contiguous;
}

static void region_dot_loops(PassCtx *ctx, Kernel *k, Region *region) {
    for (Op *op = region->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nregion; i++)
            region_dot_loops(ctx, k, op->region[i]);
        if (op->kind != OP_DOT)
            continue;
        Axis *outermost = outermost_axis(ctx, k, op);
        if (!outermost)
            continue;
        Op *before = op->prev;
        dot_to_loop(ctx, k, op, outermost); // the dot inside it may have more
        // The new loop stands where the dot stood.
        Op *loop = before ? before->next : region->first;
        while (loop && loop->kind != OP_FOR)
            loop = loop->next;
        if (loop)
            region_dot_loops(ctx, k, loop->region[0]);
    }
}

void fuse_dot_loops(PassCtx *ctx, Kernel *k, Region *region) {
    region_dot_loops(ctx, k, region);
}

// --- inner products ---

typedef struct Inner {
    PassCtx *ctx;
    Kernel *k;
} Inner;

static void inner_product(void *user, Op *dot) {
    Inner *in = user;
    if (dot->kind != OP_DOT || dot->res[0]->type.axes.n > 0)
        return;
    Builder b = ir_builder_before(in->k, dot);
    b.span = dot->span;
    DType t = dot->res[0]->type.dtype;
    AxisSet along = axes_none();
    for (int i = 0; i < dot->naxes; i++)
        axes_add(&along, dot->axes[i]->id);
    Value *p = ir_binary(&b, OP_MUL, ir_cast(&b, t, dot->in[0], NULL),
                         ir_cast(&b, t, dot->in[1], NULL), NULL);
    Value *sum = ir_reduce(&b, RED_SUM, p, along, NULL);
    if (dot->nin > 2)
        sum = ir_binary(&b, OP_ADD, dot->in[2], sum, NULL);
    replace_all(in->k, in->ctx->scratch, dot, sum);
    ir_op_unlink(dot);
}

void fuse_inner_products(PassCtx *ctx, Kernel *k) {
    Inner in = {ctx, k};
    ir_walk(k->body, inner_product, &in);
}

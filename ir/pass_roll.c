// Pass roll: a product over a long tile becomes a loop over the tile's elements, on the CPU.
//
// In and out: stage scheduled, after stream. A tile is unrolled there: a product of 4 x 16 elements
// over 128 is a thousand multiply-adds in a row, whose operands are read before the first of them.
// What the loop reads it reads or computes again, an element along the axis at a time. Products
// whose operands are more than loads and elementwise operations stay as they are.
//
//   %x = load @x[m, k]; %w = load @w[k, n]; %d = dot[k] %x, %w, %acc
//   => axis k' of K by 1
//      %d = for k' in begin k .. end k carry (%a = %acc) { %x = load @x[m, k']; %w = load @w[k',
//      n];
//                                                          %s = dot[k'] %x, %w, %a; yield %s }
#include "ir/fuse.h"
#include "ir/nest.h"

// Multiply-adds of vectors that a product may have in a row.
enum { STRAIGHT_MOST = 256, TREE_DEPTH = 16 };

typedef struct Roll {
    PassCtx *ctx;
    Kernel *k;
    Op *par;
    Axis *axis;
    IrMap map; // of the axis, and of what has been made along the new one
} Roll;

// It can be made again at one element of the axis: loads of what the nest does not write, and
// elementwise operations.
static bool can_make(const Roll *r, const Value *v, int depth) {
    if (!axes_has(v->type.axes, r->axis->id) || v->kind == VALUE_IOTA)
        return true;
    if (v->kind != VALUE_OP || depth == 0 || v->def->nres != 1 || v->def->nregion > 0)
        return false;
    const Op *op = v->def;
    bool loads = op->kind == OP_LOAD && !op_writes(r->par, op->mem[0].mem);
    if (!loads && (op->nmem > 0 || !op_has(op->kind, TRAIT_ELEMENTWISE)))
        return false;
    for (int i = 0; i < op->nin; i++)
        if (!can_make(r, op->in[i], depth - 1))
            return false;
    return true;
}

static Value *make(Roll *r, Builder *b, Value *v) {
    bool done = !axes_has(v->type.axes, r->axis->id) || ir_mapped(&r->map, v) != v;
    if (done || v->kind != VALUE_OP)
        return ir_mapped(&r->map, v);
    for (int i = 0; i < v->def->nin; i++)
        (void)make(r, b, v->def->in[i]);
    b->span = v->def->span;
    return ir_clone(b, v->def, &r->map)->res[0];
}

static Value *first_sum(Kernel *k, const Op *dot) {
    DType t = dot->res[0]->type.dtype;
    if (dot->nin > 2)
        return dot->in[2];
    return dtype_is_float(t) ? ir_float(k, t, 0) : ir_int(k, t, 0);
}

// The loop in front of the product, over the window that its axis has there.
static Op *loop_new(Roll *r, Op *dot, Axis **element) {
    Builder b = ir_builder_before(r->k, dot);
    b.span = dot->span;
    Axis *a = r->axis;
    bool fixed = a->hi != NULL;
    *element = ir_axis(&b, a->name, fixed || !a->of ? a : a->of, 1);
    BinderInit binder = {.axis = *element,
                         .lo = fixed ? (a->lo ? a->lo : ir_index(r->k, 0)) : ir_begin(&b, a),
                         .hi = fixed ? a->hi : ir_end(&b, a)};
    Value *init = first_sum(r->k, dot);
    Type type = dot->res[0]->type;
    const char *name = "acc";
    return ir_for_typed(&b, 1, &binder, 1, &init, &type, &name);
}

// Returns the product in the loop.
static Op *dot_roll(Roll *r, Op *dot) {
    Axis *element;
    Op *loop = loop_new(r, dot, &element);
    Builder in = ir_builder_at_end(r->k, loop->region[0]);
    r->map = ir_map_new(r->ctx->scratch, r->k);
    ir_map_axis(&r->map, r->axis, element);
    Value *x = make(r, &in, dot->in[0]), *y = make(r, &in, dot->in[1]);
    AxisSet along = axes_none();
    for (int i = 0; i < dot->naxes; i++)
        axes_add(&along, dot->axes[i] == r->axis ? element->id : dot->axes[i]->id);
    in.span = dot->span;
    Value *sum = ir_dot(&in, x, y, op_carry_arg(loop, 0), along, dot->res[0]->name);
    if (op_attr(dot, ATTR_precision))
        op_set_str(r->k, sum->def, ATTR_precision, op_attr_str(dot, ATTR_precision));
    ir_yield(&in, 1, &sum, NULL);
    IrMap result = ir_map_new(r->ctx->scratch, r->k);
    ir_map_value(&result, dot->res[0], loop->res[0]);
    ir_op_unlink(dot);
    ir_substitute(r->k->body, &result);
    return sum->def;
}

// The longest axis that the product is over.
static Axis *longest(const Op *dot) {
    Axis *a = dot->axes[0];
    for (int i = 1; i < dot->naxes; i++)
        a = dot->axes[i]->size > a->size ? dot->axes[i] : a;
    return a;
}

static bool is_long(const Roll *r, const Op *dot) {
    uint64_t n = tile_elements(r->k, dot->res[0]->type.axes);
    for (int i = 0; i < dot->naxes; i++)
        n *= dot->axes[i]->size ? dot->axes[i]->size : 1;
    return n / (uint64_t)r->ctx->target->lanes > STRAIGHT_MOST;
}

static void op_roll(void *user, Op *op) {
    Roll *r = user;
    if (op->kind != OP_DOT || op->naxes == 0 || !is_long(r, op))
        return;
    r->axis = longest(op);
    bool known = r->axis->size > 1 && !r->axis->like && !r->axis->is_dim;
    if (known && can_make(r, op->in[0], TREE_DEPTH) && can_make(r, op->in[1], TREE_DEPTH))
        op_roll(r, dot_roll(r, op)); // it may be over other long axes
}

static bool nest_roll(PassCtx *ctx, Kernel *k, Op *par) {
    Roll r = {.ctx = ctx, .k = k, .par = par};
    ir_walk(par->region[0], op_roll, &r);
    return true;
}

bool pass_roll(PassCtx *ctx, Kernel *k) {
    return ctx->target->family != TARGET_CPU || each_nest(ctx, k, nest_roll);
}

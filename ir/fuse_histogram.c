// Pass fuse, before everything else: a histogram => comparisons with the bins, and a sum.
//
//   %h = histogram[n, b] %x
//   => %i = cast %x : index[n]; %c = cmp.eq %i, b : bool[n, b]; %o = cast %c : index[n, b]
//      %h = reduce.sum[n] %o
//
// So bins are an axis of the grid like any other, and n may be streamed. It costs |n| * |b|
// comparisons and no atomics: cheap for a few hundred bins, and the order of the data does not
// matter. Nothing after this pass knows the op.
#include "ir/fuse.h"

typedef struct Expand {
    PassCtx *ctx;
    Kernel *k;
} Expand;

// A u64 above every index is no bin: without the test it would look negative.
static Value *fits_index(Builder *b, Value *x) {
    return ir_cmp(b, CMP_LE, x, ir_int(b->kernel, DT_U64, INT64_MAX), NULL);
}

static void expand_histogram(void *user, Op *op) {
    Expand *x = user;
    if (op->kind != OP_HISTOGRAM)
        return;
    Builder b = ir_builder_before(x->k, op);
    b.span = op->span;
    Value *v = op->in[0];
    Value *hit = ir_cmp(&b, CMP_EQ, ir_cast(&b, DT_INDEX, v, NULL), op->axes[1]->iota, NULL);
    if (v->type.dtype == DT_U64)
        hit = ir_binary(&b, OP_AND, hit, fits_index(&b, v), NULL);
    Value *sum = ir_reduce(&b, RED_SUM, ir_cast(&b, DT_INDEX, hit, NULL), axes_of(op->axes[0]),
                           op->res[0]->name);
    IrMap map = ir_map_new(x->ctx->scratch, x->k);
    ir_map_value(&map, op->res[0], sum);
    ir_substitute(x->k->body, &map);
    ir_op_unlink(op);
}

void fuse_histograms(PassCtx *ctx, Kernel *k) {
    Expand x = {ctx, k};
    ir_walk(k->body, expand_histogram, &x);
}

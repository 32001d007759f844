// Rewriting of loops shared by passes.
#include "ir/loop.h"

Op *loop_add_carry(Kernel *k, Arena *scratch, Op *loop, Value *init, const char *name) {
    Builder b = ir_builder_before(k, loop);
    b.span = loop->span;
    int n = loop->ncarry + 1, nb = loop->nbinders;
    BinderInit *binders = ARENA_ARRAY(scratch, BinderInit, (size_t)nb + 1);
    for (int i = 0; i < nb; i++) {
        const Binder *old = &loop->binder[i];
        binders[i] = (BinderInit){.axis = old->axis,
                                  .name = old->var ? old->var->name : NULL,
                                  .lo = loop->in[old->first],
                                  .hi = loop->in[old->first + 1],
                                  .step = old->has_step ? loop->in[old->first + 2] : NULL};
    }
    Value **inits = ARENA_ARRAY(scratch, Value *, n);
    Type *types = ARENA_ARRAY(scratch, Type, n);
    const char **names = ARENA_ARRAY(scratch, const char *, n);
    for (int i = 0; i < n - 1; i++) {
        inits[i] = op_carry_init(loop, i);
        types[i] = loop->res[i]->type;
        names[i] = op_carry_arg(loop, i)->name;
    }
    inits[n - 1] = init;
    types[n - 1] = init->type;
    names[n - 1] = name;
    Op *with = ir_for_typed(&b, nb, binders, n, inits, types, names);
    IrMap map = ir_map_new(scratch, k);
    for (int i = 0, var = 0; i < nb; i++)
        if (loop->binder[i].var) {
            ir_map_value(&map, loop->binder[i].var, with->region[0]->arg[var]);
            var++;
        }
    for (int i = 0; i < n - 1; i++) {
        ir_map_value(&map, op_carry_arg(loop, i), op_carry_arg(with, i));
        ir_map_value(&map, loop->res[i], with->res[i]);
    }
    for (Op *op = loop->region[0]->first, *next; op; op = next) {
        next = op->next;
        ir_op_move_end(op, with->region[0]);
    }
    for (int i = 0; i < loop->nattr; i++)
        if (loop->attr[i].id == ATTR_unroll || loop->attr[i].id == ATTR_stages)
            op_set_int(k, with, loop->attr[i].id, loop->attr[i].i);
    ir_op_unlink(loop);
    ir_substitute(k->body, &map);
    return with;
}

void loop_yield_add(Kernel *k, Op *loop, Value *next) {
    Op *old = region_yield(loop->region[0]);
    Builder b = old ? ir_builder_before(k, old) : ir_builder_at_end(k, loop->region[0]);
    b.span = loop->span;
    int n = loop->ncarry;
    Value *values[256];
    for (int i = 0; i < n - 1; i++)
        values[i] = old->in[i];
    values[n - 1] = next;
    ir_yield(&b, n, values, old && old->has_stop ? old->in[old->nin - 1] : NULL);
    if (old)
        ir_op_unlink(old);
}

Op *region_after_axes(const Region *r) {
    Op *op = r->first;
    while (op && op->kind == OP_AXIS)
        op = op->next;
    return op;
}

Op *build_chan_op(Builder *b, OpKind kind, Mem *chan, Value *pos) {
    Value *in[1] = {pos};
    MemRef mem[1] = {{.mem = chan, .first = 0, .nidx = 0, .pos = 0}};
    return ir_build(b, &(OpInit){.kind = kind, .nin = 1, .nmem = 1, .in = in, .mem = mem});
}

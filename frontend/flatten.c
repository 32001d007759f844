/* Functions of single elements: conditions become selects.
 *
 *   %r = if %c { ...; yield %a } { ...; yield %b }   =>   ...; ...; %r = select %c, %a, %b
 *
 * Input: a region whose ops compute or are `if`s of such. Output: ops in one row. Both sides are
 * computed: nothing in them can fault or write. Other ops with regions stay, for the caller to
 * report.
 */
#include "frontend/fe.h"

static void flatten_if(Fe *fe, Op *op, IrMap *map) {
    const Op *yield[2];
    for (int side = 0; side < 2; side++) {
        region_flatten(fe, op->region[side], map);
        yield[side] = region_yield(op->region[side]);
        for (Op *in = op->region[side]->first, *next; in; in = next) {
            next = in->next;
            if (in != yield[side])
                ir_op_move_before(in, op);
        }
    }
    Builder b = ir_builder_before(fe->kernel, op);
    b.span = op->span;
    for (int i = 0; i < op->nres; i++) {
        Value *yes = ir_mapped(map, yield[0]->in[i]), *no = ir_mapped(map, yield[1]->in[i]);
        Value *r = ir_select(&b, ir_mapped(map, op->in[0]), yes, no, op->res[i]->name);
        ir_map_value(map, op->res[i], r);
    }
    ir_op_unlink(op);
}

void region_flatten(Fe *fe, Region *region, IrMap *map) {
    for (Op *op = region->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nin; i++)
            op->in[i] = ir_mapped(map, op->in[i]);
        if (op->kind == OP_IF)
            flatten_if(fe, op, map);
    }
}

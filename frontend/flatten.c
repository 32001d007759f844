/* Conditions become selects: in functions of single elements, and outside every nest where what a
 * variable becomes is data.
 *
 *   %r = if %c { ...; yield %a } { ...; yield %b }   =>   ...; ...; %r = select %c, %a, %b
 *
 * Input: a region whose ops compute or are `if`s of such. Output: ops in one row. Both sides are
 * computed: nothing in them can fault or write. Other ops with regions stay, for the caller to
 * report. Loops outside every nest over a few constant indices are written out likewise.
 */
#include "frontend/fe.h"

enum { UNROLL_MAX = 64, BINDERS_MAX = 16 };

void if_flatten(Fe *fe, Op *op, IrMap *map) {
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
            if_flatten(fe, op, map);
    }
}

bool region_only_computes(const Region *region) {
    for (const Op *op = region->first; op; op = op->next) {
        bool computes = op_has(op->kind, TRAIT_PURE) || op->kind == OP_LOAD ||
                        op->kind == OP_AXIS || op->kind == OP_YIELD;
        bool chooses = op->kind == OP_IF && region_only_computes(op->region[0]) &&
                       region_only_computes(op->region[1]);
        if (!computes && !chooses)
            return false;
    }
    return true;
}

/* --- loops ---------------------------------------------------------------------------------- */

/* How often the binders' loops run, the first outermost; false where that is not a constant of at
 * most UNROLL_MAX. */
static bool trip_counts(const Op *op, int64_t *count) {
    int64_t all = 1;
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        const Value *lo = op->in[b->first], *hi = op->in[b->first + 1];
        const Value *step = b->has_step ? op->in[b->first + 2] : NULL;
        if (!b->var || !value_is_const(lo) || !value_is_const(hi) ||
            (step && !value_is_const(step)))
            return false;
        int64_t s = step ? step->u.i : 1, size;
        if (__builtin_sub_overflow(s > 0 ? hi->u.i : lo->u.i, s > 0 ? lo->u.i : hi->u.i, &size) ||
            s == INT64_MIN || s == 0)
            return false;
        int64_t width = s > 0 ? s : -s;
        count[i] = size <= 0 ? 0 : (size - 1) / width + 1;
        if (count[i] > UNROLL_MAX)
            return false;
        all *= count[i];
        if (all > UNROLL_MAX)
            return false;
    }
    return true;
}

static Value *with_axes_of(Fe *fe, Value *v, const Value *like) {
    return val_spread(fe, val_with_axes(v, like->type.axes), fe->b.span);
}

static void unroll_once(Fe *fe, const Op *op, IrMap *map, int64_t at, const int64_t *count,
                        Value **value) {
    for (int i = op->nbinders; i-- > 0; at /= count[i]) {
        const Binder *b = &op->binder[i];
        int64_t step = b->has_step ? op->in[b->first + 2]->u.i : 1;
        int64_t index = op->in[b->first]->u.i + at % count[i] * step;
        ir_map_value(map, b->var, ir_int(fe->kernel, b->var->type.dtype, index));
    }
    for (int i = 0; i < op->nres; i++) {
        Value *arg = op_carry_arg(op, i);
        ir_map_value(map, arg, with_axes_of(fe, value[i], arg));
    }
    ir_clone_region_ops(&fe->b, op->region[0], map);
    const Op *yield = region_yield(op->region[0]);
    for (int i = 0; i < op->nres; i++)
        value[i] = ir_mapped(map, yield->in[i]);
}

bool for_unroll(Fe *fe, Op *op, Value **value) {
    int64_t count[BINDERS_MAX], all = 1;
    if (op->kind != OP_FOR || op->nbinders > BINDERS_MAX || !region_only_computes(op->region[0]) ||
        region_yield(op->region[0])->has_stop || !trip_counts(op, count))
        return false;
    for (int i = 0; i < op->nbinders; i++)
        all *= count[i];
    for (int i = 0; i < op->nres; i++)
        value[i] = op_carry_init(op, i);
    fe->b.span = op->span;
    ir_op_unlink(op);
    IrMap map = ir_map_new(fe->arena, fe->kernel);
    for (int64_t at = 0; at < all && kernel_has_room(fe, op->span); at++)
        unroll_once(fe, op, &map, at, count, value);
    return true;
}

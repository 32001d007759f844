// Elementwise ops: one instruction per register, operands seen through the result's layout.
//
// Input: operands whose layouts are slices of the result's. Output: the result's registers.
// Invariant: a broadcast costs nothing: it is a map from registers to registers.
#include "backend/lower.h"

#include <string.h>

Operand operand_of(Lower *l, const Value *v, const Layout *full) {
    Target *t = l->t;
    Operand o = {.value = v, .full = full, .part = v->type.layout};
    if (v->kind == VALUE_IOTA) {
        o.axis = v->axis->id;
        o.coord = coord_of(l, full, o.axis);
        Uni begin = lower_window(l, v->axis).begin;
        if (o.coord.warp.v)
            begin = uni_add(t, begin, uni_resize(t, o.coord.warp, 64, false));
        o.splat = t->ops->splat(t, begin);
        o.iota = o.splat;
        if (o.coord.lane.v && !o.coord.overlap)
            o.iota = lane_op2(t, OP_ADD, DT_INDEX, o.splat,
                              lane_resize(t, o.coord.lane, DT_U32, DT_INDEX));
        return o;
    }
    if (v->kind == VALUE_CONST || v->type.axes.n == 0) {
        o.splat = t->ops->splat(t, lower_uni(l, v));
        return o;
    }
    if (o.part == full || !full)
        return o;
    if (!o.part || !layout_is_slice(full, o.part)) {
        target_fail(t, "operand %%%s does not have the layout of the result",
                    v->name ? v->name : "?");
        return o;
    }
    uint32_t n = layout_registers(full);
    o.map = ARENA_ARRAY(l->arena, uint32_t, n);
    for (uint32_t r = 0; r < n; r++)
        o.map[r] = layout_slice_register(full, o.part, r);
    return o;
}

Lane operand_lane(Lower *l, const Operand *o, uint32_t reg) {
    Target *t = l->t;
    const Value *v = o->value;
    if (v->kind == VALUE_IOTA) {
        uint32_t rest, c = coord_register(o->full, o->axis, reg);
        Lane base = o->iota;
        if (o->coord.overlap) {
            Lane lane = coord_lane(l, &o->coord, c, &rest);
            base = lane_op2(t, OP_ADD, DT_INDEX, o->splat, lane_resize(t, lane, DT_U32, DT_INDEX));
        } else {
            rest = c;
        }
        return rest ? lane_op2(t, OP_ADD, DT_INDEX, base, lane_int(t, DT_INDEX, rest)) : base;
    }
    if (o->splat.v)
        return o->splat;
    return lower_lane(l, v, (int)(o->map ? o->map[reg] : reg));
}

void lower_flatten(Lower *l, const Value *v, Type type, LLVMValueRef *out) {
    if (type.axes.n == 0) {
        out[0] = lower_uni(l, v).v;
        return;
    }
    Operand o = operand_of(l, v, type.layout);
    int n = type_registers(type);
    for (int r = 0; r < n && !l->t->failed; r++)
        out[r] = operand_lane(l, &o, (uint32_t)r).v;
    for (int r = 0; r < n && l->t->failed; r++)
        out[r] = l->t->ops->splat(l->t, (Uni){LLVMGetUndef(target_type(l->t, type.dtype))}).v;
}

static unsigned op_flags(const Lower *l, const Op *op) {
    unsigned flags = 0;
    const OpInfo *info = op_info(op->kind);
    for (int i = 0; i < info->nattrs; i++) {
        if (info->attrs[i] == ATTR_contract && op_attr_int(op, ATTR_contract))
            flags |= ARITH_CONTRACT;
        if (info->attrs[i] == ATTR_fast && op_attr_int(op, ATTR_fast))
            flags |= ARITH_FAST;
    }
    if (l->t->options->fast_math)
        flags |= ARITH_FAST | ARITH_CONTRACT;
    return flags;
}

static Lane asm_element(Lower *l, const Op *op, const Lane *x) {
    Target *t = l->t;
    DType types[4] = {op->res[0]->type.dtype};
    if (!t->ops->text) {
        target_fail(t, "this is PTX, which only a GPU runs");
        return t->ops->splat(t, (Uni){LLVMGetUndef(target_type(t, types[0]))});
    }
    for (int i = 0; i < op->nin && i < 3; i++)
        types[1 + i] = op->in[i]->type.dtype;
    return t->ops->text(t, op_attr_str(op, ATTR_msg), op->nin, types, x);
}

// One register of the result from one of each operand.
static Lane element(Lower *l, const Op *op, unsigned flags, const Lane *x) {
    Target *t = l->t;
    DType from = op->in[0]->type.dtype, to = op->res[0]->type.dtype;
    Lane out = {NULL};
    if (op->kind == OP_SELECT)
        return t->ops->select(t, x[0], x[1], x[2]);
    if (op->kind == OP_ASM)
        return asm_element(l, op, x);
    if (op->kind == OP_BITCAST)
        return t->ops->bitcast(t, from, to, x[0]);
    if (op->kind == OP_CAST) {
        t->ops->cast(t, from, to, 1, x, &out);
        return out;
    }
    out = t->ops->arith(t, op->kind, op->sub, from, flags, x);
    if (!out.v) {
        target_fail(t, "not available for %s", dtype_name(from));
        out = t->ops->splat(t, (Uni){LLVMGetUndef(target_type(t, to))});
    }
    return out;
}

static void lower_scalar(Lower *l, const Op *op, unsigned flags) {
    Target *t = l->t;
    Lane x[3] = {{NULL}, {NULL}, {NULL}};
    bool is_int = true;
    for (int i = 0; i < op->nin && i < 3; i++) {
        x[i].v = lower_uni(l, op->in[i]).v;
        is_int = is_int && !dtype_is_float(op->in[i]->type.dtype);
    }
    Tile *tile = lower_result(l, op->res[0]);
    // Integers are scalars in every target: no detour through lanes.
    if (is_int && op->kind != OP_CAST && op->kind != OP_BITCAST && op->kind != OP_ASM) {
        Lane r = op->kind == OP_SELECT
                     ? arith_select(t, x[0], x[1], x[2])
                     : arith_generic(t, op->kind, op->sub, op->in[0]->type.dtype, flags, x);
        if (r.v) {
            tile->reg[0] = r.v;
            return;
        }
    }
    for (int i = 0; i < op->nin && i < 3; i++)
        x[i] = t->ops->splat(t, (Uni){x[i].v});
    tile->reg[0] = t->ops->lane_first(t, element(l, op, flags, x)).v;
}

// A value of a function of elements: a Lane, where other scalars are Unis.
static Lane function_lane(Lower *l, const Value *v) {
    if (v->kind == VALUE_CONST)
        return l->t->ops->splat(l->t, lower_uni(l, v));
    return lower_lane(l, v, 0);
}

// An op on tiles while its registers are made.
typedef struct Elementwise {
    const Op *op;
    unsigned flags;
    Operand operand[3];
    Tile *tile;
} Elementwise;

static Elementwise elementwise_begin(Lower *l, const Op *op) {
    Elementwise e = {.op = op, .flags = op_flags(l, op)};
    for (int i = 0; i < op->nin && i < 3; i++)
        e.operand[i] = operand_of(l, op->in[i], op->res[0]->type.layout);
    e.tile = lower_result(l, op->res[0]);
    return e;
}

static void elementwise_registers(Lower *l, const Elementwise *e, int first, int end) {
    Target *t = l->t;
    const Op *op = e->op;
    if (op->kind == OP_CAST && !t->failed) {
        Lane *in = ARENA_ARRAY(l->arena, Lane, (size_t)(end - first));
        for (int r = first; r < end; r++)
            in[r - first] = operand_lane(l, &e->operand[0], (uint32_t)r);
        t->ops->cast(t, op->in[0]->type.dtype, op->res[0]->type.dtype, end - first, in,
                     (Lane *)e->tile->reg + first);
        return;
    }
    for (int r = first; r < end && !t->failed; r++) {
        Lane x[3] = {{NULL}, {NULL}, {NULL}};
        for (int i = 0; i < op->nin && i < 3; i++)
            x[i] = operand_lane(l, &e->operand[i], (uint32_t)r);
        e->tile->reg[r] = element(l, op, e->flags, x).v;
    }
}

void lower_elementwise(Lower *l, const Op *op) {
    if (op->res[0]->type.axes.n == 0) {
        lower_scalar(l, op, op_flags(l, op));
        return;
    }
    Elementwise e = elementwise_begin(l, op);
    elementwise_registers(l, &e, 0, e.tile->n);
}

// --- several ops, part by part ---
//
// Op after op, what lies between two ops is a whole tile. Where the registers of a thread do not
// hold that, the ops are lowered for some registers of their tiles after the other.

enum { RUN_MOST = 64 };

// Ops of one layout behind each other.
static int run_length(const Op *op) {
    const Layout *layout = op->res[0]->type.layout;
    int n = 0;
    while (op && n < RUN_MOST && op_has(op->kind, TRAIT_ELEMENTWISE) && op->nres == 1 &&
           op->res[0]->type.axes.n > 0 && op->res[0]->type.layout == layout) {
        op = op->next;
        n++;
    }
    return n;
}

static int value_words(const Value *v) {
    if (v->kind == VALUE_CONST || v->kind == VALUE_IOTA || v->type.axes.n == 0 ||
        v->type.dtype == DT_BOOL)
        return 0;
    return type_registers(v->type) * (dtype_bits(v->type.dtype) > 32 ? 2 : 1);
}

// A value of a run: the ops that make it (-1: another one, before) and need it last (RUN_MOST: one
// behind the run).
typedef struct RunValue {
    const Value *value;
    int first, last;
} RunValue;

static RunValue *find_value(RunValue *list, int n, const Value *v) {
    while (n-- > 0)
        if (list[n].value == v)
            return &list[n];
    return NULL;
}

// Words that are live at once when the run is lowered op after op.
static int run_words(const Op *const *run, int n) {
    RunValue list[RUN_MOST * 4];
    int nlist = 0, most = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < run[i]->nin && k < 3; k++) {
            RunValue *v = find_value(list, nlist, run[i]->in[k]);
            if (!v)
                *(v = &list[nlist++]) = (RunValue){.value = run[i]->in[k], .first = -1};
            v->last = i;
        }
        list[nlist++] = (RunValue){.value = run[i]->res[0], .first = i, .last = RUN_MOST};
    }
    for (int i = 0; i < n; i++) {
        int words = 0;
        for (int k = 0; k < nlist; k++)
            words += list[k].first <= i && list[k].last > i ? value_words(list[k].value) : 0;
        most = words > most ? words : most;
    }
    return most;
}

int lower_elementwise_run(Lower *l, const Op *op) {
    enum { PART = 16, WORDS_MOST = 255 };
    const Op *run[RUN_MOST];
    Elementwise e[RUN_MOST];
    if (l->t->desc->family == TARGET_CPU || !op_has(op->kind, TRAIT_ELEMENTWISE) ||
        op->res[0]->type.axes.n == 0)
        return 0;
    int n = run_length(op), registers = type_registers(op->res[0]->type);
    for (int i = 0; i < n; i++)
        run[i] = i ? run[i - 1]->next : op;
    if (registers < 2 * PART || run_words(run, n) <= WORDS_MOST)
        return 0;
    for (int i = 0; i < n && !l->t->failed; i++)
        e[i] = elementwise_begin(l, run[i]);
    for (int first = 0; first < registers; first += PART)
        for (int i = 0; i < n && !l->t->failed; i++) {
            l->t->op = run[i];
            elementwise_registers(l, &e[i], first,
                                  first + PART < registers ? first + PART : registers);
        }
    return n;
}

// Its values are Lanes while it is inlined: their tiles are overwritten each time.
void lower_function(Lower *l, const Op *op, const Lane *x, const Lane *y, Lane *out) {
    Target *t = l->t;
    const Region *f = op->region[0];
    const Op *yield = region_yield(f);
    for (int i = 0; i < op->nres; i++) {
        lower_result(l, f->arg[i])->reg[0] = x[i].v;
        lower_result(l, f->arg[op->nres + i])->reg[0] = y[i].v;
    }
    for (const Op *e = f->first; e != yield && !t->failed; e = e->next) {
        Lane in[3] = {{NULL}, {NULL}, {NULL}};
        t->op = e;
        for (int i = 0; i < e->nin && i < 3; i++)
            in[i] = function_lane(l, e->in[i]);
        lower_result(l, e->res[0])->reg[0] = element(l, e, op_flags(l, e), in).v;
    }
    t->op = op;
    for (int i = 0; i < op->nres; i++)
        out[i] = t->failed ? x[i] : function_lane(l, yield->in[i]);
}

// inside m: iota < end of the window; inside @t[...]: every index within its extent.
static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// Position below end - begin, in i32. Registers of one aligned block are inside or outside together
// where begin and end are multiples of its size: they share one comparison.
static void inside_window(Lower *l, const Axis *axis, const Layout *layout, Tile *tile) {
    Window w = lower_window(l, axis);
    Coord c = coord_of(l, layout, axis->id);
    Uni begin = w.begin;
    if (c.warp.v)
        begin = uni_add(l->t, begin, uni_resize(l->t, c.warp, 64, false));
    Uni left = lower_clamp_i32(l, lower_sub(l, w.end, begin));
    uint32_t block =
        c.overlap || w.end_divisor == 0 ? 1 : least(least(w.divisor, w.end_divisor), c.divisor);
    for (int r = 0; r < tile->n && !l->t->failed; r++) {
        uint32_t at = coord_register(layout, axis->id, (uint32_t)r) & ~(block - 1), rest;
        for (int s = 0; s < r && !tile->reg[r]; s++)
            if ((coord_register(layout, axis->id, (uint32_t)s) & ~(block - 1)) == at)
                tile->reg[r] = tile->reg[s];
        if (tile->reg[r])
            continue;
        Lane lane = coord_lane(l, &c, at, &rest);
        tile->reg[r] = lower_below(l, lane, rest, left).v;
    }
}

void lower_inside(Lower *l, const Op *op) {
    Target *t = l->t;
    Value *res = op->res[0];
    const Layout *layout = res->type.layout;
    Tile *tile = lower_result(l, res);
    if (op->nmem == 0) {
        inside_window(l, op->axes[0], layout, tile);
        return;
    }
    const MemRef *ref = &op->mem[0];
    bool absent = ref->mem->absent;
    LLVMValueRef there = l->pointer[ref->mem->id].v
                             ? LLVMBuildIsNotNull(t->builder, l->pointer[ref->mem->id].v, "")
                             : LLVMConstInt(target_int(t, 1), !absent, false);
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = ref->mem->opt ? t->ops->splat(t, (Uni){there}).v : NULL;
    for (int d = 0; d < ref->nidx; d++) {
        const Value *index = op->in[ref->first + d];
        Operand o = operand_of(l, index, layout);
        Lane extent = t->ops->splat(t, lower_index(l, ref->mem->dim[d]));
        bool is_signed = dtype_is_signed(index->type.dtype);
        for (int r = 0; r < tile->n && !t->failed; r++) {
            Lane i = operand_lane(l, &o, (uint32_t)r);
            i = lane_resize(t, i, index->type.dtype, is_signed ? DT_INDEX : DT_U64);
            Lane in = lane_cmp(t, CMP_LT, DT_U64, i, extent);
            tile->reg[r] = lane_and(t, (Lane){tile->reg[r]}, in).v;
        }
    }
    for (int r = 0; r < tile->n; r++) {
        Lane in = {tile->reg[r]};
        if (!in.v)
            in = lane_int(t, DT_BOOL, 1);
        tile->reg[r] = res->type.axes.n ? in.v : t->ops->lane_first(t, in).v;
    }
}

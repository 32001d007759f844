// Loads and stores of tensors.
//
// Input: an access `@t[idx...]` walked by a tile's layout. Output: vector accesses with predicates.
// An index that is affine in the iotas is split into a uniform part (folded into the base pointer),
// a lane part (one offset for all registers) and a constant per register (an immediate where the
// dim has stride 1). Invariant: memory is touched only where `check` and `guard` hold.
#include "backend/lower.h"

#include <string.h>

#define DIVISOR_MAX (UINT32_C(1) << 30)

static uint32_t low_bit(uint64_t x) {
    uint64_t low = x & (~x + 1);
    return low == 0 || low > DIVISOR_MAX ? DIVISOR_MAX : (uint32_t)low;
}

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t scaled(uint32_t divisor, int64_t coeff) {
    uint64_t p = (uint64_t)divisor * low_bit((uint64_t)coeff);
    return p > DIVISOR_MAX ? DIVISOR_MAX : (uint32_t)p;
}

static int log2_floor(uint32_t x) {
    int n = 0;
    while (x >>= 1)
        n++;
    return n;
}

// --- affine indices ---

static void add_uniform(Lower *l, IndexDim *d, Uni x, int64_t coeff) {
    Uni scaled_x = uni_mul(l->t, x, uni_int(l->t, 64, coeff));
    d->uniform = uni_add(l->t, d->uniform, scaled_x);
}

static void add_bits(IndexDim *d, int bits, int64_t coeff) {
    uint64_t size = coeff < 0 ? 0 - (uint64_t)coeff : (uint64_t)coeff;
    if (size > 1)
        bits += 64 - __builtin_clzll(size - 1);
    d->bits = (bits > d->bits ? bits : d->bits) + 1;
}

static bool add_term(IndexDim *d, uint16_t axis, int64_t coeff) {
    for (int i = 0; i < d->nterm; i++) {
        if (d->term[i].axis == axis) {
            d->term[i].coeff += coeff;
            return true;
        }
    }
    if (d->nterm == AXES_MAX)
        return false;
    d->term[d->nterm++] = (IndexTerm){.axis = axis, .coeff = coeff};
    return true;
}

// Adds coeff * v to the dim; false when v is not affine in iotas.
static bool add_affine(Lower *l, IndexDim *d, const Value *v, int64_t coeff, int depth) {
    if (depth > 16)
        return false;
    if (v->kind == VALUE_IOTA) {
        Window w = lower_window(l, v->axis);
        add_uniform(l, d, w.begin, coeff);
        d->divisor = min_u32(d->divisor, scaled(w.divisor, coeff));
        d->nonneg = d->nonneg && coeff >= 0 && w.nonneg;
        d->wraps = d->wraps || w.wraps;
        add_bits(d, w.bits, coeff);
        return add_term(d, v->axis->id, coeff);
    }
    if (v->type.axes.n == 0) {
        add_uniform(l, d, lower_index(l, v), coeff);
        d->divisor = min_u32(d->divisor, scaled(lower_divisor(l, v), coeff));
        d->nonneg = d->nonneg && coeff >= 0 && lower_nonneg(l, v);
        d->wraps = d->wraps || !lower_nonneg_exact(l, v);
        add_bits(d, lower_bits(l, v), coeff);
        return true;
    }
    // Narrower integers may wrap; only 64-bit ones are read as mathematics.
    DType dtype = v->type.dtype;
    if (v->kind != VALUE_OP || (dtype != DT_INDEX && dtype != DT_I64))
        return false;
    const Op *op = v->def;
    if (op->kind == OP_ADD)
        return add_affine(l, d, op->in[0], coeff, depth + 1) &&
               add_affine(l, d, op->in[1], coeff, depth + 1);
    if (op->kind == OP_SUB)
        return add_affine(l, d, op->in[0], coeff, depth + 1) &&
               add_affine(l, d, op->in[1], -coeff, depth + 1);
    if (op->kind == OP_CONVERT)
        return add_affine(l, d, op->in[0], coeff, depth + 1);
    if (op->kind == OP_MUL) {
        for (int i = 0; i < 2; i++) {
            const Value *c = op->in[i];
            if (value_is_const(c) && c->u.i > -(INT64_C(1) << 30) && c->u.i < (INT64_C(1) << 30))
                return add_affine(l, d, op->in[1 - i], coeff * c->u.i, depth + 1);
        }
    }
    return false;
}

static uint32_t register_divisor(const Layout *layout, uint16_t axis) {
    uint32_t all = 0;
    if (!layout)
        return DIVISOR_MAX;
    for (unsigned i = 0; i < layout->nin[IN_REG]; i++)
        all |= layout_column(layout, IN_REG, i, axis);
    if (layout_axis_rep(layout, axis) > 1)
        all |= UINT32_C(1) << layout_axis_bits(layout, axis);
    return low_bit(all);
}

// What lanes and registers add fits into 32 bits.
static bool terms_fit(const Lower *l, const IndexDim *d) {
    int64_t sum = 0;
    for (int i = 0; i < d->nterm; i++) {
        int64_t size = axis_size_of(l->kernel->axis[d->term[i].axis]), coeff = d->term[i].coeff;
        if (coeff > INT32_MAX || coeff < -INT32_MAX)
            return false;
        sum += (coeff < 0 ? -coeff : coeff) * size;
    }
    return sum <= INT32_MAX;
}

static IndexDim index_dim(Lower *l, const Value *v, const Layout *layout) {
    Target *t = l->t;
    IndexDim d = {.divisor = DIVISOR_MAX, .nonneg = true, .uniform = uni_int(t, 64, 0)};
    d.affine = add_affine(l, &d, v, 1, 0) && terms_fit(l, &d);
    d.wraps |= d.bits > 62;
    if (!d.affine) {
        d = (IndexDim){.divisor = 1, .uniform = uni_int(t, 64, 0)};
        d.operand = operand_of(l, v, layout);
        return d;
    }
    for (int i = 0; i < d.nterm; i++) {
        IndexTerm *term = &d.term[i];
        term->coord = coord_of(l, layout, term->axis);
        if (term->coord.warp.v)
            add_uniform(l, &d, uni_resize(t, term->coord.warp, 64, false), term->coeff);
        d.divisor = min_u32(d.divisor, scaled(term->coord.divisor, term->coeff));
    }
    return d;
}

// Index value's 64-bit lane of a dim that is not affine.
static Lane index_operand(Lower *l, const IndexDim *d, uint32_t reg) {
    DType from = d->operand.value->type.dtype;
    return lane_resize(l->t, operand_lane(l, &d->operand, reg), from,
                       dtype_is_signed(from) ? DT_INDEX : DT_U64);
}

// i32: sum of coeff * lane of the dim's terms (NULL: 0); *rest: the register's constant part.
static Lane dim_lane(Lower *l, const IndexDim *d, const Layout *layout, uint32_t reg,
                     int64_t *rest) {
    Target *t = l->t;
    Lane sum = {NULL};
    *rest = 0;
    for (int i = 0; i < d->nterm; i++) {
        const IndexTerm *term = &d->term[i];
        uint32_t r;
        Lane lane = coord_lane(l, &term->coord, coord_register(layout, term->axis, reg), &r);
        *rest += term->coeff * r;
        if (!lane.v)
            continue;
        if (term->coeff != 1)
            lane = lane_op2(t, OP_MUL, DT_I32, lane, lane_int(t, DT_I32, term->coeff));
        sum = sum.v ? lane_op2(t, OP_ADD, DT_I32, sum, lane) : lane;
    }
    return sum;
}

// --- addresses ---

static Uni pointer_add(Lower *l, Uni base, Uni bytes) {
    if (uni_is_int(bytes, 0))
        return base;
    LLVMTypeRef i8 = target_int(l->t, 8);
    return (Uni){LLVMBuildGEP2(l->t->builder, i8, base.v, &bytes.v, 1, "")};
}

static Lane lane_offset(Lower *l, const TileAccess *a, uint32_t reg) {
    Target *t = l->t;
    // fits32 is about bytes: there are twice as many elements in packed ones.
    DType wide = a->mem->fits32 && !a->packed ? DT_I32 : DT_INDEX;
    Lane sum = {NULL};
    for (int i = 0; i < a->rank; i++) {
        const IndexDim *d = &a->dim[i];
        int64_t rest;
        Lane lane;
        if (d->affine) {
            lane = dim_lane(l, d, a->layout, reg, &rest);
            if (lane.v)
                lane = lane_resize(t, lane, DT_I32, wide);
        } else {
            lane = lane_resize(t, index_operand(l, d, reg), DT_INDEX, wide);
        }
        if (!lane.v)
            continue;
        Uni scale =
            d->unit ? uni_int(t, 64, a->bytes) : uni_mul(t, d->stride, uni_int(t, 64, a->bytes));
        scale = uni_resize(t, scale, wide == DT_I32 ? 32 : 64, true);
        if (!uni_is_int(scale, 1))
            lane = lane_op2(t, OP_MUL, wide, lane, t->ops->splat(t, scale));
        sum = sum.v ? lane_op2(t, OP_ADD, wide, sum, lane) : lane;
    }
    return sum;
}

// The address in units of the access (bytes; nibbles of a packed tensor); *uniform: what is to be
// added to the base.
Ptr access_units(Lower *l, TileAccess *a, uint32_t reg, Uni *uniform) {
    Ptr p = {.base = a->base, .offset = a->offset};
    *uniform = a->nibble.v ? a->nibble : uni_int(l->t, 64, 0);
    for (int i = 0; i < a->rank; i++) {
        const IndexDim *d = &a->dim[i];
        if (!d->affine)
            continue;
        int64_t rest = 0;
        for (int k = 0; k < d->nterm; k++) {
            const IndexTerm *term = &d->term[k];
            uint32_t c = coord_register(a->layout, term->axis, reg);
            rest += term->coeff * (int64_t)(c & ~term->coord.overlap);
        }
        if (d->unit)
            p.imm += rest * a->bytes;
        else if (rest)
            *uniform = uni_add(l->t, *uniform,
                               uni_mul(l->t, d->stride, uni_int(l->t, 64, rest * a->bytes)));
    }
    if (!a->is_simple)
        p.offset = lane_offset(l, a, reg);
    return p;
}

Ptr access_pointer(Lower *l, TileAccess *a, uint32_t reg) {
    Uni uniform;
    Ptr p = access_units(l, a, reg, &uniform);
    p.base = pointer_add(l, p.base, uniform);
    return p;
}

// --- predicates ---

Uni lower_clamp_i32(Lower *l, Uni x) {
    LLVMBuilderRef b = l->t->builder;
    Uni most = uni_int(l->t, 64, INT32_MAX), none = uni_int(l->t, 64, -1);
    LLVMValueRef v =
        LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, x.v, most.v, ""), x.v, most.v, "");
    v = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, v, none.v, ""), v, none.v, "");
    return uni_resize(l->t, (Uni){v}, 32, true);
}

Uni lower_sub(Lower *l, Uni a, Uni b) {
    return uni_is_int(b, 0) ? a : (Uni){LLVMBuildSub(l->t->builder, a.v, b.v, "")};
}

// lane + rest < left
Lane lower_below(Lower *l, Lane lane, int64_t rest, Uni left) {
    Target *t = l->t;
    if (!lane.v)
        lane = lane_int(t, DT_I32, rest);
    else if (rest)
        lane = lane_op2(t, OP_ADD, DT_I32, lane, lane_int(t, DT_I32, rest));
    return lane_cmp(t, CMP_LT, DT_I32, lane, t->ops->splat(t, left));
}

static Lane dim_predicate(Lower *l, const TileAccess *a, const IndexDim *d, uint32_t reg) {
    Target *t = l->t;
    Lane extent = t->ops->splat(t, d->extent);
    if (!d->affine)
        return lane_cmp(t, CMP_LT, DT_U64, index_operand(l, d, reg), extent);
    int64_t rest;
    Lane lane = dim_lane(l, d, a->layout, reg, &rest);
    if (d->nonneg)
        return lower_below(l, lane, rest, d->left);
    Lane index = t->ops->splat(t, uni_add(t, d->uniform, uni_int(t, 64, rest)));
    if (lane.v)
        index = lane_op2(t, OP_ADD, DT_INDEX, index, lane_resize(t, lane, DT_I32, DT_INDEX));
    return lane_cmp(t, CMP_LT, DT_U64, index, extent);
}

Lane access_predicate(Lower *l, TileAccess *a, uint32_t reg) {
    Lane p = {NULL};
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i].check)
            p = lane_and(l->t, p, dim_predicate(l, a, &a->dim[i], reg));
    }
    for (int i = 0; i < a->nguard; i++) {
        const GuardTerm *g = &a->guard[i];
        uint32_t rest;
        Lane lane = coord_lane(l, &g->coord, coord_register(a->layout, g->axis, reg), &rest);
        p = lane_and(l->t, p, lower_below(l, lane, rest, g->left));
    }
    return p;
}

// --- vectors ---

static bool axis_in_dim(const IndexDim *d, uint16_t axis) {
    if (!d->affine)
        return d->operand.value->kind == VALUE_IOTA ? d->operand.axis == axis
                                                    : axes_has(d->operand.value->type.axes, axis);
    for (int i = 0; i < d->nterm; i++) {
        if (d->term[i].axis == axis && d->term[i].coeff != 0)
            return true;
    }
    return false;
}

static int inner_dim(const TileAccess *a) {
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i].unit)
            return i;
    }
    return -1;
}

// The longest run of registers along an axis that walks the inner dim by steps of 1.
static void plan_run(TileAccess *a, int inner) {
    const IndexDim *d = &a->dim[inner];
    for (int i = 0; i < d->nterm; i++) {
        uint16_t axis = d->term[i].axis;
        bool alone = d->term[i].coeff == 1;
        for (int k = 0; k < a->rank; k++)
            alone = alone && (k == inner || !axis_in_dim(&a->dim[k], axis));
        uint8_t bits[LAYOUT_BITS_MAX];
        int run = alone ? (int)layout_run(a->layout, axis, bits) : 0;
        if (run > a->vector_log2) {
            a->vector_log2 = run;
            a->run_axis = axis;
            memcpy(a->reg_bits, bits, sizeof bits);
        }
    }
}

// Alignment of the first element of a vector, and with it the vector's size.
static void plan_vector(Lower *l, TileAccess *a, int max_bytes) {
    const Mem *mem = a->mem;
    int inner = inner_dim(a);
    a->vector_log2 = 0;
    a->align = a->bytes;
    if (!a->layout || inner < 0 || !a->dim[inner].affine)
        return;
    plan_run(a, inner);
    uint32_t align = mem->align ? low_bit(mem->align) : (uint32_t)a->bytes;
    if (a->packed)
        align = 2 * low_bit(mem->align ? mem->align : 1);
    for (int i = 0; i < a->rank; i++) {
        uint32_t sdiv = i == inner ? 1 : low_bit(mem->sdiv ? mem->sdiv : 1);
        if (i != inner && a->dim[i].affine && a->dim[i].nterm == 0 &&
            uni_is_int(a->dim[i].uniform, 0))
            continue; // index 0: its stride does not matter
        uint32_t elements = sdiv;
        if (i == inner) {
            elements = a->dim[i].divisor;
            for (int k = 0; k < a->dim[i].nterm; k++) {
                const IndexTerm *term = &a->dim[i].term[k];
                if (term->axis != a->run_axis || a->vector_log2 == 0)
                    elements = min_u32(
                        elements, scaled(register_divisor(a->layout, term->axis), term->coeff));
            }
        } else if (a->dim[i].affine) {
            // stride * index: what divides the index counts too
            uint32_t d = a->dim[i].divisor;
            for (int k = 0; k < a->dim[i].nterm; k++)
                d = min_u32(d, scaled(register_divisor(a->layout, a->dim[i].term[k].axis),
                                      a->dim[i].term[k].coeff));
            elements = scaled(sdiv, (int64_t)d);
        }
        align = min_u32(align, scaled((uint32_t)a->bytes, (int64_t)elements));
    }
    int limit = log2_floor(min_u32(align, (uint32_t)max_bytes) / (uint32_t)a->bytes);
    if (a->vector_log2 > limit)
        a->vector_log2 = limit;
    if (a->vector_log2 < 0)
        a->vector_log2 = 0;
    a->align = a->bytes << a->vector_log2;
    if (align < (uint32_t)a->align)
        a->align = (int)align;
    (void)l;
}

// A vector is inside or outside as a whole when the ends are multiples of its size: known, or
// tested.
static void plan_ends(Lower *l, TileAccess *a) {
    Target *t = l->t;
    int inner = inner_dim(a);
    uint32_t width = UINT32_C(1) << a->vector_log2;
    if (width == 1)
        return;
    LLVMValueRef ends = NULL;
    if (a->dim[inner].check && lower_divisor(l, a->mem->dim[inner]) < width)
        ends = a->dim[inner].extent.v;
    for (int i = 0; i < a->nguard; i++) {
        if (a->guard[i].axis != a->run_axis)
            continue;
        LLVMValueRef end = LLVMBuildSExt(t->builder, a->guard[i].left.v, target_int(t, 64), "");
        ends = ends ? LLVMBuildOr(t->builder, ends, end, "") : end;
    }
    if (!ends)
        return;
    LLVMValueRef odd = LLVMBuildAnd(t->builder, ends, uni_int(t, 64, width - 1).v, "");
    a->aligned_ends.v = LLVMBuildIsNull(t->builder, odd, "");
}

// Positions from the dim's uniform part to the tensor's end. A sum or product that has left 64 bits
// may be negative where its parts are not: nothing is left then.
static Uni elements_left(Lower *l, const IndexDim *d) {
    Uni left = lower_clamp_i32(l, lower_sub(l, d->extent, d->uniform));
    if (!d->wraps)
        return left;
    LLVMValueRef zero = uni_int(l->t, 64, 0).v;
    LLVMValueRef wrong = LLVMBuildICmp(l->t->builder, LLVMIntSLT, d->uniform.v, zero, "");
    return (Uni){LLVMBuildSelect(l->t->builder, wrong, uni_int(l->t, 32, 0).v, left.v, "")};
}

TileAccess access_of(Lower *l, const Op *op, const MemRef *ref, const Layout *layout,
                     int max_bytes) {
    Target *t = l->t;
    Mem *mem = ref->mem;
    TileAccess a = {
        .layout = layout, .mem = mem, .rank = ref->nidx, .bytes = storage_bytes(mem->dtype)};
    if (dtype_is_packed(mem->dtype)) {
        a.packed = true;
        a.nibble = uni_int(t, 64, 0);
        max_bytes = 2 * max_bytes < PACKED_WIDTH_MAX ? 2 * max_bytes : PACKED_WIDTH_MAX;
    }
    if (mem->kind != MEM_PARAM && mem->kind != MEM_TEMP)
        target_fail(t, "@%s is no tensor", mem->name);
    a.base = l->pointer[mem->id];
    if (!a.base.v)
        target_fail(t, "@%s is not an argument of the launch", mem->name);
    a.is_simple = true;
    LLVMValueRef there = NULL;
    if (mem->opt && !mem->absent)
        there = LLVMBuildIsNotNull(t->builder, a.base.v, "");
    const Attr *check = op_attr(op, ATTR_check);
    for (int i = 0; i < a.rank && !t->failed; i++) {
        IndexDim *d = &a.dim[i];
        *d = index_dim(l, op->in[ref->first + i], layout);
        d->unit = mem->inner == i;
        d->stride = d->unit ? uni_int(t, 64, 1) : l->stride[mem->id][i];
        if (!d->stride.v)
            d->stride = uni_int(t, 64, mem->absent ? 0 : 1);
        d->check = check && op_attr_has_int(op, ATTR_check, i);
        d->extent = mem->absent ? uni_int(t, 64, 0) : lower_index(l, mem->dim[i]);
        if (there)
            d->extent.v = LLVMBuildSelect(t->builder, there, d->extent.v, uni_int(t, 64, 0).v, "");
        if (d->check && d->affine && d->nonneg)
            d->left = elements_left(l, d);
        a.is_simple = a.is_simple && d->affine;
        for (int k = 0; k < d->nterm; k++)
            a.is_simple = a.is_simple && !d->term[k].coord.overlap;
        Uni units = uni_mul(t, d->uniform, uni_mul(t, d->stride, uni_int(t, 64, a.bytes)));
        if (a.packed)
            a.nibble = uni_add(t, a.nibble, units);
        else
            a.base = pointer_add(l, a.base, units);
    }
    AxisSet guard = op_attr(op, ATTR_guard) ? op_attr_axes(op, ATTR_guard) : axes_none();
    for (int i = 0; i < guard.n && !t->failed; i++) {
        GuardTerm *g = &a.guard[a.nguard++];
        Window w = lower_window(l, l->kernel->axis[guard.id[i]]);
        g->axis = guard.id[i];
        g->coord = coord_of(l, layout, g->axis);
        Uni begin = w.begin;
        if (g->coord.warp.v)
            begin = uni_add(t, begin, uni_resize(t, g->coord.warp, 64, false));
        g->left = lower_clamp_i32(l, lower_sub(l, w.end, begin));
    }
    if (t->failed)
        return a;
    if (a.is_simple)
        a.offset = lane_offset(l, &a, 0);
    plan_vector(l, &a, max_bytes);
    plan_ends(l, &a);
    lower_note_access(l, op, &a);
    return a;
}

uint32_t access_element(const TileAccess *a, uint32_t base, uint32_t i) {
    for (int k = 0; k < a->vector_log2; k++)
        base |= (i >> k & 1) << a->reg_bits[k];
    return base;
}

bool access_is_base(const TileAccess *a, uint32_t reg) {
    for (int k = 0; k < a->vector_log2; k++) {
        if (reg >> a->reg_bits[k] & 1)
            return false;
    }
    return true;
}

Access access_plain(Lower *l, const TileAccess *a, int width, const Op *op) {
    Access access = {.dtype = a->mem->dtype, .width = width, .mem = a->mem};
    access.align = width > 1 ? a->align : a->bytes;
    access.read_only = !l->written[a->mem->id];
    const OpInfo *info = op_info(op->kind);
    for (int i = 0; i < info->nattrs; i++) {
        Str cache = info->attrs[i] == ATTR_cache ? op_attr_str(op, ATTR_cache) : NULL;
        if (cache)
            access.cache = strcmp(cache, "stream") == 0 ? CACHE_STREAM : CACHE_KEEP;
    }
    return access;
}

// --- load ---

// One vector; where `pred` is false it is `fill` (NULL: zero).
static void load_vector(Lower *l, const Op *op, TileAccess *a, uint32_t reg, Lane pred,
                        const Lane *fill, Lane *out) {
    Target *t = l->t;
    int width = 1 << a->vector_log2;
    if (!a->packed) {
        Access access = access_plain(l, a, width, op);
        t->ops->load_global(t, &access, access_pointer(l, a, reg), pred, fill, out);
        return;
    }
    packed_load(l, op, a, reg, pred, out);
    for (int i = 0; i < width && fill && pred.v; i++)
        out[i] = t->ops->select(t, pred, out[i], fill[i]);
}

static void load_all(Lower *l, const Op *op, TileAccess *a, const Operand *fill, int n,
                     LLVMValueRef *out) {
    int width = 1 << a->vector_log2;
    for (uint32_t r = 0; r < (uint32_t)n; r++) {
        if (!access_is_base(a, r))
            continue;
        Lane fills[64], regs[64];
        for (uint32_t i = 0; i < (uint32_t)width; i++)
            fills[i] = fill ? operand_lane(l, fill, access_element(a, r, i)) : (Lane){NULL};
        Lane pred = access_predicate(l, a, r);
        load_vector(l, op, a, r, pred, fill ? fills : NULL, regs);
        for (uint32_t i = 0; i < (uint32_t)width; i++)
            out[access_element(a, r, i)] = regs[i].v;
    }
}

// Every position lies outside a tensor that is not there.
static void load_absent(Lower *l, const Op *op) {
    Value *res = op->res[0];
    Tile *tile = lower_result(l, res);
    const Value *other = op_load_else(op);
    if (other) {
        lower_flatten(l, other, res->type, tile->reg);
        return;
    }
    Uni zero = {LLVMConstNull(target_type(l->t, res->type.dtype))};
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = res->type.axes.n ? l->t->ops->splat(l->t, zero).v : zero.v;
}

void lower_load(Lower *l, const Op *op) {
    Target *t = l->t;
    Value *res = op->res[0];
    if (op->mem[0].mem->absent) {
        load_absent(l, op);
        return;
    }
    TileAccess a = access_of(l, op, &op->mem[0], res->type.layout, t->desc->vec_bytes);
    if (t->failed)
        return;
    const Value *other = op_load_else(op);
    Operand fill = {0};
    if (other)
        fill = operand_of(l, other, res->type.layout);
    const Operand *f = other ? &fill : NULL;
    Tile *tile = lower_result(l, res);
    if (a.vector_log2 > 0 && a.aligned_ends.v) {
        LLVMValueRef *wide = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)tile->n);
        LLVMValueRef *narrow = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)tile->n);
        IfState s;
        if_begin(t, &s, a.aligned_ends);
        load_all(l, op, &a, f, tile->n, wide);
        if_else(t, &s);
        a.vector_log2 = 0;
        load_all(l, op, &a, f, tile->n, narrow);
        if_end(t, &s, tile->n, wide, narrow, tile->reg);
    } else {
        load_all(l, op, &a, f, tile->n, tile->reg);
    }
    if (res->type.axes.n == 0)
        tile->reg[0] = t->ops->lane_first(t, (Lane){tile->reg[0]}).v;
}

// --- store ---

// Axes that the indices of a reference walk.
AxisSet access_axes(const Op *op, const MemRef *ref) {
    AxisSet all = axes_none();
    for (int i = 0; i < ref->nidx; i++) {
        const Value *v = op->in[ref->first + i];
        AxisSet axes = v->kind == VALUE_IOTA ? axes_of(v->axis) : v->type.axes;
        axes_union(all, axes, &all);
    }
    return all;
}

// The last axis is the fastest in memory more often than not.
static void axis_sizes(const Lower *l, AxisSet axes, AxisSize *sizes) {
    for (int i = 0; i < axes.n; i++) {
        uint16_t id = axes.id[axes.n - 1 - i];
        sizes[i] = (AxisSize){.axis = id, .size = axis_size_of(l->kernel->axis[id])};
    }
}

const Layout *access_blocked(Lower *l, AxisSet axes) {
    AxisSize sizes[AXES_MAX];
    axis_sizes(l, axes, sizes);
    uint32_t warps = 1;
    while (warps * 2 <= (uint32_t)l->t->warps)
        warps *= 2;
    uint32_t lanes = (uint32_t)l->t->desc->lanes;
    return l->t->desc->lane_first
               ? layout_blocked_lane_first(l->layouts, sizes, axes.n, lanes, warps)
               : layout_blocked(l->layouts, sizes, axes.n, 1, lanes, warps);
}

// The layout that walks a store: the value's, with the axes that only the indices have.
const Layout *access_store_layout(Lower *l, const Op *op, const MemRef *ref, const Value *v) {
    AxisSet axes = access_axes(op, ref), have = v->kind == VALUE_IOTA ? axes_none() : v->type.axes;
    AxisSet missing = axes_minus(axes, have);
    if (missing.n == 0)
        return v->type.layout;
    AxisSize sizes[AXES_MAX];
    axis_sizes(l, missing, sizes);
    if (v->type.layout)
        return layout_expand(l->layouts, v->type.layout, sizes, missing.n);
    return access_blocked(l, missing);
}

static void store_all(Lower *l, const Op *op, TileAccess *a, const Operand *value, Lane active) {
    Target *t = l->t;
    int width = 1 << a->vector_log2;
    Access access = access_plain(l, a, width, op);
    uint32_t n = a->layout ? layout_registers(a->layout) : 1;
    for (uint32_t r = 0; r < n; r++) {
        if (!access_is_base(a, r))
            continue;
        Lane regs[64];
        for (uint32_t i = 0; i < (uint32_t)width; i++)
            regs[i] = operand_lane(l, value, access_element(a, r, i));
        Lane pred = lane_and(t, active, access_predicate(l, a, r));
        if (a->packed)
            packed_store(l, op, a, r, pred, regs);
        else
            t->ops->store_global(t, &access, access_pointer(l, a, r), pred, regs);
    }
}

void lower_store(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *ref = &op->mem[0];
    if (ref->mem->absent)
        return;
    const Value *v = op_store_value(op);
    const Layout *layout = access_store_layout(l, op, ref, v);
    TileAccess a = access_of(l, op, ref, layout, t->desc->vec_bytes);
    if (t->failed)
        return;
    Operand value = operand_of(l, v, layout);
    if (t->failed)
        return;
    Lane active = lower_active(l, layout);
    if (a.vector_log2 > 0 && a.aligned_ends.v) {
        IfState s;
        if_begin(t, &s, a.aligned_ends);
        store_all(l, op, &a, &value, active);
        if_else(t, &s);
        a.vector_log2 = 0;
        store_all(l, op, &a, &value, active);
        if_end(t, &s, 0, NULL, NULL, NULL);
    } else {
        store_all(l, op, &a, &value, active);
    }
}

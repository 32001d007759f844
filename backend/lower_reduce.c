// Reductions along axes: inside the thread, between lanes by shuffles, between warps by shared
// memory.
//
// Input: a tile; the result's layout is its slice without the reduced axes. Output: the result's
// registers, equal in all copies. Invariant: the order of additions is the same in every copy
// (pairs of a tree, then a butterfly, then warps in order), so copies agree bit for bit.
#include "backend/lower.h"

#include <string.h>

// What one lane or warp bit of the operand does to the axes that stay and to those that go.
typedef struct BitUse {
    bool kept, reduced;
} BitUse;

static BitUse bit_use(const Layout *from, const Layout *to, unsigned dim, unsigned bit) {
    BitUse use = {false, false};
    for (int i = 0; i < from->naxes; i++) {
        if (!layout_column(from, dim, bit, from->axis[i]))
            continue;
        if (to && layout_axis_index(to, from->axis[i]) >= 0)
            use.kept = true;
        else
            use.reduced = true;
    }
    return use;
}

typedef struct ReducePlan {
    uint32_t lanes;      // lane bits to shuffle over
    uint32_t lanes_kept; // lane bits that tell results apart
    uint32_t warps;      // warp bits to exchange over
    int nlane;           // log2 of distinct lanes
    int nreg, nwarp;     // registers of the result; log2 of warps
    bool ok;
} ReducePlan;

static ReducePlan reduce_plan(const Layout *from, const Layout *to) {
    ReducePlan p = {
        .ok = true, .nreg = to ? (int)layout_registers(to) : 1, .nwarp = from->nin[IN_WARP]};
    for (unsigned i = 0; i < from->nin[IN_LANE]; i++) {
        BitUse use = bit_use(from, to, IN_LANE, i);
        p.ok = p.ok && !(use.kept && use.reduced);
        if (use.reduced)
            p.lanes |= UINT32_C(1) << i;
        if (use.kept) {
            p.lanes_kept |= UINT32_C(1) << i;
            p.nlane++;
        }
    }
    for (unsigned i = 0; i < from->nin[IN_WARP]; i++) {
        BitUse use = bit_use(from, to, IN_WARP, i);
        p.ok = p.ok && !(use.kept && use.reduced);
        if (use.reduced)
            p.warps |= UINT32_C(1) << i;
    }
    return p;
}

int64_t reduce_scratch(const Layout *from, const Layout *to, DType dtype, int values) {
    if (!from)
        return 0;
    ReducePlan p = reduce_plan(from, to);
    if (!p.warps)
        return 0;
    int bytes = storage_bytes(dtype);
    // 16-bit floats are summed in f32; positions of argreduce are i32
    bytes = bytes < 4 ? 4 : bytes;
    return (int64_t)p.nreg * (INT64_C(1) << (p.nwarp + p.nlane)) * bytes * (values > 1 ? 2 : 1);
}

// --- combining ---

// One or two values that are combined together: the value, and for argreduce its position.
typedef struct Pair {
    Lane v, at;
} Pair;
typedef struct Combine {
    OpKind kind;
    DType dtype;
    bool arg, arg_min;
} Combine;

static Pair combine(Lower *l, const Combine *c, Pair a, Pair b) {
    Target *t = l->t;
    if (!c->arg)
        return (Pair){.v = lane_op2(t, c->kind, c->dtype, a.v, b.v)};
    Lane better = lane_cmp(t, c->arg_min ? CMP_LT : CMP_GT, c->dtype, a.v, b.v);
    Lane equal = lane_cmp(t, CMP_EQ, c->dtype, a.v, b.v);
    if (dtype_is_float(c->dtype)) {
        Lane a_nan = lane_cmp(t, CMP_NE, c->dtype, a.v, a.v),
             b_nan = lane_cmp(t, CMP_NE, c->dtype, b.v, b.v);
        Lane both = lane_op2(t, OP_AND, DT_BOOL, a_nan, b_nan);
        Lane only = lane_op2(t, OP_AND, DT_BOOL, a_nan, lane_op2(t, OP_XOR, DT_BOOL, a_nan, both));
        better = lane_op2(t, OP_OR, DT_BOOL, better, only);
        equal = lane_op2(t, OP_OR, DT_BOOL, equal, both);
    }
    Lane first = lane_cmp(t, CMP_LT, DT_I32, a.at, b.at);
    Lane take = lane_op2(t, OP_OR, DT_BOOL, better, lane_op2(t, OP_AND, DT_BOOL, equal, first));
    return (Pair){t->ops->select(t, take, a.v, b.v), t->ops->select(t, take, a.at, b.at)};
}

static Pair combine_tree(Lower *l, const Combine *c, Pair *x, int n) {
    for (; n > 1; n = (n + 1) / 2) {
        for (int i = 0; i < n / 2; i++)
            x[i] = combine(l, c, x[2 * i], x[2 * i + 1]);
        if (n & 1)
            x[n / 2] = x[n - 1];
    }
    return x[0];
}

// --- between warps ---

static void store_partial(Lower *l, const Combine *c, const Shared *p, Lane active, Pair x,
                          int second) {
    Target *t = l->t;
    int bytes = storage_bytes(c->dtype);
    Access access = {.dtype = c->dtype, .width = 1, .align = bytes};
    t->ops->store_shared(t, &access, *p, active, &x.v);
    if (!c->arg)
        return;
    Access at = {.dtype = DT_I32, .width = 1, .align = 4};
    Shared q = *p;
    q.imm += second;
    t->ops->store_shared(t, &at, q, active, &x.at);
}

static Pair load_partial(Lower *l, const Combine *c, const Shared *p, int second) {
    Target *t = l->t;
    Pair x = {{NULL}, {NULL}};
    Access access = {.dtype = c->dtype, .width = 1, .align = storage_bytes(c->dtype)};
    t->ops->load_shared(t, &access, *p, (Lane){NULL}, &x.v);
    if (!c->arg)
        return x;
    Access at = {.dtype = DT_I32, .width = 1, .align = 4};
    Shared q = *p;
    q.imm += second;
    t->ops->load_shared(t, &at, q, (Lane){NULL}, &x.at);
    return x;
}

// scratch[register][warp][distinct lane], each slot 4 or 8 bytes; positions in a second array.
static void exchange_warps(Lower *l, const Combine *c, const ReducePlan *p, const Layout *from,
                           Pair *x) {
    Target *t = l->t;
    LLVMBuilderRef b = t->builder;
    int slot = storage_bytes(c->dtype) < 4 ? 4 : storage_bytes(c->dtype);
    int lanes = 1 << p->nlane, warps = 1 << p->nwarp;
    int second = p->nreg * lanes * warps * slot;
    uint32_t col[LAYOUT_BITS_MAX] = {0};
    uint32_t next = (uint32_t)slot;
    for (int i = 0; i < from->nin[IN_LANE]; i++) {
        if (p->lanes_kept >> i & 1) {
            col[i] = next;
            next <<= 1;
        }
    }
    Lane lane = lane_linear(l, t->ops->lane_id(t), from->nin[IN_LANE], col);
    // Only one of the lanes that hold a result writes it, and no warp beyond the layout.
    Lane active = {NULL};
    uint32_t copies = ((uint32_t)t->desc->lanes - 1) & ~p->lanes_kept;
    if (copies) {
        Lane bits = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, copies));
        active = lane_cmp(t, CMP_EQ, DT_U32, bits, lane_int(t, DT_U32, 0));
    }
    Uni warp = t->ops->warp_id(t);
    if (t->warps > warps) {
        LLVMValueRef in = LLVMBuildICmp(b, LLVMIntULT, warp.v, uni_int(t, 32, warps).v, "");
        active = lane_and(t, active, t->ops->splat(t, (Uni){in}));
    }
    LLVMValueRef mine = LLVMBuildAnd(b, warp.v, uni_int(t, 32, warps - 1).v, "");
    int row = lanes * slot;
    Uni base =
        uni_add(t, uni_int(t, 32, l->scratch_at), uni_mul(t, (Uni){mine}, uni_int(t, 32, row)));
    scratch_begin(l);
    for (int r = 0; r < p->nreg; r++) {
        Shared to = {.base = base, .offset = lane, .imm = r * warps * row};
        store_partial(l, c, &to, active, x[r], second);
    }
    t->ops->block_barrier(t);
    LLVMValueRef others = LLVMBuildAnd(b, mine, uni_int(t, 32, (int64_t)(~p->warps)).v, "");
    int combos = 1;
    for (int i = 0; i < p->nwarp; i++)
        combos <<= p->warps >> i & 1;
    base =
        uni_add(t, uni_int(t, 32, l->scratch_at), uni_mul(t, (Uni){others}, uni_int(t, 32, row)));
    for (int r = 0; r < p->nreg; r++) {
        Pair parts[64];
        for (int k = 0; k < combos && k < 64; k++) {
            int w = 0, from_bit = 0;
            for (int i = 0; i < p->nwarp; i++) {
                if (p->warps >> i & 1)
                    w |= (k >> from_bit++ & 1) << i;
            }
            Shared at = {.base = base, .offset = lane, .imm = (r * warps + w) * row};
            parts[k] = load_partial(l, c, &at, second);
        }
        x[r] = combine_tree(l, c, parts, combos);
    }
}

// The whole reduction: in[registers of from] to out[registers of to].
static bool reduce_pairs(Lower *l, const Combine *c, const Layout *from, const Layout *to,
                         const Pair *in, Pair *out) {
    Target *t = l->t;
    ReducePlan p = reduce_plan(from, to);
    if (!p.ok || (to && !layout_is_slice(from, to))) {
        target_fail(t, "the result does not have the layout of the operand's slice");
        return false;
    }
    if (p.warps && t->desc->shared_bytes == 0) {
        target_fail(t, "a reduction over warps without shared memory");
        return false;
    }
    int n = (int)layout_registers(from);
    Pair *group = ARENA_ARRAY(l->arena, Pair, (size_t)n);
    int *count = ARENA_ARRAY(l->arena, int, (size_t)p.nreg);
    int *place = ARENA_ARRAY(l->arena, int, (size_t)n);
    for (int r = 0; r < n; r++) {
        place[r] = to ? (int)layout_slice_register(from, to, (uint32_t)r) : 0;
        count[place[r]]++;
    }
    for (int o = 0; o < p.nreg; o++) {
        int k = 0;
        for (int r = 0; r < n; r++) {
            if (place[r] == o)
                group[k++] = in[r];
        }
        if (k == 0) {
            target_fail(t, "a result without elements");
            return false;
        }
        Pair x = combine_tree(l, c, group, k);
        for (int bit = 0; bit < from->nin[IN_LANE]; bit++) {
            if (!(p.lanes >> bit & 1))
                continue;
            Pair y = {.v = t->ops->shuffle_xor(t, c->dtype, x.v, UINT32_C(1) << bit)};
            if (c->arg)
                y.at = t->ops->shuffle_xor(t, DT_I32, x.at, UINT32_C(1) << bit);
            x = combine(l, c, x, y);
        }
        out[o] = x;
    }
    if (p.warps)
        exchange_warps(l, c, &p, from, out);
    return true;
}

// 16-bit floats that are combined in f32, rounded once at the end: sums for their bits, and on the
// CPU, which has no instructions for these types, the largest and the smallest too, which are
// elements.
static bool is_widened(const Lower *l, ReduceKind kind, DType dtype) {
    bool chosen = kind == RED_MAX || kind == RED_MIN;
    return (dtype == DT_F16 || dtype == DT_BF16) &&
           (kind == RED_SUM || kind == RED_PROD || (chosen && l->t->desc->family == TARGET_CPU));
}

Tile reduce_tile(Lower *l, ReduceKind kind, DType dtype, const Layout *from, const Layout *to,
                 const LLVMValueRef *in) {
    Target *t = l->t;
    int n = (int)layout_registers(from), n_out = to ? (int)layout_registers(to) : 1;
    bool widen = is_widened(l, kind, dtype);
    Combine c = {.kind = reduce_combine(kind), .dtype = widen ? DT_F32 : dtype};
    Lane *lanes = ARENA_ARRAY(l->arena, Lane, (size_t)n);
    for (int r = 0; r < n; r++)
        lanes[r].v = in[r];
    if (widen)
        t->ops->cast(t, dtype, DT_F32, n, lanes, lanes);
    Pair *x = ARENA_ARRAY(l->arena, Pair, (size_t)n),
         *y = ARENA_ARRAY(l->arena, Pair, (size_t)n_out);
    for (int r = 0; r < n; r++)
        x[r].v = lanes[r];
    Tile out = {.n = n_out, .reg = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n_out)};
    if (!reduce_pairs(l, &c, from, to, x, y))
        return out;
    for (int r = 0; r < n_out; r++)
        out.reg[r] = lane_resize(t, y[r].v, c.dtype, dtype).v;
    return out;
}

// A tile that only a conversion of an operand makes: constants and iotas have no registers yet.
static LLVMValueRef *operand_registers(Lower *l, const Value *v, const Layout *layout, DType to) {
    Type type = v->type;
    type.layout = layout;
    int n = (int)layout_registers(layout);
    Lane *regs = ARENA_ARRAY(l->arena, Lane, (size_t)n);
    Operand o = operand_of(l, v, layout);
    for (int r = 0; r < n && !l->t->failed; r++)
        regs[r] = operand_lane(l, &o, (uint32_t)r);
    if (type.dtype != to && !l->t->failed)
        l->t->ops->cast(l->t, type.dtype, to, n, regs, regs);
    LLVMValueRef *out = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    for (int r = 0; r < n; r++)
        out[r] = regs[r].v;
    return out;
}

void lower_reduce(Lower *l, const Op *op) {
    Target *t = l->t;
    const Value *v = op->in[0];
    Value *res = op->res[0];
    const Layout *from = v->type.layout;
    if (!from) {
        target_fail(t, "an operand without a layout");
        return;
    }
    DType dtype = res->type.dtype;
    LLVMValueRef *in = operand_registers(l, v, from, dtype);
    if (t->failed)
        return;
    bool scalar = res->type.axes.n == 0;
    Tile got =
        reduce_tile(l, (ReduceKind)op->sub, dtype, from, scalar ? NULL : res->type.layout, in);
    if (t->failed)
        return;
    Tile *tile = lower_result(l, res);
    for (int r = 0; r < tile->n && r < got.n; r++)
        tile->reg[r] = scalar ? t->ops->lane_first(t, (Lane){got.reg[r]}).v : got.reg[r];
}

// --- argreduce ---

// Position in the reduced axes' windows, the last axis fastest: i32 per register.
static Lane position(Lower *l, const Op *op, const Layout *from, const Coord *coord,
                     const int64_t *weight, uint32_t reg) {
    Target *t = l->t;
    Lane sum = {NULL};
    int64_t constant = 0;
    for (int i = 0; i < op->naxes; i++) {
        uint32_t rest;
        Lane lane = coord_lane(l, &coord[i], coord_register(from, op->axes[i]->id, reg), &rest);
        constant += rest * weight[i];
        if (coord[i].warp.v) {
            Lane w = t->ops->splat(t, coord[i].warp);
            lane = lane.v ? lane_op2(t, OP_ADD, DT_I32, lane, w) : w;
        }
        if (!lane.v)
            continue;
        if (weight[i] != 1)
            lane = lane_op2(t, OP_MUL, DT_I32, lane, lane_int(t, DT_I32, weight[i]));
        sum = sum.v ? lane_op2(t, OP_ADD, DT_I32, sum, lane) : lane;
    }
    if (!sum.v)
        return lane_int(t, DT_I32, constant);
    return constant ? lane_op2(t, OP_ADD, DT_I32, sum, lane_int(t, DT_I32, constant)) : sum;
}

void lower_argreduce(Lower *l, const Op *op) {
    Target *t = l->t;
    const Value *v = op->in[0];
    const Layout *from = v->type.layout;
    bool scalar = op->res[0]->type.axes.n == 0;
    const Layout *to = scalar ? NULL : op->res[0]->type.layout;
    if (!from || op->naxes > AXES_MAX || op->nres != op->naxes) {
        target_fail(t, "this argreduce");
        return;
    }
    Coord coord[AXES_MAX];
    int64_t weight[AXES_MAX], size = 1;
    for (int i = op->naxes; i-- > 0;) {
        coord[i] = coord_of(l, from, op->axes[i]->id);
        weight[i] = size;
        size *= layout_size(from, op->axes[i]->id);
    }
    DType dtype = v->type.dtype;
    LLVMValueRef *in = operand_registers(l, v, from, dtype);
    int n = (int)layout_registers(from), n_out = to ? (int)layout_registers(to) : 1;
    Pair *x = ARENA_ARRAY(l->arena, Pair, (size_t)n),
         *y = ARENA_ARRAY(l->arena, Pair, (size_t)n_out);
    for (int r = 0; r < n && !t->failed; r++)
        x[r] = (Pair){.v = {in[r]}, .at = position(l, op, from, coord, weight, (uint32_t)r)};
    Combine c = {.dtype = dtype, .arg = true, .arg_min = op->sub == ARG_MIN};
    if (t->failed || !reduce_pairs(l, &c, from, to, x, y))
        return;
    Uni some = uni_int(t, 1, 1);
    for (int i = 0; i < op->naxes; i++) {
        Window w = lower_window(l, op->axes[i]);
        LLVMValueRef more = LLVMBuildICmp(t->builder, LLVMIntSGT, w.end.v, w.begin.v, "");
        some.v = LLVMBuildAnd(t->builder, some.v, more, "");
    }
    Lane any = t->ops->splat(t, some);
    for (int i = 0; i < op->naxes; i++) {
        DType index = op->res[i]->type.dtype;
        Tile *tile = lower_result(l, op->res[i]);
        Lane begin = t->ops->splat(t, lower_window(l, op->axes[i]).begin);
        for (int r = 0; r < tile->n; r++) {
            Lane at = lane_op2(t, OP_DIV, DT_U32, y[r].at, lane_int(t, DT_U32, weight[i]));
            at = lane_op2(t, OP_REM, DT_U32, at,
                          lane_int(t, DT_U32, layout_size(from, op->axes[i]->id)));
            at = lane_op2(t, OP_ADD, DT_INDEX, lane_resize(t, at, DT_U32, DT_INDEX), begin);
            at = t->ops->select(t, any, at, lane_int(t, DT_INDEX, -1));
            at = lane_resize(t, at, DT_INDEX, index);
            tile->reg[r] = scalar ? t->ops->lane_first(t, at).v : at.v;
        }
    }
}

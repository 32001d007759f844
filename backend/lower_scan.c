// Scans along axes: inclusive prefixes, doubling the block at every bit of the position.
//
// Input: a tile in any layout whose scanned axes have bits of their own (one register, lane or warp
// bit each). Output: the prefixes in the same layout. For every element two values are kept: its
// prefix inside the aligned block of 2^b positions, and the block's total. Bit b joins two blocks:
//
//   right prefix = left total + right prefix;   both totals = left total + right total
//
// between two registers, between two lanes by a shuffle, or between two warps through shared
// memory; last the odd factors of the size, one block after another. Invariant: positions are in
// order of the bracket's axes, the last fastest, so lower bits come first.
#include "backend/lower.h"

// One step: where the next bit of the position lives.
typedef struct ScanStep {
    int dim;           // IN_REG, IN_LANE, IN_WARP; IN_DIMS: an odd factor
    unsigned bit;      // input bit of dim
    uint32_t count;    // odd factor
    uint32_t rep_unit; // registers between two digits
} ScanStep;

enum { STEPS_MAX = 64 };

// False when a bit of the position is no bit of the layout, or shares one.
static bool find_bit(const Layout *layout, uint16_t axis, uint32_t offset, ScanStep *step) {
    int found = 0;
    for (int dim = IN_REG; dim <= IN_WARP; dim++) {
        for (unsigned i = 0; i < layout->nin[dim]; i++) {
            uint32_t c = layout_column(layout, (unsigned)dim, i, axis);
            if (!(c & offset))
                continue;
            bool alone = c == offset;
            for (int a = 0; a < layout->naxes; a++) {
                if (layout->axis[a] != axis &&
                    layout_column(layout, (unsigned)dim, i, layout->axis[a]))
                    alone = false;
            }
            if (!alone)
                return false;
            found++;
            *step = (ScanStep){.dim = dim, .bit = i};
        }
    }
    return found == 1;
}

// Steps in order of the position's bits; -1 when the layout does not allow it.
static int scan_steps(const Op *op, const Layout *layout, ScanStep *steps) {
    int n = 0;
    for (int i = op->naxes; i-- > 0;) {
        uint16_t axis = op->axes[i]->id;
        for (unsigned b = 0; b < layout_axis_bits(layout, axis); b++) {
            if (n == STEPS_MAX || !find_bit(layout, axis, UINT32_C(1) << b, &steps[n]))
                return -1;
            n++;
        }
        uint32_t unit = UINT32_C(1) << layout->nin[IN_REG];
        for (int r = 0; r < layout->nrep; r++) {
            if (layout->rep[r].axis == axis) {
                if (n == STEPS_MAX)
                    return -1;
                steps[n++] =
                    (ScanStep){.dim = IN_DIMS, .count = layout->rep[r].count, .rep_unit = unit};
            }
            unit *= layout->rep[r].count;
        }
    }
    return n;
}

// Registers that still have different totals: those whose joined bits are 0.
static int distinct_totals(const Layout *layout, uint32_t joined) {
    int n = 0;
    for (uint32_t r = 0; r < layout_registers(layout); r++)
        n += (r & joined) == 0;
    return n;
}

int64_t scan_scratch(const Op *op) {
    const Layout *layout = op->res[0]->type.layout;
    ScanStep steps[STEPS_MAX];
    int n = layout ? scan_steps(op, layout, steps) : 0;
    int64_t most = 0;
    uint32_t joined = 0;
    int bytes = storage_bytes(op->res[0]->type.dtype);
    for (int i = 0; i < n; i++) {
        if (steps[i].dim == IN_REG)
            joined |= UINT32_C(1) << steps[i].bit;
        if (steps[i].dim != IN_WARP)
            continue;
        int64_t threads = INT64_C(1) << (layout->nin[IN_LANE] + layout->nin[IN_WARP]);
        int64_t size = distinct_totals(layout, joined) * threads * (bytes < 4 ? 4 : bytes);
        most = size > most ? size : most;
    }
    return most;
}

typedef struct Scan {
    Lower *l;
    const Layout *layout;
    OpKind kind;
    DType dtype;
    uint32_t n, joined;
    Lane *prefix, *total;
} Scan;

static Lane join(Scan *s, Lane a, Lane b) {
    return lane_op2(s->l->t, s->kind, s->dtype, a, b);
}

static void join_registers(Scan *s, unsigned bit) {
    uint32_t mask = UINT32_C(1) << bit;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & mask)
            continue;
        s->prefix[r | mask] = join(s, s->total[r], s->prefix[r | mask]);
        // registers of one block share their total: compute it once
        uint32_t first = r & ~s->joined;
        Lane both = first == r ? join(s, s->total[r], s->total[r | mask]) : s->total[first];
        s->total[r] = s->total[r | mask] = both;
    }
    s->joined |= mask;
}

// `other` is the total of the block at the other side of the bit; `right` says which side this is.
static void join_other(Scan *s, uint32_t reg, Lane right, Lane other) {
    Target *t = s->l->t;
    for (uint32_t r = 0; r < s->n; r++) {
        if ((r & ~s->joined) != reg)
            continue;
        s->prefix[r] = t->ops->select(t, right, join(s, other, s->prefix[r]), s->prefix[r]);
    }
    Lane both = join(s, s->total[reg], other);
    for (uint32_t r = 0; r < s->n; r++) {
        if ((r & ~s->joined) == reg)
            s->total[r] = both;
    }
}

static void join_lanes(Scan *s, unsigned bit) {
    Target *t = s->l->t;
    Lane mask = lane_int(t, DT_U32, INT64_C(1) << bit);
    Lane set = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), mask);
    Lane right = lane_cmp(t, CMP_NE, DT_U32, set, lane_int(t, DT_U32, 0));
    for (uint32_t r = 0; r < s->n; r++) {
        if ((r & s->joined) == 0)
            join_other(s, r, right,
                       t->ops->shuffle_xor(t, s->dtype, s->total[r], UINT32_C(1) << bit));
    }
}

// scratch[total][warp][lane]
static void join_warps(Scan *s, unsigned bit) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    int bytes = storage_bytes(s->dtype), slot = bytes < 4 ? 4 : bytes;
    int warps = 1 << s->layout->nin[IN_WARP], row = slot << s->layout->nin[IN_LANE];
    Access access = {.dtype = s->dtype, .width = 1, .align = bytes};
    Uni warp = t->ops->warp_id(t);
    LLVMValueRef mine = LLVMBuildAnd(b, warp.v, uni_int(t, 32, warps - 1).v, "");
    LLVMValueRef other = LLVMBuildXor(b, mine, uni_int(t, 32, INT64_C(1) << bit).v, "");
    LLVMValueRef set = LLVMBuildAnd(b, mine, uni_int(t, 32, INT64_C(1) << bit).v, "");
    Lane right = t->ops->splat(t, (Uni){LLVMBuildIsNotNull(b, set, "")});
    Lane active = {NULL};
    if (t->warps > warps) {
        LLVMValueRef in = LLVMBuildICmp(b, LLVMIntULT, warp.v, uni_int(t, 32, warps).v, "");
        active = t->ops->splat(t, (Uni){in});
    }
    uint32_t lanes = (UINT32_C(1) << s->layout->nin[IN_LANE]) - 1;
    Lane lane = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, lanes));
    lane = lane_op2(t, OP_MUL, DT_U32, lane, lane_int(t, DT_U32, slot));
    Uni base = uni_int(t, 32, s->l->scratch_at), step = uni_int(t, 32, row);
    Uni to = uni_add(t, base, uni_mul(t, (Uni){mine}, step));
    Uni from = uni_add(t, base, uni_mul(t, (Uni){other}, step));
    scratch_begin(s->l);
    int at = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & s->joined)
            continue;
        Shared p = {.base = to, .offset = lane, .imm = at};
        t->ops->store_shared(t, &access, p, active, &s->total[r]);
        at += warps * row;
    }
    t->ops->block_barrier(t);
    at = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & s->joined)
            continue;
        Shared p = {.base = from, .offset = lane, .imm = at};
        Lane got;
        t->ops->load_shared(t, &access, p, (Lane){NULL}, &got);
        join_other(s, r, right, got);
        at += warps * row;
    }
}

// Blocks one after another; afterwards every one has the total of all.
static void join_digits(Scan *s, const ScanStep *step) {
    uint32_t unit = step->rep_unit;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r / unit % step->count != 0)
            continue;
        Lane sum = s->total[r];
        for (uint32_t d = 1; d < step->count; d++) {
            uint32_t at = r + d * unit;
            s->prefix[at] = join(s, sum, s->prefix[at]);
            sum = join(s, sum, s->total[at]);
        }
        for (uint32_t d = 0; d < step->count; d++)
            s->total[r + d * unit] = sum;
    }
}

static OpKind scan_op(ScanKind kind) {
    switch (kind) {
    case SCAN_SUM:
        return OP_ADD;
    case SCAN_PROD:
        return OP_MUL;
    case SCAN_MAX:
        return OP_MAX;
    case SCAN_COUNT:
        break;
    }
    return OP_ADD;
}

void lower_scan(Lower *l, const Op *op) {
    Target *t = l->t;
    Value *res = op->res[0];
    const Layout *layout = res->type.layout;
    ScanStep steps[STEPS_MAX];
    int n = layout ? scan_steps(op, layout, steps) : -1;
    if (n < 0) {
        target_fail(t, "the layout does not keep the positions of the scan apart");
        return;
    }
    DType from = op->in[0]->type.dtype, dtype = res->type.dtype;
    bool widen = (dtype == DT_F16 || dtype == DT_BF16) && op->sub != SCAN_MAX;
    Scan s = {.l = l,
              .layout = layout,
              .kind = scan_op((ScanKind)op->sub),
              .dtype = widen ? DT_F32 : dtype,
              .n = layout_registers(layout)};
    s.prefix = ARENA_ARRAY(l->arena, Lane, s.n);
    s.total = ARENA_ARRAY(l->arena, Lane, s.n);
    Operand o = operand_of(l, op->in[0], layout);
    for (uint32_t r = 0; r < s.n && !t->failed; r++)
        s.prefix[r] = operand_lane(l, &o, r);
    if (t->failed)
        return;
    if (from != s.dtype)
        t->ops->cast(t, from, s.dtype, (int)s.n, s.prefix, s.prefix);
    for (uint32_t r = 0; r < s.n; r++)
        s.total[r] = s.prefix[r];
    for (int i = 0; i < n; i++) {
        if (steps[i].dim == IN_REG)
            join_registers(&s, steps[i].bit);
        else if (steps[i].dim == IN_LANE)
            join_lanes(&s, steps[i].bit);
        else if (steps[i].dim == IN_WARP)
            join_warps(&s, steps[i].bit);
        else
            join_digits(&s, &steps[i]);
    }
    if (s.dtype != dtype)
        t->ops->cast(t, s.dtype, dtype, (int)s.n, s.prefix, s.prefix);
    Tile *tile = lower_result(l, res);
    for (uint32_t r = 0; r < s.n; r++)
        tile->reg[r] = s.prefix[r].v;
}

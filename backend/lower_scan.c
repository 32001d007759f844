// Scans along axes: inclusive prefixes, doubling the block at every bit of the position. Folds are
// the totals without the prefixes: elements are combined in order, as not every function commutes.
//
// Input: tiles in any layout whose scanned axes have bits of their own (one register, lane or warp
// bit each). Output: the prefixes in the same layout, or the totals in its slice. For every element
// two things are kept: its prefix inside the aligned block of 2^b positions, and the block's total.
// Bit b joins two blocks:
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

static const Layout *scan_layout(const Op *op) {
    return op->kind == OP_FOLD ? op_full_operand(op)->type.layout : op->res[0]->type.layout;
}

static int slot_bytes(DType dtype) {
    int bytes = storage_bytes(dtype);
    return bytes < 4 ? 4 : bytes; // 16-bit floats are summed in f32
}

// Registers that still have different totals: those whose joined bits are 0.
static int distinct_totals(const Layout *layout, uint32_t joined) {
    int n = 0;
    for (uint32_t r = 0; r < layout_registers(layout); r++)
        n += (r & joined) == 0;
    return n;
}

int64_t scan_scratch(const Op *op) {
    const Layout *layout = scan_layout(op);
    ScanStep steps[STEPS_MAX];
    int n = layout ? scan_steps(op, layout, steps) : 0;
    int64_t most = 0, bytes = 0;
    uint32_t joined = 0;
    for (int i = 0; i < op->nres; i++)
        bytes += slot_bytes(op->res[i]->type.dtype);
    for (int i = 0; i < n; i++) {
        if (steps[i].dim == IN_REG)
            joined |= UINT32_C(1) << steps[i].bit;
        if (steps[i].dim != IN_WARP)
            continue;
        int64_t threads = INT64_C(1) << (layout->nin[IN_LANE] + layout->nin[IN_WARP]);
        int64_t size = distinct_totals(layout, joined) * threads * bytes;
        most = size > most ? size : most;
    }
    return most;
}

// What is combined: one value by an op that commutes, or several by a function.
typedef struct Elem {
    Lane v[FOLD_VALUES_MAX];
} Elem;
typedef struct Scan Scan;
struct Scan {
    Lower *l;
    const Layout *layout;
    const Op *op;
    Elem (*join)(Scan *s, Elem a, Elem b); // a in front of b
    bool commutes;
    OpKind kind; // of the op that combines
    DType dtype[FOLD_VALUES_MAX];
    int nv; // values
    uint32_t n, joined;
    Elem *prefix, *total; // by register; no prefix: only totals are wanted
};

static Elem join_op(Scan *s, Elem a, Elem b) {
    return (Elem){.v = {lane_op2(s->l->t, s->kind, s->dtype[0], a.v[0], b.v[0])}};
}

static Elem join_function(Scan *s, Elem a, Elem b) {
    Elem out = {{{NULL}}};
    lower_function(s->l, s->op, a.v, b.v, out.v);
    return out;
}

static Elem elem_select(Scan *s, Lane cond, Elem a, Elem b) {
    Elem out = {{{NULL}}};
    for (int i = 0; i < s->nv; i++)
        out.v[i] = s->l->t->ops->select(s->l->t, cond, a.v[i], b.v[i]);
    return out;
}

static void join_registers(Scan *s, unsigned bit) {
    uint32_t mask = UINT32_C(1) << bit;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & mask)
            continue;
        if (s->prefix)
            s->prefix[r | mask] = s->join(s, s->total[r], s->prefix[r | mask]);
        // registers of one block share their total: compute it once
        uint32_t first = r & ~s->joined;
        Elem both = first == r ? s->join(s, s->total[r], s->total[r | mask]) : s->total[first];
        s->total[r] = s->total[r | mask] = both;
    }
    s->joined |= mask;
}

// `other` is the total of the block at the other side of the bit; `right` says which side this is.
static void join_other(Scan *s, uint32_t reg, Lane right, Elem other) {
    for (uint32_t r = 0; r < s->n && s->prefix; r++) {
        if ((r & ~s->joined) != reg)
            continue;
        s->prefix[r] = elem_select(s, right, s->join(s, other, s->prefix[r]), s->prefix[r]);
    }
    Elem mine = s->total[reg], both = {{{NULL}}};
    if (s->commutes)
        both = s->join(s, mine, other);
    else
        both = s->join(s, elem_select(s, right, other, mine), elem_select(s, right, mine, other));
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
        if (r & s->joined)
            continue;
        Elem other = {{{NULL}}};
        for (int i = 0; i < s->nv; i++)
            other.v[i] = t->ops->shuffle_xor(t, s->dtype[i], s->total[r].v[i], UINT32_C(1) << bit);
        join_other(s, r, right, other);
    }
}

// Where the totals of the warps lie: scratch[value][total][warp][lane].
typedef struct WarpSlots {
    Lane lane[FOLD_VALUES_MAX]; // bytes, by value
    int at[FOLD_VALUES_MAX], row[FOLD_VALUES_MAX], warps;
} WarpSlots;

static WarpSlots warp_slots(Scan *s) {
    Target *t = s->l->t;
    WarpSlots w = {.warps = 1 << s->layout->nin[IN_WARP]};
    uint32_t lanes = (UINT32_C(1) << s->layout->nin[IN_LANE]) - 1;
    Lane lane = lane_op2(t, OP_AND, DT_U32, t->ops->lane_id(t), lane_int(t, DT_U32, lanes));
    int at = 0;
    for (int i = 0; i < s->nv; i++) {
        int slot = slot_bytes(s->dtype[i]);
        w.at[i] = at;
        w.row[i] = slot << s->layout->nin[IN_LANE];
        w.lane[i] = lane_op2(t, OP_MUL, DT_U32, lane, lane_int(t, DT_U32, slot));
        at += distinct_totals(s->layout, s->joined) * w.warps * w.row[i];
    }
    return w;
}

// Value i of the total that is number `total`, of warp `warp`.
static Shared warp_slot(Scan *s, const WarpSlots *w, int i, int total, LLVMValueRef warp) {
    Target *t = s->l->t;
    Uni base = uni_add(t, uni_int(t, 32, s->l->scratch_at),
                       uni_mul(t, (Uni){warp}, uni_int(t, 32, w->row[i])));
    return (Shared){
        .base = base, .offset = w->lane[i], .imm = w->at[i] + total * w->warps * w->row[i]};
}

static void join_warps(Scan *s, unsigned bit) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    WarpSlots w = warp_slots(s);
    Uni warp = t->ops->warp_id(t);
    LLVMValueRef mine = LLVMBuildAnd(b, warp.v, uni_int(t, 32, w.warps - 1).v, "");
    LLVMValueRef other = LLVMBuildXor(b, mine, uni_int(t, 32, INT64_C(1) << bit).v, "");
    LLVMValueRef set = LLVMBuildAnd(b, mine, uni_int(t, 32, INT64_C(1) << bit).v, "");
    Lane right = t->ops->splat(t, (Uni){LLVMBuildIsNotNull(b, set, "")});
    Lane active = {NULL};
    if (t->warps > w.warps) {
        LLVMValueRef in = LLVMBuildICmp(b, LLVMIntULT, warp.v, uni_int(t, 32, w.warps).v, "");
        active = t->ops->splat(t, (Uni){in});
    }
    scratch_begin(s->l);
    int total = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & s->joined)
            continue;
        for (int i = 0; i < s->nv; i++) {
            Access access = {.dtype = s->dtype[i], .width = 1, .align = storage_bytes(s->dtype[i])};
            t->ops->store_shared(t, &access, warp_slot(s, &w, i, total, mine), active,
                                 &s->total[r].v[i]);
        }
        total++;
    }
    t->ops->block_barrier(t);
    total = 0;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r & s->joined)
            continue;
        Elem got = {{{NULL}}};
        for (int i = 0; i < s->nv; i++) {
            Access access = {.dtype = s->dtype[i], .width = 1, .align = storage_bytes(s->dtype[i])};
            t->ops->load_shared(t, &access, warp_slot(s, &w, i, total, other), (Lane){NULL},
                                &got.v[i]);
        }
        join_other(s, r, right, got);
        total++;
    }
}

// Blocks one after another; afterwards every one has the total of all.
static void join_digits(Scan *s, const ScanStep *step) {
    uint32_t unit = step->rep_unit;
    for (uint32_t r = 0; r < s->n; r++) {
        if (r / unit % step->count != 0)
            continue;
        Elem sum = s->total[r];
        for (uint32_t d = 1; d < step->count; d++) {
            uint32_t at = r + d * unit;
            if (s->prefix)
                s->prefix[at] = s->join(s, sum, s->prefix[at]);
            sum = s->join(s, sum, s->total[at]);
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

// Totals, and prefixes where they are wanted, of the op's operands.
static bool scan_run(Scan *s) {
    Lower *l = s->l;
    Target *t = l->t;
    const Op *op = s->op;
    ScanStep steps[STEPS_MAX];
    int n = s->layout ? scan_steps(op, s->layout, steps) : -1;
    if (n < 0) {
        target_fail(t, "the layout does not keep the positions apart");
        return false;
    }
    s->n = layout_registers(s->layout);
    s->total = ARENA_ARRAY(l->arena, Elem, s->n);
    Lane *in = ARENA_ARRAY(l->arena, Lane, s->n);
    for (int i = 0; i < s->nv; i++) {
        Operand o = operand_of(l, op->in[i], s->layout);
        for (uint32_t r = 0; r < s->n && !t->failed; r++)
            in[r] = operand_lane(l, &o, r);
        if (t->failed)
            return false;
        if (op->in[i]->type.dtype != s->dtype[i])
            t->ops->cast(t, op->in[i]->type.dtype, s->dtype[i], (int)s->n, in, in);
        for (uint32_t r = 0; r < s->n; r++)
            s->total[r].v[i] = in[r];
    }
    if (op->kind != OP_FOLD) {
        s->prefix = ARENA_ARRAY(l->arena, Elem, s->n);
        for (uint32_t r = 0; r < s->n; r++)
            s->prefix[r] = s->total[r];
    }
    for (int i = 0; i < n && !t->failed; i++) {
        if (steps[i].dim == IN_REG)
            join_registers(s, steps[i].bit);
        else if (steps[i].dim == IN_LANE)
            join_lanes(s, steps[i].bit);
        else if (steps[i].dim == IN_WARP)
            join_warps(s, steps[i].bit);
        else
            join_digits(s, &steps[i]);
    }
    return !t->failed;
}

static void scan_results(Scan *s) {
    Target *t = s->l->t;
    Lane *out = ARENA_ARRAY(s->l->arena, Lane, s->n);
    for (int i = 0; i < s->nv; i++) {
        Value *res = s->op->res[i];
        for (uint32_t r = 0; r < s->n; r++)
            out[r] = s->prefix[r].v[i];
        if (s->dtype[i] != res->type.dtype)
            t->ops->cast(t, s->dtype[i], res->type.dtype, (int)s->n, out, out);
        Tile *tile = lower_result(s->l, res);
        for (uint32_t r = 0; r < s->n; r++)
            tile->reg[r] = out[r].v;
    }
}

void lower_scan(Lower *l, const Op *op) {
    DType dtype = op->res[0]->type.dtype;
    bool widen = (dtype == DT_F16 || dtype == DT_BF16) && op->sub != SCAN_MAX;
    Scan s = {.l = l,
              .layout = scan_layout(op),
              .op = op,
              .join = join_op,
              .commutes = true,
              .kind = scan_op((ScanKind)op->sub),
              .dtype = {widen ? DT_F32 : dtype},
              .nv = 1};
    if (scan_run(&s))
        scan_results(&s);
}

// The registers of a result are those of the operand's layout that its slice shares.
static void fold_results(Scan *s) {
    Target *t = s->l->t;
    for (int i = 0; i < s->nv; i++) {
        const Value *res = s->op->res[i];
        const Layout *to = res->type.layout;
        bool scalar = res->type.axes.n == 0;
        if (!scalar && !layout_is_slice(s->layout, to)) {
            target_fail(t, "the result does not have the layout of the operand's slice");
            return;
        }
        Tile *tile = lower_result(s->l, res);
        for (uint32_t r = 0; r < s->n; r++) {
            Lane x = s->total[r].v[i];
            uint32_t at = scalar ? 0 : layout_slice_register(s->layout, to, r);
            if (!tile->reg[at])
                tile->reg[at] = scalar ? t->ops->lane_first(t, x).v : x.v;
        }
    }
}

void lower_fold(Lower *l, const Op *op) {
    Scan s = {.l = l,
              .layout = scan_layout(op),
              .op = op,
              .join = join_function,
              .nv = op_fold_values(op)};
    for (int i = 0; i < s.nv; i++)
        s.dtype[i] = op->res[i]->type.dtype;
    if (!scan_run(&s))
        return;
    if (op->kind == OP_FOLD)
        fold_results(&s);
    else
        scan_results(&s);
}

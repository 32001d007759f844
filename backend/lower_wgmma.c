// Products on the matrix unit of a warp group: mma.issue and mma.wait.
//
// Input: operands in buffers with a box layout (b always, a or in registers), an accumulator whose
// layout gives each thread the registers of m64nNk*. Output: one instruction for each block of 64
// rows, N columns and 32 bytes of the contracted axis, as one group. Invariant: the registers of
// the accumulator are the same before, between and after the instructions of a group.
#include "backend/lower.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_WARPS = 4, UNIT_ROWS = 64, UNIT_BYTES = 32 };

// --- matrix coordinates ---

typedef struct Side { // rows or columns: axes, lowest bits first
    AxisSet axes;
    uint32_t size[AXES_MAX];
    uint32_t total;
} Side;

static Side side_of(Lower *l, const Op *op, AttrId id) {
    Side s = {.total = 1};
    const Attr *a = op_attr(op, id);
    for (int i = 0; a && i < a->n && i < AXES_MAX; i++) {
        s.axes.id[s.axes.n] = a->axes[i]->id;
        s.size[s.axes.n++] = axis_size_of(a->axes[i]);
        s.total *= axis_size_of(a->axes[i]);
    }
    (void)l;
    return s;
}

static uint32_t side_at(const Side *s, const Layout *layout, const uint32_t in[IN_DIMS]) {
    uint32_t at = 0, step = 1;
    for (int i = 0; i < s->axes.n; i++) {
        at += step * layout_coord(layout, in, s->axes.id[i]);
        step *= s->size[i];
    }
    return at;
}

// --- operands in shared memory ---

typedef struct Buffered {
    const Layout *layout;
    Side side;
    uint16_t k;
    int bytes; // of an element
} Buffered;

static int32_t buffered_offset(const Buffered *b, uint32_t at, uint32_t k) {
    uint32_t coord[AXES_MAX] = {0};
    for (int i = 0; i < b->side.axes.n; i++) {
        coord[layout_axis_index(b->layout, b->side.axes.id[i])] = at % b->side.size[i];
        at /= b->side.size[i];
    }
    coord[layout_axis_index(b->layout, b->k)] = k;
    return (int32_t)layout_offset_of(b->layout, coord) * b->bytes;
}

// NULL, or why the unit cannot read the buffer. The lines of the box run along k, or along the only
// axis of the side.
static const char *buffered_desc(Lower *l, const Buffered *b, MmaDesc *d) {
    LayoutBox box;
    if (!layout_box_of(l->layouts, b->layout, (unsigned)b->bytes * 8, &box) || !box.swizzle ||
        box.naxes != b->side.axes.n + 1)
        return "an operand's buffer that is not a box of swizzled lines";
    d->swizzle = (int)box.swizzle;
    d->transposed = box.axes[0].axis != b->k;
    if (!d->transposed) {
        for (int i = 0; i < b->side.axes.n; i++)
            if (box.axes[1 + i].axis != b->side.axes.id[i])
                return "an operand's axes in another order than rows and cols say";
        d->stride = buffered_offset(b, 8, 0);
        return NULL;
    }
    if (b->side.axes.n != 1 || b->bytes != 2)
        return "an operand that the unit cannot transpose";
    d->stride = buffered_offset(b, 0, 8);
    d->leading = b->side.total > box.span ? buffered_offset(b, box.span, 0) : 0;
    return NULL;
}

// Where the warp group's part of the side starts: its warps above the first two bits.
static Uni group_offset(Lower *l, const Layout *acc, const Side *side, const Buffered *b) {
    uint32_t col[LAYOUT_BITS_MAX] = {0}, all = 0;
    for (unsigned w = 2; w < acc->nin[IN_WARP]; w++) {
        const uint32_t in[IN_DIMS] = {[IN_WARP] = UINT32_C(1) << w};
        col[w] = (uint32_t)buffered_offset(b, side_at(side, acc, in), 0);
        all |= col[w];
    }
    if (!all)
        return (Uni){NULL};
    return uni_linear(l, l->t->ops->warp_id(l->t), acc->nin[IN_WARP], col);
}

// --- registers ---

// Blocks of a fragment whose pieces are 8 x 2 elements of a lane's: rows 8 apart, then columns 8
// apart. first[i]: a block's first row and column; reg[i]: its registers in order.
typedef struct Blocks {
    int n, per;
    uint32_t *row, *col;
    int **reg;
} Blocks;

static int find_register(const uint32_t *rows, const uint32_t *cols, int n, uint32_t row,
                         uint32_t col) {
    for (int r = 0; r < n; r++)
        if (rows[r] == row && cols[r] == col)
            return r;
    return -1;
}

// The lanes and the first warps are where the unit wants them.
static bool lanes_fit(const Layout *layout, const Side *rows, const Side *cols) {
    static const uint32_t want[5][2] = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}};
    if (layout->nin[IN_LANE] != 5 || layout->nin[IN_WARP] < 2)
        return false;
    bool ok = true;
    for (unsigned b = 0; b < 5; b++) {
        const uint32_t in[IN_DIMS] = {[IN_LANE] = UINT32_C(1) << b};
        ok = ok && side_at(rows, layout, in) == want[b][0] &&
             side_at(cols, layout, in) == want[b][1];
    }
    for (unsigned b = 0; b < 2; b++) {
        const uint32_t in[IN_DIMS] = {[IN_WARP] = UINT32_C(1) << b};
        ok = ok && side_at(rows, layout, in) == UINT32_C(16) << b && side_at(cols, layout, in) == 0;
    }
    return ok;
}

static bool blocks_of(Lower *l, const Layout *layout, const Side *rows, const Side *cols,
                      uint32_t width, Blocks *out) {
    int n = (int)layout_registers(layout);
    *out = (Blocks){.per = (int)width / 2};
    if (!lanes_fit(layout, rows, cols) || n % out->per)
        return false;
    uint32_t *row = ARENA_ARRAY(l->arena, uint32_t, (size_t)n);
    uint32_t *col = ARENA_ARRAY(l->arena, uint32_t, (size_t)n);
    for (int r = 0; r < n; r++) {
        const uint32_t in[IN_DIMS] = {[IN_REG] = (uint32_t)r};
        row[r] = side_at(rows, layout, in);
        col[r] = side_at(cols, layout, in);
    }
    out->row = ARENA_ARRAY(l->arena, uint32_t, (size_t)n);
    out->col = ARENA_ARRAY(l->arena, uint32_t, (size_t)n);
    out->reg = ARENA_ARRAY(l->arena, int *, (size_t)n);
    for (int r = 0; r < n; r++) {
        if (row[r] & 8 || col[r] % width)
            continue;
        int *reg = ARENA_ARRAY(l->arena, int, (size_t)out->per);
        for (int i = 0; i < out->per; i++) {
            uint32_t down = (uint32_t)(i >> 1 & 1) * 8, right = (uint32_t)((i & 1) + i / 4 * 8);
            reg[i] = find_register(row, col, n, row[r] + down, col[r] + right);
            if (reg[i] < 0)
                return false;
        }
        out->row[out->n] = row[r];
        out->col[out->n] = col[r];
        out->reg[out->n++] = reg;
    }
    return out->n * out->per == n;
}

static const Blocks *find_block(const Blocks *b, uint32_t row, uint32_t col, int *at) {
    for (*at = 0; *at < b->n; ++*at)
        if (b->row[*at] == row && b->col[*at] == col)
            return b;
    return NULL;
}

// --- the instructions ---

typedef struct MmaPlan {
    MmaParts parts;
    Side rows, cols;
    MmaIssue issue;   // what all instructions have in common
    uint32_t k, step; // elements of the contracted axis: all, and of one instruction
    Buffered a, b;
    Uni a_base, b_base;
    Blocks blocks, fragments;
    Lane *a_regs;
} MmaPlan;

static bool read_unit(Str unit, int *n, int *k) {
    char *end = NULL;
    if (!unit || strncmp(unit, "m64n", 4) != 0)
        return false;
    *n = (int)strtol(unit + 4, &end, 10);
    if (*end != 'k')
        return false;
    *k = (int)strtol(end + 1, &end, 10);
    return *end == 0 && *n >= 8 && *n <= 256 && *n % 8 == 0 && *k > 0;
}

static const char *plan_buffers(Lower *l, const Op *op, MmaPlan *p, uint16_t k) {
    const Layout *acc = op->res[0]->type.layout;
    const MemRef *refs[2] = {p->parts.a_ref, p->parts.b};
    Buffered *buffered[2] = {&p->a, &p->b};
    MmaDesc *desc[2] = {&p->issue.a, &p->issue.b};
    Uni *base[2] = {&p->a_base, &p->b_base};
    for (int i = 0; i < 2; i++) {
        if (!refs[i])
            continue;
        *buffered[i] = (Buffered){.layout = buffer_layout(l, refs[i]),
                                  .side = i ? p->cols : p->rows,
                                  .k = k,
                                  .bytes = storage_bytes(refs[i]->mem->dtype)};
        if (!buffered[i]->layout)
            return "a buffer without a layout";
        if (buffered[i]->layout->naxes != buffered[i]->side.axes.n + 1)
            return "a batch of products";
        const char *why = buffered_desc(l, buffered[i], desc[i]);
        if (why)
            return why;
        *base[i] = uni_add(l->t, buffer_base(l, op, refs[i]),
                           group_offset(l, acc, &buffered[i]->side, buffered[i]));
    }
    return NULL;
}

static const char *plan_of(Lower *l, const Op *op, MmaPlan *p) {
    *p = (MmaPlan){.parts = op_mma_parts(op),
                   .rows = side_of(l, op, ATTR_rows),
                   .cols = side_of(l, op, ATTR_cols)};
    Type acc = op->res[0]->type;
    bool has = (l->t->desc->units & UNIT_WGMMA) && l->t->ops->mma_issue;
    if (!has || !read_unit(op_attr_str(op, ATTR_unit), &p->issue.n, &p->issue.k))
        return "this matrix unit";
    if (op->naxes != 1 || !acc.layout)
        return "a product along several axes";
    DType ab = p->parts.b->mem->dtype;
    p->issue.ab = ab;
    p->issue.acc = acc.dtype;
    p->k = axis_size_of(op->axes[0]);
    p->step = (uint32_t)(UNIT_BYTES / storage_bytes(ab));
    if ((uint32_t)p->issue.k != p->step || p->k % p->step)
        return "a contracted axis that is no multiple of the unit's";
    if (!blocks_of(l, acc.layout, &p->rows, &p->cols, (uint32_t)p->issue.n, &p->blocks))
        return "an accumulator without the layout of the unit";
    if (p->parts.a) {
        Side along = {.axes = axes_of(op->axes[0]), .size = {p->k}, .total = p->k};
        const Layout *la = p->parts.a->type.layout;
        if (dtype_bits(ab) != 16 || p->parts.a->type.dtype != ab || !la ||
            !blocks_of(l, la, &p->rows, &along, p->step, &p->fragments))
            return "a left operand without the layout of the unit";
        int n = type_registers(p->parts.a->type);
        LLVMValueRef *regs = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
        lower_flatten(l, p->parts.a, p->parts.a->type, regs);
        p->a_regs = ARENA_ARRAY(l->arena, Lane, (size_t)n);
        for (int r = 0; r < n; r++)
            p->a_regs[r].v = regs[r];
    } else if (p->parts.a_ref->mem->dtype != ab) {
        return "operands of different types";
    }
    return plan_buffers(l, op, p, op->axes[0]->id);
}

static bool issue_one(Lower *l, const MmaPlan *p, int block, uint32_t k, Lane *acc) {
    MmaIssue m = p->issue;
    const int *reg = p->blocks.reg[block];
    Lane here[128], a[8];
    m.start = !p->parts.acc && k == 0;
    m.b.at = (Shared){.base = p->b_base, .imm = buffered_offset(&p->b, p->blocks.col[block], k)};
    if (p->a_regs) {
        int at;
        if (!find_block(&p->fragments, p->blocks.row[block], k, &at))
            return false;
        for (int i = 0; i < p->fragments.per && i < 8; i++)
            a[i] = p->a_regs[p->fragments.reg[at][i]];
        m.regs = a;
    } else {
        m.a.at =
            (Shared){.base = p->a_base, .imm = buffered_offset(&p->a, p->blocks.row[block], k)};
    }
    for (int i = 0; i < p->blocks.per; i++)
        here[i] = acc[reg[i]];
    l->t->ops->mma_issue(l->t, &m, here);
    for (int i = 0; i < p->blocks.per; i++)
        acc[reg[i]] = here[i];
    return true;
}

void lower_mma_issue(Lower *l, const Op *op) {
    Target *t = l->t;
    MmaPlan p;
    const char *why = plan_of(l, op, &p);
    if (why) {
        target_fail(t, "%s", why);
        return;
    }
    Tile *tile = lower_result(l, op->res[0]);
    Lane *acc = ARENA_ARRAY(l->arena, Lane, (size_t)tile->n);
    LLVMValueRef *start = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)tile->n);
    if (p.parts.acc)
        lower_flatten(l, p.parts.acc, op->res[0]->type, start);
    Lane zero = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, op->res[0]->type.dtype))});
    for (int r = 0; r < tile->n; r++)
        acc[r].v = p.parts.acc ? start[r] : zero.v;
    t->ops->mma_fence(t);
    bool ok = true;
    for (uint32_t k = 0; k < p.k; k += p.step)
        for (int b = 0; b < p.blocks.n; b++)
            ok = ok && issue_one(l, &p, b, k, acc);
    t->ops->mma_commit(t);
    if (!ok)
        target_fail(t, "a left operand without the rows of the accumulator");
    for (int r = 0; r < tile->n; r++)
        tile->reg[r] = acc[r].v;
}

void lower_mma_wait(Lower *l, const Op *op) {
    Target *t = l->t;
    if (!(t->desc->units & UNIT_WGMMA) || !t->ops->mma_wait) {
        target_fail(t, "matrix units of warp groups");
        return;
    }
    int n = type_registers(op->res[0]->type);
    LLVMValueRef *in = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    lower_flatten(l, op->in[0], op->res[0]->type, in);
    Tile *tile = lower_result(l, op->res[0]);
    for (int r = 0; r < n; r++)
        tile->reg[r] = in[r];
    t->ops->mma_wait(t, (int)op_attr_int(op, ATTR_pending), n, (Lane *)tile->reg);
}

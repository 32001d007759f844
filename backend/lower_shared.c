// Shared memory: buffers, channels in block and group mode, and the copies that fill them.
//
// Input: buffers with a layout from offsets to elements. Output: vector accesses, ldmatrix,
// cp.async. The offset of a register is linear over F2: lane and warp parts are computed once,
// register parts are immediates where bits do not overlap, else XORed. Invariant: each element is
// written by one thread (copies of a tile write once).
#include "backend/lower.h"

#include <string.h>

int storage_bytes(DType dtype) {
    uint32_t bits = dtype_bits(dtype);
    return bits < 8 ? 1 : (int)bits / 8;
}

void scratch_begin(Lower *l) {
    if (l->scratch_used || l->loop_depth > 0)
        l->t->ops->block_barrier(l->t);
    l->scratch_used = true;
}

// --- offsets ---

typedef struct OffsetMap {
    LayoutMap map;
    Coord part; // in bytes
    int bytes;
    uint32_t lane_col[LAYOUT_BITS_MAX];
    uint32_t reg_all;
} OffsetMap;

static bool offset_map(Lower *l, const Layout *regs, const Layout *buffer, int bytes,
                       OffsetMap *out) {
    Target *t = l->t;
    *out = (OffsetMap){.bytes = bytes};
    if (!layout_convert(buffer, regs, &out->map)) {
        target_fail(t, "buffer and tile do not have the same elements");
        return false;
    }
    uint32_t warp_col[LAYOUT_BITS_MAX] = {0}, lane_all = 0, warp_all = 0;
    const LayoutMap *m = &out->map;
    for (int i = 0; i < m->nin[IN_REG]; i++)
        out->reg_all |= m->col[IN_REG][i][IN_OFF] * (uint32_t)bytes;
    for (int i = 0; i < m->nin[IN_LANE]; i++)
        lane_all |= out->lane_col[i] = m->col[IN_LANE][i][IN_OFF] * (uint32_t)bytes;
    for (int i = 0; i < m->nin[IN_WARP]; i++)
        warp_all |= warp_col[i] = m->col[IN_WARP][i][IN_OFF] * (uint32_t)bytes;
    Coord *c = &out->part;
    if (lane_all)
        c->lane = lane_linear(l, t->ops->lane_id(t), m->nin[IN_LANE], out->lane_col);
    if (warp_all)
        c->warp = uni_linear(l, t->ops->warp_id(t), m->nin[IN_WARP], warp_col);
    if (warp_all & (lane_all | out->reg_all)) {
        Lane w = t->ops->splat(t, c->warp);
        c->lane = c->lane.v ? lane_op2(t, OP_XOR, DT_U32, c->lane, w) : w;
        c->warp.v = NULL;
        lane_all |= warp_all;
    }
    c->overlap = out->reg_all & lane_all;
    return true;
}

static uint32_t register_offset(const OffsetMap *m, uint32_t reg) {
    uint32_t in[IN_DIMS] = {[IN_REG] = reg}, out[IN_DIMS];
    layout_map_apply(&m->map, in, out);
    return out[IN_OFF] * (uint32_t)m->bytes;
}

static Shared shared_at(Lower *l, const OffsetMap *m, Uni base, uint32_t reg) {
    uint32_t rest;
    Lane lane = coord_lane(l, &m->part, register_offset(m, reg), &rest);
    return (Shared){
        .base = uni_add(l->t, base, m->part.warp), .offset = lane, .imm = (int32_t)rest};
}

static int log2_of(int x) {
    int n = 0;
    while (x >>= 1)
        n++;
    return n;
}

typedef struct SharedPlan {
    OffsetMap map;
    int vector_log2;
    uint8_t reg_bits[LAYOUT_BITS_MAX];
    Access access;
} SharedPlan;

static bool shared_plan(Lower *l, DType dtype, const Mem *mem, const Layout *regs,
                        const Layout *buffer, SharedPlan *p) {
    int bytes = storage_bytes(dtype);
    memset(p, 0, sizeof *p);
    if (!offset_map(l, regs, buffer, bytes, &p->map))
        return false;
    int most = l->t->desc->vec_bytes / bytes;
    if (most > 16)
        most = 16;
    p->vector_log2 = (int)layout_vector(regs, buffer, (unsigned)log2_of(most), p->reg_bits);
    p->access = (Access){.dtype = dtype, .width = 1 << p->vector_log2, .mem = mem};
    p->access.align = bytes << p->vector_log2;
    return true;
}

static bool plan_is_base(const SharedPlan *p, uint32_t reg) {
    for (int k = 0; k < p->vector_log2; k++) {
        if (reg >> p->reg_bits[k] & 1)
            return false;
    }
    return true;
}

static uint32_t plan_element(const SharedPlan *p, uint32_t reg, uint32_t i) {
    for (int k = 0; k < p->vector_log2; k++)
        reg |= (i >> k & 1) << p->reg_bits[k];
    return reg;
}

void shared_read(Lower *l, DType dtype, const Mem *mem, const Layout *regs, const Layout *buffer,
                 Uni base, LLVMValueRef *out) {
    SharedPlan p;
    if (!shared_plan(l, dtype, mem, regs, buffer, &p))
        return;
    uint32_t n = layout_registers(regs);
    for (uint32_t r = 0; r < n; r++) {
        if (!plan_is_base(&p, r))
            continue;
        Lane got[16];
        l->t->ops->load_shared(l->t, &p.access, shared_at(l, &p.map, base, r), (Lane){NULL}, got);
        for (uint32_t i = 0; i < (uint32_t)p.access.width; i++)
            out[plan_element(&p, r, i)] = got[i].v;
    }
}

// Of registers first .. end - 1, which are whole vectors.
static void write_part(Lower *l, const SharedPlan *plan, Lane active, Uni base, uint32_t first,
                       uint32_t end, const LLVMValueRef *in) {
    SharedPlan p = *plan;
    for (uint32_t r = first; r < end; r++) {
        if (!plan_is_base(&p, r))
            continue;
        Lane give[16];
        for (uint32_t i = 0; i < (uint32_t)p.access.width; i++)
            give[i].v = in[plan_element(&p, r, i)];
        l->t->ops->store_shared(l->t, &p.access, shared_at(l, &p.map, base, r), active, give);
    }
}

void shared_write(Lower *l, DType dtype, const Mem *mem, const Layout *regs, const Layout *buffer,
                  Uni base, const LLVMValueRef *in) {
    SharedPlan p;
    if (shared_plan(l, dtype, mem, regs, buffer, &p))
        write_part(l, &p, lower_active(l, regs), base, 0, layout_registers(regs), in);
}

// --- buffers ---

// The buffer's layout with the axes of the reference.
const Layout *buffer_layout(Lower *l, const MemRef *ref) {
    const Layout *layout = ref->mem->layout;
    for (int i = 0; i < ref->nrename && layout; i++)
        layout = layout_rename(l->layouts, layout, ref->rename[i].from, ref->rename[i].to);
    if (!layout)
        target_fail(l->t, "@%s has no layout", ref->mem->name);
    return layout;
}

// Byte offset of the slot that the reference's position names.
Uni buffer_base(Lower *l, const Op *op, const MemRef *ref) {
    Target *t = l->t;
    const Mem *mem = ref->mem;
    int64_t at = mem->def ? op_attr_int(mem->def, ATTR_at) : 0;
    int64_t stages = mem->def ? op_attr_int(mem->def, ATTR_stages) : 1;
    int64_t bytes = (int64_t)layout_offsets(mem->layout) * storage_bytes(mem->dtype);
    Uni base = uni_int(t, 32, at < 0 ? 0 : at);
    if (ref->pos < 0 || stages <= 1)
        return base;
    Uni pos = uni_resize(t, lower_index(l, op->in[ref->pos]), 32, true);
    LLVMValueRef slot = LLVMBuildURem(t->builder, pos.v, uni_int(t, 32, stages).v, "");
    return uni_add(t, uni_mul(t, (Uni){slot}, uni_int(t, 32, bytes)), base);
}

// --- get, put ---

// Row addresses: lane 8i + j gives row j of matrix i. A lane's row address is the offset of the
// fragment element that starts that row: of lane 4j (j of l >> 2), or transposed of element j & 1
// of lane j >> 1; i picks register bits.
static void move_matrices(Lower *l, const MemRef *ref, const LayoutMatrix *m, const Layout *regs,
                          const Layout *buffer, Uni base, LLVMValueRef *out, bool store) {
    Target *t = l->t;
    OffsetMap map;
    int bytes = storage_bytes(ref->mem->dtype);
    if (!offset_map(l, regs, buffer, bytes, &map))
        return;
    int batch = m->nmatrix < 2 ? m->nmatrix : 2; // log2 of matrices an instruction
    uint32_t col[5] = {0}, warp_col[LAYOUT_BITS_MAX] = {0}, warp_all = 0, lane_all = 0, reg_all = 0;
    uint32_t pair = register_offset(&map, UINT32_C(1) << m->pair[0]);
    for (int b = 0; b < 3; b++)
        col[b] = m->trans ? (b == 0 ? pair : map.lane_col[b - 1]) : map.lane_col[b + 2];
    for (int b = 0; b < batch; b++)
        col[3 + b] = register_offset(&map, UINT32_C(1) << m->matrix[b]);
    for (int b = 0; b < 5; b++)
        lane_all |= col[b];
    for (int b = 0; b < map.map.nin[IN_WARP]; b++)
        warp_all |= warp_col[b] = map.map.col[IN_WARP][b][IN_OFF] * (uint32_t)bytes;
    for (int b = batch; b < m->nmatrix; b++)
        reg_all |= register_offset(&map, UINT32_C(1) << m->matrix[b]);
    Coord c = {.lane = lane_linear(l, t->ops->lane_id(t), 5, col)};
    if (warp_all)
        c.warp = uni_linear(l, t->ops->warp_id(t), map.map.nin[IN_WARP], warp_col);
    if (warp_all & (lane_all | reg_all)) {
        c.lane = lane_op2(t, OP_XOR, DT_U32, c.lane, t->ops->splat(t, c.warp));
        c.warp.v = NULL;
        lane_all |= warp_all;
    }
    c.overlap = lane_all & reg_all;
    Access access = {.dtype = ref->mem->dtype, .width = 8, .align = 16, .mem = ref->mem};
    uint32_t inside = (UINT32_C(1) << m->pair[0]);
    for (int b = 0; b < batch; b++)
        inside |= UINT32_C(1) << m->matrix[b];
    uint32_t n = layout_registers(regs);
    for (uint32_t r = 0; r < n; r++) {
        if (r & inside)
            continue;
        uint32_t rest;
        Lane lane = coord_lane(l, &c, register_offset(&map, r), &rest);
        Shared p = {.base = uni_add(t, base, c.warp), .offset = lane, .imm = (int32_t)rest};
        Lane moved[8];
        uint32_t reg[8];
        for (uint32_t i = 0; i < UINT32_C(2) << batch; i++) {
            reg[i] = r | (i & 1) << m->pair[0];
            for (int b = 0; b < batch; b++)
                reg[i] |= (i >> (1 + b) & 1) << m->matrix[b];
            moved[i].v = store ? out[reg[i]] : NULL;
        }
        if (store) {
            t->ops->stmatrix(t, &access, 1 << batch, m->trans, p, moved);
            continue;
        }
        t->ops->ldmatrix(t, &access, 1 << batch, m->trans, p, moved);
        for (uint32_t i = 0; i < UINT32_C(2) << batch; i++)
            out[reg[i]] = moved[i].v;
    }
}

void lower_get(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *ref = &op->mem[0];
    const Layout *regs = op->res[0]->type.layout, *buffer = buffer_layout(l, ref);
    if (t->failed)
        return;
    if (ref->mem->space == SPACE_LOCAL) {
        target_fail(t, "local buffers");
        return;
    }
    Tile *tile = lower_result(l, op->res[0]);
    Uni base = buffer_base(l, op, ref);
    if (t->desc->has_ldmatrix && dtype_bits(ref->mem->dtype) == 16) {
        LayoutMatrix m = layout_matrix_access(regs, buffer, 16);
        if (m.ok && m.npair == 1) {
            move_matrices(l, ref, &m, regs, buffer, base, tile->reg, false);
            return;
        }
    }
    shared_read(l, ref->mem->dtype, ref->mem, regs, buffer, base, tile->reg);
}

void lower_put(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *ref = &op->mem[0];
    const Value *v = op->in[op->nin - 1];
    const Layout *buffer = buffer_layout(l, ref);
    if (t->failed)
        return;
    if (ref->mem->space == SPACE_LOCAL || !v->type.layout) {
        target_fail(t, "this put");
        return;
    }
    int n = type_registers(v->type);
    LLVMValueRef *in = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    lower_flatten(l, v, v->type, in);
    Uni base = buffer_base(l, op, ref);
    const Layout *regs = v->type.layout;
    if (t->desc->has_stmatrix && t->ops->stmatrix && dtype_bits(ref->mem->dtype) == 16 &&
        !lower_active(l, regs).v) {
        LayoutMatrix m = layout_matrix_access(regs, buffer, 16);
        if (m.ok && m.npair == 1) {
            move_matrices(l, ref, &m, regs, buffer, base, in, true);
            return;
        }
    }
    shared_write(l, ref->mem->dtype, ref->mem, regs, buffer, base, in);
}

// --- copies ---

// How the threads share a buffer's elements: 16 bytes each at consecutive offsets, lanes, warps,
// the rest in registers.
static const Layout *copy_layout(Lower *l, const Layout *buffer, int bytes) {
    Layout d = *buffer;
    memset(d.nin, 0, sizeof d.nin);
    memset(d.col, 0, sizeof d.col);
    int wide = log2_of(16 / bytes), warps = log2_of(l->t->warps),
        lanes = log2_of(l->t->desc->lanes);
    for (int i = 0; i < buffer->nin[IN_OFF]; i++) {
        int dim = i < wide                   ? IN_REG
                  : i < wide + lanes         ? IN_LANE
                  : i < wide + lanes + warps ? IN_WARP
                                             : IN_REG;
        d.col[dim][d.nin[dim]++] = buffer->col[IN_OFF][i];
    }
    // threads without elements hold copies
    d.nin[IN_LANE] = (uint8_t)lanes;
    d.nin[IN_WARP] = (uint8_t)warps;
    return layout_intern(l->layouts, &d);
}

// Some registers at a time: enough loads for their latency, few enough to leave registers for
// others.
static void copy_plain(Lower *l, const Op *op, TileAccess *a, const Layout *regs,
                       const Layout *buffer, Uni base) {
    Target *t = l->t;
    enum { PART = 16 };
    uint32_t n = layout_registers(regs), written = 0;
    LLVMValueRef *reg = ARENA_ARRAY(l->arena, LLVMValueRef, n);
    Access access = access_plain(l, a, 1 << a->vector_log2, op);
    Lane active = lower_active(l, regs);
    SharedPlan plan;
    for (uint32_t r = 0; r < n; r++) {
        if (r == written + PART) {
            if (r == PART && !shared_plan(l, a->mem->dtype, op->mem[1].mem, regs, buffer, &plan))
                return;
            write_part(l, &plan, active, base, written, r, reg);
            written = r;
        }
        if (!access_is_base(a, r))
            continue;
        Lane got[64];
        Lane pred = lane_and(t, active, access_predicate(l, a, r));
        t->ops->load_global(t, &access, access_pointer(l, a, r), pred, NULL, got);
        for (uint32_t i = 0; i < (uint32_t)access.width; i++)
            reg[access_element(a, r, i)] = got[i].v;
    }
    if (written == 0)
        shared_write(l, a->mem->dtype, op->mem[1].mem, regs, buffer, base, reg);
    else
        write_part(l, &plan, active, base, written, n, reg);
}

// cp.async wants 4 to 16 bytes at consecutive offsets.
static bool copy_is_async(const Lower *l, const Op *op, const TileAccess *a) {
    Str engine = op_attr_str(op, ATTR_engine);
    int bytes = a->bytes << a->vector_log2;
    bool ok = engine && strcmp(engine, "cp_async") == 0 && l->t->desc->has_cp_async;
    ok = ok && bytes >= 4 && bytes <= 16 && a->align >= bytes;
    for (int k = 0; k < a->vector_log2; k++)
        ok = ok && a->reg_bits[k] == k;
    return ok;
}

static void copy_async(Lower *l, const Op *op, TileAccess *a, const Layout *regs,
                       const Layout *buffer, Uni base) {
    Target *t = l->t;
    OffsetMap map;
    if (!offset_map(l, regs, buffer, a->bytes, &map))
        return;
    Access access = access_plain(l, a, 1 << a->vector_log2, op);
    Lane active = lower_active(l, regs);
    uint32_t n = layout_registers(regs);
    for (uint32_t r = 0; r < n; r++) {
        if (!access_is_base(a, r))
            continue;
        Lane pred = access_predicate(l, a, r);
        t->ops->cp_async(t, &access, shared_at(l, &map, base, r), access_pointer(l, a, r), pred,
                         active);
    }
}

static void copy_in(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *to = &op->mem[1];
    const Layout *buffer = buffer_layout(l, to);
    Str engine = op_attr_str(op, ATTR_engine);
    if (engine && strcmp(engine, "plain") != 0 && strcmp(engine, "cp_async") != 0)
        target_fail(t, "copies by engine %s", engine);
    if (t->failed)
        return;
    const Layout *regs = copy_layout(l, buffer, storage_bytes(to->mem->dtype));
    TileAccess a = access_of(l, op, &op->mem[0], regs, 16);
    if (t->failed)
        return;
    Uni base = buffer_base(l, op, to);
    IfState s;
    bool branch = a.vector_log2 > 0 && a.aligned_ends.v;
    if (branch)
        if_begin(t, &s, a.aligned_ends);
    if (copy_is_async(l, op, &a))
        copy_async(l, op, &a, regs, buffer, base);
    else
        copy_plain(l, op, &a, regs, buffer, base);
    if (branch) {
        if_else(t, &s);
        a.vector_log2 = 0;
        // f32 elements are wide enough for cp.async one by one
        if (copy_is_async(l, op, &a))
            copy_async(l, op, &a, regs, buffer, base);
        else
            copy_plain(l, op, &a, regs, buffer, base);
        if_end(t, &s, 0, NULL, NULL, NULL);
    }
}

static void copy_out(Lower *l, const Op *op) {
    Target *t = l->t;
    const MemRef *from = &op->mem[0];
    const Layout *buffer = buffer_layout(l, from);
    if (t->failed)
        return;
    const Layout *regs = copy_layout(l, buffer, storage_bytes(from->mem->dtype));
    TileAccess a = access_of(l, op, &op->mem[1], regs, 16);
    if (t->failed)
        return;
    uint32_t n = layout_registers(regs);
    LLVMValueRef *reg = ARENA_ARRAY(l->arena, LLVMValueRef, n);
    shared_read(l, from->mem->dtype, from->mem, regs, buffer, buffer_base(l, op, from), reg);
    if (a.aligned_ends.v)
        a.vector_log2 = 0; // a store by parts is right for every end
    Access access = access_plain(l, &a, 1 << a.vector_log2, op);
    Lane active = lower_active(l, regs);
    for (uint32_t r = 0; r < n && !t->failed; r++) {
        if (!access_is_base(&a, r))
            continue;
        Lane give[64];
        for (uint32_t i = 0; i < (uint32_t)access.width; i++)
            give[i].v = reg[access_element(&a, r, i)];
        Lane pred = lane_and(t, active, access_predicate(l, &a, r));
        t->ops->store_global(t, &access, access_pointer(l, &a, r), pred, give);
    }
}

void lower_copy(Lower *l, const Op *op) {
    if (copy_is_tma(op)) {
        lower_tma_copy(l, op);
        return;
    }
    MemKind from = op->mem[0].mem->kind, to = op->mem[1].mem->kind;
    if (to == MEM_BUF && from != MEM_BUF)
        copy_in(l, op);
    else if (from == MEM_BUF && to != MEM_BUF)
        copy_out(l, op);
    else
        target_fail(l->t, "a copy between these memories");
}

// --- channels ---

// Nothing but scalars between `wait` and this op: its barrier still holds.
static bool follows_wait(const Op *op) {
    for (const Op *p = op->prev; p; p = p->prev) {
        if (p->kind == OP_WAIT)
            return p->mem[0].mem == op->mem[0].mem;
        if (!op_has(p->kind, TRAIT_PURE))
            return false;
    }
    return false;
}

static bool is_filled_async(const Lower *l, const Mem *chan) {
    for (int i = 0; i < chan->nbufs; i++) {
        if (l->async[chan->bufs[i]->id])
            return true;
    }
    return false;
}

void lower_channel(Lower *l, const Op *op) {
    Target *t = l->t;
    const Mem *chan = op->mem[0].mem;
    Str mode = chan->def ? op_attr_str(chan->def, ATTR_mode) : NULL;
    bool group = mode && strcmp(mode, "group") == 0;
    if (mode && strcmp(mode, "mbarrier") == 0) {
        lower_mbarrier(l, op);
        return;
    }
    if (mode && !group && strcmp(mode, "block") != 0) {
        target_fail(t, "channels in mode %s", mode);
        return;
    }
    if (op->kind == OP_ACQUIRE) {
        if (!follows_wait(op))
            t->ops->block_barrier(t);
    } else if (op->kind == OP_COMMIT) {
        if (group || is_filled_async(l, chan))
            t->ops->cp_commit(t);
    } else if (op->kind == OP_WAIT) {
        // in block mode everything has arrived at `wait`, by whatever engine
        if (group || is_filled_async(l, chan))
            t->ops->cp_wait(t, group ? (int)op_attr_int(op, ATTR_pending) : 0);
        t->ops->block_barrier(t);
    }
}

// The matrix unit of a warp group (wgmma), one warp's 16 of the 64 rows at a time.
//
// A product is queued when it is issued and reads shared memory when all four warps of the group
// have issued it, at the latest in the wait for its group; until then its shared memory counts as
// being read. Its accumulators are not values meanwhile: the registers hold marks, NaNs that name
// an entry of the warp's table. Operands' addresses come from the descriptors alone (PTX ISA,
// matrix descriptor): bits 0-13 address / 16, 16-29 leading stride / 16, 32-45 stride / 16, 62-63
// swizzle.
#include "backend/host/sim_impl.h"

#include <stdlib.h>
#include <string.h>

#include "lang/base/numeric.h"

enum { GROUP = 4, ROWS = 16, CORE = 8, STEP_BYTES = 32, NMAX = 256, KMAX = 32 };

void sim_unit_begin(SimWarp *w) {
    SimUnit *u = &w->unit;
    for (uint32_t i = u->done; i < u->issued; i++)
        free(u->queue[i].slot);
    u->done = u->issued = u->commits = u->nacc = 0;
    u->fenced = false;
}

void sim_unit_free(SimWarp *w) {
    sim_unit_begin(w);
    free(w->unit.queue);
    free(w->unit.acc);
}

// --- marks -------------------------------------------------------------------------------------

// Lane by lane another NaN, so that no register of a program is one by accident.
static uint32_t mark_of(uint32_t slot, int lane) {
    return 0xff800001u + ((slot * 64 + (uint32_t)lane * 0x1357u) & 0x3ffffe);
}

// The entry that a register stands for, or -1.
static int64_t slot_of(const SimUnit *u, const uint32_t *reg) {
    uint32_t slot = ((reg[0] - 0xff800001u) & 0x3fffff) / 64;
    if (slot >= u->nacc || !u->acc[slot].used)
        return -1;
    for (int lane = 0; lane < SIM_LANES; lane++)
        if (reg[lane] != mark_of(slot, lane))
            return -1;
    return slot;
}

static uint32_t slot_new(SimWarp *w, uint64_t span) {
    SimUnit *u = &w->unit;
    for (uint32_t i = 0; i < u->nacc; i++)
        if (!u->acc[i].used)
            return i;
    if (u->nacc == u->acc_cap) {
        uint32_t cap = u->acc_cap ? 2 * u->acc_cap : NMAX;
        SimAcc *grown = cap > 1u << 14 ? NULL : realloc(u->acc, cap * sizeof *grown);
        if (!grown)
            sim_fail(w, span, "too many accumulators in flight");
        u->acc = grown;
        u->acc_cap = cap;
    }
    return u->nacc++;
}

// --- operands ----------------------------------------------------------------------------------

typedef struct Operand {
    uint32_t start, leading, stride, swizzle;
    bool trans;
    int bytes; // of an element
} Operand;

static Operand operand_of(uint64_t desc, bool trans, int bytes) {
    static const uint32_t swizzle[] = {0, 128, 64, 32};
    return (Operand){.start = (uint32_t)(desc & 0x3fff) << 4,
                     .leading = (uint32_t)(desc >> 16 & 0x3fff) << 4,
                     .stride = (uint32_t)(desc >> 32 & 0x3fff) << 4,
                     .swizzle = swizzle[desc >> 62],
                     .trans = trans,
                     .bytes = bytes};
}

// Byte of element k of a row (of A, or column of B). Cores are eight lines of `swizzle` bytes.
static uint32_t operand_at(const Operand *o, int row, int k) {
    int line = o->trans ? k : row, along = o->trans ? row : k;
    int per = (int)o->swizzle / o->bytes;
    uint32_t at = o->start + (uint32_t)(line / CORE) * o->stride +
                  (uint32_t)(line % CORE) * o->swizzle + (uint32_t)(along % per * o->bytes);
    if (o->trans)
        at += (uint32_t)(along / per) * o->leading;
    return sim_swizzled(at, o->swizzle);
}

// Rows [first, first + n) are read from now until the group is done.
static void operand_check(SimWarp *w, const Operand *o, int first, int n, int k, uint64_t span) {
    int lines = o->trans ? k : n, step = 16 / o->bytes, along = o->trans ? n : k;
    for (int i = 0; i < lines; i++)
        for (int j = 0; j < along; j += step) {
            int row = first + (o->trans ? j : i), at = o->trans ? i : j;
            sim_shared_read_async(w, operand_at(o, row, at), 16, span, AGENT_MMA + w->id,
                                  w->unit.commits + 1);
        }
}

float sim_float(DType dtype, uint32_t bits) {
    return (float)scalar_to_f64(scalar_from_bits(dtype, bits));
}

// The unit reads the upper 19 bits of an f32.
static float element(const Sim *sim, DType dtype, uint32_t at) {
    uint32_t bits = 0;
    memcpy(&bits, sim->shared + at, dtype_bits(dtype) / 8);
    if (dtype == DT_F32)
        bits &= 0xffffe000u;
    return sim_float(dtype, bits);
}

// --- products ----------------------------------------------------------------------------------

typedef struct Values {
    float a[ROWS][KMAX], b[NMAX][KMAX];
} Values;

// Element i of a lane's fragment: rows 8 apart, then columns 8 apart.
static void read_fragment(const SimMma *m, float a[ROWS][KMAX]) {
    for (int lane = 0; lane < SIM_LANES; lane++)
        for (int i = 0; i < 8; i++) {
            uint32_t word = m->regs[i / 2 * SIM_LANES + lane];
            int row = lane / 4 + 8 * (i / 2 % 2), k = lane % 4 * 2 + i % 2 + 8 * (i / 4);
            a[row][k] = sim_float((DType)m->dtype, word >> 16 * (i % 2) & 0xffff);
        }
}

static void read_operands(const SimWarp *w, const SimMma *m, Values *v) {
    DType dtype = (DType)m->dtype;
    int bytes = (int)dtype_bits(dtype) / 8;
    Operand a = operand_of(m->a, m->flags & SIM_MMA_TRANS_A, bytes);
    Operand b = operand_of(m->b, m->flags & SIM_MMA_TRANS_B, bytes);
    if (m->flags & SIM_MMA_REGS)
        read_fragment(m, v->a);
    for (int r = 0; r < ROWS && !(m->flags & SIM_MMA_REGS); r++)
        for (int k = 0; k < m->k; k++)
            v->a[r][k] = element(w->sim, dtype, operand_at(&a, w->id % GROUP * ROWS + r, k));
    for (int n = 0; n < m->n; n++)
        for (int k = 0; k < m->k; k++)
            v->b[n][k] = element(w->sim, dtype, operand_at(&b, n, k));
}

static uint32_t sum_products(const SimMma *m, const float *a, const float *b, uint32_t acc) {
    if (dtype_is_integer((DType)m->dtype)) {
        uint32_t sum = m->flags & SIM_MMA_START ? 0 : acc;
        for (int k = 0; k < m->k; k++)
            sum += (uint32_t)((int32_t)a[k] * (int32_t)b[k]);
        return sum;
    }
    float sum;
    memcpy(&sum, &acc, sizeof sum);
    if (m->flags & SIM_MMA_START)
        sum = 0;
    for (int k = 0; k < m->k; k++)
        sum = (float)((double)sum + (double)a[k] * (double)b[k]);
    memcpy(&acc, &sum, sizeof acc);
    return acc;
}

static void unit_step(SimWarp *w) {
    SimUnit *u = &w->unit;
    SimMma *m = &u->queue[u->done];
    Values v;
    read_operands(w, m, &v);
    for (int r = 0; r < m->n / 2; r++)
        for (int lane = 0; lane < SIM_LANES; lane++) {
            int row = lane / 4 + 8 * (r / 2 % 2), col = r / 4 * 8 + lane % 4 * 2 + r % 2;
            uint32_t *acc = &u->acc[m->slot[r]].value[lane];
            *acc = sum_products(m, v.a[row], v.b[col], *acc);
        }
    free(m->slot);
    m->slot = NULL;
    if (++u->done == u->issued)
        u->done = u->issued = 0;
}

void sim_unit_advance(SimWarp *w) {
    // Never before the whole group has issued it.
    const SimUnit *u = &w->unit;
    if (u->done == u->issued || (sim_random(w->sim) & 7))
        return;
    for (int i = w->id / GROUP * GROUP; i < w->id / GROUP * GROUP + GROUP; i++)
        if (w->sim->warp[i].unit.commits <= u->queue[u->done].group)
            return;
    unit_step(w);
}

static void queue_add(SimWarp *w, const SimMma *m, uint64_t span) {
    SimUnit *u = &w->unit;
    if (u->issued == u->cap) {
        uint32_t cap = u->cap ? 2 * u->cap : 16;
        SimMma *grown = realloc(u->queue, cap * sizeof *grown);
        if (!grown)
            sim_fail(w, span, "out of memory for products in flight");
        u->queue = grown;
        u->cap = cap;
    }
    u->queue[u->issued++] = *m;
}

// The accumulator's registers: those in flight go on, others are written by threads until now.
static bool take_accumulators(SimWarp *w, SimMma *m, uint32_t *acc, uint64_t span) {
    SimUnit *u = &w->unit;
    bool chained = true;
    m->slot = calloc((size_t)m->n / 2, sizeof *m->slot);
    if (!m->slot)
        sim_fail(w, span, "out of memory for products in flight");
    for (int r = 0; r < m->n / 2; r++) {
        uint32_t *reg = acc + r * SIM_LANES;
        int64_t known = slot_of(u, reg);
        uint32_t slot = known >= 0 ? (uint32_t)known : slot_new(w, span);
        SimAcc *a = &u->acc[slot];
        if (known < 0) {
            memcpy(a->value, reg, sizeof a->value);
            chained = false;
        }
        a->used = true;
        a->group = u->commits + 1;
        m->slot[r] = slot;
        for (int lane = 0; lane < SIM_LANES; lane++)
            reg[lane] = mark_of(slot, lane);
    }
    return chained;
}

static void shape_check(SimWarp *w, const SimMma *m, uint64_t span) {
    DType dtype = (DType)m->dtype;
    bool halves = dtype == DT_F16 || dtype == DT_BF16;
    bool known = halves || dtype == DT_F32 || dtype == DT_E4M3 || dtype == DT_E5M2 ||
                 dtype == DT_I8 || dtype == DT_U8;
    if (!known || m->n < 8 || m->n > NMAX || m->n % 8 ||
        m->k * (int)dtype_bits(dtype) != 8 * STEP_BYTES)
        sim_fail(w, span, "wgmma m64n%dk%d of %s is not simulated", m->n, m->k, dtype_name(dtype));
    if (!halves && m->flags & (SIM_MMA_TRANS_A | SIM_MMA_TRANS_B | SIM_MMA_REGS))
        sim_fail(w, span, "wgmma of %s takes no transposed operands and no fragments",
                 dtype_name(dtype));
    if (!(m->b >> 62) || (!(m->flags & SIM_MMA_REGS) && !(m->a >> 62)))
        sim_fail(w, span, "wgmma descriptors without a swizzle are not simulated");
    if (w->id / GROUP * GROUP + GROUP > w->sim->warps)
        sim_fail(w, span, "wgmma in a part of a warp group: warp %d of %d", w->id, w->sim->warps);
}

void sim_mma_issue(SimWarp *w, int32_t dtype, int32_t n, int32_t k, int32_t flags, uint64_t desc_a,
                   uint64_t desc_b, const void *regs, void *acc, uint64_t span) {
    SimUnit *u = &w->unit;
    SimMma m = {.a = desc_a,
                .b = desc_b,
                .dtype = dtype,
                .n = n,
                .k = k,
                .flags = flags,
                .group = u->commits};
    shape_check(w, &m, span);
    int bytes = (int)dtype_bits((DType)dtype) / 8;
    Operand b = operand_of(desc_b, flags & SIM_MMA_TRANS_B, bytes);
    operand_check(w, &b, 0, n, k, span);
    if (flags & SIM_MMA_REGS) {
        memcpy(m.regs, regs, sizeof m.regs);
    } else {
        Operand a = operand_of(desc_a, flags & SIM_MMA_TRANS_A, bytes);
        operand_check(w, &a, w->id % GROUP * ROWS, ROWS, k, span);
    }
    bool chained = take_accumulators(w, &m, acc, span);
    queue_add(w, &m, span);
    if (!u->fenced && (!chained || flags & SIM_MMA_REGS))
        sim_fail(w, span,
                 "protocol rule A4: no wgmma.fence between warp %d's writes of registers and the "
                 "product that uses them",
                 w->id);
}

void sim_mma_fence(SimWarp *w, uint64_t span) {
    (void)span;
    w->unit.fenced = true;
}

void sim_mma_commit(SimWarp *w, uint64_t span) {
    (void)span;
    w->unit.commits++;
    w->unit.fenced = false;
}

static uint32_t groups_done(const SimWarp *w, int32_t pending) {
    uint32_t n = w->unit.commits;
    return n > (uint32_t)pending ? n - (uint32_t)pending : 0;
}

// All warps of the group have issued what is waited for.
static bool group_has_issued(const SimWarp *w) {
    bool all = true;
    for (int i = w->id / GROUP * GROUP; i < w->id / GROUP * GROUP + GROUP && i < w->sim->warps; i++)
        all = all && w->sim->warp[i].unit.commits >= (uint64_t)w->wait;
    return all;
}

void sim_mma_wait(SimWarp *w, int32_t pending, uint64_t span) {
    uint32_t done = groups_done(w, pending);
    sim_block(w, "wgmma group", (int32_t)done, group_has_issued, done, span);
    // The group's products are one: when a warp's are done, so are the others'.
    for (int i = w->id / GROUP * GROUP; i < w->id / GROUP * GROUP + GROUP && i < w->sim->warps;
         i++) {
        SimUnit *other = &w->sim->warp[i].unit;
        while (other->done < other->issued && other->queue[other->done].group < done)
            unit_step(&w->sim->warp[i]);
        if (w->clock[AGENT_MMA + i] < done)
            w->clock[AGENT_MMA + i] = done;
    }
    w->unit.fenced = false;
}

void sim_mma_take(SimWarp *w, int32_t pending, int32_t n, void *acc, int32_t all, uint64_t span) {
    SimUnit *u = &w->unit;
    uint32_t done = groups_done(w, pending);
    for (int r = 0; r < n; r++) {
        uint32_t *reg = (uint32_t *)acc + r * SIM_LANES;
        int64_t slot = slot_of(u, reg);
        if (slot < 0)
            continue;
        SimAcc *a = &u->acc[slot];
        if (a->group <= done) {
            memcpy(reg, a->value, sizeof a->value);
            a->used = false;
        } else if (all) {
            sim_fail(w, span,
                     "the matrix unit may still write this accumulator: the wait leaves %d groups "
                     "of warp %d in flight",
                     pending, w->id);
        }
    }
}

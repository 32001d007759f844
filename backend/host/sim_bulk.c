// Bulk copies (TMA) of a simulated CTA: boxes of tensors to and from swizzled lines of shared
// memory.
//
// A load counts as a write of its mbarrier's phase, a store as a read of its group, from the moment
// of the issue; the bytes move at a random moment before the wait returns.
#include "backend/host/sim_impl.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16, BOX_ALIGN = 128 }; // bytes: what a swizzle moves; where a box may start

uint32_t sim_swizzled(uint32_t at, uint32_t swizzle) {
    uint32_t bits = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return at ^ (at >> 7 & bits) << 4;
}

void sim_bulk_begin(Sim *sim) {
    sim->nbulk = 0;
}

// --- the box -----------------------------------------------------------------------------------

static uint32_t box_bytes(const AbiHostMap *m) {
    uint32_t n = m->bytes;
    for (int i = 0; i < m->rank; i++)
        n *= m->box[i];
    return n;
}

typedef struct Chunk {
    uint32_t shared;
    uint8_t *global;  // of its first element inside of the tensor
    uint32_t skip, n; // bytes in front of that; bytes inside
} Chunk;

// The chunk that starts `at` bytes into the box.
static Chunk box_chunk(const SimBulk *b, uint32_t at) {
    const AbiHostMap *m = &b->map;
    Chunk c = {.shared = sim_swizzled(b->shared + at, m->swizzle)};
    uint32_t line = m->box[0] * m->bytes, rest = at / line;
    int64_t first = b->at[0] + (int64_t)(at % line / m->bytes), offset = 0;
    for (int i = 1; i < m->rank; i++) {
        int64_t x = b->at[i] + (int64_t)(rest % m->box[i]);
        rest /= m->box[i];
        if (x < 0 || (uint64_t)x >= m->dim[i])
            return c;
        offset += x * m->stride[i];
    }
    int64_t lo = first < 0 ? 0 : first, hi = first + CHUNK / m->bytes;
    if (hi > (int64_t)m->dim[0])
        hi = (int64_t)m->dim[0];
    if (hi <= lo)
        return c;
    c.global = (uint8_t *)((uintptr_t)m->base + (uintptr_t)(offset + lo * m->bytes));
    c.skip = (uint32_t)(lo - first) * m->bytes;
    c.n = (uint32_t)(hi - lo) * m->bytes;
    return c;
}

static void map_check(SimWarp *w, const SimBulk *b) {
    const AbiHostMap *m = &b->map;
    uint64_t span = b->span;
    uint32_t line = m->box[0] * m->bytes;
    if (m->magic != ABI_HOST_MAP || m->rank < 1 || m->rank > ABI_MAP_RANK)
        sim_fail(w, span, "bulk copy with a tensor map that nothing has made");
    if (line % CHUNK || (m->swizzle && line > m->swizzle))
        sim_fail(w, span, "bulk copy of lines of %u bytes with a swizzle of %u", line, m->swizzle);
    if ((uintptr_t)m->base % CHUNK)
        sim_fail(w, span, "bulk copy of a tensor at an address that is no multiple of 16");
    for (int i = 1; i < m->rank; i++)
        if (m->stride[i] % CHUNK)
            sim_fail(w, span, "bulk copy of a tensor with a stride of %lld bytes",
                     (long long)m->stride[i]);
    if (b->shared % BOX_ALIGN)
        sim_fail(w, span, "misaligned bulk copy: shared-memory byte %u is no multiple of %d",
                 b->shared, BOX_ALIGN);
}

// --- the copy ----------------------------------------------------------------------------------

static void bulk_add(SimWarp *w, const SimBulk *b) {
    Sim *sim = w->sim;
    if (sim->nbulk == sim->bulk_cap) {
        uint32_t cap = sim->bulk_cap ? 2 * sim->bulk_cap : 16;
        SimBulk *grown = realloc(sim->bulk, cap * sizeof *grown);
        if (!grown)
            sim_fail(w, b->span, "out of memory for copies in flight");
        sim->bulk = grown;
        sim->bulk_cap = cap;
    }
    sim->bulk[sim->nbulk++] = *b;
}

static void bulk_arrive(Sim *sim, uint32_t which) {
    SimBulk b = sim->bulk[which];
    sim->bulk[which] = sim->bulk[--sim->nbulk];
    uint32_t bytes = box_bytes(&b.map);
    for (uint32_t at = 0; at < bytes; at += CHUNK) {
        Chunk c = box_chunk(&b, at);
        uint8_t *shared = sim->shared + c.shared;
        if (b.mbar < 0) {
            if (c.n)
                memcpy(c.global, shared + c.skip, c.n);
            continue;
        }
        memset(shared, 0, CHUNK);
        if (c.n)
            memcpy(shared + c.skip, c.global, c.n);
    }
    if (b.mbar >= 0)
        sim_mbar_complete(sim, &sim->mbar[b.mbar], bytes);
}

bool sim_bulk_force(Sim *sim) {
    if (sim->nbulk)
        bulk_arrive(sim, (uint32_t)(sim_random(sim) % sim->nbulk));
    else
        return false;
    return true;
}

void sim_bulk_advance(Sim *sim) {
    if (sim->nbulk && (sim_random(sim) & 3) == 0)
        sim_bulk_force(sim);
}

static void load(SimWarp *w, SimBulk *b, int32_t bar) {
    Sim *sim = w->sim;
    SimMbar *m = sim_mbar_find(w, (uint32_t)bar, b->span);
    map_check(w, b);
    if (!m->fenced)
        sim_fail(w, b->span,
                 "bulk copy that signals the mbarrier at byte %u, whose initialisation no "
                 "fence.mbarrier_init has made visible",
                 m->at);
    b->mbar = (int32_t)(m - sim->mbar);
    uint32_t bytes = box_bytes(&b->map);
    for (uint32_t at = 0; at < bytes; at += CHUNK) {
        Chunk c = box_chunk(b, at);
        if (c.n)
            sim_global_check(w, 0, c.global, c.n, false, "bulk copy", b->span);
        sim_shared_write(w, 0, c.shared, CHUNK, b->span, AGENT_MBAR + b->mbar, m->phase + 1);
    }
    m->coming += bytes;
    bulk_add(w, b);
}

void sim_bulk_load(SimWarp *w, const void *map, const int32_t *at, int32_t to, int32_t bar,
                   uint64_t span) {
    SimBulk b = {.shared = (uint32_t)to, .warp = w->id, .span = span};
    memcpy(&b.map, map, sizeof b.map);
    for (int i = 0; i < b.map.rank && i < ABI_MAP_RANK; i++)
        b.at[i] = at[i];
    load(w, &b, bar);
}

void sim_bulk_line(SimWarp *w, const void *from, int32_t bytes, int32_t to, int32_t bar,
                   uint64_t span) {
    SimBulk b = {.shared = (uint32_t)to, .warp = w->id, .span = span};
    b.map = (AbiHostMap){.magic = ABI_HOST_MAP,
                         .rank = 1,
                         .bytes = 1,
                         .base = from,
                         .dim = {(uint64_t)bytes},
                         .box = {(uint32_t)bytes}};
    load(w, &b, bar);
}

void sim_bulk_store(SimWarp *w, const void *map, const int32_t *at, int32_t from, uint64_t span) {
    SimBulk b = {.shared = (uint32_t)from,
                 .warp = w->id,
                 .mbar = -1,
                 .group = w->bulk_commits,
                 .span = span};
    memcpy(&b.map, map, sizeof b.map);
    for (int i = 0; i < b.map.rank && i < ABI_MAP_RANK; i++)
        b.at[i] = at[i];
    map_check(w, &b);
    uint32_t bytes = box_bytes(&b.map);
    for (uint32_t off = 0; off < bytes; off += CHUNK) {
        Chunk c = box_chunk(&b, off);
        if (c.n)
            sim_global_check(w, 0, c.global, c.n, false, "bulk copy", span);
        sim_shared_read_async(w, c.shared, CHUNK, span, AGENT_BULK + w->id, b.group + 1);
    }
    bulk_add(w, &b);
}

void sim_bulk_commit(SimWarp *w, uint64_t span) {
    (void)span;
    w->bulk_commits++;
}

void sim_bulk_wait(SimWarp *w, int32_t pending, uint64_t span) {
    (void)span;
    Sim *sim = w->sim;
    uint32_t done = w->bulk_commits > (uint32_t)pending ? w->bulk_commits - (uint32_t)pending : 0;
    for (uint32_t i = sim->nbulk; i-- > 0;) {
        const SimBulk *b = &sim->bulk[i];
        if (b->mbar < 0 && b->warp == w->id && b->group < done)
            bulk_arrive(sim, i);
    }
    uint32_t *seen = &w->clock[AGENT_BULK + w->id];
    if (*seen < done)
        *seen = done;
    coro_yield(w->coro);
}

void sim_bulk_end(SimWarp *w) {
    const Sim *sim = w->sim;
    for (uint32_t i = 0; i < sim->nbulk; i++)
        if (sim->bulk[i].mbar < 0 && sim->bulk[i].warp == w->id)
            sim_fail(w, sim->bulk[i].span,
                     "warp %d ends before its bulk store has read shared memory", w->id);
}

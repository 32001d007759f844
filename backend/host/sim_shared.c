// Shared memory of a simulated CTA: shadow checks, accesses of a warp, asynchronous copies.
//
// A copy counts as a write of the warp's copy engine from the moment it is issued: its bytes may be
// touched by others, and by the warp itself, only after a wait for its group. Its data arrive at a
// random moment before that.
#include "backend/host/sim_impl.h"

#include <stdlib.h>
#include <string.h>

// --- shadow ------------------------------------------------------------------------------------

static SimCell *cell_at(Sim *sim, uint32_t at) {
    SimCell *c = &sim->cell[at];
    if (c->generation != sim->generation) {
        *c = (SimCell){.generation = sim->generation, .writer = AGENT_NONE};
        memset(&sim->readers[(size_t)at * (size_t)sim->warps], 0,
               (size_t)sim->warps * sizeof *sim->readers);
    }
    return c;
}

// "a copy of warp 3 writes"
static void race_fail(SimWarp *w, int lane, uint32_t at, const char *verb, int other,
                      const char *other_verb, uint32_t other_at, bool copy, uint64_t span) {
    char place[512];
    sim_place(w->sim, other_at, place, sizeof place);
    sim_fail(w, span, "shared-memory race: %swarp %d lane %d %s byte %u that %swarp %d %s%s%s",
             copy ? "a copy of " : "", w->id, lane, verb, at,
             other >= SIM_WARPS_MAX ? "an unfinished copy of " : "", other % SIM_WARPS_MAX,
             other_verb, place[0] ? " at " : " before", place);
}

static void range_check(SimWarp *w, int lane, uint32_t at, uint32_t bytes, const char *what,
                        uint64_t span) {
    Sim *sim = w->sim;
    if (at > sim->shared_bytes || bytes > sim->shared_bytes - at)
        sim_fail(w, span, "shared-memory %s out of bounds: warp %d lane %d, bytes %d..%d of %u",
                 what, w->id, lane, (int32_t)at, (int32_t)(at + bytes), sim->shared_bytes);
    if (bytes <= 16 && at % bytes)
        sim_fail(w, span, "misaligned shared-memory %s: warp %d lane %d, %u bytes at %u", what,
                 w->id, lane, bytes, at);
}

void sim_shared_read(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span) {
    Sim *sim = w->sim;
    range_check(w, lane, at, bytes, "read", span);
    for (uint32_t i = at; i < at + bytes; i++) {
        SimCell *c = cell_at(sim, i);
        if (c->writer == AGENT_NONE)
            sim_fail(w, span, "uninitialised shared memory: warp %d lane %d reads byte %u", w->id,
                     lane, i);
        if (w->clock[c->writer] < c->write_clock)
            race_fail(w, lane, i, "reads", c->writer,
                      c->writer >= SIM_WARPS_MAX ? "writes" : "wrote", c->write_at, false, span);
        sim->readers[(size_t)i * (size_t)sim->warps + (size_t)w->id] = w->clock[w->id];
        c->read_at = (uint32_t)span;
    }
}

void sim_shared_write(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                      uint32_t clock) {
    Sim *sim = w->sim;
    bool copy = agent >= SIM_WARPS_MAX;
    range_check(w, lane, at, bytes, "write", span);
    for (uint32_t i = at; i < at + bytes; i++) {
        SimCell *c = cell_at(sim, i);
        if (c->writer != AGENT_NONE && w->clock[c->writer] < c->write_clock)
            race_fail(w, lane, i, "writes", c->writer,
                      c->writer >= SIM_WARPS_MAX ? "writes" : "wrote", c->write_at, copy, span);
        uint32_t *readers = &sim->readers[(size_t)i * (size_t)sim->warps];
        for (int r = 0; r < sim->warps; r++) {
            if (w->clock[r] < readers[r])
                race_fail(w, lane, i, "writes", r, "read", c->read_at, copy, span);
            readers[r] = 0;
        }
        c->writer = (uint8_t)agent;
        c->write_clock = clock;
        c->write_at = (uint32_t)span;
    }
}

// --- accesses ----------------------------------------------------------------------------------

void sim_load_shared(SimWarp *w, const int32_t *off, uint32_t mask, void *dst, int32_t elem_bytes,
                     int32_t width, uint64_t span) {
    size_t size = (size_t)elem_bytes;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        uint32_t at = (uint32_t)off[lane];
        sim_shared_read(w, lane, at, (uint32_t)(elem_bytes * width), span);
        for (size_t r = 0; r < (size_t)width; r++)
            memcpy((char *)dst + (r * SIM_LANES + (size_t)lane) * size,
                   w->sim->shared + at + r * size, size);
    }
}

void sim_store_shared(SimWarp *w, const int32_t *off, uint32_t mask, const void *src,
                      int32_t elem_bytes, int32_t width, uint64_t span) {
    size_t size = (size_t)elem_bytes;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        uint32_t at = (uint32_t)off[lane];
        sim_shared_write(w, lane, at, (uint32_t)(elem_bytes * width), span, w->id, w->clock[w->id]);
        for (size_t r = 0; r < (size_t)width; r++)
            memcpy(w->sim->shared + at + r * size,
                   (const char *)src + (r * SIM_LANES + (size_t)lane) * size, size);
    }
}

// --- asynchronous copies -----------------------------------------------------------------------

static void copy_arrive(SimWarp *w, uint32_t i) {
    SimCopy c = w->copy[i];
    uint8_t *to = w->sim->shared + c.to;
    if (c.valid)
        memcpy(to, c.from, c.valid);
    memset(to + c.valid, 0, (size_t)(c.bytes - c.valid));
    w->copy[i] = w->copy[--w->ncopy];
}

void sim_copies_advance(SimWarp *w) {
    if (!w->ncopy)
        return;
    uint64_t r = sim_random(w->sim);
    if (r & 3) // mostly as late as the wait
        return;
    uint32_t n = (uint32_t)((r >> 8) % (w->ncopy + 1));
    for (; n; n--)
        copy_arrive(w, (uint32_t)(sim_random(w->sim) % w->ncopy));
}

void sim_cp_async(SimWarp *w, const int32_t *soff, const void *base, const int64_t *goff,
                  uint32_t mask, const int32_t *src_bytes, int32_t bytes, uint64_t span) {
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        int32_t valid = src_bytes ? src_bytes[lane] : bytes;
        if (valid < 0 || valid > bytes)
            sim_fail(w, span, "cp.async of %d bytes with %d from the source", bytes, valid);
        const uint8_t *from = (const uint8_t *)((uintptr_t)base + (uintptr_t)goff[lane]);
        if (valid && (uintptr_t)from % (uintptr_t)bytes)
            sim_fail(w, span, "misaligned cp.async source: warp %d lane %d, %d bytes", w->id, lane,
                     bytes);
        if (valid)
            sim_global_check(w, lane, from, (uint32_t)valid, false, "copy", span);
        sim_shared_write(w, lane, (uint32_t)soff[lane], (uint32_t)bytes, span,
                         SIM_WARPS_MAX + w->id, w->commits + 1);
        if (w->ncopy == w->copy_cap) {
            uint32_t cap = w->copy_cap ? 2 * w->copy_cap : 256;
            SimCopy *grown = realloc(w->copy, cap * sizeof *grown);
            if (!grown)
                sim_fail(w, span, "out of memory for copies in flight");
            w->copy = grown;
            w->copy_cap = cap;
        }
        w->copy[w->ncopy++] = (SimCopy){.to = (uint32_t)soff[lane],
                                        .group = w->commits,
                                        .bytes = (uint8_t)bytes,
                                        .valid = (uint8_t)valid,
                                        .from = from};
    }
}

void sim_cp_commit(SimWarp *w, uint64_t span) {
    (void)span;
    w->commits++;
}

void sim_cp_wait(SimWarp *w, int32_t pending, uint64_t span) {
    (void)span;
    uint32_t done = w->commits > (uint32_t)pending ? w->commits - (uint32_t)pending : 0;
    for (uint32_t i = w->ncopy; i-- > 0;)
        if (w->copy[i].group < done)
            copy_arrive(w, i);
    uint32_t *engine = &w->clock[SIM_WARPS_MAX + w->id];
    if (*engine < done)
        *engine = done;
    // Another place where warps may change.
    coro_yield(w->coro);
}

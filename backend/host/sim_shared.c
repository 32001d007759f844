// Shared memory of a simulated CTA: shadow checks, accesses of a warp, asynchronous copies.
//
// A copy counts as a write of the warp's copy engine from the moment it is issued: its bytes may be
// touched by others, and by the warp itself, only after a wait for its group. Its data arrive at a
// random moment before that.
#include "backend/host/sim_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- shadow ------------------------------------------------------------------------------------

static uint32_t *readers_at(Sim *sim, uint32_t at) {
    return &sim->readers[(size_t)at * READER_KINDS * (size_t)sim->warps];
}

static SimCell *cell_at(Sim *sim, uint32_t at) {
    SimCell *c = &sim->cell[at];
    if (c->generation != sim->generation)
        *c = (SimCell){.generation = sim->generation, .writer = AGENT_NONE};
    return c;
}

// The agent of a place among a byte's readers.
static int reader_agent(const Sim *sim, int place) {
    static const int kind[READER_KINDS] = {AGENT_WARP, AGENT_BULK, AGENT_MMA};
    return kind[place / sim->warps] + place % sim->warps;
}

static int reader_place(const Sim *sim, int agent) {
    int kind = agent >= AGENT_MMA ? 2 : agent >= AGENT_BULK ? 1 : 0;
    return kind * sim->warps + agent % SIM_WARPS_MAX;
}

// "an unfinished copy of warp 3"; the last word of what it does follows.
static void agent_text(const Sim *sim, int agent, char *buf, size_t cap) {
    int warp = agent % SIM_WARPS_MAX;
    if (agent >= AGENT_MBAR)
        snprintf(buf, cap, "an unfinished bulk copy, which signals the mbarrier at byte %u,",
                 sim->mbar[agent - AGENT_MBAR].at);
    else if (agent >= AGENT_MMA)
        snprintf(buf, cap, "an unfinished product of warp %d", warp);
    else if (agent >= AGENT_BULK)
        snprintf(buf, cap, "an unfinished bulk store of warp %d", warp);
    else if (agent >= AGENT_COPY)
        snprintf(buf, cap, "an unfinished copy of warp %d", warp);
    else
        snprintf(buf, cap, "warp %d", warp);
}

// Who makes the access: "", or "a copy of " in front of the warp.
static const char *access_text(int agent) {
    return agent >= AGENT_MBAR   ? "a bulk copy of "
           : agent >= AGENT_MMA  ? "a product of "
           : agent >= AGENT_BULK ? "a bulk store of "
           : agent >= AGENT_COPY ? "a copy of "
                                 : "";
}

// "a copy of warp 3 writes"
static void race_fail(SimWarp *w, int lane, uint32_t at, const char *verb, int other,
                      const char *other_verb, uint32_t other_at, int agent, uint64_t span) {
    char place[512], who[96];
    sim_place(w->sim, other_at, place, sizeof place);
    agent_text(w->sim, other, who, sizeof who);
    sim_fail(w, span, "shared-memory race: %swarp %d lane %d %s byte %u that %s %s%s%s",
             access_text(agent), w->id, lane, verb, at, who, other_verb,
             place[0] ? " at " : " before", place);
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

static void mbar_fail(SimWarp *w, int lane, uint32_t at, const char *verb, int agent,
                      uint64_t span) {
    sim_fail(w, span, "%swarp %d lane %d %s byte %u, which belongs to an mbarrier",
             access_text(agent), w->id, lane, verb, at);
}

// The asynchronous proxy sees a write of threads only behind their fence.
static void fence_check(SimWarp *w, const SimCell *c, uint32_t at, const char *verb, int agent,
                        uint64_t span) {
    if (agent < AGENT_BULK || c->writer >= AGENT_BULK)
        return;
    if (w->clock[AGENT_FENCED + c->writer] >= c->write_clock)
        return;
    char place[512];
    sim_place(w->sim, c->write_at, place, sizeof place);
    sim_fail(w, span,
             "missing proxy fence: %swarp %d %s byte %u that warp %d wrote%s%s without a "
             "fence.async after it",
             access_text(agent), w->id, verb, at, c->writer % SIM_WARPS_MAX, place[0] ? " at " : "",
             place);
}

static void shared_read(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                        uint32_t clock) {
    Sim *sim = w->sim;
    range_check(w, lane, at, bytes, "read", span);
    int place = reader_place(sim, agent);
    for (uint32_t i = at; i < at + bytes; i++) {
        SimCell *c = cell_at(sim, i);
        if (c->writer == AGENT_NONE)
            sim_fail(w, span, "uninitialised shared memory: %swarp %d lane %d reads byte %u",
                     access_text(agent), w->id, lane, i);
        if (c->is_mbar)
            mbar_fail(w, lane, i, "reads", agent, span);
        if (w->clock[c->writer] < c->write_clock)
            race_fail(w, lane, i, "reads", c->writer, c->writer >= AGENT_COPY ? "writes" : "wrote",
                      c->write_at, agent, span);
        fence_check(w, c, i, "reads", agent, span);
        uint32_t *readers = readers_at(sim, i);
        if (!c->is_read)
            memset(readers, 0, READER_KINDS * (size_t)sim->warps * sizeof *readers);
        readers[place] = clock;
        c->read_at = (uint32_t)span;
        c->is_read = true;
    }
}

void sim_shared_read(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span) {
    shared_read(w, lane, at, bytes, span, w->id, w->clock[w->id]);
}

void sim_shared_read_async(SimWarp *w, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                           uint32_t clock) {
    shared_read(w, 0, at, bytes, span, agent, clock);
}

static void readers_check(SimWarp *w, int lane, uint32_t at, SimCell *c, int agent, uint64_t span) {
    Sim *sim = w->sim;
    uint32_t *readers = readers_at(sim, at);
    for (int r = 0; r < READER_KINDS * sim->warps; r++) {
        int by = reader_agent(sim, r);
        if (w->clock[by] < readers[r])
            race_fail(w, lane, at, "writes", by, by >= AGENT_COPY ? "reads" : "read", c->read_at,
                      agent, span);
    }
    c->is_read = false;
}

void sim_shared_write(SimWarp *w, int lane, uint32_t at, uint32_t bytes, uint64_t span, int agent,
                      uint32_t clock) {
    Sim *sim = w->sim;
    range_check(w, lane, at, bytes, "write", span);
    for (uint32_t i = at; i < at + bytes; i++) {
        SimCell *c = cell_at(sim, i);
        if (c->is_mbar)
            mbar_fail(w, lane, i, "writes", agent, span);
        if (c->writer != AGENT_NONE) {
            if (w->clock[c->writer] < c->write_clock)
                race_fail(w, lane, i, "writes", c->writer,
                          c->writer >= AGENT_COPY ? "writes" : "wrote", c->write_at, agent, span);
            fence_check(w, c, i, "writes", agent, span);
        }
        if (c->is_read)
            readers_check(w, lane, i, c, agent, span);
        c->writer = (uint8_t)agent;
        c->write_clock = clock;
        c->write_at = (uint32_t)span;
    }
}

void sim_shared_mbar(SimWarp *w, uint32_t at, uint64_t span) {
    (void)span;
    for (uint32_t i = at; i < at + 8; i++)
        cell_at(w->sim, i)->is_mbar = true;
}

// --- accesses ----------------------------------------------------------------------------------

void sim_load_shared(SimWarp *w, const int32_t *off, uint32_t mask, void *dst, int32_t elem_bytes,
                     int32_t width, uint64_t span) {
    size_t size = (size_t)elem_bytes;
    sim_banks_count(w, SIM_LOADS, off, SIM_LANES, mask, elem_bytes * width);
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
    sim_banks_count(w, SIM_STORES, off, SIM_LANES, mask, elem_bytes * width);
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
    sim_banks_count(w, SIM_COPIES, soff, SIM_LANES, mask, bytes);
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
        sim_shared_write(w, lane, (uint32_t)soff[lane], (uint32_t)bytes, span, AGENT_COPY + w->id,
                         w->commits + 1);
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
    uint32_t *engine = &w->clock[AGENT_COPY + w->id];
    if (*engine < done)
        *engine = done;
    // Another place where warps may change.
    coro_yield(w->coro);
}

// Barriers in shared memory (mbarriers), the proxy fence, and register budgets of warp groups.
//
// A barrier counts phases. A phase is over when all its arrivals and all expected bytes have come;
// who then waits has seen what those who arrived had seen, and the bytes of the copies that signal
// it. Copies are counted for the phase in which they are issued: a phase that ends without them
// expected too little.
#include "backend/host/sim_impl.h"

#include <stdio.h>
#include <string.h>

enum { MBAR_BYTES = 8, REGISTERS = 65536, REGISTERS_MAX = 248 };

void sim_mbars_begin(Sim *sim) {
    sim->nmbar = 0;
}

int sim_mbar_text(const SimMbar *m, char *buf, size_t cap) {
    int n = snprintf(buf, cap, " (phase %u lacks %d arrivals and %lld bytes)", m->phase, m->pending,
                     (long long)m->tx);
    return n < 0 ? 0 : n;
}

void sim_mbar_init(SimWarp *w, int32_t at, int32_t arrivals, uint64_t span) {
    Sim *sim = w->sim;
    uint32_t place = (uint32_t)at;
    if (arrivals < 1)
        sim_fail(w, span, "an mbarrier of %d arrivals", arrivals);
    for (int i = 0; i < sim->nmbar; i++)
        if (place < sim->mbar[i].at + MBAR_BYTES && sim->mbar[i].at < place + MBAR_BYTES)
            sim_fail(w, span, "two mbarriers share byte %u", place);
    if (sim->nmbar == SIM_MBARS_MAX)
        sim_fail(w, span, "more than %d mbarriers", SIM_MBARS_MAX);
    sim_shared_write(w, 0, place, MBAR_BYTES, span, w->id, w->clock[w->id]);
    sim_shared_mbar(w, place, span);
    SimMbar *m = &sim->mbar[sim->nmbar++];
    memset(m, 0, sizeof *m);
    m->at = place;
    m->arrivals = m->pending = arrivals;
    m->owner = w->id;
    m->made = w->clock[w->id];
    m->span = span;
    for (int i = 0; i < SIM_WARPS_MAX; i++)
        m->waited[i] = -2;
}

void sim_mbar_init_fence(SimWarp *w, uint64_t span) {
    (void)span;
    for (int i = 0; i < w->sim->nmbar; i++)
        if (w->sim->mbar[i].owner == w->id)
            w->sim->mbar[i].fenced = true;
}

SimMbar *sim_mbar_find(SimWarp *w, uint32_t at, uint64_t span) {
    for (int i = 0; i < w->sim->nmbar; i++) {
        SimMbar *m = &w->sim->mbar[i];
        if (m->at != at)
            continue;
        if (w->clock[m->owner] < m->made)
            sim_fail(w, span,
                     "warp %d uses the mbarrier at byte %u without a barrier after its "
                     "initialisation by warp %d",
                     w->id, at, m->owner);
        return m;
    }
    sim_fail(w, span, "there is no mbarrier at byte %u", at);
}

// Ends the phase when nothing is missing.
static void phase_check(Sim *sim, SimMbar *m) {
    if (m->pending || m->tx > 0)
        return;
    if (m->tx < 0 || m->coming) {
        sim_report_add(sim, m->span,
                       "tx mismatch: bulk copies bring %lld bytes more than phase %u of the "
                       "mbarrier at byte %u expects",
                       (long long)(m->coming - m->tx), m->phase, m->at);
        return;
    }
    m->phase++;
    m->pending = m->arrivals;
    m->next[AGENT_MBAR + (m - sim->mbar)] = m->phase;
    sim_clock_join(m->done, m->next);
    memset(m->next, 0, sizeof m->next);
}

void sim_mbar_complete(Sim *sim, SimMbar *m, int64_t bytes) {
    m->tx -= bytes;
    m->coming -= bytes;
    phase_check(sim, m);
}

// What the warp has done so far is before the end of the phase.
static void arrive(SimWarp *w, SimMbar *m, int n, uint64_t span) {
    if (n > m->pending)
        sim_fail(w, span,
                 "phase %u of the mbarrier at byte %u takes %d arrivals: warp %d arrives once more",
                 m->phase, m->at, m->arrivals, w->id);
    m->pending -= n;
    sim_clock_join(m->next, w->clock);
    w->clock[w->id]++;
    phase_check(w->sim, m);
    if (w->sim->failed)
        sim_stop(w);
}

void sim_mbar_expect(SimWarp *w, int32_t at, int32_t bytes, uint64_t span) {
    SimMbar *m = sim_mbar_find(w, (uint32_t)at, span);
    m->tx += bytes;
    m->span = span;
    arrive(w, m, 1, span);
}

void sim_mbar_arrive(SimWarp *w, int32_t at, uint32_t mask, uint64_t span) {
    SimMbar *m = sim_mbar_find(w, (uint32_t)at, span);
    if (mask)
        arrive(w, m, __builtin_popcount(mask), span);
}

static bool phase_is_over(const SimWarp *w) {
    return w->sim->mbar[w->mbar].phase > w->wait;
}

// A parity names every other phase; a warp means the first one after what it has waited for. On a
// new barrier the phase before the first is over.
void sim_mbar_wait(SimWarp *w, int32_t at, int32_t parity, uint64_t span) {
    SimMbar *m = sim_mbar_find(w, (uint32_t)at, span);
    int64_t phase = m->waited[w->id] + 1;
    phase += (phase & 1) != parity;
    m->waited[w->id] = phase;
    w->mbar = (int32_t)(m - w->sim->mbar);
    if (m->phase > phase)
        coro_yield(w->coro);
    else
        sim_block(w, "mbarrier", at, phase_is_over, phase, span);
    w->mbar = -1;
    if (m->phase > phase + 1)
        sim_fail(w, span,
                 "phase overrun: the mbarrier at byte %d is in phase %u while warp %d waits for "
                 "the end of phase %lld",
                 at, m->phase, w->id, (long long)phase);
    sim_clock_join(w->clock, m->done);
}

void sim_fence_async(SimWarp *w, uint64_t span) {
    (void)span;
    w->clock[AGENT_FENCED + w->id] = w->clock[w->id]++;
    w->clock[AGENT_FENCED + AGENT_COPY + w->id] = w->clock[AGENT_COPY + w->id];
}

// --- registers ---------------------------------------------------------------------------------

int32_t sim_regs_at_start(const Sim *sim) {
    int32_t regs = REGISTERS / (sim->warps * SIM_LANES) / 8 * 8;
    return regs < REGISTERS_MAX ? regs : REGISTERS_MAX;
}

static bool registers_suffice(const SimWarp *w) {
    int64_t sum = w->wait;
    for (int i = 0; i < w->sim->warps; i++)
        if (i != w->id)
            sum += w->sim->warp[i].regs;
    return sum * SIM_LANES <= REGISTERS;
}

void sim_set_regs(SimWarp *w, int32_t regs, int32_t more, uint64_t span) {
    if (regs < 24 || regs > 256 || regs % 8 || (more ? regs < w->regs : regs > w->regs))
        sim_fail(w, span, "setmaxnreg from %d to %d registers a thread", w->regs, regs);
    if (more)
        do // another one may have been first
            sim_block(w, "setmaxnreg", regs, registers_suffice, regs, span);
        while (!registers_suffice(w));
    w->regs = regs;
}

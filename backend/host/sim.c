// The simulator's scheduler: warps, barriers, deadlocks, reports.
#include "backend/host/sim_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Code generated without optimisation keeps every register of a tile on the stack; only touched
// pages cost anything.
enum { STACK_BYTES = 16 << 20 };

// splitmix64 (Steele, Lea, Flood 2014).
uint64_t sim_random(Sim *sim) {
    uint64_t z = sim->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// --- reports -----------------------------------------------------------------------------------

const char *sim_place(const Sim *sim, uint32_t at, char *buf, size_t cap) {
    buf[0] = 0;
    if (!at)
        return buf;
    SourcePos pos = {0};
    if (sim->sources)
        pos = source_pos(sim->sources, at);
    if (pos.file)
        snprintf(buf, cap, "%s:%u:%u", pos.name, pos.line, pos.col);
    else
        snprintf(buf, cap, "!%u", at);
    return buf;
}

void sim_report_add(Sim *sim, uint64_t span, const char *format, ...) {
    if (sim->failed)
        return;
    sim->failed = true;
    char place[512];
    sim_place(sim, (uint32_t)span, place, sizeof place);
    int n = snprintf(sim->report, sizeof sim->report, "%s%sprogram %lld: ", place,
                     place[0] ? ": " : "", (long long)sim->program);
    if (n < 0 || (size_t)n >= sizeof sim->report)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sim->report + n, sizeof sim->report - (size_t)n, format, args);
    va_end(args);
}

void sim_stop(SimWarp *w) {
    for (;;) // the scheduler never resumes a warp of a failed CTA
        coro_yield(w->coro);
}

const char *sim_report(const Sim *sim) {
    return sim->failed ? sim->report : NULL;
}

void sim_trap(SimWarp *w, const char *message, uint64_t span) {
    sim_fail(w, span, "%s (warp %d)", message, w->id);
}

void sim_check(SimWarp *w, uint32_t bad, const char *message, uint64_t span) {
    if (bad)
        sim_fail(w, span, "%s (warp %d lane %d)", message, w->id, __builtin_ctz(bad));
}

// --- set-up ------------------------------------------------------------------------------------

Sim *sim_new(const SimOptions *options) {
    int64_t bytes = options->shared_bytes;
    if (options->warps < 1 || options->warps > SIM_WARPS_MAX || bytes < 0 || bytes > 1 << 20)
        return NULL;
    Sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->warps = options->warps;
    sim->shared_bytes = (uint32_t)bytes;
    sim->random = options->seed;
    sim->sources = options->sources;
    size_t n = (size_t)bytes;
    // 16 bytes of alignment are what the widest access of a lane needs.
    sim->shared = aligned_alloc(1024, (n + 1024) / 1024 * 1024);
    sim->cell = calloc(n + 1, sizeof *sim->cell);
    sim->readers = calloc(n * READER_KINDS * (size_t)sim->warps + 1, sizeof *sim->readers);
    sim->warp = calloc((size_t)sim->warps, sizeof *sim->warp);
    bool ok = sim->shared && sim->cell && sim->readers && sim->warp;
    for (int i = 0; ok && i < sim->warps; i++) {
        sim->warp[i] = (SimWarp){.sim = sim, .id = i, .coro = coro_new(STACK_BYTES)};
        ok = sim->warp[i].coro != NULL;
    }
    if (!ok) {
        sim_free(sim);
        return NULL;
    }
    return sim;
}

void sim_free(Sim *sim) {
    if (!sim)
        return;
    for (int i = 0; sim->warp && i < sim->warps; i++) {
        coro_free(sim->warp[i].coro);
        free(sim->warp[i].copy);
        sim_unit_free(&sim->warp[i]);
    }
    free(sim->bulk);
    free(sim->warp);
    free(sim->readers);
    free(sim->cell);
    free(sim->shared);
    free(sim);
}

void sim_unbounded(Sim *sim) {
    sim->unbounded = true;
}

void sim_allow(Sim *sim, const char *name, const void *base, size_t bytes) {
    if (!base || !bytes)
        return;
    if (sim->nrange == SIM_RANGES_MAX) {
        sim->unbounded = true;
        return;
    }
    sim->range[sim->nrange++] =
        (SimRange){.name = name, .lo = (uintptr_t)base, .hi = (uintptr_t)base + bytes};
}

// --- barriers ----------------------------------------------------------------------------------

void sim_clock_join(uint32_t *into, const uint32_t *from) {
    for (int a = 0; a < SIM_AGENTS; a++)
        if (into[a] < from[a])
            into[a] = from[a];
}

void sim_block(SimWarp *w, const char *op, int32_t which, bool (*ready)(const SimWarp *w),
               int64_t wait, uint64_t span) {
    w->state = WARP_BLOCKED;
    w->op = op;
    w->barrier = which;
    w->ready = ready;
    w->wait = wait;
    w->span = span;
    coro_yield(w->coro);
}

// All warps of the barrier have come: each now knows what all had done.
static void barrier_release(Sim *sim, SimBarrier *b) {
    uint32_t joined[SIM_AGENTS] = {0};
    for (int i = 0; i < sim->warps; i++)
        if (b->arrived >> i & 1)
            sim_clock_join(joined, sim->warp[i].clock);
    for (int i = 0; i < sim->warps; i++) {
        if (!(b->arrived >> i & 1))
            continue;
        SimWarp *w = &sim->warp[i];
        memcpy(w->clock, joined, sizeof joined);
        w->clock[i]++;
        w->state = WARP_READY;
    }
    *b = (SimBarrier){0};
}

void sim_barrier(SimWarp *w, int32_t id, int32_t warps, uint64_t span) {
    Sim *sim = w->sim;
    if (id < 0 || id >= SIM_BARRIERS)
        sim_fail(w, span, "barrier %d does not exist", id);
    int32_t expected = warps ? warps : sim->warps;
    if (expected > sim->warps)
        sim_fail(w, span, "barrier %d waits for %d warps, the program has %d", id, expected,
                 sim->warps);
    SimBarrier *b = &sim->barrier[id];
    char place[512];
    if (b->arrived && (b->expected != expected || (b->span && span && b->span != span)))
        sim_fail(w, span,
                 "barrier %d is used in two ways at once: warp %d waits here for %d warps, warp %d "
                 "at %s for %d",
                 id, w->id, expected, b->first,
                 sim_place(sim, (uint32_t)b->span, place, sizeof place), b->expected);
    if (!b->arrived)
        *b = (SimBarrier){.expected = expected, .span = span, .first = w->id};
    b->arrived |= 1u << w->id;
    if (__builtin_popcount(b->arrived) == expected) {
        barrier_release(sim, b);
        coro_yield(w->coro);
    } else {
        sim_block(w, "barrier", id, NULL, 0, span);
    }
}

// --- scheduler ---------------------------------------------------------------------------------

static void warp_main(void *arg) {
    SimWarp *w = arg;
    w->sim->entry(w->sim->args, w->sim->program, w->id, w);
    sim_bulk_end(w);
    w->state = WARP_ENDED;
}

static void program_begin(Sim *sim, SimEntry *entry, void *const *args, int64_t program) {
    sim->entry = entry;
    sim->args = args;
    sim->program = program;
    sim->generation++;
    // Poison that shows when a shadow check was missed.
    memset(sim->shared, 0xff, sim->shared_bytes);
    memset(sim->barrier, 0, sizeof sim->barrier);
    sim_mbars_begin(sim);
    sim_bulk_begin(sim);
    for (int i = 0; i < sim->warps; i++) {
        SimWarp *w = &sim->warp[i];
        w->state = WARP_READY;
        w->commits = w->ncopy = w->bulk_commits = 0;
        w->ready = NULL;
        w->mbar = -1;
        w->regs = sim_regs_at_start(sim);
        sim_unit_begin(w);
        memset(w->clock, 0, sizeof w->clock);
        w->clock[i] = 1;
        coro_start(w->coro, warp_main, w);
    }
}

static void deadlock_report(Sim *sim) {
    char text[1536] = "";
    size_t n = 0;
    uint64_t span = 0;
    for (int i = 0; i < sim->warps && n < sizeof text; i++) {
        const SimWarp *w = &sim->warp[i];
        char place[512];
        if (w->state == WARP_ENDED) {
            n += (size_t)snprintf(text + n, sizeof text - n, "; warp %d has ended", i);
            continue;
        }
        if (!span)
            span = w->span;
        sim_place(sim, (uint32_t)w->span, place, sizeof place);
        n += (size_t)snprintf(text + n, sizeof text - n, "; warp %d waits at %s %d%s%s", i, w->op,
                              w->barrier, place[0] ? " at " : "", place);
        if (n < sizeof text && w->mbar >= 0)
            n += (size_t)sim_mbar_text(&sim->mbar[w->mbar], text + n, sizeof text - n);
    }
    sim_report_add(sim, span, "deadlock%s", text);
}

// The warp to go on with, or NULL when none can.
static SimWarp *warp_pick(Sim *sim) {
    uint32_t ready = 0;
    for (int i = 0; i < sim->warps; i++) {
        SimWarp *w = &sim->warp[i];
        if (w->state == WARP_BLOCKED && w->ready && w->ready(w)) {
            w->state = WARP_READY;
            w->ready = NULL;
        }
        if (w->state == WARP_READY)
            ready |= 1u << i;
    }
    if (!ready)
        return NULL;
    uint32_t skip = (uint32_t)(sim_random(sim) % (unsigned)__builtin_popcount(ready));
    for (; skip; skip--)
        ready &= ready - 1;
    return &sim->warp[__builtin_ctz(ready)];
}

bool sim_run(Sim *sim, SimEntry *entry, void *const *args, int64_t program) {
    if (sim->failed)
        return false;
    program_begin(sim, entry, args, program);
    int left = sim->warps;
    while (left && !sim->failed) {
        SimWarp *w = warp_pick(sim);
        if (!w && sim_bulk_force(sim))
            continue;
        if (!w) {
            deadlock_report(sim);
            break;
        }
        for (int i = 0; i < sim->warps; i++) {
            sim_copies_advance(&sim->warp[i]);
            sim_unit_advance(&sim->warp[i]);
        }
        sim_bulk_advance(sim);
        if (!sim->failed && !coro_resume(w->coro))
            left--;
    }
    if (!sim->failed && sim->nbulk)
        sim_report_add(sim, sim->bulk[0].span, "the program ends before its bulk copy has come");
    return !sim->failed;
}

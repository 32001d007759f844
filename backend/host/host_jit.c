// Loads the host targets' objects into this process and launches their entries.
//
// Objects are made by backend_emit and linked by LLVM's ORC. Every function that compiled code may
// call is given by address (host_symbols.def), never looked up in the process: a statically linked
// compiler works the same way.
#include "backend/host/host.h"

#include <string.h>
#include <unistd.h>

#include "backend/host/host_code.h"
#include "backend/host/pool.h"
#include "backend/host/sim.h"
#include "ir/abi.h"

enum { THREADS_MAX = 256 };

typedef struct Entry {
    const char *name;
    const Op *launch;
    AbiParam *param;
    int nparam;
    void *address; // NULL until the first launch
} Entry;

struct HostModule {
    Arena *arena;
    const TargetDesc *target;
    const SourceMap *sources;
    HostCode *code;
    Pool *pool; // cpu; NULL until a launch uses several threads
    const char *plan;
    size_t plan_len;
    Entry *entry;
    int nentry;
    SimBanks banks[SIM_ACCESSES]; // of all launches on sim
    char message[2560];
};

typedef void CpuEntry(void *const *args, int64_t lo, int64_t hi, const char **message);

// --- entries -----------------------------------------------------------------------------------

static int count_launches(const Region *r) {
    int n = 0;
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_LAUNCH) {
            n++;
            continue;
        }
        for (int i = 0; i < op->nregion; i++)
            n += count_launches(op->region[i]);
    }
    return n;
}

static void collect_launches(HostModule *h, const Kernel *k, const Region *r, int *number) {
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind != OP_LAUNCH) {
            for (int i = 0; i < op->nregion; i++)
                collect_launches(h, k, op->region[i], number);
            continue;
        }
        Entry *e = &h->entry[h->nentry++];
        e->launch = op;
        e->name = backend_entry_name(h->arena, k, op, (*number)++);
        e->param = abi_launch_params(h->arena, op, &e->nparam);
    }
}

static void entries_find(HostModule *h, const Module *m) {
    int n = 0;
    for (int i = 0; i < m->nkernel; i++)
        n += count_launches(m->kernel[i]->body);
    h->entry = ARENA_ARRAY(h->arena, Entry, (size_t)n + 1);
    for (int i = 0; i < m->nkernel; i++) {
        int number = 0;
        collect_launches(h, m->kernel[i], m->kernel[i]->body, &number);
    }
}

HostModule *host_jit(Arena *arena, Module *placed, const TargetDesc *target,
                     const BackendOptions *options, Diags *diags) {
    BackendOptions own = *options;
    own.emit = BACKEND_OBJECT;
    own.native = true;
    BackendOutput object = {0};
    if (!backend_emit(arena, placed, target, &own, &object, diags))
        return NULL;
    HostModule *h = ARENA_NEW(arena, HostModule);
    h->arena = arena;
    h->target = target;
    h->sources = options->sources;
    h->plan = object.plan;
    h->plan_len = object.plan_len;
    entries_find(h, placed);
    h->code = host_code_load(arena, object.data, object.len, diags);
    return h->code ? h : NULL;
}

void host_module_free(HostModule *h) {
    if (!h)
        return;
    pool_free(h->pool);
    h->pool = NULL;
    host_code_free(h->code);
    h->code = NULL;
}

const char *host_module_plan(const HostModule *h, size_t *len) {
    *len = h->plan_len;
    return h->plan;
}

static const char *fail(HostModule *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *fail(HostModule *h, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(h->message, sizeof h->message, format, args);
    va_end(args);
    return h->message;
}

// The attribute's text is good too, where it is no symbol.
static bool is_given(const Entry *e, const char *name) {
    Str given = op_attr_str(e->launch, ATTR_entry);
    return given && strcmp(given, name) == 0;
}

static Entry *entry_find(HostModule *h, const char *name) {
    for (int i = 0; i < h->nentry; i++)
        if (strcmp(h->entry[i].name, name) == 0 || is_given(&h->entry[i], name))
            return &h->entry[i];
    return NULL;
}

// --- cpu ---------------------------------------------------------------------------------------

typedef struct Run {
    CpuEntry *entry;
    void *const *args;
    int64_t grid;
    int n;
    const char *message[THREADS_MAX]; // of an assert that failed
} Run;

// Contiguous runs of programs, one a task.
static void run_main(void *arg, int i) {
    Run *r = arg;
    int64_t each = r->grid / r->n, rest = r->grid % r->n;
    int64_t lo = each * i + (i < rest ? i : rest);
    r->entry(r->args, lo, lo + each + (i < rest), &r->message[i]);
}

static int thread_count(int asked, int64_t grid) {
    int64_t n = asked > 0 ? asked : sysconf(_SC_NPROCESSORS_ONLN);
    if (n > THREADS_MAX)
        n = THREADS_MAX;
    if (n > grid)
        n = grid;
    return n < 1 ? 1 : (int)n;
}

// The pool grows to the most threads that a launch asked for.
static Pool *pool_of(HostModule *h, int threads) {
    if (h->pool && pool_threads(h->pool) >= threads)
        return h->pool;
    pool_free(h->pool);
    h->pool = pool_new(threads);
    return h->pool;
}

static const char *launch_cpu(HostModule *h, CpuEntry *entry, void *const *args, int64_t grid,
                              int threads) {
    Run run = {.entry = entry, .args = args, .grid = grid, .n = thread_count(threads, grid)};
    Pool *pool = run.n > 1 ? pool_of(h, run.n) : NULL;
    if (pool)
        pool_run(pool, run.n, run_main, &run);
    for (int i = 0; !pool && i < run.n; i++)
        run_main(&run, i);
    for (int i = 0; i < run.n; i++)
        if (run.message[i])
            return fail(h, "%s", run.message[i]);
    return NULL;
}

// --- sim ---------------------------------------------------------------------------------------

// The value of an extent or stride at this launch; false when it is not among the parameters.
static bool index_of(const Entry *e, void *const *args, const Value *v, int64_t *x) {
    if (value_is_const(v)) {
        *x = v->u.i;
        return true;
    }
    for (int i = 0; i < e->nparam; i++)
        if (e->param[i].kind == ABI_SCALAR && e->param[i].value == v && e->param[i].bytes == 8) {
            memcpy(x, args[i], sizeof *x);
            return true;
        }
    return false;
}

static bool stride_of(const Entry *e, void *const *args, const Mem *mem, int dim, int64_t *x) {
    *x = 1;
    for (int i = 0; i < e->nparam; i++)
        if (e->param[i].kind == ABI_STRIDE && e->param[i].mem == mem && e->param[i].dim == dim) {
            memcpy(x, args[i], sizeof *x);
            return true;
        }
    return mem->inner == dim;
}

// Lets the simulator accept a tensor's bytes, and no others.
static bool allow_tensor(Sim *sim, const Entry *e, void *const *args, const Mem *mem,
                         const void *base) {
    int64_t lo = 0, hi = 0;
    for (int i = 0; i < mem->rank; i++) {
        int64_t extent, stride;
        if (!index_of(e, args, mem->dim[i], &extent) || !stride_of(e, args, mem, i, &stride))
            return false;
        if (extent <= 0)
            return true;
        if (stride < 0)
            lo += (extent - 1) * stride;
        else
            hi += (extent - 1) * stride;
    }
    int64_t bits = dtype_bits(mem->dtype);
    int64_t first = lo * bits / 8, bytes = ((hi + 1) * bits + 7) / 8 - first;
    sim_allow(sim, mem->name, (const char *)base + first, (size_t)bytes);
    return true;
}

static const char *launch_sim(HostModule *h, const Entry *e, SimEntry *entry, void *const *args,
                              int64_t grid, int warps, int64_t smem, uint64_t seed) {
    Sim *sim = sim_new(
        &(SimOptions){.warps = warps, .shared_bytes = smem, .seed = seed, .sources = h->sources});
    if (!sim)
        return fail(h, "cannot simulate %d warps with %lld bytes of shared memory", warps,
                    (long long)smem);
    for (int i = 0; i < e->nparam; i++) {
        if (e->param[i].kind != ABI_POINTER)
            continue;
        const void *base;
        memcpy(&base, args[i], sizeof base);
        if (base && !allow_tensor(sim, e, args, e->param[i].mem, base))
            sim_unbounded(sim);
    }
    const char *message = NULL;
    for (int64_t p = 0; p < grid && !message; p++)
        if (!sim_run(sim, entry, args, p))
            message = fail(h, "%s", sim_report(sim));
    for (int kind = 0; kind < SIM_ACCESSES; kind++) {
        SimBanks b = sim_banks(sim, (SimAccess)kind);
        h->banks[kind].phases += b.phases;
        h->banks[kind].conflicts += b.conflicts;
    }
    sim_free(sim);
    return message;
}

SimBanks host_sim_banks(const HostModule *h, SimAccess kind) {
    return h->banks[kind];
}

// --- launch ------------------------------------------------------------------------------------

const char *host_launch(HostModule *h, const char *entry, void *const *args, int64_t grid,
                        int warps, int64_t smem, int threads, uint64_t seed) {
    Entry *e = entry_find(h, entry);
    if (!e)
        return fail(h, "no launch is named `%s`", entry);
    const char *error = NULL;
    if (!e->address)
        e->address = host_code_find(h->code, e->name, &error);
    if (!e->address)
        return fail(h, "cannot link `%s`: %s", entry, error);
    if (grid <= 0)
        return NULL;
    if (warps <= 0)
        warps = (int)op_attr_int(e->launch, ATTR_warps);
    if (h->target->family == TARGET_SIM)
        return launch_sim(h, e, (SimEntry *)(uintptr_t)e->address, args, grid, warps ? warps : 1,
                          smem, seed);
    return launch_cpu(h, (CpuEntry *)(uintptr_t)e->address, args, grid, threads);
}

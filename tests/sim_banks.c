// Bank conflicts of shared memory: the simulator counts them, and the inner loops of products have
// none.
#include "tests/host_run.h"

#include "backend/lower.h"
#include "frontend/frontend.h"
#include "ir/pass.h"
#include "lang/parse.h"

// --- the count ---

typedef struct LaneStores {
    int32_t step, bytes; // lane i is at i * step
    int phases, conflicts;
} LaneStores;

static void store(void *const *args, int64_t program, int32_t warp, SimWarp *self) {
    (void)program, (void)warp;
    const LaneStores *a = args[0];
    int32_t off[SIM_LANES];
    static const char data[16 * SIM_LANES];
    for (int i = 0; i < SIM_LANES; i++)
        off[i] = i * a->step;
    sim_store_shared(self, off, UINT32_MAX, data, a->bytes, 1, 0);
}

Test(sim_banks, counts) {
    static const LaneStores rows[] = {
        {4, 4, 1, 0},   {8, 4, 1, 1},     {12, 4, 1, 0},   {128, 4, 1, 31},
        {2, 2, 1, 0},   {8, 8, 2, 0},     {16, 8, 2, 2},   {16, 16, 4, 0},
        {32, 16, 4, 4}, {128, 16, 4, 28}, {144, 16, 4, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Sim *sim = sim_new(&(SimOptions){.warps = 1, .shared_bytes = 8192});
        cr_assert(sim && sim_run(sim, store, (void *[]){(void *)&rows[i]}, 0), "%s",
                  sim_report(sim));
        SimBanks b = sim_banks(sim, SIM_STORES);
        cr_expect(b.phases == rows[i].phases && b.conflicts == rows[i].conflicts,
                  "%d bytes every %d: %d phases, %d conflicts", rows[i].bytes, rows[i].step,
                  (int)b.phases, (int)b.conflicts);
        cr_expect_eq(sim_banks(sim, SIM_LOADS).phases, 0);
        sim_free(sim);
    }
}

// --- kernels ---

// Runs the kernel of an example on sim-sm_80; the first variant whose guards hold.
static HostModule *run_example(Arena *a, const char *file, const char *kernel,
                               const char *const *defines, const int64_t *dims) {
    size_t len;
    char *text = read_file(a, file, &len);
    SourceMap *sources = source_map_new(a);
    Interner *names = interner_new(a);
    Diags *diags = diags_new(a, sources, NULL);
    AstFile *ast = lang_parse(a, names, sources, source_add(sources, file, text, len), diags);
    ScheduleList schedules = {0};
    FrontendOptions front = {.defines = defines, .target = "sm_80", .kernel = kernel};
    Module *m = frontend_lower(a, names, sources, ast, &front, diags, &schedules);
    cr_assert(!diags_has_errors(diags), "%s", diags_text(diags, a));
    const TargetDesc *target = target_find("sim-sm_80");
    m->target = intern_cstr(names, target->name);
    PassOptions options = {.nschedule = schedules.n, .schedule = schedules.items};
    PassCtx ctx = {.module = m,
                   .target = target,
                   .options = &options,
                   .scratch = arena_new("scratch"),
                   .scratch_bytes = lower_scratch_bytes,
                   .diags = diags};
    cr_assert(passes_run(&ctx), "%s", diags_text(diags, a));
    arena_free(ctx.scratch);
    HostModule *host = host_jit(a, m, target, &(BackendOptions){.sources = sources}, diags);
    cr_assert(host, "%s", diags_text(diags, a));
    for (int i = 0; i < m->nkernel; i++) {
        Run r = {.arena = a, .host = host, .k = m->kernel[i], .threads = 1, .what = kernel};
        bool ran = run_kernel(&r, make_data(a, m->kernel[i], dims, false), dims);
        cr_assert(!r.message, "%s: %s", kernel, r.message);
        if (ran)
            return host;
    }
    cr_assert(false, "%s: no variant ran", kernel);
    return NULL;
}

// The operands of products: filled by cp.async, read by ldmatrix.
static void expect_none(const HostModule *host, const char *what) {
    static const SimAccess kinds[] = {SIM_MATRICES, SIM_COPIES};
    for (int i = 0; i < 2; i++) {
        SimBanks b = host_sim_banks(host, kinds[i]);
        cr_expect(b.phases > 0, "%s: kind %d does not happen", what, (int)kinds[i]);
        cr_expect_eq(b.conflicts, 0, "%s: kind %d: %d conflicts in %d phases", what, (int)kinds[i],
                     (int)b.conflicts, (int)b.phases);
    }
}

Test(sim_banks, linear_gelu_tiled, .timeout = 600) {
    Arena *a = arena_new("test");
    static const char *const defines[] = {"T=bf16", NULL};
    const int64_t dims[] = {128, 136, 128};
    HostModule *host = run_example(a, FUSE_SOURCE_DIR "/examples/linear_gelu.fk",
                                   "linear_gelu_tiled", defines, dims);
    expect_none(host, "linear_gelu_tiled");
    host_module_free(host);
    arena_free(a);
}

Test(sim_banks, attention, .timeout = 600) {
    Arena *a = arena_new("test");
    static const char *const defines[] = {"T=bf16", "D=64", NULL};
    const int64_t dims[] = {1, 1, 72, 64, 1, 136}; // B H S D G L
    HostModule *host =
        run_example(a, FUSE_SOURCE_DIR "/examples/attention.fk", "attention", defines, dims);
    expect_none(host, "attention");
    host_module_free(host);
    arena_free(a);
}

// The corpus of passes from whole tensors to machine code: every kernel, every variant whose guards
// hold, many shapes, run by `sim` (the GPU's schedule) and `cpu`, against the evaluator.
#include "tests/host_run.h"

#include "ir/pass.h"

// --- the corpus ---

typedef struct Corpus {
    Arena *arena, *scratch;
    Module *module;
    Diags *diags;
} Corpus;

static Corpus corpus(const char *target, bool run_passes) {
    Corpus c = {.arena = arena_new("corpus"), .scratch = arena_new("scratch")};
    size_t len;
    char *text = read_file(c.arena, FUSE_SOURCE_DIR "/tests/corpus/passes/kernels.tir", &len);
    const char *error = NULL;
    c.module = ir_parse(c.arena, interner_new(c.arena), text, len, &error);
    cr_assert(c.module, "%s", error);
    c.diags = diags_new(c.arena, source_map_new(c.arena), NULL);
    PassOptions options = {0};
    PassCtx ctx = {.module = c.module,
                   .target = target_find(target),
                   .options = &options,
                   .scratch = c.scratch,
                   .diags = c.diags,
                   .scratch_bytes = lower_scratch_bytes};
    bool ok = !run_passes || passes_run(&ctx);
    cr_assert(ok, "%s", diags_text(c.diags, c.arena));
    return c;
}

static void corpus_free(Corpus *c) {
    arena_free(c->scratch);
    arena_free(c->arena);
}

static bool is_variant(const Kernel *k, const char *base) {
    size_t n = strlen(base);
    return strncmp(k->name, base, n) == 0 &&
           (k->name[n] == 0 || (k->name[n] == '.' && k->name[n + 1] == 'v'));
}

static bool has_optional(const Kernel *k) {
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR && k->param[i].mem->opt)
            return true;
    return false;
}

static const int64_t shapes[][DIMS_MAX] = {
    {1, 1, 1, 1}, {0, 4, 3, 2}, {4, 0, 5, 3}, {33, 65, 17, 9}, {130, 40, 24, 8}, {3, 1031, 16, 16},
};

static void run_shape(Corpus *c, HostModule *host, const Kernel *reference, const Data *want,
                      const int64_t *dims, bool absent, const char *target, int shape) {
    int ran = 0;
    for (int i = 0; i < c->module->nkernel; i++) {
        const Kernel *k = c->module->kernel[i];
        if (!is_variant(k, reference->name))
            continue;
        Arena *a = arena_new("run");
        Data *got = make_data(a, reference, dims, absent);
        Run r = {.arena = a,
                 .host = host,
                 .k = k,
                 .threads = strncmp(target, "sim", 3) == 0 ? 1 : 2,
                 .seed = 3};
        r.what = arena_printf(a, "%s on %s, shape %d%s", k->name, target, shape,
                              absent ? ", absent" : "");
        if (run_kernel(&r, got, dims)) {
            ran++;
            cr_assert(!r.message, "%s: %s", r.what, r.message);
            compare(want, got, r.what);
        }
        arena_free(a);
    }
    cr_assert(ran > 0, "no variant of %s runs", reference->name);
}

static void run_corpus(const char *target, int opt_level) {
    Corpus reference = corpus(target, false), c = corpus(target, true);
    BackendOptions options = {.opt_level = opt_level};
    HostModule *host = host_jit(c.arena, c.module, target_find(target), &options, c.diags);
    cr_assert(host, "%s", diags_text(c.diags, c.arena));
    const char *only = getenv("FUSE_TEST_KERNEL");
    for (int i = 0; i < reference.module->nkernel; i++) {
        const Kernel *k = reference.module->kernel[i];
        if (only && strcmp(only, k->name) != 0)
            continue;
        for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
            for (int absent = 0; absent <= has_optional(k); absent++) {
                Arena *a = arena_new("reference");
                Data *want = make_data(a, k, shapes[s], absent);
                const char *error = NULL;
                bool ok = eval_kernel(a, reference.module, k, want->n, want->arg, NULL, &error);
                cr_assert(ok, "%s: %s", k->name, error);
                run_shape(&c, host, k, want, shapes[s], absent, target, s);
                arena_free(a);
            }
        }
    }
    host_module_free(host);
    corpus_free(&c);
    corpus_free(&reference);
}

Test(backend_numeric, sim_sm_80, .timeout = 600) {
    run_corpus("sim-sm_80", 1);
}
Test(backend_numeric, sim_sm_90a, .timeout = 600) {
    run_corpus("sim-sm_90a", 1);
}
Test(backend_numeric, cpu, .timeout = 600) {
    run_corpus("cpu", 2);
}

// tests/corpus/placed on the simulator, against the evaluator: roles, rings of mbarriers, bulk
// copies, the matrix unit of warp groups.
#include "tests/host_run.h"

static Module *read_module(Arena *a, const char *name) {
    size_t len;
    char *path = arena_printf(a, FUSE_SOURCE_DIR "/tests/corpus/placed/%s", name);
    char *text = read_file(a, path, &len);
    const char *error = NULL;
    Module *m = ir_parse(a, interner_new(a), text, len, &error);
    cr_assert(m, "%s", error);
    cr_assert(ir_verify(a, m, &error), "%s", error);
    return m;
}

static void run_shape(const Module *m, HostModule *host, const int64_t *dims, bool absent,
                      uint64_t seed) {
    Arena *a = arena_new("run");
    const Kernel *k = m->kernel[0];
    Data *want = make_data(a, k, dims, absent), *got = make_data(a, k, dims, absent);
    const char *error = NULL;
    cr_assert(eval_kernel(a, m, k, want->n, want->arg, NULL, &error), "%s", error);
    Run r = {.arena = a, .host = host, .k = k, .threads = 1, .seed = seed};
    r.what =
        arena_printf(a, "%d, %d, %d, seed %d", (int)dims[0], (int)dims[1], (int)dims[2], (int)seed);
    cr_assert(run_kernel(&r, got, dims), "%s: refused", r.what);
    cr_assert(!r.message, "%s: %s", r.what, r.message);
    compare(want, got, r.what);
    arena_free(a);
}

static void run_shapes(const char *name, int n, const int64_t dims[][3]) {
    Arena *a = arena_new("test");
    Module *m = read_module(a, name);
    Diags *diags = diags_new(a, source_map_new(a), NULL);
    HostModule *host = host_jit(a, m, target_find("sim-sm_90a"), &(BackendOptions){0}, diags);
    cr_assert(host, "%s", diags_text(diags, a));
    for (int i = 0; i < n; i++)
        for (uint64_t seed = 0; seed < 2; seed++)
            run_shape(m, host, dims[i], i % 2, seed * 31 + (uint64_t)i);
    host_module_free(host);
    arena_free(a);
}

Test(sim_placed, linear_gelu, .timeout = 600) {
    static const int64_t shapes[][3] = {
        {128, 64, 256}, // one full tile, one step
        {130, 200, 264}, {1, 8, 8}, {60, 328, 40}, {257, 72, 520}, {16, 0, 16}, {0, 8, 8},
    };
    run_shapes("linear_gelu_sm90a.tir", 7, shapes);
}

// The left operand of the second product in registers, its right one transposed; D is 64.
Test(sim_placed, chained, .timeout = 600) {
    static const int64_t shapes[][3] = {{64, 64, 64}, {130, 200, 64}, {1, 333, 64}, {70, 0, 64}};
    run_shapes("chained_sm90a.tir", 4, shapes);
}

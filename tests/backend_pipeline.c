// Every kernel of tests/corpus/passes through the whole pipeline to PTX. With FUSE_TEST_PTXAS set
// it is assembled too (minutes): ptxas takes it and no variant spills.
#include "backend_support.h"

#include "ir/pass.h"

static char *read_file(Arena *a, const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(a, 1 << 20);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

// Every kind of product is on the matrix unit that the target has for it.
static void expect_units(const Emitted *e, const char *target) {
    static const char *const units[] = {
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        cr_expect(count_of(e->text, units[i]) > 0, "%s: no %s", target, units[i]);
    bool has_fp8 = (target_find(target)->units & UNIT_M16N8K32_F8) != 0;
    cr_expect_eq(count_of(e->text, "m16n8k32.row.col.f32.e4m3.e5m2.f32") > 0, has_fp8);
}

static void compile_corpus(const char *target) {
    Arena *arena = arena_new("test"), *scratch = arena_new("scratch");
    size_t len;
    char *text = read_file(arena, FUSE_SOURCE_DIR "/tests/corpus/passes/kernels.tir", &len);
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, len, &error);
    cr_assert(m, "%s", error);
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    PassOptions options = {0};
    PassCtx ctx = {.module = m,
                   .target = target_find(target),
                   .options = &options,
                   .scratch = scratch,
                   .diags = diags,
                   .scratch_bytes = lower_scratch_bytes};
    bool ok = passes_run(&ctx);
    cr_assert(ok, "%s", diags_text(diags, arena));
    BackendOptions backend = {.emit = BACKEND_PTX, .opt_level = 2};
    BackendOutput out;
    ok = backend_emit(arena, m, ctx.target, &backend, &out, diags);
    cr_assert(ok, "%s", diags_text(diags, arena));
    Emitted e = {.arena = arena, .text = out.data};
    const char *dump = getenv("FUSE_TEST_DUMP");
    if (dump) {
        FILE *f = fopen(dump, "w");
        fwrite(out.data, 1, out.len, f);
        fclose(f);
    }
    expect_units(&e, target);
    cr_expect(!strstr(e.text, ".local "));
    const char *report = getenv("FUSE_TEST_PTXAS") ? assemble(&e, target) : NULL;
    for (const char *p = report; p && (p = strstr(p, " bytes spill stores")); p++)
        cr_expect(p[-1] == '0' && p[-2] == ' ', "%s", report);
    arena_free(scratch);
    arena_free(arena);
}

Test(backend_pipeline, sm_80, .timeout = 300) {
    compile_corpus("sm_80");
}
Test(backend_pipeline, sm_90a, .timeout = 300) {
    compile_corpus("sm_90a");
}

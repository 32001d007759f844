// The pass manager: lists, stops, dumps, times, verification after each pass.
#include "ir/pass.h"

#include "ir_examples.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena, *scratch;
    Diags *diags;
    char out[1 << 16];
    size_t len;
} Fixture;

static const TargetDesc target = {.name = "sm_80",
                                  .models = "sm_80",
                                  .family = TARGET_NVPTX,
                                  .sm = 80,
                                  .lanes = 32,
                                  .max_warps = 32,
                                  .max_regs = 255,
                                  .shared_bytes = 166912,
                                  .vec_bytes = 16,
                                  .units = UNIT_M16N8K16_F16,
                                  .has_cp_async = true,
                                  .has_ldmatrix = true,
                                  .sms = 108};

static void sink(void *user, const char *text, size_t len) {
    Fixture *f = user;
    if (f->len + len < sizeof f->out) {
        memcpy(f->out + f->len, text, len);
        f->len += len;
    }
}

static Fixture *fixture_new(void) {
    Arena *arena = arena_new("test");
    Fixture *f = ARENA_NEW(arena, Fixture);
    f->arena = arena;
    f->scratch = arena_new("scratch");
    f->diags = diags_new(arena, source_map_new(arena), NULL);
    return f;
}

static void fixture_free(Fixture *f) {
    arena_free(f->scratch);
    arena_free(f->arena);
}

static Module *run(Fixture *f, const char *text, PassOptions options, bool ok) {
    const char *error;
    Module *m = ir_parse(f->arena, interner_new(f->arena), text, strlen(text), &error);
    cr_assert(m, "%s", error);
    PassCtx ctx = {.module = m,
                   .target = &target,
                   .options = &options,
                   .scratch = f->scratch,
                   .diags = f->diags,
                   .sink = sink,
                   .user = f};
    cr_expect_eq(passes_run(&ctx), ok, "%s", diags_text(f->diags, f->arena));
    return m;
}

Test(ir_pass, whole_pipeline_reaches_placed) {
    Fixture *f = fixture_new();
    const Module *m = run(f, example_linear_gelu_tensor, (PassOptions){0}, true);
    cr_expect_eq(m->stage, STAGE_PLACED);
    cr_expect_eq(f->len, 0);
    fixture_free(f);
}

Test(ir_pass, stops_and_dumps) {
    Fixture *f = fixture_new();
    const Module *m = run(f, example_linear_gelu_tensor,
                          (PassOptions){.stop_after = "fuse", .dump = "all"}, true);
    cr_expect_eq(m->stage, STAGE_NESTS);
    cr_expect(strstr(f->out, "// after simplify: "));
    cr_expect(strstr(f->out, "// after fuse: "));
    cr_expect_null(strstr(f->out, "// after variants: "));
    cr_expect(strstr(f->out, "\ntir nests sm_90a\n"));
    fixture_free(f);
}

Test(ir_pass, dumps_read_back) {
    Fixture *f = fixture_new();
    Module *m = run(f, example_linear_gelu_tensor,
                    (PassOptions){.stop_after = "stream", .dump = "stream"}, true);
    const char *error;
    Module *back = ir_parse(f->arena, m->interner, f->out, f->len, &error);
    cr_assert(back, "%s", error);
    cr_expect_str_eq(ir_print(f->arena, back, (IrPrintOptions){0}).data,
                     ir_print(f->arena, m, (IrPrintOptions){0}).data);
    fixture_free(f);
}

Test(ir_pass, runs_a_list) {
    Fixture *f = fixture_new();
    const Module *m = run(f, example_linear_gelu_tensor,
                          (PassOptions){.passes = "simplify,fuse", .time = true}, true);
    cr_expect_eq(m->stage, STAGE_NESTS);
    cr_expect(strstr(f->out, " x simplify\n"));
    cr_expect(strstr(f->out, " x fuse\n"));
    cr_expect_null(strstr(f->out, " x schedule\n"));
    cr_expect(strstr(f->out, " ms all passes\n"));
    fixture_free(f);
}

Test(ir_pass, starts_in_the_middle) {
    Fixture *f = fixture_new();
    run(f, example_linear_gelu_nests, (PassOptions){.stop_after = "schedule", .dump = "all"}, true);
    cr_expect_null(strstr(f->out, "// after fuse: "));
    cr_expect(strstr(f->out, "// after schedule: "));
    fixture_free(f);
}

Test(ir_pass, refuses_unknown_names) {
    Fixture *f = fixture_new();
    run(f, example_linear_gelu_tensor, (PassOptions){.passes = "simplify,fold"}, false);
    run(f, example_linear_gelu_tensor, (PassOptions){.stop_after = "melt"}, false);
    run(f, example_linear_gelu_tensor, (PassOptions){.dump = "mold"}, false);
    const char *text = diags_text(f->diags, f->arena);
    cr_expect(strstr(text, "no pass has the name `fold`"));
    cr_expect(strstr(text, "no pass has the name `melt`"));
    cr_expect(strstr(text, "no pass has the name `mold`"));
    fixture_free(f);
}

Test(ir_pass, broken_ir_is_an_internal_error) {
    Fixture *f = fixture_new();
    run(f,
        "tir placed sm_80\nkernel k(dim M, out @y: f32[%M]) {\n  %a = add %M, 1:i32 : index\n  "
        "store @y[%a], 0.0:f32\n}\n",
        (PassOptions){.passes = "protocol"}, false);
    const char *text = diags_text(f->diags, f->arena);
    cr_expect(strstr(text, "after pass `protocol`: kernel k: `%a = add %M, 1:i32 : index`: "));
    cr_expect(strstr(text, "error[internal]"));
    fixture_free(f);
}

// The text is complete after every pass: it reads back, prints the same and is valid.
Test(ir_pass, text_reads_back_after_every_pass) {
    for (int i = 0; i < PASS_COUNT; i++) {
        Fixture *f = fixture_new();
        Module *m = run(f, example_linear_gelu_tensor,
                        (PassOptions){.stop_after = pass_name((PassId)i)}, true);
        static const IrPrintOptions forms[] = {{0}, {.plan = true}, {.generic = true}};
        for (int j = 0; j < 3; j++) {
            IrText text = ir_print(f->arena, m, forms[j]);
            const char *error;
            Module *back = ir_parse(f->arena, m->interner, text.data, text.len, &error);
            cr_assert(back, "after %s: %s", pass_name((PassId)i), error);
            cr_expect_str_eq(ir_print(f->arena, back, forms[j]).data, text.data);
            cr_expect(ir_verify(f->arena, back, &error), "after %s: %s", pass_name((PassId)i),
                      error);
        }
        fixture_free(f);
    }
}

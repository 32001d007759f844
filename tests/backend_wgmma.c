// Placed IR of sm_90a: roles, mbarrier rings, TMA and the matrix unit of a warp group.
#include "backend_support.h"

#include "ir/pass.h"

static char *read_corpus(Arena *arena, const char *name) {
    char *path = arena_printf(arena, "%s/tests/corpus/placed/%s", FUSE_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(arena, 65536);
    size_t n = fread(text, 1, 65535, f);
    text[n] = 0;
    fclose(f);
    return text;
}

static Module *parse(Arena *arena, const char *text) {
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "parse: %s", error ? error : "?");
    return m;
}

Test(backend_wgmma, text) {
    Arena *arena = arena_new("test");
    const char *error = NULL;
    Module *m = parse(arena, read_corpus(arena, "linear_gelu_sm90a.tir"));
    cr_assert(ir_verify(arena, m, &error), "%s", error ? error : "?");
    for (int generic = 0; generic < 2; generic++) {
        IrText once = ir_print(arena, m, (IrPrintOptions){.generic = generic});
        Module *again = parse(arena, once.data);
        cr_assert(ir_verify(arena, again, &error), "%s", error ? error : "?");
        IrText twice = ir_print(arena, again, (IrPrintOptions){.generic = generic});
        cr_expect_str_eq(once.data, twice.data);
    }
    arena_free(arena);
}

// Registers that setmaxnreg asks for, and how many ptxas gives.
Test(backend_wgmma, linear_gelu) {
    Arena *arena = arena_new("test");
    Emitted e = emit_ptx(read_corpus(arena, "linear_gelu_sm90a.tir"), "sm_90a");
    cr_expect_eq(count_of(e.text, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"), 4);
    cr_expect_eq(count_of(e.text, "wgmma.fence"), 1);
    cr_expect_eq(count_of(e.text, "wgmma.wait_group.sync.aligned 0"), 1);
    // x is one box of 128 lines, w four of 64; y leaves in four
    cr_expect_eq(count_of(e.text, "cp.async.bulk.tensor.2d.shared::cta"), 5);
    cr_expect_eq(count_of(e.text, "cp.async.bulk.tensor.2d.global.shared::cta"), 4);
    cr_expect_eq(count_of(e.text, "mbarrier.try_wait.parity"), 2);
    cr_expect_eq(count_of(e.text, "mbarrier.arrive.expect_tx"), 1);
    cr_expect_eq(count_of(e.text, "mbarrier.init"), 6);
    cr_expect_eq(count_of(e.text, "fence.mbarrier_init"), 1);
    cr_expect_eq(count_of(e.text, "setmaxnreg.dec.sync.aligned.u32 \t40"), 1);
    cr_expect_eq(count_of(e.text, "setmaxnreg.inc.sync.aligned.u32 \t232"), 1);
    cr_expect_eq(count_of(e.text, "stmatrix.sync.aligned.m8n8.x4"), 16);
    cr_expect_eq(count_of(e.text, "fence.proxy.async"), 1);
    // each warp group stages and stores its own rows
    cr_expect_eq(count_of(e.text, "bar.sync \t1, 128"), 2);
    cr_expect_eq(count_of(e.text, "bar.sync \t2, 128"), 2);
    cr_expect_eq(count_of(e.text, ".param .align 64 .b8"), 3);
    cr_expect(strstr(e.text, ".maxntid 384"));
    cr_expect(strstr(e.text, ".minnctapersm 1"));
    cr_expect(!strstr(e.text, ".local"));
    // The runtime learns of the tensor maps from the plan.
    cr_expect(strstr(e.plan, "maps = [0, 128, 2, 1, 64, 0, 128, 1, 128, 2, 1, 64, 0, 64, 3, 128, "
                             "2, 1, 64, 0, 64]"),
              "%s", e.plan);
    char *report = assemble(&e, "sm_90a");
    no_spills(report);
    arena_free(e.arena);
    arena_free(arena);
}

static char *replaced(Arena *arena, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    cr_assert(at, "%s", from);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

// One thread of the role stores for all of its warps.
Test(backend_wgmma, role_stores) {
    Arena *arena = arena_new("test");
    char *text = read_corpus(arena, "linear_gelu_sm90a.tir");
    char *wrong = replaced(arena, text, "share = [m]", "share = [n]");
    for (int i = 0; i < 2; i++) {
        text = replaced(arena, text, "name = 1, warps = 4", "name = 1, warps = 8");
        text = replaced(arena, text, "{pending = 0, warps = 4}", "{pending = 0}");
    }
    text = replaced(arena, text, ", warps = 4, share = [m]", "");
    Emitted e = emit_ptx(text, "sm_90a");
    cr_expect_eq(count_of(e.text, "bar.sync \t1, 256"), 2);
    cr_expect_eq(count_of(e.text, "cp.async.bulk.tensor.2d.global.shared::cta"), 4);
    cr_expect(strstr(e.plan, "3, 128, 2, 1, 64, 0, 128]"), "%s", e.plan);
    no_spills(assemble(&e, "sm_90a"));
    arena_free(e.arena);
    e = emit_text(wrong, "sm_90a", (BackendOptions){.emit = BACKEND_PTX, .opt_level = 2});
    cr_expect(!e.text && strstr(e.messages, "cannot share"), "%s", e.messages);
    arena_free(e.arena);
    arena_free(arena);
}

Test(backend_wgmma, left_operand_in_registers) {
    Arena *arena = arena_new("test");
    Emitted e = emit_ptx(read_corpus(arena, "chained_sm90a.tir"), "sm_90a");
    cr_expect_eq(count_of(e.text, "wgmma.mma_async.sync.aligned.m64n64k16"), 8, "%s", e.text);
    // scale-D 0 starts the first product of each block of k; last: is b transposed?
    cr_expect_eq(count_of(e.text, "da, db, 0, 1, 1, 0, 0;"), 1);
    cr_expect_eq(count_of(e.text, "da, db, 1, 1, 1, 0, 0;"), 3);
    cr_expect_eq(count_of(e.text, "db, 1, 1, 1, 1;"), 4);
    cr_expect_eq(count_of(e.text, "mbarrier.try_wait.parity"), 6);
    cr_expect(!strstr(e.text, "setmaxnreg"));
    no_spills(assemble(&e, "sm_90a"));
    arena_free(arena);
    arena_free(e.arena);
}

// --- what is refused ---

typedef struct Wrong {
    const char *from, *to, *message;
} Wrong;

Test(backend_wgmma, invalid) {
    static const Wrong cases[] = {
        {"%p = cast %s : bf16", "%p = cast %sa : bf16", "protocol rule A1"},
        {"mma.issue[j] %p,", "mma.issue[i] %p,", "a contracted axis is not in both operands"},
        {"mma.wait %oa", "mma.wait %acc", "an async value is needed"},
        {"async f32[i, j]#s", "f32[i, j]#s", "the result is async f32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new("test");
        const char *error = NULL;
        Module *m = parse(arena, replaced(arena, read_corpus(arena, "chained_sm90a.tir"),
                                          cases[i].from, cases[i].to));
        cr_expect(!ir_verify(arena, m, &error), "case %zu", i);
        cr_expect(error && strstr(error, cases[i].message), "case %zu: %s", i, error ? error : "");
        arena_free(arena);
    }
    Arena *arena = arena_new("test");
    const char *error = NULL, *text = read_corpus(arena, "linear_gelu_sm90a.tir");
    cr_expect(!ir_verify(
        arena, parse(arena, replaced(arena, text, "warps = 8, regs", "warps = 4, regs")), &error));
    cr_expect(error && strstr(error, "do not share out the warps"), "%s", error ? error : "");
    arena_free(arena);
}

Test(backend_wgmma, unsupported) {
    static const Wrong cases[] = {
        {"unit = m64n64k16", "unit = m64n128k16", "an accumulator without the layout"},
        {"unit = m64n64k16", "unit = m64n64k8", "no multiple of the unit's"},
        {"unit = m64n64k16", "unit = m16n8k16", "this matrix unit"},
        {"in @q: bf16", "in opt @q: bf16", "known to be there"},
        {"j:1^d:8, j:2^d:16, j:4^d:32", "j:1, j:2, j:4", "not a box of swizzled lines"},
        {"empty = 1, at = 40976", "empty = 3, at = 40976", "3 arrivals of 4 warps"},
        {"signal @ck ", "", "signals no channel"},
        {"%n1 = add", "%kg = get @kb(%n) : bf16[j, d]#kr; %n1 = add", "read by threads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new("test");
        char *text =
            replaced(arena, read_corpus(arena, "chained_sm90a.tir"), cases[i].from, cases[i].to);
        Emitted e =
            emit_text(text, "sm_90a", (BackendOptions){.emit = BACKEND_PTX, .opt_level = 2});
        cr_expect(!e.text, "case %zu", i);
        cr_expect(strstr(e.messages, cases[i].message), "case %zu: %s", i, e.messages);
        arena_free(e.arena);
        arena_free(arena);
    }
    Arena *arena = arena_new("test");
    Emitted e = emit_text(read_corpus(arena, "chained_sm90a.tir"), "sm_80",
                          (BackendOptions){.emit = BACKEND_PTX, .opt_level = 2});
    cr_expect(!e.text && strstr(e.messages, "tma"), "%s", e.messages);
    arena_free(arena);
    arena_free(e.arena);
}

// --- the protocol of roles ---

static char *protocol(Arena *arena, const char *text) {
    Module *m = parse(arena, text);
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    PassOptions options = {.passes = "protocol"};
    PassCtx ctx = {.module = m,
                   .target = target_find("sm_90a"),
                   .options = &options,
                   .scratch = arena_new("scratch"),
                   .scratch_bytes = lower_scratch_bytes,
                   .diags = diags};
    bool ok = passes_run(&ctx);
    arena_free(ctx.scratch);
    return ok ? "" : diags_text(diags, arena);
}

Test(backend_wgmma, protocol) {
    static const Wrong cases[] = {
        {"%q2 = add %q.1, 1:i32", "%q2 = add %q.1, 2:i32", "protocol rule C1"},
        {"%p1 = for k in 0..%K", "%p1 = for k in 0..64", "protocol rule C5"},
        {"mma.issue[k] @a(%q.1)", "mma.issue[k] @a(%p.1)", "protocol rule C2"},
        {"copy @w[k, n] to @bb(%q) signal @ab {engine = tma, check = [0, 1]}", "",
         "protocol rule C2"},
    };
    Arena *arena = arena_new("test");
    const char *text = read_corpus(arena, "linear_gelu_sm90a.tir");
    cr_expect_str_eq(protocol(arena, text), "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *says = protocol(arena, replaced(arena, text, cases[i].from, cases[i].to));
        cr_expect(strstr(says, cases[i].message), "case %zu: %s", i, says);
    }
    arena_free(arena);
}

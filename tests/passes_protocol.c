// The protocol proof against broken pipelines: the placed text of a pipelined product, with one
// thing wrong each time, must be refused by the rule that it breaks; the text itself is accepted.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/pass.h"

static const char source[] = "tir tensor sm_80\n"
                             "kernel mm(dim M, dim K, dim N, in @x: bf16[%M, %K], in @w: bf16[%K, "
                             "%N], out @y: f32[%M, %N]) {\n"
                             "  %xv = load @x[M, K] : bf16[M, K]\n"
                             "  %wv = load @w[K, N] : bf16[K, N]\n"
                             "  %d = dot[K] %xv, %wv : f32[M, N]\n"
                             "  store @y[M, N], %d\n"
                             "}\n";

typedef struct Fixture {
    Arena *arena, *scratch;
    Interner *interner;
    Diags *diags;
    char *placed;
} Fixture;

static PassCtx context(Fixture *f, Module *m, const PassOptions *options) {
    return (PassCtx){.module = m,
                     .target = target_find("sm_80"),
                     .options = options,
                     .scratch = f->scratch,
                     .diags = f->diags};
}

static Fixture setup(void) {
    Fixture f = {.arena = arena_new("test"), .scratch = arena_new("scratch")};
    f.interner = interner_new(f.arena);
    f.diags = diags_new(f.arena, source_map_new(f.arena), NULL);
    const char *error = NULL;
    Module *m = ir_parse(f.arena, f.interner, source, strlen(source), &error);
    cr_assert(m, "%s", error);
    PassOptions options = {0};
    PassCtx ctx = context(&f, m, &options);
    cr_assert(passes_run(&ctx), "%s", diags_text(f.diags, f.arena));
    IrText text = ir_print(f.arena, m, (IrPrintOptions){0});
    f.placed = arena_strndup(f.arena, text.data, text.len);
    return f;
}

static void teardown(Fixture *f) {
    arena_free(f->scratch);
    arena_free(f->arena);
}

// Replaces the nth (from 0) `from` by `to`; NULL when there is none.
static char *replace(Arena *a, const char *text, const char *from, int nth, const char *to) {
    const char *at = text;
    for (int i = 0; (at = strstr(at, from)) && i < nth; i++)
        at += strlen(from);
    if (!at)
        return NULL;
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

// The message of the proof, or NULL when it accepts the text.
static const char *prove(Fixture *f, const char *text) {
    const char *error = NULL;
    Module *m = ir_parse(f->arena, f->interner, text, strlen(text), &error);
    cr_assert(m, "%s", error);
    PassOptions options = {0};
    f->diags = diags_new(f->arena, source_map_new(f->arena), NULL);
    PassCtx ctx = context(f, m, &options);
    for (int i = 0; i < m->nkernel; i++)
        if (!pass_protocol(&ctx, m->kernel[i]))
            return diag_message(diags_at(f->diags, 0));
    return NULL;
}

Test(protocol, accepts_what_the_pipeline_makes) {
    Fixture f = setup();
    cr_assert(strstr(f.placed, "mode = group, stages = 4"), "%s", f.placed);
    const char *error = prove(&f, f.placed);
    cr_expect(!error, "%s", error);
    teardown(&f);
}

typedef struct Mutation {
    const char *what, *from;
    int nth;
    const char *to, *rule;
} Mutation;

// In the text: `acquire @ring(%f)` and its copies and commit stand once in the prologue and once in
// the loop, `wait`, `get`s and `release` once in the loop.
static const Mutation mutations[] = {
    {"waits with too many groups in flight", "{pending = 2}", 0, "{pending = 3}", "C4"},
    {"a ring of one slot less", "mode = group, stages = 4", 0, "mode = group, stages = 3", "R1"},
    {"prologue fills too few", "in 0..3 carry", 0, "in 0..2 carry", "C"},
    {"prologue fills too many", "in 0..3 carry", 0, "in 0..4 carry", "R1"},
    {"the producer's position does not move", "%f.2 = add %f, 1:i32", 0, "%f.2 = add %f, 0:i32",
     "C1"},
    {"the producer's position jumps", "%f.2 = add %f, 1:i32", 0, "%f.2 = add %f, 2:i32", "C1"},
    {"the prologue does not acquire", "acquire @ring(%f)\n", 0, "\n", "C"},
    {"the prologue does not commit", "commit @ring(%f)\n", 0, "\n", "C1"},
};

Test(protocol, refuses_each_mutation) {
    Fixture f = setup();
    for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        const Mutation *m = &mutations[i];
        char *text = replace(f.arena, f.placed, m->from, m->nth, m->to);
        cr_assert(text, "%s: no `%s` in\n%s", m->what, m->from, f.placed);
        const char *error = prove(&f, text);
        char *rule = arena_printf(f.arena, "protocol rule %s", m->rule);
        cr_expect(error && strstr(error, rule), "%s: %s, not rule %s", m->what,
                  error ? error : "accepted", m->rule);
    }
    teardown(&f);
}

// Lines of the loop, found by what they start with; each is left out, or moved behind the release.
static char *without_line(Arena *a, const char *text, const char *start, int nth) {
    const char *at = text;
    for (int i = 0; (at = strstr(at, start)) && i < nth; i++)
        at += strlen(start);
    if (!at)
        return NULL;
    const char *end = strchr(at, '\n');
    return arena_printf(a, "%.*s%s", (int)(at - text), text, end + 1);
}

Test(protocol, refuses_each_missing_op) {
    Fixture f = setup();
    static const struct {
        const char *start;
        int nth;
        const char *rule;
    } lines[] = {
        {"acquire @ring", 1, "C"}, {"commit @ring", 1, "C"}, {"wait @ring", 0, "C2"},
        {"release @ring", 0, "C"}, {"copy @w", 0, "C2"},     {"copy @x", 0, "C2"},
        {"copy @w", 1, "C2"},      {"copy @x", 1, "C2"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *text = without_line(f.arena, f.placed, lines[i].start, lines[i].nth);
        cr_assert(text, "no `%s`", lines[i].start);
        const char *error = prove(&f, text);
        char *rule = arena_printf(f.arena, "protocol rule %s", lines[i].rule);
        cr_expect(error && strstr(error, rule), "without %s (%d): %s", lines[i].start, lines[i].nth,
                  error ? error : "accepted");
    }
    teardown(&f);
}

Test(protocol, refuses_doubled_ops) {
    Fixture f = setup();
    static const char *const starts[] = {"copy @w",      "copy @x",    "acquire @ring",
                                         "commit @ring", "wait @ring", "release @ring"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *at = strstr(f.placed, starts[i]), *end = strchr(at, '\n');
        char *text = arena_printf(f.arena, "%.*s%.*s%s", (int)(end + 1 - f.placed), f.placed,
                                  (int)(end + 1 - at), at, end + 1);
        const char *error = prove(&f, text);
        cr_expect(error && strstr(error, "protocol rule C"), "doubled %s: %s", starts[i],
                  error ? error : "accepted");
    }
    teardown(&f);
}

// --- loops around loops ---

// A ring of two slots in `deep` loops around each other; `body` is the innermost one's. Where
// `goes_on`, the ring is declared outside of all and its position is carried through them.
static const char *nested(Arena *a, int deep, bool goes_on, const char *body) {
    static const char ring[] = "@b = buf.shared {stages = 2} : f32[m]#b\n"
                               "@q = chan @b {mode = group, stages = 2}\n";
    const char *text = arena_printf(
        a,
        "tir placed sm_80\nlayout #b = off(m:1, m:2)\n"
        "kernel k(dim M, %%n: index, in @x: f32[%%M]) {\naxis m of M by 4\n"
        "launch %%pid in 0..1 args(%%M, %%n; @x) {warps = 1, smem = 64} {\nwith m in 0..%%M {\n%s",
        goes_on ? ring : "");
    const char *position = "0:i32";
    for (int i = 0; i < deep; i++) {
        text = goes_on ? arena_printf(
                             a, "%s%%r%d = for %%i%d in 0..%%n carry (%%p%d = %s : i32) : i32 {\n",
                             text, i, i, i, position)
                       : arena_printf(a, "%sfor %%i%d in 0..%%n {\n", text, i);
        position = goes_on ? arena_printf(a, "%%p%d", i) : position;
    }
    text = arena_printf(a, "%s%s%%s = for %%i in 0..%%n carry (%%p = %s : i32) : i32 {\n%s}\n",
                        text, goes_on ? "" : ring, position, body);
    for (int i = deep; i-- > 0;)
        text = goes_on ? arena_printf(a, "%syield %%%s\n}\n", text,
                                      i + 1 < deep ? arena_printf(a, "r%d", i + 1) : "s")
                       : arena_printf(a, "%s}\n", text);
    return arena_printf(a, "%s}\n}\n}\n", text);
}

#define FILL "acquire @q(%p)\ncopy @x[m] to @b(%p) signal @q\ncommit @q(%p)\n"
#define READ "wait @q(%p) {pending = 0}\n%v = get @b(%p) : f32[m]\nrelease @q(%p)\n"
#define NEXT "%t = add %p, 1:i32 : i32\nyield %t\n"

// Walking each loop in each iteration of those around it would take 11^100 times as long.
Test(protocol, loops_around_loops) {
    Fixture f = setup();
    const char *error = prove(&f, nested(f.arena, 100, false, FILL READ NEXT));
    cr_expect(!error, "%s", error);
    error = prove(&f, nested(f.arena, 3, true, FILL READ NEXT));
    cr_expect(!error, "%s", error);
    error = prove(&f, nested(f.arena, 12, true, FILL READ NEXT));
    cr_expect(error && strstr(error, "goes on through so many loops"), "%s", error);
    teardown(&f);
}

// What goes wrong in a later iteration of an outer loop only is found behind many equal ones.
Test(protocol, later_iterations_of_outer_loops) {
    Fixture f = setup();
    const char *error = prove(&f, nested(f.arena, 3, false, FILL NEXT));
    cr_expect(error && strstr(error, "rule C6"), "%s", error);
    static const char once[] = "for %j in 0..1 {\n" FILL "}\n" NEXT;
    error = prove(&f, nested(f.arena, 40, false, once));
    cr_expect(error && strstr(error, "protocol rule"), "%s", error);
    // Each walk of the inner loop starts at 0 again, the ring does not.
    char *text = replace(f.arena, nested(f.arena, 3, true, FILL READ NEXT),
                         "carry (%p = %p2 : i32)", 0, "carry (%p = 0:i32 : i32)");
    cr_assert(text);
    error = prove(&f, text);
    cr_expect(error && strstr(error, "rule C1"), "%s", error);
    teardown(&f);
}

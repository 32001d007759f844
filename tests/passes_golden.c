// Goldens of passes: each case is tile IR, the passes to run, and the text that must come out; a
// rewrite has a case where it fires and one where it must not. FUSE_UPDATE_GOLDENS=1 rewrites the
// file.
//
//   === name
//   sm_80 simplify,fuse
//   (IR)
//   ---
//   (IR, or `error: ...`)
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/pass.h"

static const char path[] = FUSE_SOURCE_DIR "/tests/corpus/passes/goldens.txt";

typedef struct Case {
    const char *name, *target, *passes, *input, *expected;
} Case;

static char *read_all(Arena *a) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(a, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

// Cuts `text` in place at the first `mark`; returns what follows it.
static char *cut(char *text, const char *mark) {
    char *at = strstr(text, mark);
    cr_assert(at, "no `%s` in %.60s", mark, text);
    *at = 0;
    return at + strlen(mark);
}

// What passes make reads back from the generic form too.
static void check_generic(Arena *a, const Case *c, const Module *m, const char *text) {
    const char *error = NULL;
    IrText generic = ir_print(a, m, (IrPrintOptions){.generic = true});
    const Module *back = ir_parse(a, interner_new(a), generic.data, generic.len, &error);
    cr_assert(back, "%s: %s in\n%s", c->name, error, generic.data);
    cr_expect_str_eq(ir_print(a, back, (IrPrintOptions){0}).data, text, "%s", c->name);
}

static const char *run_case(Arena *a, const Case *c) {
    Arena *scratch = arena_new("scratch");
    Diags *diags = diags_new(a, source_map_new(a), NULL);
    const char *error = NULL;
    Module *m = ir_parse(a, interner_new(a), c->input, strlen(c->input), &error);
    cr_assert(m, "%s: %s", c->name, error);
    PassOptions options = {.passes = c->passes};
    PassCtx ctx = {.module = m,
                   .target = target_find(c->target),
                   .options = &options,
                   .scratch = scratch,
                   .diags = diags};
    cr_assert(ctx.target, "%s: target %s", c->name, c->target);
    const char *out;
    if (passes_run(&ctx)) {
        IrText text = ir_print(a, m, (IrPrintOptions){0});
        out = arena_strndup(a, text.data, text.len);
        check_generic(a, c, m, out);
    } else {
        out = arena_printf(a, "error: %s\n", diag_message(diags_at(diags, 0)));
    }
    arena_free(scratch);
    return out;
}

static char *next_case(char *text, Case *c) {
    char *name = strstr(text, "=== ");
    if (!name)
        return NULL;
    c->name = name + 4;
    char *target = cut(name + 4, "\n");
    c->target = target;
    char *passes = cut(target, " ");
    c->passes = passes;
    char *input = cut(passes, "\n");
    c->input = input;
    char *expected = cut(input, "---\n");
    c->expected = expected;
    if (strncmp(expected, "=== ", 4) == 0) { // a new case, without its text yet
        c->expected = "";
        return expected;
    }
    char *end = strstr(expected, "\n=== ");
    if (!end)
        return expected + strlen(expected);
    end[0] = 0;
    return end + 1;
}

static bool same_text(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    while (n > 0 && a[n - 1] == '\n')
        n--;
    while (m > 0 && b[m - 1] == '\n')
        m--;
    return n == m && memcmp(a, b, n) == 0;
}

Test(passes, goldens) {
    Arena *a = arena_new("test");
    bool update = getenv("FUSE_UPDATE_GOLDENS") != NULL;
    char *text = read_all(a);
    FILE *out = NULL;
    Case c;
    int n = 0;
    if (update) {
        out = fopen(path, "wb");
        cr_assert(out);
    }
    for (char *at = text; (at = next_case(at, &c)); n++) {
        const char *got = run_case(a, &c);
        if (out)
            fprintf(out, "%s=== %s\n%s %s\n%s---\n%s", n ? "\n" : "", c.name, c.target, c.passes,
                    c.input, got);
        else
            cr_expect(same_text(got, c.expected), "%s:\n%s", c.name, got);
    }
    if (out)
        fclose(out);
    cr_expect(n >= 20, "%d cases", n);
    arena_free(a);
}

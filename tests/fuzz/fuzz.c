// See fuzz.h.
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/pass.h"

Fuzz fuzz_begin(uint8_t pick) {
    int n = 0;
    while (target_at(n))
        n++;
    Fuzz f = {
        .arena = arena_new("fuzz"), .scratch = arena_new("scratch"), .target = target_at(pick % n)};
    f.interner = interner_new(f.arena);
    f.sources = source_map_new(f.arena);
    f.diags = diags_new(f.arena, f.sources, NULL);
    return f;
}

void fuzz_end(Fuzz *f) {
    diags_text(f->diags, f->arena);
    arena_free(f->scratch);
    arena_free(f->arena);
}

static void fail(const char *what, const char *detail, const char *text) {
    fprintf(stderr, "fuzz: %s: %s\n%s\n", what, detail ? detail : "", text ? text : "");
    abort();
}

void fuzz_no_internal_error(const Fuzz *f) {
    for (uint32_t i = 0; i < diags_count(f->diags); i++)
        if (diag_id(diags_at(f->diags, i)) == DIAG_INTERNAL)
            fail("internal error", diag_message(diags_at(f->diags, i)), NULL);
}

void fuzz_check_module(Fuzz *f) {
    const char *error = NULL;
    IrText once = ir_print(f->arena, f->module, (IrPrintOptions){0});
    if (!ir_verify(f->scratch, f->module, &error))
        fail("invalid IR", error, once.data);
    arena_reset(f->scratch);
    Module *again = ir_parse(f->arena, f->interner, once.data, once.len, &error);
    if (!again)
        fail("printed IR is not read back", error, once.data);
    IrText twice = ir_print(f->arena, again, (IrPrintOptions){0});
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        fail("printed IR reads back as another", once.data, twice.data);
}

bool fuzz_passes(Fuzz *f, bool made_by_us) {
    PassOptions options = {
        .explain = true, .nschedule = f->schedules.n, .schedule = f->schedules.items};
    PassCtx ctx = {.module = f->module,
                   .target = f->target,
                   .options = &options,
                   .scratch = f->scratch,
                   .diags = f->diags};
    bool ok = passes_run(&ctx);
    if (made_by_us)
        fuzz_no_internal_error(f);
    if (!ok && !diags_has_errors(f->diags))
        fail("the passes failed without a message", NULL, NULL);
    if (!ok || diags_has_errors(f->diags))
        return false;
    fuzz_check_module(f);
    return true;
}

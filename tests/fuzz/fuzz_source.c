// Fuzzer of the compiler from source text to placed IR.
//
// Input: one byte that picks the target, then a .fk text. What must hold: no crash, leak or hang;
// whatever the front end accepts is valid IR that reads back as itself, and no pass reports an
// internal error.
#include "tests/fuzz/fuzz.h"

#include "lang/parse.h"

static void lower(Fuzz *f, const char *text, size_t len) {
    FileId file = source_add(f->sources, "fuzz.fk", text, len);
    AstFile *ast = lang_parse(f->arena, f->interner, f->sources, file, f->diags);
    if (diags_has_errors(f->diags))
        return;
    FrontendOptions options = {.target = f->target->models};
    f->module =
        frontend_lower(f->arena, f->interner, f->sources, ast, &options, f->diags, &f->schedules);
    fuzz_no_internal_error(f);
    if (diags_has_errors(f->diags))
        return;
    f->module->target = intern_cstr(f->interner, f->target->name);
    fuzz_check_module(f);
    fuzz_passes(f, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    Fuzz f = fuzz_begin(data[0]);
    lower(&f, (const char *)data + 1, size - 1);
    fuzz_end(&f);
    return 0;
}

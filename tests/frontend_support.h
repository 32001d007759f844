/* What the tests of the front end share: one compilation to tensor IR, texts, files. */
#ifndef FUSE_TESTS_FRONTEND_SUPPORT_H
#define FUSE_TESTS_FRONTEND_SUPPORT_H

#include "frontend/frontend.h"
#include "lang/parse.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused))

typedef struct Front {
    Arena *arena;
    Interner *interner;
    SourceMap *sources;
    Diags *diags;
    ScheduleList schedules;
    Module *module;
} Front;

UNUSED static Front front_new(void) {
    Front f = {.arena = arena_new("test")};
    f.interner = interner_new(f.arena);
    f.sources = source_map_new(f.arena);
    f.diags = diags_new(f.arena, f.sources, NULL);
    return f;
}

UNUSED static void front_free(Front *f) {
    arena_free(f->arena);
}

/* Lowers a text. What comes out without errors must verify and read back as itself. */
UNUSED static void front_lower(Front *f, const char *name, const char *text,
                               const FrontendOptions *options) {
    FileId file = source_add(f->sources, name, text, strlen(text));
    AstFile *ast = lang_parse(f->arena, f->interner, f->sources, file, f->diags);
    f->module =
        frontend_lower(f->arena, f->interner, f->sources, ast, options, f->diags, &f->schedules);
    if (diags_has_errors(f->diags))
        return;
    const char *error = NULL;
    Arena *scratch = arena_new("verify");
    IrText printed = ir_print(f->arena, f->module, (IrPrintOptions){0});
    bool ok = ir_verify(scratch, f->module, &error);
    cr_expect(ok, "%s: %s\n%s", name, ok ? "" : error, printed.data);
    arena_free(scratch);
    Module *again = ir_parse(f->arena, f->interner, printed.data, printed.len, &error);
    cr_assert(again, "%s: %s\n%s", name, again ? "" : error, printed.data);
    IrText twice = ir_print(f->arena, again, (IrPrintOptions){0});
    cr_expect_str_eq(twice.data, printed.data, "%s", name);
}

UNUSED static char *front_read(Arena *arena, const char *path) {
    FILE *file = fopen(arena_printf(arena, FUSE_SOURCE_DIR "/%s", path), "rb");
    if (!file)
        return NULL;
    VEC(char) text = {0};
    for (int c = fgetc(file); c != EOF; c = fgetc(file))
        vec_push(arena, &text, (char)c);
    fclose(file);
    vec_push(arena, &text, '\0');
    return text.data;
}

UNUSED static bool front_updates(void) {
    return getenv("FUSE_UPDATE") != NULL;
}

UNUSED static void front_write(Arena *arena, const char *path, const char *text) {
    FILE *file = fopen(arena_printf(arena, FUSE_SOURCE_DIR "/%s", path), "wb");
    cr_assert_not_null(file, "cannot write %s", path);
    fputs(text, file);
    fclose(file);
}

#endif

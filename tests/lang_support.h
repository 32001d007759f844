/* What the tests of lang/ share: one compilation's objects, files, comparison of trees. */
#ifndef FUSE_TESTS_LANG_SUPPORT_H
#define FUSE_TESTS_LANG_SUPPORT_H

#include "lang/ast_print.h"
#include "lang/parse.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED __attribute__((unused))

typedef struct Lang {
    Arena *arena;
    Interner *interner;
    SourceMap *sources;
    Diags *diags;
    FileId file; /* of the last text parsed */
} Lang;

UNUSED static Lang lang_new(void) {
    Lang lang = {.arena = arena_new("test")};
    lang.interner = interner_new(lang.arena);
    lang.sources = source_map_new(lang.arena);
    lang.diags = diags_new(lang.arena, lang.sources, NULL);
    return lang;
}

UNUSED static void lang_free(Lang *lang) {
    arena_free(lang->arena);
}

UNUSED static AstFile *lang_parse_bytes(Lang *lang, const char *name, const char *text,
                                        size_t len) {
    lang->file = source_add(lang->sources, name, text, len);
    return lang_parse(lang->arena, lang->interner, lang->sources, lang->file, lang->diags);
}

UNUSED static AstFile *lang_parse_text(Lang *lang, const char *text) {
    return lang_parse_bytes(lang, "t.fk", text, strlen(text));
}

/* The whole of a file below the source folder, NUL-terminated. */
UNUSED static char *lang_read_file(Lang *lang, const char *path, size_t *len) {
    FILE *file = fopen(arena_printf(lang->arena, FUSE_SOURCE_DIR "/%s", path), "rb");
    cr_assert_not_null(file, "cannot read %s", path);
    VEC(char) text = {0};
    for (int c = fgetc(file); c != EOF; c = fgetc(file))
        vec_push(lang->arena, &text, (char)c);
    fclose(file);
    vec_push(lang->arena, &text, '\0');
    if (len)
        *len = text.len - 1;
    return text.data;
}

#endif

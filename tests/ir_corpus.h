// Files of cases in tests/corpus/ir: `=== title`, a text, `---`, what is expected of it.
//
// With FUSE_UPDATE set the expectations are written anew; read the difference before committing it.
#ifndef FUSE_TESTS_IR_CORPUS_H
#define FUSE_TESTS_IR_CORPUS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/base/arena.h"

static inline char *corpus_read(Arena *arena, const char *path) {
    FILE *f = fopen(arena_printf(arena, FUSE_SOURCE_DIR "/%s", path), "rb");
    cr_assert(f, "no file %s", path);
    cr_assert(fseek(f, 0, SEEK_END) == 0);
    long size = ftell(f);
    rewind(f);
    char *text = arena_alloc(arena, (size_t)size + 1);
    cr_assert(fread(text, 1, (size_t)size, f) == (size_t)size);
    text[size] = 0;
    fclose(f);
    return text;
}

static inline bool corpus_updates(void) {
    return getenv("FUSE_UPDATE") != NULL;
}

// Cuts `text` in front of `mark`; what follows it, or NULL.
static inline char *corpus_cut(char *text, const char *mark) {
    char *at = strstr(text, mark);
    if (!at)
        return NULL;
    *at = 0;
    return at + strlen(mark);
}

// What a case gives: its text as it should stand in the file (NULL: unchanged) and the result.
typedef struct CorpusGot {
    const char *text, *result;
} CorpusGot;
typedef CorpusGot (*CorpusFn)(Arena *arena, const char *title, const char *text);

// Runs every case of a file; compares, or updates it. Returns how many there are.
static inline int corpus_run(const char *path, CorpusFn fn) {
    Arena *arena = arena_new("corpus");
    char *rest = corpus_cut(corpus_read(arena, path), "=== ");
    char *whole = NULL;
    size_t len = 0;
    FILE *updated = open_memstream(&whole, &len);
    int count = 0;
    while (rest) {
        char *title = rest, *text = corpus_cut(title, "\n");
        cr_assert(text, "%s: a case without a text", path);
        rest = corpus_cut(text, "\n=== ");
        char *want = corpus_cut(text, "\n---\n");
        if (!want && corpus_updates())
            corpus_cut(text, "\n---");
        Arena *own = arena_new("case");
        CorpusGot got = fn(own, title, arena_printf(own, "%s\n", text));
        if (!corpus_updates())
            cr_expect(want && strcmp(got.result, want) == 0, "%s: %s: got\n%s", path, title,
                      got.result);
        fprintf(updated, "%s=== %s\n%s%s---\n%s", count ? "\n" : "", title,
                got.text ? got.text : text, got.text ? "" : "\n", got.result);
        arena_free(own);
        count++;
    }
    fclose(updated);
    if (corpus_updates()) {
        FILE *f = fopen(arena_printf(arena, FUSE_SOURCE_DIR "/%s", path), "wb");
        cr_assert(f && fwrite(whole, 1, len, f) == len);
        fclose(f);
    }
    free(whole);
    arena_free(arena);
    return count;
}

#endif

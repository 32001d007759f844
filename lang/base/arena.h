/* Arenas: memory by lifetime.
 *
 * An arena hands out zeroed pieces that are freed all at once, by arena_reset or arena_free; there
 * is no per-piece free. Every stage takes the arena that its results live in as first argument.
 *
 * Invariants: pieces are 16-byte aligned, zeroed and never move. In FUSE_DEBUG builds each piece is
 * a malloc of its own, so that a memory checker sees overruns and use after reset. Running out of
 * memory aborts the process: no caller could do better. An arena is not thread-safe.
 */
#ifndef FUSE_LANG_BASE_ARENA_H
#define FUSE_LANG_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

/* `name` is kept for debugging and must outlive the arena (a literal). */
Arena *arena_new(const char *name);
/* Frees every piece; the arena may be used again. */
void arena_reset(Arena *arena);
/* Frees every piece and the arena itself. NULL is allowed. */
void arena_free(Arena *arena);

/* A zeroed piece of `size` bytes; `size` 0 gives a valid unique pointer. */
void *arena_alloc(Arena *arena, size_t size);
/* A zeroed array; aborts where count * size overflows. */
void *arena_array(Arena *arena, size_t count, size_t size);
/* A copy of `size` bytes. */
void *arena_copy(Arena *arena, const void *data, size_t size);
/* NUL-terminated copies and formatted strings. */
char *arena_strdup(Arena *arena, const char *text);
char *arena_strndup(Arena *arena, const char *text, size_t len);
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Bytes handed out since the last reset. */
size_t arena_used(const Arena *arena);
const char *arena_name(const Arena *arena);

/* Shorthand: one zeroed T, or `count` of them. */
#define ARENA_NEW(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_array((arena), (count), sizeof(T)))

#endif

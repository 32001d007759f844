/* Arenas: memory by lifetime.
 *
 * An arena hands out zeroed pieces that are freed all at once, by arena_reset or arena_free; there
 * is no per-piece free. Every stage takes the arena that its results live in as first argument.
 *
 * Invariants: pieces are 16-byte aligned, zeroed and never move. In FUSE_DEBUG builds each piece is
 * a malloc of its own, so that a memory checker sees overruns and use after reset. Running out of
 * memory, or past the limit of the arena, ends the innermost guard_run of the thread (guard.h),
 * which frees the arenas made in it. An arena is not thread-safe; it is freed on the thread that
 * made it, but for one that arena_detach was called for.
 */
#ifndef FUSE_LANG_BASE_ARENA_H
#define FUSE_LANG_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

/* Bytes that an arena hands out at most, unless arena_limit says otherwise. */
#define ARENA_MOST ((size_t)2 << 30)

typedef struct Arena Arena;

/* `name` is kept for debugging and must outlive the arena (a literal). */
Arena *arena_new(const char *name);
/* Frees every piece; the arena may be used again. */
void arena_reset(Arena *arena);
/* Frees every piece and the arena itself. NULL is allowed. */
void arena_free(Arena *arena);

void arena_limit(Arena *arena, size_t most);
/* The end of a guard_run does not free it any more. */
void arena_detach(Arena *arena);

/* A zeroed piece of `size` bytes; `size` 0 gives a valid unique pointer. */
void *arena_alloc(Arena *arena, size_t size);
/* A zeroed array; more than there can be is too much memory. */
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

/* For guard.c: frees the arenas of a list; moves them to another (NULL: to none). */
void arenas_free(Arena *list);
void arenas_move(Arena **from, Arena **to);

/* Shorthand: one zeroed T, or `count` of them. */
#define ARENA_NEW(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, count) ((T *)arena_array((arena), (count), sizeof(T)))

#endif

/* Arenas: see arena.h.
 *
 * Release builds bump a pointer through a list of growing chunks; debug builds malloc each piece
 * and keep them in a list, so that ASan knows every bound.
 */
#include "lang/base/arena.h"
#include "lang/base/guard.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_FIRST_CHUNK = 4096, ARENA_LAST_CHUNK = 1 << 20 };

/* A chunk (release) or a single piece (debug); the header keeps the payload 16-byte aligned. */
typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t size;
};
static_assert(sizeof(Chunk) == ARENA_ALIGN, "payload alignment");

struct Arena {
    const char *name;
    Chunk *chunks;
    size_t used, most;
    size_t chunk_used;   /* of the first chunk; release builds only */
    Arena *next, **link; /* in the list of its guard_run; NULL: in none */
};

static void *memory_get(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        guard_out_of_memory("there is no memory left");
    return memory;
}

/* Before a piece is made. */
static void use(Arena *arena, size_t size) {
    if (size > arena->most || arena->used > arena->most - size) {
        char reason[80];
        snprintf(reason, sizeof reason, "it needs more than %zu MiB of memory", arena->most >> 20);
        guard_out_of_memory(reason);
    }
    arena->used += size;
}

static char *chunk_payload(Chunk *chunk) {
    return (char *)(chunk + 1);
}

static Chunk *chunk_push(Arena *arena, size_t size) {
    Chunk *chunk = memory_get(sizeof(Chunk) + size);
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

/* --- the list of a guard_run --- */

static void list_push(Arena **head, Arena *arena) {
    if (!head)
        return;
    arena->next = *head;
    arena->link = head;
    if (arena->next)
        arena->next->link = &arena->next;
    *head = arena;
}

static void list_drop(Arena *arena) {
    if (!arena->link)
        return;
    *arena->link = arena->next;
    if (arena->next)
        arena->next->link = arena->link;
    arena->next = NULL;
    arena->link = NULL;
}

Arena *arena_new(const char *name) {
    Arena *arena = memory_get(sizeof(Arena));
    arena->name = name;
    arena->most = ARENA_MOST;
    list_push(guard_arenas(), arena);
    return arena;
}

void arena_limit(Arena *arena, size_t most) {
    arena->most = most < SIZE_MAX / 2 ? most : SIZE_MAX / 2; /* so that sums do not overflow */
}

void arena_detach(Arena *arena) {
    list_drop(arena);
}

void arenas_free(Arena *list) {
    for (Arena *next; list; list = next) {
        next = list->next;
        list->link = NULL;
        arena_reset(list);
        free(list);
    }
}

void arenas_move(Arena **from, Arena **to) {
    while (*from) {
        Arena *arena = *from;
        list_drop(arena);
        list_push(to, arena);
    }
}

void arena_reset(Arena *arena) {
    Chunk *chunk = arena->chunks;
    while (chunk) {
        Chunk *next = chunk->next;
#ifdef FUSE_DEBUG
        memset(chunk_payload(chunk), 0xdd, chunk->size); /* poison, for runs without ASan */
#endif
        free(chunk);
        chunk = next;
    }
    arena->chunks = NULL;
    arena->used = 0;
    arena->chunk_used = 0;
}

void arena_free(Arena *arena) {
    if (!arena)
        return;
    list_drop(arena);
    arena_reset(arena);
    free(arena);
}

#ifdef FUSE_DEBUG
void *arena_alloc(Arena *arena, size_t size) {
    use(arena, size);
    return chunk_payload(chunk_push(arena, size));
}
#else
static size_t chunk_size_next(const Arena *arena, size_t need) {
    size_t size = arena->chunks ? arena->chunks->size * 2 : ARENA_FIRST_CHUNK;
    if (size > ARENA_LAST_CHUNK)
        size = ARENA_LAST_CHUNK;
    return size < need ? need : size;
}

void *arena_alloc(Arena *arena, size_t size) {
    use(arena, size);
    size_t need = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (need == 0)
        need = ARENA_ALIGN;
    if (!arena->chunks || arena->chunks->size - arena->chunk_used < need) {
        chunk_push(arena, chunk_size_next(arena, need));
        arena->chunk_used = 0;
    }
    void *piece = chunk_payload(arena->chunks) + arena->chunk_used;
    arena->chunk_used += need;
    return piece;
}
#endif

void *arena_array(Arena *arena, size_t count, size_t size) {
    bool overflows = size && count > SIZE_MAX / size;
    return arena_alloc(arena, overflows ? SIZE_MAX : count * size);
}

void *arena_copy(Arena *arena, const void *data, size_t size) {
    void *copy = arena_alloc(arena, size);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *arena_strndup(Arena *arena, const char *text, size_t len) {
    char *copy = arena_alloc(arena, len + 1);
    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text) {
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len < 0)
        return arena_strdup(arena, "");
    char *text = arena_alloc(arena, (size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, format, args);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

size_t arena_used(const Arena *arena) {
    return arena->used;
}

const char *arena_name(const Arena *arena) {
    return arena->name;
}

/* Interned strings: see intern.h. Open addressing, FNV-1a, load at most one half. */
#include "lang/base/intern.h"

#include <string.h>

typedef struct Slot {
    Str text; /* NULL: empty */
    size_t len;
    uint64_t hash;
} Slot;

struct Interner {
    Arena *arena;
    Slot *slots;
    uint32_t count, cap; /* cap is a power of two */
};

enum { INTERN_FIRST_CAP = 64 };

static uint64_t hash_bytes(const char *text, size_t len) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static Slot *slot_find(Slot *slots, uint32_t cap, const char *text, size_t len, uint64_t hash) {
    uint32_t at = (uint32_t)hash & (cap - 1);
    while (slots[at].text && !(slots[at].hash == hash && slots[at].len == len &&
                               memcmp(slots[at].text, text, len) == 0))
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

static void interner_grow(Interner *interner) {
    uint32_t cap = interner->cap * 2;
    Slot *slots = ARENA_ARRAY(interner->arena, Slot, cap);
    for (uint32_t i = 0; i < interner->cap; i++) {
        Slot *old = &interner->slots[i];
        if (old->text)
            *slot_find(slots, cap, old->text, old->len, old->hash) = *old;
    }
    interner->slots = slots;
    interner->cap = cap;
}

Interner *interner_new(Arena *arena) {
    Interner *interner = ARENA_NEW(arena, Interner);
    interner->arena = arena;
    interner->cap = INTERN_FIRST_CAP;
    interner->slots = ARENA_ARRAY(arena, Slot, interner->cap);
    return interner;
}

Str intern(Interner *interner, const char *text, size_t len) {
    uint64_t hash = hash_bytes(text, len);
    Slot *slot = slot_find(interner->slots, interner->cap, text, len, hash);
    if (slot->text)
        return slot->text;
    if (interner->count * 2 >= interner->cap) {
        interner_grow(interner);
        slot = slot_find(interner->slots, interner->cap, text, len, hash);
    }
    *slot = (Slot){.text = arena_strndup(interner->arena, text, len), .len = len, .hash = hash};
    interner->count++;
    return slot->text;
}

Str intern_cstr(Interner *interner, const char *text) {
    return intern(interner, text, strlen(text));
}

Str intern_find(const Interner *interner, const char *text, size_t len) {
    uint64_t hash = hash_bytes(text, len);
    return slot_find(interner->slots, interner->cap, text, len, hash)->text;
}

uint32_t intern_count(const Interner *interner) {
    return interner->count;
}

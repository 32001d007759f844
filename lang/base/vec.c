/* Growing vectors: see vec.h. Capacity doubles; the old array stays in the arena. */
#include "lang/base/vec.h"
#include "lang/base/guard.h"

#include <string.h>

void *vec_grow(Arena *arena, void *data, uint32_t len, uint32_t *cap, uint32_t need, size_t size) {
    if (need <= *cap)
        return data;
    if (need > UINT32_MAX / 2)
        guard_out_of_memory("a list has more than 2^31 elements");
    uint32_t grown = *cap ? *cap * 2 : 4;
    if (grown < need)
        grown = need;
    void *fresh = arena_array(arena, grown, size);
    if (len)
        memcpy(fresh, data, len * size);
    *cap = grown;
    return fresh;
}

uint32_t vec_zero(void *data, uint32_t len, uint32_t new_len, size_t size) {
    if (new_len > len)
        memset((char *)data + len * size, 0, (new_len - len) * size);
    return new_len;
}

void vec_open(void *data, uint32_t len, uint32_t at, size_t size) {
    char *place = (char *)data + at * size;
    memmove(place + size, place, (len - at) * size);
}

void vec_close(void *data, uint32_t len, uint32_t at, size_t size) {
    char *place = (char *)data + at * size;
    memmove(place, place + size, (len - at - 1) * size);
}

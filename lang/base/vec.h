/* Growing vectors in an arena, generic by type.
 *
 *   typedef VEC(Expr *) ExprVec;
 *   ExprVec v = {0};
 *   vec_push(arena, &v, e);
 *   for (uint32_t i = 0; i < v.len; i++) use(v.data[i]);
 *
 * A zeroed struct is an empty vector. Growing allocates a new array and leaves the old one to the
 * arena, so a pointer into `data` is good until the next push that grows. The macros evaluate the
 * vector argument several times and the element once; none of them hides control flow.
 */
#ifndef FUSE_LANG_BASE_VEC_H
#define FUSE_LANG_BASE_VEC_H

#include "lang/base/arena.h"

#include <stdint.h>

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *data;                                                                                   \
        uint32_t len, cap;                                                                         \
    }

/* Appends x. An expression; its value is the new element's position. */
#define vec_push(arena, v, x)                                                                      \
    (vec_reserve((arena), (v), (v)->len + 1), (v)->data[(v)->len] = (x), (v)->len++)
/* Makes room for at least n elements. */
#define vec_reserve(arena, v, n)                                                                   \
    ((v)->data = vec_grow((arena), (v)->data, (v)->len, &(v)->cap, (n), sizeof *(v)->data))
/* Sets the length to n; new elements are zero. */
#define vec_resize(arena, v, n)                                                                    \
    (vec_reserve((arena), (v), (n)),                                                               \
     (v)->len = vec_zero((v)->data, (v)->len, (n), sizeof *(v)->data))
/* Inserts x before position i <= len, removes position i < len; order is kept. */
#define vec_insert(arena, v, i, x)                                                                 \
    (vec_reserve((arena), (v), (v)->len + 1),                                                      \
     vec_open((v)->data, (v)->len, (i), sizeof *(v)->data), (v)->data[(i)] = (x), (v)->len++)
#define vec_remove(v, i) (vec_close((v)->data, (v)->len, (i), sizeof *(v)->data), (v)->len--)
/* Removes and gives the last element of a non-empty vector. */
#define vec_pop(v)   ((v)->data[--(v)->len])
#define vec_last(v)  ((v)->data[(v)->len - 1])
#define vec_clear(v) ((void)((v)->len = 0))

/* The functions behind the macros. */
void *vec_grow(Arena *arena, void *data, uint32_t len, uint32_t *cap, uint32_t need, size_t size);
uint32_t vec_zero(void *data, uint32_t len, uint32_t new_len, size_t size);
void vec_open(void *data, uint32_t len, uint32_t at, size_t size);
void vec_close(void *data, uint32_t len, uint32_t at, size_t size);

#endif

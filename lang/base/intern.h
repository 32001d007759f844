/* Interned strings: equal strings are one pointer.
 *
 * A Str is NUL-terminated and lives as long as the arena of its Interner; two Strs of one Interner
 * are equal exactly when their pointers are. Text with NULs inside is not for interning.
 */
#ifndef FUSE_LANG_BASE_INTERN_H
#define FUSE_LANG_BASE_INTERN_H

#include "lang/base/arena.h"

#include <stdint.h>

typedef const char *Str;
typedef struct Interner Interner;

Interner *interner_new(Arena *arena);
/* The one Str with these bytes. */
Str intern(Interner *interner, const char *text, size_t len);
Str intern_cstr(Interner *interner, const char *text);
/* The Str if it was interned before, else NULL. */
Str intern_find(const Interner *interner, const char *text, size_t len);
uint32_t intern_count(const Interner *interner);

#endif

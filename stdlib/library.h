/* The library's sources, embedded: std/nn.fk is the module "std.nn". */
#ifndef FUSE_STDLIB_LIBRARY_H
#define FUSE_STDLIB_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The text of a module; it lives as long as the program. False where there is none. */
bool library_find(const char *dotted, const char **text, size_t *len);

/* The i-th module; false where there are fewer. */
bool library_at(size_t i, const char **dotted, const char **text, size_t *len);

#endif

/* The library's sources, embedded: std/nn.fk is the module "std.nn". */
#ifndef FUSE_STDLIB_LIBRARY_H
#define FUSE_STDLIB_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The text of a module; it lives as long as the program. False where there is none. */
bool library_find(const char *dotted, const char **text, size_t *len);

#endif

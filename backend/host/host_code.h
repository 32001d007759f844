// An object of the host targets, linked into this process.
#ifndef FUSE_BACKEND_HOST_HOST_CODE_H
#define FUSE_BACKEND_HOST_HOST_CODE_H

#include "lang/base/diag.h"

typedef struct HostCode HostCode;

// NULL when an error was added to `diags`. The code lives until host_code_free, the object's bytes
// need not.
HostCode *host_code_load(Arena *arena, const char *data, size_t len, Diags *diags);
// The address of a function, or NULL and *error.
void *host_code_find(HostCode *c, const char *name, const char **error);
void host_code_free(HostCode *c);

#endif

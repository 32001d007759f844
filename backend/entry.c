// Names of launches in the code: the one place that code generation and the host loader share.
#include "backend/backend.h"

const char *backend_entry_name(Arena *arena, const Kernel *kernel, const Op *launch, int n) {
    Str given = op_attr_str(launch, ATTR_entry);
    return given && given[0] ? given : arena_printf(arena, "%s_%d", kernel->name, n);
}

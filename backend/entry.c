// Names of launches in the code: the one place that code generation and the host loader share.
//
// Input: a launch, its kernel, its number there. Output: a symbol of letters, digits and `_`, as
// PTX asks for.
#include "backend/backend.h"

static bool is_symbol(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *backend_entry_name(Arena *arena, const Kernel *kernel, const Op *launch, int n) {
    Str given = op_attr_str(launch, ATTR_entry);
    char *s = given ? arena_strdup(arena, given) : arena_printf(arena, "%s__%d", kernel->name, n);
    for (char *p = s; *p; p++)
        if (!is_symbol(*p))
            *p = '_';
    return s;
}

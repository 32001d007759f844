/* The front end: the tree of a .fk file to tile IR of stage `tensor`.
 *
 * Resolves names, imports and generics, types every expression by its element type and axes, proves
 * that no two iterations of a nest write one element, and emits one kernel per instance of its
 * generics. All errors of the file are reported in one run; the module holds the kernels that have
 * none, so with diags_has_errors it is only good for looking at.
 *
 * Input: a parsed file and options. Output: the module, and one Schedule per kernel instance that
 * has a `schedule` clause, both in `arena`. Thread-safe on different arenas; never prints or exits.
 */
#ifndef FUSE_FRONTEND_FRONTEND_H
#define FUSE_FRONTEND_FRONTEND_H

#include "frontend/tree.h"

/* Finds the text of an import, `dotted` as written ("std.nn"). False where there is none. `*name`
 * is shown in diagnostics; text and name need to live until the call returns. */
typedef bool FrontendImport(void *user, Arena *arena, const char *dotted, const char **name,
                            const char **text, size_t *len);

typedef struct FrontendOptions {
    const char *const *defines;  /* "NAME=value" or "kernel.NAME=value", NULL-terminated, or NULL */
    const char *const *includes; /* import folders, NULL-terminated, or NULL */
    const char *target;          /* "sm_80": picks `schedule sm_80 { }`; NULL: none of those */
    const char *kernel;          /* only this kernel of the file; NULL: all */
    FrontendImport *import;      /* asked before the folders and the library; may be NULL */
    void *import_user;
} FrontendOptions;

typedef struct ScheduleList {
    int n;
    Schedule *items;
} ScheduleList;

/* `options` and `schedules` may be NULL. Never gives NULL. */
Module *frontend_lower(Arena *arena, Interner *interner, SourceMap *sources, AstFile *file,
                       const FrontendOptions *options, Diags *diags, ScheduleList *schedules);

#endif

/* What diag.c and diag_print.c share; nobody else includes this. */
#ifndef FUSE_LANG_BASE_DIAG_IMPL_H
#define FUSE_LANG_BASE_DIAG_IMPL_H

#include "lang/base/diag.h"
#include "lang/base/vec.h"

/* A note, or a hint (its span is nowhere). */
typedef struct DiagExtra {
    Span span;
    const char *text;
} DiagExtra;

struct Diag {
    DiagId id;
    DiagSeverity severity;
    Span span;
    uint32_t order; /* of addition */
    const char *message;
    VEC(DiagExtra) notes, hints;
};

struct Diags {
    Arena *arena;
    const SourceMap *sources;
    DiagOptions options;
    VEC(Diag *) list;
    uint32_t errors, others;
};

#endif

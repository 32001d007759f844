// Where a performance note belongs and how it calls axes: see remark.h. For code generation too,
// which has no passes.
#include "ir/remark.h"

// The kernel's place, where the note is in a function that it calls.
static Span caller_span(const Kernel *k, Span span) {
    bool inside = span.begin >= k->span.begin && span.end <= k->span.end;
    return inside ? (Span){0} : k->span;
}

void perf_place(Diags *diags, Diag *d, const Kernel *k, Span span, const char *target) {
    diag_note(diags, d, caller_span(k, span), "in `%s` for %s", k->name, target);
}

bool perf_is_told(const Diags *diags, DiagId id, const Kernel *k, Span span) {
    return diags_has(diags, id, span, caller_span(k, span));
}

const char *written_axis(Arena *scratch, const Axis *axis) {
    return written_name(scratch, axis->name);
}

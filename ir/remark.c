// Remarks and performance notes: see remark.h.
//
// Invariant: they change no IR, and the same module gives the same texts in the same order.
#include "ir/remark.h"

#include <string.h>

#include "ir/nest.h"

void remark(PassCtx *ctx, DiagId id, Span span, const char *format, ...) {
    if (!ctx->options->explain)
        return;
    va_list args;
    va_start(args, format);
    diag_vadd(ctx->diags, id, span, format, args);
    va_end(args);
}

void perf_note(PassCtx *ctx, const Kernel *k, DiagId id, Span span, const char *hint,
               const char *format, ...) {
    if (!kernel_is_most_special(k) || span_is_none(span))
        return;
    va_list args;
    va_start(args, format);
    Diag *d = diag_vadd(ctx->diags, id, span, format, args);
    va_end(args);
    if (hint)
        diag_hint(ctx->diags, d, "%s", hint);
}

const char *remark_join(PassCtx *ctx, const char *text, const char *item) {
    return *text ? arena_printf(ctx->scratch, "%s, %s", text, item) : item;
}

const char *remark_axes(PassCtx *ctx, const Kernel *k, AxisSet axes) {
    const char *text = "";
    for (int i = 0; i < axes.n; i++)
        text = remark_join(ctx, text, k->axis[axes.id[i]]->name);
    return text;
}

const char *remark_sizes(PassCtx *ctx, const Kernel *k, AxisSet axes) {
    const char *text = "";
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = k->axis[axes.id[i]];
        if (a->size)
            text = remark_join(ctx, text,
                               arena_printf(ctx->scratch, "%s by %u", a->name, (unsigned)a->size));
    }
    return text;
}

const char *remark_mem(PassCtx *ctx, const Mem *m) {
    return arena_printf(ctx->scratch, "%s`%s`", m->kind == MEM_TEMP ? "the temporary " : "",
                        m->name);
}

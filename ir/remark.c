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
    if (!kernel_is_most_special(k) || span_is_none(span) || perf_is_told(ctx->diags, id, k, span))
        return;
    va_list args;
    va_start(args, format);
    Diag *d = diag_vadd(ctx->diags, id, span, format, args);
    va_end(args);
    perf_place(ctx->diags, d, k, span, ctx->target->name);
    if (hint)
        diag_hint(ctx->diags, d, "%s", hint);
}

// --- names ---

// Whether an op's results are called that where the source has no name for them.
static bool is_op_name(const char *name) {
    for (int kind = 0; kind < OP_COUNT; kind++) {
        const OpInfo *row = op_info((OpKind)kind);
        if (!strcmp(row->text, name))
            return true;
        for (int i = 0; row->kinds && row->kinds[i]; i++)
            if (!strcmp(row->kinds[i], name))
                return true;
    }
    return !strcmp(name, "kept");
}

const char *remark_name(Arena *scratch, const char *name) {
    const char *base = name ? written_name(scratch, name) : NULL;
    return base && *base && !is_op_name(base) ? base : NULL;
}

const char *remark_join(PassCtx *ctx, const char *text, const char *item) {
    return *text ? arena_printf(ctx->scratch, "%s, %s", text, item) : item;
}

const char *remark_axes(PassCtx *ctx, const Kernel *k, AxisSet axes) {
    const char *text = "";
    for (int i = 0; i < axes.n; i++)
        text = remark_join(ctx, text, written_axis(ctx->scratch, k->axis[axes.id[i]]));
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

enum { ELEMENTS_PER_THREAD_MAX = 256 };

uint64_t tile_most(const TargetDesc *target, int warps) {
    return ELEMENTS_PER_THREAD_MAX * (uint64_t)target->lanes * (uint64_t)warps;
}

void tile_too_large(PassCtx *ctx, const Kernel *k, Span span, AxisSet axes, int warps) {
    const char *sizes = "";
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = k->axis[axes.id[i]];
        sizes = remark_join(ctx, sizes, arena_printf(ctx->scratch, "%s = %u", a->name, a->size));
    }
    diag_add(ctx->diags, DIAG_TOO_LARGE, span,
             "a tile of %llu elements (%s) in %d warp%s; a thread holds at most "
             "%d elements, these warps %llu: choose smaller tiles or more warps",
             (unsigned long long)tile_elements(k, axes), sizes, warps, warps == 1 ? "" : "s",
             ELEMENTS_PER_THREAD_MAX, (unsigned long long)tile_most(ctx->target, warps));
}

const char *remark_mem(PassCtx *ctx, const Mem *m) {
    const char *name = m->kind == MEM_TEMP ? remark_name(ctx->scratch, m->name) : m->name;
    if (!name)
        return "a temporary of the compiler";
    return arena_printf(ctx->scratch, "%s`%s`", m->kind == MEM_TEMP ? "the temporary " : "", name);
}

// Performance notes of what only code generation sees: the width of accesses, conversions in loops.
//
// Input: an access as planned, a conversion as chosen. Output: notes, for a GPU's schedule and the
// kernel's most special variant (ir/remark.h says why); no code changes.
#include "backend/lower.h"
#include "ir/remark.h"

enum {
    WORD_BYTES = 4,    // what a lane moves at the price of a byte
    SECTOR_BYTES = 32, // what memory moves at least
};

// A place is named once, however often the passes have copied it.
static bool wants_note(const Lower *l, DiagId id, Span span) {
    return l->t->desc->family != TARGET_CPU && kernel_is_most_special(l->kernel) &&
           !span_is_none(span) && !perf_is_told(l->t->diags, id, l->kernel, span);
}

// Several threads hold the same element, as of a bias: little is read.
static bool is_replicated(const Layout *layout) {
    for (unsigned d = IN_LANE; d <= IN_WARP; d++)
        for (unsigned b = 0; b < layout->nin[d]; b++)
            if (layout->col[d][b] == 0)
                return true;
    return false;
}

static bool has_step(const Layout *layout, unsigned in, uint32_t step) {
    for (unsigned b = 0; b < layout->nin[in]; b++)
        if (layout->col[in][b] == step)
            return true;
    return false;
}

// Bytes in one piece that the lanes and registers of a warp access along the axis.
static uint32_t piece_bytes(const TileAccess *a, uint16_t axis) {
    int index = layout_axis_index(a->layout, axis);
    uint32_t elements = 1;
    for (unsigned b = 0; index >= 0 && b < a->layout->bits[index]; b++, elements *= 2) {
        uint32_t step = UINT32_C(1) << (layout_axis_shift(a->layout, index) + b);
        if (!has_step(a->layout, IN_REG, step) && !has_step(a->layout, IN_LANE, step))
            break;
    }
    return elements * (uint32_t)a->bytes;
}

// The axis that walks the contiguous dim by steps of 1, or -1.
static int axis_along(const IndexDim *d) {
    for (int i = 0; i < d->nterm; i++)
        if (d->term[i].coeff == 1)
            return d->term[i].axis;
    return -1;
}

// Why an access is not wide, and what may help; a NULL reason: it is as wide as it has to be.
typedef struct Narrow {
    const char *why, *remedy;
} Narrow;

static Narrow why_narrow(const Lower *l, const TileAccess *a, const IndexDim *d) {
    if (!d->affine)
        return (Narrow){"its index there is no sum of axes",
                        "lay the tensor out so that a gathered dim is not the contiguous one"};
    int axis = axis_along(d);
    if (axis < 0 && d->nterm > 0)
        return (Narrow){"its index takes steps there",
                        "read whole rows and pick from the value: `let v = x[..., i]; v[i = 2*j]`"};
    if (axis < 0)
        return (Narrow){"no axis of the value runs along it", NULL};
    const char *name = written_axis(l->arena, l->kernel->axis[axis]);
    const Value *dim = a->mem->dim[a->mem->inner];
    uint32_t piece = piece_bytes(a, (uint16_t)axis);
    bool whole = dim->kind == VALUE_CONST && dim->u.i * a->bytes <= piece;
    if (piece < SECTOR_BYTES && !whole)
        return (Narrow){
            arena_printf(l->arena, "the tile lies along another axis than `%s`", name),
            "of a transposition one side is narrow; else let the axes of both sides agree"};
    if ((a->bytes << a->vector_log2) >= WORD_BYTES)
        return (Narrow){0};
    return (Narrow){
        "its rows, or where they are read, are not known to begin at a multiple of 4 bytes",
        "rows of an even length, and offsets that are even numbers, make it wider"};
}

void lower_note_access(Lower *l, const Op *op, const TileAccess *a) {
    bool plain = (op->kind == OP_LOAD || op->kind == OP_STORE) && a->mem->kind == MEM_PARAM;
    int inner = a->mem->inner;
    if (!plain || inner < 0 || a->packed || !a->layout || layout_registers(a->layout) < 2 ||
        is_replicated(a->layout))
        return;
    Narrow narrow = why_narrow(l, a, &a->dim[inner]);
    if (!narrow.why || !wants_note(l, DIAG_NARROW_ACCESS, op->span))
        return;
    const Value *dim = a->mem->dim[inner];
    int bytes = a->bytes << a->vector_log2;
    Diag *d = diag_add(
        l->t->diags, DIAG_NARROW_ACCESS, op->span,
        "`%s` is %s in pieces of %d byte%s along %s, where it is contiguous: %s", a->mem->name,
        op->kind == OP_LOAD ? "read" : "written", bytes, bytes == 1 ? "" : "s",
        dim->kind == VALUE_PARAM ? dim->name : arena_printf(l->arena, "dim %d", inner), narrow.why);
    perf_place(l->t->diags, d, l->kernel, op->span, l->t->desc->name);
    if (narrow.remedy)
        diag_hint(l->t->diags, d, "%s", narrow.remedy);
}

void lower_note_conversion(Lower *l, const Op *op) {
    if (l->loop_depth == 0 || !wants_note(l, DIAG_LAYOUT_CONVERSION, op->span))
        return;
    Diag *d = diag_add(l->t->diags, DIAG_LAYOUT_CONVERSION, op->span,
                       "each pass of the loop moves this tile through shared memory: what follows "
                       "needs its elements in other threads");
    perf_place(l->t->diags, d, l->kernel, op->span, l->t->desc->name);
    diag_hint(
        l->t->diags, d,
        "tiles with 16 rows for each warp, by fewer `warps` or more rows, keep rows in a warp");
}

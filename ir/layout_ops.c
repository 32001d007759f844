// Operations that make a layout from layouts: slice, expand, restrict, rename, round up, product.
#include "ir/layout_draft.h"
#include "ir/layout_f2.h"

// Copies the columns of `l` into the draft's axes. Register (offset) bits that only repeat what
// the registers already hold are dropped; other dimensions keep zero columns as replicas.
static void draft_columns(Draft *draft, const Layout *l) {
    for (unsigned d = 0; d < IN_DIMS; d++) {
        F2Basis held = {0};
        for (unsigned b = 0; b < l->nin[d]; b++) {
            uint32_t mask = draft_mask(draft, l, l->col[d][b]);
            bool storage = d == IN_REG || d == IN_OFF;
            if (!storage || f2_add(&held, mask)) {
                draft_push(draft, d, mask);
            }
        }
    }
}

static Draft slice_draft(const Layout *l, const uint16_t *axes, unsigned naxes) {
    Draft draft = {0};
    if (naxes > 0) {
        draft_axes_of(&draft, l, axes, naxes);
    }
    draft_columns(&draft, l);
    return draft;
}

const Layout *layout_slice_to(LayoutTable *table, const Layout *l, const uint16_t *axes,
                              unsigned naxes) {
    Draft draft = slice_draft(l, axes, naxes);
    return draft_finish(table, &draft);
}

const Layout *layout_slice(LayoutTable *table, const Layout *l, uint16_t axis) {
    uint16_t keep[AXES_MAX];
    unsigned nkeep = 0;
    for (unsigned i = 0; i < l->naxes; i++) {
        if (l->axis[i] != axis) {
            keep[nkeep++] = l->axis[i];
        }
    }
    return layout_slice_to(table, l, keep, nkeep);
}

// The registers of a and b hold the same set: equal spans of their columns.
static bool same_register_span(const Layout *a, const Layout *b) {
    F2Basis span = {0};
    for (unsigned i = 0; i < a->nin[IN_REG]; i++) {
        f2_add(&span, a->col[IN_REG][i]);
    }
    for (unsigned i = 0; i < b->nin[IN_REG]; i++) {
        if (!f2_solve(&span, b->col[IN_REG][i], NULL)) {
            return false;
        }
    }
    return a->nin[IN_REG] == b->nin[IN_REG];
}

bool layout_is_slice(const Layout *full, const Layout *part) {
    Draft draft = slice_draft(full, part->axis, part->naxes);
    if (draft.bad || !same_register_span(&draft.l, part)) {
        return false;
    }
    // Equal in all but the order of registers.
    for (unsigned b = 0; b < part->nin[IN_REG]; b++) {
        draft.l.col[IN_REG][b] = part->col[IN_REG][b];
    }
    return layout_equal(&draft.l, part);
}

uint32_t layout_slice_register(const Layout *full, const Layout *part, uint32_t reg) {
    Draft draft = {.l = *part};
    F2Basis held = {0};
    uint32_t flat = 0, out, digits = reg >> full->nin[IN_REG];
    for (unsigned b = 0; b < part->nin[IN_REG]; b++) {
        f2_add(&held, part->col[IN_REG][b]);
    }
    for (unsigned b = 0; b < full->nin[IN_REG]; b++) {
        flat ^= (reg >> b & 1) != 0 ? full->col[IN_REG][b] : 0;
    }
    f2_solve(&held, draft_mask(&draft, full, flat), &out);
    // Reps of both are sorted by axis, so part's digits are a subsequence of full's.
    uint32_t weight = UINT32_C(1) << part->nin[IN_REG];
    for (unsigned r = 0; r < full->nrep; r++) {
        if (layout_axis_rep(part, full->rep[r].axis) != 1) {
            out += digits % full->rep[r].count * weight;
            weight *= full->rep[r].count;
        }
        digits /= full->rep[r].count;
    }
    return out;
}

const Layout *layout_expand(LayoutTable *table, const Layout *l, const AxisSize *axes,
                            unsigned naxes) {
    Draft draft = {0};
    draft_axes_of(&draft, l, NULL, 0);
    draft_axes(&draft, axes, naxes);
    draft_columns(&draft, l);
    BitQueue queue = draft_queue(&draft, axes, naxes);
    draft_push_rest(&draft, IN_REG, &queue);
    return draft_finish(table, &draft);
}

const Layout *layout_restrict(LayoutTable *table, const Layout *l, uint16_t axis, unsigned bits) {
    int index = layout_axis_index(l, axis);
    if (index < 0 || (l->bits[index] <= bits && layout_axis_rep(l, axis) == 1)) {
        return l;
    }
    bits = bits < l->bits[index] ? bits : l->bits[index];
    // The same layout with the upper bits of the axis cut out of each column.
    Layout cut = *l;
    uint64_t gone = (UINT64_C(1) << l->bits[index]) - (UINT64_C(1) << bits);
    uint32_t keep = ~(uint32_t)(gone << layout_axis_shift(l, index));
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            cut.col[d][b] &= keep;
        }
    }
    Draft draft = {0};
    for (int i = 0; i < l->naxes; i++) {
        uint32_t rep = i == index ? 1 : layout_axis_rep(l, l->axis[i]);
        unsigned kept = i == index ? bits : l->bits[i];
        AxisSize size = {.axis = l->axis[i], .size = kept < 32 ? rep << kept : 0};
        draft_axes(&draft, &size, 1);
    }
    draft_columns(&draft, &cut);
    return draft_finish(table, &draft);
}

const Layout *layout_rename(LayoutTable *table, const Layout *l, uint16_t from, uint16_t to) {
    int index = layout_axis_index(l, from);
    if (index < 0 || from == to) {
        return l;
    }
    if (layout_axis_index(l, to) >= 0) {
        return NULL;
    }
    // The old columns under the new name, in the old (now unsorted) order; then sorted.
    Layout named = *l;
    named.axis[index] = to;
    for (unsigned r = 0; r < named.nrep; r++) {
        named.rep[r].axis = named.rep[r].axis == from ? to : named.rep[r].axis;
    }
    Draft draft = {0};
    draft_axes_of(&draft, &named, NULL, 0);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            draft_push(&draft, d, draft_mask(&draft, &named, l->col[d][b]));
        }
    }
    return draft_finish(table, &draft);
}

static unsigned digit_bits(uint32_t rep) {
    unsigned bits = 0;
    while (UINT32_C(1) << bits < rep) {
        bits++;
    }
    return bits;
}

const Layout *layout_round_up(LayoutTable *table, const Layout *l) {
    Draft draft = {0};
    for (int i = 0; i < l->naxes; i++) {
        unsigned bits = l->bits[i] + digit_bits(layout_axis_rep(l, l->axis[i]));
        AxisSize size = {.axis = l->axis[i], .size = bits < 32 ? UINT32_C(1) << bits : 0};
        draft_axes(&draft, &size, 1);
    }
    if (draft.bad) {
        return NULL;
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            draft_push(&draft, d, draft_mask(&draft, l, l->col[d][b]));
        }
    }
    for (unsigned r = 0; r < l->nrep; r++) {
        int i = layout_axis_index(l, l->rep[r].axis);
        unsigned above = layout_axis_shift(&draft.l, i) + l->bits[i];
        for (unsigned b = 0; b < digit_bits(l->rep[r].count); b++) {
            draft_push(&draft, IN_REG, UINT32_C(1) << (above + b));
        }
    }
    return draft_finish(table, &draft);
}

int layout_rounded_register(const Layout *l, uint32_t reg) {
    uint32_t weight = UINT32_C(1) << l->nin[IN_REG];
    uint32_t out = reg & (weight - 1), digits = reg >> l->nin[IN_REG];
    for (unsigned r = 0; r < l->nrep; r++) {
        unsigned bits = digit_bits(l->rep[r].count);
        uint32_t digit = digits & ((UINT32_C(1) << bits) - 1);
        if (digit >= l->rep[r].count) {
            return -1;
        }
        out += digit * weight;
        weight *= l->rep[r].count;
        digits >>= bits;
    }
    return (int)out;
}

const Layout *layout_first(LayoutTable *table, const Layout *l, uint16_t from, uint16_t to,
                           uint32_t size) {
    unsigned bits = 0;
    while (UINT32_C(1) << bits < size) {
        bits++;
    }
    const Layout *first = layout_restrict(table, l, from, bits);
    first = first ? layout_rename(table, first, from, to) : NULL;
    uint32_t have = first ? layout_size(first, to) : 0;
    if (have == 0 || have >= size) {
        return first;
    }
    AxisSize more = {.axis = to, .size = size / have};
    return layout_product(table, first, layout_blocked(table, &more, 1, 1, 1, 1));
}

// Axis of the product: inner's bits below outer's; at most one of them with an odd factor, since
// digits are outermost.
static bool product_axis(Draft *draft, const Layout *inner, const Layout *outer, uint16_t axis) {
    uint32_t rep = layout_axis_rep(inner, axis) * layout_axis_rep(outer, axis);
    unsigned bits = layout_axis_bits(inner, axis) + layout_axis_bits(outer, axis);
    bool mixed = layout_axis_rep(inner, axis) != 1 && layout_size(outer, axis) != 1;
    if (bits >= 32 || rep > UINT16_MAX || mixed) {
        return false;
    }
    AxisSize size = {.axis = axis, .size = rep << bits};
    draft_axes(draft, &size, 1);
    return size.size >> bits == rep;
}

// Outer's mask in the draft, shifted above inner's bits along each axis.
static uint32_t outer_mask(const Draft *draft, const Layout *inner, const Layout *outer,
                           uint32_t mask) {
    uint32_t out = 0;
    for (int i = 0; i < outer->naxes; i++) {
        int j = layout_axis_index(&draft->l, outer->axis[i]);
        unsigned from = layout_axis_shift(outer, i);
        unsigned to = layout_axis_shift(&draft->l, j) + layout_axis_bits(inner, outer->axis[i]);
        for (unsigned b = 0; b < outer->bits[i]; b++) {
            out |= (mask >> (from + b) & 1) << (to + b);
        }
    }
    return out;
}

const Layout *layout_product(LayoutTable *table, const Layout *inner, const Layout *outer) {
    Draft draft = {0};
    for (unsigned i = 0; i < inner->naxes; i++) {
        if (!product_axis(&draft, inner, outer, inner->axis[i])) {
            return NULL;
        }
    }
    for (unsigned i = 0; i < outer->naxes; i++) {
        if (layout_axis_index(inner, outer->axis[i]) < 0 &&
            !product_axis(&draft, inner, outer, outer->axis[i])) {
            return NULL;
        }
    }
    if (draft.bad) {
        return NULL;
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < inner->nin[d]; b++) {
            draft_push(&draft, d, draft_mask(&draft, inner, inner->col[d][b]));
        }
        for (unsigned b = 0; b < outer->nin[d]; b++) {
            draft_push(&draft, d, outer_mask(&draft, inner, outer, outer->col[d][b]));
        }
    }
    return draft_finish(table, &draft);
}

// Building a layout column by column (see layout_draft.h).
#include "ir/layout_draft.h"

static void draft_axis(Draft *draft, uint16_t axis, unsigned bits, uint32_t rep) {
    Layout *l = &draft->l;
    if (layout_axis_index(l, axis) >= 0 || l->naxes == AXES_MAX || rep > UINT16_MAX) {
        draft->bad = true;
        return;
    }
    unsigned i = l->naxes++;
    for (; i > 0 && l->axis[i - 1] > axis; i--) {
        l->axis[i] = l->axis[i - 1];
        l->bits[i] = l->bits[i - 1];
    }
    l->axis[i] = axis;
    l->bits[i] = (uint8_t)bits;
    if (rep == 1) {
        return;
    }
    if (l->nrep == LAYOUT_REPS_MAX) {
        draft->bad = true;
        return;
    }
    unsigned r = l->nrep++;
    for (; r > 0 && l->rep[r - 1].axis > axis; r--) {
        l->rep[r] = l->rep[r - 1];
    }
    l->rep[r] = (LayoutRep){.axis = axis, .count = (uint16_t)rep};
}

void draft_axes(Draft *draft, const AxisSize *axes, unsigned naxes) {
    for (unsigned i = 0; i < naxes; i++) {
        if (axes[i].size == 0) {
            draft->bad = true;
        } else if (axes[i].size > 1) {
            unsigned bits = (unsigned)__builtin_ctz(axes[i].size);
            draft_axis(draft, axes[i].axis, bits, axes[i].size >> bits);
        }
    }
    if (layout_axis_shift(&draft->l, draft->l.naxes) > 31) {
        draft->bad = true;
    }
}

void draft_axes_of(Draft *draft, const Layout *l, const uint16_t *keep, unsigned nkeep) {
    for (unsigned i = 0; i < l->naxes; i++) {
        bool kept = keep == NULL;
        for (unsigned k = 0; k < nkeep; k++) {
            kept = kept || keep[k] == l->axis[i];
        }
        if (kept) {
            draft_axis(draft, l->axis[i], l->bits[i], layout_axis_rep(l, l->axis[i]));
        }
    }
    if (layout_axis_shift(&draft->l, draft->l.naxes) > 31) {
        draft->bad = true;
    }
}

uint32_t draft_mask(const Draft *draft, const Layout *l, uint32_t mask) {
    uint32_t out = 0;
    for (int i = 0; i < l->naxes && !draft->bad; i++) {
        int j = layout_axis_index(&draft->l, l->axis[i]);
        unsigned from = layout_axis_shift(l, i);
        for (unsigned b = 0; j >= 0 && b < l->bits[i]; b++) {
            out |= (mask >> (from + b) & 1) << (layout_axis_shift(&draft->l, j) + b);
        }
    }
    return out;
}

BitQueue draft_queue(const Draft *draft, const AxisSize *axes, unsigned naxes) {
    BitQueue queue = {0};
    for (unsigned i = 0; i < naxes && !draft->bad; i++) {
        int j = layout_axis_index(&draft->l, axes[i].axis);
        for (unsigned b = 0; j >= 0 && b < draft->l.bits[j]; b++) {
            queue.mask[queue.tail++] = UINT32_C(1) << (layout_axis_shift(&draft->l, j) + b);
        }
    }
    return queue;
}

unsigned queue_count(const BitQueue *queue) {
    return (unsigned)(queue->tail - queue->head);
}

void draft_push(Draft *draft, unsigned dim, uint32_t mask) {
    if (draft->l.nin[dim] == LAYOUT_BITS_MAX) {
        draft->bad = true;
        return;
    }
    draft->l.col[dim][draft->l.nin[dim]++] = mask;
}

void draft_push_low(Draft *draft, unsigned dim, BitQueue *queue, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        draft_push(draft, dim, queue->head < queue->tail ? queue->mask[queue->head++] : 0);
    }
}

void draft_push_high(Draft *draft, unsigned dim, BitQueue *queue, unsigned n) {
    unsigned taken = queue_count(queue) < n ? queue_count(queue) : n;
    queue->tail = (uint8_t)(queue->tail - taken);
    for (unsigned i = 0; i < taken; i++) {
        draft_push(draft, dim, queue->mask[queue->tail + i]);
    }
    draft_push_zero(draft, dim, n - taken);
}

void draft_push_zero(Draft *draft, unsigned dim, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        draft_push(draft, dim, 0);
    }
}

void draft_push_rest(Draft *draft, unsigned dim, BitQueue *queue) {
    draft_push_low(draft, dim, queue, queue_count(queue));
}

unsigned draft_log2(Draft *draft, uint32_t n) {
    if (n == 0 || (n & (n - 1)) != 0) {
        draft->bad = true;
        return 0;
    }
    return (unsigned)__builtin_ctz(n);
}

const Layout *draft_finish(LayoutTable *table, const Draft *draft) {
    return draft->bad ? NULL : layout_intern(table, &draft->l);
}

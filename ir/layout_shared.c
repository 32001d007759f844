// Buffer layouts: offset -> element, linear or with 16-byte chunks XORed so that rows and columns
// are both read without bank conflicts.
//
//   rows of 64 bf16 (128 bytes), swizzle 128:  address bits [4:6] ^= [7:9], that is
//     off(k:1, k:2, k:4, k:8, k:16, k:32, m:1^k:8, m:2^k:16, m:4^k:32, m:8, ...)
#include "ir/layout_draft.h"

enum { CHUNK_BITS = 7 /* log2 of 128 bits */, LINE_BITS = 10 /* log2 of 128 bytes in bits */ };

static unsigned unsigned_min(unsigned a, unsigned b) {
    return a < b ? a : b;
}

static unsigned unsigned_max(unsigned a, unsigned b) {
    return a > b ? a : b;
}

// Bits of axes[0], the row of the buffer.
static unsigned row_bits(const Draft *draft, const AxisSize *axes, unsigned naxes) {
    return naxes == 0 ? 0 : layout_axis_bits(&draft->l, axes[0].axis);
}

// Columns `order` with chunk bit i XORed into column from + i, n of them.
static const Layout *shared_finish(LayoutTable *table, Draft *draft, BitQueue *order,
                                   unsigned chunk, unsigned from, unsigned n) {
    unsigned count = queue_count(order);
    for (unsigned b = 0; b < count; b++) {
        uint32_t mask = order->mask[order->head + b];
        if (b >= from && b - from < n) {
            mask ^= order->mask[order->head + chunk + (b - from)];
        }
        draft_push(draft, IN_OFF, mask);
    }
    return draft_finish(table, draft);
}

const Layout *layout_shared_linear(LayoutTable *table, const AxisSize *axes, unsigned naxes) {
    Draft draft = {0};
    draft_axes(&draft, axes, naxes);
    BitQueue queue = draft_queue(&draft, axes, naxes);
    return shared_finish(table, &draft, &queue, 0, 0, 0);
}

// log2 of the chunks in one swizzled row: 0, 1, 2, 3 for 0 (16), 32, 64, 128 bytes.
static unsigned swizzle_bits(Draft *draft, unsigned swizzle) {
    unsigned bits = swizzle == 0 ? 4 : draft_log2(draft, swizzle);
    if (bits < 4 || bits > 7) {
        draft->bad = true;
        return 0;
    }
    return bits - 4;
}

const Layout *layout_shared(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                            unsigned element_bits, unsigned swizzle) {
    Draft draft = {0};
    draft_axes(&draft, axes, naxes);
    BitQueue queue = draft_queue(&draft, axes, naxes);
    unsigned element = draft_log2(&draft, element_bits), row = row_bits(&draft, axes, naxes);
    unsigned n = swizzle_bits(&draft, swizzle);
    if (draft.bad || element > CHUNK_BITS) {
        return NULL;
    }
    unsigned chunk = CHUNK_BITS - element;
    n = row > chunk ? unsigned_min(n, row - chunk) : 0;
    // Rows shorter than the 128 bytes of all banks share a line: the line number is XORed.
    return shared_finish(table, &draft, &queue, chunk, unsigned_max(row, LINE_BITS - element), n);
}

const Layout *layout_shared_box(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                                unsigned element_bits, unsigned swizzle) {
    Draft draft = {0};
    draft_axes(&draft, axes, naxes);
    unsigned element = draft_log2(&draft, element_bits), row = row_bits(&draft, axes, naxes);
    unsigned n = swizzle_bits(&draft, swizzle);
    if (draft.bad || element > CHUNK_BITS || naxes == 0) {
        return NULL;
    }
    unsigned chunk = CHUNK_BITS - element;
    unsigned span = swizzle == 0 ? row : unsigned_min(row, chunk + n);
    n = span > chunk ? unsigned_min(n, span - chunk) : 0;
    BitQueue first = draft_queue(&draft, axes, 1);
    BitQueue others = draft_queue(&draft, axes + 1, naxes - 1), order = {0};
    while (queue_count(&order) < span) {
        order.mask[order.tail++] = first.mask[first.head++];
    }
    while (queue_count(&others) > 0) {
        order.mask[order.tail++] = others.mask[others.head++];
    }
    while (queue_count(&first) > 0) {
        order.mask[order.tail++] = first.mask[first.head++];
    }
    return shared_finish(table, &draft, &order, chunk, LINE_BITS - element, n);
}

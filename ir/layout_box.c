// Recognising a buffer layout that TMA boxes write and matrix descriptors read.
//
// The order of the axes is read off the offset bits: each column has one bit that no lower column
// has. The guess is confirmed by building the layout again for each swizzle, so a wrong guess can
// only mean "no box", never a wrong one.
#include "ir/layout.h"

static void box_axis(LayoutBox *box, const Layout *buffer, uint16_t axis) {
    for (unsigned i = 0; i < box->naxes; i++) {
        if (box->axes[i].axis == axis) {
            return;
        }
    }
    box->axes[box->naxes++] = (AxisSize){axis, layout_size(buffer, axis)};
}

// Axis of the flattened bits in `mask`, which must be one bit.
static int axis_of_bit(const Layout *buffer, uint32_t mask) {
    if (mask == 0 || (mask & (mask - 1)) != 0) {
        return -1;
    }
    unsigned bit = (unsigned)__builtin_ctz(mask);
    int index = 0;
    while (layout_axis_shift(buffer, index + 1) <= bit) {
        index++;
    }
    return index;
}

// Axes by first appearance; false where a column has no bit of its own.
static bool box_order(const Layout *buffer, LayoutBox *box) {
    uint32_t used = 0;
    for (unsigned b = 0; b < buffer->nin[IN_OFF]; b++) {
        uint32_t own = buffer->col[IN_OFF][b] & ~used;
        int index = axis_of_bit(buffer, own);
        if (index < 0) {
            return false;
        }
        box_axis(box, buffer, buffer->axis[index]);
        used |= own;
    }
    for (unsigned r = 0; r < buffer->nrep; r++) { // axes that are nothing but an odd factor
        box_axis(box, buffer, buffer->rep[r].axis);
    }
    return box->naxes > 0;
}

// Length of the lowest run along the first axis.
static uint32_t box_span(const Layout *buffer, uint16_t axis) {
    unsigned run = 0;
    while (run < buffer->nin[IN_OFF] && layout_column(buffer, IN_OFF, run, axis) == UINT32_C(1)
                                                                                        << run) {
        run++;
    }
    return UINT32_C(1) << run;
}

bool layout_box_of(LayoutTable *table, const Layout *buffer, unsigned element_bits,
                   LayoutBox *box) {
    static const unsigned swizzles[] = {128, 64, 32, 0};
    *box = (LayoutBox){0};
    if (!box_order(buffer, box)) {
        return false;
    }
    box->span = box_span(buffer, box->axes[0].axis);
    for (unsigned i = 0; i < 4; i++) {
        box->swizzle = swizzles[i];
        // A swizzle wider than the row is the narrower one: report that.
        bool fits = swizzles[i] == 0 || box->span * (uint64_t)element_bits == swizzles[i] * 8;
        if (fits &&
            layout_shared_box(table, box->axes, box->naxes, element_bits, swizzles[i]) == buffer) {
            return true;
        }
    }
    return false;
}

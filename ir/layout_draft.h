// Building a layout: collect the axes, seal, hand out their bits in order, push columns, intern.
// Errors stick in `bad` and make the result NULL. Internal to the layout library.
#ifndef FUSE_IR_LAYOUT_DRAFT_H
#define FUSE_IR_LAYOUT_DRAFT_H

#include "ir/layout.h"

typedef struct Draft {
    Layout l;
    bool bad;
} Draft;

// The bits of a list of axes, lowest first, as flattened masks: taken from either end.
typedef struct BitQueue {
    uint32_t mask[32];
    uint8_t head, tail;
} BitQueue;

// Adds axes; call for all lists before the first queue or column.
void draft_axes(Draft *draft, const AxisSize *axes, unsigned naxes);
// Adds those axes of `l` for which `keep` is NULL or lists them.
void draft_axes_of(Draft *draft, const Layout *l, const uint16_t *keep, unsigned nkeep);
// Flattened mask of `l` in the draft's axes; axes that the draft lacks are dropped.
uint32_t draft_mask(const Draft *draft, const Layout *l, uint32_t mask);
// The bits of `axes` in their order.
BitQueue draft_queue(const Draft *draft, const AxisSize *axes, unsigned naxes);
unsigned queue_count(const BitQueue *queue);

void draft_push(Draft *draft, unsigned dim, uint32_t mask);
// The lowest (highest) n bits of the queue, ascending; zero columns when it runs out.
void draft_push_low(Draft *draft, unsigned dim, BitQueue *queue, unsigned n);
void draft_push_high(Draft *draft, unsigned dim, BitQueue *queue, unsigned n);
void draft_push_zero(Draft *draft, unsigned dim, unsigned n);
void draft_push_rest(Draft *draft, unsigned dim, BitQueue *queue);
// log2 of a power of two; anything else makes the draft bad.
unsigned draft_log2(Draft *draft, uint32_t n);
const Layout *draft_finish(LayoutTable *table, const Draft *draft);

#endif

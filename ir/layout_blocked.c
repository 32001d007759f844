// Register layouts of plain blocks: which thread holds what when no unit prescribes it.
//
//   blocked(n:256, m:4; vec 4, 32 lanes, 4 warps):
//     reg(n:1, n:2) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128, m:1) and m:2 as a register
#include "ir/layout_draft.h"

// Bits of the first axis that is larger than 1: a vector does not cross axes.
static unsigned first_axis_bits(const Draft *draft, const AxisSize *axes, unsigned naxes) {
    for (unsigned i = 0; i < naxes; i++) {
        if (axes[i].size > 1) {
            return layout_axis_bits(&draft->l, axes[i].axis);
        }
    }
    return 0;
}

const Layout *layout_blocked(LayoutTable *table, const AxisSize *axes, unsigned naxes, uint32_t vec,
                             uint32_t lanes, uint32_t warps) {
    Draft draft = {0};
    draft_axes(&draft, axes, naxes);
    BitQueue queue = draft_queue(&draft, axes, naxes);
    unsigned vec_bits = draft_log2(&draft, vec), most = first_axis_bits(&draft, axes, naxes);
    draft_push_low(&draft, IN_REG, &queue, vec_bits < most ? vec_bits : most);
    draft_push_low(&draft, IN_LANE, &queue, draft_log2(&draft, lanes));
    draft_push_low(&draft, IN_WARP, &queue, draft_log2(&draft, warps));
    draft_push_rest(&draft, IN_REG, &queue);
    return draft_finish(table, &draft);
}

const Layout *layout_blocked_lane_first(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                                        uint32_t lanes, uint32_t warps) {
    return layout_blocked(table, axes, naxes, 1, lanes, warps);
}

const Layout *layout_uniform(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                             uint32_t lanes, uint32_t warps) {
    Draft draft = {0};
    draft_axes(&draft, axes, naxes);
    BitQueue queue = draft_queue(&draft, axes, naxes);
    draft_push_rest(&draft, IN_REG, &queue);
    draft_push_zero(&draft, IN_LANE, draft_log2(&draft, lanes));
    draft_push_zero(&draft, IN_WARP, draft_log2(&draft, warps));
    return draft_finish(table, &draft);
}

// Fragments of the matrix units (PTX ISA, "Matrix Fragments for mma / wgmma"), as one rule.
//
// The operand's inner direction is k for A and B, columns for C; outer is the other one.
//   registers: the elements of one 32-bit register along inner (none for f32, 1 bit for C)
//   lanes 0-1: 4 along inner; lanes 2-4: 8 along outer
//   registers: outer 8 (A and C: 16 rows), then the rest of the unit along inner
// then the tile: inner repeats, outer repeats, batch in registers; warps cut the highest bits of
// rows and columns. wgmma is the same with two warp bits at rows 16 and 32.
#include "ir/layout_draft.h"

typedef struct Fragment {
    unsigned word;  // log2 of the elements of a 32-bit register along inner
    unsigned inner; // log2 of the unit's size along inner; 0 = as large as the tile
    unsigned rows;  // A and C: log2 of its rows, less the 8 that lanes hold
} Fragment;

typedef struct Queues {
    BitQueue rows, cols, ks, batch;
} Queues;

// log2 of the unit's k, and of its elements per 32-bit register.
static Fragment unit_operand(MmaUnit unit) {
    switch (unit) {
    case MMA_M16N8K16:
        return (Fragment){.word = 1, .inner = 4, .rows = 1};
    case MMA_M16N8K8:
        return (Fragment){.word = 1, .inner = 3, .rows = 1};
    case MMA_M16N8K8_TF32:
        return (Fragment){.word = 0, .inner = 3, .rows = 1};
    case MMA_M16N8K32:
        return (Fragment){.word = 2, .inner = 5, .rows = 1};
    case MMA_M8N8K4:
        return (Fragment){.word = 0, .inner = 2, .rows = 0};
    }
    return (Fragment){0};
}

static void need(Draft *draft, const BitQueue *queue, unsigned bits) {
    if (queue_count(queue) < bits) {
        draft->bad = true;
    }
}

// 8 x inner of the unit, with the extra outer bits (16 rows) in registers.
static void push_unit(Draft *draft, BitQueue *inner, BitQueue *outer, Fragment fragment) {
    need(draft, inner, fragment.inner);
    need(draft, outer, 3 + fragment.rows);
    draft_push_low(draft, IN_REG, inner, fragment.word);
    draft_push_low(draft, IN_LANE, inner, 2);
    draft_push_low(draft, IN_LANE, outer, 3);
    draft_push_low(draft, IN_REG, outer, fragment.rows);
    draft_push_low(draft, IN_REG, inner, fragment.inner - fragment.word - 2);
}

// Warps that cut the rows (columns), or replicas of a tile that does not have them.
static void push_warps(Draft *draft, const DotTile *tile, BitQueue *rows, BitQueue *cols) {
    unsigned nrows = draft_log2(draft, tile->warps_rows);
    unsigned ncols = draft_log2(draft, tile->warps_cols);
    if (rows != NULL) {
        draft_push_high(draft, IN_WARP, rows, nrows);
    } else {
        draft_push_zero(draft, IN_WARP, nrows);
    }
    if (cols != NULL) {
        draft_push_high(draft, IN_WARP, cols, ncols);
    } else {
        draft_push_zero(draft, IN_WARP, ncols);
    }
}

static void push_repeats(Draft *draft, BitQueue *inner, BitQueue *outer, BitQueue *batch) {
    draft_push_rest(draft, IN_REG, inner);
    draft_push_rest(draft, IN_REG, outer);
    draft_push_rest(draft, IN_REG, batch);
}

// Collects the axes of the operand and their bits; unused lists stay empty.
static Queues draft_tile(Draft *draft, const DotTile *tile, bool rows, bool cols, bool ks) {
    unsigned nrows = rows ? tile->nrows : 0, ncols = cols ? tile->ncols : 0;
    unsigned nks = ks ? tile->nks : 0;
    draft_axes(draft, tile->rows, nrows);
    draft_axes(draft, tile->cols, ncols);
    draft_axes(draft, tile->ks, nks);
    draft_axes(draft, tile->batch, tile->nbatch);
    return (Queues){
        .rows = draft_queue(draft, tile->rows, nrows),
        .cols = draft_queue(draft, tile->cols, ncols),
        .ks = draft_queue(draft, tile->ks, nks),
        .batch = draft_queue(draft, tile->batch, tile->nbatch),
    };
}

const Layout *layout_mma_a(LayoutTable *table, MmaUnit unit, const DotTile *tile) {
    Draft draft = {0};
    Queues q = draft_tile(&draft, tile, true, false, true);
    push_unit(&draft, &q.ks, &q.rows, unit_operand(unit));
    push_warps(&draft, tile, &q.rows, NULL);
    push_repeats(&draft, &q.ks, &q.rows, &q.batch);
    return draft_finish(table, &draft);
}

const Layout *layout_mma_b(LayoutTable *table, MmaUnit unit, const DotTile *tile) {
    Draft draft = {0};
    Queues q = draft_tile(&draft, tile, false, true, true);
    Fragment fragment = unit_operand(unit);
    fragment.rows = 0;
    push_unit(&draft, &q.ks, &q.cols, fragment);
    push_warps(&draft, tile, NULL, &q.cols);
    push_repeats(&draft, &q.ks, &q.cols, &q.batch);
    return draft_finish(table, &draft);
}

const Layout *layout_mma_c(LayoutTable *table, MmaUnit unit, const DotTile *tile) {
    Draft draft = {0};
    Queues q = draft_tile(&draft, tile, true, true, false);
    Fragment result = {.word = 1, .inner = 3, .rows = unit_operand(unit).rows};
    push_unit(&draft, &q.cols, &q.rows, result);
    push_warps(&draft, tile, &q.rows, &q.cols);
    push_repeats(&draft, &q.cols, &q.rows, &q.batch);
    return draft_finish(table, &draft);
}

// Rows 16 and 32: the four warps of a group.
static void push_group(Draft *draft, BitQueue *rows) {
    need(draft, rows, 2);
    draft_push_low(draft, IN_WARP, rows, 2);
}

const Layout *layout_wgmma_d(LayoutTable *table, const DotTile *tile) {
    Draft draft = {0};
    Queues q = draft_tile(&draft, tile, true, true, false);
    push_unit(&draft, &q.cols, &q.rows, (Fragment){.word = 1, .inner = 3, .rows = 1});
    push_group(&draft, &q.rows);
    push_warps(&draft, tile, &q.rows, &q.cols);
    push_repeats(&draft, &q.cols, &q.rows, &q.batch);
    return draft_finish(table, &draft);
}

const Layout *layout_wgmma_a(LayoutTable *table, const DotTile *tile, unsigned element_bits) {
    Draft draft = {0};
    unsigned word = draft_log2(&draft, 32 / (element_bits == 0 ? 1 : element_bits));
    Queues q = draft_tile(&draft, tile, true, false, true);
    // The unit's k is 32 bytes of every type.
    push_unit(&draft, &q.ks, &q.rows, (Fragment){.word = word, .inner = word + 3, .rows = 1});
    push_group(&draft, &q.rows);
    push_warps(&draft, tile, &q.rows, NULL);
    push_repeats(&draft, &q.ks, &q.rows, &q.batch);
    return draft_finish(table, &draft);
}

const Layout *layout_fma_c(LayoutTable *table, const FmaSplit *split, const DotTile *tile) {
    Draft draft = {0};
    Queues q = draft_tile(&draft, tile, true, true, false);
    unsigned tm = draft_log2(&draft, split->tm), tn = draft_log2(&draft, split->tn);
    unsigned lanes_rows = draft_log2(&draft, split->lanes_rows);
    unsigned lanes_cols = draft_log2(&draft, split->lanes_cols);
    if (split->lane_first) {
        draft_push_low(&draft, IN_LANE, &q.cols, lanes_cols);
        draft_push_low(&draft, IN_REG, &q.cols, tn);
    } else {
        draft_push_low(&draft, IN_REG, &q.cols, tn);
        draft_push_low(&draft, IN_LANE, &q.cols, lanes_cols);
    }
    draft_push_low(&draft, IN_REG, &q.rows, tm);
    draft_push_low(&draft, IN_LANE, &q.rows, lanes_rows);
    push_warps(&draft, tile, &q.rows, &q.cols);
    push_repeats(&draft, &q.cols, &q.rows, &q.batch);
    return draft_finish(table, &draft);
}

// Slice of c over the axes of `drop`, with the contraction below the other registers.
static const Layout *fma_operand(LayoutTable *table, const Layout *c, const DotTile *tile,
                                 const AxisSize *keep, unsigned nkeep) {
    Draft draft = {0};
    uint16_t axes[AXES_MAX];
    unsigned naxes = 0;
    for (unsigned i = 0; i < nkeep && naxes < AXES_MAX; i++) {
        axes[naxes++] = keep[i].axis;
    }
    for (unsigned i = 0; i < tile->nbatch && naxes < AXES_MAX; i++) {
        axes[naxes++] = tile->batch[i].axis;
    }
    const Layout *slice = c == NULL ? NULL : layout_slice_to(table, c, axes, naxes);
    if (slice == NULL) {
        return NULL;
    }
    draft_axes_of(&draft, slice, NULL, 0);
    draft_axes(&draft, tile->ks, tile->nks);
    BitQueue ks = draft_queue(&draft, tile->ks, tile->nks);
    draft_push_rest(&draft, IN_REG, &ks);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < slice->nin[d]; b++) {
            draft_push(&draft, d, draft_mask(&draft, slice, slice->col[d][b]));
        }
    }
    return draft_finish(table, &draft);
}

const Layout *layout_fma_a(LayoutTable *table, const Layout *c, const DotTile *tile) {
    return fma_operand(table, c, tile, tile->rows, tile->nrows);
}

const Layout *layout_fma_b(LayoutTable *table, const Layout *c, const DotTile *tile) {
    return fma_operand(table, c, tile, tile->cols, tile->ncols);
}

// Pass layouts: where each tile's elements live.
//
// In:  stage scheduled. Out: the same ops, every tile type with a layout, buffers with an offset
// layout, `convert` where two
//      needs disagree.
// Greedy: products fix their fragments; layouts spread along elementwise ops, reductions and
// carried values until nothing changes; the largest tile that is still free gets the blocked layout
// with the longest run along the contiguous axis; and so on. Then every op's rule is checked and
// conversions (or, for cheap index tiles, copies of their computation) are put in.
#include "ir/nest.h"
#include "ir/remark.h"
#include "lang/base/vec.h"

typedef struct Assign {
    PassCtx *ctx;
    Kernel *k;
    LayoutTable *table;
    Nest nest;
    int warps;
    AxisSet chained; // rows of products whose results are operands of others
    bool changed, failed;
} Assign;

static bool is_tile(const Value *v) {
    return v->type.axes.n > 0 && (v->kind == VALUE_OP || v->kind == VALUE_ARG);
}

static void fail(Assign *a, const Op *op, const char *what) {
    if (!a->failed)
        diag_add(a->ctx->diags, DIAG_UNSUPPORTED, op->span, "not supported yet: %s (%s)", what,
                 op_info(op->kind)->text);
    a->failed = true;
}

static const Layout *slice_to(Assign *a, const Layout *l, AxisSet axes) {
    return layout_slice_to(a->table, l, axes.id, axes.n);
}

static void give(Assign *a, Value *v, const Layout *l) {
    if (!is_tile(v) || v->type.layout || !l)
        return;
    v->type.layout = l;
    a->changed = true;
}

// The layout restricted to the value's axes.
static void give_slice(Assign *a, Value *v, const Layout *l) {
    if (is_tile(v) && !v->type.layout && l)
        give(a, v, slice_to(a, l, v->type.axes));
}

// --- anchors: products ---

static int axis_sizes(const Kernel *k, AxisSet s, AxisSize *out) {
    for (int i = 0; i < s.n; i++)
        out[i] = (AxisSize){s.id[i], k->axis[s.id[i]]->size};
    // Lowest bits first: the last declared axis varies fastest.
    for (int i = 0; i < s.n / 2; i++) {
        AxisSize t = out[i];
        out[i] = out[s.n - 1 - i];
        out[s.n - 1 - i] = t;
    }
    return s.n;
}

static uint32_t elements(const AxisSize *s, int n) {
    uint32_t e = 1;
    for (int i = 0; i < n; i++)
        e *= s[i].size;
    return e;
}

// Warps along rows and columns: halve the longer side of a warp's tile, never below the unit's.
static void split_warps(uint32_t warps, uint32_t rows, uint32_t cols, uint32_t min_rows,
                        uint32_t min_cols, uint32_t *wr, uint32_t *wc) {
    *wr = *wc = 1;
    while (*wr * *wc < warps) {
        bool row_can = rows / *wr >= 2 * min_rows, col_can = cols / *wc >= 2 * min_cols;
        if (row_can && (rows / *wr >= cols / *wc || !col_can))
            *wr *= 2;
        else if (col_can)
            *wc *= 2;
        else
            break;
    }
}

// A product that reaches `v` through elementwise ops, or NULL.
static const Op *product_behind(const Value *v, int depth) {
    if (v->kind != VALUE_OP || v->type.axes.n == 0 || depth == 0)
        return NULL;
    if (v->def->kind == OP_DOT)
        return v->def;
    const Op *found = NULL;
    for (int i = 0; i < v->def->nin && !found && op_has(v->def->kind, TRAIT_ELEMENTWISE); i++)
        found = product_behind(v->def->in[i], depth - 1);
    return found;
}

// Where a product's rows are another's result (the second product of attention), each warp takes
// whole rows of both: what one gives the other stays in its threads.
static void find_chained(void *user, Op *op) {
    enum { CHAIN_DEPTH = 12 };
    Assign *a = user;
    const Op *from = op->kind == OP_DOT ? product_behind(op->in[0], CHAIN_DEPTH) : NULL;
    if (from && axes_equal(dot_axes(from).rows, dot_axes(op).rows))
        a->chained = dot_axes(op).rows;
}

typedef struct DotLayouts {
    const Layout *a, *b, *c;
    const char *unit;
    bool swapped; // the unit's rows are the second operand's
} DotLayouts;

// What is left of a size is its odd factor.
static uint32_t power_of_two_in(uint32_t size) {
    return size & (~size + 1);
}

// Fewer elements for each thread where there would be none for some of the warps.
static FmaSplit fma_split(const TargetDesc *t, uint32_t warps, uint32_t rows, uint32_t cols) {
    FmaSplit s = {.tm = 4, .tn = 4, .lanes_rows = 4, .lanes_cols = (uint32_t)t->lanes / 4};
    if (t->family == TARGET_CPU)
        return (FmaSplit){.tm = power_of_two_in(rows),
                          .tn = 1,
                          .lanes_rows = 1,
                          .lanes_cols = (uint32_t)t->lanes,
                          .lane_first = true};
    while (s.tm > 1 && s.tm * s.lanes_rows > rows)
        s.tm /= 2;
    while (s.tn > 1 && s.tn * s.lanes_cols > cols)
        s.tn /= 2;
    while (s.lanes_rows > 1 && s.lanes_rows > rows) {
        s.lanes_rows /= 2;
        s.lanes_cols *= 2;
    }
    uint64_t most = (uint64_t)rows * cols / ((uint64_t)t->lanes * warps);
    while (s.tm * s.tn > 1 && s.tm * s.tn > most) {
        if (s.tm >= s.tn)
            s.tm /= 2;
        else
            s.tn /= 2;
    }
    return s;
}

// Fragments of the unit. A tile with fewer rows than the unit has is computed transposed: the
// second operand's columns become the unit's rows.
static DotLayouts unit_layouts(Assign *as, const DotUnit *unit, DotTile *tile, uint32_t m,
                               uint32_t n, bool chained) {
    DotLayouts l = {.unit = unit->name, .swapped = m < unit->rows && n >= unit->rows};
    DotTile t = *tile;
    if (l.swapped) {
        t.rows = tile->cols;
        t.nrows = tile->ncols;
        t.cols = tile->rows;
        t.ncols = tile->nrows;
    }
    uint32_t rows = l.swapped ? n : m, cols = l.swapped ? m : n;
    if (rows < unit->rows || cols < 8)
        return (DotLayouts){0};
    split_warps((uint32_t)as->warps, rows, chained && !l.swapped ? 1 : cols, unit->rows, 8,
                &t.warps_rows, &t.warps_cols);
    const Layout *a = layout_mma_a(as->table, unit->unit, &t),
                 *b = layout_mma_b(as->table, unit->unit, &t);
    l.a = l.swapped ? b : a;
    l.b = l.swapped ? a : b;
    l.c = layout_mma_c(as->table, unit->unit, &t);
    return l;
}

static DotLayouts dot_layouts(Assign *as, const Op *dot) {
    DotAxes d = dot_axes(dot);
    AxisSize rows[AXES_MAX], cols[AXES_MAX], ks[AXES_MAX], batch[AXES_MAX];
    DotTile tile = {.rows = rows, .cols = cols, .ks = ks, .batch = batch};
    tile.nrows = (uint8_t)axis_sizes(as->k, d.rows, rows);
    tile.ncols = (uint8_t)axis_sizes(as->k, d.cols, cols);
    tile.nks = (uint8_t)axis_sizes(as->k, d.along, ks);
    tile.nbatch = (uint8_t)axis_sizes(as->k, d.batch, batch);
    uint32_t m = elements(rows, tile.nrows), n = elements(cols, tile.ncols),
             k = elements(ks, tile.nks);
    DotLayouts l = {0};
    DotUnit unit;
    if (dot_unit(as->ctx->target, dot, k, &unit)) {
        bool chained = m / unit.rows >= (uint32_t)as->warps && axes_equal(d.rows, as->chained);
        l = unit_layouts(as, &unit, &tile, m, n, chained);
        if (l.a && l.b && l.c)
            return l;
    }
    if (dot_unit(as->ctx->target, dot, ANY_K, &unit))
        perf_note(as->ctx, as->k, DIAG_NO_MATRIX_UNIT, dot->span,
                  "make its tiles larger: in the `schedule`, or in `tiles(...)`",
                  "this product does not use the matrix unit: its tile of %u x %u x %u is smaller "
                  "than the unit's",
                  m, n, k);
    FmaSplit split = fma_split(as->ctx->target, (uint32_t)as->warps, m, n);
    split_warps((uint32_t)as->warps, m, n, split.tm * split.lanes_rows, split.tn * split.lanes_cols,
                &tile.warps_rows, &tile.warps_cols);
    l.c = layout_fma_c(as->table, &split, &tile);
    l.a = l.c ? layout_fma_a(as->table, l.c, &tile) : NULL;
    l.b = l.c ? layout_fma_b(as->table, l.c, &tile) : NULL;
    l.unit = "fma";
    return l;
}

static void set_axes_lowest_first(Kernel *k, Op *op, AttrId id, AxisSet s) {
    Axis *axes[AXES_MAX];
    for (int i = 0; i < s.n; i++)
        axes[i] = k->axis[s.id[s.n - 1 - i]];
    op_set_axes(k, op, id, s.n, axes);
}

static void anchor_dot(void *user, Op *op) {
    Assign *a = user;
    if (op->kind != OP_DOT)
        return;
    DotLayouts l = dot_layouts(a, op);
    if (!l.a || !l.b || !l.c) {
        fail(a, op, "a product of this shape");
        return;
    }
    DotAxes d = dot_axes(op);
    op_set_str(a->k, op, ATTR_unit, l.unit);
    set_axes_lowest_first(a->k, op, ATTR_rows, l.swapped ? d.cols : d.rows);
    set_axes_lowest_first(a->k, op, ATTR_cols, l.swapped ? d.rows : d.cols);
    give(a, op->res[0], l.c);
    if (op->nin > 2)
        give(a, op->in[2], l.c);
    give(a, op->in[0], l.a);
    give(a, op->in[1], l.b);
}

// --- spreading ---

static void spread_elementwise(Assign *a, Op *op) {
    Value *r = op->res[0];
    for (int i = 0; i < op->nin && !r->type.layout; i++)
        if (is_tile(op->in[i]) && op->in[i]->type.layout &&
            axes_equal(op->in[i]->type.axes, r->type.axes))
            give(a, r, op->in[i]->type.layout);
    for (int i = 0; i < op->nin && r->type.layout; i++)
        give_slice(a, op->in[i], r->type.layout);
}

static void spread_access(Assign *a, Op *op, Value *v) {
    for (int i = 0; i < op->nin && v->type.layout; i++)
        if (op->in[i] != v && axes_subset(op->in[i]->type.axes, v->type.axes))
            give_slice(a, op->in[i], v->type.layout);
}

// A take along an axis that stays (a shift, a butterfly) keeps the tile's layout, a picked plane
// its slice: what is not taken from elsewhere stays in its thread.
static void spread_take(Assign *a, Op *op) {
    Value *v = op->in[0], *r = op->res[0];
    if (is_tile(v) && v->type.layout && axes_subset(r->type.axes, v->type.axes))
        give_slice(a, r, v->type.layout);
    if (r->type.layout && axes_equal(r->type.axes, v->type.axes))
        give(a, v, r->type.layout);
    for (int i = 1; i < op->nin && r->type.layout; i++)
        give_slice(a, op->in[i], r->type.layout);
}

static void spread_equal(Assign *a, int n, Value **v) {
    const Layout *l = NULL;
    for (int i = 0; i < n; i++)
        if (v[i] && is_tile(v[i]) && v[i]->type.layout)
            l = v[i]->type.layout;
    for (int i = 0; i < n && l; i++)
        if (v[i] && is_tile(v[i]))
            give(a, v[i], l);
}

static void spread_region_op(Assign *a, Op *op) {
    for (int i = 0; i < op->nres; i++) {
        Value *group[5] = {op->res[i]};
        int n = 1;
        for (int j = 0; j < op->nregion; j++) {
            Op *y = region_yield(op->region[j]);
            if (y)
                group[n++] = y->in[i];
        }
        if (i < op->ncarry) {
            group[n++] = op_carry_arg(op, i);
            Value *init = op_carry_init(op, i);
            if (axes_equal(init->type.axes, op->res[i]->type.axes))
                group[n++] = init;
        }
        spread_equal(a, n, group);
    }
}

// The operand with all axes and, of a scan, the results have one layout; the rest its slices.
static void spread_fold(Assign *a, Op *op) {
    Value *group[FOLD_VALUES_MAX + 1] = {op_full_operand(op)};
    int n = 1;
    for (int i = 0; op->kind == OP_SCANFN && i < op->nres; i++)
        group[n++] = op->res[i];
    spread_equal(a, n, group);
    for (int i = 0; i < op_fold_values(op); i++)
        give_slice(a, op->in[i], group[0]->type.layout);
    for (int i = 0; i < op->nres; i++)
        give_slice(a, op->res[i], group[0]->type.layout);
}

// What an op along axes gives to its result i: the operand's layout without the axes, or the first
// elements of it along the new axis. NULL: the operand has no layout yet.
static const Layout *natural_result(Assign *a, const Op *op, int i) {
    const Value *v = op_full_operand(op);
    const Layout *l = v && is_tile(v) ? v->type.layout : NULL;
    if (!l || op->kind == OP_SORT)
        return l;
    if (op->kind == OP_TOPK)
        return layout_first(a->table, l, op->axes[0]->id, op->axes[1]->id, op->axes[1]->size);
    return slice_to(a, l, op->res[i]->type.axes);
}

static bool has_natural_result(const Op *op) {
    return op->kind == OP_REDUCE || op->kind == OP_ARGREDUCE || op->kind == OP_SORT ||
           op->kind == OP_TOPK;
}

static void spread_natural(Assign *a, Op *op) {
    if (op->kind == OP_SORT) // the operand takes what a user of the values wants
        give(a, op->in[0], op->res[0]->type.layout);
    for (int i = 0; i < op->nres; i++)
        give(a, op->res[i], natural_result(a, op, i));
}

// Its axes are those of its operands together.
static bool is_elementwise(const Op *op) {
    return op->nres == 1 && (op_has(op->kind, TRAIT_ELEMENTWISE) || op->kind == OP_INSIDE);
}

static void spread_op(void *user, Op *op) {
    Assign *a = user;
    if (op_has(op->kind, TRAIT_FUNCTION)) {
        spread_fold(a, op);
    } else if (op->nregion > 0) {
        spread_region_op(a, op);
    } else if (op->kind == OP_LOAD) {
        spread_access(a, op, op->res[0]);
    } else if (op->kind == OP_STORE || op->kind == OP_ATOMIC || op->kind == OP_SCATTER) {
        spread_access(a, op, op_store_value(op));
        if (op->nres > 0 && is_tile(op->res[0])) {
            Value *group[2] = {op_store_value(op), op->res[0]};
            spread_equal(a, 2, group);
        }
    } else if (has_natural_result(op)) {
        spread_natural(a, op);
    } else if (op->kind == OP_TAKE) {
        spread_take(a, op);
    } else if (op->kind == OP_SCAN) {
        Value *group[2] = {op->in[0], op->res[0]};
        spread_equal(a, 2, group);
    } else if (is_elementwise(op)) {
        spread_elementwise(a, op);
    }
}

static void spread_all(Assign *a, Region *body) {
    do {
        a->changed = false;
        ir_walk(body, spread_op, a);
    } while (a->changed);
}

// --- defaults ---

typedef struct Largest {
    Assign *a;
    Value *best;
    uint64_t size;
} Largest;

static void find_largest(void *user, Op *op) {
    Largest *l = user;
    for (int i = 0; i < op->nres + op->nregion; i++) {
        const Region *r = i >= op->nres ? op->region[i - op->nres] : NULL;
        for (int j = 0; j < (r ? r->narg : 1); j++) {
            Value *v = r ? r->arg[j] : op->res[i];
            uint64_t size = tile_elements(l->a->k, v->type.axes);
            if (is_tile(v) && !v->type.layout && size > l->size) {
                l->best = v;
                l->size = size;
            }
        }
    }
}

// A short row that is held whole and lies along the contiguous axis, with rows for every warp.
static bool rows_of_warps(const Assign *a, const AxisSize *sizes, int n) {
    const Axis *row = a->k->axis[sizes[0].axis];
    return n == 2 && row->hi && !row->is_dim && sizes[0].size <= ROW_OF_A_WARP &&
           sizes[1].size % (uint32_t)a->warps == 0;
}

// An odd factor of the number of rows counts registers, above all bits.
static const Layout *rows_layout(Assign *a, const AxisSize *sizes, int n, uint32_t vec) {
    uint32_t odd = sizes[1].size / power_of_two_in(sizes[1].size);
    AxisSize warp[2] = {sizes[0], {sizes[1].axis, sizes[1].size / odd / (uint32_t)a->warps}};
    AxisSize warps = {sizes[1].axis, odd * (uint32_t)a->warps};
    const Layout *inner =
        layout_blocked(a->table, warp, (unsigned)n, vec, (uint32_t)a->ctx->target->lanes, 1);
    const Layout *outer = layout_blocked(a->table, &warps, 1, 1, 1, (uint32_t)a->warps);
    return inner && outer ? layout_product(a->table, inner, outer) : NULL;
}

static const Layout *default_layout(Assign *a, AxisSet s) {
    const TargetDesc *t = a->ctx->target;
    AxisSize sizes[AXES_MAX];
    int n = axis_sizes(a->k, s, sizes);
    for (int i = 1; i < n; i++) { // the contiguous axis first
        if (sizes[i].axis != a->nest.contiguous)
            continue;
        AxisSize c = sizes[i];
        for (int j = i; j > 0; j--)
            sizes[j] = sizes[j - 1];
        sizes[0] = c;
    }
    if (t->lane_first)
        return layout_blocked_lane_first(a->table, sizes, (unsigned)n, (uint32_t)t->lanes,
                                         (uint32_t)a->warps);
    uint32_t vec = (uint32_t)(t->vec_bytes / a->nest.elem_bytes);
    uint32_t threads = (uint32_t)(t->lanes * a->warps);
    while (vec > 1 && (sizes[0].size % vec != 0 || elements(sizes, n) < vec * threads))
        vec /= 2;
    if (rows_of_warps(a, sizes, n))
        return rows_layout(a, sizes, n, vec ? vec : 1);
    return layout_blocked(a->table, sizes, (unsigned)n, vec ? vec : 1, (uint32_t)t->lanes,
                          (uint32_t)a->warps);
}

// --- buffers ---

static int buffer_fastest(const Mem *buf, const Op *copy) {
    const MemRef *global = copy->mem[0].mem->kind == MEM_BUF ? &copy->mem[1] : &copy->mem[0];
    const MemRef *local = copy->mem[0].mem->kind == MEM_BUF ? &copy->mem[0] : &copy->mem[1];
    if (local->mem != buf || global->nidx == 0)
        return -1;
    int inner = global->mem->inner >= 0 ? global->mem->inner : global->mem->rank - 1;
    const Value *v = copy->in[global->first + inner];
    if (v->type.axes.n == 0)
        return -1;
    uint16_t id = v->type.axes.id[v->type.axes.n - 1];
    for (int i = 0; i < local->nrename; i++)
        if (local->rename[i].to == id)
            return local->rename[i].from;
    return id;
}

static void give_buffer(void *user, Op *op) {
    Assign *a = user;
    if (op->kind != OP_COPY)
        return;
    Mem *buf = op->mem[0].mem->kind == MEM_BUF ? op->mem[0].mem : op->mem[1].mem;
    if (buf->layout)
        return;
    int fastest = buffer_fastest(buf, op);
    AxisSize sizes[AXES_MAX];
    int n = axis_sizes(a->k, buf->axes, sizes);
    for (int i = 1; i < n; i++) {
        if (sizes[i].axis != fastest)
            continue;
        AxisSize c = sizes[i];
        for (int j = i; j > 0; j--)
            sizes[j] = sizes[j - 1];
        sizes[0] = c;
    }
    unsigned bits = dtype_bits(buf->dtype), row = sizes[0].size * bits / 8;
    unsigned swizzle = row >= 128 ? 128 : row >= 64 ? 64 : row >= 32 ? 32 : 0;
    if (bits < 8 || a->ctx->target->family == TARGET_CPU)
        swizzle = 0;
    buf->layout = layout_shared(a->table, sizes, (unsigned)n, bits, swizzle);
    if (!buf->layout)
        fail(a, op, "a buffer of this shape");
}

// A ring that nothing fills is no buffer of this pass.
static void need_buffer(void *user, Op *op) {
    Assign *a = user;
    if (op->kind == OP_BUF && op->sub == BUF_SHARED && !op->def_mem->layout)
        fail(a, op, "a buffer that no copy fills");
}

// --- conversions ---

// Index tiles and masks are computed again in the layout that is asked for.
static bool is_cheap(const Value *v, int depth) {
    if (v->kind != VALUE_OP)
        return v->kind != VALUE_ARG || v->type.axes.n == 0;
    if (v->type.axes.n == 0)
        return true;
    if (depth == 0 || !is_elementwise(v->def))
        return false;
    for (int i = 0; i < v->def->nin; i++)
        if (!is_cheap(v->def->in[i], depth - 1))
            return false;
    return true;
}

static Value *in_layout(Assign *a, Op *user, Value *v, const Layout *want);

static Value *compute_again(Assign *a, Op *user, Value *v, const Layout *want) {
    Builder b = ir_builder_before(a->k, user);
    b.span = v->def->span;
    IrMap map = ir_map_new(a->ctx->scratch, a->k);
    Op *copy = ir_clone(&b, v->def, &map);
    copy->res[0]->type.layout = want;
    for (int i = 0; i < copy->nin; i++)
        if (is_tile(copy->in[i]))
            copy->in[i] =
                in_layout(a, copy, copy->in[i], slice_to(a, want, copy->in[i]->type.axes));
    return copy->res[0];
}

// `v` with layout `want`, made in front of `user`.
static Value *in_layout(Assign *a, Op *user, Value *v, const Layout *want) {
    if (!is_tile(v) || v->type.layout == want || !want)
        return v;
    if (is_cheap(v, 6))
        return compute_again(a, user, v, want);
    Builder b = ir_builder_before(a->k, user);
    b.span = user->span;
    Type t = v->type;
    t.layout = want;
    Value *in[1] = {v};
    Op *op =
        ir_build(&b, &(OpInit){.kind = OP_CONVERT, .nin = 1, .nres = 1, .in = in, .types = &t});
    return op->res[0];
}

static void fix_slices(Assign *a, Op *op, const Layout *full, int skip) {
    for (int i = 0; i < op->nin; i++) {
        Value *v = op->in[i];
        if (i == skip || !is_tile(v) || !full || layout_is_slice(full, v->type.layout))
            continue;
        op->in[i] = in_layout(a, op, v, slice_to(a, full, v->type.axes));
    }
}

// The result has this layout; who wants another one converts it.
static void give_result(Assign *a, Op *op, Value *r, const Layout *natural) {
    const Layout *wanted = r->type.layout;
    if (!is_tile(r) || wanted == natural)
        return;
    r->type.layout = natural;
    Builder b = op->next ? ir_builder_before(a->k, op->next) : ir_builder_at_end(a->k, op->parent);
    b.span = op->span;
    Type t = r->type;
    t.layout = wanted;
    Value *in[1] = {r};
    Op *c = ir_build(&b, &(OpInit){.kind = OP_CONVERT, .nin = 1, .nres = 1, .in = in, .types = &t});
    IrMap m = ir_map_new(a->ctx->scratch, a->k);
    ir_map_value(&m, r, c->res[0]);
    ir_substitute(a->k->body, &m);
    c->in[0] = r;
}

// The operand gives the results their layouts.
static void fix_natural(Assign *a, Op *op) {
    for (int i = 0; i < op->nres; i++) {
        const Layout *natural = natural_result(a, op, i);
        if (natural && is_tile(op->res[i]))
            give_result(a, op, op->res[i], natural);
    }
}

static void fix_fold(Assign *a, Op *op) {
    if (op->kind == OP_FOLD)
        fix_natural(a, op);
    const Layout *full = op->kind == OP_FOLD ? op_full_operand(op)->type.layout : NULL;
    for (int i = 0; !full && i < op->nres; i++)
        full = op->res[i]->type.layout;
    fix_slices(a, op, full, -1);
    for (int i = 0; op->kind == OP_SCANFN && i < op->nres; i++)
        give_result(a, op, op->res[i], full);
}

static void fix_region_op(Assign *a, Op *op) {
    for (int i = 0; i < op->nres; i++) {
        if (!is_tile(op->res[i]))
            continue;
        const Layout *l = op->res[i]->type.layout;
        for (int j = 0; j < op->nregion; j++) {
            Op *y = region_yield(op->region[j]);
            if (y)
                y->in[i] = in_layout(a, y, y->in[i], l);
        }
        if (i < op->ncarry) {
            op_carry_arg(op, i)->type.layout = l;
            int at = op->nin - op->ncarry + i;
            Value *init = op->in[at];
            bool broadcast = is_tile(init) && !axes_equal(init->type.axes, op->res[i]->type.axes);
            op->in[at] = in_layout(a, op, init, broadcast ? slice_to(a, l, init->type.axes) : l);
        }
    }
}

// A stored value that lacks axes of the index is spread over them first (both arms are the value).
static void widen_store(Assign *a, Op *op) {
    Value *v = op_store_value(op);
    AxisSet all = v->type.axes;
    for (int i = 0; i < op->mem[0].nidx; i++)
        axes_union(all, op->in[op->mem[0].first + i]->type.axes, &all);
    AxisSet missing = axes_minus(all, v->type.axes);
    if (op->kind == OP_ATOMIC && v->kind == VALUE_IOTA) // the result's layout is a value's
        missing = all;
    if (missing.n == 0)
        return;
    Builder b = ir_builder_before(a->k, op);
    b.span = op->span;
    for (int i = 0; i < missing.n; i++)
        v = ir_select(&b, ir_inside_axis(&b, a->k->axis[missing.id[i]]), v, v, NULL);
    op->in[op->nin - 1] = v;
}

// The first value of a `print` or `assert` carries the layout: a tile over all axes of the others.
static void widen_debug(Assign *a, Op *op) {
    AxisSet all = axes_none();
    for (int i = 0; i < op->nin; i++)
        axes_union(all, op->in[i]->type.axes, &all);
    Value *v = op->nin > 0 ? op->in[0] : NULL;
    AxisSet missing = v && v->kind == VALUE_IOTA ? all : v ? axes_minus(all, v->type.axes) : all;
    Builder b = ir_builder_before(a->k, op);
    b.span = op->span;
    for (int i = 0; i < missing.n; i++)
        v = ir_select(&b, ir_inside_axis(&b, a->k->axis[missing.id[i]]), v, v, NULL);
    if (v)
        op->in[0] = v;
}

// An iota has no layout of its own: a fold of nothing else gets a tile.
static void widen_fold(Assign *a, Op *op) {
    Value *full = op_full_operand(op);
    for (int i = 0; full->kind == VALUE_IOTA && i < op_fold_values(op); i++) {
        if (op->in[i] != full)
            continue;
        Builder b = ir_builder_before(a->k, op);
        b.span = op->span;
        Value *inside = ir_inside_axis(&b, full->axis);
        op->in[i] = ir_select(&b, inside, full, op->in[op->nres + i], NULL);
        return;
    }
}

static bool is_debug(const Op *op) {
    return op->kind == OP_PRINT || op->kind == OP_ASSERT;
}

// Operands that lie in no register (an axis as a value) get some.
static void widen_along(Assign *a, Op *op) {
    Value *v = op->in[0];
    if (is_tile(v))
        return;
    Builder b = ir_builder_before(a->k, op);
    b.span = op->span;
    op->in[0] = ir_select(&b, ir_inside_axis(&b, op->axes[0]), v, v, NULL);
}

static void widen_take(Assign *a, Op *op) {
    Builder b = ir_builder_before(a->k, op);
    b.span = op->span;
    Value *index = take_of_axis(&b, op);
    if (!index)
        return;
    IrMap map = ir_map_new(a->ctx->scratch, a->k);
    ir_map_value(&map, op->res[0], index);
    ir_substitute(a->k->body, &map);
    ir_op_unlink(op);
}

static void widen_op(void *user, Op *op) {
    if (op->kind == OP_TAKE)
        widen_take(user, op);
    if (is_debug(op))
        widen_debug(user, op);
    if (op->kind == OP_FOLD)
        widen_fold(user, op);
    if (op->kind == OP_SORT || op->kind == OP_TOPK || op->kind == OP_REDUCE ||
        op->kind == OP_ARGREDUCE)
        widen_along(user, op);
    if (op->kind == OP_STORE || op->kind == OP_SCATTER || op->kind == OP_ATOMIC)
        widen_store(user, op);
}

static void fix_op(void *user, Op *op) {
    Assign *a = user;
    if (op_has(op->kind, TRAIT_FUNCTION)) {
        fix_fold(a, op);
    } else if (op->nregion > 0) {
        fix_region_op(a, op);
    } else if (op->kind == OP_DOT) {
        DotLayouts l = dot_layouts(a, op);
        op->in[0] = in_layout(a, op, op->in[0], l.a);
        op->in[1] = in_layout(a, op, op->in[1], l.b);
        if (op->nin > 2)
            op->in[2] = in_layout(a, op, op->in[2], l.c);
    } else if (has_natural_result(op)) {
        fix_natural(a, op);
    } else if (op->kind == OP_LOAD) {
        fix_slices(a, op, op->res[0]->type.layout, -1);
    } else if (op->kind == OP_TAKE) {
        fix_slices(a, op, op->res[0]->type.layout, 0);
    } else if (op->kind == OP_STORE || op->kind == OP_ATOMIC || op->kind == OP_SCATTER) {
        bool gives = op->nres > 0 && is_tile(op->res[0]);
        if (gives)
            op->in[op->nin - 1] = in_layout(a, op, op_store_value(op), op->res[0]->type.layout);
        fix_slices(a, op, op_store_value(op)->type.layout, op->nin - 1);
    } else if (is_debug(op) && op->nin > 0 && is_tile(op->in[0])) {
        fix_slices(a, op, op->in[0]->type.layout, 0);
    } else if (op->kind == OP_SCAN) {
        op->in[0] = in_layout(a, op, op->in[0], op->res[0]->type.layout);
    } else if (is_elementwise(op)) {
        fix_slices(a, op, op->res[0]->type.layout, -1);
    }
}

// --- stores of fragments ---

// A tile whose registers do not run along the contiguous dim is converted before it is stored:
// 16-byte stores instead of 4-byte ones are worth a round trip through shared memory. A fragment's
// 8-byte pairs are not: four lanes fill a sector of 32 bytes.
enum { SECTOR_OF_LANES = 8 };
static void store_blocked(void *user, Op *op) {
    Assign *a = user;
    const TargetDesc *t = a->ctx->target;
    Value *v = op->kind == OP_STORE ? op_store_value(op) : NULL;
    if (!v || !is_tile(v) || t->family == TARGET_CPU || a->nest.ndots == 0 ||
        op->mem[0].mem->inner < 0)
        return;
    const Value *inner = op->in[op->mem[0].first + op->mem[0].mem->inner];
    if (inner->kind != VALUE_IOTA || !v->type.layout || !axes_has(v->type.axes, inner->axis->id))
        return;
    unsigned want = 0, have = layout_run(v->type.layout, inner->axis->id, NULL);
    while ((dtype_bits(v->type.dtype) << (want + 1)) <= 128)
        want++;
    bool sectors = (dtype_bits(v->type.dtype) / 8 << have) >= SECTOR_OF_LANES;
    int contiguous = a->nest.contiguous;
    a->nest.contiguous = inner->axis->id;
    const Layout *l = have < want && !sectors ? default_layout(a, v->type.axes) : NULL;
    a->nest.contiguous = contiguous;
    if (!l || layout_run(l, inner->axis->id, NULL) <= have)
        return;
    op->in[op->nin - 1] = in_layout(a, op, v, l);
    fix_slices(a, op, l, op->nin - 1);
}

static bool nest_layouts(PassCtx *ctx, Kernel *k, Op *par) {
    Assign a = {.ctx = ctx, .k = k, .table = ctx->module->layouts, .nest = nest_of(par)};
    a.warps = (int)op_attr_int(par, ATTR_warps);
    a.warps = a.warps ? a.warps : 1;
    Region *body = par->region[0];
    ir_walk(body, widen_op, &a);
    ir_walk(body, find_chained, &a);
    ir_walk(body, anchor_dot, &a);
    ir_walk(body, give_buffer, &a);
    ir_walk(body, need_buffer, &a);
    for (;;) {
        spread_all(&a, body);
        Largest l = {.a = &a};
        find_largest(&l, par);
        ir_walk(body, find_largest, &l);
        if (!l.best || a.failed)
            break;
        const Layout *d = default_layout(&a, l.best->type.axes);
        if (!d && tile_elements(k, l.best->type.axes) > tile_most(ctx->target, a.warps)) {
            tile_too_large(ctx, k, par->span, l.best->type.axes, a.warps);
            return false;
        }
        if (!d) {
            fail(&a, par, "a tile of this shape");
            break;
        }
        give(&a, l.best, d);
    }
    if (a.failed)
        return false;
    ir_walk(body, fix_op, &a);
    ir_walk(body, store_blocked, &a);
    return !a.failed;
}

bool pass_layouts(PassCtx *ctx, Kernel *k) {
    return each_nest(ctx, k, nest_layouts);
}

// Pass pack: the second operand of a product is first copied into panels, on the CPU.
//
// In and out: stage scheduled, before bounds. A program of the product then reads one panel from
// its first element to its last, whatever the operand's strides are: rows that lie a power of two
// apart fall into few sets of a cache, and columns that are not contiguous have to be gathered.
// Where few rows share a panel the copy costs more than it brings: that is decided at launch.
//
//   parallel m in 0..%M, n in 0..%N { for k in 0..%K { %v = f(load @w[k, n]); dot[k] %u, %v, .. } }
//   => if %M >= 32 {
//        @p = temp : [cdiv %N 32, %K, 32]
//        parallel p in 0..%N, k' in 0..%K { store @p[begin p / 32, k', p - begin p], f(..) }
//        parallel m .., n .. { for k .. { %v = load @p[begin n / 32, k, n - begin n]; dot .. } }
//      } else { as before }
#include "ir/fuse.h"
#include "ir/nest.h"
#include "ir/remark.h"

enum { LOOPS_MAX = RANK_MAX - 2, TREE_DEPTH = 16, ROWS_LEAST = 32, ALONG_TILE = 8 };

// A binder of a loop around the product that the operand depends on.
typedef struct Along {
    const Op *loop;
    int binder;
    Value *extent; // its positions are 0 .. that
    bool used;
} Along;

typedef struct Pack {
    PassCtx *ctx;
    Kernel *k;
    Op *par;
    const Op *dot;
    Axis *cols;   // in lanes
    Value *ncols; // its extent
    Along along[LOOPS_MAX];
    int nalong, used;
    const Mem *source; // one of the tensors that the operand comes from
} Pack;

static bool known_at_launch(const Pack *p, const Value *v) {
    if (v->kind == VALUE_OP)
        return !op_is_in(v->def, p->par->region[0]);
    return v->kind != VALUE_ARG || !region_contains(p->par->region[0], v->region);
}

typedef struct Declared {
    const Axis *axis;
    bool here;
} Declared;

static void find_declaration(void *user, Op *op) {
    Declared *d = user;
    d->here |= op->kind == OP_AXIS && op->axes[0] == d->axis;
}

// The axis whose index space `a` walks, as far as that is declared outside the nest; else NULL.
static Axis *outer_of(const Pack *p, const Axis *a) {
    Axis *of = a->of;
    while (of) {
        Declared d = {.axis = of};
        ir_walk(p->par->region[0], find_declaration, &d);
        if (!d.here)
            return of;
        of = of->of;
    }
    return NULL;
}

static bool is_window_of(const Axis *a, const Value *lo, const Value *hi) {
    bool ends = lo->kind == VALUE_OP && lo->def->kind == OP_BEGIN && hi->kind == VALUE_OP &&
                hi->def->kind == OP_END;
    return ends && a && lo->def->axes[0] == a && hi->def->axes[0] == a;
}

// NULL: the range is not 0.. something known, nor the window of a loop around it that has such a
// range.
static Value *find_extent(const Pack *p, const Op *loop, int i) {
    Value *lo = op_binder_lo(loop, i), *hi = op_binder_hi(loop, i);
    if (loop->binder[i].has_step)
        return NULL;
    if (value_is_int(lo, 0) && known_at_launch(p, hi))
        return hi;
    for (int j = 0; j < p->nalong && loop->binder[i].axis; j++)
        if (is_window_of(p->along[j].loop->binder[p->along[j].binder].axis, lo, hi))
            return p->along[j].extent;
    return NULL;
}

// The loops between the nest and the product, from the outside. False: something else is there, or
// a range without an extent.
static bool find_loops(Pack *p) {
    const Op *loops[LOOPS_MAX];
    int n = 0;
    for (const Op *op = p->dot->parent->owner; op != p->par; op = op->parent->owner) {
        if (!op || op->kind != OP_FOR || n == LOOPS_MAX)
            return false;
        loops[n++] = op;
    }
    while (n-- > 0)
        for (int i = 0; i < loops[n]->nbinders; i++) {
            Value *extent = find_extent(p, loops[n], i);
            if (!extent || p->nalong == LOOPS_MAX)
                return false;
            p->along[p->nalong++] = (Along){.loop = loops[n], .binder = i, .extent = extent};
        }
    return true;
}

static bool note_along(Pack *p, const Value *v) {
    for (int i = 0; i < p->nalong; i++) {
        const Binder *b = &p->along[i].loop->binder[p->along[i].binder];
        if (v->kind == VALUE_IOTA ? b->axis == v->axis : b->var == v) {
            p->used += !p->along[i].used;
            return p->along[i].used = true;
        }
    }
    return false;
}

// --- the operand's computation ---

// It depends on columns and loops only: loads and elementwise operations.
static bool can_copy(Pack *p, const Value *v, int depth) {
    if (v->kind == VALUE_IOTA)
        return v->axis == p->cols || note_along(p, v);
    if (v->kind == VALUE_CONST || v->kind == VALUE_PARAM || known_at_launch(p, v))
        return true;
    if (v->kind == VALUE_ARG)
        return note_along(p, v);
    if (v->kind != VALUE_OP || depth == 0 || v->def->nres != 1)
        return false;
    const Op *op = v->def;
    bool loads = op->kind == OP_LOAD && !op_writes(p->par, op->mem[0].mem);
    if (!loads && (op->nmem > 0 || op->nregion > 0 || !op_has(op->kind, TRAIT_ELEMENTWISE)))
        return false;
    if (loads)
        p->source = op->mem[0].mem;
    for (int i = 0; i < op->nin; i++)
        if (!can_copy(p, op->in[i], depth - 1))
            return false;
    return true;
}

static Value *copy_value(Pack *p, Builder *b, Value *v, IrMap *map) {
    bool is_here = v->kind == VALUE_OP && op_is_in(v->def, p->par->region[0]);
    if (!is_here || ir_mapped(map, v) != v)
        return ir_mapped(map, v);
    for (int i = 0; i < v->def->nin; i++)
        (void)copy_value(p, b, v->def->in[i], map);
    return ir_clone(b, v->def, map)->res[0];
}

// --- the panels ---

// Which panel, then the loops' positions, then the column in the panel. `map`: of axes and loop
// variables.
static void panel_index(Pack *p, Builder *b, Axis *cols, IrMap *map, Value **index) {
    int n = 0;
    index[n++] = ir_binary(b, OP_DIV, ir_begin(b, cols), ir_index(p->k, cols->size), NULL);
    for (int i = 0; i < p->nalong; i++) {
        const Binder *bd = &p->along[i].loop->binder[p->along[i].binder];
        if (p->along[i].used)
            index[n++] = bd->axis ? ir_mapped_axis(map, bd->axis)->iota : ir_mapped(map, bd->var);
    }
    index[n] = ir_binary(b, OP_SUB, cols->iota, ir_begin(b, cols), NULL);
}

static Mem *panels_new(Pack *p, Builder *b) {
    Value *dims[RANK_MAX];
    int n = 0;
    dims[n++] = ir_binary(b, OP_CDIV, p->ncols, ir_index(p->k, p->cols->size), NULL);
    for (int i = 0; i < p->nalong; i++)
        if (p->along[i].used)
            dims[n++] = p->along[i].extent;
    dims[n++] = ir_index(p->k, p->cols->size);
    return ir_temp(b, "panels", p->dot->in[1]->type.dtype, n, dims);
}

// The nest that fills them.
static void panels_fill(Pack *p, Builder *b, Mem *panels) {
    BinderInit binders[RANK_MAX];
    Str det[RANK_MAX];
    int n = 0, vars = 0, last = -1;
    IrMap map = ir_map_new(p->ctx->scratch, p->k);
    Axis *cols = ir_axis(b, p->cols->name, (Axis *)p->cols->of, p->cols->size);
    ir_map_axis(&map, p->cols, cols);
    binders[n++] = (BinderInit){.axis = cols, .lo = ir_index(p->k, 0), .hi = p->ncols};
    for (int i = 0; i < p->nalong; i++)
        if (p->along[i].used && p->along[i].loop->binder[p->along[i].binder].axis)
            last = i;
    for (int i = 0; i < p->nalong; i++) {
        const Binder *bd = &p->along[i].loop->binder[p->along[i].binder];
        if (!p->along[i].used)
            continue;
        Axis *a = NULL;
        if (bd->axis) {
            a = ir_axis(b, bd->axis->name, outer_of(p, bd->axis), i == last ? ALONG_TILE : 1);
            ir_map_axis(&map, bd->axis, a);
        }
        binders[n++] = (BinderInit){.axis = a,
                                    .name = bd->var ? bd->var->name : NULL,
                                    .lo = ir_index(p->k, 0),
                                    .hi = p->along[i].extent};
    }
    Op *fill = ir_parallel(b, n, binders);
    op_set_int(p->k, fill, ATTR_warps, 1);
    for (int i = 0; i < p->nalong; i++) {
        const Binder *bd = &p->along[i].loop->binder[p->along[i].binder];
        if (p->along[i].used && bd->var)
            ir_map_value(&map, bd->var, fill->region[0]->arg[vars++]);
    }
    Builder in = ir_builder_at_end(p->k, fill->region[0]);
    in.span = p->dot->span;
    Value *v = copy_value(p, &in, p->dot->in[1], &map), *index[RANK_MAX];
    panel_index(p, &in, cols, &map, index);
    Op *store = ir_store(&in, panels, index, v);
    for (int i = 0; i < n; i++)
        det[i] = fill->binder[i].axis ? fill->binder[i].axis->name : fill->binder[i].var->name;
    det[n] = det[0];
    op_set_names(p->k, store, ATTR_det, n + 1, det);
}

static void read_panels(Pack *p, Builder *b, Mem *panels) {
    IrMap map = ir_map_new(p->ctx->scratch, p->k);
    ir_clone(b, p->par, &map);
    Op *dot = ir_mapped(&map, p->dot->res[0])->def;
    Builder at = ir_builder_before(p->k, dot);
    at.span = dot->span;
    Value *index[RANK_MAX];
    panel_index(p, &at, ir_mapped_axis(&map, p->cols), &map, index);
    dot->in[1] = ir_load(&at, panels, index, NULL, dot->in[1]->name);
}

// --- where it is worth it ---

// Rows that share a panel: the extents of the other binders of the grid.
static Value *shared_rows(Pack *p, Builder *b) {
    Value *rows = ir_index(p->k, 1);
    for (int i = 0; i < p->par->nbinders; i++) {
        Value *lo = op_binder_lo(p->par, i), *hi = op_binder_hi(p->par, i);
        if (p->par->binder[i].axis == p->cols)
            continue;
        Value *n = value_is_int(lo, 0) ? hi : ir_binary(b, OP_SUB, hi, lo, NULL);
        rows = value_is_int(rows, 1) ? n : ir_binary(b, OP_MUL, rows, n, NULL);
    }
    return rows;
}

static bool find_product(Pack *p, const Nest *n) {
    if (n->ndots != 1 || n->dot->in[1]->type.axes.n == 0)
        return false;
    p->dot = n->dot;
    DotAxes d = dot_axes(n->dot);
    if (d.cols.n != 1 || d.rows.n == 0)
        return false;
    p->cols = p->k->axis[d.cols.id[0]];
    for (int i = 0; i < p->par->nbinders; i++)
        if (p->par->binder[i].axis == p->cols && value_is_int(op_binder_lo(p->par, i), 0))
            p->ncols = op_binder_hi(p->par, i);
    if (!p->ncols || p->cols->size < (uint32_t)p->ctx->target->lanes || !find_loops(p))
        return false;
    return can_copy(p, n->dot->in[1], TREE_DEPTH) && p->source && p->used > 0;
}

static bool nest_pack(PassCtx *ctx, Kernel *k, Op *par) {
    Pack p = {.ctx = ctx, .k = k, .par = par};
    Nest n = nest_of(par);
    if (!find_product(&p, &n))
        return true;
    Builder b = ir_builder_before(k, par);
    b.span = par->span;
    Value *rows = shared_rows(&p, &b);
    if (value_is_const(rows) && rows->u.i < ROWS_LEAST)
        return true;
    Op *choice = ir_if(&b, ir_cmp(&b, CMP_GE, rows, ir_index(k, ROWS_LEAST), NULL), 0, NULL);
    Builder in = ir_builder_at_end(k, choice->region[0]);
    in.span = par->span;
    Mem *panels = panels_new(&p, &in);
    panels_fill(&p, &in, panels);
    read_panels(&p, &in, panels);
    ir_op_move_end(par, choice->region[1]);
    remark(ctx, DIAG_STAGED, p.dot->span,
           "%s: %s is copied into panels of %u columns where %d rows or more share them", k->name,
           remark_mem(ctx, p.source), p.cols->size, ROWS_LEAST);
    return true;
}

bool pass_pack(PassCtx *ctx, Kernel *k) {
    return ctx->target->family != TARGET_CPU || each_nest(ctx, k, nest_pack);
}

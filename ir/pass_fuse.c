// Pass fuse: whole-tensor statements => nests.
//
// In:  stage tensor. A host region holds tile ops, stores (roots) and hand-written `parallel`s.
// Out: stage nests. Every op with a tile result is inside a `parallel`; the host region is the
// launch plan.
//
//   %x = load @x[M, N]; %s = reduce.sum[N] %x; %y = div %x, %s; store @y[M, N], %y
//   => axis m of M; parallel m in 0..%M { %x = load @x[m, N]; ...; store @y[m, N], %y {det = [m,
//   N]} }
//
// A root's grid is every axis of its value that nothing reduces; an axis that is reduced and kept
// stays whole. Neighbours with one grid and no crossing dependence share a nest. Each decision
// leaves a remark for --explain.
#include "ir/fuse.h"
#include "ir/nest.h"

#include <string.h>

#include "ir/remark.h"
#include "lang/base/vec.h"

typedef struct Root {
    Op *op;
    Cone cone;
    AxisSet grid;
} Root;
typedef VEC(Root) RootVec;

bool op_is_tile(const Op *op) {
    return op->nres > 0 && op->res[0]->type.axes.n > 0;
}

bool op_is_root(const Op *op) {
    return op->kind == OP_STORE || op->kind == OP_SCATTER ||
           (op->kind == OP_ATOMIC && op->nres == 0);
}

enum { HOST_DEPTH_MAX = 64 };

// The regions around `host`, itself first.
static int host_chain(const Region *host, const Region **chain) {
    int n = 0;
    for (const Region *r = host; r && n < HOST_DEPTH_MAX; r = r->owner ? r->owner->parent : NULL)
        chain[n++] = r;
    return n;
}

// Host ops that a nest must contain: tile ops and every load (a scalar load reads tensor memory,
// which the host cannot).
static bool op_goes_into_nest(const Op *op) {
    for (int i = 0; i < op->nin; i++)
        if (op->in[i]->type.axes.n > 0) // also of the numbers of an axis, which no op makes
            return true;
    return op_is_tile(op) || op->kind == OP_LOAD || op_has(op->kind, TRAIT_READS);
}

// What values the host cannot compute, by value id: a scalar made from something in the nest
// belongs there as well.
uint8_t *nest_values(Arena *scratch, const Kernel *k, const Region *host) {
    uint8_t *in_nest = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    const Region *chain[HOST_DEPTH_MAX];
    int depth = host_chain(host, chain);
    while (depth-- > 0) {
        for (const Op *op = chain[depth]->first; op; op = op->next) {
            bool in = op_goes_into_nest(op);
            for (int i = 0; i < op->nin && !op_has(op->kind, TRAIT_REGIONS); i++)
                in |= in_nest[op->in[i]->id] != 0;
            for (int i = 0; i < op->nres; i++)
                in_nest[op->res[i]->id] = in;
        }
    }
    return in_nest;
}

// Backwards from the root over values of the nest; then in program order, outer regions first.
Cone cone_of(Arena *scratch, const Kernel *k, const Region *host, const Op *root) {
    const uint8_t *in_nest = nest_values(scratch, k, host);
    uint8_t *needed = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    VEC(Op *) work = {0};
    vec_push(scratch, &work, (Op *)root);
    int n = 0;
    while (work.len > 0) {
        const Op *op = vec_pop(&work);
        for (int i = 0; i < op->nin; i++) {
            Value *v = op->in[i];
            if (v->kind != VALUE_OP || !in_nest[v->id] || needed[v->def->res[0]->id])
                continue;
            needed[v->def->res[0]->id] = 1;
            vec_push(scratch, &work, v->def);
            n++;
        }
    }
    Cone c = {.op = ARENA_ARRAY(scratch, Op *, (size_t)n + 1)};
    const Region *chain[HOST_DEPTH_MAX];
    int depth = host_chain(host, chain);
    while (depth-- > 0)
        for (Op *op = chain[depth]->first; op; op = op->next)
            if (op->nres > 0 && needed[op->res[0]->id])
                c.op[c.n++] = op;
    return c;
}

// --- grids ---

// Axes that some op of the cone reduces, scans or selects along: they must be whole in one program.
static AxisSet cone_whole_axes(const Root *r) {
    AxisSet whole = axes_none();
    for (int i = 0; i < r->cone.n; i++) {
        const Op *op = r->cone.op[i];
        for (int j = 0; j < op->naxes; j++)
            axes_add(&whole, op->axes[j]->id);
    }
    return whole;
}

AxisSet root_axes(const Op *op) {
    AxisSet s = op_store_value(op)->type.axes;
    for (int i = 0; i < op->mem[0].nidx; i++)
        axes_union(s, op->in[op->mem[0].first + i]->type.axes, &s);
    return s;
}

// `later` writes what `earlier` has written, all of it, and nothing reads it between them.
static bool root_overwrites(const Root *earlier, const Root *later) {
    const Op *first = earlier->op, *second = later->op;
    if (first->kind != OP_STORE || second->kind != OP_STORE || !op_same_place(first, second))
        return false;
    for (const Op *op = first; op != second; op = op->next)
        if (op->kind == OP_LOAD && op->mem[0].mem == first->mem[0].mem)
            return false;
    return true;
}

// What the cone loads of the root's tensor is of the root's own program, before the root writes it.
static bool cone_reads_own(const Cone *c, const Op *root) {
    for (int i = 0; i < c->n; i++)
        if (c->op[i]->kind == OP_LOAD && c->op[i]->mem[0].mem == root->mem[0].mem &&
            !op_reads_own(c->op[i], root))
            return false;
    return true;
}

// `later` may share a nest with `earlier`: what one writes the other reads only at the same grid
// point, and before. Loads stand before all stores in a nest. A tensor that both write is written
// by the later one.
static bool roots_commute(const Root *earlier, const Root *later) {
    if (earlier->op->mem[0].mem == later->op->mem[0].mem && !root_overwrites(earlier, later))
        return false;
    return cone_reads_own(&later->cone, earlier->op) && cone_reads_own(&earlier->cone, later->op);
}

static bool root_has_product(const Root *r) {
    for (int i = 0; i < r->cone.n; i++)
        if (r->cone.op[i]->kind == OP_DOT)
            return true;
    return false;
}

// The store of an atomic's old values: the atomic is executed where they are stored.
static bool root_has_atomic(const Root *r) {
    for (int i = 0; i < r->cone.n; i++)
        if (r->cone.op[i]->kind == OP_ATOMIC)
            return true;
    return false;
}

// The root reduces along, or extends along, an axis that is whole in its nest.
static bool root_has_whole(const Kernel *k, const Root *r) {
    AxisSet whole = axes_minus(root_axes(r->op), r->grid);
    for (int i = 0; i < r->cone.n; i++)
        for (int j = 0; j < r->cone.op[i]->naxes && r->cone.op[i]->kind != OP_DOT; j++)
            axes_add(&whole, r->cone.op[i]->axes[j]->id);
    for (int i = 0; i < whole.n; i++)
        if (!axis_is_short(k->axis[whole.id[i]]))
            return true;
    return false;
}

// A product's loop over tiles does not stand beside a whole axis.
static bool roots_mix(const Kernel *k, const Root *a, const Root *b) {
    return (root_has_product(a) && root_has_whole(k, b)) ||
           (root_has_product(b) && root_has_whole(k, a));
}

// --- nests ---

static Value *axis_lo(Kernel *k, const Axis *a) {
    return a->lo ? a->lo : ir_index(k, 0);
}

static Value *axis_hi(const Axis *a) {
    return a->is_dim ? a->extent : a->hi;
}

// The race proof of a store in the nest: the axis that each index position determines.
static void store_prove(PassCtx *ctx, Kernel *k, Op *op) {
    if (op->kind != OP_STORE || op_attr(op, ATTR_det))
        return;
    Str names[RANK_MAX];
    Str none = intern_cstr(ctx->module->interner, "_");
    for (int i = 0; i < op->mem[0].nidx; i++) {
        const Value *v = op->in[op->mem[0].first + i];
        names[i] = v->kind == VALUE_IOTA ? v->axis->name : none;
    }
    op_set_names(k, op, ATTR_det, op->mem[0].nidx, names);
}

static void nest_clone(Builder *b, IrMap *map, const Root *roots, int n) {
    uint8_t *done = ARENA_ARRAY(map->arena, uint8_t, b->kernel->nvalue + 1);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < roots[i].cone.n; j++) {
            const Op *op = roots[i].cone.op[j];
            if (done[op->res[0]->id])
                continue;
            done[op->res[0]->id] = 1;
            b->span = op->span;
            ir_clone(b, op, map);
        }
    }
    for (int i = 0; i < n; i++) {
        b->span = roots[i].op->span;
        ir_clone(b, roots[i].op, map);
    }
}

static void remark_nest(PassCtx *ctx, const Kernel *k, const Root *roots, int n) {
    if (!ctx->options->explain)
        return;
    const char *stores = "", *grid = remark_axes(ctx, k, roots[0].grid);
    for (int i = 0; i < n; i++)
        stores = remark_join(ctx, stores, remark_mem(ctx, roots[i].op->mem[0].mem));
    if (n == 1)
        remark(ctx, DIAG_FUSED, roots[0].op->span, "%s has a launch of its own%s%s", stores,
               *grid ? ", its grid is " : ", of one program", grid);
    else
        remark(ctx, DIAG_FUSED, roots[n - 1].op->span, "%d statements share this launch: %s%s%s", n,
               stores, *grid ? "; its grid is " : "", grid);
}

static void nest_build(PassCtx *ctx, Kernel *k, const Root *roots, int n) {
    remark_nest(ctx, k, roots, n);
    Builder b = ir_builder_before(k, roots[n - 1].op);
    b.span = roots[n - 1].op->span;
    AxisSet grid = roots[0].grid;
    IrMap map = ir_map_new(ctx->scratch, k);
    BinderInit binders[AXES_MAX];
    for (int i = 0; i < grid.n; i++) {
        Axis *whole = k->axis[grid.id[i]];
        Axis *tile = ir_axis(&b, tile_name(ctx->scratch, whole), whole, 0);
        ir_map_axis(&map, whole, tile);
        binders[i] = (BinderInit){.axis = tile, .lo = axis_lo(k, whole), .hi = axis_hi(whole)};
    }
    Op *par = ir_parallel(&b, grid.n, binders);
    Builder in = ir_builder_at_end(k, par->region[0]);
    nest_clone(&in, &map, roots, n);
    for (Op *op = par->region[0]->first; op; op = op->next)
        store_prove(ctx, k, op);
    for (int i = 0; i < n; i++)
        ir_op_unlink(roots[i].op);
}

static bool overwrites_one(const RootVec *run, const Root *r) {
    for (uint32_t i = 0; i < run->len; i++)
        if (run->data[i].op->mem[0].mem == r->op->mem[0].mem)
            return true;
    return false;
}

// Statements that share a launch. Addresses of every tensor are live in all of it, and the time
// that LLVM needs grows faster than their number; more of them read little less memory together.
enum { STATEMENTS_MOST = 32 };

// Reductions and scans in a chain of statements that overwrite a tensor: where the axis is
// streamed, each loop computes again all that lies before it.
enum { CHAIN_MOST = 8 };

static int reductions(const Root *r) {
    int n = 0;
    for (int i = 0; i < r->cone.n; i++)
        n += r->cone.op[i]->naxes > 0 && r->cone.op[i]->kind != OP_TAKE;
    return n;
}

static bool is_deep(const RootVec *run, const Root *r) {
    return overwrites_one(run, r) && reductions(r) > CHAIN_MOST;
}

// Why the root may not join the run; NULL: it may.
static const char *why_apart(const PassCtx *ctx, const Kernel *k, const RootVec *run,
                             const Root *r) {
    if (ctx->options->no_fuse)
        return "--no-fuse";
    if (run->len >= STATEMENTS_MOST && !overwrites_one(run, r))
        return "that one has as many statements as a launch may";
    if (is_deep(run, r))
        return "it goes on with as many reductions as a launch may have in a chain";
    if (!axes_equal(run->data[0].grid, r->grid))
        return "its grid is another one";
    for (uint32_t i = 0; i < run->len; i++) {
        if (!roots_commute(&run->data[i], r))
            return "it reads or writes elsewhere what that one writes";
        if (roots_mix(k, &run->data[i], r))
            return "one has a product, the other a whole axis";
        if (root_has_atomic(&run->data[i]) || root_has_atomic(r))
            return "one has the old values of an atomic";
    }
    return NULL;
}

static bool shares_load(const Root *a, const Root *b, AxisSet axes) {
    for (int i = 0; i < a->cone.n; i++)
        for (int j = 0; j < b->cone.n; j++)
            if (a->cone.op[i] == b->cone.op[j] && a->cone.op[i]->kind == OP_LOAD &&
                axes_subset(axes, a->cone.op[i]->res[0]->type.axes))
                return true;
    return false;
}

// Where one statement has an axis in its grid that another has whole (the store of what a norm
// reads, and the norm), both can have it whole. That pays where they read one tensor along it.
static bool joint_grid(const RootVec *run, const Root *r, AxisSet *grid) {
    AxisSet own = run->data[0].grid, whole = cone_whole_axes(r);
    AxisSet lost = axes_minus(own, r->grid);
    *grid = axes_minus(own, lost);
    axes_union(lost, axes_minus(r->grid, own), &lost);
    bool shares = false, plain = r->op->kind == OP_STORE && !root_has_product(r);
    for (uint32_t i = 0; i < run->len; i++) {
        const Root *other = &run->data[i];
        plain = plain && other->op->kind == OP_STORE && !root_has_product(other);
        shares = shares || shares_load(other, r, lost);
        axes_union(whole, cone_whole_axes(other), &whole);
    }
    return grid->n > 0 && plain && shares && axes_subset(lost, whole);
}

static void set_grid(RootVec *run, Root *r, AxisSet of_run, AxisSet of_root) {
    for (uint32_t i = 0; i < run->len; i++)
        run->data[i].grid = of_run;
    r->grid = of_root;
}

// The run's store to the tensor that `r` stores to, which nobody would see.
static void drop_overwritten(RootVec *run, const Root *r) {
    for (uint32_t i = 0; i < run->len; i++) {
        if (run->data[i].op->mem[0].mem != r->op->mem[0].mem)
            continue;
        ir_op_unlink(run->data[i].op);
        vec_remove(run, i);
        return;
    }
}

// NULL when `r` joins the run.
static const char *join(PassCtx *ctx, const Kernel *k, RootVec *run, Root *r) {
    AxisSet grid, own = run->data[0].grid, other = r->grid;
    bool joint = !axes_equal(own, other) && joint_grid(run, r, &grid);
    if (joint)
        set_grid(run, r, grid, grid);
    const char *why = why_apart(ctx, k, run, r);
    if (joint && why)
        set_grid(run, r, own, other);
    if (why)
        return why;
    drop_overwritten(run, r);
    vec_push(ctx->scratch, run, *r);
    return NULL;
}

// A root that copies the value in front of the run, in its launch where that may be.
static bool run_copy(PassCtx *ctx, Kernel *k, RootVec *run, Reload *reload) {
    if (!fuse_may_keep(ctx, k, reload->v, FUSE_OVERWRITTEN))
        return false;
    Op *last = vec_last(run).op;
    Builder b = ir_builder_before(k, last);
    Root r = {.op = value_store(&b, reload->v)};
    reload->copy = r.op->mem[0].mem;
    r.cone = cone_of(ctx->scratch, k, last->parent, r.op);
    AxisSet axes = root_axes(r.op);
    r.grid = run->data[0].grid;
    if (axes_subset(r.grid, axes) && !why_apart(ctx, k, run, &r)) {
        vec_insert(ctx->scratch, run, 0, r);
        return true;
    }
    r.grid = axes;
    nest_build(ctx, k, &r, 1);
    return true;
}

// The run becomes a nest. What later roots need of what it overwrites they load.
static bool run_build(PassCtx *ctx, Kernel *k, RootVec *run, bool deep) {
    Run stores = {.n = (int)run->len, .deep = deep};
    Op **root = ARENA_ARRAY(ctx->scratch, Op *, run->len);
    for (uint32_t i = 0; i < run->len; i++)
        root[i] = run->data[i].op;
    stores.root = root;
    ReloadVec reloads = fuse_hand_over(ctx->scratch, k, &stores);
    for (uint32_t i = 0; i < reloads.len; i++)
        if (!reloads.data[i].store && !run_copy(ctx, k, run, &reloads.data[i]))
            return false;
    nest_build(ctx, k, run->data, (int)run->len);
    for (uint32_t i = 0; i < reloads.len; i++)
        fuse_reload(k, &reloads.data[i]);
    vec_clear(run);
    return true;
}

static Root root_of(PassCtx *ctx, const Kernel *k, const Region *host, Op *op) {
    Root r = {.op = op, .cone = cone_of(ctx->scratch, k, host, op)};
    r.grid = axes_minus(root_axes(op), cone_whole_axes(&r));
    return r;
}

// `op` is in the run, or the run is complete and `op` begins another one.
static bool run_add(PassCtx *ctx, Kernel *k, Region *host, RootVec *run, Op *op) {
    Root r = root_of(ctx, k, host, op);
    const char *why = run->len > 0 ? join(ctx, k, run, &r) : NULL;
    if (run->len > 0 && !why)
        return true;
    if (why) {
        remark(ctx, DIAG_FUSED, op->span, "not in the launch of the statement before: %s", why);
        if (!run_build(ctx, k, run, is_deep(run, &r)))
            return false;
        r = root_of(ctx, k, host, op);
    }
    vec_push(ctx->scratch, run, r);
    return true;
}

// Builds nests for runs of roots that nothing separates.
static bool region_make_nests(PassCtx *ctx, Kernel *k, Region *host) {
    RootVec run = {0};
    for (Op *op = host->first, *next; op; op = next) {
        next = op->next;
        bool separates = op_has(op->kind, TRAIT_REGIONS);
        if (op_is_root(op) && !run_add(ctx, k, host, &run, op))
            return false;
        if (run.len > 0 && (separates || !next) && !run_build(ctx, k, &run, false))
            return false;
    }
    return true;
}

// Tile ops that are left in the host region have been copied into the nests that use them.
static void region_drop_tiles(PassCtx *ctx, const Kernel *k, Region *host) {
    const uint8_t *in_nest = nest_values(ctx->scratch, k, host);
    for (Op *op = host->last, *prev; op; op = prev) {
        prev = op->prev;
        if (op->nres > 0 && in_nest[op->res[0]->id] && !op_has(op->kind, TRAIT_REGIONS))
            ir_op_unlink(op);
    }
}

// What the launch plan evaluates must not depend on the contents of tensors.
static bool host_is_known(PassCtx *ctx, Kernel *k, Region *host) {
    const uint8_t *in_nest = nest_values(ctx->scratch, k, host);
    for (Op *op = host->first; op; op = op->next) {
        bool host_op = op_has(op->kind, TRAIT_REGIONS) || op->kind == OP_REQUIRE ||
                       op->kind == OP_TEMP || op->kind == OP_YIELD;
        for (int i = 0; host_op && i < op->nin; i++) {
            if (!in_nest[op->in[i]->id])
                continue;
            diag_add(ctx->diags, DIAG_NOT_AT_LAUNCH, op->span,
                     "`%s` outside every nest depends on the contents of a tensor",
                     op_info(op->kind)->text);
            return false;
        }
    }
    return true;
}

static bool region_fuse(PassCtx *ctx, Kernel *k, Region *host) {
    if (!host_is_known(ctx, k, host))
        return false;
    if (!ctx->options->no_fuse)
        fuse_forward(host);
    if (!fuse_keep_old(ctx, k, host) || !fuse_keep_order(ctx, k, host))
        return false;
    for (Op *op = host->first; op; op = op->next) {
        bool is_host_region = op->kind == OP_FOR || op->kind == OP_IF;
        for (int i = 0; is_host_region && i < op->nregion; i++)
            if (!region_fuse(ctx, k, op->region[i]))
                return false;
    }
    if (!fuse_keep(ctx, k, host) || !region_make_nests(ctx, k, host))
        return false;
    region_drop_tiles(ctx, k, host);
    for (Op *op = host->first; op; op = op->next) {
        if (op->kind != OP_PARALLEL)
            continue;
        op = fuse_spread_whole(ctx, k, op);
        fuse_dot_loops(ctx, k, op->region[0]);
    }
    return true;
}

bool pass_fuse(PassCtx *ctx, Kernel *k) {
    fuse_inner_products(ctx, k);
    fuse_histograms(ctx, k);
    return region_fuse(ctx, k, k->body);
}

// Pass fuse, second part: which whole-tensor values must be in memory between nests.
//
//   %d = dot[K] ..; %h = cast gelu(%d); %e = dot[F] %h, ..
//     => temp for %h: a product of a product
//   %d = dot[K] ..; %n = reduce.sum[N] (mul %d, %d)
//     => temp for %d: a reduction over columns of a product
//
// A kept value is stored once, in its own dtype, and loaded where it is used; where a statement
// stores it anyway, from there. A reduction may be used by the launch that makes it and be loaded
// by others. Correct for every program; what the cost model can do better (online forms, held
// tiles, halos) it takes away before this runs.
#include "ir/fuse.h"

#include "ir/fold.h"
#include "ir/remark.h"
#include "lang/base/vec.h"

// Along an axis that the value needs as a whole.
static bool op_is_heavy(const Op *op) {
    return op->kind == OP_DOT || op->kind == OP_REDUCE || op->kind == OP_SCAN ||
           op->kind == OP_ARGREDUCE || op->kind == OP_SORT || op->kind == OP_TOPK ||
           op_has(op->kind, TRAIT_FUNCTION);
}

typedef bool (*Blocks)(const Op *heavy, const Op *user);

// The last product or reduction at or below `v` that `blocks` forbids inside `user`, without what
// others hold.
static Value *blocking_value(Arena *scratch, const Kernel *k, Value *v, Blocks blocks,
                             const Op *user) {
    uint8_t *seen = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    VEC(Value *) work = {0};
    Value *last = NULL;
    vec_push(scratch, &work, v);
    while (work.len > 0) {
        Value *x = vec_pop(&work);
        if (x->kind != VALUE_OP || seen[x->id])
            continue;
        seen[x->id] = 1;
        if (op_is_heavy(x->def) && blocks(x->def, user)) {
            if (!last || op_precedes(last->def, x->def))
                last = x;
            continue;
        }
        for (int i = 0; i < x->def->nin; i++)
            vec_push(scratch, &work, x->def->in[i]);
    }
    return last;
}

// A product's operand may hold no product and no reduction: the loop over k would repeat it.
static bool blocks_dot(const Op *heavy, const Op *user) {
    (void)heavy;
    (void)user;
    return true;
}

// A reduction may use another reduction only where that one's result does not extend along the
// reduced axes, and no product that does; a short axis is held in one program, so there it may.
static bool blocks_reduce(const Op *heavy, const Op *user) {
    for (int i = 0; i < user->naxes; i++)
        if (axes_has(heavy->res[0]->type.axes, user->axes[i]->id) &&
            !(user->kind == OP_REDUCE && axis_is_short(user->axes[i])))
            return true;
    return false;
}

static Value *axis_extent(Builder *b, const Axis *a) {
    if (a->is_dim)
        return a->extent;
    if (!a->lo || value_is_int(a->lo, 0))
        return a->hi;
    return ir_binary(b, OP_SUB, a->hi, a->lo, NULL);
}

static Value *axis_position(Builder *b, const Axis *a) {
    if (a->is_dim || !a->lo || value_is_int(a->lo, 0))
        return a->iota;
    return ir_binary(b, OP_SUB, a->iota, a->lo, NULL);
}

typedef struct ReplaceUse {
    Value *from, *to;
    const Op *except;
} ReplaceUse;

static void replace_use(void *user, Op *op) {
    ReplaceUse *r = user;
    for (int i = 0; i < op->nin && op != r->except; i++)
        if (op->in[i] == r->from)
            op->in[i] = r->to;
}

void value_replace(Op *first, Value *from, Value *to, const Op *except) {
    ReplaceUse r = {.from = from, .to = to, .except = except};
    for (Op *op = first; op; op = op->next) {
        replace_use(&r, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], replace_use, &r);
    }
}

// The elements of the value, by its axes, in a tensor.
static int value_index(Builder *b, const Value *v, Value **index) {
    for (int i = 0; i < v->type.axes.n; i++)
        index[i] = axis_position(b, b->kernel->axis[v->type.axes.id[i]]);
    return v->type.axes.n;
}

Value *value_load(Builder *b, Mem *t, const Value *v) {
    Value *index[RANK_MAX];
    value_index(b, v, index);
    return ir_load(b, t, index, NULL, v->name);
}

Op *value_store(Builder *b, Value *v) {
    b->span = v->def->span;
    Value *dims[RANK_MAX], *index[RANK_MAX];
    int rank = value_index(b, v, index);
    for (int i = 0; i < rank; i++)
        dims[i] = axis_extent(b, b->kernel->axis[v->type.axes.id[i]]);
    Mem *t = ir_temp(b, v->name ? v->name : "kept", v->type.dtype, rank, dims);
    return ir_store(b, t, index, v);
}

// %v = ..  =>  %v = ..; @t = temp; store @t[axes], %v. Returns the store.
static Op *value_spill(Kernel *k, Value *v) {
    Op *after = v->def->next;
    Builder b = after ? ir_builder_before(k, after) : ir_builder_at_end(k, v->def->parent);
    return value_store(&b, v);
}

// Every use of the value from `first` on takes %v' = load @t[axes] instead.
static void value_reuse(Kernel *k, Value *v, const Op *store, Op *first) {
    Builder b = first ? ir_builder_before(k, first) : ir_builder_at_end(k, store->parent);
    b.span = v->def->span;
    Value *loaded = value_load(&b, store->mem[0].mem, v);
    value_replace(loaded->def->next, v, loaded, store);
}

static void value_keep(Kernel *k, Value *v) {
    Op *store = value_spill(k, v);
    value_reuse(k, v, store, store->next);
}

static bool too_many_dims(PassCtx *ctx, const Value *v) {
    if (v->type.axes.n <= RANK_MAX)
        return false;
    diag_add(ctx->diags, DIAG_UNSUPPORTED, v->def->span,
             "this value extends along %d axes; a value that must be kept in memory may have %d",
             v->type.axes.n, RANK_MAX);
    return true;
}

// Rows of sums are small beside what they are sums of: a note for everybody is of matrices.
enum { AXES_OF_NOTE = 2 };

static void remark_kept(PassCtx *ctx, const Kernel *k, const Value *v, const char *why) {
    const char *axes = remark_axes(ctx, k, v->type.axes);
    const char *given = remark_name(ctx->scratch, v->name);
    const char *name = given ? arena_printf(ctx->scratch, "`%s`", given) : "this value";
    const char *text = arena_printf(ctx->scratch, "%s%s%s%s: %s", dtype_name(v->type.dtype),
                                    *axes ? "[" : "", axes, *axes ? "]" : "", why);
    remark(ctx, DIAG_KEPT, v->def->span, "%s is kept in memory as %s", name, text);
    if (v->type.axes.n >= AXES_OF_NOTE && !ctx->options->no_fuse && !ctx->options->explain)
        perf_note(
            ctx, k, DIAG_THROUGH_MEMORY, v->def->span,
            v->type.dtype == DT_F32 || v->type.dtype == DT_F64
                ? "a narrower type halves what is moved (`... as f16`); a `parallel` written by "
                  "hand, whose programs hold their rows, moves nothing"
                : "a `parallel` written by hand, whose programs hold their rows, moves nothing",
            "%s goes from launch to launch through memory, as %s", name, text);
}

bool fuse_may_keep(PassCtx *ctx, const Kernel *k, const Value *v, const char *why) {
    if (too_many_dims(ctx, v))
        return false;
    remark_kept(ctx, k, v, why);
    return true;
}

bool fuse_keep_value(PassCtx *ctx, Kernel *k, Value *v, const char *why) {
    if (!fuse_may_keep(ctx, k, v, why))
        return false;
    value_keep(k, v);
    return true;
}

static bool inside_nest(const Op *op) {
    for (; op; op = op->parent ? op->parent->owner : NULL)
        if (op->kind == OP_PARALLEL)
            return true;
    return false;
}

// A dot keeps its operand: one rounding to the operand's type, and half the bytes.
static Value *value_to_keep(Arena *scratch, const Kernel *k, const Op *op, int i) {
    bool is_factor = op->kind == OP_DOT && i < 2;
    Value *v = blocking_value(scratch, k, op->in[i], is_factor ? blocks_dot : blocks_reduce, op);
    if (v && is_factor)
        v = op->in[i];
    return v && v->kind == VALUE_OP && !inside_nest(v->def) ? v : NULL;
}

// The statement in front of `user` that stores the value into a tensor which then keeps it.
static Op *value_home(const Region *host, const Value *v, const Op *user) {
    Op *home = NULL;
    bool before = v->def->parent == host;
    for (Op *op = before ? v->def->next : NULL; op; op = op->next) {
        before &= op != user;
        if (home && op_writes(op, home->mem[0].mem))
            home = NULL;
        if (!home && before && store_holds_value(op) && op_store_value(op) == v)
            home = op;
    }
    return home;
}

typedef VEC(Op *) OpVec;

// Elementwise ops between the value and operand `i` of its user, last first. False: there are
// others.
static bool find_path(Arena *scratch, const Kernel *k, const Op *user, int i, const Value *v,
                      OpVec *path) {
    const uint8_t *from = values_from(scratch, k, v->def);
    uint8_t *needed = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    needed[user->in[i]->id] = 1;
    for (Op *op = user->prev; op != v->def; op = op->prev) {
        if (op->nres == 0 || !needed[op->res[0]->id] || !from[op->res[0]->id])
            continue;
        if (op->nres > 1 || op->nregion > 0 || !op_has(op->kind, TRAIT_PURE) || op_is_heavy(op))
            return false;
        vec_push(scratch, path, op);
        for (int j = 0; j < op->nin; j++)
            needed[op->in[j]->id] = 1;
    }
    return true;
}

// A reduction that one operand takes from memory; other users may be in the launch that makes it.
static bool keep_for_operand(PassCtx *ctx, Kernel *k, Region *host, Op *user, int i, Value *v) {
    OpVec path = {0};
    if (v->def->kind != OP_REDUCE || v->def->parent != host ||
        !find_path(ctx->scratch, k, user, i, v, &path))
        return false;
    Op *home = value_home(host, v, user);
    if (!home)
        home = value_spill(k, v);
    Builder b = ir_builder_before(k, user);
    b.span = v->def->span;
    const MemRef *ref = &home->mem[0];
    if (!store_holds_value(home)) {
        value_reuse(k, v, home, home->next);
        return true;
    }
    IrMap map = ir_map_new(ctx->scratch, k);
    ir_map_value(&map, v, ir_load(&b, ref->mem, &home->in[ref->first], NULL, v->name));
    while (path.len > 0) {
        const Op *op = vec_pop(&path);
        b.span = op->span;
        ir_clone(&b, op, &map);
    }
    user->in[i] = ir_mapped(&map, user->in[i]);
    return true;
}

static void keep_factor(Kernel *k, Region *host, Op *product, Value *v) {
    const Op *home = value_home(host, v, product);
    if (!home) {
        value_keep(k, v);
        return;
    }
    const MemRef *ref = &home->mem[0];
    Builder b = ir_builder_before(k, product);
    b.span = v->def->span;
    value_replace(product, v, ir_load(&b, ref->mem, &home->in[ref->first], NULL, v->name), NULL);
}

static bool keep_for_heavy(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first; op; op = op->next) {
        if (!op_is_heavy(op))
            continue;
        for (int i = 0; i < op->nin; i++) {
            bool is_factor = op->kind == OP_DOT && i < 2;
            for (Value *keep; (keep = value_to_keep(ctx->scratch, k, op, i));) {
                if (!fuse_may_keep(
                        ctx, k, keep,
                        is_factor ? "the loop of the product that uses it would compute it again"
                                  : "a reduction along its own axes uses it"))
                    return false;
                if (is_factor) {
                    keep_factor(k, host, op, keep);
                    break;
                }
                if (!keep_for_operand(ctx, k, host, op, i, keep))
                    value_keep(k, keep);
            }
        }
    }
    return true;
}

// --- old values of atomics: they exist once ---

typedef struct User {
    const Value *of;
    Op *op;
    int uses;
} User;

static void find_user(void *user, Op *op) {
    User *u = user;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] == u->of) {
            u->op = op;
            u->uses++;
        }
}

// The next statement stores the values as they are: no temp is needed.
static bool is_stored_next(const Op *atomic, const User *u) {
    const Op *store = u->op;
    if (u->uses != 1 || store->kind != OP_STORE || store->parent != atomic->parent ||
        op_store_value(store) != u->of || store->mem[0].mem == atomic->mem[0].mem ||
        !axes_equal(root_axes(store), u->of->type.axes))
        return false;
    for (const Op *op = atomic->next; op != store; op = op->next)
        if (!op_has(op->kind, TRAIT_PURE) || op_has(op->kind, TRAIT_REGIONS))
            return false;
    return true;
}

bool fuse_keep_old(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first; op; op = op->next) {
        if (op->kind != OP_ATOMIC || op->nres == 0)
            continue;
        User u = {.of = op->res[0]};
        ir_walk(k->body, find_user, &u);
        if (u.uses == 0)
            op->nres = 0;
        else if (!is_stored_next(op, &u) &&
                 !fuse_keep_value(ctx, k, op->res[0], "an atomic is executed once"))
            return false;
    }
    return true;
}

// --- what writes and what uses ---

typedef struct Writes {
    const Mem *mem;
    bool found;
} Writes;

static void find_write(void *user, Op *op) {
    Writes *w = user;
    for (int i = 0; i < op->nmem; i++)
        w->found |= op_has(op->kind, TRAIT_WRITES) && op->mem[i].mem == w->mem;
}

bool op_writes(Op *op, const Mem *mem) {
    Writes w = {.mem = mem};
    find_write(&w, op);
    for (int i = 0; i < op->nregion; i++)
        ir_walk(op->region[i], find_write, &w);
    return w.found;
}

static void mark_from(void *user, Op *op) {
    uint8_t *from = user;
    bool uses = false;
    for (int i = 0; i < op->nin; i++)
        uses |= from[op->in[i]->id] != 0;
    for (int i = 0; uses && i < op->nres; i++)
        from[op->res[i]->id] = 1;
}

uint8_t *values_from(Arena *scratch, const Kernel *k, const Op *def) {
    uint8_t *from = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1);
    from[def->res[0]->id] = 1;
    for (Op *op = def->next; op; op = op->next) {
        mark_from(from, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], mark_from, from);
    }
    return from;
}

typedef struct Uses {
    const uint8_t *values;
    bool found;
} Uses;

static void find_use(void *user, Op *op) {
    Uses *u = user;
    for (int i = 0; i < op->nin; i++)
        u->found |= u->values[op->in[i]->id] != 0;
}

bool op_uses(Op *op, const uint8_t *values) {
    Uses u = {.values = values};
    find_use(&u, op);
    for (int i = 0; i < op->nregion; i++)
        ir_walk(op->region[i], find_use, &u);
    return u.found;
}

// --- what a hand-written nest takes from outside ---

typedef struct Outside {
    const Op *nest;
    const uint8_t *in_nest;
    Value *found;
} Outside;

static bool op_is_in_nest(const Op *op, const Op *nest) {
    for (; op; op = op->parent ? op->parent->owner : NULL)
        if (op == nest)
            return true;
    return false;
}

static void find_outside(void *user, Op *op) {
    Outside *o = user;
    for (int i = 0; i < op->nin && !o->found; i++) {
        Value *v = op->in[i];
        if (v->kind == VALUE_OP && o->in_nest[v->id] && !op_is_in_nest(v->def, o->nest))
            o->found = v;
    }
}

static void nest_take(Kernel *k, Op *nest, Value *v) {
    Op *store = value_spill(k, v);
    Builder b = ir_builder_before(k, nest->region[0]->first);
    b.span = v->def->span;
    ReplaceUse r = {.from = v, .to = value_load(&b, store->mem[0].mem, v)};
    ir_walk(nest->region[0], replace_use, &r);
}

// The host cannot hand a tile, or a scalar that a nest computed, to a nest: it goes through memory.
bool fuse_keep_for_nests(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first; op; op = op->next) {
        while (op->kind == OP_PARALLEL) {
            Outside o = {.nest = op, .in_nest = nest_values(ctx->scratch, k, host)};
            ir_walk(op->region[0], find_outside, &o);
            if (!o.found)
                break;
            if (too_many_dims(ctx, o.found))
                return false;
            remark_kept(ctx, k, o.found, "a `parallel` uses it");
            nest_take(k, op, o.found);
        }
    }
    return true;
}

// --- a product that several roots would compute again ---

static bool keep_for_sharing(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first; op; op = op->next) {
        if (op->kind != OP_DOT)
            continue;
        int roots = 0;
        AxisSet axes = axes_none();
        bool differ = false;
        uint8_t *from = values_from(ctx->scratch, k, op);
        for (Op *user = op->next; user; user = user->next) {
            if (!op_is_root(user) || !op_uses(user, from))
                continue;
            AxisSet s = op_store_value(user)->type.axes;
            differ |= roots++ > 0 && !axes_equal(axes, s);
            axes = s;
        }
        if (roots < 2 || !differ)
            continue;
        if (too_many_dims(ctx, op->res[0]))
            return false;
        remark_kept(ctx, k, op->res[0], "several statements with other grids use this product");
        value_keep(k, op->res[0]);
    }
    return true;
}

// --- one whole axis a nest ---

// A program may hold it whatever the arguments are; others are streamed, one a nest.
bool axis_is_short(const Axis *a) {
    enum { SHORT_MAX = 64 };
    const Value *hi = a->is_dim ? a->extent : a->hi;
    return hi && value_is_const(hi) && (a->is_dim || !a->lo || value_is_const(a->lo)) &&
           hi->u.i - (a->is_dim || !a->lo ? 0 : a->lo->u.i) <= SHORT_MAX;
}

static int long_axes(const Op *op, AxisSet *axes) {
    int n = 0;
    for (int i = 0; i < op->naxes; i++) {
        if (axis_is_short(op->axes[i]))
            continue;
        n++;
        axes_add(axes, op->axes[i]->id);
    }
    return n;
}

// %s = reduce.sum[M, N] %x  =>  %t = reduce.sum[N] %x; %s = reduce.sum[M] %t
static void reduce_split(Kernel *k, Op *op) {
    AxisSet last = axes_none(), others = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(i == op->naxes - 1 ? &last : &others, op->axes[i]->id);
    Value *v = op->res[0];
    Builder b = ir_builder_before(k, op);
    b.span = op->span;
    Value *t = ir_reduce(&b, (ReduceKind)op->sub, op->in[0], last, v->name);
    Value *s = ir_reduce(&b, (ReduceKind)op->sub, t, others, v->name);
    value_replace(op->next, v, s, NULL);
    ir_op_unlink(op);
}

static void split_reductions(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first, *next; op; op = next) {
        next = op->next;
        AxisSet axes = axes_none();
        bool same = (op->kind == OP_REDUCE && op->res[0]->type.dtype == op->in[0]->type.dtype) ||
                    op->kind == OP_FOLD;
        if (!same || long_axes(op, &axes) < 2)
            continue;
        Op *before = op->prev;
        if (op->kind == OP_FOLD)
            fold_split(k, ctx->scratch, op, op->naxes - 1);
        else
            reduce_split(k, op);
        next = before ? before->next : host->first; // the parts may have several axes
    }
}

// A product whose contracted axis the root extends along: the loop over its tiles would stand
// beside a whole axis.
static bool contracts_axis_of(const Op *op, const Op *root) {
    if (op->kind != OP_DOT)
        return false;
    AxisSet axes = root_axes(root), along = axes_none();
    return long_axes(op, &along) > 0 && axes_intersect(axes, along).n > 0;
}

static bool needs_whole(const Op *op) {
    return op->kind == OP_REDUCE || op->kind == OP_SCAN || op_has(op->kind, TRAIT_FUNCTION);
}

static bool makes(const Op *op, const Value *v) {
    return v->kind == VALUE_OP && v->def == op;
}

// The reductions that a root needs are along several axes, or beside a product: each gets a nest.
static bool keep_for_axes(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *root = host->first, *next; root; root = next) {
        next = root->next;
        if (!op_is_root(root))
            continue;
        Cone c = cone_of(ctx->scratch, k, host, root);
        AxisSet axes = axes_none();
        bool product = false;
        for (int i = 0; i < c.n; i++) {
            product |= c.op[i]->kind == OP_DOT;
            if (needs_whole(c.op[i]))
                long_axes(c.op[i], &axes);
        }
        for (int i = 0; i < c.n; i++) {
            AxisSet own = axes_none();
            Op *op = c.op[i];
            bool reduces = axes.n + product >= 2 && needs_whole(op) && long_axes(op, &own) > 0 &&
                           !makes(op, op_store_value(root));
            if (!reduces && !contracts_axis_of(op, root))
                continue;
            for (int j = 0; j < op->nres; j++) {
                if (too_many_dims(ctx, op->res[j]))
                    return false;
                remark_kept(ctx, k, op->res[j],
                            "its statement needs another whole axis or a product");
                value_keep(k, op->res[j]);
            }
            next = host->first; // the new roots have cones of their own
        }
    }
    return true;
}

bool fuse_keep(PassCtx *ctx, Kernel *k, Region *host) {
    split_reductions(ctx, k, host);
    return keep_for_heavy(ctx, k, host) && keep_for_sharing(ctx, k, host) &&
           keep_for_axes(ctx, k, host);
}

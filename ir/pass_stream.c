// Pass stream: a whole axis that is not held => loops over its tiles, one per dependence level.
//
// In and out: stage scheduled. A level-0 reduction needs only loads; a value that uses a reduction
// of level i along the same axis is of level i + 1. Each level is one loop that carries its
// accumulators; stores along the axis form a last loop at the level of what they store. What a
// later loop needs again is computed (and read) again. Where inner loops use the axis, values along
// it first go to scratch memory (stream_keep.c).
//
//   %x = load @x[m, N]; %s = reduce.sum[N] %x; %y = div %x, %s; store @y[m, N], %y
//   => axis n of N by 1024
//      %s = for n in 0..%N carry (%a = 0) { %x = load @x[m, n]; %t = reduce.sum[n] %x; %b = add %a,
//      %t; yield %b } for n in 0..%N { %x = load @x[m, n]; %y = div %x, %s; store @y[m, n], %y }
#include "ir/stream.h"

#include "ir/fold.h"
#include "ir/nest.h"
#include "ir/remark.h"
#include "lang/base/vec.h"

typedef struct Stream {
    PassCtx *ctx;
    Kernel *k;
    Region *region;    // body of the nest, or of a loop in it
    Op *after, *until; // its ops between these (NULL: from its start, to its end)
    Axis *whole;
    uint32_t tile;
    uint8_t *level; // by value id: dependence level + 1, 0 = not along the axis
    uint8_t *along; // by value id: a reduction along the axis
    int passes;     // loops along the axis so far
} Stream;

static Op *first_of(const Stream *s) {
    return s->after ? s->after->next : s->region->first;
}

static Op *last_of(const Stream *s) {
    return s->until ? s->until->prev : s->region->last;
}

static bool op_reduces(const Op *op, const Axis *a) {
    for (int i = 0; i < op->naxes; i++)
        if (op->axes[i] == a)
            return true;
    return false;
}

typedef struct OpLevel {
    const Stream *s;
    int level;
} OpLevel;

static void find_level(void *user, Op *op) {
    OpLevel *l = user;
    for (int i = 0; i < op->nin; i++) {
        uint32_t id = op->in[i]->id;
        int level = l->s->along[id] ? l->s->level[id] + 1 : l->s->level[id];
        l->level = level > l->level ? level : l->level;
    }
}

// Level of an op: most of its operands' levels, those of the ops in its regions too; a reduction's
// users are one above it.
static int op_level(const Stream *s, Op *op) {
    OpLevel l = {.s = s};
    find_level(&l, op);
    for (int i = 0; i < op->nregion; i++)
        ir_walk(op->region[i], find_level, &l);
    return l.level;
}

static void op_levels(Stream *s) {
    for (Op *op = first_of(s); op != s->until; op = op->next) {
        int level = op_level(s, op);
        for (int i = 0; i < op->nres; i++) {
            s->level[op->res[i]->id] = (uint8_t)level;
            s->along[op->res[i]->id] = op_reduces(op, s->whole) && !op_is_scan(op);
        }
    }
}

// Ops that the roots of a loop need and that extend along the axis, in order; everything else
// already stands before the loop. Scans among them carry what came before.
typedef struct Cone {
    int n, ncarry;
    Op **op;
} Cone;

static bool op_carries(const Stream *s, const Op *op) {
    return op_is_scan(op) && op_reduces(op, s->whole);
}

static bool is_effect(const Op *op) {
    return op_has(op->kind, TRAIT_WRITES) || op->kind == OP_PRINT || op->kind == OP_ASSERT;
}

// The old values of an atomic are used behind a border, or by a root beside it.
static bool op_is_needed(const Stream *s, const Op *op, const uint8_t *needed) {
    bool any = false;
    for (int i = 0; i < op->nres; i++)
        any |= needed[op->res[i]->id] != 0;
    return any && !is_effect(op) && !s->along[op->res[0]->id] &&
           axes_has(op->res[0]->type.axes, s->whole->id);
}

static Cone stream_cone(Stream *s, Op *const *roots, int n) {
    uint8_t *needed = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    Cone c = {0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < roots[i]->nin; j++)
            needed[roots[i]->in[j]->id] = 1;
    for (Op *op = last_of(s); op != s->after; op = op->prev) {
        if (!op_is_needed(s, op, needed))
            continue;
        c.n++;
        c.ncarry += op_carries(s, op) ? op->nres : 0;
        for (int j = 0; j < op->nin; j++)
            needed[op->in[j]->id] = 1;
    }
    c.op = ARENA_ARRAY(s->ctx->scratch, Op *, (size_t)c.n + 1);
    int at = 0;
    for (Op *op = first_of(s); op != s->until; op = op->next)
        if (op_is_needed(s, op, needed))
            c.op[at++] = op;
    return c;
}

static void cone_carry(Stream *s, const Cone *c, Value **inits, Type *types) {
    for (int i = 0, at = 0; i < c->n; i++) {
        if (!op_carries(s, c->op[i]))
            continue;
        scan_carry(s->k, c->op[i], inits + at, types + at);
        at += c->op[i]->nres;
    }
}

// In the loop, whose carried values from `first` on are the scans'; next: what they carry on.
static void cone_clone(const Stream *s, const Cone *c, Builder *b, IrMap *map, const Op *loop,
                       int first, Value **next) {
    Value *prefix[FOLD_VALUES_MAX];
    for (int i = 0, at = 0; i < c->n; i++) {
        Op *op = c->op[i];
        b->span = op->span;
        if (!op_carries(s, op)) {
            ir_clone(b, op, map);
            continue;
        }
        for (int j = 0; j < op->nres; j++)
            prefix[j] = op_carry_arg(loop, first + at + j);
        scan_tile(b, map, op, op_binder_lo(loop, 0), prefix, next + at);
        at += op->nres;
    }
}

static Axis *stream_axis(Stream *s, Builder *b) {
    return ir_axis(b, tile_name(s->ctx->scratch, s->whole), s->whole, s->tile);
}

static Op *stream_loop(Stream *s, Builder *b, Axis *tile, int ncarry, Value **inits, Type *types) {
    const Axis *w = s->whole;
    BinderInit binder = {.axis = tile,
                         .lo = w->is_dim || !w->lo ? ir_index(s->k, 0) : w->lo,
                         .hi = w->is_dim ? w->extent : w->hi};
    return ir_for_typed(b, 1, &binder, ncarry, inits, types, NULL);
}

typedef struct Late {
    const uint8_t *value; // by value id
    bool found;
} Late;

static void find_late(void *user, Op *op) {
    Late *l = user;
    for (int i = 0; i < op->nin; i++)
        l->found |= l->value[op->in[i]->id] != 0;
}

// Ops in front of the loop that use its results (they stood between two reductions of one level)
// move behind it, in order. What they touch in memory nothing else touches out of order:
// stream_refuses sees to it.
// `last`: of the ops that make the results, behind the loop.
static void move_users_behind(Stream *s, Op *loop, Op *last) {
    uint8_t *late = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    Op *anchor = last->next;
    for (Op *op = loop; op != anchor; op = op->next)
        for (int i = 0; i < op->nres; i++)
            late[op->res[i]->id] = 1;
    for (Op *op = first_of(s), *next; op != loop; op = next) {
        next = op->next;
        Late l = {.value = late};
        find_late(&l, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], find_late, &l);
        if (!l.found)
            continue;
        for (int i = 0; i < op->nres; i++)
            late[op->res[i]->id] = 1;
        if (anchor)
            ir_op_move_before(op, anchor);
        else
            ir_op_move_end(op, s->region);
    }
}

// One loop for all reductions of a level.
static void stream_reductions(Stream *s, Op **reds, int n, Op *before) {
    Builder b = ir_builder_before(s->k, before);
    b.span = reds[0]->span;
    Cone cone = stream_cone(s, reds, n);
    int nred = 0;
    for (int i = 0; i < n; i++)
        nred += reduction_values(reds[i]);
    int ncarry = nred + cone.ncarry;
    Value **inits = ARENA_ARRAY(s->ctx->scratch, Value *, (size_t)ncarry);
    Value **next = ARENA_ARRAY(s->ctx->scratch, Value *, (size_t)ncarry);
    Type *types = ARENA_ARRAY(s->ctx->scratch, Type, (size_t)ncarry);
    Axis *tile = stream_axis(s, &b);
    for (int i = 0, at = 0; i < n; at += reduction_values(reds[i++]))
        reduction_start(s->k, reds[i], inits + at, types + at);
    cone_carry(s, &cone, inits + nred, types + nred);
    Op *loop = stream_loop(s, &b, tile, ncarry, inits, types);
    Builder in = ir_builder_at_end(s->k, loop->region[0]);
    IrMap map = ir_map_new(s->ctx->scratch, s->k);
    ir_map_axis(&map, s->whole, tile);
    cone_clone(s, &cone, &in, &map, loop, nred, next + nred);
    IrMap sub = ir_map_new(s->ctx->scratch, s->k);
    Value *acc[FOLD_VALUES_MAX + AXES_MAX];
    for (int i = 0, at = 0; i < n; at += reduction_values(reds[i++])) {
        for (int j = 0; j < reduction_values(reds[i]); j++)
            acc[j] = op_carry_arg(loop, at + j);
        for (int j = 0; j < reds[i]->nres; j++)
            ir_map_value(&sub, reds[i]->res[j], reduction_result(&b, reds[i], loop, at, j));
        reduction_tile(&in, &map, reds[i], acc, next + at);
    }
    ir_yield(&in, ncarry, next, NULL);
    ir_substitute(s->region, &sub);
    Op *last = before->prev;
    for (int i = 0; i < n; i++)
        ir_op_unlink(reds[i]);
    move_users_behind(s, loop, last);
}

static void stream_stores(Stream *s, Op **stores, int n) {
    Builder b = ir_builder_before(s->k, stores[n - 1]);
    b.span = stores[0]->span;
    Axis *tile = stream_axis(s, &b);
    Cone cone = stream_cone(s, stores, n);
    Value **inits = ARENA_ARRAY(s->ctx->scratch, Value *, (size_t)cone.ncarry + 1);
    Value **next = ARENA_ARRAY(s->ctx->scratch, Value *, (size_t)cone.ncarry + 1);
    Type *types = ARENA_ARRAY(s->ctx->scratch, Type, (size_t)cone.ncarry + 1);
    cone_carry(s, &cone, inits, types);
    Op *loop = stream_loop(s, &b, tile, cone.ncarry, inits, types);
    Builder in = ir_builder_at_end(s->k, loop->region[0]);
    IrMap map = ir_map_new(s->ctx->scratch, s->k);
    ir_map_axis(&map, s->whole, tile);
    cone_clone(s, &cone, &in, &map, loop, 0, next);
    for (int i = 0; i < n; i++) {
        in.span = stores[i]->span;
        ir_clone(&in, stores[i], &map);
    }
    if (cone.ncarry > 0)
        ir_yield(&in, cone.ncarry, next, NULL);
    for (int i = 0; i < n; i++)
        ir_op_unlink(stores[i]);
}

static bool stream_unsupported(Stream *s, const Op *op, const char *what) {
    diag_add(s->ctx->diags, DIAG_UNSUPPORTED, op->span,
             "not supported yet: %s along the whole axis %s, whose extent is not known to fit in a "
             "program",
             what, s->whole->name);
    return true;
}

typedef struct NestedUse {
    const Axis *axis;
    const Op *op;
} NestedUse;

static void find_nested_use(void *user, Op *op) {
    NestedUse *u = user;
    if (!u->op && op->kind != OP_AXIS && (op_takes_axis(op, u->axis) || op_reduces(op, u->axis)))
        u->op = op;
}

// --- what would change its place among the accesses to a tensor ---

typedef struct Touch {
    const Mem *mem;
    bool reads, writes;
} Touch;

static void find_touch(void *user, Op *op) {
    Touch *t = user;
    for (int i = 0; i < op->nmem; i++) {
        if (op->mem[i].mem != t->mem)
            continue;
        t->reads |= op_has(op->kind, TRAIT_READS);
        t->writes |= op_has(op->kind, TRAIT_WRITES);
    }
}

static Touch op_touch(Op *op, const Mem *mem) {
    Touch t = {.mem = mem};
    find_touch(&t, op);
    for (int i = 0; i < op->nregion; i++)
        ir_walk(op->region[i], find_touch, &t);
    return t;
}

static bool op_is_along(const Stream *s, const Op *op) {
    if (op_takes_axis(op, s->whole) || op_reduces(op, s->whole))
        return true;
    return op->nres > 0 && axes_has(op->res[0]->type.axes, s->whole->id);
}

// Indices of the axis, and the same ones moved by its extent or more.
static bool moved_past(const Axis *a, const Value *x, const Value *y) {
    const Value *hi = a->is_dim ? a->extent : a->hi;
    if (x != a->iota || y->kind != VALUE_OP || y->def->kind != OP_ADD || !hi ||
        (a->lo && !value_is_int(a->lo, 0)))
        return false;
    const Value *by = y->def->in[y->def->in[0] == x];
    if (y->def->in[0] != x && y->def->in[1] != x)
        return false;
    return by == hi || (value_is_const(by) && value_is_const(hi) && by->u.i >= hi->u.i);
}

// No element of one access is an element of the other.
static bool disjoint_places(const Axis *along, const Op *a, const Op *b) {
    for (int i = 0; i < a->mem[0].nidx && i < b->mem[0].nidx; i++) {
        const Value *x = a->in[a->mem[0].first + i], *y = b->in[b->mem[0].first + i];
        if (moved_past(along, x, y) || moved_past(along, y, x))
            return true;
    }
    return false;
}

// Two accesses to one tensor, one of them a write, that streaming might exchange. An access along
// the axis goes into loops: a load into every loop that needs it, a write into the last one. Others
// keep their place, except that what uses a reduction moves behind its loop.
static bool may_exchange(const Stream *s, Op *first, Op *second) {
    bool along1 = op_is_along(s, first), along2 = op_is_along(s, second);
    if (along1 && along2 && disjoint_places(s->whole, first, second))
        return false;
    if (along1 && along2)
        return !op_same_place(first, second) || second->kind == OP_LOAD;
    if (along1 || along2)
        return along1 || first->kind != OP_LOAD || op_level(s, first) > 0;
    return op_level(s, first) > op_level(s, second);
}

static bool reduces_behind(const Stream *s, const Op *op) {
    for (; op != s->until; op = op->next)
        if (stream_reduces(op, s->whole))
            return true;
    return false;
}

// The access to `mem` that streaming would exchange with an earlier one.
static Op *exchanged_access(const Stream *s, const Mem *mem) {
    for (Op *op = first_of(s); op != s->until; op = op->next) {
        Touch t = op_touch(op, mem);
        if (!t.reads && !t.writes)
            continue;
        for (Op *e = first_of(s); e != op; e = e->next) {
            Touch u = op_touch(e, mem);
            if (!(u.writes || (t.writes && u.reads)))
                continue;
            bool again = e->kind == OP_LOAD && op_is_along(s, e) && reduces_behind(s, op);
            if (again || may_exchange(s, e, op))
                return op;
        }
    }
    return NULL;
}

static void find_levels(Stream *s) {
    s->level = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    s->along = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    op_levels(s);
}

// A scan whose slowest axis this is, or along other axes only.
static bool scans_whole_first(const Stream *s, const Op *op) {
    return op_is_scan(op) && (op->axes[0] == s->whole || !op_reduces(op, s->whole));
}

// What this pass cannot stream: other ops along the axis, uses in inner loops, and reading back
// what the nest wrote.
static bool stream_refuses(Stream *s) {
    for (Op *op = first_of(s); op != s->until; op = op->next) {
        bool along = op_takes_axis(op, s->whole) || op_reduces(op, s->whole);
        bool pure = op_has(op->kind, TRAIT_PURE) && !op_reduces(op, s->whole);
        bool fine = pure || op->kind == OP_LOAD || op->kind == OP_STORE ||
                    stream_reduces(op, s->whole) || op->kind == OP_INSIDE ||
                    op->kind == OP_ATOMIC || scans_whole_first(s, op) || op->kind == OP_SCATTER ||
                    op->kind == OP_AXIS || op->kind == OP_PRINT || op->kind == OP_ASSERT;
        if (along && !fine)
            return stream_unsupported(s, op, op_info(op->kind)->text);
        if (op_carries(s, op) && op->nres == FOLD_VALUES_MAX)
            return stream_unsupported(s, op, "a scan of so many values");
    }
    find_levels(s);
    for (int i = 0; i < s->k->nmem; i++) {
        const Op *op = exchanged_access(s, s->k->mem[i]);
        if (op)
            return stream_unsupported(
                s, op, "accesses to a tensor that is read and written, in this order,");
    }
    return false;
}

// Ops along the axis whose values went into the loops.
static void drop_streamed(Stream *s) {
    uint32_t *uses = ir_count_uses(s->ctx->scratch, s->k);
    for (Op *op = s->region->last, *prev; op; op = prev) {
        prev = op->prev;
        bool dead = op->nres > 0 && (op->nregion == 0 || op_has(op->kind, TRAIT_FUNCTION)) &&
                    axes_has(op->res[0]->type.axes, s->whole->id);
        for (int i = 0; i < op->nres; i++)
            dead &= uses[op->res[i]->id] == 0;
        if (!dead)
            continue;
        for (int i = 0; i < op->nin; i++)
            uses[op->in[i]->id]--;
        ir_op_unlink(op);
    }
}

// A fold whose slowest axis is another one: tiles are not in the order of its elements.
static void split_folds(Stream *s) {
    for (Op *op = s->region->first, *next; op; op = next) {
        next = op->next;
        for (int i = 1; op->kind == OP_FOLD && i < op->naxes; i++)
            if (op->axes[i] == s->whole) {
                fold_split(s->k, s->ctx->scratch, op, i);
                break;
            }
    }
}

// A scan whose slowest axis is another one, as far as that is one here.
static void split_scans(Stream *s) {
    for (Op *op = s->region->first, *next; op; op = next) {
        next = op->next;
        if (!op_is_scan(op) || !op_reduces(op, s->whole))
            continue;
        while (op->axes[0] != s->whole)
            op = scan_peel(s->k, s->ctx->scratch, op);
    }
}

// The window of an axis that nothing binds is all of it.
static void whole_ends(Stream *s) {
    const Axis *a = s->whole;
    Value *lo = a->is_dim || !a->lo ? ir_index(s->k, 0) : a->lo;
    Value *hi = a->is_dim ? a->extent : a->hi;
    IrMap map = ir_map_new(s->ctx->scratch, s->k);
    for (Op *op = s->region->first, *next; op; op = next) {
        next = op->next;
        if ((op->kind != OP_BEGIN && op->kind != OP_END) || op->axes[0] != a)
            continue;
        ir_map_value(&map, op->res[0], op->kind == OP_BEGIN ? lo : hi);
        ir_op_unlink(op);
    }
    ir_substitute(s->region, &map);
}

static bool region_stream(Stream *s) {
    split_scans(s);
    whole_ends(s);
    split_folds(s);
    if (stream_refuses(s))
        return false;
    for (;;) {
        find_levels(s);
        VEC(Op *) reds = {0};
        for (Op *op = first_of(s); op != s->until; op = op->next)
            if (stream_reduces(op, s->whole) && s->level[op->res[0]->id] == 0)
                vec_push(s->ctx->scratch, &reds, op);
        if (reds.len == 0)
            break;
        s->passes++;
        stream_reductions(s, reds.data, (int)reds.len, reds.data[reds.len - 1]);
    }
    VEC(Op *) stores = {0};
    for (Op *op = first_of(s); op != s->until; op = op->next)
        if (is_effect(op) && op->nregion == 0 && op_takes_axis(op, s->whole))
            vec_push(s->ctx->scratch, &stores, op);
    find_levels(s);
    s->passes += stores.len > 0;
    if (stores.len > 0)
        stream_stores(s, stores.data, (int)stores.len);
    drop_streamed(s);
    return true;
}

static void note_streamed(PassCtx *ctx, const Kernel *k, const Op *par, const Stream *s) {
    remark(ctx, DIAG_WHOLE_AXIS, par->span, "%s: %s is streamed, %u at a time", k->name,
           written_axis(ctx->scratch, s->whole), (unsigned)s->tile);
    // On the CPU streaming is as good.
    if (ctx->target->family != TARGET_CPU && s->passes > 1)
        perf_note(ctx, k, DIAG_STREAMED, par->span,
                  "reductions that need each other's results take a pass each; one `reduce` with a "
                  "fn of tuples takes one",
                  "%s does not fit in a program: it is read in %d passes",
                  written_axis(ctx->scratch, s->whole), s->passes);
}

// Each run of ops between two that use the axis in their regions, and these regions.
static bool segments_stream(Stream *s, Region *region) {
    Op *after = NULL, *yield = region_yield(region);
    for (Op *op = region->first; op; op = op->next) {
        if (!stream_splits(s->k, op, s->whole))
            continue;
        s->region = region;
        s->after = after;
        s->until = op;
        if (!region_stream(s))
            return false;
        for (int i = 0; i < op->nregion; i++)
            if (!segments_stream(s, op->region[i]))
                return false;
        after = op;
    }
    s->region = region;
    s->after = after;
    s->until = yield;
    return region_stream(s);
}

// The first access in a segment that streaming would exchange with an earlier one.
static Op *find_exchanged(Stream *s, Region *region) {
    s->region = region;
    s->after = NULL;
    for (Op *op = region->first; op; op = op->next) {
        bool splits = stream_splits(s->k, op, s->whole);
        if (!splits && op->next)
            continue;
        s->until = splits || op->kind == OP_YIELD ? op : NULL;
        find_levels(s);
        for (int i = 0; i < s->k->nmem; i++) {
            Op *found = exchanged_access(s, s->k->mem[i]);
            if (found)
                return found;
        }
        for (int i = 0; i < op->nregion && splits; i++) {
            Op *found = find_exchanged(s, op->region[i]);
            if (found)
                return found;
            s->region = region;
        }
        s->after = op;
    }
    return NULL;
}

// A border in front of each of them: it is in another segment then.
static bool order_accesses(Stream *s, Op *par, Borders *borders) {
    enum { BORDERS_MOST = 64 };
    for (int i = 0; i < BORDERS_MOST; i++) {
        Op *op = find_exchanged(s, par->region[0]);
        if (!op)
            break;
        stream_border(s->ctx, s->k, borders, op);
        if (!stream_separate(s->ctx, s->k, par, s->whole, borders))
            return false;
    }
    return true;
}

// Nothing along the axis may be left: it would be held.
static bool all_streamed(Stream *s, Op *par) {
    NestedUse left = {.axis = s->whole};
    ir_walk(par->region[0], find_nested_use, &left);
    return !left.op || !stream_unsupported(s, left.op, op_info(left.op->kind)->text);
}

typedef struct Others {
    const Kernel *k;
    const Axis *axis;
    uint64_t elements; // of the largest tile along it, without it
    bool derived;      // a load has an index that is computed from it
} Others;

static void find_others(void *user, Op *op) {
    Others *o = user;
    for (int i = 0; i < op->nin && op->kind == OP_LOAD; i++)
        o->derived |= op->in[i]->kind != VALUE_IOTA && axes_has(op->in[i]->type.axes, o->axis->id);
    for (int i = 0; i < op->nres; i++) {
        AxisSet axes = op->res[i]->type.axes;
        if (!axes_has(axes, o->axis->id))
            continue;
        uint64_t n = tile_elements(o->k, axes_minus(axes, axes_of(o->axis)));
        o->elements = n > o->elements ? n : o->elements;
    }
}

// Of several axes across the contiguous one only the last has more than a row in registers. A tile
// becomes smaller where it has other axes that are long.
static uint32_t streamed_tile(const PassCtx *ctx, const Kernel *k, const Nest *n, int i) {
    enum { PER_THREAD = 64 }; // addresses take registers, too
    for (int j = i + 1; j < n->whole.n && n->whole.id[i] != n->contiguous; j++)
        if (k->axis[n->whole.id[j]]->size == 0 && n->whole.id[j] != n->contiguous)
            return 1;
    const Axis *a = k->axis[n->whole.id[i]];
    uint32_t tile = stream_tile(ctx->target, n, a);
    uint32_t least = n->contiguous == a->id ? (uint32_t)ctx->target->lanes : 1;
    int64_t warps = op_attr_int(n->op, ATTR_warps);
    Others o = {.k = k, .axis = a, .elements = 1};
    ir_walk(n->op->region[0], find_others, &o);
    uint64_t most = (o.derived ? PER_THREAD / 2 : PER_THREAD) * (uint64_t)ctx->target->lanes *
                    (uint64_t)(warps ? warps : 1);
    while (tile > least && tile * o.elements > most)
        tile /= 2;
    return tile;
}

static bool nest_stream(PassCtx *ctx, Kernel *k, Op *par) {
    Nest n = nest_of(par);
    for (int i = 0; i < n.whole.n; i++) {
        Axis *a = k->axis[n.whole.id[i]];
        if (a->size)
            continue; // held
        Stream s = {.ctx = ctx, .k = k, .whole = a, .tile = streamed_tile(ctx, k, &n, i)};
        Borders borders = {0};
        stream_old_values(ctx, k, par->region[0], a, &borders);
        if (!stream_separate(ctx, k, par, a, &borders) || !order_accesses(&s, par, &borders) ||
            !segments_stream(&s, par->region[0]) || !all_streamed(&s, par))
            return false;
        for (uint32_t j = 0; j < borders.len; j++)
            ir_op_unlink(borders.data[j]);
        note_streamed(ctx, k, par, &s);
    }
    return true;
}

bool pass_stream(PassCtx *ctx, Kernel *k) {
    return each_nest(ctx, k, nest_stream);
}

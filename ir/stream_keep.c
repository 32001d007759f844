// Pass stream, second part: a whole axis that inner loops and conditions use => no value along it
// crosses the border of a region.
//
// In and out: stage scheduled, before the axis is streamed. A *segment* is a run of ops between two
// ops whose regions use the axis. What a segment uses along the axis and does not make itself is
// made again in it, if it is elementwise work on loads of tensors that the nest does not write;
// else it lies in scratch memory, a hidden temporary with an element per program:
//
//   %x = load @x[N]; %r = for %i in .. carry (%a = %x : f32[N]) { %b = mul %a, %x; .. yield %b };
//   use %r
//   => @s = temp : f32[.., %N]
//      %x = load @x[N]; store @s[.., N], %x
//      for %i in .. { %a = load @s[.., N]; %x' = load @x[N]; %b = mul %a, %x'; .. store @s[.., N],
//      %b } %r = load @s[.., N]; use %r
//
// Then each segment is streamed on its own.
//
// What is indexed along the axis lies in scratch memory, too; there is a border in front of the
// first that needs all of it:
//
//   %c = scan.sum[N] %x; %t = take %c, N = %p
//   => %c = scan.sum[N] %x; store @s[.., N], %c; barrier; %t = load @s[.., %p]
//
// So do the old values of an atomic, which is executed once: a border follows it.
//
//   %o = atomic.add @y[N], %x; use %o
//   => %o = atomic.add @y[N], %x; store @s[.., N], %o; barrier; %o' = load @s[.., N]; use %o'
#include "ir/stream.h"

#include "ir/nest.h"
#include "ir/remark.h"
#include "lang/base/vec.h"

typedef struct Place {
    const Region *region;
    Value *index[RANK_MAX]; // made at the region's start
} Place;
typedef VEC(Place *) PlaceVec;

typedef struct Scratch {
    Mem *mem;
    Type type;
    PlaceVec places;
} Scratch;
typedef VEC(Scratch) ScratchVec;

typedef struct Keep {
    PassCtx *ctx;
    Kernel *k;
    Op *par;
    const Axis *axis;
    AxisWindow *window;
    ScratchVec scratch;
    uint32_t nvalue;   // room of the tables below
    uint32_t *kept;    // by value id: number of its scratch + 1
    uint32_t *segment; // by value id: where it is made; 0: elsewhere
    Value **again;     // by value id: its copy in the current segment
    uint8_t *written;  // by memory id: the nest writes it
    uint16_t nmem;     // room of it
    uint32_t segments;
    bool failed;
} Keep;

static bool is_along(const Keep *s, const Value *v) {
    return axes_has(v->type.axes, s->axis->id);
}

static void refuse(Keep *s, Span span, const char *why) {
    if (!s->failed)
        diag_add(s->ctx->diags, DIAG_UNSUPPORTED, span,
                 "not supported yet: a value along the whole axis %s, whose extent is not known to "
                 "fit in a program, in an inner loop: %s",
                 s->axis->name, why);
    s->failed = true;
}

// --- scratch memory ---

// The number of indices and the first index of an axis, known in front of the nest; false: they are
// not.
static bool is_outside(const Keep *s, const Value *v) {
    if (v->kind == VALUE_OP)
        return !op_is_in(v->def, s->par->region[0]);
    return v->kind != VALUE_ARG || !region_contains(s->par->region[0], v->region);
}

static Value *sub(Builder *b, Value *x, Value *lo) {
    return !lo || value_is_int(lo, 0) ? x : ir_binary(b, OP_SUB, x, lo, NULL);
}

// Of a window that may be empty.
static Value *extent_of(Builder *b, Value *lo, Value *hi) {
    Value *n = sub(b, hi, lo);
    return n == hi ? hi : ir_binary(b, OP_MAX, n, ir_index(b->kernel, 0), NULL);
}

static bool is_grid_axis(const Keep *s, uint16_t axis) {
    for (int i = 0; i < s->par->nbinders; i++)
        if (s->par->binder[i].axis && s->par->binder[i].axis->id == axis)
            return true;
    return false;
}

// The axis is all of a range that is known in front of the nest, not a loop's current tile.
static bool has_fixed_ends(const Keep *s, const Axis *a) {
    const Value *hi = a->is_dim ? a->extent : a->hi;
    return hi && is_outside(s, hi) && (a->is_dim || !a->lo || is_outside(s, a->lo));
}

// Dims and, with `region`, indices at its start: one per binder of the grid, then one per other
// axis of the value. An axis of an inner loop is counted from its window's begin.
static int scratch_shape(Keep *s, Type type, Builder *dims_at, Builder *index_at, Value **dims,
                         Value **index) {
    Kernel *k = s->k;
    int n = 0;
    for (int i = 0; i < s->par->nbinders; i++, n++) {
        const Binder *bd = &s->par->binder[i];
        Value *lo = op_binder_lo(s->par, i), *hi = op_binder_hi(s->par, i);
        if (n == RANK_MAX)
            return -1;
        if (dims_at)
            dims[n] = extent_of(dims_at, lo, hi);
        if (index_at) {
            bool has = bd->axis && axes_has(type.axes, bd->axis->id);
            Value *at = !bd->axis ? bd->var : has ? bd->axis->iota : ir_begin(index_at, bd->axis);
            index[n] = sub(index_at, at, lo);
        }
    }
    for (int i = 0; i < type.axes.n; i++) {
        Axis *a = k->axis[type.axes.id[i]];
        if (is_grid_axis(s, a->id))
            continue;
        Value *lo = a->is_dim ? NULL : a->lo, *hi = a->is_dim ? a->extent : a->hi;
        bool fixed = has_fixed_ends(s, a);
        if (n == RANK_MAX || (!fixed && a->size == 0))
            return -1;
        if (dims_at)
            dims[n] = fixed ? extent_of(dims_at, lo, hi) : ir_index(k, a->size);
        if (index_at)
            index[n] =
                fixed ? sub(index_at, a->iota, lo) : sub(index_at, a->iota, ir_begin(index_at, a));
        n++;
    }
    return n;
}

static uint32_t scratch_new(Keep *s, const Value *v, Span span) {
    Builder b = ir_builder_before(s->k, s->par);
    b.span = span;
    Value *dims[RANK_MAX];
    int rank = scratch_shape(s, v->type, &b, NULL, dims, NULL);
    if (rank < 0) {
        refuse(s, span, "its size is not known at launch, or it has too many axes");
        return 0;
    }
    Mem *mem = ir_temp(&b, v->name ? v->name : "kept", v->type.dtype, rank, dims);
    Type type = v->type;
    vec_push(s->ctx->scratch, &s->scratch, ((Scratch){.mem = mem, .type = type}));
    const char *name = remark_name(s->ctx->scratch, v->name);
    perf_note(s->ctx, s->k, DIAG_STREAMED, span,
              "shorten what a program handles of the axis, or compute the value where it is used",
              "%s%s%s along %s does not fit in a program and is used again: it is kept in scratch "
              "memory",
              name ? "`" : "", name ? name : "a value", name ? "`" : "",
              written_axis(s->ctx->scratch, s->axis));
    return s->scratch.len;
}

// Indices of the scratch in a region: made once, at its start, so that equal places are one value.
static Value **scratch_index(Keep *s, Scratch *c, Region *region) {
    for (uint32_t i = 0; i < c->places.len; i++)
        if (c->places.data[i]->region == region)
            return c->places.data[i]->index;
    Place *place = ARENA_NEW(s->ctx->scratch, Place);
    place->region = region;
    vec_push(s->ctx->scratch, &c->places, place);
    Op *first = region->first;
    while (first && first->kind == OP_AXIS)
        first = first->next;
    Builder b = first ? ir_builder_before(s->k, first) : ir_builder_at_end(s->k, region);
    b.span = s->par->span;
    scratch_shape(s, c->type, NULL, &b, NULL, place->index);
    return place->index;
}

static Builder builder_at(Kernel *k, Region *region, Op *before) {
    return before ? ir_builder_before(k, before) : ir_builder_at_end(k, region);
}

static void scratch_store(Keep *s, uint32_t number, Region *region, Op *before, Value *v,
                          Span span) {
    Scratch *c = &s->scratch.data[number - 1];
    Value **index = scratch_index(s, c, region);
    Builder b = builder_at(s->k, region, before);
    b.span = span;
    Op *store = ir_store(&b, c->mem, index, v);
    Str names[RANK_MAX], none = intern_cstr(s->k->module->interner, "_");
    for (int i = 0; i < c->mem->rank; i++)
        names[i] = index[i]->kind == VALUE_IOTA  ? index[i]->axis->name
                   : index[i]->kind == VALUE_ARG ? index[i]->name
                                                 : none;
    op_set_names(s->k, store, ATTR_det, c->mem->rank, names);
}

static Value *scratch_load(Keep *s, uint32_t number, Region *region, Op *before, const Value *v,
                           Span span) {
    Scratch *c = &s->scratch.data[number - 1];
    Value **index = scratch_index(s, c, region);
    Builder b = builder_at(s->k, region, before);
    b.span = span;
    return ir_load(&b, c->mem, index, NULL, v->name);
}

// --- which ops ---

typedef struct Find {
    const Keep *s;
    bool found;
} Find;

static void find_use(void *user, Op *op) {
    Find *f = user;
    for (int i = 0; i < op->nin; i++)
        f->found |= is_along(f->s, op->in[i]);
    for (int i = 0; i < op->nres; i++)
        f->found |= is_along(f->s, op->res[i]);
    for (int i = 0; i < op->naxes; i++)
        f->found |= op->axes[i] == f->s->axis && op->kind != OP_AXIS;
}

// Regions that run in the nest: the function of a fold or scan does not.
static bool has_body(const Op *op) {
    return op->nregion > 0 && !op_has(op->kind, TRAIT_FUNCTION);
}

static bool splits(const Keep *s, Op *op) {
    Find f = {.s = s};
    if (op->kind == OP_BARRIER)
        return true;
    if (!has_body(op))
        return false;
    find_use(&f, op);
    for (int i = 0; i < op->nregion; i++)
        ir_walk(op->region[i], find_use, &f);
    return f.found;
}

static void note_writes(void *user, Op *op) {
    Keep *s = user;
    for (int i = 0; i < op->nmem && op_has(op->kind, TRAIT_WRITES); i++)
        s->written[op->mem[i].mem->id] = 1;
}

// --- carried values and results of regions ---

static void result_keep(Keep *s, Op *op, int i) {
    uint32_t number = scratch_new(s, op->res[i], op->span);
    if (!number)
        return;
    s->kept[op->res[i]->id] = number;
    Value *arg = op->ncarry ? op_carry_arg(op, i) : NULL;
    if (arg) {
        s->kept[arg->id] = number;
        scratch_store(s, number, op->parent, op, op_carry_init(op, i), op->span);
    }
    for (int r = 0; r < op->nregion; r++) {
        Op *y = region_yield(op->region[r]);
        if (y && y->in[i] != arg)
            scratch_store(s, number, op->region[r], y, y->in[i], y->span);
    }
}

static void results_keep(Keep *s, Region *region) {
    for (Op *op = region->first; op && !s->failed; op = op->next) {
        if (!has_body(op))
            continue;
        for (int r = 0; r < op->nregion; r++)
            results_keep(s, op->region[r]);
        for (int i = 0; i < op->nres; i++)
            if (is_along(s, op->res[i]))
                result_keep(s, op, i);
    }
}

// --- segments ---

static bool made_again(const Keep *s, const Value *v) {
    if (v->kind != VALUE_OP || v->def->nregion > 0 || v->def->nres != 1)
        return false;
    const Op *op = v->def;
    bool plain = op_has(op->kind, TRAIT_ELEMENTWISE) || op->kind == OP_INSIDE;
    // scratch memory is younger than the table
    bool written =
        op->kind == OP_LOAD && (op->mem[0].mem->id >= s->nmem || s->written[op->mem[0].mem->id]);
    return plain || (op->kind == OP_LOAD && !written);
}

// Room in the tables for values that this pass makes.
static void tables_grow(Keep *s, uint32_t id) {
    if (id < s->nvalue)
        return;
    uint32_t n = 2 * id + 64;
    uint32_t *kept = ARENA_ARRAY(s->ctx->scratch, uint32_t, n);
    uint32_t *segment = ARENA_ARRAY(s->ctx->scratch, uint32_t, n);
    Value **again = ARENA_ARRAY(s->ctx->scratch, Value *, n);
    for (uint32_t i = 0; i < s->nvalue; i++) {
        kept[i] = s->kept[i];
        segment[i] = s->segment[i];
        again[i] = s->again[i];
    }
    s->kept = kept;
    s->segment = segment;
    s->again = again;
    s->nvalue = n;
}

static void note_new(Keep *s, const Value *v) {
    tables_grow(s, v->id);
    s->segment[v->id] = s->segments;
}

typedef struct Segment {
    Region *region;
    Op *first; // copies go in front of it
} Segment;

// The number of its scratch memory, made where it has none.
static uint32_t keep_value(Keep *s, Value *v) {
    uint32_t id = v->id;
    tables_grow(s, id);
    if (!s->kept[id] && v->kind == VALUE_OP) {
        uint32_t number = scratch_new(s, v, v->def->span);
        s->kept[id] = number;
        if (number)
            scratch_store(s, number, v->def->parent, v->def->next, v, v->def->span);
    }
    return s->kept[id];
}

// `v` for an op of the segment.
static Value *value_in(Keep *s, const Segment *g, Value *v, Span span) {
    if (!is_along(s, v) || v->kind == VALUE_IOTA || v->kind == VALUE_CONST)
        return v;
    tables_grow(s, s->k->nvalue);
    uint32_t id = v->id;
    if (s->segment[id] == s->segments && v->kind == VALUE_OP)
        return v;
    if (s->again[id] && s->segment[s->again[id]->id] == s->segments)
        return s->again[id];
    Value *here;
    if (!s->kept[id] && made_again(s, v)) {
        Value *in[RANK_MAX + 1];
        for (int i = 0; i < v->def->nin; i++)
            in[i] = value_in(s, g, v->def->in[i], span);
        Builder b = builder_at(s->k, g->region, g->first);
        IrMap none = ir_map_new(s->ctx->scratch, s->k);
        b.span = v->def->span;
        Op *copy = ir_clone(&b, v->def, &none);
        for (int i = 0; i < copy->nin; i++)
            copy->in[i] = in[i];
        here = copy->res[0];
    } else {
        if (!keep_value(s, v))
            return v;
        here = scratch_load(s, s->kept[id], g->region, g->first, v, span);
    }
    note_new(s, here);
    s->again[id] = here;
    return here;
}

// Behind the declarations and indices at the region's head: they need nothing from elsewhere.
static Op *segment_first(const Keep *s, const Region *region) {
    for (Op *op = region->first; op; op = op->next) {
        bool head = op->kind == OP_AXIS || (op_has(op->kind, TRAIT_PURE) && op->nregion == 0);
        for (int i = 0; i < op->nin; i++)
            head &= !is_along(s, op->in[i]) || op->in[i]->kind == VALUE_IOTA;
        if (!head)
            return op;
    }
    return NULL;
}

// --- values that are indexed along the axis ---

static bool takes_along(const Keep *s, const Op *op) {
    for (int i = 0; i < op->naxes && op->kind == OP_TAKE; i++)
        if (op->axes[i] == s->axis)
            return true;
    return false;
}

void stream_border(PassCtx *ctx, Kernel *k, Borders *borders, Op *before) {
    Builder b = ir_builder_before(k, before);
    b.span = before->span;
    vec_push(ctx->scratch, borders, ir_build(&b, &(OpInit){.kind = OP_BARRIER}));
}

// A border in front of each take from a value that its own segment makes. True: there are takes.
static bool takes_border(Keep *s, Region *region, Borders *borders) {
    bool any = false;
    s->segments++;
    for (Op *op = region->first; op; op = op->next) {
        for (int r = 0; r < op->nregion && has_body(op); r++)
            any |= takes_border(s, op->region[r], borders);
        for (int i = 0; i < op->nres; i++)
            note_new(s, op->res[i]);
        if (splits(s, op))
            s->segments++;
        if (!takes_along(s, op))
            continue;
        any = true;
        if (op->in[0]->kind != VALUE_OP || s->segment[op->in[0]->id] != s->segments)
            continue;
        stream_border(s->ctx, s->k, borders, op);
        s->segments++;
        note_new(s, op->res[0]);
    }
    return any;
}

// `place` where `at` is in the current tile of the axis, else a place outside of any memory.
static Value *inside_tile(Builder *b, Axis *a, Value *at, Value *place) {
    Value *above = ir_cmp(b, CMP_GE, at, ir_begin(b, a), NULL);
    Value *below = ir_cmp(b, CMP_LT, at, ir_end(b, a), NULL);
    Value *inside = ir_binary(b, OP_AND, above, below, NULL);
    return ir_select(b, inside, place, ir_index(b->kernel, -1), NULL);
}

// The dim of scratch memory that an axis of a value has.
static int scratch_dim(const Keep *s, Type type, const Axis *a) {
    for (int i = 0; i < s->par->nbinders; i++)
        if (s->par->binder[i].axis == a)
            return i;
    int n = s->par->nbinders;
    for (int i = 0; i < type.axes.n && type.axes.id[i] != a->id; i++)
        n += !is_grid_axis(s, type.axes.id[i]);
    return n;
}

// Where in that dim the element of index `at` lies. What is outside of the memory is outside of the
// axis, too, unless the value holds the axis's current tile: the memory has tiles of other
// programs, or room that a tile at the axis's end does not fill.
static Value *scratch_at(const Keep *s, Builder *b, Axis *a, Value *at) {
    for (int i = 0; i < s->par->nbinders; i++)
        if (s->par->binder[i].axis == a)
            return inside_tile(b, a, at, sub(b, at, op_binder_lo(s->par, i)));
    if (has_fixed_ends(s, a))
        return sub(b, at, a->is_dim ? NULL : a->lo);
    return inside_tile(b, a, at, sub(b, at, ir_begin(b, a)));
}

static Value *load_taken(Keep *s, const Segment *g, Op *op, Builder *b) {
    uint32_t number = keep_value(s, op->in[0]);
    Value *index[RANK_MAX], *fill = op->has_else ? op->in[op->nin - 1] : NULL;
    if (!number)
        return NULL;
    Scratch *c = &s->scratch.data[number - 1];
    Value **all = scratch_index(s, c, g->region);
    for (int i = 0; i < c->mem->rank; i++)
        index[i] = all[i];
    for (int i = 0; i < op->naxes; i++) {
        Axis *a = op->axes[i];
        Value *at = ir_cast(b, DT_INDEX, value_in(s, g, op->in[1 + i], op->span), NULL);
        index[scratch_dim(s, c->type, a)] = scratch_at(s, b, a, at);
    }
    return ir_load(b, c->mem, index, fill ? value_in(s, g, fill, op->span) : NULL,
                   op->res[0]->name);
}

static void take_load(Keep *s, const Segment *g, Op *op) {
    Builder b = ir_builder_before(s->k, op);
    b.span = op->span;
    uint32_t first = s->k->nvalue;
    Value *v = take_of_axis(&b, op);
    if (!v)
        v = load_taken(s, g, op, &b);
    if (!v)
        return;
    for (Op *made = op->prev; made && made->nres > 0 && made->res[0]->id >= first;
         made = made->prev)
        note_new(s, made->res[0]);
    IrMap map = ir_map_new(s->ctx->scratch, s->k);
    ir_map_value(&map, op->res[0], v);
    ir_substitute(s->k->body, &map);
    ir_op_unlink(op);
}

// --- old values of atomics: an atomic is executed once ---

static bool gives_old_along(const Op *op, const Axis *axis) {
    return op->kind == OP_ATOMIC && op->nres > 0 && axes_has(op->res[0]->type.axes, axis->id);
}

void stream_old_values(PassCtx *ctx, Kernel *k, Region *region, const Axis *whole,
                       Borders *borders) {
    for (Op *op = region->first; op; op = op->next) {
        for (int r = 0; r < op->nregion && has_body(op); r++)
            stream_old_values(ctx, k, op->region[r], whole, borders);
        if (gives_old_along(op, whole) && op->next)
            stream_border(ctx, k, borders, op->next);
    }
}

static void region_separate(Keep *s, Region *region) {
    s->segments++;
    Segment g = {.region = region, .first = segment_first(s, region)};
    for (Op *op = region->first, *next; op && !s->failed; op = next) {
        next = op->next;
        if (splits(s, op)) {
            for (int r = 0; r < op->nregion; r++)
                region_separate(s, op->region[r]);
            s->segments++;
            g.first = next;
            continue;
        }
        if (takes_along(s, op)) {
            take_load(s, &g, op);
            g.first = g.first == op ? next : g.first; // it is gone
            continue;
        }
        if (op->kind == OP_YIELD) // of carried values: they are in memory
            continue;
        for (int i = 0; i < op->nin; i++)
            op->in[i] = value_in(s, &g, op->in[i], op->span);
        for (int i = 0; i < op->nres; i++)
            note_new(s, op->res[i]);
    }
}

// --- regions without these values ---

static void yields_drop(Keep *s, Op *op, const uint8_t *drop) {
    for (int r = 0; r < op->nregion; r++) {
        Op *y = region_yield(op->region[r]);
        if (!y)
            continue;
        Value *in[256], *stop = y->has_stop ? y->in[y->nin - 1] : NULL;
        int n = 0;
        for (int i = 0; i < op->nres; i++)
            if (!drop[i])
                in[n++] = y->in[i];
        Builder b = ir_builder_before(s->k, y);
        b.span = y->span;
        if (n > 0 || stop)
            ir_yield(&b, n, in, stop);
        ir_op_unlink(y);
    }
}

// The same op with fewer results, and its regions moved over.
static void op_drop(Keep *s, Op *op, const uint8_t *drop) {
    Kernel *k = s->k;
    BinderInit binders[8];
    Value *inits[256];
    Type types[256];
    int n = 0;
    for (int i = 0; i < op->nres; i++) {
        if (drop[i])
            continue;
        types[n] = op->res[i]->type;
        if (op->ncarry)
            inits[n] = op_carry_init(op, i);
        n++;
    }
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *bd = &op->binder[i];
        binders[i] = (BinderInit){.axis = bd->axis,
                                  .name = bd->var ? bd->var->name : NULL,
                                  .lo = op->in[bd->first],
                                  .hi = op->in[bd->first + 1],
                                  .step = bd->has_step ? op->in[bd->first + 2] : NULL};
    }
    yields_drop(s, op, drop);
    Builder b = ir_builder_before(k, op);
    b.span = op->span;
    Op *with = op->kind == OP_FOR ? ir_for_typed(&b, op->nbinders, binders, n, inits, types, NULL)
               : op->kind == OP_WHILE ? ir_while_typed(&b, n, inits, types, NULL)
               : op->kind == OP_WITH  ? ir_with(&b, op->nbinders, binders, n, types)
                                      : ir_if(&b, op->in[0], n, types);
    IrMap map = ir_map_new(s->ctx->scratch, k);
    for (int i = 0, var = 0; i < op->nbinders; i++, var += op->binder[i - 1].var != NULL)
        if (op->binder[i].var)
            ir_map_value(&map, op->binder[i].var, with->region[0]->arg[var]);
    for (int i = 0, j = 0; i < op->nres; i++) {
        if (drop[i])
            continue;
        ir_map_value(&map, op->res[i], with->res[j]);
        if (op->ncarry)
            ir_map_value(&map, op_carry_arg(op, i), op_carry_arg(with, j));
        j++;
    }
    for (int r = 0; r < op->nregion; r++)
        for (Op *inner = op->region[r]->first, *next; inner; inner = next) {
            next = inner->next;
            ir_op_move_end(inner, with->region[r]);
        }
    with->attr = op->attr;
    with->nattr = op->nattr;
    ir_op_unlink(op);
    ir_substitute(k->body, &map);
}

static void results_drop(Keep *s, Region *region) {
    for (Op *op = region->first, *next; op; op = next) {
        next = op->next;
        if (!has_body(op))
            continue;
        for (int r = 0; r < op->nregion; r++)
            results_drop(s, op->region[r]);
        uint8_t drop[256] = {0};
        bool any = false;
        for (int i = 0; i < op->nres; i++)
            any |= drop[i] = is_along(s, op->res[i]);
        if (any)
            op_drop(s, op, drop);
    }
}

bool stream_separate(PassCtx *ctx, Kernel *k, Op *par, Axis *whole, Borders *borders) {
    Keep s = {.ctx = ctx, .k = k, .par = par, .axis = whole, .nvalue = k->nvalue + 1};
    s.kept = ARENA_ARRAY(ctx->scratch, uint32_t, s.nvalue);
    s.segment = ARENA_ARRAY(ctx->scratch, uint32_t, s.nvalue);
    s.again = ARENA_ARRAY(ctx->scratch, Value *, s.nvalue);
    bool any = takes_border(&s, par->region[0], borders);
    for (Op *op = par->region[0]->first; op; op = op->next)
        any |= splits(&s, op);
    if (!any)
        return true;
    s.written = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nmem + 1);
    s.nmem = k->nmem;
    ir_walk(par->region[0], note_writes, &s);
    results_keep(&s, par->region[0]);
    if (!s.failed)
        region_separate(&s, par->region[0]);
    if (!s.failed)
        results_drop(&s, par->region[0]);
    return !s.failed;
}

bool stream_splits(Kernel *k, Op *op, const Axis *whole) {
    Keep s = {.k = k, .axis = whole};
    return splits(&s, op);
}

// Tensors: loads, stores, atomics, and what is asked about them.
//
// One iterator, Access, decides for every point of an access where it lies; loads, stores and
// copies share it, so that rule 3 (nothing outside exists) and the duties of `check` and `guard`
// stand here once.
#include "ir/eval_impl.h"

#include <math.h>

#include "ir/random.h"

void access_start(Eval *e, const Op *op, Access *a, const MemRef *ref, AxisSet axes) {
    *a = (Access){.op = op, .mem = ref->mem, .state = &e->mem[ref->mem->id]};
    if (!a->state->defined)
        eval_fail(e, op, "@%s has no memory here", ref->mem->name);
    if (ref->nidx != ref->mem->rank)
        eval_fail(e, op, "@%s has %d dims, not %d", ref->mem->name, ref->mem->rank, ref->nidx);
    walk_start(e, op, &a->walk, axes);
    for (int d = 0; d < ref->nidx; d++) {
        a->index[d] = eval_value(e, op, op->in[ref->first + d]);
        a->at[d] = walk_tile(e, op, &a->walk, a->index[d]);
        if (e->exact || op_attr_has_int(op, ATTR_check, d))
            a->checked |= 1u << d;
    }
    AxisSet guards = op_attr_axes(op, ATTR_guard);
    for (int i = 0; i < axes.n; i++) {
        if (axes_has(guards, axes.id[i]))
            a->guarded |= 1u << i;
    }
}

Place access_place(Eval *e, Access *a) {
    a->outside = -1;
    for (int i = 0; i < a->walk.axes.n; i++) {
        if (a->guarded >> i & 1 && a->walk.pos[i] >= a->walk.left[i])
            return PLACE_OUT;
    }
    uint8_t bad = 0;
    int outside = -1, poisoned = -1;
    a->offset = 0;
    a->linear = 0;
    for (int d = 0; d < a->mem->rank; d++) {
        int64_t at = a->walk.at[a->at[d]], extent = a->state->absent ? 0 : a->state->dims[d];
        bool checked = a->checked >> d & 1;
        if (a->index[d]->bad && a->index[d]->bad[at]) {
            bad |= a->index[d]->bad[at];
            if (!checked && !(bad & BAD_UNKNOWN))
                poisoned = d;
            continue;
        }
        int64_t i = a->index[d]->cell[at].i;
        if (i < 0 || i >= extent) {
            a->outside = d;
            if (checked)
                return PLACE_OUT;
            outside = d;
            continue;
        }
        a->offset += i * a->state->strides[d];
        a->linear = a->linear * extent + i;
    }
    if (bad & BAD_UNKNOWN)
        return PLACE_UNKNOWN;
    if (poisoned >= 0)
        eval_fail(e, a->op, "poison reaches the address: index %d of @%s at %s", poisoned,
                  a->mem->name, eval_point(e, a->walk.axes, a->walk.pos));
    if (outside >= 0)
        eval_fail(
            e, a->op, "index %d of @%s is %lld, outside its extent %lld, without a check, at %s",
            outside, a->mem->name, (long long)a->index[outside]->cell[a->walk.at[a->at[outside]]].i,
            (long long)(a->state->absent ? 0 : a->state->dims[outside]),
            eval_point(e, a->walk.axes, a->walk.pos));
    if (a->state->absent) // of rank 0
        return PLACE_OUT;
    if (bad)
        return PLACE_POISON;
    return walk_is_inside(&a->walk) ? PLACE_IN : PLACE_PADDING;
}

int64_t *access_order(Eval *e, const Access *a) {
    int64_t n = a->walk.count;
    if (!e->opts.seed || n < 2)
        return NULL;
    int64_t *order = eval_calloc(e, a->op, n, sizeof *order);
    for (int64_t i = 0; i < n; i++) { // Fisher and Yates, from the front
        int64_t j = (int64_t)random_below(e->opts.seed, e->draws++, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

// --- races ---

static MemState *race_state(Eval *e, const Op *op, const Mem *m) {
    MemState *s = &e->mem[m->id];
    if (!s->writer) {
        s->writer = eval_calloc(e, op, s->count, sizeof(uint32_t));
        s->stamp = eval_calloc(e, op, s->count, sizeof(uint32_t));
        s->reader = eval_calloc(e, op, s->count, sizeof(uint32_t));
        s->reader_before = eval_calloc(e, op, s->count, sizeof(uint32_t));
    }
    return s;
}

// Another iteration of the grid that is running.
static bool race_with(const Eval *e, uint32_t other) {
    return other >= e->grid_first && other != e->iteration;
}

static void race_found(Eval *e, const Op *op, const Mem *m, int64_t linear, const char *what,
                       uint32_t other) {
    if (!e->opts.check)
        eval_fail(e, op, "race: element %lld of @%s %s", (long long)linear, m->name, what);
    const char **text = check_found(e, op, DIAG_RACE);
    if (!text)
        return;
    const char *here = check_iteration(e, e->iteration), *there = check_iteration(e, other);
    *text = arena_printf(e->arena, "%s %s%s%s%s%s", check_element(e, m, linear), what,
                         *here ? ": " : "", here, other != e->iteration ? " and " : "",
                         other != e->iteration ? there : "");
}

void race_read(Eval *e, const Op *op, const Mem *m, int64_t linear) {
    if (!e->opts.check_races || !e->iteration)
        return;
    MemState *s = race_state(e, op, m);
    if (race_with(e, s->writer[linear]))
        race_found(e, op, m, linear, "is read here and written by another iteration",
                   s->writer[linear]);
    if (s->reader[linear] == e->iteration)
        return;
    s->reader_before[linear] = s->reader[linear];
    s->reader[linear] = e->iteration;
}

void race_write(Eval *e, const Op *op, const Mem *m, int64_t linear) {
    if (!e->opts.check_races || op->kind == OP_SCATTER || op->kind == OP_ATOMIC)
        return;
    MemState *s = race_state(e, op, m);
    if (op->kind == OP_STORE && s->stamp[linear] == e->store)
        race_found(e, op, m, linear, "is written twice by one store", e->iteration);
    s->stamp[linear] = e->store;
    if (!e->iteration)
        return;
    uint32_t reader =
        race_with(e, s->reader[linear]) ? s->reader[linear] : s->reader_before[linear];
    if (race_with(e, s->writer[linear]))
        race_found(e, op, m, linear, "is written by two iterations", s->writer[linear]);
    if (race_with(e, reader))
        race_found(e, op, m, linear, "is written here and read by another iteration", reader);
    s->writer[linear] = e->iteration;
}

// --- elements ---

Cell cell_load(const Mem *m, const MemState *s, int64_t offset) {
    return cell_from(scalar_load(m->dtype, s->data, offset));
}

void cell_store(const Mem *m, MemState *s, int64_t offset, int64_t linear, Cell c) {
    scalar_store(s->data, offset, cell_scalar(m->dtype, c));
    if (s->bad)
        s->bad[linear] = 0;
    if (s->written)
        s->written[linear] = 1;
}

void access_store(Eval *e, Access *a, Cell c, uint8_t bad) {
    switch (access_place(e, a)) {
    case PLACE_OUT:
        if (e->opts.check)
            check_outside(e, a, false);
        return;
    case PLACE_UNKNOWN:
        return;
    case PLACE_POISON:
        if (e->opts.check) {
            check_undetermined(e, a->op, "an index of what is written", a->walk.axes, a->walk.pos);
            return;
        }
        eval_fail(e, a->op, "poison reaches the address of a store to @%s at %s", a->mem->name,
                  eval_point(e, a->walk.axes, a->walk.pos));
    case PLACE_PADDING:
        eval_fail(e, a->op, "stores the padding position %s to @%s; is a guard missing?",
                  eval_point(e, a->walk.axes, a->walk.pos), a->mem->name);
    case PLACE_IN:
        break;
    }
    if (bad & BAD_UNKNOWN) {
        if (a->state->bad)
            a->state->bad[a->linear] = BAD_UNKNOWN;
        if (a->state->written)
            a->state->written[a->linear] = 0;
        return;
    }
    if (bad && !e->opts.check)
        eval_fail(e, a->op, "stores poison to @%s at %s", a->mem->name,
                  eval_point(e, a->walk.axes, a->walk.pos));
    if (bad && a->mem->kind == MEM_PARAM)
        check_undetermined(e, a->op, check_element(e, a->mem, a->linear), axes_none(), NULL);
    race_write(e, a->op, a->mem, a->linear);
    cell_store(a->mem, a->state, a->offset, a->linear, c);
    if (bad && a->mem->kind != MEM_PARAM)
        a->state->bad[a->linear] = bad;
}

void eval_load(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    const Tile *fill = op->has_else ? eval_value(e, op, op->in[op->nin - 1]) : NULL;
    Access a;
    access_start(e, op, &a, &op->mem[0], type.axes);
    int fill_at = fill ? walk_tile(e, op, &a.walk, fill) : 0;
    for (int64_t p = 0; p < a.walk.count; p++, walk_next(&a.walk)) {
        uint8_t bad = 0;
        switch (access_place(e, &a)) {
        case PLACE_IN:
            race_read(e, op, a.mem, a.linear);
            out->cell[p] = cell_load(a.mem, a.state, a.offset);
            bad = a.state->bad ? a.state->bad[a.linear] : 0;
            if (bad && e->opts.check) {
                check_unwritten(e, &a);
                out->cell[p] = dtype_is_float(out->dtype) ? (Cell){.f = NAN} : (Cell){.i = 0};
            }
            break;
        case PLACE_OUT:
            if (!fill && e->opts.check)
                check_outside(e, &a, true);
            if (fill) {
                out->cell[p] = fill->cell[a.walk.at[fill_at]];
                bad = fill->bad ? fill->bad[a.walk.at[fill_at]] : 0;
            }
            break;
        case PLACE_POISON:
        case PLACE_PADDING:
            bad = BAD_POISON;
            break;
        case PLACE_UNKNOWN:
            bad = BAD_UNKNOWN;
            break;
        }
        if (bad)
            tile_bad(e, op, out)[p] = bad;
    }
    eval_set(e, op->res[0], out);
}

static void check_dtype(Eval *e, const Op *op, const Mem *m, const Tile *v) {
    if (v->dtype != m->dtype)
        eval_fail(e, op, "writes %s to @%s of %s", dtype_name(v->dtype), m->name,
                  dtype_name(m->dtype));
}

static AxisSet index_axes(Eval *e, const Op *op) {
    AxisSet axes = axes_none();
    for (int d = 0; d < op->mem[0].nidx; d++) {
        const Tile *t = eval_value(e, op, op->in[op->mem[0].first + d]);
        if (!axes_union(axes, t->axes, &axes))
            eval_fail(e, op, "has more than %d axes", AXES_MAX);
    }
    return axes;
}

void eval_store(Eval *e, const Op *op) {
    e->store++;
    const Tile *v = eval_value(e, op, op_store_value(op));
    AxisSet axes = index_axes(e, op);
    check_dtype(e, op, op->mem[0].mem, v);
    if (!axes_union(axes, v->axes, &axes))
        eval_fail(e, op, "has more than %d axes", AXES_MAX);
    Access a;
    access_start(e, op, &a, &op->mem[0], axes);
    int k = walk_tile(e, op, &a.walk, v);
    int64_t *order = op->kind == OP_SCATTER ? access_order(e, &a) : NULL;
    for (int64_t p = 0; p < a.walk.count; p++, walk_next(&a.walk)) {
        if (order)
            walk_seek(&a.walk, order[p]);
        access_store(e, &a, v->cell[a.walk.at[k]], v->bad ? v->bad[a.walk.at[k]] : 0);
    }
    eval_free(e, order);
}

static Cell atomic_step(AtomicKind kind, DType dtype, Cell old, Cell x) {
    switch (kind) {
    case ATOMIC_ADD:
        return cell_binary(OP_ADD, dtype, old, x);
    case ATOMIC_MAX:
        return cell_binary(OP_MAX, dtype, old, x);
    case ATOMIC_MIN:
        return cell_binary(OP_MIN, dtype, old, x);
    case ATOMIC_AND:
        return cell_binary(OP_AND, dtype, old, x);
    case ATOMIC_OR:
        return cell_binary(OP_OR, dtype, old, x);
    case ATOMIC_XOR:
        return cell_binary(OP_XOR, dtype, old, x);
    case ATOMIC_XCHG:
    case ATOMIC_CAS: // by eval_cas
    case ATOMIC_COUNT:
        break;
    }
    return x;
}

// The value at the current point of `a`, combined over the axes that the indices lack. A sum is
// accumulated in double. Guarded axes end at their window, other padding takes part as in a
// reduction. *any tells that something took part.
static Cell atomic_value(const Op *op, const Tile *v, int64_t base, Walk *extra, uint8_t *bad,
                         bool *any) {
    AtomicKind kind = (AtomicKind)op->sub;
    AxisSet guards = op_attr_axes(op, ATTR_guard);
    bool wide = kind == ATOMIC_ADD && dtype_is_float(v->dtype);
    Cell acc = {0};
    *bad = 0;
    *any = false;
    for (int64_t q = 0; q < extra->count; q++, walk_next(extra)) {
        bool dropped = false;
        for (int i = 0; i < extra->axes.n; i++)
            dropped =
                dropped || (extra->pos[i] >= extra->left[i] && axes_has(guards, extra->axes.id[i]));
        if (dropped)
            continue;
        int64_t at = base + extra->at[0];
        *bad |= v->bad ? v->bad[at] : 0;
        if (!*any)
            acc = v->cell[at];
        else
            acc = wide ? (Cell){.f = acc.f + v->cell[at].f}
                       : atomic_step(kind, v->dtype, acc, v->cell[at]);
        *any = true;
    }
    if (wide)
        acc.f = numeric_round(v->dtype, acc.f);
    return acc;
}

// The old value; the new one is stored where the bits of the old one are those expected.
static void eval_cas(Eval *e, const Op *op) {
    const Tile *next = eval_value(e, op, op_store_value(op));
    const Tile *want = eval_value(e, op, op->in[op->mem[0].nidx]);
    AxisSet axes = index_axes(e, op);
    DType dtype = op->mem[0].mem->dtype;
    Tile *old = tile_new(e, op, dtype, axes);
    Access a;
    access_start(e, op, &a, &op->mem[0], axes);
    int n = walk_tile(e, op, &a.walk, next), w = walk_tile(e, op, &a.walk, want);
    int64_t *order = access_order(e, &a);
    for (int64_t i = 0; i < a.walk.count; i++, walk_next(&a.walk)) {
        int64_t p = order ? order[i] : i;
        if (order)
            walk_seek(&a.walk, p);
        Place place = access_place(e, &a);
        int64_t at_next = a.walk.at[n], at_want = a.walk.at[w];
        uint8_t bad = (next->bad ? next->bad[at_next] : 0) | (want->bad ? want->bad[at_want] : 0);
        uint8_t held = place == PLACE_IN && a.state->bad ? a.state->bad[a.linear] : 0;
        if (held && !(held & BAD_UNKNOWN) && !e->opts.check)
            eval_fail(e, op, "@%s at %s was never written", a.mem->name,
                      eval_point(e, a.walk.axes, a.walk.pos));
        if (held && e->opts.check) {
            check_unwritten(e, &a);
            tile_bad(e, op, old)[p] = held;
            access_store(e, &a, next->cell[at_next], held);
            continue;
        }
        if (place == PLACE_OUT) {
            if (e->opts.check)
                check_outside(e, &a, false);
            continue;
        }
        if (place != PLACE_IN || held || e->partial) {
            tile_bad(e, op, old)[p] =
                place == PLACE_POISON || place == PLACE_PADDING ? BAD_POISON : BAD_UNKNOWN;
            access_store(e, &a, next->cell[at_next], bad | BAD_UNKNOWN);
            continue;
        }
        old->cell[p] = cell_load(a.mem, a.state, a.offset);
        bool same = scalar_bits(cell_scalar(dtype, old->cell[p])) ==
                    scalar_bits(cell_scalar(dtype, want->cell[at_want]));
        access_store(e, &a, same || bad ? next->cell[at_next] : old->cell[p], bad);
    }
    eval_free(e, order);
    if (op->nres)
        eval_set(e, op->res[0], old);
    else
        tile_drop(e, old);
}

void eval_atomic(Eval *e, const Op *op) {
    if (op->sub == ATOMIC_CAS) {
        eval_cas(e, op);
        return;
    }
    const Tile *v = eval_value(e, op, op_store_value(op));
    AxisSet axes = index_axes(e, op);
    check_dtype(e, op, op->mem[0].mem, v);
    Tile *old = op->nres ? tile_new(e, op, op->res[0]->type.dtype, axes) : NULL;
    Access a;
    Walk extra;
    access_start(e, op, &a, &op->mem[0], axes);
    int k = walk_part(e, op, &a.walk, v);
    walk_start(e, op, &extra, axes_minus(v->axes, axes));
    walk_part(e, op, &extra, v);
    int64_t *order = access_order(e, &a);
    for (int64_t i = 0; i < a.walk.count; i++, walk_next(&a.walk)) {
        uint8_t bad;
        bool any;
        int64_t p = order ? order[i] : i;
        if (order)
            walk_seek(&a.walk, p);
        Cell x = atomic_value(op, v, a.walk.at[k], &extra, &bad, &any);
        if (!any)
            continue;
        Place place = access_place(e, &a);
        bool held = place == PLACE_IN && a.state->bad && a.state->bad[a.linear];
        if (place == PLACE_IN && held && !(a.state->bad[a.linear] & BAD_UNKNOWN) &&
            op->sub != ATOMIC_XCHG) {
            if (!e->opts.check)
                eval_fail(e, op, "@%s at %s was never written", a.mem->name,
                          eval_point(e, a.walk.axes, a.walk.pos));
            check_unwritten(e, &a);
            bad |= BAD_POISON;
        }
        if (old && place == PLACE_IN && !held)
            old->cell[p] = cell_load(a.mem, a.state, a.offset);
        else if (old && place != PLACE_OUT)
            tile_bad(e, op, old)[p] = place == PLACE_UNKNOWN || held ? BAD_UNKNOWN : BAD_POISON;
        if (place == PLACE_IN && !held && op->sub != ATOMIC_XCHG)
            x = atomic_step((AtomicKind)op->sub, a.mem->dtype, cell_load(a.mem, a.state, a.offset),
                            x);
        if (e->partial || (held && op->sub != ATOMIC_XCHG && !e->opts.check))
            bad |= BAD_UNKNOWN; // other iterations would have added to it
        access_store(e, &a, x, bad);
    }
    eval_free(e, order);
    if (old)
        eval_set(e, op->res[0], old);
}

void eval_temp(Eval *e, const Op *op) {
    const Mem *m = op->def_mem;
    MemState *s = &e->mem[m->id];
    eval_free(e, s->data);
    eval_free(e, s->bad);
    eval_free(e, s->writer);
    eval_free(e, s->stamp);
    eval_free(e, s->reader);
    eval_free(e, s->reader_before);
    *s = (MemState){.defined = true, .count = 1};
    for (int d = 0; d < m->rank; d++) {
        s->dims[d] = eval_int(e, op, m->dim[d]);
        if (s->dims[d] < 0 || (s->dims[d] > 0 && s->count > (INT64_C(1) << 40) / s->dims[d]))
            eval_fail(e, op, "@%s cannot have the extent %lld", m->name, (long long)s->dims[d]);
        s->count *= s->dims[d];
    }
    int64_t stride = 1;
    for (int d = m->rank - 1; d >= 0; d--) {
        s->strides[d] = stride;
        stride *= s->dims[d];
    }
    s->data = eval_calloc(e, op, (int64_t)dtype_bytes(m->dtype, (uint64_t)s->count), 1);
    if (op_attr_int(op, ATTR_zero) && !e->partial)
        return;
    s->bad = eval_calloc(e, op, s->count, 1);
    for (int64_t i = 0; i < s->count; i++)
        s->bad[i] = e->partial ? BAD_UNKNOWN : BAD_POISON;
}

// Of an axis: the index lies in its window. Of a tensor: all indices lie in it.
void eval_inside(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    if (op->nmem == 0) {
        Window w = eval_window(e, op, op->axes[0]);
        for (int64_t p = 0; p < out->count; p++)
            out->cell[p].i = p < w.end - w.begin;
        eval_set(e, op->res[0], out);
        return;
    }
    Access a;
    access_start(e, op, &a, &op->mem[0], type.axes);
    a.checked = ~0u;
    for (int64_t p = 0; p < a.walk.count; p++, walk_next(&a.walk)) {
        Place place = access_place(e, &a);
        out->cell[p].i = place == PLACE_IN || place == PLACE_PADDING;
        if (place == PLACE_POISON || place == PLACE_UNKNOWN)
            tile_bad(e, op, out)[p] = place == PLACE_POISON ? BAD_POISON : BAD_UNKNOWN;
    }
    eval_set(e, op->res[0], out);
}

void eval_memory_fact(Eval *e, const Op *op) {
    const Mem *m = op->mem[0].mem;
    const MemState *s = &e->mem[m->id];
    int64_t dim = op_attr_int(op, ATTR_dim);
    if (!s->defined)
        eval_fail(e, op, "@%s has no memory here", m->name);
    if (op->kind == OP_PRESENT) {
        eval_set_int(e, op, op->res[0], !s->absent);
        return;
    }
    if (dim < 0 || dim >= m->rank)
        eval_fail(e, op, "@%s has no dim %lld", m->name, (long long)dim);
    bool extent = op->kind == OP_EXTENT;
    eval_set_int(e, op, op->res[0], s->absent ? 0 : extent ? s->dims[dim] : s->strides[dim]);
}

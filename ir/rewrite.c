// Traversal and rewriting: walk, unlink, move, substitute, clone, count uses.
//
// Invariants: a substitution is one simultaneous step; copies have fresh results, region arguments,
// axes and memories. An unlinked op keeps its `next`, so that a walk that stands on it goes on.
#include "ir/ir_impl.h"

#include <string.h>

void ir_walk(Region *region, OpFn fn, void *user) {
    for (Op *op = region->first, *next; op; op = next) {
        next = op->next;
        if (op->is_dead)
            continue;
        fn(user, op);
        if (op->is_dead)
            continue;
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], fn, user);
    }
}

void ir_op_unlink(Op *op) {
    Region *r = op->parent;
    if (!r)
        return;
    if (op->prev)
        op->prev->next = op->next;
    else
        r->first = op->next;
    if (op->next)
        op->next->prev = op->prev;
    else
        r->last = op->prev;
    op->parent = NULL;
    op->is_dead = true;
}

void ir_op_move_before(Op *op, Op *before) {
    if (op == before)
        return;
    ir_op_unlink(op);
    op_insert(&(Builder){.before = before}, op);
}

void ir_op_move_end(Op *op, Region *region) {
    ir_op_unlink(op);
    op_insert(&(Builder){.region = region}, op);
}

void ir_op_set_in(Kernel *k, Op *op, int n, Value *const *in) {
    op->in = n ? arena_copy(kernel_arena(k), in, (size_t)n * sizeof *in) : NULL;
    op->nin = (uint16_t)n;
}

bool region_contains(const Region *outer, const Region *inner) {
    while (inner && inner != outer)
        inner = inner->owner ? inner->owner->parent : NULL;
    return inner != NULL;
}

bool op_is_in(const Op *op, const Region *region) {
    return region_contains(region, op->parent);
}

// --- maps ---

IrMap ir_map_new(Arena *scratch, Kernel *k) {
    IrMap m = {
        .kernel = k, .arena = scratch, .nvalue = k->nvalue, .naxis = k->naxis, .nmem = k->nmem};
    m.value = ARENA_ARRAY(scratch, Value *, m.nvalue);
    m.axis = ARENA_ARRAY(scratch, Axis *, m.naxis);
    m.mem = ARENA_ARRAY(scratch, Mem *, m.nmem);
    return m;
}

// Room for index `id` in a table of pointers that had `*n`.
static void *map_grow(Arena *arena, void *table, uint32_t *n, uint32_t id) {
    if (id < *n)
        return table;
    uint32_t cap = 2 * id + 8;
    void **grown = ARENA_ARRAY(arena, void *, cap);
    if (*n)
        memcpy(grown, table, *n * sizeof *grown);
    *n = cap;
    return grown;
}

void ir_map_value(IrMap *m, Value *from, Value *to) {
    m->value = map_grow(m->arena, m->value, &m->nvalue, from->id);
    m->value[from->id] = to;
}

void ir_map_axis(IrMap *m, Axis *from, Axis *to) {
    m->axis = map_grow(m->arena, m->axis, &m->naxis, from->id);
    m->axis[from->id] = to;
}

void ir_map_mem(IrMap *m, Mem *from, Mem *to) {
    m->mem = map_grow(m->arena, m->mem, &m->nmem, from->id);
    m->mem[from->id] = to;
}

Axis *ir_mapped_axis(IrMap *m, Axis *a) {
    return a && a->id < m->naxis && m->axis[a->id] ? m->axis[a->id] : a;
}

Mem *ir_mapped_mem(IrMap *m, Mem *mem) {
    return mem && mem->id < m->nmem && m->mem[mem->id] ? m->mem[mem->id] : mem;
}

Value *ir_mapped(IrMap *m, Value *v) {
    if (!v)
        return NULL;
    if (v->id < m->nvalue && m->value[v->id])
        return m->value[v->id];
    if (v->kind == VALUE_IOTA)
        return ir_mapped_axis(m, v->axis)->iota;
    if (v->kind == VALUE_CONST && m->to && m->to != m->kernel)
        return const_clone(m->to, v);
    return v;
}

static uint16_t mapped_id(IrMap *m, uint16_t id) {
    return id < m->naxis && m->axis[id] ? m->axis[id]->id : id;
}

static AxisSet mapped_axes(IrMap *m, AxisSet s) {
    AxisSet r = {0};
    for (int i = 0; i < s.n; i++)
        axes_add(&r, mapped_id(m, s.id[i]));
    return r;
}

// Axes one after another, by way of ids that no kernel has, so that a swap works.
static const Layout *mapped_layout(IrMap *m, const Layout *l) {
    if (!l)
        return NULL;
    LayoutTable *table = (m->to ? m->to : m->kernel)->module->layouts;
    enum { SPARE = 0xff00 };
    bool same = (m->to ? m->to->module : m->kernel->module) == m->kernel->module;
    for (int i = 0; same && i < l->naxes; i++)
        same = mapped_id(m, l->axis[i]) == l->axis[i];
    for (int i = 0; same && i < l->nrep; i++)
        same = mapped_id(m, l->rep[i].axis) == l->rep[i].axis;
    if (same)
        return l;
    const Layout *r = layout_intern(table, l); // the module may be another
    uint16_t from[AXES_MAX + LAYOUT_REPS_MAX];
    int n = 0;
    for (int i = 0; i < l->naxes; i++)
        from[n++] = l->axis[i];
    for (int i = 0; i < l->nrep; i++) {
        bool known = false;
        for (int j = 0; j < n; j++)
            known |= from[j] == l->rep[i].axis;
        if (!known)
            from[n++] = l->rep[i].axis;
    }
    for (int i = 0; i < n && r; i++)
        r = layout_rename(table, r, from[i], (uint16_t)(SPARE + i));
    for (int i = 0; i < n && r; i++)
        r = layout_rename(table, r, (uint16_t)(SPARE + i), mapped_id(m, from[i]));
    return r;
}

Type ir_mapped_type(IrMap *m, Type t) {
    t.axes = mapped_axes(m, t.axes);
    t.layout = mapped_layout(m, t.layout);
    return t;
}

// The index at this position of the race proof is this axis, before or after the mapping. A scalar
// may have the axis's name.
static bool index_is_axis(IrMap *m, const Op *op, int at, Axis *a) {
    if (op->nmem == 0 || at >= op->mem[0].nidx)
        return false;
    const Value *v = op->in[op->mem[0].first + at];
    return v->kind == VALUE_IOTA && (v->axis == a || v->axis == ir_mapped_axis(m, a));
}

// A name in a race proof: of an axis or of a scalar.
static Str mapped_name(IrMap *m, const Op *op, int at) {
    Str name = op_attr(op, ATTR_det)->names[at];
    Axis *a = ir_find_axis(m->kernel, name);
    if (a && (ir_mapped_axis(m, a) != a || index_is_axis(m, op, at, a)))
        return ir_mapped_axis(m, a)->name;
    Value *v = ir_find_value(m->kernel, name);
    Value *to = v ? ir_mapped(m, v) : NULL;
    if (to && to != v) {
        if (to->kind == VALUE_IOTA)
            return to->axis->name;
        if (to->name)
            return to->name;
    }
    return name;
}

// Rewrites the attributes that name axes, in place: arrays belong to one op.
static void map_attrs(IrMap *m, Op *op) {
    for (int i = 0; i < op->nattr; i++) {
        Attr *a = &op->attr[i];
        if (attr_type(a->id) == ATTR_TYPE_AXES)
            for (int j = 0; j < a->n; j++)
                a->axes[j] = ir_mapped_axis(m, a->axes[j]);
        else if (attr_type(a->id) == ATTR_TYPE_NAMES)
            for (int j = 0; j < a->n; j++)
                a->names[j] = mapped_name(m, op, j);
    }
}

static void map_memrefs(IrMap *m, Op *op) {
    for (int i = 0; i < op->nmem; i++) {
        MemRef *r = &op->mem[i];
        AxisSet own = r->mem->axes;
        r->mem = ir_mapped_mem(m, r->mem);
        // The buffer's axis is named as the buffer names it.
        for (int j = 0; j < r->nrename; j++) {
            if (!axes_has(r->mem->axes, r->rename[j].from) || !axes_equal(own, r->mem->axes))
                r->rename[j].from = mapped_id(m, r->rename[j].from);
            r->rename[j].to = mapped_id(m, r->rename[j].to);
        }
    }
}

// The op's own fields, results and region arguments left out.
static void map_op(IrMap *m, Op *op) {
    for (int i = 0; i < op->nin; i++)
        op->in[i] = ir_mapped(m, op->in[i]);
    if (op->kind != OP_AXIS)
        for (int i = 0; i < op->naxes; i++)
            op->axes[i] = ir_mapped_axis(m, op->axes[i]);
    map_memrefs(m, op);
    for (int i = 0; i < op->nbinders; i++)
        op->binder[i].axis = ir_mapped_axis(m, op->binder[i].axis);
    map_attrs(m, op);
}

void ir_refresh_definition(Op *op) {
    if (op->kind == OP_AXIS) {
        Axis *a = op->axes[0];
        a->lo = op->nin ? op->in[0] : NULL;
        a->hi = op->nin ? op->in[1] : NULL;
    }
    if (op->kind == OP_TEMP)
        for (int i = 0; i < op->def_mem->rank; i++)
            op->def_mem->dim[i] = op->in[i];
}

// What an op declares follows its operands.
static void map_definition(IrMap *m, Op *op) {
    if (op->kind == OP_AXIS) {
        Axis *a = op->axes[0];
        a->of = ir_mapped_axis(m, a->of);
        a->like = ir_mapped_axis(m, a->like);
    }
    ir_refresh_definition(op);
    Mem *mem = op->def_mem;
    if (!mem)
        return;
    mem->axes = mapped_axes(m, mem->axes);
    mem->layout = mapped_layout(m, mem->layout);
    for (int i = 0; i < mem->nbufs; i++)
        mem->bufs[i] = ir_mapped_mem(m, mem->bufs[i]);
}

// Renames of a reference name axes of the buffer: those of a buffer that the region defines change
// with it.
void ir_substitute(Region *region, IrMap *m) {
    for (int i = 0; i < region->narg; i++)
        region->arg[i]->type = ir_mapped_type(m, region->arg[i]->type);
    for (Op *op = region->first; op; op = op->next) {
        map_op(m, op);
        map_definition(m, op);
        for (int i = 0; i < op->nres; i++)
            op->res[i]->type = ir_mapped_type(m, op->res[i]->type);
        for (int i = 0; i < op->nregion; i++)
            ir_substitute(op->region[i], m);
    }
}

// --- copies ---

static Axis *clone_axis(Kernel *to, IrMap *m, Axis *a) {
    Axis *copy = axis_new(to, a->name);
    copy->of = a->of;
    copy->like = a->like;
    copy->size = a->size;
    ir_map_axis(m, a, copy);
    return copy;
}

static Mem *clone_mem(Kernel *to, IrMap *m, Mem *mem) {
    Mem *copy = mem_new(to, mem->kind, mem->name, mem->dtype);
    uint16_t id = copy->id;
    Str name = copy->name;
    *copy = *mem;
    copy->id = id;
    copy->name = name;
    if (mem->nbufs)
        copy->bufs = arena_copy(kernel_arena(to), mem->bufs, mem->nbufs * sizeof *mem->bufs);
    ir_map_mem(m, mem, copy);
    return copy;
}

static Value *clone_value(Kernel *to, IrMap *m, Value *v) {
    Value *copy = value_named(to, v->kind, ir_mapped_type(m, v->type), v->name);
    ir_map_value(m, v, copy);
    return copy;
}

static void *copy_array(Arena *arena, const void *data, size_t n, size_t size) {
    return n ? arena_copy(arena, data, n * size) : NULL;
}

static void clone_attrs(Arena *arena, Op *copy) {
    for (int i = 0; i < copy->nattr; i++) {
        Attr *a = &copy->attr[i];
        if (a->ints)
            a->ints = copy_array(arena, a->ints, a->n, sizeof *a->ints);
        if (a->names)
            a->names = copy_array(arena, a->names, a->n, sizeof *a->names);
        if (a->axes)
            a->axes = copy_array(arena, a->axes, a->n, sizeof *a->axes);
    }
}

static Region *clone_region(Kernel *to, IrMap *m, Op *owner, const Region *from) {
    Region *r = region_new(to, owner);
    r->narg = from->narg;
    r->arg = ARENA_ARRAY(kernel_arena(to), Value *, r->narg);
    for (int i = 0; i < r->narg; i++) {
        r->arg[i] = clone_value(to, m, from->arg[i]);
        r->arg[i]->region = r;
    }
    Builder b = ir_builder_at_end(to, r);
    for (const Op *op = from->first; op; op = op->next)
        ir_clone(&b, op, m);
    return r;
}

Op *ir_clone(Builder *b, const Op *op, IrMap *m) {
    Kernel *to = b->kernel;
    Arena *arena = kernel_arena(to);
    Op *copy = arena_copy(arena, op, sizeof *op);
    copy->in = copy_array(arena, op->in, op->nin, sizeof *op->in);
    copy->axes = copy_array(arena, op->axes, op->naxes, sizeof *op->axes);
    copy->mem = copy_array(arena, op->mem, op->nmem, sizeof *op->mem);
    copy->binder = copy_array(arena, op->binder, op->nbinders, sizeof *op->binder);
    copy->attr = copy_array(arena, op->attr, op->nattr, sizeof *op->attr);
    clone_attrs(arena, copy);
    if (op->kind == OP_AXIS)
        copy->axes[0] = clone_axis(to, m, op->axes[0]);
    if (op->def_mem) {
        copy->def_mem = clone_mem(to, m, op->def_mem);
        copy->def_mem->def = copy;
    }
    map_op(m, copy);
    map_definition(m, copy);
    copy->region = ARENA_ARRAY(arena, Region *, op->nregion);
    for (int i = 0; i < op->nregion; i++)
        copy->region[i] = clone_region(to, m, copy, op->region[i]);
    for (int i = 0; i < op->nbinders; i++)
        copy->binder[i].var = ir_mapped(m, op->binder[i].var);
    copy->res = ARENA_ARRAY(arena, Value *, op->nres);
    for (int i = 0; i < op->nres; i++) {
        copy->res[i] = clone_value(to, m, op->res[i]);
        copy->res[i]->def = copy;
    }
    op_insert(b, copy);
    return copy;
}

void ir_clone_region_ops(Builder *b, const Region *from, IrMap *m) {
    const Op *end = region_yield(from);
    for (const Op *op = from->first, *next; op && op != end; op = next) {
        next = op->next; // the copy may go into the same region
        ir_clone(b, op, m);
    }
}

static void clone_param(Kernel *to, IrMap *m, const Param *p) {
    Param *copy = NULL;
    switch (p->kind) {
    case PARAM_DIM: {
        bool fixed = value_is_const(p->value);
        Axis *a = fixed ? ir_param_dim_fixed(to, p->axis->name, p->value->u.i)
                        : ir_param_dim(to, p->axis->name);
        a->size = p->axis->size;
        ir_map_axis(m, p->axis, a);
        if (!fixed)
            ir_map_value(m, p->value, a->extent);
        break;
    }
    case PARAM_SCALAR:
        ir_map_value(m, p->value, ir_param_scalar(to, p->value->name, p->value->type.dtype));
        copy = &to->param[to->nparam - 1];
        copy->has_default = p->has_default;
        copy->dflt = p->dflt ? const_clone(to, p->dflt) : NULL;
        break;
    case PARAM_TENSOR: {
        Mem *mem = clone_mem(to, m, p->mem);
        for (int i = 0; i < mem->rank; i++)
            mem->dim[i] = ir_mapped(m, mem->dim[i]);
        copy = param_new(to, PARAM_TENSOR, p->name);
        copy->mem = mem;
        break;
    }
    }
    to->param[to->nparam - 1].name = intern_cstr(to->module->interner, p->name);
}

Kernel *ir_clone_kernel(Module *to, const Kernel *k, const char *name) {
    Kernel *copy = ir_kernel_new(to, name, k->span);
    if (k->variant_of)
        copy->variant_of =
            to == k->module ? k->variant_of : ir_find_kernel(to, k->variant_of->name);
    layout_names_copy(to, k->module);
    Arena *scratch = arena_new("clone");
    IrMap m = ir_map_new(scratch, (Kernel *)k);
    m.to = copy;
    // Dims first: tensors may name dims that are declared after them.
    for (int i = 0; i < k->nparam; i++)
        clone_param(copy, &m, &k->param[i]);
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR)
            for (int d = 0; d < k->param[i].mem->rank; d++)
                copy->param[i].mem->dim[d] = ir_mapped(&m, k->param[i].mem->dim[d]);
    Builder b = ir_builder_at_end(copy, copy->body);
    for (const Op *op = k->body->first; op; op = op->next)
        ir_clone(&b, op, &m);
    arena_free(scratch);
    return copy;
}

// --- uses ---

static void count_region(const Region *r, uint32_t *uses) {
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nin; i++)
            uses[op->in[i]->id]++;
        for (int i = 0; i < op->nregion; i++)
            count_region(op->region[i], uses);
    }
}

uint32_t *ir_count_uses(Arena *scratch, const Kernel *k) {
    uint32_t *uses = ARENA_ARRAY(scratch, uint32_t, k->nvalue);
    count_region(k->body, uses);
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR)
            for (int d = 0; d < k->param[i].mem->rank; d++)
                uses[k->param[i].mem->dim[d]->id]++;
    return uses;
}

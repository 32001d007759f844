// The verifier: scopes, regions and control flow; verify_op.c has the rules of single ops.
//
// Input: a module, well-formed or not. Output: true, or the first error as "kernel k: op: rule". It
// never follows what it has not checked: a module that the parser accepts cannot make it crash.
#include "ir/verify_impl.h"

#include <string.h>

enum { DEPTH_MAX = 400 };

bool verify_fail(Verify *v, const char *format, ...) {
    if (v->error)
        return false;
    va_list args;
    va_start(args, format);
    const char *rule = arena_vprintf(v->scratch, format, args);
    va_end(args);
    if (v->op)
        v->error = arena_printf(v->scratch, "kernel %s: `%s`: %s", v->kernel->name,
                                op_text(v->scratch, v->kernel, v->op), rule);
    else
        v->error = arena_printf(v->scratch, "kernel %s: %s", v->kernel->name, rule);
    return false;
}

// --- scopes ---

static bool define_value(Verify *v, const Value *value) {
    if (!value || value->id >= v->kernel->nvalue)
        return verify_fail(v, "a result is not a value of this kernel");
    if (v->defined[value->id])
        return verify_fail(v, "%%%s is defined twice", value->name ? value->name : "?");
    v->defined[value->id] = true;
    vec_push(v->scratch, &v->values, value->id);
    return true;
}

static bool define_axis(Verify *v, const Axis *a) {
    if (v->declared[a->id])
        return verify_fail(v, "axis %s is declared twice", a->name);
    v->declared[a->id] = true;
    vec_push(v->scratch, &v->axes, a->id);
    return true;
}

static bool define_mem(Verify *v, const Mem *m) {
    if (m->id >= v->kernel->nmem || v->kernel->mem[m->id] != m)
        return verify_fail(v, "@%s is not a memory of this kernel", m->name);
    if (v->mem_declared[m->id])
        return verify_fail(v, "@%s is defined twice", m->name);
    v->mem_declared[m->id] = true;
    vec_push(v->scratch, &v->mems, m->id);
    return true;
}

typedef struct Mark {
    uint32_t values, axes, mems;
} Mark;

static Mark scope_enter(const Verify *v) {
    return (Mark){v->values.len, v->axes.len, v->mems.len};
}

static void scope_leave(Verify *v, Mark m) {
    while (v->values.len > m.values)
        v->defined[vec_pop(&v->values)] = false;
    while (v->axes.len > m.axes)
        v->declared[vec_pop(&v->axes)] = false;
    while (v->mems.len > m.mems)
        v->mem_declared[vec_pop(&v->mems)] = false;
}

bool verify_axis_usable(const Verify *v, const Axis *axis) {
    for (int steps = 0; axis && steps < 100; axis = axis->like, steps++) {
        if (axis->id >= v->kernel->naxis || !v->declared[axis->id])
            return false;
        if (axis->is_dim || axis->lo || v->bound[axis->id])
            return true;
    }
    return false;
}

bool verify_type(Verify *v, Type t) {
    if (t.dtype == DT_NONE || t.dtype >= DT_COUNT_)
        return verify_fail(v, "a type is missing");
    for (int i = 0; i < t.axes.n; i++) {
        if (t.axes.id[i] >= v->kernel->naxis)
            return verify_fail(v, "a type names an axis of another kernel");
        const Axis *a = v->kernel->axis[t.axes.id[i]];
        if (!v->declared[a->id])
            return verify_fail(v, "axis %s is not declared here", a->name);
        if (!verify_axis_usable(v, a))
            return verify_fail(v, "axis %s is not bound here", a->name);
        if (v->module->stage >= STAGE_SCHEDULED && v->inside && a->size == 0)
            return verify_fail(v, "axis %s has no size", a->name);
    }
    const Layout *l = t.layout;
    for (int i = 0; l && i < l->naxes; i++)
        if (!axes_has(t.axes, l->axis[i]))
            return verify_fail(v, "the layout has an axis that the type lacks");
    if (v->module->stage == STAGE_PLACED && v->inside && t.axes.n && !l)
        return verify_fail(v, "a tile has no layout");
    return true;
}

// --- regions ---

static bool verify_region(Verify *v, const Region *r, const Op *owner);

// A value that goes where `want` is expected: the same type; fewer axes broadcast.
static bool passes_as(const Verify *v, const Value *x, Type want, const char **why) {
    *why = "another type is carried";
    if (x->type.dtype != want.dtype || x->type.is_async != want.is_async)
        return false;
    if (!axes_subset(x->type.axes, want.axes))
        return false;
    *why = "another layout is carried";
    bool same_axes = axes_equal(x->type.axes, want.axes);
    return v->module->stage != STAGE_PLACED || !same_axes || x->kind == VALUE_CONST ||
           x->kind == VALUE_IOTA || x->type.layout == want.layout;
}

static bool verify_yield(Verify *v, const Region *r, const Op *owner) {
    const Op *yield = region_yield(r);
    int want = owner->nres;
    if (owner->kind == OP_PARALLEL || owner->kind == OP_LAUNCH)
        want = 0;
    v->op = owner;
    if (!yield) {
        if (owner->kind == OP_WHILE)
            return verify_fail(v, "nothing stops the loop");
        return want == 0 || verify_fail(v, "a region does not end in `yield`");
    }
    v->op = yield;
    if (yield->nin - yield->has_stop != want)
        return verify_fail(v, "%d values are expected", want);
    bool loop = owner->kind == OP_FOR || owner->kind == OP_WHILE;
    if (yield->has_stop && !loop)
        return verify_fail(v, "`stop` outside of a loop");
    if (owner->kind == OP_WHILE && !yield->has_stop)
        return verify_fail(v, "nothing stops the loop");
    if (yield->has_stop) {
        const Value *stop = yield->in[yield->nin - 1];
        if (stop->type.dtype != DT_BOOL || stop->type.axes.n)
            return verify_fail(v, "the stop condition is not a scalar bool");
    }
    for (int i = 0; i < want; i++) {
        const char *why;
        if (!passes_as(v, yield->in[i], owner->res[i]->type, &why))
            return verify_fail(v, "value %d: %s", i, why);
    }
    return true;
}

static bool verify_carried(Verify *v, const Op *op) {
    bool loop = op->kind == OP_FOR || op->kind == OP_WHILE;
    if (loop && op->ncarry != op->nres)
        return verify_fail(v, "%d carried values and %d results", op->ncarry, op->nres);
    if (!loop && (op->ncarry || (op->nres && op->kind != OP_WITH)))
        return verify_fail(v, op->ncarry ? "only a loop carries values" : "the op has no result");
    for (int i = 0; i < op->ncarry; i++) {
        const Value *arg = op_carry_arg(op, i);
        const char *why;
        if (!type_equal(arg->type, op->res[i]->type))
            return verify_fail(v, "carried value %d and its result have different types", i);
        if (!passes_as(v, op_carry_init(op, i), arg->type, &why))
            return verify_fail(v, "init %d: %s", i, why);
    }
    return true;
}

static int scalar_binders(const Op *op) {
    int n = 0;
    for (int i = 0; i < op->nbinders; i++)
        n += op->binder[i].axis == NULL;
    return n;
}

// The binders' operands lie in front of the inits, in order.
static bool verify_binders(Verify *v, const Op *op) {
    int at = 0;
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        int n = b->has_step ? 3 : 2;
        if (b->first != at || at + n > op->nin - op->ncarry)
            return verify_fail(v, "the operands of a binder are out of place");
        at += n;
        for (int j = 0; j < n; j++) {
            Type t = op->in[b->first + j]->type;
            if (t.axes.n || !dtype_is_integer(t.dtype))
                return verify_fail(v, "a bound is not a scalar integer");
            if (t.dtype != op->in[b->first]->type.dtype)
                return verify_fail(v, "bounds have different types");
        }
        if (!b->axis)
            continue;
        const Axis *a = b->axis;
        if (a->id >= v->kernel->naxis || !v->declared[a->id])
            return verify_fail(v, "axis %s is not declared here", a->name);
        if (a->is_dim || a->lo || a->like)
            return verify_fail(v, "axis %s has a window of its own", a->name);
        if (v->bound[a->id])
            return verify_fail(v, "axis %s is bound around it", a->name);
        if (v->module->stage >= STAGE_SCHEDULED && a->size == 0)
            return verify_fail(v, "axis %s has no size", a->name);
        for (int j = 0; j < i; j++)
            if (op->binder[j].axis == a)
                return verify_fail(v, "axis %s is bound twice", a->name);
    }
    if (op->kind != OP_LAUNCH && at != op->nin - op->ncarry)
        return verify_fail(v, "operands that nothing takes");
    return true;
}

// Everything that a launch's region uses from outside stands in its lists.
typedef struct Captures {
    Verify *v;
    const Op *launch;
    const bool *outer; // values defined in front of the launch
} Captures;

static bool captures_value(const Captures *c, const Value *x) {
    if (!x || x->kind == VALUE_CONST || x->kind == VALUE_IOTA || !c->outer[x->id])
        return true;
    for (int i = 2; i < c->launch->nin; i++)
        if (c->launch->in[i] == x)
            return true;
    return verify_fail(c->v, "%%%s is used inside and is not among `args`", x->name);
}

static bool captures_region(const Captures *c, const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nin; i++)
            if (!captures_value(c, op->in[i]))
                return false;
        for (int i = 0; i < op->nmem; i++) {
            const Mem *m = op->mem[i].mem;
            bool listed = m->kind == MEM_BUF || m->kind == MEM_CHAN;
            for (int j = 0; j < c->launch->nmem && !listed; j++)
                listed = c->launch->mem[j].mem == m;
            if (!listed)
                return verify_fail(c->v, "@%s is used inside and is not among `args`", m->name);
        }
        for (int i = 0; i < op->nregion; i++)
            if (!captures_region(c, op->region[i]))
                return false;
    }
    return true;
}

static bool verify_captures(Verify *v, const Op *op) {
    bool *outer = ARENA_ARRAY(v->scratch, bool, v->kernel->nvalue);
    memcpy(outer, v->defined, v->kernel->nvalue * sizeof *outer);
    Captures c = {v, op, outer};
    return captures_region(&c, op->region[0]);
}

static bool regions_fit(Verify *v, const Op *op) {
    OpForm form = op_info(op->kind)->form;
    int want = form == FORM_IF ? 2 : form == FORM_BINDERS || form == FORM_FOLD ? 1 : 0;
    if (op->nregion != want)
        return verify_fail(v, "%d regions are expected", want);
    for (int i = 0; i < op->nregion; i++) {
        const Region *r = op->region[i];
        int args = form == FORM_IF     ? 0
                   : form == FORM_FOLD ? 2 * op->nres
                                       : scalar_binders(op) + op->ncarry;
        if (!r || r->owner != op || r->narg != args)
            return verify_fail(v, "a region has the wrong arguments");
    }
    return true;
}

// Roles share the program's warps out, in order.
static bool verify_roles(Verify *v, const Op *op) {
    const Op *around = op->parent->owner;
    if (op->kind == OP_ROLE)
        return (around && around->kind == OP_ROLES && op_attr_int(op, ATTR_warps) > 0) ||
               verify_fail(v, "a role stands in `roles` and has `warps`");
    int64_t warps = 0;
    for (const Op *role = op->region[0]->first; role; role = role->next) {
        if (role->kind != OP_ROLE)
            return verify_fail(v, "only roles stand in `roles`");
        warps += op_attr_int(role, ATTR_warps);
    }
    bool fits = !around || around->kind != OP_LAUNCH || op_attr_int(around, ATTR_warps) == warps;
    if (warps == 0 || !fits)
        return verify_fail(v, "the roles do not share out the warps of the launch");
    return true;
}

// A function of elements: elementwise ops on its arguments and constants, so that it can be put
// into any place.
static bool verify_function(Verify *v, const Op *op) {
    const Region *f = op->region[0];
    for (int i = 0; i < f->narg; i++) {
        Type t = f->arg[i]->type;
        if (t.axes.n || t.is_async || t.dtype != op->res[i % op->nres]->type.dtype)
            return verify_fail(v, "argument %d is not an element of its value", i);
    }
    for (const Op *e = f->first; e; e = e->next) {
        v->op = e;
        if (e->kind != OP_YIELD && (!op_has(e->kind, TRAIT_ELEMENTWISE) || e->nres != 1))
            return verify_fail(v, "a function of elements has elementwise ops only");
        for (int i = 0; i < e->nin; i++) {
            const Value *x = e->in[i];
            bool own = (x->kind == VALUE_ARG && x->region == f) ||
                       (x->kind == VALUE_OP && x->def->parent == f) || x->kind == VALUE_CONST;
            if (!own)
                return verify_fail(v, "a function of elements uses a value from outside");
        }
    }
    v->op = op;
    return true;
}

static bool verify_regions(Verify *v, const Op *op) {
    if (!regions_fit(v, op))
        return false;
    if (op_has(op->kind, TRAIT_FUNCTION) && !verify_function(v, op))
        return false;
    bool grid = op->kind == OP_PARALLEL || op->kind == OP_LAUNCH;
    if (grid && v->inside && v->module->stage >= STAGE_NESTS)
        return verify_fail(v, "a grid inside of a grid");
    if (op->nbinders && !verify_binders(v, op))
        return false;
    if (op->nbinders == 0 && op->nin != op->ncarry && op_info(op->kind)->form == FORM_BINDERS)
        return verify_fail(v, "operands that nothing takes");
    if (op_info(op->kind)->form == FORM_BINDERS && !verify_carried(v, op))
        return false;
    if (op->kind == OP_LAUNCH && (op->nbinders != 1 || op->binder[0].axis || op->nres))
        return verify_fail(v, "a launch has one scalar binder and no result");
    if (op->kind == OP_LAUNCH && op->region[0]->first && !verify_captures(v, op))
        return false;
    if ((op->kind == OP_ROLES || op->kind == OP_ROLE) && !verify_roles(v, op))
        return false;
    const Attr *lag = op_attr(op, ATTR_lag);
    for (int i = 0; i < op->nbinders; i++)
        if (op->binder[i].axis)
            v->bound[op->binder[i].axis->id]++;
    for (int i = 0; lag && i < lag->n; i++)
        v->bound[lag->axes[i]->id]++;
    bool inside = v->inside;
    v->inside |= grid;
    for (int i = 0; i < op->nregion; i++)
        if (!verify_region(v, op->region[i], op))
            return false;
    v->inside = inside;
    for (int i = 0; i < op->nbinders; i++)
        if (op->binder[i].axis)
            v->bound[op->binder[i].axis->id]--;
    for (int i = 0; lag && i < lag->n; i++)
        v->bound[lag->axes[i]->id]--;
    v->op = op;
    return true;
}

static bool verify_definitions(Verify *v, const Op *op) {
    if (op->kind == OP_AXIS && !define_axis(v, op->axes[0]))
        return false;
    if (op->def_mem && !define_mem(v, op->def_mem))
        return false;
    for (int i = 0; i < op->nres; i++) {
        if (!define_value(v, op->res[i]))
            return false;
        if (op->res[i]->kind != VALUE_OP || op->res[i]->def != op)
            return verify_fail(v, "a result does not know its op");
        if (!verify_type(v, op->res[i]->type))
            return false;
    }
    return true;
}

static bool verify_region(Verify *v, const Region *r, const Op *owner) {
    if (++v->depth > DEPTH_MAX)
        return verify_fail(v, "regions nest too deep");
    Mark mark = scope_enter(v);
    for (int i = 0; i < r->narg; i++) {
        v->op = owner;
        if (!define_value(v, r->arg[i]) || !verify_type(v, r->arg[i]->type))
            return false;
    }
    for (const Op *op = r->first; op; op = op->next) {
        v->op = op;
        if (op->kind >= OP_COUNT || op->parent != r || (op->next ? op->next->prev : r->last) != op)
            return verify_fail(v, "the op is not linked into its region");
        if (op->kind == OP_YIELD && (op->next || !owner))
            return verify_fail(v, "`yield` is not at the end of a region");
        if (!verify_op(v) || !verify_regions(v, op) || !verify_definitions(v, op))
            return false;
    }
    bool yields = owner && (r->first || owner->nres || owner->kind == OP_WHILE);
    if (yields && !verify_yield(v, r, owner))
        return false;
    scope_leave(v, mark);
    v->depth--;
    return true;
}

// --- kernels ---

static bool verify_param(Verify *v, const Param *p) {
    switch (p->kind) {
    case PARAM_DIM:
        if (!p->axis || !p->axis->is_dim || !p->value)
            return verify_fail(v, "a dim without an axis");
        return define_axis(v, p->axis) &&
               (p->value->kind == VALUE_CONST || define_value(v, p->value));
    case PARAM_SCALAR:
        return define_value(v, p->value);
    case PARAM_TENSOR:
        if (!p->mem || p->mem->kind != MEM_PARAM || p->mem->rank > RANK_MAX ||
            !define_mem(v, p->mem))
            return verify_fail(v, "a tensor parameter is malformed");
        for (int i = 0; i < p->mem->rank; i++) {
            const Value *d = p->mem->dim[i];
            bool known =
                d && (d->kind == VALUE_CONST || (d->kind == VALUE_PARAM && v->defined[d->id]));
            if (!known || d->type.axes.n || !dtype_is_integer(d->type.dtype))
                return verify_fail(v, "dim %d of @%s is not a scalar of the kernel", i,
                                   p->mem->name);
        }
        return p->mem->inner < p->mem->rank ||
               verify_fail(v, "@%s: `inner` is not one of its dims", p->mem->name);
    }
    return verify_fail(v, "a parameter is malformed");
}

static bool verify_kernel(Verify *v) {
    const Kernel *k = v->kernel;
    v->defined = ARENA_ARRAY(v->scratch, bool, k->nvalue);
    v->declared = ARENA_ARRAY(v->scratch, bool, k->naxis);
    v->mem_declared = ARENA_ARRAY(v->scratch, bool, k->nmem);
    v->bound = ARENA_ARRAY(v->scratch, uint16_t, k->naxis);
    for (int i = 0; i < k->nparam; i++)
        if (!verify_param(v, &k->param[i]))
            return false;
    return verify_region(v, k->body, NULL);
}

// *at: where the error stands in the text of the module, if it has one.
static bool verify_module(Arena *scratch, const Module *m, const char **error, uint32_t *at) {
    *error = NULL;
    for (int i = 0; i < m->nkernel; i++) {
        Verify v = {.scratch = scratch, .module = m, .kernel = m->kernel[i]};
        if (!verify_kernel(&v)) {
            *error = v.error;
            *at = v.op ? v.op->text_at : v.kernel->text_at;
            return false;
        }
    }
    return true;
}

bool ir_verify(Arena *scratch, const Module *m, const char **error) {
    uint32_t at;
    return verify_module(scratch, m, error, &at);
}

bool ir_verify_text(Arena *scratch, const Module *m, const char *text, const char **error) {
    uint32_t at;
    if (verify_module(scratch, m, error, &at))
        return true;
    *error = arena_printf(scratch, "%s: %s", ir_text_place(scratch, text, at), *error);
    return false;
}

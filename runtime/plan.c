// Reading a launch plan: kernels of the text to instances with their parameters and variants.
#include "runtime/plan.h"

#include <ctype.h>
#include <string.h>

#include "ir/exact.h"
#include "lang/base/intern.h"

// --- names ---

// "gelu.bf16" of "gelu.bf16.v0".
static const char *instance_name(Arena *arena, const char *name) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot[1] != 'v' || !dot[2])
        return name;
    for (const char *c = dot + 2; *c; c++)
        if (!isdigit((unsigned char)*c))
            return name;
    return arena_strndup(arena, name, (size_t)(dot - name));
}

static const char *family_name(Arena *arena, const char *name) {
    const char *dot = strchr(name, '.');
    return dot ? arena_strndup(arena, name, (size_t)(dot - name)) : name;
}

// --- parameters ---

static FuseRtMode mode_of(MemMode mode) {
    return mode == MODE_IN ? FUSE_RT_IN : mode == MODE_OUT ? FUSE_RT_OUT : FUSE_RT_INOUT;
}

static int find_dim(const Instance *k, const Value *v) {
    for (int i = 0; i < k->ndim; i++)
        if (k->dim[i].value == v && k->dim[i].fixed < 0)
            return i;
    return -1;
}

// The name of a fixed dim, where only one has that extent.
static const char *fixed_name(const Instance *k, int64_t extent) {
    const char *name = NULL;
    for (int i = 0; i < k->ndim; i++) {
        if (k->dim[i].fixed != extent)
            continue;
        if (name)
            return NULL;
        name = k->dim[i].name;
    }
    return name;
}

static void read_tensor(Arena *arena, const Instance *k, const Mem *m, PlanParam *out) {
    FuseRtDim *dims = ARENA_ARRAY(arena, FuseRtDim, m->rank);
    out->mem = m;
    out->dim = ARENA_ARRAY(arena, DimRef, m->rank);
    for (int d = 0; d < m->rank; d++) {
        const Value *v = m->dim[d];
        bool fixed = value_is_const(v);
        int at = find_dim(k, v);
        out->dim[d] = (DimRef){(int16_t)at, fixed ? v->u.i : -1, v};
        const char *name = at >= 0 ? k->dim[at].name : fixed ? fixed_name(k, v->u.i) : NULL;
        dims[d] = (FuseRtDim){name, fixed ? v->u.i : -1};
    }
    out->shown.kind = FUSE_RT_PARAM_TENSOR;
    out->shown.mode = mode_of(m->mode);
    out->shown.optional = m->opt;
    out->shown.rank = m->rank;
    out->shown.dims = dims;
    out->dtype = m->dtype;
}

static void read_scalar(const Param *p, PlanParam *out) {
    out->value = p->value;
    out->shown.kind = FUSE_RT_PARAM_SCALAR;
    out->dtype = p->value->type.dtype;
    out->shown.has_default = p->has_default && p->dflt;
    if (!out->shown.has_default)
        return;
    if (dtype_is_float(out->dtype))
        out->dflt.f = p->dflt->u.f;
    else
        out->dflt.i = p->dflt->u.i;
}

static void read_params(Arena *arena, Instance *k) {
    const Kernel *from = k->kernel;
    k->dim = ARENA_ARRAY(arena, PlanDim, from->nparam);
    k->param = ARENA_ARRAY(arena, PlanParam, from->nparam);
    for (int i = 0; i < from->nparam; i++) { // dims first: tensors refer to them
        const Param *p = &from->param[i];
        if (p->kind == PARAM_DIM)
            k->dim[k->ndim++] =
                (PlanDim){p->axis->name, value_is_const(p->value) ? p->value->u.i : -1, p->value};
    }
    for (int i = 0; i < from->nparam; i++) {
        const Param *p = &from->param[i];
        if (p->kind == PARAM_DIM)
            continue;
        PlanParam *out = &k->param[k->nparam++];
        out->shown.name = p->name;
        if (p->kind == PARAM_TENSOR)
            read_tensor(arena, k, p->mem, out);
        else
            read_scalar(p, out);
        out->shown.dtype = dtype_name(out->dtype);
        out->bits = dtype_bits(out->dtype);
        out->dlpack = (DLDataType){dtype_dlpack_code(out->dtype), dtype_dlpack_bits(out->dtype), 1};
    }
}

// --- equations ---

// left == right, and every such condition in a conjunction.
static void read_condition(Instance *k, const Value *cond, const char *text, int most) {
    const Op *op = cond->kind == VALUE_OP ? cond->def : NULL;
    if (!op || k->nequation == most)
        return;
    if (op->kind == OP_CMP && op->sub == CMP_EQ) {
        k->equation[k->nequation++] = (Equation){op->in[0], op->in[1], text};
    } else if (op->kind == OP_AND) {
        read_condition(k, op->in[0], text, most);
        read_condition(k, op->in[1], text, most);
    }
}

static void read_equations(Arena *arena, Instance *k) {
    enum { MOST = 256 };
    k->equation = ARENA_ARRAY(arena, Equation, MOST);
    k->condition = ARENA_ARRAY(arena, Condition, MOST);
    for (const Op *op = k->kernel->body->first; op; op = op->next) {
        if (op->kind != OP_REQUIRE)
            continue;
        const char *text = op_attr_str(op, ATTR_msg);
        read_condition(k, op->in[0], text ? text : "?", MOST);
        if (k->ncondition < MOST && value_may_fault(op->in[0]))
            k->condition[k->ncondition++] = (Condition){op->in[0], text ? text : "?"};
    }
}

// --- instances ---

static bool same_params(const Instance *k, const Kernel *v) {
    int at = 0, dim = 0;
    for (int i = 0; i < v->nparam; i++) {
        const Param *p = &v->param[i];
        if (p->kind == PARAM_DIM) {
            if (dim == k->ndim || strcmp(p->axis->name, k->dim[dim++].name) != 0)
                return false;
            continue;
        }
        if (at == k->nparam)
            return false;
        const PlanParam *q = &k->param[at++];
        bool tensor = p->kind == PARAM_TENSOR;
        if (tensor != (q->mem != NULL) || strcmp(p->name, q->shown.name) != 0)
            return false;
        if (tensor && (p->mem->dtype != q->dtype || p->mem->rank != q->mem->rank))
            return false;
        if (!tensor && p->value->type.dtype != q->dtype)
            return false;
    }
    return at == k->nparam && dim == k->ndim;
}

static bool read_instance(Arena *arena, const Module *m, int first, int n, PlanForm form,
                          Instance *out, const char **error) {
    out->kernel = m->kernel[first + n - 1];
    out->name = instance_name(arena, out->kernel->name);
    out->family = family_name(arena, out->name);
    read_params(arena, out);
    read_equations(arena, out);
    out->nvariant = n;
    out->variant = ARENA_ARRAY(arena, Program, (size_t)n);
    out->max_slots = 1;
    for (int i = 0; i < n; i++) {
        const Kernel *v = m->kernel[first + i];
        if (!same_params(out, v)) {
            *error = arena_printf(arena, "the parameters of `%s` are not those of `%s`", v->name,
                                  out->kernel->name);
            return false;
        }
        ProgramInit init = {arena, out, v, form};
        Program *p = &out->variant[i];
        if (!plan_program(&init, p, error))
            return false;
        uint32_t tensors = (uint32_t)out->nparam + p->ntemp;
        out->rehearse |= p->ntemp > 0 || p->several;
        if (p->nslot > out->max_slots)
            out->max_slots = p->nslot;
        if (tensors > out->max_tensors)
            out->max_tensors = tensors;
        if (p->launch_words > out->max_launch_words)
            out->max_launch_words = p->launch_words;
    }
    return true;
}

bool plan_read(Arena *arena, const char *text, size_t len, PlanForm form, Plan *out,
               const char **error) {
    *out = (Plan){0};
    Module *m = ir_parse(arena, interner_new(arena), text, len, error);
    if (!m)
        return false;
    if (form == PLAN_LAUNCHES && m->stage != STAGE_PLACED) {
        *error = arena_printf(arena, "a plan of stage %s, not placed", stage_name(m->stage));
        return false;
    }
    out->instance = ARENA_ARRAY(arena, Instance, m->nkernel);
    for (int first = 0; first < m->nkernel;) {
        const char *name = instance_name(arena, m->kernel[first]->name);
        int n = 1;
        while (first + n < m->nkernel &&
               strcmp(instance_name(arena, m->kernel[first + n]->name), name) == 0)
            n++;
        if (!read_instance(arena, m, first, n, form, &out->instance[out->n], error))
            return false;
        out->n++;
        first += n;
    }
    return true;
}

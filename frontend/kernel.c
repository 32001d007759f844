/* Kernels: generics to instances, parameters, dims, `where`, and the body.
 *
 * Input: a kernel declaration. Output: one IR kernel for each instance of its type classes that
 * nothing binds. Parameters are the dims in order of appearance, then scalars and tensors as
 * written. A dim that no argument carries is a scalar of the host region; every other `where`
 * condition is a `require` with its own text.
 */
#include "frontend/fe.h"
#include "ir/exact.h"
#include "lang/base/numeric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES_MAX = 64, GENERICS_MAX = 8 };

/* --- type classes --------------------------------------------------------------------------- */

typedef struct TypeClass {
    const char *name;
    DType compiled[16]; /* ahead of time, where nothing binds it; DT_NONE ends */
    DType allowed[20];  /* besides those */
} TypeClass;

static const TypeClass classes[] = {
    {"float", {DT_F16, DT_BF16, DT_F32}, {DT_F64}},
    {"fp8", {DT_E4M3, DT_E5M2}, {DT_NONE}},
    {"integer", {DT_I8, DT_I16, DT_I32, DT_I64, DT_U8, DT_U16, DT_U32, DT_U64}, {DT_I4, DT_U4}},
    {"numeric",
     {DT_F16, DT_BF16, DT_F32, DT_I32, DT_I64},
     {DT_F64, DT_E4M3, DT_E5M2, DT_I8, DT_I16, DT_U8, DT_U16, DT_U32, DT_U64, DT_I4, DT_U4}},
};

static const TypeClass *class_find(const char *name) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(classes[i].name, name))
            return &classes[i];
    return NULL;
}

static bool class_has(const TypeClass *c, DType t) {
    for (int i = 0; i < 16 && c->compiled[i]; i++)
        if (c->compiled[i] == t)
            return true;
    for (int i = 0; i < 20 && c->allowed[i]; i++)
        if (c->allowed[i] == t)
            return true;
    return false;
}

/* --- instances ------------------------------------------------------------------------------ */

typedef struct Instance {
    DType type[GENERICS_MAX]; /* of the i-th type generic */
    int n;
} Instance;

static bool generic_types(Fe *fe, const Decl *decl, const Generic *g, DType *out, int *n) {
    const TypeClass *c = class_find(g->bound.text);
    if (!c) {
        Diag *d = fe_error(fe, DIAG_UNKNOWN_TYPE, g->bound.span, "`%s` is not a class of types",
                           g->bound.text);
        diag_hint(fe->diags, d, "write `float`, `fp8`, `integer` or `numeric`");
        return false;
    }
    const char *value;
    *n = 0;
    if (define_find(fe, decl->name.text, g->name.text, &value)) {
        DType t = dtype_parse_cstr(value);
        if (t == DT_NONE || !class_has(c, t)) {
            fe_error(fe, DIAG_BAD_DEFINE, g->span, "-D %s=%s: not a type of the class `%s`",
                     g->name.text, value, c->name);
            return false;
        }
        out[(*n)++] = t;
        return true;
    }
    for (int i = 0; i < 16 && c->compiled[i]; i++)
        out[(*n)++] = c->compiled[i];
    return true;
}

static bool generic_scalar(Fe *fe, const Generic *g, const char *text, Val *out) {
    if (g->dtype == DT_BOOL) {
        bool yes = !strcmp(text, "true") || !strcmp(text, "1");
        if (!yes && strcmp(text, "false") && strcmp(text, "0"))
            return false;
        *out = val_of(ir_bool(fe->kernel, yes));
        return true;
    }
    if (dtype_is_float(g->dtype)) {
        double f;
        if (!define_float(text, g->dtype, &f))
            return false;
        *out = val_of(const_of(fe, g->dtype, val_float(f)));
        return true;
    }
    int64_t i;
    if (!define_integer(text, g->dtype, &i))
        return false;
    *out = val_of(const_of(fe, g->dtype, val_int(i)));
    return true;
}

static Val unbound(Fe *fe, const Generic *g) {
    Diag *d = fe_error(fe, DIAG_UNBOUND_GENERIC, g->span,
                       "nothing gives `%s` of `%s` a value ahead of time", g->name.text,
                       fe->decl->name.text);
    diag_hint(fe->diags, d, "compile with `-D %s=...`, or give it a default: `%s: %s = ...`",
              g->name.text, g->name.text, g->bound.text);
    return val_poison();
}

/* The value of a generic: -D, the schedule (where it has a default), its default. */
static Val generic_value(Fe *fe, const Generic *g) {
    const char *text;
    Val v;
    if (define_find(fe, fe->decl->name.text, g->name.text, &text)) {
        if (generic_scalar(fe, g, text, &v))
            return v;
        fe_error(fe, DIAG_BAD_DEFINE, g->span, "-D %s=%s: not a value of %s", g->name.text, text,
                 dtype_name(g->dtype));
        return val_poison();
    }
    int64_t scheduled;
    if (g->value && schedule_value(fe, fe->decl, g->name.text, &scheduled)) {
        if (!dtype_is_float(g->dtype) && numeric_wrap(g->dtype, scheduled) != scheduled) {
            fe_error(fe, DIAG_BAD_SCHEDULE, g->span,
                     "the schedule gives `%s` %lld, which %s does "
                     "not hold",
                     g->name.text, (long long)scheduled, dtype_name(g->dtype));
            return val_poison();
        }
        return val_of(const_of(fe, g->dtype, val_int(scheduled)));
    }
    if (g->value)
        return val_coerce(fe, expr_any(fe, g->value), g->dtype, true, g->value->span,
                          "the generic");
    return unbound(fe, g);
}

/* A generic fn: the one that -D names, or its default. */
static Val generic_fn(Fe *fe, const Generic *g) {
    const char *text;
    Val v = val_poison();
    if (define_find(fe, fe->decl->name.text, g->name.text, &text)) {
        Global fn;
        Name name = {.text = intern_cstr(fe->interner, text), .span = g->span};
        if (global_find(fe, (Name){0}, name, &fn) && fn.decl && fn.decl->kind == DECL_FN)
            return (Val){.kind = VAL_FN, .fn = fn};
        if (!fn.decl && builtin_fn(fe, name, &fn))
            return (Val){.kind = VAL_FN, .fn = fn};
        fe_error(fe, DIAG_BAD_DEFINE, g->span,
                 "-D %s=%s: not a fn of this file or its imports, nor a built-in one", g->name.text,
                 text);
        return v;
    }
    if (!g->value)
        return unbound(fe, g);
    v = expr_any(fe, g->value);
    if (val_ok(v) && v.kind != VAL_FN) {
        fe_error(fe, DIAG_TYPE_MISMATCH, g->value->span, "`%s` is a fn, this is %s", g->name.text,
                 val_text(fe, v));
        v = val_poison();
    }
    return v;
}

static void bind_generics(Fe *fe, const Instance *instance) {
    int types = 0;
    for (uint32_t i = 0; i < fe->decl->kernel.generics.len; i++) {
        const Generic *g = &fe->decl->kernel.generics.data[i];
        if (g->kind == GENERIC_TYPE) {
            Entry *e = scope_add(fe, ENTRY_TYPE, g->name);
            e->dtype = instance->type[types++];
        } else if (g->kind == GENERIC_VALUE) {
            Val v = generic_value(fe, g);
            EntryKind kind = !val_ok(v)                   ? ENTRY_POISON
                             : dtype_is_integer(g->dtype) ? ENTRY_DIM
                                                          : ENTRY_LET;
            scope_add(fe, kind, g->name)->val = v;
        } else {
            Val f = generic_fn(fe, g);
            scope_add(fe, val_ok(f) ? ENTRY_LET : ENTRY_POISON, g->name)->val = f;
        }
    }
}

/* --- dims ----------------------------------------------------------------------------------- */

/* A dim that is an expression: a dim of its own that must equal it. */
typedef struct ExprDim {
    Value *value;
    const Expr *expr;
} ExprDim;

typedef struct Params {
    VEC(ExprDim) expr_dims;
} Params;

static bool is_const_name(Fe *fe, const Expr *e) {
    Global g;
    /* Only the file's own: an imported constant does not take a dim's name away. */
    return global_find(fe, e->name.module, e->name.name, &g) && g.decl &&
           g.decl->kind == DECL_CONST && g.module == fe->main;
}

/* Declares the dims that a type names. */
static void declare_dims(Fe *fe, const TypeRef *type) {
    for (uint32_t i = 0; i < type->dims.len; i++) {
        const Expr *e = type->dims.data[i];
        if (e->kind != EXPR_NAME)
            continue;
        Name name = e->name.name;
        Entry *entry = scope_find(fe, name.text);
        if (!entry && is_const_name(fe, e))
            continue;
        if (!entry) {
            Axis *axis = ir_param_dim(fe->kernel, name.text);
            entry = scope_add(fe, ENTRY_DIM, name);
            entry->axis = axis;
            entry->val = val_of(axis->extent);
        } else if (entry->kind == ENTRY_DIM && !entry->axis && entry->val.v->kind == VALUE_CONST) {
            entry->axis = ir_param_dim_fixed(fe->kernel, name.text, entry->val.v->u.i);
            entry->val = val_of(entry->axis->extent);
        }
    }
}

static Value *tensor_dim(Fe *fe, Params *ps, const AstParam *p, int i, Tensor *t) {
    const Expr *e = p->type->dims.data[i];
    t->text[i] = span_text(fe, e->span);
    if (e->kind == EXPR_NAME) {
        Entry *entry = scope_find(fe, e->name.name.text);
        if (entry && entry->kind == ENTRY_DIM) {
            t->axis[i] = entry->axis;
            t->dim[i] = entry->name;
            return val_cast(fe, entry->val, DT_INDEX, e->span);
        }
        if (entry) {
            if (entry->kind != ENTRY_POISON)
                fe_error(fe, DIAG_NOT_A_DIM, e->span, "`%s` is not a dim", entry->name);
            return NULL;
        }
        Global g;
        if (global_find(fe, e->name.module, e->name.name, &g) && g.decl)
            return val_index(fe, const_value(fe, g, e->span), e->span, "a dim");
        return NULL;
    }
    if (e->kind == EXPR_INT)
        return ir_index(fe->kernel, (int64_t)e->integer.value);
    if (e->kind == EXPR_ERROR)
        return NULL;
    Axis *axis = ir_param_dim(fe->kernel, arena_printf(fe->arena, "%s_%d", param_name(p).text, i));
    vec_push(fe->arena, &ps->expr_dims, ((ExprDim){axis->extent, e}));
    return axis->extent;
}

/* --- parameters ----------------------------------------------------------------------------- */

typedef struct ParamDims {
    Value *dim[RANK_MAX];
    Tensor *tensor;
    bool ok;
} ParamDims;

static ParamDims param_dims(Fe *fe, Params *ps, const AstParam *p) {
    ParamDims d = {.ok = true};
    if (!p->type->has_dims)
        return d;
    d.tensor = ARENA_NEW(fe->arena, Tensor);
    d.tensor->span = p->pattern.span;
    if (p->type->dims.len > RANK_MAX) {
        fe_error(fe, DIAG_RANK, p->type->span, "a tensor has at most %d dims", RANK_MAX);
        d.ok = false;
        return d;
    }
    for (uint32_t i = 0; i < p->type->dims.len; i++) {
        d.dim[i] = tensor_dim(fe, ps, p, (int)i, d.tensor);
        d.ok &= d.dim[i] != NULL;
        if (d.ok && d.dim[i]->kind == VALUE_CONST && d.dim[i]->u.i < 0) {
            fe_error(fe, DIAG_NOT_A_DIM, p->type->dims.data[i]->span,
                     "a dim is never negative, and this one is %lld", (long long)d.dim[i]->u.i);
            d.ok = false;
        }
    }
    return d;
}

static void add_scalar(Fe *fe, const AstParam *p, DType type) {
    Value *v = ir_param_scalar(fe->kernel, param_name(p).text, type);
    scope_add(fe, ENTRY_LET, param_name(p))->val = val_of(v);
    if (!p->value)
        return;
    Val dflt = val_coerce(fe, expr_any(fe, p->value), type, true, p->value->span, "the parameter");
    if (!val_ok(dflt))
        return;
    Param *param = &fe->kernel->param[fe->kernel->nparam - 1];
    param->has_default = dflt.v->kind == VALUE_CONST;
    param->dflt = dflt.v;
}

static void report_result(Fe *fe, const AstParam *p, DType type) {
    const char *name = param_name(p).text;
    Diag *d = fe_error(fe, DIAG_RESULT_TYPE, p->span,
                       "a result is a tensor that the caller passes, `%s` is one %s", name,
                       dtype_name(type));
    diag_hint(fe->diags, d, "write `%s: %s[1]`, and store to `%s[0]`", name, dtype_name(type),
              name);
}

static void add_param(Fe *fe, const AstParam *p, const ParamDims *dims, bool is_result) {
    const Entry *old = scope_find(fe, param_name(p).text);
    if (old && old->kind != ENTRY_POISON) {
        scope_add(fe, p->type->has_dims ? ENTRY_TENSOR : ENTRY_LET, param_name(p));
        vec_last(&fe->entries).kind = ENTRY_POISON;
        return;
    }
    DType type = type_find(fe, p->type);
    if (type == DT_NONE || !dims->ok || (!p->type->has_dims && is_result)) {
        if (type != DT_NONE && dims->ok)
            report_result(fe, p, type);
        scope_add(fe, ENTRY_POISON, param_name(p));
        return;
    }
    if (!p->type->has_dims) {
        add_scalar(fe, p, type);
        return;
    }
    MemMode mode = p->is_inout ? MODE_INOUT : is_result ? MODE_OUT : MODE_IN;
    Tensor *t = dims->tensor;
    Value *dim[RANK_MAX];
    memcpy(dim, dims->dim, sizeof dim);
    t->mem = ir_param_tensor(fe->kernel, param_name(p).text, mode, p->is_optional, type,
                             (int)p->type->dims.len, dim);
    t->mem->span = p->span;
    scope_add(fe, ENTRY_TENSOR, param_name(p))->tensor = t;
}

static void add_params(Fe *fe, Params *ps) {
    const ParamVec *lists[2] = {&fe->decl->kernel.params, &fe->decl->kernel.results};
    uint32_t total = lists[0]->len + lists[1]->len, at = 0;
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->len; i++)
            declare_dims(fe, lists[l]->data[i].type);
    ParamDims *dims = ARENA_ARRAY(fe->arena, ParamDims, total);
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->len; i++)
            dims[at++] = param_dims(fe, ps, &lists[l]->data[i]);
    at = 0;
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->len; i++)
            add_param(fe, &lists[l]->data[i], &dims[at++], l == 1);
}

/* --- where ---------------------------------------------------------------------------------- */

static bool is_unknown_name(Fe *fe, const Expr *e) {
    Global g;
    return e->kind == EXPR_NAME && !e->name.module.text && !scope_find(fe, e->name.name.text) &&
           !global_find(fe, e->name.module, e->name.name, &g);
}

typedef struct DimDef {
    const Expr *cond;
    Name name;
    const Expr *value;
    bool done;
} DimDef;

static bool dim_definition(Fe *fe, const Expr *e, DimDef *out) {
    if (e->kind != EXPR_BINARY || e->binary.op != BINARY_EQ)
        return false;
    const Expr *l = e->binary.left, *r = e->binary.right;
    if (!is_unknown_name(fe, l)) {
        const Expr *swap = l;
        l = r;
        r = swap;
    }
    if (!is_unknown_name(fe, l))
        return false;
    *out = (DimDef){.cond = e, .name = l->name.name, .value = r};
    return true;
}

static bool depends_on_open(const DimDef *defs, uint32_t n, uint32_t i) {
    for (uint32_t k = 0; k < n; k++)
        if (!defs[k].done && expr_mentions(defs[i].value, defs[k].name.text))
            return true;
    return false;
}

/* Arithmetic that faults whatever the arguments are. */
static bool is_sound(Fe *fe, const Value *v, Span span) {
    Scalar s;
    ExactKind kind = value_exact(v, NULL, NULL, &s);
    if (!exact_is_fault(kind))
        return true;
    fe_error(fe, DIAG_WHERE, span, "`%s` %s", span_text(fe, span), exact_text(kind));
    return false;
}

static bool is_dim_param(const Fe *fe, const Value *v) {
    for (int i = 0; i < fe->kernel->nparam; i++)
        if (fe->kernel->param[i].kind == PARAM_DIM && fe->kernel->param[i].value == v)
            return true;
    return false;
}

/* N == -2. */
static bool is_negative_dim(const Fe *fe, const Value *v) {
    if (v->kind != VALUE_OP || v->def->kind != OP_CMP || v->def->sub != CMP_EQ)
        return false;
    const Value *a = v->def->in[0], *b = v->def->in[1];
    const Value *dim = a->kind == VALUE_CONST ? b : a, *size = dim == a ? b : a;
    return size->kind == VALUE_CONST && size->u.i < 0 && is_dim_param(fe, dim);
}

/* What a `temp` alone has as a dim is no argument's: the launch checks that it is a size. */
static bool require_size(Fe *fe, const Value *v, const Expr *e) {
    if (v->kind == VALUE_CONST && v->u.i >= 0)
        return true;
    if (v->kind == VALUE_CONST) {
        fe_error(fe, DIAG_WHERE, e->span, "a dim is never negative, and this one is %lld",
                 (long long)v->u.i);
        return false;
    }
    if (!is_sound(fe, v, e->span))
        return false;
    if (is_dim_param(fe, v))
        return true;
    Val at_least =
        build_cmp(fe, CMP_GE, val_of((Value *)(uintptr_t)v), val_int(0), DT_INDEX, e->span);
    fe->b.span = e->span;
    ir_require(&fe->b, at_least.v, arena_printf(fe->arena, "%s >= 0", span_text(fe, e->span)));
    return true;
}

static void define_dim(Fe *fe, DimDef *d) {
    d->done = true;
    if (scope_find(fe, d->name.text)) /* two definitions: the second is a condition */
        return;
    Value *v;
    fe->hint = d->name.text;
    fe->in_where = true;
    bool ok = range_bound(fe, d->value, &v) && require_size(fe, v, d->value);
    fe->in_where = false;
    fe->hint = NULL;
    Entry *e = scope_add(fe, ok ? ENTRY_DIM : ENTRY_POISON, d->name);
    if (ok)
        e->val = val_of(v);
}

static void require(Fe *fe, Val c, Span span) {
    bool known;
    if (!val_ok(c) || (c.kind == VAL_VALUE && !check_launch_known(fe, c.v, span)))
        return;
    const char *text = span_text(fe, span);
    if (val_const_bool(c, &known)) {
        if (!known)
            fe_error(fe, DIAG_WHERE, span, "this condition can never hold: `%s`", text);
        return;
    }
    if (!is_sound(fe, c.v, span))
        return;
    if (is_negative_dim(fe, c.v)) {
        Diag *d = fe_error(fe, DIAG_WHERE, span, "this condition can never hold: `%s`", text);
        diag_hint(fe->diags, d, "a dim is never negative");
        return;
    }
    fe->b.span = span;
    ir_require(&fe->b, c.v, text);
}

static void lower_where(Fe *fe, const Params *ps) {
    const ExprVec *where = &fe->decl->kernel.where;
    DimDef *defs = ARENA_ARRAY(fe->arena, DimDef, where->len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < where->len; i++)
        n += dim_definition(fe, where->data[i], &defs[n]);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < n; i++)
            if (!defs[i].done && !depends_on_open(defs, n, i)) {
                define_dim(fe, &defs[i]);
                more = true;
            }
    }
    for (uint32_t i = 0; i < n; i++)
        if (!defs[i].done) {
            fe_error(fe, DIAG_WHERE, defs[i].cond->span, "the dim `%s` is defined by itself",
                     defs[i].name.text);
            scope_add(fe, ENTRY_POISON, defs[i].name);
        }
    fe->prologue = fe->kernel->body->last;
    fe->in_index = fe->in_where = true;
    for (uint32_t i = 0; i < ps->expr_dims.len; i++) {
        const ExprDim *d = &ps->expr_dims.data[i];
        fe->head_dim = d->expr;
        Value *v = expr_index(fe, d->expr);
        fe->head_dim = NULL;
        if (v)
            require(fe, build_cmp(fe, CMP_EQ, val_of(d->value), val_of(v), DT_INDEX, d->expr->span),
                    d->expr->span);
    }
    for (uint32_t i = 0; i < where->len; i++) {
        bool defines = false;
        for (uint32_t k = 0; k < n; k++)
            defines |= defs[k].cond == where->data[i];
        uint32_t errors = diags_error_count(fe->diags);
        Val c = defines ? val_poison() : expr_bool(fe, where->data[i], "a condition");
        if (diags_error_count(fe->diags) == errors) /* else its arithmetic is wrong */
            require(fe, c, where->data[i]->span);
    }
    fe->in_index = fe->in_where = false;
}

/* --- the kernel ----------------------------------------------------------------------------- */

static const char *instance_name(Fe *fe, const Decl *decl, const Instance *instance) {
    const char *name = decl->name.text;
    for (int i = 0; i < instance->n; i++)
        name = arena_printf(fe->arena, "%s.%s", name, dtype_name(instance->type[i]));
    return name;
}

static void warn_unwritten(Fe *fe) {
    for (uint32_t i = 0; i < fe->entries.len; i++) {
        const Entry *e = &fe->entries.data[i];
        if (e->kind != ENTRY_TENSOR || e->tensor->written || e->tensor->mem->kind != MEM_PARAM ||
            e->tensor->mem->mode != MODE_OUT)
            continue;
        Diag *d =
            fe_error(fe, DIAG_UNWRITTEN, e->span, "the output `%s` is never written", e->name);
        diag_hint(fe->diags, d, "store to it: `%s = ...;`, or remove it", e->name);
    }
}

static void lower_instance(Fe *fe, const Decl *decl, const Instance *instance) {
    uint32_t errors = diags_error_count(fe->diags);
    if (fe->module->nkernel >= KERNELS_MAX) {
        fe_error(fe, DIAG_TOO_MANY, decl->name.span,
                 "a file has at most %d kernels, all instances counted", KERNELS_MAX);
        return;
    }
    const char *name = instance_name(fe, decl, instance);
    fe->decl = decl;
    fe->kernel = ir_kernel_new(fe->module, name, decl->span);
    fe->b = ir_builder_at_end(fe->kernel, fe->kernel->body);
    fe->names = fe->main;
    fe->entries.len = fe->axis_info.len = fe->accesses.len = fe->guards.len = 0;
    fe->doubts.len = fe->ended.len = 0;
    fe->floor = fe->fn_level = fe->loops = fe->depth = fe->work = 0;
    fe->nest = fe->prologue = NULL;
    fe->in_index = fe->in_where = fe->too_large = false;
    fe->hint = NULL;
    Params ps = {0};
    fe->is_head = true;
    bind_generics(fe, instance);
    add_params(fe, &ps);
    lower_where(fe, &ps);
    fe->is_head = false;
    uint32_t mark;
    scope_open(fe, &mark);
    stmt_list(fe, &decl->kernel.body->stmts, 0);
    scope_close(fe, mark);
    if (diags_error_count(fe->diags) == errors) {
        warn_unwritten(fe);
        doubts_report(fe);
    }
    schedule_lower(fe, decl, name);
    fe->module->nkernel--;
    /* A copy has its axes in the order of the text, whatever order they were made in. */
    if (diags_error_count(fe->diags) == errors)
        ir_clone_kernel(fe->module, fe->kernel, name);
}

void kernel_lower(Fe *fe, const Decl *decl) {
    Instance all[INSTANCES_MAX] = {{.n = 0}};
    int count = 1;
    uint32_t errors = diags_error_count(fe->diags);
    for (uint32_t i = 0; i < decl->kernel.generics.len; i++) {
        const Generic *g = &decl->kernel.generics.data[i];
        if (g->kind != GENERIC_TYPE)
            continue;
        DType types[16];
        int n;
        if (all[0].n == GENERICS_MAX || !generic_types(fe, decl, g, types, &n))
            return;
        if (count * n > INSTANCES_MAX) {
            fe_error(fe, DIAG_UNBOUND_GENERIC, g->span, "`%s` would have more than %d instances",
                     decl->name.text, INSTANCES_MAX);
            return;
        }
        /* The last generic varies fastest. */
        for (int k = count - 1; k >= 0; k--)
            for (int t = n - 1; t >= 0; t--) {
                Instance one = all[k];
                one.type[one.n++] = types[t];
                all[k * n + t] = one;
            }
        count *= n;
    }
    /* What is wrong in one instance is wrong in most: the first report is enough. */
    for (int i = 0; i < count && diags_error_count(fe->diags) == errors; i++) {
        fe->instance = i > 0 ? instance_name(fe, decl, &all[i]) : NULL;
        lower_instance(fe, decl, &all[i]);
    }
    fe->instance = NULL;
}

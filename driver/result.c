// Accessors of a FuseResult, and running it: on the host targets and on the evaluator.
#include "driver/result.h"

#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/nest.h"
#include "lang/base/numeric.h"

#define FUSE_STRING_(x) #x
#define FUSE_STRING(x)  FUSE_STRING_(x)

void fuse_result_free(FuseResult *r) {
    if (!r)
        return;
    host_module_free(r->host);
    arena_free(r->call);
    arena_free(r->scratch);
    arena_free(r->arena);
    free(r);
}

bool fuse_result_ok(const FuseResult *r) {
    return r && r->ok;
}

const char *fuse_result_output(const FuseResult *r, size_t *len) {
    if (len)
        *len = r->noutput;
    return r->noutput ? r->output : "";
}

const char *fuse_result_messages(const FuseResult *r) {
    return r->messages;
}

int fuse_result_errors(const FuseResult *r) {
    return (int)diags_error_count(r->diags);
}

bool fuse_result_internal(const FuseResult *r) {
    return r->internal;
}

const char *fuse_result_plan(const FuseResult *r, size_t *len) {
    if (len)
        *len = r->plan ? r->nplan : 0;
    return r->plan ? r->plan : "";
}

static bool is_file(const char *name) {
    size_t n = strlen(name);
    return n > 0 && !(name[0] == '<' && name[n - 1] == '>');
}

const char *fuse_result_dep_at(const FuseResult *r, int i) {
    if (i < 0)
        return NULL;
    if (is_file(r->name) && i-- == 0)
        return r->name;
    // The source is the first of the map; where it was tile IR the map is empty.
    for (uint32_t file = 2; file <= source_count(r->sources); file++)
        if (is_file(source_name(r->sources, file)) && i-- == 0)
            return source_name(r->sources, file);
    return NULL;
}

const char *fuse_version(void) {
    return FUSE_STRING(FUSE_VERSION);
}

const char *fuse_target_at(int i) {
    const TargetDesc *t = target_at(i);
    return t ? t->name : NULL;
}

const char *fuse_pass_at(int i) {
    return i >= 0 && i < PASS_COUNT ? pass_name((PassId)i) : NULL;
}

const char *fuse_diagnostic_at(int i) {
    return i >= 0 && i < DIAG_COUNT_ ? diag_id_name((DiagId)i) : NULL;
}

bool fuse_is_warning_flag(const char *flag) {
    return diag_options_flag(&(DiagOptions){0}, flag);
}

const char *fuse_explain_error(const char *id) {
    DiagId d;
    if (!diag_id_parse(id, &d))
        return NULL;
    return diag_id_explanation(d);
}

const char *fuse_explain_title(const char *id) {
    DiagId d;
    return diag_id_parse(id, &d) ? diag_id_title(d) : NULL;
}

const char *fuse_explain_example(const char *id, bool right) {
    DiagId d;
    return diag_id_parse(id, &d) ? diag_id_example(d, right) : NULL;
}

const char *fuse_host_launch(FuseResult *r, const char *entry, void *const *args, int64_t grid,
                             int warps, int64_t smem, int threads, uint64_t seed) {
    if (!r || !r->ok || !r->host)
        return "this result has no host code";
    return host_launch(r->host, entry, args, grid, warps, smem, threads, seed);
}

// --- evaluator ---

// `name` itself, or the only instance of the generic kernel `name`.
static const Kernel *find_kernel(const Module *m, const char *name) {
    const Kernel *found = NULL;
    size_t n = strlen(name);
    for (int i = 0; i < m->nkernel; i++) {
        const Kernel *k = m->kernel[i];
        if (strcmp(k->name, name) == 0)
            return k;
        bool instance = strncmp(k->name, name, n) == 0 && k->name[n] == '.';
        if (instance && found)
            return NULL;
        found = instance ? k : found;
    }
    return found;
}

typedef struct EvalCall {
    Arena *arena;
    const Kernel *kernel;
    int nparam; // scalars and tensors
    const Param *param[256];
    EvalArg arg[256];
    bool given[256];
    const char *error;
} EvalCall;

static const char *bind_argument(EvalCall *c, int position, const FuseArg *a) {
    int at = position;
    if (a->name) {
        for (at = 0; at < c->nparam && strcmp(c->param[at]->name, a->name) != 0;)
            at++;
        if (at == c->nparam)
            return arena_printf(c->arena, "%s has no parameter named %s", c->kernel->name, a->name);
    }
    if (at >= c->nparam)
        return arena_printf(c->arena, "%s takes %d arguments", c->kernel->name, c->nparam);
    if (c->given[at])
        return arena_printf(c->arena, "argument %s is given twice", c->param[at]->name);
    c->given[at] = true;
    if (!a->tensor) {
        c->arg[at].scalar = a->is_float ? (Scalar){.dtype = DT_F64, .u.f = a->f}
                                        : (Scalar){.dtype = DT_I64, .u.i = a->i};
        return NULL;
    }
    EvalTensor *t = ARENA_NEW(c->arena, EvalTensor);
    t->data = a->tensor->data;
    t->dtype = dtype_parse_cstr(a->tensor->dtype);
    t->rank = a->tensor->rank;
    if (t->dtype == DT_NONE || t->rank < 0 || t->rank > RANK_MAX)
        return arena_printf(c->arena, "argument %s: dtype or rank is not known",
                            c->param[at]->name);
    memcpy(t->dims, a->tensor->dims, sizeof t->dims);
    memcpy(t->strides, a->tensor->strides, sizeof t->strides);
    c->arg[at].tensor = t;
    return NULL;
}

// What the checks found goes to the callback; where there is none, errors are in the answer.
static const char *check_answer(FuseResult *r, const Diags *found, const char *failure) {
    const FuseOptions *o = &r->options;
    uint32_t errors = diags_error_count(found);
    if (o->message)
        diags_print(found, o->message, o->user);
    if (!errors)
        return failure;
    const char *text = o->message ? "" : diags_text(found, r->call);
    return arena_printf(r->call, "%s%sthe checks found %u error%s%s%s", failure ? failure : "",
                        failure ? "; " : "", errors, errors == 1 ? "" : "s", *text ? "\n" : "",
                        text);
}

const char *fuse_eval_run(FuseResult *r, const char *kernel, int nargs, const FuseArg *args,
                          uint64_t seed) {
    if (!r || !r->ok || !r->module)
        return "this result has no tile IR";
    arena_free(r->call);
    r->call = arena_new("eval");
    const Kernel *k = find_kernel(r->module, kernel);
    if (!k)
        return arena_printf(r->call, "there is no kernel, or more than one instance, named %s",
                            kernel);
    EvalCall *c = ARENA_NEW(r->call, EvalCall);
    c->arena = r->call;
    c->kernel = k;
    for (int i = 0; i < k->nparam; i++) {
        if (k->param[i].kind == PARAM_DIM)
            continue;
        if (c->nparam == 256)
            return "a kernel may have 256 parameters";
        c->param[c->nparam++] = &k->param[i];
    }
    for (int i = 0; i < nargs; i++) {
        const char *error = bind_argument(c, i, &args[i]);
        if (error)
            return error;
    }
    for (int i = 0; i < c->nparam; i++) {
        const Param *p = c->param[i];
        bool may_miss = (p->kind == PARAM_TENSOR && p->mem->opt) || p->has_default;
        if (!c->given[i] && !may_miss)
            return arena_printf(r->call, "argument %s is missing", p->name);
        if (!c->given[i] && p->has_default && p->dflt)
            c->arg[i].scalar = dtype_is_float(p->dflt->type.dtype)
                                   ? (Scalar){.dtype = DT_F64, .u.f = p->dflt->u.f}
                                   : (Scalar){.dtype = DT_I64, .u.i = p->dflt->u.i};
    }
    Arena *scratch = arena_new("eval scratch");
    const char *error = NULL;
    EvalReport report = {0};
    EvalOptions options = {.seed = seed, .report = &report};
    if (r->options.check)
        options.check = diags_new(r->call, r->sources, &r->levels);
    bool ok = eval_kernel(scratch, r->module, k, c->nparam, c->arg, &options, &error);
    SourcePos at = ok ? (SourcePos){0} : source_pos(r->sources, report.span.begin);
    const char *place = at.file ? arena_printf(r->call, "%s:%u: ", at.name, at.line) : "";
    const char *message =
        ok ? NULL : arena_printf(r->call, "%s%s", place, error ? error : "the evaluator failed");
    arena_free(scratch);
    return options.check ? check_answer(r, options.check, message) : message;
}

// The corpus of passes from whole tensors to machine code: every kernel, every variant whose guards
// hold, many shapes, run by `sim` (the GPU's schedule) and `cpu`, against the evaluator. The host
// region is walked here: scalars, `when`, `temp` and launches.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/host/host.h"
#include "ir/abi.h"
#include "ir/eval.h"
#include "ir/pass.h"
#include "ir/random.h"

enum { TENSORS_MAX = 8, DIMS_MAX = 4 };

typedef struct Data {
    EvalTensor tensor[TENSORS_MAX];
    EvalArg arg[TENSORS_MAX];
    int n;
} Data;

static char *read_file(Arena *a, const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(a, 1 << 20);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

// Values of the scalars by id; dims in order of declaration.
static void bind_dims(const Kernel *k, const int64_t *dims, Scalar *value) {
    for (int i = 0, d = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_DIM)
            value[k->param[i].value->id] = scalar_int(DT_INDEX, dims[d++]);
}

static Scalar value_of(const Scalar *value, const Value *v) {
    if (v->kind != VALUE_CONST)
        return value[v->id];
    return dtype_is_float(v->type.dtype) ? scalar_float(v->type.dtype, v->u.f)
                                         : scalar_int(v->type.dtype, v->u.i);
}

static EvalTensor tensor_of(Arena *a, const Mem *m, const Scalar *value) {
    int64_t extent[RANK_MAX], count = 1;
    for (int j = 0; j < m->rank; j++) {
        extent[j] = value_of(value, m->dim[j]).u.i;
        count *= extent[j];
    }
    char *bytes = arena_alloc(a, (size_t)dtype_bytes(m->dtype, (uint64_t)count) + 128);
    bytes += 64 - (uintptr_t)bytes % 64;
    return eval_tensor(bytes, m->dtype, m->rank, extent);
}

static int64_t count_of(const EvalTensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

static Data *make_data(Arena *a, const Kernel *k, const int64_t *dims, bool absent) {
    Data *d = ARENA_NEW(a, Data);
    Scalar *value = ARENA_ARRAY(a, Scalar, k->nvalue + 1u);
    bind_dims(k, dims, value);
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_DIM)
            continue;
        if (p->kind == PARAM_TENSOR) {
            EvalTensor *t = &d->tensor[d->n];
            *t = tensor_of(a, p->mem, value);
            random_fill(t->data, t->dtype, count_of(t), (RandomSpec){0}, (uint64_t)d->n + 7);
            if (!(absent && p->mem->opt))
                d->arg[d->n].tensor = t;
        } else {
            d->arg[d->n].scalar = scalar_float(p->value->type.dtype, 1.5);
        }
        d->n++;
    }
    return d;
}

static void compare(const Data *want, const Data *got, const char *what) {
    for (int i = 0; i < want->n; i++) {
        if (!want->arg[i].tensor)
            continue;
        const EvalTensor *w = &want->tensor[i], *g = &got->tensor[i];
        double tolerance = w->dtype == DT_BF16 ? 0x1p-6 : w->dtype == DT_F16 ? 0x1p-9 : 2e-5;
        for (int64_t j = 0; j < count_of(w); j++) {
            double x = scalar_to_f64(scalar_load(w->dtype, w->data, j));
            double y = scalar_to_f64(scalar_load(g->dtype, g->data, j));
            bool equal =
                (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= tolerance * (fabs(x) + 1);
            cr_assert(equal, "%s: argument %d, element %lld: %g, not %g", what, i, (long long)j, y,
                      x);
        }
    }
}

// --- the host region ---

typedef struct Run {
    Arena *arena;
    HostModule *host;
    const Kernel *k;
    Scalar *value;     // by id
    EvalTensor *mem;   // by id; data NULL: absent
    bool sim, refused; // a guard of the variant does not hold
    const char *what;
} Run;

static bool guards_hold(const Mem *m, const EvalTensor *t) {
    if (m->absent != (t->data == NULL) && (m->absent || !m->opt))
        return false;
    if (!t->data)
        return true;
    if (m->inner >= 0 && t->strides[m->inner] != 1)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (i != m->inner && m->sdiv > 1 && t->strides[i] % (int64_t)m->sdiv != 0)
            return false;
    return true;
}

static void run_launch(Run *r, const Op *op) {
    int n;
    AbiParam *params = abi_launch_params(r->arena, op, &n);
    void **args = ARENA_ARRAY(r->arena, void *, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        const EvalTensor *t = params[i].mem ? &r->mem[params[i].mem->id] : NULL;
        void *at = args[i] = arena_alloc(r->arena, 16);
        if (params[i].kind == ABI_POINTER)
            memcpy(at, &t->data, sizeof t->data);
        else if (params[i].kind == ABI_STRIDE)
            memcpy(at, &t->strides[params[i].dim], 8);
        else
            scalar_store(at, 0, value_of(r->value, params[i].value));
    }
    int64_t lo = value_of(r->value, op->in[0]).u.i, hi = value_of(r->value, op->in[1]).u.i;
    cr_assert_eq(lo, 0);
    const char *message =
        host_launch(r->host, op_attr_str(op, ATTR_entry), args, hi > lo ? hi - lo : 0, 0,
                    op_attr_int(op, ATTR_smem), r->sim ? 1 : 2, 3);
    cr_assert(!message, "%s: %s", r->what, message);
}

static void run_host_op(Run *r, const Op *op);

static void run_host_region(Run *r, const Region *region) {
    for (const Op *op = region->first; op && !r->refused; op = op->next)
        if (op->kind != OP_YIELD)
            run_host_op(r, op);
}

// Loops of one scalar that carry nothing.
static void run_host_for(Run *r, const Op *op) {
    cr_assert(op->nbinders == 1 && op->binder[0].var && op->ncarry == 0 && !op->binder[0].has_step,
              "%s: this loop in a host region", r->what);
    int64_t lo = value_of(r->value, op_binder_lo(op, 0)).u.i;
    int64_t hi = value_of(r->value, op_binder_hi(op, 0)).u.i;
    for (int64_t i = lo; i < hi; i++) {
        r->value[op->binder[0].var->id] = scalar_int(DT_INDEX, i);
        run_host_region(r, op->region[0]);
    }
}

static void run_host_op(Run *r, const Op *op) {
    if (op->kind == OP_AXIS)
        return;
    if (op->kind == OP_FOR) {
        run_host_for(r, op);
        return;
    }
    if (op->kind == OP_IF) {
        cr_assert_eq(op->nres, 0);
        int taken = value_of(r->value, op->in[0]).u.i ? 0 : 1;
        if (taken < op->nregion)
            run_host_region(r, op->region[taken]);
        return;
    }
    if (op->kind == OP_WHEN || op->kind == OP_REQUIRE) {
        r->refused = r->refused || !value_of(r->value, op->in[0]).u.i;
    } else if (op->kind == OP_TEMP) {
        r->mem[op->def_mem->id] = tensor_of(r->arena, op->def_mem, r->value);
    } else if (op->kind == OP_LAUNCH) {
        run_launch(r, op);
    } else if (op->kind == OP_SMS) {
        r->value[op->res[0]->id] = scalar_int(DT_INDEX, 4);
    } else if (op->kind == OP_PRESENT) {
        r->value[op->res[0]->id] = scalar_int(DT_BOOL, r->mem[op->mem[0].mem->id].data != NULL);
    } else {
        Scalar in[3], out;
        for (int i = 0; i < op->nin && i < 3; i++)
            in[i] = value_of(r->value, op->in[i]);
        cr_assert(op->nres == 1 && eval_scalar_op(op, in, &out), "%s in a host region",
                  op_info(op->kind)->text);
        r->value[op->res[0]->id] = out;
    }
}

// Whether the variant applies; then it ran.
static bool run_kernel(Run *r, const Data *data, const int64_t *dims) {
    const Kernel *k = r->k;
    r->value = ARENA_ARRAY(r->arena, Scalar, k->nvalue + 1u);
    r->mem = ARENA_ARRAY(r->arena, EvalTensor, k->nmem + 1u);
    bind_dims(k, dims, r->value);
    for (int i = 0, a = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_SCALAR)
            r->value[p->value->id] = data->arg[a++].scalar;
        if (p->kind != PARAM_TENSOR)
            continue;
        if (data->arg[a].tensor)
            r->mem[p->mem->id] = *data->arg[a].tensor;
        if (!guards_hold(p->mem, &r->mem[p->mem->id]))
            return false;
        a++;
    }
    run_host_region(r, k->body);
    return !r->refused;
}

// --- the corpus ---

typedef struct Corpus {
    Arena *arena, *scratch;
    Module *module;
    Diags *diags;
} Corpus;

static Corpus corpus(const char *target, bool run_passes) {
    Corpus c = {.arena = arena_new("corpus"), .scratch = arena_new("scratch")};
    size_t len;
    char *text = read_file(c.arena, FUSE_SOURCE_DIR "/tests/corpus/passes/kernels.tir", &len);
    const char *error = NULL;
    c.module = ir_parse(c.arena, interner_new(c.arena), text, len, &error);
    cr_assert(c.module, "%s", error);
    c.diags = diags_new(c.arena, source_map_new(c.arena), NULL);
    PassOptions options = {0};
    PassCtx ctx = {.module = c.module,
                   .target = target_find(target),
                   .options = &options,
                   .scratch = c.scratch,
                   .diags = c.diags,
                   .scratch_bytes = lower_scratch_bytes};
    bool ok = !run_passes || passes_run(&ctx);
    cr_assert(ok, "%s", diags_text(c.diags, c.arena));
    return c;
}

static void corpus_free(Corpus *c) {
    arena_free(c->scratch);
    arena_free(c->arena);
}

static bool is_variant(const Kernel *k, const char *base) {
    size_t n = strlen(base);
    return strncmp(k->name, base, n) == 0 &&
           (k->name[n] == 0 || (k->name[n] == '.' && k->name[n + 1] == 'v'));
}

static bool has_optional(const Kernel *k) {
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR && k->param[i].mem->opt)
            return true;
    return false;
}

static const int64_t shapes[][DIMS_MAX] = {
    {1, 1, 1, 1}, {0, 4, 3, 2}, {4, 0, 5, 3}, {33, 65, 17, 9}, {130, 40, 24, 8}, {3, 1031, 16, 16},
};

static void run_shape(Corpus *c, HostModule *host, const Kernel *reference, const Data *want,
                      const int64_t *dims, bool absent, const char *target, int shape) {
    int ran = 0;
    for (int i = 0; i < c->module->nkernel; i++) {
        const Kernel *k = c->module->kernel[i];
        if (!is_variant(k, reference->name))
            continue;
        Arena *a = arena_new("run");
        Data *got = make_data(a, reference, dims, absent);
        Run r = {.arena = a, .host = host, .k = k, .sim = strncmp(target, "sim", 3) == 0};
        r.what = arena_printf(a, "%s on %s, shape %d%s", k->name, target, shape,
                              absent ? ", absent" : "");
        if (run_kernel(&r, got, dims)) {
            ran++;
            compare(want, got, r.what);
        }
        arena_free(a);
    }
    cr_assert(ran > 0, "no variant of %s runs", reference->name);
}

static void run_corpus(const char *target, int opt_level) {
    Corpus reference = corpus(target, false), c = corpus(target, true);
    BackendOptions options = {.opt_level = opt_level};
    HostModule *host = host_jit(c.arena, c.module, target_find(target), &options, c.diags);
    cr_assert(host, "%s", diags_text(c.diags, c.arena));
    const char *only = getenv("FUSE_TEST_KERNEL");
    for (int i = 0; i < reference.module->nkernel; i++) {
        const Kernel *k = reference.module->kernel[i];
        if (only && strcmp(only, k->name) != 0)
            continue;
        for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
            for (int absent = 0; absent <= has_optional(k); absent++) {
                Arena *a = arena_new("reference");
                Data *want = make_data(a, k, shapes[s], absent);
                const char *error = NULL;
                bool ok = eval_kernel(a, reference.module, k, want->n, want->arg, NULL, &error);
                cr_assert(ok, "%s: %s", k->name, error);
                run_shape(&c, host, k, want, shapes[s], absent, target, s);
                arena_free(a);
            }
        }
    }
    host_module_free(host);
    corpus_free(&c);
    corpus_free(&reference);
}

Test(backend_numeric, sim_sm_80, .timeout = 600) {
    run_corpus("sim-sm_80", 1);
}
Test(backend_numeric, sim_sm_90a, .timeout = 600) {
    run_corpus("sim-sm_90a", 1);
}
Test(backend_numeric, cpu, .timeout = 600) {
    run_corpus("cpu", 2);
}

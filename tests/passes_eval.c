// The pipeline against the evaluator: every kernel of tests/corpus/passes at every stage, on the
// targets' own schedules, gives what its whole-tensor form gives. Every variant is run where its
// guards hold.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/pass.h"
#include "ir/random.h"

enum { TENSORS_MAX = 8, DIMS_MAX = 6 };

static char *read_file(Arena *a, const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(a, 1 << 20);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

typedef struct Data {
    EvalTensor tensor[TENSORS_MAX];
    EvalArg arg[TENSORS_MAX];
    int n;
} Data;

static int64_t dim_value(const Kernel *k, const Value *v, const int64_t *dims) {
    if (v->kind == VALUE_CONST)
        return v->u.i;
    for (int i = 0, d = 0; i < k->nparam; i++) {
        if (k->param[i].kind != PARAM_DIM)
            continue;
        if (k->param[i].value == v)
            return dims[d];
        d++;
    }
    cr_assert_fail("a dim that no parameter has");
    return 0;
}

// Arguments of a kernel: seeded inputs, outputs filled with a pattern; row-major.
static Data *make_data(Arena *a, const Kernel *k, const int64_t *dims, bool absent) {
    Data *d = ARENA_NEW(a, Data);
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_DIM)
            continue;
        if (p->kind == PARAM_SCALAR) {
            d->arg[d->n++].scalar = (Scalar){.dtype = DT_F64, .u.f = 1.5};
            continue;
        }
        EvalTensor *t = &d->tensor[d->n];
        int64_t extent[RANK_MAX], count = 1;
        for (int j = 0; j < p->mem->rank; j++) {
            extent[j] = dim_value(k, p->mem->dim[j], dims);
            count *= extent[j];
        }
        void *bytes = arena_alloc(a, (size_t)dtype_bytes(p->mem->dtype, (uint64_t)count) + 1);
        random_fill(bytes, p->mem->dtype, count, (RandomSpec){0}, (uint64_t)d->n + 7);
        *t = eval_tensor(bytes, p->mem->dtype, p->mem->rank, extent);
        if (!(absent && p->mem->opt))
            d->arg[d->n].tensor = t;
        d->n++;
    }
    return d;
}

static double element(const EvalTensor *t, int64_t i) {
    return scalar_to_f64(scalar_load(t->dtype, t->data, i));
}

static int64_t count_of(const EvalTensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

static void compare(const Data *want, const Data *got, const char *what) {
    for (int i = 0; i < want->n; i++) {
        if (!want->arg[i].tensor)
            continue;
        const EvalTensor *w = &want->tensor[i], *g = &got->tensor[i];
        double tolerance = w->dtype == DT_BF16 ? 0x1p-7 : w->dtype == DT_F16 ? 0x1p-9 : 1e-5;
        for (int64_t j = 0; j < count_of(w); j++) {
            double x = element(w, j), y = element(g, j);
            bool equal =
                (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= tolerance * (fabs(x) + 1);
            cr_assert(equal, "%s: argument %d, element %lld: %g, not %g", what, i, (long long)j, y,
                      x);
        }
    }
}

typedef struct Compiled {
    Arena *arena, *scratch;
    Module *module;
    Diags *diags;
} Compiled;

static Compiled compile(const char *target, const char *stop_after) {
    Compiled c = {.arena = arena_new("test"), .scratch = arena_new("scratch")};
    size_t len;
    char *text = read_file(c.arena, FUSE_SOURCE_DIR "/tests/corpus/passes/kernels.tir", &len);
    const char *error = NULL;
    c.module = ir_parse(c.arena, interner_new(c.arena), text, len, &error);
    cr_assert(c.module, "%s", error);
    c.diags = diags_new(c.arena, source_map_new(c.arena), NULL);
    PassOptions options = {.stop_after = stop_after};
    PassCtx ctx = {.module = c.module,
                   .target = target_find(target),
                   .options = &options,
                   .scratch = c.scratch,
                   .diags = c.diags};
    bool ok = !stop_after || passes_run(&ctx);
    cr_assert(ok, "%s", diags_text(c.diags, c.arena));
    return c;
}

static void release(Compiled *c) {
    arena_free(c->scratch);
    arena_free(c->arena);
}

static bool is_instance(const Kernel *k, const char *base) {
    size_t n = strlen(base);
    return strncmp(k->name, base, n) == 0 &&
           (k->name[n] == 0 || (k->name[n] == '.' && k->name[n + 1] == 'v'));
}

// Runs every variant whose guards hold; at least the last one must.
static int run_variants(Compiled *c, const Kernel *reference, const int64_t *dims, bool absent,
                        const Data *want, const char *what) {
    int ran = 0;
    for (int i = 0; i < c->module->nkernel; i++) {
        const Kernel *k = c->module->kernel[i];
        if (!is_instance(k, reference->name))
            continue;
        Arena *a = arena_new("run");
        Data *got = make_data(a, reference, dims, absent);
        EvalReport report = {0};
        EvalOptions options = {.report = &report, .check_guards = true, .seed = 3};
        const char *error = NULL;
        bool ok = eval_kernel(a, c->module, k, got->n, got->arg, &options, &error);
        cr_assert(ok || report.no_variant, "%s, %s: %s", what, k->name, error);
        if (ok) {
            ran++;
            char *where = arena_printf(a, "%s, %s", what, k->name);
            compare(want, got, where);
        }
        arena_free(a);
    }
    return ran;
}

static const int64_t shapes[][DIMS_MAX] = {
    {1, 1, 1, 1}, {0, 4, 3, 2}, {4, 0, 5, 3}, {33, 65, 17, 9}, {130, 40, 24, 8}, {3, 1031, 16, 16},
};

static bool has_optional(const Kernel *k) {
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR && k->param[i].mem->opt)
            return true;
    return false;
}

static void run_all(const char *target, const char *stop_after) {
    Compiled reference = compile(target, NULL), c = compile(target, stop_after);
    for (int i = 0; i < reference.module->nkernel; i++) {
        const Kernel *k = reference.module->kernel[i];
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            for (int absent = 0; absent <= has_optional(k); absent++) {
                Arena *a = arena_new("reference");
                Data *want = make_data(a, k, shapes[s], absent);
                const char *error = NULL;
                bool ok = eval_kernel(a, reference.module, k, want->n, want->arg, NULL, &error);
                cr_assert(ok, "%s: %s", k->name, error);
                char *what = arena_printf(a, "%s after %s, shape %zu%s", target, stop_after, s,
                                          absent ? ", absent tensors" : "");
                cr_assert(run_variants(&c, k, shapes[s], absent, want, what) > 0,
                          "%s: no variant of %s", what, k->name);
                arena_free(a);
            }
        }
    }
    release(&c);
    release(&reference);
}

Test(passes, nests) {
    run_all("sm_80", "fuse");
}

Test(passes, gpu_placed) {
    run_all("sm_80", "protocol");
}

Test(passes, cpu_placed) {
    run_all("cpu", "protocol");
}

// Runs a kernel's launches on cpu or sim with random data: the host region of placed IR is walked
// here (scalars, `when`, `temp`, launches), so tests can run any text and see its report.
#ifndef FUSE_TESTS_HOST_RUN_H
#define FUSE_TESTS_HOST_RUN_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/host/host.h"
#include "ir/abi.h"
#include "ir/eval.h"
#include "ir/random.h"

#define UNUSED __attribute__((unused))

enum { TENSORS_MAX = 8, DIMS_MAX = 4 };

typedef struct Data {
    EvalTensor tensor[TENSORS_MAX];
    EvalArg arg[TENSORS_MAX];
    int n;
} Data;

UNUSED static char *read_file(Arena *a, const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = arena_alloc(a, 1 << 20);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

// Values of the scalars by id; dims in order of declaration.
UNUSED static void bind_dims(const Kernel *k, const int64_t *dims, Scalar *value) {
    for (int i = 0, d = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_DIM)
            value[k->param[i].value->id] = scalar_int(DT_INDEX, dims[d++]);
}

UNUSED static Scalar value_of(const Scalar *value, const Value *v) {
    if (v->kind != VALUE_CONST)
        return value[v->id];
    return dtype_is_float(v->type.dtype) ? scalar_float(v->type.dtype, v->u.f)
                                         : scalar_int(v->type.dtype, v->u.i);
}

UNUSED static EvalTensor tensor_of(Arena *a, const Mem *m, const Scalar *value) {
    int64_t extent[RANK_MAX], count = 1;
    for (int j = 0; j < m->rank; j++) {
        extent[j] = value_of(value, m->dim[j]).u.i;
        count *= extent[j];
    }
    char *bytes = arena_alloc(a, (size_t)dtype_bytes(m->dtype, (uint64_t)count) + 128);
    bytes += 64 - (uintptr_t)bytes % 64;
    return eval_tensor(bytes, m->dtype, m->rank, extent);
}

UNUSED static int64_t count_of(const EvalTensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

UNUSED static Data *make_data(Arena *a, const Kernel *k, const int64_t *dims, bool absent) {
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

UNUSED static void compare(const Data *want, const Data *got, const char *what) {
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
    Scalar *value;   // by id
    EvalTensor *mem; // by id; data NULL: absent
    bool refused;    // a guard of the variant does not hold
    int threads;
    uint64_t seed;
    const char *what;
    const char *message; // of the first launch that failed, or NULL
} Run;

UNUSED static bool guards_hold(const Mem *m, const EvalTensor *t) {
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

UNUSED static void run_map(const AbiMap *m, const EvalTensor *t, void *at) {
    AbiHostMap map = {.magic = ABI_HOST_MAP,
                      .rank = (uint8_t)m->rank,
                      .bytes = (uint8_t)dtype_bytes(t->dtype, 1),
                      .swizzle = (uint16_t)m->swizzle,
                      .base = t->data};
    for (int i = 0; i < m->rank; i++) {
        map.dim[i] = (uint64_t)t->dims[m->dim[i]];
        map.stride[i] = t->dims[m->dim[i]] > 1 ? t->strides[m->dim[i]] * map.bytes : 16;
        map.box[i] = (uint32_t)m->box[i];
    }
    memcpy(at, &map, sizeof map);
}

UNUSED static void run_launch(Run *r, const Op *op) {
    int n;
    AbiParam *params = abi_launch_params(r->arena, op, &n);
    void **args = ARENA_ARRAY(r->arena, void *, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        const EvalTensor *t = params[i].mem ? &r->mem[params[i].mem->id] : NULL;
        void *at = args[i] = arena_alloc(r->arena, ABI_MAP_BYTES);
        if (params[i].kind == ABI_MAP)
            run_map(&params[i].map, t, at);
        else if (params[i].kind == ABI_POINTER)
            memcpy(at, &t->data, sizeof t->data);
        else if (params[i].kind == ABI_STRIDE)
            memcpy(at, &t->strides[params[i].dim], 8);
        else
            scalar_store(at, 0, value_of(r->value, params[i].value));
    }
    int64_t lo = value_of(r->value, op->in[0]).u.i, hi = value_of(r->value, op->in[1]).u.i;
    cr_assert_eq(lo, 0);
    // Text that names no entry has one launch.
    const char *entry = backend_entry_name(r->arena, r->k, op, 0);
    const char *message = host_launch(r->host, entry, args, hi > lo ? hi - lo : 0, 0,
                                      op_attr_int(op, ATTR_smem), r->threads, r->seed);
    if (message && !r->message)
        r->message = arena_strdup(r->arena, message);
}

UNUSED static void run_host_op(Run *r, const Op *op);

UNUSED static void run_host_region(Run *r, const Region *region) {
    for (const Op *op = region->first; op && !r->refused && !r->message; op = op->next)
        if (op->kind != OP_YIELD)
            run_host_op(r, op);
}

// Loops of one scalar that carry nothing.
UNUSED static void run_host_for(Run *r, const Op *op) {
    cr_assert(op->nbinders == 1 && op->binder[0].var && op->ncarry == 0 && !op->binder[0].has_step,
              "%s: this loop in a host region", r->what);
    int64_t lo = value_of(r->value, op_binder_lo(op, 0)).u.i;
    int64_t hi = value_of(r->value, op_binder_hi(op, 0)).u.i;
    for (int64_t i = lo; i < hi; i++) {
        r->value[op->binder[0].var->id] = scalar_int(DT_INDEX, i);
        run_host_region(r, op->region[0]);
    }
}

UNUSED static void run_host_op(Run *r, const Op *op) {
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
UNUSED static bool run_kernel(Run *r, const Data *data, const int64_t *dims) {
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

#endif

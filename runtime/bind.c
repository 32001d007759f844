// Arguments: names, types, ranks, extents, scalars.
#include "runtime/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/abi.h"
#include "lang/base/numeric.h"
#include "runtime/error.h"
#include "runtime/overlap.h"

#define MEMORY_MAX ((int64_t)1 << 60) // bits: what an address can reach
#define BAD(...)   rt_fail(FUSE_RT_INVALID_ARGUMENT, __VA_ARGS__)

// --- frames ---

static size_t round16(size_t n) {
    return (n + 15) & ~(size_t)15;
}

static void *carve(char **at, size_t count, size_t size) {
    void *p = *at;
    *at += round16(count * size);
    return p;
}

static char *frame_layout(Frame *f, const Instance *k, char *at) {
    f->instance = k;
    f->tensor = carve(&at, k->max_tensors, sizeof *f->tensor);
    f->scalar = carve(&at, (size_t)k->nparam, sizeof *f->scalar);
    f->dim = carve(&at, (size_t)k->ndim, sizeof *f->dim);
    f->bound_by = carve(&at, (size_t)k->ndim, sizeof *f->bound_by);
    f->arg = carve(&at, (size_t)k->nparam, sizeof *f->arg);
    f->slot = carve(&at, k->max_slots, sizeof *f->slot);
    f->value = carve(&at, k->max_launch_words, sizeof *f->value);
    f->pointer = carve(&at, k->max_launch_words, sizeof *f->pointer);
    return at;
}

size_t frame_size(const Instance *k) {
    Frame f;
    char *start = (char *)16; // only distances count
    return (size_t)(frame_layout(&f, k, start) - start);
}

void frame_init(Frame *f, const Instance *k, void *memory) {
    frame_layout(f, k, memory);
}

// --- texts of messages ---

typedef struct Text {
    char s[160];
} Text;

// "[M, K, 128]"
static Text shape_text(const FuseRtParam *p) {
    Text t = {"["};
    size_t at = 1;
    for (int d = 0; d < p->rank && at < sizeof t.s - 24; d++) {
        const char *sep = d ? ", " : "";
        int n = p->dims[d].name ? snprintf(t.s + at, sizeof t.s - at, "%s%s", sep, p->dims[d].name)
                : p->dims[d].value >= 0
                    ? snprintf(t.s + at, sizeof t.s - at, "%s%" PRId64, sep, p->dims[d].value)
                    : snprintf(t.s + at, sizeof t.s - at, "%s_", sep);
        at += (size_t)n < sizeof t.s - at ? (size_t)n : sizeof t.s - at - 1;
    }
    snprintf(t.s + at, sizeof t.s - at, "]");
    return t;
}

static Text type_text(DLDataType t) {
    Text out;
    DType dtype = dtype_from_dlpack(t.code, t.bits, t.lanes);
    if (dtype != DT_NONE)
        snprintf(out.s, sizeof out.s, "%s", dtype_name(dtype));
    else
        snprintf(out.s, sizeof out.s, "DLPack type (code %d, %d bits, %d lanes)", t.code, t.bits,
                 t.lanes);
    return out;
}

static Text device_text(DLDevice d) {
    Text out;
    switch ((int)d.device_type) {
    case kDLCPU:
        return (Text){"host memory"};
    case kDLCUDAHost:
        return (Text){"page-locked host memory"};
    case kDLCUDA:
    case kDLCUDAManaged:
        snprintf(out.s, sizeof out.s, "memory of cuda:%d", d.device_id);
        return out;
    }
    snprintf(out.s, sizeof out.s, "DLPack device (%d, %d)", (int)d.device_type, d.device_id);
    return out;
}

static const char *kind_text(FuseRtArgKind kind) {
    switch (kind) {
    case FUSE_RT_TENSOR:
        return "a tensor";
    case FUSE_RT_INT:
        return "an integer";
    case FUSE_RT_FLOAT:
        return "a floating-point number";
    case FUSE_RT_ABSENT:
        return "an absent tensor";
    }
    return "an argument of unknown kind";
}

// --- names ---

static int find_param(const Instance *k, const char *name, int likely) {
    if (likely < k->nparam && strcmp(k->param[likely].shown.name, name) == 0)
        return likely;
    for (int i = 0; i < k->nparam; i++)
        if (strcmp(k->param[i].shown.name, name) == 0)
            return i;
    return -1;
}

static FuseRtStatus unknown_name(const Instance *k, const char *name) {
    char list[512] = "";
    size_t at = 0;
    for (int i = 0; i < k->nparam; i++) {
        int n =
            snprintf(list + at, sizeof list - at, "%s`%s`", i ? ", " : "", k->param[i].shown.name);
        at += (size_t)n < sizeof list - at ? (size_t)n : sizeof list - at - 1;
    }
    return BAD("%s has no parameter `%s`; it has %s", k->name, name, list);
}

// An argument that names a dim.
static FuseRtStatus bind_dim_argument(Frame *f, const FuseRtArg *a) {
    const Instance *k = f->instance;
    int at = 0;
    while (at < k->ndim && strcmp(k->dim[at].name, a->name) != 0)
        at++;
    if (at == k->ndim)
        return unknown_name(k, a->name);
    const PlanDim *d = &k->dim[at];
    if (a->kind != FUSE_RT_INT)
        return BAD("%s: dim `%s` takes an integer, %s was given", k->name, d->name,
                   kind_text(a->kind));
    if (a->i < 0)
        return BAD("%s: dim `%s` is %" PRId64 ", less than 0", k->name, d->name, a->i);
    if (f->bound_by[at].param == -1 && d->fixed < 0 && f->dim[at] >= 0)
        return BAD("%s: dim `%s` is given twice", k->name, d->name);
    if (d->fixed >= 0 && a->i != d->fixed)
        return BAD("%s: dim `%s` is fixed to %" PRId64 ", %" PRId64 " was given", k->name, d->name,
                   d->fixed, a->i);
    f->dim[at] = a->i;
    f->bound_by[at] = (BoundBy){-1, 0};
    return FUSE_RT_OK;
}

FuseRtStatus bind_names(Frame *f, int nargs, const FuseRtArg *args, bool partial) {
    const Instance *k = f->instance;
    for (int i = 0; i < k->nparam; i++)
        f->arg[i] = NULL;
    for (int i = 0; i < k->ndim; i++) {
        f->dim[i] = k->dim[i].fixed;
        f->bound_by[i] = (BoundBy){-2, 0};
    }
    if (nargs < 0 || (nargs > 0 && !args))
        return BAD("%s: a list of %d arguments that is null or of negative length", k->name, nargs);
    for (int i = 0; i < nargs; i++) {
        const FuseRtArg *a = &args[i];
        int at = a->name ? find_param(k, a->name, i) : i;
        if (!a->name && i >= k->nparam)
            return BAD("%s takes %d arguments by position; argument %d is one too many", k->name,
                       k->nparam, i + 1);
        if (at < 0) {
            FuseRtStatus status = bind_dim_argument(f, a);
            if (status != FUSE_RT_OK)
                return status;
            continue;
        }
        if (f->arg[at])
            return BAD("%s: argument `%s` is given twice", k->name, k->param[at].shown.name);
        f->arg[at] = a;
    }
    for (int i = 0; i < k->nparam && !partial; i++) {
        const FuseRtParam *p = &k->param[i].shown;
        if (!f->arg[i] && !p->optional && !p->has_default)
            return BAD("%s: argument `%s` is missing", k->name, p->name);
    }
    return FUSE_RT_OK;
}

static bool same_type(DLDataType a, DLDataType b) {
    return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool bind_types_match(const Instance *k, const FuseRtArg *const *arg) {
    for (int i = 0; i < k->nparam; i++) {
        const FuseRtArg *a = arg[i];
        bool has_type = a && a->kind == FUSE_RT_TENSOR && a->tensor && k->param[i].mem;
        if (has_type && !same_type(a->tensor->dtype, k->param[i].dlpack))
            return false;
    }
    return true;
}

// --- scalars ---

static FuseRtStatus bind_scalar(Frame *f, int i) {
    const Instance *k = f->instance;
    const PlanParam *p = &k->param[i];
    const FuseRtArg *a = f->arg[i];
    const char *name = p->shown.name, *type = p->shown.dtype;
    if (!a) {
        f->scalar[i] = p->dflt;
        return FUSE_RT_OK;
    }
    if (a->kind != FUSE_RT_INT && a->kind != FUSE_RT_FLOAT)
        return BAD("%s: argument `%s` is a scalar (%s), %s was given", k->name, name, type,
                   kind_text(a->kind));
    if (dtype_is_float(p->dtype)) {
        f->scalar[i].f = a->kind == FUSE_RT_INT ? numeric_from_int(p->dtype, DT_I64, a->i)
                                                : numeric_round(p->dtype, a->f);
        return FUSE_RT_OK;
    }
    if (a->kind == FUSE_RT_FLOAT)
        return BAD("%s: argument `%s` is of type %s, a floating-point number was given", k->name,
                   name, type);
    bool fits = p->dtype == DT_BOOL  ? a->i == 0 || a->i == 1
                : p->dtype == DT_U64 ? a->i >= 0
                                     : numeric_wrap(p->dtype, a->i) == a->i;
    if (!fits)
        return BAD("%s: argument `%s`: %" PRId64 " is no value of type %s", k->name, name, a->i,
                   type);
    f->scalar[i].i = a->i;
    return FUSE_RT_OK;
}

// --- tensors ---

static bool device_fits(DLDevice of, DLDevice want) {
    switch ((int)of.device_type) {
    case kDLCPU:
        return want.device_type == kDLCPU;
    case kDLCUDAHost:
    case kDLCUDAManaged:
        return true; // both sides can reach it
    case kDLCUDA:
        return want.device_type == kDLCUDA && of.device_id == want.device_id;
    }
    return false;
}

static void bind_absent(TensorBind *t) {
    *t = (TensorBind){0};
}

static FuseRtStatus bind_shape(const Frame *f, int i, const DLTensor *from, TensorBind *t) {
    const PlanParam *p = &f->instance->param[i];
    const char *kernel = f->instance->name, *name = p->shown.name;
    int rank = from->ndim;
    if (rank > 0 && !from->shape)
        return BAD("%s: argument `%s` has no shape (a null pointer)", kernel, name);
    int64_t count = 1;
    bool empty = false, too_many = false;
    for (int d = 0; d < rank; d++) {
        t->shape[d] = from->shape[d];
        if (from->shape[d] < 0)
            return BAD("%s: argument `%s`: dim %d is %" PRId64, kernel, name, d, from->shape[d]);
        empty |= from->shape[d] == 0;
        too_many |= __builtin_mul_overflow(count, from->shape[d] ? from->shape[d] : 1, &count);
    }
    if (too_many && !empty)
        return BAD("%s: argument `%s` has more than 2^63 elements", kernel, name);
    t->count = empty ? 0 : count;
    int64_t dense = 1, reach = 0;
    bool too_far = false;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t span, size = from->shape[d] > 0 ? from->shape[d] : 1;
        t->stride[d] = from->strides ? from->strides[d] : dense;
        dense = (int64_t)((uint64_t)dense * (uint64_t)size);
        too_far |= __builtin_mul_overflow(size - 1, t->stride[d], &span);
        too_far |= __builtin_add_overflow(reach, span < 0 ? -(span + 1) : span, &reach);
    }
    if (!empty && (too_far || reach > MEMORY_MAX / (int64_t)p->bits))
        return BAD("%s: argument `%s`: its strides lead out of the address space", kernel, name);
    return FUSE_RT_OK;
}

static FuseRtStatus bind_tensor(Frame *f, int i, DLDevice device, const char *device_name,
                                bool partial) {
    const PlanParam *p = &f->instance->param[i];
    const FuseRtArg *a = f->arg[i];
    const char *kernel = f->instance->name, *name = p->shown.name;
    TensorBind *t = &f->tensor[i];
    bool absent = !a || a->kind == FUSE_RT_ABSENT ||
                  (a->kind == FUSE_RT_TENSOR && !a->tensor && p->shown.optional);
    if (absent && a && !p->shown.optional)
        return BAD("%s: argument `%s` is absent, but not optional", kernel, name);
    if (absent) {
        bind_absent(t);
        return FUSE_RT_OK;
    }
    if (a->kind != FUSE_RT_TENSOR)
        return BAD("%s: argument `%s` is a tensor, %s was given", kernel, name, kind_text(a->kind));
    const DLTensor *from = a->tensor;
    if (!from)
        return BAD("%s: argument `%s` is a null tensor", kernel, name);
    if (from->ndim != p->shown.rank)
        return BAD("%s: argument `%s` has %d dims, %d are expected: %s%s", kernel, name, from->ndim,
                   p->shown.rank, p->shown.dtype, shape_text(&p->shown).s);
    if (!same_type(from->dtype, p->dlpack))
        return BAD("%s: argument `%s` is of type %s, %s is expected", kernel, name,
                   type_text(from->dtype).s, p->shown.dtype);
    if (!partial && !device_fits(from->device, device))
        return BAD("%s: argument `%s` is in %s, but the kernel runs on %s", kernel, name,
                   device_text(from->device).s, device_name);
    FuseRtStatus status = bind_shape(f, i, from, t);
    if (status != FUSE_RT_OK)
        return status;
    t->present = true;
    t->data = from->data ? (char *)from->data + from->byte_offset : NULL;
    if (!from->data && t->count > 0 && !partial) {
        if (p->shown.optional) {
            bind_absent(t);
            return FUSE_RT_OK;
        }
        return BAD("%s: argument `%s` has %" PRId64 " elements, but no data (a null pointer)",
                   kernel, name, t->count);
    }
    uint32_t bytes = p->bits / 8;
    if (bytes > 1 && (uintptr_t)t->data % bytes != 0)
        return BAD("%s: argument `%s`: address %p is not a multiple of %u, the size of %s", kernel,
                   name, (void *)t->data, bytes, p->shown.dtype);
    return FUSE_RT_OK;
}

// --- dims ---

static FuseRtStatus dim_differs(const Frame *f, int i, int d) {
    const Instance *k = f->instance;
    const PlanParam *p = &k->param[i];
    int at = p->dim[d].dim;
    BoundBy by = f->bound_by[at];
    int64_t given = f->tensor[i].shape[d];
    if (by.param < 0)
        return BAD("%s: argument `%s`: dim %d (%s) is %" PRId64 ", but `%s` is given as %" PRId64,
                   k->name, p->shown.name, d, k->dim[at].name, given, k->dim[at].name, f->dim[at]);
    return BAD("%s: argument `%s`: dim %d (%s) is %" PRId64 ", but dim %d of `%s` is %" PRId64,
               k->name, p->shown.name, d, k->dim[at].name, given, by.dim,
               k->param[by.param].shown.name, f->dim[at]);
}

static FuseRtStatus bind_dims(Frame *f, int i) {
    const PlanParam *p = &f->instance->param[i];
    const TensorBind *t = &f->tensor[i];
    for (int d = 0; d < p->shown.rank && t->present; d++) {
        const DimRef *ref = &p->dim[d];
        const char *name = p->shown.dims[d].name;
        if (ref->dim >= 0) {
            int64_t *bound = &f->dim[ref->dim];
            if (*bound < 0) {
                *bound = t->shape[d];
                f->bound_by[ref->dim] = (BoundBy){(int16_t)i, (int16_t)d};
            } else if (*bound != t->shape[d]) {
                return dim_differs(f, i, d);
            }
        } else if (ref->fixed >= 0 && ref->fixed != t->shape[d]) {
            return BAD("%s: argument `%s`: dim %d%s%s%s is %" PRId64 ", %" PRId64 " is expected",
                       f->instance->name, p->shown.name, d, name ? " (" : "", name ? name : "",
                       name ? ")" : "", t->shape[d], ref->fixed);
        }
    }
    return FUSE_RT_OK;
}

// Dims that no argument carries, from the equations among the `where` conditions.
static FuseRtStatus solve_dims(Frame *f) {
    const Instance *k = f->instance;
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < k->nequation; i++) {
            const Equation *e = &k->equation[i];
            int dim;
            int64_t size;
            Solution solution = bind_solve(f, e, &dim, &size);
            if (solution == SOLUTION_NONE)
                return BAD(
                    "%s: with these arguments no size of the dim `%s` meets the condition `%s`",
                    k->name, k->dim[dim].name, e->text);
            if (solution == SOLUTION_FOUND) {
                f->dim[dim] = size;
                f->bound_by[dim] = (BoundBy){-1, 0};
                changed = true;
            }
        }
    }
    return FUSE_RT_OK;
}

// A dim that only absent tensors carry is 0, as their extents are.
static bool only_absent(const Frame *f, int dim) {
    bool any = false;
    for (int i = 0; i < f->instance->nparam; i++) {
        const PlanParam *p = &f->instance->param[i];
        for (int d = 0; p->mem && d < p->shown.rank; d++)
            any |= p->dim[d].dim == dim && !f->tensor[i].present;
    }
    return any;
}

static FuseRtStatus check_dims(const Frame *f) {
    const Instance *k = f->instance;
    for (int i = 0; i < k->ndim; i++)
        if (f->dim[i] > INT64_C(1) << ABI_DIM_BITS)
            return BAD("%s: dim `%s` is %" PRId64 ", more than 2^%d", k->name, k->dim[i].name,
                       f->dim[i], ABI_DIM_BITS);
    return FUSE_RT_OK;
}

FuseRtStatus bind_values(Frame *f, DLDevice device, const char *device_name, bool partial) {
    const Instance *k = f->instance;
    FuseRtStatus status = FUSE_RT_OK;
    for (int i = 0; i < k->nparam && status == FUSE_RT_OK; i++)
        if (!k->param[i].mem)
            status = bind_scalar(f, i);
    for (int i = 0; i < k->nparam && status == FUSE_RT_OK; i++) {
        if (!k->param[i].mem)
            continue;
        status = bind_tensor(f, i, device, device_name, partial);
        if (status == FUSE_RT_OK)
            status = bind_dims(f, i);
    }
    if (status != FUSE_RT_OK)
        return status;
    bool all = true;
    for (int i = 0; i < k->ndim; i++)
        all &= f->dim[i] >= 0;
    if (!all)
        status = solve_dims(f);
    if (status == FUSE_RT_OK)
        status = bind_conditions(f);
    for (int i = 0; i < k->ndim && !partial && status == FUSE_RT_OK; i++) {
        if (f->dim[i] >= 0)
            continue;
        if (!only_absent(f, i))
            return BAD("%s: no argument says what dim `%s` is; give it as an integer argument `%s`",
                       k->name, k->dim[i].name, k->dim[i].name);
        f->dim[i] = 0;
    }
    return status == FUSE_RT_OK ? check_dims(f) : status;
}

// --- overlap ---

static Strided strided(const Frame *f, int i) {
    const TensorBind *t = &f->tensor[i];
    const PlanParam *p = &f->instance->param[i];
    return (Strided){(uint64_t)(uintptr_t)t->data, p->bits, p->shown.rank, t->shape, t->stride};
}

FuseRtStatus bind_overlap(const Frame *f) {
    const Instance *k = f->instance;
    for (int i = 0; i < k->nparam; i++) {
        const FuseRtParam *p = &k->param[i].shown;
        if (!k->param[i].mem || p->mode == FUSE_RT_IN || f->tensor[i].count == 0)
            continue;
        Strided a = strided(f, i);
        if (overlap_within(&a) != OVERLAP_NO)
            return BAD(
                "%s: argument `%s` is written, but several of its elements are at one address",
                k->name, p->name);
        for (int j = 0; j < k->nparam; j++) {
            const FuseRtParam *q = &k->param[j].shown;
            bool seen = q->mode != FUSE_RT_IN && j < i; // the pair was compared the other way round
            if (j == i || seen || !k->param[j].mem || f->tensor[j].count == 0)
                continue;
            Strided b = strided(f, j);
            Overlap found = overlap_between(&a, &b);
            if (found != OVERLAP_NO)
                return BAD("%s: arguments `%s` and `%s` %s elements, and `%s` is written", k->name,
                           q->name, p->name, found == OVERLAP_YES ? "share" : "may share", p->name);
        }
    }
    return FUSE_RT_OK;
}

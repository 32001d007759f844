// fuse_rt_launch: bind, choose the variant, run its program; workspaces; the ways to start a grid.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/module.h"
#include "runtime/plan_run.h"

enum { FRAME_ON_STACK = 12288 };

// --- starting a grid ---

typedef struct Start {
    FuseModule *module;
    void *stream;
} Start;

static FuseRtStatus find_function(FuseModule *m, LaunchPlan *l, CudaFunction **out) {
    const CudaDriver *cuda = &m->device->cuda;
    CudaFunction *f = NULL;
    FuseRtStatus status =
        cuda_check(cuda, cuda->module_function(&f, m->cuda, l->entry), "cuModuleGetFunction");
    if (status != FUSE_RT_OK)
        return rt_fail(status, "launch %s: %s", l->entry, fuse_rt_last_error());
    if (l->smem > m->device->max_shared)
        return rt_fail(FUSE_RT_UNSUPPORTED,
                       "launch %s needs %" PRId64 " bytes of shared memory; %s has %d", l->entry,
                       l->smem, m->device->name, m->device->max_shared);
    if (l->smem > 0) {
        status = cuda_check(cuda, cuda->function_set(f, CUDA_MAX_DYNAMIC_SHARED, (int)l->smem),
                            "cuFuncSetAttribute");
        if (status != FUSE_RT_OK)
            return rt_fail(status, "launch %s (%" PRId64 " bytes of shared memory): %s", l->entry,
                           l->smem, fuse_rt_last_error());
    }
    atomic_store_explicit(&l->function, f, memory_order_release); // two threads store the same
    *out = f;
    return FUSE_RT_OK;
}

static CudaResult launch_ex(const CudaDriver *cuda, CudaFunction *f, const LaunchPlan *l,
                            unsigned grid, CudaStream *stream, void **params) {
    CudaLaunchAttribute attributes[2] = {0};
    unsigned n = 0;
    if (l->cluster > 1) {
        attributes[n].id = CUDA_LAUNCH_CLUSTER;
        attributes[n].value.cluster.x = (unsigned)l->cluster;
        attributes[n].value.cluster.y = attributes[n].value.cluster.z = 1;
        n++;
    }
    if (l->pdl) {
        attributes[n].id = CUDA_LAUNCH_PROGRAMMATIC;
        attributes[n++].value.programmatic = 1;
    }
    CudaLaunchConfig config = {.grid_x = grid,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 32 * (unsigned)l->warps,
                               .block_y = 1,
                               .block_z = 1,
                               .shared_bytes = (unsigned)l->smem,
                               .stream = stream,
                               .attributes = attributes,
                               .nattributes = n};
    return cuda->launch_ex(&config, f, params, NULL);
}

static FuseRtStatus get_function(FuseModule *m, LaunchPlan *l, CudaFunction **out) {
    *out = atomic_load_explicit(&l->function, memory_order_acquire);
    return *out ? FUSE_RT_OK : find_function(m, l, out);
}

static FuseRtStatus cuda_resident(void *user, LaunchPlan *l, int *out) {
    const Start *s = user;
    const CudaDriver *cuda = &s->module->device->cuda;
    CudaFunction *f;
    *out = atomic_load_explicit(&l->resident, memory_order_relaxed);
    if (*out > 0 || !cuda->resident) {
        *out = *out > 0 ? *out : 1;
        return FUSE_RT_OK;
    }
    FuseRtStatus status = get_function(s->module, l, &f);
    if (status == FUSE_RT_OK)
        status = cuda_check(cuda, cuda->resident(out, f, 32 * l->warps, (size_t)l->smem),
                            "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *out = *out > 0 ? *out : 1; // what does not fit says so when it is launched
    if (status == FUSE_RT_OK)
        atomic_store_explicit(&l->resident, *out, memory_order_relaxed);
    return status;
}

static FuseRtStatus cuda_start(void *user, LaunchPlan *l, int64_t grid, void **params) {
    const Start *s = user;
    const CudaDriver *cuda = &s->module->device->cuda;
    CudaFunction *f;
    FuseRtStatus found = get_function(s->module, l, &f);
    if (found != FUSE_RT_OK)
        return found;
    bool extended = l->cluster > 1 || (l->pdl && cuda->launch_ex);
    if (extended && !cuda->launch_ex)
        return rt_fail(FUSE_RT_UNSUPPORTED,
                       "launch %s needs clusters, which this driver does not have", l->entry);
    CudaResult result = extended ? launch_ex(cuda, f, l, (unsigned)grid, s->stream, params)
                                 : cuda->launch(f, (unsigned)grid, 1, 1, 32 * (unsigned)l->warps, 1,
                                                1, (unsigned)l->smem, s->stream, params, NULL);
    if (result == CUDA_OK)
        return FUSE_RT_OK;
    FuseRtStatus status =
        cuda_check(cuda, result, extended ? "cuLaunchKernelEx" : "cuLaunchKernel");
    return rt_fail(status,
                   "launch %s: %s (grid %" PRId64 ", %d warps, %" PRId64 " bytes of shared memory)",
                   l->entry, fuse_rt_last_error(), grid, l->warps, l->smem);
}

static FuseRtStatus cuda_zero(void *user, void *memory, int64_t bytes) {
    const Start *s = user;
    const CudaDriver *cuda = &s->module->device->cuda;
    return cuda_check(cuda, cuda->fill((CudaPointer)(uintptr_t)memory, 0, (size_t)bytes, s->stream),
                      "cuMemsetD8Async");
}

// --- tensor maps ---

static int map_type(DType dtype) {
    switch (dtype) {
    case DT_F16:
        return CUDA_MAP_F16;
    case DT_BF16:
        return CUDA_MAP_BF16;
    case DT_F32:
        return CUDA_MAP_F32;
    case DT_F64:
        return CUDA_MAP_F64;
    case DT_BOOL:
    case DT_I8:
    case DT_U8:
    case DT_E4M3:
    case DT_E5M2:
        return CUDA_MAP_U8;
    case DT_I16:
    case DT_U16:
        return CUDA_MAP_U16;
    case DT_I32:
    case DT_U32:
        return CUDA_MAP_U32;
    case DT_I64:
    case DT_U64:
    case DT_INDEX:
        return CUDA_MAP_U64;
    case DT_I4:
    case DT_U4:
    case DT_NONE:
    case DT_COUNT_:
        break;
    }
    return -1;
}

// The driver takes half a microsecond for it: as long as a lock and a look-up would.
static FuseRtStatus cuda_map(void *user, const LaunchParam *p, const TensorBind *t, void *out) {
    const Start *s = user;
    const CudaDriver *cuda = &s->module->device->cuda;
    const AbiMap *m = p->map;
    int type = map_type(p->dtype), swizzle = 0;
    uint64_t dims[ABI_MAP_RANK], strides[ABI_MAP_RANK];
    unsigned box[ABI_MAP_RANK], steps[ABI_MAP_RANK];
    if (!cuda->tensor_map || type < 0)
        return rt_fail(FUSE_RT_UNSUPPORTED, "this driver has no tensor maps of %s",
                       dtype_name(p->dtype));
    while (swizzle < 3 && m->swizzle >= 32 << swizzle)
        swizzle++;
    for (int i = 0; i < m->rank; i++) {
        int64_t bytes = t->stride[m->dim[i]] * (int64_t)dtype_bytes(p->dtype, 1);
        dims[i] = (uint64_t)t->shape[m->dim[i]];
        // of a dim of one element any stride is right
        strides[i] = t->shape[m->dim[i]] > 1 ? (uint64_t)bytes : 16;
        box[i] = (unsigned)m->box[i];
        steps[i] = 1;
    }
    _Alignas(64) unsigned char map[ABI_MAP_BYTES];
    CudaResult result = cuda->tensor_map(map, type, (unsigned)m->rank, t->data, dims, strides + 1,
                                         box, steps, 0, swizzle, CUDA_MAP_PROMOTE_256, 0);
    if (result != CUDA_OK)
        return cuda_check(cuda, result, "cuTensorMapEncodeTiled");
    memcpy(out, map, sizeof map);
    return FUSE_RT_OK;
}

// The simulator's map; it refuses what the driver would.
static FuseRtStatus host_map(void *user, const LaunchParam *p, const TensorBind *t, void *out) {
    (void)user;
    const AbiMap *m = p->map;
    int64_t bytes = (int64_t)dtype_bytes(p->dtype, 1);
    AbiHostMap map = {.magic = ABI_HOST_MAP,
                      .rank = (uint8_t)m->rank,
                      .bytes = (uint8_t)bytes,
                      .swizzle = (uint16_t)m->swizzle,
                      .base = t->data};
    for (int i = 0; i < m->rank; i++) {
        int64_t extent = t->shape[m->dim[i]];
        map.dim[i] = (uint64_t)extent;
        // of a dim of one element any stride is right
        map.stride[i] = extent > 1 ? t->stride[m->dim[i]] * bytes : 16;
        map.box[i] = (uint32_t)m->box[i];
    }
    memcpy(out, &map, sizeof map);
    return FUSE_RT_OK;
}

static FuseRtStatus host_start(void *user, LaunchPlan *l, int64_t grid, void **params) {
    const Start *s = user;
    FuseModule *m = s->module;
    const char *message = m->compiler->host_launch(m->result, l->entry, params, grid, l->warps,
                                                   l->smem, m->device->threads, m->device->seed);
    return message
               ? rt_fail(FUSE_RT_DRIVER, "launch %s on %s: %s", l->entry, m->device->name, message)
               : FUSE_RT_OK;
}

static FuseRtStatus host_zero(void *user, void *memory, int64_t bytes) {
    (void)user;
    memset(memory, 0, (size_t)bytes);
    return FUSE_RT_OK;
}

// --- workspaces ---

static uint64_t stream_key(const FuseDevice *d, void *stream) {
    unsigned long long id;
    // A handle may be used again for another stream, an id is not.
    if (d->kind == DEVICE_CUDA && d->cuda.stream_id && d->cuda.stream_id(stream, &id) == CUDA_OK)
        return id;
    return (uint64_t)(uintptr_t)stream;
}

// The stream's workspace, or the one that was used longest ago. The cache is locked.
static Workspace *workspace_find(WorkspaceCache *c, uint64_t key) {
    Workspace *oldest = &c->slot[0];
    for (int i = 0; i < WORKSPACES_MAX; i++) {
        Workspace *w = &c->slot[i];
        if (w->used && w->stream == key)
            return w;
        if (w->used < oldest->used)
            oldest = w;
    }
    return oldest;
}

static FuseRtStatus workspace_take(FuseDevice *d, WorkspaceCache *c, void *stream, int64_t bytes,
                                   void **out) {
    uint64_t key = stream_key(d, stream);
    Workspace *w = workspace_find(c, key);
    bool fits = w->used && w->stream == key && w->bytes >= bytes;
    if (!fits) {
        FuseRtStatus status = fuse_rt_free(d, w->memory); // cuMemFree waits for those who use it
        *w = (Workspace){0};
        if (status == FUSE_RT_OK)
            status = fuse_rt_alloc(d, (size_t)bytes, &w->memory);
        if (status != FUSE_RT_OK)
            return status;
        w->bytes = bytes;
        w->stream = key;
    }
    w->used = ++c->clock;
    *out = w->memory;
    return FUSE_RT_OK;
}

void workspace_cache_free(const FuseDevice *device, WorkspaceCache *cache) {
    for (int i = 0; i < WORKSPACES_MAX; i++)
        fuse_rt_free((FuseDevice *)device, cache->slot[i].memory);
    pthread_mutex_destroy(&cache->lock);
}

// --- variants ---

static FuseRtStatus no_variant(const Frame *f) {
    return rt_fail(FUSE_RT_NO_VARIANT, "%s: none of its %d variants takes these arguments",
                   f->instance->name, f->instance->nvariant);
}

// Runs the first variant that fits. Without `target` it is a dry run.
static FuseRtStatus run_first(const FuseDevice *d, Frame *f, Run *run, const RunTarget *target,
                              int from, int *variant) {
    const Instance *k = f->instance;
    for (int i = from; i < k->nvariant; i++) {
        if (!run_guards_hold(&k->variant[i], f))
            continue;
        *run = (Run){.program = &k->variant[i],
                     .frame = f,
                     .target = target,
                     .sms = d->sms,
                     .workspace = run->workspace};
        RunResult result = run_program(run);
        if (result == RUN_NO_FIT)
            continue;
        *variant = i;
        return run->status;
    }
    return no_variant(f);
}

// First a dry run, for the size of temporaries and every check, then the real one.
static FuseRtStatus run_rehearsed(FuseKernel *kernel, Frame *f, const RunTarget *target,
                                  const Start *start, Run *run, int *variant) {
    FuseDevice *d = kernel->module->device;
    FuseRtStatus status = run_first(d, f, run, NULL, 0, variant);
    if (status != FUSE_RT_OK)
        return status;
    int64_t bytes = run->peak;
    WorkspaceCache *cache = kernel->workspaces;
    void *memory = NULL;
    pthread_mutex_lock(&cache->lock);
    if (bytes > 0)
        status = workspace_take(d, cache, start->stream, bytes, &memory);
    run->workspace = memory;
    if (status == FUSE_RT_OK)
        status = run_first(d, f, run, target, *variant, variant);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

static FuseRtStatus run_launches(FuseKernel *kernel, Frame *f, void *stream,
                                 FuseRtLaunchInfo *info) {
    FuseModule *m = kernel->module;
    FuseDevice *d = m->device;
    bool cuda = d->kind == DEVICE_CUDA;
    Start start = {m, stream};
    RunTarget target = {cuda ? cuda_start : host_start, cuda ? cuda_zero : host_zero,
                        cuda ? cuda_map : host_map, cuda ? cuda_resident : NULL, &start};
    DeviceScope scope = {0};
    FuseRtStatus status = FUSE_RT_OK;
    if (cuda)
        status = device_enter(d, &scope);
    else
        pthread_mutex_lock(&m->lock);
    Run run = {0};
    int variant = 0;
    if (status == FUSE_RT_OK)
        status = f->instance->rehearse ? run_rehearsed(kernel, f, &target, &start, &run, &variant)
                                       : run_first(d, f, &run, &target, 0, &variant);
    if (cuda)
        device_leave(d, scope);
    else
        pthread_mutex_unlock(&m->lock);
    if (info && status == FUSE_RT_OK)
        *info = (FuseRtLaunchInfo){f->instance->name, variant, run.launches, run.peak};
    return status;
}

// --- the evaluator ---

static FuseRtStatus eval_launch(FuseKernel *kernel, Frame *f, FuseRtLaunchInfo *info) {
    const Instance *k = f->instance;
    FuseModule *m = kernel->module;
    Run checks = {0};
    int variant;
    FuseRtStatus status =
        run_first(m->device, f, &checks, NULL, 0, &variant); // the conditions, with our messages
    if (status != FUSE_RT_OK)
        return status;
    FuseArg *args = calloc((size_t)k->nparam + 1, sizeof *args);
    FuseTensor *tensors = calloc((size_t)k->nparam + 1, sizeof *tensors);
    if (!args || !tensors) {
        free(args);
        free(tensors);
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    }
    for (int i = 0; i < k->nparam; i++) {
        const PlanParam *p = &k->param[i];
        args[i] = (FuseArg){.name = p->shown.name, .dtype = p->shown.dtype};
        if (!p->mem) {
            args[i].is_float = dtype_is_float(p->dtype);
            if (args[i].is_float)
                args[i].f = f->scalar[i].f;
            else
                args[i].i = f->scalar[i].i;
            continue;
        }
        const TensorBind *t = &f->tensor[i];
        FuseTensor *to = &tensors[i];
        *to = (FuseTensor){.data = t->data, .dtype = p->shown.dtype, .rank = p->shown.rank};
        if (t->present && !t->data)
            to->data = tensors; // empty, but there: any address will do
        memcpy(to->dims, t->shape, sizeof(int64_t) * (size_t)to->rank);
        memcpy(to->strides, t->stride, sizeof(int64_t) * (size_t)to->rank);
        args[i].tensor = to;
    }
    pthread_mutex_lock(&m->lock);
    const char *message =
        m->compiler->eval_run(m->result, k->name, k->nparam, args, m->device->seed);
    if (message)
        status = rt_fail(FUSE_RT_DRIVER, "%s: %s", k->name, message);
    pthread_mutex_unlock(&m->lock);
    free(args);
    free(tensors);
    if (info && status == FUSE_RT_OK)
        *info = (FuseRtLaunchInfo){k->name, 0, 1, 0};
    return status;
}

// --- choosing the instance ---

static FuseRtStatus no_instance(const FuseKernel *kernel, bool several) {
    char list[512] = "";
    for (int i = 0; i < kernel->ninstance; i++) {
        const char *name = kernel->handle[i]->name;
        if (strlen(list) + strlen(name) + 8 > sizeof list)
            break;
        strcat(strcat(list, i ? ", " : ""), name);
    }
    return rt_fail(FUSE_RT_NO_VARIANT, "`%s`: %s; its instances are %s", kernel->name,
                   several ? "the arguments' types fit several instances"
                           : "no instance has the arguments' types",
                   list);
}

// Binds names and finds the instance; `f` is laid out for it.
static FuseRtStatus choose(FuseKernel *kernel, Frame *f, void *memory, int nargs,
                           const FuseRtArg *args, bool partial, FuseKernel **out) {
    frame_init(f, kernel->instance, memory);
    FuseRtStatus status = bind_names(f, nargs, args, partial);
    *out = kernel->handle[0];
    if (status != FUSE_RT_OK || kernel->ninstance == 1)
        return status;
    int found = -1;
    for (int i = 0; i < kernel->ninstance; i++) {
        if (!bind_types_match(kernel->handle[i]->instance, f->arg))
            continue;
        if (found >= 0)
            return no_instance(kernel, true);
        found = i;
    }
    if (found < 0)
        return no_instance(kernel, false);
    *out = kernel->handle[found];
    frame_init(f, (*out)->instance, memory);
    return bind_names(f, nargs, args, partial);
}

// --- the public functions ---

static FuseRtStatus launch_frame(FuseKernel *kernel, void *memory, void *stream, int nargs,
                                 const FuseRtArg *args, FuseRtLaunchInfo *info) {
    Frame f;
    FuseKernel *instance;
    const FuseDevice *d = kernel->module->device;
    FuseRtStatus status = choose(kernel, &f, memory, nargs, args, false, &instance);
    if (status == FUSE_RT_OK)
        status = bind_values(&f, fuse_rt_device_dlpack(d), d->name, false);
    if (status == FUSE_RT_OK)
        status = bind_overlap(&f);
    if (status != FUSE_RT_OK)
        return status;
    return d->kind == DEVICE_EVAL ? eval_launch(instance, &f, info)
                                  : run_launches(instance, &f, stream, info);
}

FuseRtStatus fuse_rt_launch(FuseKernel *kernel, void *stream, int nargs, const FuseRtArg *args,
                            FuseRtLaunchInfo *info) {
    if (!kernel)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_launch: a null pointer");
    _Alignas(16) char small[FRAME_ON_STACK];
    if (kernel->frame_bytes <= sizeof small)
        return launch_frame(kernel, small, stream, nargs, args, info);
    void *memory = malloc(kernel->frame_bytes);
    if (!memory)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    FuseRtStatus status = launch_frame(kernel, memory, stream, nargs, args, info);
    free(memory);
    return status;
}

FuseRtStatus fuse_rt_kernel_select(FuseKernel *kernel, int nargs, const FuseRtArg *args,
                                   FuseKernel **out) {
    if (!kernel || !out)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_kernel_select: a null pointer");
    void *memory = malloc(kernel->frame_bytes + 1);
    if (!memory)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    Frame f;
    FuseRtStatus status = choose(kernel, &f, memory, nargs, args, true, out);
    if (status != FUSE_RT_OK)
        *out = NULL;
    free(memory);
    return status;
}

// The name of an input other than `param` that has the dim and is not given; NULL: there is none.
static const char *missing_carrier(const Frame *f, int param, int dim) {
    for (int i = 0; i < f->instance->nparam; i++) {
        const PlanParam *p = &f->instance->param[i];
        if (i == param || !p->mem || f->arg[i] || p->shown.optional || p->shown.mode == FUSE_RT_OUT)
            continue;
        for (int d = 0; d < p->shown.rank; d++)
            if (p->dim[d].dim == dim)
                return p->shown.name;
    }
    return NULL;
}

static FuseRtStatus shape_of(const Frame *f, int param, int64_t *shape) {
    const Instance *k = f->instance;
    const PlanParam *p = &k->param[param];
    for (int d = 0; d < p->shown.rank; d++) {
        const DimRef *ref = &p->dim[d];
        int64_t n = ref->fixed;
        if (ref->dim >= 0)
            n = f->dim[ref->dim];
        else if (n < 0 && !bind_evaluate(f, ref->value, &n))
            n = -1;
        const char *missing = n < 0 && ref->dim >= 0 ? missing_carrier(f, param, ref->dim) : NULL;
        if (missing)
            return rt_fail(FUSE_RT_INVALID_ARGUMENT,
                           "%s: argument `%s` is missing, and nothing else says what dim `%s` is",
                           k->name, missing, k->dim[ref->dim].name);
        if (n < 0 && ref->dim >= 0)
            return rt_fail(
                FUSE_RT_INVALID_ARGUMENT,
                "%s: no argument says what dim `%s` is; give it as an integer argument `%s`",
                k->name, k->dim[ref->dim].name, k->dim[ref->dim].name);
        if (n < 0)
            return rt_fail(FUSE_RT_INVALID_ARGUMENT, "%s: no argument says what dim %d of `%s` is",
                           k->name, d, p->shown.name);
        shape[d] = n;
    }
    return FUSE_RT_OK;
}

FuseRtStatus fuse_rt_kernel_shape(FuseKernel *kernel, int nargs, const FuseRtArg *args, int param,
                                  int64_t shape[FUSE_RT_MAX_RANK]) {
    if (!kernel || !shape)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_kernel_shape: a null pointer");
    if (param < 0 || param >= kernel->instance->nparam || !kernel->instance->param[param].mem)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "`%s` has no tensor parameter number %d",
                       kernel->name, param);
    void *memory = malloc(kernel->frame_bytes + 1);
    if (!memory)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    Frame f;
    FuseKernel *instance;
    const FuseDevice *d = kernel->module->device;
    FuseRtStatus status = choose(kernel, &f, memory, nargs, args, true, &instance);
    if (status == FUSE_RT_OK)
        status = bind_values(&f, fuse_rt_device_dlpack(d), d->name, true);
    if (status == FUSE_RT_OK)
        status = shape_of(&f, param, shape);
    free(memory);
    return status;
}

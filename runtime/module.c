// Modules: from source, PTX or a file to loaded code and its kernels.
#include "runtime/module.h"

#include "lang/base/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/base/vec.h"
#include "runtime/bind.h"
#include "runtime/error.h"

// --- kernels of a plan ---

static void handle_init(FuseModule *m, FuseKernel *h, const Instance *k) {
    *h = (FuseKernel){.module = m, .name = k->name, .ninstance = 1, .instance = k};
    h->handle = ARENA_NEW(m->arena, FuseKernel *);
    h->handle[0] = h;
    h->frame_bytes = frame_size(k);
    h->workspaces = ARENA_NEW(m->arena, WorkspaceCache);
    pthread_mutex_init(&h->workspaces->lock, NULL);
    h->param = ARENA_ARRAY(m->arena, FuseRtParam, (size_t)k->nparam);
    for (int i = 0; i < k->nparam; i++)
        h->param[i] = k->param[i].shown;
}

// Instances of one family take the same arguments but for their types.
static bool same_signature(const Instance *a, const Instance *b) {
    if (a->nparam != b->nparam)
        return false;
    for (int i = 0; i < a->nparam; i++) {
        const FuseRtParam *p = &a->param[i].shown, *q = &b->param[i].shown;
        if (strcmp(p->name, q->name) != 0 || p->kind != q->kind || p->rank != q->rank ||
            p->mode != q->mode)
            return false;
    }
    return true;
}

static void family_add(FuseKernel *family, FuseKernel *member) {
    family->handle[family->ninstance++] = member;
    if (member->frame_bytes > family->frame_bytes)
        family->frame_bytes = member->frame_bytes;
    for (int i = 0; i < family->instance->nparam; i++)
        if (strcmp(family->param[i].dtype, member->param[i].dtype) != 0)
            family->param[i].dtype = "";
}

static void make_handles(FuseModule *m) {
    int n = m->plan.n;
    m->kernel = ARENA_ARRAY(m->arena, FuseKernel, 2 * (size_t)n);
    for (int i = 0; i < n; i++)
        handle_init(m, &m->kernel[i], &m->plan.instance[i]);
    m->ninstance = m->nkernel = n;
    for (int i = 0; i < n; i++) {
        const Instance *k = &m->plan.instance[i];
        FuseKernel *family = NULL;
        for (int j = n; j < m->nkernel; j++)
            if (strcmp(m->kernel[j].name, k->family) == 0 &&
                same_signature(m->kernel[j].instance, k))
                family = &m->kernel[j];
        if (!family) {
            family = &m->kernel[m->nkernel++];
            *family = (FuseKernel){.module = m, .name = k->family, .instance = k};
            family->handle = ARENA_ARRAY(m->arena, FuseKernel *, (size_t)n);
            family->param =
                arena_copy(m->arena, m->kernel[i].param, sizeof(FuseRtParam) * (size_t)k->nparam);
        }
        family_add(family, &m->kernel[i]);
    }
}

static void module_arena(void *user) {
    FuseModule *m = user;
    m->arena = arena_new("fuse_rt module");
}

static FuseModule *module_new(FuseDevice *device) {
    FuseModule *m = calloc(1, sizeof *m);
    GuardReport end;
    if (!m || !guard_memory(module_arena, m, &end)) {
        free(m);
        return NULL;
    }
    m->device = device;
    m->messages = "";
    m->plan_text = "";
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static FuseRtStatus read_plan(FuseModule *m, const char *name, const char *text, size_t len) {
    const char *error = NULL;
    PlanForm form = m->device->kind == DEVICE_EVAL ? PLAN_CHECKS : PLAN_LAUNCHES;
    m->plan_text = arena_strndup(m->arena, text, len);
    if (!plan_read(m->arena, m->plan_text, len, form, &m->plan, &error))
        return rt_fail(m->result ? FUSE_RT_INTERNAL : FUSE_RT_IO,
                       "%s: the launch plan cannot be read: %s", name, error ? error : "?");
    make_handles(m);
    return FUSE_RT_OK;
}

// --- PTX ---

static FuseRtStatus load_failed(const FuseDevice *d, const char *name, const PtxHeader *h,
                                CudaResult result, const char *log) {
    int version = 0;
    d->cuda.driver_version(&version);
    if (result == CUDA_UNSUPPORTED_PTX_VERSION)
        return rt_fail(
            FUSE_RT_COMPILE,
            "%s: its PTX has version %s, which is newer than this driver (CUDA %d.%d) reads: "
            "update the driver",
            name, h->version, version / 1000, version % 1000 / 10);
    FuseRtStatus status = cuda_check(&d->cuda, result, "cuModuleLoadDataEx");
    if (result == CUDA_INVALID_PTX || result == CUDA_NO_BINARY_FOR_GPU)
        status = FUSE_RT_COMPILE;
    return rt_fail(status, "%s: %s%s%s", name, fuse_rt_last_error(), *log ? "\n" : "", log);
}

// A cubin runs on its generation only, PTX on later ones too.
static bool device_runs(const FuseDevice *d, const char *target, bool cubin) {
    long version = strncmp(target, "sm_", 3) == 0 ? strtol(target + 3, NULL, 10) : 0;
    return device_runs_target(d->capability, target) &&
           (!cubin || version / 10 == d->capability / 10);
}

// PTX or a cubin.
static FuseRtStatus load_ptx(FuseModule *m, const char *name, const char *ptx, size_t len) {
    FuseDevice *d = m->device;
    PtxHeader header;
    const char *error, *head = ptx;
    size_t head_len = len;
    bool cubin = cubin_plan_find(ptx, len, &head, &head_len);
    if (cubin && !head)
        return rt_fail(FUSE_RT_IO, "%s: this cubin has no launch plan: was it compiled by fusec?",
                       name);
    if (!ptx_header_read(m->arena, cubin ? head : ptx, cubin ? head_len : len, &header, &error))
        return rt_fail(FUSE_RT_IO, "%s: %s", name, error);
    if (!device_runs(d, header.target, cubin))
        return rt_fail(FUSE_RT_UNSUPPORTED,
                       "%s: it is compiled for %s, but %s (%s) has compute capability %d.%d: "
                       "compile it with --target=%s",
                       name, header.target, d->name, d->gpu_name, d->capability / 10,
                       d->capability % 10, d->target);
    FuseRtStatus status = read_plan(m, name, header.plan, header.plan_len);
    if (status != FUSE_RT_OK)
        return status;
    char log[4096] = "";
    int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const char *image = arena_strndup(m->arena, ptx, len); // has to end in a NUL
    DeviceScope scope;
    status = device_enter(d, &scope);
    if (status != FUSE_RT_OK)
        return status;
    CudaResult result = d->cuda.module_load(&m->cuda, image, 2, options, values);
    device_leave(d, scope);
    log[sizeof log - 1] = 0;
    return result == CUDA_OK ? FUSE_RT_OK : load_failed(d, name, &header, result, log);
}

// --- source ---

// "k.fk:3:9: perf[vector]: ..." -> "vector"
static void collect_diagnostics(FuseModule *m) {
    VEC(const char *) ids = {0};
    static const char *const severities[] = {": error[", ": warning[", ": perf[", ": note["};
    for (const char *line = m->messages; *line;) {
        const char *end = strchr(line, '\n');
        size_t len = end ? (size_t)(end - line) : strlen(line);
        for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
            const char *mark = memmem(line, len, severities[i], strlen(severities[i]));
            const char *id = mark ? mark + strlen(severities[i]) : NULL;
            const char *close = id ? memchr(id, ']', len - (size_t)(id - line)) : NULL;
            if (close) {
                vec_push(m->arena, &ids, arena_strndup(m->arena, id, (size_t)(close - id)));
                break;
            }
        }
        line += len + (end != NULL);
    }
    vec_push(m->arena, &ids, NULL);
    m->diagnostic = ids.data;
}

static FuseOptions compile_options(const FuseDevice *d, const FuseRtBuild *b) {
    FuseOptions o = {.target = d->target, .opt_level = 2};
    o.emit = d->kind == DEVICE_CUDA   ? FUSE_EMIT_PTX
             : d->kind == DEVICE_EVAL ? FUSE_EMIT_EVAL
                                      : FUSE_EMIT_HOST;
    if (!b)
        return o;
    o.defines = b->defines;
    o.includes = b->includes;
    o.kernel = b->kernel;
    o.no_fuse = b->no_fuse;
    o.fast_math = b->fast_math;
    o.deterministic = b->deterministic;
    o.debug = b->debug;
    o.check = b->check;
    o.line_info = b->line_info;
    o.no_perf_notes = b->no_perf_notes;
    o.message = b->message;
    o.user = b->user;
    o.warnings = b->warnings;
    if (b->target)
        o.target = b->target;
    if (b->opt_level > 0)
        o.opt_level = b->opt_level;
    return o;
}

static void take_messages(FuseModule *m) {
    m->messages = arena_strdup(m->arena, m->compiler->result_messages(m->result));
    collect_diagnostics(m);
}

static FuseRtStatus not_compiled(FuseModule *m, const char *name, FuseRtStatus status) {
    const char *text = *m->messages ? m->messages : "it does not compile";
    return rt_fail(status, "%s%s%s", *m->messages ? "" : name, *m->messages ? "" : ": ", text);
}

// After loading: the driver's compiler says what spills.
static FuseRtStatus note_spills(FuseModule *m, const char *name) {
    bool ok = module_note_spills(m);
    take_messages(m);
    return ok ? FUSE_RT_OK : not_compiled(m, name, FUSE_RT_COMPILE);
}

static FuseRtStatus load_source(FuseModule *m, const char *name, const char *source, size_t len,
                                const FuseRtBuild *build) {
    FuseDevice *d = m->device;
    FuseRtStatus status = device_compiler(d, &m->compiler);
    if (status != FUSE_RT_OK)
        return status;
    const FuseCompilerApi *c = m->compiler;
    FuseOptions options = compile_options(d, build);
    FuseResult *r = c->compile(&options, name, source, len);
    if (!r)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "%s: out of host memory", name);
    m->result = r;
    take_messages(m);
    if (!c->result_ok(r))
        return not_compiled(m, name, c->result_internal(r) ? FUSE_RT_INTERNAL : FUSE_RT_COMPILE);
    size_t n = 0;
    if (d->kind == DEVICE_CUDA) {
        const char *ptx = c->result_output(r, &n);
        status = load_ptx(m, name, ptx, n);
        if (status == FUSE_RT_OK && !options.no_perf_notes)
            status = note_spills(m, name);
        c->result_free(r);
        m->result = NULL;
        return status;
    }
    const char *plan = c->result_plan(r, &n);
    return read_plan(m, name, plan ? plan : "", n);
}

// --- the public functions ---

static FuseRtStatus finish(FuseModule *m, FuseRtStatus status, FuseModule **out) {
    if (status != FUSE_RT_OK) {
        fuse_rt_module_close(m);
        m = NULL;
    }
    *out = m;
    return status;
}

static FuseRtStatus start(FuseDevice *device, const char *name, const char *text, FuseModule **out,
                          const char *function) {
    if (!device || !name || !text || !out)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "%s: a null pointer", function);
    *out = module_new(device);
    return *out ? FUSE_RT_OK : rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
}

// What is loaded, and how it went.
typedef struct Load {
    FuseModule *module;
    const char *name, *text;
    size_t len;
    const FuseRtBuild *build;
    bool is_source;
    FuseRtStatus status;
} Load;

static void load_guarded(void *user) {
    Load *l = user;
    l->status = l->is_source ? load_source(l->module, l->name, l->text, l->len, l->build)
                             : load_ptx(l->module, l->name, l->text, l->len);
}

// Without memory the program goes on.
static FuseRtStatus load(Load l, FuseModule **out) {
    GuardReport end;
    if (!guard_memory(load_guarded, &l, &end))
        l.status = rt_fail(FUSE_RT_OUT_OF_MEMORY, "%s: out of host memory", l.name);
    return finish(l.module, l.status, out);
}

FuseRtStatus fuse_rt_module_from_source(FuseDevice *device, const char *name, const char *source,
                                        size_t len, const FuseRtBuild *build, FuseModule **out) {
    FuseModule *m = NULL;
    FuseRtStatus status =
        start(device, name, source, out ? &m : NULL, "fuse_rt_module_from_source");
    if (status != FUSE_RT_OK)
        return status;
    return load((Load){m, name, source, len, build, .is_source = true}, out);
}

FuseRtStatus fuse_rt_module_from_ptx(FuseDevice *device, const char *name, const char *ptx,
                                     size_t len, FuseModule **out) {
    FuseModule *m = NULL;
    FuseRtStatus status = start(device, name, ptx, out ? &m : NULL, "fuse_rt_module_from_ptx");
    if (status != FUSE_RT_OK)
        return status;
    if (device->kind != DEVICE_CUDA) {
        status =
            rt_fail(FUSE_RT_UNSUPPORTED, "%s: PTX runs on a GPU, not on %s", name, device->name);
        return finish(m, status, out);
    }
    return load((Load){m, name, ptx, len, .is_source = false}, out);
}

// A device may have no end.
static const size_t FILE_MOST = (size_t)1 << 30;

static FuseRtStatus read_file(const char *path, char **out, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return rt_fail(FUSE_RT_IO, "%s: %s", path, strerror(errno));
    size_t cap = 65536, n = 0;
    char *data = malloc(cap);
    while (data) {
        n += fread(data + n, 1, cap - n, f);
        if (n < cap || n > FILE_MOST)
            break;
        char *grown = realloc(data, cap *= 2);
        if (!grown)
            free(data);
        data = grown;
    }
    FuseRtStatus status = FUSE_RT_OK;
    if (!data)
        status = rt_fail(FUSE_RT_OUT_OF_MEMORY, "%s: out of host memory", path);
    else if (n > FILE_MOST)
        status = rt_fail(FUSE_RT_IO, "%s: larger than 1 GiB", path);
    else if (ferror(f))
        status = rt_fail(FUSE_RT_IO, "%s: %s", path, strerror(errno));
    fclose(f);
    if (status != FUSE_RT_OK) {
        free(data);
        return status;
    }
    *out = data;
    *len = n;
    return status;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

FuseRtStatus fuse_rt_module_from_file(FuseDevice *device, const char *path,
                                      const FuseRtBuild *build, FuseModule **out) {
    if (!device || !path || !out)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_module_from_file: a null pointer");
    *out = NULL;
    bool source = ends_with(path, ".fk");
    if (!source && !ends_with(path, ".ptx") && !ends_with(path, ".cubin"))
        return rt_fail(FUSE_RT_IO, "%s: the name of a module ends in .fk, .ptx or .cubin", path);
    char *text = NULL;
    size_t len = 0;
    FuseRtStatus status = read_file(path, &text, &len);
    if (status != FUSE_RT_OK)
        return status;
    status = source ? fuse_rt_module_from_source(device, path, text, len, build, out)
                    : fuse_rt_module_from_ptx(device, path, text, len, out);
    free(text);
    return status;
}

void fuse_rt_module_close(FuseModule *m) {
    if (!m)
        return;
    FuseDevice *d = m->device;
    DeviceScope scope = {0};
    if (m->cuda && device_enter(d, &scope) == FUSE_RT_OK) {
        d->cuda.context_synchronize();
        d->cuda.module_unload(m->cuda);
        device_leave(d, scope);
    }
    for (int i = 0; i < m->ninstance; i++)
        workspace_cache_free(d, m->kernel[i].workspaces);
    if (m->result)
        m->compiler->result_free(m->result);
    pthread_mutex_destroy(&m->lock);
    arena_free(m->arena);
    free(m);
}

const char *fuse_rt_module_messages(const FuseModule *module) {
    return module->messages;
}

const char *fuse_rt_module_diagnostic(const FuseModule *module, int i) {
    for (int at = 0; module->diagnostic && module->diagnostic[at]; at++)
        if (at == i)
            return module->diagnostic[at];
    return NULL;
}

const char *fuse_rt_module_plan(const FuseModule *module) {
    return module->plan_text;
}

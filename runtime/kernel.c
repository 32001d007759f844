// Finding kernels and asking them what they take.
#include <string.h>

#include "runtime/error.h"
#include "runtime/module.h"

// The only family; its only instance where it has one.
static FuseRtStatus find_only(FuseModule *m, FuseKernel **out) {
    int families = m->nkernel - m->ninstance;
    if (families == 1) {
        FuseKernel *family = &m->kernel[m->ninstance];
        *out = family->ninstance == 1 ? family->handle[0] : family;
        return FUSE_RT_OK;
    }
    if (families == 0)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "the module has no kernel");
    return rt_fail(FUSE_RT_INVALID_ARGUMENT,
                   "the module has %d kernels, `%s` and `%s` among them: name one", families,
                   m->kernel[m->ninstance].name, m->kernel[m->ninstance + 1].name);
}

FuseRtStatus fuse_rt_kernel_find(FuseModule *module, const char *name, FuseKernel **out) {
    if (!module || !out)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_kernel_find: a null pointer");
    *out = NULL;
    if (!name)
        return find_only(module, out);
    for (int i = 0; i < module->nkernel && !*out; i++) {
        FuseKernel *k = &module->kernel[i];
        if (strcmp(k->name, name) == 0)
            *out = k->ninstance == 1 ? k->handle[0] : k;
    }
    if (*out)
        return FUSE_RT_OK;
    char list[512] = "";
    for (int i = module->ninstance; i < module->nkernel; i++) {
        size_t at = strlen(list);
        if (at + strlen(module->kernel[i].name) + 8 > sizeof list)
            break;
        strcat(strcat(list, i > module->ninstance ? ", " : ""), module->kernel[i].name);
    }
    return rt_fail(FUSE_RT_INVALID_ARGUMENT, "there is no kernel `%s`; the module has %s", name,
                   *list ? list : "none");
}

int fuse_rt_kernel_count(const FuseModule *module) {
    return module->ninstance;
}

FuseKernel *fuse_rt_kernel_at(FuseModule *module, int i) {
    return i >= 0 && i < module->ninstance ? &module->kernel[i] : NULL;
}

const char *fuse_rt_kernel_name(const FuseKernel *kernel) {
    return kernel->name;
}

int fuse_rt_kernel_instance_count(const FuseKernel *kernel) {
    return kernel->ninstance;
}

FuseKernel *fuse_rt_kernel_instance_at(FuseKernel *kernel, int i) {
    return i >= 0 && i < kernel->ninstance ? kernel->handle[i] : NULL;
}

int fuse_rt_kernel_variant_count(const FuseKernel *kernel) {
    return kernel->instance->nvariant;
}

int fuse_rt_kernel_param_count(const FuseKernel *kernel) {
    return kernel->instance->nparam;
}

const FuseRtParam *fuse_rt_kernel_param(const FuseKernel *kernel, int i) {
    return i >= 0 && i < kernel->instance->nparam ? &kernel->param[i] : NULL;
}

// What the driver's compiler made of a module's functions: registers, and local memory.
//
// Input: a module that is loaded from source, its compiler's result still there. Output: notes of
// spills in that result. The variants that are not the most special have none, and are not asked
// for: a driver that loads functions when they are first needed does not load them here.
#include "runtime/module.h"

#include <string.h>

#include "lang/base/vec.h"

typedef VEC(FuseFunctionUse) UseVec;

// False: the driver does not know it, which the first launch will report.
static bool ask_driver(const FuseModule *m, const char *entry, FuseFunctionUse *out) {
    const CudaDriver *cuda = &m->device->cuda;
    CudaFunction *f;
    *out = (FuseFunctionUse){.entry = entry};
    return cuda->module_function(&f, m->cuda, entry) == CUDA_OK &&
           cuda->function_attribute(&out->registers, CUDA_REGISTERS, f) == CUDA_OK &&
           cuda->function_attribute(&out->local_bytes, CUDA_LOCAL_BYTES, f) == CUDA_OK;
}

static bool is_known(const UseVec *uses, const char *entry) {
    for (uint32_t i = 0; i < uses->len; i++)
        if (strcmp(uses->data[i].entry, entry) == 0)
            return true;
    return false;
}

static void collect(FuseModule *m, const Program *variant, UseVec *uses) {
    for (uint32_t i = 0; i < variant->ninstr; i++) {
        const LaunchPlan *launch =
            variant->instr[i].code == I_LAUNCH ? variant->instr[i].launch : NULL;
        FuseFunctionUse use;
        if (launch && !is_known(uses, launch->entry) && ask_driver(m, launch->entry, &use))
            vec_push(m->arena, uses, use);
    }
}

bool module_note_spills(FuseModule *m) {
    DeviceScope scope;
    UseVec uses = {0};
    if (!m->device->cuda.function_attribute || !m->compiler->result_note_use ||
        device_enter(m->device, &scope) != FUSE_RT_OK)
        return true;
    for (int i = 0; i < m->plan.n; i++)
        collect(m, &m->plan.instance[i].variant[0], &uses);
    device_leave(m->device, scope);
    return m->compiler->result_note_use(m->result, (int)uses.len, uses.data);
}

// The machine that code of the host targets is made for.
//
// Input: the target's row and whether the code runs at once, in this process. Output: LLVM's target
// machine. What runs at once is made for this very processor where its row is the one that fits it;
// an object file, or another row, gets what the row names.
#include <string.h>

#include "backend/host/host.h"
#include "backend/host/host_impl.h"

static bool triple_is_x86(const char *triple) {
    return strncmp(triple, "x86_64", 6) == 0;
}

// Features are listed as "+sse2,+avx512f,-amx-tile".
static bool has_all(const char *features, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (!strstr(features, names[i]))
            return false;
    return true;
}

static const char *row_of_machine(const char *triple, const char *features) {
    static const char *const v4[] = {"+avx512f,", "+avx512bw,", "+avx512cd,", "+avx512dq,",
                                     "+avx512vl,"};
    static const char *const v3[] = {"+avx2,", "+fma,", "+f16c,", "+bmi2,"};
    if (strncmp(triple, "aarch64", 7) == 0)
        return "cpu-aarch64";
    if (!triple_is_x86(triple))
        return "cpu";
    return has_all(features, v4, 5)   ? "cpu-x86-64-v4"
           : has_all(features, v3, 4) ? "cpu-x86-64-v3"
                                      : "cpu-x86-64";
}

const TargetDesc *host_target_of_machine(void) {
    char *triple = LLVMGetDefaultTargetTriple(), *features = LLVMGetHostCPUFeatures();
    const TargetDesc *row = target_find(row_of_machine(triple, features));
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(features);
    return row;
}

// Rows of one architecture are in the order of the table, each has what the ones before it have.
static bool runs_here(const TargetDesc *row) {
    const TargetDesc *here = host_target_of_machine();
    return !row->triple || (here->triple && strcmp(row->triple, here->triple) == 0 && row <= here);
}

static LLVMTargetMachineRef machine_of(Target *t, const char *triple, const char *processor,
                                       const char *features, bool optimise) {
    char *error = NULL;
    LLVMTargetRef target = NULL;
    LLVMTargetMachineRef machine = NULL;
    LLVMCodeGenOptLevel level = optimise ? LLVMCodeGenLevelDefault : LLVMCodeGenLevelNone;
    if (LLVMGetTargetFromTriple(triple, &target, &error) == 0)
        machine = LLVMCreateTargetMachine(target, triple, processor, features, level, LLVMRelocPIC,
                                          LLVMCodeModelDefault);
    if (!machine)
        target_fail(t, "no code generator for %s: %s", triple, error ? error : "unknown");
    LLVMDisposeMessage(error);
    return machine;
}

LLVMTargetMachineRef host_machine_new(Target *t, bool optimise) {
    const TargetDesc *row = t->desc;
    bool at_once = host_is_sim(t) || t->options->native;
    if (at_once && !runs_here(row)) {
        target_fail(t, "this machine does not run code for %s", row->name);
        return NULL;
    }
    char *triple = LLVMGetDefaultTargetTriple();
    LLVMTargetMachineRef machine;
    if (at_once && (!row->triple || row == host_target_of_machine())) {
        char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
        machine = machine_of(t, triple, cpu, features, optimise);
        LLVMDisposeMessage(cpu);
        LLVMDisposeMessage(features);
    } else {
        const char *common = triple_is_x86(triple) ? "x86-64-v3" : "generic";
        machine = machine_of(t, row->triple ? row->triple : triple,
                             row->processor ? row->processor : common, "", optimise);
    }
    LLVMDisposeMessage(triple);
    return machine;
}

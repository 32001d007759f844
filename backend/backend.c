// The back end's entry: one LLVM module for all launches of a placed module.
//
// Input: a placed module and a target. Output: PTX with the launch plan at its head, LLVM IR, or an
// object file. Invariant: LLVM's process-wide state is set up once; everything else is in the call.
#include "backend/backend.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backend/lower.h"

// --- once per process ---

#define NATIVE_CALL2(name, what) LLVMInitialize##name##what()
#define NATIVE_CALL(name, what)  NATIVE_CALL2(name, what)

static void llvm_start(void) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, TargetInfo);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, Target);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, TargetMC);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, AsmPrinter);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, AsmParser);
    // 32-bit pointers to shared memory: saves 64-bit arithmetic on every address of it.
    // Straight-line strength reduction is quadratic in the addresses of an unrolled tile: half of
    // all the time, for code that ptxas makes equally good without it.
    const char *options[] = {"fusec", "-nvptx-short-ptr", "-opt-disable=slsr"};
    LLVMParseCommandLineOptions(3, options, NULL);
}

void backend_llvm_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, llvm_start);
}

// --- launches ---

typedef struct Emit {
    Target *t;
    Kernel *kernel;
    int count; // launches of this kernel so far
} Emit;

// Symbols of PTX: letters, digits, _ and $.
static const char *symbol_of(Arena *arena, const char *name) {
    char *s = arena_strdup(arena, name);
    for (char *p = s; *p; p++) {
        bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                  (*p >= '0' && *p <= '9') || *p == '_';
        if (!ok)
            *p = '_';
    }
    return s;
}

static void emit_launch(void *user, Op *op) {
    Emit *e = user;
    if (op->kind != OP_LAUNCH || e->t->failed)
        return;
    Str entry = op_attr_str(op, ATTR_entry);
    const char *name =
        entry ? entry : arena_printf(e->t->arena, "%s__%d", e->kernel->name, e->count);
    e->count++;
    lower_find_maps(e->t, e->kernel, op);
    if (e->t->failed)
        return;
    lower_launch(e->t, e->kernel, op, symbol_of(e->t->arena, name));
}

static bool emit_kernels(Target *t, Module *m) {
    for (int i = 0; i < m->nkernel && !t->failed; i++) {
        Emit e = {.t = t, .kernel = m->kernel[i]};
        ir_walk(m->kernel[i]->body, emit_launch, &e);
    }
    return !t->failed;
}

// --- the head of a PTX file ---

static uint64_t hash_text(const char *s, size_t len) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); // FNV-1a
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
    return h;
}

// `//! ` in front of every line of the plan, then the code.
static void add_head(Arena *arena, const TargetDesc *target, BackendOutput *out) {
    size_t lines = 2;
    for (size_t i = 0; i < out->plan_len; i++)
        lines += out->plan[i] == '\n';
    size_t cap = out->len + out->plan_len + lines * 5 + 128;
    char *text = arena_alloc(arena, cap);
    uint64_t hash = hash_text(out->plan, out->plan_len);
    size_t at = (size_t)snprintf(text, cap, "//! fuse 1 %s %016llx\n", target->name,
                                 (unsigned long long)hash);
    const char *p = out->plan, *end = out->plan + out->plan_len;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
        memcpy(text + at, "//! ", 4);
        memcpy(text + at + 4, p, len);
        at += 4 + len;
        text[at++] = '\n';
        p += len + 1;
    }
    memcpy(text + at, out->data, out->len);
    at += out->len;
    text[at] = 0;
    out->data = text;
    out->len = at;
}

static void report_time(const BackendOptions *options, const char *what, clock_t from) {
    if (!options->time || !options->message)
        return;
    char text[96];
    double ms = (double)(clock() - from) * 1e3 / CLOCKS_PER_SEC;
    int n = snprintf(text, sizeof text, "%-12s %8.2f ms\n", what, ms);
    options->message(options->user, text, (size_t)n);
}

static const TargetOps *ops_of(const TargetDesc *target) {
    switch (target->family) {
    case TARGET_NVPTX:
        return target_ops_nvptx();
    case TARGET_CPU:
    case TARGET_SIM:
        return target_ops_host();
    }
    return NULL;
}

bool backend_emit(Arena *arena, Module *placed, const TargetDesc *target,
                  const BackendOptions *options, BackendOutput *out, Diags *diags) {
    *out = (BackendOutput){0};
    if (placed->stage != STAGE_PLACED) {
        diag_add(diags, DIAG_INTERNAL, (Span){0, 0}, "code generation needs stage placed, not %s",
                 stage_name(placed->stage));
        return false;
    }
    backend_llvm_start();
    clock_t start = clock();
    Target t = {.ops = ops_of(target),
                .desc = target,
                .options = options,
                .arena = arena,
                .diags = diags,
                .ir = placed};
    t.llvm = LLVMContextCreate();
    t.module = LLVMModuleCreateWithNameInContext("fuse", t.llvm);
    t.builder = LLVMCreateBuilderInContext(t.llvm);
    bool ok = t.ops->module_begin(&t);
    ok = ok && emit_kernels(&t, placed);
    report_time(options, "lower", start);
    start = clock();
    // Also after a failure: it gives back what module_begin took.
    ok = t.ops->module_end(&t, out) && ok && !t.failed;
    report_time(options, "llvm", start);
    LLVMDisposeBuilder(t.builder);
    LLVMDisposeModule(t.module);
    LLVMContextDispose(t.llvm);
    if (!ok) {
        if (!diags_has_errors(diags))
            diag_add(diags, DIAG_INTERNAL, (Span){0, 0}, "code generation failed without a reason");
        return false;
    }
    IrText plan = ir_print(arena, placed, (IrPrintOptions){.plan = true});
    out->plan = plan.data;
    out->plan_len = plan.len;
    if (options->emit == BACKEND_PTX && target->family == TARGET_NVPTX)
        add_head(arena, target, out);
    return true;
}

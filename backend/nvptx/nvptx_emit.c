// Modules of the nvptx target: target machine, line information, pass pipeline, PTX text.
//
// Input: t->module with all kernels. Output: PTX or LLVM IR text. Invariant: LLVM never prints and
// a message that it reports as an error becomes a diagnostic.
#include "backend/nvptx/nvptx_impl.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>

// The PTX version a target needs (LLVM's feature names): cp.async and ldmatrix 7.x, fp8 8.4, bulk
// copies 8.6. A driver reads versions up to its own.
static const char *ptx_feature(const TargetDesc *desc) {
    static const struct {
        int sm;
        const char *feature;
    } table[] = {{80, "+ptx80"}, {86, "+ptx80"},  {89, "+ptx84"},
                 {90, "+ptx86"}, {100, "+ptx86"}, {120, "+ptx87"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].sm == desc->sm)
            return table[i].feature;
    }
    return "+ptx80";
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
    Target *t = context;
    Nvptx *nv = nvptx_of(t);
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    if (!nv->error)
        nv->error = arena_strdup(t->arena, text);
    LLVMDisposeMessage(text);
}

// --- line information ---

static void di_begin(Target *t) {
    Nvptx *nv = nvptx_of(t);
    if (!t->options->line_info || !t->options->sources)
        return;
    nv->di = LLVMCreateDIBuilder(t->module);
    LLVMAddModuleFlag(t->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                      LLVMValueAsMetadata(nvptx_const(t, 32, 3)));
    const char *name =
        source_count(t->options->sources) ? source_name(t->options->sources, 1) : "kernel.fk";
    nv->di_file = LLVMDIBuilderCreateFile(nv->di, name, strlen(name), ".", 1);
    // Emission kind 3 is DebugDirectivesOnly: .loc lines without DWARF; the C enum has no name for
    // it.
    LLVMDIBuilderCreateCompileUnit(nv->di, LLVMDWARFSourceLanguageC, nv->di_file, "fusec", 5, true,
                                   "", 0, 0, "", 0, (LLVMDWARFEmissionKind)3, 0, false, false, "",
                                   0, "", 0);
}

void nvptx_function_scope(Target *t, Span span) {
    Nvptx *nv = nvptx_of(t);
    if (!nv->di)
        return;
    SourcePos pos = source_pos(t->options->sources, span.begin);
    size_t len;
    const char *name = LLVMGetValueName2(t->function, &len);
    LLVMMetadataRef file = nv->di_file;
    if (pos.file && pos.file != 1)
        file = LLVMDIBuilderCreateFile(nv->di, pos.name, strlen(pos.name), ".", 1);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(nv->di, file, NULL, 0, LLVMDIFlagZero);
    nv->di_scope = LLVMDIBuilderCreateFunction(nv->di, file, name, len, name, len, file,
                                               pos.line ? pos.line : 1, type, false, true,
                                               pos.line ? pos.line : 1, LLVMDIFlagZero, true);
    nv->di_file_id = pos.file;
    LLVMSetSubprogram(t->function, nv->di_scope);
    LLVMSetCurrentDebugLocation2(
        t->builder,
        LLVMDIBuilderCreateDebugLocation(t->llvm, pos.line ? pos.line : 1, 1, nv->di_scope, NULL));
}

void nvptx_span(Target *t, Span span) {
    Nvptx *nv = nvptx_of(t);
    if (!nv->di || !nv->di_scope)
        return;
    SourcePos pos = source_pos(t->options->sources, span.begin);
    if (!pos.file || (nv->di_file_id && pos.file != nv->di_file_id))
        return; // a library function: keep the caller's line
    LLVMSetCurrentDebugLocation2(t->builder, LLVMDIBuilderCreateDebugLocation(
                                                 t->llvm, pos.line, pos.col, nv->di_scope, NULL));
}

// --- module ---

bool nvptx_module_begin(Target *t) {
    Nvptx *nv = ARENA_NEW(t->arena, Nvptx);
    t->state = nv;
    LLVMContextSetDiagnosticHandler(t->llvm, on_diagnostic, t);
    const char *triple = "nvptx64-nvidia-cuda";
    LLVMTargetRef target = NULL;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        target_fail(t, "%s", message ? message : "LLVM has no NVPTX target");
        LLVMDisposeMessage(message);
        return false;
    }
    LLVMCodeGenOptLevel level =
        t->options->opt_level == 0 ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
    nv->machine = LLVMCreateTargetMachine(target, triple, t->desc->name, ptx_feature(t->desc),
                                          level, LLVMRelocDefault, LLVMCodeModelDefault);
    if (!nv->machine) {
        target_fail(t, "LLVM does not know %s", t->desc->name);
        return false;
    }
    LLVMSetTarget(t->module, triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(nv->machine);
    LLVMSetModuleDataLayout(t->module, layout);
    LLVMDisposeTargetData(layout);
    LLVMTypeRef bytes = LLVMArrayType2(target_int(t, 8), 0);
    nv->shared = LLVMAddGlobalInAddressSpace(t->module, bytes, "fuse_shared", 3);
    LLVMSetAlignment(nv->shared, 1024);
    di_begin(t);
    return true;
}

// Own passes have done CSE and hoisting on tiles; what is left is scalar clean-up. A second
// instcombine and early-cse on memory SSA cost as much again and change no register count.
static const char *pipeline(int level) {
    if (level <= 0)
        return "";
    if (level >= 3)
        return "default<O3>";
    return "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,gvn,dce),"
           "globaldce";
}

static bool passes_ok(Target *t, LLVMErrorRef error) {
    if (!error)
        return true;
    char *message = LLVMGetErrorMessage(error);
    target_fail(t, "LLVM: %s", message);
    LLVMDisposeErrorMessage(message);
    return false;
}

// What does not change in a loop leaves it, where registers are left for that.
static bool hoist(Target *t, LLVMValueRef f, LLVMPassBuilderOptionsRef options) {
    Arena *arena = arena_new("registers of a function");
    bool hoists = pressure_hoists(arena, f);
    arena_free(arena);
    return !hoists || passes_ok(t, LLVMRunPassesOnFunction(f, "loop-mssa(licm),dce",
                                                           nvptx_of(t)->machine, options));
}

static bool run_passes(Target *t) {
    const char *passes = pipeline(t->options->opt_level);
    if (!*passes)
        return true;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    bool ok = passes_ok(t, LLVMRunPasses(t->module, passes, nvptx_of(t)->machine, options));
    bool own = t->options->opt_level < 3;
    for (LLVMValueRef f = LLVMGetFirstFunction(t->module); f && ok && own;
         f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            ok = hoist(t, f, options);
    LLVMDisposePassBuilderOptions(options);
    return ok;
}

static void give_text(Target *t, BackendOutput *out, const char *data, size_t len) {
    out->data = arena_strndup(t->arena, data, len);
    out->len = len;
}

static bool emit_ptx(Target *t, BackendOutput *out) {
    char *message = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(nvptx_of(t)->machine, t->module, LLVMAssemblyFile,
                                            &message, &buffer)) {
        target_fail(t, "LLVM: %s", message ? message : "no code");
        LLVMDisposeMessage(message);
        return false;
    }
    give_text(t, out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return true;
}

// In debug builds: it takes a twentieth of the time.
static bool verify(Target *t) {
#ifdef FUSE_DEBUG
    char *message = NULL;
    bool bad = LLVMVerifyModule(t->module, LLVMReturnStatusAction, &message);
    if (bad)
        diag_add(t->diags, DIAG_INTERNAL, (Span){0, 0}, "LLVM IR is malformed: %s", message);
    LLVMDisposeMessage(message);
    return !bad;
#else
    (void)t;
    return true;
#endif
}

// Beyond it LLVM takes minutes, and ptxas longer.
static bool size_check(Target *t) {
    enum { MOST = 200000 };
    int64_t size = target_code_size(t, false);
    if (size > MOST)
        target_too_large(t, size, MOST);
    return size <= MOST;
}

static bool finish(Target *t, BackendOutput *out) {
    if (!size_check(t) || !verify(t) || !run_passes(t))
        return false;
    if (t->options->emit == BACKEND_LLVM) {
        char *text = LLVMPrintModuleToString(t->module);
        give_text(t, out, text, strlen(text));
        LLVMDisposeMessage(text);
        return true;
    }
    if (t->options->emit != BACKEND_PTX) {
        target_fail(t, "only PTX and LLVM IR can be made");
        return false;
    }
    return emit_ptx(t, out);
}

bool nvptx_module_end(Target *t, BackendOutput *out) {
    Nvptx *nv = nvptx_of(t);
    if (nv->di) {
        LLVMDIBuilderFinalize(nv->di);
        LLVMDisposeDIBuilder(nv->di);
        nv->di = NULL;
    }
    bool ok = !t->failed && finish(t, out);
    if (ok && nv->error) {
        diag_add(t->diags, DIAG_INTERNAL, (Span){0, 0}, "LLVM: %s", nv->error);
        ok = false;
    }
    if (nv->machine)
        LLVMDisposeTargetMachine(nv->machine);
    nv->machine = NULL;
    return ok;
}

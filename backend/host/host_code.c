// Links objects of the host targets by LLVM's ORC.
//
// Every function that compiled code may call is given by address (host_symbols.def), never looked
// up in the process: a statically linked compiler works the same way.
#include "backend/host/host_code.h"

#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/host/sim.h"

struct HostCode {
    Arena *arena;
    LLVMOrcLLJITRef jit;
};

// --- linking -----------------------------------------------------------------------------------

typedef struct Symbol {
    const char *name;
    void (*address)(void);
} Symbol;

static const Symbol *symbols(size_t *n) {
    static const Symbol table[] = {
#define SYMBOL(f) {#f, (void (*)(void))f},
#include "backend/host/host_symbols.def"
#undef SYMBOL
    };
    *n = sizeof table / sizeof table[0];
    return table;
}

static LLVMErrorRef define_symbols(LLVMOrcLLJITRef jit) {
    size_t n;
    const Symbol *table = symbols(&n);
    LLVMOrcCSymbolMapPair pairs[64] = {0};
    for (size_t i = 0; i < n && i < 64; i++) {
        pairs[i].Name = LLVMOrcLLJITMangleAndIntern(jit, table[i].name);
        pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)table[i].address;
        pairs[i].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
    }
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs, n);
    LLVMErrorRef error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), unit);
    if (error)
        LLVMOrcDisposeMaterializationUnit(unit);
    return error;
}

// Consumes the error: true when there was none.
static bool report(Arena *arena, Diags *diags, LLVMErrorRef error) {
    if (!error)
        return true;
    char *text = LLVMGetErrorMessage(error);
    diag_add(diags, DIAG_UNSUPPORTED, (Span){0, 0}, "cannot load the code: %s",
             arena_strdup(arena, text));
    LLVMDisposeErrorMessage(text);
    return false;
}

static bool link_object(HostCode *c, const char *data, size_t len, Diags *diags) {
    if (!report(c->arena, diags, LLVMOrcCreateLLJIT(&c->jit, NULL)))
        return false;
    if (!report(c->arena, diags, define_symbols(c->jit)))
        return false;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(data, len, "fuse.o");
    LLVMOrcJITDylibRef lib = LLVMOrcLLJITGetMainJITDylib(c->jit);
    return report(c->arena, diags, LLVMOrcLLJITAddObjectFile(c->jit, lib, buffer));
}

HostCode *host_code_load(Arena *arena, const char *data, size_t len, Diags *diags) {
    backend_llvm_start();
    HostCode *c = ARENA_NEW(arena, HostCode);
    c->arena = arena;
    if (link_object(c, data, len, diags))
        return c;
    host_code_free(c);
    return NULL;
}

void *host_code_find(HostCode *c, const char *name, const char **error) {
    LLVMOrcExecutorAddress at = 0;
    LLVMErrorRef failed = LLVMOrcLLJITLookup(c->jit, &at, name);
    if (!failed)
        return (void *)(uintptr_t)at;
    char *text = LLVMGetErrorMessage(failed);
    *error = arena_strdup(c->arena, text);
    LLVMDisposeErrorMessage(text);
    return NULL;
}

void host_code_free(HostCode *c) {
    if (!c || !c->jit)
        return;
    LLVMErrorRef error = LLVMOrcDisposeLLJIT(c->jit);
    if (error)
        LLVMConsumeError(error);
    c->jit = NULL;
}

// The matrix unit of a warp group on nvptx (wgmma, sm_90a): inline PTX, LLVM has no intrinsic for
// the product itself.
//
// Input: accumulators as scalars, descriptors of operands in shared memory. Output: each
// accumulator is tied to itself, so it stays in its register through all products and the wait.
// Descriptor (PTX ISA, matrix descriptor): bits 0-13 address / 16, 16-29 leading stride / 16, 32-45
// stride / 16, 62-63 swizzle. Only the low word varies.
#include "backend/nvptx/nvptx_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct Text {
    char data[4096];
    size_t len;
} Text;

__attribute__((format(printf, 2, 3))) static void text_add(Text *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t left = sizeof s->data - s->len;
    int n = vsnprintf(s->data + s->len, left, format, args);
    va_end(args);
    s->len += n > 0 && (size_t)n < left ? (size_t)n : 0;
}

static void text_list(Text *s, int from, int n) {
    for (int i = 0; i < n; i++)
        text_add(s, "%s$%d", i ? ", " : "", from + i);
}

// Outputs of one type, tied to as many inputs, in front of the other operands.
static void tied(Text *s, int n) {
    for (int i = 0; i < n; i++)
        text_add(s, "%s=f", i ? "," : "");
    for (int i = 0; i < n; i++)
        text_add(s, ",%d", i);
}

// acc[n] are the outputs and the first inputs; all warps of the group meet here.
static void call_tied(Target *t, const Text *code, const Text *constraints, int n, Lane *acc,
                      int nargs, V *args) {
    LLVMTypeRef f32 = LLVMFloatTypeInContext(t->llvm), types[128 + 16], outs[128];
    V all[128 + 16];
    for (int i = 0; i < n; i++) {
        outs[i] = f32;
        all[i] = acc[i].v;
    }
    for (int i = 0; i < nargs; i++)
        all[n + i] = args[i];
    for (int i = 0; i < n + nargs; i++)
        types[i] = LLVMTypeOf(all[i]);
    LLVMTypeRef ret = n == 1 ? f32 : LLVMStructTypeInContext(t->llvm, outs, (unsigned)n, false);
    LLVMTypeRef type = LLVMFunctionType(ret, types, (unsigned)(n + nargs), false);
    V fn = LLVMGetInlineAsm(type, code->data, code->len, constraints->data, constraints->len, true,
                            false, LLVMInlineAsmDialectATT, false);
    V call = LLVMBuildCall2(t->builder, type, fn, all, (unsigned)(n + nargs), "");
    static const char *const attributes[] = {"convergent", "nounwind"};
    for (int i = 0; i < 2; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(t->llvm, kind, 0));
    }
    for (int i = 0; i < n; i++)
        acc[i].v = n == 1 ? call : LLVMBuildExtractValue(t->builder, call, (unsigned)i, "");
}

// --- descriptors ---

static V desc_low(Target *t, const MmaDesc *d) {
    LLVMBuilderRef b = t->builder;
    // In a cluster the bits above 18 carry the program's rank.
    V address = LLVMBuildPtrToInt(b, nvptx_shared_pointer(t, d->at, false), target_int(t, 32), "");
    V low = LLVMBuildAnd(b, address, nvptx_const(t, 32, 0x3ffff), "");
    low = LLVMBuildLShr(b, low, nvptx_const(t, 32, 4), "");
    int64_t rest = (d->at.imm >> 4) + ((int64_t)(d->leading >> 4) << 16);
    return rest ? LLVMBuildAdd(b, low, nvptx_const(t, 32, rest), "") : low;
}

static int64_t desc_high(const MmaDesc *d) {
    int64_t swizzle = d->swizzle == 128 ? 1 : d->swizzle == 64 ? 2 : d->swizzle == 32 ? 3 : 0;
    return (d->stride >> 4) | (int64_t)((uint32_t)swizzle << 30);
}

// --- products ---

static const char *type_name(DType dtype) {
    switch ((int)dtype) {
    case DT_BF16:
        return "bf16";
    case DT_F16:
        return "f16";
    case DT_F32:
        return "tf32";
    case DT_E4M3:
        return "e4m3";
    case DT_E5M2:
        return "e5m2";
    default:
        return NULL;
    }
}

void nvptx_mma_issue(Target *t, const MmaIssue *m, Lane *acc) {
    const char *type = type_name(m->ab);
    int n = m->n / 2, nargs = 0, at = 2 * n;
    bool halves = m->ab == DT_BF16 || m->ab == DT_F16;
    if (!type || m->acc != DT_F32 || n > 128 || (!halves && (m->a.transposed || m->b.transposed))) {
        target_fail(t, "products of %s", dtype_name(m->ab));
        return;
    }
    Text code = {.len = 0}, constraints = {.len = 0};
    V args[12];
    tied(&constraints, n);
    text_add(&code, "{ .reg .b64 da, db; ");
    if (!m->regs) {
        text_add(&code, "mov.b64 da, {$%d, $%d}; ", at, at + 1);
        args[nargs++] = desc_low(t, &m->a);
        args[nargs++] = nvptx_const(t, 32, desc_high(&m->a));
    } else {
        for (int i = 0; i < 4; i++)
            args[nargs++] = nvptx_pack(t, m->ab, 2, m->regs + 2 * i);
    }
    int b = at + nargs;
    args[nargs++] = desc_low(t, &m->b);
    args[nargs++] = nvptx_const(t, 32, desc_high(&m->b));
    text_add(&code, "mov.b64 db, {$%d, $%d}; wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s.%s {", b,
             b + 1, m->n, m->k, type, type);
    text_list(&code, 0, n);
    text_add(&code, "}, ");
    if (m->regs) {
        text_add(&code, "{");
        text_list(&code, at, 4);
        text_add(&code, "}, db, ");
    } else {
        text_add(&code, "da, db, ");
    }
    text_add(&code, "%d, 1, 1", !m->start);
    if (halves && !m->regs)
        text_add(&code, ", %d", m->a.transposed);
    if (halves)
        text_add(&code, ", %d", m->b.transposed);
    text_add(&code, "; }");
    for (int i = 0; i < nargs; i++)
        text_add(&constraints, ",r");
    call_tied(t, &code, &constraints, n, acc, nargs, args);
}

void nvptx_mma_fence(Target *t) {
    nvptx_call(t, "llvm.nvvm.wgmma.fence.sync.aligned", 0, NULL);
}

void nvptx_mma_commit(Target *t) {
    nvptx_call(t, "llvm.nvvm.wgmma.commit_group.sync.aligned", 0, NULL);
}

void nvptx_mma_wait(Target *t, int pending, int n, Lane *acc) {
    Text code = {.len = 0}, constraints = {.len = 0};
    text_add(&code, "wgmma.wait_group.sync.aligned %d;", pending);
    int most = n < 128 ? n : 128;
    tied(&constraints, most);
    call_tied(t, &code, &constraints, most, acc, 0, NULL);
    for (int from = most; from < n; from += most) { // more registers than one statement takes
        int left = n - from < most ? n - from : most;
        constraints.len = 0;
        tied(&constraints, left);
        call_tied(t, &code, &constraints, left, acc + from, 0, NULL);
    }
}

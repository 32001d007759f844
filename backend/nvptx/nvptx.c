// Target nvptx: kernels, identities, and the table of functions.
//
// Input: calls from the lowering. Output: LLVM IR for NVPTX in t->module. Invariant: one program is
// one CTA of 32 * warps threads in x; all shared memory is dynamic, one external array.
#include "backend/nvptx/nvptx_impl.h"

#include <stdio.h>
#include <string.h>

V nvptx_const(Target *t, int bits, int64_t value) {
    return uni_int(t, bits, value).v;
}

V nvptx_call(Target *t, const char *intrinsic, int n, V *args) {
    return arith_intrinsic(t, intrinsic, NULL, n, args);
}

V nvptx_asm(Target *t, LLVMTypeRef out, const char *text, const char *constraints, int n, V *args,
            bool effect) {
    LLVMTypeRef types[40];
    for (int i = 0; i < n && i < 40; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef ret = out ? out : LLVMVoidTypeInContext(t->llvm);
    LLVMTypeRef type = LLVMFunctionType(ret, types, (unsigned)n, false);
    V code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), effect,
                              false, LLVMInlineAsmDialectATT, false);
    V call = LLVMBuildCall2(t->builder, type, code, args, (unsigned)n, "");
    // Accesses need no reconvergence; what does (shuffles, barriers, mma) comes as intrinsics.
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(t->llvm, nounwind, 0));
    return call;
}

V nvptx_resize(Target *t, V x, int bits) {
    return LLVMBuildIntCast2(t->builder, x, target_int(t, bits), false, "");
}

// --- kernels ---

static LLVMTypeRef param_type(Target *t, const AbiParam *p) {
    if (p->kind == ABI_MAP)
        return LLVMPointerTypeInContext(t->llvm, 0);
    if (p->kind == ABI_POINTER)
        return LLVMPointerTypeInContext(t->llvm, 1);
    if (p->kind == ABI_STRIDE)
        return target_int(t, 64);
    // 16-bit floats and bool travel as integers of their size
    if (dtype_is_float(p->dtype) && p->bytes >= 4)
        return target_type(t, p->dtype);
    return target_int(t, p->bytes * 8);
}

static void string_attribute(Target *t, V f, const char *key, const char *value) {
    LLVMAttributeRef a = LLVMCreateStringAttribute(t->llvm, key, (unsigned)strlen(key), value,
                                                   (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
}

static void param_attribute(Target *t, V f, int i, const char *name, uint64_t value) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)(i + 1),
                            LLVMCreateEnumAttribute(t->llvm, kind, value));
}

// A grid constant: without it LLVM copies the map into local memory, where TMA cannot read it.
static void map_attributes(Target *t, V f, int i) {
    LLVMTypeRef bytes = LLVMArrayType2(target_int(t, 8), ABI_MAP_BYTES);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)(i + 1),
                            LLVMCreateTypeAttribute(t->llvm, byval, bytes));
    param_attribute(t, f, i, "align", 64);
    const char *key = "nvvm.grid_constant";
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)(i + 1),
                            LLVMCreateStringAttribute(t->llvm, key, (unsigned)strlen(key), "", 0));
}

static void kernel_attributes(Target *t, V f, int n, const AbiParam *params) {
    LLVMSetFunctionCallConv(f, 71); // LLVMPTXKernelCallConv
    char number[16];
    snprintf(number, sizeof number, "%d", t->warps * t->desc->lanes);
    string_attribute(t, f, "nvvm.maxntid", number);
    snprintf(number, sizeof number, "%d", (int)op_attr_int(t->launch, ATTR_resident));
    string_attribute(t, f, "nvvm.minctasm", number);
    snprintf(number, sizeof number, "%d", (int)op_attr_int(t->launch, ATTR_cluster));
    if (op_attr_int(t->launch, ATTR_cluster) > 1)
        string_attribute(t, f, "nvvm.cluster_dim", number);
    for (int i = 0; i < n; i++) {
        if (params[i].kind == ABI_MAP)
            map_attributes(t, f, i);
        if (params[i].kind != ABI_POINTER)
            continue;
        param_attribute(t, f, i, "noalias", 0);
        if (params[i].mem->align > 1)
            param_attribute(t, f, i, "align", params[i].mem->align);
    }
}

static Uni scalar_param(Target *t, const AbiParam *p, V x) {
    LLVMTypeRef type = target_type(t, p->dtype);
    if (p->dtype == DT_BOOL)
        return (Uni){LLVMBuildIsNotNull(t->builder, x, "")};
    if (dtype_is_float(p->dtype) && LLVMTypeOf(x) != type)
        return (Uni){LLVMBuildBitCast(t->builder, x, type, "")};
    return (Uni){x};
}

static void nvptx_kernel_begin(Target *t, const Op *launch, const char *symbol, int n,
                               const AbiParam *params, Uni *values, Uni *program_id) {
    LLVMTypeRef *types = ARENA_ARRAY(t->arena, LLVMTypeRef, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        types[i] = param_type(t, &params[i]);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(t->llvm), types, (unsigned)n, false);
    V f = LLVMAddFunction(t->module, symbol, type);
    t->function = f;
    kernel_attributes(t, f, n, params);
    nvptx_function_scope(t, launch->span);
    LLVMPositionBuilderAtEnd(t->builder, LLVMAppendBasicBlockInContext(t->llvm, f, "entry"));
    for (int i = 0; i < n; i++) {
        V x = LLVMGetParam(f, (unsigned)i);
        values[i] = params[i].kind == ABI_SCALAR ? scalar_param(t, &params[i], x) : (Uni){x};
    }
    V block = nvptx_call(t, "llvm.nvvm.read.ptx.sreg.ctaid.x", 0, NULL);
    Uni pid = {nvptx_resize(t, block, 64)};
    const Value *lo = op_binder_lo(launch, 0);
    if (lo->kind == VALUE_CONST) {
        pid = uni_add(t, pid, uni_int(t, 64, lo->u.i));
    } else {
        for (int i = 0; i < n; i++) {
            if (params[i].kind == ABI_SCALAR && params[i].value == lo)
                pid = uni_add(t, pid, uni_resize(t, values[i], 64, true));
        }
    }
    *program_id = pid;
}

static void nvptx_kernel_end(Target *t) {
    LLVMBuildRetVoid(t->builder);
    t->function = NULL;
    LLVMSetCurrentDebugLocation2(t->builder, NULL);
}

// --- identities ---

static V thread_id(Target *t) {
    return nvptx_call(t, "llvm.nvvm.read.ptx.sreg.tid.x", 0, NULL);
}

// From one lane, so that ptxas knows it to be uniform.
static Uni nvptx_warp_uniform(Target *t) {
    V warp = LLVMBuildLShr(t->builder, thread_id(t), nvptx_const(t, 32, 5), "");
    V args[4] = {nvptx_const(t, 32, -1), warp, nvptx_const(t, 32, 0), nvptx_const(t, 32, 31)};
    return (Uni){nvptx_call(t, "llvm.nvvm.shfl.sync.idx.i32", 4, args)};
}

static Uni nvptx_warp_id(Target *t) {
    if (t->role)
        return (Uni){
            LLVMBuildSub(t->builder, t->warp_all.v, nvptx_const(t, 32, t->warp_first), "")};
    if (t->warps == 1)
        return uni_int(t, 32, 0);
    return (Uni){LLVMBuildLShr(t->builder, thread_id(t), nvptx_const(t, 32, 5), "")};
}

static Lane nvptx_lane_id(Target *t) {
    return (Lane){LLVMBuildAnd(t->builder, thread_id(t), nvptx_const(t, 32, 31), "")};
}

static Lane nvptx_splat(Target *t, Uni x) {
    (void)t;
    return (Lane){x.v};
}

static Uni nvptx_lane_first(Target *t, Lane x) {
    (void)t;
    return (Uni){x.v};
}

static Lane nvptx_bitcast(Target *t, DType from, DType to, Lane x) {
    (void)from;
    return (Lane){LLVMBuildBitCast(t->builder, x.v, target_type(t, to), "")};
}

static char constraint_of(DType type) {
    int bits = (int)dtype_bits(type);
    if (type == DT_F32 || type == DT_F64)
        return bits == 32 ? 'f' : 'd';
    return bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
}

// Values of 16 bits travel as integers.
static LLVMTypeRef text_type(Target *t, DType type) {
    return dtype_bits(type) == 16 ? target_int(t, 16) : target_type(t, type);
}

static Lane nvptx_text(Target *t, const char *text, int n, const DType *types, const Lane *x) {
    char constraints[32];
    size_t at = (size_t)snprintf(constraints, sizeof constraints, "=%c", constraint_of(types[0]));
    V args[4];
    for (int i = 0; i < n && i < 4; i++) {
        at += (size_t)snprintf(constraints + at, sizeof constraints - at, ",%c",
                               constraint_of(types[1 + i]));
        args[i] = LLVMBuildBitCast(t->builder, x[i].v, text_type(t, types[1 + i]), "");
    }
    V r = nvptx_asm(t, text_type(t, types[0]), text, constraints, n, args, false);
    return (Lane){LLVMBuildBitCast(t->builder, r, target_type(t, types[0]), "")};
}

// --- debugging ---

// A constant text in global memory, by a generic address.
static V text_pointer(Target *t, const char *text) {
    LLVMTypeRef type = LLVMArrayType2(target_int(t, 8), strlen(text) + 1);
    V global = LLVMAddGlobalInAddressSpace(t->module, type, "text", 1);
    LLVMSetInitializer(global, LLVMConstStringInContext2(t->llvm, text, strlen(text), false));
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, true);
    return LLVMConstAddrSpaceCast(global, LLVMPointerTypeInContext(t->llvm, 0));
}

// A function of the driver.
static V system_call(Target *t, const char *name, LLVMTypeRef type, int n, V *args) {
    V f = LLVMGetNamedFunction(t->module, name);
    if (!f)
        f = LLVMAddFunction(t->module, name, type);
    return LLVMBuildCall2(t->builder, type, f, args, (unsigned)n, "");
}

// Stack memory belongs to the function's first block.
static V entry_alloca(Target *t, LLVMTypeRef type) {
    LLVMBuilderRef b = LLVMCreateBuilderInContext(t->llvm);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(t->function);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    V p = LLVMBuildAlloca(b, type, "");
    LLVMSetAlignment(p, 8);
    LLVMDisposeBuilder(b);
    return p;
}

static void nvptx_print(Target *t, Lane pred, const Print *p) {
    LLVMTypeRef pointer = LLVMPointerTypeInContext(t->llvm, 0), i64 = target_int(t, 64);
    IfState s;
    if (pred.v)
        if_begin(t, &s, (Uni){pred.v});
    V values = entry_alloca(t, LLVMArrayType2(i64, p->n ? (uint64_t)p->n : 1));
    for (int i = 0; i < p->n; i++) {
        V at = nvptx_const(t, 64, i);
        LLVMBuildStore(t->builder, p->values[i].v,
                       LLVMBuildGEP2(t->builder, i64, values, &at, 1, ""));
    }
    LLVMTypeRef type =
        LLVMFunctionType(target_int(t, 32), (LLVMTypeRef[]){pointer, pointer}, 2, false);
    system_call(t, "vprintf", type, 2, (V[]){text_pointer(t, p->format), values});
    if (pred.v)
        if_end(t, &s, 0, NULL, NULL, NULL);
}

// __assertfail(text, file, line, function, size of a character): shows the text with the block and
// thread, and ends the grid with an error of its own.
static void nvptx_check(Target *t, Lane ok, Lane guard, const char *message) {
    V bad = LLVMBuildNot(t->builder, ok.v, "");
    if (guard.v)
        bad = LLVMBuildAnd(t->builder, bad, guard.v, "");
    LLVMTypeRef pointer = LLVMPointerTypeInContext(t->llvm, 0), i32 = target_int(t, 32),
                i64 = target_int(t, 64);
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(t->llvm),
                         (LLVMTypeRef[]){pointer, pointer, i32, pointer, i64}, 5, false);
    SourcePos at = {0};
    if (t->options->sources && t->op)
        at = source_pos(t->options->sources, t->op->span.begin);
    IfState s;
    if_begin(t, &s, (Uni){bad});
    system_call(t, "__assertfail", type, 5,
                (V[]){text_pointer(t, message), text_pointer(t, at.file ? at.name : ""),
                      nvptx_const(t, 32, at.line), text_pointer(t, "kernel"),
                      nvptx_const(t, 64, 1)});
    nvptx_asm(t, NULL, "trap;", "~{memory}", 0, NULL, true);
    if_end(t, &s, 0, NULL, NULL, NULL);
}

const TargetOps *target_ops_nvptx(void) {
    static const TargetOps ops = {
        .name = "nvptx",
        .module_begin = nvptx_module_begin,
        .module_end = nvptx_module_end,
        .kernel_begin = nvptx_kernel_begin,
        .kernel_end = nvptx_kernel_end,
        .warp_id = nvptx_warp_id,
        .lane_id = nvptx_lane_id,
        .splat = nvptx_splat,
        .lane_first = nvptx_lane_first,
        .arith = nvptx_arith,
        .select = arith_select,
        .cast = nvptx_cast,
        .bitcast = nvptx_bitcast,
        .text = nvptx_text,
        .load_global = nvptx_load_global,
        .store_global = nvptx_store_global,
        .atomic = nvptx_atomic,
        .cas = nvptx_cas,
        .load_shared = nvptx_load_shared,
        .store_shared = nvptx_store_shared,
        .ldmatrix = nvptx_ldmatrix,
        .shuffle_xor = nvptx_shuffle_xor,
        .shuffle_idx = nvptx_shuffle_idx,
        .block_barrier = nvptx_block_barrier,
        .named_barrier = nvptx_named_barrier,
        .mma = nvptx_mma,
        .warp_uniform = nvptx_warp_uniform,
        .elect = nvptx_elect,
        .set_regs = nvptx_set_regs,
        .fence = nvptx_fence,
        .stmatrix = nvptx_stmatrix,
        .mbar_init = nvptx_mbar_init,
        .mbar_init_fence = nvptx_mbar_init_fence,
        .mbar_expect = nvptx_mbar_expect,
        .mbar_arrive = nvptx_mbar_arrive,
        .mbar_wait = nvptx_mbar_wait,
        .warp_barrier = nvptx_warp_barrier,
        .tma_load = nvptx_tma_load,
        .tma_store = nvptx_tma_store,
        .tma_commit = nvptx_tma_commit,
        .tma_wait = nvptx_tma_wait,
        .mma_fence = nvptx_mma_fence,
        .mma_issue = nvptx_mma_issue,
        .mma_commit = nvptx_mma_commit,
        .mma_wait = nvptx_mma_wait,
        .cp_async = nvptx_cp_async,
        .cp_commit = nvptx_cp_commit,
        .cp_wait = nvptx_cp_wait,
        .span = nvptx_span,
        .check = nvptx_check,
        .print = nvptx_print,
    };
    return &ops;
}

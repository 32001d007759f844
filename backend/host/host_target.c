// The host targets' module and kernels, and their table of operations.
//
// cpu: one function walks over programs lo..hi. sim: one function is entered by every warp of a
// program. The entry block holds allocas and parameters only, so that code anywhere may add
// allocas.
#include "backend/host/host_impl.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

// --- module ------------------------------------------------------------------------------------

static bool host_module_begin(Target *t) {
    backend_llvm_start();
    HostState *s = ARENA_NEW(t->arena, HostState);
    t->state = s;
    s->machine = host_machine_new(t, !host_is_sim(t) && t->options->opt_level > 0);
    if (!s->machine)
        return false;
    if (!t->module)
        t->module = LLVMModuleCreateWithNameInContext("fuse", t->llvm);
    char *triple = LLVMGetTargetMachineTriple(s->machine);
    LLVMSetTarget(t->module, triple);
    LLVMDisposeMessage(triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(s->machine);
    LLVMSetModuleDataLayout(t->module, layout);
    LLVMDisposeTargetData(layout);
    return true;
}

// LLVM's time grows faster than the code. Tiles far beyond the vector registers run slowly anyway:
// they get a quick translation, and what would take minutes is refused. A simulator's code is
// translated without passes.
static bool size_check(Target *t) {
    enum { LARGE = 30000, MOST = 150000, SIM_MOST = 200000 };
    HostState *s = host_state(t);
    int64_t size = target_code_size(t, false), most = host_is_sim(t) ? SIM_MOST : MOST;
    if (size > most) {
        target_too_large(t, size, most);
        return false;
    }
    s->is_large = !host_is_sim(t) && target_code_size(t, true) > LARGE;
    if (s->is_large && t->options->opt_level > 0) {
        LLVMDisposeTargetMachine(s->machine);
        s->machine = host_machine_new(t, false);
    }
    return s->machine != NULL;
}

static bool run_passes(Target *t) {
    static const char *const pipelines[] = {NULL, "default<O1>", "default<O2>", "default<O3>"};
    int level = t->options->opt_level;
    const char *passes = level < 0 ? NULL : pipelines[level > 3 ? 3 : level];
    if (host_is_sim(t) || !passes)
        return true;
    if (host_state(t)->is_large)
        passes = "function(sroa,early-cse,instcombine<no-verify-fixpoint>)";
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(t->module, passes, host_state(t)->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    char *text = LLVMGetErrorMessage(error);
    target_fail(t, "%s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

static bool emit_object(Target *t, BackendOutput *out) {
    char *error = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(host_state(t)->machine, t->module, LLVMObjectFile,
                                            &error, &buffer)) {
        target_fail(t, "%s", error);
        LLVMDisposeMessage(error);
        return false;
    }
    out->len = LLVMGetBufferSize(buffer);
    out->data = arena_alloc(t->arena, out->len + 1);
    memcpy(out->data, LLVMGetBufferStart(buffer), out->len);
    LLVMDisposeMemoryBuffer(buffer);
    return true;
}

static bool emit(Target *t, BackendOutput *out) {
    char *error = NULL;
    bool broken = LLVMVerifyModule(t->module, LLVMReturnStatusAction, &error);
    if (broken)
        target_fail(t, "internal error, invalid LLVM IR: %s", error);
    LLVMDisposeMessage(error);
    if (broken || !size_check(t) || !run_passes(t))
        return false;
    switch (t->options->emit) {
    case BACKEND_LLVM: {
        char *text = LLVMPrintModuleToString(t->module);
        out->data = arena_strdup(t->arena, text);
        out->len = strlen(text);
        LLVMDisposeMessage(text);
        return true;
    }
    case BACKEND_OBJECT:
        return emit_object(t, out);
    case BACKEND_PTX:
        target_fail(t, "PTX is not made for this target");
        return false;
    }
    return false;
}

static bool host_module_end(Target *t, BackendOutput *out) {
    HostState *s = host_state(t);
    bool ok = !t->failed && emit(t, out);
    if (s->machine)
        LLVMDisposeTargetMachine(s->machine);
    s->machine = NULL;
    return ok;
}

// --- kernel ------------------------------------------------------------------------------------

static LLVMTypeRef function_type(Target *t) {
    LLVMTypeRef pointer = host_pointer(t), i64 = target_int(t, 64), i32 = target_int(t, 32);
    LLVMTypeRef cpu[] = {pointer, i64, i64, pointer}, sim[] = {pointer, i64, i32, pointer};
    return LLVMFunctionType(LLVMVoidTypeInContext(t->llvm), host_is_sim(t) ? sim : cpu, 4, false);
}

static V load_param(Target *t, const AbiParam *param, int i) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef pointer = host_pointer(t);
    V index = LLVMConstInt(target_int(t, 64), (unsigned)i, false);
    V at = LLVMBuildGEP2(b, pointer, LLVMGetParam(t->function, 0), &index, 1, "");
    V from = LLVMBuildLoad2(b, pointer, at, "");
    DType dtype = param->dtype;
    if (param->kind == ABI_MAP)
        return from;
    if (param->kind == ABI_POINTER)
        return LLVMBuildLoad2(b, pointer, from, "");
    if (param->kind == ABI_STRIDE)
        return LLVMBuildLoad2(b, target_int(t, 64), from, "");
    LLVMTypeRef type = target_type(t, dtype);
    if (dtype == DT_BOOL) {
        V x = LLVMBuildLoad2(b, target_int(t, 8), from, "");
        return LLVMBuildICmp(b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
    }
    if (dtype == DT_F16 || dtype == DT_BF16)
        return LLVMBuildBitCast(b, LLVMBuildLoad2(b, target_int(t, 16), from, ""), type, "");
    return LLVMBuildLoad2(b, type, from, "");
}

// The program id counts from the launch's lower bound.
static V program_of(Target *t, V number, int n, const AbiParam *params, const Uni *values) {
    const Value *lo = t->launch ? op_binder_lo(t->launch, 0) : NULL;
    if (!lo || value_is_int(lo, 0))
        return number;
    if (value_is_const(lo))
        return LLVMBuildAdd(t->builder, number, uni_const(t, lo).v, "");
    for (int i = 0; i < n; i++)
        if (params[i].kind == ABI_SCALAR && params[i].value == lo)
            return LLVMBuildAdd(t->builder, number, values[i].v, "");
    return number;
}

static void begin_sim(Target *t) {
    HostState *s = host_state(t);
    s->program = LLVMGetParam(t->function, 1);
    s->warp = LLVMGetParam(t->function, 2);
    s->context = LLVMGetParam(t->function, 3);
    s->accumulators = NULL;
    LLVMTypeRef bytes = LLVMArrayType2(target_int(t, 8), HOST_SCRATCH_BYTES);
    for (int i = 0; i < HOST_SCRATCH; i++)
        s->scratch[i] = host_alloca(t, bytes, 64);
    LLVMPositionBuilderAtEnd(t->builder, s->first);
}

static void begin_cpu(Target *t, const Op *launch) {
    HostState *s = host_state(t);
    LLVMBuilderRef b = t->builder;
    s->context = LLVMGetParam(t->function, 3);
    s->warp = NULL;
    s->shared = NULL;
    s->nowhere = NULL;
    int64_t bytes = op_attr_int(launch, ATTR_smem);
    if (bytes > 0)
        s->shared = host_alloca(t, LLVMArrayType2(target_int(t, 8), (uint64_t)bytes), 64);
    V lo = LLVMGetParam(t->function, 1), hi = LLVMGetParam(t->function, 2);
    s->head = s->first;
    s->exit = LLVMAppendBasicBlockInContext(t->llvm, t->function, "return");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(t->llvm, t->function, "program");
    LLVMPositionBuilderAtEnd(b, s->head);
    s->program = LLVMBuildPhi(b, target_int(t, 64), "program");
    LLVMAddIncoming(s->program, &lo, &s->entry, 1);
    V more = LLVMBuildICmp(b, LLVMIntSLT, s->program, hi, "");
    LLVMBuildCondBr(b, more, body, s->exit);
    LLVMPositionBuilderAtEnd(b, body);
}

static void host_kernel_begin(Target *t, const Op *launch, const char *symbol, int n,
                              const AbiParam *params, Uni *values, Uni *program_id) {
    HostState *s = host_state(t);
    t->function = LLVMAddFunction(t->module, symbol, function_type(t));
    s->entry = LLVMAppendBasicBlockInContext(t->llvm, t->function, "entry");
    s->first = LLVMAppendBasicBlockInContext(t->llvm, t->function, "first");
    LLVMPositionBuilderAtEnd(t->builder, s->entry);
    for (int i = 0; i < n; i++)
        values[i].v = load_param(t, &params[i], i);
    if (host_is_sim(t))
        begin_sim(t);
    else
        begin_cpu(t, launch);
    program_id->v = program_of(t, s->program, n, params, values);
}

static void host_kernel_end(Target *t) {
    HostState *s = host_state(t);
    LLVMBuilderRef b = t->builder;
    if (host_is_sim(t)) {
        LLVMBuildRetVoid(b);
    } else {
        V one = LLVMConstInt(target_int(t, 64), 1, false);
        V next = LLVMBuildAdd(b, s->program, one, "");
        LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
        LLVMAddIncoming(s->program, &next, &latch, 1);
        LLVMBuildBr(b, s->head);
        LLVMPositionBuilderAtEnd(b, s->exit);
        LLVMBuildRetVoid(b);
    }
    LLVMPositionBuilderAtEnd(b, s->entry);
    LLVMBuildBr(b, s->first);
}

// --- what differs between cpu and sim ----------------------------------------------------------

static void load_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                        Lane *out) {
    (host_is_sim(t) ? sim_emit_load_global : host_load_global)(t, access, p, pred, fill, out);
}
static void store_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in) {
    (host_is_sim(t) ? sim_emit_store_global : host_store_global)(t, access, p, pred, in);
}
static void atomic(Target *t, const Access *access, AtomicKind kind, Ptr p, Lane pred, Lane v,
                   Lane *old) {
    (host_is_sim(t) ? sim_emit_atomic : host_atomic)(t, access, kind, p, pred, v, old);
}

static void cas(Target *t, const Access *access, Ptr p, Lane pred, Lane expected, Lane v,
                Lane *old) {
    (host_is_sim(t) ? sim_emit_cas : host_cas)(t, access, p, pred, expected, v, old);
}
static void load_shared(Target *t, const Access *access, Shared p, Lane pred, Lane *out) {
    (host_is_sim(t) ? sim_emit_load_shared : host_load_shared)(t, access, p, pred, out);
}
static void store_shared(Target *t, const Access *access, Shared p, Lane pred, const Lane *in) {
    (host_is_sim(t) ? sim_emit_store_shared : host_store_shared)(t, access, p, pred, in);
}

static void ldmatrix(Target *t, const Access *access, int count, bool trans, Shared p, Lane *out) {
    if (host_is_sim(t)) {
        sim_emit_ldmatrix(t, access, count, trans, p, out);
        return;
    }
    target_fail(t, "ldmatrix");
    for (int i = 0; i < 2 * count; i++)
        out[i].v = LLVMGetUndef(host_vector(t, target_type(t, access->dtype)));
}

// A program of cpu is one warp: nobody to wait for.
static void named_barrier(Target *t, int id, int warps) {
    if (host_is_sim(t))
        sim_emit_barrier(t, id, warps);
}
// In a role: of its warps. Barriers 15, 14, .. are kept for that, as on the GPU.
static void block_barrier(Target *t) {
    if (t->role)
        named_barrier(t, 16 - t->role, t->warps);
    else
        named_barrier(t, 0, 0);
}

static void mma(Target *t, MmaUnit unit, DType da, DType db, const Lane *a, const Lane *b,
                const Lane *c, Lane *out) {
    if (host_is_sim(t)) {
        sim_emit_mma(t, unit, da, db, a, b, c, out);
        return;
    }
    target_fail(t, "matrix unit");
    for (int i = 0; i < mma_shape(unit).c; i++)
        out[i] = c[i];
}

// cpu: a copy is done at once.
static void cp_async(Target *t, const Access *access, Shared to, Ptr from, Lane pred, Lane active) {
    if (host_is_sim(t)) {
        sim_emit_cp_async(t, access, to, from, pred, active);
        return;
    }
    Lane x[64];
    host_load_global(t, access, from, lane_and(t, pred, active), NULL, x);
    host_store_shared(t, access, to, active, x);
}
static void cp_commit(Target *t) {
    if (host_is_sim(t))
        sim_emit_cp_commit(t);
}
static void cp_wait(Target *t, int pending) {
    if (host_is_sim(t))
        sim_emit_cp_wait(t, pending);
}

static void span(Target *t, Span at) {
    (void)t; // reports take t->op's
    (void)at;
}

// cpu: the message goes to the context; the store always happens, but elsewhere when all is well.
static void check(Target *t, Lane ok, Lane guard, const char *message) {
    if (host_is_sim(t)) {
        sim_emit_check(t, ok, guard, message);
        return;
    }
    V bad = LLVMBuildNot(t->builder, ok.v, "");
    if (guard.v)
        bad = LLVMBuildAnd(t->builder, bad, guard.v, "");
    V nowhere = host_alloca(t, host_pointer(t), 8);
    V to = LLVMBuildSelect(t->builder, host_mask_any(t, bad), host_state(t)->context, nowhere, "");
    LLVMBuildStore(t->builder, host_text(t, message), to);
}

// One lane after another, through memory: the text is large, the code is not.
static void print(Target *t, Lane pred, const Print *p) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef i64 = target_int(t, 64), f64 = target_type(t, DT_F64), i32 = target_int(t, 32);
    V mask = pred.v ? pred.v : host_splat(t, LLVMConstInt(target_int(t, 1), 1, false));
    if (p->of_failure && !host_is_sim(t)) {
        V first =
            LLVMBuildIsNull(b, LLVMBuildLoad2(b, host_pointer(t), host_state(t)->context, ""), "");
        mask = LLVMBuildAnd(b, mask, host_splat(t, first), "");
    }
    mask = LLVMBuildZExt(b, mask, host_lanes_int(t, 8), "");
    V bits = host_alloca(t, LLVMTypeOf(mask), 64), slot[16], args[17];
    LLVMTypeRef types[17] = {host_pointer(t)};
    LLVMBuildStore(b, mask, bits);
    for (int i = 0; i < p->n; i++) {
        slot[i] = host_alloca(t, LLVMTypeOf(p->values[i].v), 64);
        LLVMBuildStore(b, p->values[i].v, slot[i]);
    }
    LLVMTypeRef type = LLVMFunctionType(i32, types, 1, true);
    V function = LLVMGetNamedFunction(t->module, "printf");
    if (!function)
        function = LLVMAddFunction(t->module, "printf", type);
    LoopState loop;
    loop_begin(t, &loop, uni_int(t, 64, 0), uni_int(t, 64, t->desc->lanes), uni_int(t, 64, 1), 0,
               NULL);
    V at = LLVMBuildGEP2(b, target_int(t, 8), bits, &loop.counter, 1, "");
    V on = LLVMBuildLoad2(b, target_int(t, 8), at, "");
    IfState s;
    if_begin(t, &s, (Uni){LLVMBuildIsNotNull(b, on, "")});
    args[0] = host_text(t, p->format);
    for (int i = 0; i < p->n; i++) {
        LLVMTypeRef element = p->is_float[i] ? f64 : i64;
        V q = LLVMBuildGEP2(b, element, slot[i], &loop.counter, 1, "");
        args[1 + i] = LLVMBuildLoad2(b, element, q, "");
    }
    LLVMBuildCall2(b, type, function, args, (unsigned)p->n + 1, "");
    if_end(t, &s, 0, NULL, NULL, NULL);
    loop_end(t, &loop, uni_int(t, 64, 1), NULL, (Uni){NULL});
}

// Vectors are at most 32 words of 64 bits, and aligned to their size.
static V thread_memory(Target *t, LLVMTypeRef type) {
    return host_alloca(t, type, 256);
}

const TargetOps *target_ops_host(void) {
    static const TargetOps ops = {
        .name = "host",
        .module_begin = host_module_begin,
        .module_end = host_module_end,
        .kernel_begin = host_kernel_begin,
        .kernel_end = host_kernel_end,
        .warp_id = host_warp_id,
        .lane_id = host_lane_id,
        .splat = host_splat_uni,
        .lane_first = host_lane_first,
        .arith = host_arith,
        .select = host_select,
        .cast = host_cast,
        .bitcast = host_bitcast,
        .thread_memory = thread_memory,
        .load_global = load_global,
        .store_global = store_global,
        .atomic = atomic,
        .cas = cas,
        .load_shared = load_shared,
        .store_shared = store_shared,
        .ldmatrix = ldmatrix,
        .shuffle_xor = host_shuffle_xor,
        .shuffle_idx = host_shuffle_idx,
        .block_barrier = block_barrier,
        .named_barrier = named_barrier,
        .mma = mma,
        .cp_async = cp_async,
        .cp_commit = cp_commit,
        .cp_wait = cp_wait,
        .warp_uniform = sim_emit_warp_uniform,
        .elect = sim_emit_elect,
        .set_regs = sim_emit_set_regs,
        .fence = sim_emit_fence,
        .stmatrix = sim_emit_stmatrix,
        .mbar_init = sim_emit_mbar_init,
        .mbar_init_fence = sim_emit_mbar_init_fence,
        .mbar_expect = sim_emit_mbar_expect,
        .mbar_arrive = sim_emit_mbar_arrive,
        .mbar_wait = sim_emit_mbar_wait,
        .warp_barrier = sim_emit_warp_barrier,
        .tma_load = sim_emit_tma_load,
        .tma_store = sim_emit_tma_store,
        .tma_commit = sim_emit_tma_commit,
        .tma_wait = sim_emit_tma_wait,
        .mma_fence = sim_emit_mma_fence,
        .mma_issue = sim_emit_mma_issue,
        .mma_commit = sim_emit_mma_commit,
        .mma_wait = sim_emit_mma_wait,
        .span = span,
        .check = check,
        .print = print,
    };
    return &ops;
}

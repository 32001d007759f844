// What holds for every target: types, uniform arithmetic, control flow.
//
// Input: a Target whose builder stands where code is to be added. Output: LLVM instructions there.
// Loops and ifs are ordinary LLVM blocks in all targets, because conditions are uniform; carried
// registers are phis, one per register, whatever their kind.
#include "backend/target.h"
#include "lang/base/vec.h"

#include <stdarg.h>
#include <string.h>

void target_fail(Target *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Span span = t->op ? t->op->span : (Span){0, 0};
    char *message = arena_vprintf(t->arena, format, args);
    va_end(args);
    if (!t->failed)
        diag_add(t->diags, DIAG_UNSUPPORTED, span, "%s: %s (target %s)",
                 t->op ? op_info(t->op->kind)->text : "kernel", message, t->desc->name);
    t->failed = true;
}

void target_too_large(Target *t, int64_t instructions, int64_t most) {
    Span span = t->launch ? t->launch->span : (Span){0, 0};
    if (!t->failed)
        diag_add(t->diags, DIAG_TOO_LARGE, span,
                 "a thread of this launch has at least %lld instructions, more than %lld: choose "
                 "smaller "
                 "tiles or more warps, or write loops (target %s)",
                 (long long)instructions, (long long)most, t->desc->name);
    t->failed = true;
}

typedef struct FunctionSize {
    LLVMValueRef function;
    int64_t size;
} FunctionSize;

// Where there are calls to count, `known` has what is called.
static int64_t function_size(LLVMValueRef f, uint32_t n, const FunctionSize *known) {
    int64_t size = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            size++;
            LLVMValueRef callee = n && LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
            for (uint32_t k = 0; callee && k < n; k++)
                size += known[k].function == callee ? known[k].size : 0;
        }
    return size;
}

int64_t target_code_size(Target *t, bool inlined) {
    VEC(FunctionSize) list = {0};
    int64_t most = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(t->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            vec_push(t->arena, &list, ((FunctionSize){f, function_size(f, 0, NULL)}));
    for (uint32_t i = 0; i < list.len; i++) {
        LLVMValueRef f = list.data[i].function;
        int64_t size = inlined ? function_size(f, list.len, list.data) : list.data[i].size;
        most = size > most ? size : most;
    }
    return most;
}

MmaShape mma_shape(MmaUnit unit) {
    switch (unit) {
    case MMA_M16N8K16:
        return (MmaShape){.a = 8, .b = 4, .c = 4, .m = 16, .k = 16};
    case MMA_M16N8K8:
        return (MmaShape){.a = 4, .b = 2, .c = 4, .m = 16, .k = 8};
    case MMA_M16N8K8_TF32:
        return (MmaShape){.a = 4, .b = 2, .c = 4, .m = 16, .k = 8};
    case MMA_M16N8K32:
        return (MmaShape){.a = 16, .b = 8, .c = 4, .m = 16, .k = 32};
    case MMA_M8N8K4:
        return (MmaShape){.a = 1, .b = 1, .c = 2, .m = 8, .k = 4};
    }
    return (MmaShape){0};
}

LLVMTypeRef target_int(Target *t, int bits) {
    return LLVMIntTypeInContext(t->llvm, (unsigned)bits);
}

LLVMTypeRef target_type(Target *t, DType dtype) {
    switch (dtype) {
    case DT_BOOL:
        return target_int(t, 1);
    case DT_I4:
    case DT_U4:
    case DT_E4M3:
    case DT_E5M2:
    case DT_I8:
    case DT_U8:
        return target_int(t, 8);
    case DT_I16:
    case DT_U16:
        return target_int(t, 16);
    case DT_I32:
    case DT_U32:
        return target_int(t, 32);
    case DT_I64:
    case DT_U64:
    case DT_INDEX:
        return target_int(t, 64);
    case DT_F16:
        return LLVMHalfTypeInContext(t->llvm);
    case DT_BF16:
        return LLVMBFloatTypeInContext(t->llvm);
    case DT_F32:
        return LLVMFloatTypeInContext(t->llvm);
    case DT_F64:
        return LLVMDoubleTypeInContext(t->llvm);
    case DT_NONE:
    case DT_COUNT_:
        break;
    }
    return target_int(t, 32);
}

// --- uniform values ---

// LLVM wants constants that fit the type, with its sign.
static LLVMValueRef const_int(LLVMTypeRef type, int64_t value) {
    unsigned unused = 64 - LLVMGetIntTypeWidth(type);
    uint64_t bits = (uint64_t)value << unused;
    return LLVMConstInt(type, (unsigned long long)((int64_t)bits >> unused), true);
}

Uni uni_int(Target *t, int bits, int64_t value) {
    return (Uni){const_int(target_int(t, bits), value)};
}

// Bits of an fp8 constant: the value is one of the type's exactly, so a search over all codes finds
// it.
static uint8_t fp8_code(DType dtype, double f) {
    int mantissa = dtype == DT_E4M3 ? 3 : 2, bias = dtype == DT_E4M3 ? 7 : 15;
    if (f != f)
        return dtype == DT_E4M3 ? 0x7f : 0x7e;
    uint8_t sign = __builtin_signbit(f) ? 0x80 : 0;
    double size = f < 0 ? -f : f;
    if (__builtin_isinf(size))
        return (uint8_t)(sign | (dtype == DT_E4M3 ? 0x7e : 0x7c));
    for (unsigned code = 0; code < 0x7f; code++) {
        unsigned e = code >> mantissa, m = code & ((1u << mantissa) - 1);
        double v = e == 0 ? (double)m : (double)(m + (1u << mantissa));
        int shift = (e == 0 ? 1 : (int)e) - bias - mantissa;
        for (; shift > 0; shift--)
            v *= 2;
        for (; shift < 0; shift++)
            v /= 2;
        if (v == size)
            return (uint8_t)(sign | code);
    }
    return sign;
}

Uni uni_const(Target *t, const Value *constant) {
    DType dtype = constant->type.dtype;
    LLVMTypeRef type = target_type(t, dtype);
    if (dtype_is_fp8(dtype))
        return (Uni){LLVMConstInt(type, fp8_code(dtype, constant->u.f), false)};
    if (dtype_is_float(dtype)) {
        // LLVMConstReal rounds a double to half and bfloat; infinities and NaNs survive too.
        return (Uni){LLVMConstReal(type, constant->u.f)};
    }
    return (Uni){const_int(type, constant->u.i)};
}

bool uni_is_int(Uni a, int64_t value) {
    return a.v && LLVMIsAConstantInt(a.v) && LLVMConstIntGetSExtValue(a.v) == value;
}

Uni uni_add(Target *t, Uni a, Uni b) {
    if (!a.v || uni_is_int(a, 0))
        return b;
    if (!b.v || uni_is_int(b, 0))
        return a;
    return (Uni){LLVMBuildAdd(t->builder, a.v, b.v, "")};
}

Uni uni_mul(Target *t, Uni a, Uni b) {
    if (uni_is_int(a, 1) || uni_is_int(b, 0))
        return b;
    if (uni_is_int(b, 1) || uni_is_int(a, 0))
        return a;
    return (Uni){LLVMBuildMul(t->builder, a.v, b.v, "")};
}

Uni uni_resize(Target *t, Uni a, int bits, bool is_signed) {
    return (Uni){LLVMBuildIntCast2(t->builder, a.v, target_int(t, bits), is_signed, "")};
}

// --- lanes ---

Lane lane_int(Target *t, DType dtype, int64_t value) {
    LLVMTypeRef type = target_type(t, dtype);
    return t->ops->splat(t, (Uni){const_int(type, value)});
}

Lane lane_op2(Target *t, OpKind kind, DType dtype, Lane a, Lane b) {
    return t->ops->arith(t, kind, 0, dtype, 0, (Lane[]){a, b});
}

Lane lane_cmp(Target *t, CmpKind kind, DType dtype, Lane a, Lane b) {
    return t->ops->arith(t, OP_CMP, (uint8_t)kind, dtype, 0, (Lane[]){a, b});
}

Lane lane_and(Target *t, Lane a, Lane b) {
    if (!a.v)
        return b;
    if (!b.v)
        return a;
    return lane_op2(t, OP_AND, DT_BOOL, a, b);
}

Lane lane_resize(Target *t, Lane a, DType from, DType to) {
    Lane out = a;
    if (from != to)
        t->ops->cast(t, from, to, 1, &a, &out);
    return out;
}

// --- control flow ---

static LLVMBasicBlockRef block_new(Target *t, const char *name) {
    return LLVMAppendBasicBlockInContext(t->llvm, t->function, name);
}

static void block_enter(Target *t, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(t->builder, block);
}

// Whether an iteration at `c` is to run: before the end in the direction of the step. A step of 0
// runs none. A constant step folds to one comparison.
static LLVMValueRef loop_more(Target *t, LLVMValueRef c, LLVMValueRef hi, LLVMValueRef step) {
    LLVMValueRef zero = LLVMConstInt(LLVMTypeOf(step), 0, true);
    LLVMValueRef up = LLVMBuildICmp(t->builder, LLVMIntSGT, step, zero, "");
    LLVMValueRef down = LLVMBuildICmp(t->builder, LLVMIntSLT, step, zero, "");
    LLVMValueRef below = LLVMBuildICmp(t->builder, LLVMIntSLT, c, hi, "");
    if (LLVMIsConstant(up) && LLVMConstIntGetZExtValue(up))
        return below;
    LLVMValueRef above = LLVMBuildICmp(t->builder, LLVMIntSGT, c, hi, "");
    return LLVMBuildOr(t->builder, LLVMBuildAnd(t->builder, up, below, ""),
                       LLVMBuildAnd(t->builder, down, above, ""), "");
}

// before -> head: phis, test -> body ... -> head; head -> exit. The builder is left in the head.
static void loop_head(Target *t, LoopState *loop, Uni lo, int n, const LLVMValueRef *init) {
    LLVMBasicBlockRef before = LLVMGetInsertBlock(t->builder);
    loop->head = block_new(t, "head");
    loop->body = block_new(t, "body");
    loop->exit = block_new(t, "exit");
    loop->n = n;
    loop->phi = ARENA_ARRAY(t->arena, LLVMValueRef, (size_t)(n ? n : 1) + 1);
    LLVMBuildBr(t->builder, loop->head);
    block_enter(t, loop->head);
    loop->counter = NULL;
    loop->counts = false;
    if (lo.v) {
        loop->counter = LLVMBuildPhi(t->builder, LLVMTypeOf(lo.v), "i");
        LLVMAddIncoming(loop->counter, &lo.v, &before, 1);
    }
    for (int i = 0; i < n; i++) {
        loop->phi[i] = LLVMBuildPhi(t->builder, LLVMTypeOf(init[i]), "");
        LLVMAddIncoming(loop->phi[i], (LLVMValueRef *)&init[i], &before, 1);
    }
    // phi[n] remembers `stop`; loops that never stop fold it away.
    LLVMValueRef no = LLVMConstInt(target_int(t, 1), 0, false);
    loop->phi[n] = LLVMBuildPhi(t->builder, target_int(t, 1), "stop");
    LLVMAddIncoming(loop->phi[n], &no, &before, 1);
}

// Into the body while the loop has not stopped, and `more` holds (NULL: always).
static void loop_test(Target *t, LoopState *loop, LLVMValueRef go, LLVMValueRef more) {
    if (more)
        go = LLVMBuildAnd(t->builder, more, go, "");
    LLVMBuildCondBr(t->builder, go, loop->body, loop->exit);
    block_enter(t, loop->body);
}

static LLVMValueRef loop_goes_on(Target *t, const LoopState *loop) {
    return LLVMBuildNot(t->builder, loop->phi[loop->n], "");
}

void loop_begin(Target *t, LoopState *loop, Uni lo, Uni hi, Uni step, int n,
                const LLVMValueRef *init) {
    loop_head(t, loop, lo, n, init);
    LLVMValueRef go = loop_goes_on(t, loop);
    loop_test(t, loop, go, lo.v ? loop_more(t, loop->counter, hi.v, step.v) : NULL);
    loop->at = (Uni){loop->counter};
}

// The number of iterations that start at lo and come before hi, as an unsigned number.
static LLVMValueRef loop_length(Target *t, Uni lo, Uni hi, Uni step) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef type = LLVMTypeOf(lo.v);
    LLVMValueRef zero = LLVMConstInt(type, 0, false), one = LLVMConstInt(type, 1, false);
    LLVMValueRef down = LLVMBuildICmp(b, LLVMIntSLT, step.v, zero, "");
    LLVMValueRef from = LLVMBuildSelect(b, down, hi.v, lo.v, "");
    LLVMValueRef to = LLVMBuildSelect(b, down, lo.v, hi.v, "");
    LLVMValueRef size = LLVMBuildSelect(b, down, LLVMBuildNeg(b, step.v, ""), step.v, "");
    LLVMValueRef none = LLVMBuildOr(b, LLVMBuildICmp(b, LLVMIntSGE, from, to, ""),
                                    LLVMBuildICmp(b, LLVMIntEQ, size, zero, ""), "");
    LLVMValueRef last = LLVMBuildSub(b, LLVMBuildSub(b, to, from, ""), one, "");
    size = LLVMBuildSelect(b, none, one, size, "");
    LLVMValueRef count = LLVMBuildAdd(b, LLVMBuildUDiv(b, last, size, ""), one, "");
    return LLVMBuildSelect(b, none, zero, count, "");
}

void loop_begin_exact(Target *t, LoopState *loop, Uni lo, Uni hi, Uni step, int n,
                      const LLVMValueRef *init) {
    LLVMValueRef length = loop_length(t, lo, hi, step);
    loop_head(t, loop, (Uni){LLVMConstInt(LLVMTypeOf(lo.v), 0, false)}, n, init);
    loop->counts = true;
    LLVMValueRef number = loop->counter, go = loop_goes_on(t, loop);
    loop_test(t, loop, go, LLVMBuildICmp(t->builder, LLVMIntULT, number, length, ""));
    loop->at = uni_add(t, lo, (Uni){LLVMBuildMul(t->builder, number, step.v, "")});
}

void loop_end(Target *t, LoopState *loop, Uni step, const LLVMValueRef *next, Uni stop) {
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(t->builder);
    if (loop->counter) {
        LLVMValueRef one = LLVMConstInt(LLVMTypeOf(loop->counter), 1, false);
        LLVMValueRef following = loop->counts
                                     ? LLVMBuildNUWAdd(t->builder, loop->counter, one, "")
                                     : LLVMBuildNSWAdd(t->builder, loop->counter, step.v, "");
        LLVMAddIncoming(loop->counter, &following, &latch, 1);
    }
    for (int i = 0; i < loop->n; i++)
        LLVMAddIncoming(loop->phi[i], (LLVMValueRef *)&next[i], &latch, 1);
    LLVMValueRef flag = stop.v ? stop.v : LLVMConstInt(target_int(t, 1), 0, false);
    LLVMAddIncoming(loop->phi[loop->n], &flag, &latch, 1);
    LLVMBuildBr(t->builder, loop->head);
    block_enter(t, loop->exit);
}

void loop_stay_rolled(Target *t, const LoopState *loop) {
    static const char name[] = "llvm.loop.unroll.disable";
    LLVMValueRef latch = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(loop->counter, 1));
    LLVMMetadataRef self = LLVMTemporaryMDNode(t->llvm, NULL, 0);
    LLVMMetadataRef text = LLVMMDStringInContext2(t->llvm, name, sizeof name - 1);
    LLVMMetadataRef disable = LLVMMDNodeInContext2(t->llvm, &text, 1);
    LLVMMetadataRef id = LLVMMDNodeInContext2(t->llvm, (LLVMMetadataRef[]){self, disable}, 2);
    LLVMMetadataReplaceAllUsesWith(self, id); // the first operand of a loop's node is the node
    LLVMSetMetadata(latch, LLVMGetMDKindIDInContext(t->llvm, "llvm.loop", 9),
                    LLVMMetadataAsValue(t->llvm, id));
}

void if_begin(Target *t, IfState *s, Uni cond) {
    s->then = block_new(t, "then");
    s->other = block_new(t, "else");
    s->exit = block_new(t, "endif");
    s->then_end = NULL;
    LLVMBuildCondBr(t->builder, cond.v, s->then, s->other);
    block_enter(t, s->then);
}

void if_else(Target *t, IfState *s) {
    s->then_end = LLVMGetInsertBlock(t->builder);
    LLVMBuildBr(t->builder, s->exit);
    block_enter(t, s->other);
}

void if_end(Target *t, IfState *s, int n, const LLVMValueRef *then_values,
            const LLVMValueRef *else_values, LLVMValueRef *out) {
    if (!s->then_end)
        if_else(t, s);
    LLVMBasicBlockRef else_end = LLVMGetInsertBlock(t->builder);
    LLVMBuildBr(t->builder, s->exit);
    block_enter(t, s->exit);
    for (int i = 0; i < n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(t->builder, LLVMTypeOf(then_values[i]), "");
        LLVMAddIncoming(phi, (LLVMValueRef *)&then_values[i], &s->then_end, 1);
        LLVMAddIncoming(phi, (LLVMValueRef *)&else_values[i], &else_end, 1);
        out[i] = phi;
    }
}

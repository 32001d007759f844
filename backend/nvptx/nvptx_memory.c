// Memory accesses of the nvptx target.
//
// Input: addresses of one thread, predicates. Output: plain loads and stores without a predicate,
// predicated inline PTX with one; both move 32-bit words (16 bytes at most). Invariant: nothing is
// touched where the predicate is false; the fill is what the registers hold then.
#include "backend/nvptx/nvptx_impl.h"

#include <stdio.h>
#include <string.h>

// How `width` elements travel: as words of 32 bits, or one 16-bit or 8-bit piece.
typedef struct Shape {
    int words; // 1, 2, 4; 0: one piece of less than 32 bits
    int bits;  // of a word or piece
    int per;   // elements in a word
} Shape;

static int element_bits(DType dtype) {
    uint32_t bits = dtype_bits(dtype);
    return bits < 8 ? 8 : (int)bits;
}

static Shape shape_of(const Access *a) {
    int bits = element_bits(a->dtype), total = bits * a->width;
    if (total < 32)
        return (Shape){.words = 0, .bits = total, .per = a->width};
    if (bits == 64)
        return (Shape){.words = a->width, .bits = 64, .per = 1};
    return (Shape){.words = total / 32, .bits = 32, .per = 32 / bits};
}

static V words_of(Target *t, const Access *a, Shape s, const Lane *x, V *word) {
    int n = s.words ? s.words : 1;
    for (int i = 0; i < n; i++)
        word[i] = nvptx_pack(t, a->dtype, s.per, x + i * s.per);
    return word[0];
}

static void elements_of(Target *t, const Access *a, Shape s, V *word, Lane *out) {
    int n = s.words ? s.words : 1;
    for (int i = 0; i < n; i++)
        nvptx_unpack(t, a->dtype, s.per, word[i], out + i * s.per);
}

static V pointer_of(Target *t, Ptr p, bool with_imm) {
    LLVMTypeRef i8 = target_int(t, 8);
    V v = p.base.v;
    if (p.offset.v)
        v = LLVMBuildGEP2(t->builder, i8, v, &p.offset.v, 1, "");
    if (with_imm && p.imm) {
        V imm = nvptx_const(t, 64, p.imm);
        v = LLVMBuildGEP2(t->builder, i8, v, &imm, 1, "");
    }
    return v;
}

// An unsigned offset: shared memory is far smaller than 2^31.
V nvptx_shared_pointer(Target *t, Shared p, bool with_imm) {
    LLVMTypeRef i8 = target_int(t, 8);
    V v = nvptx_of(t)->shared;
    if (p.base.v)
        v = LLVMBuildGEP2(t->builder, i8, v, &p.base.v, 1, "");
    if (p.offset.v)
        v = LLVMBuildGEP2(t->builder, i8, v, &p.offset.v, 1, "");
    if (with_imm && p.imm) {
        V imm = nvptx_const(t, 32, p.imm);
        v = LLVMBuildGEP2(t->builder, i8, v, &imm, 1, "");
    }
    return v;
}

static bool always(Lane pred) {
    return !pred.v || (LLVMIsAConstantInt(pred.v) && !LLVMIsNull(pred.v));
}

// --- without a predicate ---

static LLVMTypeRef plain_type(Target *t, Shape s) {
    LLVMTypeRef word = target_int(t, s.bits);
    return s.words > 1 ? LLVMVectorType(word, (unsigned)s.words) : word;
}

static void plain_load(Target *t, const Access *a, V pointer, bool invariant, Lane *out) {
    Shape s = shape_of(a);
    V v = LLVMBuildLoad2(t->builder, plain_type(t, s), pointer, "");
    LLVMSetAlignment(v, (unsigned)a->align);
    if (invariant) {
        unsigned kind = LLVMGetMDKindIDInContext(t->llvm, "invariant.load", 14);
        LLVMSetMetadata(v, kind,
                        LLVMMetadataAsValue(t->llvm, LLVMMDNodeInContext2(t->llvm, NULL, 0)));
    }
    V word[4] = {v};
    for (int i = 0; i < s.words && s.words > 1; i++)
        word[i] = LLVMBuildExtractElement(t->builder, v, nvptx_const(t, 32, i), "");
    elements_of(t, a, s, word, out);
}

static void plain_store(Target *t, const Access *a, V pointer, const Lane *in) {
    Shape s = shape_of(a);
    V word[4] = {NULL};
    V v = words_of(t, a, s, in, word);
    if (s.words > 1) {
        v = LLVMGetUndef(plain_type(t, s));
        for (int i = 0; i < s.words; i++)
            v = LLVMBuildInsertElement(t->builder, v, word[i], nvptx_const(t, 32, i), "");
    }
    LLVMSetAlignment(LLVMBuildStore(t->builder, v, pointer), (unsigned)a->align);
}

// --- with a predicate, or a cache hint ---

static const char *word_constraint(Shape s) {
    return s.bits == 64 ? "l" : s.bits == 32 ? "r" : "h";
}

// "{$0,$1}" or "$0", operands from `first` on.
static void operand_list(char *text, size_t cap, int first, int n) {
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s$%d", i ? "," : n > 1 ? "{" : "", first + i);
    if (n > 1)
        snprintf(text + at, cap - at, "}");
}

static void vector_suffix(char *text, size_t cap, Shape s) {
    if (s.words > 1)
        snprintf(text, cap, ".v%d.b%d", s.words, s.bits);
    else
        snprintf(text, cap, ".b%d", s.bits);
}

// Outputs tied to the fill: what is not loaded stays as it was.
static void asm_load(Target *t, const Access *a, const char *op, V pointer,
                     const char *pointer_constraint, int64_t imm, Lane pred, const Lane *fill,
                     bool effect, Lane *out) {
    Shape s = shape_of(a);
    int n = s.words ? s.words : 1;
    V args[8];
    Lane zeros[16], given[16];
    V zero = LLVMConstNull(target_type(t, a->dtype));
    for (int i = 0; i < a->width && i < 16; i++) {
        zeros[i].v = zero;
        given[i].v = fill && fill[i].v ? fill[i].v : zero;
    }
    words_of(t, a, s, fill ? given : zeros, args);
    args[n] = pointer;
    args[n + 1] = pred.v;
    char text[256], list[64], suffix[32], constraints[128];
    operand_list(list, sizeof list, 0, n);
    vector_suffix(suffix, sizeof suffix, s);
    const char *guard = pred.v ? "@" : "";
    char number[16] = "";
    if (pred.v)
        snprintf(number, sizeof number, "$%d ", 2 * n + 1);
    snprintf(text, sizeof text, "%s%s%s%s %s, [$%d+%lld];", guard, number, op, suffix, list, 2 * n,
             (long long)imm);
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at +=
            (size_t)snprintf(constraints + at, sizeof constraints - at, "=%s,", word_constraint(s));
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(constraints + at, sizeof constraints - at, "%d,", i);
    snprintf(constraints + at, sizeof constraints - at, "%s%s%s", pointer_constraint,
             pred.v ? ",b" : "", effect ? ",~{memory}" : "");
    LLVMTypeRef types[4], word_type = target_int(t, s.bits);
    for (int i = 0; i < n; i++)
        types[i] = word_type;
    LLVMTypeRef ret =
        n > 1 ? LLVMStructTypeInContext(t->llvm, types, (unsigned)n, false) : word_type;
    V r = nvptx_asm(t, ret, text, constraints, n + 1 + (pred.v ? 1 : 0), args, effect);
    V word[4] = {r};
    for (int i = 0; i < n && n > 1; i++)
        word[i] = LLVMBuildExtractValue(t->builder, r, (unsigned)i, "");
    elements_of(t, a, s, word, out);
}

static void asm_store(Target *t, const Access *a, const char *op, V pointer,
                      const char *pointer_constraint, int64_t imm, Lane pred, const Lane *in) {
    Shape s = shape_of(a);
    int n = s.words ? s.words : 1;
    V args[8];
    words_of(t, a, s, in, args);
    args[n] = pointer;
    args[n + 1] = pred.v;
    char text[256], list[64], suffix[32], constraints[128], guard[16] = "";
    operand_list(list, sizeof list, 0, n);
    vector_suffix(suffix, sizeof suffix, s);
    if (pred.v)
        snprintf(guard, sizeof guard, "@$%d ", n + 1);
    snprintf(text, sizeof text, "%s%s%s [$%d+%lld], %s;", guard, op, suffix, n, (long long)imm,
             list);
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at +=
            (size_t)snprintf(constraints + at, sizeof constraints - at, "%s,", word_constraint(s));
    snprintf(constraints + at, sizeof constraints - at, "%s%s,~{memory}", pointer_constraint,
             pred.v ? ",b" : "");
    nvptx_asm(t, NULL, text, constraints, n + 1 + (pred.v ? 1 : 0), args, true);
}

void nvptx_load_global(Target *t, const Access *a, Ptr p, Lane pred, const Lane *fill, Lane *out) {
    if (always(pred) && a->cache != CACHE_STREAM) {
        plain_load(t, a, pointer_of(t, p, true), a->read_only, out);
        return;
    }
    const char *op = a->read_only ? "ld.global.nc" : "ld.global";
    if (a->cache == CACHE_STREAM)
        op = a->read_only ? "ld.global.nc.L1::no_allocate" : "ld.global.L1::no_allocate";
    if (always(pred))
        pred.v = NULL;
    asm_load(t, a, op, pointer_of(t, p, false), "l", p.imm, pred, fill, !a->read_only, out);
}

void nvptx_store_global(Target *t, const Access *a, Ptr p, Lane pred, const Lane *in) {
    if (always(pred) && a->cache != CACHE_STREAM) {
        plain_store(t, a, pointer_of(t, p, true), in);
        return;
    }
    const char *op = a->cache == CACHE_STREAM ? "st.global.L1::no_allocate" : "st.global";
    if (always(pred))
        pred.v = NULL;
    asm_store(t, a, op, pointer_of(t, p, false), "l", p.imm, pred, in);
}

// --- atomics ---

static const char *atomic_type(AtomicKind kind, DType dtype) {
    bool bitwise =
        kind == ATOMIC_AND || kind == ATOMIC_OR || kind == ATOMIC_XOR || kind == ATOMIC_XCHG;
    bool ordered = kind == ATOMIC_MAX || kind == ATOMIC_MIN;
    int bits = element_bits(dtype);
    if (bits < 32) {
        if (kind == ATOMIC_ADD && dtype == DT_F16)
            return "noftz.f16";
        if (kind == ATOMIC_ADD && dtype == DT_BF16)
            return "noftz.bf16";
        return NULL;
    }
    if (bitwise)
        return bits == 32 ? "b32" : "b64";
    if (dtype == DT_F32 || dtype == DT_F64)
        return kind == ATOMIC_ADD ? (dtype == DT_F32 ? "f32" : "f64") : NULL;
    if (ordered && dtype_is_signed(dtype))
        return bits == 32 ? "s32" : "s64";
    return bits == 32 ? "u32" : "u64";
}

// The word that holds an element and what is done to it by one instruction: of bytes the aligned 32
// bits around them, of other elements those themselves. Such a word never crosses a page, and its
// other bytes keep what they have.
typedef struct Word {
    Access access;
    Ptr at;
    V shift; // bits below the element; NULL: it is the whole word
    DType dtype;
} Word;

static Word word_around(Target *t, const Access *a, Ptr p) {
    Word w = {.access = *a, .at = p, .dtype = a->dtype};
    if (element_bits(a->dtype) > 8)
        return w;
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef i32 = target_int(t, 32), i64 = target_int(t, 64);
    V pointer = pointer_of(t, p, true);
    V address = LLVMBuildPtrToInt(b, pointer, i64, "");
    V start = LLVMBuildAnd(b, address, nvptx_const(t, 64, ~INT64_C(3)), "");
    V byte = LLVMBuildAnd(b, LLVMBuildTrunc(b, address, i32, ""), nvptx_const(t, 32, 3), "");
    w.shift = LLVMBuildShl(b, byte, nvptx_const(t, 32, 3), "");
    w.access.dtype = DT_U32;
    w.access.align = 4;
    w.at = (Ptr){.base = {LLVMBuildIntToPtr(b, start, LLVMTypeOf(pointer), "")}};
    return w;
}

static V word_others(Target *t, const Word *w) {
    V mask = LLVMBuildShl(t->builder, nvptx_const(t, 32, 0xff), w->shift, "");
    return LLVMBuildNot(t->builder, mask, "");
}

// The element, at its place and 0 elsewhere.
static V word_shifted(Target *t, const Word *w, Lane x) {
    V byte = nvptx_pack(t, w->dtype, 1, &x);
    return LLVMBuildShl(t->builder, LLVMBuildZExt(t->builder, byte, target_int(t, 32), ""),
                        w->shift, "");
}

static Lane word_element(Target *t, const Word *w, Lane word) {
    if (!w->shift)
        return word;
    V byte = LLVMBuildLShr(t->builder, word.v, w->shift, "");
    Lane x;
    nvptx_unpack(t, w->dtype, 1, LLVMBuildTrunc(t->builder, byte, target_int(t, 8), ""), &x);
    return x;
}

static Lane word_with(Target *t, const Word *w, Lane word, Lane x) {
    if (!w->shift)
        return x;
    V rest = LLVMBuildAnd(t->builder, word.v, word_others(t, w), "");
    return (Lane){LLVMBuildOr(t->builder, rest, word_shifted(t, w, x), "")};
}

static V same_bits(Target *t, DType dtype, Lane x, Lane y) {
    V a = nvptx_pack(t, dtype, 1, &x), b = nvptx_pack(t, dtype, 1, &y);
    return LLVMBuildICmp(t->builder, LLVMIntEQ, a, b, "");
}

// What the element becomes; `expected` is for compare-and-swap.
static Lane atomic_next(Target *t, AtomicKind kind, DType dtype, Lane old, Lane v, Lane expected) {
    static const OpKind ops[ATOMIC_COUNT] = {
        [ATOMIC_ADD] = OP_ADD, [ATOMIC_MAX] = OP_MAX, [ATOMIC_MIN] = OP_MIN,
        [ATOMIC_AND] = OP_AND, [ATOMIC_OR] = OP_OR,   [ATOMIC_XOR] = OP_XOR};
    if (kind == ATOMIC_XCHG)
        return v;
    if (kind == ATOMIC_CAS)
        return (Lane){
            LLVMBuildSelect(t->builder, same_bits(t, dtype, old, expected), v.v, old.v, "")};
    Lane x[2] = {old, v};
    if (kind != ATOMIC_ADD || !dtype_is_fp8(dtype))
        return nvptx_arith(t, ops[kind], 0, dtype, 0, x);
    nvptx_cast(t, dtype, DT_F32, 2, x, x);
    Lane sum = nvptx_arith(t, OP_ADD, 0, DT_F32, 0, x);
    nvptx_cast(t, DT_F32, dtype, 1, &sum, &sum);
    return sum;
}

// An operation that there is no instruction for: compare-and-swap until nobody came between. Gives
// what was there.
static Lane atomic_loop(Target *t, const Access *a, AtomicKind kind, Ptr p, Lane pred, Lane v,
                        Lane expected) {
    LLVMBuilderRef b = t->builder;
    Word w = word_around(t, a, p);
    LLVMTypeRef type = target_type(t, w.access.dtype);
    Lane zero = {LLVMConstNull(type)}, all = {NULL}, first;
    nvptx_cas(t, &w.access, w.at, pred, zero, zero, &first); // reads: 0 becomes 0
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef again = LLVMAppendBasicBlockInContext(t->llvm, t->function, "again");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(t->llvm, t->function, "done");
    if (always(pred))
        LLVMBuildBr(b, again);
    else
        LLVMBuildCondBr(b, pred.v, again, done);
    LLVMPositionBuilderAtEnd(b, again);
    Lane seen, old = {LLVMBuildPhi(b, type, "")};
    Lane next = atomic_next(t, kind, w.dtype, word_element(t, &w, old), v, expected);
    nvptx_cas(t, &w.access, w.at, all, old, word_with(t, &w, old, next), &seen);
    V same = same_bits(t, w.access.dtype, seen, old);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(old.v, (V[]){first.v, seen.v}, (LLVMBasicBlockRef[]){before, latch}, 2);
    LLVMBuildCondBr(b, same, done, again);
    LLVMPositionBuilderAtEnd(b, done);
    Lane result = {LLVMBuildPhi(b, type, "")};
    LLVMAddIncoming(result.v, (V[]){seen.v, zero.v}, (LLVMBasicBlockRef[]){latch, before},
                    always(pred) ? 1 : 2);
    return word_element(t, &w, result);
}

// Bits of a byte are changed by one instruction on its word.
static void atomic_byte(Target *t, const Access *a, AtomicKind kind, Ptr p, Lane pred, Lane v,
                        Lane *old) {
    Word w = word_around(t, a, p);
    V word = word_shifted(t, &w, v);
    if (kind == ATOMIC_AND)
        word = LLVMBuildOr(t->builder, word, word_others(t, &w), "");
    nvptx_atomic(t, &w.access, kind, w.at, pred, (Lane){word}, old);
    if (old)
        *old = word_element(t, &w, *old);
}

void nvptx_atomic(Target *t, const Access *a, AtomicKind kind, Ptr p, Lane pred, Lane v,
                  Lane *old) {
    if (element_bits(a->dtype) == 8 &&
        (kind == ATOMIC_AND || kind == ATOMIC_OR || kind == ATOMIC_XOR)) {
        atomic_byte(t, a, kind, p, pred, v, old);
        return;
    }
    static const char *const names[ATOMIC_COUNT] = {"add", "max", "min",  "and",
                                                    "or",  "xor", "exch", "cas"};
    const char *type = atomic_type(kind, a->dtype);
    int bits = element_bits(a->dtype);
    bool instruction = type && !(a->dtype == DT_BF16 && t->desc->sm < 90);
    if (!instruction) {
        Lane seen = atomic_loop(t, a, kind, p, pred, v, (Lane){NULL});
        if (old)
            *old = seen;
        return;
    }
    const char *c = bits == 64 ? "l" : bits == 32 ? "r" : "h";
    V word = nvptx_pack(t, a->dtype, 1, &v), pointer = pointer_of(t, p, false);
    char text[160], constraints[64];
    bool guarded = !always(pred);
    bool wants = old || kind == ATOMIC_XCHG; // red has no exchange
    if (!wants) {
        snprintf(text, sizeof text, "%sred.relaxed.gpu.global.%s.%s [$1+%lld], $0;",
                 guarded ? "@$2 " : "", names[kind], type, (long long)p.imm);
        snprintf(constraints, sizeof constraints, "%s,l%s,~{memory}", c, guarded ? ",b" : "");
        V args[3] = {word, pointer, pred.v};
        nvptx_asm(t, NULL, text, constraints, guarded ? 3 : 2, args, true);
        return;
    }
    snprintf(text, sizeof text, "%satom.relaxed.gpu.global.%s.%s $0, [$3+%lld], $2;",
             guarded ? "@$4 " : "", names[kind], type, (long long)p.imm);
    snprintf(constraints, sizeof constraints, "=%s,0,%s,l%s,~{memory}", c, c, guarded ? ",b" : "");
    V args[4] = {LLVMConstNull(LLVMTypeOf(word)), word, pointer, pred.v};
    V r = nvptx_asm(t, LLVMTypeOf(word), text, constraints, guarded ? 4 : 3, args, true);
    if (old)
        nvptx_unpack(t, a->dtype, 1, r, old);
}

void nvptx_cas(Target *t, const Access *a, Ptr p, Lane pred, Lane expected, Lane v, Lane *old) {
    int bits = element_bits(a->dtype);
    if (bits < 16) {
        Lane seen = atomic_loop(t, a, ATOMIC_CAS, p, pred, v, expected);
        if (old)
            *old = seen;
        return;
    }
    const char *c = bits == 64 ? "l" : bits == 32 ? "r" : "h";
    V want = nvptx_pack(t, a->dtype, 1, &expected), next = nvptx_pack(t, a->dtype, 1, &v);
    bool guarded = !always(pred);
    char text[160], constraints[64];
    snprintf(text, sizeof text, "%satom.relaxed.gpu.global.cas.b%d $0, [$4+%lld], $2, $3;",
             guarded ? "@$5 " : "", bits, (long long)p.imm);
    snprintf(constraints, sizeof constraints, "=%s,0,%s,%s,l%s,~{memory}", c, c, c,
             guarded ? ",b" : "");
    V args[5] = {LLVMConstNull(LLVMTypeOf(want)), want, next, pointer_of(t, p, false), pred.v};
    V r = nvptx_asm(t, LLVMTypeOf(want), text, constraints, guarded ? 5 : 4, args, true);
    if (old)
        nvptx_unpack(t, a->dtype, 1, r, old);
}

// --- shared memory ---

static V shared_word(Target *t, Shared p) {
    return LLVMBuildPtrToInt(t->builder, nvptx_shared_pointer(t, p, false), target_int(t, 32), "");
}

void nvptx_load_shared(Target *t, const Access *a, Shared p, Lane pred, Lane *out) {
    if (always(pred))
        plain_load(t, a, nvptx_shared_pointer(t, p, true), false, out);
    else
        asm_load(t, a, "ld.shared", shared_word(t, p), "r", p.imm, pred, NULL, true, out);
}

void nvptx_store_shared(Target *t, const Access *a, Shared p, Lane pred, const Lane *in) {
    if (always(pred))
        plain_store(t, a, nvptx_shared_pointer(t, p, true), in);
    else
        asm_store(t, a, "st.shared", shared_word(t, p), "r", p.imm, pred, in);
}

void nvptx_ldmatrix(Target *t, const Access *a, int count, bool trans, Shared p, Lane *out) {
    char name[96];
    snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%d%s.b16", count,
             trans ? ".trans" : "");
    V pointer = nvptx_shared_pointer(t, p, true);
    V r = arith_intrinsic(t, name, LLVMTypeOf(pointer), 1, &pointer);
    for (int i = 0; i < count; i++) {
        V word = count > 1 ? LLVMBuildExtractValue(t->builder, r, (unsigned)i, "") : r;
        nvptx_unpack(t, a->dtype, 2, word, out + 2 * i);
    }
}

void nvptx_stmatrix(Target *t, const Access *a, int count, bool trans, Shared p, const Lane *in) {
    char name[96];
    snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%d%s.b16", count,
             trans ? ".trans" : "");
    V args[5] = {nvptx_shared_pointer(t, p, true)};
    for (int i = 0; i < count; i++)
        args[1 + i] = nvptx_pack(t, a->dtype, 2, in + 2 * i);
    arith_intrinsic(t, name, LLVMTypeOf(args[0]), 1 + count, args);
}

// A false predicate copies no bytes and zeroes the whole destination.
void nvptx_cp_async(Target *t, const Access *a, Shared to, Ptr from, Lane pred, Lane active) {
    int bytes = element_bits(a->dtype) / 8 * a->width;
    char text[160], guard[8] = "", size[8] = "";
    V args[4] = {shared_word(t, to), pointer_of(t, from, false)};
    char constraints[64] = "r,l";
    int n = 2;
    if (!always(pred)) {
        args[n] = LLVMBuildSelect(t->builder, pred.v, nvptx_const(t, 32, bytes),
                                  nvptx_const(t, 32, 0), "");
        snprintf(size, sizeof size, ", $%d", n++);
        strcat(constraints, ",r");
    }
    if (!always(active)) {
        args[n] = active.v;
        snprintf(guard, sizeof guard, "@$%d ", n++);
        strcat(constraints, ",b");
    }
    strcat(constraints, ",~{memory}");
    snprintf(text, sizeof text, "%scp.async.%s.shared.global [$0+%d], [$1+%lld], %d%s;", guard,
             bytes == 16 ? "cg" : "ca", (int)to.imm, (long long)from.imm, bytes, size);
    nvptx_asm(t, NULL, text, constraints, n, args, true);
}

void nvptx_cp_commit(Target *t) {
    nvptx_call(t, "llvm.nvvm.cp.async.commit.group", 0, NULL);
}

void nvptx_cp_wait(Target *t, int pending) {
    V n = nvptx_const(t, 32, pending);
    nvptx_call(t, "llvm.nvvm.cp.async.wait.group", 1, &n);
}

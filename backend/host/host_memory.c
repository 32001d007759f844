// Memory accesses of `cpu`: vector loads and stores where the lanes lie next to each other, one
// scalar where all share an address, gathers and scatters otherwise. Lanes that are off touch
// nothing.
//
// Elements in memory are integers of their width, or f32 and f64: f16, bf16 and bool change their
// LLVM type on the way.
#include "backend/host/host_impl.h"

#include <string.h>

// Packed elements are bytes in shared memory; in tensors lower_packed.c accesses bytes.
int host_memory_bytes(Target *t, DType dtype) {
    (void)t;
    return dtype_is_packed(dtype) ? 1 : (int)dtype_bits(dtype) / 8;
}

static LLVMTypeRef memory_element(Target *t, DType dtype) {
    if (dtype == DT_F32 || dtype == DT_F64)
        return target_type(t, dtype);
    return target_int(t, 8 * host_memory_bytes(t, dtype));
}

V host_to_memory(Target *t, DType dtype, V x) {
    LLVMTypeRef type = host_vector(t, memory_element(t, dtype));
    if (dtype == DT_BOOL)
        return LLVMBuildZExt(t->builder, x, type, "");
    return LLVMBuildBitCast(t->builder, x, type, "");
}

V host_from_memory(Target *t, DType dtype, V x) {
    if (dtype == DT_BOOL)
        return LLVMBuildICmp(t->builder, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
    return LLVMBuildBitCast(t->builder, x, host_vector(t, target_type(t, dtype)), "");
}

// A predicate that is always true is none.
V host_mask(Lane pred) {
    if (!pred.v || pred.v == LLVMConstAllOnes(LLVMTypeOf(pred.v)))
        return NULL;
    return pred.v;
}

// --- intrinsics --------------------------------------------------------------------------------

static V call_overloaded(Target *t, const char *name, int ntypes, LLVMTypeRef *types, int n,
                         V *args, int pointer, int align) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    V f = LLVMGetIntrinsicDeclaration(t->module, id, types, (size_t)ntypes);
    LLVMTypeRef type = LLVMIntrinsicGetType(t->llvm, id, types, (size_t)ntypes);
    V call = LLVMBuildCall2(t->builder, type, f, args, (unsigned)n, "");
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)(pointer + 1),
                             LLVMCreateEnumAttribute(t->llvm, kind, (uint64_t)align));
    return call;
}

static V masked_load(Target *t, V p, int align, V mask, V other) {
    LLVMTypeRef types[2] = {LLVMTypeOf(other), host_pointer(t)};
    return call_overloaded(t, "llvm.masked.load", 2, types, 3, (V[]){p, mask, other}, 0, align);
}
static void masked_store(Target *t, V v, V p, int align, V mask) {
    LLVMTypeRef types[2] = {LLVMTypeOf(v), host_pointer(t)};
    call_overloaded(t, "llvm.masked.store", 2, types, 3, (V[]){v, p, mask}, 1, align);
}
static V masked_gather(Target *t, V p, int align, V mask, V other) {
    LLVMTypeRef types[2] = {LLVMTypeOf(other), LLVMTypeOf(p)};
    return call_overloaded(t, "llvm.masked.gather", 2, types, 3, (V[]){p, mask, other}, 0, align);
}
static void masked_scatter(Target *t, V v, V p, int align, V mask) {
    LLVMTypeRef types[2] = {LLVMTypeOf(v), LLVMTypeOf(p)};
    call_overloaded(t, "llvm.masked.scatter", 2, types, 3, (V[]){v, p, mask}, 1, align);
}

// --- addresses ---------------------------------------------------------------------------------

typedef struct Place {
    Affine affine;
    V at;      // affine: the address of lane 0
    V lanes;   // else: <L x ptr>
    int bytes; // of an element
    int align; // of each lane's access
} Place;

static V byte_offset(Target *t, V base, V offset) {
    return LLVMBuildGEP2(t->builder, target_int(t, 8), base, &offset, 1, "");
}

static V constant64(Target *t, int64_t x) {
    return LLVMConstInt(target_int(t, 64), (unsigned long long)x, true);
}

V host_lane_pointers(Target *t, Ptr p) {
    V base = p.imm ? byte_offset(t, p.base.v, constant64(t, p.imm)) : p.base.v;
    return byte_offset(t, base, p.offset.v ? p.offset.v : LLVMConstNull(host_lanes_int(t, 64)));
}

static Place place_of(Target *t, const Access *access, Ptr p) {
    Place r = {.affine = host_affine(t, p.offset.v), .bytes = host_memory_bytes(t, access->dtype)};
    r.align = access->align > r.bytes ? access->align : r.bytes;
    if (r.affine.ok) {
        r.at = p.base.v;
        if (r.affine.base)
            r.at = byte_offset(t, r.at, r.affine.base);
        if (r.affine.constant + p.imm)
            r.at = byte_offset(t, r.at, constant64(t, r.affine.constant + p.imm));
        return r;
    }
    r.lanes = host_lane_pointers(t, p);
    return r;
}

static bool is_contiguous(const Place *p, const Access *access) {
    return p->affine.ok && p->affine.step == (int64_t)p->bytes * access->width;
}

// Pointers of every lane to its element `i`.
static V lane_pointers(Target *t, const Place *p, int i) {
    int64_t more = (int64_t)p->bytes * i;
    if (!p->affine.ok)
        return more ? byte_offset(t, p->lanes, constant64(t, more)) : p->lanes;
    V at = more ? byte_offset(t, p->at, constant64(t, more)) : p->at;
    return byte_offset(t, at, host_iota(t, 64, p->affine.step));
}

static int element_align(const Place *p, int i) {
    int at = p->bytes * i, align = p->align;
    for (; at % align; align /= 2)
        ;
    return align;
}

static V all_lanes(Target *t) {
    return LLVMConstAllOnes(host_lanes_int(t, 1));
}

// Vectors of width * lanes elements: element i of lane l at l * width + i.
static V index_vector(Target *t, int n, int (*index)(int i, int a, int b), int a, int b) {
    V lane[1024];
    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(target_int(t, 32), (unsigned)index(i, a, b), false);
    return LLVMConstVector(lane, (unsigned)n);
}
static int index_spread(int i, int width, int unused) {
    (void)unused;
    return i / width;
}
static int index_pick(int i, int width, int element) {
    return i * width + element;
}

// The predicate of every element of the wide vector.
static V wide_mask(Target *t, V mask, int width) {
    if (width == 1)
        return mask;
    V index = index_vector(t, t->desc->lanes * width, index_spread, width, 0);
    return LLVMBuildShuffleVector(t->builder, mask, mask, index, "");
}

// Most machines have no masked access of 8 and 16-bit elements, only one branch a lane: where all
// lanes are on, which is nearly always, the plain one is taken. AVX-512 has one.
static bool has_masked(const Target *t, int bytes) {
    return bytes >= 4 || host_has_avx512(t);
}

typedef struct WholeTest {
    LLVMBasicBlockRef whole, part, exit;
} WholeTest;

static WholeTest whole_begin(Target *t, V mask) {
    WholeTest r = {
        .whole = LLVMAppendBasicBlockInContext(t->llvm, t->function, "whole"),
        .part = LLVMAppendBasicBlockInContext(t->llvm, t->function, "part"),
        .exit = LLVMAppendBasicBlockInContext(t->llvm, t->function, "exit"),
    };
    LLVMTypeRef word = target_int(t, t->desc->lanes);
    V bits = LLVMBuildBitCast(t->builder, mask, word, "");
    V all = LLVMBuildICmp(t->builder, LLVMIntEQ, bits, LLVMConstAllOnes(word), "");
    LLVMBuildCondBr(t->builder, all, r.whole, r.part);
    LLVMPositionBuilderAtEnd(t->builder, r.whole);
    return r;
}
static void whole_else(Target *t, const WholeTest *w) {
    LLVMBuildBr(t->builder, w->exit);
    LLVMPositionBuilderAtEnd(t->builder, w->part);
}
static void whole_end(Target *t, const WholeTest *w) {
    LLVMBuildBr(t->builder, w->exit);
    LLVMPositionBuilderAtEnd(t->builder, w->exit);
}

// --- loads -------------------------------------------------------------------------------------

// Where lanes go that are off: zeros to read, or room to write, on this thread's stack.
static V nowhere(Target *t) {
    HostState *h = host_state(t);
    if (h->nowhere)
        return h->nowhere;
    LLVMTypeRef type = LLVMArrayType2(target_int(t, 8), 64);
    h->nowhere = host_alloca(t, type, 64);
    LLVMBasicBlockRef at = LLVMGetInsertBlock(t->builder);
    LLVMPositionBuilderAtEnd(t->builder, h->entry);
    LLVMSetAlignment(LLVMBuildStore(t->builder, LLVMConstNull(type), h->nowhere), 64);
    LLVMPositionBuilderAtEnd(t->builder, at);
    return h->nowhere;
}

static V lane_number(Target *t, int lane) {
    return LLVMConstInt(target_int(t, 32), (unsigned)lane, false);
}

// Element by element without a branch: LLVM makes a branch a lane of a gather of small elements.
static V gather(Target *t, const Place *p, int i, V mask, LLVMTypeRef type) {
    V at = lane_pointers(t, p, i);
    if (p->bytes >= 4)
        return masked_gather(t, at, element_align(p, i), mask ? mask : all_lanes(t),
                             LLVMConstNull(type));
    if (mask)
        at = LLVMBuildSelect(t->builder, mask, at, host_splat(t, nowhere(t)), "");
    V r = LLVMGetPoison(type);
    for (int lane = 0; lane < t->desc->lanes; lane++) {
        V k = lane_number(t, lane), from = LLVMBuildExtractElement(t->builder, at, k, "");
        V x = LLVMBuildLoad2(t->builder, LLVMGetElementType(type), from, "");
        LLVMSetAlignment(x, (unsigned)p->bytes);
        r = LLVMBuildInsertElement(t->builder, r, x, k, "");
    }
    return r;
}

static void scatter(Target *t, const Place *p, int i, V mask, V v) {
    V at = lane_pointers(t, p, i);
    if (p->bytes >= 4) {
        masked_scatter(t, v, at, element_align(p, i), mask ? mask : all_lanes(t));
        return;
    }
    if (mask)
        at = LLVMBuildSelect(t->builder, mask, at,
                             host_splat(t, host_alloca(t, target_int(t, 64), 8)), "");
    for (int lane = 0; lane < t->desc->lanes; lane++) {
        V k = lane_number(t, lane), to = LLVMBuildExtractElement(t->builder, at, k, "");
        V x = LLVMBuildExtractElement(t->builder, v, k, "");
        LLVMSetAlignment(LLVMBuildStore(t->builder, x, to), (unsigned)p->bytes);
    }
}

// The registers of lanes that lie next to each other, from one wide vector.
static void load_whole(Target *t, const Access *access, const Place *p, V mask, V *out) {
    int w = access->width, lanes = t->desc->lanes;
    LLVMTypeRef type = LLVMVectorType(memory_element(t, access->dtype), (unsigned)(lanes * w));
    V v;
    if (mask) {
        v = masked_load(t, p->at, p->align, wide_mask(t, mask, w), LLVMConstNull(type));
    } else {
        v = LLVMBuildLoad2(t->builder, type, p->at, "");
        LLVMSetAlignment(v, (unsigned)p->align);
    }
    for (int i = 0; i < w; i++)
        out[i] = w == 1 ? v
                        : LLVMBuildShuffleVector(t->builder, v, v,
                                                 index_vector(t, lanes, index_pick, w, i), "");
}

static void load_contiguous(Target *t, const Access *access, const Place *p, V mask, V *out) {
    if (!mask || has_masked(t, p->bytes)) {
        load_whole(t, access, p, mask, out);
        return;
    }
    LLVMTypeRef type = host_vector(t, memory_element(t, access->dtype));
    V whole[64], part[64];
    WholeTest test = whole_begin(t, mask);
    load_whole(t, access, p, NULL, whole);
    whole_else(t, &test);
    for (int i = 0; i < access->width; i++)
        part[i] = gather(t, p, i, mask, type);
    whole_end(t, &test);
    for (int i = 0; i < access->width; i++) {
        out[i] = LLVMBuildPhi(t->builder, type, "");
        LLVMAddIncoming(out[i], (V[]){whole[i], part[i]},
                        (LLVMBasicBlockRef[]){test.whole, test.part}, 2);
    }
}

// All lanes read one address. `on`: some lane does; NULL: all do.
static V load_same(Target *t, const Access *access, const Place *p, V on, int i) {
    V at = i ? byte_offset(t, p->at, constant64(t, (int64_t)p->bytes * i)) : p->at;
    if (on)
        at = LLVMBuildSelect(t->builder, on, at, nowhere(t), "");
    V x = LLVMBuildLoad2(t->builder, memory_element(t, access->dtype), at, "");
    LLVMSetAlignment(x, (unsigned)p->bytes);
    return host_splat(t, x);
}

static bool has_fill(const Lane *fill, int n) {
    for (int i = 0; fill && i < n; i++)
        if (fill[i].v)
            return true;
    return false;
}

static void load_place(Target *t, const Access *access, const Place *p, V mask, const Lane *fill,
                       Lane *out) {
    LLVMTypeRef type = host_vector(t, memory_element(t, access->dtype));
    V raw[64];
    if (is_contiguous(p, access)) {
        load_contiguous(t, access, p, mask, raw);
    } else if (p->affine.ok && !p->affine.step) {
        V uniform = mask ? host_uniform_mask(t, mask) : NULL;
        V on = mask && !uniform ? host_mask_any(t, mask) : uniform;
        for (int i = 0; i < access->width; i++)
            raw[i] = load_same(t, access, p, on, i);
        if (uniform && !has_fill(fill, access->width))
            mask = NULL; // what lies nowhere is 0 already
    } else {
        for (int i = 0; i < access->width; i++)
            raw[i] = gather(t, p, i, mask, type);
    }
    for (int i = 0; i < access->width; i++) {
        V v = host_from_memory(t, access->dtype, raw[i]);
        bool filled = mask && fill && fill[i].v;
        if (mask) {
            Lane zero = {LLVMConstNull(LLVMTypeOf(v))};
            v = host_select(t, (Lane){mask}, (Lane){v}, filled ? fill[i] : zero).v;
        }
        out[i].v = v;
    }
}

// --- stores ------------------------------------------------------------------------------------

static int index_blend(int i, int width_and_element, int elements) {
    int width = width_and_element >> 8, element = width_and_element & 255;
    return i % width == element ? elements + i : i;
}

// One vector of all registers; element i is register i % width of lane i / width.
static V interleave(Target *t, const V *in, int width) {
    if (width == 1)
        return in[0];
    int n = t->desc->lanes * width;
    V r = LLVMGetPoison(LLVMVectorType(LLVMGetElementType(LLVMTypeOf(in[0])), (unsigned)n));
    V spread = index_vector(t, n, index_spread, width, 0);
    for (int i = 0; i < width; i++) {
        V x = LLVMBuildShuffleVector(t->builder, in[i], in[i], spread, "");
        V blend = index_vector(t, n, index_blend, width << 8 | i, n);
        r = LLVMBuildShuffleVector(t->builder, r, x, blend, "");
    }
    return r;
}

static void store_whole(Target *t, const Access *access, const Place *p, V mask, const V *raw) {
    V v = interleave(t, raw, access->width);
    if (mask)
        masked_store(t, v, p->at, p->align, wide_mask(t, mask, access->width));
    else
        LLVMSetAlignment(LLVMBuildStore(t->builder, v, p->at), (unsigned)p->align);
}

static void store_place(Target *t, const Access *access, const Place *p, V mask, const Lane *in) {
    V raw[64];
    for (int i = 0; i < access->width; i++)
        raw[i] = host_to_memory(t, access->dtype, in[i].v);
    if (is_contiguous(p, access) && (!mask || has_masked(t, p->bytes))) {
        store_whole(t, access, p, mask, raw);
        return;
    }
    WholeTest test = {0};
    if (is_contiguous(p, access)) {
        test = whole_begin(t, mask);
        store_whole(t, access, p, NULL, raw);
        whole_else(t, &test);
    }
    for (int i = 0; i < access->width; i++)
        scatter(t, p, i, mask, raw[i]);
    if (test.exit)
        whole_end(t, &test);
}

void host_load_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *fill,
                      Lane *out) {
    Place place = place_of(t, access, p);
    load_place(t, access, &place, host_mask(pred), fill, out);
}

void host_store_global(Target *t, const Access *access, Ptr p, Lane pred, const Lane *in) {
    Place place = place_of(t, access, p);
    store_place(t, access, &place, host_mask(pred), in);
}

static Ptr shared_pointer(Target *t, Shared p) {
    V base = host_state(t)->shared;
    if (!base) {
        target_fail(t, "shared memory, but the launch has none");
        base = LLVMConstNull(host_pointer(t));
    }
    if (p.base.v)
        base = byte_offset(t, base, p.base.v);
    return (Ptr){.base = {base}, .offset = p.offset, .imm = p.imm};
}

void host_load_shared(Target *t, const Access *access, Shared p, Lane pred, Lane *out) {
    host_load_global(t, access, shared_pointer(t, p), pred, NULL, out);
}

void host_store_shared(Target *t, const Access *access, Shared p, Lane pred, const Lane *in) {
    host_store_global(t, access, shared_pointer(t, p), pred, in);
}

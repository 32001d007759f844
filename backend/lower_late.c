// Moves what computes a value down to where the value is first used.
//
// An op on tiles makes all registers of its result before the next op begins, so a product without
// a matrix unit would hold the whole fragments of both operands. Its operands are instead loaded,
// converted and chosen element by element, next to the multiply-adds that read them.
//
//   x0 = load; x1 = load; ..; acc = fma x0, ..; acc = fma x1, ..
//   => x0 = load; acc = fma x0, ..; x1 = load; acc = fma x1, ..
//
// Input: the block that is being built. Only instructions after its last one with an effect are
// moved (barriers, stores, calls that are not known), and only with all their users that are not
// moved yet: a few, else they stay. Output: the same instructions in another order. Invariant: a
// value is defined before its users.
#include "backend/lower.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_MAX = 24 };

typedef struct Entry {
    LLVMValueRef inst; // NULL: free
    uint32_t at;       // place in the block
    bool moved;        // or is not to be
} Entry;

struct Late {
    Target *t;
    LLVMBasicBlockRef block;
    Entry *entry;
    uint32_t mask;
};

static uint32_t hash_of(LLVMValueRef v) {
    uint64_t x = (uint64_t)(uintptr_t)v >> 4;
    return (uint32_t)((x * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static Entry *entry_of(const Late *late, LLVMValueRef v) {
    uint32_t i = hash_of(v) & late->mask;
    while (late->entry[i].inst && late->entry[i].inst != v)
        i = (i + 1) & late->mask;
    return &late->entry[i];
}

// The entry of an instruction that is still where it was, or NULL.
static Entry *unmoved(const Late *late, LLVMValueRef v) {
    if (!LLVMIsAInstruction(v))
        return NULL;
    Entry *e = entry_of(late, v);
    return e->inst && !e->moved ? e : NULL;
}

static bool call_is_pure(LLVMValueRef call) {
    LLVMValueRef f = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(f))
        return !LLVMGetInlineAsmHasSideEffects(f);
    if (!LLVMIsAFunction(f))
        return false;
    static const char *const names[] = {"llvm.fma.",    "llvm.fmuladd.",
                                        "llvm.fabs.",   "llvm.minnum.",
                                        "llvm.maxnum.", "llvm.nvvm.read.ptx.sreg."};
    size_t len;
    const char *name = LLVMGetValueName2(f, &len);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool can_move(LLVMValueRef inst) {
    switch ((int)LLVMGetInstructionOpcode(inst)) { // the others have effects or places of their own
    case LLVMPHI:
    case LLVMAlloca:
    case LLVMStore:
    case LLVMFence:
    case LLVMAtomicCmpXchg:
    case LLVMAtomicRMW:
    case LLVMInvoke:
        return false;
    case LLVMLoad:
        return !LLVMGetVolatile(inst);
    case LLVMCall:
        return call_is_pure(inst);
    }
    return true;
}

// Global memory is far away: what is loaded from there is asked for early.
static bool is_far(LLVMValueRef inst) {
    enum { SHARED_SPACE = 3 };
    if (LLVMGetInstructionOpcode(inst) == LLVMCall)
        return LLVMIsAInlineAsm(LLVMGetCalledValue(inst)) != NULL;
    return LLVMGetInstructionOpcode(inst) == LLVMLoad &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(inst, 0))) != SHARED_SPACE;
}

Late *late_begin(Lower *l, bool far) {
    Late *late = ARENA_NEW(l->arena, Late);
    *late = (Late){.t = l->t, .block = LLVMGetInsertBlock(l->t->builder)};
    uint32_t n = 0, size = 16;
    LLVMValueRef first = NULL;
    for (LLVMValueRef i = LLVMGetLastInstruction(late->block); i && can_move(i);
         i = LLVMGetPreviousInstruction(i), n++)
        first = i;
    while (size < 2 * n)
        size *= 2;
    late->entry = ARENA_ARRAY(l->arena, Entry, size);
    late->mask = size - 1;
    uint32_t at = 0;
    for (LLVMValueRef i = first; i; i = LLVMGetNextInstruction(i))
        *entry_of(late, i) = (Entry){.inst = i, .at = at++, .moved = !far && is_far(i)};
    return late;
}

typedef struct Group {
    Entry *entry[GROUP_MAX];
    int n;
} Group;

// Adds the instruction and, in turn, its users. False: they are too many, or one has its place
// already.
static bool collect(const Late *late, Group *g, Entry *e) {
    for (int i = 0; i < g->n; i++)
        if (g->entry[i] == e)
            return true;
    if (g->n == GROUP_MAX)
        return false;
    g->entry[g->n++] = e;
    for (LLVMUseRef u = LLVMGetFirstUse(e->inst); u; u = LLVMGetNextUse(u)) {
        Entry *user = unmoved(late, LLVMGetUser(u));
        if (!user || !collect(late, g, user))
            return false;
    }
    return true;
}

static int in_order(const void *a, const void *b) {
    uint32_t x = (*(Entry *const *)a)->at, y = (*(Entry *const *)b)->at;
    return (x > y) - (x < y);
}

static void move_to_end(const Late *late, LLVMValueRef inst) {
    LLVMBuilderRef b = late->t->builder;
    LLVMMetadataRef here = LLVMGetCurrentDebugLocation2(b), own = LLVMInstructionGetDebugLoc(inst);
    LLVMInstructionRemoveFromParent(inst);
    LLVMInsertIntoBuilder(b, inst);
    LLVMInstructionSetDebugLoc(inst, own);
    LLVMSetCurrentDebugLocation2(b, here);
}

void late_move(const Late *late, Lane x) {
    Entry *e = LLVMGetInsertBlock(late->t->builder) == late->block ? unmoved(late, x.v) : NULL;
    Group g = {.n = 0};
    if (!e || !collect(late, &g, e))
        return;
    // What they are computed from, where nothing else needs that earlier.
    for (int i = 0; i < g.n; i++) {
        LLVMValueRef inst = g.entry[i]->inst;
        for (int k = 0; k < LLVMGetNumOperands(inst); k++) {
            Entry *operand = unmoved(late, LLVMGetOperand(inst, (unsigned)k));
            int n = g.n;
            if (operand && !collect(late, &g, operand))
                g.n = n;
        }
    }
    qsort(g.entry, (size_t)g.n, sizeof *g.entry, in_order);
    for (int i = 0; i < g.n; i++) {
        move_to_end(late, g.entry[i]->inst);
        g.entry[i]->moved = true;
    }
}

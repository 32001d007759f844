// How many registers the loops of a thread's code ask for.
//
// Input: a function in LLVM's SSA form, after its scalar clean-up. Output: whether what does not
// change in its loops may leave them. PTX has registers without number, so LLVM hoists as if they
// cost nothing; ptxas has 255 and does not put back what was hoisted, but hoists itself what there
// is room for.
//
// What a loop needs is what is live at its end, for the next step, and what hoisting would add to
// that: integers, floats and pointers by their bits, at least a word of 32 each; predicates
// nothing; addresses that become immediates of an access nothing. What is live for less than a step
// does not count: ptxas puts it in its own order.
#include "backend/nvptx/nvptx_impl.h"

#include <string.h>

#include "lang/base/vec.h"

enum { SPANS_MOST = 1 << 22 }; // pairs of block and value; beyond it nothing is known

typedef struct Item {
    LLVMValueRef v;
    uint32_t block, words;
    bool hoisted;
} Item;

typedef VEC(uint32_t) Ids;

typedef struct Block {
    LLVMBasicBlockRef bb;
    uint32_t first, end; // items
    Ids from, to, out;   // blocks before and after; values that are live at its end
    uint32_t stamp;      // in the set that is being made
    bool on_path, visited;
} Block;

typedef struct Code {
    Arena *arena;
    Item *item; // by place in the function
    uint32_t nitem, nblock;
    Block *block;
    uint32_t *table, mask; // hash: items of instructions; of blocks
    uint32_t *blocks, block_mask;
    uint32_t stamp;
    uint64_t spans;
} Code;

static uint32_t hash_of(const void *v) {
    uint64_t x = (uint64_t)(uintptr_t)v >> 4;
    return (uint32_t)((x * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t item_slot(const Code *c, LLVMValueRef v) {
    uint32_t i = hash_of(v) & c->mask;
    while (c->table[i] && c->item[c->table[i] - 1].v != v)
        i = (i + 1) & c->mask;
    return i;
}

// NULL: a constant, an argument.
static Item *item_of(const Code *c, LLVMValueRef v) {
    if (!LLVMIsAInstruction(v))
        return NULL;
    uint32_t at = c->table[item_slot(c, v)];
    return at ? &c->item[at - 1] : NULL;
}

static uint32_t block_slot(const Code *c, LLVMBasicBlockRef bb) {
    uint32_t i = hash_of(bb) & c->block_mask;
    while (c->blocks[i] && c->block[c->blocks[i] - 1].bb != bb)
        i = (i + 1) & c->block_mask;
    return i;
}

static uint32_t block_of(const Code *c, LLVMBasicBlockRef bb) {
    return c->blocks[block_slot(c, bb)] - 1;
}

// --- what takes registers ---

static uint32_t type_words(LLVMTypeRef type) {
    enum { SHARED_SPACE = 3 };
    switch ((int)LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind: {
        unsigned bits = LLVMGetIntTypeWidth(type);
        return bits == 1 ? 0 : (bits + 31) / 32;
    }
    case LLVMPointerTypeKind:
        return LLVMGetPointerAddressSpace(type) == SHARED_SPACE ? 1 : 2;
    case LLVMDoubleTypeKind:
        return 2;
    case LLVMVectorTypeKind: {
        uint32_t one = type_words(LLVMGetElementType(type)), n = LLVMGetVectorSize(type);
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMGetElementType(type));
        return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ? (n + 1) / 2 : one * n;
    }
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
        return 1;
    }
    return 0; // structs: what is taken out of them counts
}

static bool is_access(LLVMValueRef inst, LLVMValueRef pointer) {
    switch ((int)LLVMGetInstructionOpcode(inst)) {
    case LLVMLoad:
        return true;
    case LLVMStore:
        return LLVMGetOperand(inst, 1) == pointer;
    }
    return false;
}

// base + a constant, for accesses alone: an immediate in them.
static bool is_immediate(LLVMValueRef inst) {
    if (LLVMGetInstructionOpcode(inst) != LLVMGetElementPtr)
        return false;
    for (int i = 1; i < LLVMGetNumOperands(inst); i++)
        if (!LLVMIsAConstantInt(LLVMGetOperand(inst, (unsigned)i)))
            return false;
    for (LLVMUseRef u = LLVMGetFirstUse(inst); u; u = LLVMGetNextUse(u))
        if (!is_access(LLVMGetUser(u), inst))
            return false;
    return true;
}

// --- reading a function ---

static uint32_t pow2_above(uint32_t n) {
    uint32_t p = 16;
    while (p < 2 * n)
        p *= 2;
    return p;
}

static void read_edges(Code *c) {
    for (uint32_t b = 0; b < c->nblock; b++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(c->block[b].bb);
        unsigned n = end ? LLVMGetNumSuccessors(end) : 0;
        for (unsigned i = 0; i < n; i++) {
            uint32_t to = block_of(c, LLVMGetSuccessor(end, i));
            vec_push(c->arena, &c->block[b].to, to);
            vec_push(c->arena, &c->block[to].from, b);
        }
    }
}

static void code_read(Arena *arena, LLVMValueRef f, Code *c) {
    *c = (Code){.arena = arena, .nblock = LLVMCountBasicBlocks(f)};
    for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb; bb = LLVMGetNextBasicBlock(bb))
        for (LLVMValueRef i = LLVMGetFirstInstruction(bb); i; i = LLVMGetNextInstruction(i))
            c->nitem++;
    c->mask = pow2_above(c->nitem) - 1;
    c->block_mask = pow2_above(c->nblock) - 1;
    c->item = ARENA_ARRAY(arena, Item, c->nitem + 1u);
    c->block = ARENA_ARRAY(arena, Block, c->nblock + 1u);
    c->table = ARENA_ARRAY(arena, uint32_t, c->mask + 1u);
    c->blocks = ARENA_ARRAY(arena, uint32_t, c->block_mask + 1u);
    uint32_t n = 0, b = 0;
    for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb; bb = LLVMGetNextBasicBlock(bb)) {
        c->block[b] = (Block){.bb = bb, .first = n};
        c->blocks[block_slot(c, bb)] = b + 1;
        for (LLVMValueRef i = LLVMGetFirstInstruction(bb); i; i = LLVMGetNextInstruction(i), n++) {
            c->table[item_slot(c, i)] = n + 1; // an empty slot: items are new
            c->item[n] = (Item){.v = i, .block = b};
            c->item[n].words = is_immediate(i) ? 0 : type_words(LLVMTypeOf(i));
        }
        c->block[b++].end = n;
    }
    read_edges(c);
}

// --- liveness ---

static void live_at_end(Code *c, uint32_t value, uint32_t block, Ids *todo) {
    Block *b = &c->block[block];
    if (b->stamp == c->stamp)
        return;
    b->stamp = c->stamp;
    c->spans++;
    vec_push(c->arena, &b->out, value);
    if (block != c->item[value].block)
        vec_push(c->arena, todo, block);
}

static void live_before(Code *c, uint32_t value, uint32_t block, Ids *todo) {
    for (uint32_t i = 0; i < c->block[block].from.len; i++)
        live_at_end(c, value, c->block[block].from.data[i], todo);
}

// Along the uses of `v`, which keep `value`; those through immediates too.
static void live_for_uses(Code *c, uint32_t value, LLVMValueRef v, Ids *todo) {
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        const Item *i = item_of(c, user);
        if (!i)
            continue;
        if (is_immediate(user))
            live_for_uses(c, value, user, todo);
        else if (LLVMGetInstructionOpcode(user) != LLVMPHI) {
            if (i->block != c->item[value].block)
                live_before(c, value, i->block, todo);
        } else {
            for (unsigned k = 0; k < LLVMCountIncoming(user); k++)
                if (LLVMGetIncomingValue(user, k) == v)
                    live_at_end(c, value, block_of(c, LLVMGetIncomingBlock(user, k)), todo);
        }
    }
}

// False: there is too much of it.
static bool find_live(Code *c) {
    Ids todo = {0};
    for (uint32_t b = 0; b < c->nblock; b++)
        c->block[b].out.len = 0;
    c->spans = 0;
    for (uint32_t i = 0; i < c->nitem && c->spans < SPANS_MOST; i++) {
        if (c->item[i].words == 0)
            continue;
        c->stamp++;
        todo.len = 0;
        live_for_uses(c, i, c->item[i].v, &todo);
        while (todo.len > 0)
            live_before(c, i, todo.data[--todo.len], &todo);
    }
    return c->spans < SPANS_MOST;
}

// --- loops ---

// A value that a pass may compute elsewhere: no memory, no effect.
static bool is_plain(LLVMValueRef v) {
    switch ((int)LLVMGetInstructionOpcode(v)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFNeg:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMSIToFP:
    case LLVMUIToFP:
    case LLVMBitCast:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMAddrSpaceCast:
    case LLVMGetElementPtr:
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMSelect:
        return true;
    }
    return false;
}

// The blocks from which `latch` is reached without `header`, and both.
static Ids loop_blocks(Code *c, uint32_t header, uint32_t latch) {
    Ids in = {0};
    c->stamp++;
    c->block[header].stamp = c->stamp;
    vec_push(c->arena, &in, header);
    if (latch != header) {
        c->block[latch].stamp = c->stamp;
        vec_push(c->arena, &in, latch);
    }
    for (uint32_t i = 1; i < in.len; i++) {
        const Block *b = &c->block[in.data[i]];
        for (uint32_t k = 0; k < b->from.len; k++) {
            Block *p = &c->block[b->from.data[k]];
            if (p->stamp == c->stamp)
                continue;
            p->stamp = c->stamp;
            vec_push(c->arena, &in, b->from.data[k]);
        }
    }
    return in;
}

static bool can_hoist(const Code *c, uint32_t stamp, LLVMValueRef v) {
    if (!is_plain(v))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(v); i++) {
        const Item *x = item_of(c, LLVMGetOperand(v, (unsigned)i));
        if (x && c->block[x->block].stamp == stamp && !x->hoisted)
            return false;
    }
    return true;
}

static bool used_by_others(const Code *c, LLVMValueRef v) {
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u)) {
        const Item *user = item_of(c, LLVMGetUser(u));
        if (user && !user->hoisted)
            return true;
    }
    return false;
}

// Words that hoisting out of the loop would keep live all through it. Blocks are in an order in
// which definitions stand before uses, but for few: those count as not hoisted.
static uint32_t hoisted_words(Code *c, const Ids *in) {
    uint32_t stamp = c->block[in->data[0]].stamp, words = 0;
    for (uint32_t b = 0; b < c->nblock; b++)
        for (uint32_t i = c->block[b].first; c->block[b].stamp == stamp && i < c->block[b].end; i++)
            c->item[i].hoisted = can_hoist(c, stamp, c->item[i].v);
    for (uint32_t b = 0; b < c->nblock; b++)
        for (uint32_t i = c->block[b].first; c->block[b].stamp == stamp && i < c->block[b].end; i++)
            if (c->item[i].hoisted && c->item[i].words > 0 && used_by_others(c, c->item[i].v))
                words += c->item[i].words;
    for (uint32_t i = 0; i < c->nitem; i++)
        c->item[i].hoisted = false;
    return words;
}

// Where sums fill more than half of the registers, addresses are to be computed again rather than
// kept beside them; in other loops the addresses are most of the work.
static bool loop_hoists(Code *c, uint32_t header, uint32_t latch) {
    enum { CARRIED_MOST = 128, WORDS_MOST = 186 };
    uint32_t carried = 0;
    for (uint32_t i = 0; i < c->block[latch].out.len; i++)
        carried += c->item[c->block[latch].out.data[i]].words;
    if (carried <= CARRIED_MOST)
        return true;
    Ids in = loop_blocks(c, header, latch);
    return carried + hoisted_words(c, &in) <= WORDS_MOST;
}

typedef struct Step {
    uint32_t block, next;
} Step;

// There are loops, and all do: an edge back to a block on the path that leads to it ends one.
static bool loops_hoist(Code *c) {
    VEC(Step) path = {0};
    bool all = true, any = false;
    vec_push(c->arena, &path, ((Step){0, 0}));
    c->block[0].visited = c->block[0].on_path = true;
    while (path.len > 0 && all) {
        Step *s = &path.data[path.len - 1];
        Block *b = &c->block[s->block];
        if (s->next == b->to.len) {
            b->on_path = false;
            path.len--;
            continue;
        }
        uint32_t to = b->to.data[s->next++];
        if (c->block[to].on_path) {
            any = true;
            all = loop_hoists(c, to, s->block);
        } else if (!c->block[to].visited) {
            c->block[to].visited = c->block[to].on_path = true;
            vec_push(c->arena, &path, ((Step){to, 0}));
        }
    }
    return any && all;
}

bool pressure_hoists(Arena *arena, LLVMValueRef f) {
    Code c;
    code_read(arena, f, &c);
    return !find_live(&c) || loops_hoist(&c);
}

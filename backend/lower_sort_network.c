// sort and topk, second part: a network of compare-exchanges over the bits of a position.
//
// With n = 2^b and |j| = 2^k (sort: k = b), after Batcher: blocks of 2^k are sorted in k phases;
// phase p joins neighbours of 2^(p-1), in order in opposite directions, by p rounds: across bit p -
// 1, .., 0. Then each bit above joins two blocks, which keeps the first 2^k of both, on both sides,
// and k rounds put them in order again: (b - k) (k + 1) rounds. Bits of registers are joined first,
// because half of the registers go with each.
//
// All rounds put the lower key where the bit is 0: keys of the blocks that are to be in descending
// order are complemented before a phase (`flip`), and again behind it.
//
// A round over a register bit costs a comparison and two choices a pair; over a lane bit one
// shuffle a word more; over a warp bit a round trip through shared memory with two barriers. Short
// networks are unrolled. In others phases are a loop, and in it the rounds across neighbouring lane
// or warp bits are a loop each: code grows with the registers times their bits.
#include "backend/sort.h"

// A bit of the position, in a loop: one of several.
typedef struct Bit {
    int b;  // the lowest that it may be
    Uni at; // how far above; NULL: 0
} Bit;

// One round across a bit; `joins`: both sides keep the first.
typedef struct Round {
    Bit bit;
    bool joins;
    Lane side;   // where the bit, of a lane or warp, is 1
    Lane source; // of a shuffle, where the bit is one of several
    // between warps
    Uni to, from; // bytes of this warp and of the other one in a register's words of 4
    Lane lane;    // bytes of the lane's word of 4
    Lane active;
    int row;                // bytes of a register's words of 4
    uint32_t second;        // slots in front of the second words, counted in words of 4
    Uni flip_from, flip_to; // bits of the position
} Round;

static Uni number(Sort *s, int64_t x) {
    return uni_int(s->l->t, 32, x);
}

static Lane key_less(Sort *s, Key a, Key b) {
    Target *t = s->l->t;
    Lane less = lane_cmp(t, CMP_LT, s->word, a.hi, b.hi);
    if (!a.lo.v)
        return less;
    Lane equal = lane_cmp(t, CMP_EQ, s->word, a.hi, b.hi);
    Lane first = lane_cmp(t, CMP_LT, DT_U32, a.lo, b.lo);
    return lane_op2(t, OP_OR, DT_BOOL, less, lane_op2(t, OP_AND, DT_BOOL, equal, first));
}

static Key key_choose(Sort *s, Lane cond, Key a, Key b) {
    Key k = {.hi = sort_choose(s, cond, a.hi, b.hi)};
    if (a.lo.v)
        k.lo = sort_choose(s, cond, a.lo, b.lo);
    return k;
}

// --- registers ---

static LLVMValueRef word_pointer(Sort *s, bool second, Reg r) {
    LLVMBuilderRef b = s->l->t->builder;
    LLVMValueRef at = r.at.v ? r.at.v : number(s, r.i).v;
    return LLVMBuildGEP2(b, s->type[second], s->memory[second], &at, 1, "");
}

Key sort_key(Sort *s, Reg r) {
    LLVMBuilderRef b = s->l->t->builder;
    if (!s->memory[0])
        return s->key[r.i];
    Key k = {.hi = {LLVMBuildLoad2(b, s->type[0], word_pointer(s, false, r), "")}};
    if (s->memory[1])
        k.lo.v = LLVMBuildLoad2(b, s->type[1], word_pointer(s, true, r), "");
    return k;
}

void sort_set_key(Sort *s, Reg r, Key k) {
    LLVMBuilderRef b = s->l->t->builder;
    if (!s->memory[0]) {
        s->key[r.i] = k;
        return;
    }
    LLVMBuildStore(b, k.hi.v, word_pointer(s, false, r));
    if (s->memory[1])
        LLVMBuildStore(b, k.lo.v, word_pointer(s, true, r));
}

// Where registers can be counted they lie in memory, and code does not grow with them.
void sort_make_memory(Sort *s, Key first) {
    Target *t = s->l->t;
    if (!t->ops->thread_memory)
        return;
    s->type[0] = LLVMTypeOf(first.hi.v);
    s->memory[0] = t->ops->thread_memory(t, LLVMArrayType2(s->type[0], s->n));
    if (!first.lo.v)
        return;
    s->type[1] = LLVMTypeOf(first.lo.v);
    s->memory[1] = t->ops->thread_memory(t, LLVMArrayType2(s->type[1], s->n));
}

bool sort_is_joined(const Sort *s, uint32_t reg) {
    return (reg & s->joined) != 0;
}

// Registers from this one on are joined with others: the highest bits go first.
static uint32_t live_registers(const Sort *s) {
    uint32_t n = s->n;
    while (n > 1 && sort_is_joined(s, n >> 1))
        n >>= 1;
    return n;
}

// `slot`: its number among the registers of one exchange.
typedef void (*RoundFn)(Sort *s, const Round *x, Reg r, Reg slot);

// Calls fn for `count` registers from `first` on; those with the bit `without` are left out.
static void each_register(Sort *s, const Round *x, uint32_t first, uint32_t count, uint32_t without,
                          RoundFn fn) {
    Target *t = s->l->t;
    uint32_t slot = 0;
    for (uint32_t r = first; !s->memory[0] && r < first + count; r++)
        if (!sort_is_joined(s, r) && !s->idle[r] && !(r & without))
            fn(s, x, (Reg){.i = r}, (Reg){.i = slot++});
    if (!s->memory[0])
        return;
    LoopState loop;
    Uni one = number(s, 1), at;
    loop_begin(t, &loop, number(s, 0), number(s, without ? count / 2 : count), one, 0, NULL);
    at = (Uni){loop.counter};
    if (without) { // the bits from `without` up move up by one
        LLVMValueRef high = LLVMBuildAnd(t->builder, at.v, number(s, -(int64_t)without).v, "");
        at = uni_add(t, at, (Uni){high});
    }
    fn(s, x, (Reg){.at = uni_add(t, at, number(s, first))}, (Reg){.at = {loop.counter}});
    loop_end(t, &loop, one, NULL, (Uni){NULL});
}

// --- control flow that carries the keys ---

static int keys_flat(Sort *s, LLVMValueRef *out) {
    uint32_t n = s->memory[0] ? 0 : live_registers(s);
    int at = 0;
    for (uint32_t r = 0; r < n; r++) {
        out[at++] = s->key[r].hi.v;
        if (s->key[r].lo.v)
            out[at++] = s->key[r].lo.v;
    }
    return at;
}

static void keys_set(Sort *s, LLVMValueRef *in) {
    uint32_t n = s->memory[0] ? 0 : live_registers(s);
    int at = 0;
    for (uint32_t r = 0; r < n; r++) {
        s->key[r].hi.v = in[at++];
        if (s->key[r].lo.v)
            s->key[r].lo.v = in[at++];
    }
}

static LLVMValueRef *keys_room(Sort *s) {
    return ARENA_ARRAY(s->l->arena, LLVMValueRef, 2 * (size_t)s->n + 1);
}

static Uni keys_loop_begin(Sort *s, LoopState *loop, Uni lo, Uni hi, int step) {
    LLVMValueRef *init = keys_room(s);
    int n = keys_flat(s, init);
    loop_begin(s->l->t, loop, lo, hi, number(s, step), n, init);
    keys_set(s, loop->phi);
    s->l->loop_depth++;
    return (Uni){loop->counter};
}

static void keys_loop_end(Sort *s, LoopState *loop, int step) {
    LLVMValueRef *next = keys_room(s);
    keys_flat(s, next);
    s->l->loop_depth--;
    loop_end(s->l->t, loop, number(s, step), next, (Uni){NULL});
    loop_stay_rolled(s->l->t, loop);
    keys_set(s, loop->phi);
}

// --- bits ---

static Uni shifted(Sort *s, uint32_t mask, Uni by) {
    if (!by.v)
        return number(s, mask);
    return (Uni){LLVMBuildShl(s->l->t->builder, number(s, mask).v, by.v, "")};
}

// The bit itself, of a position.
static Uni position_mask(Sort *s, Bit bit) {
    return shifted(s, UINT32_C(1) << bit.b, bit.at);
}

// And of the number of the register, lane or warp that it lives in.
static Uni place_mask(Sort *s, Bit bit) {
    return shifted(s, UINT32_C(1) << s->place[bit.b].bit, bit.at);
}

static Uni uni_and(Sort *s, Uni a, Uni b) {
    return (Uni){LLVMBuildAnd(s->l->t->builder, a.v, b.v, "")};
}

static Lane is_set(Sort *s, Lane x, Uni mask) {
    Target *t = s->l->t;
    Lane bits = lane_op2(t, OP_AND, DT_U32, x, t->ops->splat(t, mask));
    return lane_cmp(t, CMP_NE, DT_U32, bits, sort_constant(s, DT_U32, 0));
}

// By input bit of `dim`: the position bit that lives there.
static void position_columns(const Sort *s, int dim, uint32_t *col) {
    for (int b = 0; b < s->nbits; b++)
        if (s->place[b].dim == dim)
            col[s->place[b].bit] = UINT32_C(1) << b;
}

static Lane thread_position(Sort *s) {
    Target *t = s->l->t;
    uint32_t lane[LAYOUT_BITS_MAX] = {0}, warp[LAYOUT_BITS_MAX] = {0};
    position_columns(s, IN_LANE, lane);
    position_columns(s, IN_WARP, warp);
    Lane x = lane_linear(s->l, t->ops->lane_id(t), LAYOUT_BITS_MAX, lane);
    Uni w = uni_linear(s->l, t->ops->warp_id(t), LAYOUT_BITS_MAX, warp);
    if (!w.v)
        return x.v ? x : sort_constant(s, DT_U32, 0);
    Lane y = t->ops->splat(t, w);
    return x.v ? lane_op2(t, OP_OR, DT_U32, x, y) : y;
}

static Uni register_position(Sort *s, Reg r) {
    uint32_t col[LAYOUT_BITS_MAX] = {0}, at = 0;
    position_columns(s, IN_REG, col);
    if (r.at.v) {
        Uni x = uni_linear(s->l, r.at, LAYOUT_BITS_MAX, col);
        return x.v ? x : number(s, 0);
    }
    for (int i = 0; i < LAYOUT_BITS_MAX; i++)
        at |= r.i >> i & 1 ? col[i] : 0;
    return number(s, at);
}

// --- directions ---

static Lane complement(Sort *s, DType word, Lane cond, Lane x) {
    return lane_op2(
        s->l->t, OP_XOR, word, x,
        sort_choose(s, cond, sort_constant(s, word, UINT64_MAX), sort_constant(s, word, 0)));
}

static void flip_register(Sort *s, const Round *x, Reg r, Reg slot) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    Uni at = register_position(s, r);
    LLVMValueRef from = LLVMBuildIsNotNull(b, uni_and(s, at, x->flip_from).v, ""),
                 to = LLVMBuildIsNotNull(b, uni_and(s, at, x->flip_to).v, "");
    Lane mine = t->ops->splat(t, (Uni){LLVMBuildXor(b, from, to, "")});
    Lane cond = lane_op2(t, OP_XOR, DT_BOOL, x->side, mine);
    Key k = sort_key(s, r);
    (void)slot;
    k.hi = complement(s, s->word, cond, k.hi);
    if (k.lo.v)
        k.lo = complement(s, DT_U32, cond, k.lo);
    sort_set_key(s, r, k);
}

// Keys where bit `from` is 1 are complements; then those are where `to` is 1. Masks: 0 is no bit.
static void flip(Sort *s, Uni from, Uni to) {
    if (uni_is_int(from, 0) && uni_is_int(to, 0))
        return;
    Round x = {.flip_from = from, .flip_to = to};
    x.side = lane_op2(s->l->t, OP_XOR, DT_BOOL, is_set(s, s->at, from), is_set(s, s->at, to));
    each_register(s, &x, 0, live_registers(s), 0, flip_register);
}

// --- rounds ---

static void order_registers(Sort *s, const Round *x, Reg r, Reg slot) {
    uint32_t mask = UINT32_C(1) << s->place[x->bit.b].bit;
    Reg other = {.i = r.i | mask};
    if (r.at.v)
        other.at = uni_add(s->l->t, r.at, number(s, mask));
    (void)slot;
    Key a = sort_key(s, r), c = sort_key(s, other);
    Lane swap = key_less(s, c, a);
    sort_set_key(s, r, key_choose(s, swap, c, a));
    if (!x->joins)
        sort_set_key(s, other, key_choose(s, swap, a, c));
}

// Register r meets `other` of the thread across the bit, which keeps the last.
static void order_other(Sort *s, const Round *x, Reg r, Key mine, Key other) {
    Lane take = key_less(s, other, mine);
    if (!x->joins)
        take = lane_op2(s->l->t, OP_XOR, DT_BOOL, take, x->side);
    sort_set_key(s, r, key_choose(s, take, other, mine));
}

static Lane shuffle(Sort *s, const Round *x, DType word, Lane v) {
    Target *t = s->l->t;
    if (x->source.v)
        return t->ops->shuffle_idx(t, word, v, x->source);
    return t->ops->shuffle_xor(t, word, v, UINT32_C(1) << s->place[x->bit.b].bit);
}

static void order_lanes(Sort *s, const Round *x, Reg r, Reg slot) {
    Key mine = sort_key(s, r), other = {.hi = shuffle(s, x, s->word, mine.hi)};
    (void)slot;
    if (mine.lo.v)
        other.lo = shuffle(s, x, DT_U32, mine.lo);
    order_other(s, x, r, mine, other);
}

// --- between warps: scratch[slot][warp][lane] of words, second words behind them ---

static Shared slot_at(Sort *s, const Round *x, bool load, bool second, Reg slot) {
    Target *t = s->l->t;
    int scale = s->word == DT_U64 && !second ? 2 : 1, row = x->row * scale;
    Uni base = uni_mul(t, load ? x->from : x->to, number(s, scale));
    base = uni_add(t, base, number(s, s->l->scratch_at));
    int imm = (second ? (int)x->second * x->row : 0) + (int)slot.i * row;
    if (slot.at.v)
        base = uni_add(t, base, uni_mul(t, slot.at, number(s, row)));
    Lane lane = scale == 1 ? x->lane : sort_op2(s, OP_MUL, DT_U32, x->lane, (uint64_t)scale);
    return (Shared){.base = base, .offset = lane, .imm = imm};
}

static Access word_access(const Sort *s, bool second) {
    DType word = second ? DT_U32 : s->word;
    int bytes = word == DT_U64 ? 8 : 4;
    return (Access){.dtype = word, .width = 1, .align = bytes};
}

static void put_word(Sort *s, const Round *x, Reg r, Reg slot) {
    Target *t = s->l->t;
    Access hi = word_access(s, false), lo = word_access(s, true);
    Key k = sort_key(s, r);
    t->ops->store_shared(t, &hi, slot_at(s, x, false, false, slot), x->active, &k.hi);
    if (k.lo.v)
        t->ops->store_shared(t, &lo, slot_at(s, x, false, true, slot), x->active, &k.lo);
}

static void order_warps(Sort *s, const Round *x, Reg r, Reg slot) {
    Target *t = s->l->t;
    Access hi = word_access(s, false), lo = word_access(s, true);
    Lane always = {NULL};
    Key mine = sort_key(s, r), other = {.lo = {NULL}};
    t->ops->load_shared(t, &hi, slot_at(s, x, true, false, slot), always, &other.hi);
    if (mine.lo.v)
        t->ops->load_shared(t, &lo, slot_at(s, x, true, true, slot), always, &other.lo);
    order_other(s, x, r, mine, other);
}

static void find_exchange(Sort *s, Round *x) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    int warps = 1 << s->layout->nin[IN_WARP], lanes = 1 << s->layout->nin[IN_LANE];
    Uni warp = t->ops->warp_id(t), row = number(s, 4 * lanes);
    LLVMValueRef mine = LLVMBuildAnd(b, warp.v, number(s, warps - 1).v, "");
    x->row = 4 * warps * lanes;
    x->to = uni_mul(t, (Uni){mine}, row);
    x->from = uni_mul(t, (Uni){LLVMBuildXor(b, mine, place_mask(s, x->bit).v, "")}, row);
    x->lane = sort_op2(s, OP_AND, DT_U32, t->ops->lane_id(t), (uint64_t)lanes - 1);
    x->lane = sort_op2(s, OP_MUL, DT_U32, x->lane, 4);
    if (t->warps > warps) {
        LLVMValueRef in = LLVMBuildICmp(b, LLVMIntULT, warp.v, number(s, warps).v, "");
        x->active = t->ops->splat(t, (Uni){in});
    }
}

static void over_warps(Sort *s, Round *x) {
    uint32_t group = sort_exchange_group(s->layout, sort_key_bytes(s->width, s->low));
    uint32_t n = live_registers(s);
    find_exchange(s, x);
    x->second = (group < n ? group : n) * (s->word == DT_U64 ? 2 : 1);
    for (uint32_t first = 0; first < n; first += group) {
        uint32_t count = n - first < group ? n - first : group;
        scratch_begin(s->l);
        each_register(s, x, first, count, 0, put_word);
        s->l->t->ops->block_barrier(s->l->t);
        each_register(s, x, first, count, 0, order_warps);
    }
}

static void sort_round(Sort *s, Bit bit, bool joins) {
    Target *t = s->l->t;
    Round x = {.bit = bit, .joins = joins};
    uint32_t n = live_registers(s), mask = UINT32_C(1) << s->place[bit.b].bit;
    int dim = s->place[bit.b].dim;
    if (dim != IN_REG)
        x.side = is_set(s, s->at, position_mask(s, bit));
    if (dim == IN_LANE && bit.at.v)
        x.source =
            lane_op2(t, OP_XOR, DT_U32, t->ops->lane_id(t), t->ops->splat(t, place_mask(s, bit)));
    if (dim == IN_LANE)
        each_register(s, &x, 0, n, 0, order_lanes);
    else if (dim == IN_WARP)
        over_warps(s, &x);
    else
        each_register(s, &x, 0, n, mask, order_registers);
    if (joins && dim == IN_REG)
        s->joined |= mask;
}

// --- the network ---

// The lowest bit of a run that ends with b: the bits of lanes or warps that lie side by side as
// those of the position do. One bit where rounds are not loops.
static int run_begin(const Sort *s, int b) {
    const Place *p = s->place;
    while (s->rolled && p[b].dim != IN_REG && b > 0 && p[b - 1].dim == p[b].dim &&
           p[b - 1].bit + 1 == p[b].bit)
        b--;
    return b;
}

// Rounds across the bits lo .. hi, below bit `top` (NULL: all of them), the highest first.
static void rounds(Sort *s, int lo, int hi, Uni top) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    if (lo == hi && !top.v) {
        sort_round(s, (Bit){.b = lo}, false);
        return;
    }
    Uni first = number(s, hi - lo);
    if (top.v) {
        Uni below = {LLVMBuildSub(b, top.v, number(s, lo + 1).v, "")};
        LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, below.v, first.v, "");
        first.v = LLVMBuildSelect(b, less, below.v, first.v, "");
    }
    LoopState loop;
    Uni at = keys_loop_begin(s, &loop, first, number(s, -1), -1);
    sort_round(s, (Bit){.b = lo, .at = lo == hi ? (Uni){NULL} : at}, false);
    keys_loop_end(s, &loop, -1);
}

// Puts bitonic blocks of 2^top keys in order; top.v NULL: of 2^most, and it is at most that.
static void merge(Sort *s, Uni top, int most) {
    for (int hi = most - 1, lo; hi >= 0; hi = lo - 1) {
        lo = run_begin(s, hi);
        rounds(s, lo, hi, hi == 0 ? (Uni){NULL} : top);
    }
}

// Blocks of 2^k in order; those with bit `last` of the position (a mask) are complements.
static void sort_blocks(Sort *s, int k, uint32_t last) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    for (int p = 1; p <= k && !s->rolled; p++) {
        uint32_t from = p > 1 ? UINT32_C(1) << (p - 1) : 0, to = p < k ? UINT32_C(1) << p : last;
        flip(s, number(s, from), number(s, to));
        merge(s, (Uni){NULL}, p);
    }
    if (!s->rolled)
        return;
    LoopState loop;
    Uni p = keys_loop_begin(s, &loop, number(s, 1), number(s, k + 1), 1);
    Uni to = shifted(s, 1, p), from = {LLVMBuildLShr(b, to.v, number(s, 1).v, "")};
    from = uni_and(s, from, number(s, -2)); // nothing has been complemented before the first
    LLVMValueRef inner = LLVMBuildICmp(b, LLVMIntSLT, p.v, number(s, k).v, "");
    to.v = LLVMBuildSelect(b, inner, to.v, number(s, last).v, "");
    flip(s, from, to);
    merge(s, p, k);
    keys_loop_end(s, &loop, 1);
}

// Runs of bits from k up that are joined one after the other, registers first.
typedef struct Join {
    int lo, hi;
} Join;

static int joins_above(const Sort *s, int k, Join *join) {
    int n = 0;
    for (int dim = IN_REG; dim <= IN_WARP; dim++)
        for (int i = (int)s->layout->nin[dim] - 1; i >= 0; i--)
            for (int b = k; b < s->nbits; b++) {
                if (s->place[b].dim != dim || (int)s->place[b].bit != i)
                    continue;
                if (n > 0 && join[n - 1].lo == b + 1 && run_begin(s, b + 1) <= b)
                    join[n - 1].lo = b;
                else
                    join[n++] = (Join){b, b};
            }
    return n;
}

static void join_bit(Sort *s, Bit bit, Uni next, int k) {
    Uni none = number(s, 0);
    if (k == 0) { // blocks of one key have no order
        sort_round(s, bit, true);
        return;
    }
    flip(s, position_mask(s, bit), none);
    sort_round(s, bit, true);
    flip(s, none, next);
    merge(s, (Uni){NULL}, k);
}

static void join_run(Sort *s, Join j, uint32_t next, int k) {
    LLVMBuilderRef b = s->l->t->builder;
    if (j.lo == j.hi) {
        join_bit(s, (Bit){.b = j.lo}, number(s, next), k);
        return;
    }
    LoopState loop;
    Uni at = keys_loop_begin(s, &loop, number(s, j.hi - j.lo), number(s, -1), -1);
    Bit bit = {.b = j.lo, .at = at};
    LLVMValueRef below = LLVMBuildLShr(b, position_mask(s, bit).v, number(s, 1).v, "");
    LLVMValueRef more = LLVMBuildIsNotNull(b, at.v, "");
    join_bit(s, bit, (Uni){LLVMBuildSelect(b, more, below, number(s, next).v, "")}, k);
    keys_loop_end(s, &loop, -1);
}

// Rounds of the network, times the registers in each.
static uint64_t network_size(const Sort *s, int k) {
    uint64_t sorts = (uint64_t)k * (uint64_t)(k + 1) / 2;
    uint64_t joins = (uint64_t)(s->nbits - k) * (uint64_t)(k + 1);
    return (sorts + joins) * s->n;
}

void sort_network(Sort *s, int k) {
    enum { UNROLLED_MOST = 160 };
    // A vector of the CPU is shuffled by constants only.
    bool cpu = s->l->t->desc->family == TARGET_CPU;
    s->rolled = !cpu && network_size(s, k) > UNROLLED_MOST;
    s->at = thread_position(s);
    Join join[POSITION_BITS_MAX];
    int n = joins_above(s, k, join);
    sort_blocks(s, k, n > 0 ? UINT32_C(1) << join[0].hi : 0);
    for (int i = 0; i < n; i++)
        join_run(s, join[i], i + 1 < n ? UINT32_C(1) << join[i + 1].hi : 0, k);
}

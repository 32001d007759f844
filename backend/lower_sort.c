// sort and topk: one network of compare-exchanges over the bits of an axis.
//
// Input: a tile whose axis n has bits of its own in the layout (each position bit is one register,
// lane or warp bit). Output of sort: values and indices in the same layout; of topk: the first |j|
// positions, in the layout that layout_first gives, equal in all copies.
//
// Every element becomes a key, an unsigned number that stands before another exactly when the
// element does (ir/eval_sort.c has the order): the value's bits, made monotone, above the position.
// No two keys are equal, so the order is total and the result stable, whatever the network does.
// What lies outside the window has the largest value bits and a position behind everything inside.
// The element is read back from its key: nothing else is moved.
//
//   8- and 16-bit types    value 16 | position 15 | -0        one word of 32 bits
//   32-bit types           value 32 | position 31 | -0        one word of 64 bits
//   64-bit types           value 64, position 31 | -0         two words
//
// With n = 2^b and |j| = 2^k (sort: k = b), after Batcher: blocks of 2^k are sorted in k (k + 1) /
// 2 rounds, neighbours in opposite directions. Then each bit above joins two blocks, which keeps
// the first 2^k of both, on both sides, and k rounds put them in order again: (b - k) (k + 1)
// rounds. Bits of registers are joined first, because half of the registers go with each. A round
// over a register bit costs a comparison and two choices a pair; over a lane bit one shuffle a word
// more; over a warp bit a round trip through shared memory with two barriers. All of it is
// unrolled.
#include <math.h>

#include "backend/lower.h"
#include "lang/base/numeric.h"

typedef struct Key {
    Lane hi, lo; // lo.v NULL: one word
} Key;

// Where a bit of the position lives.
typedef struct Place {
    int dim; // IN_REG, IN_LANE, IN_WARP
    unsigned bit;
} Place;

enum { POSITION_BITS_MAX = 30, NO_BIT = -1 };

typedef struct Sort {
    Lower *l;
    const Layout *layout;
    DType value;
    int width;    // bits of the value in the key: 16, 32, 64
    DType word;   // of Key.hi
    int low;      // position of the value in hi: 16, 32, 0 (two words)
    bool largest; // the largest first
    int nbits;    // of the position
    Place place[POSITION_BITS_MAX];
    Lane side[POSITION_BITS_MAX]; // lane and warp bits: where it is 1
    uint32_t n, joined;           // registers; register bits that no longer tell them apart
    Key *key;                     // by register, or
    LLVMTypeRef type[2];
    LLVMValueRef memory[2]; // arrays of their words, where the target has memory for them
} Sort;

// --- the layout ---

// False when the bit is not exactly one input bit, or that one moves along other axes too.
static bool find_place(const Layout *layout, uint16_t axis, unsigned bit, Place *place) {
    int found = 0;
    for (int dim = IN_REG; dim <= IN_WARP; dim++) {
        for (unsigned i = 0; i < layout->nin[dim]; i++) {
            if (!(layout_column(layout, (unsigned)dim, i, axis) >> bit & 1))
                continue;
            for (int a = 0; a < layout->naxes; a++) {
                uint32_t c = layout_column(layout, (unsigned)dim, i, layout->axis[a]);
                if (c != (layout->axis[a] == axis ? UINT32_C(1) << bit : 0))
                    return false;
            }
            *place = (Place){dim, i};
            found++;
        }
    }
    return found == 1;
}

static bool find_places(const Layout *layout, uint16_t axis, int *nbits, Place *place) {
    *nbits = (int)layout_axis_bits(layout, axis);
    if (layout->nrep > 0 || *nbits > POSITION_BITS_MAX)
        return false;
    for (int b = 0; b < *nbits; b++)
        if (!find_place(layout, axis, (unsigned)b, &place[b]))
            return false;
    return true;
}

// --- shared memory ---

// Registers of one exchange between warps go in groups, so that it never needs more than this.
enum { SCRATCH_MOST = 32768 };

static int key_width(DType value) {
    uint32_t bits = dtype_bits(value);
    return bits <= 16 ? 16 : (int)bits;
}

static int key_low(int width, int nbits) {
    return width == 64 ? 0 : width == 16 && nbits < 16 ? 16 : 32;
}

static int key_bytes(int width, int low) {
    return width == 64 ? 12 : low == 16 ? 4 : 8;
}

static int layout_threads(const Layout *layout) {
    return 1 << (layout->nin[IN_LANE] + layout->nin[IN_WARP]);
}

static uint32_t exchange_group(const Layout *layout, int bytes) {
    uint32_t n = (uint32_t)(SCRATCH_MOST / (layout_threads(layout) * bytes));
    return n ? n : 1;
}

int64_t sort_scratch(const Op *op) {
    const Layout *layout = op->in[0]->type.layout;
    Place place[POSITION_BITS_MAX];
    int nbits;
    bool warps = false;
    if (!layout || !find_places(layout, op->axes[0]->id, &nbits, place))
        return 0;
    for (int b = 0; b < nbits; b++)
        warps |= place[b].dim == IN_WARP;
    if (!warps)
        return 0;
    int width = key_width(op->in[0]->type.dtype), bytes = key_bytes(width, key_low(width, nbits));
    uint32_t group = exchange_group(layout, bytes), n = layout_registers(layout);
    return (int64_t)(group < n ? group : n) * layout_threads(layout) * bytes;
}

// --- keys ---

static Lane constant(Sort *s, DType dtype, uint64_t x) {
    return lane_int(s->l->t, dtype, (int64_t)x);
}

static Lane op2(Sort *s, OpKind kind, DType dtype, Lane a, uint64_t b) {
    return lane_op2(s->l->t, kind, dtype, a, constant(s, dtype, b));
}

static Lane choose(Sort *s, Lane cond, Lane a, Lane b) {
    return s->l->t->ops->select(s->l->t, cond, a, b);
}

// Bits of the value itself: 8 for what lies in a byte.
static int value_bits(const Sort *s) {
    return dtype_bits(s->value) < 8 ? 8 : (int)dtype_bits(s->value);
}

// The unsigned type that the value's bits are worked on in.
static DType bits_type(const Sort *s) {
    return s->width == 64 ? DT_U64 : DT_U32;
}

static uint64_t low_ones(int n) {
    return n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static DType unsigned_of(const Sort *s) {
    int bits = value_bits(s);
    return bits == 8 ? DT_U8 : bits == 16 ? DT_U16 : bits == 32 ? DT_U32 : DT_U64;
}

// The largest bits of a float that are no NaN, without the sign.
static uint64_t infinity_bits(DType dtype) {
    if (dtype_is_fp8(dtype)) // e4m3 has no infinity, and conversions to e5m2 saturate
        return dtype == DT_E4M3 ? 0x7e : 0x7c;
    return scalar_bits(scalar_float(dtype, INFINITY));
}

static Lane raw_bits(Sort *s, Lane v) {
    Target *t = s->l->t;
    DType as = unsigned_of(s);
    if (s->value == DT_BOOL)
        return lane_resize(t, v, DT_BOOL, bits_type(s));
    // a register of 8 bits is what it is; narrow floats are reinterpreted
    if (value_bits(s) > 8 && s->value != as)
        v = t->ops->bitcast(t, s->value, as, v);
    return lane_resize(t, v, as, bits_type(s));
}

// Monotone bits of the value; *zero: 1 where it is -0 (floats only, else NULL).
static Lane ordered_bits(Sort *s, Lane raw, Lane *zero) {
    Target *t = s->l->t;
    DType u = bits_type(s);
    int bits = value_bits(s);
    uint64_t sign = UINT64_C(1) << (bits - 1), all = low_ones(bits);
    zero->v = NULL;
    if (!dtype_is_float(s->value))
        return s->value != DT_BOOL && dtype_is_signed(s->value) ? op2(s, OP_XOR, u, raw, sign)
                                                                : raw;
    Lane magnitude = op2(s, OP_AND, u, raw, sign - 1);
    Lane negative = lane_cmp(t, CMP_GE, u, raw, constant(s, u, sign));
    Lane is_zero = lane_cmp(t, CMP_EQ, u, magnitude, constant(s, u, 0));
    Lane is_nan = lane_cmp(t, CMP_GT, u, magnitude, constant(s, u, infinity_bits(s->value)));
    Lane x = choose(s, negative, op2(s, OP_XOR, u, raw, all), op2(s, OP_OR, u, raw, sign));
    x = choose(s, is_zero, constant(s, u, sign), x);
    Lane minus = lane_cmp(t, CMP_EQ, u, raw, constant(s, u, sign));
    *zero = choose(s, minus, constant(s, DT_U32, 1), constant(s, DT_U32, 0));
    return choose(s, is_nan, constant(s, u, all), x);
}

static Key key_make(Sort *s, Lane v, Lane position, Lane inside) {
    Target *t = s->l->t;
    DType u = bits_type(s);
    Lane zero, x = ordered_bits(s, raw_bits(s, v), &zero);
    if (s->largest)
        x = op2(s, OP_XOR, u, x, low_ones(s->width));
    x = choose(s, inside, x, constant(s, u, low_ones(s->width)));
    Lane low = op2(s, OP_SHL, DT_U32, position, 1);
    if (zero.v)
        low = lane_op2(t, OP_OR, DT_U32, low, zero);
    if (s->width == 64)
        return (Key){x, low};
    x = op2(s, OP_SHL, s->word, lane_resize(t, x, u, s->word), (uint64_t)s->low);
    return (Key){.hi = lane_op2(t, OP_OR, s->word, x, lane_resize(t, low, DT_U32, s->word))};
}

// Position and -0 bit.
static Lane key_low_word(Sort *s, Key k) {
    if (s->width == 64)
        return k.lo;
    Lane low = op2(s, OP_AND, s->word, k.hi, low_ones(s->low));
    return lane_resize(s->l->t, low, s->word, DT_U32);
}

static Lane key_value(Sort *s, Key k, Lane low) {
    Target *t = s->l->t;
    DType u = bits_type(s), as = unsigned_of(s);
    int bits = value_bits(s);
    uint64_t sign = UINT64_C(1) << (bits - 1), all = low_ones(bits);
    Lane x = k.hi;
    if (s->width != 64)
        x = lane_resize(t, op2(s, OP_SHR, s->word, x, (uint64_t)s->low), s->word, u);
    if (s->largest)
        x = op2(s, OP_XOR, u, x, low_ones(s->width));
    x = op2(s, OP_AND, u, x, all);
    if (dtype_is_float(s->value)) {
        Lane positive = lane_cmp(t, CMP_GE, u, x, constant(s, u, sign));
        x = choose(s, positive, op2(s, OP_XOR, u, x, sign), op2(s, OP_XOR, u, x, all));
        Lane zero = lane_resize(t, op2(s, OP_AND, DT_U32, low, 1), DT_U32, u);
        x = lane_op2(t, OP_OR, u, x, op2(s, OP_SHL, u, zero, (uint64_t)bits - 1));
    } else if (s->value == DT_BOOL) {
        return lane_cmp(t, CMP_NE, u, x, constant(s, u, 0));
    } else if (dtype_is_signed(s->value)) {
        x = op2(s, OP_XOR, u, x, sign);
    }
    x = lane_resize(t, x, u, as);
    return bits > 8 && s->value != as ? t->ops->bitcast(t, as, s->value, x) : x;
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
    Key k = {.hi = choose(s, cond, a.hi, b.hi)};
    if (a.lo.v)
        k.lo = choose(s, cond, a.lo, b.lo);
    return k;
}

// --- registers ---

// A register of the tile: a number, or one that a loop counts (at.v).
typedef struct Reg {
    uint32_t i;
    Uni at;
} Reg;

static LLVMValueRef word_pointer(Sort *s, bool second, Reg r) {
    LLVMBuilderRef b = s->l->t->builder;
    LLVMValueRef at = r.at.v ? r.at.v : uni_int(s->l->t, 32, r.i).v;
    return LLVMBuildGEP2(b, s->type[second], s->memory[second], &at, 1, "");
}

static Key key_get(Sort *s, Reg r) {
    LLVMBuilderRef b = s->l->t->builder;
    if (!s->memory[0])
        return s->key[r.i];
    Key k = {.hi = {LLVMBuildLoad2(b, s->type[0], word_pointer(s, false, r), "")}};
    if (s->memory[1])
        k.lo.v = LLVMBuildLoad2(b, s->type[1], word_pointer(s, true, r), "");
    return k;
}

static void key_set(Sort *s, Reg r, Key k) {
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
static void make_memory(Sort *s, Key first) {
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

static bool is_joined(const Sort *s, uint32_t reg) {
    return (reg & s->joined) != 0;
}

// Registers from this one on are joined with others: the highest bits go first.
static uint32_t live_registers(const Sort *s) {
    uint32_t n = s->n;
    while (n > 1 && is_joined(s, n >> 1))
        n >>= 1;
    return n;
}

// --- rounds ---

// Across bit b of the position, in the direction that another bit gives; `joins`: both sides keep
// the first.
typedef struct Round {
    int b, direction;
    bool joins;
    // between warps
    Uni to, from; // bytes of this warp and of the other one in a register's words of 4
    Lane lane;    // bytes of the lane's word of 4
    Lane active;
    int row;         // bytes of a register's words of 4
    uint32_t second; // slots in front of the second words, counted in words of 4
} Round;

// `slot`: its number among the registers of one exchange.
typedef void (*RoundFn)(Sort *s, const Round *x, Reg r, Reg slot);

// Calls fn for `count` registers from `first` on; those with the bit `without` are left out.
static void each_register(Sort *s, const Round *x, uint32_t first, uint32_t count, uint32_t without,
                          RoundFn fn) {
    Target *t = s->l->t;
    uint32_t slot = 0;
    for (uint32_t r = first; !s->memory[0] && r < first + count; r++)
        if (!is_joined(s, r) && !(r & without))
            fn(s, x, (Reg){.i = r}, (Reg){.i = slot++});
    if (!s->memory[0])
        return;
    LoopState loop;
    Uni one = uni_int(t, 32, 1), at;
    loop_begin(t, &loop, uni_int(t, 32, 0), uni_int(t, 32, without ? count / 2 : count), one, 0,
               NULL);
    at = (Uni){loop.counter};
    if (without) { // the bits from `without` up move up by one
        LLVMValueRef high = LLVMBuildAnd(t->builder, at.v, uni_int(t, 32, -(int64_t)without).v, "");
        at = uni_add(t, at, (Uni){high});
    }
    fn(s, x, (Reg){.at = uni_add(t, at, uni_int(t, 32, first))}, (Reg){.at = {loop.counter}});
    loop_end(t, &loop, one, NULL, (Uni){NULL});
}

// Where bit b of the position, one of a lane or warp, is 1.
static Lane find_side(Sort *s, int b) {
    Target *t = s->l->t;
    Place p = s->place[b];
    if (p.dim == IN_LANE) {
        Lane set = op2(s, OP_AND, DT_U32, t->ops->lane_id(t), UINT64_C(1) << p.bit);
        return lane_cmp(t, CMP_NE, DT_U32, set, constant(s, DT_U32, 0));
    }
    LLVMValueRef bit = uni_int(t, 32, INT64_C(1) << p.bit).v;
    LLVMValueRef set = LLVMBuildAnd(t->builder, t->ops->warp_id(t).v, bit, "");
    return t->ops->splat(t, (Uni){LLVMBuildIsNotNull(t->builder, set, "")});
}

// Negates the condition where bit b of the position of register r is 1.
static Lane flip(Sort *s, Lane cond, int b, Reg r) {
    Target *t = s->l->t;
    Lane by = b == NO_BIT ? (Lane){NULL} : s->side[b];
    if (b != NO_BIT && s->place[b].dim == IN_REG) {
        LLVMValueRef mask = uni_int(t, 32, INT64_C(1) << s->place[b].bit).v;
        LLVMValueRef number = r.at.v ? r.at.v : uni_int(t, 32, r.i).v;
        LLVMValueRef set = LLVMBuildAnd(t->builder, number, mask, "");
        set = LLVMBuildIsNotNull(t->builder, set, "");
        if (LLVMIsAConstantInt(set) && LLVMConstIntGetZExtValue(set) == 0)
            return cond;
        by = t->ops->splat(t, (Uni){set});
    }
    return by.v ? lane_op2(t, OP_XOR, DT_BOOL, cond, by) : cond;
}

static void order_registers(Sort *s, const Round *x, Reg r, Reg slot) {
    uint32_t mask = UINT32_C(1) << s->place[x->b].bit;
    Reg other = {.i = r.i | mask};
    if (r.at.v)
        other.at = uni_add(s->l->t, r.at, uni_int(s->l->t, 32, mask));
    (void)slot;
    Key a = key_get(s, r), c = key_get(s, other);
    Lane swap = key_less(s, c, a);
    if (!x->joins)
        swap = flip(s, swap, x->direction, r);
    key_set(s, r, key_choose(s, swap, c, a));
    if (!x->joins)
        key_set(s, other, key_choose(s, swap, a, c));
}

// Register r meets `other` of the thread across the bit, which keeps the last.
static void order_other(Sort *s, const Round *x, Reg r, Key mine, Key other) {
    Lane take = key_less(s, other, mine);
    if (!x->joins)
        take = flip(s, flip(s, take, x->b, r), x->direction, r);
    key_set(s, r, key_choose(s, take, other, mine));
}

static void order_lanes(Sort *s, const Round *x, Reg r, Reg slot) {
    Target *t = s->l->t;
    uint32_t mask = UINT32_C(1) << s->place[x->b].bit;
    (void)slot;
    Key mine = key_get(s, r), other = {.hi = t->ops->shuffle_xor(t, s->word, mine.hi, mask)};
    if (mine.lo.v)
        other.lo = t->ops->shuffle_xor(t, DT_U32, mine.lo, mask);
    order_other(s, x, r, mine, other);
}

// --- between warps: scratch[slot][warp][lane] of words, second words behind them ---

static Shared slot_at(Sort *s, const Round *x, bool load, bool second, Reg slot) {
    Target *t = s->l->t;
    int scale = s->word == DT_U64 && !second ? 2 : 1, row = x->row * scale;
    Uni base = uni_mul(t, load ? x->from : x->to, uni_int(t, 32, scale));
    base = uni_add(t, base, uni_int(t, 32, s->l->scratch_at));
    int imm = (second ? (int)x->second * x->row : 0) + (int)slot.i * row;
    if (slot.at.v)
        base = uni_add(t, base, uni_mul(t, slot.at, uni_int(t, 32, row)));
    Lane lane = scale == 1 ? x->lane : op2(s, OP_MUL, DT_U32, x->lane, (uint64_t)scale);
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
    Key k = key_get(s, r);
    t->ops->store_shared(t, &hi, slot_at(s, x, false, false, slot), x->active, &k.hi);
    if (k.lo.v)
        t->ops->store_shared(t, &lo, slot_at(s, x, false, true, slot), x->active, &k.lo);
}

static void order_warps(Sort *s, const Round *x, Reg r, Reg slot) {
    Target *t = s->l->t;
    Access hi = word_access(s, false), lo = word_access(s, true);
    Lane always = {NULL};
    Key mine = key_get(s, r), other = {.lo = {NULL}};
    t->ops->load_shared(t, &hi, slot_at(s, x, true, false, slot), always, &other.hi);
    if (mine.lo.v)
        t->ops->load_shared(t, &lo, slot_at(s, x, true, true, slot), always, &other.lo);
    order_other(s, x, r, mine, other);
}

static void find_exchange(Sort *s, Round *x) {
    Target *t = s->l->t;
    LLVMBuilderRef b = t->builder;
    int warps = 1 << s->layout->nin[IN_WARP], lanes = 1 << s->layout->nin[IN_LANE];
    Uni warp = t->ops->warp_id(t), row = uni_int(t, 32, 4 * lanes);
    LLVMValueRef mine = LLVMBuildAnd(b, warp.v, uni_int(t, 32, warps - 1).v, "");
    LLVMValueRef bit = uni_int(t, 32, INT64_C(1) << s->place[x->b].bit).v;
    x->row = 4 * warps * lanes;
    x->to = uni_mul(t, (Uni){mine}, row);
    x->from = uni_mul(t, (Uni){LLVMBuildXor(b, mine, bit, "")}, row);
    x->lane = op2(s, OP_AND, DT_U32, t->ops->lane_id(t), (uint64_t)lanes - 1);
    x->lane = op2(s, OP_MUL, DT_U32, x->lane, 4);
    if (t->warps > warps) {
        LLVMValueRef in = LLVMBuildICmp(b, LLVMIntULT, warp.v, uni_int(t, 32, warps).v, "");
        x->active = t->ops->splat(t, (Uni){in});
    }
}

static void over_warps(Sort *s, Round *x) {
    uint32_t group = exchange_group(s->layout, key_bytes(s->width, s->low));
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

// --- the network ---

static void sort_round(Sort *s, int b, int direction, bool joins) {
    Round x = {.b = b, .direction = direction, .joins = joins};
    uint32_t n = live_registers(s), mask = UINT32_C(1) << s->place[b].bit;
    if (s->place[b].dim == IN_LANE)
        each_register(s, &x, 0, n, 0, order_lanes);
    else if (s->place[b].dim == IN_WARP)
        over_warps(s, &x);
    else
        each_register(s, &x, 0, n, mask, order_registers);
    if (joins && s->place[b].dim == IN_REG)
        s->joined |= mask;
}

// The bits from k up, registers first and of them the highest first.
static int bits_above(const Sort *s, int k, int *above) {
    int n = 0;
    for (int dim = IN_REG; dim <= IN_WARP; dim++)
        for (int i = (int)s->layout->nin[dim] - 1; i >= 0; i--)
            for (int b = k; b < s->nbits; b++)
                if (s->place[b].dim == dim && (int)s->place[b].bit == i)
                    above[n++] = b;
    return n;
}

static void sort_network(Sort *s, int k) {
    int above[POSITION_BITS_MAX], n = bits_above(s, k, above);
    for (int b = 0; b < s->nbits; b++)
        if (s->place[b].dim != IN_REG)
            s->side[b] = find_side(s, b);
    for (int p = 1; p <= k; p++) {
        int direction = p < k ? p : n > 0 ? above[0] : NO_BIT;
        for (int b = p - 1; b >= 0; b--)
            sort_round(s, b, direction, false);
    }
    for (int i = 0; i < n; i++) {
        sort_round(s, above[i], NO_BIT, true);
        int direction = i + 1 < n ? above[i + 1] : NO_BIT;
        for (int b = k - 1; b >= 0; b--)
            sort_round(s, b, direction, false);
    }
}

// --- the ops ---

static void make_keys(Sort *s, const Op *op) {
    Lower *l = s->l;
    Target *t = l->t;
    uint16_t axis = op->axes[0]->id;
    Coord coord = coord_of(l, s->layout, axis);
    Window w = lower_window(l, op->axes[0]);
    Uni left = lower_clamp_i32(l, lower_sub(l, w.end, w.begin));
    Operand o = operand_of(l, op->in[0], s->layout);
    for (uint32_t r = 0; r < s->n && !t->failed; r++) {
        uint32_t rest;
        Lane at = coord_lane(l, &coord, coord_register(s->layout, axis, r), &rest);
        if (coord.warp.v) {
            Lane warp = t->ops->splat(t, coord.warp);
            at = at.v ? lane_op2(t, OP_ADD, DT_U32, at, warp) : warp;
        }
        at = at.v ? op2(s, OP_ADD, DT_U32, at, rest) : constant(s, DT_U32, rest);
        Lane inside = lane_cmp(t, CMP_LT, DT_I32, at, t->ops->splat(t, left));
        Key k = key_make(s, operand_lane(l, &o, r), at, inside);
        if (r == 0)
            make_memory(s, k);
        key_set(s, (Reg){.i = r}, k);
    }
}

// The register that holds what register q of the result holds; -1: n has no such position.
static int source_register(const Sort *s, const Op *op, const Layout *to, uint32_t q) {
    uint16_t n = op->axes[0]->id, j = op->axes[op->naxes - 1]->id;
    uint32_t want[IN_DIMS] = {[IN_REG] = q};
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t have[IN_DIMS] = {[IN_REG] = r};
        bool same = layout_coord(to, want, j) == layout_coord(s->layout, have, n);
        for (int a = 0; a < to->naxes; a++)
            same = same && (to->axis[a] == j || layout_coord(to, want, to->axis[a]) ==
                                                    layout_coord(s->layout, have, to->axis[a]));
        if (same && !is_joined(s, r))
            return (int)r;
    }
    return -1;
}

static void read_keys(Sort *s, const Op *op, const Layout *to) {
    Lower *l = s->l;
    Target *t = l->t;
    Tile *value = lower_result(l, op->res[0]), *index = lower_result(l, op->res[1]);
    Window w = lower_window(l, op->axes[0]);
    Lane left = t->ops->splat(t, lower_clamp_i32(l, lower_sub(l, w.end, w.begin)));
    Lane begin = t->ops->splat(t, w.begin);
    Lane nothing = t->ops->splat(t, (Uni){LLVMConstNull(target_type(t, s->value))});
    Lane nowhere = constant(s, DT_INDEX, UINT64_MAX);
    for (int q = 0; q < value->n; q++) {
        int r = source_register(s, op, to, (uint32_t)q);
        value->reg[q] = nothing.v;
        index->reg[q] = nowhere.v;
        if (r < 0)
            continue;
        Key key = key_get(s, (Reg){.i = (uint32_t)r});
        Lane low = key_low_word(s, key), v = key_value(s, key, low);
        Lane at = op2(s, OP_SHR, DT_U32, low, 1);
        Lane i = lane_op2(t, OP_ADD, DT_INDEX, lane_resize(t, at, DT_U32, DT_INDEX), begin);
        if (op->kind == OP_TOPK) { // what is outside of n stands behind all that is inside
            Lane inside = lane_cmp(t, CMP_LT, DT_I32, at, left);
            v = choose(s, inside, v, nothing);
            i = choose(s, inside, i, nowhere);
        }
        value->reg[q] = v.v;
        index->reg[q] = i.v;
    }
}

static const Layout *result_layout(Lower *l, const Op *op, const Layout *from) {
    if (op->kind == OP_SORT)
        return from;
    uint32_t size = axis_size_of(op->axes[1]);
    return layout_first(l->layouts, from, op->axes[0]->id, op->axes[1]->id, size ? size : 1);
}

void lower_sort(Lower *l, const Op *op) {
    Target *t = l->t;
    DType value = op->in[0]->type.dtype;
    const Layout *from = op->in[0]->type.layout;
    Sort s = {.l = l, .layout = from, .value = value, .largest = op->kind == OP_TOPK};
    const Layout *to = from ? result_layout(l, op, from) : NULL;
    if (!to || !find_places(from, op->axes[0]->id, &s.nbits, s.place)) {
        target_fail(t, "the layout does not keep the positions along %s apart", op->axes[0]->name);
        return;
    }
    if (op->res[0]->type.layout != to || op->res[1]->type.layout != to) {
        target_fail(t, "the results do not have the layout of the operand's first elements");
        return;
    }
    if (sort_scratch(op) > 0 && t->desc->shared_bytes == 0) {
        target_fail(t, "an exchange between warps without shared memory");
        return;
    }
    s.width = key_width(value);
    s.low = key_low(s.width, s.nbits);
    s.word = s.low == 16 ? DT_U32 : DT_U64;
    s.n = layout_registers(from);
    s.key = ARENA_ARRAY(l->arena, Key, s.n);
    make_keys(&s, op);
    if (t->failed)
        return;
    int k = op->kind == OP_SORT ? s.nbits : (int)layout_axis_bits(to, op->axes[1]->id);
    sort_network(&s, k < s.nbits ? k : s.nbits);
    read_keys(&s, op, to);
}

// Shared by lower_sort.c (keys) and lower_sort_network.c (their order).
#ifndef FUSE_BACKEND_SORT_H
#define FUSE_BACKEND_SORT_H

#include "backend/lower.h"

// An unsigned number; no two of a row are equal. hi above lo.
typedef struct Key {
    Lane hi, lo; // lo.v NULL: one word
} Key;

// Where a bit of the position lives.
typedef struct Place {
    int dim; // IN_REG, IN_LANE, IN_WARP
    unsigned bit;
} Place;

enum { POSITION_BITS_MAX = 30 };

typedef struct Sort {
    Lower *l;
    const Layout *tile;   // the operand's
    const Layout *layout; // of the keys: its sizes rounded up to powers of two
    DType value;
    int width;    // bits of the value in the key: 16, 32, 64
    DType word;   // of Key.hi
    int low;      // position of the value in hi: 16, 32, 0 (two words)
    bool largest; // the largest first
    int nbits;    // of the position
    Place place[POSITION_BITS_MAX];
    Lane at;            // what lanes and warps give of the position
    bool rolled;        // rounds are loops
    uint32_t n, joined; // registers; register bits that no longer tell them apart
    bool *idle;         // by register: a row that the tile does not have
    Key *key;           // by register, or
    LLVMTypeRef type[2];
    LLVMValueRef memory[2]; // arrays of their words, where the target has memory for them
} Sort;

// A register of the tile: a number, or one that a loop counts (at.v).
typedef struct Reg {
    uint32_t i;
    Uni at;
} Reg;

// Lanes of integers: a constant, `a op b`, the first of two where `cond` holds.
Lane sort_constant(Sort *s, DType dtype, uint64_t x);
Lane sort_op2(Sort *s, OpKind kind, DType dtype, Lane a, uint64_t b);
Lane sort_choose(Sort *s, Lane cond, Lane a, Lane b);

int sort_key_bytes(int width, int low);
// Registers of one exchange between warps.
uint32_t sort_exchange_group(const Layout *layout, int bytes);

// Where the keys will lie; called with the first of them, before the others are set.
void sort_make_memory(Sort *s, Key first);
Key sort_key(Sort *s, Reg r);
void sort_set_key(Sort *s, Reg r, Key k);
bool sort_is_joined(const Sort *s, uint32_t reg);
// The first 2^k keys come to the first 2^k positions, in order; the other positions hold copies of
// them, or anything.
void sort_network(Sort *s, int k);

#endif

// Random words: Philox 4x32-10, the same on scalars and vectors (ir/random.c has it in C).
//
// Input: seed and index, integers of any width, read as 64 bits. Output: word `index % 4` of the
// block with counter `index / 4` under the key `seed`, an i32.
#include "backend/target.h"

typedef LLVMValueRef V;

// x to `bits`, zeros above.
static V resize(Target *t, V x, int bits) {
    return LLVMBuildIntCast2(t->builder, x, arith_type_like(x, target_int(t, bits)), false, "");
}

static V constant(Target *t, V like, int64_t i) {
    return arith_int_like(t, LLVMTypeOf(like), i);
}

static V upper(Target *t, V x) {
    return resize(t, LLVMBuildLShr(t->builder, x, constant(t, x, 32), ""), 32);
}

static V product(Target *t, V x, int64_t factor) {
    V wide = resize(t, x, 64);
    return LLVMBuildMul(t->builder, constant(t, wide, factor), wide, "");
}

static void philox_round(Target *t, V c[4], V k[2]) {
    LLVMBuilderRef b = t->builder;
    V p0 = product(t, c[0], 0xD2511F53), p1 = product(t, c[2], 0xCD9E8D57);
    V n0 = LLVMBuildXor(b, LLVMBuildXor(b, upper(t, p1), c[1], ""), k[0], "");
    V n2 = LLVMBuildXor(b, LLVMBuildXor(b, upper(t, p0), c[3], ""), k[1], "");
    c[0] = n0;
    c[1] = resize(t, p1, 32);
    c[2] = n2;
    c[3] = resize(t, p0, 32);
    k[0] = LLVMBuildAdd(b, k[0], constant(t, k[0], 0x9E3779B9), "");
    k[1] = LLVMBuildAdd(b, k[1], constant(t, k[1], 0xBB67AE85), "");
}

Lane arith_random(Target *t, Lane seed, Lane index) {
    LLVMBuilderRef b = t->builder;
    V s = resize(t, seed.v, 64);
    V i = LLVMBuildIntCast2(b, index.v, arith_type_like(index.v, target_int(t, 64)), true, "");
    V counter = LLVMBuildLShr(b, i, constant(t, i, 2), ""), low = resize(t, counter, 32);
    V zero = constant(t, low, 0);
    V c[4] = {low, upper(t, counter), zero, zero}, k[2] = {resize(t, s, 32), upper(t, s)};
    for (int round = 0; round < 10; round++)
        philox_round(t, c, k);
    V word = resize(t, LLVMBuildAnd(b, i, constant(t, i, 3), ""), 32), r = c[3];
    for (int n = 3; n-- > 0;) {
        V is = LLVMBuildICmp(b, LLVMIntEQ, word, constant(t, word, n), "");
        r = LLVMBuildSelect(b, is, c[n], r, "");
    }
    return (Lane){r};
}

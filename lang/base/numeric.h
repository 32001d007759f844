/* Numbers of every element type: conversions, and elements in memory.
 *
 * The meaning of the language's `as` and of stores lives here, once: rounding is to nearest even in
 * one step from the exact value (never through an intermediate type); e4m3 (OCP: no infinity, NaN
 * is 0x7f) and e5m2 saturate, infinities included; f16 and bf16 overflow to infinity; a float
 * becomes an integer by truncation and saturation, NaN gives 0; integers wrap. Every float type is
 * a subset of double, every integer type but u64 of int64_t (u64 is held as its bits).
 *
 * Invariant: all functions need the default rounding mode and are otherwise pure.
 */
#ifndef FUSE_LANG_BASE_NUMERIC_H
#define FUSE_LANG_BASE_NUMERIC_H

#include "lang/base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* --- codes of the small floats; to f32 is exact, NaN gives a quiet NaN --- */
float f32_from_f16(uint16_t code);
float f32_from_bf16(uint16_t code);
float f32_from_e4m3(uint8_t code);
float f32_from_e5m2(uint8_t code);
/* From double, which holds every float: NaN gives the canonical code 0x7fff or 0x7f. */
uint16_t f16_from_f64(double x);
uint16_t bf16_from_f64(double x);
uint8_t e4m3_from_f64(double x);
uint8_t e5m2_from_f64(double x);

/* --- values --- */

/* One element. `u.f` is an exact value of a float type; `u.i` an integer in the range of its type,
 * 0 or 1 for bool, the bits for u64. */
typedef struct Scalar {
    DType dtype;
    union {
        int64_t i;
        double f;
    } u;
} Scalar;

/* The nearest value of a float type. */
double numeric_round(DType type, double x);
/* The low bits of x as a value of an integer type; bool: x != 0. */
int64_t numeric_wrap(DType type, int64_t x);
/* Truncates towards 0 and saturates; NaN gives 0; bool: x != 0 (NaN too). */
int64_t numeric_saturate(DType type, double x);
/* An integer (`from` tells u64 from the rest) as the nearest value of the float type `to`. */
double numeric_from_int(DType to, DType from, int64_t x);

Scalar scalar_int(DType type, int64_t x);  /* wraps; for float types the nearest value */
Scalar scalar_float(DType type, double x); /* rounds; for integer types saturates */
/* The language's `as`. */
Scalar scalar_cast(Scalar x, DType to);
/* The element's bits, zero extended, and back. */
uint64_t scalar_bits(Scalar x);
Scalar scalar_from_bits(DType type, uint64_t bits);
bool scalar_is_nan(Scalar x);
/* As a double, for comparing and printing; 64-bit integers may round. */
double scalar_to_f64(Scalar x);

/* --- memory: element `index` from `base`; packed types count nibbles, low nibble first. `base` may
 * be unaligned. Loading a bool gives 1 for every byte but 0. --- */
Scalar scalar_load(DType type, const void *base, int64_t index);
void scalar_store(void *base, int64_t index, Scalar x);

#endif

/* Element types, from the rows of dtypes.def. DT_NONE (0) is "no type". */
#ifndef FUSE_LANG_BASE_DTYPE_H
#define FUSE_LANG_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
    DT_NONE,
#define DTYPE(id, text, bits, kind, code, dlbits) DT_##id,
#include "lang/base/dtypes.def"
#undef DTYPE
    DT_COUNT_ /* number of DTypes, DT_NONE included; not a type */
} DType;

typedef enum DTypeKind {
    DTYPE_KIND_NONE,
    DTYPE_KIND_BOOL,
    DTYPE_KIND_INT,
    DTYPE_KIND_UINT,
    DTYPE_KIND_FLOAT
} DTypeKind;

/* "f16"; "none" for DT_NONE. */
const char *dtype_name(DType type);
/* DT_NONE where the text names no type. */
DType dtype_parse(const char *text, size_t len);
DType dtype_parse_cstr(const char *text);

/* Bits of one element in memory (bool 8, i4 4); 0 for DT_NONE. */
uint32_t dtype_bits(DType type);
/* Bytes of `count` elements next to each other, rounded up to whole bytes. */
uint64_t dtype_bytes(DType type, uint64_t count);
DTypeKind dtype_kind(DType type);

bool dtype_is_float(DType type);   /* f16 .. e5m2 */
bool dtype_is_integer(DType type); /* signed, unsigned, packed, index; not bool */
bool dtype_is_signed(DType type);  /* integers below zero; floats too */
bool dtype_is_fp8(DType type);
bool dtype_is_packed(DType type); /* less than a byte */

/* The DLPack type; dtype_from_dlpack gives DT_NONE where there is none (never DT_INDEX). */
uint8_t dtype_dlpack_code(DType type);
uint8_t dtype_dlpack_bits(DType type);
DType dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes);

#endif

/* Element types: tables over dtypes.def; see dtype.h. */
#include "lang/base/dtype.h"

#include <string.h>

typedef struct DTypeRow {
    const char *name;
    uint8_t bits, kind, dlpack_code, dlpack_bits;
} DTypeRow;

static const DTypeRow rows[DT_COUNT_] = {
    [DT_NONE] = {.name = "none"},
#define DTYPE(id, text, bits, kind, code, dlbits)                                                  \
    [DT_##id] = {text, bits, DTYPE_KIND_##kind, code, dlbits},
#include "lang/base/dtypes.def"
#undef DTYPE
};

const char *dtype_name(DType type) {
    return rows[type].name;
}

DType dtype_parse(const char *text, size_t len) {
    for (DType type = DT_NONE + 1; type < DT_COUNT_; type++)
        if (len && rows[type].name[0] == *text && strlen(rows[type].name) == len &&
            memcmp(rows[type].name, text, len) == 0)
            return type;
    return DT_NONE;
}

DType dtype_parse_cstr(const char *text) {
    return dtype_parse(text, strlen(text));
}

uint32_t dtype_bits(DType type) {
    return rows[type].bits;
}

uint64_t dtype_bytes(DType type, uint64_t count) {
    uint64_t bits = rows[type].bits;
    return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

DTypeKind dtype_kind(DType type) {
    return (DTypeKind)rows[type].kind;
}

bool dtype_is_float(DType type) {
    return rows[type].kind == DTYPE_KIND_FLOAT;
}

bool dtype_is_integer(DType type) {
    return rows[type].kind == DTYPE_KIND_INT || rows[type].kind == DTYPE_KIND_UINT;
}

bool dtype_is_signed(DType type) {
    return rows[type].kind == DTYPE_KIND_INT || rows[type].kind == DTYPE_KIND_FLOAT;
}

bool dtype_is_fp8(DType type) {
    return type == DT_E4M3 || type == DT_E5M2;
}

bool dtype_is_packed(DType type) {
    return type != DT_NONE && rows[type].bits < 8;
}

uint8_t dtype_dlpack_code(DType type) {
    return rows[type].dlpack_code;
}

uint8_t dtype_dlpack_bits(DType type) {
    return rows[type].dlpack_bits;
}

DType dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes) {
    if (lanes != 1)
        return DT_NONE;
    for (DType type = DT_NONE + 1; type < DT_INDEX; type++)
        if (rows[type].dlpack_code == code && rows[type].dlpack_bits == bits)
            return type;
    return DT_NONE;
}

// A tensor in host memory, as the tools read it from and write it to files.
// Invariants: dense and in C order (last dim fastest); `bytes` is what dtype and dims say, packed
// types two elements a byte, low nibble first; data is owned and aligned to 64 bytes.
#ifndef FUSE_TOOLS_TENSOR_H
#define FUSE_TOOLS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/base/dtype.h"
#include "lang/base/numeric.h"

enum { TENSOR_MAX_RANK = 8 };

typedef struct HostTensor {
    DType dtype;
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
    void *data;
    size_t bytes;
} HostTensor;

// Why a function returned false; text without "error:" and without a newline.
typedef struct ToolError {
    char text[512];
} ToolError;

// Sets the text and returns false.
bool tool_fail(ToolError *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The number of elements and of bytes; false where a dim is negative or the product overflows.
bool tensor_size(DType dtype, int rank, const int64_t *dims, int64_t *elements, size_t *bytes,
                 ToolError *error);
// Zeroed elements. On false, `out` is empty and need not be freed.
bool tensor_alloc(HostTensor *out, DType dtype, int rank, const int64_t *dims, ToolError *error);
void tensor_free(HostTensor *tensor);
int64_t tensor_elements(const HostTensor *tensor);

// "256x50", or "scalar"; the text is in `out`.
const char *tensor_shape_text(int rank, const int64_t *dims, char *out, size_t size);

// Element i; a store converts as the language does (floats to nearest even, fp8 saturates).
Scalar tensor_get(const HostTensor *tensor, int64_t i);
void tensor_put(HostTensor *tensor, int64_t i, Scalar value);

// Changes the element type in place. Floats round; integers must fit; a float does not become an
// integer or the reverse, because no one would notice.
bool tensor_convert(HostTensor *tensor, DType to, ToolError *error);

#endif

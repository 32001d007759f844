// Host tensors: sizes, elements as numbers, conversion of the element type.
// Input: tensors from files or made for outputs. Output: the same, or a ToolError.
// Invariant: every size is computed here, with overflow checked; a float is rounded once only.
#include "tools/tensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tool_fail(ToolError *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}

// --- Sizes and memory ---

const char *tensor_shape_text(int rank, const int64_t *dims, char *out, size_t size) {
    size_t used = 0;
    snprintf(out, size, "scalar");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? "x%lld" : "%lld", (long long)dims[i]);
    return out;
}

bool tensor_size(DType dtype, int rank, const int64_t *dims, int64_t *elements, size_t *bytes,
                 ToolError *error) {
    int64_t count = 1; // of the dims that are not 0: a 0 must not hide an overflow
    bool is_empty = false;
    if (rank < 0 || rank > TENSOR_MAX_RANK)
        return tool_fail(error, "%d dims; at most %d are supported", rank, TENSOR_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return tool_fail(error, "dim %d is negative (%lld)", i, (long long)dims[i]);
        if (dims[i] == 0)
            is_empty = true;
        else if (__builtin_mul_overflow(count, dims[i], &count))
            return tool_fail(error, "the shape has more elements than can be counted");
    }
    if (count > INT64_MAX / 8)
        return tool_fail(error, "the shape needs more memory than can be addressed");
    if (is_empty)
        count = 0;
    *elements = count;
    *bytes = (size_t)dtype_bytes(dtype, (uint64_t)count);
    return true;
}

bool tensor_alloc(HostTensor *out, DType dtype, int rank, const int64_t *dims, ToolError *error) {
    *out = (HostTensor){.dtype = dtype, .rank = rank};
    int64_t elements;
    size_t bytes;
    if (!tensor_size(dtype, rank, dims, &elements, &bytes, error))
        return false;
    for (int i = 0; i < rank; i++)
        out->dims[i] = dims[i];
    // aligned_alloc wants a multiple of the alignment, and an empty tensor is not an absent one.
    size_t rounded = (bytes + 64) / 64 * 64;
    out->data = aligned_alloc(64, rounded);
    if (!out->data) {
        *out = (HostTensor){0};
        return tool_fail(error, "not enough memory for a tensor of %zu bytes", bytes);
    }
    memset(out->data, 0, rounded);
    out->bytes = bytes;
    return true;
}

void tensor_free(HostTensor *tensor) {
    free(tensor->data);
    *tensor = (HostTensor){0};
}

int64_t tensor_elements(const HostTensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

// --- Elements ---

Scalar tensor_get(const HostTensor *tensor, int64_t i) {
    return scalar_load(tensor->dtype, tensor->data, i);
}

void tensor_put(HostTensor *tensor, int64_t i, Scalar value) {
    scalar_store(tensor->data, i, scalar_cast(value, tensor->dtype));
}

// --- Conversion ---

// Whether a value keeps its sign and magnitude as another integer type.
static bool int_fits(Scalar value, DType to) {
    Scalar there = scalar_cast(value, to);
    Scalar back = scalar_cast(there, value.dtype);
    bool was_negative = value.dtype != DT_U64 && value.u.i < 0;
    bool is_negative = to != DT_U64 && there.u.i < 0;
    return back.u.i == value.u.i && was_negative == is_negative;
}

static bool convert_elements(const HostTensor *from, HostTensor *to, ToolError *error) {
    int64_t n = tensor_elements(from);
    bool is_float = dtype_is_float(to->dtype);
    for (int64_t i = 0; i < n; i++) {
        Scalar value = tensor_get(from, i);
        if (!is_float && !int_fits(value, to->dtype))
            return tool_fail(error, "element %lld is %.0f, which %s does not hold", (long long)i,
                             scalar_to_f64(value), dtype_name(to->dtype));
        tensor_put(to, i, value);
    }
    return true;
}

bool tensor_convert(HostTensor *tensor, DType to, ToolError *error) {
    if (tensor->dtype == to)
        return true;
    if (dtype_is_float(tensor->dtype) != dtype_is_float(to))
        return tool_fail(error, "elements are %s and %s is wanted; convert them explicitly",
                         dtype_name(tensor->dtype), dtype_name(to));
    HostTensor converted;
    if (!tensor_alloc(&converted, to, tensor->rank, tensor->dims, error))
        return false;
    if (!convert_elements(tensor, &converted, error)) {
        tensor_free(&converted);
        return false;
    }
    tensor_free(tensor);
    *tensor = converted;
    return true;
}

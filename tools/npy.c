// NumPy's .npy files: "\x93NUMPY", a version, the length of the header, the header (a Python dict
// literal of descr, fortran_order and shape), then the elements.
// Input: bytes that may be anything. Output: a HostTensor, or what is wrong with the file.
// Invariant: nothing is allocated before the size that the header claims is found in the file.
// Source: numpy/lib/format.py, "Format Version 1.0" to "3.0".
#include "tools/npy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they are");

static const char magic[] = "\x93NUMPY";
enum { MAGIC_SIZE = 6, ALIGNMENT = 64 };

// --- The header: a dict literal ---

typedef struct Scanner {
    const char *at, *end;
} Scanner;

typedef struct Header {
    DType dtype;
    bool is_swapped, is_fortran;
    bool has_descr, has_order, has_shape;
    int rank;
    int64_t dims[TENSOR_MAX_RANK];
} Header;

static void skip_space(Scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || (*s->at >= '\t' && *s->at <= '\r')))
        s->at++;
}

static bool take(Scanner *s, char c) {
    skip_space(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool take_word(Scanner *s, const char *word) {
    size_t length = strlen(word);
    skip_space(s);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0)
        return false;
    s->at += length;
    return true;
}

// A string without escapes; text and length are set.
static bool take_string(Scanner *s, const char **text, size_t *length) {
    skip_space(s);
    if (s->at >= s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    const char *start = s->at + 1;
    const char *close = memchr(start, *s->at, (size_t)(s->end - start));
    if (!close)
        return false;
    *text = start;
    *length = (size_t)(close - start);
    s->at = close + 1;
    return true;
}

static bool take_int(Scanner *s, int64_t *value) {
    skip_space(s);
    bool any = false;
    *value = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++, any = true)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *s->at - '0', value))
            return false;
    if (any && s->at < s->end && *s->at == 'L') // Python 2 wrote its long integers so
        s->at++;
    return any;
}

static DType descr_dtype(char kind, const char *digits, size_t length) {
    static const struct {
        const char *code;
        DType dtype;
    } rows[] = {{"b1", DT_BOOL}, {"i1", DT_I8},  {"i2", DT_I16}, {"i4", DT_I32},
                {"i8", DT_I64},  {"u1", DT_U8},  {"u2", DT_U16}, {"u4", DT_U32},
                {"u8", DT_U64},  {"f2", DT_F16}, {"f4", DT_F32}, {"f8", DT_F64}};
    if (length != 1)
        return DT_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code[0] == kind && rows[i].code[1] == digits[0])
            return rows[i].dtype;
    return DT_NONE;
}

static bool parse_descr(const char *name, Scanner *s, Header *header, ToolError *error) {
    const char *text;
    size_t length;
    skip_space(s);
    if (s->at < s->end && *s->at == '[')
        return tool_fail(error, "%s: structured elements are not supported", name);
    if (!take_string(s, &text, &length))
        return tool_fail(error, "%s: malformed header: descr is not a string", name);
    if (length >= 3 && strchr("<>|=", text[0])) {
        header->is_swapped = text[0] == '>';
        header->dtype = descr_dtype(text[1], text + 2, length - 2);
    }
    if (header->dtype == DT_NONE)
        return tool_fail(error, "%s: elements of type '%.*s' are not supported%s", name,
                         length < 40 ? (int)length : 40, text,
                         length > 1 && text[1] == 'V' ? "; save bf16 and fp8 as .safetensors" : "");
    return true;
}

static bool parse_shape(const char *name, Scanner *s, Header *header, ToolError *error) {
    if (!take(s, '('))
        return tool_fail(error, "%s: malformed header: shape is not a tuple", name);
    while (!take(s, ')')) {
        int64_t dim;
        if (!take_int(s, &dim))
            return tool_fail(error, "%s: malformed header: a dim is no number or too large", name);
        if (header->rank == TENSOR_MAX_RANK)
            return tool_fail(error, "%s: more than %d dims", name, TENSOR_MAX_RANK);
        header->dims[header->rank++] = dim;
        if (!take(s, ',') && !(s->at < s->end && *s->at == ')'))
            return tool_fail(error, "%s: malformed header: shape is not a tuple", name);
    }
    return true;
}

static bool parse_entry(const char *name, Scanner *s, Header *header, ToolError *error) {
    const char *key;
    size_t length;
    if (!take_string(s, &key, &length) || !take(s, ':'))
        return tool_fail(error, "%s: malformed header", name);
    bool *seen = NULL;
    if (length == 5 && memcmp(key, "descr", 5) == 0)
        seen = &header->has_descr;
    else if (length == 13 && memcmp(key, "fortran_order", 13) == 0)
        seen = &header->has_order;
    else if (length == 5 && memcmp(key, "shape", 5) == 0)
        seen = &header->has_shape;
    if (!seen || *seen)
        return tool_fail(error, "%s: malformed header: %s key '%.*s'", name,
                         seen ? "repeated" : "unknown", length < 40 ? (int)length : 40, key);
    *seen = true;
    if (seen == &header->has_descr)
        return parse_descr(name, s, header, error);
    if (seen == &header->has_shape)
        return parse_shape(name, s, header, error);
    header->is_fortran = take_word(s, "True");
    return header->is_fortran || take_word(s, "False") ||
           tool_fail(error, "%s: malformed header: fortran_order is not True or False", name);
}

static bool parse_header(const char *name, Scanner *s, Header *header, ToolError *error) {
    if (!take(s, '{'))
        return tool_fail(error, "%s: malformed header", name);
    while (!take(s, '}')) {
        if (!parse_entry(name, s, header, error))
            return false;
        if (!take(s, ',') && !(s->at < s->end && *s->at == '}'))
            return tool_fail(error, "%s: malformed header", name);
    }
    if (!header->has_descr || !header->has_order || !header->has_shape)
        return tool_fail(error, "%s: malformed header: descr, fortran_order and shape are needed",
                         name);
    return true;
}

// --- Elements ---

// Copies between C order and Fortran order: `fortran` holds the first dim fastest.
static void permute(char *c_order, char *fortran, const HostTensor *shape, size_t element,
                    bool to_fortran) {
    int64_t n = tensor_elements(shape), index[TENSOR_MAX_RANK] = {0};
    for (int64_t i = 0; i < n; i++) { // i: position in Fortran order
        int64_t at = 0;
        for (int d = 0; d < shape->rank; d++)
            at = at * shape->dims[d] + index[d];
        char *c = c_order + (size_t)at * element, *f = fortran + (size_t)i * element;
        memcpy(to_fortran ? f : c, to_fortran ? c : f, element);
        for (int d = 0; d < shape->rank && ++index[d] == shape->dims[d]; d++)
            index[d] = 0;
    }
}

static void swap_bytes(char *data, size_t bytes, size_t element) {
    for (size_t at = 0; at < bytes; at += element)
        for (size_t i = 0; i < element / 2; i++) {
            char low = data[at + i];
            data[at + i] = data[at + element - 1 - i];
            data[at + element - 1 - i] = low;
        }
}

// Where the header starts and how long it is, by the version.
static bool find_header(const char *name, const char *bytes, size_t size, size_t *start,
                        size_t *length, ToolError *error) {
    const unsigned char *u = (const unsigned char *)bytes;
    if (size < MAGIC_SIZE || memcmp(bytes, magic, MAGIC_SIZE) != 0)
        return tool_fail(error, "%s: is not a .npy file", name);
    if (size < MAGIC_SIZE + 2)
        return tool_fail(error, "%s: is truncated", name);
    if (u[6] < 1 || u[6] > 3 || u[7] != 0)
        return tool_fail(error, "%s: .npy version %d.%d is not supported", name, u[6], u[7]);
    *start = u[6] == 1 ? 10 : 12;
    if (size < *start)
        return tool_fail(error, "%s: is truncated", name);
    *length = u[8] | (size_t)u[9] << 8;
    if (u[6] > 1)
        *length |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
    if (*length > size - *start)
        return tool_fail(error, "%s: is truncated in its header", name);
    return true;
}

bool npy_parse(const char *name, const char *bytes, size_t size, HostTensor *out,
               ToolError *error) {
    *out = (HostTensor){0};
    size_t start = 0, length = 0;
    if (!find_header(name, bytes, size, &start, &length, error))
        return false;
    Scanner scanner = {bytes + start, bytes + start + length};
    Header header = {0};
    if (!parse_header(name, &scanner, &header, error))
        return false;

    int64_t elements;
    size_t need, have = size - start - length;
    ToolError why;
    if (!tensor_size(header.dtype, header.rank, header.dims, &elements, &need, &why))
        return tool_fail(error, "%s: %s", name, why.text);
    if (need > have)
        return tool_fail(error, "%s: is truncated: %zu bytes of elements, %zu are needed", name,
                         have, need);
    if (!tensor_alloc(out, header.dtype, header.rank, header.dims, &why))
        return tool_fail(error, "%s: %s", name, why.text);
    size_t element = dtype_bits(header.dtype) / 8;
    const char *elements_at = bytes + start + length;
    if (header.is_fortran && header.rank > 1)
        permute(out->data, (char *)elements_at, out, element, false);
    else
        memcpy(out->data, elements_at, need);
    if (header.is_swapped)
        swap_bytes(out->data, need, element);
    return true;
}

bool npy_read(const char *path, HostTensor *out, ToolError *error) {
    FileView view;
    *out = (HostTensor){0};
    if (!file_view_open(&view, path, (FileMark){"\x93NUMPY", 0}, error))
        return false;
    bool ok = npy_parse(path, view.data, view.size, out, error);
    file_view_close(&view);
    return ok;
}

// --- Writing ---

// The type in which the format can hold the elements, and its code.
static DType stored_dtype(DType dtype, const char **code) {
    switch (dtype) {
    case DT_BOOL:
        return *code = "|b1", dtype;
    case DT_I8:
    case DT_I4:
        return *code = "|i1", DT_I8;
    case DT_U8:
    case DT_U4:
        return *code = "|u1", DT_U8;
    case DT_I16:
        return *code = "<i2", dtype;
    case DT_I32:
        return *code = "<i4", dtype;
    case DT_I64:
    case DT_INDEX:
        return *code = "<i8", DT_I64;
    case DT_U16:
        return *code = "<u2", dtype;
    case DT_U32:
        return *code = "<u4", dtype;
    case DT_U64:
        return *code = "<u8", dtype;
    case DT_F16:
        return *code = "<f2", dtype;
    case DT_F32:
    case DT_BF16:
    case DT_E4M3:
    case DT_E5M2:
        return *code = "<f4", DT_F32;
    case DT_F64:
        return *code = "<f8", dtype;
    case DT_NONE:
    case DT_COUNT_:
        break;
    }
    return *code = "", DT_NONE;
}

// Everything before the elements, a multiple of ALIGNMENT bytes. A header for at most 8 dims fits
// version 1.
static size_t make_header(const HostTensor *tensor, const char *code, bool fortran_order, char *out,
                          size_t size) {
    memcpy(out, magic, MAGIC_SIZE);
    out[6] = 1;
    out[7] = 0;
    size_t at = 10;
    at += (size_t)snprintf(out + at, size - at, "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                           code, fortran_order ? "True" : "False");
    for (int i = 0; i < tensor->rank; i++)
        at += (size_t)snprintf(out + at, size - at, "%lld%s", (long long)tensor->dims[i],
                               i + 1 < tensor->rank ? ", "
                               : i == 0             ? ","
                                                    : "");
    at += (size_t)snprintf(out + at, size - at, "), }");
    while ((at + 1) % ALIGNMENT != 0)
        out[at++] = ' ';
    out[at++] = '\n';
    out[8] = (char)((at - 10) & 255);
    out[9] = (char)((at - 10) >> 8);
    return at;
}

static bool write_elements(OutFile *file, const HostTensor *tensor, bool fortran_order) {
    if (!fortran_order || tensor->rank < 2)
        return outfile_write(file, tensor->data, tensor->bytes);
    char *permuted = malloc(tensor->bytes + 1);
    if (!permuted) // with errno set, as for a full disk
        return false;
    permute(tensor->data, permuted, tensor, dtype_bits(tensor->dtype) / 8, true);
    bool ok = outfile_write(file, permuted, tensor->bytes);
    free(permuted);
    return ok;
}

bool npy_write(const char *path, const HostTensor *tensor, bool fortran_order, ToolError *error) {
    const char *code;
    DType stored = stored_dtype(tensor->dtype, &code);
    if (stored == DT_NONE)
        return tool_fail(error, "%s: a tensor without a type", path);
    if (stored != tensor->dtype) {
        HostTensor widened;
        if (!tensor_alloc(&widened, tensor->dtype, tensor->rank, tensor->dims, error))
            return false;
        memcpy(widened.data, tensor->data, tensor->bytes);
        bool ok = tensor_convert(&widened, stored, error) &&
                  npy_write(path, &widened, fortran_order, error);
        tensor_free(&widened);
        return ok;
    }

    OutFile file;
    if (!outfile_open(&file, path, error))
        return false;
    char header[512];
    size_t length = make_header(tensor, code, fortran_order, header, sizeof header);
    if (!outfile_write(&file, header, length) || !write_elements(&file, tensor, fortran_order)) {
        tool_fail(error, "%s: %s", path, strerror(errno));
        outfile_discard(&file);
        return false;
    }
    return outfile_commit(&file, error);
}

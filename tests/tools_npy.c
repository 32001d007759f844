// tools/npy.c: round trips, the format's variants, and files that are not what they claim.
#include <criterion/criterion.h>

#include "tools/npy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static HostTensor tensor_counting(DType dtype, int rank, const int64_t *dims) {
    HostTensor t;
    ToolError error;
    cr_assert(tensor_alloc(&t, dtype, rank, dims, &error), "%s", error.text);
    for (int64_t i = 0; i < tensor_elements(&t); i++)
        tensor_put(&t, i, scalar_int(DT_I64, i % 7 - (dtype_is_signed(dtype) ? 3 : 0)));
    return t;
}

static void temp_path(char *path, size_t size) {
    snprintf(path, size, "/tmp/fuse-npy-XXXXXX");
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
}

static void check_round_trip(DType dtype, DType stored, int rank, const int64_t *dims,
                             bool fortran) {
    char path[64];
    temp_path(path, sizeof path);
    ToolError error;
    HostTensor out = tensor_counting(dtype, rank, dims), in;
    cr_assert(npy_write(path, &out, fortran, &error), "%s", error.text);
    cr_assert(npy_read(path, &in, &error), "%s", error.text);
    cr_assert_eq(in.dtype, stored, "%s is stored as %s", dtype_name(dtype), dtype_name(in.dtype));
    cr_assert_eq(in.rank, rank);
    for (int i = 0; i < rank; i++)
        cr_assert_eq(in.dims[i], dims[i]);
    for (int64_t i = 0; i < tensor_elements(&out); i++)
        cr_assert_eq(scalar_to_f64(tensor_get(&in, i)), scalar_to_f64(tensor_get(&out, i)),
                     "%s element %ld", dtype_name(dtype), (long)i);
    tensor_free(&in);
    tensor_free(&out);
    unlink(path);
}

Test(tools_npy, every_dtype_round_trips) {
    static const struct {
        DType dtype, stored;
    } rows[] = {{DT_BOOL, DT_BOOL}, {DT_I8, DT_I8},    {DT_I16, DT_I16},  {DT_I32, DT_I32},
                {DT_I64, DT_I64},   {DT_U8, DT_U8},    {DT_U16, DT_U16},  {DT_U32, DT_U32},
                {DT_U64, DT_U64},   {DT_F16, DT_F16},  {DT_BF16, DT_F32}, {DT_F32, DT_F32},
                {DT_F64, DT_F64},   {DT_E4M3, DT_F32}, {DT_E5M2, DT_F32}, {DT_I4, DT_I8},
                {DT_U4, DT_U8},     {DT_INDEX, DT_I64}};
    static const int64_t dims[] = {3, 5, 2};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_round_trip(rows[i].dtype, rows[i].stored, 3, dims, false);
        check_round_trip(rows[i].dtype, rows[i].stored, 3, dims, true);
    }
}

Test(tools_npy, every_rank_round_trips) {
    static const int64_t dims[] = {2, 3, 1, 2, 1, 2, 3, 2}, empty[] = {4, 0, 3};
    for (int rank = 0; rank <= TENSOR_MAX_RANK; rank++) {
        check_round_trip(DT_F32, DT_F32, rank, dims, false);
        check_round_trip(DT_I16, DT_I16, rank, dims, true);
    }
    check_round_trip(DT_F32, DT_F32, 3, empty, false);
    check_round_trip(DT_F32, DT_F32, 3, empty, true);
}

// A file in memory: version, header text, elements.
typedef struct Image {
    char *bytes;
    size_t size;
} Image;

static Image image(int version, const char *header, const void *data, size_t bytes) {
    size_t length = strlen(header), start = version == 1 ? 10 : 12;
    Image out = {malloc(start + length + bytes), start + length + bytes};
    memcpy(out.bytes, "\x93NUMPY", 6);
    out.bytes[6] = (char)version;
    out.bytes[7] = 0;
    for (size_t i = 8; i < start; i++)
        out.bytes[i] = (char)(length >> (i - 8) * 8);
    memcpy(out.bytes + start, header, length);
    if (bytes)
        memcpy(out.bytes + start + length, data, bytes);
    return out;
}

static bool parse(Image file, HostTensor *out, ToolError *error) {
    bool ok = npy_parse("t.npy", file.bytes, file.size, out, error);
    free(file.bytes);
    return ok;
}

Test(tools_npy, reads_what_numpy_writes) {
    static const int16_t data[] = {1, 2, 3, 4, 5, 6};
    static const char *const headers[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{\"shape\":(2L,3L),\"fortran_order\":False,\"descr\":\"=i2\"}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3,)}\n",
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        for (int version = 1; version <= 3; version++) {
            HostTensor t;
            ToolError error;
            cr_assert(parse(image(version, headers[i], data, sizeof data), &t, &error), "%s",
                      error.text);
            cr_assert_eq(t.dtype, DT_I16);
            cr_assert(t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 3);
            cr_assert_arr_eq(t.data, data, sizeof data);
            tensor_free(&t);
        }
}

Test(tools_npy, fortran_order_and_big_endian) {
    // [[1, 2, 3], [4, 5, 6]] by columns, big-endian
    static const unsigned char data[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
    HostTensor t;
    ToolError error;
    cr_assert(parse(image(1, "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }", data,
                          sizeof data),
                    &t, &error),
              "%s", error.text);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(tensor_get(&t, i).u.i, i + 1);
    tensor_free(&t);
}

Test(tools_npy, a_header_of_70000_bytes) {
    char *header = malloc(70001);
    int n = snprintf(header, 70001, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }");
    memset(header + n, ' ', 70000 - (size_t)n);
    header[70000] = 0;
    HostTensor t;
    ToolError error;
    cr_assert(parse(image(2, header, "\x2a", 1), &t, &error), "%s", error.text);
    cr_assert_eq(tensor_get(&t, 0).u.i, 42);
    tensor_free(&t);
    free(header);
}

static void check_rejects(Image file, const char *expect) {
    HostTensor t;
    ToolError error = {"(accepted)"};
    bool ok = parse(file, &t, &error);
    cr_expect(!ok && strstr(error.text, expect), "expected '%s', got '%s'", expect, error.text);
    cr_expect(!t.data);
    tensor_free(&t);
}

Test(tools_npy, malformed_headers) {
    static const char *const rows[][2] = {
        {"", "malformed"},
        {"{", "malformed"},
        {"{}", "are needed"},
        {"[1, 2]", "malformed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "malformed"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", "fortran_order"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "repeated key 'descr'"},
        {"{'descr': '<f4', 'color': 1}", "unknown key 'color'"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", "not supported"},
        {"{'descr': '<f4", "not a string"},
        {"{'descr': 4, 'fortran_order': False, 'shape': (1,)}", "not a string"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "not supported"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "not supported"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "not supported"},
        {"{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "safetensors"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "dim"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "more than 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "counted"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
         "counted"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}", "memory"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "truncated"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_rejects(image(1, rows[i][0], "\0\0\0\0\0\0\0\0", 8), rows[i][1]);
}

Test(tools_npy, every_truncation_is_an_error) {
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    for (int version = 1; version <= 2; version++) {
        Image whole = image(version, header, "abcdefgh", 8);
        for (size_t size = 0; size < whole.size; size++) {
            // Copied, so that reading past the end is seen.
            char *part = malloc(size + !size);
            memcpy(part, whole.bytes, size);
            HostTensor t;
            ToolError error;
            cr_expect_not(npy_parse("t.npy", part, size, &t, &error), "%zu bytes", size);
            free(part);
        }
        free(whole.bytes);
    }
}

Test(tools_npy, wrong_magic_and_version) {
    Image file = image(1, "{}", NULL, 0);
    file.bytes[1] = 'X';
    check_rejects(file, "not a .npy file");
    file = image(1, "{}", NULL, 0);
    file.bytes[6] = 4;
    check_rejects(file, "version 4.0");
}

Test(tools_npy, a_failed_write_leaves_nothing) {
    HostTensor t = tensor_counting(DT_F32, 0, NULL), in;
    ToolError error;
    cr_assert_not(npy_write("/tmp/no-such-folder-of-fuse/x.npy", &t, false, &error));
    cr_assert(strstr(error.text, "No such file"), "%s", error.text);
    cr_assert_not(npy_write("/tmp", &t, false, &error));
    cr_assert_not(npy_read("/tmp/no-such-folder-of-fuse/x.npy", &in, &error));
    cr_assert_not(npy_read("/tmp", &in, &error));
    tensor_free(&t);
}

Test(tools_npy, conversion_rounds_once_and_checks_integers) {
    ToolError error;
    int64_t one = 1;
    HostTensor t;
    cr_assert(tensor_alloc(&t, DT_F64, 1, &one, &error));
    // Through f32 this would round to the tie and then down, to 1.
    ((double *)t.data)[0] = 1 + 0x1p-8 + 0x1p-40;
    cr_assert(tensor_convert(&t, DT_BF16, &error), "%s", error.text);
    cr_assert_eq(*(uint16_t *)t.data, 0x3f81);
    cr_assert_not(tensor_convert(&t, DT_I32, &error));
    cr_assert(strstr(error.text, "elements are bf16 and i32 is wanted"), "%s", error.text);
    tensor_free(&t);

    static const struct {
        DType from, to;
        int64_t value;
        bool fits;
    } rows[] = {{DT_I64, DT_I32, INT32_MAX, true}, {DT_I64, DT_I32, INT64_C(1) << 31, false},
                {DT_I64, DT_U8, 255, true},        {DT_I64, DT_U8, -1, false},
                {DT_U64, DT_I64, -1, false},       {DT_I64, DT_U64, -1, false},
                {DT_U64, DT_U32, -1, false},       {DT_I8, DT_I4, -8, true},
                {DT_I8, DT_I4, 8, false},          {DT_U8, DT_U4, 15, true},
                {DT_U8, DT_BOOL, 2, false},        {DT_U8, DT_BOOL, 1, true},
                {DT_I32, DT_INDEX, -5, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert(tensor_alloc(&t, rows[i].from, 1, &one, &error));
        tensor_put(&t, 0, scalar_int(rows[i].from, rows[i].value));
        cr_expect_eq(tensor_convert(&t, rows[i].to, &error), rows[i].fits, "row %zu", i);
        tensor_free(&t);
    }
}

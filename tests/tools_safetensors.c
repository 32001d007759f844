// tools/safetensors.c: round trips, keeping what is not replaced, and files that lie.
#include <criterion/criterion.h>

#include "tools/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "/tmp/fuse-safetensors-test.safetensors";

static char *image(const char *header, size_t data, size_t *size) {
    size_t length = strlen(header);
    *size = 8 + length + data;
    char *bytes = calloc(1, *size);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++)
        bytes[8 + length + i] = (char)i;
    return bytes;
}

Test(tools_safetensors, every_dtype_round_trips) {
    static const DType dtypes[] = {DT_BOOL, DT_U8,  DT_I8,  DT_E5M2, DT_E4M3,
                                   DT_I16,  DT_U16, DT_F16, DT_BF16, DT_I32,
                                   DT_U32,  DT_F32, DT_F64, DT_I64,  DT_U64};
    enum { COUNT = sizeof dtypes / sizeof dtypes[0] };
    static const int64_t dims[] = {2, 3};
    char name[64];
    snprintf(name, sizeof name, "/tmp/fuse-st-%d.safetensors", (int)getpid());
    ToolError error;
    HostTensor tensors[COUNT];
    SafeTensors *set = safetensors_new();
    for (int i = 0; i < COUNT; i++) {
        cr_assert(tensor_alloc(&tensors[i], dtypes[i], i % 3, dims, &error));
        for (int64_t j = 0; j < tensor_elements(&tensors[i]); j++)
            tensor_put(&tensors[i], j, scalar_int(DT_I64, j % 2));
        cr_assert(safetensors_put(set, dtype_name(dtypes[i]), &tensors[i], &error), "%s",
                  error.text);
    }
    cr_assert(safetensors_write(set, name, &error), "%s", error.text);
    safetensors_close(set);

    set = safetensors_open(name, &error);
    cr_assert(set, "%s", error.text);
    cr_assert_eq(safetensors_count(set), COUNT);
    for (int i = 0; i < COUNT; i++) {
        HostTensor in;
        cr_assert(safetensors_read(set, dtype_name(dtypes[i]), &in, &error), "%s", error.text);
        cr_assert_eq(in.dtype, dtypes[i]);
        cr_assert_eq(in.rank, i % 3);
        cr_assert_eq(in.bytes, tensors[i].bytes);
        cr_assert_arr_eq(in.data, tensors[i].data, in.bytes);
        tensor_free(&in);
        tensor_free(&tensors[i]);
    }
    safetensors_close(set);
    unlink(name);
}

Test(tools_safetensors, replacing_one_keeps_the_rest) {
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[8,12]},"
        "\"odd\":{\"dtype\":\"F8_E8M0\",\"shape\":[4],\"data_offsets\":[4,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
    size_t size;
    char *bytes = image(header, 12, &size);
    ToolError error;
    SafeTensors *set = safetensors_parse("m.safetensors", bytes, size, &error);
    cr_assert(set, "%s", error.text);
    HostTensor t, in;
    cr_assert(tensor_alloc(&t, DT_BF16, 1, (int64_t[]){3}, &error));
    cr_assert(safetensors_put(set, "a", &t, &error));
    cr_assert(safetensors_write(set, path, &error), "%s", error.text);
    safetensors_close(set);
    free(bytes);

    FileView view;
    cr_assert(file_view_open(&view, path, (FileMark){"{", 8}, &error));
    cr_assert(memmem(view.data, view.size, "\"format\":\"pt\"", 13), "metadata is kept");
    cr_assert(memmem(view.data, view.size, "F8_E8M0", 7), "unknown types are kept");
    file_view_close(&view);
    set = safetensors_open(path, &error);
    cr_assert(set, "%s", error.text);
    cr_assert(safetensors_read(set, "a", &in, &error) && in.dtype == DT_BF16 && in.dims[0] == 3);
    tensor_free(&in);
    cr_assert(safetensors_read(set, "b", &in, &error), "%s", error.text);
    cr_assert_arr_eq(in.data, "\x08\x09\x0a\x0b", 4);
    tensor_free(&in);
    cr_assert_not(safetensors_read(set, "odd", &in, &error));
    cr_assert(strstr(error.text, "F8_E8M0"), "%s", error.text);
    cr_assert_not(safetensors_read(set, "c", &in, &error));
    cr_assert(strstr(error.text, "no tensor 'c'; it has a, odd, b"), "%s", error.text);
    safetensors_close(set);
    tensor_free(&t);
    unlink(path);
}

Test(tools_safetensors, malformed_files) {
    static const struct {
        const char *header;
        size_t data;
        const char *expect;
    } rows[] = {
        {"", 0, "malformed"},
        {"[]", 0, "no object"},
        {"{\"a\":1}", 0, "malformed header at tensor 'a'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "malformed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "malformed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "malformed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 8, "malformed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "its shape needs 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}}", 4,
         "malformed"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4,
         "counted"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 5, "no tensor"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, "hole"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         4, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         4, "duplicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size;
        char *bytes = image(rows[i].header, rows[i].data, &size);
        ToolError error = {"(accepted)"};
        SafeTensors *set = safetensors_parse("m.safetensors", bytes, size, &error);
        cr_expect(!set && strstr(error.text, rows[i].expect), "row %zu: expected '%s', got '%s'", i,
                  rows[i].expect, error.text);
        safetensors_close(set);
        free(bytes);
    }
}

Test(tools_safetensors, every_truncation_is_an_error) {
    size_t size;
    char *bytes =
        image("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, &size);
    for (size_t n = 0; n < size; n++) {
        char *part = malloc(n + !n);
        memcpy(part, bytes, n);
        ToolError error;
        SafeTensors *set = safetensors_parse("m", part, n, &error);
        cr_expect_null(set, "%zu bytes", n);
        safetensors_close(set);
        free(part);
    }
    memset(bytes, 0xff, 8);
    ToolError error;
    cr_expect_null(safetensors_parse("m", bytes, size, &error));
    free(bytes);
}

Test(tools_safetensors, what_the_format_cannot_hold) {
    ToolError error;
    HostTensor t;
    SafeTensors *set = safetensors_new();
    cr_assert(tensor_alloc(&t, DT_I4, 1, (int64_t[]){3}, &error));
    cr_expect_not(safetensors_put(set, "a", &t, &error));
    tensor_free(&t);
    cr_assert(tensor_alloc(&t, DT_F32, 0, NULL, &error));
    cr_expect_not(safetensors_put(set, "__metadata__", &t, &error));
    cr_assert(safetensors_put(set, "\xff\xfe", &t, &error));
    cr_expect_not(safetensors_write(set, path, &error));
    tensor_free(&t);
    safetensors_close(set);
}

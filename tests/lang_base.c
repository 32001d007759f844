/* lang/base: arenas, vectors, interned strings, source map, element types. */
#include "lang_support.h"

#include <stdint.h>

Test(arena, pieces_are_zeroed_aligned_and_apart) {
    Arena *arena = arena_new("a");
    char *pieces[300];
    for (int i = 0; i < 300; i++) {
        pieces[i] = arena_alloc(arena, (size_t)i);
        cr_assert_eq((uintptr_t)pieces[i] % 16, 0);
        for (int k = 0; k < i; k++)
            cr_assert_eq(pieces[i][k], 0);
        memset(pieces[i], i, (size_t)i);
    }
    for (int i = 0; i < 300; i++)
        for (int k = 0; k < i; k++)
            cr_assert_eq((unsigned char)pieces[i][k], i % 256);
    cr_assert_eq(arena_used(arena), 300 * 299 / 2);
    cr_assert_str_eq(arena_name(arena), "a");
    arena_free(arena);
}

Test(arena, large_pieces_and_reset) {
    Arena *arena = arena_new("a");
    char *large = arena_alloc(arena, 5 << 20);
    large[(5 << 20) - 1] = 1;
    arena_reset(arena);
    cr_assert_eq(arena_used(arena), 0);
    const char *again = arena_alloc(arena, 64);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(again[i], 0);
    arena_free(arena);
    arena_free(NULL);
}

Test(arena, strings) {
    Arena *arena = arena_new("a");
    cr_assert_str_eq(arena_strdup(arena, "abc"), "abc");
    cr_assert_str_eq(arena_strndup(arena, "abc", 2), "ab");
    cr_assert_str_eq(arena_printf(arena, "%d-%s", 42, "x"), "42-x");
    cr_assert_str_eq(arena_printf(arena, "%5000d", 7) + 4999, "7");
    cr_assert_eq(memcmp(arena_copy(arena, "a\0b", 3), "a\0b", 3), 0);
    arena_free(arena);
}

typedef VEC(int) IntVec;

Test(vec, push_pop_insert_remove) {
    Arena *arena = arena_new("v");
    IntVec v = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(arena, &v, i);
    cr_assert_eq(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(v.data[i], i);
    cr_assert_eq(vec_pop(&v), 999);
    cr_assert_eq(vec_last(&v), 998);
    vec_insert(arena, &v, 0, -1);
    vec_insert(arena, &v, v.len, -2);
    vec_insert(arena, &v, 5, -3);
    cr_assert_eq(v.data[0], -1);
    cr_assert_eq(v.data[5], -3);
    cr_assert_eq(v.data[6], 4);
    cr_assert_eq(vec_last(&v), -2);
    vec_remove(&v, 5);
    vec_remove(&v, 0);
    vec_remove(&v, v.len - 1);
    cr_assert_eq(v.len, 999);
    for (int i = 0; i < 999; i++)
        cr_assert_eq(v.data[i], i);
    arena_free(arena);
}

Test(vec, resize_zeroes_new_elements) {
    Arena *arena = arena_new("v");
    IntVec v = {0};
    vec_push(arena, &v, 7);
    vec_push(arena, &v, 8);
    vec_clear(&v);
    vec_resize(arena, &v, 4);
    cr_assert_eq(v.len, 4);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(v.data[i], 0);
    arena_free(arena);
}

Test(intern, equal_strings_are_one_pointer) {
    Arena *arena = arena_new("i");
    Interner *interner = interner_new(arena);
    char buffer[16];
    Str strs[2000];
    for (int i = 0; i < 2000; i++) {
        snprintf(buffer, sizeof buffer, "name%d", i);
        strs[i] = intern_cstr(interner, buffer);
        cr_assert_str_eq(strs[i], buffer);
    }
    cr_assert_eq(intern_count(interner), 2000);
    for (int i = 0; i < 2000; i++) {
        snprintf(buffer, sizeof buffer, "name%d", i);
        cr_assert_eq(intern_cstr(interner, buffer), strs[i]);
        cr_assert_eq(intern_find(interner, buffer, strlen(buffer)), strs[i]);
    }
    cr_assert_eq(intern_count(interner), 2000);
    cr_assert_null(intern_find(interner, "other", 5));
    cr_assert_neq(intern(interner, "name1", 4), strs[1]);
    cr_assert_str_eq(intern(interner, "", 0), "");
    arena_free(arena);
}

Test(source, positions_in_two_files) {
    Arena *arena = arena_new("s");
    SourceMap *map = source_map_new(arena);
    FileId a = source_add(map, "a.fk", "one\ntwo\n", 8);
    FileId b = source_add(map, "b.fk", "\xc3\xa9x\r\nlast", 9);
    cr_assert_eq(source_count(map), 2);
    cr_assert_str_eq(source_name(map, b), "b.fk");
    Span whole_a = source_span(map, a), whole_b = source_span(map, b);
    cr_assert_eq(whole_a.begin, 1);
    cr_assert(whole_b.begin > whole_a.end);

    SourcePos pos = source_pos(map, whole_a.begin + 5);
    cr_assert_eq(pos.file, a);
    cr_assert_eq(pos.line, 2);
    cr_assert_eq(pos.col, 2);
    pos = source_pos(map, whole_a.end); /* the end of a file is in it */
    cr_assert_eq(pos.file, a);
    cr_assert_eq(pos.line, 3);
    cr_assert_eq(pos.col, 1);
    pos = source_pos(map, whole_b.begin + 2); /* columns count characters */
    cr_assert_eq(pos.file, b);
    cr_assert_eq(pos.col, 2);
    cr_assert_eq(source_pos(map, 0).file, 0);
    cr_assert_eq(source_pos(map, whole_b.end + 1).file, 0);

    SourceLine line = source_line_at(map, whole_b.begin);
    cr_assert_eq(line.len, 3); /* without \r */
    line = source_line_at(map, whole_b.end);
    cr_assert_eq(line.len, 4);
    cr_assert_eq(memcmp(line.text, "last", 4), 0);

    uint32_t len;
    const char *text = source_span_text(map, (Span){whole_a.begin + 4, whole_a.begin + 7}, &len);
    cr_assert_eq(len, 3);
    cr_assert_eq(memcmp(text, "two", 3), 0);
    cr_assert_null(source_span_text(map, (Span){0}, &len));
    cr_assert_eq(len, 0);
    arena_free(arena);
}

Test(source, empty_file_and_spans) {
    Arena *arena = arena_new("s");
    SourceMap *map = source_map_new(arena);
    FileId id = source_add(map, "e", "", 0);
    SourcePos pos = source_pos(map, source_span(map, id).begin);
    cr_assert_eq(pos.file, id);
    cr_assert_eq(pos.line, 1);
    cr_assert_eq(source_add(map, "huge", "", UINT32_MAX), 0);
    Span joined = span_join((Span){5, 7}, (Span){2, 3});
    cr_assert_eq(joined.begin, 2);
    cr_assert_eq(joined.end, 7);
    joined = span_join((Span){0}, (Span){2, 3});
    cr_assert_eq(joined.begin, 2);
    cr_assert(span_is_none((Span){0}));
    arena_free(arena);
}

Test(dtype, table) {
    for (DType type = DT_NONE + 1; type < DT_COUNT_; type++) {
        cr_assert_eq(dtype_parse_cstr(dtype_name(type)), type);
        if (type != DT_INDEX)
            cr_assert_eq(dtype_from_dlpack(dtype_dlpack_code(type), dtype_dlpack_bits(type), 1),
                         type);
    }
    cr_assert_eq(dtype_parse_cstr("none"), DT_NONE);
    cr_assert_eq(dtype_parse("f16x", 3), DT_F16);
    cr_assert_eq(dtype_parse("", 0), DT_NONE);
    cr_assert_eq(dtype_from_dlpack(0, 64, 1), DT_I64);
    cr_assert_eq(dtype_from_dlpack(2, 32, 4), DT_NONE);
    cr_assert_eq(dtype_bits(DT_BF16), 16);
    cr_assert_eq(dtype_bytes(DT_U4, 3), 2);
    cr_assert_eq(dtype_bytes(DT_F32, 3), 12);
    cr_assert(dtype_is_float(DT_E5M2) && !dtype_is_float(DT_I8));
    cr_assert(dtype_is_integer(DT_INDEX) && !dtype_is_integer(DT_BOOL));
    cr_assert(dtype_is_signed(DT_I4) && !dtype_is_signed(DT_U4));
    cr_assert(dtype_is_packed(DT_I4) && !dtype_is_packed(DT_E4M3) && !dtype_is_packed(DT_NONE));
    cr_assert(dtype_is_fp8(DT_E4M3) && !dtype_is_fp8(DT_F16));
}

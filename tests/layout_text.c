// The text of layouts: reads back, and wrong text is refused with a place.
#include "layout_support.h"

static Arena *arena;
static LayoutTable *table;

static void setup(void) {
    arena = arena_new("layout test");
    table = layout_table_new(arena);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(layout_text, .init = setup, .fini = teardown);

Test(layout_text, round_trip) {
    static const char *const texts[] = {
        "",
        "reg(n:1, m:2) lane(n:2, 0) warp(m:1) rep(n:11)",
        "reg(m:1) cta(n:1)",
        "lane(0, 0, 0, 0, 0) warp(0, 0)",
        "off(k:1, k:2, m:1^k:2)",
        "off(k:1, m:1^k:1, m:3^k:4, m:2, k:3)",
        "off(m:1, m:2) rep(m:3, k:5)",
        "rep(m:3, n:65535)",
        "reg(j:1, i:8, j:4) lane(j:2, i:1, i:2, i:4, 0) warp(i:16, i:32, i:64)",
    };
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_text(table, of_text(table, texts[i]), texts[i]);
    }
    expect_text(table, of_text(table, " reg( 0 ,n:1 )lane()"), "reg(n:1)");
}

Test(layout_text, stops_where_no_group_follows) {
    const char *text = "reg(n:1) lane(n:2); layout #b";
    size_t at = 0;
    const char *error = NULL;
    cr_expect_not_null(layout_parse(table, text, strlen(text), &at, axis_find, NULL, &error));
    cr_expect_eq(at, strlen("reg(n:1) lane(n:2)"));
    cr_expect_null(error);
}

Test(layout_text, errors) {
    static const char *const cases[] = {
        "reg(x:1)",
        "reg(n)",
        "reg(n:)",
        "reg(n:1",
        "reg(n:0)",
        "reg(n:2)",
        "reg(n:1) reg(n:2)",
        "reg(n:1) rep(n:4)",
        "reg(n:1) rep(n:1)",
        "reg(n:1) rep(n:3, n:5)",
        "reg(n:1^)",
        "reg(,)",
        "reg(n:99999999999)",
        "rep(m:3, n:3, k:3, i:3, j:3)",
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t at = 0;
        const char *error = NULL;
        cr_expect_null(
            layout_parse(table, cases[i], strlen(cases[i]), &at, axis_find, NULL, &error), "%s",
            cases[i]);
        cr_expect_not_null(error, "%s", cases[i]);
        cr_expect_leq(at, strlen(cases[i]));
    }
    size_t at = 0;
    const char *error = NULL;
    layout_parse(table, "reg(x:1)", 8, &at, axis_find, NULL, &error);
    cr_expect_eq(at, 4u);
    cr_expect_str_eq(error, "unknown axis in layout");
}

Test(layout_text, short_buffer) {
    char buffer[8];
    const Layout *l = of_text(table, "reg(n:1, n:2) lane(n:4)");
    size_t n = layout_print(l, buffer, sizeof buffer, axis_name, NULL);
    cr_expect_eq(n, strlen("reg(n:1, n:2) lane(n:4)"));
    cr_expect_str_eq(buffer, "reg(n:1");
    cr_expect_eq(layout_print(l, NULL, 0, axis_name, NULL), n);
}

// Any text is refused or reads back; nothing is read out of bounds.
Test(layout_text, mutations) {
    static const char start[] = "reg(n:1, m:2^n:4) lane(n:2, 0) warp(m:1) rep(n:11)";
    static const char letters[] = "reglanwpoffcta()(),:^0123456789nmkx ";
    uint32_t state = 1;
    for (unsigned i = 0; i < 4000; i++) {
        char text[sizeof start];
        memcpy(text, start, sizeof text);
        for (unsigned edits = 0; edits < 1 + i % 4; edits++) {
            state = state * 1664525u + 1013904223u;
            text[(state >> 8) % (sizeof start - 1)] = letters[(state >> 20) % (sizeof letters - 1)];
        }
        size_t length = (state >> 4) % 3 == 0 ? (state >> 12) % sizeof start : sizeof start - 1;
        char *exact = malloc(length == 0 ? 1 : length); // no final 0
        memcpy(exact, text, length);
        size_t at = 0;
        const char *error = NULL;
        const Layout *l = layout_parse(table, exact, length, &at, axis_find, NULL, &error);
        cr_assert((l == NULL) == (error != NULL));
        cr_assert_leq(at, length);
        if (l != NULL) {
            char buffer[256];
            layout_print(l, buffer, sizeof buffer, axis_name, NULL);
            cr_assert_eq(of_text(table, buffer), l);
        }
        free(exact);
    }
}

// Shared by the layout tests: axis names, text to layout and back, brute-force walks.
#ifndef FUSE_TESTS_LAYOUT_SUPPORT_H
#define FUSE_TESTS_LAYOUT_SUPPORT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ir/layout.h"

enum { M, N, K, I, J, D, U, V, C, AXIS_COUNT };

static inline const char *axis_name(void *context, uint16_t axis) {
    static const char *const names[AXIS_COUNT] = {"m", "n", "k", "i", "j", "d", "u", "v", "c"};
    (void)context;
    return axis < AXIS_COUNT ? names[axis] : "?";
}

static inline bool axis_find(void *context, const char *name, size_t length, uint16_t *axis) {
    for (uint16_t a = 0; a < AXIS_COUNT; a++) {
        if (length == 1 && axis_name(context, a)[0] == name[0]) {
            *axis = a;
            return true;
        }
    }
    return false;
}

// The layout of a text that must be right.
static inline const Layout *of_text(LayoutTable *table, const char *text) {
    size_t at = 0;
    const char *error = NULL;
    const Layout *l = layout_parse(table, text, strlen(text), &at, axis_find, NULL, &error);
    cr_assert_not_null(l, "%s at %zu of %s", error, at, text);
    cr_assert_eq(at, strlen(text), "rest not read: %s", text + at);
    return l;
}

static inline void expect_text(LayoutTable *table, const Layout *l, const char *text) {
    char buffer[1024];
    cr_assert_not_null(l, "no layout for %s", text);
    size_t n = layout_print(l, buffer, sizeof buffer, axis_name, NULL);
    cr_assert_lt(n, sizeof buffer);
    cr_expect_str_eq(buffer, text);
    cr_expect_eq(of_text(table, buffer), l, "does not read back: %s", buffer);
}

// Calls nothing: steps `in` through all inputs of l; false at the end.
static inline bool next_input(const Layout *l, bool buffer, uint32_t in[IN_DIMS]) {
    for (unsigned d = 0; d < IN_DIMS; d++) {
        uint32_t reps = (buffer ? d == IN_OFF : d == IN_REG) ? layout_reps(l) : 1;
        if (++in[d] < reps << l->nin[d]) {
            return true;
        }
        in[d] = 0;
    }
    return false;
}

// Position of an element in row-major order over the layout's axes.
static inline uint32_t element_index(const Layout *l, const uint32_t coord[AXES_MAX]) {
    uint32_t index = 0;
    for (unsigned i = 0; i < l->naxes; i++) {
        uint32_t size = layout_size(l, l->axis[i]);
        cr_assert_lt(coord[i], size);
        index = index * size + coord[i];
    }
    return index;
}

// Every element is held, all equally often.
static inline void expect_cover(const Layout *l, bool buffer) {
    cr_assert_not_null(l);
    uint32_t in[IN_DIMS] = {0}, coord[AXES_MAX], n = layout_elements(l), inputs = 0;
    uint32_t *count = calloc(n, sizeof *count);
    do {
        layout_apply(l, in, coord);
        count[element_index(l, coord)]++;
        inputs++;
    } while (next_input(l, buffer, in));
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(count[i], inputs / n, "element %u held %u times of %u", i, count[i],
                     inputs / n);
    }
    free(count);
}

// C makes src look like dst, at every input of dst.
static inline void expect_convert(const Layout *src, const Layout *dst, bool dst_buffer) {
    LayoutMap map;
    cr_assert(layout_convert(src, dst, &map));
    uint32_t in[IN_DIMS] = {0}, from[IN_DIMS], want[AXES_MAX], got[AXES_MAX];
    do {
        layout_apply(dst, in, want);
        layout_map_apply(&map, in, from);
        layout_apply(src, from, got);
        for (unsigned i = 0; i < dst->naxes; i++) {
            cr_assert_eq(got[i], want[i]);
        }
    } while (next_input(dst, dst_buffer, in));
}

#endif

// Slices, broadcasts, products, conversions: against brute force over all inputs.
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

TestSuite(layout_ops, .init = setup, .fini = teardown);

static const char *const acc_text = "reg(n:1, m:8, n:8, n:16, n:32, n:64, n:128) "
                                    "lane(n:2, n:4, m:1, m:2, m:4) warp(m:16, m:32, m:64)";

Test(layout_ops, slice) {
    const Layout *acc = of_text(table, acc_text);
    expect_text(table, layout_slice(table, acc, M),
                "reg(n:1, n:8, n:16, n:32, n:64, n:128) lane(n:2, n:4, 0, 0, 0) warp(0, 0, 0)");
    expect_text(table, layout_slice(table, acc, N),
                "reg(m:8) lane(0, 0, m:1, m:2, m:4) warp(m:16, m:32, m:64)");
    cr_expect_eq(layout_slice(table, layout_slice(table, acc, N), M),
                 layout_uniform(table, NULL, 0, 32, 8));
    cr_expect_eq(layout_slice(table, acc, K), acc);
    // Registers that only repeat others go, whatever their column.
    expect_text(table,
                layout_slice(table, of_text(table, "reg(n:1^m:1, n:1, n:2^m:2, m:2) lane(n:4)"), M),
                "reg(n:1, n:2) lane(n:4)");
}

// The first elements are where they were, under the new name; missing ones go on top.
Test(layout_ops, first) {
    const Layout *l = of_text(table, "reg(n:1, m:1, n:16) lane(n:2, n:4, n:8) warp(m:2)");
    expect_text(table, layout_first(table, l, N, K, 4), "reg(k:1, m:1) lane(k:2, 0, 0) warp(m:2)");
    expect_text(table, layout_first(table, l, N, K, 1), "reg(m:1) lane(0, 0, 0) warp(m:2)");
    expect_text(table, layout_first(table, l, N, K, 128),
                "reg(k:1, m:1, k:16, k:32, k:64) lane(k:2, k:4, k:8) warp(m:2)");
    expect_text(table, layout_first(table, of_text(table, "reg(m:1) lane(m:2)"), N, K, 4),
                "reg(m:1, k:1, k:2) lane(m:2)");
}

// Odd factors become bits, the first factor's below the second's; all else stays.
Test(layout_ops, round_up) {
    const Layout *odd = of_text(table, "reg(n:1, m:8) lane(n:2, m:1, m:2, m:4) rep(m:5, n:3)");
    const Layout *even = layout_round_up(table, odd);
    expect_text(table, even, "reg(n:1, m:8, m:16, m:32, m:64, n:4, n:8) lane(n:2, m:1, m:2, m:4)");
    cr_expect_eq(layout_round_up(table, even), even);
    unsigned found = 0;
    for (uint32_t r = 0; r < layout_registers(even); r++) {
        uint32_t in[IN_DIMS] = {[IN_REG] = r};
        uint32_t m = layout_coord(even, in, M), n = layout_coord(even, in, N);
        int from = layout_rounded_register(odd, r);
        cr_assert_eq(from >= 0, m < 80 && n < 12, "register %u", r);
        if (from < 0)
            continue;
        found++;
        in[IN_REG] = (uint32_t)from;
        cr_assert_eq(layout_coord(odd, in, M), m);
        cr_assert_eq(layout_coord(odd, in, N), n);
    }
    cr_expect_eq(found, layout_registers(odd));
    expect_text(table, layout_round_up(table, of_text(table, "reg(n:1) rep(m:7)")),
                "reg(n:1, m:1, m:2, m:4)");
}

Test(layout_ops, is_slice) {
    const Layout *acc = of_text(table, acc_text);
    cr_expect(layout_is_slice(acc, layout_slice(table, acc, M)));
    cr_expect(layout_is_slice(acc, acc));
    cr_expect(layout_is_slice(acc, layout_uniform(table, NULL, 0, 32, 8)));
    cr_expect(
        layout_is_slice(
            acc, of_text(table, "reg(n:8, n:1, n:16, n:32, n:64, n:128) lane(n:2, n:4, 0, 0, 0) "
                                "warp(0, 0, 0)")),
        "the order of registers is free");
    cr_expect_not(layout_is_slice(
        acc, of_text(table, "reg(n:2, n:8, n:16, n:32, n:64, n:128) lane(n:1, n:4, 0, 0, 0) "
                            "warp(0, 0, 0)")));
    cr_expect_not(
        layout_is_slice(acc, of_text(table, "reg(k:1) lane(0, 0, 0, 0, 0) warp(0, 0, 0)")));
    cr_expect_not(layout_is_slice(
        acc, of_text(table, "reg(n:1, n:8, n:16, n:32, n:64, n:128) lane(n:2, n:4, 0, 0, 0)")));
}

// The operand's register holds the element that the result's register needs, in every thread.
static void expect_broadcast(const Layout *full, const Layout *part) {
    cr_assert(layout_is_slice(full, part));
    uint32_t in[IN_DIMS] = {0};
    do {
        uint32_t from[IN_DIMS];
        memcpy(from, in, sizeof from);
        from[IN_REG] = layout_slice_register(full, part, in[IN_REG]);
        cr_assert_lt(from[IN_REG], layout_registers(part));
        for (unsigned i = 0; i < part->naxes; i++) {
            cr_assert_eq(layout_coord(full, in, part->axis[i]),
                         layout_coord(part, from, part->axis[i]));
        }
    } while (next_input(full, false, in));
}

Test(layout_ops, broadcast) {
    const Layout *acc = of_text(table, acc_text);
    expect_broadcast(acc, layout_slice(table, acc, M));
    expect_broadcast(acc, layout_slice(table, acc, N));
    const Layout *odd = of_text(table, "reg(n:1, m:8, n:8) lane(n:2, n:4, m:1, m:2, m:4) "
                                       "rep(m:3, n:11)");
    expect_broadcast(odd, layout_slice(table, odd, M));
    expect_broadcast(odd, layout_slice(table, odd, N));
    expect_broadcast(odd, odd);
    expect_broadcast(odd, of_text(table, "reg(n:8, n:1) lane(n:2, n:4, 0, 0, 0) rep(n:11)"));
}

Test(layout_ops, expand_restrict_rename_product) {
    const Layout *row = of_text(table, "reg(m:8) lane(0, 0, m:1, m:2, m:4) rep(m:3)");
    const AxisSize add[] = {{N, 12}};
    const Layout *wide = layout_expand(table, row, add, 1);
    expect_text(table, wide, "reg(m:8, n:1, n:2) lane(0, 0, m:1, m:2, m:4) rep(m:3, n:3)");
    cr_expect_eq(layout_slice(table, wide, N), row);
    expect_text(table, layout_restrict(table, wide, M, 3),
                "reg(n:1, n:2) lane(0, 0, m:1, m:2, m:4) rep(n:3)");
    expect_text(table, layout_restrict(table, wide, M, 1),
                "reg(n:1, n:2) lane(0, 0, m:1, 0, 0) rep(n:3)");
    expect_text(table, layout_restrict(table, wide, M, 0),
                "reg(n:1, n:2) lane(0, 0, 0, 0, 0) rep(n:3)");
    cr_expect_eq(layout_restrict(table, row, M, 4),
                 of_text(table, "reg(m:8) lane(0, 0, m:1, m:2, m:4)"));
    expect_text(table, layout_rename(table, wide, M, U),
                "reg(u:8, n:1, n:2) lane(0, 0, u:1, u:2, u:4) rep(n:3, u:3)");
    cr_expect_null(layout_rename(table, wide, M, N));
    expect_text(table,
                layout_product(table, of_text(table, "reg(m:1) lane(n:1, m:2)"),
                               of_text(table, "reg(n:1) warp(m:1^n:1) rep(m:3)")),
                "reg(m:1, n:2) lane(n:1, m:2) warp(n:2^m:4) rep(m:3)");
    cr_expect_null(layout_product(table, row, row), "digits are outermost");
}

Test(layout_ops, run) {
    uint8_t bits[LAYOUT_BITS_MAX];
    const Layout *l = of_text(table, "reg(n:2, m:1, n:1, n:4) lane(n:8, m:2)");
    cr_expect_eq(layout_run(l, N, bits), 3u);
    cr_expect(bits[0] == 2 && bits[1] == 0 && bits[2] == 3);
    cr_expect_eq(layout_run(l, M, NULL), 1u);
    cr_expect_eq(layout_run(l, K, NULL), 0u);
    cr_expect_eq(layout_run(of_text(table, "reg(n:1, n:2) lane(m:1^n:2)"), N, NULL), 1u,
                 "a lane that moves inside the run breaks it");
    cr_expect_eq(layout_free_bits(of_text(table, "reg(n:1) lane(0, n:2, 0) warp(0)"), IN_LANE), 5u);
}

Test(layout_ops, axis_inputs) {
    const Layout *acc = of_text(table, acc_text);
    const uint16_t n[] = {N}, both[] = {M, N};
    uint32_t mixed;
    cr_expect_eq(layout_axis_inputs(acc, IN_REG, n, 1, &mixed), 0x7du);
    cr_expect_eq(layout_axis_inputs(acc, IN_LANE, n, 1, &mixed), 3u);
    cr_expect_eq(layout_axis_inputs(acc, IN_WARP, n, 1, &mixed), 0u);
    cr_expect_eq(layout_axis_inputs(acc, IN_WARP, both, 2, &mixed), 7u);
    const Layout *skew = of_text(table, "lane(n:1^m:1, n:1)");
    cr_expect_eq(layout_axis_inputs(skew, IN_LANE, n, 1, &mixed), 3u);
    cr_expect_eq(mixed, 1u);
    cr_expect_eq(layout_axis_inputs(skew, IN_LANE, both, 2, &mixed), 3u);
    cr_expect_eq(mixed, 0u);
}

static ConvertClass class_of(const char *src, const char *dst) {
    LayoutMap map;
    const Layout *a = of_text(table, src), *b = of_text(table, dst);
    expect_convert(a, b, false);
    cr_assert(layout_convert(a, b, &map));
    return layout_map_class(&map);
}

Test(layout_ops, convert_class) {
    cr_expect_eq(class_of(acc_text, acc_text), CONVERT_NOTHING);
    cr_expect_eq(class_of("reg(n:1) lane(0, n:2, 0) warp(0)", "reg(n:1) lane(0, n:2, 0) warp(0)"),
                 CONVERT_NOTHING);
    cr_expect_eq(class_of("reg(n:1, m:1) lane(n:2)", "reg(m:1, n:1) lane(n:2)"), CONVERT_REGISTERS);
    cr_expect_eq(class_of("reg(n:1, m:1) lane(n:2, 0)", "reg(n:1) lane(n:2, m:1)"),
                 CONVERT_SELECTS);
    cr_expect_eq(class_of("reg(n:1) lane(n:2)", "reg(n:2) lane(n:1)"), CONVERT_LANES);
    cr_expect_eq(class_of("reg(n:1) lane(n:2)", "reg(n:1, n:2) lane(0)"), CONVERT_LANES);
    cr_expect_eq(class_of("reg(n:1) lane(n:2) warp(n:4)", "reg(n:1) lane(n:4) warp(n:2)"),
                 CONVERT_WARPS);
    cr_expect_eq(class_of("reg(n:1) warp(n:2) cta(n:4)", "reg(n:1) warp(n:4) cta(n:2)"),
                 CONVERT_CTA);
    cr_expect_eq(class_of("reg(n:1) lane(n:2) rep(m:3, n:5)", "reg(n:1) lane(n:2) rep(m:3, n:5)"),
                 CONVERT_NOTHING);
    LayoutMap map;
    cr_expect_not(
        layout_convert(of_text(table, "reg(n:1)"), of_text(table, "reg(n:1, n:2)"), &map));
    cr_expect_not(
        layout_convert(of_text(table, "reg(n:1) rep(n:3)"), of_text(table, "reg(n:1)"), &map));
}

// Registers by the choice are those of the map.
static void expect_choice(const Layout *src, const Layout *dst) {
    LayoutMap map;
    cr_assert(layout_convert(src, dst, &map));
    LayoutChoice choice = layout_map_choice(&map);
    uint32_t in[IN_DIMS] = {0}, out[IN_DIMS], only[IN_DIMS] = {0};
    do {
        layout_map_apply(&map, in, out);
        uint32_t want = out[IN_REG];
        only[IN_REG] = in[IN_REG];
        layout_map_apply(&map, only, out);
        for (unsigned i = 0; i < choice.n; i++) {
            int odd = __builtin_parity(in[IN_LANE] & choice.lanes[i]) ^
                      __builtin_parity(in[IN_WARP] & choice.warps[i]);
            out[IN_REG] ^= odd != 0 ? choice.reg[i] : 0;
        }
        cr_assert_eq(out[IN_REG], want);
    } while (next_input(dst, false, in));
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// A random layout of m:8, n:16 (7 bits) over 4 register, 3 lane, 2 warp bits that covers all.
static const Layout *random_layout(uint32_t *state, bool odd) {
    for (;;) {
        Layout l = {.naxes = 2,
                    .axis = {M, N},
                    .bits = {3, 4},
                    .nin = {[IN_REG] = 4, [IN_LANE] = 3, [IN_WARP] = 2},
                    .nrep = odd ? 1 : 0,
                    .rep = {{N, 3}}};
        for (unsigned d = 0; d < IN_CTA; d++) {
            for (unsigned b = 0; b < l.nin[d]; b++) {
                l.col[d][b] = next_random(state) % 3 == 0 ? 0 : next_random(state) & 127;
            }
        }
        const Layout *done = layout_intern(table, &l);
        if (done != NULL) {
            return done;
        }
    }
}

Test(layout_ops, convert_random) {
    uint32_t state = 7;
    const AxisSize axes[] = {{N, 48}, {M, 8}};
    const Layout *buffer = layout_shared(table, axes, 2, 16, 32);
    for (unsigned i = 0; i < 60; i++) {
        const Layout *a = random_layout(&state, true), *b = random_layout(&state, true);
        expect_cover(a, false);
        expect_convert(a, b, false);
        expect_convert(buffer, a, false);
        expect_convert(a, buffer, true);
        // compose: a -> buffer -> b
        LayoutMap to, from, both;
        cr_assert(layout_convert(buffer, b, &to) && layout_convert(a, buffer, &from));
        layout_map_compose(&from, &to, &both);
        uint32_t in[IN_DIMS] = {0}, got[IN_DIMS], want[IN_DIMS];
        do {
            layout_map_apply(&to, in, want);
            layout_map_apply(&from, want, want);
            layout_map_apply(&both, in, got);
            cr_assert_eq(memcmp(got, want, sizeof got), 0);
        } while (next_input(b, false, in));
        expect_choice(a, b);
        LayoutMap self;
        cr_assert(layout_convert(a, a, &self));
        cr_assert_eq(layout_map_class(&self), CONVERT_NOTHING);
    }
}

Test(layout_ops, slice_random) {
    uint32_t state = 99;
    for (unsigned i = 0; i < 60; i++) {
        const Layout *a = random_layout(&state, i % 2 == 0);
        expect_broadcast(a, layout_slice(table, a, M));
        expect_broadcast(a, layout_slice(table, a, N));
        expect_cover(layout_slice(table, a, N), false);
    }
}

Test(layout_ops, locate_random) {
    uint32_t state = 3;
    for (unsigned i = 0; i < 40; i++) {
        const Layout *a = random_layout(&state, i % 2 == 0);
        uint32_t in[IN_DIMS], coord[AXES_MAX], got[AXES_MAX];
        for (coord[0] = 0; coord[0] < layout_size(a, M); coord[0]++) {
            for (coord[1] = 0; coord[1] < layout_size(a, N); coord[1]++) {
                layout_locate(a, coord, in);
                layout_apply(a, in, got);
                cr_assert(got[0] == coord[0] && got[1] == coord[1]);
            }
        }
    }
}

Test(layout_ops, swizzle_random) {
    uint32_t state = 5;
    const AxisSize axes[] = {{N, 16}, {M, 8}};
    const Layout *plain = layout_shared_linear(table, axes, 2);
    for (unsigned i = 0; i < 40; i++) {
        const Layout *a = random_layout(&state, false), *b = random_layout(&state, false);
        const Layout *best = layout_swizzle_best(table, a, b, 8u << i % 4);
        expect_cover(best, true);
        expect_convert(best, b, false);
        unsigned bits = 8u << i % 4;
        cr_expect_leq(layout_wavefronts(a, best, bits) + layout_wavefronts(b, best, bits),
                      layout_wavefronts(a, plain, bits) + layout_wavefronts(b, plain, bits));
    }
}

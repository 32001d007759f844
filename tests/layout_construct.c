// Constructors: the exact layouts of known fragments and swizzles, and brute-force coverage.
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

TestSuite(layout_construct, .init = setup, .fini = teardown);

#define AXES(...)                                                                                  \
    (const AxisSize[]){__VA_ARGS__}, sizeof((const AxisSize[]){__VA_ARGS__}) / sizeof(AxisSize)

Test(layout_construct, interning) {
    const Layout *a = layout_blocked(table, AXES({N, 64}, {M, 8}), 4, 32, 2);
    for (uint32_t size = 2; size <= 256; size++) { // grows the table
        cr_assert_not_null(layout_blocked(table, AXES({N, size}, {M, 8}), 4, 32, 2));
    }
    cr_expect_eq(a, layout_blocked(table, AXES({N, 64}, {M, 8}), 4, 32, 2));
    cr_expect_neq(a, layout_blocked(table, AXES({M, 8}, {N, 64}), 4, 32, 2));
    cr_expect_eq(a, layout_blocked(table, AXES({K, 1}, {N, 64}, {M, 8}), 4, 32, 2),
                 "axes of size 1 are left out");
    Layout draft = *a;
    draft.col[IN_LANE][0] = 0;
    cr_expect_null(layout_intern(table, &draft), "an element without a place");
}

Test(layout_construct, blocked) {
    expect_text(table, layout_blocked(table, AXES({N, 256}, {M, 4}), 4, 32, 4),
                "reg(n:1, n:2, m:2) lane(n:4, n:8, n:16, n:32, n:64) warp(n:128, m:1)");
    expect_text(table, layout_blocked(table, AXES({N, 64}), 4, 32, 4),
                "reg(n:1, n:2) lane(n:4, n:8, n:16, n:32, 0) warp(0, 0)");
    expect_text(table, layout_blocked(table, AXES({N, 2}, {M, 64}), 4, 32, 1),
                "reg(n:1, m:32) lane(m:1, m:2, m:4, m:8, m:16)");
    expect_text(table, layout_blocked(table, AXES({N, 176}), 4, 32, 1),
                "reg(n:1, n:2) lane(n:4, n:8, 0, 0, 0) rep(n:11)");
    expect_text(table, layout_blocked_lane_first(table, AXES({N, 64}, {M, 2}), 8, 1),
                "reg(n:8, n:16, n:32, m:1) lane(n:1, n:2, n:4)");
    expect_text(table, layout_uniform(table, AXES({N, 4}), 32, 2),
                "reg(n:1, n:2) lane(0, 0, 0, 0, 0) warp(0)");
    cr_expect_null(layout_blocked(table, AXES({N, 64}), 3, 32, 4));
    cr_expect_null(layout_blocked(table, AXES({N, 64}, {N, 2}), 4, 32, 4));
    cr_expect_null(layout_blocked(table, AXES({N, 0}), 4, 32, 4));
    cr_expect_null(layout_blocked(table, AXES({N, 1u << 30}, {M, 64}), 4, 32, 4));
}

Test(layout_construct, blocked_covers) {
    static const uint32_t sizes[] = {1, 2, 3, 24, 64};
    for (unsigned a = 0; a < 5; a++) {
        for (unsigned b = 0; b < 5; b++) {
            expect_cover(
                layout_blocked(table, AXES({N, sizes[a]}, {M, sizes[b]}, {K, 2}), 4, 32, 4), false);
            expect_cover(layout_blocked_lane_first(table, AXES({N, sizes[a]}, {M, sizes[b]}), 8, 1),
                         false);
            expect_cover(layout_uniform(table, AXES({N, sizes[a]}, {M, sizes[b]}), 32, 2), false);
            expect_cover(layout_shared_linear(table, AXES({N, sizes[a]}, {M, sizes[b]})), true);
        }
    }
}

static const AxisSize m128[] = {{M, 128}}, n128[] = {{N, 128}}, k32[] = {{K, 32}};
static const DotTile tile_2x2 = {.rows = m128,
                                 .cols = n128,
                                 .ks = k32,
                                 .nrows = 1,
                                 .ncols = 1,
                                 .nks = 1,
                                 .warps_rows = 2,
                                 .warps_cols = 2};

Test(layout_construct, mma_m16n8k16) {
    expect_text(table, layout_mma_a(table, MMA_M16N8K16, &tile_2x2),
                "reg(k:1, m:8, k:8, k:16, m:16, m:32) lane(k:2, k:4, m:1, m:2, m:4) warp(m:64, 0)");
    expect_text(table, layout_mma_b(table, MMA_M16N8K16, &tile_2x2),
                "reg(k:1, k:8, k:16, n:8, n:16, n:32) lane(k:2, k:4, n:1, n:2, n:4) warp(0, n:64)");
    expect_text(table, layout_mma_c(table, MMA_M16N8K16, &tile_2x2),
                "reg(n:1, m:8, n:8, n:16, n:32, m:16, m:32) lane(n:2, n:4, m:1, m:2, m:4) "
                "warp(m:64, n:64)");
}

Test(layout_construct, mma_units) {
    static const AxisSize m16[] = {{M, 16}}, n8[] = {{N, 8}}, k8[] = {{K, 8}}, kk[] = {{K, 32}};
    DotTile tile = {.rows = m16,
                    .cols = n8,
                    .ks = k8,
                    .nrows = 1,
                    .ncols = 1,
                    .nks = 1,
                    .warps_rows = 1,
                    .warps_cols = 1};
    expect_text(table, layout_mma_a(table, MMA_M16N8K8, &tile),
                "reg(k:1, m:8) lane(k:2, k:4, m:1, m:2, m:4)");
    expect_text(table, layout_mma_b(table, MMA_M16N8K8, &tile),
                "reg(k:1) lane(k:2, k:4, n:1, n:2, n:4)");
    expect_text(table, layout_mma_a(table, MMA_M16N8K8_TF32, &tile),
                "reg(m:8, k:4) lane(k:1, k:2, m:1, m:2, m:4)");
    expect_text(table, layout_mma_b(table, MMA_M16N8K8_TF32, &tile),
                "reg(k:4) lane(k:1, k:2, n:1, n:2, n:4)");
    expect_text(table, layout_mma_c(table, MMA_M16N8K8_TF32, &tile),
                "reg(n:1, m:8) lane(n:2, n:4, m:1, m:2, m:4)");
    cr_expect_null(layout_mma_a(table, MMA_M16N8K16, &tile), "k too small");
    tile.ks = kk;
    expect_text(table, layout_mma_a(table, MMA_M16N8K32, &tile),
                "reg(k:1, k:2, m:8, k:16) lane(k:4, k:8, m:1, m:2, m:4)");
    expect_text(table, layout_mma_b(table, MMA_M16N8K32, &tile),
                "reg(k:1, k:2, k:16) lane(k:4, k:8, n:1, n:2, n:4)");
    tile.warps_rows = 4; // more warps than rows: copies
    expect_text(table, layout_mma_c(table, MMA_M16N8K32, &tile),
                "reg(n:1, m:8) lane(n:2, n:4, m:1, m:2, m:4) warp(0, 0)");
}

// rows = [j, v, i, u] of a convolution with its pool inside the accumulator.
Test(layout_construct, mma_many_axes) {
    static const AxisSize rows[] = {{J, 2}, {V, 4}, {I, 2}, {U, 8}}, cols[] = {{K, 64}},
                          ks[] = {{C, 32}};
    DotTile tile = {.rows = rows,
                    .cols = cols,
                    .ks = ks,
                    .nrows = 4,
                    .ncols = 1,
                    .nks = 1,
                    .warps_rows = 8,
                    .warps_cols = 1};
    expect_text(table, layout_mma_c(table, MMA_M16N8K16, &tile),
                "reg(k:1, i:1, k:8, k:16, k:32) lane(k:2, k:4, j:1, v:1, v:2) warp(u:1, u:2, u:4)");
    expect_cover(layout_mma_a(table, MMA_M16N8K16, &tile), false);
}

Test(layout_construct, mma_covers) {
    static const AxisSize rows[] = {{M, 16}, {I, 6}}, cols[] = {{N, 48}}, ks[] = {{K, 32}},
                          batch[] = {{D, 2}};
    static const MmaUnit units[] = {MMA_M16N8K16, MMA_M16N8K8, MMA_M16N8K8_TF32, MMA_M16N8K32};
    for (unsigned u = 0; u < 4; u++) {
        for (uint32_t w = 1; w <= 4; w *= 2) {
            DotTile tile = {.rows = rows,
                            .cols = cols,
                            .ks = ks,
                            .batch = batch,
                            .nrows = 2,
                            .ncols = 1,
                            .nks = 1,
                            .nbatch = 1,
                            .warps_rows = w,
                            .warps_cols = 4 / w};
            expect_cover(layout_mma_a(table, units[u], &tile), false);
            expect_cover(layout_mma_b(table, units[u], &tile), false);
            expect_cover(layout_mma_c(table, units[u], &tile), false);
        }
    }
}

Test(layout_construct, wgmma) {
    static const AxisSize n256[] = {{N, 256}}, n176[] = {{N, 176}}, k64[] = {{K, 64}};
    DotTile tile = {.rows = m128,
                    .cols = n256,
                    .ks = k64,
                    .nrows = 1,
                    .ncols = 1,
                    .nks = 1,
                    .warps_rows = 2,
                    .warps_cols = 1};
    expect_text(table, layout_wgmma_d(table, &tile),
                "reg(n:1, m:8, n:8, n:16, n:32, n:64, n:128) lane(n:2, n:4, m:1, m:2, m:4) "
                "warp(m:16, m:32, m:64)");
    expect_text(table, layout_wgmma_a(table, &tile, 16),
                "reg(k:1, m:8, k:8, k:16, k:32) lane(k:2, k:4, m:1, m:2, m:4) "
                "warp(m:16, m:32, m:64)");
    expect_text(table, layout_wgmma_a(table, &tile, 8),
                "reg(k:1, k:2, m:8, k:16, k:32) lane(k:4, k:8, m:1, m:2, m:4) "
                "warp(m:16, m:32, m:64)");
    cr_expect_null(layout_wgmma_a(table, &tile, 64), "elements wider than a register");
    tile.cols = n176;
    expect_text(table, layout_wgmma_d(table, &tile),
                "reg(n:1, m:8, n:8) lane(n:2, n:4, m:1, m:2, m:4) warp(m:16, m:32, m:64) "
                "rep(n:11)");
    cr_expect_eq(layout_registers(layout_wgmma_d(table, &tile)), 88u);
    expect_cover(layout_wgmma_d(table, &tile), false);
    // Register r of the unit's result is column 8 * (r / 4) + ..., also across the odd factor.
    uint32_t in[IN_DIMS] = {0};
    for (in[IN_REG] = 0; in[IN_REG] < 88; in[IN_REG]++) {
        uint32_t r = in[IN_REG];
        cr_expect_eq(layout_coord(layout_wgmma_d(table, &tile), in, N), r / 4 * 8 + r % 2);
        cr_expect_eq(layout_coord(layout_wgmma_d(table, &tile), in, M), r / 2 % 2 * 8);
    }
}

// The result of S = Q K, with j for k, is the A operand of P V.
Test(layout_construct, wgmma_result_is_operand) {
    static const AxisSize rows[] = {{I, 128}}, j[] = {{J, 128}}, d[] = {{D, 128}};
    DotTile s = {.rows = rows,
                 .cols = j,
                 .ks = d,
                 .nrows = 1,
                 .ncols = 1,
                 .nks = 1,
                 .warps_rows = 2,
                 .warps_cols = 1};
    DotTile pv = s;
    pv.cols = d;
    pv.ks = j;
    cr_expect_eq(layout_wgmma_d(table, &s), layout_wgmma_a(table, &pv, 16));
    cr_expect_eq(layout_rename(table, layout_wgmma_d(table, &s), J, D), layout_wgmma_d(table, &pv));
}

Test(layout_construct, fma) {
    static const AxisSize m16[] = {{M, 16}}, n64[] = {{N, 64}}, k4[] = {{K, 4}}, m6[] = {{M, 6}};
    DotTile tile = {.rows = m16,
                    .cols = n64,
                    .ks = k4,
                    .nrows = 1,
                    .ncols = 1,
                    .nks = 1,
                    .warps_rows = 1,
                    .warps_cols = 1};
    FmaSplit split = {.tm = 4, .tn = 4, .lanes_rows = 2, .lanes_cols = 16};
    const Layout *c = layout_fma_c(table, &split, &tile);
    expect_text(table, c, "reg(n:1, n:2, m:1, m:2, m:8) lane(n:4, n:8, n:16, n:32, m:4)");
    expect_text(table, layout_fma_a(table, c, &tile),
                "reg(k:1, k:2, m:1, m:2, m:8) lane(0, 0, 0, 0, m:4)");
    expect_text(table, layout_fma_b(table, c, &tile),
                "reg(k:1, k:2, n:1, n:2) lane(n:4, n:8, n:16, n:32, 0)");
    tile.rows = m6;
    split = (FmaSplit){.tm = 2, .tn = 2, .lanes_rows = 1, .lanes_cols = 8, .lane_first = true};
    c = layout_fma_c(table, &split, &tile);
    expect_text(table, c, "reg(n:8, m:1, n:16, n:32) lane(n:1, n:2, n:4) rep(m:3)");
    expect_text(table, layout_fma_a(table, c, &tile), "reg(k:1, k:2, m:1) lane(0, 0, 0) rep(m:3)");
    expect_cover(c, false);
    expect_cover(layout_fma_a(table, c, &tile), false);
    expect_cover(layout_fma_b(table, c, &tile), false);
}

Test(layout_construct, shared) {
    expect_text(table, layout_shared(table, AXES({K, 32}, {M, 128}), 16, 64),
                "off(k:1, k:2, k:4, k:8, k:16, m:1, m:2^k:8, m:4^k:16, m:8, m:16, m:32, m:64)");
    cr_expect_eq(layout_shared(table, AXES({K, 32}, {M, 128}), 16, 128),
                 layout_shared(table, AXES({K, 32}, {M, 128}), 16, 64), "cut to the row");
    expect_text(table, layout_shared(table, AXES({N, 128}, {K, 32}), 16, 128),
                "off(n:1, n:2, n:4, n:8, n:16, n:32, n:64, k:1^n:8, k:2^n:16, k:4^n:32, k:8, "
                "k:16)");
    expect_text(table, layout_shared_box(table, AXES({K, 64}, {M, 128}), 16, 128),
                "off(k:1, k:2, k:4, k:8, k:16, k:32, m:1^k:8, m:2^k:16, m:4^k:32, m:8, m:16, "
                "m:32, m:64)");
    expect_text(table, layout_shared_box(table, AXES({N, 256}, {K, 64}), 16, 128),
                "off(n:1, n:2, n:4, n:8, n:16, n:32, k:1^n:8, k:2^n:16, k:4^n:32, k:8, k:16, "
                "k:32, n:64, n:128)");
    expect_text(table, layout_shared_box(table, AXES({N, 256}, {M, 128}), 16, 128),
                "off(n:1, n:2, n:4, n:8, n:16, n:32, m:1^n:8, m:2^n:16, m:4^n:32, m:8, m:16, "
                "m:32, m:64, n:64, n:128)");
    expect_text(table, layout_shared_box(table, AXES({D, 128}, {J, 128}), 16, 128),
                "off(d:1, d:2, d:4, d:8, d:16, d:32, j:1^d:8, j:2^d:16, j:4^d:32, j:8, j:16, "
                "j:32, j:64, d:64)");
    expect_text(table,
                layout_shared_box(table, AXES({C, 32}, {J, 2}, {V, 4}, {I, 2}, {U, 8}), 16, 64),
                "off(c:1, c:2, c:4, c:8, c:16, j:1, v:1^c:8, v:2^c:16, i:1, u:1, u:2, u:4)");
    cr_expect_null(layout_shared(table, AXES({K, 32}, {M, 128}), 16, 48));
    cr_expect_null(layout_shared(table, AXES({K, 32}, {M, 128}), 16, 256));
}

Test(layout_construct, shared_covers) {
    static const uint32_t sizes[] = {1, 3, 8, 48, 64};
    static const unsigned swizzles[] = {0, 32, 64, 128};
    for (unsigned e = 4; e <= 64; e *= 2) {
        for (unsigned a = 0; a < 5; a++) {
            for (unsigned b = 0; b < 5; b++) {
                for (unsigned s = 0; s < 4; s++) {
                    expect_cover(
                        layout_shared(table, AXES({K, sizes[a]}, {M, sizes[b]}), e, swizzles[s]),
                        true);
                    expect_cover(layout_shared_box(table, AXES({K, sizes[a]}, {M, sizes[b]}), e,
                                                   swizzles[s]),
                                 true);
                }
            }
        }
    }
}

Test(layout_construct, box_of) {
    static const AxisSize forms[][3] = {
        {{K, 64}, {M, 128}, {D, 1}}, {{N, 256}, {K, 64}, {D, 1}}, {{C, 32}, {V, 8}, {U, 4}},
        {{K, 64}, {M, 176}, {D, 1}}, {{K, 16}, {M, 8}, {D, 3}},
    };
    static const unsigned swizzles[] = {128, 64, 32, 0};
    LayoutBox box;
    for (unsigned f = 0; f < 5; f++) {
        for (unsigned s = 0; s < 4; s++) {
            const Layout *l = layout_shared_box(table, forms[f], 3, 16, swizzles[s]);
            cr_assert(layout_box_of(table, l, 16, &box));
            cr_expect_eq(layout_shared_box(table, box.axes, box.naxes, 16, box.swizzle), l);
            cr_expect_leq(box.swizzle, swizzles[s]);
        }
    }
    cr_assert(layout_box_of(table, layout_shared_box(table, forms[1], 3, 16, 128), 16, &box));
    cr_expect(box.axes[0].axis == N && box.span == 64 && box.swizzle == 128 && box.naxes == 2);
    cr_expect(box.axes[1].axis == K && box.axes[1].size == 64);
    // Rows of 256 bytes swizzled by the row are not a box.
    cr_expect_not(layout_box_of(table, layout_shared(table, forms[1], 3, 16, 128), 16, &box));
    cr_expect_not(layout_box_of(table, layout_uniform(table, NULL, 0, 32, 1), 16, &box));
    cr_expect_not(layout_box_of(table, of_text(table, "off(n:1^k:1, k:1)"), 16, &box));
}

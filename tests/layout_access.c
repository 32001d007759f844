// Registers against buffers: offsets, vectors, matrix loads, bank conflicts by brute force.
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

TestSuite(layout_access, .init = setup, .fini = teardown);

static const AxisSize km[] = {{K, 32}, {M, 128}}, nk[] = {{N, 128}, {K, 32}};
static const char *const xa = "reg(k:1, m:8, k:8, k:16, m:16, m:32) lane(k:2, k:4, m:1, m:2, m:4) "
                              "warp(m:64, 0)";
static const char *const wb = "reg(k:1, k:8, k:16, n:8, n:16, n:32) lane(k:2, k:4, n:1, n:2, n:4) "
                              "warp(0, n:64)";

Test(layout_access, offset_of) {
    static const AxisSize odd[] = {{K, 48}, {M, 24}};
    const Layout *buffers[] = {
        layout_shared(table, km, 2, 16, 64),
        layout_shared_box(table, nk, 2, 16, 128),
        layout_shared(table, odd, 2, 8, 32),
        layout_shared_linear(table, odd, 2),
    };
    for (unsigned i = 0; i < 4; i++) {
        uint32_t in[IN_DIMS] = {0}, coord[AXES_MAX];
        do {
            layout_apply(buffers[i], in, coord);
            cr_assert_eq(layout_offset_of(buffers[i], coord), in[IN_OFF]);
        } while (next_input(buffers[i], true, in));
        cr_expect_eq(layout_offsets(buffers[i]), layout_elements(buffers[i]));
    }
}

Test(layout_access, vector) {
    uint8_t bits[8];
    const Layout *as = layout_shared(table, km, 2, 16, 64);
    const Layout *rows = of_text(table, "reg(k:2, k:1, k:4, m:1, m:2) lane(k:8, k:16, m:4, m:8, "
                                        "m:16) warp(m:32, m:64)");
    cr_expect_eq(layout_vector(rows, as, 3, bits), 3u);
    cr_expect(bits[0] == 1 && bits[1] == 0 && bits[2] == 2);
    cr_expect_eq(layout_vector(rows, as, 2, NULL), 2u);
    cr_expect_eq(layout_vector(of_text(table, xa), as, 3, bits), 1u);
    cr_expect_eq(layout_vector(of_text(table, wb), layout_shared(table, nk, 2, 16, 128), 3, NULL),
                 0u);
}

Test(layout_access, matrix) {
    const Layout *as = layout_shared(table, km, 2, 16, 64);
    const Layout *bs = layout_shared(table, nk, 2, 16, 128);
    LayoutMatrix m = layout_matrix_access(of_text(table, xa), as, 16);
    cr_expect(m.ok && !m.trans);
    cr_expect(m.npair == 1 && m.pair[0] == 0 && m.nmatrix == 5 && m.matrix[0] == 1);
    m = layout_matrix_access(of_text(table, wb), bs, 16);
    cr_expect(m.ok && m.trans && m.nmatrix == 5);
    cr_expect_not(layout_matrix_access(of_text(table, wb), bs, 8).ok);
    // The same B from a K-major buffer needs no transposition.
    static const AxisSize kn[] = {{K, 32}, {N, 128}};
    m = layout_matrix_access(of_text(table, wb), layout_shared(table, kn, 2, 16, 64), 16);
    cr_expect(m.ok && !m.trans);
    // tf32: one element a register, no pair.
    const Layout *t = of_text(table, "reg(m:8, k:4) lane(k:1, k:2, m:1, m:2, m:4)");
    static const AxisSize k8m16[] = {{K, 8}, {M, 16}};
    m = layout_matrix_access(t, layout_shared(table, k8m16, 2, 32, 32), 32);
    cr_expect(m.ok && !m.trans && m.npair == 0 && m.nmatrix == 2);
    cr_expect_not(
        layout_matrix_access(of_text(table, "reg(m:8, k:4) lane(k:2, k:1, m:1, m:2, m:4)"),
                             layout_shared(table, k8m16, 2, 32, 32), 32)
            .ok);
}

// ldmatrix as the hardware does it, on the buffer's offsets: must give the fragment.
static void expect_matrix(const Layout *regs, const Layout *buffer) {
    LayoutMatrix m = layout_matrix_access(regs, buffer, 16);
    LayoutMap map;
    cr_assert(m.ok && layout_convert(buffer, regs, &map));
    for (uint32_t i = 0; i < 1u << m.nmatrix; i++) {
        uint32_t reg = 0;
        for (unsigned b = 0; b < m.nmatrix; b++) {
            reg |= (i >> b & 1) << m.matrix[b];
        }
        for (uint32_t lane = 0; lane < 32; lane++) {
            for (uint32_t half = 0; half < 2; half++) {
                // Row address: the offset of the first element of row `row`.
                uint32_t row = m.trans ? lane % 4 * 2 + half : lane / 4;
                uint32_t at[IN_DIMS] = {[IN_REG] = reg}, off[IN_DIMS];
                at[IN_REG] |= m.trans ? (row & 1) << m.pair[0] : 0;
                at[IN_LANE] = m.trans ? row >> 1 : row * 4;
                layout_map_apply(&map, at, off);
                uint32_t got = off[IN_OFF] + (m.trans ? lane / 4 : lane % 4 * 2 + half);
                uint32_t in[IN_DIMS] = {[IN_REG] = reg | half << m.pair[0], [IN_LANE] = lane};
                layout_map_apply(&map, in, off);
                cr_assert_eq(got, off[IN_OFF]);
            }
        }
    }
}

Test(layout_access, matrix_is_ldmatrix) {
    expect_matrix(of_text(table, xa), layout_shared(table, km, 2, 16, 64));
    expect_matrix(of_text(table, wb), layout_shared(table, nk, 2, 16, 128));
}

// Wavefronts of the worst group, by listing the words.
static unsigned brute_conflicts(const Layout *regs, const Layout *buffer, unsigned element_bits,
                                unsigned vector_bits) {
    LayoutMap map;
    cr_assert(layout_convert(buffer, regs, &map));
    unsigned bytes = (element_bits << vector_bits) / 8, worst = 0;
    uint32_t group = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
    uint32_t in[IN_DIMS] = {0};
    for (in[IN_REG] = 0; in[IN_REG] < layout_registers(regs); in[IN_REG]++) {
        for (uint32_t first = 0; first < 1u << regs->nin[IN_LANE]; first += group) {
            uint32_t words[32 * 4], nwords = 0;
            unsigned per_bank[32] = {0};
            for (in[IN_LANE] = first;
                 in[IN_LANE] < first + group && in[IN_LANE] < 1u << regs->nin[IN_LANE];
                 in[IN_LANE]++) {
                uint32_t off[IN_DIMS];
                layout_map_apply(&map, in, off);
                uint32_t byte = off[IN_OFF] * element_bits / 8 / bytes * bytes;
                for (uint32_t w = byte / 4; w <= (byte + bytes - 1) / 4; w++) {
                    uint32_t i = 0;
                    while (i < nwords && words[i] != w) {
                        i++;
                    }
                    if (i == nwords) {
                        words[nwords++] = w;
                        per_bank[w % 32]++;
                    }
                }
            }
            for (unsigned b = 0; b < 32; b++) {
                worst = per_bank[b] > worst ? per_bank[b] : worst;
            }
        }
    }
    return worst;
}

Test(layout_access, conflicts_known) {
    static const AxisSize f32[] = {{N, 32}, {M, 32}};
    const Layout *rows = of_text(table, "reg(m:1, m:2, m:4, m:8, m:16) lane(n:1, n:2, n:4, n:8, "
                                        "n:16)");
    const Layout *cols = of_text(table, "reg(n:1, n:2, n:4, n:8, n:16) lane(m:1, m:2, m:4, m:8, "
                                        "m:16)");
    const Layout *plain = layout_shared_linear(table, f32, 2);
    cr_expect_eq(layout_bank_conflicts(rows, plain, 32, 0), 1u);
    cr_expect_eq(layout_bank_conflicts(cols, plain, 32, 0), 32u);
    cr_expect_eq(layout_bank_conflicts(cols, plain, 32, 2), 8u);
    cr_expect_eq(layout_bank_conflicts(cols, layout_shared(table, f32, 2, 32, 128), 32, 2), 1u);
    cr_expect_eq(layout_wavefronts(rows, plain, 32), 32u);
    cr_expect_eq(layout_wavefronts(cols, plain, 32), 8u * 4 * 8);
}

Test(layout_access, conflicts_brute) {
    static const AxisSize kms[] = {{K, 32}, {M, 128}}, mks[] = {{M, 128}, {K, 32}};
    static const unsigned swizzles[] = {0, 32, 64, 128};
    const Layout *regs[] = {
        of_text(table, xa),
        layout_blocked(table, kms, 2, 4, 32, 4),
        layout_blocked(table, mks, 2, 8, 32, 4),
        layout_blocked(table, mks, 2, 1, 32, 2),
        of_text(table, "reg(k:1, k:2, m:8, k:16, m:16, m:32, m:64) lane(k:4, k:8, m:1, m:2, m:4)"),
        of_text(table, "reg(k:1, k:2, k:8, k:16, m:16, m:32, m:64) lane(k:4, 0, m:1, m:2^k:4, "
                       "m:4) warp(m:8)"),
    };
    for (unsigned r = 0; r < 6; r++) {
        for (unsigned s = 0; s < 8; s++) {
            for (unsigned e = 8; e <= 64; e *= 2) {
                const Layout *b = s < 4 ? layout_shared(table, kms, 2, e, swizzles[s])
                                        : layout_shared_box(table, mks, 2, e, swizzles[s - 4]);
                unsigned most = 0;
                while (e << (most + 1) <= 128) {
                    most++;
                }
                unsigned v = layout_vector(regs[r], b, most, NULL);
                for (unsigned i = 0; i <= v; i++) {
                    cr_assert_eq(layout_bank_conflicts(regs[r], b, e, i),
                                 brute_conflicts(regs[r], b, e, i), "regs %u buffer %u bits %u", r,
                                 s, e);
                }
            }
        }
    }
}

Test(layout_access, swizzle_best) {
    static const AxisSize big[] = {{N, 96}, {M, 64}}, gib[] = {{M, 64}, {N, 96}};
    const Layout *rows = of_text(table, "reg(m:1, m:2, m:4, m:8, m:16) lane(n:1, n:2, n:4, n:8, "
                                        "n:16)");
    const Layout *cols = of_text(table, "reg(n:1, n:2, n:4, n:8, n:16) lane(m:1, m:2, m:4, m:8, "
                                        "m:16)");
    const Layout *best = layout_swizzle_best(table, rows, cols, 32);
    expect_cover(best, true);
    cr_expect_eq(layout_wavefronts(rows, best, 32), 32u, "a transposition without conflicts");
    cr_expect_eq(layout_wavefronts(cols, best, 32), 32u);
    // Fragment to rows for a coalesced store, 16-bit.
    const Layout *acc = of_text(table, "reg(n:1, m:8, n:8, n:16) lane(n:2, n:4, m:1, m:2, m:4) "
                                       "warp(m:16, m:32) rep(n:3)");
    const Layout *out = layout_blocked(table, big, 2, 8, 32, 4);
    best = layout_swizzle_best(table, acc, out, 16);
    expect_cover(best, true);
    expect_convert(best, acc, false);
    unsigned v = layout_vector(acc, best, 3, NULL), w = layout_vector(out, best, 3, NULL);
    cr_expect_eq(layout_bank_conflicts(acc, best, 16, v), 1u);
    cr_expect_eq(layout_bank_conflicts(out, best, 16, w), 1u);
    best = layout_swizzle_best(table, acc, layout_blocked(table, gib, 2, 8, 32, 4), 32);
    expect_cover(best, true);
    // Nothing to place.
    const Layout *none = layout_uniform(table, NULL, 0, 32, 4);
    cr_expect_not_null(layout_swizzle_best(table, none, none, 32));
}

Test(layout_access, price) {
    const Layout *a = of_text(table, "reg(n:1, m:1) lane(n:2, n:4) warp(n:8)");
    LayoutPrice p = layout_convert_price(table, a, a, 32);
    cr_expect(p.class == CONVERT_NOTHING && p.cycles == 0);
    p = layout_convert_price(table, a, of_text(table, "reg(m:1, n:1) lane(n:2, n:4) warp(n:8)"),
                             32);
    cr_expect(p.class == CONVERT_REGISTERS && p.cycles == 0);
    p = layout_convert_price(table, a, of_text(table, "reg(n:1, m:1) lane(n:4, n:2) warp(n:8)"),
                             32);
    cr_expect(p.class == CONVERT_LANES && !p.shared && p.cycles == 4);
    p = layout_convert_price(table, a, of_text(table, "reg(n:1, m:1) lane(n:2, n:8) warp(n:4)"),
                             32);
    cr_expect(p.class == CONVERT_WARPS && p.shared && p.cycles > 4);
    cr_expect_eq(layout_convert_price(table, a, of_text(table, "reg(n:1)"), 32).cycles, UINT32_MAX);
    // A full 32 x 32 transposition inside a warp: 32 choices a register, shared memory wins.
    p = layout_convert_price(
        table, of_text(table, "reg(m:1, m:2, m:4, m:8, m:16) lane(n:1, n:2, n:4, n:8, n:16)"),
        of_text(table, "reg(n:1, n:2, n:4, n:8, n:16) lane(m:1, m:2, m:4, m:8, m:16)"), 32);
    cr_expect(p.class == CONVERT_LANES && p.shared);
    cr_expect_eq(p.cycles, 64u + 30);
}

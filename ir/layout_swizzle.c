// The buffer layout through which one register layout becomes another with the fewest wavefronts.
//
// Candidates are the plain and swizzled row layouts with each axis as the row, and one built for
// the pair (Zhou et al., "Linear Layouts", 2025, section 5.4): offset bits are, from the lowest,
//   V  the register columns common to both sides, up to 16 bytes: the vector;
//   B  bits that select the bank;
//   S  bits that select the line. Two lanes conflict when they differ by an element of span(V, S),
//      so S is chosen to meet neither side's lanes: directions that no lane moves along, then sums
//      a ^ b of a lane direction of src only and one of dst only, then whatever is left.
#include "ir/layout_draft.h"
#include "ir/layout_f2.h"

typedef struct Vectors {
    uint32_t v[64];
    unsigned n;
} Vectors;

static void vectors_add(Vectors *list, uint32_t v) {
    if (list->n < 64) {
        list->v[list->n++] = v;
    }
}

static unsigned log2_of(unsigned n) {
    return n == 0 ? 0 : 31u - (unsigned)__builtin_clz(n);
}

// Adds the nonzero lane columns that are served together at this vector width.
static void lanes_of(Vectors *list, const Layout *l, unsigned element, unsigned vector_bits) {
    unsigned bits = element + vector_bits, group = bits <= 5 ? 5 : bits == 6 ? 4 : 3;
    for (unsigned b = 0; b < group && b < l->nin[IN_LANE]; b++) {
        if (l->col[IN_LANE][b] != 0) {
            vectors_add(list, l->col[IN_LANE][b]);
        }
    }
}

static void span_add(F2Basis *span, const Vectors *list) {
    for (unsigned i = 0; i < list->n; i++) {
        f2_add(span, list->v[i]);
    }
}

// Register columns that both sides have, lowest register bits of dst first.
static Vectors common_registers(const Layout *src, const Layout *dst, unsigned max_bits) {
    Vectors common = {0};
    for (unsigned i = 0; i < dst->nin[IN_REG] && common.n < max_bits; i++) {
        for (unsigned j = 0; j < src->nin[IN_REG]; j++) {
            if (dst->col[IN_REG][i] == src->col[IN_REG][j]) {
                vectors_add(&common, dst->col[IN_REG][i]);
                break;
            }
        }
    }
    return common;
}

// Vectors of `of` that are independent of `base` and of each other.
static Vectors outside(const Vectors *of, const F2Basis *base) {
    F2Basis span = *base;
    Vectors out = {0};
    for (unsigned i = 0; i < of->n; i++) {
        if (f2_add(&span, of->v[i])) {
            vectors_add(&out, of->v[i]);
        }
    }
    return out;
}

// Line bits: `want` vectors, independent of each other and of V (which `span` starts with).
static Vectors choose_lines(F2Basis *span, const Vectors *a, const Vectors *b, unsigned total,
                            unsigned want) {
    Vectors lines = {0}, units = {0}, tries = {0};
    F2Basis with_a = *span, with_b = *span, with_both;
    span_add(&with_a, a);
    span_add(&with_b, b);
    with_both = with_a;
    span_add(&with_both, b);
    for (unsigned i = 0; i < total; i++) {
        vectors_add(&units, UINT32_C(1) << i);
    }
    tries = outside(&units, &with_both);
    Vectors only_a = outside(a, &with_b), only_b = outside(b, &with_a);
    for (unsigned i = 0; i < only_a.n && i < only_b.n; i++) {
        vectors_add(&tries, only_a.v[i] ^ only_b.v[i]);
    }
    for (unsigned i = 0; i < tries.n && lines.n < want; i++) {
        if (f2_add(span, tries.v[i])) {
            vectors_add(&lines, tries.v[i]);
        }
    }
    for (unsigned i = 0; i < total && lines.n < want; i++) {
        if (f2_add(span, units.v[total - 1 - i])) {
            vectors_add(&lines, units.v[total - 1 - i]);
        }
    }
    return lines;
}

static const Layout *layout_swizzle_pair(LayoutTable *table, const Layout *src, const Layout *dst,
                                         unsigned element) {
    Draft draft = {0};
    unsigned total = layout_axis_shift(src, src->naxes), line = 10 - element;
    Vectors vector = common_registers(src, dst, 7 - element), a = {0}, b = {0}, units = {0};
    F2Basis span = {0};
    span_add(&span, &vector);
    lanes_of(&a, src, element, vector.n);
    lanes_of(&b, dst, element, vector.n);
    Vectors lines = choose_lines(&span, &a, &b, total, total > line ? total - line : 0);
    draft_axes_of(&draft, src, NULL, 0);
    for (unsigned i = 0; i < vector.n; i++) {
        draft_push(&draft, IN_OFF, vector.v[i]);
    }
    for (unsigned i = 0; i < total; i++) {
        vectors_add(&units, UINT32_C(1) << i);
    }
    for (unsigned i = 0; i < total; i++) {
        if (f2_add(&span, units.v[i])) {
            draft_push(&draft, IN_OFF, units.v[i]);
        }
    }
    for (unsigned i = 0; i < lines.n; i++) {
        draft_push(&draft, IN_OFF, lines.v[i]);
    }
    return draft_finish(table, &draft);
}

static unsigned total_wavefronts(const Layout *src, const Layout *dst, const Layout *buffer,
                                 unsigned element_bits) {
    return layout_wavefronts(src, buffer, element_bits) +
           layout_wavefronts(dst, buffer, element_bits);
}

const Layout *layout_swizzle_best(LayoutTable *table, const Layout *src, const Layout *dst,
                                  unsigned element_bits) {
    static const unsigned swizzles[] = {0, 32, 64, 128};
    unsigned element = log2_of(element_bits), least = UINT32_MAX;
    LayoutMap map;
    const Layout *best = NULL;
    if (element > 7 || !layout_convert(src, dst, &map)) {
        return NULL;
    }
    for (unsigned row = 0; row < src->naxes; row++) {
        AxisSize axes[AXES_MAX] = {
            {.axis = src->axis[row], .size = layout_size(src, src->axis[row])}};
        for (unsigned i = 0, n = 1; i < src->naxes; i++) {
            if (i != row) {
                axes[n++] = (AxisSize){src->axis[i], layout_size(src, src->axis[i])};
            }
        }
        for (unsigned s = 0; s < sizeof swizzles / sizeof swizzles[0]; s++) {
            const Layout *l = layout_shared(table, axes, src->naxes, element_bits, swizzles[s]);
            unsigned cost = l == NULL ? UINT32_MAX : total_wavefronts(src, dst, l, element_bits);
            if (cost < least) {
                least = cost;
                best = l;
            }
        }
    }
    const Layout *pair = layout_swizzle_pair(table, src, dst, element);
    if (pair != NULL && total_wavefronts(src, dst, pair, element_bits) < least) {
        best = pair;
    }
    return best != NULL ? best : layout_shared_linear(table, NULL, 0);
}

// Latencies that no other work of the warp hides: a shared-memory round trip, a block barrier
// (twice: before the buffer is read, and before it is written again), a cluster barrier.
enum { PRICE_ROUND_TRIP = 30, PRICE_BARRIERS = 60, PRICE_CLUSTER = 400 };

LayoutPrice layout_convert_price(LayoutTable *table, const Layout *src, const Layout *dst,
                                 unsigned element_bits) {
    LayoutPrice price = {.class = CONVERT_CTA, .cycles = UINT32_MAX};
    LayoutMap map;
    if (!layout_convert(src, dst, &map)) {
        return price;
    }
    price.class = layout_map_class(&map);
    if (price.class == CONVERT_NOTHING || price.class == CONVERT_REGISTERS) {
        price.cycles = 0;
        return price;
    }
    // A select is a quarter of a shuffle: 128 lanes a cycle against 32.
    unsigned choices = layout_map_choice(&map).n, registers = layout_registers(dst);
    if (price.class == CONVERT_SELECTS) {
        price.cycles = (registers * ((1u << choices) - 1) + 3) / 4;
        return price;
    }
    const Layout *buffer = layout_swizzle_best(table, src, dst, element_bits);
    unsigned shared = total_wavefronts(src, dst, buffer, element_bits) + PRICE_ROUND_TRIP;
    unsigned shuffles = registers << choices;
    if (price.class == CONVERT_LANES) {
        price.shared = shared < shuffles;
        price.cycles = price.shared ? shared : shuffles;
        return price;
    }
    price.shared = true;
    price.cycles = shared + (price.class == CONVERT_CTA ? PRICE_CLUSTER : PRICE_BARRIERS);
    return price;
}

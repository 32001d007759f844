// How registers meet a buffer: offsets, vector widths, matrix loads, bank conflicts.
//
// All are read off the map from (register, lane, warp) to offset bits. Conflicts: 32 banks of four
// bytes; a warp's access of 4, 8, 16 bytes a lane is served 32, 16, 8 lanes at a time; lanes that
// read one word share it. Since everything is linear, the number of distinct words per bank is
// 2^(rank of the word addresses - rank of their bank bits), the same for every group.
#include "ir/layout.h"
#include "ir/layout_f2.h"

uint32_t layout_offset_of(const Layout *buffer, const uint32_t coord[AXES_MAX]) {
    uint32_t in[IN_DIMS];
    layout_locate(buffer, coord, in);
    return in[IN_OFF];
}

// Some column other than the register bits in `used` moves the offset within `low`.
static bool map_touches(const LayoutMap *map, uint32_t low, uint32_t used) {
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < map->nin[d]; b++) {
            bool skip = d == IN_REG && (used >> b & 1) != 0;
            if (!skip && (map->col[d][b][IN_OFF] & low) != 0) {
                return true;
            }
        }
    }
    return false;
}

// Register bit that maps to exactly this offset, or -1.
static int map_register(const LayoutMap *map, uint32_t offset) {
    for (unsigned b = 0; b < map->nin[IN_REG]; b++) {
        if (map->col[IN_REG][b][IN_OFF] == offset) {
            return (int)b;
        }
    }
    return -1;
}

static unsigned map_vector(const LayoutMap *map, unsigned max_bits, uint8_t *reg_bits) {
    uint32_t used = 0, low = 0;
    unsigned v = 0;
    while (v < max_bits && v < map->nout[IN_OFF]) {
        uint32_t offset = UINT32_C(1) << v;
        int reg = map_register(map, offset);
        if (reg < 0 || map_touches(map, low | offset, used | UINT32_C(1) << reg)) {
            break;
        }
        low |= offset;
        used |= UINT32_C(1) << reg;
        if (reg_bits != NULL) {
            reg_bits[v] = (uint8_t)reg;
        }
        v++;
    }
    return v;
}

unsigned layout_vector(const Layout *regs, const Layout *buffer, unsigned max_bits,
                       uint8_t *reg_bits) {
    LayoutMap map;
    return layout_convert(buffer, regs, &map) ? map_vector(&map, max_bits, reg_bits) : 0;
}

static unsigned log2_of(unsigned n) {
    return n == 0 ? 0 : 31u - (unsigned)__builtin_clz(n);
}

// Word (4 bytes) that an element offset lies in.
static uint32_t word_of(uint32_t offset, unsigned element) {
    return element <= 5 ? offset >> (5 - element) : offset << (element - 5);
}

// log2 of the lanes served together.
static unsigned group_bits(unsigned element, unsigned vector_bits) {
    unsigned bytes = element + vector_bits; // log2 of the bits of one access
    return bytes <= 5 ? 5 : bytes == 6 ? 4 : 3;
}

static unsigned map_conflicts(const LayoutMap *map, unsigned element, unsigned vector_bits) {
    F2Basis words = {0}, banks = {0};
    unsigned group = group_bits(element, vector_bits);
    for (unsigned b = 0; b < group && b < map->nin[IN_LANE]; b++) {
        uint32_t word = word_of(map->col[IN_LANE][b][IN_OFF], element);
        f2_add(&words, word);
        f2_add(&banks, word & 31);
    }
    // The words of one lane's vector, from the second on.
    for (unsigned b = 5; b < element + vector_bits; b++) {
        f2_add(&words, UINT32_C(1) << (b - 5));
        f2_add(&banks, UINT32_C(1) << (b - 5) & 31);
    }
    return 1u << (words.rank - banks.rank);
}

unsigned layout_bank_conflicts(const Layout *regs, const Layout *buffer, unsigned element_bits,
                               unsigned vector_bits) {
    LayoutMap map;
    if (!layout_convert(buffer, regs, &map)) {
        return 0;
    }
    return map_conflicts(&map, log2_of(element_bits), vector_bits);
}

unsigned layout_wavefronts(const Layout *regs, const Layout *buffer, unsigned element_bits) {
    LayoutMap map;
    if (!layout_convert(buffer, regs, &map)) {
        return 0;
    }
    unsigned element = log2_of(element_bits);
    unsigned v = map_vector(&map, element < 7 ? 7 - element : 0, NULL);
    unsigned group = group_bits(element, v), lanes = regs->nin[IN_LANE];
    unsigned groups = lanes > group ? 1u << (lanes - group) : 1;
    return (layout_registers(regs) >> v) * groups * map_conflicts(&map, element, v);
}

static uint32_t lane_offset(const LayoutMap *map, unsigned bit) {
    return bit < map->nin[IN_LANE] ? map->col[IN_LANE][bit][IN_OFF] : 0;
}

// All register bits outside `pair` select the matrix.
static void matrix_registers(LayoutMatrix *m, unsigned nreg) {
    for (unsigned b = 0; b < nreg; b++) {
        bool in_pair = false;
        for (unsigned p = 0; p < m->npair; p++) {
            in_pair = in_pair || m->pair[p] == b;
        }
        if (!in_pair) {
            m->matrix[m->nmatrix++] = (uint8_t)b;
        }
    }
}

// Lanes 4i..4i+3 hold the 16 bytes of row i, four bytes each: word in registers, then lanes 0-1.
static bool matrix_plain(const LayoutMap *map, unsigned word, LayoutMatrix *m) {
    uint32_t used = 0;
    for (unsigned b = 0; b < word; b++) {
        int reg = map_register(map, UINT32_C(1) << b);
        if (reg < 0) {
            return false;
        }
        m->pair[b] = (uint8_t)reg;
        used |= UINT32_C(1) << reg;
    }
    m->npair = (uint8_t)word;
    LayoutMap rest = *map;
    for (unsigned b = 0; b < 2; b++) {
        if (lane_offset(map, b) != UINT32_C(1) << (word + b)) {
            return false;
        }
        rest.col[IN_LANE][b][IN_OFF] = 0;
    }
    return !map_touches(&rest, (UINT32_C(1) << (word + 2)) - 1, used);
}

// Transposed: lanes 2-4 are the column in the row of 8; the rows are (register 0, lanes 0-1).
static bool matrix_trans(const LayoutMap *map, LayoutMatrix *m) {
    LayoutMap rest = *map;
    if (map->nin[IN_REG] == 0) {
        return false;
    }
    for (unsigned b = 0; b < 3; b++) {
        if (lane_offset(map, 2 + b) != UINT32_C(1) << b) {
            return false;
        }
        rest.col[IN_LANE][2 + b][IN_OFF] = 0;
    }
    m->pair[0] = 0;
    m->npair = 1;
    return !map_touches(&rest, 7, 0);
}

LayoutMatrix layout_matrix_access(const Layout *regs, const Layout *buffer, unsigned element_bits) {
    LayoutMatrix m = {0};
    LayoutMap map;
    if (regs->nin[IN_LANE] != 5 || !layout_convert(buffer, regs, &map)) {
        return m;
    }
    unsigned element = log2_of(element_bits);
    if (element < 3 || element > 5) {
        return m;
    }
    if (matrix_plain(&map, 5 - element, &m)) {
        m.ok = true;
    } else if (element == 4 && matrix_trans(&map, &m)) {
        m.ok = m.trans = true;
    } else {
        return (LayoutMatrix){0};
    }
    matrix_registers(&m, map.nin[IN_REG]);
    return m;
}

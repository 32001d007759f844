// Layouts: interning, sizes, application (ir/layout.h has the model and the invariants).
#include "ir/layout.h"

#include <string.h>

#include "ir/layout_f2.h"

// Open addressing, power-of-two capacity, at most half full. Old arrays stay in the arena.
struct LayoutTable {
    Arena *arena;
    const Layout **slot;
    size_t count, cap;
};

LayoutTable *layout_table_new(Arena *arena) {
    LayoutTable *table = ARENA_NEW(arena, LayoutTable);
    table->arena = arena;
    table->cap = 64;
    table->slot = ARENA_ARRAY(arena, const Layout *, table->cap);
    return table;
}

static uint64_t hash_mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

uint64_t layout_hash(const Layout *l) {
    uint64_t h = hash_mix(l->naxes, l->nrep);
    for (unsigned i = 0; i < l->naxes; i++) {
        h = hash_mix(h, (uint64_t)l->axis[i] << 8 | l->bits[i]);
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        h = hash_mix(h, l->nin[d]);
        for (unsigned b = 0; b < l->nin[d]; b++) {
            h = hash_mix(h, l->col[d][b]);
        }
    }
    for (unsigned i = 0; i < l->nrep; i++) {
        h = hash_mix(h, (uint64_t)l->rep[i].axis << 16 | l->rep[i].count);
    }
    return h;
}

bool layout_equal(const Layout *a, const Layout *b) {
    if (a->naxes != b->naxes || a->nrep != b->nrep) {
        return false;
    }
    for (unsigned i = 0; i < a->naxes; i++) {
        if (a->axis[i] != b->axis[i] || a->bits[i] != b->bits[i]) {
            return false;
        }
    }
    for (unsigned i = 0; i < a->nrep; i++) {
        if (a->rep[i].axis != b->rep[i].axis || a->rep[i].count != b->rep[i].count) {
            return false;
        }
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        if (a->nin[d] != b->nin[d] ||
            memcmp(a->col[d], b->col[d], a->nin[d] * sizeof a->col[d][0]) != 0) {
            return false;
        }
    }
    return true;
}

// Shape of the struct: counts in range, axes sorted, reps odd, sorted and of known axes.
static bool layout_well_formed(const Layout *l) {
    unsigned total = 0;
    if (l->naxes > AXES_MAX || l->nrep > LAYOUT_REPS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < l->naxes; i++) {
        total += l->bits[i];
        if (i > 0 && l->axis[i - 1] >= l->axis[i]) {
            return false;
        }
    }
    for (unsigned i = 0; i < l->nrep; i++) {
        if (l->rep[i].count % 2 == 0 || l->rep[i].count == 1 ||
            layout_axis_index(l, l->rep[i].axis) < 0 ||
            (i > 0 && l->rep[i - 1].axis >= l->rep[i].axis)) {
            return false;
        }
    }
    if (total > 31) {
        return false;
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        if (l->nin[d] > LAYOUT_BITS_MAX) {
            return false;
        }
        for (unsigned b = 0; b < l->nin[d]; b++) {
            if (l->col[d][b] >> total != 0) {
                return false;
            }
        }
    }
    return true;
}

// Every element lives somewhere: the columns span all output bits.
static bool layout_covers(const Layout *l) {
    F2Basis basis = {0};
    unsigned total = layout_axis_shift(l, l->naxes);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            f2_add(&basis, l->col[d][b]);
        }
    }
    return basis.rank == total;
}

// Drops axes of size 1 and register bits that hold copies.
static Layout layout_canonical(const Layout *l) {
    Layout out = {0};
    for (unsigned i = 0; i < l->naxes; i++) {
        if (l->bits[i] != 0 || layout_axis_rep(l, l->axis[i]) != 1) {
            out.axis[out.naxes] = l->axis[i];
            out.bits[out.naxes++] = l->bits[i];
        }
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            if (d != IN_REG || l->col[d][b] != 0) {
                out.col[d][out.nin[d]++] = l->col[d][b];
            }
        }
    }
    out.nrep = l->nrep;
    memcpy(out.rep, l->rep, sizeof out.rep[0] * l->nrep);
    return out;
}

static const Layout **table_find(const Layout **slot, size_t cap, const Layout *l) {
    size_t i = (size_t)layout_hash(l) & (cap - 1);
    while (slot[i] != NULL && !layout_equal(slot[i], l)) {
        i = (i + 1) & (cap - 1);
    }
    return &slot[i];
}

static void table_grow(LayoutTable *table) {
    size_t cap = table->cap * 2;
    const Layout **slot = ARENA_ARRAY(table->arena, const Layout *, cap);
    for (size_t i = 0; i < table->cap; i++) {
        if (table->slot[i] != NULL) {
            *table_find(slot, cap, table->slot[i]) = table->slot[i];
        }
    }
    table->slot = slot;
    table->cap = cap;
}

const Layout *layout_intern(LayoutTable *table, const Layout *draft) {
    if (draft == NULL || !layout_well_formed(draft) || !layout_covers(draft)) {
        return NULL;
    }
    Layout canonical = layout_canonical(draft);
    if ((table->count + 1) * 2 > table->cap) {
        table_grow(table);
    }
    const Layout **slot = table_find(table->slot, table->cap, &canonical);
    if (*slot == NULL) {
        *slot = arena_copy(table->arena, &canonical, sizeof canonical);
        table->count++;
    }
    return *slot;
}

int layout_axis_index(const Layout *l, uint16_t axis) {
    for (int i = 0; i < l->naxes; i++) {
        if (l->axis[i] == axis) {
            return i;
        }
    }
    return -1;
}

unsigned layout_axis_shift(const Layout *l, int index) {
    unsigned shift = 0;
    for (int i = 0; i < index; i++) {
        shift += l->bits[i];
    }
    return shift;
}

unsigned layout_axis_bits(const Layout *l, uint16_t axis) {
    int i = layout_axis_index(l, axis);
    return i < 0 ? 0 : l->bits[i];
}

uint32_t layout_axis_rep(const Layout *l, uint16_t axis) {
    for (unsigned i = 0; i < l->nrep; i++) {
        if (l->rep[i].axis == axis) {
            return l->rep[i].count;
        }
    }
    return 1;
}

uint32_t layout_size(const Layout *l, uint16_t axis) {
    return layout_axis_rep(l, axis) << layout_axis_bits(l, axis);
}

uint32_t layout_reps(const Layout *l) {
    uint32_t reps = 1;
    for (unsigned i = 0; i < l->nrep; i++) {
        reps *= l->rep[i].count;
    }
    return reps;
}

uint32_t layout_elements(const Layout *l) {
    return layout_reps(l) << layout_axis_shift(l, l->naxes);
}

uint32_t layout_registers(const Layout *l) {
    return layout_reps(l) << l->nin[IN_REG];
}

uint32_t layout_offsets(const Layout *l) {
    return layout_reps(l) << l->nin[IN_OFF];
}

// Bits of axis number `index` in a flattened mask.
static uint32_t mask_along(const Layout *l, uint32_t mask, int index) {
    unsigned bits = l->bits[index];
    if (bits == 0) {
        return 0;
    }
    uint32_t all = (UINT32_C(1) << bits) - 1;
    return mask >> layout_axis_shift(l, index) & all;
}

uint32_t layout_column(const Layout *l, unsigned dim, unsigned bit, uint16_t axis) {
    int i = layout_axis_index(l, axis);
    return i < 0 || bit >= l->nin[dim] ? 0 : mask_along(l, l->col[dim][bit], i);
}

// The rep digits sit above the bits of the register, or of the offset for a buffer.
static uint32_t rep_digits(const uint8_t nin[IN_DIMS], const uint32_t in[IN_DIMS]) {
    uint32_t reg = in[IN_REG] >> nin[IN_REG], off = in[IN_OFF] >> nin[IN_OFF];
    return reg != 0 ? reg : off;
}

void layout_apply(const Layout *l, const uint32_t in[IN_DIMS], uint32_t coord[AXES_MAX]) {
    uint32_t flat = 0, digits = rep_digits(l->nin, in);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            flat ^= (in[d] >> b & 1) != 0 ? l->col[d][b] : 0;
        }
    }
    for (int i = 0; i < l->naxes; i++) {
        coord[i] = mask_along(l, flat, i);
    }
    for (unsigned r = 0; r < l->nrep; r++) {
        int i = layout_axis_index(l, l->rep[r].axis);
        coord[i] += digits % l->rep[r].count << l->bits[i];
        digits /= l->rep[r].count;
    }
}

uint32_t layout_coord(const Layout *l, const uint32_t in[IN_DIMS], uint16_t axis) {
    uint32_t coord[AXES_MAX];
    int i = layout_axis_index(l, axis);
    if (i < 0) {
        return 0;
    }
    layout_apply(l, in, coord);
    return coord[i];
}

uint32_t layout_free_bits(const Layout *l, unsigned dim) {
    uint32_t mask = 0;
    for (unsigned b = 0; b < l->nin[dim]; b++) {
        mask |= l->col[dim][b] == 0 ? UINT32_C(1) << b : 0;
    }
    return mask;
}

uint32_t layout_axis_inputs(const Layout *l, unsigned dim, const uint16_t *axes, unsigned naxes,
                            uint32_t *mixed) {
    uint32_t along = 0, found = 0;
    for (unsigned i = 0; i < naxes; i++) {
        int index = layout_axis_index(l, axes[i]);
        if (index >= 0) {
            along |= ((UINT32_C(1) << l->bits[index]) - 1) << layout_axis_shift(l, index);
        }
    }
    *mixed = 0;
    for (unsigned b = 0; b < l->nin[dim]; b++) {
        bool inside = (l->col[dim][b] & along) != 0;
        found |= inside ? UINT32_C(1) << b : 0;
        *mixed |= inside && (l->col[dim][b] & ~along) != 0 ? UINT32_C(1) << b : 0;
    }
    return found;
}

// True if some column other than register bits in `used` touches the mask.
static bool columns_touch(const Layout *l, uint32_t mask, uint32_t used) {
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            bool skip = d == IN_REG && (used >> b & 1) != 0;
            if (!skip && (l->col[d][b] & mask) != 0) {
                return true;
            }
        }
    }
    return false;
}

unsigned layout_run(const Layout *l, uint16_t axis, uint8_t *reg_bits) {
    int index = layout_axis_index(l, axis);
    unsigned run = 0;
    uint32_t mask = 0, used = 0;
    while (index >= 0 && run < l->bits[index]) {
        uint32_t want = UINT32_C(1) << (layout_axis_shift(l, index) + run);
        unsigned b = 0;
        while (b < l->nin[IN_REG] && l->col[IN_REG][b] != want) {
            b++;
        }
        if (b == l->nin[IN_REG] || columns_touch(l, mask | want, used | UINT32_C(1) << b)) {
            break;
        }
        mask |= want;
        used |= UINT32_C(1) << b;
        if (reg_bits != NULL) {
            reg_bits[run] = (uint8_t)b;
        }
        run++;
    }
    return run;
}

// Maps between layouts: C with src(C(x)) = dst(x), its classification and composition.
//
// Each input bit of dst is solved on its own by Gauss elimination over src's columns, registers
// before lanes before warps, so that data comes from as near as it can. Where src holds copies
// (zero columns) the free bits follow dst's: thread x reads its own copy, and src = dst gives the
// identity.
#include <string.h>

#include "ir/layout.h"
#include "ir/layout_f2.h"

// An echelon basis of a layout's columns and which input bit each accepted column is.
typedef struct SourceBasis {
    F2Basis basis;
    uint8_t dim[32], bit[32];
} SourceBasis;

static SourceBasis source_basis(const Layout *src) {
    SourceBasis s = {0};
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < src->nin[d]; b++) {
            unsigned rank = s.basis.rank;
            if (f2_add(&s.basis, src->col[d][b])) {
                s.dim[rank] = (uint8_t)d;
                s.bit[rank] = (uint8_t)b;
            }
        }
    }
    return s;
}

static bool source_solve(const SourceBasis *s, uint32_t mask, uint32_t to[IN_DIMS]) {
    uint32_t made;
    if (!f2_solve(&s->basis, mask, &made)) {
        return false;
    }
    for (unsigned k = 0; k < s->basis.rank; k++) {
        to[s->dim[k]] ^= (made >> k & 1) << s->bit[k];
    }
    return true;
}

static bool same_tile(const Layout *a, const Layout *b) {
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
    return true;
}

bool layout_convert(const Layout *src, const Layout *dst, LayoutMap *map) {
    *map = (LayoutMap){0};
    if (!same_tile(src, dst)) {
        return false;
    }
    SourceBasis source = source_basis(src);
    memcpy(map->nin, dst->nin, sizeof map->nin);
    memcpy(map->nout, src->nin, sizeof map->nout);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < dst->nin[d]; b++) {
            bool in_src = b < src->nin[d];
            uint32_t *to = map->col[d][b];
            if (in_src && src->col[d][b] == dst->col[d][b]) {
                to[d] = UINT32_C(1) << b;
            } else if (!source_solve(&source, dst->col[d][b], to)) {
                return false;
            } else if (in_src && src->col[d][b] == 0) {
                to[d] |= UINT32_C(1) << b;
            }
        }
    }
    uint32_t stride = 1;
    map->nrep = dst->nrep;
    for (unsigned r = 0; r < dst->nrep; r++) {
        map->rep_count[r] = dst->rep[r].count;
        map->rep_stride[r] = stride;
        stride *= dst->rep[r].count;
    }
    return true;
}

void layout_map_apply(const LayoutMap *map, const uint32_t in[IN_DIMS], uint32_t out[IN_DIMS]) {
    uint32_t result[IN_DIMS] = {0}, top = 0;
    uint32_t reg = in[IN_REG] >> map->nin[IN_REG], off = in[IN_OFF] >> map->nin[IN_OFF];
    uint32_t digits = reg != 0 ? reg : off;
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < map->nin[d]; b++) {
            for (unsigned o = 0; o < IN_DIMS && (in[d] >> b & 1) != 0; o++) {
                result[o] ^= map->col[d][b][o];
            }
        }
    }
    for (unsigned r = 0; r < map->nrep; r++) {
        top += digits % map->rep_count[r] * map->rep_stride[r];
        digits /= map->rep_count[r];
    }
    result[IN_REG] += top << map->nout[IN_REG];
    result[IN_OFF] += top << map->nout[IN_OFF];
    memcpy(out, result, sizeof result);
}

void layout_map_compose(const LayoutMap *b, const LayoutMap *a, LayoutMap *out) {
    LayoutMap map = *a;
    memcpy(map.nout, b->nout, sizeof map.nout);
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned i = 0; i < a->nin[d]; i++) {
            uint32_t *to = map.col[d][i];
            memset(to, 0, sizeof map.col[d][i]);
            for (unsigned m = 0; m < IN_DIMS; m++) {
                for (unsigned j = 0; j < b->nin[m]; j++) {
                    for (unsigned o = 0; o < IN_DIMS && (a->col[d][i][m] >> j & 1) != 0; o++) {
                        to[o] ^= b->col[m][j][o];
                    }
                }
            }
        }
    }
    *out = map;
}

// The part of the output in dimension `o` is the input's, or 0 where there is no such input.
static bool map_keeps(const LayoutMap *map, unsigned o) {
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < map->nin[d]; b++) {
            if (map->col[d][b][o] != (d == o ? UINT32_C(1) << b : 0)) {
                return false;
            }
        }
    }
    return true;
}

LayoutChoice layout_map_choice(const LayoutMap *map) {
    F2Basis chosen = {0};
    LayoutChoice choice = {0};
    for (unsigned d = IN_LANE; d <= IN_WARP; d++) {
        for (unsigned b = 0; b < map->nin[d]; b++) {
            uint32_t reg = map->col[d][b][IN_REG], made;
            if (f2_add(&chosen, reg)) {
                choice.reg[choice.n++] = reg;
            }
            f2_solve(&chosen, reg, &made);
            for (unsigned i = 0; i < choice.n; i++) {
                uint32_t bit = (made >> i & 1) << b;
                choice.lanes[i] |= d == IN_LANE ? bit : 0;
                choice.warps[i] |= d == IN_WARP ? bit : 0;
            }
        }
    }
    return choice;
}

void layout_locate(const Layout *l, const uint32_t coord[AXES_MAX], uint32_t in[IN_DIMS]) {
    SourceBasis source = source_basis(l);
    uint32_t flat = 0, top = 0, weight = 1;
    memset(in, 0, IN_DIMS * sizeof in[0]);
    for (int i = 0; i < l->naxes; i++) {
        uint32_t low = coord[i] & ((UINT32_C(1) << l->bits[i]) - 1);
        flat |= low << layout_axis_shift(l, i);
    }
    source_solve(&source, flat, in);
    for (unsigned r = 0; r < l->nrep; r++) {
        int i = layout_axis_index(l, l->rep[r].axis);
        top += (coord[i] >> l->bits[i]) * weight;
        weight *= l->rep[r].count;
    }
    in[IN_REG] += top << l->nin[IN_REG];
    in[IN_OFF] += top << l->nin[IN_OFF];
}

ConvertClass layout_map_class(const LayoutMap *map) {
    if (!map_keeps(map, IN_CTA)) {
        return CONVERT_CTA;
    }
    if (!map_keeps(map, IN_WARP) || map->nin[IN_OFF] != 0 || map->nout[IN_OFF] != 0) {
        return CONVERT_WARPS;
    }
    if (!map_keeps(map, IN_LANE)) {
        return CONVERT_LANES;
    }
    if (layout_map_choice(map).n != 0) {
        return CONVERT_SELECTS;
    }
    return map_keeps(map, IN_REG) ? CONVERT_NOTHING : CONVERT_REGISTERS;
}

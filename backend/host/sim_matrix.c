// Matrix instructions of a simulated warp: mma.sync, ldmatrix, stmatrix.
//
// Fragments as in the PTX manual, "Matrix fragments for mma": with g = lane / 4 and t = lane % 4, a
// register holds the p packed elements t*p .. t*p + p-1 of a row (column) g; registers then step by
// 8 rows and by 4p along k.
#include "backend/host/sim_impl.h"

#include <string.h>

#include "ir/target_desc.h"
#include "lang/base/numeric.h"

typedef struct MmaForm {
    int k, pack, kregs; // elements of a register; registers along k
} MmaForm;

static bool mma_form(int32_t unit, MmaForm *form) {
    switch (unit) {
    case UNIT_M16N8K8_F16:
        *form = (MmaForm){8, 2, 1};
        return true;
    case UNIT_M16N8K16_F16:
        *form = (MmaForm){16, 2, 2};
        return true;
    case UNIT_M16N8K8_TF32:
        *form = (MmaForm){8, 1, 2};
        return true;
    case UNIT_M16N8K32_I8:
    case UNIT_M16N8K32_F8:
        *form = (MmaForm){32, 4, 2};
        return true;
    default: // not an enum of its own
        return false;
    }
}

// One packed element of a register, as an exact double.
static double element_value(DType type, uint32_t reg, int i) {
    uint64_t bits = reg;
    switch (dtype_bits(type)) {
    case 8:
        bits = reg >> (8 * i) & 0xff;
        break;
    case 16:
        bits = reg >> (16 * i) & 0xffff;
        break;
    case 32: // tf32: nvptx rounds to 10 bits, ties away from 0; infinities and NaNs stay
        if ((reg & 0x7f800000u) != 0x7f800000u)
            bits = (reg + 0x1000u) & 0xffffe000u;
        break;
    }
    return scalar_to_f64(scalar_from_bits(type, bits));
}

// Elements by row and k: the rows of A are m, those of B are n.
static void fragment_read(const MmaForm *f, DType type, int row_regs, const uint32_t *regs,
                          double out[16][32]) {
    for (int kr = 0; kr < f->kregs; kr++)
        for (int rr = 0; rr < row_regs; rr++)
            for (int lane = 0; lane < SIM_LANES; lane++)
                for (int i = 0; i < f->pack; i++)
                    out[rr * 8 + lane / 4][kr * 4 * f->pack + lane % 4 * f->pack + i] =
                        element_value(type, regs[(kr * row_regs + rr) * SIM_LANES + lane], i);
}

void sim_mma(SimWarp *w, int32_t unit, int32_t dtype_a, int32_t dtype_b, const uint32_t *a,
             const uint32_t *b, const void *c, void *d, uint64_t span) {
    MmaForm form;
    if (!mma_form(unit, &form))
        sim_fail(w, span, "matrix unit %d is not simulated", unit);
    double ea[16][32], eb[16][32];
    fragment_read(&form, (DType)dtype_a, 2, a, ea);
    fragment_read(&form, (DType)dtype_b, 1, b, eb);
    bool ints = dtype_is_integer((DType)dtype_a);
    for (int r = 0; r < 4; r++)
        for (int lane = 0; lane < SIM_LANES; lane++) {
            int m = lane / 4 + 8 * (r / 2), n = lane % 4 * 2 + r % 2, at = r * SIM_LANES + lane;
            if (ints) {
                uint32_t sum;
                memcpy(&sum, (const char *)c + 4 * at, 4);
                for (int k = 0; k < form.k; k++)
                    sum += (uint32_t)((int32_t)ea[m][k] * (int32_t)eb[n][k]);
                memcpy((char *)d + 4 * at, &sum, 4);
                continue;
            }
            float sum;
            memcpy(&sum, (const char *)c + 4 * at, 4);
            for (int k = 0; k < form.k; k++)
                sum = (float)((double)sum + ea[m][k] * eb[n][k]);
            memcpy((char *)d + 4 * at, &sum, 4);
        }
}

// The register of `lane` holds elements 2t and 2t+1 of row g of its matrix; transposed, of column
// g.
static void matrix_position(int lane, int i, bool trans, int *row, int *col) {
    *row = trans ? lane % 4 * 2 + i : lane / 4;
    *col = trans ? lane / 4 : lane % 4 * 2 + i;
}

void sim_ldmatrix(SimWarp *w, const int32_t *off, uint32_t *dst, int32_t n, int32_t trans,
                  uint64_t span) {
    for (int row = 0; row < n * 8; row++)
        sim_shared_read(w, row, (uint32_t)off[row], 16, span);
    for (int m = 0; m < n; m++)
        for (int lane = 0; lane < SIM_LANES; lane++) {
            uint32_t pair = 0;
            for (int i = 0; i < 2; i++) {
                int row, col;
                uint16_t e;
                matrix_position(lane, i, trans, &row, &col);
                memcpy(&e, w->sim->shared + (uint32_t)off[m * 8 + row] + 2 * col, 2);
                pair |= (uint32_t)e << (16 * i);
            }
            dst[m * SIM_LANES + lane] = pair;
        }
}

void sim_stmatrix(SimWarp *w, const int32_t *off, const uint32_t *src, int32_t n, int32_t trans,
                  uint64_t span) {
    for (int row = 0; row < n * 8; row++)
        sim_shared_write(w, row, (uint32_t)off[row], 16, span, w->id, w->clock[w->id]);
    for (int m = 0; m < n; m++)
        for (int lane = 0; lane < SIM_LANES; lane++)
            for (int i = 0; i < 2; i++) {
                int row, col;
                matrix_position(lane, i, trans, &row, &col);
                uint16_t e = (uint16_t)(src[m * SIM_LANES + lane] >> (16 * i));
                memcpy(w->sim->shared + (uint32_t)off[m * 8 + row] + 2 * col, &e, 2);
            }
}

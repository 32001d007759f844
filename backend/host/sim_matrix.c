// Matrix instructions of a simulated warp: mma.sync, ldmatrix, stmatrix.
//
// Fragments as in the PTX manual, "Matrix fragments for mma": with g = lane / 4 and t = lane % 4, a
// register holds the p packed elements t*p .. t*p + p-1 of a row (column) g; registers then step by
// 8 rows and by 4p along k.
#include "backend/host/sim_impl.h"

#include <math.h>
#include <string.h>

#include "ir/layout.h"
#include "lang/base/numeric.h"

typedef struct MmaForm {
    int k, pack, kregs, mregs; // elements of a register; registers along k and along 8 rows of A
} MmaForm;

static bool mma_form(int32_t unit, MmaForm *form) {
    switch ((MmaUnit)unit) {
    case MMA_M16N8K8:
        *form = (MmaForm){8, 2, 1, 2};
        return true;
    case MMA_M16N8K16:
        *form = (MmaForm){16, 2, 2, 2};
        return true;
    case MMA_M16N8K8_TF32:
        *form = (MmaForm){8, 1, 2, 2};
        return true;
    case MMA_M16N8K32:
        *form = (MmaForm){32, 4, 2, 2};
        return true;
    case MMA_M8N8K4:
        *form = (MmaForm){4, 1, 1, 1};
        return true;
    }
    return false; // a number that is no unit
}

// f32 to the 10 stored bits of tf32, ties away from zero; NaN stays one.
static uint32_t round_tf32(uint32_t bits) {
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return nan ? 0x7fc00000u : (bits + 0x1000u) & 0xffffe000u;
}

// Element i of register `at`, as an exact double.
static double element_value(DType type, const void *regs, int at, int i) {
    if (type == DT_F64)
        return ((const double *)regs)[at];
    uint64_t bits = ((const uint32_t *)regs)[at];
    unsigned width = dtype_bits(type);
    bits = width == 32 ? round_tf32((uint32_t)bits)
                       : bits >> (width * (unsigned)i) & ((UINT64_C(1) << width) - 1);
    return scalar_to_f64(scalar_from_bits(type, bits));
}

// Elements by row and k: the rows of A are m, those of B are n.
static void fragment_read(const MmaForm *f, DType type, int row_regs, const void *regs,
                          double out[16][32]) {
    for (int kr = 0; kr < f->kregs; kr++)
        for (int rr = 0; rr < row_regs; rr++)
            for (int lane = 0; lane < SIM_LANES; lane++)
                for (int i = 0; i < f->pack; i++)
                    out[rr * 8 + lane / 4][kr * 4 * f->pack + lane % 4 * f->pack + i] =
                        element_value(type, regs, (kr * row_regs + rr) * SIM_LANES + lane, i);
}

// c + the products of one row and column, in the accumulator's type.
static void sum_products(DType type, int k, const double *a, const double *b, const void *c,
                         void *d, int at) {
    if (dtype_is_integer(type)) {
        uint32_t sum = ((const uint32_t *)c)[at];
        for (int i = 0; i < k; i++)
            sum += (uint32_t)((int32_t)a[i] * (int32_t)b[i]);
        ((uint32_t *)d)[at] = sum;
    } else if (type == DT_F64) {
        double sum = ((const double *)c)[at];
        for (int i = 0; i < k; i++)
            sum = fma(a[i], b[i], sum);
        ((double *)d)[at] = sum;
    } else {
        float sum = ((const float *)c)[at];
        for (int i = 0; i < k; i++)
            sum = (float)((double)sum + a[i] * b[i]);
        ((float *)d)[at] = sum;
    }
}

void sim_mma(SimWarp *w, int32_t unit, int32_t dtype_a, int32_t dtype_b, const void *a,
             const void *b, const void *c, void *d, uint64_t span) {
    MmaForm form;
    if (!mma_form(unit, &form))
        sim_fail(w, span, "matrix unit %d is not simulated", unit);
    double ea[16][32], eb[16][32];
    fragment_read(&form, (DType)dtype_a, form.mregs, a, ea);
    fragment_read(&form, (DType)dtype_b, 1, b, eb);
    for (int r = 0; r < 2 * form.mregs; r++)
        for (int lane = 0; lane < SIM_LANES; lane++) {
            int m = lane / 4 + 8 * (r / 2), n = lane % 4 * 2 + r % 2;
            sum_products((DType)dtype_a, form.k, ea[m], eb[n], c, d, r * SIM_LANES + lane);
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
    sim_banks_count(w, SIM_MATRICES, off, n * 8, UINT32_MAX, 16);
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
    sim_banks_count(w, SIM_MATRICES, off, n * 8, UINT32_MAX, 16);
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

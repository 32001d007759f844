// Elementwise ops: one function per number class and op, run over rows.
//
// Floats are computed in double and rounded once to the result's type. For + - * / and sqrt of f32
// (24 bits) that equals the directly rounded result, because double has more than 2 * 24 + 2 bits
// (Figueroa, "When is double rounding innocuous?", 1995); fma uses the single-precision function.
#include "ir/eval_impl.h"

#include <math.h>

#include "ir/random.h"

typedef double FloatFn(double x, double y, double z);
typedef int64_t IntFn(DType dtype, int64_t x, int64_t y, int64_t z);

// --- floats (one line each) ---
// clang-format off

static double float_add(double x, double y, double z) { (void)z; return x + y; }
static double float_sub(double x, double y, double z) { (void)z; return x - y; }
static double float_mul(double x, double y, double z) { (void)z; return x * y; }
static double float_div(double x, double y, double z) { (void)z; return x / y; }
static double float_rem(double x, double y, double z) { (void)z; return fmod(x, y); }
static double float_cdiv(double x, double y, double z) { (void)z; return ceil(x / y); }
static double float_floordiv(double x, double y, double z) { (void)z; return floor(x / y); }
static double float_fma(double x, double y, double z) { return fma(x, y, z); }
static double float_fma_f32(double x, double y, double z) {
    return fmaf((float)x, (float)y, (float)z);
}
static double float_neg(double x, double y, double z) { (void)y, (void)z; return -x; }
static double float_abs(double x, double y, double z) { (void)y, (void)z; return fabs(x); }
static double float_sqrt(double x, double y, double z) { (void)y, (void)z; return sqrt(x); }
static double float_rsqrt(double x, double y, double z) { (void)y, (void)z; return 1 / sqrt(x); }
static double float_rcp(double x, double y, double z) { (void)y, (void)z; return 1 / x; }
static double float_exp2(double x, double y, double z) { (void)y, (void)z; return exp2(x); }
static double float_log2(double x, double y, double z) { (void)y, (void)z; return log2(x); }
static double float_exp(double x, double y, double z) { (void)y, (void)z; return exp(x); }
static double float_log(double x, double y, double z) { (void)y, (void)z; return log(x); }
static double float_sin(double x, double y, double z) { (void)y, (void)z; return sin(x); }
static double float_cos(double x, double y, double z) { (void)y, (void)z; return cos(x); }
static double float_tanh(double x, double y, double z) { (void)y, (void)z; return tanh(x); }
static double float_erf(double x, double y, double z) { (void)y, (void)z; return erf(x); }
static double float_pow(double x, double y, double z) { (void)z; return pow(x, y); }
static double float_floor(double x, double y, double z) { (void)y, (void)z; return floor(x); }
static double float_ceil(double x, double y, double z) { (void)y, (void)z; return ceil(x); }
static double float_trunc(double x, double y, double z) { (void)y, (void)z; return trunc(x); }
static double float_round(double x, double y, double z) { (void)y, (void)z; return nearbyint(x); }

// clang-format on

// The result has the divisor's sign.
static double float_mod(double x, double y, double z) {
    (void)z;
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// -0 is less than +0, as in IEEE 754-2019 minimum.
static double float_fmin(double x, double y, double z) {
    (void)z;
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x < y || (x == y && signbit(x)) ? x : y;
}

static double float_fmax(double x, double y, double z) {
    (void)z;
    if (isnan(x) || isnan(y))
        return isnan(x) ? y : x;
    return x > y || (x == y && !signbit(x)) ? x : y;
}

static double float_min(double x, double y, double z) {
    return isnan(x) || isnan(y) ? NAN : float_fmin(x, y, z);
}

static double float_max(double x, double y, double z) {
    return isnan(x) || isnan(y) ? NAN : float_fmax(x, y, z);
}

// clang-format off
static FloatFn *float_fn(OpKind kind, DType dtype) {
    switch ((int)kind) {
    case OP_ADD: return float_add;
    case OP_SUB: return float_sub;
    case OP_MUL: return float_mul;
    case OP_FMA: return dtype == DT_F64 ? float_fma : float_fma_f32;
    case OP_DIV: return float_div;
    case OP_REM: return float_rem;
    case OP_CDIV: return float_cdiv;
    case OP_FLOORDIV: return float_floordiv;
    case OP_MOD: return float_mod;
    case OP_NEG: return float_neg;
    case OP_ABS: return float_abs;
    case OP_MIN: return float_min;
    case OP_MAX: return float_max;
    case OP_FMIN: return float_fmin;
    case OP_FMAX: return float_fmax;
    case OP_SQRT: return float_sqrt;
    case OP_RSQRT: return float_rsqrt;
    case OP_RCP: return float_rcp;
    case OP_EXP2: return float_exp2;
    case OP_LOG2: return float_log2;
    case OP_EXP: return float_exp;
    case OP_LOG: return float_log;
    case OP_SIN: return float_sin;
    case OP_COS: return float_cos;
    case OP_TANH: return float_tanh;
    case OP_ERF: return float_erf;
    case OP_POW: return float_pow;
    case OP_FLOOR: return float_floor;
    case OP_CEIL: return float_ceil;
    case OP_TRUNC: return float_trunc;
    case OP_ROUND: return float_round;
    }
    return NULL; // not an op of floats
}
// clang-format on

// --- integers and bool ---
// clang-format off

static int64_t int_add(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return (int64_t)((uint64_t)x + (uint64_t)y); }
static int64_t int_sub(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return (int64_t)((uint64_t)x - (uint64_t)y); }
static int64_t int_mul(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return (int64_t)((uint64_t)x * (uint64_t)y); }
static int64_t int_fma(DType t, int64_t x, int64_t y, int64_t z) { return int_add(t, int_mul(t, x, y, 0), z, 0); }
static int64_t int_neg(DType t, int64_t x, int64_t y, int64_t z) { (void)y, (void)z; return int_sub(t, 0, x, 0); }
static int64_t int_and(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return x & y; }
static int64_t int_or(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return x | y; }
static int64_t int_xor(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)z; return x ^ y; }
static int64_t int_not(DType t, int64_t x, int64_t y, int64_t z) { (void)y, (void)z; return t == DT_BOOL ? !x : ~x; }
static int64_t int_same(DType t, int64_t x, int64_t y, int64_t z) { (void)t, (void)y, (void)z; return x; }

// The order of u64 is not that of its int64_t bits.
static bool int_less(DType t, int64_t x, int64_t y) {
    return t == DT_U64 ? (uint64_t)x < (uint64_t)y : x < y;
}

static int64_t int_min(DType t, int64_t x, int64_t y, int64_t z) { (void)z; return int_less(t, y, x) ? y : x; }
static int64_t int_max(DType t, int64_t x, int64_t y, int64_t z) { (void)z; return int_less(t, x, y) ? y : x; }
static int64_t int_abs(DType t, int64_t x, int64_t y, int64_t z) { return dtype_is_signed(t) && x < 0 ? int_neg(t, x, y, z) : x; }

// clang-format on

static int64_t int_div(DType t, int64_t x, int64_t y, int64_t z) {
    (void)z;
    if (y == 0)
        return 0;
    if (t == DT_U64)
        return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? int_sub(t, 0, x, 0) : x / y;
}

static int64_t int_rem(DType t, int64_t x, int64_t y, int64_t z) {
    return y == 0 ? 0 : int_sub(t, x, int_mul(t, int_div(t, x, y, z), y, 0), 0);
}

static int64_t int_floordiv(DType t, int64_t x, int64_t y, int64_t z) {
    int64_t r = int_rem(t, x, y, z);
    return int_div(t, x, y, z) - (t != DT_U64 && r != 0 && (r < 0) != (y < 0));
}

static int64_t int_cdiv(DType t, int64_t x, int64_t y, int64_t z) {
    int64_t r = int_rem(t, x, y, z);
    return int_add(t, int_div(t, x, y, z), r != 0 && (t == DT_U64 || (r < 0) == (y < 0)), 0);
}

static int64_t int_mod(DType t, int64_t x, int64_t y, int64_t z) {
    int64_t r = int_rem(t, x, y, z);
    return t != DT_U64 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t int_shl(DType t, int64_t x, int64_t y, int64_t z) {
    (void)z;
    return y < 0 || y >= (int64_t)dtype_bits(t) ? 0 : (int64_t)((uint64_t)x << y);
}

static int64_t int_shr(DType t, int64_t x, int64_t y, int64_t z) {
    (void)z;
    if (t == DT_U64)
        return y < 0 || y >= 64 ? 0 : (int64_t)((uint64_t)x >> y);
    return x >> (y < 0 || y > 63 ? 63 : y); // narrower values are sign or zero extended
}

static uint64_t int_low(DType t, int64_t x) {
    return scalar_bits((Scalar){.dtype = t, .u.i = x});
}

static int64_t int_popc(DType t, int64_t x, int64_t y, int64_t z) {
    (void)y, (void)z;
    return __builtin_popcountll(int_low(t, x));
}

static int64_t int_clz(DType t, int64_t x, int64_t y, int64_t z) {
    (void)y, (void)z;
    uint64_t low = int_low(t, x);
    int bits = (int)dtype_bits(t);
    return low ? __builtin_clzll(low) - (64 - bits) : bits;
}

// clang-format off
static IntFn *int_fn(OpKind kind) {
    switch ((int)kind) {
    case OP_ADD: return int_add;
    case OP_SUB: return int_sub;
    case OP_MUL: return int_mul;
    case OP_FMA: return int_fma;
    case OP_DIV: return int_div;
    case OP_REM: return int_rem;
    case OP_CDIV: return int_cdiv;
    case OP_FLOORDIV: return int_floordiv;
    case OP_MOD: return int_mod;
    case OP_NEG: return int_neg;
    case OP_ABS: return int_abs;
    case OP_MIN: case OP_FMIN: return int_min;
    case OP_MAX: case OP_FMAX: return int_max;
    case OP_AND: return int_and;
    case OP_OR: return int_or;
    case OP_XOR: return int_xor;
    case OP_NOT: return int_not;
    case OP_SHL: return int_shl;
    case OP_SHR: return int_shr;
    case OP_POPC: return int_popc;
    case OP_CLZ: return int_clz;
    case OP_FLOOR: case OP_CEIL: case OP_TRUNC: case OP_ROUND: return int_same;
    }
    return NULL; // not an op of integers
}
// clang-format on

// --- cells ---

Cell cell_from(Scalar s) {
    return dtype_is_float(s.dtype) ? (Cell){.f = s.u.f} : (Cell){.i = s.u.i};
}

Scalar cell_scalar(DType dtype, Cell c) {
    if (dtype_is_float(dtype))
        return (Scalar){.dtype = dtype, .u.f = c.f};
    return (Scalar){.dtype = dtype, .u.i = c.i};
}

Cell cell_binary(OpKind kind, DType dtype, Cell a, Cell b) {
    if (dtype_is_float(dtype))
        return (Cell){.f = numeric_round(dtype, float_fn(kind, dtype)(a.f, b.f, 0))};
    return (Cell){.i = numeric_wrap(dtype, int_fn(kind)(dtype, a.i, b.i, 0))};
}

// clang-format off
static bool cell_compare(CmpKind kind, DType dtype, Cell a, Cell b) {
    bool is_float = dtype_is_float(dtype);
    bool less = is_float ? a.f < b.f : int_less(dtype, a.i, b.i);
    bool equal = is_float ? a.f == b.f : a.i == b.i;
    bool greater = is_float ? a.f > b.f : int_less(dtype, b.i, a.i);
    switch (kind) {
    case CMP_EQ: return equal;
    case CMP_NE: return !equal;
    case CMP_LT: return less;
    case CMP_LE: return less || equal;
    case CMP_GT: return greater;
    case CMP_GE: return greater || equal;
    case CMP_COUNT: break;
    }
    return false;
}
// clang-format on

// --- rows ---

// Operands of one row: element j of operand i is at[i][j * step[i]].
typedef struct Row {
    int64_t n;
    Cell *out;
    const Cell *at[3];
    int64_t step[3];
    const uint8_t *bad[3];
    uint8_t *out_bad;
} Row;

static void row_float(const Row *r, FloatFn *fn, DType dtype, bool exact) {
    for (int64_t j = 0; j < r->n; j++) {
        double x =
            fn(r->at[0][j * r->step[0]].f, r->at[1][j * r->step[1]].f, r->at[2][j * r->step[2]].f);
        r->out[j].f = exact ? x : dtype == DT_F32 ? (float)x : numeric_round(dtype, x);
    }
}

static void row_int(const Row *r, IntFn *fn, DType dtype) {
    for (int64_t j = 0; j < r->n; j++) {
        int64_t x = fn(dtype, r->at[0][j * r->step[0]].i, r->at[1][j * r->step[1]].i,
                       r->at[2][j * r->step[2]].i);
        r->out[j].i = numeric_wrap(dtype, x);
    }
}

static void row_select(const Row *r) {
    for (int64_t j = 0; j < r->n; j++) {
        int side = r->at[0][j * r->step[0]].i ? 1 : 2;
        r->out[j] = r->at[side][j * r->step[side]];
    }
}

static void row_cast(const Row *r, DType from, DType to) {
    for (int64_t j = 0; j < r->n; j++)
        r->out[j] = cell_from(scalar_cast(cell_scalar(from, r->at[0][j * r->step[0]]), to));
}

static void row_bitcast(const Row *r, DType from, DType to) {
    for (int64_t j = 0; j < r->n; j++)
        r->out[j] = cell_from(
            scalar_from_bits(to, scalar_bits(cell_scalar(from, r->at[0][j * r->step[0]]))));
}

static void row_compare(const Row *r, CmpKind kind, DType dtype) {
    for (int64_t j = 0; j < r->n; j++)
        r->out[j].i = cell_compare(kind, dtype, r->at[0][j * r->step[0]], r->at[1][j * r->step[1]]);
}

static void row_rand(const Row *r) {
    for (int64_t j = 0; j < r->n; j++)
        r->out[j].i =
            random_word((uint64_t)r->at[0][j * r->step[0]].i, (uint64_t)r->at[1][j * r->step[1]].i);
}

uint8_t cell_bad(const Op *op, const Cell c[3], const uint8_t bad[3]) {
    if (op->kind == OP_SELECT)
        return bad[0] ? bad[0] : bad[c[0].i ? 1 : 2];
    bool is_bool = op->res[0]->type.dtype == DT_BOOL;
    if (is_bool && (op->kind == OP_AND || op->kind == OP_OR)) {
        bool decides = op->kind == OP_OR;
        for (int i = 0; i < op->nin; i++) {
            if (!bad[i] && (c[i].i != 0) == decides)
                return 0;
        }
    }
    return bad[0] | bad[1] | bad[2];
}

static uint8_t row_bad_at(const Op *op, const Row *r, int64_t j) {
    uint8_t bad[3] = {0};
    Cell c[3];
    for (int i = 0; i < op->nin; i++) {
        bad[i] = r->bad[i] ? r->bad[i][j * r->step[i]] : 0;
        c[i] = r->at[i][j * r->step[i]];
    }
    return cell_bad(op, c, bad);
}

static void row_run(Eval *e, const Op *op, const Row *r, DType from, DType to) {
    switch ((int)op->kind) {
    case OP_SELECT:
        row_select(r);
        return;
    case OP_CAST:
        row_cast(r, from, to);
        return;
    case OP_BITCAST:
        row_bitcast(r, from, to);
        return;
    case OP_CMP:
        row_compare(r, (CmpKind)op->sub, from);
        return;
    case OP_RAND:
        row_rand(r);
        return;
    }
    FloatFn *ffn = dtype_is_float(from) ? float_fn(op->kind, from) : NULL;
    IntFn *ifn = dtype_is_float(from) ? NULL : int_fn(op->kind);
    if (ffn)
        row_float(r, ffn, to, to == DT_F64 || op_has(op->kind, TRAIT_MOVES));
    else if (ifn)
        row_int(r, ifn, to);
    else
        eval_fail(e, op, "is not defined on %s", dtype_name(from));
}

bool eval_scalar_op(const Op *op, const Scalar *in, Scalar *out) {
    DType to = op->res[0]->type.dtype;
    if (op->nin < 1 || op->nin > 3 || !op_has(op->kind, TRAIT_ELEMENTWISE))
        return false;
    DType from = in[0].dtype;
    bool has_own_row = op->kind == OP_SELECT || op->kind == OP_CAST || op->kind == OP_BITCAST ||
                       op->kind == OP_CMP || op->kind == OP_RAND;
    if (!has_own_row &&
        !(dtype_is_float(from) ? float_fn(op->kind, from) != NULL : int_fn(op->kind) != NULL))
        return false;
    Cell cell[3], result = {0};
    Row row = {.n = 1, .out = &result};
    for (int i = 0; i < 3; i++) { // missing operands repeat the first
        cell[i] = cell_from(in[i < op->nin ? i : 0]);
        row.at[i] = &cell[i];
    }
    row_run(NULL, op, &row, from, to); // cannot fail: the op is defined
    *out = cell_scalar(to, result);
    return true;
}

void eval_elementwise(Eval *e, const Op *op) {
    Type type = op->res[0]->type;
    if (op->nin < 1 || op->nin > 3)
        eval_fail(e, op, "has %d operands", op->nin);
    Tile *out = tile_new(e, op, type.dtype, type.axes);
    Walk w;
    walk_start(e, op, &w, type.axes);
    const Tile *in[3];
    bool any_bad = false;
    for (int i = 0; i < 3; i++) { // missing operands repeat the first
        in[i] = i < op->nin ? eval_value(e, op, op->in[i]) : in[0];
        walk_tile(e, op, &w, in[i]);
        any_bad = any_bad || in[i]->bad;
    }
    if (any_bad)
        tile_bad(e, op, out);
    DType from = in[0]->dtype;
    // Rows run along the last axis; the walk visits the others.
    int last = type.axes.n - 1;
    Row row = {.n = last < 0 ? 1 : w.n[last]};
    for (int i = 0; i < 3; i++)
        row.step[i] = last < 0 ? 0 : w.step[i][last];
    if (last >= 0) {
        w.axes.n--;
        w.count = row.n ? w.count / row.n : 0;
    }
    for (int64_t at = 0; at < w.count; at++, walk_next(&w)) {
        row.out = out->cell + at * row.n;
        for (int i = 0; i < 3; i++)
            row.at[i] = in[i]->cell + w.at[i];
        row_run(e, op, &row, from, type.dtype);
        if (!any_bad)
            continue;
        for (int i = 0; i < 3; i++)
            row.bad[i] = in[i]->bad ? in[i]->bad + w.at[i] : NULL;
        for (int64_t j = 0; j < row.n; j++)
            out->bad[at * row.n + j] = row_bad_at(op, &row, j);
    }
    check_elementwise(e, op, out, in);
    eval_set(e, op->res[0], out);
}

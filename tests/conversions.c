// Conversions (`as`) of every element type to every other on the devices eval, cpu and sim, bit for
// bit against arithmetic on exact values: a number is a sign and an integer times a power of two,
// and rounds or truncates by shifts. Nothing here uses lang/base/numeric.c.
//
// Inputs: every number of the types of 4, 8 and 16 bits; of the wider ones those at which the
// narrower ones round (numbers, half way points between two, the neighbours of both), the
// ends of the integers, infinities, NaN, subnormal numbers and random ones.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fuse_rt.h"
#include "include/fusec.h"

typedef enum Kind { KIND_FLOAT, KIND_SIGNED, KIND_UNSIGNED, KIND_BOOL } Kind;

typedef struct Type {
    const char *name;
    Kind kind;
    int bits, dlpack;
    // floats: bits of the mantissa with the leading 1, exponent of the least normal number, codes
    // of the largest number, of what is larger, and the least code of a NaN
    int precision, exponent_min;
    uint64_t max, over, nan;
} Type;

static const Type types[] = {
    {"f16", KIND_FLOAT, 16, kDLFloat, 11, -14, 0x7bff, 0x7c00, 0x7c01},
    {"bf16", KIND_FLOAT, 16, kDLBfloat, 8, -126, 0x7f7f, 0x7f80, 0x7f81},
    {"e4m3", KIND_FLOAT, 8, kDLFloat8_e4m3fn, 4, -6, 0x7e, 0x7e, 0x7f},
    {"e5m2", KIND_FLOAT, 8, kDLFloat8_e5m2, 3, -14, 0x7b, 0x7b, 0x7d},
    {"f32", KIND_FLOAT, 32, kDLFloat, 24, -126, 0x7f7fffff, 0x7f800000, 0x7f800001},
    {"f64", KIND_FLOAT, 64, kDLFloat, 53, -1022, 0x7fefffffffffffff, 0x7ff0000000000000,
     0x7ff0000000000001},
    {"i8", KIND_SIGNED, 8, kDLInt, 0, 0, 0, 0, 0},
    {"i16", KIND_SIGNED, 16, kDLInt, 0, 0, 0, 0, 0},
    {"i32", KIND_SIGNED, 32, kDLInt, 0, 0, 0, 0, 0},
    {"i64", KIND_SIGNED, 64, kDLInt, 0, 0, 0, 0, 0},
    {"u8", KIND_UNSIGNED, 8, kDLUInt, 0, 0, 0, 0, 0},
    {"u16", KIND_UNSIGNED, 16, kDLUInt, 0, 0, 0, 0, 0},
    {"u32", KIND_UNSIGNED, 32, kDLUInt, 0, 0, 0, 0, 0},
    {"u64", KIND_UNSIGNED, 64, kDLUInt, 0, 0, 0, 0, 0},
    {"bool", KIND_BOOL, 8, kDLBool, 0, 0, 0, 0, 0},
    {"i4", KIND_SIGNED, 4, kDLInt, 0, 0, 0, 0, 0},
    {"u4", KIND_UNSIGNED, 4, kDLUInt, 0, 0, 0, 0, 0},
};
enum {
    TYPES = sizeof types / sizeof *types,
    SMALL_FLOATS = 4,
    COUNT_MAX = 1 << 17,
    PATTERN = 0xa5
};

static uint64_t ones(int bits) {
    return bits >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

// --- exact values ---

typedef enum Class { FINITE, INFINITE, NOT_A_NUMBER } Class;

// (-1)^negative * m * 2^e
typedef struct Exact {
    Class class;
    bool negative;
    uint64_t m;
    int e;
} Exact;

static Exact decode(const Type *t, uint64_t code) {
    Exact x = {.class = FINITE};
    if (t->kind != KIND_FLOAT) {
        x.negative = t->kind == KIND_SIGNED && code >> (t->bits - 1);
        x.m = x.negative ? (~code & ones(t->bits)) + 1 : code;
        return x;
    }
    uint64_t magnitude = code & ones(t->bits - 1), field = magnitude >> (t->precision - 1);
    x.negative = code >> (t->bits - 1) & 1;
    x.m = magnitude & ones(t->precision - 1);
    x.e = t->exponent_min - t->precision + 1;
    if (magnitude > t->max) { // e5m2 has infinities, though no conversion makes one
        x.class = magnitude >= t->nan ? NOT_A_NUMBER : INFINITE;
        return x;
    }
    if (field) {
        x.m |= UINT64_C(1) << (t->precision - 1);
        x.e += (int)field - 1;
    }
    return x;
}

// m * 2^-shift to the nearest integer, ties to even.
static uint64_t shift_round(uint64_t m, int shift) {
    if (shift <= 0)
        return m << -shift;
    if (shift > 64)
        return 0;
    uint64_t kept = shift == 64 ? 0 : m >> shift, half = UINT64_C(1) << (shift - 1);
    uint64_t rest = m & ones(shift);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint64_t to_float(const Type *t, Exact x) {
    uint64_t sign = (uint64_t)x.negative << (t->bits - 1);
    if (x.class == NOT_A_NUMBER)
        return t->nan;
    if (x.class == INFINITE)
        return sign | t->over;
    if (x.m == 0)
        return sign;
    while (x.m >> 63 == 0) {
        x.m <<= 1;
        x.e--;
    }
    int exponent = x.e + 63, least = t->exponent_min;
    int unit = (exponent > least ? exponent : least) - t->precision + 1; // of the last bit
    uint64_t kept = shift_round(x.m, unit - x.e);
    // A mantissa with its leading 1 counts in the exponent's field; so does one that carries.
    uint64_t field = (uint64_t)(unit - (least - t->precision + 1));
    if (field > 2 * (uint64_t)(1 - least) + 1)
        return sign | t->over;
    uint64_t code = (field << (t->precision - 1)) + kept;
    return sign | (code > t->max ? t->over : code);
}

static uint64_t float_to_int(const Type *t, Exact x) {
    if (x.class == NOT_A_NUMBER)
        return 0;
    bool is_signed = t->kind == KIND_SIGNED;
    uint64_t most = is_signed    ? ones(t->bits - 1) + (x.negative ? 1 : 0)
                    : x.negative ? 0
                                 : ones(t->bits);
    uint64_t m = x.m;
    bool large = x.class == INFINITE;
    for (int e = x.e; !large && e > 0 && m; e--) {
        large = m >> 63;
        m <<= 1;
    }
    if (x.e < 0)
        m = x.e <= -64 ? 0 : m >> -x.e;
    if (large || m > most)
        m = most;
    return (x.negative ? ~m + 1 : m) & ones(t->bits);
}

static uint64_t convert(const Type *from, const Type *to, uint64_t code) {
    Exact x = decode(from, code);
    if (to->kind == KIND_BOOL)
        return x.class != FINITE || x.m != 0;
    if (to->kind == KIND_FLOAT)
        return to_float(to, x);
    if (from->kind == KIND_FLOAT)
        return float_to_int(to, x);
    return (x.negative ? ~x.m + 1 : x.m) & ones(to->bits); // integers wrap
}

static bool is_same(const Type *t, uint64_t got, uint64_t want) {
    if (t->kind == KIND_FLOAT && (want & ones(t->bits - 1)) >= t->nan)
        return (got & ones(t->bits - 1)) >= t->nan;
    return got == want;
}

// --- memory ---

static uint64_t load(const Type *t, const uint8_t *from, int64_t i) {
    if (t->bits == 4)
        return from[i / 2] >> (i % 2 * 4) & 15;
    uint64_t code = 0;
    memcpy(&code, from + i * t->bits / 8, (size_t)t->bits / 8);
    return code;
}

static void store(const Type *t, uint8_t *to, int64_t i, uint64_t code) {
    if (t->bits == 4)
        to[i / 2] = (uint8_t)((to[i / 2] & (i % 2 ? 15 : 240)) | code << (i % 2 * 4));
    else
        memcpy(to + i * t->bits / 8, &code, (size_t)t->bits / 8);
}

// --- inputs ---

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ *state >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

typedef struct Inputs {
    const Type *type;
    uint8_t *data;
    int64_t count;
} Inputs;

static void put(Inputs *in, uint64_t code) {
    cr_assert(in->count < COUNT_MAX);
    store(in->type, in->data, in->count++, code & ones(in->type->bits));
}

// A number and its neighbours, or an integer's.
static void put_around(Inputs *in, uint64_t code) {
    for (uint64_t d = 0; d < 3; d++)
        put(in, code + d - 1);
}

// Where the small float type s rounds: around the middle of each two numbers (of f16 and bf16 of
// one pair in seven), and a number itself. Signs alternate.
static void put_roundings(Inputs *in, const Type *s) {
    uint64_t step = s->bits == 16 ? 7 : 1; // odd and even numbers by turns
    for (uint64_t c = 0; c <= s->max; c += step) {
        Exact x = decode(s, c);
        Exact middle = {.class = FINITE, .m = 2 * x.m + 1, .e = x.e - 1};
        x.negative = middle.negative = c / step & 1;
        if (in->type->kind == KIND_FLOAT) {
            put_around(in, to_float(in->type, middle));
            put(in, to_float(in->type, x));
        } else if (middle.e > 0 && middle.e + 12 < in->type->bits) {
            uint64_t i = middle.m << middle.e;
            put_around(in, middle.negative ? ~i + 1 : i);
        }
    }
}

// Where integers end: around the powers of two and their negatives, with a fraction for floats.
static void put_ends(Inputs *in) {
    for (int e = -2; e < 70; e++)
        for (int negative = 0; negative < 2; negative++)
            for (uint64_t half = 0; half < 4; half++) {
                Exact x = {FINITE, negative, (UINT64_C(4) << (e < 20 ? 20 : 4)) + half - 1,
                           e - (e < 20 ? 22 : 6)};
                if (in->type->kind == KIND_FLOAT)
                    put_around(in, to_float(in->type, x));
                else if (e >= 0 && e < in->type->bits)
                    put_around(in, (negative ? ~UINT64_C(0) << e : UINT64_C(1) << e) + half - 2);
            }
}

static void put_wide(Inputs *in) {
    const Type *t = in->type;
    uint64_t seed = 11;
    for (int s = 0; s < SMALL_FLOATS; s++)
        put_roundings(in, &types[s]);
    put_ends(in);
    if (t->kind == KIND_FLOAT) {
        uint64_t sign = UINT64_C(1) << (t->bits - 1);
        for (uint64_t d = 0; d < 4;
             d++) { // zeros and subnormals, the largest numbers, infinities, NaN
            put(in, d), put(in, sign | d);
            put(in, t->max + d - 1), put(in, sign | (t->max + d - 1));
        }
        for (int i = 0; i < 4096; i++) // of moderate size
            put(in, to_float(t, (Exact){FINITE, i & 1, next(&seed), -(i % 96)}));
    }
    if (t->bits == 64 && t->kind == KIND_FLOAT)
        for (int i = 0; i < 2048; i++) { // half way between two of f32, subnormal ones too
            uint64_t code = next(&seed) & (i % 8 ? 0x7fffffff : 0x7fffff);
            Exact x = decode(&types[4], code > 0x7f7ffffe ? code - 0x1000000 : code);
            put_around(in, to_float(t, (Exact){FINITE, i & 1, 2 * x.m + 1, x.e - 1}));
        }
    for (int i = 0; i < 4096; i++)
        put(in, t->kind == KIND_FLOAT ? next(&seed) : next(&seed) >> i % t->bits);
}

static Inputs inputs_of(const Type *t) {
    Inputs in = {.type = t, .data = calloc(COUNT_MAX, 8)};
    if (t->bits > 16)
        put_wide(&in);
    else // the last is an odd one: half a byte of packed ones
        for (uint64_t c = 0; c < (t->kind == KIND_BOOL ? 3 : (UINT64_C(1) << t->bits) + 1); c++)
            put(&in, t->kind == KIND_BOOL ? c & 1 : c);
    return in;
}

// --- running ---

static char *kernel_text(const Type *from) {
    char *text = calloc(1, 4096);
    int at = sprintf(text, "kernel casts(x: %s[N]) -> (", from->name);
    for (int i = 0; i < TYPES; i++)
        at += sprintf(text + at, "%sy%d: %s[N]", i ? ", " : "", i, types[i].name);
    at += sprintf(text + at, ") {\n    parallel n in tiles(N) {\n        let v = x[n] as %s;\n",
                  from->name);
    for (int i = 0; i < TYPES; i++)
        at += sprintf(text + at, "        y%d[n] = v as %s;\n", i, types[i].name);
    sprintf(text + at, "    }\n}\n");
    return text;
}

static DLTensor tensor_of(const Type *t, void *data, int64_t *count) {
    return (DLTensor){.data = data,
                      .device = {kDLCPU, 0},
                      .ndim = 1,
                      .dtype = {(uint8_t)t->dlpack, (uint8_t)t->bits, 1},
                      .shape = count};
}

static void run(const char *on, const Type *from, Inputs *in, uint8_t **out) {
    static const FuseCompilerApi compiler = FUSE_COMPILER_API;
    FuseRtDeviceOptions options = {.compiler = &compiler, .threads = 1};
    FuseRtBuild build = {.no_perf_notes = true};
    FuseDevice *device;
    FuseModule *module;
    FuseKernel *kernel;
    char *text = kernel_text(from);
    DLTensor tensor[TYPES + 1];
    FuseRtArg args[TYPES + 1];
    for (int i = 0; i <= TYPES; i++) {
        tensor[i] = i ? tensor_of(&types[i - 1], out[i - 1], &in->count)
                      : tensor_of(from, in->data, &in->count);
        args[i] = (FuseRtArg){.kind = FUSE_RT_TENSOR, .tensor = &tensor[i]};
    }
    cr_assert_eq(fuse_rt_device_open(on, &options, &device), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
    FuseRtStatus status =
        fuse_rt_module_from_source(device, "casts.fk", text, strlen(text), &build, &module);
    cr_assert_eq(status, FUSE_RT_OK, "%s on %s: %s", from->name, on, fuse_rt_last_error());
    cr_assert_eq(fuse_rt_kernel_find(module, NULL, &kernel), FUSE_RT_OK);
    status = fuse_rt_launch(kernel, NULL, TYPES + 1, args, NULL);
    cr_assert_eq(status, FUSE_RT_OK, "%s on %s: %s", from->name, on, fuse_rt_last_error());
    fuse_rt_module_close(module);
    fuse_rt_device_close(device);
    free(text);
}

static int64_t compare(const char *on, const Type *from, const Type *to, const Inputs *in,
                       const uint8_t *out) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < in->count; i++) {
        uint64_t code = load(from, in->data, i), got = load(to, out, i);
        uint64_t want = from == to ? code : convert(from, to, code);
        if (!is_same(to, got, want) && wrong++ < 3)
            printf("%s: %s %llx as %s is %llx, not %llx\n", on, from->name,
                   (unsigned long long)code, to->name, (unsigned long long)got,
                   (unsigned long long)want);
    }
    // The other half of the last byte is nobody's.
    if (to->bits == 4 && in->count % 2 && out[in->count / 2] >> 4 != PATTERN >> 4 && wrong++ == 0)
        printf("%s: %s as %s writes past the end\n", on, from->name, to->name);
    return wrong;
}

static void check(const Type *from) {
    static const char *const devices[] = {"eval", "cpu", "sim:sm_90a"};
    Inputs in = inputs_of(from);
    uint8_t *out[TYPES];
    int64_t wrong = 0;
    for (int i = 0; i < TYPES; i++)
        out[i] = malloc((size_t)in.count * 8);
    for (int d = 0; d < 3; d++) {
        for (int i = 0; i < TYPES; i++)
            memset(out[i], PATTERN, (size_t)in.count * 8);
        run(devices[d], from, &in, out);
        for (int i = 0; i < TYPES; i++)
            wrong += compare(devices[d], from, &types[i], &in, out[i]);
    }
    for (int i = 0; i < TYPES; i++)
        free(out[i]);
    free(in.data);
    fflush(stdout);
    cr_assert_eq(wrong, 0, "%s: %lld conversions are wrong", from->name, (long long)wrong);
}

static void check_kind(Kind kind, int bits_min, int bits_max) {
    for (int i = 0; i < TYPES; i++)
        if (types[i].kind == kind && types[i].bits >= bits_min && types[i].bits <= bits_max)
            check(&types[i]);
}

Test(conversions, floats_of_8_and_16_bits) {
    check_kind(KIND_FLOAT, 8, 16);
}

Test(conversions, floats_of_32_and_64_bits) {
    check_kind(KIND_FLOAT, 32, 64);
}

Test(conversions, signed_integers) {
    check_kind(KIND_SIGNED, 4, 64);
}

Test(conversions, unsigned_integers) {
    check_kind(KIND_UNSIGNED, 4, 64);
}

Test(conversions, bools) {
    check_kind(KIND_BOOL, 8, 8);
}

// The reference itself, against what can be said without arithmetic.
Test(conversions, reference) {
    const Type *half = &types[0], *e4m3 = &types[2], *single = &types[4], *i8 = &types[6],
               *u8 = &types[10];
    cr_expect_eq(convert(single, half, 0x3f800000), 0x3c00);
    cr_expect_eq(convert(single, half, 0x477fefff), 0x7bff); // just below 65520
    cr_expect_eq(convert(single, half, 0x477ff000), 0x7c00);
    cr_expect_eq(convert(single, half, 0x33000000), 0); // 2^-25: a tie with 0
    cr_expect_eq(convert(single, half, 0x33000001), 1);
    cr_expect_eq(convert(single, e4m3, 0xff800000), 0xfe);
    cr_expect_eq(convert(single, i8, 0xc3800000), 0x80); // -256
    cr_expect_eq(convert(single, i8, 0x42ffcccd), 127);  // 127.9
    cr_expect_eq(convert(single, u8, 0xbf800000), 0);
    cr_expect_eq(convert(single, u8, 0x7f7fffff), 255);
    cr_expect_eq(convert(i8, half, 0xff), 0xbc00);
    cr_expect_eq(convert(half, single, 1), 0x33800000);
}

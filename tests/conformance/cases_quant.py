"""References of quant.fk."""

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "quant.fk"
SCALE = lambda text: uniform(text, 0.01, 0.1)
BYTES = lambda text: ints(text, -128, 128)


@case(
    FK,
    "M N K G | 1 1 4 4 | 3 5 48 16 | 17 20 32 16 | 1 3 128 128",
    defines="G",
    types=("f16", "bf16"),
    x="T[M,K]",
    w=ints("u4[N,K]", 0, 16),
    s=SCALE("T[N,K//G]"),
    z=ints("u4[N,K//G]", 0, 16),
)
def w4a16(a):
    w = (a.w - np.repeat(a.z, a.G, 1)).astype(float) * B(np.repeat(a.s.v, a.G, 1))
    return dict(y=einsum("mk,nk->mn", a.x, w.to(a.T)))


WEIGHT = "M N K | 1 1 1 | 3 5 7 | 17 33 65 | 0 4 3 | 2 40 130"


def rows(a):
    return dict(y=einsum("mk,nk->mn", a.x, a.w) * a.s)


@case(FK, "M N K | 1 1 2 | 3 5 7 | 17 33 64 | 0 4 6", types=("f16", "bf16"), x="T[M,K]", w=ints("i4[N,K]", -8, 8), s=SCALE("f32[N]"))
def w4_rows(a):
    return rows(a)


@case(FK, WEIGHT, types=("f16", "bf16"), x="T[M,K]", w=BYTES("i8[N,K]"), s=SCALE("f32[N]"))
def w8a16(a):
    return rows(a)


@case(FK, "N H | 1 1 | 0 3 | 5 7 | 33 40", types=("u8",), x=ints("u8[N,H]", 0, 256))
def unpack_bytes(a):
    return dict(y=np.stack([a.x & 15, a.x >> 4], -1).reshape(a.N, 2 * a.H))


@case(FK, "N H | 1 1 | 0 3 | 5 7 | 33 40", types=("i4",), x=ints("i4[N,2*H]", -8, 8))
def pack_bytes(a):
    return dict(y=(a.x[:, ::2] & 15) | (a.x[:, 1::2] & 15) << 4)


def clamp(x, lo, hi):
    return minimum(maximum(x, lo), hi)


def row_scale(x, top=127.0):
    return maximum(amax(abs(x), -1) / top, 1e-12)


LINES = "M K | 1 1 | 0 5 | 3 7 | 5 64 | 2 300"


@case(FK, LINES, x=uniform("T[M,K]", -4, 4))
def quantize_rows(a):
    s = row_scale(a.x)
    return dict(s=s, q=clamp(round_away(a.x / s[:, None]), -128, 127))


@case(FK, LINES, q=BYTES("i8[M,K]"), s=SCALE("f32[M]"))
def dequantize_rows(a):
    return dict(y=B(a.q) * a.s[:, None])


@case(FK, "M K G | 1 4 4 | 0 8 4 | 3 24 8 | 2 256 64", defines="G", x=uniform("T[M,K]", -2, 4))
def quantize_groups(a):
    v = a.x.reshape(a.M, a.K // a.G, a.G)
    lo = minimum(amin(v, -1), 0)
    s = maximum((maximum(amax(v, -1), 0) - lo) / 255, 1e-8)
    z = round_away(-lo / s)
    q = clamp(round_away(v / s[..., None]) + z[..., None], 0, 255)
    return dict(s=s, z=z, q=q.reshape(a.M, a.K))


@case(FK, "N | 1 | 0 | 7 | 300", x=uniform("T[N]", -4, 4), dy="T[N]", s=0.375)
def fake_quant(a):
    q = round_away(a.x / a.s)
    sure = q.e == 0  # else the quotient may be on either side of a step, and of a limit
    limit = sure | ((q.v > -8) & (q.v < 7))
    return dict(y=clamp(q, -8, 7) * a.s, dx=where(limit, where((q.v >= -8) & (q.v <= 7), a.dy, 0), B(a.dy.v, np.abs(a.dy.v))))


def scaled(a, x):
    z = x @ a.w.T
    return B(z, U * np.abs(z)) * a.sx[:, None] * a.sw


@case(FK, WEIGHT, x=BYTES("i8[M,K]"), w=BYTES("i8[N,K]"), sx=SCALE("f32[M]"), sw=SCALE("f32[N]"), b="T[N]")
def w8a8(a):
    return dict(y=scaled(a, a.x) + a.b)


@case(FK, WEIGHT, types=("f32",), x=ints("u8[M,K]", 0, 256), w=BYTES("i8[N,K]"), z=ints("i32[M]", 0, 256), s=SCALE("f32[N]"))
def w8a8_zero(a):
    z = (a.x - a.z[:, None]) @ a.w.T
    return dict(y=B(z, U * np.abs(z)) * a.s)


@case(FK, "M N K | 1 1 1 | 3 5 7 | 0 4 3 | 4 9 33", x=uniform("T[M,K]", -4, 4), w=BYTES("i8[N,K]"), sw=SCALE("f32[N]"))
def w8a8_dynamic(a):
    c = row_scale(a.x)
    q = clamp(round_away(a.x / c[:, None]), -128, 127)
    # products of integers are exact: only what a rounding may choose counts
    z = q.v @ a.w.T
    e = q.e @ np.abs(a.w.T)
    return dict(y=B(z, e + U * np.abs(z)) * c[:, None] * a.sw)


@case(FK, "M K G | 1 16 16 | 0 32 16 | 3 48 16 | 2 256 128", defines="G", x=uniform("T[M,K]", -4, 4))
def fp8_quantize(a):
    v = a.x.reshape(a.M, a.K // a.G, a.G)
    s = row_scale(v, 448.0)
    return dict(s=s, q=(v / s[..., None]).reshape(a.M, a.K))


def product8(x, w):
    """The matrix unit of sm_90 keeps 13 bits behind the largest product of those it adds at once."""
    y = einsum("mk,nk->mn", x, w)
    size = np.abs(x.v) @ np.abs(w.v.T)
    return B(y.v, y.e + 2.0**-13 * size)


@case(
    FK,
    "M N K G | 1 1 16 16 | 3 5 48 16 | 17 40 128 32 | 4 130 256 128",
    defines="G",
    x="e4m3[M,K]",
    w="e4m3[N,K]",
    sx=SCALE("f32[M,K//G]"),
    sw=SCALE("f32[-(-N//G),K//G]"),
)
def fp8_blockwise(a):
    y = zeros(a.M, a.N)
    for g in range(a.K // a.G):
        k = slice(g * a.G, (g + 1) * a.G)
        sw = a.sw[np.arange(a.N) // a.G, g]
        y = y + product8(a.x[:, k], a.w[:, k]) * a.sx[:, g, None] * sw
    return dict(y=y)


@case(FK, WEIGHT, types=("f16", "bf16"), x="e4m3[M,K]", w="e4m3[N,K]", sx=SCALE("f32[M]"), sw=SCALE("f32[N]"))
def fp8_rows(a):
    return dict(y=product8(a.x, a.w) * a.sx[:, None] * a.sw)


@case(FK, WEIGHT, types=("f16",), x="e5m2[M,K]", w="e4m3[N,K]", sx=SCALE("f32[M]"), sw=SCALE("f32[N]"))
def fp8_grad(a):
    return dict(y=product8(a.x, a.w) * a.sx[:, None] * a.sw)


@case(FK, "M N | 1 1 | 3 7 | 5 130", x=uniform("T[M,N]", -4, 4), s=uniform("f32[1]", 50, 200))
def fp8_cast(a):
    return dict(y=a.x * a.s, amax=amax(abs(a.x)).reshape(1))


@case(FK, "M N W | 1 1 1 | 0 3 2 | 5 7 3 | 17 33 9", types=("u32",), a=ints("u32[M,W]", 0, 2**32), b=ints("u32[N,W]", 0, 2**32))
def xnor_gemm(s):
    differ = s.a[:, None, :] ^ s.b
    ones = sum_bits(differ).sum(-1)
    return dict(y=32 * s.W - 2 * ones)


def sum_bits(x):
    return np.add.reduce([(x >> i) & 1 for i in range(32)])


@case(FK, "H L D | 1 1 1 | 2 0 8 | 3 7 5 | 2 65 64", q="T[H,D]", k=BYTES("i8[H,L,D]"), s=SCALE("f32[H,L]"))
def scores_i8(a):
    return dict(z=einsum("hd,hld->hl", a.q, a.k) * a.s)

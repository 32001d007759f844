"""References of elementwise.fk."""

import math

from bounded import *
from harness import case, ints, made, uniform

FK = "elementwise.fk"
ROWS = "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300"
LINE = "N | 1 | 0 | 7 | 64 | 300 | 1030"
WIDE = uniform("T[N]", -4, 4)


def inner(a, b):
    return (val(a) * val(b)).sum()


@case(FK, ROWS, x="T[M,N]", b="T[N]")
def bias_gelu(a):
    return dict(y=gelu(a.x + a.b))


@case(FK, ROWS, x="T[M,N]", b="T[N]")
def bias_gelu_tanh(a):
    return dict(y=gelu_tanh(a.x + a.b))


@case(FK, LINE, x=WIDE, dy="T[N]", loss=lambda a: inner(a.dy, gelu(a.x)), wrt=dict(dx="x"))
def gelu_bwd(a):
    density = exp(-0.5 * a.x * a.x) / math.sqrt(2 * math.pi)
    return dict(dx=a.dy * (0.5 * (1 + erf(a.x * math.sqrt(0.5))) + a.x * density))


@case(FK, LINE, x=WIDE, dy="T[N]", loss=lambda a: inner(a.dy, gelu_tanh(a.x)), wrt=dict(dx="x"))
def gelu_tanh_bwd(a):
    c = math.sqrt(2 / math.pi)
    t = tanh(c * (a.x + 0.044715 * a.x * a.x * a.x))
    return dict(dx=a.dy * (0.5 * (1 + t) + 0.5 * a.x * (1 - t * t) * (c + 3 * c * 0.044715 * a.x * a.x)))


@case(FK, LINE, x=WIDE, dy="T[N]", loss=lambda a: inner(a.dy, silu(a.x)), wrt=dict(dx="x"))
def silu_bwd(a):
    s = sigmoid(a.x)
    return dict(dx=a.dy * s * (1 + a.x * (1 - s)))


def mish(x):
    return x * tanh(softplus(x))


@case(FK, LINE, x=WIDE)
def mish_fwd(a):
    return dict(y=mish(a.x))


@case(FK, LINE, x=WIDE, dy="T[N]", loss=lambda a: inner(a.dy, mish(a.x)), wrt=dict(dx="x"))
def mish_bwd(a):
    t = tanh(softplus(a.x))
    return dict(dx=a.dy * (t + a.x * sigmoid(a.x) * (1 - t * t)))


@case(FK, LINE, x=WIDE)
def activations(a):
    x = a.x
    return dict(
        a=relu(x),
        b=where(x > 0, x, 0.1 * x),
        c=minimum(maximum(4 * x, 0), 6),
        d=where(x > 0, x, exp(x) - 1),
        e=4 * x * minimum(maximum(4 * x + 3, 0), 6) / 6,
        f=log(1 + exp(x)),
    )


@case(FK, "N D | 1 1 | 0 3 | 7 0 | 64 5 | 300 9", x="T[N]", c="f32[D]")
def polynomial(a):
    y = zeros(a.N)
    for d in reversed(range(a.D)):
        y = y * a.x + a.c[d]
    return dict(y=y)


@case(FK, ROWS, x=uniform("T[M,N]", -50, 50), cap=30.0)
def softcap(a):
    return dict(y=a.cap * tanh(a.x / a.cap))


@case(FK, ROWS, x=uniform("T[M,N]", -50, 50), dy="T[M,N]", cap=30.0, loss=lambda a: inner(a.dy, a.cap * tanh(a.x / a.cap)), wrt=dict(dx="x"))
def softcap_bwd(a):
    t = tanh(a.x / a.cap)
    return dict(dx=a.dy * (1 - t * t))


PACKED = "M F | 1 1 | 0 3 | 3 7 | 5 64 | 17 33 | 2 300"


@case(FK, PACKED, x="T[M,2*F]")
def swiglu_packed(a):
    return dict(y=silu(a.x[:, : a.F]) * a.x[:, a.F :])


@case(FK, PACKED, x="T[M,2*F]")
def geglu_interleaved(a):
    return dict(y=gelu_tanh(a.x[:, ::2]) * a.x[:, 1::2])


@case(FK, PACKED, x="T[M,2*F]", dy="T[M,F]", loss=lambda a: inner(a.dy, silu(a.x[:, : a.F]) * a.x[:, a.F :]), wrt=dict(dx="x"))
def swiglu_packed_bwd(a):
    p, q = a.x[:, : a.F], a.x[:, a.F :]
    s = sigmoid(p)
    return dict(dx=concat([a.dy * q * s * (1 + p * (1 - s)), a.dy * p * s], 1))


@case(FK, "B S H D2 | 1 1 1 1 | 1 0 2 4 | 2 5 3 8 | 1 33 2 32", x="T[B,S,H,2*D2]", c="f32[S,D2]", s="f32[S,D2]")
def rope_half(a):
    p, q = a.x[..., : a.D2], a.x[..., a.D2 :]
    c, s = a.c[:, None], a.s[:, None]
    return dict(y=concat([p * c - q * s, q * c + p * s], 3))


@case(FK, "S H D | 1 1 2 | 0 2 4 | 5 3 8 | 33 2 64", defines="D", x="T[S,H,D]", theta=10000.0, offset=3)
def rope_pairs(a):
    power = B(np.arange(a.D // 2) * 2.0 / a.D) * log2(B(a.theta))
    angle = B(np.arange(a.S)[:, None] + a.offset) * exp2(-power)
    c, s = cos(angle)[:, None], sin(angle)[:, None]
    p, q = a.x[..., ::2], a.x[..., 1::2]
    return dict(y=stack([p * c - q * s, q * c + p * s], 3).reshape(a.S, a.H, a.D))


@case(FK, "S H D | 1 1 2 | 0 2 4 | 5 3 8 | 17 2 64", defines="D", x="T[S,H,D]", c="f32[S,D]", s="f32[S,D]")
def rope_take(a):
    half = a.D // 2
    turned = concat([-a.x[..., half:], a.x[..., :half]], 2)
    return dict(y=a.x * a.c[:, None] + turned * a.s[:, None])


def philox(seed, counter):
    """Philox 4x32-10 (Salmon et al., SC 2011): the four words of each counter."""
    mask = np.uint64(0xFFFFFFFF)
    x = [counter & mask, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [b >> np.uint64(32) ^ x[1] ^ key[0], b & mask, a >> np.uint64(32) ^ x[3] ^ key[1], a & mask]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return np.stack(x, -1)


def random_unit(seed, n):
    words = philox(seed, np.arange((n + 3) // 4, dtype=np.uint64)).reshape(-1)[:n]
    return (words >> np.uint64(8)).astype(np.float64) * 2.0**-24


SEED = 0x123456789ABCDEF


@case(FK, ROWS, x="T[M,N]", p=0.25, seed=SEED)
def dropout(a):
    keep = random_unit(SEED, a.M * a.N).reshape(a.M, a.N) >= a.p
    assert a.M * a.N < 100 or 0.15 < 1 - keep.mean() < 0.35
    return dict(y=where(keep, a.x / (1 - B(a.p)), 0))


@case(FK, ROWS, dy="T[M,N]", p=0.25, seed=SEED)
def dropout_add_bwd(a):
    keep = random_unit(SEED, a.M * a.N).reshape(a.M, a.N) >= a.p
    return dict(dx=where(keep, a.dy / (1 - B(a.p)), 0), dres=a.dy)


@case(FK, "H W C | 1 1 1 | 0 3 3 | 5 7 3 | 16 16 3", x=ints("u8[H,W,C]", 0, 256), mu="f32[C]", sd=uniform("f32[C]", 0.1, 1))
def normalize_bytes(a):
    return dict(y=((B(a.x) / 255.0 - a.mu) / a.sd).transpose(2, 0, 1))


@case(FK, LINE, a=2.5, x="T[N]", y="T[N]")
def axpy(a):
    return dict(y=a.y + a.a * a.x)


@case(FK, LINE, types=("f32",), z="f32[N,2]")
def polar(a):
    p, q = a.z[:, 0], a.z[:, 1]
    m = sqrt(p * p + q * q)
    return dict(r=m, c=p / m, s=q / m)


def with_bad(r, shape, a):
    x = r.uniform(-1, 1, shape)
    return np.where(r.random(shape) < 0.2, r.choice([np.nan, np.inf, -np.inf], shape), x)


@case(FK, LINE, x=made("T[N]", with_bad), v=-3.0)
def nan_to_num(a):
    bad = ~np.isfinite(a.x.v)
    return dict(y=B(np.where(bad, a.v, a.x.v)), bad=np.array([bad.sum()]))

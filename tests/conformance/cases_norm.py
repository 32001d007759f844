"""References of norm.fk."""

from bounded import *  # noqa: F403
from harness import case, derived, ints, made, uniform

FK = "norm.fk"
ROWS = "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300 | 2 1030"


def stats(x, eps, axis=-1):
    return mean(x, axis, True), rsqrt(variance(x, axis, True) + eps)


def standard(x, eps, axis=-1):
    m, r = stats(x, eps, axis)
    return (x - m) * r


def inner(a, b):
    return (val(a) * val(b)).sum()


@case(FK, ROWS, x=uniform("T[M,N]", -1, 3), w="T[N]", b="T[N]", eps=1e-5)
def layernorm(a):
    m, r = stats(a.x, a.eps)
    return dict(y=(a.x - m) * r * a.w + a.b, mu=m[:, 0], rs=r[:, 0])


@case(FK, ROWS, x=uniform("T[M,N]", -1, 3), w=None, b=None, eps=1e-5, kernel="layernorm")
def layernorm_plain(a):
    return dict(y=standard(a.x, a.eps), mu=None, rs=None)


def layernorm_gradient(a):
    xh, g = (a.x - a.mu[:, None]) * a.rs[:, None], a.dy * a.w
    dx = (g - mean(g, -1, True) - xh * mean(g * xh, -1, True)) * a.rs[:, None]
    return dict(dx=dx, dw=sum(a.dy * xh, 0), db=sum(a.dy, 0))


# b does not appear in the backward kernel; db is checked against sums only
BACKWARD = dict(
    x="T[M,N]",
    w="T[N]",
    dy="T[M,N]",
    mu=derived("f32[M]", lambda a: stats(a.x, 1e-2)[0][:, 0]),
    rs=derived("f32[M]", lambda a: stats(a.x, 1e-2)[1][:, 0]),
    loss=lambda a: inner(a.dy, standard(a.x, 1e-2) * a.w),
    wrt=dict(dx="x", dw="w"),
)


@case(FK, "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300", **BACKWARD)
def layernorm_bwd(a):
    return layernorm_gradient(a)


@case(FK, "M N P | 1 1 1 | 3 7 4 | 17 33 4 | 9 300 2", defines="P", **BACKWARD)
def layernorm_bwd2(a):
    return layernorm_gradient(a)


@case(FK, ROWS, x="T[M,N]", w="T[N]", eps=1e-5)
def rmsnorm(a):
    return dict(y=a.x * rsqrt(mean(a.x * a.x, -1, True) + a.eps) * a.w)


@case(FK, ROWS, x="T[M,N]", w="T[N]", eps=1e-5, res="T[M,N]")
def add_rmsnorm(a):
    h = (a.res + a.x).to(a.T)
    return dict(res=h, y=h * rsqrt(mean(h * h, -1, True) + a.eps) * a.w)


@case(
    FK,
    "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33",
    x="T[M,N]",
    w="T[N]",
    dy="T[M,N]",
    rs=derived("f32[M]", lambda a: rsqrt(mean(a.x * a.x, -1) + 1e-2)),
    loss=lambda a: inner(a.dy, a.x * rsqrt(mean(a.x * a.x, -1, True) + 1e-2) * a.w),
    wrt=dict(dx="x", dw="w"),
)
def rmsnorm_bwd(a):
    xh, g = a.x * a.rs[:, None], a.dy * a.w
    return dict(dx=(g - xh * mean(g * xh, -1, True)) * a.rs[:, None], dw=sum(a.dy * xh, 0))


GROUPS = "B S G C | 1 1 1 2 | 2 5 3 4 | 2 16 2 8 | 1 33 4 3"


@case(FK, GROUPS, x=uniform("T[B,S,G,C]", 0, 2), w="T[G,C]", b="T[G,C]", eps=1e-5)
def groupnorm(a):
    return dict(y=standard(a.x, a.eps, (1, 3)) * a.w + a.b)


@case(FK, "B S C G | 1 1 2 1 | 2 5 12 3 | 2 16 16 2", defines="G", x=uniform("T[B,S,C]", 0, 2), w="T[C]", b="T[C]", eps=1e-5)
def groupnorm_flat(a):
    z = a.x.reshape(a.B, a.S, a.G, a.C // a.G)
    return dict(y=standard(z, a.eps, (1, 3)).reshape(a.B, a.S, a.C) * a.w + a.b)


@case(
    FK,
    "B S G C | 1 2 1 2 | 2 5 3 4 | 2 16 2 8",
    x="T[B,S,G,C]",
    w="T[G,C]",
    dy="T[B,S,G,C]",
    mu=derived("f32[B,G]", lambda a: stats(a.x, 1e-2, (1, 3))[0].reshape(a.B, a.G)),
    rs=derived("f32[B,G]", lambda a: stats(a.x, 1e-2, (1, 3))[1].reshape(a.B, a.G)),
    loss=lambda a: inner(a.dy, standard(a.x, 1e-2, (1, 3)) * a.w),
    wrt=dict(dx="x", dw="w"),
)
def groupnorm_bwd(a):
    rs = a.rs[:, None, :, None]
    xh, g = (a.x - a.mu[:, None, :, None]) * rs, a.dy * a.w
    dx = (g - mean(g, (1, 3), True) - xh * mean(g * xh, (1, 3), True)) * rs
    return dict(dx=dx, dw=sum(a.dy * xh, (0, 1)), db=sum(a.dy, (0, 1)))


@case(FK, "B C H W | 1 1 1 1 | 2 3 5 7 | 1 2 16 16", x=uniform("T[B,C,H,W]", 0, 2), eps=1e-5)
def instancenorm(a):
    return dict(y=standard(a.x, a.eps, (2, 3)))


@case(
    FK,
    "B H W C | 1 1 2 1 | 2 3 5 4 | 2 8 8 16",
    x="T[B,H,W,C]",
    g="f32[C]",
    b="f32[C]",
    res="T[B,H,W,C]",
    eps=1e-5,
    mom=0.1,
    rm="f32[C]",
    rv=uniform("f32[C]", 0, 1),
)
def bn_train(a):
    m, r = (s.reshape(a.C) for s in stats(a.x, a.eps, (0, 1, 2)))
    v, n = variance(a.x, (0, 1, 2)), a.B * a.H * a.W
    y = relu((a.x - m) * r * a.g + a.b + a.res)
    rv = a.rv + a.mom * (v * n / (n - 1) - a.rv)
    return dict(y=y, mu=m, rs=r, rm=a.rm + a.mom * (m - a.rm), rv=rv)


@case(FK, "B C H W | 1 1 1 1 | 2 3 5 7 | 1 4 16 16", x="T[B,C,H,W]", g="f32[C]", b="f32[C]", mu="f32[C]", va=uniform("f32[C]", 0, 1), eps=1e-5)
def bn_eval(a):
    g, b, m, v = (s[:, None, None] for s in (a.g, a.b, a.mu, a.va))
    return dict(y=relu((a.x - m) * rsqrt(v + a.eps) * g + b))


@case(
    FK,
    "B H W C | 1 1 2 1 | 2 3 5 4 | 2 8 8 16",
    x="T[B,H,W,C]",
    dy="T[B,H,W,C]",
    g="f32[C]",
    mu=derived("f32[C]", lambda a: stats(a.x, 1e-2, (0, 1, 2))[0].reshape(a.C)),
    rs=derived("f32[C]", lambda a: stats(a.x, 1e-2, (0, 1, 2))[1].reshape(a.C)),
    loss=lambda a: inner(a.dy, standard(a.x, 1e-2, (0, 1, 2)) * a.g),
    wrt=dict(dx="x", dg="g"),
)
def bn_bwd(a):
    xh, n = (a.x - a.mu) * a.rs, float(a.B * a.H * a.W)
    sg, sb = sum(a.dy * xh, (0, 1, 2)), sum(a.dy, (0, 1, 2))
    return dict(dx=a.g * a.rs * (a.dy - sb / n - xh * (sg / n)), dg=sg, db=sb)


@case(FK, ROWS, x="T[M,N]", len=ints("i32[M]", 0, "N+1"), eps=1e-3)
def masked_layernorm(a):
    on = np.arange(a.N) < a.len[:, None]
    n = np.maximum(a.len, 1).astype(float)[:, None]
    d = where(on, a.x - sum(where(on, a.x, 0), -1, True) / n, 0)
    return dict(y=d * rsqrt(sum(d * d, -1, True) / n + a.eps))


@case(FK, ROWS, x="T[M,N]", eps=1e-3)
def l2_normalize(a):
    s = sqrt(sum(a.x * a.x, -1))
    return dict(y=a.x / maximum(s, a.eps)[:, None], len=s)


@case(FK, ROWS, x="T[M,N]", f="T[M,N]", gain="T[N]")
def layer_scale(a):
    return dict(y=a.x + a.gain * a.f)


@case(FK, "K N | 1 1 | 5 64 | 17 33 | 4 300", v="T[K,N]", g="f32[K]")
def weight_norm(a):
    return dict(w=a.v * a.g[:, None] * rsqrt(sum(a.v * a.v, -1, True)))

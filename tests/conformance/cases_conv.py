"""References of conv.fk."""

from bounded import *
from harness import case, ints, made, uniform

FK = "conv.fk"


def inner(a, b):
    return (val(a) * val(b)).sum()


def gather(x, axis, i, fill=0.0):
    """x at indices i of an axis, which i's axes replace; fill outside."""
    x, i = wrap(x), np.asarray(i)
    on = (i >= 0) & (i < x.shape[axis])
    if not x.shape[axis]:
        return full(x.shape[:axis] + i.shape + x.shape[axis + 1 :], fill)
    at = np.where(on, i, 0)
    on = on.reshape(on.shape + (1,) * (x.ndim - axis - 1))
    return where(on, B(np.take(x.v, at, axis), np.take(x.e, at, axis)), fill)


def taps(n, k, st=1, pad=0, dil=1):
    """[output, tap]: the input that it reads."""
    return np.arange(n)[:, None] * st + np.arange(k) * dil - pad


def under(n, k, st=1, pad=0, dil=1):
    """[input, tap]: the output that reads it there, or -1."""
    a = np.arange(n)[:, None] + pad - np.arange(k) * dil
    return np.where((a % st == 0) & (a >= 0), a // st, -1)


def patches(x, pq, rs, st=1, pad=0, dil=1, fill=0.0):
    """[b, p, r, q, s, ...] of x [b, h, w, ...]"""
    x = gather(x, 2, taps(pq[1], rs[1], st, pad, dil), fill)
    return gather(x, 1, taps(pq[0], rs[0], st, pad, dil), fill)


def conv(x, f, pq, st=1, pad=0, dil=1):
    return einsum("bprqsc,krsc->bpqk", patches(x, pq, f.shape[1:3], st, pad, dil), f)


def conv_back(dy, f, hw, st=1, pad=0, dil=1):
    r, s = f.shape[1:3]
    z = gather(gather(dy, 2, under(hw[1], s, st, pad, dil)), 1, under(hw[0], r, st, pad, dil))
    return einsum("bhrwsk,krsc->bhwc", z, f)


def pooled(x, pq, k, st, pad):
    return amax(patches(x, pq, (k, k), st, pad, fill=-np.inf), (2, 4))


CONV = (
    "B H W C K R S st pad dil P Q | 1 1 1 1 1 1 1 1 0 1 1 1 | 0 4 5 2 3 3 3 1 1 1 4 5 | 2 7 6 3 5 3 3 2 1 1 4 3 "
    "| 1 9 10 16 17 3 2 1 2 2 9 12 | 1 8 5 33 8 1 1 1 0 1 8 5"
)
ARGS = dict(st=lambda a: a.st, pad=lambda a: a.pad, dil=lambda a: a.dil)


@case(FK, CONV, x="T[B,H,W,C]", f="T[K,R,S,C]", b="T[K]", **ARGS)
def conv2d_nhwc(a):
    return dict(y=conv(a.x, a.f, (a.P, a.Q), a.st, a.pad, a.dil) + a.b)


@case(FK, "B H W C K R S P Q | 2 5 6 3 4 3 3 3 4 | 1 7 1 1 1 7 1 1 1", x="T[B,H,W,C]", f="T[K,R,S,C]", b=None, st=1, pad=0, dil=1, kernel="conv2d_nhwc")
def conv2d_plain(a):
    return dict(y=conv(a.x, a.f, (a.P, a.Q)))


@case(FK, "B H W C K R S st pad P Q | 1 1 1 1 1 1 1 1 0 1 1 | 2 7 6 3 5 3 3 2 1 4 3 | 1 9 10 16 17 3 2 1 1 9 11", x="T[B,C,H,W]", f="T[K,C,R,S]", st=lambda a: a.st, pad=lambda a: a.pad)
def conv2d_nchw(a):
    y = conv(a.x.transpose(0, 2, 3, 1), a.f.transpose(0, 2, 3, 1), (a.P, a.Q), a.st, a.pad)
    return dict(y=y.transpose(0, 3, 1, 2))


@case(FK, "B H W C K P Q | 1 1 1 1 1 1 1 | 2 7 6 3 5 4 3 | 1 16 9 8 20 8 5", x="T[B,H,W,C]", f="T[K,3,3,C]", b="T[K]")
def conv_down(a):
    return dict(y=silu(conv(a.x, a.f, (a.P, a.Q), 2, 1) + a.b))


@case(FK, "B H W C K R S | 1 1 1 1 1 1 1 | 2 4 5 3 6 3 3 | 1 3 20 17 33 3 5", x="T[B,H,W,C]", f="T[K,R,S,C]")
def conv_tiled(a):
    x = pad(a.x, ((0, 0), (a.R // 2,) * 2, (a.S // 2,) * 2, (0, 0)))
    return dict(y=conv(x, a.f, (a.H, a.W)))


GROUPED = "B H W G C K R S st pad dil P Q | 1 1 1 1 1 1 1 1 1 0 1 1 1 | 2 7 6 3 2 5 3 3 2 1 1 4 3 | 1 7 8 2 16 8 3 2 1 2 2 7 10"


def grouped(a):
    z = patches(a.x, (a.P, a.Q), (a.R, a.S), a.st, a.pad, a.dil)
    return einsum("bprqsgc,gkrsc->bpqgk", z, a.f)


@case(FK, GROUPED, x="T[B,H,W,G,C]", f="T[G,K,R,S,C]", b="T[G,K]", **ARGS)
def conv_group(a):
    return dict(y=grouped(a) + a.b)


@case(FK, GROUPED.rsplit("|", 1)[0], x="T[B,H,W,G,C]", f="T[G,K,R,S,C]", b=None, types=("f16",), kernel="conv_group", **ARGS)
def conv_group_plain(a):
    return dict(y=grouped(a))


@case(
    FK,
    CONV,
    x="T[B,H,W,C]",
    dy="T[B,P,Q,K]",
    f="T[K,R,S,C]",
    **ARGS,
    loss=lambda a: inner(a.dy, conv(a.x, a.f, (a.P, a.Q), a.st, a.pad, a.dil)),
    wrt=dict(dx="x"),
)
def conv_dx(a):
    return dict(dx=conv_back(a.dy, a.f, (a.H, a.W), a.st, a.pad, a.dil))


@case(
    FK,
    "B H W C K R S st pad dil P Q | 1 1 1 1 1 1 1 1 0 1 1 1 | 0 4 5 2 3 3 3 1 1 1 4 5 | 2 7 6 3 5 3 3 2 1 1 4 3 | 1 5 6 16 17 2 2 1 1 2 5 6",
    x="T[B,H,W,C]",
    dy="T[B,P,Q,K]",
    f="T[K,R,S,C]",
    **ARGS,
    loss=lambda a: inner(a.dy, conv(a.x, a.f, (a.P, a.Q), a.st, a.pad, a.dil)),
    wrt=dict(df="f"),
)
def conv_dw(a):
    z = patches(a.x, (a.P, a.Q), (a.R, a.S), a.st, a.pad, a.dil)
    return dict(df=einsum("bprqsc,bpqk->krsc", z, a.dy))


@case(FK, "B P Q K C R S st pad H W | 1 1 1 1 1 1 1 1 0 1 1 | 2 3 4 5 3 3 3 2 1 5 7 | 1 4 5 16 9 4 2 2 0 10 10", x="T[B,P,Q,K]", f="T[K,R,S,C]", b="T[C]", st=lambda a: a.st, pad=lambda a: a.pad)
def conv_transpose(a):
    return dict(y=conv_back(a.x, a.f, (a.H, a.W), a.st, a.pad) + a.b)


@case(FK, "B H W C R S st pad dil P Q | 1 1 1 1 1 1 1 0 1 1 1 | 2 7 6 5 3 3 2 1 1 4 3 | 1 9 10 40 3 2 1 2 2 9 12", x="T[B,H,W,C]", f="T[R,S,C]", b="T[C]", **ARGS)
def depthwise_conv(a):
    z = patches(a.x, (a.P, a.Q), (a.R, a.S), a.st, a.pad, a.dil)
    return dict(y=sum(z * a.f[:, None, :, :], (2, 4)) + a.b)


@case(FK, "B H W C R S | 1 1 1 1 1 1 | 2 4 5 3 3 3 | 1 9 10 40 3 5", x="T[B,H,W,C]", dy="T[B,H,W,C]")
def depthwise_dw(a):
    x = pad(a.x, ((0, 0), (a.R // 2,) * 2, (a.S // 2,) * 2, (0, 0)))
    return dict(df=einsum("bprqsc,bpqc->rsc", patches(x, (a.H, a.W), (a.R, a.S)), a.dy))


@case(FK, "B H W C K | 1 1 1 1 1 | 2 4 5 3 6 | 1 7 9 16 20", x=uniform("T[B,H,W,C]", -4, 4), f="T[3,3,C]", w="T[K,C]")
def separable_block(a):
    z = sum(patches(a.x, (a.H, a.W), (3, 3), 1, 1) * a.f[:, None, :, :], (2, 4))
    return dict(y=einsum("bpqc,kc->bpqk", minimum(relu(z), 6).to(a.T), a.w))


@case(FK, "B L C R | 1 1 1 1 | 2 0 3 4 | 2 3 5 4 | 1 33 40 4", x="T[B,L,C]", f="T[C,R]", b="T[C]")
def conv1d_causal(a):
    z = gather(a.x, 1, taps(a.L, a.R, pad=a.R - 1))
    return dict(y=silu(sum(z * a.f.T, 2) + a.b))


@case(FK, "B D H W C K R S U O P Q | 1 1 1 1 1 1 1 1 1 1 1 1 | 2 3 4 5 3 4 2 3 2 2 2 4 | 1 4 4 5 8 9 3 3 3 2 2 3", x="T[B,D,H,W,C]", f="T[K,R,S,U,C]")
def conv3d(a):
    z = gather(gather(gather(a.x, 3, taps(a.Q, a.U)), 2, taps(a.P, a.S)), 1, taps(a.O, a.R))
    return dict(y=einsum("borpsquc,krsuc->bopqk", z, a.f))


@case(FK, "B H W C R S pad P Q | 1 1 1 1 1 1 0 1 1 | 0 4 5 2 3 3 1 4 5 | 2 5 6 3 3 2 1 5 7", types=("f16", "i32", "u8", "e4m3"), x=made("T[B,H,W,C]", lambda r, s, a: r.integers(0, 17, s)), pad=lambda a: a.pad)
def im2col(a):
    y = patches(a.x, (a.P, a.Q), (a.R, a.S), 1, a.pad).transpose(0, 1, 3, 2, 4, 5)
    return dict(y=y if isinstance(a.x, B) else y.v.astype(np.int64))


@case(FK, "B H W C K R S pad U V | 1 2 2 1 1 1 1 0 1 1 | 2 6 7 3 5 3 3 1 3 3 | 1 9 10 16 17 3 2 0 3 4", x="T[B,H,W,C]", f="T[K,R,S,C]", b="T[K]", pad=lambda a: a.pad)
def conv_relu_pool(a):
    pq = a.H + 2 * a.pad - a.R + 1, a.W + 2 * a.pad - a.S + 1
    return dict(y=pooled(relu(conv(a.x, a.f, pq, 1, a.pad) + a.b), (a.U, a.V), 2, 2, 0))


def norm_of(a, c, eps):
    return (c - a.mu) * rsqrt(a.va + eps) * a.g + a.b


POSITIVE = uniform("f32[K]", 0.25, 2)


@case(FK, "B H W C K R P Q U V | 1 4 4 1 1 7 2 2 1 1 | 2 9 7 3 5 7 5 4 3 2 | 1 16 20 3 16 7 8 10 4 5", x="T[B,H,W,C]", f="T[K,R,R,C]", g="f32[K]", b="f32[K]", mu="f32[K]", va=POSITIVE, res="T[B,P,Q,K]")
def stem(a):
    c = norm_of(a, conv(a.x, a.f, (a.P, a.Q), 2, 3), 1e-5)
    return dict(y=pooled(relu(c + a.res), (a.U, a.V), 3, 2, 1))


@case(FK, "B H W C K | 1 1 1 1 1 | 2 4 5 3 6 | 1 7 9 8 16", x="T[B,H,W,C]", f1="T[K,3,3,C]", f2="T[C,3,3,K]", b1="T[K]", b2="T[C]")
def resblock(a):
    hw = a.H, a.W
    h = relu(conv(a.x, a.f1, hw, 1, 1) + a.b1).to(a.T)
    return dict(y=relu(conv(h, a.f2, hw, 1, 1) + a.b2 + a.x))


POOL = "B H W C k st pad P Q | 1 1 1 1 1 1 0 1 1 | 2 7 6 3 3 2 1 4 3 | 1 8 9 40 2 2 0 4 4 | 0 8 9 4 2 2 0 4 4"
WINDOW = dict(k=lambda a: a.k, st=lambda a: a.st, pad=lambda a: a.pad)


@case(FK, POOL, x="T[B,H,W,C]", **WINDOW)
def max_pool(a):
    return dict(y=pooled(a.x, (a.P, a.Q), a.k, a.st, a.pad))


def argmax_pool(a, k):
    pq = a.P, a.Q
    z = patches(a.x, pq, (k, k), a.st, a.pad, fill=-np.inf).v.transpose(0, 1, 3, 5, 2, 4)
    first = z.reshape(*z.shape[:4], k * k).argmax(-1) if z.size else np.zeros(z.shape[:4], np.int64)
    row = np.arange(a.P)[:, None, None] * a.st + first // k - a.pad
    column = np.arange(a.Q)[:, None] * a.st + first % k - a.pad
    return dict(y=pooled(a.x, pq, k, a.st, a.pad), at=row * a.W + column)


TIED = made("T[B,H,W,C]", lambda r, s, a: r.integers(-4, 5, s))


@case(FK, POOL, x=TIED, **WINDOW)
def maxpool_idx(a):
    return argmax_pool(a, a.k)


KNOWN = dict(defines="K", x=TIED, st=lambda a: a.st, pad=lambda a: a.pad)


@case(FK, "B H W C K st pad P Q | 2 7 6 3 4 2 1 3 3 | 1 8 9 40 2 2 0 4 4 | 0 8 9 4 2 2 0 4 4", **KNOWN)
def maxpool_argmax(a):
    return argmax_pool(a, a.K)


@case(FK, "B H W C K st pad P Q | 2 7 6 3 3 2 1 4 3 | 1 8 9 40 3 3 0 2 3", kernel="maxpool_argmax", **KNOWN)
def maxpool_argmax3(a):
    return argmax_pool(a, a.K)


@case(FK, "B P Q C HW | 1 1 1 1 1 | 2 3 4 5 9 | 1 5 7 33 12 | 2 0 4 5 9", dy="T[B,P,Q,C]", at=ints("i32[B,P,Q,C]", -2, "HW + 1"), dx="f32[B,HW,C]")
def maxpool_bwd(a):
    v, size, n = a.dx.v.copy(), np.abs(a.dx.v), np.ones(a.dx.shape)
    for b, p, q, c in np.ndindex(a.dy.shape):
        at = a.at[b, p, q, c]
        if 0 <= at < a.HW:
            v[b, at, c] += a.dy.v[b, p, q, c]
            size[b, at, c] += abs(a.dy.v[b, p, q, c])
            n[b, at, c] += 1
    return dict(dx=B(v, (n - 1) * U * size))


@case(FK, POOL, x="T[B,H,W,C]", **WINDOW)
def avg_pool(a):
    pq, k = (a.P, a.Q), (a.k, a.k)
    n = patches(np.ones(a.x.shape), pq, k, a.st, a.pad).v.sum((2, 4))
    return dict(y=sum(patches(a.x, pq, k, a.st, a.pad), (2, 4)) / n)


@case(
    FK,
    "B H W C K st P Q | 1 1 1 1 1 1 1 1 | 2 7 6 3 3 2 3 2 | 1 8 8 20 2 2 4 4",
    defines="K",
    x="T[B,H,W,C]",
    dy="T[B,P,Q,C]",
    st=lambda a: a.st,
    loss=lambda a: inner(a.dy, mean(patches(a.x, (a.P, a.Q), (a.K, a.K), a.st), (2, 4))),
    wrt=dict(dx="x"),
)
def avgpool_bwd(a):
    z = gather(gather(a.dy, 2, under(a.W, a.K, a.st)), 1, under(a.H, a.K, a.st))
    return dict(dx=sum(z, (2, 4)) / float(a.K * a.K))


IMAGE = "B H W C | 1 1 1 1 | 2 3 4 5 | 1 7 9 40"


@case(FK, IMAGE, x="T[B,H,W,C]")
def global_avgpool(a):
    return dict(y=mean(a.x, (1, 2)))


@case(FK, "B H W C R | 1 1 1 1 1 | 2 3 4 5 2 | 1 7 9 32 8", x="T[B,H,W,C]", w1="T[C,R]", w2="T[R,C]")
def squeeze_excite(a):
    s = relu(einsum("bc,cr->br", mean(a.x, (1, 2)).to(a.T), a.w1)).to(a.T)
    return dict(y=a.x * sigmoid(einsum("br,rc->bc", s, a.w2))[:, None, None])


ANY = ("f32", "bf16", "i8", "i64")
SMALL = made("T[B,H,W,C]", lambda r, s, a: r.integers(-8, 9, s))


@case(FK, IMAGE, types=ANY, x=SMALL)
def upsample_nearest(a):
    return dict(y=a.x[:, np.arange(2 * a.H) // 2][:, :, np.arange(2 * a.W) // 2])


def bilinear_axis(x, axis, n):
    u = np.maximum((np.arange(2 * n) + 0.5) / 2 - 0.5, 0)
    lo = np.floor(u).astype(int)
    shape = [-1 if d == axis else 1 for d in range(4)]
    t = (u - lo).reshape(shape)
    return (1 - B(t)) * gather(x, axis, lo) + B(t) * gather(x, axis, np.minimum(lo + 1, n - 1))


@case(FK, IMAGE, x="T[B,H,W,C]")
def upsample_bilinear(a):
    return dict(y=bilinear_axis(bilinear_axis(a.x, 2, a.W), 1, a.H))


@case(FK, IMAGE, types=ANY, x=SMALL.over("T[B,4*C,H,W]"))
def pixel_shuffle(a):
    x = a.x.reshape(a.B, a.C, 2, 2, a.H, a.W).transpose(0, 1, 4, 2, 5, 3)
    return dict(y=x.reshape(a.B, a.C, 2 * a.H, 2 * a.W))


@case(FK, IMAGE, types=ANY, x=SMALL.over("T[B,C,2*H,2*W]"))
def space_to_depth(a):
    x = a.x.reshape(a.B, a.C, a.H, 2, a.W, 2).transpose(0, 1, 3, 5, 2, 4)
    return dict(y=x.reshape(a.B, 4 * a.C, a.H, a.W))


PLANE = "H W | 1 1 | 5 7 | 20 33"


def plane(x, r, s, fill=0.0):
    """[h, r, w, s]"""
    return gather(gather(x, 1, taps(x.shape[1], s, pad=s // 2), fill), 0, taps(x.shape[0], r, pad=r // 2), fill)


@case(FK, PLANE, types=("f32",), x="f32[H,W]", r=1)
def box_blur(a):
    n = plane(np.ones((a.H, a.W)), 3, 3).v.sum((1, 3))
    return dict(y=sum(plane(a.x, 3, 3), (1, 3)) / n)


@case(FK, PLANE, types=("f32",), x="f32[H,W]", f=uniform("f32[5]", 0, 0.5))
def gauss_blur(a):
    h = sum(plane(a.x, 1, 5) * a.f, (1, 3))
    return dict(y=sum(plane(h, 5, 1) * a.f[:, None, None], (1, 3)))


@case(FK, PLANE, types=("f32",), x="f32[H,W]")
def sobel(a):
    edge = [np.clip(taps(n, 3, pad=1), 0, n - 1) for n in (a.H, a.W)]
    z = gather(gather(a.x, 1, edge[1]), 0, edge[0])
    d, s = np.array([-1.0, 0, 1]), np.array([1.0, 2, 1])
    gx = sum(z * (s[:, None, None] * d), (1, 3))
    gy = sum(z * (d[:, None, None] * s), (1, 3))
    return dict(y=sqrt(gx * gx + gy * gy))

"""References of loss.fk."""

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "loss.fk"
ROWS = "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300 | 2 1030"
FEW = "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33"
WIDE = uniform("T[M,N]", -4, 4)


def inner(a, b):
    return (val(a) * val(b)).sum()


@case(FK, ROWS, x=WIDE)
def softmax_whole(a):
    return dict(y=softmax(a.x))


@case(FK, ROWS, x=WIDE)
def softmax_rows(a):
    return dict(y=softmax(a.x))


@case(
    FK,
    FEW,
    z=WIDE,
    y=derived("T[M,N]", lambda a: softmax(a.z)),
    dy="T[M,N]",
    loss=lambda a: inner(a.dy, softmax(a.z)),
    wrt=dict(dx="z"),
)
def softmax_bwd(a):
    return dict(dx=a.y * (a.dy - sum(a.dy * a.y, -1, True)))


@case(FK, ROWS, x=WIDE)
def log_softmax_fwd(a):
    d = a.x - amax(a.x, -1, True)
    return dict(y=d - log(sum(exp(d), -1, True)))


@case(FK, ROWS, x=WIDE)
def softmax_columns(a):
    return dict(y=softmax(a.x, 0))


@case(FK, "B M N | 1 1 1 | 2 0 3 | 2 3 7 | 3 5 64 | 1 4 300", x=WIDE.over("T[B,M,N]"), on=ints("bool[B,N]", 0, 2), scale=0.5)
def masked_softmax(a):
    z = where(a.on[:, None, :] != 0, a.x * a.scale, -np.inf)
    m = maximum(amax(z, -1, True), -1e30)
    e = where(a.on[:, None, :] != 0, exp(where(a.on[:, None, :] != 0, z, 0) - m), 0)
    return dict(y=e / maximum(sum(e, -1, True), 1e-30))


@case(FK, "M N | 1 1 | 0 5 | 7 7 | 5 64 | 65 65 | 33 17", x=WIDE)
def causal_softmax(a):
    on = np.tril(np.ones((a.M, a.N), bool))
    e = where(on, exp(a.x - amax(where(on, a.x, -np.inf), -1, True)), 0)
    return dict(y=e / sum(e, -1, True))


@case(FK, "M N | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300 | 2 1030", x=WIDE)
def logsumexp_online(a):
    return dict(lse=logsumexp(a.x))


def labels(r, shape, a):
    y = r.integers(0, max(a.V, 1), shape)
    return np.where(r.random(shape) < 0.2, -100, y)


LABELLED = "N V | 1 1 | 0 5 | 3 7 | 5 64 | 17 33 | 4 300 | 2 1030"


def pick(x, y):
    """x[n, y[n]], 0 where y is outside."""
    ok = (y >= 0) & (y < x.shape[1])
    return where(ok, take(x, np.where(ok, y, 0)[:, None], 1)[:, 0], 0)


def smoothed(x, y, ignore, eps):
    l = logsumexp(x)
    loss = (1 - eps) * (l - pick(x, y)) + eps * (l - mean(x, -1))
    return where(y == ignore, 0, loss), l


@case(FK, LABELLED, x=uniform("T[N,V]", -4, 4), y=made("i64[N]", labels), ignore=-100, eps=0.1)
def cross_entropy_fwd(a):
    loss, l = smoothed(a.x, a.y, a.ignore, a.eps)
    return dict(loss=loss, lse=l)


@case(
    FK,
    LABELLED,
    x=uniform("T[N,V]", -4, 4),
    y=made("i64[N]", labels),
    lse=derived("f32[N]", lambda a: logsumexp(a.x)),
    dl="f32[N]",
    ignore=-100,
    eps=0.1,
    loss=lambda a: inner(a.dl, smoothed(a.x, a.y, -100, a.eps)[0]),
    wrt=dict(dx="x"),
)
def cross_entropy_bwd(a):
    t = np.where(np.arange(a.V) == a.y[:, None], 1.0, 0) * (1 - B(a.eps)) + B(a.eps) / float(a.V)
    g = (exp(a.x - a.lse[:, None]) - t) * a.dl[:, None]
    return dict(dx=where(a.y[:, None] == a.ignore, 0, g))


@case(FK, LABELLED, y=made("i64[N]", labels), x=uniform("T[N,V]", -4, 4))
def cross_entropy_inplace(a):
    l = logsumexp(a.x)
    return dict(loss=l - pick(a.x, a.y), x=exp(a.x - l[:, None]) - (np.arange(a.V) == a.y[:, None]))


@case(FK, "N V | 1 3 | 3 7 | 5 64 | 300 33", logp=uniform("T[N,V]", -4, 0), y=made("i64[N]", labels), ignore=-100)
def nll_mean(a):
    on = a.y != a.ignore
    return dict(loss=(-sum(where(on, pick(a.logp, a.y), 0), 0) / float(on.sum())).reshape(1))


@case(FK, "N D V | 1 1 1 | 0 3 5 | 3 5 7 | 17 33 65 | 5 64 130", x="T[N,D]", w="T[V,D]", y=made("i64[N]", labels), ignore=-100)
def linear_ce(a):
    z = einsum("nd,vd->nv", a.x, a.w)
    l = logsumexp(z)
    return dict(lse=l, loss=where(a.y == a.ignore, 0, l - pick(z, a.y)))


def distribution(r, shape, a):
    """Rows that sum to about 1, with zeros."""
    p = np.where(r.random(shape) < 0.2, 0, r.random(shape) + 0.05)
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-9)


def kl(x, p):
    lq = x - logsumexp(x)[..., None]
    return sum(where(val(p) > 0, p * (log(where(val(p) > 0, p, 1)) - lq), 0), -1)


@case(FK, FEW, x=WIDE, p=made("T[M,N]", distribution))
def kl_div(a):
    return dict(loss=kl(a.x, a.p))


@case(FK, FEW, x=WIDE, p=made("T[M,N]", distribution), dl="f32[M]", loss=lambda a: inner(a.dl, kl(a.x, a.p)), wrt=dict(dx="x"))
def kl_div_bwd(a):
    return dict(dx=(softmax(a.x) * sum(a.p, -1, True) - a.p) * a.dl[:, None])


@case(FK, FEW, x=WIDE, y=WIDE)
def jsd(a):
    p, q = softmax(a.x), softmax(a.y)
    h = 0.5 * (p + q)
    return dict(loss=0.5 * sum(p * (log(p) - log(h)) + q * (log(q) - log(h)), -1))


LINE = "N | 1 | 0 | 7 | 64 | 300 | 1030"


def power(x, y):
    """x^y of x > 0 by its bound of 16 ulps: d(x^y) = y x^(y-1) dx."""
    v = x.v**y
    return B(v, np.abs(y * x.v ** (y - 1)) * x.e + 32 * U * v)


def focal(a):
    y = a.y != 0
    z, at = where(y, a.x, -a.x), np.where(y, a.alpha, 1 - a.alpha)
    lp, q = -softplus(-z), 1 - sigmoid(z)
    return z, at, lp, q, -at * power(q, a.gamma) * lp


@case(
    FK,
    LINE,
    x=uniform("T[N]", -4, 4),
    y=ints("bool[N]", 0, 2),
    alpha=0.25,
    gamma=2.0,
    loss=lambda a: val(focal(a)[4]).sum(),
    wrt=dict(dx="x"),
)
def focal_loss(a):
    z, at, lp, q, loss = focal(a)
    dz = at * power(q, a.gamma) * (a.gamma * (1 - q) * lp - q)
    return dict(loss=loss, dx=where(a.y != 0, dz, -dz))


def bce(x, t):
    return relu(x) - x * t + log(1 + exp(-abs(x)))


@case(FK, LINE, x=uniform("T[N]", -4, 4), t=uniform("T[N]", 0, 1), loss=lambda a: val(bce(a.x, a.t)).sum(), wrt=dict(dx="x"))
def bce_logits(a):
    return dict(loss=bce(a.x, a.t), dx=sigmoid(a.x) - a.t)


def huber_loss(a):
    d, delta = a.x - a.t, a.delta
    return mean(where(np.abs(d.v) <= delta, 0.5 * d * d, delta * (abs(d) - 0.5 * delta)), 0)


@case(FK, "N | 1 | 7 | 64 | 300 | 1030", x=uniform("T[N]", -2, 2), t="T[N]", delta=1.0, loss=lambda a: val(huber_loss(a)), wrt=dict(dx="x"))
def huber(a):
    d = a.x - a.t
    return dict(loss=huber_loss(a).reshape(1), dx=where(np.abs(d.v) <= a.delta, d, np.sign(d.v) * a.delta) / float(a.N))


@case(FK, "N D | 1 1 | 0 5 | 3 7 | 17 64 | 4 300", a="T[N,D]", p="T[N,D]", n="T[N,D]", margin=0.5)
def triplet(s):
    a, p, n = s.a, s.p, s.n
    cosine = sum(a * p, -1) * rsqrt(sum(a * a, -1) * sum(p * p, -1))
    far = sqrt(sum((a - n) * (a - n), -1))
    return dict(cos=cosine, loss=relu(sqrt(sum((a - p) * (a - p), -1)) - far + s.margin))

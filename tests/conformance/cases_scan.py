"""References of scan.fk."""

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "scan.fk"


def inner(a, b):
    return (val(a) * val(b)).sum()


def selective(a, skip, bias):
    h, ys = zeros(a.B, a.D, a.S), []
    for t in range(a.L):
        r, x = softplus(a.dt[:, t] + bias), a.u[:, t]
        h = exp(r[:, :, None] * a.a) * h + (r * x)[:, :, None] * a.b[:, t, None, :]
        ys.append(sum(h * a.c[:, t, None, :], -1) + skip * x)
    return dict(y=stack(ys, 1), last=h)


SSM = dict(u="T[B,L,D]", dt="T[B,L,D]", a=uniform("f32[D,S]", -2, 0), b="T[B,L,S]", c="T[B,L,S]")


@case(FK, "B L D S | 1 1 1 4 | 2 5 3 8 | 1 20 40 16", defines="S", **SSM, skip="f32[D]", bias="f32[D]")
def selective_scan(a):
    return selective(a, a.skip, a.bias)


@case(FK, "B L D S | 1 1 1 4 | 2 7 33 4", defines="S", **SSM, skip=None, bias=None, kernel="selective_scan")
def selective_scan_plain(a):
    return selective(a, 0, 0)


def recurrence(a, x):
    h, hs = zeros(*x.shape[1:]), []
    for t in range(len(x)):
        h = a[t] * h + x[t]
        hs.append(h)
    return stack(hs) if hs else x


def scanned(a):
    """A scan by pairs multiplies the factors before it applies them: as many roundings, of terms as large."""
    h = recurrence(a.a, a.x)
    size = recurrence(B(np.abs(a.a.v)), B(np.abs(a.x.v)))
    return B(h.v, h.e + a.L * U * size.v)


STEPS = "L D | 1 1 | 0 3 | 7 5 | 33 40 | 150 3"
DECAY = uniform("T[L,D]", 0.3, 1)


@case(FK, STEPS, a=DECAY, x="T[L,D]")
def linear_recurrence(a):
    return dict(h=scanned(a))


@case(FK, STEPS, a=DECAY, x="T[L,D]")
def recurrence_chunks(a):
    return dict(h=scanned(a))


@case(
    FK,
    STEPS,
    x="T[L,D]",
    a=DECAY,
    h=derived("f32[L,D]", lambda a: recurrence(a.a, a.x)),
    dh="f32[L,D]",
    loss=lambda a: inner(a.dh, recurrence(a.a, a.x)),
    wrt=dict(da="a", dx="x"),
)
def recurrence_bwd(a):
    if not a.L:
        return dict(da=a.x, dx=a.x)
    later = concat([a.a[1:], zeros(1, a.D)])
    g = recurrence(later[::-1], a.dh[::-1])[::-1]
    return dict(dx=g, da=g * concat([zeros(1, a.D), a.h[:-1]]))


@case(FK, "M N | 1 1 | 3 2 | 0 8 | 5 16 | 33 64 | 2 256", defines="N", x="T[M,N]")
def hadamard(a):
    h = np.ones((1, 1))
    while len(h) < a.N:
        h = np.block([[h, h], [h, -h]])
    return dict(y=einsum("mn,kn->mk", a.x, h) / sqrt(B(float(a.N))))


@case(FK, "B C | 1 1 | 2 4 | 3 16 | 1 32", types=("f32",), defines="C", a=made("f32[B,C,C]", lambda r, s, a: r.uniform(-1, 1, s) / s[-1]))
def triangle_inverse(a):
    l = np.tril(a.a.v, -1)
    eye = np.eye(a.C)
    y = np.linalg.inv(eye + l)
    # every product of the two squares and sums what (I - |L|)^-1 bounds
    size = np.linalg.inv(eye - np.abs(l))
    return dict(y=B(y, 12 * a.C * U * size))


@case(FK, "B L D | 1 1 1 | 2 7 3 | 1 33 40", w=uniform("f32[D]", -1, 0), u="f32[D]", k=uniform("T[B,L,D]", -3, 3), v="T[B,L,D]")
def rwkv_wkv(a):
    p, q, m, ys = zeros(a.B, a.D), zeros(a.B, a.D), B(np.full((a.B, a.D), -1e30)), []
    for t in range(a.L):
        k, v = a.k[:, t], a.v[:, t]
        n = maximum(m, k + a.u)
        e, f = exp(m - n), exp(k + a.u - n)
        ys.append((e * p + f * v) / (e * q + f))
        r = maximum(m + a.w, k)
        g, h = exp(m + a.w - r), exp(k - r)
        p, q, m = g * p + h * v, g * q + h, r
    return dict(y=stack(ys, 1))


HEAD = dict(defines="D E", q="T[B,L,D]", k="T[B,L,D]", v="T[B,L,E]")


@case(FK, "B L D E | 1 1 4 4 | 2 7 8 16 | 1 20 16 16", **HEAD, g=uniform("f32[B,L,D]", -1, 0))
def gated_attention_step(a):
    s, os = zeros(a.B, a.D, a.E), []
    for t in range(a.L):
        s = exp(a.g[:, t, :, None]) * s + a.k[:, t, :, None] * a.v[:, t, None, :]
        os.append(sum(s * a.q[:, t, :, None], 1))
    return dict(o=stack(os, 1))


@case(FK, "B L D E | 1 1 4 4 | 2 7 8 16 | 1 20 16 16", **{**HEAD, "k": uniform("T[B,L,D]", -0.3, 0.3)}, beta=uniform("f32[B,L]", 0, 1))
def delta_rule(a):
    s, os = zeros(a.B, a.D, a.E), []
    for t in range(a.L):
        k = a.k[:, t, :, None]
        s = s + k * (a.beta[:, t, None] * (a.v[:, t] - sum(s * k, 1)))[:, None, :]
        os.append(sum(s * a.q[:, t, :, None], 1))
    return dict(o=stack(os, 1))


@case(FK, "B H | 1 1 | 0 3 | 3 7 | 5 130", z=uniform("T[B,4,H]", -3, 3), c="f32[B,H]")
def lstm_cell(a):
    i, f, g, o = (a.z[:, k] for k in range(4))
    n = sigmoid(f) * a.c + sigmoid(i) * tanh(g)
    return dict(h=sigmoid(o) * tanh(n), n=n)


@case(FK, "B L H | 1 1 1 | 2 5 8 | 1 9 32", defines="H", x="T[B,L,H]", w=made("f32[H,H]", lambda r, s, a: r.uniform(-1, 1, s) / s[0]))
def rnn_sequence(a):
    h, ys = zeros(a.B, a.H), []
    for t in range(a.L):
        h = tanh(a.x[:, t] + einsum("ij,bj->bi", a.w, h))
        ys.append(h)
    return dict(y=stack(ys, 1))


LINES = "M N | 1 1 | 0 5 | 3 7 | 5 64 | 2 300"


@case(FK, LINES, x="T[M,N]")
def cumsum_rows(a):
    return dict(y=cumsum(a.x, 1))


@case(FK, "M N | 1 1 | 0 5 | 7 3 | 64 5 | 300 2", x="T[M,N]")
def cumsum_columns(a):
    return dict(y=cumsum(a.x, 0))


@case(FK, "N | 1 | 0 | 7 | 64 | 1030", types=("i32",), x=ints("i32[N]", -99, 100))
def cumsum_exclusive(a):
    return dict(y=a.x.cumsum() - a.x)


@case(FK, LINES, x="T[M,N]")
def cumsum_reverse(a):
    return dict(y=cumsum(a.x[:, ::-1], 1)[:, ::-1])


@case(FK, LINES, x=uniform("T[M,N]", 0.5, 1.5))
def cumprod_rows(a):
    return dict(y=cumprod(a.x, 1))


@case(FK, LINES, x="T[M,N]")
def cummax_rows(a):
    return dict(y=np.maximum.accumulate(a.x.v, 1))


@case(FK, "N | 1 | 0 | 7 | 64 | 1030", types=("i32",), x=ints("i32[N]", -9, 10), f=made("i32[N]", lambda r, s, a: r.random(s) < 0.2))
def segmented_cumsum(a):
    s, y = 0, np.zeros(a.N, np.int64)
    for n in range(a.N):
        s = a.x[n] + (0 if a.f[n] else s)
        y[n] = s
    return dict(y=y)


@case(FK, "H W | 1 1 | 0 3 | 5 7 | 33 20", types=("i32",), x=ints("i32[H,W]", -9, 10))
def integral_image(a):
    return dict(y=a.x.cumsum(0).cumsum(1))


@case(FK, LINES, x=uniform("T[M,N]", -4, 4))
def logcumsumexp(a):
    top = np.maximum.accumulate(a.x.v, 1)
    s = B(np.exp(a.x.v - a.x.v.max(1, keepdims=True, initial=-9)).cumsum(1))
    y = np.log(s.v) + a.x.v.max(1, keepdims=True, initial=-9)
    # each step rescales once more: a relative error of s, which log makes absolute
    n = np.arange(1, a.N + 1)
    return dict(y=B(y, U * (6 * n + np.abs(top) + np.abs(y) + 8)))


@case(FK, "B L S | 1 1 1 | 2 5 4 | 1 9 16", types=("f32",), defines="S", z=made("f32[B,L,S]", lambda r, s, a: r.integers(-9, 10, s)), w=made("f32[S,S]", lambda r, s, a: r.integers(-9, 10, s)))
def viterbi(a):
    v, at = np.zeros((a.B, a.S)), []
    for t in range(a.L):
        c = v[:, :, None] + a.w.v
        at.append(c.argmax(1))
        v = c.max(1) + a.z.v[:, t]
    return dict(y=v, at=np.stack(at, 1))


@case(FK, "M N | 1 1 | 3 0 | 7 9 | 5 300", x=made("T[M,N]", lambda r, shape, a: r.integers(-8, 8, shape) / 4))
def least_of_rows(a):
    x = val(a.x)
    if not a.N:
        return dict(y=np.full(a.M, np.inf), at=np.full(a.M, 2**31 - 1))
    return dict(y=x.min(1), at=x.argmin(1))


@case(FK, "L D | 1 1 | 0 3 | 7 5 | 150 3", x="T[L,D]")
def running_variance(a):
    n = np.arange(1, a.L + 1)[:, None] + 0.0
    m = cumsum(a.x, 0) / n
    # the terms are products of counts with squared distances, each at most 4
    q = cumsum(a.x * a.x, 0) / n - m * m
    return dict(mu=m, spread=B(np.maximum(q.v, 0), q.e + 8 * U))

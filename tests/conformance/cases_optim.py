"""References of optim.fk."""

import math

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "optim.fk"
LINE = "N | 1 | 0 | 7 | 64 | 1030"
SQUARE = uniform("f32[N]", 0.01, 1)


def one(x):
    """A scalar argument; 1 - x then rounds."""
    return B(x)


def adam(a, g, b1, b2):
    return b1 * a.m + (1 - one(b1)) * g, b2 * a.v + (1 - one(b2)) * (g * g)


@case(FK, LINE, g="T[N]", lr=0.1, b1=0.9, b2=0.99, eps=1e-3, wd=0.01, c1=1.25, c2=1.5, w="f32[N]", m="f32[N]", v=SQUARE)
def adamw(a):
    m, v = (x.to("f32") for x in adam(a, a.g, a.b1, a.b2))
    w = a.w * (1 - one(a.lr) * a.wd) - a.lr * (m * a.c1) / (sqrt(v * a.c2) + a.eps)
    return dict(m=m, v=v, w=w, p=w)


def adam_plain(a):
    m, v = (x.to("f32") for x in adam(a, a.g, a.b1, a.b2))
    return dict(m=m, v=v, p=a.p - a.lr * m / (sqrt(v) + a.eps))


@case(FK, LINE, g="T[N]", lr=0.1, b1=0.9, b2=0.99, eps=1e-3, p="T[N]", m="f32[N]", v=SQUARE)
def adam_elements(a):
    return adam_plain(a)


@case(FK, "M N | 1 1 | 2 0 | 3 7 | 5 64 | 2 1030", g="T[M, N]", lr=0.1, b1=0.9, b2=0.99, eps=1e-3, p="T[M, N]", m="f32[M, N]",
      v=uniform("f32[M, N]", 0.01, 1))
def adam_tensors(a):
    return adam_plain(a)


@case(FK, LINE, g="T[N]", lr=0.1, step=3, p="T[N]", m="f32[N]", v=SQUARE)
def adam_steps(a):
    m, v = 0.9 * a.m + 0.1 * a.g, 0.99 * a.v + 0.01 * (a.g * a.g)
    u = 2.0 * U  # the literals are rounded to f32
    m = B(m.v, m.e + u * (np.abs(a.m.v) + np.abs(a.g.v)))
    v = B(v.v, v.e + u * (a.v.v + a.g.v**2))
    c, e = (1 - exp(a.step * log(B(b, u * b))) for b in (0.9, 0.99))
    return dict(m=m, v=v, p=a.p - a.lr * (m / c) / (sqrt(v / e) + 1e-6))


@case(FK, LINE, g="T[N]", lr=0.1, b1=0.9, b2=0.99, wd=0.01, p="T[N]", m="f32[N]")
def lion(a):
    u = a.b1 * a.m + (1 - one(a.b1)) * a.g
    sign = B(np.sign(u.v), np.where(np.abs(u.v) <= 4 * u.e, 2, 0))
    return dict(p=a.p * (1 - one(a.lr) * a.wd) - a.lr * sign, m=a.b2 * a.m + (1 - one(a.b2)) * a.g)


@case(FK, "N nesterov | 1 0 | 0 1 | 7 1 | 64 0 | 1030 1", g="T[N]", lr=0.1, mu=0.9, wd=0.01, nesterov=lambda a: a.nesterov, p="T[N]", m="f32[N]")
def sgd_momentum(a):
    d = a.g + a.wd * a.p
    m = a.mu * a.m + d
    return dict(m=m, p=a.p - a.lr * (d + a.mu * m if a.nesterov else m))


@case(FK, LINE, g="T[N]", lr=0.1, b=0.9, eps=1e-3, p="T[N]", v=SQUARE)
def rmsprop(a):
    v = a.b * a.v + (1 - one(a.b)) * (a.g * a.g)
    return dict(v=v, p=a.p - a.lr * a.g / (sqrt(v) + a.eps))


@case(FK, LINE, p="T[N]", d=0.99, e="f32[N]")
def ema_update(a):
    return dict(e=a.e + (1 - one(a.d)) * (a.p - a.e))


@case(FK, "N P | 1 8 | 0 8 | 7 4 | 64 8 | 1030 3", defines="P", g="T[N]")
def global_norm(a):
    return dict(norm=sqrt(sum(a.g * a.g)).reshape(1))


@case(FK, "N | 1 | 7 | 64 | 1030", g="T[N]", most=1.5)
def clip_norm(a):
    norm = sqrt(sum(a.g * a.g))
    return dict(norm=norm.reshape(1), g=a.g * minimum(a.most / (norm + 1e-6), 1))


@case(FK, LINE, g="T[N]", most=0.5)
def clip_value(a):
    return dict(g=minimum(maximum(a.g, -a.most), a.most))


def some_infinite(r, shape, a):
    x = r.uniform(-1, 1, shape)
    x[shape[0] // 2 : shape[0] // 2 + a.bad] = [np.inf, np.nan][shape[0] % 2]
    return x


@case(FK, "N bad | 1 0 | 7 1 | 64 0 | 64 1 | 1030 0", g=made("T[N]", some_infinite), r=0.125)
def unscale(a):
    return dict(y=B(a.g.v * a.r), bad=np.array([a.bad]))


@case(FK, "L N | 1 1 | 0 3 | 3 7 | 5 130", u="T[L,N]", lr=0.1, p="f32[L,N]")
def lamb(s):
    a, b = (sqrt(sum(x * x, -1, True)) for x in (s.p, s.u))
    return dict(p=s.p - s.lr * (a / b) * s.u)


@case(FK, "M N | 1 1 | 3 7 | 33 20 | 5 130", g="T[M,N]", b=0.9, r=uniform("f32[M]", 0.1, 1), c=uniform("f32[N]", 0.1, 1))
def adafactor_stats(a):
    q = a.g * a.g
    return dict(r=a.b * a.r + (1 - one(a.b)) * mean(q, 1), c=a.b * a.c + (1 - one(a.b)) * mean(q, 0))


@case(FK, "M N | 1 1 | 3 7 | 33 20 | 5 130", g="T[M,N]", r=uniform("f32[M]", 0.1, 1), c=uniform("f32[N]", 0.1, 1), lr=0.1, p="f32[M,N]")
def adafactor_step(a):
    v = a.r[:, None] * a.c / mean(a.r) + 1e-6
    return dict(p=a.p - a.lr * a.g * rsqrt(v))


@case(FK, "M N | 1 1 | 3 7 | 20 33", types=("f32",), x=made("f32[M,N]", lambda r, s, a: r.uniform(-1, 1, s) / math.sqrt(max(s))), a=3.4, b=-4.7, c=2.0)
def newton_schulz(s):
    p = einsum("in,jn->ij", s.x, s.x)
    q = s.b * p + s.c * einsum("ik,kj->ij", p, p)
    return dict(y=s.a * s.x + einsum("ik,kn->in", q, s.x))


@case(FK, LINE, g="T[N]", lr=0.1, p="T[N]", s=SQUARE)
def adagrad(a):
    s = a.s + a.g * a.g
    return dict(s=s, p=a.p - a.lr * a.g * rsqrt(s + 1e-6))


@case(FK, "A N | 1 1 | 3 0 | 4 7 | 5 130", g="T[A,N]")
def accumulate(a):
    return dict(y=mean(a.g, 0))

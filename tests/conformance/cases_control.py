"""References of control.fk."""

import math

import numpy as np

from bounded import *
from harness import case, ints, uniform

FK = "control.fk"
GRID = "M N | 1 1 | 0 3 | 7 33 | 5 200"


@case(FK, GRID, x="T[M,N]", c="f32[5]")
def whole_horner(a):
    s = zeros(a.M, a.N)
    for i in range(4, -1, -1):
        s = s * a.x + a.c[i]
    return dict(y=s)


def modes(a, v):
    if a.mode == 1:
        v = relu(v)
    if a.mode >= 2:
        v = v - mean(v, 1, True)
    return dict(y=v)


@case(FK, "M N mode | 0 3 1 | 7 33 0 | 7 33 1 | 5 200 2", x="T[M,N]", b="T[N]", mode=lambda a: a.mode)
def whole_modes(a):
    return modes(a, a.x + a.b)


@case(FK, "M N mode | 7 33 1 | 5 200 2", x="T[M,N]", b=None, mode=lambda a: a.mode, kernel="whole_modes")
def whole_modes_plain(a):
    return modes(a, a.x)


@case(FK, "N | 0 | 7 | 300", x=uniform("T[N]", 0.5, 1.5))
def whole_newton(a):
    r = full((a.N,), 1.0)
    for _ in range(5):
        r = r * (1.5 - 0.5 * a.x * r * r)
    return dict(y=r)


@case(FK, "N | 0 | 7 | 40", types=("f32",), a="f32[N,N]")
def whole_squarings(a):
    p = a.a
    for _ in range(3):
        p = einsum("ik,kj->ij", p, p)
    return dict(y=p)


@case(FK, "N n times | 1 9 0 | 7 3 1 | 40 1 4 | 40 9 3", types=("f32",), x="f32[N]", n=lambda a: a.n, times=lambda a: a.times, z="f32[N]")
def whole_choice(a):
    x = [val(a.x)[i] if i < a.N else 0.0 for i in range(4)]
    best = max(x[: max(1, min(a.n, 4))])
    z = a.z
    for i in range(a.times):
        if i != 1:
            z = z + best
    return dict(y=np.full(1, best), z=z)


@case(FK, "n k | 12 18 | 7 5 | 8 8", types=("i32",), n=lambda a: a.n, k=lambda a: a.k, y=ints("i32[1]", 3, 4))
def whole_divisor(a):
    d = math.gcd(a.n, a.k)
    return dict(y=a.y + d, z=np.full(1, d))

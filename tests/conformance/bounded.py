"""Arrays in f64 that carry a bound of the error that f32 arithmetic makes on the way to them.

A reference is written in these functions once, from the definition of the kernel. It then gives the value,
in f64, and how far a kernel that computes in f32 may be from it. Bounds are a running error analysis to
first order (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.3), element by element:

    x op y                     what the operands' bounds make of it, and u |x op y|
    sum of n terms             the sum of the bounds, and (n - 1) u sum |x|: holds for any order of additions
    contraction over n         sum (|a| db + |b| da + da db), and n u sum |a b|
    monotone f(x)              the larger of |f(x +- dx) - f(x)|, and the ulps of section 8 of lang/SPEC.md;
                               so `round` and `floor` may go either way where the bound crosses a step
    x as T                     u(T) (|x| + dx) + e(T); a value that is exact is rounded, and stays exact

u = 2^-24; u(T) is half the distance between neighbours of 1 in T, e(T) half the smallest positive T.
A kernel may use another formula than its reference (the online form, exp2 for exp, a contraction
split over tiles, a reciprocal and a product for a quotient), which rounds some more times. SLACK
covers that and the terms of second order: a kernel may have SLACK times as many roundings as the
reference. TINY is what flushing to zero may cost: exp gives 0 below 2^-126.
"""

import math

import numpy as np

U = 2.0**-24
SLACK = 4.0
TINY = 2.0**-124
# unit roundoff, half the smallest positive number, the largest
FLOATS = {
    "f16": (2.0**-11, 2.0**-25, 65504.0),
    "bf16": (2.0**-8, 2.0**-134, 3.3895313892515355e38),
    "f32": (2.0**-24, 2.0**-150, 3.4028234663852886e38),
    "e4m3": (2.0**-4, 2.0**-10, 448.0),
    "e5m2": (2.0**-3, 2.0**-17, 57344.0),
    "f64": (2.0**-53, 0.0, np.finfo(np.float64).max),
}
# significant bits, least exponent of a normal number
_FORMATS = {"f16": (11, -14), "bf16": (8, -126), "f32": (24, -126), "e4m3": (4, -6), "e5m2": (3, -14)}


def round_to(dtype, x):
    """x to nearest, ties to even, in the type; out of range: infinity, of 8-bit floats the largest."""
    x = np.asarray(x, np.float64)
    if dtype not in _FORMATS:
        return x
    bits, least = _FORMATS[dtype]
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(x)[1] - 1, least)
        step = np.ldexp(1.0, exponent - (bits - 1))
        y = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    largest = FLOATS[dtype][2]
    over = np.abs(y) > largest
    limit = largest if dtype in ("e4m3", "e5m2") else np.inf
    return np.where(over & np.isfinite(x), np.copysign(limit, y), y)


class B:
    """v: values; e: bounds, of the same shape."""

    __slots__ = ("v", "e")
    __array_priority__ = 100

    def __init__(self, v, e=0.0):
        self.v = np.asarray(v, np.float64)
        self.e = np.broadcast_to(np.asarray(e, np.float64), self.v.shape)

    shape = property(lambda s: s.v.shape)
    ndim = property(lambda s: s.v.ndim)
    T = property(lambda s: B(s.v.T, s.e.T))

    def __len__(self):
        return len(self.v)

    def __getitem__(self, i):
        return B(self.v[i], self.e[i])

    def __setitem__(self, i, x):
        x = wrap(x)
        if not self.e.flags.writeable:
            self.e = self.e.copy()
        self.v[i], self.e[i] = x.v, x.e

    def reshape(self, *s):
        return B(self.v.reshape(*s), self.e.reshape(*s))

    def transpose(self, *a):
        return B(self.v.transpose(*a), self.e.transpose(*a))

    def __add__(self, o):
        o = wrap(o)
        v = self.v + o.v
        return B(v, self.e + o.e + U * np.abs(v))

    def __mul__(self, o):
        o = wrap(o)
        v = self.v * o.v
        return B(v, _times(np.abs(self.v), o.e) + _times(np.abs(o.v), self.e) + self.e * o.e + U * np.abs(v))

    def __truediv__(self, o):
        o = wrap(o)
        with np.errstate(all="ignore"):
            v = self.v / o.v
            room = np.abs(o.v) - o.e
            e = (self.e + np.abs(v) * o.e) / np.where(room > 0, room, np.nan)
        e = np.where(np.isfinite(v), np.where(room > 0, e, np.inf), 0)
        return B(v, e + U * np.where(np.isfinite(v), np.abs(v), 0))

    def __neg__(self):
        return B(-self.v, self.e)

    def __sub__(self, o):
        return self + (-wrap(o))

    def __rsub__(self, o):
        return wrap(o) + (-self)

    def __rtruediv__(self, o):
        return wrap(o) / self

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, o):
        return self.v < wrap(o).v

    def __le__(self, o):
        return self.v <= wrap(o).v

    def __gt__(self, o):
        return self.v > wrap(o).v

    def __ge__(self, o):
        return self.v >= wrap(o).v

    def __abs__(self):
        return B(np.abs(self.v), self.e)

    def to(self, dtype):
        """Rounded to a float type, as `as` and a store do."""
        u, least, _ = FLOATS[dtype]
        exact = self.e == 0
        v = np.where(exact, round_to(dtype, self.v), self.v)
        return B(v, np.where(exact, 0, self.e + u * (np.abs(self.v) + self.e) + least))


def wrap(x):
    return x if isinstance(x, B) else B(x)


def _times(a, e):
    """a e, where 0 times infinity is 0: a factor that is exactly 0 makes no error."""
    with np.errstate(invalid="ignore"):
        return np.where((a == 0) | (e == 0), 0, a * e)


def val(x):
    """The values, without bounds: for comparisons and indices."""
    return x.v if isinstance(x, B) else np.asarray(x)


def _monotone(f, ulps):
    """ulps of the result; half of one is u |result|."""

    def g(x):
        x = wrap(x)
        with np.errstate(all="ignore"):
            v, lo, hi = f(x.v), f(x.v - x.e), f(x.v + x.e)
            e = np.fmax(np.abs(hi - v), np.abs(lo - v))
        fine = np.isfinite(v)
        e = np.where(x.e > 0, e, 0) + np.where(fine, 2 * ulps * U * np.abs(v), 0)
        return B(v, np.where(fine, np.where(np.isnan(e), np.inf, e), 0))

    return g


_erf = np.vectorize(math.erf, otypes=[np.float64])
exp = _monotone(np.exp, 2)
exp2 = _monotone(np.exp2, 2)
log = _monotone(np.log, 2)
log2 = _monotone(np.log2, 2)
tanh = _monotone(np.tanh, 4)
erf = _monotone(lambda x: _erf(x) if np.size(x) else np.asarray(x), 4)
sqrt = _monotone(np.sqrt, 0.5)
rsqrt = _monotone(lambda x: 1 / np.sqrt(x), 2)
rint = _monotone(np.rint, 0)  # ties to even
floor = _monotone(np.floor, 0)
trunc = _monotone(np.trunc, 0)


def round_away(x):
    """round(x) of the language: to nearest, ties away from zero."""
    return _monotone(lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a), 0)(x)


def _lipschitz(f):
    def g(x):
        x = wrap(x)
        v = f(x.v)
        return B(v, np.minimum(x.e, 2) + 4 * U * np.abs(v))

    return g


sin, cos = _lipschitz(np.sin), _lipschitz(np.cos)


def where(c, a, b):
    a, b = wrap(a), wrap(b)
    return B(np.where(c, a.v, b.v), np.where(c, a.e, b.e))


def maximum(a, b):
    """Where one is larger for certain it is its bound that counts."""
    a, b = wrap(a), wrap(b)
    with np.errstate(invalid="ignore"):
        first, second = a.v - a.e > b.v + b.e, b.v - b.e > a.v + a.e
    e = np.where(first, a.e, np.where(second, b.e, np.maximum(a.e, b.e)))
    return B(np.maximum(a.v, b.v), e)


def minimum(a, b):
    return -maximum(-wrap(a), -wrap(b))


def _count(x, axis):
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis)
    return math.prod(x.shape[a] for a in axes)


def _axis(axis):
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def sum(x, axis=None, keepdims=False):
    x, axis = wrap(x), _axis(axis)
    n = _count(x, axis)
    size = np.abs(x.v).sum(axis, keepdims=keepdims)
    e = x.e.sum(axis, keepdims=keepdims) + max(n - 1, 0) * U * size
    return B(x.v.sum(axis, keepdims=keepdims), e)


def mean(x, axis=None, keepdims=False):
    """NaN over nothing."""
    s = sum(x, axis, keepdims)
    n = _count(wrap(x), _axis(axis))
    return s / float(n) if n else B(np.full(s.shape, np.nan))


def variance(x, axis=None, keepdims=False):
    d = x - mean(x, axis, True)
    return mean(d * d, axis, keepdims)


def prod(x, axis):
    """|prod| (the sum of relative bounds, and n - 1 roundings)."""
    x = wrap(x)
    v = x.v.prod(axis)
    with np.errstate(all="ignore"):
        relative = np.where(x.v == 0, 0, x.e / np.abs(x.v)).sum(axis) + (x.shape[axis] - 1) * U
    return B(v, np.abs(v) * relative)


def _extreme(f, start):
    def g(x, axis=None, keepdims=False):
        x, axis = wrap(x), _axis(axis)
        v = f(x.v, axis, start, keepdims)
        return B(v, x.e.max(axis, initial=0, keepdims=keepdims))

    return g


amax = _extreme(lambda v, a, s, k: v.max(a, initial=s, keepdims=k), -np.inf)
amin = _extreme(lambda v, a, s, k: v.min(a, initial=s, keepdims=k), np.inf)


def einsum(form, a, b):
    """A contraction of two operands; n is the product of the extents that the result lacks."""
    a, b = wrap(a), wrap(b)
    ins, out = form.split("->")
    names = {}
    for letters, x in zip(ins.split(","), (a, b)):
        names.update(zip(letters, x.shape))
    n = math.prod(size for name, size in names.items() if name not in out)
    av, bv = np.abs(a.v), np.abs(b.v)
    e = n * U * np.einsum(form, av, bv)
    if a.e.any():
        e = e + np.einsum(form, a.e, bv + b.e)
    if b.e.any():
        e = e + np.einsum(form, av, b.e)
    return B(np.einsum(form, a.v, b.v), e)


def cumsum(x, axis):
    x = wrap(x)
    n = x.shape[axis]
    return B(x.v.cumsum(axis), x.e.cumsum(axis) + max(n - 1, 0) * U * np.abs(x.v).cumsum(axis))


def cumprod(x, axis):
    x = wrap(x)
    v = x.v.cumprod(axis)
    with np.errstate(all="ignore"):
        relative = np.where(x.v == 0, 0, x.e / np.abs(x.v)).cumsum(axis)
    return B(v, np.abs(v) * (relative + x.shape[axis] * U))


def stack(xs, axis=0):
    xs = [wrap(x) for x in xs]
    return B(np.stack([x.v for x in xs], axis), np.stack([x.e for x in xs], axis))


def concat(xs, axis=0):
    xs = [wrap(x) for x in xs]
    return B(np.concatenate([x.v for x in xs], axis), np.concatenate([x.e for x in xs], axis))


def zeros(*shape):
    return B(np.zeros(shape), np.zeros(shape))


def full(shape, x):
    return B(np.full(shape, float(x)), np.zeros(shape))


def pad(x, widths, value=0.0):
    x = wrap(x)
    return B(np.pad(x.v, widths, constant_values=value), np.pad(x.e, widths))


def take(x, i, axis):
    x = wrap(x)
    return B(np.take_along_axis(x.v, i, axis), np.take_along_axis(x.e, i, axis))


# --- the library's functions, from their definitions ---


def sigmoid(x):
    return 1 / (1 + exp(-wrap(x)))


def silu(x):
    return x / (1 + exp(-wrap(x)))


def relu(x):
    return maximum(x, 0)


def gelu(x):
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def gelu_tanh(x):
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softplus(x):
    return maximum(x, 0) + log(1 + exp(-abs(wrap(x))))


def softmax(x, axis=-1):
    e = exp(x - amax(x, axis, True))
    return e / sum(e, axis, True)


def logsumexp(x, axis=-1):
    m = amax(x, axis, True)
    s = log(sum(exp(x - m), axis, True)) + m
    return B(s.v.squeeze(axis), s.e.squeeze(axis))

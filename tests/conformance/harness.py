"""Cases of the conformance collection and how they run.

A case is a kernel of a .fk file beside its reference:

    @case("norm.fk", "M N | 1 1 | 3 300", x="T[M,N]", w="T[N]", eps=1e-5)
    def rmsnorm(a):
        return dict(y=a.x * rsqrt(mean(a.x * a.x, -1, True) + a.eps) * a.w)

The function's name is the kernel's, unless `kernel` gives another. Shapes are rows of the table; columns named in `defines` go to the
compiler (-D). Inputs are drawn by their specs: a string is uniform in [-1, 1) and rounded to the type,
`T` the type that the case runs in; others are made by uniform, ints, made, derived below. The
reference gets them as attributes, with the shape's columns: floats as bounded.B, integers as arrays,
and returns its outputs by name. None is an absent tensor. A bound of NaN says: this element is not written.

`loss` makes a case of a backward kernel: it computes, from the inputs, the number whose derivative in
`wrt[output]` each output is; central differences of it in f64 have to agree with what the kernel gives.
"""

import math
import re
import types
import zlib

import numpy as np

from bounded import FLOATS, SLACK, TINY, B, round_to, val
from storage import FLOAT, LAYOUTS, Held

CASES = {}  # kernel -> Case, in order


class Spec:
    """An input: its element type and dims as text, and `draw(rng, dims, made so far)`."""

    def __init__(self, text, draw, rounded=False):
        self.dtype, dims = re.fullmatch(r"\s*(\w+)\[(.*)\]\s*", text).groups()
        self.dims = [d for d in dims.split(",") if d.strip()]
        self.draw, self.rounded = draw, rounded

    def over(self, text):
        return Spec(text, self.draw, self.rounded)

    def shape(self, dims):
        return tuple(int(eval(d, {"cdiv": lambda a, b: -(-a // b)}, dims)) for d in self.dims)


def uniform(text, lo=-1.0, hi=1.0):
    return Spec(text, lambda r, d, shape, a: r.uniform(lo, hi, shape))


def ints(text, lo, hi):
    """In [lo, hi); texts are expressions of dims."""

    def draw(r, d, shape, a):
        low, high = (int(eval(str(x), {}, d)) for x in (lo, hi))
        return r.integers(low, max(high, low + 1), shape)

    return Spec(text, draw)


def made(text, f):
    """f(rng, shape, arguments made so far)."""
    return Spec(text, lambda r, d, shape, a: f(r, shape, a))


def derived(text, f):
    """What another kernel would have computed from the arguments so far, rounded to the type: the
    reference's bound counts that rounding."""
    return Spec(text, lambda r, d, shape, a: val(f(a)), rounded=True)


class Case:
    def __init__(self, f, file, kernel, shapes, types_, defines, loss, wrt, inputs):
        self.name, self.kernel, self.reference, self.file = f.__name__, kernel or f.__name__, f, file
        head, *rows = [row.split() for row in shapes.split("|")]
        self.shapes = [dict(zip(head, map(_value, row))) for row in rows]
        assert self.shapes and all(len(s) == len(head) for s in self.shapes), self.name
        self.types, self.defines = types_, defines
        self.loss, self.wrt = loss, wrt
        self.inputs = inputs

    def arguments(self, dtype, shape):
        """What a launch is given (dtype, values) and what the reference sees."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {sorted(shape.items())}".encode()))
        given, seen = {}, types.SimpleNamespace(T=dtype, **shape)
        for name, spec in self.inputs.items():
            if isinstance(spec, str):
                spec = uniform(spec)
            if not isinstance(spec, Spec):
                value = spec(seen) if callable(spec) else spec
                given[name] = value
                # a scalar argument of the kernel is f32
                setattr(seen, name, float(np.float32(value)) if isinstance(value, float) else value)
                continue
            of = dtype if spec.dtype == "T" else spec.dtype
            size = spec.shape(shape)
            v = np.broadcast_to(spec.draw(rng, shape, size, seen), size)
            v = round_to(of, v) if of in FLOAT else np.asarray(v, np.int64)
            given[name] = (of, v)
            setattr(seen, name, _seen(of, v, spec.rounded))
        return given, seen


def _seen(dtype, v, rounded):
    if dtype not in FLOAT:
        return v
    u, least, _ = FLOATS[dtype]
    return B(v, u * np.abs(v) + least if rounded else 0.0)


def _value(text):
    return {"true": True, "false": False}[text] if text in ("true", "false") else int(text)


def case(file, shapes, types=("f32", "f16", "bf16"), defines="", loss=None, wrt=None, kernel=None, **inputs):
    def declare(f):
        assert f.__name__ not in CASES, f.__name__
        CASES[f.__name__] = Case(f, file, kernel, shapes, types, defines.split(), loss, wrt or {}, inputs)
        return f

    return declare


# --- comparison ---


def check(dtype, held, want):
    """None, or what is wrong with an output."""
    got = held.read()
    want = want if isinstance(want, (B, np.ndarray)) else np.asarray(want)
    if got.shape != tuple(want.shape):
        return f"shape {got.shape}, not {tuple(want.shape)}"
    if dtype not in FLOAT:
        if isinstance(want, B):
            keep, bound, v = np.isnan(want.e), np.nan_to_num(want.e), np.nan_to_num(want.v)
        else:
            keep, bound, v = np.zeros(got.shape, bool), 0, want
        with np.errstate(invalid="ignore"):
            wrong = np.where(keep, ~held.kept(), np.abs(got - v) > bound)
    else:
        want = want if isinstance(want, B) else B(want)
        keep, v = np.isnan(want.e), want.v
        u, least, largest = FLOATS[dtype]
        bound = SLACK * want.e + TINY
        if dtype != "f64":
            bound = bound + u * (np.abs(v) + bound) + least
            if dtype in ("e4m3", "e5m2"):
                v = np.clip(v, -largest, largest)
        with np.errstate(invalid="ignore"):
            near = (np.abs(got - v) <= bound) | (got == v) | (np.isnan(got) & np.isnan(v))
            # what may round to infinity may be infinite
            near |= np.isinf(got) & (np.sign(got) == np.sign(v)) & (np.abs(v) + bound > largest)
        wrong = np.where(keep, ~held.kept(), ~near)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    limit = np.broadcast_to(bound, got.shape)[at]
    return f"{int(wrong.sum())} of {got.size} elements; {list(at)} is {got[at]!r}, not {v[at]!r} (bound {limit:.3g})"


def check_gradient(c, seen, output, held, want, seed):
    """Directional central differences of the loss, extrapolated from two steps."""
    name = c.wrt[output]
    x = getattr(seen, name)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        d = rng.standard_normal(x.shape)

        def slope(h):
            values = []
            for sign in (1, -1):
                moved = types.SimpleNamespace(**vars(seen))
                setattr(moved, name, B(x.v + sign * h * d))
                values.append(float(val(c.loss(moved))))
            return (values[0] - values[1]) / (2 * h), max(map(abs, values))

        h = 1e-4 / max(1.0, math.sqrt(max(d.size, 1)))
        (coarse, size), (fine, _) = slope(h), slope(h / 2)
        expect = (4 * fine - coarse) / 3
        got = float((held.read() * d).sum())
        # the kernel's own bound, what is left of the truncation, and the cancellation of the loss
        room = float(((SLACK * want.e + TINY) * np.abs(d)).sum()) + abs(fine - coarse) + 1e-14 * (1 + size) / h
        if not abs(got - expect) <= room:
            return f"derivative along a direction of `{name}` is {got:.9g}, differences give {expect:.9g} (bound {room:.3g})"
    return None


# --- running ---


class Failure(Exception):
    pass


class Results:
    """What the reference says of one (type, shape); computed once for all devices."""

    def __init__(self, c, dtype, shape):
        self.given, self.seen = c.arguments(dtype, shape)
        with np.errstate(all="ignore"):
            self.want = c.reference(self.seen)


def launch(c, kernel, shape, layout, results, seed):
    held, device = {}, kernel.module.device
    names = list(LAYOUTS)
    for t, p in enumerate(kernel.params):
        name, is_tensor, dtype, mode, optional = p[:5]
        turn = names[0] if layout == 0 else names[(layout + t * (seed % 2)) % len(names)]
        if name in results.given and results.given[name] is not None:
            value = results.given[name]
            if is_tensor:
                of, v = value
                held[name] = Held(of, v.shape, turn, v, device, mode != "in")
        elif is_tensor and mode == "out" and results.want.get(name) is not None:
            held[name] = Held(dtype, results.want[name].shape, turn, device=device, words=True)
    arguments = {n: h.tensor for n, h in held.items()}
    for name, is_tensor, *rest in kernel.params:
        if name not in arguments and name in results.given:
            arguments[name] = results.given[name]
    kernel.prepare(**arguments)()
    if device.is_cuda:
        device.synchronize()
    for h in held.values():
        h.fetch()
    return held


def verify(c, kernel, held, results, seed):
    for name, is_tensor, dtype, mode, optional, _ in kernel.params:
        if not is_tensor or name not in held:
            if is_tensor and mode != "in" and results.want.get(name) is None and not optional:
                raise Failure(f"the reference gives no `{name}`")
            continue
        h = held[name]
        if mode == "in":
            if not h.unchanged():
                raise Failure(f"input `{name}` has changed")
            continue
        if not h.guarded():
            raise Failure(f"bytes around `{name}` have changed")
        wrong = check(h.dtype, h, results.want[name])
        if wrong:
            raise Failure(f"`{name}`: {wrong}")
        if c.loss and name in c.wrt and h.dtype == "f32":
            wrong = check_gradient(c, results.seen, name, h, results.want[name], seed)
            if wrong:
                raise Failure(f"`{name}`: {wrong}")
    unknown = set(results.want) - {p[0] for p in kernel.params}
    if unknown:
        raise Failure(f"the reference has outputs that the kernel lacks: {sorted(unknown)}")

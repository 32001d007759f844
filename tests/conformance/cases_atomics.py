"""References of atomics.fk."""

import numpy as np

from bounded import val
from harness import case, ints, made

FK = "atomics.fk"
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u64")
BYTES = ("u8", "i16", "i32", "u64", "e4m3", "e5m2", "bf16", "f64")
SHAPES = "N K | 0 3 | 40 7 | 200 50"
AT = ints("i32[N]", 0, "K")
ZERO = ints("i32[K]", 0, 1)


def carrier(t):
    return np.dtype(f"{t[0]}{int(t[1:]) // 8}")


def bits(text):
    """All of the type, of wide types 40 bits."""

    def draw(r, shape, a):
        limits = np.iinfo(carrier(a.T))
        return r.integers(max(limits.min, -(2**40)), min(limits.max, 2**40), shape)

    return made(text, draw)


def collect(f, start, at, x, t=None):
    """start, where each x has been combined with the element that `at` says."""
    start, x = (np.asarray(val(v), np.float64) if t is None else np.asarray(v).astype(t) for v in (start, x))
    y = start.copy()
    f.at(y, at, x)
    return y


WORD = {name: bits("T[K]") for name in ("total", "most", "least", "every", "some", "odd")}
BITS = {name: WORD[name] for name in ("every", "some", "odd")}


def bitwise(a, at, x, t):
    return dict(
        every=collect(np.bitwise_and, a.every, at, x, t),
        some=collect(np.bitwise_or, a.some, at, x, t),
        odd=collect(np.bitwise_xor, a.odd, at, x, t),
    )


@case(FK, SHAPES, types=INTEGERS, x=bits("T[N]"), at=AT, **WORD)
def atomic_integers(a):
    t = carrier(a.T)
    return dict(
        total=collect(np.add, a.total, a.at, a.x, t),
        most=collect(np.maximum, a.most, a.at, a.x, t),
        least=collect(np.minimum, a.least, a.at, a.x, t),
        **bitwise(a, a.at, a.x, t),
    )


SMALL = made("T[K]", lambda r, shape, a: r.integers(-2, 3, shape))


@case(
    FK,
    "N K | 0 3 | 40 10 | 200 70",
    types=("e4m3", "e5m2", "f16", "bf16", "f32", "f64"),
    x=made("T[N]", lambda r, shape, a: r.integers(-1, 2, shape)),
    at=made("i32[N]", lambda r, shape, a: r.permutation(shape[0]) % a.K),
    **dict.fromkeys(("total", "most", "least"), SMALL),
)
def atomic_floats(a):
    # four at a time meet: no sum is above 6, which all types have
    return dict(
        total=collect(np.add, a.total, a.at, val(a.x)),
        most=collect(np.maximum, a.most, a.at, val(a.x)),
        least=collect(np.minimum, a.least, a.at, val(a.x)),
    )


ROWS = "N D K | 0 3 2 | 7 1 3 | 70 33 9"


@case(FK, ROWS, types=("i8", "u16", "i32", "u64"), x=bits("T[N,D]"), at=AT, **BITS)
def atomic_bits_of_rows(a):
    return bitwise(a, np.repeat(a.at, a.D), a.x.ravel(), carrier(a.T))


@case(FK, ROWS, types=("i8", "u16", "u64"), x=bits("T[N,D]"), at=AT, total=WORD["total"])
def atomic_sums_of_rows(a):
    t, at, x = carrier(a.T), np.repeat(a.at, a.D), a.x.ravel()
    return dict(total=collect(np.subtract, a.total, at, x, t))


FLAGS = ints("bool[K]", 0, 2)


@case(FK, ROWS, types=("bool",), x=ints("bool[N,D]", 0, 2), at=AT, **dict.fromkeys(BITS, FLAGS))
def atomic_flags(a):
    return bitwise(a, np.repeat(a.at, a.D), a.x.ravel(), np.uint8)


def found(a):
    return np.isin(np.arange(a.K), a.at)


@case(FK, SHAPES, types=("bool",), at=AT, taken=FLAGS, claims=ZERO)
def atomic_flag_claims(a):
    return dict(taken=np.where(found(a), 1, a.taken), claims=(found(a) & (a.taken == 0)).astype(int))


@case(FK, SHAPES, types=BYTES, at=AT, slot=made("T[K]", lambda r, shape, a: r.integers(0, 4, shape)), claims=ZERO)
def atomic_claims(a):
    slot = np.asarray(val(a.slot)).astype(int)
    claims = found(a) & (slot == 0)
    return dict(slot=np.where(claims, 1, slot), claims=claims.astype(int))


@case(
    FK,
    SHAPES,
    types=BYTES,
    x=made("T[1]", lambda r, shape, a: r.integers(0, 4, shape)),
    at=AT,
    slot=made("T[K]", lambda r, shape, a: r.integers(0, 4, shape)),
    found=ZERO,
)
def atomic_exchanges(a):
    slot, x = np.asarray(val(a.slot)).astype(int), np.asarray(val(a.x)).astype(int)[0]
    count = np.bincount(a.at, minlength=a.K)
    return dict(slot=np.where(count > 0, x, slot), found=np.where(count > 0, slot + (count - 1) * x, 0))


@case(FK, SHAPES, types=("i32",), at=AT, count=ZERO)
def atomic_counts(a):
    return dict(count=np.bincount(a.at, minlength=a.K))


@case(
    FK,
    "N K | 0 3 | 40 40 | 200 233",
    types=("i32",),
    at=made("i32[N]", lambda r, shape, a: r.permutation(a.K)[: a.N]),
    x=ints("i32[N]", -9, 10),
    c=ints("i32[K]", -9, 10),
)
def atomic_old_values(a):
    old, c = a.c[a.at], np.array(a.c)
    c[a.at] += a.x
    after = c[a.at]
    c[0] = max(c[0], int(old.sum() > 0))
    return dict(c=c, before=old + 1, after=after, twice=2 * old, backwards=old[::-1])


@case(FK, SHAPES, types=("u8", "i32", "f16"), at=AT, slot=made("T[K]", lambda r, shape, a: r.integers(0, 4, shape)), claims=ZERO, last=ints("i32[1]", 5, 6))
def atomic_claims_whole(a):
    slot = np.asarray(val(a.slot)).astype(int)
    claims = found(a) & (slot == 0)
    then = np.where(claims, 1, slot)
    return dict(slot=np.where(found(a) & (then == 2), 3, then), claims=claims.astype(int), last=np.full(1, 2), first=np.full(1, 1))


@case(
    FK,
    "M N K | 0 3 5 | 3 5 17 | 2 1500 3000",
    types=("i32",),
    at=made("i32[M,N]", lambda r, shape, a: r.permutation(a.K)[: shape[0] * shape[1]].reshape(shape)),
    x=ints("i32[M,N]", -9, 10),
    c=ints("i32[K]", -9, 10),
)
def atomic_old_rows(a):
    return dict(c=collect(np.add, a.c, a.at, a.x, np.int32), y=2 * a.c[a.at])

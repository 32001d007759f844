"""References of sparse.fk."""

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "sparse.fk"


def rows(x, i):
    """x[i], 0 where i is outside."""
    on = (i >= 0) & (i < len(x))
    if not len(x):
        return zeros(*i.shape, *x.shape[1:])
    return where(on.reshape(on.shape + (1,) * (x.ndim - 1)), x[np.where(on, i, 0)], 0)


def added(y, at, x):
    """y[at[n]] += x[n], in any order; what is outside is dropped."""
    v, size, n = y.v.copy(), np.abs(y.v), np.zeros(y.shape)
    for i, to in enumerate(at):
        if 0 <= to < len(v):
            v[to] += x.v[i]
            size[to] += np.abs(x.v[i])
            n[to] += 1
    return B(v, n * U * size)


def offsets(dims, total):
    """A segment's first and last, of `total` elements; some are empty."""

    def draw(r, shape, a):
        n = getattr(a, total)
        return np.sort(np.concatenate([[0], r.integers(0, n + 1, shape[0] - 2), [n]])) if shape[0] > 1 else np.zeros(1)

    return made(f"i32[{dims}]", draw)


def segments(s):
    return [slice(int(a), int(b)) for a, b in zip(s[:-1], s[1:])]


IDS = "N V D | 1 1 1 | 0 3 4 | 5 7 3 | 33 20 40 | 3 0 4"


@case(FK, IDS, ids=ints("i64[N]", -2, "V + 2"), w="T[V,D]")
def embedding(a):
    return dict(y=rows(a.w, a.ids))


@case(FK, IDS, ids=ints("i64[N]", -2, "V + 2"), dy="T[N,D]", dw="f32[V,D]")
def embedding_grad(a):
    return dict(dw=added(a.dw, a.ids, a.dy))


@case(FK, "B S V L D | 1 1 1 1 1 | 2 5 7 8 3 | 2 17 20 17 40", ids=ints("i32[B,S]", -1, "V + 1"), w="T[V,D]", p="T[L,D]", scale=1.5)
def embedding_pos(a):
    return dict(y=rows(a.w, a.ids) * a.scale + a.p[: a.S])


def bags(a, p):
    w = rows(a.w, a.ids) * p
    return dict(y=stack([sum(w[s], 0) / float(max(s.stop - s.start, 1)) for s in segments(a.off)]))


BAGS = "E B V D | 1 1 1 1 | 9 4 7 3 | 70 5 20 40 | 0 2 3 4"


@case(FK, BAGS, ids=ints("i64[E]", -1, "V + 1"), off=offsets("B+1", "E"), w="T[V,D]", p="f32[E]")
def embedding_bag(a):
    return bags(a, a.p[:, None])


@case(FK, BAGS, ids=ints("i64[E]", -1, "V + 1"), off=offsets("B+1", "E"), w="T[V,D]", p=None, kernel="embedding_bag")
def embedding_bag_plain(a):
    return bags(a, 1)


SEGMENTS = "N E D | 1 1 1 | 9 4 3 | 70 5 40 | 0 2 4"


@case(FK, SEGMENTS, types=("f32",), x="f32[N,D]", s=offsets("E+1", "N"))
def segment_max(a):
    return dict(y=stack([amax(a.x[s], 0) for s in segments(a.s)]))


@case(FK, SEGMENTS, x="T[N,D]", s=offsets("E+1", "N"))
def segment_sum(a):
    return dict(y=stack([sum(a.x[s], 0) for s in segments(a.s)]))


@case(FK, "N E | 1 1 | 9 4 | 70 5 | 150 2", x=uniform("T[N]", -4, 4), s=offsets("E+1", "N"))
def segment_softmax(a):
    return dict(y=concat([softmax(a.x[s], 0) for s in segments(a.s)]))


@case(FK, "M E K N | 1 1 1 1 | 4 9 5 3 | 6 70 20 40", row=offsets("M+1", "E"), col=ints("i32[E]", 0, "K"), v="T[E]", x="T[K,N]")
def spmm_csr(a):
    return dict(y=stack([sum(a.v[s][:, None] * a.x[a.col[s]], 0) for s in segments(a.row)]))


@case(FK, "E M N K | 1 1 1 1 | 0 2 3 4 | 9 4 5 3 | 33 7 9 40", row=ints("i32[E]", 0, "M"), col=ints("i32[E]", 0, "N"), a="T[M,K]", b="T[N,K]")
def sddmm(s):
    return dict(v=sum(rows(s.a, s.row) * rows(s.b, s.col), -1))


@case(FK, "N D E | 1 1 1 | 5 3 9 | 20 40 33 | 5 3 0", x="T[N,D]", at=ints("i32[E]", -1, "N"))
def moe_gather(a):
    return dict(y=rows(a.x, a.at))


def order(x):
    """Descending, equal ones by index."""
    return np.argsort(-val(x), -1, kind="stable")


@case(FK, "N E | 1 2 | 0 4 | 5 7 | 33 64", x=made("T[N,E]", lambda r, s, a: r.integers(-9, 10, s) / 4))
def moe_route(a):
    at = order(a.x)[:, :2]
    v = take(a.x, at, -1)
    p = exp(v - v[:, :1])
    return dict(w=p / sum(p, -1, True), at=at)


EXPERTS = "N E | 1 1 | 0 4 | 9 5 | 150 8"


@case(FK, EXPERTS, types=("i32",), at=ints("i32[N]", -1, "E + 1"))
def moe_count(a):
    return dict(c=(a.at[:, None] == np.arange(a.E)).sum(0))


@case(FK, EXPERTS, types=("i32",), at=ints("i32[N]", 0, "E"))
def moe_slots(a):
    c = (a.at[:, None] == np.arange(a.E)).sum(0)
    slot = np.empty(a.N, np.int64)
    slot[np.argsort(a.at, kind="stable")] = np.arange(a.N)
    return dict(off=np.cumsum(c) - c, slot=slot)


@case(FK, "S D N J | 1 1 1 1 | 9 3 5 2 | 64 40 33 2 | 4 3 0 2", h="T[S,D]", slot=ints("i32[N,J]", -1, "S"), w=uniform("f32[N,J]", 0, 1))
def moe_combine(a):
    return dict(y=sum(rows(a.h, a.slot) * a.w[:, :, None], 1))


RAGGED = "M K N G | 1 1 1 1 | 9 5 3 4 | 70 33 40 3 | 20 16 16 1"


@case(FK, RAGGED, x="T[M,K]", w="T[G,K,N]", off=offsets("G+1", "M"))
def grouped_matmul(a):
    return dict(y=concat([einsum("mk,kn->mn", a.x[s], a.w[g]) for g, s in enumerate(segments(a.off))]))


@case(FK, RAGGED, x="T[M,K]", dy="T[M,N]", off=offsets("G+1", "M"))
def grouped_dw(a):
    return dict(dw=stack([einsum("mk,mn->kn", a.x[s], a.dy[s]) for s in segments(a.off)]))


NUMBERS = ("f32", "i32", "i64", "u32")
FEW = lambda text: made(text, lambda r, s, a: r.integers(0, 9, s))
AT = "N V | 1 1 | 0 3 | 9 5 | 150 33 | 64 1"


def integers(x):
    return x.v.astype(np.int64) if isinstance(x, B) else x


def like(a, x):
    return B(x) if a.T in ("f16", "bf16", "f32", "f64", "e4m3") else x


@case(FK, AT, types=NUMBERS, x=FEW("T[N]"), at=ints("i64[N]", -1, "V + 1"), y=FEW("T[V]"))
def scatter_add(a):
    y = integers(a.y).copy()
    on = (a.at >= 0) & (a.at < a.V)
    np.add.at(y, a.at[on], integers(a.x)[on])
    return dict(y=like(a, y))


@case(FK, AT, types=NUMBERS, x=FEW("T[N]"), at=ints("i64[N]", -1, "V + 1"), y=FEW("T[V]"))
def scatter_max(a):
    y = integers(a.y).copy()
    on = (a.at >= 0) & (a.at < a.V)
    np.maximum.at(y, a.at[on], integers(a.x)[on])
    return dict(y=like(a, y))


@case(FK, "N | 1 | 0 | 7 | 150", types=("i32",), p=made("i32[N]", lambda r, s, a: r.permutation(s[0])), y=FEW("i32[N]"))
def invert(a):
    return dict(y=np.argsort(a.p))


STORED = ("f32", "bf16", "i8", "u64", "e4m3")


@case(FK, "M N K | 1 1 1 | 3 5 7 | 0 3 4 | 17 40 33", types=STORED, x=FEW("T[M,N]"), at=ints("i64[M,K]", -1, "N + 1"))
def take_columns(a):
    on = (a.at >= 0) & (a.at < a.N)
    return dict(y=like(a, np.where(on, np.take_along_axis(integers(a.x), np.where(on, a.at, 0), 1), 0)))


@case(FK, "N V | 1 1 | 0 3 | 5 7 | 33 65", types=("f32", "bf16", "i8", "u64"), ids=ints("i64[N]", -1, "V + 1"))
def one_hot(a):
    return dict(y=like(a, (a.ids[:, None] == np.arange(a.V)).astype(np.int64)))


def packed(x, c):
    """The first c of x; what they do not fill is kept."""
    x = wrap(x)
    n = min(len(x), c)
    y = B(np.zeros((c, *x.shape[1:])), np.full((c, *x.shape[1:]), np.nan))
    y[:n] = x[:n]
    return y


def sparse_values(text):
    return made(text, lambda r, s, a: np.where(r.random(s) < 0.5, 0, r.integers(1, 9, s)))


@case(FK, "N C | 1 1 | 0 3 | 9 9 | 150 150 | 150 20", types=("f32", "i32", "bf16", "u8"), x=sparse_values("T[N]"))
def nonzero(a):
    at = np.flatnonzero(val(a.x))
    return dict(idx=packed(at, a.C), count=np.array([len(at)]))


@case(FK, "N D C | 1 1 1 | 0 3 4 | 9 3 9 | 70 20 70", types=("f32", "i64", "bf16", "u8"), x=FEW("T[N,D]"), on=ints("bool[N]", 0, 2))
def compact(a):
    on = a.on != 0
    return dict(y=packed(a.x[on], a.C), count=np.array([on.sum()]))


TIED = made("T[M,N]", lambda r, s, a: r.integers(0, 20, s))


@case(FK, "M N J | 1 1 1 | 0 5 2 | 3 7 4 | 2 33 8 | 2 3 4", types=("f32", "f16", "i32", "u8"), defines="N J", x=TIED)
def topk_rows(a):
    at = order(a.x)[:, : a.J]
    v = np.take_along_axis(integers(a.x), at, 1)
    more = ((0, 0), (0, a.J - at.shape[1]))
    return dict(v=like(a, np.pad(v, more)), at=np.pad(at, more, constant_values=-1))


@case(FK, "M N | 1 1 | 0 5 | 3 7 | 2 33 | 1 64", types=("f32", "bf16", "i16", "u8"), defines="N", x=TIED)
def sort_rows(a):
    at = np.argsort(val(a.x), -1, kind="stable")
    return dict(v=like(a, np.take_along_axis(integers(a.x), at, 1)), at=at)


@case(FK, "M N S | 1 1 6 | 4 50 24 | 3 60 40 | 5 33 7 | 2 200 96 | 3 500 384", types=("f32", "f16", "i32"), defines="S", x=TIED)
def sort_groups(a):
    begins = range(0, a.N, a.S)
    groups = [np.argsort(val(a.x)[:, b : b + a.S], -1, kind="stable") + b for b in begins]
    at = np.concatenate(groups, 1)
    back = np.concatenate([np.arange(b, min(b + a.S, a.N))[::-1] for b in begins])
    x = integers(a.x)
    return dict(v=like(a, np.take_along_axis(x, at, 1)), at=at, back=like(a, x[:, back]))


@case(FK, "M N | 1 1 | 3 7 | 2 33", types=("f32",), defines="N", x="f32[M,N]")
def median(a):
    return dict(y=np.median(a.x.v, 1))


@case(FK, "N B | 1 1 | 0 3 | 9 5 | 300 256", types=("u8",), x=ints("u8[N]", 0, 256))
def histogram_u8(a):
    return dict(c=(a.x[:, None] == np.arange(a.B)).sum(0))


@case(FK, "N B | 1 1 | 0 3 | 9 5 | 150 33", types=("i32",), x=ints("i32[N]", -1, "B + 1"), w=ints("i32[N]", -9, 10), c=ints("i32[B]", 0, 9))
def bincount(a):
    return dict(c=a.c + ((a.x[:, None] == np.arange(a.B)) * a.w[:, None]).sum(0))


@case(FK, "V N | 1 1 | 0 3 | 9 5 | 33 70", types=("f32",), s=made("f32[V]", lambda r, s, a: np.sort(r.integers(-9, 9, s))), x=made("f32[N]", lambda r, s, a: r.integers(-10, 10, s)))
def searchsorted(a):
    return dict(at=np.searchsorted(a.s.v, a.x.v))


@case(FK, "N | 1 | 2 | 9 | 150", types=("i32",), x=made("i32[N]", lambda r, s, a: np.sort(r.integers(0, 7, s))))
def run_starts(a):
    first = np.concatenate([[1], a.x[1:] != a.x[:-1]])
    return dict(id=np.cumsum(first) - 1, runs=np.array([first.sum()]))


@case(FK, "V D E | 1 1 1 | 5 3 9 | 20 40 70 | 5 3 0", types=("f32",), x="f32[V,D]", from_=ints("i32[E]", 0, "V"), to=ints("i32[E]", 0, "V"), y="f32[V,D]")
def graph_max(a):
    y = a.y.v.copy()
    np.maximum.at(y, a.to, a.x.v[a.from_])
    return dict(y=y)

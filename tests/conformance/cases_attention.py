"""References of attention.fk."""

import math

from bounded import *
from harness import case, derived, ints, made, uniform

FK = "attention.fk"


def inner(a, b):
    return (val(a) * val(b)).sum()


def logits(q, k, scale):
    """In units of log 2, over the last two axes (query, key); leading axes are equal."""
    lead = "abcdef"[: q.ndim - 2]
    return einsum(f"{lead}id,{lead}jd->{lead}ij", q, k) * (scale * math.log2(math.e))


def attend(s, v, on, dtype):
    """Weights as the kernels round them to the type; the row's sum is of unrounded ones."""
    on = np.broadcast_to(on, s.shape)
    m = maximum(amax(where(on, s, -np.inf), -1, True), -1e30)
    p = where(on, exp2(where(on, s, 0) - m), 0)
    l = sum(p, -1, True)
    lead = "abcdef"[: v.ndim - 2]
    # a rescaled maximum rounds p relative to another one: its rounding error is relative to p or more
    o = einsum(f"{lead}ij,{lead}jd->{lead}id", p.to(dtype), v)
    return o / maximum(l, 1e-30), B((m.v + log2(l).v) * math.log(2), (m.e + log2(l).e) + U * np.abs(m.v))[..., 0]


def repeat(k, times):
    return B(np.repeat(k.v, times, 1), np.repeat(k.e, times, 1))


def causal(s, l):
    return np.arange(l) <= np.arange(s)[:, None] + (l - s)


SHAPES = "B H G S L D causal | 1 1 1 1 1 8 false | 1 2 1 0 5 8 true | 2 4 2 7 7 16 true | 1 2 2 33 65 32 true | 1 2 1 65 33 16 false"


@case(FK, SHAPES, defines="D causal", q="T[B,H,S,D]", k="T[B,G,L,D]", v="T[B,G,L,D]", scale=0.3)
def attention(a):
    r = a.H // a.G
    k, v = repeat(a.k, r), repeat(a.v, r)
    on = causal(a.S, a.L) if a.causal else np.ones((a.S, a.L), bool)
    o, lse = attend(logits(a.q, k, a.scale), v, on, a.T)
    return dict(o=o, lse=lse)


@case(FK, "B H S L D | 1 1 1 1 8 | 1 2 0 5 8 | 2 2 7 9 16 | 1 2 33 65 32", defines="D", q="T[B,H,S,D]", k="T[B,H,L,D]", v="T[B,H,L,D]", scale=0.3)
def attention_naive(a):
    p = softmax(einsum("bhsd,bhld->bhsl", a.q, a.k) * a.scale)
    return dict(o=einsum("bhsl,bhld->bhsd", p.to(a.T), a.v))


def forward(a):
    r = a.H // a.G
    on = causal(a.S, a.L) if a.causal else np.ones((a.S, a.L), bool)
    return attend(logits(a.q, repeat(a.k, r), 0.3), repeat(a.v, r), on, "f64")


@case(
    FK,
    "B H G S L D causal | 1 1 1 1 1 8 false | 2 4 2 7 7 16 true | 1 2 2 17 33 16 true | 1 2 1 33 17 16 false",
    defines="D causal",
    q="T[B,H,S,D]",
    k="T[B,G,L,D]",
    v="T[B,G,L,D]",
    o=derived("T[B,H,S,D]", lambda a: forward(a)[0]),
    dy="T[B,H,S,D]",
    lse=derived("f32[B,H,S]", lambda a: forward(a)[1]),
    scale=0.3,
    loss=lambda a: inner(a.dy, forward(a)[0]),
    wrt=dict(dq="q", dk="k", dv="v"),
)
def attention_bwd(a):
    r = a.H // a.G
    k, v = repeat(a.k, r), repeat(a.v, r)
    on = causal(a.S, a.L) if a.causal else np.ones((a.S, a.L), bool)
    s = einsum("bhid,bhjd->bhij", a.q, k) * a.scale - a.lse[..., None]
    p = where(on, exp(where(on, s, 0)), 0)
    dl = sum(a.o * a.dy, -1, True)
    ds = p * (einsum("bhid,bhjd->bhij", a.dy, v) - dl)
    over = lambda x: sum(x.reshape(a.B, a.G, r, a.L, a.D), 2)
    dv = over(einsum("bhij,bhid->bhjd", p.to(a.T), a.dy))
    dk = over(einsum("bhij,bhid->bhjd", ds.to(a.T), a.q))
    return dict(dq=einsum("bhij,bhjd->bhid", ds.to(a.T), k) * a.scale, dk=dk * a.scale, dv=dv)


@case(FK, "B S D W | 1 1 8 4 | 1 0 8 4 | 2 7 16 3 | 1 70 16 9 | 1 130 16 64", defines="D", q="T[B,S,D]", k="T[B,S,D]", v="T[B,S,D]", scale=0.3, W=lambda a: a.W)
def attention_window(a):
    i, j = np.arange(a.S)[:, None], np.arange(a.S)
    o, _ = attend(logits(a.q, a.k, a.scale), a.v, (j <= i) & (j + a.W > i), a.T)
    return dict(o=o)


@case(FK, "H S D | 1 1 8 | 2 0 8 | 2 7 16 | 2 65 32", defines="D", q="T[H,S,D]", k="T[H,S,D]", v="T[H,S,D]", slope=uniform("f32[H]", 0, 0.5), scale=0.3, cap=5.0)
def attention_alibi(a):
    i, j = np.arange(a.S)[:, None], np.arange(a.S)
    z = a.cap * tanh(einsum("hid,hjd->hij", a.q, a.k) * (a.scale / a.cap))
    s = (z - a.slope[:, None, None] * B((i - j).astype(float))) * math.log2(math.e)
    o, _ = attend(s, a.v, j <= i, a.T)
    return dict(o=o)


def offsets(r, shape, a):
    """Cuts of 0..N, some of them equal."""
    cuts = np.sort(r.integers(0, a.N + 1, shape[0]))
    cuts[0], cuts[-1] = 0, a.N
    return cuts


@case(FK, "N H D E | 1 1 8 1 | 0 2 8 2 | 9 2 16 3 | 70 2 16 4", defines="D", q="T[N,H,D]", k="T[N,H,D]", v="T[N,H,D]", c=made("i32[E+1]", offsets), scale=0.3)
def attention_varlen(a):
    of = np.searchsorted(a.c, np.arange(a.N), side="right")
    i, j = np.arange(a.N)[:, None], np.arange(a.N)
    q, k, v = (x.transpose(1, 0, 2) for x in (a.q, a.k, a.v))
    o, _ = attend(logits(q, k, a.scale), v, (j <= i) & (of == of[:, None]), a.T)
    return dict(o=o.transpose(1, 0, 2))


def pages(r, shape, a):
    return r.permutation(max(a.NP, shape[0] * shape[1]))[: shape[0] * shape[1]].reshape(shape) % a.NP


@case(
    FK,
    "B G R D NP PS MP SP | 1 1 1 8 1 4 1 1 | 2 2 4 16 12 4 5 2 | 2 1 4 16 20 8 9 4",
    defines="D PS R SP",
    q="T[B,G,R,D]",
    kc="T[NP,PS,G,D]",
    vc="T[NP,PS,G,D]",
    table=made("i32[B,MP]", pages),
    len=ints("i32[B]", 1, "MP*PS+1"),
    scale=0.3,
)
def paged_decode(a):
    o = np.zeros((a.B, a.G, a.R, a.D))
    e = np.zeros_like(o)
    for b in range(a.B):
        at = np.arange(a.len[b])
        page, slot = a.table[b, at // a.PS], at % a.PS
        k, v = (x[page, slot].transpose(1, 0, 2) for x in (a.kc, a.vc))
        x, _ = attend(logits(a.q[b], k, a.scale), v, True, a.T)
        # parts are merged by weights that round again
        o[b], e[b] = x.v, x.e + 16 * U * amax(abs(v), 1).v[:, None]
    return dict(o=B(o, e))


@case(FK, "N H D | 1 1 1 | 0 2 4 | 5 3 8 | 33 2 64", oa="T[N,H,D]", la=uniform("f32[N,H]", -5, 5), ob="T[N,H,D]", lb=uniform("f32[N,H]", -5, 5))
def merge_states(s):
    m = maximum(s.la, s.lb)
    a, b = exp(s.la - m), exp(s.lb - m)
    return dict(o=(s.oa * a[..., None] + s.ob * b[..., None]) / (a + b)[..., None], l=m + log(a + b))


def slots(r, shape, a):
    at = r.permutation(a.NP * a.PS)[: shape[0]]
    return np.where(r.random(shape) < 0.2, -1, at)


@case(FK, "N G D NP PS | 1 1 1 1 4 | 0 2 4 2 4 | 5 3 8 4 4 | 20 2 16 5 8", defines="PS", k="T[N,G,D]", slot=made("i64[N]", slots), kc="T[NP,PS,G,D]")
def cache_write(a):
    kc = a.kc.v.copy()
    for n in range(a.N):
        if a.slot[n] >= 0:
            kc[a.slot[n] // a.PS, a.slot[n] % a.PS] = a.k.v[n]
    return dict(kc=B(kc))


@case(FK, "B S D E | 1 1 4 4 | 1 0 4 8 | 2 7 8 4 | 1 33 16 16", defines="D E", q="T[B,S,D]", k="T[B,S,D]", v="T[B,S,E]")
def linear_attention(a):
    q, k = (where(x > 0, x + 1, exp(x)) for x in (a.q, a.k))
    s = where(np.tril(np.ones((a.S, a.S), bool)), einsum("bid,bjd->bij", q, k), 0)
    return dict(o=einsum("bij,bje->bie", s, a.v) / (sum(s, -1, True) + 1e-6))


@case(FK, "B S D E C | 1 1 8 8 16 | 1 0 8 8 16 | 2 16 8 16 16 | 1 37 16 16 16 | 1 70 16 16 32", defines="D E C", q="T[B,S,D]", k="T[B,S,D]", v="T[B,S,E]")
def linear_attention_chunk(a):
    s = where(np.tril(np.ones((a.S, a.S), bool)), einsum("bid,bjd->bij", a.q, a.k), 0)
    return dict(o=einsum("bij,bje->bie", s, a.v))

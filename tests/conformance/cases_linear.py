"""References of linear.fk."""

from bounded import *
from harness import case, ints, made, uniform

FK = "linear.fk"
GEMM = "M N K | 1 1 1 | 0 5 3 | 5 0 3 | 3 4 0 | 13 17 11 | 33 65 40 | 64 64 32 | 2 130 7"
ONE = "M N K | 1 1 1 | 0 5 3 | 3 4 0 | 13 17 11 | 33 40 65"


def matmul(x, w):
    return einsum("mk,kn->mn", x, w)


@case(FK, GEMM, x="T[M,K]", w="T[K,N]")
def gemm(a):
    return dict(y=matmul(a.x, a.w))


@case(FK, GEMM, x="T[M,K]", w="T[N,K]")
def gemm_nt(a):
    return dict(y=matmul(a.x, a.w.T))


@case(FK, GEMM, x="T[M,K]", dy="T[M,N]")
def gemm_tn(a):
    return dict(dw=matmul(a.x.T, a.dy))


@case(FK, "B M N K | 1 1 1 1 | 0 3 4 5 | 3 13 17 11 | 2 33 40 65", x="T[B,M,K]", w="T[K,N]")
def bmm(a):
    return dict(y=einsum("bmk,kn->bmn", a.x, a.w))


@case(FK, "B M N K | 1 1 1 1 | 0 3 4 5 | 3 13 17 11 | 2 33 40 65", x="T[B,M,K]", w="T[B,K,N]")
def bmm_both(a):
    return dict(y=einsum("bmk,bkn->bmn", a.x, a.w))


@case(FK, "N K | 1 1 | 0 3 | 4 0 | 17 11 | 40 65 | 3 1030", w="T[N,K]", x="T[K]")
def matvec(a):
    return dict(y=einsum("nk,k->n", a.w, a.x))


@case(FK, GEMM, x="T[M,K]", w="T[K,N]", b="T[N]")
def linear_gelu(a):
    return dict(y=gelu(matmul(a.x, a.w) + a.b))


@case(FK, ONE, x="T[M,K]", w="T[K,N]", b=None, kernel="linear_gelu")
def linear_gelu_plain(a):
    return dict(y=gelu(matmul(a.x, a.w)))


@case(FK, GEMM, x="T[M,K]", w="T[K,N]", b="T[N]")
def linear_gelu_tiled(a):
    return dict(y=gelu(matmul(a.x, a.w) + a.b))


@case(FK, "M N K | 1 1 1 | 0 5 3 | 13 17 11 | 33 40 65", x="T[M,K]", w="T[N,K]", g="T[N]", eps=1e-3)
def linear_rmsnorm(a):
    z = matmul(a.x, a.w.T)
    return dict(y=z * rsqrt(mean(z * z, -1, True) + a.eps) * a.g)


@case(FK, "M F K inter | 1 1 1 true | 0 3 5 true | 5 9 17 true | 33 40 65 false | 2 3 0 false", defines="inter", x="T[M,K]", w="T[2*F,K]")
def swiglu(a):
    h = matmul(a.x, a.w.T)
    g, u = (h[:, ::2], h[:, 1::2]) if a.inter else (h[:, : a.F], h[:, a.F :])
    return dict(y=silu(g) * u)


@case(FK, "M F K | 1 1 1 | 0 3 5 | 5 9 17 | 33 40 65", x="T[M,K]", g="T[K,F]", u="T[K,F]")
def swiglu_two(a):
    return dict(y=silu(matmul(a.x, a.g)) * matmul(a.x, a.u))


@case(FK, "M K F N | 1 1 1 1 | 0 2 3 4 | 5 7 9 11 | 17 33 40 24", x="T[M,K]", w1="T[K,F]", b1="T[F]", w2="T[F,N]", b2="T[N]")
def mlp(a):
    h = gelu_tanh(matmul(a.x, a.w1) + a.b1).to(a.T)
    return dict(y=matmul(h, a.w2) + a.b2)


@case(FK, "M K N R | 1 1 1 1 | 0 2 3 4 | 5 7 9 4 | 17 33 40 8", x="T[M,K]", w="T[K,N]", a="T[K,R]", b="T[R,N]", scale=0.5)
def lora(s):
    h = matmul(s.x, s.a).to(s.T)
    return dict(y=matmul(s.x, s.w) + s.scale * matmul(h, s.b))


@case(FK, "M N K P | 1 1 1 4 | 0 5 3 2 | 3 4 0 2 | 13 17 11 4 | 33 40 130 3", defines="P", x="T[M,K]", w="T[K,N]")
def splitk(a):
    return dict(y=matmul(a.x, a.w))


@case(FK, "M N K P | 1 1 1 4 | 0 5 3 2 | 3 4 0 2 | 13 17 11 4 | 33 40 130 3", defines="P", x="T[M,K]", w="T[K,N]", y="f32[M,N]")
def splitk_atomic(a):
    return dict(y=a.y + matmul(a.x, a.w) + B(np.zeros((a.M, a.N)), U * a.P))


@case(FK, ONE, x="T[M,K]", g="T[K]", w="T[K,N]", eps=1e-3)
def rmsnorm_linear(a):
    r = rsqrt(mean(a.x * a.x, -1, True) + a.eps)
    if a.K == 0:  # nothing to normalise, and a sum of nothing
        return dict(y=zeros(a.M, a.N))
    return dict(y=matmul((a.x * r * a.g).to(a.T), a.w))


@case(FK, "M K H D | 1 1 1 1 | 0 3 2 4 | 5 7 3 8 | 17 40 2 16", x="T[M,K]", w="T[3,H,D,K]")
def qkv(a):
    q, k, v = (einsum("mk,hdk->mhd", a.x, a.w[i]) for i in range(3))
    return dict(q=q, k=k, v=v)


@case(FK, "M H D N | 1 1 1 1 | 0 2 3 4 | 5 3 8 7 | 17 2 16 40", x="T[M,H,D]", w="T[H,D,N]", res="T[M,N]")
def project_heads(a):
    return dict(y=einsum("mhd,hdn->mn", a.x, a.w) + a.res)


@case(FK, "N D | 1 1 | 0 3 | 7 5 | 33 40", x="T[N,D]")
def gram(a):
    return dict(y=where(np.tril(np.ones((a.N, a.N), bool)), einsum("id,jd->ij", a.x, a.x), 0))


@case(FK, "N K | 1 1 | 0 3 | 3 0 | 7 5 | 33 40", types=("f32",), a="f32[N,K]", b="f32[K,N]")
def trace_product(s):
    return dict(t=einsum("nk,kn->", s.a, s.b).reshape(1))


@case(FK, "N K L | 1 1 1 | 0 2 3 | 5 7 9 | 17 33 40", x="T[N,K]", w="T[K,L]", y="T[N,L]")
def bilinear(a):
    return dict(z=sum(matmul(a.x, a.w) * a.y, -1))


@case(FK, "M N D | 1 1 1 | 0 2 3 | 5 7 9 | 17 33 40", x="T[M,D]", y="T[N,D]")
def pairwise(a):
    xx, yy = sum(a.x * a.x, -1), sum(a.y * a.y, -1)
    return dict(d=relu(xx[:, None] + yy - 2 * einsum("md,nd->mn", a.x, a.y)))


@case(FK, GEMM, types=("i8",), x=ints("i8[M,K]", -128, 128), w=ints("i8[K,N]", -128, 128))
def gemm_i8(a):
    return dict(y=a.x @ a.w)


@case(FK, ONE, types=("f64",), x="f64[M,K]", w="f64[K,N]", alpha=0.5, beta=2.0, y="f64[M,N]")
def gemm_f64(a):
    y = a.alpha * (val(a.x) @ val(a.w)) + a.beta * val(a.y)
    size = np.abs(val(a.x)) @ np.abs(val(a.w)) + np.abs(val(a.y))
    return dict(y=B(y, (a.K + 4) * 2.0**-53 * 2 * size))


@case(FK, "N C | 2 1 | 6 3 | 8 4 | 10 5 | 34 17 | 62 31 | 80 40 | 128 64", defines="C", a="T[N,N]", b="T[N,N]")
def block_sums(s):
    c = s.C
    return dict(y=matmul((s.a[:c, :c] + s.a[c:, c:]).to(s.T), (s.b[:c, :c] + s.b[c:, c:]).to(s.T)))

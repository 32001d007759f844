#!/usr/bin/env python3
"""Kernels of examples/ on tensors of more than 2^31 elements, or bytes, against torch on the same GPU.

usage: large_check.py [--only NAME,...]

Each case has a tensor whose last elements a 32-bit index would miss: they, the first ones and the rows
around element 2^31 are compared with what torch computes from the same rows. Needs a GPU with
about 30 GB, torch, and FUSE_RT_LIBRARY and FUSE_COMPILER (bench/README.md). Exit status 1 when a result is wrong.
"""

import argparse
import math
import os
import sys
import time

import torch
import torch.nn.functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import fuse_rt  # noqa: E402

BORDER = 1 << 31
DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def kernel_of(device, file, name, dtype, **values):
    path = os.path.join(ROOT, "examples", file)
    defines = {"T": DTYPES[dtype], **values} if dtype else values
    return device.module_from_file(path, defines=defines, kernel=name, no_perf_notes=True).kernel()


def rows_to_look_at(count, width, most=4096):
    """Row ranges: the first, those around element 2^31, the last."""
    most = min(most, count)
    middle = min(max(BORDER // width - most // 2, 0), count - most)
    return [slice(0, most), slice(middle, middle + most), slice(count - most, count)]


def random(*shape, dtype=torch.bfloat16):
    out = torch.empty(shape, device="cuda", dtype=dtype)
    return out.normal_()


def error(got, want):
    """The largest difference over the largest element; NaN and infinity count as infinite."""
    e = ((got.double() - want.double()).abs().max() / want.double().abs().max().clamp_min(1e-30)).item()
    return e if math.isfinite(e) else math.inf


def worst(count, width, got, want, most=4096):
    return max(error(got(r), want(r)) for r in rows_to_look_at(count, width, most))


# --- cases: yield (what, error, bound) -----------------------------------------------------------


def axpy(device):
    for dtype in (torch.bfloat16, torch.float32):
        n = BORDER + 12345
        x, y = random(n, dtype=dtype), random(n, dtype=dtype)
        looks = rows_to_look_at(n, 1, 1 << 20)
        want = [(y[r].double() + 1.5 * x[r].double()).to(dtype) for r in looks]
        kernel_of(device, "axpy.fk", "axpy", dtype)(a=1.5, x=x, y=y)
        e = max(error(y[r], w) for r, w in zip(looks, want))
        yield f"axpy {DTYPES[dtype]} {n}", e, 2.0**-8 if dtype != torch.float32 else 1e-6


def strided(device):
    """Few elements, far apart: the offset, not the extent, is beyond 2^31."""
    n, step = 3 << 20, 1031
    x, y = random(n * step)[::step], random(n)
    want = (y.double() + 2.0 * x.double()).bfloat16()
    kernel_of(device, "axpy.fk", "axpy", torch.bfloat16)(a=2.0, x=x, y=y)
    yield f"axpy bf16 {n}, stride {step}", error(y, want), 2.0**-8


def softmax(device):
    for n in (1024, 1000, 50257):
        m = BORDER // n + 5000
        x, y = random(m, n), torch.full((m, n), math.nan, device="cuda", dtype=torch.bfloat16)
        kernel_of(device, "softmax.fk", "softmax_whole", torch.bfloat16)(x=x, y=y)
        e = worst(m, n, lambda r: y[r], lambda r: torch.softmax(x[r].double(), -1), 256)
        yield f"softmax bf16 {m} x {n}", e, 2.0**-7


def one_row(device):
    """A row that is itself longer than 2^31."""
    n = BORDER + 777
    x = torch.randint(-1, 2, (1, n), device="cuda", dtype=torch.int8).bfloat16()
    y = torch.full((1, n), math.nan, device="cuda", dtype=torch.bfloat16)
    kernel_of(device, "cumsum.fk", "cumsum_rows", torch.bfloat16)(x=x, y=y)
    looks = [slice(0, 1 << 20), slice(n - (1 << 20), n)]
    sums = [torch.cumsum(x[0, looks[0]].double(), 0)]
    before = x[0, : looks[1].start].sum(dtype=torch.float64)
    sums.append(before + torch.cumsum(x[0, looks[1]].double(), 0))
    e = max(error(y[0, r], w) for r, w in zip(looks, sums))
    yield f"cumsum bf16 1 x {n}", e, 2.0**-7


def linear(device):
    m, k, n = 600_000, 4096, 136
    x, w, b = random(m, k), random(k, n) * k**-0.5, random(n)
    y = torch.full((m, n), math.nan, device="cuda", dtype=torch.bfloat16)
    for name in ("linear_gelu", "linear_gelu_tiled"):
        y.fill_(math.nan)
        kernel_of(device, "linear_gelu.fk", name, torch.bfloat16)(x=x, w=w, b=b, y=y)
        e = worst(m, k, lambda r: y[r], lambda r: F.gelu(x[r].double() @ w.double() + b.double()))
        yield f"{name} bf16 {m} x {k} x {n}", e, 2.0**-7
    del x, y
    m, k, n = 20_000, 64, 131_072
    x, w, b = random(m, k), random(k, n) * k**-0.5, random(n)
    y = torch.full((m, n), math.nan, device="cuda", dtype=torch.bfloat16)
    kernel_of(device, "linear_gelu.fk", "linear_gelu", torch.bfloat16)(x=x, w=w, b=b, y=y)
    e = worst(m, n, lambda r: y[r], lambda r: F.gelu(x[r].double() @ w.double() + b.double()), 64)
    yield f"linear_gelu bf16 {m} x {k} x {n}", e, 2.0**-7


def embedding(device):
    v, d, n = 600_000, 4096, 50_000
    w = random(v, d)
    ids = torch.randint(0, v, (n,), device="cuda")
    ids[:3] = torch.tensor([v - 1, BORDER // d, 0], device="cuda")
    y = torch.full((n, d), math.nan, device="cuda", dtype=torch.bfloat16)
    kernel_of(device, "gather.fk", "embedding", torch.bfloat16)(ids=ids, w=w, y=y)
    yield f"embedding bf16 {v} x {d}", error(y, w[ids]), 0.0


def embedding_grad(device):
    v, d, n = 600_000, 4096, 20_000
    dw = torch.zeros(v, d, device="cuda")
    ids = torch.randint(0, v, (n,), device="cuda")
    ids[:3] = torch.tensor([v - 1, BORDER // d, 0], device="cuda")
    dy = random(n, d)
    kernel_of(device, "gather.fk", "embedding_grad", torch.bfloat16)(ids=ids, dy=dy, dw=dw)
    at, place = torch.unique(ids, return_inverse=True)
    want = torch.zeros(len(at), d, device="cuda").index_add_(0, place, dy.float())
    e = error(dw[at], want)
    untouched = dw.abs().sum(1).count_nonzero().item()
    yield f"embedding_grad bf16 {v} x {d}", e if untouched <= len(at) else math.inf, 1e-5


def conv(device):
    b, h, c, k = 1100, 176, 64, 16
    x = random(b, h, h, c)
    f, bias = random(k, 3, 3, c) * (9 * c) ** -0.5, random(k)
    y = torch.full((b, h // 2, h // 2, k), math.nan, device="cuda", dtype=torch.bfloat16)
    kernel_of(device, "conv_relu_pool.fk", "conv_relu_pool", torch.bfloat16)(x=x, f=f, b=bias, pad=1, y=y)

    def want(r):
        z = F.conv2d(x[r].permute(0, 3, 1, 2).float(), f.permute(0, 3, 1, 2).float(), bias.float(), padding=1)
        return F.max_pool2d(F.relu(z), 2).permute(0, 2, 3, 1)

    e = worst(b, h * h * c, lambda r: y[r], want, 8)
    yield f"conv_relu_pool bf16 {b} x {h} x {h} x {c}", e, 2.0**-6


def attention(device):
    b, h, s, d = 2200, 8, 1024, 128
    q, k, v = (random(b, h, s, d) for _ in range(3))
    o = torch.full((b, h, s, d), math.nan, device="cuda", dtype=torch.bfloat16)
    kernel_of(device, "attention.fk", "attention", torch.bfloat16, D=d, causal="true")(
        q=q, k=k, v=v, scale=d**-0.5, o=o, lse=None
    )
    e = worst(
        b,
        h * s * d,
        lambda r: o[r],
        lambda r: F.scaled_dot_product_attention(q[r].float(), k[r].float(), v[r].float(), is_causal=True),
        4,
    )
    yield f"attention bf16 {b} x {h} x {s} x {d}", e, 2.0**-6


CASES = (axpy, strided, softmax, one_row, linear, embedding, embedding_grad, conv, attention)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", help="names of cases: " + ", ".join(c.__name__ for c in CASES))
    only = [n for n in p.parse_args().only.split(",") if n]
    bad, device = 0, fuse_rt.Device("cuda")
    torch.manual_seed(1)
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        start = time.perf_counter()
        try:
            for what, e, bound in case(device):
                good = e <= bound
                bad += not good
                seconds = time.perf_counter() - start
                print(f"{'ok   ' if good else 'WRONG'} {what}: error {e:.2e}, bound {bound:.2e} ({seconds:.1f} s)", flush=True)
                start = time.perf_counter()
        except (RuntimeError, ValueError, TypeError) as problem:
            bad += 1
            print(f"WRONG {case.__name__}: {str(problem)[:500]}", flush=True)
        torch.cuda.empty_cache()
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

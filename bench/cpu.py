#!/usr/bin/python3
"""Times kernels of examples/ on the target `cpu` beside C (bench/cpu_peers.c) and OpenBLAS.

usage: bench/cpu.py [--only PARTS] [--threads N] [--device NAME] [--rounds N]     PARTS: rows,gemm,conv

Needs python3 with numpy, a C compiler (CC, else cc) and the two libraries of a release build
(FUSE_RT_LIBRARY names libfuse_rt.so); what needs OpenBLAS is left out where there is none.

Method. Candidates take turns; the figure is the fastest of all rounds, in wall time, or with one thread in
processor time, which others on the machine disturb less. Ratios are of times in this run: the peer's by
fusec's, so above 1 fusec is faster. Results are compared with the peer's before they are timed.

OpenBLAS takes a processor that is newer than itself for one without AVX: where the machine has AVX-512 or AVX2 and
OPENBLAS_CORETYPE is not set, it is told SkylakeX or Haswell.
"""

import argparse
import ctypes
import ctypes.util
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = os.path.join(ROOT, "examples")
sys.path.insert(0, os.path.join(ROOT, "python"))


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--only", default="rows,gemm,conv")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--device", default="cpu", help="cpu, or a processor: cpu:x86-64-v3")
    p.add_argument("--rounds", type=int, default=15)
    return p.parse_args()


def tell_openblas():
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    for flag, name in (("avx512vl", "SkylakeX"), ("avx2", "Haswell")):
        if flag in flags:
            os.environ.setdefault("OPENBLAS_CORETYPE", name)


OPTIONS = options()
tell_openblas()
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(OPTIONS.threads)
import numpy as np  # noqa: E402  (it may load OpenBLAS, which reads the environment then)
import fuse_rt  # noqa: E402

DEVICE = fuse_rt.Device(OPTIONS.device, threads=OPTIONS.threads)
RANDOM = np.random.default_rng(7)


def peers(folder):
    library = os.path.join(folder, "peers.so")
    flags = "-O3 -march=native -fopenmp -shared -fPIC".split()
    source = os.path.join(ROOT, "bench", "cpu_peers.c")
    subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", library, "-lm"], check=True)
    return ctypes.CDLL(library)


def blas():
    name = ctypes.util.find_library("openblas")
    if not name:
        print("left out: what needs OpenBLAS (no libopenblas here)")
    return ctypes.CDLL(name) if name else None


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def kernel(file, name, dtype="f32"):
    path = os.path.join(EXAMPLES, file)
    return DEVICE.module_from_file(path, defines={"T": dtype}, kernel=name, no_perf_notes=True).kernel()


def random(*shape, dtype="f32"):
    x = RANDOM.standard_normal(shape, dtype=np.float32)
    return x if dtype == "f32" else (x.view(np.uint32) >> 16).astype(np.uint16)


def as_f32(x):
    return x if x.dtype == np.float32 else (x.astype(np.uint32) << 16).view(np.float32)


def tensor(x):
    return x if x.dtype == np.float32 else fuse_rt.Tensor(x.ctypes.data, "bf16", x.shape)


def seconds(call):
    clock = time.process_time if OPTIONS.threads == 1 else time.perf_counter
    start = clock()
    call()
    return clock() - start


def measure(candidates):
    """{name: call} -> {name: seconds}, fastest"""
    best = {name: seconds(call) for name, call in candidates.items()}
    for _ in range(OPTIONS.rounds):
        for name, call in candidates.items():
            best[name] = min(best[name], seconds(call))
    return best


def report(what, candidates, outputs, tolerance, work=None):
    """outputs: name -> array, fusec's among them"""
    for call in candidates.values():
        call()
    for name, out in outputs.items():
        error = np.abs(as_f32(out) - as_f32(outputs["fusec"])).max()
        if not error <= tolerance:
            sys.exit(f"{what}: {name} differs from fusec by {error}")
    best = measure(candidates)
    ours = best["fusec"]
    rate = f"{work / ours * 1e-9:8.1f}" if work else " " * 8
    ratios = "  ".join(f"{name} {t / ours:.2f}" for name, t in best.items() if name != "fusec")
    print(f"{what:34} {ours * 1e3:9.3f} ms {rate}   {ratios}", flush=True)


def rows(c):
    m, n = 4096, 1024
    for dtype, tolerance in (("f32", 1e-5), ("bf16", 0.05)):
        x, w, b = random(m, n, dtype=dtype), random(n, dtype=dtype), random(n, dtype=dtype)
        out = {name: np.zeros_like(x) for name in ("fusec", "C", "C with libm")}
        names = ["C"] if dtype == "bf16" else ["C", "C with libm"]
        size = (ctypes.c_long(m), ctypes.c_long(n))
        suffix = {"C": dtype, "C with libm": dtype + "_libm"}

        def compare(what, k, given, arguments, names, more=(), title=None):
            y = tensor(out["fusec"])
            calls = {"fusec": lambda: k(y=y, **given)}
            for name in names:
                f = getattr(c, f"{what}_{suffix[name]}")
                calls[name] = lambda f=f, name=name: f(*arguments, pointer(out[name]), *size, *more)
            arrays = {name: out[name] for name in ["fusec", *names]}
            report(f"{title or what} {dtype} {m}x{n}", calls, arrays, tolerance)

        tx, tw, tb = tensor(x), tensor(w), tensor(b)
        for name in ("softmax_whole", "softmax_rows"):
            k = kernel("softmax.fk", name, dtype)
            compare("softmax", k, {"x": tx}, (pointer(x),), names, title=name)
        compare(
            "layernorm",
            kernel("layernorm.fk", "layernorm", dtype),
            {"x": tx, "w": tw, "b": tb, "eps": 1e-5, "mu": None, "rs": None},
            (pointer(x), pointer(w), pointer(b)),
            ["C"],
            (ctypes.c_float(1e-5),),
        )
        given = {"x": tx, "b": tb}
        compare("bias_gelu", kernel("bias_gelu.fk", "bias_gelu", dtype), given, (pointer(x), pointer(b)), names)


def gemm(lib):
    for m, n, k in ((1024, 1024, 1024), (512, 2048, 768), (1000, 1000, 1000), (1, 4096, 4096)):
        x, w = random(m, k), random(k, n)
        out = {"fusec": np.zeros((m, n), np.float32), "OpenBLAS": np.zeros((m, n), np.float32)}
        f = kernel("matmul.fk", "gemm")
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        a, b, c = pointer(x), pointer(w), pointer(out["OpenBLAS"])
        calls = {
            "fusec": lambda: f(x=x, w=w, y=out["fusec"]),
            "OpenBLAS": lambda: lib.cblas_sgemm(101, 111, 111, m, n, k, one, a, k, b, n, zero, c, n),
        }
        report(f"gemm f32 {m}x{n}x{k} (GFLOP/s)", calls, out, 1e-3, 2 * m * n * k)


class Conv(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in "batch h w c k r s pad".split()]


def conv(c, lib):
    batch, h, k, r, pad = 8, 56, 64, 3, 1
    for channels in (32, 64):
        x, f, b = random(batch, h, h, channels), random(k, r, r, channels), random(k)
        shape = (batch, h // 2, h // 2, k)
        out = {"fusec": np.zeros(shape, np.float32), "im2col + OpenBLAS": np.zeros(shape, np.float32)}
        v = Conv(batch, h, h, channels, k, r, r, pad)
        ours = kernel("conv_relu_pool.fk", "conv_relu_pool")
        sgemm = ctypes.cast(lib.cblas_sgemm, ctypes.c_void_p)
        arguments = (pointer(x), pointer(f), pointer(b), pointer(out["im2col + OpenBLAS"]))
        calls = {
            "fusec": lambda: ours(x=x, f=f, b=b, pad=pad, y=out["fusec"]),
            "im2col + OpenBLAS": lambda: c.conv_relu_pool(ctypes.byref(v), sgemm, *arguments),
        }
        work = 2 * batch * h * h * k * r * r * channels
        report(f"conv_relu_pool f32 {batch}x{channels}x{h}x{h} to {k}", calls, out, 1e-3, work)


def main():
    lib = blas()
    parts = OPTIONS.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        c = peers(folder)
        print(f"{OPTIONS.threads} threads; ratios: the peer's time by fusec's")
        if "rows" in parts:
            rows(c)
        if "gemm" in parts and lib:
            gemm(lib)
        if "conv" in parts and lib:
            conv(c, lib)


main()

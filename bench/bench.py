"""Times kernels of examples/ on a GPU beside their peers in torch; writes a table and JSON.

usage: bench.py [--only axpy,softmax,rows,linear,attention,launch,compile] [--quick]

Method. Every candidate is captured as a CUDA graph of about 3 ms that walks over buffer sets which are larger
than the L2 cache together. A measurement is a burst: 60 ms of rest, one replay, a second replay that is timed;
the figure is the median of five. Candidates take turns, so that they see the same card at the same time: compare
inside a run only. Each kernel's result is compared with torch's before it is timed.

Bandwidth counts what has to move (axpy: 3 arrays, softmax and copy: 2), products count 2 M N K.
Results: $OUT/bench.txt and $OUT/bench.json (OUT: the current folder unless set).
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import fuse_rt  # noqa: E402

OUT = os.environ.get("OUT", ".")
BURST_SECONDS, REST_SECONDS, ROUNDS = 3e-3, 0.06, 5
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
EXAMPLES = os.path.join(ROOT, "examples")
torch.backends.cuda.matmul.allow_tf32 = False
results, lines = [], []


def say(text):
    print(text, flush=True)
    lines.append(text)
    with open(os.path.join(OUT, "bench.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def record(**row):
    results.append(row)
    with open(os.path.join(OUT, "bench.json"), "w") as f:
        json.dump(dict(machine=machine(), results=results), f, indent=1)


def machine():
    p = torch.cuda.get_device_properties(0)
    return dict(gpu=p.name, sms=p.multi_processor_count, torch=torch.__version__, fuse_rt=fuse_rt.version())


# --- timing --------------------------------------------------------------------------------------


class Burst:
    """A candidate: calls (one per buffer set) in a CUDA graph."""

    def __init__(self, calls):
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):  # what is allocated or loaded on first use is so before capture
            for call in calls:
                call()
            self.stream.synchronize()
            start = time.perf_counter()
            for i in range(8):
                calls[i % len(calls)]()
            self.stream.synchronize()
            once = (time.perf_counter() - start) / 8
        self.count = max(1, min(500, math.ceil(BURST_SECONDS / once)))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            for i in range(self.count):
                calls[i % len(calls)]()
        self.times = []

    def measure(self):
        torch.cuda.synchronize()
        time.sleep(REST_SECONDS)
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        self.graph.replay()
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.times.append(start.elapsed_time(end) / self.count)


def measure(candidates):
    """{name: calls} -> {name: milliseconds}; a candidate that fails is left out, with a line."""
    bursts = {}
    for name, calls in candidates.items():
        try:
            bursts[name] = Burst(calls)
        except RuntimeError as e:
            say(f"    {name} cannot be timed: {str(e).splitlines()[0]}")
    for _ in range(ROUNDS):
        for burst in bursts.values():
            burst.measure()
    return {name: statistics.median(b.times) for name, b in bursts.items()}


def sets_of(bytes_each):
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 60 << 20)
    return max(2, min(64, math.ceil(2.5 * l2 / bytes_each)))


def kernel_of(device, file, name, dtype):
    path = os.path.join(EXAMPLES, file)
    return device.module_from_file(
        path, defines={"T": NAMES[dtype]}, kernel=name, no_perf_notes=True
    ).kernel()


def agree(what, got, want, tolerance):
    """Relative to the largest element; NaN fails."""
    error = ((got.float() - want.float()).abs().max() / want.float().abs().max()).item()
    good = error <= tolerance
    say(f"    {what}: error {error:.2e} of the largest element{'' if good else ', WRONG: not timed'}")
    return good


def table(title, times, unit, amount, peers):
    """amount / ms / 1e6 is the figure; each of ours beside each peer."""
    say(title)
    for name, ms in times.items():
        ratios = "".join(f"  {times[p] / ms:6.3f} x {p}" for p in peers if p in times and p != name)
        say(f"    {name:24} {ms:9.4f} ms {amount / ms / 1e6:9.1f} {unit}{ratios}")


# --- kernels -------------------------------------------------------------------------------------


def bench_axpy(device, quick):
    for dtype in (torch.float32, torch.bfloat16):
        kernel = kernel_of(device, "axpy.fk", "axpy", dtype)
        for n in (1 << 28,) if quick else (1 << 20, 1 << 24, 1 << 28):
            size = n * dtype.itemsize
            sets = [
                (torch.randn(n, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype))
                for _ in range(sets_of(2 * size))
            ]
            x, y = sets[0]
            want = (y.float() + 1.5 * x.float()).to(dtype)
            ours = [kernel.prepare(a=1.5, x=x, y=y) for x, y in sets]
            ours[0]()
            if not agree("axpy", y, want, 2.0**-7 if dtype != torch.float32 else 1e-6):
                continue
            times = measure(
                {
                    "fuse axpy": ours,
                    "torch add_": [lambda x=x, y=y: y.add_(x, alpha=1.5) for x, y in sets],
                    "torch copy_": [lambda x=x, y=y: y.copy_(x) for x, y in sets],
                }
            )
            table(
                f"axpy {NAMES[dtype]} N={n} (copy moves 2 of 3 arrays)",
                times,
                "GB/s",
                3 * size,
                ["torch add_"],
            )
            record(kernel="axpy", dtype=NAMES[dtype], shape=[n], ms=times, bytes=3 * size)


def bench_softmax(device, quick):
    for dtype in (torch.bfloat16, torch.float32):
        names = ("softmax_whole", "softmax_rows")
        kernels = {name: kernel_of(device, "softmax.fk", name, dtype) for name in names}
        for n in (4096,) if quick else (128, 1024, 4096, 5000, 16384, 65536):
            m = (1 << 27) // n
            sets = [[torch.randn(m, n, device="cuda", dtype=dtype) for _ in range(2)] for _ in range(2)]
            want = torch.softmax(sets[0][0].float(), -1)
            candidates = {}
            for name, kernel in kernels.items():
                sets[0][1].fill_(math.nan)
                ours = [kernel.prepare(x=x, y=y) for x, y in sets]
                ours[0]()
                if agree(name, sets[0][1], want, 2.0**-7 if dtype != torch.float32 else 1e-4):
                    candidates["fuse " + name] = ours
            del want
            candidates["torch softmax"] = [lambda x=x, y=y: torch.softmax(x, -1, out=y) for x, y in sets]
            candidates["torch copy_"] = [lambda x=x, y=y: y.copy_(x) for x, y in sets]
            times = measure(candidates)
            size = 2 * m * n * dtype.itemsize
            table(f"softmax {NAMES[dtype]} {m}x{n}", times, "GB/s", size, ["torch softmax", "torch copy_"])
            record(kernel="softmax", dtype=NAMES[dtype], shape=[m, n], ms=times, bytes=size)


def bench_linear(device, quick):
    shapes = (
        [(4096, 4096, 4096)]
        if quick
        else [
            (512, 512, 512),
            (1024, 1024, 1024),
            (2048, 2048, 2048),
            (4096, 4096, 4096),
            (8192, 8192, 8192),
            (8192, 28672, 4096),
            (4095, 4097, 4093),
        ]
    )
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        single = dtype == torch.float32
        names = ("linear_gelu", "linear_gelu_tiled")
        kernels = {name: kernel_of(device, "linear_gelu.fk", name, dtype) for name in names}
        for m, n, k in (
            shapes
            if dtype == torch.bfloat16
            else shapes[:1] if quick else [(2048, 2048, 2048)] if single else [(4096, 4096, 4096)]
        ):
            size = (m * k + k * n + m * n) * dtype.itemsize
            sets = []
            for _ in range(min(12, sets_of(size))):
                x = torch.randn(m, k, device="cuda", dtype=dtype)
                w = (torch.randn(k, n, device="cuda") * k**-0.5).to(dtype)
                sets.append(
                    (
                        x,
                        w,
                        torch.randn(n, device="cuda", dtype=dtype),
                        torch.empty(m, n, device="cuda", dtype=dtype),
                    )
                )
            x, w, b, y = sets[0]
            want = F.gelu(x.float() @ w.float() + b.float())
            candidates = {}
            for name, kernel in kernels.items():
                y.fill_(math.nan)
                ours = [kernel.prepare(x=x, w=w, b=b, y=y) for x, w, b, y in sets]
                ours[0]()
                if agree(name, y, want, 1e-4 if single else 2.0**-8):
                    candidates["fuse " + name] = ours
            del want
            candidates["torch mm"] = [lambda x=x, w=w, y=y: torch.mm(x, w, out=y) for x, w, b, y in sets]
            candidates["torch addmm, gelu"] = [
                lambda x=x, w=w, b=b: F.gelu(torch.addmm(b, x, w)) for x, w, b, y in sets
            ]
            times = measure(candidates)
            flop = 2 * m * n * k
            table(
                f"linear_gelu {NAMES[dtype]} M={m} N={n} K={k}",
                times,
                "TFLOP/s",
                flop / 1e3,
                ["torch mm", "torch addmm, gelu"],
            )
            record(kernel="linear_gelu", dtype=NAMES[dtype], shape=[m, n, k], ms=times, flop=flop)


def bench_attention(device, quick):
    """The forward pass of examples/attention.fk beside torch's flash attention; 4 B H S L D FLOP, half if causal."""
    shapes = [(4, 16, 4096, 128)] if quick else [(16, 16, 1024, 128), (4, 16, 4096, 128), (4, 16, 4096, 64)]
    for b, h, s, d in shapes:
        for causal in (False, True):
            path = os.path.join(EXAMPLES, "attention.fk")
            defines = {"T": "bf16", "D": d, "causal": str(causal).lower()}
            kernel = device.module_from_file(
                path, defines=defines, kernel="attention", no_perf_notes=True
            ).kernel()
            q, k, v, o = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(4))
            o.fill_(math.nan)
            launch = kernel.prepare(q=q, k=k, v=v, scale=d**-0.5, o=o, lse=None)
            launch()
            want = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
            if not agree("attention", o, want, 2.0**-6):
                continue
            del want
            times = measure(
                {
                    "fuse attention": [launch],
                    "torch attention": [
                        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    ],
                }
            )
            flop = 4 * b * h * s * s * d // (2 if causal else 1)
            name = f"attention bf16 {b}x{h}x{s}x{d}{', causal' if causal else ''}"
            table(name, times, "TFLOP/s", flop / 1e3, ["torch attention"])
            record(
                kernel="attention", dtype="bf16", shape=[b, h, s, d], causal=causal, ms=times, flop=flop
            )


def bench_rows(device, _quick):
    """Reductions over rows: layernorm, rmsnorm with residual, cross entropy."""
    dtype, m, n = torch.bfloat16, 16384, 4096
    x, r, y, z = (torch.randn(m, n, device="cuda", dtype=dtype) for _ in range(4))
    w, b = (torch.randn(n, device="cuda", dtype=dtype) for _ in range(2))
    ids, loss = torch.randint(0, n, (m,), device="cuda"), torch.empty(m, device="cuda")
    norm = kernel_of(device, "layernorm.fk", "layernorm", dtype)
    rms = kernel_of(device, "rmsnorm.fk", "rmsnorm_residual", dtype)
    entropy = kernel_of(device, "cross_entropy.fk", "cross_entropy", dtype)
    cases = [
        (
            "layernorm",
            norm.prepare(x=x, w=w, b=b, eps=1e-5, y=y, mu=None, rs=None),
            lambda: F.layer_norm(x, (n,), w, b, 1e-5),
            y,
            2,
        ),
        (
            "rmsnorm and residual",
            rms.prepare(x=x, res=r, w=w, eps=1e-5, y=y, h=z),
            lambda: F.rms_norm(x + r, (n,), w, 1e-5),
            y,
            4,
        ),
        (
            "cross entropy",
            entropy.prepare(z=x, y=ids, loss=loss),
            lambda: F.cross_entropy(x, ids, reduction="none"),
            loss,
            1,
        ),
    ]
    for name, ours, peer, out, arrays in cases:
        ours()
        if not agree(name, out, peer(), 2.0**-5):
            continue
        times = measure({f"fuse {name}": [ours], f"torch {name}": [peer]})
        size = arrays * m * n * dtype.itemsize
        table(f"{name} bf16 {m}x{n}", times, "GB/s", size, [f"torch {name}"])
        record(kernel=name, dtype="bf16", shape=[m, n], ms=times, bytes=size)


# --- launches and compilation ------------------------------------------------------------------------

EMPTY_PTX = b""".version 7.0
.target sm_80
.address_size 64
.visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .f32 d) { ret; }
\0"""


def per_call(call):
    """Microseconds of host time; the queue never fills."""
    best = []
    for _ in range(30):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            call()
        best.append((time.perf_counter() - start) / 200)
    return statistics.median(best) * 1e6


def bench_launch(device, _quick):
    x, y = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda")
    launch = kernel_of(device, "axpy.fk", "axpy", torch.float32).prepare(a=1.0, x=x, y=y)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    lib, handle, count, args = fuse_rt._lib, launch.kernel._handle, launch.count, launch.args
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuModuleLoadData(ctypes.byref(module), EMPTY_PTX) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"empty") == 0
    values = [ctypes.c_uint64(0), ctypes.c_uint64(0), ctypes.c_uint64(1), ctypes.c_float(0)]
    params = (ctypes.c_void_p * 4)(*[ctypes.addressof(v) for v in values])
    cuda.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    figures = {
        "fuse_rt_launch": per_call(lambda: lib.fuse_rt_launch(handle, stream, count, args, None)),
        "cuLaunchKernel": per_call(
            lambda: cuda.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, params, None)
        ),
        "a call that does nothing": per_call(lambda: lib.fuse_rt_kernel_param_count(handle)),
        "torch add_": per_call(lambda: y.add_(x, alpha=1.0)),
    }
    cuda.cuModuleUnload(module)
    say("host time of a launch (with the cost of calling C from Python)")
    for name, us in figures.items():
        say(f"    {name:24} {us:8.3f} us")
    say(
        f"    fuse_rt_launch costs {figures['fuse_rt_launch'] - figures['cuLaunchKernel']:.3f} us more than cuLaunchKernel"
    )
    record(kernel="launch", us=figures)


class Options(ctypes.Structure):  # FuseOptions of fusec.h
    _fields_ = (
        [("target", ctypes.c_char_p), ("emit", ctypes.c_int)]
        + [(name, ctypes.c_void_p) for name in ("defines", "includes")]
        + [("kernel", ctypes.c_char_p)]
        + [
            (name, ctypes.c_bool)
            for name in (
                "no_fuse",
                "fast_math",
                "deterministic",
                "debug",
                "check",
                "time",
                "explain",
                "line_info",
                "no_perf_notes",
            )
        ]
        + [("opt_level", ctypes.c_int)]
        + [(name, ctypes.c_char_p) for name in ("dump", "passes", "stop_after")]
        + [("color", ctypes.c_bool), ("message", ctypes.c_void_p), ("user", ctypes.c_void_p)]
        + [("warnings", ctypes.c_void_p)]
    )


def compile_ptx(lib, path, kernel, dtype, target):
    with open(path, "rb") as f:
        source = f.read()
    defines = (ctypes.c_char_p * 2)(f"T={dtype}".encode(), None)
    options = Options(target=target.encode(), emit=3, kernel=kernel.encode(), no_perf_notes=True, opt_level=2)
    options.defines = ctypes.cast(defines, ctypes.c_void_p).value
    start = time.perf_counter()
    result = ctypes.c_void_p(lib.fuse_compile(ctypes.byref(options), path.encode(), source, len(source)))
    seconds = time.perf_counter() - start
    size = ctypes.c_size_t()
    assert lib.fuse_result_ok(result), lib.fuse_result_messages(result).decode()
    ptx = ctypes.string_at(lib.fuse_result_output(result, ctypes.byref(size)), size.value)
    lib.fuse_result_free(result)
    return seconds, ptx


def bench_compile(device, _quick):
    named = os.environ.get("FUSE_COMPILER") or os.path.join(
        os.path.dirname(os.environ["FUSE_RT_LIBRARY"]), "libfusec.so"
    )
    lib = ctypes.CDLL(named)
    lib.fuse_compile.restype = ctypes.c_void_p
    lib.fuse_compile.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    lib.fuse_result_output.restype = ctypes.c_void_p
    lib.fuse_result_messages.restype = ctypes.c_char_p
    lib.fuse_result_ok.restype = ctypes.c_bool
    say("compile times, one instance: source to PTX (best of 3), then the driver's load of the PTX")
    for file, kernel in (
        ("axpy.fk", "axpy"),
        ("softmax.fk", "softmax_whole"),
        ("softmax.fk", "softmax_rows"),
        ("attention.fk", "attention"),
        ("linear_gelu.fk", "linear_gelu"),
        ("linear_gelu.fk", "linear_gelu_tiled"),
    ):
        for dtype in ("bf16", "f32"):
            runs = [
                compile_ptx(lib, os.path.join(EXAMPLES, file), kernel, dtype, device.target) for _ in range(3)
            ]
            ptx = runs[0][1]
            start = time.perf_counter()
            # The driver caches by content: a comment makes it new.
            module = device.module_from_ptx(ptx + f"\n// {time.time()}\n".encode(), kernel)
            load = time.perf_counter() - start
            variants = module.kernel().variants
            seconds = min(r[0] for r in runs)
            say(
                f"    {kernel:20} {dtype:5} {seconds * 1e3:8.1f} ms, load {load * 1e3:8.1f} ms, {variants} variants, {len(ptx) / 1024:7.1f} KiB of PTX"
            )
            record(
                kernel=kernel,
                dtype=dtype,
                compile_ms=seconds * 1e3,
                load_ms=load * 1e3,
                variants=variants,
                ptx_bytes=len(ptx),
            )


PARTS = {
    "axpy": bench_axpy,
    "softmax": bench_softmax,
    "rows": bench_rows,
    "linear": bench_linear,
    "attention": bench_attention,
    "launch": bench_launch,
    "compile": bench_compile,
}


def main():
    parser = argparse.ArgumentParser(description="times kernels beside their peers")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="one shape of each")
    options = parser.parse_args()
    device = fuse_rt.Device("cuda")
    say(f"{machine()}, {device}")
    for part in options.only.split(","):
        try:
            PARTS[part](device, options.quick)
        except (RuntimeError, AssertionError) as e:  # FuseError and torch's errors; the next part may work
            say(f"{part} FAILED: {e}")
            record(kernel=part, error=str(e))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

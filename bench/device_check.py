"""The cases of tests/e2e_cases.def on one device against a reference in f64, within derived bounds.

usage: device_check.py [--device cuda] [--small] [--exact] [--only KERNEL,...] [--json FILE]

Kernels, types, shapes and layouts are those of tests/e2e_*.c, which derive the bounds; on a GPU some
larger shapes are added. Each output is filled with NaN first; bytes around it and all inputs have to stay
as they were, and a second launch has to give the same bits. --small keeps the shapes that a sanitizer can
run; --exact ends each allocation with the tensor, so that memcheck sees the first byte outside.
Needs numpy and python/fuse_rt.py, nothing else. Exit status: 0 when all is right, 1 when not.
"""

import argparse
import json
import math
import os
import re
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import fuse_rt  # noqa: E402

U32 = 2.0**-24
DTYPES = {  # bytes, unit roundoff, half of the smallest positive number
    "f16": (2, 2.0**-11, 2.0**-25),
    "bf16": (2, 2.0**-8, 2.0**-134),
    "f32": (4, U32, 2.0**-150),
}
PATTERN, SMALL_ELEMENTS = 0xA5, 3000
BIG = {
    "AXPY": [(1 << 20,), ((1 << 20) + 3,)],
    "SOFTMAX": [(1000, 1024), (257, 4096), (100, 16384), (33, 65536)],
    "LINEAR": [(256, 256, 64), (512, 512, 256), (1000, 1032, 264), (1000, 999, 333), (600, 2056, 1024)],
}


# --- cases ---------------------------------------------------------------------------------------


def read_cases():
    layouts, shapes = [], {"AXPY": [], "SOFTMAX": [], "LINEAR": []}
    with open(os.path.join(ROOT, "tests", "e2e_cases.def")) as f:
        for line in f:
            row = re.match(r"([A-Z]+)\((.*)\)$", line.strip())
            if not row:
                continue
            values = [v.strip() for v in row[2].split(",")]
            if row[1] == "LAYOUT":
                flags = [v == "true" for v in values[4:]]
                layouts.append((values[0], *map(int, values[1:4]), *flags))
            elif row[1] in shapes:
                shapes[row[1]].append(tuple(map(int, values)))
    return layouts, shapes


def layouts_of(count, shape, elements):
    """The rule in tests/e2e_cases.def."""
    if elements <= SMALL_ELEMENTS:
        return list(range(count))
    return [0, 1 + 3 * shape % (count - 1), 1 + (3 * shape + 4) % (count - 1)]


def layout_number(count, shape, layout, tensor):
    return 0 if layout == 0 else (layout + 3 * tensor * (shape % 2)) % count


# --- elements: arrays of f64 to bytes and back -----------------------------------------------------


def encode(dtype, x):
    if dtype == "f16":
        return x.astype(np.float16)
    single = x.astype(np.float32)
    if dtype == "f32":
        return single
    bits = single.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(single), 0x7FFF, bits).astype(np.uint16)


def decode(dtype, x):
    if dtype != "bf16":
        return x.astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Buffer:
    """One tensor in a longer block of device memory; all bytes but its elements hold a pattern."""

    def __init__(self, device, layout, dtype, shape, exact):
        _, lead, gap, step, transposed, reverse = layout
        self.dtype, self.shape = dtype, shape
        size = DTYPES[dtype][0]
        guard = 0 if exact else 256
        m, n = shape if len(shape) == 2 else (1, shape[0])
        columns = transposed and len(shape) == 2
        lines, length = (n, m) if columns else (m, n)
        line = length * step + gap
        strides = [step, line] if columns else [line, step]
        first = lead
        from_ = 2 - len(shape)
        extent = (m, n)
        last = lead + max(m - 1, 0) * strides[0] + max(n - 1, 0) * strides[1]
        if reverse and extent[from_] > 0:
            first += (extent[from_] - 1) * strides[from_]
            strides[from_] = -strides[from_]
        total = guard + (last + 1 if m and n else lead + 1) * size + guard
        self.host = np.full(total, PATTERN, dtype=np.uint8)
        kind = np.uint16 if dtype == "bf16" else np.dtype("f%d" % size)
        self.offset = guard + first * size
        self.kind, self.byte_strides = kind, tuple(s * size for s in strides[from_:])
        self.elements = self.view(self.host)
        self.memory = device.memory(total)
        address = self.memory.address + self.offset
        self.tensor = fuse_rt.Tensor(address, dtype, shape, strides[from_:], device)

    def view(self, host):
        if 0 in self.shape:
            return np.zeros(self.shape, dtype=self.kind)
        return np.ndarray(self.shape, self.kind, host.data, self.offset, self.byte_strides)

    def set(self, values):
        self.elements[...] = encode(self.dtype, values)
        return decode(self.dtype, self.elements)

    def upload(self):
        self.memory.write(self.host.tobytes())

    def download(self):
        return np.frombuffer(self.memory.read(), dtype=np.uint8).copy()


# --- references: (values, bounds); the derivations are in tests/e2e_*.c ------------------------------


def stored(dtype, x, before):
    _, u, smallest = DTYPES[dtype]
    rounding = 0 if dtype == "f32" else u * (np.abs(x) + before) + smallest
    return (before + rounding) * (1 + 2.0**-20)


def axpy_reference(dtype, a, x, y):
    want = y + a * x
    return want, stored(dtype, want, U32 * (np.abs(a * x) + np.abs(want)))


def softmax_reference(dtype, x):
    m, n = x.shape
    if m * n == 0:
        return x, x
    d = x - x.max(1, keepdims=True)
    e = np.exp(d)
    total = e.sum(1, keepdims=True)
    own = U32 * (np.abs(d) + 4)
    online = U32 * (-d.min(1, keepdims=True) + 5 * n / 32) if n > 32 else 0
    relative = (e * own).sum(1, keepdims=True) / total + (n + 1) * U32 + online
    want = e / total
    return want, stored(dtype, want, want * (relative + own) + 2.0**-148)


def linear_reference(dtype, x, w, b):
    k = x.shape[1]
    z = x @ w
    error = 2 * U32 * (k + 1) * (np.abs(x) @ np.abs(w))
    if b is not None:
        z = z + b
        error = error + U32 * (np.abs(z) + error)
    erf = np.array([math.erf(v) for v in (z * math.sqrt(0.5)).ravel()]).reshape(z.shape)
    want = 0.5 * z * (1 + erf)
    before = 1.13 * error + 5.49 * U32 * np.abs(z) + 3 * U32 * np.abs(want)
    return want, stored(dtype, want, before)


# --- launches ------------------------------------------------------------------------------------


def draw(seed, shape, scale):
    return np.random.default_rng(seed).uniform(-scale, scale, shape)


class Checker:
    def __init__(self, device, exact):
        self.device, self.exact = device, exact
        self.layouts, self.shapes = read_cases()

    def buffers(self, dtype, shape, layout, shapes):
        count = len(self.layouts)
        numbers = [layout_number(count, shape, layout, t) for t in range(len(shapes))]
        return [Buffer(self.device, self.layouts[at], dtype, s, self.exact) for at, s in zip(numbers, shapes)]

    def launch(self, kernel, named, inputs, out, want, bound):
        """Returns the worst error in units of its bound; raises AssertionError."""
        for buffer in inputs:
            buffer.upload()
        results = []
        for _ in range(2):
            out.upload()
            kernel(**named)
            self.device.synchronize()
            results.append(out.download())
        for i, buffer in enumerate(inputs):
            assert np.array_equal(buffer.download(), buffer.host), f"input {i} has changed"
        got = decode(out.dtype, out.view(results[0]))
        expected = out.host.copy()
        if got.size:
            out.view(expected)[...] = out.view(results[0])
        assert np.array_equal(expected, results[0]), "bytes around the output have changed"
        assert np.array_equal(results[0], results[1]), "a second launch gives other bits"
        if got.size == 0:
            return 0.0
        error = np.abs(got - want)
        bad = ~(error <= bound)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise AssertionError(
                f"{int(bad.sum())} of {got.size} elements; {at} is {got[at]:.9g}, not {want[at]:.9g} "
                f"(error {error[at]:.3g}, bound {bound[at]:.3g})"
            )
        return float((error / np.maximum(bound, 1e-300)).max())

    def axpy(self, kernel, dtype, shape, n, layout, _):
        x, y = self.buffers(dtype, shape, layout, [(n,), (n,)])
        a = float(np.float32(1.7))
        want, bound = axpy_reference(dtype, a, x.set(draw(1, n, 4)), y.set(draw(2, n, 4)))
        return self.launch(kernel, dict(a=a, x=x.tensor, y=y.tensor), [x], y, want, bound)

    def softmax(self, kernel, dtype, shape, size, layout, _):
        x, y = self.buffers(dtype, shape, layout, [size, size])
        want, bound = softmax_reference(dtype, x.set(draw(3, size, 6)))
        y.set(np.full(size, np.nan))
        return self.launch(kernel, dict(x=x.tensor, y=y.tensor), [x], y, want, bound)

    def linear(self, kernel, dtype, shape, size, layout, bias):
        m, n, k = size
        x, w, b, y = self.buffers(dtype, shape, layout, [(m, k), (k, n), (n,), (m, n)])
        values = x.set(draw(4, (m, k), 1)), w.set(draw(5, (k, n), 1)), b.set(draw(6, n, 2))
        want, bound = linear_reference(dtype, values[0], values[1], values[2] if bias else None)
        y.set(np.full((m, n), np.nan))
        named = dict(x=x.tensor, w=w.tensor, b=b.tensor if bias else None, y=y.tensor)
        return self.launch(kernel, named, [x, w, b], y, want, bound)


KERNELS = [  # file, kernel, method, shapes, elements of all tensors, optional bias
    ("axpy.fk", "axpy", "axpy", "AXPY", lambda s: 2 * s[0], False),
    ("softmax.fk", "softmax_whole", "softmax", "SOFTMAX", lambda s: 2 * s[0] * s[1], False),
    ("softmax.fk", "softmax_rows", "softmax", "SOFTMAX", lambda s: 2 * s[0] * s[1], False),
    ("linear_gelu.fk", "linear_gelu", "linear", "LINEAR", None, True),
    ("linear_gelu.fk", "linear_gelu_tiled", "linear", "LINEAR", None, False),
]


def linear_elements(s):
    m, n, k = s
    return m * k + k * n + n + m * n


def cases_of(checker, row, small, big):
    """(shape number, shape, layout number, with bias)"""
    _, _, _, family, elements, optional = row
    elements = elements or linear_elements
    shapes = list(checker.shapes[family])
    if small:
        shapes = [s for s in shapes if elements(s) <= 20000]
    listed = len(shapes)
    shapes += BIG[family] if big and not small else []
    count = len(checker.layouts)
    for i, shape in enumerate(shapes):
        numbers = layouts_of(count, i, elements(shape))
        if small:
            numbers = numbers[: 1 + i % 2] + [1 + i % (count - 1)]
        if i >= listed:
            numbers = [0, 2, 1, 5]
        for layout in numbers:
            yield i, shape, layout, True
        if optional:
            yield i, shape, numbers[i % len(numbers)], False


def check_kernel(checker, row, dtype, small, big):
    file, name, method, *_ = row
    path = os.path.join(ROOT, "examples", file)
    start = time.perf_counter()
    level = 0 if checker.device.is_cuda else 1
    module = checker.device.module_from_file(
        path, defines={"T": dtype}, kernel=name, no_perf_notes=True, opt_level=level
    )
    compiled = time.perf_counter() - start
    kernel = module.kernel()
    record = dict(kernel=name, dtype=dtype, cases=0, passed=0, worst=0.0, at="", failures=[])
    for i, shape, layout, bias in cases_of(checker, row, small, big):
        what = f"{'x'.join(map(str, shape))} {checker.layouts[layout][0]}{'' if bias else ' no bias'}"
        record["cases"] += 1
        try:
            size = shape[0] if len(shape) == 1 else shape
            ratio = getattr(checker, method)(kernel, dtype, i, size, layout, bias)
        except (AssertionError, fuse_rt.FuseError) as e:
            record["failures"].append(f"{what}: {e}")
            if isinstance(e, fuse_rt.FuseError) and checker.device.is_cuda:
                break  # the context may be lost
            continue
        record["passed"] += 1
        if ratio > record["worst"]:
            record["worst"], record["at"] = ratio, what
    record["compile_s"] = round(compiled, 3)
    record["run_s"] = round(time.perf_counter() - start - compiled, 3)
    return record


def print_record(r):
    ok = "ok" if r["passed"] == r["cases"] and r["cases"] else "FAIL"
    print(
        f"{r['kernel']:18} {r['dtype']:5} {r['passed']:4}/{r['cases']:<4} {ok:5} worst {r['worst']:5.2f} of "
        f"its bound at {r['at']:32} compile {r.get('compile_s', 0):6.2f} s, run {r.get('run_s', 0):6.2f} s",
        flush=True,
    )
    for failure in r["failures"][:8]:
        print(f"    {failure}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="the end-to-end cases on one device")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtypes", default="f16,bf16,f32")
    parser.add_argument("--json")
    options = parser.parse_args()
    device = fuse_rt.Device(options.device)
    checker = Checker(device, options.exact)
    only = [name for name in options.only.split(",") if name]
    records = []
    for row in KERNELS:
        if only and row[1] not in only:
            continue
        for dtype in options.dtypes.split(","):
            try:
                record = check_kernel(checker, row, dtype, options.small, device.is_cuda)
            except fuse_rt.FuseError as e:
                record = dict(
                    kernel=row[1], dtype=dtype, cases=0, passed=0, worst=0.0, at="", failures=[str(e)]
                )
            records.append(record)
            print_record(record)
            if options.json:  # at once: a crash keeps what was done
                with open(options.json, "w") as f:
                    json.dump(records, f, indent=1)
    bad = [r for r in records if r["failures"] or not r["cases"]]
    print(
        f"{sum(r['passed'] for r in records)} of {sum(r['cases'] for r in records)} launches right on {device.name}"
    )
    return 1 if bad or not records else 0


if __name__ == "__main__":
    sys.exit(main())

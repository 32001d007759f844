"""Errors of the elementwise functions on one device, in ulps, against f64.

usage: ulps.py [--device cuda] [--types f16,bf16,f32] [--numbers 1048576] [--fast-math]

The functions and their bounds are the rows of tests/ulps_functions.h. All f16 and bf16 numbers are tried,
and of f32 numbers of every exponent, subnormal ones, around 0, 1 and multiples of pi/2, infinities and
NaN, from a fixed seed; functions of two and three numbers get shuffles of the same. tests/ulps.c says what
an ulp is. References are numpy's and Python's in f64, whose own error is 1e-8 of an ulp of f32.
Needs numpy and python/fuse_rt.py, nothing else. Exit status: 0 when all is within its bound, 1 when not
(with --fast-math the table is all there is: 0).
"""

import argparse
import math
import os
import re
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import fuse_rt  # noqa: E402

CHUNK = 1 << 16
TYPES = {"f16": (16, 11, -14), "bf16": (16, 8, -126), "f32": (32, 24, -126)}  # bits, precision, least exponent
FLUSHED = {"exp", "exp2"}  # may give 0 below the normal range on a GPU


# --- functions -----------------------------------------------------------------------------------


def by_number(f):
    """f of Python's math on arrays; of an infinity it is NaN."""
    vector = np.frompyfunc(lambda x: f(x) if math.isfinite(x) else math.nan, 1, 1)
    return lambda x: vector(x).astype(np.float64)


def whole_line(f):
    """f of Python's math on arrays, infinities too."""
    vector = np.frompyfunc(f, 1, 1)
    return lambda x: vector(x).astype(np.float64)


def relu(x):
    return np.where(x > 0, x, np.where(np.isnan(x), x, 0.0))


def relu6(x):
    return np.where(x > 6, 6.0, relu(x))


def softplus(x):
    return relu(x) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    u = math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)
    return x / (1 + np.exp(-2 * u))


def least(x, y):
    """Of two numbers, -0 below +0; NaN counts as no number."""
    first = (x < y) | ((x == y) & np.signbit(x)) | np.isnan(y)
    return np.where(first, x, y)


def strict(f):
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, f(x, y))


def largest(x, y):
    return -least(-x, -y)


EXACT = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": lambda x: 1 / x,
    "sin": by_number(math.sin),
    "cos": by_number(math.cos),
    "tan": by_number(math.tan),
    "tanh": np.tanh,
    "erf": whole_line(math.erf),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "rint_floor": np.floor,
    "rint_ceil": np.ceil,
    "rint_trunc": np.trunc,
    "round": np.rint,
    "abs": np.abs,
    "neg": np.negative,
    "sqr": np.square,
    "cube": lambda x: x * x * x,
    "sign": lambda x: np.where(np.isnan(x), 0.0, np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))),
    "isnan": lambda x: np.isnan(x).astype(np.float64),
    "clamp": lambda x: np.clip(x, -0.5, 0.5),
    "relu": relu,
    "relu6": relu6,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softplus": softplus,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hardswish": lambda x: x * (relu6(x + 3) / 6),
    "gelu": lambda x: 0.5 * x * whole_line(math.erfc)(-x / math.sqrt(2)),
    "gelu_tanh": gelu_tanh,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "min": least,
    "max": largest,
    "strict_min": strict(least),
    "strict_max": strict(largest),
    "fma": lambda x, y, z: x * y + z,  # the product of two f32 is exact
}


def read_functions():
    """(text, operands, exact, bound in f32, whether of the larger of result and x, exponent of no error)"""
    row = re.compile(r'^\s*\{"(.+)", (\d), exact_(\w+), ([\d.]+), [\d.]+, (true|false), (-?\d+)\},')
    rows = []
    with open(os.path.join(ROOT, "tests", "ulps_functions.h")) as f:
        for line in f:
            m = row.match(line)
            if m:
                rows.append((m[1], int(m[2]), m[3], float(m[4]), m[5] == "true", int(m[6])))
    return rows


def source(functions, dtype):
    lines = [
        "import std.math;",
        "import std.nn;",
        f"kernel all(a: {dtype}[N], b: {dtype}[N], c: {dtype}[N]) -> (out: {dtype}[{len(functions)}, N]) {{",
        "    parallel n in tiles(N) {",
        "        let x = a[n], y = b[n], z = c[n];",
    ]
    lines += [f"        out[{i}, n] = {row[0].replace('T', dtype)};" for i, row in enumerate(functions)]
    return "\n".join(lines + ["    }", "}", ""])


# --- numbers -------------------------------------------------------------------------------------


def decode(dtype, codes):
    if dtype == "bf16":
        codes = codes.astype(np.uint32) << 16
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        return codes.view(np.float16 if dtype == "f16" else np.float32).astype(np.float64)


def f32_inputs(count):
    rng = np.random.default_rng(1)
    special = [0, 1, 2, 0.5, 3, np.inf, np.nan, 1e6, 88.7, 89, 87.3, 104, 103.9, 128, 149, 150, 126, 4.1, 1e30]
    special += [0.921875, 16777216, 1e-45, 1.17549435e-38, 3.4028235e38, 0.55, 2.0**30, 1e9]
    special = np.array(special, np.float32).view(np.uint32)
    n = count // 8
    uniform = rng.uniform(-1, 1, 3 * n) * np.repeat([1.0, 10.0, 110.0], n)
    turns = np.floor(np.exp2(rng.uniform(0, 24, n))) * (math.pi / 2)
    near_turns = turns.astype(np.float32).view(np.uint32) + rng.integers(-2, 3, n)
    near_one = 0x3F800000 + rng.integers(-300, 301, n)
    subnormal = rng.integers(0, 1 << 24, n)
    rest = count - 6 * n - 2 * len(special)
    exponents = (np.arange(rest) * 256 // rest) << 23 | rng.integers(0, 1 << 23, rest)
    codes = np.concatenate([near_turns, near_one, subnormal, exponents]).astype(np.uint32)
    codes ^= rng.integers(0, 2, len(codes)).astype(np.uint32) << 31
    return np.concatenate([special, special ^ 0x80000000, codes, uniform.astype(np.float32).view(np.uint32)])


def inputs(dtype, count):
    if dtype == "f32":
        first = f32_inputs(-(-count // CHUNK) * CHUNK)
    else:
        first = np.arange(1 << 16).astype(np.uint16)
    rng = np.random.default_rng(2)
    return [first.astype(np.uint32 if dtype == "f32" else np.uint16)] + [rng.permutation(first) for _ in range(2)]


def ulps(dtype, got, want, scale):
    """tests/ulps.c says what this is."""
    _, precision, least_exponent = TYPES[dtype]
    top = 2.0 ** (2 - least_exponent)
    g = np.clip(got, -top, top)
    w = np.clip(want, -top, top)
    size = np.minimum(np.maximum(np.abs(w), np.abs(scale)), top / 2)
    exponent = np.maximum(np.frexp(size)[1] - 1, least_exponent)
    exponent = np.where(size == 0, least_exponent, exponent)
    error = np.abs(g - w) / np.ldexp(1.0, exponent - precision + 1)
    error = np.where((want == 0) & (got == 0) & (np.signbit(want) != np.signbit(got)), np.inf, error)
    both = np.isnan(want) & np.isnan(got)
    return np.where(both, 0, np.where(np.isnan(want) | np.isnan(got), np.inf, error))


# --- running -------------------------------------------------------------------------------------


class Buffers:
    """Three inputs and the results of a chunk in device memory."""

    def __init__(self, device, dtype, rows):
        size = TYPES[dtype][0] // 8
        self.kind = np.uint32 if dtype == "f32" else np.uint16
        self.inputs = [device.memory(CHUNK * size) for _ in range(3)]
        self.output = device.memory(rows * CHUNK * size)
        self.tensors = [fuse_rt.Tensor(m.address, dtype, (CHUNK,), (1,), device) for m in self.inputs]
        self.result = fuse_rt.Tensor(self.output.address, dtype, (rows, CHUNK), (CHUNK, 1), device)
        self.rows = rows

    def run(self, kernel, device, codes):
        for memory, c in zip(self.inputs, codes):
            memory.write(c.tobytes())
        kernel(*self.tensors, self.result)
        device.synchronize()
        return np.frombuffer(self.output.read(), self.kind).reshape(self.rows, CHUNK)


def compare(dtype, row, x, got, flush):
    """Errors in ulps; those that are allowed are 0."""
    _, operands, name, _, of_operand, tiny = row
    with np.errstate(all="ignore"):
        want = EXACT[name](*x[:operands])
        allowed = 2.0**tiny if tiny else 2.0**-126 if flush and name in FLUSHED else 0.0
        error = ulps(dtype, got, want, x[0] if of_operand else 0.0)
        error = np.where((allowed > 0) & (np.abs(got - want) <= allowed), 0, error)
    return error, want


def bound_of(dtype, row):
    return row[3] if dtype == "f32" or row[3] == 0 else 0.5 + math.ldexp(row[3], TYPES[dtype][1] - 24)


def check(device, functions, dtype, count, fast_math):
    module = device.module_from_source(source(functions, dtype), "ulps.fk", no_perf_notes=True, fast_math=fast_math)
    kernel, buffers = module.kernel(), Buffers(device, dtype, len(functions))
    codes = inputs(dtype, count)
    worst, place, bad = [0.0] * len(functions), [""] * len(functions), [0] * len(functions)
    for at in range(0, len(codes[0]), CHUNK):
        chunk = [c[at : at + CHUNK] for c in codes]
        out = buffers.run(kernel, device, chunk)
        x = [decode(dtype, c) for c in chunk]
        for i, row in enumerate(functions):
            got = decode(dtype, out[i])
            error, want = compare(dtype, row, x, got, device.is_cuda)
            bad[i] += int(np.count_nonzero(error > bound_of(dtype, row) * (1 + 1e-7)))
            k = int(np.argmax(error))
            if error[k] > worst[i]:
                worst[i] = float(error[k])
                operands = ", ".join(float(v[k]).hex() for v in x[: row[1]])
                place[i] = f"of {operands}: {float(got[k])!r}, not {float(want[k])!r}"
    print(f"\n{dtype + ' on ' + device.name:20} {'bound':>8} {'worst':>10} {'outside':>8}")
    for i, row in enumerate(functions):
        note = place[i] if bad[i] else ""
        print(f"{row[0]:20} {bound_of(dtype, row):8.4f} {worst[i]:10.4f} {bad[i]:8} {note}", flush=True)
    return sum(bad)


def main():
    parser = argparse.ArgumentParser(description="errors of elementwise functions on one device")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--types", default="f16,bf16,f32")
    parser.add_argument("--numbers", type=int, default=1 << 20, help="of f32")
    parser.add_argument("--fast-math", action="store_true")
    options = parser.parse_args()
    unknown = [t for t in options.types.split(",") if t not in TYPES]
    if unknown:
        parser.error(f"no such types here: {', '.join(unknown)} (tests/ulps.c has f64)")
    functions = read_functions()
    missing = [row[2] for row in functions if row[2] not in EXACT]
    if missing or not functions:
        sys.exit(f"ulps.py: no reference of {missing}" if missing else "ulps.py: no functions")
    device = fuse_rt.Device(options.device)
    bad = sum(check(device, functions, t, options.numbers, options.fast_math) for t in options.types.split(","))
    print(f"\n{bad} results outside their bounds on {device.name}")
    return 1 if bad and not options.fast_math else 0


if __name__ == "__main__":
    sys.exit(main())

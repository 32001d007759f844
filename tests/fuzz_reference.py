#!/usr/bin/env python3
"""Random kernels on every device of this machine against the evaluator and numpy.

    fuzz_reference.py FUSEC [--seed=N] [--count=N] [--seconds=N] [--keep=DIR] [--verbose=1]

Makes well-typed kernels of whole-tensor statements and hand-written nests: elementwise, reductions
over one or several axes, products of any operand order, several outputs, inout, temporaries,
loops and conditions between statements. Each runs on `eval`, `cpu` and `sim` with the same inputs
(zero, one, prime and round extents; C and Fortran order); the outputs agree within a bound that
the dtype sets, and with numpy in f64 where all is f32. A kernel that the compiler refuses as
unsupported is counted and is no error; an internal error, a crash or a hang is one. No program is
started after `seconds`. --keep copies what failed to DIR/SEED.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is missing")
    sys.exit(77)

SIZES = [0, 1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64, 65, 100, 128, 130]
LONG = [1000, 1025, 4100, 5003]
DTYPES = {"f32": np.float32, "f16": np.float16}
TOLERANCE = {"f32": 3e-4, "f16": 6e-3}


# --- values with named axes: the text of an expression and what numpy makes of it ---


class Expr:
    """text: the source; axes: a sorted tuple of names; of: environment => array over axes."""

    def __init__(self, text, axes, of, exact=False, heavy=0):
        self.text, self.axes, self.of = text, tuple(sorted(axes)), of
        self.exact = exact  # an input's own value: comparisons with it do not depend on rounding
        self.heavy = heavy  # products in it: their nesting is limited


def spread(array, axes, to):
    """The array over sorted `axes`, broadcast to the sorted axes `to`."""
    at = 0
    index = []
    for name in to:
        if name in axes:
            index.append(slice(None))
            at += 1
        else:
            index.append(None)
    return array[tuple(index)]


def both(a, b):
    return tuple(sorted(set(a.axes) | set(b.axes)))


def binary(form, fn, a, b):
    axes = both(a, b)
    return Expr(form.format(a.text, b.text), axes,
                lambda env: fn(spread(a.of(env), a.axes, axes), spread(b.of(env), b.axes, axes)),
                heavy=max(a.heavy, b.heavy))


def unary(form, fn, a):
    return Expr(form.format(a.text), a.axes, lambda env: fn(a.of(env)), heavy=a.heavy)


def choice(a, b, x, y):
    axes = tuple(sorted(set(a.axes) | set(b.axes) | set(x.axes) | set(y.axes)))
    return Expr(f"({a.text} > {b.text} ? {x.text} : {y.text})", axes,
                lambda env: np.where(*[spread(v, e, axes) for v, e in (
                    (spread(a.of(env), a.axes, both(a, b)) > spread(b.of(env), b.axes, both(a, b)),
                     both(a, b)), (x.of(env), x.axes), (y.of(env), y.axes))]),
                heavy=max(x.heavy, y.heavy))


def reduction(kind, over, a):
    rest = tuple(n for n in a.axes if n not in over)
    at = tuple(i for i, n in enumerate(a.axes) if n in over)

    def of(env):
        v = a.of(env)
        with np.errstate(all="ignore"):
            if kind == "sum":
                return v.sum(axis=at)
            if kind == "mean":
                return v.sum(axis=at) / np.prod([v.shape[i] for i in at])
            if kind == "max":
                return v.max(axis=at, initial=-np.inf)
            return v.min(axis=at, initial=np.inf)

    return Expr(f"{kind}[{', '.join(over)}]({a.text})", rest, of, heavy=a.heavy)


def product(over, a, b):
    axes = tuple(sorted((set(a.axes) | set(b.axes)) - {over}))

    def of(env):
        names = {n: chr(ord("a") + i) for i, n in enumerate(sorted(set(a.axes) | set(b.axes)))}
        form = "{},{}->{}".format(*["".join(names[n] for n in s) for s in (a.axes, b.axes, axes)])
        return np.einsum(form, a.of(env), b.of(env))

    return Expr(f"dot[{over}]({a.text}, {b.text})", axes, of, heavy=max(a.heavy, b.heavy) + 1)


# --- kernels ---


class Program:
    def __init__(self, seed):
        self.rng = r = random.Random(seed)
        self.dims = r.sample(["B", "K", "M", "N"], r.choice([1, 2, 2, 3, 3]))
        self.size = {d: r.choice(SIZES) for d in self.dims}
        if len(self.dims) <= 2 and r.random() < 0.3:
            self.size[r.choice(self.dims)] = r.choice(LONG)
        while np.prod([max(s, 1) for s in self.size.values()]) > 60000:
            d = max(self.size, key=self.size.get)
            self.size[d] = max(1, self.size[d] // 3)
        self.dtype = "f32" if r.random() < 0.7 else "f16"
        self.inputs, self.outputs, self.inouts = {}, {}, {}
        self.values, self.lines, self.steps = [], [], []
        self.count = 0
        self.current = {}  # tensor => its contents as an expression of the environment

    def name(self, base):
        self.count += 1
        return f"{base}{self.count}"

    def order(self, axes):
        axes = list(axes)
        self.rng.shuffle(axes)
        return axes

    def subset(self):
        n = self.rng.choice([1, 1, 2, 2, 2, 3])
        return self.rng.sample(self.dims, min(n, len(self.dims)))

    def add_tensor(self, table, axes, dtype):
        name = self.name({id(self.inputs): "x", id(self.outputs): "y"}.get(id(table), "z"))
        table[name] = (self.order(axes), dtype)
        return name

    def tensor(self, name):
        axes, _ = self.inputs.get(name) or self.inouts.get(name) or self.outputs.get(name) or \
            self.temps[name]
        return Expr(name, axes, lambda env: env[name], exact=name in self.inputs)

    def leaf(self):
        r = self.rng.random()
        if r < 0.15:
            c = self.rng.choice([0.5, 2.0, -1.5, 1.0])
            return Expr(f"({c})" if c < 0 else str(c), (), lambda env: np.float64(c))
        if r < 0.5 and self.values:
            return self.rng.choice(self.values)
        readable = list(self.inputs) + list(self.inouts) + list(self.written)
        return self.tensor(self.rng.choice(readable))

    def operand(self, over):
        """A value along `over` of the dtype T, for a product."""
        e = self.expr(1)
        if over not in e.axes:
            e = binary("({} * {})", np.multiply, e, self.tensor(self.along(over)))
        return Expr(f"(({e.text}) as T)", e.axes, e.of, heavy=e.heavy)

    def along(self, over):
        fit = [n for n in self.inputs if over in self.inputs[n][0]]
        return self.rng.choice(fit) if fit else self.add_tensor(self.inputs, [over], "T")

    def expr(self, depth):
        r = self.rng
        kind = r.random()
        if depth == 0 or kind < 0.12:
            return self.leaf()
        a = self.expr(depth - 1)
        if kind < 0.30:
            form, fn = r.choice([("({} + {})", np.add), ("({} - {})", np.subtract),
                                 ("({} * {})", np.multiply), ("max({}, {})", np.maximum),
                                 ("min({}, {})", np.minimum)])
            return binary(form, fn, a, self.expr(depth - 1))
        if kind < 0.42:
            b = self.expr(depth - 1)
            return binary("({} / {})", np.divide, a,
                          unary("(1.0 + abs({}))", lambda v: 1 + np.abs(v), b))
        if kind < 0.56:
            form, fn = r.choice([
                ("abs({})", np.abs), ("(-{})", np.negative), ("tanh({})", np.tanh),
                ("exp(min({}, 1.0))", lambda v: np.exp(np.minimum(v, 1.0))),
                ("sqrt(abs({}) + 0.5)", lambda v: np.sqrt(np.abs(v) + 0.5))])
            return unary(form, fn, a)
        if kind < 0.64:
            x, y = self.tensor(r.choice(list(self.inputs))), self.tensor(r.choice(list(self.inputs)))
            return choice(x, y, a, self.expr(depth - 1))
        if kind < 0.85 and a.axes:
            over = r.sample(a.axes, 1 if r.random() < 0.8 else r.randint(1, len(a.axes)))
            return reduction(r.choice(["sum", "max", "min", "mean", "sum"]), over, a)
        if a.heavy < 2:
            over = r.choice(self.dims)
            return product(over, self.operand(over), self.operand(over))
        return a

    def fit(self, e, axes):
        """The expression over exactly these axes: others are reduced, missing ones broadcast."""
        extra = [n for n in e.axes if n not in axes]
        return reduction("max" if self.rng.random() < 0.3 else "sum", extra, e) if extra else e

    def store(self, name, indent):
        axes, dtype = self.inouts.get(name) or self.outputs.get(name) or self.temps[name]
        e = self.fit(self.expr(self.rng.choice([1, 2, 2, 3])), axes)
        cast = " as T" if dtype == "T" else ""
        self.lines.append(f"{indent}{name} = ({e.text}){cast};")
        order = tuple(sorted(axes))
        self.written.add(name)

        def run(env):
            shape = [self.size[n] for n in order]
            env[name] = np.broadcast_to(spread(e.of(env), e.axes, order), shape)
        return run

    def make(self):
        r = self.rng
        self.temps, self.written = {}, set()
        for _ in range(r.randint(1, 4)):
            self.add_tensor(self.inputs, self.subset(), "T")
        for _ in range(r.choice([0, 0, 1, 2])):
            self.add_tensor(self.inouts, self.subset(), r.choice(["T", "f32"]))
        for _ in range(r.randint(1, 3)):
            self.add_tensor(self.outputs, self.subset(), r.choice(["T", "f32"]))
        unwritten = list(self.outputs)
        for _ in range(r.choice([1, 2, 3, 4, 6, 9])):
            self.statement(unwritten)
        for name in unwritten:
            self.steps.append(self.store(name, "    "))
        return self

    def statement(self, unwritten):
        r = self.rng
        kind = r.random()
        if kind < 0.4:
            e = self.expr(r.choice([1, 2, 3]))
            if not e.axes:
                return
            name = self.name("v")
            self.lines.append(f"    let {name} = {e.text};")
            self.values.append(Expr(name, e.axes, lambda env: env[name], heavy=e.heavy))
            self.steps.append(lambda env: env.__setitem__(name, e.of(env)))
        elif kind < 0.5:
            name = self.name("t")
            axes = self.order(self.subset())
            dtype = r.choice(["T", "f32"])
            self.temps[name] = (axes, dtype)
            self.lines.append(f"    temp {name}: {dtype}[{', '.join(axes)}];")
            self.steps.append(self.store(name, "    "))
        elif kind < 0.62 and (self.inouts or self.written):
            self.host_region()
        else:
            places = list(self.inouts) + unwritten + list(self.written)
            name = r.choice(places)
            if name in unwritten:
                unwritten.remove(name)
            self.steps.append(self.store(name, "    "))

    def host_region(self):
        r = self.rng
        places = sorted(set(self.inouts) | self.written)
        loop = r.random() < 0.5
        runs = r.choice([0, 1, 3]) if loop else r.choice([0, 1])
        self.lines.append(f"    for step{self.count} in 0..n {{" if loop else "    if n > 0 {")
        self.count += 1
        inner = [self.store(r.choice(places), "        ") for _ in range(r.randint(1, 3))]
        self.lines.append("    }")
        if not hasattr(self, "n"):
            self.n = runs
        times = self.n if loop else int(self.n > 0)
        self.steps.append(lambda env: [run(env) for _ in range(times) for run in inner])

    def text(self):
        def params(table):
            return [f"{n}: {d}[{', '.join(a)}]" for n, (a, d) in table.items()]
        ins = params(self.inputs) + (["n: i32"] if hasattr(self, "n") else [])
        outs = ["inout " + p for p in params(self.inouts)] + params(self.outputs)
        head = f"kernel k<T: float>({', '.join(ins)}) -> ({', '.join(outs)}) {{\n"
        return head + "\n".join(self.lines) + "\n}\n"

    def reference(self, data):
        env = {}
        for table in (self.inputs, self.inouts):
            for name, (axes, _) in table.items():
                order = sorted(axes)
                env[name] = np.transpose(data[name].astype(np.float64),
                                         [axes.index(n) for n in order])
        with np.errstate(all="ignore"):
            for step in self.steps:
                step(env)
        out = {}
        for table in (self.inouts, self.outputs):
            for name, (axes, _) in table.items():
                order = sorted(axes)
                out[name] = np.transpose(env[name], [order.index(n) for n in axes])
        return out


# --- running ---


class Failure(Exception):
    pass


def write_inputs(p, folder, seed):
    gen = np.random.default_rng(seed)
    data = {}
    for table in (p.inputs, p.inouts):
        for name, (axes, dtype) in table.items():
            shape = [p.size[n] for n in axes]
            kind = DTYPES[p.dtype if dtype == "T" else dtype]
            v = gen.standard_normal(shape).astype(kind)
            data[name] = np.asfortranarray(v) if gen.random() < 0.3 else v
    return data


def run_device(fusec, p, folder, data, device, extra=()):
    values = []
    for name, v in data.items():
        path = os.path.join(folder, f"{name}.{device}.npy")
        np.save(path, v)
        values.append(f"{name}={path}")
    outs = {}
    for table in (p.inouts, p.outputs):
        for name, (axes, dtype) in table.items():
            path = os.path.join(folder, f"{name}.{device}.npy")
            outs[name] = path
            if name not in data:
                values.append(f"{name}={path}")
    if hasattr(p, "n"):
        values.append(f"n={p.n}")
    shapes = [f"--shape={n}={','.join(str(p.size[d]) for d in a)}"
              for n, (a, _) in p.outputs.items()]
    command = [fusec, "run", os.path.join(folder, "k.fk"), f"--device={device}", "-Wno-perf", "-O1",
               "-D", f"T={p.dtype}", *extra, *shapes, *values]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        raise Failure(f"{device}: does not end") from None
    if done.returncode != 0:
        if "error[unsupported]" in done.stderr and "error[internal]" not in done.stderr:
            return done.stderr.strip().splitlines()[0]
        raise Failure(f"{device}: exit status {done.returncode}\n{done.stderr.strip()[:2000]}")
    return {n: np.load(path) for n, path in outs.items()}


def compare(p, what, got, want):
    for name, w in want.items():
        g = got[name].astype(np.float64)
        w = w.astype(np.float64)
        if g.shape != w.shape:
            raise Failure(f"{what}: {name} has shape {g.shape}, not {w.shape}")
        finite = np.isfinite(w) & np.isfinite(g)
        scale = max(1.0, float(np.abs(w[finite]).max(initial=0.0)))
        near = np.abs(np.where(finite, g, 0) - np.where(finite, w, 0))
        same = np.where(finite, near <= TOLERANCE[p.dtype] * scale,
                        (g == w) | (np.isnan(g) & np.isnan(w)))
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            raise Failure(f"{what}: {name}{list(at)} is {g[at]}, not {w[at]} "
                          f"({int((~same).sum())} of {w.size} differ)")


def check(fusec, seed, folder):
    p = Program(seed).make()
    with open(os.path.join(folder, "k.fk"), "w", encoding="utf-8") as f:
        f.write(p.text())
    data = write_inputs(p, folder, seed)
    want = run_device(fusec, p, folder, data, "eval")
    if isinstance(want, str):
        return f"eval: {want}"
    if p.dtype == "f32":
        compare(p, "eval against numpy", want, p.reference(data))
    # The front end has proved that iterations do not meet; tile sizes may not matter.
    run_device(fusec, p, folder, data, "eval", ("--check", "--check=tiles"))
    refused = None
    for device in ("cpu", "sim"):
        got = run_device(fusec, p, folder, data, device)
        if isinstance(got, str):
            refused = f"{device}: {got}"
            continue
        compare(p, device, got, want)
    return refused


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[2:] if a.startswith("--"))
    first, count = int(options.get("seed", 1)), int(options.get("count", 20))
    end = time.monotonic() + float(options.get("seconds", 1e9))
    done = refused = failed = 0
    for seed in range(first, first + count):
        if time.monotonic() > end:
            break
        done += 1
        folder = tempfile.mkdtemp(prefix="fuzz_reference.")
        try:
            why = check(sys.argv[1], seed, folder)
            refused += why is not None
            if why and "verbose" in options:
                print(f"seed {seed}: refused: {why}", flush=True)
        except Failure as e:
            failed += 1
            with open(os.path.join(folder, "k.fk"), encoding="utf-8") as f:
                text = f.read()
            print(f"seed {seed}: {e}\n{Program(seed).make().size}\n{text}", flush=True)
            if "keep" in options:
                shutil.copytree(folder, os.path.join(options["keep"], str(seed)),
                                dirs_exist_ok=True)
        finally:
            shutil.rmtree(folder)
    print(f"{done} programs, {refused} refused, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

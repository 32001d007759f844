"""Random units: pieces of a kernel with parameters of their own, which share nothing with each other.

A value carries what is known of its error, so that a comparison need not guess. Inputs are small
multiples of a power of two: sums and products of them are exact in any order until they need more than
24 bits, and then a bit that differs is a failure. Only exact values reach what jumps (comparisons,
rounding, casts to integers, sorting). Others carry a bound.

What a tensor holds is said by the first letter of its name, so that a text alone is a test:
x small values, w any value of the type, i numbers around an axis, p a permutation, s offsets that grow,
b an optional tensor that may be absent.
"""
import math
import random

SIZES = [0, 1, 1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64, 65, 100, 130]
FLOATS = ["f32", "f16", "bf16", "e4m3", "e5m2", "f64"]
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
EPS = {"f64": 2.0**-50, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7, "e4m3": 2.0**-3, "e5m2": 2.0**-2}
FUNCTIONS = """fn fz_add(a, b) = a + b;
fn fz_top(a, b) = a > b ? a : b;
fn fz_right(a, b) = b != 0 ? b : a;
fn fz_after((a, x), (b, y)) = (a * b, b * x + y);
"""


class E:
    """A value: text; its axes; its type; the largest magnitude; all are multiples of lsb (0: unknown);
    err: how far apart two right results may be; fin: neither inf nor NaN."""

    def __init__(self, text, axes, ty, mag, lsb, err=0.0, fin=True):
        self.text, self.axes, self.ty, self.mag, self.lsb, self.err, self.fin = \
            text, frozenset(axes), ty, mag, lsb, err, fin
        if ty == "f32" and self.exact and lsb and mag / lsb > 2.0**24:
            self.lsb, self.err = 0, mag * 2.0**-20
        elif ty == "f64" and self.exact and lsb and mag / lsb > 2.0**53:
            self.lsb, self.err = 0, mag * 2.0**-45

    @property
    def exact(self):
        return self.err == 0 and self.lsb > 0


def is_float(ty):
    return ty in EPS


class Unit:
    """`lines` of the body; `ins`, `inouts`, `outs`: name -> (dtype, dims); `sizes` of dims; `bounds`."""

    def __init__(self, rng, at):
        self.r, self.at = rng, at
        self.ins, self.inouts, self.outs, self.sizes, self.bounds = {}, {}, {}, {}, {}
        self.scalars, self.absent, self.lines, self.schedule, self.where = {}, set(), [], {}, []
        self.axes = {}  # axis in scope -> (dim, text of it in an index)
        self.reducible, self.values, self.indent, self.n = [], [], "    ", 0
        self.whole = False
        self.written = []  # by store: (name, dims, type, value)

    # --- names ---

    def name(self, letter):
        self.n += 1
        return f"{letter}{self.at}_{self.n}"

    def dim(self, letter, size=None):
        d = f"{letter}{self.at}"
        self.sizes[d] = self.r.choice(SIZES) if size is None else size
        return d

    def extent(self, axis):
        d = self.axes[axis][0]
        return d if isinstance(d, int) else self.sizes[d]

    def line(self, text):
        self.lines.append(self.indent + text)

    def open(self, text):
        self.line(text + " {")
        self.indent += "    "

    def close(self):
        self.indent = self.indent[4:]
        self.line("}")

    def pick_axes(self, least=1):
        names = list(self.axes)
        k = self.r.randint(min(least, len(names)), min(3, len(names)))
        return self.r.sample(names, k)

    def tensor(self, table, letter, axes, dtype):
        name = self.name(letter)
        table[name] = (dtype, [str(self.axes[a][0]) for a in axes])
        return name

    def indexed(self, name, axes):
        return name if self.whole else f"{name}[{', '.join(self.axes[a][1] for a in axes)}]" if axes else name

    # --- values ---

    def load(self, ty, axes=None):
        """A tensor's element as `ty`."""
        r = self.r
        axes = self.pick_axes() if axes is None else axes
        if not axes:
            return E(f"(3 as {ty})", (), ty, 3, 1)
        wide = not is_float(ty) and r.random() < 0.3
        dtype = r.choice(INTS if wide else FLOATS + ["f32", "f16", "bf16"] + INTS + ["bool"])
        if not self.whole and not wide and len(axes) > 1 and r.random() < 0.12:
            return self.window(ty, axes, dtype)
        letter = "w" if wide else "x"
        if not self.whole and r.random() < 0.1 and not wide:
            letter = "b"
        name = self.tensor(self.ins, letter, axes, dtype)
        if letter == "b" and r.random() < 0.5:
            self.absent.add(name)
        text = self.indexed(name, axes)
        kind = r.random()
        if not self.whole and kind < 0.25:
            a = r.choice(axes)
            if ":" not in self.axes[a][1]:
                form = r.choice(["{} - 1", "{} + 1", "2*{} - 1", "{} / 2", "3 - {}"])
                text = f"{name}[{', '.join(form.format(a) if b == a else self.axes[b][1] for b in axes)}]"
                if r.random() < 0.2:
                    return E(f"(inside({text}) as {ty})", axes, ty, 1, 1)
                if r.random() < 0.5 and dtype != "bool":
                    text = f"({text} else 1{'.0' if is_float(dtype) else ''})"
        elif kind < 0.4 and dtype not in ("bool", "e4m3", "e5m2"):
            text = r.choice(["abs({})", "(-{})", "max({0}, {0})"] if dtype[0] != "u" else
                            ["min({0}, {0})"]).format(text)
        if dtype == "bool":
            return E(f"({text} as {ty})", axes, ty, 1, 1)
        mag, lsb = (2, 0.25) if is_float(dtype) else (2.0**64 if wide else 8, 1)
        if not is_float(ty):
            lsb, mag = 1, mag if dtype in ("i8", "i16", "i32", "i64") or is_float(dtype) else mag
            if ty == "u32" and (is_float(dtype) or dtype[0] == "i"):
                mag = 2.0**64
        return E(f"({text} as {ty})", axes, ty, mag, lsb)

    def window(self, ty, axes, dtype):
        """An element at a place that two axes make together."""
        a, b = axes[:2]
        name = self.tensor(self.ins, "x", axes[1:], dtype)
        form = self.r.choice(["{} + {}", "2*{} + {} - 1", "{} + {} - 1", "{} - {}", "3*{} + {}"])
        rest = [self.axes[c][1] for c in axes[2:]]
        mag, lsb = (2, 0.25) if is_float(dtype) else (8, 1)
        if ty == "u32":
            mag = 2.0**64
        return E(f"({name}[{', '.join([form.format(a, b)] + rest)}] as {ty})", axes, ty, mag, lsb if is_float(ty) else 1)

    def local_dot(self):
        """A product along an axis that a program holds, or nothing."""
        r = self.r
        over = [a for a in self.reducible if isinstance(self.axes[a][0], int)]
        free = [a for a in self.axes if self.is_tile(a)]
        if self.whole or not over or len(free) < 3:
            return None
        k = r.choice(over)
        i, j = r.sample([a for a in free if a != k], 2)
        t = r.choice(["f16", "bf16", "f32", "e4m3", "e5m2"])
        batch = sorted(self.scalar_binders)[:1]
        x, w = self.tensor(self.ins, "x", batch + [i, k], t), self.tensor(self.ins, "x", [k, j], t)
        return E(f"dot[{k}]({self.indexed(x, batch + [i, k])}, {self.indexed(w, [k, j])})", [i, j], "f32",
                 4 * self.extent(k), 1 / 16)

    def small(self, e):
        """An integer of at most 64."""
        return e if e.mag <= 64 else E(f"({e.text} % 64)", e.axes, e.ty, 64, 1)

    def leaf(self, ty):
        r, k = self.r, self.r.random()
        fit = [v for v in self.values if v.ty == ty and v.axes <= set(self.axes)]
        if fit and k < 0.4:
            return r.choice(fit)
        if k < 0.5:
            c = r.choice([0.5, 2.0, 1.0, 3.0]) if is_float(ty) else r.choice([1, 2, 3, 7])
            return E(f"({c} as {ty})", (), ty, c, 0.5 if is_float(ty) else 1)
        if not self.whole and k < 0.6 and self.axes:
            a = r.choice([a for a in self.axes])
            if ":" not in self.axes[a][1]:
                return E(f"(({a} % 8) as {ty})", [a] if self.is_tile(a) else [], ty, 8, 1)
        return self.load(ty)

    def is_tile(self, axis):
        return axis not in getattr(self, "scalar_binders", ())

    def condition(self, depth):
        r = self.r
        ty = r.choice(["f32", "i32", "i32", "u32", "i64", "f64"])
        a, b = self.sharp(self.value(depth, ty)), self.sharp(self.value(depth, ty))
        if not a.axes | b.axes:  # a constant condition drops a side, and the axes that only it has
            a = self.load(ty)
        c = E(f"({a.text} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {b.text})", a.axes | b.axes, "bool", 1, 1)
        if r.random() < 0.15:
            return E(f"(!{c.text})", c.axes, "bool", 1, 1)
        if r.random() < 0.15:
            d = self.condition(0)
            return E(f"({c.text} {r.choice(['&&', '||'])} {d.text})", c.axes | d.axes, "bool", 1, 1)
        return c

    def sharp(self, e):
        """The value, or an exact one in its place."""
        return e if e.exact else self.load(e.ty)

    def value(self, depth, ty):
        r, k = self.r, self.r.random()
        if depth <= 0 or k < 0.1:
            return self.leaf(ty)
        if ty == "f32" and k < 0.15:
            e = self.local_dot()
            if e:
                return e
        a = self.value(depth - 1, ty)
        if k < 0.38:
            return self.binary(a, self.value(depth - 1, ty), ty)
        if k < 0.48:
            c, b = self.condition(depth - 2), self.value(depth - 1, ty)
            return E(f"({c.text} ? {a.text} : {b.text})", a.axes | b.axes | c.axes, ty, max(a.mag, b.mag),
                     min(a.lsb, b.lsb), max(a.err, b.err), a.fin and b.fin)
        if k < 0.6:
            return self.cast(depth, ty)
        if k < 0.85 and a.axes & set(self.reducible):
            return self.along(a, ty)
        return self.unary(a, ty)

    def cast(self, depth, ty):
        r = self.r
        of = r.choice([t for t in ["f32", "i32", "i64", "u32", "f64"] if t != ty])
        e = self.value(depth - 1, of)
        if is_float(of) and not is_float(ty):
            e = self.sharp(e)
            return E(f"({e.text} as {ty})", e.axes, ty, max(e.mag, 1) if ty != "u32" else 2.0**64, 1)
        if not is_float(of):
            e = self.small(e) if is_float(ty) else e
            return E(f"({e.text} as {ty})", e.axes, ty, e.mag if ty != "u32" else 2.0**64, 1)
        err = e.err + (e.mag * EPS[ty] if e.err else 0)
        return E(f"({e.text} as {ty})", e.axes, ty, e.mag, e.lsb, err, e.fin)

    def through(self, e, dtype):
        """Rounded to a storage type: an exact value stays a determined one."""
        if is_float(dtype):
            if e.err == 0:
                return E(e.text, e.axes, dtype, e.mag * 1.2, e.lsb, 0.0, e.fin)
            return E(e.text, e.axes, dtype, e.mag, e.lsb, e.err + e.mag * EPS[dtype] + 2.0**-10 * (dtype in ("e4m3", "e5m2")), e.fin)
        return E(e.text, e.axes, dtype, e.mag, 1)

    def binary(self, a, b, ty):
        r, axes, fin = self.r, a.axes | b.axes, a.fin and b.fin
        if not is_float(ty):
            op = r.choice(["+", "-", "*", "&", "|", "^", "max", "min", "/", "%", "<<", ">>"])
            if op in ("max", "min"):
                return E(f"{op}({a.text}, {b.text})", axes, ty, max(a.mag, b.mag), 1)
            if op in "/%":
                c = r.choice([2, 3, 7, 16])
                return E(f"({a.text} {op} {c})", a.axes, ty, a.mag, 1)
            if op in ("<<", ">>"):
                return E(f"({a.text} {op} {r.choice([0, 1, 3])})", a.axes, ty, 2.0**64 if op == "<<" else a.mag, 1)
            mag = {"+": a.mag + b.mag, "-": a.mag + b.mag, "*": a.mag * b.mag}.get(op, 2 * max(a.mag, b.mag))
            return E(f"({a.text} {op} {b.text})", axes, ty, 2.0**64 if mag >= 2.0**31 or ty == "u32" else mag, 1)
        op = r.choice(["+", "-", "*", "max", "min", "/", "fma"] if ty == "f32" else ["+", "-", "*", "max", "min"])
        if op in "+-":
            mag = a.mag + b.mag
            err = a.err + b.err
            return E(f"({a.text} {op} {b.text})", axes, ty, mag, min(a.lsb, b.lsb),
                     err + mag * EPS[ty] if err else 0.0, fin)
        if op in ("*", "fma"):
            mag, err = a.mag * b.mag, a.err * b.mag + b.err * a.mag + a.err * b.err
            if mag > 1e6:
                return a
            lsb, err = a.lsb * b.lsb, err + mag * EPS[ty] if err else 0.0
            if op == "fma":
                return E(f"fma({a.text}, {b.text}, 1.0)", axes, ty, mag + 1, min(lsb, 1), err and err + mag * EPS[ty], fin)
            return E(f"({a.text} * {b.text})", axes, ty, mag, lsb, err, fin)
        if op == "/":
            err = a.err + a.mag * b.err + a.mag * EPS[ty] * 4 + 1e-30
            return E(f"({a.text} / (1.0 + abs({b.text})))", axes, ty, a.mag, 0, err, fin)
        return E(f"{op}({a.text}, {b.text})", axes, ty, max(a.mag, b.mag), min(a.lsb, b.lsb), max(a.err, b.err), fin)

    def unary(self, a, ty):
        r = self.r
        if not is_float(ty):
            form = r.choice(["(~{})", "(-{})", "popcount({})"] if ty != "i64" else ["(~{})", "(-{})"])
            if form.startswith("pop"):
                return E(f"(popcount({a.text}) as {ty})", a.axes, ty, 64, 1)
            return E(form.format(a.text), a.axes, ty, 2.0**64 if ty == "u32" else a.mag + 1, 1)
        if ty == "f64" or r.random() < 0.4:
            form = r.choice(["abs({})", "(-{})"])
            if a.exact and r.random() < 0.5:
                return E(f"{r.choice(['floor', 'ceil', 'trunc', 'round'])}({a.text})", a.axes, ty, a.mag + 1,
                         max(a.lsb, 1.0), 0.0, a.fin) if ty == "f32" else a
            return E(form.format(a.text), a.axes, ty, a.mag, a.lsb, a.err, a.fin)
        form, mag, slope = r.choice([
            ("tanh({})", 1, 1), ("erf({})", 1, 1.2), ("exp(min({}, 1.0))", 2.8, 2.8),
            ("sqrt(abs({}) + 0.5)", math.sqrt(a.mag + 0.5), 0.8), ("sin({})", 1, 1), ("cos({})", 1, 1),
            ("log(abs({}) + 1.0)", math.log(a.mag + 1) + 1, 1), ("rsqrt(abs({}) + 0.5)", 1.5, 1.5),
            ("exp2(min({}, 1.0))", 2, 1.4), ("log2(abs({}) + 1.0)", math.log2(a.mag + 1) + 1, 1.5),
            ("rcp(abs({}) + 1.0)", 1, 1)])
        if "sin" in form or "cos" in form:
            if a.mag > 1000:
                return a
        return E(form.format(a.text), a.axes, ty, mag, 0, slope * (a.err + a.mag * EPS[ty]) + 16 * mag * EPS[ty], a.fin)

    def along(self, a, ty):
        """A reduction, scan or pick along some axis that is held whole."""
        r = self.r
        over = r.choice(sorted(a.axes & set(self.reducible)))
        n, kind = self.extent(over), r.random()
        both = [o for o in sorted(a.axes & set(self.reducible)) if o != over]
        if kind < 0.55:
            if both and r.random() < 0.3:
                n, over = n * self.extent(both[0]), f"{over}, {both[0]}"
            rest = a.axes - set(over.split(", "))
            return self.reduction(a, ty, over, n, rest)
        if kind < 0.75:
            if not is_float(ty):
                return E(f"cumsum[{over}]({a.text})", a.axes, ty, 2.0**64, 1) if ty != "u32" else a
            op = r.choice(["cumsum", "cummax", "scan"])
            if op == "cumsum":
                mag = max(a.mag * n, 1)
                return E(f"cumsum[{over}]({a.text})", a.axes, ty, mag, a.lsb,
                         a.err and n * a.err + mag * n * EPS[ty], a.fin)
            if op == "scan" and a.exact and a.fin:
                return E(f"scan[{over}]({a.text}, {r.choice(['fz_top', 'fz_right'])})", a.axes, ty, a.mag, a.lsb)
            return E(f"cummax[{over}]({a.text})", a.axes, ty, a.mag, a.lsb, a.err, a.fin)
        if self.whole or "[" in over:
            return a
        v = self.name("v")
        self.line(f"let {v} = {a.text};")
        if r.random() < 0.2:
            g = r.choice([g for g in self.axes if g != over] or [over])
            if g != over and ":" not in self.axes[g][1]:
                i = self.tensor(self.ins, "i", [g], "i32")
                return E(f"{v}[{over} = {i}[{g}]]", (a.axes - {over}) | {g}, ty, a.mag, a.lsb, a.err, a.fin)
        form = r.choice([f"{over} - 1", f"{over} + 1", "0", f"2*{over}", f"{over} ^ 1", "1"])
        fill = f" else 1{'.0' if is_float(ty) else ''}" if r.random() < 0.4 else ""
        axes = a.axes - {over} if form in ("0", "1") else a.axes
        return E(f"({v}[{over} = {form}]{fill})", axes, ty, max(a.mag, 1), min(a.lsb, 1) if a.lsb else 0, a.err, a.fin)

    def reduction(self, a, ty, over, n, rest):
        r = self.r
        if not is_float(ty):
            op = r.choice(["sum", "max", "min", "sum", "argmax", "prod", "reduce", "any"])
            if op == "argmax" and ", " not in over:
                return E(f"(argmax[{over}]({a.text}) as {ty})", rest, ty, 2.0**32 if ty == "u32" else n + 1, 1)
            if op == "any":
                return E(f"({r.choice(['any', 'all'])}[{over}]({a.text} > 1) as {ty})", rest, ty, 1, 1)
            if op == "reduce":
                return E(f"reduce[{over}]({a.text}, fz_add, 0)", rest, ty, 2.0**64, 1)
            op = "sum" if op == "argmax" else op
            return E(f"{op}[{over}]({a.text})", rest, ty, 2.0**64 if op != "sum" or a.mag * n > 2.0**30 else a.mag * n, 1)
        op = r.choice(["sum", "max", "min", "sum", "mean", "variance", "argmax", "prod", "reduce", "fold"])
        if op in ("argmax", "fold") and not (a.exact and a.fin):
            op = "sum"
        if op == "argmax" and ", " not in over:
            return E(f"({r.choice(['argmax', 'argmin'])}[{over}]({a.text}) as {ty})", rest, ty, n + 1, 1)
        if op == "fold":
            return E(f"reduce[{over}]({a.text}, fz_right, 0.0)", rest, ty, a.mag, a.lsb)
        if op == "prod" and ty == "f32" and a.exact:
            return E(f"prod[{over}](({a.text} > 1.0 ? -1.0 : 1.0))", rest, ty, 1, 1)
        if op in ("max", "min"):
            return E(f"{op}[{over}]({a.text})", rest, ty, a.mag, a.lsb, a.err, a.fin and n > 0)
        if op in ("mean", "variance") and ty == "f32":
            mag = a.mag if op == "mean" else a.mag * a.mag
            err = (a.err if op == "mean" else 4 * a.mag * a.err) + mag * EPS[ty] * (n + 8) + 1e-30
            return E(f"{op}[{over}]({a.text})", rest, ty, mag, 0, err, a.fin and n > 0)
        mag = max(a.mag * n, 1)
        text = f"reduce[{over}]({a.text}, fz_add, 0.0)" if op == "reduce" else f"sum[{over}]({a.text})"
        return E(text, rest, ty, mag, a.lsb, a.err and n * a.err + mag * n * EPS[ty], a.fin)

    # --- statements ---

    def cut(self, e, axes):
        """The value over these axes at most; what cannot be reduced away is replaced."""
        extra = sorted(e.axes - set(axes))
        if any(x not in self.reducible for x in extra):
            return self.load(e.ty, [a for a in axes])
        if not extra:
            return e
        n = math.prod(self.extent(a) for a in extra)
        mag = max(e.mag * n, 1) if is_float(e.ty) else 2.0**64
        return E(f"sum[{', '.join(extra)}]({e.text})", axes and e.axes & set(axes), e.ty, mag, e.lsb,
                 e.err and n * e.err + mag * n * EPS[e.ty], e.fin)

    def stored(self, e):
        """(text of the value as the storage type, the storage type, bound)"""
        r = self.r
        if not is_float(e.ty):
            dtype = r.choice(INTS + [e.ty, e.ty])
        elif e.exact and r.random() < 0.25:
            dtype = r.choice(INTS)
        else:
            dtype = r.choice(["f32", "f32", "f16", "bf16", "e4m3", "e5m2", "f64"])
            if e.mag > 3e4 and dtype in ("f16", "e4m3", "e5m2"):
                dtype = "f32"
        s = self.through(e, dtype)
        return f"{e.text} as {dtype}", dtype, s

    def store(self, e, axes, ty=None):
        text, dtype, s = self.stored(self.cut(e, axes))
        name = self.tensor(self.outs, "y", axes, dtype)
        at = self.indexed(name, axes)
        const = [a for a in axes if isinstance(self.axes[a][0], int)]
        plain = [a for a in axes if isinstance(self.axes[a][0], str) and ":" not in self.axes[a][1]]
        r, kind = self.r, self.r.random()
        if not self.whole and kind < 0.1 and plain:  # at some places only
            a = r.choice(plain)
            at = f"{name}[{', '.join(f'{a} % 3 == 1 ? -1 : {a}' if b == a else self.axes[b][1] for b in axes)}]"
        elif not self.whole and kind < 0.3 and const and plain:  # two axes are one dim
            a, b, q = r.choice(plain), const[0], self.name("Q")
            dim, n = self.axes[a][0], self.axes[b][0]
            self.sizes[q] = self.sizes[dim] * n
            self.where.append(f"{q} == {dim} * {n}")
            axes = [c for c in axes if c != b]
            self.outs[name] = (dtype, [q if c == a else str(self.axes[c][0]) for c in axes])
            at = f"{name}[{', '.join(f'{a}*{n} + {b}' if c == a else self.axes[c][1] for c in axes)}]"
            self.line(f"{at} = {text};")
            self.bounds[name] = s.err
            return
        self.line(f"{at} = {text};")
        self.bounds[name] = s.err
        self.written.append((name, [self.axes[a][0] for a in axes], dtype, s))

    def reread(self, name, dims, dtype, s):
        """What has been stored, as a value of a computation over whole axes."""
        ty = dtype if dtype in ("f64", "i64", "u32") else "f32" if is_float(dtype) else "i32"
        mag = s.mag if is_float(dtype) or ty == "i64" else 2.0**64
        self.values.append(E(f"({name} as {ty})", dims, ty, mag, s.lsb, s.err, s.fin))

    def let(self, depth):
        e = self.value(depth, self.r.choice(["f32", "f32", "f32", "i32", "i64", "u32", "f64"]))
        v = self.name("v")
        self.line(f"let {v} = {e.text};")
        self.values.append(E(v, e.axes, e.ty, e.mag, e.lsb, e.err, e.fin))

    def any(self, depth):
        return self.value(depth, self.r.choice(["f32", "f32", "f32", "i32", "i64", "u32", "f64"]))


# --- kinds of units ---


def whole(u):
    """Statements on whole tensors: lets, temps that are read later, conditions and loops between."""
    r, u.whole = u.r, True
    for letter in r.sample("MNKB", r.choice([1, 2, 2, 3])):
        d = u.dim(letter)
        u.axes[d] = (d, ":")
    if len(u.axes) == 3:
        for d in u.sizes:
            u.sizes[d] = min(u.sizes[d], 17)
    elif r.random() < 0.15:
        u.sizes[d] = r.choice([257, 1000, 1025, 4100])
    u.reducible = list(u.axes)
    for _ in range(r.choice([1, 2, 3, 4])):
        k = r.random()
        if k < 0.4:
            u.let(r.choice([1, 2, 3]))
        elif k < 0.6:
            axes = u.pick_axes()
            e = u.cut(u.any(2), axes)
            text, dtype, s = u.stored(e)
            name = u.name("t")
            u.line(f"temp {name}: {dtype}[{', '.join(axes)}];")
            u.line(f"{name} = {text};")
            u.reread(name, axes, dtype, s)
        elif k < 0.75:
            axes = u.pick_axes()
            name = u.tensor(u.inouts, "x", axes, "f32")
            n = u.name("n")
            u.scalars[n] = r.choice([0, 1, 2])
            u.open(f"if {n} > 0" if r.random() < 0.5 else f"for r{n} in 0..{n}")
            e = u.cut(u.sharp(u.value(1, "f32")), axes)
            u.line(f"{name} {r.choice(['=', '+='])} {e.text};")
            u.close()
            u.bounds[name] = (e.err or (0 if e.exact and e.mag / (e.lsb or 1) < 2.0**20 else e.mag * 2.0**-16)) * 4
        else:
            u.store(u.any(r.choice([1, 2, 3])), u.pick_axes())
    u.store(u.any(3), u.pick_axes())


def tiles_nest(u):
    """A grid of tiles with local axes, loops that carry sums, conditions and loops on scalars."""
    r = u.r
    binders, u.scalar_binders = [], set()
    for letter in r.sample("mnb", r.choice([1, 2, 2, 3])):
        d = u.dim(letter.upper())
        if r.random() < 0.3:
            u.scalar_binders.add(letter)
            u.sizes[d] = min(u.sizes[d], 17)
            binders.append(f"{letter} in 0..{d}")
        else:
            size = r.choice(["", "", ", 16", ", 5", ", 64"])
            binders.append(f"{letter} in tiles({d}{size})")
            if not size and r.random() < 0.3:
                u.schedule[letter] = r.choice([1, 2, 8, 16, 32, 64])
        u.axes[letter] = (d, letter)
    grid = list(u.axes)
    u.open(f"parallel {', '.join(binders)}")
    for letter in r.sample("de", r.choice([0, 1, 1, 2])):
        if r.random() < 0.5:
            n = r.choice([1, 2, 4, 7, 16, 33])
            u.line(f"axis {letter} in {n};")
            u.axes[letter] = (n, letter)
        else:
            d = u.dim(letter.upper())
            u.sizes[d] = r.choice([300, 1030]) if r.random() < 0.1 else min(u.sizes[d], 65)
            u.line(f"axis {letter} in {d};")
            u.axes[letter] = (d, letter)
        u.reducible.append(letter)
    while math.prod(max(u.extent(a), 1) for a in u.axes) > 60000:
        d = max(u.sizes, key=u.sizes.get)
        u.sizes[d] //= 3
    # A scalar binder is no axis of a value; it may index.
    for _ in range(r.choice([0, 1, 2])):
        k = r.random()
        if k < 0.4:
            u.let(r.choice([1, 2]))
        elif k < 0.5:
            stored_loop(u, grid)
        elif k < 0.62:
            carried(u, grid)
        elif k < 0.8:
            loop_sum(u, grid)
        else:
            scalar_control(u, grid)
    for _ in range(r.choice([1, 1, 2])):
        local = r.sample(u.reducible, r.randint(0, len(u.reducible)))
        axes = grid + local
        r.shuffle(axes)
        u.store(u.any(r.choice([1, 2, 3])), axes)
    u.close()
    if r.random() < 0.5:
        after(u)


def after(u):
    """A statement on whole tensors that reads what a nest has stored."""
    r = u.r
    u.whole, u.values, u.scalar_binders = True, [], set()
    for name, dims, dtype, s in u.written:
        if all(isinstance(d, str) for d in dims):
            u.reread(name, dims, dtype, s)
    if u.values:
        v = r.choice(u.values)
        u.axes = {d: (d, ":") for d in sorted(v.axes)}
        u.reducible = list(u.axes)
        e = u.binary(v, u.value(2, v.ty), v.ty)
        u.store(e, u.pick_axes())


def loop_sum(u, grid):
    """var acc; for k in tiles(K): acc += ...; an exact sum."""
    r = u.r
    d = u.dim(f"K{u.n}_")
    u.sizes[d] = min(u.sizes[d], 65)
    k = u.name("k")
    axes = [a for a in grid if u.is_tile(a)]
    v = u.name("a")
    op = r.choice(["sum", "max", "dot"]) if len(axes) == 2 else r.choice(["sum", "max"])
    u.line(f"var {v}: f32[{', '.join(axes)}] = 0;" if axes else f"var {v}: f32 = 0;")
    u.open(f"for {k} in tiles({d}{r.choice(['', '', ', 16', ', 4'])})")
    u.axes[k] = (d, k)
    n = u.sizes[d]
    if op == "dot":
        t = r.choice(["f16", "bf16", "f32", "e4m3", "e5m2"])
        x = u.tensor(u.ins, "x", [axes[0], k], t)
        w = u.tensor(u.ins, "x", [k, axes[1]], t)
        u.line(f"{v} += dot[{k}]({x}[{axes[0]}, {k}], {w}[{k}, {axes[1]}]);")
        mag, lsb = max(4 * n, 1), 1 / 16
    else:
        e = u.load("f32", axes + [k])
        mag, lsb = max(e.mag * (n if op == "sum" else 1), 1), min(e.lsb, 1)
        u.line(f"{v} += sum[{k}]({e.text});" if op == "sum" else f"{v} = max({v}, max[{k}]({e.text}));")
    del u.axes[k]
    u.close()
    u.values.append(E(v, axes, "f32", mag, lsb))


def stored_loop(u, grid):
    """A loop over tiles that stores each."""
    d, k = u.dim(f"L{u.n}_"), u.name("k")
    u.sizes[d] = min(u.sizes[d], 65)
    u.open(f"for {k} in tiles({d}{u.r.choice(['', '', ', 16', ', 5'])})")
    u.axes[k] = (d, k)
    u.store(u.any(2), grid + [k])
    del u.axes[k]
    u.close()


def carried(u, grid):
    """A value along axes that a program holds, through some steps."""
    r = u.r
    local = [a for a in u.reducible][:1]
    if not local:
        return
    axes, v, s = [a for a in grid if u.is_tile(a)][:2] + local, u.name("a"), u.name("q")
    first, e = u.load("f32", axes), u.load("f32", axes)
    u.line(f"var {v}: f32[{', '.join(axes)}] = {first.text};")
    u.open(f"for r{s} in 0..3")
    u.line(f"{v} = " + r.choice([
        f"{e.text} - max({v}, 0.0) + (r{s} as f32);", f"{v} + (sum[{local[0]}]({v}) > 0.0 ? {e.text} : -1.0);",
        f"{e.text} - max[{local[0]}](max({v}, -8.0));"]))
    u.close()
    u.values.append(E(v, axes, "f32", 40 + first.mag, 0.25, 0.0, u.extent(local[0]) > 0))


def scalar_control(u, grid):
    """An `if`, `while` or `for` on scalars with a carried value."""
    r = u.r
    v, s = u.name("a"), u.name("q")
    axes = [a for a in grid if u.is_tile(a)][:2]
    at = sorted(u.scalar_binders)
    i = u.tensor(u.ins, "x", at, "i32") + (f"[{', '.join(at)}]" if at else "") if at else "3"
    u.line(f"var {v}: f32[{', '.join(axes)}] = 1;" if axes else f"var {v}: f32 = 1;")
    body = u.load("f32", axes)
    kind = r.choice(["if", "while", "for"])
    if kind == "while":
        u.line(f"var {s} = 0;")
        u.open(f"while {s} < 5 && {s} < {i}")
        u.line(f"{v} = {v} + {body.text};")
        u.line(f"{s} += 1;")
    elif kind == "for":
        u.open(f"for r{s} in 0..4")
        if r.random() < 0.5:
            u.line(f"if r{s} == {i} {{ {r.choice(['break', 'continue'])}; }}")
        u.line(f"{v} = {v} - {body.text};")
    else:
        u.open(f"if {i} > 1")
        u.line(f"{v} = {body.text};")
        if r.random() < 0.5:
            u.indent = u.indent[4:]
            u.line("} else {")
            u.indent += "    "
            u.line(f"{v} += {body.text};")
    u.close()
    u.values.append(E(v, axes, "f32", 6 * body.mag + 1, body.lsb))


def ragged(u):
    """Segments of offsets: sums of each, and stores along them."""
    r = u.r
    e, d = u.dim("E", r.choice([1, 2, 5, 9])), u.dim("D", r.choice([1, 3, 8, 33, 65]))
    t, g = u.dim("T", r.choice([0, 1, 20, 45])), f"G{u.at}"
    u.sizes[g] = u.sizes[e] + 1
    s, x, y = u.name("s"), u.name("x"), u.name("y")
    ty = r.choice(["f32", "f16", "i32", "bf16"])
    u.ins[s], u.ins[x] = ("i32", [g]), (ty, [t, d])
    acc = "i32" if ty == "i32" else "f32"
    u.where.append(f"{g} == {e} + 1")
    u.outs[y] = (acc, [e, d])
    if r.random() < 0.5:
        u.open(f"parallel e in 0..{e}, d in tiles({d})")
        u.line(f"var a: {acc}[d] = 0;")
        u.open(f"for n in tiles({s}[e] .. {s}[e + 1])")
        u.line(r.choice([f"a += sum[n]({x}[n, d]);", f"a = max(a, max[n]({x}[n, d]));"] if acc == "i32" else [f"a += sum[n]({x}[n, d]);"]))
        u.close()
        u.line(f"{y}[e, d] = a;")
        u.close()
    else:
        z = u.name("y")
        u.outs[z] = (ty, [t, d])
        u.bounds[z] = 0.0
        u.open(f"parallel e in 0..{e}, n in tiles({s}[e] .. {s}[e + 1]{r.choice(['', ', 16'])})")
        u.line(f"{z}[n, :] = ({x}[n, :] + e as {acc}) as {ty};")
        u.close()
        u.line(f"{y} = 1;")
    u.bounds[y] = 0.0


def moved(u):
    """Gathers, scatters with unique indices, atomics of integers and of exact sums."""
    r = u.r
    n, d, m = u.dim("N"), u.dim("D", r.choice([1, 3, 16, 33, 64])), u.dim("M", r.choice([1, 5, 20, 40]))
    ty = r.choice(["f32", "f16", "bf16", "i32", "u8", "i64", "e4m3", "f64"])
    y = u.name("y")
    kind = r.choice(["gather", "whole", "scatter", "permute", "atomic", "atomic", "count"])
    x = u.name("x")
    if kind in ("gather", "whole"):
        i = u.name("i")
        u.ins[x], u.ins[i], u.outs[y] = (ty, [m, d]), (r.choice(["i32", "i64", "i16"]), [n]), (ty, [n, d])
        u.open(f"parallel n in tiles({n})" + (f", d in tiles({d})" if kind == "whole" else ""))
        at = ":" if kind == "gather" else "d"
        fill = " else 1" if r.random() < 0.3 else ""
        fill += ".0" if fill and is_float(ty) else ""
        u.line(f"{y}[n, {at}] = {x}[{i}[n], {at}]{fill};")
    elif kind in ("scatter", "permute"):
        p = u.name("p")
        u.ins[x], u.ins[p] = (ty, [n, d]), ("i32", [n])
        u.inouts[f"x{u.at}_9"] = (ty, [n, d])
        y = f"x{u.at}_9"
        u.open(f"parallel n in tiles({n}), d in tiles({d})")
        u.line(f"scatter {y}[{p}[n]{' + 1' if kind == 'permute' else ''}, d] = {x}[n, d];")
    else:
        ty = r.choice(["i32", "u32", "i64", "f32", "u64"])
        i = u.name("i")
        y = f"x{u.at}_9"
        u.ins[x], u.ins[i], u.inouts[y] = (ty, [n, d]), ("i32", [n]), (ty, [m, d] if kind == "atomic" else [m])
        op = r.choice(["+=", "max=", "min="] if ty != "f32" else ["+="])
        u.open(f"parallel n in tiles({n}), d in tiles({d})")
        u.line(f"atomic {y}[{i}[n]{', d' if kind == 'atomic' else ''}] {op if kind == 'atomic' else '+='} {x}[n, d];")
    u.close()
    u.bounds[y] = 0.0


def products(u):
    """dot of every dtype, whole or tiled, batched, with an epilogue; windows."""
    r = u.r
    ty = r.choice(["f16", "bf16", "f32", "i8", "u8", "e4m3", "e5m2", "f64"])
    acc = "u32" if ty == "u8" else "i32" if ty == "i8" else "f64" if ty == "f64" else "f32"
    m, n, k = u.dim("M"), u.dim("N"), u.dim("K", r.choice([0, 1, 3, 8, 16, 17, 32, 64, 65, 128, 130]))
    x, w, y = u.name("x"), u.name("x"), u.name("y")
    mag, lsb = (64, 1) if acc == "i32" else (4, 1 / 16)
    prec = r.choice(["", "", ", precision = tf32", ", precision = tf32x3", ", precision = ieee"]) if ty == "f32" else \
        r.choice(["", ", precision = fast"]) if ty in ("e4m3", "e5m2") else ""
    kind = r.choice(["whole", "batch", "tiled", "window", "epilogue"])
    if kind == "window":
        c, f, o = r.choice([1, 2]), r.choice([1, 3, 4]), u.dim("P")
        u.axes = {"q": (o, "q")}
        h = u.dim("H")
        pad, st = r.choice([0, 1]), r.choice([1, 2, 3])
        u.ins[x], u.ins[w] = (ty, [h, k]), (ty, [str(f), k, n])
        u.sizes[k] = min(u.sizes[k], 33)
        u.outs[y] = (acc, [o, n])
        del u.sizes[m]
        if r.random() < 0.5:
            u.open(f"parallel q in tiles({o}), n in tiles({n})")
            u.line(f"axis u in {f};")
            u.line(f"var a: {acc}[q, n] = 0;")
            u.open(f"for k in tiles({k})")
            u.line(f"a += dot[u, k]({x}[{st}*q + u - {pad}, k], {w}[u, k, n]{prec});")
            u.close()
            u.line(f"{y}[q, n] = a;")
            u.close()
        else:
            u.line(f"axis q{u.at} in {o}, u{u.at} in {f};")
            u.line(f"{y}[q{u.at}, :] = dot[u{u.at}, {k}]({x}[{st}*q{u.at} + u{u.at} - {pad}, :], {w}[u{u.at}, :, :]{prec});")
        u.bounds[y] = 0.0
        return
    b = [u.dim("B", r.choice([1, 2, 5]))] if kind == "batch" or r.random() < 0.2 else []
    xd, wd, yd = b + [m, k], (b if kind == "batch" else []) + [k, n], b + [m, n]
    if kind != "tiled":
        for t in (xd, wd, yd):
            r.shuffle(t)
    u.ins[x], u.ins[w] = (ty, xd), (ty, wd)
    if kind == "tiled":
        for name in r.sample("mnk", r.choice([0, 1, 2])):
            u.schedule[name] = r.choice([16, 32, 64, 128])
        bb = "b, " if b else ""
        u.open(f"parallel {'b in 0..' + b[0] + ', ' if b else ''}m in tiles({m}), n in tiles({n})")
        u.line(f"var a: {acc}[m, n] = 0;")
        u.open(f"for k in tiles({k}{r.choice(['', '', ', 32', ', 16'])})")
        u.line(f"a += dot[k]({x}[{bb}m, k], {w}[k, n]{prec});")
        u.close()
        u.line(f"{y}[{bb}m, n] = a;")
        u.outs[y] = (acc, yd)
        u.bounds[y] = 0.0
        u.close()
        return
    u.whole = True
    u.axes = {a: (a, ":") for a in b + [m, n]}
    u.reducible = [m, n]
    v = u.name("v")
    u.line(f"let {v} = dot[{k}]({x}, {w}{prec});")
    e = E(v, b + [m, n], acc, max(mag * u.sizes[k], 1), lsb)
    u.values.append(e)
    if kind == "epilogue":
        e = u.value(2, acc) if r.random() < 0.5 else u.binary(e, u.value(1, acc), acc)
    text, dtype, s = u.stored(e)
    u.outs[y] = (dtype, yd)
    u.bounds[y] = s.err
    if set(yd) >= s.axes:
        u.line(f"{y} = {text};")


def ordered(u):
    """sort, topk, histogram, folds of pairs."""
    r = u.r
    m, n = u.dim("M", r.choice([1, 3, 9, 17])), u.dim("N")
    ty = r.choice(["f32", "f16", "bf16", "i32", "u8", "i8", "i64", "u32", "f64"])
    x, y, z = u.name("x"), u.name("y"), u.name("y")
    u.ins[x] = (ty, [m, n])
    kind = r.choice(["sort", "topk", "histogram", "pairs", "pairs", "nest"])
    u.bounds[y] = u.bounds[z] = 0.0
    if kind == "sort":
        u.line(f"let (v{u.at}, j{u.at}) = sort[{n}]({x});")
        u.line(f"{y} = v{u.at};")
        u.line(f"{z} = j{u.at} as i32;")
        u.outs[y], u.outs[z] = (ty, [m, n]), ("i32", [n, m])
    elif kind == "topk":
        k = r.choice([1, 3, 8])
        u.line(f"axis k{u.at} in {k};")
        u.line(f"let (v{u.at}, j{u.at}) = topk[{n}, k{u.at}]({x});")
        u.line(f"{y}[:, k{u.at}] = v{u.at};")
        u.line(f"{z}[:, k{u.at}] = j{u.at} as i64;")
        u.outs[y], u.outs[z] = (ty, [m, str(k)]), ("i64", [m, str(k)])
    elif kind == "histogram":
        u.ins[x] = (r.choice(["i32", "u8", "i64", "i8"]), [m, n])
        u.line(f"axis k{u.at} in 11;")
        u.line(f"{y}[:, k{u.at}] = histogram[{n}, k{u.at}]({x}) as i32;")
        u.outs[y] = ("i32", [m, "11"])
        del u.bounds[z]
    elif kind == "nest":
        u.open(f"parallel m in tiles({m})")
        u.line(f"axis n in {r.choice([n, '16', '33'])};")
        u.line(f"let (v, j) = sort[n]({x}[m, n]);")
        u.line(f"{y}[m, n] = v;")
        u.line(f"{z}[m, n] = j as i32;")
        u.close()
        u.outs[y], u.outs[z] = (ty, [m, n]), ("i32", [m, n])
    else:
        w = u.name("x")
        u.ins[x], u.ins[w] = (r.choice(["f32", "f16", "i8"]), [m, n]), ("f32", [n])
        op = r.choice(["scan[{}](({} > 1 ? -1.0 : 1.0, {}), fz_after)", "reduce[{}](({} > 1 ? -1.0 : 1.0, {}), fz_after, (1.0, 0.0))"])
        if r.random() < 0.5:
            u.line(f"let (v{u.at}, j{u.at}) = {op.format(n, x, w)};")
            names = f"v{u.at}", f"j{u.at}"
            at = ""
        else:
            u.open(f"parallel m in tiles({m})")
            u.line(f"let (v, j) = {op.format(n, x + '[m, :]', w + '[:]')};")
            names, at = ("v", "j"), "[m, :]" if op.startswith("scan") else "[m]"
        u.line(f"{y}{at} = {names[0]};")
        u.line(f"{z}{at} = {names[1]};")
        if at:
            u.close()
        u.outs[y] = u.outs[z] = ("f32", [m, n] if op.startswith("scan") else [m])


def in_place(u):
    """Statements on whole tensors that read and write the same few: each sees what the ones before have left.
    Integers only, so that every order of sums is right and any other order of statements is not."""
    r = u.r
    for letter in r.sample("mn", r.choice([1, 1, 2])):
        d = u.dim(letter.upper())
        a = f"{letter}{u.at}"  # the kernel's other units have axes too
        u.axes[a] = (d, a)
    if r.random() < 0.1:
        u.sizes[d] = r.choice([300, 1030, 4100])
    u.line("axis " + ", ".join(f"{a} in {d}" for a, (d, _) in u.axes.items()) + ";")
    u.reducible = list(u.axes)
    state = []
    for _ in range(r.choice([1, 2, 2, 3])):
        axes = list(u.axes) if r.random() < 0.7 else u.pick_axes()
        state.append((u.tensor(u.inouts, "x", axes, r.choice(["i32", "i32", "i32", "i64", "i16", "u8"])), axes))
    for _ in range(r.choice([2, 3, 4, 5, 7])):
        k = r.random()
        if k < 0.12:
            n = u.name("n")
            u.scalars[n] = r.choice([0, 1, 2])
            u.open(f"if {n} > 0" if r.random() < 0.5 else f"for r{n} in 0..{n}")
            kept = list(u.values)
            for _ in range(r.choice([1, 2, 3])):
                in_place_statement(u, state)
            u.values = kept
            u.close()
        elif k < 0.18:
            name, axes = r.choice(state)
            a, b = u.name("a"), r.choice(axes)
            at = f"{name}[{', '.join(a if c == b else ':' for c in axes)}]"
            u.open(f"parallel {a} in tiles({u.axes[b][0]})")
            u.line(f"{at} = (({at} as i32) * 3 + 1) as {u.inouts[name][0]};")
            u.close()
        else:
            in_place_statement(u, state)
    u.store(in_place_value(u, state), list(u.axes))


def in_place_value(u, state, depth=3):
    """An i32 of what the tensors hold now, or held where a `let` took it."""
    r, k = u.r, u.r.random()
    if u.values and k < 0.3:
        return r.choice(u.values)
    if k < 0.6 and depth > 0:
        a, b = in_place_value(u, state, depth - 1), in_place_value(u, state, depth - 1)
        return E(f"({a.text} {r.choice(['+', '-', '*', '^'])} {b.text})", a.axes | b.axes, "i32", 2.0**64, 1)
    name, axes = r.choice(state)
    at = {a: a for a in axes}
    a = r.choice(axes)
    kind = r.random()
    if kind < 0.3:
        form = r.choice(["{0} + 1", "{0} - 1", "{1} - 1 - {0}", "{0} % 3 == 1 ? -1 : {0}", "{0} / 2", "i"])
        if form == "i":
            form = f"{u.tensor(u.ins, 'i', [a], 'i32')}[{{0}}]"
        at[a] = form.format(a, u.axes[a][0])
    e = E(f"({name}[{', '.join(at.values())}] as i32)", axes, "i32", 2.0**64, 1)
    if kind > 0.85:
        op = r.choice(["sum", "sum", "max", "min", "cumsum"])
        return E(f"{op}[{a}]({e.text})", e.axes if op == "cumsum" else e.axes - {a}, "i32", 2.0**64, 1)
    return e


def in_place_statement(u, state):
    r, k = u.r, u.r.random()
    e = in_place_value(u, state)
    if k < 0.25:
        v = u.name("v")
        u.line(f"let {v} = {e.text};")
        u.values.append(E(v, e.axes, "i32", 2.0**64, 1))
        return
    name, axes = r.choice(state)
    at = {a: a for a in axes}
    a = r.choice(axes)
    kind = r.random()
    if kind < 0.15:
        at[a] = r.choice(["{0} + 1", "{1} - 1 - {0}", "{0} % 3 == 1 ? -1 : {0}"]).format(a, u.axes[a][0])
    e, dtype = u.cut(e, axes), u.inouts[name][0]
    place = f"{name}[{', '.join(at.values())}]"
    if kind > 0.95:
        at[a] = f"{u.tensor(u.ins, 'i', [a], 'i32')}[{a}]"
        place = f"{name}[{', '.join(at.values())}]"
        if r.random() < 0.5 or dtype not in ("i32", "i64"):
            u.line(f"scatter {place} = 5;")
        else:
            e = e if set(axes) <= e.axes else E(f"({e.text} + {name}[{', '.join(axes)}] as i32)", axes, "i32", 2.0**64, 1)
            u.line(f"atomic {place} += {e.text} as {dtype};")
        return
    if r.random() < 0.4:
        e = E(f"(({place} as i32) * 3 + {e.text})", axes, "i32", 2.0**64, 1)
    u.line(f"{place} = {e.text} as {dtype};")


def casts(u):
    """Any type to any type through another, of any values."""
    r = u.r
    n = u.dim("N")
    for _ in range(3):
        kinds = FLOATS + INTS + ["bool"]
        a, b, c = (r.choice(kinds) for _ in range(3))
        x, y = u.name("w"), u.name("y")
        u.ins[x], u.outs[y] = (a, [n]), (c, [n])
        u.bounds[y] = 0.0
        if r.random() < 0.5:
            u.line(f"{y} = ({x} as {b}) as {c};")
        else:
            t = u.name("t")
            u.line(f"temp {t}: {b}[{n}];")
            u.line(f"{t} = {x} as {b};")
            u.line(f"{y} = {t} as {c};")


KINDS = [whole, whole, whole, whole, whole, tiles_nest, tiles_nest, tiles_nest, tiles_nest, tiles_nest, tiles_nest, ragged, moved, moved, products, products, ordered, casts, in_place, in_place]


def unit(seed, at):
    rng = random.Random(seed)
    u = Unit(rng, at)
    kind = rng.choice(KINDS)
    kind(u)
    carried = {d for table in (u.ins, u.inouts, u.outs) for n, (_, dims) in table.items() if n not in u.absent for d in dims}
    for d in sorted(set(u.sizes) - carried):  # somebody has to say how long it is
        u.ins[u.name("x")] = ("f32", [d])
    u.kind = kind.__name__
    return u

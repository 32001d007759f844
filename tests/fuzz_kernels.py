#!/usr/bin/env python3
"""Random kernels on the devices of this machine against the evaluator.

    fuzz_kernels.py FUSEC [--seed=N] [--count=N] [--devices=eval,cpu,sim] [--jobs=N] [--seconds=N]
                    [--batch=N] [--keep=DIR] [--json=FILE] [--kind=NAME] [--reduce-seconds=N]
    fuzz_kernels.py FUSEC --repeat=FILE.fk [--devices=...]

Needs python3, numpy and a fusec; a device is eval, cpu, sim, cuda, a target such as sim-sm_90a, or check
or tiles: the evaluator with --check or --check=tiles.
Seed by seed a unit is made (fuzz_units.py): statements on whole tensors, a nest, products, scatters,
casts, ... Several of them are the body of one kernel, so that a device is started once for a batch; a
batch that is refused or fails is halved until one unit is left.

Outputs agree bit by bit where the values are exact in any order, else within the unit's bound. A
unit that is refused as unsupported is counted, by reason; any other refusal, a crash, a hang, an
internal error or a difference is a failure: it is reduced, printed, and written to --keep as a file
that --repeat runs again. No unit is started after --seconds, and no batch is halved.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import re
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

import fuzz_data
import fuzz_units


# What a target may refuse (lang/SPEC.md, section 18); other words of a refusal are a failure.
DOCUMENTED = re.compile(r"not supported yet|bytes of shared memory|choose smaller tiles or more warps|not known to fit|on the CPU|on a GPU|needs a compile-time")


class Program:
    """A kernel with what it runs on. `text` says all of it, `parsed` reads it back."""

    TABLES = ("sizes", "scalars", "schedule", "bounds")

    def __init__(self, seed=1, flags=()):
        self.seed, self.flags = seed, list(flags)
        self.ins, self.inouts, self.outs = {}, {}, {}
        self.sizes, self.scalars, self.schedule, self.bounds = {}, {}, {}, {}
        self.absent, self.lines, self.where = set(), [], []

    @staticmethod
    def of(units, seed, flags):
        p = Program(seed, flags)
        for u in units:
            for table in ("ins", "inouts", "outs", "sizes", "scalars", "schedule", "bounds"):
                getattr(p, table).update(getattr(u, table))
            p.absent |= u.absent
            p.lines += u.lines
            p.where += u.where
        return p

    def copy(self):
        p = Program(self.seed, self.flags)
        for table in ("ins", "inouts", "outs", "sizes", "scalars", "schedule", "bounds"):
            getattr(p, table).update(getattr(self, table))
        p.absent, p.lines, p.where = set(self.absent), list(self.lines), list(self.where)
        return p

    def text(self):
        def param(name, of, prefix=""):
            dtype, dims = of
            return f"{prefix}{name}: {dtype}" + (f"[{', '.join(dims)}]" if dims else "") + ("?" if name[0] == "b" else "")
        head = [f"// seed={self.seed} flags={','.join(self.flags)} absent={','.join(sorted(self.absent))}"]
        for table in self.TABLES:
            head.append(f"// {table}: " + " ".join(f"{k}={v!r}" for k, v in getattr(self, table).items()))
        ins = [param(n, o) for n, o in self.ins.items()] + [f"{n}: i32" for n in self.scalars]
        ins += [param(n, o, "inout ") for n, o in self.inouts.items()]
        outs = [param(n, o) for n, o in self.outs.items()]
        clauses = f" where {', '.join(self.where)}" if self.where else ""
        if self.schedule:
            clauses += " schedule { " + " ".join(f"{k} = {v};" for k, v in self.schedule.items()) + " }"
        body = "\n".join(self.lines)
        used = "".join(f + "\n" for f in fuzz_units.FUNCTIONS.splitlines() if f.split("(")[0][3:] in body)
        results = ") -> (\n    " + ",\n    ".join(outs) + "\n)" if outs else ")"
        return ("\n".join(head) + "\n" + used + "kernel k(\n    " + ",\n    ".join(ins) + "\n" + results +
                f"{clauses}\n{{\n" + body + "\n}\n")

    @staticmethod
    def parsed(text):
        first = re.search(r"^// seed=(\d+) flags=(\S*) absent=(\S*)$", text, re.M)
        p = Program(int(first[1]), [f for f in first[2].split(",") if f])
        p.absent = {n for n in first[3].split(",") if n}
        for table in Program.TABLES:
            for k, v in re.findall(r"(\w+)=(\S+)", re.search(rf"^// {table}:(.*)$", text, re.M)[1]):
                getattr(p, table)[k] = float(v) if table == "bounds" else int(v)
        ins, outs, clauses, body = re.search(
            r"^kernel k\(\n(.*?)\n\)(?: -> \(\n(.*?)\n\))?(.*?)\n\{\n(.*)\n\}\n", text, re.S | re.M).groups()
        for table, part in ((p.ins, ins), (p.outs, outs or "")):
            for inout, name, dtype, dims in re.findall(r"(inout )?(\w+): (\w+)(?:\[(.*?)\])?", part):
                if name not in p.scalars:
                    (p.inouts if inout else table)[name] = (dtype, [d for d in dims.split(", ") if d])
        where = re.search(r"where (.*?)(?: schedule|$)", clauses)
        p.where = where[1].split(", ") if where else []
        p.lines = body.split("\n")
        return p

    def shape(self, dims):
        return tuple(self.sizes[d] if d in self.sizes else int(d) for d in dims)


class Failure(Exception):
    """kind: what has to stay the same while the program is reduced."""

    def __init__(self, device, kind, text):
        super().__init__(f"{device}: {text}")
        self.device, self.kind = device, kind


class Refused(Exception):
    def __init__(self, device, text):
        super().__init__(text)
        self.device = device
        self.reason = re.sub(r"\d+", "N", re.sub(r"`[^`]*`|'[^']*'", "_", text))


class Runner:
    def __init__(self, fusec, timeout):
        self.fusec, self.timeout, self.processes = fusec, timeout, 0

    def command(self, p, folder, device):
        values = [f"{n}={os.path.join(folder, 'in.safetensors')}:{n}" for n in p.ins if n not in p.absent]
        values += [f"{n}={os.path.join(folder, device + '.safetensors')}:{n}" for n in [*p.inouts, *p.outs]]
        values += [f"{n}={v}" for n, v in p.scalars.items()]
        shapes = [f"--shape={n}={','.join(map(str, p.shape(d)))}" for n, (_, d) in p.outs.items() if d]
        where = ["--device=eval", "--check" + "=tiles" * (device == "tiles")] if device in ("check", "tiles") else \
            [f"--device={device}"] if device in ("eval", "cpu", "sim", "cuda") else \
            ["--device=" + ("sim" if device.startswith("sim") else "cuda"), f"--target={device}"]
        return [self.fusec, "run", os.path.join(folder, "k.fk"), *where, "-Wno-perf", "-O1", *p.flags, *shapes, *values]

    def run(self, p, folder, device):
        """The outputs' bits; raises Refused or Failure."""
        out = os.path.join(folder, device + ".safetensors")
        fuzz_data.write(out, {n: (t, fuzz_data.made(n, t, p.shape(d), p.seed)) for n, (t, d) in p.inouts.items()})
        self.processes += 1
        try:
            done = subprocess.run(self.command(p, folder, device), capture_output=True, text=True,
                                  errors="replace", timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Failure(device, "hang", f"does not end in {self.timeout} seconds") from None
        if done.returncode != 0:
            errors = [s for s in done.stderr.splitlines() if "error" in s or "ERROR" in s or "runtime error" in s]
            first = errors[0] if errors else done.stderr.strip()[:300]
            ids = set(re.findall(r"error\[([\w-]+)\]", done.stderr))
            if ids and ids <= {"unsupported", "too-large"} and done.returncode in (1, 5):
                refused = Refused(device, re.sub(r"^.*error\[[a-z-]+\]: ", "", first))
                if DOCUMENTED.search(str(refused)):
                    raise refused
                raise Failure(device, "refused: " + refused.reason, f"refused: {refused}")
            kind = f"{done.returncode} {' '.join(sorted(ids))} " + ("" if ids else re.sub(r"==\d+==|\d+|0x\w+", "", first)[:60])
            raise Failure(device, kind, f"exit status {done.returncode}\n{done.stderr.strip()[:1500]}")
        return fuzz_data.read(out)

    def place(self, p, folder):
        with open(os.path.join(folder, "k.fk"), "w", encoding="utf-8") as f:
            f.write(p.text())
        fuzz_data.write(os.path.join(folder, "in.safetensors"),
                        {n: (t, fuzz_data.made(n, t, p.shape(d), p.seed)) for n, (t, d) in p.ins.items()
                         if n not in p.absent})


def compare(p, device, got, want, slack=1.0):
    """How many outputs agree; raises Failure."""
    for name, (dtype, w) in want.items():
        g = fuzz_data.decoded(got[name][1], dtype)
        w = fuzz_data.decoded(w, dtype)
        if w.dtype.kind == "f":
            bound = slack * 2 * p.bounds.get(name, 0.0)
            with np.errstate(all="ignore"):
                same = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= bound)
        else:
            bound, same = 0, g == w
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            raise Failure(device, "differs", f"{name}{list(at)} is {g[at]!r}, not {w[at]!r} (bound {bound:.3g}; "
                          f"{int((~same).sum())} of {w.size} differ)")
    return len(want)


def check(runner, p, devices):
    """Runs all devices: (comparisons, refusals); raises Failure, or Refused where the evaluator refuses."""
    folder = tempfile.mkdtemp(prefix="fuzz_kernels.")
    try:
        runner.place(p, folder)
        want, compared, refused = runner.run(p, folder, "eval"), 0, []
        for device in devices:
            if device == "eval":
                continue
            try:
                compared += compare(p, device, runner.run(p, folder, device), want)
            except Refused as e:
                refused.append(e)
        return compared, refused
    finally:
        shutil.rmtree(folder)


# --- reduction ---


class Reducer:
    """Makes a failing program smaller while it fails in the same way."""

    def __init__(self, runner, failure, seconds):
        self.runner, self.failure, self.end = runner, failure, time.monotonic() + seconds

    def fails(self, p):
        if time.monotonic() > self.end:
            return False
        try:
            check(self.runner, p, [self.failure.device])
        except Failure as e:
            return e.device == self.failure.device and e.kind == self.failure.kind
        except (Refused, KeyError, ValueError):
            pass
        return False

    @staticmethod
    def tidy(p):
        """Without parameters, dims and entries that the body does not name."""
        names = set(re.findall(r"\w+", "\n".join(p.lines + p.where)))
        for table in (p.ins, p.inouts, p.outs, p.scalars):
            for n in [n for n in table if n not in names]:
                del table[n]
        if not p.outs and not p.inouts:
            return None
        dims = set(re.findall(r"\w+", " ".join(" ".join(d) for t in (p.ins, p.inouts, p.outs) for _, d in t.values())))
        p.where = [w for w in p.where if set(re.findall(r"[A-Za-z]\w*", w)) <= dims]
        p.sizes = {d: s for d, s in p.sizes.items() if d in dims}
        p.absent &= set(p.ins)
        p.bounds = {n: b for n, b in p.bounds.items() if n in p.outs or n in p.inouts}
        return p

    def attempt(self, p, change):
        q = p.copy()
        change(q)
        q = self.tidy(q)
        return q if q is not None and q.text() != p.text() and self.fails(q) else None

    def run(self, p):
        before = None
        while before != p.text() and time.monotonic() < self.end:
            before = p.text()
            p = self.drop_lines(p)
            p = self.each(p, self.entries)
            p = self.shrink_expressions(p)
            p = self.each(p, self.smaller)
            p = self.each(p, self.plainer)
        return p

    def drop_lines(self, p):
        size = max(1, len(p.lines) // 2)
        while size:
            at = 0
            while at < len(p.lines):
                def change(q, at=at, size=size):
                    del q.lines[at:at + size]
                part = "".join(p.lines[at:at + size])
                whole = part.count("{") == part.count("}")
                q = self.attempt(p, change) if whole else self.unwrapped(p, at) if size == 1 else None
                p, at = (q, at) if q else (p, at + 1)
            size //= 2
        return p

    def unwrapped(self, p, at):
        """Without the block that starts at this line, or with its statements in its place."""
        if "{" not in p.lines[at] or "}" in p.lines[at]:
            return None
        depth, end = 0, at
        for end in range(at, len(p.lines)):
            depth += p.lines[end].count("{") - p.lines[end].count("}")
            if depth == 0:
                break

        def drop(q):
            del q.lines[at:end + 1]

        def unwrap(q):
            q.lines[at:end + 1] = q.lines[at + 1:end]
        return self.attempt(p, drop) or self.attempt(p, unwrap)

    def each(self, p, changes):
        """Takes each change of a list that keeps the failure; the list is made again after one."""
        again = True
        while again:
            again = False
            for change in changes(p):
                q = self.attempt(p, change)
                if q:
                    p, again = q, True
                    break
        return p

    @staticmethod
    def entries(p):
        for k in p.schedule:
            yield lambda q, k=k: q.schedule.pop(k)
        for f in p.flags:
            yield lambda q, f=f: q.flags.remove(f)

    @staticmethod
    def smaller(p):
        for d, s in p.sizes.items():
            for to in sorted({1, 2, s // 2, s - 1}):
                if 0 < to < s:
                    yield lambda q, d=d, to=to: q.sizes.update({d: to})

    @staticmethod
    def plainer(p):
        for table in ("ins", "inouts", "outs"):
            for n, (dtype, dims) in getattr(p, table).items():
                if dtype not in ("f32", "i32"):
                    for to in ("f32", "i32"):
                        yield lambda q, n=n, to=to, table=table, dims=dims: getattr(q, table).update({n: (to, dims)})

    def shrink_expressions(self, p):
        at = 0
        while at < len(p.lines):
            for text in self.simpler(p.lines[at]):
                def change(q, at=at, text=text):
                    q.lines[at] = text
                q = self.attempt(p, change)
                if q:
                    p = q
                    break
            else:
                at += 1
        return p

    @staticmethod
    def simpler(line):
        """The line with one group in parentheses replaced by a part of it, or by a number."""
        stack = []
        groups = []
        for i, c in enumerate(line):
            if c == "(":
                stack.append(i)
            elif c == ")" and stack:
                groups.append((stack.pop(), i))
        for lo, hi in sorted(groups, key=lambda g: g[0] - g[1]):
            inner = line[lo + 1:hi]
            start = re.search(r"(\w+(\[[^()]*\])?)?$", line[:lo]).start()
            parts, depth, last = [], 0, 0
            for m in re.finditer(r"[\[(]|[\])]| (?:[-+*/%&|^<>=!?:]+|as) |, ", inner):
                if m[0] in "[(":
                    depth += 1
                elif m[0] in "])":
                    depth -= 1
                elif depth == 0:
                    parts.append(inner[last:m.start()])
                    last = m.end()
            parts.append(inner[last:])
            for part in parts + ["1.0", "1"]:
                if len(part) < hi - start and re.search(r"\w", part):
                    yield line[:start] + f"({part})" * (part not in ("1", "1.0")) + part * (part in ("1", "1.0")) + line[hi + 1:]
            if len(parts) == 1 and not line[start:lo]:
                yield line[:lo] + inner + line[hi + 1:]


# --- the loop ---


class Tally:
    def __init__(self):
        self.programs = self.comparisons = self.refused = 0
        self.left = 0  # not started, or not looked at by themselves, when the time was over
        self.reasons = collections.Counter()
        self.failures = []


def examine(runner, options, units, seed, tally, devices):
    """Runs units as one kernel; a batch that is refused or fails is halved."""
    flags = ["--no-fuse"] if seed % 5 == 4 else []
    p = Program.of(units, seed, flags)
    failure = None
    try:
        compared, refused = check(runner, p, devices)
    except Refused as e:
        compared, refused = 0, [e]
    except Failure as e:
        compared, refused, failure = 0, [], e
    half = len(units) // 2
    over = time.monotonic() > options.end
    if failure and half and not over:
        before = len(tally.failures)
        examine(runner, options, units[:half], seed, tally, devices)
        examine(runner, options, units[half:], seed, tally, devices)
        if len(tally.failures) > before:
            return
        tally.programs -= len(units)  # only together
    elif refused and half and over:
        tally.left += len(units)
        return
    elif refused and half:
        again = devices if refused[0].device == "eval" else ["eval"] + [e.device for e in refused]
        tally.comparisons += compared
        passed = tally.programs
        examine(runner, options, units[:half], seed, tally, again)
        examine(runner, options, units[half:], seed, tally, again)
        tally.programs = passed + len(units)
        return
    tally.programs += len(units)
    tally.comparisons += compared
    for e in refused:
        tally.refused += 1
        tally.reasons[f"{e.device}: {e.reason}"] += 1
        if options.verbose:
            print(f"unit {units[0].at} ({units[0].kind}) refused on {e.device}: {e}", flush=True)
    if failure:
        report(runner, options, p, failure, "+".join(f"{u.at}:{u.kind}" for u in units), tally)


def report(runner, options, p, failure, what, tally):
    if failure.device in ("eval",) and not options.reduce_eval:
        small = p
    else:
        small = Reducer(runner, failure, options.reduce_seconds).run(p)
    try:
        check(runner, small, [failure.device])
    except Failure as e:
        failure = e
    except Refused:
        small = p
    text = small.text()
    path = None
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        path = os.path.join(options.keep, re.sub(r"\W+", "_", f"{what}_{failure.device}") + ".fk")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    tally.failures.append({"seeds": what, "device": failure.device, "failure": str(failure), "kind": failure.kind,
                           "program": text, "file": path})
    repeat = f"fuzz_kernels.py {options.fusec} --devices=eval,{failure.device} --repeat={path or 'FILE.fk'}"
    print(f"--- seeds {what}: {failure}\n{text}repeat: {repeat}\n", flush=True)


def batch(runner, options, first, count):
    tally = Tally()
    if time.monotonic() > options.end:
        tally.left += count
        return tally
    units = [fuzz_units.unit(seed, seed) for seed in range(first, first + count)]
    if options.kind:
        units = [u for u in units if u.kind == options.kind]
    if options.having:
        units = [u for u in units if re.search(options.having, "\n".join(u.lines))]
    if units:
        examine(runner, options, units, first, tally, options.devices)
    return tally


def parse():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("fusec")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=100)
    a.add_argument("--devices", default="eval,cpu,sim", type=lambda s: s.split(","))
    a.add_argument("--jobs", type=int, default=1)
    a.add_argument("--batch", type=int, default=4)
    a.add_argument("--seconds", type=float, default=1e9)
    a.add_argument("--timeout", type=float, default=120)
    a.add_argument("--reduce-seconds", type=float, default=60)
    a.add_argument("--reduce-eval", action="store_true", help="reduce what the evaluator does not take, too")
    a.add_argument("--kind", help="only units of this kind: " + ", ".join(sorted({k.__name__ for k in fuzz_units.KINDS})))
    a.add_argument("--having", metavar="REGEX", help="only units whose text has it")
    a.add_argument("--keep", metavar="DIR")
    a.add_argument("--json", metavar="FILE")
    a.add_argument("--repeat", metavar="FILE")
    a.add_argument("--verbose", action="store_true")
    return a.parse_args()


def repeat(runner, options):
    with open(options.repeat, encoding="utf-8") as f:
        p = Program.parsed(f.read())
    try:
        compared, refused = check(runner, p, options.devices)
    except (Failure, Refused) as e:
        print(e)
        return 1
    print(f"{compared} outputs agree; refused: {', '.join(f'{e.device}: {e}' for e in refused) or 'nowhere'}")
    return 0


def main():
    options = parse()
    runner = Runner(options.fusec, options.timeout)
    if options.repeat:
        return repeat(runner, options)
    start = time.monotonic()
    options.end = start + options.seconds
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        end = options.seed + options.count
        work = [pool.submit(batch, runner, options, s, min(options.batch, end - s))
                for s in range(options.seed, end, options.batch)]
        for w in concurrent.futures.as_completed(work):
            t = w.result()
            total.programs += t.programs
            total.comparisons += t.comparisons
            total.refused += t.refused
            total.left += t.left
            total.reasons.update(t.reasons)
            total.failures += t.failures
    seconds = time.monotonic() - start
    for reason, n in total.reasons.most_common():
        print(f"refused {n} times: {reason}")
    print(f"{total.programs} programs, {total.comparisons} outputs compared, {total.refused} refused, "
          f"{len(total.failures)} failed, {total.left} left for want of time; {runner.processes} processes, {seconds:.0f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"programs": total.programs, "comparisons": total.comparisons, "refused": total.reasons,
                       "failures": total.failures, "processes": runner.processes, "seconds": seconds,
                       "devices": options.devices, "seed": options.seed, "count": options.count}, f, indent=1)
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())

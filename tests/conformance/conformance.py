#!/usr/bin/env python3
"""Runs the conformance collection: every kernel of the .fk files here against its reference.

    conformance.py [--group=NAME,...] [--kernel=NAME,...] [--on=eval,cpu,sim] [--full] [--list] [-v]
    conformance.py --devices=cuda [--groups=NAME,...] [--json=FILE] [--jobs=N] [--patience=SECONDS]
    conformance.py --ptx=FUSEC [--ptxas=PROGRAM] [...]

The first form runs on devices of this machine. The second does all of it on any device of fuse_rt (cuda, cpu,
sim:sm_80, ...), N processes at a time, each for one group, and goes on when one dies; it needs python3,
numpy, this folder, python/ and the two libraries (FUSE_RT_LIBRARY, FUSE_COMPILER). The third
compiles for GPUs, assembles where there is ptxas, and fails on spills. Without --full, or FUSE_CONFORMANCE=full in the environment, it does what fits
into continuous integration: all types and shapes on the evaluator; on one of cpu and sim one type and the
three largest shapes; for PTX one type and one target. Which ones, a hash of the kernel's name says.

not_yet.txt lists what is refused so far, with the refusal. Anything else that is refused fails, and
so does an entry that compiles, or that is refused with other words. Exit status: 0 when all is as it should
be, 1 when not, 77 where numpy is missing.
"""

import argparse
import faulthandler
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: numpy is missing")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
import sweep  # noqa: E402

PTX_MOST = 8 << 20  # bytes; ptxas takes minutes and gigabytes for more
TARGETS = ("sm_80", "sm_90a", "sm_120")
DEVICES = {"eval": ["eval"], "cpu": ["cpu"], "sim": ["sim:sm_90a"]}
DEVICES_FULL = {**DEVICES, "sim": ["sim:sm_90a", "sim:sm_80"]}


def groups():
    return sorted(f[:-3] for f in os.listdir(HERE) if f.endswith(".fk"))


class NotYet:
    """Rows `where kernel[.type] text` of not_yet.txt or spills.txt."""

    def __init__(self, file):
        self.rows = {}
        with open(os.path.join(HERE, file)) as f:
            for line in f:
                line = line.split("#")[0].strip()
                if line:
                    where, kernel, text = (line.split(None, 2) + [""])[:3]
                    for w in where.split(","):
                        self.rows[w, kernel] = text

    def find(self, where, kernel, dtype):
        for key in (f"{kernel}.{dtype}", kernel):
            if (where, key) in self.rows:
                return self.rows[where, key]
        return None


class Run:
    def __init__(self, options):
        self.options, self.full = options, options.full
        self.not_yet, self.spills = NotYet("not_yet.txt"), NotYet("spills.txt")
        self.failures, self.done, self.refused = [], 0, 0
        self.texts = []

    def fail(self, what, text):
        self.failures.append(what)
        self.texts.append([what, text])
        print(f"FAILED {what}: {text}", flush=True)

    def progress(self, kernel, state, **more):
        if self.options.progress:
            with open(self.options.progress, "a") as f:
                f.write(json.dumps(dict(kernel=kernel, state=state, **more)) + "\n")

    def turn(self, c, n, salt=""):
        return zlib.crc32((c.name + salt).encode()) % n

    def types(self, c, where):
        return c.types if self.full or where == "eval" else (c.types[self.turn(c, len(c.types), where)],)

    def takes(self, c, where):
        """Compiling for a host takes longest: without --full a kernel runs on one of them."""
        if self.full or where not in ("cpu", "sim") or len(self.options.on.split(",")) == 1:
            return True
        listed = any(self.not_yet.find(where, c.name, t) is not None for t in c.types)
        return listed or where == ("cpu", "sim")[self.turn(c, 2, "host")]

    def refusal(self, where, what, c, dtype, error):
        """where: names that an entry may have. True when `error` (None: none) is what not_yet.txt says."""
        listed = next((t for w in where if (t := self.not_yet.find(w, c.name, dtype)) is not None), None)
        if error is None:
            if listed is not None:
                self.fail(what, "compiles now: delete its entry in not_yet.txt")
            return listed is None
        if listed is None:
            self.fail(what, error)
        elif listed not in error:
            self.fail(what, f"is refused in other words than not_yet.txt has ({listed!r}):\n{error}")
        self.refused += listed is not None
        return False


# --- on a device ---


def shapes_for(run, c, where):
    if run.options.small:
        some = [s for s in enumerate(c.shapes + c.more) if all(v or v is False for v in s[1].values())]
        middle = len(some) // 2
        return sorted(some, key=lambda s: size_of(s[1]))[max(0, middle - 1) : middle + 1]
    at = list(enumerate(c.shapes + (c.more if run.full and where != "eval" else [])))
    if run.full or where == "eval":
        return at
    return sorted(at, key=lambda s: -size_of(s[1]))[:3]


def size_of(shape):
    n = 1
    for v in shape.values():
        n *= 1 + int(v)
    return n


def run_case(run, c, device, where, results):
    import fuse_rt
    import harness

    for dtype in run.types(c, where):
        modules = {}
        for i, shape in shapes_for(run, c, where):
            key = tuple((d, shape[d]) for d in c.defines)
            what = f"{c.name}.{dtype} {shape} on {device.name}"
            if run.options.verbose:
                print(what, flush=True)
            if key not in modules:
                modules[key] = compile_case(run, c, device, where, dtype, dict(key), what)
            if modules[key] is None:
                continue
            at = (c.name, dtype, i)
            if at not in results:
                results[at] = harness.Results(c, dtype, shape)
            layouts = (0, 1 + i % 3) if run.full else ((0, 1, 0, 2, 0, 3)[i % 6],)
            for layout in layouts:
                try:
                    held = harness.launch(c, modules[key].kernel(), shape, layout, results[at], i)
                    harness.verify(c, modules[key].kernel(), held, results[at], i)
                    run.done += 1
                except (harness.Failure, fuse_rt.FuseError) as e:
                    run.fail(f"{what}, layout {layout}", str(e))
                    if is_lost(device):
                        return


def is_lost(device):
    """A fault on a GPU ends its context, and with it everything that this process could do."""
    import fuse_rt

    if not device.is_cuda:
        return False
    try:
        device.synchronize()
    except fuse_rt.FuseError:
        return True
    return False


def compile_case(run, c, device, where, dtype, defines, what):
    import fuse_rt

    wheres = ("ptx", device.target) if device.is_cuda else (where.split(":")[0],)

    if "T" in c.generics:
        defines["T"] = dtype
    try:
        path = os.path.join(HERE, c.file)
        level = 0 if device.is_cuda else 1
        module = device.module_from_file(
            path, defines=defines, kernel=c.kernel, no_perf_notes=True, opt_level=level
        )
    except fuse_rt.FuseError as e:
        run.refusal(wheres, what, c, dtype, str(e))
        return None
    if not run.refusal(wheres, what, c, dtype, None):
        return None
    if module.messages:
        run.fail(what, f"has warnings:\n{module.messages}")
    return module


def run_devices(run, cases):
    import fuse_rt

    devices = DEVICES_FULL if run.full else DEVICES
    on = [(w, n) for w in run.options.on.split(",") for n in devices.get(w, [w])]
    opened = [(w, fuse_rt.Device(n, threads=1, seed=7)) for w, n in on]
    for c in cases:
        results, start = {}, time.time()
        run.progress(c.name, "begins")
        before = run.done, run.refused, len(run.texts)
        for where, device in opened:
            if run.takes(c, where):
                run_case(run, c, device, where, results)
        failures, seconds = run.texts[before[2] :], round(time.time() - start, 3)
        done, refused = run.done - before[0], run.refused - before[1]
        run.progress(c.name, "ends", runs=done, refused=refused, failures=failures, seconds=seconds)
        if failures and any(is_lost(device) for _, device in opened):
            sys.exit(sweep.LOST)
        if run.options.times:
            print(f"{time.time() - start:7.2f} s  {c.name}", flush=True)


# --- for GPUs ---


def run_ptx(run, cases):
    with tempfile.TemporaryDirectory() as folder:
        for c in cases:
            targets = TARGETS if run.full else (TARGETS[run.turn(c, 3, "target")],)
            shapes = {tuple((d, s[d]) for d in c.defines): s for s in c.shapes}
            for target in targets:
                for dtype in run.types(c, "ptx"):
                    for key in list(shapes) if run.full else list(shapes)[-1:]:
                        compile_ptx(run, c, target, dtype, dict(key), os.path.join(folder, "k.ptx"))


def compile_ptx(run, c, target, dtype, defines, path):
    options = run.options
    if "T" in c.generics:
        defines["T"] = dtype
    what = f"{c.name}.{dtype} {defines} for {target}"
    if options.verbose:
        print(what, flush=True)
    command = [options.ptx, os.path.join(HERE, c.file), f"--kernel={c.kernel}", f"--target={target}", "-o", path]
    command += ["-Wno-perf"] + [f"-D{c.kernel}.{k}={str(v).lower()}" for k, v in defines.items()]
    p = subprocess.run(command, capture_output=True, text=True)
    error = p.stderr if p.returncode else None
    if error is None and os.path.getsize(path) > PTX_MOST:
        error = "its PTX is too long for ptxas"
    if p.returncode not in (0, 1):
        run.fail(what, f"fusec ends with {p.returncode}\n{p.stderr}")
    elif run.refusal(("ptx", target), what, c, dtype, error):
        if p.stderr:
            run.fail(what, f"has warnings:\n{p.stderr}")
        run.done += 1
        if options.ptxas:
            assemble(run, c, what, target, dtype, path)


def assemble(run, c, what, target, dtype, path):
    p = subprocess.run(
        [run.options.ptxas, f"-arch={target}", "-v", "-o", "/dev/null", path], capture_output=True, text=True
    )
    if p.returncode:
        run.fail(what, f"ptxas refuses it:\n{p.stderr}")
        return
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", p.stderr)))
    known = run.spills.find(target, c.name, dtype)
    if spilled and known is None:
        run.fail(what, f"spills {spilled} bytes")
    elif known is not None and not spilled:
        run.fail(what, "does not spill any more: delete its entry in spills.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="")
    parser.add_argument("--kernel", default="")
    parser.add_argument("--on", default="eval,cpu,sim")
    parser.add_argument("--devices")
    parser.add_argument("--groups", default="")
    parser.add_argument("--json")
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--skip", default="", help=argparse.SUPPRESS)
    parser.add_argument("--ptx")
    parser.add_argument("--ptxas", default=None)
    parser.add_argument("--full", action="store_true", default=os.environ.get("FUSE_CONFORMANCE") == "full")
    parser.add_argument("--small", action="store_true", help="two shapes of middle size")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    faulthandler.enable()
    if options.devices:
        chosen = options.groups.split(",") if options.groups else groups()
        return sweep.Sweep(chosen, options.devices, options.patience, options.jobs, options.json).run()
    cases = load(options.group.split(",") if options.group else groups())
    if options.kernel:
        cases = [c for c in cases if c.name in options.kernel.split(",")]
    cases = [c for c in cases if c.name not in options.skip.split(",")]
    if options.list:
        print("\n".join(f"{c.file}:{c.name}" for c in cases))
        return 0
    run = Run(options)
    run_ptx(run, cases) if options.ptx else run_devices(run, cases)
    print(f"{len(cases)} kernels, {run.done} runs, {run.refused} refused as listed, {len(run.failures)} failures")
    return 1 if run.failures or not (run.done or options.skip) else 0


def load(chosen):
    """The cases of groups, each with its kernel's generic parameters."""
    import harness

    for group in chosen:
        importlib.import_module("cases_" + group)
    declared = declare_kernels(chosen)
    cases = list(harness.CASES.values())
    missing = set(declared) ^ {c.kernel for c in cases}
    if missing:
        sys.exit(f"kernels without a case, or cases without a kernel: {sorted(missing)}")
    more = more_shapes()
    for c in cases:
        c.generics, c.more = declared[c.kernel], more.get(c.name, [])
    return cases


def more_shapes():
    """Rows `kernel M=3 N=5` of more_shapes.txt."""
    found = {}
    with open(os.path.join(HERE, "more_shapes.txt")) as f:
        for line in f:
            name, *dims = line.split("#")[0].split() or [None]
            if name:
                pairs = (d.split("=") for d in dims)
                found.setdefault(name, []).append({d: v == "True" if v in ("True", "False") else int(v) for d, v in pairs})
    return found


def declare_kernels(chosen):
    """The kernels of the files and their generic parameters' text."""
    found = {}
    for group in chosen:
        with open(os.path.join(HERE, group + ".fk")) as f:
            for name, generics in re.findall(r"^kernel (\w+)(?:<(.*?)>)?\(", f.read(), re.M):
                found[name] = set(re.findall(r"(\w+) *:", generics))
    return found


if __name__ == "__main__":
    sys.exit(main())

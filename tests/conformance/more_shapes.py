#!/usr/bin/env python3
"""Finds further shapes for the cases and writes more_shapes.txt, which full runs on devices add.

    more_shapes.py [--least=N] [--kernel=NAME,...]        needs FUSE_RT_LIBRARY and FUSE_COMPILER

Dims of a case's own shapes are changed one or several at a time; what the kernel's `where` and tensors refuse is
dropped, what the evaluator computes as the reference says is kept. A difference is printed: it is a
bug, or a dim that the reference takes to be tied to another. Exit status 1 if there was one.
"""

import argparse
import os
import random
import re
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
import conformance  # noqa: E402
import fuse_rt  # noqa: E402
import harness  # noqa: E402

POOL = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 160, 257)
MOST = 1 << 16  # product of the dims
TRIES = 400


def tied(shapes, a, b):
    return all(s[a] == s[b] for s in shapes)


def equations(c):
    """[("P", "H - R + 1"), ...]: what the kernel's `where` says of dims, in Python's words."""
    with open(os.path.join(HERE, c.file)) as f:
        text = re.sub(r"//.*", "", f.read())
    head = re.search(rf"^kernel {c.kernel}\b.*?\{{", text, re.M | re.S)[0]
    clauses = head.rsplit("where", 1)[1].rstrip("{").split("schedule")[0].split(",") if "where" in head else []
    pairs = [clause.split("==") for clause in clauses if "==" in clause]
    return [(name.strip(), e.strip().replace("/", "//")) for name, e in pairs if name.strip().isidentifier()]


def change(r, c, equal):
    """A shape like one of the case's: dims that are equal everywhere stay equal."""
    shape = dict(r.choice(c.shapes))
    dims = [d for d, v in shape.items() if not isinstance(v, bool) and d.isupper() and d not in c.defines]
    if not dims:
        return None
    for d in r.sample(dims, r.randint(1, len(dims))):
        value = r.choice(POOL[: r.choice((5, 10, len(POOL)))])
        for other in dims:
            if tied(c.shapes, d, other):
                shape[other] = value
    known = {**{n: v for n, v in c.inputs.items() if isinstance(v, int)}, **shape}
    for name, e in equal:
        if name in c.defines:
            continue
        try:
            known[name] = max(int(eval(e, {"min": min, "max": max}, known)), 0)
        except NameError:  # of a dim that the case computes
            continue
        if name in shape:
            shape[name] = known[name]
    return shape if conformance.size_of(shape) <= MOST else None


def runs(c, kernel, shape):
    """Whether the kernel takes the shape; raises harness.Failure when its result is wrong."""
    try:
        results = harness.Results(c, c.types[0], shape)
        held = harness.launch(c, kernel, shape, 0, results, 0)
    except (fuse_rt.FuseError, ValueError, IndexError, ZeroDivisionError, KeyError):
        return False
    harness.verify(c, kernel, held, results, 0)
    return True


def grow(c, device, least):
    r, found, wrong = random.Random(zlib.crc32(c.name.encode())), [], []
    modules, equal = {}, equations(c)
    for _ in range(TRIES):
        if len(c.shapes) + len(found) >= least:
            break
        shape = change(r, c, equal)
        if shape is None or shape in c.shapes or shape in found:
            continue
        key = tuple((d, shape[d]) for d in c.defines)
        if key not in modules:
            defines = dict(key, **({"T": c.types[0]} if "T" in c.generics else {}))
            path = os.path.join(HERE, c.file)
            modules[key] = device.module_from_file(path, defines=defines, kernel=c.kernel, no_perf_notes=True)
        try:
            if runs(c, modules[key].kernel(), shape):
                found.append(shape)
        except harness.Failure as e:
            wrong.append((shape, str(e)))
            if len(wrong) > 3:
                break
    return found, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--least", type=int, default=8)
    parser.add_argument("--kernel", default="")
    options = parser.parse_args()
    only = [k for k in options.kernel.split(",") if k]
    device, bad, few = fuse_rt.Device("eval", seed=7), 0, []
    lines = []
    for c in conformance.load(conformance.groups()):
        if only and c.name not in only:
            continue
        found, wrong = grow(c, device, options.least)
        for shape, text in wrong:
            bad += 1
            print(f"DIFFERS {c.name} {shape}: {text}", flush=True)
        lines += [f"{c.name} " + " ".join(f"{d}={v}" for d, v in s.items()) for s in found]
        if len(c.shapes) + len(found) < options.least:
            few.append(f"{c.name}: {len(c.shapes) + len(found)}")
    print(f"{len(lines)} shapes; fewer than {options.least}: {', '.join(few) or 'none'}")
    if not only:
        with open(os.path.join(HERE, "more_shapes.txt"), "w") as f:
            f.write("# Shapes beside those of the cases, for full runs on devices; made by more_shapes.py.\n")
            f.write("\n".join(lines) + "\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

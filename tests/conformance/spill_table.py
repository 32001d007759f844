#!/usr/bin/env python3
"""Assembles all PTX there is, and lists what spills or is not to be assembled.

    spill_table.py FUSEC [--targets=sm_90a,...] [--kernel=NAME,...] [--ptxas=PROGRAM] [--cache=FOLDER]
                   [--json=FILE] [--jobs=N]

Every kernel of the conformance collection and of examples/, in all its types, all values of its generic
parameters that the collection names, and all its variants, under its default schedule, for one target after the
other. A line for each function that spills: target, kernel, bytes stored and loaded, registers, and the function,
whose name says type and variant. The library has no kernels: its functions are in all of these.

Each function is assembled once: with --cache what an earlier run has found is kept in that folder, by the function's
text, so that after a change only what the change touches takes time. A first run takes about 10 minutes a
target on one core. Exit status: 0 when all is assembled without spills, 1 when not, 77 where numpy is missing.
"""

import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import conformance  # noqa: E402

EXAMPLES = os.path.join(conformance.HERE, "..", "..", "examples")
TARGETS = ("sm_90a", "sm_80", "sm_120", "sm_89", "sm_86", "sm_100a")
USED = re.compile(
    r"Compiling entry function '(\S+?)' .*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
    re.S,
)


class Failed(Exception):
    pass


def instances():
    """What is compiled in one go: name, file, kernel, generic parameters."""
    for c in conformance.load(conformance.groups()):
        for values in {tuple((d, s[d]) for d in c.defines) for s in c.shapes}:
            for dtype in c.types:
                defines = dict(values, T=dtype) if "T" in c.generics else dict(values)
                yield f"{c.name}.{dtype}", os.path.join(conformance.HERE, c.file), c.kernel, defines
    for path in sorted(glob.glob(os.path.join(EXAMPLES, "*.fk"))):
        with open(path) as f:
            for kernel in re.findall(r"^kernel (\w+)", f.read(), re.M):
                yield f"examples/{kernel}", path, kernel, {}


def compile_to_ptx(options, target, instance):
    """The text in front of the functions, and the functions by name."""
    name, path, kernel, defines = instance
    command = [options.fusec, path, f"--kernel={kernel}", f"--target={target}", "-Wno-perf", "-o", "-"]
    command += [f"-D{kernel}.{k}={str(v).lower()}" for k, v in defines.items()]
    p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        raise Failed(p.stderr)
    text = "\n".join(line for line in p.stdout.split("\n") if not line.startswith("//"))
    outside = set(re.findall(r"\.extern \.func[^;]*?(\w+)\s*\(", text)) - {"vprintf", "__assertfail"}
    if outside:
        raise Failed(f"calls {sorted(outside)}")
    head, *parts = re.split(r"(?=^(?:\.visible )?\.entry )", text, flags=re.M)
    return head, {re.search(r"\.entry (\w+)", part)[1]: part for part in parts}


def kept_at(options, target, head, code):
    return os.path.join(options.cache, hashlib.sha1(f"{target}{head}{code}".encode()).hexdigest())


def assemble(options, target, head, functions):
    """For each function: bytes of stores and loads, registers."""
    found, unknown = {}, []
    for name, code in functions.items():
        at = options.cache and kept_at(options, target, head, code)
        if at and os.path.exists(at):
            with open(at) as f:
                found[name] = json.load(f)
        else:
            unknown.append(name)
    if not unknown:
        return found
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(head + "".join(functions[name] for name in unknown))
        f.flush()
        command = [options.ptxas, f"-arch={target}", "-v", "-o", "/dev/null", f.name]
        p = subprocess.run(command, capture_output=True, text=True)
    if p.returncode:
        raise Failed(f"ptxas refuses it:\n{p.stderr}")
    for name, *numbers in USED.findall(p.stderr):
        found[name] = [int(n) for n in numbers]
        if options.cache:
            with open(kept_at(options, target, head, functions[name]), "w") as f:
                json.dump(found[name], f)
    missing = set(functions) - set(found)
    if missing:
        raise Failed(f"ptxas says nothing of {sorted(missing)}:\n{p.stderr}")
    return found


def work(options, target, instance):
    try:
        head, functions = compile_to_ptx(options, target, instance)
        return assemble(options, target, head, functions), None
    except Failed as e:
        return {}, str(e)


def run_target(options, target, todo, rows):
    spilled, failed, functions, total = set(), 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(work, options, target, instance) for instance in todo]
        for (name, _, kernel, defines), future in zip(todo, futures):
            found, error = future.result()
            if error:
                failed += 1
                print(f"{target} {name} {defines} FAILED: {error}", flush=True)
                rows.append(dict(target=target, kernel=name, defines=str(defines), error=error))
            for function, (stores, loads, registers) in found.items():
                functions += 1
                row = dict(target=target, kernel=name, defines=str(defines), function=function)
                rows.append(dict(row, stores=stores, loads=loads, registers=registers))
                if stores + loads:
                    spilled.add(f"{name} {defines}")
                    total += stores + loads
                    print(f"{target:8} {name:32} {stores:6} {loads:6} {registers:4}  {function}", flush=True)
    print(
        f"{target}: {len(todo)} instances, {functions} functions; {len(spilled)} instances spill {total} bytes, "
        f"{failed} fail",
        flush=True,
    )
    return not spilled and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusec")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--kernel", default="")
    parser.add_argument("--ptxas", default="/usr/local/cuda/bin/ptxas")
    parser.add_argument("--cache")
    parser.add_argument("--json")
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    options = parser.parse_args()
    os.nice(10)
    if options.cache:
        os.makedirs(options.cache, exist_ok=True)
    todo, chosen = list(instances()), options.kernel.split(",") if options.kernel else []
    if chosen:
        todo = [i for i in todo if i[0] in chosen or i[0].split(".")[0] in chosen]
    rows, good = [], True
    for target in options.targets.split(","):
        good = run_target(options, target, todo, rows) and good
        if options.json:
            with open(options.json, "w") as f:
                json.dump(rows, f, indent=1)
    return 0 if good and todo else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the collection on a GPU under compute-sanitizer.

    sanitize.py [--tools=memcheck,racecheck,initcheck] [--groups=NAME,...] [--all-shapes] [--jobs=N] [--json=FILE]

Every kernel in all its types, on two shapes of middle size, or on all, in two layouts; one process for each group and
tool. Under memcheck each allocation ends with the last element of its tensor, so the first byte outside is seen (of tensors
that are written: the first word).
First two planted faults, a read past an end and a read of what nothing wrote, are to be found: a tool that
does not look at the process would find nothing anywhere. Needs what conformance.py needs on a GPU. Exit status: 0
when all is clean.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "conformance.py")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")
RUNS = re.compile(r"^\d+ kernels, (\d+) runs", re.M)
FAULT = """
import sys
sys.path.insert(0, sys.argv[1])
import fuse_rt
device = fuse_rt.Device("cuda")
kernel = device.module_from_source("kernel k(x: f32[N]) -> (y: f32[N]) { y = x + 1; }").kernel()
x, y = device.memory(4000), device.memory(8000)
if sys.argv[2] == "memcheck":
    x.write(bytes(4000))
n = 1001 if sys.argv[2] == "memcheck" else 1000
kernel(x=fuse_rt.Tensor(x.address, "f32", (n,), (1,), device), y=fuse_rt.Tensor(y.address, "f32", (n,), (1,), device))
device.synchronize()
"""


def under(tool, command, patience):
    """Exit status, number of errors (None: the tool said none), output."""
    whole = [
        os.environ.get("COMPUTE_SANITIZER", "compute-sanitizer"),
        f"--tool={tool}",
        "--target-processes=all",
        "--print-limit=20",
        *command,
    ]
    env = dict(os.environ, FUSE_CONFORMANCE_EXACT="1") if tool == "memcheck" else dict(os.environ)
    try:
        p = subprocess.run(
            whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience, env=env
        )
    except subprocess.TimeoutExpired as e:
        return 124, None, (e.stdout or b"").decode(errors="replace")
    found = SUMMARY.findall(p.stdout)
    return p.returncode, sum(map(int, found)) if found else None, p.stdout


def control(tool, patience):
    python = os.path.join(HERE, "..", "..", "python")
    _, errors, text = under(tool, [sys.executable, "-B", "-c", FAULT, python, tool], patience)
    if not errors:
        print(f"FAILED {tool} does not find the fault that was planted\n{text[-3000:]}", flush=True)
    return bool(errors)


def group(tool, name, options):
    command = [sys.executable, "-B", PROGRAM, f"--group={name}", "--on=cuda", "--full"]
    command += [] if options.all_shapes else ["--small"]
    start = time.time()
    status, errors, text = under(tool, command, options.patience)
    runs = sum(map(int, RUNS.findall(text)))
    row = dict(tool=tool, group=name, runs=runs, errors=errors, status=status, seconds=round(time.time() - start, 1))
    print(
        "{tool:10} {group:12} {runs:5} launches, errors: {errors}, status {status}, {seconds} s".format(**row),
        flush=True,
    )
    if status or errors != 0 or not runs:
        print(text[-4000:], flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck")
    parser.add_argument("--groups", default="")
    parser.add_argument("--all-shapes", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) - 2))
    parser.add_argument("--patience", type=float, default=500)
    parser.add_argument("--json")
    options = parser.parse_args()
    tools = options.tools.split(",")
    names = (
        options.groups.split(",") if options.groups else sorted(f[:-3] for f in os.listdir(HERE) if f.endswith(".fk"))
    )
    good = all([control(t, options.patience) for t in tools if t != "racecheck"])
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [f.result() for f in [pool.submit(group, t, n, options) for t in tools for n in names]]
    for tool in tools:
        of = [r for r in rows if r["tool"] == tool]
        clean = sum(r["errors"] == 0 and not r["status"] for r in of)
        print(
            f"{tool}: {sum(r['runs'] for r in of)} launches, {sum(r['errors'] or 0 for r in of)} errors, {clean} of {len(of)} groups clean"
        )
    if options.json:
        with open(options.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0 if good and all(r["errors"] == 0 and not r["status"] and r["runs"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

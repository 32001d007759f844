"""The whole collection on some devices, a process for each group.

A process that dies, or works on one kernel for too long, costs that kernel alone: another one goes on
with the next. `conformance.py --progress` writes, for each kernel, a line when it begins and one when it ends.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time


class Group:
    """One group; `kernels` grows as they end."""

    def __init__(self, name, folder):
        self.name, self.path = name, os.path.join(folder, name + ".jsonl")
        self.kernels, self.begun, self.read = [], None, 0

    def update(self):
        """Reads the lines that are new; says whether there were any."""
        if not os.path.exists(self.path):
            return False
        with open(self.path, "rb") as f:
            f.seek(self.read)
            lines = f.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.splitlines():
            record = json.loads(line)
            self.begun = record["kernel"] if record["state"] == "begins" else None
            if record.pop("state") == "ends":
                self.kernels.append(record)
        return bool(whole)

    def lost(self, how):
        """The process ended while it worked on `begun`, or before it began with one (then nothing is left to do)."""
        kernel = self.begun or f"({self.name})"
        print(f"FAILED {kernel}: {how}", flush=True)
        failures = [[kernel, how]]
        self.kernels.append(dict(kernel=kernel, runs=0, refused=0, failures=failures, seconds=0))
        again, self.begun = self.begun is not None, None
        return again


class Sweep:
    def __init__(self, groups, devices, patience, jobs, path):
        self.devices, self.patience, self.jobs, self.path = devices, patience, jobs, path
        self.folder = tempfile.TemporaryDirectory()
        self.groups = [Group(g, self.folder.name) for g in groups]
        self.lock, self.waiting, self.start = threading.Lock(), list(self.groups), time.time()

    def work(self):
        while True:
            with self.lock:
                if not self.waiting:
                    return
                group = self.waiting.pop(0)
            while self.process(group):
                pass

    def process(self, group):
        """One process; whether another one has to go on."""
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conformance.py")
        command = [sys.executable, "-B", program, f"--group={group.name}", f"--on={self.devices}", "--full"]
        command += [f"--progress={group.path}", f"--skip={','.join(k['kernel'] for k in group.kernels)}"]
        p = subprocess.Popen(command)
        last = time.time()
        while p.poll() is None:
            time.sleep(0.2)
            if group.update():
                last = time.time()
                self.write()
            if time.time() - last > self.patience:
                p.kill()
                p.wait()
                group.update()
                return group.lost(f"nothing happened for {self.patience} s")
        group.update()
        again = group.lost(f"the process ended with {p.returncode}") if self.died(p, group) else p.returncode == LOST
        self.write()
        return again

    @staticmethod
    def died(p, group):
        return group.begun is not None or p.returncode not in (0, 1, LOST)

    def write(self):
        if not self.path:
            return
        with self.lock:
            whole = dict(devices=self.devices, seconds=round(time.time() - self.start, 1))
            whole["groups"] = {g.name: list(g.kernels) for g in self.groups}
            with open(self.path + ".part", "w") as f:
                json.dump(whole, f, indent=1)
            os.replace(self.path + ".part", self.path)  # always a whole file

    def run(self):
        threads = [threading.Thread(target=self.work) for _ in range(self.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.write()
        bad = 0
        for g in self.groups:
            runs, refused, failures = (self.total(g, x) for x in ("runs", "refused", "failures"))
            print(f"{g.name:12} {len(g.kernels)} kernels, {runs} runs, {refused} refused as listed, {failures} failures")
            bad += failures + (not g.kernels)
        return 1 if bad else 0

    @staticmethod
    def total(group, field):
        return sum(len(k[field]) if field == "failures" else k[field] for k in group.kernels)


LOST = 3  # exit status of a process whose device can do no more; the kernel has ended

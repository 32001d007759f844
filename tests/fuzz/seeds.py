#!/usr/bin/env python3
"""The seed corpus of a fuzzer, from texts that the repository has: seeds.py source|ir ROOT OUT

A seed is a byte that picks the target, and a text: whole files, for `source` each kernel of a
file on its own too, and what the golden files quote.
"""
import glob
import os
import re
import sys


def kernels(text):
    """Each kernel with the declarations of its file that are no kernels."""
    starts = [m.start() for m in re.finditer(r"^(?:///[^\n]*\n)*(?:kernel|fn|const|import)\b", text, re.M)]
    parts = [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])]
    is_kernel = [re.search(r"^kernel\b", p, re.M) is not None for p in parts]
    others = "".join(p for p, k in zip(parts, is_kernel) if not k)
    return [others + p for p, k in zip(parts, is_kernel) if k]


def modules(text):
    """Each `tir` module, and each kernel of it on its own."""
    out = []
    for part in re.split(r"^(?=tir )", text, flags=re.M):
        if not part.startswith("tir "):
            continue
        part = re.split(r"^(?:---|===|###)", part, flags=re.M)[0]
        out.append(part)
        head, *bodies = re.split(r"^(?=kernel )", part, flags=re.M)
        if len(bodies) > 1:
            out += [head + b for b in bodies]
    return out


def texts(name, root):
    def read(pattern):
        for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True)):
            with open(path, encoding="utf-8", errors="replace") as f:
                yield f.read()

    if name == "source":
        for pattern in ("examples/*.fk", "tests/corpus/**/*.fk", "stdlib/std/*.fk", "bench/**/*.fk"):
            for text in read(pattern):
                yield text
                yield from kernels(text)
        for text in read("tests/corpus/diag/*.txt"):
            yield from kernels(text)
    else:
        for pattern in ("tests/corpus/**/*.tir", "tests/corpus/passes/*.txt"):
            for text in read(pattern):
                yield from modules(text)


def main():
    name, root, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    for i, text in enumerate(texts(name, root)):
        with open(os.path.join(out, "%04d" % i), "wb") as f:
            f.write(bytes([i % 9]) + text.encode())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs a linear_gelu kernel that fusec has compiled for sm_90a (PTX or cubin) through the CUDA driver, checks it and times it.

  spike_wgmma.py linear_gelu.ptx [linear_gelu.cubin] [MxKxN ...]

The launch plan is read from the head of the PTX: the order of the arguments and the tensor maps. Needs torch (data, the
reference, cuBLAS beside) and libcuda. Tested against f32; times are of a few ms of work after a rest, so clocks do not depend
on what ran before. Exit status 1: wrong results, 2: a hang."""
import ctypes
import math
import os
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F

cu = ctypes.CDLL('libcuda.so.1')
VALUES = {'bf16': 9, 'f16': 6, 'f32': 7}  # CUtensorMapDataType
BYTES = {'bf16': 2, 'f16': 2, 'f32': 4}


def check(result, what):
    if result:
        text = ctypes.c_char_p()
        cu.cuGetErrorString(result, ctypes.byref(text))
        raise RuntimeError(f'{what}: {text.value}')


class Plan:
    """What the head of the PTX says about its one launch."""

    def __init__(self, text):
        head = '\n'.join(l[4:] for l in text.splitlines() if l.startswith('//! '))
        kernel = re.search(r'^kernel (\w+)\((.*)\) \{$', head, re.M)
        self.tensors = {}
        for name, dtype, dims, attrs in re.findall(r'@(\w+): (\w+)\[([^\]]*)\](?: \{([^}]*)\})?', kernel.group(2)):
            inner = re.search(r'inner = (-?\d+)', attrs or '')
            self.tensors[name] = (dtype, len(dims.split(',')), int(inner.group(1)) if inner else -1)
        launch = re.search(r'launch %\w+ in \S+\.\.(\S+) args\((.*); (.*)\) \{(.*)\}$', head, re.M)
        self.grid, self.values = launch.group(1)[1:], [v.strip()[1:] for v in launch.group(2).split(',')]
        self.mems = [m.strip()[1:] for m in launch.group(3).split(',')]
        attrs = launch.group(4)
        self.warps = int(re.search(r'warps = (\d+)', attrs).group(1))
        self.smem = int(re.search(r'smem = (\d+)', attrs).group(1))
        self.entry = re.search(r'\.visible \.entry (\w+)', text).group(1)
        numbers = [int(x) for x in re.search(r'maps = \[([^\]]*)\]', attrs).group(1).split(',')]
        self.maps = []
        while numbers:
            mem, swizzle, rank = numbers[:3]
            pairs = numbers[3:3 + 2 * rank]
            self.maps.append((self.mems[mem], swizzle, pairs[0::2], pairs[1::2]))
            numbers = numbers[3 + 2 * rank:]


def tensor_map(tensor, dtype, swizzle, dims, box):
    raw = (ctypes.c_uint8 * 256)()
    at = ctypes.addressof(raw) + -ctypes.addressof(raw) % 64
    n = len(dims)
    size = (ctypes.c_uint64 * n)(*[tensor.shape[d] for d in dims])
    step = (ctypes.c_uint64 * n)(*[tensor.stride(d) * BYTES[dtype] for d in dims[1:]])
    boxes = (ctypes.c_uint32 * n)(*box)
    ones = (ctypes.c_uint32 * n)(*[1] * n)
    code = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
    check(cu.cuTensorMapEncodeTiled(ctypes.c_void_p(at), VALUES[dtype], n, ctypes.c_void_p(tensor.data_ptr()), size, step,
                                    boxes, ones, 0, code, 3, 0), 'cuTensorMapEncodeTiled')
    return raw, at


class Kernel:
    def __init__(self, plan, image):
        self.plan, self.module, self.f = plan, ctypes.c_void_p(), ctypes.c_void_p()
        start = time.perf_counter()
        check(cu.cuModuleLoadData(ctypes.byref(self.module), image), 'cuModuleLoadData')
        self.load_ms = (time.perf_counter() - start) * 1e3
        check(cu.cuModuleGetFunction(ctypes.byref(self.f), self.module, plan.entry.encode()), 'cuModuleGetFunction')
        check(cu.cuFuncSetAttribute(self.f, 8, plan.smem), 'shared memory')

    def bind(self, x, w, b, y):
        p, tensors = self.plan, {'x': x, 'w': w, 'b': b, 'y': y}
        M, K = x.shape
        N = w.shape[1]
        nm, nn = math.ceil(M / 128), math.ceil(N / 256)
        sms = int(os.environ.get('SMS', torch.cuda.get_device_properties(0).multi_processor_count))
        known = {'M': M, 'K': K, 'N': N, 'nm': nm, 'nn': nn, 'nt': nm * nn, 'np': sms, 'waves': 0, 'grid': math.ceil(nm * nn / math.ceil(nm * nn / sms))}
        keep, where = [], []
        for name in p.mems:
            dtype, rank, inner = p.tensors[name]
            t = tensors[name]
            for mem, swizzle, dims, box in p.maps:
                if mem == name:
                    raw, at = tensor_map(t, dtype, swizzle, dims, box)
                    keep.append(raw)
                    where.append(at)
            words = [t.data_ptr() if t is not None else 0]
            words += [t.stride(d) if t is not None else 0 for d in range(rank) if d != inner]
            for word in words:
                keep.append(ctypes.c_uint64(word))
                where.append(ctypes.addressof(keep[-1]))
        for value in p.values:
            keep.append(ctypes.c_int64(known[value]))
            where.append(ctypes.addressof(keep[-1]))
        params = (ctypes.c_void_p * len(where))(*where)

        def run(keep=keep):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(cu.cuLaunchKernel(self.f, known['grid'], 1, 1, 32 * p.warps, 1, 1, p.smem, stream, params, None), 'launch')
        return run


def synchronize(limit=10.0):
    event = torch.cuda.Event()
    event.record()
    start = time.time()
    while not event.query():
        if time.time() - start > limit:
            print('HANG', flush=True)
            os._exit(2)
        time.sleep(1e-4)


def data(M, K, N):
    x = torch.randn(M, K, device='cuda', dtype=torch.bfloat16)
    w = (torch.randn(K, N, device='cuda') * K ** -0.5).to(torch.bfloat16)
    b = torch.randn(N, device='cuda', dtype=torch.bfloat16)
    return x, w, b, torch.full((M, N), float('nan'), device='cuda', dtype=torch.bfloat16)


def verify(kernel, shapes):
    good = True
    for M, K, N in shapes:
        x, w, b, y = data(M, K, N)
        for bias in (b, None):
            y.fill_(float('nan'))
            run = kernel.bind(x, w, bias, y)
            run()
            synchronize()
            z = x.float() @ w.float() + (bias.float() if bias is not None else 0)
            want = F.gelu(z)
            d = (y.float() - want).abs()
            rel = (d.norm() / want.norm()).item()
            worst = (d / (want.abs() * 2 ** -8 + 2e-3 * want.abs().mean())).max().item()
            first = y.clone()
            y.fill_(float('nan'))
            run()
            synchronize()
            ok = rel < 4e-3 and worst < 3 and torch.equal(first, y)
            good &= ok
            bad = torch.isnan(first).sum().item()
            print(f'{"ok " if ok else "BAD"} {M}x{K}x{N} bias {bias is not None}: rel {rel:.2e} worst {worst:.2f} nan {bad} '
                  f'repeats {torch.equal(first, y)}', flush=True)
    return good


def graph_time(calls, target=4e-3):
    for f in calls:
        f()
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    for f in calls:
        f()
    b.record()
    synchronize(30)
    one = a.elapsed_time(b) / len(calls) * 1e-3
    repeats = max(len(calls), math.ceil(target / one / len(calls)) * len(calls))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            calls[i % len(calls)]()
    times = []
    for _ in range(7):
        time.sleep(0.06)
        graph.replay()
        a.record()
        graph.replay()
        b.record()
        synchronize(30)
        times.append(a.elapsed_time(b) / repeats)
    return statistics.median(times)


def measure(kernels, M, K, N):
    sets = [data(M, K, N) for _ in range(2 if M * N * K > 1e11 else 6)]
    flop = 2 * M * K * N
    named = {'cublas': [(lambda x, w, y: lambda: torch.matmul(x, w, out=y))(x, w, y) for x, w, b, y in sets],
             'linear, gelu eager': [(lambda x, w, b: lambda: F.gelu(torch.addmm(b, x, w)))(x, w, b) for x, w, b, y in sets]}
    for name, kernel in kernels.items():
        named[name] = [kernel.bind(x, w, b, y) for x, w, b, y in sets]
    times = {name: graph_time(calls) for name, calls in named.items()}
    for name, ms in times.items():
        print(f'{M}x{K}x{N} {name:20s} {ms * 1e3:9.1f} us {flop / ms / 1e9:7.1f} TF  {times["cublas"] / ms:.3f} of cublas', flush=True)


def main():
    files = [a for a in sys.argv[1:] if a.endswith(('.ptx', '.cubin'))]
    shapes = [tuple(map(int, a.split('x'))) for a in sys.argv[1:] if re.fullmatch(r'\d+x\d+x\d+', a)]
    shapes = shapes or [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (8192, 4096, 28672)]
    torch.cuda.init()
    torch.zeros(1, device='cuda')
    torch.backends.cuda.matmul.allow_tf32 = False
    kernels, plan = {}, None
    for name in files:
        image = open(name, 'rb').read()
        if name.endswith('.ptx'):
            plan = Plan(image.decode())
        kernels[os.path.basename(name)] = Kernel(plan, image + b'\0')
        print(f'{name}: loaded in {kernels[os.path.basename(name)].load_ms:.0f} ms', flush=True)
    good = True
    for name, kernel in kernels.items():
        print(f'-- {name}')
        good &= verify(kernel, [(128, 64, 256), (256, 256, 512), (1000, 264, 1032), (136, 4104, 8200), (2040, 520, 3336), (4096, 1024, 2048)])
    if good:
        for shape in shapes:
            measure(kernels, *shape)
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()

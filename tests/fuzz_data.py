"""Tensors of every element type in .safetensors files, and what a fuzzed kernel gets for a name."""
import json
import zlib

import numpy as np

STORED = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "e4m3": "F8_E4M3", "e5m2": "F8_E5M2",
          "bool": "BOOL", **{f"{s}{n}": f"{s.upper()}{n}" for s in "iu" for n in (8, 16, 32, 64)}}
NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16, "e4m3": np.uint8,
         "e5m2": np.uint8, "bool": np.uint8,
         **{f"{s}{n}": np.dtype(f"{s}{n // 8}") for s in "iu" for n in (8, 16, 32, 64)}}


def _eight_bits(dtype):
    """The value of each byte."""
    e_bits, m_bits, bias = (4, 3, 7) if dtype == "e4m3" else (5, 2, 15)
    out = np.zeros(256)
    for b in range(256):
        e, m = b >> m_bits & (1 << e_bits) - 1, b & (1 << m_bits) - 1
        v = m * 2.0 ** (1 - bias - m_bits) if e == 0 else (1 + m / 2**m_bits) * 2.0 ** (e - bias)
        if dtype == "e4m3" and b & 127 == 127:
            v = np.nan
        if dtype == "e5m2" and e == 31:
            v = np.nan if m else np.inf
        out[b] = -v if b & 128 else v
    return out


BYTES = {t: _eight_bits(t) for t in ("e4m3", "e5m2")}


def decoded(raw, dtype):
    if dtype == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in BYTES:
        return BYTES[dtype][raw]
    return raw.astype(np.float64) if raw.dtype.kind == "f" else raw


def encoded(values, dtype):
    """Of values that the type has."""
    if dtype == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in BYTES:
        table = {v: b for b, v in reversed(list(enumerate(BYTES[dtype]))) if v == v}
        return np.vectorize(table.__getitem__, otypes=[np.uint8])(values) if values.size else values.astype(np.uint8)
    return np.asarray(values).astype(NUMPY[dtype])


def made(name, dtype, shape, seed):
    """What a parameter of this name holds."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    size = int(np.prod(shape, dtype=np.int64))
    letter, is_float = name[0], dtype in ("f16", "bf16", "f32", "f64", "e4m3", "e5m2")
    if letter == "w":
        bits = rng.integers(0, 256, size * np.dtype(NUMPY[dtype]).itemsize, np.uint8)
        if dtype == "bool":
            return (bits & 1).reshape(shape)
        raw = bits.view(NUMPY[dtype])
        if is_float and dtype not in BYTES:  # half of them of a size that is not extreme
            near = rng.standard_normal(size) * rng.choice([0.1, 1, 10, 300], size)
            raw = np.where(rng.random(size) < 0.5, raw, encoded(near.astype(NUMPY[dtype] if dtype != "bf16" else np.float32), dtype))
        return raw.reshape(shape)
    if letter == "i":
        values = rng.integers(-2, 40, size)
    elif letter == "p":
        values = rng.permutation(size)
    elif letter == "s":
        values = np.sort(rng.integers(0, 46, size))
    elif dtype == "bool":
        values = rng.integers(0, 2, size)
    elif is_float:
        values = rng.integers(-8, 9, size) // (1 if rng.random() < 0.5 else 2) / 4
        values = np.where(np.abs(values) == 1.75, 0, values)  # 7 quarters need three bits
    else:
        values = rng.integers(0, 9, size) if dtype[0] == "u" else rng.integers(-8, 9, size)
    return encoded(values, dtype).reshape(shape)


def write(path, tensors):
    """tensors: name -> (dtype, array of its bits)"""
    header, blobs, at = {}, [], 0
    for name, (dtype, raw) in tensors.items():
        blob = np.ascontiguousarray(raw).tobytes()
        header[name] = {"dtype": STORED[dtype], "shape": list(raw.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def read(path):
    """name -> (dtype, array of its bits)"""
    with open(path, "rb") as f:
        data = f.read()
    n = int.from_bytes(data[:8], "little")
    names = {v: k for k, v in STORED.items()}
    out = {}
    for name, entry in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        dtype = names[entry["dtype"]]
        lo, hi = (8 + n + o for o in entry["data_offsets"])
        out[name] = dtype, np.frombuffer(data[lo:hi], NUMPY[dtype]).reshape(entry["shape"])
    return out

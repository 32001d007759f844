"""Tensors of every element type in memory, in several layouts, with a pattern around their elements."""

import os

import numpy as np

PATTERN = 0xA5
# Bytes around a buffer in a GPU's memory; keeps its alignment. Without it memcheck sees what is read past an end.
GUARD = 0 if os.environ.get("FUSE_CONFORMANCE_EXACT") else 256
# the carrier of an element in a buffer; packed types have one nibble to an entry until they are packed
CARRIER = {
    "bool": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16,
    "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "e4m3": np.uint8, "e5m2": np.uint8,
    "i4": np.uint8, "u4": np.uint8,
}  # fmt: skip
PACKED = {"i4": 0, "u4": 1}  # DLPack codes
FLOAT = ("f16", "bf16", "f32", "f64", "e4m3", "e5m2")


def _decode8(dtype):
    """The 256 values of an 8-bit float."""
    man, bias = {"e4m3": (3, 7), "e5m2": (2, 15)}[dtype]
    bits = np.arange(256)
    exponent, fraction = (bits & 127) >> man, bits & ((1 << man) - 1)
    value = np.where(
        exponent == 0,
        np.ldexp(fraction.astype(float), 1 - bias - man),
        np.ldexp(1 + fraction / (1 << man), exponent - bias),
    )
    if dtype == "e4m3":
        value[(bits & 127) == 127] = np.nan
    else:
        value = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(bits < 128, value, -value)


_TABLE8 = {t: _decode8(t) for t in ("e4m3", "e5m2")}


def encode(dtype, values):
    """Values that the type has, as carriers."""
    if dtype == "bf16":
        return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype in _TABLE8:
        table = np.where(np.isnan(_TABLE8[dtype]), np.inf, _TABLE8[dtype])[:128]
        at = np.searchsorted(table, np.abs(values))
        return (at | np.where(np.signbit(values), 128, 0)).astype(np.uint8)
    if dtype in PACKED:
        return (np.asarray(values, np.int64) & 15).astype(np.uint8)
    return np.asarray(values).astype(CARRIER[dtype])


def decode(dtype, carriers):
    if dtype == "bf16":
        return (carriers.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in _TABLE8:
        return _TABLE8[dtype][carriers]
    if dtype == "i4":
        return (carriers.astype(np.int64) ^ 8) - 8
    if dtype in FLOAT:
        return carriers.astype(np.float64)
    return carriers if carriers.dtype == np.uint64 else carriers.astype(np.int64)


# (lead, gap after each line, step of the last dim, order of dims reversed, first dim counted from its end)
LAYOUTS = {
    "dense": (0, 0, 1, False, False),
    "slice": (3, 5, 1, False, False),
    "transposed": (0, 1, 1, True, False),
    "strided": (2, 1, 2, False, True),
}


class Held:
    """A tensor in a buffer of its own: `values` in, `read()` out, `tensor` for fuse_rt.

    On a GPU (`device`) the buffer has a copy there, and `fetch()` brings back what is in it. With `words` its size
    there is a multiple of 4 bytes: what is smaller than a word, and written alone, is written by a CAS of its word.
    """

    def __init__(self, dtype, shape, layout="dense", values=None, device=None, words=False):
        lead, gap, step, transposed, reverse = LAYOUTS[layout]
        if dtype in PACKED:  # rows of whole bytes
            lead, gap, step, transposed, reverse = 2 * lead, shape[-1] % 2 if shape else 0, 1, False, False
        self.dtype, self.shape = dtype, tuple(shape)
        order = range(len(shape)) if transposed else reversed(range(len(shape)))
        self.strides = [0] * len(shape)
        n, reach = step, 0
        for at, dim in enumerate(order):
            self.strides[dim] = n
            reach += max(shape[dim] - 1, 0) * n
            n = n * max(shape[dim], 1) + (gap if at == 0 else 0)
        size = lead + reach + 1 + (4 if GUARD and layout != "dense" else 0)
        size += size % 2 if GUARD or dtype in PACKED else 0
        first = lead
        if reverse and len(shape) and shape[0] > 1:
            first += (shape[0] - 1) * self.strides[0]
            self.strides[0] = -self.strides[0]
        self.at = np.full(self.shape, first, np.int64)
        for dim, stride in enumerate(self.strides):
            line = np.arange(shape[dim], dtype=np.int64) * stride
            self.at += line.reshape([-1 if d == dim else 1 for d in range(len(shape))])
        if dtype in PACKED:
            self.buffer = np.full(size // 2, PATTERN, np.uint8)
        else:
            bytes_ = np.full(size * np.dtype(CARRIER[dtype]).itemsize, PATTERN, np.uint8)
            self.buffer = bytes_.view(CARRIER[dtype])
        if values is not None:
            self._write(encode(dtype, np.broadcast_to(values, self.shape)))
        self.before = self.buffer.copy()
        self.device, self.memory, self.spoilt = device, None, False
        if device is not None and device.is_cuda:
            end = bytes([PATTERN]) * (-self.buffer.nbytes % 4 if words else 0) + self._around()
            self.memory = device.memory(GUARD + self.buffer.nbytes + len(end))
            self.memory.write(self._around() + self.buffer.tobytes() + end)
        self.tensor = self._describe(first)

    @staticmethod
    def _around():
        return bytes([PATTERN]) * GUARD

    def fetch(self):
        if self.memory is None:
            return
        data, end = self.memory.read(), GUARD + self.buffer.nbytes
        self.spoilt = any(byte != PATTERN for byte in data[:GUARD] + data[end:])
        self.buffer = np.frombuffer(data[GUARD:end], self.buffer.dtype)
        self.memory.close()

    def _write(self, carriers):
        if self.dtype in PACKED:
            self.buffer = _pack(self._unpacked(), self.at, carriers)
        else:
            self.buffer[self.at] = carriers

    def _unpacked(self, buffer=None):
        b = self.buffer if buffer is None else buffer
        return np.stack([b & 15, b >> 4], 1).reshape(-1)

    def _describe(self, first):
        import fuse_rt  # not at the top: compiling for GPUs needs no run time

        on = self.device if self.memory else None
        address = self.memory.address + GUARD if self.memory else self.buffer.ctypes.data
        if self.dtype not in PACKED:
            address += first * self.buffer.itemsize
            return fuse_rt.Tensor(address, self.dtype, self.shape, self.strides, on)
        made = fuse_rt.Tensor(address + first // 2, "u8", self.shape, self.strides, on)
        made._tensor.dtype.code, made._tensor.dtype.bits = PACKED[self.dtype], 4
        return made

    def _carriers(self, buffer):
        return self._unpacked(buffer)[self.at] if self.dtype in PACKED else buffer[self.at]

    def read(self):
        return decode(self.dtype, self._carriers(self.buffer))

    def kept(self):
        """Elements whose bytes are as they were."""
        same = self._carriers(self.buffer) == self._carriers(self.before)
        if self.dtype in FLOAT and self.dtype not in ("bf16", "e4m3", "e5m2"):  # the pattern is no NaN
            assert not np.isnan(self._carriers(self.before)).any()
        return same

    def unchanged(self):
        return not self.spoilt and self.buffer.tobytes() == self.before.tobytes()

    def guarded(self):
        """Nothing but elements has changed."""
        if self.dtype in PACKED:
            want = _pack(self._unpacked(self.before), self.at, self._carriers(self.buffer))
        else:
            want = self.before.copy()
            want[self.at] = self.buffer[self.at]
        return not self.spoilt and want.tobytes() == self.buffer.tobytes()


def _pack(nibbles, at, carriers):
    nibbles = nibbles.copy()
    nibbles[at] = carriers
    pairs = nibbles.reshape(-1, 2)
    return (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8)

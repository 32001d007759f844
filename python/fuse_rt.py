"""Kernels compiled by fusec, from Python: libfuse_rt through ctypes, without dependencies.

    import fuse_rt, torch

    device = fuse_rt.Device("cuda")
    module = device.module_from_file("softmax.fk", defines={"T": "bf16"})
    softmax = module.kernel("softmax_rows")

    x = torch.randn(1000, 4096, device="cuda", dtype=torch.bfloat16)
    y = softmax(x=x)                     # outputs that are not given are allocated and returned
    softmax(x=x, y=torch.empty_like(x))  # or given

Tensors are whatever numpy or torch have, or any object with `__dlpack__`. Strides may be anything;
nothing is copied. `None` is an absent optional tensor. Scalars are Python's or numpy's. Element types
that several instances of a kernel differ in are chosen by the tensors given.

Errors are exceptions of type FuseError (what libfuse_rt refuses, with its message and status) or
TypeError (what is no argument at all). Kernels on CUDA run asynchronously, on torch's current stream
unless `stream` says otherwise: an error inside one is raised by a later call, at the latest by
Device.synchronize. On "cpu", "sim" and "eval" a call returns when it is done.

libfuse_rt.so is looked for in: the file that the environment variable FUSE_RT_LIBRARY names, the
folder of this file, then where the loader looks. It finds libfusec.so, needed to compile source, next to
itself (or where FUSE_COMPILER says).

Thread-safety is that of libfuse_rt: everything may be called from several threads at once.
"""

import ctypes
import numbers
import os
import sys

__all__ = [
    "Device",
    "Module",
    "Kernel",
    "Launch",
    "LaunchInfo",
    "Memory",
    "Tensor",
    "FuseError",
    "cuda_device_count",
    "version",
]

_MAX_RANK = 8
_TENSOR, _INT, _FLOAT, _ABSENT = range(4)  # FuseRtArgKind
_IN, _OUT, _INOUT = range(3)  # FuseRtMode
_CPU, _CUDA = 1, 2  # DLDeviceType


class FuseError(RuntimeError):
    """What libfuse_rt refused. `status` is its name ("no variant"), `str()` the message."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# --- the structures of fuse_rt.h and dlpack.h -------------------------------------------------------


class _DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int), ("device_id", ctypes.c_int32)]


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DeviceOptions(ctypes.Structure):
    _fields_ = [("compiler", ctypes.c_void_p), ("threads", ctypes.c_int), ("seed", ctypes.c_uint64)]


_FLAGS = ("no_fuse", "fast_math", "deterministic", "debug", "check", "line_info", "no_perf_notes")


class _Build(ctypes.Structure):
    _fields_ = (
        [
            ("defines", ctypes.POINTER(ctypes.c_char_p)),
            ("includes", ctypes.POINTER(ctypes.c_char_p)),
            ("kernel", ctypes.c_char_p),
            ("target", ctypes.c_char_p),
        ]
        + [(flag, ctypes.c_bool) for flag in _FLAGS]
        + [("opt_level", ctypes.c_int), ("message", ctypes.c_void_p), ("user", ctypes.c_void_p)]
        + [("warnings", ctypes.POINTER(ctypes.c_char_p))]
    )


class _Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class _Param(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("dtype", ctypes.c_char_p),
        ("mode", ctypes.c_int),
        ("optional", ctypes.c_bool),
        ("rank", ctypes.c_int),
        ("dims", ctypes.POINTER(_Dim)),
        ("has_default", ctypes.c_bool),
    ]


class _Arg(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("tensor", ctypes.POINTER(_DLTensor)),
        ("i", ctypes.c_int64),
        ("f", ctypes.c_double),
    ]


class _Info(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("variant", ctypes.c_int),
        ("launches", ctypes.c_int),
        ("workspace", ctypes.c_int64),
    ]


# --- the library ---------------------------------------------------------------------------------


def _open():
    named = os.environ.get("FUSE_RT_LIBRARY")
    here = os.path.dirname(os.path.abspath(__file__))
    beside = [os.path.join(here, name) for name in ("libfuse_rt.so.0", "libfuse_rt.so")]
    found = [named] if named else [path for path in beside if os.path.exists(path)]
    for path in found or ["libfuse_rt.so.0", "libfuse_rt.so"]:
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            error = e
    raise ImportError(f"libfuse_rt.so cannot be opened: {error} (set FUSE_RT_LIBRARY to the file)") from error


def _declare(lib):
    pointer, text, status = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    out = ctypes.POINTER(pointer)
    args = ctypes.POINTER(_Arg)
    functions = {
        "status_name": (text, [status]),
        "last_error": (text, []),
        "version": (text, []),
        "device_open": (status, [text, ctypes.POINTER(_DeviceOptions), out]),
        "device_close": (None, [pointer]),
        "device_name": (text, [pointer]),
        "device_target": (text, [pointer]),
        "device_dlpack": (_DLDevice, [pointer]),
        "cuda_device_count": (ctypes.c_int, []),
        "module_from_source": (
            status,
            [pointer, text, text, ctypes.c_size_t, ctypes.POINTER(_Build), out],
        ),
        "module_from_ptx": (status, [pointer, text, text, ctypes.c_size_t, out]),
        "module_from_file": (status, [pointer, text, ctypes.POINTER(_Build), out]),
        "module_close": (None, [pointer]),
        "module_messages": (text, [pointer]),
        "module_plan": (text, [pointer]),
        "kernel_find": (status, [pointer, text, out]),
        "kernel_count": (ctypes.c_int, [pointer]),
        "kernel_at": (pointer, [pointer, ctypes.c_int]),
        "kernel_name": (text, [pointer]),
        "kernel_variant_count": (ctypes.c_int, [pointer]),
        "kernel_param_count": (ctypes.c_int, [pointer]),
        "kernel_param": (ctypes.POINTER(_Param), [pointer, ctypes.c_int]),
        "launch": (status, [pointer, pointer, ctypes.c_int, args, ctypes.POINTER(_Info)]),
        "kernel_select": (status, [pointer, ctypes.c_int, args, out]),
        "kernel_shape": (
            status,
            [pointer, ctypes.c_int, args, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)],
        ),
        "alloc": (status, [pointer, ctypes.c_size_t, out]),
        "free": (status, [pointer, pointer]),
        "copy_to_device": (status, [pointer, pointer, pointer, ctypes.c_size_t, pointer]),
        "copy_to_host": (status, [pointer, pointer, pointer, ctypes.c_size_t, pointer]),
        "synchronize": (status, [pointer, pointer]),
    }
    for name, (result, parameters) in functions.items():
        f = getattr(lib, "fuse_rt_" + name)
        f.restype, f.argtypes = result, parameters
    return lib


_lib = _declare(_open())


def _check(status):
    if status:
        name = _lib.fuse_rt_status_name(status).decode()
        raise FuseError(name, _lib.fuse_rt_last_error().decode(errors="replace"))


def version():
    """The version of libfuse_rt."""
    return _lib.fuse_rt_version().decode()


def cuda_device_count():
    """The GPUs of this machine; 0 without a driver."""
    return _lib.fuse_rt_cuda_device_count()


# --- tensors -------------------------------------------------------------------------------------

# Names of numpy, ml_dtypes and torch -> (DLPack code, bits); fusec's own name beside each.
_DTYPES = {
    "bool": (6, 8, "bool"),
    "int8": (0, 8, "i8"),
    "int16": (0, 16, "i16"),
    "int32": (0, 32, "i32"),
    "int64": (0, 64, "i64"),
    "uint8": (1, 8, "u8"),
    "uint16": (1, 16, "u16"),
    "uint32": (1, 32, "u32"),
    "uint64": (1, 64, "u64"),
    "float16": (2, 16, "f16"),
    "bfloat16": (4, 16, "bf16"),
    "float32": (2, 32, "f32"),
    "float64": (2, 64, "f64"),
    "float8_e4m3fn": (10, 8, "e4m3"),
    "float8_e5m2": (12, 8, "e5m2"),
}
_NAMES = {fuse: name for name, (_, _, fuse) in _DTYPES.items()}


def _is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _describe(data, device, name, shape, strides):
    try:
        code, bits, _ = _DTYPES[name]
    except KeyError:
        raise TypeError(f"tensors of type {name} have no element type in fusec") from None
    rank = len(shape)
    array = ctypes.c_int64 * max(rank, 1)
    return _DLTensor(
        data or None, _DLDevice(*device), rank, _DLDataType(code, bits, 1), array(*shape), array(*strides), 0
    )


def _from_torch(t):
    cuda = t.device.type == "cuda"
    if not cuda and t.device.type != "cpu":
        raise TypeError(f"a tensor on {t.device}: only cpu and cuda are known")
    device = (_CUDA, t.device.index or 0) if cuda else (_CPU, 0)
    return _describe(t.data_ptr(), device, str(t.dtype)[6:], t.shape, t.stride())


def _from_numpy(a):
    if not a.dtype.isnative:
        raise TypeError("an array of foreign byte order")
    if any(s % a.itemsize for s in a.strides):
        raise TypeError("an array whose strides are no multiples of its element size")
    strides = [s // a.itemsize for s in a.strides]
    return _describe(a.ctypes.data, (_CPU, 0), a.dtype.name, a.shape, strides)


def _from_dlpack(value):
    capsule = value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # The managed tensor begins with the DLTensor; it lives as long as the capsule, which is not used up.
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    tensor._capsule = capsule
    return tensor


class Tensor:
    """A strided tensor in memory that someone else owns: `address` of its first element, `dtype` by
    fusec's name ("bf16"), strides in elements (None: dense). Without a device it is in host memory."""

    def __init__(self, address, dtype, shape, strides=None, device=None):
        if dtype not in _NAMES:
            raise TypeError(f"no element type `{dtype}`; there are {', '.join(_NAMES)}")
        if strides is None:
            strides, n = [], 1
            for size in reversed(shape):
                strides.insert(0, n)
                n *= size
        cuda = device is not None and device.is_cuda
        where = (_CUDA, device.ordinal) if cuda else (_CPU, 0)
        self._tensor = _describe(address, where, _NAMES[dtype], shape, strides)


def _tensor(value):
    if isinstance(value, Tensor):
        return value._tensor
    if _is_torch(value):
        return _from_torch(value)
    if _is_numpy(value):
        return _from_numpy(value)
    return _from_dlpack(value) if hasattr(value, "__dlpack__") else None


def _set_arg(arg, name, value, keep):
    arg.name = name.encode()
    if value is None:
        arg.kind = _ABSENT
        return
    tensor = _tensor(value)
    if tensor is not None:
        arg.kind, arg.tensor = _TENSOR, ctypes.pointer(tensor)
        keep.append(tensor)
    elif isinstance(value, numbers.Integral):
        if not -(2**63) <= int(value) < 2**63:
            raise TypeError(f"argument `{name}`: {value} does not fit 64 bits")
        arg.kind, arg.i = _INT, int(value)
    elif isinstance(value, numbers.Real):
        arg.kind, arg.f = _FLOAT, float(value)
    else:
        raise TypeError(f"argument `{name}` is neither a tensor nor a number: {type(value).__name__}")


def _empty_like(like, dtype, shape):
    name = _NAMES[dtype]
    if _is_torch(like):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=like.device)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        raise TypeError("outputs are allocated as torch or numpy tensors only: give them")
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes  # numpy has no such types of its own

        return numpy.empty(shape, dtype=getattr(ml_dtypes, name))
    return numpy.empty(shape, dtype=name)


# --- objects -------------------------------------------------------------------------------------


class _Owner:
    """Closes its handle once, when told to or when it is no longer used."""

    _close = None

    def close(self):
        """Frees it now. What was made of it must not be used after."""
        handle, self._handle = self.__dict__.get("_handle"), None
        if handle:
            self._close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if not sys.is_finalizing():
            self.close()


class Device(_Owner):
    """A device by name: "cuda", "cuda:1", "cpu", "cpu:x86-64-v3", "sim", "sim:sm_80", "eval".

    threads: of "cpu", 0 for one per core; seed: of "sim", picks the interleaving of warps, and of "eval",
    the order of iterations (0: as written).
    """

    _close = staticmethod(_lib.fuse_rt_device_close)

    def __init__(self, name, threads=0, seed=0):
        handle = ctypes.c_void_p()
        options = _DeviceOptions(None, threads, seed)
        _check(_lib.fuse_rt_device_open(name.encode(), ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle
        self.name = _lib.fuse_rt_device_name(handle).decode()
        self.target = _lib.fuse_rt_device_target(handle).decode()
        where = _lib.fuse_rt_device_dlpack(handle)
        self.is_cuda = where.device_type == _CUDA
        self.ordinal = where.device_id

    def module_from_source(self, source, name="<source>", **build):
        """Compiles .fk text. `build`: see module_from_file."""
        data = source.encode() if isinstance(source, str) else source
        handle = ctypes.c_void_p()
        options, _keep = _build(**build)
        _check(
            _lib.fuse_rt_module_from_source(
                self._handle, name.encode(), data, len(data), ctypes.byref(options), ctypes.byref(handle)
            )
        )
        return Module(self, handle)

    def module_from_ptx(self, ptx, name="<ptx>"):
        """Loads PTX that fusec wrote."""
        data = ptx.encode() if isinstance(ptx, str) else ptx
        handle = ctypes.c_void_p()
        _check(
            _lib.fuse_rt_module_from_ptx(self._handle, name.encode(), data, len(data), ctypes.byref(handle))
        )
        return Module(self, handle)

    def module_from_file(self, path, **build):
        """Compiles a .fk file or loads a .ptx file.

        build: defines={"T": "bf16", "kernel.NAME": 4}, includes=[folders], kernel="only this one",
        target="sm_80", opt_level=1..3, and the switches no_fuse, fast_math, deterministic, debug, check,
        line_info, no_perf_notes; check is of "eval" only, where a launch raises what it finds.
        warnings=["error", "no-overflow"]: what stands behind -W of fusec.
        """
        handle = ctypes.c_void_p()
        options, _keep = _build(**build)
        path = os.fspath(path).encode()
        _check(_lib.fuse_rt_module_from_file(self._handle, path, ctypes.byref(options), ctypes.byref(handle)))
        return Module(self, handle)

    def memory(self, size):
        """Memory of the device: Memory of `size` bytes."""
        return Memory(self, size)

    def synchronize(self, stream=None):
        """Waits for a stream, or for all work of the device; raises what a kernel did wrong."""
        _check(_lib.fuse_rt_synchronize(self._handle, _stream_handle(stream)))

    def __repr__(self):
        return f"<fuse_rt.Device {self.name} ({self.target})>"


def _build(defines=None, includes=None, kernel=None, target=None, opt_level=0, warnings=(), **flags):
    unknown = sorted(set(flags) - set(_FLAGS))
    if unknown:
        raise TypeError(f"unknown build option `{unknown[0]}`; there are {', '.join(_FLAGS)}")
    texts = []
    for name, value in (defines or {}).items():
        value = str(value).lower() if isinstance(value, bool) else str(value)
        texts.append(f"{name}={value}".encode())
    b = _Build(
        kernel=kernel and kernel.encode(), target=target and target.encode(), opt_level=opt_level, **flags
    )
    array = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
    folders = [os.fspath(folder).encode() for folder in includes or []]
    folder_array = (ctypes.c_char_p * (len(folders) + 1))(*folders, None)
    b.defines = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    b.includes = ctypes.cast(folder_array, ctypes.POINTER(ctypes.c_char_p))
    flag_array = (ctypes.c_char_p * (len(warnings) + 1))(*(flag.encode() for flag in warnings), None)
    b.warnings = ctypes.cast(flag_array, ctypes.POINTER(ctypes.c_char_p))
    return b, (array, folder_array, flag_array)


def _stream_handle(stream):
    if stream is None:
        return None
    return ctypes.c_void_p(getattr(stream, "cuda_stream", stream))


class Memory(_Owner):
    """Bytes of a device's memory, aligned to 256, not zeroed; freed with the object."""

    def __init__(self, device, size):
        self.device, self.size, self._handle = device, size, None
        handle = ctypes.c_void_p()
        _check(_lib.fuse_rt_alloc(device._handle, size, ctypes.byref(handle)))
        self._handle = handle
        self.address = handle.value or 0

    def _close(self, handle):
        _lib.fuse_rt_free(self.device._handle, handle)

    def write(self, data):
        """Copies bytes (at most `size`) to its beginning."""
        data = bytes(data)
        if len(data) > self.size:
            raise ValueError(f"{len(data)} bytes into memory of {self.size}")
        _check(_lib.fuse_rt_copy_to_device(self.device._handle, self._handle, data, len(data), None))

    def read(self):
        """Its bytes, when all work on the default stream is done."""
        data = ctypes.create_string_buffer(self.size)
        _check(_lib.fuse_rt_copy_to_host(self.device._handle, data, self._handle, self.size, None))
        return data.raw


class Module(_Owner):
    """Compiled code and its kernels; made by a Device, which it keeps alive."""

    _close = staticmethod(_lib.fuse_rt_module_close)

    def __init__(self, device, handle):
        self.device, self._handle = device, handle
        self.messages = _lib.fuse_rt_module_messages(handle).decode(errors="replace")
        self.plan = _lib.fuse_rt_module_plan(handle).decode(errors="replace")

    @property
    def kernels(self):
        """Names of the instances, in order of the source."""
        handles = (
            _lib.fuse_rt_kernel_at(self._handle, i) for i in range(_lib.fuse_rt_kernel_count(self._handle))
        )
        return [_lib.fuse_rt_kernel_name(h).decode() for h in handles]

    def kernel(self, name=None):
        """An instance ("axpy.f16") or a family ("axpy"); without a name the only one."""
        handle = ctypes.c_void_p()
        _check(_lib.fuse_rt_kernel_find(self._handle, name and name.encode(), ctypes.byref(handle)))
        return Kernel(self, handle)

    __getitem__ = kernel


class LaunchInfo:
    """What a launch did: the instance, its variant (0 is the most special), the grids started and the
    bytes of temporaries."""

    def __init__(self, info):
        self.kernel = info.kernel.decode()
        self.variant, self.launches, self.workspace = info.variant, info.launches, info.workspace

    def __repr__(self):
        return f"<{self.kernel} variant {self.variant}, {self.launches} launches, {self.workspace} bytes>"


class Kernel:
    """A kernel of a module. Calling it launches it.

    params: (name, is_tensor, dtype, mode, optional, dims) of each parameter, in the order of arguments
    by position; mode is "in", "out" or "inout"; dims are names, numbers or None.
    """

    def __init__(self, module, handle):
        self.module, self._handle = module, handle
        self.name = _lib.fuse_rt_kernel_name(handle).decode()
        self.variants = _lib.fuse_rt_kernel_variant_count(handle)
        self.params = []
        for i in range(_lib.fuse_rt_kernel_param_count(handle)):
            p = _lib.fuse_rt_kernel_param(handle, i).contents
            dims = []
            for d in range(p.rank if p.kind == 0 else 0):
                dim = p.dims[d]
                dims.append(dim.name.decode() if dim.name else dim.value if dim.value >= 0 else None)
            mode = ("in", "out", "inout")[p.mode] if p.kind == 0 else "in"
            self.params.append((p.name.decode(), p.kind == 0, p.dtype.decode(), mode, bool(p.optional), dims))

    def __call__(self, *args, stream=None, **named):
        """Launches. Outputs (not `inout` ones, not optional ones) that are missing are allocated like
        the first tensor given; returns them: None, one tensor, or a tuple."""
        launch, made = self._bind(args, named, allocate=True)
        launch(stream)
        return made[0] if len(made) == 1 else tuple(made) or None

    def prepare(self, *args, **named):
        """Binds arguments once, for many launches: a Launch. All outputs have to be given."""
        return self._bind(args, named, allocate=False)[0]

    def _bind(self, args, named, allocate):
        if len(args) > len(self.params):
            raise TypeError(f"{self.name} takes {len(self.params)} arguments, {len(args)} were given")
        values = {}
        for (name, *_), value in zip(self.params, args):
            values[name] = value
        for name, value in named.items():
            if name in values:
                raise TypeError(f"{self.name}: argument `{name}` is given twice")
            values[name] = value
        for name, is_tensor, _, mode, *_ in self.params:
            value = values.get(name) if is_tensor and mode != "in" else None
            if value is not None and _is_numpy(value) and not value.flags.writeable:
                raise TypeError(f"{self.name} writes `{name}`, and that array is read-only")
        made = self._allocate(values) if allocate else []
        return Launch(self, values), made

    def _allocate(self, values):
        missing = [
            i
            for i, (name, is_tensor, _, mode, optional, _) in enumerate(self.params)
            if is_tensor and mode == "out" and not optional and name not in values
        ]
        if not missing:
            return []
        known = Launch(self, values)
        chosen = ctypes.c_void_p()
        _check(_lib.fuse_rt_kernel_select(self._handle, known.count, known.args, ctypes.byref(chosen)))
        like = next((v for v in values.values() if _is_torch(v) or _is_numpy(v)), None)
        made = []
        for i in missing:
            shape = (ctypes.c_int64 * _MAX_RANK)()
            _check(_lib.fuse_rt_kernel_shape(chosen, known.count, known.args, i, shape))
            p = _lib.fuse_rt_kernel_param(chosen, i).contents
            made.append(_empty_like(like, p.dtype.decode(), tuple(shape[: p.rank])))
            values[self.params[i][0]] = made[-1]
        return made

    def __repr__(self):
        return f"<fuse_rt.Kernel {self.name} on {self.module.device.name}>"


class Launch:
    """A kernel with its arguments: a call launches it. Keeps the tensors alive.

    `info` is the LaunchInfo of the last call with `want_info`.
    """

    def __init__(self, kernel, values):
        self.kernel, self.info = kernel, None
        self._keep = [values]
        self.count = len(values)
        self.args = (_Arg * max(self.count, 1))()
        for arg, (name, value) in zip(self.args, values.items()):
            _set_arg(arg, name, value, self._keep)

    def __call__(self, stream=None, want_info=False):
        device = self.kernel.module.device
        if stream is None and device.is_cuda and "torch" in sys.modules:
            stream = sys.modules["torch"].cuda.current_stream(device.ordinal)
        info = _Info() if want_info else None
        _check(
            _lib.fuse_rt_launch(
                self.kernel._handle,
                _stream_handle(stream),
                self.count,
                self.args,
                ctypes.byref(info) if want_info else None,
            )
        )
        if want_info:
            self.info = LaunchInfo(info)
        return self.info

"""python/fuse_rt.py on the devices cpu and eval, with numpy.

Exits with 77, which ctest counts as skipped, where numpy is missing. FUSE_RT_LIBRARY and FUSE_COMPILER name
the libraries under test.
"""

import ctypes
import os
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
import fuse_rt  # noqa: E402

SOURCE = """
kernel axpy<T: float>(a: f32, x: T[N]) -> (inout y: T[N]) { y = a * x + y; }
kernel rows<T: float>(x: T[M, N], b: T[N]?, c: f32) -> (y: T[M, N], s: f32[M]) {
    y = x * c + b;
    s = sum[N](x);
}
kernel halves(x: f32[N]) -> (y: f32[H]) where N % 2 == 0, H == N / 2 {
    parallel h in tiles(H) { y[h] = x[2*h] + x[2*h + 1]; }
}
"""


class OnDevice:
    """The cases; a subclass names the device."""

    @classmethod
    def setUpClass(cls):
        cls.device = fuse_rt.Device(cls.name, threads=2)
        cls.module = cls.device.module_from_source(SOURCE, "t.fk", opt_level=1)

    def test_axpy(self):
        axpy = self.module.kernel("axpy")
        for dtype in (np.float16, np.float32):
            x = np.arange(1000, dtype=dtype) % 17
            y = np.ones(1000, dtype=dtype)
            want = 2.5 * x.astype(np.float64) + 1
            self.assertIsNone(axpy(a=2.5, x=x, y=y))
            np.testing.assert_array_equal(y, want.astype(dtype))

    def test_arrays_that_are_read_only(self):
        axpy = self.module.kernel("axpy")
        x, y = np.ones(5, dtype=np.float32), np.ones(5, dtype=np.float32)
        x.flags.writeable = y.flags.writeable = False
        with self.assertRaisesRegex(TypeError, "axpy writes `y`, and that array is read-only"):
            axpy(a=2.5, x=x, y=y)
        np.testing.assert_array_equal(y, np.ones(5))
        y = np.ones(5, dtype=np.float32)
        axpy(a=2.5, x=x, y=y)
        np.testing.assert_array_equal(y, np.full(5, 3.5))

    def test_outputs_are_allocated(self):
        rows = self.module["rows"]
        x = np.random.default_rng(1).standard_normal((7, 33)).astype(np.float32)
        b = np.arange(33, dtype=np.float32)
        y, s = rows(x, b, 2)
        np.testing.assert_allclose(y, x * 2 + b, rtol=1e-6)
        np.testing.assert_allclose(s, x.sum(1, dtype=np.float64), rtol=1e-4, atol=1e-5)
        self.assertEqual(y.dtype, np.float32)
        y, _ = rows(x=x, b=None, c=np.float32(3))
        np.testing.assert_allclose(y, x * 3, rtol=1e-6)
        y, _ = rows(x=x.astype(np.float16), c=1.0)
        self.assertEqual(y.dtype, np.float16)

    def test_strides(self):
        rows = self.module["rows"]
        big = np.zeros((20, 90), dtype=np.float32)
        big[:] = np.arange(90)
        for x in (big[:, 3:40], big[::2, 1:80:3], big.T, big[::-1], np.broadcast_to(big[0], (4, 90))):
            out = np.full((x.shape[0], x.shape[1] + 5), np.nan, dtype=np.float32)
            before = out.copy()
            y, s = out[:, 2:-3], np.empty(x.shape[0], dtype=np.float32)
            launch = rows.prepare(x=x, c=0.5, y=y, s=s)
            info = launch(want_info=True)
            self.assertEqual(info.kernel, "rows.f32")
            np.testing.assert_array_equal(y, x * np.float32(0.5))
            before[:, 2:-3] = y
            np.testing.assert_array_equal(out, before)

    def test_shapes(self):
        halves = self.module["halves"]
        y = halves(np.arange(10, dtype=np.float32))
        np.testing.assert_array_equal(y, [1, 5, 9, 13, 17])
        with self.assertRaisesRegex(fuse_rt.FuseError, "N % 2 == 0"):
            halves(np.zeros(9, dtype=np.float32), np.zeros(4, dtype=np.float32))
        self.assertEqual(halves(np.zeros(0, dtype=np.float32)).shape, (0,))

    def test_parameters(self):
        rows = self.module["rows"]
        self.assertEqual([p[0] for p in rows.params], ["x", "b", "c", "y", "s"])
        self.assertEqual(rows.params[1], ("b", True, "", "in", True, ["N"]))
        self.assertEqual(rows.params[4][2:4], ("f32", "out"))
        self.assertIn("axpy.bf16", self.module.kernels)

    def test_errors(self):
        rows = self.module["rows"]
        x = np.zeros((2, 3), dtype=np.float32)
        with self.assertRaises(fuse_rt.FuseError) as e:
            rows(x=x, b=np.zeros(4, dtype=np.float32), c=1)
        self.assertEqual(e.exception.status, "invalid argument")
        self.assertIn("`b`", str(e.exception))
        with self.assertRaises(fuse_rt.FuseError) as e:
            rows(x=x.astype(np.float64), c=1)
        self.assertEqual(e.exception.status, "no variant")
        with self.assertRaises(TypeError):
            rows(x=x, c="1")
        with self.assertRaises(TypeError):
            rows(x, x=x, c=1)
        with self.assertRaises(TypeError):
            rows(x=x.astype(np.complex64), c=1)
        with self.assertRaises(fuse_rt.FuseError):
            self.module.kernel("nothing")

    def test_bf16(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("needs ml_dtypes")
        x = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
        y, s = self.module["rows"](x=x, c=2)
        self.assertEqual(y.dtype, x.dtype)
        np.testing.assert_array_equal(y.astype(np.float32), 2 * x.astype(np.float32))
        np.testing.assert_array_equal(s, [6, 22, 38])

    def test_memory(self):
        x = np.arange(20, dtype=np.float32)
        memory = self.device.memory(x.nbytes)
        memory.write(x.tobytes())
        # Every second element, from the end.
        view = fuse_rt.Tensor(memory.address + 4 * 19, "f32", (10,), (-2,), self.device)
        y = np.zeros(10, dtype=np.float32)
        self.module["axpy"](a=1, x=view, y=y)
        np.testing.assert_array_equal(y, x[::-2])
        self.assertEqual(memory.read(), x.tobytes())
        with self.assertRaises(ValueError):
            memory.write(bytes(81))
        with self.assertRaises(TypeError):
            fuse_rt.Tensor(memory.address, "float", (10,))

    def test_dlpack(self):
        class Wrapped:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self):
                return self.array.__dlpack__()

        x = np.arange(6, dtype=np.float32)
        y = np.zeros(6, dtype=np.float32)
        self.module["axpy"](a=3, x=Wrapped(x), y=Wrapped(y))
        np.testing.assert_array_equal(y, 3 * x)


class OnCpu(OnDevice, unittest.TestCase):
    name = "cpu"


class OnEval(OnDevice, unittest.TestCase):
    name = "eval"


class Abi(unittest.TestCase):
    STRUCTURES = {
        "DLTensor": fuse_rt._DLTensor,
        "FuseRtDeviceOptions": fuse_rt._DeviceOptions,
        "FuseRtBuild": fuse_rt._Build,
        "FuseRtDim": fuse_rt._Dim,
        "FuseRtParam": fuse_rt._Param,
        "FuseRtArg": fuse_rt._Arg,
        "FuseRtLaunchInfo": fuse_rt._Info,
    }

    @unittest.skipUnless(
        "FUSE_ABI_PROGRAM" in os.environ, "FUSE_ABI_PROGRAM names the program of python_abi.c"
    )
    def test_structures(self):
        """The structures are those of the C headers, whole."""
        text = subprocess.run([os.environ["FUSE_ABI_PROGRAM"]], capture_output=True, text=True, check=True)
        seen = {name: [] for name in self.STRUCTURES}
        for line in text.stdout.splitlines():
            of, member, number = line.split()
            structure = self.STRUCTURES[of]
            if member == "-":
                self.assertEqual(ctypes.sizeof(structure), int(number), of)
            else:
                self.assertEqual(getattr(structure, member).offset, int(number), line)
                seen[of].append(member)
        for name, members in seen.items():
            self.assertEqual(members, [field[0] for field in self.STRUCTURES[name]._fields_])


class Modules(unittest.TestCase):
    def test_errors_of_the_source(self):
        device = fuse_rt.Device("cpu")
        with self.assertRaises(fuse_rt.FuseError) as e:
            device.module_from_source("kernel k(x: f32[N]) -> (y: f32[N]) { y = z; }", "bad.fk")
        self.assertIn("bad.fk:1:42: error[", str(e.exception))
        with self.assertRaises(TypeError):
            device.module_from_source(SOURCE, unknown=1)
        with self.assertRaises(fuse_rt.FuseError):
            fuse_rt.Device("tpu")

    def test_a_file_and_definitions(self):
        with fuse_rt.Device("cpu") as device:
            path = os.path.join(ROOT, "examples", "softmax.fk")
            with device.module_from_file(
                path, defines={"T": "f32"}, kernel="softmax_rows", opt_level=1
            ) as module:
                self.assertEqual(module.kernels, ["softmax_rows.f32"])
                x = np.random.default_rng(2).standard_normal((5, 77)).astype(np.float32)
                e = np.exp(x - x.max(1, keepdims=True))
                np.testing.assert_allclose(module.kernel()(x), e / e.sum(1, keepdims=True), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()

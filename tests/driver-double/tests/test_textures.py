"""Arrays, texture objects and surface objects of the fake driver."""

import ctypes
import unittest

from double import DriverTest, driver, kernel, launch, load, make, read, run_python, write
from test_hip import Hip
from test_memory import SIDE

FLOAT = ctypes.c_float
ARRAY = 3


class Array3D(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
        *((name, ctypes.c_uint) for name in ("format", "channels", "flags")),
    ]


class Resource(ctypes.Structure):
    """CUDA_RESOURCE_DESC."""

    _fields_ = [
        ("type", ctypes.c_uint),
        ("object", ctypes.c_uint64),
        ("format", ctypes.c_uint),
        ("channels", ctypes.c_uint),
        ("extent", ctypes.c_size_t * 3),
        ("reserved", ctypes.c_uint64 * 11),
        ("flags", ctypes.c_uint),
    ]


class Texture(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = [
        ("address", ctypes.c_uint * 3),
        ("filter", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("rest", ctypes.c_uint * 21),
    ]


class Copy(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        *((side + name, ctypes.c_size_t) for side in "sd" for name in SIDE),
        *((name, ctypes.c_size_t) for name in ("width", "height", "depth")),
    ]


READ = """
extern "C" __global__ void read(float *out, cudaTextureObject_t texture) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 0);
}
extern "C" __global__ void fill(cudaSurfaceObject_t surface) {
    surf2Dwrite((float)threadIdx.x, surface, threadIdx.x * 4, 0);
}
"""


class Textures(DriverTest):
    def array(self, width=4, height=2, flags=0):
        return make("cuArray3DCreate_v2", Array3D(width, height, 0, 0x20, 1, flags))

    def texture(self, array, **fields):
        return make("cuTexObjectCreate", Resource(0, array), Texture(**fields), None)

    def upload(self, array, values):
        """Copies values to the first row of an array."""
        row = (FLOAT * len(values))(*values)
        copy = Copy(stype=1, shost=ctypes.addressof(row), dtype=ARRAY, darr=array)
        copy.width, copy.height, copy.depth = ctypes.sizeof(row), 1, 1
        self.ok("cuMemcpy3D_v2", copy)

    def read(self, texture, count=4):
        out = self.allocate(4 * count)
        status = launch(kernel(load(READ), "read"), out, texture, block=(count, 1, 1))
        assert status == 0
        return out

    def test_kernels_read_arrays(self):
        array = self.array()
        self.upload(array, [1, 2, 3, 4])
        texture = self.texture(array, address=(3, 3, 3))
        assert read(self.read(texture, 5), FLOAT, 5) == [1, 2, 3, 4, 0]
        self.ok("cuTexObjectDestroy", texture)
        self.ok("cuArrayDestroy", array)

    def test_copies_to_arrays_wait_in_their_stream(self):
        array, stream = self.array(), self.stream()
        self.upload(array, [0] * 4)
        self.ok("cuCtxSynchronize")
        pinned = self.pinned(16)
        ctypes.memmove(pinned, (FLOAT * 4)(1, 2, 3, 4), 16)
        copy = Copy(stype=1, shost=pinned, dtype=ARRAY, darr=array, width=16, height=1, depth=1)
        self.ok("cuMemcpy3DAsync_v2", copy, stream)
        # The kernel runs on another stream, and is not ordered after the copy.
        out, texture = self.allocate(16), self.texture(array)
        function, other = kernel(load(READ), "read"), self.stream()
        assert launch(function, out, texture, block=(4, 1, 1), stream=other) == 0
        self.ok("cuStreamSynchronize", other)
        assert read(out, FLOAT, 4) == [0] * 4
        self.ok("cuStreamSynchronize", stream)
        assert launch(function, out, texture, block=(4, 1, 1), stream=other) == 0
        self.ok("cuStreamSynchronize", other)
        assert read(out, FLOAT, 4) == [1, 2, 3, 4]

    def test_copies_stay_inside(self):
        array, memory = self.array(), self.allocate(64)
        copy = Copy(stype=2, sdev=memory, dtype=ARRAY, darr=array, width=16, height=2, depth=1)
        self.ok("cuMemcpy3D_v2", copy)
        wrong = {"dx": 4, "dy": 1, "dz": 1, "width": 20, "height": 3, "depth": 2}
        for field, value in wrong.items():
            before = getattr(copy, field)
            setattr(copy, field, value)
            self.fails(1, "cuMemcpy3D_v2", copy)
            setattr(copy, field, before)
        # Widths that are not whole texels.
        copy.dx, copy.width = 2, 4
        self.fails(1, "cuMemcpy3D_v2", copy)
        copy.darr += 1
        self.ends("array", "cuMemcpy3D_v2", copy)

    def test_handles_are_looked_up(self):
        array = self.array(flags=2)
        texture = self.texture(array)
        surface = make("cuSurfObjectCreate", Resource(0, array))
        for name, wrong in (
            ("cuArrayDestroy", (0, array + 1, texture)),
            ("cuTexObjectDestroy", (0, texture + 1, surface, array)),
            ("cuSurfObjectDestroy", (0, surface + 1, texture)),
        ):
            for handle in wrong:
                if name == "cuArrayDestroy" and handle:
                    self.ends("array", name, handle)
                else:
                    self.fails(400 if name == "cuArrayDestroy" else 1, name, handle)
        # These are not memory of the program.
        for address in (texture, surface):
            self.fails(1, "cuMemcpyHtoD_v2", address, (FLOAT * 1)(), 4)
            self.fails(1, "cuMemFree_v2", address)
        assert driver.double_live(b"arrays") == 1
        assert driver.double_live(b"texture_objects") == 2
        self.ok("cuTexObjectDestroy", texture)
        self.ok("cuSurfObjectDestroy", surface)
        self.ok("cuArrayDestroy", array)
        self.fails(1, "cuTexObjectDestroy", texture)
        self.ends("array", "cuArrayDestroy", array)
        self.ends(
            "array", "cuTexObjectCreate", ctypes.c_uint64(), Resource(0, array), Texture(), None
        )

    def test_what_does_not_exist_is_refused(self):
        for shape in (
            (0, 2, 0, 0x20, 1, 0),
            (4, 2, 0, 0x21, 1, 0),
            (4, 2, 0, 0x20, 3, 0),
            (4, 0, 2, 0x20, 1, 0),
            (4, 2, 0, 0x20, 1, 1),
            (4, 2, 6, 0x20, 1, 4),
            (4, 4, 5, 0x20, 1, 4),
            (4, 4, 8, 0x20, 1, 5),
            (4, 2, 2, 0x20, 1, 8),
            (1 << 18, 0, 0, 0x20, 1, 0),
        ):
            self.fails(1, "cuArray3DCreate_v2", ctypes.c_uint64(), Array3D(*shape))
        memory = self.allocate(1024)
        for resource in (
            Resource(2, memory + 4, 0x20, 1, (16, 0, 0)),
            Resource(2, memory, 0x20, 1, (1028, 0, 0)),
            Resource(2, memory, 0x20, 1, (3, 0, 0)),
            Resource(3, memory, 0x20, 1, (4, 2, 20)),
            Resource(3, memory, 0x20, 1, (16, 2, 32)),
            Resource(1, memory),
        ):
            self.fails(1, "cuTexObjectCreate", ctypes.c_uint64(), resource, Texture(), None)
        array = self.array()
        for fields in ({"address": (4, 0, 0)}, {"filter": 2}, {"flags": 4}):
            texture = Texture(**fields)
            self.fails(1, "cuTexObjectCreate", ctypes.c_uint64(), Resource(0, array), texture, None)
        whole = make("cuArray3DCreate_v2", Array3D(4, 2, 0, 0x03, 1, 0))
        texture = Texture(filter=1)
        self.fails(1, "cuTexObjectCreate", ctypes.c_uint64(), Resource(0, whole), texture, None)
        # The array was not created for surfaces.
        self.fails(1, "cuSurfObjectCreate", ctypes.c_uint64(), Resource(0, array))

    def test_arrays_count_as_memory(self):
        before = driver.double_live(b"device_bytes")
        array = self.array()
        assert driver.double_live(b"device_bytes") >= before + 32
        shape = Array3D(65536, 65536, 0, 0x20, 4, 0)
        self.fails(2, "cuArray3DCreate_v2", ctypes.c_uint64(), shape)
        self.ok("cuArrayDestroy", array)
        assert driver.double_live(b"device_bytes") == before

    def test_a_context_takes_all_with_it(self):
        array = self.array(flags=2)
        self.texture(array)
        make("cuSurfObjectCreate", Resource(0, array))
        self.ok("cuDevicePrimaryCtxReset_v2", 0)
        assert driver.double_live(b"arrays") == driver.double_live(b"texture_objects") == 0

    def test_surfaces_write(self):
        array = self.array(flags=2)
        surface = make("cuSurfObjectCreate", Resource(0, array))
        assert launch(kernel(load(READ), "fill"), surface, block=(4, 1, 1)) == 0
        assert read(self.read(self.texture(array)), FLOAT, 4) == [0, 1, 2, 3]

    def test_linear_memory(self):
        memory = self.allocate(1024)
        write(memory, FLOAT, [5, 6, 7, 8])
        resource = Resource(3, memory, 0x20, 1, (4, 2, 512))
        texture = make("cuTexObjectCreate", resource, Texture(), None)
        assert read(self.read(texture), FLOAT, 4) == [5, 6, 7, 8]


class Destroyed(unittest.TestCase):
    def test_reads_of_what_is_gone_fail(self):
        for gone in ("cuTexObjectDestroy, texture", "cuArrayDestroy, array"):
            name, handle = gone.split(", ")
            run_python(
                f"""
                from test_textures import *
                driver.cuInit(0)
                call("cuCtxSetCurrent", make("cuDevicePrimaryCtxRetain", 0))
                array = make("cuArray3DCreate_v2", Array3D(4, 2, 0, 0x20, 1, 0))
                texture = make("cuTexObjectCreate", Resource(0, array), Texture(), None)
                out = make("cuMemAlloc_v2", 16)
                function = kernel(load(READ), "read")
                assert launch(function, out, texture) == 0
                assert call("cuCtxSynchronize") == 0
                assert launch(function, out, texture) == 0
                assert call({name!r}, {handle}) == 0
                assert call("cuCtxSynchronize") == 700
                """
            )

    def test_queued_copies_to_what_is_gone_fail(self):
        run_python(
            """
            from test_textures import *
            driver.cuInit(0)
            call("cuCtxSetCurrent", make("cuDevicePrimaryCtxRetain", 0))
            array = make("cuArray3DCreate_v2", Array3D(4, 2, 0, 0x20, 1, 0))
            memory = make("cuMemAlloc_v2", 16)
            copy = Copy(stype=2, sdev=memory, dtype=3, darr=array, width=16, height=1, depth=1)
            assert call("cuMemcpy3DAsync_v2", copy, 0) == 0
            assert call("cuArrayDestroy", array) == 0
            assert call("cuCtxSynchronize") == 700
            """
        )


class Extent(ctypes.Structure):
    """hipPos and hipExtent."""

    _fields_ = [(name, ctypes.c_size_t) for name in "xyz"]


class Pitched(ctypes.Structure):
    """hipPitchedPtr."""

    _fields_ = [("address", ctypes.c_uint64), *((n, ctypes.c_size_t) for n in ("pitch", "x", "y"))]


class Parameters(ctypes.Structure):
    """hipMemcpy3DParms."""

    _fields_ = [
        ("from_array", ctypes.c_uint64),
        ("from_start", Extent),
        ("from_memory", Pitched),
        ("to_array", ctypes.c_uint64),
        ("to_start", Extent),
        ("to_memory", Pitched),
        ("extent", Extent),
        ("kind", ctypes.c_uint),
    ]


class OnHip(unittest.TestCase):
    def setUp(self):
        self.hip = Hip(6)
        assert self.hip("hipInit", 0) == 0

    def test_extents_count_texels(self):
        hip = self.hip
        array = hip.make("hipArray3DCreate", Array3D(3, 2, 0, 0x20, 2, 0))
        row = (FLOAT * 6)(*range(6))
        memory = Pitched(ctypes.addressof(row), 24, 24, 1)
        copy = Parameters(from_memory=memory, to_array=array, extent=Extent(3, 1, 1), kind=1)
        assert hip("hipMemcpy3DAsync", copy, 0) == 0
        assert hip("hipDeviceSynchronize") == 0
        back = (FLOAT * 4)()
        memory = Pitched(ctypes.addressof(back), 16, 16, 1)
        copy = Parameters(from_array=array, to_memory=memory, extent=Extent(2, 1, 1), kind=2)
        copy.from_start.x = 1
        assert hip("hipMemcpy3DAsync", copy, 0) == 0
        assert list(back) == [2, 3, 4, 5]
        # A side must be either an array or memory.
        copy.to_array = array
        assert hip("hipMemcpy3DAsync", copy, 0) == 1
        copy.to_memory = copy.from_memory
        copy.from_array = 0
        assert hip("hipMemcpy3DAsync", copy, 0) == 1
        # Both arrays must have texels of the same size.
        other = hip.make("hipArray3DCreate", Array3D(3, 2, 0, 0x20, 1, 0))
        copy = Parameters(from_array=array, to_array=other, extent=Extent(1, 1, 1), kind=3)
        assert hip("hipMemcpy3DAsync", copy, 0) == 1
        for it in (array, other):
            assert hip("hipArrayDestroy", it) == 0
        assert hip("hipArrayDestroy", array) == 709

    def test_one_mode_holds_for_all_axes(self):
        hip = self.hip
        array = hip.make("hipArray3DCreate", Array3D(2, 2, 0, 0x20, 1, 0))
        texels = (FLOAT * 4)(1, 2, 3, 4)
        memory = Pitched(ctypes.addressof(texels), 8, 8, 2)
        copy = Parameters(from_memory=memory, to_array=array, extent=Extent(2, 2, 1), kind=1)
        assert hip("hipMemcpy3DAsync", copy, 0) == 0
        assert hip("hipDeviceSynchronize") == 0
        texture = Texture(address=(1, 3, 3))
        texture = hip.make("hipTexObjectCreate", Resource(0, array), texture, None)
        status, log, code = hip.compile(
            """
            extern "C" __global__ void read(float *out, hipTextureObject_t texture) {
                *out = tex2D<float>(texture, 0.5f, 7.0f);
            }
            """,
            "--offload-arch=gfx90a",
        )
        assert status == 0, log
        out = hip.make("hipMalloc", 4)
        assert hip.launch(code, b"read", out, texture) == 0
        value = FLOAT()
        assert hip("hipMemcpyDtoH", ctypes.addressof(value), out, 4) == 0
        # The last row's value, not the border.
        assert value.value == 3
        # Settings that the samplers do not support.
        texture = Texture()
        texture.rest[0] = 1
        status = hip("hipTexObjectCreate", ctypes.c_uint64(), Resource(0, array), texture, None)
        assert status == 801

    def test_devices_without_textures(self):
        run_python(
            """
            from test_textures import *
            hip = Hip(6)
            assert hip("hipInit", 0) == 0
            assert hip.make("hipDeviceGetAttribute", 10014, 0, kind=ctypes.c_int) == 0
            shape = Array3D(4, 2, 0, 0x20, 1, 0)
            assert hip("hipArray3DCreate", ctypes.c_uint64(), shape) == 801
            """,
            DOUBLE_TEXTURES="0",
        )

    def test_the_oldest_generation_has_surfaces_under_other_names(self):
        assert hasattr(Hip(5).driver, "hipTexObjectCreate")
        assert not hasattr(Hip(5).driver, "hipCreateSurfaceObject")
        assert hasattr(Hip(7).driver, "hipCreateSurfaceObject")

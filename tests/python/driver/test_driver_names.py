"""The driver's names that programs read: enumerations, unsupported names, struct packing."""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from pygpu import _driver, _pvt_struct, curandom, driver


def test_enumerations_print_as_their_names():
    attribute = driver.device_attribute.WARP_SIZE
    assert (str(attribute), f"{attribute}", f"{attribute:d}") == (
        "WARP_SIZE",
        "WARP_SIZE",
        "10",
    )
    assert str(driver.host_alloc_flags.DEVICEMAP) == "DEVICEMAP"
    assert f"{driver.host_alloc_flags.DEVICEMAP:4d} {attribute:>4}" == "   2   10"
    assert driver.host_alloc_flags.PORTABLE | driver.host_alloc_flags.DEVICEMAP == 3
    assert driver.device_attribute.names["WARP_SIZE"] is attribute
    assert driver.device_attribute.values[10] is attribute
    assert len(driver.device_attribute.names) > len(driver.device_attribute.values)
    assert driver.ctx_flags.names["SCHED_AUTO"] == 0


def test_enumerations_are_whole_numbers():
    """Like PyCUDA's, enumerations are subclasses of int: any number or none creates a value."""
    assert driver.jit_option() == 0
    assert isinstance(driver.jit_option(), driver.jit_option)
    assert driver.ctx_flags() == 0
    assert driver.array_format(32) is driver.array_format.FLOAT
    for other in (99, -1, 2**40, np.int64(99)):
        nameless = driver.array_format(other)
        assert nameless == other
        assert isinstance(nameless, driver.array_format)
        assert nameless + 1 == other + 1
        assert str(nameless) == repr(nameless) == f"pygpu.driver.array_format({other})"
        assert pickle.loads(pickle.dumps(nameless)) == other
        assert f"{nameless:d}" == str(other)
        assert other not in driver.array_format.values
        assert nameless not in list(driver.array_format)
    with pytest.raises(ValueError, match="valid array_format"):
        driver.array_format("FLOAT")


def test_other_numbers_are_refused():
    unknown = driver.array_format(99)
    descriptor = driver.ArrayDescriptor()
    descriptor.width, descriptor.height, descriptor.num_channels = 4, 4, 1
    descriptor.format = unknown
    with pytest.raises(driver.LogicError, match="format is .*99.*; .* values of array_format"):
        driver.Array(descriptor)
    context = driver.Context
    kept = context.get_cache_config(), context.get_shared_config()
    with pytest.raises(ValueError, match="cc is 9; allowed are the values of func_cache"):
        context.set_cache_config(driver.func_cache(9))
    with pytest.raises(ValueError, match="config is 9; allowed are the values of shared_config"):
        context.set_shared_config(9)
    with pytest.raises(TypeError, match="cc is of type str"):
        context.set_cache_config("1")
    assert (context.get_cache_config(), context.get_shared_config()) == kept
    with pytest.raises(ValueError, match="direction is 7; .* direction_vector_set"):
        curandom.generate_direction_vectors(1, curandom.direction_vector_set(7))


def test_numbers_of_the_driver():
    # From cuda.h.
    assert getattr(driver.array3d_flags, "2DARRAY") == driver.array3d_flags.ARRAY3D_LAYERED == 1
    assert driver.array_format.FLOAT == 0x20
    assert driver.jit_target.COMPUTE_90A == 65626
    assert (driver.TRSA_OVERRIDE_FORMAT, driver.TRSF_READ_AS_INTEGER) == (1, 1)
    assert (driver.TRSF_NORMALIZED_COORDINATES, driver.TR_DEFAULT) == (2, -1)


def test_opengl_is_refused_by_name():
    for name, arguments in {
        "gl_init": (),
        "make_gl_context": (driver.Device(0),),
        "BufferObject": (1,),
        "RegisteredImage": (1, 2),
        "RegisteredMapping": (),
    }.items():
        with pytest.raises(driver.Unsupported, match="sharing with OpenGL|there (are|is) no"):
            getattr(driver, name)(*arguments)
    assert not driver.have_gl_ext()


def test_arguments_of_texture_copies():
    matrix = np.zeros((2, 3), np.float32)
    with pytest.raises(driver.LogicError, match="order must be either F or C"):
        driver.matrix_to_array(matrix, "K")
    with pytest.raises(driver.LogicError, match="ary.ndim is 1"):
        driver.np_to_array(matrix[0], "C")
    assert driver.dtype_to_array_format(np.int16) == driver.array_format.SIGNED_INT16
    with pytest.raises(TypeError, match="'int64' to array format"):
        driver.dtype_to_array_format(np.int64)


def test_a_program_goes_on_without_opengl():
    for error in (ImportError, driver.Unsupported):
        with pytest.raises(error, match="sharing with OpenGL is not"):
            import pygpu.gl.autoinit  # noqa: F401


def test_the_extension_module_is_the_driver():
    for name in ("Error", "LogicError", "Device", "Stream", "mem_alloc", "DeviceMemoryPool"):
        assert getattr(_driver, name) is getattr(driver, name)


def test_devices_are_a_base_class():
    class Named(driver.Device):
        def name(self):
            return f"my {super().name()}"

    assert Named(0).name() == f"my {driver.Device(0).name()}"
    assert Named(0) == driver.Device(0)
    assert Named(0).warp_size == driver.Device(0).warp_size


def test_aligned_memory_has_a_base():
    for order in "CF":
        a = driver.aligned_zeros((3, 5), np.float32, order, alignment=256)
        assert a.ctypes.data % 256 == 0
        assert a.flags.c_contiguous == (order == "C")
        assert a.flags.writeable
        bases = [a]
        while isinstance(bases[-1], np.ndarray):
            bases.append(bases[-1].base)
        memory = bases[-1]
        assert isinstance(memory, driver.AlignedHostAllocation)
        assert isinstance(memory, driver.HostPointer)
        memory.free()
        a[...] = 1
        with pytest.raises(driver.LogicError, match="register_host_memory"):
            memory.get_device_pointer()
    assert driver.aligned_empty((2, 0), np.int8).size == 0
    assert isinstance(driver.pagelocked_empty(3, np.int8).base, driver.HostPointer)


@pytest.mark.parametrize(
    ("format", "values"),
    [
        ("i", (-5,)),
        ("bhilq", (1, 2, 3, 4, 5)),
        ("fd", (0.5, 0.25)),
        ("P", (2**47,)),
        ("3s?", (b"abc", True)),
        ("2i d", (1, 2, 3.0)),
        ("xxb", (7,)),
    ],
)
def test_packing_is_that_of_python(format, values):
    expected = struct.pack(format, *values)
    assert _pvt_struct.pack(format, *values) == expected
    assert _pvt_struct.calcsize(format) == len(expected)
    assert _pvt_struct.unpack(format, expected) == values
    buffer = bytearray(3 + len(expected))
    _pvt_struct.pack_into(format, buffer, 3, *values)
    assert _pvt_struct.unpack_from(format, buffer, 3) == values


def test_packing_of_complex_numbers_and_structures():
    # A complex number is two numbers with the alignment of one.
    assert _pvt_struct.pack("bF", 1, 2 + 3j) == struct.pack("b2f", 1, 2, 3)
    assert _pvt_struct.pack("iDi", 1, np.complex128(2 - 3j), 4) == struct.pack("i2di", 1, 2, -3, 4)
    assert _pvt_struct.unpack("2F", struct.pack("4f", 1, 2, 3, 4)) == (1 + 2j, 3 + 4j)
    record = np.zeros((), [("a", "i4"), ("b", "f4")])
    assert _pvt_struct.pack("8s", record) == record.tobytes()
    assert _pvt_struct.pack("f", np.float32(0.1)) == np.float32(0.1).tobytes()
    for format, values in (("i", ()), ("i", (1, 2)), ("i", ("x",)), ("$", (1,)), ("D", ("x",))):
        with pytest.raises((_pvt_struct.error, ValueError)):
            _pvt_struct.pack(format, *values)


def test_a_program_for_the_debugger(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, pycuda.driver\nprint(__name__, sys.argv[1:], pycuda.driver.CUDA_DEBUGGING)\n"
    )
    command = ["-m", "pygpu", "run", "-m", "pycuda.debug", str(program), "one"]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("__main__ ['one'] True\n", "")


def test_the_extension_module_is_an_attribute_of_the_package():
    import pygpu

    assert pygpu._driver.DeviceAllocation is driver.DeviceAllocation


def test_enumerations_show_an_expression():
    attribute = driver.device_attribute.WARP_SIZE
    assert repr(attribute) == "pygpu.driver.device_attribute.WARP_SIZE"
    assert repr(driver.host_alloc_flags.PORTABLE) == "pygpu.driver.host_alloc_flags.PORTABLE"
    assert repr(driver.ctx_flags(5)) == "pygpu.driver.ctx_flags(5)"


def test_a_profiler_that_is_not_attached_changes_nothing():
    driver.start_profiler()
    driver.stop_profiler()


def test_templates_are_those_of_mako():
    from pygpu import _mymako

    try:
        import mako.template
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match="mako"):
            _mymako.template  # noqa: B018
    else:
        assert _mymako.template is mako.template


def test_a_device_whose_name_a_program_assigns():
    class Device(driver.Device):
        def __init__(self, number):
            super().__init__(number)
            self.name = self.name()

    assert repr(Device(0)) == f"<Device 0: {driver.Device(0).name()}>"

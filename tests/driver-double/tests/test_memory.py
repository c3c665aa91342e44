"""Memory that detects invalid uses."""

import ctypes
import mmap

from double import DriverTest, driver, make, read, run_python, write

UBYTE = ctypes.c_ubyte
# The members of CUDA_MEMCPY3D for the source, and again for the destination.
SIDE = ("x", "y", "z", "l", "type", "host", "dev", "arr", "ctx", "pitch", "height")


class Allocation(DriverTest):
    def used(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.ok("cuMemGetInfo_v2", free, total)
        return total.value - free.value

    def test_fresh_memory_is_full_of_garbage(self):
        assert read(self.allocate(3), UBYTE, 3) == [205] * 3

    def test_sizes_and_addresses_are_checked(self):
        memory = self.allocate(1000)
        data = (UBYTE * 2000)()
        for address, size in ((memory, 1001), (memory + 1, 1000), (memory - 1, 1), (4096, 1)):
            self.fails(1, "cuMemcpyHtoD_v2", address, data, size)
            self.fails(1, "cuMemcpyDtoH_v2", data, address, size)
            self.fails(1, "cuMemsetD8Async", address, 1, size, 0)
        self.ok("cuMemFree_v2", memory)
        self.fails(1, "cuMemcpyHtoD_v2", memory, data, 1)
        self.fails(1, "cuMemFree_v2", memory)
        self.fails(500, "cuMemGetAddressRange_v2", None, None, memory)

    def test_the_device_has_a_size(self):
        before = self.used()
        memory = self.allocate(400 << 20)
        assert self.used() - before == 400 << 20
        self.fails(2, "cuMemAlloc_v2", ctypes.c_uint64(), 200 << 20)
        self.ok("cuMemFree_v2", memory)
        self.allocate(200 << 20)

    def test_the_environment_sets_the_size_and_the_devices(self):
        run_python(
            """
            driver.cuInit(0)
            count = ctypes.c_int()
            call("cuDeviceGetCount", count)
            assert count.value == 5
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 4)))
            assert call("cuMemAlloc_v2", ctypes.c_uint64(), 4097) == 2
            make("cuMemAlloc_v2", 4096)
            """,
            DOUBLE_MEMORY="4096",
            DOUBLE_DEVICES="5",
        )
        run_python("assert driver.cuInit(0) == 100", DOUBLE_DEVICES="0")

    def test_a_plain_free_waits(self):
        memory, other, stream = self.allocate(4), self.allocate(4), self.stream()
        self.ok("cuMemsetD8Async", other, 7, 4, stream)
        self.ok("cuMemFree_v2", memory)
        assert driver.double_live(b"queued") == 0

    def test_writes_beside_an_allocation_are_counted(self):
        run_python(
            """
            driver.cuInit(0)
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 0)))
            memory = make("cuMemAlloc_v2", 5)
            ctypes.c_ubyte.from_address(memory + 5).value = 1
            assert driver.double_live(b"overruns") == 0
            call("cuMemFree_v2", memory)
            assert driver.double_live(b"overruns") == 1
            """
        )

    def test_rows_with_a_pitch(self):
        address, pitch = ctypes.c_uint64(), ctypes.c_size_t()
        self.ok("cuMemAllocPitch_v2", address, pitch, 100, 4, 4)
        assert pitch.value == 512
        self.ok("cuMemsetD2D8Async", address.value, 512, 9, 100, 4, 0)
        row = read(address.value + 3 * 512, UBYTE, 101)
        assert (row[0], row[99], row[100]) == (9, 9, 205)


class InStreamOrder(DriverTest):
    def test_memory_is_there_when_the_stream_gets_there(self):
        stream, other = self.stream(), self.stream()
        memory = make("cuMemAllocAsync", 64, stream)
        data = (UBYTE * 4)(1, 2, 3, 4)
        # The other stream is not ordered after the allocation, so its copy is too
        # early.
        self.ok("cuMemcpyHtoDAsync_v2", memory, data, 4, stream)
        self.ok("cuStreamSynchronize", stream)
        assert read(memory, UBYTE, 4) == [1, 2, 3, 4]
        early = make("cuMemAllocAsync", 64, stream)
        self.ok("cuMemsetD8Async", early, 1, 4, other)
        self.fails(700, "cuStreamSynchronize", other)

    def test_a_use_behind_the_free_is_a_fault(self):
        stream = self.stream()
        memory = make("cuMemAllocAsync", 64, stream)
        self.ok("cuMemFreeAsync", memory, stream)
        self.fails(1, "cuMemFreeAsync", memory, stream)
        self.ok("cuMemsetD8Async", memory, 1, 4, stream)
        self.fails(700, "cuStreamSynchronize", stream)
        self.fails(700, "cuMemAlloc_v2", ctypes.c_uint64(), 4)

    def test_freed_memory_comes_back_when_it_is_needed(self):
        stream = self.stream()
        for _ in range(5):
            memory = make("cuMemAllocAsync", 300 << 20, stream)
            self.ok("cuMemFreeAsync", memory, stream)
        first = make("cuMemAllocAsync", 300 << 20, stream)
        self.fails(2, "cuMemAllocAsync", ctypes.c_uint64(), 300 << 20, stream)
        self.ok("cuMemFreeAsync", first, stream)
        self.ok("cuStreamSynchronize", stream)
        self.allocate(300 << 20)

    def test_pools_count_what_they_hold(self):
        pool, stream = make("cuDeviceGetDefaultMemPool", 0), self.stream()

        def attribute(number):
            value = ctypes.c_uint64()
            self.ok("cuMemPoolGetAttribute", pool, number, value)
            return value.value

        # Memory that other tests left in the pool outlives their contexts.
        self.ok("cuMemPoolTrimTo", pool, 0)
        used, reserved = attribute(7), attribute(5)
        self.ok("cuMemPoolSetAttribute", pool, 4, ctypes.c_uint64(1 << 30))
        memory = make("cuMemAllocAsync", 1000, stream)
        assert (attribute(7) - used, attribute(5) - reserved) == (1000, 1024)
        self.ok("cuMemFreeAsync", memory, stream)
        self.ok("cuStreamSynchronize", stream)
        assert (attribute(7) - used, attribute(5) - reserved) == (0, 1024)
        self.ok("cuMemPoolTrimTo", pool, 0)
        assert attribute(5) == reserved
        self.ok("cuMemPoolSetAttribute", pool, 4, ctypes.c_uint64(0))

    def test_memory_of_pools_outlives_a_reset(self):
        def free():
            amount = ctypes.c_uint64()
            self.ok("cuMemGetInfo_v2", amount, None)
            return amount.value

        self.ok("cuCtxSynchronize")
        before = free()
        memory = make("cuMemAllocAsync", 4096, self.stream())
        self.ok("cuDevicePrimaryCtxReset_v2", 0)
        self.context = make("cuDevicePrimaryCtxRetain", 0)
        self.ok("cuCtxSetCurrent", self.context)
        assert free() == before - 4096
        self.ok("cuMemFreeAsync", memory, 0)
        self.ok("cuCtxSynchronize")
        assert free() == before


class HostMemory(DriverTest):
    def test_registration(self):
        pages = mmap.mmap(-1, 1 << 16)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        self.ok("cuMemHostRegister_v2", address, 8192, 0)
        self.fails(712, "cuMemHostRegister_v2", address + 4096, 8192, 0)
        stream, memory = self.stream(), self.allocate(4)
        self.ok("cuMemcpyHtoDAsync_v2", memory, address, 4, stream)
        pages[0] = 5
        self.ok("cuStreamSynchronize", stream)
        assert read(memory, UBYTE) == [5]
        self.ok("cuMemHostUnregister", address)
        self.fails(713, "cuMemHostUnregister", address)

    def test_pinned_memory_is_freed_once(self):
        memory = self.pinned(100)
        kind = ctypes.c_uint()
        self.ok("cuPointerGetAttribute", kind, 2, memory + 99)
        assert kind.value == 1
        assert driver.double_live(b"pinned_bytes") >= 100
        self.ok("cuMemFreeHost", memory)
        self.fails(1, "cuMemFreeHost", memory)


class Boxes(DriverTest):
    class Box(ctypes.Structure):
        _fields_ = [
            *((f"s{name}", ctypes.c_size_t) for name in SIDE),
            *((f"d{name}", ctypes.c_size_t) for name in SIDE),
            *((name, ctypes.c_size_t) for name in ("w", "h", "d")),
        ]

    def test_a_box_inside_a_box(self):
        memory = self.allocate(4 * 5 * 6)
        write(memory, UBYTE, [0] * 120)
        source = (UBYTE * 24)(*range(1, 25))
        box = self.Box(
            stype=1, shost=ctypes.addressof(source), spitch=4, sheight=3,
            dtype=2, ddev=memory, dpitch=4, dheight=5, dx=1, dy=2, dz=3, w=2, h=3, d=2,
        )  # fmt: skip
        self.ok("cuMemcpy3D_v2", box)
        got = read(memory, UBYTE, 120)
        expected = [0] * 120
        for z in range(2):
            for y in range(3):
                for x in range(2):
                    expected[(3 + z) * 20 + (2 + y) * 4 + 1 + x] = source[z * 12 + y * 4 + x]
        assert got == expected
        box.dz = 5
        self.fails(1, "cuMemcpy3D_v2", box)
        box.dz, box.dpitch = 3, 2
        self.fails(1, "cuMemcpy3D_v2", box)
        box.dpitch, box.stype = 4, 3
        self.fails(1, "cuMemcpy3D_v2", box)


class BetweenProcesses(DriverTest):
    def test_another_process_sees_the_memory(self):
        memory = self.allocate(100)
        write(memory, UBYTE, [1, 2, 3])
        self.ok("cuCtxSynchronize")
        handle = (UBYTE * 64)()
        self.ok("cuIpcGetMemHandle", handle, memory)
        run_python(
            f"""
            class Handle(ctypes.Structure):
                _fields_ = [("bytes", ctypes.c_ubyte * 64)]
            handle = Handle.from_buffer_copy(bytes.fromhex({bytes(handle).hex()!r}))
            driver.cuInit(0)
            driver.cuCtxSetCurrent(ctypes.c_uint64(make("cuDevicePrimaryCtxRetain", 0)))
            address = ctypes.c_uint64()
            def open_():
                return driver.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, 1)
            assert open_() == 0
            assert read(address.value, ctypes.c_ubyte, 3) == [1, 2, 3]
            write(address.value, ctypes.c_ubyte, [9])
            assert call("cuCtxSynchronize") == 0
            assert open_() == 0
            for status in (0, 0, 1):
                assert call("cuIpcCloseMemHandle", address.value) == status
            """
        )
        assert read(memory, UBYTE, 3) == [9, 2, 3]

    def test_a_process_does_not_open_its_own(self):
        class Handle(ctypes.Structure):
            _fields_ = [("bytes", UBYTE * 64)]

        handle = Handle()
        self.ok("cuIpcGetMemHandle", handle, self.allocate(8))
        assert driver.cuIpcOpenMemHandle_v2(ctypes.byref(ctypes.c_uint64()), handle, 1) == 201

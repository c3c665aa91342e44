"""Kernels that fail, and the state of the device after it."""

import ctypes

from double import DriverTest, driver, kernel, launch, load, make


class Faults(DriverTest):
    def failing(self, body, status, **keywords):
        module = load(f'extern "C" __global__ void f(int* p) {{ {body} }}')
        memory = self.allocate(4)
        assert launch(kernel(module, "f"), memory, **keywords) == 0
        self.fails(status, "cuCtxSynchronize")
        # The failure stays, whatever the next call is.
        for name, arguments in (
            ("cuMemAlloc_v2", (ctypes.c_uint64(), 4)),
            ("cuMemFree_v2", (memory,)),
            ("cuStreamSynchronize", (0,)),
            ("cuMemsetD8Async", (memory, 1, 1, 0)),
        ):
            self.fails(status, name, *arguments)
        self.ok("cuDevicePrimaryCtxReset_v2", 0)
        make("cuDevicePrimaryCtxRetain", 0)
        self.allocate(4)

    def test_traps(self):
        self.failing("__trap();", 719)
        self.failing("assert(threadIdx.x < 3);", 710, block=(4, 1, 1))

    def test_addresses_outside(self):
        self.failing("p[4096] = 1;", 700)
        self.failing("*(int*)16 = 1;", 700)
        self.failing("extern __shared__ int s[]; s[5] = 1;", 700, shared=16)

    def test_more_than_the_stack_holds(self):
        self.failing("volatile char big[1 << 20]; big[0] = big[1 << 19] = p[0];", 700)

    def test_memory_that_is_freed_before_the_kernel_runs(self):
        module = load('extern "C" __global__ void f(int* p) { *p = 1; }')
        stream, other = self.stream(), self.stream()
        memory = make("cuMemAllocAsync", 4, stream)
        self.ok("cuStreamSynchronize", stream)
        assert launch(kernel(module, "f"), memory, stream=other) == 0
        self.ok("cuMemFreeAsync", memory, stream)
        self.ok("cuStreamSynchronize", stream)
        self.fails(700, "cuStreamSynchronize", other)

    def test_kernels_with_names_that_fail(self):
        for name, status in (("double_trap", 719), ("double_fault", 700)):
            module = load(f'extern "C" __global__ void {name}() {{}}')
            assert launch(kernel(module, name)) == 0
            self.fails(status, "cuCtxSynchronize")
            self.ok("cuDevicePrimaryCtxReset_v2", 0)
            make("cuDevicePrimaryCtxRetain", 0)

    def test_kernels_that_a_test_makes_fail(self):
        module = load('extern "C" __global__ void f() {}')
        driver.double_fail(b".kernel", ctypes.c_uint64(1), 719, 1)
        assert launch(kernel(module, "f")) == 0
        self.ok("cuCtxSynchronize")
        assert launch(kernel(module, "f")) == 0
        self.fails(719, "cuCtxSynchronize")

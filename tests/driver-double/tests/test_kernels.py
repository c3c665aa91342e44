"""CUDA C compiled and run."""

import ctypes
import time

from double import (
    DriverTest,
    call,
    compile_program,
    driver,
    kernel,
    launch,
    load,
    make,
    output,
    read,
    rtc,
    run_python,
    write,
)

INT, FLOAT, DOUBLE, SIZE = ctypes.c_int, ctypes.c_float, ctypes.c_double, ctypes.c_size_t


class Running(DriverTest):
    def test_a_vector_sum_of_blocks(self):
        module = load(
            """
            extern "C" __global__ void add(float* c, const float* a, const float* b, int n) {
                const int i = blockIdx.x * blockDim.x + threadIdx.x;
                if (i < n) c[i] = a[i] + b[i];
            }
            """
        )
        a, b, c = (self.allocate(4000) for _ in range(3))
        write(a, FLOAT, range(1000))
        write(b, FLOAT, [0.5] * 1000)
        add = kernel(module, "add")
        self.assertEqual(launch(add, c, a, b, INT(999), grid=(8, 1, 1), block=(128, 1, 1)), 0)
        got = read(c, FLOAT, 1000)
        self.assertEqual(got[:999], [i + 0.5 for i in range(999)])
        self.assertNotEqual(got[999], 999.5)

    def test_indices_of_three_axes(self):
        module = load(
            """
            extern "C" __global__ void number(int* out) {
                const dim3 b = blockDim, g = gridDim;
                const int t = threadIdx.x + b.x * (threadIdx.y + b.y * threadIdx.z);
                const int k = blockIdx.x + g.x * (blockIdx.y + g.y * blockIdx.z);
                out[k * b.x * b.y * b.z + t] = k * 1000 + t;
            }
            """
        )
        out = self.allocate(4 * 24 * 30)
        self.assertEqual(launch(kernel(module, "number"), out, grid=(2, 3, 5), block=(4, 3, 2)), 0)
        self.assertEqual(
            read(out, INT, 24 * 30), [k * 1000 + t for k in range(30) for t in range(24)]
        )

    def test_shared_memory_and_barriers(self):
        module = load(
            """
            template <class T> __device__ void reverse(T* data) {
                __shared__ T swap[1024], second[1];
                extern __shared__ __align__(16) char bytes[];
                T* dynamic = (T*)bytes;
                const int t = threadIdx.x, n = blockDim.x;
                dynamic[t] = data[t];
                swap[t] = data[t];
                if (t == 0) second[0] = 1;
                __syncthreads();
                data[t] = (swap[n - 1 - t] + dynamic[n - 1 - t]) * second[0];
            }
            extern "C" __global__ void reverse_ints(int* data) { reverse(data); }
            extern "C" __global__ void reverse_doubles(double* data) { reverse(data); }
            """
        )
        ints, doubles = self.allocate(4096), self.allocate(8192)
        write(ints, INT, range(1024))
        write(doubles, DOUBLE, range(1024))
        block = (1024, 1, 1)
        self.assertEqual(launch(kernel(module, "reverse_ints"), ints, block=block, shared=4096), 0)
        self.assertEqual(
            launch(kernel(module, "reverse_doubles"), doubles, block=block, shared=8192), 0
        )
        expected = [2 * (1023 - i) for i in range(1024)]
        self.assertEqual(read(ints, INT, 1024), expected)
        self.assertEqual(read(doubles, DOUBLE, 1024), expected)

    def test_shared_memory_starts_as_garbage_in_every_block(self):
        module = load(
            """
            extern "C" __global__ void look(unsigned* out) {
                __shared__ unsigned fixed;
                extern __shared__ unsigned dynamic[];
                out[2 * blockIdx.x] = fixed;
                out[2 * blockIdx.x + 1] = dynamic[0];
                fixed = dynamic[0] = 5;
            }
            """
        )
        out = self.allocate(24)
        self.assertEqual(launch(kernel(module, "look"), out, grid=(3, 1, 1), shared=4), 0)
        self.assertEqual(read(out, ctypes.c_uint, 6), [0xCDCDCDCD] * 6)

    def test_a_missing_barrier_shows(self):
        module = load(
            """
            extern "C" __global__ void shift(int* data) {
                __shared__ int swap[64];
                swap[threadIdx.x] = threadIdx.x;
                data[threadIdx.x] = swap[(threadIdx.x + 1) % 64];
            }
            """
        )
        data = self.allocate(256)
        self.assertEqual(launch(kernel(module, "shift"), data, block=(64, 1, 1)), 0)
        self.assertEqual(read(data, INT, 1), [-842150451])  # 0xcdcdcdcd

    def test_what_cuda_c_has_built_in(self):
        module = load(
            """
            __constant__ float scale[2] = {2, 3};
            __device__ int counter;
            struct Pair { double a; float b; };
            extern "C" __global__ void all(float4* v, int* out, Pair pair, bool flag, dim3 size) {
                const int t = threadIdx.x;
                atomicAdd(&counter, 1);
                atomicMax(out, t);
                atomicCAS(out + 1, 0, 7);
                const int down = __shfl_down_sync(0xffffffff, t, 3);
                if (t == 0) {
                    out[2] = max(3, 2) + min(2u, 5u) + __popc(7) + __clz(1) + warpSize + size.y;
                    out[3] = __float_as_int(1.0f);
                    float2 half = make_float2(rsqrtf(4.0f), __expf(0));
                    v[0].x = v[0].x * scale[1] + pair.b + half.x;
                    v[0].y = sqrt(2) + pow(2.0f, 3) + fabs(-1.0f) + __ldg(&v[0].z);
                    v[0].w = flag && isnan(0.0 / 0.0) ? (float)pair.a : 0;
                }
                __syncthreads();
                const int lane = __shfl_xor_sync(0xffffffff, t, 1);
                const unsigned odd = __ballot_sync(0xffffffff, t & 1);
                if (t == 33) out[4] = lane, out[5] = odd, out[6] = counter;
                if (__syncthreads_count(t < 5) == 5 && t == 1) out[7] = down;
            }
            """
        )

        class Pair(ctypes.Structure):
            _fields_ = [("a", DOUBLE), ("b", FLOAT)]

        vector, out = self.allocate(16), self.allocate(32)
        write(vector, FLOAT, [1, 2, 3, 4])
        write(out, INT, [0] * 8)
        pair, size = Pair(1.5, 0.25), (ctypes.c_uint * 3)(4, 5, 6)
        function = make("cuModuleGetFunction", module, b"all")
        arguments = (vector, out, pair, ctypes.c_bool(True), size)
        self.assertEqual(launch(function, *arguments, block=(64, 1, 1)), 0)
        x, y, z, w = read(vector, FLOAT, 4)
        self.assertEqual((x, w, z), (3.75, 1.5, 3))
        self.assertAlmostEqual(y, 2**0.5 + 8 + 1 + 3, 5)
        self.assertEqual(
            read(out, INT, 8),
            [63, 7, 3 + 2 + 3 + 31 + 32 + 5, 0x3F800000, 32, -1431655766, 64, 4],
        )

    def test_variables_of_a_module(self):
        source = """
            __device__ int table[4] = {1, 2, 3, 4};
            extern "C" __global__ void twice() { table[threadIdx.x] *= 2; }
            """
        first, second = load(source), load(source)
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.ok("cuModuleGetGlobal_v2", address, size, first, b"table")
        self.assertEqual(size.value, 16)
        self.assertEqual(launch(kernel(first, "twice"), block=(4, 1, 1)), 0)
        self.assertEqual(read(address.value, INT, 4), [2, 4, 6, 8])
        self.ok("cuModuleGetGlobal_v2", address, size, second, b"table")
        self.assertEqual(read(address.value, INT, 4), [1, 2, 3, 4])
        self.fails(500, "cuModuleGetGlobal_v2", address, size, first, b"none")
        self.fails(500, "cuModuleGetGlobal_v2", address, size, first, b"twice")
        self.fails(1, "cuMemFree_v2", address.value)

    def test_a_queued_launch_keeps_its_arguments_and_its_code(self):
        module = load('extern "C" __global__ void put(int* out, int x) { *out = x; }')
        out, value, stream = self.allocate(4), INT(5), self.stream()
        self.assertEqual(launch(kernel(module, "put"), out, value, stream=stream), 0)
        value.value = 6
        self.ok("cuModuleUnload", module)
        self.ok("cuStreamSynchronize", stream)
        self.assertEqual(read(out, INT), [5])

    def test_a_packed_launch(self):
        module = load(
            'extern "C" __global__ void put(char c, double* out, int x) { *out = c + x; }'
        )
        out, function = self.allocate(8), kernel(module, "put")
        packed = (ctypes.c_uint64 * 3)(1, out, 41)
        size = SIZE(20)
        extra = (ctypes.c_void_p * 5)(
            1, ctypes.addressof(packed), 2, ctypes.addressof(size), None
        )
        self.ok("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, 0, None, extra)
        self.assertEqual(read(out, DOUBLE), [42])

    def test_many_launches_are_quick(self):
        module = load('extern "C" __global__ void put(int* out) { out[threadIdx.x] = 1; }')
        out, function = self.allocate(1024), kernel(module, "put")
        begin = time.perf_counter()
        for _ in range(200):
            launch(function, out, grid=(8, 1, 1), block=(256, 1, 1))
        self.ok("cuCtxSynchronize")
        self.assertLess(time.perf_counter() - begin, 2)


class Describing(DriverTest):
    def test_parameters(self):
        module = load(
            """
            struct Triple { double d[3]; };
            extern "C" __global__ void f(void* a, int b, Triple c, char d, float4 e) {}
            extern "C" __global__ void none() {}
            """
        )
        function, offset, size = kernel(module, "f"), SIZE(), SIZE()
        found = []
        while call("cuFuncGetParamInfo", function, len(found), offset, size) == 0:
            found.append((offset.value, size.value))
        self.assertEqual(found, [(0, 8), (8, 4), (16, 24), (40, 1), (48, 16)])
        self.fails(1, "cuFuncGetParamInfo", kernel(module, "none"), 0, offset, size)

    def test_attributes(self):
        module = load(
            """
            extern "C" __global__ void __launch_bounds__(64 * 2) f() {
                __shared__ float a[100];
                __shared__ int b;
                a[threadIdx.x] = b;
            }
            """
        )
        function, value = kernel(module, "f"), INT()

        def attribute(number):
            self.ok("cuFuncGetAttribute", value, number, function)
            return value.value

        self.assertEqual((attribute(0), attribute(1), attribute(8)), (128, 404, 49152 - 404))
        self.fails(1, "cuLaunchKernel", function, 1, 1, 1, 129, 1, 1, 0, 0, None, None)
        self.fails(1, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 49152, 0, None, None)
        self.ok("cuFuncSetAttribute", function, 8, 60000)
        self.assertEqual(launch(function, shared=60000), 0)

    def test_launches_beyond_the_limits(self):
        function = kernel(load('extern "C" __global__ void f() {}'), "f")
        for grid, block in (
            ((0, 1, 1), (1, 1, 1)),
            ((1, 1, 1), (1, 0, 1)),
            ((1, 1, 1), (1025, 1, 1)),
            ((1, 1, 1), (32, 32, 2)),
            ((1, 1, 1), (1, 1, 65)),
            ((1, 65536, 1), (1, 1, 1)),
        ):
            self.assertEqual(launch(function, grid=grid, block=block), 1, (grid, block))

    def test_names(self):
        names = ("space::twice<float>", "&space::twice<double>", "&space::value", "add")
        program, status, log = compile_program(
            """
            namespace space {
            template <class T> __global__ void twice(T* p) { *p *= 2; }
            __device__ int value = 3;
            }
            __global__ void add(int* p, int x) { *p += x; }
            __global__ void add(float* p, float x) { *p += x; }
            """.replace("__global__ void add(float", "__global__ void more(float"),
            names=names,
        )
        self.assertEqual(status, 0, log)
        lowered = []
        for name in names:
            text = ctypes.c_char_p()
            self.assertEqual(rtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(text)), 0)
            lowered.append(text.value)
        self.assertEqual(lowered[3], b"_Z3addPii")
        module = make("cuModuleLoadData", output(program))
        memory = self.allocate(4)
        write(memory, FLOAT, [1.5])
        self.assertEqual(launch(make("cuModuleGetFunction", module, lowered[0]), memory), 0)
        self.assertEqual(read(memory, FLOAT), [3])
        address = ctypes.c_uint64()
        self.ok("cuModuleGetGlobal_v2", address, None, module, lowered[2])
        self.assertEqual(read(address.value, INT), [3])
        self.fails(500, "cuModuleGetFunction", ctypes.c_uint64(), module, b"add")

    def test_overloaded_kernels_and_kernels_from_macros(self):
        module = load(
            """
            __global__ void put(int* p) { *p = 1; }
            __global__ void put(float* p) { *p = 2; }
            #define MAKE(name, value) \\
                extern "C" __global__ void name(int* p) { __shared__ int s; s = value; *p = s; }
            MAKE(three, 3)
            MAKE(four, 4)
            """
        )
        memory = self.allocate(4)
        for name, kind, value in (("_Z3putPi", INT, 1), ("_Z3putPf", FLOAT, 2), ("four", INT, 4)):
            self.assertEqual(launch(kernel(module, name), memory), 0)
            self.assertEqual(read(memory, kind), [value])


class Compiling(DriverTest):
    def test_errors_name_program_and_line(self):
        _, status, log = compile_program("\n__global__ void f() {\n    int x = y;\n}\n")
        self.assertEqual(status, 6)
        self.assertIn("test.cu(3): error: ", log)
        self.assertIn("'y'", log)

    def test_lines_stay_behind_kernels_and_shared_memory(self):
        _, status, log = compile_program(
            """\
            __global__ void f() { __shared__ int a[2], b; a[0] = b; }
            extern "C" __global__ void
            g(int x,
              int y) { extern __shared__ char c[]; c[0] = x; }
            int z = nothing;
            """
        )
        self.assertEqual(status, 6)
        self.assertIn("test.cu(5): error: ", log)

    def test_options(self):
        source = 'extern "C" __global__ void f(int* p) { *p = VALUE + __CUDA_ARCH__; }'
        for option in ("-O3", "--nonsense", "-arch=sm_12", "-fmad=perhaps", ""):
            self.assertEqual(compile_program(source, options=(option,))[1], 5, option)
        for standard in ("11", "14", "17", "20"):
            options = ("--gpu-architecture", "sm_90", "-DVALUE=2", f"--std=c++{standard}", "-fmad=false")
            module = load(source, options=options)
        memory = self.allocate(4)
        self.assertEqual(launch(kernel(module, "f"), memory), 0)
        self.assertEqual(read(memory, INT), [902])

    def test_warnings_are_in_the_log_unless_unwanted(self):
        source = '#warning mind the gap\nextern "C" __global__ void f() {}'
        _, status, log = compile_program(source)
        self.assertEqual(status, 0)
        self.assertIn("test.cu(1): warning: ", log)
        self.assertIn("mind the gap", log)
        self.assertEqual(compile_program(source, options=("-w",))[1:], (0, ""))

    def test_headers(self):
        source = '#include "own/one.h"\nextern "C" __global__ void f(int* p) { *p = one(); }'
        headers = [("own/one.h", "__device__ int one() { return 1; }")]
        memory = self.allocate(4)
        self.assertEqual(launch(kernel(load(source, headers=headers), "f"), memory), 0)
        self.assertEqual(read(memory, INT), [1])
        _, status, log = compile_program("#include <math.h>\n")
        self.assertEqual(status, 6)
        self.assertIn("math.h", log)

    def test_virtual_architectures_give_text_alone(self):
        program, _, _ = compile_program(
            'extern "C" __global__ void f(int* p) { *p = 4; }', options=("-arch=compute_80",)
        )
        self.assertEqual(output(program), b"")
        text = output(program, "PTX")
        self.assertIn(b".target sm_80", text)
        module, memory = make("cuModuleLoadData", text), self.allocate(4)
        self.assertEqual(launch(kernel(module, "f"), memory), 0)
        self.assertEqual(read(memory, INT), [4])

    def test_images_are_checked(self):
        program, _, _ = compile_program('extern "C" __global__ void f() {}')
        image = bytearray(output(program))
        image[len(image) // 2] ^= 1
        self.fails(200, "cuModuleLoadData", ctypes.c_uint64(), bytes(image))
        self.fails(200, "cuModuleLoadData", ctypes.c_uint64(), b"no code")
        self.fails(200, "cuModuleLoadData", ctypes.c_uint64(), b"\x7fELF" + bytes(100))
        old, _, _ = compile_program('extern "C" __global__ void f() {}', options=("-arch=sm_80",))
        self.fails(209, "cuModuleLoadData", ctypes.c_uint64(), output(old))
        log = ctypes.create_string_buffer(200)
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 200)
        arguments = (ctypes.c_uint64(), b".version 7.0\n", 2, options, values)
        self.fails(218, "cuModuleLoadDataEx", *arguments)
        self.assertEqual(len(log.value), values[1])

    def test_the_cache_on_disk(self):
        run_python(
            """
            import tempfile, glob
            source = 'extern "C" __global__ void f() {}'
            with tempfile.TemporaryDirectory() as folder:
                ctypes.CDLL(None).setenv(b"DOUBLE_CACHE", folder.encode(), 1)
                images = [output(compile_program(source)[0]) for _ in range(2)]
                assert images[0] == images[1]
                assert len(glob.glob(folder + "/*")) == 1
                compile_program(source + " ")
                assert len(glob.glob(folder + "/*")) == 2
            """
        )


class Faults(DriverTest):
    def failing(self, body, status, **keywords):
        module = load(f'extern "C" __global__ void f(int* p) {{ {body} }}')
        memory = self.allocate(4)
        self.assertEqual(launch(kernel(module, "f"), memory, **keywords), 0)
        self.fails(status, "cuCtxSynchronize")
        # The failure stays, whatever is called.
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
        self.assertEqual(launch(kernel(module, "f"), memory, stream=other), 0)
        self.ok("cuMemFreeAsync", memory, stream)
        self.ok("cuStreamSynchronize", stream)
        self.fails(700, "cuStreamSynchronize", other)

    def test_kernels_with_names_that_fail(self):
        for name, status in (("double_trap", 719), ("double_fault", 700)):
            module = load(f'extern "C" __global__ void {name}() {{}}')
            self.assertEqual(launch(kernel(module, name)), 0)
            self.fails(status, "cuCtxSynchronize")
            self.ok("cuDevicePrimaryCtxReset_v2", 0)
            make("cuDevicePrimaryCtxRetain", 0)

    def test_kernels_that_a_test_makes_fail(self):
        module = load('extern "C" __global__ void f() {}')
        driver.double_fail(b".kernel", ctypes.c_uint64(1), 719, 1)
        self.assertEqual(launch(kernel(module, "f")), 0)
        self.ok("cuCtxSynchronize")
        self.assertEqual(launch(kernel(module, "f")), 0)
        self.fails(719, "cuCtxSynchronize")

"""CUDA C compiled and run."""

import ctypes
import time

from double import (
    DriverTest,
    call,
    compile_program,
    kernel,
    launch,
    load,
    make,
    output,
    read,
    rtc,
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
        assert launch(add, c, a, b, INT(999), grid=(8, 1, 1), block=(128, 1, 1)) == 0
        got = read(c, FLOAT, 1000)
        assert got[:999] == [i + 0.5 for i in range(999)]
        assert got[999] != 999.5

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
        assert launch(kernel(module, "number"), out, grid=(2, 3, 5), block=(4, 3, 2)) == 0
        assert read(out, INT, 24 * 30) == [k * 1000 + t for k in range(30) for t in range(24)]

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
        assert launch(kernel(module, "reverse_ints"), ints, block=block, shared=4096) == 0
        assert launch(kernel(module, "reverse_doubles"), doubles, block=block, shared=8192) == 0
        expected = [2 * (1023 - i) for i in range(1024)]
        assert read(ints, INT, 1024) == expected
        assert read(doubles, DOUBLE, 1024) == expected

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
        assert launch(kernel(module, "look"), out, grid=(3, 1, 1), shared=4) == 0
        assert read(out, ctypes.c_uint, 6) == [3452816845] * 6

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
        assert launch(kernel(module, "shift"), data, block=(64, 1, 1)) == 0
        assert read(data, INT, 1) == [-842150451]  # 0xcdcdcdcd

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
        assert launch(function, *arguments, block=(64, 1, 1)) == 0
        x, y, z, w = read(vector, FLOAT, 4)
        assert (x, w, z) == (3.75, 1.5, 3)
        assert abs(y - (2**0.5 + 8 + 1 + 3)) < 1e-5
        assert read(out, INT, 8) == [
            63,
            7,
            3 + 2 + 3 + 31 + 32 + 5,
            1065353216,
            32,
            -1431655766,
            64,
            4,
        ]

    def test_variables_of_a_module(self):
        source = """
            __device__ int table[4] = {1, 2, 3, 4};
            extern "C" __global__ void twice() { table[threadIdx.x] *= 2; }
            """
        first, second = load(source), load(source)
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.ok("cuModuleGetGlobal_v2", address, size, first, b"table")
        assert size.value == 16
        assert launch(kernel(first, "twice"), block=(4, 1, 1)) == 0
        assert read(address.value, INT, 4) == [2, 4, 6, 8]
        self.ok("cuModuleGetGlobal_v2", address, size, second, b"table")
        assert read(address.value, INT, 4) == [1, 2, 3, 4]
        self.fails(500, "cuModuleGetGlobal_v2", address, size, first, b"none")
        self.fails(500, "cuModuleGetGlobal_v2", address, size, first, b"twice")
        self.fails(1, "cuMemFree_v2", address.value)

    def test_a_queued_launch_keeps_its_arguments_and_its_code(self):
        module = load('extern "C" __global__ void put(int* out, int x) { *out = x; }')
        out, value, stream = self.allocate(4), INT(5), self.stream()
        assert launch(kernel(module, "put"), out, value, stream=stream) == 0
        value.value = 6
        self.ok("cuModuleUnload", module)
        self.ok("cuStreamSynchronize", stream)
        assert read(out, INT) == [5]

    def test_a_packed_launch(self):
        module = load(
            'extern "C" __global__ void put(char c, double* out, int x) { *out = c + x; }'
        )
        out, function = self.allocate(8), kernel(module, "put")
        packed = (ctypes.c_uint64 * 3)(1, out, 41)
        size = SIZE(20)
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), None)
        self.ok("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, 0, None, extra)
        assert read(out, DOUBLE) == [42]

    def test_many_launches_are_quick(self):
        module = load('extern "C" __global__ void put(int* out) { out[threadIdx.x] = 1; }')
        out, function = self.allocate(1024), kernel(module, "put")
        begin = time.perf_counter()
        for _ in range(200):
            launch(function, out, grid=(8, 1, 1), block=(256, 1, 1))
        self.ok("cuCtxSynchronize")
        assert time.perf_counter() - begin < 2


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
        assert found == [(0, 8), (8, 4), (16, 24), (40, 1), (48, 16)]
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

        assert (attribute(0), attribute(1), attribute(8)) == (128, 404, 49152 - 404)
        self.fails(1, "cuLaunchKernel", function, 1, 1, 1, 129, 1, 1, 0, 0, None, None)
        self.fails(1, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 49152, 0, None, None)
        self.ok("cuFuncSetAttribute", function, 8, 60000)
        assert launch(function, shared=60000) == 0

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
            assert launch(function, grid=grid, block=block) == 1, (grid, block)

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
        assert status == 0, log
        lowered = []
        for name in names:
            text = ctypes.c_char_p()
            assert rtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(text)) == 0
            lowered.append(text.value)
        assert lowered[3] == b"_Z3addPii"
        module = make("cuModuleLoadData", output(program))
        memory = self.allocate(4)
        write(memory, FLOAT, [1.5])
        assert launch(make("cuModuleGetFunction", module, lowered[0]), memory) == 0
        assert read(memory, FLOAT) == [3]
        address = ctypes.c_uint64()
        self.ok("cuModuleGetGlobal_v2", address, None, module, lowered[2])
        assert read(address.value, INT) == [3]
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
            assert launch(kernel(module, name), memory) == 0
            assert read(memory, kind) == [value]

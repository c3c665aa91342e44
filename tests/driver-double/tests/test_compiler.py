"""NVRTC: options, logs, images."""

import ctypes

from double import DriverTest, compile_program, kernel, launch, load, make, output, read, run_python

INT = ctypes.c_int


class Compiling(DriverTest):
    def test_errors_name_program_and_line(self):
        _, status, log = compile_program("\n__global__ void f() {\n    int x = y;\n}\n")
        assert status == 6
        assert "test.cu(3): error: " in log
        assert "'y'" in log

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
        assert status == 6
        assert "test.cu(5): error: " in log

    def test_options(self):
        source = 'extern "C" __global__ void f(int* p) { *p = VALUE + __CUDA_ARCH__; }'
        for option in ("-O3", "--nonsense", "-arch=sm_12", "-fmad=perhaps", ""):
            assert compile_program(source, options=(option,))[1] == 5, option
        for standard in ("11", "14", "17", "20"):
            options = (
                "--gpu-architecture",
                "sm_90",
                "-DVALUE=2",
                f"--std=c++{standard}",
                "-fmad=false",
            )
            module = load(source, options=options)
        memory = self.allocate(4)
        assert launch(kernel(module, "f"), memory) == 0
        assert read(memory, INT) == [902]

    def test_warnings_are_in_the_log_unless_unwanted(self):
        source = '#warning mind the gap\nextern "C" __global__ void f() {}'
        _, status, log = compile_program(source)
        assert status == 0
        assert "test.cu(1): warning: " in log
        assert "mind the gap" in log
        assert compile_program(source, options=("-w",))[1:] == (0, "")

    def test_headers(self):
        source = '#include "own/one.h"\nextern "C" __global__ void f(int* p) { *p = one(); }'
        headers = [("own/one.h", "__device__ int one() { return 1; }")]
        memory = self.allocate(4)
        assert launch(kernel(load(source, headers=headers), "f"), memory) == 0
        assert read(memory, INT) == [1]
        _, status, log = compile_program("#include <stdio.h>\n")
        assert status == 6
        assert "stdio.h" in log

    def test_virtual_architectures_give_text_alone(self):
        program, _, _ = compile_program(
            'extern "C" __global__ void f(int* p) { *p = 4; }', options=("-arch=compute_80",)
        )
        assert output(program) == b""
        text = output(program, "PTX")
        assert b".target sm_80" in text
        module, memory = make("cuModuleLoadData", text), self.allocate(4)
        assert launch(kernel(module, "f"), memory) == 0
        assert read(memory, INT) == [4]

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
        assert len(log.value) == values[1]

    def test_the_cache_on_disk(self):
        run_python(
            """
            import tempfile, glob
            source = 'extern "C" __global__ void f() {}'
            with tempfile.TemporaryDirectory() as folder:
                ctypes.CDLL(None).setenv(b"DOUBLE_CACHE", folder.encode(), 1)
                images = [output(compile_program(source)[0]) for _ in range(2)]
                assert images[0] == images[1]
                assert len(glob.glob(folder + "/*.so")) == 1
                compile_program(source + " ")
                assert len(glob.glob(folder + "/*.so")) == 2
            """
        )

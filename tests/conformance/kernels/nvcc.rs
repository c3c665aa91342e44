//! Programs written for nvcc, on the compilers of all devices.

use crate::context::{Context, error_of};
use crate::harness::{Outcome, tests};
use crate::programs::launch;
use gpuarray::signature::{self, Number, ValueType};
use gpuarray::{
    DeviceArray, ErrorKind, Kernel, LaunchConfig, LoadOptions, Module, Program, Result,
};
use std::sync::Arc;

tests![
    what_nvcc_includes_and_defines_is_available needs [Kernels],
    warp_functions_and_packed_numbers_are_cudas needs [Kernels],
    headers_of_a_program_are_found_in_its_folders needs [Kernels],
    errors_of_a_program_have_its_lines needs [Kernels],
    a_program_knows_its_signatures needs [Kernels],
];

fn load(context: &Context, program: &Program) -> Result<Arc<dyn Module>> {
    // SAFETY: the suite's own programs declare no variables with initialisers.
    unsafe { program.load(context.device.as_ref(), &LoadOptions::default()) }
}

/// The values that a kernel stores with a number of threads.
fn values(context: &Context, kernel: &Arc<dyn Kernel>, count: u32) -> Result<Vec<f64>> {
    let mut out = DeviceArray::<f64>::zeros(&context.device, &[count as usize])?;
    let stream = context.device.default_stream();
    launch(kernel, LaunchConfig::linear(count, count), &stream, (&mut out,))?;
    out.to_vec()
}

fn what_nvcc_includes_and_defines_is_available(context: &Context) -> Outcome {
    let text = "
        #include <iostream>
        #include <vector>
        #include <limits>
        #include <stdint.h>
        #ifndef __NVCC__
        #error this program is for nvcc
        #endif
        typedef struct { float x, y; } __align__(8) point;
        __global__ void k(double *out) {
            register uint32_t n = WIDTH;
            out[0] = n + sizeof(point) + std::sqrt(16.0f);
            out[1] = std::numeric_limits<int>::max() == INT_MAX && FLT_MAX > 1e38f && M_PI > 3;
            out[2] = __CUDACC_VER_MAJOR__ >= 9;
        }";
    let program = Program::new(text).extern_c(true);
    let options = ["-DWIDTH=7", "-O3", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "-lm"];
    let program = options.into_iter().fold(program, Program::option);
    let kernel = load(context, &program)?.kernel("k")?;
    assert_eq!(values(context, &kernel, 3)?, [19.0, 1.0, 1.0]);
    Ok(())
}

fn warp_functions_and_packed_numbers_are_cudas(context: &Context) -> Outcome {
    let text = "
        __global__ void k(double *out) {
            const int t = threadIdx.x;
            const int first = __shfl_sync(0xffffffff, t + 5, 0);
            out[t] = first + __popc(__ballot_sync(0xffffffff, t & 1)) + warpSize
                + __vadd4(0x01010101, t) % 16 + min(t, 3u) + __fadd_rz(1.0f, 0.0f);
        }";
    let kernel = load(context, &Program::new(text).extern_c(true))?.kernel("k")?;
    let expected: Vec<f64> =
        (0..32_u32).map(|t| f64::from(5 + 16 + 32 + (t + 1) % 16 + t.min(3) + 1)).collect();
    assert_eq!(values(context, &kernel, 32)?, expected);
    Ok(())
}

fn headers_of_a_program_are_found_in_its_folders(context: &Context) -> Outcome {
    let folder = std::env::temp_dir().join(format!("gpuarray-nvcc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let own = "#include <stdint.h>\n#include <pycuda-complex.hpp>\ninline __device__ uint8_t nine() { return 9; }\n";
    std::fs::write(folder.join("own.h"), own).expect("a file");
    let text = "#include \"own.h\"\nextern \"C\" __global__ void k(double *out) { *out = nine(); }";
    let kernel =
        load(context, &Program::new(text).include_dir(&folder)).and_then(|it| it.kernel("k"));
    std::fs::remove_dir_all(&folder).expect("the folder");
    assert_eq!(values(context, &kernel?, 1)?, [9.0]);
    Ok(())
}

fn errors_of_a_program_have_its_lines(context: &Context) -> Outcome {
    let text =
        "#include <math.h>\n#include <limits>\n__global__ void k(float *x) {\n  *x = nowhere;\n}";
    let program = Program::new(text).file("waves.cu").extern_c(true);
    let error = error_of(program.compile(context.device.as_ref()));
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    let is_named = ["waves.cu(4)", "waves.cu:4:"].iter().any(|it| error.detail().contains(it));
    assert!(is_named && error.detail().contains("nowhere"), "{error}");
    Ok(())
}

fn a_program_knows_its_signatures(context: &Context) -> Outcome {
    let text = "__global__ void axpy(T a, const T *__restrict__ x, T *y, int n) {}";
    let program = Program::new(text).extern_c(true).option("-DT=float");
    let module = load(context, &program)?;
    let signature = signature::of(module.as_ref(), "axpy").expect("the text is known");
    assert_eq!(signature.parameters.len(), 4);
    let x = &signature.parameters[1];
    assert!(
        x.is_pointer && x.is_const && x.is_restrict && x.of == ValueType::Number(Number::Float(4))
    );
    Ok(())
}

//! The kernels of the tests, and functions that launch them.

use crate::context::Context;
use gpuarray::launch::KernelArguments;
use gpuarray::{
    Direction, Kernel, LaunchConfig, LoadOptions, Module, ModuleSource, Result, Stream, Transfer,
};
use std::sync::Arc;

/// The kernels in CUDA C.
pub(crate) const SOURCE: &str = r#"
struct Record { double x; int y; float z[3]; };

extern "C" {

__device__ int counter = 5;
__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__global__ void nothing() {}

__global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void set(int* out, int value) { *out = value; }

__global__ void add(int* values, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += value;
}

__global__ void sum_of(int* out, const int* values, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += values[i];
    *out = sum;
}

__global__ void count() { atomicAdd(&counter, 1); }

__global__ void scale(float* values) { values[threadIdx.x] *= factors[threadIdx.x]; }

__global__ void places(int* out) {
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = ((blockIdx.x * 10 + blockIdx.y) * 10 + blockIdx.z) * 1000
        + (threadIdx.x * 10 + threadIdx.y) * 10 + threadIdx.z;
}

// The sum of 0 to n - 1, through n numbers of shared memory.
__global__ void dynamic(int* out, int n) {
    extern __shared__ int numbers[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) numbers[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < n; ++i) sum += numbers[i];
        *out = sum;
    }
}

__global__ void fixed(int* out) {
    __shared__ int numbers[1024];
    numbers[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = numbers[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(64) narrow(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void types(double* out, bool a, signed char b, short c, int d, long long e,
                      unsigned char f, unsigned short g, unsigned int h, unsigned long long i,
                      float j, double k, unsigned short half, float2 complex, double2 wide) {
    double all[] = {(double)a, (double)b, (double)c, (double)d, (double)e, (double)f, (double)g,
                    (double)h, (double)i, (double)j, k, (double)half, (double)complex.x,
                    (double)complex.y, wide.x, wide.y};
    for (int index = 0; index < 16; ++index) out[index] = all[index];
}

__global__ void record(double* out, Record it, int last) {
    out[0] = it.x;
    out[1] = it.y;
    out[2] = it.z[0] + 10 * it.z[1] + 100 * it.z[2];
    out[3] = last;
}

// Nobody goes on before every block has come: `arrived` counts them.
__global__ void meet(unsigned int* arrived, unsigned int* seen) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
        seen[blockIdx.x] = atomicAdd(arrived, 0);
    }
}

}
"#;

/// Returns the module of [`SOURCE`].
pub(crate) fn module(context: &Context) -> Result<Arc<dyn Module>> {
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    // SAFETY: the text above has functions only.
    unsafe { context.device.load_module(&source, &LoadOptions::default()) }
}

/// Returns a kernel of [`SOURCE`].
pub(crate) fn kernel(context: &Context, name: &str) -> Result<Arc<dyn Kernel>> {
    module(context)?.kernel(name)
}

/// Launches a kernel of [`SOURCE`].
pub(crate) fn launch(
    kernel: &Arc<dyn Kernel>,
    config: LaunchConfig,
    stream: &Arc<dyn Stream>,
    arguments: impl KernelArguments,
) -> Result<()> {
    // SAFETY: the tests pass the declared parameters, with arrays as large as the kernels write.
    // Tests that do not do so check that the launch is refused.
    unsafe { kernel.launch(config, stream, arguments) }
}

/// Returns a configuration with blocks and threads along x, and without dynamic shared memory.
pub(crate) const fn grid(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig::new([blocks, 1, 1], [threads, 1, 1])
}

pub(crate) const ONE: LaunchConfig = grid(1, 1);

/// Copies the bytes of `values` to `address`, and waits until every stream sees them.
pub(crate) fn write<T: gpuarray::Element>(
    stream: &dyn Stream,
    address: u64,
    values: &[T],
) -> Result<()> {
    let from = values.as_ptr() as u64;
    let copy = Transfer::linear(Direction::HostToDevice, address, from, size_of_val(values), true);
    // SAFETY: the callers pass an address with at least as many bytes, and the call waits.
    unsafe { stream.transfer(&copy)? };
    // A driver may stage pageable bytes and copy them later in the stream's order.
    stream.synchronize()
}

/// Copies device memory at `address` into `values`, and waits.
pub(crate) fn read<T: gpuarray::Element>(
    stream: &dyn Stream,
    address: u64,
    values: &mut [T],
) -> Result<()> {
    let to = values.as_mut_ptr() as u64;
    let copy = Transfer::linear(Direction::DeviceToHost, to, address, size_of_val(values), true);
    // SAFETY: as for `write`.
    unsafe { stream.transfer(&copy) }
}

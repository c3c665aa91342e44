//! Runs plans on the first NVIDIA GPU.
//!
//! Every array of the test is mirrored in device memory. The operations' addresses are moved to the
//! mirrors, which are copied back at the end. Without a driver, a device or NVRTC, the cases are
//! skipped, unless `GPUARRAY_REQUIRE` (a comma-separated list) includes `cuda`.

use crate::cuda::{Gpu, Handle};
use crate::harness::{blocks, plan};
use gpuarray_codegen::source::{KernelSpec, Plan, unit};
use hal::operation::{Description, Indexed, Input, Mapped, Operand};
use std::collections::HashSet;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static GPU: LazyLock<Result<Gpu, String>> = LazyLock::new(Gpu::new);
static RUN: AtomicUsize = AtomicUsize::new(0);

/// Runs the operations in order; returns false, and prints the reason, if no GPU is available.
#[must_use]
pub(crate) fn run(operations: &[Description]) -> bool {
    let gpu = match &*GPU {
        Ok(gpu) => gpu,
        Err(reason) => {
            let required = std::env::var("GPUARRAY_REQUIRE").unwrap_or_default();
            let required = required.split(',').any(|name| name.trim() == "cuda");
            assert!(!required, "GPUARRAY_REQUIRE lists cuda, but {reason}");
            eprintln!("skipped on the GPU: {reason}");
            return false;
        }
    };
    // SAFETY: the context is retained for the life of the process.
    gpu.check("cuCtxSetCurrent", unsafe { (gpu.driver.cuCtxSetCurrent)(gpu.context) });
    let mirrors: Vec<Mirror> = blocks().into_iter().map(|host| Mirror::new(gpu, host)).collect();
    let mut plans: Vec<Plan> = operations.iter().map(|it| plan(&moved(it, &mirrors))).collect();
    let mut seen = HashSet::new();
    let specs: Vec<KernelSpec> = plans
        .iter()
        .map(|plan| plan.spec().clone())
        .filter(|spec| seen.insert(spec.clone()))
        .collect();
    let module = Module::new(gpu, &gpu.compile(&unit(specs)));
    for plan in &mut plans {
        // Kernels must not rely on the contents of the workspace, for example zeros.
        let workspace = Buffer::new(gpu, &vec![0xa5; plan.workspace_bytes().max(1)]);
        plan.set_workspace(workspace.address);
        for launch in plan.launches() {
            let name = &plan.spec().kernel_names()[launch.kernel];
            let kernel = module.kernel(name);
            let mut arguments = plan.arguments(launch);
            let ([x, y, z], [i, j, k]) = (launch.config.grid, launch.config.block);
            let shared = launch.config.shared_bytes;
            // SAFETY: the arguments match the kernel, in memory of the plan, and their addresses
            // belong to live buffers of this context. The stream is the default one, which also
            // orders the copies.
            let status = unsafe {
                let (arguments, extra) = (arguments.as_mut_ptr(), null_mut());
                (gpu.driver.cuLaunchKernel)(kernel, x, y, z, i, j, k, shared, 0, arguments, extra)
            };
            gpu.check(name, status);
        }
        // SAFETY: a context is current. An error here may come from a concurrent test;
        // `--test-threads=1` avoids that.
        let status = unsafe { (gpu.driver.cuCtxSynchronize)() };
        gpu.check(&format!("{:?}", plan.spec().kernel_names()), status);
    }
    mirrors.iter().for_each(Mirror::copy_back);
    let total = RUN.fetch_add(plans.len(), Ordering::Relaxed) + plans.len();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("{test}: {} operations ran on the GPU, {total} in all so far", plans.len());
    true
}

/// Device memory.
struct Buffer<'a> {
    gpu: &'a Gpu,
    address: u64,
}

impl<'a> Buffer<'a> {
    /// Returns device memory with these bytes, of which there is at least one.
    fn new(gpu: &'a Gpu, bytes: &[u8]) -> Self {
        let mut address = 0;
        // SAFETY: a context is current, and both sides have this many bytes.
        unsafe {
            gpu.check("cuMemAlloc", (gpu.driver.cuMemAlloc_v2)(&mut address, bytes.len()));
            let source = bytes.as_ptr().cast();
            gpu.check("copy", (gpu.driver.cuMemcpyHtoD_v2)(address, source, bytes.len()));
        }
        Buffer { gpu, address }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory belongs to this buffer, and freeing waits for kernels that use it.
        let _ = unsafe { (self.gpu.driver.cuMemFree_v2)(self.address) };
    }
}

/// An array of the test and its copy on the device.
struct Mirror<'a> {
    host: (u64, usize),
    device: Buffer<'a>,
}

impl<'a> Mirror<'a> {
    fn new(gpu: &'a Gpu, host: (u64, usize)) -> Self {
        // SAFETY: the array lives as long as it is listed.
        let bytes = unsafe { std::slice::from_raw_parts(host.0 as *const u8, host.1) };
        Mirror { host, device: Buffer::new(gpu, bytes) }
    }

    fn copy_back(&self) {
        let gpu = self.device.gpu;
        // SAFETY: both sides have this many bytes, and the test holds no reference to the array.
        let status = unsafe {
            let target = self.host.0 as *mut c_void;
            (gpu.driver.cuMemcpyDtoH_v2)(target, self.device.address, self.host.1)
        };
        gpu.check("copy back", status);
    }
}

/// Loaded code.
struct Module<'a> {
    gpu: &'a Gpu,
    handle: Handle,
}

impl<'a> Module<'a> {
    fn new(gpu: &'a Gpu, code: &[u8]) -> Self {
        let mut handle = 0;
        // SAFETY: a context is current, and the code is a complete cubin, which contains its size.
        let status = unsafe { (gpu.driver.cuModuleLoadData)(&mut handle, code.as_ptr().cast()) };
        gpu.check("cuModuleLoadData", status);
        Module { gpu, handle }
    }

    fn kernel(&self, name: &str) -> Handle {
        let (mut kernel, text) = (0, CString::new(name).unwrap());
        // SAFETY: the name ends with a zero byte and lives until the call returns.
        let status = unsafe {
            (self.gpu.driver.cuModuleGetFunction)(&mut kernel, self.handle, text.as_ptr())
        };
        self.gpu.check(name, status);
        kernel
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: every launch has been waited for, or has failed.
        let _ = unsafe { (self.gpu.driver.cuModuleUnload)(self.handle) };
    }
}

/// Returns the operation with its addresses in the mirrors.
fn moved(operation: &Description, mirrors: &[Mirror]) -> Description {
    let mut operation = operation.clone();
    let shift = |operand: &mut Operand| {
        let offset = |mirror: &Mirror| operand.address.checked_sub(mirror.host.0);
        let inside = |mirror: &&Mirror| offset(mirror).is_some_and(|it| it < mirror.host.1 as u64);
        let mirror = mirrors.iter().find(inside).expect("an operand outside the test's arrays");
        operand.address = operand.address - mirror.host.0 + mirror.device.address;
    };
    let input = |input: &mut Input| match input {
        Input::Array(operand) => shift(operand),
        Input::Scalar(_) => {}
    };
    let indexed = |it: &mut Indexed| [&mut it.base, &mut it.indices].into_iter().for_each(shift);
    match &mut operation {
        Description::Elementwise(it) => {
            it.inputs.iter_mut().for_each(input);
            shift(&mut it.output);
        }
        Description::Fused(it) => {
            it.inputs.iter_mut().for_each(input);
            it.outputs.iter_mut().for_each(shift);
        }
        Description::Reduce(it) => {
            match &mut it.input {
                Mapped::Identity(x) | Mapped::SquaredDeviation(x) | Mapped::Position(x) => shift(x),
                Mapped::Product(x, y) => {
                    [x, y].into_iter().for_each(shift);
                }
                Mapped::Formula(it) => it.inputs.iter_mut().for_each(input),
                Mapped::Indexed(it) => indexed(it),
            }
            shift(&mut it.output);
        }
        Description::Scan(it) => [&mut it.input, &mut it.output].into_iter().for_each(shift),
        Description::Gather(it) => {
            indexed(&mut it.source);
            shift(&mut it.output);
        }
        Description::Scatter(it) => {
            input(&mut it.input);
            indexed(&mut it.target);
        }
        Description::Sequence(it) => shift(&mut it.output),
        Description::Sort(it) => [&mut it.input, &mut it.output].into_iter().for_each(shift),
        Description::Nonzero(it) => {
            [&mut it.mask, &mut it.output].into_iter().chain(&mut it.values).for_each(shift);
        }
        _ => panic!("an operation that this harness does not know"),
    }
    operation
}

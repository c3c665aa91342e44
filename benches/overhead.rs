//! The time that this library adds to a launch, measured over a fake driver whose functions return
//! immediately. `PYGPU_NVRTC` or an installed NVRTC compiles the kernels.

#![allow(missing_docs, reason = "the macro makes a public function")]

use backend_cuda::{open_file, symbols};
use criterion::{Criterion, criterion_group, criterion_main};
use gpuarray::array::functions;
use gpuarray::memory::DeviceMemory;
use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, ModuleSource};
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::Command;

/// The functions that must return a result.
const WORKING: &str = r#"
#include <stddef.h>
#include <string.h>
typedef unsigned long long u64;
static char memory[1 << 20] __attribute__((aligned(512)));
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { (void)d; strncpy(s, "made up", (size_t)n); return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { (void)d; strncpy(s, "0000:00:00.0", (size_t)n); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = sizeof memory; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = a == 75 ? 9 : a == 76 ? 0 : 1024; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = (void *)memory; return 0; }
int cuCtxGetCurrent(void **c) { *c = (void *)memory; return 0; }
int cuMemAlloc_v2(u64 *p, size_t n) { (void)n; *p = (u64)memory; return 0; }
int cuMemPoolCreate(void **p, void *a) { (void)a; *p = (void *)memory; return 0; }
int cuMemAllocFromPoolAsync(u64 *p, size_t n, void *a, void *s) { (void)n; (void)a; (void)s; *p = (u64)memory; return 0; }
int cuModuleLoadDataEx(void **m, void *i, unsigned n, int *o, void **v) { (void)i; (void)n; (void)o; (void)v; *m = (void *)memory; return 0; }
int cuModuleGetFunction(void **f, void *m, char *n) { (void)m; (void)n; *f = (void *)memory; return 0; }
int cuStreamCreateWithPriority(void **s, unsigned f, int p) { (void)f; (void)p; *s = (void *)memory; return 0; }
int cuEventCreate(void **e, unsigned f) { (void)f; *e = (void *)memory; return 0; }
"#;

fn overhead(criterion: &mut Criterion) {
    let folder = std::env::temp_dir().join(format!("gpuarray-overhead-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (required, optional) = symbols();
    let mut source = WORKING.to_owned();
    for name in required.iter().chain(&optional) {
        // The library works without cuFuncGetParamInfo, and these functions never read parameters.
        if !WORKING.contains(&format!("int {name}(")) && *name != "cuFuncGetParamInfo" {
            writeln!(source, "int {name}() {{ return 0; }}").expect("text");
        }
    }
    std::fs::write(folder.join("cuda.c"), source).expect("the source");
    let library = folder.join("libcuda.so.1");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-w", "-o"])
        .args([&library, &folder.join("cuda.c")])
        .status()
        .expect("a C compiler");
    assert!(status.success());
    // SAFETY: the functions have the driver's signatures for the arguments that they read.
    let backend = unsafe { open_file(&library) }.expect("the made-up driver opens");
    let device = backend.device(0).expect("its device");
    let a = DeviceArray::<f32>::from_slice(&device, &[1.0; 1024]).expect("an array");
    let b = DeviceArray::<f32>::from_slice(&device, &[1.0; 1024]).expect("an array");
    let mut c = a.copy().expect("an array");
    let text = "extern \"C\" __global__ void axpy(float a, const float *x, float *y, int n) {}";
    let source = ModuleSource::Source { text, name: "axpy.cu", options: &[] };
    // SAFETY: the module is compiled from the text above.
    let module = unsafe { device.load_module(&source, &LoadOptions::default()) }.expect("a module");
    let kernel = module.kernel("axpy").expect("a kernel");
    let stream = device.default_stream();
    let config = LaunchConfig::linear(1024, 128);

    criterion.bench_function("launch", |bencher| {
        // SAFETY: the fake driver runs nothing.
        bencher.iter(|| unsafe { kernel.launch(config, &stream, (2f32, &a, &mut c, 1024i32)) })
    });
    criterion.bench_function("allocate and free", |bencher| {
        bencher.iter(|| DeviceMemory::for_stream(&device, &stream, 4096))
    });
    criterion.bench_function("a + b", |bencher| bencher.iter(|| black_box(&a) + black_box(&b)));
    criterion.bench_function("a += b", |bencher| bencher.iter(|| c.update(functions::Add, &b)));
    criterion.bench_function("sum", |bencher| bencher.iter(|| a.reduce(functions::Sum, None)));
    let _ = std::fs::remove_dir_all(&folder);
}

criterion_group!(benches, overhead);
criterion_main!(benches);

//! The cost of operations from Rust on the host backend: small ones, dominated by the call's
//! overhead, and large ones, dominated by memory and arithmetic.

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a failure ends the benchmark")]

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use gpuarray::array::functions;
use gpuarray::memory::DeviceMemory;
use gpuarray::{Choice, Device, DeviceArray};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const SMALL: usize = 1000;
/// Rows and columns of the large arrays: 64 MiB of `f32`.
const SIDE: usize = 4096;

fn device() -> Arc<dyn Device> {
    gpuarray::open(Choice::Host).unwrap().device(0).unwrap()
}

fn small(criterion: &mut Criterion) {
    let device = device();
    let a = DeviceArray::<f32>::ones(&device, &[SMALL]).unwrap();
    let b = DeviceArray::<f32>::full(&device, &[SMALL], 2.0).unwrap();
    let mut total = a.copy().unwrap();
    let mut group = criterion.benchmark_group("small");
    group.bench_function("a + b", |bench| bench.iter(|| (&a + black_box(&b)).unwrap()));
    group.bench_function("a += b", |bench| {
        bench.iter(|| total.update(functions::Add, black_box(&b)).unwrap());
    });
    group.bench_function("a[10:500]", |bench| {
        bench.iter(|| a.index(black_box(&[(10..500).into()])).unwrap());
    });
    group.bench_function("allocate and free 4 KiB", |bench| {
        bench.iter(|| DeviceMemory::plain(&device, black_box(4096)).unwrap());
    });
    let stream = device.create_stream(Default::default()).unwrap();
    let (c, d) = (a.on(&stream).unwrap(), b.on(&stream).unwrap());
    group.bench_function("a + b on a stream, waited for", |bench| {
        bench.iter(|| {
            let sum = (&c + black_box(&d)).unwrap();
            stream.synchronize().unwrap();
            sum
        });
    });
    group.finish();
}

fn large(criterion: &mut Criterion) {
    let device = device();
    let a = DeviceArray::<f32>::ones(&device, &[SIDE, SIDE]).unwrap();
    let b = DeviceArray::<f32>::full(&device, &[SIDE, SIDE], 2.0).unwrap();
    let turned = b.transpose(None).unwrap();
    let mut host = vec![0f32; SIDE * SIDE];
    let mut group = criterion.benchmark_group("large");
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements((SIDE * SIDE) as u64));
    group.bench_function("a + b", |bench| bench.iter(|| (&a + black_box(&b)).unwrap()));
    group.bench_function("a + b.T", |bench| bench.iter(|| (&a + black_box(&turned)).unwrap()));
    group.bench_function("sum", |bench| bench.iter(|| black_box(&a).sum().unwrap()));
    group.bench_function("download", |bench| {
        bench.iter(|| black_box(&a).copy_to_slice(&mut host).unwrap());
    });
    group.finish();
}

fn quick() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .without_plots()
}

criterion_group! {
    name = benches;
    config = quick();
    targets = small, large
}
criterion_main!(benches);

//! The backends that the suite runs against.

use crate::harness::{BackendUnderTest, Capability};
use crate::renamed::Renamed;
use backend_host::{HostBackend, HostConfig};
use gpuarray::{Backend, Choice, DeviceAttribute, Result};
use std::sync::Arc;

/// Every backend, with what it can and what is known to fail.
pub(crate) const BACKENDS: [BackendUnderTest; 3] = [
    BackendUnderTest {
        name: "host",
        open: open_host,
        second: |_| Renamed::backend(open_host()?, 1).device(0),
        capabilities: |_| {
            Ok(vec![
                Capability::ExactAccounting,
                Capability::SmallMemory,
                Capability::HostAddresses,
                Capability::SecondDevice,
                Capability::ConcurrentHostFunctions,
                Capability::Progress,
                Capability::ManagedMemory,
                Capability::Limits,
            ])
        },
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "cuda",
        open: || gpuarray::open(Choice::Cuda),
        second: |backend| backend.device(1),
        capabilities: cuda,
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "hip",
        open: || gpuarray::open(Choice::Hip),
        second: |backend| backend.device(1),
        capabilities: hip,
        expected_failures: &[],
        skipped: &[],
    },
];

/// A host of its own for each test, small enough to run out of memory.
fn open_host() -> Result<Arc<dyn Backend>> {
    Ok(HostBackend::with_config(HostConfig { memory: 64 << 20, cache: 8 << 20, threads: 2 }))
}

/// True for the driver double, which runs kernels on the host, one after another, when
/// somebody waits for them.
pub(crate) fn is_double(backend: &dyn Backend) -> Result<bool> {
    Ok(backend.device(0)?.properties().name.contains("Double"))
}

/// `CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH`; HIP's table gives the same number.
const COOPERATIVE_LAUNCH: DeviceAttribute = DeviceAttribute(95);

/// What every GPU can, and what this one says it can.
fn gpu(backend: &dyn Backend) -> Result<Vec<Capability>> {
    let device = backend.device(0)?;
    let double = is_double(backend)?;
    let has = |attribute| device.attribute(attribute).is_ok_and(|value| value != 0);
    let mut all = vec![
        Capability::Kernels,
        Capability::Graphs,
        Capability::GraphObjects,
        Capability::Pool,
        Capability::DriverPool,
        Capability::Sharing,
        Capability::ForeignStreams,
        Capability::Reset,
    ];
    let mut add = |capability, present: bool| all.extend(present.then_some(capability));
    add(Capability::Progress, !double);
    add(Capability::Double, double);
    add(Capability::OwnTarget, double && std::env::var_os("DOUBLE_FORWARD").is_none());
    add(Capability::ManagedMemory, has(DeviceAttribute::MANAGED_MEMORY));
    if backend.device_count()? > 1 {
        add(Capability::SecondDevice, true);
        add(Capability::Peers, device.can_access_peer(backend.device(1)?.as_ref())?);
    }
    Ok(all)
}

fn hip(backend: &dyn Backend) -> Result<Vec<Capability>> {
    let mut all = gpu(backend)?;
    // The calls came with ROCm 5.3 and 5.5.
    if backend.version()? >= 6_000 {
        all.extend([Capability::Limits, Capability::CooperativeLaunch]);
    }
    all.extend(resident_blocks(backend, &all)?);
    Ok(all)
}

fn resident_blocks(backend: &dyn Backend, all: &[Capability]) -> Result<Option<Capability>> {
    let together = all.contains(&Capability::CooperativeLaunch)
        && !is_double(backend)?
        && backend.device(0)?.attribute(COOPERATIVE_LAUNCH).is_ok_and(|it| it != 0);
    Ok(together.then_some(Capability::ResidentBlocks))
}

fn cuda(backend: &dyn Backend) -> Result<Vec<Capability>> {
    let mut all = gpu(backend)?;
    all.extend([
        Capability::Ptx,
        Capability::ForeignContexts,
        Capability::KernelAttributes,
        Capability::Limits,
        Capability::CooperativeLaunch,
    ]);
    all.extend(resident_blocks(backend, &all)?);
    if !is_double(backend)? {
        all.extend([Capability::Jit, Capability::Linker]);
    }
    // `cuFuncGetParamInfo` came with CUDA 12.4.
    all.extend((backend.version()? >= 12_040).then_some(Capability::ParameterInfo));
    Ok(all)
}

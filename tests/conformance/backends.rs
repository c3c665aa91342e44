//! The backends that the suite runs against.

use crate::harness::{BackendUnderTest, Capability};
use crate::renamed::Renamed;
use crate::skeleton;
use backend_host::{HostBackend, HostConfig};
use gpuarray::{Backend, Choice, Feature, Result};
use std::sync::Arc;

/// Every backend, with its capabilities and known failures.
pub(crate) const BACKENDS: [BackendUnderTest; 4] = [
    BackendUnderTest {
        name: "host",
        open: open_host,
        open_apart: open_host,
        second: |_| Renamed::backend(open_host()?, 1).device(0),
        capabilities: |_| {
            Ok(vec![
                Capability::ExactAccounting,
                Capability::SmallMemory,
                Capability::HostAddresses,
                Capability::SecondDevice,
                Capability::ConcurrentHostFunctions,
                Capability::Progress,
                Capability::ResidentBlocks,
            ])
        },
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "cuda",
        open: || gpuarray::open(Choice::Cuda),
        open_apart: backend_cuda::open,
        second: |backend| backend.device(1),
        capabilities: gpu,
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "hip",
        open: || gpuarray::open(Choice::Hip),
        open_apart: backend_hip::open,
        second: |backend| backend.device(1),
        capabilities: gpu,
        expected_failures: &[],
        skipped: &[],
    },
    // A backend that implements only the required methods.
    BackendUnderTest {
        name: "skeleton",
        open: skeleton::open,
        open_apart: skeleton::open,
        second: |_| Renamed::backend(skeleton::open()?, 1).device(0),
        capabilities: |_| {
            Ok(vec![
                Capability::SecondDevice,
                Capability::ConcurrentHostFunctions,
                Capability::Progress,
            ])
        },
        expected_failures: &[(
            "pools::an_address_tells_its_allocation",
            "address_range is the trait's own, which refuses",
        )],
        skipped: &[
            ("dtypes", "the operations are the host's"),
            ("elementwise", "the operations are the host's"),
            ("expressions", "the operations are the host's"),
            ("random_expressions", "the operations are the host's"),
            ("views", "the operations are the host's"),
            ("reductions", "the operations are the host's"),
            ("indexed", "the operations are the host's"),
            ("sorting", "the operations are the host's"),
            ("isolated", "other processes open backends by a Choice, which has no skeleton"),
        ],
    },
];

/// Opens a separate host backend for each test, with little enough memory that a test can use it
/// up.
fn open_host() -> Result<Arc<dyn Backend>> {
    Ok(HostBackend::with_config(HostConfig { memory: 64 << 20, cache: 8 << 20, threads: 2 }))
}

/// Returns true for the fake driver, which runs kernels on the host, one after another, when a
/// caller waits for them.
pub(crate) fn is_double(backend: &dyn Backend) -> Result<bool> {
    Ok(backend.device(0)?.properties().name.contains("Double"))
}

/// Returns this GPU's capabilities that only tests need.
fn gpu(backend: &dyn Backend) -> Result<Vec<Capability>> {
    let device = backend.device(0)?;
    let double = is_double(backend)?;
    let features = device.features();
    let mut all = Vec::new();
    let mut add = |capability, present: bool| all.extend(present.then_some(capability));
    add(Capability::Driver, true);
    add(Capability::Progress, !double);
    add(Capability::Double, double);
    add(Capability::OwnTarget, double && std::env::var_os("DOUBLE_FORWARD").is_none());
    add(Capability::Jit, !double && features.contains(Feature::Linker));
    add(Capability::ResidentBlocks, !double && features.contains(Feature::CooperativeLaunch));
    if backend.device_count()? > 1 {
        add(Capability::SecondDevice, true);
        add(Capability::Peers, device.can_access_peer(backend.device(1)?.as_ref())?);
    }
    Ok(all)
}

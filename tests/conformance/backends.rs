//! The backends that the suite runs against.

use crate::harness::{BackendUnderTest, Capability};
use crate::renamed::Renamed;
use backend_host::{HostBackend, HostConfig};
use gpuarray::{Backend, Choice, Error, Result};
use std::sync::Arc;

/// Every backend, with what it can and what is known to fail.
pub(crate) const BACKENDS: [BackendUnderTest; 3] = [
    BackendUnderTest {
        name: "host",
        open: open_host,
        open_second: || Ok(Renamed::backend(open_host()?, 1)),
        capabilities: &[
            Capability::ExactAccounting,
            Capability::SmallMemory,
            Capability::HostAddresses,
            Capability::SecondDevice,
            Capability::ConcurrentHostFunctions,
        ],
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "cuda",
        open: || gpuarray::open(Choice::Cuda),
        open_second: no_second,
        capabilities: &[],
        expected_failures: &[],
        skipped: &[],
    },
    BackendUnderTest {
        name: "hip",
        open: || gpuarray::open(Choice::Hip),
        open_second: no_second,
        capabilities: &[],
        expected_failures: &[],
        skipped: &[],
    },
];

/// A host of its own for each test, small enough to run out of memory.
fn open_host() -> Result<Arc<dyn Backend>> {
    Ok(HostBackend::with_config(HostConfig { memory: 64 << 20, cache: 8 << 20, threads: 2 }))
}

fn no_second() -> Result<Arc<dyn Backend>> {
    Err(Error::unavailable("open", "there is no second device"))
}

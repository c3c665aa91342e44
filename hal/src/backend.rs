//! Backends: the entry to the devices of one vendor.

use crate::device::Device;
use crate::error::Result;
use crate::status::Api;
use std::fmt::Debug;
use std::sync::Arc;

/// One vendor's devices, or the host's, behind one set of calls.
///
/// A value of this type is an opened backend: its library is loaded and answers. Every
/// method may be called from any thread.
pub trait Backend: Send + Sync + Debug {
    /// The name that programs choose it by: `cuda`, `hip` or `host`.
    fn name(&self) -> &'static str;

    /// Whose status codes its errors carry.
    fn api(&self) -> Api;

    /// The version of the driver, as `1000 * major + 10 * minor`.
    fn version(&self) -> Result<i32>;

    /// The number of devices.
    fn device_count(&self) -> Result<usize>;

    /// The device with the number `ordinal`: the same device, with the same identity, each
    /// time.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such device.
    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>>;

    /// The vendor's name of a status code.
    fn status_name(&self, code: i32) -> Option<&'static str>;
}

//! The vendor-neutral layer: the traits of backends, statuses, dtypes, descriptions of operations, and memory with
//! its ordering. The crate does not depend on a backend and links no library.
//!
//! The modules have an order: each names only modules before it, and a test checks this. Locks, statuses and errors
//! come first, then [`dtype`], [`properties`] and [`texture`], [`event`], [`function`] and [`scalar`], [`operation`],
//! [`stream`], [`module`], [`device`], [`backend`], [`recording`], [`memory`], and last [`launch`] and [`layers`]. The
//! captures of [`stream`] also name [`memory`], because they keep memory.
//!
//! # Errors and statuses
//!
//! Every fallible call returns [`Result<T>`](Result). Programs that use `?` get an [`Error`] with a
//! [kind](ErrorKind), the driver's own number, the name of the call, and a message.
//!
//! Programs that handle statuses like C programs call the methods of [`StatusExt`] on the same results. Success is
//! also a [`Status`]:
//!
//! ```
//! use gpuarray_hal::{Backend, Status, StatusExt};
//!
//! fn count(backend: &dyn Backend) -> usize {
//!     // As `cudaGetDeviceCount` of PyGPU: a value and a status.
//!     let (count, status) = backend.device_count().split_or_default();
//!     if !status.is_success() {
//!         eprintln!("{status}: {}", status.message());
//!     }
//!     count
//! }
//!
//! // Without the value.
//! fn wait(stream: &dyn gpuarray_hal::Stream) -> Status {
//!     stream.synchronize().status()
//! }
//! ```
//!
//! A status consists of a vendor and a number. Any number is allowed. A known number has the
//! vendor's name, and can be converted to the other vendor's number:
//!
//! ```
//! use gpuarray_hal::{ErrorKind, Status};
//!
//! let status = Status::hip(2);
//! assert_eq!(status.name(), Some("hipErrorOutOfMemory"));
//! assert_eq!(status.to_cuda(), Some(2));
//!
//! // Back to an error, for `?`.
//! let error = status.check("my_library_call").unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::OutOfMemory);
//! ```
//!
//! [Streams](stream::StreamCore::last_status), [events](Event::last_status) and arrays keep the
//! status of their last call:
//!
//! ```
//! use gpuarray_hal::{Result, Status, StatusExt, Stream};
//!
//! fn drain(streams: &[std::sync::Arc<dyn Stream>]) -> Vec<Status> {
//!     streams.iter().for_each(|stream| drop(stream.synchronize()));
//!     streams.iter().map(|stream| stream.last_status()).collect()
//! }
//! ```

mod enumeration;

pub mod abi;
pub mod backend;
pub mod checking;
pub mod device;
pub mod dtype;
pub mod environment;
pub mod error;
pub mod event;
pub mod failures;
pub mod function;
pub mod interruption;
pub mod iteration;
pub mod launch;
pub mod layers;
pub mod library;
pub mod locks;
pub mod memory;
pub mod module;
pub mod nonblocking;
pub mod operation;
pub mod poison;
pub mod process;
pub mod properties;
pub mod random {
    //! Random numbers on a device: generators whose states are in device memory.
    //!
    //! The same seeds make the same numbers on every backend, bit for bit.

    pub use random::distribution::Distribution;
    pub use random::sobol::DIMENSIONS;
    pub use random::{Generator, Jump, definitions, sobol};
}
pub mod recording;
pub mod scalar;
pub mod status;
pub mod stream;
pub mod submission;
pub mod texture;

pub use backend::Backend;
pub use device::Device;
pub use dtype::narrow::types::*;
pub use dtype::{DType, Element, Kind};
pub use error::{Error, ErrorKind, Result, StatusExt};
pub use event::{Event, EventOptions};
pub use module::{
    Kernel, KernelAttribute, LaunchConfig, LaunchLimits, LinkInput, LinkKind, LoadOptions, Module,
    ModuleSource, Parameter, SourceText,
};
pub use nonblocking::backlog;
pub use num_complex::Complex;
pub use properties::{
    DeviceAttribute, DeviceId, DeviceProperties, Feature, Features, IpcHandle, MemoryInfo,
    PinnedOptions,
};
pub use scalar::Scalar;
pub use status::{Api, Status};
pub use stream::{
    CaptureMode, Direction, Graph, HostRange, PrefetchTarget, Stream, StreamOptions, Transfer,
};

//! GPU arrays on NVIDIA GPUs, AMD GPUs and the CPU; the backend is chosen when the program starts.
//!
//! # Arrays
//!
//! [`open`] finds a backend and returns its devices. A [`DeviceArray`] is an array in the memory of one device.
//! Operators, functions and reductions queue work on the array's stream. A call that returns values to the program
//! waits for that work:
//!
//! ```
//! use gpuarray::{Choice, DeviceArray};
//!
//! fn main() -> gpuarray::Result<()> {
//!     let device = gpuarray::open(Choice::Auto)?.device(0)?;
//!     let x = DeviceArray::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
//!     let y = (&(&x * 2.0)? + &x)?;
//!     assert_eq!(y.to_vec()?, [3.0, 6.0, 9.0, 12.0]);
//!     assert_eq!(x.index(&[(1..3).into()])?.sum()?, 5.0);
//!     Ok(())
//! }
//! ```
//!
//! A function exists only for the element types that support it, and its signature gives the result's type. A call with
//! an unsupported element type therefore does not compile. Indices and ranges make views over the same memory:
//!
//! ```
//! use gpuarray::{Choice, DeviceArray, s};
//!
//! fn main() -> gpuarray::Result<()> {
//!     let device = gpuarray::open(Choice::Auto)?.device(0)?;
//!     let mut table = DeviceArray::<f32>::zeros(&device, &[3, 4])?;
//!     table.index(&s![1..=2, ..;2])?.fill(1.0)?;
//!     assert_eq!(table.sum_along(&[1])?.to_vec()?, [0.0, 2.0, 2.0]);
//!     table.mul_assign(0.5)?;
//!     assert_eq!(table.mean()?, 1.0 / 6.0);
//!     Ok(())
//! }
//! ```
//!
//! # Kernels, streams, graphs
//!
//! Kernels in CUDA C are compiled when the program runs, for the CPU as well. A [`Program`] takes the text and the
//! options that nvcc takes, on every backend. Streams and events work as in CUDA; arrays that several streams use
//! order the work automatically. [`coming_from_cudarc`] has an example of each, and a table of cudarc's calls.
//! [`record!`] makes structs usable as elements and as kernel arguments. To call an existing library, pass it an
//! array's address and stream while you hold an [`AccessGuard`](memory::AccessGuard), as `examples/glue.rs` shows.
//!
//! A copy that the program does not wait for owns a page-locked buffer. Waiting for the copy returns the buffer:
//!
//! ```
//! use gpuarray::{Choice, DeviceArray, PinnedBuffer, StreamOptions};
//!
//! fn main() -> gpuarray::Result<()> {
//!     let device = gpuarray::open(Choice::Auto)?.device(0)?;
//!     let samples = DeviceArray::from_slice(&device, &[4.0f64, f64::NAN, 9.0])?;
//!     let missing: DeviceArray<bool> = samples.is_nan()?;
//!     assert!(missing.any()?);
//!
//!     let stream = device.create_stream(StreamOptions::default())?;
//!     let copy = samples.on(&stream)?.sqrt()?.copy_to_pinned(PinnedBuffer::new(&device, 3)?)?;
//!     // Other work, on the host or on other streams.
//!     let roots = copy.wait()?;
//!     assert_eq!(roots[0] + roots[2], 5.0);
//!     Ok(())
//! }
//! ```
//!
//! # Errors
//!
//! A call that fails returns an [`Error`]: a [kind](ErrorKind) to match on, the driver's status number, the name of
//! the call and a message. For programs that check numbers as C does, every result can be split into a value and a
//! status:
//!
//! ```
//! use gpuarray::{Choice, Status, StatusExt};
//!
//! let (backend, status) = gpuarray::open(Choice::Host).split();
//! assert!(status.is_success());
//! let (device, status) = backend.expect("the host is always there").device(7).split();
//! assert!(device.is_none());
//! assert_eq!(status.code, Status::INVALID_DEVICE);
//! assert_eq!(status.runtime_name(), Some("cudaErrorInvalidDevice"));
//! ```
//!
//! A backend is opened when the program asks for it. A missing driver is an ordinary
//! [`ErrorKind::BackendUnavailable`], never a panic. Dropping an array frees its memory after the work that uses it,
//! on every stream. This crate re-exports what programs use. Backends, layers and bindings depend on the crates
//! `gpuarray-hal`, `gpuarray-array`, `gpuarray-codegen` and `gpuarray-driver` directly.
//!
//! # Features
//!
//! All features are on by default; `default-features = false` leaves out their code and dependencies.
//!
//! - `cuda`, `hip`, `host`: the backend of that name. Opening a backend that is left out returns an ordinary
//!   [`ErrorKind::BackendUnavailable`] that names the feature.
//! - `aot`: lets the build script compile builtin operations ahead of time, for the devices in `PYBIND_GPU_TARGET`.
//!   Without this feature the build is shorter, because the build script needs no second copy of the library; setting
//!   that variable is then an error.

#[doc = include_str!("../docs/coming-from-cudarc.md")]
pub mod coming_from_cudarc {}

/// The examples of this page are tested together with the crate's.
#[cfg(doctest)]
#[doc = include_str!("../docs/rust.md")]
mod rust_page {}

mod choice;
mod embedded;
mod program;
mod registry;
pub mod signature;

pub use ::array::{
    Argument, Array, DeviceArray, Expression, ExpressionArgument, FusedBlock, IndexItem, Inexact,
    Layout, ManagedArray, ManagedSlice, ManagedSliceMut, Number, Order, PendingCopy, PinnedBuffer,
    SliceBounds, Strided, s,
};
pub use choice::Choice;
pub use embedded::{BuildInfo, build_info};
pub use hal::dtype::narrow::types::*;
pub use hal::module::Compiled;
pub use hal::record;
pub use hal::{
    Api, Backend, CaptureMode, Complex, DType, Device, DeviceAttribute, DeviceId, DeviceProperties,
    Direction, Element, Error, ErrorKind, Event, EventOptions, Feature, Features, Graph, IpcHandle,
    Kernel, KernelAttribute, Kind, LaunchConfig, LaunchLimits, LinkInput, LinkKind, LoadOptions,
    MemoryInfo, Module, ModuleSource, Parameter, PinnedOptions, PrefetchTarget, Result, Scalar,
    SourceText, Status, StatusExt, Stream, StreamOptions, Transfer,
};
pub use program::Program;
pub use registry::{BACKEND_VARIABLE, BackendInfo, Opened, backends, open};

/// Functions of typed arrays, and the traits of element types that have them.
pub mod array {
    pub use array::functions;
    pub use array::typed::Operand;
    pub use array::{Arithmetic, Bits, Float, Inexact, Integer, Lazy, LazyOperand, Numeric, Real};
}

/// Checks that find faults in kernels while they run on the host.
pub mod checking {
    pub use hal::checking::{Checking, Checks, current};
}

/// The functions that untyped arrays compute.
pub mod function {
    pub use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
}

/// Kernel arguments of a launch.
pub mod launch {
    pub use hal::launch::{ArgumentList, KernelArgument, KernelArguments, Launcher};
}

/// The positions of an array's elements in memory.
pub mod layout {
    pub use array::layout::{
        IndexItem, Layout, MAX_AXES, Order, SliceBounds, broadcast_shapes, checked_size,
        dense_layout, normalize_axis, shape_text,
    };
}

/// Memory as objects: allocations that free themselves after the work that uses them.
pub mod memory {
    pub use hal::memory::{
        Access, AccessGuard, AddressLease, Allocation, Allocator, DeviceMemory, DevicePool,
        GraphObject, HostAccess, Imported, Managed, PinnedMemory, PinnedPool, Pitched,
        PooledPinned, RegisteredMemory, Use, last_failed_free,
    };
}

/// Generators of random numbers, and the distributions that they draw from.
pub mod random {
    pub use hal::random::{DIMENSIONS, Distribution, Generator, Jump, sobol};
}

/// The traits that group the calls of a [`Stream`]. A `dyn Stream` works without importing them.
pub mod stream {
    pub use hal::stream::{StreamCapture, StreamCore, StreamMemory, StreamState};
}

/// A record of a program's work, with the times of host and device: a table, a timeline, a page.
pub mod recording {
    pub use hal::recording::{
        AtLine, Kind, LIMIT, Recording, Row, Session, Sort, Work, copy_rate, during, line_number,
        queued, wait_event,
    };
}

/// Texture arrays, texture objects and surface objects.
pub mod texture {
    pub use hal::memory::{SurfaceObject, TextureArray, TextureObject};
    pub use hal::texture::{
        AddressMode, ArrayCopy, ArrayShape, ChannelFormat, CopySide, Sampling, TexelFormat,
        TextureResource,
    };
}

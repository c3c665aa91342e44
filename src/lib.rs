//! GPU arrays on NVIDIA, on AMD and on no GPU at all, chosen when the program starts.
//!
//! # Arrays
//!
//! [`open`] finds a backend and returns its devices. A [`DeviceArray`] lies in the memory of one. Operators,
//! functions and reductions queue work on the array's stream, and what returns values to the program waits for it:
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
//! A function is there for the element types that have it, with the type of its value; what could
//! never succeed does not compile. Views are made by indices and ranges, and share the memory:
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
//! Kernels in CUDA C are compiled when the program runs, on the host also: a [`Program`] is what nvcc takes, on every
//! backend. Streams and events are those
//! of CUDA; arrays that several streams use order the work by themselves. [`coming_from_cudarc`] has a program for
//! each, and a table of calls. Structs become elements and arguments of kernels by [`record!`]. A library that
//! exists already is called with an array's address and stream under an [`AccessGuard`](memory::AccessGuard), as
//! `examples/glue.rs` shows.
//!
//! Copies that are not waited for own a page-locked buffer, which
//! comes back when they are done:
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
//! A call that fails returns an [`Error`]: a [kind](ErrorKind) to decide on, the driver's number, the call and a
//! sentence. Every result is also a value and a status, for programs that check numbers as C does:
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
//! A backend is opened when it is asked for; a missing driver is an ordinary
//! [`ErrorKind::BackendUnavailable`], never a panic. Arrays free their memory behind the work
//! that uses it, on whatever streams that runs. What programs use is re-exported here.
//! Backends, decorators and bindings depend on the crates `gpuarray-hal`, `gpuarray-array`, `gpuarray-codegen` and
//! `gpuarray-driver` themselves.
//!
//! # Features
//!
//! All are on by default; with `default-features = false` nobody compiles what they leave out.
//!
//! - `cuda`, `hip`, `host`: the backend of that name. One that is left out is an ordinary
//!   [`ErrorKind::BackendUnavailable`] that names the feature.
//! - `aot`: the build script can compile builtin operations ahead of time, for the devices that
//!   `PYBIND_GPU_TARGET` names. Without it the build compiles no copy of the core for the script,
//!   and setting that variable is an error.

#[doc = include_str!("../docs/coming-from-cudarc.md")]
pub mod coming_from_cudarc {}

mod embedded;
pub mod program;
mod registry;
pub mod signature;

pub use ::array::{
    Argument, Array, DeviceArray, IndexItem, Inexact, Layout, ManagedArray, ManagedSlice,
    ManagedSliceMut, Number, Order, PendingCopy, PinnedBuffer, SliceBounds, Strided, s,
};
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
pub use registry::{BACKEND_VARIABLE, BackendInfo, Choice, Opened, backends, open};

/// Functions of typed arrays, and the traits of element types that have them.
pub mod array {
    pub use array::functions;
    pub use array::typed::Operand;
    pub use array::{Arithmetic, Bits, Float, Inexact, Integer, Numeric, Real};
}

/// Looking for faults of kernels while they run on the host.
pub mod checking {
    pub use hal::checking::{Checking, Checks, current};
}

/// The functions that untyped arrays are told to compute.
pub mod function {
    pub use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
}

/// Arguments of launches.
pub mod launch {
    pub use hal::launch::{ArgumentList, KernelArgument, KernelArguments, Launcher};
}

/// Where the elements of an array lie.
pub mod layout {
    pub use array::layout::{
        IndexItem, Layout, MAX_AXES, Order, SliceBounds, broadcast_shapes, checked_size,
        dense_layout, normalize_axis, shape_text,
    };
}

/// Memory as objects: allocations that free themselves, in the order of the work that uses them.
pub mod memory {
    pub use hal::memory::{
        Access, AccessGuard, AddressLease, Allocation, Allocator, DeviceMemory, DevicePool,
        GraphObject, HostAccess, Imported, Managed, PinnedMemory, PinnedPool, Pitched,
        PooledPinned, RegisteredMemory, Use, last_failed_free,
    };
}

/// Generators of random numbers, and what they draw.
pub mod random {
    pub use hal::random::{DIMENSIONS, Distribution, Generator, Jump, sobol};
}

/// The groups of calls that a [`Stream`] has. A `dyn Stream` needs none of these names.
pub mod stream {
    pub use hal::stream::{StreamCapture, StreamCore, StreamMemory, StreamState};
}

/// Arrays of texels, texture and surface objects.
pub mod texture {
    pub use hal::memory::{SurfaceObject, TextureArray, TextureObject};
    pub use hal::texture::{
        AddressMode, ArrayCopy, ArrayShape, ChannelFormat, CopySide, Sampling, TexelFormat,
        TextureResource,
    };
}

//! The vendor-neutral layer: traits, status values, dtypes, layouts, arrays and kernel
//! specifications. It knows no backend and links nothing.

mod enumeration;

pub mod array;
pub mod attempt;
pub mod backend;
pub mod backlog;
pub mod decorate;
pub mod device;
pub mod driver;
pub mod dtype;
pub mod error;
pub mod event;
pub mod function;
pub mod iteration;
pub mod launch;
pub mod layout;
mod locks;
pub mod memory;
pub mod module;
pub mod operation;
pub mod process;
pub mod scalar;
pub mod setting;
pub mod source;
pub mod status;
pub mod stream;

pub use array::{Argument, Array, DeviceArray, Inexact, Number};
pub use backend::Backend;
pub use device::{
    Device, DeviceAttribute, DeviceId, DeviceProperties, IpcHandle, MemoryInfo, PinnedOptions,
};
pub use dtype::{DType, Element, Kind};
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, EventOptions};
pub use half::f16;
pub use layout::{IndexItem, Layout, Order, SliceBounds};
pub use module::{
    Kernel, KernelAttribute, LaunchConfig, LinkInput, LinkKind, LoadOptions, Module, ModuleSource,
    Parameter,
};
pub use num_complex::Complex;
pub use scalar::Scalar;
pub use status::{Api, Status};
pub use stream::{CaptureMode, Direction, Graph, PrefetchTarget, Stream, StreamOptions, Transfer};

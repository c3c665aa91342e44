//! The one implementation of devices, streams, events, modules and kernels that CUDA and HIP
//! share, over a table of driver calls.
//!
//! A vendor's crate has three parts: the symbols of the functions of [`calls::Calls`]
//! ([`driver_names!`](crate::driver_names)); the functions that the vendor alone has
//! ([`driver_calls!`](crate::driver_calls)); and a type that implements [`vendor::Vendor`] for what
//! the drivers do differently, and [`DriverLibrary`] for how the library is opened. [`fn@open`] returns
//! the [`hal::Backend`] over them.

mod backend;
pub mod blas;
mod builtin;
pub mod calls;
mod context;
mod device;
mod errors;
mod event;
mod features;
mod kernel;
mod memory;
mod module;
mod open;
mod pages;
mod query_support;
mod sharing;
mod staging;
mod state;
mod stream;
pub mod texture;
pub mod vendor;

#[doc(hidden)]
pub use hal::abi;
pub use open::{DriverLibrary, VendorCalls, open, open_file, search, symbols};

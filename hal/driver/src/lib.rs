//! The shared implementation of devices, streams, events, modules and kernels for CUDA and HIP, over a
//! table of driver calls.
//!
//! A vendor's crate has three parts: the symbols of the functions of [`calls::Calls`]
//! ([`driver_names!`](crate::driver_names)); the vendor-specific functions
//! ([`driver_calls!`](crate::driver_calls)); and a type that implements [`vendor::Vendor`] for the
//! differences between the drivers, and [`DriverLibrary`] for opening the library. [`fn@open`] returns
//! the [`hal::Backend`] over them.

mod backend;
pub mod blas;
mod builtin;
pub mod calls;
mod capture_state;
mod context;
mod device;
mod event;
mod kernel;
mod memory;
mod open_captures;
mod pages;
mod sharing;
mod staging;
mod state;
mod stream;
pub mod texture;
mod texture_calls;
pub mod vendor;

pub use backend::{DriverLibrary, open, open_file, search, symbols};
pub use calls::VendorCalls;
#[doc(hidden)]
pub use hal::abi;

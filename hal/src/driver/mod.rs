//! The one implementation of devices, streams, events, modules and kernels that CUDA and HIP
//! share, over a table of driver calls.
//!
//! A vendor's crate finds the functions of [`calls::Calls`] in its library by
//! [`calls::Names`], implements [`vendor::Vendor`] for what the two drivers do differently,
//! and gets a [`crate::Backend`] from [`open`].

mod attribute;
mod backend;
mod builtin;
pub mod calls;
mod capture_state;
mod context;
mod device;
mod errors;
mod event;
mod features;
mod ipc;
mod kernel;
mod launch;
mod memory;
mod module;
mod peer;
mod query_support;
mod staging;
mod state;
mod stream;
pub mod vendor;

pub use backend::open;

//! The one implementation of devices, streams, events, modules and kernels that CUDA and HIP
//! share, over a table of driver calls.
//!
//! A vendor's crate finds the functions of [`calls::Calls`] in its library by
//! [`calls::Names`], implements [`vendor::Vendor`] for what the two drivers do differently,
//! and gets a [`crate::Backend`] from [`open`].

mod backend;
mod blocks;
mod builtin;
pub mod cache;
pub mod calls;
mod capture;
mod captures;
pub mod compiler;
mod context;
mod device;
pub mod embedded;
mod event;
mod graph;
pub mod image;
pub mod jit;
mod kept;
mod kernel;
pub mod library;
mod module;
mod pool;
mod query;
mod share;
mod staging;
mod status;
mod stream;
mod transfer;
pub mod vendor;

pub use backend::open;

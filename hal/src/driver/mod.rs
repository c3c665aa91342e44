//! The one implementation of devices, streams, events, modules and kernels that CUDA and HIP
//! share, over a table of driver calls.
//!
//! A vendor's crate finds the functions of [`calls::Calls`] in its library by
//! [`calls::Names`], implements [`vendor::Vendor`] for what the two drivers do differently,
//! and gets a [`crate::Backend`].

pub mod cache;
pub mod calls;
pub mod compiler;
pub mod library;
pub mod vendor;

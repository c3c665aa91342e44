//! Code for devices: from text to code objects, without a driver.
//!
//! It turns text, options and a [`Target`] into bytes
//! that a driver loads, and a build script uses it where there is no driver. A driver's device loads
//! the bytes and says whether it takes them.
//!
//! | part | holds |
//! |---|---|
//! | [`Compiler`], [`Compilation`], [`Compiled`] | a compiler that is present at run time |
//! | [`program`] | NVRTC and hipRTC, one C interface under two prefixes |
//! | [`CodeCache`], [`compile_cached`] | compiled code on disk |
//! | [`embedded`] | code compiled ahead of time, part of the program |
//! | [`mod@format`] | whether bytes are whole ELF files, fat binaries or PTX |
//! | [`JitOptions`] | options and logs of the drivers' loaders and linkers |

mod cache;
mod cached;
mod compiler;
pub mod embedded;
pub mod format;
mod jit;
pub mod lookup;
pub mod program;
mod target;

pub use cache::{CodeCache, CodeKey};
pub use cached::{compile_cached, compile_closed, may_read_files};
pub use compiler::{Compilation, Compiler};
pub use hal::module::Compiled;
pub use jit::JitOptions;
pub use target::{TARGETS, Target};

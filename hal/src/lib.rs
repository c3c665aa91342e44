//! The vendor-neutral layer: traits, status values, dtypes, layouts, arrays and kernel
//! specifications. It knows no backend and links nothing.

pub mod dtype;
pub mod error;
pub mod function;
pub mod operation;
pub mod scalar;
pub mod status;

pub use dtype::{DType, Element, Kind};
pub use error::{Error, ErrorKind, Result};
pub use half::f16;
pub use num_complex::Complex;
pub use scalar::Scalar;
pub use status::{Api, Status};

//! The table of dtypes: one row for each. Everything else about a dtype follows from its row.
//!
//! A row of `dtypes` reads
//!
//! ```text
//! /// What an element is.
//! Variant "numpy's name" Kind rust_type [zero, one]
//!     c("type in registers", "type in memory", "struct of its functions") Working Use;
//! ```
//!
//! `Working` is the dtype in which sums and products are kept until they are stored. `Use` says how often
//! programs calculate with the dtype: `Often`, `Sometimes` or `Seldom`. The CUDA C types are defined in
//! `codegen/src/source/cuda/types.cuh`.
//!
//! `EXTENSIONS` lists the dtypes that numpy lacks.

use super::{DType, Extension};

/// The dtypes that a Python package outside numpy defines.
pub(super) const EXTENSIONS: [(DType, Extension); 1] =
    [(DType::BFloat16, Extension { package: "ml_dtypes", dlpack_code: 4 })];

/// Calls the macro `$callback` with the tokens after it, then the rows of all dtypes that support arithmetic.
#[doc(hidden)]
#[macro_export]
macro_rules! dtypes {
    ($callback:ident $($given:tt)*) => {
        $callback! { $($given)*
            /// One byte, 0 or 1.
            Bool "bool" Bool bool [false, true] c("bool", "u8", "BoolFunctions") Bool Sometimes;
            /// Signed 8-bit integer.
            Int8 "int8" Signed i8 [0, 1] c("i8", "i8", "IntegerFunctions<i8>") Int8 Seldom;
            /// Signed 16-bit integer.
            Int16 "int16" Signed i16 [0, 1] c("i16", "i16", "IntegerFunctions<i16>") Int16 Seldom;
            /// Signed 32-bit integer.
            Int32 "int32" Signed i32 [0, 1] c("i32", "i32", "IntegerFunctions<i32>") Int32 Often;
            /// Signed 64-bit integer.
            Int64 "int64" Signed i64 [0, 1] c("i64", "i64", "IntegerFunctions<i64>") Int64 Often;
            /// Unsigned 8-bit integer.
            UInt8 "uint8" Unsigned u8 [0, 1] c("u8", "u8", "IntegerFunctions<u8>") UInt8 Sometimes;
            /// Unsigned 16-bit integer.
            UInt16 "uint16" Unsigned u16 [0, 1]
                c("u16", "u16", "IntegerFunctions<u16>") UInt16 Seldom;
            /// Unsigned 32-bit integer.
            UInt32 "uint32" Unsigned u32 [0, 1]
                c("u32", "u32", "IntegerFunctions<u32>") UInt32 Sometimes;
            /// Unsigned 64-bit integer.
            UInt64 "uint64" Unsigned u64 [0, 1]
                c("u64", "u64", "IntegerFunctions<u64>") UInt64 Seldom;
            /// IEEE 754 binary16.
            Float16 "float16" Float $crate::f16 [$crate::f16::ZERO, $crate::f16::ONE]
                c("f16", "f16", "NarrowFunctions<f16>") Float32 Seldom;
            /// bfloat16: the upper half of a `Float32`.
            BFloat16 "bfloat16" Float $crate::bf16 [$crate::bf16::ZERO, $crate::bf16::ONE]
                c("bf16", "bf16", "NarrowFunctions<bf16>") Float32 Seldom;
            /// IEEE 754 binary32.
            Float32 "float32" Float f32 [0.0, 1.0] c("f32", "f32", "RealFunctions<f32>") Float32 Often;
            /// IEEE 754 binary64.
            Float64 "float64" Float f64 [0.0, 1.0] c("f64", "f64", "RealFunctions<f64>") Float64 Often;
            /// Two `Float32`: real, imaginary.
            Complex64 "complex64" Complex $crate::Complex<f32>
                [$crate::Complex::new(0.0, 0.0), $crate::Complex::new(1.0, 0.0)]
                c("c64", "c64", "ComplexFunctions<f32>") Complex64 Sometimes;
            /// Two `Float64`: real, imaginary.
            Complex128 "complex128" Complex $crate::Complex<f64>
                [$crate::Complex::new(0.0, 0.0), $crate::Complex::new(1.0, 0.0)]
                c("c128", "c128", "ComplexFunctions<f64>") Complex128 Sometimes;
        }
    };
}

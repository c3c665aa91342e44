//! Integer arguments.

use crate::numpy_array;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// A type to which an argument is converted.
pub(crate) trait Integer: Sized {
    /// Returns the smallest and the largest value, as text.
    fn bounds() -> (String, String);
    /// Converts with PyO3, whose errors name neither the argument nor the value.
    fn extract(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! integers {
    ($($rust:ident),*) => {
        $(
            impl Integer for $rust {
                fn bounds() -> (String, String) {
                    ($rust::MIN.to_string(), $rust::MAX.to_string())
                }

                fn extract(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                    value.extract()
                }
            }
        )*
    };
}

integers!(i32, u32, u64, isize, usize);

/// Converts the argument `name`.
///
/// Raises `TypeError` for an object that is not an integer, and `OverflowError` for a value that
/// `T` cannot hold; both name the argument.
pub(crate) fn integer<T: Integer>(name: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    T::extract(value).map_err(|error| {
        let py = value.py();
        if error.is_instance_of::<PyOverflowError>(py) {
            let (low, high) = T::bounds();
            return PyOverflowError::new_err(format!(
                "{name} is {value}; a whole number from {low} to {high} is needed"
            ));
        }
        if error.is_instance_of::<PyTypeError>(py) && !value.is_instance_of::<PyInt>() {
            let kind = numpy_array::type_name(value);
            return PyTypeError::new_err(format!(
                "{name} is of type {kind}; a whole number is needed"
            ));
        }
        error
    })
}

/// Conversions of arguments of these names, for PyO3's `from_py_with`.
pub(crate) mod argument {
    use super::{Integer, integer};
    use pyo3::prelude::*;

    macro_rules! arguments {
        ($($name:ident)*) => {
            $(
                pub(crate) fn $name<T: Integer>(value: &Bound<'_, PyAny>) -> PyResult<T> {
                    integer(stringify!($name), value)
                }
            )*
        };
    }

    arguments! {
        access_size address attr attribute axis bin_nr channels config decimals dest_ordinal fc
        flags input_type keep length limit mem_flags n offset ordinal other priority shared
        shared_size size src_ordinal threads value
    }
}

//! Combining elements: how, and the methods that combine all into one.

use super::GPUArray;
use super::functions::reduce_all;
use gpuarray::function::Reduction;
use pyo3::prelude::*;

macro_rules! class {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal ($($rule:ident),*) = $numpy:literal
            $(-> $module:ident($python:ident))?;
    )*) => {
        /// How elements are combined into one.
        #[pyclass(module = "pygpu._core", name = "Reduction", frozen, eq, hash)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum PyReduction { $($(#[doc = $doc])+ $variant,)* }

        impl PyReduction {
            pub(super) fn value(self) -> Reduction {
                match self { $(PyReduction::$variant => Reduction::$variant,)* }
            }
        }
    };
}
gpuarray::hal::reductions!(class);

type Object<'py> = PyResult<Bound<'py, PyAny>>;
type OptionalAny<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

#[pymethods]
impl GPUArray {
    /// Returns the sum of all elements, as an array without axes; see `gpuarray.sum`.
    ///
    /// Parameters
    /// ----------
    /// dtype : dtype, optional
    ///     What the sum is computed in: that of the array, unlike numpy's, which widens small
    ///     integers.
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// allocator : callable, optional
    ///     Where the result's memory comes from.
    #[pyo3(signature = (dtype = None, stream = None, allocator = None))]
    fn sum<'py>(
        slf: &Bound<'py, Self>,
        dtype: OptionalAny<'_, 'py>,
        stream: OptionalAny<'_, 'py>,
        allocator: OptionalAny<'_, 'py>,
    ) -> Object<'py> {
        reduce_all(slf, Reduction::Sum, dtype, stream, allocator)
    }

    /// Returns the smallest element, as an array without axes; NaN if any element is.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Where the work is queued.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The array has no elements.
    #[pyo3(signature = (stream = None))]
    fn min<'py>(slf: &Bound<'py, Self>, stream: OptionalAny<'_, 'py>) -> Object<'py> {
        reduce_all(slf, Reduction::Minimum, None, stream, None)
    }

    /// Returns the largest element, as an array without axes; NaN if any element is.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Where the work is queued.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The array has no elements.
    #[pyo3(signature = (stream = None))]
    fn max<'py>(slf: &Bound<'py, Self>, stream: OptionalAny<'_, 'py>) -> Object<'py> {
        reduce_all(slf, Reduction::Maximum, None, stream, None)
    }

    /// Returns True, as an array without axes, if any element is not zero.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// allocator : callable, optional
    ///     Where the result's memory comes from.
    #[pyo3(signature = (stream = None, allocator = None))]
    fn any<'py>(
        slf: &Bound<'py, Self>,
        stream: OptionalAny<'_, 'py>,
        allocator: OptionalAny<'_, 'py>,
    ) -> Object<'py> {
        reduce_all(slf, Reduction::Any, None, stream, allocator)
    }

    /// Returns True, as an array without axes, if no element is zero.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Where the work is queued.
    /// allocator : callable, optional
    ///     Where the result's memory comes from.
    #[pyo3(signature = (stream = None, allocator = None))]
    fn all<'py>(
        slf: &Bound<'py, Self>,
        stream: OptionalAny<'_, 'py>,
        allocator: OptionalAny<'_, 'py>,
    ) -> Object<'py> {
        reduce_all(slf, Reduction::All, None, stream, allocator)
    }
}

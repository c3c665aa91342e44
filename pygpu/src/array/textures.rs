//! Arrays that kernels read through texture references.

use super::GPUArray;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// Returns a function of `pygpu._driver.textures`, which implements the rest.
fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("pygpu._driver.textures")?.getattr(name)
}

#[pymethods]
impl GPUArray {
    /// Lets kernels read the array through a texture reference, whose format must match the elements.
    ///
    /// Parameters
    /// ----------
    /// texref : driver.TextureReference. The reference.
    /// allow_offset : bool. True to allow an address that is not aligned for textures.
    ///
    /// Returns
    /// -------
    /// float
    ///     The number of elements before the array at which the texture begins.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The address is not aligned, and `allow_offset` is false.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import driver, gpuarray
    /// >>> reference, a = driver.TextureReference(), gpuarray.zeros(64, "f4")
    /// >>> reference.set_format(driver.array_format.FLOAT, 1)
    /// >>> a.bind_to_texref(reference, allow_offset=True) >= 0
    /// True
    #[pyo3(signature = (texref, allow_offset = false))]
    fn bind_to_texref<'py>(
        slf: &Bound<'py, Self>,
        texref: &Bound<'py, PyAny>,
        allow_offset: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        function(slf.py(), "bind_gpuarray")?.call1((slf, texref, allow_offset))
    }

    /// Lets kernels read the array through a texture reference, and sets its element type.
    ///
    /// Parameters
    /// ----------
    /// texref : driver.TextureReference. The reference.
    /// channels : int. The number of elements per texel: 1, 2 or 4.
    /// allow_double_hack, allow_complex_hack : bool
    ///     True to read float64 and complex elements as 32-bit channels.
    /// allow_offset : bool. True to allow an address that is not aligned for textures.
    ///
    /// Returns
    /// -------
    /// float
    ///     The number of elements before the array at which the texture begins.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The array is not contiguous.
    /// LogicError
    ///     The address is not aligned, and `allow_offset` is false.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import driver, gpuarray
    /// >>> reference, a = driver.TextureReference(), gpuarray.zeros(64, "f8")
    /// >>> a.bind_to_texref_ext(reference, allow_double_hack=True, allow_offset=True) >= 0
    /// True
    #[pyo3(signature = (
        texref, channels = 1, allow_double_hack = false, allow_complex_hack = false,
        allow_offset = false
    ))]
    fn bind_to_texref_ext<'py>(
        slf: &Bound<'py, Self>,
        texref: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = crate::integer::argument::channels)] channels: usize,
        allow_double_hack: bool,
        allow_complex_hack: bool,
        allow_offset: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let allowed =
            [("allow_double_hack", allow_double_hack), ("allow_complex_hack", allow_complex_hack)];
        let arguments = (slf, texref, channels, allow_offset);
        function(py, "bind_gpuarray_as")?.call(arguments, Some(&allowed.into_py_dict(py)?))
    }
}

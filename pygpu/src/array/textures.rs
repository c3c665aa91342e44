//! Texture references, which there are not.

use super::GPUArray;
use crate::errors::to_python;
use gpuarray::Error;
use pyo3::prelude::*;

#[pymethods]
impl GPUArray {
    /// Raises `Unsupported`: no `texref` can be bound, at an offset (`allow_offset`) or not, for there
    /// are no texture references.
    #[pyo3(signature = (texref, allow_offset = false))]
    fn bind_to_texref(&self, texref: &Bound<'_, PyAny>, allow_offset: bool) -> PyResult<()> {
        let _ = (texref, allow_offset);
        Err(no_references("bind_to_texref"))
    }

    /// Raises `Unsupported`: no `texref` can be bound, whatever `channels`, `allow_double_hack`,
    /// `allow_complex_hack` and `allow_offset` say, for there are no texture references.
    #[pyo3(signature = (
        texref, channels = 1, allow_double_hack = false, allow_complex_hack = false,
        allow_offset = false
    ))]
    fn bind_to_texref_ext(
        &self,
        texref: &Bound<'_, PyAny>,
        channels: usize,
        allow_double_hack: bool,
        allow_complex_hack: bool,
        allow_offset: bool,
    ) -> PyResult<()> {
        let _ = (texref, channels, allow_double_hack, allow_complex_hack, allow_offset);
        Err(no_references("bind_to_texref_ext"))
    }
}

fn no_references(call: &'static str) -> PyErr {
    to_python(Error::unsupported(
        call,
        "drivers since CUDA 12 have no texture references; pass the array to the kernel instead",
    ))
}

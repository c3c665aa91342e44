//! Matrix products.
#![allow(unsafe_op_in_unsafe_fn, reason = "PyO3 expands the methods of the macro below")]

use super::arguments::{expect_array, is_sequence, operand, optional_array};
use super::functions::with_allocator;
use super::transfer::on_stream;
use super::{GPUArray, Object, OptionalAny, run_on, wrap_with_allocator};
use crate::dtypes;
use crate::errors::OrRaise;
use pyo3::prelude::*;

/// Returns the product of matrices, as :func:`numpy.matmul`; ``out`` may be one of the factors.
///
/// On a GPU cuBLAS or rocBLAS multiplies floating-point and complex numbers where the library is found
/// (``PYGPU_CUBLAS``, ``PYGPU_ROCBLAS``), else a kernel does.
///
/// >>> a = gpuarray.to_gpu(np.array([[1, 2], [3, 4]]))
/// >>> (a @ a).get().tolist()
/// [[7, 10], [15, 22]]
#[pyfunction]
#[pyo3(signature = (a, b, out = None, dtype = None, stream = None, allocator = None))]
pub(crate) fn matmul<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    out: OptionalAny<'_, 'py>,
    dtype: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
    allocator: OptionalAny<'_, 'py>,
) -> Object<'py> {
    let (a, b) = (&operand(a)?, &operand(b)?);
    let (a, b) = (expect_array("a", a)?, expect_array("b", b)?);
    let left = with_allocator(on_stream(a.get().array()?, stream)?, allocator)?;
    let right = b.get().array()?;
    let compute = match dtype.filter(|dtype| !dtype.is_none()) {
        Some(dtype) => dtypes::parse(dtype)?.1,
        None => left.dtype().promote(right.dtype()).or_raise()?,
    };
    // The work grows faster than the number of elements.
    let elements = left.size().saturating_mul(right.shape().last().copied().unwrap_or(1));
    if let Some(out) = optional_array("out", out)? {
        let target = on_stream(out.get().array()?, stream)?;
        run_on(a, elements, || left.matmul_into(right, compute, &target))?;
        return Ok(out.clone().into_any());
    }
    let product = run_on(a, elements, || left.matmul(right, compute))?;
    wrap_with_allocator(a, product, allocator)
}

#[pymethods]
impl GPUArray {
    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        if other.is_instance_of::<GPUArray>() || is_sequence(other) {
            return matmul(slf.as_any(), other, None, None, None, None);
        }
        Ok(slf.py().NotImplemented().into_bound(slf.py()))
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
        if is_sequence(other) {
            return matmul(other, slf.as_any(), None, None, None, None);
        }
        Ok(slf.py().NotImplemented().into_bound(slf.py()))
    }

    fn __imatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        matmul(slf.as_any(), other, Some(slf.as_any()), None, None, None).map(|_| ())
    }
}

//! The block of `with pygpu.fused():`, whose operations are computed together.

use crate::synchronize::run;
use gpuarray::{Expression, FusedBlock};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of blocks that all threads have entered and not left.
static ENTERED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's block, and the number of times that it has been entered.
    static BLOCK: RefCell<(Option<FusedBlock>, usize)> = const { RefCell::new((None, 0)) };
}

/// Returns true if the operations of this thread are computed together.
#[inline]
pub(crate) fn is_on() -> bool {
    // A thread that ends may use arrays after its block is gone.
    ENTERED.load(Ordering::Relaxed) != 0
        && BLOCK.try_with(|block| block.borrow().0.is_some()).unwrap_or(false)
}

/// Returns true if an operation is computed together with others: not if it has one of the options, such as a stream.
#[inline]
pub(crate) fn is_on_without<const N: usize>(options: [Option<&Bound<'_, PyAny>>; N]) -> bool {
    is_on() && options.iter().flatten().all(|option| option.is_none())
}

/// Adds an operation to this thread's block; returns false if there is none, or if the operation has to be computed now.
pub(crate) fn add(expression: &Expression) -> bool {
    BLOCK.with_borrow(|(block, _)| block.as_ref().is_some_and(|block| block.add(expression)))
}

/// Computes element-wise operations on arrays together.
///
/// Inside a `with` block of this object, operators and functions of elements return arrays whose elements are computed
/// later: those that the program still refers to at the end of the block, in few passes over memory; others, when they
/// are needed. A sum, mean or other reduction of such an array combines the elements without storing them. Values are
/// the same, to the last bit, as without the block. Blocks may be nested; the outermost counts. A block belongs to its
/// thread.
///
/// Notes
/// -----
/// Arrays with an allocator, arrays of subclasses, and memory that another library can write are computed at once.
/// An error of a pending operation names its line. An operation on an array that another thread is using at that time
/// is computed at once.
///
/// Examples
/// --------
/// >>> import pygpu
/// >>> x = gpuarray.arange(4, dtype=np.float32)
/// >>> with pygpu.fused():
/// ...     y = x * x + x * 2 - 1
/// >>> y.get()
/// array([-1.,  2.,  7., 14.], dtype=float32)
#[pyclass(frozen, name = "fused", module = "pygpu")]
#[derive(Debug, Default)]
pub(crate) struct Fused;

#[pymethods]
impl Fused {
    #[new]
    fn new() -> Fused {
        Fused
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        ENTERED.fetch_add(1, Ordering::Relaxed);
        BLOCK.with_borrow_mut(|(block, times)| {
            block.get_or_insert_with(FusedBlock::new);
            *times += 1;
        });
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let ended = BLOCK.with_borrow_mut(|(block, times)| {
            // Zero on a thread that has not entered the block.
            if *times == 0 {
                return None;
            }
            ENTERED.fetch_sub(1, Ordering::Relaxed);
            *times -= 1;
            if *times == 0 { block.take() } else { None }
        });
        let Some(block) = ended else { return Ok(()) };
        let computed = run(py, usize::MAX, || block.compute());
        match exception.get_item(0) {
            // The program's own exception is more important.
            Ok(kind) if !kind.is_none() => Ok(()),
            _ => computed,
        }
    }
}

/// Computes the pending elements of this thread's block, before work that their operations must precede.
pub(crate) fn compute_pending(py: Python<'_>) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    // The block leaves its place meanwhile, because other code of this thread may run.
    let Some(block) = BLOCK.with_borrow_mut(|(block, _)| block.take()) else { return Ok(()) };
    let computed = run(py, usize::MAX, || block.compute());
    BLOCK.with_borrow_mut(|(place, _)| *place = Some(block));
    computed
}

//! Memory pools: blocks that are kept for later requests of their size.

mod device;
mod pinned;

pub(crate) use device::{DeviceMemoryPool, PooledDeviceAllocation, Ticket};
pub(crate) use pinned::{PageLockedAllocator, PageLockedMemoryPool, PooledHostAllocation};

use gpuarray::Error;
use hal::memory::pool;
use pyo3::prelude::*;

/// Returns the position of the highest set bit.
///
/// Parameters
/// ----------
/// n : int. A number, 0 or more.
///
/// Returns
/// -------
/// int
///     The logarithm to the base 2, rounded down; 0 for 0.
///
/// Raises
/// ------
/// OverflowError
///     `n` is negative.
///
/// Examples
/// --------
/// >>> from pygpu import driver
/// >>> driver.bitlog2(17)
/// 4
#[pyfunction]
pub(crate) fn bitlog2(#[pyo3(from_py_with = crate::integer::argument::n)] n: usize) -> u32 {
    n.checked_ilog2().unwrap_or(0)
}

fn block_size(bin: u32) -> PyResult<usize> {
    pool::block_size(bin).ok_or_else(|| {
        crate::errors::to_python(Error::invalid(
            "alloc_size",
            format!("bin is {bin}; sizes of this machine have bins below {}", usize::BITS << 4),
        ))
    })
}

/// Defines the members that both kinds of pools have.
macro_rules! pool_members {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The number of blocks that are kept for later requests.
            #[getter]
            fn held_blocks(&self) -> usize {
                self.counts().held_blocks
            }

            /// The number of blocks in use.
            #[getter]
            fn active_blocks(&self) -> usize {
                self.counts().active_blocks
            }

            /// The bytes of all blocks, in use or kept.
            #[getter]
            fn managed_bytes(&self) -> usize {
                self.counts().managed_bytes
            }

            /// The requested bytes that are in use.
            #[getter]
            fn active_bytes(&self) -> usize {
                self.counts().active_bytes
            }

            /// Returns the bin for blocks of a size.
            ///
            /// Parameters
            /// ----------
            /// size : int. The requested number of bytes.
            ///
            /// Returns
            /// -------
            /// int
            ///     The number of the bin.
            ///
            /// Raises
            /// ------
            /// OverflowError
            ///     `size` is negative.
            // Static, because programs for PyCUDA before 2017 call it without a pool.
            #[staticmethod]
            fn bin_number(
                #[pyo3(from_py_with = crate::integer::argument::size)] size: usize,
            ) -> u32 {
                hal::memory::pool::bin_number(size)
            }

            /// Returns the size of the blocks of a bin.
            ///
            /// Parameters
            /// ----------
            /// bin_nr : int. The number of the bin.
            ///
            /// Returns
            /// -------
            /// int
            ///     The bytes of a block.
            ///
            /// Raises
            /// ------
            /// LogicError
            ///     The bin does not exist.
            #[staticmethod]
            fn alloc_size(
                #[pyo3(from_py_with = crate::integer::argument::bin_nr)] bin_nr: u32,
            ) -> PyResult<usize> {
                super::block_size(bin_nr)
            }

            /// Frees the blocks that are kept for later requests.
            fn free_held(&self, py: Python<'_>) {
                // May wait for the device.
                py.detach(|| self.pool.free_held());
            }

            /// Frees the kept blocks; from now on, frees returned blocks immediately.
            fn stop_holding(&self, py: Python<'_>) {
                py.detach(|| self.pool.stop_holding());
            }
        }
    };
}
use pool_members;

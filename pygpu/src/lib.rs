//! The Python extension module `pygpu._core`: the core's arrays, streams and events as Python
//! classes. The package's Python modules give them PyCUDA's names.

mod allocation;
mod array;
mod driver;
mod dtypes;
mod errors;
mod host;
mod init;
mod runtime;
mod stream;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<crate::array::GPUArray>()?;
    module.add_class::<crate::array::ArrayFlags>()?;
    module.add_class::<allocation::DeviceAllocation>()?;
    module.add_class::<stream::PyStream>()?;
    module.add_class::<stream::PyEvent>()?;
    module.add_class::<driver::PagelockedHostAllocation>()?;
    module.add_class::<driver::RegisteredHostMemory>()?;
    macro_rules! functions {
        ($($path:path),* $(,)?) => {
            $(module.add_function(wrap_pyfunction!($path, module)?)?;)*
        };
    }
    functions!(
        allocation::mem_alloc,
        driver::backends,
        driver::copy_on_device,
        driver::copy_to_device,
        driver::copy_to_host,
        driver::current_ordinal,
        driver::device_attribute,
        driver::device_count,
        driver::device_properties,
        driver::driver_version,
        driver::fill_memory,
        driver::init,
        driver::last_failed_free,
        driver::mem_get_info,
        driver::pagelocked_empty,
        driver::register_host_memory,
        driver::synchronize,
        crate::array::apply_binary,
        crate::array::apply_unary,
        crate::array::dot,
        crate::array::full,
        crate::array::put,
        crate::array::reduce,
        crate::array::reduce_subset,
        crate::array::scan,
        crate::array::select,
        crate::array::sequence,
        crate::array::take,
        crate::array::to_gpu,
        runtime::choose_backend,
        runtime::fault_calls,
        runtime::inject_fault,
        runtime::set_current_device,
    );
    allocation::remember_mem_alloc(module.getattr("mem_alloc")?);
    Ok(())
}

//! The Python extension module `pygpu._core`: the core's arrays, streams and events as Python
//! classes. The package's Python modules expose them under PyCUDA's names.
//!
//! The modules have an order: each names only modules before it, and a test checks this. Errors, the conversion of
//! arguments, `numpy_array` and `current_device` come first, then `synchronize` and `deferred_drop`; memory: `pinned`,
//! `pool`, `allocation`, `allocator`; `fused_block`, `stream` and `event`; `array`; and last what is made of arrays:
//! `arrow`, `copies`, `graph`, `texture`, `kernel` and `module`.

mod allocation;
mod allocator;
mod array;
mod arrow;
mod buffers;
mod checks;
mod compile;
mod copies;
mod current_device;
mod deferred_drop;
mod device;
mod driver_copies;
mod dtypes;
mod entries;
mod errors;
mod event;
mod external_stream;
mod fused_block;
mod graph;
mod integer;
mod ipc;
mod kernel;
mod managed;
mod module;
mod numpy_array;
mod owner;
mod pinned;
mod pitched_copies;
mod pool;
mod profile;
mod random;
mod running_line;
mod shape;
mod status;
mod stream;
mod stream_registry;
mod synchronize;
#[cfg(feature = "testing")]
mod testing;
mod texture;
mod weak_array;
mod yielding;

use pyo3::prelude::*;

// Much here relies on the interpreter's lock: a free-threaded one enables it, with a warning, on this import.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    deferred_drop::watch_exit(module.py())?;
    macro_rules! classes {
        ($($path:ty),* $(,)?) => {
            $(module.add_class::<$path>()?;)*
        };
    }
    classes!(
        allocation::DeviceAllocation,
        array::ArrayFlags,
        array::DLPackTensor,
        array::GPUArray,
        array::PyReduction,
        array::UniversalFunction,
        arrow::ArrowOwner,
        event::CallTime,
        event::PyEvent,
        ipc::IPCMemoryHandle,
        kernel::ArgumentHandler,
        checks::PyChecking,
        kernel::ElementwiseLauncher,
        kernel::Function,
        kernel::In,
        kernel::Out,
        kernel::ReductionLauncher,
        managed::ManagedAllocation,
        module::Linker,
        module::PyModuleObject,
        pinned::PagelockedHostAllocation,
        pinned::RegisteredHostMemory,
        pool::DeviceMemoryPool,
        pool::PageLockedAllocator,
        pool::PageLockedMemoryPool,
        pool::PooledDeviceAllocation,
        pool::PooledHostAllocation,
        profile::Profile,
        fused_block::Fused,
        graph::PyCapture,
        graph::PyGraph,
        stream::PyStream,
        texture::PyTextureArray,
        texture::PyTextureObject,
        yielding::YieldingProperty,
    );
    yielding::install(module)?;
    kernel::install_handlers(module)?;
    macro_rules! functions {
        ($($path:path),* $(,)?) => {
            $(module.add_function(wrap_pyfunction!($path, module)?)?;)*
        };
    }
    functions!(
        buffers::buffer,
        array::end_foreign_memory,
        array::hold_memory,
        allocation::mem_alloc,
        allocation::mem_alloc_pitch,
        allocation::mem_get_address_range,
        copies::copy_between_devices,
        copies::copy_on_device,
        copies::copy_to_device,
        copies::gather_to_device,
        copies::copy_to_host,
        driver_copies::memcpy_dtod,
        driver_copies::memcpy_dtod_async,
        driver_copies::memcpy_dtoh,
        driver_copies::memcpy_dtoh_async,
        driver_copies::memcpy_htod,
        driver_copies::memcpy_htod_async,
        driver_copies::memset_d16,
        driver_copies::memset_d16_async,
        driver_copies::memset_d2d16,
        driver_copies::memset_d2d16_async,
        driver_copies::memset_d2d32,
        driver_copies::memset_d2d32_async,
        driver_copies::memset_d2d8,
        driver_copies::memset_d2d8_async,
        driver_copies::memset_d32,
        driver_copies::memset_d32_async,
        driver_copies::memset_d8,
        driver_copies::memset_d8_async,
        device::backends,
        dtypes::extension_dtype,
        dtypes::extension_dtypes,
        device::can_access_peer,
        device::current_ordinal,
        device::device_architecture,
        device::device_attribute,
        device::device_by_name,
        device::device_count,
        device::current_device_key,
        device::device_properties,
        device::device_uuid,
        device::driver_version,
        device::context_handle,
        device::get_limit,
        device::init,
        device::kept_memory,
        device::mem_get_info,
        device::reset_device,
        device::set_limit,
        device::set_peer_access,
        device::set_profiling,
        device::stream_priority_range,
        device::synchronize,
        device::trim_memory,
        numpy_array::host_memory_size,
        ipc::mem_get_ipc_handle,
        managed::managed_empty,
        compile::adapted_program,
        compile::diagnostics,
        compile::code_cache,
        compile::code_of,
        compile::compile_program,
        compile::compiler,
        compile::declares_references,
        compile::element_uses,
        compile::is_only_read,
        compile::kernel_names,
        module::module_from_buffer,
        module::module_from_file,
        compile::header_text,
        compile::toolkits,
        current_device::runs_kernels_on_host,
        compile::scan_functions,
        compile::scan_plan,
        pinned::pagelocked_empty,
        pinned::register_host_memory,
        pool::bitlog2,
        profile::recorded_memory,
        profile::was_opened,
        pitched_copies::copy_rows,
        pitched_copies::copy_rows_between_devices,
        random::random_direction_vectors,
        random::random_fill,
        random::random_fill_from_seed,
        random::random_generator,
        random::random_points,
        random::random_scramble_constants,
        random::random_seeded,
        random::random_skip,
        array::concatenate,
        array::dlpack_capsule,
        array::dlpack_tensor,
        array::dot,
        array::full,
        array::matmul,
        array::new_like,
        array::nonzero,
        array::compress,
        array::put,
        array::reduce,
        array::position,
        array::reduce_subset,
        array::scan,
        array::select,
        array::sorted,
        array::sequence,
        array::stack,
        array::strided_view,
        array::take,
        array::to_gpu,
        array::zeros,
        arrow::arrow_device_array,
        arrow::arrow_device_array_capsule,
        arrow::arrow_schema,
        arrow::arrow_schema_capsule,
        array::wait_for_array,
        arrow::wait_for_external_event,
        current_device::build_info,
        current_device::choose_backend,
        current_device::set_current_device,
        status::check_status,
        status::status_message,
        status::status_names,
        texture::has_textures,
        texture::surface_of_array,
        texture::texture_of_array,
        texture::texture_of_memory,
    );
    module.add("named_functions", array::named_functions(module.py())?)?;
    module.add("universal_functions", array::universal_functions(module.py())?)?;
    module.add("BufferExporter", buffers::exporter(module.py())?)?;
    kernel::install(module.py())?;
    #[cfg(feature = "testing")]
    testing::install(module)?;
    allocator::remember_mem_alloc(module.getattr("mem_alloc")?);
    Ok(())
}

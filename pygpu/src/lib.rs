//! The Python extension module `pygpu._core`: the core's arrays, streams and events as Python
//! classes. The package's Python modules expose them under PyCUDA's names.
//!
//! The modules have an order: each names only modules before it, and a test checks this. Errors, the conversion of
//! arguments, `numpy_array` and `current_device` come first, then `synchronize` and `deferred_drop`; memory: `pinned`,
//! `pool`, `allocation`, `allocator`; `fused_block`, `stream` and `event`; `array`; and last the modules that use arrays:
//! `arrow`, `copies`, `texture`, `kernel` and `module`.

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
mod yielding;

use pyo3::prelude::*;

// Much here relies on the interpreter's lock: a free-threaded one enables it, with a warning, on this import.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    deferred_drop::watch_exit(module.py())?;
    macro_rules! classes {
        ($($file:ident: $($class:ident),+;)*) => {
            $($(module.add_class::<$file::$class>()?;)+)*
        };
    }
    classes! {
        allocation: DeviceAllocation;
        array: ArrayFlags, DLPackTensor, GPUArray, PyReduction, UniversalFunction;
        arrow: ArrowOwner;
        checks: PyChecking;
        event: CallTime, PyEvent;
        fused_block: Fused;
        graph: PyCapture, PyGraph;
        ipc: IPCMemoryHandle;
        kernel: ArgumentHandler, ElementwiseLauncher, Function, In, Out, ReductionLauncher;
        managed: ManagedAllocation;
        module: Linker, PyModuleObject;
        pinned: PagelockedHostAllocation, RegisteredHostMemory;
        pool: DeviceMemoryPool, PageLockedAllocator, PageLockedMemoryPool, PooledDeviceAllocation,
            PooledHostAllocation;
        profile: Profile;
        stream: PyStream;
        texture: PyTextureArray, PyTextureObject;
        yielding: YieldingProperty;
    }
    yielding::install(module)?;
    kernel::install_handlers(module)?;
    macro_rules! functions {
        ($($file:ident: $($function:ident),+;)*) => {
            $($(module.add_function(wrap_pyfunction!($file::$function, module)?)?;)+)*
        };
    }
    functions! {
        allocation: mem_alloc, mem_alloc_pitch, mem_get_address_range;
        array: compress, concatenate, dlpack_capsule, dlpack_tensor, dot, end_foreign_memory, full,
            hold_memory, matmul, new_like, nonzero, position, put, reduce, reduce_subset, scan,
            select, sequence, sorted, stack, strided_view, take, to_gpu, wait_for_array, zeros;
        arrow: arrow_device_array, arrow_device_array_capsule, arrow_schema, arrow_schema_capsule,
            wait_for_external_event;
        buffers: buffer;
        compile: adapted_program, code_cache, code_of, compile_program, compiler,
            declares_references, diagnostics, element_uses, header_text, is_only_read, kernel_names,
            scan_functions, scan_plan, toolkits;
        copies: copy_between_devices, copy_on_device, copy_to_device, copy_to_host,
            gather_to_device;
        current_device: build_info, choose_backend, runs_kernels_on_host, set_current_device;
        device: backends, can_access_peer, context_handle, current_device_key, current_ordinal,
            device_architecture, device_attribute, device_by_name, device_count, device_properties,
            device_uuid, driver_version, get_limit, init, kept_memory, mem_get_info, reset_device,
            set_limit, set_peer_access, set_profiling, stream_priority_range, synchronize,
            trim_memory;
        driver_copies: memcpy_dtod, memcpy_dtod_async, memcpy_dtoh, memcpy_dtoh_async, memcpy_htod,
            memcpy_htod_async, memset_d16, memset_d16_async, memset_d2d16, memset_d2d16_async,
            memset_d2d32, memset_d2d32_async, memset_d2d8, memset_d2d8_async, memset_d32,
            memset_d32_async, memset_d8, memset_d8_async;
        dtypes: extension_dtype, extension_dtypes;
        ipc: mem_get_ipc_handle;
        managed: managed_empty;
        module: module_from_buffer, module_from_file;
        numpy_array: host_memory_size;
        pinned: pagelocked_empty, register_host_memory;
        pitched_copies: copy_rows, copy_rows_between_devices;
        pool: bitlog2;
        profile: recorded_memory, was_opened;
        random: random_direction_vectors, random_fill, random_fill_from_seed, random_generator,
            random_points, random_scramble_constants, random_seeded, random_skip;
        status: check_status, status_message, status_names;
        texture: has_textures, surface_of_array, texture_of_array, texture_of_memory;
    }
    module.add("named_functions", array::named_functions(module.py())?)?;
    module.add("universal_functions", array::universal_functions(module.py())?)?;
    module.add("BufferExporter", buffers::exporter(module.py())?)?;
    kernel::install(module.py())?;
    #[cfg(feature = "testing")]
    testing::install(module)?;
    allocator::remember_mem_alloc(module.getattr("mem_alloc")?);
    Ok(())
}

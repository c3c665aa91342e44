//! The table of driver calls: one field per function, with the type that both vendors declare.
//!
//! The two vendors' functions of one row have the same signature in the C ABI of 64-bit systems:
//! handles and device addresses are pointers or 64-bit integers, enumerations and statuses are
//! ints. If they differ, the call is a method of [`Vendor`](super::vendor::Vendor) instead.

use super::texture::{ArrayDescription, ResourceDescription, TextureDescription, ViewDescription};
use hal::error::Result;
use hal::library::Library;
use hal::properties::IpcHandle;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// An opaque pointer that only the driver dereferences.
pub type Handle = usize;

/// `CU_STREAM_NON_BLOCKING`; HIP's is the same.
pub(super) const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`; HIP's is the same.
pub(super) const NO_TIMING: u32 = 2;
/// An explicit handle of the legacy default stream, with the same meaning as 0. HIP supports it
/// only since 6.2.
pub(super) const LEGACY: Handle = 1;
/// The per-thread default stream: a different stream on each thread.
pub(super) const PER_THREAD: Handle = 2;

/// A function that `cuLaunchHostFunc` calls.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// A function that `cuStreamAddCallback` calls with the stream, a status and the data.
pub type StreamCallback = unsafe extern "C" fn(Handle, c_int, *mut c_void);

/// The properties of a pool: `CUmemPoolProps` and `hipMemPoolProps`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolProperties {
    /// 1: pinned, the only supported kind.
    pub allocation_type: c_int,
    /// 0: no handles for other processes.
    pub handle_types: c_int,
    /// 1: a device.
    pub location_type: c_int,
    /// The number of the device.
    pub location_id: c_int,
    /// Used on another operating system.
    pub win32_security: *mut c_void,
    /// 0: unlimited.
    pub max_size: usize,
    /// Zeros.
    pub reserved: [u8; 56],
}

/// The access rights to a pool's memory: `CUmemAccessDesc` and `hipMemAccessDesc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolAccess {
    /// 1: a device.
    pub location_type: c_int,
    /// The number of the device.
    pub location_id: c_int,
    /// 0: none, 3: reading and writing.
    pub flags: c_int,
}

macro_rules! calls {
    (
        required { $($(#[$doc:meta])* $name:ident($($argument:ty),* $(,)?);)* }
        optional { $($(#[$optional_doc:meta])* $optional:ident($($optional_argument:ty),* $(,)?);)* }
    ) => {
        /// The driver's functions, found by [`Names`].
        #[derive(Clone, Copy, Debug)]
        pub struct Calls {
            /// The symbols under which the functions were looked up.
            pub names: &'static Names,
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            $(
                $(#[$optional_doc])*
                pub $optional: Option<unsafe extern "C" fn($($optional_argument),*) -> c_int>,
            )*
        }

        /// The symbols of a vendor's functions, under the names of [`Calls`]. The name is empty for
        /// a function that the vendor lacks.
        #[derive(Clone, Copy, Debug)]
        pub struct Names {
            $($(#[$doc])* pub $name: &'static str,)*
            $($(#[$optional_doc])* pub $optional: &'static str,)*
        }

        impl Names {
            /// Returns the symbols without which the driver cannot be used.
            pub fn required(&self) -> Vec<&'static str> {
                vec![$(self.$name),*]
            }

            /// Returns the symbols without which one call is `Unsupported`.
            pub fn optional(&self) -> Vec<&'static str> {
                [$(self.$optional),*].into_iter().filter(|name| !name.is_empty()).collect()
            }
        }

        impl Calls {
            /// Looks up all functions. A missing optional function is `None`.
            ///
            /// # Errors
            /// `BackendUnavailable` that names the required functions that are missing.
            ///
            /// # Safety
            /// The library's functions of these names have the types that the table declares.
            pub unsafe fn find(names: &'static Names, library: Library) -> Result<Calls> {
                let mut symbols = library.symbols();
                // SAFETY: the caller's promise, here and below.
                $(let $name = unsafe { symbols.required(names.$name) };)*
                let all = || {
                    Some(Calls {
                        names,
                        $($name: $name?,)*
                        $(
                            $optional: match names.$optional {
                                "" => None,
                                // SAFETY: as above.
                                name => unsafe { symbols.optional(name) },
                            },
                        )*
                    })
                };
                symbols.complete(all())
            }
        }
    };
}

calls! {
    required {
        /// Initialises the driver: `cuInit`, `hipInit`. Arguments: flags.
        init(c_uint);
        /// Stores the driver's version: `cuDriverGetVersion`, `hipRuntimeGetVersion`. Arguments:
        /// version.
        driver_version(*mut c_int);
        /// Stores the number of devices: `cuDeviceGetCount`, `hipGetDeviceCount`. Arguments: count.
        device_count(*mut c_int);
        /// Stores the handle of a device: `cuDeviceGet`, `hipDeviceGet`. Arguments: device,
        /// ordinal.
        device_get(*mut c_int, c_int);
        /// Writes a device's name into a buffer: `cuDeviceGetName`, `hipDeviceGetName`. Arguments:
        /// buffer, its bytes, device.
        device_name(*mut c_char, c_int, c_int);
        /// Stores the bytes of a device's memory: `cuDeviceTotalMem`, `hipDeviceTotalMem`.
        /// Arguments: bytes, device.
        device_total_memory(*mut usize, c_int);
        /// Stores an attribute of a device: `cuDeviceGetAttribute`, `hipDeviceGetAttribute`.
        /// Arguments: value, attribute, device.
        device_attribute(*mut c_int, c_int, c_int);
        /// Writes a device's PCI bus id into a buffer: `cuDeviceGetPCIBusId`,
        /// `hipDeviceGetPCIBusId`. Arguments: buffer, its bytes, device.
        device_pci_bus_id(*mut c_char, c_int, c_int);
        /// Stores whether a device can access a peer's memory: `cuDeviceCanAccessPeer`,
        /// `hipDeviceCanAccessPeer`. Arguments: result, device, peer.
        device_can_access_peer(*mut c_int, c_int, c_int);
        /// Waits for all work of the current context: `cuCtxSynchronize`, `hipDeviceSynchronize`.
        synchronize();
        /// Stores the free and the total bytes of device memory: `cuMemGetInfo`, `hipMemGetInfo`.
        /// Arguments: free, total.
        memory_info(*mut usize, *mut usize);
        /// Allocates device memory: `cuMemAlloc`, `hipMalloc`. Arguments: address, bytes.
        allocate(*mut u64, usize);
        /// Frees device memory; waits for work that uses it: `cuMemFree`, `hipFree`. Arguments:
        /// address.
        free(u64);
        /// Allocates page-locked host memory: `cuMemHostAlloc`, `hipHostMalloc`. Arguments:
        /// pointer, bytes, flags (1 portable, 2 mapped, 4 write-combined).
        allocate_pinned(*mut *mut c_void, usize, c_uint);
        /// Frees page-locked host memory: `cuMemFreeHost`, `hipHostFree`. Arguments: pointer.
        free_pinned(*mut c_void);
        /// Stores the device address of mapped page-locked memory: `cuMemHostGetDevicePointer`,
        /// `hipHostGetDevicePointer`. Arguments: address, pointer, flags.
        pinned_address(*mut u64, *mut c_void, c_uint);
        /// Page-locks host memory: `cuMemHostRegister`, `hipHostRegister`. Arguments: pointer,
        /// bytes, flags.
        register_host(*mut c_void, usize, c_uint);
        /// Ends the page-locking of registered host memory: `cuMemHostUnregister`,
        /// `hipHostUnregister`. Arguments: pointer.
        unregister_host(*mut c_void);
        /// Copies from the host to the device and waits: `cuMemcpyHtoD`, `hipMemcpyHtoD`.
        /// Arguments: destination, source, bytes.
        copy_to_device(u64, *const c_void, usize);
        /// Copies from the device to the host and waits: `cuMemcpyDtoH`, `hipMemcpyDtoH`.
        /// Arguments: destination, source, bytes.
        copy_to_host(*mut c_void, u64, usize);
        /// Queues a copy from the host to the device: `cuMemcpyHtoDAsync`, `hipMemcpyHtoDAsync`.
        /// Arguments: destination, source, bytes, stream.
        copy_to_device_async(u64, *const c_void, usize, Handle);
        /// Queues a copy from the device to the host: `cuMemcpyDtoHAsync`, `hipMemcpyDtoHAsync`.
        /// Arguments: destination, source, bytes, stream.
        copy_to_host_async(*mut c_void, u64, usize, Handle);
        /// Queues a copy inside device memory: `cuMemcpyDtoDAsync`, `hipMemcpyDtoDAsync`.
        /// Arguments: destination, source, bytes, stream.
        copy_on_device_async(u64, u64, usize, Handle);
        /// Queues a fill with an 8-bit value: `cuMemsetD8Async`, `hipMemsetD8Async`. Arguments:
        /// address, value, count, stream.
        fill_8(u64, u8, usize, Handle);
        /// Queues a fill with a 16-bit value: `cuMemsetD16Async`, `hipMemsetD16Async`. Arguments:
        /// address, value, count, stream.
        fill_16(u64, u16, usize, Handle);
        /// Queues a fill with a 32-bit value: `cuMemsetD32Async`, `hipMemsetD32Async`. Arguments:
        /// address, value, count, stream.
        fill_32(u64, c_uint, usize, Handle);
        /// Creates a stream: `cuStreamCreateWithPriority`, `hipStreamCreateWithPriority`.
        /// Arguments: stream, flags (1 non-blocking), priority.
        stream_create(*mut Handle, c_uint, c_int);
        /// Destroys a stream: `cuStreamDestroy`, `hipStreamDestroy`. Arguments: stream.
        stream_destroy(Handle);
        /// Returns 0 if all work of a stream has finished, 600 if not: `cuStreamQuery`,
        /// `hipStreamQuery`. Arguments: stream.
        stream_query(Handle);
        /// Waits for all work of a stream: `cuStreamSynchronize`, `hipStreamSynchronize`.
        /// Arguments: stream.
        stream_synchronize(Handle);
        /// Makes later work of a stream wait for an event: `cuStreamWaitEvent`,
        /// `hipStreamWaitEvent`. Arguments: stream, event, flags.
        stream_wait_event(Handle, Handle, c_uint);
        /// Creates an event: `cuEventCreate`, `hipEventCreateWithFlags`. Arguments: event, flags (1
        /// blocking, 2 no timing, 4 interprocess).
        event_create(*mut Handle, c_uint);
        /// Destroys an event: `cuEventDestroy`, `hipEventDestroy`. Arguments: event.
        event_destroy(Handle);
        /// Records an event on a stream: `cuEventRecord`, `hipEventRecord`. Arguments: event,
        /// stream.
        event_record(Handle, Handle);
        /// Returns 0 if the work before an event has finished, 600 if not: `cuEventQuery`,
        /// `hipEventQuery`. Arguments: event.
        event_query(Handle);
        /// Waits for the work before an event: `cuEventSynchronize`, `hipEventSynchronize`.
        /// Arguments: event.
        event_synchronize(Handle);
        /// Stores the milliseconds between two events: `cuEventElapsedTime`, `hipEventElapsedTime`.
        /// Arguments: milliseconds, start, end.
        event_elapsed(*mut f32, Handle, Handle);
        /// Loads code as a module: `cuModuleLoadDataEx`, `hipModuleLoadDataEx`. Arguments: module,
        /// image, number of options, options, values.
        module_load(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        /// Unloads a module: `cuModuleUnload`, `hipModuleUnload`. Arguments: module.
        module_unload(Handle);
        /// Stores the handle of a kernel in a module: `cuModuleGetFunction`,
        /// `hipModuleGetFunction`. Arguments: function, module, name.
        module_function(*mut Handle, Handle, *const c_char);
        /// Stores the address and the bytes of a variable in a module: `cuModuleGetGlobal`,
        /// `hipModuleGetGlobal`. Arguments: address, bytes, module, name.
        module_global(*mut u64, *mut usize, Handle, *const c_char);
        /// Launches a kernel: `cuLaunchKernel`, `hipModuleLaunchKernel`. Arguments: function, grid
        /// x, y, z, block x, y, z, bytes of shared memory, stream, arguments, extra.
        launch(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void);
        /// Stores an attribute of a kernel: `cuFuncGetAttribute`, `hipFuncGetAttribute`. Arguments:
        /// value, attribute, function.
        function_attribute(*mut c_int, c_int, Handle);
    }
    optional {
        /// Writes a device's UUID: `cuDeviceGetUuid`, `hipDeviceGetUuid`. Arguments: 16 bytes,
        /// device.
        device_uuid(*mut [u8; 16], c_int);
        /// Stores the least and the greatest priority of streams: `cuCtxGetStreamPriorityRange`,
        /// `hipDeviceGetStreamPriorityRange`. Arguments: least, greatest.
        priority_range(*mut c_int, *mut c_int);
        /// Stores a limit of the current context: `cuCtxGetLimit`, `hipDeviceGetLimit`. Arguments:
        /// value, limit.
        limit(*mut usize, c_int);
        /// Sets a limit of the current context: `cuCtxSetLimit`, `hipDeviceSetLimit`. Arguments:
        /// limit, value.
        set_limit(c_int, usize);
        /// Stores the base address and the bytes of an allocation: `cuMemGetAddressRange`,
        /// `hipMemGetAddressRange`. Arguments: base, bytes, address.
        address_range(*mut u64, *mut usize, u64);
        /// Allocates rows with a row pitch: `cuMemAllocPitch`, `hipMemAllocPitch`. Arguments:
        /// address, pitch, bytes of a row, rows, bytes of an element.
        allocate_pitched(*mut u64, *mut usize, usize, usize, c_uint);
        /// Allocates managed memory: `cuMemAllocManaged`, `hipMallocManaged`. Arguments: address,
        /// bytes, flags (1 global).
        allocate_managed(*mut u64, usize, c_uint);
        /// Queues the migration of managed memory: `cuMemPrefetchAsync`, `hipMemPrefetchAsync`.
        /// Arguments: address, bytes, device or -1 for the host, stream.
        prefetch(u64, usize, c_int, Handle);
        /// Creates a memory pool: `cuMemPoolCreate`, `hipMemPoolCreate`. Arguments: pool,
        /// properties.
        pool_create(*mut Handle, *const PoolProperties);
        /// Destroys a memory pool: `cuMemPoolDestroy`, `hipMemPoolDestroy`. Arguments: pool.
        pool_destroy(Handle);
        /// Sets an attribute of a pool (4: release threshold, a `u64`): `cuMemPoolSetAttribute`,
        /// `hipMemPoolSetAttribute`. Arguments: pool, attribute, value.
        pool_set_attribute(Handle, c_int, *mut c_void);
        /// Stores an attribute of a pool (5: reserved bytes, 7: used bytes, both `u64`):
        /// `cuMemPoolGetAttribute`, `hipMemPoolGetAttribute`. Arguments: pool, attribute, value.
        pool_attribute(Handle, c_int, *mut c_void);
        /// Releases unused memory of a pool: `cuMemPoolTrimTo`, `hipMemPoolTrimTo`. Arguments:
        /// pool, bytes to keep.
        pool_trim(Handle, usize);
        /// Sets which devices can access a pool's memory: `cuMemPoolSetAccess`,
        /// `hipMemPoolSetAccess`. Arguments: pool, descriptions, count.
        pool_set_access(Handle, *const PoolAccess, usize);
        /// Allocates memory of a pool in the stream's order: `cuMemAllocFromPoolAsync`,
        /// `hipMallocFromPoolAsync`. Arguments: address, bytes, pool, stream.
        pool_allocate(*mut u64, usize, Handle, Handle);
        /// Frees memory in the stream's order: `cuMemFreeAsync`, `hipFreeAsync`. Arguments:
        /// address, stream.
        free_async(u64, Handle);
        /// Stores a handle with which other processes can open memory: `cuIpcGetMemHandle`,
        /// `hipIpcGetMemHandle`. Arguments: handle, address.
        ipc_export_memory(*mut IpcHandle, u64);
        /// Opens memory of another process: `cuIpcOpenMemHandle`, `hipIpcOpenMemHandle`. Arguments:
        /// address, handle, flags (1 peer access as needed).
        ipc_open_memory(*mut u64, IpcHandle, c_uint);
        /// Closes memory of another process: `cuIpcCloseMemHandle`, `hipIpcCloseMemHandle`.
        /// Arguments: address.
        ipc_close_memory(u64);
        /// Stores a handle with which other processes can open an event: `cuIpcGetEventHandle`,
        /// `hipIpcGetEventHandle`. Arguments: handle, event.
        ipc_export_event(*mut IpcHandle, Handle);
        /// Opens an event of another process: `cuIpcOpenEventHandle`, `hipIpcOpenEventHandle`.
        /// Arguments: event, handle.
        ipc_open_event(*mut Handle, IpcHandle);
        /// Queues a function that the driver calls on a host thread: `cuLaunchHostFunc`,
        /// `hipLaunchHostFunc`. Arguments: stream, function, data.
        host_function(Handle, HostFunction, *mut c_void);
        /// Queues a callback, the older form of `host_function`: `cuStreamAddCallback`,
        /// `hipStreamAddCallback`. Arguments: stream, function, data, flags.
        stream_callback(Handle, StreamCallback, *mut c_void, c_uint);
        /// Stores the priority of a stream: `cuStreamGetPriority`, `hipStreamGetPriority`.
        /// Arguments: stream, priority.
        stream_priority(Handle, *mut c_int);
        /// Stores the flags of a stream: `cuStreamGetFlags`, `hipStreamGetFlags`. Arguments:
        /// stream, flags.
        stream_flags(Handle, *mut c_uint);
        /// Begins the capture of a stream: `cuStreamBeginCapture`, `hipStreamBeginCapture`.
        /// Arguments: stream, mode (0 global, 1 thread, 2 relaxed).
        capture_begin(Handle, c_int);
        /// Ends the capture of a stream: `cuStreamEndCapture`, `hipStreamEndCapture`. Arguments:
        /// stream, graph.
        capture_end(Handle, *mut Handle);
        /// Stores the capture state of a stream (0 none, 1 active, 2 invalid) and the capture's
        /// number: `cuStreamGetCaptureInfo`, `hipStreamGetCaptureInfo`. Arguments: stream, state,
        /// number.
        capture_info(Handle, *mut c_int, *mut c_ulonglong);
        /// Stores the capture state of a stream, the capture's number, its graph and the graph's
        /// last nodes: `cuStreamGetCaptureInfo`, `hipStreamGetCaptureInfo_v2`. Arguments: stream,
        /// state, number, graph, nodes, count.
        capture_graph(Handle, *mut c_int, *mut c_ulonglong, *mut Handle, *mut *const Handle,
            *mut usize);
        /// Creates a user object that graphs can retain: `cuUserObjectCreate`,
        /// `hipUserObjectCreate`. Arguments: object, data, the function that is called with the
        /// data at the end, references, flags (1: no one waits for the end).
        user_object_create(*mut Handle, *mut c_void, HostFunction, c_uint, c_uint);
        /// Makes a graph retain a user object: `cuGraphRetainUserObject`,
        /// `hipGraphRetainUserObject`. Arguments: graph, object, references, flags (1: the caller's
        /// references are moved).
        graph_retain(Handle, Handle, c_uint, c_uint);
        /// Exchanges the capture mode of the calling thread: `cuThreadExchangeStreamCaptureMode`,
        /// `hipThreadExchangeStreamCaptureMode`. Arguments: mode.
        capture_exchange_mode(*mut c_int);
        /// Instantiates a graph: `cuGraphInstantiateWithFlags`, `hipGraphInstantiateWithFlags`.
        /// Arguments: executable graph, graph, flags.
        graph_instantiate(*mut Handle, Handle, c_ulonglong);
        /// Launches an executable graph: `cuGraphLaunch`, `hipGraphLaunch`. Arguments: executable
        /// graph, stream.
        graph_launch(Handle, Handle);
        /// Destroys a graph: `cuGraphDestroy`, `hipGraphDestroy`. Arguments: graph.
        graph_destroy(Handle);
        /// Destroys an executable graph: `cuGraphExecDestroy`, `hipGraphExecDestroy`. Arguments:
        /// executable graph.
        graph_exec_destroy(Handle);
        /// Stores the nodes of a graph: `cuGraphGetNodes`, `hipGraphGetNodes`. Arguments: graph,
        /// array or null, number.
        graph_nodes(Handle, *mut Handle, *mut usize);
        /// Launches a kernel with all blocks resident concurrently: `cuLaunchCooperativeKernel`,
        /// `hipModuleLaunchCooperativeKernel`. Arguments: as for `launch`, without extra.
        launch_cooperative(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
            Handle, *mut *mut c_void);
        /// Sets an attribute of a kernel: `cuFuncSetAttribute`. Arguments: function, attribute,
        /// value.
        function_set_attribute(Handle, c_int, c_int);
        /// Stores the offset and the bytes of a kernel's parameter; returns 1 past the last:
        /// `cuFuncGetParamInfo`. Arguments: function, number, offset, bytes.
        function_parameter(Handle, usize, *mut usize, *mut usize);
        /// Stores the number of blocks that one multiprocessor runs concurrently:
        /// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`,
        /// `hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`. Arguments: blocks,
        /// function, threads, bytes of shared memory, flags.
        active_blocks(*mut c_int, Handle, c_int, usize, c_uint);
        /// Creates an array for textures: `cuArray3DCreate`, `hipArray3DCreate`. Arguments: array,
        /// its description.
        array_create(*mut Handle, *const ArrayDescription);
        /// Frees an array: `cuArrayDestroy`, `hipArrayDestroy`. Arguments: array.
        array_destroy(Handle);
        /// Creates a texture object: `cuTexObjectCreate`, `hipTexObjectCreate`. Arguments: object,
        /// descriptions of the resource and of the sampling, a view or null.
        texture_create(*mut u64, *const ResourceDescription, *const TextureDescription,
            *const ViewDescription);
        /// Destroys a texture object: `cuTexObjectDestroy`, `hipTexObjectDestroy`. Arguments:
        /// object.
        texture_destroy(u64);
        /// Creates a surface object: `cuSurfObjectCreate`, `hipCreateSurfaceObject`. Arguments:
        /// object, its array.
        surface_create(*mut u64, *const ResourceDescription);
        /// Destroys a surface object: `cuSurfObjectDestroy`, `hipDestroySurfaceObject`. Arguments:
        /// object.
        surface_destroy(u64);
        /// Starts an attached profiler: `cuProfilerStart`, `hipProfilerStart`.
        profiler_start();
        /// Stops an attached profiler: `cuProfilerStop`, `hipProfilerStop`.
        profiler_stop();
    }
}

/// Checks that the fields of [`PoolProperties`] and [`PoolAccess`] are at the same offsets as in a
/// vendor's header. The arguments are the vendor's structs: a pool's properties, a location, and an
/// access.
#[macro_export]
macro_rules! check_pool_layouts {
    ($properties:ty, $location:ty, $access:ty) => {
        const _: () = {
            use std::mem::offset_of;
            use $crate::calls::{PoolAccess, PoolProperties};
            type Properties = $properties;
            type Location = $location;
            type Access = $access;
            let (kind, id) = (offset_of!(Location, type_), offset_of!(Location, id));
            let of_pool = offset_of!(Properties, location);
            assert!(
                offset_of!(PoolProperties, allocation_type) == offset_of!(Properties, allocType)
            );
            assert!(
                offset_of!(PoolProperties, handle_types) == offset_of!(Properties, handleTypes)
            );
            assert!(offset_of!(PoolProperties, location_type) == of_pool + kind);
            assert!(offset_of!(PoolProperties, location_id) == of_pool + id);
            assert!(
                offset_of!(PoolProperties, win32_security)
                    == offset_of!(Properties, win32SecurityAttributes)
            );
            assert!(offset_of!(PoolProperties, max_size) == offset_of!(Properties, maxSize));
            let of_access = offset_of!(Access, location);
            assert!(offset_of!(PoolAccess, location_type) == of_access + kind);
            assert!(offset_of!(PoolAccess, location_id) == of_access + id);
            assert!(offset_of!(PoolAccess, flags) == offset_of!(Access, flags));
        };
    };
}

// The parts of the table that a vendor's crate defines.

/// The vendor-specific functions, and those whose types differ between the vendors: the struct that
/// [`driver_calls!`](crate::driver_calls) defines.
pub trait VendorCalls: Sized {
    /// The symbols without which the driver cannot be used.
    const REQUIRED: &'static [&'static str];
    /// The symbols without which one call is `Unsupported`.
    const OPTIONAL: &'static [&'static str];

    /// Looks up the functions. A missing optional function is `None`.
    ///
    /// # Errors
    /// `BackendUnavailable` that names the required functions that are missing.
    ///
    /// # Safety
    /// The library's functions of these names have the types that the struct declares.
    unsafe fn find(library: Library) -> Result<Self>;
}

/// Defines `NAMES`, the symbols of a vendor's functions under the names of [`Calls`], and checks each
/// function's type against the vendor's declaration.
///
/// The first line has the vendor's marker type, the module of its declarations, and their calling
/// convention: `"C"`, or `"Rust"` if the bindings load a function when it is first called. A row of
/// `checked` has the field, the symbol and a `_` for each argument. A row of `unchecked` has a symbol
/// that the bindings do not declare in this form, or an empty one for a function that the vendor
/// lacks.
#[macro_export]
macro_rules! driver_names {
    (
        $vendor:ty, $sys:ident, $abi:literal;
        checked { $($field:ident: $symbol:ident($($argument:tt),*);)* }
        unchecked { $($other:ident: $other_symbol:literal;)* }
    ) => {
        /// The symbols of the driver's library.
        pub(crate) static NAMES: $crate::calls::Names = $crate::calls::Names {
            $($field: stringify!($symbol),)*
            $($other: $other_symbol,)*
        };

        // Compiles only if each field has the type of its function.
        const _: () = {
            use $crate::{abi::check_field, calls::Calls};
            $(
                let declared: unsafe extern $abi fn($($argument),*) -> _ = $sys::$symbol;
                check_field::<$vendor, _, _, _>(|calls: &Calls| calls.$field, declared);
            )*
        };
    };
}

/// Defines `OwnCalls`, the vendor-specific functions and those whose types differ between the vendors,
/// and checks each function's type against the vendor's declaration.
///
/// The first line is the same as for [`driver_names!`]. A row has the field, the symbol, the types of
/// the arguments with a `_:` before each, and the type of the result.
#[macro_export]
macro_rules! driver_calls {
    (
        $vendor:ty, $sys:ident, $abi:literal;
        required { $($name:ident: $symbol:ident($($argument:tt: $raw:ty),*) -> $result:ty;)* }
        optional {
            $($other:ident: $other_symbol:ident($($other_argument:tt: $other_raw:ty),*)
                -> $other_result:ty;)*
        }
    ) => {
        /// The vendor-specific functions, and those whose types differ between the vendors.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct OwnCalls {
            $(pub(crate) $name: unsafe extern "C" fn($($raw),*) -> $result,)*
            $(pub(crate) $other: Option<unsafe extern "C" fn($($other_raw),*) -> $other_result>,)*
        }

        const _: () = {
            use $crate::abi::check_field;
            $(
                let declared: unsafe extern $abi fn($($argument),*) -> _ = $sys::$symbol;
                check_field::<$vendor, _, _, _>(|calls: &OwnCalls| calls.$name, declared);
            )*
            $(
                let declared: unsafe extern $abi fn($($other_argument),*) -> _ = $sys::$other_symbol;
                check_field::<$vendor, _, _, _>(|calls: &OwnCalls| calls.$other, declared);
            )*
        };

        impl $crate::VendorCalls for OwnCalls {
            const REQUIRED: &'static [&'static str] = &[$(stringify!($symbol)),*];
            const OPTIONAL: &'static [&'static str] = &[$(stringify!($other_symbol)),*];

            unsafe fn find(library: hal::library::Library) -> hal::Result<Self> {
                let mut symbols = library.symbols();
                // SAFETY: the types are checked against the declarations above, here and below.
                $(let $name = unsafe { symbols.required(stringify!($symbol)) };)*
                let all = || Some(OwnCalls {
                    $($name: $name?,)*
                    // SAFETY: as above.
                    $($other: unsafe { symbols.optional(stringify!($other_symbol)) },)*
                });
                symbols.complete(all())
            }
        }
    };
}

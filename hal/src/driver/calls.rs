//! The table of driver calls: one field per function, typed as both vendors declare it.
//!
//! The two vendors' functions of one row have the same signature in the C ABI of 64-bit
//! systems: handles and device addresses are pointers or integers of 64 bits, enumerations and
//! statuses are ints. Where they differ, the call is a method of
//! [`Vendor`](super::vendor::Vendor) instead.

use crate::device::IpcHandle;
use crate::error::Result;
use crate::library::Library;
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// An opaque pointer that only the driver looks into.
pub type Handle = usize;

/// `CU_STREAM_NON_BLOCKING`; HIP's is the same.
pub(super) const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`; HIP's is the same.
pub(super) const NO_TIMING: u32 = 2;
/// The legacy default stream by an explicit handle, which HIP has only since 6.2 and which
/// means what 0 does.
pub(super) const LEGACY: Handle = 1;
/// The default stream of the calling thread: another one on each thread.
pub(super) const PER_THREAD: Handle = 2;

/// What `cuLaunchHostFunc` calls.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

/// What `cuStreamAddCallback` calls: stream, status, data.
pub type StreamCallback = unsafe extern "C" fn(Handle, c_int, *mut c_void);

/// What memory a pool has: `CUmemPoolProps` and `hipMemPoolProps`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolProperties {
    /// 1: pinned, the only kind.
    pub allocation_type: c_int,
    /// 0: no handles for other processes.
    pub handle_types: c_int,
    /// 1: a device.
    pub location_type: c_int,
    /// Its number.
    pub location_id: c_int,
    /// For another operating system.
    pub win32_security: *mut c_void,
    /// 0: as much as there is.
    pub max_size: usize,
    /// Zeros.
    pub reserved: [u8; 56],
}

/// Who may use a pool's memory: `CUmemAccessDesc` and `hipMemAccessDesc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PoolAccess {
    /// 1: a device.
    pub location_type: c_int,
    /// Its number.
    pub location_id: c_int,
    /// 0: nothing, 3: reading and writing.
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
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            $(
                $(#[$optional_doc])*
                pub $optional: Option<unsafe extern "C" fn($($optional_argument),*) -> c_int>,
            )*
        }

        /// The symbols of a vendor's functions, under the names of [`Calls`]. An empty name is
        /// a function that the vendor does not have.
        #[derive(Clone, Copy, Debug)]
        pub struct Names {
            $($(#[$doc])* pub $name: &'static str,)*
            $($(#[$optional_doc])* pub $optional: &'static str,)*
        }

        impl Names {
            /// The symbols without which the driver cannot be used.
            pub fn required(&self) -> Vec<&'static str> {
                vec![$(self.$name),*]
            }

            /// The symbols without which one call is `Unsupported`.
            pub fn optional(&self) -> Vec<&'static str> {
                [$(self.$optional),*].into_iter().filter(|name| !name.is_empty()).collect()
            }
        }

        impl Calls {
            /// Finds all functions. An optional one that is missing stays empty.
            ///
            /// # Errors
            /// `BackendUnavailable` that names the required functions that are missing.
            ///
            /// # Safety
            /// The library's functions of these names have the types that the table declares.
            pub unsafe fn find(names: &Names, library: Library) -> Result<Calls> {
                let mut symbols = library.symbols();
                // SAFETY: the caller's promise, here and below.
                $(let $name = unsafe { symbols.required(names.$name) };)*
                let all = || {
                    Some(Calls {
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
        /// Initialises the driver: flags.
        init(c_uint);
        /// Its version.
        driver_version(*mut c_int);
        /// The number of devices.
        device_count(*mut c_int);
        /// The device with a number.
        device_get(*mut c_int, c_int);
        /// Name: buffer, bytes, device.
        device_name(*mut c_char, c_int, c_int);
        /// Bytes of memory: result, device.
        device_total_memory(*mut usize, c_int);
        /// Property: result, attribute, device.
        device_attribute(*mut c_int, c_int, c_int);
        /// PCI bus id: buffer, bytes, device.
        device_pci_bus_id(*mut c_char, c_int, c_int);
        /// Peer access: result, device, peer.
        device_can_access_peer(*mut c_int, c_int, c_int);
        /// Waits for the current context's work.
        synchronize();
        /// Free and total bytes.
        memory_info(*mut usize, *mut usize);
        /// Allocates: address, bytes.
        allocate(*mut u64, usize);
        /// Frees.
        free(u64);
        /// Allocates pinned memory: pointer, bytes, flags (1 portable, 2 mapped, 4
        /// write-combined).
        allocate_pinned(*mut *mut c_void, usize, c_uint);
        /// Frees it.
        free_pinned(*mut c_void);
        /// Its device address: result, pointer, flags.
        pinned_address(*mut u64, *mut c_void, c_uint);
        /// Pins memory: pointer, bytes, flags.
        register_host(*mut c_void, usize, c_uint);
        /// Unpins it.
        unregister_host(*mut c_void);
        /// Copies and waits: to device, from host, bytes.
        copy_to_device(u64, *const c_void, usize);
        /// Copies and waits: to host, from device, bytes.
        copy_to_host(*mut c_void, u64, usize);
        /// Queues a copy: to device, from host, bytes, stream.
        copy_to_device_async(u64, *const c_void, usize, Handle);
        /// Queues a copy: to host, from device, bytes, stream.
        copy_to_host_async(*mut c_void, u64, usize, Handle);
        /// Queues a copy inside device memory: to, from, bytes, stream.
        copy_on_device_async(u64, u64, usize, Handle);
        /// Queues a fill of bytes: address, value, count, stream.
        fill_8(u64, u8, usize, Handle);
        /// The same of 16 bits.
        fill_16(u64, u16, usize, Handle);
        /// The same of 32 bits.
        fill_32(u64, c_uint, usize, Handle);
        /// Makes a stream: result, flags (1 non-blocking), priority.
        stream_create(*mut Handle, c_uint, c_int);
        /// Destroys it.
        stream_destroy(Handle);
        /// 0 if all its work has run, 600 if not.
        stream_query(Handle);
        /// Waits for it.
        stream_synchronize(Handle);
        /// Makes it wait: stream, event, flags.
        stream_wait_event(Handle, Handle, c_uint);
        /// Makes an event: result, flags (1 blocking, 2 no timing, 4 interprocess).
        event_create(*mut Handle, c_uint);
        /// Destroys it.
        event_destroy(Handle);
        /// Records it: event, stream.
        event_record(Handle, Handle);
        /// 0 if it was reached, 600 if not.
        event_query(Handle);
        /// Waits for it.
        event_synchronize(Handle);
        /// Milliseconds: result, start, end.
        event_elapsed(*mut f32, Handle, Handle);
        /// Loads code: result, image, number of options, options, values.
        module_load(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        /// Unloads it.
        module_unload(Handle);
        /// A kernel: result, module, name.
        module_function(*mut Handle, Handle, *const c_char);
        /// A variable: address, bytes, module, name.
        module_global(*mut u64, *mut usize, Handle, *const c_char);
        /// Launches: function, grid, block, shared bytes, stream, arguments, extra.
        launch(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
            *mut *mut c_void, *mut *mut c_void);
        /// Property of a kernel: result, attribute, function.
        function_attribute(*mut c_int, c_int, Handle);
    }
    optional {
        /// UUID: 16 bytes, device.
        device_uuid(*mut [u8; 16], c_int);
        /// Priorities: least, greatest.
        priority_range(*mut c_int, *mut c_int);
        /// Limit: result, which.
        limit(*mut usize, c_int);
        /// Sets one.
        set_limit(c_int, usize);
        /// Start and bytes: results, address.
        address_range(*mut u64, *mut usize, u64);
        /// Allocates rows: address, pitch, width, height, element.
        allocate_pitched(*mut u64, *mut usize, usize, usize, c_uint);
        /// Allocates managed memory: address, bytes, flags (1 global).
        allocate_managed(*mut u64, usize, c_uint);
        /// Moves it: address, bytes, device or -1, stream.
        prefetch(u64, usize, c_int, Handle);
        /// Makes a pool: result, properties.
        pool_create(*mut Handle, *const PoolProperties);
        /// Destroys it.
        pool_destroy(Handle);
        /// Sets an attribute (4 release threshold, a u64): pool, attribute, value.
        pool_set_attribute(Handle, c_int, *mut c_void);
        /// Reads one (5 reserved, 7 used, u64): pool, attribute, value.
        pool_attribute(Handle, c_int, *mut c_void);
        /// Gives memory back: pool, bytes to keep.
        pool_trim(Handle, usize);
        /// Lets devices use it: pool, descriptions, count.
        pool_set_access(Handle, *const PoolAccess, usize);
        /// Allocates: address, bytes, pool, stream.
        pool_allocate(*mut u64, usize, Handle, Handle);
        /// Frees: address, stream.
        free_async(u64, Handle);
        /// Exports memory: handle, address.
        ipc_export_memory(*mut IpcHandle, u64);
        /// Opens it: address, handle, flags (1 peer access as needed).
        ipc_open_memory(*mut u64, IpcHandle, c_uint);
        /// Closes it.
        ipc_close_memory(u64);
        /// Exports an event: handle, event.
        ipc_export_event(*mut IpcHandle, Handle);
        /// Opens it: event, handle.
        ipc_open_event(*mut Handle, IpcHandle);
        /// Queues a function: stream, function, data.
        host_function(Handle, HostFunction, *mut c_void);
        /// The older form: stream, function, data, flags.
        stream_callback(Handle, StreamCallback, *mut c_void, c_uint);
        /// Priority of a stream: stream, result.
        stream_priority(Handle, *mut c_int);
        /// Flags of a stream: stream, result.
        stream_flags(Handle, *mut c_uint);
        /// Starts a capture: stream, mode (0 global, 1 thread, 2 relaxed).
        capture_begin(Handle, c_int);
        /// Ends it: stream, graph.
        capture_end(Handle, *mut Handle);
        /// 0 none, 1 active, 2 invalid, and the capture's number: stream, results.
        capture_info(Handle, *mut c_int, *mut c_ulonglong);
        /// The same with the graph and its last nodes: stream, state, number, graph, nodes, count.
        capture_graph(Handle, *mut c_int, *mut c_ulonglong, *mut Handle, *mut *const Handle,
            *mut usize);
        /// Makes an object that graphs keep: result, data, what is called with it at the end,
        /// references, flags (1: the end is not waited for).
        user_object_create(*mut Handle, *mut c_void, HostFunction, c_uint, c_uint);
        /// Has a graph keep one: graph, object, references, flags (1: the caller's are moved).
        graph_retain(Handle, Handle, c_uint, c_uint);
        /// Exchanges the thread's capture mode.
        capture_exchange_mode(*mut c_int);
        /// Makes a graph executable: result, graph, flags.
        graph_instantiate(*mut Handle, Handle, c_ulonglong);
        /// Launches it: executable graph, stream.
        graph_launch(Handle, Handle);
        /// Destroys a graph.
        graph_destroy(Handle);
        /// Destroys an executable graph.
        graph_exec_destroy(Handle);
        /// Nodes: graph, array or null, number.
        graph_nodes(Handle, *mut Handle, *mut usize);
        /// Launches with all blocks at once: as `launch` without extra.
        launch_cooperative(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
            Handle, *mut *mut c_void);
        /// Sets a property of a kernel: function, attribute, value.
        function_set_attribute(Handle, c_int, c_int);
        /// A parameter: function, number, offset, bytes; 1 past the last.
        function_parameter(Handle, usize, *mut usize, *mut usize);
        /// Blocks at once: result, function, threads, shared bytes, flags.
        active_blocks(*mut c_int, Handle, c_int, usize, c_uint);
        /// Starts an attached profiler.
        profiler_start();
        /// Stops it.
        profiler_stop();
    }
}

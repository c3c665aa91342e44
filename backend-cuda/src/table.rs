//! The driver's functions by their symbols, each checked against cudarc's declaration.

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUhostFn, CUipcEventHandle,
    CUipcMemHandle, CUjit_option, CUlimit, CUmemAccessDesc, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool, CUmodule, CUresult, CUstream, CUstreamCallback, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUuserObject, CUuuid, cuuint64_t,
};
use hal::driver::calls::Names;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

macro_rules! names {
    ($($field:ident: $symbol:ident($($argument:ty),* $(,)?);)*) => {
        /// The symbols of `libcuda`.
        pub(crate) static NAMES: Names = Names {
            // CUDA 10.1's form: stream, state and number. Newer headers declare a longer one
            // under this name with a suffix.
            capture_info: "cuStreamGetCaptureInfo",
            $($field: stringify!($symbol),)*
        };

        /// Fails to compile if a function's declaration changes.
        #[allow(dead_code, reason = "only its types matter")]
        const DECLARATIONS: () = {
            $(let _: unsafe fn($($argument),*) -> CUresult = sys::$symbol;)*
        };
    };
}

names! {
    init: cuInit(c_uint);
    driver_version: cuDriverGetVersion(*mut c_int);
    device_count: cuDeviceGetCount(*mut c_int);
    device_get: cuDeviceGet(*mut CUdevice, c_int);
    device_name: cuDeviceGetName(*mut c_char, c_int, CUdevice);
    device_total_memory: cuDeviceTotalMem_v2(*mut usize, CUdevice);
    device_attribute: cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    device_pci_bus_id: cuDeviceGetPCIBusId(*mut c_char, c_int, CUdevice);
    device_can_access_peer: cuDeviceCanAccessPeer(*mut c_int, CUdevice, CUdevice);
    synchronize: cuCtxSynchronize();
    memory_info: cuMemGetInfo_v2(*mut usize, *mut usize);
    allocate: cuMemAlloc_v2(*mut CUdeviceptr, usize);
    free: cuMemFree_v2(CUdeviceptr);
    allocate_pinned: cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    free_pinned: cuMemFreeHost(*mut c_void);
    pinned_address: cuMemHostGetDevicePointer_v2(*mut CUdeviceptr, *mut c_void, c_uint);
    register_host: cuMemHostRegister_v2(*mut c_void, usize, c_uint);
    unregister_host: cuMemHostUnregister(*mut c_void);
    copy_to_device: cuMemcpyHtoD_v2(CUdeviceptr, *const c_void, usize);
    copy_to_host: cuMemcpyDtoH_v2(*mut c_void, CUdeviceptr, usize);
    copy_to_device_async: cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    copy_to_host_async: cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    copy_on_device_async: cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    fill_8: cuMemsetD8Async(CUdeviceptr, c_uchar, usize, CUstream);
    fill_16: cuMemsetD16Async(CUdeviceptr, c_ushort, usize, CUstream);
    fill_32: cuMemsetD32Async(CUdeviceptr, c_uint, usize, CUstream);
    stream_create: cuStreamCreateWithPriority(*mut CUstream, c_uint, c_int);
    stream_destroy: cuStreamDestroy_v2(CUstream);
    stream_query: cuStreamQuery(CUstream);
    stream_synchronize: cuStreamSynchronize(CUstream);
    stream_wait_event: cuStreamWaitEvent(CUstream, CUevent, c_uint);
    event_create: cuEventCreate(*mut CUevent, c_uint);
    event_destroy: cuEventDestroy_v2(CUevent);
    event_record: cuEventRecord(CUevent, CUstream);
    event_query: cuEventQuery(CUevent);
    event_synchronize: cuEventSynchronize(CUevent);
    event_elapsed: cuEventElapsedTime(*mut f32, CUevent, CUevent);
    module_load: cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option,
        *mut *mut c_void);
    module_unload: cuModuleUnload(CUmodule);
    module_function: cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    module_global: cuModuleGetGlobal_v2(*mut CUdeviceptr, *mut usize, CUmodule, *const c_char);
    launch: cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        CUstream, *mut *mut c_void, *mut *mut c_void);
    function_attribute: cuFuncGetAttribute(*mut c_int, CUfunction_attribute, CUfunction);
    device_uuid: cuDeviceGetUuid_v2(*mut CUuuid, CUdevice);
    priority_range: cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
    limit: cuCtxGetLimit(*mut usize, CUlimit);
    set_limit: cuCtxSetLimit(CUlimit, usize);
    address_range: cuMemGetAddressRange_v2(*mut CUdeviceptr, *mut usize, CUdeviceptr);
    allocate_pitched: cuMemAllocPitch_v2(*mut CUdeviceptr, *mut usize, usize, usize, c_uint);
    allocate_managed: cuMemAllocManaged(*mut CUdeviceptr, usize, c_uint);
    prefetch: cuMemPrefetchAsync(CUdeviceptr, usize, CUdevice, CUstream);
    pool_create: cuMemPoolCreate(*mut CUmemoryPool, *const CUmemPoolProps);
    pool_destroy: cuMemPoolDestroy(CUmemoryPool);
    pool_set_attribute: cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    pool_attribute: cuMemPoolGetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    pool_trim: cuMemPoolTrimTo(CUmemoryPool, usize);
    pool_set_access: cuMemPoolSetAccess(CUmemoryPool, *const CUmemAccessDesc, usize);
    pool_allocate: cuMemAllocFromPoolAsync(*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
    free_async: cuMemFreeAsync(CUdeviceptr, CUstream);
    ipc_export_memory: cuIpcGetMemHandle(*mut CUipcMemHandle, CUdeviceptr);
    ipc_open_memory: cuIpcOpenMemHandle_v2(*mut CUdeviceptr, CUipcMemHandle, c_uint);
    ipc_close_memory: cuIpcCloseMemHandle(CUdeviceptr);
    ipc_export_event: cuIpcGetEventHandle(*mut CUipcEventHandle, CUevent);
    ipc_open_event: cuIpcOpenEventHandle(*mut CUevent, CUipcEventHandle);
    host_function: cuLaunchHostFunc(CUstream, CUhostFn, *mut c_void);
    stream_callback: cuStreamAddCallback(CUstream, CUstreamCallback, *mut c_void, c_uint);
    stream_priority: cuStreamGetPriority(CUstream, *mut c_int);
    stream_flags: cuStreamGetFlags(CUstream, *mut c_uint);
    capture_begin: cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
    capture_end: cuStreamEndCapture(CUstream, *mut CUgraph);
    capture_graph: cuStreamGetCaptureInfo_v2(CUstream, *mut CUstreamCaptureStatus, *mut cuuint64_t,
        *mut CUgraph, *mut *const CUgraphNode, *mut usize);
    user_object_create: cuUserObjectCreate(*mut CUuserObject, *mut c_void, CUhostFn, c_uint,
        c_uint);
    graph_retain: cuGraphRetainUserObject(CUgraph, CUuserObject, c_uint, c_uint);
    capture_exchange_mode: cuThreadExchangeStreamCaptureMode(*mut CUstreamCaptureMode);
    graph_instantiate: cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
    graph_launch: cuGraphLaunch(CUgraphExec, CUstream);
    graph_destroy: cuGraphDestroy(CUgraph);
    graph_exec_destroy: cuGraphExecDestroy(CUgraphExec);
    graph_nodes: cuGraphGetNodes(CUgraph, *mut CUgraphNode, *mut usize);
    launch_cooperative: cuLaunchCooperativeKernel(CUfunction, c_uint, c_uint, c_uint, c_uint,
        c_uint, c_uint, c_uint, CUstream, *mut *mut c_void);
    function_set_attribute: cuFuncSetAttribute(CUfunction, CUfunction_attribute, c_int);
    function_parameter: cuFuncGetParamInfo(CUfunction, usize, *mut usize, *mut usize);
    active_blocks: cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(*mut c_int, CUfunction,
        c_int, usize, c_uint);
    profiler_start: cuProfilerStart();
    profiler_stop: cuProfilerStop();
}

/// Functions of CUDA alone, or whose types differ from HIP's: by name and cudarc's declaration.
macro_rules! own_calls {
    (
        required { $($name:ident: $symbol:ident($($argument:ty => $raw:ty),* $(,)?);)* }
        optional { $($other:ident: $other_symbol:ident($($other_argument:ty => $other_raw:ty),* $(,)?);)* }
    ) => {
        /// What the vendor's quirks call.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct OwnCalls {
            $(pub(crate) $name: unsafe extern "C" fn($($raw),*) -> c_int,)*
            $(pub(crate) $other: Option<unsafe extern "C" fn($($other_raw),*) -> c_int>,)*
        }

        impl OwnCalls {
            pub(crate) const REQUIRED: &'static [&'static str] = &[$(stringify!($symbol)),*];
            pub(crate) const OPTIONAL: &'static [&'static str] = &[$(stringify!($other_symbol)),*];

            /// Finds them in `libcuda`.
            ///
            /// # Safety
            /// The library is NVIDIA's driver, or one that behaves like it.
            pub(crate) unsafe fn find(library: hal::library::Library) -> hal::Result<Self> {
                $(let _: unsafe fn($($argument),*) -> CUresult = sys::$symbol;)*
                $(let _: unsafe fn($($other_argument),*) -> CUresult = sys::$other_symbol;)*
                let mut symbols = library.symbols();
                // SAFETY: the types are cudarc's with handles and enumerations as integers of
                // the same size, here and below.
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

use hal::driver::calls::Handle;
use sys::{CUDA_MEMCPY3D, CUjitInputType, CUlinkState, CUpointer_attribute};

own_calls! {
    required {
        retain: cuDevicePrimaryCtxRetain(*mut CUcontext => *mut Handle, CUdevice => c_int);
        release: cuDevicePrimaryCtxRelease_v2(CUdevice => c_int);
        reset: cuDevicePrimaryCtxReset_v2(CUdevice => c_int);
        current: cuCtxGetCurrent(*mut CUcontext => *mut Handle);
        set_current: cuCtxSetCurrent(CUcontext => Handle);
        pointer_attribute: cuPointerGetAttribute(*mut c_void => *mut c_void,
            CUpointer_attribute => c_int, CUdeviceptr => u64);
        copy_3d: cuMemcpy3DAsync_v2(*const CUDA_MEMCPY3D => *const CUDA_MEMCPY3D,
            CUstream => Handle);
        copy_peer: cuMemcpyPeerAsync(CUdeviceptr => u64, CUcontext => Handle, CUdeviceptr => u64,
            CUcontext => Handle, usize => usize, CUstream => Handle);
    }
    optional {
        error_name: cuGetErrorName(CUresult => c_int, *mut *const c_char => *mut *const c_char);
        error_string: cuGetErrorString(CUresult => c_int,
            *mut *const c_char => *mut *const c_char);
        enable_peer: cuCtxEnablePeerAccess(CUcontext => Handle, c_uint => c_uint);
        disable_peer: cuCtxDisablePeerAccess(CUcontext => Handle);
        link_create: cuLinkCreate_v2(c_uint => c_uint, *mut CUjit_option => *mut c_int,
            *mut *mut c_void => *mut *mut c_void, *mut CUlinkState => *mut Handle);
        link_add: cuLinkAddData_v2(CUlinkState => Handle, CUjitInputType => c_int,
            *mut c_void => *mut c_void, usize => usize, *const c_char => *const c_char,
            c_uint => c_uint, *mut CUjit_option => *mut c_int,
            *mut *mut c_void => *mut *mut c_void);
        link_complete: cuLinkComplete(CUlinkState => Handle, *mut *mut c_void => *mut *mut c_void,
            *mut usize => *mut usize);
        link_destroy: cuLinkDestroy(CUlinkState => Handle);
    }
}

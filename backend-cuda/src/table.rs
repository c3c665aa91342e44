//! The driver's functions by their symbols, each checked against cudarc's declaration.

use crate::abi::Abi;
use cudarc::driver::sys::{self, CUDA_MEMCPY3D};
use driver::calls::Handle;
use std::ffi::{c_char, c_int, c_uint, c_void};

driver::driver_names! {
    Abi, sys, "Rust";
    checked {
        init: cuInit(_);
        driver_version: cuDriverGetVersion(_);
        device_count: cuDeviceGetCount(_);
        device_get: cuDeviceGet(_, _);
        device_name: cuDeviceGetName(_, _, _);
        device_total_memory: cuDeviceTotalMem_v2(_, _);
        device_attribute: cuDeviceGetAttribute(_, _, _);
        device_pci_bus_id: cuDeviceGetPCIBusId(_, _, _);
        device_can_access_peer: cuDeviceCanAccessPeer(_, _, _);
        synchronize: cuCtxSynchronize();
        memory_info: cuMemGetInfo_v2(_, _);
        allocate: cuMemAlloc_v2(_, _);
        free: cuMemFree_v2(_);
        allocate_pinned: cuMemHostAlloc(_, _, _);
        free_pinned: cuMemFreeHost(_);
        pinned_address: cuMemHostGetDevicePointer_v2(_, _, _);
        register_host: cuMemHostRegister_v2(_, _, _);
        unregister_host: cuMemHostUnregister(_);
        copy_to_device: cuMemcpyHtoD_v2(_, _, _);
        copy_to_host: cuMemcpyDtoH_v2(_, _, _);
        copy_to_device_async: cuMemcpyHtoDAsync_v2(_, _, _, _);
        copy_to_host_async: cuMemcpyDtoHAsync_v2(_, _, _, _);
        copy_on_device_async: cuMemcpyDtoDAsync_v2(_, _, _, _);
        fill_8: cuMemsetD8Async(_, _, _, _);
        fill_16: cuMemsetD16Async(_, _, _, _);
        fill_32: cuMemsetD32Async(_, _, _, _);
        stream_create: cuStreamCreateWithPriority(_, _, _);
        stream_destroy: cuStreamDestroy_v2(_);
        stream_query: cuStreamQuery(_);
        stream_synchronize: cuStreamSynchronize(_);
        stream_wait_event: cuStreamWaitEvent(_, _, _);
        event_create: cuEventCreate(_, _);
        event_destroy: cuEventDestroy_v2(_);
        event_record: cuEventRecord(_, _);
        event_query: cuEventQuery(_);
        event_synchronize: cuEventSynchronize(_);
        event_elapsed: cuEventElapsedTime(_, _, _);
        module_load: cuModuleLoadDataEx(_, _, _, _, _);
        module_unload: cuModuleUnload(_);
        module_function: cuModuleGetFunction(_, _, _);
        module_global: cuModuleGetGlobal_v2(_, _, _, _);
        launch: cuLaunchKernel(_, _, _, _, _, _, _, _, _, _, _);
        function_attribute: cuFuncGetAttribute(_, _, _);
        device_uuid: cuDeviceGetUuid_v2(_, _);
        priority_range: cuCtxGetStreamPriorityRange(_, _);
        limit: cuCtxGetLimit(_, _);
        set_limit: cuCtxSetLimit(_, _);
        address_range: cuMemGetAddressRange_v2(_, _, _);
        allocate_pitched: cuMemAllocPitch_v2(_, _, _, _, _);
        allocate_managed: cuMemAllocManaged(_, _, _);
        prefetch: cuMemPrefetchAsync(_, _, _, _);
        pool_create: cuMemPoolCreate(_, _);
        pool_destroy: cuMemPoolDestroy(_);
        pool_set_attribute: cuMemPoolSetAttribute(_, _, _);
        pool_attribute: cuMemPoolGetAttribute(_, _, _);
        pool_trim: cuMemPoolTrimTo(_, _);
        pool_set_access: cuMemPoolSetAccess(_, _, _);
        pool_allocate: cuMemAllocFromPoolAsync(_, _, _, _);
        free_async: cuMemFreeAsync(_, _);
        ipc_export_memory: cuIpcGetMemHandle(_, _);
        ipc_open_memory: cuIpcOpenMemHandle_v2(_, _, _);
        ipc_close_memory: cuIpcCloseMemHandle(_);
        ipc_export_event: cuIpcGetEventHandle(_, _);
        ipc_open_event: cuIpcOpenEventHandle(_, _);
        host_function: cuLaunchHostFunc(_, _, _);
        stream_callback: cuStreamAddCallback(_, _, _, _);
        stream_priority: cuStreamGetPriority(_, _);
        stream_flags: cuStreamGetFlags(_, _);
        capture_begin: cuStreamBeginCapture_v2(_, _);
        capture_end: cuStreamEndCapture(_, _);
        capture_graph: cuStreamGetCaptureInfo_v2(_, _, _, _, _, _);
        user_object_create: cuUserObjectCreate(_, _, _, _, _);
        graph_retain: cuGraphRetainUserObject(_, _, _, _);
        capture_exchange_mode: cuThreadExchangeStreamCaptureMode(_);
        graph_instantiate: cuGraphInstantiateWithFlags(_, _, _);
        graph_launch: cuGraphLaunch(_, _);
        graph_destroy: cuGraphDestroy(_);
        graph_exec_destroy: cuGraphExecDestroy(_);
        graph_nodes: cuGraphGetNodes(_, _, _);
        launch_cooperative: cuLaunchCooperativeKernel(_, _, _, _, _, _, _, _, _, _);
        function_set_attribute: cuFuncSetAttribute(_, _, _);
        function_parameter: cuFuncGetParamInfo(_, _, _, _);
        active_blocks: cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(_, _, _, _, _);
        array_create: cuArray3DCreate_v2(_, _);
        array_destroy: cuArrayDestroy(_);
        texture_create: cuTexObjectCreate(_, _, _, _);
        texture_destroy: cuTexObjectDestroy(_);
        surface_create: cuSurfObjectCreate(_, _);
        surface_destroy: cuSurfObjectDestroy(_);
        profiler_start: cuProfilerStart();
        profiler_stop: cuProfilerStop();
    }
    unchecked {
        // The form of CUDA 10.1: stream, state and number. Newer headers declare a longer function
        // under this name with a suffix.
        capture_info: "cuStreamGetCaptureInfo";
    }
}

// The functions that only CUDA has, and those whose types differ from HIP's.
driver::driver_calls! {
    Abi, sys, "Rust";
    required {
        retain: cuDevicePrimaryCtxRetain(_: *mut Handle, _: c_int) -> c_int;
        release: cuDevicePrimaryCtxRelease_v2(_: c_int) -> c_int;
        reset: cuDevicePrimaryCtxReset_v2(_: c_int) -> c_int;
        current: cuCtxGetCurrent(_: *mut Handle) -> c_int;
        set_current: cuCtxSetCurrent(_: Handle) -> c_int;
        pointer_attribute: cuPointerGetAttribute(_: *mut c_void, _: c_int, _: u64) -> c_int;
        copy_3d: cuMemcpy3DAsync_v2(_: *const CUDA_MEMCPY3D, _: Handle) -> c_int;
        copy_peer: cuMemcpyPeerAsync(_: u64, _: Handle, _: u64, _: Handle, _: usize, _: Handle) -> c_int;
    }
    optional {
        error_name: cuGetErrorName(_: c_int, _: *mut *const c_char) -> c_int;
        error_string: cuGetErrorString(_: c_int, _: *mut *const c_char) -> c_int;
        number: cuCtxGetId(_: Handle, _: *mut u64) -> c_int;
        enable_peer: cuCtxEnablePeerAccess(_: Handle, _: c_uint) -> c_int;
        disable_peer: cuCtxDisablePeerAccess(_: Handle) -> c_int;
        link_create: cuLinkCreate_v2(_: c_uint, _: *mut c_int, _: *mut *mut c_void, _: *mut Handle) -> c_int;
        link_add: cuLinkAddData_v2(_: Handle, _: c_int, _: *mut c_void, _: usize, _: *const c_char, _: c_uint, _: *mut c_int, _: *mut *mut c_void) -> c_int;
        link_complete: cuLinkComplete(_: Handle, _: *mut *mut c_void, _: *mut usize) -> c_int;
        link_destroy: cuLinkDestroy(_: Handle) -> c_int;
    }
}

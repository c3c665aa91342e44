//! The runtime's functions by their symbols, each checked against the declaration that
//! bindgen made of it.
//!
//! If two functions do the same, the table has the older one, which every generation provides.
//! `hipMemcpy3DAsync` is used because the members of `HIP_MEMCPY3D` were 32 bits wide in ROCm 5,
//! and because AMD's runtime captures it, but not `hipDrvMemcpy3DAsync`. `hipDeviceReset` is used
//! because `hipDevicePrimaryCtxReset` is deprecated.

use crate::abi::Abi;
use crate::bindings as sys;
use driver::calls::Handle;
use std::ffi::{c_char, c_int, c_uint, c_void};

driver::driver_names! {
    Abi, sys, "C";
    checked {
        init: hipInit(_);
        driver_version: hipRuntimeGetVersion(_);
        device_count: hipGetDeviceCount(_);
        device_get: hipDeviceGet(_, _);
        device_name: hipDeviceGetName(_, _, _);
        device_total_memory: hipDeviceTotalMem(_, _);
        device_attribute: hipDeviceGetAttribute(_, _, _);
        device_pci_bus_id: hipDeviceGetPCIBusId(_, _, _);
        device_can_access_peer: hipDeviceCanAccessPeer(_, _, _);
        synchronize: hipDeviceSynchronize();
        memory_info: hipMemGetInfo(_, _);
        allocate: hipMalloc(_, _);
        free: hipFree(_);
        allocate_pinned: hipHostMalloc(_, _, _);
        free_pinned: hipHostFree(_);
        pinned_address: hipHostGetDevicePointer(_, _, _);
        register_host: hipHostRegister(_, _, _);
        unregister_host: hipHostUnregister(_);
        copy_to_device: hipMemcpyHtoD(_, _, _);
        copy_to_host: hipMemcpyDtoH(_, _, _);
        copy_to_device_async: hipMemcpyHtoDAsync(_, _, _, _);
        copy_to_host_async: hipMemcpyDtoHAsync(_, _, _, _);
        copy_on_device_async: hipMemcpyDtoDAsync(_, _, _, _);
        fill_8: hipMemsetD8Async(_, _, _, _);
        fill_16: hipMemsetD16Async(_, _, _, _);
        fill_32: hipMemsetD32Async(_, _, _, _);
        stream_create: hipStreamCreateWithPriority(_, _, _);
        stream_destroy: hipStreamDestroy(_);
        stream_query: hipStreamQuery(_);
        stream_synchronize: hipStreamSynchronize(_);
        stream_wait_event: hipStreamWaitEvent(_, _, _);
        event_create: hipEventCreateWithFlags(_, _);
        event_destroy: hipEventDestroy(_);
        event_record: hipEventRecord(_, _);
        event_query: hipEventQuery(_);
        event_synchronize: hipEventSynchronize(_);
        event_elapsed: hipEventElapsedTime(_, _, _);
        module_load: hipModuleLoadDataEx(_, _, _, _, _);
        module_unload: hipModuleUnload(_);
        module_function: hipModuleGetFunction(_, _, _);
        module_global: hipModuleGetGlobal(_, _, _, _);
        launch: hipModuleLaunchKernel(_, _, _, _, _, _, _, _, _, _, _);
        function_attribute: hipFuncGetAttribute(_, _, _);
        device_uuid: hipDeviceGetUuid(_, _);
        priority_range: hipDeviceGetStreamPriorityRange(_, _);
        limit: hipDeviceGetLimit(_, _);
        set_limit: hipDeviceSetLimit(_, _);
        address_range: hipMemGetAddressRange(_, _, _);
        allocate_pitched: hipMemAllocPitch(_, _, _, _, _);
        allocate_managed: hipMallocManaged(_, _, _);
        prefetch: hipMemPrefetchAsync(_, _, _, _);
        pool_create: hipMemPoolCreate(_, _);
        pool_destroy: hipMemPoolDestroy(_);
        pool_set_attribute: hipMemPoolSetAttribute(_, _, _);
        pool_attribute: hipMemPoolGetAttribute(_, _, _);
        pool_trim: hipMemPoolTrimTo(_, _);
        pool_set_access: hipMemPoolSetAccess(_, _, _);
        pool_allocate: hipMallocFromPoolAsync(_, _, _, _);
        free_async: hipFreeAsync(_, _);
        ipc_export_memory: hipIpcGetMemHandle(_, _);
        ipc_open_memory: hipIpcOpenMemHandle(_, _, _);
        ipc_close_memory: hipIpcCloseMemHandle(_);
        ipc_export_event: hipIpcGetEventHandle(_, _);
        ipc_open_event: hipIpcOpenEventHandle(_, _);
        host_function: hipLaunchHostFunc(_, _, _);
        stream_callback: hipStreamAddCallback(_, _, _, _);
        stream_priority: hipStreamGetPriority(_, _);
        stream_flags: hipStreamGetFlags(_, _);
        capture_begin: hipStreamBeginCapture(_, _);
        capture_end: hipStreamEndCapture(_, _);
        capture_info: hipStreamGetCaptureInfo(_, _, _);
        capture_graph: hipStreamGetCaptureInfo_v2(_, _, _, _, _, _);
        user_object_create: hipUserObjectCreate(_, _, _, _, _);
        graph_retain: hipGraphRetainUserObject(_, _, _, _);
        capture_exchange_mode: hipThreadExchangeStreamCaptureMode(_);
        graph_instantiate: hipGraphInstantiateWithFlags(_, _, _);
        graph_launch: hipGraphLaunch(_, _);
        graph_destroy: hipGraphDestroy(_);
        graph_exec_destroy: hipGraphExecDestroy(_);
        graph_nodes: hipGraphGetNodes(_, _, _);
        launch_cooperative: hipModuleLaunchCooperativeKernel(_, _, _, _, _, _, _, _, _, _);
        active_blocks: hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(_, _, _, _, _);
        array_create: hipArray3DCreate(_, _);
        array_destroy: hipArrayDestroy(_);
        texture_create: hipTexObjectCreate(_, _, _, _);
        texture_destroy: hipTexObjectDestroy(_);
        surface_create: hipCreateSurfaceObject(_, _);
        surface_destroy: hipDestroySurfaceObject(_);
        profiler_start: hipProfilerStart();
        profiler_stop: hipProfilerStop();
    }
    unchecked {
        // hipFuncSetAttribute takes the address of a kernel that is linked into the program, not a
        // module's function. A module's function may use more shared memory without it.
        function_set_attribute: "";
        function_parameter: "";
    }
}

// The functions that only HIP has, and those whose types differ from CUDA's.
driver::driver_calls! {
    Abi, sys, "C";
    required {
        set_device: hipSetDevice(_: c_int) -> c_int;
        device: hipGetDevice(_: *mut c_int) -> c_int;
        reset: hipDeviceReset() -> c_int;
        last_error: hipGetLastError() -> c_int;
        pointer_attributes: hipPointerGetAttributes(_: *mut sys::hipPointerAttribute_t,
            _: *const c_void) -> c_int;
        copy_3d: hipMemcpy3DAsync(_: *const sys::hipMemcpy3DParms, _: Handle) -> c_int;
        copy_peer: hipMemcpyPeerAsync(_: u64, _: c_int, _: u64, _: c_int, _: usize,
            _: Handle) -> c_int;
    }
    optional {
        error_name: hipGetErrorName(_: c_int) -> *const c_char;
        error_string: hipGetErrorString(_: c_int) -> *const c_char;
        properties: hipGetDevicePropertiesR0600(_: *mut sys::hipDeviceProp_tR0600, _: c_int)
            -> c_int;
        old_properties: hipGetDeviceProperties(_: *mut sys::hipDeviceProp_tR0000, _: c_int)
            -> c_int;
        enable_peer: hipDeviceEnablePeerAccess(_: c_int, _: c_uint) -> c_int;
        disable_peer: hipDeviceDisablePeerAccess(_: c_int) -> c_int;
    }
}

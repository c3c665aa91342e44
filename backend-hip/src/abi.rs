//! Which types of the bindings are passed as which types of the driver layer's tables.

use crate::bindings as sys;
use crate::vendor::Hip;
use hal::IpcHandle;
use hal::driver::calls::{HostFunction, PoolAccess, PoolProperties, StreamCallback};
use std::ffi::c_void;

// Device addresses are pointers here.
hal::abi_passes! {
    Hip:
    u64 as *mut c_void, *const c_void;
    IpcHandle as sys::hipIpcMemHandle_t, sys::hipIpcEventHandle_t;
    [u8; 16] as sys::hipUUID;
    PoolProperties as sys::hipMemPoolProps;
    PoolAccess as sys::hipMemAccessDesc;
    HostFunction as sys::hipHostFn_t;
    StreamCallback as sys::hipStreamCallback_t;
    sys::hipMemcpy3DParms as sys::hipMemcpy3DParms;
    sys::hipPointerAttribute_t as sys::hipPointerAttribute_t;
    sys::hipDeviceProp_tR0600 as sys::hipDeviceProp_tR0600;
    sys::hipDeviceProp_tR0000 as sys::hipDeviceProp_tR0000;
    sys::_hiprtcProgram as sys::_hiprtcProgram;
}

hal::check_pool_layouts!(sys::hipMemPoolProps, sys::hipMemLocation, sys::hipMemAccessDesc);

//! Which types of cudarc's declarations are passed as which types of the driver layer's tables.

use crate::vendor::Cuda;
use cudarc::driver::sys;
use cudarc::nvrtc::sys as nvrtc;
use hal::IpcHandle;
use hal::driver::calls::{HostFunction, PoolAccess, PoolProperties, StreamCallback};
use std::ffi::c_int;

// Enumerations are ints in C.
hal::abi_passes! {
    Cuda:
    c_int as sys::CUresult, sys::CUdevice_attribute, sys::CUfunction_attribute, sys::CUlimit,
        sys::CUjit_option, sys::CUjitInputType, sys::CUmemPool_attribute, sys::CUpointer_attribute,
        sys::CUstreamCaptureMode, sys::CUstreamCaptureStatus, nvrtc::nvrtcResult;
    IpcHandle as sys::CUipcMemHandle, sys::CUipcEventHandle;
    [u8; 16] as sys::CUuuid;
    PoolProperties as sys::CUmemPoolProps;
    PoolAccess as sys::CUmemAccessDesc;
    HostFunction as sys::CUhostFn;
    StreamCallback as sys::CUstreamCallback;
    sys::CUDA_MEMCPY3D as sys::CUDA_MEMCPY3D;
    sys::CUDA_ARRAY3D_DESCRIPTOR as sys::CUDA_ARRAY3D_DESCRIPTOR;
    sys::CUDA_RESOURCE_DESC as sys::CUDA_RESOURCE_DESC;
    sys::CUDA_TEXTURE_DESC as sys::CUDA_TEXTURE_DESC;
    sys::CUDA_RESOURCE_VIEW_DESC as sys::CUDA_RESOURCE_VIEW_DESC;
    nvrtc::_nvrtcProgram as nvrtc::_nvrtcProgram;
}

hal::check_pool_layouts!(sys::CUmemPoolProps, sys::CUmemLocation, sys::CUmemAccessDesc);

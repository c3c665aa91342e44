//! States which types of the driver layer's tables pass as which types of the bindings.

use crate::bindings as sys;
use driver::abi::Passes;
use driver::calls::{HostFunction, PoolAccess, PoolProperties, StreamCallback};
use driver::texture::{ArrayDescription, ResourceDescription, TextureDescription, ViewDescription};
use hal::IpcHandle;
use std::ffi::c_void;
use std::mem::offset_of;

/// HIP's marker type for [`hal::abi_passes!`]. Device addresses are pointers in HIP.
pub(crate) enum Abi {}

hal::abi_passes! {
    Abi:
    u64 as *mut c_void, *const c_void;
    IpcHandle as sys::hipIpcMemHandle_t, sys::hipIpcEventHandle_t;
    [u8; 16] as sys::hipUUID;
    PoolProperties as sys::hipMemPoolProps;
    PoolAccess as sys::hipMemAccessDesc;
    HostFunction as sys::hipHostFn_t;
    StreamCallback as sys::hipStreamCallback_t;
    u64 as *mut sys::__hip_texture, *mut sys::__hip_surface;
    ArrayDescription as sys::HIP_ARRAY3D_DESCRIPTOR;
    ResourceDescription as sys::HIP_RESOURCE_DESC;
    TextureDescription as sys::HIP_TEXTURE_DESC;
    ViewDescription as sys::HIP_RESOURCE_VIEW_DESC;
    sys::hipMemcpy3DParms as sys::hipMemcpy3DParms;
    sys::hipPointerAttribute_t as sys::hipPointerAttribute_t;
    sys::hipDeviceProp_tR0600 as sys::hipDeviceProp_tR0600;
    sys::hipDeviceProp_tR0000 as sys::hipDeviceProp_tR0000;
    sys::_hiprtcProgram as sys::_hiprtcProgram;
}

driver::check_pool_layouts!(sys::hipMemPoolProps, sys::hipMemLocation, sys::hipMemAccessDesc);

// The runtime reads only the beginning of an array's description: a surface always belongs to an
// array.
impl Passes<Abi, sys::hipResourceDesc> for ResourceDescription {}
const _: () = {
    use sys::hipResourceDesc as Resource;
    assert!(size_of::<ResourceDescription>() >= size_of::<Resource>());
    assert!(offset_of!(ResourceDescription, kind) == offset_of!(Resource, resType));
    assert!(offset_of!(ResourceDescription, object) == offset_of!(Resource, res));
    assert!(sys::hipResourceType::hipResourceTypeArray == 0);
};

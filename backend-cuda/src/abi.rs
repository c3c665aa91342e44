//! States which types of the driver layer's tables pass as which types of cudarc's declarations.

use cudarc::driver::sys;
use cudarc::nvrtc::sys as nvrtc;
use driver::calls::{HostFunction, PoolAccess, PoolProperties, StreamCallback};
use driver::texture::{ArrayDescription, ResourceDescription, TextureDescription, ViewDescription};
use hal::IpcHandle;
use std::ffi::c_int;
use std::mem::offset_of;

/// CUDA's marker type for [`hal::abi_passes!`]. Enumerations are ints in C.
pub(crate) enum Abi {}

hal::abi_passes! {
    Abi:
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
    ArrayDescription as sys::CUDA_ARRAY3D_DESCRIPTOR;
    ResourceDescription as sys::CUDA_RESOURCE_DESC;
    TextureDescription as sys::CUDA_TEXTURE_DESC;
    ViewDescription as sys::CUDA_RESOURCE_VIEW_DESC;
    nvrtc::_nvrtcProgram as nvrtc::_nvrtcProgram;
}

driver::check_pool_layouts!(sys::CUmemPoolProps, sys::CUmemLocation, sys::CUmemAccessDesc);

// The fields of texture descriptions have the driver's offsets.
const _: () = {
    use sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 as Linear;
    use sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 as Pitched;
    use sys::CUDA_TEXTURE_DESC as Texture;
    use sys::{CUDA_ARRAY3D_DESCRIPTOR as Array, CUDA_RESOURCE_DESC as Resource};
    assert!(offset_of!(ArrayDescription, width) == offset_of!(Array, Width));
    assert!(offset_of!(ArrayDescription, height) == offset_of!(Array, Height));
    assert!(offset_of!(ArrayDescription, depth) == offset_of!(Array, Depth));
    assert!(offset_of!(ArrayDescription, format) == offset_of!(Array, Format));
    assert!(offset_of!(ArrayDescription, channels) == offset_of!(Array, NumChannels));
    assert!(offset_of!(ArrayDescription, flags) == offset_of!(Array, Flags));

    let of_union = offset_of!(Resource, res);
    let extent = offset_of!(ResourceDescription, extent);
    assert!(offset_of!(ResourceDescription, kind) == offset_of!(Resource, resType));
    assert!(offset_of!(ResourceDescription, object) == of_union);
    assert!(offset_of!(Linear, devPtr) == 0 && offset_of!(Pitched, devPtr) == 0);
    let format = offset_of!(ResourceDescription, format) - of_union;
    assert!(format == offset_of!(Linear, format) && format == offset_of!(Pitched, format));
    let channels = offset_of!(ResourceDescription, channels) - of_union;
    assert!(channels == offset_of!(Linear, numChannels));
    assert!(channels == offset_of!(Pitched, numChannels));
    assert!(extent == of_union + offset_of!(Linear, sizeInBytes));
    assert!(extent == of_union + offset_of!(Pitched, width));
    assert!(extent + 8 == of_union + offset_of!(Pitched, height));
    assert!(extent + 16 == of_union + offset_of!(Pitched, pitchInBytes));
    assert!(offset_of!(ResourceDescription, flags) == offset_of!(Resource, flags));

    assert!(offset_of!(TextureDescription, address) == offset_of!(Texture, addressMode));
    assert!(offset_of!(TextureDescription, filter) == offset_of!(Texture, filterMode));
    assert!(offset_of!(TextureDescription, flags) == offset_of!(Texture, flags));
    assert!(offset_of!(TextureDescription, border) == offset_of!(Texture, borderColor));
};

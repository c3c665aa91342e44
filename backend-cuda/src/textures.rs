//! Arrays for textures, texture objects and surface objects of CUDA's driver.

use crate::table::OwnCalls;
use cudarc::driver::sys::{
    self, CUDA_ARRAY3D_DESCRIPTOR, CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC, CUresourcetype,
};
use hal::driver::calls::Handle;
use hal::driver::vendor::NO_SYMBOL;
use hal::texture::{
    AddressMode, ArrayShape, ChannelFormat, Sampling, TexelFormat, TextureHandle, TextureResource,
};
use std::ffi::c_int;

/// True if the driver has all that is needed.
pub(crate) fn are_there(calls: &OwnCalls) -> bool {
    calls.array_create.is_some()
        && calls.array_destroy.is_some()
        && calls.texture_create.is_some()
        && calls.texture_destroy.is_some()
        && calls.surface_create.is_some()
        && calls.surface_destroy.is_some()
}

fn format(format: TexelFormat) -> sys::CUarray_format {
    use sys::CUarray_format_enum as F;
    match format.channel {
        ChannelFormat::UInt8 => F::CU_AD_FORMAT_UNSIGNED_INT8,
        ChannelFormat::UInt16 => F::CU_AD_FORMAT_UNSIGNED_INT16,
        ChannelFormat::UInt32 => F::CU_AD_FORMAT_UNSIGNED_INT32,
        ChannelFormat::Int8 => F::CU_AD_FORMAT_SIGNED_INT8,
        ChannelFormat::Int16 => F::CU_AD_FORMAT_SIGNED_INT16,
        ChannelFormat::Int32 => F::CU_AD_FORMAT_SIGNED_INT32,
        ChannelFormat::Half => F::CU_AD_FORMAT_HALF,
        _ => F::CU_AD_FORMAT_FLOAT,
    }
}

/// Creates an array.
pub(crate) fn create_array(calls: &OwnCalls, shape: &ArrayShape) -> (c_int, u64) {
    let Some(create) = calls.array_create else { return (NO_SYMBOL, 0) };
    let description = CUDA_ARRAY3D_DESCRIPTOR {
        Width: shape.width,
        Height: shape.height,
        Depth: shape.depth,
        Format: format(shape.format),
        NumChannels: shape.format.channels(),
        Flags: shape.flags(),
    };
    let mut array: Handle = 0;
    // SAFETY: the handle is written before the call returns, which reads the description.
    let code = unsafe { create(&mut array, &description) };
    (code, array as u64)
}

fn of_array(array: u64) -> CUDA_RESOURCE_DESC {
    // SAFETY: a description of zeros is one of an array; its reserved words are zero.
    let mut description: CUDA_RESOURCE_DESC = unsafe { std::mem::zeroed() };
    description.resType = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
    description.res.array.hArray = array as sys::CUarray;
    description
}

fn resource_of(resource: &TextureResource) -> Option<CUDA_RESOURCE_DESC> {
    let mut description = of_array(0);
    match *resource {
        TextureResource::Array { array, .. } => return Some(of_array(array)),
        TextureResource::Linear { address, bytes, format: texel } => {
            description.resType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR;
            description.res.linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
                devPtr: address,
                format: format(texel),
                numChannels: texel.channels(),
                sizeInBytes: bytes,
            };
        }
        TextureResource::Pitched { address, width, height, pitch, format: texel } => {
            description.resType = CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
            description.res.pitch2D = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
                devPtr: address,
                format: format(texel),
                numChannels: texel.channels(),
                width,
                height,
                pitchInBytes: pitch,
            };
        }
        _ => return None,
    }
    Some(description)
}

/// Creates a texture object.
pub(crate) fn create_texture(
    calls: &OwnCalls,
    resource: &TextureResource,
    sampling: &Sampling,
) -> (c_int, u64) {
    use sys::{CUaddress_mode_enum as A, CUfilter_mode_enum as F};
    let (Some(create), Some(resource)) = (calls.texture_create, resource_of(resource)) else {
        return (NO_SYMBOL, 0);
    };
    // SAFETY: zeros are a description: points, wrapped, no mipmaps, a border of zeros.
    let mut texture: CUDA_TEXTURE_DESC = unsafe { std::mem::zeroed() };
    texture.addressMode = sampling.address.map(|mode| match mode {
        AddressMode::Wrap => A::CU_TR_ADDRESS_MODE_WRAP,
        AddressMode::Mirror => A::CU_TR_ADDRESS_MODE_MIRROR,
        AddressMode::Border => A::CU_TR_ADDRESS_MODE_BORDER,
        _ => A::CU_TR_ADDRESS_MODE_CLAMP,
    });
    texture.filterMode = match sampling.linear {
        true => F::CU_TR_FILTER_MODE_LINEAR,
        false => F::CU_TR_FILTER_MODE_POINT,
    };
    texture.flags = sampling.flags();
    let mut object = 0;
    // SAFETY: the object is written before the call returns, which reads the descriptions.
    let code = unsafe { create(&mut object, &resource, &texture, std::ptr::null()) };
    (code, object)
}

/// Creates a surface object over an array.
pub(crate) fn create_surface(calls: &OwnCalls, array: u64) -> (c_int, u64) {
    let Some(create) = calls.surface_create else { return (NO_SYMBOL, 0) };
    let mut object = 0;
    // SAFETY: as for textures.
    let code = unsafe { create(&mut object, &of_array(array)) };
    (code, object)
}

/// Ends what one of the functions above created.
///
/// # Safety
/// The handle is one of that kind, and nothing uses it.
pub(crate) unsafe fn destroy(calls: &OwnCalls, kind: TextureHandle, handle: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            TextureHandle::Array => {
                calls.array_destroy.map_or(NO_SYMBOL, |destroy| destroy(handle as Handle))
            }
            TextureHandle::Texture => {
                calls.texture_destroy.map_or(NO_SYMBOL, |destroy| destroy(handle))
            }
            _ => calls.surface_destroy.map_or(NO_SYMBOL, |destroy| destroy(handle)),
        }
    }
}

//! Arrays for textures, texture objects and surface objects: the descriptions for both vendors'
//! drivers, and the required functions and device features.

use super::calls::Handle;
use super::context::Context;
use super::vendor::{NO_SYMBOL, optional};
use hal::error::{Error, Result};
use hal::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use std::ffi::{c_int, c_uint};

/// The shape of an array: `CUDA_ARRAY3D_DESCRIPTOR` and `HIP_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ArrayDescription {
    /// The number of texels per row.
    pub width: usize,
    /// The number of rows; 0 for an array with one axis.
    pub height: usize,
    /// The number of slices or layers; 0 for an array without them.
    pub depth: usize,
    /// The type of a channel.
    pub format: c_uint,
    /// The number of channels per texel.
    pub channels: c_uint,
    /// The uses of the array.
    pub flags: c_uint,
}

/// The resource of an object: the common first fields of `CUDA_RESOURCE_DESC` and
/// `HIP_RESOURCE_DESC`, which contain unions. For an array, also the first fields of
/// `hipResourceDesc`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ResourceDescription {
    /// 0: an array, 2: linear memory, 3: pitched memory.
    pub kind: c_uint,
    /// The array's handle, or the memory's address.
    pub object: u64,
    /// The type of a channel, for memory.
    pub format: c_uint,
    /// The number of channels per texel, for memory.
    pub channels: c_uint,
    /// For linear memory, its bytes; for pitched memory, the texels per row, the rows, and the row
    /// pitch in bytes.
    pub extent: [usize; 3],
    /// Zeros.
    pub reserved: [u64; 11],
    /// 0.
    pub flags: c_uint,
}

/// The sampling of a texture: `CUDA_TEXTURE_DESC` and `HIP_TEXTURE_DESC`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TextureDescription {
    /// The modes for reads out of bounds, along x, y and z.
    pub address: [c_uint; 3],
    /// 1 for interpolation.
    pub filter: c_uint,
    /// The flags of [`Sampling::flags`].
    pub flags: c_uint,
    /// 0.
    pub anisotropy: c_uint,
    /// Zeros: mipmaps are not supported.
    pub mipmaps: [u32; 4],
    /// The value of reads out of bounds with `AddressMode::Border`.
    pub border: [f32; 4],
    /// Zeros.
    pub reserved: [c_int; 12],
}

/// Another view of an array's texels: `CUDA_RESOURCE_VIEW_DESC` and `HIP_RESOURCE_VIEW_DESC`. It is
/// not used: a null pointer is passed.
#[derive(Debug)]
#[repr(C)]
pub struct ViewDescription([u64; 14]);

impl ArrayDescription {
    pub(super) fn of(shape: &ArrayShape) -> ArrayDescription {
        ArrayDescription {
            width: shape.width,
            height: shape.height,
            depth: shape.depth,
            format: shape.format.channel.number(),
            channels: shape.format.channels(),
            flags: shape.flags(),
        }
    }
}

impl ResourceDescription {
    fn of_array(array: u64) -> ResourceDescription {
        ResourceDescription { object: array, ..ResourceDescription::default() }
    }

    fn of(resource: &TextureResource) -> ResourceDescription {
        let format = resource.format();
        let of_memory = |kind, object, extent| ResourceDescription {
            kind,
            object,
            format: format.channel.number(),
            channels: format.channels(),
            extent,
            ..ResourceDescription::default()
        };
        match *resource {
            TextureResource::Array { array, .. } => ResourceDescription::of_array(array),
            TextureResource::Linear { address, bytes, .. } => of_memory(2, address, [bytes, 0, 0]),
            TextureResource::Pitched { address, width, height, pitch, .. } => {
                of_memory(3, address, [width, height, pitch])
            }
        }
    }
}

impl TextureDescription {
    fn of(sampling: &Sampling) -> TextureDescription {
        TextureDescription {
            address: sampling.address.map(|mode| mode as c_uint),
            filter: sampling.linear.into(),
            flags: sampling.flags(),
            ..TextureDescription::default()
        }
    }
}

/// A driver's functions for textures, on a device that supports them.
pub(super) struct TextureCalls<'a> {
    context: &'a Context,
    pub(super) array_create: unsafe extern "C" fn(*mut Handle, *const ArrayDescription) -> c_int,
    array_destroy: unsafe extern "C" fn(Handle) -> c_int,
    texture_create: unsafe extern "C" fn(
        *mut u64,
        *const ResourceDescription,
        *const TextureDescription,
        *const ViewDescription,
    ) -> c_int,
    texture_destroy: unsafe extern "C" fn(u64) -> c_int,
}

impl<'a> TextureCalls<'a> {
    /// Returns the functions, for `call`, without creating a context.
    ///
    /// # Errors
    /// `Unsupported` that names a missing function, or says that the device does not have texture
    /// hardware.
    pub(super) fn of(context: &'a Context, call: &'static str) -> Result<TextureCalls<'a>> {
        let driver = &*context.driver;
        macro_rules! all {
            ($($name:ident),*) => {
                TextureCalls {
                    context,
                    $($name: driver.calls.$name.ok_or_else(|| {
                        driver.missing(call, driver.calls.names.$name)
                    })?),*
                }
            };
        }
        let calls = all!(array_create, array_destroy, texture_create, texture_destroy);
        match driver.vendor.texture_attribute() {
            Some((attribute, name)) if context.attribute(attribute).is_ok_and(|it| it == 0) => {
                let device = format!("{}:{}", driver.vendor.name(), context.ordinal);
                let what = format!(
                    "device {device} ({}) has no hardware for textures and surfaces: {name} is 0",
                    context.architecture
                );
                Err(Error::unsupported(call, what))
            }
            _ => Ok(calls),
        }
    }

    /// Returns true if surface objects are also supported.
    pub(super) fn has_surfaces(&self) -> bool {
        let calls = &self.context.driver.calls;
        calls.surface_create.is_some() && calls.surface_destroy.is_some()
    }

    /// Creates a texture object. The context is current.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        let (resource, texture) =
            (ResourceDescription::of(resource), TextureDescription::of(sampling));
        let mut object = 0;
        // SAFETY: the object is written before the call returns, which reads the descriptions.
        let code =
            unsafe { (self.texture_create)(&mut object, &resource, &texture, std::ptr::null()) };
        self.context.check("create_texture", code)?;
        Ok(object)
    }

    /// Creates a surface object over an array. The context is current.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not support surfaces; the driver's.
    pub(super) fn create_surface(&self, array: u64) -> Result<u64> {
        let driver = &self.context.driver;
        let create = optional!(driver, surface_create, "create_surface")?;
        optional!(driver, surface_destroy, "create_surface")?;
        let mut object = 0;
        // SAFETY: as for textures.
        let code = unsafe { create(&mut object, &ResourceDescription::of_array(array)) };
        self.context.check("create_surface", code)?;
        Ok(object)
    }

    /// Destroys an array or an object. The context is current.
    ///
    /// # Safety
    /// As for [`Device::destroy_texture`](hal::Device::destroy_texture).
    pub(super) unsafe fn destroy(&self, kind: TextureHandle, handle: u64) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                TextureHandle::Array => (self.array_destroy)(handle as Handle),
                TextureHandle::Texture => (self.texture_destroy)(handle),
                TextureHandle::Surface => {
                    let destroy = self.context.driver.calls.surface_destroy;
                    destroy.map_or(NO_SYMBOL, |destroy| destroy(handle))
                }
            }
        }
    }
}

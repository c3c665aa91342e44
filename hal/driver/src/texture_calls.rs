//! The driver's functions for textures and surfaces, on a device that has the hardware.

use super::calls::Handle;
use super::context::Context;
use super::texture::{ArrayDescription, ResourceDescription, TextureDescription, ViewDescription};
use super::vendor::{NO_SYMBOL, optional};
use hal::error::{Error, Result};
use hal::texture::{Sampling, TextureHandle, TextureResource};
use std::ffi::c_int;

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

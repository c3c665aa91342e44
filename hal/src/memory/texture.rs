//! Owners of arrays, texture objects and surface objects.

use super::{drain_for_end, is_left};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::process;
use crate::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A device's handle, destroyed once, after the device's work.
struct Handle {
    device: Arc<dyn Device>,
    kind: TextureHandle,
    value: u64,
    generation: u32,
    epoch: u64,
}

impl Handle {
    fn new(device: &Arc<dyn Device>, kind: TextureHandle, value: u64) -> Handle {
        let (generation, epoch) = (process::generation(), device.epoch());
        Handle { device: device.clone(), kind, value, generation, epoch }
    }

    /// Checks that neither a reset nor a fork has invalidated the handle.
    fn check(&self, call: &'static str) -> Result<u64> {
        if self.epoch != self.device.epoch() || self.generation != process::generation() {
            let detail = "the array or object is from before a reset of the device, or a fork; create it again";
            return Err(Error::handle(call, detail));
        }
        Ok(self.value)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let same = || Handle { device: self.device.clone(), ..*self };
        if process::is_exiting() || self.check("free").is_err() || is_left(self.device.id(), same) {
            return;
        }
        let ended = drain_for_end(self.device.as_ref()).and_then(|waited| {
            // SAFETY: the handle is live and not used elsewhere, and no work is left.
            waited.and(unsafe { self.device.destroy_texture(self.kind, self.value) })
        });
        if let Err(error) = ended {
            log::warn!("freeing a texture's array or object failed: {error}");
        }
    }
}

/// An array of texels. The array is freed once it and all objects over it have been dropped and the
/// device has finished its work.
///
/// An array outlives its last handle in the program while a texture reads it:
///
/// ```
/// use gpuarray::texture::{ArrayShape, ChannelFormat, Sampling, TexelFormat};
/// use gpuarray::texture::{TextureArray, TextureObject};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let format = TexelFormat::new(ChannelFormat::Float, 1)?;
/// let array = TextureArray::new(&device, ArrayShape::new(16, 16, 0, format))?;
/// let texture = TextureObject::of_array(&array, &Sampling::default())?;
/// assert_eq!(Arc::strong_count(&array), 2);
/// # Ok(())
/// # }
/// ```
pub struct TextureArray {
    handle: Handle,
    shape: ArrayShape,
}

impl TextureArray {
    /// Allocates an array with undefined texels.
    ///
    /// # Errors
    /// As for [`ArrayShape::bytes`] and [`Device::create_array`].
    pub fn new(device: &Arc<dyn Device>, shape: ArrayShape) -> Result<Arc<TextureArray>> {
        shape.bytes()?;
        let value = device.create_array(&shape)?;
        Ok(Arc::new(TextureArray {
            handle: Handle::new(device, TextureHandle::Array, value),
            shape,
        }))
    }

    /// Returns the device's handle.
    ///
    /// # Errors
    /// `InvalidHandle` after a reset of the device, and in a forked child.
    pub fn handle(&self) -> Result<u64> {
        self.handle.check("array")
    }

    /// Returns the shape.
    pub fn shape(&self) -> &ArrayShape {
        &self.shape
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.handle.device
    }
}

impl fmt::Debug for TextureArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextureArray({:?})", self.shape)
    }
}

/// A texture object. It keeps its array or memory alive.
///
/// A kernel receives the object's number, and reads between two texels:
///
/// ```
/// use gpuarray::texture::{ArrayCopy, ArrayShape, ChannelFormat, CopySide, Sampling};
/// use gpuarray::texture::{TexelFormat, TextureArray, TextureObject};
/// use gpuarray::{DeviceArray, LaunchConfig, LoadOptions, ModuleSource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let format = TexelFormat::new(ChannelFormat::Float, 1)?;
/// let array = TextureArray::new(&device, ArrayShape::new(2, 0, 0, format))?;
/// # let texels = [1.0f32, 3.0];
/// # let side = CopySide::Array { array: array.handle()?, format, origin: [0; 3] };
/// # let address = texels.as_ptr() as u64;
/// # let source = CopySide::Memory { address, pitch: 8, slice: 8, is_host: true };
/// # let copy = ArrayCopy { destination: side, source, width: 8, height: 1, depth: 1, wait: true };
/// # // SAFETY: both sides have two texels.
/// # unsafe { device.default_stream().copy_array(&copy)? };
/// // The array has the texels 1 and 3 by now.
/// let texture = TextureObject::of_array(&array, &Sampling::default().linear(true))?;
/// let text = r#"extern "C" __global__ void read(float *to, unsigned long long texture) {
///     *to = tex1D<float>(texture, 1.0f);
/// }"#;
/// let source = ModuleSource::Source { text, name: "read.cu", options: &[] };
/// // SAFETY: the text has no variables whose initialisers would run.
/// let module = unsafe { device.load_module(&source, &LoadOptions::default())? };
/// let mut value = DeviceArray::<f32>::zeros(&device, &[1])?;
/// let (one, stream) = (LaunchConfig::linear(1, 1), device.default_stream());
/// // SAFETY: the kernel takes a pointer and the number of a texture of floats.
/// unsafe { module.kernel("read")?.launch(one, &stream, (&mut value, texture.value()))? };
/// assert_eq!(value.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
pub struct TextureObject {
    handle: Handle,
    _kept: Box<dyn Any + Send + Sync>,
}

impl TextureObject {
    /// Creates a texture object over an array.
    ///
    /// # Errors
    /// As for [`TextureResource::check`] and [`Device::create_texture`].
    pub fn of_array(array: &Arc<TextureArray>, sampling: &Sampling) -> Result<TextureObject> {
        let shape = array.shape();
        let (array_handle, axes) = (array.handle()?, shape.axes());
        let resource = TextureResource::Array { array: array_handle, axes, format: shape.format };
        // SAFETY: the array is live, and the object keeps it.
        unsafe { TextureObject::new(array.device(), &resource, sampling, Box::new(array.clone())) }
    }

    /// Creates a texture object that keeps `kept` alive.
    ///
    /// # Errors
    /// As for [`TextureResource::check`] and [`Device::create_texture`].
    ///
    /// # Safety
    /// The memory or array that the resource names stays allocated while `kept` lives.
    pub unsafe fn new(
        device: &Arc<dyn Device>,
        resource: &TextureResource,
        sampling: &Sampling,
        kept: Box<dyn Any + Send + Sync>,
    ) -> Result<TextureObject> {
        resource.check(sampling)?;
        // SAFETY: the caller's promise.
        let value = unsafe { device.create_texture(resource, sampling)? };
        Ok(TextureObject {
            handle: Handle::new(device, TextureHandle::Texture, value),
            _kept: kept,
        })
    }

    /// Returns the number that kernels use for the object (`cudaTextureObject_t`).
    pub fn value(&self) -> u64 {
        self.handle.value
    }
}

impl fmt::Debug for TextureObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextureObject({:#x})", self.value())
    }
}

/// A surface object. It keeps its array alive.
///
/// A surface needs an array that was created for surfaces:
///
/// ```
/// use gpuarray::texture::{ArrayShape, ChannelFormat, SurfaceObject, TexelFormat, TextureArray};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let shape = ArrayShape::new(16, 16, 0, TexelFormat::new(ChannelFormat::Float, 1)?);
/// let array = TextureArray::new(&device, shape.surface(true))?;
/// // A kernel is given `value()`, its `cudaSurfaceObject_t`.
/// assert_ne!(SurfaceObject::new(&array)?.value(), 0);
/// assert!(SurfaceObject::new(&TextureArray::new(&device, shape)?).is_err());
/// # Ok(())
/// # }
/// ```
pub struct SurfaceObject {
    handle: Handle,
    _array: Arc<TextureArray>,
}

impl SurfaceObject {
    /// Creates a surface object over an array.
    ///
    /// # Errors
    /// `InvalidArgument` for an array that was not created for surfaces; else as for
    /// [`Device::create_surface`].
    pub fn new(array: &Arc<TextureArray>) -> Result<SurfaceObject> {
        if !array.shape().surface {
            let detail = "the array was made without the flag SURFACE_LDST; surfaces need it";
            return Err(Error::invalid("create_surface", detail));
        }
        let device = array.device();
        // SAFETY: the array is live, and the object keeps it.
        let value = unsafe { device.create_surface(array.handle()?)? };
        let handle = Handle::new(device, TextureHandle::Surface, value);
        Ok(SurfaceObject { handle, _array: array.clone() })
    }

    /// Returns the number that kernels use for the object (`cudaSurfaceObject_t`).
    pub fn value(&self) -> u64 {
        self.handle.value
    }
}

impl fmt::Debug for SurfaceObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SurfaceObject({:#x})", self.value())
    }
}

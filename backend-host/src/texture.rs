//! Texture arrays, and the objects through which kernels read and write them.
//!
//! Texels are stored row by row in plain device memory. A handle is the address of a description. The device
//! tracks all descriptions, so that no other number is accepted as a handle.

use crate::config::DEVICE;
use crate::memory::Memory;
use hal::process::ProcessMutex;
use hal::texture::{ArrayCopy, ArrayShape, CopySide, Sampling, TextureHandle, TextureResource};
use hal::{Direction, Error, Result, Transfer};
use host_executor::Texture;
use std::collections::HashMap;

/// The alignment of addresses of texture memory (`CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`). Every allocation
/// has it.
pub(crate) const ALIGNMENT: u64 = 64;

/// A description that kernels read, and its kind.
#[derive(Debug)]
struct Described {
    kind: TextureHandle,
    texture: Box<Texture>,
    /// The size of an array's texels, in bytes.
    bytes: usize,
}

/// All descriptions, by handle.
#[derive(Debug, Default)]
pub(crate) struct Textures(ProcessMutex<HashMap<u64, Described>>);

impl Textures {
    fn add(&self, kind: TextureHandle, texture: Texture, bytes: usize) -> u64 {
        let texture = Box::new(texture);
        let handle = std::ptr::from_ref(&*texture) as u64;
        self.0.lock().insert(handle, Described { kind, texture, bytes });
        handle
    }

    /// Returns the start and size in bytes of the description that contains an address. Kernels read these.
    pub(crate) fn object(&self, address: u64) -> Option<(u64, usize)> {
        let known = self.0.lock();
        let is_in = |start: u64| address.wrapping_sub(start) < size_of::<Texture>() as u64;
        let mut starts = known.values().map(|it| std::ptr::from_ref(&*it.texture) as u64);
        starts.find(|start| is_in(*start)).map(|start| (start, size_of::<Texture>()))
    }

    /// Returns the description of an array.
    fn array(&self, call: &'static str, handle: u64) -> Result<Texture> {
        let known = self.0.lock();
        let found = known.get(&handle).filter(|it| it.kind == TextureHandle::Array);
        found.map(|it| *it.texture).ok_or_else(|| no_such(call, TextureHandle::Array, handle))
    }

    /// Adds an array of `bytes` bytes at `texels`.
    pub(crate) fn create_array(&self, shape: &ArrayShape, texels: u64, bytes: usize) -> u64 {
        let [width, height, slices] = shape.extents().map(|extent| extent as u64);
        let row_pitch = width * shape.format.bytes() as u64;
        let texture = Texture {
            texels,
            width,
            height,
            slices,
            row_pitch,
            slice_pitch: row_pitch * height,
            format: shape.format.channel.number(),
            channels: shape.format.channels(),
            address: [0; 3],
            linear: 0,
            normalized: 0,
            fractions: 0,
        };
        self.add(TextureHandle::Array, texture, bytes)
    }

    /// Adds a texture object. The device has checked its memory.
    pub(crate) fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        let format = resource.format();
        let in_memory = |texels, width: usize, height: usize, pitch: usize| Texture {
            texels,
            width: width as u64,
            height: height as u64,
            slices: 1,
            row_pitch: pitch as u64,
            slice_pitch: (pitch * height) as u64,
            format: format.channel.number(),
            channels: format.channels(),
            address: [0; 3],
            linear: 0,
            normalized: 0,
            fractions: 0,
        };
        let texels = match *resource {
            TextureResource::Array { array, .. } => self.array("create_texture", array)?,
            TextureResource::Linear { address, bytes, format } => {
                in_memory(address, bytes / format.bytes(), 1, bytes)
            }
            TextureResource::Pitched { address, width, height, pitch, .. } => {
                in_memory(address, width, height, pitch)
            }
        };
        let texture = Texture {
            address: sampling.address.map(|mode| mode as u32),
            linear: sampling.linear.into(),
            normalized: sampling.normalized.into(),
            fractions: (!sampling.as_integer).into(),
            ..texels
        };
        Ok(self.add(TextureHandle::Texture, texture, 0))
    }

    /// Creates a surface object.
    pub(crate) fn create_surface(&self, array: u64) -> Result<u64> {
        let texture = self.array("create_surface", array)?;
        Ok(self.add(TextureHandle::Surface, texture, 0))
    }

    /// Frees an array, or destroys an object.
    ///
    /// # Safety
    /// No pending work uses it.
    pub(crate) unsafe fn destroy(
        &self,
        memory: &Memory,
        kind: TextureHandle,
        handle: u64,
    ) -> Result<()> {
        let mut known = self.0.lock();
        if known.get(&handle).is_none_or(|it| it.kind != kind) {
            return Err(no_such("destroy_texture", kind, handle));
        }
        let ended = known.remove(&handle);
        drop(known);
        if let Some(Described { kind: TextureHandle::Array, texture, bytes }) = ended {
            // SAFETY: the array owns the memory, which is freed once; the caller promises that nothing uses it.
            unsafe { memory.free(texture.texels, bytes) };
        }
        Ok(())
    }

    /// Converts a copy from or to arrays into a copy between addresses.
    pub(crate) fn transfer(&self, copy: &ArrayCopy) -> Result<Transfer> {
        let side = |side: &CopySide| -> Result<(u64, usize, usize, bool)> {
            Ok(match *side {
                CopySide::Memory { address, pitch, slice, is_host } => {
                    (address, pitch, slice, is_host)
                }
                CopySide::Array { array, origin: [x, y, z], .. } => {
                    let array = self.array("copy_array", array)?;
                    let (pitch, slice) = (array.row_pitch as usize, array.slice_pitch as usize);
                    (array.texels + (x + y * pitch + z * slice) as u64, pitch, slice, false)
                }
            })
        };
        let (destination, destination_pitch, destination_slice, to_host) = side(&copy.destination)?;
        let (source, source_pitch, source_slice, from_host) = side(&copy.source)?;
        let direction = match (from_host, to_host) {
            (true, _) => Direction::HostToDevice,
            (false, true) => Direction::DeviceToHost,
            (false, false) => Direction::DeviceToDevice,
        };
        let &ArrayCopy { width, height, depth, wait, .. } = copy;
        Ok(Transfer {
            direction,
            destination,
            source,
            width,
            height,
            depth,
            destination_pitch,
            source_pitch,
            destination_slice,
            source_slice,
            wait,
        })
    }
}

fn no_such(call: &'static str, kind: TextureHandle, handle: u64) -> Error {
    Error::handle(call, format!("device {DEVICE} has no handle {handle:#x} of kind {kind:?}"))
}

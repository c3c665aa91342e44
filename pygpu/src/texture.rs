//! Arrays for textures, texture objects and surface objects, and their bindings in modules.

use crate::copies::DeviceAddress;
use crate::current_device::current_device;
use crate::deferred_drop::DeferredDrop;
use crate::errors::{OrRaise, to_python};
use gpuarray::memory::{Access, GraphObject};
use gpuarray::texture::{
    AddressMode, ArrayShape, ChannelFormat, Sampling, SurfaceObject, TexelFormat, TextureArray,
    TextureObject, TextureResource,
};
use gpuarray::{Device, Direction, Error, Feature, Module, Result, Stream, Transfer};
use hal::poison::Unpoisoned as _;
use pyo3::prelude::*;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Returns true if the current device supports arrays for textures.
#[pyfunction]
pub(crate) fn has_textures() -> PyResult<bool> {
    Ok(current_device()?.device.features().contains(Feature::Textures))
}

fn invalid(call: &'static str, what: String) -> PyErr {
    to_python(Error::invalid(call, what))
}

fn texel_format(format: u32, channels: u32) -> PyResult<TexelFormat> {
    let channel = ChannelFormat::from_number(format).ok_or_else(|| {
        invalid(
            "array format",
            format!("format is {format}; allowed are the values of array_format"),
        )
    })?;
    TexelFormat::new(channel, channels).or_raise()
}

/// An array of texels on the device; `driver.Array` contains one.
#[pyclass(frozen, weakref, name = "TextureArray", module = "pygpu._core")]
pub(crate) struct PyTextureArray {
    array: DeferredDrop<Arc<TextureArray>>,
}

impl PyTextureArray {
    pub(crate) fn array(&self) -> &Arc<TextureArray> {
        &self.array
    }
}

#[pymethods]
impl PyTextureArray {
    #[new]
    fn new(
        py: Python<'_>,
        width: usize,
        height: usize,
        depth: usize,
        format: u32,
        num_channels: u32,
        flags: u32,
    ) -> PyResult<PyTextureArray> {
        let known =
            ArrayShape::LAYERED | ArrayShape::SURFACE | ArrayShape::CUBEMAP | ArrayShape::GATHER;
        if flags & !known != 0 {
            return Err(to_python(Error::unsupported(
                "Array",
                format!(
                    "flags is {flags}; allowed are combinations of 1 (layers), 2 (surfaces), 4 (cubemaps) \
                     and 8 (gathering)"
                ),
            )));
        }
        let device = current_device()?.device;
        let shape = ArrayShape::new(width, height, depth, texel_format(format, num_channels)?)
            .layered(flags & ArrayShape::LAYERED != 0)
            .surface(flags & ArrayShape::SURFACE != 0)
            .cubemap(flags & ArrayShape::CUBEMAP != 0)
            .gather(flags & ArrayShape::GATHER != 0);
        let array = py.detach(|| TextureArray::new(&device, shape)).or_raise()?;
        Ok(PyTextureArray { array: DeferredDrop::new(&device, array) })
    }

    /// Returns the driver's handle.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        self.array.handle().or_raise()
    }
}

/// The sampling of a texture: address modes along x, y and z, filter mode, flags.
type Modes = ([u32; 3], u32, u32);

fn sampling((modes, filter, flags): Modes) -> PyResult<Sampling> {
    let mut address = [AddressMode::Clamp; 3];
    for (mode, number) in address.iter_mut().zip(modes) {
        *mode = AddressMode::from_number(number).ok_or_else(|| {
            invalid(
                "address mode",
                format!("am is {number}; allowed are the values of address_mode"),
            )
        })?;
    }
    if filter > 1 {
        return Err(invalid("filter mode", format!("mode is {filter}; allowed are 0 and 1")));
    }
    if flags & !(Sampling::READ_AS_INTEGER | Sampling::NORMALIZED) != 0 {
        return Err(to_python(Error::unsupported(
            "texture flags",
            format!(
                "flags is {flags}; allowed are combinations of 1 (reading as integers) and 2 \
                 (normalized coordinates)"
            ),
        )));
    }
    Ok(Sampling::default()
        .address(address)
        .linear(filter == 1)
        .normalized(flags & Sampling::NORMALIZED != 0)
        .as_integer(flags & Sampling::READ_AS_INTEGER != 0))
}

/// The object that a module's variable refers to: a texture object or a surface object.
#[pyclass(frozen, weakref, name = "TextureObject", module = "pygpu._core")]
pub(crate) struct PyTextureObject {
    value: u64,
    object: Arc<dyn Any + Send + Sync>,
}

impl PyTextureObject {
    fn new<T: Any + Send + Sync>(device: &Arc<dyn Device>, value: u64, object: T) -> Self {
        PyTextureObject { value, object: Arc::new(DeferredDrop::new(device, object)) }
    }
}

#[pymethods]
impl PyTextureObject {
    /// The number that kernels use for the object.
    #[getter]
    fn value(&self) -> u64 {
        self.value
    }
}

/// Creates a texture object over an array.
#[pyfunction]
pub(crate) fn texture_of_array(
    array: &Bound<'_, PyTextureArray>,
    modes: Modes,
) -> PyResult<PyTextureObject> {
    let (array, sampling) = (array.get().array(), sampling(modes)?);
    let object = TextureObject::of_array(array, &sampling).or_raise()?;
    Ok(PyTextureObject::new(array.device(), object.value(), object))
}

/// Creates a texture object over device memory. `extent` is its bytes, or the texels per row with the
/// number of rows and the row pitch in bytes.
#[pyfunction]
pub(crate) fn texture_of_memory(
    memory: &Bound<'_, PyAny>,
    offset: usize,
    extent: (usize, Option<(usize, usize)>),
    format: (u32, u32),
    modes: Modes,
) -> PyResult<PyTextureObject> {
    let device = current_device()?.device;
    let format = texel_format(format.0, format.1)?;
    let resource = |address| match extent {
        (bytes, None) => TextureResource::Linear { address, bytes, format },
        (width, Some((height, pitch))) => {
            TextureResource::Pitched { address, width, height, pitch, format }
        }
    };
    let bytes = resource(0).range().map_or(0, |(_, bytes)| bytes);
    let memory = DeviceAddress::new("devptr", memory, bytes.saturating_sub(offset))?;
    let sampling = sampling(modes)?;
    let kept = Box::new(memory.access(Access::Read).map(|(memory, _)| memory.clone()));
    let resource = resource(memory.address - offset as u64);
    // SAFETY: the object keeps the allocation; the program is responsible for raw addresses.
    let object = unsafe { TextureObject::new(&device, &resource, &sampling, kept) }.or_raise()?;
    Ok(PyTextureObject::new(&device, object.value(), object))
}

/// Creates a surface object over an array.
#[pyfunction]
pub(crate) fn surface_of_array(array: &Bound<'_, PyTextureArray>) -> PyResult<PyTextureObject> {
    let array = array.get().array();
    let object = SurfaceObject::new(array).or_raise()?;
    Ok(PyTextureObject::new(array.device(), object.value(), object))
}

/// The objects currently bound to the variables of a module. The module and its kernels keep it alive.
#[derive(Default)]
pub(crate) struct Bindings {
    bound: Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>,
    /// The reasons why variables cannot be read with their current settings.
    unreadable: Mutex<HashMap<String, String>>,
    /// True if there is such a variable.
    is_unreadable: AtomicBool,
}

impl Bindings {
    /// Prevents kernel launches until another object is bound to the variable.
    pub(crate) fn refuse(&self, name: &str, reason: String) {
        let mut unreadable = self.unreadable.lock().unpoisoned();
        unreadable.insert(name.to_owned(), reason);
        self.is_unreadable.store(true, Ordering::Release);
    }

    fn allow(&self, name: &str) {
        let mut unreadable = self.unreadable.lock().unpoisoned();
        unreadable.remove(name);
        self.is_unreadable.store(!unreadable.is_empty(), Ordering::Release);
    }

    /// Checks that the variables can be read with their current settings. If the stream captures, its graph
    /// keeps these bindings, including any objects bound by the time of a launch.
    pub(crate) fn prepare_launch(self: &Arc<Self>, stream: &Arc<dyn Stream>) -> Result<()> {
        if self.is_unreadable.load(Ordering::Acquire)
            && let Some((name, reason)) = self.unreadable.lock().unpoisoned().iter().next()
        {
            return Err(Error::unsupported(
                "launch",
                format!("texture reference {name}: {reason}"),
            ));
        }
        if !stream.is_capturing()? || self.bound.lock().unpoisoned().is_empty() {
            return Ok(());
        }
        let own: GraphObject = self.clone();
        stream.keep_object(&own)
    }

    /// Writes an object's number to a variable, after all work that may read the previous one.
    pub(crate) fn bind(
        &self,
        py: Python<'_>,
        module: &dyn Module,
        device: &dyn Device,
        stream: &Arc<dyn Stream>,
        name: &str,
        object: &PyTextureObject,
    ) -> PyResult<()> {
        let (address, _) = module.global(name).or_raise()?;
        let value = object.value.to_ne_bytes();
        let transfer = Transfer::linear(
            Direction::HostToDevice,
            address,
            value.as_ptr() as u64,
            value.len(),
            true,
        );
        let kept = object.object.clone();
        py.detach(|| {
            device.synchronize()?;
            // Under the lock, so that the kept object matches the variable's value even if threads compete.
            let mut bound = self.bound.lock().unpoisoned();
            // SAFETY: the variable begins with 8 bytes for the number, and the value lives until the
            // copy has been waited for.
            unsafe { stream.transfer(&transfer) }?;
            let before = bound.insert(name.to_owned(), kept);
            self.allow(name);
            drop(bound);
            drop(before);
            Ok(())
        })
        .or_raise()
    }
}

//! Implements `Device` for the host.

use crate::attributes;
use crate::compile;
use crate::config::{DEVICE, HostConfig};
use crate::device::HostDevice;
use crate::event::HostEvent;
use crate::module::HostModule;
use crate::sharing::handle::Kind;
use crate::stream::HostStream;
use crate::texture::ALIGNMENT;
use codegen::compile::Compiled;
use hal::interruption;
use hal::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use hal::{
    Device, DeviceAttribute, DeviceId, DeviceProperties, Error, ErrorKind, Event, EventOptions,
    Feature, Features, IpcHandle, LinkInput, LoadOptions, MemoryInfo, Module, ModuleSource,
    PinnedOptions, Result, Status, Stream, StreamOptions,
};
use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

/// The host device as programs hold it. Streams and queued work share the inner object.
#[derive(Debug)]
pub(crate) struct HostHandle(Arc<HostDevice>);

impl HostHandle {
    pub(crate) fn new(config: HostConfig) -> Arc<HostHandle> {
        Arc::new(HostHandle(Arc::new(HostDevice::new(config))))
    }

    /// Waits for all queued work and runs `work`. A handler that runs in the middle of a kernel on this thread
    /// ([`interruption`]) cannot wait for that kernel: `work` is then queued after it.
    fn behind_all(&self, work: impl FnOnce(&HostDevice) + Send + 'static) -> Result<()> {
        if interruption::is_in_kernel() {
            let (engine, device) = (self.engine(), self.0.clone());
            return engine.behind_interrupted(engine.marks(false), move || work(&device));
        }
        self.wait()?;
        work(&self.0);
        Ok(())
    }

    /// Checks that a texture can read memory.
    fn check_texels(&self, address: u64, bytes: usize) -> Result<()> {
        let refused = |what: String| Err(Error::invalid("create_texture", what));
        if !address.is_multiple_of(ALIGNMENT) {
            return refused(format!(
                "address is {address:#x}; textures need a multiple of {ALIGNMENT}"
            ));
        }
        if !self.has_memory(address, bytes) {
            return refused(format!(
                "address is {address:#x}, where device {DEVICE} has no memory of size {bytes}"
            ));
        }
        Ok(())
    }
}

impl Deref for HostHandle {
    type Target = HostDevice;

    fn deref(&self) -> &HostDevice {
        &self.0
    }
}

// SAFETY: allocations come from the system, have the requested sizes, and are tracked until they are freed.
unsafe impl Device for HostHandle {
    fn id(&self) -> DeviceId {
        self.0.id()
    }

    fn context_handle(&self) -> Result<u64> {
        Ok(Arc::as_ptr(&self.0) as u64)
    }

    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        attributes::attribute(attribute, self.multiprocessors())
    }

    fn features(&self) -> Features {
        [
            Feature::Kernels,
            Feature::HostKernels,
            Feature::KernelAttributes,
            Feature::ParameterInfo,
            Feature::CooperativeLaunch,
            Feature::Graphs,
            Feature::ManagedMemory,
            Feature::Limits,
            Feature::Textures,
            Feature::Surfaces,
        ]
        .into_iter()
        .collect::<Features>()
        .with(Feature::Sharing, cfg!(target_os = "linux"))
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let total = self.memory().capacity();
        Ok(MemoryInfo { free: total.saturating_sub(self.memory().used()), total })
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        Arc::new(HostStream::default_of(self.0.clone()))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        self.engine().captures.collect(self.graph_blocks());
        let queue = self.engine().new_queue(!options.non_blocking);
        let id = hal::stream::unique_id();
        Ok(Arc::new(HostStream::new(self.0.clone(), id, queue, !options.non_blocking)))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(HostEvent::new(options, &self.0)?))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.allocate_plain_waiting(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise; this runs after all other work.
        self.behind_all(move |device| unsafe { device.memory().free_plain(address, bytes) })
    }

    fn can_access(&self, address: u64, bytes: usize) -> bool {
        self.has_memory(address, bytes)
    }

    fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        self.allocation(address).ok_or_else(|| {
            Error::invalid(
                "address_range",
                format!("address is {address:#x}, where device {DEVICE} has no memory"),
            )
        })
    }

    fn create_array(&self, shape: &ArrayShape) -> Result<u64> {
        let bytes = shape.bytes()?;
        Ok(self.textures().create_array(shape, self.allocate_waiting(bytes)?, bytes))
    }

    unsafe fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        if let Some((address, bytes)) = resource.range() {
            self.check_texels(address, bytes)?;
        }
        self.textures().create_texture(resource, sampling)
    }

    unsafe fn create_surface(&self, array: u64) -> Result<u64> {
        self.textures().create_surface(array)
    }

    unsafe fn destroy_texture(&self, kind: TextureHandle, handle: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.textures().destroy(self.memory(), kind, handle) }
    }

    fn kept_memory(&self) -> Result<usize> {
        Ok(self.memory().kept())
    }

    fn trim_memory(&self, keep: usize) -> Result<()> {
        self.memory().trim(keep);
        Ok(())
    }

    fn allocate_pinned(&self, bytes: usize, _: PinnedOptions) -> Result<*mut u8> {
        let address = self.with_room(|memory| memory.allocate_pages(bytes))? as usize;
        self.pinned.lock().insert(address, bytes);
        Ok(address as *mut u8)
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        let address = pointer.addr();
        // Queued copies may still use the memory. A GPU's driver also waits for them.
        self.behind_all(move |device| {
            device.pinned.lock().remove(&address);
            // SAFETY: the caller's promise; this runs after all other work.
            unsafe { device.memory().free_pages(address as u64, bytes) };
        })
    }

    fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        if self.is_pinned(pointer as usize, 1) {
            return Ok(pointer as u64);
        }
        Err(Error::invalid(
            "pinned_address",
            format!("address {pointer:p} is not in page-locked memory"),
        ))
    }

    unsafe fn register_host(&self, pointer: *mut u8, bytes: usize, _: PinnedOptions) -> Result<()> {
        let start = pointer as usize;
        let end = start.checked_add(bytes).ok_or_else(|| {
            Error::overflow(
                "register_host",
                format!(
                    "bytes is {bytes}; from {start:#x} on the address space has {}",
                    usize::MAX - start
                ),
            )
        })?;
        let mut registered = self.registered.lock();
        if let Some((&other, &size)) = registered.range(..end).next_back()
            && other + size > start
        {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::host(Status::HOST_MEMORY_ALREADY_REGISTERED),
                "register_host",
                format!(
                    "the range of size {bytes} at {start:#x} overlaps a registered one of size \
                     {size} at {other:#x}"
                ),
            ));
        }
        registered.insert(start, bytes);
        Ok(())
    }

    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()> {
        self.wait()?;
        match self.registered.lock().remove(&(pointer as usize)) {
            Some(_) => Ok(()),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::host(Status::HOST_MEMORY_NOT_REGISTERED),
                "unregister_host",
                format!("no memory is registered at {:#x}", pointer as usize),
            )),
        }
    }

    unsafe fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        // SAFETY: the caller's promise.
        Ok(Arc::new(unsafe { HostModule::load(self.0.clone(), source, options)? }))
    }

    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        compile::compile(text, name, options, hal::checking::current().are_lasting())
    }

    fn compiler(&self) -> Result<String> {
        compile::name()
    }

    fn link(&self, inputs: &[LinkInput<'_>], _: &LoadOptions) -> Result<Compiled> {
        if inputs.is_empty() {
            return Err(Error::invalid("link", "inputs is empty; at least one is needed"));
        }
        Err(Error::unsupported("link", format!("device {DEVICE} does not link code")))
    }

    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        if bytes == 0 {
            return Err(Error::invalid("allocate_managed", "bytes is 0; at least 1 is needed"));
        }
        // All memory here belongs to the host. It is private: if a forked child writes to it, the child
        // changes its own copy, as with any host memory.
        self.allocate_waiting(bytes)
    }

    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        check_shares("export_memory")?;
        self.memory().segments().export("export_memory", address as usize, Kind::Memory)
    }

    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        check_shares("import_memory")?;
        let address = self.memory().segments().open("import_memory", handle, Kind::Memory)?;
        Ok(address as u64)
    }

    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        check_shares("close_imported")?;
        // SAFETY: the caller's promise.
        if unsafe { self.memory().segments().close(address as usize) } {
            return Ok(());
        }
        Err(Error::invalid(
            "close_imported",
            format!("address is {address:#x}, where no memory of another process is open"),
        ))
    }

    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        check_shares("export_event")?;
        self.id().check_same("export_event", "event", event.device_id())?;
        HostEvent::of("export_event", event)?.export()
    }

    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        check_shares("import_event")?;
        Ok(Arc::new(HostEvent::open(handle, &self.0)?))
    }

    fn limit(&self, limit: i32) -> Result<usize> {
        self.limits.get(limit)
    }

    fn set_limit(&self, limit: i32, value: usize) -> Result<()> {
        self.limits.set(limit, value)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn synchronize(&self) -> Result<()> {
        self.engine().captures.collect(self.graph_blocks());
        interruption::before_waiting("synchronize")?;
        self.engine().captures.check_device("synchronize")?;
        self.wait()?;
        if hal::memory::drain_dropped(self.id()) {
            self.wait()?;
        }
        self.engine().failures.take_any()
    }

    fn drain(&self) -> Result<()> {
        self.wait()
    }
}

/// Checks that the system supports memory shared between processes.
fn check_shares(call: &'static str) -> Result<()> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(Error::unsupported(call, "the host backend shares memory and events on Linux only"))
}

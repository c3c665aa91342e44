//! Devices of a driver.

use crate::calls::{Handle, LEGACY};
use crate::context::Context;
use crate::event::DriverEvent;
use crate::kernel::{COOPERATIVE_LAUNCH, DriverModule};
use crate::memory::pool::out_of_memory;
use crate::pages::{Block, Pages};
use crate::sharing;
use crate::state::DeviceState;
use crate::stream::DriverStream;
use crate::texture::ArrayDescription;
use crate::texture_calls::TextureCalls;
use crate::vendor::optional;
use codegen::compile::{Compilation, Compiled, compile_cached};
use hal::device::{Device, check_pitched};
use hal::error::{Error, ErrorKind, Result};
use hal::event::{Event, EventOptions};
use hal::memory::drain_dropped;
use hal::module::{LinkInput, LoadOptions, Module, ModuleSource};
use hal::properties::{
    DeviceAttribute, DeviceId, DeviceProperties, Feature, Features, IpcHandle, MemoryInfo,
    PinnedOptions,
};
use hal::status::Status;
use hal::stream::{Stream, StreamOptions};
use hal::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use std::any::Any;
use std::ffi::{c_int, c_uint};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// `CU_MEMHOSTREGISTER_PORTABLE` and `CU_MEMHOSTREGISTER_DEVICEMAP`; HIP's are the same.
const PORTABLE: c_uint = 1;
const MAPPED: c_uint = 2;

/// One GPU.
pub(super) struct DriverDevice {
    state: Arc<DeviceState>,
    context: Arc<Context>,
    properties: DeviceProperties,
    default_stream: OnceLock<Arc<dyn Stream>>,
    pages: Pages,
}

impl fmt::Debug for DriverDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DriverDevice({}, {})", self.id(), self.properties.name)
    }
}

/// Returns the device of this layer inside a trait object, if it belongs to the same driver.
pub(super) fn own<'a>(device: &'a dyn Device, context: &Context) -> Result<&'a DriverDevice> {
    match device.as_any().downcast_ref::<DriverDevice>() {
        Some(own) if Arc::ptr_eq(&own.context.driver, &context.driver) => Ok(own),
        _ => {
            let (there, here) = (device.id(), context.device_id());
            let (there, here) = (there.beside(&here), here.beside(&there));
            let detail = format!("device {there} is of another backend or opening than {here}");
            Err(Error::invalid("device", detail))
        }
    }
}

impl DriverDevice {
    pub(super) fn new(state: Arc<DeviceState>, properties: DeviceProperties) -> DriverDevice {
        let context = state.context.clone();
        let pages = Pages::new(&context);
        DriverDevice { state, context, properties, default_stream: OnceLock::new(), pages }
    }

    pub(super) fn state(&self) -> &Arc<DeviceState> {
        &self.state
    }

    /// Returns the result of an allocation. Tries again after releasing unused memory.
    fn allocate_with(
        &self,
        name: &'static str,
        bytes: usize,
        mut call: impl FnMut() -> c_int,
    ) -> Result<()> {
        let context = &self.context;
        let is_short = |code| context.driver.is_out_of_memory(code);
        let scope = context.enter()?;
        let code = context.outside_captures(&mut call);
        if !is_short(code) {
            return context.check(name, code);
        }
        drop(scope);
        self.state.trim(0)?;
        let _scope = context.enter()?;
        match context.outside_captures(&mut call) {
            code if is_short(code) => Err(out_of_memory(context, bytes, code)),
            code => context.check(name, code),
        }
    }

    /// Unlocks and frees a block that is no longer used.
    fn unlock(&self, block: Block) -> Result<()> {
        let context = &self.context;
        let entered = context.enter();
        // Checked after entering, because another library may have reset the device.
        if block.epoch == context.epoch() {
            let _scope = entered?;
            let start = std::ptr::with_exposed_provenance_mut(block.start);
            // SAFETY: the block was registered in this epoch, once.
            let unregister = || unsafe { (context.driver.calls.unregister_host)(start) };
            match context.outside_captures(unregister) {
                Status::HOST_MEMORY_NOT_REGISTERED => {}
                // After a lasting failure, the driver continues to use the block.
                code => context.check("free_pinned", code)?,
            }
        }
        // SAFETY: the driver or a reset has ended the page-locking, and the block is no longer used.
        unsafe { block.free() };
        Ok(())
    }

    fn pinned_flags(options: PinnedOptions) -> c_uint {
        let flag = |wanted, flag| if wanted { flag } else { 0 };
        flag(options.portable, PORTABLE) | flag(options.mapped, MAPPED)
    }
}

// SAFETY: allocations come from the driver and have at least the requested size; a reset raises the epoch.
unsafe impl Device for DriverDevice {
    fn id(&self) -> DeviceId {
        self.context.device_id()
    }

    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        self.context.attribute(attribute)
    }

    fn features(&self) -> Features {
        features(&self.state)
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let _scope = self.context.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both are written before the call returns.
        let code = unsafe { (self.context.driver.calls.memory_info)(&mut free, &mut total) };
        self.context.check("memory_info", code)?;
        Ok(MemoryInfo { free: free + self.state.memory.pool.unused(), total })
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        let make = || Arc::new(DriverStream::default_of(&self.state)) as Arc<dyn Stream>;
        self.default_stream.get_or_init(make).clone()
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        let stream = Arc::new(DriverStream::create(&self.state, options)?);
        self.state.open_captures.collect();
        Ok(stream)
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(DriverEvent::new(&self.context, options)?))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        self.allocate_with("allocate", bytes, || unsafe {
            (self.context.driver.calls.allocate)(&mut address, bytes)
        })?;
        Ok(address)
    }

    unsafe fn free(&self, address: u64, _bytes: usize) -> Result<()> {
        let context = &self.context;
        let _scope = context.enter()?;
        self.state.managed.remove(address);
        // SAFETY: the caller's promise.
        let code = context.outside_captures(|| unsafe { (context.driver.calls.free)(address) });
        context.check("free", code)
    }

    unsafe fn free_detached(&self, address: u64) {
        self.state.managed.free_detached(address);
    }

    fn can_access(&self, address: u64, bytes: usize) -> bool {
        let Ok(_scope) = self.context.enter() else { return false };
        if let Ok((start, size)) = self.context.address_range(address) {
            return address.checked_add(bytes as u64).is_some_and(|end| end - start <= size as u64);
        }
        // The driver does not report a range for host memory that is mapped into the device.
        self.context.driver.vendor.knows(address)
    }

    fn allocate_pinned(&self, bytes: usize, _options: PinnedOptions) -> Result<*mut u8> {
        let pages = &self.pages;
        if let Some(part) = pages.take(bytes) {
            return Ok(part);
        }
        let mut made = None;
        self.allocate_with("allocate_pinned", bytes, || {
            let Some(block) = Block::allocate(bytes, &self.context) else {
                return Status::OUT_OF_MEMORY;
            };
            let start = std::ptr::with_exposed_provenance_mut(block.start);
            // SAFETY: the block stays allocated until it is unregistered, by this layer or by a reset.
            let code = unsafe {
                (self.context.driver.calls.register_host)(start, block.bytes, PORTABLE | MAPPED)
            };
            match code {
                Status::SUCCESS => made = Some(block),
                // SAFETY: the driver did not accept the block, and nothing else refers to it.
                _ => unsafe { block.free() },
            }
            code
        })?;
        made.map(|block| pages.add(block, bytes)).ok_or_else(|| {
            Error::invalid("allocate_pinned", "the driver did not page-lock the memory")
        })
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        let context = &self.context;
        let is_locked = |block: Block| block.epoch == context.epoch();
        if self.pages.block_of(pointer).is_some_and(is_locked) {
            // Queued copies may still use the memory. After a loss of the device, or a reset by another
            // library, no copies are left.
            match context.enter().and_then(|_scope| self.state.memory.pool.drain()) {
                Err(error)
                    if error.kind() != ErrorKind::DeviceLost
                        && self.pages.block_of(pointer).is_some_and(is_locked) =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        let Some(block) = self.pages.give_back(pointer, bytes) else { return Ok(()) };
        self.unlock(block)
    }

    fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        let _scope = self.context.enter()?;
        if let Some(block) = self.pages.block_of(pointer) {
            self.context.check_epoch(block.epoch)?;
        }
        let mut address = 0;
        // SAFETY: the driver looks the pointer up; the result is written before it returns.
        let code =
            unsafe { (self.context.driver.calls.pinned_address)(&mut address, pointer.cast(), 0) };
        self.context.check("pinned_address", code)?;
        Ok(address)
    }

    unsafe fn register_host(
        &self,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<()> {
        let _scope = self.context.enter()?;
        let flags = Self::pinned_flags(options);
        // SAFETY: the caller's promise.
        let register =
            || unsafe { (self.context.driver.calls.register_host)(pointer.cast(), bytes, flags) };
        self.context.check("register_host", self.context.outside_captures(register))
    }

    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()> {
        let _scope = self.context.enter()?;
        // SAFETY: the caller's promise.
        let unregister = || unsafe { (self.context.driver.calls.unregister_host)(pointer.cast()) };
        self.context.check("unregister_host", self.context.outside_captures(unregister))
    }

    unsafe fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        Ok(Arc::new(DriverModule::load(&self.context, source, options)?))
    }

    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        let target = self.context.target()?;
        let headers = true;
        let compilation =
            Compilation { text, name, target, options, headers, ..Compilation::default() };
        let driver = &self.context.driver;
        compile_cached(driver.vendor.compiler()?.as_ref(), driver.cache()?, &compilation)
    }

    fn compiler(&self) -> Result<String> {
        self.context.driver.vendor.compiler()?.identity(self.context.target()?)
    }

    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        if inputs.is_empty() {
            return Err(Error::invalid("link", "inputs is empty; at least one is needed"));
        }
        let _scope = self.context.enter()?;
        self.context.driver.vendor.link(inputs, options)
    }

    fn synchronize(&self) -> Result<()> {
        {
            let _scope = self.context.enter()?;
            self.state.open_captures.collect();
            // SAFETY: the call does not take arguments.
            let code = unsafe { (self.context.driver.calls.synchronize)() };
            self.context.check("synchronize", code)?;
        }
        drain_dropped(self.id());
        self.context.failures.take_any()
    }

    fn drain(&self) -> Result<()> {
        let _scope = self.context.enter()?;
        self.state.memory.pool.drain()
    }

    fn shares_streams(&self) -> bool {
        true
    }

    unsafe fn stream_from_handle(&self, handle: u64) -> Result<Arc<dyn Stream>> {
        if [0, LEGACY].contains(&(handle as Handle)) {
            return Ok(self.default_stream());
        }
        Ok(Arc::new(DriverStream::external(&self.state, handle)?))
    }

    unsafe fn event_from_handle(&self, handle: u64) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(DriverEvent::external(&self.context, handle as Handle)))
    }

    fn priority_range(&self) -> Result<(i32, i32)> {
        let read = optional!(self.context.driver, priority_range, "priority_range")?;
        let _scope = self.context.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: both are written before the call returns.
        self.context.check("priority_range", unsafe { read(&mut least, &mut greatest) })?;
        Ok((least, greatest))
    }

    fn allocate_pitched(
        &self,
        width: usize,
        height: usize,
        element: usize,
    ) -> Result<(u64, usize)> {
        let bytes = check_pitched(width, height, element)?;
        let allocate = optional!(self.context.driver, allocate_pitched, "allocate_pitched")?;
        let (mut address, mut pitch) = (0, 0);
        // SAFETY: both are written before the call returns.
        self.allocate_with("allocate_pitched", bytes, || unsafe {
            allocate(&mut address, &mut pitch, width, height, element as c_uint)
        })?;
        Ok((address, pitch))
    }

    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        let allocate = optional!(self.context.driver, allocate_managed, "allocate_managed")?;
        let mut address = 0;
        // SAFETY: the address is written before the call returns; 1 is "every stream".
        self.allocate_with("allocate_managed", bytes, || unsafe {
            allocate(&mut address, bytes, 1)
        })?;
        self.state.managed.add(address, bytes);
        Ok(address)
    }

    fn create_array(&self, shape: &ArrayShape) -> Result<u64> {
        let (bytes, calls) = (shape.bytes()?, TextureCalls::of(&self.context, "create_array")?);
        self.context.driver.vendor.check_array(shape)?;
        let (description, mut array) = (ArrayDescription::of(shape), 0);
        // SAFETY: the handle is written before the call returns, which reads the description.
        self.allocate_with("create_array", bytes, || unsafe {
            (calls.array_create)(&mut array, &description)
        })?;
        Ok(array as u64)
    }

    unsafe fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        let calls = TextureCalls::of(&self.context, "create_texture")?;
        self.context.driver.vendor.check_texture(resource, sampling)?;
        let _scope = self.context.enter()?;
        calls.create_texture(resource, sampling)
    }

    unsafe fn create_surface(&self, array: u64) -> Result<u64> {
        let calls = TextureCalls::of(&self.context, "create_surface")?;
        let _scope = self.context.enter()?;
        calls.create_surface(array)
    }

    unsafe fn destroy_texture(&self, kind: TextureHandle, handle: u64) -> Result<()> {
        let calls = TextureCalls::of(&self.context, "destroy_texture")?;
        let _scope = self.context.enter()?;
        // SAFETY: the caller's promise.
        let destroy = || unsafe { calls.destroy(kind, handle) };
        self.context.check("destroy_texture", self.context.outside_captures(destroy))
    }

    fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let _scope = self.context.enter()?;
        self.context.address_range(address)
    }

    fn can_access_peer(&self, other: &dyn Device) -> Result<bool> {
        match own(other, &self.context) {
            Ok(peer) => sharing::can_access_peer(&self.context, &peer.context),
            Err(_) => Ok(false),
        }
    }

    fn enable_peer_access(&self, other: &dyn Device) -> Result<()> {
        sharing::set_peer_access(&self.context, own(other, &self.context)?.state(), true)
    }

    fn disable_peer_access(&self, other: &dyn Device) -> Result<()> {
        sharing::set_peer_access(&self.context, own(other, &self.context)?.state(), false)
    }

    unsafe fn transfer_peer(
        &self,
        stream: &dyn Stream,
        destination: u64,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        let (to, from) = (&self.context, &own(source_device, &self.context)?.context);
        let stream = DriverStream::of_any_device(stream, to)?;
        // SAFETY: the caller's promise.
        unsafe { stream.transfer_between((destination, to), (source, from), bytes) }
    }

    fn kept_memory(&self) -> Result<usize> {
        let _scope = self.context.enter()?;
        Ok(self.state.memory.kept())
    }

    fn trim_memory(&self, keep: usize) -> Result<()> {
        self.state.trim(keep)?;
        self.pages.take_empty().into_iter().try_for_each(|block| self.unlock(block))
    }

    fn set_release_threshold(&self, bytes: usize) -> Result<()> {
        self.state.memory.pool.set_threshold(bytes as u64)
    }

    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        sharing::export_memory(&self.context, address)
    }

    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        sharing::import_memory(&self.context, handle)
    }

    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        let close = optional!(self.context.driver, ipc_close_memory, "close_imported")?;
        let _scope = self.context.enter()?;
        // SAFETY: the caller's promise.
        self.context.check("close_imported", unsafe { close(address) })
    }

    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        sharing::export_event(&self.context, event)
    }

    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        sharing::import_event(&self.context, handle)
    }

    fn limit(&self, limit: i32) -> Result<usize> {
        let read = optional!(self.context.driver, limit, "limit")?;
        let _scope = self.context.enter()?;
        let mut value = 0;
        // SAFETY: the result is written before the call returns.
        self.context.check("limit", unsafe { read(&mut value, limit) })?;
        Ok(value)
    }

    fn set_limit(&self, limit: i32, value: usize) -> Result<()> {
        let set = optional!(self.context.driver, set_limit, "set_limit")?;
        let _scope = self.context.enter()?;
        // SAFETY: plain numbers.
        self.context.check("set_limit", unsafe { set(limit, value) })
    }

    fn context_handle(&self) -> Result<u64> {
        Ok(self.context.handle()? as u64)
    }

    fn make_current(&self) -> Result<()> {
        self.context.make_current()
    }

    fn epoch(&self) -> u64 {
        // Each reset increments the epoch twice.
        self.context.epoch().div_ceil(2)
    }

    unsafe fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

// The features of a device, from the driver's functions and the device's attributes.

/// Returns the features of a device, without creating a context.
pub(super) fn features(state: &DeviceState) -> Features {
    let (context, driver) = (&state.context, &state.context.driver);
    let calls = &driver.calls;
    let is_set = |attribute| context.attribute(attribute).is_ok_and(|value| value != 0);
    let graphs = calls.capture_begin.is_some()
        && calls.capture_end.is_some()
        && calls.graph_instantiate.is_some()
        && calls.graph_launch.is_some();
    let graph_objects = calls.user_object_create.is_some()
        && calls.graph_retain.is_some()
        && calls.capture_graph.is_some();
    let sharing = calls.ipc_export_memory.is_some()
        && calls.ipc_open_memory.is_some()
        && calls.ipc_close_memory.is_some()
        && calls.ipc_export_event.is_some()
        && calls.ipc_open_event.is_some();
    let textures = TextureCalls::of(context, "features");
    let has = [
        (Feature::Kernels, true),
        (Feature::StreamOrderedReuse, true),
        (Feature::ExternalStreams, true),
        (Feature::Reset, true),
        (Feature::KernelAttributes, calls.function_set_attribute.is_some()),
        (Feature::ParameterInfo, calls.function_parameter.is_some()),
        (
            Feature::CooperativeLaunch,
            calls.launch_cooperative.is_some() && is_set(COOPERATIVE_LAUNCH),
        ),
        (Feature::Graphs, graphs),
        (Feature::GraphObjects, graphs && graph_objects),
        (
            Feature::ManagedMemory,
            calls.allocate_managed.is_some() && is_set(DeviceAttribute::MANAGED_MEMORY),
        ),
        (Feature::DriverPool, state.memory.pool.may_be_pooled()),
        (Feature::Limits, calls.limit.is_some() && calls.set_limit.is_some()),
        (Feature::Sharing, sharing),
        (Feature::Textures, textures.is_ok()),
        (Feature::Surfaces, textures.is_ok_and(|calls| calls.has_surfaces())),
    ];
    let shared = has.into_iter().filter_map(|(feature, present)| present.then_some(feature));
    shared.chain(driver.vendor.features().iter().copied()).collect()
}

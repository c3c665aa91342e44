//! The host as a device.

use crate::attributes::{self, Limits};
use crate::compile;
use crate::config::HostConfig;
use crate::engine::Engine;
use crate::event::HostEvent;
use crate::memory::Memory;
use crate::module::HostModule;
use crate::sharing::handle::Kind;
use crate::stream::HostStream;
use crate::texture::{self, Textures};
use hal::compile::Compiled;
use hal::memory::GraphBlocks;
use hal::process::ProcessMutex;
use hal::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use hal::{
    Device, DeviceAttribute, DeviceId, DeviceProperties, Error, ErrorKind, Event, EventOptions,
    Feature, Features, IpcHandle, LinkInput, LoadOptions, MemoryInfo, Module, ModuleSource,
    PinnedOptions, Result, Status, Stream, StreamOptions,
};
use rayon::ThreadPool;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The only device of the host backend.
pub(crate) const DEVICE: DeviceId = DeviceId { backend: "host", ordinal: 0 };

/// The host: its memory, its cores, its streams.
pub(crate) struct HostDevice {
    properties: DeviceProperties,
    /// Addresses and bytes of the variables of loaded modules.
    variables: ProcessMutex<BTreeMap<usize, usize>>,
    config: HostConfig,
    memory: Arc<Memory>,
    /// What the default stream is known by, however many objects stand for it.
    default_stream_id: u64,
    engine: Engine,
    /// The engine of a forked child.
    child: ProcessMutex<Option<&'static Engine>>,
    pinned: ProcessMutex<BTreeMap<usize, usize>>,
    registered: ProcessMutex<BTreeMap<usize, usize>>,
    limits: Limits,
    textures: Textures,
    /// The blocks of captures and graphs.
    graph_blocks: Arc<GraphBlocks>,
}

impl fmt::Debug for HostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostDevice({:?})", self.config)
    }
}

impl HostDevice {
    fn new(config: HostConfig) -> HostDevice {
        let name = format!("{} ({} threads)", processor_name(), config.threads);
        let capability =
            (cuda_c::DEFAULT_ARCHITECTURE / 100, cuda_c::DEFAULT_ARCHITECTURE / 10 % 10);
        let memory = Arc::new(Memory::new(config.memory, config.cache));
        HostDevice {
            properties: DeviceProperties::new(name, "0000:00:00.0", capability, config.memory),
            variables: ProcessMutex::default(),
            config,
            graph_blocks: Arc::new(GraphBlocks::new(memory.clone())),
            memory,
            default_stream_id: hal::stream::unique_id(),
            engine: Engine::new(),
            child: ProcessMutex::default(),
            pinned: ProcessMutex::default(),
            registered: ProcessMutex::default(),
            limits: Limits::default(),
            textures: Textures::default(),
        }
    }

    pub(crate) fn default_stream_id(&self) -> u64 {
        self.default_stream_id
    }

    /// The variables of loaded modules.
    pub(crate) fn variables(&self) -> &ProcessMutex<BTreeMap<usize, usize>> {
        &self.variables
    }

    /// Arrays, texture objects and surface objects.
    pub(crate) fn textures(&self) -> &Textures {
        &self.textures
    }

    /// True if the range lies in one allocation, in registered memory or in a module's variable.
    pub(crate) fn has_memory(&self, address: u64, bytes: usize) -> bool {
        let held = |(start, size): (u64, usize)| bytes <= size - (address - start) as usize;
        self.memory.allocation(address).is_some_and(held)
            || range_in(&self.registered, address as usize, bytes).is_some()
            || range_in(&self.variables, address as usize, bytes).is_some()
    }

    /// What a launch counts as multiprocessors: the threads that run blocks.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.config.threads as u32
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The blocks of captures and graphs.
    pub(crate) fn graph_blocks(&self) -> &Arc<GraphBlocks> {
        &self.graph_blocks
    }

    /// Frees memory of a stream, unless a graph holds it.
    ///
    /// # Safety
    /// As for [`Memory::free`].
    pub(crate) unsafe fn free_ordered(&self, address: u64, bytes: usize) -> Result<()> {
        if let Some(done) = self.graph_blocks.release(address) {
            return done;
        }
        // SAFETY: the caller's promise.
        unsafe { self.memory.free(address, bytes) };
        Ok(())
    }

    /// The threads and queues of this process.
    pub(crate) fn engine(&self) -> &Engine {
        if self.engine.is_of_this_process() {
            return &self.engine;
        }
        let mut child = self.child.lock();
        match *child {
            Some(engine) if engine.is_of_this_process() => engine,
            // One per fork, for the life of the child.
            _ => child.insert(Box::leak(Box::new(Engine::new()))),
        }
    }

    /// The threads for large operations, started when first asked for; `None` if there is
    /// to be only one.
    pub(crate) fn pool(&self) -> Option<Arc<ThreadPool>> {
        self.engine().pool(self.config.threads)
    }

    /// Allocates; where there is no room, waits for frees that are queued and tries again.
    pub(crate) fn allocate_waiting(&self, bytes: usize) -> Result<u64> {
        self.with_room(|memory| memory.allocate(bytes))
    }

    /// As [`HostDevice::allocate_waiting`], for [`Memory::allocate_plain`].
    fn allocate_plain_waiting(&self, bytes: usize) -> Result<u64> {
        self.with_room(|memory| memory.allocate_plain(bytes))
    }

    /// As [`HostDevice::allocate_waiting`], for [`Memory::allocate_zeroed`].
    pub(crate) fn allocate_zeroed_waiting(&self, bytes: usize) -> Result<Option<u64>> {
        self.with_room(|memory| memory.allocate_zeroed(bytes))
    }

    fn with_room<T>(&self, allocate: impl Fn(&Memory) -> Result<T>) -> Result<T> {
        allocate(&self.memory).or_else(|error| {
            if self.engine().is_clear() {
                return Err(error);
            }
            self.wait()?;
            allocate(&self.memory)
        })
    }

    /// Waits until all queued work has run. Whether it failed is for its stream to report.
    fn wait(&self) -> Result<()> {
        self.engine().wait()
    }

    /// Start and bytes of the memory that an address lies in and that kernels may access.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, usize)> {
        let registered = || {
            let range = range_in(&self.registered, address as usize, 1)
                .or_else(|| range_in(&self.variables, address as usize, 1))?;
            Some((range.0 as u64, range.1))
        };
        self.memory.allocation(address).or_else(registered)
    }

    /// True if the range lies in page-locked or registered memory.
    pub(crate) fn is_pinned(&self, pointer: usize, bytes: usize) -> bool {
        range_in(&self.pinned, pointer, bytes)
            .or(range_in(&self.registered, pointer, bytes))
            .is_some()
    }
}

/// Start and size of the range that holds so many bytes at an address.
fn range_in(
    ranges: &ProcessMutex<BTreeMap<usize, usize>>,
    address: usize,
    bytes: usize,
) -> Option<(usize, usize)> {
    let (&start, &size) = ranges.lock().range(..=address).next_back()?;
    let rest = size.checked_sub(address - start)?;
    (bytes <= rest && rest > 0).then_some((start, size))
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        // Queued work holds the device, so nothing is left to run; the thread can end.
        self.engine.default_queue.retire();
    }
}

/// The host as programs hold it; streams and queued work share what is behind it.
#[derive(Debug)]
pub(crate) struct HostHandle(Arc<HostDevice>);

impl HostHandle {
    pub(crate) fn new(config: HostConfig) -> Arc<HostHandle> {
        Arc::new(HostHandle(Arc::new(HostDevice::new(config))))
    }
}

impl Deref for HostHandle {
    type Target = HostDevice;

    fn deref(&self) -> &HostDevice {
        &self.0
    }
}

// SAFETY: allocations are the system's, of the sizes asked for, and known until they are freed.
unsafe impl Device for HostHandle {
    fn id(&self) -> DeviceId {
        DEVICE
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
        ]
        .into_iter()
        .collect::<Features>()
        .with(Feature::Sharing, cfg!(target_os = "linux"))
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let total = self.memory.capacity();
        Ok(MemoryInfo { free: total.saturating_sub(self.memory.used()), total })
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        Arc::new(HostStream::default_of(self.0.clone()))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        self.engine().captures.collect(&self.graph_blocks);
        let queue = self.engine().new_queue(!options.non_blocking);
        let id = hal::stream::unique_id();
        Ok(Arc::new(HostStream::new(self.0.clone(), id, queue, !options.non_blocking)))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(HostEvent::new(options, &self.memory)?))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.allocate_plain_waiting(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        self.wait()?;
        // SAFETY: the caller's promise, and no work is left.
        unsafe { self.memory.free_plain(address, bytes) };
        Ok(())
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
        texture::create_array(self, shape)
    }

    unsafe fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        texture::create_texture(self, resource, sampling)
    }

    unsafe fn create_surface(&self, array: u64) -> Result<u64> {
        texture::create_surface(self, array)
    }

    unsafe fn destroy_texture(&self, kind: TextureHandle, handle: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { texture::destroy(self, kind, handle) }
    }

    fn kept_memory(&self) -> Result<usize> {
        Ok(self.memory.kept())
    }

    fn trim_memory(&self, keep: usize) -> Result<()> {
        self.memory.trim(keep);
        Ok(())
    }

    fn allocate_pinned(&self, bytes: usize, _: PinnedOptions) -> Result<*mut u8> {
        let address = self.with_room(|memory| memory.allocate_pages(bytes))? as usize;
        self.pinned.lock().insert(address, bytes);
        Ok(address as *mut u8)
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        // Queued copies may still use the memory, as a GPU's driver would wait for them.
        self.wait()?;
        self.pinned.lock().remove(&(pointer as usize));
        // SAFETY: the caller's promise, and no work is left.
        unsafe { self.memory.free_pages(pointer as u64, bytes) };
        Ok(())
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
                    "{bytes} bytes at {start:#x} overlap {size} bytes registered at {other:#x}"
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
        compile::compile(text, name, options, !hal::checking::current().is_none())
    }

    fn link(&self, inputs: &[LinkInput<'_>], _: &LoadOptions) -> Result<Compiled> {
        if inputs.is_empty() {
            return Err(Error::invalid("link", "inputs is empty; at least one is needed"));
        }
        Err(Error::unsupported("link", format!("device {DEVICE} links no code")))
    }

    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        if bytes == 0 {
            return Err(Error::invalid("allocate_managed", "bytes is 0; at least 1 is needed"));
        }
        // All memory here is the host's. It is private, so that a forked child that writes to it,
        // as to any memory of the host, changes a copy.
        self.allocate_waiting(bytes)
    }

    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        check_shares("export_memory")?;
        self.memory.segments().export("export_memory", address as usize, Kind::Memory)
    }

    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        check_shares("import_memory")?;
        let address = self.memory.segments().open("import_memory", handle, Kind::Memory)?;
        Ok(address as u64)
    }

    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        check_shares("close_imported")?;
        // SAFETY: the caller's promise.
        if unsafe { self.memory.segments().close(address as usize) } {
            return Ok(());
        }
        Err(Error::invalid(
            "close_imported",
            format!("address is {address:#x}, where no memory of another process is open"),
        ))
    }

    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        check_shares("export_event")?;
        HostEvent::of("export_event", event)?.export()
    }

    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        check_shares("import_event")?;
        Ok(Arc::new(HostEvent::open(handle, &self.memory)?))
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
        self.engine().captures.collect(&self.graph_blocks);
        self.engine().captures.check_device("synchronize")?;
        self.wait()?;
        self.engine().default_queue.take_failure()
    }
}

/// Checks that the system has memory that processes can share.
fn check_shares(call: &'static str) -> Result<()> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(Error::unsupported(call, "the host backend shares memory and events on Linux only"))
}

/// The processor's name, as the system has it.
fn processor_name() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

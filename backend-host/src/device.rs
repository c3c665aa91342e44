//! The host as a device.

use crate::attributes::Limits;
use crate::config::HostConfig;
use crate::engine::Engine;
use crate::memory::Memory;
use crate::texture::Textures;
use hal::memory::GraphBlocks;
use hal::process::ProcessMutex;
use hal::{DeviceId, DeviceProperties, Result, interruption};
use rayon_core::ThreadPool;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The host: its memory, cores and streams.
pub(crate) struct HostDevice {
    id: DeviceId,
    pub(crate) properties: DeviceProperties,
    /// The addresses of the variables of loaded modules, and their sizes in bytes.
    variables: ProcessMutex<BTreeMap<usize, usize>>,
    config: HostConfig,
    memory: Arc<Memory>,
    /// The number of the default stream. All objects for this stream have the same number.
    default_stream_id: u64,
    engine: Engine,
    /// The engine of a forked child.
    child: ProcessMutex<Option<&'static Engine>>,
    pub(crate) pinned: ProcessMutex<BTreeMap<usize, usize>>,
    pub(crate) registered: ProcessMutex<BTreeMap<usize, usize>>,
    pub(crate) limits: Limits,
    textures: Textures,
    /// The memory blocks of captures and graphs.
    graph_blocks: Arc<GraphBlocks>,
}

impl fmt::Debug for HostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostDevice({:?})", self.config)
    }
}

impl HostDevice {
    pub(crate) fn new(config: HostConfig) -> HostDevice {
        let name = format!("{} ({} threads)", processor_name(), config.threads);
        let capability = (
            host_executor::DEFAULT_ARCHITECTURE / 100,
            host_executor::DEFAULT_ARCHITECTURE / 10 % 10,
        );
        let memory = Arc::new(Memory::new(config.memory, config.cache));
        HostDevice {
            id: DeviceId { backend: "host", ordinal: 0, instance: DeviceId::next_instance() },
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

    pub(crate) fn id(&self) -> DeviceId {
        self.id
    }

    pub(crate) fn default_stream_id(&self) -> u64 {
        self.default_stream_id
    }

    /// Returns the variables of loaded modules.
    pub(crate) fn variables(&self) -> &ProcessMutex<BTreeMap<usize, usize>> {
        &self.variables
    }

    /// Returns the arrays, texture objects and surface objects.
    pub(crate) fn textures(&self) -> &Textures {
        &self.textures
    }

    /// Returns true if the range is inside one allocation, registered memory, or a module's variable.
    pub(crate) fn has_memory(&self, address: u64, bytes: usize) -> bool {
        let held = |(start, size): (u64, usize)| bytes <= size - (address - start) as usize;
        self.memory.allocation(address).is_some_and(held)
            || range_in(&self.registered, address as usize, bytes).is_some()
            || range_in(&self.variables, address as usize, bytes).is_some()
    }

    /// Returns the number of threads that run blocks. Launches see each thread as a multiprocessor.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.config.threads as u32
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Returns the memory blocks of captures and graphs.
    pub(crate) fn graph_blocks(&self) -> &Arc<GraphBlocks> {
        &self.graph_blocks
    }

    /// Frees stream-ordered memory, unless a graph holds it.
    ///
    /// # Safety
    /// The same as for [`Memory::free`].
    pub(crate) unsafe fn free_ordered(&self, address: u64, bytes: usize) -> Result<()> {
        if let Some(done) = self.graph_blocks.release(address) {
            return done;
        }
        // SAFETY: the caller's promise.
        unsafe { self.memory.free(address, bytes) };
        Ok(())
    }

    /// Returns the threads and queues of this process.
    pub(crate) fn engine(&self) -> &Engine {
        if self.engine.is_of_this_process() {
            return &self.engine;
        }
        let mut child = self.child.lock();
        match *child {
            Some(engine) if engine.is_of_this_process() => engine,
            // One per fork, for the lifetime of the child.
            _ => child.insert(Box::leak(Box::new(Engine::new()))),
        }
    }

    /// Returns the thread pool for large operations; the first call starts the pool. Returns `None` if
    /// only one thread is configured.
    pub(crate) fn pool(&self) -> Option<Arc<ThreadPool>> {
        self.engine().pool(self.config.threads)
    }

    /// Allocates memory. If there is not enough, waits for queued frees and tries again.
    pub(crate) fn allocate_waiting(&self, bytes: usize) -> Result<u64> {
        self.with_room(|memory| memory.allocate(bytes))
    }

    /// Like [`HostDevice::allocate_waiting`], for [`Memory::allocate_plain`].
    pub(crate) fn allocate_plain_waiting(&self, bytes: usize) -> Result<u64> {
        self.with_room(|memory| memory.allocate_plain(bytes))
    }

    /// Like [`HostDevice::allocate_waiting`], for [`Memory::allocate_zeroed`].
    pub(crate) fn allocate_zeroed_waiting(&self, bytes: usize) -> Result<Option<u64>> {
        self.with_room(|memory| memory.allocate_zeroed(bytes))
    }

    pub(crate) fn with_room<T>(&self, allocate: impl Fn(&Memory) -> Result<T>) -> Result<T> {
        allocate(&self.memory).or_else(|error| {
            if self.engine().is_clear() || interruption::is_in_function() {
                return Err(error);
            }
            self.wait()?;
            allocate(&self.memory)
        })
    }

    /// Waits until all queued work has run. Each stream reports its own failures.
    pub(crate) fn wait(&self) -> Result<()> {
        self.engine().wait()
    }

    /// Returns the start and size in bytes of the memory, accessible to kernels, that contains an address.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, usize)> {
        let registered = || {
            let range = range_in(&self.registered, address as usize, 1)
                .or_else(|| range_in(&self.variables, address as usize, 1))?;
            Some((range.0 as u64, range.1))
        };
        self.memory.allocation(address).or_else(registered)
    }

    /// Returns true if the range is in page-locked or registered memory.
    pub(crate) fn is_pinned(&self, pointer: usize, bytes: usize) -> bool {
        range_in(&self.pinned, pointer, bytes)
            .or(range_in(&self.registered, pointer, bytes))
            .is_some()
    }
}

/// Returns the start and size of the range that contains `bytes` bytes at an address.
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
        // Queued work holds the device, so the queue is empty and its thread can end.
        self.engine.default_queue.retire();
    }
}

/// Returns the processor's name, as reported by the system.
fn processor_name() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

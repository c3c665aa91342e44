//! The smallest backend that is not a driver, as `docs/adding-a-backend.md` describes it. It uses
//! the default body of every trait method that has one.

mod queue;
mod stream;

use gpuarray::{
    Api, Backend, Device, DeviceId, Error, ErrorKind, Event, EventOptions, Features, PinnedOptions,
    Result, Status, Stream, StreamOptions,
};
use hal::failures::Failures;
use hal::memory::drain_dropped;
use hal::poison::Unpoisoned as _;
use hal::properties::{DeviceAttribute, DeviceProperties, MemoryInfo};
use queue::{Mark, Progress, Queue};
use std::alloc::Layout;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, Mutex, Weak};
use stream::{SkeletonEvent, SkeletonStream};

const NAME: &str = "skeleton";

/// The bytes of its memory, and the alignment of allocations and page-locked memory.
const CAPACITY: usize = 64 << 20;
const PAGE: usize = 4096;

/// A backend with one device, whose streams are threads and whose memory is the process's.
#[derive(Debug)]
struct Skeleton(Arc<SkeletonDevice>);

pub(crate) fn open() -> Result<Arc<dyn Backend>> {
    let failures = Arc::new(Failures::default());
    let shared = Arc::new(Shared {
        id: DeviceId { backend: NAME, ordinal: 0, instance: DeviceId::next_instance() },
        properties: DeviceProperties::new("Skeleton", "0000:00:00.0", (0, 0), CAPACITY),
        default_queue: Queue::new(&failures)?,
        failures,
        default_id: hal::stream::unique_id(),
        queues: Mutex::default(),
        memory: Mutex::default(),
        pinned: Mutex::default(),
    });
    Ok(Arc::new(Skeleton(Arc::new(SkeletonDevice(shared)))))
}

impl Backend for Skeleton {
    fn name(&self) -> &'static str {
        NAME
    }

    fn api(&self) -> Api {
        Api::Host
    }

    fn version(&self) -> Result<i32> {
        Ok(1000)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        match ordinal {
            0 => Ok(self.0.clone()),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::host(Status::INVALID_DEVICE),
                "device",
                format!("device number is {ordinal}; there is device 0 alone"),
            )),
        }
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        Status::common_name(code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        Some(Status::host(code).message()).filter(|message| !message.is_empty())
    }
}

/// The device as programs hold it; streams and queued work share its state.
#[derive(Debug)]
struct SkeletonDevice(Arc<Shared>);

struct Shared {
    id: DeviceId,
    properties: DeviceProperties,
    default_queue: Arc<Queue>,
    /// The failures of queued work.
    failures: Arc<Failures>,
    default_id: u64,
    /// The queues of streams, including dropped ones, and whether each waits for the default
    /// stream.
    queues: Mutex<Vec<(Weak<Progress>, bool)>>,
    /// The bytes of each allocation, by address.
    memory: Mutex<BTreeMap<u64, usize>>,
    /// Page-locked and registered memory.
    pinned: Mutex<BTreeMap<u64, usize>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

/// Returns true if the range is inside one of `ranges`.
fn holds(ranges: &Mutex<BTreeMap<u64, usize>>, address: u64, bytes: usize) -> bool {
    let ranges = ranges.lock().unpoisoned();
    ranges.range(..=address).next_back().is_some_and(|(start, &size)| {
        let offset = (address - start) as usize;
        offset < size && bytes <= size - offset
    })
}

impl Shared {
    /// Returns marks after the work queued on the streams that the default stream waits for, or on
    /// all streams.
    fn marks(&self, all: bool) -> Vec<Mark> {
        let mut queues = self.queues.lock().unpoisoned();
        queues.retain(|(queue, _)| queue.strong_count() > 0);
        let wanted = queues.iter().filter(|(_, is_blocking)| all || *is_blocking);
        wanted.filter_map(|(queue, _)| Some(queue.upgrade()?.mark())).collect()
    }

    /// Waits for all queued work.
    fn wait(&self) -> Result<()> {
        self.marks(true).iter().try_for_each(Mark::wait)?;
        self.default_queue.mark().wait()
    }

    /// Returns true if the range is in device memory or page-locked memory.
    fn can_access(&self, address: u64, bytes: usize) -> bool {
        holds(&self.memory, address, bytes) || holds(&self.pinned, address, bytes)
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        let used = || self.memory.lock().unpoisoned().values().sum::<usize>();
        if bytes > CAPACITY - used() {
            // Memory that queued work will free counts as free, unless queued work makes this call
            // itself.
            let _ = self.wait();
        }
        let free = CAPACITY - used();
        let none = || {
            Error::new(
                ErrorKind::OutOfMemory,
                Status::host(Status::OUT_OF_MEMORY),
                "allocate",
                format!("{bytes} bytes were asked for; {free} are available of {CAPACITY}"),
            )
        };
        if bytes > free {
            return Err(none());
        }
        let layout = layout(bytes);
        // SAFETY: the layout has bytes.
        let address = unsafe { std::alloc::alloc_zeroed(layout) } as u64;
        if address == 0 {
            return Err(none());
        }
        self.memory.lock().unpoisoned().insert(address, layout.size());
        Ok(address)
    }

    /// Frees an allocation.
    ///
    /// # Safety
    /// As for [`Device::free`], and all work that uses the memory has run.
    unsafe fn free(&self, address: u64) {
        if let Some(bytes) = self.memory.lock().unpoisoned().remove(&address) {
            // SAFETY: allocated with this layout; the caller's promise.
            unsafe { std::alloc::dealloc(address as *mut u8, layout(bytes)) };
        }
    }
}

/// Returns the layout for an allocation; no allocation is empty.
fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), PAGE).expect("it is less than the capacity")
}

// SAFETY: allocations come from the global allocator; streams and events belong to the skeleton.
unsafe impl Device for SkeletonDevice {
    fn id(&self) -> DeviceId {
        self.0.id
    }

    fn properties(&self) -> &DeviceProperties {
        &self.0.properties
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        use DeviceAttribute as A;
        match attribute {
            A::COMPUTE_CAPABILITY_MAJOR | A::COMPUTE_CAPABILITY_MINOR => Ok(0),
            A::MULTIPROCESSOR_COUNT | A::MAX_THREADS_PER_BLOCK | A::WARP_SIZE => Ok(1),
            DeviceAttribute(number) => {
                Err(Error::invalid("attribute", format!("there is no attribute {number}")))
            }
        }
    }

    fn features(&self) -> Features {
        Features::NONE
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let used: usize = self.0.memory.lock().unpoisoned().values().sum();
        Ok(MemoryInfo { free: CAPACITY - used, total: CAPACITY })
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        let (id, queue) = (self.0.default_id, self.0.default_queue.clone());
        Arc::new(SkeletonStream::new(&self.0, id, queue, false))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        let (queue, blocking) = (Queue::new(&self.0.failures)?, !options.non_blocking);
        self.0.queues.lock().unpoisoned().push((Arc::downgrade(queue.progress()), blocking));
        let id = hal::stream::unique_id();
        Ok(Arc::new(SkeletonStream::new(&self.0, id, queue, blocking)))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        Ok(Arc::new(SkeletonEvent::new(&self.0, options)))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.0.allocate(bytes)
    }

    unsafe fn free(&self, address: u64, _: usize) -> Result<()> {
        self.0.wait()?;
        // SAFETY: the caller's promise, and no work is left.
        unsafe { self.0.free(address) };
        Ok(())
    }

    fn can_access(&self, address: u64, bytes: usize) -> bool {
        self.0.can_access(address, bytes)
    }

    fn allocate_pinned(&self, bytes: usize, _: PinnedOptions) -> Result<*mut u8> {
        let address = self.0.allocate(bytes)?;
        self.0.pinned.lock().unpoisoned().insert(address, bytes);
        Ok(address as *mut u8)
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        self.0.pinned.lock().unpoisoned().remove(&(pointer as u64));
        // SAFETY: the caller's promise.
        unsafe { self.free(pointer as u64, bytes) }
    }

    fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        match holds(&self.0.pinned, pointer as u64, 1) {
            true => Ok(pointer as u64),
            false => Err(Error::invalid("pinned_address", format!("{pointer:p} is not pinned"))),
        }
    }

    unsafe fn register_host(&self, pointer: *mut u8, bytes: usize, _: PinnedOptions) -> Result<()> {
        let (start, end) = (pointer as u64, pointer as u64 + bytes as u64);
        let overlaps = |(&other, &size): (&u64, &usize)| other + size as u64 > start;
        let mut pinned = self.0.pinned.lock().unpoisoned();
        let before = pinned.range((Included(0), Excluded(end))).next_back();
        if before.is_some_and(overlaps) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::host(Status::HOST_MEMORY_ALREADY_REGISTERED),
                "register_host",
                format!("some of the {bytes} bytes at {pointer:p} are registered already"),
            ));
        }
        pinned.insert(start, bytes);
        Ok(())
    }

    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()> {
        self.0.wait()?;
        match self.0.pinned.lock().unpoisoned().remove(&(pointer as u64)) {
            Some(_) => Ok(()),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                Status::host(Status::HOST_MEMORY_NOT_REGISTERED),
                "unregister_host",
                format!("no memory is registered at {pointer:p}"),
            )),
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.0.wait()?;
        drain_dropped(self.0.id);
        self.0.failures.take_any()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

//! The recorder's state: recorded calls, and the events that give their times.

use crate::dtype::DType;
use crate::event::Event;
use crate::module::LaunchConfig;
use crate::operation::{Description, Input, Mapped, Operand, Operation};
use crate::properties::DeviceId;
use crate::stream::{Direction, Transfer};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The number of calls that are kept; earlier ones are left out of the result, which says how many.
pub const LIMIT: usize = 1 << 18;

thread_local! {
    /// The line of the program that causes the thread's calls; 0 if it is unknown.
    pub(super) static LINE: Cell<u32> = const { Cell::new(0) };
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// The kinds of recorded calls.
///
/// The time that the host waited:
///
/// ```
/// use gpuarray::recording::{Kind, Session, during};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let session = Session::begin();
/// during(Kind::Wait, "device", || device.synchronize())?;
/// let rows = session.finish().rows;
/// let waited: f64 = rows.iter().filter(|row| row.kind == Kind::Wait).map(|row| row.seconds).sum();
/// assert!(waited > 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A launch of a program's kernel.
    Kernel,
    /// A builtin operation of arrays.
    Operation,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A launch of a graph.
    Graph,
    /// An allocation of device memory.
    Allocate,
    /// A free of device memory.
    Free,
    /// A wait of the host for a stream, an event or a device.
    Wait,
    /// A compilation or a load of a program's code.
    Compile,
}

impl Kind {
    /// Returns the kind in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Operation => "operation",
            Kind::Copy => "copy",
            Kind::Fill => "fill",
            Kind::Graph => "graph",
            Kind::Allocate => "allocate",
            Kind::Free => "free",
            Kind::Wait => "wait",
            Kind::Compile => "compile",
        }
    }
}

/// The description of a call.
///
/// A fill of a program's own, which it records as the library records its calls:
///
/// ```
/// use gpuarray::memory::{Access, AccessGuard, DeviceMemory};
/// use gpuarray::recording::{Kind, Session, Work, queued};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let memory = Arc::new(DeviceMemory::for_stream(&device, &stream, 64)?);
/// let session = Session::begin();
/// let guard = AccessGuard::acquire(&stream, &[(&memory, Access::Write)])?;
/// // SAFETY: the memory has 64 bytes, and the guard orders the fill.
/// let fill = || unsafe { stream.fill(memory.address(), 7, 1, 64) };
/// queued(stream.as_ref(), || Work::new(Kind::Fill, "sevens").bytes(64), fill)?;
/// drop(guard);
/// assert!(session.finish().rows.iter().any(|row| row.name == "sevens" && row.bytes == 64));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) dtype: Option<DType>,
    pub(super) bytes: u64,
    pub(super) launch: Option<LaunchConfig>,
}

impl<'a> Work<'a> {
    /// Describes a call of a kind by its name.
    pub const fn new(kind: Kind, name: &'a str) -> Self {
        Work { kind, name, dtype: None, bytes: 0, launch: None }
    }

    /// Sets the bytes that the call reads and writes, or allocates.
    #[must_use]
    pub const fn bytes(self, bytes: u64) -> Self {
        Work { bytes, ..self }
    }

    /// Describes a launch of a kernel that takes arrays of `bytes` bytes in total.
    pub const fn kernel(name: &'a str, config: &LaunchConfig, bytes: u64) -> Self {
        Work { launch: Some(*config), bytes, ..Work::new(Kind::Kernel, name) }
    }

    /// Describes a copy. A copy inside the device counts each byte twice: it is read and written.
    pub fn copy(transfer: &Transfer) -> Self {
        let bytes = transfer.width as u64 * transfer.height as u64 * transfer.depth as u64;
        let (name, times) = match transfer.direction {
            Direction::HostToDevice => ("host to device", 1),
            Direction::DeviceToHost => ("device to host", 1),
            Direction::DeviceToDevice => ("device to device", 2),
        };
        Work::new(Kind::Copy, name).bytes(bytes.saturating_mul(times))
    }

    /// Describes a builtin operation. Each element that it reads or writes counts once.
    pub fn operation(operation: &Operation) -> Self {
        let (name, dtype, bytes) = match operation.description() {
            Description::Elementwise(it) => {
                let inputs = it.inputs.iter().map(|input| of_input(input, &it.shape));
                let bytes = sum(inputs.chain([of(&it.output, &it.shape)]));
                (it.function.name(), it.output.dtype, bytes)
            }
            Description::Fused(it) => {
                let inputs = it.inputs.iter().map(|input| of_input(input, &it.shape));
                let outputs = it.outputs.iter().map(|output| of(output, &it.shape));
                ("fused", it.outputs[0].dtype, sum(inputs.chain(outputs)))
            }
            Description::Reduce(it) => {
                let input = match &it.input {
                    Mapped::Product(left, right) => {
                        sum([of(left, &it.shape), of(right, &it.shape)])
                    }
                    Mapped::Indexed(indexed) => of(&indexed.indices, &it.shape),
                    Mapped::Formula(values) => {
                        sum(values.arrays().map(|array| of(array, &values.shape)))
                    }
                    Mapped::Identity(input)
                    | Mapped::SquaredDeviation(input)
                    | Mapped::Position(input) => of(input, &it.shape),
                };
                (it.reduction.name(), it.compute, sum([input, of(&it.output, &it.shape)]))
            }
            Description::Scan(it) => {
                let bytes = sum([of(&it.input, &it.shape), of(&it.output, &it.shape)]);
                ("scan", it.compute, bytes)
            }
            Description::Gather(it) => {
                let output = of(&it.output, &it.shape);
                let bytes = sum([output, output, of(&it.source.indices, &it.shape)]);
                ("take", it.output.dtype, bytes)
            }
            Description::Scatter(it) => {
                let input = of_input(&it.input, &it.shape);
                let bytes = sum([input, input, of(&it.target.indices, &it.shape)]);
                ("put", it.target.base.dtype, bytes)
            }
            Description::Sequence(it) => ("arange", it.output.dtype, of(&it.output, &[it.length])),
            Description::Random(it) => ("random", it.output.dtype, of(&it.output, &[it.length])),
            Description::Nonzero(it) => {
                let bytes = sum([of(&it.mask, &[it.length]), of(&it.output, &[it.most])]);
                ("nonzero", it.output.dtype, bytes)
            }
            Description::Sort(it) => {
                let shape = [it.rows, it.length];
                ("sort", it.input.dtype, sum([of(&it.input, &shape), of(&it.output, &shape)]))
            }
            Description::MatrixProduct(it) => {
                let of = |operand: &Operand, rows: usize, columns: usize| {
                    let shape: Vec<_> = it.batch.iter().copied().chain([rows, columns]).collect();
                    of(operand, &shape)
                };
                let bytes = sum([
                    of(&it.left, it.rows, it.terms),
                    of(&it.right, it.terms, it.columns),
                    of(&it.output, it.rows, it.columns),
                ]);
                ("matmul", it.compute, bytes)
            }
        };
        Work { dtype: Some(dtype), bytes, ..Work::new(Kind::Operation, name) }
    }
}

/// Returns the sum of these bytes, or the largest number if it does not fit.
fn sum(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Returns the bytes of an operand's elements; a repeated element counts once.
fn of(operand: &Operand, shape: &[usize]) -> u64 {
    let extents = shape.iter().zip(&operand.strides).filter(|it| *it.1 != 0).map(|it| *it.0 as u64);
    extents.fold(operand.dtype.size() as u64, u64::saturating_mul)
}

fn of_input(input: &Input, shape: &[usize]) -> u64 {
    match input {
        Input::Array(operand) => of(operand, shape),
        Input::Scalar(_) => 0,
    }
}

/// Returns the nanoseconds since the process first recorded something.
pub(super) fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// An event that a device's times count from, and its number.
pub(super) type Base = (usize, Arc<dyn Event>);

/// The nanoseconds from the base to some work, and those of the work.
pub(super) type Times = (Option<i64>, u64);

/// The events before and after some work; twice the same one, for a base.
type Pair = (Arc<dyn Event>, Arc<dyn Event>);

/// The events before and after some work.
#[derive(Debug)]
pub(super) struct Timing {
    /// The event that the device's times count from, and its number.
    pub(super) base: Base,
    pub(super) start: Arc<dyn Event>,
    pub(super) end: Arc<dyn Event>,
}

impl Timing {
    /// Returns the nanoseconds from the base to the work, unless a reset of the device has ended the base, and those of
    /// the work; `None` if the work failed, or if a reset has ended it.
    pub(super) fn times(&self) -> Option<Times> {
        let begin = self.start.elapsed_since(self.base.1.as_ref()).ok();
        let length = self.end.elapsed_since(self.start.as_ref()).ok()?;
        let nanoseconds = |milliseconds: f32| f64::from(milliseconds) * 1e6;
        Some((begin.map(|it| nanoseconds(it) as i64), nanoseconds(length) as u64))
    }
}

/// A recorded call.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) name: u32,
    pub(super) dtype: Option<DType>,
    pub(super) line: u32,
    pub(super) bytes: u64,
    pub(super) launch: Option<LaunchConfig>,
    pub(super) device: Option<DeviceId>,
    pub(super) stream: u64,
    pub(super) thread: u64,
    /// The beginning and the end on the host.
    pub(super) host: (u64, u64),
    pub(super) base: usize,
    pub(super) times: Option<Times>,
    pub(super) timing: Option<Timing>,
    /// The change of the device's allocated bytes since recording began.
    pub(super) in_use: i64,
}

/// The memory of one device.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) in_use: i64,
    pub(super) peak: i64,
    /// The bytes and the line of each live allocation.
    pub(super) live: HashMap<u64, (u64, u32)>,
}

/// Everything that is recorded.
#[derive(Debug)]
pub(super) struct State {
    pub(super) sessions: usize,
    /// The number of the first entry that is kept.
    first: u64,
    pub(super) entries: VecDeque<Entry>,
    /// The number of the first entry whose events may be unread.
    unread: u64,
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// Events for reuse, by stream.
    spare: HashMap<u64, Vec<Pair>>,
    /// The event that each device's times count from; a reset begins another one.
    bases: HashMap<DeviceId, Base>,
    /// The number of the next such event.
    next_base: usize,
    /// Events of devices that were reset. Dropping them may call the driver, so they are kept until the session ends.
    forgotten: Vec<Pair>,
    pub(super) memory: HashMap<DeviceId, Memory>,
}

impl State {
    pub(super) fn new() -> State {
        let empty: Arc<str> = "".into();
        State {
            sessions: 0,
            first: 0,
            entries: VecDeque::new(),
            unread: 0,
            numbers: HashMap::from([(empty.clone(), 0)]),
            texts: vec![empty],
            spare: HashMap::new(),
            bases: HashMap::new(),
            next_base: 0,
            forgotten: Vec::new(),
            memory: HashMap::new(),
        }
    }

    /// Begins a session; returns the number of its first entry.
    pub(super) fn begin(&mut self) -> u64 {
        self.sessions += 1;
        self.next()
    }

    /// Ends a session. After the last one, returns what is to be dropped without the lock.
    pub(super) fn end(&mut self) -> impl Sized + use<> {
        self.sessions -= 1;
        (self.sessions == 0).then(|| {
            self.first = self.next();
            self.unread = self.first;
            self.memory.clear();
            let events = (mem::take(&mut self.spare), mem::take(&mut self.bases));
            (mem::take(&mut self.entries), events, mem::take(&mut self.forgotten))
        })
    }

    /// Returns the number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn text_number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let (shared, number): (Arc<str>, _) = (text.into(), self.texts.len() as u32);
        self.texts.push(shared.clone());
        self.numbers.insert(shared, number);
        number
    }

    pub(super) fn text(&self, number: u32) -> Arc<str> {
        self.texts.get(number as usize).unwrap_or(&self.texts[0]).clone()
    }

    pub(super) fn push(
        &mut self,
        work: Work<'_>,
        host: (u64, u64),
        device: Option<DeviceId>,
        stream: u64,
        address: Option<u64>,
        timing: Option<Timing>,
    ) {
        if self.sessions == 0 {
            return;
        }
        let (name, line) = (self.text_number(work.name), LINE.get());
        let in_use = match (device, address) {
            (Some(device), Some(address)) => {
                self.memory.entry(device).or_default().note(work.kind, address, (work.bytes, line))
            }
            _ => 0,
        };
        if self.entries.len() == LIMIT {
            self.entries.pop_front();
            self.first += 1;
            self.unread = self.unread.max(self.first);
        }
        let base = timing.as_ref().map_or(0, |timing| timing.base.0);
        self.entries.push_back(Entry {
            kind: work.kind,
            name,
            dtype: work.dtype,
            line,
            bytes: work.bytes,
            launch: work.launch,
            device,
            stream,
            thread: THREAD.with(|thread| *thread),
            host,
            base,
            times: None,
            timing,
            in_use,
        });
    }

    pub(super) fn unread(&self) -> u64 {
        self.next() - self.unread
    }

    /// Returns the oldest unread entry's number and events, if more than `keep` entries are unread.
    pub(super) fn take_unread(&mut self, keep: u64) -> Option<(u64, Timing)> {
        while self.unread() > keep {
            let number = self.unread;
            self.unread += 1;
            let timing = self.entry(number).and_then(|entry| entry.timing.take());
            if let Some(timing) = timing {
                return Some((number, timing));
            }
        }
        None
    }

    /// Returns the number and events of the first unread entry from `next` to `last`, and moves `next` past it.
    pub(super) fn take_unread_before(
        &mut self,
        next: &mut u64,
        last: u64,
    ) -> Option<(u64, Timing)> {
        *next = (*next).max(self.first);
        while *next < last {
            let number = *next;
            *next += 1;
            if let Some(timing) = self.entry(number).and_then(|entry| entry.timing.take()) {
                return Some((number, timing));
            }
        }
        None
    }

    /// Returns to an entry its events, which are not finished.
    pub(super) fn put_back(&mut self, number: u64, timing: Timing) {
        if let Some(entry) = self.entry(number) {
            entry.timing = Some(timing);
            self.unread = self.unread.min(number);
        }
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let position = number.checked_sub(self.first)?;
        self.entries.get_mut(position as usize)
    }

    /// Stores the times of an entry, and keeps its events for reuse. Returns the events of a reset device, which are
    /// to be dropped without the lock.
    pub(super) fn set_times(
        &mut self,
        number: u64,
        timing: Timing,
        times: Option<Times>,
    ) -> Option<Timing> {
        let Some(entry) = self.entry(number) else { return Some(timing) };
        entry.times = times;
        let (device, stream) = (entry.device, entry.stream);
        if times.is_none_or(|it| it.0.is_none()) || self.sessions == 0 {
            // The next work begins a new base, in case that the device was reset.
            let base = device.and_then(|device| self.bases.remove(&device));
            self.forgotten.extend(base.map(|it| (it.1.clone(), it.1)));
            return Some(timing);
        }
        self.keep(stream, timing);
        None
    }

    pub(super) fn base_of(&self, device: DeviceId) -> Option<Base> {
        self.bases.get(&device).cloned()
    }

    pub(super) fn add_base(&mut self, device: DeviceId, event: Arc<dyn Event>) -> Base {
        self.next_base += 1;
        self.bases.entry(device).or_insert((self.next_base, event)).clone()
    }

    /// Keeps events for reuse on their stream.
    pub(super) fn keep(&mut self, stream: u64, timing: Timing) {
        self.spare.entry(stream).or_default().push((timing.start, timing.end));
    }

    /// Returns events that were kept.
    pub(super) fn spare(&mut self, device: DeviceId, stream: u64) -> Option<Timing> {
        let base = self.base_of(device)?;
        let (start, end) = self.spare.get_mut(&stream)?.pop()?;
        Some(Timing { base, start, end })
    }

    /// Forgets the events of a device that was reset.
    pub(super) fn forget_device(&mut self, device: DeviceId) {
        let base = self.bases.remove(&device);
        self.forgotten.extend(base.map(|it| (it.1.clone(), it.1)));
        let (gone, left) = mem::take(&mut self.spare).into_iter().partition(|(_, events)| {
            events.first().is_none_or(|(event, _)| event.device_id() == device)
        });
        self.spare = left;
        let gone: HashMap<_, Vec<_>> = gone;
        self.forgotten.extend(gone.into_values().flatten());
    }
}

impl Memory {
    /// Notes an allocation or a free; returns the bytes in use after it.
    fn note(&mut self, kind: Kind, address: u64, made: (u64, u32)) -> i64 {
        if kind == Kind::Allocate {
            self.in_use += made.0 as i64;
            self.peak = self.peak.max(self.in_use);
            self.live.insert(address, made);
        } else {
            self.in_use -= made.0 as i64;
            self.live.remove(&address);
        }
        self.in_use
    }
}

//! Random programs that misuse safe code: they combine two instances of the backend, two devices, and their
//! streams, events, captures, memory and functions in every way. Every call returns a value or an error.
//!
//! Values that are read are compared with program order. The order of host functions is compared with the order
//! that the program requested: the test keeps, for each position in a stream, the set of functions that must have
//! run before it. For a longer search:
//!
//! ```sh
//! GPUARRAY_PROGRAMS=100000 GPUARRAY_TEST_SECONDS=7200 cargo test --test conformance -- attack
//! ```
//!
//! `GPUARRAY_PROGRAM_SEED` is the number of the first program; a failure prints the program's number.

use crate::context::Context;
use crate::harness::{Outcome, payload_text, tests};
use crate::streams::random_streams::{Random, setting};
use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, PinnedMemory};
use gpuarray::{
    CaptureMode, Device, DeviceArray, Error, ErrorKind, Event, EventOptions, Feature, Graph,
    PendingCopy, PinnedBuffer, Result, Stream, StreamOptions,
};
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

tests![every_call_returns_and_order_is_kept];

const LENGTH: usize = 64;

/// The numbers of host functions.
type Functions = BTreeSet<usize>;

struct TestStream {
    device: usize,
    stream: Arc<dyn Stream>,
    /// The functions that run before any work that is queued next.
    behind: Functions,
}

struct TestEvent {
    device: usize,
    event: Arc<dyn Event>,
    /// The functions that have run when the event is reached; `None` if it was captured, so that this is unknown.
    behind: Option<Functions>,
}

struct TestArray {
    device: usize,
    array: DeviceArray<i64>,
    value: i64,
}

struct Program {
    random: Random,
    devices: Vec<Arc<dyn Device>>,
    streams: Vec<TestStream>,
    events: Vec<TestEvent>,
    arrays: Vec<TestArray>,
    copies: Vec<(PendingCopy<i64>, i64)>,
    buffers: Vec<PinnedBuffer<i64>>,
    graphs: Vec<Arc<dyn Graph>>,
    /// For each function, by number, the functions that must run before it.
    functions: Vec<Functions>,
    /// The functions that have run, in order.
    ran: Arc<Mutex<Vec<usize>>>,
    /// Calls inside functions that waited although they should have been refused.
    waited: Arc<Mutex<Vec<&'static str>>>,
    text: String,
}

macro_rules! note {
    ($program:expr, $($text:tt)*) => {{ let _ = writeln!($program.text, $($text)*); }};
}

impl Program {
    fn new(context: &Context, seed: u64) -> Result<Program> {
        let mut devices = vec![context.device.clone()];
        devices.extend(context.other_devices()?);
        let mut program = Program {
            random: Random(seed),
            devices,
            streams: Vec::new(),
            events: Vec::new(),
            arrays: Vec::new(),
            copies: Vec::new(),
            buffers: Vec::new(),
            graphs: Vec::new(),
            functions: Vec::new(),
            ran: Arc::default(),
            waited: Arc::default(),
            text: String::new(),
        };
        for device in 0..program.devices.len() {
            let stream = program.devices[device].default_stream();
            program.streams.push(TestStream { device, stream, behind: Functions::new() });
            for _ in 0..2 {
                program.add_stream(device)?;
                program.add_event(device)?;
                program.add_array(device)?;
            }
        }
        Ok(program)
    }

    fn add_stream(&mut self, device: usize) -> Result<()> {
        let non_blocking = self.random.below(2) == 0;
        let options = StreamOptions::default().non_blocking(non_blocking);
        let stream = self.devices[device].create_stream(options)?;
        self.streams.push(TestStream { device, stream, behind: Functions::new() });
        Ok(())
    }

    fn add_event(&mut self, device: usize) -> Result<()> {
        let event = self.devices[device].create_event(EventOptions::ORDERING)?;
        self.events.push(TestEvent { device, event, behind: Some(Functions::new()) });
        Ok(())
    }

    fn add_array(&mut self, device: usize) -> Result<()> {
        let value = self.random.below(1000) as i64;
        let array = DeviceArray::full(&self.devices[device], &[LENGTH], value)?;
        self.arrays.push(TestArray { device, array, value });
        Ok(())
    }

    fn is_apart(&self, one: usize, other: usize) -> bool {
        self.devices[one].id().instance != self.devices[other].id().instance
    }

    /// Checks that all functions before a wait have run once it returns.
    fn check_ran(&self, behind: &Functions, what: &str) {
        let ran = self.ran.lock().unwrap();
        let missing: Vec<_> = behind.iter().filter(|it| !ran.contains(it)).collect();
        assert!(missing.is_empty(), "{what} returned, and functions {missing:?} have not run");
    }

    /// Returns an object for a function to own, and so to drop.
    fn payload(&mut self) -> Option<Box<dyn Any + Send>> {
        let device = &self.devices[self.random.below(self.devices.len())];
        Some(match self.random.below(8) {
            0 => Box::new(self.copies.pop()?),
            1 => Box::new(self.buffers.pop()?),
            2 => Box::new(PinnedMemory::new(device, 100).ok()?),
            3 => Box::new(DeviceMemory::plain(device, 100).ok()?),
            4 if self.arrays.len() > 3 => {
                let taken = self.random.below(self.arrays.len());
                Box::new(self.arrays.swap_remove(taken).array)
            }
            5 if self.events.len() > 3 => {
                let taken = self.random.below(self.events.len());
                Box::new(self.events.swap_remove(taken).event)
            }
            6 => Box::new(self.graphs.pop()?),
            _ => return None,
        })
    }

    /// Returns a call that would wait, for a function to try.
    fn wait(&mut self) -> (&'static str, Box<dyn Fn() -> Result<()> + Send>) {
        let stream = self.streams[self.random.below(self.streams.len())].stream.clone();
        let device = self.devices[self.random.below(self.devices.len())].clone();
        let event = self.events[self.random.below(self.events.len())].event.clone();
        let array = self.arrays[self.random.below(self.arrays.len())].array.clone();
        match self.random.below(5) {
            0 => ("a stream", Box::new(move || stream.synchronize())),
            1 => ("a device", Box::new(move || device.synchronize())),
            2 => ("an event", Box::new(move || event.synchronize())),
            3 => ("an array", Box::new(move || array.to_vec().map(drop))),
            _ => ("a capture", Box::new(move || stream.begin_capture(CaptureMode::Relaxed))),
        }
    }

    fn queue_function(&mut self, target: usize) {
        let number = self.functions.len();
        let (payload, (what, wait)) = (self.payload(), self.wait());
        let (ran, waited) = (self.ran.clone(), self.waited.clone());
        let end = self.random.below(4);
        let queued = self.streams[target].stream.host_function(move || {
            ran.lock().unwrap().push(number);
            if wait().is_ok() {
                waited.lock().unwrap().push(what);
            }
            drop(payload);
            match end {
                0 => panic!("on purpose"),
                1 => Err(Error::invalid("library", "on purpose")),
                _ => Ok(()),
            }
        });
        note!(self, "stream {target}: function {number}, waits for {what}: {queued:?}");
        if queued.is_ok() {
            self.functions.push(self.streams[target].behind.clone());
            self.streams[target].behind.insert(number);
        } else {
            self.functions.push(Functions::new());
        }
    }

    fn step(&mut self) {
        let target = self.random.below(self.streams.len());
        let (device, stream) = (self.streams[target].device, self.streams[target].stream.clone());
        let captures = stream.is_capturing().unwrap_or(true);
        let event = self.random.below(self.events.len());
        let index = self.random.below(self.arrays.len());
        let value = self.random.below(1000) as i64;
        match self.random.below(16) {
            0 | 1 => self.queue_function(target),
            2 => {
                let recorded = stream.record(self.events[event].event.as_ref());
                note!(self, "stream {target}: record {event}: {recorded:?}");
                let same = self.events[event].device == device;
                assert!(same || recorded.is_err(), "another device's event was recorded");
                if recorded.is_ok() {
                    let behind = self.streams[target].behind.clone();
                    self.events[event].behind = (!captures).then_some(behind);
                }
            }
            3 => {
                let waited = stream.wait_event(self.events[event].event.as_ref());
                note!(self, "stream {target}: wait for {event}: {waited:?}");
                let apart = self.is_apart(self.events[event].device, device);
                assert!(!apart || waited.is_err(), "another opening's event was waited for");
                if let (Ok(()), Some(behind)) = (waited, &self.events[event].behind) {
                    self.streams[target].behind.extend(behind);
                }
            }
            4 => {
                let waited = self.events[event].event.synchronize();
                note!(self, "event {event}: synchronize: {waited:?}");
                if let (Ok(()), Some(behind)) = (waited, &self.events[event].behind) {
                    self.check_ran(behind, "an event");
                }
            }
            5 => {
                let waited = stream.synchronize();
                note!(self, "stream {target}: synchronize: {waited:?}");
                if waited.is_ok() {
                    self.check_ran(&self.streams[target].behind, "a stream");
                }
            }
            6 => {
                let mode = [CaptureMode::ThreadLocal, CaptureMode::Relaxed][self.random.below(2)];
                let begun = stream.begin_capture(mode);
                note!(self, "stream {target}: begin: {begun:?}");
            }
            7 | 8 => {
                let ended = stream.end_capture();
                note!(self, "stream {target}: end: {ended:?}");
                self.graphs.extend(ended);
                if self.graphs.len() > 3 {
                    self.graphs.remove(0);
                }
            }
            9 | 10 => {
                let on = self.arrays[index].array.on(&stream);
                assert_eq!(on.is_ok(), self.arrays[index].device == device, "an array on a stream");
                let Ok(mut array) = on else { return };
                let filled = array.fill(value);
                note!(self, "stream {target}: array {index} = {value}: {filled:?}");
                assert_eq!(filled.is_ok(), array.last_status().is_success());
                if filled.is_ok() && !captures {
                    self.arrays[index].value = value;
                }
            }
            11 => {
                let other = self.random.below(self.arrays.len());
                let Ok(mut array) = self.arrays[index].array.on(&stream) else { return };
                let added = array.update(functions::Add, &self.arrays[other].array);
                note!(self, "stream {target}: array {index} += array {other}: {added:?}");
                if self.arrays[index].device != self.arrays[other].device {
                    let kind = added.as_ref().err().map(Error::kind);
                    assert_eq!(kind, Some(ErrorKind::InvalidArgument), "{added:?}");
                }
                if added.is_ok() && !captures {
                    self.arrays[index].value += self.arrays[other].value;
                }
            }
            12 => {
                let read = self.arrays[index].array.to_vec();
                note!(self, "array {index} is read: {:?}", read.as_ref().map(|it| it[0]));
                if let Ok(read) = read {
                    assert_eq!(read, [self.arrays[index].value; LENGTH], "array {index}");
                }
            }
            13 => {
                let buffer = self.buffers.pop().map_or_else(|| self.new_buffer(), Ok);
                let Ok(array) = self.arrays[index].array.on(&stream) else { return };
                let copied = buffer.and_then(|buffer| array.copy_to_pinned(buffer));
                note!(self, "stream {target}: array {index} to pinned: {copied:?}");
                self.copies.extend(copied.map(|copy| (copy, self.arrays[index].value)));
            }
            14 => {
                let Some((copy, value)) = self.copies.pop() else { return };
                let waited = copy.wait();
                note!(self, "a copy is waited for: {:?}", waited.as_ref().map(|it| it[0]));
                if let Ok(buffer) = waited {
                    assert_eq!(buffer[..], [value; LENGTH], "a copy");
                    self.buffers.push(buffer);
                }
            }
            _ => {
                let memory = self.arrays[index].array.untyped().memory().clone();
                let uses = [(&memory, [Access::Read, Access::Write][self.random.below(2)])];
                let guard = AccessGuard::acquire(&stream, &uses);
                note!(self, "stream {target}: a guard of array {index}: {:?}", guard.is_ok());
                assert!(guard.is_err() || !self.is_apart(self.arrays[index].device, device));
                // No call may hang while the guard is held.
                let _ = self.arrays[index].array.copy();
                drop(guard);
                match self.random.below(4) {
                    0 => drop(self.add_stream(device)),
                    1 if self.streams.len() > 4 && target > 3 => {
                        // Memory may keep the stream alive, and nothing else would end its capture.
                        let _ = stream.end_capture();
                        self.streams.remove(target);
                    }
                    2 => drop(self.add_event(device)),
                    _ => drop(self.add_array(device)),
                }
            }
        }
    }

    fn new_buffer(&mut self) -> Result<PinnedBuffer<i64>> {
        PinnedBuffer::new(&self.devices[self.random.below(self.devices.len())], LENGTH)
    }

    fn finish(&mut self) {
        for TestStream { stream, .. } in &self.streams {
            let _ = stream.end_capture();
        }
        for device in &self.devices {
            // Each failure is reported once, so there are at most as many reports as failures.
            let most = self.functions.len() + 1;
            let failures = (0..most).take_while(|_| device.synchronize().is_err()).count();
            assert!(failures < most, "a device reports failures without end");
        }
        let ran = self.ran.lock().unwrap();
        let place = |number: &usize| ran.iter().position(|it| it == number);
        for (at, number) in ran.iter().enumerate() {
            for earlier in &self.functions[*number] {
                assert!(
                    place(earlier) < Some(at),
                    "function {number} ran before function {earlier}"
                );
            }
        }
        let waited = self.waited.lock().unwrap();
        assert!(waited.is_empty(), "functions have waited for {waited:?}");
        for (index, it) in self.arrays.iter().enumerate() {
            let read = it.array.to_vec().expect("no stream captures any longer");
            assert_eq!(read, [it.value; LENGTH], "array {index}");
        }
    }
}

fn every_call_returns_and_order_is_kept(context: &Context) -> Outcome {
    let first = setting("GPUARRAY_PROGRAM_SEED", 1);
    let programs = setting("GPUARRAY_PROGRAMS", if context.takes_all() { 40 } else { 12 });
    let has_graphs = context.can(Feature::Graphs);
    for seed in first..first + programs {
        let mut program = Program::new(context, seed)?;
        let run = std::panic::AssertUnwindSafe(|| {
            let steps = 20 + program.random.below(if has_graphs { 120 } else { 60 });
            (0..steps).for_each(|_| program.step());
            program.finish();
        });
        if let Err(payload) = std::panic::catch_unwind(run) {
            panic!("program {seed}: {}\n{}", payload_text(payload.as_ref()), program.text);
        }
    }
    Ok(())
}

//! Threads begin, join and end captures on the same streams at random, while other work runs on them.
//!
//! The reference has neither streams nor captures: each operation adds one to one array, and the test counts the
//! additions. After all threads have ended, it measures how much each graph adds. Each array must then hold the
//! additions that ran directly, plus each graph's additions times its launches. Direct and captured additions
//! together must equal the count. Dropping results immediately reuses memory, which would show if a graph did not
//! keep it.

use crate::captures::failed_captures::check_usable;
use crate::captures::graphs::replay;
use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::streams::random_streams::{Random, setting};
use gpuarray::array::functions;
use gpuarray::{CaptureMode, DeviceArray, ErrorKind, Event, EventOptions, Graph, Result, Stream};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

tests![threads_share_streams_that_capture needs [Graphs]];

const THREADS: usize = 3;
const STREAMS: usize = 3;
const ARRAYS: usize = 3;
/// Small, so that freed blocks are soon used again.
const LENGTH: usize = 40;

/// An array to which the threads add ones.
struct Sum {
    array: DeviceArray<i64>,
    done: AtomicI64,
}

impl Sum {
    fn new(context: &Context) -> Result<Arc<Sum>> {
        let array = DeviceArray::zeros(&context.device, &[LENGTH])?;
        Ok(Arc::new(Sum { array, done: AtomicI64::new(0) }))
    }

    fn value(&self) -> Result<i64> {
        let values = self.array.to_vec()?;
        assert!(values.iter().all(|it| *it == values[0]), "somebody else wrote: {values:?}");
        Ok(values[0])
    }
}

/// The state that the threads share. An entry's lock is held to read or replace the entry, not while the entry is
/// used.
struct Shared<'a> {
    context: &'a Context,
    streams: [Mutex<Arc<dyn Stream>>; STREAMS],
    /// Replaced streams; memory may still refer to them.
    replaced: Mutex<Vec<Weak<dyn Stream>>>,
    events: [Arc<dyn Event>; 2],
    sums: [Mutex<Arc<Sum>>; ARRAYS],
    graphs: Mutex<Vec<Arc<Launched>>>,
    /// The number of captures that have begun and have not yet produced a graph.
    unfinished: AtomicUsize,
    /// If true, only the first stream captures, and no work is refused.
    is_gentle: bool,
}

struct Launched {
    graph: Arc<dyn Graph>,
    launches: AtomicI64,
}

fn at<T: Clone>(places: &[Mutex<T>], random: &mut Random) -> T {
    places[random.below(places.len())].lock().unwrap().clone()
}

impl Shared<'_> {
    fn new<'a>(context: &'a Context, random: &mut Random) -> Result<Shared<'a>> {
        let is_gentle = random.below(2) == 0;
        let event = || context.device.create_event(EventOptions::ORDERING);
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(Mutex::new(new_stream(context, random, is_gentle)?));
        }
        let mut sums = Vec::new();
        for _ in 0..ARRAYS {
            sums.push(Mutex::new(Sum::new(context)?));
        }
        context.device.synchronize()?;
        Ok(Shared {
            context,
            streams: streams.try_into().expect("so many"),
            replaced: Mutex::default(),
            events: [event()?, event()?],
            sums: sums.try_into().ok().expect("so many"),
            graphs: Mutex::default(),
            unfinished: AtomicUsize::new(0),
            is_gentle,
        })
    }

    /// Performs one random action of a thread.
    fn step(&self, random: &mut Random) -> Result<()> {
        let stream = at(&self.streams, random);
        let capturing = match self.is_gentle {
            true => self.streams[0].lock().unwrap().clone(),
            false => stream.clone(),
        };
        match random.below(if self.is_gentle { 13 } else { 20 }) {
            0..2 => {
                capturing.begin_capture(CaptureMode::Relaxed)?;
                self.unfinished.fetch_add(1, Ordering::Relaxed);
            }
            2..4 => self.end(&capturing)?,
            4..8 => {
                let sum = at(&self.sums, random);
                sum.array.on(&stream)?.clone().update_scalar(functions::Add, 1)?;
                sum.done.fetch_add(1, Ordering::Relaxed);
            }
            8..10 => drop((&at(&self.sums, random).array.on(&stream)? + 1)?),
            10..12 => {
                let graphs = self.graphs.lock().unwrap().clone();
                if let Some(launched) = graphs.get(random.below(graphs.len().max(1))) {
                    // SAFETY: the graph keeps the arrays that its capture used.
                    unsafe { launched.graph.launch(&stream)? };
                    launched.launches.fetch_add(1, Ordering::Relaxed);
                }
            }
            12 => *self.sums[random.below(ARRAYS)].lock().unwrap() = Sum::new(self.context)?,
            13..15 => stream.record(self.events[random.below(2)].as_ref())?,
            15..17 => stream.wait_event(self.events[random.below(2)].as_ref())?,
            17 => {
                let new = new_stream(self.context, random, false)?;
                let place = &self.streams[random.below(STREAMS)];
                let old = std::mem::replace(&mut *place.lock().unwrap(), new);
                self.replaced.lock().unwrap().push(Arc::downgrade(&old));
            }
            18 => drop(stream.query()?),
            _ => self.context.array(&[LENGTH], &[1_i64; LENGTH]).map(drop)?,
        }
        Ok(())
    }

    fn end(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        let launched = Launched { graph: stream.end_capture()?, launches: AtomicI64::new(0) };
        self.graphs.lock().unwrap().push(Arc::new(launched));
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends all captures, and checks that all streams work.
    fn finish(&self) -> Outcome {
        let replaced = self.replaced.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
        let streams = self.streams.each_ref().map(|it| it.lock().unwrap().clone());
        for stream in [replaced, streams.to_vec()].concat() {
            // Errors are expected: many streams do not capture, some captures are invalid, and a stream that
            // joined a capture cannot end it.
            let _ = self.end(&stream);
        }
        for stream in &streams {
            check_usable(self.context, stream)?;
        }
        self.context.device.synchronize()?;
        Ok(())
    }

    /// Compares the arrays with the additions of each graph.
    fn check(&self) -> Outcome {
        let sums = self.sums.each_ref().map(|it| it.lock().unwrap().clone());
        let values = || -> Result<Vec<i64>> { sums.iter().map(|it| it.value()).collect() };
        let stream = self.context.stream()?;
        let (held, mut before) = (values()?, values()?);
        let (mut launched, mut captured) = ([0; ARRAYS], [0; ARRAYS]);
        for it in self.graphs.lock().unwrap().iter() {
            let mut parts = Vec::new();
            for _ in 0..2 {
                replay(&it.graph, &stream)?;
                let after = values()?;
                parts.push(after.iter().zip(&before).map(|(a, b)| a - b).collect::<Vec<_>>());
                before = after;
            }
            assert_eq!(parts[0], parts[1], "each launch does the same");
            for (number, part) in parts[0].iter().enumerate() {
                launched[number] += part * it.launches.load(Ordering::Relaxed);
                captured[number] += part;
            }
        }
        for (number, sum) in sums.iter().enumerate() {
            let (at_once, done) =
                (held[number] - launched[number], sum.done.load(Ordering::Relaxed));
            let known = at_once + captured[number];
            assert!(at_once >= 0 && known <= done, "{at_once} and {captured:?} of {done}");
            if self.unfinished.load(Ordering::Relaxed) == 0 {
                assert_eq!(known, done, "each operation ran at once or was captured");
            }
        }
        Ok(())
    }
}

/// Returns a new stream. Unless `is_gentle`, it may be a blocking stream, whose captures make the default stream
/// refuse work.
fn new_stream(context: &Context, random: &mut Random, is_gentle: bool) -> Result<Arc<dyn Stream>> {
    match is_gentle || random.below(3) > 0 {
        true => context.stream(),
        false => context.blocking_stream(),
    }
}

fn threads_share_streams_that_capture(context: &Context) -> Outcome {
    let first = setting("GPUARRAY_PROGRAM_SEED", 1);
    let is_long = std::env::var_os("PYGPU_TEST_ALL").is_some();
    let (rounds, steps) = if is_long { (60, 400) } else { (6, 150) };
    for seed in first..first + setting("GPUARRAY_PROGRAMS", rounds) {
        let shared = Shared::new(context, &mut Random(seed))?;
        let run = |thread: usize| -> Result<()> {
            let mut random = Random(seed * 1000 + thread as u64);
            for _ in 0..steps {
                match shared.step(&mut random) {
                    // The call is forbidden during a capture, or another thread has changed the state.
                    Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
                    result => result?,
                }
            }
            Ok(())
        };
        let ran: Result<()> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|it| scope.spawn(move || run(it))).collect();
            threads.into_iter().try_for_each(|it| {
                it.join().unwrap_or_else(|panic| {
                    let text = panic.downcast_ref::<String>().map_or("a panic", String::as_str);
                    panic!("{text}")
                })
            })
        });
        ran?;
        shared.finish()?;
        shared.check().map_err(|error| format!("seed {seed}: {error}"))?;
    }
    Ok(())
}

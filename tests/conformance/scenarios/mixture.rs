//! Captures, resets, forks, drops and trims on several threads concurrently, in a random order.
//! Every element of an array has one value, which the test knows and must read back.
//!
//! `GPUARRAY_MIXTURE_STEPS` is the number of steps of each thread (300), and `GPUARRAY_MIXTURE_SEED`
//! selects the steps. A run of some minutes searches for faults.

use super::device;
use super::processes::in_child;
use crate::harness::Outcome;
use crate::streams::random_streams::{Random, setting};
use gpuarray::array::functions;
use gpuarray::{
    CaptureMode, Device, DeviceArray, ErrorKind, Graph, Result, Status, Stream, StreamOptions,
};
use std::sync::{Arc, Mutex, RwLock};

const THREADS: u64 = 4;
const SIZE: usize = 700;

/// An array, and the value of all its elements.
type Known = (DeviceArray<i32>, i32);

fn check((array, value): &Known) -> Result<()> {
    let values = array.to_vec()?;
    assert!(values.iter().all(|it| it == value), "{values:?} should be all {value}");
    Ok(())
}

/// The state that all threads share.
struct Shared {
    device: Arc<dyn Device>,
    /// Locked for writing during a reset, and for reading during all other work.
    resets: RwLock<()>,
    /// Arrays that any thread may read and drop.
    arrays: Mutex<Vec<Known>>,
    has_graphs: bool,
    has_resets: bool,
    forks: bool,
}

/// A thread, and the objects that it has made since the last reset.
struct Worker<'a> {
    shared: &'a Shared,
    random: Random,
    streams: Vec<Arc<dyn Stream>>,
    own: Known,
    /// Graphs that add a number to the thread's array.
    graphs: Vec<(Arc<dyn Graph>, i32)>,
}

impl Worker<'_> {
    fn new(shared: &Shared, random: Random) -> Result<Worker<'_>> {
        let options = StreamOptions::default().non_blocking(true);
        let streams: Vec<_> =
            (0..3).map(|_| shared.device.create_stream(options)).collect::<Result<_>>()?;
        let array = DeviceArray::full(&shared.device, &[SIZE], 0)?.on(&streams[0])?.copy()?;
        Ok(Worker { shared, random, streams, own: (array, 0), graphs: Vec::new() })
    }

    fn stream(&mut self) -> Arc<dyn Stream> {
        let position = self.random.below(self.streams.len());
        self.streams[position].clone()
    }

    fn add(&mut self) -> Result<()> {
        let stream = self.stream();
        let by = self.random.below(100) as i32;
        self.own.0.on(&stream)?.update_scalar(functions::Add, by)?;
        self.own.1 += by;
        Ok(())
    }

    /// Shares a new array with all threads, or takes one.
    fn exchange(&mut self) -> Result<()> {
        let stream = self.stream();
        let mut all = self.shared.arrays.lock().unwrap();
        if all.len() < 20 {
            let made = (&self.own.0.on(&stream)? * 2)?;
            all.push((made, 2 * self.own.1));
            return Ok(());
        }
        let position = self.random.below(all.len());
        let taken = all.swap_remove(position);
        drop(all);
        match self.random.below(3) {
            // Another thread may be capturing its own stream.
            0 => check(&(taken.0.on(&stream)?, taken.1)),
            1 => check(&((&taken.0.on(&stream)? + 1)?, taken.1 + 1)),
            _ => Ok(()),
        }
    }

    /// Captures an addition that allocates memory.
    fn capture(&mut self) -> Result<()> {
        let stream = self.stream();
        let by = 1 + self.random.below(9) as i32;
        let array = self.own.0.on(&stream)?;
        stream.begin_capture(CaptureMode::ThreadLocal)?;
        let work = || {
            let one = (&(&array * 0)? + by)?;
            array.clone().update(functions::Add, &one)
        };
        let done = work();
        let graph = stream.end_capture();
        done?;
        self.graphs.push((graph?, by));
        Ok(())
    }

    fn launch(&mut self) -> Result<()> {
        if self.graphs.is_empty() {
            return Ok(());
        }
        let stream = self.stream();
        let position = self.random.below(self.graphs.len());
        let (graph, by) = &self.graphs[position];
        // SAFETY: the capture uses only arrays.
        unsafe { graph.launch(&stream)? };
        self.own.1 += by;
        if self.random.below(3) == 0 {
            self.graphs.swap_remove(position);
        }
        Ok(())
    }

    /// Replaces the thread's array; graphs of the old one continue to use it.
    fn replace(&mut self) -> Result<()> {
        let stream = self.stream();
        let value = self.random.below(1000) as i32;
        self.own = (self.own.0.on(&stream)?.copy()?, self.own.1);
        self.own.0.fill(value)?;
        self.own.1 = value;
        for (graph, _) in self.graphs.drain(..) {
            // SAFETY: as above.
            unsafe { graph.launch(&stream)? };
        }
        Ok(())
    }

    fn renew_stream(&mut self) -> Result<()> {
        let position = self.random.below(self.streams.len());
        let options = StreamOptions::default().non_blocking(true);
        self.streams[position] = self.shared.device.create_stream(options)?;
        Ok(())
    }

    fn fork(&mut self) {
        let well = in_child(false, || {
            let error = self.own.0.to_vec().expect_err("the driver does not survive a fork");
            assert_eq!(error.kind(), ErrorKind::InvalidHandle, "{error}");
            self.graphs.clear();
            self.own.0 = self.own.0.clone();
            Ok(())
        });
        assert!(well, "a child failed");
    }

    fn step(&mut self) -> Result<()> {
        match self.random.below(40) {
            0..10 => self.add(),
            10..18 => self.exchange(),
            18..22 if self.shared.has_graphs => self.capture(),
            22..29 => self.launch(),
            29..31 => self.replace(),
            31..33 => self.renew_stream(),
            33 => self.shared.device.trim_memory(0),
            34 if self.shared.forks && self.random.below(8) == 0 => {
                self.fork();
                Ok(())
            }
            _ => check(&self.own),
        }
    }

    fn run(&mut self, steps: u64) -> Result<()> {
        let device = &self.shared.device;
        for _ in 0..steps {
            if self.shared.has_resets && self.random.below(60) == 0 {
                let _alone = self.shared.resets.write().unwrap();
                self.shared.arrays.lock().unwrap().clear();
                // SAFETY: nothing else uses the device now.
                unsafe { device.reset()? };
            }
            let _beside = self.shared.resets.read().unwrap();
            match self.step() {
                // Another thread has reset the device.
                Err(error) if error.detail().contains("reset") => {
                    *self = Worker::new(self.shared, self.random.clone())?;
                }
                result => result?,
            }
        }
        Ok(())
    }
}

pub(super) fn mixture() -> Outcome {
    let device = device()?;
    let options = StreamOptions::default().non_blocking(true);
    let stream = device.create_stream(options)?;
    let has_graphs = stream.begin_capture(CaptureMode::default()).is_ok();
    if has_graphs {
        stream.end_capture()?;
    }
    let is_host = device.id().backend == "host";
    let shared = Shared {
        // The host backend works in a forked child, and cannot be reset.
        forks: !is_host,
        has_resets: !is_host,
        has_graphs,
        device,
        resets: RwLock::new(()),
        arrays: Mutex::default(),
    };
    let steps = setting("GPUARRAY_MIXTURE_STEPS", 300);
    let seed = setting("GPUARRAY_MIXTURE_SEED", 1);
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let beside = shared.resets.read().unwrap();
            let mut worker = Worker::new(&shared, Random(seed * THREADS + thread))?;
            drop(beside);
            let result = worker.run(steps);
            // Dropping the worker must not coincide with a reset.
            let _beside = shared.resets.read().unwrap();
            drop(worker);
            result
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    let left = std::mem::take(&mut *shared.arrays.lock().unwrap());
    for known in &left {
        check(known)?;
    }
    drop(left);
    shared.device.synchronize()?;
    assert_eq!(gpuarray::memory::last_failed_free(), Status::OK, "a free failed");
    Ok(())
}

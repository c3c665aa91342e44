//! Calls on a simulated device, whose true times are known.

use super::*;
use crate::status::Status;
use proptest::collection::vec;
use proptest::prelude::*;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

/// The greatest difference of the clocks' rates.
const DRIFT: f64 = 5e-5;
/// The nanoseconds that a call takes on the host, at least and at most.
const CALL: (u64, u64) = (1_000, 4_000);
/// The nanoseconds from the host's call to its first effect on an idle device.
const LATENCY: (u64, u64) = (1_000, 3_000);

/// An event that the device reaches at a known time.
#[derive(Debug)]
struct Reached {
    /// By the host's clock and by the device's.
    at: (u64, f64),
    now: Arc<AtomicU64>,
}

// SAFETY: the simulated work before the event has ended when the event counts as reached.
unsafe impl Event for Reached {
    fn device_id(&self) -> DeviceId {
        DeviceId { backend: "simulated", ordinal: 0, instance: 0 }
    }

    fn handle(&self) -> u64 {
        0
    }

    fn query(&self) -> Result<bool> {
        Ok(self.at.0 <= self.now.load(Ordering::Relaxed))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        let start: &Reached = start.as_any().downcast_ref().expect("it is simulated");
        match self.query()? && start.query()? {
            true => Ok(((self.at.1 - start.at.1) * 1e-6) as f32),
            false => {
                let status = Status::host(Status::NOT_READY);
                Err(Error::new(ErrorKind::NotReady, status, "elapsed_since", "not reached"))
            }
        }
    }

    fn last_status(&self) -> Status {
        Status::host(Status::SUCCESS)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Work of some length on a stream.
    Work(usize, u64),
    /// A stream waits for the work that is queued on another one.
    Wait(usize, usize),
    /// The host waits for a stream.
    Synchronize(usize),
    /// The host does something else.
    Pause(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![0..5_000_u64, 5_000..300_000_u64, 300_000..30_000_000_u64];
    prop_oneof![
        8 => (0..3_usize, length).prop_map(|(stream, length)| Step::Work(stream, length)),
        1 => (0..3_usize, 0..3_usize).prop_map(|(stream, other)| Step::Wait(stream, other)),
        1 => (0..3_usize).prop_map(Step::Synchronize),
        2 => prop_oneof![0..50_000_u64, 0..60_000_000_u64].prop_map(Step::Pause),
    ]
}

/// A recorded call, with the truth about its work on the host's clock.
struct Recorded {
    stream: u64,
    host: (u64, u64),
    work: (u64, u64),
    timing: Option<Timing>,
    times: Option<Times>,
    /// The time at which the clocks were last compared; 0 before the first comparison.
    compared: u64,
}

struct Device {
    now: Arc<AtomicU64>,
    drift: f64,
    random: u64,
    /// The end of each stream's queued work.
    ends: [u64; 3],
    clocks: Clocks,
    /// The times of the first and the last comparison of the clocks.
    compared: (u64, u64),
    calls: Vec<Recorded>,
    read: usize,
}

impl Device {
    /// Returns a device whose streams are busy for some time.
    fn new(drift: f64, random: u64, busy: [u64; 3]) -> Device {
        const NOW: u64 = 1 << 30;
        Device {
            now: Arc::new(AtomicU64::new(NOW)),
            drift,
            random: random | 1,
            ends: busy.map(|it| NOW + it),
            clocks: Clocks::default(),
            compared: (0, 0),
            calls: Vec::new(),
            read: 0,
        }
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        least + self.random % (most - least)
    }

    fn pass(&mut self, nanoseconds: u64) {
        self.now.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns when the device begins what the host queues now.
    fn reached(&mut self, stream: usize) -> u64 {
        let latency = self.between(LATENCY);
        self.ends[stream].max(self.now() + latency)
    }

    fn record(&mut self, stream: usize) -> Arc<dyn Event> {
        let at = self.reached(stream);
        let device = 7e12 + at as f64 * (1.0 + self.drift);
        self.ends[stream] = at;
        let event = Reached { at: (at, device), now: self.now.clone() };
        let call = self.between(CALL);
        self.pass(call);
        Arc::new(event)
    }

    /// Queues work as the recorder does.
    fn work(&mut self, stream: usize, length: u64, is_asked: bool) {
        let (number, mut begin) = (stream as u64 + 1, self.now());
        let plan = self.clocks.plan(begin, number, is_asked);
        let is_idle = plan.compares && self.ends[stream] <= begin;
        if plan.compares && !is_idle {
            self.clocks.postpone(begin);
        }
        let known = plan.marker.filter(|_| !is_idle);
        let is_own = known.is_none();
        let marker = known.unwrap_or_else(|| {
            let event = self.record(stream);
            let marker = self.clocks.add(event, begin, is_idle);
            begin = self.now();
            marker
        });
        if is_idle {
            self.compared.1 = begin;
            if self.compared.0 == 0 {
                self.compared.0 = begin;
            }
        }
        let call = self.between(CALL);
        self.pass(call / 2);
        let start = self.reached(stream);
        self.ends[stream] = start + length;
        self.pass(call - call / 2);
        let (host, compared) = ((begin, self.now()), self.compared.1);
        let end = self.record(stream);
        let timing = Some(Timing { marker, is_own, end });
        let work = (start, start + length);
        self.calls.push(Recorded { stream: number, host, work, timing, times: None, compared });
    }

    /// Reads the times of finished calls, in order.
    fn read(&mut self) {
        while let Some(call) = self.calls.get_mut(self.read) {
            let timing = call.timing.as_ref().expect("it is unread");
            while !timing.marker.is_read() {
                let (previous, next) = self.clocks.unread().expect("the marker was added");
                if next.read(previous.as_deref()).is_err() {
                    return;
                }
                self.clocks.pass(&next);
            }
            let Ok(times) = timing.times() else { return };
            (call.times, call.timing) = (Some(times), None);
            self.read += 1;
        }
    }

    fn run(&mut self, step: Step, is_asked: bool) {
        match step {
            Step::Work(stream, length) => self.work(stream, length, is_asked),
            Step::Wait(stream, other) => {
                self.clocks.wait(stream as u64 + 1);
                self.ends[stream] = self.ends[stream].max(self.ends[other]);
            }
            Step::Synchronize(stream) => {
                let left = self.ends[stream].saturating_sub(self.now());
                self.pass(left);
                self.read();
            }
            Step::Pause(nanoseconds) => self.pass(nanoseconds),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn work_is_placed_where_it_ran(
        steps in vec(step(), 1..200),
        drift in -DRIFT..DRIFT,
        random in any::<u64>(),
        busy in proptest::array::uniform3(prop_oneof![Just(0), 0..50_000_000_u64]),
        is_asked in proptest::bool::weighted(0.8),
    ) {
        let mut device = Device::new(drift, random, busy);
        for step in steps {
            device.run(step, is_asked);
        }
        device.pass(1 << 40);
        device.read();
        prop_assert_eq!(device.read, device.calls.len());

        fn call(it: &Recorded) -> Call<'_> {
            let times = it.times.as_ref().expect("it was read");
            Call { device: 0, stream: it.stream, host: it.host, times }
        }
        let mut timeline = Timeline::of(device.calls.iter().map(call));
        let mut ends = [0; 4];
        for it in &device.calls {
            let (start, length) = timeline.place(call(it));
            let end = &mut ends[it.stream as usize];
            prop_assert!(start >= *end && length >= 0, "work of one stream overlaps");
            *end = start + length;
            if is_asked && device.compared.0 == 0 {
                // No stream was ever idle.
                continue;
            }
            // Events and the host's calls take time before and after the work; the clocks drift in a segment.
            let (first, compared) = match it.compared {
                0 => (device.calls[0].host.0, device.compared.0),
                compared => (compared, compared),
            };
            let segment = device.calls.iter().filter(|it| it.compared == compared);
            let last = segment.map(|it| it.host.1).max().expect("the comparison was before a call");
            let drifted = DRIFT * (last - first) as f64;
            let truth = (it.work.1 - it.work.0) as i64;
            let drifted = DRIFT * truth as f64 + if is_asked { drifted } else { 0.0 };
            let error = (LATENCY.1 + 2 * CALL.1) as i64 + drifted as i64 + 100;
            prop_assert!(length >= truth - error, "{length} of {truth} ± {error}");
            prop_assert!(length <= truth + error + CALL.1 as i64, "{length} of {truth} ± {error}");
            if is_asked {
                prop_assert!((start - it.work.0 as i64).abs() <= 2 * error, "{start} {:?}", it.work);
            }
        }
    }
}

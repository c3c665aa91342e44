//! Random programs that capture part of their work and launch it many times, compared with a model
//! without streams and captures: numbers, and the program's steps one after another.
//!
//! The environment variables for longer searches are those that `random_streams` describes.

use crate::captures::graphs::capture;
use crate::context::{Context, Gate};
use crate::harness::{Outcome, tests};
use crate::streams::random_streams::{Random, setting};
use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard, PinnedMemory};
use gpuarray::{
    DeviceArray, Direction, EventOptions, Graph, IndexItem, Result, SliceBounds, Stream, Transfer,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

tests![launches_do_what_was_captured needs [Graphs]];

const LENGTH: usize = 60;

/// One operation on arrays, which are identified by their numbers.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fill(usize, i64),
    Multiply(usize, i64),
    Add(usize, usize),
    /// Makes a new array: the sum of two.
    Make(usize, usize, usize),
    /// Copies the first half of an array to the second half of another, reversed.
    Reverse(usize, usize),
    /// Copies page-locked numbers to an array.
    Upload(usize, usize),
}

/// The values of the arrays and of the page-locked memory after the steps so far.
struct Model {
    arrays: BTreeMap<usize, Vec<i64>>,
    pinned: Vec<Vec<i64>>,
}

impl Model {
    fn apply(&mut self, step: Step) {
        let known = |number: usize| self.arrays[&number].clone();
        let (target, values) = match step {
            Step::Fill(target, value) => (target, vec![value; LENGTH]),
            Step::Multiply(target, value) => {
                (target, known(target).iter().map(|it| it.wrapping_mul(value)).collect())
            }
            Step::Add(target, source) => (target, sum(&known(target), &known(source))),
            Step::Make(target, first, second) => (target, sum(&known(first), &known(second))),
            Step::Reverse(target, source) => {
                let (mut values, from) = (known(target), known(source));
                for place in 0..LENGTH / 2 {
                    values[LENGTH - 1 - place] = from[place];
                }
                (target, values)
            }
            Step::Upload(target, buffer) => (target, self.pinned[buffer].clone()),
        };
        self.arrays.insert(target, values);
    }
}

fn sum(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect()
}

fn half(bounds: SliceBounds) -> [IndexItem; 1] {
    [IndexItem::Slice(bounds)]
}

/// A graph, and the steps that it captured.
struct Replay {
    graph: Arc<dyn Graph>,
    steps: Vec<Step>,
}

struct Program<'a> {
    context: &'a Context,
    random: Random,
    /// The default stream, then blocking and non-blocking streams.
    streams: Vec<Arc<dyn Stream>>,
    /// The arrays that the program still holds.
    arrays: BTreeMap<usize, DeviceArray<i64>>,
    made: usize,
    pinned: Vec<PinnedMemory>,
    model: Model,
    replays: Vec<Replay>,
    gates: Vec<Gate>,
    text: String,
}

/// The indices of the streams that wait for the default stream.
const BLOCKING: [usize; 2] = [3, 4];

impl Program<'_> {
    fn new(context: &Context, seed: u64) -> Result<Program<'_>> {
        let streams = vec![
            context.device.default_stream(),
            context.stream()?,
            context.stream()?,
            context.blocking_stream()?,
            context.blocking_stream()?,
        ];
        let pinned: Vec<_> = (0..2)
            .map(|_| PinnedMemory::new(&context.device, 8 * LENGTH))
            .collect::<Result<_>>()?;
        let mut program = Program {
            context,
            random: Random(seed),
            streams,
            arrays: BTreeMap::new(),
            made: 0,
            pinned,
            model: Model { arrays: BTreeMap::new(), pinned: vec![Vec::new(); 2] },
            replays: Vec::new(),
            gates: Vec::new(),
            text: String::new(),
        };
        for buffer in 0..program.pinned.len() {
            program.write_pinned(buffer);
        }
        for _ in 0..3 {
            let stream = program.streams[1].clone();
            let values: Vec<i64> = (0..LENGTH as i64).map(|it| it + seed as i64).collect();
            let array = DeviceArray::from_slice(&context.device, &values)?.on(&stream)?.copy()?;
            program.arrays.insert(program.made, array);
            program.model.arrays.insert(program.made, values);
            program.made += 1;
        }
        Ok(program)
    }

    fn note(&mut self, done: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{done}");
    }

    /// Changes the numbers that uploads copy. No work is running.
    fn write_pinned(&mut self, buffer: usize) {
        let first = self.random.below(1000) as i64;
        let values: Vec<i64> = (0..LENGTH as i64).map(|it| first - 3 * it).collect();
        for (bytes, value) in self.pinned[buffer].chunks_exact_mut(8).zip(&values) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        self.note(format_args!("page-locked memory {buffer} starts with {first}"));
        self.model.pinned[buffer] = values;
    }

    /// Returns the number of an array that the program holds.
    fn pick(&mut self) -> usize {
        let position = self.random.below(self.arrays.len());
        *self.arrays.keys().nth(position).expect("a position below the length")
    }

    fn random_step(&mut self) -> Step {
        let (target, source) = (self.pick(), self.pick());
        let value = self.random.below(9) as i64 - 4;
        match self.random.below(9) {
            0 | 1 => Step::Fill(target, value),
            2 | 3 => Step::Multiply(target, value),
            4 => Step::Add(target, source),
            5 => Step::Reverse(target, source),
            6 => Step::Upload(target, self.random.below(self.pinned.len())),
            _ => {
                self.made += 1;
                Step::Make(self.made - 1, target, source)
            }
        }
    }

    /// Queues a step on a stream, or captures it.
    fn queue(&mut self, step: Step, number: usize) -> Result<()> {
        self.note(format_args!("  stream {number}: {step:?}"));
        let stream = self.streams[number].clone();
        let of = |number: usize| self.arrays[&number].on(&stream);
        match step {
            Step::Fill(target, value) => of(target)?.fill(value),
            Step::Multiply(target, value) => of(target)?.update_scalar(functions::Multiply, value),
            Step::Add(target, source) => of(target)?.update(functions::Add, &of(source)?),
            Step::Make(target, first, second) => {
                let made = of(first)?.zip(functions::Add, &of(second)?)?;
                self.arrays.insert(target, made);
                Ok(())
            }
            Step::Reverse(target, source) => {
                let middle = LENGTH as isize / 2;
                let backwards = SliceBounds { start: Some(middle - 1), stop: None, step: Some(-1) };
                let from = of(source)?.index(&half(backwards))?;
                let behind = SliceBounds { start: Some(middle), stop: None, step: None };
                of(target)?.index(&half(behind))?.assign(&from)
            }
            Step::Upload(target, buffer) => {
                let array = of(target)?;
                let memory = array.untyped().memory();
                let (to, from) = (array.as_device_pointer(), self.pinned[buffer].pointer() as u64);
                let _guard = AccessGuard::acquire(&stream, &[(memory, Access::Write)])?;
                let bytes = 8 * LENGTH;
                let copy = Transfer::linear(Direction::HostToDevice, to, from, bytes, false);
                // SAFETY: the guard orders the use of the array, which the program or a graph keeps
                // alive. Page-locked memory outlives all queued work, and is written only when no work
                // runs.
                unsafe { stream.transfer(&copy) }
            }
        }
    }

    fn do_now(&mut self, number: usize) -> Result<()> {
        let step = self.random_step();
        self.model.apply(step);
        self.queue(step, number)
    }

    /// Orders one stream after another. If the first one captures, the second one joins its capture.
    fn order(&mut self, earlier: usize, later: usize) -> Result<()> {
        self.note(format_args!("  stream {later} waits for stream {earlier}"));
        let event = self.context.device.create_event(EventOptions::ORDERING)?;
        self.streams[earlier].record(event.as_ref())?;
        self.streams[later].wait_event(event.as_ref())
    }

    /// Captures some steps on one to three streams.
    fn capture(&mut self) -> Result<()> {
        self.open_gates();
        let mut taking_part = vec![1 + self.random.below(self.streams.len() - 1)];
        let main = taking_part[0];
        self.note(format_args!("capture on stream {main}"));
        let (stream, mut steps) = (self.streams[main].clone(), Vec::new());
        let program = RefCell::new(self);
        let graph = capture(&stream, || {
            let program = &mut **program.borrow_mut();
            for _ in 0..1 + program.random.below(8) {
                program.captured_step(&mut taking_part, &mut steps)?;
            }
            for &side in &taking_part[1..] {
                program.order(side, main)?;
            }
            Ok(())
        })?;
        let this = program.into_inner();
        this.note(format_args!("the capture ends"));
        this.replays.push(Replay { graph, steps });
        // The first launch loads the kernels, and gives values to the arrays that the capture makes.
        this.launch(this.replays.len() - 1, main)
    }

    fn captured_step(&mut self, taking_part: &mut Vec<usize>, steps: &mut Vec<Step>) -> Result<()> {
        let number = taking_part[self.random.below(taking_part.len())];
        let other = 1 + self.random.below(self.streams.len() - 1);
        match self.random.below(6) {
            0 if taking_part.len() < 3 && !taking_part.contains(&other) => {
                taking_part.push(other);
                self.order(number, other)
            }
            1 => self.beside(taking_part, steps),
            _ => {
                let step = self.random_step();
                steps.push(step);
                self.queue(step, number)
            }
        }
    }

    /// Runs a step on a stream outside the capture, with arrays that have values. Only while a single
    /// stream captures: with several, a write outside the capture hides their uses from each other.
    fn beside(&mut self, taking_part: &[usize], steps: &[Step]) -> Result<()> {
        let &[main] = taking_part else { return Ok(()) };
        let number = self.random.below(self.streams.len());
        let is_barred = number == 0 && BLOCKING.contains(&main);
        let made = |it: &Step| matches!(it, Step::Make(..));
        if number == main || is_barred || steps.iter().any(made) {
            return Ok(());
        }
        self.note(format_args!("  beside the capture:"));
        self.do_now(number)
    }

    fn launch(&mut self, position: usize, number: usize) -> Result<()> {
        self.note(format_args!("stream {number}: graph {position} is launched"));
        let stream = self.streams[number].clone();
        let Replay { graph, steps } = &self.replays[position];
        steps.iter().for_each(|step| self.model.apply(*step));
        // SAFETY: the graph keeps the arrays alive; page-locked memory is written only when no work
        // runs.
        unsafe { graph.launch(&stream) }
    }

    fn step(&mut self) -> Result<()> {
        let number = self.random.below(self.streams.len());
        match self.random.below(16) {
            0 | 1 => self.capture(),
            2..=5 if !self.replays.is_empty() => {
                let position = self.random.below(self.replays.len());
                self.launch(position, number)
            }
            6 if !self.replays.is_empty() => {
                let position = self.random.below(self.replays.len());
                self.note(format_args!("graph {position} goes; the last takes its number"));
                self.replays.swap_remove(position);
                Ok(())
            }
            7 if self.arrays.len() > 2 => {
                let target = self.pick();
                self.note(format_args!("array {target} is dropped"));
                self.arrays.remove(&target);
                Ok(())
            }
            8 => {
                self.open_gates();
                self.context.device.synchronize()?;
                let buffer = self.random.below(self.pinned.len());
                self.write_pinned(buffer);
                Ok(())
            }
            9 => {
                let later = self.random.below(self.streams.len());
                self.order(number, later)
            }
            10 if self.gates.len() < 3 => {
                self.note(format_args!("stream {number} waits at a gate"));
                self.gates.push(Gate::on(self.streams[number].as_ref())?);
                Ok(())
            }
            11 => {
                self.note(format_args!("the gates open"));
                self.open_gates();
                Ok(())
            }
            _ => self.do_now(number),
        }
    }

    fn open_gates(&mut self) {
        self.gates.drain(..).for_each(|gate| gate.open());
    }

    fn run(&mut self) -> std::result::Result<(), String> {
        let steps = 8 + self.random.below(40);
        let done = (0..steps).try_for_each(|_| self.step());
        self.open_gates();
        // The program's end frees the page-locked memory.
        let waited = self.context.device.synchronize();
        done.and(waited).map_err(|error| error.to_string())?;
        for (number, array) in &self.arrays {
            let (found, expected) = (array.to_vec(), &self.model.arrays[number]);
            let found = found.map_err(|error| error.to_string())?;
            if found != *expected {
                return Err(format!("array {number} is {found:?}, not {expected:?}"));
            }
        }
        Ok(())
    }
}

fn launches_do_what_was_captured(context: &Context) -> Outcome {
    let first = setting("GPUARRAY_PROGRAM_SEED", 1);
    for seed in first..first + setting("GPUARRAY_PROGRAMS", 25) {
        let mut program = Program::new(context, seed)?;
        // Kernels are compiled and loaded before any work waits at a gate.
        for step in [Step::Fill(0, 2), Step::Multiply(0, 2), Step::Add(0, 1), Step::Reverse(0, 1)] {
            program.model.apply(step);
            program.queue(step, 1)?;
        }
        context.device.synchronize()?;
        if let Err(problem) = program.run() {
            panic!("program {seed}: {problem}\n{}", program.text);
        }
    }
    Ok(())
}

//! Random programs over several streams, compared with the numbers that program order gives.
//!
//! Work waits at gates that are opened later and in another order, so that a missing order between
//! conflicting uses shows. For a longer search:
//!
//! ```sh
//! GPUARRAY_PROGRAMS=100000 GPUARRAY_TEST_SECONDS=7200 \
//!   cargo test --release --test conformance -- random_streams
//! ```
//!
//! `GPUARRAY_PROGRAM_SEED` is the number of the first program (a failure prints the program's
//! number). `GPUARRAY_PROGRAM_ELEMENTS` is the length of the arrays: on a GPU, several million
//! elements make the work of different streams overlap.

use crate::context::{Context, Gate};
use crate::harness::{Outcome, tests};
use gpuarray::array::functions;
use gpuarray::{DeviceArray, IndexItem, Result, Stream};
use std::env;
use std::fmt::Write;
use std::sync::Arc;

tests![program_order_is_kept];

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

/// Random numbers from a seed ("SplitMix64": Steele, Lea, Flood, 2014).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }
}

/// An array, each half of which holds one repeated number.
struct Pair {
    array: DeviceArray<i64>,
    expected: [i64; 2],
}

impl Pair {
    fn check(&self, name: &str) -> std::result::Result<(), String> {
        let values = self.array.to_vec().map_err(|error| error.to_string())?;
        let half = values.len() / 2;
        for (position, &value) in values.iter().enumerate() {
            let expected = self.expected[usize::from(position >= half)];
            if value != expected {
                return Err(format!("element {position} of {name} is {value}, not {expected}"));
            }
        }
        Ok(())
    }
}

struct Program<'a> {
    context: &'a Context,
    random: Random,
    streams: Vec<Arc<dyn Stream>>,
    arrays: Vec<Pair>,
    gates: Vec<Gate>,
    half: usize,
    /// The steps so far, for the report of a failure.
    text: String,
}

impl Program<'_> {
    fn new(context: &Context, seed: u64, half: usize) -> Result<Program<'_>> {
        let mut random = Random(seed);
        let mut streams = vec![context.device.default_stream()];
        for _ in 0..1 + random.below(3) {
            streams.push(match random.below(3) {
                0 => context.blocking_stream()?,
                _ => context.stream()?,
            });
        }
        let (arrays, gates, text) = (Vec::new(), Vec::new(), String::new());
        Ok(Program { context, random, streams, arrays, gates, half, text })
    }

    fn note(&mut self, done: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{done}");
    }

    /// Returns one of the arrays, for use on a stream.
    fn pick(&mut self, stream: &Arc<dyn Stream>) -> Result<(usize, DeviceArray<i64>, [i64; 2])> {
        let index = self.random.below(self.arrays.len());
        let pair = &self.arrays[index];
        Ok((index, pair.array.on(stream)?, pair.expected))
    }

    fn keep(&mut self, array: DeviceArray<i64>, expected: [i64; 2]) {
        self.arrays.push(Pair { array, expected });
    }

    fn make(&mut self) -> Result<()> {
        let value = self.random.below(1000) as i64;
        let number = self.random.below(self.streams.len());
        let array = DeviceArray::full(&self.context.device, &[2 * self.half], value)?;
        let array = array.on(&self.streams[number])?.copy()?;
        self.note(format_args!("stream {number}: array {} = {value}", self.arrays.len()));
        self.keep(array, [value; 2]);
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let number = self.random.below(self.streams.len());
        let stream = self.streams[number].clone();
        let value = self.random.below(9) as i64 + 2;
        let (target, mut array, mut expected) = self.pick(&stream)?;
        match self.random.below(10) {
            0 => {
                self.note(format_args!("stream {number}: array {target} = {value}"));
                array.fill(value)?;
                self.arrays[target].expected = [value; 2];
            }
            1 => {
                let side = self.random.below(2);
                self.note(format_args!("stream {number}: half {side} of {target} = {value}"));
                let half = self.half as isize;
                let items: IndexItem = if side == 0 { (..half).into() } else { (half..).into() };
                array.index(&[items])?.fill(value)?;
                self.arrays[target].expected[side] = value;
            }
            2 | 3 => {
                self.note(format_args!("stream {number}: array {target} += {value}"));
                array.update_scalar(functions::Add, value)?;
                let expected = &mut self.arrays[target].expected;
                expected.iter_mut().for_each(|it| *it = it.wrapping_add(value));
            }
            4 | 5 => {
                let (source, other, added) = self.pick(&stream)?;
                self.note(format_args!("stream {number}: array {target} += array {source}"));
                array.update(functions::Add, &other)?;
                let sums = [0, 1].map(|side| expected[side].wrapping_add(added[side]));
                self.arrays[target].expected = sums;
            }
            6 | 7 => {
                let (source, other, added) = self.pick(&stream)?;
                let made = self.arrays.len();
                self.note(format_args!(
                    "stream {number}: array {made} = array {target} + array {source}"
                ));
                let sum = array.zip(functions::Add, &other)?;
                expected = [0, 1].map(|side| expected[side].wrapping_add(added[side]));
                self.keep(sum, expected);
            }
            8 if self.arrays.len() > 2 => {
                self.note(format_args!("array {target} is dropped; the last takes its number"));
                self.arrays.swap_remove(target);
            }
            _ if self.gates.len() < 4 => {
                self.note(format_args!("stream {number}: waits at gate {}", self.gates.len()));
                self.gates.push(Gate::on(stream.as_ref())?);
            }
            _ => {
                let gate = self.random.below(self.gates.len());
                self.note(format_args!("gate {gate} opens; the last takes its number"));
                self.gates.swap_remove(gate).open();
            }
        }
        // Keeps the program's memory small.
        if self.arrays.len() > 8 {
            let target = self.random.below(self.arrays.len());
            self.note(format_args!("array {target} is dropped; the last takes its number"));
            self.arrays.swap_remove(target);
        }
        Ok(())
    }

    fn open_gates(&mut self) {
        while !self.gates.is_empty() {
            let gate = self.random.below(self.gates.len());
            self.gates.swap_remove(gate).open();
        }
    }

    fn run(&mut self) -> std::result::Result<(), String> {
        let mut run = || -> Result<()> {
            (0..3).try_for_each(|_| self.make())?;
            let steps = 4 + self.random.below(28);
            (0..steps).try_for_each(|_| self.step())
        };
        let result = run();
        self.open_gates();
        result.map_err(|error| error.to_string())?;
        let mut checks = self.arrays.iter().enumerate();
        checks.try_for_each(|(index, pair)| pair.check(&format!("array {index}")))
    }
}

fn program_order_is_kept(context: &Context) -> Outcome {
    let half = setting("GPUARRAY_PROGRAM_ELEMENTS", 600) as usize / 2;
    let first = setting("GPUARRAY_PROGRAM_SEED", 1);
    let programs = setting("GPUARRAY_PROGRAMS", 25);
    warm_up(context, half)?;
    for seed in first..first + programs {
        let mut program = Program::new(context, seed, half)?;
        if let Err(problem) = program.run() {
            panic!("program {seed}: {problem}\n{}", program.text);
        }
    }
    Ok(())
}

/// Compiles and loads the programs' kernels: doing so later may wait for all work, which may be
/// waiting at a gate.
fn warm_up(context: &Context, half: usize) -> Result<()> {
    let mut array = DeviceArray::<i64>::full(&context.device, &[2 * half], 1)?.copy()?;
    array.fill(2)?;
    array.index(&[(..half as isize).into()])?.fill(1)?;
    array.index(&[(half as isize..).into()])?.fill(1)?;
    array.update_scalar(functions::Add, 1)?;
    let other = array.copy()?;
    array.update(functions::Add, &other)?;
    array.zip(functions::Add, &other)?;
    let same = array.on(&context.device.default_stream())?;
    array.update(functions::Add, &same)?;
    array.zip(functions::Add, &same)?;
    context.device.synchronize()
}

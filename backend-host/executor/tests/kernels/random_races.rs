//! Random programs of reads, writes, atomic operations, fences and barriers. Compares the checks with a
//! search through all pairs of accesses and all paths between them.

use crate::units::load_checked;
use host_executor::{Allocation, Checking, Checks, Error, Kernel, Memory, Shape};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;

/// A kernel that interprets an array of words: an operation, and a cell of `a` or of shared memory.
const TEXT: &str = r#"
extern "C" __global__ void interpret(int *a, const int *program, int *sums, int steps) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < steps; ++i) {
        int word = program[(blockIdx.x * steps + i) * blockDim.x + t];
        int *cell = (word & 8 ? s : a) + (word >> 4);
        switch (word & 7) {
        case 1: sum += *cell; break;
        case 2: *cell = i; break;
        case 3: atomicAdd(cell, 1); break;
        case 4: __threadfence(); break;
        case 5: __syncthreads(); break;
        case 6: __syncwarp(); break;
        }
    }
    sums[blockIdx.x * blockDim.x + t] = sum;
}
"#;

const BLOCKS: usize = 3;
const THREADS: usize = 40;
const WARP: usize = 32;
const CELLS: usize = 160;
const LAST_CELL: usize = 63;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Read(Cell),
    Write(Cell),
    Add(Cell),
    Fence,
    Barrier,
    WarpBarrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    is_shared: bool,
    index: usize,
}

impl Step {
    fn word(self) -> i32 {
        let cell = |operation: i32, cell: Cell| {
            operation | i32::from(cell.is_shared) << 3 | (cell.index as i32) << 4
        };
        match self {
            Step::Nothing => 0,
            Step::Read(it) => cell(1, it),
            Step::Write(it) => cell(2, it),
            Step::Add(it) => cell(3, it),
            Step::Fence => 4,
            Step::Barrier => 5,
            Step::WarpBarrier => 6,
        }
    }

    /// Returns the cell, true if it is written, and true if the operation is atomic.
    fn access(self) -> Option<(Cell, bool, bool)> {
        match self {
            Step::Read(cell) => Some((cell, false, false)),
            Step::Write(cell) => Some((cell, true, false)),
            Step::Add(cell) => Some((cell, true, true)),
            _ => None,
        }
    }
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct At {
    block: usize,
    step: usize,
    thread: usize,
}

/// A seeded random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }
}

struct Program {
    steps: usize,
    /// Indexed by [`Program::number`].
    all: Vec<Step>,
}

impl Program {
    fn random(random: &mut Random) -> Program {
        let steps = 2 + random.below(7);
        let mut program = Program { steps, all: vec![Step::Nothing; BLOCKS * steps * THREADS] };
        for step in 0..steps {
            // Mostly, all blocks do the same.
            let common = Pattern::random(random);
            for block in 0..BLOCKS {
                let pattern = if random.below(8) == 0 { Pattern::random(random) } else { common };
                for thread in 0..THREADS {
                    let at = program.number(At { block, step, thread });
                    program.all[at] = pattern.step(block, thread);
                }
            }
        }
        program
    }

    fn number(&self, At { block, step, thread }: At) -> usize {
        (block * self.steps + step) * THREADS + thread
    }

    fn at(&self, at: At) -> Step {
        self.all[self.number(at)]
    }

    fn places(&self) -> impl Iterator<Item = At> {
        let steps = self.steps;
        (0..BLOCKS * steps * THREADS).map(move |number| At {
            block: number / THREADS / steps,
            step: number / THREADS % steps,
            thread: number % THREADS,
        })
    }

    /// Returns all pairs of accesses that race.
    fn races(&self) -> Vec<(At, At)> {
        let before = self.order();
        let accesses: Vec<_> =
            self.places().filter_map(|at| Some((at, self.at(at).access()?))).collect();
        let is_ordered = |a: At, b: At| before[self.number(b)].contains(self.number(a));
        let mut races = Vec::new();
        for (index, &(a, (cell, a_writes, a_is_atomic))) in accesses.iter().enumerate() {
            for &(b, (other, b_writes, b_is_atomic)) in &accesses[index + 1..] {
                let is_same = cell == other && (!cell.is_shared || a.block == b.block);
                let is_same_thread = (a.block, a.thread) == (b.block, b.thread);
                if !is_same || is_same_thread || !(a_writes || b_writes) {
                    continue;
                }
                if a_is_atomic && b_is_atomic || is_ordered(a, b) || is_ordered(b, a) {
                    continue;
                }
                // An atomic operation is ordered before anything that a later atomic operation on its
                // variable is ordered before.
                let has_seen = |first: At, then: At| {
                    accesses.iter().any(|&(later, (it, _, is_atomic))| {
                        let is_later = (later.block, later.step) > (first.block, first.step);
                        let is_then = is_ordered(later, then)
                            || (later.block, later.thread, later.step)
                                == (then.block, then.thread, then.step);
                        is_atomic && it == cell && is_later && is_then
                    })
                };
                if a_is_atomic && has_seen(a, b) || b_is_atomic && has_seen(b, a) {
                    continue;
                }
                races.push((a, b));
            }
        }
        races
    }

    /// Returns, for each step, all steps before it. The steps are visited in execution order: block by block,
    /// and within a block step by step.
    fn order(&self) -> Vec<Set> {
        let count = self.all.len();
        let mut before = vec![Set::new(count); count];
        let mut published: HashMap<usize, Vec<usize>> = HashMap::new();
        for block in 0..BLOCKS {
            let mut last: Vec<Set> = vec![Set::new(count); THREADS];
            let mut fence: Vec<Option<usize>> = vec![None; THREADS];
            for step in 0..self.steps {
                let numbers: Vec<usize> =
                    (0..THREADS).map(|thread| self.number(At { block, step, thread })).collect();
                for (thread, &number) in numbers.iter().enumerate() {
                    match self.all[number] {
                        Step::Fence => fence[thread] = Some(number),
                        Step::Add(cell) if !cell.is_shared => {
                            for &fence in published.get(&cell.index).into_iter().flatten() {
                                let known = before[fence].clone();
                                last[thread].join(&known);
                                last[thread].insert(fence);
                            }
                            let fence = fence[thread];
                            published.entry(cell.index).or_default().extend(fence);
                        }
                        _ => {}
                    }
                }
                for first in (0..THREADS).step_by(WARP) {
                    let warp = first..THREADS.min(first + WARP);
                    if self.all[numbers[first]] == Step::WarpBarrier {
                        join(&mut last[warp]);
                    }
                }
                if self.all[numbers[0]] == Step::Barrier {
                    join(&mut last);
                    // The knowledge covered by one thread's fence is shared by all: any later atomic
                    // operation publishes it.
                    let latest = fence.iter().flatten().max().copied();
                    fence.fill(latest);
                }
                for (thread, &number) in numbers.iter().enumerate() {
                    before[number] = last[thread].clone();
                    last[thread].insert(number);
                }
            }
        }
        before
    }
}

/// Gives all sets the elements of all.
fn join(sets: &mut [Set]) {
    let mut all = sets[0].clone();
    sets.iter().for_each(|set| all.join(set));
    sets.fill(all);
}

/// The operations of a block's threads in one step. Only the first thread of a block has fences and atomic
/// operations on global memory, so that their order is the order of the blocks.
#[derive(Clone, Copy)]
enum Pattern {
    Barrier,
    WarpBarrier,
    /// Each thread writes or reads the cell at this distance from its own.
    Each {
        shift: usize,
        writes: bool,
        is_shared: bool,
    },
    /// All threads read the same cell.
    Common {
        is_shared: bool,
    },
    /// One thread writes that cell.
    One {
        thread: usize,
        is_shared: bool,
    },
    /// All threads add to a cell of the block.
    Count,
    Fence,
    Add {
        cell: usize,
    },
    /// The first thread reads the cell of another block.
    Other {
        block: usize,
    },
}

impl Pattern {
    fn random(random: &mut Random) -> Pattern {
        let is_shared = random.below(2) == 0;
        match random.below(16) {
            0..=3 => Pattern::Barrier,
            4..=5 => Pattern::WarpBarrier,
            6..=9 => {
                let shift = [0, 0, 1, 16][random.below(4)];
                Pattern::Each { shift, writes: random.below(2) == 0, is_shared }
            }
            10 => Pattern::Common { is_shared: true },
            11 => Pattern::One { thread: random.below(THREADS), is_shared },
            12 => Pattern::Count,
            13 => Pattern::Fence,
            14 => Pattern::Add { cell: random.below(2) },
            _ => Pattern::Other { block: random.below(BLOCKS) },
        }
    }

    fn step(self, block: usize, thread: usize) -> Step {
        let base = |is_shared: bool| if is_shared { 0 } else { block * THREADS };
        let is_first = thread == 0;
        match self {
            Pattern::Barrier => Step::Barrier,
            Pattern::WarpBarrier => Step::WarpBarrier,
            Pattern::Each { shift, writes, is_shared } => {
                let index = base(is_shared) + (thread + shift) % THREADS;
                let cell = Cell { is_shared, index };
                if writes { Step::Write(cell) } else { Step::Read(cell) }
            }
            Pattern::Common { is_shared } => Step::Read(Cell {
                is_shared,
                index: base(is_shared) + LAST_CELL * usize::from(is_shared),
            }),
            Pattern::One { thread: one, is_shared } if one == thread => {
                let last = if is_shared { LAST_CELL } else { one };
                Step::Write(Cell { is_shared, index: base(is_shared) + last })
            }
            Pattern::Count => Step::Add(Cell { is_shared: true, index: LAST_CELL - 1 }),
            Pattern::Fence if is_first => Step::Fence,
            Pattern::Add { cell } if is_first => {
                Step::Add(Cell { is_shared: false, index: BLOCKS * THREADS + cell })
            }
            Pattern::Other { block } if is_first => {
                Step::Read(Cell { is_shared: false, index: block * THREADS })
            }
            _ => Step::Nothing,
        }
    }
}

/// A set of small numbers.
#[derive(Clone, Debug)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }

    fn join(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

struct Arrays(Vec<Range<usize>>);

impl Memory for Arrays {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        self.0.iter().find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        None
    }
}

/// Runs a program, and returns the message about a race.
fn run(kernel: &Kernel, program: &Program) -> Option<String> {
    let words: Vec<i32> = program.all.iter().map(|step| step.word()).collect();
    let (mut cells, mut sums) = (vec![0_i32; CELLS], vec![0_i32; BLOCKS * THREADS]);
    let range = |array: &[i32]| {
        let Range { start, end } = array.as_ptr_range();
        start as usize..end as usize
    };
    let memory = Arrays(vec![range(&cells), range(&words), range(&sums)]);
    let checks = Checks { uninitialised: false, ..Checks::ALL };
    let checking = Checking { checks, memory: &memory, shared_bytes: 0 };
    let (mut a, mut b, mut c) = (cells.as_mut_ptr(), words.as_ptr(), sums.as_mut_ptr());
    let mut steps = program.steps as i32;
    let arguments: [*mut c_void; 4] =
        [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast(), (&raw mut steps).cast()];
    let (grid, block) = ([BLOCKS as u32, 1, 1], [THREADS as u32, 1, 1]);
    let shape = Shape { grid, block, cooperative: false };
    // SAFETY: the kernel has these parameters, and its cells are in the arrays.
    match unsafe { kernel.launch_checked(&shape, &checking, &arguments, &|| false) } {
        Ok(()) => None,
        Err(Error::Kernel(failure)) => Some(failure.message),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the block and thread of the later access and of the earlier one, as named in a message.
fn named(message: &str) -> ((usize, usize), (usize, usize)) {
    let number = |behind: &str| {
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let (own, other) = message.split_once("in a race with").expect("a race");
    let block = number(own.split("block (").nth(1).expect("a block"));
    let thread = number(own.split("thread (").nth(1).expect("a thread"));
    let other_block = other.split("block (").nth(1).map_or(block, number);
    let other_thread = number(other.split("thread (").nth(1).expect("a thread"));
    ((block, thread), (other_block, other_thread))
}

#[test]
fn races_are_those_that_a_search_through_all_pairs_finds() {
    let library = load_checked(TEXT);
    let kernel = Kernel::find(&library, "interpret").expect("the kernel");
    let mut counts = [0; 2];
    for seed in 1..=400 {
        let mut random = Random(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15));
        let program = Program::random(&mut random);
        let (races, found) = (program.races(), run(&kernel, &program));
        counts[usize::from(races.is_empty())] += 1;
        let Some(message) = found else {
            assert!(races.is_empty(), "seed {seed}: nothing was found of {:?}", races[0]);
            continue;
        };
        let (own, other) = named(&message);
        let is_pair = |(a, b): &(At, At)| {
            let [a, b] = [a, b].map(|at| (at.block, at.thread));
            (a, b) == (own, other) || (b, a) == (own, other)
        };
        assert!(races.iter().any(is_pair), "seed {seed}: {message}: {:?}", races.first());
    }
    assert!(counts.iter().all(|count| *count > 80), "{counts:?}");
}

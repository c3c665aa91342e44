//! Random kernels whose threads exchange data without barriers, and a model in which all threads of a block
//! execute each statement before the next one.

use super::{BLOCKS, THREADS};
use crate::units::Random;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    Own,
    /// The index of a thread this many places further on.
    Next(usize),
    Constant(usize),
    Warp,
    /// The index of the thread at the same distance from the end.
    Mirrored,
    /// The index of the thread whose number differs in one bit.
    Paired(usize),
}

/// The way in which a statement names the element that it reads, in addition to its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Name,
    /// By a pointer to a later element.
    Pointer(usize),
    Address,
    Function,
}

/// The condition or loop around a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behind {
    Nothing,
    Bound(usize),
    /// An odd value of a variable.
    Odd(usize),
    /// A comparison of the two elements.
    Less,
    /// A loop over this many elements, more than there are threads.
    Rounds(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Array {
    /// The shared memory of the block.
    Shared,
    /// The block's part of the data.
    Data,
}

/// The thread that executes statements alone: one of the block, or one lane of each warp.
#[derive(Clone, Copy, Debug)]
pub(crate) enum One {
    Thread(usize),
    Lane(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Barrier,
    /// Reads an element into a variable of the thread.
    Read(usize, Array, Index),
    /// Writes a variable to an element. No two threads write to the same one.
    Write(Array, Index, usize),
    /// Reads an element and the thread's own element, and writes the latter.
    Update(Array, Index, By, Behind, usize),
    /// Adds to an element of shared memory.
    Add(Index, usize),
    Mix(usize, usize),
    Alone(One, Vec<Statement>),
    Below(usize, Box<Statement>),
    Repeated(usize, Vec<Statement>),
}

/// A function that the kernels call.
pub(crate) const FUNCTION: &str =
    "__device__ int element(const int *all, int at) { return all[at]; }\n";

pub(crate) const VARIABLES: usize = 3;

/// Generates a list of statements. Lists that `one` executes alone are not nested.
pub(crate) fn list(random: &mut Random, one: Option<One>, depth: usize) -> Vec<Statement> {
    let count = if one.is_some() { 1 + random.below(3) } else { 3 + random.below(6) };
    (0..count).map(|_| statement(random, one, depth)).collect()
}

fn statement(random: &mut Random, one: Option<One>, depth: usize) -> Statement {
    let variable = random.below(VARIABLES);
    let array = [Array::Shared, Array::Data][random.below(2)];
    let any = [
        Index::Own,
        Index::Next(1 + random.below(THREADS - 1)),
        Index::Constant(random.below(THREADS)),
        Index::Warp,
    ][random.below(4)];
    let own = match one {
        Some(One::Thread(_)) => any,
        Some(One::Lane(_)) => Index::Warp,
        None => [Index::Own, Index::Next(1 + random.below(THREADS - 1))][random.below(2)],
    };
    // A list that one lane of each warp executes counts as one statement, so other warps must not access its
    // elements.
    let read = if matches!(one, Some(One::Lane(_))) { own } else { any };
    // In global memory, only elements that threads share are handled.
    let is_known = |it: &Index| matches!(it, Index::Constant(_) | Index::Warp);
    let array_of = |index: &Index, array| match array {
        Array::Data if !is_known(index) && !matches!(index, Index::Own) => Array::Shared,
        array => array,
    };
    match random.below(if one.is_some() { 6 } else { 15 }) {
        0..=2 => Statement::Read(variable, array_of(&read, array), read),
        3 | 4 => Statement::Write(array_of(&own, array), own, variable),
        5 => Statement::Mix(variable, random.below(VARIABLES)),
        6 => Statement::Barrier,
        7 => Statement::Add(any, variable),
        8 | 9 => {
            let one = match random.below(2) {
                0 => One::Thread(random.below(THREADS)),
                _ => One::Lane(random.below(32)),
            };
            Statement::Alone(one, list(random, Some(one), depth))
        }
        10 => {
            let inner = match random.below(2) {
                0 => Statement::Read(variable, array_of(&any, array), any),
                _ => Statement::Write(array_of(&own, array), own, variable),
            };
            Statement::Below(1 + random.below(THREADS), Box::new(inner))
        }
        11 if depth < 2 => Statement::Repeated(1 + random.below(3), list(random, None, depth + 1)),
        11 => Statement::Barrier,
        _ => update(random, array, variable),
    }
}

fn update(random: &mut Random, array: Array, variable: usize) -> Statement {
    let index = [
        Index::Next(1 + random.below(THREADS - 1)),
        Index::Constant(random.below(THREADS)),
        Index::Warp,
        Index::Mirrored,
        Index::Paired(1 << random.below(5)),
    ][random.below(5)];
    let behind = [
        Behind::Nothing,
        Behind::Bound(1 + random.below(THREADS)),
        Behind::Odd(variable),
        Behind::Less,
        Behind::Rounds(1 + random.below(2 * THREADS)),
    ][random.below(5)];
    let by = [By::Name, By::Pointer(random.below(8)), By::Address, By::Function][random.below(4)];
    Statement::Update(array, index, by, behind, random.below(3))
}

impl Index {
    fn text(self) -> String {
        match self {
            Index::Own => "t".to_owned(),
            Index::Next(by) => format!("(t + {by}) % {THREADS}"),
            Index::Constant(at) => at.to_string(),
            Index::Warp => "t / 32".to_owned(),
            Index::Mirrored => format!("{} - t", THREADS - 1),
            Index::Paired(by) => format!("(t ^ {by})"),
        }
    }

    fn of(self, thread: usize) -> usize {
        match self {
            Index::Own => thread,
            Index::Next(by) => (thread + by) % THREADS,
            Index::Constant(at) => at,
            Index::Warp => thread / 32,
            Index::Mirrored => THREADS - 1 - thread,
            Index::Paired(by) => thread ^ by,
        }
    }
}

fn element(array: Array, index: Index) -> String {
    match array {
        Array::Shared => format!("s[{}]", index.text()),
        Array::Data => format!("data[blockIdx.x * {THREADS} + {}]", index.text()),
    }
}

/// Returns the text of an update. With a loop in rounds, `u` stands for shared memory, and the thread's index
/// is its index there.
fn update_text(array: Array, index: Index, by: By, behind: Behind, operation: usize) -> String {
    let (name, own) = match (array, behind) {
        (_, Behind::Rounds(_)) => ("u".to_owned(), "u[i]".to_owned()),
        (Array::Shared, _) => ("s".to_owned(), "s[t]".to_owned()),
        (Array::Data, _) => ("mine".to_owned(), "mine[t]".to_owned()),
    };
    let mut at = index.text();
    if let Behind::Rounds(_) = behind {
        at = match index {
            Index::Next(by) => format!("(i + {by}) % {}", 2 * THREADS),
            Index::Mirrored => format!("{} - i", 2 * THREADS - 1),
            Index::Paired(by) => format!("(i ^ {by})"),
            Index::Own | Index::Constant(_) | Index::Warp => at,
        };
    }
    let mut before = String::new();
    let other = match by {
        By::Name => format!("{name}[{at}]"),
        By::Pointer(on) => {
            before = format!("int *const p = {name} + {on};");
            format!("p[{at} - {on}]")
        }
        By::Address => format!("*({name} + ({at}))"),
        By::Function => format!("element({name}, {at})"),
    };
    let work = match operation {
        0 => format!("{own} = {own} * 3 - {other};"),
        1 => format!("{own} += {other};"),
        _ => format!("{own} = {other} ^ 5;"),
    };
    let whole = match behind {
        Behind::Nothing => work,
        Behind::Bound(bound) => format!("if (t < {bound}) {work}"),
        Behind::Odd(variable) => format!("if (v{variable} & 1) {{ {work} }}"),
        Behind::Less => format!("if ({own} < {other}) {work}"),
        Behind::Rounds(count) => {
            format!("for (int i = t; i < {count}; i += blockDim.x) {{ {work} }}")
        }
    };
    match behind {
        Behind::Rounds(_) => format!(
            "{{ __syncthreads(); u[t] = s[t]; u[t + {THREADS}] = s[{} - t]; __syncthreads(); {before} {whole} \
             __syncthreads(); s[t] = u[t] ^ u[t + {THREADS}]; }}",
            THREADS - 1
        ),
        // For other elements of global memory, the order of reads is guaranteed only by barriers.
        _ => format!("{{ __syncthreads(); {before} {whole} __syncthreads(); }}"),
    }
}

/// Returns the text of a kernel.
pub(crate) fn text(number: usize, statements: &[Statement]) -> String {
    let mut text = format!(
        "extern \"C\" __global__ void kernel_{number}(int *out, int *data) {{\n\
         __shared__ int s[{THREADS}], u[{}];\n\
         int *const mine = data + blockIdx.x * {THREADS};\n\
         const int t = threadIdx.x;\n\
         int v0 = t, v1 = 7, v2 = t * 3;\n\
         s[t] = t;\n__syncthreads();\n",
        2 * THREADS
    );
    write(&mut text, statements, 0);
    let _ = writeln!(text, "out[blockIdx.x * {THREADS} + t] = v0 ^ v1 * 5 ^ v2 * 7;\n}}");
    text
}

fn write(text: &mut String, statements: &[Statement], depth: usize) {
    for statement in statements {
        let _ = match statement {
            Statement::Barrier => writeln!(text, "__syncthreads();"),
            Statement::Read(to, array, index) => {
                writeln!(text, "v{to} = {};", element(*array, *index))
            }
            Statement::Write(array, index, from) => {
                writeln!(text, "{} = v{from} + t;", element(*array, *index))
            }
            Statement::Update(array, index, by, behind, operation) => {
                writeln!(text, "{}", update_text(*array, *index, *by, *behind, *operation))
            }
            Statement::Add(index, from) => {
                writeln!(text, "atomicAdd(&{}, v{from});", element(Array::Shared, *index))
            }
            Statement::Mix(to, from) => writeln!(text, "v{to} = v{to} * 31 + v{from} + 1;"),
            Statement::Alone(one, inner) => {
                let _ = match one {
                    One::Thread(thread) => writeln!(text, "if (t == {thread}) {{"),
                    One::Lane(lane) => writeln!(text, "if (t % 32 == {lane}) {{"),
                };
                write(text, inner, depth);
                writeln!(text, "}}")
            }
            Statement::Below(bound, inner) => {
                let _ = writeln!(text, "if (t < {bound}) {{");
                write(text, std::slice::from_ref(inner), depth);
                writeln!(text, "}}")
            }
            Statement::Repeated(times, inner) => {
                let _ = writeln!(text, "for (int k{depth} = 0; k{depth} < {times}; ++k{depth}) {{");
                write(text, inner, depth + 1);
                writeln!(text, "}}")
            }
        };
    }
}

struct Model<'d> {
    variables: Vec<[i32; VARIABLES]>,
    shared: Vec<i32>,
    data: &'d mut [i32],
}

/// Returns the values that a kernel writes to `out`, and updates the data.
pub(crate) fn run(statements: &[Statement], data: &mut [i32]) -> Vec<i32> {
    let mut out = Vec::new();
    for block in 0..BLOCKS {
        let mut model = Model {
            variables: (0..THREADS as i32).map(|t| [t, 7, t * 3]).collect(),
            shared: (0..THREADS as i32).collect(),
            data: &mut data[block * THREADS..(block + 1) * THREADS],
        };
        let all: Vec<usize> = (0..THREADS).collect();
        model.list(statements, &all);
        out.extend(
            model.variables.iter().map(|[a, b, c]| a ^ b.wrapping_mul(5) ^ c.wrapping_mul(7)),
        );
    }
    out
}

impl Model<'_> {
    fn list(&mut self, statements: &[Statement], threads: &[usize]) {
        statements.iter().for_each(|it| self.one(it, threads));
    }

    fn array(&mut self, array: Array) -> &mut [i32] {
        match array {
            Array::Shared => &mut self.shared,
            Array::Data => self.data,
        }
    }

    /// All threads read before one of them writes.
    fn update(
        &mut self,
        array: Array,
        index: Index,
        behind: Behind,
        operation: usize,
        threads: &[usize],
    ) {
        let compute = |own: i32, other: i32| match operation {
            0 => own.wrapping_mul(3).wrapping_sub(other),
            1 => own.wrapping_add(other),
            _ => other ^ 5,
        };
        if let Behind::Rounds(count) = behind {
            let mut both: Vec<i32> = self.shared.clone();
            both.extend(self.shared.iter().rev());
            let at = |i: usize| match index {
                Index::Next(by) => (i + by) % (2 * THREADS),
                Index::Mirrored => 2 * THREADS - 1 - i,
                Index::Paired(by) => i ^ by,
                other => other.of(i % THREADS),
            };
            for round in 0..count.div_ceil(THREADS) {
                let before = both.clone();
                for i in (0..THREADS).map(|t| round * THREADS + t).filter(|i| *i < count) {
                    both[i] = compute(before[i], before[at(i)]);
                }
            }
            return (0..THREADS).for_each(|t| self.shared[t] = both[t] ^ both[t + THREADS]);
        }
        let before = self.array(array).to_vec();
        for &thread in threads {
            let (own, other) = (before[thread], before[index.of(thread)]);
            let comes = match behind {
                Behind::Nothing | Behind::Rounds(_) => true,
                Behind::Bound(bound) => thread < bound,
                Behind::Odd(variable) => self.variables[thread][variable] & 1 == 1,
                Behind::Less => own < other,
            };
            if comes {
                self.array(array)[thread] = compute(own, other);
            }
        }
    }

    fn one(&mut self, statement: &Statement, threads: &[usize]) {
        match statement {
            Statement::Barrier => {}
            Statement::Read(to, array, index) => {
                for &thread in threads {
                    self.variables[thread][*to] = self.array(*array)[index.of(thread)];
                }
            }
            Statement::Write(array, index, from) => {
                for &thread in threads {
                    let value = self.variables[thread][*from].wrapping_add(thread as i32);
                    self.array(*array)[index.of(thread)] = value;
                }
            }
            Statement::Update(array, index, _, behind, operation) => {
                self.update(*array, *index, *behind, *operation, threads);
            }
            Statement::Add(index, from) => {
                for &thread in threads {
                    let value = self.variables[thread][*from];
                    let place = &mut self.shared[index.of(thread)];
                    *place = place.wrapping_add(value);
                }
            }
            Statement::Mix(to, from) => {
                for &thread in threads {
                    let [by, own] = [*from, *to].map(|it| self.variables[thread][it]);
                    let mixed = own.wrapping_mul(31).wrapping_add(by).wrapping_add(1);
                    self.variables[thread][*to] = mixed;
                }
            }
            Statement::Alone(one, inner) => {
                let is_one = |it: &&usize| match one {
                    One::Thread(thread) => **it == *thread,
                    One::Lane(lane) => **it % 32 == *lane,
                };
                let those: Vec<usize> = threads.iter().filter(is_one).copied().collect();
                self.list(inner, &those);
            }
            Statement::Below(bound, inner) => {
                let those: Vec<usize> =
                    threads.iter().filter(|it| **it < *bound).copied().collect();
                self.one(inner, &those);
            }
            Statement::Repeated(times, inner) => {
                (0..*times).for_each(|_| self.list(inner, threads));
            }
        }
    }
}

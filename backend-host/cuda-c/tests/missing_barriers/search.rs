//! Random kernels whose threads exchange data without barriers, and what they compute if each statement is executed by
//! all threads of a block before the next one.

use super::units::Random;
use super::{BLOCKS, THREADS};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    Own,
    /// That of a thread some places further on.
    Next(usize),
    Constant(usize),
    Warp,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Array {
    /// Of the block.
    Shared,
    /// The block's part of the data.
    Data,
}

/// Which thread executes statements alone: one of the block, or one lane of each warp.
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
    /// Writes a variable to an element: no two threads to the same.
    Write(Array, Index, usize),
    /// Adds to an element of shared memory.
    Add(Index, usize),
    Mix(usize, usize),
    Alone(One, Vec<Statement>),
    Below(usize, Box<Statement>),
    Repeated(usize, Vec<Statement>),
}

pub(crate) const VARIABLES: usize = 3;

/// Makes a list of statements; those that `one` executes alone have no others in them.
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
    // A list that one lane of each warp executes is one statement: no other warp has a part in its elements.
    let read = if matches!(one, Some(One::Lane(_))) { own } else { any };
    // Global memory counts where threads share an element.
    let is_known = |it: &Index| matches!(it, Index::Constant(_) | Index::Warp);
    let array_of = |index: &Index, array| match array {
        Array::Data if !is_known(index) && !matches!(index, Index::Own) => Array::Shared,
        array => array,
    };
    match random.below(if one.is_some() { 6 } else { 12 }) {
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
        _ if depth < 2 => Statement::Repeated(1 + random.below(3), list(random, None, depth + 1)),
        _ => Statement::Barrier,
    }
}

impl Index {
    fn text(self) -> String {
        match self {
            Index::Own => "t".to_owned(),
            Index::Next(by) => format!("(t + {by}) % {THREADS}"),
            Index::Constant(at) => at.to_string(),
            Index::Warp => "t / 32".to_owned(),
        }
    }

    fn of(self, thread: usize) -> usize {
        match self {
            Index::Own => thread,
            Index::Next(by) => (thread + by) % THREADS,
            Index::Constant(at) => at,
            Index::Warp => thread / 32,
        }
    }
}

fn element(array: Array, index: Index) -> String {
    match array {
        Array::Shared => format!("s[{}]", index.text()),
        Array::Data => format!("data[blockIdx.x * {THREADS} + {}]", index.text()),
    }
}

/// The text of a kernel.
pub(crate) fn text(number: usize, statements: &[Statement]) -> String {
    let mut text = format!(
        "extern \"C\" __global__ void kernel_{number}(int *out, int *data) {{\n\
         __shared__ int s[{THREADS}];\n\
         const int t = threadIdx.x;\n\
         int v0 = t, v1 = 7, v2 = t * 3;\n\
         s[t] = t;\n__syncthreads();\n"
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

/// What a kernel writes to `out`; the data is changed.
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

//! A model of a kernel that runs each statement for all threads of a block before the next one.

use super::tree::{Kind, Statement, Tree, Value};

/// The number of elements of the kernels' data.
pub(crate) const DATA: usize = 256;

pub(crate) fn data(index: usize) -> i32 {
    (index as i32).wrapping_mul(0x9e37_79b1_u32 as i32) >> 7
}

/// Runs a kernel, and returns the values that it writes: a number for each thread, then one for each element
/// of the data.
pub(crate) fn run(tree: &Tree, grid: [usize; 3], block: [usize; 3], numbers: [i32; 2]) -> Vec<i32> {
    let mut results = Vec::new();
    let mut written = vec![0; DATA];
    let blocks = grid.iter().product();
    for at in 0..blocks {
        let threads: usize = block.iter().product();
        let mut model = Model {
            grid,
            block,
            at,
            numbers,
            variables: vec![vec![[0; 4]; tree.kinds.len()]; threads],
            kinds: &tree.kinds,
            shared: vec![0x5a5a_5a5a; 512],
            results: vec![0; threads],
            written,
        };
        let mut active = vec![true; threads];
        model.all(&tree.statements, &mut active, &mut Left::none(threads));
        for thread in (0..threads).filter(|&it| active[it]) {
            model.results[thread] = model.value(&tree.result, thread);
        }
        results.extend(&model.results);
        written = model.written;
    }
    results.extend(written);
    results
}

/// The threads that have left the body of a loop.
struct Left {
    by_break: Vec<bool>,
    by_continue: Vec<bool>,
}

impl Left {
    fn none(threads: usize) -> Left {
        Left { by_break: vec![false; threads], by_continue: vec![false; threads] }
    }
}

struct Model<'t> {
    kinds: &'t [Kind],
    grid: [usize; 3],
    block: [usize; 3],
    at: usize,
    numbers: [i32; 2],
    variables: Vec<Vec<[i32; 4]>>,
    shared: Vec<i32>,
    results: Vec<i32>,
    written: Vec<i32>,
}

fn on(mask: &[bool]) -> Vec<usize> {
    (0..mask.len()).filter(|&it| mask[it]).collect()
}

fn apply(operator: &str, a: i32, b: i32) -> i32 {
    match operator {
        "=" => b,
        "+" | "+=" => a.wrapping_add(b),
        "-" | "-=" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "&" => a & b,
        "^" | "^=" => a ^ b,
        "<" => i32::from(a < b),
        "==" => i32::from(a == b),
        other => unreachable!("no operator {other}"),
    }
}

impl Model<'_> {
    fn threads(&self) -> usize {
        self.variables.len()
    }

    fn index(&self, which: usize, along: usize, thread: usize) -> usize {
        let split =
            |it: usize, by: [usize; 3]| [it % by[0], it / by[0] % by[1], it / by[0] / by[1]];
        match which {
            0 => split(thread, self.block)[along],
            1 => split(self.at, self.grid)[along],
            2 => self.block[along],
            _ => self.grid[along],
        }
    }

    fn value(&self, value: &Value, thread: usize) -> i32 {
        match value {
            Value::Number(number) => *number,
            Value::Parameter(number) => self.numbers[*number],
            Value::Index(which, along) => self.index(*which, *along, thread) as i32,
            Value::Thread => thread as i32,
            Value::Variable(id) => self.variables[thread][*id][0],
            Value::Element(id, at) => {
                self.variables[thread][*id][(self.value(at, thread) & 3) as usize]
            }
            Value::OwnShared => self.shared[thread],
            Value::Binary(operator, a, b) => {
                apply(operator, self.value(a, thread), self.value(b, thread))
            }
            Value::Choice(a, b, c) => {
                self.value(if self.value(a, thread) != 0 { b } else { c }, thread)
            }
            Value::Call(a, b) => {
                let (a, b) = (self.value(a, thread), self.value(b, thread));
                a.wrapping_mul(31) ^ b.wrapping_add(a & 7)
            }
        }
    }

    fn all(&mut self, statements: &[Statement], active: &mut [bool], left: &mut Left) {
        for statement in statements {
            self.one(statement, active, left);
        }
    }

    fn set(&mut self, active: &[bool], id: usize, make: impl Fn(&Model<'_>, usize, i32) -> i32) {
        for thread in on(active) {
            let value = make(self, thread, self.variables[thread][id][0]);
            self.variables[thread][id][0] = self.kinds[id].stored(value);
        }
    }

    fn one(&mut self, statement: &Statement, active: &mut [bool], left: &mut Left) {
        match statement {
            Statement::Barrier => {}
            Statement::Declare { id, value, .. } => {
                if let Some(value) = value {
                    self.set(active, *id, |it, thread, _| it.value(value, thread));
                }
            }
            Statement::Array { id, values } => {
                if let Some([a, b]) = values {
                    for thread in on(active) {
                        let (a, b) = (self.value(a, thread), self.value(b, thread));
                        self.variables[thread][*id] = [a, b, 0, 0];
                    }
                }
            }
            Statement::Assign(id, _, operator, value) => {
                self.set(active, *id, |it, thread, old| {
                    apply(operator, old, it.value(value, thread))
                });
            }
            Statement::Step(id, operator) => {
                let by = if *operator == "++" { 1 } else { -1 };
                self.set(active, *id, |_, _, old| old.wrapping_add(by));
            }
            Statement::AssignElement(id, at, operator, value) => {
                for thread in on(active) {
                    let at = (self.value(at, thread) & 3) as usize;
                    let value = self.value(value, thread);
                    let element = &mut self.variables[thread][*id][at];
                    *element = apply(operator, *element, value);
                }
            }
            Statement::AssignShared(operator, value) => {
                for thread in on(active) {
                    let value = self.value(value, thread);
                    self.shared[thread] = apply(operator, self.shared[thread], value);
                }
            }
            Statement::Exchange(id, by) => self.exchange(active, *id, by),
            Statement::If(test, then, other) => {
                let is_true = |it: usize| active[it] && self.value(test, it) != 0;
                let mut first: Vec<bool> = (0..active.len()).map(is_true).collect();
                let mut second: Vec<bool> =
                    active.iter().zip(&first).map(|(&is_active, &it)| is_active && !it).collect();
                self.all(then, &mut first, left);
                self.all(other, &mut second, left);
                for (thread, it) in active.iter_mut().enumerate() {
                    *it = first[thread] || second[thread];
                }
            }
            Statement::For { id, from, to, by, body } => {
                self.set(active, *id, |it, thread, _| it.value(from, thread));
                let goes_on = |it: &Model<'_>, thread: usize| {
                    it.variables[thread][*id][0] < it.value(to, thread)
                };
                self.repeat(active, *id, *by, false, &goes_on, body);
            }
            Statement::While { id, times, asks_last, body } => {
                self.set(active, *id, |it, thread, _| it.value(times, thread));
                let goes_on = |it: &Model<'_>, thread: usize| it.variables[thread][*id][0] > 0;
                self.repeat(active, *id, -1, *asks_last, &goes_on, body);
            }
            Statement::Strided { id, sum, limit, writes } => {
                self.strided(active, [*id, *sum], limit, *writes);
            }
            Statement::Break | Statement::Continue => {
                let into = match statement {
                    Statement::Break => &mut left.by_break,
                    _ => &mut left.by_continue,
                };
                for (thread, it) in active.iter_mut().enumerate() {
                    into[thread] |= std::mem::take(it);
                }
            }
            Statement::Return(value) => {
                for thread in on(active) {
                    self.results[thread] = self.value(value, thread);
                    active[thread] = false;
                }
            }
            Statement::CallPointer(id, value) => {
                self.set(active, *id, |it, thread, old| old.wrapping_add(it.value(value, thread)));
            }
            Statement::CallReference(id, value) => {
                self.set(active, *id, |it, thread, old| {
                    old.wrapping_mul(3) ^ it.value(value, thread)
                });
            }
            Statement::Block(body) => self.all(body, active, left),
        }
    }

    /// Runs a loop whose variable `id` changes by a number after each iteration.
    fn repeat(
        &mut self,
        active: &mut [bool],
        id: usize,
        by: i32,
        asks_last: bool,
        goes_on: &dyn Fn(&Model<'_>, usize) -> bool,
        body: &[Statement],
    ) {
        let mut looping = active.to_vec();
        active.fill(false);
        let mut asks = !asks_last;
        while looping.contains(&true) {
            if std::mem::replace(&mut asks, true) {
                for thread in on(&looping) {
                    looping[thread] = goes_on(self, thread);
                    active[thread] |= !looping[thread];
                }
            }
            let mut left = Left::none(self.threads());
            self.all(body, &mut looping, &mut left);
            for thread in 0..looping.len() {
                looping[thread] |= left.by_continue[thread];
                active[thread] |= left.by_break[thread];
            }
            self.set(&looping, id, |_, _, old| old.wrapping_add(by));
        }
    }

    fn exchange(&mut self, active: &[bool], id: usize, by: &Value) {
        for thread in on(active) {
            self.shared[thread] ^= self.variables[thread][id][0];
        }
        let threads = self.threads();
        let shared = self.shared.clone();
        self.set(active, id, |it, thread, old| {
            let by = (it.value(by, thread) & 63) as usize;
            old.wrapping_add(shared[(thread + by) % threads])
        });
    }

    fn strided(&mut self, active: &[bool], [id, sum]: [usize; 2], limit: &Value, writes: bool) {
        let step = self.threads() * self.grid.iter().product::<usize>();
        for thread in on(active) {
            let mut at = self.at * self.threads() + thread;
            loop {
                self.variables[thread][id][0] = at as i32;
                let limit = (self.value(limit, thread) & 255) as usize;
                if at >= limit {
                    break;
                }
                let factor = if writes { 1 } else { at as i32 + 1 };
                let old = self.variables[thread][sum][0];
                let value = old.wrapping_add(data(at).wrapping_mul(factor));
                self.variables[thread][sum][0] = self.kinds[sum].stored(value);
                if writes {
                    self.written[at] =
                        self.written[at].wrapping_add(data(at).wrapping_add(self.numbers[0]));
                }
                at += step;
            }
        }
    }
}

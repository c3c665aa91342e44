//! Classifies the locals of a kernel by how the thread loops have to treat them.
//!
//! - `Uniform`: a parameter `n`, or the counter of `for (int step = 0; step < n; step++)` around a barrier.
//! - `Computed`: `int t = threadIdx.x;`.
//! - `Shifted`: `int i = blockIdx.x * blockDim.x + t;`, if a loop around barriers also has `i += gridDim.x *
//!   blockDim.x;`.
//! - `Counter`: the counter of a strided loop, `for (int i = t; i < n; i += blockDim.x)`.
//! - `Own`: `float sum = 0;`, if `sum += s[step];` follows.
//! - `Shared`: `__shared__ float s[64];`.
//!
//! Uniform locals are found as a greatest fixed point: every candidate is assumed to be uniform, and loses
//! the class once a value that is assigned to it is not uniform under the remaining assumptions. The
//! classification then checks that all branches and loops around thread loops have uniform conditions, so
//! that control flow does not diverge at a barrier.

use super::access::Access;
use super::facts::{facts, is_outer, is_plain, may_fault};
use super::lexemes::{Lexemes, NONE};
use super::statements::{Body, Local, Loop, Node, What};
use super::words::{INDICES, is_integer, is_specifier};
use std::collections::HashSet;
use std::ops::Range;

/// The class of a local, which decides the form that it has in thread loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Uniform: the same in all threads. It becomes one variable, assigned by statements between the loops.
    Uniform,
    /// A function of the thread's index and of values that stay the same meanwhile. It is recomputed where it
    /// is used.
    Computed,
    /// Like `Computed`, plus an offset that is the same in all threads.
    Shifted,
    /// The counter of a loop that runs in rounds. It is computed in each round.
    Counter,
    /// Anything else. It is local to the loop it is in, or has one array element per thread.
    Own,
    /// A variable in shared memory, which belongs to no thread.
    Shared,
}

/// An assignment between loops over threads: a statement, or a part of the step of a loop.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) local: usize,
    pub(super) operator: String,
    pub(super) value: Range<usize>,
    /// The lexemes of the whole assignment.
    pub(super) range: Range<usize>,
    /// The body of the loop, if the assignment is in the step of a loop.
    of_step: Option<Range<usize>>,
}

/// A loop that can run in rounds.
#[derive(Clone, Debug)]
pub(super) struct Strided {
    /// The first lexeme of the loop.
    pub(super) at: usize,
    pub(super) counter: usize,
    /// The initial value of the counter in each thread. `end` is its exclusive bound, and `by` the step.
    pub(super) first: Range<usize>,
    pub(super) end: Range<usize>,
    pub(super) by: Range<usize>,
}

/// A comparison that holds for a contiguous run of threads in a row.
#[derive(Clone, Debug)]
pub(super) struct Clip {
    /// The operand that increases along the row. `bound` is the operand that is the same in the whole row.
    pub(super) counting: Range<usize>,
    pub(super) bound: Range<usize>,
    /// The operator for which the guarded statements run, with `counting` as the left operand.
    pub(super) operator: &'static str,
    /// The lexemes of the comparison in the source.
    pub(super) range: Range<usize>,
    /// True if `counting` is the thread's index, which never wraps.
    pub(super) is_own: bool,
}

impl Clip {
    /// Returns the name of the method of `gpuarray_abi::Row` that finds the threads.
    pub(super) fn method(&self) -> &'static str {
        match self.operator {
            "<" => "less",
            "<=" => "less_or_equal",
            ">" => "greater",
            ">=" => "greater_or_equal",
            _ => "equal",
        }
    }
}

/// The condition of an `if` without `else`, split into parts that must all be true. If the statement returns,
/// all parts must be false for the statements after it to run.
///
/// If `row` depends on `threadIdx.y`, and `column` increases with `threadIdx.x`, the condition `row < height
/// && column < width && mask[column]` has one part of each kind: the first is tested once per row of threads,
/// the second limits the loop over the row, and each thread of that loop tests the third.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    /// The first lexeme of the statement. `then` is its body.
    pub(super) at: usize,
    pub(super) then: Range<usize>,
    /// True if the statement returns.
    pub(super) returns: bool,
    /// The parts that are the same for all threads of a row.
    pub(super) rows: Vec<Range<usize>>,
    pub(super) clips: Vec<Clip>,
    pub(super) others: Vec<Range<usize>>,
}

impl Guard {
    /// Returns the index of a clip with `==`, which at most one thread of a row meets if its operands are
    /// integers.
    pub(super) fn equation(&self) -> Option<usize> {
        self.clips.iter().position(|it| it.operator == "==")
    }
}

/// The locals of a kernel, classified.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) of: Vec<Class>,
    pub(super) writes: Vec<Write>,
    /// The loops that run in rounds.
    pub(super) strided: Vec<Strided>,
    /// True for locals that are declared between loops over threads, and for parameters.
    pub(super) is_outer: Vec<bool>,
    /// The element indices that increase by one from a thread to its neighbour along x.
    pub(super) counting: Vec<Range<usize>>,
    pub(super) guards: Vec<Guard>,
}

/// Facts about the text around the kernel that the classification depends on.
pub(super) struct Context<'c> {
    /// Returns true for constants of the program and of the template.
    pub(super) is_constant: &'c dyn Fn(&str) -> bool,
    /// Returns true for those constants that are integers.
    pub(super) is_whole_constant: &'c dyn Fn(&str) -> bool,
    /// Returns true for functions of the language whose result depends only on their arguments.
    pub(super) is_pure_function: &'c dyn Fn(&str) -> bool,
    /// True if regions may be split only at barriers, because threads may wait for each other by other means.
    pub(super) keeps_order: bool,
    /// True if the program defines operators. Nothing is then known about the results of operators on its
    /// classes.
    pub(super) has_operators: bool,
}

/// Classifies the locals. Returns `None` if the kernel cannot have a loop variant.
pub(super) fn classes(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    context: &Context<'_>,
) -> Option<Classes> {
    let mut sorter = Sorter {
        lexemes,
        body,
        context,
        found: Classes {
            of: body.locals.iter().map(|_| Class::Own).collect(),
            writes: Vec::new(),
            strided: Vec::new(),
            is_outer: body.locals.iter().map(|it| it.is_parameter).collect(),
            counting: Vec::new(),
            guards: Vec::new(),
        },
        conditions: Vec::new(),
        steps: Vec::new(),
        loops: Vec::new(),
    };
    sorter.list(&body.nodes)?;
    sorter.sort();
    sorter.is_sound().then_some(sorter.found)
}

/// Classifies the locals of one kernel.
pub(super) struct Sorter<'s, 't, 'a> {
    pub(super) lexemes: &'s Lexemes<'t, 'a>,
    pub(super) body: &'s Body,
    pub(super) context: &'s Context<'s>,
    pub(super) found: Classes,
    /// The conditions of the statements around loops over threads. `steps` holds the parts of their steps,
    /// and their initial assignments.
    conditions: Vec<Range<usize>>,
    steps: Vec<Range<usize>>,
    /// Loops without barriers, which stand between loops over threads.
    loops: Vec<(Range<usize>, &'s Loop)>,
}

impl<'s> Sorter<'s, '_, '_> {
    /// Collects the assignments, conditions and loops of some statements.
    fn list(&mut self, nodes: &'s [Node]) -> Option<()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &'s Node) -> Option<()> {
        match &node.what {
            What::Declaration(id) => self.found.is_outer[*id] = true,
            What::Expression => self.write(node.range.start..node.range.end - 1, None),
            What::Loop(it) if !is_outer(node) => self.loops.push((node.range.clone(), it)),
            _ if !is_outer(node) => {}
            What::Block(nodes) => self.list(nodes)?,
            // This `if`, which has no barrier, would split a region, and a thread may hold a lock there that
            // other threads wait for.
            What::If { .. } if self.context.keeps_order && !facts(node).waits => return None,
            What::If { condition, then, other } => {
                self.conditions.push(condition.clone());
                self.node(then)?;
                other.as_ref().map_or(Some(()), |it| self.node(it))?;
            }
            What::Loop(it) => self.outer_loop(it)?,
            What::Switch(_) => return None,
            _ => {}
        }
        Some(())
    }

    /// Reads a loop with barriers: its condition and steps run once per block.
    fn outer_loop(&mut self, it: &'s Loop) -> Option<()> {
        if !it.condition.is_empty() {
            self.conditions.push(it.condition.clone());
        }
        self.list(&it.init)?;
        let inits = it.init.iter().filter(|init| matches!(init.what, What::Expression));
        self.steps.extend(inits.map(|init| init.range.start..init.range.end - 1));
        for part in self.lexemes.parts(it.step.clone()) {
            self.steps.push(part.clone());
            self.write(part, Some(it.body.range.clone()));
        }
        self.node(&it.body)
    }

    /// Records an assignment, if the range is one.
    fn write(&mut self, range: Range<usize>, of_step: Option<Range<usize>>) {
        let lexemes = self.lexemes;
        let Range { start, end } = range;
        let (at, operator, value) = match lexemes.at(start) {
            "++" | "--" if end == start + 2 => (start + 1, lexemes.at(start), end..end),
            _ => (start, lexemes.at(start + 1), start + 2..end),
        };
        let Some(used) = self.body.uses.iter().find(|it| it.at == at) else { return };
        let is_step = matches!(operator, "++" | "--");
        if used.access != Access::Write
            || is_step != value.is_empty()
            || !(is_step || super::lexemes::is_assignment(operator))
        {
            return;
        }
        let (local, operator) = (used.local, operator.to_owned());
        self.found.writes.push(Write { local, operator, value, range, of_step });
    }

    fn writes_of(&self, local: usize) -> impl Iterator<Item = &Write> {
        self.found.writes.iter().filter(move |it| it.local == local)
    }

    /// Assigns a class to each local, then looks for strided loops, increasing indices and guards.
    fn sort(&mut self) {
        for (id, local) in self.body.locals.iter().enumerate() {
            self.found.of[id] = match local.is_shared {
                true => Class::Shared,
                false if self.may_be_uniform(id) => Class::Uniform,
                false => Class::Own,
            };
        }
        // Start by assuming that every candidate is uniform, and remove candidates until the assumption
        // holds.
        while let Some(id) = (0..self.found.of.len())
            .find(|&id| self.found.of[id] == Class::Uniform && !self.is_uniform_still(id))
        {
            self.found.of[id] = Class::Own;
        }
        for id in 0..self.found.of.len() {
            if self.found.of[id] == Class::Own && self.is_computed(id) {
                let is_shifted = self.writes_of(id).next().is_some();
                self.found.of[id] = if is_shifted { Class::Shifted } else { Class::Computed };
            }
        }
        let loops = self.loops.iter();
        self.found.strided = loops.filter_map(|(range, it)| self.strided(range, it)).collect();
        for number in 0..self.found.strided.len() {
            let counter = self.found.strided[number].counter;
            self.found.of[counter] = Class::Counter;
        }
        self.found.counting = self.counting();
        self.found.guards = self.guards();
    }

    /// Returns true if a variable is only read inside thread loops, and assigned only between them.
    fn is_orderly(&self, id: usize) -> bool {
        let is_step = |write: &Write| write.of_step.is_some();
        let is_kept = !self.context.keeps_order || self.writes_of(id).all(is_step);
        let mut uses = self.body.uses.iter().filter(|it| it.local == id);
        is_kept
            && self.found.is_outer[id]
            && uses.all(|used| match used.access {
                Access::Read => true,
                Access::Write => self
                    .writes_of(id)
                    .any(|it| it.range.start <= used.at && used.at < it.range.start + 2),
                Access::Unknown => false,
            })
    }

    /// Returns true if the class of a local may be `Uniform`, apart from the values that it gets.
    fn may_be_uniform(&self, id: usize) -> bool {
        let local = &self.body.locals[id];
        let is_set = local.is_assigned || local.init.start == NONE;
        let is_placed = !self.context.keeps_order || !may_fault(self.lexemes, &local.init);
        self.is_orderly(id)
            && match is_plain(self.lexemes, local) {
                true => local.is_parameter || (is_set && is_placed),
                // If the program defines operators, they may do anything with a structure.
                false => local.is_parameter && !self.context.has_operators,
            }
    }

    /// Returns true if all values of a local are uniform under the current assumptions.
    fn is_uniform_still(&self, id: usize) -> bool {
        let local = &self.body.locals[id];
        let is_uniform = |range: &Range<usize>| self.is_uniform(range.clone());
        (!local.is_assigned || is_uniform(&local.init))
            && self.writes_of(id).all(|it| is_uniform(&it.value))
    }

    /// Returns true if a local is a function of the thread's index, possibly with a uniform offset.
    fn is_computed(&self, id: usize) -> bool {
        let local = &self.body.locals[id];
        let lexemes = self.lexemes;
        let is_apt = local.is_assigned && is_plain(lexemes, local) && self.is_orderly(id);
        // The value is computed before the statements of its region, even if one of them returns, so it must
        // not fault.
        if local.is_parameter || !is_apt || may_fault(lexemes, &local.init) {
            return false;
        }
        let counts = local.declarator.clone().any(|it| lexemes.at(it) == "*")
            || local.specifiers.clone().all(|it| {
                lexemes.at(it) != "bool"
                    && (is_integer(lexemes.at(it)) || is_specifier(lexemes.at(it)))
            });
        let shifts = |it: &Write| {
            matches!(it.operator.as_str(), "+=" | "-=" | "++" | "--")
                && self.is_uniform(it.value.clone())
        };
        let is_known = |other: usize| match self.found.of[other] {
            Class::Computed => true,
            Class::Uniform => self.stays(other, local.at),
            _ => false,
        };
        self.is_pure(local.init.clone(), true, &is_known)
            && (self.writes_of(id).next().is_none() || (counts && self.writes_of(id).all(shifts)))
    }

    /// Returns true if a uniform variable has the same value at `at` and throughout the scope of a variable
    /// declared there. This holds if only the steps of loops around that place assign to it.
    fn stays(&self, uniform: usize, at: usize) -> bool {
        self.writes_of(uniform)
            .all(|write| write.of_step.as_ref().is_some_and(|body| body.contains(&at)))
    }

    /// Returns true if the conditions and steps around loops over threads depend only on uniform values, and
    /// no name is ambiguous.
    fn is_sound(&self) -> bool {
        let Classes { of, is_outer, writes, .. } = &self.found;
        let is_written = |part: &Range<usize>| {
            let assigns = |it: &&Write| it.range == *part;
            writes
                .iter()
                .find(assigns)
                .is_some_and(|it| matches!(of[it.local], Class::Uniform | Class::Shifted))
        };
        let locals = || self.body.locals.iter().zip(is_outer);
        let names: HashSet<&str> = INDICES.into_iter().collect();
        self.conditions.iter().all(|it| self.is_uniform(it.clone()))
            && self.steps.iter().all(is_written)
            && locals().all(|(local, is_outer)| !(*is_outer || local.is_shared) || !local.hides)
            && locals().all(|(local, _)| {
                !names.contains(local.name.as_str()) && !local.name.starts_with("gpuarray_")
            })
            && locals().all(|(local, is_outer)| !is_outer || !self.means_more(local))
    }

    /// Returns true if the name of a local stands for something else before the local's declaration.
    fn means_more(&self, local: &Local) -> bool {
        let lexemes = self.lexemes;
        let mut before = if local.is_parameter { 0..0 } else { 0..local.at };
        before.any(|at| {
            lexemes.at(at) == local.name
                && !matches!(lexemes.before(at), "." | "->")
                && self.body.used(at).is_none()
                && self.body.locals.iter().all(|it| it.at != at)
        })
    }
}

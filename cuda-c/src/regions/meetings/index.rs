//! Analyses array indices: determines which threads share an index.
//!
//! Locals are first replaced by their definitions: a local with a single value stands for that value, until
//! only literals, parameters, indices such as `threadIdx.x`, and unknown locals are left. With `int t =
//! threadIdx.x, row = t / 32;`, the index `row + k` becomes `(threadIdx.x / 32) + k#5`, where 5 is the number
//! of the local `k`. If two indices have the same tokens and none of them is open, a thread gets the same
//! value from both.
//!
//! The components of `threadIdx` in an index tell which threads share the element:
//!
//! - Without any, all threads share the element: `x[0]`.
//! - With all components that the kernel uses, each thread has its own element: `x[t]`.
//! - A quotient or a remainder alone is common to several threads: `x[t / 32]`.
//! - A value that may differ between threads in an unknown way, such as one read from memory, makes the index
//!   *free*: nothing is known about the threads that share the element.

use super::super::access::Access;
use super::super::lexemes::{Lexemes, NONE};
use super::super::statements::{Body, Node, What};
use super::super::words::is_known_function;
use super::sums::{Axes, Index, Sum, Token, are_apart, inside, is_of_blocks, split};
use std::ops::Range;

/// The kind of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// The same in all threads.
    Uniform,
    /// Compares the thread's index with a bound. `is_of_lanes` is true for a bound on the lanes of the first
    /// warp.
    Bound {
        is_of_lanes: bool,
    },
    /// Selects a single thread.
    One,
    Other,
}

/// The maximum number of tokens. Longer expressions are not analysed.
const MOST: usize = 120;

/// The indices of a kernel.
#[derive(Debug)]
pub(super) struct Indices<'i, 't, 'a> {
    lexemes: &'i Lexemes<'t, 'a>,
    body: &'i Body,
    /// The axes of `threadIdx` that the kernel uses.
    axes: Axes,
    /// True for locals that may differ between threads.
    varies: Vec<bool>,
    /// The value of each local that has only one.
    values: Vec<Option<Range<usize>>>,
    /// The increment of each local, if it is the same in all threads and nothing else changes the local.
    steps: Vec<Option<Range<usize>>>,
    /// The counter of a loop whose iterations are spread over the threads, and its index.
    counter: Option<(usize, Index)>,
}

fn axis(name: &str) -> Axes {
    match name {
        "x" => 1,
        "y" => 2,
        "z" => 4,
        _ => 7,
    }
}

impl<'i, 't, 'a> Indices<'i, 't, 'a> {
    pub(super) fn of(lexemes: &'i Lexemes<'t, 'a>, body: &'i Body) -> Indices<'i, 't, 'a> {
        let named = (0..lexemes.len()).filter(|&it| lexemes.at(it) == "threadIdx");
        let axes = named.fold(0, |axes, it| axes | axis(lexemes.at(it + 2)));
        let varies = vec![false; body.locals.len()];
        let steps = vec![None; body.locals.len()];
        let values = (0..body.locals.len()).map(|id| value(lexemes, body, id)).collect();
        let mut indices = Indices { lexemes, body, axes, varies, values, steps, counter: None };
        let mut branches = Vec::new();
        body.nodes.iter().for_each(|node| add_branches(node, &mut branches));
        let set_in = |inner: &Range<usize>| -> Vec<usize> {
            let first = body.uses.partition_point(|it| it.at < inner.start);
            let uses = body.uses[first..].iter().take_while(|it| it.at < inner.end);
            uses.filter(|it| it.access != Access::Read).map(|it| it.local).collect()
        };
        let mut branches: Vec<_> =
            branches.into_iter().map(|(condition, inner)| (condition, set_in(&inner))).collect();
        let mut branched = Vec::new();
        loop {
            let known = indices.varies.iter().filter(|it| **it).count();
            for id in 0..body.locals.len() {
                indices.varies[id] = indices.varies[id] || indices.values_vary(id);
            }
            // A local assigned only in some threads differs between threads.
            branches.retain(|(condition, set)| {
                let is_common = !condition.clone().any(|at| indices.differs(at));
                set.iter().filter(|_| !is_common).for_each(|&id| indices.varies[id] = true);
                branched.extend((!is_common).then(|| set.clone()));
                is_common
            });
            if known == indices.varies.iter().filter(|it| **it).count() {
                break;
            }
        }
        // The remaining branches are taken by all threads together.
        let is_common = |id: usize| branched.iter().all(|set: &Vec<usize>| !set.contains(&id));
        indices.steps =
            (0..body.locals.len()).map(|id| indices.step(id).filter(|_| is_common(id))).collect();
        indices
    }

    /// Returns the increment of a local that has an initial value, if nothing else changes the local and each
    /// increment is the same in all threads.
    fn step(&self, id: usize) -> Option<Range<usize>> {
        let (lexemes, local) = (self.lexemes, &self.body.locals[id]);
        if local.init.start == NONE || !local.is_assigned || local.is_parameter {
            return None;
        }
        let writes = self.body.uses.iter().filter(|it| it.local == id && it.access != Access::Read);
        let mut steps = writes.map(|it| match lexemes.at(it.at + 1) {
            "+=" | "-=" if it.access == Access::Write => {
                let start = it.at + 2;
                let end = lexemes.find(start, lexemes.len(), &[";", ")", ","])?;
                (!(start..end).any(|at| self.differs(at))).then_some(start..end)
            }
            "++" | "--" => Some(it.at..it.at),
            _ if matches!(lexemes.before(it.at), "++" | "--") => Some(it.at..it.at),
            _ => None,
        });
        let first = steps.next()??;
        let text = |it: &Range<usize>| self.lexemes.text(it.clone());
        steps.all(|it| it.is_some_and(|it| text(&it) == text(&first))).then_some(first)
    }

    /// Returns true if a local is initialised with, or assigned, a value that differs between threads.
    fn values_vary(&self, id: usize) -> bool {
        let local = &self.body.locals[id];
        let varies = |range: Range<usize>| range.into_iter().any(|at| self.differs(at));
        if local.init.start != NONE && varies(local.init.clone()) {
            return true;
        }
        let uses = self.body.uses.iter().filter(|it| it.local == id);
        uses.filter(|it| it.access != Access::Read).any(|it| {
            let end = self.lexemes.find(it.at, self.lexemes.len(), &[";", ")"]);
            it.access == Access::Unknown || varies(it.at + 1..end.unwrap_or(it.at + 1))
        })
    }

    /// Returns true for a token whose value may differ between neighbouring threads.
    fn differs(&self, at: usize) -> bool {
        let lexemes = self.lexemes;
        match self.body.used(at) {
            Some(id) => self.varies[id] || self.body.locals[id].is_shared,
            None if lexemes.is_word(at) => {
                lexemes.at(at) == "threadIdx"
                    || (lexemes.at(at + 1) == "("
                        && !matches!(lexemes.at(at), "int" | "sizeof")
                        && !is_known_function(lexemes.at(at)))
            }
            None => {
                let is_star = lexemes.at(at) == "*" && !(at > 0 && lexemes.ends_operand(at - 1));
                matches!(lexemes.at(at), "[" | "->") || is_star
            }
        }
    }

    /// Returns the index for an expression.
    pub(super) fn index(&self, range: Range<usize>) -> Index {
        let mut tokens = Vec::new();
        match self.expand(range, &mut tokens, 0) {
            Some(()) => Index { tokens },
            None => Index::unknown(),
        }
    }

    /// Returns the value of a local that has only one.
    pub(super) fn value(&self, id: usize) -> Option<Range<usize>> {
        self.values[id].clone()
    }

    /// Sets the local that stands for a loop counter, and its index. It replaces the previous counter.
    pub(super) fn count(&mut self, counter: Option<(usize, Index)>) {
        self.counter = counter;
    }

    /// Returns true if the kernel reads the thread's index.
    pub(super) fn knows_threads(&self) -> bool {
        self.axes != 0
    }

    pub(super) fn zero(&self) -> Index {
        Index::of_text("0")
    }

    pub(super) fn text(&self, range: Range<usize>) -> String {
        self.index(range).text()
    }

    /// Adds the tokens of an expression, with locals replaced by their values. Returns `None` if they are too
    /// many.
    fn expand(&self, range: Range<usize>, tokens: &mut Vec<Token>, depth: usize) -> Option<()> {
        let lexemes = self.lexemes;
        let mut at = range.start;
        while at < range.end {
            if tokens.len() > MOST || depth > 10 {
                return None;
            }
            let mut text = lexemes.at(at).to_owned();
            let (mut axes, mut is_open, mut is_free) = (0, false, false);
            if let Some(id) = self.body.used(at) {
                if let Some((_, index)) = self.counter.as_ref().filter(|it| it.0 == id) {
                    tokens.extend(index.grouped());
                    at += 1;
                    continue;
                }
                let local = &self.body.locals[id];
                let step = self.steps.get(id).cloned().flatten();
                let around = |text: &str| Index::of_text(text).tokens;
                if let Some(step) = step {
                    // The initial value plus a multiple of the increment.
                    tokens.extend(around("("));
                    self.expand(local.init.clone(), tokens, depth + 1)?;
                    tokens.extend(around("+"));
                    if !step.is_empty() {
                        tokens.extend(around("("));
                        self.expand(step, tokens, depth + 1)?;
                        tokens.extend([around(")"), around("*")].concat());
                    }
                    let (axes, is_open, is_free) = (0, true, false);
                    tokens.push(Token { text: format!("{text}#{id}"), axes, is_open, is_free });
                    tokens.extend(around(")"));
                    at += 1;
                    continue;
                }
                if let Some(value) = self.values[id].clone() {
                    let is_whole = range.len() == 1;
                    let is_short = value.len() == 1
                        || is_whole
                        || value.len() == 3 && lexemes.at(value.start + 1) == ".";
                    if !is_short {
                        tokens.extend(around("("));
                    }
                    self.expand(value, tokens, depth + 1)?;
                    if !is_short {
                        tokens.extend(around(")"));
                    }
                    at += 1;
                    continue;
                }
                text = format!("{text}#{id}");
                is_open = !local.is_parameter || !self.body.is_fixed(id);
                is_free = self.varies[id] || local.is_shared;
            } else if text == "threadIdx" && lexemes.at(at + 1) == "." {
                let name = lexemes.at(at + 2);
                axes = axis(name);
                text = format!("threadIdx.{name}");
                at += 2;
            } else if self.differs(at) {
                (is_open, is_free) = (true, true);
            }
            tokens.push(Token { text, axes, is_open, is_free });
            at += 1;
        }
        Some(())
    }

    /// Rewrites an index in an access that a single thread makes. If the index equals the number to which the
    /// condition compares the thread's index, it becomes the thread's index.
    pub(super) fn rename(&self, index: &mut Index, alone: Option<&(String, Test)>) {
        let Some((text, _)) = alone else { return };
        if index.axes() != 0 {
            return;
        }
        if let Some((left, right)) = text.split_once(" == ")
            && [left, right].contains(&index.text().as_str())
        {
            let other = if index.text() == left { right } else { left };
            let token = |word: &str| {
                let axes = word.strip_prefix("threadIdx.").map_or(0, axis);
                Token { text: word.to_owned(), axes, is_open: word.contains('#'), is_free: false }
            };
            index.tokens = other.split(' ').map(token).collect();
        }
    }

    /// Returns true if the condition with this text may hold for one lane of each warp.
    pub(super) fn is_of_lanes(&self, condition: Option<&str>) -> bool {
        condition.is_some_and(|it| it.split(' ').any(|it| matches!(it, "/" | ">>" | "%" | "&")))
    }

    /// Returns true if two threads never access the same element with these indices.
    pub(super) fn are_own(&self, old: &[Index], new: &[Index], is_shared: bool) -> bool {
        if old.len() != new.len() {
            return false;
        }
        if old.iter().zip(new).any(|(a, b)| are_apart(a, b)) {
            return true;
        }
        let pinned =
            old.iter().zip(new).fold(0, |axes, (a, b)| axes | self.pinned(a, b, is_shared));
        self.axes != 0 && pinned & self.axes == self.axes
    }

    /// Returns the axes along which two threads must agree to access the same element.
    ///
    /// The terms with the thread's index must be the same in both indices, and nothing else may make up for
    /// the distance between two threads: the offsets are equal, or smaller than the factor of the thread's
    /// index, as in `s[4 * t + 1]` and `s[4 * t + 3]`; other terms are missing, the same, or apparently
    /// multiples of the block size.
    fn pinned(&self, old: &Index, new: &Index, is_shared: bool) -> Axes {
        if old.is_free() || new.is_free() || self.is_divided(old) {
            return 0;
        }
        let (first, second) = (Sum::of(old), Sum::of(new));
        if first.own != second.own || first.own.is_empty() {
            return 0;
        }
        let is_near = first.offset.max(second.offset) < first.factor()
            && first.offset.min(second.offset) >= 0;
        let is_same = first.offset == second.offset || is_near;
        let fits = is_same && [&first, &second].into_iter().all(|it| it.others.is_empty())
            || first.others == second.others && is_same && !first.is_open
            || [&first, &second]
                .into_iter()
                .all(|it| it.others.iter().all(|other| is_of_blocks(other, is_shared)))
                && is_same;
        if fits { old.axes() } else { 0 }
    }

    /// Returns true if the index contains a quotient or a remainder of the thread's index, but not both.
    fn is_divided(&self, index: &Index) -> bool {
        let [quotients, remainders, _] = self.parts(index);
        (quotients > 0) != (remainders > 0)
    }

    /// Returns how often the thread's index occurs in a quotient, in a remainder, and elsewhere.
    fn parts(&self, index: &Index) -> [usize; 3] {
        let tokens = &index.tokens;
        let all = tokens.iter().filter(|it| it.axes != 0).count();
        let mut found = [0; 3];
        for (at, token) in tokens.iter().enumerate().skip(1) {
            let which = match token.text.as_str() {
                "/" | ">>" => 0,
                "%" | "&" => 1,
                _ => continue,
            };
            let mut start = at - 1;
            let mut depth = 0_usize;
            loop {
                match tokens[start].text.as_str() {
                    ")" => depth += 1,
                    "(" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 || start == 0 {
                    break;
                }
                start -= 1;
            }
            found[which] += tokens[start..at].iter().filter(|it| it.axes != 0).count();
        }
        found[2] = all.saturating_sub(found[0] + found[1]);
        found
    }

    /// Returns true if several threads of a block share the element.
    pub(super) fn are_common(&self, indices: &[Index]) -> bool {
        if indices.iter().any(Index::is_free) {
            return false;
        }
        let axes = indices.iter().fold(0, |axes, it| axes | it.axes());
        let counts = indices.iter().map(|it| self.parts(it));
        let [quotients, remainders, others] =
            counts.fold([0; 3], |sum, it| [sum[0] + it[0], sum[1] + it[1], sum[2] + it[2]]);
        let is_part = others == 0 && (quotients > 0) != (remainders > 0);
        axes == 0 || axes & self.axes != self.axes || is_part
    }

    /// Returns true for indices in a slice of the array that apparently belongs to one thread: both begin
    /// with the same multiple of the thread's index.
    pub(super) fn are_of_slices(&self, old: &[Index], new: &[Index]) -> bool {
        let ([old], [new]) = (old, new) else { return false };
        let is_shared = self.axes == 0 || old.axes() & self.axes != self.axes;
        if is_shared || self.parts(old)[..2] != [0, 0] {
            return false;
        }
        let (first, second) = (Sum::of(old), Sum::of(new));
        let is_product = |it: &String| it.split(' ').any(|word| matches!(word, "*" | "<<"));
        let has_others = !first.others.is_empty() || !second.others.is_empty();
        (has_others || first.factor() == 0)
            && first.own == second.own
            && first.own.iter().all(is_product)
    }

    /// Classifies a condition: `n > 0` is uniform; `t < n` and `t > 0 && t < n` are bounds; `t == 0` and `!t`
    /// select one thread. A condition that depends on memory is of another kind.
    pub(super) fn test(&self, range: Range<usize>) -> Test {
        let index = self.index(range);
        if index.is_free() {
            return Test::Other;
        }
        if index.axes() == 0 {
            return Test::Uniform;
        }
        let parts: Vec<&[Token]> = split(&index.tokens, "&&").into_iter().map(inside).collect();
        let has = |texts: &[&str]| index.tokens.iter().any(|it| texts.contains(&it.text.as_str()));
        if has(&["==", "!"]) && !has(&["||", "?"]) {
            return Test::One;
        }
        let is_bound = |part: &&[Token]| {
            let sides: Vec<&[Token]> = ["<", "<=", ">", ">="]
                .iter()
                .map(|it| split(part, it))
                .find(|it| it.len() == 2)
                .unwrap_or_default();
            let axes = |side: &&[Token]| side.iter().fold(0, |axes, it| axes | it.axes);
            match sides[..] {
                [left, right] => (axes(&left) == 0) != (axes(&right) == 0),
                _ => part.iter().all(|it| it.axes == 0),
            }
        };
        if has(&["||", "?", "!=", "!"]) || !parts.iter().all(is_bound) {
            return Test::Other;
        }
        let is_of_lanes = match parts[..] {
            [[left, less, number]] => {
                left.text.starts_with("threadIdx")
                    && less.text == "<"
                    && (number.text == "warpSize"
                        || number.text.parse().is_ok_and(|it: u32| it <= 32))
            }
            _ => false,
        };
        Test::Bound { is_of_lanes }
    }
}

/// Returns true for uniform indices that are written in two different ways.
pub(super) fn may_differ(old: &[Index], new: &[Index]) -> bool {
    old != new && old.iter().chain(new).all(|it| it.axes() == 0)
}

/// Collects the conditions of a statement, and the ranges that only some threads may execute because of them.
fn add_branches(node: &Node, branches: &mut Vec<(Range<usize>, Range<usize>)>) {
    match &node.what {
        What::Block(nodes) => nodes.iter().for_each(|it| add_branches(it, branches)),
        What::If { condition, then, other } => {
            branches.push((condition.clone(), condition.end..node.range.end));
            for it in [Some(then), other.as_ref()].into_iter().flatten() {
                add_branches(it, branches);
            }
        }
        What::Loop(it) => {
            branches.push((it.condition.clone(), it.step.clone()));
            branches.push((it.condition.clone(), it.body.range.clone()));
            add_branches(&it.body, branches);
        }
        What::Switch(body) => branches.push((node.range.clone(), body.range.clone())),
        _ => {}
    }
}

/// Returns the initial value of a local and the values assigned to it.
pub(super) fn values(lexemes: &Lexemes<'_, '_>, body: &Body, id: usize) -> Vec<Range<usize>> {
    let local = &body.locals[id];
    let init = Some(local.init.clone()).filter(|it| it.start != NONE && local.is_assigned);
    let writes = body.uses.iter().filter(|it| it.local == id && it.access == Access::Write);
    let assigned = writes.filter(|it| lexemes.at(it.at + 1) == "=").filter_map(|it| {
        let start = it.at + 2;
        Some(start..lexemes.find(start, lexemes.len(), &[";", ",", ")"])?)
    });
    init.into_iter().chain(assigned).collect()
}

/// Returns the value of a local that has only one.
fn value(lexemes: &Lexemes<'_, '_>, body: &Body, id: usize) -> Option<Range<usize>> {
    let mut writes = body.uses.iter().filter(|it| it.local == id && it.access != Access::Read);
    let first = writes.next();
    let is_set = body.locals[id].init.start != NONE;
    let is_one = writes.next().is_none() && (first.is_none() || !is_set);
    let mut values = values(lexemes, body, id).into_iter();
    values.next().filter(|_| is_one && !body.locals[id].is_parameter && values.len() == 0)
}

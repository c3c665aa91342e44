//! Splits statements in which all threads must read before one of them writes: `s[t] = s[t] / s[0];`.
//!
//! On a GPU the lanes of a warp execute a statement in step: all lanes have read before the first one writes.
//! A statement that writes an element which another thread may read in the same statement is therefore split:
//! a variable takes the value, the threads meet, and each thread writes. The example becomes `{ float parted;
//! parted = s[t] / s[0]; ::gpuarray_abi::together(); s[t] = parted; }`.
//!
//! The loop variant needs meetings outside of branches. A single statement under a condition therefore takes
//! the condition with it, and tests it again after the meeting. For example, `if (t > 0) s[t] += s[t - 1];`
//! becomes:
//!
//! - `float parted = {}; if (t > 0) { parted = s[t]; parted += s[t - 1]; }`
//! - `::gpuarray_abi::together();`
//! - `if (t > 0) s[t] = parted;`
//!
//! If the last statement of a kernel is under a bound, the kernel returns for the threads beyond the bound,
//! and the statement follows without a condition.
//!
//! If threads run in order, an element before the thread's own has been written already, and one after it has
//! not, so some reads need no split.

mod halves;
mod shapes;

use super::super::access::Access;
use super::super::facts::facts;
use super::super::lexemes::{Lexemes, NONE, is_assignment};
use super::super::statements::{Body, Loop, Node, What};
use super::super::words::{is_integer, is_specifier, is_type};
use super::aliases::may_be_one;
use super::index::Test;
use super::sums::{Index, are_ordered};
use super::{ElementAccess, Kind, Race, Walk};
use crate::tokens::Edit;
use std::fmt::Write as _;
use std::ops::Range;

/// The prefix of the variables that take the values.
pub(crate) const PARTED: &str = "parted_by_gpuarray_";
const MEET: &str = " ::gpuarray_abi::together();";

/// The split statements of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Parted {
    pub(crate) edits: Vec<Edit>,
    /// True if some statements may be correct without a split, and are split because it costs little.
    pub(crate) has_doubts: bool,
}

/// The control flow around a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All threads reach the statement.
    Top,
    /// Some threads reach it, under a condition. A meeting is expensive there.
    Branch,
}

/// Splits the statements of a kernel. Without `doubts`, statements that may be correct stay whole.
pub(crate) fn part(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    meets: &dyn Fn(&str) -> bool,
    is_pure_function: &dyn Fn(&str) -> bool,
    doubts: bool,
) -> Parted {
    let mut parter = Parter::new(lexemes, body, meets, is_pure_function, doubts);
    if parter.walk.indices.knows_threads() {
        parter.rest(&body.nodes);
    }
    parter.parted
}

/// Rewrites an `else`, a `switch` or a loop over elements in which threads race, so that its statements can
/// be split.
pub(crate) fn shape(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    meets: &dyn Fn(&str) -> bool,
    is_pure_function: &dyn Fn(&str) -> bool,
) -> Vec<Edit> {
    let mut parter = Parter::new(lexemes, body, meets, is_pure_function, true);
    if parter.walk.indices.knows_threads() {
        parter.shapes(&body.nodes);
    }
    parter.parted.edits
}

/// Splits the statements of one kernel.
struct Parter<'w, 't, 'a> {
    lexemes: &'w Lexemes<'t, 'a>,
    body: &'w Body,
    walk: Walk<'w, 't, 'a>,
    is_pure_function: &'w dyn Fn(&str) -> bool,
    doubts: bool,
    parted: Parted,
}

/// An assignment to an element.
struct Assignment {
    left: Range<usize>,
    /// The declaration of the variable that takes the value.
    declaration: String,
    name: String,
    /// True if the variable has an arithmetic type.
    is_number: bool,
    /// True for a compound assignment, where the variable first takes the old value of the element.
    is_compound: bool,
}

/// The counter of a loop whose iterations are spread over the threads.
struct Rounds {
    counter: usize,
    /// The initial value in the first thread, the exclusive end, and the step.
    first: String,
    end: String,
    by: String,
    /// The type and the name of the counter.
    kind: String,
    name: String,
}

impl Rounds {
    /// Returns the counter as an index: the thread's index plus the round.
    fn counted(&self) -> (usize, Index) {
        (self.counter, Index::of_thread().plus(&Index::of_round()))
    }

    /// Returns the head of the loop over rounds, up to the condition for the threads below the end.
    fn head(&self, round: &str, declarations: &str) -> String {
        let Rounds { first, end, by, kind, name, .. } = self;
        format!(
            "for ({kind} {round} = {first}; {round} < {end}; {round} += {by}) {{ \
             const {kind} {name} = {round} + threadIdx.x; {declarations}if ({name} < {end})"
        )
    }
}

impl<'w, 't, 'a> Parter<'w, 't, 'a> {
    fn new(
        lexemes: &'w Lexemes<'t, 'a>,
        body: &'w Body,
        meets: &'w dyn Fn(&str) -> bool,
        is_pure_function: &'w dyn Fn(&str) -> bool,
        doubts: bool,
    ) -> Parter<'w, 't, 'a> {
        let walk = Walk::new(lexemes, body, meets, doubts);
        Parter { lexemes, body, walk, is_pure_function, doubts, parted: Parted::default() }
    }

    /// Reads statements up to the end of the kernel.
    fn rest(&mut self, nodes: &[Node]) {
        let is_empty = |it: &&Node| matches!(it.what, What::Empty);
        let count = nodes.len() - nodes.iter().rev().take_while(is_empty).count();
        let Some((last, others)) = nodes[..count].split_last() else { return };
        self.list(others, Place::Top);
        match &last.what {
            What::Block(nodes) => self.rest(nodes),
            What::If { condition, then, other: None }
                if !facts(last).waits
                    && only_expression(then).is_none()
                    && matches!(self.walk.indices.test(condition.clone()), Test::Bound { .. }) =>
            {
                let known = self.parted.edits.len();
                self.rest(std::slice::from_ref(then));
                if self.parted.edits.len() > known || !self.places_in([&**then], None).is_empty() {
                    let text = self.negated(condition);
                    self.replace(condition.clone(), &text);
                    self.append(condition.end + 1, " return;".to_owned());
                }
            }
            _ => self.node(last, Place::Top),
        }
    }

    /// Returns the negated condition, written as negated comparisons if possible.
    fn negated(&self, condition: &Range<usize>) -> String {
        let lexemes = self.lexemes;
        let (mut parts, mut start) = (Vec::new(), condition.start);
        while start <= condition.end {
            let end = lexemes.find(start, condition.end, &["&&"]).unwrap_or(condition.end);
            let operators = ["<", "<=", ">", ">=", "||", "?", "&", "|", "^", "==", "!="];
            let found = lexemes.find(start, end, &operators);
            let other = match found.map(|it| lexemes.at(it)) {
                Some("<") => ">=",
                Some("<=") => ">",
                Some(">") => "<=",
                Some(">=") => "<",
                _ => return format!("!({})", self.lexemes.text(condition.clone())),
            };
            let Some(at) = found.filter(|it| lexemes.find(it + 1, end, &operators).is_none())
            else {
                return format!("!({})", self.lexemes.text(condition.clone()));
            };
            parts.push(format!(
                "{} {other} {}",
                self.lexemes.text(start..at),
                self.lexemes.text(at + 1..end)
            ));
            start = end + 1;
        }
        parts.join(" || ")
    }

    fn list(&mut self, nodes: &[Node], place: Place) {
        nodes.iter().for_each(|it| self.node(it, place));
    }

    /// Splits the statements inside a statement. Conditions that are the same in all threads, and statements
    /// with barriers, leave the place as it is.
    fn node(&mut self, node: &Node, place: Place) {
        match &node.what {
            What::Expression => self.statement(&node.range, place),
            What::Block(nodes) => self.list(nodes, place),
            What::If { condition, then, other } => {
                let test = self.walk.indices.test(condition.clone());
                if test == Test::Uniform || facts(node).waits {
                    self.node(then, place);
                    other.iter().for_each(|it| self.node(it, place));
                    return;
                }
                // Only one thread runs this, or one of each warp.
                if test == Test::One {
                    return;
                }
                let arms = [Some(then), other.as_ref()].into_iter().flatten();
                let arms: Option<Vec<_>> = arms.map(|it| only_expression(it)).collect();
                if let (Some(arms), Place::Top) = (arms, place)
                    && self.branch(node, condition, &arms)
                {
                    return;
                }
                if place == Place::Top && other.is_none() && self.halves(node, condition, then) {
                    return;
                }
                // The thread whose element all threads read does not write it.
                if self.excludes_one(condition) {
                    return;
                }
                self.node(then, Place::Branch);
                other.iter().for_each(|it| self.node(it, Place::Branch));
            }
            What::Loop(it) => {
                let test = self.walk.indices.test(it.condition.clone());
                match test == Test::Uniform || facts(node).waits {
                    true => self.node(&it.body, place),
                    false if place == Place::Top => self.strided(node, it),
                    false => {}
                }
            }
            What::Switch(body) => {
                let open = node.range.start + 1;
                let close = self.lexemes.partner(open).unwrap_or(open);
                if self.walk.indices.test(open + 1..close) == Test::Uniform {
                    self.node(body, place);
                }
            }
            _ => {}
        }
    }

    /// Reads a statement that is not in a branch of its own.
    fn statement(&mut self, range: &Range<usize>, place: Place) {
        let Some(assignment) = self.assignment(range) else { return };
        let race = self.race(range, &assignment, None, place == Place::Top);
        if place == Place::Branch && race != Some(Race::Common) || !self.counts(race) {
            return;
        }
        let Assignment { left, declaration, name, is_number, is_compound } = assignment;
        let element = self.lexemes.text(left.clone());
        let begin = match (is_compound, is_number) {
            (true, _) => format!("{{ {declaration} = {element}; "),
            (false, true) => format!("{{ {declaration}; "),
            (false, false) => format!("{{ {declaration} = {{ }}; "),
        };
        self.insert(range.start, begin);
        self.replace(left, &name);
        self.append(range.end, format!("{MEET} {element} = {name}; }}"));
    }

    /// Reads single statements under a condition and its `else`. Returns true if they are split or need no
    /// split.
    fn branch(&mut self, node: &Node, condition: &Range<usize>, arms: &[&Range<usize>]) -> bool {
        let is_bound = matches!(self.walk.indices.test(condition.clone()), Test::Bound { .. });
        let mut parted = Vec::new();
        for (number, only) in arms.iter().enumerate() {
            let Some(assignment) = self.assignment(only) else { return false };
            let behind = (condition, number == 0);
            let race = self.race(only, &assignment, Some(behind), is_bound);
            if self.counts(race) {
                parted.push((number == 0, *only, assignment));
            }
        }
        let Some((_, _, Assignment { name, .. })) = parted.first() else { return true };
        let test = match self.is_repeatable(condition, &node.range) {
            true => self.lexemes.text(condition.clone()),
            false => format!("{name}_is_met"),
        };
        let (start, end) = (node.range.start, node.range.end);
        let variables = parted.iter().map(|it| format!("{} = {{ }};", it.2.declaration));
        let mut begin = format!("{{ {}", variables.collect::<Vec<_>>().join(" "));
        let asks = test.ends_with("_is_met");
        if asks {
            let _ = write!(begin, " bool {test} =");
        }
        self.insert(start, begin);
        if asks {
            self.replace(start..start + 1, "");
            self.append(condition.end + 1, format!("; if ({test})"));
        }
        let mut behind = MEET.to_owned();
        for (is_met, only, Assignment { left, name, is_compound, .. }) in parted {
            let element = self.lexemes.text(left.clone());
            if is_compound {
                self.insert(only.start, format!("{{ {name} = {element};"));
            }
            self.replace(left, &name);
            if is_compound {
                self.append(only.end, " }".to_owned());
            }
            let sign = if is_met { "" } else { "!" };
            let _ = write!(behind, " if ({sign}({test})) {element} = {name};");
        }
        self.append(end, format!("{behind} }}"));
        true
    }

    /// Reads a loop whose iterations are spread over the threads and whose body is one statement. It is split
    /// in rounds of all threads.
    fn strided(&mut self, node: &Node, it: &Loop) {
        let Some(only) = only_expression(&it.body) else { return };
        let Some(rounds) = self.rounds(node, it) else { return };
        let Some(assignment) = self.assignment(only) else { return };
        self.walk.indices.count(Some(rounds.counted()));
        let race = self.race(only, &assignment, Some((&it.condition, true)), true);
        self.walk.indices.count(None);
        if !self.counts(race) {
            return;
        }
        let Assignment { left, declaration, name, is_compound, .. } = assignment;
        let (element, round) = (self.lexemes.text(left.clone()), format!("{name}_round"));
        let Rounds { end, name: counter, .. } = &rounds;
        let (start, close) = (node.range.start, it.step.end);
        let head = rounds.head(&round, &format!("{declaration} = {{ }}; "));
        // The head of the loop is replaced; its number of lines stays the same.
        self.replace(start..close + 1, &head);
        if is_compound {
            self.insert(only.start, format!("{{ {name} = {element};"));
        }
        self.replace(left, &name);
        if is_compound {
            self.append(only.end, " }".to_owned());
        }
        let text = format!("{MEET} if ({counter} < {end}) {element} = {name}; }}");
        self.append(node.range.end, text);
    }

    /// Returns the counter of a loop whose iterations are spread over the threads, if it is understood.
    fn rounds(&self, node: &Node, it: &Loop) -> Option<Rounds> {
        let lexemes = self.lexemes;
        let [init] = &it.init[..] else { return None };
        let What::Declaration(counter) = init.what else { return None };
        let local = &self.body.locals[counter];
        let (condition, step) = (it.condition.clone(), it.step.clone());
        let is_counter =
            |at: usize| self.body.uses.iter().any(|used| used.at == at && used.local == counter);
        let is_loop = is_counter(condition.start)
            && lexemes.at(condition.start + 1) == "<"
            && is_counter(step.start)
            && lexemes.at(step.start + 1) == "+="
            && lexemes.find(step.start, step.end, &[","]).is_none()
            && local
                .specifiers
                .clone()
                .all(|it| is_integer(lexemes.at(it)) || is_specifier(lexemes.at(it)))
            && local.declarator.len() == 1;
        if !is_loop {
            return None;
        }
        let (end, by) = (condition.start + 2..condition.end, step.start + 2..step.end);
        let lowest = ["<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", "?", ","];
        let is_common = |range: &Range<usize>| {
            !range.is_empty()
                && self.walk.indices.test(range.clone()) == Test::Uniform
                && self.is_repeatable(range, &node.range)
                && lexemes.find(range.start, range.end, &lowest).is_none()
        };
        let writes = |at: usize| at == local.at || at == step.start;
        let is_counted =
            self.body.uses.iter().all(|used| {
                used.local != counter || used.access == Access::Read || writes(used.at)
            });
        if !is_counted
            || !is_common(&end)
            || !is_common(&by)
            || !self.is_repeatable(&local.init, &node.range)
        {
            return None;
        }
        Some(Rounds {
            counter,
            first: self.walk.indices.index(local.init.clone()).without_thread()?,
            kind: lexemes.text(local.specifiers.clone()),
            name: local.name.clone(),
            end: lexemes.text(end),
            by: lexemes.text(by),
        })
    }

    /// Returns true if a race requires a split, and records doubts.
    fn counts(&mut self, race: Option<Race>) -> bool {
        let counts = race.is_some_and(|it| self.doubts || it > Race::Doubtful);
        self.parted.has_doubts |= counts && race == Some(Race::Doubtful);
        counts
    }

    /// Returns the assignment in a statement whose left side is an element of a known type.
    fn assignment(&self, range: &Range<usize>) -> Option<Assignment> {
        let lexemes = self.lexemes;
        let (mut start, end) = (range.start, range.end - 1);
        let steps = |at: usize| matches!(lexemes.at(at), "++" | "--");
        start += usize::from(steps(start));
        let accesses = self.walk.accesses(start..end);
        let left = accesses.iter().find(|it| it.kind == Kind::Write && it.range.start == start)?;
        let Range { end: behind, .. } = left.range;
        let operator = lexemes.at(behind);
        let is_step = start > range.start && behind == end || steps(behind) && behind + 1 == end;
        let is_assigned = is_assignment(operator) && start == range.start;
        let has_comma = lexemes.find(start, end, &[","]).is_some();
        // The left side will be evaluated twice.
        let is_plain = |at: usize| {
            let is_call = lexemes.is_word(at)
                && lexemes.at(at + 1) == "("
                && !(self.is_pure_function)(lexemes.at(at));
            !(steps(at) || is_assignment(lexemes.at(at)) || is_call || lexemes.at(at) == "{")
        };
        if !(is_step || is_assigned) || has_comma || !left.range.clone().all(is_plain) {
            return None;
        }
        let (kind, is_number) = self.walk.kind(left)?;
        let name = format!("{PARTED}{}", range.start);
        let declaration = format!("{kind} {name}");
        let is_compound = operator != "=";
        Some(Assignment { left: left.range.clone(), declaration, name, is_number, is_compound })
    }

    /// Returns true for a condition that excludes a single thread.
    fn excludes_one(&self, condition: &Range<usize>) -> bool {
        let lexemes = self.lexemes;
        let Some(at) = lexemes.find(condition.start, condition.end, &["!="]) else { return false };
        let sides = [condition.start..at, at + 1..condition.end];
        let is_of_thread = sides.map(|it| {
            let index = self.walk.indices.index(it);
            (index.is_of_thread(), index.is_free())
        });
        matches!(is_of_thread, [(true, _), (false, false)] | [(false, false), (true, _)])
            && lexemes.find(condition.start, condition.end, &["&&", "||", "?"]).is_none()
    }

    /// Returns the upper bounds that a condition sets for the thread's index.
    fn bounds(&self, condition: &Range<usize>) -> Vec<(Index, Index)> {
        let lexemes = self.lexemes;
        let (mut found, mut start) = (Vec::new(), condition.start);
        while start < condition.end {
            let end = lexemes.find(start, condition.end, &["&&"]).unwrap_or(condition.end);
            let has = |texts: &[&str]| lexemes.find(start, end, texts);
            if let (Some(at), None) = (has(&["<"]), has(&["||", "?", "==", "!="])) {
                let side = |it: Range<usize>| self.walk.indices.index(it);
                found.push((side(start..at), side(at + 1..end)));
            }
            start = end + 1;
        }
        found
    }

    /// Returns the kind of race if a thread may read an element that another thread writes in the same
    /// statement. `condition` is the condition of the statement, and true if the statement runs when the
    /// condition holds. If `by_many` is false, only one of the threads that share an element runs the
    /// statement.
    fn race(
        &self,
        range: &Range<usize>,
        assignment: &Assignment,
        condition: Option<(&Range<usize>, bool)>,
        by_many: bool,
    ) -> Option<Race> {
        let mut accesses = self.walk.accesses(range.clone());
        accesses.extend(condition.into_iter().flat_map(|it| self.walk.accesses(it.0.clone())));
        let condition = condition.and_then(|(it, is_met)| is_met.then_some(it));
        let is_write = |it: &&ElementAccess| it.kind == Kind::Write && it.range == assignment.left;
        let write = accesses.iter().find(is_write)?.clone();
        let reads = accesses.iter().filter(|it| it.kind == Kind::Read);
        let is_same = |it: &ElementAccess| it.root == write.root && it.whole == write.whole;
        let reads = reads.filter(|it| by_many || !is_same(it));
        let bounds = condition.map_or_else(Vec::new, |it| self.bounds(it));
        let is_excluded = condition.is_some_and(|it| self.excludes_one(it));
        let counts = |it: &&ElementAccess| {
            let is_common = it.whole.iter().all(|it| !it.is_of_thread() && !it.is_free());
            // `if (t < k) s[t] += s[t + k];` reads elements beyond the bound, such as `s[k]`.
            let is_beyond = bounds.iter().any(|(below, bound)| {
                let beyond = [below.plus(bound), bound.plus(below), bound.clone()];
                [below] == [&write.whole[0]]
                    && write.whole.len() == 1
                    && beyond.iter().any(|beyond| it.whole == [beyond.clone()])
            });
            !(is_excluded && is_common || is_beyond)
        };
        let reads = reads.filter(counts);
        let found = reads.filter_map(|read| self.race_of(read, &write));
        // A function may read any element.
        let is_passed = |at: usize| {
            let array = self.walk.array_at(at).filter(|_| self.walk.is_passed(at));
            array.is_some_and(|it| it.root == write.root)
        };
        let passed = range.clone().any(is_passed).then_some(Race::Doubtful);
        found.chain(passed).max()
    }

    /// Returns the kind of race between a read and a write of one statement, or `None` if no other thread
    /// writes the element before it is read.
    fn race_of(&self, read: &ElementAccess, write: &ElementAccess) -> Option<Race> {
        if read.root != write.root {
            // A pointer may point into any of several arrays.
            return may_be_one(&read.root, &write.root).then_some(Race::Doubtful);
        }
        let indices = &self.walk.indices;
        let (from, to) = (&read.whole[..], &write.whole[..]);
        let is_of_thread = to.iter().any(Index::is_of_thread);
        if from == to {
            return indices.are_common(to).then_some(Race::Common);
        }
        let is_free = |it: &[Index]| it.iter().any(Index::is_free);
        if indices.are_own(from, to, write.is_shared)
            || indices.are_of_slices(from, to)
            || are_ordered(from, to)
        {
            return None;
        }
        let is_common = !is_free(from) && from.iter().all(|it| !it.is_of_thread());
        match write.is_shared {
            true if is_common && is_of_thread => Some(Race::Common),
            true => Some(Race::Sure),
            false if (is_common || indices.are_common(from)) && is_of_thread => Some(Race::Common),
            false => Some(Race::Doubtful),
        }
    }

    /// Returns true for a condition that has the same value wherever it is evaluated in a statement.
    fn is_repeatable(&self, range: &Range<usize>, statement: &Range<usize>) -> bool {
        let lexemes = self.lexemes;
        range.clone().all(|at| {
            let word = lexemes.at(at);
            let used = self.body.uses.iter().find(|it| it.at == at).map(|it| it.local);
            if let Some(id) = used {
                let mut uses = self.body.uses.iter().filter(|it| it.local == id);
                return !self.body.locals[id].is_shared
                    && uses.all(|it| it.access == Access::Read || !statement.contains(&it.at))
                    && (self.body.is_fixed(id) || self.body.locals[id].init.start != NONE);
            }
            match lexemes.is_word(at) {
                true if lexemes.at(at + 1) == "(" => {
                    (self.is_pure_function)(word) || is_type(word) || is_integer(word)
                }
                true => true,
                false => {
                    !matches!(word, "[" | "->" | "++" | "--" | "{" | "?")
                        && !is_assignment(word)
                        && !(word == "*" && !(at > 0 && lexemes.ends_operand(at - 1)))
                }
            }
        })
    }

    fn insert(&mut self, lexeme: usize, text: String) {
        self.parted.edits.push(self.lexemes.insertion(lexeme, &format!("{text} ")));
    }

    /// Inserts a text directly after the preceding lexeme.
    fn append(&mut self, behind: usize, text: String) {
        self.parted.edits.push(self.lexemes.addition(behind, &text));
    }

    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.parted.edits.push(self.lexemes.replacement(range, text));
    }
}

/// Returns the expression of an expression statement, with or without braces.
fn only_expression(node: &Node) -> Option<&Range<usize>> {
    match &node.what {
        What::Expression => Some(&node.range),
        What::Block(nodes) => match &nodes[..] {
            [only] => only_expression(only),
            _ => None,
        },
        _ => None,
    }
}

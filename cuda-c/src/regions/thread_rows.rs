//! Analyses rows of threads along x: finds expressions that increase by one from a thread to its neighbour,
//! and conditions that hold only for some threads of the row.
//!
//! As far as the compiler knows, an index such as `row * width + column` may wrap between two threads. It
//! therefore does not see that neighbouring threads access neighbouring elements. This analysis finds the
//! expressions that increase by one unless they wrap; the generated code checks for wrapping before each row.

use super::classes::{Class, Clip, Guard, Sorter};
use super::facts::may_fault;
use super::lexemes::NONE;
use super::statements::{Node, What};
use super::words::{INDICES, is_integer, is_narrow};
use std::ops::Range;

/// The change of an expression from a thread to its neighbour along x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// It increases by one, unless it wraps.
    One,
}

/// Operators with a lower precedence than comparisons.
const WEAKER: [&str; 8] = ["==", "!=", "&", "^", "|", "&&", "||", "?"];
const WEAKER_THAN_SUMS: [&str; 15] =
    ["==", "!=", "&", "^", "|", "&&", "||", "?", ",", "<", ">", "<=", ">=", "<<", ">>"];

const COMPARISONS: [&str; 6] = ["<", ">", "<=", ">=", "==", "!="];

/// Returns the comparison that is equivalent with its operands exchanged.
fn exchanged(operator: &str) -> Option<&'static str> {
    let pairs = [("<", ">"), (">", "<"), ("<=", ">="), (">=", "<="), ("==", "=="), ("!=", "!=")];
    pairs.into_iter().find(|it| it.0 == operator).map(|it| it.1)
}

/// Returns the negation of a comparison of integers.
fn opposite(operator: &str) -> Option<&'static str> {
    let pairs = [("<", ">="), (">", "<="), ("<=", ">"), (">=", "<"), ("==", "!="), ("!=", "==")];
    pairs.into_iter().find(|it| it.0 == operator).map(|it| it.1)
}

impl Sorter<'_, '_, '_> {
    /// Returns the element indices that increase by one along a row.
    pub(super) fn counting(&self) -> Vec<Range<usize>> {
        let lexemes = self.lexemes;
        // An overloaded operator might receive an index of a different type.
        if self.context.has_operators {
            return Vec::new();
        }
        (1..lexemes.len())
            .filter(|&it| lexemes.at(it) == "[" && lexemes.ends_operand(it - 1))
            .filter_map(|open| Some(open + 1..lexemes.partner(open)?))
            .filter(|it| !self.is_own_index(it) && self.change(it) == Some(Change::One))
            .collect()
    }

    /// Returns the conditions of statements that threads of a row can skip together.
    pub(super) fn guards(&self) -> Vec<Guard> {
        let mut guards = Vec::new();
        // A guarded statement is split from the statements before and after it.
        if !self.context.keeps_order {
            self.body.nodes.iter().for_each(|it| self.add_guards(it, &mut guards));
        }
        guards
    }

    fn add_guards(&self, node: &Node, guards: &mut Vec<Guard>) {
        match &node.what {
            What::Block(nodes) => nodes.iter().for_each(|it| self.add_guards(it, guards)),
            What::Loop(it) => self.add_guards(&it.body, guards),
            What::If { condition, then, other } => {
                if other.is_none() {
                    guards.extend(self.guard(node, condition, then));
                }
                self.add_guards(then, guards);
                other.iter().for_each(|it| self.add_guards(it, guards));
            }
            _ => {}
        }
    }

    /// Returns the guard of an `if` without `else`. The condition is split at `&&`, or at `||` if the
    /// statement returns.
    fn guard(&self, node: &Node, condition: &Range<usize>, then: &Node) -> Option<Guard> {
        let lexemes = self.lexemes;
        let condition = self.bare(condition.clone());
        let end = condition.end;
        let returns = is_return(then);
        let (between, other) = if returns { ("||", "&&") } else { ("&&", "||") };
        // `&&` binds more tightly than the `||` between the parts of a condition that returns.
        let refused = ["?", ",", "=", other];
        let refused = if returns { &refused[..3] } else { &refused[..] };
        if lexemes.find(condition.start, end, refused).is_some() {
            return None;
        }
        let (at, then) = (node.range.start, then.range.clone());
        let mut guard = Guard { at, then, returns, ..Guard::default() };
        let (mut from, mut is_known) = (condition.start, true);
        while from < end {
            let to = lexemes.find(from, end, &[between]).unwrap_or(end);
            let part = from..to;
            // If a part has side effects, no part after it may be evaluated before it.
            is_known = is_known && self.is_known(&part);
            match self.clip(&part, returns).filter(|_| is_known) {
                Some(clip) => guard.clips.push(clip),
                None if is_known && !self.depends_on_x(part.clone()) => guard.rows.push(part),
                None => guard.others.push(part),
            }
            from = to + 1;
        }
        (!(guard.rows.is_empty() && guard.clips.is_empty())).then_some(guard)
    }

    /// Returns the run of threads for which a comparison holds, or with `not` those for which it does not
    /// hold.
    fn clip(&self, part: &Range<usize>, not: bool) -> Option<Clip> {
        let lexemes = self.lexemes;
        let range = self.bare(part.clone());
        let at = lexemes.find(range.start, range.end, &COMPARISONS)?;
        let (left, right) = (range.start..at, at + 1..range.end);
        let is_single = lexemes.find(left.start, left.end, &WEAKER).is_none()
            && lexemes.find(right.start, right.end, &WEAKER_THAN_SUMS).is_none();
        let turned = exchanged(lexemes.at(at)).filter(|_| is_single)?;
        let (counting, bound, operator) = match (self.change(&left)?, self.change(&right)?) {
            (Change::One, Change::None) => (left, right, exchanged(turned)?),
            (Change::None, Change::One) => (right, left, turned),
            _ => return None,
        };
        let operator = if not { opposite(operator)? } else { operator };
        if operator == "!=" {
            return None;
        }
        let is_own = self.is_own_index(&counting);
        Some(Clip { counting, bound, operator, range, is_own })
    }

    /// Removes the parentheses around an expression.
    fn bare(&self, mut range: Range<usize>) -> Range<usize> {
        let is_group = |it: &Range<usize>| {
            self.lexemes.at(it.start) == "(" && self.lexemes.partner(it.start) == Some(it.end - 1)
        };
        while range.len() > 2 && is_group(&range) {
            range = range.start + 1..range.end - 1;
        }
        range
    }

    /// Returns true for an expression that can be evaluated before a row of threads.
    fn is_known(&self, range: &Range<usize>) -> bool {
        let has_value = |id: usize| match self.found.of[id] {
            Class::Uniform => {
                self.body.locals[id].is_parameter || self.body.locals[id].init.start != NONE
            }
            Class::Computed | Class::Shifted | Class::Counter => true,
            Class::Own | Class::Shared => false,
        };
        !range.is_empty()
            && self.is_pure(range.clone(), true, &has_value)
            && !may_fault(self.lexemes, range)
    }

    /// Returns true for the thread's index along x. The compiler already knows that it increases by one.
    fn is_own_index(&self, range: &Range<usize>) -> bool {
        let range = self.bare(range.clone());
        match self.body.used(range.start).filter(|_| range.len() == 1) {
            Some(id) => {
                let mut specifiers = self.body.locals[id].specifiers.clone();
                self.found.of[id] == Class::Computed
                    && specifiers.all(|it| !is_narrow(self.lexemes.at(it)))
                    && self.is_own_index(&self.body.locals[id].init)
            }
            None => range.map(|it| self.lexemes.at(it)).eq(["threadIdx", ".", "x"]),
        }
    }

    /// Returns how an expression changes along x, or `None` if it changes in another or an unknown way.
    fn change(&self, range: &Range<usize>) -> Option<Change> {
        self.is_known(range).then(|| self.change_of(range.clone()))?
    }

    /// Returns how a sum changes along x. Only one of its terms may increase; it must be added and
    /// not be multiplied.
    fn change_of(&self, range: Range<usize>) -> Option<Change> {
        if !self.depends_on_x(range.clone()) {
            return Some(Change::None);
        }
        let lexemes = self.lexemes;
        let range = self.bare(range);
        let is_sum = lexemes.find(range.start, range.end, &WEAKER_THAN_SUMS).is_none();
        if !is_sum || !self.is_whole(range.clone()) {
            return None;
        }
        let (mut found, mut from) = (Change::None, range.start);
        while from < range.end {
            let to = self.end_of_term(from, range.end);
            let term = from..to;
            if self.depends_on_x(term.clone()) {
                let is_factor =
                    lexemes.find(term.start, term.end, &["*", "/", "%", "!", "~"]).is_none();
                let is_added = from == range.start || lexemes.at(from - 1) == "+";
                if found == Change::One || !is_factor || !is_added {
                    return None;
                }
                found = match term == range {
                    true => self.change_of_operand(term)?,
                    false => self.change_of(term)?,
                };
            }
            from = to + 1;
        }
        Some(found)
    }

    /// Returns the position of the next binary `+` or `-`, or `end`.
    fn end_of_term(&self, from: usize, end: usize) -> usize {
        let mut at = from;
        while let Some(found) = self.lexemes.find(at, end, &["+", "-"]) {
            if found > from && self.lexemes.ends_operand(found - 1) {
                return found;
            }
            at = found + 1;
        }
        end
    }

    /// Returns the change of a variable, an index, or a cast to an integer.
    fn change_of_operand(&self, range: Range<usize>) -> Option<Change> {
        let lexemes = self.lexemes;
        let Range { start, end } = range;
        // `bool` does not count: a cast to it loses the value.
        let counts = |it: usize| is_integer(lexemes.at(it)) && lexemes.at(it) != "bool";
        if lexemes.at(start) == "(" {
            let close = lexemes.partner(start)?;
            let is_cast = close + 1 < end && (start + 1..close).all(counts);
            return is_cast.then(|| self.change_of(close + 1..end))?;
        }
        if counts(start) && lexemes.at(start + 1) == "(" {
            let is_cast = lexemes.partner(start + 1) == Some(end - 1);
            return is_cast.then(|| self.change_of(start + 2..end - 1))?;
        }
        if range.map(|it| lexemes.at(it)).eq(["threadIdx", ".", "x"]) {
            return Some(Change::One);
        }
        let id = self.body.used(start).filter(|_| end == start + 1)?;
        let mut specifiers = self.body.locals[id].specifiers.clone();
        let is_number = specifiers.all(|it| counts(it) || is_const(lexemes.at(it)));
        is_number.then(|| self.change_of(self.begins_with(id)))?
    }

    /// Returns true if an expression consists only of integers and is evaluated exactly.
    fn is_whole(&self, mut range: Range<usize>) -> bool {
        let lexemes = self.lexemes;
        range.all(|at| {
            let text = lexemes.at(at);
            if lexemes.is_literal(at) {
                let is_hex = text.starts_with("0x") || text.starts_with("0X");
                return is_hex || !text.contains(['.', 'e', 'E', 'f', 'F', 'p', 'P']);
            }
            if !lexemes.is_word(at) || lexemes.before(at) == "." {
                return text != "." || INDICES.contains(&lexemes.before(at));
            }
            match self.body.used(at).map(|id| &self.body.locals[id]) {
                Some(local) => {
                    let is_word =
                        |it: usize| is_integer(lexemes.at(it)) || is_const(lexemes.at(it));
                    local.declarator.len() == 1 && local.specifiers.clone().all(is_word)
                }
                None => {
                    is_integer(text)
                        || INDICES.contains(&text)
                        || text == "warpSize"
                        || (self.context.is_whole_constant)(text)
                }
            }
        })
    }

    /// Returns the expression from which a local is computed.
    fn begins_with(&self, id: usize) -> Range<usize> {
        let strided = self.found.strided.iter().find(|it| it.counter == id);
        strided.map_or_else(|| self.body.locals[id].init.clone(), |it| it.first.clone())
    }

    /// Returns false for an expression that is the same in all threads of a row.
    fn depends_on_x(&self, mut range: Range<usize>) -> bool {
        let lexemes = self.lexemes;
        range.any(|at| match self.body.used(at) {
            Some(id) => match self.found.of[id] {
                Class::Uniform => false,
                Class::Computed | Class::Shifted | Class::Counter => {
                    self.depends_on_x(self.begins_with(id))
                }
                Class::Own | Class::Shared => true,
            },
            None => {
                lexemes.at(at) == "threadIdx"
                    && !(lexemes.at(at + 1) == "." && matches!(lexemes.at(at + 2), "y" | "z"))
            }
        })
    }
}

/// Returns true for `return;`, with or without braces.
fn is_return(node: &Node) -> bool {
    match &node.what {
        What::Return => true,
        What::Block(nodes) => nodes.len() == 1 && is_return(&nodes[0]),
        _ => false,
    }
}

fn is_const(word: &str) -> bool {
    matches!(word, "const" | "constexpr")
}

//! Inserts *meetings*, points where all threads of a block wait for each other, into functions that the parser
//! reads only as words: helper functions, and kernels that cannot be compiled as loops over the threads.
//!
//! The rule is the same as in [`super::meetings`], but it works on words instead of declarations. A name
//! stands for shared memory if it is declared as shared, if it is a pointer initialised with such an array,
//! or if it is a pointer parameter of a helper function. An index belongs to one thread if it contains
//! `threadIdx`, or a name whose initial value does. Only functions with a barrier are examined, so every kernel
//! without barriers is still compiled as a loop. The rule assumes that a caller has read the arrays just before
//! the call, and reads them again just after it.

use super::access::Kind;
use super::lexemes::{Lexemes, is_assignment};
use super::program::{Names, functions, meets_block};
use super::words::is_keyword;
use crate::tokens::Tokens;
use crate::tree::Declared;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// The memory that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    /// Memory that is, or may be, shared by the block.
    Shared,
    /// Memory passed to a kernel.
    Global,
}

/// Which threads access an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    /// All threads.
    Common,
    /// Several threads, because the index is a quotient or a remainder.
    Part,
    /// Probably only one thread.
    Own,
    Unknown,
}

/// An access to an array or a shared variable.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ElementAccess {
    name: String,
    array: Array,
    kind: Kind,
    index: Index,
    text: String,
    /// The condition under which a single thread makes the access.
    alone: Option<String>,
}

/// The accesses since the last barrier or meeting.
#[derive(Clone, Debug, Default)]
struct Since {
    accesses: Vec<ElementAccess>,
    /// True if another function may have read shared memory.
    is_open: bool,
}

/// The loop depth up to which bodies are read twice. Deeper loops are read once.
const DEEPEST: usize = 4;
/// The maximum nesting depth of statements. Deeper statements are not read.
const NESTED: usize = 200;
/// The maximum number of accesses that are compared between two barriers.
const MOST: usize = 100;

/// Returns the tokens of a declaration before which threads have to meet.
pub(super) fn places(names: &Names<'_>, tokens: &Tokens<'_>, declared: &Declared) -> Vec<usize> {
    let mut places = Vec::new();
    for (open, brace) in functions(tokens, declared) {
        let end = tokens.partner(brace).unwrap_or(brace);
        if !(brace..end).any(|at| names.meets(tokens.at(at))) {
            continue;
        }
        let Some(lexemes) = Lexemes::of(tokens, open..end + 1) else { continue };
        let Some(body) = (0..lexemes.len()).find(|&it| lexemes.tokens_of(it).start == brace) else {
            continue;
        };
        let Some(close) = lexemes.partner(0) else { continue };
        let mut walk = Walk {
            lexemes: &lexemes,
            names,
            arrays: HashMap::new(),
            variables: HashSet::new(),
            body: body..lexemes.len(),
            since: Since { accesses: Vec::new(), is_open: !declared.is_kernel },
            places: BTreeSet::new(),
            alone: None,
            loops: 0,
            depth: 0,
        };
        walk.parameters(1..close, if declared.is_kernel { Array::Global } else { Array::Shared });
        walk.locals();
        if declared.body.is_none() {
            walk.members();
        }
        walk.list(body + 1..lexemes.len() - 1);
        places.extend(walk.places.iter().map(|&it| lexemes.tokens_of(it).start));
    }
    places
}

struct Walk<'w, 't, 'a> {
    lexemes: &'w Lexemes<'t, 'a>,
    names: &'w Names<'a>,
    arrays: HashMap<&'a str, Array>,
    /// The names of single shared variables.
    variables: HashSet<&'a str>,
    body: Range<usize>,
    since: Since,
    places: BTreeSet<usize>,
    alone: Option<String>,
    loops: usize,
    depth: usize,
}

impl<'a> Walk<'_, '_, 'a> {
    /// Adds the parameters that are pointers or references to arrays.
    fn parameters(&mut self, range: Range<usize>, array: Array) {
        for part in self.lexemes.parts(range) {
            let is_pointer = |at: usize| matches!(self.lexemes.at(at), "*" | "[");
            if part.clone().any(is_pointer) {
                let last =
                    part.clone().filter(|&it| self.is_name(it) && self.lexemes.at(it + 1) != "::");
                let extent =
                    part.clone().find(|&it| self.lexemes.at(it) == "[").unwrap_or(part.end);
                if let Some(name) = last.take_while(|&it| it < extent).last() {
                    self.arrays.insert(self.lexemes.at(name), array);
                }
            }
        }
    }

    fn is_name(&self, at: usize) -> bool {
        self.lexemes.is_word(at) && !is_keyword(self.lexemes.at(at))
    }

    /// Finds arrays in shared memory, and pointers initialised with them.
    fn locals(&mut self) {
        let lexemes = self.lexemes;
        self.arrays.extend(self.names.shared.keys().map(|name| (*name, Array::Shared)));
        self.variables.extend(self.names.shared.iter().filter(|it| *it.1).map(|it| *it.0));
        for at in self.body.clone() {
            if lexemes.at(at) == "thread_local" {
                let end = lexemes.find(at, self.body.end, &[";", "="]).unwrap_or(at);
                for part in lexemes.parts(at..end) {
                    let extent = lexemes.find(part.start, part.end, &["["]).unwrap_or(part.end);
                    if let Some(name) = (part.start..extent)
                        .rev()
                        .find(|&it| self.is_name(it) && lexemes.at(it + 1) != "(")
                    {
                        self.arrays.insert(lexemes.at(name), Array::Shared);
                        if extent == part.end {
                            self.variables.insert(lexemes.at(name));
                        }
                    }
                }
            }
            // Handles `float *p = s + n`, `auto p = (float *)s` and `float (*p)[16] = ...`.
            let equals = match lexemes.at(at + 1) {
                ")" if lexemes.at(at + 2) == "[" => lexemes.partner(at + 2).map_or(at, |it| it + 1),
                _ => at + 1,
            };
            if !self.is_name(at) || lexemes.at(equals) != "=" {
                continue;
            }
            let mut before = at - 1;
            while matches!(lexemes.at(before), "const" | "__restrict__" | "__restrict") {
                before -= 1;
            }
            let is_pointer = lexemes.at(before) == "*"
                && (matches!(lexemes.before(before), ">" | "*" | "(" | ",")
                    || lexemes.is_word(before - 1));
            if !is_pointer && lexemes.at(before) != "auto" {
                continue;
            }
            let end = lexemes.find(equals, self.body.end, &[";", ","]).unwrap_or(equals);
            let of = (equals + 1..end)
                .filter(|&it| is_pointer || lexemes.at(it + 1) != "[" || lexemes.before(it) == "&")
                .find_map(|it| self.arrays.get(lexemes.at(it)).copied());
            if let Some(array) = of {
                self.arrays.insert(lexemes.at(at), array);
            }
        }
    }

    /// In a member function, treats names that are not declared in it as data members.
    fn members(&mut self) {
        let lexemes = self.lexemes;
        let declares =
            |at: usize| lexemes.is_word(at - 1) && !matches!(lexemes.before(at), "return" | "else");
        for at in self.body.clone() {
            let name = lexemes.at(at);
            if lexemes.at(at + 1) != "[" || !self.is_name(at) {
                continue;
            }
            let mut others = (1..self.body.end).filter(|&it| lexemes.at(it) == name);
            if !others.any(declares) && !matches!(lexemes.before(at), "." | "->" | "::") {
                self.arrays.entry(name).or_insert(Array::Shared);
            }
        }
    }

    fn list(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            at = self.statement(at, range.end, true).max(at + 1);
        }
    }

    /// Returns true if the threads of a block meet in a range, or in a lambda defined there.
    fn waits(&self, mut range: Range<usize>) -> bool {
        range.any(|at| self.meets(at))
    }

    /// Returns true for a call in which the threads of a block meet.
    fn meets(&self, at: usize) -> bool {
        matches!(self.lexemes.at(at + 1), "(" | "<") && self.names.meets(self.lexemes.at(at))
    }

    /// Reads the statement at `at` and returns the index of the next one. If `may_part` is true, a meeting
    /// can be inserted before the statement.
    fn statement(&mut self, at: usize, end: usize, may_part: bool) -> usize {
        self.depth += 1;
        let next = if self.depth > NESTED { end } else { self.read(at, end, may_part) };
        self.depth -= 1;
        next
    }

    /// Reads a statement without checking the nesting depth.
    fn read(&mut self, at: usize, end: usize, may_part: bool) -> usize {
        let lexemes = self.lexemes;
        match lexemes.at(at) {
            ";" => at + 1,
            "{" => {
                let close = lexemes.partner(at).unwrap_or(end);
                self.list(at + 1..close);
                close + 1
            }
            "if" | "for" | "while" | "switch" => {
                let open = if lexemes.at(at + 1) == "constexpr" { at + 2 } else { at + 1 };
                let Some(close) = lexemes.partner(open) else { return end };
                let next = end_of(lexemes, at, end, 0);
                if !self.waits(at..next) {
                    self.alone(at, open + 1..close, |walk| walk.simple(at..next, at, may_part));
                    return next;
                }
                self.simple(open..close, at, may_part);
                let before = self.since.clone();
                let behind = if lexemes.at(at) == "if" {
                    let behind = self.statement(close + 1, end, false);
                    let then = std::mem::replace(&mut self.since, before);
                    let behind = match lexemes.at(behind) {
                        "else" if behind < end => self.statement(behind + 1, end, false),
                        _ => behind,
                    };
                    self.join(then);
                    behind
                } else {
                    self.repeated(|walk| walk.statement(close + 1, end, false))
                };
                behind.max(close + 1)
            }
            "do" => {
                let next = end_of(lexemes, at, end, 0);
                if self.waits(at..next) {
                    self.repeated(|walk| walk.statement(at + 1, end, false));
                } else {
                    self.simple(at..next, at, may_part);
                }
                next
            }
            "case" | "default" => lexemes.find(at, end, &[":"]).map_or(end, |it| it + 1),
            _ => {
                let next = lexemes.find(at, end, &[";"]).map_or(end, |it| it + 1);
                self.simple(at..next, at, may_part);
                next
            }
        }
    }

    /// Reads the body of a loop twice, so that accesses at the end of one iteration are compared with the
    /// start of the next.
    fn repeated(&mut self, mut read: impl FnMut(&mut Self) -> usize) -> usize {
        let before = self.since.clone();
        self.loops += 1;
        let mut next = read(self);
        if self.loops <= DEEPEST {
            next = read(self);
        }
        self.loops -= 1;
        self.join(before);
        next
    }

    /// Reads a statement under a condition that may select a single thread.
    fn alone<R>(
        &mut self,
        at: usize,
        condition: Range<usize>,
        read: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let is_one = self.lexemes.at(at) == "if"
            && condition.clone().any(|it| matches!(self.lexemes.at(it), "==" | "!"))
            && self.index(condition.clone()) != Index::Common;
        let outer = self.alone.clone();
        if is_one {
            self.alone = Some(self.lexemes.text(condition));
        }
        let result = read(self);
        self.alone = outer;
        result
    }

    /// Adds the state after another branch.
    fn join(&mut self, other: Since) {
        self.since.is_open |= other.is_open;
        self.add(other.accesses);
    }

    fn add(&mut self, accesses: Vec<ElementAccess>) {
        for access in accesses {
            if self.since.accesses.len() < MOST && !self.since.accesses.contains(&access) {
                self.since.accesses.push(access);
            }
        }
    }

    /// Reads a statement that cannot be split by a meeting.
    fn simple(&mut self, range: Range<usize>, start: usize, may_part: bool) {
        let lexemes = self.lexemes;
        if range.clone().any(|it| lexemes.at(it) == "thread_local") && may_part {
            return;
        }
        if let Some(brace) = self.lambda_in(range.clone()) {
            return self.lambda(range, brace, start, may_part);
        }
        let accesses = self.accesses(range.clone());
        let is_race = |new: &ElementAccess| {
            let is_open =
                self.since.is_open && new.array == Array::Shared && new.kind != Kind::Read;
            is_open || self.since.accesses.iter().any(|old| conflict(old, new))
        };
        if may_part && accesses.iter().any(is_race) {
            self.places.insert(start);
            self.since = Since::default();
        }
        let mut calls = range.filter(|&at| self.meets(at));
        if let Some(call) = calls.next() {
            let is_open =
                !meets_block(lexemes.at(call)) || calls.any(|it| !meets_block(lexemes.at(it)));
            self.since = Since { accesses: Vec::new(), is_open };
        } else {
            self.add(accesses);
        }
    }

    /// Returns the opening brace of a lambda in a range.
    fn lambda_in(&self, mut range: Range<usize>) -> Option<usize> {
        let lexemes = self.lexemes;
        range.find(|&at| {
            let mut before = at.saturating_sub(1);
            if lexemes.at(at) != "{" {
                return false;
            }
            if lexemes.at(before) == "mutable" {
                before -= 1;
            }
            if lexemes.at(before) == ")" {
                before = lexemes.partner(before).unwrap_or(1).saturating_sub(1);
            }
            lexemes.at(before) == "]"
                && lexemes
                    .partner(before)
                    .is_some_and(|it| !lexemes.ends_operand(it.saturating_sub(1)))
        })
    }

    /// Reads a lambda. If it contains a barrier, it is read as a function that shares the names around it.
    fn lambda(&mut self, range: Range<usize>, brace: usize, start: usize, may_part: bool) {
        let Some(close) = self.lexemes.partner(brace) else { return };
        if self.waits(brace..close) {
            let since =
                std::mem::replace(&mut self.since, Since { accesses: Vec::new(), is_open: true });
            self.list(brace + 1..close);
            self.since = since;
        }
        self.simple(range.start..brace, start, may_part);
        self.simple(close + 1..range.end, start, false);
    }

    fn accesses(&self, range: Range<usize>) -> Vec<ElementAccess> {
        let mut found = Vec::new();
        for at in range {
            if let Some(&array) = self.arrays.get(self.lexemes.at(at))
                && !matches!(self.lexemes.before(at), "." | "->" | "::")
            {
                self.access(at, array, &mut found);
            }
        }
        found
    }

    /// Adds the accesses made through a name: to an element, to the pointee of a pointer, or by a function that
    /// gets the name as an argument.
    fn access(&self, at: usize, array: Array, found: &mut Vec<ElementAccess>) {
        let lexemes = self.lexemes;
        let (mut behind, mut text, mut index) = (at + 1, String::new(), Index::Common);
        let mut name = lexemes.at(at).to_owned();
        while lexemes.at(behind) == "." && lexemes.at(behind + 2) == "[" {
            name = format!("{name}.{}", lexemes.at(behind + 1));
            behind += 2;
        }
        let is_element = lexemes.at(behind) == "[";
        while lexemes.at(behind) == "[" {
            let Some(close) = lexemes.partner(behind) else { return };
            text = format!("{text} [{}]", self.lexemes.text(behind + 1..close));
            index = both(index, self.index(behind + 1..close));
            behind = close + 1;
        }
        let has_arrow = lexemes.at(behind) == "->";
        while matches!(lexemes.at(behind), "." | "->") {
            behind += 2;
        }
        let mut before = lexemes.before(at);
        let is_star = !is_element && before == "*" && !lexemes.ends_operand(at.saturating_sub(2));
        let is_alone = matches!(lexemes.at(behind), "," | ")") && matches!(before, "(" | ",");
        if is_star {
            before = lexemes.before(at - 1);
        } else if !is_element
            && (is_alone || before == "&" || matches!(lexemes.at(behind), "+" | "-"))
        {
            index = Index::Unknown;
        }
        let is_passed = index == Index::Unknown
            || (before == "&" && !lexemes.ends_operand(at.saturating_sub(2)));
        let mut add = |kind| {
            let (name, text, alone) = (name.clone(), text.clone(), self.alone.clone());
            found.push(ElementAccess { name, array, kind, index, text, alone });
        };
        if let Some(function) = self.called_with(at).filter(|_| is_passed) {
            return match function {
                _ if function.starts_with("atomic") => add(Kind::Atomic),
                "sizeof" => {}
                // The called function may read and write the array.
                _ => [Kind::Read, Kind::Write].into_iter().for_each(add),
            };
        }
        if !is_element && !is_star && !has_arrow && !self.variables.contains(lexemes.at(at)) {
            // The pointer itself is used, not its pointee.
            return;
        }
        let operator = lexemes.at(behind);
        let steps = |it: &str| matches!(it, "++" | "--");
        let writes = is_assignment(operator) || steps(operator) || steps(before);
        if !writes || operator != "=" {
            add(Kind::Read);
        }
        if writes {
            add(Kind::Write);
        }
    }

    /// Returns the function to which a name is passed as an argument.
    fn called_with(&self, at: usize) -> Option<&'a str> {
        let lexemes = self.lexemes;
        let open = lexemes.opener(at).filter(|&it| lexemes.at(it) == "(")?;
        let name = open.checked_sub(1).filter(|&it| lexemes.is_word(it))?;
        Some(lexemes.at(name)).filter(|it| *it == "sizeof" || !is_keyword(it))
    }

    /// Returns which threads share the value of an expression.
    fn index(&self, range: Range<usize>) -> Index {
        self.index_of(range, 0)
    }

    fn index_of(&self, range: Range<usize>, depth: usize) -> Index {
        let lexemes = self.lexemes;
        let divides = range.clone().any(|at| matches!(lexemes.at(at), "/" | "%" | ">>" | "&"));
        let mut all = Index::Common;
        for at in range {
            let word = lexemes.at(at);
            if matches!(word, "threadIdx" | "thread_rank" | "thread_index") {
                all = both(all, Index::Own);
            } else if self.is_name(at)
                && !matches!(lexemes.before(at), "." | "->" | "::")
                && depth < 6
            {
                all = both(all, self.value_of(word, at, depth));
            }
        }
        if divides && all == Index::Own { Index::Part } else { all }
    }

    /// Returns which threads share the initial value of a variable.
    fn value_of(&self, word: &str, at: usize, depth: usize) -> Index {
        let lexemes = self.lexemes;
        if matches!(word, "blockIdx" | "blockDim" | "gridDim" | "warpSize") {
            return Index::Common;
        }
        let declares = |it: &usize| {
            lexemes.at(*it) == word
                && lexemes.at(it + 1) == "="
                && (lexemes.is_word(it - 1) || lexemes.before(*it) == ",")
        };
        match (self.body.start..at).rev().find(declares) {
            Some(it) => {
                let end = lexemes.find(it, self.body.end, &[";", ","]).unwrap_or(it);
                self.index_of(it + 2..end, depth + 1)
            }
            // A helper's parameter is usually the thread's own index.
            None if (0..self.body.start).any(|it| lexemes.at(it) == word) => Index::Own,
            None => Index::Common,
        }
    }
}

/// Returns the index of the statement after the one at `at`.
pub(super) fn end_of(lexemes: &Lexemes<'_, '_>, at: usize, end: usize, depth: usize) -> usize {
    let behind = |at: usize| lexemes.find(at, end, &[";"]).map_or(end, |it| it + 1);
    match lexemes.at(at) {
        _ if depth > NESTED => end,
        "{" => lexemes.partner(at).map_or(end, |it| it + 1),
        "if" | "for" | "while" | "switch" if at < end => {
            let open = if lexemes.at(at + 1) == "constexpr" { at + 2 } else { at + 1 };
            let Some(close) = lexemes.partner(open) else { return end };
            let next = end_of(lexemes, close + 1, end, depth + 1);
            match lexemes.at(at) == "if" && lexemes.at(next) == "else" && next < end {
                true => end_of(lexemes, next + 1, end, depth + 1),
                false => next,
            }
        }
        "do" if at < end => behind(end_of(lexemes, at + 1, end, depth + 1)),
        _ => behind(at),
    }
}

/// Combines the indices of two dimensions: returns which threads share the element.
fn both(first: Index, second: Index) -> Index {
    match (first, second) {
        (Index::Unknown, _) | (_, Index::Unknown) => Index::Unknown,
        (Index::Own, _) | (_, Index::Own) => Index::Own,
        (Index::Part, _) | (_, Index::Part) => Index::Part,
        _ => Index::Common,
    }
}

/// Returns true if two threads may make these accesses to the same element, and one of them writes.
fn conflict(old: &ElementAccess, new: &ElementAccess) -> bool {
    let is_alike = old.kind == new.kind;
    let is_alone = old.alone.is_some() && old.alone == new.alone;
    let is_same = old.text == new.text && old.index != Index::Unknown;
    let are_numbers = |it: &ElementAccess| it.index == Index::Common;
    if old.name != new.name || is_alike || is_alone || (is_same && new.index == Index::Own) {
        return false;
    }
    let are_apart = are_numbers(old) && are_numbers(new) && !is_same;
    match new.array {
        Array::Shared => !are_apart || !is_number(&old.text) || !is_number(&new.text),
        Array::Global => {
            let is_common = |it: &ElementAccess| matches!(it.index, Index::Common | Index::Part);
            !are_apart && (is_common(old) || is_common(new))
        }
    }
}

/// Returns true for an index that is a number.
fn is_number(text: &str) -> bool {
    text.chars().all(|it| it.is_ascii_digit() || matches!(it, ' ' | '[' | ']'))
}

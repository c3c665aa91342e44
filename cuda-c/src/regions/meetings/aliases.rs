//! Alias analysis: pointers into arrays, such as `float *p = s + 32;` or `float *row = tile[threadIdx.y];`.
//!
//! An access through a pointer with one known value is translated into an access to the array: `p[t]` is
//! `s[32 + t]`, and `row[t]` is `tile[threadIdx.y][t]`. A pointer with several values, such as one that a
//! loop advances, may alias each global array that its values name, at any element.

use super::super::lexemes::Lexemes;
use super::super::statements::{Body, Local};
use super::index::{Indices, values};
use super::sums::Index;
use std::collections::BTreeSet;
use std::ops::Range;

/// Returns true if two names may refer to the same array. One may be a pointer whose target is only known as
/// a set of arrays.
pub(super) fn may_be_one(first: &str, second: &str) -> bool {
    let is_in = |one: &str, names: &str| {
        names.strip_prefix('*').is_some_and(|it| {
            one.trim_start_matches('*').split(' ').any(|one| it.split(' ').any(|it| it == one))
        })
    };
    first == second || is_in(first, second) || is_in(second, first)
}

/// An array, or a pointer that always points to the same place in it.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// The name. For a pointer with a uniform offset, it includes the offset.
    pub(super) name: String,
    /// The array into which the pointer points.
    pub(super) root: String,
    pub(super) is_shared: bool,
    /// False for a single variable.
    pub(super) is_pointer: bool,
    /// The indices of the row to which it points, and the offset within that row.
    row: Vec<Index>,
    from: Option<Index>,
}

impl Array {
    fn of(name: &str, is_shared: bool, is_pointer: bool) -> Array {
        let (name, root) = (name.to_owned(), name.to_owned());
        Array { name, root, is_shared, is_pointer, row: Vec::new(), from: None }
    }

    /// Stands for any place in some global arrays, for a pointer whose target is not followed.
    fn anywhere(local: &Local, id: usize, arrays: &BTreeSet<usize>, all: &[Local]) -> Array {
        let names: Vec<&str> = arrays.iter().map(|&it| all[it].name.as_str()).collect();
        let name = format!("*{}", names.join(" "));
        Array { from: Some(Index::of_pointer(&local.name, id)), ..Array::of(&name, false, true) }
    }

    /// Returns the indices of an element, relative to the whole array. The flag is true if they are known
    /// well enough to compare them across different names.
    pub(super) fn whole(&self, indices: &[Index]) -> (Vec<Index>, bool) {
        let mut own = indices.to_vec();
        if let (Some(from), Some(first)) = (&self.from, own.first_mut()) {
            *first = from.plus(first);
        }
        let mut places = self.row.iter().chain(&self.from);
        let is_alias = self.from.is_some() || !self.row.is_empty();
        let is_offset = places.any(Index::is_offset);
        ([self.row.clone(), own].concat(), is_alias && !is_offset)
    }

    /// Returns true if the pointer is known to have the same value in all threads.
    pub(super) fn is_common(&self) -> bool {
        let is_common = |it: &Index| !it.is_of_thread() && !it.is_free();
        self.row.iter().chain(&self.from).all(is_common)
    }

    /// Moves the pointer into a row, and by an offset.
    fn at(mut self, row: Vec<Index>, from: Option<Index>) -> Array {
        for index in row.iter().chain(&from).filter(|it| it.is_offset()) {
            self.name = format!("{}@{}", self.name, index.text());
        }
        // The first index of a row is relative to the current position.
        let mut row = row.into_iter();
        if let Some(first) = self.from.take_if(|_| row.len() > 0) {
            self.row.extend(row.next().map(|it| first.plus(&it)));
        }
        self.row.extend(row);
        self.from = match (self.from, from) {
            (Some(first), Some(second)) => Some(first.plus(&second)),
            (first, second) => first.or(second),
        };
        self
    }
}

/// The arrays of a kernel, and its pointers into them.
pub(super) struct Arrays<'w, 't, 'a> {
    pub(super) lexemes: &'w Lexemes<'t, 'a>,
    pub(super) body: &'w Body,
    pub(super) indices: &'w Indices<'w, 't, 'a>,
}

impl Arrays<'_, '_, '_> {
    /// Returns the local at a place if it is an array, a pointer into one, or shared.
    pub(super) fn at(&self, at: usize) -> Option<Array> {
        self.array(self.body.used(at)?, 0)
    }

    /// Returns the array that a local is, or points into. `depth` limits chains of pointers.
    fn array(&self, id: usize, depth: usize) -> Option<Array> {
        let local = &self.body.locals[id];
        let mut words = local.declarator.clone().chain(local.specifiers.clone());
        if local.is_shared {
            let is_pointer = self.lexemes.at(local.at + 1) == "[";
            return Some(Array::of(&local.name, true, is_pointer));
        }
        if local.is_parameter {
            let is_pointer = words.any(|it| matches!(self.lexemes.at(it), "*" | "["));
            return is_pointer.then(|| Array::of(&local.name, false, true));
        }
        let is_pointer = local.declarator.clone().all(|it| self.lexemes.at(it) != "[")
            && words.any(|it| self.lexemes.at(it) == "*");
        let value = is_pointer.then(|| self.indices.value(id)).flatten();
        let value = value.filter(|_| depth < 8);
        match value.and_then(|it| self.pointed(it, depth + 1)) {
            // After a cast to another element type, indices cannot be compared.
            Some((array, true)) if array.is_shared => Some(Array::of(&local.name, true, true)),
            Some((array, false)) => Some(Array { is_pointer: true, ..array }),
            _ if is_pointer => {
                let mut arrays = BTreeSet::new();
                self.add_arrays(id, &mut arrays, 0);
                (!arrays.is_empty()).then(|| Array::anywhere(local, id, &arrays, &self.body.locals))
            }
            _ => None,
        }
    }

    /// Adds the global arrays into which a pointer may point: those named in assignments to it.
    fn add_arrays(&self, id: usize, arrays: &mut BTreeSet<usize>, depth: usize) {
        let lexemes = self.lexemes;
        let is_pointer = |local: &Local| {
            let mut words = local.declarator.clone().chain(local.specifiers.clone());
            words.any(|it| lexemes.at(it) == "*") && !local.is_shared
        };
        for range in values(lexemes, self.body, id) {
            let first = self.body.uses.partition_point(|it| it.at < range.start);
            for used in self.body.uses[first..].iter().take_while(|it| it.at < range.end) {
                let local = &self.body.locals[used.local];
                if local.is_parameter && is_pointer(local) {
                    arrays.insert(used.local);
                } else if is_pointer(local) && depth < 4 {
                    self.add_arrays(used.local, arrays, depth + 1);
                }
            }
        }
    }

    /// Returns the target of a pointer expression, and true if it contains a cast.
    fn pointed(&self, range: Range<usize>, depth: usize) -> Option<(Array, bool)> {
        let lexemes = self.lexemes;
        let (mut start, end) = (range.start, range.end);
        if lexemes.at(start) == "(" {
            let close = lexemes.partner(start)?;
            if close + 1 == end {
                return self.pointed(start + 1..close, depth);
            }
            let is_cast = lexemes.is_cast(close, |it| self.body.used(it).is_some());
            return is_cast.then(|| Some((self.pointed(close + 1..end, depth)?.0, true)))?;
        }
        let takes_address = lexemes.at(start) == "&";
        start += usize::from(takes_address);
        let array = self.array(self.body.used(start)?, depth)?;
        let (mut at, mut indices) = (start + 1, Vec::new());
        while lexemes.at(at) == "[" && at < end {
            let close = lexemes.partner(at)?;
            indices.push(self.indices.index(at + 1..close));
            at = close + 1;
        }
        let from = match lexemes.at(at) {
            _ if at == end && takes_address => Some(indices.pop()?),
            _ if at == end => None,
            "+" if !takes_address => Some(self.indices.index(at + 1..end)),
            "-" if !takes_address => Some(self.indices.index(at..end)),
            _ => return None,
        };
        Some((array.at(indices, from), false))
    }
}

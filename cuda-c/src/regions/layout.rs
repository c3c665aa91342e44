//! Divides the statements of a kernel into regions, each of which becomes loops over threads, and statements
//! that stay outside of these loops.
//!
//! A statement stays outside if it contains a barrier, or a `break` or `continue` of a loop that
//! does. It ends the region before it. So does an assignment to a uniform local, which runs once per block.
//! A local that is neither uniform nor recomputed, and is used in several regions, is *kept*: it gets one
//! array element per thread.

use super::access::Access;
use super::assigned::is_assigned;
use super::classes::{Class, Classes};
use super::facts::{facts, is_outer, is_plain, may_fault};
use super::lexemes::{Lexemes, NONE};
use super::statements::{Body, Local, Loop, Node, What};
use super::words::{is_integer, is_specifier, is_type};
use std::collections::BTreeSet;
use std::ops::Range;

/// A part of a kernel, in source order.
#[derive(Debug)]
pub(super) enum Item<'n> {
    /// A loop over threads: the number of its region.
    Region(usize),
    Barrier,
    /// A strided loop that runs in rounds, with a loop over threads in each: the numbers of its region and of
    /// the strided loop.
    Rounds(usize, usize),
    /// The declaration of a variable that is shared by the loops over threads.
    Declaration(&'n Node),
    /// An assignment to such a variable: its index in `Classes::writes`.
    Write(usize),
    If {
        condition: Range<usize>,
        then: Vec<Item<'n>>,
        other: Vec<Item<'n>>,
    },
    Loop {
        node: &'n Loop,
        body: Vec<Item<'n>>,
    },
    Block(Vec<Item<'n>>),
    /// A `break`, `continue` or `return`.
    Jump(&'n Node),
}

/// A run of statements without a barrier.
#[derive(Debug, Default)]
pub(super) struct Region<'n> {
    pub(super) nodes: Vec<&'n Node>,
    /// True if some threads may return in this region while others continue after it.
    pub(super) loses_threads: bool,
    /// The runs of its statements, each of which becomes one loop over threads.
    pub(super) parts: Vec<Part>,
}

/// A run of statements of a region.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) nodes: Range<usize>,
    /// The index of a guard, if this is either one statement that threads of a row can skip together, or a
    /// guard that returns and the statements after it.
    pub(super) guard: Option<usize>,
}

/// The items and regions of a kernel.
#[derive(Debug, Default)]
pub(super) struct Layout<'n> {
    pub(super) items: Vec<Item<'n>>,
    pub(super) regions: Vec<Region<'n>>,
    /// Locals that need one array element per thread.
    pub(super) kept: BTreeSet<usize>,
}

impl Layout<'_> {
    /// Returns true if threads of a row skip statements together, and no local has to be kept in memory for
    /// that.
    pub(super) fn has_guards_alone(&self) -> bool {
        let mut parts = self.regions.iter().flat_map(|it| &it.parts);
        self.kept.is_empty() && parts.any(|it| it.guard.is_some())
    }
}

/// Lays out a kernel. Returns `None` if it cannot have a loop variant.
pub(super) fn layout<'n>(
    lexemes: &Lexemes<'_, '_>,
    body: &'n Body,
    classes: &Classes,
) -> Option<Layout<'n>> {
    let mut builder = Builder { lexemes, body, classes, regions: Vec::new() };
    let items = builder.list(&body.nodes);
    let mut regions = builder.regions;
    let last = match items.last() {
        Some(Item::Region(number)) => *number,
        _ => usize::MAX,
    };
    for (number, region) in regions.iter_mut().enumerate() {
        region.loses_threads = number != last && region.nodes.iter().any(|it| facts(it).returns);
    }
    let mut layout = Layout { items, regions, kept: BTreeSet::new() };
    layout.kept = kept(lexemes, body, classes, &layout.regions)?;
    for (number, region) in layout.regions.iter_mut().enumerate() {
        let is_last = number == last;
        region.parts = parts(lexemes, body, classes, &layout.kept, &region.nodes, is_last);
    }
    Some(layout)
}

struct Builder<'b, 't, 'a, 'n> {
    lexemes: &'b Lexemes<'t, 'a>,
    body: &'n Body,
    classes: &'b Classes,
    regions: Vec<Region<'n>>,
}

impl<'n> Builder<'_, '_, '_, 'n> {
    /// Divides a list of statements outside of thread loops into items.
    fn list(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<Item<'n>> {
        let (mut items, mut region) = (Vec::new(), Region::default());
        for node in nodes {
            match &node.what {
                What::Empty => {}
                What::Shared => items.push(Item::Declaration(node)),
                What::Declaration(id) => match self.classes.of[*id] {
                    // The initialiser depends on nothing that the statements of the region assign to, so the
                    // declaration can move before them. If it may fault, it stays after them: a thread might
                    // return first and never evaluate it.
                    Class::Uniform | Class::Shifted => {
                        if may_fault(self.lexemes, &self.body.locals[*id].init) {
                            self.close(&mut region, &mut items);
                        }
                        items.push(Item::Declaration(node));
                    }
                    Class::Computed | Class::Counter => {}
                    _ => region.nodes.push(node),
                },
                What::Loop(it) if self.strided(node).is_some() => {
                    self.close(&mut region, &mut items);
                    region.nodes.push(&it.body);
                    self.close(&mut region, &mut items);
                    let number = self.strided(node).unwrap_or_default();
                    items.pop();
                    items.push(Item::Rounds(self.regions.len() - 1, number));
                }
                _ => match self.outer(node) {
                    Some(make) => {
                        self.close(&mut region, &mut items);
                        items.push(make);
                    }
                    None => region.nodes.push(node),
                },
            }
        }
        self.close(&mut region, &mut items);
        items
    }

    fn strided(&self, node: &Node) -> Option<usize> {
        self.classes.strided.iter().position(|it| it.at == node.range.start)
    }

    /// Ends the current region, if it has statements.
    fn close(&mut self, region: &mut Region<'n>, items: &mut Vec<Item<'n>>) {
        if !region.nodes.is_empty() {
            self.regions.push(std::mem::take(region));
            items.push(Item::Region(self.regions.len() - 1));
        }
    }

    /// Returns the item for a statement that is not in a loop over threads.
    fn outer(&mut self, node: &'n Node) -> Option<Item<'n>> {
        if let What::Expression = node.what {
            let is_outer =
                |local: usize| matches!(self.classes.of[local], Class::Uniform | Class::Shifted);
            let writes = self.classes.writes.iter();
            let number = writes.enumerate().find_map(|(number, it)| {
                (it.range.start == node.range.start && is_outer(it.local)).then_some(number)
            });
            return number.map(Item::Write);
        }
        if !is_outer(node) {
            return None;
        }
        Some(match &node.what {
            What::Barrier | What::Meeting => Item::Barrier,
            What::Block(nodes) => Item::Block(self.list(nodes)),
            What::If { condition, then, other } => Item::If {
                condition: condition.clone(),
                then: self.list([&**then]),
                other: self.list(other.as_deref()),
            },
            What::Loop(it) => Item::Loop { node: it, body: self.list([&*it.body]) },
            _ => Item::Jump(node),
        })
    }
}

/// Returns the locals whose value a thread carries from one loop to another. Returns `None` if such a local
/// is used between loops.
fn kept(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    classes: &Classes,
    regions: &[Region<'_>],
) -> Option<BTreeSet<usize>> {
    let region_of = |at: usize| {
        let holds = |it: &&Node| it.range.contains(&at);
        regions.iter().position(|region| region.nodes.iter().any(holds))
    };
    let mut kept = BTreeSet::new();
    for (id, local) in body.locals.iter().enumerate() {
        if classes.of[id] != Class::Own || !classes.is_outer[id] {
            continue;
        }
        let uses = body.uses.iter().filter(|it| it.local == id);
        let mut at: BTreeSet<_> = uses.map(|it| region_of(it.at)).collect();
        if local.is_parameter {
            // Each thread has its own parameter.
            kept.insert(id);
        } else {
            at.insert(region_of(local.at));
            if at.len() > 1 || (regions.len() > 1 && may_be_pointed_to(lexemes, body, id, local)) {
                kept.insert(id);
            }
        }
        if at.contains(&None) {
            return None;
        }
        // An array is in memory whether or not the kernel has a loop variant.
        let is_array = local.declarator.clone().any(|it| lexemes.at(it) == "[");
        let is_set = local.is_parameter || local.init.start != NONE || is_array;
        if kept.contains(&id) && !is_set && !is_assigned(lexemes, body, id) {
            return None;
        }
    }
    Some(kept)
}

/// Returns true if a pointer to a local, or into it, may outlive the region in which the local is declared.
fn may_be_pointed_to(lexemes: &Lexemes<'_, '_>, body: &Body, id: usize, local: &Local) -> bool {
    let is_element = |at: usize| {
        let mut behind = at + 1;
        let extents = local.declarator.clone().filter(|&it| lexemes.at(it) == "[").count();
        (0..extents).all(|_| {
            let is_next = lexemes.at(behind) == "[";
            behind = lexemes.partner(behind).map_or(behind, |it| it + 1);
            is_next
        })
    };
    let is_array = local.declarator.clone().any(|it| lexemes.at(it) == "[");
    let mut uses = body.uses.iter().filter(|it| it.local == id);
    uses.any(|it| it.access == Access::Unknown || !is_element(it.at))
        || !(is_plain(lexemes, local) || (is_array && is_number(lexemes, local)))
}

/// Returns true for numbers of a built-in type, and arrays of them.
pub(super) fn is_number(lexemes: &Lexemes<'_, '_>, local: &Local) -> bool {
    let is_word = |it: usize| {
        let word = lexemes.at(it);
        is_type(word) || is_integer(word) || (is_specifier(word) && word != "struct")
    };
    local.specifiers.clone().all(is_word)
}

/// Returns the parts of a region: each guarded statement alone, and each guard that returns together with the
/// statements after it. Threads of a row can then skip guarded statements together: `for (thread) { a(); if (x < n)
/// b(); c(); }` becomes `for (thread) a();`, `for (thread below n) b();` and `for (thread) c();`.
///
/// A region is not split where a local would outlive its loop without having a place in memory. In a region
/// that `is_last`, nobody checks which threads have returned.
fn parts(
    lexemes: &Lexemes<'_, '_>,
    body: &Body,
    classes: &Classes,
    kept: &BTreeSet<usize>,
    nodes: &[&Node],
    is_last: bool,
) -> Vec<Part> {
    let whole = Part { nodes: 0..nodes.len(), guard: None };
    let in_loops =
        |id: &usize| classes.of[*id] == Class::Own && classes.is_outer[*id] && !kept.contains(id);
    let used_by = |id: usize| {
        let uses = body.uses.iter().filter(move |it| it.local == id).map(|it| it.at);
        let ats: Vec<usize> = uses.chain([body.locals[id].at]).collect();
        (0..nodes.len()).filter(move |&it| ats.iter().any(|at| nodes[it].range.contains(at)))
    };
    let locals: Vec<usize> = (0..body.locals.len())
        .filter(in_loops)
        .filter(|&id| used_by(id).next().is_some())
        .collect();
    let is_pointed_to = |&id: &usize| may_be_pointed_to(lexemes, body, id, &body.locals[id]);
    let guard_of = |it: usize| classes.guards.iter().position(|by| by.at == nodes[it].range.start);
    let first = nodes.iter().position(|it| facts(it).returns);
    let returning = first.and_then(|it| Some((it, guard_of(it)?)));
    let returning = returning.filter(|it| is_last && classes.guards[it.1].returns);
    if first.is_some() != returning.is_some() || locals.iter().any(is_pointed_to) {
        return vec![whole];
    }
    let mut parts: Vec<Part> = Vec::new();
    for number in 0..returning.map_or(nodes.len(), |it| it.0) {
        let guard = guard_of(number);
        let fits = parts.last().is_some_and(|it| it.guard.is_none()) && guard.is_none();
        match parts.last_mut().filter(|_| fits) {
            Some(last) => last.nodes.end = number + 1,
            None => parts.push(Part { nodes: number..number + 1, guard }),
        }
    }
    if let Some((number, guard)) = returning {
        parts.push(Part { nodes: number..nodes.len(), guard: Some(guard) });
    }
    for id in locals {
        let (Some(first), Some(last)) = (used_by(id).next(), used_by(id).next_back()) else {
            continue;
        };
        let begin = parts.iter().position(|it| it.nodes.contains(&first)).unwrap_or_default();
        let end = parts.iter().position(|it| it.nodes.contains(&last)).unwrap_or(begin);
        if begin < end {
            let nodes = parts[begin].nodes.start..parts[end].nodes.end;
            parts.splice(begin..=end, [Part { nodes, guard: None }]);
        }
    }
    parts
}

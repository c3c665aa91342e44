//! Splits a region into several loops over threads, so that threads of a row can skip guarded statements
//! together.
//!
//! For example, `for (thread) { a(); if (x < n) b(); c(); }` becomes three loops: `for (thread) a();`, `for
//! (thread below n) b();` and `for (thread) c();`.

use super::super::classes::{Class, Classes};
use super::super::facts::facts;
use super::super::lexemes::Lexemes;
use super::super::statements::{Body, Node};
use super::{Part, may_be_pointed_to};
use std::collections::BTreeSet;

/// Returns the parts of a region. Each guarded statement is a part; a guard that returns is one part with
/// the statements after it.
///
/// A region is not split where a local would outlive its loop without having a place in memory. In a region
/// that `is_last`, nobody checks which threads have returned.
pub(super) fn parts(
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

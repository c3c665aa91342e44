//! Finds the ends of branches and loops in which lanes write to volatile memory.
//!
//! At such an end, lanes that took another path wait for those that still have to write, because the lanes of
//! a GPU reconverge there: `if (lane == 0) s[0] = sum; mine = s[0];`. A call of a function that writes to
//! volatile memory counts as a write.

use super::loops::body_of_do;
use crate::tokens::Tokens;
use crate::tree::{Function, last_of_statement};
use std::collections::{HashMap, HashSet};

/// Returns the byte offsets after which lanes meet, and the text to insert there. `writes` holds the tokens
/// at which volatile elements are assigned, in order.
pub(super) fn ends(tokens: &Tokens<'_>, writes: &[usize]) -> Vec<(usize, String)> {
    // Without shared memory, lanes cannot exchange values.
    let has_shared = |it| tokens.at(it) == "thread_local" && !tokens.is_of_language(it);
    if writes.is_empty() || !(0..tokens.len()).any(has_shared) {
        return Vec::new();
    }
    let mut all = writes.to_vec();
    all.extend(calls(tokens, writes));
    all.sort_unstable();
    let holds = |first: usize, last: usize| {
        all.get(all.partition_point(|it| *it < first)).is_some_and(|it| *it <= last)
    };
    let is_end_of_do = |at: usize| tokens.at(at) == "while" && body_of_do(tokens, at).is_some();
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        let is_branch = matches!(tokens.at(at), "if" | "for" | "while" | "do" | "switch");
        // The statement has to be one of a block, not the body of another statement.
        if !is_branch || !matches!(tokens.at(at - 1), ";" | "{" | "}" | ":") {
            continue;
        }
        let Some(last) = last_of_statement(tokens, at) else { continue };
        // The `while` at the end of a `do` is not a loop of its own.
        if holds(at, last) && tokens.is_of_program(at) && !is_end_of_do(at) {
            found.push(tokens.all[last].end);
        }
    }
    // Each end gets a number, in order, because two of them may be on the same line.
    found.sort_unstable();
    let meeting = |(number, at): (usize, usize)| (at, format!(" ::cuda_c::meet_behind({number});"));
    found.into_iter().enumerate().map(meeting).collect()
}

/// Returns the calls of functions that assign to volatile elements, directly or through other functions.
/// Functions are matched by name.
fn calls(tokens: &Tokens<'_>, writes: &[usize]) -> Vec<usize> {
    // The calls of each function.
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    // The names of the functions around the current token. The last one is the innermost.
    let mut around: Vec<Option<&str>> = Vec::new();
    let mut innermost: Vec<&str> = Vec::with_capacity(tokens.len());
    for at in 0..tokens.len() {
        match tokens.at(at) {
            "{" => around.push(Function::of(tokens, at).and_then(|it| it.name)),
            "}" => drop(around.pop()),
            _ => {}
        }
        innermost.push(around.iter().rev().find_map(|it| *it).unwrap_or(""));
        let is_call = tokens.is_word(at) && matches!(tokens.at(at + 1), "(" | "<");
        if is_call && tokens.is_of_program(at) {
            places.entry(tokens.at(at)).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    let mut known: HashSet<&str> = HashSet::from([""]);
    let mut left: Vec<&str> = writes.iter().map(|&it| innermost[it]).collect();
    while let Some(name) = left.pop() {
        if known.insert(name) {
            let calls = places.get(name).map_or(&[][..], Vec::as_slice);
            left.extend(calls.iter().map(|&it| innermost[it]));
            found.extend(calls);
        }
    }
    found
}

//! Finds the ends of branches and loops in which lanes write to volatile memory.
//!
//! At such an end, lanes that took another path wait for those that still have to write, because the lanes of
//! a GPU reconverge there: `if (lane == 0) s[0] = sum; mine = s[0];`. A call of a function that writes to
//! volatile memory counts as a write.

use super::loop_parts::body_of_do;
use super::names::Names;
use crate::tokens::Tokens;
use crate::tree::{Function, last_of_statement};
use std::collections::{HashMap, HashSet};

/// Returns true if lanes may exchange values through volatile global memory: a pointer, a cast or a global
/// array leads to it, and the text reads elements other than those that it assigns (`writes`).
pub(super) fn is_exchanged(tokens: &Tokens<'_>, names: &Names<'_>, writes: &[usize]) -> bool {
    let is_local = |at: usize| {
        let is_body = |open: &usize| {
            tokens.at(*open) == "{"
                && tokens.partner(*open).is_some_and(|close| close > at)
                && Function::of(tokens, *open).is_some()
        };
        (0..at).any(|open| is_body(&open))
    };
    let leads_far = |at: usize| {
        let end = (at + 1..tokens.len()).find(|&it| !tokens.is_word(it));
        let sign = end.map_or("", |it| tokens.at(it));
        tokens.at(at) == "volatile"
            && tokens.is_of_program(at)
            && (matches!(sign, "*" | "&") || (sign == "[" && !is_local(at)))
    };
    // A word in front of a name, or of its `*`, is the type in a declaration.
    let follows_type = |at: usize| {
        at.checked_sub(1).is_some_and(|it| tokens.is_word(it) && tokens.at(it) != "return")
    };
    let is_operand = |at: usize| !follows_type(at) && !writes.contains(&at);
    let is_read = |at: usize| {
        let is_element = tokens.at(at + 1) == "[" && is_operand(at);
        let star = at.saturating_sub(if at > 1 && tokens.at(at - 1) == "(" { 2 } else { 1 });
        let is_pointee = tokens.at(star) == "*" && is_operand(star);
        let is_cast = tokens.at(at) == "volatile"
            && at > 0
            && tokens.at(at - 1) == "("
            && !follows_type(at - 1);
        is_cast || (names.has(tokens.at(at)) && (is_element || is_pointee))
    };
    !writes.is_empty() && (0..tokens.len()).any(leads_far) && (0..tokens.len()).any(is_read)
}

/// Returns the byte offsets after which lanes meet, and the text to insert there. `writes` holds the tokens
/// at which volatile elements are assigned, in order; `is_exchanged` is the function's result. Otherwise,
/// lanes exchange values in shared memory only.
pub(super) fn ends(
    tokens: &Tokens<'_>,
    writes: &[usize],
    is_exchanged: bool,
) -> Vec<(usize, String)> {
    let has_shared = |it| tokens.at(it) == "thread_local" && !tokens.is_of_language(it);
    if writes.is_empty() || !(is_exchanged || (0..tokens.len()).any(has_shared)) {
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

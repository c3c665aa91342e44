//! Finds loops that end when another thread writes, by looking at the conditions on which they end.
//!
//! The end of such a loop depends on a volatile read or on the result of an atomic operation. That value may
//! be in one of three places:
//!
//! - In the condition of the loop: `while (atomicAdd(s, 0) == 0) { c++; }`.
//! - In the condition of an `if` that leaves it: `while (true) { if (atomicAdd(s, 0)) break; }`.
//! - In a variable that one of them tests: `while (!v) v = *flag;` with a volatile `flag`.
//!
//! A loop that retries `atomicCAS` until no other thread interferes ends by itself. It is recognised by its
//! comparison with a variable; a lock compares with a number.

use super::loop_parts::{Loop, assigns, is_call, reads};
use super::names::Names;
use crate::tokens::Tokens;
use crate::tree::{last_of_statement, value_end};
use std::collections::HashSet;
use std::ops::Range;

/// Atomic operations, and reads that bypass caches.
const ATOMIC: [&str; 5] = ["atomic", "__atomic", "__nv_atomic", "__ldcv", "__ldcg"];
/// The operations that compare before they write.
const COMPARING: [&str; 1] = ["atomicCAS"];
/// Members of `cuda::atomic` that return values which another thread has written.
const MEMBERS: [&str; 3] = ["load", "exchange", "compare_exchange_"];
/// Words of types, in casts of a number.
const TYPES: [&str; 6] = ["unsigned", "signed", "int", "long", "short", "bool"];

/// Returns true if the loop ends because of a value that another thread writes.
pub(super) fn ends_by_another(
    tokens: &Tokens<'_>,
    names: &Names<'_>,
    objects: &HashSet<&str>,
    found: &Loop,
    deciding: &[Range<usize>],
) -> bool {
    let is_volatile = |range: &Range<usize>| range.clone().any(|it| reads(tokens, names, it));
    let is_atomic = |range: &Range<usize>| {
        range.clone().any(|it| waits(tokens, it) || objects.contains(tokens.at(it)))
    };
    let is_condition = |range: &Range<usize>| range.start == found.condition.start;
    deciding.iter().any(|it| is_atomic(it) || (is_volatile(it) && !is_condition(it)))
}

/// Returns the ranges of tokens that decide when a loop ends: its condition, unless it counts, the condition of each
/// `if` that leaves it, and what is assigned to variables in them.
pub(super) fn deciding(tokens: &Tokens<'_>, found: &Loop) -> Vec<Range<usize>> {
    let mut ranges = exits(tokens, &found.body);
    let tests = ranges.iter().chain([&found.condition]).cloned().flatten();
    let asked: HashSet<&str> =
        tests.filter(|&it| tokens.is_word(it)).map(|it| tokens.at(it)).collect();
    let signs = found.body.clone().chain(found.step.clone()).filter(|&it| assigns(tokens, it));
    let values: Vec<_> = signs
        .filter(|&it| assigned(tokens, it).is_some_and(|name| asked.contains(name)))
        .map(|it| it + 1..value_end(tokens, it + 1))
        .collect();
    ranges.extend(values);
    if !found.counts {
        ranges.push(found.condition.clone());
    }
    ranges
}

/// Returns the conditions of each `if` that leaves the loop from its body. Exits of nested loops do not
/// count.
fn exits(tokens: &Tokens<'_>, body: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = body.start;
    while at < body.end {
        match tokens.at(at) {
            "for" | "while" | "do" => at = last_of_statement(tokens, at).unwrap_or(at),
            "if" if tokens.at(at + 1) == "(" => {
                if let Some(close) = tokens.partner(at + 1) {
                    let end = last_of_statement(tokens, at).unwrap_or(close);
                    let leaves = (close + 1..end)
                        .any(|it| matches!(tokens.at(it), "break" | "return" | "goto"));
                    if leaves {
                        found.push(at + 2..close);
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns the variable that is assigned, given the `=` of the assignment.
fn assigned<'a>(tokens: &Tokens<'a>, sign: usize) -> Option<&'a str> {
    let mut at = sign.checked_sub(1)?;
    if matches!(tokens.at(at), "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^") {
        at = at.checked_sub(1)?;
    }
    tokens.is_word(at).then(|| tokens.at(at))
}

/// Returns the variables that the program declares as `cuda::atomic` or `cuda::atomic_ref`.
pub(super) fn objects<'a>(tokens: &Tokens<'a>) -> HashSet<&'a str> {
    let is_type =
        |at: usize| matches!(tokens.at(at), "atomic" | "atomic_ref") && tokens.at(at + 1) == "<";
    let types = (0..tokens.len()).filter(|&at| is_type(at) && tokens.is_of_program(at));
    let names = types.map(|at| {
        let mut depth = 0_i32;
        let mut behind = at + 1;
        while behind < tokens.len() {
            match tokens.at(behind) {
                "<" => depth += 1,
                ">" => depth -= 1,
                ";" | "{" | "}" => break,
                _ if depth == 0 && tokens.is_word(behind) => return tokens.at(behind),
                _ => {}
            }
            behind += 1;
        }
        ""
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns true for a call of an atomic operation whose result depends on another thread.
fn waits(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_member = at > 1
        && (tokens.at(at - 1) == "." || (tokens.at(at - 1), tokens.at(at - 2)) == (">", "-"));
    if is_member {
        return is_call(tokens, at, &MEMBERS);
    }
    if !is_call(tokens, at, &ATOMIC) {
        return false;
    }
    if !is_call(tokens, at, &COMPARING) {
        return true;
    }
    let first = value_end(tokens, at + 2);
    let compared = first + 1..value_end(tokens, first + 1);
    compared.into_iter().all(|it| !tokens.is_word(it) || TYPES.contains(&tokens.at(it)))
}

//! Loops that wait for what another thread does: each turn lets the other threads of the block run.

use super::Edit;
use super::names::Names;
use crate::tokens::Tokens;

const TURN: &str = "::cuda_c::turn()";
/// What takes a lock.
const LOCKS: [&str; 2] = ["atomicCAS", "atomicExch"];

/// Adds the edits of all such loops. In a program whose lanes meet where they write, `meets`, a thread may hold a lock
/// meanwhile, so that loops that take one wait, too.
pub(super) fn edits(tokens: &Tokens<'_>, names: &Names<'_>, meets: bool, edits: &mut Vec<Edit>) {
    let calls =
        |names: &[&str], from: usize, to: usize| (from..to).any(|at| is_call(tokens, at, names));
    for at in (0..tokens.len()).filter(|&at| tokens.is_of_program(at)) {
        let Some(close) = tokens.partner(at + 1).filter(|_| tokens.at(at + 1) == "(") else {
            continue;
        };
        let (open, end) = match tokens.at(at) {
            "while" => (at + 2, close),
            "for" => match for_condition(tokens, at + 2, close) {
                Some(range) => range,
                None => continue,
            },
            _ => continue,
        };
        let behind = body_end(tokens, close + 1);
        let is_empty = behind == close + 2 || tokens.at(close + 1) == ";";
        let waits = (open..end).any(|it| reads(tokens, names, it))
            || (is_empty && calls(&["atomic", "__atomic"], open, end))
            || (meets && calls(&LOCKS, open, behind));
        let declares = (open + 1..end).any(|it| {
            tokens.at(it) == "=" && tokens.is_word(it - 1) && is_declared(tokens, it - 1, open)
        });
        if !waits || declares {
            continue;
        }
        let all = &tokens.all;
        if open == end {
            edits.push((all[end].start, all[end].start, TURN.to_owned()));
        } else {
            edits.push((all[open].start, all[open].start, "(".to_owned()));
            edits.push((all[end].start, all[end].start, format!(") && {TURN}")));
        }
    }
}

/// The condition of a loop that counts nothing: `for (...; condition; )`.
fn for_condition(tokens: &Tokens<'_>, open: usize, close: usize) -> Option<(usize, usize)> {
    let mut semicolons = (open..close).filter(|&at| tokens.at(at) == ";");
    let (first, second) = (semicolons.next()?, semicolons.next()?);
    (second + 1 == close).then_some((first + 1, second))
}

/// The end of the statement that a loop repeats; that of its condition for `do`.
fn body_end(tokens: &Tokens<'_>, from: usize) -> usize {
    match tokens.at(from) {
        "{" => tokens.partner(from).unwrap_or(from) + 1,
        _ => from,
    }
}

/// True for a name behind a type: `while (int x = ...)`.
fn is_declared(tokens: &Tokens<'_>, name: usize, open: usize) -> bool {
    name > open && (tokens.is_word(name - 1) || matches!(tokens.at(name - 1), "*" | "&"))
}

/// True for a token that reads something volatile.
fn reads(tokens: &Tokens<'_>, names: &Names<'_>, at: usize) -> bool {
    tokens.is_word(at) && (names.is_qualifier(tokens.at(at)) || names.is_variable(tokens.at(at)))
}

fn is_call(tokens: &Tokens<'_>, at: usize, names: &[&str]) -> bool {
    tokens.is_word(at)
        && tokens.at(at + 1) == "("
        && names.iter().any(|it| tokens.at(at).starts_with(it))
}

//! Loops that wait for what another thread does: each turn lets the other threads of the block run.

use super::Edit;
use super::names::Names;
use crate::ptx;
use crate::tokens::Tokens;

const TURN: &str = "::cuda_c::turn()";
/// What takes a lock.
const LOCKS: [&str; 2] = ["atomicCAS", "atomicExch"];

/// Adds the edits of all such loops. In a program whose lanes meet where they write, `meets`, a thread may hold a lock
/// meanwhile, so that loops that take one wait, too.
pub(super) fn edits(tokens: &Tokens<'_>, names: &Names<'_>, meets: bool, edits: &mut Vec<Edit>) {
    let calls =
        |names: &[&str], from: usize, to: usize| (from..to).any(|at| is_call(tokens, at, names));
    // Whether a function reads something volatile by inline PTX is not seen.
    let has_ptx = ptx::is_used(tokens);
    for at in (0..tokens.len()).filter(|&at| matches!(tokens.at(at), "while" | "for")) {
        let close = tokens.partner(at + 1).filter(|_| tokens.at(at + 1) == "(");
        let Some(close) = close.filter(|_| tokens.is_of_program(at)) else { continue };
        let (open, end) = match tokens.at(at) {
            "while" => (at + 2, close),
            "for" => match for_condition(tokens, at + 2, close) {
                Some(range) => range,
                None => continue,
            },
            _ => continue,
        };
        let behind = body_end(tokens, close + 1);
        // That of `do` is in front.
        let before = at.checked_sub(1).filter(|&it| tokens.at(it) == "}");
        let is_do = before.and_then(|it| tokens.partner(it)).filter(|&it| it > 0);
        let is_do = is_do.filter(|&it| tokens.at(it - 1) == "do");
        let body = is_do.unwrap_or(open);
        let is_empty = is_do.is_none() && (behind == close + 3 || tokens.at(close + 1) == ";");
        // `for (;;)` is left from within.
        let is_endless =
            open == end || (open + 1 == end && matches!(tokens.at(open), "true" | "1"));
        let asked = if is_endless { behind } else { end };
        let is_wait = |it| tokens.at(it) == "(" && tokens.is_word(it - 1);
        let waits = (is_empty && has_ptx && (open..end).any(is_wait))
            || (open..asked).any(|it| reads(tokens, names, it))
            || (is_empty && calls(&["atomic", "__atomic"], open, end))
            || (has_ptx && (body..behind).any(|it| is_ordered_load(tokens, it)))
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

/// True for the text of inline PTX that reads what other threads write.
fn is_ordered_load(tokens: &Tokens<'_>, at: usize) -> bool {
    let text = tokens.at(at);
    let is_text = text.starts_with('"') || text.starts_with("R\"");
    is_text && ["ld.volatile", "ld.acquire", "ld.relaxed"].iter().any(|it| text.contains(it))
}

fn is_call(tokens: &Tokens<'_>, at: usize, names: &[&str]) -> bool {
    tokens.is_word(at)
        && tokens.at(at + 1) == "("
        && names.iter().any(|it| tokens.at(at).starts_with(it))
}

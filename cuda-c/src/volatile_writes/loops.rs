//! Finds loops that wait for another thread, and lets the other threads of the block run in each iteration:
//! `while (flag == 0) {}` becomes `while ((flag == 0) && ::cuda_c::turn()) {}`. Without that, the waiting
//! thread would never let another one run.

use super::names::{Names, is_word};
use super::questions::{self, VolatileLines};
use super::{Edits, waits};
use crate::ptx;
use crate::tokens::Tokens;
use crate::tree::last_of_statement;
use std::ops::Range;

/// The call that lets other threads of the block run. It returns true.
const TURN: &str = "::cuda_c::turn()";
/// The functions that take a lock.
const LOCKS: [&str; 2] = ["atomicCAS", "atomicExch"];

/// Adds the edits for all such loops. If `meets` is true, the lanes of a warp wait for each other at some
/// writes, and a lane that waits may hold a lock. Loops that take a lock therefore also wait.
pub(super) fn edits(
    tokens: &Tokens<'_>,
    names: &Names<'_>,
    lines: &VolatileLines,
    meets: bool,
    edits: &mut Edits,
) {
    let calls = |names: &[&str], range: Range<usize>| {
        range.into_iter().any(|at| is_call(tokens, at, names))
    };
    // The text does not show if a function reads volatile memory by inline PTX.
    let has_ptx = ptx::is_used(tokens);
    let objects = waits::objects(tokens);
    for at in (0..tokens.len()).filter(|&at| matches!(tokens.at(at), "while" | "for")) {
        let Some(found) = Loop::of(tokens, at) else { continue };
        let Loop { condition, body, .. } = &found;
        let is_wait = |it| tokens.at(it) == "(" && tokens.is_word(it - 1);
        let asked = match found.is_endless {
            true => condition.start..body.end.max(condition.end),
            false => condition.clone(),
        };
        // A loop without a step waits in one of these cases, in the order of the expression:
        // - It is empty, and its condition calls a function, which may read volatile memory by inline PTX.
        // - Its condition reads a volatile variable; in an endless loop, so may its body.
        // - It is empty, and its condition is an atomic operation.
        // - Its body reads memory by inline PTX with an order.
        // - It takes a lock, which a thread may hold while the lanes meet.
        let waits = !found.counts
            && ((found.is_empty && has_ptx && condition.clone().any(is_wait))
                || asked.into_iter().any(|it| reads(tokens, names, it))
                || (found.is_empty && calls(&["atomic", "__atomic"], condition.clone()))
                || (has_ptx && body.clone().any(|it| is_ordered_load(tokens, it)))
                || (meets && calls(&LOCKS, condition.clone()))
                || (meets && !found.is_do && calls(&LOCKS, body.clone())));
        let (open, end) = (condition.start, condition.end);
        let declares = (open + 1..end).any(|it| {
            assigns(tokens, it) && tokens.is_word(it - 1) && is_declared(tokens, it - 1, open)
        });
        if declares {
            continue;
        }
        let deciding = waits::deciding(tokens, &found);
        let mut waits = waits || waits::ends_by_another(tokens, names, &objects, &found, &deciding);
        let mut types = Vec::new();
        for range in deciding {
            if waits {
                break;
            }
            let is_condition = range == *condition;
            let volatile = questions::reads(tokens, range, lines, lines.asks(names), edits);
            match is_condition {
                true => types = volatile,
                false => waits |= !volatile.is_empty(),
            }
        }
        // Types in the condition decide in each instance of a template.
        let turn = match waits {
            true => TURN.to_owned(),
            false if types.is_empty() => continue,
            false => format!("::cuda_c::turn_for<{}>()", types.join(", ")),
        };
        let (all, edits) = (&tokens.all, &mut edits.meetings);
        if open == end {
            edits.push((all[end].start, all[end].start, turn));
        } else {
            edits.push((all[open].start, all[open].start, "(".to_owned()));
            edits.push((all[end].start, all[end].start, format!(") && {turn}")));
        }
    }
}

/// The parts of a loop, as ranges of tokens.
pub(super) struct Loop {
    pub(super) condition: Range<usize>,
    /// The repeated statement, including its braces.
    pub(super) body: Range<usize>,
    /// The step of a `for`.
    pub(super) step: Range<usize>,
    /// True for a `do` loop.
    is_do: bool,
    is_empty: bool,
    /// True for a `for` loop with a step.
    pub(super) counts: bool,
    /// True for `for (;;)`, which only a jump in its body can leave.
    pub(super) is_endless: bool,
}

impl Loop {
    /// Returns the loop of a `while` or `for` in the program.
    fn of(tokens: &Tokens<'_>, at: usize) -> Option<Loop> {
        let open = at + 1;
        let close = tokens.partner(open).filter(|_| tokens.at(open) == "(")?;
        if !tokens.is_of_program(at) {
            return None;
        }
        let (condition, step) = match tokens.at(at) {
            "while" => (open + 1..close, close..close),
            _ => {
                let mut semicolons = (open..close).filter(|&at| tokens.at(at) == ";");
                let (first, second) = (semicolons.next()?, semicolons.next()?);
                (first + 1..second, second + 1..close)
            }
        };
        let before = (tokens.at(at) == "while").then(|| body_of_do(tokens, at)).flatten();
        let is_do = before.is_some();
        let body = before.unwrap_or_else(|| {
            close + 1..last_of_statement(tokens, close + 1).map_or(close + 1, |it| it + 1)
        });
        let is_braces = tokens.at(body.start) == "{" && body.len() == 2;
        let condition_is =
            |words: &[&str]| condition.len() == 1 && words.contains(&tokens.at(condition.start));
        Some(Loop {
            is_empty: !is_do && (is_braces || tokens.at(body.start) == ";"),
            counts: !step.is_empty(),
            is_endless: condition.is_empty() || condition_is(&["true", "1"]),
            is_do,
            condition,
            body,
            step,
        })
    }
}

/// Returns the body of a `do`, given its `while`.
pub(super) fn body_of_do(tokens: &Tokens<'_>, at: usize) -> Option<Range<usize>> {
    let last = at.checked_sub(1)?;
    if tokens.at(last) == "}" {
        let open = tokens.partner(last)?;
        return (open > 0 && tokens.at(open - 1) == "do").then_some(open..at);
    }
    // A single statement.
    let mut it = last;
    while tokens.at(it) == ";" && it > 0 || it < last {
        it = match tokens.at(it) {
            ")" | "]" | "}" => tokens.partner(it)?,
            "do" => return Some(it + 1..at),
            ";" | "{" if it < last => return None,
            _ => it,
        };
        it = it.checked_sub(1)?;
    }
    None
}

/// Returns true for the `=` of a simple or compound assignment, but not of a comparison.
pub(super) fn assigns(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.at(at) == "="
        && tokens.at(at + 1) != "="
        && at.checked_sub(1).is_some_and(|it| !matches!(tokens.at(it), "=" | "!" | "<" | ">"))
}

/// Returns true for a name after a type: `while (int x = ...)`.
fn is_declared(tokens: &Tokens<'_>, name: usize, open: usize) -> bool {
    name > open && (tokens.is_word(name - 1) || matches!(tokens.at(name - 1), "*" | "&"))
}

/// Returns true for a token that reads a volatile variable.
pub(super) fn reads(tokens: &Tokens<'_>, names: &Names<'_>, at: usize) -> bool {
    tokens.is_word(at) && (is_word(tokens.at(at)) || names.has(tokens.at(at)))
}

/// Returns true for inline PTX that reads values which other threads write.
fn is_ordered_load(tokens: &Tokens<'_>, at: usize) -> bool {
    let text = tokens.at(at);
    let is_text = text.starts_with('"') || text.starts_with("R\"");
    is_text && ["ld.volatile", "ld.acquire", "ld.relaxed"].iter().any(|it| text.contains(it))
}

/// Returns true for a call of a function whose name begins with one of `names`.
pub(super) fn is_call(tokens: &Tokens<'_>, at: usize, names: &[&str]) -> bool {
    tokens.is_word(at)
        && tokens.at(at + 1) == "("
        && names.iter().any(|it| tokens.at(at).starts_with(it))
}

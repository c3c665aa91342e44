//! Finds loops that wait for another thread, and lets the other threads of the block run in each iteration:
//! `while (flag == 0) {}` becomes `while ((flag == 0) && ::cuda_c::turn()) {}`. Without that, the waiting
//! thread would never let another one run.

use super::loop_parts::{Loop, assigns, is_call, reads};
use super::names::Names;
use super::questions::{self, Edits, VolatileLines};
use super::waits;
use crate::ptx;
use crate::tokens::Tokens;
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
        // Types in the condition decide in each instance of a template, unless the compiler has refused questions.
        let turn = match waits || (lines.is_silent() && !types.is_empty()) {
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

/// Returns true for a name after a type: `while (int x = ...)`.
fn is_declared(tokens: &Tokens<'_>, name: usize, open: usize) -> bool {
    name > open && (tokens.is_word(name - 1) || matches!(tokens.at(name - 1), "*" | "&"))
}

/// Returns true for inline PTX that reads values which other threads write.
fn is_ordered_load(tokens: &Tokens<'_>, at: usize) -> bool {
    let text = tokens.at(at);
    let is_text = text.starts_with('"') || text.starts_with("R\"");
    is_text && ["ld.volatile", "ld.acquire", "ld.relaxed"].iter().any(|it| text.contains(it))
}

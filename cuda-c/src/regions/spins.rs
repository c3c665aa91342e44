//! Finds loops in which a thread may spin until another thread acts, such as `while (atomicCAS(lock, 0, 1) !=
//! 0);`.

use super::Declared;
use super::lexemes::{Lexemes, is_assignment};
use super::program::{functions, orders};
use super::unread::end_of;
use crate::tokens::Tokens;
use std::collections::HashSet;
use std::ops::Range;

/// Returns true if a thread may spin in a loop until another thread acts, since a meeting might prevent that
/// action. Such a loop has atomic operations, fences or volatile accesses, directly or in a function that it
/// calls, and is not a plain counting loop.
pub(super) fn may_spin(tokens: &Tokens<'_>, declared: &[Declared]) -> bool {
    let own = || declared.iter().filter(|it| !tokens.is_of_language(it.range.start));
    let words =
        |range: Range<usize>| range.filter(|&at| tokens.is_word(at)).map(|at| tokens.at(at));
    let mut ordering: HashSet<&str> = HashSet::new();
    let bodies: Vec<(&str, Range<usize>)> = own()
        .flat_map(|it| functions(tokens, it))
        .map(|(open, brace)| (tokens.at(open - 1), brace..tokens.partner(brace).unwrap_or(brace)))
        .collect();
    loop {
        let before = ordering.len();
        for (name, body) in &bodies {
            if !ordering.contains(name)
                && words(body.clone()).any(|it| orders(it) || ordering.contains(it))
            {
                ordering.insert(name);
            }
        }
        if ordering.len() == before {
            break;
        }
    }
    let has_order =
        |range: Range<usize>| words(range).any(|it| orders(it) || ordering.contains(it));
    let shared: HashSet<&str> = (0..tokens.all.len())
        .filter(|&at| tokens.at(at) == "thread_local")
        .flat_map(|at| {
            words(at + 1..(at..tokens.all.len()).find(|&it| tokens.at(it) == ";").unwrap_or(at + 1))
        })
        .collect();
    own().any(|it| {
        let Some(lexemes) = Lexemes::of(tokens, it.range.clone()) else { return true };
        let of = |range: Range<usize>| {
            lexemes.tokens_of(range.start).start..lexemes.tokens_of(range.end - 1).end
        };
        (0..lexemes.len()).any(|at| {
            if !matches!(lexemes.at(at), "for" | "while" | "do") || lexemes.is_literal(at) {
                return false;
            }
            let end = end_of(&lexemes, at, lexemes.len(), 0);
            has_order(of(at..end))
                && !counts(&lexemes, at, end, &shared, &|range| has_order(of(range)))
        })
    })
}

/// Returns true for a loop `for (...; i < n; ...)` whose end depends only on numbers that its body does not
/// change.
fn counts(
    lexemes: &Lexemes<'_, '_>,
    at: usize,
    end: usize,
    shared: &HashSet<&str>,
    has_order: &dyn Fn(Range<usize>) -> bool,
) -> bool {
    let read = || {
        let close = lexemes.partner(at + 1).filter(|_| lexemes.at(at) == "for")?;
        let first = lexemes.find(at + 2, close, &[";"])? + 1;
        let second = lexemes.find(first, close, &[";"]).filter(|&it| it > first)?;
        Some((first..second, close))
    };
    let Some((condition, close)) = read() else { return false };
    let is_written = |name: &str| {
        (close..end).any(|it| {
            let operators = [lexemes.at(it + 1), lexemes.before(it)];
            lexemes.at(it) == name
                && (is_assignment(operators[0])
                    || operators.iter().any(|it| matches!(*it, "++" | "--" | "&")))
        })
    };
    let names = || condition.clone().filter(|&it| lexemes.is_word(it));
    !has_order(condition.clone())
        && !condition.clone().any(|it| matches!(lexemes.at(it), "[" | "*" | "->" | "("))
        && !names().any(|it| is_written(lexemes.at(it)) || shared.contains(lexemes.at(it)))
        && !(close..end).any(|it| matches!(lexemes.at(it), "break" | "return" | "goto"))
}

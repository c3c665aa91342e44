//! Loops in which a thread may wait for what another one does.

use super::access::Access;
use super::lexemes::Lexemes;
use super::program::orders;
use super::statements::{Body, Node, What};
use std::ops::Range;

/// True if a statement has a loop that atomic operations or fences are in, and that does not merely count.
pub(super) fn may_spin(lexemes: &Lexemes<'_, '_>, body: &Body, node: &Node) -> bool {
    let inner = |it: &Node| may_spin(lexemes, body, it);
    let holds = |range: &Range<usize>, words: &dyn Fn(&str) -> bool| {
        range.clone().any(|it| lexemes.is_word(it) && words(lexemes.at(it)))
    };
    match &node.what {
        What::Block(nodes) => nodes.iter().any(inner),
        What::If { then, other, .. } => inner(then) || other.as_deref().is_some_and(inner),
        What::Switch(it) => inner(it),
        What::Loop(it) => {
            let is_written = |local: usize| {
                let mut uses = body.uses.iter().filter(|it| it.local == local);
                uses.any(|used| used.access != Access::Read && it.body.range.contains(&used.at))
            };
            let mut asked = body.uses.iter().filter(|used| it.condition.contains(&used.at));
            let counts = !it.condition.is_empty()
                && !it.condition.clone().any(|at| matches!(lexemes.at(at), "[" | "*" | "->"))
                && !holds(&it.condition, &orders)
                && !asked.any(|used| body.locals[used.local].is_shared || is_written(used.local))
                && !holds(&it.body.range, &|word| matches!(word, "break" | "return" | "goto"));
            holds(&node.range, &orders) && !counts || inner(&it.body)
        }
        _ => false,
    }
}

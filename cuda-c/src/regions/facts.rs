//! Facts about statements, expressions and types: barriers, returns and jumps, divisions that may fault, and built-in
//! types.

use super::lexemes::Lexemes;
use super::statements::{Local, Node, What};
use super::words::{is_integer, is_specifier, is_type};
use std::ops::Range;

/// The effects of a statement on the statements around it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) waits: bool,
    pub(super) returns: bool,
    /// True if the statement may leave or continue an enclosing loop.
    breaks: bool,
    continues: bool,
}

impl Facts {
    /// Returns true if the statement may leave or continue an enclosing loop.
    pub(super) fn jumps(self) -> bool {
        self.breaks || self.continues
    }

    fn of_all<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Facts {
        nodes.into_iter().map(facts).fold(Facts::default(), |a, b| Facts {
            waits: a.waits || b.waits,
            returns: a.returns || b.returns,
            breaks: a.breaks || b.breaks,
            continues: a.continues || b.continues,
        })
    }
}

/// Returns the effects of a statement and of the statements inside it.
pub(super) fn facts(node: &Node) -> Facts {
    let none = Facts::default();
    match &node.what {
        What::Barrier | What::Meeting => Facts { waits: true, ..none },
        What::Return => Facts { returns: true, ..none },
        What::Break => Facts { breaks: true, ..none },
        What::Continue => Facts { continues: true, ..none },
        What::Block(nodes) => Facts::of_all(nodes),
        What::If { then, other, .. } => {
            Facts::of_all([Some(then), other.as_ref()].into_iter().flatten().map(|it| &**it))
        }
        What::Loop(it) => Facts { breaks: false, continues: false, ..facts(&it.body) },
        What::Switch(body) => Facts { breaks: false, ..facts(body) },
        What::Empty | What::Expression | What::Declaration(_) | What::Shared => none,
    }
}

/// Returns true for a statement that stays outside of loops over threads.
pub(super) fn is_outer(node: &Node) -> bool {
    facts(node).waits || facts(node).jumps()
}

/// Returns true for a pointer or a number of a built-in type.
pub(super) fn is_plain(lexemes: &Lexemes<'_, '_>, local: &Local) -> bool {
    let declarator = || local.declarator.clone();
    let is_number = |it: usize| {
        let word = lexemes.at(it);
        let is_other = matches!(word, "volatile" | "struct");
        is_type(word) || is_integer(word) || (is_specifier(word) && !is_other)
    };
    let is_pointer = declarator().any(|it| lexemes.at(it) == "*");
    declarator().all(|it| !matches!(lexemes.at(it), "[" | "volatile"))
        && (is_pointer || local.specifiers.clone().all(is_number))
}

/// Returns true for an expression that divides by a value that may be zero.
pub(super) fn may_fault(lexemes: &Lexemes<'_, '_>, range: &Range<usize>) -> bool {
    let is_safe = |divisor: usize| {
        let text = lexemes.at(divisor);
        matches!(text, "blockDim" | "gridDim" | "warpSize")
            || (lexemes.is_literal(divisor) && text.starts_with(|it| matches!(it, '1'..='9')))
    };
    range.clone().any(|at| matches!(lexemes.at(at), "/" | "%") && !is_safe(at + 1))
}

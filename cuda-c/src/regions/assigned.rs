//! Definite-assignment analysis: checks that a thread assigns to a local before it reads it.
//!
//! A read of an uninitialised local is undefined behaviour. It works in practice if one thread assigns and
//! all threads read, as in `float v; if (threadIdx.x == 0) v = x[0]; __syncthreads(); y[threadIdx.x] = v;`,
//! because the compiler uses the only assigned value for all of them. An array with one element per thread
//! would break this, so such a kernel gets no loop variant.

use super::access::Access;
use super::facts::facts;
use super::lexemes::{Lexemes, NONE, is_assignment};
use super::statements::{Body, Loop, Node, What};
use std::ops::Range;

/// Returns true if a local declared without an initialiser has a value wherever it is read.
pub(super) fn is_assigned(lexemes: &Lexemes<'_, '_>, body: &Body, local: usize) -> bool {
    let mut reader = Reader { lexemes, body, local, is_always: true };
    reader.list(&body.nodes, false);
    reader.is_always
}

/// Definite-assignment analysis of one local. Each method takes true if the local has a value before a part
/// of the kernel, and returns true if it has one after it.
struct Reader<'r, 't, 'a> {
    lexemes: &'r Lexemes<'t, 'a>,
    body: &'r Body,
    local: usize,
    is_always: bool,
}

impl Reader<'_, '_, '_> {
    fn list(&mut self, nodes: &[Node], has_value: bool) -> bool {
        nodes.iter().fold(has_value, |has_value, node| self.node(node, has_value))
    }

    fn node(&mut self, node: &Node, has_value: bool) -> bool {
        match &node.what {
            What::Expression => self.expression(&node.range, has_value),
            What::Declaration(id) => match &self.body.locals[*id].init {
                init if init.start == NONE => has_value,
                init => self.expression(init, has_value),
            },
            What::Block(nodes) => self.list(nodes, has_value),
            What::If { condition, then, other } => {
                let before = self.expression(condition, has_value);
                let then = self.node(then, before);
                other.as_ref().map_or(before, |it| self.node(it, before)) && then
            }
            What::Loop(it) => self.repeated(it, has_value),
            What::Switch(body) => {
                self.node(body, has_value);
                has_value
            }
            // Control never reaches the code after these.
            What::Return | What::Break | What::Continue => true,
            What::Barrier | What::Meeting | What::Empty | What::Shared => has_value,
        }
    }

    /// Reads a loop. Its body may never run, so it assigns nothing for certain, except in a `do` loop without
    /// jumps.
    fn repeated(&mut self, it: &Loop, has_value: bool) -> bool {
        let before = self.list(&it.init, has_value);
        if it.is_do {
            let behind = self.node(&it.body, before);
            self.expression(&it.condition, behind);
            return behind && !facts(&it.body).jumps() || before;
        }
        let before = self.expression(&it.condition, before);
        let behind = self.node(&it.body, before);
        self.expression(&it.step, behind);
        before
    }

    /// Reads an expression: its first use of the local decides. An assignment in an operand that may be
    /// skipped (`&&`, `||`, `?`) does not count for later statements.
    fn expression(&mut self, range: &Range<usize>, mut has_value: bool) -> bool {
        let lexemes = self.lexemes;
        let mut uses =
            self.body.uses.iter().filter(|it| it.local == self.local && range.contains(&it.at));
        let Some(first) = uses.next() else { return has_value };
        let operator = lexemes.at(first.at + 1);
        let assigns = match first.access {
            Access::Read => false,
            // This includes `v.x = 1`, but not `v += 1` or `++v`, which read the old value.
            Access::Write => {
                let steps = |it: &str| matches!(it, "++" | "--");
                !(steps(operator) || steps(lexemes.before(first.at)))
                    && (operator == "=" || !is_assignment(operator))
            }
            Access::Unknown => true,
        };
        // The right-hand side is evaluated before the assignment.
        let reads_itself = operator == "=" && uses.any(|it| it.access == Access::Read);
        self.is_always &= has_value || (assigns && !reads_itself);
        let is_sure = |at: usize| !matches!(lexemes.at(at), "?" | "&&" | "||");
        has_value |= assigns && (range.start..first.at).all(is_sure);
        has_value
    }
}

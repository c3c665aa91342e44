//! Reads expressions: records the locals they use, and refuses unsupported operators.

use super::access::{Names, access};
use super::lexemes::is_assignment;
use super::statements::{Parser, Use};
use super::words::{INDICES, is_keyword, is_refused, is_specifier};
use std::ops::Range;

impl Parser<'_, '_, '_> {
    /// Records the uses of locals in an expression.
    pub(super) fn expression(&mut self, range: Range<usize>) -> Option<()> {
        for at in range {
            self.word(at)?;
            self.operator(at)?;
        }
        Some(())
    }

    /// Records the use of a local at a lexeme. Returns `None` for a word whose meaning is not certain.
    pub(super) fn word(&mut self, at: usize) -> Option<()> {
        let lexemes = self.lexemes;
        let word = lexemes.at(at);
        if is_refused(word) && !lexemes.is_literal(at) {
            return None;
        }
        // `::threadIdx` is not the variable that the loops over threads declare.
        if lexemes.before(at) == "::" && INDICES.contains(&word) {
            return None;
        }
        if !lexemes.is_word(at) || matches!(lexemes.before(at), "." | "->" | "::") {
            return Some(());
        }
        // Two names in a row are a declaration.
        let is_name = |it: usize| lexemes.is_word(it) && !is_keyword(lexemes.at(it));
        if is_name(at) && at > 0 && is_name(at - 1) && !is_specifier(lexemes.before(at)) {
            let is_declared = self.locals.last().is_some_and(|it| it.is_shared);
            return is_declared.then_some(());
        }
        let Some(local) = self.find(word) else { return Some(()) };
        if lexemes.at(at + 1) == "::" {
            return None;
        }
        // A call through a variable may reach any function.
        if lexemes.at(at + 1) == "(" {
            return None;
        }
        let known = &self.locals[local];
        let declarator = known.declarator.clone();
        let is_pointer = !known.is_shared
            && declarator.clone().all(|it| lexemes.at(it) != "[")
            && (declarator.chain(known.specifiers.clone())).any(|it| lexemes.at(it) == "*");
        let is_value = |it: usize| self.find(lexemes.at(it)).is_some();
        let names = Names { is_value: &is_value, takes_values: self.takes_values };
        let access = access(lexemes, at, is_pointer, &names);
        self.uses.push(Use { local, at, access });
        Some(())
    }

    /// Refuses an operator that writes to anything except a name, an element, or the target of a pointer.
    pub(super) fn operator(&self, at: usize) -> Option<()> {
        let lexemes = self.lexemes;
        let operator = lexemes.at(at);
        if lexemes.is_literal(at) {
            return Some(());
        }
        let is_pointed = |open: usize| lexemes.at(open + 1) == "*" || lexemes.before(open) == "*";
        let is_known = match operator {
            "++" | "--" => {
                let is_before = lexemes.is_word(at + 1) && !is_keyword(lexemes.at(at + 1))
                    || (lexemes.at(at + 1) == "*")
                    || (lexemes.at(at + 1) == "(" && is_pointed(at + 1));
                let closes = lexemes.before(at) == ")";
                let is_behind = at > 0
                    && (lexemes.ends_operand(at - 1) && !closes
                        || closes && lexemes.partner(at - 1).is_some_and(is_pointed));
                is_before || is_behind
            }
            _ if is_assignment(operator) => {
                at > 0
                    && lexemes.ends_operand(at - 1)
                    && (lexemes.before(at) != ")"
                        || lexemes.partner(at - 1).is_some_and(is_pointed))
            }
            // Refuses calls of a function's result or of an element, and lambdas.
            "(" => at == 0 || !matches!(lexemes.before(at), ")" | "]") || self.is_cast(at - 1),
            "[" => at > 0 && lexemes.ends_operand(at - 1),
            "{" => at > 0 && !matches!(lexemes.before(at), "(" | ")"),
            _ => true,
        };
        is_known.then_some(())
    }

    pub(super) fn is_cast(&self, close: usize) -> bool {
        let lexemes = self.lexemes;
        lexemes.is_cast(close, |it| self.find(lexemes.at(it)).is_some())
    }
}

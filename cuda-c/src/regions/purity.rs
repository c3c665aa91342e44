//! Determines what expressions depend on.
//!
//! An expression is *pure* if its value depends only on constants, indices such as `blockIdx.x`, and certain
//! locals. It reads no memory and calls only functions of the language whose result depends on their
//! arguments. An expression is *uniform* if it is pure and depends neither on `threadIdx` nor on locals that
//! are not uniform. A value read from memory never counts as uniform, because another thread might write it
//! between two reads.

use super::classes::{Class, Sorter};
use super::words::{INDICES, is_integer, is_specifier, is_type};
use std::ops::Range;

impl Sorter<'_, '_, '_> {
    /// Returns true for an expression with the same value in all threads of a block.
    pub(super) fn is_uniform(&self, range: Range<usize>) -> bool {
        self.is_pure(range, false, &|id| self.found.of[id] == Class::Uniform)
    }

    /// Returns true for an expression that depends only on constants, indices, and locals for which
    /// `is_known` is true.
    pub(super) fn is_pure(
        &self,
        range: Range<usize>,
        by_thread: bool,
        is_known: &dyn Fn(usize) -> bool,
    ) -> bool {
        range.clone().all(|at| self.is_pure_at(at, range.start, by_thread, is_known))
    }

    /// Returns true if the lexeme at `at` can be a part of a pure expression that begins at `start`.
    fn is_pure_at(
        &self,
        at: usize,
        start: usize,
        by_thread: bool,
        is_known: &dyn Fn(usize) -> bool,
    ) -> bool {
        let lexemes = self.lexemes;
        let text = lexemes.at(at);
        if lexemes.is_literal(at) {
            return !text.ends_with('"');
        }
        if !lexemes.is_word(at) {
            return match text {
                "+" | "-" | "/" | "%" | "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"
                | "|" | "^" | "~" | "!" | "<<" | ">>" | "?" | ":" | "(" | ")" | "," => true,
                // As a unary operator, it accesses memory or takes an address.
                "*" | "&" => {
                    let is_cast = |it| {
                        lexemes.is_cast(it, |word| {
                            self.body.used(word).is_some()
                                || (self.context.is_constant)(lexemes.at(word))
                        })
                    };
                    at > start && lexemes.ends_operand(at - 1) && !is_cast(at - 1)
                        || self.is_in_cast(at)
                }
                // A member of an index such as `threadIdx.x`, or of a structure passed as a parameter.
                "." => {
                    at > start
                        && (INDICES.contains(&lexemes.at(at - 1))
                            || self.body.used(at - 1).is_some())
                }
                _ => false,
            };
        }
        if lexemes.before(at) == "." && at > start {
            return lexemes.at(at + 1) != "(";
        }
        if let Some(id) = self.body.used(at) {
            return is_known(id);
        }
        if lexemes.at(at + 1) == "(" && !is_type(text) && !is_integer(text) {
            return (self.context.is_pure_function)(text);
        }
        match text {
            "threadIdx" => by_thread,
            "blockIdx" | "blockDim" | "gridDim" | "warpSize" | "true" | "false" | "nullptr"
            | "const" => true,
            _ => is_type(text) || is_integer(text) || (self.context.is_constant)(text),
        }
    }

    /// Returns true for the `*` in a cast such as `(const float *)`.
    fn is_in_cast(&self, at: usize) -> bool {
        let close = self.lexemes.opener(at).and_then(|open| self.lexemes.partner(open));
        close.is_some_and(|close| {
            self.lexemes.is_cast(close, |word| {
                let text = self.lexemes.at(word);
                !(is_type(text) || is_integer(text) || is_specifier(text) || text == "void")
            })
        })
    }
}

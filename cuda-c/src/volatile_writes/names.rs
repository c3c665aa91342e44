//! Collects the names that a program declares as volatile, as in `volatile int *s`. Their accesses need no question to the
//! compiler. An extra name is harmless, because variables that are not volatile are written as before.

use crate::tokens::Tokens;
use std::collections::HashSet;

/// The volatile names of a program.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Variables and members that are volatile, or have volatile elements.
    volatile: HashSet<&'a str>,
    /// Bit-fields, which cannot be referenced.
    fields: HashSet<&'a str>,
    /// True if structures may be packed. Their members cannot be referenced either.
    pub(super) has_packed: bool,
    /// Words after `&`, which may be references.
    references: HashSet<&'a str>,
    /// True if the program uses `volatile` apart from `asm`.
    pub(super) has_word: bool,
}

impl<'a> Names<'a> {
    /// Collects the names of a program.
    pub(super) fn of(tokens: &Tokens<'a>) -> Names<'a> {
        let mut names = Names::default();
        let is_qualifier = |at: &usize| is_word(tokens.at(*at)) && tokens.is_of_program(*at);
        for at in (0..tokens.len()).filter(is_qualifier) {
            if tokens.at(at.wrapping_sub(1)).contains("asm") {
                continue;
            }
            names.has_word = true;
            let is_end =
                |it: &usize| matches!(tokens.at(*it), "[" | "=" | ";" | "," | ")" | "(" | "{");
            let last = (at + 1..tokens.len()).find(is_end).map_or(at, |it| it - 1);
            // A type precedes a name. References often have the names of other variables.
            let is_other = matches!(tokens.at(last), "int" | "char" | "short" | "long" | "double")
                || tokens.at(last.wrapping_sub(1)) == "&";
            if last > at + 1 && tokens.is_word(last) && !is_other {
                names.volatile.insert(tokens.at(last));
            }
        }
        for at in (0..tokens.len()).filter(|_| names.has_word) {
            let is_field = tokens.at(at + 1) == ":" && matches!(tokens.at(at + 3), ";" | "," | "=");
            let is_member = at > 0 && (tokens.is_word(at - 1) || tokens.at(at - 1) == ",");
            if is_field && tokens.is_word(at) && is_member {
                names.fields.insert(tokens.at(at));
            }
            names.has_packed |= matches!(tokens.at(at), "packed" | "__packed__");
            if tokens.at(at) == "&" && tokens.is_word(at + 1) {
                names.references.insert(tokens.at(at + 1));
            }
        }
        names
    }

    /// Returns true for the name of a variable or member that is volatile or has volatile elements.
    pub(super) fn has(&self, name: &str) -> bool {
        self.volatile.contains(name)
    }

    /// Returns true for a member that can be referenced.
    pub(super) fn is_plain_member(&self, name: &str) -> bool {
        !self.has_packed && !self.fields.contains(name)
    }

    /// Returns true for the name of a variable that may be a reference.
    pub(super) fn is_reference(&self, name: &str) -> bool {
        self.references.contains(name)
    }
}

pub(super) fn is_word(word: &str) -> bool {
    matches!(word, "volatile" | "__volatile__" | "__volatile")
}

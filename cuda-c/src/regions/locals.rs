//! Reads the declarations of a kernel's parameters and local variables.

use super::lexemes::NONE;
use super::statements::{Local, Parser};
use super::words::{is_keyword, is_specifier, is_type};
use std::ops::Range;

impl Parser<'_, '_, '_> {
    /// Reads a parameter of the kernel. Returns `None` for references, packs and pointers to functions.
    pub(super) fn parameter(&mut self, part: Range<usize>) -> Option<()> {
        let lexemes = self.lexemes;
        let end = lexemes.find(part.start, part.end, &["="]).unwrap_or(part.end);
        if (part.start..end).any(|it| matches!(lexemes.at(it), "&" | "&&" | "..." | "(")) {
            return None;
        }
        let last = lexemes.find(part.start, end, &["["]).unwrap_or(end).checked_sub(1)?;
        let name = lexemes.at(last);
        if last == part.start && name == "void" {
            return Some(());
        }
        if !lexemes.is_word(last) || is_keyword(name) || last == part.start {
            return None;
        }
        self.declare(Local {
            name: name.to_owned(),
            is_parameter: true,
            is_shared: false,
            at: last,
            specifiers: part.start..last,
            declarator: last..end,
            init: NONE..NONE,
            is_assigned: false,
            hides: false,
        });
        Some(())
    }

    /// Reads a declaration of shared memory.
    pub(super) fn shared(&mut self, range: Range<usize>) -> Option<()> {
        let lexemes = self.lexemes;
        let is_refused = |it: usize| {
            matches!(lexemes.at(it), "<" | "=" | "&" | "auto" | "decltype")
                || (lexemes.at(it) == "("
                    && !matches!(lexemes.before(it), "__attribute__" | "alignas")
                    && lexemes.opener(it).is_none_or(|open| !range.contains(&open)))
        };
        if range.clone().any(is_refused) {
            return None;
        }
        for part in lexemes.parts(range.clone()) {
            let end = lexemes.find(part.start, part.end, &["["]).unwrap_or(part.end);
            let is_name = |it: &usize| lexemes.is_word(*it) && lexemes.at(it + 1) != "(";
            // An attribute may follow the name.
            let at = (part.start..end)
                .rev()
                .find(|it| is_name(it) && lexemes.opener(*it) == lexemes.opener(part.start))?;
            let (name, none) = (lexemes.at(at).to_owned(), NONE..NONE);
            if is_keyword(&name) {
                return None;
            }
            self.declare(Local {
                name,
                is_parameter: false,
                is_shared: true,
                at,
                specifiers: none.clone(),
                declarator: none.clone(),
                init: none,
                is_assigned: false,
                hides: false,
            });
        }
        // Array extents may be constants of the kernel.
        for it in range {
            self.word(it)?;
        }
        Some(())
    }

    /// Returns the end of the type specifiers if a declaration begins here, or `from` if an expression does.
    pub(super) fn specifiers(&self, from: usize) -> Option<usize> {
        let lexemes = self.lexemes;
        let (mut at, mut has_type) = (from, false);
        loop {
            let word = lexemes.at(at);
            if is_specifier(word) {
                at += 1;
            } else if is_type(word) || (word == "auto" && !self.is_plain) {
                has_type = true;
                at += 1;
            } else if !has_type
                && lexemes.is_word(at)
                && !is_keyword(word)
                && self.find(word).is_none()
            {
                has_type = true;
                at += 1;
                while lexemes.at(at) == "::" && lexemes.is_word(at + 1) {
                    at += 2;
                }
            } else {
                break;
            }
        }
        let declares =
            (lexemes.is_word(at) && !is_keyword(lexemes.at(at))) || (has_type && self.is_star(at));
        Some(if has_type && declares { at } else { from })
    }

    /// Returns true for a `*`, or for a `&` if references are allowed.
    fn is_star(&self, at: usize) -> bool {
        matches!((self.lexemes.at(at), self.is_plain), ("*", _) | ("&", false))
    }

    /// Reads one declarator of a declaration, with its initialiser: `*p = x`, `a[4]` or `v(1)`.
    pub(super) fn declarator(
        &mut self,
        specifiers: Range<usize>,
        part: Range<usize>,
    ) -> Option<usize> {
        let lexemes = self.lexemes;
        let mut at = part.start;
        while self.is_star(at) || is_specifier(lexemes.at(at)) {
            at += 1;
        }
        if !lexemes.is_word(at) || is_keyword(lexemes.at(at)) || at >= part.end {
            return None;
        }
        let mut end = at + 1;
        while end < part.end && lexemes.at(end) == "[" {
            let close = lexemes.partner(end)?;
            self.expression(end + 1..close)?;
            // The declaration of the type may be moved to a place where no other local is known.
            if self.uses.iter().any(|it| (end..close).contains(&it.at)) {
                return None;
            }
            end = close + 1;
        }
        let is_assigned = lexemes.at(end) == "=" && end < part.end;
        let init = match lexemes.at(end) {
            _ if end == part.end => NONE..NONE,
            "=" => end + 1..part.end,
            "{" if lexemes.partner(end) == Some(part.end - 1) => end..part.end,
            "(" if lexemes.partner(end) == Some(part.end - 1) => end..part.end,
            _ => return None,
        };
        let id = self.declare(Local {
            name: lexemes.at(at).to_owned(),
            is_parameter: false,
            is_shared: false,
            at,
            specifiers,
            declarator: part.start..end,
            init: init.clone(),
            is_assigned,
            hides: false,
        });
        if init.start != NONE {
            // Inside its own initialiser, a name already refers to the new variable.
            self.expression(init.clone())?;
            if self.uses.iter().any(|it| it.local == id && init.contains(&it.at)) {
                return None;
            }
        }
        Some(id)
    }
}

//! Collects the names that a program declares as volatile: in declarations of variables and members such as
//! `volatile int *s`, through types such as `typedef volatile int V;`, and by `auto *p = s + 1;`.
//!
//! An extra name is harmless, because variables that are not volatile are written as before.

use crate::tokens::Tokens;
use crate::tree::value_end;
use std::collections::{HashMap, HashSet};

/// The volatile names of a program.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Arrays, pointers and members with volatile elements.
    elements: HashSet<&'a str>,
    /// The same, and variables that are volatile themselves.
    variables: HashSet<&'a str>,
    /// Types; true if the type itself is a pointer or an array.
    types: HashMap<&'a str, bool>,
    /// Bit-fields, which cannot be referenced.
    fields: HashSet<&'a str>,
    /// True if structures may be packed. Their members cannot be referenced either.
    has_packed: bool,
}

impl<'a> Names<'a> {
    /// Collects the names of a program.
    pub(super) fn of(tokens: &Tokens<'a>) -> Names<'a> {
        let mut names = Names::default();
        let qualifiers: Vec<usize> =
            (0..tokens.len()).filter(|&at| is_qualifier(tokens, at)).collect();
        if qualifiers.is_empty() {
            return names;
        }
        for &at in &qualifiers {
            if let Some((name, has_elements)) = alias(tokens, at) {
                names.types.insert(name, has_elements);
            }
            names.declared(tokens, at, false);
        }
        for at in 0..tokens.len() {
            if let Some(&has_elements) = names.types.get(tokens.at(at)) {
                names.declared(tokens, at, has_elements);
            }
        }
        for at in 0..tokens.len() {
            names.deduced(tokens, at);
            let is_field = tokens.at(at + 1) == ":" && matches!(tokens.at(at + 3), ";" | "," | "=");
            let is_member = at > 0 && (tokens.is_word(at - 1) || tokens.at(at - 1) == ",");
            if is_field && tokens.is_word(at) && is_member {
                names.fields.insert(tokens.at(at));
            }
            names.has_packed |= matches!(tokens.at(at), "packed" | "__packed__");
        }
        names.variables.extend(&names.elements);
        names
    }

    /// Returns true for the name of a variable or member with volatile elements.
    pub(super) fn has(&self, name: &str) -> bool {
        self.elements.contains(name)
    }

    /// Returns true for the name of a variable that is volatile or has volatile elements.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// Returns true for a word that makes the type of a cast volatile.
    pub(super) fn is_qualifier(&self, word: &str) -> bool {
        matches!(word, "volatile" | "__volatile__" | "__volatile") || self.types.contains_key(word)
    }

    /// Returns true for a member that can be referenced.
    pub(super) fn is_plain_member(&self, name: &str) -> bool {
        !self.has_packed && !self.fields.contains(name)
    }

    /// Adds the names in a declaration whose type begins or continues at a token.
    fn declared(&mut self, tokens: &Tokens<'a>, first: usize, has_elements: bool) {
        let mut at = first + 1;
        let mut is_pointer = has_elements;
        let mut name = None;
        loop {
            let mut word = None;
            match tokens.at(at) {
                "*" => is_pointer = true,
                "&" | "::" | "<" | ">" => {}
                // The body of a structure that is declared here.
                "{" => at = tokens.partner(at).unwrap_or(at),
                // `__shared__` is also an attribute, and one may follow a name.
                "__attribute__" | "__attribute" | "alignas" => {
                    at = tokens.partner(at + 1).unwrap_or(at);
                    word = name;
                }
                // `(*name)[8]` and `(&name)[8]`
                "(" if matches!(tokens.at(at + 1), "*" | "&") && tokens.at(at + 3) == ")" => {
                    self.elements.insert(tokens.at(at + 2));
                    return;
                }
                "[" | "=" | ";" | "," | ")" => break,
                _ if tokens.is_word(at) => word = Some(tokens.at(at)),
                _ => return,
            }
            name = word;
            at += 1;
        }
        // More declarators after commas: `*name` or `name[8]`, each with its initialiser.
        loop {
            if let Some(name) = name {
                self.variables.insert(name);
                if is_pointer || tokens.at(at) == "[" {
                    self.elements.insert(name);
                }
            }
            at = value_end(tokens, at);
            if tokens.at(at) != "," {
                return;
            }
            at += 1;
            is_pointer = has_elements;
            while tokens.at(at) == "*" {
                is_pointer = true;
                at += 1;
            }
            name = tokens.is_word(at).then(|| tokens.at(at));
            at += 1;
            if !matches!(tokens.at(at), "[" | "=" | "," | ";" | ")") {
                return;
            }
        }
    }

    /// Adds `auto *name = ...` if the initialiser contains such a name.
    fn deduced(&mut self, tokens: &Tokens<'a>, auto: usize) {
        if tokens.at(auto) != "auto" {
            return;
        }
        let mut at = auto + 1;
        while matches!(tokens.at(at), "*" | "&" | "const") {
            at += 1;
        }
        if tokens.is_word(at) && tokens.at(at + 1) == "=" {
            let mut rest = (at + 2..tokens.len()).take_while(|&it| tokens.at(it) != ";");
            let is_made = |it| self.has(tokens.at(it)) || self.is_qualifier(tokens.at(it));
            if rest.any(is_made) {
                self.elements.insert(tokens.at(at));
            }
        }
    }
}

fn is_qualifier(tokens: &Tokens<'_>, at: usize) -> bool {
    matches!(tokens.at(at), "volatile" | "__volatile__" | "__volatile") && tokens.is_of_program(at)
}

/// Returns the type that a `typedef` or `using` declares; true if the type itself is a pointer or an array.
fn alias<'a>(tokens: &Tokens<'a>, volatile: usize) -> Option<(&'a str, bool)> {
    let end = (volatile..tokens.len()).find(|&it| tokens.at(it) == ";")?;
    let mut before =
        (0..volatile).rev().take_while(|&it| !matches!(tokens.at(it), ";" | "{" | "}"));
    let first = before.find(|&it| matches!(tokens.at(it), "typedef" | "using"))?;
    let has_elements = (volatile..end).any(|it| matches!(tokens.at(it), "*" | "["));
    let name = match tokens.at(first) {
        "using" => first + 1,
        _ => (volatile..end)
            .rev()
            .find(|&it| tokens.is_word(it) && matches!(tokens.at(it + 1), ";" | "[" | ")"))?,
    };
    tokens.is_word(name).then(|| (tokens.at(name), has_elements))
}

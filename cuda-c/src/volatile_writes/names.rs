//! Tells which names may stand for volatile memory, by their declared types.
//!
//! A type that the text does not determine may be volatile: a parameter of a template, or `auto` without a value. An
//! access through it is taken for a volatile one, which is harmless, because the compiler knows the type.

use crate::tokens::Tokens;
use crate::tree::{Declaration, Kind, Scopes, is_of_language, value_end};
use std::cell::Cell;
use std::collections::HashSet;

/// A type's `volatile`, as far as the text determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Volatile {
    No,
    /// The text does not determine the type.
    Unknown,
    Yes,
}

/// The names of a program with volatile types.
pub(super) struct Names<'t, 'a> {
    tokens: &'t Tokens<'a>,
    /// `None` for a program without `volatile`.
    scopes: Option<Scopes<'t, 'a>>,
    /// The types of the declarations, once they are known.
    known: Vec<Cell<Option<Volatile>>>,
    /// Names in declarations that were not read.
    unread: HashSet<&'a str>,
    /// The operators of classes.
    operators: Vec<usize>,
    /// True if structures may be packed, so that their members cannot be referenced.
    has_packed: bool,
}

impl<'t, 'a> Names<'t, 'a> {
    pub(super) fn of(tokens: &'t Tokens<'a>) -> Names<'t, 'a> {
        let mut qualifiers = tokens.of_program().filter(|&at| is_qualifier(tokens, at)).peekable();
        let scopes = qualifiers.peek().is_some().then(|| Scopes::of(tokens));
        let all = scopes.as_ref().map_or(&[][..], |it| &it.all);
        let is_read = |at| all.iter().any(|it| (it.of.start..it.declarator.end).contains(&at));
        // Some are of casts, whose other words are of types.
        let unread = qualifiers.filter(|&it| !is_read(it)).flat_map(|at| {
            let end = |it: &usize| matches!(tokens.at(*it), ";" | ")" | "=" | "{" | "}" | ",");
            let end = (at..tokens.len()).find(end).unwrap_or(at);
            let is_name = |it: &usize| tokens.is_word(*it) && !is_of_language(tokens.at(*it));
            (at + 1..end).filter(is_name).map(|it| tokens.at(it))
        });
        let unread = unread.collect();
        let is_packed = |at| matches!(tokens.at(at), "packed" | "__packed__");
        let has_packed = scopes.is_some() && (0..tokens.len()).any(is_packed);
        let known = vec![Cell::new(None); all.len()];
        let is_operator = |it: &usize| tokens.at(all[*it].name) == "operator";
        let operators = (0..all.len()).filter(is_operator).collect();
        Names { tokens, scopes, known, unread, operators, has_packed }
    }

    /// Returns true for the name of a variable, member or function whose elements may be volatile. For a name that the
    /// text does not declare, the result is `unknown`.
    pub(super) fn has(&self, at: usize, unknown: bool) -> bool {
        let mut declared = self.declared(at).peekable();
        let is_unread = self.unread.contains(self.tokens.at(at));
        let is_other = unknown && self.scopes.is_some() && declared.peek().is_none();
        is_unread
            || is_other
            || declared.any(|it| !self.is_plain(it) && self.volatile(it) > Volatile::No)
    }

    /// Returns true for a word that may make the type of a cast volatile.
    pub(super) fn is_type(&self, at: usize) -> bool {
        let mut declared = self.declared(at);
        says_volatile(self.tokens.at(at))
            || self.unread.contains(self.tokens.at(at))
            || declared.any(|it| is_type(self.at(it)) && self.volatile(it) > Volatile::No)
    }

    /// Returns true for a token that reads a variable which another thread may change, or names the type of one.
    pub(super) fn reads(&self, at: usize) -> bool {
        let changes = |it: usize| {
            let declared = self.at(it);
            let is_shared = declared.declarator.len() > 1 || !declared.is_local;
            self.volatile(it)
                > if is_shared && !is_type(declared) { Volatile::No } else { Volatile::Unknown }
        };
        self.tokens.is_word(at)
            && (says_volatile(self.tokens.at(at))
                || self.unread.contains(self.tokens.at(at))
                || self.declared(at).any(changes))
    }

    /// Returns true for a reference, which is an element without a sign of one.
    pub(super) fn is_reference(&self, at: usize) -> bool {
        let is_sign = |it: usize| self.tokens.at(it) == "&";
        self.declared(at).any(|it| self.at(it).declarator.clone().any(is_sign))
    }

    /// Returns true for a member that can be referenced: not a bit-field.
    pub(super) fn is_plain_member(&self, at: usize) -> bool {
        let is_field =
            |it: usize| self.at(it).kind == Kind::Member && self.tokens.at(self.at(it).end) == ":";
        !self.has_packed && !self.declared(at).any(is_field)
    }

    fn declared(&self, at: usize) -> impl Iterator<Item = usize> {
        self.scopes.iter().filter(move |_| self.tokens.is_word(at)).flat_map(move |it| it.named(at))
    }

    fn at(&self, number: usize) -> &Declaration {
        &self.scopes.as_ref().expect("a declaration has a scope").all[number]
    }

    /// Returns true for a variable of a built-in type without elements.
    fn is_plain(&self, number: usize) -> bool {
        let Declaration { kind, of, declarator, .. } = self.at(number);
        let is_auto = |it: usize| self.tokens.at(it) == "auto";
        declarator.len() == 1
            && *kind != Kind::Function
            && of.clone().all(|it| is_of_language(self.tokens.at(it)) && !is_auto(it))
    }

    fn volatile(&self, number: usize) -> Volatile {
        if let Some(known) = self.known[number].get() {
            return known;
        }
        // A declaration that refers to itself adds nothing.
        self.known[number].set(Some(Volatile::No));
        let tokens = self.tokens;
        let Declaration { kind, of, declarator, end, .. } = self.at(number);
        let is_auto = of.clone().any(|it| tokens.at(it) == "auto");
        let word = |it: usize| match tokens.at(it) {
            word if says_volatile(word) || self.unread.contains(word) => Volatile::Yes,
            word if !tokens.is_word(it) || is_of_language(word) || word.starts_with("__") => {
                Volatile::No
            }
            "struct" | "class" | "union" | "enum" | "alignas" | "decltype" => Volatile::No,
            _ => {
                // Operators of a class may return references to volatile memory.
                let of_class = || self.operators.iter().map(|&it| self.volatile(it)).max();
                let declared = self.declared(it).map(|it| self.volatile(it)).max();
                declared.or_else(of_class).unwrap_or(Volatile::No)
            }
        };
        let most = |range: std::ops::Range<usize>| range.map(word).max().unwrap_or(Volatile::No);
        let is_name = |it: &usize| tokens.is_word(*it) && !is_of_language(tokens.at(*it));
        let behind = *end..value_end(tokens, *end);
        let found = match kind {
            Kind::TypeParameter => Volatile::Unknown,
            // The type may follow the parameters.
            Kind::Function if is_auto => {
                let end = behind.clone().find(|&it| tokens.at(it) == "{").unwrap_or(behind.end);
                most(behind.start..end).max(Volatile::Unknown)
            }
            // `volatile auto *`, or a parameter without a value.
            _ if is_auto && behind.is_empty() => most(of.clone()).max(Volatile::Unknown),
            _ if is_auto => most(of.clone()).max(most(behind)),
            _ => {
                let signs = declarator.clone().filter(|it| !is_name(it));
                most(of.clone()).max(signs.map(word).max().unwrap_or(Volatile::No))
            }
        };
        self.known[number].set(Some(found));
        found
    }
}

fn is_type(declared: &Declaration) -> bool {
    matches!(declared.kind, Kind::Alias | Kind::TypeParameter)
}

/// Returns true for the qualifier, and for names like `add_volatile_t`.
fn says_volatile(word: &str) -> bool {
    word.contains("volatile")
}

/// Returns true for a qualifier of a type in the program.
fn is_qualifier(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_of_asm = || at > 0 && matches!(tokens.at(at - 1), "asm" | "__asm__" | "__asm");
    let may_be = tokens.is_word(at) && tokens.at(at).len() >= "volatile".len();
    may_be && says_volatile(tokens.at(at)) && tokens.is_of_program(at) && !is_of_asm()
}

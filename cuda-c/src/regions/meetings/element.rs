//! Determines the types of array elements from their declarations.

use super::super::statements::Local;
use super::super::words::{is_integer, is_type};
use super::{ElementAccess, Kind, Walk};
use std::ops::Range;

impl Walk<'_, '_, '_> {
    /// Returns the type of an element, and true if it is an arithmetic type.
    pub(super) fn kind(&self, element: &ElementAccess) -> Option<(String, bool)> {
        let lexemes = self.lexemes;
        let used = self.body.uses.iter().find(|it| it.at == element.at)?;
        let local = &self.body.locals[used.local];
        // `*p` and `*(p + i)` dereference as often as `p[i]`.
        let stars = element.range.clone().take_while(|&it| it < element.at);
        let mut levels = stars.filter(|&it| lexemes.at(it) == "*").count();
        let (mut at, mut members) = (element.at + 1, Vec::new());
        while at < element.range.end {
            match lexemes.at(at) {
                "[" => {
                    levels += 1;
                    at = lexemes.partner(at)? + 1;
                }
                "." => {
                    members.push(lexemes.at(at + 1));
                    at += 2;
                }
                // The rest of `*(p + i)`.
                _ => break,
            }
        }
        let words = match local.is_shared {
            true => self.shared_words(local.at)?,
            false => local.specifiers.clone().chain(local.declarator.start..local.at).collect(),
        };
        let extents = (local.at + 1..lexemes.len())
            .scan(local.at + 1, |next, at| {
                if at != *next || lexemes.at(at) != "[" {
                    return (at < *next).then_some(0);
                }
                *next = lexemes.partner(at)? + 1;
                Some(1)
            })
            .sum::<usize>();
        let pointers = words.iter().filter(|&&it| lexemes.at(it) == "*").count();
        let is_left = |word: &str| {
            matches!(word, "*" | "const" | "volatile" | "constexpr" | "register" | "extern")
                || word.starts_with("__restrict")
        };
        let words: Vec<&str> =
            words.into_iter().map(|it| lexemes.at(it)).filter(|it| !is_left(it)).collect();
        let is_name =
            |it: &&str| *it == "::" || it.starts_with(|it: char| it.is_alphabetic() || it == '_');
        if levels != extents + pointers || words.is_empty() || !words.iter().all(is_name) {
            return None;
        }
        let is_number = |words: &[&str]| words.iter().all(|it| is_type(it) || is_integer(it));
        match members[..] {
            [] => Some((words.join(" "), is_number(&words))),
            ["x" | "y" | "z" | "w"] => of_vector(words.last()?).map(|it| (it.to_owned(), true)),
            _ => None,
        }
    }

    /// Returns the type of an expression that is an element.
    pub(in super::super) fn element_kind(&self, range: &Range<usize>) -> Option<String> {
        let accesses = self.accesses(range.clone());
        let element = accesses.iter().find(|it| it.range == *range && it.kind == Kind::Read);
        element.and_then(|it| self.kind(it)).map(|it| it.0)
    }

    /// Returns the local named at a place.
    pub(in super::super) fn local_at(&self, at: usize) -> Option<&Local> {
        Some(&self.body.locals[self.body.used(at)?])
    }

    /// Returns the type specifiers in the declaration of a name in shared memory.
    pub(in super::super) fn shared_words(&self, at: usize) -> Option<Vec<usize>> {
        let lexemes = self.lexemes;
        let begins = |it: usize| matches!(lexemes.before(it), "" | ";" | "{" | "}");
        let start = (0..=at).rev().find(|&it| begins(it))?;
        let declared = self.body.locals.iter().map(|it| it.at).filter(|it| *it >= start);
        let (end, mut word, mut words) = (declared.min()?, start, Vec::new());
        while word < end {
            match lexemes.at(word) {
                "(" => word = lexemes.partner(word)?,
                "thread_local" | "__attribute__" | "alignas" | "extern" | "static" => {}
                _ => words.push(word),
            }
            word += 1;
        }
        Some(words)
    }
}

/// Returns the type of a member of a built-in vector type.
fn of_vector(word: &str) -> Option<&'static str> {
    let base = word.strip_suffix(['1', '2', '3', '4'])?;
    Some(match base {
        "char" => "signed char",
        "uchar" => "unsigned char",
        "short" => "short",
        "ushort" => "unsigned short",
        "int" => "int",
        "uint" => "unsigned int",
        "long" => "long",
        "ulong" => "unsigned long",
        "longlong" => "long long",
        "ulonglong" => "unsigned long long",
        "float" => "float",
        "double" => "double",
        _ => return None,
    })
}

//! The constants of a text: their names, and what tells the executor their sizes and addresses.

use crate::tokens::{Kind, Tokens};
use std::fmt::Write as _;

/// What the description of a constant has in front of its number as a symbol.
pub(crate) const PREFIX: &str = "gpuarray_constant_";

/// A variable in constant memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Constant {
    /// The namespaces to open, from the outside.
    pub(super) namespaces: Vec<String>,
    pub(super) name: String,
}

/// The names of the variables that are declared between `begin` and the `;` at `end`; none of a template's, and
/// none where it is not certain what is a name.
pub(super) fn names(tokens: &Tokens<'_>, begin: usize, end: usize) -> Vec<String> {
    let (mut names, mut name): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut at = begin;
    while at < end {
        match tokens.at(at) {
            "template" => return Vec::new(),
            // A pointer to a function, `(*name)(int)`, or a value.
            "(" => {
                let close = tokens.partner(at).unwrap_or(end);
                if tokens.at(at + 1) == "*" {
                    let word = (at..close).rev().find(|&it| tokens.is_word(it));
                    name = word.map(|it| tokens.at(it).to_owned());
                }
                at = close;
            }
            "__attribute__" | "__attribute" | "alignas" | "decltype" | "__typeof__" => {
                at = tokens.partner(at + 1).unwrap_or(end);
            }
            "[" | "{" => at = tokens.partner(at).unwrap_or(end),
            "<" => {
                let Some(behind) = tokens.behind_angles(at, end) else { return Vec::new() };
                at = behind - 1;
            }
            "=" => {
                let Some(next) = initialiser_end(tokens, at, end) else { return Vec::new() };
                at = next - 1;
            }
            "," => names.extend(name.take()),
            word if tokens.is_word(at) => {
                let is_qualified = at > begin && tokens.at(at - 1) == "::";
                let before = name.take().filter(|_| is_qualified);
                name = Some(before.map_or(word.to_owned(), |it| format!("{it}::{word}")));
            }
            _ => {}
        }
        at += 1;
    }
    names.extend(name);
    names
}

/// The `,` or the end behind the value of a variable; `None` where a `,` may belong to a template's arguments.
fn initialiser_end(tokens: &Tokens<'_>, equals: usize, end: usize) -> Option<usize> {
    let (mut at, mut has_angle) = (equals + 1, false);
    while at < end {
        match tokens.at(at) {
            "," => return (!has_angle).then_some(at),
            "<" if tokens.is_word(at - 1) => match tokens.behind_angles(at, end) {
                // No value begins behind a template's arguments.
                Some(it) if it == end || tokens.all[it].kind == Kind::Mark => at = it - 1,
                found => has_angle |= found.is_some(),
            },
            "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(end),
            _ => {}
        }
        at += 1;
    }
    Some(end)
}

/// Appends the descriptions of constants.
pub(super) fn append(text: &mut String, constants: &[Constant]) {
    for (number, Constant { namespaces, name }) in constants.iter().enumerate() {
        let _ = write!(text, "\n# 1 \"constant {name}\"\n");
        for namespace in namespaces {
            let _ = write!(text, "{namespace} {{ ");
        }
        let _ = write!(
            text,
            "static const ::gpuarray_abi::Constant {PREFIX}{number} __asm__(\"{PREFIX}{number}\") \
             __attribute__((used)) = {{sizeof({name}), __alignof__({name}), \
             __builtin_addressof({name})}};"
        );
        let _ = writeln!(text, "{}", " }".repeat(namespaces.len()));
    }
}

//! Classifies the use of a variable in an expression: a read, a write, or possibly either.
//!
//! With `int v, *p`:
//!
//! - `v + 1`, `f(v)` with a function that takes values, `p[0] = 1` and `*p = 1` are reads: the last two write
//!   to the target of the pointer and only read `p`.
//! - `v = 1`, `v += 1` and `++v` are writes. So are `a[0] = 1` and `s.x = 1` of an array `a` and a structure
//!   `s`.
//! - `&v` and `g(v)` with an unknown function may be either.

use super::lexemes::{Lexemes, is_assignment};
use super::words::is_type;

/// The kind of an access. A compound assignment is a read and a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
}

/// The way in which an expression uses a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads the value, or accesses the target of a pointer.
    Read,
    /// Assigns to the variable.
    Write,
    /// Unknown: the expression takes the address, or passes the variable to a function that may take a
    /// reference.
    Unknown,
}

/// Two facts about names: which are variables rather than types, and which functions never take references.
pub(super) struct Names<'n> {
    pub(super) is_value: &'n dyn Fn(usize) -> bool,
    pub(super) takes_values: &'n dyn Fn(&str) -> bool,
}

/// Returns how the variable named at `at` is used.
pub(super) fn access(
    lexemes: &Lexemes<'_, '_>,
    at: usize,
    is_pointer: bool,
    names: &Names<'_>,
) -> Access {
    let (mut low, mut high) = (at, at);
    loop {
        // Elements and members are parts of the variable, except those that a pointer points to.
        match lexemes.at(high + 1) {
            "[" if is_pointer && high == at => return Access::Read,
            "[" => match lexemes.partner(high + 1) {
                Some(close) => high = close,
                None => return Access::Unknown,
            },
            "." => high += 2,
            "->" => return Access::Read,
            "(" => return Access::Unknown,
            "++" | "--" => return Access::Write,
            // `*p = v` writes to the target of the pointer, and only reads the pointer.
            operator if is_assignment(operator) => {
                let is_star = is_pointer && low == at && lexemes.before(at) == "*";
                return if is_star { Access::Read } else { Access::Write };
            }
            _ => {
                let Some(before) = low.checked_sub(1) else { return Access::Read };
                match lexemes.at(before) {
                    "++" | "--" => return Access::Write,
                    "&" => {
                        // After an operand, `&` or `*` is a binary operator.
                        let is_binary = before > 0
                            && lexemes.at(before - 1) != ")"
                            && lexemes.ends_operand(before - 1);
                        return if is_binary { Access::Read } else { Access::Unknown };
                    }
                    // The result of `condition ? one : other` may be either variable.
                    "?" | ":" if matches!(lexemes.at(high + 1), ":" | ")" | "," | ";") => {
                        match lexemes.opener(low).filter(|&open| lexemes.at(open) == "(") {
                            Some(open) => {
                                (low, high) = (open + 1, lexemes.partner(open).unwrap_or(open) - 1)
                            }
                            None => return Access::Read,
                        }
                    }
                    "(" | "," if matches!(lexemes.at(high + 1), ")" | ",") => {
                        let is_alone = lexemes.at(before) == "(" && lexemes.at(high + 1) == ")";
                        match passed(lexemes, low, is_alone, names) {
                            Some(access) => return access,
                            None => (low, high) = (low - 1, high + 1),
                        }
                    }
                    _ => return Access::Read,
                }
            }
        }
    }
}

/// Returns how a variable is used that stands alone between parentheses or commas. Returns `None` if the
/// parentheses only group an expression.
fn passed(
    lexemes: &Lexemes<'_, '_>,
    at: usize,
    is_alone: bool,
    names: &Names<'_>,
) -> Option<Access> {
    let Some(open) = lexemes.opener(at) else { return Some(Access::Read) };
    match lexemes.at(open) {
        "(" => {}
        // A braced list copies the values.
        _ => return Some(Access::Read),
    }
    let Some(before) = open.checked_sub(1) else { return Some(Access::Unknown) };
    let word = lexemes.at(before);
    if lexemes.is_word(before) {
        let takes_values = matches!(word, "if" | "while" | "for" | "switch" | "sizeof")
            || is_type(word)
            || ((names.takes_values)(word) && !matches!(lexemes.before(before), "." | "->" | "::"));
        return match word {
            "return" => None,
            _ if takes_values => Some(Access::Read),
            _ => Some(Access::Unknown),
        };
    }
    match word {
        ")" if lexemes.is_cast(before, names.is_value) => Some(Access::Read),
        ")" | "]" => Some(Access::Unknown),
        // A `static_cast` to a type that is not a reference.
        ">" => {
            let open = (0..before).rev().take(8).find(|&it| lexemes.at(it) == "<");
            let is_cast = open.is_some_and(|open| {
                lexemes.before(open) == "static_cast"
                    && (open + 1..before).all(|it| lexemes.is_word(it))
            });
            Some(if is_cast { Access::Read } else { Access::Unknown })
        }
        _ if is_alone => None,
        _ => Some(Access::Unknown),
    }
}

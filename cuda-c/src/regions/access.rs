//! What an expression does with a variable.

use super::lexemes::{Lexemes, is_assignment};
use super::words::is_type;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Takes the value, or goes to what a pointer points to.
    Read,
    /// Assigns to it.
    Write,
    /// Anything: its address is taken, or a function may have a reference to it.
    Unknown,
}

/// What is known of names: which are variables, and not types; which functions have no references as
/// parameters.
pub(super) struct Names<'n> {
    pub(super) is_value: &'n dyn Fn(usize) -> bool,
    pub(super) takes_values: &'n dyn Fn(&str) -> bool,
}

/// Returns what is done with the variable that is named at `at`.
pub(super) fn access(
    lexemes: &Lexemes<'_, '_>,
    at: usize,
    is_pointer: bool,
    names: &Names<'_>,
) -> Access {
    let (mut low, mut high) = (at, at);
    loop {
        // Elements and members are parts of the variable, but for what is behind a pointer.
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
            // `*p = v` goes to what the pointer points to.
            operator if is_assignment(operator) => {
                let is_star = is_pointer && low == at && lexemes.before(at) == "*";
                return if is_star { Access::Read } else { Access::Write };
            }
            _ => {
                let Some(before) = low.checked_sub(1) else { return Access::Read };
                match lexemes.at(before) {
                    "++" | "--" => return Access::Write,
                    "&" => {
                        // Behind an operand it is an operation.
                        let is_binary = before > 0
                            && lexemes.at(before - 1) != ")"
                            && lexemes.ends_operand(before - 1);
                        return if is_binary { Access::Read } else { Access::Unknown };
                    }
                    // `condition ? one : other` may be either of the variables.
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

/// What becomes of a variable that stands alone between parentheses or commas; `None` if the parentheses mean
/// nothing.
fn passed(
    lexemes: &Lexemes<'_, '_>,
    at: usize,
    is_alone: bool,
    names: &Names<'_>,
) -> Option<Access> {
    let Some(open) = lexemes.opener(at) else { return Some(Access::Read) };
    match lexemes.at(open) {
        "(" => {}
        // The elements of a list have the values.
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
        // Of a cast to a type that is no reference.
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

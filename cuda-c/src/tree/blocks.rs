//! The heads of functions and classes, which are the tokens before their bodies.

use crate::tokens::Tokens;

/// Words of attributes with arguments.
const ATTRIBUTES: [&str; 3] = ["__attribute__", "__align__", "alignas"];
/// Words between a function's parameters and its body.
const BEHIND_PARAMETERS: [&str; 6] =
    ["const", "noexcept", "override", "final", "mutable", "volatile"];
const CONTROL: [&str; 5] = ["if", "for", "while", "switch", "constexpr"];

/// The head of a function or a lambda.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function<'a> {
    /// The name, if it is a single word. A lambda has the name of the variable in `auto name = [] {`.
    pub(crate) name: Option<&'a str>,
    /// The opening parenthesis of the parameters, which a lambda may lack.
    pub(crate) parameters: Option<usize>,
}

impl<'a> Function<'a> {
    /// Returns the function or lambda whose body begins at a brace.
    pub(crate) fn of(tokens: &Tokens<'a>, brace: usize) -> Option<Function<'a>> {
        let last = (0..brace).rev().find(|&it| !BEHIND_PARAMETERS.contains(&tokens.at(it)))?;
        let parameters = tokens.partner(last).filter(|_| tokens.at(last) == ")");
        let before = parameters.map_or(Some(last), |open| open.checked_sub(1))?;
        let name = match tokens.at(before) {
            "]" => {
                let equals = tokens.partner(before)?.checked_sub(1)?;
                equals.checked_sub(1).filter(|_| tokens.at(equals) == "=")
            }
            word if parameters.is_none() || CONTROL.contains(&word) => return None,
            _ => Some(before),
        };
        let name = name.filter(|&it| tokens.is_word(it)).map(|it| tokens.at(it));
        Some(Function { name, parameters })
    }
}

/// Returns the keyword of the class or enumeration whose body ends with a brace; `None` for another body.
pub(crate) fn class_of(tokens: &Tokens<'_>, close: usize) -> Option<usize> {
    let open = tokens.partner(close).filter(|_| tokens.at(close) == "}")?;
    let is_end = |at: &usize| matches!(tokens.at(*at), ";" | "{" | "}");
    let mut at = (0..open).rev().find(is_end).map_or(0, |end| end + 1);
    let mut class = None;
    while at < open {
        match tokens.at(at) {
            "<" => at = tokens.behind_angles(at, open).map_or(at, |behind| behind - 1),
            "(" if ATTRIBUTES.contains(&tokens.at(at.saturating_sub(1))) => {
                at = tokens.partner(at)?
            }
            "(" | "=" => return None,
            "[" => at = tokens.partner(at)?,
            "struct" | "class" | "union" | "enum" if class.is_none() => class = Some(at),
            _ => {}
        }
        at += 1;
    }
    class
}

#[cfg(test)]
mod tests {
    use super::{Function, class_of};
    use crate::tokens::Tokens;

    #[test]
    fn bodies_of_functions_have_a_name_and_parameters() {
        for (text, expected) in [
            ("int f(int x) const noexcept {", Some((Some("f"), true))),
            ("auto g = [&](int x) mutable {", Some((Some("g"), true))),
            ("auto h = [=] {", Some((Some("h"), false))),
            ("call([](int x) {", Some((None, true))),
            ("S operator+(S x) {", Some((None, true))),
            ("if (x) {", None),
            ("if constexpr (x) {", None),
            ("struct S {", None),
            ("{", None),
        ] {
            let tokens = Tokens::of(text);
            let found = Function::of(&tokens, tokens.len() - 1);
            let found = found.map(|it| (it.name, it.parameters.is_some()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn bodies_of_classes_have_a_keyword() {
        for (text, expected) in [
            ("template <class T> struct alignas(8) S : B<(3 > 2)> { }", Some("struct")),
            ("int n; enum class E : int { }", Some("enum")),
            ("struct S f() { }", None),
            ("struct S s = { }", None),
            ("namespace n { }", None),
        ] {
            let tokens = Tokens::of(text);
            let found = class_of(&tokens, tokens.len() - 1).map(|it| tokens.at(it));
            assert_eq!(found, expected, "{text}");
        }
    }
}

//! The declarations of a text outside of classes and functions.

use crate::tokens::Tokens;
use std::ops::Range;

/// The words that replace CUDA's qualifiers after preprocessing.
pub(crate) const GLOBAL: &str = "__gpuarray_global__";
pub(crate) const VARIABLE: &str = "__gpuarray_variable__";
pub(crate) const CONSTANT: &str = "__gpuarray_constant__";

/// Words with arguments in parentheses that are not parameters.
const WITH_ARGUMENTS: [&str; 11] = [
    "__attribute__",
    "__attribute",
    "alignas",
    "decltype",
    "__typeof__",
    "__gpuarray_bounds__",
    "noexcept",
    "requires",
    "explicit",
    "__asm__",
    "asm",
];

/// A block around declarations: `namespace a {` or `extern "C" {`.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The tokens before the brace.
    pub(crate) head: Range<usize>,
    pub(crate) is_namespace: bool,
    parent: Option<usize>,
}

/// A declaration.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The tokens of the declaration, with the `;` or the body.
    pub(crate) range: Range<usize>,
    /// The opening parenthesis of a function's parameters. `body` is the opening brace of its body.
    pub(crate) parameters: Option<usize>,
    pub(crate) body: Option<usize>,
    pub(crate) is_kernel: bool,
    /// The qualifier of a variable; true if the variable is in constant memory.
    pub(crate) variable: Option<(usize, bool)>,
    scope: Option<usize>,
}

impl Declared {
    /// Returns the `;` or the opening brace of the body.
    pub(crate) fn end(&self) -> usize {
        self.body.unwrap_or(self.range.end - 1)
    }

    /// Returns the name of a function without its template arguments, if it is a single token.
    pub(crate) fn name<'a>(&self, tokens: &Tokens<'a>) -> Option<&'a str> {
        let before = self.parameters?.checked_sub(1)?;
        tokens.is_word(before).then(|| tokens.at(before))
    }
}

/// The declarations of a text, and the blocks around them.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) all: Vec<Declared>,
    scopes: Vec<Scope>,
}

impl Items {
    pub(crate) fn of(tokens: &Tokens<'_>) -> Items {
        let mut items = Items::default();
        let (mut at, mut begin, mut scope) = (0, 0, None);
        while at < tokens.len() {
            let mut is_end = false;
            match tokens.at(at) {
                ";" => {
                    items.add(tokens, begin..at, None, scope);
                    is_end = true;
                }
                "{" => {
                    if let Some(is_namespace) = opens_scope(tokens, begin, at) {
                        items.scopes.push(Scope { head: begin..at, is_namespace, parent: scope });
                        scope = Some(items.scopes.len() - 1);
                        is_end = true;
                    } else if is_member_initialiser(tokens, begin, at) {
                        at = tokens.partner(at).unwrap_or(at);
                    } else {
                        let close = tokens.partner(at);
                        is_end = parameters(tokens, begin, at).is_some();
                        if is_end {
                            items.add(tokens, begin..close.unwrap_or(at), Some(at), scope);
                        }
                        at = close.unwrap_or(tokens.len());
                    }
                }
                "}" => {
                    scope = scope.and_then(|it: usize| items.scopes[it].parent);
                    is_end = true;
                }
                "(" | "[" => at = tokens.partner(at).unwrap_or(at),
                _ => {}
            }
            at += 1;
            begin = if is_end { at } else { begin };
        }
        items
    }

    /// Returns the blocks around a declaration, the innermost one first.
    pub(crate) fn scopes(&self, declared: &Declared) -> impl Iterator<Item = &Scope> {
        let scope = |at: Option<usize>| at.map(|at| &self.scopes[at]);
        std::iter::successors(scope(declared.scope), move |it| scope(it.parent))
    }

    /// Adds a declaration. `range` ends with the `;`, or with the closing brace of the body.
    fn add(
        &mut self,
        tokens: &Tokens<'_>,
        range: Range<usize>,
        body: Option<usize>,
        scope: Option<usize>,
    ) {
        let end = body.unwrap_or(range.end);
        let is_kernel = outside_braces(tokens, range.start..end).any(|at| tokens.at(at) == GLOBAL);
        let variable = variable(tokens, range.start..end);
        // Constant memory is never a function; the parentheses may contain its initial value.
        let is_constant = variable.is_some_and(|it| it.1);
        let parameters = parameters(tokens, range.start, end).filter(|_| !is_constant);
        let range = range.start..range.end + 1;
        self.all.push(Declared { range, parameters, body, is_kernel, variable, scope });
    }
}

/// Returns the tokens that no brace in the range encloses: members of classes do not count.
fn outside_braces(tokens: &Tokens<'_>, range: Range<usize>) -> impl Iterator<Item = usize> {
    let mut braces = 0_usize;
    range.filter(move |&at| {
        match tokens.at(at) {
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            _ => {}
        }
        braces == 0
    })
}

/// Returns the qualifier of a variable, and true for constant memory.
fn variable(tokens: &Tokens<'_>, range: Range<usize>) -> Option<(usize, bool)> {
    let is_qualifier = |at: &usize| matches!(tokens.at(*at), VARIABLE | CONSTANT);
    let first = outside_braces(tokens, range.clone()).find(is_qualifier)?;
    let mut rest = (first..range.end).take_while(|&it| tokens.at(it) != "{");
    Some((first, rest.any(|it| tokens.at(it) == CONSTANT)))
}

/// Returns true for the brace of a namespace, false for the brace after `extern "C"`, and `None` for others.
fn opens_scope(tokens: &Tokens<'_>, begin: usize, brace: usize) -> Option<bool> {
    // A text may have blanks in place of the literal.
    if brace <= begin + 2 && tokens.at(begin) == "extern" {
        return Some(false);
    }
    let first = begin + usize::from(tokens.at(begin) == "inline");
    (tokens.at(first) == "namespace").then_some(true)
}

/// Returns true for the brace in a constructor's member initialiser list: `: member{1}`.
fn is_member_initialiser(tokens: &Tokens<'_>, begin: usize, brace: usize) -> bool {
    let is_name = brace > begin && (tokens.is_word(brace - 1) || tokens.at(brace - 1) == ">");
    let close = parameters(tokens, begin, brace).and_then(|open| tokens.partner(open));
    let Some(mut at) = close.filter(|_| is_name) else { return false };
    while at < brace {
        match tokens.at(at) {
            ":" => return true,
            "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(at),
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the opening parenthesis of a function's parameters, or `None` for other declarations.
fn parameters(tokens: &Tokens<'_>, begin: usize, end: usize) -> Option<usize> {
    let mut at = behind_template(tokens, begin, end);
    while at < end {
        match tokens.at(at) {
            "(" => {
                let before = at.checked_sub(1).filter(|&it| it >= begin)?;
                let word = tokens.at(before);
                let is_name = tokens.is_word(before) || word == ">";
                if is_name && !WITH_ARGUMENTS.contains(&word) {
                    return Some(at);
                }
                at = tokens.partner(at)? + 1;
            }
            "[" => at = tokens.partner(at)? + 1,
            "<" if at > begin && tokens.is_word(at - 1) => {
                at = tokens.behind_angles(at, end).unwrap_or(at + 1);
            }
            "=" if tokens.at(at.wrapping_sub(1)) != "operator" => return None,
            "operator" => {
                return (at..end)
                    .find(|&it| tokens.at(it) == "(" && tokens.at(it + 1) != ")")
                    .or_else(|| (at..end).rev().find(|&it| tokens.at(it) == "("));
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns the token after `template <...>`, if the declaration begins with it.
fn behind_template(tokens: &Tokens<'_>, begin: usize, end: usize) -> usize {
    let mut at = begin;
    while at < end && tokens.at(at) == "template" && tokens.at(at + 1) == "<" {
        at = tokens.behind_angles(at + 1, end).unwrap_or(end);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::Items;
    use crate::tokens::Tokens;

    #[test]
    fn declarations_have_their_parts_and_scopes() {
        let text =
            "namespace a { extern \"C\" { int f(int x) { return x; } } struct S { void g(); } s; }
            template <class T = int> S::S(T x) : y{1} { z = 2; } int v = (1);
            struct P { friend __gpuarray_global__ void k(); }; __gpuarray_constant__ int c(1);";
        let tokens = Tokens::of(text);
        let items = Items::of(&tokens);
        let rows = items.all.iter().map(|it| {
            let scopes = items.scopes(it).map(|it| tokens.at(it.head.start)).collect::<Vec<_>>();
            (it.name(&tokens), tokens.at(it.end()), it.is_kernel, scopes.join(" "))
        });
        let expected = [
            (Some("f"), "{", "extern namespace"),
            (Some("g"), ";", "namespace"),
            (Some("S"), "{", ""),
            (None, ";", ""),
            (Some("k"), ";", ""),
            (None, ";", ""),
        ];
        let expected = expected.map(|(name, end, scopes)| (name, end, false, scopes.to_owned()));
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        assert_eq!(items.all[5].variable.map(|it| it.1), Some(true));
    }
}

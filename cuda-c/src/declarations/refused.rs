//! Refuses constructs that CUDA C does not allow, with a clear message. A C++ compiler would accept them or
//! report something misleading.

use crate::tokens::Tokens;
use crate::tree::{Declared, GLOBAL, VARIABLE};

/// Types that a kernel cannot return.
const VALUES: [&str; 10] =
    ["int", "float", "double", "char", "bool", "short", "long", "unsigned", "signed", "size_t"];

/// Refuses constructs that are visible in the text itself.
///
/// # Errors
/// A message with file and line.
pub(super) fn check(tokens: &Tokens<'_>) -> Result<(), String> {
    for at in 0..tokens.len() {
        let what = match tokens.at(at) {
            "<" if is_launch(tokens, at) && is_left(tokens, at) => continue,
            "<" if is_launch(tokens, at) => {
                "a kernel cannot launch kernels (<<<...>>>): dynamic parallelism is not \
                 supported on the host, and programs launch through their own API"
            }
            "thread_local" if has_initialiser(tokens, at) => {
                "a __shared__ variable has no initializer: memory of a block is written by its threads"
            }
            _ => continue,
        };
        return Err(format!("{}: error: {what}\n", tokens.position(at)));
    }
    Ok(())
}

/// Returns true for a launch that is left out, because it is in a function of the host or in an included file.
fn is_left(tokens: &Tokens<'_>, launch: usize) -> bool {
    tokens.is_included(launch) || is_of_host(tokens, launch)
}

/// Returns the places of `<<<...>>>` in functions of the host, which no kernel calls, and in files that the program
/// includes.
pub(super) fn launches_of_host(tokens: &Tokens<'_>) -> Vec<(usize, usize)> {
    let launches = (0..tokens.len()).filter(|&at| is_launch(tokens, at) && is_left(tokens, at));
    let end = |open: usize| {
        let mut at = open;
        while at < tokens.len() {
            match tokens.at(at) {
                "(" | "[" | "{" => at = tokens.partner(at)?,
                ">" if (at..at + 2)
                    .all(|it| tokens.is_adjacent(it) && tokens.at(it + 1) == ">") =>
                {
                    return Some(tokens.all[at + 2].end);
                }
                ";" | "}" => return None,
                _ => {}
            }
            at += 1;
        }
        None
    };
    launches.filter_map(|at| Some((tokens.all[at].start, end(at)?))).collect()
}

/// Refuses kernels that return a value.
///
/// # Errors
/// See [`check`].
pub(super) fn check_kernels(tokens: &Tokens<'_>, all: &[Declared]) -> Result<(), String> {
    for kernel in all.iter().filter(|it| it.is_kernel) {
        let Some(open) = kernel.parameters else { continue };
        // The tokens before the name, without attributes and template parameters.
        let (mut words, mut at) = (Vec::new(), kernel.range.start);
        while at + 1 < open {
            match tokens.at(at) {
                "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(at),
                "<" => at = tokens.behind_angles(at, open).map_or(at, |it| it - 1),
                word => words.push(word),
            }
            at += 1;
        }
        if words.iter().any(|it| VALUES.contains(it)) && !words.contains(&"void") {
            let (place, name) = (tokens.position(open - 1), tokens.at(open - 1));
            return Err(format!(
                "{place}: error: kernel {name} returns a value: kernels are void\n"
            ));
        }
    }
    Ok(())
}

/// Returns true at `<<<`, unless it is part of an operator's name.
fn is_launch(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_adjacent = |a: usize| tokens.at(a + 1) == "<" && tokens.is_adjacent(a);
    let is_operator = at > 0 && matches!(tokens.at(at - 1), "operator" | "<");
    tokens.at(at) == "<" && is_adjacent(at) && is_adjacent(at + 1) && !is_operator
}

/// Returns true in a function that is neither a kernel nor a device function.
fn is_of_host(tokens: &Tokens<'_>, inside: usize) -> bool {
    let blocks = std::iter::successors(Some(inside), |&at| Some(tokens.block_about(at)?.0)).skip(1);
    let function = blocks.filter(|&it| !tokens.is_of_scope(it) && !tokens.is_of_class(it)).last();
    function.is_some_and(|brace| !tokens.heading(brace).any(|it| matches!(it, GLOBAL | VARIABLE)))
}

/// Returns true for `__shared__` before a variable with an initialiser.
fn has_initialiser(tokens: &Tokens<'_>, shared: usize) -> bool {
    let mark = ["__attribute__", "(", "(", ")", ")"];
    let Some(first) = shared.checked_sub(mark.len()) else { return false };
    if !mark.iter().zip(first..).all(|(it, at)| tokens.at(at) == *it) {
        return false;
    }
    let mut at = shared + 1;
    loop {
        match tokens.at(at) {
            "=" | "{" => return tokens.is_word(at - 1) || tokens.at(at - 1) == "]",
            "(" if is_value(tokens, at) => return true,
            "(" | "[" => at = tokens.partner(at).unwrap_or(at),
            "<" => at = tokens.behind_angles(at, tokens.len()).map_or(at, |it| it - 1),
            // The braces of a class that is declared here contain its body.
            "" | ";" | "}" | "struct" | "union" | "class" | "enum" => return false,
            _ => {}
        }
        at += 1;
    }
}

/// Returns true for parentheses that contain the initial value of a variable, `int s(0)`, and not a
/// declarator or an attribute's arguments.
fn is_value(tokens: &Tokens<'_>, open: usize) -> bool {
    const WITH_ARGUMENTS: [&str; 7] = [
        "alignas",
        "decltype",
        "__attribute__",
        "__attribute",
        "__typeof__",
        "typeof",
        "__declspec",
    ];
    const QUALIFIERS: [&str; 7] =
        ["const", "volatile", "static", "inline", "constexpr", "typename", "thread_local"];
    let is_of_type = |at: usize| match tokens.at(at) {
        ">" | "*" | "&" | "," => true,
        ")" => tokens
            .partner(at)
            .is_some_and(|it| it > 0 && WITH_ARGUMENTS[1..].contains(&tokens.at(it - 1))),
        word => tokens.is_word(at) && !QUALIFIERS.contains(&word),
    };
    let is_name = |at: usize| tokens.is_word(at) && !WITH_ARGUMENTS.contains(&tokens.at(at));
    let behind = tokens.partner(open).map_or("", |close| tokens.at(close + 1));
    open >= 2 && is_name(open - 1) && is_of_type(open - 2) && matches!(behind, ";" | ",")
}

//! What CUDA C does not have, refused by name where a C++ compiler would take it, or stumble over it.

use super::Declared;
use crate::tokens::Tokens;

/// Types that no kernel returns.
const VALUES: [&str; 10] =
    ["int", "float", "double", "char", "bool", "short", "long", "unsigned", "signed", "size_t"];
const INDICES: [&str; 4] = ["threadIdx", "blockIdx", "blockDim", "gridDim"];

/// Refuses what is seen in a text as it is.
///
/// # Errors
/// A message with file and line.
pub(super) fn check(tokens: &Tokens<'_>) -> Result<(), String> {
    let has_main = || {
        let is_main = |at: usize| tokens.at(at) == "main" && tokens.at(at + 1) == "(";
        (1..tokens.len()).any(|at| is_main(at) && tokens.at(at - 1) == "int")
    };
    let assigned = Assignments::of(tokens);
    for at in 0..tokens.len() {
        let what = match tokens.at(at) {
            "<" if is_launch(tokens, at) && has_main() => {
                "this is a whole program, which launches kernels itself (<<<...>>> and main): only code of the \
                 device can be compiled, and the program that compiles it launches them"
            }
            "<" if is_launch(tokens, at) => {
                "a kernel cannot launch kernels (<<<...>>>): dynamic parallelism is not \
                 supported on the host, and programs launch through their own API"
            }
            "thread_local" if has_initialiser(tokens, at) => {
                "a __shared__ variable has no initializer: memory of a block is written by its threads"
            }
            index if assigned.has(at) => {
                return Err(format!(
                    "{}: error: {index} cannot be assigned to\n",
                    tokens.place(at)
                ));
            }
            _ => continue,
        };
        return Err(format!("{}: error: {what}\n", tokens.place(at)));
    }
    Ok(())
}

/// Refuses kernels that return a value.
///
/// # Errors
/// As [`check`].
pub(super) fn check_kernels(tokens: &Tokens<'_>, all: &[Declared]) -> Result<(), String> {
    for kernel in all.iter().filter(|it| it.is_kernel) {
        let Some(open) = kernel.parameters else { continue };
        // The words in front of the name, without those of groups such as attributes and a template's parameters.
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
            let (place, name) = (tokens.place(open - 1), tokens.at(open - 1));
            return Err(format!(
                "{place}: error: kernel {name} returns a value: kernels are void\n"
            ));
        }
    }
    Ok(())
}

/// True at `<<<`, but for an operator's name.
fn is_launch(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_adjacent =
        |a: usize| tokens.at(a + 1) == "<" && tokens.all[a].end == tokens.all[a + 1].start;
    let is_operator = at > 0 && matches!(tokens.at(at - 1), "operator" | "<");
    is_adjacent(at) && is_adjacent(at + 1) && !is_operator
}

/// True for `__shared__` in front of a variable with an initialiser.
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
            "(" | "[" => at = tokens.partner(at).unwrap_or(at),
            "<" => at = tokens.behind_angles(at, tokens.len()).map_or(at, |it| it - 1),
            // A class in front of the variable has a body.
            "" | ";" | "}" | "struct" | "union" | "class" | "enum" => return false,
            _ => {}
        }
        at += 1;
    }
}

/// Assignments to the indices of threads, which the loop over threads counts by.
struct Assignments<'t, 'a> {
    tokens: &'t Tokens<'a>,
    /// Names of indices that may be variables of the program, too: those that are used as a whole.
    own: Vec<&'a str>,
}

impl<'t, 'a> Assignments<'t, 'a> {
    fn of(tokens: &'t Tokens<'a>) -> Self {
        let indices = (0..tokens.len()).filter(|&at| INDICES.contains(&tokens.at(at)));
        let whole = indices.filter(|&at| tokens.is_of_program(at) && tokens.at(at + 1) != ".");
        Assignments { tokens, own: whole.map(|at| tokens.at(at)).collect() }
    }

    /// True for an index of which a part is assigned to.
    fn has(&self, at: usize) -> bool {
        let tokens = self.tokens;
        let index = tokens.at(at);
        if !INDICES.contains(&index) || !tokens.is_of_program(at) || self.own.contains(&index) {
            return false;
        }
        let is_member = at > 0 && matches!(tokens.at(at - 1), "." | ">" | "::");
        if is_member || tokens.at(at + 1) != "." || !matches!(tokens.at(at + 2), "x" | "y" | "z") {
            return false;
        }
        let next = if tokens.is_adjacent(at + 3) { tokens.at(at + 4) } else { "" };
        matches!(
            (tokens.at(at + 3), next),
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=") | ("+", "+") | ("-", "-")
        ) || (tokens.at(at + 3) == "=" && next != "=")
    }
}

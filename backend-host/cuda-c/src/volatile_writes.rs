//! Assignments to volatile arrays, for which the lanes of a warp meet.
//!
//! Programs from before `__syncwarp` let the lanes of a warp exchange values through volatile shared memory without
//! a barrier: on a GPU all lanes read, then all write. So an assignment to an element of a volatile array or pointer,
//! as a statement of its own, becomes a call of a function that waits for the other lanes in between
//! (`include/cuda_c/volatile_writes.h`), which does so for shared memory alone. What is not read with certainty
//! stays as it is.

use crate::tokens::Tokens;
use std::collections::HashSet;

const TOGETHER: &str = "::cuda_c::write_together";
const AT_ONCE: &str = "::cuda_c::write_at_once";

/// Bytes of the text, and what to put in their place.
pub(crate) type Edit = (usize, usize, String);

/// Returns the edits of all such assignments, in order.
pub(crate) fn edits(tokens: &Tokens<'_>) -> Vec<Edit> {
    let names = names(tokens);
    let mut edits = Vec::new();
    if names.is_empty() {
        return edits;
    }
    let mut at = 0;
    while at < tokens.len() {
        if tokens.at(at) == "(" {
            at = tokens.partner(at).unwrap_or(at);
        } else if names.contains(tokens.at(at)) && begins_statement(tokens, at) {
            at = assignment(tokens, at, &mut edits).unwrap_or(at);
        }
        at += 1;
    }
    edits
}

/// The names of the arrays and pointers that the program declares as volatile.
fn names<'a>(tokens: &Tokens<'a>) -> HashSet<&'a str> {
    let is_volatile = |&at: &usize| {
        matches!(tokens.at(at), "volatile" | "__volatile__") && tokens.is_of_program(at)
    };
    (0..tokens.len()).filter(is_volatile).filter_map(|at| declared(tokens, at)).collect()
}

/// The name that is declared behind `volatile`, if what it names has elements.
fn declared<'a>(tokens: &Tokens<'a>, volatile: usize) -> Option<&'a str> {
    let mut is_pointer = false;
    for at in volatile + 1..tokens.len() {
        match tokens.at(at) {
            "*" => is_pointer = true,
            "::" | "<" | ">" => {}
            "[" | "=" | ";" | "," | ")" => {
                let has_elements = is_pointer || tokens.at(at) == "[";
                return (has_elements && tokens.is_word(at - 1)).then(|| tokens.at(at - 1));
            }
            _ if tokens.is_word(at) => {}
            _ => return None,
        }
    }
    None
}

/// True for the first token of a statement in a body, or behind a condition.
fn begins_statement(tokens: &Tokens<'_>, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    match tokens.at(before) {
        ";" | "{" | "}" | "else" | "do" => true,
        ")" => tokens
            .partner(before)
            .and_then(|open| open.checked_sub(1))
            .is_some_and(|it| matches!(tokens.at(it), "if" | "for" | "while" | "constexpr")),
        _ => false,
    }
}

/// Adds the edits of a statement that begins with a name; returns its end, or `None` if it is no such assignment.
fn assignment(tokens: &Tokens<'_>, name: usize, edits: &mut Vec<Edit>) -> Option<usize> {
    let mut at = name + 1;
    while tokens.at(at) == "[" {
        at = tokens.partner(at)? + 1;
        if tokens.at(at) == "." && tokens.is_word(at + 1) {
            at += 2;
        }
    }
    if at == name + 1 {
        return None;
    }
    let sign = at;
    let (operation, behind) = operation(tokens.at(sign), tokens.at(sign + 1))?;
    let right = sign + behind;
    let end = end(tokens, right)?;
    let all = &tokens.all;
    let counts = tokens.at(sign) == tokens.at(sign + 1);
    if counts != (right == end) || tokens.at(right) == "{" {
        return None;
    }
    let is_value = |at: usize| !tokens.is_word(at) || matches!(tokens.at(at), "true" | "false");
    let call = match operation == "Assignment" && (right..end).all(is_value) {
        true => format!("{AT_ONCE}("),
        false => format!("{TOGETHER}<::cuda_c::{operation}>("),
    };
    edits.push((all[name].start, all[name].start, call));
    let separator = if counts { ", 1" } else { "," };
    edits.push((all[sign].start, all[right - 1].end, separator.to_owned()));
    edits.push((all[end].start, all[end].start, ")".to_owned()));
    Some(end)
}

/// What two tokens assign, and how many tokens say so; `x++` and `x--` add and subtract 1.
fn operation(first: &str, second: &str) -> Option<(&'static str, usize)> {
    let compound = match first {
        "=" if second != "=" => return Some(("Assignment", 1)),
        "+" => "Addition",
        "-" => "Subtraction",
        "*" => "Multiplication",
        "/" => "Division",
        "%" => "Remainder",
        "&" => "Conjunction",
        "|" => "Disjunction",
        "^" => "Exclusion",
        _ => return None,
    };
    let counts = matches!(first, "+" | "-") && first == second;
    (second == "=" || counts).then_some((compound, 2))
}

/// The semicolon of a statement, unless a comma parts it.
fn end(tokens: &Tokens<'_>, from: usize) -> Option<usize> {
    let mut at = from;
    while at < tokens.len() {
        match tokens.at(at) {
            ";" => return Some(at),
            "," | "}" | ")" | "]" => return None,
            "(" | "[" | "{" => at = tokens.partner(at)?,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::edits;
    use crate::tokens::Tokens;

    fn rewritten(text: &str) -> String {
        let (mut result, mut done) = (String::new(), 0);
        for (start, end, replacement) in edits(&Tokens::of(text)) {
            result.push_str(&text[done..start]);
            result.push_str(&replacement);
            done = end;
        }
        result + &text[done..]
    }

    #[test]
    fn assignments_to_elements_become_calls() {
        for (body, expected) in [
            ("s[t] += s[t + 1];", "write_together<::cuda_c::Addition>(s[t] , s[t + 1]);"),
            (
                "if (t < 4) s[t] = a = s[t];",
                "if (t < 4) write_together<::cuda_c::Assignment>(s[t] , a = s[t]);",
            ),
            (
                "s[t][2].x |= f(a, b);",
                "write_together<::cuda_c::Disjunction>(s[t][2].x , f(a, b));",
            ),
            (
                "s[t] = 0; s[f(t)] = -1.5f;",
                "write_at_once(s[t] , 0); write_at_once(s[f(t)] , -1.5f);",
            ),
            ("for (;;) s[t]++;", "for (;;) write_together<::cuda_c::Addition>(s[t], 1);"),
        ] {
            let text = rewritten(&format!("void f(volatile float *s) {{ {body} }}"));
            let plain = text.replace("::cuda_c::write", "write");
            assert_eq!(plain, format!("void f(volatile float *s) {{ {expected} }}"));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "void f(volatile float *s) { a[s[t]] = 1; x = s[t]; s[t] == 2; s[t]; g(s[t] = 1); }",
            "void f(volatile float *s) { s[t] = 1, x = 2; s[t] = {1}; s = q; *s = 1; s[t] ++ + 1; }",
            "void f(volatile float *s) { for (s[0] = 1; t; s[0] += 1) {} return s[t] = 1; }",
            "void f(volatile float s) { s[0] = 1; } void g(float *q) { *(volatile float *)q = 1; }",
            "void f(float *s) { asm volatile (\"\" : : : \"memory\"); s[t] = 1; }",
            "volatile float *s = {, ( [ }; void f() { s[",
        ] {
            assert_eq!(rewritten(text), text);
        }
    }
}

//! Asks the compiler if an expression is volatile, where names do not tell: for parameters of templates, `auto`,
//! results of functions, members of templates.
//!
//! `p[i] = x` becomes `(::cuda_c::written<decltype((p[i])), 12>(), p[i]) = x`, which means the same. If the type is
//! volatile, the compiler refuses the text and names line 12. The text is then written again, and line 12 counts as
//! volatile. The compiler accepts most texts the first time.

use super::names::Names;
use crate::tokens::{Edit, Kind, Tokens};
use std::collections::HashSet;
use std::ops::Range;

/// The edits of a text, in order.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// Those that make threads wait.
    pub(crate) meetings: Vec<Edit>,
    /// Those that only ask the compiler for types.
    pub(crate) questions: Vec<Edit>,
}

/// The lines of a text on which the compiler has found volatile memory.
#[derive(Debug, Default)]
pub struct VolatileLines {
    lines: HashSet<usize>,
    is_silent: bool,
}

impl VolatileLines {
    /// Adds the lines that the compiler's log names. Returns false if they were known.
    pub fn learn(&mut self, log: &str) -> bool {
        let known = self.lines.len();
        let ends = log.split("VolatileAt<").skip(1);
        self.lines.extend(ends.filter_map(|it| it.split('>').next()?.parse::<usize>().ok()));
        self.lines.len() > known
    }

    /// Returns the same, for a text without questions.
    pub fn without_questions(self) -> VolatileLines {
        VolatileLines { is_silent: true, ..self }
    }

    /// Forgets the lines in a text without questions. Returns false if there are none.
    pub fn forget(&mut self) -> bool {
        self.is_silent && !std::mem::take(&mut self.lines).is_empty()
    }

    /// Returns true for a text without questions.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    pub(super) fn has(&self, line: usize) -> bool {
        self.lines.contains(&line)
    }

    /// Returns true if the text asks. Nothing is volatile in a program without the word.
    pub(super) fn asks(&self, names: &Names<'_>) -> bool {
        !self.is_silent && names.has_word
    }
}

/// Returns the line of a token in its file.
pub(super) fn line(tokens: &Tokens<'_>, at: usize) -> usize {
    tokens.line(at).map_or(0, |it| it.1)
}

/// Returns the edits that put the call of a function before an expression. `{}` in the function stands for the
/// expression, which is not evaluated there. Before C++20 such an expression cannot contain lambdas.
pub(super) fn before(tokens: &Tokens<'_>, range: Range<usize>, function: &str) -> Vec<Edit> {
    let begins_lambda = |at: usize| {
        let before = tokens.at(at - 1);
        tokens.at(at) == "{" && matches!(before, ")" | "]" | "mutable" | "noexcept")
    };
    if range.clone().skip(1).any(begins_lambda) {
        return Vec::new();
    }
    let call = function.replace("{}", &expression(tokens, range.clone()));
    let (start, end) = (tokens.all[range.start].start, tokens.all[range.end - 1].end);
    vec![(start, start, format!("(::cuda_c::{call}(), ")), (end, end, ")".to_owned())]
}

/// Returns the tokens of a range in one line.
fn expression(tokens: &Tokens<'_>, range: Range<usize>) -> String {
    let space = |at| if tokens.is_adjacent(at) { "" } else { " " };
    let text: String = range.map(|at| tokens.at(at).to_owned() + space(at)).collect();
    text.trim_end().to_owned()
}

/// Adds the questions about the operands in a range of tokens that decides the end of a loop. Returns the types of
/// operands on lines that the compiler has named.
pub(super) fn reads(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    lines: &VolatileLines,
    asks: bool,
    edits: &mut Edits,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = match tokens.at(at) {
            "(" => cast_end(tokens, at, range.end),
            // The operand may be a type.
            "sizeof" | "alignof" | "decltype" | "typeid" | "noexcept" | "__builtin_offsetof"
                if tokens.at(at + 1) == "(" =>
            {
                at = tokens.partner(at + 1).unwrap_or(at) + 1;
                continue;
            }
            // The arguments of a template may be types.
            "<" => {
                let behind = tokens.behind_angles(at, range.end);
                at = behind.filter(|&it| matches!(tokens.at(it), "(" | "::")).unwrap_or(at + 1);
                continue;
            }
            _ => operand_end(tokens, at, range.end),
        };
        if let Some(end) = end {
            let line = line(tokens, at);
            if lines.has(line) {
                found.push(format!("decltype(({}))", expression(tokens, at..end)));
            } else if asks {
                let question = format!("awaited<decltype(({{}})), {line}>");
                edits.questions.extend(before(tokens, at..end, &question));
            }
        }
        at += 1;
    }
    found
}

/// Words of an expression that are neither variables nor functions.
const OTHERS: &str = "sizeof alignof new delete return typename template const volatile unsigned signed threadIdx \
    blockIdx blockDim gridDim true false";

/// Returns the end of the operand that begins with a name: `p[i]`, `a.b->c`, `f<T>(x)`.
fn operand_end(tokens: &Tokens<'_>, first: usize, end: usize) -> Option<usize> {
    let before = tokens.at(first.checked_sub(1)?);
    let is_member = matches!(before, "." | "::") || (before == ">" && tokens.at(first - 2) == "-");
    let is_name = |at: usize| tokens.is_word(at) && OTHERS.split(' ').all(|it| it != tokens.at(at));
    if is_member
        || !is_name(first)
        || is_name(first - 1)
        || matches!(before, "typename" | "struct" | "template")
    {
        return None;
    }
    let mut at = first + 1;
    let mut is_complete = true;
    while at < end {
        match tokens.at(at) {
            "[" | "(" => (at, is_complete) = (tokens.partner(at)? + 1, true),
            "." | "::" if is_name(at + 1) => at += 2,
            "-" if tokens.at(at + 1) == ">" && is_name(at + 2) => at += 3,
            "." | "::" => return None,
            "<" => match tokens.behind_angles(at, end) {
                Some(behind) if matches!(tokens.at(behind), "(" | "::") => {
                    (at, is_complete) = (behind, false);
                }
                _ => break,
            },
            _ => break,
        }
    }
    // A type in a cast, a temporary or a declaration: `(T)x`, `(T *)x`, `T{x}`, `T x`.
    let is_type = match tokens.at(at) {
        "{" => true,
        ")" => before == "(" && begins_operand(tokens, at + 1),
        "*" | "&" => {
            let behind = (at..end).find(|&it| !matches!(tokens.at(it), "*" | "&"));
            behind.is_some_and(|it| tokens.at(it) == ")")
        }
        _ => tokens.is_word(at) && is_name(at),
    };
    (is_complete && !is_type).then_some(at)
}

/// Returns the end of the operand of a cast to a pointer, `(T *)p[i]`.
fn cast_end(tokens: &Tokens<'_>, open: usize, end: usize) -> Option<usize> {
    let close = tokens.partner(open).filter(|&it| tokens.at(it - 1) == "*")?;
    let operand = (close + 1..end).find(|&it| !matches!(tokens.at(it), "*" | "&"))?;
    match tokens.at(operand) {
        "(" => Some(tokens.partner(operand)? + 1),
        _ => operand_end(tokens, operand, end),
    }
}

fn begins_operand(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.all.get(at).is_some_and(|it| it.kind != Kind::Mark) || matches!(tokens.at(at), "(" | "*")
}

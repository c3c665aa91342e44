//! Translates inline PTX: the `asm` statements in a text's device code become C++.
//!
//! A statement becomes a block. The block declares variables for the operands and registers, calls a function
//! in `include/cuda_c/ptx/` for each instruction, and stores the results. The line numbers are those in the
//! program: the code of an instruction is on the line of its string.

mod arguments;
mod constant;
mod instruction;
mod lexer;
mod memory;
mod moves;
mod parser;
mod registers;
mod special;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod video;
mod writer;

use crate::tokens::{Edit, Tokens};
use parser::Placed;
use statement::Statement;
pub(crate) use statement::is_statement;
use writer::Scope;

/// The header that a text with inline PTX includes after the prelude.
pub(crate) const HEADER: &str = "cuda_c/ptx.h";

/// The maximum number of messages for a text.
const MOST_MESSAGES: usize = 20;

/// Returns true for a text with `asm` statements.
pub(crate) fn is_used(tokens: &Tokens<'_>) -> bool {
    !statement::find(tokens).is_empty()
}

/// Returns the replacements for the `asm` statements of a text.
///
/// A statement that the host does not support, in a file that the program includes, is an error only if the program
/// uses the function that contains the statement.
///
/// # Errors
/// Messages with file and line for instructions that the host does not support.
pub(crate) fn edits(tokens: &Tokens<'_>, is_hip: bool) -> Result<Vec<Edit>, String> {
    let (mut messages, mut edits) = (Vec::new(), Vec::new());
    let mut refuse = |at: usize, number: usize, message: String| match tokens
        .is_included(at)
        .then(|| refused_if_used(tokens, at, number, &message))
        .flatten()
    {
        Some(edit) => edits.push(edit),
        None => messages.push(message),
    };
    let mut written = Vec::new();
    let mut all = Vec::new();
    for (number, site) in statement::find(tokens).into_iter().enumerate() {
        match read(tokens, site.at, number, is_hip) {
            Ok(read) => all.push((number, site, read)),
            // A function without qualifiers runs on the host, and its `asm` is in the host's own assembly
            // language.
            Err(_) if !site.is_device => {}
            Err(message) => refuse(site.at, number, message),
        }
    }
    let keeps_carry = all.iter().any(|(_, _, (_, items))| writer::asks_for_carry(items));
    // The registers that earlier statements have declared, and the block of each.
    let mut declared: Vec<(Option<usize>, Scope)> = Vec::new();
    for (number, site, (statement, items)) in &all {
        let mut around = Scope::default();
        let is_around = |brace: &Option<usize>| brace.is_some_and(|it| site.braces.contains(&it));
        declared.iter().filter(|it| is_around(&it.0)).for_each(|it| around.extend(&it.1));
        match writer::write(tokens, statement, items, *number, keeps_carry, around) {
            Ok((text, own)) => {
                if statement.is_among_others {
                    declared.push((site.braces.last().copied(), own));
                }
                let (first, last) = (statement.range.start, statement.range.end - 1);
                written.push((tokens.all[first].start, tokens.all[last].end, text));
            }
            Err(_) if !site.is_device => {}
            Err(wrong) => refuse(site.at, *number, placed(tokens, statement, &wrong)),
        }
    }
    edits.extend(written);
    edits.sort_unstable_by_key(|it: &Edit| it.0);
    messages.truncate(MOST_MESSAGES);
    if messages.is_empty() { Ok(edits) } else { Err(messages.concat()) }
}

/// Returns the replacement for a statement that the host does not support: code that makes the compiler report the
/// error if the function is used. Returns `None` for a statement that is not complete.
fn refused_if_used(tokens: &Tokens<'_>, at: usize, number: usize, message: &str) -> Option<Edit> {
    let open = (at..tokens.len()).find(|&it| tokens.at(it) == "(")?;
    let end = tokens.partner(open)? + 1;
    let (file, line) = tokens.line(end)?;
    let (_, said) = message.trim_end().split_once("error: ")?;
    let name = format!("gpuarray_refused_{number}");
    let text = format!(
        "{{ void {name}() __attribute__((error({said:?}))); {name}(); }}\n# {line} \"{file}\"\n"
    );
    (tokens.at(end) == ";").then(|| (tokens.all[at].start, tokens.all[end].end, text))
}

/// Reads a statement and the PTX in it.
fn read(
    tokens: &Tokens<'_>,
    at: usize,
    number: usize,
    is_hip: bool,
) -> Result<(Statement, Vec<Placed>), String> {
    let message = |(token, what): (usize, String)| {
        let token = token.min(tokens.len() - 1);
        format!("{}: error: inline PTX: {what}\n", tokens.position(token))
    };
    let statement = statement::read(tokens, at);
    if is_hip && !statement.as_ref().is_ok_and(|it| it.text.trim().is_empty()) {
        return Err(format!(
            "{}: error: inline assembly of AMD's processors is not supported on the host; use the functions \
             of HIP, or other code where __GPUARRAY_HOST__ is defined\n",
            tokens.position(at)
        ));
    }
    let statement = statement.map_err(message)?;
    let wrong = |wrong| placed(tokens, &statement, &wrong);
    let lexemes = lexer::read(&statement, number)
        .map_err(|(at, what)| wrong((at, format!("inline PTX: {what}"))))?;
    let items = parser::read(&statement.text, &lexemes).map_err(wrong)?;
    Ok((statement, items))
}

/// Returns a message with the line of a byte of the statement's text.
fn placed(tokens: &Tokens<'_>, statement: &Statement, (at, what): &parser::Wrong) -> String {
    let after = statement.lines.partition_point(|it| it.0 <= *at);
    let line = statement.lines[..after].last().map(|it| it.1);
    let place = match (tokens.line(statement.range.start), line) {
        (Some((file, _)), Some(line)) => format!("{file}:{line}"),
        _ => tokens.position(statement.range.start),
    };
    format!("{place}: error: {what}\n")
}

//! Reads the constants of a text, and appends descriptions from which the executor learns their sizes and
//! addresses.

use crate::tokens::Tokens;
use crate::tree::{CONSTANT, parts, without_value};
use std::fmt::Write as _;
use std::ops::Range;

/// The prefix of the symbol of a constant's description. A number follows.
pub const PREFIX: &str = "gpuarray_constant_";

/// Part of the symbol that describes a constant declared in a function.
pub const OF_FUNCTION: &str = "gpuarray_constant_of_function_";

/// A variable in constant memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Constant {
    /// The namespaces to open, outermost first.
    pub(super) namespaces: Vec<String>,
    pub(super) name: String,
    pub(super) is_template: bool,
}

impl Constant {
    /// Returns the prefix of the symbols of a template's variables. A space stands where the symbol of a
    /// static variable has an `L`.
    fn symbols(&self) -> String {
        let mut symbol = String::from("_Z");
        if !self.namespaces.is_empty() {
            symbol.push('N');
        }
        for namespace in &self.namespaces {
            let words =
                namespace.split(' ').filter(|it| !matches!(*it, "inline" | "namespace" | "::"));
            let mut words = words.filter(|it| !it.is_empty()).peekable();
            if words.peek().is_none() {
                symbol.push_str("12_GLOBAL__N_1");
            }
            for word in words {
                let _ = write!(symbol, "{}{word}", word.len());
            }
        }
        let _ = write!(symbol, " {}{}I", self.name.len(), self.name);
        symbol
    }
}

/// Returns the names of the variables declared between `begin` and the `;` at `end`. Returns no names if
/// one cannot be determined with certainty.
pub(super) fn names(tokens: &Tokens<'_>, begin: usize, end: usize) -> Vec<String> {
    let parts = parts(tokens, begin..end).into_iter();
    let names = parts.map(|part| name(tokens, without_value(tokens, part)));
    names.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the name in a declarator, which the type may precede.
fn name(tokens: &Tokens<'_>, part: Range<usize>) -> Option<String> {
    let (mut name, mut at) = (None::<String>, part.start);
    while at < part.end {
        match tokens.at(at) {
            // A pointer to a function, `(*name)(int)`, or an initialiser.
            "(" => {
                let close = tokens.partner(at)?;
                if tokens.at(at + 1) == "*" {
                    let word = (at..close).rev().find(|&it| tokens.is_word(it));
                    name = word.map(|it| tokens.at(it).to_owned());
                }
                at = close;
            }
            "__attribute__" | "__attribute" | "alignas" | "decltype" | "__typeof__" => {
                at = tokens.partner(at + 1)?;
            }
            "[" | "{" => at = tokens.partner(at)?,
            "<" => at = tokens.behind_angles(at, part.end)? - 1,
            word if tokens.is_word(at) => {
                let is_qualified = at > part.start && tokens.at(at - 1) == "::";
                let before = name.take().filter(|_| is_qualified);
                name = Some(before.map_or(word.to_owned(), |it| format!("{it}::{word}")));
            }
            _ => {}
        }
        at += 1;
    }
    name
}

/// Returns the descriptions of the constants declared in functions. Each is inserted after its declaration.
pub(super) fn of_functions(tokens: &Tokens<'_>) -> Vec<(usize, usize, String)> {
    let mut edits = Vec::new();
    for at in (0..tokens.len()).filter(|&it| tokens.at(it) == CONSTANT) {
        let Some((open, close)) = tokens.block_about(at) else { continue };
        let begin =
            (open..at).rfind(|&it| matches!(tokens.at(it), ";" | "{" | "}")).unwrap_or(open) + 1;
        let mut end = at;
        while end < close && tokens.at(end) != ";" {
            end = tokens.partner(end).unwrap_or(end) + 1;
        }
        let is_static = (begin..end).any(|it| tokens.at(it) == "static");
        let begins = matches!(tokens.at(begin), "static" | "const" | CONSTANT);
        if !is_static || !begins || tokens.is_of_scope(open) || tokens.is_of_class(open) {
            continue;
        }
        let behind = tokens.all[end].end;
        for name in names(tokens, begin, end) {
            let number = edits.len();
            let text = format!(" static {} {OF_FUNCTION}{number} {}", TYPE, value(&name));
            edits.push((behind, behind, text));
        }
    }
    edits
}

const TYPE: &str = "const ::gpuarray_abi::Constant";

/// Returns the description of a constant, starting with its attributes.
fn value(name: &str) -> String {
    format!(
        "__attribute__((used)) = {{sizeof({name}), __alignof__({name}), __builtin_addressof({name})}};"
    )
}

/// Appends the descriptions of constants. The description of a template holds the prefix of its symbols
/// instead of a size.
pub(super) fn append(text: &mut String, constants: &[Constant]) {
    for (number, constant) in constants.iter().enumerate() {
        let Constant { namespaces, name, is_template } = constant;
        let _ = write!(text, "\n# 1 \"constant {name}\"\n");
        for namespace in namespaces {
            let _ = write!(text, "{namespace} {{ ");
        }
        let value = match is_template {
            true => format!("__attribute__((used)) = {{0, 0, \"{}\"}};", constant.symbols()),
            false => value(name),
        };
        let _ =
            write!(text, "static {TYPE} {PREFIX}{number} __asm__(\"{PREFIX}{number}\") {value}");
        let _ = writeln!(text, "{}", " }".repeat(namespaces.len()));
    }
}

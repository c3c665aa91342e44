//! Expands the macros of a text, as far as the text alone determines them.

use crate::tokens::{is_word_start, quoted_end, raw_end, word_end};
use std::collections::HashMap;

/// Precedes a word that may be a macro with unknown contents.
pub(super) const UNSURE: &str = "\x01";
/// These marks enclose lines under a condition that the text does not decide.
pub(super) const BEGIN: &str = "@";
pub(super) const END: &str = "`";

enum Macro {
    Text(String),
    /// A macro with arguments: the names of its parameters, and its text.
    Function(Vec<String>, String),
    /// A macro that may be undefined, have one of several definitions, or make a literal of words.
    Unsure,
}

impl Macro {
    /// Reads the text after the name in a definition.
    fn of(body: &str) -> Macro {
        let Some(rest) = body.strip_prefix('(') else { return Macro::Text(body.trim().into()) };
        let Some((names, text)) = rest.split_once(')') else { return Macro::Unsure };
        let names: Vec<String> = names.split(',').map(|it| it.trim().to_owned()).collect();
        let is_name = |it: &String| !it.is_empty() && split_word(it).0 == it;
        match names.iter().all(is_name) && !text.replace("##", "").contains('#') {
            true => Macro::Function(names, text.trim().into()),
            false => Macro::Unsure,
        }
    }
}

/// Returns the arguments in parentheses at the beginning of a text, and the length with the white space before them.
fn arguments(text: &str) -> Option<(Vec<&str>, usize)> {
    let open = text.len() - text.trim_start().len();
    text[open..].strip_prefix('(')?;
    let (mut all, mut depth, mut start) = (Vec::new(), 0_usize, open + 1);
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && byte == b',') {
            all.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            return Some((all, at + 1));
        }
    }
    None
}

/// Returns a text with other texts in place of words.
fn substituted(text: &str, names: &[String], values: &[&str]) -> String {
    let (mut result, mut at) = (String::new(), 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at;
        // Letters inside a number do not begin a name.
        at = match is_word_start(bytes[at]) || bytes[at].is_ascii_digit() {
            true => word_end(bytes, at),
            false => at + 1,
        };
        let word = &text[start..at];
        match names.iter().position(|it| it == word) {
            Some(index) => result.extend([" ", values[index], " "]),
            None => result.push_str(word),
        }
    }
    let pasted: Vec<&str> = result.split("##").map(str::trim).collect();
    pasted.concat()
}

/// The maximum nesting depth of conditions.
const DEEPEST: usize = 256;

/// An `#if` and its branches.
struct Condition {
    /// True if the current branch is compiled; `None` if the text does not decide it.
    holds: Option<bool>,
    /// True if an earlier branch is compiled.
    taken: Option<bool>,
}

struct Expander {
    macros: HashMap<String, Macro>,
    conditions: Vec<Condition>,
    /// True once a header is included, which may define any macro.
    includes: bool,
    /// The remaining size of the output. It stops recursive macros.
    room: usize,
    result: String,
}

/// Returns the text without comments, directives and the contents of literals, and with its macros expanded.
/// Returns `None` if the result is too long.
pub(super) fn expanded(text: &str, options: &[&str]) -> Option<String> {
    if !text.contains("__global__") {
        return None;
    }
    let text = plain(text);
    let mut expander = Expander {
        macros: HashMap::new(),
        conditions: Vec::new(),
        includes: false,
        room: 8 * text.len() + (64 << 10),
        result: String::with_capacity(text.len()),
    };
    expander.read_options(options);
    for line in text.split('\n') {
        match line.trim_start().strip_prefix('#') {
            Some(directive) => expander.directive(directive.trim_start()),
            None if expander.is_compiled() == Some(false) => {}
            None => expander.expand(line, &mut Vec::new())?,
        }
        if expander.conditions.len() > DEEPEST {
            return None;
        }
        expander.result.push('\n');
    }
    Some(expander.result)
}

/// Joins continued lines, and removes comments and the contents of literals.
fn plain(text: &str) -> String {
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let bytes = text.as_bytes();
    let mut result = String::with_capacity(text.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let start = at;
        let replacement = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(bytes.len(), |it| at + it);
                " "
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = text[at + 2..].find("*/").map_or(bytes.len(), |it| at + 2 + it + 2);
                " "
            }
            b'"' if start > 0 && bytes[start - 1] == b'R' => {
                at = raw_end(bytes, at);
                // The prefix must not make this a raw string again.
                " \"\""
            }
            // The file name of an `#include` is not a literal.
            b'"' => {
                at = quoted_end(bytes, at);
                "\"\""
            }
            // Between digits, it is a digit separator.
            b'\'' if start == 0 || !bytes[start - 1].is_ascii_alphanumeric() => {
                at = quoted_end(bytes, at);
                "0"
            }
            _ => {
                at += 1;
                continue;
            }
        };
        result.push_str(&text[kept..start]);
        result.push_str(replacement);
        kept = at;
    }
    result.push_str(text.get(kept..).unwrap_or_default());
    result
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.bytes().next() {
        Some(byte) if is_word_start(byte) => text.split_at(word_end(text.as_bytes(), 0)),
        _ => ("", text),
    }
}

impl Expander {
    fn read_options(&mut self, options: &[&str]) {
        let mut options = options.iter().map(|it| it.trim());
        while let Some(option) = options.next() {
            let undefined = option.strip_prefix("-U").or(option.strip_prefix("--undefine-macro="));
            if let Some(rest) = undefined {
                let name = if rest.is_empty() { options.next().unwrap_or("") } else { rest };
                // Some compilers apply the last option for a name, others apply all undefinitions last.
                self.macros.insert(name.into(), Macro::Unsure);
                continue;
            }
            let Some(rest) = option.strip_prefix("-D").or(option.strip_prefix("--define-macro="))
            else {
                // The files that these options include are not read.
                self.includes |=
                    option.starts_with("-include") || option.starts_with("--pre-include");
                continue;
            };
            let definition = if rest.is_empty() { options.next().unwrap_or("") } else { rest };
            let (name, value) = definition.split_once('=').unwrap_or((definition, "1"));
            let (name, parameters) = split_word(name);
            self.macros.insert(name.into(), Macro::of(&format!("{parameters}{value}")));
        }
    }

    /// Returns true if the lines of all open conditions are compiled, and `None` if that is not known.
    fn is_compiled(&self) -> Option<bool> {
        let mut all = Some(true);
        for condition in &self.conditions {
            match condition.holds {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
        }
        all
    }

    fn open(&mut self, condition: Condition) {
        if condition.holds.is_none() {
            self.result.push_str(BEGIN);
        }
        self.conditions.push(condition);
    }

    fn close(&mut self) -> Option<Condition> {
        let condition = self.conditions.pop()?;
        if condition.holds.is_none() {
            self.result.push_str(END);
        }
        Some(condition)
    }

    fn directive(&mut self, directive: &str) {
        let (name, rest) = split_word(directive);
        let rest = rest.trim();
        match name {
            "if" | "ifdef" | "ifndef" => {
                let holds = match name {
                    "if" => self.value(rest),
                    "ifdef" => self.is_defined(rest),
                    _ => self.is_defined(rest).map(|it| !it),
                };
                self.open(Condition { holds, taken: holds });
            }
            "else" | "elif" => {
                let Some(before) = self.close() else { return };
                let own = if name == "else" { Some(true) } else { self.value(rest) };
                let holds = match (before.taken, own) {
                    (Some(true), _) | (_, Some(false)) => Some(false),
                    (Some(false), own) => own,
                    (None, _) => None,
                };
                let taken = match (before.taken, holds) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                };
                self.open(Condition { holds, taken });
            }
            "endif" => drop(self.close()),
            _ if self.is_compiled() == Some(false) => {}
            "include" => {
                self.includes = true;
                // One of the program's own headers may redefine existing macros.
                if rest.starts_with('"') {
                    self.forget();
                }
            }
            "pragma" if rest.contains("_macro") => self.forget(),
            "define" => {
                let (name, body) = split_word(rest);
                let value = match self.is_compiled() {
                    None => Macro::Unsure,
                    _ => Macro::of(body),
                };
                self.macros.insert(name.into(), value);
            }
            "undef" if self.is_compiled() == Some(true) => {
                self.macros.remove(rest);
            }
            "undef" => drop(self.macros.insert(rest.into(), Macro::Unsure)),
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.macros.values_mut().for_each(|it| *it = Macro::Unsure);
    }

    fn is_defined(&self, name: &str) -> Option<bool> {
        match self.macros.get(name) {
            Some(Macro::Unsure) => None,
            Some(_) => Some(true),
            // Compilers, and the text before a program, define macros with these prefixes.
            None => {
                let theirs = [
                    "_", "CU", "HIP", "NV", "PYGPU", "GPUARRAY", "M_", "NULL", "NAN", "INFINITY",
                    "HUGE_", "FLT_", "DBL_", "LDBL_", "CHAR_", "SCHAR_", "UCHAR_", "SHRT_",
                    "USHRT_", "INT_", "UINT_", "LONG_", "ULONG_", "LLONG_", "ULLONG_", "SIZE_",
                    "PTRDIFF_", "RAND_", "EOF", "EXIT_", "DECIMAL_", "MB_", "WCHAR_",
                ];
                let is_own = name
                    .bytes()
                    .all(|it| it.is_ascii_uppercase() || it == b'_' || it.is_ascii_digit())
                    && !theirs.iter().any(|it| name.starts_with(it));
                (is_own && !self.includes).then_some(false)
            }
        }
    }

    /// Evaluates a condition that consists of a number, a name, or `defined`.
    fn value(&self, condition: &str) -> Option<bool> {
        let condition = condition.trim();
        if let Some(rest) = condition.strip_prefix('!') {
            let is_single = !rest.contains(['&', '|', '=', '<', '>']);
            return self.value(rest).filter(|_| is_single).map(|it| !it);
        }
        if let Some(rest) = condition.strip_prefix("defined") {
            let rest = rest.trim();
            let name =
                rest.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(rest).trim();
            return (split_word(name).0 == name).then(|| self.is_defined(name)).flatten();
        }
        if let Ok(number) = condition.parse::<i64>() {
            return Some(number != 0);
        }
        match self.macros.get(condition)? {
            Macro::Text(text) => text.parse::<i64>().ok().map(|it| it != 0),
            _ => None,
        }
    }

    /// Writes a line. `inside` holds the macros that are being expanded.
    fn expand(&mut self, line: &str, inside: &mut Vec<String>) -> Option<()> {
        self.room = self.room.checked_sub(line.len())?;
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            if !is_word_start(bytes[at]) {
                // The letters in a number do not form a word.
                at += 1;
                if bytes[start].is_ascii_digit() {
                    while bytes.get(at).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'.')
                    {
                        at += 1;
                    }
                }
                self.result.push_str(&line[start..at]);
                continue;
            }
            at = word_end(bytes, at);
            let word = &line[start..at];
            let is_inside = inside.len() >= 16 || inside.iter().any(|it| it == word);
            let text = match self.macros.get(word) {
                Some(Macro::Text(text)) if !is_inside => Some(text.clone()),
                Some(Macro::Function(names, text)) if !is_inside => {
                    arguments(&line[at..]).filter(|it| it.0.len() == names.len()).map(|it| {
                        at += it.1;
                        substituted(text, names, &it.0)
                    })
                }
                _ => None,
            };
            if let Some(text) = text {
                inside.push(word.into());
                self.result.push(' ');
                self.expand(&text, inside)?;
                self.result.push(' ');
                inside.pop();
                continue;
            }
            match self.macros.get(word) {
                None | Some(Macro::Text(_)) => self.result.push_str(word),
                Some(_) => {
                    self.result.push_str(UNSURE);
                    self.result.push_str(word);
                }
            }
        }
        Some(())
    }
}

//! Turns compilers' logs into messages about a program. They name its own files, lines and columns, and show the line
//! and a caret. Each appears once.

mod log;
mod source;

use crate::dialects::words;
use crate::headers;
use log::{Message, Place, messages};
use source::{Lines, column_in};
use std::fmt::Write as _;

/// The file name in the `#line` directives of text that a library writes around parts of a program. No message names
/// this file.
pub const GENERATED: &str = "generated source";

/// The prefix that replaces `__` in functions of CUDA C that pygpu's headers define themselves.
const RENAMED: &str = "pygpu_";
/// The most messages, and the most notes of one.
const MOST: (usize, usize) = (20, 3);
/// The most characters that are shown of a line.
const WIDTH: usize = 120;
/// Messages that only say that there are other messages.
const EMPTY: [&str; 2] = ["too many errors emitted", "Ptx assembly aborted due to errors"];

/// Returns the errors in a compiler's log, as messages about the lines of the program `text`. Its file is `file`; its
/// `#line` directives may name others. Returns the log without white space around it if it has no errors.
///
/// Takes the logs of NVRTC, nvcc, hipRTC, GCC and clang. The text may have been compiled after other texts; an error
/// in one of these is reported at the program's line that led to it.
///
/// ```
/// let text = "__global__ void k(int *a)\n{\n    a[0] = b;\n}\n";
/// let log = "k.cu(3): error: identifier \"b\" is undefined\n      a[0] = b;\n             ^\n\n1 error detected\n";
/// assert_eq!(
///     cuda_c::diagnostics(log, text, "k.cu"),
///     "k.cu:3:12: error: identifier \"b\" is undefined\n    3 |     a[0] = b;\n      |            ^"
/// );
/// ```
pub fn diagnostics(log: &str, text: &str, file: &str) -> String {
    let lines = Lines::of(text, file);
    let messages = messages(log);
    let errors = messages
        .iter()
        .filter(|it| it.is_error && !EMPTY.iter().any(|text| it.text.starts_with(text)));
    let all: Vec<Found<'_>> = errors.map(|it| located(it, &lines)).collect();
    // Errors in generated text are caused by errors in the program's own text.
    let best = all.iter().map(|it| it.rank).max();
    // Further messages at the same position are about the same mistake.
    let mut said: Vec<(String, &str)> = Vec::new();
    let mut shown = Vec::new();
    for found in all.iter().filter(|it| Some(it.rank) == best || it.rank == Rank::Program) {
        let key = (found.place(), if found.at.is_some() { "" } else { found.message.text });
        if !said.contains(&key)
            && !shown.last().is_some_and(|it: &&Found<'_>| found.is_detail_of(it))
        {
            said.push(key);
            shown.push(found);
        }
    }
    if shown.is_empty() {
        return log.trim().to_owned();
    }
    let mut result: Vec<String> = shown.iter().take(MOST.0).map(|it| it.rendered()).collect();
    if let more @ 1.. = shown.len().saturating_sub(MOST.0) {
        result.push(format!("and {more} more errors"));
    }
    result.join("\n")
}

/// Returns a log about `unit`, a text made of `text`, with quoted lines: below each message, a line of the program and
/// a caret take the place of the column, which is a position in `unit`. `file` is the name of `text`.
pub fn with_carets(log: &str, unit: &str, text: &str, file: &str) -> String {
    let (mut own, mut units) = (None, None);
    let mut result = String::with_capacity(log.len());
    for line in log.split_inclusive('\n') {
        let Some((place, column, rest)) = split_column(line) else {
            result += line;
            continue;
        };
        let _ = write!(result, "{place}{rest}");
        let is_main = rest.starts_with(": error: ")
            || rest.starts_with(": warning: ")
            || rest.starts_with(": fatal error: ");
        let Some((of, number)) = place.rsplit_once(':').filter(|_| is_main) else { continue };
        let Ok(number) = number.parse() else { continue };
        let own = own.get_or_insert_with(|| Lines::of(text, file));
        let units = units.get_or_insert_with(|| Lines::of(unit, file));
        let quoted: Vec<&str> = quotations(rest).collect();
        if let Some(index) = own.find(of, number)
            && let Some(column) = own.column_from(units, (of, number, column), &quoted)
            && let Some(line) = own.get(index)
        {
            let _ = writeln!(result, "  {}\n  {}^", line.text, indent(line.text, column - 1));
        }
    }
    result
}

/// Splits `file:3:7: error: text` into `file:3`, 7 and the rest.
fn split_column(line: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    loop {
        let end = from + line[from..].find(": ")?;
        let place = &line[..end];
        from = end + 2;
        let Some((rest, column)) = place.rsplit_once(':') else { continue };
        let is_line = rest.rsplit_once(':').is_some_and(|it| it.1.parse::<usize>().is_ok());
        if let (true, Ok(column)) = (is_line, column.parse()) {
            return Some((rest, column, &line[end..]));
        }
    }
}

/// Returns the texts in quotation marks.
fn quotations(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\'', '"', '\u{2018}', '\u{2019}']).skip(1).step_by(2)
}

/// Returns white space as wide as the part of a line before a position.
fn indent(line: &str, end: usize) -> String {
    let before = line.get(..end).unwrap_or(line);
    before.chars().map(|it| if it == '\t' { '\t' } else { ' ' }).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// In text of this library, without text of the program next to it.
    Generated,
    /// In another file, or nowhere.
    Other,
    /// In the program.
    Program,
}

/// A message, and the position in the program that it is about.
#[derive(Debug)]
struct Found<'a> {
    message: &'a Message<'a>,
    rank: Rank,
    file: &'a str,
    line: usize,
    /// The position in the line, in bytes.
    at: Option<usize>,
    source: Option<&'a str>,
    notes: Vec<String>,
}

/// Finds the line of a program that a message is about.
fn located<'a>(message: &'a Message<'a>, lines: &Lines<'a>) -> Found<'a> {
    let mut found = Found {
        message,
        rank: Rank::Other,
        file: "",
        line: 0,
        at: None,
        source: None,
        notes: Vec::new(),
    };
    let is_program = |place: &Place<'_>| lines.find(place.file, place.line).is_some();
    let notes = || message.notes.iter().filter(|it| is_program(&it.0) && it.0.file != GENERATED);
    for (place, text) in notes().take(MOST.1) {
        found.notes.push(format!("{}:{}: note: {text}", place.file, place.line));
    }
    let Some(place) = message.place else {
        // A linker or an assembler names a word of the program.
        let named = quotations(message.text).chain(message.text.rsplit(' ').take(1));
        if let Some((line, at)) = named.filter(|it| !it.is_empty()).find_map(|it| lines.word(it)) {
            (found.rank, found.file, found.line) = (Rank::Program, line.file, line.number);
            (found.source, found.at) = (Some(line.text), Some(at));
        }
        return found;
    };
    if place.file == GENERATED {
        found.rank = Rank::Generated;
        found.set_beside(lines, place.line);
    } else if is_program(&place) {
        found.set(lines, place, message);
    } else if let Some((led, _)) = notes().next() {
        found.set(lines, *led, message);
    } else if is_internal(place.file) {
        found.rank = Rank::Generated;
    } else {
        (found.file, found.line) = (place.file, place.line);
        found.at = place.column.map(|it| it - 1);
        if let Some(quoted) = message.quoted {
            let begin = quoted.line.len() - quoted.line.trim_start().len();
            found.source = Some(&quoted.line[begin..]);
            found.at = Some(quoted.caret.saturating_sub(begin));
        }
    }
    found
}

impl<'a> Found<'a> {
    /// Sets a place in the program.
    fn set(&mut self, lines: &Lines<'a>, place: Place<'a>, message: &Message<'a>) {
        let Some(line) = lines.find(place.file, place.line).and_then(|it| lines.get(it)) else {
            return;
        };
        (self.rank, self.file, self.line) = (Rank::Program, line.file, line.number);
        self.source = Some(line.text);
        let is_of_message = message.place == Some(place);
        self.at = match message.quoted.filter(|_| is_of_message) {
            Some(quoted) => column_in(line.text, quoted.line, quoted.caret),
            None => place.column.map(|it| it - 1).filter(|it| *it <= line.text.len()),
        };
        self.at = self.at.or_else(|| self.named());
    }

    /// Sets the part of the program that is next to generated text.
    fn set_beside(&mut self, lines: &Lines<'a>, number: usize) {
        let Some(index) = lines.find(GENERATED, number) else { return };
        let part = |index: Option<usize>| {
            index.and_then(|it| lines.get(it)).filter(|it| it.file != GENERATED)
        };
        let (before, behind) = (part(index.checked_sub(1)), part(index.checked_add(1)));
        if let Some(line) = before.or(behind) {
            (self.rank, self.file, self.line) = (Rank::Program, line.file, line.number);
            self.source = Some(line.text);
            self.at = before.map(|it| it.text.len());
        }
    }

    /// Returns true for GCC's error that says why a function does not fit, if `other` says that it does not.
    fn is_detail_of(&self, other: &Found<'_>) -> bool {
        other.message.text.starts_with("no matching function")
            && self.message.text.starts_with("invalid conversion")
            && (self.file, self.line) == (other.file, other.line)
    }

    /// Returns the position of the only thing in the line that the message quotes.
    fn named(&self) -> Option<usize> {
        let source = self.source?;
        let mut named = quotations(self.message.text).filter(|it| !it.is_empty());
        named.find_map(|name| {
            let mut places = source.match_indices(name);
            let first = places.next()?.0;
            places.next().is_none().then_some(first)
        })
    }

    fn place(&self) -> String {
        match (self.line, self.source.zip(self.at)) {
            (0, _) => String::new(),
            (line, None) => format!("{}:{line}: ", self.file),
            (line, Some((source, at))) => {
                let before = source.get(..at).unwrap_or(source);
                format!("{}:{line}:{}: ", self.file, before.chars().count() + 1)
            }
        }
    }

    /// Returns a message with functions named as in the program's line: macros have renamed some of them.
    fn own_names(&self, text: &str) -> String {
        let source = self.source.unwrap_or_default();
        let mut text = text.to_owned();
        for own in words(source).map(|it| &source[it]).filter(|it| it.starts_with("__")) {
            text = text.replace(&format!("{RENAMED}{}", &own[2..]), own);
        }
        text
    }

    /// Returns the message, its line, a caret, and notes.
    fn rendered(&self) -> String {
        let text = crate::known_names::original(self.message.text);
        // GCC and clang name the option that would allow the code.
        let option = text.rfind(" [-").filter(|_| text.ends_with(']'));
        let text = self.own_names(&text[..option.unwrap_or(text.len())]);
        let mut result = format!("{}error: {text}", self.place());
        if let Some(source) = self.source.filter(|it| !it.trim().is_empty()) {
            let (source, at) = cut(source.trim_end(), self.at);
            let _ = write!(result, "\n{:5} | {source}", self.line);
            if let Some(at) = at {
                let _ = write!(result, "\n      | {}^", indent(&source, at));
            }
        }
        for note in &self.notes {
            let _ = write!(result, "\n{note}");
        }
        result
    }
}

/// Shortens a long line around a position.
fn cut(line: &str, at: Option<usize>) -> (String, Option<usize>) {
    if line.len() <= WIDTH {
        return (line.to_owned(), at);
    }
    let boundary = |mut it: usize| {
        it = it.min(line.len());
        while !line.is_char_boundary(it) {
            it -= 1;
        }
        it
    };
    let begin = boundary(at.unwrap_or(0).saturating_sub(WIDTH / 2));
    let end = boundary(begin + WIDTH);
    let (before, behind) =
        (if begin > 0 { "..." } else { "" }, if end < line.len() { "..." } else { "" });
    (format!("{before}{}{behind}", &line[begin..end]), at.map(|it| it - begin + before.len()))
}

/// Returns true for a file of this library.
fn is_internal(file: &str) -> bool {
    crate::messages::is_of_own_text(file) || headers::all_for_gpu().any(|it| it.0 == file)
}

#[cfg(test)]
mod tests {
    use super::{diagnostics, with_carets};

    const TEXT: &str = "#line 2 \"generated source\"\nint before;\n#line 1 \"sum of k\"\na + nope(b)\n#line 5 \"generated source\"\n;\nint behind;\n";

    /// Returns the first lines of messages, without the lines that they show.
    fn headings(log: &str, text: &str) -> Vec<String> {
        let all = diagnostics(log, text, "k.cu");
        all.lines().filter(|it| !it.contains(" | ")).map(str::to_owned).collect()
    }

    #[test]
    fn messages_of_each_compiler_are_at_the_programs_lines() {
        let nvrtc = "sum of k(1): error: identifier \"nope\" is undefined\n  a + nope(b)\n      ^\n\n\
            sum of k(1): error: identifier \"nope\" is undefined\n  a + nope(b)\n      ^\n\n\
            generated source(6): warning #177-D: variable \"behind\" was declared but never referenced\n\n\
            2 errors detected in the compilation of \"kernel.cu\".\n";
        let clang = "In file included from /tmp/comgr-1/input/CompileSource:9:\n\
            sum of k:1:5: error: use of undeclared identifier 'nope'\n    1 | a + nope(b)\n      |     ^\n\
            sum of k:1:5: error: use of undeclared identifier 'nope'\n    1 | a + nope(b)\n      |     ^\n\
            1 error generated when compiling for gfx1100.\n";
        let gcc = "sum of k: In function 'void k()':\nsum of k:1: error: 'nope' was not declared\n  \
            a + nope(b)\n      ^\nsum of k:1: error: 'nope' was not declared\n  a + nope(b)\n      ^\n";
        for log in [nvrtc, clang, gcc] {
            let said = diagnostics(log, TEXT, "k.cu");
            let (heading, shown) = said.split_once('\n').expect("a line below the message");
            assert!(heading.starts_with("sum of k:1:5: error: "), "{said}");
            assert_eq!(shown, "    1 | a + nope(b)\n      |     ^");
        }
    }

    #[test]
    fn messages_about_generated_lines_are_at_the_part_beside_them() {
        let behind =
            "generated source:5: error: expected ')' before ';'\ngenerated source:9: error: x\n";
        assert_eq!(headings(behind, TEXT), ["sum of k:1:12: error: expected ')' before ';'"]);
        let before = "generated source(2): error: no conversion\n";
        assert_eq!(headings(before, TEXT), ["sum of k:1: error: no conversion"]);
        assert_eq!(headings("generated source:6: error: no\n", TEXT), ["error: no"]);
    }

    #[test]
    fn messages_about_other_files_are_at_the_line_that_led_there() {
        let text = "\nf(a);\n__shfl_sync(a);\n";
        for log in [
            "k.cu: In instantiation of 'f':\nk.cu:2:3:   required from here\ncuda_c/x.h:9: error: no\n",
            "pygpu-cuda-warps.hpp:9:1: error: no\nk.cu:2:1: note: in instantiation of 'f' requested here\n",
            "pygpu-cuda-warps.hpp(9): error: no\n          detected during instantiation of \"f\" at line 2 of k.cu\n",
        ] {
            assert!(headings(log, text)[0].starts_with("k.cu:2"), "{log}");
        }
        let own = "mine.h:3:7: error: no\n  int y;\n      ^\n";
        assert_eq!(
            diagnostics(own, text, "k.cu"),
            "mine.h:3:5: error: no\n    3 | int y;\n      |     ^"
        );
        let linked = "ptxas fatal   : Unresolved extern function 'f'\nptxas fatal   : Ptx assembly aborted due to errors\n";
        assert_eq!(headings(linked, text), ["k.cu:2:1: error: Unresolved extern function 'f'"]);
        let renamed = "k.cu:3:1: error: no function 'pygpu_shfl_sync' [-Wx]\n";
        assert_eq!(headings(renamed, text), ["k.cu:3:1: error: no function '__shfl_sync'"]);
        assert_eq!(diagnostics(" nothing known\n", text, "k.cu"), "nothing known");
        assert_eq!(
            headings("error: unknown argument '-q'\n", text),
            ["error: unknown argument '-q'"]
        );
    }

    #[test]
    fn many_and_long_messages_are_cut() {
        let log: String = (1..=30).map(|it| format!("k.cu:{it}:1: error: no\n")).collect();
        let said = headings(&log, &"x\n".repeat(30));
        assert_eq!((said.len(), said[20].as_str()), (21, "and 10 more errors"));
        let text = format!("{}y = é;\n", "x".repeat(500));
        let said = diagnostics("k.cu:1:501: error: no\n", &text, "k.cu");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[1].len() < 150 && lines[1].ends_with("xy = é;"), "{said}");
        assert_eq!(lines[1].find('y'), lines[2].find('^'));
    }

    #[test]
    fn a_column_in_a_unit_becomes_a_line_with_a_caret() {
        let unit = "# 1 \"k.cu\"\nvoid k() { ((3) + y); }\n";
        let text = "#define SUM(x) ((3) + x)\n#line 1 \"k.cu\"\nvoid k() { SUM(y); }\n";
        let log = "k.cu: In function 'k':\nk.cu:1:19: error: 'y' was not declared\nk.cu:1:6: note: here\n\
            x.h:3:4: error: other\n";
        let caret = format!("{}^", " ".repeat(17));
        let expected = format!(
            "k.cu: In function 'k':\nk.cu:1: error: 'y' was not declared\n  void k() {{ SUM(y); }}\n{caret}\n\
             k.cu:1: note: here\nx.h:3: error: other\n"
        );
        assert_eq!(with_carets(log, unit, text, "k.cu"), expected);
        assert_eq!(with_carets("no message\n", unit, text, "k.cu"), "no message\n");
    }
}

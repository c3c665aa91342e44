//! Reads a text that is not preprocessed: its code, words, directives and `#include` lines.

use crate::tokens::raw_end;
use std::collections::HashSet;
use std::ops::Range;

/// Returns a text with spaces in place of comments and literals; everything else keeps its position.
///
/// ```
/// use cuda_c::dialects::code_of;
///
/// assert_eq!(code_of("f(\"a\"); // b\n", false), "f(   );     \n");
/// assert_eq!(code_of("f(\"a\"); // b\n", true), "f(\"a\");     \n");
/// ```
pub fn code_of(text: &str, keep_literals: bool) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    let last_close = text.rfind("*/").unwrap_or(0);
    while at < text.len() {
        // The rest of an unterminated comment is not searched again and again.
        let is_open = last_close < at + 2 && text.as_bytes()[at..].starts_with(b"/*");
        let Some(end) = (if is_open { None } else { skipped(text.as_bytes(), at) }) else {
            at += 1;
            continue;
        };
        if text.as_bytes()[at] == b'/' || !keep_literals {
            code[at..end].iter_mut().filter(|it| **it != b'\n').for_each(|it| *it = b' ');
        }
        at = end;
    }
    // Whole literals and comments were replaced, so that no character was cut.
    String::from_utf8(code).expect("ASCII in place of whole characters")
}

/// The end of the comment or literal that begins at a position, if one does. An unterminated one is code.
fn skipped(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start..];
    match (rest[0], rest.get(1)) {
        (b'/', Some(b'/')) => {
            let mut at = 2;
            while at < rest.len() && (rest[at] != b'\n' || rest[at - 1] == b'\\') {
                at += 1;
            }
            Some(start + at)
        }
        (b'/', Some(b'*')) => {
            let end = rest[2..].windows(2).position(|it| it == b"*/")?;
            Some(start + 2 + end + 2)
        }
        // In a number, a quotation mark separates digits.
        (b'\'', _) if is_in_number(bytes, start) => None,
        (b'"', _) if is_raw(bytes, start) => Some(raw_end(bytes, start)),
        (quote @ (b'"' | b'\''), _) => {
            let mut at = 1;
            loop {
                match *rest.get(at)? {
                    b'\n' => return None,
                    b'\\' => at += 2,
                    byte if byte == quote => return Some(start + at + 1),
                    _ => at += 1,
                }
            }
        }
        _ => None,
    }
}

/// The word that ends before a position.
fn word_before(bytes: &[u8], end: usize, is_part: impl Fn(u8) -> bool) -> &[u8] {
    let length = bytes[..end].iter().rev().take_while(|it| is_part(**it)).count();
    &bytes[end - length..end]
}

fn is_in_number(bytes: &[u8], quote: usize) -> bool {
    let word = word_before(bytes, quote, |it| is_part(it) || it == b'\'');
    word.first().is_some_and(u8::is_ascii_digit)
}

/// True for the quotation mark of a raw string, such as `R"(...)"`.
fn is_raw(bytes: &[u8], quote: usize) -> bool {
    matches!(word_before(bytes, quote, is_part), b"R" | b"LR" | b"uR" | b"UR" | b"u8R")
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the words and numbers of a text, in order.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|&it| is_part(it))?;
        at =
            bytes[start..].iter().position(|&it| !is_part(it)).map_or(bytes.len(), |it| start + it);
        Some(start..at)
    })
}

/// Returns the set of all words of some texts.
pub(super) fn word_set<'a>(texts: impl IntoIterator<Item = &'a str>) -> HashSet<&'a str> {
    texts.into_iter().flat_map(|text| words(text).map(move |it| &text[it])).collect()
}

/// Returns the text from a position on, without leading white space.
pub(super) fn after(text: &str, at: usize) -> &str {
    text[at..].trim_start()
}

/// Returns the position after a parenthesis's closing partner; the end of the text if there is none.
pub(super) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// A line that begins with `#`, with the lines that continue it.
pub(crate) struct Directive<'a> {
    /// From the beginning of the line to its end, without the line feed.
    pub(crate) range: Range<usize>,
    /// The word after `#`.
    pub(crate) name: &'a str,
    /// Everything after the word.
    pub(crate) rest: &'a str,
}

/// Returns the directives of a text.
pub(crate) fn directives(text: &str) -> impl Iterator<Item = Directive<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let end = text[start..].find('\n').map_or(text.len(), |it| start + it);
            at = end + 1;
            let blank = [' ', '\t'];
            if !text[start..end].trim_start_matches(blank).starts_with('#') {
                continue;
            }
            let mut end = end;
            while text[start..end].ends_with('\\') && end < text.len() {
                end = text[end + 1..].find('\n').map_or(text.len(), |it| end + 1 + it);
            }
            at = end + 1;
            let named = text[start..end].trim_start_matches(blank)[1..].trim_start_matches(blank);
            let length = words(named).next().filter(|it| it.start == 0).map_or(0, |it| it.end);
            return Some(Directive {
                range: start..end,
                name: &named[..length],
                rest: &named[length..],
            });
        }
        None
    })
}

/// Returns a text with spaces in place of its directives.
pub(super) fn without_directives(text: &str) -> String {
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for Directive { range, .. } in directives(text) {
        result.push_str(&text[done..range.start]);
        let blank = |it: u8| if it == b'\n' { '\n' } else { ' ' };
        result.extend(text[range.clone()].bytes().map(blank));
        done = range.end;
    }
    result + &text[done..]
}

/// Returns name and replacement of each macro that a text defines; a replacement begins with the parameters.
pub(super) fn definitions(code: &str) -> impl Iterator<Item = (Directive<'_>, &str, &str)> {
    directives(code).filter(|it| it.name == "define").filter_map(|it| {
        let rest = it.rest.trim_start_matches([' ', '\t']);
        let word =
            words(rest).next().filter(|word| word.start == 0 && rest.len() < it.rest.len())?;
        let (name, value) = rest.split_at(word.end);
        Some((it, name, value))
    })
}

/// An `#include` line, up to the closing `>` or quotation mark.
#[derive(Clone, Debug)]
pub(super) struct Include<'a> {
    pub(super) range: Range<usize>,
    pub(super) name: &'a str,
}

/// Returns the `#include` lines of a text that name a file.
pub(super) fn includes(text: &str) -> impl Iterator<Item = Include<'_>> {
    let mut lines = text.split_inclusive('\n');
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let start = at;
            at += line.len();
            if let Some((name, end)) = included(line) {
                return Some(Include { range: start..start + end, name });
            }
        }
    })
}

/// The name in an `#include` line, and where it ends.
fn included(line: &str) -> Option<(&str, usize)> {
    let blank = [' ', '\t'];
    let rest = line.trim_start_matches(blank).strip_prefix('#')?;
    let rest = rest.trim_start_matches(blank).strip_prefix("include")?;
    let rest = rest.trim_start_matches(blank).strip_prefix(['<', '"'])?;
    let end = rest.find(['>', '"', '\n']).filter(|&it| it > 0 && !rest[it..].starts_with('\n'))?;
    Some((&rest[..end], line.len() - rest.len() + end + 1))
}

/// Returns true if a text may include a file, by any spelling.
pub(super) fn has_includes(text: &str) -> bool {
    let joined = text.replace("\\\n", "");
    let mut rest = joined.as_str();
    while let Some(at) = rest.find('#') {
        rest = &rest[at + 1..];
        let word = words(rest.trim_start()).next().filter(|it| it.start == 0);
        if word.is_some_and(|it| &rest.trim_start()[it] == "include") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{code_of, directives, has_includes, includes, words};

    #[test]
    fn comments_and_literals_are_no_code() {
        let rows = [
            ("a /* b\n */ c", "a     \n    c"),
            ("a // b \\\n c\nd", "a       \n  \nd"),
            ("\"a\\\"b\" c 'd'", "       c    "),
            ("1'000 + 0xA'B", "1'000 + 0xA'B"),
            ("\"open\nnext", "\"open\nnext"),
            ("a /* open", "a /* open"),
            ("\"µ\" µ", "     µ"),
            ("u8'\"' + u8'\"'", "u8    + u8   "),
            ("R\"(\n#define A\n)\" b", "R  \n         \n   b"),
            ("LR\"x(\")x\"; c", "LR       ; c"),
        ];
        for (text, code) in rows {
            assert_eq!(code_of(text, false), code, "{text:?}");
        }
    }

    #[test]
    fn directives_have_their_continued_lines() {
        let text = " #  define A(x) \\\n x\nint b;\n#endif\n#";
        let found: Vec<_> = directives(text).map(|it| (it.name, it.rest)).collect();
        assert_eq!(found, [("define", " A(x) \\\n x"), ("endif", ""), ("", "")]);
    }

    #[test]
    fn include_lines_name_files() {
        let text = "#include <a/b.h> // c\n # include\t\"d.h\"\n#include NAME\n#include <open\n#include <>\n";
        let found: Vec<_> = includes(text).map(|it| (it.name, &text[it.range])).collect();
        assert_eq!(found, [("a/b.h", "#include <a/b.h>"), ("d.h", " # include\t\"d.h\"")]);
        assert!(has_includes("# inc\\\nlude NAME") && !has_includes("#includes"));
        assert_eq!(words("a1 + 2u").count(), 2);
    }
}

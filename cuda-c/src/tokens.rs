//! Tokens of preprocessed C++: no comments, no macros and no continued lines are left in it.

use crate::headers;
use std::collections::HashSet;
use std::ops::Range;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// A number, string or character.
    Literal,
    /// One character of punctuation; `::` is one token.
    Mark,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A text, its tokens, and where they come from.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    pub(crate) text: &'a str,
    pub(crate) all: Vec<Token>,
    /// For a token that opens or closes a group, the token at the other end.
    partners: Vec<u32>,
    lines: Vec<LineMarker>,
}

/// A line `# number "file" flags` of the preprocessor: the next line has this number.
#[derive(Debug)]
struct LineMarker {
    next_line: usize,
    number: usize,
    file: Range<usize>,
    is_language: bool,
    is_system: bool,
    has_flags: bool,
    /// The number of files that include this one.
    depth: usize,
}

const NONE: u32 = u32::MAX;

/// Bytes of a text to replace, from the first number up to the second one.
pub(crate) type Edit = (usize, usize, String);

/// Applies edits to a text. Edits at the same place keep their order.
pub(crate) fn edited<T: AsRef<str>>(text: &str, mut edits: Vec<(usize, usize, T)>) -> String {
    edits.sort_by_key(|it| (it.0, it.1));
    let (mut made, mut done) = (String::with_capacity(text.len() + 4096), 0);
    for (start, end, new) in edits {
        made.push_str(&text[done..start]);
        made.push_str(new.as_ref());
        done = end;
    }
    made + &text[done..]
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(text: &'a str) -> Tokens<'a> {
        let mut tokens = Tokens { text, all: Vec::new(), partners: Vec::new(), lines: Vec::new() };
        tokens.read();
        tokens.match_groups();
        tokens.take_device_files();
        tokens
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The text of a token; empty after the last one.
    pub(crate) fn at(&self, index: usize) -> &'a str {
        self.all.get(index).map_or("", |token| &self.text[token.start..token.end])
    }

    pub(crate) fn is_word(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|token| token.kind == Kind::Word)
    }

    /// The other end of the group that a token opens or closes.
    pub(crate) fn partner(&self, index: usize) -> Option<usize> {
        self.partners.get(index).copied().filter(|&it| it != NONE).map(|it| it as usize)
    }

    /// The braces of the innermost block around a token.
    pub(crate) fn block_about(&self, inside: usize) -> Option<(usize, usize)> {
        let mut at = inside;
        while at > 0 {
            at -= 1;
            match self.at(at) {
                "{" => return Some((at, self.partner(at)?)),
                "}" | ")" | "]" => at = self.partner(at)?,
                "(" | "[" => return None,
                _ => {}
            }
        }
        None
    }

    /// The tokens before a brace that declare its block, the last one first.
    pub(crate) fn heading(&self, brace: usize) -> impl Iterator<Item = &'a str> {
        let before = (0..brace).rev().map(|at| self.at(at));
        before.take_while(|it| !matches!(*it, ";" | "{" | "}"))
    }

    /// True for the brace after `extern "C"` or `extern "C++"`.
    pub(crate) fn is_of_linkage(&self, brace: usize) -> bool {
        brace > 0 && self.all[brace - 1].kind == Kind::Literal
    }

    /// True for the brace of a linkage block or of a namespace.
    pub(crate) fn is_of_scope(&self, brace: usize) -> bool {
        self.is_of_linkage(brace) || self.heading(brace).any(|it| it == "namespace")
    }

    /// True for the brace of a class.
    pub(crate) fn is_of_class(&self, brace: usize) -> bool {
        let (mut at, mut is_class) = (brace - self.heading(brace).count(), false);
        while at < brace {
            match self.at(at) {
                "struct" | "class" | "union" => is_class = true,
                // The parameters of a template use the same words for types.
                "<" => at = self.behind_angles(at, brace).map_or(at, |it| it - 1),
                "__attribute__" | "alignas" => at = self.partner(at + 1).unwrap_or(at),
                // The parameters of a function.
                "(" => return false,
                _ => {}
            }
            at += 1;
        }
        is_class
    }

    /// True if nothing is between a token and the next one.
    pub(crate) fn is_adjacent(&self, index: usize) -> bool {
        self.all.get(index + 1).is_some_and(|next| self.all[index].end == next.start)
    }

    /// The token after the `>` of a template's arguments or parameters, which begin at `open`; `None` if the tokens
    /// before `end` show that `<` is an operator.
    pub(crate) fn behind_angles(&self, open: usize, end: usize) -> Option<usize> {
        if self.at(open) != "<" {
            return None;
        }
        let (mut at, mut depth) = (open, 0_usize);
        while at < end {
            let next = if self.is_adjacent(at) { self.at(at + 1) } else { "" };
            match (self.at(at), next) {
                ("(" | "[" | "{", _) => at = self.partner(at)?,
                (";" | ")" | "]" | "}", _) => return None,
                ("<", "<") if at == open => return None,
                ("<", "=") if at == open => return None,
                ("<", "<") | ("<" | ">", "=") | ("-", ">") => at += 1,
                ("<", _) => depth += 1,
                (">", _) => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// True for a token of the program, false for one of the system's or the language's headers.
    pub(crate) fn is_of_program(&self, index: usize) -> bool {
        self.marker(self.all[index].start).is_none_or(|marker| !marker.is_system)
    }

    /// True for a token of the language's headers.
    pub(crate) fn is_of_language(&self, index: usize) -> bool {
        self.marker(self.all[index].start).is_some_and(|marker| marker.is_language)
    }

    /// File and line of a token, as the program knows them.
    pub(crate) fn place(&self, index: usize) -> String {
        self.line(index).map_or_else(String::new, |(file, line)| format!("{file}:{line}"))
    }

    /// The file, the line and the column of a token in this text, for messages.
    pub(crate) fn position(&self, index: usize) -> String {
        let start = self.all[index].start;
        let column = start - self.text[..start].rfind('\n').map_or(0, |it| it + 1) + 1;
        self.line(index).map_or_else(String::new, |(file, line)| format!("{file}:{line}:{column}"))
    }

    /// The file and the line of a token; `None` for a text without line markers.
    pub(crate) fn line(&self, index: usize) -> Option<(&'a str, usize)> {
        let start = self.all[index].start;
        let marker = self.marker(start)?;
        let between = self.text[marker.next_line..start].matches('\n').count();
        Some((&self.text[marker.file.clone()], marker.number + between))
    }

    /// True for a token that a directive `#line 1` follows: a text begins there.
    pub(crate) fn is_begun_behind(&self, index: usize) -> bool {
        let end = self.all[index].end;
        let next = self.all.get(index + 1).map_or(self.text.len(), |it| it.start);
        let behind = self.lines.partition_point(|marker| marker.next_line <= end);
        let markers = self.lines[behind..].iter().take_while(|marker| marker.next_line <= next);
        // A number after the name says that a file begins or ends.
        markers.into_iter().any(|it| it.number == 1 && !it.has_flags)
    }

    /// True for a token of a file that another one includes.
    pub(crate) fn is_included(&self, index: usize) -> bool {
        self.marker(self.all[index].start).is_some_and(|it| it.depth > 0)
    }

    fn marker(&self, position: usize) -> Option<&LineMarker> {
        let after = self.lines.partition_point(|marker| marker.next_line <= position);
        self.lines[..after].last()
    }

    fn read(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut at, mut is_line_start) = (0, true);
        while at < bytes.len() {
            let start = at;
            let kind = match bytes[at] {
                b'\n' => {
                    is_line_start = true;
                    at += 1;
                    continue;
                }
                byte if byte.is_ascii_whitespace() => {
                    at += 1;
                    continue;
                }
                b'#' if is_line_start => {
                    at = bytes[at..]
                        .iter()
                        .position(|&it| it == b'\n')
                        .map_or(bytes.len(), |it| at + it);
                    self.read_directive(start, at);
                    continue;
                }
                byte if is_word_start(byte) => {
                    at = word_end(bytes, at);
                    match bytes.get(at) {
                        Some(b'"') if bytes[at - 1] == b'R' => {
                            at = raw_end(bytes, at);
                            Kind::Literal
                        }
                        Some(b'"' | b'\'')
                            if matches!(&self.text[start..at], "u8" | "u" | "U" | "L") =>
                        {
                            at = quoted_end(bytes, at);
                            Kind::Literal
                        }
                        _ => Kind::Word,
                    }
                }
                b'"' | b'\'' => {
                    at = quoted_end(bytes, at);
                    Kind::Literal
                }
                byte if byte.is_ascii_digit() => {
                    at = number_end(bytes, at);
                    Kind::Literal
                }
                b':' if bytes.get(at + 1) == Some(&b':') => {
                    at += 2;
                    Kind::Mark
                }
                _ => {
                    at += 1;
                    Kind::Mark
                }
            };
            is_line_start = false;
            self.all.push(Token { kind, start, end: at });
        }
    }

    /// `# 12 "file" 1 3`, or a pragma.
    fn read_directive(&mut self, start: usize, end: usize) {
        let line = &self.text[start..end];
        let rest = line[1..].trim_start();
        let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse() else { return };
        let Some(open) = line.find('"') else { return };
        let Some(close) = line.rfind('"').filter(|&it| it > open) else { return };
        let is_language = line[open + 1..close].starts_with(headers::PREFIX);
        let flags = line[close + 1..].split_whitespace();
        let has = |wanted: &str| flags.clone().any(|flag| flag == wanted);
        let is_system = is_language || has("3");
        let around = self.lines.last().map_or(0, |it| it.depth);
        let depth = (around + usize::from(has("1"))).saturating_sub(usize::from(has("2")));
        let has_flags = flags.count() > 0;
        let file = start + open + 1..start + close;
        let next_line = end + 1;
        self.lines.push(LineMarker {
            next_line,
            number,
            file,
            is_language,
            is_system,
            has_flags,
            depth,
        });
    }

    /// Makes files with functions of the device a part of the program, although they are marked as the system's.
    fn take_device_files(&mut self) {
        let is_qualifier = |it: &&Token| {
            it.kind == Kind::Word && self.text[it.start..it.end].starts_with("__gpuarray_")
        };
        let file = |it: &Token| {
            // The token has a marker of its own, because a macro wrote it.
            let marker = self.marker(it.start).filter(|it| !it.is_language)?;
            Some(&self.text[marker.file.clone()])
        };
        let files: HashSet<&str> = self.all.iter().filter(is_qualifier).filter_map(file).collect();
        if files.is_empty() {
            return;
        }
        for marker in &mut self.lines {
            marker.is_system &=
                marker.is_language || !files.contains(&self.text[marker.file.clone()]);
        }
    }

    fn match_groups(&mut self) {
        self.partners = vec![NONE; self.all.len()];
        let mut open: Vec<(u8, usize)> = Vec::new();
        for index in 0..self.all.len() {
            let token = self.all[index];
            if token.kind != Kind::Mark {
                continue;
            }
            let byte = self.text.as_bytes()[token.start];
            let wanted = match byte {
                b'(' | b'[' | b'{' => {
                    open.push((byte, index));
                    continue;
                }
                b')' => b'(',
                b']' => b'[',
                b'}' => b'{',
                _ => continue,
            };
            // The compiler refuses a wrong text; here it only must not confuse the rest. A brace closes the last
            // open brace, whatever else is open inside.
            let last = match byte {
                b'}' => open.iter().rposition(|it| it.0 == wanted),
                _ => open.len().checked_sub(1).filter(|&it| open[it].0 == wanted),
            };
            if let Some(last) = last {
                let start = open[last].1;
                open.truncate(last);
                self.partners[start] = index as u32;
                self.partners[index] = start as u32;
            }
        }
    }
}

pub(crate) fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

pub(crate) fn word_end(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| is_word_start(*byte) || byte.is_ascii_digit();
    start + bytes[start..].iter().take_while(|byte| is_part(byte)).count()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        let is_sign = matches!(byte, b'+' | b'-')
            && at > start
            && matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P');
        let is_separator =
            byte == b'\'' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !(is_word_start(byte)
            || byte.is_ascii_digit()
            || byte == b'.'
            || is_separator
            || is_sign)
        {
            break;
        }
        at += 1;
    }
    at
}

pub(crate) fn quoted_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

pub(crate) fn raw_end(bytes: &[u8], quote: usize) -> usize {
    let Some(open) = bytes[quote..].iter().position(|&it| it == b'(') else { return bytes.len() };
    let delimiter = &bytes[quote + 1..quote + open];
    let close = [b")", delimiter, b"\""].concat();
    let body = quote + open + 1;
    bytes[body..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(bytes.len(), |it| body + it + close.len())
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    fn texts(text: &str) -> Vec<&str> {
        let tokens = Tokens::of(text);
        (0..tokens.len()).map(|index| tokens.at(index)).collect()
    }

    #[test]
    fn literals_hide_what_is_in_them() {
        assert_eq!(
            texts(r#"a = "x{\"}" + '{' + R"q({)")q" + u8"{" ;"#),
            ["a", "=", r#""x{\"}""#, "+", "'{'", "+", r#"R"q({)")q""#, "+", r#"u8"{""#, ";"]
        );
        assert_eq!(texts("1'000.5e-3f - 0x1p+4"), ["1'000.5e-3f", "-", "0x1p+4"]);
        assert_eq!(texts("a::b<c>::d"), ["a", "::", "b", "<", "c", ">", "::", "d"]);
        assert_eq!(texts("\"open\nnext"), ["\"open\n", "next"]);
    }

    #[test]
    fn places_are_those_of_the_line_markers() {
        let text = "# 1 \"kernel.cu\"\na\n# 7 \"/usr/include/x.h\" 1 3 4\nb\n\nc\n# 3 \"kernel.cu\" 2\n\nd\n";
        let tokens = Tokens::of(text);
        let places: Vec<_> = (0..4).map(|it| tokens.place(it)).collect();
        assert_eq!(
            places,
            ["kernel.cu:1", "/usr/include/x.h:7", "/usr/include/x.h:9", "kernel.cu:4"]
        );
        let of_program: Vec<_> = (0..4).map(|it| tokens.is_of_program(it)).collect();
        assert_eq!(of_program, [true, false, false, true]);
    }

    #[test]
    fn a_wrong_text_ends() {
        for text in ["(", ")", "{ ( }", "R\"(", "'", "# 1", "#", "\"\\"] {
            Tokens::of(text);
        }
    }

    #[test]
    fn a_brace_closes_the_last_one_that_is_open() {
        let tokens = Tokens::of("{ ( { [ } ] } )");
        let partners: Vec<_> = (0..tokens.len()).map(|it| tokens.partner(it)).collect();
        assert_eq!(partners, [Some(6), None, Some(4), None, Some(2), None, Some(0), None]);
    }
}

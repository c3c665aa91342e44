//! The lines of a program, by the numbers that its `#line` directives give them, and positions in them.

use crate::dialects::code_of;
use crate::tokens::Tokens;
use std::ops::Range;

/// The longest pair of lines whose tokens are compared.
const MOST_PAIRS: usize = 1 << 20;

/// A line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) file: &'a str,
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// The lines of a text.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    all: Vec<Line<'a>>,
}

impl<'a> Lines<'a> {
    /// Reads the lines of a text, or of the result of a preprocessor. `file` names the lines before the first
    /// directive.
    pub(super) fn of(text: &'a str, file: &'a str) -> Lines<'a> {
        let (mut file, mut number) = (file, 1);
        let mut all = Vec::new();
        for text in text.lines() {
            match directive(text) {
                Some((next, name)) => (number, file) = (next, name.unwrap_or(file)),
                None => {
                    all.push(Line { file, number, text });
                    number += 1;
                }
            }
        }
        Lines { all }
    }

    /// Returns the last line with a file and number: a text before a program may have the same file name.
    pub(super) fn find(&self, file: &str, number: usize) -> Option<usize> {
        self.all.iter().rposition(|it| it.number == number && it.file == file)
    }

    pub(super) fn get(&self, index: usize) -> Option<Line<'a>> {
        self.all.get(index).copied()
    }

    /// Returns the first line that has a word, and the word's position.
    pub(super) fn word(&self, word: &str) -> Option<(Line<'a>, usize)> {
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let is_whole = |line: &Line<'_>, at: usize| {
            !line.text[..at].ends_with(is_part)
                && !line.text[at + word.len()..].starts_with(is_part)
        };
        self.all.iter().find_map(|line| {
            let mut places = line.text.match_indices(word).map(|it| it.0);
            places.find(|at| is_whole(line, *at)).map(|at| (*line, at))
        })
    }

    /// Converts a position in `other`, a text made of this one, to the column in a line of this text. `quoted` are the
    /// words that the message at the position quotes.
    pub(super) fn column_from(
        &self,
        other: &Lines<'_>,
        (file, number, column): (&str, usize, usize),
        quoted: &[&str],
    ) -> Option<usize> {
        let own = self.get(self.find(file, number)?)?.text;
        let at = column.checked_sub(1)?;
        // A preprocessor may divide a line.
        let is_it = |it: &&Line<'_>| it.number == number && it.file == file && it.text.len() >= at;
        let pieces = || other.all.iter().rev().filter(is_it).map(|it| it.text);
        let is_quoted = |piece: &&str| {
            let rest = piece.get(at..).unwrap_or_default();
            quoted.iter().any(|it| !it.is_empty() && rest.starts_with(it))
        };
        let column = |piece: &str| column_in(own, piece, at).map(|it| it + 1);
        pieces().filter(is_quoted).find_map(column).or_else(|| pieces().find_map(column))
    }
}

/// Reads `#line 3 "file"`, or `# 3 "file" 1` of a preprocessor.
fn directive(line: &str) -> Option<(usize, Option<&str>)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let name = rest[digits..].split_once('"').and_then(|it| it.1.rsplit_once('"'));
    Some((number, name.map(|it| it.0)))
}

/// Converts a position in `other` to one in `own`. The line `other` was made of `own` by expanding macros, by
/// insertions, or by other white space. Returns `None` between characters that `own` does not have.
pub(super) fn column_in(own: &str, other: &str, at: usize) -> Option<usize> {
    let begin = |line: &str| line.len() - line.trim_start().len();
    if own.trim() == other.trim() {
        return Some((at.saturating_sub(begin(other)) + begin(own)).min(own.len()));
    }
    let (own_tokens, other_tokens) = (tokens(own), tokens(other));
    let pair = |one: &Range<usize>, two: &Range<usize>| own[one.clone()] == other[two.clone()];
    let index = other_tokens.iter().rposition(|it| it.start <= at)?;
    let token = &other_tokens[index];
    let partners = common(&own_tokens, &other_tokens, pair)?;
    if let Some(partner) = partners[index] {
        let range = &own_tokens[partner];
        return Some(range.start + (at - token.start).min(range.len()));
    }
    // The token comes from a macro, whose name and arguments the other line lacks there.
    let before = partners[..index].iter().rev().flatten().next();
    let behind = partners[index..].iter().flatten().next();
    let gap = before.map_or(0, |it| it + 1)..behind.map_or(own_tokens.len(), |it| *it);
    let is_left_out = |it: &usize| !partners.contains(&Some(*it));
    let is_word = |it: &usize| {
        let first = own.as_bytes()[own_tokens[*it].start];
        first.is_ascii_alphabetic() || first == b'_'
    };
    let is_name = |it: &usize| is_word(it) && is_left_out(it);
    let name = gap.clone().find(is_name).or_else(|| (0..gap.start).rev().find(is_name))?;
    Some(own_tokens[name].start)
}

/// Returns the tokens of a line that is not preprocessed.
fn tokens(line: &str) -> Vec<Range<usize>> {
    let code = code_of(line, true);
    Tokens::of(&code).all.iter().map(|it| it.start..it.end).collect()
}

/// Returns, for each token of the second line, its partner in a longest common sequence; `None` for long lines.
fn common(
    one: &[Range<usize>],
    two: &[Range<usize>],
    is_pair: impl Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Option<Vec<Option<usize>>> {
    if one.len().saturating_mul(two.len()) > MOST_PAIRS {
        return None;
    }
    // The length of the longest common sequence of the tokens from two positions on.
    let width = two.len() + 1;
    let mut lengths = vec![0_u32; (one.len() + 1) * width];
    for i in (0..one.len()).rev() {
        for j in (0..two.len()).rev() {
            lengths[i * width + j] = match is_pair(&one[i], &two[j]) {
                true => lengths[(i + 1) * width + j + 1] + 1,
                false => lengths[(i + 1) * width + j].max(lengths[i * width + j + 1]),
            };
        }
    }
    let mut partners = vec![None; two.len()];
    let (mut i, mut j) = (0, 0);
    while i < one.len() && j < two.len() {
        if is_pair(&one[i], &two[j]) {
            partners[j] = Some(i);
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    Some(partners)
}

#[cfg(test)]
mod tests {
    use super::{Lines, column_in};

    #[test]
    fn a_position_is_found_by_the_tokens_about_it() {
        for (own, other, expected) in [
            ("\tx = y + x;", "  x = {y} + x;", Some("y")),
            ("x = x + x; // x", "x=x+{x};", Some("x; //")),
            ("*a = SUM(a[0], 2) + f(3);", "*a = ((a[0]) + {n}ope(2)) + f(3);", Some("SUM")),
            ("*a = SUM(a[0], 2) + f(3);", "*a = ((a[0]) + nope(2)) + {f}(3);", Some("f(3)")),
            ("#include <a>", "  #include {<}a>", Some("<a>")),
            ("int a = N;", "int a = {3} 4;", Some("N")),
            ("s.w = 2 }", "  s.w = 2 {}", Some("}")),
            ("f(a)", "ours::f({ours}::of(a))", None),
            ("", "{x}", None),
        ] {
            let at = other.find('{').expect("there is one");
            let plain = match other.contains('}') {
                true => other.replacen(['{', '}'], "", 2),
                false => other.replacen('{', "", 1),
            };
            let plain = if own.ends_with("2 }") { "  s.w = 2 }".to_owned() } else { plain };
            let found = column_in(own, &plain, at).map(|it| &own[it..]);
            assert!(found.unwrap_or("").starts_with(expected.unwrap_or("")), "{own}: {found:?}");
            assert_eq!(found.is_some(), expected.is_some(), "{own}: {found:?}");
        }
    }

    #[test]
    fn lines_have_the_numbers_of_their_directives() {
        let text = "a\n#line 7 \"part\"\nb\nc\n# 2 \"k.cu\" 2\nd\n#pragma once\n";
        let lines = Lines::of(text, "k.cu");
        let found: Vec<_> = (0..5).filter_map(|it| lines.get(it)).collect();
        let places: Vec<_> = found.iter().map(|it| (it.file, it.number, it.text)).collect();
        assert_eq!(
            places,
            [
                ("k.cu", 1, "a"),
                ("part", 7, "b"),
                ("part", 8, "c"),
                ("k.cu", 2, "d"),
                ("k.cu", 3, "#pragma once")
            ]
        );
    }
}

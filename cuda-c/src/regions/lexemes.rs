//! The lexemes of a kernel's definition: its tokens, with multi-character operators joined.

use crate::tokens::{Edit, Kind, Tokens};
use std::ops::Range;

const OPERATORS: [&str; 24] = [
    "<<=", ">>=", "...", "->*", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "++", "--", "<<", ">>", "->", ".*",
];

#[derive(Clone, Copy, Debug)]
struct Lexeme {
    /// The first and last token of the lexeme.
    first: usize,
    last: usize,
    /// The matching parenthesis, bracket or brace.
    partner: usize,
    /// The lexeme that opens the innermost enclosing group.
    opener: usize,
}

/// The index that stands for "no lexeme".
pub(super) const NONE: usize = usize::MAX;

/// The lexemes of a range of tokens.
#[derive(Debug)]
pub(crate) struct Lexemes<'t, 'a> {
    pub(crate) tokens: &'t Tokens<'a>,
    all: Vec<Lexeme>,
    /// False if brackets do not match: some have no partner.
    is_matched: bool,
}

impl<'t, 'a> Lexemes<'t, 'a> {
    /// Reads the lexemes of a range of tokens. Returns `None` if its brackets do not match.
    pub(super) fn of(tokens: &'t Tokens<'a>, range: Range<usize>) -> Option<Lexemes<'t, 'a>> {
        Some(Lexemes::of_any(tokens, range)).filter(|it| it.is_matched)
    }

    /// Reads the lexemes of a range of tokens whose brackets may not match.
    pub(crate) fn of_any(tokens: &'t Tokens<'a>, range: Range<usize>) -> Lexemes<'t, 'a> {
        let mut all: Vec<Lexeme> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let (mut first, mut is_matched) = (range.start, true);
        while first < range.end {
            let last = (first + operator_tokens(tokens, first)).min(range.end) - 1;
            let opener = open.last().copied().unwrap_or(NONE);
            let mut lexeme = Lexeme { first, last, partner: NONE, opener };
            match tokens.at(first) {
                "(" | "[" | "{" if tokens.all[first].kind == Kind::Mark => open.push(all.len()),
                ")" | "]" | "}" if tokens.all[first].kind == Kind::Mark => {
                    let is_partner = |it: &usize| tokens.partner(all[*it].first) == Some(first);
                    if let Some(start) = open.pop_if(|it| is_partner(it)) {
                        lexeme.partner = start;
                        lexeme.opener = all[start].opener;
                        all[start].partner = all.len();
                    } else {
                        is_matched = false;
                    }
                }
                _ => {}
            }
            all.push(lexeme);
            first = last + 1;
        }
        Lexemes { tokens, all, is_matched: is_matched && open.is_empty() }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the text of a lexeme, or an empty string past the end.
    pub(crate) fn at(&self, index: usize) -> &'a str {
        let Some(lexeme) = self.all.get(index) else { return "" };
        &self.tokens.text[self.tokens.all[lexeme.first].start..self.tokens.all[lexeme.last].end]
    }

    pub(crate) fn before(&self, index: usize) -> &'a str {
        index.checked_sub(1).map_or("", |index| self.at(index))
    }

    pub(crate) fn is_word(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|it| self.tokens.is_word(it.first))
    }

    pub(crate) fn is_literal(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|it| self.tokens.all[it.first].kind == Kind::Literal)
    }

    /// Returns the matching parenthesis, bracket or brace.
    pub(crate) fn partner(&self, index: usize) -> Option<usize> {
        self.all.get(index).map(|it| it.partner).filter(|&it| it != NONE)
    }

    /// Returns the lexeme that opens the innermost group around this one.
    pub(crate) fn opener(&self, index: usize) -> Option<usize> {
        self.all.get(index).map(|it| it.opener).filter(|&it| it != NONE)
    }

    /// Returns the tokens of a lexeme.
    pub(super) fn tokens_of(&self, index: usize) -> Range<usize> {
        self.all[index].first..self.all[index].last + 1
    }

    /// Returns the first lexeme in `from..end` whose text is one of `texts`, ignoring nested groups.
    pub(crate) fn find(&self, from: usize, end: usize, texts: &[&str]) -> Option<usize> {
        let mut at = from;
        while at < end {
            if texts.contains(&self.at(at)) && !self.is_literal(at) {
                return Some(at);
            }
            at = match self.at(at) {
                "(" | "[" | "{" => self.partner(at)? + 1,
                _ => at + 1,
            };
        }
        None
    }

    /// Returns the text of a range as one line.
    pub(super) fn text(&self, range: Range<usize>) -> String {
        range.map(|it| self.at(it)).collect::<Vec<_>>().join(" ")
    }

    fn bytes(&self, lexeme: usize) -> Range<usize> {
        let Range { start, end } = self.tokens_of(lexeme);
        self.tokens.all[start].start..self.tokens.all[end - 1].end
    }

    /// Returns an edit that inserts a text before a lexeme.
    pub(super) fn insertion(&self, lexeme: usize, text: &str) -> Edit {
        let at = self.bytes(lexeme).start;
        (at, at, text.to_owned())
    }

    /// Returns an edit that inserts a text directly after the lexeme that precedes `behind`.
    pub(super) fn addition(&self, behind: usize, text: &str) -> Edit {
        let at = self.bytes(behind - 1).end;
        (at, at, text.to_owned())
    }

    /// Returns an edit that replaces a range by a text. The number of lines stays the same.
    pub(crate) fn replacement(&self, range: Range<usize>, text: &str) -> Edit {
        let (start, end) = (self.bytes(range.start).start, self.bytes(range.end - 1).end);
        let lines = self.tokens.text[start..end].matches('\n').count();
        (start, end, format!("{text}{}", "\n".repeat(lines)))
    }

    /// Splits a range at its commas, ignoring nested groups.
    pub(super) fn parts(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut from = range.start;
        while let Some(comma) = self.find(from, range.end, &[","]) {
            parts.push(from..comma);
            from = comma + 1;
        }
        if from < range.end {
            parts.push(from..range.end);
        }
        parts
    }

    /// Returns true if an operand can end with this lexeme, so that an operator after it is a binary one.
    pub(super) fn ends_operand(&self, index: usize) -> bool {
        self.is_literal(index)
            || matches!(self.at(index), ")" | "]")
            || (self.is_word(index) && !matches!(self.at(index), "return" | "sizeof" | "case"))
    }

    /// Returns true if this group looks like a cast: `is_value` must be false for all of its words.
    pub(super) fn is_cast(&self, close: usize, is_value: impl Fn(usize) -> bool) -> bool {
        let Some(open) = self.partner(close).filter(|_| self.at(close) == ")") else {
            return false;
        };
        let is_type = |index: usize| {
            matches!(self.at(index), "*" | "::") || (self.is_word(index) && !is_value(index))
        };
        let is_call = open > 0 && self.ends_operand(open - 1);
        !is_call && self.is_word(open + 1) && (open + 1..close).all(is_type)
    }
}

/// Returns true for an operator that assigns to its left operand.
pub(crate) fn is_assignment(operator: &str) -> bool {
    operator == "="
        || (operator.len() > 1
            && operator.ends_with('=')
            && !matches!(operator, "==" | "!=" | "<=" | ">="))
}

/// Returns the number of tokens of the operator that begins at a token, or 1 if none begins there.
fn operator_tokens(tokens: &Tokens<'_>, first: usize) -> usize {
    if tokens.all[first].kind != Kind::Mark {
        return 1;
    }
    let start = tokens.all[first].start;
    let rest = &tokens.text.as_bytes()[start..];
    let operator = OPERATORS.iter().find(|it| rest.starts_with(it.as_bytes()));
    operator.map_or(1, |it| it.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_whole_and_groups_know_their_ends() {
        let text = "a <<= b->c ++ + ++d (x [1], \"<<=\" ) >= 2";
        let tokens = Tokens::of(text);
        let lexemes = Lexemes::of(&tokens, 0..tokens.len()).expect("groups match");
        let all: Vec<_> = (0..lexemes.len()).map(|it| lexemes.at(it)).collect();
        let expected = [
            "a", "<<=", "b", "->", "c", "++", "+", "++", "d", "(", "x", "[", "1", "]", ",",
            "\"<<=\"", ")", ">=", "2",
        ];
        assert_eq!(all, expected);
        assert_eq!(lexemes.partner(9), Some(16));
        assert_eq!(lexemes.opener(12), Some(11));
        assert_eq!(lexemes.opener(11), Some(9));
        assert_eq!(lexemes.parts(10..16), [10..14, 15..16]);
        assert!(is_assignment("<<=") && is_assignment("=") && !is_assignment("<="));
        assert!(Lexemes::of(&Tokens::of("( ]"), 0..2).is_none());
    }
}

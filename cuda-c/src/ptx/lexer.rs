//! Splits PTX into lexemes.

use super::statement::Statement;
use std::iter::Peekable;
use std::str::CharIndices;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lexeme {
    /// A name, a directive, or a part of an instruction, without its dots. The names of special registers
    /// include their `%`.
    Word(String),
    /// An operand of the statement, by its number.
    Bound(usize),
    Integer(u64),
    /// An integer with the suffix `U`, or too large for a signed type.
    Unsigned(u64),
    /// `0f3F800000`, as bits.
    Single(u32),
    /// `0d3FF0000000000000` and `1.5`.
    Double(f64),
    Mark(char),
    /// `"..."`, in directives.
    Text,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) lexeme: Lexeme,
    /// The range of bytes in the text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads the text of a statement. `number` replaces `%=`.
///
/// # Errors
/// The offset of the problem in the text, and a message.
pub(super) fn read(statement: &Statement, number: usize) -> Result<Vec<Token>, (usize, String)> {
    let text = statement.text.as_str();
    let mut reader = Reader { statement, text, number, left: text.char_indices().peekable() };
    let mut all = Vec::new();
    while let Some(&(start, first)) = reader.left.peek() {
        if first.is_whitespace() {
            reader.left.next();
            continue;
        }
        if first == '/' && reader.skip_comment(start)? {
            continue;
        }
        // After a dot comes a name, even if it starts with a digit, as in `L2::128B`.
        let is_part = all.last().is_some_and(|it: &Token| {
            it.end == start && matches!(it.lexeme, Lexeme::Mark('.' | ':'))
        });
        let lexeme = match is_part && is_name(first) {
            true => reader.word("")?,
            false => reader.lexeme(start, first)?,
        };
        let end = reader.position();
        all.push(Token { lexeme, start, end });
    }
    Ok(all)
}

struct Reader<'t> {
    statement: &'t Statement,
    text: &'t str,
    number: usize,
    left: Peekable<CharIndices<'t>>,
}

fn is_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '$')
}

impl Reader<'_> {
    fn position(&mut self) -> usize {
        self.left.peek().map_or(self.text.len(), |it| it.0)
    }

    fn skip_to(&mut self, end: usize) {
        while self.left.next_if(|it| it.0 < end).is_some() {}
    }

    /// Skips the comment at a slash, if one begins there.
    fn skip_comment(&mut self, start: usize) -> Result<bool, (usize, String)> {
        let rest = &self.text[start..];
        let length = match rest.as_bytes().get(1) {
            Some(b'/') => rest.find('\n').unwrap_or(rest.len()),
            Some(b'*') => match rest.get(2..).and_then(|it| it.find("*/")) {
                Some(inner) => inner + 4,
                None => return Err((start, "a comment does not end".into())),
            },
            _ => return Ok(false),
        };
        self.skip_to(start + length);
        Ok(true)
    }

    fn lexeme(&mut self, start: usize, first: char) -> Result<Lexeme, (usize, String)> {
        match first {
            '%' if self.statement.has_operands => self.percent(start),
            '%' => {
                self.left.next();
                self.register_or_remainder()
            }
            it if it.is_ascii_digit() => self.constant(start),
            it if is_name(it) => self.word(""),
            '"' => {
                self.left.next();
                while self.left.next_if(|it| it.1 != '"').is_some() {}
                self.left.next();
                Ok(Lexeme::Text)
            }
            it if ".,;:{}[]()|!@+-~*/&^<>=?".contains(it) => {
                self.left.next();
                Ok(Lexeme::Mark(it))
            }
            it => Err((start, format!("the character {it:?} is none of PTX"))),
        }
    }

    /// Reads `%0`, or the register `%name` or `%%name`.
    fn percent(&mut self, start: usize) -> Result<Lexeme, (usize, String)> {
        let operands = &self.statement.operands;
        self.left.next();
        match self.left.peek().map(|it| it.1) {
            Some(it) if it.is_ascii_digit() => {
                let begin = self.position();
                while self.left.next_if(|it| it.1.is_ascii_digit()).is_some() {}
                let end = self.position();
                let number = self.text[begin..end].parse().ok().filter(|&it| it < operands.len());
                number.map(Lexeme::Bound).ok_or_else(|| {
                    let count = operands.len();
                    (start, format!("%{} is no operand: asm has {count}", &self.text[begin..end]))
                })
            }
            Some('%') => {
                self.left.next();
                self.register_or_remainder()
            }
            _ => self.word("%"),
        }
    }

    /// Reads what follows a `%`: the name of a register, or the divisor of a remainder.
    fn register_or_remainder(&mut self) -> Result<Lexeme, (usize, String)> {
        let is_divided =
            |it: char| it.is_ascii_digit() || it.is_whitespace() || "(-+~!".contains(it);
        match self.left.peek().is_some_and(|it| is_divided(it.1)) {
            true => Ok(Lexeme::Mark('%')),
            false => self.word("%"),
        }
    }

    fn word(&mut self, prefix: &str) -> Result<Lexeme, (usize, String)> {
        let start = self.position();
        let mut word = prefix.to_owned();
        while let Some(&(at, it)) = self.left.peek() {
            if is_name(it) {
                word.push(it);
            } else if it == '%' && self.text[at..].starts_with("%=") {
                self.left.next();
                word.push_str(&self.number.to_string());
            } else {
                break;
            }
            self.left.next();
        }
        match word.len() > prefix.len() {
            true => Ok(Lexeme::Word(word)),
            false => Err((
                start.saturating_sub(prefix.len()),
                "a % without a name; where asm has no operands it is not doubled".into(),
            )),
        }
    }

    fn constant(&mut self, start: usize) -> Result<Lexeme, (usize, String)> {
        let mut before = '0';
        let is_hex = self.text[start..].starts_with("0x") || self.text[start..].starts_with("0X");
        while let Some((_, it)) = self.left.next_if(|it| {
            let is_sign = !is_hex && matches!(it.1, '+' | '-') && matches!(before, 'e' | 'E');
            is_name(it.1) || (it.1 == '.' && !is_hex) || is_sign
        }) {
            before = it;
        }
        let end = self.position();
        let text = &self.text[start..end];
        number(text).ok_or_else(|| (start, format!("{text} is no number of PTX")))
    }
}

fn number(text: &str) -> Option<Lexeme> {
    let of_bits = |digits: &str, count: usize| {
        let is_whole = digits.len() == count && digits.bytes().all(|it| it.is_ascii_hexdigit());
        is_whole.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    match text.get(..2) {
        Some("0f" | "0F") => return Some(Lexeme::Single(of_bits(&text[2..], 8)? as u32)),
        Some("0d" | "0D") => return Some(Lexeme::Double(f64::from_bits(of_bits(&text[2..], 16)?))),
        _ => {}
    }
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some(_) if digits.starts_with('0') && !digits.contains(['.', 'e', 'E']) => {
            (&digits[1..], 8)
        }
        _ => (digits, 10),
    };
    if !digits.bytes().all(|it| (it as char).is_digit(radix)) {
        let is_decimal =
            radix == 10 && text.bytes().all(|it| it.is_ascii_digit() || b".eE+-".contains(&it));
        return is_decimal.then(|| text.parse().ok().map(Lexeme::Double)).flatten();
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    let is_unsigned = text.ends_with('U') || i64::try_from(value).is_err();
    Some(if is_unsigned { Lexeme::Unsigned(value) } else { Lexeme::Integer(value) })
}

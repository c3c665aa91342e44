//! Demangles function names, as C++ writes them into object code (Itanium ABI).

use super::types::{Number, ValueType, named};

pub(super) struct Symbol<'a> {
    pub(super) name: &'a str,
    /// The types among the template arguments, in order. `None` stands for a value, and for the rest of an
    /// argument list that cannot be read.
    pub(super) arguments: Vec<Option<ValueType>>,
}

/// Reads a function name. Returns `None` if it is not mangled.
pub(super) fn read(symbol: &str) -> Option<Symbol<'_>> {
    let rest = symbol.strip_prefix("_Z")?;
    let (mut rest, nested) = match rest.strip_prefix('N') {
        Some(rest) => (rest, true),
        None => (rest.strip_prefix('L').unwrap_or(rest), false),
    };
    let mut name;
    loop {
        (name, rest) = identifier(rest)?;
        let next = rest.bytes().next();
        if !nested || !next.is_some_and(|it| it.is_ascii_digit()) {
            break;
        }
    }
    let arguments = rest.strip_prefix('I').map(arguments).unwrap_or_default();
    Some(Symbol { name, arguments })
}

/// Reads a length and an identifier of that length.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = text[..digits].parse().ok()?;
    text[digits..].split_at_checked(length)
}

fn arguments(mut text: &str) -> Vec<Option<ValueType>> {
    let mut found = Vec::new();
    loop {
        if let Some(value) = text.strip_prefix('L') {
            // The type of the value, which may be a name that contains an `E`, and the value.
            let behind = identifier(value).map(|it| it.1).or_else(|| {
                value.get(1..).filter(|_| value.starts_with(|it: char| it.is_ascii_lowercase()))
            });
            let rest = behind.and_then(|it| it.split_once('E'));
            let Some((_, rest)) = rest else { return found };
            found.push(None);
            text = rest;
            continue;
        }
        if let Some((name, rest)) = identifier(text) {
            found.push(Some(named(&[name], None)));
            text = rest;
            continue;
        }
        let Some(letter) = text.chars().next() else { return found };
        let number = match letter {
            'b' => Number::Bool,
            'a' | 'c' => Number::Signed(1),
            'h' => Number::Unsigned(1),
            's' => Number::Signed(2),
            't' => Number::Unsigned(2),
            'i' => Number::Signed(4),
            'j' => Number::Unsigned(4),
            'l' | 'x' => Number::Signed(8),
            'm' | 'y' => Number::Unsigned(8),
            'f' => Number::Float(4),
            'd' => Number::Float(8),
            _ => return found,
        };
        found.push(Some(ValueType::Number(number)));
        text = &text[1..];
    }
}

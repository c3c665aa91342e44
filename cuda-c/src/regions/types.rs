//! Determines the types of expressions from the declarations in a kernel, by the rules of C++: integer
//! promotion, the usual arithmetic conversions, and the decay of arrays to pointers. [`plain`](mod@super::plain)
//! needs them to replace `auto` and references.

use super::lexemes::{Lexemes, is_assignment};
use super::meetings::Walk;
use super::statements::Local;
use super::words::{is_integer, is_type};
use std::ops::Range;

/// The arithmetic types in order of rank. From `int` on, two operands are converted to the type that comes
/// later.
const NUMBERS: [&str; 14] = [
    "bool",
    "char",
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned int",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "float",
    "double",
];
const BOOL: usize = 0;
const INT: usize = 6;
const UNSIGNED: usize = 7;
const LONG: usize = 8;
const FLOAT: usize = 12;
const DOUBLE: usize = 13;

/// Binary operators, in order of increasing precedence.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The type of an expression, without top-level `const`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// An arithmetic type, as an index into `NUMBERS`.
    Number(usize),
    /// A pointer; the string is the pointee type as written.
    Pointer(String),
    /// Another type, as written.
    Other(String),
}

impl Type {
    /// Returns the type that a sequence of words names.
    pub(super) fn of_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Type> {
        let is_left = |it: &&str| {
            matches!(*it, "const" | "constexpr" | "register") || it.starts_with("__restrict")
        };
        let words: Vec<&str> = words.into_iter().filter(|it| !is_left(it)).collect();
        let is_name =
            |it: &&str| *it == "::" || it.starts_with(|it: char| it.is_alphabetic() || it == '_');
        if words.is_empty() || !words.iter().all(is_name) {
            return None;
        }
        match words.iter().all(|it| is_type(it) || is_integer(it)) {
            true => number(&words).map(Type::Number),
            false if words.iter().any(|it| matches!(*it, "auto" | "volatile" | "decltype")) => None,
            false => Some(Type::Other(words.join(" "))),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Type::Number(it) => NUMBERS[*it],
            Type::Pointer(text) | Type::Other(text) => text,
        }
    }

    fn promoted(&self) -> Option<usize> {
        match self {
            Type::Number(it) => Some(*it.max(&INT)),
            _ => None,
        }
    }
}

/// Returns the common type of two arithmetic operands.
fn common(first: &Type, second: &Type) -> Option<Type> {
    let (first, second) = (first.promoted()?, second.promoted()?);
    let (low, high) = (first.min(second), first.max(second));
    // `unsigned long` has values that `long long` cannot represent.
    Some(Type::Number(if (low, high) == (LONG + 1, LONG + 2) { LONG + 3 } else { high }))
}

fn number(words: &[&str]) -> Option<usize> {
    let alias = match words {
        ["size_t" | "uint64_t"] => Some("unsigned long"),
        ["ptrdiff_t" | "int64_t"] => Some("long"),
        ["uint" | "uint32_t"] => Some("unsigned int"),
        ["int32_t"] => Some("int"),
        ["int8_t"] => Some("signed char"),
        ["uint8_t" | "uchar"] => Some("unsigned char"),
        ["int16_t"] => Some("short"),
        ["uint16_t"] => Some("unsigned short"),
        _ => None,
    };
    let place = |text: &str| NUMBERS.iter().position(|it| *it == text);
    if alias.is_some() {
        return alias.and_then(place);
    }
    let count = |word: &str| words.iter().filter(|it| **it == word).count();
    let sign = match (count("unsigned"), count("signed")) {
        (0, 0) => "",
        (1, 0) => "unsigned ",
        (0, 1) if count("char") == 1 => "signed ",
        (0, 1) => "",
        _ => return None,
    };
    let left = words.iter().filter(|it| !matches!(**it, "unsigned" | "signed"));
    let mut left: Vec<&str> = left.copied().collect();
    if left.len() > 1 && !left.contains(&"double") {
        left.retain(|it| *it != "int");
    }
    let base = if left.is_empty() { "int".to_owned() } else { left.join(" ") };
    place(&format!("{sign}{base}"))
}

/// Returns the type of a numeric literal.
fn literal(text: &str) -> Option<Type> {
    if text.starts_with('\'') {
        return None;
    }
    let text = text.to_ascii_lowercase().replace('\'', "");
    let is_hex = text.starts_with("0x");
    if !text.starts_with(|it: char| it.is_ascii_digit() || it == '.') || text.starts_with("0b") {
        return None;
    }
    if !is_hex && text.contains(['.', 'e']) {
        let digits = text.trim_end_matches('f');
        let is_plain = digits.parse::<f64>().is_ok();
        return is_plain.then_some(Type::Number(if digits == text { DOUBLE } else { FLOAT }));
    }
    let digits = text.trim_end_matches(['u', 'l']);
    let value = match is_hex {
        true => u64::from_str_radix(&digits[2..], 16).ok()?,
        // An octal literal may be unsigned, like a hexadecimal one.
        false if digits.len() > 1 && digits.starts_with('0') => return None,
        false => digits.parse().ok()?,
    };
    Some(Type::Number(match &text[digits.len()..] {
        "" if value <= i32::MAX as u64 => INT,
        "" if is_hex && u32::try_from(value).is_ok() => UNSIGNED,
        "" if i64::try_from(value).is_ok() => LONG,
        "u" if u32::try_from(value).is_ok() => UNSIGNED,
        "u" | "ul" | "lu" => LONG + 1,
        "l" if i64::try_from(value).is_ok() => LONG,
        "ll" if i64::try_from(value).is_ok() => LONG + 2,
        "ull" | "llu" => LONG + 3,
        _ => return None,
    }))
}

/// Determines the types of expressions of a kernel.
pub(super) struct Types<'w, 't, 'a> {
    pub(super) walk: &'w Walk<'w, 't, 'a>,
}

impl<'t, 'a> Types<'_, 't, 'a> {
    fn lexemes(&self) -> &Lexemes<'t, 'a> {
        self.walk.lexemes
    }

    pub(super) fn of(&self, range: Range<usize>) -> Option<Type> {
        self.deduced(range, 0)
    }

    /// Returns the type of an expression. `depth` limits the recursion.
    fn deduced(&self, range: Range<usize>, depth: usize) -> Option<Type> {
        let lexemes = self.lexemes();
        let Range { start, end } = range;
        if start >= end || depth > 40 {
            return None;
        }
        let inner = |range: Range<usize>| self.deduced(range, depth + 1);
        if lexemes.partner(start) == Some(end - 1) && lexemes.at(start) == "(" {
            return inner(start + 1..end - 1);
        }
        let is_refused = |it: usize| {
            is_assignment(lexemes.at(it)) || matches!(lexemes.at(it), "++" | "--" | "{" | "->*")
        };
        if (start..end).any(is_refused) || lexemes.find(start, end, &[","]).is_some() {
            return None;
        }
        if let Some(asked) = lexemes.find(start, end, &["?"]) {
            let mut open = 1;
            let mut at = asked;
            while open > 0 {
                at = lexemes.find(at + 1, end, &["?", ":"])?;
                open = if lexemes.at(at) == "?" { open + 1 } else { open - 1 };
            }
            let (first, second) = (inner(asked + 1..at)?, inner(at + 1..end)?);
            return if first == second { Some(first) } else { common(&first, &second) };
        }
        let named_cast = lexemes.at(start).ends_with("_cast").then_some(start + 1);
        let has_casts = (start..end).any(|it| lexemes.at(it).ends_with("_cast"));
        if let Some(open) = named_cast
            && lexemes.at(start) != "dynamic_cast"
        {
            let close = (open..end).find(|&it| lexemes.at(it) == ">")?;
            let is_whole = lexemes.partner(close + 1) == Some(end - 1);
            return is_whole.then(|| Type::of_words((open + 1..close).map(|it| lexemes.at(it))))?;
        }
        for operators in OPERATORS {
            if has_casts && operators.contains(&"<") {
                return None;
            }
            let Some(at) = self.last(start..end, operators) else { continue };
            let (left, right) = (inner(start..at), inner(at + 1..end));
            return match lexemes.at(at) {
                // The program's own operators apply only to other types.
                "||" | "&&" | "==" | "!=" | "<" | ">" | "<=" | ">=" => {
                    let are_known =
                        !matches!((left?, right?), (Type::Other(_), _) | (_, Type::Other(_)));
                    are_known.then_some(Type::Number(BOOL))
                }
                "<<" | ">>" => {
                    right?.promoted()?;
                    left?.promoted().map(Type::Number)
                }
                operator => match (left?, right?, operator) {
                    (it @ Type::Pointer(_), Type::Number(_), "+" | "-")
                    | (Type::Number(_), it @ Type::Pointer(_), "+") => Some(it),
                    (Type::Pointer(_), Type::Pointer(_), "-") => Some(Type::Number(LONG)),
                    (left, right, _) => common(&left, &right),
                },
            };
        }
        match lexemes.at(start) {
            "-" | "+" | "~" => return inner(start + 1..end)?.promoted().map(Type::Number),
            "!" => {
                inner(start + 1..end)?.promoted()?;
                return Some(Type::Number(BOOL));
            }
            "&" => return self.address(start + 1..end),
            "(" => {
                let close = lexemes.partner(start)?;
                let is_cast = lexemes.is_cast(close, |it| self.walk.is_local(it));
                let words = (start + 1..close).map(|it| lexemes.at(it));
                return (is_cast && inner(close + 1..end).is_some())
                    .then(|| written(&words.collect::<Vec<_>>()))?;
            }
            _ => {}
        }
        self.operand(start..end, depth)
    }

    /// Returns the last binary operator among `operators`, ignoring nested groups.
    fn last(&self, range: Range<usize>, operators: &[&str]) -> Option<usize> {
        let lexemes = self.lexemes();
        let (mut found, mut from) = (None, range.start);
        while let Some(at) = lexemes.find(from, range.end, operators) {
            let is_cast = |it| lexemes.is_cast(it, |word| self.walk.is_local(word));
            if at > range.start && lexemes.ends_operand(at - 1) && !is_cast(at - 1) {
                found = Some(at);
            }
            from = at + 1;
        }
        found
    }

    /// Returns the type of `&x[i]`, where `x` is a pointer or an array.
    fn address(&self, range: Range<usize>) -> Option<Type> {
        let lexemes = self.lexemes();
        let local = self.walk.local_at(range.start)?;
        let is_element = lexemes.at(range.start + 1) == "["
            && lexemes.partner(range.start + 1) == Some(range.end - 1);
        is_element.then(|| self.pointer(local)).flatten()
    }

    /// Returns the type of a pointer, or the pointer type that an array decays to.
    fn pointer(&self, local: &Local) -> Option<Type> {
        let lexemes = self.lexemes();
        let words: Vec<&str> = match local.is_shared {
            true => {
                let words = self.walk.shared_words(local.at)?;
                let is_row = lexemes.at(local.at + 1) == "["
                    && lexemes.partner(local.at + 1).is_some_and(|it| lexemes.at(it + 1) != "[");
                is_row.then_some(())?;
                words.into_iter().map(|it| lexemes.at(it)).chain(["*"]).collect()
            }
            false => {
                let name = local.at;
                let words = local.specifiers.clone().chain(local.declarator.clone());
                let words: Vec<&str> =
                    words.filter(|it| *it != name).map(|it| lexemes.at(it)).collect();
                words.into_iter().filter(|it| !it.starts_with("__restrict")).collect()
            }
        };
        written(&words).filter(|it| matches!(it, Type::Pointer(_)))
    }

    /// Returns the type of an operand: a literal, a name, an element, a member, or a conversion such
    /// as `int(x)`.
    fn operand(&self, range: Range<usize>, depth: usize) -> Option<Type> {
        let lexemes = self.lexemes();
        let Range { start, end } = range;
        let word = lexemes.at(start);
        if end == start + 1 && lexemes.is_literal(start) {
            return literal(word);
        }
        let names: Vec<&str> = range.clone().take(3).map(|it| lexemes.at(it)).collect();
        match names[..] {
            ["threadIdx" | "blockIdx" | "blockDim" | "gridDim", ".", "x" | "y" | "z"]
                if end == start + 3 =>
            {
                return Some(Type::Number(UNSIGNED));
            }
            ["warpSize"] => return Some(Type::Number(INT)),
            ["true" | "false"] => return Some(Type::Number(BOOL)),
            _ => {}
        }
        if lexemes.at(start + 1) == "(" && lexemes.partner(start + 1) == Some(end - 1) {
            return match is_type(word) || is_integer(word) {
                true => Type::of_words([word])
                    .filter(|_| self.deduced(start + 2..end - 1, depth + 1).is_some()),
                // Overloads of one name may return different types.
                false => None,
            };
        }
        if let Some(local) = self.walk.local_at(start).filter(|it| !it.is_shared) {
            let declares = |text: &str| local.declarator.clone().any(|it| lexemes.at(it) == text);
            let has_stars =
                declares("*") || local.specifiers.clone().any(|it| lexemes.at(it) == "*");
            let words = || local.specifiers.clone().map(|it| lexemes.at(it));
            if end == start + 1 && !declares("[") {
                return if has_stars { self.pointer(local) } else { Type::of_words(words()) };
            }
            let extents = local.declarator.clone().filter(|&it| lexemes.at(it) == "[").count();
            if !has_stars && extents > 0 && !local.is_parameter {
                let mut at = start + 1;
                for _ in 0..extents {
                    (lexemes.at(at) == "[").then_some(())?;
                    at = lexemes.partner(at)? + 1;
                }
                return (at == end).then(|| Type::of_words(words()))?;
            }
        } else if end == start + 1
            && let Some(local) = self.walk.local_at(start)
            && lexemes.at(local.at + 1) == "["
        {
            return self.pointer(local);
        }
        let kind = self.walk.element_kind(&range)?;
        Type::of_words(kind.split(' '))
    }
}

/// Returns the type named by words with at most one `*`.
fn written(words: &[&str]) -> Option<Type> {
    let stars = words.iter().filter(|it| **it == "*").count();
    if stars == 0 {
        return Type::of_words(words.iter().copied());
    }
    let (last, base) = words.split_last()?;
    // `float *const` is a constant pointer.
    if matches!(*last, "const") && stars == 1 {
        return written(base);
    }
    if stars > 1 || *last != "*" {
        return None;
    }
    let pointed = Type::of_words(base.iter().copied().filter(|it| *it != "void"));
    let is_const = base.contains(&"const");
    let text = if base.contains(&"void") { "void".to_owned() } else { pointed?.text().to_owned() };
    Some(Type::Pointer(format!("{}{text} *", if is_const { "const " } else { "" })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_have_the_types_of_the_language() {
        let of = |text: &str| literal(text).map(|it| it.text().to_owned());
        let rows = [
            ("1", "int"),
            ("1u", "unsigned int"),
            ("2147483648", "long"),
            ("0x80000000", "unsigned int"),
            ("1ull", "unsigned long long"),
            ("1.0", "double"),
            (".5f", "float"),
            ("1e3", "double"),
        ];
        for (text, expected) in rows {
            assert_eq!(of(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["1_km", "'a'", "'1'", "'ab'", "037"] {
            assert_eq!(of(text), None, "{text}");
        }
        let words = |text: &str| Type::of_words(text.split(' ')).map(|it| it.text().to_owned());
        assert_eq!(words("const long unsigned").as_deref(), Some("unsigned long"));
        assert_eq!(words("unsigned float"), None);
        assert_eq!(words("unsigned").as_deref(), Some("unsigned int"));
        assert_eq!(words("const unsigned long int").as_deref(), Some("unsigned long"));
        assert_eq!(words("const T").as_deref(), Some("T"));
        let [long, wide] = [Type::Number(LONG + 1), Type::Number(LONG + 2)];
        assert_eq!(common(&long, &wide), Some(Type::Number(LONG + 3)));
        assert_eq!(common(&Type::Number(BOOL), &Type::Number(BOOL)), Some(Type::Number(INT)));
    }
}

//! Constant expressions of PTX: of 64 bits, with or without a sign, with the operators of C.

use super::lexer::{Lexeme, Token};

/// The one name in constant expressions.
pub(super) const WARP_SIZE: &str = "WARP_SZ";
/// Lanes of a warp of CUDA.
const LANES: i64 = 32;
/// More parentheses and signs than any program has.
const DEEPEST: usize = 64;

/// Reads an expression from the beginning of `left`, and leaves what follows it.
///
/// # Errors
/// A text that says what is wrong.
pub(super) fn read(left: &mut &[Token]) -> Result<i64, String> {
    Ok(binary(left, 0, DEEPEST)?.bits)
}

/// A number: `.s64`, or `.u64` if it is written with `U` or too large for a sign, or computed from one that is.
#[derive(Clone, Copy)]
struct Number {
    bits: i64,
    is_unsigned: bool,
}

impl Number {
    fn signed(bits: i64) -> Number {
        Number { bits, is_unsigned: false }
    }
}

fn mark(left: &[Token], at: usize) -> Option<char> {
    match left.get(at).map(|it| &it.lexeme) {
        Some(Lexeme::Mark(mark)) => Some(*mark),
        _ => None,
    }
}

/// The operator at the beginning: how it binds, its characters, and how many those are.
fn operator(left: &[Token]) -> Option<(u8, char, usize)> {
    let first = mark(left, 0)?;
    let is_double = mark(left, 1) == Some(first);
    match first {
        '|' => Some((1, '|', 1)),
        '^' => Some((2, '^', 1)),
        '&' => Some((3, '&', 1)),
        '<' | '>' if is_double => Some((4, first, 2)),
        '+' | '-' => Some((5, first, 1)),
        '*' | '/' => Some((6, first, 1)),
        _ => None,
    }
}

fn binary(left: &mut &[Token], weakest: u8, depth: usize) -> Result<Number, String> {
    let mut value = unary(left, depth)?;
    while let Some((strength, operator, count)) = operator(left).filter(|it| it.0 > weakest) {
        *left = &left[count..];
        let other = binary(left, strength, deeper(depth)?)?;
        let (a, b) = (value.bits, other.bits);
        // A number that is shifted keeps its sign, or its lack of one.
        let is_unsigned = match operator {
            '<' | '>' => value.is_unsigned,
            _ => value.is_unsigned || other.is_unsigned,
        };
        let bits = match operator {
            '|' => a | b,
            '^' => a ^ b,
            '&' => a & b,
            // Of the distance six bits count.
            '<' => a.wrapping_shl(b as u32),
            '>' if is_unsigned => (a as u64).wrapping_shr(b as u32) as i64,
            '>' => a.wrapping_shr(b as u32),
            '+' => a.wrapping_add(b),
            '-' => a.wrapping_sub(b),
            '*' => a.wrapping_mul(b),
            _ if b == 0 => return Err("divides by zero in a constant".into()),
            _ if is_unsigned => (a as u64 / b as u64) as i64,
            _ => a.wrapping_div(b),
        };
        value = Number { bits, is_unsigned };
    }
    Ok(value)
}

fn deeper(depth: usize) -> Result<usize, String> {
    depth.checked_sub(1).ok_or_else(|| "has a constant with too many parentheses".into())
}

fn unary(left: &mut &[Token], depth: usize) -> Result<Number, String> {
    let Some(first) = left.first() else { return Err("is missing an operand".into()) };
    *left = &left[1..];
    let mut same = |function: fn(i64) -> i64| {
        let value = unary(left, deeper(depth)?)?;
        Ok::<_, String>(Number { bits: function(value.bits), ..value })
    };
    Ok(match &first.lexeme {
        Lexeme::Integer(value) => Number::signed(*value as i64),
        Lexeme::Unsigned(value) => Number { bits: *value as i64, is_unsigned: true },
        Lexeme::Word(name) if name == WARP_SIZE => Number::signed(LANES),
        Lexeme::Mark('-') => same(i64::wrapping_neg)?,
        Lexeme::Mark('+') => same(|it| it)?,
        Lexeme::Mark('~') => Number { is_unsigned: true, ..same(|it| !it)? },
        Lexeme::Mark('!') => Number::signed(same(|it| i64::from(it == 0))?.bits),
        Lexeme::Mark('(') => {
            let value = binary(left, 0, deeper(depth)?)?;
            if mark(left, 0) != Some(')') {
                return Err("is missing a ')'".into());
            }
            *left = &left[1..];
            value
        }
        _ => return Err("has an operand that is none".into()),
    })
}

//! Constant expressions of PTX: of 64 bits, with the operators of C.

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
    binary(left, 0, DEEPEST)
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

fn binary(left: &mut &[Token], weakest: u8, depth: usize) -> Result<i64, String> {
    let mut value = unary(left, depth)?;
    while let Some((strength, operator, count)) = operator(left).filter(|it| it.0 > weakest) {
        *left = &left[count..];
        let other = binary(left, strength, deeper(depth)?)?;
        value = match operator {
            '|' => value | other,
            '^' => value ^ other,
            '&' => value & other,
            '<' => value.checked_shl(other as u32).unwrap_or(0),
            '>' => value.checked_shr(other as u32).unwrap_or(0),
            '+' => value.wrapping_add(other),
            '-' => value.wrapping_sub(other),
            '*' => value.wrapping_mul(other),
            _ if other == 0 => return Err("divides by zero in a constant".into()),
            _ => value.wrapping_div(other),
        };
    }
    Ok(value)
}

fn deeper(depth: usize) -> Result<usize, String> {
    depth.checked_sub(1).ok_or_else(|| "has a constant with too many parentheses".into())
}

fn unary(left: &mut &[Token], depth: usize) -> Result<i64, String> {
    let Some(first) = left.first() else { return Err("is missing an operand".into()) };
    *left = &left[1..];
    Ok(match &first.lexeme {
        Lexeme::Integer(value) => *value as i64,
        Lexeme::Word(name) if name == WARP_SIZE => LANES,
        Lexeme::Mark('-') => unary(left, deeper(depth)?)?.wrapping_neg(),
        Lexeme::Mark('+') => unary(left, deeper(depth)?)?,
        Lexeme::Mark('~') => !unary(left, deeper(depth)?)?,
        Lexeme::Mark('!') => i64::from(unary(left, deeper(depth)?)? == 0),
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

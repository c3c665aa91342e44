//! Evaluates constant expressions of PTX: 64-bit integers, signed or unsigned, with the operators of C.

use super::lexer::{Lexeme, Token};

/// The only name that constant expressions can contain.
pub(super) const WARP_SIZE: &str = "WARP_SZ";
/// The number of lanes in a CUDA warp.
const LANES: i64 = 32;
/// The maximum nesting depth of parentheses and signs.
const DEEPEST: usize = 64;

/// Reads an expression from the beginning of `left`, and removes it from there.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn read(left: &mut &[Token]) -> Result<i64, String> {
    Ok(choice(left, DEEPEST)?.bits)
}

/// A number. It has type `.u64` if it is written with `U`, is too large for `.s64`, or is computed from such
/// a number; otherwise `.s64`.
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

/// Operators with their precedence, two-character operators first.
const OPERATORS: [(&str, u8); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// Returns the operator at the beginning, and its precedence.
fn operator(left: &[Token]) -> Option<(&'static str, u8)> {
    let is_here = |text: &str| text.chars().enumerate().all(|(at, it)| mark(left, at) == Some(it));
    OPERATORS.into_iter().find(|it| is_here(it.0))
}

/// Reads `a ? b : c`, or an expression of higher precedence. The result has the type of the chosen operand.
fn choice(left: &mut &[Token], depth: usize) -> Result<Number, String> {
    let condition = binary(left, 0, depth)?;
    if mark(left, 0) != Some('?') {
        return Ok(condition);
    }
    *left = &left[1..];
    let first = choice(left, deeper(depth)?)?;
    if mark(left, 0) != Some(':') {
        return Err("is missing a ':'".into());
    }
    *left = &left[1..];
    let second = choice(left, deeper(depth)?)?;
    Ok(if condition.bits != 0 { first } else { second })
}

fn binary(left: &mut &[Token], weakest: u8, depth: usize) -> Result<Number, String> {
    let mut value = unary(left, depth)?;
    while let Some((operator, strength)) = operator(left).filter(|it| it.1 > weakest) {
        *left = &left[operator.len()..];
        let other = binary(left, strength, deeper(depth)?)?;
        let (a, b) = (value.bits, other.bits);
        // A shifted number keeps its signedness.
        let is_unsigned = match operator {
            "<<" | ">>" => value.is_unsigned,
            // A remainder is unsigned, as observed on a GPU.
            "%" => true,
            _ => value.is_unsigned || other.is_unsigned,
        };
        let order = if is_unsigned { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) };
        let truth = match operator {
            "||" => Some(a != 0 || b != 0),
            "&&" => Some(a != 0 && b != 0),
            "==" => Some(order.is_eq()),
            "!=" => Some(order.is_ne()),
            "<" => Some(order.is_lt()),
            ">" => Some(order.is_gt()),
            "<=" => Some(order.is_le()),
            ">=" => Some(order.is_ge()),
            _ => None,
        };
        if let Some(truth) = truth {
            value = Number::signed(truth.into());
            continue;
        }
        let bits = match operator {
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            // A shift uses the lower six bits of the distance.
            "<<" => a.wrapping_shl(b as u32),
            ">>" if is_unsigned => (a as u64).wrapping_shr(b as u32) as i64,
            ">>" => a.wrapping_shr(b as u32),
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            _ if b == 0 => return Err("divides by zero in a constant".into()),
            "%" => (a as u64 % b as u64) as i64,
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
            let value = choice(left, deeper(depth)?)?;
            if mark(left, 0) != Some(')') {
                return Err("is missing a ')'".into());
            }
            *left = &left[1..];
            value
        }
        _ => return Err("has an operand that is none".into()),
    })
}

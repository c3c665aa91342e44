//! Gives conversions and shifts that C++ leaves undefined the results of NVIDIA GPUs.
//!
//! On a GPU a negative number becomes zero if it is converted to an unsigned integer, and a shift by the width of a type
//! or more shifts out all bits. Programs rely on both: `image[i] = 1.5f * x - y` with bytes, `(1u << n) - 1` with 32.
//! Names of `include/cuda_c/out_of_range.h` are therefore inserted into
//!
//! - casts to unsigned integers of 8 or 16 bits ([`parenthesis`](Reader::parenthesis));
//! - assignments and initialisers of a floating-point value, if the variable is declared as such an integer, and no
//!   other one of its name as something else than a number;
//! - arguments of `make_uchar4` and similar functions;
//! - shifts of constants, and shifts by a difference, unless they are part of a rotation.
//!
//! Types are known by name alone. The inserted names leave values of other types as they are, so a wrong guess is
//! harmless. Code outside of functions stays as it is.

mod names;

use crate::regions;
use crate::tokens::{Kind, Tokens};
use crate::tree::{Function, value_end};
use names::Names;

/// Converts the value at its right to the type of the variable at its left.
const VALUE: &str = "::cuda_c::value = ";
const DISTANCE: &str = " ::cuda_c::distance ";

/// Returns a unit's text in which conversions of floating-point numbers to integers, and shifts, have the results of a
/// GPU where C++ leaves them undefined; `None` if nothing changes. The compiler may refuse the result even if
/// it accepts the text.
pub fn defined_out_of_range(text: &str) -> Option<String> {
    let tokens = Tokens::of(text);
    let insertions = insertions(&tokens);
    if insertions.is_empty() {
        return None;
    }
    let (mut result, mut done) = (String::with_capacity(text.len() + 32 * insertions.len()), 0);
    for (at, inserted) in insertions {
        result.push_str(&text[done..at]);
        result.push_str(&inserted);
        done = at;
    }
    result.push_str(&text[done..]);
    Some(result)
}

/// A place in the text, and the inserted text.
type Insertion = (usize, String);

fn insertions(tokens: &Tokens<'_>) -> Vec<Insertion> {
    let Some(first) = (0..tokens.len()).find(|&at| tokens.is_of_program(at)) else {
        return Vec::new();
    };
    let mut reader = Reader { tokens, names: Names::of(tokens, first), insertions: Vec::new() };
    let mut bodies: Vec<Body> = Vec::new();
    for at in first..tokens.len() {
        if bodies.last().is_some_and(|it| it.close == at) {
            bodies.pop();
        }
        let is_body = || Function::of(tokens, at).is_some_and(|it| it.parameters.is_some());
        if tokens.at(at) == "{" && is_body() {
            let of_variant = bodies.last().is_some_and(|it| it.is_of_variant);
            bodies.push(Body {
                close: tokens.partner(at).unwrap_or(tokens.len()),
                is_of_variant: of_variant
                    || tokens.heading(at).any(|it| it.starts_with(regions::PREFIX)),
            });
        }
        let Some(body) = bodies.last() else { continue };
        if tokens.is_of_program(at) || body.is_of_variant {
            reader.token(at);
        }
    }
    reader.insertions.sort_by_key(|it| it.0);
    reader.insertions
}

/// The body of a function, up to its closing brace.
struct Body {
    close: usize,
    /// True for the loop variant of a kernel.
    is_of_variant: bool,
}

struct Reader<'t, 'a> {
    tokens: &'t Tokens<'a>,
    names: Names<'a>,
    insertions: Vec<Insertion>,
}

impl Reader<'_, '_> {
    fn token(&mut self, at: usize) {
        match self.tokens.at(at) {
            "(" => self.parenthesis(at),
            "static_cast" => self.static_cast(at),
            "=" => self.assignment(at),
            "<" | ">" => self.shift(at),
            _ => {}
        }
    }

    fn insert(&mut self, place: usize, text: impl Into<String>) {
        self.insertions.push((place, text.into()));
    }

    /// A cast `(unsigned)x` or `unsigned(x)`, or the arguments of `make_uchar4(x, y, z, w)`.
    fn parenthesis(&mut self, open: usize) {
        let tokens = self.tokens;
        let Some(close) = tokens.partner(open) else { return };
        let Some(before) = open.checked_sub(1) else { return };
        let end = tokens.all[close].end;
        if let Some(unsigned) = self.names.unsigned_type(tokens, open + 1, close) {
            if self.may_precede_cast(before) && self.begins_operand(close + 1) {
                self.insert(end, format!("(::cuda_c::Unsigned<{unsigned}>)"));
            }
        } else if let Some(unsigned) = self.names.unsigned_type(tokens, before, open) {
            let begins = before > 0
                && (is_operator(tokens, before - 1) || tokens.at(before - 1) == "return");
            if begins && !matches!(tokens.at(open + 1), "*" | "&" | ")") && self.is_real(open + 1) {
                self.convert_group(open, close, &unsigned);
            }
        } else if makes_unsigned(tokens.at(before)) {
            let mut first = open + 1;
            while first < close {
                self.value(first);
                first = value_end(tokens, first) + 1;
            }
        }
    }

    /// `static_cast<unsigned>(x)`
    fn static_cast(&mut self, at: usize) {
        let tokens = self.tokens;
        let Some(open) = tokens.behind_angles(at + 1, tokens.len()) else { return };
        let unsigned = self.names.unsigned_type(tokens, at + 2, open - 1);
        let close = tokens.partner(open).filter(|_| tokens.at(open) == "(");
        if let (Some(unsigned), Some(close)) = (unsigned, close) {
            self.convert_group(open, close, &unsigned);
        }
    }

    fn convert_group(&mut self, open: usize, close: usize, unsigned: &str) {
        let (begin, end) = (self.tokens.all[open].end, self.tokens.all[close].start);
        self.insert(begin, format!("(::cuda_c::Unsigned<{unsigned}>)("));
        self.insert(end, ")");
    }

    /// The tokens before a cast: an operator, `return`, or another cast.
    fn may_precede_cast(&self, before: usize) -> bool {
        let tokens = self.tokens;
        match tokens.at(before) {
            "return" | "case" | "else" => true,
            ")" => tokens
                .partner(before)
                .is_some_and(|open| self.names.is_number_type(tokens, open + 1, before)),
            _ => is_operator(tokens, before),
        }
    }

    fn begins_operand(&self, at: usize) -> bool {
        let tokens = self.tokens;
        match tokens.at(at) {
            "sizeof" | "alignof" | "threadIdx" | "blockIdx" | "blockDim" | "gridDim" => false,
            "(" | "-" | "*" => true,
            _ if tokens.is_word(at) => true,
            other => is_real_number(other),
        }
    }

    /// `name = x`, where the name is declared as an unsigned integer.
    fn assignment(&mut self, at: usize) {
        let tokens = self.tokens;
        let is_part = |left: usize| {
            tokens.is_adjacent(left)
                && matches!(
                    tokens.at(left),
                    "=" | "!" | "<" | ">" | "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^"
                )
        };
        let is_plain =
            at > 0 && !is_part(at - 1) && !(tokens.at(at + 1) == "=" && tokens.is_adjacent(at));
        if is_plain && self.names.is_unsigned_place(tokens, at) {
            self.value(at + 1);
        }
    }

    /// Inserts a conversion before a value that may be a floating-point number.
    fn value(&mut self, first: usize) {
        if self.tokens.at(first) != "{" && self.is_real(first) {
            self.insert(self.tokens.all[first].start, VALUE);
        }
    }

    /// Returns true if a value contains a floating-point number, or a name of some.
    fn is_real(&self, first: usize) -> bool {
        let tokens = self.tokens;
        (first..value_end(tokens, first)).any(|at| match tokens.all[at].kind {
            Kind::Word => self.names.is_real(tokens, at),
            Kind::Literal => is_real_number(tokens.at(at)),
            Kind::Mark => false,
        })
    }

    /// `1 << n`, or `x >> (32 - n)` without the other half of a rotation.
    fn shift(&mut self, at: usize) {
        let tokens = self.tokens;
        let sign = tokens.at(at);
        let is_shift = at > 0
            && tokens.at(at + 1) == sign
            && tokens.is_adjacent(at)
            && !matches!(tokens.at(at - 1), "<" | ">" | "operator")
            && !matches!(tokens.at(at + 2), "<" | ">" | "=" | ",");
        let is_literal = tokens.all.get(at + 2).is_none_or(|it| it.kind == Kind::Literal);
        if !is_shift || (is_literal && !self.is_difference(at + 2)) {
            return;
        }
        let is_constant = is_whole_number(tokens.at(at - 1)) && !self.is_template(at, sign);
        let is_half = || {
            self.statement(at).any(|it| {
                let opposite = if sign == "<" { ">" } else { "<" };
                tokens.at(it) == opposite && tokens.at(it + 1) == opposite
            })
        };
        if is_constant || (self.is_difference(at + 2) && !self.is_template(at, sign) && !is_half())
        {
            let sign = sign.repeat(2);
            self.insert(tokens.all[at + 1].end, format!("{DISTANCE}{sign} "));
        }
    }

    /// Returns true for a distance such as `32 - n`, in parentheses or not.
    fn is_difference(&self, first: usize) -> bool {
        let tokens = self.tokens;
        let (first, end) = match tokens.at(first) {
            "(" => (first + 1, tokens.partner(first).unwrap_or(first)),
            _ => (first, value_end(tokens, first)),
        };
        let is_width = is_whole_number(tokens.at(first)) || tokens.at(first) == "warpSize";
        is_width && tokens.at(first + 1) == "-" && first + 2 < end
    }

    /// Returns true if `>>` may end the arguments of two templates.
    fn is_template(&self, at: usize, sign: &str) -> bool {
        let tokens = self.tokens;
        sign == ">"
            && self.statement(at).take_while(|&it| it < at).any(|it| {
                tokens.at(it) == "<" && it > 0 && tokens.is_word(it - 1) && tokens.at(it + 1) != "<"
            })
    }

    /// The tokens of the statement around a place.
    fn statement(&self, at: usize) -> impl Iterator<Item = usize> {
        let tokens = self.tokens;
        let is_end = |&it: &usize| !matches!(tokens.at(it), ";" | "{" | "}");
        let first = (0..at).rev().take_while(is_end).last().unwrap_or(at);
        (first..tokens.len()).take_while(move |&it| !matches!(tokens.at(it), ";" | "{" | "}"))
    }
}

/// Returns true for a mark after which an operand begins.
fn is_operator(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.all[at].kind == Kind::Mark && !matches!(tokens.at(at), ")" | "]" | "}" | "." | "::")
        || matches!(tokens.at(at), "}")
}

/// Returns true for a function that makes a vector of unsigned integers.
fn makes_unsigned(name: &str) -> bool {
    name.strip_prefix("make_").is_some_and(names::is_unsigned_vector)
}

fn is_whole_number(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit()) && !is_real_number(text)
}

fn is_real_number(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit() || it == '.')
        && !text.starts_with("0x")
        && !text.starts_with("0X")
        && text.contains(['.', 'e', 'E', 'f', 'F'])
}

#[cfg(test)]
mod tests {
    use super::defined_out_of_range;

    fn written(text: &str) -> String {
        let result = defined_out_of_range(text).unwrap_or_else(|| text.to_owned());
        result.replace("::cuda_c::", "")
    }

    #[test]
    fn negative_numbers_become_zero() {
        for (body, expected) in [
            ("j = (ushort)x;", "j = value = (ushort)(Unsigned<ushort>)x;"),
            ("(unsigned char)(x * y)", "(unsigned char)(Unsigned<unsigned char>)(x * y)"),
            ("y = (float)(uchar)-x;", "y = (float)(uchar)(Unsigned<uchar>)-x;"),
            ("y = (uint8_t)x[0];", "y = (uint8_t)(Unsigned<uint8_t>)x[0];"),
            (
                "y = static_cast<uint16_t>(x);",
                "y = static_cast<uint16_t>((Unsigned<uint16_t>)(x));",
            ),
            ("y = uchar(x) + unsigned(1);", "y = uchar((Unsigned<uchar>)(x)) + unsigned(1);"),
            ("uchar k = x * 2, m = 3;", "uchar k = value = x * 2, m = 3;"),
            ("for (uchar k = x; k < i; k++) {}", "for (uchar k = value = x; k < i; k++) {}"),
            ("b[i] = 255 * x;", "b[i] = value = 255 * x;"),
            ("(::cuda_c::written<7>(), b[i]) = x;", "(written<7>(), b[i]) = value = x;"),
            ("q->r = .5f; c.x = y;", "q->r = value = .5f; c.x = value = y;"),
            ("i = j = x ? 1 : 2e3;", "i = j = value = x ? 1 : 2e3;"),
            ("c = make_uchar4(x, 0, 1, y);", "c = make_uchar4(value = x, 0, 1, value = y);"),
        ] {
            let head = "struct P { unsigned char r; }; void f(int i, float x, double *y, unsigned char *b) { unsigned short j; uchar4 c; ";
            assert_eq!(written(&format!("{head}{body} }}")), format!("{head}{expected} }}"));
        }
        for (text, expected) in [
            (
                "typedef unsigned char T; void f(float x, T *b) { b[0] = x; }",
                "typedef unsigned char T; void f(float x, T *b) { b[0] = value = x; }",
            ),
            (
                "struct V { T z; }; void f() { Strided<uchar, 2> z(p); z[0] = 2 * .5f; }",
                "struct V { T z; }; void f() { Strided<uchar, 2> z(p); z[0] = value = 2 * .5f; }",
            ),
            (
                "void f() { Strided<uchar, 2> z(p); Strided<const float, 2> x(q); z[0] = x[0]; }",
                "void f() { Strided<uchar, 2> z(p); Strided<const float, 2> x(q); z[0] = value = x[0]; }",
            ),
        ] {
            assert_eq!(written(text), expected);
        }
    }

    #[test]
    fn a_name_that_is_also_declared_as_no_number_is_not_converted_to() {
        let narrow = "void g() { unsigned char t; } void f(float x, unsigned char *h) { ";
        for body in [
            "auto t = cosf(x);",
            "W t = x * 2.f;",
            "half *t; t[0] = x;",
            "std::vector<int> t; t = x;",
            "W t(3); t = 2.f * x;",
            "auto &t = y; t = x;",
            "auto k = [&]() -> const float & { return x; };",
        ] {
            assert_eq!(defined_out_of_range(&format!("{narrow}{body} }}")), None, "{body}");
        }
        assert!(defined_out_of_range(&format!("{narrow}int t = x; h[0] = x; }}")).is_some());
    }

    #[test]
    fn shifts_shift_out() {
        for (body, expected) in [
            ("m = (1u << n) - 1;", "m = (1u << distance << n) - 1;"),
            ("m = ~0 >> n;", "m = ~0 >> distance >> n;"),
            ("m = b << (32 - n);", "m = b << distance << (32 - n);"),
            ("m = b >> warpSize - n;", "m = b >> distance >> warpSize - n;"),
            ("m = 1 << n << k;", "m = 1 << distance << n << k;"),
        ] {
            let result = written(&format!("void f(int n) {{ {body} }}"));
            let result = result.replace("  ", " ");
            assert_eq!(result, format!("void f(int n) {{ {expected} }}"));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for text in [
            "void f(int n) { m = b << 3; m = (b << n) | (b >> (32 - n)); m = 1 << 4; }",
            "void f(int n) { A<B<3>> c; a = sizeof(uint) * 2; f = (void (*)(uint))g; }",
            "void f(uchar i, float x) { uchar k = blockIdx.x * 2 + i; x = i; i += x; i == x; }",
            "void f(float *x) { float y = x[0]; uint *p = q; n = (uint)sizeof(x); auto g = [=](uint i) { }; }",
            "void f(float x, int *q, unsigned k) { int i = (int)x; q[0] = x; k = (unsigned)x; uchar4 c = g(x); uchar &r = x; }",
            "const uint n = (uint)2.5; uint m = 2.5; enum { A = 1 << n };",
            "void f(unsigned i = 2.5) { unsigned a[2] = {1, 2}; }",
            "void f(uint (*g)(uint), uint) { uint h(uint); (uint",
            "void f() { uint i = ; return",
            "void f() { 1 <<",
            "void f() { unsigned(",
            "void f() { static_cast<",
            "void f() { uint x; x =",
            "template <class T> unsigned f(float x) { return",
        ] {
            assert_eq!(defined_out_of_range(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_may_end_anywhere() {
        let text = "typedef unsigned char T; using U = size_t; template <class V, typename W> unsigned f(const float *x) \
            { unsigned a[2], &b = a[0]; uchar4 c = make_uchar4(x[0], 2.5, sinf(1), (T)x[1]); c.x = a[1] = *x; p->r = \
            static_cast<V>(x[0]); a = uint(x) << 3; 1u << n; y >> (32 - n); Strided<const float, 2> z(q); return x[0]; }";
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            for begin in [0, end / 2, end.saturating_sub(9)] {
                let _ = defined_out_of_range(&text[begin..end]);
            }
        }
    }
}

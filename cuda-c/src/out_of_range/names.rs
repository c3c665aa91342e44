//! The types of names, as far as they are numbers.

use crate::tokens::{Tokens, is_in};
use crate::tree::{Declaration, Kind, Scopes};
use std::ops::Range;

/// The type of a name, or of the elements or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// An unsigned integer of 8 or 16 bits.
    Unsigned,
    /// A vector of such integers.
    Vector,
    /// A floating-point number, or a vector of some.
    Real,
    /// Another integer.
    Integer,
    /// A class, `auto` or a parameter of a template.
    Other,
}

/// The names of a program.
pub(super) struct Names<'t, 'a> {
    tokens: &'t Tokens<'a>,
    scopes: Scopes<'t, 'a>,
}

impl<'t, 'a> Names<'t, 'a> {
    pub(super) fn of(tokens: &'t Tokens<'a>) -> Names<'t, 'a> {
        Names { tokens, scopes: Scopes::of(tokens) }
    }

    fn is_type_word(&self, at: usize) -> bool {
        let word = self.tokens.at(at);
        matches!(word, "signed" | "char" | "short" | "int" | "long")
            || is_real_type(word)
            || is_unsigned_vector(word)
            || is_unsigned(word)
            || self.is_alias(at)
    }

    fn declared(&self, at: usize) -> impl Iterator<Item = &Declaration> {
        let all = self.tokens.is_word(at).then(|| self.scopes.named(at));
        all.into_iter().flatten().map(|it| &self.scopes.all[it])
    }

    /// Returns true for a type that the program defines as an unsigned integer of 8 or 16 bits.
    fn is_alias(&self, at: usize) -> bool {
        self.declared(at).any(|it| {
            let Declaration { kind, of, declarator, .. } = it;
            *kind == Kind::Alias
                && declarator.len() == 1
                && !of.contains(&at)
                && of.clone().all(|it| self.is_type_word(it))
                && self.is_narrow(of.clone())
        })
    }

    /// Returns true if the tokens of a range name an unsigned integer of 8 or 16 bits.
    fn is_narrow(&self, range: Range<usize>) -> bool {
        let has = |wanted: &[&str]| range.clone().any(|it| wanted.contains(&self.tokens.at(it)));
        has(&["uchar", "ushort", "uint8_t", "uint16_t"])
            || (has(&["unsigned"]) && has(&["char", "short"]))
            || range.clone().any(|it| self.is_alias(it))
    }

    fn type_of(&self, declared: &Declaration) -> Type {
        let tokens = self.tokens;
        let mut range = declared.of.clone();
        // The arrays of generated kernels, `pygpu::Strided<const float, 2, false> x(...)`, have arguments.
        let open = range.clone().find(|&it| tokens.at(it) == "<");
        range.end = open.filter(|it| tokens.at(it - 1) != "Strided").unwrap_or(range.end);
        let has = |is_kind: &dyn Fn(&str) -> bool| range.clone().any(|it| is_kind(tokens.at(it)));
        match () {
            () if has(&is_unsigned_vector) => Type::Vector,
            () if has(&is_real_type) => Type::Real,
            () if self.is_narrow(range.clone()) => Type::Unsigned,
            () if range.clone().any(|it| self.is_type_word(it)) => Type::Integer,
            () => self.same_as(declared).map_or(Type::Other, |it| self.type_of(it)),
        }
    }

    /// Returns the declaration of `x` for `const auto &y = x;`, as loop variants have it.
    fn same_as(&self, declared: &Declaration) -> Option<&Declaration> {
        let (tokens, sign) = (self.tokens, declared.end);
        let is_name = tokens.at(sign) == "=" && tokens.at(sign + 2) == ";";
        let is_auto = is_name && declared.of.clone().any(|it| tokens.at(it) == "auto");
        // Only an earlier one, so that the search ends.
        let is_earlier = |it: &&Declaration| it.name < declared.name;
        is_auto.then(|| self.declared(sign + 1).find(is_earlier))?
    }

    fn has(&self, at: usize, of: Type) -> bool {
        self.declared(at).any(|it| self.type_of(it) == of)
    }

    /// Returns true for a name of floating-point numbers, or of a function that computes some.
    pub(super) fn is_real(&self, at: usize) -> bool {
        let tokens = self.tokens;
        let name = tokens.at(at);
        // The type of a vector's component is its name's.
        let is_component = at > 0 && tokens.at(at - 1) == "." && is_component(name);
        (!is_component && self.has(at, Type::Real))
            || (tokens.at(at + 1) == "(" && is_in(FUNCTIONS, name.trim_end_matches('f')))
    }

    /// Returns true if the left side of the `=` at a place is declared as an unsigned integer.
    pub(super) fn is_unsigned_place(&self, sign: usize) -> bool {
        let tokens = self.tokens;
        let Some(mut at) = sign.checked_sub(1) else { return false };
        let mut wanted = Type::Unsigned;
        loop {
            while tokens.at(at) == "]" {
                let Some(open) = tokens.partner(at) else { return false };
                let Some(before) = open.checked_sub(1) else { return false };
                at = before;
            }
            if !tokens.is_word(at) || at < 2 {
                return false;
            }
            let object = match (tokens.at(at - 1), tokens.at(at - 2)) {
                (".", _) => Some(at - 2),
                (">", "-") => at.checked_sub(3),
                _ => None,
            };
            match object {
                Some(object) if is_component(tokens.at(at)) && !self.has(at, wanted) => {
                    (at, wanted) = (object, Type::Vector);
                }
                _ => break,
            }
        }
        let is_reference = tokens.at(at - 1) == "&" && tokens.at(at + 1) == "=";
        self.has(at, wanted) && !self.has(at, Type::Other) && !is_reference
    }

    /// Returns the unsigned type of 8 or 16 bits that the tokens of a range name.
    pub(super) fn unsigned_type(&self, first: usize, end: usize) -> Option<String> {
        let words = || (first..end).filter(|&at| self.tokens.at(at) != "const");
        let is_type = words().all(|it| self.is_type_word(it) && !is_real_type(self.tokens.at(it)));
        (is_type && self.is_narrow(first..end))
            .then(|| words().map(|it| self.tokens.at(it)).collect::<Vec<_>>().join(" "))
    }

    /// Returns true if the tokens of a range name a type of numbers.
    pub(super) fn is_number_type(&self, first: usize, end: usize) -> bool {
        first < end && (first..end).all(|at| self.is_type_word(at))
    }
}

/// Functions of `double`. Their names for `float` end with `f`.
const FUNCTIONS: &str = "\
    acos asin atan atan2 cbrt ceil cos cosh erf exp exp10 exp2 fabs floor fma fmax fmin fmod hypot log log10 log2 \
    pow rint round rsqrt sin sinh sqrt tan tanh trunc __cos __exp __fdivide __log __pow __saturate __sin \
    curand_normal curand_uniform";

fn is_component(name: &str) -> bool {
    matches!(name, "x" | "y" | "z" | "w")
}

fn is_real_type(word: &str) -> bool {
    let element = word.strip_suffix(['1', '2', '3', '4']).unwrap_or(word);
    matches!(element, "float" | "double")
}

fn is_unsigned(word: &str) -> bool {
    matches!(
        word,
        "unsigned"
            | "uchar"
            | "ushort"
            | "uint"
            | "ulong"
            | "size_t"
            | "uint8_t"
            | "uint16_t"
            | "uint32_t"
            | "uint64_t"
    )
}

/// Returns true for `uchar4` and similar types.
pub(super) fn is_unsigned_vector(word: &str) -> bool {
    let element = word.strip_suffix(['1', '2', '3', '4']);
    matches!(element, Some("uchar" | "ushort"))
}

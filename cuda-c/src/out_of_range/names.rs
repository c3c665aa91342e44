//! The names that a program declares as unsigned integers or as floating-point numbers, in any scope.

use crate::tokens::Tokens;
use crate::tree::value_end;
use std::collections::HashSet;

/// Names of variables, members and functions, and of types.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    unsigned: HashSet<&'a str>,
    /// Vectors of unsigned integers.
    vectors: HashSet<&'a str>,
    /// Floating-point numbers, and vectors of some.
    reals: HashSet<&'a str>,
    /// Types that the program defines as unsigned integers.
    types: HashSet<&'a str>,
    /// Names that are also declared with types that are no numbers: classes, `auto`, parameters of templates.
    others: HashSet<&'a str>,
    /// Arrays of generated kernels, `pygpu::Strided`.
    strided: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    /// Collects the names that are declared from a token on.
    pub(super) fn of(tokens: &Tokens<'a>, first: usize) -> Names<'a> {
        let mut names = Names::default();
        let of_program = || (first..tokens.len()).filter(|&at| tokens.is_of_program(at));
        for at in of_program() {
            names.types.extend(defined_type(tokens, at));
        }
        for at in of_program() {
            let is_begin = names.is_type_word(tokens.at(at))
                && (at == 0 || !names.is_type_word(tokens.at(at - 1)));
            if is_begin {
                names.declared(tokens, at);
            } else if names.is_of_another_type(tokens, at) {
                names.others.insert(tokens.at(at));
            }
        }
        names
    }

    fn is_type_word(&self, word: &str) -> bool {
        matches!(word, "signed" | "char" | "short" | "int" | "long")
            || is_real_type(word)
            || is_unsigned_vector(word)
            || self.is_unsigned(word)
    }

    fn is_unsigned(&self, word: &str) -> bool {
        is_unsigned(word) || self.types.contains(word)
    }

    /// Returns true if the tokens of a range name an unsigned integer of 8 or 16 bits.
    fn is_narrow(&self, tokens: &Tokens<'_>, first: usize, end: usize) -> bool {
        (first..end).any(|at| self.types.contains(tokens.at(at))) || is_narrow(tokens, first, end)
    }

    /// Returns true for the name in a declaration whose type is no number's.
    fn is_of_another_type(&self, tokens: &Tokens<'_>, at: usize) -> bool {
        let is_name = tokens.is_word(at)
            && matches!(tokens.at(at + 1), "=" | ";" | "," | ")" | "[" | "(" | "{" | ":");
        let Some(of) = (0..at).rev().find(|&it| !is_between(tokens.at(it))) else { return false };
        let word = tokens.at(of);
        let is_type = tokens.is_word(of)
            && !self.is_type_word(word)
            && !matches!(
                word,
                "return" | "else" | "do" | "case" | "goto" | "sizeof" | "new" | "delete"
            );
        let ends_arguments = word == ">" && of > 0 && tokens.at(of - 1) != "-";
        is_name && (is_type || ends_arguments)
    }

    /// Adds the declarators after a type.
    fn declared(&mut self, tokens: &Tokens<'a>, first: usize) {
        let mut at = first;
        while self.is_type_word(tokens.at(at)) {
            at += 1;
        }
        let has = |is_kind: &dyn Fn(&str) -> bool| (first..at).any(|it| is_kind(tokens.at(it)));
        let is_vector = has(&is_unsigned_vector);
        let is_real = has(&is_real_type);
        if !is_vector && !is_real && !self.is_narrow(tokens, first, at) {
            return;
        }
        // The arrays of generated kernels: `pygpu::Strided<const float, 2, false> x(...)`.
        let open = (0..first).rev().find(|&it| tokens.at(it) != "const").unwrap_or(0);
        if open > 0 && tokens.at(open) == "<" && tokens.at(open - 1) == "Strided" {
            let Some(behind) = tokens.behind_angles(open, tokens.len()) else { return };
            at = behind;
            self.strided.insert(tokens.at(at));
        }
        let is_parameter = in_parentheses(tokens, first);
        loop {
            let mut is_reference = false;
            while is_between(tokens.at(at)) {
                is_reference |= tokens.at(at) == "&";
                at += 1;
            }
            let is_name = tokens.is_word(at)
                && matches!(tokens.at(at + 1), "=" | ";" | "," | ")" | "[" | "(" | ":" | "{");
            if !is_name {
                return;
            }
            let names = match (is_vector, is_real) {
                (true, _) => &mut self.vectors,
                (_, true) => &mut self.reals,
                _ => &mut self.unsigned,
            };
            // A local reference has to be bound to the variable itself.
            if is_real || !is_reference || is_parameter {
                names.insert(tokens.at(at));
            }
            at = value_end(tokens, at);
            if tokens.at(at) != "," || is_parameter {
                return;
            }
            at += 1;
        }
    }

    /// Returns true for a name of floating-point numbers, or of a function that computes some.
    pub(super) fn is_real(&self, tokens: &Tokens<'_>, at: usize) -> bool {
        let name = tokens.at(at);
        // The type of a vector's component is its name's.
        let is_component = at > 0 && tokens.at(at - 1) == "." && is_component(name);
        (self.reals.contains(name) && !is_component)
            || (tokens.at(at + 1) == "(" && FUNCTIONS.contains(&name.trim_end_matches('f')))
    }

    /// Returns true if the left side of the `=` at a place is declared as an unsigned integer.
    pub(super) fn is_unsigned_place(&self, tokens: &Tokens<'_>, sign: usize) -> bool {
        let Some(mut at) = sign.checked_sub(1) else { return false };
        // A question about the left side, which ends at its parenthesis.
        let question = tokens.partner(at).filter(|_| tokens.at(at) == ")");
        let end = question.filter(|it| tokens.at(it + 2) == "cuda_c").map_or(sign, |_| at);
        at = end - 1;
        let mut names = &self.unsigned;
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
                Some(object) if is_component(tokens.at(at)) && !names.contains(tokens.at(at)) => {
                    (at, names) = (object, &self.vectors);
                }
                _ => break,
            }
        }
        let is_reference = tokens.at(at - 1) == "&" && tokens.at(at + 1) == "=";
        let name = tokens.at(at);
        let is_array = tokens.at(end - 1) == "]" && self.strided.contains(name);
        names.contains(name) && (is_array || !self.others.contains(name)) && !is_reference
    }

    /// Returns the unsigned type of 8 or 16 bits that the tokens of a range name.
    pub(super) fn unsigned_type(
        &self,
        tokens: &Tokens<'_>,
        first: usize,
        end: usize,
    ) -> Option<String> {
        let words: Vec<&str> =
            (first..end).map(|at| tokens.at(at)).filter(|it| *it != "const").collect();
        let is_type = words.iter().all(|it| self.is_type_word(it) && !is_real_type(it));
        (is_type && self.is_narrow(tokens, first, end)).then(|| words.join(" "))
    }

    /// Returns true if the tokens of a range name a type of numbers.
    pub(super) fn is_number_type(&self, tokens: &Tokens<'_>, first: usize, end: usize) -> bool {
        first < end && (first..end).all(|at| self.is_type_word(tokens.at(at)))
    }
}

/// Functions of `double`. Their names for `float` end with `f`.
const FUNCTIONS: &[&str] = &[
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "fabs",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "hypot",
    "log",
    "log10",
    "log2",
    "pow",
    "rint",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "__cos",
    "__exp",
    "__fdivide",
    "__log",
    "__pow",
    "__saturate",
    "__sin",
    "curand_normal",
    "curand_uniform",
];

/// Returns the type that `typedef unsigned char T;` or `using T = unsigned;` defines.
fn defined_type<'a>(tokens: &Tokens<'a>, at: usize) -> Option<&'a str> {
    let (name, first, end) = match tokens.at(at) {
        "typedef" => {
            let end = (at..tokens.len()).find(|&it| tokens.at(it) == ";")?;
            (end - 1, at + 1, end - 1)
        }
        "using" if tokens.at(at + 2) == "=" => {
            let end = (at..tokens.len()).find(|&it| tokens.at(it) == ";")?;
            (at + 1, at + 3, end)
        }
        _ => return None,
    };
    let is_word = |it: usize| {
        matches!(tokens.at(it), "char" | "short" | "int" | "long") || is_unsigned(tokens.at(it))
    };
    let is_type = (first..end).all(is_word) && is_narrow(tokens, first, end);
    is_type.then(|| tokens.at(name))
}

/// Returns true for a token of a function's parameters.
fn in_parentheses(tokens: &Tokens<'_>, inside: usize) -> bool {
    let mut at = inside;
    while at > 0 {
        at -= 1;
        match tokens.at(at) {
            "(" => return at > 0 && tokens.at(at - 1) != "for",
            ";" | "{" | "}" => return false,
            ")" | "]" => at = tokens.partner(at).unwrap_or(0),
            _ => {}
        }
    }
    false
}

/// Returns true for what may stand between a type and the name that it declares.
fn is_between(word: &str) -> bool {
    matches!(word, "*" | "&" | "const" | "volatile" | "__restrict__" | "__restrict" | "restrict")
}

fn is_component(name: &str) -> bool {
    matches!(name, "x" | "y" | "z" | "w")
}

fn is_real_type(word: &str) -> bool {
    let element = word.strip_suffix(['1', '2', '3', '4']).unwrap_or(word);
    matches!(element, "float" | "double")
}

/// Returns true if C's words in a range name an unsigned integer of 8 or 16 bits.
fn is_narrow(tokens: &Tokens<'_>, first: usize, end: usize) -> bool {
    let has = |wanted: &[&str]| (first..end).any(|at| wanted.contains(&tokens.at(at)));
    has(&["uchar", "ushort", "uint8_t", "uint16_t"])
        || (has(&["unsigned"]) && has(&["char", "short"]))
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

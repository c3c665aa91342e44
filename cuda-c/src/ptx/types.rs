//! The types of PTX, and calls of the headers' functions for them.

use std::fmt::Write as _;

/// The namespace of the headers' functions.
pub(super) const HEADER: &str = "::cuda_c::ptx::";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Bits,
    Integer,
    Float,
    /// A pair of 16-bit numbers, or a format that registers cannot be declared with.
    Packed,
    Predicate,
}

/// A type. The headers use the same name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) name: &'static str,
    pub(super) bits: u32,
    pub(super) class: Class,
}

const fn of(name: &'static str, bits: u32, class: Class) -> Type {
    Type { name, bits, class }
}

const TYPES: [Type; 24] = [
    of("b8", 8, Class::Bits),
    of("b16", 16, Class::Bits),
    of("b32", 32, Class::Bits),
    of("b64", 64, Class::Bits),
    of("b128", 128, Class::Bits),
    of("u8", 8, Class::Integer),
    of("u16", 16, Class::Integer),
    of("u32", 32, Class::Integer),
    of("u64", 64, Class::Integer),
    of("s8", 8, Class::Integer),
    of("s16", 16, Class::Integer),
    of("s32", 32, Class::Integer),
    of("s64", 64, Class::Integer),
    of("f16", 16, Class::Float),
    of("f32", 32, Class::Float),
    of("f64", 64, Class::Float),
    of("f16x2", 32, Class::Packed),
    of("bf16", 16, Class::Packed),
    of("bf16x2", 32, Class::Packed),
    of("u16x2", 32, Class::Packed),
    of("s16x2", 32, Class::Packed),
    of("tf32", 32, Class::Packed),
    of("pred", 1, Class::Predicate),
    // The result type of instructions without a result.
    of("none", 0, Class::Packed),
];

impl Type {
    pub(super) fn named(name: &str) -> Option<Type> {
        TYPES.into_iter().find(|it| it.name == name)
    }

    /// Returns the bit type in which a register of this type is stored.
    pub(super) fn register(self) -> Type {
        let name = match self.bits {
            1 => "pred",
            8 => "b8",
            16 => "b16",
            64 => "b64",
            128 => "b128",
            _ => "b32",
        };
        Type::named(name).unwrap_or(self)
    }

    /// Returns the integer type with twice the number of bits.
    pub(super) fn doubled(self) -> Option<Type> {
        let letter = self.name.chars().next()?;
        Type::named(&format!("{letter}{}", 2 * self.bits))
    }

    /// Returns true if an instruction of this type accepts a register of another type: of the same size or,
    /// if `wider`, of a larger size.
    pub(super) fn takes(self, register: Type, wider: bool) -> bool {
        let both = (self.class, register.class);
        let is_alike = match both {
            (Class::Predicate, _) | (_, Class::Predicate) => both.0 == both.1,
            (Class::Bits, _) | (_, Class::Bits) => true,
            _ => both.0 == both.1,
        };
        is_alike
            && match wider {
                // A float in another format has a different value, so its size must be the same.
                true if both != (Class::Float, Class::Float) => register.bits >= self.bits,
                _ => register.bits == self.bits,
            }
    }
}

/// Returns a call of a function of the headers.
pub(super) fn function(
    name: &str,
    modifiers: &[&str],
    types: &[Type],
    values: &[String],
) -> String {
    // These words are operators in C++.
    let underscore = if matches!(name, "and" | "or" | "xor" | "not") { "_" } else { "" };
    let mut arguments = modes(modifiers);
    for kind in types {
        let _ = write!(arguments, ", {HEADER}{}", kind.name);
    }
    format!("{HEADER}{name}{underscore}<{arguments}>({})", values.join(", "))
}

/// Returns modifiers as a template argument.
pub(super) fn modes(modifiers: &[&str]) -> String {
    let named = |it: &&str| format!("{HEADER}m_{}", it.replace("::", "_"));
    let all: Vec<String> = modifiers.iter().map(named).collect();
    format!("{HEADER}modes<{}>", all.join(", "))
}

//! Writes operands of instructions as C++ expressions: arguments, results and addresses.

use super::parser::{Offset, Operand, Value};
use super::special;
use super::types::modes;
use super::types::{Class, HEADER, Type};
use super::writer::{Register, Writer};
use std::fmt::Write as _;

/// The destination of a result; `None` for `_`.
pub(super) struct Target(Option<Register>);

impl Writer<'_, '_> {
    /// Returns the register that an operand names, or `None` if it does not name one.
    fn named(&mut self, value: &Value) -> Result<Option<Register>, String> {
        match value {
            Value::Word(name) => Ok(self.find(name)),
            Value::Bound(number) => Ok(self.bound.get(*number).cloned().flatten()),
            _ => Ok(None),
        }
    }

    /// Returns the expression of an argument of a type. If `wider` is true, its register may have more bits.
    pub(super) fn argument(
        &mut self,
        operand: &Operand,
        kind: Type,
        wider: bool,
    ) -> Result<String, String> {
        if kind.class == Class::Predicate {
            return self.predicate(operand);
        }
        if operand.is_negated {
            return Err("negates an operand that is not a predicate".into());
        }
        self.value(operand, kind, wider)
    }

    /// Like `argument`, for a predicate, which may be negated.
    pub(super) fn predicate(&mut self, operand: &Operand) -> Result<String, String> {
        let kind = Type::named("pred").unwrap_or_else(|| unreachable!("a type of the table"));
        let value = self.value(operand, kind, false)?;
        Ok(if operand.is_negated { format!("!{value}") } else { value })
    }

    fn value(&mut self, operand: &Operand, kind: Type, wider: bool) -> Result<String, String> {
        let as_kind = |text: &str| format!("{HEADER}as<{HEADER}{}>({text})", kind.name);
        if let Some(register) = self.named(&operand.value)? {
            if operand.selector.is_some() {
                return Err("selects a part of a register; this instruction cannot do so".into());
            }
            return match kind.takes(register.kind, wider) {
                true => Ok(as_kind(&register.variable)),
                false => Err(mismatch(register.kind, kind)),
            };
        }
        match &operand.value {
            Value::Word(name) => {
                let found = special::register(name, operand.selector.as_deref());
                let (text, own) = found.ok_or_else(|| unknown(name))?;
                if !self.reads_special {
                    return Err(format!("reads the special register {name}; use mov"));
                }
                let own = Type::named(own).unwrap_or(kind);
                // Special registers used to have 16 bits.
                match kind.takes(own, wider || kind.bits == 16) {
                    true => Ok(as_kind(text)),
                    false => Err(mismatch(own, kind)),
                }
            }
            Value::Bound(_) if kind.class == Class::Float => {
                Err(format!("has an integer for a number of type .{}", kind.name))
            }
            Value::Bound(number) if kind.class == Class::Predicate => {
                Ok(format!("(gpuarray_v{number} != 0)"))
            }
            Value::Bound(number) => Ok(as_kind(&format!("({HEADER}b64)gpuarray_v{number}"))),
            Value::Integer(value) if kind.class == Class::Predicate => {
                Ok(if *value != 0 { "true".into() } else { "false".into() })
            }
            Value::Integer(value) if kind.class != Class::Float => {
                Ok(as_kind(&literal(*value as u64)))
            }
            Value::Integer(_) => Err(format!("has an integer for a number of type .{}", kind.name)),
            Value::Single(bits) => match (kind.class, kind.bits) {
                (Class::Float, 64) => {
                    Ok(as_kind(&literal(f64::from(f32::from_bits(*bits)).to_bits())))
                }
                (Class::Float | Class::Bits, 32) => Ok(as_kind(&literal(u64::from(*bits)))),
                _ => Err(format!("has a float for a number of type .{}", kind.name)),
            },
            Value::Double(value) => match (kind.class, kind.bits) {
                (Class::Float, 32) => Ok(as_kind(&literal(u64::from((*value as f32).to_bits())))),
                (Class::Float | Class::Bits, 64) => Ok(as_kind(&literal(value.to_bits()))),
                _ => Err(format!("has a double for a number of type .{}", kind.name)),
            },
            _ => Err("has an operand of a form that it does not take".into()),
        }
    }

    /// Returns the destination for a result of a type. If `wider` is true, its register may have more bits.
    pub(super) fn target(
        &mut self,
        operand: &Operand,
        kind: Type,
        wider: bool,
    ) -> Result<Target, String> {
        if operand.value == Value::Word("_".to_owned()) {
            return Ok(Target(None));
        }
        let is_plain = !operand.is_negated && operand.selector.is_none();
        let register = self.named(&operand.value)?.filter(|_| is_plain);
        let register = register.ok_or_else(|| match &operand.value {
            Value::Word(name) => unknown(name),
            _ => "has a result that is no register".to_owned(),
        })?;
        match kind.takes(register.kind, wider) {
            true => Ok(Target(Some(register))),
            false => Err(mismatch(register.kind, kind)),
        }
    }

    /// Assigns an expression to a destination.
    pub(super) fn assign(&mut self, target: &Target, expression: &str) {
        let _ = match &target.0 {
            Some(Register { variable, kind }) => {
                let bits = kind.register().name;
                write!(self.body, "{variable} = {HEADER}put<{HEADER}{bits}>({expression}); ")
            }
            None => write!(self.body, "(void)({expression}); "),
        };
    }

    /// Returns the expression of an address. If `is_narrow` is true, a 32-bit address is allowed.
    pub(super) fn address(&mut self, operand: &Operand, is_narrow: bool) -> Result<String, String> {
        let Value::Address { base, offset } = &operand.value else {
            return Err("has no address in brackets".into());
        };
        let (narrow, wide) = (Type::named("b32"), Type::named("b64"));
        let register = self.named(&base.value)?;
        let is_32 = register.is_some_and(|it| it.kind.bits == 32) && is_narrow;
        let kind = if is_32 { narrow } else { wide };
        let kind = kind.unwrap_or_else(|| unreachable!("a type of the table"));
        let base = self.argument(base, kind, false)?;
        let offset = match offset {
            Offset::Constant(0) => String::new(),
            Offset::Constant(value) => format!(" + {}", literal(*value as u64)),
            Offset::Bound(number) => {
                if self.bound.get(*number).is_some_and(Option::is_some) {
                    return Err("adds a register to an address; it can add a constant".into());
                }
                format!(" + ({HEADER}b64)gpuarray_v{number}")
            }
        };
        Ok(format!("({HEADER}b64){base}{offset}"))
    }

    /// Returns the expression of a pointer to an element of a type of the headers.
    pub(super) fn pointer(
        &mut self,
        operand: &Operand,
        element: &str,
        is_shared: bool,
    ) -> Result<String, String> {
        let address = self.address(operand, is_shared)?;
        let space = modes(if is_shared { &["shared"] } else { &[] });
        Ok(format!("{HEADER}at<{space}, {HEADER}{element}>({address})"))
    }

    /// Returns the number of bits of the register that an operand names.
    pub(super) fn bits(&mut self, operand: &Operand) -> Option<u32> {
        self.named(&operand.value).ok().flatten().map(|it| it.kind.bits)
    }
}

/// Returns a C++ literal with these bits.
fn literal(value: u64) -> String {
    format!("{value:#x}ull")
}

fn mismatch(register: Type, kind: Type) -> String {
    format!("takes .{}, and the operand is .{}", kind.name, register.name)
}

fn unknown(name: &str) -> String {
    format!(
        "names {name}, which is no register here: a register is known in the asm statement that declares it"
    )
}

//! The registers of statements, as variables that hold bits.
//!
//! Registers that a statement declares outside of braces are also visible to later statements. Their
//! variables are declared before the statement's block, in the enclosing block of the program.

use super::types::{HEADER, Type};
use super::writer::{Family, Register, Writer};
use std::fmt::Write as _;

/// The maximum count in `name<count>`.
const MOST: u64 = 1 << 16;

impl Writer<'_, '_> {
    pub(super) fn declare(
        &mut self,
        kind: &str,
        names: &[(String, Option<u64>)],
    ) -> Result<(), String> {
        let known = Type::named(kind).filter(|it| {
            it.bits > 0 && !matches!(kind, "tf32" | "bf16" | "bf16x2" | "u16x2" | "s16x2")
        });
        let kind = known.ok_or_else(|| {
            format!("inline PTX: there are no registers of type .{kind} on the host; allowed are .pred, .b8 to .b128, .u8 to .u64, .s8 to .s64, .f16, .f16x2, .f32 and .f64")
        })?;
        // After `if (...)`, a declaration would take the place of the only statement.
        let is_shared = self.scopes.len() == 2 && self.statement.is_among_others;
        let bits = kind.register().name;
        for (name, count) in names {
            let variable = is_shared.then(|| {
                let place = self.shared.matches(';').count();
                format!("gpuarray_s{}_{place}", self.number)
            });
            let scope = self.scopes.last_mut();
            match (count, &variable, scope) {
                (None, Some(variable), Some(scope)) => {
                    let _ =
                        write!(self.shared, "{HEADER}{bits} {variable} __attribute__((unused)); ");
                    let register = Register { variable: variable.clone(), kind };
                    scope.registers.insert(name.clone(), register);
                }
                (None, ..) => {
                    self.register(name, kind);
                }
                (Some(count), array, Some(scope)) => {
                    if *count > MOST {
                        return Err(format!(
                            "inline PTX: {name}<{count}> is more than {MOST} registers"
                        ));
                    }
                    if let Some(array) = array {
                        let count = (*count).max(1);
                        let _ = write!(
                            self.shared,
                            "{HEADER}{bits} {array}[{count}] __attribute__((unused)); "
                        );
                    }
                    let (prefix, array) = (name.clone(), array.clone());
                    scope.families.push(Family { prefix, count: *count, kind, array });
                }
                (Some(_), _, None) => {}
            }
        }
        Ok(())
    }

    /// Declares a register in the innermost scope.
    fn register(&mut self, name: &str, kind: Type) -> Register {
        let variable = self.fresh();
        let _ = write!(
            self.declarations,
            "{HEADER}{} {variable} __attribute__((unused)) = 0; ",
            kind.register().name
        );
        let register = Register { variable, kind };
        if let Some(scope) = self.scopes.last_mut() {
            scope.registers.insert(name.to_owned(), register.clone());
        }
        register
    }

    pub(super) fn find(&mut self, name: &str) -> Option<Register> {
        for at in (0..self.scopes.len()).rev() {
            if let Some(register) = self.scopes[at].registers.get(name) {
                return Some(register.clone());
            }
            let of_family = self.scopes[at].families.iter().find_map(|family| {
                let digits = name.strip_prefix(family.prefix.as_str())?;
                let is_plain = digits == "0" || !digits.starts_with('0');
                let number: u64 = digits.parse().ok().filter(|_| is_plain)?;
                (number < family.count).then(|| (family.clone(), number))
            });
            match of_family {
                Some((Family { array: Some(array), kind, .. }, number)) => {
                    return Some(Register { variable: format!("{array}[{number}]"), kind });
                }
                Some((Family { kind, .. }, _)) => {
                    let register = self.register(name, kind);
                    // The register belongs to the scope that declares its family.
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.registers.remove(name);
                    }
                    self.scopes[at].registers.insert(name.to_owned(), register.clone());
                    return Some(register);
                }
                None => {}
            }
        }
        None
    }
}

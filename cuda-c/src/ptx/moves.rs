//! Writes `mov`, which also packs and unpacks, and `cvt`, the only instruction that accepts registers of
//! other sizes.

use super::parser::{Instruction, Operand, Value};
use super::special::unknown;
use super::types::{Class, HEADER, Type, function};
use super::writer::Writer;

/// Writes `mov`.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn mov(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let [name] = instruction.modifiers.as_slice() else { return Err(unknown(instruction)) };
    let kind = Type::named(name).filter(|it| it.class != Class::Packed && it.bits > 0);
    let kind = kind.ok_or_else(|| unknown(instruction))?;
    let operands = instruction.operands()?;
    let [to, from] = operands.as_slice() else { return Err("takes two operands".into()) };
    match (&to.value, &from.value) {
        (Value::Vector(parts), _) => {
            let whole = writer.argument(from, kind, false)?;
            unpack(writer, kind, parts, &whole)
        }
        (_, Value::Vector(parts)) => {
            let target = writer.target(to, kind, false)?;
            let whole = pack(writer, kind, parts)?;
            writer.assign(&target, &whole);
            Ok(())
        }
        _ => {
            let target = writer.target(to, kind, false)?;
            let value = match kind.class {
                Class::Predicate => writer.predicate(from)?,
                _ => writer.argument(from, kind, false)?,
            };
            writer.assign(&target, &value);
            Ok(())
        }
    }
}

/// Returns the type of each of `count` parts of a type.
fn part_of(kind: Type, count: usize) -> Result<Type, String> {
    let bits =
        (kind.class == Class::Bits && matches!(count, 2 | 4)).then(|| kind.bits / count as u32);
    bits.and_then(|it| Type::named(&format!("b{it}"))).ok_or_else(|| {
        format!("cannot make {count} parts of .{}; allowed are 2 or 4 of a type .b", kind.name)
    })
}

fn unpack(
    writer: &mut Writer<'_, '_>,
    kind: Type,
    parts: &[Operand],
    whole: &str,
) -> Result<(), String> {
    let part = part_of(kind, parts.len())?;
    let targets: Result<Vec<_>, _> =
        parts.iter().map(|it| writer.target(it, part, false)).collect();
    // The register that is unpacked may also be a destination.
    writer.body.push_str(&format!("const auto gpuarray_whole = {whole}; "));
    for (number, target) in targets?.iter().enumerate() {
        let shift = number as u32 * part.bits;
        writer.assign(target, &format!("({HEADER}{})(gpuarray_whole >> {shift})", part.name));
    }
    Ok(())
}

fn pack(writer: &mut Writer<'_, '_>, kind: Type, parts: &[Operand]) -> Result<String, String> {
    let part = part_of(kind, parts.len())?;
    let mut terms = Vec::new();
    for (number, operand) in parts.iter().enumerate() {
        let value = writer.argument(operand, part, false)?;
        terms.push(format!("({HEADER}{}){value} << {}", kind.name, number as u32 * part.bits));
    }
    Ok(format!("({HEADER}{})({})", kind.name, terms.join(" | ")))
}

/// Writes `cvt`.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn cvt(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let all = &instruction.modifiers;
    if all.first().is_some_and(|it| it == "pack") || all.iter().any(|it| it.ends_with("x2")) {
        return writer.of_table("cvt", all, instruction);
    }
    let [modifiers @ .., to, from] = all.as_slice() else { return Err(unknown(instruction)) };
    let number = |name: &str| {
        let allowed = |it: &Type| {
            matches!(it.class, Class::Integer | Class::Float) || matches!(it.name, "bf16" | "tf32")
        };
        Type::named(name).filter(allowed)
    };
    let (Some(to), Some(from)) = (number(to), number(from)) else {
        return Err(unknown(instruction));
    };
    let modifiers: Vec<&str> = modifiers.iter().map(String::as_str).collect();
    let is_known = |it: &&str| {
        matches!(
            *it,
            "rn" | "rz"
                | "rm"
                | "rp"
                | "rni"
                | "rzi"
                | "rmi"
                | "rpi"
                | "rna"
                | "ftz"
                | "sat"
                | "relu"
        )
    };
    if !modifiers.iter().all(is_known) {
        return Err(unknown(instruction));
    }
    check_rounding(&modifiers, to, from)?;
    if modifiers.contains(&"sat") && holds_all(to, from) {
        return Err("has .sat, but no number is out of range".into());
    }
    let operands = instruction.operands()?;
    let [target, value] = operands.as_slice() else { return Err("takes two operands".into()) };
    // A TF32 result is kept in a 32-bit register.
    let result = if to.name == "tf32" { Type::named("b32").unwrap_or(to) } else { to };
    let target = writer.target(target, result, true)?;
    let value = writer.argument(value, from, true)?;
    writer.assign(&target, &function("cvt", &modifiers, &[to, from], &[value]));
    Ok(())
}

/// Returns true if an integer type can represent all values of another one.
fn holds_all(to: Type, from: Type) -> bool {
    let is_signed = |it: Type| it.name.starts_with('s');
    let are_integers = to.class == Class::Integer && from.class == Class::Integer;
    are_integers
        && match (is_signed(to), is_signed(from)) {
            (true, false) => to.bits > from.bits,
            (false, true) => false,
            _ => to.bits >= from.bits,
        }
}

/// Checks that a conversion that may lose precision states its rounding.
fn check_rounding(modifiers: &[&str], to: Type, from: Type) -> Result<(), String> {
    let roundings = ["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna"];
    if modifiers.iter().filter(|it| roundings.contains(it)).count() > 1 {
        return Err("rounds in more than one way".into());
    }
    if to.name == "tf32"
        && (from.name != "f32" || modifiers.iter().any(|it| matches!(*it, "rm" | "rp")))
    {
        return Err("is not supported; to .tf32, use .rna, .rn or .rz from .f32".into());
    }
    let to_integer = modifiers.iter().any(|it| matches!(*it, "rni" | "rzi" | "rmi" | "rpi"));
    let to_float = modifiers.iter().any(|it| matches!(*it, "rn" | "rz" | "rm" | "rp" | "rna"));
    let is_integer = |it: Type| it.class == Class::Integer;
    let narrows = !is_integer(to)
        && (is_integer(from)
            || from.bits > to.bits
            || to.name == "tf32"
            || (from.bits == to.bits && from.name != to.name));
    if modifiers.contains(&"relu") && !matches!(to.name, "f16" | "bf16" | "tf32") {
        return Err("has .relu for another type; allowed are .f16, .bf16 and .tf32".into());
    }
    if modifiers.contains(&"rna") && to.name != "tf32" {
        return Err("rounds by .rna to other types than .tf32".into());
    }
    match (is_integer(to), is_integer(from)) {
        (true, true) if to_integer || to_float => Err("rounds integers".into()),
        (true, false) if !to_integer => {
            Err("says no rounding to integers; allowed are .rni, .rzi, .rmi and .rpi".into())
        }
        (false, _) if narrows && !to_float => {
            Err("does not name a rounding; allowed are .rn, .rz, .rm and .rp".into())
        }
        (false, false) if !narrows && to_float => Err("rounds where nothing is lost".into()),
        (false, false) if to_integer && to.name != from.name => {
            Err("rounds to whole numbers of another type".into())
        }
        (false, true) if to_integer => Err("rounds to integers what is one".into()),
        _ => Ok(()),
    }
}

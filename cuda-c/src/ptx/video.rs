//! Video instructions, which work on parts of words and may apply a second operation.

use super::parser::{Instruction, Operand, Value};
use super::special::unknown;
use super::types::{Type, function};
use super::writer::Writer;

/// The names without the number of lanes.
const NAMES: [&str; 10] =
    ["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vavrg", "vshl", "vshr", "vmad"];

/// Returns the operation, and its number of lanes: 1, 2 or 4.
fn split(name: &str) -> Option<(&str, u32)> {
    let (operation, lanes) = match name.strip_suffix(['2', '4']) {
        Some(operation) => (operation, if name.ends_with('2') { 2 } else { 4 }),
        None => (name, 1),
    };
    let has_lanes = !matches!(operation, "vshl" | "vshr" | "vmad");
    let fits = if lanes == 1 { operation != "vavrg" } else { has_lanes };
    (NAMES.contains(&operation) && fits).then_some((operation, lanes))
}

pub(super) fn is_video(name: &str) -> bool {
    split(name).is_some()
}

/// Returns the digits of a selector, from the lowest part upwards.
fn digits(selector: &str, letter: char, most: u32) -> Option<Vec<u32>> {
    let digits = selector.strip_prefix(letter)?;
    let all: Option<Vec<u32>> = digits.chars().rev().map(|it| it.to_digit(most)).collect();
    all.filter(|it| !it.is_empty())
}

/// Packs the digits into a number, four bits each.
fn packed(digits: &[u32]) -> String {
    let value = digits.iter().rev().fold(0_u32, |all, digit| all << 4 | digit);
    format!("{value:#x}u")
}

/// Writes a video instruction.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn write(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let (operation, lanes) = split(&instruction.name).ok_or_else(|| unknown(instruction))?;
    let mut types = Vec::new();
    let mut modifiers = Vec::new();
    for name in &instruction.modifiers {
        match Type::named(name).filter(|it| matches!(it.name, "u32" | "s32")) {
            Some(kind) if modifiers.is_empty() => types.push(kind),
            _ => modifiers.push(name.as_str()),
        }
    }
    // The result of a comparison and the distance of a shift are unsigned.
    let is_set = operation == "vset";
    let word = |name| Type::named(name).unwrap_or_else(|| unreachable!("a type of the table"));
    if is_set {
        types.insert(0, word("u32"));
    }
    let comparisons = modifiers
        .iter()
        .filter(|it| matches!(**it, "eq" | "ne" | "lt" | "le" | "gt" | "ge"))
        .count();
    let seconds: Vec<&str> =
        modifiers.iter().copied().filter(|it| matches!(*it, "add" | "min" | "max")).collect();
    let is_known = |it: &&str| match *it {
        "sat" => !is_set,
        "clamp" | "wrap" => matches!(operation, "vshl" | "vshr"),
        "po" | "shr7" | "shr15" => operation == "vmad",
        "add" => true,
        "min" | "max" => lanes == 1,
        _ => is_set,
    };
    let is_shift = matches!(operation, "vshl" | "vshr");
    let has_mode = modifiers.iter().any(|it| matches!(*it, "clamp" | "wrap"));
    if is_shift && (!has_mode || types.get(2).is_none_or(|it| it.name != "u32")) {
        return Err(unknown(instruction));
    }
    if types.len() != 3
        || !modifiers.iter().all(is_known)
        || comparisons != usize::from(is_set)
        || seconds.len() > 1
    {
        return Err(unknown(instruction));
    }
    let mut operands = instruction.operands()?;
    if operation == "vmad" {
        modifiers.extend(signs(&mut operands, modifiers.contains(&"po"))?);
    }
    let selected = operands.first().is_some_and(|it| it.selector.is_some());
    let wanted =
        3 + usize::from(lanes > 1 || operation == "vmad" || !seconds.is_empty() || selected);
    if operands.len() != wanted || (lanes == 1 && selected && !seconds.is_empty()) {
        return Err(format!("has {} operands; it takes {wanted}", operands.len()));
    }
    let mut values = Vec::new();
    let mut plain = |operand: &Operand, kind: Type| {
        let operand = Operand { selector: None, ..operand.clone() };
        writer.argument(&operand, kind, false)
    };
    let (a, b) = (plain(&operands[1], types[1])?, plain(&operands[2], types[2])?);
    let c = match operands.get(3) {
        Some(operand) => plain(operand, types[0])?,
        None => "0".to_owned(),
    };
    let target =
        writer.target(&Operand { selector: None, ..operands[0].clone() }, types[0], false)?;
    values.extend([a, b, c]);
    for (number, operand) in operands.iter().take(3).enumerate() {
        values.push(selector(operand, lanes, number).ok_or("selects parts that it does not have")?);
    }
    let name = if lanes == 1 { format!("video_{operation}") } else { format!("simd_{operation}") };
    let lanes = format!("lanes{lanes}");
    modifiers.push(&lanes);
    let expression = function(&name, &modifiers, &types, &values);
    writer.assign(&target, &expression);
    Ok(())
}

/// Removes the signs from the operands of a multiply-add, and returns the modifier with the same effect.
fn signs(operands: &mut [Operand], is_plus_one: bool) -> Result<Option<&'static str>, String> {
    let mut minus = [false; 3];
    for (operand, is_minus) in operands.iter_mut().skip(1).zip(&mut minus) {
        if let Value::Minus(inner) = &operand.value {
            *operand = (**inner).clone();
            *is_minus = true;
        }
    }
    match (minus, is_plus_one) {
        ([false, false, false], _) => Ok(None),
        (_, true) => Err("has an operand with a sign, which .po excludes".into()),
        ([a, b, false], _) => Ok((a != b).then_some("minus_product")),
        ([a, b, true], _) if a == b => Ok(Some("minus_c")),
        _ => Err("negates its product and what it adds; it can negate one of them".into()),
    }
}

/// Returns the argument for an operand's selector. For one lane it is the position and width of the part,
/// otherwise the digits of the parts or a mask of results.
fn selector(operand: &Operand, lanes: u32, number: usize) -> Option<String> {
    let (letter, parts) = if lanes == 4 { ('b', 4) } else { ('h', 2) };
    let Some(selector) = operand.selector.as_deref() else {
        return Some(match (lanes, number) {
            (1, _) => "0x2000u".to_owned(),
            (_, 0) => format!("{:#x}u", (1 << parts) - 1),
            (_, 1) => packed(&(0..parts).collect::<Vec<_>>()),
            _ => packed(&(parts..2 * parts).collect::<Vec<_>>()),
        });
    };
    if lanes == 1 {
        let (bits, part) = match digits(selector, 'b', 4) {
            Some(part) => (8, part),
            None => (16, digits(selector, 'h', 2)?),
        };
        let [part] = part.as_slice() else { return None };
        return Some(format!("{:#x}u", (bits << 8) | (part * bits)));
    }
    if number == 0 {
        let all = digits(selector, letter, parts)?;
        return Some(format!("{:#x}u", all.iter().fold(0, |mask, it| mask | 1 << it)));
    }
    let all = digits(selector, letter, 2 * parts)?;
    (all.len() == parts as usize).then(|| packed(&all))
}

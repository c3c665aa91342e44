//! Writes memory accesses.
//!
//! Plain accesses are expressions on the program's own line, so that checks report that line.

use super::parser::{Instruction, Operand, Value};
use super::special::unknown;
use super::types::{Class, HEADER, Type, function, modes};
use super::writer::Writer;
use std::fmt::Write as _;

/// The modifiers of an access, except its type.
struct Modifiers<'i> {
    is_shared: bool,
    is_volatile: bool,
    /// Acquire, release or acq_rel. For other accesses that must not be optimised away, relaxed.
    order: Option<&'static str>,
    /// True if a cache policy follows the operands.
    has_policy: bool,
    /// The number of elements of a vector.
    count: Option<usize>,
    others: Vec<&'i str>,
}

/// Reads the modifiers before the type.
fn read<'i>(modifiers: &'i [String]) -> Modifiers<'i> {
    let mut found = Modifiers {
        is_shared: false,
        is_volatile: false,
        order: None,
        has_policy: false,
        count: None,
        others: Vec::new(),
    };
    for modifier in modifiers {
        match modifier.as_str() {
            "shared" | "shared::cta" => found.is_shared = true,
            "global" | "const" | "local" => {}
            "weak" | "cta" | "cluster" | "gpu" | "sys" => {}
            "volatile" => {
                found.order = Some("relaxed");
                found.is_volatile = true;
            }
            "relaxed" | "mmio" => found.order = Some("relaxed"),
            "acquire" => found.order = Some("acquire"),
            "release" => found.order = Some("release"),
            "acq_rel" => found.order = Some("acq_rel"),
            "v2" => found.count = Some(2),
            "v4" => found.count = Some(4),
            "v8" => found.count = Some(8),
            // Cache hints.
            "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "nc" => {}
            "L2::cache_hint" => found.has_policy = true,
            hint if hint.starts_with("L1::") || hint.starts_with("L2::") => {}
            other => found.others.push(other),
        }
    }
    found
}

impl Modifiers<'_> {
    /// Returns the expression of a pointer.
    fn pointer(
        &self,
        writer: &mut Writer<'_, '_>,
        address: &Operand,
        kind: Type,
    ) -> Result<String, String> {
        let whole = match self.count {
            Some(count) => format!("vec<{HEADER}{}, {count}>", kind.name),
            None => kind.name.to_owned(),
        };
        writer.pointer(address, &whole, self.is_shared)
    }

    /// Returns the operands without the cache policy.
    fn operands(&self, instruction: &Instruction, count: usize) -> Result<Vec<Operand>, String> {
        let operands = instruction.operands()?;
        match operands.len() == count + usize::from(self.has_policy) {
            true => Ok(operands),
            false => Err(format!("has {} operands; it takes {count}", operands.len())),
        }
    }
}

/// Returns the type of an access: any type that fits into a register.
fn accessed(instruction: &Instruction) -> Result<(&[String], Type), String> {
    let split = instruction.modifiers.split_last();
    let (name, modifiers) = split.ok_or_else(|| unknown(instruction))?;
    let allowed = |it: &Type| {
        matches!(it.class, Class::Bits | Class::Integer | Class::Float) && it.name != "f16"
    };
    let kind = Type::named(name).filter(allowed).ok_or_else(|| unknown(instruction))?;
    Ok((modifiers, kind))
}

/// Returns the elements of a vector, or the single operand.
fn parts(operand: &Operand, count: Option<usize>) -> Result<Vec<&Operand>, String> {
    match (&operand.value, count) {
        (Value::Vector(parts), Some(count)) if parts.len() == count => Ok(parts.iter().collect()),
        (Value::Vector(_), None) => Err("has a vector, and says neither .v2 nor .v4".into()),
        (_, Some(count)) => Err(format!("takes {count} numbers in braces")),
        (_, None) => Ok(vec![operand]),
    }
}

/// Writes `ld`.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn load(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let (modifiers, kind) = accessed(instruction)?;
    let access = read(modifiers);
    if !access.others.is_empty() || matches!(access.order, Some("release" | "acq_rel")) {
        return Err(unknown(instruction));
    }
    let operands = access.operands(instruction, 2)?;
    let pointer = access.pointer(writer, &operands[1], kind)?;
    let mut targets = Vec::new();
    for part in parts(&operands[0], access.count)? {
        targets.push(writer.target(part, kind, true)?);
    }
    let _ = write!(writer.body, "auto* const gpuarray_p = {pointer}; ");
    for (number, target) in targets.iter().enumerate() {
        let place = element(access.count, number);
        let value = match access.order {
            Some(order) => format!("{HEADER}load<{}>(&{place})", modes(&[order])),
            None => place,
        };
        writer.assign(target, &value);
    }
    Ok(())
}

fn element(count: Option<usize>, number: usize) -> String {
    match count {
        Some(_) => format!("gpuarray_p->at[{number}]"),
        None => "*gpuarray_p".to_owned(),
    }
}

/// Writes `st`.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn store(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let (modifiers, kind) = accessed(instruction)?;
    let access = read(modifiers);
    if !access.others.is_empty() || matches!(access.order, Some("acquire" | "acq_rel")) {
        return Err(unknown(instruction));
    }
    let operands = access.operands(instruction, 2)?;
    let pointer = access.pointer(writer, &operands[0], kind)?;
    let mut values = Vec::new();
    for part in parts(&operands[1], access.count)? {
        values.push(writer.argument(part, kind, true)?);
    }
    let _ = write!(writer.body, "auto* const gpuarray_p = {pointer}; ");
    for (number, value) in values.iter().enumerate() {
        let place = element(access.count, number);
        let _ = match access.order {
            Some(order) => {
                let order = modes(&[order]);
                write!(writer.body, "{HEADER}store<{order}>(&{place}, {value}); ")
            }
            None => write!(writer.body, "{place} = {value}; "),
        };
    }
    Ok(())
}

/// Returns the types that an atomic operation supports.
fn atomic_types(operation: &str) -> &'static [&'static str] {
    match operation {
        "and" | "or" | "xor" => &["b32", "b64"],
        "exch" => &["b32", "b64"],
        "cas" => &["b16", "b32", "b64"],
        "add" => &["u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"],
        "inc" | "dec" => &["u32"],
        "min" | "max" => &["u32", "s32", "u64", "s64"],
        _ => &[],
    }
}

/// Writes `atom` and `red`.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn atomic(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let (name, modifiers) =
        instruction.modifiers.split_last().ok_or_else(|| unknown(instruction))?;
    let access = read(modifiers);
    let has_result = instruction.name == "atom";
    let operation: Vec<&str> = access.others.iter().copied().filter(|it| *it != "noftz").collect();
    let [operation] = operation.as_slice() else { return Err(unknown(instruction)) };
    let types = atomic_types(operation);
    let kind = Type::named(name).filter(|it| types.contains(&it.name));
    let kind = kind.ok_or_else(|| unknown(instruction))?;
    // Only these formats have a modifier for subnormal numbers.
    let is_narrow = matches!(kind.name, "f16" | "f16x2" | "bf16" | "bf16x2");
    if is_narrow != access.others.contains(&"noftz") || access.is_volatile {
        return Err(unknown(instruction));
    }
    if access.count.is_some() || (!has_result && matches!(*operation, "exch" | "cas")) {
        return Err(unknown(instruction));
    }
    let arguments = if *operation == "cas" { 2 } else { 1 };
    let first = usize::from(has_result);
    let operands = access.operands(instruction, first + 1 + arguments)?;
    let mut values = vec![access.pointer(writer, &operands[first], kind)?];
    for operand in &operands[first + 1..first + 1 + arguments] {
        values.push(writer.argument(operand, kind, false)?);
    }
    let order = access.order.unwrap_or("relaxed");
    let expression = function("atom", &[operation, order], &[kind], &values);
    match has_result {
        true => {
            let target = writer.target(&operands[0], kind, false)?;
            writer.assign(&target, &expression);
        }
        false => {
            let _ = write!(writer.body, "(void){expression}; ");
        }
    }
    Ok(())
}

/// Writes `prefetch`, which only evaluates its address.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn prefetch(
    writer: &mut Writer<'_, '_>,
    instruction: &Instruction,
) -> Result<(), String> {
    let is_known = |it: &String| {
        matches!(it.as_str(), "global" | "local" | "L1" | "L2") || it.starts_with("L2::")
    };
    if !instruction.modifiers.iter().all(is_known) {
        return Err(unknown(instruction));
    }
    let operands = instruction.operands()?;
    let [operand] = operands.as_slice() else { return Err("takes an address".into()) };
    let address = writer.address(operand, false)?;
    let _ = write!(writer.body, "__builtin_prefetch((const void*)({address})); ");
    Ok(())
}

/// Writes `cp.async.bulk`, which copies immediately. The barrier of a copy to shared memory counts its bytes.
fn bulk_copy(
    writer: &mut Writer<'_, '_>,
    instruction: &Instruction,
    modifiers: &[&str],
) -> Result<(), String> {
    let operands = instruction.operands()?;
    let (is_load, hints) = match modifiers {
        ["commit_group"] if operands.is_empty() => return Ok(()),
        ["wait_group"] | ["wait_group", "read"] if operands.len() == 1 => return Ok(()),
        [
            "shared::cluster" | "shared::cta",
            "global",
            "mbarrier::complete_tx::bytes",
            hints @ ..,
        ] => (true, hints),
        ["global", "shared::cta", "bulk_group", hints @ ..] => (false, hints),
        _ => return Err(unknown(instruction)),
    };
    let count = 3 + usize::from(is_load) + hints.len();
    if !matches!(hints, [] | ["L2::cache_hint"]) || operands.len() != count {
        return Err(unknown(instruction));
    }
    let word = Type::named("u32").unwrap_or_else(|| unreachable!("a type of the table"));
    let to = writer.pointer(&operands[0], "b8", is_load)?;
    let from = writer.pointer(&operands[1], "b8", !is_load)?;
    let size = writer.argument(&operands[2], word, false)?;
    let _ = write!(writer.body, "{HEADER}copy({to}, {from}, {size}, {size}); ");
    if is_load {
        let barrier = writer.pointer(&operands[3], "b64", true)?;
        let bits = Type::named("b64").into_iter().collect::<Vec<_>>();
        let call = function("mbarrier_complete_tx", &[], &bits, &[barrier, size]);
        let _ = write!(writer.body, "{call}; ");
    }
    Ok(())
}

/// Writes `cp.async`. The copy is synchronous, so nothing has to wait for it.
///
/// # Errors
/// A message that describes the problem.
pub(super) fn copy(writer: &mut Writer<'_, '_>, instruction: &Instruction) -> Result<(), String> {
    let modifiers: Vec<&str> = instruction.modifiers.iter().map(String::as_str).collect();
    let operands = instruction.operands()?;
    match (modifiers.as_slice(), operands.as_slice()) {
        (["async", "mbarrier", "arrive", ..], _) => {
            return writer.of_table(
                "cp_async_mbarrier_arrive",
                &instruction.modifiers[3..],
                instruction,
            );
        }
        (["async", "bulk", rest @ ..], _) => return bulk_copy(writer, instruction, rest),
        (["async", "commit_group" | "wait_all"], []) | (["async", "wait_group"], [_]) => {
            return Ok(());
        }
        (["async", "ca" | "cg", "shared" | "shared::cta", "global", hints @ ..], _)
            if hints.iter().all(|it| it.starts_with("L2::")) => {}
        _ => return Err(unknown(instruction)),
    }
    let has_policy = usize::from(modifiers.contains(&"L2::cache_hint"));
    let count = operands.len() - has_policy.min(operands.len());
    let word = Type::named("u32").unwrap_or_else(|| unreachable!("a type of the table"));
    let (to, from, size, rest) = match &operands[..count] {
        [to, from, size, rest @ ..] if rest.len() <= 1 => (to, from, size, rest),
        _ => return Err("takes two addresses, a number of bytes, and how many are read".into()),
    };
    let is_allowed = match size.value {
        Value::Integer(bytes) if modifiers[1] == "cg" => bytes == 16,
        Value::Integer(bytes) => matches!(bytes, 4 | 8 | 16),
        _ => matches!(size.value, Value::Bound(_)),
    };
    if !is_allowed {
        return Err("copies an unsupported size; allowed are 16, and with .ca 4 and 8".into());
    }
    let to = writer.pointer(to, "b8", true)?;
    let from = writer.pointer(from, "b8", false)?;
    let size = writer.argument(size, word, false)?;
    let read = match rest {
        // A predicate; if it is true, nothing is read.
        [rest] if writer.bits(rest) == Some(1) => {
            format!("{} ? 0u : {size}", writer.predicate(rest)?)
        }
        [rest] => writer.argument(rest, word, false)?,
        _ => size.clone(),
    };
    let _ = write!(writer.body, "{HEADER}copy({to}, {from}, {size}, {read}); ");
    Ok(())
}

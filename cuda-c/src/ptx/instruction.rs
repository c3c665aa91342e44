//! Writes instructions as calls of the functions in `cuda_c/ptx/`.

use super::memory;
use super::moves;
use super::parser::{Instruction, Operand, Value};
use super::special::unknown;
use super::table::{LISTS, ROWS, Row};
use super::types::{HEADER, Type, function};
use super::video;
use super::writer::Writer;
use std::fmt::Write as _;

/// The modifiers and types of an instruction that matches a pattern.
struct Form<'i> {
    modifiers: Vec<&'i str>,
    types: Vec<Type>,
}

impl Writer<'_, '_> {
    /// Writes an instruction with its guard.
    ///
    /// # Errors
    /// A message that describes the problem.
    pub(super) fn guarded(&mut self, instruction: &Instruction) -> Result<(), String> {
        if let Some(guard) = &instruction.guard {
            let condition = self.predicate(guard)?;
            let _ = write!(self.body, "if ({condition}) ");
        }
        self.body.push_str("{ ");
        self.reads_special = matches!(instruction.name.as_str(), "mov" | "cvt");
        match instruction.name.as_str() {
            "bra" => self.branch(instruction)?,
            "mov" => moves::mov(self, instruction)?,
            "cvt" => moves::cvt(self, instruction)?,
            "ld" | "ldu" => memory::load(self, instruction)?,
            "st" => memory::store(self, instruction)?,
            "atom" | "red" => memory::atomic(self, instruction)?,
            "prefetch" | "prefetchu" => memory::prefetch(self, instruction)?,
            "cp" => memory::copy(self, instruction)?,
            "bar" | "barrier" => self.barrier(instruction)?,
            "mbarrier" => self.barrier_in_memory(instruction)?,
            name if video::is_video(name) => video::write(self, instruction)?,
            name => self.of_table(name, &instruction.modifiers, instruction)?,
        }
        self.body.push_str("} ");
        Ok(())
    }

    /// Writes `bra label;`.
    fn branch(&mut self, instruction: &Instruction) -> Result<(), String> {
        let operands = instruction.operands()?;
        let is_plain = instruction.modifiers.iter().all(|it| it == "uni");
        let [Operand { value: Value::Word(name), .. }] = operands.as_slice() else {
            return Err("has no label".into());
        };
        if !is_plain {
            return Err(unknown(instruction));
        }
        let label = self.label(name).ok_or_else(|| {
            format!("goes to {name}, which is no label of the same asm statement")
        })?;
        if self.waits.as_ref().is_some_and(|it| it.contains(&label)) {
            self.body.push_str("::cuda_c::turn(); ");
        }
        let _ = write!(self.body, "goto {label}; ");
        Ok(())
    }

    /// Writes `bar.sync` and its other spellings under one name.
    fn barrier(&mut self, instruction: &Instruction) -> Result<(), String> {
        let own = |it: &&String| !matches!(it.as_str(), "cta" | "aligned");
        let mut modifiers: Vec<String> =
            instruction.modifiers.iter().filter(own).cloned().collect();
        let name = match modifiers.first().map(String::as_str) {
            Some("sync") => "bar_sync",
            Some("red") => "bar_red",
            _ => return self.of_table("bar", &modifiers, instruction),
        };
        modifiers.remove(0);
        self.of_table(name, &modifiers, instruction)
    }

    /// Writes `mbarrier`. The function's name contains the operation, because each has operands of its own.
    fn barrier_in_memory(&mut self, instruction: &Instruction) -> Result<(), String> {
        let parts: Vec<&str> = instruction.modifiers.iter().map(String::as_str).collect();
        let (name, used) = match parts.as_slice() {
            ["test_wait", "parity", ..] => ("test_parity", 2),
            ["try_wait", "parity", ..] => ("try_parity", 2),
            [operation, ..] => (*operation, 1),
            [] => return Err(unknown(instruction)),
        };
        self.of_table(&format!("mbarrier_{name}"), &instruction.modifiers[used..], instruction)
    }

    /// Writes an instruction of the table.
    pub(super) fn of_table(
        &mut self,
        name: &str,
        modifiers: &[String],
        instruction: &Instruction,
    ) -> Result<(), String> {
        let mut rows = ROWS.iter().filter(|it| it.name == name);
        let found = rows.find_map(|row| Some((row, matched(row.pattern, modifiers)?)));
        let (row, form) = found.ok_or_else(|| unknown(instruction))?;
        self.call(row, &form, &instruction.operands()?)
    }

    fn call(&mut self, row: &Row, form: &Form<'_>, operands: &[Operand]) -> Result<(), String> {
        let (results, arguments) = row.operands.split_once('=').unwrap_or(("", row.operands));
        let results = results.trim();
        let combines = form.modifiers.iter().any(|it| matches!(*it, "and" | "or" | "xor"));
        let arguments: Vec<&str> =
            arguments.split_whitespace().filter(|it| *it != "&p" || combines).collect();
        let wants_carry = arguments.contains(&"cc");
        let arguments: Vec<&str> = arguments.into_iter().filter(|it| *it != "cc").collect();
        let given = operands.len().checked_sub(usize::from(!results.is_empty()));
        let needed = arguments.iter().filter(|it| !it.ends_with('?')).count();
        let given =
            given.filter(|it| (needed..=arguments.len()).contains(it)).ok_or_else(|| {
                let count = needed + usize::from(!results.is_empty());
                format!("has {} operands; it takes {count}", operands.len())
            })?;
        let mut left = operands.iter();
        let mut targets = Vec::new();
        if !results.is_empty() {
            let first = left.next().ok_or("is missing a result")?;
            let (one, other) =
                results.split_once('|').map_or((results, None), |it| (it.0, Some(it.1)));
            let parts = match (&first.value, other) {
                (Value::Pair(a, b), Some(other)) => vec![(&**a, one), (&**b, other)],
                _ => vec![(first, one)],
            };
            for (operand, name) in parts {
                targets.push(self.target(operand, of(name, form)?, false)?);
            }
        }
        let mut values = Vec::new();
        let mut spare = given - needed;
        for name in arguments {
            let plain = name.trim_end_matches('?');
            if plain.len() < name.len() {
                if spare == 0 {
                    values.push(format!("{HEADER}{}()", of(plain, form)?.name));
                    continue;
                }
                spare -= 1;
            }
            let operand = left.next().ok_or("is missing an operand")?;
            if plain == "[]" {
                let is_shared =
                    form.modifiers.iter().any(|it| matches!(*it, "shared" | "shared::cta"));
                values.push(self.pointer(operand, of("T", form)?.name, is_shared)?);
                continue;
            }
            values.push(self.argument(operand, of(plain, form)?, false)?);
        }
        if wants_carry {
            values.push(self.carry.to_owned());
        }
        if targets.len() == 2 {
            let _ = write!(self.body, "{HEADER}Second gpuarray_second; ");
            values.push("gpuarray_second".to_owned());
        }
        let expression = function(row.name, &form.modifiers, &form.types, &values);
        match targets.as_slice() {
            [] => {
                let _ = write!(self.body, "{expression}; ");
            }
            [only] => self.assign(only, &expression),
            [first, second, ..] => {
                // The second result is assigned last, and is computed from the same operands.
                self.assign(first, &expression);
                self.assign(second, "gpuarray_second.is");
            }
        }
        Ok(())
    }
}

/// Returns the type that a word in the operands of a row stands for.
fn of(word: &str, form: &Form<'_>) -> Result<Type, String> {
    let found = match word {
        "T" => form.types.first().copied(),
        "U" => form.types.get(1).copied(),
        "W" => form.types.first().and_then(|it| it.doubled()),
        "p" | "&p" => Type::named("pred"),
        name => Type::named(name),
    };
    found.ok_or_else(|| format!("has no type for {word}"))
}

/// Matches an instruction's modifiers against a pattern. Returns `None` if they do not fit.
fn matched<'i>(pattern: &str, modifiers: &'i [String]) -> Option<Form<'i>> {
    let mut form = Form { modifiers: Vec::new(), types: Vec::new() };
    let mut left = modifiers;
    for part in pattern.split('.').filter(|it| !it.is_empty()) {
        let alternatives = part.trim_end_matches('?');
        match left {
            [first, rest @ ..] if is_one_of(first, alternatives) => {
                match Type::named(first) {
                    Some(kind) => form.types.push(kind),
                    None => form.modifiers.push(first),
                }
                left = rest;
            }
            _ if alternatives.len() < part.len() => {}
            _ => return None,
        }
    }
    left.is_empty().then_some(form)
}

fn is_one_of(modifier: &str, alternatives: &str) -> bool {
    alternatives.split('|').any(|it| match LISTS.iter().find(|list| list.0 == it) {
        Some((_, list)) => list.split('|').any(|it| it == modifier),
        None => it == modifier,
    })
}

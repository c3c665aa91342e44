//! Writes a statement as C++: its operands, registers and instructions.

use super::parser::{Instruction, Item, Placed, Wrong};
use super::statement::{self, Constraint, Statement, Use};
use super::types::{HEADER, Type};
use crate::tokens::Tokens;
use std::collections::HashMap;
use std::fmt::Write as _;

/// A compiler barrier.
const FENCE: &str = "__asm__ volatile(\"\" ::: \"memory\"); ";

/// A register: its variable and type.
#[derive(Clone, Debug)]
pub(super) struct Register {
    pub(super) variable: String,
    pub(super) kind: Type,
}

/// The registers declared by `name<count>`.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) prefix: String,
    pub(super) count: u64,
    pub(super) kind: Type,
    /// The array that holds the registers. Without an array, each register that is used gets its own
    /// variable.
    pub(super) array: Option<String>,
}

/// The names declared between two braces.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) registers: HashMap<String, Register>,
    pub(super) families: Vec<Family>,
    pub(super) labels: HashMap<String, String>,
}

impl Scope {
    pub(super) fn of(labels: HashMap<String, String>) -> Scope {
        Scope { labels, ..Scope::default() }
    }

    /// Adds the registers of a later scope.
    pub(super) fn extend(&mut self, other: &Scope) {
        self.registers.extend(other.registers.clone());
        self.families.splice(0..0, other.families.iter().cloned());
    }
}

pub(super) struct Writer<'t, 'a> {
    tokens: &'t Tokens<'a>,
    pub(super) statement: &'t Statement,
    /// The number of the statement in its text.
    pub(super) number: usize,
    /// The expression of the carry.
    pub(super) carry: &'static str,
    /// The scopes around the statement, its own scope, and the scopes of its braces.
    pub(super) scopes: Vec<Scope>,
    pub(super) bound: Vec<Option<Register>>,
    /// True while writing an instruction that can read special registers.
    pub(super) reads_special: bool,
    /// The targets of backward branches, if other threads of the block have to run meanwhile.
    pub(super) waits: Option<Vec<String>>,
    variables: usize,
    pub(super) declarations: String,
    /// Declarations that later statements also see. They precede the block.
    pub(super) shared: String,
    pub(super) body: String,
    line: usize,
}

/// Writes a statement, and returns the registers that it declares for later statements.
///
/// `keeps_carry` is true if other statements of the text may read its carry. `around` holds the registers
/// that earlier statements have declared.
///
/// # Errors
/// The offset of the problem in the statement's text, and a message.
pub(super) fn write(
    tokens: &Tokens<'_>,
    statement: &Statement,
    items: &[Placed],
    number: usize,
    keeps_carry: bool,
    around: Scope,
) -> Result<(String, Scope), Wrong> {
    let line = tokens.line(statement.range.start).map_or(0, |(_, line)| line);
    let mut writer = Writer {
        tokens,
        statement,
        number,
        carry: if keeps_carry { "::gpuarray_abi::carry" } else { "gpuarray_carry" },
        scopes: vec![around],
        bound: Vec::new(),
        reads_special: false,
        waits: may_wait(items).then(Vec::new),
        variables: 0,
        declarations: String::new(),
        shared: String::new(),
        body: String::new(),
        line,
    };
    let (before, after) = writer.operands();
    writer.items(items)?;
    let mut text = format!("{}{{ {before}", writer.shared);
    if !keeps_carry && uses_carry(items) {
        text.push_str("bool gpuarray_carry __attribute__((unused)) = false; ");
    }
    let is_fenced = statement.clobbers_memory
        || (statement.is_volatile && items.iter().any(|it| touches_memory(&it.item)));
    let fence = if is_fenced { FENCE } else { "" };
    let (declarations, body) = (&writer.declarations, &writer.body);
    let _ = write!(text, "{declarations}{fence}{{ {body}}} {fence}{after}}}");
    let end = tokens.line(statement.range.end - 1).map_or(0, |(_, line)| line);
    writer.body.clear();
    writer.go_to(end);
    let own = writer.scopes.pop().unwrap_or_default();
    Ok((text + &writer.body, own))
}

fn instructions(items: &[Placed]) -> impl Iterator<Item = &Instruction> {
    items.iter().filter_map(|it| match &it.item {
        Item::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

fn reads_carry(instruction: &Instruction) -> bool {
    matches!(instruction.name.as_str(), "addc" | "subc" | "madc")
}

fn writes_carry(instruction: &Instruction) -> bool {
    instruction.modifiers.iter().any(|it| it == "cc")
}

fn uses_carry(items: &[Placed]) -> bool {
    instructions(items).any(|it| reads_carry(it) || writes_carry(it))
}

/// Returns true if a statement may read the carry of an earlier one.
pub(super) fn asks_for_carry(items: &[Placed]) -> bool {
    for instruction in instructions(items) {
        match instruction.name.as_str() {
            // The branch may skip the instructions after it.
            "bra" => return instructions(items).any(reads_carry),
            _ if reads_carry(instruction) => return true,
            _ if writes_carry(instruction) && instruction.guard.is_none() => return false,
            _ => {}
        }
    }
    false
}

/// Returns true for a statement that may wait for another thread in a loop.
fn may_wait(items: &[Placed]) -> bool {
    instructions(items).any(|it| {
        let is_ordered = |it: &String| matches!(it.as_str(), "volatile" | "relaxed" | "acquire");
        match it.name.as_str() {
            "ld" => it.modifiers.iter().any(is_ordered),
            name => name == "atom",
        }
    })
}

/// Returns true for an instruction that the compiler must not remove or move in a volatile statement.
fn touches_memory(item: &Item) -> bool {
    let Item::Instruction(instruction) = item else { return false };
    match instruction.name.as_str() {
        "ld" | "ldu" => !instruction.modifiers.iter().any(|it| it == "nc"),
        "st" | "atom" | "red" | "cp" => true,
        _ => false,
    }
}

impl Writer<'_, '_> {
    /// Sets the line of the program for the following code.
    fn go_to(&mut self, line: usize) {
        let Some((file, _)) = self.tokens.line(self.statement.range.start) else { return };
        if line != self.line {
            let _ = write!(self.body, "\n# {line} \"{file}\"\n");
            self.line = line;
        }
    }

    pub(super) fn fresh(&mut self) -> String {
        self.variables += 1;
        format!("gpuarray_r{}", self.variables)
    }

    /// Returns the code before and after the instructions: operand values and results.
    fn operands(&mut self) -> (String, String) {
        let mut after = String::new();
        for (number, operand) in self.statement.operands.iter().enumerate() {
            let line = self.tokens.line(operand.expression.start).map_or(self.line, |it| it.1);
            self.go_to(line);
            let source = statement::source(self.tokens, operand.expression.clone());
            let end = self.tokens.line(operand.expression.end - 1).map_or(line, |it| it.1);
            self.line = end;
            let value = format!("gpuarray_v{number}");
            let reference = if operand.how == Use::Read { "const auto" } else { "auto&&" };
            let _ = write!(self.body, "{reference} {value} = ({source}); ");
            let letter = match operand.letter {
                Constraint::Register(letter) => letter,
                Constraint::Number => {
                    let _ = write!(
                        self.body,
                        "static_assert({HEADER}is_number<decltype({value})>, \"operand %{number} of asm: the constraint \\\"n\\\" takes integers\"); "
                    );
                    self.bound.push(None);
                    continue;
                }
            };
            let (name, what) = match letter {
                'h' => ("b16", "integers of 16 bits"),
                'r' => ("b32", "integers of 32 bits"),
                'l' => ("b64", "integers of 64 bits and pointers"),
                'q' => ("b128", "integers of 128 bits"),
                'f' => ("f32", "float"),
                _ => ("f64", "double"),
            };
            let kind = Type::named(name).unwrap_or_else(|| unreachable!("a type of the table"));
            let _ = write!(
                self.body,
                "static_assert({HEADER}fits<'{letter}', decltype({value})>, \"operand %{number} of asm: the constraint \\\"{letter}\\\" takes {what}\"); "
            );
            let variable = self.fresh();
            let bits = kind.register().name;
            let first = match operand.how {
                Use::Write => "0".to_owned(),
                Use::Read | Use::Both => format!("{HEADER}in<{HEADER}{bits}>({value})"),
            };
            let _ =
                write!(self.body, "{HEADER}{bits} {variable} __attribute__((unused)) = {first}; ");
            if operand.how != Use::Read {
                let _ = write!(after, "{HEADER}out({value}, {variable}); ");
            }
            self.bound.push(Some(Register { variable, kind }));
        }
        (std::mem::take(&mut self.body), after)
    }

    fn items(&mut self, items: &[Placed]) -> Result<(), Wrong> {
        let mut labels = self.labels(items)?.into_iter();
        self.scopes.push(Scope::of(labels.next().unwrap_or_default()));
        for Placed { at, item } in items {
            let line = self.line_of(*at);
            match item {
                Item::Open => {
                    self.scopes.push(Scope::of(labels.next().unwrap_or_default()));
                }
                Item::Close => {
                    self.scopes.pop();
                }
                Item::Label(name) => {
                    let label = self.label(name).unwrap_or_default();
                    let _ = write!(self.body, "{label}: __attribute__((unused)); ");
                    self.waits.iter_mut().for_each(|it| it.push(label.clone()));
                }
                Item::Registers { kind, names } => {
                    self.declare(kind, names).map_err(|what| (*at, what))?;
                }
                Item::Instruction(instruction) => {
                    self.go_to(line);
                    let wrong = |what| (*at, format!("inline PTX: '{}' {what}", instruction.text));
                    self.guarded(instruction).map_err(wrong)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the line of the program for a byte of the statement's text.
    fn line_of(&self, at: usize) -> usize {
        let lines = &self.statement.lines;
        let after = lines.partition_point(|it| it.0 <= at);
        lines[..after].last().map_or(self.line, |it| it.1)
    }

    /// Returns the labels of each scope, in the order in which scopes open.
    fn labels(&self, items: &[Placed]) -> Result<Vec<HashMap<String, String>>, Wrong> {
        let mut all = vec![HashMap::new()];
        let mut open = vec![0];
        let mut count = 0;
        for Placed { at, item } in items {
            match item {
                Item::Open => {
                    open.push(all.len());
                    all.push(HashMap::new());
                }
                Item::Close => {
                    open.pop();
                }
                Item::Label(name) => {
                    let label = format!("gpuarray_label_{}_{count}", self.number);
                    count += 1;
                    let scope = &mut all[*open.last().unwrap_or(&0)];
                    if scope.insert(name.clone(), label).is_some() {
                        return Err((*at, format!("inline PTX: label {name} is defined twice")));
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// Returns the C++ label for a PTX label that is visible here.
    pub(super) fn label(&self, name: &str) -> Option<String> {
        self.scopes.iter().rev().find_map(|it| it.labels.get(name).cloned())
    }
}

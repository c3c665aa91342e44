//! The builtin operations that are worth compiling ahead of time: every function that many
//! programs call on every dtype that has it where arrays lie in one run of memory, and for what
//! programs do most also slices, broadcast rows, transposed operands and very long arrays.
//!
//! What is not here is compiled at run time, so this list decides about time and size only.

mod dtypes;
mod elementwise;
mod indexed;
mod operands;
mod reduce;

use crate::source::{KernelSpec, Plan};
use dtypes::{DTYPE_FAMILIES, WORDS, is_main};
use elementwise::{binary, casts, mixed, moves, ternary, unary};
use hal::dtype::DType;
use hal::function::{BinaryFunction, Reduction, UnaryFunction, Usage, Value};
use hal::operation::{Description, Nonzero, Operand, Operation, Sequence};
use indexed::gathers_and_scatters;
use operands::{number, operand};
use reduce::{reduce, scans};
use std::collections::HashSet;

/// Operations that are compiled as one unit, because programs use them together.
#[derive(Clone, Debug)]
pub struct Group {
    /// A name that no other group has, of letters, digits and underscores.
    pub name: String,
    /// A plan of an operation for each specification; no other group has one of these.
    pub plans: Vec<Plan>,
}

impl Group {
    /// Returns the specifications of the group's kernels.
    pub fn specs(&self) -> Vec<KernelSpec> {
        self.plans.iter().map(Plan::spec).collect()
    }
}

/// Returns everything that is worth compiling ahead of time, in an order that does not change.
pub fn catalogue() -> Vec<Group> {
    let mut catalogue = Catalogue::default();
    for family in DTYPE_FAMILIES {
        for function in UnaryFunction::ALL {
            if function != UnaryFunction::Copy {
                let operations = family.dtypes().flat_map(|dtype| unary(function, dtype));
                catalogue.add(format!("{function:?}_{}", family.name), operations);
            }
        }
        for function in BinaryFunction::ALL {
            let operations = family.dtypes().flat_map(|dtype| binary(function, dtype));
            catalogue.add(format!("{function:?}_{}", family.name), operations);
        }
        for reduction in Reduction::ALL {
            let operations = family.dtypes().flat_map(|dtype| reduce(reduction, dtype));
            catalogue.add(format!("reduce_{reduction:?}_{}", family.name), operations);
        }
        let operations = family.dtypes().flat_map(casts);
        catalogue.add(format!("cast_{}", family.name), operations);
        let operations = family.dtypes().flat_map(ternary);
        catalogue.add(format!("select_{}", family.name), operations);
    }
    let is_arithmetic = |it: &BinaryFunction| it.properties().usage == Usage::Arithmetic;
    for function in BinaryFunction::ALL.into_iter().filter(is_arithmetic) {
        catalogue.add(format!("{function:?}_mixed"), mixed(function));
    }
    for reduction in Reduction::ALL.into_iter().filter(|it| it.value() != Value::Bool) {
        let main = DType::ALL.into_iter().filter(|&dtype| is_main(dtype));
        let operations = main.flat_map(|dtype| scans(reduction, dtype));
        catalogue.add(format!("scan_{reduction:?}"), operations);
    }
    catalogue.add("copy".into(), WORDS.iter().flat_map(|&word| moves(word)));
    catalogue.add("take".into(), WORDS.iter().flat_map(|&word| gathers_and_scatters(word)));
    catalogue.add("nonzero".into(), nonzero());
    catalogue.add("sequence".into(), DType::ALL.map(sequence));
    catalogue.groups
}

#[derive(Default)]
struct Catalogue {
    groups: Vec<Group>,
    seen: HashSet<KernelSpec>,
}

impl Catalogue {
    /// Adds a group of what is new among the operations that are defined.
    fn add(&mut self, name: String, operations: impl IntoIterator<Item = Description>) {
        let checked = operations.into_iter().filter_map(|it| Operation::new(it).ok());
        let plans = checked.filter_map(|operation| Plan::new(&operation).ok());
        let plans: Vec<Plan> = plans.filter(|plan| self.seen.insert(plan.spec())).collect();
        if !plans.is_empty() {
            self.groups.push(Group { name: name.to_ascii_lowercase(), plans });
        }
    }
}

fn nonzero() -> impl Iterator<Item = Description> {
    let search = |output: DType, values: Option<Operand>| {
        let (mask, output) = (operand(DType::Bool, &[1]), operand(output, &[1]));
        Description::Nonzero(Nonzero { length: 4096, most: 4096, mask, values, output })
    };
    let indices = [DType::Int32, DType::Int64].map(|dtype| search(dtype, None));
    let values = DType::ALL.map(|dtype| search(dtype, Some(operand(dtype, &[1]))));
    indices.into_iter().chain(values)
}

fn sequence(dtype: DType) -> Description {
    let (start, step) = (number(dtype), number(dtype));
    let output = operand(dtype, &[1]);
    Description::Sequence(Sequence { length: 4096, start, step, output })
}

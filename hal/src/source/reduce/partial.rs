//! What the kernels of a reduction have of an output until it is whole, and how that is combined.

use super::key::{Key, MappedTypes};
use crate::source::ctype;

impl Key {
    /// The type of a partial result.
    pub(super) fn partial(&self) -> String {
        let value = self.value_type();
        match self.input {
            MappedTypes::SquaredDeviation(_) => format!("Moments<{value}, 1>"),
            MappedTypes::Position(_) => format!("Placed<{value}, {}>", ctype::index(self.wide).0),
            _ => value.to_owned(),
        }
    }

    /// At least the bytes of a partial result.
    pub(super) fn partial_bytes(&self) -> usize {
        let size = ctype::accumulator(self.reduction, self.compute).size();
        match self.input {
            MappedTypes::SquaredDeviation(_) => 3 * size,
            MappedTypes::Position(_) => {
                let index: usize = if self.wide { 8 } else { 4 };
                (size + index).next_multiple_of(size.max(index))
            }
            _ => size,
        }
    }

    /// The type that elements are combined or compared in.
    pub(super) fn value_type(&self) -> &'static str {
        ctype::value(ctype::accumulator(self.reduction, self.compute))
    }

    /// The struct that combines partial results.
    pub(super) fn operator(&self, name: &str) -> String {
        let operator = |name: &str| ctype::operator(name, self.reduction, self.compute);
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        match self.input {
            MappedTypes::SquaredDeviation(_) => {
                format!("typedef CombineMoments<{}> {name}_operator;\n", self.value_type())
            }
            MappedTypes::Position(_) => format!(
                "{}typedef FirstPlace<{name}_extreme_operator, {}, {}, {}> {name}_operator;\n",
                operator(&format!("{name}_extreme")),
                ctype::functions(accumulator),
                accumulator.is_inexact(),
                ctype::index(self.wide).0
            ),
            _ => operator(name),
        }
    }

    /// What is stored of an output's whole value.
    pub(super) fn result(&self) -> String {
        let result = ctype::value(self.reduction.result(self.compute));
        match self.input {
            MappedTypes::SquaredDeviation(_) => format!("convert<{result}>(squares(value))"),
            MappedTypes::Position(_) => "(i64)value.place".to_owned(),
            _ => format!("convert<{result}>(value)"),
        }
    }
}

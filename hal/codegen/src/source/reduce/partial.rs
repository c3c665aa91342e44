//! What the kernels of a reduction have of an output until it is whole, and how that is combined.

use super::{Key, MappedTypes};
use crate::source::ctype;
use hal::function::Reduction;

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

    /// True if a whole value is divided by a number that is an argument.
    pub(super) fn has_quotient(&self) -> bool {
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        self.reduction == Reduction::Sum && accumulator.is_inexact()
    }

    /// True if an argument says whether the root is taken of a whole value.
    pub(super) fn has_root(&self) -> bool {
        matches!(self.input, MappedTypes::SquaredDeviation(_))
    }

    /// What becomes of whole values: as parameters of a kernel, as fields of a struct, and what copies
    /// them into the struct `sink`.
    pub(super) fn epilogue(&self) -> (&'static str, &'static str, &'static str) {
        match (self.has_quotient(), self.has_root()) {
            (false, _) => ("", "", ""),
            (true, false) => {
                (", double divisor", "    double divisor;\n", "\n    sink.divisor = divisor;")
            }
            (true, true) => (
                ", double divisor, u32 root",
                "    double divisor;\n    u32 root;\n",
                "\n    sink.divisor = divisor;\n    sink.root = root;",
            ),
        }
    }

    /// What is stored of an output's whole value.
    pub(super) fn result(&self) -> String {
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        let value = match self.input {
            MappedTypes::Position(_) => return "(i64)value.place".to_owned(),
            MappedTypes::SquaredDeviation(_) => "squares(value)",
            _ => "value",
        };
        let functions = ctype::functions(accumulator);
        let value = match (self.has_quotient(), self.has_root()) {
            (false, _) => value.to_owned(),
            (true, false) => format!("quotient<{functions}>({value}, divisor)"),
            (true, true) => format!("root_of_quotient<{functions}>({value}, divisor, root)"),
        };
        format!("convert<{}>({value})", ctype::value(self.reduction.result(self.compute)))
    }
}

//! The expression that an element-wise kernel evaluates for each element.

use super::Key;
use crate::source::ctype;
use hal::dtype::DType;
use hal::function::{Function, UnaryFunction};
use hal::operation::Input;

impl Key {
    /// Returns the definition of the function from the inputs' elements to the output's.
    pub(super) fn value(&self, name: &str) -> String {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        for (position, input) in self.inputs() {
            let (Input::Scalar(dtype) | Input::Array(dtype)) = input;
            parameters.push(format!("{} x{position}", ctype::value(dtype)));
            arguments.push(match self.function.argument(position, self.compute) {
                None => {
                    let (from, functions) = (ctype::value(dtype), ctype::functions(dtype));
                    match self.function {
                        Function::Select => format!("convert<bool>(x{position})"),
                        _ => format!("{functions}::greater(x{position}, convert<{from}>((i32)0))"),
                    }
                }
                Some(wanted) if dtype == wanted => format!("x{position}"),
                Some(wanted) => format!("convert<{}>(x{position})", ctype::value(wanted)),
            });
        }
        let functions = ctype::functions(self.compute);
        let expression = match (self.function, &arguments[..]) {
            (Function::Unary(UnaryFunction::Copy), [x]) => x.clone(),
            (Function::Select | Function::SelectPositive, [condition, yes, no]) => {
                format!("{condition} ? {yes} : {no}")
            }
            (Function::LinearCombination, [a, x, b, y]) => format!(
                "{functions}::add({functions}::multiply({a}, {x}), {functions}::multiply({b}, {y}))"
            ),
            _ => {
                format!("{functions}::{}({})", ctype::function(self.function), arguments.join(", "))
            }
        };
        let result = self.function.result(self.compute);
        let expression = if result == self.output {
            expression
        } else {
            format!("convert<{}>({expression})", ctype::value(self.output))
        };
        format!(
            "DEVICE {} {name}_value({}) {{\n    return {expression};\n}}\n",
            ctype::value(self.output),
            parameters.join(", ")
        )
    }

    /// Returns a call of [`Key::value`]; `read` returns the element of an array.
    pub(super) fn call(&self, name: &str, read: impl Fn(usize, DType) -> String) -> String {
        let arguments: Vec<String> = self
            .inputs()
            .map(|(position, input)| match input {
                Input::Array(dtype) => read(position, dtype),
                Input::Scalar(dtype) => {
                    format!("Stored<{}>::get(in{position})", ctype::value(dtype))
                }
            })
            .collect();
        format!("{name}_value({})", arguments.join(", "))
    }
}

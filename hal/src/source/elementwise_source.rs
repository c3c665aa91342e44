//! The source of element-wise kernels.

use super::ctype;
use super::elementwise::{Access, Key, Slot};
use super::fragment::Fragments;
use super::space::{THREADS, type_name};
use super::tile;
use crate::dtype::DType;
use crate::function::{BinaryFunction, Function, UnaryFunction};

impl Key {
    /// Elements of one access: the widest array moves 16 bytes.
    pub(super) fn pack(&self) -> u64 {
        let widest = self.inputs.iter().fold(self.output.size(), |widest, slot| match slot {
            Slot::Array(dtype) => widest.max(dtype.size()),
            _ => widest,
        });
        (16 / widest.max(1)).max(1) as u64
    }

    /// The inputs that are there, with their positions.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, Slot)> + '_ {
        self.inputs.iter().copied().enumerate().filter(|(_, slot)| *slot != Slot::Unused)
    }

    pub(super) fn name(&self) -> String {
        let mut name = format!("{}_{}", function(self.function), ctype::value(self.compute));
        for (_, slot) in self.slots() {
            match slot {
                Slot::Scalar(dtype) => name += &format!("_s{}", ctype::value(dtype)),
                Slot::Array(dtype) => name += &format!("_{}", ctype::value(dtype)),
                Slot::Unused => {}
            }
        }
        let access = match self.access {
            Access::Packed => "packed".to_owned(),
            Access::Contiguous => "contiguous".to_owned(),
            Access::Strided(rank) => format!("strided{rank}"),
            Access::Tiled(rank, mask) => format!("tiled{rank}m{mask}"),
        };
        let width = if self.wide { 64 } else { 32 };
        format!("{name}_to_{}_{access}_{width}", ctype::value(self.output))
    }

    pub(super) fn fragments(&self) -> Fragments {
        let mut fragments = ctype::fragments(self.compute);
        // A condition is compared in its own type.
        if let (Function::SelectPositive, Slot::Array(dtype) | Slot::Scalar(dtype)) =
            (self.function, self.inputs[0])
        {
            fragments = fragments.with(ctype::fragments(dtype));
        }
        fragments
    }

    pub(super) fn kernels(&self, name: &str) -> String {
        let body = match self.access {
            Access::Packed => self.packed(name),
            Access::Contiguous => self.contiguous(name),
            Access::Strided(_) => self.strided(name),
            Access::Tiled(_, mask) => tile::body(self, name, mask),
        };
        let first = match self.access {
            Access::Packed | Access::Contiguous => {
                format!("{} count", ctype::index(self.wide).0)
            }
            Access::Strided(rank) | Access::Tiled(rank, _) => {
                format!("{} space", type_name(rank, self.operands(), self.wide))
            }
        };
        let mut parameters = format!("{first}, char* out");
        for (position, slot) in self.slots() {
            match slot {
                Slot::Scalar(dtype) => {
                    parameters += &format!(", {} in{position}", ctype::stored(dtype));
                }
                _ => parameters += &format!(", const char* in{position}"),
            }
        }
        format!(
            "{}extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({parameters}) {{\n\
             {body}}}\n",
            self.value(name)
        )
    }

    fn operands(&self) -> usize {
        1 + self.slots().filter(|(_, slot)| matches!(slot, Slot::Array(_))).count()
    }

    /// The function from the inputs' elements to the output's.
    fn value(&self, name: &str) -> String {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        let condition = matches!(self.function, Function::Select | Function::SelectPositive);
        for (position, slot) in self.slots() {
            let (Slot::Scalar(dtype) | Slot::Array(dtype)) = slot else { continue };
            parameters.push(format!("{} x{position}", ctype::value(dtype)));
            arguments.push(if condition && position == 0 {
                let (from, functions) = (ctype::value(dtype), ctype::functions(dtype));
                match self.function {
                    Function::Select => format!("convert<bool>(x{position})"),
                    _ => format!("{functions}::greater(x{position}, convert<{from}>((i32)0))"),
                }
            } else if dtype == self.compute {
                format!("x{position}")
            } else {
                format!("convert<{}>(x{position})", ctype::value(self.compute))
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
            _ => format!("{functions}::{}({})", function(self.function), arguments.join(", ")),
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

    /// A call of [`Key::value`]; `read` gives the element of an array.
    pub(super) fn call(&self, name: &str, read: impl Fn(usize, DType) -> String) -> String {
        let arguments: Vec<String> = self
            .slots()
            .map(|(position, slot)| match slot {
                Slot::Array(dtype) => read(position, dtype),
                Slot::Scalar(dtype) => {
                    format!("Stored<{}>::get(in{position})", ctype::value(dtype))
                }
                Slot::Unused => String::new(),
            })
            .collect();
        format!("{name}_value({})", arguments.join(", "))
    }

    /// The position among the space's operands of each input that is an array.
    pub(super) fn operand(&self, position: usize) -> usize {
        let arrays = self.inputs[..position].iter();
        1 + arrays.filter(|slot| matches!(slot, Slot::Array(_))).count()
    }
}

impl Key {
    fn contiguous(&self, name: &str) -> String {
        let index = ctype::index(self.wide).0;
        let output = ctype::value(self.output);
        let call = self.call(name, |position, dtype| {
            format!(
                "load<{}>(in{position} + i * sizeof({}))",
                ctype::value(dtype),
                ctype::stored(dtype)
            )
        });
        format!(
            "    const {index} step = ({index})gridDim.x * blockDim.x;
    for ({index} i = ({index})blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {{
        store<{output}>(out + i * sizeof({}), {call});
    }}
",
            ctype::stored(self.output)
        )
    }

    fn packed(&self, name: &str) -> String {
        let (index, pack) = (ctype::index(self.wide).0, self.pack());
        let output = ctype::value(self.output);
        let stored = ctype::stored(self.output);
        let mut loads = String::new();
        for (position, slot) in self.slots() {
            if let Slot::Array(dtype) = slot {
                let pack = format!("Pack<{}, {pack}>", ctype::stored(dtype));
                loads += &format!(
                    "        const {pack} pack{position} = ((const {pack}*)in{position})[i];\n"
                );
            }
        }
        let item = self.call(name, |position, dtype| {
            format!("Stored<{}>::get(pack{position}.item[k])", ctype::value(dtype))
        });
        let single = self.call(name, |position, dtype| {
            format!(
                "load<{}>(in{position} + i * sizeof({}))",
                ctype::value(dtype),
                ctype::stored(dtype)
            )
        });
        format!(
            "    const {index} step = ({index})gridDim.x * blockDim.x;
    const {index} first = ({index})blockIdx.x * blockDim.x + threadIdx.x;
    const {index} packs = count / {pack};
    for ({index} i = first; i < packs; i += step) {{
{loads}        Pack<{stored}, {pack}> result;
#pragma unroll
        for (int k = 0; k < {pack}; ++k) {{
            result.item[k] = Stored<{output}>::put({item});
        }}
        ((Pack<{stored}, {pack}>*)out)[i] = result;
    }}
    for ({index} i = packs * {pack} + first; i < count; i += step) {{
        store<{output}>(out + i * sizeof({stored}), {single});
    }}
"
        )
    }

    fn strided(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let call = self.call(name, |position, dtype| {
            let operand = self.operand(position);
            format!("load<{}>(in{position} + offset[{operand}])", ctype::value(dtype))
        });
        format!(
            "    const {index} step = ({index})gridDim.x * blockDim.x;
    for ({index} i = ({index})blockIdx.x * blockDim.x + threadIdx.x; i < space.count; i += step) {{
        {offset} offset[{}];
        space.locate(i, offset);
        store<{}>(out + offset[0], {call});
    }}
",
            self.operands(),
            ctype::value(self.output)
        )
    }
}

/// The name of a function in the prelude and in the names of kernels.
fn function(function: Function) -> &'static str {
    use BinaryFunction::*;
    use UnaryFunction::*;
    match function {
        Function::Select => "select",
        Function::SelectPositive => "select_positive",
        Function::LinearCombination => "linear_combination",
        Function::Unary(unary) => match unary {
            Copy => "copy",
            Negative => "negative",
            Absolute => "absolute",
            Sign => "sign",
            Conjugate => "conjugate",
            Real => "real",
            Imaginary => "imaginary",
            LogicalNot => "logical_not",
            Invert => "invert",
            Sqrt => "sqrt",
            Exp => "exp",
            Log => "log",
            Log2 => "log2",
            Log10 => "log10",
            Sin => "sin",
            Cos => "cos",
            Tan => "tan",
            Asin => "asin",
            Acos => "acos",
            Atan => "atan",
            Sinh => "sinh",
            Cosh => "cosh",
            Tanh => "tanh",
            Floor => "floor",
            Ceil => "ceil",
            Trunc => "trunc",
            Rint => "rint",
            Mantissa => "mantissa",
            Exponent => "exponent",
            IsNan => "is_nan",
        },
        Function::Binary(binary) => match binary {
            Add => "add",
            Subtract => "subtract",
            Multiply => "multiply",
            Divide => "divide",
            FloorDivide => "floor_divide",
            Remainder => "remainder",
            Fmod => "fmod",
            Power => "power",
            Minimum => "minimum",
            Maximum => "maximum",
            Ldexp => "ldexp",
            Atan2 => "atan2",
            LogicalAnd => "logical_and",
            LogicalOr => "logical_or",
            BitwiseAnd => "bitwise_and",
            BitwiseOr => "bitwise_or",
            BitwiseXor => "bitwise_xor",
            Equal => "equal",
            NotEqual => "not_equal",
            Less => "less",
            LessEqual => "less_equal",
            Greater => "greater",
            GreaterEqual => "greater_equal",
        },
    }
}

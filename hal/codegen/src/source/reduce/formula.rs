//! Reductions of a formula's values, which are computed as they are combined.

use super::{AccessPattern, Key};
use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::elementwise::Computation as _;
use crate::source::iteration_space::{IterationSpace, type_name};
use crate::source::launches::LaunchBuilder;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::operation::{Formula, FormulaValues, Input};
use smallvec::{SmallVec, smallvec};

/// The greatest class of the inputs' number of axes. A kernel's arguments cannot hold three spaces of more.
const MAX_RANK: u8 = 8;

/// The bytes that a thread reads before it uses the first.
const MOST_BYTES: u64 = 256;

/// Everything about a formula that changes the code of the kernels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FormulaKey {
    formula: Formula,
    access: Reading,
}

/// The way in which the inputs that are arrays are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reading {
    /// Each is contiguous or, if its bit is set, one element.
    Flat(u16),
    /// Any strides, in a space with a class of axes.
    Strided(u8),
}

impl Key {
    /// Adds a formula whose values are combined, and fills the space of its inputs.
    ///
    /// # Errors
    /// `Unsupported` for too many axes.
    pub(super) fn add_formula(
        &mut self,
        values: &FormulaValues,
        space: &mut IterationSpace,
    ) -> Result<()> {
        let FormulaValues { formula, values: array, shape, .. } = values;
        // The array comes first, so that its order stays.
        let size = array.dtype.size() as isize;
        let mut order: SmallVec<[isize; 4]> = smallvec![size; shape.len()];
        for axis in (1..shape.len()).rev() {
            order[axis - 1] = order[axis].saturating_mul(shape[axis].max(1) as isize);
        }
        let mut strides: SmallVec<[&[isize]; 5]> = smallvec![&order[..]];
        strides.extend(values.arrays().map(|operand| &operand.strides[..]));
        space.fill(shape, &strides, |_| true)?;
        space.strides.remove(0);
        let run = !matches!(self.access, AccessPattern::Columns(_)) && self.ranks.1 == 1;
        let pack = match self.access {
            AccessPattern::Packs(_) => self.input.pack(),
            AccessPattern::Columns(_) => self.input.columns(),
            AccessPattern::Elements => None,
        };
        let arrays = || space.strides.iter().zip(values.arrays());
        let is_one = |strides: &[isize]| strides.iter().all(|&stride| stride == 0);
        let is_flat = space.shape.len() <= 1
            && arrays().all(|(strides, operand)| {
                let size = operand.dtype.size();
                // The kernel itself looks whether a run of packs is aligned.
                let is_aligned =
                    run || operand.address.is_multiple_of(pack.unwrap_or(1) * size as u64);
                is_one(strides) || (strides[..] == [size as isize] && is_aligned)
            });
        let access = match is_flat {
            true => Reading::Flat(
                arrays().enumerate().map(|(at, (list, _))| u16::from(is_one(list)) << at).sum(),
            ),
            false => Reading::Strided(space.rank()),
        };
        self.wide |= space.wide();
        if let Reading::Strided(rank) = access
            && rank > MAX_RANK
        {
            let detail = format!(
                "the inputs of a formula have ndim {} after axes are merged; a kernel can have at most {MAX_RANK}: copy an operand first",
                space.shape.len()
            );
            return Err(Error::unsupported("reduce", detail));
        }
        self.formula = Some(FormulaKey { formula: formula.clone(), access });
        Ok(())
    }
}

impl FormulaKey {
    /// Adds the arguments that [`FormulaKey::parameters`] declares.
    pub(super) fn pack(
        &self,
        values: &FormulaValues,
        space: &IterationSpace,
        launch: &mut LaunchBuilder<'_>,
        wide: bool,
    ) {
        for input in &values.inputs {
            match input {
                Input::Array(operand) => launch.address(operand.address),
                Input::Scalar(scalar) => launch.scalar(scalar),
            };
        }
        if let Reading::Strided(rank) = self.access {
            space.pack(launch, rank, wide);
        }
    }

    /// Returns the part of a kernel's name that identifies the formula.
    pub(super) fn title(&self) -> String {
        let mut title = self.formula.title();
        for input in self.formula.inputs() {
            title += &match *input {
                Input::Scalar(dtype) => format!("_s{}", ctype::value(dtype)),
                Input::Array(dtype) => format!("_{}", ctype::value(dtype)),
            };
        }
        match self.access {
            Reading::Flat(ones) => title + &format!("_flat{ones}"),
            Reading::Strided(rank) => title + &format!("_strided{rank}"),
        }
    }

    pub(super) fn prelude(&self) -> Prelude {
        self.formula.prelude()
    }

    /// Returns the inputs with their positions, and the positions of the arrays among the arrays.
    fn inputs(&self) -> impl Iterator<Item = (usize, Input<usize, ()>, DType)> + '_ {
        let mut arrays = 0;
        self.formula.inputs().iter().enumerate().map(move |(position, input)| match *input {
            Input::Scalar(dtype) => (position, Input::Scalar(()), dtype),
            Input::Array(dtype) => {
                arrays += 1;
                (position, Input::Array(arrays - 1), dtype)
            }
        })
    }

    /// Returns the type of the inputs' space, if they need one.
    fn space(&self, wide: bool) -> Option<String> {
        let arrays = self.inputs().filter(|it| matches!(it.1, Input::Array(_))).count();
        match self.access {
            Reading::Flat(_) => None,
            Reading::Strided(rank) => Some(type_name(rank, arrays, wide)),
        }
    }

    /// Returns the fields of the inputs, each with a type and a name.
    fn fields(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.inputs().map(|(position, input, dtype)| match input {
            Input::Array(_) => ("const char*".to_owned(), format!("x{position}")),
            Input::Scalar(()) => (ctype::stored(dtype).to_owned(), format!("x{position}")),
        })
    }

    /// Returns the parameters of a kernel, each after a comma.
    pub(super) fn parameters(&self, wide: bool) -> String {
        let mut text: String =
            self.fields().map(|(kind, name)| format!(", {kind} {name}")).collect();
        if let Some(space) = self.space(wide) {
            text += &format!(", {space} inputs");
        }
        text
    }

    /// Returns statements that pass the parameters to a source.
    pub(super) fn arguments(&self) -> String {
        let pass = |(_, name): (String, String)| format!("source.in.{name} = {name}; ");
        let mut text: String = self.fields().map(pass).collect();
        if let Reading::Strided(_) = self.access {
            text += "source.in.space = &inputs;";
        }
        text
    }

    /// Returns the formula's function, and the struct of the inputs. Its method `at` computes the value with a number;
    /// `read` reads the inputs of a pack, which begins with a number, and `item` computes one of its values.
    pub(super) fn definition(&self, name: &str, pack: u64, wide: bool) -> String {
        let (index, offset) = ctype::index(wide);
        let output = self.formula.outputs().next().unwrap_or(0);
        let value = ctype::value(self.formula.steps()[output].dtype);
        let mut fields: String =
            self.fields().map(|(kind, name)| format!("    {kind} {name};\n")).collect();
        if let Some(space) = self.space(wide) {
            fields += &format!("    const {space}* space;\n");
        }
        let call = |read: &dyn Fn(usize, usize, DType) -> String| {
            let argument = |(position, input, dtype)| match input {
                Input::Array(array) => read(position, array, dtype),
                Input::Scalar(()) => format!("Stored<{}>::get(x{position})", ctype::value(dtype)),
            };
            format!("{name}_value({})", self.inputs().map(argument).collect::<Vec<_>>().join(", "))
        };
        let mut items = String::new();
        let mut reads = String::new();
        let (locate, element, item) = match self.access {
            Reading::Strided(_) => {
                let arrays = self.inputs().filter(|it| matches!(it.1, Input::Array(_))).count();
                items += &format!("    {index} first;\n");
                reads += "        packs.first = i;\n";
                (
                    format!(
                        "        {offset} offset[{arrays}];\n        space->locate(i, offset);\n"
                    ),
                    call(&|position, array, dtype| {
                        format!("load<{}>(x{position} + offset[{array}])", ctype::value(dtype))
                    }),
                    format!("at(packs.first + ({index})k)"),
                )
            }
            Reading::Flat(ones) => {
                let place = |position: usize, array: usize, dtype: DType| match ones >> array & 1 {
                    1 => format!("x{position}"),
                    _ => format!("x{position} + (u64)i * sizeof({})", ctype::stored(dtype)),
                };
                for (position, input, dtype) in self.inputs() {
                    let Input::Array(array) = input else { continue };
                    let kind = format!("{}, {pack}", ctype::stored(dtype));
                    let read = if ones >> array & 1 == 1 { "repeat<" } else { "fetch<ALIGNED, " };
                    let from = place(position, array, dtype);
                    items += &format!("    Pack<{kind}> x{position};\n");
                    reads += &format!("        packs.x{position} = {read}{kind}>({from});\n");
                }
                (
                    String::new(),
                    call(&|position, array, dtype| {
                        format!("load<{}>({})", ctype::value(dtype), place(position, array, dtype))
                    }),
                    call(&|position, _, dtype| {
                        format!("Stored<{}>::get(packs.x{position}.item[k])", ctype::value(dtype))
                    }),
                )
            }
        };
        let mut function = self.formula.definition(name);
        if self.formula.is_long() {
            // Otherwise, it would be repeated for each element that a thread reads at a time.
            function = function.replacen("DEVICE ", "static __device__ __noinline__ ", 1);
        }
        format!(
            "{function}struct {name}_packs {{
{items}}};
struct {name}_inputs {{
{fields}    METHOD {value} at({index} i) const {{
{locate}        return {element};
    }}
    METHOD bool aligned({index} i) const {{ return {aligned}; }}
    template <bool ALIGNED>
    METHOD {name}_packs read({index} i) const {{
        {name}_packs packs;
{reads}        return packs;
    }}
    METHOD {value} item(const {name}_packs& packs, int k) const {{ return {item}; }}
}};
",
            aligned = self.aligned(pack),
        )
    }

    /// Returns the number of packs that a thread reads before it uses the first. More would need so many registers that
    /// too few threads could run.
    pub(super) fn packs_at_once(&self, pack: u64) -> u64 {
        let Reading::Flat(_) = self.access else { return 1 };
        if self.formula.is_long() {
            // The values that were read would have to be kept in registers during the calls.
            return 1;
        }
        let bytes = self.inputs().map(|(_, input, dtype)| match input {
            Input::Array(_) => dtype.size() as u64 * pack,
            Input::Scalar(()) => 0,
        });
        (MOST_BYTES / bytes.sum::<u64>().max(1)).max(1)
    }

    /// Returns the condition that a pack that begins with value `i` is aligned in each array.
    fn aligned(&self, pack: u64) -> String {
        let Reading::Flat(ones) = self.access else { return "true".to_owned() };
        let mut conditions = Vec::new();
        for (position, input, dtype) in self.inputs() {
            if let Input::Array(array) = input
                && ones >> array & 1 == 0
            {
                let stored = ctype::stored(dtype);
                conditions.push(format!(
                    "packable<{stored}, {pack}>(x{position} + (u64)i * sizeof({stored}))"
                ));
            }
        }
        if conditions.is_empty() { "true".to_owned() } else { conditions.join(" && ") }
    }
}

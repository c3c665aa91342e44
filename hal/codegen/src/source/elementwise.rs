//! Element-wise operations.

mod source;
mod tiles;

use crate::source::iteration_space::IterationSpace;
use crate::source::kernel_spec::InputType;
use crate::source::launches::{Launches, THREADS, blocks};
use crate::source::{ctype, machine_word};
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{Function, UnaryFunction};
use hal::operation::{Elementwise, Input, Operand, Strides};
use hal::scalar::Scalar;
use smallvec::SmallVec;
use tiles::Tiles;

/// The way in which the kernel accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AccessPattern {
    /// Each array is contiguous, accessed in packs of up to 16 bytes if its address allows it.
    Contiguous,
    /// Any strides, in a space with a class of axes.
    Strided(u8),
    /// The same, where each array has whole packs, or a single element, along the last axis.
    Packed(u8),
    /// Any strides, where the arrays of the mask are read along another axis through tiles in shared memory.
    Tiled(u8, Tiles),
}

/// Everything that changes the code of an element-wise kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    function: Function,
    compute: DType,
    output: DType,
    inputs: [Option<InputType>; 4],
    access: AccessPattern,
    wide: bool,
}

impl Key {
    /// Returns the element size of the widest array.
    fn widest(&self) -> usize {
        self.arrays().fold(self.output.size(), |widest, (_, dtype)| widest.max(dtype.size()))
    }

    /// Returns the number of elements per access: the widest array moves 16 bytes.
    fn pack(&self) -> u64 {
        (16 / self.widest().max(1)).max(1) as u64
    }

    /// Returns the number of packs per thread: two if few bytes are read and even fewer stored.
    fn packs(&self) -> u64 {
        let bytes =
            self.output.size() + self.arrays().map(|(_, dtype)| dtype.size()).sum::<usize>();
        let few = bytes as u64 * self.pack() <= 24 && self.output.size() < self.widest();
        if few && !self.is_long() { 2 } else { 1 }
    }

    /// Returns the number of elements that a thread reads before it uses the first, so that the reads overlap. Long
    /// code, whose speed does not depend on memory, is not repeated.
    fn batch(&self) -> u64 {
        if self.is_long() { 1 } else { self.pack().clamp(2, 4) }
    }

    /// Returns the inputs with their positions.
    fn inputs(&self) -> impl Iterator<Item = (usize, InputType)> + '_ {
        self.inputs.iter().flatten().copied().enumerate()
    }

    /// Returns the number of arrays: the output, and the inputs that are not scalars.
    fn operands(&self) -> usize {
        1 + self.arrays().count()
    }

    /// Returns the position, among the space's operands, of an input that is an array.
    fn operand(&self, position: usize) -> usize {
        1 + self.arrays().filter(|&(other, _)| other < position).count()
    }

    /// Returns the inputs that are arrays, with their positions.
    fn arrays(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
        self.inputs().filter_map(|(position, input)| match input {
            Input::Array(dtype) => Some((position, dtype)),
            Input::Scalar(_) => None,
        })
    }

    /// Returns true for functions that take many instructions.
    fn is_long(&self) -> bool {
        match self.function {
            Function::Unary(unary) => unary.properties().cost.is_long(self.compute),
            Function::Binary(binary) => binary.properties().cost.is_long(self.compute),
            _ => false,
        }
    }
}

/// An array among the arguments.
#[derive(Clone, Copy)]
struct View<'a> {
    address: u64,
    dtype: DType,
    strides: &'a [isize],
}

impl<'a> View<'a> {
    fn of(operand: &'a Operand, word: Option<DType>) -> Self {
        let dtype = word.unwrap_or(operand.dtype);
        View { address: operand.address, dtype, strides: &operand.strides }
    }
}

/// Adds the launches of an operation and returns the key of their kernel. Elements that are only moved are moved as
/// words.
pub(super) fn plan(operation: &Elementwise, launches: &mut Launches) -> Result<Key> {
    let Elementwise { function, compute, shape, inputs, output } = operation;
    match (output.dtype, &inputs[0]) {
        (DType::Opaque(bytes), Input::Array(input)) => {
            let terms = machine_word::address_terms(input, shape)
                .chain(machine_word::address_terms(output, shape));
            let word = machine_word::of_record(bytes, terms);
            let mut shape = shape.clone();
            shape.push(bytes as usize / word.size());
            let words = Elementwise {
                function: *function,
                compute: word,
                shape,
                inputs: [Input::Array(machine_word::unfold(input, word))].into_iter().collect(),
                output: machine_word::unfold(output, word),
            };
            assemble(launches, &words, None, &[])
        }
        (DType::Opaque(bytes), Input::Scalar(value)) => {
            let word = machine_word::of_record(bytes, machine_word::address_terms(output, shape));
            let pieces =
                machine_word::split(value, word).collect::<Result<SmallVec<[Scalar; 1]>>>()?;
            if pieces.is_empty() {
                return Err(Error::invalid(
                    "elementwise",
                    format!("dtype is a record of {bytes} bytes; allowed are 1 and up"),
                ));
            }
            assemble(launches, operation, Some(word), &pieces)
        }
        (dtype, input) => {
            // Through another computing type, a copy between equal types may lose precision.
            let is_move = *function == Function::Unary(UnaryFunction::Copy)
                && input.dtype() == dtype
                && *compute == dtype;
            assemble(launches, operation, is_move.then(|| machine_word::of(dtype)), &[])
        }
    }
}

/// Adds the launches of an operation. In a copy, `word` replaces the types. `pieces` are values that replace a
/// scalar one after the other, at consecutive positions in the output.
fn assemble(
    launches: &mut Launches,
    operation: &Elementwise,
    word: Option<DType>,
    pieces: &[Scalar],
) -> Result<Key> {
    let Elementwise { function, compute, shape, inputs: arguments, output } = operation;
    let mut inputs = [None; 4];
    let mut views: SmallVec<[View<'_>; 5]> = SmallVec::new();
    views.push(View::of(output, word));
    for (input, argument) in inputs.iter_mut().zip(arguments) {
        let dtype = word.unwrap_or(argument.dtype());
        *input = Some(match argument {
            Input::Array(operand) => {
                views.push(View::of(operand, word));
                Input::Array(dtype)
            }
            Input::Scalar(_) => Input::Scalar(dtype),
        });
    }
    let mut key = Key {
        function: *function,
        compute: word.unwrap_or(*compute),
        output: views[0].dtype,
        inputs,
        access: AccessPattern::Contiguous,
        wide: false,
    };
    let run = |view: &View<'_>| view.strides == [view.dtype.size() as isize];
    if let ([count], true) = (&shape[..], views.iter().all(run)) {
        // The common case, which does not need a space.
        let widest = key.widest() as u64;
        key.wide = (*count as u64).saturating_mul(widest) >= 1 << 31;
        launch(launches, key, *count as u64, None, &views, arguments, pieces);
        return Ok(key);
    }
    let strides: SmallVec<[&[isize]; 5]> = views.iter().map(|view| view.strides).collect();
    let mut space = IterationSpace::default();
    space.fill(shape, &strides, |_| true)?;
    for (position, view) in views.iter_mut().enumerate() {
        view.address = space.moved(position, view.address);
    }
    key.wide = space.wide();
    key.access = access_of(&mut key, &mut space, &views);
    launch(launches, key, space.count(), Some(&space), &views, arguments, pieces);
    Ok(key)
}

/// Adds a launch, or one for each piece.
fn launch(
    launches: &mut Launches,
    key: Key,
    count: u64,
    space: Option<&IterationSpace>,
    views: &[View<'_>],
    arguments: &[Input],
    pieces: &[Scalar],
) {
    if count == 0 {
        return;
    }
    let threads = u64::from(THREADS);
    let work = match (key.access, space) {
        (AccessPattern::Tiled(_, tiles), Some(space)) => tiles.number(space),
        (AccessPattern::Packed(_), _) => count.div_ceil(threads),
        (AccessPattern::Strided(_), _) => count.div_ceil(threads * key.batch()),
        _ => count.div_ceil(threads * key.pack() * key.packs()),
    };
    for round in 0..pieces.len().max(1) {
        let mut launch = launches.launch(0, blocks(work));
        match (key.access, space) {
            (
                AccessPattern::Strided(rank)
                | AccessPattern::Packed(rank)
                | AccessPattern::Tiled(rank, _),
                Some(space),
            ) => space.pack(&mut launch, rank, key.wide),
            _ => {
                launch.index(count, key.wide);
            }
        }
        let mut addresses = views.iter().map(|view| view.address);
        let offset = (round * key.output.size()) as u64;
        launch.address(addresses.next().unwrap_or(0).wrapping_add(offset));
        for argument in arguments {
            match argument {
                Input::Array(_) => launch.address(addresses.next().unwrap_or(0)),
                Input::Scalar(value) => launch.scalar(pieces.get(round).unwrap_or(value)),
            };
        }
    }
}

fn access_of(key: &mut Key, space: &mut IterationSpace, views: &[View<'_>]) -> AccessPattern {
    let mut sizes: SmallVec<[usize; 5]> = views.iter().map(|view| view.dtype.size()).collect();
    let runs = |(strides, &size): (&Strides, &usize)| match strides[..] {
        [] => true,
        [stride] => stride == size as isize,
        _ => false,
    };
    if space.strides.iter().zip(&sizes).all(runs) {
        return AccessPattern::Contiguous;
    }
    if pack_rows(key.pack() as usize, space, views) {
        return AccessPattern::Packed(space.rank());
    }
    let copy = key.function == Function::Unary(UnaryFunction::Copy);
    if copy && key.output == key.compute && key.inputs[0] == Some(Input::Array(key.output)) {
        let addresses = views.iter().map(|view| view.address);
        let unit = machine_word::widen(key.output, 8, space, &[0, 1], addresses);
        (key.output, key.compute, key.inputs[0]) = (unit, unit, Some(Input::Array(unit)));
        sizes.fill(unit.size());
    }
    match tiles::transposed(space, &sizes) {
        None => AccessPattern::Strided(space.rank()),
        Some(tiles) => AccessPattern::Tiled(space.rank(), tiles),
    }
}

/// Counts the last axis in packs, if every array has either whole, aligned packs or a single element along it.
fn pack_rows(pack: usize, space: &mut IterationSpace, views: &[View<'_>]) -> bool {
    let Some(last) = space.shape.len().checked_sub(1) else {
        return false;
    };
    let packs = |(position, (strides, view)): (usize, (&Strides, &View<'_>))| {
        let size = view.dtype.size();
        let outside = strides[..last].iter().fold(view.address, |all, &stride| all | stride as u64);
        (strides[last] == size as isize && outside % (pack * size) as u64 == 0)
            || (strides[last] == 0 && position > 0)
    };
    if pack == 1
        || !space.shape[last].is_multiple_of(pack)
        || !space.strides.iter().zip(views).enumerate().all(packs)
    {
        return false;
    }
    space.shape[last] /= pack;
    for strides in &mut space.strides {
        strides[last] *= pack as isize;
    }
    true
}

// The expression that an element-wise kernel evaluates for each element.

impl Key {
    /// Returns the definition of the function that computes the output's element from the inputs' elements.
    fn value(&self, name: &str) -> String {
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
    fn call(&self, name: &str, read: impl Fn(usize, DType) -> String) -> String {
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

//! Element-wise operations.

mod row;
mod source;
mod tiles;

use crate::source::ctype::Prelude;
use crate::source::iteration_space::IterationSpace;
use crate::source::kernel_key::InputType;
use crate::source::launches::{Launches, THREADS, blocks};
use crate::source::{ctype, machine_word};
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{Function, UnaryFunction};
use hal::operation::{Elementwise, Formula, Fused, Input, Operand, Strides, Term};
use hal::scalar::Scalar;
pub use row::{ROW, ROW_OPTIONS, row_source};
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::hash::{Hash, Hasher as _};
use std::iter;
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

/// The values that an element-wise kernel computes, as far as they change its code.
pub(super) trait Computation: Clone + Debug + Eq + Hash {
    /// Returns the types of the outputs.
    fn outputs(&self) -> impl ExactSizeIterator<Item = DType> + Clone;

    /// Returns the types of the inputs.
    fn inputs(&self) -> impl Iterator<Item = InputType>;

    /// Returns true if it takes many instructions.
    fn is_long(&self) -> bool;

    /// Returns the first part of the kernel's name, which is unique among all computations.
    fn title(&self) -> String;

    /// Returns the parts of the prelude that it uses.
    fn prelude(&self) -> Prelude;

    /// Returns the definition of the function `{name}_value` of the inputs' elements. With one output, it returns
    /// the output's element; with several, a struct with the fields `y0`, `y1` and so on.
    fn definition(&self, name: &str) -> String;

    /// If elements are only copied, replaces their type by the one that `widen` returns for it, and returns that.
    fn widen(&mut self, _widen: impl FnOnce(DType) -> DType) -> Option<DType> {
        None
    }
}

/// One function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Single {
    function: Function,
    compute: DType,
    output: DType,
    inputs: [Option<InputType>; 4],
}

impl Computation for Single {
    fn outputs(&self) -> impl ExactSizeIterator<Item = DType> + Clone {
        iter::once(self.output)
    }

    fn inputs(&self) -> impl Iterator<Item = InputType> {
        self.inputs.iter().flatten().copied()
    }

    fn is_long(&self) -> bool {
        self.function.is_long(self.compute)
    }

    fn title(&self) -> String {
        format!("{}_{}", ctype::function(self.function), ctype::value(self.compute))
    }

    fn prelude(&self) -> Prelude {
        let condition = self.inputs[0].map_or(self.compute, dtype_of);
        prelude(self.function, self.compute, condition)
    }

    fn definition(&self, name: &str) -> String {
        let arguments = self.inputs().enumerate();
        let arguments = arguments.map(|(at, input)| (format!("x{at}"), dtype_of(input))).collect();
        format!(
            "DEVICE {} {name}_value({}) {{\n    return {};\n}}\n",
            ctype::value(self.output),
            parameters(self.inputs()),
            value(self.function, self.compute, arguments, self.output)
        )
    }

    fn widen(&mut self, widen: impl FnOnce(DType) -> DType) -> Option<DType> {
        let is_move = self.function == Function::Unary(UnaryFunction::Copy)
            && self.output == self.compute
            && self.inputs[0] == Some(Input::Array(self.output));
        is_move.then(|| {
            let unit = widen(self.output);
            (self.output, self.compute, self.inputs[0]) = (unit, unit, Some(Input::Array(unit)));
            unit
        })
    }
}

/// Several functions.
impl Computation for Formula {
    fn outputs(&self) -> impl ExactSizeIterator<Item = DType> + Clone {
        Formula::outputs(self).map(|step| self.steps()[step].dtype)
    }

    fn inputs(&self) -> impl Iterator<Item = InputType> {
        Formula::inputs(self).iter().copied()
    }

    fn is_long(&self) -> bool {
        Formula::is_long(self)
    }

    /// A checksum of the steps. Two formulas with the same one have different sources, and the cache on disk
    /// compares sources.
    fn title(&self) -> String {
        let mut hasher = FxHasher::default();
        self.steps().hash(&mut hasher);
        let outputs: String = Formula::outputs(self).map(|step| format!("_{step}")).collect();
        format!("fused_{:016x}{outputs}", hasher.finish())
    }

    fn prelude(&self) -> Prelude {
        self.steps().iter().fold(Prelude::NONE, |all, step| {
            let first = self.dtype(step.arguments[0]);
            all.with(prelude(step.function, step.compute, first)).with(ctype::prelude(step.dtype))
        })
    }

    fn definition(&self, name: &str) -> String {
        let mut steps = String::new();
        for (position, step) in self.steps().iter().enumerate() {
            let text = |&term: &Term| match term {
                Term::Input(input) => (format!("x{input}"), self.dtype(term)),
                Term::Step(earlier) => (format!("s{earlier}"), self.dtype(term)),
            };
            let arguments = step.arguments.iter().map(text).collect();
            steps += &format!(
                "    const {} s{position} = {};\n",
                ctype::value(step.dtype),
                value(step.function, step.compute, arguments, step.dtype)
            );
        }
        let parameters = parameters(Formula::inputs(self).iter().copied());
        let outputs: Vec<usize> = Formula::outputs(self).collect();
        if let [output] = outputs[..] {
            let result = ctype::value(self.steps()[output].dtype);
            return format!(
                "DEVICE {result} {name}_value({parameters}) {{\n{steps}    return s{output};\n}}\n"
            );
        }
        let (mut fields, mut stores) = (String::new(), String::new());
        for (k, &output) in outputs.iter().enumerate() {
            fields += &format!("    {} y{k};\n", ctype::value(self.steps()[output].dtype));
            stores += &format!("    values.y{k} = s{output};\n");
        }
        format!(
            "struct {name}_values {{\n{fields}}};\nDEVICE {name}_values {name}_value({parameters}) {{\n{steps}    \
             {name}_values values;\n{stores}    return values;\n}}\n"
        )
    }
}

fn dtype_of(input: InputType) -> DType {
    match input {
        Input::Scalar(dtype) | Input::Array(dtype) => dtype,
    }
}

/// Returns the parts of the prelude for a function whose first argument has the type `first`.
fn prelude(function: Function, compute: DType, first: DType) -> Prelude {
    match function {
        // A condition is compared in its own type.
        Function::SelectPositive => ctype::prelude(compute).with(ctype::prelude(first)),
        _ => ctype::prelude(compute),
    }
}

/// Returns the parameters `x0`, `x1` and so on of the function of the inputs' elements.
fn parameters(inputs: impl Iterator<Item = InputType>) -> String {
    let name = |(at, input)| format!("{} x{at}", ctype::value(dtype_of(input)));
    inputs.enumerate().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the expression for a function of arguments with these types, converted to `output`.
fn value(
    function: Function,
    compute: DType,
    arguments: SmallVec<[(String, DType); 4]>,
    output: DType,
) -> String {
    let convert = |(position, (text, dtype)): (usize, (String, DType))| match function
        .argument(position, compute)
    {
        None => {
            let (from, functions) = (ctype::value(dtype), ctype::functions(dtype));
            match function {
                Function::Select => format!("convert<bool>({text})"),
                _ => format!("{functions}::greater({text}, convert<{from}>((i32)0))"),
            }
        }
        Some(wanted) if dtype == wanted => text,
        // Compilers for processors turn a selection into vector instructions, but not a conversion.
        Some(wanted) if dtype == DType::Bool && row::is_plain(wanted) => {
            let kind = ctype::value(wanted);
            format!("({text} ? ({kind})1 : ({kind})0)")
        }
        Some(wanted) => format!("convert<{}>({text})", ctype::value(wanted)),
    };
    let arguments: SmallVec<[String; 4]> = arguments.into_iter().enumerate().map(convert).collect();
    let functions = ctype::functions(compute);
    let expression = match (function, &arguments[..]) {
        (Function::Unary(UnaryFunction::Copy), [x]) => x.clone(),
        (Function::Select | Function::SelectPositive, [condition, yes, no]) => {
            format!("{condition} ? {yes} : {no}")
        }
        (Function::LinearCombination, [a, x, b, y]) => format!(
            "{functions}::add({functions}::multiply({a}, {x}), {functions}::multiply({b}, {y}))"
        ),
        _ => format!("{functions}::{}({})", ctype::function(function), arguments.join(", ")),
    };
    match function.result(compute) == output {
        true => expression,
        false => format!("convert<{}>({expression})", ctype::value(output)),
    }
}

/// Everything that changes the code of an element-wise kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<C> {
    computation: C,
    access: AccessPattern,
    wide: bool,
}

impl<C: Computation> Key<C> {
    /// Returns the element size of the widest array.
    fn widest(&self) -> usize {
        let sizes = self.arrays().map(|(_, dtype)| dtype.size());
        sizes.chain(self.computation.outputs().map(DType::size)).max().unwrap_or(1)
    }

    /// Returns the size of an element of each output, together.
    fn stored(&self) -> usize {
        self.computation.outputs().map(DType::size).sum()
    }

    /// Returns the number of elements per access: the widest array moves 16 bytes.
    fn pack(&self) -> u64 {
        (16 / self.widest().max(1)).max(1) as u64
    }

    /// Returns the number of packs per thread: two if few bytes are read and even fewer stored.
    fn packs(&self) -> u64 {
        let bytes = self.stored() + self.arrays().map(|(_, dtype)| dtype.size()).sum::<usize>();
        let few = bytes as u64 * self.pack() <= 24 && self.stored() < self.widest();
        if few && !self.computation.is_long() { 2 } else { 1 }
    }

    /// Returns the number of elements that a thread reads before it uses the first, so that the reads overlap. Long
    /// code, whose speed does not depend on memory, is not repeated.
    fn batch(&self) -> u64 {
        if self.computation.is_long() { 1 } else { self.pack().clamp(2, 4) }
    }

    /// Returns the inputs with their positions.
    fn inputs(&self) -> impl Iterator<Item = (usize, InputType)> + '_ {
        self.computation.inputs().enumerate()
    }

    /// Returns the outputs with their positions.
    fn outputs(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
        self.computation.outputs().enumerate()
    }

    /// Returns the number of arrays: the outputs, and the inputs that are not scalars.
    fn operands(&self) -> usize {
        self.computation.outputs().len() + self.arrays().count()
    }

    /// Returns the position, among the space's operands, of an input that is an array.
    fn operand(&self, position: usize) -> usize {
        let before = self.arrays().filter(|&(other, _)| other < position).count();
        self.computation.outputs().len() + before
    }

    /// Returns the inputs that are arrays, with their positions.
    fn arrays(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
        self.inputs().filter_map(|(position, input)| match input {
            Input::Array(dtype) => Some((position, dtype)),
            Input::Scalar(_) => None,
        })
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
pub(super) fn plan(operation: &Elementwise, launches: &mut Launches) -> Result<Key<Single>> {
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
                    format!("dtype is a record of size {bytes}; allowed are 1 and up"),
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
) -> Result<Key<Single>> {
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
    let (compute, output) = (word.unwrap_or(*compute), views[0].dtype);
    let single = Single { function: *function, compute, output, inputs };
    arrange(launches, single, shape, views, arguments, pieces)
}

/// Adds the launches of several functions and returns the key of their kernel.
pub(super) fn plan_fused(operation: &Fused, launches: &mut Launches) -> Result<Key<Formula>> {
    let Fused { formula, shape, inputs, outputs } = operation;
    let mut views: SmallVec<[View<'_>; 5]> =
        outputs.iter().map(|output| View::of(output, None)).collect();
    views.extend(inputs.iter().filter_map(|input| match input {
        Input::Array(operand) => Some(View::of(operand, None)),
        Input::Scalar(_) => None,
    }));
    arrange(launches, formula.clone(), shape, views, inputs, &[])
}

/// Chooses the access of memory, and adds the launches.
#[inline]
fn arrange<C: Computation>(
    launches: &mut Launches,
    computation: C,
    shape: &[usize],
    mut views: SmallVec<[View<'_>; 5]>,
    arguments: &[Input],
    pieces: &[Scalar],
) -> Result<Key<C>> {
    let mut key = Key { computation, access: AccessPattern::Contiguous, wide: false };
    let run = |view: &View<'_>| view.strides == [view.dtype.size() as isize];
    if let ([count], true) = (shape, views.iter().all(run)) {
        // The common case, which does not need a space.
        let widest = key.widest() as u64;
        key.wide = (*count as u64).saturating_mul(widest) >= 1 << 31;
        launch(launches, &key, *count as u64, None, &views, arguments, pieces);
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
    space.check_size(key.wide, views.len())?;
    launch(launches, &key, space.count(), Some(&space), &views, arguments, pieces);
    Ok(key)
}

/// Adds a launch, or one for each piece.
fn launch<C: Computation>(
    launches: &mut Launches,
    key: &Key<C>,
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
        for (output, address) in key.computation.outputs().zip(addresses.by_ref()) {
            launch.address(address.wrapping_add((round * output.size()) as u64));
        }
        for argument in arguments {
            match argument {
                Input::Array(_) => launch.address(addresses.next().unwrap_or(0)),
                Input::Scalar(value) => launch.scalar(pieces.get(round).unwrap_or(value)),
            };
        }
    }
}

fn access_of<C: Computation>(
    key: &mut Key<C>,
    space: &mut IterationSpace,
    views: &[View<'_>],
) -> AccessPattern {
    let mut sizes: SmallVec<[usize; 5]> = views.iter().map(|view| view.dtype.size()).collect();
    let runs = |(strides, &size): (&Strides, &usize)| match strides[..] {
        [] => true,
        [stride] => stride == size as isize,
        _ => false,
    };
    if space.strides.iter().zip(&sizes).all(runs) {
        return AccessPattern::Contiguous;
    }
    let outputs = key.computation.outputs().len();
    if pack_rows(key.pack() as usize, space, views, outputs) {
        return AccessPattern::Packed(space.rank());
    }
    let addresses = views.iter().map(|view| view.address);
    let widen = |dtype| machine_word::widen(dtype, 8, space, &[0, 1], addresses);
    if let Some(unit) = key.computation.widen(widen) {
        sizes.fill(unit.size());
    }
    if outputs > 1 || views.len() > 1 + u8::BITS as usize {
        return AccessPattern::Strided(space.rank());
    }
    match tiles::transposed(space, &sizes) {
        None => AccessPattern::Strided(space.rank()),
        Some(tiles) => AccessPattern::Tiled(space.rank(), tiles),
    }
}

/// Counts the last axis in packs, if every array has either whole, aligned packs or a single element along it.
fn pack_rows(pack: usize, space: &mut IterationSpace, views: &[View<'_>], outputs: usize) -> bool {
    let Some(last) = space.shape.len().checked_sub(1) else {
        return false;
    };
    let packs = |(position, (strides, view)): (usize, (&Strides, &View<'_>))| {
        let size = view.dtype.size();
        let outside = strides[..last].iter().fold(view.address, |all, &stride| all | stride as u64);
        (strides[last] == size as isize && outside % (pack * size) as u64 == 0)
            || (strides[last] == 0 && position >= outputs)
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

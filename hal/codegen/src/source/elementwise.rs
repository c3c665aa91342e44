//! Element-wise operations.

mod expression;
mod source;
mod tiled_source;
mod tiles;

use crate::source::iteration_space::IterationSpace;
use crate::source::kernel_key::InputType;
use crate::source::launches::{Launches, THREADS, blocks};
use crate::source::machine_word;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{Function, UnaryFunction};
use hal::operation::{Elementwise, Input, Operand, Strides};
use hal::scalar::Scalar;
use smallvec::SmallVec;
use tiles::Tiles;

/// How the kernel accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Access {
    /// One run of memory in each array; packs of up to 16 bytes where addresses allow it.
    Contiguous,
    /// Any strides, in a space of a class of axes.
    Strided(u8),
    /// The same, where each array has whole packs, or one element, along the last axis.
    Packed(u8),
    /// Any strides, where the arrays of the mask are read along another axis through tiles in
    /// shared memory.
    Tiled(u8, Tiles),
}

/// Everything that changes the code of an element-wise kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    function: Function,
    compute: DType,
    output: DType,
    inputs: [InputType; 4],
    access: Access,
    wide: bool,
}

impl Key {
    /// The size of the widest array's elements.
    fn widest(&self) -> usize {
        self.inputs.iter().fold(self.output.size(), |widest, input| match input {
            InputType::Array(dtype) => widest.max(dtype.size()),
            _ => widest,
        })
    }

    /// Elements of one access: the widest array moves 16 bytes.
    fn pack(&self) -> u64 {
        (16 / self.widest().max(1)).max(1) as u64
    }

    /// Packs of a thread: two where little is read for still less to be stored.
    fn packs(&self) -> u64 {
        let bytes =
            self.output.size() + self.arrays().map(|(_, dtype)| dtype.size()).sum::<usize>();
        let few = bytes as u64 * self.pack() <= 24 && self.output.size() < self.widest();
        if few && !self.is_long() { 2 } else { 1 }
    }

    /// Elements that a thread reads one by one before it uses them, so that the reads wait
    /// for memory together. Long code, whose speed does not depend on memory, is not repeated.
    fn batch(&self) -> u64 {
        if self.is_long() { 1 } else { self.pack().clamp(2, 4) }
    }

    /// The inputs that are there, with their positions.
    fn inputs(&self) -> impl Iterator<Item = (usize, InputType)> + '_ {
        self.inputs.iter().copied().enumerate().filter(|(_, input)| *input != InputType::Unused)
    }

    /// Returns the number of arrays: the output, and the inputs that are not scalars.
    fn operands(&self) -> usize {
        1 + self.inputs().filter(|(_, input)| matches!(input, InputType::Array(_))).count()
    }

    /// The position among the space's operands of each input that is an array.
    fn operand(&self, position: usize) -> usize {
        let arrays = self.inputs[..position].iter();
        1 + arrays.filter(|input| matches!(input, InputType::Array(_))).count()
    }

    /// The inputs that are arrays, with their positions.
    fn arrays(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
        self.inputs().filter_map(|(position, input)| match input {
            InputType::Array(dtype) => Some((position, dtype)),
            _ => None,
        })
    }

    /// True for functions that take many instructions.
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
    fn of(operand: &'a Operand) -> Self {
        View { address: operand.address, dtype: operand.dtype, strides: &operand.strides }
    }
}

#[derive(Clone, Copy)]
enum Argument<'a> {
    Array(View<'a>),
    Scalar(Scalar),
}

/// Adds the launches of an operation and returns the key of their kernel. Records become words.
pub(super) fn plan(operation: &Elementwise, launches: &mut Launches) -> Result<Key> {
    let Elementwise { function, compute, shape, inputs, output } = operation;
    let target = View::of(output);
    let copy = *function == Function::Unary(UnaryFunction::Copy);
    match (output.dtype, &inputs[0]) {
        (DType::Opaque(bytes), Input::Array(input)) => {
            let terms = machine_word::address_terms(input, shape)
                .chain(machine_word::address_terms(output, shape));
            let unit = machine_word::of_record(bytes, terms);
            let (input, output) =
                (machine_word::unfold(input, unit), machine_word::unfold(output, unit));
            let mut shape = shape.clone();
            shape.push(bytes as usize / unit.size());
            let input = Argument::Array(View::of(&input));
            assemble(launches, *function, unit, &shape, [input].into_iter(), View::of(&output), &[])
        }
        (DType::Opaque(bytes), Input::Scalar(value)) => {
            let unit = machine_word::of_record(bytes, machine_word::address_terms(output, shape));
            let pieces =
                machine_word::split(value, unit).collect::<Result<SmallVec<[Scalar; 1]>>>()?;
            let Some(&first) = pieces.first() else {
                return Err(Error::invalid(
                    "elementwise",
                    format!("dtype is a record of {bytes} bytes; allowed are 1 and up"),
                ));
            };
            let target = View { dtype: unit, ..target };
            assemble(
                launches,
                *function,
                unit,
                shape,
                [Argument::Scalar(first)].into_iter(),
                target,
                &pieces,
            )
        }
        (dtype, Input::Array(input)) if copy && input.dtype == dtype => {
            // Through another type a copy between equal types may lose something.
            let (compute, dtype) = match *compute == dtype {
                true => (machine_word::of(*compute), machine_word::of(dtype)),
                false => (*compute, dtype),
            };
            let input = Argument::Array(View { dtype, ..View::of(input) });
            let target = View { dtype, ..target };
            assemble(launches, *function, compute, shape, [input].into_iter(), target, &[])
        }
        (dtype, Input::Scalar(value)) if copy => {
            let unit = machine_word::of(dtype);
            let value = Scalar::from_bytes(unit, value.bytes())?;
            let target = View { dtype: unit, ..target };
            assemble(
                launches,
                *function,
                unit,
                shape,
                [Argument::Scalar(value)].into_iter(),
                target,
                &[],
            )
        }
        _ => {
            let arguments = inputs.iter().map(|input| match input {
                Input::Array(operand) => Argument::Array(View::of(operand)),
                Input::Scalar(value) => Argument::Scalar(*value),
            });
            assemble(launches, *function, *compute, shape, arguments, target, &[])
        }
    }
}

/// Adds the launches of a function of arguments that are ready. `pieces` are values that replace
/// a scalar one after the other, each behind the one before in the output.
fn assemble<'a>(
    launches: &mut Launches,
    function: Function,
    compute: DType,
    shape: &[usize],
    arguments: impl Iterator<Item = Argument<'a>> + Clone,
    output: View<'_>,
    pieces: &[Scalar],
) -> Result<Key> {
    let mut inputs = [InputType::Unused; 4];
    let mut views: SmallVec<[View<'_>; 5]> = SmallVec::new();
    views.push(output);
    for (input, argument) in inputs.iter_mut().zip(arguments.clone()) {
        *input = match argument {
            Argument::Array(view) => {
                views.push(view);
                InputType::Array(view.dtype)
            }
            Argument::Scalar(value) => InputType::Scalar(value.dtype()),
        };
    }
    let access = Access::Contiguous;
    let mut key = Key { function, compute, output: output.dtype, inputs, access, wide: false };
    let run = |view: &View<'_>| view.strides == [view.dtype.size() as isize];
    if let ([count], true) = (shape, views.iter().all(run)) {
        // The common case, without a space.
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

/// Adds a launch, or one for each of the pieces.
fn launch<'a>(
    launches: &mut Launches,
    key: Key,
    count: u64,
    space: Option<&IterationSpace>,
    views: &[View<'_>],
    arguments: impl Iterator<Item = Argument<'a>> + Clone,
    pieces: &[Scalar],
) {
    if count == 0 {
        return;
    }
    let threads = u64::from(THREADS);
    let work = match (key.access, space) {
        (Access::Tiled(_, tiles), Some(space)) => tiles.number(space),
        (Access::Packed(_), _) => count.div_ceil(threads),
        (Access::Strided(_), _) => count.div_ceil(threads * key.batch()),
        _ => count.div_ceil(threads * key.pack() * key.packs()),
    };
    for round in 0..pieces.len().max(1) {
        let mut launch = launches.launch(0, blocks(work));
        match (key.access, space) {
            (
                Access::Strided(rank) | Access::Packed(rank) | Access::Tiled(rank, _),
                Some(space),
            ) => space.pack(&mut launch, rank, key.wide),
            _ => {
                launch.index(count, key.wide);
            }
        }
        let mut addresses = views.iter().map(|view| view.address);
        let offset = (round * key.output.size()) as u64;
        launch.address(addresses.next().unwrap_or(0).wrapping_add(offset));
        for argument in arguments.clone() {
            match argument {
                Argument::Array(_) => launch.address(addresses.next().unwrap_or(0)),
                Argument::Scalar(value) => launch.scalar(pieces.get(round).unwrap_or(&value)),
            };
        }
    }
}

fn access_of(key: &mut Key, space: &mut IterationSpace, views: &[View<'_>]) -> Access {
    let mut sizes: SmallVec<[usize; 5]> = views.iter().map(|view| view.dtype.size()).collect();
    let runs = |(strides, &size): (&Strides, &usize)| match strides[..] {
        [] => true,
        [stride] => stride == size as isize,
        _ => false,
    };
    if space.strides.iter().zip(&sizes).all(runs) {
        return Access::Contiguous;
    }
    if pack_rows(key.pack() as usize, space, views) {
        return Access::Packed(space.rank());
    }
    let copy = key.function == Function::Unary(UnaryFunction::Copy);
    if copy && key.output == key.compute && key.inputs[0] == InputType::Array(key.output) {
        let addresses = views.iter().map(|view| view.address);
        let unit = machine_word::widen(key.output, 8, space, &[0, 1], addresses);
        (key.output, key.compute, key.inputs[0]) = (unit, unit, InputType::Array(unit));
        sizes.fill(unit.size());
    }
    match tiles::transposed(space, &sizes) {
        None => Access::Strided(space.rank()),
        Some(tiles) => Access::Tiled(space.rank(), tiles),
    }
}

/// Counts the last axis in packs, if every array has whole and aligned ones along it, or one
/// element for all.
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

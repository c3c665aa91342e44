//! Element-wise operations: packed, contiguous, strided and tiled kernels.

use super::plan::Plan;
use super::space::{Space, THREADS, blocks};
use super::{tile, word};
use crate::Complex;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::{Function, UnaryFunction};
use crate::operation::{Elementwise, Input, Operand};
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};

/// What an argument of the function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Unused,
    Scalar(DType),
    Array(DType),
}

/// How memory is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    /// One run of memory in each array; several elements in one access of up to 16 bytes.
    Packed,
    /// One run of memory in each array, element by element.
    Contiguous,
    /// Any strides, in a space of a class of axes.
    Strided(u8),
    /// Any strides, where the arrays of the mask are read along another axis through shared
    /// memory.
    Tiled(u8, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) function: Function,
    pub(super) compute: DType,
    pub(super) output: DType,
    pub(super) inputs: [Slot; 4],
    pub(super) access: Access,
    pub(super) wide: bool,
}

/// An operation whose records are words and whose scalars have the computing type.
#[derive(Debug)]
pub(super) struct Prepared {
    key: Key,
    space: Space,
    /// Of the output and of the arrays among the inputs, in order.
    addresses: SmallVec<[u64; 5]>,
    scalars: [Option<Scalar>; 4],
    /// Words that fill the output one after the other, where it consists of records.
    pieces: SmallVec<[Scalar; 1]>,
}

impl Prepared {
    pub(super) fn new(operation: &Elementwise) -> Result<Self> {
        check(operation)?;
        let Elementwise { function, compute, shape, inputs, output } = operation;
        let copy = *function == Function::Unary(UnaryFunction::Copy);
        match (output.dtype, &inputs[0]) {
            (DType::Opaque(bytes), Input::Array(input)) => {
                let places = word::places(input, shape).chain(word::places(output, shape));
                let unit = word::of_record(bytes, places);
                let (input, output) = (word::unfold(input, unit), word::unfold(output, unit));
                let mut shape = shape.clone();
                shape.push(bytes as usize / unit.size());
                Self::assemble(*function, unit, &shape, &[Ok(&input)], &output)
            }
            (DType::Opaque(bytes), Input::Scalar(value)) => {
                let unit = word::of_record(bytes, word::places(output, shape));
                let pieces = word::split(value, unit).collect::<Result<SmallVec<[Scalar; 1]>>>()?;
                let Some(&first) = pieces.first() else {
                    return Err(Error::invalid("elementwise", "a record of no bytes"));
                };
                let output = word::slice(output, unit, 0);
                let mut this = Self::assemble(*function, unit, shape, &[Err(first)], &output)?;
                this.pieces = pieces;
                Ok(this)
            }
            (_, Input::Array(input)) if copy && input.dtype == output.dtype => {
                // Through another type a copy between equal types may lose something.
                let (compute, dtype) = if *compute == output.dtype {
                    (word::of(*compute), word::of(output.dtype))
                } else {
                    (*compute, output.dtype)
                };
                let input = Operand { dtype, ..input.clone() };
                let output = Operand { dtype, ..output.clone() };
                Self::assemble(*function, compute, shape, &[Ok(&input)], &output)
            }
            (dtype, Input::Scalar(value)) if copy => {
                let value = value.cast(*compute)?.cast(dtype)?;
                let unit = word::of(dtype);
                let value = Scalar::from_bytes(unit, value.bytes())?;
                let output = word::slice(output, unit, 0);
                Self::assemble(*function, unit, shape, &[Err(value)], &output)
            }
            _ => {
                let slots = inputs
                    .iter()
                    .enumerate()
                    .map(|(position, input)| {
                        Ok(match input {
                            Input::Array(operand) => Ok(operand),
                            Input::Scalar(value) if position == 0 => {
                                Err(first_scalar(*function, value, *compute)?)
                            }
                            Input::Scalar(value) => Err(value.cast(*compute)?),
                        })
                    })
                    .collect::<Result<SmallVec<[Result<&Operand, Scalar>; 4]>>>()?;
                Self::assemble(*function, *compute, shape, &slots, output)
            }
        }
    }

    /// `inputs` are arrays or, as `Err`, scalars.
    fn assemble(
        function: Function,
        compute: DType,
        shape: &[usize],
        inputs: &[Result<&Operand, Scalar>],
        output: &Operand,
    ) -> Result<Self> {
        let mut operands: SmallVec<[&Operand; 5]> = smallvec![output];
        operands.extend(inputs.iter().filter_map(|input| input.as_ref().ok().copied()));
        let strides: SmallVec<[&[isize]; 5]> =
            operands.iter().map(|operand| &operand.strides[..]).collect();
        let mut space = Space::new(shape, &strides)?;
        let addresses: SmallVec<[u64; 5]> = operands
            .iter()
            .enumerate()
            .map(|(position, operand)| space.address(position, operand))
            .collect();
        let mut scalars = [None; 4];
        let mut slots = [Slot::Unused; 4];
        for ((input, slot), scalar) in inputs.iter().zip(&mut slots).zip(&mut scalars) {
            *slot = match input {
                Ok(operand) => Slot::Array(operand.dtype),
                Err(value) => {
                    *scalar = Some(*value);
                    Slot::Scalar(value.dtype())
                }
            };
        }
        let mut key = Key {
            function,
            compute,
            output: output.dtype,
            inputs: slots,
            access: Access::Contiguous,
            wide: space.wide(),
        };
        let sizes: SmallVec<[usize; 5]> =
            operands.iter().map(|operand| operand.dtype.size()).collect();
        key.access = access(&key, &mut space, &addresses, &sizes);
        Ok(Prepared { key, space, addresses, scalars, pieces: SmallVec::new() })
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn launch(&self, plan: &mut Plan) {
        let count = self.space.count();
        if count == 0 {
            return;
        }
        let key = &self.key;
        let threads = u64::from(THREADS);
        let work = match key.access {
            Access::Packed => count.div_ceil(key.pack() * threads),
            Access::Contiguous | Access::Strided(_) => count.div_ceil(threads),
            Access::Tiled(..) => tile::tiles(&self.space),
        };
        for round in 0..self.pieces.len().max(1) {
            let mut launch = plan.launch(0, blocks(work));
            match key.access {
                Access::Packed | Access::Contiguous => {
                    launch.index(count, key.wide);
                }
                Access::Strided(rank) | Access::Tiled(rank, _) => {
                    self.space.pack(&mut launch, rank, key.wide);
                }
            }
            let mut addresses = self.addresses.iter();
            let offset = (round * key.output.size()) as u64;
            launch.address(addresses.next().map_or(0, |address| address.wrapping_add(offset)));
            for (slot, scalar) in key.inputs.iter().zip(&self.scalars) {
                match (slot, self.pieces.get(round).or(scalar.as_ref())) {
                    (Slot::Array(_), _) => {
                        launch.address(addresses.next().copied().unwrap_or(0));
                    }
                    (Slot::Scalar(_), Some(value)) => {
                        launch.scalar(value);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The operation agrees with its own description: numbers of inputs and strides, dtypes.
fn check(operation: &Elementwise) -> Result<()> {
    let Elementwise { function, compute, inputs, output, .. } = operation;
    if inputs.len() != function.arity() {
        return Err(Error::invalid(
            "elementwise",
            format!("{function:?} takes {} inputs, not {}", function.arity(), inputs.len()),
        ));
    }
    let types = || inputs.iter().map(Input::dtype).chain([output.dtype, *compute]);
    let defined = if types().any(|dtype| dtype.kind() == Kind::Opaque) {
        let copy = *function == Function::Unary(UnaryFunction::Copy);
        copy && types().all(|dtype| dtype == output.dtype)
    } else {
        match function {
            Function::Unary(unary) => unary.signature(*compute)?.compute == *compute,
            Function::Binary(binary) => binary.signature(*compute)?.compute == *compute,
            _ => true,
        }
    };
    if defined {
        return Ok(());
    }
    Err(Error::invalid_type(
        "elementwise",
        format!("{function:?} does not compute in dtype {compute} for these inputs and output"),
    ))
}

/// The first argument as the kernel takes it: a condition keeps its own type, of which only
/// the truth matters.
fn first_scalar(function: Function, value: &Scalar, compute: DType) -> Result<Scalar> {
    match function {
        Function::Select => Ok(Scalar::new(value.is_true())),
        Function::SelectPositive => {
            let value: Option<Complex<f64>> = value.cast(DType::Complex128)?.get();
            let positive = |z: Complex<f64>| z.re > 0.0 || (z.re == 0.0 && z.im > 0.0);
            Ok(Scalar::new(value.is_some_and(positive)))
        }
        _ => value.cast(compute),
    }
}

fn access(key: &Key, space: &mut Space, addresses: &[u64], sizes: &[usize]) -> Access {
    let run = |(list, &size): (&crate::operation::Strides, &usize)| match list[..] {
        [] => true,
        [stride] => stride == size as isize,
        _ => false,
    };
    if space.strides.iter().zip(sizes).all(run) {
        let pack = key.pack() as usize;
        let aligned = |(address, size): (&u64, &usize)| address % (size * pack) as u64 == 0;
        return if pack > 1 && addresses.iter().zip(sizes).all(aligned) {
            Access::Packed
        } else {
            Access::Contiguous
        };
    }
    match tile::transposed(space, sizes) {
        0 => Access::Strided(space.rank()),
        mask => Access::Tiled(space.rank(), mask),
    }
}

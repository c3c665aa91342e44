//! The key of element-wise kernels: function, dtypes and how memory is accessed.

use super::tiles::Tiles;
use crate::source::kernel_key::InputType;
use hal::dtype::DType;
use hal::function::Function;

/// How the kernel accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
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
pub(in crate::source) struct Key {
    pub(super) function: Function,
    pub(super) compute: DType,
    pub(super) output: DType,
    pub(super) inputs: [InputType; 4],
    pub(super) access: Access,
    pub(super) wide: bool,
}

impl Key {
    /// The size of the widest array's elements.
    pub(super) fn widest(&self) -> usize {
        self.inputs.iter().fold(self.output.size(), |widest, input| match input {
            InputType::Array(dtype) => widest.max(dtype.size()),
            _ => widest,
        })
    }

    /// Elements of one access: the widest array moves 16 bytes.
    pub(super) fn pack(&self) -> u64 {
        (16 / self.widest().max(1)).max(1) as u64
    }

    /// Packs of a thread: two where little is read for still less to be stored.
    pub(super) fn packs(&self) -> u64 {
        let bytes =
            self.output.size() + self.arrays().map(|(_, dtype)| dtype.size()).sum::<usize>();
        let few = bytes as u64 * self.pack() <= 24 && self.output.size() < self.widest();
        if few && !self.is_long() { 2 } else { 1 }
    }

    /// Elements that a thread reads one by one before it uses them, so that the reads wait
    /// for memory together. Long code, whose speed does not depend on memory, is not repeated.
    pub(super) fn batch(&self) -> u64 {
        if self.is_long() { 1 } else { self.pack().clamp(2, 4) }
    }

    /// The inputs that are there, with their positions.
    pub(super) fn inputs(&self) -> impl Iterator<Item = (usize, InputType)> + '_ {
        self.inputs.iter().copied().enumerate().filter(|(_, input)| *input != InputType::Unused)
    }

    /// Returns the number of arrays: the output, and the inputs that are not scalars.
    pub(super) fn operands(&self) -> usize {
        1 + self.inputs().filter(|(_, input)| matches!(input, InputType::Array(_))).count()
    }

    /// The position among the space's operands of each input that is an array.
    pub(super) fn operand(&self, position: usize) -> usize {
        let arrays = self.inputs[..position].iter();
        1 + arrays.filter(|input| matches!(input, InputType::Array(_))).count()
    }

    /// The inputs that are arrays, with their positions.
    pub(super) fn arrays(&self) -> impl Iterator<Item = (usize, DType)> + '_ {
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

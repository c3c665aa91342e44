//! The key of the kernels of a reduction: dtypes, axes and how memory is accessed.

use hal::dtype::DType;
use hal::function::Reduction;

/// The dtypes of what is combined, a [`Mapped`](hal::operation::Mapped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MappedTypes {
    Identity(DType),
    Product(DType, DType),
    /// The elements' type and that of the indices.
    Indexed(DType, DType),
    SquaredDeviation(DType),
    Position(DType),
}

/// Everything that changes the code of the kernels of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::source) struct Key {
    pub(super) reduction: Reduction,
    pub(super) compute: DType,
    pub(super) input: MappedTypes,
    pub(super) output: DType,
    /// The class of the numbers of axes, kept and reduced.
    pub(super) ranks: (u8, u8),
    pub(super) wide: bool,
    /// Two launches: partial results first.
    pub(super) staged: bool,
    pub(super) access: Access,
}

/// How the kernel reads an output's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    /// One by one, anywhere.
    Elements,
    /// Neighbours in packs, by so many threads.
    Packs(u32),
    /// Packs of elements of neighbouring outputs, so many outputs' packs by a block.
    Columns(u32),
}

impl MappedTypes {
    fn widest(self) -> Option<usize> {
        match self {
            MappedTypes::Identity(a)
            | MappedTypes::SquaredDeviation(a)
            | MappedTypes::Position(a) => Some(a.size()),
            MappedTypes::Product(a, b) => Some(a.size().max(b.size())),
            MappedTypes::Indexed(..) => None,
        }
    }

    /// The inputs of which there is an element for each index: the first ones.
    pub(super) fn varying(self) -> usize {
        match self {
            MappedTypes::Product(..) | MappedTypes::Indexed(..) => 2,
            MappedTypes::Identity(_)
            | MappedTypes::SquaredDeviation(_)
            | MappedTypes::Position(_) => 1,
        }
    }

    /// The lists of strides in iteration spaces, besides the output's: one for each input, and for positions
    /// one that says how they run.
    pub(super) fn strided(self) -> usize {
        match self {
            MappedTypes::Identity(_) | MappedTypes::SquaredDeviation(_) => 1,
            MappedTypes::Product(..) | MappedTypes::Indexed(..) | MappedTypes::Position(_) => 2,
        }
    }

    /// Elements of a pack, of which the wider input's has 16 bytes; an indexed input has none.
    pub(super) fn pack(self) -> Option<u64> {
        self.widest().map(|widest| 16 / widest as u64)
    }

    /// Elements of a pack whose elements belong to different outputs.
    pub(super) fn columns(self) -> Option<u64> {
        self.pack().map(|pack| pack.min(4)).filter(|&pack| pack > 1)
    }
}

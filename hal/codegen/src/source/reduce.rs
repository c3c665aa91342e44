//! Reductions.

mod readers;
mod source;

use crate::source::iteration_space::IterationSpace;
use crate::source::launches::{LaunchBuilder, Launches, THREADS, blocks};
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::operation::{Epilogue, Mapped, Operand, Reduce, Strides};
use smallvec::SmallVec;

/// The dtypes of what is combined, a [`Mapped`](hal::operation::Mapped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MappedTypes {
    Identity(DType),
    Product(DType, DType),
    /// The elements' type and that of the indices.
    Indexed(DType, DType),
    SquaredDeviation(DType),
    Position(DType),
}

/// Everything that changes the code of the kernels of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    reduction: Reduction,
    compute: DType,
    input: MappedTypes,
    output: DType,
    /// The class of the numbers of axes, kept and reduced.
    ranks: (u8, u8),
    wide: bool,
    /// Two launches: partial results first.
    staged: bool,
    access: AccessPattern,
}

/// How the kernel reads an output's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AccessPattern {
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
    fn varying(self) -> usize {
        match self {
            MappedTypes::Product(..) | MappedTypes::Indexed(..) => 2,
            MappedTypes::Identity(_)
            | MappedTypes::SquaredDeviation(_)
            | MappedTypes::Position(_) => 1,
        }
    }

    /// The lists of strides in iteration spaces, besides the output's: one for each input, and for positions
    /// one that says how they run.
    fn strided(self) -> usize {
        match self {
            MappedTypes::Identity(_) | MappedTypes::SquaredDeviation(_) => 1,
            MappedTypes::Product(..) | MappedTypes::Indexed(..) | MappedTypes::Position(_) => 2,
        }
    }

    /// Elements of a pack, of which the wider input's has 16 bytes; an indexed input has none.
    fn pack(self) -> Option<u64> {
        self.widest().map(|widest| 16 / widest as u64)
    }

    /// Elements of a pack whose elements belong to different outputs.
    fn columns(self) -> Option<u64> {
        self.pack().map(|pack| pack.min(4)).filter(|&pack| pack > 1)
    }
}

/// How blocks share the work; it depends on nothing but the operation, so that the order in
/// which elements are combined does not, either.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// A block serves `1 << split` outputs, or packs of them.
    split: u32,
    /// Neighbouring threads share an output.
    across: bool,
    /// Elements behind the packs of each output.
    tail: u64,
    /// Elements or packs of a chunk, and chunks of each output.
    chunk: u64,
    chunks: u64,
}

struct Prepared<'a> {
    key: Key,
    /// Kept and reduced axes.
    spaces: (&'a IterationSpace, &'a IterationSpace),
    /// The output, then the inputs.
    addresses: &'a [u64],
    /// Extent and stride of an indexed axis.
    axis: Option<(i64, i64)>,
    epilogue: Epilogue,
    partition: Partition,
}

/// Blocks that fill any device.
const ENOUGH_BLOCKS: u64 = 2048;

/// Outputs that fill any device with a thread each.
const ENOUGH_OUTPUTS: u64 = 1 << 18;

/// What a thread reads, in elements or packs, before its output is worth a second launch,
/// and what it reads at least if there is one.
const THREAD_READS: u64 = 32;
const STAGED_READS: u64 = 8;

/// What a thread reads at most: more would lose accuracy.
const MOST_READS: u64 = 4096;

/// So many packs are worth it, or fewer with nothing behind them.
const FEWEST_PACKS: u64 = 8;

/// Adds the launches of a reduction and returns the key of their kernels.
pub(super) fn plan(operation: &Reduce, launches: &mut Launches) -> Result<Key> {
    let Reduce { reduction, compute, shape, input, output, epilogue } = operation;
    let (mapped, inputs, axis): (_, SmallVec<[&Operand; 2]>, _) = match input {
        Mapped::Identity(a) => (MappedTypes::Identity(a.dtype), SmallVec::from_slice(&[a]), None),
        Mapped::Product(a, b) => {
            (MappedTypes::Product(a.dtype, b.dtype), SmallVec::from_slice(&[a, b]), None)
        }
        Mapped::Indexed(it) => (
            MappedTypes::Indexed(it.base.dtype, it.indices.dtype),
            SmallVec::from_slice(&[&it.base, &it.indices]),
            Some((it.axis_length as i64, it.axis_stride as i64)),
        ),
        Mapped::SquaredDeviation(a) => {
            (MappedTypes::SquaredDeviation(a.dtype), SmallVec::from_slice(&[a]), None)
        }
        Mapped::Position(a) => (MappedTypes::Position(a.dtype), SmallVec::from_slice(&[a]), None),
    };
    let mut operands: SmallVec<[&Operand; 3]> = SmallVec::from_slice(&[output]);
    operands.extend(inputs);
    // Positions are the indices along the reduced axis: it is not walked backwards.
    let forwards: Strides;
    let mut strides: SmallVec<[&[isize]; 4]> =
        operands.iter().map(|operand| &operand.strides[..]).collect();
    if let MappedTypes::Position(_) = mapped {
        forwards = output.strides.iter().map(|&stride| isize::from(stride == 0)).collect();
        strides.push(&forwards);
    }
    let (mut kept, mut reduced) = (IterationSpace::default(), IterationSpace::default());
    kept.fill(shape, &strides, |axis| output.strides[axis] != 0)?;
    reduced.fill(shape, &strides[1..], |axis| output.strides[axis] == 0)?;
    let addresses: SmallVec<[u64; 3]> = operands
        .iter()
        .enumerate()
        .map(|(position, operand)| {
            let address = kept.address(position, operand);
            match position.checked_sub(1) {
                Some(input) => reduced.moved(input, address),
                None => address,
            }
        })
        .collect();
    let wide = kept.wide()
        || reduced.wide()
        || kept.count().saturating_mul(reduced.count().max(1)) >= 1 << 31;
    let varying = &operands[1..=mapped.varying()];
    let sizes = varying.iter().map(|operand| operand.dtype.size()).collect();
    let arrays = InputArrays { sizes, addresses: &addresses[1..] };
    let (access, partition) = arrays.access(mapped, &kept, &mut reduced);
    let key = Key {
        reduction: *reduction,
        compute: *compute,
        input: mapped,
        output: output.dtype,
        ranks: (kept.rank(), reduced.rank()),
        wide,
        staged: partition.chunks > 1,
        access,
    };
    let spaces = (&kept, &reduced);
    Prepared { key, spaces, addresses: &addresses, axis, epilogue: *epilogue, partition }
        .launch(launches);
    Ok(key)
}

impl Prepared<'_> {
    fn launch(&self, launches: &mut Launches) {
        let (kept, reduced) = self.spaces;
        let outputs = kept.count();
        if outputs == 0 {
            return;
        }
        let Key { wide, staged, access, ranks, .. } = self.key;
        let Partition { split, across, tail, chunk, chunks } = self.partition;
        let groups = match (access, self.key.input.columns()) {
            (AccessPattern::Columns(_), Some(pack)) => (outputs / pack).div_ceil(1 << split),
            _ => outputs.div_ceil(1 << split),
        };
        let mut launch = launches.launch(0, blocks(groups * chunks));
        kept.pack(&mut launch, ranks.0, wide);
        reduced.pack(&mut launch, ranks.1, wide);
        launch.index(chunk, wide).index(chunks, wide);
        match access {
            AccessPattern::Packs(_) => launch.word(tail as u32),
            AccessPattern::Columns(_) => &mut launch,
            AccessPattern::Elements => launch.word(split).word(u32::from(across)),
        };
        for (position, &address) in self.addresses.iter().enumerate() {
            if staged && position == 0 {
                launch.workspace();
            } else {
                launch.address(address);
            }
        }
        if let Some((length, stride)) = self.axis {
            launch.long(length).long(stride);
        }
        if !staged {
            self.pack_epilogue(&mut launch);
            return;
        }
        drop(launch);
        // A thread reads eight chunks at once; neighbours read neighbouring outputs.
        let by_block = chunks >= 32 && outputs <= ENOUGH_BLOCKS;
        let work = if by_block { outputs } else { outputs.div_ceil(u64::from(THREADS)) };
        let mut launch = launches.launch(1, blocks(work));
        kept.pack(&mut launch, ranks.0, wide);
        launch.index(chunks, wide).word(u32::from(by_block));
        launch.address(self.addresses[0]).workspace();
        self.pack_epilogue(&mut launch);
        drop(launch);
        launches.need_workspace((outputs * chunks) as usize * self.key.partial_bytes());
    }

    /// Adds the arguments that [`Key::epilogue`] declares.
    fn pack_epilogue(&self, launch: &mut LaunchBuilder<'_>) {
        if self.key.has_quotient() {
            launch.double(self.epilogue.divisor());
        }
        if self.key.has_root() {
            launch.word(matches!(self.epilogue, Epilogue::RootOfQuotient(_)).into());
        }
    }
}

impl Partition {
    fn of(varying: usize, kept: &IterationSpace, reduced: &IterationSpace) -> Partition {
        let (outputs, length) = (kept.count(), reduced.count());
        // The last input that varies: the elements, or their indices.
        let nearest = |space: &IterationSpace, operand: usize| {
            let strides = space.strides[operand].iter();
            strides.map(|stride| stride.unsigned_abs()).filter(|&reach| reach != 0).min()
        };
        let across = match (nearest(kept, varying), nearest(reduced, varying - 1)) {
            (Some(kept), Some(reduced)) => reduced <= kept,
            (kept, _) => kept.is_none(),
        };
        let (split, across) = match length {
            0..=31 => (8, false),
            _ if !across && outputs >= ENOUGH_OUTPUTS => (8, false),
            _ if !across => (outputs.next_power_of_two().min(32).trailing_zeros(), false),
            32..=511 => (3, true),
            _ => (0, true),
        };
        Partition::new(outputs, length, split, across)
    }

    fn new(outputs: u64, length: u64, split: u32, across: bool) -> Partition {
        let deep = u64::from(THREADS >> split);
        let groups = outputs.div_ceil(1 << split).max(1);
        // Twice as many blocks are not worth a second launch.
        let wanted = match ENOUGH_BLOCKS / groups {
            more @ 4.. if length > deep * THREAD_READS => {
                length.div_ceil(deep * STAGED_READS).min(more)
            }
            _ => 1,
        }
        .max(length.div_ceil(deep * MOST_READS));
        let chunk = length.div_ceil(wanted).next_multiple_of(deep).max(1);
        let chunks = length.div_ceil(chunk).max(1);
        Partition { split, across, tail: 0, chunk, chunks }
    }
}

/// The arrays of which there is an element for each index: the sizes of their elements, and the
/// addresses of all inputs.
struct InputArrays<'a> {
    sizes: SmallVec<[usize; 2]>,
    addresses: &'a [u64],
}

impl InputArrays<'_> {
    /// How the elements are read, and by whom. Where they are read in packs along several
    /// axes, `reduced` counts packs afterwards.
    fn access(
        &self,
        mapped: MappedTypes,
        kept: &IterationSpace,
        reduced: &mut IterationSpace,
    ) -> (AccessPattern, Partition) {
        let (outputs, length) = (kept.count(), reduced.count());
        let by_element = |reduced: &IterationSpace| {
            (AccessPattern::Elements, Partition::of(mapped.varying(), kept, reduced))
        };
        let Some(pack) = mapped.pack() else {
            return by_element(reduced);
        };
        let enough = length >= FEWEST_PACKS * pack || (length > 0 && length % pack == 0);
        let mut inputs = reduced.strides.iter().zip(&self.sizes);
        let neighbours = inputs.all(|(strides, &size)| strides[..] == [size as isize]);
        if enough && (neighbours || self.aligned(reduced, 0, kept, 1, pack)) {
            if let Some(last) = reduced.shape.last_mut() {
                *last /= pack as usize;
            }
            for list in &mut reduced.strides {
                if let Some(last) = list.last_mut() {
                    *last *= pack as isize;
                }
            }
            // A few packs for each thread keep more memory in flight, and fewer threads
            // waiting for each other, than one.
            let deep = match length / pack {
                ..4 => 1_u32,
                4..64 => 4,
                64..512 => 32,
                _ => THREADS,
            };
            let split = THREADS.ilog2() - deep.ilog2();
            let partition = Partition::new(outputs, length / pack, split, true);
            return (AccessPattern::Packs(deep), Partition { tail: length % pack, ..partition });
        }
        match mapped.columns() {
            Some(pack) if self.aligned(kept, 1, reduced, 0, pack) => {
                let columns = outputs / pack;
                let wide = match columns {
                    _ if length <= 8 || columns >= ENOUGH_OUTPUTS / 2 => THREADS,
                    32.. => 32,
                    _ => 1 << columns.max(1).ilog2(),
                };
                (AccessPattern::Columns(wide), Partition::new(columns, length, wide.ilog2(), false))
            }
            _ => by_element(reduced),
        }
    }

    /// True if the last axis of `space`, in which the inputs begin at operand `first`, consists
    /// of whole packs whose addresses are multiples of their size.
    fn aligned(
        &self,
        space: &IterationSpace,
        first: usize,
        other: &IterationSpace,
        other_first: usize,
        pack: u64,
    ) -> bool {
        let Some(last) = space.shape.len().checked_sub(1) else {
            return false;
        };
        (space.shape[last] as u64).is_multiple_of(pack)
            && self.sizes.iter().zip(self.addresses).enumerate().all(|(input, (&size, address))| {
                let strides = &space.strides[first + input];
                let others = other.strides[other_first + input].iter();
                let outside = strides[..last].iter().chain(others);
                let address_bits = outside.fold(*address, |all, &stride| all | stride as u64);
                strides[last] == size as isize && address_bits % (pack * size as u64) == 0
            })
    }
}

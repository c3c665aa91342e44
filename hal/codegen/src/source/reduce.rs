//! Reductions.

mod formula;
mod readers;
mod source;

use crate::source::iteration_space::IterationSpace;
use crate::source::launches::{LaunchBuilder, Launches, THREADS, blocks};
use formula::FormulaKey;
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::operation::{ElementMap, Epilogue, FormulaValues, Mapped, Operand, Reduce, Strides};
use smallvec::SmallVec;

/// The dtypes of the combined values, for a [`Mapped`](hal::operation::Mapped).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MappedTypes {
    /// The type of an array's elements, or of a formula's values.
    Identity(DType),
    Product(DType, DType),
    /// The types of the elements and of the indices.
    Indexed(DType, DType),
    SquaredDeviation(DType),
    Position(DType),
}

/// Everything that changes the code of the kernels of a reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    reduction: Reduction,
    compute: DType,
    input: MappedTypes,
    output: DType,
    /// The classes of the numbers of kept and reduced axes.
    ranks: (u8, u8),
    wide: bool,
    /// True for two launches, of which the first computes partial results.
    staged: bool,
    access: AccessPattern,
    /// If the elements are the values of a formula.
    formula: Option<FormulaKey>,
}

/// The way in which the kernel reads an output's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AccessPattern {
    /// One by one, at any positions.
    Elements,
    /// In contiguous packs, by this many threads per output.
    Packs(u32),
    /// In packs of elements of neighbouring outputs, with this many packs of outputs per block.
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

    /// Returns the number of inputs with an element for each index; these are the first inputs.
    fn varying(self) -> usize {
        match self {
            MappedTypes::Product(..) | MappedTypes::Indexed(..) => 2,
            MappedTypes::Identity(_)
            | MappedTypes::SquaredDeviation(_)
            | MappedTypes::Position(_) => 1,
        }
    }

    /// Returns the number of stride lists in iteration spaces after the output's: one for each input and,
    /// for positions, one for the index.
    fn strided(self) -> usize {
        match self {
            MappedTypes::Identity(_) | MappedTypes::SquaredDeviation(_) => 1,
            MappedTypes::Product(..) | MappedTypes::Indexed(..) | MappedTypes::Position(_) => 2,
        }
    }

    /// Returns the number of elements per pack, where a pack of the wider input has 16 bytes; `None` for an
    /// indexed input.
    fn pack(self) -> Option<u64> {
        self.widest().map(|widest| 16 / widest as u64)
    }

    /// Returns the number of elements per pack if a pack's elements belong to different outputs.
    fn columns(self) -> Option<u64> {
        self.pack().map(|pack| pack.min(4)).filter(|&pack| pack > 1)
    }
}

/// The division of the work among blocks. It depends only on the operation, and so does the order in which
/// elements are combined.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// A block computes `1 << split` outputs, or packs of outputs.
    split: u32,
    /// True if neighbouring threads share an output.
    across: bool,
    /// The number of elements after the packs of each output.
    tail: u64,
    /// The elements or packs per chunk, and the chunks per output.
    chunk: u64,
    chunks: u64,
}

struct Prepared<'a> {
    key: &'a Key,
    /// The spaces of the kept and of the reduced axes.
    spaces: (&'a IterationSpace, &'a IterationSpace),
    /// The addresses of the output and the inputs.
    addresses: &'a [u64],
    /// The extent and stride of an indexed axis.
    axis: Option<(i64, i64)>,
    formula: Option<(&'a FormulaValues, &'a IterationSpace)>,
    epilogue: Epilogue,
    partition: Partition,
}

/// The number of blocks that fills any device.
const ENOUGH_BLOCKS: u64 = 2048;

/// The number of outputs that fills any device, with one thread each.
const ENOUGH_OUTPUTS: u64 = 1 << 18;

/// The number of elements or packs that a thread reads before a second launch is worthwhile, and the minimum
/// number per thread with a second launch.
const THREAD_READS: u64 = 32;
const STAGED_READS: u64 = 8;

/// The maximum number of elements or packs that a thread reads; more would reduce accuracy.
const MOST_READS: u64 = 4096;

/// The number of packs from which packs are worthwhile, unless there are no elements after the packs.
const FEWEST_PACKS: u64 = 8;

/// Adds the launches of a reduction and returns the key of their kernels.
pub(super) fn plan(operation: &Reduce, launches: &mut Launches) -> Result<Key> {
    let Reduce { reduction, compute, shape, input, output, epilogue } = operation;
    let (mapped, inputs, axis): (_, SmallVec<[&Operand; 2]>, _) = match input {
        Mapped::Product(a, b) => {
            (MappedTypes::Product(a.dtype, b.dtype), SmallVec::from_slice(&[a, b]), None)
        }
        Mapped::Indexed(it) => (
            MappedTypes::Indexed(it.base.dtype, it.indices.dtype),
            SmallVec::from_slice(&[&it.base, &it.indices]),
            Some((it.axis_length as i64, it.axis_stride as i64)),
        ),
        Mapped::Identity(a) => (MappedTypes::Identity(a.dtype), SmallVec::from_slice(&[a]), None),
        Mapped::SquaredDeviation(a) => {
            (MappedTypes::SquaredDeviation(a.dtype), SmallVec::from_slice(&[a]), None)
        }
        Mapped::Position(a) => (MappedTypes::Position(a.dtype), SmallVec::from_slice(&[a]), None),
        Mapped::Formula(it) => {
            let of = match it.map {
                ElementMap::Identity => MappedTypes::Identity,
                ElementMap::SquaredDeviation => MappedTypes::SquaredDeviation,
                ElementMap::Position => MappedTypes::Position,
            };
            (of(it.values.dtype), SmallVec::from_slice(&[&it.values]), None)
        }
    };
    let mut operands: SmallVec<[&Operand; 3]> = SmallVec::from_slice(&[output]);
    operands.extend(inputs);
    // Positions are the indices along the reduced axis, which must not be reversed.
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
    let mut key = Key {
        reduction: *reduction,
        compute: *compute,
        input: mapped,
        output: output.dtype,
        ranks: (kept.rank(), reduced.rank()),
        wide,
        staged: partition.chunks > 1,
        access,
        formula: None,
    };
    let mut inputs = IterationSpace::default();
    let formula = match input {
        Mapped::Formula(values) => {
            key.add_formula(values, &mut inputs)?;
            Some((&**values, &inputs))
        }
        _ => None,
    };
    let (spaces, addresses, epilogue) = ((&kept, &reduced), &addresses[..], *epilogue);
    Prepared { key: &key, spaces, addresses, axis, formula, epilogue, partition }.launch(launches);
    Ok(key)
}

impl Prepared<'_> {
    fn launch(&self, launches: &mut Launches) {
        let (kept, reduced) = self.spaces;
        let outputs = kept.count();
        if outputs == 0 {
            return;
        }
        let Key { wide, staged, access, ranks, .. } = *self.key;
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
        if let (Some((values, inputs)), Some(key)) = (self.formula, &self.key.formula) {
            key.pack(values, inputs, &mut launch, wide);
        }
        if !staged {
            self.pack_epilogue(&mut launch);
            return;
        }
        drop(launch);
        // A thread reads eight chunks at a time; neighbouring threads read neighbouring outputs.
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
        // The last varying input: the elements, or their indices.
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
        // Doubling the number of blocks is not worth a second launch.
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

/// The arrays with an element for each index: the sizes of their elements, and the addresses of all inputs.
struct InputArrays<'a> {
    sizes: SmallVec<[usize; 2]>,
    addresses: &'a [u64],
}

impl InputArrays<'_> {
    /// Returns the access pattern, and the division of the work. If elements are read in packs along several
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
            // A few packs per thread keep more memory in flight, with fewer threads that wait for each
            // other, than one pack.
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

    /// Returns true if the last axis of `space`, whose inputs start at operand `first`, consists of whole,
    /// aligned packs.
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

//! Reductions: one launch, or two where an output's elements are many.

use super::ctype;
use super::plan::Plan;
use super::space::{Space, THREADS, blocks};
use super::spec::Spec;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::Reduction;
use crate::operation::{Mapped, Operand, Reduce};
use smallvec::SmallVec;

/// What is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Identity(DType),
    Product(DType, DType),
    /// The elements' type and that of the indices.
    Indexed(DType, DType),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) reduction: Reduction,
    pub(super) compute: DType,
    pub(super) source: Source,
    pub(super) output: DType,
    /// The class of the numbers of axes, kept and reduced.
    pub(super) ranks: (u8, u8),
    pub(super) wide: bool,
    /// Two launches: partial results first.
    pub(super) staged: bool,
    pub(super) walk: Walk,
}

/// How an output's elements are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Walk {
    /// One by one, at any places.
    Elements,
    /// Neighbours in packs, by so many threads.
    Packs(u32),
}

/// How blocks share the work; it depends on nothing but the operation, so that the order in
/// which elements are combined does not, either.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// A block serves `1 << split` outputs.
    split: u32,
    /// Neighbouring threads share an output.
    across: bool,
    /// Elements or packs of each output, and elements behind the packs.
    length: u64,
    tail: u64,
    /// Elements or packs of a chunk, and chunks of each output.
    chunk: u64,
    chunks: u64,
}

struct Prepared<'a> {
    key: Key,
    /// Kept and reduced axes.
    spaces: (&'a Space, &'a Space),
    /// The output, then the inputs.
    addresses: &'a [u64],
    /// Extent and stride of an indexed axis.
    axis: Option<(i64, i64)>,
    partition: Partition,
}

/// Blocks that fill any device.
const ENOUGH_BLOCKS: u64 = 1024;

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

/// The plan of a reduction.
pub(super) fn plan(operation: &Reduce) -> Result<Plan> {
    let Reduce { reduction, compute, shape, input, output } = operation;
    let (source, inputs, axis): (_, SmallVec<[&Operand; 2]>, _) = match input {
        Mapped::Identity(a) => (Source::Identity(a.dtype), SmallVec::from_slice(&[a]), None),
        Mapped::Product(a, b) => {
            (Source::Product(a.dtype, b.dtype), SmallVec::from_slice(&[a, b]), None)
        }
        Mapped::Indexed(it) => (
            Source::Indexed(it.base.dtype, it.indices.dtype),
            SmallVec::from_slice(&[&it.base, &it.indices]),
            Some((it.axis_length as i64, it.axis_stride as i64)),
        ),
    };
    let mut operands: SmallVec<[&Operand; 3]> = SmallVec::from_slice(&[output]);
    operands.extend(inputs);
    let mut types = operands.iter().map(|operand| operand.dtype).chain([*compute]);
    if types.any(|dtype| dtype.kind() == Kind::Opaque) {
        return Err(Error::invalid_type("reduce", "records cannot be reduced"));
    }
    if operands.iter().any(|operand| operand.strides.len() != shape.len()) {
        return Err(Error::invalid("reduce", "every operand needs one stride per axis"));
    }
    let strides: SmallVec<[&[isize]; 3]> =
        operands.iter().map(|operand| &operand.strides[..]).collect();
    let (mut kept, mut reduced) = (Space::default(), Space::default());
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
    let sizes = operands[1..].iter().map(|operand| operand.dtype.size());
    let packed = source.pack().filter(|&pack| {
        let mut strides = reduced.strides.iter().zip(sizes);
        let neighbours = strides.all(|(strides, size)| strides[..] == [size as isize]);
        let count = reduced.count();
        neighbours && (count >= FEWEST_PACKS * pack || (count > 0 && count % pack == 0))
    });
    let partition = match packed {
        Some(pack) => Partition::of_packs(&kept, &reduced, pack),
        None => Partition::of(&kept, &reduced),
    };
    let wide = kept.wide()
        || reduced.wide()
        || kept.count().saturating_mul(reduced.count().max(1)) >= 1 << 31;
    let key = Key {
        reduction: *reduction,
        compute: *compute,
        source,
        output: output.dtype,
        ranks: (kept.rank(), reduced.rank()),
        wide,
        staged: partition.chunks > 1,
        walk: match packed {
            Some(_) => Walk::Packs(THREADS >> partition.split),
            None => Walk::Elements,
        },
    };
    let mut plan = Plan::begin(Spec::from(key));
    let spaces = (&kept, &reduced);
    Prepared { key, spaces, addresses: &addresses, axis, partition }.launch(&mut plan);
    Ok(plan)
}

impl Prepared<'_> {
    fn launch(&self, plan: &mut Plan) {
        let (kept, reduced) = self.spaces;
        let outputs = kept.count();
        if outputs == 0 {
            return;
        }
        let Key { wide, staged, walk, ranks, .. } = self.key;
        let Partition { split, across, length, tail, chunk, chunks } = self.partition;
        let mut launch = plan.launch(0, blocks(outputs.div_ceil(1 << split) * chunks));
        kept.pack(&mut launch, ranks.0, wide);
        match walk {
            Walk::Packs(_) => {
                launch.index(length, wide).word(tail as u32);
                launch.index(chunk, wide).index(chunks, wide);
            }
            Walk::Elements => {
                reduced.pack(&mut launch, ranks.1, wide);
                launch.index(chunk, wide).index(chunks, wide);
                launch.word(split).word(u32::from(across));
            }
        }
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
        drop(launch);
        if !staged {
            return;
        }
        // A thread reads eight chunks at once.
        let by_block = chunks >= 32;
        let work = if by_block { outputs } else { outputs.div_ceil(u64::from(THREADS)) };
        let mut launch = plan.launch(1, blocks(work));
        kept.pack(&mut launch, ranks.0, wide);
        launch.index(chunks, wide).word(u32::from(by_block));
        launch.address(self.addresses[0]).workspace();
        drop(launch);
        let size = ctype::accumulator(self.key.reduction, self.key.compute).size();
        plan.need_workspace((outputs * chunks) as usize * size);
    }
}

impl Partition {
    fn of(kept: &Space, reduced: &Space) -> Partition {
        let (outputs, length) = (kept.count(), reduced.count());
        // The last operand is the one that varies: the elements, or their indices.
        let nearest = |space: &Space| {
            let strides = space.strides.last().into_iter().flatten();
            strides.map(|stride| stride.unsigned_abs()).filter(|&reach| reach != 0).min()
        };
        let across = match (nearest(kept), nearest(reduced)) {
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

    /// The partition in packs. A few packs for each thread keep more memory in flight, and
    /// fewer threads waiting for each other, than one.
    fn of_packs(kept: &Space, reduced: &Space, pack: u64) -> Partition {
        let packs = reduced.count() / pack;
        let deep = match packs {
            ..4 => 1_u32,
            4..64 => 4,
            64..512 => 32,
            _ => THREADS,
        };
        let split = THREADS.ilog2() - deep.ilog2();
        let tail = reduced.count() % pack;
        Partition { tail, ..Partition::new(kept.count(), packs, split, true) }
    }

    fn new(outputs: u64, length: u64, split: u32, across: bool) -> Partition {
        let deep = u64::from(THREADS >> split);
        let groups = outputs.div_ceil(1 << split).max(1);
        let wanted = match length {
            _ if length <= deep * THREAD_READS => 1,
            _ => length.div_ceil(deep * STAGED_READS).min(ENOUGH_BLOCKS / groups).max(1),
        }
        .max(length.div_ceil(deep * MOST_READS));
        let chunk = length.div_ceil(wanted).next_multiple_of(deep).max(1);
        let chunks = length.div_ceil(chunk).max(1);
        Partition { split, across, length, tail: 0, chunk, chunks }
    }
}

impl Source {
    /// Elements of a pack, of which the wider input's has 16 bytes; an indexed input has none.
    pub(super) fn pack(self) -> Option<u64> {
        let widest = match self {
            Source::Identity(a) => a.size(),
            Source::Product(a, b) => a.size().max(b.size()),
            Source::Indexed(..) => return None,
        };
        Some(16 / widest as u64)
    }
}

//! Reductions: one launch, or two where an output's elements are many.

use super::ctype;
use super::fragment::Fragments;
use super::plan::Plan;
use super::space::{Space, THREADS, blocks, type_name};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::Reduction;
use crate::operation::{Mapped, Operand, Reduce, Shape};
use smallvec::SmallVec;

/// What is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Identity(DType),
    Product(DType, DType),
    /// The elements' type and that of the indices.
    Indexed(DType, DType),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    reduction: Reduction,
    compute: DType,
    source: Source,
    output: DType,
    /// The class of the numbers of axes, kept and reduced.
    ranks: (u8, u8),
    wide: bool,
    /// Two launches: partial results first.
    staged: bool,
}

/// How blocks share the work; it depends on nothing but the operation, so that the order in
/// which elements are combined does not, either.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// A block serves `1 << split` outputs.
    split: u32,
    /// Neighbouring threads share an output.
    across: bool,
    /// Elements of a chunk, and chunks of each output.
    chunk: u64,
    chunks: u64,
}

#[derive(Debug)]
pub(super) struct Prepared {
    key: Key,
    kept: Space,
    reduced: Space,
    /// The output, then the inputs.
    addresses: SmallVec<[u64; 3]>,
    /// Extent and stride of an indexed axis.
    axis: Option<(i64, i64)>,
    partition: Partition,
}

/// Blocks that fill any device.
const ENOUGH_BLOCKS: u64 = 2048;

/// Elements that a thread combines before its output is worth another block.
const THREAD_ELEMENTS: u64 = 32;

impl Prepared {
    pub(super) fn new(operation: &Reduce) -> Result<Self> {
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
        let part = |reduced: bool| -> Result<Space> {
            let axes: SmallVec<[usize; 4]> = (0..shape.len())
                .filter(|&axis| shape[axis] != 1 && (output.strides[axis] == 0) == reduced)
                .collect();
            let shape: Shape = axes.iter().map(|&axis| shape[axis]).collect();
            let strides: SmallVec<[SmallVec<[isize; 4]>; 3]> = operands[usize::from(reduced)..]
                .iter()
                .map(|operand| axes.iter().map(|&axis| operand.strides[axis]).collect())
                .collect();
            let views: SmallVec<[&[isize]; 3]> = strides.iter().map(|list| &list[..]).collect();
            Space::new(&shape, &views)
        };
        let (kept, reduced) = (part(false)?, part(true)?);
        let addresses = operands
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
        let partition = Partition::of(&kept, &reduced);
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
        };
        Ok(Prepared { key, kept, reduced, addresses, axis, partition })
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn launch(&self, plan: &mut Plan) {
        let outputs = self.kept.count();
        if outputs == 0 {
            return;
        }
        let Key { wide, staged, ranks, .. } = self.key;
        let Partition { split, across, chunk, chunks } = self.partition;
        let mut launch = plan.launch(0, blocks(outputs.div_ceil(1 << split) * chunks));
        self.kept.pack(&mut launch, ranks.0, wide);
        self.reduced.pack(&mut launch, ranks.1, wide);
        launch.index(chunk, wide).index(chunks, wide).word(split).word(u32::from(across));
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
        let split = match chunks {
            ..32 => 8,
            _ if outputs >= 32 => 5,
            _ => 0,
        };
        let mut launch = plan.launch(1, blocks(outputs.div_ceil(1 << split)));
        self.kept.pack(&mut launch, ranks.0, wide);
        launch.index(chunks, wide).word(split);
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
            _ if !across => (outputs.next_power_of_two().min(32).trailing_zeros(), false),
            32..=511 => (3, true),
            _ => (0, true),
        };
        let deep = u64::from(THREADS >> split);
        let groups = outputs.div_ceil(1 << split).max(1);
        let most = length.div_ceil(deep * THREAD_ELEMENTS);
        let wanted = most.min(ENOUGH_BLOCKS / groups).max(1);
        let chunk = length.div_ceil(wanted).next_multiple_of(deep).max(1);
        Partition { split, across, chunk, chunks: length.div_ceil(chunk).max(1) }
    }
}

impl Key {
    fn types(&self) -> SmallVec<[DType; 2]> {
        match self.source {
            Source::Identity(a) => SmallVec::from_slice(&[a]),
            Source::Product(a, b) | Source::Indexed(a, b) => SmallVec::from_slice(&[a, b]),
        }
    }

    pub(super) fn name(&self) -> String {
        let source = match self.source {
            Source::Identity(_) => "elements",
            Source::Product(..) => "products",
            Source::Indexed(..) => "indexed",
        };
        let types: Vec<&str> = self.types().iter().map(|&dtype| ctype::value(dtype)).collect();
        format!(
            "reduce_{}_{}_{source}_{}_to_{}_{}by{}_{}{}",
            ctype::reduction(self.reduction),
            ctype::value(self.compute),
            types.join("_"),
            ctype::value(self.output),
            self.ranks.0,
            self.ranks.1,
            if self.wide { 64 } else { 32 },
            if self.staged { "_staged" } else { "" },
        )
    }

    pub(super) fn suffixes(&self) -> &'static [&'static str] {
        if self.staged { &["_partial", "_final"] } else { &[""] }
    }

    pub(super) fn fragments(&self) -> Fragments {
        let working = ctype::working(self.compute);
        let accumulator = ctype::accumulator(self.reduction, self.compute);
        let indexed = match self.source {
            Source::Indexed(..) => Fragments::INDEXED,
            _ => Fragments::NONE,
        };
        ctype::fragments(working)
            .with(ctype::fragments(accumulator))
            .with(Fragments::REDUCE)
            .with(indexed)
    }

    pub(super) fn kernels(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let accumulator = ctype::value(ctype::accumulator(self.reduction, self.compute));
        let result = ctype::value(self.reduction.result(self.compute));
        let output = ctype::value(self.output);
        let inputs = self.types().len();
        let kept = type_name(self.ranks.0, 1 + inputs, self.wide);
        let reduced = type_name(self.ranks.1, inputs, self.wide);
        let (extra_fields, extra_parameters, extra_arguments, extra_copies) = match self.source {
            Source::Identity(_) => ("", "", "", ""),
            Source::Product(..) => (
                "    const char* b;\n",
                ", const char* b",
                "source.b = b;",
                "row.b = b + offset[2];",
            ),
            Source::Indexed(..) => (
                "    const char* b;\n    i64 length;\n    i64 stride;\n",
                ", const char* b, i64 length, i64 stride",
                "source.b = b; source.length = length; source.stride = stride;",
                "row.b = b + offset[2]; row.length = length; row.stride = stride;",
            ),
        };
        let element = self.element();
        let mut text = ctype::operator(name, self.reduction, self.compute);
        text += &format!(
            "struct {name}_row {{
    const {reduced}* reduced;
    const char* a;
{extra_fields}    METHOD {accumulator} operator()({index} i) const {{
        {offset} offset[{inputs}];
        reduced->locate(i, offset);
{element}    }}
}};
struct {name}_source {{
    const {kept}* kept;
    const {reduced}* reduced;
    const char* a;
{extra_fields}    METHOD {name}_row at({index} output) const {{
        {offset} offset[{}];
        kept->locate(output, offset);
        {name}_row row;
        row.reduced = reduced;
        row.a = a + offset[1];
        {extra_copies}
        return row;
    }}
}};
struct {name}_sink {{
    const {kept}* kept;
    char* out;
    METHOD void operator()({index} output, {index}, {accumulator} value) const {{
        {offset} offset[{}];
        kept->locate(output, offset);
        store<{output}>(out + offset[0], convert<{output}>(convert<{result}>(value)));
    }}
}};
",
            1 + inputs,
            1 + inputs,
        );
        let (target, sink) = if self.staged {
            (
                format!("{accumulator}* partials"),
                format!(
                    "Partials<{accumulator}, {index}> sink;\n    sink.values = partials;\n    \
                     sink.outputs = kept.count;"
                ),
            )
        } else {
            (
                "char* out".to_owned(),
                format!("{name}_sink sink;\n    sink.kept = &kept;\n    sink.out = out;"),
            )
        };
        text += &format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
             {reduced} reduced, {index} chunk, {index} chunks, u32 split, u32 across, {target}, \
             const char* a{extra_parameters}) {{
    {name}_source source;
    source.kept = &kept;
    source.reduced = &reduced;
    source.a = a;
    {extra_arguments}
    {sink}
    reduce_blocks<{name}_operator, {index}>(source, sink, kept.count, reduced.count, chunk, chunks, split, across);
}}
",
            self.suffixes()[0]
        );
        if self.staged {
            text += &format!(
                "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}{}({kept} kept, \
                 {index} chunks, u32 split, char* out, {accumulator}* partials) {{
    Partials<{accumulator}, {index}> source;
    source.values = partials;
    source.outputs = kept.count;
    {name}_sink sink;
    sink.kept = &kept;
    sink.out = out;
    reduce_blocks<{name}_operator, {index}>(source, sink, kept.count, chunks, chunks, ({index})1, split, 0u);
}}
",
                self.suffixes()[1]
            );
        }
        text
    }

    /// Statements that return the element at `offset`.
    fn element(&self) -> String {
        let accumulator = ctype::value(ctype::accumulator(self.reduction, self.compute));
        let compute = ctype::value(self.compute);
        let working = ctype::working(self.compute);
        let load = |dtype: DType, address: &str| {
            let value = ctype::value(dtype);
            format!(
                "convert<{}>(convert<{compute}>(load<{value}>({address})))",
                ctype::value(working)
            )
        };
        match self.source {
            Source::Identity(a) => {
                format!("        return convert<{accumulator}>({});\n", load(a, "a + offset[0]"))
            }
            Source::Product(a, b) => format!(
                "        return convert<{accumulator}>({}::multiply({}, {}));\n",
                ctype::functions(working),
                load(a, "a + offset[0]"),
                load(b, "b + offset[1]")
            ),
            Source::Indexed(element, at) => format!(
                "        i64 place;
        if (!resolve(load<{}>(b + offset[1]), length, &place)) {{
            return convert<{accumulator}>((i32)0);
        }}
        return convert<{accumulator}>({});
",
                ctype::value(at),
                load(element, "a + offset[0] + place * stride")
            ),
        }
    }
}

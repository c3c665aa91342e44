//! Gather, scatter, and the indices of true elements.

use crate::source::ctype::{self, Prelude};
use crate::source::iteration_space::{IterationSpace, type_name};
use crate::source::kernel_key::{InputType, KernelKey};
use crate::source::launches::{Launches, TEAM, THREADS, TILE_BLOCKS, blocks};
use crate::source::machine_word;
use hal::dtype::DType;
use hal::error::Result;
use hal::operation::{Gather, Indexed, Input, Nonzero, Operand, Scatter, Shape};
use hal::scalar::Scalar;
use smallvec::SmallVec;

/// The number of elements whose indices, and then values, a thread reads before it stores the
/// first.
const BATCH: u64 = 4;

/// Everything that changes the code of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GatherKey {
    element: DType,
    index: DType,
    output: DType,
    rank: u8,
    wide: bool,
}

/// Everything that changes the code of a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScatterKey {
    input: InputType,
    index: DType,
    target: DType,
    rank: u8,
    wide: bool,
}

#[derive(Debug)]
struct PreparedGather {
    key: GatherKey,
    space: IterationSpace,
    /// The addresses of the output, the elements and the indices.
    addresses: [u64; 3],
    axis: (i64, i64),
}

#[derive(Debug)]
struct PreparedScatter {
    key: ScatterKey,
    space: IterationSpace,
    /// The addresses of the target, the indices and the input, if that is an array.
    addresses: SmallVec<[u64; 3]>,
    axis: (i64, i64),
    /// The value to store, or the words of one record.
    values: SmallVec<[Scalar; 1]>,
}

/// Returns the indices for records, with the same index for every word.
fn repeat(indices: &Operand) -> Operand {
    let mut indices = indices.clone();
    indices.strides.push(0);
    indices
}

/// Returns the word that moves an element of `indexed` and of the other operand.
fn unit(indexed: &Indexed, other: Option<&Operand>, bytes: u32, shape: &[usize]) -> DType {
    let other = other.into_iter().flat_map(|operand| machine_word::address_terms(operand, shape));
    let terms =
        machine_word::address_terms(&indexed.base, shape).chain([indexed.axis_stride as u64]);
    machine_word::of_record(bytes, terms.chain(other))
}

fn records(shape: &Shape, bytes: u32, unit: DType) -> Shape {
    let mut shape = shape.clone();
    shape.push(bytes as usize / unit.size());
    shape
}

/// Returns the types of a move: words for equal types, else the types themselves, which are
/// converted.
fn moved(from: DType, to: DType) -> (DType, DType) {
    if from == to { (machine_word::of(from), machine_word::of(to)) } else { (from, to) }
}

/// Adds the launches of a gather and returns the key of their kernel.
pub(super) fn plan_gather(operation: &Gather, launches: &mut Launches) -> Result<GatherKey> {
    let prepared = PreparedGather::new(operation)?;
    prepared.launch(launches);
    Ok(prepared.key)
}

/// Adds the launches of a scatter and returns the key of their kernel.
pub(super) fn plan_scatter(operation: &Scatter, launches: &mut Launches) -> Result<ScatterKey> {
    let prepared = PreparedScatter::new(operation)?;
    prepared.launch(launches);
    Ok(prepared.key)
}

impl PreparedGather {
    fn new(operation: &Gather) -> Result<Self> {
        let Gather { shape, source, output } = operation;
        if let DType::Opaque(bytes) = output.dtype {
            let unit = unit(source, Some(output), bytes, shape);
            let (base, output) =
                (machine_word::unfold(&source.base, unit), machine_word::unfold(output, unit));
            let indices = repeat(&source.indices);
            let shape = records(shape, bytes, unit);
            return Self::assemble(&shape, &output, &base, &indices, source);
        }
        Self::assemble(shape, output, &source.base, &source.indices, source)
    }

    fn assemble(
        shape: &[usize],
        output: &Operand,
        base: &Operand,
        indices: &Operand,
        source: &Indexed,
    ) -> Result<Self> {
        let mut space =
            IterationSpace::new(shape, &[&output.strides, &base.strides, &indices.strides])?;
        let (mut element, mut target) = moved(base.dtype, output.dtype);
        let addresses =
            [space.address(0, output), space.address(1, base), space.address(2, indices)];
        if element == target {
            let terms = [addresses[0], addresses[1], source.axis_stride as u64];
            element = machine_word::widen(element, 16, &mut space, &[0, 1], terms.into_iter());
            target = element;
        }
        Ok(PreparedGather {
            key: GatherKey {
                element,
                index: indices.dtype,
                output: target,
                rank: space.rank(),
                wide: space.wide(),
            },
            addresses,
            space,
            axis: (source.axis_length as i64, source.axis_stride as i64),
        })
    }

    fn launch(&self, launches: &mut Launches) {
        let count = self.space.count();
        if count == 0 {
            return;
        }
        let mut launch = launches.launch(0, blocks(count.div_ceil(u64::from(THREADS) * BATCH)));
        self.space.pack(&mut launch, self.key.rank, self.key.wide);
        for address in self.addresses {
            launch.address(address);
        }
        launch.long(self.axis.0).long(self.axis.1);
    }
}

impl PreparedScatter {
    fn new(operation: &Scatter) -> Result<Self> {
        let Scatter { shape, input, target } = operation;
        match (target.base.dtype, input) {
            (DType::Opaque(bytes), Input::Array(input)) => {
                let unit = unit(target, Some(input), bytes, shape);
                let (base, input) =
                    (machine_word::unfold(&target.base, unit), machine_word::unfold(input, unit));
                let indices = repeat(&target.indices);
                let shape = records(shape, bytes, unit);
                Self::assemble(&shape, &base, &indices, Input::Array(&input), target)
            }
            (DType::Opaque(bytes), Input::Scalar(value)) => {
                let unit = unit(target, None, bytes, shape);
                let values = machine_word::split(value, unit).collect::<Result<SmallVec<_>>>()?;
                let base = machine_word::slice(&target.base, unit, 0);
                Self::assemble(shape, &base, &target.indices, Input::Scalar(values), target)
            }
            (_, Input::Array(input)) => {
                Self::assemble(shape, &target.base, &target.indices, Input::Array(input), target)
            }
            (_, Input::Scalar(value)) => {
                let values = SmallVec::from_slice(&[*value]);
                Self::assemble(shape, &target.base, &target.indices, Input::Scalar(values), target)
            }
        }
    }

    fn assemble(
        shape: &[usize],
        base: &Operand,
        indices: &Operand,
        input: Input<&Operand, SmallVec<[Scalar; 1]>>,
        target: &Indexed,
    ) -> Result<Self> {
        let mut operands: SmallVec<[&Operand; 3]> = SmallVec::from_slice(&[base, indices]);
        let (mut input_type, mut element, values) = match input {
            Input::Array(array) => {
                operands.push(array);
                let (from, to) = moved(array.dtype, base.dtype);
                (Input::Array(from), to, SmallVec::new())
            }
            Input::Scalar(values) => (Input::Scalar(base.dtype), base.dtype, values),
        };
        let strides: SmallVec<[&[isize]; 3]> =
            operands.iter().map(|operand| &operand.strides[..]).collect();
        let mut space = IterationSpace::new(shape, &strides)?;
        let addresses: SmallVec<[u64; 3]> = operands
            .iter()
            .enumerate()
            .map(|(position, operand)| space.address(position, operand))
            .collect();
        if input_type == Input::Array(element) {
            let terms = addresses.iter().step_by(2).copied().chain([target.axis_stride as u64]);
            element = machine_word::widen(element, 16, &mut space, &[0, 2], terms);
            input_type = Input::Array(element);
        }
        Ok(PreparedScatter {
            key: ScatterKey {
                input: input_type,
                index: indices.dtype,
                target: element,
                rank: space.rank(),
                wide: space.wide(),
            },
            space,
            addresses,
            axis: (target.axis_length as i64, target.axis_stride as i64),
            values,
        })
    }

    fn launch(&self, launches: &mut Launches) {
        let count = self.space.count();
        if count == 0 {
            return;
        }
        for round in 0..self.values.len().max(1) {
            let mut launch = launches.launch(0, blocks(count.div_ceil(u64::from(THREADS) * BATCH)));
            self.space.pack(&mut launch, self.key.rank, self.key.wide);
            let offset = (round * self.key.target.size()) as u64;
            for (position, address) in self.addresses.iter().enumerate() {
                launch.address(if position == 0 { address.wrapping_add(offset) } else { *address });
            }
            if let Some(value) = self.values.get(round) {
                launch.scalar(value);
            }
            launch.long(self.axis.0).long(self.axis.1);
        }
    }
}

// The source of gathers and scatters.

/// Returns the loop over the elements. `body` can use `offset`, `inside`, `place` and the position
/// `k` in the batch; `finish` stores the `items`.
fn kernel(
    name: &str,
    types: (u8, usize, bool),
    indices: usize,
    index: DType,
    parameters: &str,
    [items, body, finish]: [&str; 3],
) -> String {
    let (rank, operands, wide) = types;
    let (unsigned, offset) = ctype::index(wide);
    let space = type_name(rank, operands, wide);
    let value = ctype::value(index);
    let tile = u64::from(THREADS) * BATCH;
    format!(
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({space} space, {parameters}, i64 length, i64 stride) {{
    const {unsigned} step = ({unsigned})gridDim.x * {tile};
    for ({unsigned} first = ({unsigned})blockIdx.x * {tile} + threadIdx.x; first < space.count; first += step) {{
        {offset} offset[{BATCH}][{operands}];
        {value} index[{BATCH}];
        {items}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            const {unsigned} i = first + k * {THREADS};
            if (i < space.count) {{
                space.locate(i, offset[k]);
                index[k] = load<{value}>(indices + offset[k][{indices}]);
            }}
        }}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            if (first + k * {THREADS} < space.count) {{
                i64 place;
                const bool inside = resolve(index[k], length, &place);
{body}            }}
        }}
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            if (first + k * {THREADS} < space.count) {{
{finish}            }}
        }}
    }}
}}
"
    )
}

impl KernelKey for GatherKey {
    fn name(&self) -> String {
        format!(
            "gather_{}_at_{}_to_{}_{}_{}",
            ctype::value(self.element),
            ctype::value(self.index),
            ctype::value(self.output),
            self.rank,
            if self.wide { 64 } else { 32 }
        )
    }

    fn prelude(&self) -> Prelude {
        Prelude::INDEXED
    }

    fn kernels(&self, name: &str) -> String {
        let (element, output) = (ctype::value(self.element), ctype::value(self.output));
        let items = format!("{element} item[{BATCH}];");
        let body = format!(
            "                item[k] = convert<{element}>((i32)0);
                if (inside) {{
                    item[k] = load<{element}>(base + offset[k][1] + place * stride);
                }}
"
        );
        let finish = format!(
            "                store<{output}>(out + offset[k][0], convert<{output}>(item[k]));\n"
        );
        let parameters = "char* out, const char* base, const char* indices";
        let types = (self.rank, 3, self.wide);
        kernel(name, types, 2, self.index, parameters, [&items, &body, &finish])
    }
}

impl KernelKey for ScatterKey {
    fn name(&self) -> String {
        let input = match self.input {
            Input::Scalar(dtype) => format!("s{}", ctype::value(dtype)),
            Input::Array(dtype) => ctype::value(dtype).to_owned(),
        };
        format!(
            "scatter_{input}_at_{}_to_{}_{}_{}",
            ctype::value(self.index),
            ctype::value(self.target),
            self.rank,
            if self.wide { 64 } else { 32 }
        )
    }

    fn prelude(&self) -> Prelude {
        Prelude::INDEXED
    }

    fn kernels(&self, name: &str) -> String {
        let target = ctype::value(self.target);
        let (operands, parameter, value) = match self.input {
            Input::Scalar(dtype) => (
                2,
                format!("{} in", ctype::stored(dtype)),
                format!("Stored<{}>::get(in)", ctype::value(dtype)),
            ),
            Input::Array(dtype) => (
                3,
                "const char* in".to_owned(),
                format!("load<{}>(in + offset[k][2])", ctype::value(dtype)),
            ),
        };
        // Offsets are stored, not addresses: with a null pointer among the addresses, AMD's
        // compilers could not tell which memory is written.
        let items = format!("{target} item[{BATCH}]; i64 to[{BATCH}]; bool is_in[{BATCH}];");
        let body = format!(
            "                is_in[k] = inside;
                to[k] = offset[k][0] + place * stride;
                item[k] = convert<{target}>({value});
"
        );
        let finish = format!(
            "                if (is_in[k]) {{
                    store<{target}>(out + to[k], item[k]);
                }}
"
        );
        let parameters = format!("char* out, const char* indices, {parameter}");
        let types = (self.rank, operands, self.wide);
        kernel(name, types, 1, self.index, &parameters, [&items, &body, &finish])
    }
}

// The indices of true elements, and the values at them.

/// The number of elements per tile: `SEARCHED` in nonzero.cuh.
const TILE: u64 = THREADS as u64 * 64;

/// Everything that changes the code of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NonzeroKey {
    output: DType,
    /// True if values are stored instead of indices.
    values: bool,
    /// True if counts may exceed 32 bits.
    wide: bool,
}

/// Adds the launches and returns the key of their kernels.
pub(super) fn plan_nonzero(operation: &Nonzero, launches: &mut Launches) -> NonzeroKey {
    let Nonzero { length, most, mask, values, output } = operation;
    let length = *length as u64;
    let stored = match values {
        Some(values) => machine_word::of(values.dtype),
        None => output.dtype,
    };
    let key = NonzeroKey { output: stored, values: values.is_some(), wide: length >= 1 << 31 };
    let tiles = length.div_ceil(TILE);
    if tiles > 1 {
        let words_of_count = if key.wide { 2 } else { 1 };
        let words = 1 + (tiles.div_ceil(TEAM) + tiles) * words_of_count;
        launches
            .launch(0, blocks(words.div_ceil(u64::from(THREADS))))
            .workspace()
            .long(words as i64);
        launches.need_workspace(words as usize * size_of::<u64>());
    }
    if tiles > 0 {
        let mut launch = launches.launch(1, blocks(tiles.min(TILE_BLOCKS)));
        launch.address(mask.address).long(length as i64).long(*most as i64);
        if let Some(values) = values {
            launch.address(values.address);
        }
        launch.address(output.address).workspace();
    }
    key
}

impl KernelKey for NonzeroKey {
    fn name(&self) -> String {
        let width = if self.wide { 64 } else { 32 };
        let name = if self.values { "compress" } else { "nonzero" };
        format!("{name}_{}_{width}", ctype::value(self.output))
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["_clear", "_values"]
    }

    fn prelude(&self) -> Prelude {
        Prelude::NONZERO
    }

    fn kernels(&self, name: &str) -> String {
        let stored = ctype::stored(self.output);
        let count = if self.wide { "u64" } else { "u32" };
        let (parameter, found) = match self.values {
            true => (format!("const {stored}* values, "), format!("ValueAt<{stored}>{{values}}")),
            false => (String::new(), format!("IndexAt<{stored}>()")),
        };
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_clear(u64* state, u64 words) {{
    clear_state(state, words);
}}
extern \"C\" __global__ void GPUARRAY_BOUNDS(4) {name}_values(const u8* mask, u64 length, u64 most, \
             {parameter}{stored}* out, u64* state) {{
    find_true<{count}>(mask, length, most, {found}, out, state);
}}
"
        )
    }
}

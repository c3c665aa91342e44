//! Evenly spaced values.

use super::ctype;
use super::ctype::Prelude;
use super::kernel_key::KernelKey;
use super::launches::{Launches, THREADS, blocks};
use hal::dtype::DType;
use hal::operation::Sequence;

/// Everything that changes the code of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    dtype: DType,
    wide: bool,
}

/// Adds the launch of a sequence and returns the key of its kernel.
pub(super) fn plan(operation: &Sequence, launches: &mut Launches) -> Key {
    let Sequence { length, start, step, output } = operation;
    let stride = output.strides[0];
    let length = *length as u64;
    let reach = length.saturating_mul(stride.unsigned_abs().max(1) as u64);
    let key = Key { dtype: output.dtype, wide: reach >= 1 << 31 };
    if length > 0 {
        let work = length.div_ceil(u64::from(THREADS) * BATCH);
        let mut launch = launches.launch(0, blocks(work));
        launch.index(length, key.wide).scalar(start).scalar(step);
        launch.address(output.address).long(stride as i64);
    }
    key
}

/// The number of elements that a thread computes in sequence.
const BATCH: u64 = 4;

impl KernelKey for Key {
    fn name(&self) -> String {
        let width = if self.wide { 64 } else { 32 };
        format!("sequence_{}_{width}", ctype::value(self.dtype))
    }

    fn prelude(&self) -> Prelude {
        ctype::prelude(self.dtype)
    }

    fn kernels(&self, name: &str) -> String {
        let (value, stored) = (ctype::value(self.dtype), ctype::stored(self.dtype));
        let (index, offset) = ctype::index(self.wide);
        let tile = u64::from(THREADS) * BATCH;
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}({index} count, {stored} start, {stored} step, char* out, i64 stride) {{
    for ({index} first = ({index})blockIdx.x * {tile} + threadIdx.x; first < count; first += ({index})gridDim.x * {tile}) {{
#pragma unroll
        for (u32 k = 0; k < {BATCH}; ++k) {{
            const {index} i = first + k * {THREADS};
            if (i < count) {{
                store<{value}>(out + ({offset})i * ({offset})stride, {}::sequence(Stored<{value}>::get(start), Stored<{value}>::get(step), i));
            }}
        }}
    }}
}}
",
            ctype::functions(self.dtype)
        )
    }
}

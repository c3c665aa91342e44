//! Evenly spaced values.

use super::ctype;
use super::fragment::Fragments;
use super::plan::Plan;
use super::space::{THREADS, blocks};
use super::spec::Spec;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::operation::Sequence;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    dtype: DType,
}

/// The plan of a sequence.
pub(super) fn plan(operation: &Sequence) -> Result<Plan> {
    let Sequence { length, start, step, output } = operation;
    if output.dtype.kind() == Kind::Opaque {
        return Err(Error::invalid_type("sequence", "records have no sequence"));
    }
    let [stride] = output.strides[..] else {
        return Err(Error::invalid(
            "sequence",
            format!("the output has one stride, not {}", output.strides.len()),
        ));
    };
    let (start, step) = (start.cast(output.dtype)?, step.cast(output.dtype)?);
    let mut plan = Plan::begin(Spec::from(Key { dtype: output.dtype }));
    let length = *length as u64;
    if length > 0 {
        let mut launch = plan.launch(0, blocks(length.div_ceil(u64::from(THREADS))));
        launch.index(length, true).scalar(&start).scalar(&step);
        launch.address(output.address).long(stride as i64);
    }
    Ok(plan)
}

impl Key {
    pub(super) fn name(&self) -> String {
        format!("sequence_{}", ctype::value(self.dtype))
    }

    pub(super) fn fragments(&self) -> Fragments {
        ctype::fragments(self.dtype)
    }

    pub(super) fn kernels(&self, name: &str) -> String {
        let (value, stored) = (ctype::value(self.dtype), ctype::stored(self.dtype));
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}(u64 count, {stored} start, {stored} step, char* out, i64 stride) {{
    const u64 threads = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {{
        store<{value}>(out + (i64)i * stride, {}::sequence(Stored<{value}>::get(start), Stored<{value}>::get(step), i));
    }}
}}
",
            ctype::functions(self.dtype)
        )
    }
}

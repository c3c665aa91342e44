//! Evenly spaced values.

use super::ctype;
use super::fragment::Fragments;
use super::plan::Plan;
use super::space::{THREADS, blocks};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::operation::Sequence;
use crate::scalar::Scalar;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    dtype: DType,
}

#[derive(Debug)]
pub(super) struct Prepared {
    key: Key,
    length: u64,
    address: u64,
    stride: i64,
    start: Scalar,
    step: Scalar,
}

impl Prepared {
    pub(super) fn new(operation: &Sequence) -> Result<Self> {
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
        Ok(Prepared {
            key: Key { dtype: output.dtype },
            length: *length as u64,
            address: output.address,
            stride: stride as i64,
            start: start.cast(output.dtype)?,
            step: step.cast(output.dtype)?,
        })
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn launch(&self, plan: &mut Plan) {
        if self.length == 0 {
            return;
        }
        let mut launch = plan.launch(0, blocks(self.length.div_ceil(u64::from(THREADS))));
        launch.index(self.length, true).scalar(&self.start).scalar(&self.step);
        launch.address(self.address).long(self.stride);
    }
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

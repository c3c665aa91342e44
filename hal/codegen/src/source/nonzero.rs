//! The indices of true elements, and the values at them.

use super::ctype::Prelude;
use super::kernel_spec::KernelKey;
use super::launches::{Launches, TEAM, THREADS, TILE_BLOCKS, blocks};
use super::{ctype, machine_word};
use hal::dtype::DType;
use hal::operation::Nonzero;

/// The number of elements per tile: `SEARCHED` in nonzero.cuh.
const TILE: u64 = THREADS as u64 * 64;

/// Everything that changes the code of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    output: DType,
    /// True if values are stored instead of indices.
    values: bool,
    /// True if counts may exceed 32 bits.
    wide: bool,
}

/// Adds the launches and returns the key of their kernels.
pub(super) fn plan(operation: &Nonzero, launches: &mut Launches) -> Key {
    let Nonzero { length, most, mask, values, output } = operation;
    let length = *length as u64;
    let stored = match values {
        Some(values) => machine_word::of(values.dtype),
        None => output.dtype,
    };
    let key = Key { output: stored, values: values.is_some(), wide: length >= 1 << 31 };
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

impl KernelKey for Key {
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

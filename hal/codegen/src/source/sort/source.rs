//! The source of sorts.

use super::{Key, Method};
use crate::source::ctype;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;

impl KernelKey for Key {
    fn name(&self) -> String {
        format!(
            "{}_{}{}",
            if self.indices { "argsort" } else { "sort" },
            ctype::value(self.dtype),
            match self.method {
                Method::Merge => "",
                Method::Radix { wide: false } => "_radix",
                Method::Radix { wide: true } => "_radix_64",
            }
        )
    }

    fn suffixes(&self) -> &'static [&'static str] {
        match self.method {
            Method::Merge => &["_tiles", "_merge"],
            Method::Radix { .. } => &["_clear", "_count", "_pass"],
        }
    }

    fn prelude(&self) -> Prelude {
        match self.method {
            Method::Merge => Prelude::SORT,
            Method::Radix { .. } => Prelude::RADIX,
        }
    }

    fn kernels(&self, name: &str) -> String {
        match self.method {
            Method::Merge => self.merges(name),
            Method::Radix { wide } => self.passes(name, wide),
        }
    }
}

impl Key {
    fn merges(&self, name: &str) -> String {
        let buffers = format!("SortBuffers<{}, {}>", ctype::value(self.dtype), self.indices);
        let fill = format!(
            "    {buffers} buffers;
    buffers.out = out;
    buffers.workspace = workspace;
    buffers.bytes = bytes;
"
        );
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_tiles(char* out, char* workspace, \
             u64 bytes, const char* in, u64 rows, u64 length, u64 tiles, u32 buffer, u32 last) {{
{fill}    sort_tiles(buffers, in, rows, length, tiles, buffer, last != 0);
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_merge(char* out, char* workspace, \
             u64 bytes, u64 width, u64 rows, u64 length, u64 tiles, u32 buffer, u32 last) {{
{fill}    merge_tiles(buffers, rows, length, tiles, width, buffer, last != 0);
}}
"
        )
    }

    fn passes(&self, name: &str, wide: bool) -> String {
        let (value, stored) = (ctype::value(self.dtype), ctype::stored(self.dtype));
        let parameters = format!("{value}, {}, {wide}", self.indices);
        let word = format!("RadixWords<{wide}>::Word");
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_clear(u64* workspace, u64 words) {{
    clear_state(workspace, words);
}}
extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_count(char* workspace, u64 histogram, \
             const char* in, u64 rows, u64 length) {{
    count_digits<{parameters}>(in, rows, length, ({word}*)(workspace + histogram));
}}
extern \"C\" __global__ void GPUARRAY_BOUNDS((RadixTile<{parameters}>::blocks)) {name}_pass(char* workspace, \
             char* out, const char* in, u64 rows, u64 length, u32 place, u32 last, u64 counter, u64 histogram, u64 state, \
             u64 next_state, u64 keys, u64 indices, u64 sorted_keys, u64 sorted_indices) {{
    const u64 output = ~(u64)0;
    RadixArrays<{stored}, {word}> arrays;
    arrays.keys = (const {stored}*)(place == 0 ? in : keys == output ? out : workspace + keys);
    arrays.indices = (const {word}*)(indices == output ? 0 : workspace + indices);
    arrays.sorted_keys = ({stored}*)(sorted_keys == output ? out : workspace + sorted_keys);
    arrays.sorted_indices = ({word}*)(sorted_indices == output ? 0 : workspace + sorted_indices);
    arrays.result = last != 0 ? (i64*)out : 0;
    radix_pass<{parameters}>(arrays, rows, length, place, (u64*)(workspace + counter),
                             (const {word}*)(workspace + histogram), ({word}*)(workspace + state),
                             last != 0 ? 0 : ({word}*)(workspace + next_state));
}}
"
        )
    }
}

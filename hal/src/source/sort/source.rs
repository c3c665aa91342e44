//! The source of sorts.

use super::key::Key;
use crate::source::ctype;
use crate::source::kernel_key::KernelKey;
use crate::source::launches::THREADS;
use crate::source::prelude::Prelude;

impl KernelKey for Key {
    fn name(&self) -> String {
        format!("{}_{}", if self.indices { "argsort" } else { "sort" }, ctype::value(self.dtype))
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["_tiles", "_merge"]
    }

    fn prelude(&self) -> Prelude {
        Prelude::SORT
    }

    fn kernels(&self, name: &str) -> String {
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
}

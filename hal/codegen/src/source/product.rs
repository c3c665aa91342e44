//! Matrix products by tiles in shared memory.

use crate::source::ctype;
use crate::source::ctype::Prelude;
use crate::source::iteration_space::{IterationSpace, type_name};
use crate::source::kernel_key::KernelKey;
use crate::source::launches::{Launches, THREADS, blocks};
use hal::dtype::{DType, Kind};
use hal::error::{Error, Result};
use hal::operation::{MatrixProduct, Operand};

/// Everything that changes the code of a matrix product's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    compute: DType,
    left: DType,
    right: DType,
    output: DType,
    /// True for a factor (left, right) in which the terms of one sum are closer together than the
    /// terms of different sums.
    along_terms: [bool; 2],
    /// The rows and columns per thread; a tile has 16 times as many.
    thread: [u8; 2],
    /// True if a second kernel adds the parts of each sum.
    split: bool,
    /// The class of the number of batch axes, and whether indices over them need 64 bits.
    rank: u8,
    wide: bool,
}

/// The number of blocks that keeps a device busy.
const ENOUGH_BLOCKS: u64 = 256;

/// The minimum number of terms per block when sums are split; a multiple of `TERMS` in product.cuh.
const FEWEST_TERMS: u64 = 256;

/// Adds the launches of matrix products and returns the key of their kernels.
pub(super) fn plan(operation: &MatrixProduct, launches: &mut Launches) -> Result<Key> {
    let MatrixProduct { compute, batch, rows, terms, columns, left, right, output } = operation;
    let outer = |operand: &'_ Operand| operand.strides.len() - 2;
    let lists = [output, left, right].map(|operand| &operand.strides[..outer(operand)]);
    let space = IterationSpace::new(batch, &lists)?;
    let matrix = |operand: &Operand| {
        let axes = outer(operand);
        [operand.strides[axes], operand.strides[axes + 1]]
    };
    let ([row, column], [left_row, left_term], [right_term, right_column]) =
        (matrix(output), matrix(left), matrix(right));
    let nearer = |term: isize, line: isize| term.unsigned_abs() < line.unsigned_abs();
    let (rows, terms, columns) = (*rows as u64, *terms as u64, *columns as u64);
    let size = compute.working().size();
    let thread = thread_tile(size, rows, columns, space.count());
    let tiles = [rows, columns].into_iter().zip(thread);
    let tiles: [u64; 2] = {
        let mut counts = tiles.map(|(lines, own)| lines.div_ceil(16 * u64::from(own)));
        [counts.next().unwrap_or(0), counts.next().unwrap_or(0)]
    };
    let overflow = || {
        Error::overflow(
            "matmul",
            format!(
                "the product has shape ({rows}, {columns}), whose size exceeds the address space"
            ),
        )
    };
    let elements = [rows, columns, space.count()].into_iter().try_fold(1, u64::checked_mul);
    let elements = elements.filter(|&it| it <= i64::MAX as u64).ok_or_else(overflow)?;
    let works = tiles[0] * tiles[1] * space.count();
    let splits = (ENOUGH_BLOCKS / works.max(1)).min(terms / FEWEST_TERMS).max(1);
    let part = terms.div_ceil(splits).next_multiple_of(FEWEST_TERMS).max(1);
    let splits = terms.div_ceil(part).max(1);
    let key = Key {
        compute: *compute,
        left: left.dtype,
        right: right.dtype,
        output: output.dtype,
        along_terms: [nearer(left_term, left_row), nearer(right_term, right_column)],
        thread,
        split: splits > 1,
        rank: space.rank(),
        wide: space.wide(),
    };
    if elements == 0 {
        return Ok(key);
    }
    let mut launch = launches.launch(0, blocks(works * splits));
    space.pack(&mut launch, key.rank, key.wide);
    for count in [rows, terms, columns, tiles[0], tiles[1], part, splits] {
        launch.long(count as i64);
    }
    for stride in [row, column, left_row, left_term, right_term, right_column] {
        launch.long(stride as i64);
    }
    for (position, operand) in [output, left, right].into_iter().enumerate() {
        launch.address(space.address(position, operand));
    }
    if !key.split {
        return Ok(key);
    }
    launch.workspace();
    drop(launch);
    let mut launch = launches.launch(1, blocks(elements.div_ceil(u64::from(THREADS))));
    space.pack(&mut launch, key.rank, key.wide);
    launch.long(rows as i64).long(columns as i64).long(splits as i64);
    launch.long(row as i64).long(column as i64);
    launch.address(space.address(0, output)).workspace();
    drop(launch);
    let bytes = (splits * elements).checked_mul(size as u64);
    launches.need_workspace(bytes.and_then(|it| it.try_into().ok()).ok_or_else(overflow)?);
    Ok(key)
}

/// Returns the rows and columns per thread, for elements of `size` bytes in registers: fewer if there
/// are too few tiles to keep a device busy.
fn thread_tile(size: usize, rows: u64, columns: u64, count: u64) -> [u8; 2] {
    if rows <= 32 && columns <= 32 {
        return [2, 2];
    }
    let large: [u8; 2] = match size {
        ..=4 => [8, 8],
        8 => [8, 4],
        _ => [4, 4],
    };
    let tiles = |lines: u64, own: u8| lines.div_ceil(16 * u64::from(own));
    let works = tiles(rows, large[0]).saturating_mul(tiles(columns, large[1]));
    if works.saturating_mul(count) >= ENOUGH_BLOCKS / 2 {
        return large;
    }
    if size > 8 { [2, 2] } else { [4, 4] }
}

impl KernelKey for Key {
    fn name(&self) -> String {
        let nearest = self.along_terms.map(|it| if it { "terms" } else { "lines" });
        format!(
            "product_{}_{}_{}_to_{}_{}_{}_{}x{}{}_{}_{}",
            ctype::value(self.compute),
            ctype::value(self.left),
            ctype::value(self.right),
            ctype::value(self.output),
            nearest[0],
            nearest[1],
            self.thread[0],
            self.thread[1],
            if self.split { "_split" } else { "" },
            self.rank,
            if self.wide { 64 } else { 32 },
        )
    }

    fn suffixes(&self) -> &'static [&'static str] {
        if self.split { &["_parts", "_total"] } else { &[""] }
    }

    fn prelude(&self) -> Prelude {
        let types = [self.compute, self.compute.working(), self.left, self.right, self.output];
        let prelude = types.map(ctype::prelude).into_iter().fold(Prelude::NONE, Prelude::with);
        prelude.with(Prelude::PRODUCT)
    }

    fn kernels(&self, name: &str) -> String {
        let mut text = self.element(name, "left", self.left);
        text += &self.element(name, "right", self.right);
        text += &self.write(name);
        text += &self.product(name);
        if self.split {
            text += &self.total(name);
        }
        text
    }
}

impl Key {
    fn working(&self) -> &'static str {
        ctype::value(self.compute.working())
    }

    /// Returns the code that adds terms.
    fn sum(&self) -> String {
        let working = self.compute.working();
        let value = ctype::value(working);
        match working.kind() {
            Kind::Float => format!("RealSum<{value}>"),
            Kind::Complex => format!("ComplexSum<{}>", ctype::value(working.real())),
            _ => format!("WholeSum<{}, {value}>", ctype::functions(working)),
        }
    }

    /// Returns the functor that reads an element of a factor.
    fn element(&self, name: &str, side: &str, dtype: DType) -> String {
        let (working, compute) = (self.working(), ctype::value(self.compute));
        let value = ctype::value(dtype);
        format!(
            "struct {name}_{side} {{
    static METHOD {working} get(const char* address) {{
        return convert<{working}>(convert<{compute}>(load<{value}>(address)));
    }}
}};
"
        )
    }

    /// Returns the functors that store an element of the result, or a part of its sum.
    fn write(&self, name: &str) -> String {
        let (working, compute) = (self.working(), ctype::value(self.compute));
        let output = ctype::value(self.output);
        format!(
            "struct {name}_write {{
    char* out;
    i64 row_stride;
    i64 column_stride;
    METHOD void operator()(u64 row, u64 column, {working} x) const {{
        store<{output}>(out + (i64)row * row_stride + (i64)column * column_stride,
                        convert<{output}>(convert<{compute}>(x)));
    }}
}};
struct {name}_part {{
    {working}* out;
    u64 columns;
    METHOD void operator()(u64 row, u64 column, {working} x) const {{ out[row * columns + column] = x; }}
}};
"
        )
    }

    fn product(&self, name: &str) -> String {
        let (working, sum) = (self.working(), self.sum());
        let (index, offset) = ctype::index(self.wide);
        let space = type_name(self.rank, 3, self.wide);
        let [rows, columns] = self.thread;
        let [left_along, right_along] = self.along_terms;
        let (suffix, workspace, write) = if self.split {
            (
                "_parts",
                format!(", {working}* parts"),
                format!(
                    "        {name}_part write;
        write.out = parts + (split * batch.count + matrix) * rows * columns;
        write.columns = columns;
"
                ),
            )
        } else {
            (
                "",
                String::new(),
                format!(
                    "        {name}_write write;
        write.out = out + offset[0];
        write.row_stride = row_stride;
        write.column_stride = column_stride;
"
                ),
            )
        };
        format!(
            "extern \"C\" __global__ void GPUARRAY_TILE_BOUNDS {name}{suffix}({space} batch, u64 rows, \
             u64 terms, u64 columns, u64 tile_rows, u64 tile_columns, u64 part, u64 splits, \
             i64 row_stride, i64 column_stride, i64 left_row, i64 left_term, i64 right_term, \
             i64 right_column, char* out, const char* left, const char* right{workspace}) {{
    const u64 tiles = tile_rows * tile_columns;
    const u64 works = tiles * splits * batch.count;
    for (u64 work = blockIdx.x; work < works; work += gridDim.x) {{
        const TilePlace tile(work % tiles, tile_rows, tile_columns);
        const u64 split = work / tiles % splits;
        const u64 matrix = work / tiles / splits;
        const u64 first = split * part;
        const u64 own = terms - first < part ? terms - first : part;
        const u64 row = tile.row * {tile_height}, column = tile.column * {tile_width};
        {offset} offset[3];
        batch.locate(({index})matrix, offset);
{write}        LineReader<{working}, {name}_left, {left_along}, {rows}> left_lines(
            left + offset[1] + (i64)first * left_term, left_row, left_term, row, rows);
        LineReader<{working}, {name}_right, {right_along}, {columns}> right_lines(
            right + offset[2] + (i64)first * right_term, right_column, right_term, column, columns);
        multiply_tile<{sum}, {rows}, {columns}>(left_lines, right_lines, own, row, rows, column, columns,
                                                write);
    }}
}}
",
            tile_height = 16 * u32::from(rows),
            tile_width = 16 * u32::from(columns),
        )
    }

    /// Returns the kernel that adds the parts of each sum, in order.
    fn total(&self, name: &str) -> String {
        let (index, offset) = ctype::index(self.wide);
        let space = type_name(self.rank, 3, self.wide);
        let (working, functions) = (self.working(), ctype::functions(self.compute.working()));
        format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {name}_total({space} batch, u64 rows, \
             u64 columns, u64 splits, i64 row_stride, i64 column_stride, char* out, const {working}* parts) {{
    const u64 size = rows * columns, count = size * batch.count;
    for (u64 i = (u64)blockIdx.x * {THREADS} + threadIdx.x; i < count; i += (u64)gridDim.x * {THREADS}) {{
        {working} sum = parts[i];
        for (u64 split = 1; split < splits; ++split) {{
            sum = {functions}::add(sum, parts[split * count + i]);
        }}
        const u64 matrix = i / size, row = i % size / columns;
        {offset} offset[3];
        batch.locate(({index})matrix, offset);
        {name}_write write;
        write.out = out + offset[0];
        write.row_stride = row_stride;
        write.column_stride = column_stride;
        write(row, i % columns, sum);
    }}
}}
"
        )
    }
}

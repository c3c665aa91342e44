//! The measured operations of this crate, each with a handwritten kernel to compare with.

use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::*;
use hal::{DType, Element, Scalar};

/// The number of elements of a large array, and of each side of a matrix.
pub(crate) const N: usize = 64 << 20;
const SIDE: usize = 8192;
/// The number of bytes of a large single-precision array.
pub(crate) const BYTES: usize = 4 * N;

/// The number of rows from which a gather reads.
pub(crate) const ROWS: usize = 1 << 20;

/// Device addresses: two inputs and indices of [`BYTES`] bytes, an output of twice that size, and
/// [`ROWS`] indices of rows. Each buffer has 4 KiB more.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) indices: u64,
    pub(crate) rows: u64,
    pub(crate) out: u64,
}

/// A launch of a kernel of `reference.cu`; the arguments are 8-byte words.
pub(crate) struct Reference {
    pub(crate) kernel: &'static str,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) arguments: Vec<u64>,
    /// The bytes read and written.
    pub(crate) bytes: f64,
}

/// A measured operation.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The bytes read and written.
    pub(crate) bytes: f64,
    pub(crate) operation: Description,
    pub(crate) reference: Reference,
}

fn flat(kernel: &'static str, work: usize, arguments: Vec<u64>, bytes: usize) -> Reference {
    let grid = [work.div_ceil(256) as u32, 1, 1];
    Reference { kernel, grid, block: [256, 1, 1], arguments, bytes: bytes as f64 }
}

pub(crate) fn operand(address: u64, dtype: DType, strides: &[isize]) -> Operand {
    let size = dtype.size() as isize;
    Operand { address, dtype, strides: strides.iter().map(|stride| stride * size).collect() }
}

pub(crate) fn elementwise(
    function: Function,
    compute: DType,
    shape: &[usize],
    inputs: &[Input],
    output: Operand,
) -> Description {
    let (shape, inputs) = (shape.into(), inputs.iter().cloned().collect());
    Description::Elementwise(Elementwise { function, compute, shape, inputs, output })
}

pub(crate) fn reduce(
    reduction: Reduction,
    compute: DType,
    shape: &[usize],
    input: Mapped,
    output: Operand,
) -> Description {
    Description::Reduce(Reduce {
        reduction,
        compute,
        shape: shape.into(),
        input,
        output,
        epilogue: Epilogue::Identity,
    })
}

const ADD: Function = Function::Binary(BinaryFunction::Add);
const COPY: Function = Function::Unary(UnaryFunction::Copy);
const F32: DType = DType::Float32;

impl Buffers {
    /// Returns operands for the arrays x, y and the output, with strides in elements.
    fn x(&self, dtype: DType, strides: &[isize]) -> Input {
        Input::Array(operand(self.x, dtype, strides))
    }

    fn y(&self, dtype: DType, strides: &[isize]) -> Input {
        Input::Array(operand(self.y, dtype, strides))
    }

    fn out(&self, dtype: DType, strides: &[isize]) -> Operand {
        operand(self.out, dtype, strides)
    }

    fn add_reference(&self) -> Reference {
        flat("add", N / 4, vec![self.x, self.y, self.out, N as u64 / 4], 3 * BYTES)
    }

    fn scale_reference(&self) -> Reference {
        let factor = u64::from(2_f32.to_bits());
        flat("scale", N / 4, vec![self.x, self.out, factor, N as u64 / 4], 2 * BYTES)
    }

    fn sum_reference(&self) -> Reference {
        let arguments = vec![self.x, self.out, N as u64 / 4];
        let (grid, block) = ([132 * 8, 1, 1], [512, 1, 1]);
        Reference { kernel: "sum", grid, block, arguments, bytes: BYTES as f64 }
    }

    fn dot_reference(&self) -> Reference {
        let arguments = vec![self.x, self.y, self.out, N as u64 / 4];
        Reference { kernel: "dot", arguments, bytes: 2.0 * BYTES as f64, ..self.sum_reference() }
    }

    fn tiles(&self, kernel: &'static str, arguments: Vec<u64>, bytes: usize) -> Reference {
        let grid = [SIDE as u32 / 32, SIDE as u32 / 32, 1];
        Reference { kernel, grid, block: [32, 8, 1], arguments, bytes: bytes as f64 }
    }

    fn transposed_reference(&self) -> Reference {
        self.tiles("copy_transposed", vec![self.x, self.out, SIDE as u64], 2 * BYTES)
    }
}

/// Returns every case, in the order of the table.
pub(crate) fn all(at: &Buffers) -> Vec<Case> {
    let mut list = Vec::new();
    contiguous(at, &mut list);
    strided(at, &mut list);
    reductions(at, &mut list);
    scans(at, &mut list);
    indexed(at, &mut list);
    list
}

fn push(
    list: &mut Vec<Case>,
    name: impl Into<String>,
    bytes: usize,
    operation: Description,
    reference: Reference,
) {
    list.push(Case { name: name.into(), bytes: bytes as f64, operation, reference });
}

fn contiguous(at: &Buffers, list: &mut Vec<Case>) {
    use DType::*;
    for dtype in [Float32, Float64, Int8, UInt8, Int16, Float16, Int64, Complex64, Complex128] {
        let shape = [BYTES / dtype.size()];
        let sum = elementwise(
            ADD,
            dtype,
            &shape,
            &[at.x(dtype, &[1]), at.y(dtype, &[1])],
            at.out(dtype, &[1]),
        );
        push(list, format!("a + b, {dtype}"), 3 * BYTES, sum, at.add_reference());
    }
    let moved = |address, shift: u64| Input::Array(operand(address + shift, F32, &[1]));
    for (name, shifts) in
        [("a[1:] + b[1:]", (4, 4, 0)), ("a[1:] + a[:-1]", (4, 0, 0)), ("into c[1:]", (0, 0, 4))]
    {
        let inputs = [moved(at.x, shifts.0), moved(at.y, shifts.1)];
        let sum = elementwise(ADD, F32, &[N], &inputs, operand(at.out + shifts.2, F32, &[1]));
        push(list, name, 3 * BYTES, sum, at.add_reference());
    }
    let bytes_moved = Input::Array(operand(at.x + 1, UInt8, &[1]));
    let sum =
        elementwise(ADD, UInt8, &[BYTES], &[bytes_moved, at.y(UInt8, &[1])], at.out(UInt8, &[1]));
    push(list, "a[1:] + b, uint8", 3 * BYTES, sum, at.add_reference());
    let two = Input::Scalar(Scalar::new(2_f32));
    let product = Function::Binary(BinaryFunction::Multiply);
    let scaled =
        elementwise(product, F32, &[N], &[at.x(F32, &[1]), two.clone()], at.out(F32, &[1]));
    push(list, "a * 2", 2 * BYTES, scaled, at.scale_reference());
    let copy = elementwise(COPY, F32, &[N], &[at.x(F32, &[1])], at.out(F32, &[1]));
    push(list, "copy", 2 * BYTES, copy, at.scale_reference());
    let exp = Function::Unary(UnaryFunction::Exp);
    let exp = elementwise(exp, F32, &[N], &[at.x(F32, &[1])], at.out(F32, &[1]));
    push(list, "exp(a)", 2 * BYTES, exp, at.scale_reference());
    let less = elementwise(
        Function::Binary(BinaryFunction::Less),
        F32,
        &[N],
        &[at.x(F32, &[1]), at.y(F32, &[1])],
        at.out(Bool, &[1]),
    );
    push(list, "a < b", 2 * BYTES + N, less, at.add_reference());
    let fill = elementwise(COPY, F32, &[N], &[two], at.out(F32, &[1]));
    let value = u64::from(2_f32.to_bits());
    let reference = flat("fill", N / 4, vec![at.out, value, N as u64 / 4], BYTES);
    push(list, "fill", BYTES, fill, reference);
    let sequence = Description::Sequence(Sequence {
        length: N,
        start: Scalar::new(0_f32),
        step: Scalar::new(1_f32),
        output: at.out(F32, &[1]),
    });
    let reference = flat("fill", N / 4, vec![at.out, value, N as u64 / 4], BYTES);
    push(list, "arange", BYTES, sequence, reference);
    let cast = |from, to, count: usize| {
        elementwise(COPY, from, &[count], &[at.x(from, &[1])], at.out(to, &[1]))
    };
    let arguments = vec![at.x, at.out, N as u64 / 2];
    let reference = flat("widen", N / 2, arguments, 3 * BYTES);
    push(list, "float32 to float64", 3 * BYTES, cast(Float32, Float64, N), reference);
    let arguments = vec![at.x, at.out, N as u64 / 4];
    let reference = flat("narrow", N / 4, arguments.clone(), BYTES * 3 / 2);
    push(list, "float64 to float32", BYTES * 3 / 2, cast(Float64, Float32, N / 2), reference);
    let reference = flat("from_bytes", N / 4, arguments, 5 * N);
    push(list, "uint8 to float32", 5 * N, cast(UInt8, Float32, N), reference);
}

fn strided(at: &Buffers, list: &mut Vec<Case>) {
    use DType::*;
    let side = SIDE as isize;
    let square = [SIDE, SIDE];
    let mut add = |name: &str, y: Input, reference: Reference, bytes: usize| {
        let inputs = [at.x(F32, &[side, 1]), y];
        let sum = elementwise(ADD, F32, &square, &inputs, at.out(F32, &[side, 1]));
        push(list, name, bytes, sum, reference);
    };
    let mut row = flat("add_row", SIDE / 4, vec![at.x, at.y, at.out, SIDE as u64 / 4], 2 * BYTES);
    row.grid[1] = SIDE as u32;
    add("m + row", at.y(F32, &[0, 1]), row, 2 * BYTES);
    add("m + column", at.y(F32, &[1, 0]), at.scale_reference(), 2 * BYTES);
    let arguments = vec![at.x, at.x, at.out, SIDE as u64];
    let tiles = at.tiles("add_transposed", arguments, 3 * BYTES);
    add("m + m.T", at.x(F32, &[1, side]), tiles, 3 * BYTES);
    for dtype in [Float32, Float64, UInt16, UInt8, Complex128] {
        // At most as large as the arrays.
        let side = match dtype.size() {
            1 => 16384,
            2 | 4 => 8192,
            _ => 4096,
        };
        let (row, bytes) = (side as isize, 2 * side * side * dtype.size());
        let inputs = [at.x(dtype, &[1, row])];
        let copy = elementwise(COPY, dtype, &[side, side], &inputs, at.out(dtype, &[row, 1]));
        push(list, format!("m.T copied, {dtype}"), bytes, copy, at.transposed_reference());
    }
    let (x, y) = (at.x(F32, &[2]), at.y(F32, &[2]));
    let halves = elementwise(ADD, F32, &[N / 2], &[x, y], at.out(F32, &[1]));
    let arguments = vec![at.x, at.y, at.out, N as u64 / 2];
    let reference = flat("add_every_second", N / 2, arguments, BYTES * 3 / 2);
    push(list, "a[::2] + b[::2]", BYTES * 3 / 2, halves, reference);
    // From planes with 256 rows of 512: the first columns, or all except the first.
    let planes = N / (256 * 512);
    for (name, width, first) in
        [("3-D, columns [:448]", 448, 0), ("3-D, [:447]", 447, 0), ("3-D, [1:]", 511, 4)]
    {
        let shape = [planes, 256, width];
        let (from, to) = ([256 * 512, 512, 1], [256 * width as isize, width as isize, 1]);
        let inputs = [Input::Array(operand(at.x + first, F32, &from))];
        let copy = elementwise(COPY, F32, &shape, &inputs, at.out(F32, &to));
        let to = [width as u64, 256 * width as u64];
        let reference = Reference {
            kernel: "copy_3d",
            grid: [width.div_ceil(128) as u32, 128, planes as u32],
            block: [128, 2, 1],
            arguments: vec![at.x + first, at.out, width as u64, 512, 256 * 512, to[0], to[1]],
            bytes: (8 * planes * 256 * width) as f64,
        };
        push(list, name, 8 * planes * 256 * width, copy, reference);
    }
    let shape = [512, 256, 512];
    for (name, strides) in [
        ("3-D, axes 1 0 2", [512_isize, 512 * 512, 1]),
        ("3-D, axes 0 2 1", [256 * 512, 1, 256]),
        ("3-D, axes 2 1 0", [1, 512, 256 * 512]),
    ] {
        let inputs = [at.x(F32, &strides)];
        let copy = elementwise(COPY, F32, &shape, &inputs, at.out(F32, &[256 * 512, 512, 1]));
        push(list, name, 2 * BYTES, copy, at.transposed_reference());
    }
}

fn reductions(at: &Buffers, list: &mut Vec<Case>) {
    use DType::*;
    let whole = |reduction: Reduction, dtype: DType, compute: DType| {
        let input = Mapped::Identity(operand(at.x, dtype, &[1]));
        let result = reduction.result(compute);
        let shape = [BYTES / dtype.size()];
        reduce(reduction, compute, &shape, input, operand(at.out, result, &[0]))
    };
    for (dtype, compute) in [
        (Float32, Float32),
        (Float64, Float64),
        (Float16, Float16),
        (UInt8, UInt64),
        (Int32, Int64),
        (Complex64, Complex64),
    ] {
        let sum = whole(Reduction::Sum, dtype, compute);
        push(list, format!("sum, {dtype}"), BYTES, sum, at.sum_reference());
    }
    for (name, reduction, dtype) in [
        ("max, float32", Reduction::Maximum, Float32),
        ("min, int16", Reduction::Minimum, Int16),
        ("any, bool", Reduction::Any, Bool),
        ("all, float32", Reduction::All, Float32),
    ] {
        push(list, name, BYTES, whole(reduction, dtype, dtype), at.sum_reference());
    }
    let mut sum = |name: &str, shape: &[usize], strides: &[isize], output: &[isize], shift| {
        let input = Mapped::Identity(operand(at.x + shift, F32, strides));
        let sum = reduce(Reduction::Sum, F32, shape, input, operand(at.out, F32, output));
        let kept = |axis: &usize| output[*axis] != 0;
        let results = (0..shape.len()).filter(kept).map(|axis| shape[axis]).product::<usize>();
        let bytes = 4 * (shape.iter().product::<usize>() + results);
        push(list, name, bytes, sum, at.sum_reference());
    };
    sum("sum of a[1:]", &[N], &[1], &[0], 4);
    sum("sum of a[::2]", &[N / 2], &[2], &[0], 0);
    let side = SIDE as isize;
    sum("sum, 8192 x 8192, axis 0", &[SIDE, SIDE], &[side, 1], &[0, 1], 0);
    sum("sum, 8192 x 8192, axis 1", &[SIDE, SIDE], &[side, 1], &[1, 0], 0);
    sum("sum, 1Mi x 64, axis 1", &[1 << 20, 64], &[64, 1], &[1, 0], 0);
    sum("sum, 1Mi x 64, axis 0", &[1 << 20, 64], &[64, 1], &[0, 1], 0);
    sum("sum, 64 x 1Mi, axis 0", &[64, 1 << 20], &[1 << 20, 1], &[0, 1], 0);
    sum("sum, 16Mi x 4, axis 1", &[16 << 20, 4], &[4, 1], &[1, 0], 0);
    let cube: [isize; 3] = [512 * 512, 512, 1];
    sum("sum, 256 x 512 x 512, axis 1", &[256, 512, 512], &cube, &[512, 0, 1], 0);
    sum("sum, 256 x 512 x 512, axes 0 2", &[256, 512, 512], &cube, &[0, 1, 0], 0);
    sum("sum, [:, :8000]", &[SIDE, 8000], &[side, 1], &[0, 0], 0);
    let pair = Mapped::Product(operand(at.x, F32, &[1]), operand(at.y, F32, &[1]));
    let dot = reduce(Reduction::Sum, F32, &[N], pair, operand(at.out, F32, &[0]));
    push(list, "dot", 2 * BYTES, dot, at.dot_reference());
}

fn scans(at: &Buffers, list: &mut Vec<Case>) {
    let mut scan = |name: &str, compute: DType, shape: &[usize], strides: &[isize], axis| {
        let operation = Description::Scan(Scan {
            reduction: Reduction::Sum,
            compute,
            shape: shape.into(),
            axis,
            exclusive: false,
            initial: Scalar::new(0_i32),
            input: operand(at.x, compute, strides),
            output: operand(at.out, compute, strides),
        });
        push(list, name, 2 * BYTES, operation, at.scale_reference());
    };
    let side = SIDE as isize;
    scan("prefix sums, float32", F32, &[N], &[1], 0);
    scan("prefix sums, float64", DType::Float64, &[N / 2], &[1], 0);
    scan("prefix sums, 8192 x 8192, axis 1", F32, &[SIDE, SIDE], &[side, 1], 1);
    scan("prefix sums, 8192 x 8192, axis 0", F32, &[SIDE, SIDE], &[side, 1], 0);
}

fn indexed(at: &Buffers, list: &mut Vec<Case>) {
    let pick = |base: &[isize], indices: u64, strides: &[isize], length: usize| Indexed {
        base: operand(at.x, F32, base),
        indices: operand(indices, i32::DTYPE, strides),
        axis_length: length,
        axis_stride: 4 * (N / length) as isize,
    };
    let arguments = vec![at.x, at.indices, at.out, N as u64];
    let source = pick(&[0], at.indices, &[1], N);
    let mut target = source.clone();
    let gather =
        Description::Gather(Gather { shape: [N][..].into(), source, output: at.out(F32, &[1]) });
    let reference = flat("gather", N, arguments.clone(), 3 * BYTES);
    push(list, "gather", 3 * BYTES, gather, reference);
    target.base.address = at.out;
    let input = at.x(F32, &[1]);
    let scatter = Description::Scatter(Scatter { shape: [N][..].into(), input, target });
    let reference = flat("scatter", N, arguments, 3 * BYTES);
    push(list, "scatter", 3 * BYTES, scatter, reference);
    let shape = [ROWS, N / ROWS];
    let gather = Description::Gather(Gather {
        shape: shape[..].into(),
        source: pick(&[0, 1], at.rows, &[1, 0], ROWS),
        output: at.out(F32, &[shape[1] as isize, 1]),
    });
    push(list, "gather of rows of 64", 2 * BYTES, gather, at.scale_reference());
}

/// Returns operations of about 1024 elements, which show the cost of a call, and longer reductions.
pub(crate) fn small(at: &Buffers) -> Vec<(&'static str, Description)> {
    let sum = |count: usize| {
        let input = Mapped::Identity(operand(at.x, F32, &[1]));
        reduce(Reduction::Sum, F32, &[count], input, operand(at.out, F32, &[0]))
    };
    let add = |shape: &[usize], x: &[isize], y: &[isize], out: &[isize]| {
        elementwise(ADD, F32, shape, &[at.x(F32, x), at.y(F32, y)], at.out(F32, out))
    };
    let two = Input::Scalar(Scalar::new(2_f32));
    let product = Function::Binary(BinaryFunction::Multiply);
    vec![
        ("a + b of 1024", add(&[1024], &[1], &[1], &[1])),
        (
            "a * 2 of 1024",
            elementwise(product, F32, &[1024], &[at.x(F32, &[1]), two], at.out(F32, &[1])),
        ),
        ("a[::2] + b[::2] of 1024", add(&[1024], &[2], &[2], &[1])),
        ("m + row, 32 x 32", add(&[32, 32], &[32, 1], &[0, 1], &[32, 1])),
        ("m + m.T, 32 x 32", add(&[32, 32], &[32, 1], &[1, 32], &[32, 1])),
        ("a + b of 1Mi", add(&[1 << 20], &[1], &[1], &[1])),
        ("sum of 1024", sum(1024)),
        ("sum of 32Ki", sum(32 << 10)),
        ("sum of 256Ki", sum(256 << 10)),
        ("sum of 1Mi", sum(1 << 20)),
        ("sum of 4Mi", sum(4 << 20)),
        ("sum of 64Mi", sum(N)),
    ]
}

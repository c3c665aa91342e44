//! Descriptions of calls: their kinds, names and bytes.

use crate::dtype::DType;
use crate::module::LaunchConfig;
use crate::operation::{Description, Input, Mapped, Operand, Operation};
use crate::stream::{Direction, Transfer};

/// The kinds of recorded calls.
///
/// The time that the host waited:
///
/// ```
/// use gpuarray::recording::{Kind, Session, during};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let session = Session::begin();
/// during(Kind::Wait, "device", || device.synchronize())?;
/// let rows = session.finish().rows;
/// let waited: f64 = rows.iter().filter(|row| row.kind == Kind::Wait).map(|row| row.seconds).sum();
/// assert!(waited > 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A launch of a program's kernel.
    Kernel,
    /// A builtin operation of arrays.
    Operation,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A launch of a graph.
    Graph,
    /// An allocation of device memory.
    Allocate,
    /// A free of device memory.
    Free,
    /// A wait of the host for a stream, an event or a device.
    Wait,
    /// A compilation or a load of a program's code.
    Compile,
}

impl Kind {
    /// Returns the kind in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Operation => "operation",
            Kind::Copy => "copy",
            Kind::Fill => "fill",
            Kind::Graph => "graph",
            Kind::Allocate => "allocate",
            Kind::Free => "free",
            Kind::Wait => "wait",
            Kind::Compile => "compile",
        }
    }
}

/// The description of a call.
///
/// A fill that a program implements, recorded like the calls of the library:
///
/// ```
/// use gpuarray::memory::{Access, AccessGuard, DeviceMemory};
/// use gpuarray::recording::{Kind, Session, Work, queued};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let memory = Arc::new(DeviceMemory::for_stream(&device, &stream, 64)?);
/// let session = Session::begin();
/// let guard = AccessGuard::acquire(&stream, &[(&memory, Access::Write)])?;
/// // SAFETY: the memory has 64 bytes, and the guard orders the fill.
/// let fill = || unsafe { stream.fill(memory.address(), 7, 1, 64) };
/// queued(stream.as_ref(), || Work::new(Kind::Fill, "sevens").bytes(64), fill)?;
/// drop(guard);
/// assert!(session.finish().rows.iter().any(|row| row.name == "sevens" && row.bytes == 64));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) dtype: Option<DType>,
    pub(super) bytes: u64,
    pub(super) launch: LaunchConfig,
}

impl<'a> Work<'a> {
    /// Describes a call of a kind by its name.
    pub const fn new(kind: Kind, name: &'a str) -> Self {
        let launch = LaunchConfig::new([0; 3], [0; 3]);
        Work { kind, name, dtype: None, bytes: 0, launch }
    }

    /// Sets the bytes that the call reads and writes, or allocates.
    #[must_use]
    pub const fn bytes(self, bytes: u64) -> Self {
        Work { bytes, ..self }
    }

    /// Describes a launch of a kernel that takes arrays of `bytes` bytes in total.
    pub const fn kernel(name: &'a str, config: &LaunchConfig, bytes: u64) -> Self {
        Work { launch: *config, bytes, ..Work::new(Kind::Kernel, name) }
    }

    /// Describes a copy. A copy inside the device counts each byte twice: it is read and written.
    pub fn copy(transfer: &Transfer) -> Self {
        let bytes = transfer.width as u64 * transfer.height as u64 * transfer.depth as u64;
        let (name, times) = match transfer.direction {
            Direction::HostToDevice => ("host to device", 1),
            Direction::DeviceToHost => ("device to host", 1),
            Direction::DeviceToDevice => ("device to device", 2),
        };
        Work::new(Kind::Copy, name).bytes(bytes.saturating_mul(times))
    }

    /// Describes a builtin operation. Each element that it reads or writes counts once.
    pub fn operation(operation: &Operation) -> Self {
        let (name, dtype, bytes) = match operation.description() {
            Description::Elementwise(it) => {
                let inputs = it.inputs.iter().map(|input| of_input(input, &it.shape));
                let bytes = sum(inputs.chain([of(&it.output, &it.shape)]));
                (it.function.name(), it.output.dtype, bytes)
            }
            Description::Fused(it) => {
                let inputs = it.inputs.iter().map(|input| of_input(input, &it.shape));
                let outputs = it.outputs.iter().map(|output| of(output, &it.shape));
                ("fused", it.outputs[0].dtype, sum(inputs.chain(outputs)))
            }
            Description::Reduce(it) => {
                let input = match &it.input {
                    Mapped::Product(left, right) => {
                        sum([of(left, &it.shape), of(right, &it.shape)])
                    }
                    Mapped::Indexed(indexed) => of(&indexed.indices, &it.shape),
                    Mapped::Formula(values) => {
                        sum(values.arrays().map(|array| of(array, &values.shape)))
                    }
                    Mapped::Identity(input)
                    | Mapped::SquaredDeviation(input)
                    | Mapped::Position(input) => of(input, &it.shape),
                };
                (it.reduction.name(), it.compute, sum([input, of(&it.output, &it.shape)]))
            }
            Description::Scan(it) => {
                let bytes = sum([of(&it.input, &it.shape), of(&it.output, &it.shape)]);
                ("scan", it.compute, bytes)
            }
            Description::Gather(it) => {
                let output = of(&it.output, &it.shape);
                let bytes = sum([output, output, of(&it.source.indices, &it.shape)]);
                ("take", it.output.dtype, bytes)
            }
            Description::Scatter(it) => {
                let input = of_input(&it.input, &it.shape);
                let bytes = sum([input, input, of(&it.target.indices, &it.shape)]);
                ("put", it.target.base.dtype, bytes)
            }
            Description::Sequence(it) => ("arange", it.output.dtype, of(&it.output, &[it.length])),
            Description::Random(it) => ("random", it.output.dtype, of(&it.output, &[it.length])),
            Description::Nonzero(it) => {
                let bytes = sum([of(&it.mask, &[it.length]), of(&it.output, &[it.most])]);
                ("nonzero", it.output.dtype, bytes)
            }
            Description::Sort(it) => {
                let shape = [it.rows, it.length];
                ("sort", it.input.dtype, sum([of(&it.input, &shape), of(&it.output, &shape)]))
            }
            Description::MatrixProduct(it) => {
                let of = |operand: &Operand, rows: usize, columns: usize| {
                    let shape: Vec<_> = it.batch.iter().copied().chain([rows, columns]).collect();
                    of(operand, &shape)
                };
                let bytes = sum([
                    of(&it.left, it.rows, it.terms),
                    of(&it.right, it.terms, it.columns),
                    of(&it.output, it.rows, it.columns),
                ]);
                ("matmul", it.compute, bytes)
            }
        };
        Work { dtype: Some(dtype), bytes, ..Work::new(Kind::Operation, name) }
    }
}

/// Returns the sum of these bytes, or the largest number if it does not fit.
fn sum(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Returns the bytes of an operand's elements; a repeated element counts once.
fn of(operand: &Operand, shape: &[usize]) -> u64 {
    let extents = shape.iter().zip(&operand.strides).filter(|it| *it.1 != 0).map(|it| *it.0 as u64);
    extents.fold(operand.dtype.size() as u64, u64::saturating_mul)
}

fn of_input(input: &Input, shape: &[usize]) -> u64 {
    match input {
        Input::Array(operand) => of(operand, shape),
        Input::Scalar(_) => 0,
    }
}

//! Matrix products by the vendor's linear algebra library, if it is available: cuBLAS, rocBLAS.
//!
//! The library is always optional. Kernels of [`codegen::source`] compute the products that it does not support,
//! and all products if it is missing.

use crate::calls::Handle;
use hal::dtype::DType;
use hal::environment;
use hal::error::Result;
use hal::iteration::simplify;
use hal::library::{Library, Search};
use hal::operation::{MatrixProduct, Operand, Strides};
use hal::status::Status;
use num_complex::Complex;
use smallvec::SmallVec;
use std::ffi::{OsString, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::ptr::from_ref;
use std::sync::{Arc, OnceLock};

/// The functions of a linear algebra library that have the same signature for both vendors.
#[derive(Clone, Copy, Debug)]
pub struct BlasCalls {
    /// Creates a handle for the current context: `cublasCreate_v2`, `rocblas_create_handle`.
    pub create: unsafe extern "C" fn(*mut Handle) -> c_int,
    /// Sets the stream of later products: `cublasSetStream_v2`, `rocblas_set_stream`. Arguments: handle,
    /// stream.
    pub set_stream: unsafe extern "C" fn(Handle, Handle) -> c_int,
    /// Sets the workspace of later products: `cublasSetWorkspace_v2`, `rocblas_set_workspace`. Arguments: handle,
    /// address, bytes.
    pub set_workspace: unsafe extern "C" fn(Handle, u64, usize) -> c_int,
}

/// The symbols of the functions of [`BlasCalls`], and of the vendor's function for products.
#[derive(Clone, Copy, Debug)]
pub struct BlasNames {
    /// The symbol of [`BlasCalls::create`].
    pub create: &'static str,
    /// The symbol of [`BlasCalls::set_stream`].
    pub set_stream: &'static str,
    /// The symbol of [`BlasCalls::set_workspace`].
    pub set_workspace: &'static str,
    /// The symbol of the function that multiplies matrices, whose type is vendor-specific.
    pub multiply: &'static str,
}

/// The names, symbols and numbers of a vendor's linear algebra library. `F` is the type of the function that
/// multiplies matrices.
#[derive(Debug)]
pub struct BlasAbi<F> {
    /// The library's name, for messages.
    pub name: &'static str,
    /// The environment variable that names its file; the value `off` disables it.
    pub variable: &'static str,
    /// The environment variable that names the driver's file. If it is set, the library is opened only if the
    /// user names its file, because linear algebra libraries open a driver themselves.
    pub driver_variable: &'static str,
    /// The symbols of its functions.
    pub names: BlasNames,
    /// The statuses of products that the library does not support on a device.
    pub unsupported: &'static [c_int],
    /// The library's numbers for an unchanged matrix and for its transpose.
    pub operations: [c_int; 2],
    /// The dtypes that the library multiplies, each with its number and the number of its computing type.
    pub types: &'static [(DType, c_int, c_int)],
    /// Calls the function that multiplies; [`blas_multiply!`](crate::blas_multiply) declares it and its type.
    ///
    /// # Safety
    /// The function comes from the library; the rest is as for [`Blas::multiply`].
    pub multiply: unsafe fn(F, &BlasProduct<'_>) -> c_int,
}

/// The address of the matrix at position `PLACE` of [`Gemm::addresses`].
pub type MatrixAddress<const PLACE: usize> = u64;

/// Declares the type of a vendor's function that multiplies matrices, and `multiply`, which calls it.
///
/// The arguments are: the handle, the operations on A and B, m, n, k, and alpha; the address, type, leading
/// dimension and stride of A and of B; beta; the same four values for each matrix of `place`; the count, and
/// the computing type. The remaining arguments are vendor-specific, each with its value.
#[macro_export]
macro_rules! blas_multiply {
    ($(#[$doc:meta])* $type:ident, [$($place:literal),+], $($value:expr => $own:ty),+) => {
        $(#[$doc])*
        type $type = unsafe extern "C" fn(
            $crate::calls::Handle, c_int, c_int, c_int, c_int, c_int, *const c_void,
            u64, c_int, c_int, i64, u64, c_int, c_int, i64, *const c_void,
            $($crate::blas::MatrixAddress<$place>, c_int, c_int, i64,)+ c_int, c_int, $($own),+
        ) -> c_int;

        /// # Safety
        /// As for `BlasAbi::multiply`.
        unsafe fn multiply(function: $type, product: &$crate::blas::BlasProduct<'_>) -> c_int {
            let p = product;
            let (g, [a, b]) = (p.gemm, p.operations);
            // SAFETY: the caller's promise.
            unsafe {
                function(
                    p.handle, a, b, g.m, g.n, g.k, p.one,
                    g.addresses[0], p.dtype, g.leading[0], g.strides[0],
                    g.addresses[1], p.dtype, g.leading[1], g.strides[1], p.zero,
                    $(g.addresses[$place], p.dtype, g.leading[$place], g.strides[$place],)+
                    g.batch, p.compute, $($value),+
                )
            }
        }
    };
}

/// Products, with operations and types as the library's own numbers.
#[derive(Debug)]
pub struct BlasProduct<'a> {
    /// The handle.
    pub handle: Handle,
    /// The operations on `A` and `B`.
    pub operations: [c_int; 2],
    /// The address of the number 1 in the type of the computation.
    pub one: *const c_void,
    /// The address of the number 0 in the type of the computation.
    pub zero: *const c_void,
    /// The type of the elements.
    pub dtype: c_int,
    /// The type of the computation.
    pub compute: c_int,
    /// The matrices.
    pub gemm: &'a Gemm,
}

/// An opened linear algebra library.
pub trait Blas: Send + Sync + fmt::Debug {
    /// Returns the functions that both vendors share.
    fn calls(&self) -> &BlasCalls;

    /// Returns the symbols of the functions.
    fn names(&self) -> &'static BlasNames;

    /// Returns true if the library can multiply matrices of a dtype.
    fn takes(&self, dtype: DType) -> bool;

    /// Queues products on the handle's stream; returns the library's status.
    ///
    /// # Safety
    /// The handle is live and belongs to the current context, and the matrices stay allocated until the stream
    /// has used them.
    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int;

    /// Returns true for the status of a product that the library does not support on this device.
    fn is_unsupported(&self, code: c_int) -> bool;
}

struct Opened<F: 'static> {
    calls: BlasCalls,
    function: F,
    abi: &'static BlasAbi<F>,
}

impl<F> fmt::Debug for Opened<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blas").field("name", &self.abi.name).finish_non_exhaustive()
    }
}

impl<F: Copy> Opened<F> {
    /// Returns the numbers of a dtype and of its computing type.
    fn types(&self, dtype: DType) -> Option<(c_int, c_int)> {
        let row = self.abi.types.iter().find(|(own, ..)| *own == dtype);
        row.map(|&(_, number, compute)| (number, compute))
    }

    /// Looks up the functions.
    ///
    /// # Errors
    /// `BackendUnavailable` that names the missing functions.
    ///
    /// # Safety
    /// The library's functions of these names have the types that the tables declare.
    unsafe fn find(abi: &'static BlasAbi<F>, library: Library) -> Result<Self> {
        let mut symbols = library.symbols();
        // SAFETY: the caller's promise.
        let (create, set_stream, set_workspace, multiply) = unsafe {
            (
                symbols.required(abi.names.create),
                symbols.required(abi.names.set_stream),
                symbols.required(abi.names.set_workspace),
                symbols.required(abi.names.multiply),
            )
        };
        let all = || {
            let calls = BlasCalls {
                create: create?,
                set_stream: set_stream?,
                set_workspace: set_workspace?,
            };
            Some(Opened { calls, function: multiply?, abi })
        };
        symbols.complete(all())
    }
}

impl<F: Copy + Send + Sync> Blas for Opened<F> {
    fn calls(&self) -> &BlasCalls {
        &self.calls
    }

    fn names(&self) -> &'static BlasNames {
        &self.abi.names
    }

    fn takes(&self, dtype: DType) -> bool {
        self.types(dtype).is_some()
    }

    unsafe fn multiply(&self, handle: Handle, gemm: &Gemm) -> c_int {
        let Some((dtype, compute)) = self.types(gemm.dtype) else {
            return self.abi.unsupported.first().copied().unwrap_or(Status::UNKNOWN);
        };
        // A real factor is the first part of a complex one. Half precision is computed in single precision.
        let factors = [0.0, 1.0].map(|it| (Complex::new(it as f32, 0.0), Complex::new(it, 0.0)));
        let is_double = matches!(gemm.dtype, DType::Float64 | DType::Complex128);
        let [zero, one]: [*const c_void; 2] = factors.each_ref().map(|(single, double)| {
            if is_double { from_ref(double).cast() } else { from_ref(single).cast() }
        });
        let operations = gemm.transposed.map(|it| self.abi.operations[usize::from(it)]);
        let product = BlasProduct { handle, operations, one, zero, dtype, compute, gemm };
        // SAFETY: the caller's promise; the factors are read before the call returns.
        unsafe { (self.abi.multiply)(self.function, &product) }
    }

    fn is_unsupported(&self, code: c_int) -> bool {
        self.abi.unsupported.contains(&code)
    }
}

/// A vendor's library, opened at the first matrix product.
#[derive(Debug, Default)]
pub struct BlasLibrary {
    found: OnceLock<Result<Option<Arc<dyn Blas>>>>,
}

impl BlasLibrary {
    /// Returns the library; `None` if it is not available. `files` is called once. It returns the file that the
    /// user has named, if any, and the files to try otherwise.
    ///
    /// # Errors
    /// The search's, if the user named a file.
    ///
    /// # Safety
    /// The files are the vendor's library, or behave like it, and their functions have the types that the tables
    /// declare.
    pub unsafe fn get<F: Copy + Send + Sync>(
        &self,
        abi: &'static BlasAbi<F>,
        files: impl FnOnce() -> (Option<OsString>, Vec<PathBuf>),
    ) -> Result<Option<Arc<dyn Blas>>> {
        let open = || {
            let (named, candidates) = files();
            let is_off = named.as_ref().is_some_and(|it| it == "off");
            let is_other_drivers =
                named.is_none() && environment::trusted(abi.driver_variable).is_some();
            if is_off || is_other_drivers {
                return Ok(None);
            }
            let search = Search::new(abi.name).explicit(abi.variable, named).candidates(candidates);
            // SAFETY: the caller's promise.
            match unsafe { search.open(|library| Opened::find(abi, library)) } {
                Ok(found) => Ok(Some(Arc::new(found) as Arc<dyn Blas>)),
                Err(error) if search.is_explicit() => Err(error),
                Err(error) => {
                    log::debug!("matrices are multiplied by own kernels: {error}");
                    Ok(None)
                }
            }
        };
        self.found.get_or_init(open).clone()
    }
}

// Matrix products in terms of BLAS, which stores matrices in column-major order.

/// A batch of products `C = op(A) op(B)` of column-major matrices: `C` has `m` rows and `n` columns, and
/// each sum has `k` terms. A row-major matrix is the transpose of a column-major one, so `A` may be the
/// right factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    /// The type of all elements.
    pub dtype: DType,
    /// Rows of `C`.
    pub m: c_int,
    /// Columns of `C`.
    pub n: c_int,
    /// Terms of each sum.
    pub k: c_int,
    /// True if `A` is transposed, and if `B` is.
    pub transposed: [bool; 2],
    /// The addresses of the first `A`, `B` and `C`.
    pub addresses: [u64; 3],
    /// The number of elements between the columns of `A`, `B` and `C`.
    pub leading: [c_int; 3],
    /// The number of elements between one matrix and the next.
    pub strides: [i64; 3],
    /// The number of products.
    pub batch: c_int,
}

/// A factor: the addresses of its lines (rows of the left matrix, columns of the right one) and of the
/// terms in them.
struct Factor<'a> {
    operand: &'a Operand,
    lines: usize,
    /// The bytes from a line to the next, and from a term to the next.
    line: isize,
    term: isize,
}

impl Gemm {
    /// Returns a product in terms of BLAS. Returns `None` if BLAS cannot express it: matrices that are not
    /// contiguous along either axis, several types, or a batch that is not evenly spaced.
    pub(crate) fn of(product: &MatrixProduct) -> Option<Gemm> {
        let MatrixProduct { compute, batch, rows, terms, columns, left, right, output } = product;
        let operands = [output, left, right];
        if operands.iter().any(|operand| operand.dtype != *compute) {
            return None;
        }
        let axes = batch.len();
        let outer = |operand: &&Operand| Strides::from_slice(&operand.strides[..axes]);
        let mut strides: SmallVec<[Strides; 3]> = operands.iter().map(outer).collect();
        let (batch, moves) = simplify(batch, &mut strides);
        let size = compute.size() as isize;
        let number = |count: usize| c_int::try_from(count).ok();
        let elements = |bytes: isize| (bytes % size == 0).then_some(bytes / size);
        let (batch, strides) = match batch[..] {
            [] => (1, [0; 3]),
            [count] => {
                let [c, a, b] = [0, 1, 2].map(|k| elements(strides[k][0]));
                let spaced = [c?, a?, b?];
                (number(count)?, spaced.iter().all(|&it| it >= 0).then_some(spaced)?)
            }
            _ => return None,
        };
        let matrix = |operand: &Operand| [operand.strides[axes], operand.strides[axes + 1]];
        let ([row, column], [left_row, left_term], [right_term, right_column]) =
            (matrix(output), matrix(left), matrix(right));
        let mut first = Factor { operand: left, lines: *rows, line: left_row, term: left_term };
        let mut second =
            Factor { operand: right, lines: *columns, line: right_column, term: right_term };
        let (mut a, mut b, mut across) = (1, 2, column);
        if row != size {
            if column != size {
                return None;
            }
            // The transposed result is the product of the transposed factors, the right one first.
            std::mem::swap(&mut first, &mut second);
            (a, b, across) = (2, 1, row);
        }
        // The number of elements from one column, of `length` elements, to the next.
        let leading = |bytes: isize, length: usize| {
            let count = elements(bytes)?;
            (count >= length.max(1) as isize).then(|| c_int::try_from(count).ok()).flatten()
        };
        // A factor is contiguous along its lines or along its terms; with a single term, the distance to
        // the next term is irrelevant.
        let stored = |factor: &Factor<'_>| {
            if factor.line == size {
                let next = if *terms == 1 { factor.lines as isize * size } else { factor.term };
                if let Some(leading) = leading(next, factor.lines) {
                    return Some((true, leading));
                }
            }
            let along_terms = factor.term == size || *terms == 1;
            along_terms
                .then(|| leading(factor.line, *terms))
                .flatten()
                .map(|leading| (false, leading))
        };
        let (a_along_lines, a_leading) = stored(&first)?;
        let (b_along_lines, b_leading) = stored(&second)?;
        let address =
            |operand: &Operand, k: usize| operand.address.wrapping_add_signed(moves[k] as i64);
        Some(Gemm {
            dtype: *compute,
            m: number(first.lines)?,
            n: number(second.lines)?,
            k: number(*terms)?,
            transposed: [!a_along_lines, b_along_lines],
            addresses: [address(first.operand, a), address(second.operand, b), address(output, 0)],
            leading: [a_leading, b_leading, leading(across, first.lines)?],
            strides: [strides[a] as i64, strides[b] as i64, strides[0] as i64],
            batch,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::operation::Shape;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const SIZE: isize = 8;

    /// For each element of the results, the addresses of the factors of its terms.
    type Terms = BTreeMap<u64, BTreeSet<[u64; 2]>>;

    fn at(base: u64, steps: &[(usize, isize)]) -> u64 {
        base.wrapping_add_signed(steps.iter().map(|&(i, step)| i as i64 * step as i64).sum())
    }

    fn every<const N: usize>(extents: [usize; N]) -> impl Iterator<Item = [usize; N]> {
        (0..extents.iter().product()).map(move |mut index: usize| {
            extents.map(|extent| {
                let own = index % extent;
                index /= extent;
                own
            })
        })
    }

    /// Returns the terms of a product with at most one batch axis.
    fn described(product: &MatrixProduct) -> Terms {
        let count = product.batch.first().copied().unwrap_or(1);
        let mut terms = Terms::new();
        for [b, i, j, t] in every([count, product.rows, product.columns, product.terms]) {
            let of = |operand: &Operand, row: usize, column: usize| {
                let outer = operand.strides.len() - 2;
                let batch = operand.strides[..outer].first().copied().unwrap_or(0);
                let matrix = [(row, operand.strides[outer]), (column, operand.strides[outer + 1])];
                at(operand.address, &[(b, batch), matrix[0], matrix[1]])
            };
            let factors = [of(&product.left, i, t), of(&product.right, t, j)];
            terms.entry(of(&product.output, i, j)).or_default().insert(factors);
        }
        terms
    }

    /// Returns the terms that BLAS adds, by its definition of column-major matrices.
    fn multiplied(gemm: &Gemm) -> Terms {
        let [m, n, k, batch] = [gemm.m, gemm.n, gemm.k, gemm.batch].map(|it| it as usize);
        let mut terms = Terms::new();
        for [b, i, j, t] in every([batch, m, n, k]) {
            let of = |which: usize, row: usize, column: usize, transposed: bool| {
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                let next = SIZE * gemm.leading[which] as isize;
                let batch = SIZE * gemm.strides[which] as isize;
                at(gemm.addresses[which], &[(b, batch), (row, SIZE), (column, next)])
            };
            let mut factors = [of(0, i, t, gemm.transposed[0]), of(1, t, j, gemm.transposed[1])];
            // In these tests, left factors have lower addresses than right ones.
            factors.sort_unstable();
            terms.entry(of(2, i, j, false)).or_default().insert(factors);
        }
        terms
    }

    /// Returns a matrix at an address, with its order and the number of padding elements per line.
    fn operand(
        address: u64,
        shape: [usize; 2],
        by_rows: bool,
        gap: usize,
        batch: &[usize],
    ) -> Operand {
        let [rows, columns] = shape;
        let line = (gap + if by_rows { columns } else { rows }) as isize * SIZE;
        let matrix = if by_rows { [line, SIZE] } else { [SIZE, line] };
        let lines = if by_rows { rows } else { columns } as isize;
        let outer = batch.iter().map(|_| lines * line);
        let strides = outer.chain(matrix).collect();
        Operand { address, dtype: DType::Float64, strides }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn products_mean_the_same_in_column_major_order(
            extents in (2_usize..5, 1_usize..5, 2_usize..5), orders in prop::array::uniform3(any::<bool>()),
            gaps in prop::array::uniform3(0_usize..3), count in prop::option::of(1_usize..4),
            is_shared in any::<bool>(),
        ) {
            let (rows, terms, columns) = extents;
            let batch: Shape = count.into_iter().collect();
            let mut right = operand(1 << 20, [terms, columns], orders[1], gaps[1], &batch);
            if is_shared && count.is_some() {
                right.strides[0] = 0;
            }
            let product = MatrixProduct {
                compute: DType::Float64,
                left: operand(1 << 10, [rows, terms], orders[0], gaps[0], &batch),
                right,
                output: operand(1 << 30, [rows, columns], orders[2], gaps[2], &batch),
                batch, rows, terms, columns,
            };
            let gemm = Gemm::of(&product).expect("matrices with neighbours along an axis");
            prop_assert_eq!(multiplied(&gemm), described(&product));
            let stored = |own: c_int, other: c_int, is_turned: bool| if is_turned { other } else { own };
            prop_assert!(gemm.leading[0] >= stored(gemm.m, gemm.k, gemm.transposed[0]));
            prop_assert!(gemm.leading[1] >= stored(gemm.k, gemm.n, gemm.transposed[1]));
            prop_assert!(gemm.leading[2] >= gemm.m);
        }
    }

    #[test]
    fn what_blas_cannot_name_is_left_to_kernels() {
        let of = |address, strides: &[isize]| Operand {
            address,
            dtype: DType::Float64,
            strides: Strides::from_slice(strides),
        };
        let product = MatrixProduct {
            compute: DType::Float64,
            batch: Shape::new(),
            rows: 3,
            terms: 4,
            columns: 5,
            left: of(1 << 10, &[32, 8]),
            right: of(1 << 20, &[40, 8]),
            output: of(1 << 30, &[40, 8]),
        };
        assert!(Gemm::of(&product).is_some());
        let changed = |change: fn(&mut MatrixProduct)| {
            let mut product = product.clone();
            change(&mut product);
            Gemm::of(&product)
        };
        assert_eq!(changed(|it| it.left.strides[1] = 16), None);
        assert_eq!(changed(|it| it.right.strides[0] = -40), None);
        assert_eq!(changed(|it| it.left.strides[0] = 0), None);
        assert_eq!(changed(|it| it.output.strides[0] = 36), None);
        assert_eq!(changed(|it| it.left.dtype = DType::Float32), None);
        assert_eq!(changed(|it| it.terms = 1 << 40), None);
        let several = |it: &mut MatrixProduct| {
            it.batch = Shape::from_slice(&[2, 3]);
            for operand in [&mut it.left, &mut it.right, &mut it.output] {
                operand.strides.insert(0, 1 << 12);
                operand.strides.insert(0, 1 << 15);
            }
        };
        assert_eq!(changed(several), None);
    }
}

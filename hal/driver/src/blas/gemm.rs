//! Matrix products in terms of BLAS, which stores matrices in column-major order.

use hal::dtype::DType;
use hal::iteration::simplify;
use hal::operation::{MatrixProduct, Operand, Strides};
use smallvec::SmallVec;
use std::ffi::c_int;

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

//! Matrix products, compared with naive loops.

use super::{run, takes_all};
use crate::harness::Memory;
use hal::operation::{Description, MatrixProduct};
use hal::{Complex, DType, Element, f16};

/// Returns small whole numbers without a pattern, whose products and sums are exact.
fn noise(length: usize, seed: u32) -> impl Iterator<Item = i32> {
    (0..length as u32).map(move |i| {
        let state = (i + seed).wrapping_mul(2_654_435_761).wrapping_add(12345);
        ((state ^ (state >> 13)).wrapping_mul(0x5bd1_e995) >> 9) as i32 % 9 - 4
    })
}

/// The order of a matrix's elements in memory.
#[derive(Clone, Copy)]
enum Order {
    Rows,
    Columns,
    /// Every other element of rows with a gap.
    Gaps,
}

impl Order {
    fn strides(self, [rows, columns]: [usize; 2]) -> [isize; 2] {
        match self {
            Order::Rows => [columns as isize, 1],
            Order::Columns => [1, rows as isize],
            Order::Gaps => [2 * columns as isize + 3, 2],
        }
    }

    fn size(self, extents: [usize; 2]) -> usize {
        let [down, along] = self.strides(extents);
        (down * extents[0] as isize + along * extents[1] as isize) as usize
    }
}

struct Case {
    batch: usize,
    /// Rows, terms, columns.
    extents: [usize; 3],
    orders: [Order; 3],
    /// True if all products share the right matrix.
    shared: bool,
}

/// Computes the products with the kernels, and with loops over whole numbers.
fn products<T: Element + PartialEq>(
    cases: &[Case],
    make: impl Fn(i32, i32) -> T,
    stored: impl Fn(i64, i64) -> T,
    is_complex: bool,
) {
    let (mut operations, mut checks) = (Vec::new(), Vec::new());
    for case in cases {
        let [rows, terms, columns] = case.extents;
        let shapes = [[rows, terms], [terms, columns], [rows, columns]];
        let sizes: [usize; 3] = std::array::from_fn(|k| case.orders[k].size(shapes[k]) + 5);
        let parts = |seed: u32| -> Vec<(i32, i32)> {
            let count = sizes[seed as usize] * case.batch;
            let imaginary = noise(count, 77 + seed).map(|x| if is_complex { x } else { 0 });
            noise(count, seed * 1000).zip(imaginary).collect()
        };
        let (left, right) = (parts(0), parts(1));
        let memory = |parts: &[(i32, i32)]| {
            Memory::new(&parts.iter().map(|&(re, im)| make(re, im)).collect::<Vec<T>>())
        };
        let (first, second) = (memory(&left), memory(&right));
        let output = Memory::<T>::zeros(sizes[2] * case.batch);
        let strides = |k: usize| -> Vec<isize> {
            let apart = if k == 1 && case.shared { 0 } else { sizes[k] as isize };
            [apart].into_iter().chain(case.orders[k].strides(shapes[k])).collect()
        };
        operations.push(Description::MatrixProduct(MatrixProduct {
            compute: T::DTYPE,
            batch: [case.batch][..].into(),
            rows,
            terms,
            columns,
            left: first.operand(&strides(0)),
            right: second.operand(&strides(1)),
            output: output.operand(&strides(2)),
        }));
        let all = [strides(0), strides(1), strides(2)];
        checks.push((case, left, right, first, second, output, all));
    }
    if !run(&operations) {
        return;
    }
    for (case, left, right, _first, _second, output, strides) in checks {
        let [rows, terms, columns] = case.extents;
        let at = |k: usize, index: [usize; 3]| -> usize {
            index.iter().zip(&strides[k]).map(|(&i, &stride)| i * stride as usize).sum()
        };
        let mut written = 0;
        for (b, i, j) in (0..case.batch)
            .flat_map(|b| (0..rows).flat_map(move |i| (0..columns).map(move |j| (b, i, j))))
        {
            let (mut re, mut im) = (0, 0);
            for t in 0..terms {
                let (x, y) = (left[at(0, [b, i, t])], right[at(1, [b, t, j])]);
                re += i64::from(x.0 * y.0 - x.1 * y.1);
                im += i64::from(x.0 * y.1 + x.1 * y.0);
            }
            let found = output.at(at(2, [b, i, j]));
            let expected = stored(re, im);
            assert!(
                found == expected,
                "{found:?}, not {expected:?}: {b} {i} {j} {:?}",
                case.extents
            );
            written += usize::from(expected != stored(0, 0));
        }
        let values = output.values();
        assert_eq!(values.iter().filter(|&&x| x != stored(0, 0)).count(), written, "gaps stay");
    }
}

fn case(batch: usize, extents: [usize; 3], orders: [Order; 3]) -> Case {
    Case { batch, extents, orders, shared: false }
}

#[test]
fn tiles_of_every_size_with_edges() {
    use Order::{Columns, Gaps, Rows};
    let cases = [
        case(1, [2, 1, 2], [Rows, Rows, Rows]),
        case(3, [5, 9, 31], [Rows, Columns, Rows]),
        case(2, [32, 8, 32], [Columns, Rows, Columns]),
        case(1, [65, 17, 33], [Rows, Rows, Rows]),
        case(1, [40, 20, 70], [Gaps, Gaps, Gaps]),
        // Split sums.
        case(2, [33, 1000, 5], [Columns, Columns, Rows]),
        Case { shared: true, ..case(4, [9, 600, 9], [Rows, Columns, Columns]) },
    ];
    products(&cases, |x, _| x as f32, |x, _| x as f32, false);
    if !takes_all() {
        return;
    }
    products(&cases, |x, _| x as i16, |x, _| x as i16, false);
    products(
        &cases,
        |x, y| Complex::new(f64::from(x), f64::from(y)),
        |x, y| Complex::new(x as f64, y as f64),
        true,
    );
}

#[test]
fn large_tiles_and_many_works() {
    use Order::{Columns, Rows};
    // Tiles of 128 by 64 elements.
    let cases = [case(22, [140, 9, 130], [Columns, Rows, Rows])];
    products(&cases, |x, _| f64::from(x), |x, _| x as f64, false);
}

#[test]
fn half_precision_is_summed_in_single_precision() {
    // 2049 is not a binary16 number: sums in that type would stay at 2048.
    let ones = Memory::new(&vec![f16::ONE; 2 * 4097]);
    let output = Memory::<f16>::zeros(4);
    let operation = MatrixProduct {
        compute: DType::Float16,
        batch: [][..].into(),
        rows: 2,
        terms: 4097,
        columns: 2,
        left: ones.operand(&[4097, 1]),
        right: ones.operand(&[1, 4097]),
        output: output.operand(&[2, 1]),
    };
    if run(&[Description::MatrixProduct(operation)]) {
        assert_eq!(output.values(), [f16::from_f32(4096.0); 4]);
    }
}

#[test]
fn elements_of_other_dtypes_are_converted() {
    let left = Memory::new(&[1_i8, 2, 3, -4]);
    let right = Memory::new(&[true, false, true, true]);
    let output = Memory::<i64>::zeros(4);
    let operation = MatrixProduct {
        compute: DType::Int32,
        batch: [][..].into(),
        rows: 2,
        terms: 2,
        columns: 2,
        left: left.operand(&[2, 1]),
        right: right.operand(&[2, 1]),
        output: output.operand(&[2, 1]),
    };
    if run(&[Description::MatrixProduct(operation)]) {
        assert_eq!(output.values(), [3, 2, -1, -4]);
    }
}

//! Reductions in packs, and scans in tiles and chunks: lengths, alignments, order.

use super::run;
use crate::harness::{Memory, plan};
use hal::function::Reduction;
use hal::operation::*;
use hal::{Complex, DType, Element, Scalar, f16};
use std::fmt::Debug;

fn reduce(
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

fn moved(mut operand: Operand, elements: usize) -> Operand {
    operand.address += (elements * operand.dtype.size()) as u64;
    operand
}

fn name(operation: &Description) -> String {
    plan(operation).spec().kernel_names()[0].clone()
}

/// Checks sums of whole arrays whose exact value is `exact` of the indices' small values.
fn sums<T: Element, R: Element + PartialEq + Debug>(
    make: impl Fn(u32) -> T,
    exact: impl Fn(u64) -> R,
) {
    let pack = 16 / size_of::<T>();
    let small = |i: usize| (i * 7 % 5) as u32 % 3;
    // On both sides of each threshold for the number of threads per output, and for a single
    // launch.
    let packs = [1, 3, 4, 8, 63, 64, 511, 512, 1024, 8192, 20 * 1024];
    let tails = |count: usize| [count * pack, count * pack + 1, (count + 1) * pack - 1];
    let lengths = packs.into_iter().flat_map(tails);
    let lengths: Vec<usize> =
        lengths.filter(|it| *it >= 8 * pack || (*it > 1 && it % pack == 0)).collect();
    let values: Vec<T> = (0..22 * 1024 * pack).map(|i| make(small(i))).collect();
    let memory = Memory::new(&values);
    let mut cases = Vec::new();
    for length in lengths {
        for shift in [0, 1] {
            let out = Memory::<R>::zeros(1);
            let input = Mapped::Identity(moved(memory.operand(&[1]), shift));
            let sum = reduce(Reduction::Sum, R::DTYPE, &[length], input, out.operand(&[0]));
            assert!(name(&sum).contains("_packed"), "{} {length}", name(&sum));
            cases.push((length, shift, out, sum));
        }
    }
    let operations: Vec<Description> = cases.iter().map(|case| case.3.clone()).collect();
    if !run(&operations) {
        return;
    }
    for (length, shift, out, _) in cases {
        let sum = (shift..shift + length).map(|i| u64::from(small(i))).sum();
        assert_eq!(out.at(0), exact(sum), "{length} from {shift}");
    }
}

#[test]
fn whole_arrays_of_every_length_and_alignment() {
    sums(|x| x as u8, |sum| sum as i64);
    sums(|x| x as i16, |sum| sum as f64);
    sums(|x| x as f32, |sum| sum as f32);
    sums(|x| f16::from_f32(x as f32), |sum| f16::from_f64(sum as f64));
    sums(
        |x| Complex::new(f64::from(x), -f64::from(x)),
        |sum| Complex::new(sum as f64, -(sum as f64)),
    );
}

#[test]
fn the_order_of_additions_does_not_depend_on_the_address() {
    let length = 300_007;
    let noise = |i: usize| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 * 1e-7 - 0.3;
    let memories: Vec<Memory<f32>> = (0..4)
        .map(|shift: usize| {
            let place = |i: usize| if i < shift { 0.0 } else { noise(i - shift) };
            Memory::new(&(0..length + shift).map(place).collect::<Vec<_>>())
        })
        .collect();
    let sums = Memory::<f32>::zeros(8);
    let operations: Vec<Description> = (0..8)
        .map(|i| {
            let input = Mapped::Identity(moved(memories[i % 4].operand(&[1]), i % 4));
            let output = moved(sums.operand(&[0]), i);
            reduce(Reduction::Sum, DType::Float32, &[length], input, output)
        })
        .collect();
    if !run(&operations) {
        return;
    }
    let bits: Vec<u32> = sums.values().into_iter().map(f32::to_bits).collect();
    assert!(bits.iter().all(|it| *it == bits[0]), "{:?}", sums.values());
    let exact: f64 = (0..length).map(|i| f64::from(noise(i))).sum();
    assert!((f64::from(sums.at(0)) - exact).abs() < 1e-6 * exact.abs().max(1e3));
}

#[test]
fn rows_whose_pitch_is_not_a_pack() {
    let (rows, width, pitch) = (37_usize, 101_usize, 103_isize);
    let value = |i: usize| (i as u32).wrapping_mul(2_654_435_761) >> 24;
    let matrix = Memory::new(&(0..37 * 103).map(|i| value(i) as f32).collect::<Vec<_>>());
    let bytes = Memory::new(&(0..37 * 103).map(|i| value(i) as u8).collect::<Vec<_>>());
    let truth = Memory::new(&(0..37 * 103).map(|i| i / 103 != 20 && i > 200).collect::<Vec<_>>());
    let mut holes = matrix.values();
    holes[5 * 103 + 100] = f32::NAN;
    let holes = Memory::new(&holes);
    let (sums, lowest) = (Memory::<f32>::zeros(rows), Memory::<f32>::zeros(rows));
    let (any, all) = (Memory::<bool>::zeros(rows), Memory::<bool>::zeros(rows));
    let (dots, total) = (Memory::<f64>::zeros(rows), Memory::<i32>::zeros(1));
    let shape = [rows, width];
    let identity = |operand: Operand| Mapped::Identity(moved(operand, 1));
    let pair = Mapped::Product(matrix.operand(&[pitch, 1]), bytes.operand(&[pitch, 1]));
    use DType::*;
    let list = [
        reduce(
            Reduction::Sum,
            Float32,
            &shape,
            identity(matrix.operand(&[pitch, 1])),
            sums.operand(&[1, 0]),
        ),
        reduce(
            Reduction::Minimum,
            Float32,
            &shape,
            identity(holes.operand(&[pitch, 1])),
            lowest.operand(&[1, 0]),
        ),
        reduce(
            Reduction::Any,
            Bool,
            &shape,
            identity(truth.operand(&[pitch, 1])),
            any.operand(&[1, 0]),
        ),
        reduce(
            Reduction::All,
            Bool,
            &shape,
            identity(truth.operand(&[pitch, 1])),
            all.operand(&[1, 0]),
        ),
        reduce(Reduction::Sum, Float64, &shape, pair, dots.operand(&[1, 0])),
        reduce(
            Reduction::Sum,
            Int32,
            &shape,
            identity(bytes.operand(&[pitch, 1])),
            total.operand(&[0, 0]),
        ),
    ];
    let packed = |i: usize| name(&list[i]).contains("_packed");
    // Too few packs of bytes, and two reduced axes.
    assert_eq!([0, 1, 2, 3, 4, 5].map(packed), [true, true, false, false, true, false]);
    if !run(&list) {
        return;
    }
    let mut all_bytes = 0;
    for i in 0..rows {
        let from = i * 103 + 1;
        let row = from..from + width;
        assert_eq!(sums.at(i), row.clone().map(|at| matrix.at(at)).sum::<f32>());
        let least = row.clone().map(|at| matrix.at(at)).fold(f32::INFINITY, f32::min);
        assert!(lowest.at(i) == least || (i == 5 && lowest.at(i).is_nan()), "{i}");
        assert_eq!(any.at(i), row.clone().any(|at| truth.at(at)));
        assert_eq!(all.at(i), row.clone().all(|at| truth.at(at)));
        let products = (i * 103..i * 103 + width).map(|at| matrix.at(at) * f32::from(bytes.at(at)));
        assert_eq!(dots.at(i), products.map(f64::from).sum::<f64>());
        all_bytes += row.map(|at| i32::from(bytes.at(at))).sum::<i32>();
    }
    assert_eq!(total.at(0), all_bytes);
    assert!(lowest.at(5).is_nan() && !any.at(20) && all.at(30));
}

#[test]
fn columns_few_and_many() {
    let mut cases = Vec::new();
    for (rows, columns) in [(600, 50), (5000, 3), (9, (1 << 18) + 5), (7, 300), (9000, 64)] {
        let values: Vec<u8> = (0..rows * columns).map(|i| (i * 31 % 253) as u8).collect();
        let (input, out) = (Memory::new(&values), Memory::<i32>::zeros(columns));
        let sum = reduce(
            Reduction::Sum,
            DType::Int32,
            &[rows, columns],
            Mapped::Identity(input.operand(&[columns as isize, 1])),
            out.operand(&[0, 1]),
        );
        cases.push((rows, columns, values, input, out, sum));
    }
    let operations: Vec<Description> = cases.iter().map(|case| case.5.clone()).collect();
    if !run(&operations) {
        return;
    }
    for (rows, columns, values, _, out, _) in cases {
        let mut expected = vec![0; columns];
        for i in 0..rows * columns {
            expected[i % columns] += i32::from(values[i]);
        }
        assert_eq!(out.values(), expected, "{rows} {columns}");
    }
}

/// Checks sums along the middle axis, or along the outer and the inner axis, of blocks with these
/// pitches.
fn blocks<T: Element, R: Element + PartialEq + Debug>(
    cases: &[([usize; 3], [isize; 2], bool, &str)],
    make: impl Fn(u32) -> T,
    exact: impl Fn(u64) -> R,
) {
    let small = |i: usize| (i * 7 % 5) as u32 % 3;
    let mut operations = Vec::new();
    let mut memories = Vec::new();
    for (shape, [plane, row], middle, way) in cases {
        let [planes, rows, columns] = *shape;
        let count = *plane as usize * planes + *row as usize * rows + columns;
        let input = Memory::new(&(0..count).map(|i| make(small(i))).collect::<Vec<_>>());
        let strides = [*plane, *row, 1];
        let kept = if *middle { planes * columns } else { rows };
        let out = Memory::<R>::zeros(kept);
        let to = if *middle { [columns as isize, 0, 1] } else { [0, 1, 0] };
        let source = Mapped::Identity(input.operand(&strides));
        let sum = reduce(Reduction::Sum, R::DTYPE, shape, source, out.operand(&to));
        assert!(name(&sum).contains(way), "{} {shape:?}", name(&sum));
        let mut expected = vec![0; kept];
        for i in 0..planes {
            for j in 0..rows {
                for k in 0..columns {
                    let value = small(i * *plane as usize + j * *row as usize + k);
                    expected[if *middle { i * columns + k } else { j }] += u64::from(value);
                }
            }
        }
        operations.push(sum);
        memories.push((input, out, expected));
    }
    if !run(&operations) {
        return;
    }
    for (operation, (_, out, expected)) in operations.iter().zip(memories) {
        for (i, sum) in expected.into_iter().enumerate() {
            assert_eq!(out.at(i), exact(sum), "{i} of {}", name(operation));
        }
    }
}

#[test]
fn columns_in_packs_and_packs_along_two_axes() {
    let cases: [([usize; 3], [isize; 2], bool, &str); 12] = [
        ([1, 7, 4], [0, 4], true, "_columns256"),
        ([1, 9, 4], [0, 4], true, "_columns1"),
        ([1, 3000, 12], [0, 12], true, "_columns2"),
        ([1, 300, 64], [0, 64], true, "_columns16"),
        ([1, 9000, 128], [0, 160], true, "_columns32_staged"),
        ([3, 100, 132], [100 * 160, 160], true, "_columns32"),
        ([3, 40, 36], [1616, 40], true, "_columns16"),
        // No whole packs, or unaligned packs.
        ([1, 300, 66], [0, 66], true, "1by1_32"),
        ([1, 300, 64], [0, 67], true, "1by1_32"),
        // Packs of rows with gaps.
        ([5, 30, 64], [30 * 80, 80], false, "1by2_32_packed"),
        ([70, 3, 64], [240, 80], false, "1by2_32_packed"),
        ([700, 2, 160], [320, 160], false, "1by2_32_packed256_staged"),
    ];
    blocks(&cases, |x| x as f32, |sum| sum as f32);
    blocks(&cases[..8], |x| x as u8, |sum| sum as i64);
    let complex = |x: f64| Complex::new(x, -x);
    blocks(&cases[9..], |x| complex(f64::from(x)), |sum| complex(sum as f64));
    let narrow = [cases[1], cases[4], cases[5], cases[9]];
    let wide =
        narrow.map(|case| (case.0, case.1, case.2, if case.2 { "_columns" } else { "_packed" }));
    blocks(&wide, f64::from, |sum| sum as f64);
}

#[test]
fn short_sums_take_one_launch() {
    let launches = |length: usize, dtype: DType| {
        let input =
            Operand { address: 1 << 20, dtype, strides: [dtype.size() as isize][..].into() };
        let output = Operand { address: 1 << 30, dtype, strides: [0][..].into() };
        let sum = reduce(Reduction::Sum, dtype, &[length], Mapped::Identity(input), output);
        let plan = plan(&sum);
        (plan.launches().len(), plan.launches()[0].config.grid[0])
    };
    for length in [0, 1, 7, 1024, 32 << 10] {
        assert_eq!(launches(length, DType::Float32), (1, 1), "{length}");
    }
    assert_eq!(launches(128 << 10, DType::UInt8), (1, 1));
    assert_eq!(launches(64 << 20, DType::Float32), (2, 2048));
}

/// Checks running sums in `R` along an axis of a contiguous array, compared exactly.
fn scans<T: Element, R: Element + PartialEq + Debug>(
    cases: &[(&[usize], usize, &str)],
    make: impl Fn(u32) -> T,
    exact: impl Fn(i64) -> R,
) {
    let mut operations = Vec::new();
    let mut memories = Vec::new();
    for (shape, axis, way) in cases {
        for exclusive in [false, true] {
            let count: usize = shape.iter().product();
            let small = |i: usize| (i * 7 % 5) as u32 % 3;
            let input = Memory::new(&(0..count).map(|i| make(small(i))).collect::<Vec<_>>());
            let out = Memory::<R>::zeros(count);
            let mut strides = vec![1_isize; shape.len()];
            for axis in (1..shape.len()).rev() {
                strides[axis - 1] = strides[axis] * shape[axis] as isize;
            }
            let scan = Description::Scan(Scan {
                reduction: Reduction::Sum,
                compute: R::DTYPE,
                shape: (*shape).into(),
                axis: *axis,
                exclusive,
                initial: Scalar::new(exact(5)),
                input: input.operand(&strides),
                output: out.operand(&strides),
            });
            assert!(name(&scan).contains(way), "{} {shape:?}", name(&scan));
            let step = strides[*axis] as usize;
            let mut expected = vec![0_i64; count];
            for i in 0..count {
                let first = (i / step).is_multiple_of(shape[*axis]);
                let start = if exclusive { 5 } else { i64::from(small(i)) };
                let added = if exclusive && !first { small(i - step) } else { small(i) };
                expected[i] = if first { start } else { expected[i - step] + i64::from(added) };
            }
            operations.push(scan);
            memories.push((input, out, expected));
        }
    }
    if !run(&operations) {
        return;
    }
    for (operation, (_, out, expected)) in operations.iter().zip(memories) {
        for (i, expected) in expected.into_iter().enumerate() {
            assert_eq!(out.at(i), exact(expected), "{i} of {}", name(operation));
        }
    }
}

#[test]
fn scans_at_the_edges_of_tiles_and_chunks() {
    // Tiles of 7168 elements of four bytes, of 1024 of sixteen.
    let long: [(&[usize], usize, &str); 7] = [
        (&[7167], 0, "_blocks"),
        (&[7168], 0, "_blocks"),
        (&[7169], 0, "_blocks"),
        (&[4 * 7168], 0, "_blocks"),
        (&[4 * 7168 + 1], 0, "_tiles"),
        (&[3, 50_000], 1, "_tiles"),
        (&[2, 5, 300], 2, "_blocks"),
    ];
    scans(&long, |x| x as f32, |sum| sum as f32);
    scans(&[(&[2049], 0, "_blocks"), (&[40_001], 0, "_tiles")], |x| x as u8, |sum| sum);
    let complex = |sum: i64| Complex::new(sum as f64, 0.0);
    scans(
        &[(&[1025], 0, "_blocks"), (&[5000], 0, "_tiles")],
        |x| Complex::new(f64::from(x), 0.0),
        complex,
    );
    let across: [(&[usize], usize, &str); 5] = [
        (&[1000, 40], 0, "_thread_chunks"),
        (&[65, 33], 0, "_thread_chunks"),
        (&[64, 33], 0, "_threads"),
        (&[7, 129, 35], 1, "_thread_chunks"),
        (&[300, 9], 1, "_threads"),
    ];
    scans(&across, |x| x as i32, |sum| sum as i32);
    scans(&across, |x| x as f32, |sum| sum as f64);
}

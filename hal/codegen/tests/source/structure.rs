//! Reductions and scans, compared with naive loops.

use super::run;
use crate::harness::Memory;
use hal::function::Reduction;
use hal::operation::{Description, Epilogue, Indexed, Mapped, Reduce, Scan};
use hal::{Complex, DType, Scalar, f16};

fn reduce(
    reduction: Reduction,
    compute: DType,
    shape: &[usize],
    input: Mapped,
    output: hal::operation::Operand,
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

fn with(epilogue: Epilogue, description: Description) -> Description {
    match description {
        Description::Reduce(it) => Description::Reduce(Reduce { epilogue, ..it }),
        other => panic!("{other:?}"),
    }
}

/// Returns numbers without a pattern, from -500 to 499.
fn noise(length: usize) -> Vec<i32> {
    let mut state = 12345_u32;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as i32 % 1000 - 500
        })
        .collect()
}

#[test]
fn reductions_of_all_axes_inner_axes_and_outer_axes() {
    // Sizes on both sides of one block, and large enough for two launches.
    for (rows, columns) in [(1, 1), (3, 37), (40, 700), (700, 40), (5, 40000), (40000, 5)] {
        let values = noise(rows * columns);
        let input = Memory::new(&values);
        let (r, c) = (rows as isize, columns as isize);
        let _ = r;
        let (all, inner, outer) =
            (Memory::<i64>::zeros(1), Memory::<i64>::zeros(rows), Memory::<i64>::zeros(columns));
        let lowest = Memory::<i32>::zeros(rows);
        let any = Memory::<bool>::zeros(columns);
        let operand = || Mapped::Identity(input.operand(&[c, 1]));
        let shape = [rows, columns];
        let dot = Mapped::Product(input.operand(&[c, 1]), input.operand(&[c, 1]));
        let product = Memory::<f64>::zeros(1);
        let place = Memory::<i64>::zeros(columns);
        let places = Mapped::Position(input.operand(&[c, 1]));
        let squares = Memory::<f64>::zeros(rows);
        let deviations = Mapped::SquaredDeviation(input.operand(&[c, 1]));
        let root = Memory::<f32>::zeros(rows);
        let deviations_of_floats = Mapped::SquaredDeviation(input.operand(&[c, 1]));
        let roots = reduce(
            Reduction::Sum,
            DType::Float32,
            &shape,
            deviations_of_floats,
            root.operand(&[1, 0]),
        );
        let mean = Memory::<Complex<f64>>::zeros(columns);
        let means = mean.operand(&[0, 1]);
        let means = reduce(Reduction::Sum, DType::Complex128, &shape, operand(), means);
        let half = Memory::<f16>::zeros(rows);
        let halves = half.operand(&[1, 0]);
        let halves = reduce(Reduction::Sum, DType::Float32, &shape, operand(), halves);
        let ok = run(&[
            with(Epilogue::RootOfQuotient(1.5), roots),
            with(Epilogue::Quotient(3.0), means),
            with(Epilogue::Quotient(columns as f64), halves),
            reduce(Reduction::Minimum, DType::Int32, &shape, places, place.operand(&[0, 1])),
            reduce(Reduction::Sum, DType::Float64, &shape, deviations, squares.operand(&[1, 0])),
            reduce(Reduction::Sum, DType::Int64, &shape, operand(), all.operand(&[0, 0])),
            reduce(Reduction::Sum, DType::Int64, &shape, operand(), inner.operand(&[1, 0])),
            reduce(Reduction::Sum, DType::Int64, &shape, operand(), outer.operand(&[0, 1])),
            reduce(Reduction::Minimum, DType::Int32, &shape, operand(), lowest.operand(&[1, 0])),
            reduce(Reduction::Any, DType::Int32, &shape, operand(), any.operand(&[0, 1])),
            reduce(Reduction::Sum, DType::Float64, &shape, dot, product.operand(&[0, 0])),
        ]);
        if !ok {
            return;
        }
        let row = |i: usize| values[i * columns..][..columns].iter();
        let column = |j: usize| values.iter().skip(j).step_by(columns);
        assert_eq!(all.at(0), values.iter().map(|&x| i64::from(x)).sum::<i64>());
        for (j, &found) in place.values().iter().enumerate() {
            let least = column(j).enumerate().min_by_key(|&(_, it)| it);
            assert_eq!(Some(found as usize), least.map(|(place, _)| place), "{j}");
        }
        for (i, &found) in squares.values().iter().enumerate() {
            let mean = row(i).copied().map(f64::from).sum::<f64>() / columns as f64;
            let expected: f64 = row(i).map(|&it| (f64::from(it) - mean).powi(2)).sum();
            assert!((found - expected).abs() <= 1e-12 * expected, "{i}: {found}, not {expected}");
            let expected = (expected / 1.5).sqrt();
            let found = f64::from(root.at(i));
            assert!((found - expected).abs() <= 1e-5 * expected, "{i}: {found}, not {expected}");
            let expected = row(i).copied().map(f64::from).sum::<f64>() / columns as f64;
            let found = f64::from(half.at(i));
            assert!(
                (found - expected).abs() <= 1e-3 * expected.abs(),
                "{i}: {found}, not {expected}"
            );
        }
        for (j, found) in mean.values().iter().enumerate() {
            let expected = column(j).map(|&x| f64::from(x)).sum::<f64>() / 3.0;
            assert!(
                (found.re - expected).abs() <= 1e-12 * expected.abs() && found.im == 0.0,
                "{j}"
            );
        }
        for i in 0..rows {
            assert_eq!(inner.at(i), row(i).map(|&x| i64::from(x)).sum::<i64>());
            assert_eq!(Some(&lowest.at(i)), row(i).min());
            if i > 50 {
                break;
            }
        }
        for j in 0..columns.min(50) {
            assert_eq!(outer.at(j), column(j).map(|&x| i64::from(x)).sum::<i64>());
            assert_eq!(any.at(j), column(j).any(|&x| x != 0));
        }
        let squares: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        assert_eq!(product.at(0), squares);
    }
}

#[test]
fn reductions_over_interleaved_axes_and_backwards() {
    let (a, b, c) = (6, 7, 8);
    let values = noise(a * b * c);
    let input = Memory::new(&values);
    let middle = Memory::<i32>::zeros(b);
    let outside = Memory::<i32>::zeros(a * c);
    // The input is walked backwards along the first axis, from its last element.
    let mut backwards = input.operand(&[-56, 8, 1]);
    backwards.address += ((a - 1) * b * c * 4) as u64;
    let shape = [a, b, c];
    if !run(&[
        reduce(
            Reduction::Maximum,
            DType::Int32,
            &shape,
            Mapped::Identity(input.operand(&[56, 8, 1])),
            middle.operand(&[0, 1, 0]),
        ),
        reduce(
            Reduction::Sum,
            DType::Int32,
            &shape,
            Mapped::Identity(backwards),
            outside.operand(&[8, 0, 1]),
        ),
    ]) {
        return;
    }
    let at = |i: usize, j: usize, k: usize| values[(i * b + j) * c + k];
    for j in 0..b {
        let expected = (0..a).flat_map(|i| (0..c).map(move |k| at(i, j, k))).max();
        assert_eq!(Some(middle.at(j)), expected);
    }
    for i in 0..a {
        for k in 0..c {
            let expected: i32 = (0..b).map(|j| at(a - 1 - i, j, k)).sum();
            assert_eq!(outside.at(i * c + k), expected);
        }
    }
}

#[test]
fn floating_point_reductions_are_accurate_and_propagate_nan() {
    let length = 200_000;
    let values: Vec<f32> = noise(length).iter().map(|&x| x as f32 * 0.1 + 100.0).collect();
    let halves: Vec<f16> = vec![f16::from_f32(0.1); 5000];
    let mut holes = values.clone();
    holes[123_456] = f32::NAN;
    let (input, halves, holes) = (Memory::new(&values), Memory::new(&halves), Memory::new(&holes));
    let complexes = Memory::new(&vec![Complex::new(0.5_f32, -0.25); 3000]);
    let (sum, half, nan) =
        (Memory::<f32>::zeros(1), Memory::<f16>::zeros(1), Memory::<f32>::zeros(1));
    let (complex, empty) = (Memory::<Complex<f32>>::zeros(1), Memory::<f64>::new(&[3.0]));
    let all = Memory::<bool>::zeros(1);
    let identity = |operand| Mapped::Identity(operand);
    if !run(&[
        reduce(
            Reduction::Sum,
            DType::Float32,
            &[length],
            identity(input.operand(&[1])),
            sum.operand(&[0]),
        ),
        reduce(
            Reduction::Sum,
            DType::Float16,
            &[5000],
            identity(halves.operand(&[1])),
            half.operand(&[0]),
        ),
        reduce(
            Reduction::Maximum,
            DType::Float32,
            &[length],
            identity(holes.operand(&[1])),
            nan.operand(&[0]),
        ),
        reduce(
            Reduction::Sum,
            DType::Complex64,
            &[3000],
            identity(complexes.operand(&[1])),
            complex.operand(&[0]),
        ),
        reduce(
            Reduction::Product,
            DType::Float64,
            &[0],
            identity(input.operand(&[1])),
            empty.operand(&[0]),
        ),
        reduce(
            Reduction::All,
            DType::Float32,
            &[length],
            identity(input.operand(&[1])),
            all.operand(&[0]),
        ),
    ]) {
        return;
    }
    let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
    let error = (f64::from(sum.at(0)) - exact).abs() / exact;
    assert!(error < 1e-6, "{error:e}");
    let exact = f16::from_f64(f16::from_f32(0.1).to_f64() * 5000.0);
    assert_eq!(half.at(0), exact);
    assert!(nan.at(0).is_nan());
    assert_eq!(complex.at(0), Complex::new(1500.0, -750.0));
    assert_eq!(empty.at(0), 1.0);
    assert!(all.at(0));
}

#[test]
fn indexed_reductions_read_zero_outside() {
    let base = Memory::new(&[10_i32, 20, 30, 40]);
    let indices = Memory::new(&[0_i64, -1, 3, 4, -5, 1 << 40]);
    let sum = Memory::<i32>::zeros(1);
    let source = Indexed {
        base: base.operand(&[0]),
        indices: indices.operand(&[1]),
        axis_length: 4,
        axis_stride: 4,
    };
    if run(&[reduce(
        Reduction::Sum,
        DType::Int32,
        &[6],
        Mapped::Indexed(source),
        sum.operand(&[0]),
    )]) {
        assert_eq!(sum.at(0), 90);
    }
}

#[test]
fn scans_along_each_axis_of_short_and_long_rows() {
    let mut operations = Vec::new();
    let mut checks = Vec::new();
    // One thread per row, one block per row, many blocks per row.
    for (shape, axis) in
        [([3, 50], 1), ([3, 50], 0), ([80, 60], 1), ([6, 5000], 0), ([3, 2500], 1), ([2, 30000], 1)]
    {
        for reduction in [Reduction::Sum, Reduction::Maximum] {
            for exclusive in [false, true] {
                let values = noise(shape[0] * shape[1]);
                let input = Memory::new(&values);
                let output = Memory::<i64>::zeros(values.len());
                let strides = [shape[1] as isize, 1];
                let initial = if reduction == Reduction::Sum { 0_i64 } else { -7 };
                operations.push(Description::Scan(Scan {
                    reduction,
                    compute: DType::Int64,
                    shape: shape[..].into(),
                    axis,
                    exclusive,
                    initial: Scalar::new(initial),
                    input: input.operand(&strides),
                    output: output.operand(&strides),
                }));
                checks.push((shape, axis, reduction, exclusive, initial, values, input, output));
            }
        }
    }
    if !run(&operations) {
        return;
    }
    for (shape, axis, reduction, exclusive, initial, values, _input, output) in checks {
        let output = output.values();
        let (rows, length) = (shape[1 - axis], shape[axis]);
        for row in 0..rows {
            let mut running = None;
            for i in 0..length {
                let place = if axis == 1 { row * shape[1] + i } else { i * shape[1] + row };
                let x = i64::from(values[place]);
                let before = running.unwrap_or(initial);
                let next = match (running.or(exclusive.then_some(initial)), reduction) {
                    (None, _) => x,
                    (Some(y), Reduction::Sum) => y + x,
                    (Some(y), _) => y.max(x),
                };
                let expected = if exclusive { before } else { next };
                assert_eq!(
                    output[place], expected,
                    "{shape:?} {axis} {reduction:?} {exclusive} {row} {i}"
                );
                running = Some(next);
            }
        }
    }
}

#[test]
fn scans_in_place_and_of_other_types() {
    let values: Vec<f32> = noise(20000).iter().map(|&x| x as f32).collect();
    let place = Memory::new(&values);
    let truth = Memory::new(&[false, false, true, false, true]);
    let (or, lowest) = (Memory::<bool>::zeros(5), Memory::<Complex<f64>>::zeros(3));
    let complexes =
        Memory::new(&[Complex::new(1.0, 5.0), Complex::new(1.0, 4.0), Complex::new(2.0, 0.0)]);
    let scan = |reduction, compute, length: usize, initial, input, output| {
        Description::Scan(Scan {
            reduction,
            compute,
            shape: [length][..].into(),
            axis: 0,
            exclusive: false,
            initial,
            input,
            output,
        })
    };
    if !run(&[
        scan(
            Reduction::Sum,
            DType::Float32,
            20000,
            Scalar::new(0_f32),
            place.operand(&[1]),
            place.operand(&[1]),
        ),
        scan(
            Reduction::Sum,
            DType::Bool,
            5,
            Scalar::new(false),
            truth.operand(&[1]),
            or.operand(&[1]),
        ),
        scan(
            Reduction::Minimum,
            DType::Complex128,
            3,
            Scalar::new(Complex::new(0.0, 0.0)),
            complexes.operand(&[1]),
            lowest.operand(&[1]),
        ),
    ]) {
        return;
    }
    let mut running = 0.0;
    for (x, got) in values.iter().zip(place.values()) {
        running += x;
        assert_eq!(got, running);
    }
    assert_eq!(or.values(), [false, false, true, true, true]);
    let least = Complex::new(1.0, 4.0);
    assert_eq!(lowest.values(), [Complex::new(1.0, 5.0), least, least]);
}

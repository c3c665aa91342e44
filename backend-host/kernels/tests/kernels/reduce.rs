//! Reductions over every set of axes, and scans along every axis.

use super::arrays::{Array, ORDERS, Order, read};
use super::{check, pool, run, run_with};
use hal::function::Reduction;
use hal::operation::{Description, Epilogue, Mapped, Operand, Reduce, Scan, Shape};
use hal::{DType, Scalar};

/// Returns the output of a reduction over the axes whose bits are set.
fn reduced(dtype: DType, shape: &[usize], axes: usize) -> (Array, Operand) {
    let kept: Vec<usize> =
        (0..shape.len()).map(|axis| if axes >> axis & 1 == 1 { 1 } else { shape[axis] }).collect();
    let mut output = Array::zeros(dtype, &kept, Order::Rows);
    let mut operand = output.operand();
    for axis in (0..shape.len()).filter(|axis| axes >> axis & 1 == 1) {
        operand.strides[axis] = 0;
    }
    (output, operand)
}

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
        shape: Shape::from_slice(shape),
        input,
        output,
        epilogue: Epilogue::Identity,
    })
}

#[test]
fn every_reduction_of_every_dtype() {
    for dtype in DType::ALL {
        for reduction in Reduction::ALL {
            for length in [1, 3, 50, 700] {
                let mut input = Array::random(dtype, &[length], Order::Rows, 3);
                let (_output, operand) = reduced(reduction.result(dtype), &[length], 1);
                let input = Mapped::Identity(input.operand());
                // Long products leave the range of the small types.
                if reduction != Reduction::Product || length <= 3 || !dtype.is_inexact() {
                    check(&reduce(reduction, dtype, &[length], input, operand));
                }
            }
        }
    }
}

#[test]
fn every_set_of_axes() {
    let shapes: [&[usize]; 7] =
        [&[], &[40, 50], &[3, 70, 5], &[100, 3], &[3, 100], &[2, 3, 2, 20], &[1, 4, 1]];
    for shape in shapes {
        for axes in 0..1 << shape.len() {
            for order in ORDERS {
                for (dtype, compute) in
                    [(DType::Int16, DType::Int64), (DType::Float32, DType::Float32)]
                {
                    for reduction in [Reduction::Sum, Reduction::Maximum, Reduction::All] {
                        let mut input = Array::random(dtype, shape, order, 5);
                        let (_output, operand) = reduced(reduction.result(compute), shape, axes);
                        let input = Mapped::Identity(input.operand());
                        check(&reduce(reduction, compute, shape, input, operand));
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_two_arrays() {
    for axes in 1..4 {
        for order in ORDERS {
            let shape = [40, 33];
            let mut left = Array::random(DType::Float64, &shape, Order::Rows, 5);
            let mut right = Array::random(DType::Int8, &shape, order, 6);
            let (_output, operand) = reduced(DType::Float64, &shape, axes);
            let input = Mapped::Product(left.operand(), right.operand());
            check(&reduce(Reduction::Sum, DType::Float64, &shape, input, operand));
        }
    }
}

#[test]
fn squares_of_deviations() {
    for shape in [&[40, 33][..], &[3, 700], &[5, 20, 4]] {
        for axes in 0..1 << shape.len() {
            for order in ORDERS {
                for dtype in [DType::Float64, DType::Int8] {
                    for epilogue in EPILOGUES {
                        let mut input = Array::random(dtype, shape, order, 5);
                        let (_output, operand) = reduced(DType::Float64, shape, axes);
                        let input = Mapped::SquaredDeviation(input.operand());
                        let sum = reduce(Reduction::Sum, DType::Float64, shape, input, operand);
                        check(&with(epilogue, sum));
                    }
                }
            }
        }
    }
}

const EPILOGUES: [Epilogue; 3] =
    [Epilogue::Identity, Epilogue::Quotient(37.5), Epilogue::RootOfQuotient(37.5)];

fn with(epilogue: Epilogue, description: Description) -> Description {
    match description {
        Description::Reduce(it) => Description::Reduce(Reduce { epilogue, ..it }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn quotients_of_sums() {
    let check = |compute: DType, output: DType, shape: &[usize], order| {
        for axes in 0..1 << shape.len() {
            let mut input = Array::random(compute, shape, order, 5);
            let (_output, operand) = reduced(output, shape, axes);
            let input = Mapped::Identity(input.operand());
            check(&with(EPILOGUES[1], reduce(Reduction::Sum, compute, shape, input, operand)));
        }
    };
    for compute in DType::ALL.into_iter().filter(|dtype| dtype.is_inexact()) {
        for order in ORDERS {
            check(compute, compute, &[3, 70, 5], order);
        }
    }
    check(DType::Float32, DType::Float16, &[20, 40], Order::Rows);
    // Enough for several threads.
    check(DType::Float64, DType::Float64, &[(1 << 18) + 5], Order::Rows);
}

#[test]
fn quotients_of_nothing() {
    for (dtype, by) in [(DType::Float32, 0.0), (DType::Complex64, 0.0), (DType::Complex128, 3.0)] {
        let mut input = Array::zeros(dtype, &[3, 0], Order::Rows);
        let (output, operand) = reduced(dtype, &[3, 0], 2);
        let input = Mapped::Identity(input.operand());
        let sum = reduce(Reduction::Sum, dtype, &[3, 0], input, operand.clone());
        run(&with(Epilogue::Quotient(by), sum));
        let parts = if dtype.is_complex() { 2 } else { 1 };
        let real = dtype.real();
        for part in 0..3 * parts {
            let value = read(operand.address + (part * real.size()) as u64, real);
            let value = value
                .cast(DType::Float64)
                .ok()
                .and_then(|value| value.get::<f64>())
                .expect("a real number");
            assert!(if by == 0.0 { value.is_nan() } else { value == 0.0 }, "{dtype} {value}");
        }
        drop(output);
    }
}

#[test]
fn positions_of_extreme_elements() {
    let check = |shape: &[usize], axis: usize, order, dtype| {
        for reduction in [Reduction::Minimum, Reduction::Maximum] {
            let mut input = Array::random(dtype, shape, order, 7);
            let (_output, operand) = reduced(DType::Int64, shape, 1 << axis);
            let input = Mapped::Position(input.operand());
            check(&reduce(reduction, dtype, shape, input, operand));
        }
    };
    const DTYPES: [DType; 5] =
        [DType::Int8, DType::Float32, DType::Float16, DType::Complex64, DType::Bool];
    for shape in [&[40, 50][..], &[3, 700], &[2, 17, 5], &[1]] {
        for (axis, order) in (0..shape.len()).flat_map(|axis| ORDERS.map(|order| (axis, order))) {
            for dtype in DTYPES {
                check(shape, axis, order, dtype);
            }
        }
    }
    // Enough for several threads.
    check(&[(1 << 18) + 5], 0, Order::Backwards, DType::Int16);
}

/// Extremes that occur several times, on both sides of the bounds of blocks, and NaN.
#[test]
fn positions_are_those_of_the_first_extreme() {
    let pool = pool(3);
    let mut numbers = vec![0f64; 300_001];
    let mut expect = |values: &[(usize, f64)], length: usize, first: [i64; 2]| {
        values.iter().for_each(|&(place, value)| numbers[place] = value);
        for (reduction, first) in [(Reduction::Minimum, first[0]), (Reduction::Maximum, first[1])] {
            let dtypes = [DType::Float32, DType::Float64, DType::BFloat16, DType::Complex128];
            // Enough for several threads, in one type.
            for &dtype in &dtypes[..if length > 5000 { 1 } else { 4 }] {
                let row: Vec<Scalar> = numbers[..length]
                    .iter()
                    .map(|&value| Scalar::new(value).cast(dtype).expect("cast"))
                    .collect();
                let mut input = Array::of(&row);
                let (_output, operand) = reduced(DType::Int64, &[length], 1);
                let address = operand.address;
                let input = Mapped::Position(input.operand());
                let operation = reduce(reduction, dtype, &[length], input, operand);
                for threaded in [false, true] {
                    if threaded {
                        super::run_with(&operation, &pool)
                    } else {
                        run(&operation)
                    }
                    let found = read(address, DType::Int64);
                    assert_eq!(
                        found,
                        Scalar::new(first),
                        "{values:?} of {length}: {reduction:?} of {dtype}"
                    );
                }
            }
        }
        values.iter().for_each(|&(place, _)| numbers[place] = 0.0);
    };
    for length in [2, 255, 256, 257, 1023, 1024, 1025, 5000, 300_001] {
        expect(&[], length, [0, 0]);
        expect(&[(0, -0.0)], length, [0, 0]);
        let last = length - 1;
        expect(&[(last, -1.0)], length, [last as i64, 0]);
        expect(&[(last, f64::NAN)], length, [last as i64; 2]);
        expect(&[(last / 2, 1.0), (last, 1.0)], length, [0, last as i64 / 2]);
        expect(&[(0, 5.0), (last, -f64::NAN)], length, [last as i64; 2]);
        let middle = last as i64 / 2;
        expect(&[(last / 2, f64::NAN), (last, f64::NAN)], length, [middle; 2]);
    }
}

#[test]
fn nothing_reduces_to_the_identity() {
    for (reduction, identity) in
        [(Reduction::Sum, 0i32), (Reduction::Product, 1), (Reduction::Any, 0), (Reduction::All, 1)]
    {
        let shape = [3, 0];
        let mut input = Array::zeros(DType::Int32, &shape, Order::Rows);
        let mut output = Array::random(DType::Int32, &[3], Order::Rows, 1);
        let mut operand = output.operand();
        operand.strides.push(0);
        run(&reduce(
            reduction,
            DType::Int32,
            &shape,
            Mapped::Identity(input.operand()),
            operand.clone(),
        ));
        for index in 0..3 {
            let value = super::arrays::read(operand.address + 4 * index, DType::Int32);
            assert_eq!(value, Scalar::new(identity));
        }
    }
}

#[test]
fn sums_are_exact_and_do_not_depend_on_threads() {
    let pool = pool(3);
    for (shape, axes) in [
        (&[600_001][..], 1),
        (&[1000, 600], 1),
        (&[1000, 600], 2),
        (&[1000, 600], 3),
        (&[9000, 40], 1),
    ] {
        for order in [Order::Rows, Order::Columns, Order::Backwards] {
            let count: usize = shape.iter().product();
            let tenth = vec![Scalar::new(0.1f32); count * 2];
            let mut values = Array::of(&tenth);
            let mut operand = values.operand();
            let mut layout = Array::zeros(DType::Float32, shape, order);
            operand.strides = layout.operand().strides;
            if order == Order::Backwards {
                operand.address += 4 * 2 * (count as u64 - 1);
            }
            let mut outputs = [(); 2].map(|()| reduced(DType::Float32, shape, axes));
            let operations = outputs.each_mut().map(|(_, output)| {
                let input = Mapped::Identity(operand.clone());
                reduce(Reduction::Sum, DType::Float32, shape, input, output.clone())
            });
            run(&operations[0]);
            run_with(&operations[1], &pool);
            let [(alone, output), (together, _)] = outputs;
            assert_eq!(alone.words(), together.words(), "{shape:?} {axes} {order:?}");
            let kept: usize = shape
                .iter()
                .enumerate()
                .map(|(axis, n)| if axes >> axis & 1 == 1 { 1 } else { *n })
                .product();
            let got = super::arrays::read(output.address, DType::Float32).as_f64();
            let exact = f64::from(0.1f32) * (count / kept) as f64;
            assert!((got / exact - 1.0).abs() < 1e-6, "{got} {exact} {shape:?} {axes} {order:?}");
        }
    }
}

#[test]
fn scans_along_every_axis() {
    for shape in [&[2500][..], &[40, 70], &[3, 30, 4], &[1, 1], &[0, 3]] {
        for axis in 0..shape.len() {
            for order in [Order::Rows, Order::Columns, Order::Backwards] {
                for reduction in
                    [Reduction::Sum, Reduction::Product, Reduction::Minimum, Reduction::Maximum]
                {
                    for (dtype, compute) in
                        [(DType::Int8, DType::Int32), (DType::Int64, DType::Int64)]
                    {
                        for exclusive in [false, true] {
                            let mut input = Array::random(dtype, shape, order, 5);
                            let mut output = Array::zeros(compute, shape, Order::Rows);
                            check_scan(
                                reduction,
                                compute,
                                shape,
                                axis,
                                exclusive,
                                input.operand(),
                                output.operand(),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn check_scan(
    reduction: Reduction,
    compute: DType,
    shape: &[usize],
    axis: usize,
    exclusive: bool,
    input: Operand,
    output: Operand,
) {
    let initial = Scalar::new(3i8).cast(compute).expect("cast");
    // The interpreter takes quadratic time.
    let shape = Shape::from_iter(shape.iter().map(|&length| length.min(300)));
    check(&Description::Scan(Scan {
        reduction,
        compute,
        shape,
        axis,
        exclusive,
        initial,
        input,
        output,
    }));
}

#[test]
fn scans_replace_their_input_and_pass_buffers() {
    let count = 5000;
    for exclusive in [false, true] {
        let mut array = Array::of(&vec![Scalar::new(1i32); count]);
        let operand = array.operand();
        run(&Description::Scan(Scan {
            reduction: Reduction::Sum,
            compute: DType::Int32,
            shape: Shape::from_slice(&[count]),
            axis: 0,
            exclusive,
            initial: Scalar::new(0i32),
            input: operand.clone(),
            output: operand.clone(),
        }));
        for index in [0, 1, 1023, 1024, count - 1] {
            let value = super::arrays::read(operand.address + 4 * index as u64, DType::Int32);
            assert_eq!(value, Scalar::new((index + usize::from(!exclusive)) as i32));
        }
    }
}

/// A minimum or maximum, and a truth value, of `length` elements of which one differs.
#[test]
fn one_element_anywhere_decides() {
    for length in [1, 3, 64, 100, 1024, 1025, 5000, 40_000, 70_001] {
        for place in [0, 1, length / 2, length - 1] {
            let place = place.min(length - 1);
            let mut numbers = vec![Scalar::new(1.5f32); length];
            numbers[place] = Scalar::new(f32::NAN);
            let mut flags = vec![Scalar::new(false); length];
            flags[place] = Scalar::new(true);
            let opposite: Vec<_> = flags.iter().map(|flag| Scalar::new(!flag.is_true())).collect();
            let of = |values: &[Scalar], reduction: Reduction| {
                let mut input = Array::of(values);
                let dtype = values[0].dtype();
                let (_output, operand) = reduced(reduction.result(dtype), &[length], 1);
                let address = operand.address;
                let input = Mapped::Identity(input.operand());
                run(&reduce(reduction, dtype, &[length], input, operand));
                read(address, reduction.result(dtype))
            };
            for reduction in [Reduction::Minimum, Reduction::Maximum] {
                let value = of(&numbers, reduction).get::<f32>().expect("a float");
                assert!(value.is_nan(), "{reduction:?} of {length}, NaN at {place}: {value}");
            }
            assert!(of(&flags, Reduction::Any).is_true(), "any of {length} at {place}");
            assert!(!of(&opposite, Reduction::All).is_true(), "all of {length} at {place}");
            flags[place] = Scalar::new(false);
            assert!(!of(&flags, Reduction::Any).is_true(), "none of {length}");
        }
    }
}

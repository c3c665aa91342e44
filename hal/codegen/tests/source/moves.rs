//! Moves of elements and rows, by indices, in words, and over large distances.

use super::run;
use crate::harness::{Memory, plan};
use hal::function::{Function, Reduction, UnaryFunction};
use hal::operation::*;
use hal::{DType, Element, Scalar};

const COPY: Function = Function::Unary(UnaryFunction::Copy);

fn operand<T: Element>(memory: &Memory<T>, start: usize, strides: &[isize]) -> Operand {
    let mut operand = memory.operand(strides);
    operand.address += (start * size_of::<T>()) as u64;
    operand
}

#[test]
fn gathers_and_scatters_of_more_than_a_batch() {
    let (rows, width, count) = (50, 7, 613);
    let base = Memory::new(&(0..rows * width).map(|i| i as i32).collect::<Vec<_>>());
    let picks: Vec<i32> = (0..count).map(|i| (i * 31 % 120) as i32 - 60).collect();
    let indices = Memory::new(&picks);
    let gathered = Memory::new(&vec![-1_i64; count * width]);
    let order: Vec<u16> = (0..count).map(|i| (i * 11 % count) as u16).collect();
    let order = Memory::new(&order);
    let scattered = Memory::<i32>::zeros(count * 2);
    let row = width as isize;
    if !run(&[
        Description::Gather(Gather {
            shape: [count, width][..].into(),
            source: Indexed {
                base: base.operand(&[0, 1]),
                indices: indices.operand(&[1, 0]),
                axis_length: rows,
                axis_stride: 4 * row,
            },
            output: gathered.operand(&[row, 1]),
        }),
        Description::Scatter(Scatter {
            shape: [count][..].into(),
            input: Input::Array(indices.operand(&[1])),
            target: Indexed {
                base: scattered.operand(&[0]),
                indices: order.operand(&[1]),
                axis_length: count,
                axis_stride: 8,
            },
        }),
    ]) {
        return;
    }
    for i in 0..count {
        for j in 0..width {
            let pick = if picks[i] < 0 { picks[i] + rows as i32 } else { picks[i] };
            let inside = (0..rows as i32).contains(&pick);
            let expected = if inside { i64::from(pick) * row as i64 + j as i64 } else { 0 };
            assert_eq!(gathered.at(i * width + j), expected, "{i} {j}");
        }
        assert_eq!(scattered.at(i * 11 % count * 2), picks[i]);
        assert_eq!(scattered.at(2 * i + 1), 0);
    }
}

/// Rows that are only moved use the widest words that fit.
#[test]
fn rows_of_bytes_move_as_words() {
    let (rows, count) = (40, 300);
    let bytes = Memory::new(&(0..rows * 64).map(|i| (i * 37 % 251) as u8).collect::<Vec<_>>());
    let picks: Vec<i16> = (0..count).map(|i| (i * 17 % 90) as i16 - 45).collect();
    let (indices, order) =
        (Memory::new(&picks), Memory::new(&(0..20_u8).rev().collect::<Vec<_>>()));
    let mut cases = Vec::new();
    // The width, the start of the rows, and the words.
    for (width, start, word) in [(16, 0, "c128"), (24, 16, "u64"), (12, 4, "u32"), (6, 2, "u16")]
        .into_iter()
        .chain([(16, 1, "u8"), (7, 0, "u8"), (8, 4, "u32")])
    {
        let row = width as isize;
        let (copied, gathered) =
            (Memory::<u8>::zeros(rows * width), Memory::<u8>::zeros(count * width));
        let scattered = Memory::<u8>::zeros(20 * 64);
        let shape = [rows, width];
        let copy = Description::Elementwise(Elementwise {
            function: COPY,
            compute: DType::UInt8,
            shape: shape[..].into(),
            inputs: [Input::Array(operand(&bytes, start, &[64, 1]))].into_iter().collect(),
            output: copied.operand(&[row, 1]),
        });
        let gather = Description::Gather(Gather {
            shape: [count, width][..].into(),
            source: Indexed {
                base: operand(&bytes, start, &[0, 1]),
                indices: indices.operand(&[1, 0]),
                axis_length: rows,
                axis_stride: 64,
            },
            output: gathered.operand(&[row, 1]),
        });
        let scatter = Description::Scatter(Scatter {
            shape: [20, width][..].into(),
            input: Input::Array(operand(&bytes, start, &[64, 1])),
            target: Indexed {
                base: operand(&scattered, start, &[0, 1]),
                indices: order.operand(&[1, 0]),
                axis_length: 20,
                axis_stride: 64,
            },
        });
        for operation in [&gather, &scatter] {
            let name = plan(operation).spec().kernel_names()[0].clone();
            assert!(name.contains(&format!("_{word}_at_")), "{name}, {width} from {start}");
        }
        cases.push((width, start, copied, gathered, scattered, [copy, gather, scatter]));
    }
    let operations: Vec<Description> = cases.iter().flat_map(|case| case.5.clone()).collect();
    if !run(&operations) {
        return;
    }
    for (width, start, copied, gathered, scattered, _) in cases {
        let byte = |row: usize, j: usize| bytes.at(row * 64 + start + j);
        for j in 0..width {
            assert!((0..rows).all(|i| copied.at(i * width + j) == byte(i, j)), "{width} {start}");
            for (i, pick) in picks.iter().enumerate() {
                let row = if *pick < 0 { pick + rows as i16 } else { *pick };
                let inside = (0..rows as i16).contains(&row);
                let expected = if inside { byte(row as usize, j) } else { 0 };
                assert_eq!(gathered.at(i * width + j), expected, "{width} {start} {i} {j}");
            }
            assert!((0..20).all(|i| scattered.at((19 - i) * 64 + start + j) == byte(i, j)));
        }
        let written = |at: usize| (start..start + width).contains(&(at % 64));
        assert!((0..20 * 64).all(|at| written(at) || scattered.at(at) == 0));
    }
}

/// Two parts of an array more than 2 GiB apart, so that offsets need 64 bits. Only the pages that
/// are touched occupy host memory.
#[test]
fn offsets_of_more_than_two_gibibytes() {
    let far = 1_usize << 29;
    let (rows, width) = (2 * 70, 72);
    let mut memory = Memory::<i32>::zeros(far + rows * width);
    for i in 0..rows * width {
        memory.set(i, i as i32);
        memory.set(far + i, -3 * i as i32);
    }
    let apart = far as isize;
    let (height, w) = (70, width as isize);
    let out = |length: usize| Memory::<i32>::zeros(length);
    let (packed, strided, turned) = (out(2 * 70 * 72), out(2 * 70 * 35), out(2 * 70 * 70));
    let (total, sums, running) = (out(1), out(2), out(2 * 71));
    let copy = |shape: [usize; 3], from: &[isize], to: &Memory<i32>| {
        let to = to.operand(&[(shape[1] * shape[2]) as isize, shape[2] as isize, 1]);
        let inputs = [Input::Array(memory.operand(from))].into_iter().collect();
        let (compute, shape) = (DType::Int32, shape[..].into());
        Description::Elementwise(Elementwise { function: COPY, compute, shape, inputs, output: to })
    };
    let sum = |shape: &[usize], from: &[isize], to: Operand| {
        let (reduction, compute) = (Reduction::Sum, DType::Int32);
        let (shape, input) = (shape.into(), Mapped::Identity(memory.operand(from)));
        Description::Reduce(Reduce {
            reduction,
            compute,
            shape,
            input,
            output: to,
            epilogue: Epilogue::Identity,
        })
    };
    let scan = Description::Scan(Scan {
        reduction: Reduction::Sum,
        compute: DType::Int32,
        shape: [2, 71][..].into(),
        axis: 1,
        exclusive: false,
        initial: Scalar::new(0_i32),
        input: memory.operand(&[apart, 1]),
        output: running.operand(&[71, 1]),
    });
    let list = [
        copy([2, 70, 72], &[apart, 2 * w, 1], &packed),
        copy([2, 70, 35], &[apart, 2 * w, 2], &strided),
        copy([2, 70, 70], &[apart, 1, w], &turned),
        sum(&[2, 3, 5], &[apart, 2 * w, 1], total.operand(&[0, 0, 0])),
        sum(&[2, 400], &[apart, 1], sums.operand(&[1, 0])),
        scan,
    ];
    for (operation, way) in list.iter().zip(["packed3_64", "strided3_64", "tiled3m1s64_64"]) {
        let name = plan(operation).spec().kernel_names()[0].clone();
        assert!(name.contains(way), "{name}");
    }
    if !run(&list) {
        return;
    }
    let value = |part: usize, i: usize| if part == 0 { i as i32 } else { -3 * i as i32 };
    for part in 0..2 {
        for i in 0..height {
            for j in 0..70 {
                let at = (part * height + i) * 70 + j;
                assert_eq!(turned.at(at), value(part, j * width + i));
                assert_eq!(packed.at((part * height + i) * 72 + j), value(part, 2 * i * width + j));
            }
            for j in 0..35 {
                let at = (part * height + i) * 35 + j;
                assert_eq!(strided.at(at), value(part, 2 * (i * width + j)));
            }
        }
        assert_eq!(sums.at(part), (0..400).map(|i| value(part, i)).sum::<i32>());
        let prefix = |i: usize| (0..=i).map(|i| value(part, i)).sum::<i32>();
        assert!((0..71).all(|i| running.at(part * 71 + i) == prefix(i)));
    }
    let one = |part: usize| (0..15).map(move |i| value(part, i / 5 * 2 * width + i % 5));
    assert_eq!(total.at(0), one(0).chain(one(1)).sum::<i32>());
}

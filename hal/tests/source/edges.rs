//! Every way through memory at its edges: alignments, tails, tiles, divisions, wide offsets.

use super::run;
use crate::harness::Memory;
use gpuarray_hal::function::{BinaryFunction, Function, UnaryFunction};
use gpuarray_hal::operation::*;
use gpuarray_hal::source::Spec;
use gpuarray_hal::{Complex, DType, Element};
use std::fmt::Debug;

const ADD: Function = Function::Binary(BinaryFunction::Add);
const COPY: Function = Function::Unary(UnaryFunction::Copy);

/// Where an array begins, in elements, and its strides.
type Place = (usize, Vec<isize>);

/// `out = x + y` over a shape.
struct Sum {
    shape: Vec<usize>,
    x: Place,
    y: Place,
    out: Place,
    /// What the kernel's name says about the way it takes.
    way: &'static str,
}

fn c_order(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// The places of all elements, in C order of the indices.
fn places(shape: &[usize], (start, strides): &Place) -> Vec<usize> {
    let mut all = vec![*start as isize];
    for (&extent, &stride) in shape.iter().zip(strides) {
        let along = |at: isize| (0..extent as isize).map(move |i| at + i * stride);
        all = all.into_iter().flat_map(along).collect();
    }
    all.into_iter().map(|at| usize::try_from(at).unwrap()).collect()
}

fn operand<T: Element>(memory: &Memory<T>, (start, strides): &Place) -> Operand {
    let mut operand = memory.operand(strides);
    operand.address += (start * size_of::<T>()) as u64;
    operand
}

/// Runs the sums on elements that `make` gives, and looks at every element of the outputs,
/// those that no sum may touch included.
fn sums<T: Element + Debug>(make: impl Fn(usize) -> T, add: impl Fn(T, T) -> T, list: &[Sum]) {
    let array = |shape: &[usize], place: &Place, first: usize| {
        let length = places(shape, place).into_iter().max().unwrap_or(0) + 1;
        Memory::new(&(0..length + 3).map(|i| make(first + 7 * i)).collect::<Vec<T>>())
    };
    let mut operations = Vec::new();
    let mut memories = Vec::new();
    for sum in list {
        let arrays = [(&sum.x, 1), (&sum.y, 2), (&sum.out, 3)];
        let [x, y, out] = arrays.map(|(place, first)| array(&sum.shape, place, first));
        let operation = Operation::Elementwise(Elementwise {
            function: ADD,
            compute: T::DTYPE,
            shape: sum.shape[..].into(),
            inputs: [Input::Array(operand(&x, &sum.x)), Input::Array(operand(&y, &sum.y))]
                .into_iter()
                .collect(),
            output: operand(&out, &sum.out),
        });
        let name = Spec::of(&operation).unwrap().kernel_names()[0].clone();
        assert!(name.contains(sum.way), "{name}: {:?}", sum.shape);
        operations.push(operation);
        memories.push((x, y, out.values(), out));
    }
    if !run(&operations) {
        return;
    }
    for (sum, (x, y, mut expected, out)) in list.iter().zip(memories) {
        let [from, and, to] = [&sum.x, &sum.y, &sum.out].map(|place| places(&sum.shape, place));
        for i in 0..to.len() {
            expected[to[i]] = add(x.at(from[i]), y.at(and[i]));
        }
        for (i, (got, expected)) in out.values().into_iter().zip(expected).enumerate() {
            assert_eq!(got, expected, "{} of {:?}, {}", i, sum.shape, sum.way);
        }
    }
}

fn runs<T: Element + Debug>(make: impl Fn(usize) -> T, add: impl Fn(T, T) -> T) {
    let pack = 16 / size_of::<T>();
    let tile = 256 * pack;
    let mut list = Vec::new();
    for length in [1, pack + 1, tile - 1, tile, tile + 1, 2 * tile + pack + 1] {
        for (x, y, out) in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (3, 2, 1)] {
            let place = |start| (start, vec![1]);
            let (x, y, out) = (place(x), place(y), place(out));
            list.push(Sum { shape: vec![length], x, y, out, way: "contiguous" });
        }
    }
    sums(make, add, &list);
}

#[test]
fn runs_of_every_length_and_alignment() {
    runs(|i| i as u8, u8::wrapping_add);
    runs(|i| i as i16, i16::wrapping_add);
    runs(|i| i as f32, |x, y| x + y);
    runs(|i| i as f64, |x, y| x + y);
    runs(|i| Complex::new(i as f64, -1.5), |x, y| x + y);
}

/// Rows, columns and blocks beside whole arrays, where packs fit and where they do not.
fn rows<T: Element + Debug>(make: impl Fn(usize) -> T, add: impl Fn(T, T) -> T) {
    let pack = 16 / size_of::<T>();
    let mut list = Vec::new();
    for (width, way) in [(3 * pack, "packed2"), (3 * pack + 1, "strided2"), (pack, "packed2")] {
        let (shape, row) = (vec![37, width], width as isize);
        for y in [vec![0, 1], vec![1, 0]] {
            let (x, out) = ((0, vec![row, 1]), (0, vec![row, 1]));
            list.push(Sum { shape: shape.clone(), x, y: (0, y), out, way });
        }
        // Out of wider rows, into wider rows; a start between packs.
        let wider = (3 * width).next_multiple_of(pack) as isize;
        let place = || (0, vec![wider, 1]);
        let way = if width % pack == 0 { "packed2" } else { "strided2" };
        let shape = vec![300, width];
        list.push(Sum { shape: shape.clone(), x: place(), y: place(), out: place(), way });
        let moved = (1, vec![wider, 1]);
        list.push(Sum { shape, x: moved, y: place(), out: place(), way: "strided2" });
    }
    let (plane, row) = (20 * pack as isize, 2 * pack as isize);
    let x = (2 * pack, vec![plane, row, 1]);
    let shape = vec![5, 7, 2 * pack];
    let (y, out) = ((0, vec![0, 1, 0]), (0, c_order(&shape)));
    list.push(Sum { shape, x, y, out, way: "packed3" });
    sums(make, add, &list);
}

#[test]
fn rows_columns_and_blocks() {
    rows(|i| i as u8, u8::wrapping_add);
    rows(|i| i as f32, |x, y| x + y);
    rows(|i| Complex::new(i as f32, 0.5), |x, y| x + y);
}

#[test]
fn indices_divide_by_any_extents() {
    let mut list = Vec::new();
    for shape in [
        &[1023][..],
        &[1025],
        &[3, 1027],
        &[1027, 3],
        &[7, 13, 29],
        &[64, 33, 3],
        &[5, 3, 7, 11],
        &[2, 3, 2, 5, 3],
        &[2, 3, 2, 5, 2, 3],
        &[2, 3, 2, 3, 2, 3, 2],
        &[3, 2, 2, 3, 2, 2, 3, 2],
        &[2, 2, 3, 2, 2, 2, 3, 2, 2],
        &[2; 11],
    ] {
        // A gap after every axis but the outermost keeps them apart.
        let gaps: Vec<isize> = c_order(&shape.iter().map(|extent| extent + 1).collect::<Vec<_>>());
        let doubled = gaps.iter().map(|stride| 2 * stride).collect();
        let backwards = gaps.iter().map(|stride| -stride).collect::<Vec<_>>();
        let last = places(shape, &(0, gaps.clone())).pop().unwrap();
        list.push(Sum {
            shape: shape.to_vec(),
            x: (1, doubled),
            y: (last, backwards),
            out: (0, gaps),
            way: "strided",
        });
    }
    sums(|i| i as i32, i32::wrapping_add, &list);
}

fn tiles<T: Element + Debug>(make: impl Fn(usize) -> T, add: impl Fn(T, T) -> T) {
    let small = size_of::<T>() > 4;
    let mut list = Vec::new();
    for (height, width) in [(32, 16), (33, 35), (63, 64), (64, 64), (65, 130), (129, 17)] {
        let large = !small && height >= 64 && width >= 64;
        let shape = vec![height, width];
        let (out, turned) = (vec![width as isize, 1], vec![1, height as isize]);
        let both = if large { "tiled2m3s64" } else { "tiled2m3s32" };
        let one = if large { "tiled2m2s64" } else { "tiled2m2s32" };
        for (x, way) in [(&turned, both), (&out, one)] {
            let (x, y) = ((2, x.clone()), (1, turned.clone()));
            list.push(Sum { shape: shape.clone(), x, y, out: (3, out.clone()), way });
        }
    }
    // Planes with gaps, and the axes the other way round.
    let x = (0, vec![70 * 80 + 3, 1, 80]);
    let y = (5, vec![0, 1, 90]);
    let out = (0, vec![70 * 80, 80, 1]);
    let way = if small { "tiled3m3s32" } else { "tiled3m3s64" };
    list.push(Sum { shape: vec![3, 70, 80], x: x.clone(), y, out: out.clone(), way });
    let (x, y) = ((0, vec![1, 99, 0]), (0, vec![70, 1, 1]));
    let out = (0, vec![1, 70, 70 * 65]);
    list.push(Sum { shape: vec![70, 65, 2], x, y, out, way: "tiled3" });
    sums(make, add, &list);
}

#[test]
fn tiles_and_their_margins() {
    tiles(|i| i as u8, u8::wrapping_add);
    tiles(|i| i as f32, |x, y| x + y);
    tiles(|i| i as f64, |x, y| x + y);
    tiles(|i| Complex::new(i as f64, -1.5), |x, y| x + y);
}

#[test]
fn three_arrays_read_through_tiles_of_one_block() {
    let side = 70;
    let [a, b, c] = [1, 2, 3].map(|first| {
        Memory::new(&(0..side * side).map(|i| (first * i % 5) as f32).collect::<Vec<_>>())
    });
    let out = Memory::<f32>::zeros(side * side);
    let turned = [1, side as isize];
    let operation = Operation::Elementwise(Elementwise {
        function: Function::Select,
        compute: DType::Float32,
        shape: [side, side][..].into(),
        inputs: [&a, &b, &c].into_iter().map(|it| Input::Array(it.operand(&turned))).collect(),
        output: out.operand(&[side as isize, 1]),
    });
    assert!(Spec::of(&operation).unwrap().kernel_names()[0].contains("tiled2m7s32"));
    if !run(&[operation]) {
        return;
    }
    for i in 0..side {
        for j in 0..side {
            let from = j * side + i;
            let expected = if a.at(from) != 0.0 { b.at(from) } else { c.at(from) };
            assert_eq!(out.at(i * side + j), expected);
        }
    }
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
        Operation::Gather(Gather {
            shape: [count, width][..].into(),
            source: Indexed {
                base: base.operand(&[0, 1]),
                indices: indices.operand(&[1, 0]),
                axis_length: rows,
                axis_stride: 4 * row,
            },
            output: gathered.operand(&[row, 1]),
        }),
        Operation::Scatter(Scatter {
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

/// Rows that are only moved go in the widest words that fit.
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
        let from = (start, vec![64, 1]);
        let shape = [rows, width];
        let copy = Operation::Elementwise(Elementwise {
            function: COPY,
            compute: DType::UInt8,
            shape: shape[..].into(),
            inputs: [Input::Array(operand(&bytes, &from))].into_iter().collect(),
            output: copied.operand(&[row, 1]),
        });
        let gather = Operation::Gather(Gather {
            shape: [count, width][..].into(),
            source: Indexed {
                base: operand(&bytes, &(start, vec![0, 1])),
                indices: indices.operand(&[1, 0]),
                axis_length: rows,
                axis_stride: 64,
            },
            output: gathered.operand(&[row, 1]),
        });
        let scatter = Operation::Scatter(Scatter {
            shape: [20, width][..].into(),
            input: Input::Array(operand(&bytes, &from)),
            target: Indexed {
                base: operand(&scattered, &(start, vec![0, 1])),
                indices: order.operand(&[1, 0]),
                axis_length: 20,
                axis_stride: 64,
            },
        });
        for operation in [&gather, &scatter] {
            let name = Spec::of(operation).unwrap().kernel_names()[0].clone();
            assert!(name.contains(&format!("_{word}_at_")), "{name}, {width} from {start}");
        }
        cases.push((width, start, copied, gathered, scattered, [copy, gather, scatter]));
    }
    let operations: Vec<Operation> = cases.iter().flat_map(|case| case.5.clone()).collect();
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

/// Two parts of an array more than 2 GiB apart: offsets need 64 bits. Only the pages that are
/// touched take the host's memory.
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
    let copy = |shape: &[usize], from: &[isize], to: &Memory<i32>| {
        let to = to.operand(&c_order(shape));
        let inputs = [Input::Array(memory.operand(from))].into_iter().collect();
        let (compute, shape) = (DType::Int32, shape.into());
        Operation::Elementwise(Elementwise { function: COPY, compute, shape, inputs, output: to })
    };
    let sum = |shape: &[usize], from: &[isize], to: Operand| {
        let (reduction, compute) = (gpuarray_hal::function::Reduction::Sum, DType::Int32);
        let (shape, input) = (shape.into(), Mapped::Identity(memory.operand(from)));
        Operation::Reduce(Reduce { reduction, compute, shape, input, output: to })
    };
    let scan = Operation::Scan(Scan {
        reduction: gpuarray_hal::function::Reduction::Sum,
        compute: DType::Int32,
        shape: [2, 71][..].into(),
        axis: 1,
        exclusive: false,
        initial: gpuarray_hal::Scalar::new(0_i32),
        input: memory.operand(&[apart, 1]),
        output: running.operand(&[71, 1]),
    });
    let list = [
        copy(&[2, 70, 72], &[apart, 2 * w, 1], &packed),
        copy(&[2, 70, 35], &[apart, 2 * w, 2], &strided),
        copy(&[2, 70, 70], &[apart, 1, w], &turned),
        sum(&[2, 3, 5], &[apart, 2 * w, 1], total.operand(&[0, 0, 0])),
        sum(&[2, 400], &[apart, 1], sums.operand(&[1, 0])),
        scan,
    ];
    for (operation, way) in list.iter().zip(["packed3_64", "strided3_64", "tiled3m1s64_64"]) {
        let name = Spec::of(operation).unwrap().kernel_names()[0].clone();
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

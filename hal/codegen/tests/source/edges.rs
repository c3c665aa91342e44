//! Every access pattern at its limits: alignments, tails, tiles, divisions.

use super::run;
use crate::harness::{Memory, plan};
use hal::function::{BinaryFunction, Function};
use hal::operation::*;
use hal::{Complex, DType, Element};
use std::fmt::Debug;

const ADD: Function = Function::Binary(BinaryFunction::Add);

/// The start of an array, in elements, and its strides.
type Place = (usize, Vec<isize>);

/// `out = x + y` over a shape.
struct Sum {
    shape: Vec<usize>,
    x: Place,
    y: Place,
    out: Place,
    /// The part of the kernel's name that shows its access pattern.
    way: &'static str,
}

fn c_order(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// Returns the positions of all elements, in C order of the indices.
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

/// Runs the sums on elements that `make` returns, and checks every element of the outputs,
/// including those that must stay unchanged.
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
        let operation = Description::Elementwise(Elementwise {
            function: ADD,
            compute: T::DTYPE,
            shape: sum.shape[..].into(),
            inputs: [Input::Array(operand(&x, &sum.x)), Input::Array(operand(&y, &sum.y))]
                .into_iter()
                .collect(),
            output: operand(&out, &sum.out),
        });
        let name = plan(&operation).spec().kernel_names()[0].clone();
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

/// Rows, columns and blocks, in addition to whole arrays, where packs fit and where they do not.
fn rows<T: Element + Debug>(make: impl Fn(usize) -> T, add: impl Fn(T, T) -> T) {
    let pack = 16 / size_of::<T>();
    let mut list = Vec::new();
    for (width, way) in [(3 * pack, "packed2"), (3 * pack + 1, "strided2"), (pack, "packed2")] {
        let (shape, row) = (vec![37, width], width as isize);
        for y in [vec![0, 1], vec![1, 0]] {
            let (x, out) = ((0, vec![row, 1]), (0, vec![row, 1]));
            list.push(Sum { shape: shape.clone(), x, y: (0, y), out, way });
        }
        // From wider rows, to wider rows, and with a start inside a pack.
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
        // A gap after every axis except the outermost keeps the axes from merging.
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
    // Planes with gaps, and with the axes in the other order.
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
    let operation = Description::Elementwise(Elementwise {
        function: Function::Select,
        compute: DType::Float32,
        shape: [side, side][..].into(),
        inputs: [&a, &b, &c].into_iter().map(|it| Input::Array(it.operand(&turned))).collect(),
        output: out.operand(&[side as isize, 1]),
    });
    assert!(plan(&operation).spec().kernel_names()[0].contains("tiled2m7s32"));
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

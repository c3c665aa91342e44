//! Strided, tiled and packed access, records, gather, scatter and sequences.

use super::run;
use crate::harness::{Memory, plan, records};
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::*;
use hal::{Complex, DType, Element, Scalar, f16};

fn elementwise(
    function: Function,
    compute: DType,
    shape: &[usize],
    inputs: Vec<Input>,
    output: Operand,
) -> Description {
    Description::Elementwise(Elementwise {
        function,
        compute,
        shape: shape.into(),
        inputs: inputs.into_iter().collect(),
        output,
    })
}

const COPY: Function = Function::Unary(UnaryFunction::Copy);
const ADD: Function = Function::Binary(BinaryFunction::Add);

fn count(length: usize) -> Vec<i32> {
    (0..length as i32).collect()
}

fn kernel(operation: &Description) -> String {
    plan(operation).spec().kernel_names()[0].clone()
}

#[test]
fn a_matrix_plus_its_transpose_goes_through_tiles() {
    let (batch, side) = (3, 70);
    let values = count(batch * side * side);
    let m = Memory::new(&values);
    let out = Memory::<i32>::zeros(values.len());
    let (plane, row) = ((side * side) as isize, side as isize);
    let shape = [batch, side, side];
    let sum = elementwise(
        ADD,
        DType::Int32,
        &shape,
        vec![Input::Array(m.operand(&[plane, row, 1])), Input::Array(m.operand(&[plane, 1, row]))],
        out.operand(&[plane, row, 1]),
    );
    // A transposed copy with another element size, to an output in Fortran order.
    let wide: Vec<Complex<f64>> = (0..50 * 33).map(|i| Complex::new(f64::from(i), -1.0)).collect();
    let source = Memory::new(&wide);
    let target = Memory::<Complex<f64>>::zeros(wide.len());
    let copy = elementwise(
        COPY,
        DType::Complex128,
        &[50, 33],
        vec![Input::Array(source.operand(&[33, 1]))],
        target.operand(&[1, 50]),
    );
    assert!(kernel(&sum).contains("tiled"), "{}", kernel(&sum));
    assert!(kernel(&copy).contains("tiled"), "{}", kernel(&copy));
    if !run(&[sum, copy]) {
        return;
    }
    let out = out.values();
    for b in 0..batch {
        for i in 0..side {
            for j in 0..side {
                let at = |i, j| values[(b * side + i) * side + j];
                assert_eq!(out[(b * side + i) * side + j], at(i, j) + at(j, i));
            }
        }
    }
    for (i, z) in target.values().into_iter().enumerate() {
        assert_eq!(z, wide[(i % 50) * 33 + i / 50]);
    }
}

#[test]
fn strides_of_zero_below_zero_and_of_many_axes() {
    let row = Memory::new(&count(5));
    let column = Memory::new(&count(4));
    let outer = Memory::<i32>::zeros(20);
    let mut reversed = row.operand(&[0, -1]);
    reversed.address += 16;
    let values = count(3_usize.pow(6));
    let many = Memory::new(&values);
    let permuted = Memory::<i32>::zeros(values.len());
    let powers: Vec<isize> = (0..6).map(|axis| 3_isize.pow(axis)).collect();
    let order = [3, 0, 5, 1, 4, 2];
    let mixed: Vec<isize> = order.iter().map(|&axis| powers[axis]).collect();
    // Twelve axes of two, with a gap after each pair.
    let gaps: Vec<isize> = (0..12).rev().map(|axis| 3_isize.pow(axis)).collect();
    let sparse = Memory::<i32>::zeros(3_usize.pow(12));
    if !run(&[
        elementwise(
            ADD,
            DType::Int32,
            &[4, 5],
            vec![Input::Array(column.operand(&[1, 0])), Input::Array(reversed)],
            outer.operand(&[5, 1]),
        ),
        elementwise(
            COPY,
            DType::Int32,
            &[3; 6],
            vec![Input::Array(many.operand(&mixed))],
            permuted.operand(&powers),
        ),
        elementwise(
            COPY,
            DType::Int32,
            &[2; 12],
            vec![Input::Scalar(Scalar::new(1_i32))],
            sparse.operand(&gaps),
        ),
    ]) {
        return;
    }
    for i in 0..4 {
        for j in 0..5 {
            assert_eq!(outer.at(i * 5 + j), (i + 4 - j) as i32);
        }
    }
    for (place, got) in permuted.values().into_iter().enumerate() {
        let from: isize =
            (0..6).map(|axis| (place as isize / powers[axis] % 3) * mixed[axis]).sum();
        assert_eq!(got, values[from as usize]);
    }
    for (place, got) in sparse.values().into_iter().enumerate() {
        let filled = (0..12).all(|axis| place / 3_usize.pow(axis) % 3 < 2);
        assert_eq!(got, i32::from(filled));
    }
}

#[test]
fn packed_access_handles_tails_and_other_widths() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1003).collect();
    let doubles: Vec<f64> = (0..1003).map(f64::from).collect();
    let (x, y) = (Memory::new(&bytes), Memory::new(&doubles));
    let (sum, misaligned) = (Memory::<f32>::zeros(1003), Memory::<u8>::zeros(1003));
    let add = elementwise(
        ADD,
        DType::Float64,
        &[1003],
        vec![Input::Array(x.operand(&[1])), Input::Array(y.operand(&[1]))],
        sum.operand(&[1]),
    );
    let mut from = x.operand(&[1]);
    from.address += 1;
    let shift = elementwise(
        COPY,
        DType::UInt8,
        &[1002],
        vec![Input::Array(from)],
        misaligned.operand(&[1]),
    );
    assert!(kernel(&add).contains("contiguous") && kernel(&shift).contains("contiguous"));
    if !run(&[add, shift]) {
        return;
    }
    for i in 0..1003 {
        assert_eq!(sum.at(i), (f64::from(bytes[i]) + doubles[i]) as f32);
        assert_eq!(misaligned.at(i), if i < 1002 { bytes[i + 1] } else { 0 });
    }
}

#[test]
fn records_move_whole() {
    let bytes: Vec<u8> = (0..=255).cycle().take(24 * 12).collect();
    let source = Memory::new(&bytes);
    let (picked, filled) = (Memory::<u8>::zeros(24 * 12), Memory::<u8>::zeros(24 * 12));
    let (gathered, scattered) = (Memory::<u8>::zeros(7 * 3), Memory::<u8>::zeros(7 * 8));
    let indices = Memory::new(&[2_i32, -1, 9]);
    let value =
        Scalar::from_bytes(DType::Opaque(12), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).unwrap();
    let indexed = |memory: &Memory<u8>| Indexed {
        base: records(memory, 7, 0, &[0]),
        indices: indices.operand(&[1]),
        axis_length: 8,
        axis_stride: 7,
    };
    if !run(&[
        // Every second record of 12 bytes.
        elementwise(
            COPY,
            DType::Opaque(12),
            &[12],
            vec![Input::Array(records(&source, 12, 0, &[24]))],
            records(&picked, 12, 0, &[12]),
        ),
        elementwise(
            COPY,
            DType::Opaque(12),
            &[12],
            vec![Input::Scalar(value)],
            records(&filled, 12, 12, &[24]),
        ),
        Description::Gather(Gather {
            shape: [3][..].into(),
            source: indexed(&source),
            output: records(&gathered, 7, 0, &[7]),
        }),
        Description::Scatter(Scatter {
            shape: [3][..].into(),
            input: Input::Array(records(&source, 7, 1, &[7])),
            target: indexed(&scattered),
        }),
    ]) {
        return;
    }
    for i in 0..12 {
        assert_eq!(picked.values()[i * 12..][..12], bytes[i * 24..][..12]);
        assert_eq!(filled.values()[i * 24..][..12], [0; 12]);
        assert_eq!(filled.values()[i * 24 + 12..][..12], *value.bytes());
    }
    assert_eq!(gathered.values()[..7], bytes[14..21]);
    assert_eq!(gathered.values()[7..14], bytes[49..56]);
    assert_eq!(gathered.values()[14..], [0; 7]);
    assert_eq!(scattered.values()[14..21], bytes[1..8]);
    assert_eq!(scattered.values()[49..], bytes[8..15]);
    assert_eq!(scattered.values()[..14], [0; 14]);
}

#[test]
fn gather_and_scatter_ignore_what_lies_outside() {
    let base = Memory::new(&[0.5_f32, 1.5, 2.5, 3.5]);
    let signed = Memory::new(&[3_i8, -4, -5, 4, 0]);
    let unsigned = Memory::new(&[3_u64, u64::MAX, 1, 4, 0]);
    let (first, second) = (Memory::<f64>::zeros(5), Memory::<f32>::new(&[9.0; 5]));
    let (target, filled) = (Memory::<i16>::zeros(4), Memory::<f32>::zeros(4));
    let indexed = |base: Operand, indices: Operand| Indexed {
        axis_stride: base.dtype.size() as isize,
        base,
        indices,
        axis_length: 4,
    };
    let fixed = [0];
    let gather = |indices, output| {
        Description::Gather(Gather {
            shape: [5][..].into(),
            source: indexed(base.operand(&fixed), indices),
            output,
        })
    };
    let scatter =
        |input, target| Description::Scatter(Scatter { shape: [5][..].into(), input, target });
    let input = Memory::new(&[10.0_f64, 11.0, 12.0, 13.0, 14.0]);
    if !run(&[
        gather(signed.operand(&[1]), first.operand(&[1])),
        gather(unsigned.operand(&[1]), second.operand(&[1])),
        scatter(
            Input::Array(input.operand(&[1])),
            indexed(target.operand(&fixed), signed.operand(&[1])),
        ),
        scatter(
            Input::Scalar(Scalar::new(2_i32)),
            indexed(filled.operand(&fixed), unsigned.operand(&[1])),
        ),
    ]) {
        return;
    }
    assert_eq!(first.values(), [3.5, 0.5, 0.0, 0.0, 0.5]);
    assert_eq!(second.values(), [3.5, 0.0, 1.5, 0.0, 0.5]);
    assert_eq!(target.values()[1..], [0, 0, 10]);
    assert!([11, 14].contains(&target.at(0)));
    assert_eq!(filled.values(), [2.0, 2.0, 0.0, 2.0]);
}

#[test]
fn sequences_of_each_type() {
    fn sequence<T: Element>(
        start: T,
        step: T,
        out: &Memory<T>,
        stride: isize,
        length: usize,
    ) -> Description {
        Description::Sequence(Sequence {
            length,
            start: Scalar::new(start),
            step: Scalar::new(step),
            output: out.operand(&[stride]),
        })
    }
    let (bytes, halves) = (Memory::<i8>::zeros(300), Memory::<f16>::zeros(100));
    let (doubles, complexes) = (Memory::<f64>::zeros(50), Memory::<Complex<f32>>::zeros(4));
    if !run(&[
        sequence(-5, 3, &bytes, 1, 300),
        sequence(f16::from_f32(0.1), f16::from_f32(0.3), &halves, 1, 100),
        sequence(1.5, -0.1, &doubles, 2, 25),
        sequence(Complex::new(1.0, 0.0), Complex::new(0.5, -1.0), &complexes, 1, 4),
    ]) {
        return;
    }
    for (i, x) in bytes.values().into_iter().enumerate() {
        assert_eq!(x, (-5 + 3 * i as i64) as i8);
    }
    for (i, x) in halves.values().into_iter().enumerate() {
        let (start, step) = (f16::from_f32(0.1).to_f32(), f16::from_f32(0.3).to_f32());
        assert_eq!(x, f16::from_f32(start + i as f32 * step));
    }
    for (i, x) in doubles.values().into_iter().enumerate() {
        assert_eq!(x, if i % 2 == 0 { 1.5 + (i / 2) as f64 * -0.1 } else { 0.0 });
    }
    assert_eq!(complexes.at(3), Complex::new(2.5, -3.0));
}

//! Tests of bfloat16 in the generated source, with all of its 65,536 values.

use super::elementwise::binary;
use super::run;
use crate::harness::Memory;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Description, Elementwise, Input, Operand};
use hal::{DType, bf16, f16};

/// Returns the cast of an array.
fn cast(input: Operand, output: Operand, length: usize) -> Description {
    Description::Elementwise(Elementwise {
        function: Function::Unary(UnaryFunction::Copy),
        compute: output.dtype,
        shape: [length][..].into(),
        inputs: [Input::Array(input)].into_iter().collect(),
        output,
    })
}

/// Returns the bits of the bfloat16 nearest to a number. The upper half of `x` is the lower
/// neighbour, and the lower half of `x` is the distance from it.
fn nearest(x: f32) -> u16 {
    let (upper, lower) = ((x.to_bits() >> 16) as u16, x.to_bits() & 0xffff);
    if x.is_nan() {
        return 0x7fc0;
    }
    match lower.cmp(&0x8000) {
        std::cmp::Ordering::Less => upper,
        std::cmp::Ordering::Greater => upper + 1,
        std::cmp::Ordering::Equal => upper + (upper & 1),
    }
}

fn same(got: bf16, expected: u16) -> bool {
    got.to_bits() == expected || (got.is_nan() && bf16::from_bits(expected).is_nan())
}

#[test]
fn bfloat16_converts_and_rounds_as_binary32_does() {
    const LENGTH: usize = 1 << 16;
    let every: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    let nudges = [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let fine: Vec<f32> = (0..=u16::MAX)
        .flat_map(|bits| nudges.map(|nudge| f32::from_bits(u32::from(bits) << 16 | nudge)))
        .collect();
    let precise: Vec<f64> = fine.iter().map(|&x| x.into()).collect();
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let (x, fine_in, precise_in) = (Memory::new(&every), Memory::new(&fine), Memory::new(&precise));
    let half_in = Memory::new(&halves);
    let (single, double) = (Memory::<f32>::zeros(LENGTH), Memory::<f64>::zeros(LENGTH));
    let (whole, truth) = (Memory::<i32>::zeros(LENGTH), Memory::<bool>::zeros(LENGTH));
    let [narrow, narrow_double] = std::array::from_fn(|_| Memory::<bf16>::zeros(fine.len()));
    let [of_half, square, sum] = std::array::from_fn(|_| Memory::<bf16>::zeros(LENGTH));
    let to_half = Memory::<f16>::zeros(LENGTH);
    if !run(&[
        cast(x.operand(&[1]), single.operand(&[1]), LENGTH),
        cast(x.operand(&[1]), double.operand(&[1]), LENGTH),
        cast(x.operand(&[1]), whole.operand(&[1]), LENGTH),
        cast(x.operand(&[1]), truth.operand(&[1]), LENGTH),
        cast(fine_in.operand(&[1]), narrow.operand(&[1]), fine.len()),
        cast(precise_in.operand(&[1]), narrow_double.operand(&[1]), fine.len()),
        cast(half_in.operand(&[1]), of_half.operand(&[1]), LENGTH),
        cast(x.operand(&[1]), to_half.operand(&[1]), LENGTH),
        binary(BinaryFunction::Multiply, &x, &x, &square),
        binary(BinaryFunction::Add, &x, &of_half, &sum),
    ]) {
        return;
    }
    for bits in 0..=u16::MAX {
        let index = usize::from(bits);
        let value = f32::from_bits(u32::from(bits) << 16);
        let (single, double) = (single.at(index), double.at(index));
        assert!(single.to_bits() == value.to_bits() || (single.is_nan() && value.is_nan()));
        assert!(double == f64::from(value) || (double.is_nan() && value.is_nan()), "{bits:#x}");
        assert_eq!(truth.at(index), value != 0.0);
        if value.abs() < 2e9 {
            assert_eq!(whole.at(index), value as i32);
        }
        let half = to_half.at(index);
        assert!(half == f16::from_f32(value) || (half.is_nan() && value.is_nan()), "{bits:#x}");
        let converted = f16::from_bits(bits).to_f32();
        assert!(same(of_half.at(index), nearest(converted)), "{bits:#x}");
        assert!(same(square.at(index), nearest(value * value)), "{bits:#x}");
        let other = f32::from_bits(u32::from(nearest(converted)) << 16);
        assert!(same(sum.at(index), nearest(value + other)), "{bits:#x}");
    }
    for (index, &x) in fine.iter().enumerate() {
        let (got, from_double) = (narrow.at(index), narrow_double.at(index));
        assert!(same(got, nearest(x)), "{x:e} became {got}");
        assert!(same(from_double, nearest(x)), "{x:e} became {from_double}");
    }
    // As with the package `ml_dtypes`, double precision is first converted to single precision.
    let twice = Memory::new(&[1.0 + 2f64.powi(-8) + 2f64.powi(-40)]);
    let out = Memory::<bf16>::zeros(1);
    assert!(run(&[cast(twice.operand(&[1]), out.operand(&[1]), 1)]));
    assert_eq!((out.at(0).to_bits(), DType::BFloat16.size()), (0x3f80, 2));
}

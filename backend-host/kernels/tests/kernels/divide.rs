//! Compares integer division with 128-bit arithmetic: every pair of bytes, and pairs around the powers of two
//! for wider types, with arrays and single numbers on either side.

use gpuarray_host_kernels::loops::integer_division;
use hal::function::BinaryFunction;
use hal::{DType, Element};

/// Returns quotient and remainder, rounded down; zero for a divisor of zero.
fn expected(x: i128, y: i128) -> (i128, i128) {
    if y == 0 {
        return (0, 0);
    }
    let quotient = x / y - i128::from(x % y != 0 && (x < 0) != (y < 0));
    (quotient, x - quotient * y)
}

fn run<T: Element + Default>(function: BinaryFunction, x: &[T], y: &[T]) -> Vec<T> {
    let length = x.len().max(y.len());
    let mut value = vec![T::default(); length];
    let repeated = u32::from(x.len() < length) | u32::from(y.len() < length) << 1;
    let (x, y) = (x.as_ptr().cast(), y.as_ptr().cast());
    let kernel = integer_division(function, T::DTYPE).expect("a loop");
    // SAFETY: the loop is given this many elements, and the value does not overlap the arguments.
    unsafe { kernel.run.call(value.as_mut_ptr().cast(), &[x, y, x, x], repeated, length) };
    value
}

/// Selects the quotient or the remainder.
type Part = fn((i128, i128)) -> i128;

fn check<T>(x: &[T], y: &[T], wrap: fn(i128) -> T)
where
    T: Element + Default + Copy + Into<i128> + PartialEq + std::fmt::Debug,
{
    let of = |part: Part, x: T, y: T| wrap(part(expected(x.into(), y.into())));
    let parts: [(BinaryFunction, Part); 2] =
        [(BinaryFunction::FloorDivide, |both| both.0), (BinaryFunction::Remainder, |both| both.1)];
    for (function, part) in parts {
        for &one in y {
            // The same number as every element, as the divisor and as the dividend.
            let all = vec![one; x.len()];
            let by: Vec<T> = x.iter().map(|&x| of(part, x, one)).collect();
            let into: Vec<T> = x.iter().map(|&x| of(part, one, x)).collect();
            let context = || format!("{function:?} {:?} by {one:?}", T::DTYPE);
            assert_eq!(run(function, x, &all), by, "{}", context());
            assert_eq!(run(function, x, &[one]), by, "{}, a number", context());
            assert_eq!(run(function, &[one], x), into, "{} or of it", context());
        }
    }
}

fn edges(bits: u32, signed: bool) -> Vec<i128> {
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), 1i128 << (bits - 1)) } else { (0, 1 << bits) };
    let mut numbers: Vec<i128> = (0..=bits)
        .flat_map(|bit| (-2..=2).flat_map(move |by| [(1i128 << bit) + by, -(1i128 << bit) + by]))
        .chain([3, 5, 7, 10, 641, 1000, 6_700_417, 1_000_003])
        .chain((0..40).map(|n| (0x9e37_79b9_7f4a_7c15_i128 * (n * n + 1)) % (1 << bits)))
        .chain([low, high - 1])
        .filter(|number| (low..high).contains(number))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

macro_rules! check_all {
    ($($name:ident: $($type:ident),*;)*) => {
        $(
            #[test]
            fn $name() {
                $(
                    let signed = $type::MIN != 0;
                    let numbers: Vec<$type> = if $type::BITS == 8 {
                        ($type::MIN..=$type::MAX).collect()
                    } else {
                        edges($type::BITS, signed).into_iter().map(|n| n as $type).collect()
                    };
                    check(&numbers, &numbers, |value| value as $type);
                )*
            }
        )*
    };
}

check_all! {
    bytes: i8, u8;
    words: i16, u16;
    double_words: i32, u32;
    quad_words: i64, u64;
}

#[test]
fn other_functions_and_types_are_left_alone() {
    assert!(integer_division(BinaryFunction::Add, DType::Int8).is_none());
    assert!(integer_division(BinaryFunction::FloorDivide, DType::Float32).is_none());
}

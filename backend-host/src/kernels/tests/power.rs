//! Powers of integers against repeated multiplication that wraps.

use super::super::power;
use hal::Element;
use hal::function::BinaryFunction;

fn run<T: Element + Default>(x: &[T], exponent: &[T]) -> Vec<T> {
    let mut value = vec![T::default(); x.len()];
    let repeated = if exponent.len() == 1 { 2 } else { 0 };
    let (x_start, exponents) = (x.as_ptr().cast(), exponent.as_ptr().cast());
    let kernel = power::kernel(BinaryFunction::Power, T::DTYPE).expect("a loop");
    let arguments = [x_start, exponents, x_start, x_start];
    // SAFETY: as many elements as the loop is told, the value apart from the arguments.
    unsafe { (kernel.run)(value.as_mut_ptr().cast(), &arguments, repeated, x.len()) };
    value
}

macro_rules! check {
    ($($name:ident: $type:ident;)*) => {
        $(
            #[test]
            fn $name() {
                let x: Vec<$type> = (0..200u64)
                    .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) as $type)
                    .chain([0, 1, 2, 3, $type::MIN, $type::MAX])
                    .collect();
                let mut expected = vec![1; x.len()];
                for exponent in 0..=70 {
                    let given = exponent as $type;
                    assert_eq!(run(&x, &[given]), expected, "{exponent}");
                    assert_eq!(run(&x, &vec![given; x.len()]), expected, "{exponent}, elements");
                    for (value, &x) in expected.iter_mut().zip(&x) {
                        *value = value.wrapping_mul(x);
                    }
                }
            }
        )*
    };
}

check! {
    bytes: i8;
    words: i16;
    double_words: i32;
    quad_words: i64;
    unsigned_bytes: u8;
    unsigned_words: u16;
    unsigned_double_words: u32;
    unsigned_quad_words: u64;
}

#[test]
fn negative_exponents_are_those_of_one_and_minus_one() {
    let x = [0, 1, -1, 2, -7];
    assert_eq!(run::<i32>(&x, &[-3]), [0, 1, -1, 0, 0]);
    assert_eq!(run::<i32>(&x, &[-2]), [0, 1, 1, 0, 0]);
}

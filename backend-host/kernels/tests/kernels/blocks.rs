//! Compares loops over blocks, for every number of elements around a block and every arrangement of
//! arguments, with the same loops called for one element at a time.

use gpuarray_host_kernels::loops::kernel;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::{DType, Scalar};

/// Memory for elements, and for some beyond them.
#[derive(Clone, PartialEq, Debug)]
#[repr(C, align(64))]
struct Memory([u8; 8192]);

impl Memory {
    fn address(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

/// Returns small numbers of a type. Neighbours differ.
fn numbers(dtype: DType, length: usize, first: usize) -> Memory {
    let mut memory = Memory([0xa5; 8192]);
    let places = memory.0.chunks_exact_mut(dtype.size()).take(length);
    for (index, place) in places.enumerate() {
        let number = Scalar::new(((index * 5 + first) % 7) as f64 + 1.0);
        place.copy_from_slice(number.cast(dtype).expect("a number").bytes());
    }
    memory
}

/// Lengths that are computed without blocks, as one block, and as several blocks with and without a rest.
const LENGTHS: [usize; 12] = [1, 15, 16, 17, 31, 32, 33, 64, 127, 128, 300, 384];

/// Compares all arrangements of the arguments of a function. `same` are the arguments that the value
/// overwrites.
fn check(function: Function, dtype: DType) {
    let run = kernel(function, dtype).expect("a loop").run;
    let (result, arity) = (function.result(dtype), function.arity());
    let types = [0, 1, 2, 3].map(|argument| match argument < arity {
        true => function.argument(argument, dtype).unwrap_or(DType::Bool),
        false => dtype,
    });
    let in_place = kernel(function, dtype).is_some_and(|kernel| kernel.in_place) && result == dtype;
    for length in LENGTHS {
        for repeated in 0..1u32 << arity {
            let candidates = if in_place { !repeated & ((1 << arity) - 1) } else { 0 };
            for same in (0..1u32 << arity).filter(|same| same & !candidates == 0) {
                let own = numbers(dtype, length, 3);
                let arguments: Vec<Memory> = (0..arity)
                    .map(|argument| match same >> argument & 1 {
                        1 => own.clone(),
                        _ => numbers(types[argument], length, argument * 2),
                    })
                    .collect();
                let mut expected = own.clone();
                for index in 0..length {
                    let one = std::array::from_fn(|argument| {
                        let argument = argument.min(arity - 1);
                        let step = usize::from(repeated >> argument & 1 == 0);
                        arguments[argument]
                            .address()
                            .wrapping_add(index * step * types[argument].size())
                    });
                    // SAFETY: the place of one value, and one element of each argument.
                    unsafe {
                        let value = expected.0.as_mut_ptr().add(index * result.size());
                        run.call(value, &one, 0, 1);
                    }
                }
                let mut got = own.clone();
                let value = got.0.as_mut_ptr();
                let given = std::array::from_fn(|argument| {
                    let argument = argument.min(arity - 1);
                    match same >> argument & 1 {
                        1 => value.cast_const(),
                        _ => arguments[argument].address(),
                    }
                });
                // SAFETY: as many elements of each operand, or one that is repeated.
                unsafe { run.call(value, &given, repeated, length) };
                assert!(
                    got == expected,
                    "{function:?} of {length} {dtype}, repeated {repeated:b}, in place {same:b}"
                );
            }
        }
    }
}

#[test]
fn blocks_have_the_values_of_their_elements() {
    let pairs = [
        // By blocks, by number, by arrays, and with values of another size.
        (
            BinaryFunction::Subtract,
            &[DType::Int8, DType::Float16, DType::Int32, DType::Complex64][..],
        ),
        (BinaryFunction::Subtract, &[DType::Float64, DType::Complex128, DType::Int16]),
        (BinaryFunction::FloorDivide, &[DType::Int8, DType::Int64]),
        (BinaryFunction::Divide, &[DType::Float32, DType::Complex128]),
        (BinaryFunction::RightShift, &[DType::UInt8, DType::Int16]),
        (BinaryFunction::Less, &[DType::Bool, DType::Float32, DType::Float64, DType::Complex64]),
    ];
    for (function, dtypes) in pairs {
        dtypes.iter().for_each(|&dtype| check(Function::Binary(function), dtype));
    }
    for dtype in [DType::UInt8, DType::BFloat16, DType::Float64, DType::Complex128] {
        check(Function::Unary(UnaryFunction::Square), dtype);
        check(Function::Unary(UnaryFunction::Sign), dtype);
        check(Function::Unary(UnaryFunction::Imaginary), dtype);
        check(Function::Select, dtype);
        check(Function::LinearCombination, dtype);
    }
    check(Function::CompareMixed(BinaryFunction::Less), DType::Int64);
}

//! Arrays with any strides, filled with reproducible values.

use hal::operation::{Operand, Shape, Strides};
use hal::{DType, Scalar};

/// Returns the element at an address.
pub(super) fn read(address: u64, dtype: DType) -> Scalar {
    let pointer = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the tests read elements of arrays that are alive.
    let bytes = unsafe { std::slice::from_raw_parts(pointer, dtype.size()) };
    Scalar::from_bytes(dtype, bytes).expect("element")
}

/// The order of an array's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The last axis is contiguous.
    Rows,
    /// The first axis is contiguous.
    Columns,
    /// Backwards, with a gap after each element.
    Backwards,
    /// The same elements for every index of the first axis.
    Broadcast,
}

pub(super) const ORDERS: [Order; 4] =
    [Order::Rows, Order::Columns, Order::Backwards, Order::Broadcast];

/// An array and its memory.
#[derive(Debug)]
pub(super) struct Array {
    memory: Vec<u64>,
    pub(super) dtype: DType,
    first: usize,
    strides: Strides,
}

impl Array {
    /// Creates an array of zeros.
    pub(super) fn zeros(dtype: DType, shape: &[usize], order: Order) -> Array {
        let size = dtype.size() as isize;
        let gap = if order == Order::Backwards { 2 } else { 1 };
        let mut strides = Strides::from_elem(0, shape.len());
        let mut next = size * gap;
        let mut axes: Vec<usize> = (0..shape.len()).rev().collect();
        if order == Order::Columns {
            axes.reverse();
        }
        for axis in axes {
            if order == Order::Broadcast && axis == 0 {
                continue;
            }
            strides[axis] = next;
            next *= shape[axis].max(1) as isize;
        }
        let mut first = 0;
        if order == Order::Backwards {
            for (stride, &length) in strides.iter_mut().zip(shape) {
                first += *stride as usize * length.saturating_sub(1);
                *stride = -*stride;
            }
        }
        let memory = vec![0; (next as usize).div_ceil(8) + 1];
        Array { memory, dtype, first, strides }
    }

    /// Creates an array of values that depend on `seed`.
    pub(super) fn random(dtype: DType, shape: &[usize], order: Order, seed: u64) -> Array {
        let mut array = Array::zeros(dtype, shape, order);
        let base = array.memory.as_mut_ptr().cast::<u8>();
        let count = array.memory.len() * 8 / dtype.size().max(1);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for index in 0..count {
            let value = random(dtype, &mut state);
            // SAFETY: an element of the array's memory.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    value.bytes().as_ptr(),
                    base.add(index * dtype.size()),
                    dtype.size(),
                );
            }
        }
        array
    }

    /// Creates a one-dimensional array of values.
    pub(super) fn of(values: &[Scalar]) -> Array {
        let mut array = Array::zeros(values[0].dtype(), &[values.len()], Order::Rows);
        let size = array.dtype.size();
        let base = array.memory.as_mut_ptr().cast::<u8>();
        for (index, value) in values.iter().enumerate() {
            // SAFETY: an element of the array's memory.
            unsafe {
                std::ptr::copy_nonoverlapping(value.bytes().as_ptr(), base.add(index * size), size);
            }
        }
        array
    }

    /// Returns the array as an operand.
    pub(super) fn operand(&mut self) -> Operand {
        let base = self.memory.as_mut_ptr().expose_provenance();
        let address = (base + self.first) as u64;
        Operand { address, dtype: self.dtype, strides: self.strides.clone() }
    }

    /// Returns the words of the memory.
    pub(super) fn words(&self) -> &[u64] {
        &self.memory
    }
}

/// Returns small numbers, including zeros and negative ones. Infinities and NaN are tested separately.
pub(super) fn random(dtype: DType, state: &mut u64) -> Scalar {
    let mut next = || {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    };
    if let DType::Opaque(bytes) = dtype {
        let bytes: Vec<u8> = (0..bytes).map(|_| next() as u8).collect();
        return Scalar::from_bytes(dtype, &bytes).expect("record");
    }
    if dtype.is_inexact() {
        let mut real = || (next() % 33) as f64 / 8.0 - 2.0;
        let value = hal::Complex::new(real(), real());
        return Scalar::new(value).cast(dtype).expect("cast");
    }
    // Mostly small, sometimes any number.
    let value =
        if next() % 4 == 0 { (next() << 32 | next()) as i64 } else { next() as i64 % 9 - 4 };
    Scalar::new(value).cast(dtype).expect("cast")
}

/// Returns every index of a shape.
pub(super) fn indices(shape: &[usize]) -> Vec<Shape> {
    let mut all = vec![Shape::new()];
    for &length in shape {
        all = all
            .iter()
            .flat_map(|index| {
                (0..length).map(move |last| {
                    let mut index = index.clone();
                    index.push(last);
                    index
                })
            })
            .collect();
    }
    all
}

/// Returns the address of an element.
pub(super) fn at(operand: &Operand, index: &[usize]) -> u64 {
    let offset: isize =
        index.iter().zip(&operand.strides).map(|(&index, stride)| index as isize * stride).sum();
    operand.address.wrapping_add_signed(offset as i64)
}

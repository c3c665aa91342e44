//! Loops over blocks of elements, and calls of them for any number of elements in any arrangement.
//!
//! There are hundreds of loops, for functions, types and processors, so each loop is as small as possible. It
//! computes whole blocks, whose number of elements the compiler knows. It reads the arguments of a block
//! before it writes the values, so that the values may overwrite an argument. A repeated element is a block
//! that is read again and again. The code that turns other arrangements into blocks is here, shared by all
//! loops.
//!
//! Complex numbers are too large for this: a block has so few of them that the compiler does not vectorise
//! it. Their loops, and a few others, run over non-overlapping arrays instead.

use super::multiversion::Loop;
use super::number::Number;
use hal::{DType, Error};
use std::mem::MaybeUninit;

/// The size of the widest operand of a block in bytes: four 256-bit vectors, so that the vectors of two
/// arguments fill half of the registers.
const BLOCK: usize = 128;

/// The number of blocks of an argument that are copied in one step for a loop over arrays.
const PART: usize = 16;

/// The number of elements up to which a loop over elements is faster than making blocks.
const FEW: usize = 16;

/// The loops that compute a function: one over elements and, if vectors pay off, one over blocks.
#[derive(Clone, Copy, Debug)]
pub struct Routine {
    elements: Loop,
    blocks: Option<Blocks>,
}

/// A loop over blocks. Unlike for a [`Loop`], the length is a number of blocks, and a repeated argument is a
/// block. It may also be a loop over arrays that are not repeated and do not overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    run: Loop,
    form: Form,
    arity: u8,
    /// The size of an element of each argument in bytes.
    arguments: [u8; 4],
    /// The size of an element of the value in bytes.
    value: u8,
    /// The binary logarithm of the number of elements.
    digits: u8,
}

/// The kind of loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The bodies are [`map_pairs`](super::bodies::map_pairs) and the corresponding functions.
    Blocks,
    /// The bodies are [`zip_pairs`](super::bodies::zip_pairs) and the corresponding functions.
    Arrays,
}

impl Form {
    /// Returns the form of loops over elements of these types.
    pub(super) const fn of<X: Number, V: Number>() -> Form {
        let is_complex = matches!(X::DTYPE, DType::Complex64 | DType::Complex128)
            || matches!(V::DTYPE, DType::Complex64 | DType::Complex128);
        if is_complex { Form::Arrays } else { Form::Blocks }
    }
}

/// Returns the number of elements in a block, given the sizes of the operands.
pub(super) const fn count(sizes: &[usize]) -> usize {
    let (mut largest, mut index) = (1, 0);
    while index < sizes.len() {
        if sizes[index] > largest {
            largest = sizes[index];
        }
        index += 1;
    }
    BLOCK / largest
}

/// Memory for an operand of a block.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Buffer(pub(super) [MaybeUninit<u8>; BLOCK]);

impl Buffer {
    /// An uninitialised buffer.
    pub(super) const EMPTY: Buffer = Buffer([MaybeUninit::uninit(); BLOCK]);

    /// Returns the address of the buffer.
    fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Fills the buffer with an element of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Safety
    /// The element must be readable and aligned. On x86, the processor must have AVX2: a loop that reads
    /// 256-bit vectors would stall after narrower stores.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    unsafe fn repeat(&mut self, element: *const u8, size: usize) {
        // SAFETY: passed on to the caller.
        let [low, high] = unsafe {
            match size {
                1 => [u64::from(element.read()) * (u64::MAX / 0xff); 2],
                2 => [u64::from(element.cast::<u16>().read()) * (u64::MAX / 0xffff); 2],
                4 => [u64::from(element.cast::<u32>().read()) * (u64::MAX / 0xffff_ffff); 2],
                8 => [element.cast::<u64>().read(); 2],
                _ => element.cast::<[u64; 2]>().read(),
            }
        };
        let places = self.0.as_mut_ptr().cast::<[u64; 4]>();
        for index in 0..BLOCK / 32 {
            // SAFETY: within the buffer, which is aligned.
            unsafe { places.add(index).write([low, high, low, high]) };
        }
    }

    /// Fills the buffer with `bytes` bytes, fewer than its size, and zeros, which are valid elements of every
    /// type.
    ///
    /// # Safety
    /// The bytes must be readable.
    #[inline]
    unsafe fn fill(&mut self, from: *const u8, bytes: usize) {
        *self = Buffer([MaybeUninit::new(0); BLOCK]);
        // SAFETY: passed on to the caller.
        unsafe { from.copy_to_nonoverlapping(self.0.as_mut_ptr().cast(), bytes) };
    }
}

impl From<Loop> for Routine {
    fn from(elements: Loop) -> Self {
        Routine { elements, blocks: None }
    }
}

impl Routine {
    /// Combines a loop over elements with a loop over blocks or arrays, if this processor has one. `value`
    /// and `arguments` are element sizes.
    pub(super) fn new(
        elements: Loop,
        (blocks, form): (Option<Loop>, Form),
        value: usize,
        arguments: &[usize],
    ) -> Self {
        let mut sizes = [0; 4];
        for (place, &size) in sizes.iter_mut().zip(arguments) {
            *place = size as u8;
        }
        let digits = count(arguments).min(count(&[value])).ilog2() as u8;
        let (arity, value) = (arguments.len() as u8, value as u8);
        let blocks = blocks.map(|run| Blocks { run, form, arity, arguments: sizes, value, digits });
        Routine { elements, blocks }
    }

    /// Computes `length` values.
    ///
    /// # Safety
    /// See [`Loop`].
    #[inline]
    pub unsafe fn call(
        &self,
        value: *mut u8,
        arguments: &[*const u8; 4],
        repeated: u32,
        length: usize,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            match &self.blocks {
                Some(blocks) if length > FEW => match blocks.form {
                    Form::Blocks => blocks.call(value, arguments, repeated, length),
                    Form::Arrays => blocks.call_arrays(value, arguments, repeated, length),
                },
                _ => (self.elements)(value, arguments, repeated, length),
            }
        }
    }
}

impl Blocks {
    /// # Safety
    /// See [`Loop`].
    unsafe fn call(
        &self,
        value: *mut u8,
        arguments: &[*const u8; 4],
        repeated: u32,
        length: usize,
    ) {
        let count = 1 << self.digits;
        let whole = length >> self.digits;
        let rest = length - (whole << self.digits);
        let last = length.saturating_sub(count);
        let mut buffers = [Buffer::EMPTY; 4];
        let (mut given, mut ends, mut in_place) = (*arguments, *arguments, false);
        for index in 0..usize::from(self.arity) {
            let (buffer, argument) = (&mut buffers[index], arguments[index]);
            let size = usize::from(self.arguments[index]);
            if repeated >> index & 1 == 1 {
                // SAFETY: passed on to the caller; on x86, there are loops over blocks only with AVX2.
                unsafe { buffer.repeat(argument, size) };
                (given[index], ends[index]) = (buffer.address(), buffer.address());
            } else if whole == 0 {
                // SAFETY: there are fewer elements than in a block.
                unsafe { buffer.fill(argument, length * size) };
                ends[index] = buffer.address();
            } else {
                ends[index] = argument.wrapping_add(last * size);
                in_place |= argument == value.cast_const();
            }
        }
        let size = usize::from(self.value);
        let end = value.wrapping_add(last * size);
        // SAFETY: passed on to the caller, for whole blocks. The last elements also form a block. Values that
        // are computed twice are the same both times. If the values overwrite arguments, this block is
        // computed first.
        unsafe {
            if whole == 0 || (rest > 0 && in_place) {
                let mut values = Buffer::EMPTY;
                (self.run)(values.0.as_mut_ptr().cast(), &ends, repeated, 1);
                if whole > 0 {
                    (self.run)(value, &given, repeated, whole);
                }
                match count.min(length) * size {
                    // A constant size compiles to move instructions instead of a call.
                    BLOCK => end.cast::<[MaybeUninit<u8>; BLOCK]>().write(values.0),
                    bytes => values.address().copy_to_nonoverlapping(end, bytes),
                }
            } else {
                (self.run)(value, &given, repeated, whole);
                if rest > 0 {
                    (self.run)(end, &ends, repeated, 1);
                }
            }
        }
    }

    /// Like `call`, for a loop over arrays. Part by part, this expands repeated arguments and copies
    /// arguments that the values overwrite.
    ///
    /// # Safety
    /// See [`Loop`].
    unsafe fn call_arrays(
        &self,
        value: *mut u8,
        arguments: &[*const u8; 4],
        repeated: u32,
        length: usize,
    ) {
        let arity = usize::from(self.arity);
        let is_copied = |index: usize| arguments[index] == value.cast_const();
        if repeated == 0 && !(0..arity).any(is_copied) {
            // SAFETY: passed on to the caller.
            return unsafe { (self.run)(value, arguments, 0, length) };
        }
        let mut parts = [[Buffer::EMPTY; PART]; 4];
        let most = PART << self.digits;
        for start in (0..length).step_by(most) {
            let count = most.min(length - start);
            let mut given = *arguments;
            for index in 0..arity {
                let size = usize::from(self.arguments[index]);
                let part = &mut parts[index];
                if repeated >> index & 1 == 1 {
                    let used = (count * size).div_ceil(BLOCK);
                    for buffer in part[..used].iter_mut().filter(|_| start == 0) {
                        // SAFETY: as in `call`.
                        unsafe { buffer.repeat(arguments[index], size) };
                    }
                    given[index] = part.as_ptr().cast();
                    continue;
                }
                given[index] = arguments[index].wrapping_add(start * size);
                if is_copied(index) {
                    // SAFETY: some of the elements; the part has room for them.
                    unsafe {
                        let to = part.as_mut_ptr().cast();
                        given[index].copy_to_nonoverlapping(to, count * size);
                    }
                    given[index] = part.as_ptr().cast();
                }
            }
            // SAFETY: passed on to the caller, for some of the elements.
            unsafe {
                (self.run)(value.add(start * usize::from(self.value)), &given, 0, count);
            }
        }
    }
}

/// A loop and its cost.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The loop.
    pub run: Routine,
    /// True if the loop is limited by memory rather than arithmetic.
    pub cheap: bool,
    /// True if an argument of the value's type may be overwritten by the value.
    pub in_place: bool,
}

/// The weight of an element in a loop that is limited by arithmetic.
pub(super) const EXPENSIVE: usize = 8;

impl Kernel {
    /// Returns the work for this number of elements, counted in elements of a cheap loop.
    #[inline]
    pub(super) fn work(&self, elements: usize) -> usize {
        if self.cheap { elements } else { elements.saturating_mul(EXPENSIVE) }
    }
}

/// Returns the error for a loop that this backend does not have.
#[cold]
pub(super) fn unsupported(what: String) -> Error {
    Error::unsupported("execute", format!("the host backend does not have {what}"))
}

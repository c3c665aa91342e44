//! Loops over blocks of elements, and calls of them for any number of elements in any arrangement.
//!
//! Of most loops there are hundreds, for functions, types and processors. So each is as small as it can
//! be: it computes whole blocks, whose number of elements the compiler knows, and has read a block's
//! arguments when it writes its values, so that these may take an argument's place. An argument that is
//! one element repeated is a block of it that is read again and again. What makes blocks of all else is
//! here, once for all loops.
//!
//! Complex numbers are too large for that: a block has so few of them that the compiler takes it for no loop,
//! and makes no vectors. Theirs, and a few others, are loops over arrays that are apart from each other
//! instead.

use super::multiversion::Loop;
use super::number::Number;
use hal::DType;
use std::mem::MaybeUninit;

/// Bytes of the widest operand of a block: four vectors of 256 bits, so that those of two arguments are
/// as many as there are registers.
const BLOCK: usize = 128;

/// Blocks of an argument that is copied for a loop over arrays.
const PART: usize = 16;

/// Elements for which to make blocks takes longer than a loop over elements.
const FEW: usize = 16;

/// How values are computed: by a loop over elements, and where vectors pay by one over blocks.
#[derive(Clone, Copy, Debug)]
pub struct Routine {
    elements: Loop,
    blocks: Option<Blocks>,
}

/// A loop over blocks, with the arguments of a [`Loop`] but for two: a number of blocks in place of the
/// length, and a block of each argument that is repeated. Or a loop over arrays that are apart and not
/// repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    run: Loop,
    form: Form,
    arity: u8,
    /// Bytes of an element of each argument.
    arguments: [u8; 4],
    /// Bytes of an element of the value.
    value: u8,
    /// The logarithm of the number of elements.
    digits: u8,
}

/// What a loop is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The bodies are [`map_pairs`](super::bodies::map_pairs) and its like.
    Blocks,
    /// The bodies are [`zip_pairs`](super::bodies::zip_pairs) and its like.
    Arrays,
}

impl Form {
    /// That of loops over elements of these types.
    pub(super) const fn of<X: Number, V: Number>() -> Form {
        let is_complex = matches!(X::DTYPE, DType::Complex64 | DType::Complex128)
            || matches!(V::DTYPE, DType::Complex64 | DType::Complex128);
        if is_complex { Form::Arrays } else { Form::Blocks }
    }
}

/// How many elements of these sizes are in a block.
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
    /// Without contents.
    pub(super) const EMPTY: Buffer = Buffer([MaybeUninit::uninit(); BLOCK]);

    /// Its address.
    fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Fills the buffer with an element of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Safety
    /// The element must be readable and aligned, and on x86 the processor must have AVX2: a loop that reads
    /// vectors of 256 bits waits for stores of fewer.
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

    /// Fills the buffer with so many bytes, fewer than it has, and zeros, which are elements of every type.
    ///
    /// # Safety
    /// They must be readable.
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
    /// A loop over elements, and one over blocks or arrays if this processor has one, of elements of these
    /// sizes: the value's, and those of each argument.
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
                // SAFETY: passed on to the caller; there are blocks on x86 only with AVX2.
                unsafe { buffer.repeat(argument, size) };
                (given[index], ends[index]) = (buffer.address(), buffer.address());
            } else if whole == 0 {
                // SAFETY: fewer elements than a block's.
                unsafe { buffer.fill(argument, length * size) };
                ends[index] = buffer.address();
            } else {
                ends[index] = argument.wrapping_add(last * size);
                in_place |= argument == value.cast_const();
            }
        }
        let size = usize::from(self.value);
        let end = value.wrapping_add(last * size);
        // SAFETY: passed on to the caller, for whole blocks. The last elements are a block, too. Its values
        // are the same where they have been computed twice; it is computed first if the values of others
        // take the place of its arguments.
        unsafe {
            if whole == 0 || (rest > 0 && in_place) {
                let mut values = Buffer::EMPTY;
                (self.run)(values.0.as_mut_ptr().cast(), &ends, repeated, 1);
                if whole > 0 {
                    (self.run)(value, &given, repeated, whole);
                }
                match count.min(length) * size {
                    // By moves of the processor in place of a call.
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

    /// The same for a loop over arrays: spreads what is repeated, and copies what the values take the place
    /// of, part by part.
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
                    // SAFETY: some of the elements; the part has room for as many.
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

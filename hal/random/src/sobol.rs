//! Sobol's sequence: direction vectors, scrambling, states.
//!
//! A state has the words of cuRAND's structures: the index of the next point, its value, the
//! constant of the digital shift, and the direction vectors. A 64-bit generator has pairs of words,
//! the lower half first.

use crate::with_room;
use std::collections::TryReserveError;
use std::sync::OnceLock;

/// The number of dimensions with known direction vectors.
pub const DIMENSIONS: usize = 21_201;

/// Degrees, polynomials and initial numbers; `joe_kuo.py` describes the format.
static TABLE: &[u8] = include_bytes!("joe_kuo.bin");

/// A reader of bit fields.
struct Fields {
    /// The position in bits.
    position: usize,
}

impl Fields {
    fn next(&mut self, bits: usize) -> u64 {
        let (first, shift) = (self.position / 8, self.position % 8);
        self.position += bits;
        let bytes = TABLE[first..].iter().take(8).rev();
        let word = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
        word >> shift & ((1 << bits) - 1)
    }
}

/// Returns the direction vectors of a dimension of degree `s`, by its recurrence.
fn dimension(fields: &mut Fields) -> [u64; 64] {
    let degree = fields.next(5) as usize;
    let inner = fields.next(degree - 1);
    let mut vectors = [0; 64];
    for (j, vector) in vectors.iter_mut().enumerate().take(degree) {
        *vector = (fields.next(j) << 1 | 1) << (63 - j);
    }
    for j in degree..64 {
        let far = vectors[j - degree];
        let near = (1..degree).filter(|k| inner >> (degree - 1 - k) & 1 != 0);
        vectors[j] = near.fold(far ^ far >> degree, |sum, k| sum ^ vectors[j - k]);
    }
    vectors
}

/// Returns a word that depends on all bits of `x`: S. Vigna's splitmix64.
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Multiplies digits by a random lower triangular matrix with ones on its diagonal (J. Matoušek,
/// "On the L2-discrepancy for anchored boxes", 1998): each digit is added to random later digits.
fn scramble(index: usize, vectors: &mut [u64; 64]) {
    let columns: [u64; 64] = std::array::from_fn(|digit| {
        let own = 1 << (63 - digit);
        own | mix((index as u64) << 8 | digit as u64) & (own - 1)
    });
    for vector in vectors {
        let mut left = *vector;
        *vector = 0;
        while left != 0 {
            *vector ^= columns[left.leading_zeros() as usize];
            left &= !(1 << (63 - left.leading_zeros()));
        }
    }
}

/// Returns the direction vectors of the first `count` dimensions, 64 for each, as 64-bit fractions.
/// The 32-bit vectors are the upper halves of the first 32. Returns `None` above [`DIMENSIONS`].
///
/// # Errors
/// If memory for the vectors cannot be allocated.
pub fn direction_vectors(
    count: usize,
    scrambled: bool,
) -> Result<Option<Vec<[u64; 64]>>, TryReserveError> {
    static PLAIN: OnceLock<Vec<[u64; 64]>> = OnceLock::new();
    let plain = match PLAIN.get() {
        Some(plain) => plain,
        None => {
            let mut fields = Fields { position: 0 };
            let mut made = with_room(DIMENSIONS)?;
            made.push(std::array::from_fn(|j| 1 << (63 - j)));
            made.extend((1..DIMENSIONS).map(|_| dimension(&mut fields)));
            PLAIN.get_or_init(|| made)
        }
    };
    let Some(plain) = plain.get(..count) else { return Ok(None) };
    let mut vectors = with_room(count)?;
    vectors.extend_from_slice(plain);
    if scrambled {
        vectors.iter_mut().enumerate().for_each(|(index, it)| scramble(index, it));
    }
    Ok(Some(vectors))
}

/// Returns the constants of the digital shifts of the first `count` dimensions. The 32-bit
/// constants are their upper halves.
///
/// # Errors
/// If memory for the constants cannot be allocated.
pub fn scramble_constants(count: usize) -> Result<Vec<u64>, TryReserveError> {
    let mut constants = with_room(count)?;
    constants.extend((0..count as u64).map(|index| mix(index << 8 | 0xff)));
    Ok(constants)
}

/// Reads a number of `bits` bits from its words.
#[inline]
fn get(words: &[u32], bits: usize, position: usize) -> u64 {
    if bits == 32 {
        return u64::from(words[position]);
    }
    u64::from(words[2 * position]) | u64::from(words[2 * position + 1]) << 32
}

#[inline]
fn set(words: &mut [u32], bits: usize, position: usize, value: u64) {
    if bits == 32 {
        words[position] = value as u32;
        return;
    }
    words[2 * position] = value as u32;
    words[2 * position + 1] = (value >> 32) as u32;
}

/// Returns the states of `bits`-bit dimensions at point `offset`, from the words of their direction
/// vectors and shifts; omitted shifts are zero. Returns an empty vector if `bits` is neither 32 nor
/// 64.
///
/// # Errors
/// If memory for the states cannot be allocated.
pub fn states(
    bits: usize,
    vectors: &[u32],
    shifts: Option<&[u32]>,
    offset: u64,
) -> Result<Vec<u32>, TryReserveError> {
    if ![32, 64].contains(&bits) {
        return Ok(Vec::new());
    }
    let width = bits / 32;
    let mut states = with_room(vectors.len().saturating_add(vectors.len() / bits * 3))?;
    for (index, words) in vectors.chunks_exact(bits * width).enumerate() {
        let zero = [0, 0];
        let given = shifts.and_then(|shifts| shifts.get(index * width..(index + 1) * width));
        let shift = given.unwrap_or(&zero[..width]);
        for part in [&zero[..width], shift, shift, words] {
            states.extend_from_slice(part);
        }
    }
    skip(&mut states, bits, |_| offset);
    Ok(states)
}

pub(crate) fn skip(states: &mut [u32], bits: usize, amount: impl Fn(usize) -> u64) {
    for (index, state) in states.chunks_exact_mut((3 + bits) * bits / 32).enumerate() {
        let mask = !0 >> (64 - bits);
        let point = get(state, bits, 0).wrapping_add(amount(index)) & mask;
        let mut gray = point ^ point >> 1;
        let mut value = get(state, bits, 2);
        while gray != 0 {
            value ^= get(state, bits, 3 + gray.trailing_zeros() as usize);
            gray &= gray - 1;
        }
        set(state, bits, 0, point);
        set(state, bits, 1, value);
    }
}

/// Returns the value of the next point of a state and advances it.
#[inline(always)]
pub fn step(state: &mut [u32], bits: usize) -> u64 {
    let (point, value) = (get(state, bits, 0), get(state, bits, 1));
    let changed = point.trailing_ones().min(bits as u32 - 1) as usize;
    set(state, bits, 1, value ^ get(state, bits, 3 + changed));
    set(state, bits, 0, point.wrapping_add(1));
    value
}

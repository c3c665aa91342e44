//! MRG32k3a: two recurrences of order three modulo primes near 2^32.

use crate::tables::{
    MRG_A12 as A12, MRG_A13 as A13, MRG_A21 as A21, MRG_A23 as A23, MRG_M1 as M1, MRG_M2 as M2,
    MRG_UNIT, MRG_WORD,
};
use crate::{Jump, with_room};
use std::collections::TryReserveError;
use std::sync::OnceLock;

/// The number of words per state: three for each recurrence, and six that only cuRAND's own kernels
/// use.
pub const WORDS: usize = 12;

/// The number of draws of a subsequence and of a sequence, as powers of two.
const SUBSEQUENCE: usize = 76;
const SEQUENCE: usize = 127;

type Matrix = [[u64; 3]; 3];

/// Returns `x` modulo `2^32 - rest`, for `x` below 2^54 and `rest` below 2^15.
#[inline(always)]
fn reduce(x: u64, rest: u64) -> u64 {
    let x = (x >> 32) * rest + (x & 0xffff_ffff);
    let x = (x >> 32) * rest + (x & 0xffff_ffff);
    let modulus = (1 << 32) - rest;
    if x >= modulus { x - modulus } else { x }
}

/// Advances both recurrences and returns the draw, a number from 1 to 2^32 - 209.
#[inline(always)]
pub fn step(s: &mut [u32; 6]) -> u32 {
    let [s0, s1, s2, t0, t1, t2] = s.map(u64::from);
    // A program's own state may exceed its modulus.
    let product =
        |a: u64, x: u64, b: u64, y: u64| a.wrapping_mul(x).wrapping_add(b.wrapping_mul(y));
    let p = reduce(product(A12, s1, A13, M1.wrapping_sub(s0)), (1 << 32) - M1);
    let q = reduce(product(A21, t2, A23, M2.wrapping_sub(t0)), (1 << 32) - M2);
    *s = [s1, s2, p, t1, t2, q].map(|word| word as u32);
    let difference = p + M1 - q;
    (if p > q { difference - M1 } else { difference }) as u32
}

fn product(a: &Matrix, b: &Matrix, modulus: u64) -> Matrix {
    let entry = |row: usize, column: usize| {
        (0..3).fold(0, |sum, k| (sum + a[row][k] * b[k][column] % modulus) % modulus)
    };
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| entry(row, column)))
}

/// Returns the matrices of 2^0, 2^1, ... steps of both recurrences.
fn powers() -> &'static [[Matrix; 2]] {
    static POWERS: OnceLock<Vec<[Matrix; 2]>> = OnceLock::new();
    POWERS.get_or_init(|| {
        let one = [
            [[0, 1, 0], [0, 0, 1], [M1 - A13, A12, 0]],
            [[0, 1, 0], [0, 0, 1], [M2 - A23, 0, A21]],
        ];
        let next = |[a, b]: &[Matrix; 2]| Some([product(a, a, M1), product(b, b, M2)]);
        std::iter::successors(Some(one), next).take(SEQUENCE + 64).collect()
    })
}

fn apply(matrix: &Matrix, s: &mut [u32], modulus: u64) {
    let old = [s[0], s[1], s[2]].map(u64::from);
    for (word, row) in s.iter_mut().zip(matrix) {
        let terms = row.iter().zip(old).map(|(&factor, word)| factor * word % modulus);
        *word = (terms.sum::<u64>() % modulus) as u32;
    }
}

pub(crate) fn skip(states: &mut [u32], jump: Jump, amount: impl Fn(usize) -> u64) {
    let first = match jump {
        Jump::Draws => 0,
        Jump::Subsequences => SUBSEQUENCE,
        Jump::Sequences => SEQUENCE,
    };
    for (index, state) in states.chunks_exact_mut(WORDS).enumerate() {
        let mut left = amount(index);
        while left != 0 {
            let [a, b] = &powers()[first + left.trailing_zeros() as usize];
            apply(a, &mut state[..3], M1);
            apply(b, &mut state[3..6], M2);
            left &= left - 1;
        }
    }
}

pub(crate) fn seeded(seeds: &[u32], offset: u64) -> Result<Vec<u32>, TryReserveError> {
    let mut states = with_room(seeds.len().saturating_mul(WORDS))?;
    for &seed in seeds {
        // Seed 0 gives the state of the publication. Other seeds are mixed as cuRAND mixes 64-bit
        // seeds with a zero upper half.
        let [x, y] = if seed == 0 { [1, 1] } else { [seed ^ 0x5555_5555, 0xaaaa_aaaa] };
        let times = |factor: u32, modulus: u64| (u64::from(factor) * 12345 % modulus) as u32;
        states.extend([times(x, M1), times(y, M1), times(x, M1)]);
        states.extend([times(y, M2), times(x, M2), times(y, M2)]);
        states.extend([0; WORDS - 6]);
    }
    skip(&mut states, Jump::Subsequences, |index| index as u64);
    skip(&mut states, Jump::Draws, |_| offset);
    Ok(states)
}

/// Returns the 32-bit word for a draw.
#[inline(always)]
pub fn word(draw: u32) -> u32 {
    (f64::from(draw) * MRG_WORD) as u32
}

/// Returns the number in (0, 1) for a draw: the draw divided by 2^32 - 208.
#[inline(always)]
pub fn unit(draw: u32) -> f64 {
    f64::from(draw) * MRG_UNIT
}

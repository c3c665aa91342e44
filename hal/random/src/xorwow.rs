//! XORWOW: a linear recurrence of 160 bits over GF(2), plus a Weyl sequence.
//!
//! A jump of the linear part is a power of its matrix. The matrices for powers of two are computed
//! at first use.

use crate::tables::XORWOW_WEYL;
use crate::{Jump, with_room};
use std::collections::TryReserveError;
use std::sync::OnceLock;

/// The number of words per state: the Weyl sequence, five words of the recurrence, and six that
/// only cuRAND's own kernels use.
pub const WORDS: usize = 12;

/// The step of the Weyl sequence.
pub const WEYL: u32 = XORWOW_WEYL;

/// The number of draws of a sequence, as a power of two.
const SEQUENCE: usize = 67;

type Vector = [u32; 5];

/// Advances the recurrence by one step.
#[inline(always)]
pub fn step(v: &mut Vector) {
    let t = v[0] ^ (v[0] >> 2);
    let last = v[4];
    *v = [v[1], v[2], v[3], last, last ^ (last << 4) ^ t ^ (t << 1)];
}

/// A linear map of the recurrence's 160 bits: its value for each value of each group of four bits.
struct Map(Box<[[Vector; 16]; 40]>);

impl Map {
    /// Returns the map with these values of the unit vectors.
    fn new(unit: impl Fn(usize) -> Vector) -> Map {
        let mut groups = Box::new([[[0; 5]; 16]; 40]);
        for (group, values) in groups.iter_mut().enumerate() {
            for bit in 0..4 {
                let image = unit(group * 4 + bit);
                for low in 0..1 << bit {
                    values[1 << bit | low] = add(values[low], image);
                }
            }
        }
        Map(groups)
    }

    #[inline]
    fn apply(&self, v: Vector) -> Vector {
        let mut sum = [0; 5];
        for (word, groups) in v.into_iter().zip(self.0.as_chunks::<8>().0) {
            for (group, values) in groups.iter().enumerate() {
                sum = add(sum, values[(word >> (group * 4) & 15) as usize]);
            }
        }
        sum
    }

    fn squared(&self) -> Map {
        Map::new(|bit| self.apply(self.0[bit / 4][1 << (bit % 4)]))
    }
}

#[inline(always)]
fn add(a: Vector, b: Vector) -> Vector {
    [a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3], a[4] ^ b[4]]
}

/// Returns the maps of 2^0, 2^1, ... steps.
fn powers() -> &'static [Map] {
    static POWERS: OnceLock<Vec<Map>> = OnceLock::new();
    POWERS.get_or_init(|| {
        let one = Map::new(|bit| {
            let mut unit = [0; 5];
            unit[bit / 32] = 1 << (bit % 32);
            step(&mut unit);
            unit
        });
        let next = |map: &Map| Some(map.squared());
        std::iter::successors(Some(one), next).take(SEQUENCE + 64).collect()
    })
}

fn advance(state: &mut [u32], jump: Jump, amount: u64) {
    let Some((weyl, rest)) = state.split_first_mut() else { return };
    let Some(v) = rest.first_chunk_mut::<5>() else { return };
    // A sequence is a multiple of 2^32 draws, so the Weyl sequence is unchanged.
    let first = if jump == Jump::Draws { 0 } else { SEQUENCE };
    if jump == Jump::Draws {
        *weyl = weyl.wrapping_add(WEYL.wrapping_mul(amount as u32));
    }
    let mut left = amount;
    while left != 0 {
        *v = powers()[first + left.trailing_zeros() as usize].apply(*v);
        left &= left - 1;
    }
}

pub(crate) fn skip(states: &mut [u32], jump: Jump, amount: impl Fn(usize) -> u64) {
    for (index, state) in states.chunks_exact_mut(WORDS).enumerate() {
        advance(state, jump, amount(index));
    }
}

pub(crate) fn seeded(seeds: &[u32], offset: u64) -> Result<Vec<u32>, TryReserveError> {
    let mut states = with_room(seeds.len().saturating_mul(WORDS))?;
    for &seed in seeds {
        // The same mixing as in cuRAND, for a 64-bit seed with a zero upper half.
        let low = (seed ^ 0xaad2_6b49).wrapping_mul(1_099_087_573);
        let high = 0xf7dc_efdd_u32.wrapping_mul(2_591_861_531);
        states.extend([
            6_615_241_u32.wrapping_add(low).wrapping_add(high),
            123_456_789_u32.wrapping_add(low),
            362_436_069 ^ low,
            521_288_629_u32.wrapping_add(high),
            88_675_123 ^ high,
            5_783_321_u32.wrapping_add(low),
        ]);
        states.extend([0; WORDS - 6]);
    }
    skip(&mut states, Jump::Sequences, |index| index as u64);
    skip(&mut states, Jump::Draws, |_| offset);
    Ok(states)
}

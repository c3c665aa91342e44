//! Philox4x32-10: a block of four words for each value of a counter (J. Salmon, M. Moraes, R. Dror
//! and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).

use crate::tables::{PHILOX_FIRST, PHILOX_FIRST_STEP, PHILOX_SECOND, PHILOX_SECOND_STEP};

/// Returns the words for a 128-bit counter and a 64-bit key.
#[inline(always)]
pub fn block(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k, mut l] = key;
    for _ in 0..10 {
        let x = u64::from(a) * u64::from(PHILOX_FIRST);
        let y = u64::from(c) * u64::from(PHILOX_SECOND);
        (a, b, c, d) = ((y >> 32) as u32 ^ b ^ k, y as u32, (x >> 32) as u32 ^ d ^ l, x as u32);
        k = k.wrapping_add(PHILOX_FIRST_STEP);
        l = l.wrapping_add(PHILOX_SECOND_STEP);
    }
    [a, b, c, d]
}

/// Returns block `index` of the sequence of a seed.
#[inline(always)]
pub fn nth(index: u64, seed: u64) -> [u32; 4] {
    block([index as u32, (index >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])
}

#[cfg(test)]
mod tests {
    use super::block;

    /// The test vectors of the authors' library Random123.
    #[test]
    fn published_values() {
        let zeros = block([0; 4], [0; 2]);
        assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = block([!0; 4], [!0; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let digits_of_pi = block(counter, [0xa409_3822, 0x299f_31d0]);
        assert_eq!(digits_of_pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}

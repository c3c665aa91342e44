//! Vectors of integers that sort: a network for few elements, and the division of many by a pivot.

use std::arch::x86_64::*;

/// The most rows of a block that [`sort_block`] sorts.
const ROWS: usize = 16;

/// A vector of integers.
///
/// # Safety
/// `LANES` must be the number of lanes. The functions require AVX2, and memory of `LANES` integers.
pub(super) unsafe trait Vector: Copy {
    /// The integer of a lane.
    type Word: Copy + Ord;
    /// The greatest integer.
    const GREATEST: Self::Word;
    /// The number of lanes.
    const LANES: usize;
    /// The number of elements that [`sort_block`] sorts.
    const BLOCK: usize = ROWS * Self::LANES;

    /// Reads a vector.
    unsafe fn load(from: *const Self::Word) -> Self;
    /// Writes the vector.
    unsafe fn store(self, to: *mut Self::Word);
    /// Repeats a value.
    unsafe fn splat(value: Self::Word) -> Self;
    /// Returns a bit for each lane that is greater than the other vector's lane.
    unsafe fn above(self, other: Self) -> usize;
    /// Returns the lesser and the greater value of each lane.
    unsafe fn ordered(self, other: Self) -> (Self, Self);
    /// Returns a vector whose lane `i` is the lane `i ^ distance`.
    unsafe fn mirrored<const DISTANCE: usize>(self) -> Self;
    /// Returns `self` with the lanes of `other` whose index has the bit set.
    unsafe fn blend<const BIT: usize>(self, other: Self) -> Self;
    /// Moves the lanes of a mask after the others.
    unsafe fn divided(self, mask: usize) -> Self;
    /// Writes `LANES` vectors, `step` apart, that consist of the first lanes of some vectors, the second ones, and so
    /// on.
    unsafe fn store_columns(rows: &[Self], to: *mut Self::Word, step: usize);
}

/// Returns for each mask of lanes the order of 32-bit parts that moves the lanes of the mask after the others. A
/// lane has `parts` parts.
const fn orders<const MASKS: usize>(parts: usize) -> [[u8; 8]; MASKS] {
    let mut orders = [[0; 8]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let mut place = 0;
        let mut side = 0;
        while side < 2 {
            let mut part = 0;
            while part < 8 {
                if mask >> (part / parts) & 1 == side {
                    orders[mask][place] = part as u8;
                    place += 1;
                }
                part += 1;
            }
            side += 1;
        }
        mask += 1;
    }
    orders
}

static ORDERS_OF_8: [[u8; 8]; 256] = orders(1);
static ORDERS_OF_4: [[u8; 8]; 16] = orders(2);

/// The functions that both types have in common, apart from names.
macro_rules! common {
    ($splat:ident, $compare:ident, $bits:ident($cast:ident), $orders:ident) => {
        #[inline(always)]
        unsafe fn load(from: *const Self::Word) -> Self {
            // SAFETY: passed on to the caller.
            Self(unsafe { _mm256_loadu_si256(from.cast()) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut Self::Word) {
            // SAFETY: passed on to the caller.
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn splat(value: Self::Word) -> Self {
            // SAFETY: passed on to the caller.
            Self(unsafe { $splat(value) })
        }
        #[inline(always)]
        unsafe fn above(self, other: Self) -> usize {
            // SAFETY: passed on to the caller.
            unsafe { $bits($cast($compare(self.0, other.0))) as usize }
        }
        #[inline(always)]
        unsafe fn divided(self, mask: usize) -> Self {
            let order = $orders[mask % $orders.len()].as_ptr();
            // SAFETY: passed on to the caller; an order has eight bytes.
            Self(unsafe {
                let order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(order.cast()));
                _mm256_permutevar8x32_epi32(self.0, order)
            })
        }
    };
}

/// Eight 32-bit integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eight(__m256i);

// SAFETY: eight lanes, and AVX2.
unsafe impl Vector for Eight {
    type Word = i32;
    const GREATEST: i32 = i32::MAX;
    const LANES: usize = 8;
    common!(
        _mm256_set1_epi32,
        _mm256_cmpgt_epi32,
        _mm256_movemask_ps(_mm256_castsi256_ps),
        ORDERS_OF_8
    );

    #[inline(always)]
    unsafe fn ordered(self, other: Self) -> (Self, Self) {
        let (x, y) = (self.0, other.0);
        // SAFETY: passed on to the caller.
        unsafe { (Eight(_mm256_min_epi32(x, y)), Eight(_mm256_max_epi32(x, y))) }
    }
    #[inline(always)]
    unsafe fn mirrored<const DISTANCE: usize>(self) -> Self {
        // SAFETY: passed on to the caller.
        Eight(unsafe {
            let halves =
                if DISTANCE & 4 == 0 { self.0 } else { _mm256_permute4x64_epi64::<0x4e>(self.0) };
            match DISTANCE & 3 {
                0 => halves,
                1 => _mm256_shuffle_epi32::<0xb1>(halves),
                2 => _mm256_shuffle_epi32::<0x4e>(halves),
                _ => _mm256_shuffle_epi32::<0x1b>(halves),
            }
        })
    }
    #[inline(always)]
    unsafe fn blend<const BIT: usize>(self, other: Self) -> Self {
        let (x, y) = (self.0, other.0);
        // SAFETY: passed on to the caller.
        Eight(unsafe {
            match BIT {
                1 => _mm256_blend_epi32::<0xaa>(x, y),
                2 => _mm256_blend_epi32::<0xcc>(x, y),
                _ => _mm256_blend_epi32::<0xf0>(x, y),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_columns(rows: &[Self], to: *mut i32, step: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let upper = four_columns(rows[0].0, rows[1].0, rows[2].0, rows[3].0);
            let lower = four_columns(rows[4].0, rows[5].0, rows[6].0, rows[7].0);
            for column in 0..4 {
                let (x, y) = (upper[column], lower[column]);
                Eight(_mm256_permute2x128_si256::<0x20>(x, y)).store(to.add(column * step));
                Eight(_mm256_permute2x128_si256::<0x31>(x, y)).store(to.add((column + 4) * step));
            }
        }
    }
}

/// Four 64-bit integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Four(__m256i);

// SAFETY: four lanes, and AVX2.
unsafe impl Vector for Four {
    type Word = i64;
    const GREATEST: i64 = i64::MAX;
    const LANES: usize = 4;
    common!(
        _mm256_set1_epi64x,
        _mm256_cmpgt_epi64,
        _mm256_movemask_pd(_mm256_castsi256_pd),
        ORDERS_OF_4
    );

    #[inline(always)]
    unsafe fn ordered(self, other: Self) -> (Self, Self) {
        let (x, y) = (self.0, other.0);
        // SAFETY: passed on to the caller.
        unsafe {
            let above = _mm256_cmpgt_epi64(x, y);
            (Four(_mm256_blendv_epi8(x, y, above)), Four(_mm256_blendv_epi8(y, x, above)))
        }
    }
    #[inline(always)]
    unsafe fn mirrored<const DISTANCE: usize>(self) -> Self {
        // SAFETY: passed on to the caller.
        Four(unsafe {
            match DISTANCE {
                1 => _mm256_shuffle_epi32::<0x4e>(self.0),
                2 => _mm256_permute4x64_epi64::<0x4e>(self.0),
                _ => _mm256_permute4x64_epi64::<0x1b>(self.0),
            }
        })
    }
    #[inline(always)]
    unsafe fn blend<const BIT: usize>(self, other: Self) -> Self {
        let (x, y) = (self.0, other.0);
        // SAFETY: passed on to the caller.
        Four(unsafe {
            match BIT {
                1 => _mm256_blend_epi32::<0xcc>(x, y),
                _ => _mm256_blend_epi32::<0xf0>(x, y),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_columns(rows: &[Self], to: *mut i64, step: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let upper = two_columns(rows[0].0, rows[1].0);
            let lower = two_columns(rows[2].0, rows[3].0);
            for column in 0..2 {
                let (x, y) = (upper[column], lower[column]);
                Four(_mm256_permute2x128_si256::<0x20>(x, y)).store(to.add(column * step));
                Four(_mm256_permute2x128_si256::<0x31>(x, y)).store(to.add((column + 2) * step));
            }
        }
    }
}

/// Returns the first and the second 64-bit integer of each half of two vectors.
#[inline(always)]
unsafe fn two_columns(x: __m256i, y: __m256i) -> [__m256i; 2] {
    // SAFETY: passed on to the caller.
    unsafe { [_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y)] }
}

/// Returns the first to the fourth 32-bit integer of each half of four vectors.
#[inline(always)]
unsafe fn four_columns(x: __m256i, y: __m256i, z: __m256i, w: __m256i) -> [__m256i; 4] {
    // SAFETY: passed on to the caller.
    unsafe {
        let first = two_columns(_mm256_unpacklo_epi32(x, y), _mm256_unpacklo_epi32(z, w));
        let last = two_columns(_mm256_unpackhi_epi32(x, y), _mm256_unpackhi_epi32(z, w));
        [first[0], first[1], last[0], last[1]]
    }
}

/// Orders the rows of a block `K` apart, for one step of Batcher's odd-even merge of columns of `P` rows.
#[inline(always)]
unsafe fn merge_columns<V: Vector, const R: usize, const P: usize, const K: usize>(
    rows: &mut [V; R],
) {
    for row in K % P..R.saturating_sub(K) {
        if ((row - K % P) / K).is_multiple_of(2) && row / (2 * P) == (row + K) / (2 * P) {
            // SAFETY: passed on to the caller.
            (rows[row], rows[row + K]) = unsafe { rows[row].ordered(rows[row + K]) };
        }
    }
}

/// Sorts each column of a block of up to 16 rows.
#[inline(always)]
unsafe fn sort_columns<V: Vector, const R: usize>(rows: &mut [V; R]) {
    // SAFETY: passed on to the caller.
    unsafe {
        merge_columns::<V, R, 1, 1>(rows);
        merge_columns::<V, R, 2, 2>(rows);
        merge_columns::<V, R, 2, 1>(rows);
        merge_columns::<V, R, 4, 4>(rows);
        merge_columns::<V, R, 4, 2>(rows);
        merge_columns::<V, R, 4, 1>(rows);
        merge_columns::<V, R, 8, 8>(rows);
        merge_columns::<V, R, 8, 4>(rows);
        merge_columns::<V, R, 8, 2>(rows);
        merge_columns::<V, R, 8, 1>(rows);
    }
}

/// Orders lanes that are `D` apart.
#[inline(always)]
unsafe fn order_lanes<V: Vector, const R: usize, const D: usize>(rows: &mut [V; R]) {
    for row in rows {
        // SAFETY: passed on to the caller.
        *row = unsafe {
            let (less, greater) = row.ordered(row.mirrored::<D>());
            less.blend::<D>(greater)
        };
    }
}

/// Orders rows that are `D` apart.
#[inline(always)]
unsafe fn order_rows<V: Vector, const R: usize, const D: usize>(rows: &mut [V; R]) {
    for row in (0..R.saturating_sub(D)).filter(|row| row & D == 0) {
        // SAFETY: passed on to the caller.
        (rows[row], rows[row + D]) = unsafe { rows[row].ordered(rows[row + D]) };
    }
}

/// Merges sorted groups of columns pairwise. `SPAN` is the number of columns of a pair less one, and `HALF` that of
/// one group. This is a bitonic merge: it first compares each element with the element at the mirrored place.
#[inline(always)]
unsafe fn merge_groups<V: Vector, const R: usize, const HALF: usize, const SPAN: usize>(
    rows: &mut [V; R],
) {
    if SPAN >= V::LANES {
        return;
    }
    // SAFETY: passed on to the caller.
    unsafe {
        for row in 0..R / 2 {
            let other = R - 1 - row;
            let (less, greater) = rows[row].ordered(rows[other].mirrored::<SPAN>());
            rows[row] = less.blend::<HALF>(greater);
            rows[other] = greater.blend::<HALF>(less).mirrored::<SPAN>();
        }
        if HALF == 4 {
            order_lanes::<V, R, 2>(rows);
        }
        if HALF >= 2 {
            order_lanes::<V, R, 1>(rows);
        }
        order_rows::<V, R, 8>(rows);
        order_rows::<V, R, 4>(rows);
        order_rows::<V, R, 2>(rows);
        order_rows::<V, R, 1>(rows);
    }
}

/// Sorts up to `R * V::LANES` elements: as columns, which are then merged.
///
/// # Safety
/// See [`sort_block`].
#[target_feature(enable = "avx2")]
unsafe fn sort_rows<V: Vector, const R: usize>(
    from: *const V::Word,
    length: usize,
    to: *mut V::Word,
) {
    // Not more than 16 rows of eight lanes.
    let mut space = [V::GREATEST; ROWS * 8];
    let (whole, rest) = (length / V::LANES, length % V::LANES);
    // SAFETY: passed on to the caller; the space has `R` rows.
    unsafe {
        let mut rows = [V::splat(V::GREATEST); R];
        for (row, elements) in rows.iter_mut().enumerate().take(whole) {
            *elements = V::load(from.add(row * V::LANES));
        }
        if rest != 0 {
            from.add(length - rest).copy_to_nonoverlapping(space.as_mut_ptr(), rest);
            rows[whole] = V::load(space.as_ptr());
        }
        sort_columns(&mut rows);
        merge_groups::<V, R, 1, 1>(&mut rows);
        merge_groups::<V, R, 2, 3>(&mut rows);
        merge_groups::<V, R, 4, 7>(&mut rows);
        if length == R * V::LANES && R >= V::LANES {
            return store_block(&rows, to);
        }
        if R >= V::LANES {
            store_block(&rows, space.as_mut_ptr());
            return to.copy_from_nonoverlapping(space.as_ptr(), length);
        }
        for (row, elements) in rows.into_iter().enumerate() {
            elements.store(space.as_mut_ptr().add(row * V::LANES));
        }
        for place in 0..length {
            to.add(place).write(space[place % R * V::LANES + place / R]);
        }
    }
}

/// Writes the columns of a block one after another.
#[inline(always)]
unsafe fn store_block<V: Vector, const R: usize>(rows: &[V; R], to: *mut V::Word) {
    for (number, rows) in rows.chunks_exact(V::LANES).enumerate() {
        // SAFETY: passed on to the caller.
        unsafe { V::store_columns(rows, to.add(number * V::LANES), R) };
    }
}

/// Sorts up to `V::BLOCK` elements from one place to another, which may be the same.
///
/// # Safety
/// The processor must have AVX2, and both places must have this number of elements.
pub(super) unsafe fn sort_block<V: Vector>(from: *const V::Word, length: usize, to: *mut V::Word) {
    debug_assert!(length <= V::BLOCK);
    // SAFETY: passed on to the caller.
    unsafe {
        match length.div_ceil(V::LANES) {
            0..=2 => sort_rows::<V, 2>(from, length, to),
            3..=4 => sort_rows::<V, 4>(from, length, to),
            5..=8 => sort_rows::<V, 8>(from, length, to),
            _ => sort_rows::<V, ROWS>(from, length, to),
        }
    }
}

/// Moves elements that are greater than the pivot to the end of `other`, and the rest to the beginning of
/// `elements`, except the elements after the last whole vector. Returns the first of these, the number of the rest, and
/// the place before which the next greater element goes. Other places have any values afterwards.
///
/// # Safety
/// The processor must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn divide<V: Vector>(
    elements: &mut [V::Word],
    other: &mut [V::Word],
    pivot: V::Word,
) -> [usize; 3] {
    let whole = elements.len() - elements.len() % V::LANES;
    let other = &mut other[..elements.len()];
    let (mut left, mut right) = (0, elements.len());
    // SAFETY: the vectors before `start` have been read, and as many elements have been written. So both a vector
    // at `left` and a vector that ends at `right` are in bounds, and overwrite nothing that is needed.
    unsafe {
        let pivots = V::splat(pivot);
        for start in (0..whole).step_by(V::LANES) {
            let vector = V::load(elements.as_ptr().add(start));
            let mask = vector.above(pivots);
            let divided = vector.divided(mask);
            divided.store(elements.as_mut_ptr().add(left));
            divided.store(other.as_mut_ptr().add(right - V::LANES));
            let above = mask.count_ones() as usize;
            (left, right) = (left + V::LANES - above, right - above);
        }
    }
    [whole, left, right]
}

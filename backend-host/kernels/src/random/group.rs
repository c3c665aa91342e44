//! Groups of generators' states that draw their numbers together, one state per lane.

use random::distribution::{join, open64, unit32, unit64, unit64_of_word};
use random::{mrg32k3a, sobol, xorwow};

/// The number of states that draw together.
pub(super) const LANES: usize = 256;

/// The states of a group, at most [`LANES`], in registers or in place. A drawing method draws for the first
/// `drawn` states, and calls `each` with a lane's index and its number.
pub(super) trait Group {
    /// True for pseudorandom generators, which make normally distributed numbers from pairs of words. False
    /// for Sobol's sequence.
    const IS_PSEUDO: bool;

    fn load(states: &mut [u32]) -> Self;

    /// Draws the bits of one draw, in the upper bits of a 64-bit word.
    fn raw(&mut self, drawn: usize, each: impl FnMut(usize, u64));

    /// Draws uniform numbers in (0, 1].
    fn uniform32(&mut self, drawn: usize, each: impl FnMut(usize, f32));
    fn uniform64(&mut self, drawn: usize, each: impl FnMut(usize, f64));

    /// Draws uniform numbers in (0, 1).
    fn open(&mut self, drawn: usize, each: impl FnMut(usize, f64));

    /// Like `open`, and returns the numbers by lane.
    #[inline(always)]
    fn points(&mut self, drawn: usize) -> [f64; LANES] {
        let mut points = [0.5; LANES];
        self.open(drawn, |lane, point| points[lane] = point);
        points
    }

    /// Draws 32-bit words.
    #[inline(always)]
    fn words(&mut self, drawn: usize) -> [u32; LANES] {
        let mut words = [0; LANES];
        self.raw(drawn, |lane, raw| words[lane] = (raw >> 32) as u32);
        words
    }

    fn store(self);
}

/// Transposes the first `N` words of each 12-word state into `N` arrays with one word per lane.
#[inline(always)]
fn gather<const N: usize>(states: &[u32]) -> [[u32; LANES]; N] {
    let mut words = [[0; LANES]; N];
    for (lane, state) in states.chunks_exact(12).enumerate() {
        for (word, row) in state.iter().zip(&mut words) {
            row[lane] = *word;
        }
    }
    words
}

#[inline(always)]
fn scatter<const N: usize>(words: &[[u32; LANES]; N], states: &mut [u32]) {
    for (lane, state) in states.chunks_exact_mut(12).enumerate() {
        for (word, row) in state.iter_mut().zip(words) {
            *word = row[lane];
        }
    }
}

macro_rules! pseudo {
    ($(#[$doc:meta])* $name:ident, $draw:expr, $word:expr, $single:expr, $double:expr) => {
        $(#[$doc])*
        pub(super) struct $name {
            rows: [[u32; LANES]; 6],
            states: *mut [u32],
        }

        impl $name {
            /// Draws for the first lanes.
            #[inline(always)]
            fn draw(&mut self, drawn: usize) -> [u32; LANES] {
                let mut out = [0; LANES];
                let [a, b, c, d, e, f] = &mut self.rows;
                let mut each = |lane: usize| {
                    let mut state = [a[lane], b[lane], c[lane], d[lane], e[lane], f[lane]];
                    out[lane] = $draw(&mut state);
                    [a[lane], b[lane], c[lane], d[lane], e[lane], f[lane]] = state;
                };
                // With a fixed number of lanes, the loop is vectorised.
                if drawn == LANES {
                    (0..LANES).for_each(&mut each);
                } else {
                    (0..drawn).for_each(&mut each);
                }
                out
            }
        }

        impl Group for $name {
            const IS_PSEUDO: bool = true;

            #[inline(always)]
            fn load(states: &mut [u32]) -> Self {
                $name { rows: gather(states), states }
            }

            #[inline(always)]
            fn raw(&mut self, drawn: usize, mut each: impl FnMut(usize, u64)) {
                let words = self.words(drawn);
                (0..drawn).for_each(|lane| each(lane, u64::from(words[lane]) << 32));
            }

            #[inline(always)]
            fn words(&mut self, drawn: usize) -> [u32; LANES] {
                self.draw(drawn).map($word)
            }

            #[inline(always)]
            fn uniform32(&mut self, drawn: usize, mut each: impl FnMut(usize, f32)) {
                let values = self.draw(drawn).map($single);
                (0..drawn).for_each(|lane| each(lane, values[lane]));
            }

            #[inline(always)]
            fn uniform64(&mut self, drawn: usize, mut each: impl FnMut(usize, f64)) {
                let double = $double;
                double(self, drawn, &mut each);
            }

            #[inline(always)]
            fn open(&mut self, drawn: usize, mut each: impl FnMut(usize, f64)) {
                let (low, high) = (self.words(drawn), self.words(drawn));
                (0..drawn).for_each(|lane| each(lane, open64(join(low[lane], high[lane]))));
            }

            #[inline(always)]
            fn store(self) {
                // SAFETY: the group's states, which nothing else uses while it lives.
                scatter(&self.rows, unsafe { &mut *self.states });
            }
        }
    };
}

pseudo!(
    /// States of XORWOW.
    Xorwow,
    |state: &mut [u32; 6]| {
        let [weyl, a, b, c, d, e] = *state;
        let mut v = [a, b, c, d, e];
        xorwow::step(&mut v);
        let weyl = weyl.wrapping_add(xorwow::WEYL);
        *state = [weyl, v[0], v[1], v[2], v[3], v[4]];
        v[4].wrapping_add(weyl)
    },
    |word| word,
    unit32,
    |lanes: &mut Self, drawn: usize, each: &mut dyn FnMut(usize, f64)| {
        let (low, high) = (lanes.words(drawn), lanes.words(drawn));
        (0..drawn).for_each(|lane| each(lane, unit64(join(low[lane], high[lane]))));
    }
);

pseudo!(
    /// States of MRG32k3a.
    Mrg,
    mrg32k3a::step,
    mrg32k3a::word,
    |draw| mrg32k3a::unit(draw) as f32,
    |lanes: &mut Self, drawn: usize, each: &mut dyn FnMut(usize, f64)| {
        let draws = lanes.draw(drawn);
        (0..drawn).for_each(|lane| each(lane, mrg32k3a::unit(draws[lane])));
    }
);

/// States of Sobol's sequence with `BITS` bits.
pub(super) struct Points<const BITS: usize>(*mut [u32]);

impl<const BITS: usize> Points<BITS> {
    #[inline(always)]
    fn draw(&mut self, drawn: usize, mut each: impl FnMut(usize, u64)) {
        // SAFETY: the group's states, which nothing else uses while it lives.
        let states = unsafe { &mut *self.0 };
        let chunks = states.chunks_exact_mut((3 + BITS) * BITS / 32);
        for (lane, state) in chunks.take(drawn).enumerate() {
            each(lane, sobol::step(state, BITS) << (64 - BITS));
        }
    }
}

impl<const BITS: usize> Group for Points<BITS> {
    const IS_PSEUDO: bool = false;

    fn load(states: &mut [u32]) -> Self {
        Points(states)
    }

    fn raw(&mut self, drawn: usize, each: impl FnMut(usize, u64)) {
        self.draw(drawn, each);
    }

    fn uniform32(&mut self, drawn: usize, mut each: impl FnMut(usize, f32)) {
        self.draw(drawn, |lane, raw| each(lane, unit32((raw >> 32) as u32)));
    }

    fn uniform64(&mut self, drawn: usize, mut each: impl FnMut(usize, f64)) {
        self.draw(drawn, |lane, raw| {
            let unit = match BITS {
                32 => unit64_of_word((raw >> 32) as u32),
                _ => unit64(raw >> 11),
            };
            each(lane, unit);
        });
    }

    fn open(&mut self, drawn: usize, mut each: impl FnMut(usize, f64)) {
        self.draw(drawn, |lane, raw| {
            let point = match BITS {
                32 => unit64_of_word((raw >> 32) as u32),
                _ => open64(raw >> 11),
            };
            each(lane, point);
        });
    }

    fn store(self) {}
}

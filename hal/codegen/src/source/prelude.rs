//! The prelude of a translation unit: types and functions that the kernels call.

/// The parts of the prelude that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prelude(u16);

/// Every part, in an order in which each only depends on earlier ones.
const PARTS: [(Prelude, &str); 20] = [
    (Prelude::BOOL, include_str!("cuda/bool.cuh")),
    (Prelude::INTEGER, include_str!("cuda/integer.cuh")),
    (Prelude::REAL, include_str!("cuda/real.cuh")),
    (Prelude::NARROW, include_str!("cuda/narrow.cuh")),
    (Prelude::COMPLEX, include_str!("cuda/complex.cuh")),
    (Prelude::REDUCE, include_str!("cuda/reduce.cuh")),
    (Prelude::WORDS, include_str!("cuda/words.cuh")),
    (Prelude(64), include_str!("cuda/warp.cuh")),
    (Prelude(64), include_str!("cuda/scan_tile.cuh")),
    (Prelude(64), include_str!("cuda/scan.cuh")),
    (Prelude(8192), include_str!("cuda/nonzero.cuh")),
    (Prelude::INDEXED, include_str!("cuda/indexed.cuh")),
    (Prelude::RANDOM, include_str!("cuda/random_math.cuh")),
    (Prelude::RANDOM, include_str!("cuda/random.cuh")),
    (Prelude::SORT, include_str!("cuda/sort.cuh")),
    (Prelude(4096), include_str!("cuda/digits.cuh")),
    (Prelude(4096), include_str!("cuda/radix_tile.cuh")),
    (Prelude(4096), include_str!("cuda/radix_halves.cuh")),
    (Prelude(4096), include_str!("cuda/radix.cuh")),
    (Prelude::PRODUCT, include_str!("cuda/product.cuh")),
];

const TYPES: &str = include_str!("cuda/types.cuh");

impl Prelude {
    pub(super) const NONE: Prelude = Prelude(0);
    pub(super) const BOOL: Prelude = Prelude(1);
    pub(super) const INTEGER: Prelude = Prelude(2);
    pub(super) const REAL: Prelude = Prelude(4);
    pub(super) const NARROW: Prelude = Prelude(8);
    pub(super) const COMPLEX: Prelude = Prelude(16);
    pub(super) const REDUCE: Prelude = Prelude(32);
    pub(super) const WORDS: Prelude = Prelude(2048);
    pub(super) const SCAN: Prelude = Prelude(64).with(Self::WORDS);
    pub(super) const NONZERO: Prelude = Prelude(8192).with(Self::SCAN);
    pub(super) const INDEXED: Prelude = Prelude(128);
    pub(super) const RANDOM: Prelude = Prelude(256);
    pub(super) const SORT: Prelude = Prelude(512);
    pub(super) const RADIX: Prelude = Prelude(4096).with(Self::WORDS);
    pub(super) const PRODUCT: Prelude = Prelude(1024);

    pub(super) const fn with(self, other: Prelude) -> Prelude {
        Prelude(self.0 | other.0)
    }

    const fn has(self, other: Prelude) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the translation unit of `kernels`, preceded by these parts, with a namespace around
    /// all.
    pub(super) fn enclose(self, kernels: &str) -> String {
        // The types open the namespace.
        let mut text = String::from(TYPES);
        if self.has(Prelude::RANDOM) {
            text.push_str(&hal::random::definitions());
        }
        for (part, body) in PARTS {
            if self.has(part) {
                text.push('\n');
                text.push_str(body);
            }
        }
        text.push_str(kernels);
        text.push_str("\n} // namespace gpuarray\n");
        text
    }
}

//! The pieces of the prelude, and which of them a kernel needs.

/// A set of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragments(u16);

/// Every piece, in the order in which they build on one another.
const PIECES: [(Fragments, &str); 8] = [
    (Fragments::BOOL, include_str!("cuda/bool.cuh")),
    (Fragments::INTEGER, include_str!("cuda/integer.cuh")),
    (Fragments::REAL, include_str!("cuda/real.cuh")),
    (Fragments::HALF, include_str!("cuda/half.cuh")),
    (Fragments::COMPLEX, include_str!("cuda/complex.cuh")),
    (Fragments::REDUCE, include_str!("cuda/reduce.cuh")),
    (Fragments::SCAN, include_str!("cuda/scan.cuh")),
    (Fragments::INDEXED, include_str!("cuda/indexed.cuh")),
];

const TYPES: &str = include_str!("cuda/types.cuh");

impl Fragments {
    pub(super) const NONE: Fragments = Fragments(0);
    pub(super) const BOOL: Fragments = Fragments(1);
    pub(super) const INTEGER: Fragments = Fragments(2);
    pub(super) const REAL: Fragments = Fragments(4);
    pub(super) const HALF: Fragments = Fragments(8);
    pub(super) const COMPLEX: Fragments = Fragments(16);
    pub(super) const REDUCE: Fragments = Fragments(32);
    pub(super) const SCAN: Fragments = Fragments(64);
    pub(super) const INDEXED: Fragments = Fragments(128);

    pub(super) const fn with(self, other: Fragments) -> Fragments {
        Fragments(self.0 | other.0)
    }

    const fn has(self, other: Fragments) -> bool {
        self.0 & other.0 != 0
    }

    /// The text of the pieces; it opens the namespace that [`CLOSE`] closes.
    pub(super) fn text(self) -> String {
        let mut text = String::from(TYPES);
        for (piece, body) in PIECES {
            if self.has(piece) {
                text.push('\n');
                text.push_str(body);
            }
        }
        text
    }
}

/// What ends a unit.
pub(super) const CLOSE: &str = "\n} // namespace gpuarray\n";

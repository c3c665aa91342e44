//! What a launch is asked for: its shape, and what a device leaves open.

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// True if the blocks may wait for each other: each has a thread of the operating system.
    pub cooperative: bool,
}

/// What a device leaves open, and tests may want at its worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The byte that shared memory is filled with before each block; `None` leaves it as it is.
    pub fill: Option<u8>,
    /// Bytes of dynamic shared memory that the launch asks for: where there is a `fill`, a block that
    /// writes behind them fails with an address. `None` is all that a block can have.
    pub dynamic_shared: Option<u32>,
    /// True to run the last blocks first.
    pub reversed: bool,
    /// True to run each thread as a whole, on a fibre if it waits, also where a kernel has a form as loops
    /// between barriers.
    pub fibers: bool,
}

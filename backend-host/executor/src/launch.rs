//! The parameters of a launch: its shape, and settings for the properties that CUDA does not
//! define.

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads in a block along x, y and z.
    pub block: [u32; 3],
    /// True if the blocks may wait for each other. Each block then runs on its own thread of the operating
    /// system.
    pub cooperative: bool,
}

/// The choices that a device leaves open. Tests can set them to the worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The byte with which shared memory is filled before each block; `None` leaves it unchanged.
    pub fill: Option<u8>,
    /// The dynamic shared memory that the launch requests, in bytes. With `fill`, a block that writes beyond it
    /// fails with an address error. `None` requests the maximum.
    pub dynamic_shared: Option<u32>,
    /// True to run the last blocks first.
    pub reversed: bool,
    /// True to run each thread as a whole, on a fibre if it waits, even if the kernel has a loop variant.
    pub fibers: bool,
}

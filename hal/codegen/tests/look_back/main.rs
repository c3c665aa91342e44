//! Models of what the blocks of a scan, and of a sort by digits, tell each other without a barrier
//! (scan.cuh and radix.cuh): every interleaving of a few blocks is tried, and every value that a
//! read may return. Each planted fault has to be found.

mod memory;
mod radix;
mod scan;

//! Models of the communication between the blocks of a scan, and of a radix sort, without a barrier
//! (scan.cuh and radix.cuh). Every interleaving of a few blocks is tried, and every value that a
//! read may return. Each planted fault must be found.

mod memory;
mod radix;
mod scan;

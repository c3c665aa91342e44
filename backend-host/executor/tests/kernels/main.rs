//! Texts of CUDA C, compiled and run in one process: a module each. What ends a process, or interrupts it, has
//! programs of its own beside this folder.

mod acceptance;
mod aliases;
mod checks;
mod compiling;
mod guards;
mod headers;
mod inline_ptx;
mod language;
mod launches;
mod missing_barriers;
mod programs;
mod random_races;
mod region_faults;
mod regions;
mod regions_unseen;
mod units;
mod volatile_writes;

//! Texts of CUDA C, compiled and run in one process, with a module for each topic. Tests that end or
//! interrupt a process are separate programs next to this folder.

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
mod volatile_types;
mod volatile_writes;

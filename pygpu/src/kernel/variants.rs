//! The kernels that were generated for one signature: one for each memory arrangement of the arrays,
//! compiled at first use.

use super::Function;
use super::arrangement::Arrangement;
use super::signature::Arrays;
use crate::current_device::CurrentDevice;
use gpuarray::{DeviceId, LaunchConfig};
use hal::poison::Unpoisoned as _;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::Mutex;

/// The number of threads per block.
pub(super) const THREADS: u32 = 256;

/// The maximum number of blocks of a launch. Threads loop until all elements are processed.
const MOST_BLOCKS: u64 = 1 << 20;

/// Returns the configuration with one block per `THREADS` units of work, but at most `most_blocks`
/// and `MOST_BLOCKS`.
pub(super) fn config(work: u64, most_blocks: u64) -> LaunchConfig {
    let blocks = work.div_ceil(u64::from(THREADS)).clamp(1, most_blocks.min(MOST_BLOCKS));
    LaunchConfig::new([blocks as u32, 1, 1], [THREADS, 1, 1])
}

/// The number of elements per thread on the host, high enough to make distributing the work worthwhile.
const HOST_ELEMENTS: u64 = 16 << 10;

/// Returns the launch configuration for independent elements.
pub(super) fn elementwise_config(work: u64, on_host: bool) -> LaunchConfig {
    if on_host { host_config(work, MOST_BLOCKS) } else { config(work, u64::MAX) }
}

/// Returns the launch configuration on the host, where a block has one thread, which processes
/// neighbours.
pub(super) fn host_config(work: u64, most_blocks: u64) -> LaunchConfig {
    let blocks = work.div_ceil(HOST_ELEMENTS).clamp(1, most_blocks);
    LaunchConfig::new([blocks as u32, 1, 1], [1; 3])
}

/// The properties of a call that determine its code.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variant {
    device: DeviceId,
    /// The device's epoch: a reset invalidates its kernels.
    epoch: u64,
    /// True if the indices come from a range.
    pub(super) ranged: bool,
    /// True if a thread processes several neighbours with one access to each array.
    pub(super) packed: bool,
    /// True if offsets of strided arrays have 64 bits.
    wide: bool,
    ranks: SmallVec<[u8; 8]>,
}

impl Variant {
    pub(super) fn new(
        home: &CurrentDevice,
        arrangement: &Arrangement,
        ranged: bool,
        packed: bool,
    ) -> Variant {
        Variant {
            device: home.device.id(),
            epoch: home.device.epoch(),
            ranged,
            packed,
            wide: arrangement.wide,
            ranks: arrangement.ranks.clone(),
        }
    }
}

/// The functions of one variant.
type Functions = SmallVec<[Py<Function>; 2]>;

/// All variants so far.
#[derive(Default)]
pub(super) struct Variants(Mutex<Vec<(Variant, Functions)>>);

impl Variants {
    /// Returns the functions for a variant. If there are none yet, `owner._build(ranged, packed,
    /// wide, ranks)` generates and compiles them.
    pub(super) fn functions(
        &self,
        owner: &Bound<'_, PyAny>,
        variant: &Variant,
    ) -> PyResult<Functions> {
        let py = owner.py();
        let copy = |functions: &Functions| functions.iter().map(|it| it.clone_ref(py)).collect();
        if let Some((_, known)) = self.0.lock().unpoisoned().iter().find(|(it, _)| it == variant) {
            return Ok(copy(known));
        }
        let ranks = PyTuple::new(py, variant.ranks.iter().copied())?;
        let arguments = (variant.ranged, variant.packed, variant.wide, ranks);
        let built = owner.call_method1("_build", arguments)?;
        let functions: Functions = built
            .try_iter()?
            .map(|it| Ok(it?.cast::<Function>()?.clone().unbind()))
            .collect::<PyResult<_>>()?;
        let result = copy(&functions);
        let mut all = self.0.lock().unpoisoned();
        let current = |it: &Variant| it.device != variant.device || it.epoch == variant.epoch;
        // Kernels of a context that was reset are useless.
        let outdated: Vec<_> = all.extract_if(.., |(it, _)| !current(it)).collect();
        all.push((variant.clone(), functions));
        // Dropping them may run code of the program, which may call the kernel.
        drop(all);
        drop(outdated);
        Ok(result)
    }
}

/// Returns the geometry of each strided array. The kernel gets them as arguments, after those that the program
/// passes.
pub(super) fn geometries(arrangement: &Arrangement) -> impl Iterator<Item = Vec<u8>> + '_ {
    let strided = arrangement.axes.iter().zip(&arrangement.ranks).filter(|(_, rank)| **rank > 0);
    strided.map(|(axes, _)| axes.geometry(arrangement.wide))
}

/// Returns true if a thread can access `pack` elements of every array together: each address is a multiple
/// of their size (of 16 bytes at most). If `sequential`, an array that is written must also share no
/// memory with another.
pub(super) fn packable(arrays: &Arrays<'_>, pack: usize, sequential: bool) -> bool {
    let aligned = arrays.iter().all(|(_, array)| {
        let bytes = (pack * array.dtype().size()).min(16) as u64;
        array.address() % bytes == 0
    });
    let shares = |position: usize| {
        let (vector, array) = &arrays[position];
        let others = arrays.iter().enumerate().filter(|(other, _)| *other != position);
        matches!(vector.access, gpuarray::memory::Access::Write)
            && others.into_iter().any(|(_, (_, other))| array.overlaps(other))
    };
    aligned && (!sequential || !(0..arrays.len()).any(shares))
}

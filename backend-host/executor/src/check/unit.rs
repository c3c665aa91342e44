//! The memory layout of a unit compiled with checks.

use super::lines::Lines;
use crate::abi::Constant;
use crate::shared_memory::{DYNAMIC_SHARED, RED_ZONE, RED_ZONE_BEFORE, is_shared};
use crate::symbols::Symbols;
use object::SymbolKind;
use std::ops::Range;

/// A variable in a block's thread-local memory.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    /// Offsets in thread-local memory.
    pub(crate) range: Range<usize>,
    /// The name of a shared variable; empty for the executor's own variables.
    pub(crate) shared_name: String,
    pub(crate) is_dynamic: bool,
}

/// The layout of a unit with checks.
#[derive(Debug)]
pub(crate) struct Unit {
    /// The addresses of the unit's code and variables.
    pub(crate) image: Range<usize>,
    /// The addresses and names of variables, in order.
    pub(crate) variables: Vec<(Range<usize>, String)>,
    /// The addresses of read-only data: constant memory, literals and tables.
    read_only: Vec<Range<usize>>,
    pub(crate) locals: Vec<Local>,
    /// The size of a thread's thread-local memory in bytes, including the red zones.
    pub(crate) local_bytes: usize,
    pub(crate) lines: Lines,
}

impl Unit {
    /// Reads the layout of a unit with checks that is loaded at `base`, and writes the bounds of shared memory to it.
    ///
    /// # Safety
    /// The unit is loaded there, and none of its code is running.
    pub(crate) unsafe fn of(
        symbols: &Symbols,
        constants: &[Constant],
        bytes: &[u8],
        base: usize,
    ) -> Unit {
        let find = |name: &str| symbols.find(name).map(|it| it.value);
        if let (Some(own), Some(end), Some(from)) =
            (find("gpuarray_own"), find(RED_ZONE_BEFORE), find("gpuarray_local"))
        {
            let bounds = [0, end].map(|it| it.wrapping_sub(from) as i64);
            // SAFETY: the symbol is this variable of `check.h`.
            unsafe { *(base.wrapping_add(own as usize) as *mut [i64; 2]) = bounds };
        }
        let in_memory = symbols.defined.iter().filter(|it| it.kind != SymbolKind::Tls);
        let end = in_memory.clone().map(|it| it.value + it.bytes).max().unwrap_or(0);
        let is_own = |name: &str| name.contains("gpuarray_");
        let mut variables: Vec<_> = in_memory
            .filter(|it| it.kind == SymbolKind::Data && it.bytes > 0 && !is_own(&it.name))
            .map(|it| {
                let start = base.wrapping_add(it.value as usize);
                (start..start + it.bytes as usize, it.name.clone())
            })
            .collect();
        variables.sort_by_key(|(range, _)| range.start);
        let constants = constants.iter().map(|it| it.address..it.address + it.bytes as usize);
        let moved = |it: &Range<u64>| {
            base.wrapping_add(it.start as usize)..base.wrapping_add(it.end as usize)
        };
        let read_only = symbols.read_only.iter().map(moved).chain(constants).collect();
        let locals = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Tls && it.bytes > 0);
        let local_bytes = locals.clone().map(|it| it.value + it.bytes).max().unwrap_or(0) as usize;
        let locals = locals.filter(|it| !it.name.contains(RED_ZONE));
        let locals = locals.map(|it| Local {
            range: it.value as usize..(it.value + it.bytes) as usize,
            shared_name: if is_shared(&it.name) { it.name.clone() } else { String::new() },
            is_dynamic: it.name == DYNAMIC_SHARED,
        });
        Unit {
            image: base..base.wrapping_add(end as usize),
            variables,
            read_only,
            locals: locals.collect(),
            local_bytes,
            lines: Lines::new(bytes, base),
        }
    }

    /// Returns the shared variables.
    pub(crate) fn shared_variables(&self) -> impl Iterator<Item = &Local> + Clone {
        self.locals.iter().filter(|it| !it.shared_name.is_empty())
    }

    /// Returns true for an address in memory that kernels only read.
    pub(crate) fn is_read_only(&self, address: usize) -> bool {
        self.read_only.iter().any(|range| range.contains(&address))
    }

    /// Returns the variable that contains an address.
    pub(crate) fn variable(&self, address: usize) -> Option<&(Range<usize>, String)> {
        let next = self.variables.partition_point(|(range, _)| range.start <= address);
        self.variables[..next].last().filter(|(range, _)| range.contains(&address))
    }
}

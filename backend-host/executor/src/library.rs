//! A compiled unit in the process: its kernels and variables.

use crate::abi::{self, Constant, Executor};
use crate::check;
use crate::fork::NoFork;
use crate::launch::Schedule;
use crate::shared_memory::{GUARD_BYTES, MOST_SHARED_BYTES};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};

/// A library that the system has loaded, until it is dropped.
pub(crate) struct Opened(pub(crate) ManuallyDrop<libloading::Library>);

impl Deref for Opened {
    type Target = libloading::Library;

    fn deref(&self) -> &libloading::Library {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _no_fork = NoFork::begin();
        // SAFETY: it is dropped only here.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// A loaded unit. It is unloaded when this object and all kernels of the unit have been dropped.
pub struct Library {
    pub(crate) kernels: HashMap<String, Code>,
    pub(crate) variables: HashMap<String, (usize, usize)>,
    /// The names of the variables that are not constants.
    pub(crate) writable: HashSet<String>,
    /// The names of the entries requested by the compilation's `names`, in order.
    pub(crate) names: Vec<String>,
    pub(crate) warp_size: u32,
    /// The variables in constant memory.
    pub(crate) constants: Vec<Constant>,
    /// The static shared memory: offsets and sizes in thread-local memory.
    pub(crate) shared: Vec<(u64, u64)>,
    /// The offsets of the flags that record if constructors of shared memory have run.
    pub(crate) guards: Vec<u64>,
    /// The offset of `threadIdx`.
    pub(crate) thread_index: Option<u64>,
    /// The offset of dynamic shared memory.
    pub(crate) dynamic_shared: Option<u64>,
    /// The table of the executor that the unit calls.
    pub(crate) executor: &'static Executor,
    pub(crate) local: unsafe extern "C" fn() -> *mut u8,
    pub(crate) local_offset: u64,
    /// The addresses of the unit's own code.
    pub(crate) code: Range<usize>,
    /// The layout of a unit with checks.
    pub(crate) checked: Option<check::Unit>,
    /// The handle under which the destructors of the unit's variables are registered, if there may be any.
    pub(crate) destructors: Option<usize>,
    /// Unloaded last.
    pub(crate) _handle: Opened,
}

/// The properties of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) run: abi::Run,
    pub(crate) regions: Option<abi::RunRegions>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) most_threads: u32,
    pub(crate) least_blocks: u32,
    pub(crate) static_shared: u64,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The offset from the first parameter in bytes, as in a structure of all parameters.
    pub offset: usize,
    /// The size of the value in bytes.
    pub bytes: usize,
    /// The alignment of the type in bytes.
    pub alignment: usize,
    /// True if it is a pointer.
    pub is_pointer: bool,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.kernels.keys().collect();
        names.sort();
        write!(f, "Library({names:?})")
    }
}

impl Library {
    /// Returns the kernel with a name: the plain name of an `extern "C"` kernel, otherwise the mangled one.
    pub(crate) fn code(&self, name: &str) -> Option<&Code> {
        self.kernels.get(name)
    }

    /// Returns the names of all kernels.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// Returns the mangled names for the last `count` name expressions of the compilation.
    pub fn lowered(&self, count: usize) -> &[String] {
        &self.names[self.names.len().saturating_sub(count)..]
    }

    /// Returns the address of a variable, and its size in bytes.
    pub fn variable(&self, name: &str) -> Option<(usize, usize)> {
        let find = |name: &str| self.variables.get(name).copied();
        // Static and constant variables have a mangled name even outside of namespaces.
        find(name).or_else(|| find(&format!("_ZL{}{name}", name.len())))
    }

    /// Returns the addresses of all variables, and their sizes in bytes.
    pub fn variables(&self) -> impl Iterator<Item = (usize, usize)> {
        self.variables.values().copied()
    }

    /// Copies the values of variables that can be written from another library of the same text. Returns the
    /// copied values.
    ///
    /// # Safety
    /// Nothing uses the variables of either library meanwhile.
    pub unsafe fn take_variables(&self, other: &Library) -> Vec<(String, Vec<u8>)> {
        let mut taken = Vec::new();
        for (name, &(address, bytes)) in &self.variables {
            let same = other.variables.get(name).filter(|it| it.1 == bytes);
            let Some(&(from, _)) = same.filter(|_| self.writable.contains(name)) else { continue };
            // SAFETY: both variables have this many bytes, and this one can be written.
            let value = unsafe {
                (address as *mut u8).copy_from(from as *const u8, bytes);
                std::slice::from_raw_parts(from as *const u8, bytes).to_vec()
            };
            taken.push((name.clone(), value));
        }
        taken
    }

    /// Copies the variables of [`Library::take_variables`] back if they have changed since.
    ///
    /// # Safety
    /// The same as for [`Library::take_variables`].
    pub unsafe fn give_variables(&self, other: &Library, taken: &[(String, Vec<u8>)]) {
        for (name, before) in taken.iter().filter(|(name, _)| other.writable.contains(name)) {
            let (Some(own), Some(to)) = (self.variables.get(name), other.variables.get(name))
            else {
                continue;
            };
            // SAFETY: both variables have this many bytes, and the other one can be written.
            unsafe {
                let now = std::slice::from_raw_parts(own.0 as *const u8, before.len());
                if now != before.as_slice() {
                    (to.0 as *mut u8).copy_from(own.0 as *const u8, before.len());
                }
            }
        }
    }

    /// Returns the warp size.
    pub fn warp_size(&self) -> u32 {
        self.warp_size
    }

    /// Returns the constant memory that the unit's constants need in bytes, including alignment.
    pub(crate) fn constant_bytes(&self) -> u64 {
        let all = self.constants.iter();
        all.fold(0, |end, it| end.next_multiple_of(it.alignment.max(1)) + it.bytes)
    }

    /// Returns true for an address in constant memory.
    pub(crate) fn is_constant(&self, address: usize) -> bool {
        self.constants.iter().any(|it| address.wrapping_sub(it.address) < it.bytes as usize)
    }

    /// Returns the layout of a unit with checks.
    pub(crate) fn checked(&self) -> Option<&check::Unit> {
        self.checked.as_ref()
    }

    /// Returns true if the unit was compiled with checks.
    pub fn is_checked(&self) -> bool {
        self.checked.is_some()
    }

    /// Returns the start of the calling thread's thread-local memory.
    pub(crate) fn local_base(&self) -> *mut u8 {
        // SAFETY: the function only returns an address.
        unsafe { (self.local)() }.wrapping_sub(self.local_offset as usize)
    }

    /// Prevents constructors of shared variables from running on the calling thread, as on a GPU.
    pub(crate) fn skip_constructors_of_shared(&self) {
        if self.guards.is_empty() {
            return;
        }
        let base = self.local_base();
        for &offset in &self.guards {
            // SAFETY: the symbol table describes the thread's own memory, which no kernel uses now.
            unsafe { base.add(offset as usize).write(1) };
        }
    }

    /// Makes the calling thread the first one of a block, as code outside of kernels expects.
    pub(crate) fn be_first(&self) {
        if let Some(offset) = self.thread_index {
            // SAFETY: the symbol table describes the thread's own memory, which no kernel uses now.
            unsafe { self.local_base().add(offset as usize).cast::<[u32; 3]>().write([0; 3]) };
        }
    }

    /// Fills the shared memory of the calling thread before a block, if the schedule requires it.
    pub(crate) fn fill_shared(&self, schedule: &Schedule) {
        let Some(byte) = schedule.fill else { return };
        let base = self.local_base();
        for &(offset, bytes) in &self.shared {
            // SAFETY: the symbol table describes the thread's own memory, which no kernel uses now.
            unsafe { base.add(offset as usize).write_bytes(byte, bytes as usize) };
        }
        let asked = schedule.dynamic_shared.unwrap_or(MOST_SHARED_BYTES).min(MOST_SHARED_BYTES);
        if let Some(dynamic) = self.dynamic_shared {
            // SAFETY: as above.
            unsafe { base.add(dynamic as usize).write_bytes(byte, asked as usize + GUARD_BYTES) };
        }
    }

    /// Returns a message if a block has written beyond the dynamic shared memory of the launch. The schedule
    /// must have filled shared memory before the block.
    pub(crate) fn overrun(&self, schedule: &Schedule) -> Option<String> {
        let (byte, asked) = (schedule.fill?, schedule.dynamic_shared?.min(MOST_SHARED_BYTES));
        let end = self.dynamic_shared? as usize + asked as usize;
        // SAFETY: the storage has this many bytes after the largest possible request, and the block that used
        // it has ended.
        let guard = unsafe { std::slice::from_raw_parts(self.local_base().add(end), GUARD_BYTES) };
        let is_whole = guard.iter().all(|it| *it == byte);
        (!is_whole).then(|| format!("a write behind the {asked} bytes of dynamic shared memory"))
    }
}

//! A kernel of a unit: its properties and its launches.

use crate::abi::Executor;
use crate::block::MOST_THREADS;
use crate::check::{self, Checking};
use crate::dispatch::{run_all, run_together, work};
use crate::error::{Error, Result};
use crate::grid::{Grid, What};
use crate::interruption::{self, Watched};
use crate::launch::{Schedule, Shape};
use crate::library::{Code, Library, Parameter};
use rayon_core::ThreadPool;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// A kernel of a library.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    library: Arc<Library>,
    code: Code,
}

impl Kernel {
    /// Returns the kernel with a name: the plain name of an `extern "C"` kernel, otherwise the mangled one.
    pub fn find(library: &Arc<Library>, name: &str) -> Option<Kernel> {
        let code = library.code(name)?.clone();
        Some(Kernel { name: name.to_owned(), library: library.clone(), code })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the parameters in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.code.parameters
    }

    /// Returns the maximum number of threads in a block: the bound in `__launch_bounds__`, or 1024.
    pub fn most_threads(&self) -> u32 {
        match self.code.most_threads {
            0 => MOST_THREADS as u32,
            bound => bound.min(MOST_THREADS as u32),
        }
    }

    /// Returns the minimum number of blocks in `__launch_bounds__`, or 0.
    pub fn least_blocks(&self) -> u32 {
        self.code.least_blocks
    }

    /// Returns the static shared memory in bytes.
    pub fn static_shared_bytes(&self) -> u64 {
        self.code.static_shared
    }

    /// Returns the constant memory of the kernel's unit in bytes.
    pub fn constant_bytes(&self) -> u64 {
        self.library.constant_bytes()
    }

    /// Returns true if the kernel has a loop variant: loops over the threads of a block between its barriers.
    pub fn has_regions(&self) -> bool {
        self.code.regions.is_some()
    }

    /// Runs the kernel, and returns when it has finished. The calling thread takes part. If the launch takes
    /// longer than some microseconds, `pool` is called for further threads.
    ///
    /// # Errors
    /// - `Kernel` if the kernel fails. Blocks that have started may have written some of their results.
    /// - `System` if there is not enough memory for stacks.
    ///
    /// # Safety
    /// - `arguments` point to values of the parameters' types. The values stay valid, and need not be aligned.
    /// - No block has more than [`Kernel::most_threads`] threads, and no extent is 0.
    /// - The kernel accesses only memory that it may access.
    pub unsafe fn launch(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_unless(shape, schedule, arguments, None, pool, None) }
    }

    /// Runs the kernel like [`Kernel::launch`], but lets the program end it.
    ///
    /// While the kernel runs on any thread, even in an endless loop, `is_interrupted` is called regularly on
    /// the calling thread. The call may take any length of time; launches inside it fail. If it returns true,
    /// running blocks are abandoned, blocks that have not started do not run, and the launch fails.
    ///
    /// # Errors
    /// The same as [`Kernel::launch`]; `Kernel` of the kind `Interrupted` if the launch was interrupted.
    ///
    /// # Safety
    /// The same as for [`Kernel::launch`]. The kernel may end anywhere, so it must not share invariants with
    /// the program.
    pub unsafe fn launch_interruptibly(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        interruption::listen();
        let _watched = Watched::new();
        // SAFETY: the caller's promise.
        unsafe { self.launch_unless(shape, schedule, arguments, None, pool, Some(is_interrupted)) }
    }

    /// Runs the kernel with checks, on the calling thread alone, and otherwise like
    /// [`Kernel::launch_interruptibly`]. The library must be compiled with
    /// [`Language::checked`](crate::Language::checked).
    ///
    /// # Errors
    /// The errors of [`Kernel::launch`]; `Kernel` for the first fault that is detected, which ends the
    /// launch; `NotAUnit` for a library without checks.
    ///
    /// # Safety
    /// The same as for [`Kernel::launch_interruptibly`], except that the kernel may attempt accesses that are
    /// checked.
    pub unsafe fn launch_checked(
        &self,
        shape: &Shape,
        checking: &Checking<'_>,
        arguments: &[*mut c_void],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<()> {
        let Some(unit) = self.library.checked() else {
            let what = format!("kernel {} is compiled without checks", self.name);
            return Err(Error::NotAUnit(what));
        };
        // SAFETY: the caller's promise.
        let aligned = unsafe { Aligned::of(arguments, &self.code.parameters) };
        let arguments = aligned.as_ref().map_or(arguments, |it| &it.pointers);
        let values = arguments.iter().zip(&self.code.parameters);
        let mut ranges: Vec<Range<usize>> =
            values.map(|(&at, it)| at as usize..at as usize + it.bytes).collect();
        let pointers = arguments.as_ptr_range();
        ranges.push(pointers.start as usize..pointers.end as usize);
        let table = ptr::from_ref(self.library.executor) as usize;
        ranges.push(table..table + size_of::<Executor>());
        let check = check::Launch::new(*checking, unit, ranges);
        interruption::listen();
        let _watched = Watched::new();
        let (schedule, check) = (Schedule::default(), Some(&check));
        // SAFETY: the caller's promise.
        unsafe {
            self.launch_unless(shape, &schedule, arguments, check, &|| None, Some(is_interrupted))
        }
    }

    /// # Safety
    /// The same as for [`Kernel::launch`].
    unsafe fn launch_unless(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        check: Option<&check::Launch<'_>>,
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
        is_interrupted: Option<&dyn Fn() -> bool>,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let aligned = unsafe { Aligned::of(arguments, &self.code.parameters) };
        let arguments = aligned.as_ref().map_or(arguments, |it| &it.pointers);
        let (what, run) = (What::Kernel(&self.name), self.code.run);
        let mut grid = Grid::new(what, run, &self.library, shape, arguments);
        grid.regions = self.code.regions.filter(|_| !schedule.fibers);
        (grid.check, grid.schedule, grid.is_interrupted) = (check, *schedule, is_interrupted);
        match (shape.cooperative, check) {
            (true, _) => run_together(&grid),
            (false, None) => run_all(&grid, pool),
            (false, Some(_)) => work(&grid, 0..grid.total),
        }
        grid.result()
    }
}

/// Addresses of arguments at the alignment of their types: of a copy, if the caller's value has a smaller one.
struct Aligned {
    pointers: Vec<*mut c_void>,
    _copies: Vec<Vec<u8>>,
}

impl Aligned {
    /// Returns the addresses; `None` if all values are aligned.
    ///
    /// # Safety
    /// The arguments point to values with the parameters' sizes.
    unsafe fn of(arguments: &[*mut c_void], parameters: &[Parameter]) -> Option<Aligned> {
        let is_aligned =
            |at: *mut c_void, it: &Parameter| (at as usize).is_multiple_of(it.alignment);
        if arguments.iter().zip(parameters).all(|(&at, it)| is_aligned(at, it)) {
            return None;
        }
        let (mut pointers, mut copies) = (arguments.to_vec(), Vec::new());
        for (at, it) in pointers.iter_mut().zip(parameters).filter(|(at, it)| !is_aligned(**at, it))
        {
            let mut copy = vec![0_u8; it.bytes + it.alignment];
            let start =
                copy.as_mut_ptr().addr().next_multiple_of(it.alignment) - copy.as_ptr().addr();
            // SAFETY: the caller's promise; the copy has room for the value after fewer bytes than the alignment.
            unsafe { copy.as_mut_ptr().add(start).copy_from_nonoverlapping(at.cast(), it.bytes) };
            *at = copy.as_mut_ptr().wrapping_add(start).cast();
            copies.push(copy);
        }
        Some(Aligned { pointers, _copies: copies })
    }
}

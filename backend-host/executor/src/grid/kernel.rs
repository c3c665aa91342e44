//! A kernel of a unit: what it says of itself, and its launches.

use super::{Grid, What};
use crate::block::MOST_THREADS;
use crate::check::{self, Checking};
use crate::error::{Error, Result};
use crate::interruption::{self, Watched};
use crate::launch::{Schedule, Shape};
use crate::library::{Code, Library, Parameter};
use rayon_core::ThreadPool;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

/// A kernel of a library.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    library: Arc<Library>,
    code: Code,
}

impl Kernel {
    /// Returns the kernel with a name: a plain one if it is `extern "C"`, else the mangled one.
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

    /// Returns the threads of a block at most: those of `__launch_bounds__`, else 1024.
    pub fn most_threads(&self) -> u32 {
        match self.code.most_threads {
            0 => MOST_THREADS as u32,
            bound => bound.min(MOST_THREADS as u32),
        }
    }

    /// Returns the second of the launch bounds; 0 without.
    pub fn least_blocks(&self) -> u32 {
        self.code.least_blocks
    }

    /// Returns the bytes of static shared memory.
    pub fn static_shared_bytes(&self) -> u64 {
        self.code.static_shared
    }

    /// Returns the bytes of constant memory that the kernel's unit takes for its variables.
    pub fn constant_bytes(&self) -> u64 {
        self.library.constant_bytes()
    }

    /// True if the kernel has a loop variant: loops over the threads of a block between its barriers.
    pub fn has_regions(&self) -> bool {
        self.code.regions.is_some()
    }

    /// Runs the kernel, and returns when it has run. The calling thread takes part; `pool` is asked for
    /// threads if the launch takes longer than some microseconds.
    ///
    /// # Errors
    /// `Kernel` if it fails; `System` if there is no memory for stacks. Blocks that have begun
    /// then may have written what they would.
    ///
    /// # Safety
    /// `arguments` point to values of the types of the kernel's parameters, which stay; no thread of a
    /// block is beyond [`Kernel::most_threads`]; no extent is 0; and the kernel accesses what it may.
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

    /// Runs the kernel, as [`Kernel::launch`] does, and ends it if the program wants that.
    ///
    /// Every so often `is_interrupted` is called, on the calling thread, while the kernel runs there or on others,
    /// be it in a loop without an end. It may take as long as it wants; launches in it fail. When it
    /// returns true the blocks that run are given up, those that have not begun do not run, and the launch
    /// fails.
    ///
    /// # Errors
    /// As [`Kernel::launch`]; `Kernel` of the kind `Interrupted` if it was interrupted.
    ///
    /// # Safety
    /// As [`Kernel::launch`]. The kernel may end anywhere: it shares no invariants with the program.
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

    /// As [`Kernel::launch_interruptibly`], on the calling thread alone, and looks for faults meanwhile: for a
    /// kernel of a library that was compiled with [`Language::checked`](crate::Language::checked).
    ///
    /// # Errors
    /// Those of [`Kernel::launch`]; `Kernel` for the first fault that is found, which ends the launch; `NotAUnit` for
    /// a library without checks.
    ///
    /// # Safety
    /// As for [`Kernel::launch_interruptibly`], save that the kernel may try accesses that are looked for.
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
        let values = arguments.iter().zip(&self.code.parameters);
        let mut ranges: Vec<Range<usize>> =
            values.map(|(&at, it)| at as usize..at as usize + it.bytes).collect();
        let pointers = arguments.as_ptr_range();
        ranges.push(pointers.start as usize..pointers.end as usize);
        let check = check::Launch::new(*checking, unit, &self.library, ranges);
        interruption::listen();
        let _watched = Watched::new();
        let (schedule, check) = (Schedule::default(), Some(&check));
        // SAFETY: the caller's promise.
        unsafe {
            self.launch_unless(shape, &schedule, arguments, check, &|| None, Some(is_interrupted))
        }
    }

    /// # Safety
    /// As [`Kernel::launch`].
    unsafe fn launch_unless(
        &self,
        shape: &Shape,
        schedule: &Schedule,
        arguments: &[*mut c_void],
        check: Option<&check::Launch<'_>>,
        pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
        is_interrupted: Option<&dyn Fn() -> bool>,
    ) -> Result<()> {
        let grid = Grid {
            regions: self.code.regions.filter(|_| !schedule.fibers),
            check,
            schedule: *schedule,
            is_interrupted,
            ..Grid::new(What::Kernel(&self.name), self.code.run, &self.library, shape, arguments)
        };
        match (shape.cooperative, check) {
            (true, _) => grid.run_together(grid.total),
            (false, None) => grid.run_all(pool),
            (false, Some(_)) => grid.work(0..grid.total),
        }
        grid.result()
    }
}

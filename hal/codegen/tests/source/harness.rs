//! The tests' arrays, and the generated source compiled with the system's C++ compiler and run on
//! the host, as in the host backend.

pub(crate) use crate::operations::plan;
use gpuarray_codegen::source::{KernelSpec, Plan, unit};
use hal::operation::{Description, Operand};
use hal::{DType, Element};
use host_executor::{
    Allocation, Checking, Checks, Compiler, Kernel, Language, Library, Optimization, Schedule,
    Shape, Source,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

thread_local! {
    /// The libraries that this thread's test has compiled.
    static COMPILED: RefCell<HashMap<(KernelSpec, Runs), Arc<Library>>> = RefCell::new(HashMap::new());

    /// The addresses and sizes in bytes of this thread's arrays.
    static BLOCKS: RefCell<BTreeMap<u64, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// The worst permitted behaviour of a device: for example, shared memory is not zeroed.
const WORST: Schedule =
    Schedule { fill: Some(0xa5), dynamic_shared: Some(0), reversed: false, fibers: true };

/// The mode in which kernels run on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Runs {
    /// With traps for behaviour that C leaves undefined.
    Trapping,
    /// With checks for races, for barriers that not all threads reach, and for accesses outside the
    /// arrays.
    Checked,
}

/// Memory that a test zeroes, or a kernel reads without need, counts as written.
const CHECKS: Checks = Checks { uninitialised: false, ..Checks::ALL };

/// The memory that a kernel may access: the arrays of this thread's test, and a workspace.
struct Live(Vec<Range<usize>>);

impl host_executor::Memory for Live {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        self.0.iter().find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        None
    }
}

/// An array in host memory that operations refer to by address, aligned to 16 bytes.
pub(crate) struct Memory<T> {
    words: Vec<u128>,
    length: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> Memory<T> {
    /// Returns an array of the values.
    pub(crate) fn new(values: &[T]) -> Self {
        let mut memory = Self::zeros(values.len());
        for (i, value) in values.iter().enumerate() {
            memory.set(i, *value);
        }
        memory
    }

    /// Stores an element.
    pub(crate) fn set(&mut self, i: usize, value: T) {
        assert!(i < self.length);
        // SAFETY: the words have room for this many elements.
        unsafe { self.words.as_mut_ptr().cast::<T>().add(i).write(value) };
    }

    /// Returns an element.
    pub(crate) fn at(&self, i: usize) -> T {
        assert!(i < self.length);
        // SAFETY: the words contain this many elements, all valid.
        unsafe { self.words.as_ptr().cast::<T>().add(i).read() }
    }

    /// Returns an array of zeros, which occupies memory only after it is accessed.
    pub(crate) fn zeros(length: usize) -> Self {
        let words = vec![0; (length * size_of::<T>()).div_ceil(16).max(1)];
        let memory = Memory { words, length, marker: std::marker::PhantomData };
        let bytes = size_of_val(&*memory.words);
        BLOCKS.with_borrow_mut(|blocks| blocks.insert(memory.address(), bytes));
        memory
    }

    /// Returns the address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// Returns the operand with these strides, counted in elements.
    pub(crate) fn operand(&self, strides: &[isize]) -> Operand {
        let size = size_of::<T>() as isize;
        Operand {
            address: self.address(),
            dtype: T::DTYPE,
            strides: strides.iter().map(|stride| stride * size).collect(),
        }
    }

    /// Returns the values.
    pub(crate) fn values(&self) -> Vec<T> {
        (0..self.length).map(|i| self.at(i)).collect()
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        BLOCKS.with_borrow_mut(|blocks| blocks.remove(&(self.words.as_ptr() as u64)));
    }
}

/// Returns the addresses and sizes in bytes of this thread's arrays.
pub(crate) fn blocks() -> Vec<(u64, usize)> {
    BLOCKS.with_borrow(|blocks| blocks.iter().map(|(&address, &bytes)| (address, bytes)).collect())
}

/// Returns an operand of records in byte memory.
pub(crate) fn records(memory: &Memory<u8>, bytes: u32, offset: u64, strides: &[isize]) -> Operand {
    Operand {
        address: memory.address() + offset,
        dtype: DType::Opaque(bytes),
        strides: strides.into(),
    }
}

/// Runs the operations in order; returns false, and prints the reason, if no compiler is available.
#[must_use]
pub(crate) fn run(operations: &[Description]) -> bool {
    run_as(Runs::Trapping, operations)
}

pub(crate) fn run_as(runs: Runs, operations: &[Description]) -> bool {
    let mut plans: Vec<Plan> = operations.iter().map(plan).collect();
    let is_new = |spec: &KernelSpec| {
        COMPILED.with_borrow(|compiled| !compiled.contains_key(&(spec.clone(), runs)))
    };
    let mut seen = HashSet::new();
    let specs = plans
        .iter()
        .map(|plan| plan.spec().clone())
        .filter(|spec| is_new(spec) && seen.insert(spec.clone()));
    let specs: Vec<KernelSpec> = specs.collect();
    if !specs.is_empty() {
        let Some(library) = compile(runs, &specs) else {
            return false;
        };
        COMPILED.with_borrow_mut(|compiled| {
            compiled.extend(specs.into_iter().map(|spec| ((spec, runs), library.clone())));
        });
    }
    for plan in &mut plans {
        let mut workspace = vec![0_u128; plan.workspace_bytes().div_ceil(16)];
        plan.set_workspace(workspace.as_mut_ptr() as u64);
        let range = workspace.as_ptr_range();
        let arrays = blocks().into_iter().map(|(address, bytes)| {
            let begin = address as usize;
            begin..begin + bytes
        });
        let memory =
            Live(arrays.chain(std::iter::once(range.start as usize..range.end as usize)).collect());
        let checking = Checking { checks: CHECKS, memory: &memory, shared_bytes: 0 };
        let library =
            COMPILED.with_borrow(|compiled| compiled[&(plan.spec().clone(), runs)].clone());
        let names = plan.spec().kernel_names();
        for launch in plan.launches() {
            let kernel = Kernel::find(&library, &names[launch.kernel]).unwrap();
            let (grid, block) = (launch.config.grid, launch.config.block);
            assert_eq!(launch.config.shared_bytes, 0);
            let shape = Shape { grid, block, cooperative: false };
            let arguments = plan.arguments(launch);
            // SAFETY: the arguments match the kernel, with addresses of the tests' arrays.
            let ended = unsafe {
                match runs {
                    Runs::Trapping => kernel.launch(&shape, &WORST, &arguments, &|| None),
                    Runs::Checked => {
                        kernel.launch_checked(&shape, &checking, &arguments, &|| false)
                    }
                }
            };
            ended.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    true
}

fn compile(runs: Runs, specs: &[KernelSpec]) -> Option<Arc<Library>> {
    static COMPILERS: LazyLock<Option<[Compiler; 2]>> = LazyLock::new(|| {
        let find = |checked| {
            // Like the run-time compilers of GPUs, it only has its own headers.
            let language = Language { system_headers: false, checked, ..Language::default() };
            let compiler = Compiler::find(language)
                .inspect_err(|error| drop(writeln!(std::io::stderr(), "skipped: {error}")))
                .ok()?;
            let headers = concat!(env!("CARGO_TARGET_TMPDIR"), "/headers");
            Some(compiler.keeping_headers_in(headers).optimizing_for(Optimization::Compilation))
        };
        Some([find(false)?.trapping_undefined_behavior(), find(true)?])
    });
    let [trapping, checked] = COMPILERS.as_ref()?;
    let compiler = if runs == Runs::Trapping { trapping } else { checked };
    let text = unit(specs.iter().cloned());
    // Lanes exchange values as on a GPU.
    let options = &["-D__GPUARRAY_DOUBLE__"];
    let source = Source { text: &text, name: "kernels.cu", options, ..Source::default() };
    let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: this library generated the text.
    Some(unsafe { Library::load(&compiled.library) }.unwrap())
}

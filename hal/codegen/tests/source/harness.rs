//! The tests' arrays, and generated source compiled with the system's C++ compiler and run on
//! the host, as the host backend runs them.

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
    /// What this thread's test has compiled.
    static COMPILED: RefCell<HashMap<(KernelSpec, Runs), Arc<Library>>> = RefCell::new(HashMap::new());

    /// Addresses and bytes of the arrays that this thread's test has.
    static BLOCKS: RefCell<BTreeMap<u64, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// What a device may do: shared memory is not zeros.
const WORST: Schedule =
    Schedule { fill: Some(0xa5), dynamic_shared: Some(0), reversed: false, fibers: true };

/// How kernels run on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Runs {
    /// With traps for what C leaves undefined.
    Trapping,
    /// With checks for races, barriers that not all threads reach, and accesses outside the arrays.
    Checked,
}

/// Memory that a test zeroes, or a kernel reads without need, counts as written.
const CHECKS: Checks = Checks { uninitialised: false, ..Checks::ALL };

/// The arrays of this thread's test and a workspace: what a kernel may access.
struct Live(Vec<Range<usize>>);

impl host_executor::Memory for Live {
    fn live(&self, address: usize) -> Option<Range<usize>> {
        self.0.iter().find(|range| range.contains(&address)).cloned()
    }

    fn nearest(&self, _: usize) -> Option<Allocation> {
        None
    }
}

/// An array of the host's memory that operations name by address, aligned to 16 bytes.
pub(crate) struct Memory<T> {
    words: Vec<u128>,
    length: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> Memory<T> {
    /// The values, stored.
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
        // SAFETY: the words have room for as many elements.
        unsafe { self.words.as_mut_ptr().cast::<T>().add(i).write(value) };
    }

    /// An element.
    pub(crate) fn at(&self, i: usize) -> T {
        assert!(i < self.length);
        // SAFETY: the words hold as many elements, which are valid.
        unsafe { self.words.as_ptr().cast::<T>().add(i).read() }
    }

    /// Zeros, which take no memory before they are touched.
    pub(crate) fn zeros(length: usize) -> Self {
        let words = vec![0; (length * size_of::<T>()).div_ceil(16).max(1)];
        let memory = Memory { words, length, marker: std::marker::PhantomData };
        let bytes = size_of_val(&*memory.words);
        BLOCKS.with_borrow_mut(|blocks| blocks.insert(memory.address(), bytes));
        memory
    }

    /// The address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// The operand with these strides, counted in elements.
    pub(crate) fn operand(&self, strides: &[isize]) -> Operand {
        let size = size_of::<T>() as isize;
        Operand {
            address: self.address(),
            dtype: T::DTYPE,
            strides: strides.iter().map(|stride| stride * size).collect(),
        }
    }

    /// The values.
    pub(crate) fn values(&self) -> Vec<T> {
        (0..self.length).map(|i| self.at(i)).collect()
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        BLOCKS.with_borrow_mut(|blocks| blocks.remove(&(self.words.as_ptr() as u64)));
    }
}

/// Addresses and bytes of the arrays that this thread's test has.
pub(crate) fn blocks() -> Vec<(u64, usize)> {
    BLOCKS.with_borrow(|blocks| blocks.iter().map(|(&address, &bytes)| (address, bytes)).collect())
}

/// An operand of records in memory made of bytes.
pub(crate) fn records(memory: &Memory<u8>, bytes: u32, offset: u64, strides: &[isize]) -> Operand {
    Operand {
        address: memory.address() + offset,
        dtype: DType::Opaque(bytes),
        strides: strides.into(),
    }
}

/// Runs the operations in order; false, with the reason printed, where there is no compiler.
#[must_use]
pub(crate) fn run(operations: &[Description]) -> bool {
    run_as(Runs::Trapping, operations)
}

pub(crate) fn run_as(runs: Runs, operations: &[Description]) -> bool {
    let mut plans: Vec<Plan> = operations.iter().map(plan).collect();
    let is_new =
        |spec: &KernelSpec| COMPILED.with_borrow(|compiled| !compiled.contains_key(&(*spec, runs)));
    let mut seen = HashSet::new();
    let specs = plans.iter().map(Plan::spec).filter(|spec| is_new(spec) && seen.insert(*spec));
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
        let library = COMPILED.with_borrow(|compiled| compiled[&(plan.spec(), runs)].clone());
        let names = plan.spec().kernel_names();
        for launch in plan.launches() {
            let kernel = Kernel::find(&library, &names[launch.kernel]).unwrap();
            let (grid, block) = (launch.config.grid, launch.config.block);
            assert_eq!(launch.config.shared_bytes, 0);
            let shape = Shape { grid, block, cooperative: false };
            let arguments = plan.arguments(launch);
            // SAFETY: the arguments are those of the kernel, with addresses of the tests' arrays.
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
            // As the run-time compilers of GPUs, it has no headers but its own.
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
    let text = unit(specs.iter().copied());
    // Lanes exchange values as on a GPU.
    let options = &["-D__GPUARRAY_DOUBLE__"];
    let source = Source { text: &text, name: "kernels.cu", options, ..Source::default() };
    let compiled = compiler.compile(&source).unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: the text is the library's own.
    Some(unsafe { Library::load(&compiled.library) }.unwrap())
}

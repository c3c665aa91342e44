//! The tests' arrays, and generated source compiled with the system's C++ compiler and run on
//! the host.

pub(crate) use crate::operations::plan;
use gpuarray_hal::operation::{Description, Operand};
use gpuarray_hal::source::{KernelSpec, Plan, unit};
use gpuarray_hal::{DType, Element};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::c_void;
use std::io::Write as _;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The header that runs kernels on the host.
const SHIM: &str = include_str!("shim.h");

thread_local! {
    /// What this thread's test has compiled. A library has one block of threads, so no two tests
    /// share one.
    static COMPILED: RefCell<HashMap<KernelSpec, Rc<libloading::Library>>> = RefCell::new(HashMap::new());

    /// Addresses and bytes of the arrays that this thread's test has.
    static BLOCKS: RefCell<BTreeMap<u64, usize>> = const { RefCell::new(BTreeMap::new()) };
}

type Run = unsafe extern "C" fn(*mut *mut c_void, u32, u32);

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
    let mut plans: Vec<Plan> = operations.iter().map(plan).collect();
    let is_new = |spec: &KernelSpec| COMPILED.with_borrow(|compiled| !compiled.contains_key(spec));
    let mut seen = HashSet::new();
    let specs = plans.iter().map(Plan::spec).filter(|spec| is_new(spec) && seen.insert(*spec));
    let specs: Vec<KernelSpec> = specs.collect();
    if !specs.is_empty() {
        let Some(library) = compile(&specs).map(Rc::new) else {
            return false;
        };
        COMPILED.with_borrow_mut(|compiled| {
            compiled.extend(specs.into_iter().map(|spec| (spec, library.clone())));
        });
    }
    for plan in &mut plans {
        let mut workspace = vec![0_u128; plan.workspace_bytes().div_ceil(16)];
        plan.set_workspace(workspace.as_mut_ptr() as u64);
        let library = COMPILED.with_borrow(|compiled| compiled[&plan.spec()].clone());
        let names = plan.spec().kernel_names();
        for launch in plan.launches() {
            let name = format!("run_{}", names[launch.kernel]);
            let mut arguments = plan.arguments(launch);
            let config = launch.config;
            assert_eq!((config.grid[1..].to_vec(), config.shared_bytes), (vec![1, 1], 0));
            // SAFETY: the library exports the launcher of each kernel with this signature,
            // and the arguments are those of the kernel.
            unsafe {
                let run = library.get::<Run>(name.as_bytes()).unwrap();
                run(arguments.as_mut_ptr(), config.grid[0], config.block[0]);
            }
        }
    }
    true
}

fn compile(specs: &[KernelSpec]) -> Option<libloading::Library> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("gpuarray-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, object) = (folder.join("kernels.cpp"), folder.join("kernels.so"));
    let mut text = format!("#include \"shim.h\"\n{}", unit(specs.iter().copied()));
    for name in specs.iter().flat_map(KernelSpec::kernel_names) {
        text += &format!(
            "extern \"C\" void run_{name}(void** arguments, unsigned blocks, unsigned threads) {{ \
             shim::launch(gpuarray::{name}, arguments, blocks, threads); }}\n"
        );
    }
    std::fs::write(folder.join("shim.h"), SHIM).unwrap();
    std::fs::write(&source, text).unwrap();
    let output = Command::new("c++")
        .args(["-x", "c++", "-std=c++17", "-O0", "-fPIC", "-shared", "-w"])
        .args(["-ffp-contract=off", "-fno-strict-aliasing", "-fsanitize=undefined"])
        .args(["-fno-sanitize=alignment,float-divide-by-zero", "-fno-sanitize-recover=undefined"])
        .args(["-fsanitize-undefined-trap-on-error"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .output();
    let library = match output {
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the system's C++ compiler `c++` does not run: {error}"
            );
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            // SAFETY: the library has no initialisers but those of the C++ runtime.
            Some(unsafe { libloading::Library::new(&object) }.unwrap())
        }
    };
    // Where a test fails before this the files stay, to be looked at.
    std::fs::remove_dir_all(&folder).unwrap();
    library
}

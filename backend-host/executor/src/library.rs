//! A compiled unit in the process: its kernels and variables.

mod opening;

use crate::abi::{self, Constant, Entry, Unit};
use crate::check::{self, CHECKED_EXECUTOR};
use crate::error::{Error, Result};
use crate::executor::EXECUTOR;
use crate::grid::{self, Initialiser};
use crate::initialisers;
use crate::launch::Schedule;
use crate::shared_memory::{DYNAMIC_SHARED, GUARD_BYTES, MOST_SHARED_BYTES, is_guard, is_shared};
use crate::shared_use;
use crate::symbols::{Symbol, Symbols};
use cuda_c::{CONSTANT_OF_FUNCTION, CONSTANT_PREFIX};
use object::SymbolKind;
use opening::open;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A loaded unit. It is unloaded when this object and all kernels of the unit have been dropped.
pub struct Library {
    kernels: HashMap<String, Code>,
    variables: HashMap<String, (usize, usize)>,
    /// The names of the variables that are not constants.
    writable: HashSet<String>,
    /// The names of the entries requested by the compilation's `names`, in order.
    names: Vec<String>,
    warp_size: u32,
    /// The variables in constant memory.
    constants: Vec<Constant>,
    /// The static shared memory: offsets and sizes in thread-local memory.
    shared: Vec<(u64, u64)>,
    /// The offsets of the flags that record if constructors of shared memory have run.
    guards: Vec<u64>,
    /// The offset of `threadIdx`.
    thread_index: Option<u64>,
    /// The offset of dynamic shared memory.
    dynamic_shared: Option<u64>,
    local: unsafe extern "C" fn() -> *mut u8,
    local_offset: u64,
    /// The addresses of the unit's own code.
    pub(crate) code: Range<usize>,
    /// The layout of a unit with checks.
    checked: Option<check::Unit>,
    /// The handle under which the destructors of the unit's variables are registered, if there may be any.
    destructors: Option<usize>,
    /// Unloaded last.
    _handle: opening::Opened,
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

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(handle) = self.destructors {
            // SAFETY: the unit is unloaded after this, and its kernels, which keep it loaded, have been
            // dropped.
            unsafe { grid::destroy(self, handle as *mut c_void) };
        }
    }
}

impl Library {
    /// Checks that bytes are a compiled unit, without loading it.
    ///
    /// # Errors
    /// `NotAUnit`.
    pub fn check(bytes: &[u8]) -> Result<()> {
        root(&Symbols::of(bytes)?).map(drop)
    }

    /// Loads the output of a [`Compiler`](crate::Compiler).
    ///
    /// # Errors
    /// `NotAUnit` for other bytes, for a unit of another version, or if the system's loader or the
    /// initialiser of a variable fails.
    ///
    /// # Safety
    /// The bytes are the code of a trusted compilation, because loading runs code in them.
    pub unsafe fn load(bytes: &[u8]) -> Result<Arc<Library>> {
        let symbols = Symbols::of(bytes)?;
        let root = root(&symbols)?.clone();
        let (bytes, initialisers) = initialisers::take(bytes)?;
        // SAFETY: the caller trusts the code.
        let handle = unsafe { open(&bytes) }?;
        // SAFETY: the symbol is a `Unit`; its version is checked before the rest is read.
        let unit: *const Unit = unsafe {
            *handle
                .get::<*const Unit>(b"gpuarray_unit\0")
                .map_err(|error| Error::NotAUnit(format!("the unit does not load: {error}")))?
        };
        let base = (unit as usize).wrapping_sub(root.value as usize);
        // SAFETY: as above.
        let unit = unsafe { &*unit };
        if unit.version != abi::VERSION {
            return Err(Error::NotAUnit(format!(
                "the unit has version {} of the interface; this program has {}",
                unit.version,
                abi::VERSION
            )));
        }
        // SAFETY: the unit is loaded there, and none of its code runs yet.
        let checked = unsafe { check::Unit::of(&symbols, &bytes, base) };
        let executor = if checked.is_some() { &CHECKED_EXECUTOR } else { &EXECUTOR };
        // SAFETY: the variable belongs to the unit, and none of its code runs yet.
        unsafe { *unit.executor = executor };
        // SAFETY: as above.
        unsafe { *unit.shared_bounds = shared_bounds(&symbols) };
        let by_address = by_address(&symbols, base);
        let static_shared_of = static_shared_of(&symbols);
        let mut library = Library {
            kernels: HashMap::new(),
            variables: variables(&symbols, base),
            writable: symbols
                .defined
                .iter()
                .filter(|it| it.is_writable)
                .map(|it| it.name.clone())
                .collect(),
            names: Vec::new(),
            warp_size: unit.warp_size,
            // SAFETY: the unit is loaded there.
            constants: unsafe { constants(&symbols, base) },
            shared: static_shared(&symbols).map(|it| (it.value, it.bytes)).collect(),
            guards: guards(&symbols),
            thread_index: symbols.find("_ZL9threadIdx").map(|it| it.value),
            dynamic_shared: symbols.find(DYNAMIC_SHARED).map(|it| it.value),
            local: unit.local,
            code: base.wrapping_add(symbols.code.start as usize)
                ..base.wrapping_add(symbols.code.end as usize),
            local_offset: symbols.find("gpuarray_local").map_or(0, |it| it.value),
            checked,
            destructors: symbols
                .find("__dso_handle")
                .filter(|_| symbols.is_undefined("__cxa_atexit"))
                .map(|it| base.wrapping_add(it.value as usize)),
            _handle: handle,
        };
        if initialisers.count() > 0 {
            let first = base.wrapping_add(initialisers.start as usize) as *const Initialiser;
            // SAFETY: the table belongs to the library, and the loader has filled in the addresses.
            let initialised = unsafe {
                let functions = std::slice::from_raw_parts(first, initialisers.count());
                grid::initialise(&library, functions)
            };
            initialised
                .map_err(|error| Error::NotAUnit(format!("the unit does not load: {error}")))?;
        }
        for number in 0.. {
            let Some(entry) = symbols.find(&format!("gpuarray_entry_{number}")) else { break };
            let address = base.wrapping_add(entry.value as usize) as *const Entry;
            // SAFETY: the symbol is an `Entry` of this version, which the unit's constructors have written.
            let entry = unsafe { &*address };
            // SAFETY: as above.
            unsafe { library.add(entry, &by_address, &static_shared_of) };
        }
        Ok(Arc::new(library))
    }

    /// # Safety
    /// The entry belongs to the unit.
    unsafe fn add(
        &mut self,
        entry: &Entry,
        by_address: &HashMap<usize, Vec<&str>>,
        static_shared_of: &HashMap<&str, u64>,
    ) {
        let names: Vec<String> = if entry.name.is_null() {
            let known = by_address.get(&entry.address);
            known.into_iter().flatten().map(|name| (*name).to_owned()).collect()
        } else {
            // SAFETY: the name is a literal of the unit.
            vec![unsafe { CStr::from_ptr(entry.name) }.to_string_lossy().into_owned()]
        };
        self.names.push(names.first().cloned().unwrap_or_default());
        let Some(run) = entry.run else { return };
        let named = by_address.get(&(run as usize)).into_iter().flatten();
        let static_shared = named.filter_map(|name| static_shared_of.get(name)).max();
        let mut parameters = Vec::new();
        let mut end = 0;
        for index in 0..entry.parameter_count as usize {
            // SAFETY: the entry has this many parameters.
            let parameter = unsafe { *entry.parameters.add(index) };
            let alignment = (parameter.alignment as usize).max(1);
            let offset = usize::next_multiple_of(end, alignment);
            let bytes = parameter.bytes as usize;
            let is_pointer = parameter.is_pointer != 0;
            parameters.push(Parameter { offset, bytes, alignment, is_pointer });
            end = offset + bytes;
        }
        for name in names {
            let kernel = Code {
                run,
                regions: entry.regions,
                parameters: parameters.clone(),
                most_threads: entry.most_threads,
                least_blocks: entry.least_blocks,
                static_shared: static_shared.copied().unwrap_or(0),
            };
            // The entry of the text contains the launch bounds; a name expression may not.
            let known = self.kernels.entry(name).or_insert_with(|| kernel.clone());
            known.most_threads = known.most_threads.max(kernel.most_threads);
        }
    }

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

/// Returns the symbol of the structure that describes a unit.
fn root(symbols: &Symbols) -> Result<&Symbol> {
    if let Some(name) = &symbols.resolved {
        // Its resolver would run in the system's loader, where a fault ends the process.
        return Err(Error::NotAUnit(format!(
            "{name} is chosen when the unit is loaded (ifunc, target_clones)"
        )));
    }
    let no_unit = || Error::NotAUnit("the file is no compiled unit of CUDA C".to_owned());
    symbols.find("gpuarray_unit").ok_or_else(no_unit)
}

/// Returns the start and end of shared memory in thread-local memory, relative to the unit's variable
/// `gpuarray_local`.
fn shared_bounds(symbols: &Symbols) -> [i64; 2] {
    let from = symbols.find("gpuarray_local").map_or(0, |it| it.value);
    let all = || static_shared(symbols).chain(symbols.find(DYNAMIC_SHARED));
    let begin = all().map(|it| it.value).min().unwrap_or(from);
    let end = all().map(|it| it.value + it.bytes).max().unwrap_or(from);
    [begin, end].map(|it| it.wrapping_sub(from) as i64)
}

/// Returns the symbols of static shared memory.
pub(crate) fn static_shared(symbols: &Symbols) -> impl Iterator<Item = &Symbol> {
    let all = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Tls && it.bytes > 0);
    all.filter(|it| is_shared(&it.name) && it.name != DYNAMIC_SHARED)
}

/// Returns the offsets of the guards of shared variables with constructors.
fn guards(symbols: &Symbols) -> Vec<u64> {
    let all = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Tls && it.bytes > 0);
    all.filter(|it| is_guard(&it.name)).map(|it| it.value).collect()
}

/// Returns the static shared memory in bytes, by the name of the function that uses it.
fn static_shared_of(symbols: &Symbols) -> HashMap<&str, u64> {
    let all = symbols.defined.iter();
    all.filter_map(|it| Some((it.name.strip_prefix(shared_use::PREFIX)?, it.bytes))).collect()
}

/// Returns the variables in constant memory.
///
/// # Safety
/// The library is loaded at `base`.
pub(crate) unsafe fn constants(symbols: &Symbols, base: usize) -> Vec<Constant> {
    let of_text = (0..).map_while(|number| symbols.find(&format!("{CONSTANT_PREFIX}{number}")));
    let of_functions = symbols.defined.iter().filter(|it| {
        it.name.contains(CONSTANT_OF_FUNCTION) && it.bytes == size_of::<Constant>() as u64
    });
    let mut found = Vec::new();
    for symbol in of_text.chain(of_functions) {
        // SAFETY: the front end has written a description there, and the loader its address.
        let constant = unsafe { *(base.wrapping_add(symbol.value as usize) as *const Constant) };
        if constant.bytes > 0 {
            found.push(constant);
            continue;
        }
        // SAFETY: the description of a template holds a literal of the unit instead of an address.
        let begin = unsafe { CStr::from_ptr(constant.address as *const c_char) }.to_string_lossy();
        let Some((scope, name)) = begin.split_once(' ') else { continue };
        let is_of_template = |it: &&Symbol| {
            let rest = it.name.strip_prefix(scope).unwrap_or_default();
            rest.strip_prefix('L').unwrap_or(rest).starts_with(name)
        };
        let variables = symbols.defined.iter().filter(|it| it.kind == SymbolKind::Data);
        let variables = variables.filter(is_of_template);
        found.extend(variables.map(|it| Constant {
            bytes: it.bytes,
            alignment: it.bytes.next_power_of_two().min(16),
            address: base.wrapping_add(it.value as usize),
        }));
    }
    found
}

fn by_address(symbols: &Symbols, base: usize) -> HashMap<usize, Vec<&str>> {
    let mut names: HashMap<usize, Vec<&str>> = HashMap::new();
    for symbol in symbols.defined.iter().filter(|it| it.kind != SymbolKind::Tls) {
        names.entry(base.wrapping_add(symbol.value as usize)).or_default().push(&symbol.name);
    }
    names
}

fn variables(symbols: &Symbols, base: usize) -> HashMap<String, (usize, usize)> {
    let is_own = |name: &str| name.contains("gpuarray_");
    symbols
        .defined
        .iter()
        .filter(|it| it.kind == SymbolKind::Data && it.bytes > 0 && !is_own(&it.name))
        .map(|it| (it.name.clone(), (base.wrapping_add(it.value as usize), it.bytes as usize)))
        .collect()
}

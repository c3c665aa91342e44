//! Loads a compiled unit into the process.

use crate::abi::{self, Constant, Entry, Unit};
use crate::check;
use crate::error::{Error, Result};
use crate::executor::EXECUTOR;
use crate::executor::checked::{CHECKED_EXECUTOR, connect};
use crate::fork::NoFork;
use crate::initialisers::{self, Initialiser, destroy, initialise};
use crate::library::{Code, Library, Opened, Parameter};
use crate::shared_memory::{DYNAMIC_SHARED, guards, shared_bounds, static_shared};
use crate::shared_use;
use crate::symbols::{Symbol, Symbols};
use crate::temporary::Folder;
use cuda_c::{CONSTANT_OF_FUNCTION, CONSTANT_PREFIX};
use object::SymbolKind;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fs;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(handle) = self.destructors {
            // SAFETY: the unit is unloaded after this, and its kernels, which keep it loaded, have been
            // dropped.
            unsafe { destroy(self, handle as *mut c_void) };
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
    /// The bytes must come from a trusted compilation: loading runs code in them.
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
        let (is_checked, constants) =
            unsafe { (connect(&symbols, base), constants(&symbols, base)) };
        // SAFETY: as above.
        let checked =
            is_checked.then(|| unsafe { check::Unit::of(&symbols, &constants, &bytes, base) });
        let executor = if is_checked { &CHECKED_EXECUTOR } else { &EXECUTOR };
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
            constants,
            shared: static_shared(&symbols).map(|it| (it.value, it.bytes)).collect(),
            guards: guards(&symbols),
            thread_index: symbols.find("_ZL9threadIdx").map(|it| it.value),
            dynamic_shared: symbols.find(DYNAMIC_SHARED).map(|it| it.value),
            executor,
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
                initialise(&library, functions)
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

/// Returns the static shared memory in bytes, by the name of the function that uses it.
fn static_shared_of(symbols: &Symbols) -> HashMap<&str, u64> {
    let all = symbols.defined.iter();
    all.filter_map(|it| Some((it.name.strip_prefix(shared_use::PREFIX)?, it.bytes))).collect()
}

/// Returns the variables in constant memory.
///
/// # Safety
/// The library is loaded at `base`.
unsafe fn constants(symbols: &Symbols, base: usize) -> Vec<Constant> {
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

/// Loads a library from bytes, under a unique path, because the system's loader identifies libraries by their
/// paths.
///
/// # Safety
/// The code is trusted.
unsafe fn open(bytes: &[u8]) -> Result<Opened> {
    let folder = Folder::new()?;
    let path = folder.path.join("unit.so");
    fs::write(&path, bytes).map_err(|error| folder.failed(&error))?;
    // SAFETY: the caller's promise.
    unsafe { load(&path) }.or_else(|error| {
        // A folder for temporary files may be mounted without execute permission.
        // SAFETY: the caller's promise.
        unsafe { open_in_memory(bytes, &folder) }.unwrap_or(Err(error))
    })
}

/// # Safety
/// The code is trusted.
unsafe fn load(path: &Path) -> Result<Opened> {
    let _no_fork = NoFork::begin();
    // SAFETY: the caller's promise.
    unsafe { libloading::Library::new(path) }
        .map(|library| Opened(ManuallyDrop::new(library)))
        .map_err(|error| Error::NotAUnit(format!("the unit does not load: {error}")))
}

/// Loads the library from a file in memory. Returns `None` if the system does not support this.
///
/// # Safety
/// The code is trusted.
#[cfg(target_os = "linux")]
unsafe fn open_in_memory(bytes: &[u8], folder: &Folder) -> Option<Result<Opened>> {
    use std::io::Write as _;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    // SAFETY: the name is a C string.
    let descriptor = unsafe { libc::memfd_create(c"unit".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is new and owned by this object.
    let mut file = unsafe { fs::File::from_raw_fd(descriptor) };
    file.write_all(bytes).ok()?;
    // A link in the folder makes the path unique.
    let link = folder.path.join("memory.so");
    std::os::unix::fs::symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).ok()?;
    // SAFETY: the caller's promise.
    Some(unsafe { load(&link) })
}

#[cfg(not(target_os = "linux"))]
unsafe fn open_in_memory(_: &[u8], _: &Folder) -> Option<Result<Opened>> {
    None
}

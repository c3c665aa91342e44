//! Formulas that a program computes often, compiled by the system's C++ compiler.
//!
//! A formula begins in pieces (`host_kernels`). Once a program has computed so many of its elements that a loop in
//! machine code would have saved about the time of a compilation, a thread compiles it. The program does not wait; the
//! first operation after the compilation uses the loop. If there is no compiler, or a compiled loop may have other bits,
//! the formula stays in pieces.

use crate::compile;
use crate::seal::unsealed;
use codegen::source::{ROW, ROW_OPTIONS, row_source};
use hal::operation::{Description, Formula, Fused, Input, Mapped, Operand, Operation, Reduce};
use hal::process::{self, ProcessMutex};
use hal::{Error, Result};
use host_executor::Library;
use host_kernels::{CompiledRow, RowFunction};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::thread;

/// The number of elements, each counted once for every step, before a formula is compiled. A compiled loop saves about
/// 0.1 ns for each, and a compilation takes about 0.4 s.
const WORTH_COMPILING: u64 = 1 << 32;

/// The fewest elements of an operation, each counted once for every step, for which a formula is looked up. A loop would
/// save less than the search takes.
const FEWEST: u64 = 1 << 13;

/// The largest number of formulas that are known. Then those that are only counted are forgotten.
const MOST_ENTRIES: usize = 1024;

/// A formula, and a bit for each array of its inputs that is one element along the last axis.
type Key = (Formula, u32);

#[derive(Debug)]
enum Entry {
    /// The elements and steps until now.
    Counted(u64),
    /// It is being compiled, or stays in pieces.
    InPieces,
    Compiled(Arc<CompiledRow>),
}

static ENTRIES: ProcessMutex<HashMap<Key, Entry>> = ProcessMutex::new(HashMap::new);

/// Returns the compiled loop of an operation's formula, if there is one. Otherwise, counts the operation.
pub(crate) fn find(operation: &Operation) -> Option<Arc<CompiledRow>> {
    let (formula, shape, inputs, outputs): (_, _, _, &[Operand]) = match operation.description() {
        Description::Fused(Fused { formula, shape, inputs, outputs }) => {
            (formula, shape, inputs, outputs)
        }
        Description::Reduce(Reduce { input: Mapped::Formula(values), .. }) => {
            (&values.formula, &values.shape, &values.inputs, &[])
        }
        _ => return None,
    };
    let elements = shape.iter().fold(1_u64, |count, &extent| count.saturating_mul(extent as u64));
    let work = elements.saturating_mul(formula.steps().len() as u64);
    if work < FEWEST {
        return None;
    }
    let mut repeated = 0;
    let arrays = inputs.iter().filter_map(|input| match input {
        Input::Array(operand) => Some(operand),
        Input::Scalar(_) => None,
    });
    for (number, array) in arrays.enumerate() {
        match array.strides.last() {
            Some(0) => repeated |= 1 << number,
            Some(&stride) if stride == array.dtype.size() as isize => {}
            _ => return None,
        }
    }
    let runs = |output: &Operand| output.strides.last() == Some(&(output.dtype.size() as isize));
    if !outputs.iter().all(runs) {
        return None;
    }
    let key = (formula.clone(), repeated);
    let mut entries = ENTRIES.lock();
    match entries.get_mut(&key) {
        Some(Entry::Compiled(row)) => return Some(row.clone()),
        Some(Entry::InPieces) => return None,
        Some(Entry::Counted(count)) => {
            *count = count.saturating_add(work);
            if *count < WORTH_COMPILING {
                return None;
            }
        }
        None => {
            if entries.len() >= MOST_ENTRIES {
                entries.retain(|_, entry| !matches!(entry, Entry::Counted(_)));
            }
            if entries.len() < MOST_ENTRIES {
                entries.insert(key, Entry::Counted(work));
            }
            return None;
        }
    }
    entries.insert(key.clone(), Entry::InPieces);
    drop(entries);
    compile_later(key);
    None
}

/// The number of compilations that have begun and not ended.
static COMPILING: AtomicUsize = AtomicUsize::new(0);

extern "C" fn at_exit() {
    if COMPILING.load(Ordering::Relaxed) > 0 {
        host_executor::remove_temporary_folders();
    }
}

/// Compiles a formula on another thread.
fn compile_later(key: Key) {
    static AT_EXIT: Once = Once::new();
    // SAFETY: the function needs nothing that exit handlers destroy.
    AT_EXIT.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
    let compile = move || match compile_row(&key) {
        Ok(Some(row)) => {
            ENTRIES.lock().insert(key, Entry::Compiled(Arc::new(row)));
        }
        Ok(None) => {}
        Err(error) => log::debug!("a formula stays in pieces: {error}"),
    };
    let started = thread::Builder::new().name("pygpu compile".to_owned()).spawn(compile);
    if let Err(error) = started {
        log::debug!("a formula stays in pieces: {error}");
    }
}

/// Compiles a formula, or takes the code from the cache. Returns `None` if it has to stay in pieces.
fn compile_row((formula, repeated): &Key) -> Result<Option<CompiledRow>> {
    /// One compilation at a time leaves the other cores to the program.
    static TURN: Mutex<()> = Mutex::new(());
    let is_repeated = |array: usize| repeated >> array & 1 == 1;
    let Some(source) = row_source(formula, is_repeated) else { return Ok(None) };
    let library = {
        let _turn = TURN.lock();
        if process::is_exiting() {
            return Ok(None);
        }
        COMPILING.fetch_add(1, Ordering::Relaxed);
        let compiled = compile::compile(&source, "fused.cu", ROW_OPTIONS, false);
        COMPILING.fetch_sub(1, Ordering::Relaxed);
        let compiled = compiled?;
        let image = unsealed(&compiled.code).map_err(|what| Error::invalid("compile", what))?;
        // SAFETY: the code of this compilation, which has no initialisers.
        unsafe { Library::load(image) }.map_err(compile::error)?
    };
    let found = library.variable(ROW).filter(|&(_, bytes)| bytes == size_of::<RowFunction>());
    let Some((address, _)) = found else {
        return Err(Error::unsupported("compile", "the compiled loop has no address"));
    };
    // SAFETY: the variable of this type in the loaded library, which is never unloaded.
    let run = unsafe { (address as *const RowFunction).read() };
    std::mem::forget(library);
    let mut arrays = 0;
    let inputs = formula.inputs().iter().filter_map(|input| match *input {
        Input::Scalar(_) => None,
        Input::Array(dtype) => {
            arrays += 1;
            Some(if is_repeated(arrays - 1) { 0 } else { dtype.size() as isize })
        }
    });
    let outputs = formula.outputs().map(|step| formula.steps()[step].dtype.size() as isize);
    // SAFETY: the loop that the source defines, and whose library stays loaded.
    Ok(Some(unsafe { CompiledRow::new(run, inputs.chain(outputs)) }))
}

#[cfg(test)]
mod tests;

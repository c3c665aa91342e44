//! Compiles the units of a target, one on each processor at a time.

use super::TARGET_VARIABLE;
use super::compiler::Compiler;
use super::targets::Embedded;
use codegen::compile::embedded::PackedObject;
use codegen::compile::{CodeCache, CodeKey, Compilation, Target};
use codegen::source::catalogue::Group;
use codegen::source::unit;
use hal::poison::Unpoisoned as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Compiles every group with a compiler that works; `scratch` is a folder for its files.
///
/// # Errors
/// A line that names the unit and the compiler, with the compiler's message.
pub(crate) fn compile(
    compiler: &Compiler,
    groups: &[Group],
    cache: &CodeCache,
    scratch: &Path,
    jobs: usize,
) -> Result<Embedded, String> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(groups.len()));
    let keep = |number, result: Result<Option<PackedObject>, String>| {
        if result.is_err() {
            next.store(groups.len(), Ordering::Relaxed);
        }
        results.lock().unpoisoned().push((number, result));
    };
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = groups.get(number) else { break };
            keep(number, object(compiler, group, cache, scratch));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.min(groups.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unpoisoned();
    // In the catalogue's order, whichever was ready first.
    results.sort_by_key(|(number, _)| *number);
    let mut embedded = Embedded {
        target: compiler.target.clone(),
        compiler: compiler.version.clone(),
        objects: Vec::with_capacity(groups.len()),
        left_out: Vec::new(),
    };
    for (number, result) in results {
        match result? {
            Some(object) => embedded.objects.push(object),
            None => embedded.left_out.push(groups[number].name.clone()),
        }
    }
    Ok(embedded)
}

/// Returns the object of a group, from the last build if nothing has changed; `None` if it needs
/// AMD's device library and that is missing.
fn object(
    compiler: &Compiler,
    group: &Group,
    cache: &CodeCache,
    scratch: &Path,
) -> Result<Option<PackedObject>, String> {
    let specs = group.specs();
    let text = unit(specs.iter().cloned());
    let target = compiler.target.to_string();
    let options: Vec<&str> = compiler.options.iter().map(String::as_str).collect();
    let (name, options) = (&group.name, &options[..]);
    let made_from =
        Compilation { text: &text, name, target: &target, options, ..Compilation::default() };
    let identity = format!("{} {}", compiler.program.display(), compiler.version);
    let key = CodeKey::new(&made_from, &identity);
    let failed = |what: String| {
        let program = compiler.program.display();
        format!(
            "{TARGET_VARIABLE}: {program} failed on the unit {name} for {target}: {what}; if it is \
             not a version that is supported, install one, or unset {TARGET_VARIABLE}"
        )
    };
    let code = match cache.load(&key) {
        Some(code) => code,
        None => match compiler.compile(name, &text, scratch) {
            Err(error) if compiler.is_bare && error.contains("__ocml_") => return Ok(None),
            result => {
                let code = result.map_err(failed)?;
                cache.store(&key, &code);
                code
            }
        },
    };
    if !matches!(compiler.target, Target::Ptx { .. }) {
        return Ok(Some(PackedObject::new(&specs, &code)));
    }
    let object = PackedObject::of_ptx(&specs, &code);
    object.map(Some).ok_or_else(|| failed("made PTX without some of the kernels".into()))
}

//! An on-disk cache of compiled programs that all processes share.

use host_executor::{Compiled, Compiler, Result, Source};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles a program, or returns the cached result for the same program.
pub(crate) fn compile(folder: &Path, compiler: &Compiler, source: &Source<'_>) -> Result<Compiled> {
    let identity = compiler.identity();
    // The text of included files is part of the key.
    let preprocessed = includes(source).then(|| compiler.preprocess(source)).transpose()?;
    let key = match &preprocessed {
        Some(it) => key(&(&identity, &it.text, it.settings())),
        None => key(&(&identity, source.text, source.name, source.options, source.names)),
    };
    let path = folder.join(key);
    if let Ok(library) = fs::read(&path) {
        return Ok(Compiled { library, log: String::new() });
    }
    let compiled = match &preprocessed {
        Some(it) => compiler.compile_preprocessed(it)?,
        None => compiler.compile(source)?,
    };
    // Warnings are not cached, so a program that causes some is not cached either.
    if compiled.log.is_empty() {
        keep(folder, &path, &compiled.library);
    }
    Ok(compiled)
}

fn includes(source: &Source<'_>) -> bool {
    let includes = |text: &str| text.contains("include");
    includes(&source.text.replace("\\\n", "")) || source.options.iter().any(|it| includes(it))
}

/// Returns a file name with 128 bits of hash.
fn key(parts: &impl std::hash::Hash) -> String {
    let [one, two] = [1_u8, 2].map(|seed| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        parts.hash(&mut hasher);
        hasher.finish()
    });
    format!("{one:016x}{two:016x}.so")
}

/// Writes atomically, so that readers find only complete files. A failure to write is ignored.
fn keep(folder: &Path, path: &Path, library: &[u8]) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("{}-{count}", std::process::id()));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&fresh, library));
    if written.and_then(|()| fs::rename(&fresh, path)).is_err() {
        let _ = fs::remove_file(&fresh);
    }
}

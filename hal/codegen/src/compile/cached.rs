//! A run-time compiler with an on-disk cache.

use super::cache::{CodeCache, CodeKey};
use super::{Compilation, Compiler};
use hal::error::Result;
use hal::module::Compiled;
use std::ffi::OsString;

/// Compiles, unless the cache has the result of the same compilation. Text that includes other files
/// is always compiled, because those may have changed.
///
/// # Errors
/// The compiler's.
pub fn compile_cached(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
) -> Result<Compiled> {
    compile_with(compiler, cache, compilation, |name| std::env::var_os(name))
}

/// Compiles, unless the cache has the result of the same compilation. For compilations that do not
/// read files, even if their text appears to.
///
/// # Errors
/// The compiler's.
pub fn compile_closed(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
) -> Result<Compiled> {
    let settings = settings(compiler, |name| std::env::var_os(name));
    compile_kept(compiler, cache, compilation, &settings)
}

fn compile_with(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Compiled> {
    let settings = settings(compiler, variable);
    let reads_files = may_read_files(compilation) || settings.contains("include");
    if reads_files {
        return compiler.compile(compilation);
    }
    compile_kept(compiler, cache, compilation, &settings)
}

/// Returns true if a compilation may include files.
pub fn may_read_files(compilation: &Compilation<'_>) -> bool {
    let includes = |text: &str| text.contains("include");
    // A directive may be split over lines; options such as `-include` also include files.
    includes(compilation.text)
        || includes(&compilation.text.replace("\\\r\n", "").replace("\\\n", ""))
        || compilation.options.iter().any(|option| includes(option))
}

fn compile_kept(
    compiler: &dyn Compiler,
    cache: &CodeCache,
    compilation: &Compilation<'_>,
    settings: &str,
) -> Result<Compiled> {
    if cache.folder().is_none() {
        return compiler.compile(compilation);
    }
    let identity = compiler.identity(compilation.target)? + settings;
    let key = CodeKey::new(compilation, &identity);
    if let Some(compiled) = cache.load(&key).and_then(|entry| unpack(&entry)) {
        return Ok(compiled);
    }
    let compiled = compiler.compile(compilation)?;
    cache.store(&key, &pack(&compiled));
    Ok(compiled)
}

/// Returns the environment variables that affect a compiler, as part of the key; empty if none is
/// set.
pub(super) fn settings(
    compiler: &dyn Compiler,
    variable: impl Fn(&str) -> Option<OsString>,
) -> String {
    let value = |name| variable(name).filter(|value: &OsString| !value.is_empty());
    let set = compiler.variables().iter().filter_map(|name| Some((name, value(name)?)));
    // Quoted, so that one value cannot be taken for two.
    set.map(|(name, value)| format!(", {name}={value:?}")).collect()
}

/// Serialises a result: the number of strings, the length and bytes of each, then the code.
fn pack(compiled: &Compiled) -> Vec<u8> {
    let strings = || std::iter::once(&compiled.log).chain(&compiled.lowered);
    let mut entry = (strings().count() as u64).to_le_bytes().to_vec();
    for string in strings() {
        entry.extend((string.len() as u64).to_le_bytes());
        entry.extend(string.as_bytes());
    }
    entry.extend(&compiled.code);
    entry
}

fn unpack(entry: &[u8]) -> Option<Compiled> {
    fn number(rest: &mut &[u8]) -> Option<usize> {
        let (number, behind) = rest.split_first_chunk::<8>()?;
        *rest = behind;
        usize::try_from(u64::from_le_bytes(*number)).ok()
    }
    let mut rest = entry;
    let mut strings = Vec::new();
    for _ in 0..number(&mut rest)? {
        let length = number(&mut rest)?;
        let (string, behind) = rest.split_at_checked(length)?;
        strings.push(String::from_utf8(string.to_vec()).ok()?);
        rest = behind;
    }
    let mut strings = strings.into_iter();
    Some(Compiled { log: strings.next()?, lowered: strings.collect(), code: rest.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A compiler that returns the text in capitals, and counts its calls.
    #[derive(Debug, Default)]
    struct Capitals(AtomicUsize);

    impl Compiler for Capitals {
        fn identity(&self, target: &str) -> Result<String> {
            Ok(format!("capitals for {target}"))
        }

        fn variables(&self) -> &'static [&'static str] {
            &["CAPITALS_APPEND", "CAPITALS_LINK"]
        }

        fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Compiled {
                code: compilation.text.to_uppercase().into_bytes(),
                log: "a warning".into(),
                lowered: compilation.names.iter().map(|name| format!("_{name}")).collect(),
            })
        }
    }

    #[test]
    fn the_same_compilation_runs_once() {
        let folder = std::env::temp_dir().join(format!("pygpu-compiler-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        let plain = Compilation { text: "text", names: &["a<b>", "c"], ..Default::default() };
        let compile = |it: &Compilation<'_>| {
            let compiled = compile_cached(&compiler, &cache, it).expect("it compiles");
            assert_eq!(compiled.code, it.text.to_uppercase().into_bytes());
            (compiled, compiler.0.load(Ordering::Relaxed))
        };
        let (compiled, runs) = compile(&plain);
        assert_eq!((compiled.lowered.join(" "), runs), ("_a<b> _c".into(), 1));
        assert_eq!(compile(&plain), (compiled, 1));
        let others = [
            Compilation { text: "other", ..plain },
            Compilation { target: "sm_90", ..plain },
            Compilation { options: &["-G"], ..plain },
            Compilation { options: &["-", "G"], ..plain },
            Compilation { names: &["a<b>c"], ..plain },
            Compilation { headers: true, ..plain },
            Compilation { name: "file.cu", ..plain },
        ];
        for (i, other) in others.iter().enumerate() {
            assert_eq!(compile(other).1, 2 + i, "{other:?}");
            assert_eq!(compile(other).1, 2 + i, "{other:?}");
        }
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn what_a_compiler_reads_in_the_environment_is_part_of_the_key() {
        let folder = std::env::temp_dir().join(format!("pygpu-variables-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        let it = Compilation { text: "text", ..Default::default() };
        let runs = |append: &'static str, link: &'static str| {
            let variable = |name: &str| match name {
                "CAPITALS_APPEND" => Some(OsString::from(append)),
                "CAPITALS_LINK" => Some(OsString::from(link)),
                _ => None,
            };
            compile_with(&compiler, &cache, &it, variable).expect("it compiles");
            compiler.0.load(Ordering::Relaxed)
        };
        let settings = [("", ""), ("-O1", ""), ("-O2", ""), ("", "-O2"), ("-O1", "-O2")];
        for (number, (append, link)) in settings.into_iter().enumerate() {
            assert_eq!(runs(append, link), number + 1, "{append:?} {link:?}");
        }
        for (append, link) in settings {
            assert_eq!(runs(append, link), settings.len(), "{append:?} {link:?} is kept");
        }
        // Compilations whose options include files are never cached.
        assert_eq!(runs("-include a.h", ""), settings.len() + 1);
        assert_eq!(runs("-include a.h", ""), settings.len() + 2);
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn what_reads_files_is_compiled_each_time() {
        let folder = std::env::temp_dir().join(format!("pygpu-include-{}", std::process::id()));
        let cache = CodeCache::new(&folder, 1 << 20);
        let compiler = Capitals::default();
        for text in ["# include <a.h>", "#inc\\\nlude <a.h>", "#inc\\\r\nlude <a.h>"] {
            let before = compiler.0.load(Ordering::Relaxed);
            for _ in 0..2 {
                let it = Compilation { text, ..Default::default() };
                compile_cached(&compiler, &cache, &it).expect("it compiles");
            }
            assert_eq!(compiler.0.load(Ordering::Relaxed), before + 2, "{text}");
        }
        assert!(!folder.exists());
    }

    #[test]
    fn entries_of_another_form_are_none() {
        let compiled = Compiled { code: vec![1, 2], log: "x".into(), lowered: vec!["y".into()] };
        let entry = pack(&compiled);
        assert_eq!(unpack(&entry), Some(compiled));
        assert_eq!(unpack(&entry[..20]), None);
        assert_eq!(unpack(&[0xff; 40]), None);
        assert_eq!(unpack(&[0; 8]), None);
    }
}

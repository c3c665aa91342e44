//! Compiles a program's kernels with the system's C++ compiler, through `host_executor`.

use crate::seal::seal;
use codegen::compile::{self, CodeCache, Compilation, Compiled, compile_closed, may_read_files};
use hal::library::search_directories;
use hal::{Error, ErrorKind, Result, Status};
use host_executor::{Compiler, Language, Preprocessed, Source};
use std::sync::OnceLock;

/// The source, name and options that a module was compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleText {
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) options: Vec<String>,
}

/// The mark at the end of an image that contains its text.
const MARK: &[u8; 16] = b"gpuarray's text\n";

impl ModuleText {
    /// Appends the text to the end of a library, which loaders do not read.
    pub(crate) fn append(&self, image: &mut Vec<u8>) {
        let start = image.len();
        let parts = [&self.text, &self.name].into_iter().chain(&self.options);
        for part in parts {
            image.extend((part.len() as u64).to_le_bytes());
            image.extend(part.as_bytes());
        }
        image.extend(((image.len() - start) as u64).to_le_bytes());
        image.extend(MARK);
    }

    /// Returns the text in an image, if it contains one.
    pub(crate) fn of(image: &[u8]) -> Option<ModuleText> {
        let image = image.strip_suffix(MARK)?;
        let (image, bytes) = image.split_last_chunk()?;
        let bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
        let mut rest = image.get(image.len().checked_sub(bytes)?..)?;
        let mut parts = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            parts.push(String::from_utf8(behind.get(..length)?.to_vec()).ok()?);
            rest = &behind[length..];
        }
        let mut parts = parts.into_iter();
        Some(ModuleText { text: parts.next()?, name: parts.next()?, options: parts.collect() })
    }
}

/// Compiles CUDA C to a shared library, with or without checks, or takes the library from the on-disk cache.
///
/// A text that includes files is preprocessed first. The cache key is the preprocessed text, so it covers all
/// included files.
///
/// # Errors
/// - `CompileFailed` with the compiler's log.
/// - `InvalidArgument` for a text with a zero byte.
/// - `Unsupported` without a compiler; the message says what to install.
pub(crate) fn compile(text: &str, name: &str, options: &[&str], checked: bool) -> Result<Compiled> {
    if text.contains('\0') || name.contains('\0') {
        return Err(Error::invalid("compile", "the text or its name has a zero byte in it"));
    }
    let own = || ModuleText {
        text: text.to_owned(),
        name: name.to_owned(),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    let compiler =
        HostCompiler { compiler: find(checked)?, preprocessed: None, text: (!checked).then(own) };
    let compilation = Compilation { text, name, options, target: TARGET, ..Compilation::default() };
    if !may_read_files(&compilation) {
        return compile_closed(&compiler, cache()?, &compilation);
    }
    let source = Source { text, name, options, ..Source::default() };
    let preprocessed = compiler.compiler.preprocess(&source).map_err(error)?;
    let settings = preprocessed.settings();
    let text = preprocessed.text.clone();
    let compilation = Compilation { text: &text, options: &[&settings], ..compilation };
    let compiler = HostCompiler { preprocessed: Some(preprocessed), ..compiler };
    compile_closed(&compiler, cache()?, &compilation)
}

/// The program and the version of the C++ compiler.
pub(crate) fn name() -> Result<String> {
    find(false).map(|compiler| compiler.name())
}

/// The name of this machine's target in the cache.
const TARGET: &str = "host";

fn find(checked: bool) -> Result<Compiler> {
    let language = Language { checked, ..Language::default() };
    let compiler = Compiler::find_also_in(&search_directories(), language).map_err(error)?;
    Ok(match cache()?.folder_for("headers") {
        Some(folder) => compiler.keeping_headers_in(folder),
        None => compiler,
    })
}

/// Returns the cache of compiled code on disk, as configured by the environment.
fn cache() -> Result<&'static CodeCache> {
    static CACHE: OnceLock<Result<CodeCache>> = OnceLock::new();
    CACHE.get_or_init(CodeCache::from_environment).as_ref().map_err(Clone::clone)
}

#[derive(Debug)]
struct HostCompiler {
    compiler: Compiler,
    /// The preprocessed text, if the text was already preprocessed.
    preprocessed: Option<Preprocessed>,
    /// The text from which code without checks can be compiled again.
    text: Option<ModuleText>,
}

impl compile::Compiler for HostCompiler {
    fn identity(&self, _: &str) -> Result<String> {
        Ok(format!("{}sealed", self.compiler.identity()))
    }

    fn variables(&self) -> &'static [&'static str] {
        // The variables that gcc and clang read: folders of headers and of their own programs.
        &["CPATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"]
    }

    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled> {
        let compiled = match &self.preprocessed {
            Some(preprocessed) => self.compiler.compile_preprocessed(preprocessed),
            None => {
                let Compilation { text, name, options, .. } = *compilation;
                self.compiler.compile(&Source { text, name, options, ..Source::default() })
            }
        };
        let host_executor::Compiled { mut library, log } = compiled.map_err(error)?;
        if let Some(text) = &self.text {
            text.append(&mut library);
        }
        seal(&mut library);
        Ok(Compiled { code: library, log, lowered: Vec::new() })
    }
}

/// Converts an error of the compiler or the loader.
pub(crate) fn error(error: host_executor::Error) -> Error {
    use host_executor::Error as E;
    let source = Status::host(Status::INVALID_SOURCE);
    match error {
        E::NoCompiler(what) => Error::unsupported("compile", what),
        E::Refused(log) => Error::new(ErrorKind::CompileFailed, source, "compile", log),
        E::NotAUnit(what) => Error::new(ErrorKind::CompileFailed, source, "load_module", what),
        other => {
            let unknown = Status::host(Status::UNKNOWN);
            Error::new(ErrorKind::Driver, unknown, "compile", other.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ModuleText;

    #[test]
    fn an_image_holds_its_text() {
        let text = ModuleText {
            text: "__global__ void f() {}".to_owned(),
            name: String::new(),
            options: vec!["-DX".to_owned(), "-w".to_owned()],
        };
        let mut image = b"library".to_vec();
        assert_eq!(ModuleText::of(&image), None);
        text.append(&mut image);
        assert!(image.starts_with(b"library"));
        assert_eq!(ModuleText::of(&image), Some(text));
        let cut = &image[image.len() - 40..];
        assert_eq!(ModuleText::of(cut), None);
    }
}

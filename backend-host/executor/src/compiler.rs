//! From a text of CUDA C to a shared library.

mod flags;

use crate::check;
use crate::copying;
use crate::endings;
use crate::error::{Error, Result};
use crate::headers;
use crate::library::static_shared;
use crate::options::Options;
use crate::precompiled;
use crate::shared_memory::{DYNAMIC_SHARED, GUARD_BYTES, MOST_SHARED_BYTES, red_zones};
use crate::shared_use;
use crate::symbols::Symbols;
use crate::temporary::Folder;
use crate::toolchain::Toolchain;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A text to compile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// The file name in the compiler's messages.
    pub name: &'a str,
    /// Options in the words of `nvcc`, NVRTC or hipRTC.
    pub options: &'a [&'a str],
    /// Expressions that name kernels and variables, `scale<float>` for example, for which templates are
    /// instantiated.
    pub names: &'a [&'a str],
    /// Headers by the names that the text includes them by.
    pub headers: &'a [(&'a str, &'a str)],
}

/// What of the language is open, and the same for all texts of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// Threads of a warp: 32 or 64.
    pub warp_size: u32,
    /// True for HIP's names and predefined macros in place of CUDA's.
    pub hip: bool,
    /// True if programs can include the system's headers; the run-time compilers of GPUs have none.
    pub system_headers: bool,
    /// True for code that [`Kernel::launch_checked`](crate::Kernel::launch_checked) can check. It is
    /// several times slower, checked or not.
    pub checked: bool,
}

impl Default for Language {
    fn default() -> Self {
        Language { warp_size: 32, hip: false, system_headers: true, checked: false }
    }
}

/// What the compiler takes its time for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimization {
    /// Kernels that run fast.
    #[default]
    Speed,
    /// Nothing that it can save: for programs whose kernels run once.
    Compilation,
}

/// A compiled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// A shared library for [`Library::load`](crate::Library::load).
    pub library: Vec<u8>,
    /// Warnings; empty without any.
    pub log: String,
}

/// A text that the preprocessor has read: all that its code depends on, but the compiler.
#[derive(Clone, Debug)]
pub struct Preprocessed {
    /// The text of the program and its headers, without comments and macros.
    pub text: String,
    /// Where the language's headers are, with a slash behind.
    pub(crate) language: String,
    /// Warnings of the preprocessor.
    log: String,
    options: Options,
    names: Vec<String>,
    warp_size: u32,
    is_hip: bool,
}

/// The system's C++ compiler, with the headers of CUDA C.
#[derive(Clone, Debug)]
pub struct Compiler {
    pub(crate) toolchain: Toolchain,
    language: Language,
    optimization: Optimization,
    regions: bool,
    traps_undefined: bool,
    kept_headers: Option<PathBuf>,
}

impl Compiler {
    /// Returns the compiler that `CXX` names, else the first of c++, g++ and clang++ that runs.
    ///
    /// # Errors
    /// `NoCompiler` that says what was looked for and what to install.
    pub fn find(language: Language) -> Result<Compiler> {
        Compiler::find_also_in(&[], language)
    }

    /// Returns that compiler, else the one of the package `ziglang` in one of the folders, which are
    /// those of Python's packages.
    ///
    /// # Errors
    /// As [`Compiler::find`].
    pub fn find_also_in(packages: &[PathBuf], language: Language) -> Result<Compiler> {
        let (toolchain, optimization) = (Toolchain::find(packages)?, Optimization::default());
        Ok(Compiler {
            toolchain,
            language,
            optimization,
            regions: true,
            traps_undefined: false,
            kept_headers: None,
        })
    }

    /// Chooses what the compiler takes its time for.
    #[must_use]
    pub fn optimizing_for(self, optimization: Optimization) -> Compiler {
        Compiler { optimization, regions: optimization == Optimization::Speed, ..self }
    }

    /// Chooses whether kernels with barriers get a loop variant, as loops between them, where they can.
    /// It is what [`Optimization::Speed`] does.
    #[must_use]
    pub fn with_regions(self, regions: bool) -> Compiler {
        Compiler { regions, ..self }
    }

    /// Makes what C++ leaves undefined and the compilers of GPUs define, as overflow of signed integers and
    /// long shifts, a failure of the kernel: for texts that are to be right with any compiler.
    #[must_use]
    pub fn trapping_undefined_behavior(self) -> Compiler {
        Compiler { traps_undefined: true, ..self }
    }

    /// Keeps the language's headers in a folder for all processes, and precompiled where the compiler
    /// can: without it, or where the folder cannot be used, each compilation writes and reads them anew.
    /// Nobody else may be able to write there, or to give its name to another folder.
    #[must_use]
    pub fn keeping_headers_in(self, folder: impl Into<PathBuf>) -> Compiler {
        Compiler { kept_headers: Some(folder.into()), ..self }
    }

    /// Returns what compiled code depends on but the text and its options: the compiler's version and
    /// its options, the processor, the headers of the language and its settings, and the version and the sources of
    /// this crate and of the front end, which write a part of each unit.
    pub fn identity(&self) -> String {
        let Compiler { toolchain, language, optimization, regions, .. } = self;
        let options = self.code_options(&Options::default());
        let (toolchain, version) = (&toolchain.identity, env!("CARGO_PKG_VERSION"));
        let sources = [cuda_c::SOURCES, env!("GPUARRAY_SOURCES")].concat();
        let mut identity = format!(
            "{version} {sources} {toolchain}\n{language:?} {optimization:?} {regions}\n{options:?}\n"
        );
        for (name, text) in cuda_c::HEADERS {
            let _ = write!(identity, "{name} {}\n{text}", text.len());
        }
        identity
    }

    /// Compiles a text.
    ///
    /// # Errors
    /// `Refused` with the compiler's log, in which lines are the text's own; `System` if the compiler
    /// or a temporary file cannot be used.
    pub fn compile(&self, source: &Source<'_>) -> Result<Compiled> {
        self.compile_preprocessed(&self.preprocess(source)?)
    }

    /// Runs the preprocessor.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn preprocess(&self, source: &Source<'_>) -> Result<Preprocessed> {
        let options = Options::read(source.options)?;
        if source.text.contains('\0') {
            return Err(Error::Refused(format!(
                "{}: error: the text has a zero byte\n",
                source.name
            )));
        }
        let kept = self.kept_headers.as_ref().filter(|_| !self.toolchain.is_zig);
        let kept = kept.and_then(|kept| {
            let language = precompiled::folder(self, kept, &options);
            language.inspect_err(|error| log::debug!("headers are not kept: {error}")).ok()
        });
        let preprocessed = self.preprocess_behind(kept.as_deref(), source, &options);
        match kept {
            // Somebody removed it meanwhile.
            Some(kept) if preprocessed.is_err() && !precompiled::is_whole(&kept) => {
                self.preprocess_behind(None, source, &options)
            }
            _ => preprocessed,
        }
    }

    /// Runs the preprocessor on a text behind the language's headers, which are in a folder, or are written to one.
    fn preprocess_behind(
        &self,
        kept: Option<&Path>,
        source: &Source<'_>,
        options: &Options,
    ) -> Result<Preprocessed> {
        let folder = Folder::new()?;
        let program = folder.path.join("program");
        for (name, text) in source.headers {
            let path = header_path(&program, name)?;
            let parent = path.parent().unwrap_or(&program);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
            written.map_err(|error| folder.failed(&error))?;
        }
        let language = match kept {
            Some(language) => language.to_owned(),
            None => headers::write_below(&folder)?,
        };
        let mut arguments = self.preprocessor_options(options);
        arguments.extend(["-E", "-x", "c++"].map(str::to_owned));
        if kept.is_some() && !self.toolchain.is_clang {
            // What is precompiled fits the same options only.
            arguments.extend(self.code_options(options));
            arguments.push("-fpch-preprocess".to_owned());
        }
        arguments.extend(["-include".to_owned(), cuda_c::PRELUDE.to_owned()]);
        let behind_prelude = arguments.len();
        arguments.extend(options.preprocessor.iter().cloned());
        let folders = self.toolchain.language_folders();
        arguments.extend([folders.to_owned(), language.to_string_lossy().into_owned()]);
        if !source.headers.is_empty() {
            arguments.push(format!("-I{}", program.to_string_lossy()));
        }
        arguments.push("-".to_owned());
        let name = match source.name {
            "" => "kernel.cu",
            name => name,
        };
        let escaped = name.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        let Options { macros, included, .. } = options;
        // A compiler leaves out a mark of byte order at the beginning of a file only.
        let program = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
        let text =
            format!("#line 1 \"<options>\"\n{macros}{included}#line 1 \"{escaped}\"\n{program}\n");
        let mut output = self.run(&folder, &arguments, &text)?;
        // What few programs need is read for these alone, once it is known which they are.
        let written = String::from_utf8_lossy(&output.stdout);
        let also = cuda_c::additional_headers(&written, self.language.hip);
        if !also.is_empty() {
            let also = also.iter().flat_map(|name| ["-include", name]).map(str::to_owned);
            arguments.splice(behind_prelude..behind_prelude, also);
            output = self.run(&folder, &arguments, &text)?;
        }
        let text = String::from_utf8_lossy(&output.stdout).replace(&folder.prefix(), "");
        let prefix = format!("{}/", language.to_string_lossy());
        Ok(Preprocessed {
            text: text.replace(&prefix, cuda_c::HEADER_PREFIX),
            language: prefix,
            log: folder.log(&output),
            options: options.clone(),
            names: source.names.iter().map(|name| (*name).to_owned()).collect(),
            warp_size: self.language.warp_size,
            is_hip: self.language.hip,
        })
    }

    /// Returns what a text has of the language's headers if they are not precompiled.
    pub(crate) fn prelude(&self, source: &Preprocessed) -> Result<String> {
        let folder = Folder::new()?;
        let language = headers::write_below(&folder)?;
        let mut arguments = self.preprocessor_options(&source.options);
        let folders = self.toolchain.language_folders();
        let last = ["-E", "-x", "c++", "-include", cuda_c::PRELUDE, folders];
        arguments.extend(last.map(str::to_owned));
        arguments.extend([language.to_string_lossy().into_owned(), "-".to_owned()]);
        let output = self.run(&folder, &arguments, "")?;
        Ok(String::from_utf8_lossy(&output.stdout).replace(&folder.prefix(), ""))
    }

    /// Compiles what [`Compiler::preprocess`] returned.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_preprocessed(&self, source: &Preprocessed) -> Result<Compiled> {
        self.compile_with_fallbacks(source).map_err(|error| match error {
            Error::Refused(log) => Error::Refused(cuda_c::program_messages(&log, &source.text)),
            other => other,
        })
    }

    /// Compiles the text, or what compilers that refuse it take in its place.
    fn compile_with_fallbacks(&self, source: &Preprocessed) -> Result<Compiled> {
        let compiled = self.compile_text(source, &source.text);
        let Err(Error::Refused(log)) = &compiled else { return compiled };
        if precompiled::is_to_blame(log, source) {
            log::debug!("compiled again without precompiled headers: {log}");
            let text = precompiled::replaced(self, source)?;
            return self.compile_with_fallbacks(&Preprocessed { text, ..source.clone() });
        }
        match cuda_c::without_constexpr(&source.text, log) {
            Some(text) => self.compile_text(source, &text),
            None => compiled,
        }
    }

    /// Compiles the text, or what was made of it.
    fn compile_text(&self, source: &Preprocessed, text: &str) -> Result<Compiled> {
        let names: Vec<&str> = source.names.iter().map(String::as_str).collect();
        let has_variants = self.regions && !self.language.checked && !source.options.debug;
        // The driver doubles have neither: a missing barrier shows there.
        let mut meets = self.regions && !self.language.checked;
        let mut without = has_variants.then(HashSet::new);
        loop {
            let unit = cuda_c::unit(text, &names, without.as_ref(), meets, source.is_hip);
            let unit = unit.map_err(Error::Refused)?;
            let text = precompiled::found(unit.text, &source.language);
            match self.build(source, &text) {
                Ok(compiled) => return self.check_indices(source, &text).map(|()| compiled),
                // Kernels whose loop variants are refused go without, and then all: what the compiler
                // says in the end is about the program's own text. GCC also makes code that no linker takes,
                // with offsets of shared memory that its own vectors never reach.
                Err(Error::Refused(log)) if unit.has_variants => {
                    log::debug!("compiled again without loop variants of kernels: {log}");
                    let named = cuda_c::refused_variants(&log);
                    let is_first = without.is_some_and(|it| it.is_empty());
                    without = Some(named).filter(|it| is_first && !it.is_empty());
                }
                // A type that takes no value later: the program's own text may compile.
                Err(Error::Refused(log)) if unit.is_parted => {
                    log::debug!("compiled again without meetings of threads: {log}");
                    meets = false;
                }
                compiled => return compiled,
            }
        }
    }

    /// Lets the compiler see whether a text that it has taken writes to what is constant for a program.
    fn check_indices(&self, source: &Preprocessed, unit: &str) -> Result<()> {
        let Some(text) = cuda_c::constant_indices(unit) else { return Ok(()) };
        let folder = Folder::new()?;
        let mut arguments = self.code_options(&source.options);
        let language = self.toolchain.preprocessed_language();
        arguments.extend(["-w", "-x", language, "-"].map(str::to_owned));
        arguments.extend(match self.toolchain.is_zig {
            // It keeps what it makes, and expects to make something.
            true => vec!["-O0".to_owned(), "-c".to_owned(), "-o".to_owned(), folder.file("unit.o")],
            false => vec!["-fsyntax-only".to_owned()],
        });
        match self.run(&folder, &arguments, &text) {
            Err(Error::Refused(log)) => Err(Error::Refused(cuda_c::constant_indices_message(&log))),
            other => other.map(drop),
        }
    }

    /// Compiles and links the text of a unit.
    fn build(&self, source: &Preprocessed, unit: &str) -> Result<Compiled> {
        let folder = Folder::new()?;
        let object = folder.file("unit.o");
        let mut arguments = self.code_options(&source.options);
        arguments.extend(check::folder_option().filter(|_| self.language.checked));
        let language = self.toolchain.preprocessed_language();
        arguments.extend(["-x", language, "-c", "-", "-o"].map(str::to_owned));
        arguments.push(object.clone());
        let compiled = self.run(&folder, &arguments, unit)?;
        let bytes = fs::read(&object).map_err(|error| folder.failed(&error))?;
        let symbols = Symbols::of(&bytes)?;
        let library = folder.file("unit.so");
        let mut arguments: Vec<String> =
            ["-shared", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,--as-needed", "-o"]
                .map(str::to_owned)
                .to_vec();
        arguments.extend([library.clone(), object]);
        arguments.extend(endings::options(&symbols));
        if self.toolchain.is_clang {
            // Of what it tells itself of headers, an assembler's text needs nothing.
            arguments.push("-Wno-unused-command-line-argument".to_owned());
        }
        let libraries = self.toolchain.libraries(&symbols);
        arguments.extend(libraries.iter().map(|it| (*it).to_owned()));
        let mut defined = dynamic_shared(&symbols) + &shared_use::symbols(&bytes)?;
        defined.push_str(&endings::definitions(&symbols));
        defined.push_str(copying::definition(&symbols));
        if self.language.checked || uses_shared(&symbols) {
            defined.push_str(&red_zones());
        }
        if !defined.is_empty() {
            defined.push_str(".section .note.GNU-stack,\"\",%progbits\n");
            arguments.extend(["-x", "assembler", "-"].map(str::to_owned));
        }
        let linked = self.run(&folder, &arguments, &defined)?;
        let library = fs::read(&library).map_err(|error| folder.failed(&error))?;
        let log = [source.log.as_str(), &folder.log(&compiled), &folder.log(&linked)].concat();
        Ok(Compiled { library, log })
    }

    /// Runs the compiler, and returns its output if it succeeds.
    fn run(&self, folder: &Folder, arguments: &[String], input: &str) -> Result<Output> {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = self.toolchain.run(&arguments, input, None)?;
        if output.status.success() {
            return Ok(output);
        }
        let log = folder.log(&output);
        if log.trim().is_empty() {
            return Err(Error::System(format!("the C++ compiler ended with {}", output.status)));
        }
        Err(Error::Refused(log))
    }
}

impl Preprocessed {
    /// Returns what the code depends on but the text and the compiler.
    pub fn settings(&self) -> String {
        let Options { code, standard, debug, .. } = &self.options;
        format!("{code:?} {standard:?} {debug} {:?} {}", self.names, self.warp_size)
    }
}

/// The path of a program's header in a folder.
fn header_path(folder: &Path, name: &str) -> Result<PathBuf> {
    use std::path::Component;
    let relative = Path::new(name);
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if name.is_empty() || !relative.components().all(is_plain) {
        return Err(Error::Refused(format!(
            "header {name:?}: the name of a header is a relative path without \"..\"\n"
        )));
    }
    Ok(folder.join(relative))
}

/// True for an object with shared memory.
fn uses_shared(symbols: &Symbols) -> bool {
    symbols.undefined_thread_local().next().is_some() || static_shared(symbols).next().is_some()
}

/// Assembler text that defines the dynamic shared memory of a unit: one storage under all names.
fn dynamic_shared(symbols: &Symbols) -> String {
    let mut names = symbols.undefined_thread_local().peekable();
    if names.peek().is_none() {
        return String::new();
    }
    let mut text = String::from(".section .tbss,\"awT\",%nobits\n.balign 128\n");
    for name in names {
        let _ = write!(
            text,
            ".globl \"{name}\"\n.hidden \"{name}\"\n.type \"{name}\", %object\n\"{name}\":\n"
        );
    }
    let bytes = MOST_SHARED_BYTES as usize + GUARD_BYTES;
    let _ = writeln!(text, "{DYNAMIC_SHARED}:\n.zero {bytes}");
    let _ = writeln!(text, ".type {DYNAMIC_SHARED}, %object\n.size {DYNAMIC_SHARED}, {bytes}");
    text
}

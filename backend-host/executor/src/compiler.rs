//! Compiles a text of CUDA C to a shared library.

mod flags;

use crate::check;
use crate::error::{Error, Result};
use crate::headers;
use crate::options::Options;
use crate::redirections;
use crate::shared_memory::{dynamic_shared, red_zones, uses_shared};
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
    /// Options in the syntax of `nvcc`, NVRTC or hipRTC.
    pub options: &'a [&'a str],
    /// Expressions that name kernels and variables, for example `scale<float>`. Templates are instantiated
    /// for them.
    pub names: &'a [&'a str],
    /// Headers, by the names under which the text includes them.
    pub headers: &'a [(&'a str, &'a str)],
}

/// The settings of the language: the same for all texts of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// The warp size: 32 or 64.
    pub warp_size: u32,
    /// True for HIP's names and predefined macros, false for CUDA's.
    pub hip: bool,
    /// True if programs can include the system's headers. The run-time compilers of GPUs do not have any.
    pub system_headers: bool,
    /// True to generate code that [`Kernel::launch_checked`](crate::Kernel::launch_checked) can check. This
    /// code is several times slower, whether it is checked or not.
    pub checked: bool,
}

impl Default for Language {
    fn default() -> Self {
        Language { warp_size: 32, hip: false, system_headers: true, checked: false }
    }
}

/// The goal of the compiler's optimisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimization {
    /// Fast kernels.
    #[default]
    Speed,
    /// Fast compilation: for programs whose kernels run once.
    Compilation,
}

/// A compiled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// A shared library for [`Library::load`](crate::Library::load).
    pub library: Vec<u8>,
    /// Warnings, or an empty string.
    pub log: String,
}

/// A preprocessed text. Together with the compiler, it determines the generated code.
#[derive(Clone, Debug)]
pub struct Preprocessed {
    /// The text of the program and its headers, without comments and macros.
    pub text: String,
    /// The folder of the language's headers, with a trailing slash.
    language: String,
    /// Warnings of the preprocessor.
    log: String,
    options: Options,
    names: Vec<String>,
    /// The text before the preprocessor, and its name in messages.
    program: (String, String),
    warp_size: u32,
    is_hip: bool,
}

/// The system's C++ compiler, with the headers of CUDA C.
#[derive(Clone, Debug)]
pub struct Compiler {
    toolchain: Toolchain,
    language: Language,
    optimization: Optimization,
    regions: bool,
    traps_undefined: bool,
    kept_headers: Option<PathBuf>,
}

impl Compiler {
    /// Returns the compiler named by `CXX`, or else the first of c++, g++ and clang++ that runs.
    ///
    /// # Errors
    /// `NoCompiler` with a list of the programs that were tried and of what to install.
    pub fn find(language: Language) -> Result<Compiler> {
        Compiler::find_also_in(&[], language)
    }

    /// Like [`Compiler::find`], but falls back to the compiler of the package `ziglang` in one of these
    /// folders of Python packages.
    ///
    /// # Errors
    /// The same as [`Compiler::find`].
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

    /// Sets the goal of the compiler's optimisation.
    #[must_use]
    pub fn optimizing_for(self, optimization: Optimization) -> Compiler {
        Compiler { optimization, regions: optimization == Optimization::Speed, ..self }
    }

    /// Chooses if kernels get loop variants: versions that run as loops between the kernel's barriers. This is on by
    /// default with [`Optimization::Speed`].
    #[must_use]
    pub fn with_regions(self, regions: bool) -> Compiler {
        Compiler { regions, ..self }
    }

    /// Turns operations that are undefined in C++ but defined by GPU compilers, such as signed overflow and
    /// long shifts, into kernel failures. This is for texts that have to be correct with any compiler.
    #[must_use]
    pub fn trapping_undefined_behavior(self) -> Compiler {
        Compiler { traps_undefined: true, ..self }
    }

    /// Keeps the language's headers in a folder shared by all processes, precompiled if the compiler can. If
    /// omitted, or if the folder cannot be used, each compilation writes and reads the headers again. No
    /// other user may be able to write to the folder or rename it.
    #[must_use]
    pub fn keeping_headers_in(self, folder: impl Into<PathBuf>) -> Compiler {
        Compiler { kept_headers: Some(folder.into()), ..self }
    }

    /// Returns the compiler's program with its options, and the first line that it prints about its version.
    pub fn name(&self) -> String {
        self.toolchain.name()
    }

    /// Returns a description of everything, except the text and its options, that the compiled code depends
    /// on. It covers the compiler's version and options, the processor, the language's headers and settings,
    /// and the version and sources of this crate and of the front end, which write a part of each unit.
    pub fn identity(&self) -> String {
        let Compiler { toolchain, language, optimization, regions, .. } = self;
        let options = self.code_options(&Options::default());
        let (toolchain, version) = (&toolchain.identity, env!("CARGO_PKG_VERSION"));
        let sources = [cuda_c::SOURCES, env!("GPUARRAY_SOURCES")].concat();
        let mut identity = format!(
            "{version} {sources} {toolchain}\n{language:?} {optimization:?} {regions}\n{options:?}\n"
        );
        for (name, text) in cuda_c::headers() {
            let _ = write!(identity, "{name} {}\n{text}", text.len());
        }
        identity
    }

    /// Compiles a text.
    ///
    /// # Errors
    /// - `Refused` with the compiler's log. The log names the text's own lines.
    /// - `System` if the compiler or a temporary file cannot be used.
    pub fn compile(&self, source: &Source<'_>) -> Result<Compiled> {
        self.compile_preprocessed(&self.preprocess(source)?)
    }

    /// Runs the preprocessor.
    ///
    /// # Errors
    /// The same as [`Compiler::compile`].
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
            let language = self.kept_folder(kept, &options);
            language.inspect_err(|error| log::debug!("headers are not kept: {error}")).ok()
        });
        let preprocessed = self.preprocess_behind(kept.as_deref(), source, &options);
        match (&preprocessed, kept) {
            // The headers are damaged, or another process has removed the folder meanwhile.
            (Err(error), Some(kept)) if headers::may_explain(error, &kept) => {
                log::debug!("preprocessed again without kept headers: {error}");
                headers::remove(&kept);
                self.preprocess_behind(None, source, &options)
            }
            _ => preprocessed,
        }
    }

    /// Returns the folder below `kept` with the headers for texts with these options.
    fn kept_folder(&self, kept: &Path, options: &Options) -> Result<PathBuf> {
        // Without a program's own options, most programs share one folder.
        let options = Options { code: Vec::new(), preprocessor: Vec::new(), ..options.clone() };
        let mut arguments = self.preprocessor_options(&options);
        arguments.extend(self.code_options(&options));
        headers::folder(&self.toolchain, &self.identity(), kept, arguments)
    }

    /// Preprocesses a text after the language's headers. These are in the folder `kept` or are written to a temporary
    /// one.
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
            // The precompiled header requires the same options.
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
        // A compiler ignores a byte-order mark only at the beginning of a file.
        let program = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
        let text =
            format!("#line 1 \"<options>\"\n{macros}{included}#line 1 \"{escaped}\"\n{program}\n");
        let original = (source.text, name);
        let (mut output, mut log) = self.run(&folder, &arguments, &text, original)?;
        // Some headers are rarely needed. They are included in a second run, once it is known that the
        // program needs them.
        let written = String::from_utf8_lossy(&output.stdout);
        let also = cuda_c::additional_headers(&written, self.language.hip);
        if !also.is_empty() {
            let also = also.iter().flat_map(|name| ["-include", name]).map(str::to_owned);
            arguments.splice(behind_prelude..behind_prelude, also);
            (output, log) = self.run(&folder, &arguments, &text, original)?;
        }
        let text = String::from_utf8_lossy(&output.stdout).replace(&folder.prefix(), "");
        let prefix = format!("{}/", language.to_string_lossy());
        Ok(Preprocessed {
            text: text.replace(&prefix, cuda_c::HEADER_PREFIX),
            language: prefix,
            log,
            options: options.clone(),
            names: source.names.iter().map(|name| (*name).to_owned()).collect(),
            program: (source.text.to_owned(), name.to_owned()),
            warp_size: self.language.warp_size,
            is_hip: self.language.hip,
        })
    }

    /// Returns the text of the language's headers for a source, for use without the precompiled header.
    fn prelude(&self, source: &Preprocessed) -> Result<String> {
        let folder = Folder::new()?;
        let language = headers::write_below(&folder)?;
        let mut arguments = self.preprocessor_options(&source.options);
        let folders = self.toolchain.language_folders();
        let last = ["-E", "-x", "c++", "-include", cuda_c::PRELUDE, folders];
        arguments.extend(last.map(str::to_owned));
        arguments.extend([language.to_string_lossy().into_owned(), "-".to_owned()]);
        let (output, _) = self.run(&folder, &arguments, "", ("", ""))?;
        Ok(String::from_utf8_lossy(&output.stdout).replace(&folder.prefix(), ""))
    }

    /// Compiles the result of [`Compiler::preprocess`].
    ///
    /// # Errors
    /// The same as [`Compiler::compile`].
    pub fn compile_preprocessed(&self, source: &Preprocessed) -> Result<Compiled> {
        self.compile_with_fallbacks(source).map_err(|error| match error {
            Error::Refused(log) => {
                let log = cuda_c::program_messages(&log, &source.text);
                let (program, name) = source.program();
                Error::Refused(cuda_c::with_carets(&log, &source.text, program, name))
            }
            other => other,
        })
    }

    /// Compiles the text. If the compiler refuses it, tries alternative texts.
    fn compile_with_fallbacks(&self, source: &Preprocessed) -> Result<Compiled> {
        let compiled = self.compile_text(source, &source.text);
        let Err(error @ Error::Refused(log)) = &compiled else { return compiled };
        if headers::is_to_blame(error, &source.text, &source.language) {
            log::debug!("compiled again without precompiled headers: {log}");
            headers::remove(Path::new(&source.language));
            let text = headers::replaced(&source.text, &self.prelude(source)?);
            return self.compile_with_fallbacks(&Preprocessed { text, ..source.clone() });
        }
        let permissive = self.permissive().filter(|&it| {
            cuda_c::has_changed_meaning(log) && !source.options.code.iter().any(|own| own == it)
        });
        if let Some(permissive) = permissive {
            let mut source = source.clone();
            source.options.code.push(permissive.to_owned());
            return match self.compile_with_fallbacks(&source) {
                Ok(compiled) => match cuda_c::without_changed_meanings(&compiled.log) {
                    (log, false) => Ok(Compiled { log, ..compiled }),
                    (log, true) => Err(Error::Refused(log)),
                },
                Err(Error::Refused(log)) => {
                    Err(Error::Refused(cuda_c::without_changed_meanings(&log).0))
                }
                other => other,
            };
        }
        match cuda_c::without_constexpr(&source.text, log) {
            Some(text) => self.compile_text(source, &text),
            None => compiled,
        }
    }

    /// Compiles the text, or a rewritten one.
    fn compile_text(&self, source: &Preprocessed, text: &str) -> Result<Compiled> {
        let names: Vec<&str> = source.names.iter().map(String::as_str).collect();
        let has_variants = self.regions && !self.language.checked && !source.options.debug;
        // The fake drivers use neither, so that missing barriers show there.
        let meets = self.regions && !self.language.checked;
        let all = |volatile| cuda_c::Choices {
            without: has_variants.then(HashSet::new),
            meets,
            volatile,
        };
        let mut choices = all(cuda_c::VolatileLines::default());
        let mut defines = !self.traps_undefined;
        loop {
            let unit = cuda_c::unit(text, &names, &choices, source.is_hip);
            let unit = unit.map_err(Error::Refused)?;
            let defined = defines.then(|| cuda_c::defined_out_of_range(&unit.text)).flatten();
            let is_defined = defined.is_some();
            let text = headers::found(defined.unwrap_or(unit.text), &source.language);
            match self.build(source, &text) {
                Ok(compiled) => return self.check_indices(source, &text).map(|()| compiled),
                // The compiler has named lines with volatile memory.
                Err(Error::Refused(log)) if unit.asks && choices.volatile.learn(&log) => {
                    log::debug!("compiled again with volatile memory: {log}");
                }
                // A conversion of a type that only looks like a number's. The program's own text may compile, and
                // otherwise the messages are about it.
                Err(Error::Refused(log))
                    if is_defined && cuda_c::refused_variants(&log).is_empty() =>
                {
                    log::debug!("compiled again without conversions out of range: {log}");
                    defines = false;
                }
                // If the compiler refuses the loop variants of some kernels, those kernels go without; if it
                // still fails, all do. The final messages are then about the program's own text. GCC also
                // generates code with offsets of shared memory, for vector operations that never run, which
                // no linker accepts.
                Err(Error::Refused(log)) if unit.has_variants => {
                    log::debug!("compiled again without loop variants of kernels: {log}");
                    let named = cuda_c::refused_variants(&log);
                    let is_first = choices.without.is_some_and(|it| it.is_empty());
                    choices.without = Some(named).filter(|it| is_first && !it.is_empty());
                }
                // A type may not allow assignment after its declaration. The program's own text may still
                // compile.
                Err(Error::Refused(log)) if unit.is_parted => {
                    log::debug!("compiled again without meetings of threads: {log}");
                    choices.meets = false;
                }
                Err(Error::Refused(log)) if unit.asks => {
                    log::debug!("compiled again without questions about volatile memory: {log}");
                    choices = all(choices.volatile.without_questions());
                    defines = !self.traps_undefined;
                }
                Err(Error::Refused(log)) if choices.volatile.forget() => {
                    log::warn!(
                        "lanes do not wait at volatile memory that only its type shows: {log}"
                    );
                    choices = all(choices.volatile);
                    defines = !self.traps_undefined;
                }
                compiled => return compiled,
            }
        }
    }

    /// Makes the compiler check that an accepted text does not write to indices. Indices are constants for a program.
    fn check_indices(&self, source: &Preprocessed, unit: &str) -> Result<()> {
        let Some(text) = cuda_c::constant_indices(unit) else { return Ok(()) };
        let folder = Folder::new()?;
        let mut arguments = self.code_options(&source.options);
        let language = self.toolchain.preprocessed_language();
        arguments.extend(["-w", "-x", language, "-"].map(str::to_owned));
        arguments.extend(match self.toolchain.is_zig {
            // This compiler keeps its output, and expects to produce some.
            true => vec!["-O0".to_owned(), "-c".to_owned(), "-o".to_owned(), folder.file("unit.o")],
            false => vec!["-fsyntax-only".to_owned()],
        });
        match self.run(&folder, &arguments, &text, source.program()) {
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
        let (_, compiled) = self.run(&folder, &arguments, unit, source.program())?;
        let bytes = fs::read(&object).map_err(|error| folder.failed(&error))?;
        let symbols = Symbols::of(&bytes)?;
        let library = folder.file("unit.so");
        let mut arguments: Vec<String> =
            ["-shared", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,--as-needed", "-o"]
                .map(str::to_owned)
                .to_vec();
        arguments.extend([library.clone(), object]);
        arguments.extend(redirections::options(&symbols));
        if self.toolchain.is_clang {
            // The assembler text does not need options about headers, which would cause warnings.
            arguments.push("-Wno-unused-command-line-argument".to_owned());
        }
        let libraries = self.toolchain.libraries(&symbols);
        arguments.extend(libraries.iter().map(|it| (*it).to_owned()));
        let mut defined = dynamic_shared(&symbols) + &shared_use::symbols(&bytes)?;
        defined.push_str(&redirections::definitions(&symbols));
        if self.language.checked || uses_shared(&symbols) {
            defined.push_str(&red_zones());
        }
        if !defined.is_empty() {
            defined.push_str(".section .note.GNU-stack,\"\",%progbits\n");
            arguments.extend(["-x", "assembler", "-"].map(str::to_owned));
        }
        let (_, linked) = self.run(&folder, &arguments, &defined, ("", ""))?;
        let library = fs::read(&library).map_err(|error| folder.failed(&error))?;
        let log = [source.log.as_str(), &compiled, &linked].concat();
        Ok(Compiled { library, log })
    }

    /// Runs the compiler, and returns its output and its log if it succeeds. The log quotes lines of the program that
    /// the input was made of.
    fn run(
        &self,
        folder: &Folder,
        arguments: &[String],
        input: &str,
        (program, name): (&str, &str),
    ) -> Result<(Output, String)> {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = self.toolchain.run(&arguments, input, None)?;
        let log = cuda_c::with_carets(&folder.log(&output), input, program, name);
        if output.status.success() {
            return Ok((output, log));
        }
        if log.trim().is_empty() {
            return Err(Error::System(format!("the C++ compiler ended with {}", output.status)));
        }
        Err(Error::Refused(log))
    }
}

impl Preprocessed {
    fn program(&self) -> (&str, &str) {
        (&self.program.0, &self.program.1)
    }

    /// Returns a description of everything, except the text and the compiler, that the code depends on.
    pub fn settings(&self) -> String {
        let Options { code, standard, debug, .. } = &self.options;
        format!("{code:?} {standard:?} {debug} {:?} {}", self.names, self.warp_size)
    }
}

/// Returns the path of a program's header in a folder.
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

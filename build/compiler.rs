//! Finds what compiles for a target: NVRTC for NVIDIA's, a program for AMD's. Each is tried out on
//! a kernel, so that one that is too old, lacks a library or does not know the target is passed over
//! with its own words.

use super::TARGET_VARIABLE;
use super::environment::{Environment, is_program};
use codegen::compile::cuda_search::{FILE_VARIABLE, SearchPaths};
use codegen::compile::program::ProgramCalls;
use codegen::compile::{Compilation, Target};
use codegen::source::{CLANG_OPTIONS, NVRTC_OPTIONS};
use hal::library::{Library, Search};
use hal::{Api, Error, ErrorKind};
use std::ffi::c_void;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A program or a library with the options that compile a unit.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    pub(crate) target: Target,
    /// The program, or NVRTC's file.
    pub(crate) program: PathBuf,
    /// NVRTC's functions; none for a program.
    nvrtc: Option<Arc<ProgramCalls<c_void>>>,
    pub(crate) options: Vec<String>,
    /// Its name and version, as it gives them.
    pub(crate) version: String,
    /// True if AMD's device library is missing, so that mathematical functions cannot be
    /// linked.
    pub(crate) is_bare: bool,
}

/// What clang needs besides [`CLANG_OPTIONS`]: plain code objects without ROCm's headers, and
/// nothing in the result that depends on where it was made. The linker leaves out what ROCm does not
/// read: local symbols, which tell the compiler's counts of registers, and GNU's hash table.
const HIP_OPTIONS: &[&str] = &[
    "--no-gpu-bundle-output",
    "-nogpuinc",
    "-fuse-cuid=none",
    "-w",
    "-Xoffload-linker",
    "--discard-all",
    "-Xoffload-linker",
    "--hash-style=sysv",
];

/// The version of code objects that ROCm loads since 5.0, and the first one with generic targets,
/// which ROCm loads since 6.3.
const CODE_OBJECTS: [&str; 2] = ["-mcode-object-version=4", "-mcode-object-version=6"];

/// Kernels to try a compiler with: one that calls AMD's device library, one that does not, and one
/// for NVRTC.
const HIP_KERNEL: &str = "extern \"C\" __attribute__((device)) double __ocml_sin_f64(double);
extern \"C\" __attribute__((global)) void probe(double* x) { *x = __ocml_sin_f64(*x); }
";
const BARE_KERNEL: &str =
    "extern \"C\" __attribute__((global)) void probe(double* x) { *x += 1; }\n";
const CUDA_KERNEL: &str = "extern \"C\" __global__ void probe(double* x) { *x = sin(*x); }\n";

/// Folders of AMD's device library in distributions, in case clang does not find it by itself.
const BITCODE: [&str; 6] = [
    "opt/rocm/amdgcn/bitcode",
    "usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
    "usr/lib/aarch64-linux-gnu/amdgcn/bitcode",
    "usr/lib64/amdgcn/bitcode",
    "usr/lib/amdgcn/bitcode",
    "usr/amdgcn/bitcode",
];

impl Compiler {
    /// The first compiler that works for a target; `scratch` is a folder for its files.
    ///
    /// # Errors
    /// A line that names each compiler with the reason for refusing it, and the packages to install.
    pub(crate) fn find(
        target: &Target,
        environment: &Environment,
        scratch: &Path,
    ) -> Result<Compiler, String> {
        if !matches!(target, Target::Hip { .. }) {
            return nvrtc(target, environment);
        }
        let programs = hip_programs(environment);
        let mut refusals = Vec::new();
        let mut bare = None;
        for program in programs {
            let candidates = candidates(target, &program, environment);
            let mut refusal = String::new();
            for compiler in candidates {
                match compiler.attempt(scratch) {
                    Ok(()) if compiler.is_bare => bare = bare.or(Some(compiler)),
                    Ok(()) => return Ok(compiler.with_version()),
                    // The last one says most: it looked in a folder that exists.
                    Err(error) if !compiler.is_bare => refusal = error,
                    Err(_) => {}
                }
            }
            refusals.push(format!("{} says {refusal:?}", program.display()));
        }
        if let Some(compiler) = bare {
            return Ok(compiler.with_version());
        }
        let (reason, check) = match &refusals[..] {
            [] => ("neither hipcc nor clang is in ROCM_PATH, /opt/rocm or PATH".to_owned(), ""),
            all => (all.join("; "), "check the name, "),
        };
        let advice = if target.is_generic() {
            "install ROCm 6.3 or newer (hipcc), or clang 20 or newer with lld and AMD's device \
             library (clang-21, lld-21 and rocm-device-libs-21 on Debian)"
        } else {
            "install ROCm (hipcc), or clang 15 or newer with lld and AMD's device library (clang-19, \
             lld-19 and rocm-device-libs on Debian)"
        };
        Err(nothing_compiles(target, &format!("{reason}; {check}{advice}")))
    }

    /// Compiles a text to a module's code; `name` is the unit's, and `scratch` a folder for files.
    ///
    /// # Errors
    /// The compiler's words.
    pub(crate) fn compile(
        &self,
        name: &str,
        text: &str,
        scratch: &Path,
    ) -> Result<Vec<u8>, String> {
        if let Some(nvrtc) = &self.nvrtc {
            let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
            let compilation = Compilation { text, name, ..Compilation::default() };
            let compiled = nvrtc.compile(&compilation, &options);
            return compiled.map(|it| it.code).map_err(|error| told(error.detail().lines()));
        }
        let target = self.target.to_string().replace(':', "_");
        let [source, output] =
            ["cu", "out"].map(|end| scratch.join(format!("{name}.{target}.{end}")));
        let failed = |error: std::io::Error| error.to_string();
        fs::write(&source, text).map_err(failed)?;
        // A file of an earlier attempt must not pass for this one's result.
        let _ = fs::remove_file(&output);
        run(&mut self.command(&source, &output))?;
        let code = fs::read(&output).map_err(|_| "nothing, and made no code")?;
        for made in [source, output] {
            fs::remove_file(&made).map_err(failed)?;
        }
        Ok(code)
    }

    /// The command that compiles a file.
    pub(crate) fn command(&self, source: &Path, object: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.options).arg(source).arg("-o").arg(object);
        // On a machine with both toolkits hipcc may take itself for nvcc.
        command.env("HIP_PLATFORM", "amd");
        command
    }

    /// Compiles a kernel.
    fn attempt(&self, scratch: &Path) -> Result<(), String> {
        let text = match (&self.target, self.is_bare) {
            (Target::Hip { .. }, false) => HIP_KERNEL,
            (Target::Hip { .. }, true) => BARE_KERNEL,
            _ => CUDA_KERNEL,
        };
        let code = self.compile("probe", text, scratch)?;
        let is_text = matches!(self.target, Target::Ptx { .. });
        if is_text || code.starts_with(b"\x7fELF") {
            Ok(())
        } else {
            Err("nothing, and made no code".into())
        }
    }

    fn with_version(mut self) -> Compiler {
        let output = Command::new(&self.program).arg("--version").output();
        let text = output.map(|it| it.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let tells = |line: &&str| line.contains("version") || line.contains("release");
        let lines: Vec<&str> = text.lines().map(str::trim).filter(tells).collect();
        self.version = lines.join(", ");
        if self.version.is_empty() {
            self.version = self.program.display().to_string();
        }
        self
    }
}

/// Runs a compiler; the error is the first line of its output that tells of one, without the
/// advice of its own behind a semicolon.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    if text.trim().is_empty() {
        return Err(format!("nothing ({})", output.status));
    }
    Err(told(text.lines()))
}

/// Returns the first line with an error, or the first line.
fn told<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let tells = |line: &&&str| line.contains("error") || line.contains("fatal");
    let line = lines.iter().find(tells).or(lines.first());
    line.and_then(|it| it.split("; ").next()).unwrap_or_default().to_owned()
}

fn nothing_compiles(target: &Target, why: &str) -> String {
    format!(
        "{TARGET_VARIABLE}: nothing here compiles for {target}: {why}, or unset {TARGET_VARIABLE}"
    )
}

/// The first NVRTC that knows a target, where the backend looks for it at run time and in the
/// Python environment that is active.
fn nvrtc(target: &Target, environment: &Environment) -> Result<Compiler, String> {
    let python = environment.folders(&["VIRTUAL_ENV"]);
    let versions =
        python.iter().filter_map(|it| fs::read_dir(it.join("lib")).ok()).flatten().flatten();
    let packages = versions.map(|it| it.path().join("site-packages")).collect();
    let paths = SearchPaths::new(|name| environment.variable(name), packages);
    let search = Search::new("NVRTC")
        .kind(ErrorKind::Unsupported)
        .explicit(FILE_VARIABLE, paths.file.clone())
        .candidates(paths.candidates(0))
        .advice(paths.advice(0));
    let form = if matches!(target, Target::Ptx { .. }) { "PTX" } else { "CUBIN" };
    let accept = |library: Library| {
        // SAFETY: the functions have these types in every NVRTC, as the backend checks.
        let calls =
            unsafe { ProgramCalls::find(&mut library.symbols(), Api::Nvrtc, "nvrtc", &[form]) }?;
        let (major, minor) = calls.version()?;
        let program = library.file("nvrtcVersion").unwrap_or_else(|| library.path().to_owned());
        let options = NVRTC_OPTIONS.iter().map(|it| (*it).to_owned());
        let compiler = Compiler {
            target: target.clone(),
            program,
            nvrtc: Some(Arc::new(calls)),
            options: options.chain([format!("--gpu-architecture={target}")]).collect(),
            version: format!("NVRTC {major}.{minor}"),
            is_bare: false,
        };
        let tried = compiler.attempt(Path::new(""));
        tried.map_err(|error| Error::unsupported("compile", error)).map(|()| compiler)
    };
    // SAFETY: NVRTC's initialisers have no conditions, and nothing else is looked for.
    let found = unsafe { search.open(accept) };
    found.map_err(|error| nothing_compiles(target, error.detail()))
}

/// hipcc, then the clang of ROCm, then any other.
fn hip_programs(environment: &Environment) -> Vec<PathBuf> {
    let mut roots = environment.folders(&["ROCM_PATH", "HIP_PATH"]);
    roots.push(environment.system("opt/rocm"));
    let below = |names: &[&str]| -> Vec<PathBuf> {
        roots.iter().flat_map(|root| names.iter().map(|name| root.join(name))).collect()
    };
    let mut programs = below(&["bin/hipcc"]);
    programs.extend(environment.in_path(&["hipcc"]));
    programs.extend(below(&["llvm/bin/clang", "lib/llvm/bin/clang"]));
    let mut names = vec!["amdclang".to_owned(), "clang".to_owned()];
    names.extend((14..=25).rev().map(|version| format!("clang-{version}")));
    programs.extend(environment.in_path(&names));
    distinct(programs)
}

/// The programs that exist, each file once.
fn distinct(programs: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut is_new = |program: &PathBuf| {
        let file = fs::canonicalize(program).unwrap_or_else(|_| program.clone());
        let new = !files.contains(&file);
        files.push(file);
        new
    };
    programs.into_iter().filter(|it| is_program(it) && is_new(it)).collect()
}

/// A program with each set of options that may make it work.
fn candidates(target: &Target, program: &Path, environment: &Environment) -> Vec<Compiler> {
    let options = |first: &[&str], more: &[&str], last: Vec<String>| -> Vec<String> {
        first.iter().chain(more).map(|it| (*it).to_owned()).chain(last).collect()
    };
    let compiler = |options, is_bare| Compiler {
        target: target.clone(),
        program: program.to_owned(),
        nvrtc: None,
        options,
        version: String::new(),
        is_bare,
    };
    // hipcc adds what links a program, unless it is told that a code object is wanted.
    let is_hipcc = program.file_stem().is_some_and(|name| name == "hipcc");
    let genco = is_hipcc.then(|| "--genco".to_owned());
    let hip = |library: Option<String>| {
        let version = CODE_OBJECTS[usize::from(target.is_generic())].to_owned();
        let target = [format!("--offload-arch={target}"), version].into_iter();
        let last = target.chain(library).chain(genco.clone()).collect();
        options(CLANG_OPTIONS, HIP_OPTIONS, last)
    };
    let mut all = vec![compiler(hip(None), false)];
    let mut folders = environment.folders(&["HIP_DEVICE_LIB_PATH"]);
    let roots = environment.folders(&["ROCM_PATH"]);
    folders.extend(roots.iter().map(|root| root.join("amdgcn/bitcode")));
    folders.extend(BITCODE.map(|folder| environment.system(folder)));
    for folder in folders.iter().filter(|it| it.is_dir()) {
        let library = format!("--rocm-device-lib-path={}", folder.display());
        all.push(compiler(hip(Some(library)), false));
    }
    all.push(compiler(hip(Some("-nogpulib".into())), true));
    all
}

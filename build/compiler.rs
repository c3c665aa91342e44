//! Finds what compiles for a target: programs are tried out on a kernel, so that one that is
//! too old, lacks a library or does not know the target is passed over with its own words.

use super::TARGET_VARIABLE;
use super::environment::{Environment, is_program};
use codegen::compile::Target;
use codegen::source::{CLANG_OPTIONS, NVRTC_OPTIONS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with the options that compile a unit.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    pub(crate) target: Target,
    pub(crate) program: PathBuf,
    pub(crate) options: Vec<String>,
    /// Its name and version, as it gives them.
    pub(crate) version: String,
    /// True if AMD's device library is missing, so that mathematical functions cannot be
    /// linked.
    pub(crate) is_bare: bool,
}

/// What clang needs besides [`CLANG_OPTIONS`]: plain code objects without ROCm's headers;
/// version 4, which ROCm loads since 5.0; and nothing in the result that depends on where it
/// was made.
const HIP_OPTIONS: &[&str] =
    &["--no-gpu-bundle-output", "-nogpuinc", "-mcode-object-version=4", "-fuse-cuid=none", "-w"];

/// What nvcc needs besides [`NVRTC_OPTIONS`], which it knows too.
const CUDA_OPTIONS: &[&str] = &["-x", "cu", "-cubin", "-w"];

/// Kernels to try a compiler with: with a function of AMD's device library, without one, and
/// for nvcc.
const HIP_KERNEL: &str = "extern \"C\" __attribute__((device)) double __ocml_sin_f64(double);
extern \"C\" __attribute__((global)) void probe(double* x) { *x = __ocml_sin_f64(*x); }
";
const BARE_KERNEL: &str =
    "extern \"C\" __attribute__((global)) void probe(double* x) { *x += 1; }\n";
const CUDA_KERNEL: &str = "extern \"C\" __global__ void probe(double* x) { *x = sin(*x); }\n";

/// Where distributions keep AMD's device library, if clang does not find it by itself.
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
    /// A line that names what was tried, why it was passed over, and what to install.
    pub(crate) fn find(
        target: &Target,
        environment: &Environment,
        scratch: &Path,
    ) -> Result<Compiler, String> {
        let (programs, what, advice) = match target {
            Target::Hip { .. } => (
                hip_programs(environment),
                "neither hipcc nor clang is in ROCM_PATH, /opt/rocm or PATH",
                "install ROCm (hipcc), or clang 15 or newer with lld and AMD's device library \
                 (clang-19, lld-19 and rocm-device-libs on Debian)",
            ),
            _ => (
                cuda_programs(environment),
                "nvcc is not in CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda",
                "install NVIDIA's CUDA toolkit (its folder in CUDA_HOME) and a C++ compiler that \
                 its nvcc takes",
            ),
        };
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
            [] => (what.to_owned(), ""),
            all => (all.join("; "), "check the name, "),
        };
        Err(format!(
            "{TARGET_VARIABLE}: nothing here compiles for {target}: {reason}; {check}{advice}, or \
             unset {TARGET_VARIABLE}"
        ))
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
        let (source, object) = (scratch.join("probe.cu"), scratch.join("probe.out"));
        fs::write(&source, text).map_err(|error| error.to_string())?;
        // What an earlier attempt left is not this one's result.
        let _ = fs::remove_file(&object);
        run(&mut self.command(&source, &object))?;
        if fs::read(&object).is_ok_and(|code| code.starts_with(b"\x7fELF")) {
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
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = |line: &&str| line.contains("error") || line.contains("fatal");
    let line = lines().find(told).or_else(|| lines().next());
    let line = line.map(|it| it.split("; ").next().unwrap_or(it));
    Err(line.map_or_else(|| format!("nothing ({})", output.status), str::to_owned))
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

fn cuda_programs(environment: &Environment) -> Vec<PathBuf> {
    let roots = environment.folders(&["CUDA_HOME", "CUDA_PATH"]);
    let mut programs: Vec<PathBuf> = roots.iter().map(|root| root.join("bin/nvcc")).collect();
    programs.extend(environment.in_path(&["nvcc"]));
    programs.push(environment.system("usr/local/cuda/bin/nvcc"));
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
        options,
        version: String::new(),
        is_bare,
    };
    let Target::Hip { .. } = target else {
        let mut last = vec![format!("-arch={target}")];
        last.extend(host_compiler(environment));
        return vec![compiler(options(NVRTC_OPTIONS, CUDA_OPTIONS, last), false)];
    };
    // hipcc adds what links a program, unless it is told that a code object is wanted.
    let is_hipcc = program.file_stem().is_some_and(|name| name == "hipcc");
    let genco = is_hipcc.then(|| "--genco".to_owned());
    let hip = |library: Option<String>| {
        let target = std::iter::once(format!("--offload-arch={target}"));
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

/// The C++ compiler that nvcc reads source with, as cargo's other builds find it: `CXX`, or
/// what the platform has.
fn host_compiler(environment: &Environment) -> Vec<String> {
    // Options that nvcc adds by itself: another value makes other code.
    for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
        environment.variable(name);
    }
    // nvcc has its own variable for it.
    if environment.variable("NVCC_CCBIN").is_some() {
        return Vec::new();
    }
    let Some(host) = environment.variable("HOST") else { return Vec::new() };
    let host = host.to_string_lossy();
    environment.variable("CXX");
    let mut build = cc::Build::new();
    build.cpp(true).host(&host).target(&host).opt_level(0).cargo_metadata(false);
    // Without one nvcc says what it misses.
    let path = build.try_get_compiler().ok().map(|tool| tool.path().to_owned());
    let named = path.as_deref().and_then(Path::to_str);
    named.map(|path| vec!["-ccbin".to_owned(), path.to_owned()]).unwrap_or_default()
}

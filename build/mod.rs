//! From `PYBIND_GPU_TARGET` to code in the program.

pub(crate) mod compiler;
pub(crate) mod environment;
pub(crate) mod units;

use compiler::Compiler;
use environment::Environment;
use hal::compile::CodeCache;
use hal::compile::Target;
use hal::compile::embedded::{PackedObject, pack};
use hal::source::catalogue::catalogue;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// The variable with the targets.
pub(crate) const TARGET_VARIABLE: &str = "PYBIND_GPU_TARGET";

/// The variable with the backend that is tried first.
pub(crate) const PREFERRED_VARIABLE: &str = "PYBIND_GPU_PREFERRED_BACKEND";

/// What the build is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) targets: Vec<Target>,
    /// The facade's `Choice`.
    pub(crate) preferred: &'static str,
}

/// Code of one target.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) target: Target,
    pub(crate) compiler: String,
    pub(crate) objects: Vec<PackedObject>,
    /// Names of units that need AMD's device library where there is none.
    pub(crate) left_out: Vec<String>,
}

/// Reads the request, compiles, and writes what the facade includes to `OUT_DIR`: `code0.bin`
/// and so on, and `embedded.rs`. Gives warnings, or one line that says what is wrong and
/// what to do.
pub(crate) fn run(environment: &Environment) -> Result<Vec<String>, String> {
    let request = Request::of(environment)?;
    let out = environment.variable("OUT_DIR").ok_or("OUT_DIR is not set; cargo sets it")?;
    let out = Path::new(&out);
    let mut warnings = Vec::new();
    let mut all = Vec::new();
    for target in &request.targets {
        let embedded = compile(target, environment, out)?;
        if !embedded.left_out.is_empty() {
            warnings.push(format!(
                "{TARGET_VARIABLE}: {} of {} units for {target} need AMD's device library, which \
                 is not here for it, and are compiled at run time instead; ROCm has it, or the \
                 package rocm-device-libs",
                embedded.left_out.len(),
                embedded.left_out.len() + embedded.objects.len(),
            ));
        }
        all.push(embedded);
    }
    write(&request, &all, out).map_err(|error| format!("{}: {error}", out.display()))?;
    Ok(warnings)
}

impl Request {
    pub(crate) fn of(environment: &Environment) -> Result<Request, String> {
        let text = |name| environment.variable(name).unwrap_or_default();
        let list = text(TARGET_VARIABLE);
        let targets = Target::parse_list(&list.to_string_lossy()).map_err(|error| {
            format!("{TARGET_VARIABLE}: {}; name one or more of these, or unset it", error.detail())
        })?;
        let preferred = text(PREFERRED_VARIABLE);
        let preferred = match (preferred.to_string_lossy().trim(), targets.first()) {
            ("", None) => "Auto",
            ("", Some(Target::Hip { .. })) => "Hip",
            ("", Some(_)) => "Cuda",
            (name, _) if name.eq_ignore_ascii_case("cuda") => "Cuda",
            (name, _) if name.eq_ignore_ascii_case("rocm") => "Hip",
            (name, _) => {
                return Err(format!(
                    "{PREFERRED_VARIABLE} is {name:?}; allowed are CUDA and ROCM, or unset it"
                ));
            }
        };
        Ok(Request { targets, preferred })
    }
}

/// Compiles the catalogue for a target. Objects that did not change are those of the last
/// build.
fn compile(target: &Target, environment: &Environment, out: &Path) -> Result<Embedded, String> {
    let scratch = out.join("units");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let compiler = Compiler::find(target, environment, &scratch)?;
    let cache = CodeCache::new(out.join("objects"), 1 << 30);
    let groups = catalogue();
    units::compile(&compiler, &groups, &cache, &scratch, environment.jobs())
}

/// Writes the files that `src/embedded.rs` includes.
fn write(request: &Request, all: &[Embedded], out: &Path) -> io::Result<()> {
    let mut text = String::from("static TARGETS: &[EmbeddedTarget] = &[\n");
    for (number, embedded) in all.iter().enumerate() {
        fs::write(out.join(format!("code{number}.bin")), pack(&embedded.objects))?;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "    EmbeddedTarget::new({:?}, {:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \
             \"/code{number}.bin\"))),",
            embedded.target.to_string(),
            embedded.compiler,
        );
    }
    let _ =
        writeln!(text, "];\n\npub(crate) const PREFERRED: Choice = Choice::{};", request.preferred);
    fs::write(out.join("embedded.rs"), text)
}

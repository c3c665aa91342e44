//! The targets of `PYBIND_GPU_TARGET`, compiled (feature `aot`).

use super::compiler::Compiler;
use super::environment::Environment;
use super::{Built, TARGET_VARIABLE, units};
use codegen::compile::embedded::{PackedObject, pack};
use codegen::compile::{CodeCache, Target};
use codegen::source::catalogue::catalogue;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The devices to compile for, in the order of the variable.
#[derive(Debug)]
pub(crate) struct Targets(pub(crate) Vec<Target>);

/// Code of one target.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) target: Target,
    pub(crate) compiler: String,
    pub(crate) objects: Vec<PackedObject>,
    /// Names of units that were left out because AMD's device library is missing.
    pub(crate) left_out: Vec<String>,
}

impl Targets {
    /// Reads the variable.
    ///
    /// # Errors
    /// A line that names a target that is unknown, or whose backend is left out of this build.
    pub(crate) fn requested(environment: &Environment) -> Result<Targets, String> {
        let list = environment.variable(TARGET_VARIABLE).unwrap_or_default();
        let targets = Target::parse_list(&list.to_string_lossy()).map_err(|error| {
            format!("{TARGET_VARIABLE}: {}; name one or more of these, or unset it", error.detail())
        })?;
        let built: &[&str] = &[
            #[cfg(feature = "cuda")]
            "Cuda",
            #[cfg(feature = "hip")]
            "Hip",
        ];
        if let Some(target) = targets.iter().find(|target| !built.contains(&backend(target))) {
            return Err(format!(
                "{TARGET_VARIABLE} names {target}, whose backend is left out of this build; enable \
                 the feature {} of gpuarray, or name no such target",
                backend(target).to_lowercase()
            ));
        }
        Ok(Targets(targets))
    }

    /// The facade's `Choice` that runs the first target.
    pub(crate) fn backend(&self) -> Option<&'static str> {
        self.0.first().map(backend)
    }

    /// Compiles the catalogue of builtin operations for each target, and writes the code to
    /// `code0.bin` and so on in `out`.
    pub(crate) fn build(&self, environment: &Environment, out: &Path) -> Result<Built, String> {
        let mut built = Built::default();
        // Archives without a base, which later ones may have as theirs.
        let mut bases: Vec<(usize, &Target, Vec<u8>)> = Vec::new();
        for (number, target) in self.0.iter().enumerate() {
            let embedded = compile(target, environment, out)?;
            built.warnings.extend(embedded.warning());
            let base = bases.iter().find(|(_, it, _)| it.resembles(target));
            let archive = pack(&embedded.objects, base.map(|(.., archive)| &archive[..]));
            let path = out.join(format!("code{number}.bin"));
            fs::write(&path, &archive).map_err(|error| format!("{}: {error}", path.display()))?;
            let base_name = match base {
                Some((base, ..)) => format!("Some(CODE{base})"),
                None => "None".into(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                built.rows,
                "    // SAFETY: this script compiled these sources, and packed them over this base.\n    \
                 unsafe {{ EmbeddedTarget::new({:?}, {:?}, CODE{number}, {base_name}) }},",
                target.to_string(),
                embedded.compiler,
            );
            let _ = writeln!(
                built.code,
                "static CODE{number}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \
                 \"/code{number}.bin\"));"
            );
            if base.is_none() {
                bases.push((number, target, archive));
            }
        }
        Ok(built)
    }
}

fn backend(target: &Target) -> &'static str {
    match target {
        Target::Hip { .. } => "Hip",
        _ => "Cuda",
    }
}

/// Compiles the catalogue for a target. Unchanged objects are taken from the last build.
fn compile(target: &Target, environment: &Environment, out: &Path) -> Result<Embedded, String> {
    let scratch = out.join("units");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let compiler = Compiler::find(target, environment, &scratch)?;
    let cache = CodeCache::new(out.join("objects"), 1 << 30);
    let groups = catalogue();
    units::compile(&compiler, &groups, &cache, &scratch, environment.jobs())
}

impl Embedded {
    fn warning(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| {
            format!(
                "{TARGET_VARIABLE}: {} of {} units for {} need AMD's device library, which is not \
                 here for it, and are compiled at run time instead; ROCm has it, or the package \
                 rocm-device-libs",
                self.left_out.len(),
                self.left_out.len() + self.objects.len(),
                self.target,
            )
        })
    }
}

//! The targets of `PYBIND_GPU_TARGET`, compiled (feature `aot`).

use super::compiler::Compiler;
use super::environment::Environment;
use super::{Built, TARGET_VARIABLE, units};
use codegen::compile::embedded::{PackedObject, pack, share};
use codegen::compile::{CodeCache, Target};
use codegen::source::catalogue::{Group, catalogue};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, iter};

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
        // Each archive with the number of its base.
        let mut archives: Vec<(Vec<u8>, Option<usize>)> = Vec::new();
        let mut costs = Costs::default();
        let groups = if self.0.is_empty() { Vec::new() } else { catalogue() };
        for (number, target) in self.0.iter().enumerate() {
            let embedded = compile(target, &groups, environment, out)?;
            built.warnings.extend(embedded.warning());
            // The first of those that resemble the target most.
            let likeness = |base: &usize| (self.0[*base].likeness(target), Reverse(*base));
            let base = (0..number).filter(|it| likeness(it).0 > 0).max_by_key(likeness);
            let bases: Vec<usize> = iter::successors(base, |it| archives[*it].1).collect();
            let of_bases: Vec<&[u8]> = bases.iter().map(|it| &archives[*it].0[..]).collect();
            let archive = pack(&embedded.objects, &of_bases);
            write(&out.join(format!("code{number}.bin")), &archive)?;
            costs.add(target, &groups, &[&[&archive[..]], &of_bases[..]].concat());
            let names: Vec<String> =
                [number].iter().chain(&bases).map(|it| format!("CODE{it}")).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(
                built.rows,
                "    // SAFETY: this script compiled these sources, and packed each over the next.\n    \
                 unsafe {{ EmbeddedTarget::new({:?}, {:?}, &[{}]) }},",
                target.to_string(),
                embedded.compiler,
                names.join(", "),
            );
            let _ = writeln!(
                built.code,
                "static CODE{number}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \
                 \"/code{number}.bin\"));"
            );
            archives.push((archive, base));
        }
        if !self.0.is_empty() {
            write(&out.join("sizes.txt"), costs.table().as_bytes())?;
        }
        Ok(built)
    }
}

/// Writes a file.
fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

/// The bytes that each target takes, by families of operations.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    rows: Vec<(String, BTreeMap<String, usize>, usize)>,
}

impl Costs {
    /// Adds a target with its archive, which the archive's bases follow.
    pub(crate) fn add(&mut self, target: &Target, groups: &[Group], archives: &[&[u8]]) {
        let mut families = BTreeMap::new();
        for group in groups {
            *families.entry(family(&group.name).to_owned()).or_default() +=
                share(archives, &group.specs());
        }
        self.rows.push((target.to_string(), families, archives[0].len()));
    }

    /// Returns a table in kilobytes: a row for each target and for all, a column for each family and for all.
    pub(crate) fn table(&self) -> String {
        let names: BTreeSet<&String> = self.rows.iter().flat_map(|(_, it, _)| it.keys()).collect();
        let mut text = String::new();
        let mut line = |name: &str, cells: &mut dyn Iterator<Item = String>| {
            let cells: String = cells.map(|it| format!(" {it:>9}")).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<15}{cells}");
        };
        let thousands = |bytes: usize| format!("{:.0}", bytes as f64 / 1e3);
        let heads = names.iter().map(|it| (*it).clone());
        line("kB", &mut heads.chain(["all".into()]));
        for (target, families, bytes) in &self.rows {
            let cell = |name| thousands(families.get(name).copied().unwrap_or(0));
            line(target, &mut names.iter().map(|it| cell(*it)).chain([thousands(*bytes)]));
        }
        let sum = |name| self.rows.iter().filter_map(|(_, it, _)| it.get(name)).sum();
        let bytes = self.rows.iter().map(|(.., bytes)| bytes).sum();
        let sums = names.iter().map(|it| thousands(sum(*it)));
        line("all", &mut sums.chain([thousands(bytes)]));
        text
    }
}

/// Returns the family of a unit's operations: the kind that its name begins with, or the dtypes of its functions of
/// elements, with which it ends.
fn family(unit: &str) -> &str {
    const KINDS: [&str; 10] = [
        "cast", "copy", "nonzero", "product", "random", "reduce", "scan", "select", "sort", "take",
    ];
    let (first, last) = (unit.split('_').next(), unit.rsplit('_').next());
    let kind = first.filter(|it| KINDS.contains(it));
    kind.or(last).unwrap_or(unit)
}

fn backend(target: &Target) -> &'static str {
    match target {
        Target::Hip { .. } => "Hip",
        _ => "Cuda",
    }
}

/// Compiles the catalogue for a target. Unchanged objects are taken from the last build.
fn compile(
    target: &Target,
    groups: &[Group],
    environment: &Environment,
    out: &Path,
) -> Result<Embedded, String> {
    let scratch = out.join("units");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let compiler = Compiler::find(target, environment, &scratch)?;
    let cache = CodeCache::new(out.join("objects"), 1 << 30);
    units::compile(&compiler, groups, &cache, &scratch, environment.jobs())
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

//! What a build embeds: its sizes by part, and every object of a build that is at hand.

use crate::code_object::{CodeObject, GENERIC_VERSION_1, MACHINE};
use crate::cubins::{check_ptx, sections};
use crate::embed::targets::Costs;
use codegen::compile::Target;
use codegen::compile::embedded::{EmbeddedTarget, PackedObject, pack};
use codegen::compile::format::{Format, examine};
use codegen::source::catalogue::{Group, catalogue};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[test]
fn sizes_are_told_by_target_and_by_family() {
    let groups = catalogue();
    let names = ["add_float", "multiply_float", "sort_float32", "take"];
    let is_chosen = |group: &Group| names.contains(&group.name.as_str());
    let chosen: Vec<Group> = groups.into_iter().filter(is_chosen).collect();
    assert_eq!(chosen.len(), names.len());
    let mut costs = Costs::default();
    let mut bytes = 0;
    for target in ["gfx90a", "gfx9-generic"] {
        let code = |i: u64| (0..40_000 * (i + 1)).map(|it| (it * it / 256) as u8);
        let object = |(i, group): (u64, &Group)| {
            PackedObject::new(&group.specs(), &code(i).collect::<Vec<u8>>())
        };
        let archive = pack(&(0..).zip(&chosen).map(object).collect::<Vec<_>>(), &[]);
        bytes += archive.len();
        costs.add(&target.parse().unwrap(), &chosen, &[&archive]);
    }
    let table = costs.table();
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["kB", "float", "sort", "take", "all"]);
    let heads: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(heads, ["kB", "gfx90a", "gfx9-generic", "all"]);
    for row in &rows[1..] {
        let cells: Vec<i64> = row[1..].iter().map(|it| it.parse().unwrap()).collect();
        let [all, families @ ..] = [cells[3], cells[0], cells[1], cells[2]];
        assert!(families.iter().all(|it| *it > 0), "{table}");
        assert!((families.iter().sum::<i64>() - all).abs() <= 2, "{table}");
    }
    let all: i64 = rows[3][4].parse().unwrap();
    assert!((all - bytes as i64 / 1000).abs() <= 1, "{table}");
}

/// A folder that the build script filled, which holds `embedded.rs`: `target/published/.../build/gpuarray-.../out`.
const FOLDER: &str = "PYGPU_BUILT_CODE";

/// Values of `EF_AMDGPU_MACH`, from the table "AMDGPU `EF_AMDGPU_MACH` Values" in LLVM's User Guide for AMDGPU Backend.
const MACHINES: [(&str, u32); 11] = [
    ("gfx90a", 0x3f),
    ("gfx942", 0x4c),
    ("gfx1030", 0x36),
    ("gfx1100", 0x41),
    ("gfx1201", 0x4e),
    ("gfx9-generic", 0x51),
    ("gfx10-1-generic", 0x52),
    ("gfx10-3-generic", 0x53),
    ("gfx11-generic", 0x54),
    ("gfx12-generic", 0x59),
    ("gfx9-4-generic", 0x5f),
];

#[test]
fn every_object_of_a_build_is_whole() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return eprintln!("skipped: {FOLDER} names no folder of a build");
    };
    let folder = Path::new(&folder);
    let groups = catalogue();
    let kernels: usize =
        groups.iter().flat_map(Group::specs).map(|spec| spec.kernel_names().len()).sum();
    let mut faults = Vec::new();
    let mut costs = Costs::default();
    for (embedded, archives) in targets(folder) {
        let target: Target = embedded.name().parse().unwrap();
        costs.add(&target, &groups, archives);
        assert_eq!(embedded.kernel_count(), kernels, "{target}");
        for group in &groups {
            match &target {
                Target::Hip { .. } => faults.extend(check_hip(&embedded, &target, group)),
                Target::Ptx { .. } => {
                    for spec in group.specs() {
                        check_ptx(&embedded.code(&spec.source()).unwrap(), &spec, "sm_75");
                    }
                }
                _ => check_cubin(&embedded, group),
            }
        }
    }
    eprintln!("{kernels} kernels for each target\n{}", costs.table());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The targets that `embedded.rs` names, with their code.
fn targets(folder: &Path) -> Vec<(EmbeddedTarget, &'static [&'static [u8]])> {
    let text = fs::read_to_string(folder.join("embedded.rs")).unwrap();
    let rows =
        text.lines().filter_map(|line| line.trim().strip_prefix("unsafe { EmbeddedTarget::new("));
    let mut archives: BTreeMap<&str, &'static [u8]> = BTreeMap::new();
    let mut targets = Vec::new();
    for row in rows {
        // The compiler's version may contain commas.
        let (described, names) = row.strip_suffix("]) },").unwrap().rsplit_once(", &[").unwrap();
        let (name, compiler) = described.split_once(", ").unwrap();
        let names: Vec<&str> = names.split(", ").collect();
        let file = format!("{}.bin", names[0].to_lowercase());
        archives.insert(names[0], fs::read(folder.join(file)).unwrap().leak());
        let [name, compiler] = [name, compiler].map(|it| &*it.trim_matches('"').to_owned().leak());
        let codes: &[&[u8]] = names.iter().map(|it| archives[it]).collect::<Vec<_>>().leak();
        // SAFETY: the code is read, and never run.
        targets.push((unsafe { EmbeddedTarget::new(name, compiler, codes) }, codes));
    }
    assert!(!targets.is_empty(), "{text}");
    targets
}

/// Checks the object of a group for an AMD GPU. Returns a line for each kernel that spills registers.
fn check_hip(embedded: &EmbeddedTarget, target: &Target, group: &Group) -> Vec<String> {
    let code = embedded.code(&group.plans[0].spec().source()).unwrap();
    assert_eq!(examine(&code).unwrap(), Format::Elf);
    let object = CodeObject::parse(&code);
    let (_, machine) = MACHINES.iter().find(|(name, _)| *name == embedded.name()).unwrap();
    assert_eq!(object.flags & MACHINE, *machine, "{}: {:#x}", group.name, object.flags);
    let version = if target.is_generic() { GENERIC_VERSION_1 } else { 0 };
    assert_eq!(object.flags & 0xff00_0000, version, "{}: {:#x}", group.name, object.flags);
    assert_eq!(object.target, format!("amdgcn-amd-amdhsa--{target}"));
    let wavefront = if embedded.name().starts_with("gfx9") { 64 } else { 32 };
    let kernels: usize = group.plans.iter().map(|it| object.check_kernels(it, wavefront)).sum();
    assert_eq!(object.kernels.len(), kernels, "{}", group.name);
    let lines = object.registers_that_do_not_suffice();
    lines.iter().map(|it| format!("{target}: {it}")).collect()
}

/// Checks the object of a group for an NVIDIA GPU.
fn check_cubin(embedded: &EmbeddedTarget, group: &Group) {
    let code = embedded.code(&group.plans[0].spec().source()).unwrap();
    assert_eq!(examine(&code).unwrap(), Format::Elf);
    let capability: u8 = embedded.name().trim_start_matches("sm_").parse().unwrap();
    // EF_CUDA_SM, the lowest byte of `e_flags`, or the second one in newer files.
    assert!(code[0x30..0x32].contains(&capability), "{}: {:x?}", group.name, &code[0x30..0x34]);
    let all = sections(&code);
    let found: BTreeSet<&str> = all.iter().filter_map(|it| it.strip_prefix(".text.")).collect();
    let names: Vec<_> = group.specs().iter().flat_map(|it| it.kernel_names()).collect();
    assert_eq!(found, names.iter().map(String::as_str).collect(), "{}", group.name);
}

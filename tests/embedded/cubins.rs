//! Checks the code that a real NVRTC makes for NVIDIA's GPUs.

use crate::embed::compiler::Compiler;
use crate::embed::environment::Environment;
use crate::embed::units;
use crate::skip;
use codegen::compile::CodeCache;
use codegen::compile::Target;
use codegen::compile::embedded::{EmbeddedTarget, pack};
use codegen::compile::format::{Format, examine};
use codegen::source::KernelSpec;
use codegen::source::catalogue::{Group, catalogue};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::Path;

/// The ELF machine number of cubins.
const EM_CUDA: usize = 190;

#[test]
fn kernels_compile_for_sm_90() {
    let Some((embedded, groups)) = compiled("sm_90") else { return };
    for group in &groups {
        let code = embedded.code(&group.plans[0].spec().source()).unwrap();
        // Each kernel has its own section.
        let all = sections(&code);
        let sections: BTreeSet<&str> =
            all.iter().filter_map(|name| name.strip_prefix(".text.")).collect();
        let names: Vec<_> = group.specs().iter().flat_map(|it| it.kernel_names()).collect();
        let expected: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(sections, expected, "{}", group.name);
    }
}

#[test]
fn each_specification_has_its_own_ptx() {
    let Some((embedded, groups)) = compiled("compute_75") else { return };
    for spec in groups.iter().flat_map(|group| group.specs()) {
        check_ptx(&embedded.code(&spec.source()).unwrap(), &spec, "sm_75");
    }
}

/// Checks that PTX has the kernels of a specification, and no others.
pub(crate) fn check_ptx(code: &[u8], spec: &KernelSpec, target: &str) {
    assert_eq!(examine(code).unwrap(), Format::Ptx);
    let text = CStr::from_bytes_with_nul(code).unwrap().to_str().unwrap();
    let entries: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(".visible .entry "))
        .map(|line| line.trim_end_matches(['(', ')']))
        .collect();
    let names = spec.kernel_names();
    assert_eq!(entries, names.iter().map(String::as_str).collect(), "{text}");
    assert!(text.starts_with(&format!(".version 7.0\n.target {target}\n")), "{text}");
}

/// A part of the catalogue, compiled; `None` if there is no NVRTC.
fn compiled(name: &'static str) -> Option<(EmbeddedTarget, Vec<Group>)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded");
    let scratch = folder.join(name);
    std::fs::create_dir_all(&scratch).unwrap();
    // The fake driver's NVRTC makes other code.
    let read = |name: &str| std::env::var_os(name).filter(|_| name != "PYGPU_NVRTC");
    let environment = Environment::new(read, "/");
    let target: Target = name.parse().unwrap();
    let compiler = match Compiler::find(&target, &environment, &scratch) {
        Ok(compiler) => compiler,
        Err(error) => {
            skip("PYGPU_REQUIRE_NVRTC", &error);
            return None;
        }
    };
    assert!(compiler.version.starts_with("NVRTC "), "{compiler:?}");
    let groups: Vec<_> = catalogue().into_iter().step_by(40).collect();
    let cache = CodeCache::new(folder.join("objects"), 1 << 28);
    let made = units::compile(&compiler, &groups, &cache, &scratch, environment.jobs()).unwrap();
    // SAFETY: the archive is packed from the compiled code.
    Some((
        unsafe { EmbeddedTarget::new(name, "", vec![&*pack(&made.objects, &[]).leak()].leak()) },
        groups,
    ))
}

/// Returns the names of a cubin's sections. A cubin's tables need not be aligned, which the crate
/// `object` requires. The fields are those in `Elf64_Ehdr` and `Elf64_Shdr`.
pub(crate) fn sections(cubin: &[u8]) -> Vec<&str> {
    let number = |at: usize, bytes: usize| -> usize {
        cubin[at..at + bytes].iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte))
    };
    assert_eq!(cubin[..6], *b"\x7fELF\x02\x01", "64 bits, little-endian");
    assert_eq!(number(0x12, 2), EM_CUDA);
    let (table, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let section = |index: usize| table + index * size;
    let names = number(section(number(0x3e, 2)) + 0x18, 8);
    let name = |index| {
        let text = &cubin[names + number(section(index), 4)..];
        CStr::from_bytes_until_nul(text).unwrap().to_str().unwrap()
    };
    (0..count).map(name).collect()
}

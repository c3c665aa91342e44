//! Checks the code that a real nvcc makes for NVIDIA's GPUs.

use crate::embed::compiler::Compiler;
use crate::embed::environment::Environment;
use crate::embed::units;
use crate::skip;
use codegen::compile::CodeCache;
use codegen::compile::Target;
use codegen::compile::embedded::{EmbeddedTarget, pack};
use codegen::source::catalogue::catalogue;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::Path;

/// The ELF machine number of cubins.
const EM_CUDA: usize = 190;

#[test]
fn kernels_compile_for_sm_90() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded");
    let scratch = folder.join("sm_90");
    std::fs::create_dir_all(&scratch).unwrap();
    let environment = Environment::of_process();
    let target: Target = "sm_90".parse().unwrap();
    let compiler = match Compiler::find(&target, &environment, &scratch) {
        Ok(compiler) => compiler,
        Err(error) => return skip("PYGPU_REQUIRE_NVCC", &error),
    };
    assert!(compiler.version.contains("release"), "{compiler:?}");
    let groups: Vec<_> = catalogue().into_iter().step_by(12).collect();
    let cache = CodeCache::new(folder.join("objects"), 1 << 28);
    let made = units::compile(&compiler, &groups, &cache, &scratch, environment.jobs()).unwrap();
    // SAFETY: the archive is packed from the compiled code.
    let embedded = unsafe { EmbeddedTarget::new("sm_90", "", pack(&made.objects).leak()) };
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

/// Returns the names of a cubin's sections. A cubin's tables need not be aligned, which the crate
/// `object` requires. The fields are those in `Elf64_Ehdr` and `Elf64_Shdr`.
fn sections(cubin: &[u8]) -> Vec<&str> {
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

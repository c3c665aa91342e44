//! What a real nvcc makes for NVIDIA's GPUs.

use crate::embed::compiler::Compiler;
use crate::embed::environment::Environment;
use crate::embed::units;
use crate::skip;
use hal::driver::cache::CodeCache;
use hal::driver::embedded::{EmbeddedTarget, Target, pack};
use hal::source::catalogue::catalogue;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectSection};
use std::collections::BTreeSet;
use std::path::Path;

/// The machine of a cubin.
const EM_CUDA: u16 = 190;

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
    let embedded = EmbeddedTarget::new("sm_90", "", pack(&made.objects).leak());
    for group in &groups {
        let code = embedded.code(&group.plans[0].spec().source()).unwrap();
        let file = ElfFile::<FileHeader64<Endianness>>::parse(&*code).expect("an ELF file");
        assert_eq!(file.elf_header().e_machine(file.endian()), EM_CUDA);
        // Each kernel has a section of its own.
        let sections: BTreeSet<&str> =
            file.sections().filter_map(|it| it.name().ok()?.strip_prefix(".text.")).collect();
        let names: Vec<_> = group.specs().iter().flat_map(|it| it.kernel_names()).collect();
        let expected: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(sections, expected, "{}", group.name);
    }
}

//! Checks the code that a real clang makes for AMD's GPUs: machine, features, kernels, arguments.

use crate::code_object::{
    CodeObject, GENERIC_VERSION_1, GFX11_GENERIC, GFX90A, GFX1030, MACHINE, SRAMECC_ANY,
    SRAMECC_ON, XNACK_ANY, XNACK_OFF,
};
use crate::embed::compiler::{Compiler, run};
use crate::embed::environment::Environment;
use crate::embed::units;
use crate::fetched;
use codegen::compile::CodeCache;
use codegen::compile::Target;
use codegen::compile::embedded::{EmbeddedTarget, pack};
use codegen::compile::format::{Format, examine};
use codegen::source::catalogue::catalogue;
use codegen::source::unit;
use std::path::Path;

/// Returns true if all kernels are compiled, not only a part.
fn every_kernel() -> bool {
    std::env::var("PYGPU_EVERY_KERNEL").is_ok_and(|it| it == "1")
}

#[test]
fn builtin_operations_compile_for_gfx90a() {
    let one_in = if every_kernel() { 1 } else { 32 };
    compile("gfx90a", GFX90A | XNACK_ANY | SRAMECC_ANY, 64, one_in);
}

#[test]
fn wavefronts_of_32_compile_too() {
    compile("gfx1030", GFX1030, 32, if every_kernel() { 8 } else { 48 });
}

#[test]
fn features_are_in_the_code() {
    compile("gfx90a:xnack-", GFX90A | XNACK_OFF | SRAMECC_ANY, 64, 64);
    compile("gfx90a:xnack-:sramecc+", GFX90A | XNACK_OFF | SRAMECC_ON, 64, 64);
}

#[test]
fn generic_code_says_so_in_its_header() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded/generic");
    std::fs::create_dir_all(&folder).unwrap();
    let Some(environment) = environment() else { return };
    let target: Target = "gfx11-generic".parse().unwrap();
    // Debian's device library has no part for generic targets; these kernels need none.
    let compiler = Compiler::find(&target, &environment, &folder).unwrap();
    let groups: Vec<_> = catalogue().into_iter().filter(|it| it.name == "nonzero").collect();
    let cache = CodeCache::new(folder.join("objects"), 1 << 28);
    let made = units::compile(&compiler, &groups, &cache, &folder, environment.jobs()).unwrap();
    assert!(made.left_out.is_empty());
    // SAFETY: the archive is packed from the compiled code.
    let embedded =
        unsafe { EmbeddedTarget::new("", "", vec![&*pack(&made.objects, &[]).leak()].leak()) };
    for plan in &groups[0].plans {
        let code = embedded.code(&plan.spec().source()).unwrap();
        assert_eq!(examine(&code).unwrap(), Format::Elf);
        // The version of code objects, which ELF counts from another beginning.
        assert_eq!(code[8], 4);
        let object = CodeObject::parse(&code);
        assert_eq!(object.flags, GENERIC_VERSION_1 | GFX11_GENERIC, "{:#x}", object.flags);
        assert_eq!(object.target, "amdgcn-amd-amdhsa--gfx11-generic");
        object.check_kernels(plan, 32);
    }
}

/// Groups whose kernels write to indexed positions and share memory. If [`every_kernel`] returns
/// true, all groups are checked, which takes minutes.
const WRITTEN: [&str; 2] = ["take", "scan_sum"];

#[test]
fn memory_is_accessed_as_what_it_is() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded/assembly");
    std::fs::create_dir_all(&folder).unwrap();
    let Some(environment) = environment() else { return };
    let target: Target = "gfx90a".parse().unwrap();
    let mut compiler = Compiler::find(&target, &environment, &folder).unwrap();
    compiler.options.push("-S".into());
    let all = every_kernel();
    let groups = catalogue();
    let mut chosen = 0;
    for group in groups.iter().filter(|it| all || WRITTEN.contains(&it.name.as_str())) {
        let [source, output] = ["cu", "s"].map(|end| folder.join(format!("{}.{end}", group.name)));
        std::fs::write(&source, unit(group.specs().iter().cloned())).unwrap();
        run(&mut compiler.command(&source, &output)).unwrap();
        let text = std::fs::read_to_string(&output).unwrap();
        let (mut kernel, mut stores) = ("", 0);
        for line in text.lines() {
            match line.strip_prefix('\t') {
                // An access whose address space the compiler does not know (`flat_`) waits for all
                // kinds of memory.
                Some(code) => assert!(!code.starts_with("flat_"), "{kernel}: {code}"),
                None => kernel = line.split(':').next().unwrap_or(kernel),
            }
            stores += usize::from(line.starts_with("\tglobal_store_"));
        }
        assert!(stores >= group.specs().len(), "{}: {stores}", group.name);
        chosen += 1;
    }
    assert_eq!(chosen, if all { groups.len() } else { WRITTEN.len() });
}

/// Returns the environment in which the build script finds AMD's compiler: Debian's, downloaded,
/// laid out like a ROCm installation.
fn environment() -> Option<Environment> {
    let clang = fetched::fetched(&["clang"], "clang", "PYGPU_REQUIRE_CLANG")?;
    Some(Environment::new(
        move |name| match name {
            "ROCM_PATH" => Some(clang.clone().into_os_string()),
            _ => std::env::var_os(name),
        },
        "/",
    ))
}

/// Compiles one in `one_in` groups of the catalogue, packs the code, and checks the packed code.
fn compile(target: &str, flags: u32, wavefront: u64, one_in: usize) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded");
    let scratch = folder.join(target.replace(':', "_"));
    std::fs::create_dir_all(&scratch).unwrap();
    let Some(environment) = environment() else { return };
    let parsed: Target = target.parse().unwrap();
    let compiler = Compiler::find(&parsed, &environment, &scratch).unwrap();
    assert!(!compiler.is_bare, "AMD's device library is not here");
    let groups: Vec<_> = catalogue().into_iter().step_by(one_in).collect();
    let cache = CodeCache::new(folder.join("objects"), 1 << 28);
    let made = units::compile(&compiler, &groups, &cache, &scratch, environment.jobs()).unwrap();
    assert!(made.left_out.is_empty() && made.objects.len() == groups.len());
    // SAFETY: the archive is packed from the compiled code.
    let embedded =
        unsafe { EmbeddedTarget::new("", "", vec![&*pack(&made.objects, &[]).leak()].leak()) };
    let mut kernels = 0;
    let mut faults = Vec::new();
    for group in &groups {
        let code = embedded.code(&group.plans[0].spec().source()).unwrap();
        assert_eq!(examine(&code).unwrap(), Format::Elf);
        let object = CodeObject::parse(&code);
        assert_eq!(object.flags, flags, "{}: {:#x}", group.name, object.flags);
        assert_eq!(object.flags & MACHINE, flags & MACHINE);
        assert_eq!(object.target, format!("amdgcn-amd-amdhsa--{parsed}"));
        let mut expected = 0;
        for plan in &group.plans {
            expected += object.check_kernels(plan, wavefront);
            assert_eq!(embedded.code(&plan.spec().source()).as_ref(), Some(&code));
        }
        assert_eq!(object.kernels.len(), expected, "{}", group.name);
        faults.extend(object.registers_that_do_not_suffice());
        kernels += expected;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(embedded.kernel_count(), kernels);
    assert!(one_in > 1 || kernels > 1500, "{kernels}");
}

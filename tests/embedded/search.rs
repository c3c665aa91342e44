//! The choice among fake compilers, and the message if there is none.

use crate::embed::compiler::Compiler;
use crate::embed::environment::Environment;
use crate::embed::{self, units};
use crate::lookup::double;
use crate::{Folder, environment};
use codegen::compile::CodeCache;
use codegen::compile::Target;
use codegen::compile::embedded::{EmbeddedTarget, pack};
use codegen::source::catalogue::{Group, catalogue};
use std::fs;

/// Returns a script that appends its arguments to `calls` and creates its `-o` file.
fn working(folder: &Folder, version: &str) -> String {
    format!(
        "case $1 in --version) echo 'Copyright'; echo '{version}'; exit;; esac
         echo \"$0 $*\" >>{}/calls
         for it in \"$@\"; do
             case $it in *.cu) source=$it;; esac
             [ \"$before\" = -o ] && out=$it
             before=$it
         done
         {{ printf '\\177ELF'; echo \"made of $source\"; }} >\"$out\"",
        folder.path().display()
    )
}

fn calls(folder: &Folder) -> Vec<String> {
    let text = fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn find(target: &str, environment: &Environment, folder: &Folder) -> Result<Compiler, String> {
    let target: Target = target.parse().unwrap();
    Compiler::find(&target, environment, folder.path())
}

#[test]
fn hipcc_of_rocm_comes_first_and_clang_of_the_path_last() {
    let folder = Folder::new();
    let root = folder.path().display().to_string();
    let places = ["rocm/bin/hipcc", "path/hipcc", "rocm/llvm/bin/clang", "path/clang-19"];
    for place in places {
        folder.program(place, &working(&folder, &format!("clang version of {place}")));
    }
    let variables = [("ROCM_PATH", &*format!("{root}/rocm")), ("PATH", &*format!("{root}/path"))];
    let environment = environment(&folder, &variables);
    for place in places {
        let compiler = find("gfx90a:xnack-", &environment, &folder).unwrap();
        assert_eq!(compiler.program, folder.path().join(place));
        assert_eq!(compiler.version, format!("clang version of {place}"));
        fs::remove_file(&compiler.program).unwrap();
    }
    for name in ["HIP_PATH", "PATH", "ROCM_PATH"] {
        assert!(environment.names().contains(&name.to_owned()), "{:?}", environment.names());
    }
    for option in ["-x hip", "--offload-arch=gfx90a:xnack-", "-ffp-contract=off"] {
        assert!(calls(&folder).iter().all(|call| call.contains(option)), "{option}");
    }
    // Without this option hipcc would link a program.
    let told = calls(&folder).iter().map(|call| call.contains("--genco")).collect::<Vec<_>>();
    assert_eq!(told, [true, true, false, false]);
}

#[test]
fn nvrtc_is_found_where_the_environment_names_it() {
    let folder = Folder::new();
    let site = folder.path().join("site-packages");
    let library = site.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    let real = double().join("libnvrtc.so.12");
    std::os::unix::fs::symlink(&real, &library).unwrap();
    for variables in
        [[("PYGPU_NVRTC_PATH", site.to_str().unwrap())], [("PYGPU_NVRTC", real.to_str().unwrap())]]
    {
        let environment = environment(&folder, &variables);
        for target in ["sm_90", "compute_90"] {
            let compiler = find(target, &environment, &folder).unwrap();
            assert_eq!(compiler.program.canonicalize().unwrap(), real.canonicalize().unwrap());
            assert!(compiler.version.starts_with("NVRTC 12."), "{compiler:?}");
            let options = compiler.options.join(" ");
            let asked = format!("--gpu-architecture={target}");
            assert!(options.contains(&asked) && options.contains("-fmad=false"), "{options}");
            let text = "extern \"C\" __global__ void k(int* x) { *x = 1; }";
            let code = compiler.compile("k", text, folder.path()).unwrap();
            let is_elf = code.starts_with(b"\x7fELF");
            assert_eq!(is_elf, target == "sm_90", "{target}");
            let error = compiler.compile("k", "it is broken", folder.path()).unwrap_err();
            assert!(error.contains("error") && error.lines().count() == 1, "{error}");
        }
        for name in ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"] {
            assert!(environment.names().contains(&name.to_owned()), "{name}");
        }
    }
}

#[test]
fn what_does_not_work_is_passed_over() {
    let folder = Folder::new();
    let path = folder.path().join("path");
    folder.program(
        "path/hipcc",
        "echo 'warning: old'; echo 'error: no clang here; try it' >&2; exit 1",
    );
    folder.program("path/clang", "exit 0");
    folder.program("path/clang-18", &working(&folder, "clang version 18"));
    // This file is not executable.
    fs::write(path.join("clang-19"), "").unwrap();
    let environment = environment(&folder, &[("PATH", path.to_str().unwrap())]);
    let compiler = find("gfx1030", &environment, &folder).unwrap();
    assert_eq!(compiler.program, path.join("clang-18"));
    fs::remove_file(compiler.program).unwrap();
    let error = find("gfx1030", &environment, &folder).unwrap_err();
    for part in ["hipcc says \"error: no clang here\"", "clang says", "made no code", "gfx1030"] {
        assert!(error.contains(part), "{error}");
    }
    for part in ["check the name", "install", "unset PYBIND_GPU_TARGET"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn without_a_compiler_the_build_says_what_to_install() {
    let folder = Folder::new();
    let out = folder.path().to_str().unwrap();
    let nowhere = ("PYGPU_NVRTC", "/nowhere/libnvrtc.so");
    for (target, missing, advice) in [
        ("gfx90a", "neither hipcc nor clang", "ROCm"),
        ("gfx11-generic", "neither hipcc nor clang", "ROCm 6.3"),
        ("sm_90", "/nowhere/libnvrtc.so", "pip install nvidia-cuda-nvrtc-cu12"),
        ("compute_75", "/nowhere/libnvrtc.so", "CUDA toolkit"),
    ] {
        let variables = [("PYBIND_GPU_TARGET", target), ("PATH", ""), ("OUT_DIR", out), nowhere];
        let error = embed::run(&environment(&folder, &variables)).unwrap_err();
        for part in [target, missing, advice, "unset PYBIND_GPU_TARGET"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(error.lines().count(), 1);
    }
}

/// Returns a clang that compiles all units except some.
fn partial(folder: &Folder, refuses: &str) -> Compiler {
    let script = format!(
        "case $* in {refuses}*) echo 'In file x:' >&2; echo 'x:1: error: it is broken' >&2
         exit 1;; esac\n{}",
        working(folder, "clang version 20")
    );
    let path = folder.path().join("path");
    folder.program("path/clang", &script);
    let environment = environment(folder, &[("PATH", path.to_str().unwrap())]);
    find("gfx90a", &environment, folder).unwrap()
}

#[test]
fn a_unit_that_fails_stops_the_build() {
    let folder = Folder::new();
    let compiler = partial(&folder, "*/negative_float.");
    let cache = CodeCache::disabled();
    let error = units::compile(&compiler, &catalogue(), &cache, folder.path(), 2).unwrap_err();
    for part in ["PYBIND_GPU_TARGET", "negative_float", "gfx90a", "x:1: error: it is broken"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn what_did_not_change_is_not_compiled_again() {
    let folder = Folder::new();
    let compiler = partial(&folder, "never");
    let groups = &catalogue()[..5];
    let cache = CodeCache::new(folder.path().join("objects"), 1 << 20);
    let compile = |compiler: &Compiler| {
        let before = calls(&folder).len();
        let embedded = units::compile(compiler, groups, &cache, folder.path(), 3).unwrap();
        assert!(embedded.left_out.is_empty());
        assert_eq!(embedded.compiler, "clang version 20");
        let archive = pack(&embedded.objects, &[]).leak();
        // SAFETY: the code is never run.
        let embedded = unsafe { EmbeddedTarget::new("gfx90a", "", vec![&*archive].leak()) };
        // The code of every unit is found by the source of each of its specifications.
        for group in groups {
            for spec in group.specs() {
                let source = spec.source();
                let code = String::from_utf8_lossy(&embedded.code(&source).unwrap()).into_owned();
                // A specification may be in several groups; the code of each is valid.
                let made_of = |group: &&Group| {
                    group.specs().iter().any(|it| it.source() == source)
                        && code.contains(&format!("{}.gfx90a.cu", group.name))
                };
                assert!(groups.iter().any(|it| made_of(&it)), "{}: {code}", group.name);
            }
        }
        let specs: usize = groups.iter().map(|group| group.plans.len()).sum();
        assert!(embedded.kernel_count() >= specs);
        calls(&folder).len() - before
    };
    assert_eq!(compile(&compiler), 5);
    assert_eq!(compile(&compiler), 0);
    let mut other = compiler;
    other.options.push("-g".into());
    assert_eq!(compile(&other), 5);
}

#[test]
fn units_that_need_a_missing_device_library_are_left_out() {
    let folder = Folder::new();
    let script = format!(
        "case $* in *-nogpulib*) ;; *--version*) ;; *) echo 'error: no ROCm device library' >&2
         exit 1;; esac
         case $* in *negative_float.*) echo 'lld: error: undefined hidden symbol: __ocml_fabs_f32' >&2
         exit 1;; esac\n{}",
        working(&folder, "clang version 20")
    );
    folder.program("path/clang", &script);
    let path = folder.path().join("path");
    let out = folder.path().to_str().unwrap();
    let variables =
        [("PATH", path.to_str().unwrap()), ("OUT_DIR", out), ("PYBIND_GPU_TARGET", "gfx90a")];
    let warnings = embed::run(&environment(&folder, &variables)).unwrap();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let units = catalogue().len();
    assert!(warning.contains(&format!("1 of {units} units for gfx90a")), "{warning}");
    let text = fs::read_to_string(folder.path().join("embedded.rs")).unwrap();
    assert!(text.contains("EmbeddedTarget::new(\"gfx90a\", \"clang version 20\""), "{text}");
    assert!(text.contains("Choice::Hip"), "{text}");
    assert!(fs::metadata(folder.path().join("code0.bin")).unwrap().len() > 10_000);
}

#[test]
fn code_of_a_similar_target_is_packed_over_the_first_ones() {
    let folder = Folder::new();
    folder.program("path/clang", &working(&folder, "clang version 20"));
    let path = folder.path().join("path");
    let out = folder.path().to_str().unwrap();
    let variables = [
        ("PATH", path.to_str().unwrap()),
        ("OUT_DIR", out),
        ("PYBIND_GPU_TARGET", "gfx1030 gfx1100 gfx10-3-generic gfx1201 gfx12-generic"),
    ];
    embed::run(&environment(&folder, &variables)).unwrap();
    let text = fs::read_to_string(folder.path().join("embedded.rs")).unwrap();
    for row in ["CODE0", "CODE1", "CODE2, CODE0", "CODE3, CODE1", "CODE4, CODE3, CODE1"] {
        assert!(text.contains(&format!("\"clang version 20\", &[{row}])")), "{row}: {text}");
    }
    assert!(text.contains("static CODE4: &[u8]"), "{text}");
}

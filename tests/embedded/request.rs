//! The request that the build's variables express, and the file that is written for it.

use crate::embed::targets::Targets;
use crate::embed::{self, preferred};
use crate::{Folder, environment};
use std::fs;

fn request(variables: &[(&str, &str)]) -> Result<(Vec<String>, &'static str), String> {
    let environment = environment(&Folder::new(), variables);
    let targets = Targets::requested(&environment)?;
    let preferred = preferred(&environment, targets.backend())?;
    Ok((targets.0.iter().map(ToString::to_string).collect(), preferred))
}

#[test]
fn the_first_target_decides_which_backend_is_preferred() {
    let ask = |targets: &str| request(&[("PYBIND_GPU_TARGET", targets)]).unwrap();
    assert_eq!(ask("sm_90; gfx90a"), (vec!["sm_90".into(), "gfx90a".into()], "Cuda"));
    assert_eq!(ask("gfx90a:xnack-,sm_90").1, "Hip");
    assert_eq!(ask(" "), (vec![], "Auto"));
    assert_eq!(request(&[]), Ok((vec![], "Auto")));
}

#[test]
fn a_preferred_backend_wins_over_the_first_target() {
    let ask = |name: &str, targets: &str| {
        let variables = [("PYBIND_GPU_PREFERRED_BACKEND", name), ("PYBIND_GPU_TARGET", targets)];
        request(&variables).map(|(_, preferred)| preferred)
    };
    assert_eq!(ask("CUDA", "gfx90a"), Ok("Cuda"));
    assert_eq!(ask(" rocm ", "sm_90"), Ok("Hip"));
    assert_eq!(ask("ROCM", ""), Ok("Hip"));
    assert_eq!(ask("", "gfx90a"), Ok("Hip"));
    let error = ask("vulkan", "").unwrap_err();
    for part in ["PYBIND_GPU_PREFERRED_BACKEND", "\"vulkan\"", "CUDA and ROCM", "unset"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn unknown_targets_are_named_with_what_is_known() {
    for (list, unknown) in [("foo", "\"foo\""), ("gfx90a,sm_9", "\"sm_9\"")] {
        let error = request(&[("PYBIND_GPU_TARGET", list)]).unwrap_err();
        for part in ["PYBIND_GPU_TARGET", unknown, "sm_90", "gfx90a:xnack-", "unset"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn without_targets_nothing_is_looked_for() {
    let (folder, programs) = (Folder::new(), Folder::new());
    let out = folder.path().to_str().unwrap();
    let path = programs.path().to_str().unwrap();
    let mark = programs.path().join("mark");
    for name in ["hipcc", "amdclang", "clang", "nvcc", "c++", "cc"] {
        programs.program(name, &format!(">{}", mark.display()));
    }
    let variables = [("OUT_DIR", out), ("PATH", path), ("CUDA_HOME", path), ("ROCM_PATH", path)];
    let environment = environment(&folder, &variables);
    assert_eq!(embed::run(&environment), Ok(vec![]));
    assert!(!mark.exists());
    // The build depends on these variables, and not on PATH.
    let asked = ["PYBIND_GPU_PREFERRED_BACKEND", "PYBIND_GPU_TARGET"];
    assert_eq!(environment.names(), asked);
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(folder.path().join("embedded.rs")).unwrap();
    assert!(text.contains("TARGETS: &[EmbeddedTarget] = &[\n];"), "{text}");
    assert!(text.contains("PREFERRED: Choice = Choice::Auto;"), "{text}");
}

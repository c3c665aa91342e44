//! Finds NVIDIA's headers: in a toolkit, or in packages from PyPI.

use super::code::includes;
use super::macros::Dialect;
use crate::headers::headers;
use std::path::{Path, PathBuf};

/// The start of a header's name, and the folder and the package that contain the header. The first match counts.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("curand", "curand", "nvidia-curand-cu12"),
    ("cublas", "cublas", "nvidia-cublas-cu12"),
    ("cufft", "cufft", "nvidia-cufft-cu12"),
    ("cusparse", "cusparse", "nvidia-cusparse-cu12"),
    ("cusolver", "cusolver", "nvidia-cusolver-cu12"),
    ("cub/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("thrust/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("cuda/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("nv/", "cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("crt/", "cuda_nvcc", "nvidia-cuda-nvcc-cu12"),
    ("", "cuda_runtime", "nvidia-cuda-runtime-cu12"),
];

/// Starts of the names of NVIDIA's headers.
const STARTS: &[&str] = &[
    "cu",
    "cooperative_groups",
    "crt/",
    "device_",
    "driver_",
    "math_",
    "mma.h",
    "nv/",
    "sm_",
    "surface_",
    "texture_",
    "thrust/",
    "vector_",
];

/// Starts of the names of headers of NVIDIA's C++ libraries (CCCL), which host compilers take as well.
const OF_CPP: &[&str] = &["cub/", "thrust/", "cuda/", "nv/"];

/// The header that includes the parts of CUB for kernels.
pub(super) const CUB: &str = "pygpu-cub.hpp";

/// A header that only a toolkit has.
const OF_TOOLKITS: &str = "nvfunctional";

/// The headers that NVIDIA's own ones include from other packages.
const INCLUDED: &[&str] = &["cuda_runtime.h", "nv/target", "crt/host_defines.h"];

/// Returns the folders in which CUDA toolkits may be installed.
pub fn toolkits() -> Vec<PathBuf> {
    let variables = ["CUDA_ROOT", "CUDA_PATH", "CUDA_HOME"].map(std::env::var_os);
    let mut folders: Vec<PathBuf> =
        variables.into_iter().flatten().filter(|it| !it.is_empty()).map(PathBuf::from).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let nvcc = std::env::split_paths(&path).find(|it| it.join("nvcc").is_file());
    folders.extend(nvcc.as_deref().and_then(Path::parent).map(Path::to_owned));
    folders.push("/usr/local/cuda".into());
    folders
}

fn of_toolkits(name: &str) -> Option<PathBuf> {
    let mut folders = toolkits().into_iter().map(|it| it.join("include"));
    folders.find(|it| it.join(name).is_file())
}

fn is_of_nvidia(name: &str) -> bool {
    STARTS.iter().any(|it| name.starts_with(it))
}

/// Returns true for a header of NVIDIA's C++ libraries. The host has some of them itself.
pub(super) fn may_be_of_libraries(name: &str) -> bool {
    name == CUB || OF_CPP.iter().any(|it| name.starts_with(it))
}

/// Returns true for a header of NVIDIA's C++ libraries that the host's own headers lack.
fn is_of_libraries(name: &str) -> bool {
    may_be_of_libraries(name) && headers().all(|it| it.0 != name)
}

fn package(name: &str) -> (&'static str, &'static str) {
    let found = PACKAGES.iter().find(|it| name.starts_with(it.0)).expect("the last matches all");
    (found.1, found.2)
}

/// The search for NVIDIA's headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vendor<'a> {
    /// Folders of Python packages, below which `nvidia` may be.
    pub(super) packages: &'a [PathBuf],
}

impl Vendor<'_> {
    /// Returns the folder that has a header: a toolkit's, or else a package's.
    pub(super) fn folder(self, name: &str) -> Option<PathBuf> {
        of_toolkits(name).or_else(|| self.of_packages(name))
    }

    fn of_packages(self, name: &str) -> Option<PathBuf> {
        let (component, _) = package(name);
        let mut folders = self.packages.iter().flat_map(|packages| {
            let packages = packages.join("nvidia");
            let entries = std::fs::read_dir(&packages).into_iter().flatten().flatten();
            // `cu13` and newer have the headers of all components.
            let is_version = |it: &PathBuf| {
                let name = it.file_name().and_then(|it| it.to_str()).unwrap_or_default();
                name.strip_prefix("cu")
                    .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
            };
            let mut versions: Vec<_> = entries.map(|it| it.path()).filter(is_version).collect();
            versions.sort_by(|a, b| b.cmp(a));
            let named = [packages.join(component), packages.join("cuda_nvcc")];
            let include = |it: PathBuf| it.join("include");
            // The C++ libraries have a folder of their own there.
            let versions = versions.into_iter().map(include).flat_map(|it| [it.join("cccl"), it]);
            named.into_iter().map(include).chain(versions)
        });
        folders.find(|folder| folder.join(name).is_file())
    }

    /// Returns the folder of NVIDIA's C++ libraries if texts include headers that only those have. A toolkit's folder
    /// with other headers in it would hide the host's own ones.
    pub(super) fn libraries_for_host(self, texts: &[String]) -> Option<PathBuf> {
        let mut names = texts.iter().flat_map(|text| includes(text)).map(|it| it.name);
        let name = names.find(|it| is_of_libraries(it))?;
        let mut folders = toolkits().into_iter().map(|it| it.join("include/cccl"));
        self.of_packages(name).or_else(|| folders.find(|it| it.join(name).is_file()))
    }

    /// Returns the headers that a text includes and that are NVIDIA's and installed.
    pub(super) fn included(self, text: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for include in includes(text).filter(|it| is_of_nvidia(it.name)) {
            if !names.contains(&include.name) && self.folder(include.name).is_some() {
                names.push(include.name);
            }
        }
        names
    }

    /// Returns the folders of these headers and of the headers that those include.
    pub(super) fn folders<'n>(self, names: impl Iterator<Item = &'n str>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let mut add = |folder: PathBuf| {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        };
        let mut has_package = false;
        let mut names = names.peekable();
        if names.peek().is_none() {
            return folders;
        }
        for name in names {
            has_package |= of_toolkits(name).is_none();
            self.folder(name).into_iter().for_each(&mut add);
        }
        for name in INCLUDED {
            // A package's headers go with other packages, not with a toolkit of another version.
            let package = has_package.then(|| self.of_packages(name)).flatten();
            package.or_else(|| self.folder(name)).into_iter().for_each(&mut add);
        }
        folders
    }
}

/// Returns a line for each of NVIDIA's headers that a compiler has not found: it names the header's package.
/// `compiler` is the compiler's name and version: since CUDA 13 the packages' names have no suffix.
///
/// ```
/// use cuda_c::dialects::{Dialect, advice};
///
/// let log = "kernel.cu(1): catastrophic error: cannot open source file \"mma.h\"";
/// assert!(advice(log, Dialect::Nvrtc, "NVRTC 12.9").contains("pip install nvidia-cuda-runtime-cu12"));
/// ```
pub fn advice(log: &str, dialect: Dialect, compiler: &str) -> String {
    let version = compiler.strip_prefix("NVRTC ").and_then(|it| it.split('.').next());
    let is_plain = version.and_then(|it| it.parse::<u32>().ok()).is_some_and(|it| it >= 13);
    let mut names: Vec<&str> = Vec::new();
    for line in log.lines() {
        let quoted = |before: &str, mark: char| {
            line.split_once(before).and_then(|it| it.1.split_once(mark)).map(|it| it.0)
        };
        let name = quoted("open source file \"", '"')
            .or_else(|| quoted("fatal error: '", '\'').filter(|_| line.ends_with("file not found")))
            .or_else(|| {
                let rest = line.split_once("fatal error: ")?.1;
                rest.split_once(": No such file").map(|it| it.0)
            });
        names.extend(name.filter(|it| !names.contains(it)));
    }
    let sentences = names.into_iter().filter_map(|name| {
        if dialect == Dialect::Host && is_of_nvidia(name) && !is_of_libraries(name) {
            return Some(format!("{name} is for NVIDIA's compiler; kernels on the host do without it"));
        }
        if name == OF_TOOLKITS {
            return Some(format!("{name} comes with a CUDA toolkit, whose folder CUDA_HOME names"));
        }
        let package = is_of_nvidia(name).then(|| package(name).1)?;
        let package = if is_plain { package.trim_end_matches("-cu12") } else { package };
        if dialect == Dialect::Host {
            return Some(format!("{name} comes with the package {package} (pip install {package})"));
        }
        let end = match dialect {
            Dialect::Hiprtc => "; it may be for NVIDIA's compiler alone",
            _ => "",
        };
        Some(format!(
            "{name} comes with the package {package} (pip install {package}), or with a CUDA toolkit, whose \
             folder CUDA_HOME names{end}"
        ))
    });
    sentences.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Dialect, advice};

    #[test]
    fn a_missing_header_is_named_with_its_package() {
        let log = "kernel.cu(1): catastrophic error: cannot open source file \"cuda/std/ratio\"";
        assert!(
            advice(log, Dialect::Nvrtc, "NVRTC 12.9").contains("pip install nvidia-cuda-cccl-cu12")
        );
        assert!(
            advice(log, Dialect::Nvrtc, "NVRTC 13.0").contains("pip install nvidia-cuda-cccl)")
        );
        assert!(advice(log, Dialect::Host, "c++").ends_with("(pip install nvidia-cuda-cccl-cu12)"));
        let of_toolkit = log.replace("cuda/std/ratio", "cuda_fp8.h");
        assert!(!advice(&of_toolkit, Dialect::Host, "c++").contains("pip"));
        let log = "kernel.cu:1:10: fatal error: 'cublas_v2.h' file not found";
        assert!(
            advice(log, Dialect::Hiprtc, "NVRTC 12.9")
                .ends_with("; it may be for NVIDIA's compiler alone")
        );
        let log = "kernel.cu:1:10: fatal error: nvfunctional: No such file or directory";
        assert!(
            advice(log, Dialect::Nvrtc, "NVRTC 12.9")
                .starts_with("nvfunctional comes with a CUDA toolkit")
        );
        let log = "kernel.cu:1:10: fatal error: own.h: No such file or directory";
        assert_eq!(advice(log, Dialect::Nvrtc, "NVRTC 12.9"), "");
    }
}

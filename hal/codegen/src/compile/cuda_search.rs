//! The places where CUDA's libraries and headers may be installed.

use hal::library::search_directories;
use std::ffi::{OsString, c_int};
use std::path::{Path, PathBuf};

/// Names the file that is the only candidate for cuBLAS.
pub const BLAS_VARIABLE: &str = "PYGPU_CUBLAS";
/// Names the file that is the only candidate for NVRTC.
pub const FILE_VARIABLE: &str = "PYGPU_NVRTC";
const PATH_VARIABLE: &str = "PYGPU_NVRTC_PATH";
const TOOLKIT_VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
const DEFAULT_TOOLKIT: &str = "/usr/local/cuda";

/// The latest major version that is tried even if the driver is older.
const LATEST_MAJOR: c_int = 13;

/// The names of this processor in a toolkit's `targets` folder.
const PROCESSORS: &[&str] = if cfg!(target_arch = "aarch64") {
    &["sbsa-linux", "aarch64-linux"]
} else {
    &["x86_64-linux"]
};

/// The folders and files that may contain CUDA's libraries.
#[derive(Debug)]
pub struct SearchPaths {
    /// The value of [`FILE_VARIABLE`].
    pub file: Option<OsString>,
    /// The value of [`BLAS_VARIABLE`].
    pub blas: Option<OsString>,
    /// Library folders or Python package folders that the user named.
    named: Vec<PathBuf>,
    toolkits: Vec<PathBuf>,
    /// Folders of Python packages.
    packages: Vec<PathBuf>,
}

impl SearchPaths {
    /// Returns the search paths of this process, from its environment.
    pub fn of_environment() -> SearchPaths {
        SearchPaths::new(hal::environment::trusted, search_directories())
    }

    /// Returns those that variables name, with folders of Python packages.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>, packages: Vec<PathBuf>) -> SearchPaths {
        let set = |name: &str| variable(name).filter(|it| !it.is_empty());
        let named = set(PATH_VARIABLE).map(|it| std::env::split_paths(&it).collect());
        let toolkits = TOOLKIT_VARIABLES.into_iter().filter_map(set).map(PathBuf::from);
        SearchPaths {
            file: set(FILE_VARIABLE),
            blas: set(BLAS_VARIABLE),
            named: named.unwrap_or_default(),
            toolkits: toolkits.chain([DEFAULT_TOOLKIT.into()]).collect(),
            packages,
        }
    }

    /// Returns the candidates for NVRTC, in the order to try.
    pub fn candidates(&self, driver_major: c_int) -> Vec<PathBuf> {
        self.files(&names(driver_major), "cuda_nvrtc", driver_major)
    }

    /// Returns the candidates for cuBLAS, in the order to try.
    pub fn blas_candidates(&self, driver_major: c_int) -> Vec<PathBuf> {
        let majors = (11..=LATEST_MAJOR.max(driver_major)).rev();
        let names: Vec<_> = majors.map(|it| (it, format!("libcublas.so.{it}"))).collect();
        self.files(&names, "cublas", driver_major)
    }

    /// Returns names for the loader and existing files. Later major versions than the driver's, as
    /// far as names tell, come last. `component` is the library's folder in NVIDIA's Python
    /// packages.
    fn files(
        &self,
        names: &[(c_int, String)],
        component: &str,
        driver_major: c_int,
    ) -> Vec<PathBuf> {
        let of_packages = |directory: &Path| of_packages(directory, component);
        let in_folders = |folders: Vec<PathBuf>| {
            let paths = folders.into_iter().flat_map(|folder| {
                names.iter().map(move |(major, name)| (*major, folder.join(name)))
            });
            paths.filter(|(_, path)| path.is_file()).collect::<Vec<_>>()
        };
        let named = self.named.iter().flat_map(|it| [vec![it.clone()], of_packages(it)].concat());
        let mut all = in_folders(named.collect());
        all.extend(names.iter().map(|(major, name)| (*major, PathBuf::from(name))));
        all.extend(in_folders(self.toolkits.iter().flat_map(|it| of_toolkit(it)).collect()));
        all.extend(in_folders(self.packages.iter().flat_map(|it| of_packages(it)).collect()));
        all.sort_by_key(|(major, _)| driver_major > 0 && *major > driver_major);
        let mut paths: Vec<PathBuf> = Vec::new();
        for (_, path) in all {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Returns advice on installing NVRTC, with the folders that were searched.
    pub fn advice(&self, driver_major: c_int) -> String {
        let package = match driver_major {
            1..12 => "nvidia-cuda-nvrtc-cu11",
            0 | 12 => "nvidia-cuda-nvrtc-cu12",
            _ => "nvidia-cuda-nvrtc",
        };
        let folders: Vec<_> = [&self.named, &self.toolkits, &self.packages]
            .into_iter()
            .flatten()
            .map(|it| it.display().to_string())
            .collect();
        format!(
            "also looked below {}; `pip install {package}` or install a CUDA toolkit, or name it \
             in CUDA_HOME, or a file in {FILE_VARIABLE}",
            folders.join(", ")
        )
    }

    /// Returns the folders to include CUDA's headers from: next to this NVRTC, or in a toolkit. Empty if
    /// no headers are found.
    pub fn headers(&self, nvrtc: &Path) -> Vec<PathBuf> {
        // The library may be a symbolic link into another installation.
        let real = nvrtc.canonicalize();
        let beside = [Some(nvrtc), real.as_deref().ok()].into_iter().flatten().flat_map(|file| {
            let root = file.parent().and_then(Path::parent);
            let folder = root.map(|root| root.join("include"));
            // The packages for CUDA 11 and 12 have one folder per component.
            let component = root.and_then(Path::parent).map(|it| it.join("cuda_runtime/include"));
            [folder, component]
        });
        let toolkits = self.toolkits.iter().map(|it| Some(it.join("include")));
        let mut folders = beside.chain(toolkits).flatten();
        let Some(folder) = folders.find(|it| it.join("cuda_fp16.h").is_file()) else {
            return Vec::new();
        };
        // Since CUDA 13 the C++ libraries are in a separate folder.
        let libraries = Some(folder.join("cccl")).filter(|it| it.is_dir());
        [Some(folder), libraries].into_iter().flatten().collect()
    }
}

/// Returns the library's file names with their major version, or 0 if the name does not include it.
/// All versions from 11.2 to 11.8 are called 11.2.
fn names(driver_major: c_int) -> Vec<(c_int, String)> {
    let majors = (12..=LATEST_MAJOR.max(driver_major)).rev();
    let mut names: Vec<_> = majors.map(|it| (it, format!("libnvrtc.so.{it}"))).collect();
    names.push((11, "libnvrtc.so.11.2".into()));
    names.push((0, "libnvrtc.so".into()));
    names
}

/// Returns a toolkit's library folders.
fn of_toolkit(root: &Path) -> Vec<PathBuf> {
    let targets = PROCESSORS.iter().map(|it| root.join("targets").join(it).join("lib"));
    [root.join("lib64"), root.join("lib")].into_iter().chain(targets).collect()
}

/// Returns the library folders of NVIDIA's Python packages: `nvidia/cuda_nvrtc/lib` up to CUDA 12,
/// `nvidia/cu13/lib` and so on since.
fn of_packages(directory: &Path, component: &str) -> Vec<PathBuf> {
    let root = directory.join("nvidia");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.file_name())
        .filter(|it| {
            let digits = it.to_str().and_then(|it| it.strip_prefix("cu")).unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
        })
        .map(|it| root.join(it).join("lib"))
        .collect();
    folders.sort_by(|a, b| b.cmp(a));
    folders.push(root.join(component).join("lib"));
    folders
}

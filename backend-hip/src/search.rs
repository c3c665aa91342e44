//! The places where ROCm's runtime, compiler and headers may be installed.

use hal::library::search_directories;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variables that name a file, which is then the only candidate.
pub(crate) const DRIVER_VARIABLE: &str = "PYGPU_HIP_LIBRARY";
pub(crate) const BLAS_VARIABLE: &str = "PYGPU_ROCBLAS";
pub(crate) const COMPILER_VARIABLE: &str = "PYGPU_HIPRTC";
const ROCM_VARIABLES: [&str; 2] = ["ROCM_PATH", "HIP_PATH"];
const DEFAULT_ROCM: &str = "/opt/rocm";

const DRIVER: &str = "libamdhip64.so";
const COMPILER: &str = "libhiprtc.so";
const BLAS: &str = "librocblas.so";
const COMGR: &str = "libamd_comgr.so";

/// Library folders in Python packages: AMD's own, and PyTorch's for ROCm.
const PACKAGES: [&str; 2] = ["_rocm_sdk_core/lib", "torch/lib"];

/// The folders and files that may contain ROCm's libraries.
#[derive(Debug)]
pub(crate) struct SearchPaths {
    pub(crate) driver: Option<OsString>,
    pub(crate) compiler: Option<OsString>,
    pub(crate) blas: Option<OsString>,
    /// HIP runtimes that this process has already loaded.
    loaded: Vec<PathBuf>,
    /// ROCm installations.
    roots: Vec<PathBuf>,
    /// Folders of Python packages.
    packages: Vec<PathBuf>,
}

impl SearchPaths {
    pub(crate) fn of_environment() -> SearchPaths {
        SearchPaths::new(hal::environment::trusted, search_directories(), loaded(&maps(), DRIVER))
    }

    fn new(
        variable: impl Fn(&str) -> Option<OsString>,
        packages: Vec<PathBuf>,
        loaded: Vec<PathBuf>,
    ) -> SearchPaths {
        let set = |name: &str| variable(name).filter(|it| !it.is_empty());
        let named = ROCM_VARIABLES.into_iter().filter_map(set).map(PathBuf::from);
        SearchPaths {
            driver: set(DRIVER_VARIABLE),
            compiler: set(COMPILER_VARIABLE),
            blas: set(BLAS_VARIABLE),
            loaded,
            roots: named.chain([DEFAULT_ROCM.into()]).collect(),
            packages,
        }
    }

    /// Returns the library folders.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let of_packages = |it: &PathBuf| PACKAGES.map(|package| it.join(package));
        let packages = self.packages.iter().flat_map(of_packages);
        self.roots.iter().map(|it| it.join("lib")).chain(packages)
    }

    /// Returns the candidates for the HIP runtime, in the order to try. A runtime that the process
    /// has already loaded comes first, because two runtimes cannot use each other's streams and
    /// memory.
    pub(crate) fn drivers(&self) -> Vec<PathBuf> {
        let found = self.folders().flat_map(|folder| there(&folder, &versions(DRIVER)));
        distinct(self.loaded.iter().cloned().chain(named(DRIVER)).chain(found))
    }

    /// Returns the candidates for the hipRTC of the runtime in the file `driver`. Files in the
    /// runtime's folder, and the runtime itself, come first, because they have the same version.
    pub(crate) fn compilers(&self, driver: Option<&Path>) -> Vec<PathBuf> {
        let beside = driver.into_iter().flat_map(|file| beside(file, &versions(COMPILER)));
        let found = self.folders().flat_map(|folder| there(&folder, &versions(COMPILER)));
        let itself = driver.map(Path::to_path_buf);
        distinct(beside.chain(itself).chain(named(COMPILER)).chain(found))
    }

    /// Returns the candidates for the rocBLAS of the runtime in the file `driver`, files in its
    /// folder first.
    pub(crate) fn blas_libraries(&self, driver: Option<&Path>) -> Vec<PathBuf> {
        let names = ["", ".5", ".4", ".3", ".0"].map(|it| format!("{BLAS}{it}"));
        let beside = driver.into_iter().flat_map(|file| beside(file, &names));
        let found = self.folders().flat_map(|folder| there(&folder, &names));
        distinct(beside.chain(names.iter().map(PathBuf::from)).chain(found))
    }

    /// Returns the candidates for the code object manager of the hipRTC in the file `compiler`.
    /// Only its own folder counts: another installation supports other targets.
    pub(crate) fn comgrs(compiler: &Path) -> Vec<PathBuf> {
        let versions = ["", ".3", ".2"].map(|it| format!("{COMGR}{it}"));
        distinct(beside(compiler, &versions).into_iter())
    }

    /// Returns advice on installing ROCm, with the folders that were searched.
    pub(crate) fn advice(&self, what: &str, variable: &str) -> String {
        let folders: Vec<_> = self.folders().map(|it| it.display().to_string()).collect();
        format!(
            "also looked in {}; {what} comes with ROCm (amd.com/rocm); where it is installed, \
             name its folder in ROCM_PATH or the file in {variable}",
            folders.join(", ")
        )
    }

    /// Returns the folder to include HIP's headers from: the installation that contains the
    /// library, else another one. `None` if no headers are found.
    pub(crate) fn headers(&self, library: &Path) -> Option<PathBuf> {
        let real = library.canonicalize();
        let files = [Some(library), real.as_deref().ok()].into_iter().flatten();
        // Debian has a library folder for each processor.
        let above = files.flat_map(|file| file.ancestors().skip(2).take(2));
        let mut folders =
            above.chain(self.roots.iter().map(PathBuf::as_path)).map(|it| it.join("include"));
        folders.find(|it| it.join("hip/hip_fp16.h").is_file())
    }
}

/// Returns a library's file names in all generations, the one without a version first.
fn versions(library: &str) -> [String; 4] {
    ["", ".7", ".6", ".5"].map(|it| format!("{library}{it}"))
}

fn named(library: &str) -> impl Iterator<Item = PathBuf> {
    versions(library).into_iter().map(PathBuf::from)
}

/// Returns the paths of the files in a folder that have one of these names.
fn there(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).filter(|it| it.is_file()).collect()
}

/// Returns the paths of the files with one of these names in the file's folder, or in the folder
/// that the file links to.
fn beside(file: &Path, names: &[String]) -> Vec<PathBuf> {
    let real = file.canonicalize();
    let files = [Some(file), real.as_deref().ok()].into_iter().flatten();
    files.filter_map(Path::parent).flat_map(|folder| there(folder, names)).collect()
}

fn distinct(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Returns the files that are mapped into this process; empty if the system does not report them.
fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// Returns a library's files in this list. In a line, the path begins at the first slash.
fn loaded(maps: &str, library: &str) -> Vec<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let ours = paths.filter(|path| {
        let name = path.file_name().and_then(|it| it.to_str());
        name.is_some_and(|it| it.starts_with(library)) && path.is_file()
    });
    distinct(ours.map(Path::to_path_buf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("pygpu-hip-{name}-{}", std::process::id());
            Folder(std::env::temp_dir().join(name))
        }

        fn file(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(&path, "").expect("a file");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn search_paths(rocm: &Path, packages: &[PathBuf], loaded: &[PathBuf]) -> SearchPaths {
        let variable = |name: &str| (name == "ROCM_PATH").then(|| rocm.as_os_str().to_owned());
        SearchPaths::new(variable, packages.to_vec(), loaded.to_vec())
    }

    #[test]
    fn a_loaded_runtime_comes_before_the_loaders_and_those_before_installed_ones() {
        let folder = Folder::new("drivers");
        let installed = folder.file("rocm/lib/libamdhip64.so.6");
        let packaged = folder.file("site/_rocm_sdk_core/lib/libamdhip64.so.7");
        let torch = folder.file("site/torch/lib/libamdhip64.so");
        let loaded = folder.file("other/libamdhip64.so.6");
        let paths = search_paths(
            &folder.0.join("rocm"),
            &[folder.0.join("site")],
            std::slice::from_ref(&loaded),
        );
        let names = named(DRIVER).collect::<Vec<_>>();
        let expected = [vec![loaded], names, vec![installed, packaged, torch]].concat();
        assert_eq!(paths.drivers(), expected);
        let advice = paths.advice("it", DRIVER_VARIABLE);
        for part in ["rocm/lib", "/opt/rocm/lib", "site/_rocm_sdk_core/lib", "PYGPU_HIP_LIBRARY"] {
            assert!(advice.contains(part), "{advice}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_compiler_is_that_of_the_runtime() {
        let folder = Folder::new("compilers");
        let real = folder.file("rocm/lib/libamdhip64.so.6.2.1");
        let beside = folder.file("rocm/lib/libhiprtc.so.6");
        let other = folder.file("other/lib/libhiprtc.so.7");
        let link = folder.file("link/libamdhip64.so.6");
        fs::remove_file(&link).expect("the file");
        std::os::unix::fs::symlink(real, &link).expect("a link");
        let paths = search_paths(&folder.0.join("other"), &[], &[]);
        let names = named(COMPILER).collect::<Vec<_>>();
        let expected = [vec![beside.canonicalize().expect("a path"), link.clone()], names.clone()];
        assert_eq!(paths.compilers(Some(&link)), [expected.concat(), vec![other.clone()]].concat());
        assert_eq!(paths.compilers(None), [names, vec![other]].concat());
        let comgr = folder.file("rocm/lib/libamd_comgr.so.2");
        assert_eq!(SearchPaths::comgrs(&beside)[0], comgr);
    }

    #[test]
    fn headers_are_those_of_the_library_else_those_of_an_installation() {
        let folder = Folder::new("headers");
        let rocm = folder.0.join("rocm");
        let paths = search_paths(&rocm, &[], &[]);
        let library = folder.file("usr/lib/x86_64-linux-gnu/libamdhip64.so.5");
        folder.file("rocm/include/hip/hip_fp16.h");
        assert_eq!(paths.headers(&library), Some(rocm.join("include")));
        folder.file("usr/include/hip/hip_fp16.h");
        assert_eq!(paths.headers(&library), Some(folder.0.join("usr/include")));
        assert_eq!(paths.headers(Path::new("libamdhip64.so")), Some(rocm.join("include")));
    }

    #[test]
    fn loaded_files_are_read_from_the_list_of_mappings() {
        let folder = Folder::new("maps");
        let file = folder.file("with space/libamdhip64.so.6");
        let path = file.display();
        let maps = format!(
            "7f00-7f10 r-xp 00000000 08:01 42    {path}\n7f10-7f20 r--p 1 08:01 42    {path}\n\
             7f20-7f30 r--p 1 08:01 43    /gone/libamdhip64.so.5\n7f30-7f40 rw-p 0 00:00 0\n\
             7f40-7f50 r--p 1 08:01 44    {}/libamdhip64_other.txt\n",
            folder.0.display()
        );
        assert_eq!(loaded(&maps, DRIVER), [file]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_c_library_is_among_what_is_loaded() {
        assert_eq!(loaded(&maps(), "libc.so").len(), 1);
    }
}

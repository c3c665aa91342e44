//! The system's C++ compiler.

use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::symbols::Symbols;
use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

/// A C++ compiler that runs.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    /// The program and its leading arguments.
    words: Vec<String>,
    /// The compiler's description of itself, and the processor of the machine.
    pub(crate) identity: String,
    pub(crate) is_clang: bool,
    /// True for the compiler of the package `ziglang`, a clang with its own libraries.
    pub(crate) is_zig: bool,
}

/// The programs to try if the environment does not name one.
const CANDIDATES: [&str; 3] = ["c++", "g++", "clang++"];

impl Toolchain {
    /// Returns the compiler named by `CXX`, or else the first of c++, g++ and clang++ that runs, or else the
    /// compiler of the package `ziglang` in one of the folders. The result is cached for each value of `CXX`.
    ///
    /// # Errors
    /// `NoCompiler` with a list of the programs that were tried.
    pub(crate) fn find(packages: &[PathBuf]) -> Result<Toolchain> {
        type Found = Mutex<Option<(Option<String>, Toolchain)>>;
        static FOUND: OfProcess<Found> = OfProcess::new();
        let chosen = match is_trusted() {
            true => std::env::var("CXX").ok().filter(|it| !it.trim().is_empty()),
            false => Some("/usr/bin/c++".to_owned()),
        };
        let mut found = FOUND.get().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((of, toolchain)) = &*found
            && *of == chosen
        {
            return Ok(toolchain.clone());
        }
        let toolchain = search(chosen.as_deref(), packages)?;
        *found = Some((chosen, toolchain.clone()));
        Ok(toolchain)
    }

    /// Runs the compiler with a text as its standard input, in a folder or in the current one.
    ///
    /// # Errors
    /// `System` if it does not run.
    pub(crate) fn run(
        &self,
        arguments: &[&str],
        input: &str,
        folder: Option<&Path>,
    ) -> Result<Output> {
        let failed = |error: std::io::Error| {
            Error::System(format!("the compiler {} does not run: {error}", self.words.join(" ")))
        };
        let mut command = self.command();
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            let writer = std::thread::Builder::new().name("pygpu compile".to_owned());
            let written = writer.spawn_scoped(scope, move || {
                if let Some(mut stdin) = stdin {
                    // A compiler that stops reading reports the reason.
                    let _ = stdin.write_all(input.as_bytes());
                }
            });
            if let Err(error) = written {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
            child.wait_with_output()
        })
        .map_err(failed)
    }

    /// The program with its options, and the first line that it prints about its version.
    pub(crate) fn name(&self) -> String {
        let version = self.identity.lines().nth(1).unwrap_or_default();
        format!("{}: {version}", self.words.join(" "))
    }

    /// Returns the compiler's major version, if its first line contains it.
    pub(crate) fn major_version(&self) -> u32 {
        let first = self.identity.lines().nth(1).unwrap_or_default();
        let versions = first.split_whitespace().filter(|word| word.contains('.'));
        versions.filter_map(|word| word.split('.').next()?.parse().ok()).next().unwrap_or(0)
    }

    /// Returns true if `CXX` includes an optimisation level.
    pub(crate) fn has_level(&self) -> bool {
        self.words.iter().skip(1).any(|word| word.starts_with("-O"))
    }

    /// Returns the compiler's name for preprocessed C++.
    pub(crate) fn preprocessed_language(&self) -> &'static str {
        // Zig does not have one. Preprocessing the text again does not change it.
        if self.is_zig { "c++" } else { "c++-cpp-output" }
    }

    /// Returns the option for the folder of the language's headers. This folder comes after the program's
    /// folders and before the system's.
    pub(crate) fn language_folders(&self) -> &'static str {
        // Zig searches its own folders of system headers first.
        if self.is_zig { "-I" } else { "-isystem" }
    }

    /// Returns the linker options for libraries, in GCC's syntax. Zig would first build the C++ libraries
    /// from source, which takes minutes, and kernels do not need them. Its counterpart of GCC's library is
    /// linked only if it is needed.
    pub(crate) fn libraries(&self, symbols: &Symbols) -> &'static [&'static str] {
        let of_gcc = symbols.libraries();
        match (self.is_zig && of_gcc.len() > 1, symbols.may_call_compiler()) {
            (true, false) => &["-Wl,-z,defs", "-nostdlib", "-lm", "-lc"],
            (true, true) => &["-Wl,-z,defs", "-nostdlib", "-lm", "-lc", "-rtlib=compiler-rt"],
            (false, _) => of_gcc,
        }
    }

    /// Returns the option that allows fused multiply-adds within an expression. Functions of the language may
    /// rely on the separate operations, which clang's `fast` would also fuse.
    pub(crate) fn contraction(&self) -> &'static str {
        if self.is_clang { "-ffp-contract=on" } else { "-ffp-contract=fast" }
    }

    fn command(&self) -> Command {
        command(&self.words)
    }
}

/// Returns false in a process with more privileges than the user that started it, whose environment it must
/// not trust.
fn is_trusted() -> bool {
    // SAFETY: the call does not have any preconditions.
    #[cfg(target_os = "linux")]
    return unsafe { libc::getauxval(libc::AT_SECURE) } == 0;
    #[cfg(not(target_os = "linux"))]
    true
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    // Messages are in English. Libraries preloaded into the program are not preloaded into the compiler.
    command.args(&words[1..]).env("LC_ALL", "C").env_remove("LD_PRELOAD");
    // These folders precede the folders of the language's headers.
    if let Some(folders) = env::var_os("CPATH")
        && env::split_paths(&folders).any(|folder| is_toolkit(&folder))
    {
        let left: Vec<_> =
            env::split_paths(&folders).filter(|folder| !is_toolkit(folder)).collect();
        match env::join_paths(&left) {
            Ok(folders) if !left.is_empty() => command.env("CPATH", folders),
            _ => command.env_remove("CPATH"),
        };
    }
    command
}

/// Returns true if a folder contains the headers of a CUDA toolkit: these are for NVIDIA's compilers. The
/// language's own headers have the same names.
pub(crate) fn is_toolkit(folder: &Path) -> bool {
    folder.join("cuda_runtime_api.h").is_file()
}

fn search(chosen: Option<&str>, packages: &[PathBuf]) -> Result<Toolchain> {
    let named = chosen.map_or(CANDIDATES.to_vec(), |it| vec![it]);
    let named = named.iter().map(|it| it.split_whitespace().map(str::to_owned).collect());
    let of_packages = packages.iter().map(|folder| folder.join("ziglang").join("zig"));
    let of_packages = of_packages
        .filter(|program| chosen.is_none() && program.is_file())
        .map(|program| vec![program.to_string_lossy().into_owned(), "c++".to_owned()]);
    for words in named.chain(of_packages) {
        let asked = ask(&words).map_err(|error| {
            Error::System(format!(
                "whether the compiler {} runs is unknown: {error}",
                words.join(" ")
            ))
        })?;
        if let Some(toolchain) = asked {
            return Ok(toolchain);
        }
    }
    let looked = match chosen {
        Some(chosen) => format!("CXX names {chosen:?}, which does not run"),
        None => format!("none of {} runs, and CXX names none", CANDIDATES.join(", ")),
    };
    Err(Error::NoCompiler(format!(
        "kernels in CUDA C need a C++ compiler on the host: {looked}; install one (the package g++ or \
         clang of the system, or `pip install ziglang`) or set CXX to its path"
    )))
}

/// Returns the compiler that is started with these words, if it runs.
///
/// # Errors
/// The error that prevents this process from starting any program.
fn ask(words: &[String]) -> std::io::Result<Option<Toolchain>> {
    if words.is_empty() {
        return Ok(None);
    }
    let output = match command(words).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => output,
        Err(error) if is_shortage(&error) => return Err(error),
        Ok(_) | Err(_) => return Ok(None),
    };
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_clang = version.contains("clang");
    let is_zig = is_clang && is_of_zig(words, &version);
    let identity = format!("{}\n{version}{}", words.join(" "), processor());
    Ok(Some(Toolchain { words: words.to_vec(), identity, is_clang, is_zig }))
}

/// Returns true for zig's clang, judging by its command, such as `python -m ziglang c++`, or by its version
/// text.
fn is_of_zig(words: &[String], version: &str) -> bool {
    let is_named = |word: &String| Path::new(word).file_stem().is_some_and(|name| name == "zig");
    words.iter().any(|word| is_named(word) || word == "ziglang") || version.contains("ziglang")
}

/// Returns true if the system lacks files, processes or memory, independently of the program.
fn is_shortage(error: &std::io::Error) -> bool {
    let shortages = [libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| shortages.contains(&code))
}

/// Returns the properties of the processor that native code depends on.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of_first = text.split("\n\n").next().unwrap_or_default();
    let is_part = |line: &&str| {
        ["flags", "Features", "model", "cpu family", "CPU "].iter().any(|it| line.starts_with(it))
    };
    let mut lines: Vec<&str> = of_first.lines().filter(is_part).collect();
    lines.push(std::env::consts::ARCH);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{is_of_zig, search};

    #[test]
    fn the_compiler_of_zig_is_known_however_it_is_started() {
        let clang = "clang version 18.1.3\nTarget: x86_64-pc-linux-gnu\nInstalledDir: /usr/bin\n";
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in ["/opt/zig/zig c++", "python3 -m ziglang c++", "env zig c++"] {
            assert!(is_of_zig(&words(line), clang), "{line}");
        }
        assert!(!is_of_zig(&words("clang++"), clang));
        let of_zig = "clang version 18.1.6 (https://github.com/ziglang/zig-bootstrap 98bc)\n";
        assert!(is_of_zig(&words("/usr/local/bin/zcc"), of_zig));
    }

    #[test]
    fn what_was_looked_for_is_named() {
        let error = search(Some("/no/such/compiler -x"), &[]).expect_err("none").to_string();
        assert!(error.contains("CXX names \"/no/such/compiler -x\""), "{error}");
    }
}

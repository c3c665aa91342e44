//! Translates options of nvcc for run-time compilers, and finds the macros that they define.

use super::macros::{Dialect, is_asked_for, is_fast};
use std::path::{Path, PathBuf};

/// Options with a value that concern the host's compiler or nvcc's own work: the device's code is the same without
/// them. `-e` names the kernels to compile, but all are compiled; `-gencode` names devices, but the code is for the
/// current one.
const WITH_VALUE: &str = "
    -Xcompiler --compiler-options -ccbin --compiler-bindir -Xlinker -default-stream --default-stream
    -Xcudafe -t --threads -e --entries -O --optimize -m --machine -Werror --Werror -cudart --cudart
    -time --time -keep-dir --keep-dir -Xnvlink --nvlink-options -Xarchive --archive-options
    -Xfatbin --fatbin-options -L --library-path -l --library -compress-mode --compress-mode
    -split-compile --split-compile -MF --dependency-output -MT
    -gencode --generate-code -code --gpu-code -x --x -odir
";

/// Options without a value that make no difference to code for a device.
const ALONE: &str = "
    -m64 -O0 -O1 -O2 -O3 -O4 -pg --profile -save-temps --save-temps -clean --clean-targets -g
    --debug -v --verbose -allow-unsupported-compiler --allow-unsupported-compiler
    -forward-unknown-to-host-compiler --forward-unknown-to-host-compiler -Wno-deprecated-gpu-targets
    -src-in-ptx --source-in-ptx -Wno-deprecated-declarations -Wreorder -Wdefault-stream-launch
    -Wmissing-launch-bounds -Wext-lambda-captures-this --keep -keep -cubin --cubin -shared -c
    -res-usage --resource-usage -no-compress --no-compress -ewp -MD -MMD -MP
    -expt-relaxed-constexpr --expt-relaxed-constexpr -extended-lambda --extended-lambda
    -expt-extended-lambda --expt-extended-lambda
    -arch=native -arch=all -arch=all-major
    --gpu-architecture=native --gpu-architecture=all --gpu-architecture=all-major
";

/// Options whose value looks like an option of the host.
const WITH_OPTIONS: &[&str] = &["-Xptxas", "--ptxas-options"];

/// Options whose value run-time compilers accept only as a part of the option.
const JOINED: &[(&str, &str)] =
    &[("-std", "-std="), ("--std", "-std="), ("-isystem", "-I"), ("--system-include", "-I")];

const FOLDERS: &[&str] = &["-I", "--include-path", "-isystem", "--system-include"];

fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|it| it == name)
}

/// True for a library or a folder of libraries, which only a linker reads, and for a number of threads.
fn is_library(option: &str) -> bool {
    let name = option.strip_prefix("-l");
    let threads = option.strip_prefix("-t");
    option.starts_with("-L")
        || name.is_some_and(|it| !matches!(it, "ineinfo" | "ib" | "ink"))
        || threads.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns nvcc's options without those that make no difference to code for a device, in the form of run-time compilers.
pub(super) fn for_devices(options: &[&str]) -> Vec<String> {
    let mut left: Vec<String> = Vec::new();
    let mut rest = options.iter().copied();
    while let Some(option) = rest.next() {
        let (name, value) = option.split_once('=').map_or((option, None), |it| (it.0, Some(it.1)));
        let joined = JOINED.iter().find(|it| it.0 == name);
        if is_in(WITH_VALUE, name) {
            if value.is_none() {
                rest.next();
            }
        } else if WITH_OPTIONS.contains(&option) {
            left.push(option.into());
            left.extend(rest.next().filter(|it| !it.is_empty()).map(Into::into));
        } else if let Some((_, joined)) = joined {
            left.push(format!("{joined}{}", value.or_else(|| rest.next()).unwrap_or("")));
        } else if !option.is_empty() && !is_in(ALONE, option) && !is_library(option) {
            left.push(option.into());
        }
    }
    left
}

/// Returns the folders that options name, except the system's and a toolkit's.
pub(super) fn folders(options: &[String]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let Some(value) = FOLDERS.iter().find_map(|it| option.strip_prefix(it)) else { continue };
        let value = value.strip_prefix('=').unwrap_or(value);
        let folder = if value.is_empty() { rest.next().map_or("", String::as_str) } else { value };
        let folder = Path::new(folder);
        if !["stdio.h", "cuda_runtime.h"].iter().any(|it| folder.join(it).is_file()) {
            folders.push(folder.to_owned());
        }
    }
    folders
}

/// Options without the macros that headers would take for their own, and the lines that define these macros instead.
#[derive(Debug, Default)]
pub(super) struct Macros {
    pub(super) options: Vec<String>,
    /// Lines in front of everything: macros by which programs recognise AMD's compiler.
    pub(super) first: String,
    /// Lines in front of the program.
    pub(super) own: String,
}

/// Splits options. If an option allows other roundings, a macro says so to the functions with a stated
/// rounding.
pub(super) fn macros(options: &[String], dialect: Dialect) -> Macros {
    let is_amd = dialect == Dialect::Hiprtc;
    let mut all = Macros::default();
    if is_amd && options.iter().any(|it| is_fast(it)) {
        all.first += "#define PYGPU_FAST_MATH\n";
    }
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let is_split = matches!(option.as_str(), "-D" | "--define-macro");
        let split = is_split.then(|| rest.next().map_or("", String::as_str));
        let definition =
            split.or_else(|| option.strip_prefix("-D").or(option.strip_prefix("--define-macro=")));
        let undefined = option.strip_prefix("-U").or(option.strip_prefix("--undefine-macro="));
        if let Some(name) = undefined {
            let name = match name.is_empty() {
                true => rest.clone().next().map_or("", String::as_str),
                false => name,
            };
            for lines in [&mut all.first, &mut all.own] {
                let is_other = |line: &&str| {
                    let defined =
                        line.strip_prefix("#define ").and_then(|it| it.strip_prefix(name));
                    !defined.is_some_and(|it| it.starts_with([' ', '(']))
                };
                *lines = lines.split_inclusive('\n').filter(is_other).collect();
            }
        }
        let macro_ = definition.and_then(read);
        let name = macro_.map_or("", |it| it.name);
        let is_asked = is_amd && is_asked_for(name);
        match macro_ {
            Some(it) if is_asked || is_plain(name) => {
                let lines = if is_asked { &mut all.first } else { &mut all.own };
                *lines += &format!("#define {name}{} {}\n", it.parameters, it.value);
            }
            _ => all.options.extend(std::iter::once(option.as_str()).chain(split).map(Into::into)),
        }
    }
    all
}

#[derive(Clone, Copy)]
struct Macro<'a> {
    name: &'a str,
    parameters: &'a str,
    value: &'a str,
}

fn read(definition: &str) -> Option<Macro<'_>> {
    let definition = definition.trim_start();
    let is_name = |it: char| it == '_' || it.is_alphanumeric();
    let length = definition.find(|it| !is_name(it)).unwrap_or(definition.len());
    let (name, rest) = definition.split_at(length);
    let end = if rest.starts_with('(') { rest.find(')').map(|it| it + 1)? } else { 0 };
    let (parameters, rest) = rest.split_at(end);
    let value = if rest.is_empty() { "1" } else { rest.strip_prefix('=')? };
    (!name.is_empty()).then_some(Macro { name, parameters, value })
}

/// Returns the definitions of macros in options as lines of a text.
pub(super) fn definitions(options: &[String]) -> String {
    let mut lines = String::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let value = match option.as_str() {
            "-D" | "--define-macro" => rest.next().map(String::as_str),
            _ => option.strip_prefix("-D").or(option.strip_prefix("--define-macro=")),
        };
        if let Some(it) = value.and_then(read) {
            lines += &format!("#define {}{} {}\n", it.name, it.parameters, it.value);
        }
    }
    lines
}

/// True for a name of the kind that headers give to parameters and types.
fn is_plain(name: &str) -> bool {
    (1..=2).contains(&name.chars().count()) || name.starts_with(|it: char| it.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{Dialect, for_devices, macros};

    #[test]
    fn options_of_the_host_make_no_difference() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["-O3", "-Xcompiler", "-fPIC", "-lineinfo"], &["-lineinfo"]),
            (&["-Xcompiler=-fPIC", "-lm", "-L/usr/lib", "-t4", "", "-L", "/usr"], &[]),
            (&["-Xfatbin", "-compress-all", "-no-compress", "-ewp", "-l", "m"], &[]),
            (&["-std", "c++17", "--std=c++14"], &["-std=c++17", "-std=c++14"]),
            (&["-isystem", "a", "-I", "b"], &["-Ia", "-I", "b"]),
            (&["-Xptxas", "-v", "-arch=native", "-arch=sm_90"], &["-Xptxas", "-v", "-arch=sm_90"]),
            (
                &["-gencode", "arch=compute_80,code=sm_80", "-code", "sm_60", "-x", "cu", "-DX"],
                &["-DX"],
            ),
            (
                &[
                    "-v",
                    "-Xptxas",
                    "-v",
                    "-Xcompiler",
                    "-v",
                    "--ptxas-options",
                    "-O3",
                    "-O3",
                    "-Xptxas",
                ],
                &["-Xptxas", "-v", "--ptxas-options", "-O3", "-Xptxas"],
            ),
            (&["-lcublas", "-lineinfo", "-L.", "-isystem", "there"], &["-lineinfo", "-Ithere"]),
        ];
        for (options, expected) in rows {
            assert_eq!(for_devices(options), *expected, "{options:?}");
        }
    }

    #[test]
    fn macros_that_headers_would_take_for_theirs_are_the_programs() {
        let options = |list: &[&str]| list.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let given = options(&[
            "-DT=float",
            "-DLONG=1",
            "-D",
            "n=7",
            "-Df(a)=a",
            "-DU",
            "--define-macro=y=out",
        ]);
        let found = macros(&given, Dialect::Nvrtc);
        assert_eq!(found.options, ["-DLONG=1"]);
        assert_eq!(
            found.own,
            "#define T float\n#define n 7\n#define f(a) a\n#define U 1\n#define y out\n"
        );
        let undefined = macros(&options(&["-Dx=3", "-Dy=4", "-Ux"]), Dialect::Nvrtc);
        assert_eq!(
            (undefined.own.as_str(), &undefined.options[..]),
            ("#define y 4\n", &options(&["-Ux"])[..])
        );
        assert_eq!(
            super::definitions(&given),
            "#define T float\n#define LONG 1\n#define n 7\n#define f(a) a\n#define U 1\n#define y out\n"
        );
        let asked = macros(&options(&["-D__CUDA_ARCH__=800"]), Dialect::Hiprtc);
        assert_eq!((asked.first.as_str(), asked.own.as_str()), ("#define __CUDA_ARCH__ 800\n", ""));
    }

    #[test]
    fn divisions_know_of_options_that_allow_other_roundings() {
        for option in ["-use_fast_math", "--use_fast_math", "-ffast-math"] {
            let given = ["-O3".to_owned(), option.to_owned()];
            assert_eq!(macros(&given, Dialect::Hiprtc).first, "#define PYGPU_FAST_MATH\n");
            assert_eq!(macros(&given[..1], Dialect::Hiprtc).first, "");
            assert_eq!(macros(&given, Dialect::Nvrtc).first, "");
        }
    }
}

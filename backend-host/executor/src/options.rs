//! Translates options of `nvcc`, NVRTC and hipRTC to options of a C++ compiler.

use crate::error::{Error, Result};
use crate::toolchain::is_toolkit;
use std::fmt::Write as _;
use std::path::Path;

/// The default compute capability times 100, the value of `__CUDA_ARCH__`. It is the first with every warp
/// function of this executor.
pub const DEFAULT_ARCHITECTURE: u32 = 800;

/// The options of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Folders for the preprocessor. Folders of CUDA toolkits come last, after the language's own headers.
    pub(crate) preprocessor: Vec<String>,
    /// Macros, as lines of text. They come after the language's headers, because a program's macros, such as
    /// `-DN=3`, must not replace names of the headers.
    pub(crate) macros: String,
    /// Files that are included before the program, as lines of text.
    pub(crate) included: String,
    /// Options for code generation.
    pub(crate) code: Vec<String>,
    /// `-std=`; the ABI needs at least C++17.
    pub(crate) standard: Option<String>,
    pub(crate) architecture: Option<u32>,
    pub(crate) debug: bool,
    pub(crate) no_warnings: bool,
}

/// Options with a value for the preprocessor, and the compiler's names for them.
const PREPROCESSOR: [(&str, &str); 9] = [
    ("-idirafter", "-idirafter"),
    ("--include-path", "-I"),
    ("--define-macro", "-D"),
    ("--undefine-macro", "-U"),
    ("--pre-include", "-include"),
    ("-include", "-include"),
    ("-I", "-I"),
    ("-D", "-D"),
    ("-U", "-U"),
];

/// Options with a value that are meaningless for a processor: registers, phases of other compilers, and
/// output formats.
const IGNORED_WITH_VALUE: &str = "
    -maxrregcount --maxrregcount -Xptxas --ptxas-options -Xcompiler --compiler-options
    -Xlinker -ccbin --compiler-bindir -code --gpu-code -gencode --generate-code -rdc
    --relocatable-device-code -dopt --dopt -diag-suppress --diag-suppress --split-compile
    -mllvm -t
";

/// Options without a value that are meaningless here. nvcc's own front end rejects some programs without the options of
/// `constexpr` and lambdas.
const IGNORED: &str = "
    -Wno-c++11-narrowing -m64 --machine=64 -O0 -O1 -O2 -O3 -Ofast -dc -dw -dlto --device-c
    -default-device --device-as-default-execution-space -restrict --restrict
    -extra-device-vectorization --extra-device-vectorization -lineinfo --generate-line-info
    -res-usage --resource-usage -err-no --display-error-number -no-err-no -cubin -ptx --keep
    -v --verbose -fgpu-rdc -expt-relaxed-constexpr --expt-relaxed-constexpr
    -expt-extended-lambda --expt-extended-lambda -extended-lambda --extended-lambda
    -src-in-ptx --source-in-ptx
";

/// Splits `--name=value`, or `-Ivalue` with a one-letter name.
fn split(option: &str) -> (&str, Option<&str>) {
    if let Some((name, value)) = option.split_once('=')
        && !matches!(option.get(..2), Some("-I" | "-D" | "-U"))
    {
        return (name, Some(value));
    }
    if let Some(value) = option.strip_prefix("-idirafter").filter(|value| !value.is_empty()) {
        return ("-idirafter", Some(value));
    }
    match option.get(..2) {
        Some(name @ ("-I" | "-D" | "-U")) if option.len() > 2 => (name, Some(&option[2..])),
        _ => (option, None),
    }
}

impl Options {
    /// Reads the options of a program, in any of the spellings.
    ///
    /// # Errors
    /// `Refused` with the name of the option.
    pub(crate) fn read(options: &[&str]) -> Result<Options> {
        let mut read = Options::default();
        let mut toolkits = Vec::new();
        let mut rest = options.iter().copied().filter(|option| !option.is_empty());
        while let Some(option) = rest.next() {
            let (name, value) = split(option);
            let mut value_of = |what: &str| {
                let value = value.map(str::to_owned).or_else(|| rest.next().map(str::to_owned));
                value.ok_or_else(|| Error::Refused(format!("option {option} needs {what}\n")))
            };
            if let Some((_, own)) = PREPROCESSOR.iter().find(|(it, _)| *it == name) {
                let value = value_of("a value")?;
                match *own == "-I" && is_toolkit(Path::new(&value)) {
                    true => toolkits.push(format!("-idirafter{value}")),
                    false => read.preprocess(own, &value),
                }
                continue;
            }
            let is_in = |list: &str, it| list.split_ascii_whitespace().any(|known| known == it);
            if is_in(IGNORED, option) {
                continue;
            }
            if is_in(IGNORED_WITH_VALUE, name) {
                value_of("a value")?;
                continue;
            }
            match name {
                "-std" | "--std" => {
                    let standard = value_of("a standard of C++")?;
                    read.standard = Some(at_least_17(option, &standard)?);
                }
                "-arch" | "--gpu-architecture" | "--offload-arch" => {
                    let value = value_of("an architecture")?;
                    read.architecture = architecture(&value).or(read.architecture);
                }
                "-use_fast_math" | "--use_fast_math" | "-ffast-math" => read.fast_math(),
                "-ftz" | "--ftz" | "-prec-sqrt" | "--prec-sqrt" => {
                    // Denormal numbers are always kept, and square roots are always exact.
                    value_of("true or false")?;
                }
                "-prec-div" | "--prec-div" => {
                    if !switch(option, &value_of("true or false")?)? {
                        read.code.push("-freciprocal-math".to_owned());
                    }
                }
                "-fmad" | "--fmad" => {
                    // Fused multiply-adds are the default.
                    if !switch(option, &value_of("true or false")?)? {
                        read.code.push("-ffp-contract=off".to_owned());
                    }
                }
                "-ffp-contract" => {
                    let value = value_of("a value")?;
                    read.code.push(format!("-ffp-contract={value}"));
                }
                "-G" | "--device-debug" | "-g" | "--debug" => read.debug = true,
                "-w" | "--disable-warnings" => read.no_warnings = true,
                _ if is_warning(option) => read.code.push(option.to_owned()),
                _ => {
                    return Err(Error::Refused(format!(
                        "option {option:?} is unknown to the host's compiler of CUDA C; allowed are \
                         -I, -D, -U, -include, -std, -arch, -use_fast_math, -fmad, -G, -lineinfo, -w, \
                         -W... and options that mean nothing for a processor\n"
                    )));
                }
            }
        }
        read.preprocessor.append(&mut toolkits);
        Ok(read)
    }

    fn preprocess(&mut self, option: &str, value: &str) {
        // A macro ends at the end of the line, as on a compiler's command line.
        let line = value.lines().next().unwrap_or_default();
        let _ = match option {
            "-D" => {
                let (name, value) = line.split_once('=').unwrap_or((line, "1"));
                // It takes the place of a macro that the language predefines.
                let plain = name.split('(').next().unwrap_or(name);
                writeln!(self.macros, "#undef {plain}\n#define {name} {value}")
            }
            "-U" => writeln!(self.macros, "#undef {line}"),
            "-include" => writeln!(self.included, "#include \"{line}\""),
            _ => {
                self.preprocessor.push(format!("{option}{value}"));
                Ok(())
            }
        };
        if line.split('=').next() == Some("NDEBUG") && matches!(option, "-D" | "-U") {
            // `assert` is already defined. Including the header again redefines it.
            self.macros.push_str("#include <assert.h>\n");
        }
    }

    fn fast_math(&mut self) {
        self.preprocess("-D", "__USE_FAST_MATH__=1");
        self.code.push("-freciprocal-math".to_owned());
    }
}

/// Returns true for a warning option, but not for one that passes options on (`-Wl,`, `-Wa,`, `-Wp,`).
fn is_warning(option: &str) -> bool {
    option.starts_with("-W") && !option.contains(',')
}

fn switch(option: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err(Error::Refused(format!("option {option}: the value is true or false\n"))),
    }
}

fn at_least_17(option: &str, standard: &str) -> Result<String> {
    let number = standard.trim_start_matches("gnu++").trim_start_matches("c++");
    Ok(match number {
        "98" | "03" | "11" | "14" | "1y" | "17" | "1z" => "c++17".to_owned(),
        "20" | "2a" | "23" | "2b" | "26" | "2c" => standard.to_owned(),
        _ => {
            return Err(Error::Refused(format!(
                "option {option}: the standard is c++11, c++14, c++17, c++20 or later\n"
            )));
        }
    })
}

/// Parses `sm_90a` or `compute_75` to 900 or 750. Returns `None` for other names.
fn architecture(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
    digits
        .trim_end_matches(|it: char| it.is_ascii_alphabetic())
        .parse::<u32>()
        .ok()?
        .checked_mul(10)
}

#[cfg(test)]
mod tests {
    use super::{Options, split};

    #[test]
    fn options_are_translated() {
        let given = "-I/a=b -I c --include-path=d -DX=1 --define-macro Y -UZ -std=c++14 -arch=sm_90a -use_fast_math \
                     --fmad=false -G -lineinfo -Xptxas -v -w -maxrregcount=32  -Wall";
        let read = Options::read(&given.split(' ').collect::<Vec<_>>()).expect("options");
        assert_eq!(read.preprocessor, ["-I/a=b", "-Ic", "-Id"]);
        assert_eq!(
            read.macros,
            "#undef X\n#define X 1\n#undef Y\n#define Y 1\n#undef Z\n\
             #undef __USE_FAST_MATH__\n#define __USE_FAST_MATH__ 1\n"
        );
        assert_eq!(read.code, ["-freciprocal-math", "-ffp-contract=off", "-Wall"]);
        assert_eq!((read.standard.as_deref(), read.architecture), (Some("c++17"), Some(900)));
        assert!(read.debug && read.no_warnings);
        assert_eq!(split("-I"), ("-I", None));
        let newer = Options::read(&["--std", "c++20"]).expect("options");
        assert_eq!(newer.standard.as_deref(), Some("c++20"));
    }

    #[test]
    fn others_are_refused_by_name() {
        let options = "-fplugin=x.so -Wl,-rpath @file -o -foo -std=c++77 -I -fmad=maybe";
        for option in options.split(' ') {
            let error = Options::read(&[option]).expect_err("refused").to_string();
            assert!(error.contains(option), "{option}: {error}");
        }
    }
}

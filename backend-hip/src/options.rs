//! Translates options of NVIDIA's compilers, which CUDA programs use, to clang's names.
//!
//! | nvcc, NVRTC | clang |
//! |---|---|
//! | `-arch=X`, `--gpu-architecture=X` | `--offload-arch=X` |
//! | `-use_fast_math`, `--use_fast_math` | `-ffast-math -fno-finite-math-only` |
//! | `-fmad=true`, `=false`, `--fmad` | `-ffp-contract=fast`, `=off` |
//! | `-ftz=true`, `--ftz=true` | `-fgpu-flush-denormals-to-zero` |
//! | `-ftz=false`, `--ftz=false` | `-fno-gpu-flush-denormals-to-zero` |
//! | `-lineinfo`, `--generate-line-info` | `-gline-tables-only` |
//! | `-G`, `--device-debug` | `-g` |
//! | `-rdc=true`, `=false`, `--relocatable-device-code` | nothing: hipRTC cannot link the code with other code |
//! | `-std=X`, `--std=X` | `-std=X` |
//! | `--define-macro=X`, `--undefine-macro=X` | `-DX`, `-UX` |
//! | `--include-path=X`, `--pre-include=X` | `-IX`, `-include X` |
//! | `-default-device`, `--device-as-default-execution-space` | pragmas around the text, [`unit`] |
//! | `--disable-warnings` | `-w` |
//! | `-arch=sm_N`, `-arch=compute_N` | nothing: the code is for the current device |
//! | `-Xptxas X`, `-maxrregcount=N` and other options for NVIDIA's own phases | nothing |
//!
//! A value may also be an option of its own: `-arch`, `X`. NVIDIA's fast mathematics keeps infinities and NaN,
//! so clang's has to keep them. All other options are passed unchanged, and the compiler reports those that it
//! does not support.

/// The translation of an option.
enum Form {
    /// Replaced by other options.
    Flag(&'static [&'static str]),
    /// Replaced by the first list for `true`, by the second for `false`.
    Switch(&'static [&'static str], &'static [&'static str]),
    /// This prefix, followed by the option's value.
    Joined(&'static str),
    /// This option, then the value as the next option.
    Separate(&'static str),
    /// This prefix, followed by the option's value, unless the value is an NVIDIA architecture.
    Architecture(&'static str),
    /// Removed with its value.
    Nothing,
}

use Form::{Architecture, Flag, Joined, Nothing, Separate, Switch};

/// The prefixes of NVIDIA's architecture names.
const NVIDIA: [&str; 3] = ["sm_", "compute_", "lto_"];

const FORMS: [(&[&str], Form); 17] = [
    (&["-arch", "--gpu-architecture"], Architecture("--offload-arch=")),
    (&["-use_fast_math", "--use_fast_math"], Flag(&["-ffast-math", "-fno-finite-math-only"])),
    (&["-fmad", "--fmad"], Switch(&["-ffp-contract=fast"], &["-ffp-contract=off"])),
    (
        &["-ftz", "--ftz"],
        Switch(&["-fgpu-flush-denormals-to-zero"], &["-fno-gpu-flush-denormals-to-zero"]),
    ),
    (&["-lineinfo", "--generate-line-info"], Flag(&["-gline-tables-only"])),
    (&["-G", "--device-debug"], Flag(&["-g"])),
    (&["-rdc", "--relocatable-device-code"], Switch(&[], &[])),
    (&["-std", "--std"], Joined("-std=")),
    (&["--define-macro"], Joined("-D")),
    (&["--undefine-macro"], Joined("-U")),
    (&["--include-path"], Joined("-I")),
    (&["--pre-include"], Separate("-include")),
    (&DEFAULT_DEVICE, Flag(&[])),
    (&["--disable-warnings"], Flag(&["-w"])),
    (&["-restrict", "--restrict", "-dc", "--device-c"], Flag(&[])),
    (&["-extra-device-vectorization", "--extra-device-vectorization"], Flag(&[])),
    (
        &[
            "-Xptxas",
            "--ptxas-options",
            "-maxrregcount",
            "--maxrregcount",
            "-prec-div",
            "--prec-div",
            "-prec-sqrt",
            "--prec-sqrt",
            "-diag-suppress",
            "--diag-suppress",
            "-diag-warn",
            "--diag-warn",
            "-diag-error",
            "--diag-error",
            "-split-compile",
            "--split-compile",
        ],
        Nothing,
    ),
];

/// The options that make variables without a qualifier device variables.
const DEFAULT_DEVICE: [&str; 2] = ["-default-device", "--device-as-default-execution-space"];

impl Form {
    /// Returns clang's options for an option with or without a value; `None` if there is no equivalent.
    fn of(&self, value: Option<&str>) -> Option<Vec<String>> {
        match (self, value) {
            (Flag(options), None)
            | (Switch(options, _), Some("true"))
            | (Switch(_, options), Some("false")) => {
                Some(options.iter().map(|it| (*it).to_owned()).collect())
            }
            (Joined(option), Some(value)) => Some(vec![format!("{option}{value}")]),
            (Separate(option), Some(value)) => Some(vec![(*option).to_owned(), value.to_owned()]),
            (Architecture(_), Some(value)) if NVIDIA.iter().any(|it| value.starts_with(it)) => {
                Some(Vec::new())
            }
            (Architecture(option), Some(value)) => Some(vec![format!("{option}{value}")]),
            (Nothing, Some(_)) => Some(Vec::new()),
            _ => None,
        }
    }
}

/// Returns the options as clang reads them.
pub(crate) fn translate(options: &[&str]) -> Vec<String> {
    let mut translated = Vec::with_capacity(options.len());
    let mut rest = options;
    while let [option, behind @ ..] = rest {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (*option, None),
        };
        rest = behind;
        let form = FORMS.iter().find(|(names, _)| names.contains(&name)).map(|(_, form)| form);
        let known = form.and_then(|form| {
            form.of(value).or_else(|| {
                let (next, behind) = value.is_none().then(|| behind.split_first())??;
                let known = form.of(Some(next))?;
                rest = behind;
                Some(known)
            })
        });
        translated.extend(known.unwrap_or_else(|| vec![(*option).to_owned()]));
    }
    translated
}

/// Returns the text that hipRTC compiles. Messages, `__FILE__` and debuggers use `name`, and lines keep their
/// numbers. If `options` contain `-default-device`, variables get the device attribute; functions without a
/// qualifier stay host functions.
pub(crate) fn unit(name: &str, options: &[&str], text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = "#line 1".to_owned();
    if !name.is_empty() {
        line.push_str(" \"");
        for character in name.chars().filter(|it| !it.is_control()) {
            if matches!(character, '"' | '\\') {
                line.push('\\');
            }
            line.push(character);
        }
        line.push('"');
    }
    if !options.iter().any(|option| DEFAULT_DEVICE.contains(option)) {
        return format!("{line}\n{text}");
    }
    format!(
        "#pragma clang attribute push(__attribute__((device)), apply_to = variable(is_global))\n\
         {line}\n{text}\n#pragma clang attribute pop\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{translate, unit};

    #[test]
    fn a_text_has_its_name_whatever_is_in_it() {
        assert_eq!(unit("a b\n.cu", &[], "\u{feff}int a;"), "#line 1 \"a b.cu\"\nint a;");
        assert_eq!(unit(r#"c:\"k".cu"#, &[], ""), "#line 1 \"c:\\\\\\\"k\\\".cu\"\n");
    }

    #[test]
    fn pragmas_are_around_texts_whose_variables_are_the_devices() {
        assert_eq!(unit("", &["-O3", "-default-devices"], "int a;"), "#line 1\nint a;");
        for option in ["-default-device", "--device-as-default-execution-space"] {
            let text = unit("k.cu", &["-O3", option], "int a;");
            assert!(text.contains("\n#line 1 \"k.cu\"\nint a;\n#pragma"), "{text}");
            assert!(translate(&[option]).is_empty());
        }
    }

    #[test]
    fn every_option_of_the_table_has_clangs_name() {
        for (nvidia, clang) in [
            ("-arch=gfx90a", "--offload-arch=gfx90a"),
            ("--gpu-architecture=gfx90a:xnack-", "--offload-arch=gfx90a:xnack-"),
            ("-arch gfx90a", "--offload-arch=gfx90a"),
            ("--gpu-architecture gfx1030", "--offload-arch=gfx1030"),
            ("-use_fast_math", "-ffast-math -fno-finite-math-only"),
            ("--use_fast_math", "-ffast-math -fno-finite-math-only"),
            ("-fmad=true", "-ffp-contract=fast"),
            ("--fmad=false", "-ffp-contract=off"),
            ("-fmad false", "-ffp-contract=off"),
            ("-ftz=true", "-fgpu-flush-denormals-to-zero"),
            ("--ftz=false", "-fno-gpu-flush-denormals-to-zero"),
            ("-lineinfo", "-gline-tables-only"),
            ("--generate-line-info", "-gline-tables-only"),
            ("-G", "-g"),
            ("--device-debug", "-g"),
            ("--std=c++17", "-std=c++17"),
            ("-std c++17", "-std=c++17"),
            ("--define-macro=N=4", "-DN=4"),
            ("--define-macro N=4", "-DN=4"),
            ("--undefine-macro=N", "-UN"),
            ("--include-path=/a=b", "-I/a=b"),
            ("--pre-include=own.h", "-include own.h"),
            ("--disable-warnings", "-w"),
        ] {
            let options: Vec<_> = nvidia.split(' ').collect();
            assert_eq!(translate(&options).join(" "), clang, "{nvidia}");
            let among = [&["-O3"], &options[..], &["-DX"]].concat();
            assert_eq!(translate(&among).join(" "), format!("-O3 {clang} -DX"), "{nvidia}");
        }
    }

    #[test]
    fn what_speaks_to_phases_of_nvidia_alone_is_left_out() {
        for nvidia in [
            "-rdc=true",
            "--relocatable-device-code=false",
            "-arch=sm_60",
            "--gpu-architecture compute_70",
            "-Xptxas -v,-O3",
            "--ptxas-options=-v",
            "-maxrregcount=32",
            "--maxrregcount 32",
            "-prec-div=false",
            "-prec-sqrt true",
            "-diag-suppress=177",
            "-restrict",
            "-dc",
        ] {
            let options: Vec<_> = nvidia.split(' ').collect();
            assert_eq!(translate(&options), [""; 0], "{nvidia}");
            let among = [&["-O3"], &options[..], &["-DX"]].concat();
            assert_eq!(translate(&among), ["-O3", "-DX"], "{nvidia}");
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for options in [
            &[][..],
            &["", "-", "=", "-D", "-arch", "-I", "a"][..3],
            &["--offload-arch=gfx90a", "-std=c++17", "-DX=-G", "-include", "own.h", "-O3", "-g"],
            &["--unknown=32", "-Xptxas"],
            &["-archx=gfx90a", "-use_fast_math=true", "-Gx", "-G=1", "-lineinfo="],
            // Invalid values, and missing values.
            &["-fmad=maybe", "--fmad", "yes", "-rdc="],
            &["-arch"],
            &["--pre-include"],
        ] {
            assert_eq!(translate(options), options, "{options:?}");
        }
    }
}

//! What the compiler's command line says beside the files.

use super::{Compiler, Optimization};
use crate::options::{DEFAULT_ARCHITECTURE, Options};
use crate::toolchain::Toolchain;

impl Compiler {
    /// Columns are those of the preprocessed text, and the compiler has no file to show lines of.
    fn message_options(&self) -> [String; 3] {
        let caret = match self.toolchain.is_clang {
            true => "-fno-caret-diagnostics",
            false => "-fno-diagnostics-show-caret",
        };
        ["-fno-show-column", caret, "-fdiagnostics-color=never"].map(str::to_owned)
    }

    /// What CUDA's compilers take, with a warning or without: values of an aggregate that are narrowed, and for clang
    /// what it alone says unasked of conditions, as an error since version 21 of `a < b < c`.
    fn leniency(&self) -> &'static [&'static str] {
        match self.toolchain.is_clang {
            true => &[
                "-Wno-c++11-narrowing",
                "-Wno-parentheses",
                "-Wno-parentheses-equality",
                "-Wno-tautological-compare",
                "-Wno-constant-logical-operand",
                "-Wno-xor-used-as-pow",
                // What the optimiser has not done of what a pragma asks for.
                "-Wno-pass-failed",
            ],
            false => &["-Wno-narrowing"],
        }
    }

    fn target_options(&self) -> Vec<String> {
        let native: &[&str] = if cfg!(target_arch = "x86_64") {
            // Tuned for no processor, GCC gathers and scatters no elements, which costs more than it saves.
            match self.toolchain.is_clang {
                true => &["-march=native"],
                false => &["-march=native", "-mtune=generic"],
            }
        } else {
            &["-mcpu=native"]
        };
        native.iter().chain(&["-fPIC"]).map(|it| (*it).to_owned()).collect()
    }

    /// What the text's options and the language's settings say to every run of the compiler.
    pub(super) fn common_options(&self, options: &Options) -> Vec<String> {
        let standard = options.standard.as_deref().unwrap_or("c++17");
        let mut all = vec![format!("-std={standard}")];
        all.extend(["-fno-exceptions", "-fno-rtti"].map(str::to_owned));
        all.extend(self.message_options());
        all.extend(self.target_options());
        all.extend(self.leniency().iter().map(|it| (*it).to_owned()));
        // The functions of C that a compiler knows without a declaration are none of CUDA C's.
        all.push(
            match self.toolchain.is_clang {
                true => "-Wno-incompatible-library-redeclaration",
                false => "-Wno-builtin-declaration-mismatch",
            }
            .to_owned(),
        );
        if options.no_warnings {
            all.push("-w".to_owned());
        }
        all
    }

    /// Those of the preprocessor, but for the program's own.
    pub(crate) fn preprocessor_options(&self, options: &Options) -> Vec<String> {
        let mut all = self.common_options(options);
        all.extend(self.macros(options));
        if !self.language.system_headers {
            all.push("-nostdinc".to_owned());
        }
        all
    }

    fn macros(&self, options: &Options) -> Vec<String> {
        let architecture = options.architecture.unwrap_or(DEFAULT_ARCHITECTURE);
        let mut macros = vec![
            format!("-DGPUARRAY_WARP_SIZE={}", self.language.warp_size),
            format!("-DGPUARRAY_CUDA_ARCH={architecture}"),
            // The system's headers would define functions that the language has.
            "-U_FORTIFY_SOURCE".to_owned(),
        ];
        if self.language.hip {
            macros.push("-DGPUARRAY_HIP=1".to_owned());
        }
        if self.language.checked {
            macros.push("-DGPUARRAY_CHECK=1".to_owned());
        }
        if self.optimization == Optimization::Compilation {
            macros.push("-DGPUARRAY_QUICK=1".to_owned());
        }
        macros
    }

    /// Those of the compiler behind the preprocessor.
    pub(crate) fn code_options(&self, options: &Options) -> Vec<String> {
        let mut all: Vec<&str> = vec![
            "-fvisibility=hidden",
            "-fno-semantic-interposition",
            // Programs rely on what the compilers of GPUs do here.
            "-fwrapv",
            "-fno-strict-aliasing",
            "-fno-delete-null-pointer-checks",
            "-fno-finite-loops",
            "-fno-math-errno",
            "-fno-trapping-math",
            self.toolchain.contraction(),
            // The language's own, which no other function of the system's may replace.
            "-fno-builtin-printf",
            // A stack that overflows faults, and does not run into another one.
            "-fstack-clash-protection",
            "-fno-stack-protector",
            // A reference from one function to another can be told from one within it.
            "-ffunction-sections",
            // An exception of the system's library ends where the unit begins.
            "-fno-asynchronous-unwind-tables",
            "-pipe",
        ];
        if self.toolchain.is_zig {
            // Which it adds where little is optimised, for a library that is not linked.
            all.push("-fno-sanitize=undefined");
        }
        match (options.debug, self.language.checked, self.optimization) {
            (true, ..) => all.extend(["-g", "-O0"]),
            // Little of what the program says is optimised away before it is checked.
            (false, true, _) => all.extend(["-g1", "-O1"]),
            // What `CXX` asks for.
            (false, false, _) if self.toolchain.has_level() => {}
            (false, false, optimization) => {
                let level = match optimization {
                    Optimization::Speed => "-O3",
                    // The passes that cost little.
                    Optimization::Compilation => "-Og",
                };
                all.push(level);
            }
        }
        if self.toolchain.is_clang && self.toolchain.major_version() >= 15 {
            // Lanes hand what they have not written to functions such as `__shfl_sync`, which lets clang assume that
            // no lane does. Older ones assume nothing, and do not know the option.
            all.extend(["-Xclang", "-no-enable-noundef-analysis"]);
        }
        if !self.toolchain.is_clang {
            // Thread-local variables of other objects need no initialisation; templates' variables
            // do not keep the library loaded; functions of the device are inlined as on a GPU.
            all.extend(["-fno-extern-tls-init", "-fno-gnu-unique"]);
            // As many threads run as the launch has, whatever length an array has that each indexes.
            all.push("-fno-aggressive-loop-optimizations");
            // A variable is told by its own name, and not as a part of a section.
            all.push("-fno-section-anchors");
            // A call of `memcpy` costs more than the few elements of a row.
            all.push("-fno-tree-loop-distribute-patterns");
            all.extend([
                "--param=max-inline-insns-auto=200",
                "--param=max-inline-insns-single=400",
            ]);
        }
        if self.traps_undefined {
            // Pointers to records are aligned to less than their types, and 1/0 is infinity. What is
            // optimised costs several times as much to compile with so many ways out of it.
            all.extend([
                "-O0",
                "-fno-wrapv",
                "-fsanitize=undefined",
                "-fno-sanitize=alignment,float-divide-by-zero",
                "-fsanitize-undefined-trap-on-error",
            ]);
        }
        let mut all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        if self.language.checked {
            all.extend(check_options(&self.toolchain));
        }
        all.extend(self.common_options(options));
        all.extend(options.code.iter().cloned());
        all
    }
}

/// What has the compiler call the functions of `check.h`.
fn check_options(toolchain: &Toolchain) -> Vec<String> {
    // Zig's older versions link the sanitizer's library with what they know to need it.
    let mut options = if toolchain.is_zig { vec!["-Xclang"] } else { Vec::new() };
    options.extend([
        "-fsanitize=thread",
        "-fsanitize=alignment,integer-divide-by-zero",
        "-fno-builtin-memcpy",
        "-fno-builtin-memmove",
        "-fno-builtin-memset",
        "-fno-builtin-malloc",
        "-fno-builtin-free",
        // The function that is called knows by the address that it returns to where it is called.
        "-fno-optimize-sibling-calls",
    ]);
    // Fences reach the executor as all else does, of which GCC does not know.
    options.extend((!toolchain.is_clang).then_some("-Wno-tsan"));
    match (toolchain.is_clang, toolchain.major_version()) {
        (true, _) => options.extend([
            "-mllvm",
            "-tsan-distinguish-volatile=1",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            // Of accesses and calls of two lines it makes none of no line.
            "-mllvm",
            "-sink-common-insts=false",
            "-mllvm",
            "-hoist-common-insts=false",
            "-mllvm",
            "-enable-tail-merge=false",
        ]),
        (false, version) => {
            if version >= 11 {
                options.extend(["--param", "tsan-distinguish-volatile=1"]);
            }
            if version >= 12 {
                options.extend(["--param", "tsan-instrument-func-entry-exit=0"]);
            }
        }
    }
    options.into_iter().map(str::to_owned).collect()
}

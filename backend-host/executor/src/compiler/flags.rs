//! The options on the compiler's command line, apart from files.

use super::{Compiler, Optimization};
use crate::options::{DEFAULT_ARCHITECTURE, Options};
use crate::toolchain::Toolchain;

impl Compiler {
    /// Returns options for messages without quoted lines, because the compiler does not have a file to quote from.
    /// Columns count bytes.
    fn message_options(&self) -> impl Iterator<Item = String> {
        let (caret, bytes) = match (self.toolchain.is_clang, self.toolchain.major_version()) {
            (true, _) => ("-fno-caret-diagnostics", None),
            (false, version) => (
                "-fno-diagnostics-show-caret",
                (version >= 11).then_some("-fdiagnostics-column-unit=byte"),
            ),
        };
        [caret, "-fdiagnostics-color=never"].into_iter().chain(bytes).map(str::to_owned)
    }

    /// Accepts constructs that CUDA's compilers accept, with or without a warning: narrowing conversions in
    /// aggregates and, for clang, conditions that only clang warns about by default. Since version 21 it
    /// treats `a < b < c` as an error.
    fn leniency(&self) -> &'static [&'static str] {
        match self.toolchain.is_clang {
            true => &[
                "-Wno-c++11-narrowing",
                "-Wno-parentheses",
                "-Wno-parentheses-equality",
                "-Wno-tautological-compare",
                "-Wno-constant-logical-operand",
                "-Wno-xor-used-as-pow",
                // Failed optimisations that a pragma requested.
                "-Wno-pass-failed",
            ],
            // A class may name a member as a type that its declarations have used before.
            false if self.toolchain.major_version() >= 13 => {
                &["-Wno-narrowing", "-Wno-changes-meaning"]
            }
            false => &["-Wno-narrowing"],
        }
    }

    /// The option with which versions of GCC before 13 accept what `-Wno-changes-meaning` accepts, and more.
    pub(super) fn permissive(&self) -> Option<&'static str> {
        let is_needed = !self.toolchain.is_clang && self.toolchain.major_version() < 13;
        is_needed.then_some("-fpermissive")
    }

    fn target_options(&self) -> Vec<String> {
        let native: &[&str] = if cfg!(target_arch = "x86_64") {
            // Unless tuned for a generic processor, GCC uses gather and scatter instructions, which cost more
            // than they save.
            match self.toolchain.is_clang {
                true => &["-march=native"],
                false => &["-march=native", "-mtune=generic"],
            }
        } else {
            &["-mcpu=native"]
        };
        native.iter().chain(&["-fPIC"]).map(|it| (*it).to_owned()).collect()
    }

    /// The options for every run of the compiler, from the text's options and the language's settings.
    fn common_options(&self, options: &Options) -> Vec<String> {
        let standard = options.standard.as_deref().unwrap_or("c++17");
        let mut all = vec![format!("-std={standard}")];
        all.extend(["-fno-exceptions", "-fno-rtti"].map(str::to_owned));
        all.extend(self.message_options());
        all.extend(self.target_options());
        all.extend(self.leniency().iter().map(|it| (*it).to_owned()));
        // The C functions that a compiler knows without a declaration differ from CUDA C's.
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

    /// The options of the preprocessor, except the program's own.
    pub(super) fn preprocessor_options(&self, options: &Options) -> Vec<String> {
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
            // Otherwise the system's headers would define functions that the language already has.
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

    /// The options of the compiler after preprocessing.
    pub(super) fn code_options(&self, options: &Options) -> Vec<String> {
        let mut all: Vec<&str> = vec![
            "-fvisibility=hidden",
            "-fno-semantic-interposition",
            // Programs rely on the behaviour of GPU compilers here.
            "-fwrapv",
            "-fno-strict-aliasing",
            "-fno-delete-null-pointer-checks",
            "-fno-finite-loops",
            "-fno-math-errno",
            "-fno-trapping-math",
            self.toolchain.contraction(),
            // The language has its own printf, which must not be replaced by another function of the system.
            "-fno-builtin-printf",
            // A stack overflow faults, instead of running into another stack.
            "-fstack-clash-protection",
            "-fno-stack-protector",
            // References between functions can then be distinguished from references within a function.
            "-ffunction-sections",
            // Exceptions of the system's library end at the boundary of the unit.
            "-fno-asynchronous-unwind-tables",
            "-pipe",
        ];
        if self.toolchain.is_zig {
            // Zig adds this sanitizer at low optimisation levels, but its library is not linked.
            all.push("-fno-sanitize=undefined");
        }
        match (options.debug, self.language.checked, self.optimization) {
            (true, ..) => all.extend(["-g", "-O0"]),
            // Keep most of the program's accesses, so that they are checked before the optimiser removes
            // them.
            (false, true, _) => all.extend(["-g1", "-O1"]),
            // `CXX` specifies an optimisation level.
            (false, false, _) if self.toolchain.has_level() => {}
            (false, false, optimization) => {
                let level = match optimization {
                    Optimization::Speed => "-O3",
                    // Only the cheap passes.
                    Optimization::Compilation => "-Og",
                };
                all.push(level);
            }
        }
        if self.toolchain.is_clang && self.toolchain.major_version() >= 15 {
            // Lanes may pass uninitialised values to functions such as `__shfl_sync`. Clang would conclude
            // that no lane does. Older versions do not draw this conclusion, and do not know the option.
            all.extend(["-Xclang", "-no-enable-noundef-analysis"]);
        }
        // A function of the program may end without returning its value, which the caller then does not use or which
        // is undefined. C++ compilers would assume that no thread reaches that end.
        match self.toolchain.is_clang {
            true => all.push("-fno-strict-return"),
            // GCC does not make this assumption if it looks for such places, and this option leaves them as they
            // are. A false `__builtin_assume` becomes a trap.
            false => all.extend(["-fsanitize=unreachable", "-fno-sanitize=return"]),
        }
        if !self.toolchain.is_clang && !self.language.checked {
            // Units with checks define the functions that are called instead.
            all.push("-fsanitize-undefined-trap-on-error");
        }
        if !self.toolchain.is_clang {
            // Thread-local variables of other objects need no initialisation, variables of templates do not
            // keep the library loaded, and device functions are inlined as on a GPU.
            all.extend(["-fno-extern-tls-init", "-fno-gnu-unique"]);
            // The launch determines the number of threads, whatever the length of an array that each thread
            // indexes.
            all.push("-fno-aggressive-loop-optimizations");
            // A variable is identified by its own name instead of an offset in a section.
            all.push("-fno-section-anchors");
            // GCC would note for each parameter with a large alignment that GCC 4.6 passes it in another way.
            all.push("-Wno-psabi");
            // A call of `memcpy` costs more than copying the few elements of a row.
            all.push("-fno-tree-loop-distribute-patterns");
            all.extend([
                "--param=max-inline-insns-auto=200",
                "--param=max-inline-insns-single=400",
            ]);
        }
        if self.traps_undefined {
            // Pointers to records may be misaligned for their types, and 1/0 is infinity. With this many
            // checks, optimised code would take several times as long to compile.
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

/// The options that make the compiler call the functions of `check.h`.
fn check_options(toolchain: &Toolchain) -> Vec<String> {
    // With zig's older versions, zig's own option would link the sanitizer's library.
    let mut options = if toolchain.is_zig { vec!["-Xclang"] } else { Vec::new() };
    options.extend([
        "-fsanitize=thread",
        "-fsanitize=alignment,integer-divide-by-zero",
        "-fno-builtin-memcpy",
        "-fno-builtin-memmove",
        "-fno-builtin-memset",
        "-fno-builtin-malloc",
        "-fno-builtin-free",
        // The called function identifies its caller by the return address.
        "-fno-optimize-sibling-calls",
    ]);
    // Fences reach the executor like all other operations, which GCC does not know.
    options.extend((!toolchain.is_clang).then_some("-Wno-tsan"));
    match (toolchain.is_clang, toolchain.major_version()) {
        (true, _) => options.extend([
            "-mllvm",
            "-tsan-distinguish-volatile=1",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            // Otherwise clang merges accesses and calls of two lines into one without a line.
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

//! Adapts CUDA C that was written for nvcc to compilers that support less of it.
//!
//! Programs for PyCUDA and nvcc use headers, macros, options and functions that run-time compilers lack. [`adapted`]
//! puts these in front of a program, or in place of its `#include` lines. It changes the program's own lines in only
//! two ways: functions for the host are left out, and an attribute after the body of a structure moves to a position
//! where the compiler accepts it.
//!
//! | compiler | additions |
//! |---|---|
//! | NVRTC | headers of C and C++, macros of nvcc, attributes of types |
//! | hipRTC | these, and words, functions, warp functions and vector types of CUDA C |
//! | C++ compilers, for the host | headers of C++ before `extern "C"`; the rest is in the language's own headers |

mod amd;
mod attributes;
pub(crate) mod code;
mod host_functions;
mod insertion;
mod macros;
mod options;
mod unasked;
mod vendor;
mod warps;

pub use code::code_of;
pub(crate) use code::words;
use code::{after, has_includes, word_set};
use insertion::Headers;
pub use macros::Dialect;
use std::path::PathBuf;
use vendor::Vendor;
pub use vendor::{advice, toolkits};

/// The header of texture and surface references.
const REFERENCES: &str = "pygpu-texture-references.hpp";
/// The header with CUDA's names of textures, for compilers that lack them.
const TEXTURES: &str = "pygpu-cuda-textures.hpp";
/// The option that compiles functions and variables without a qualifier for the device.
pub const FOR_DEVICE: &str = "-default-device";

/// Types that nvcc takes from the host's `sys/types.h`.
const TYPES: &str =
    "typedef unsigned int uint;\ntypedef unsigned short ushort;\ntypedef unsigned long ulong;\n";

/// A program in CUDA C.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The text.
    pub text: &'a str,
    /// The name of the file that messages show.
    pub file: &'a str,
    /// Options of nvcc.
    pub options: &'a [&'a str],
    /// Folders of the program's own headers.
    pub folders: &'a [PathBuf],
    /// Folders of Python packages, below which NVIDIA's headers may be installed.
    pub packages: &'a [PathBuf],
    /// True to compile the text inside `extern "C" { ... }`.
    pub extern_c: bool,
    /// True if the device has textures.
    pub has_textures: bool,
}

/// A program in the form that a compiler accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapted {
    /// The text that is compiled in front of the program's.
    pub before: String,
    /// The program's text, with the headers and macros that it uses.
    pub text: String,
    /// Options of the compiler.
    pub options: Vec<String>,
    /// Folders of the program's headers.
    pub folders: Vec<PathBuf>,
    /// Folders of NVIDIA's headers.
    pub vendors: Vec<PathBuf>,
    /// True if the compiler may read files: it needs the folders and the [`gpu_headers`] as files.
    pub reads_files: bool,
    /// Lines to put between `before` and `text` if AMD's compiler refuses the text: these lines make vector
    /// types plain structures. Empty if the program uses no such types.
    pub vectors: String,
}

/// Returns path and text of each header that a GPU's compiler can find as a file. [`HEADER_FOLDERS`] lists the
/// folders that it searches.
pub fn gpu_headers() -> impl Iterator<Item = (&'static str, &'static str)> {
    crate::headers::all_for_gpu()
}

/// The folders of [`gpu_headers`]: one to search before NVIDIA's headers, for AMD only, and two to search
/// after them.
pub const HEADER_FOLDERS: (&str, [&str; 2]) = ("amd", ["", "std"]);

/// Returns true if a text may declare texture or surface references.
pub fn declares_references(text: &str) -> bool {
    words(text).any(|it| {
        matches!(&text[it.clone()], "texture" | "surface") && after(text, it.end).starts_with('<')
    })
}

fn names_textures(text: &str) -> bool {
    let kinds = ["Texture", "Surface", "ReadMode", "AddressMode", "FilterMode", "BoundaryMode"];
    words(text).any(|it| {
        let word = &text[it];
        let of_runtime = word.strip_prefix("cuda");
        let fetch = word.strip_prefix("tex").or(word.strip_prefix("surf"));
        of_runtime.is_some_and(|it| kinds.iter().any(|kind| it.starts_with(kind)))
            || fetch.is_some_and(|it| ["1D", "2D", "3D"].iter().any(|kind| it.starts_with(kind)))
    })
}

/// Returns a text with spaces in place of `static` before references: AMD's runtime does not find a static variable,
/// and AMD's compiler takes it for a constant if the text does not write it.
fn with_visible_references(text: &str) -> String {
    let code = code_of(text, false);
    let mut bytes = text.as_bytes().to_vec();
    for word in words(&code).filter(|it| &code[it.clone()] == "static") {
        let rest = after(&code, word.end);
        let is_reference = rest.len() < code.len() - word.end
            && words(rest).next().is_some_and(|it| {
                it.start == 0
                    && matches!(&rest[it.clone()], "texture" | "surface")
                    && after(rest, it.end).starts_with('<')
            });
        if is_reference {
            bytes[word].fill(b' ');
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Adapts a program to a compiler.
///
/// ```
/// use cuda_c::dialects::{Dialect, Program, adapted};
///
/// let program = Program {
///     text: "#include <stdio.h>\n__global__ void k(uint32_t *x) { *x = INT_MAX; }",
///     file: "kernel.cu",
///     options: &["-O3", "-DN=4"],
///     folders: &[],
///     packages: &[],
///     extern_c: true,
///     has_textures: false,
/// };
/// let adapted = adapted(&program, Dialect::Nvrtc);
/// assert!(adapted.before.contains("#define INT_MAX") && !adapted.text.contains("#include"));
/// assert!(adapted.text.contains("#define N 4") && adapted.options.is_empty());
/// ```
pub fn adapted(program: &Program<'_>, dialect: Dialect) -> Adapted {
    let Program { file, extern_c, .. } = *program;
    let options = options::for_devices(program.options);
    let mut folders = options::folders(&options);
    folders.extend(program.folders.iter().filter(|it| !it.as_os_str().is_empty()).cloned());
    let headers = Headers { dialect, vendor: Vendor { packages: program.packages } };
    let mut texts = insertion::own_texts(program.text, &folders);
    // Macros in options may also name anything.
    texts.push(options::definitions(&options));
    let mut codes: Vec<_> = texts.iter().map(|it| code_of(it, false)).collect();
    let left = host_functions::left_out(program.text, &codes[0], &codes[1..]);
    if let Some(text) = &left {
        (texts[0], codes[0]) = (text.clone(), code_of(text, false));
    }
    let program = &Program { text: left.as_deref().unwrap_or(program.text), ..*program };
    let mut unasked = unasked::unasked(&codes, !folders.is_empty(), headers);
    if dialect == Dialect::Host {
        // The libraries use functions of these headers that NVIDIA's compilers have built in.
        if insertion::include_libraries(&texts) {
            unasked += "#include <cstring>\n#include <utility>\n";
        }
        folders.extend(headers.vendor.libraries_for_host(&texts));
        return for_host(program, options, folders, &texts, unasked);
    }
    let macros = options::macros(&options, dialect);
    let mut options = macros.options;
    // Macros that a program defines before it includes these headers must not change them.
    let of_std = headers.own_of_cpp(program.text).map(|it| format!("#include <{it}>\n"));
    let unasked = headers.inserted(&(unasked + &of_std.collect::<String>()), file, &[]);
    let text = headers.inserted(program.text, file, &folders);
    let mut text = attributes::in_front(&text, dialect);
    // Headers with templates are included outside `extern "C"`.
    let of_vendor = headers.vendor.included(&text).into_iter().map(str::to_owned);
    let of_cpp = headers.vendors_of_cpp(&text).map(str::to_owned);
    let first: Vec<String> = of_vendor.chain(of_cpp).collect();
    let is_amd = dialect == Dialect::Hiprtc;
    let mut asked = String::new();
    if program.has_textures && texts.iter().any(|it| declares_references(it)) {
        asked += &format!("#include <{REFERENCES}>\n");
        options.push(FOR_DEVICE.into());
        if is_amd {
            text = with_visible_references(&text);
        }
    } else if is_amd && texts.iter().any(|it| names_textures(it)) {
        asked += &format!("#include <{TEXTURES}>\n");
    }
    if is_amd {
        asked += &macros.first;
        asked += &warps::in_front(&texts, &codes);
        asked += &amd::in_front(&texts, &codes);
    }
    asked += &macros::in_front(&word_set(texts.iter().map(String::as_str)), &codes, dialect);
    let vendors = if has_includes(&text) { headers.vendor_folders(&text) } else { Vec::new() };
    let marked = if vendors.is_empty() { "" } else { "#define PYGPU_NVIDIAS_HEADERS\n" };
    let mut before = format!("{TYPES}{marked}{unasked}");
    let asked = headers.inserted(&asked, file, &[]);
    let (open, close) = extern_c_around(first.iter().map(String::as_str), extern_c);
    text = format!("{asked}{}{open}#line 1 \"{file}\"\n{text}{close}", macros.own);
    if vendors.is_empty() {
        before = insertion::closed(&before);
        text = insertion::closed(&text);
    }
    let vectors = if is_amd {
        let code = codes.join("\n");
        let has_textures = declares_references(&code) || names_textures(&code);
        headers.inserted(&amd::vectors(&codes, has_textures, TEXTURES), file, &[])
    } else {
        String::new()
    };
    // `__has_include` finds a header only if it is a file.
    let asks = |it: &str| has_includes(it) || it.contains("__has_include");
    let reads_files = !folders.is_empty() || asks(&before) || asks(&text);
    Adapted { before, text, options, folders, vendors, reads_files, vectors }
}

fn for_host(
    program: &Program<'_>,
    mut options: Vec<String>,
    folders: Vec<PathBuf>,
    texts: &[String],
    unasked: String,
) -> Adapted {
    let Program { file, extern_c, .. } = *program;
    let text = insertion::with_cub_for_kernels(program.text);
    let (open, close) = extern_c_around(insertion::of_cpp_for_host(&text), extern_c);
    let mut asked = String::new();
    if program.has_textures && texts.iter().any(|it| declares_references(it)) {
        asked += &format!("#include <{REFERENCES}>\n");
        options.push(FOR_DEVICE.into());
    }
    let text = insertion::with_own_macros(&text, file);
    let text = format!("{asked}{open}#line 1 \"{file}\"\n{text}{close}");
    Adapted { before: format!("{TYPES}{unasked}"), text, options, folders, ..Adapted::default() }
}

/// Returns the lines before and after a program's text.
fn extern_c_around<'a>(
    first: impl Iterator<Item = &'a str>,
    extern_c: bool,
) -> (String, &'static str) {
    if !extern_c {
        return (String::new(), "");
    }
    let included: String = first.map(|it| format!("#include <{it}>\n")).collect();
    (format!("{included}extern \"C\" {{\n"), "\n}\n")
}

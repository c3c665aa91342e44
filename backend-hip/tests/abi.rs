//! Checks the bindings, and the code that relies on them, against the real headers of four versions. A
//! C compiler compiles a file that asserts every number, layout and declaration.
//!
//! The headers are downloaded; without them the tests are skipped, unless
//! `PYGPU_REQUIRE_HIP_HEADERS=1`.

#![allow(clippy::print_stderr, reason = "a skip has its reason printed")]

#[path = "../src/bindings.rs"]
mod bindings;
mod fetched;
mod names;

use bindings as sys;
use driver::texture::{ArrayDescription, ResourceDescription, TextureDescription};
use names::{BINDINGS, numbers};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

const REQUIRED: &str = "PYGPU_REQUIRE_HIP_HEADERS";

/// The numbers that changed after 5.2, with their values in 5.2.
const RENUMBERED: &[(&str, u32)] = &[
    // 5.2 does not have flags, and the only valid value was 0: `Vendor::ipc_open_flags`.
    ("hipIpcMemLazyEnablePeerAccess", 0),
    // The backend reads no memory type's number: `Hip::knows`.
    ("hipMemoryTypeHost", 0),
    ("hipMemoryTypeDevice", 1),
    ("hipMemoryTypeArray", 2),
    ("hipMemoryTypeUnified", 3),
];

/// Names of the bindings that 5.2 does not have.
const YOUNGER_THAN_5_2: &[&str] = &[
    // The backend does not read it.
    "hipMemoryTypeUnregistered",
    "hipMemoryTypeManaged",
    "hipMemcpyDeviceToDeviceNoCU",
    "hipLimitRange",
    "HIPRTC_ERROR_LINKING",
    // A runtime that does not know them refuses them as invalid values.
    "hipLimitStackSize",
    "hipDeviceAttributeVirtualMemoryManagementSupported",
    "hipDeviceAttributeHostRegisterSupported",
    "hipDeviceAttributeMemoryPoolSupportedHandleTypes",
    "hipDeviceAttributeWallClockRate",
    // Placeholders for attributes that were texts; the translation leaves them out.
    "hipDeviceAttributeUnused1",
    "hipDeviceAttributeUnused2",
    "hipDeviceAttributeUnused3",
    "hipDeviceAttributeUnused4",
    "hipDeviceAttributeUnused5",
    // Optional functions, or functions with a fallback: `names!` and `own_calls!`.
    "hipDeviceSetLimit",
    "hipModuleLaunchCooperativeKernel",
    "hipGetDevicePropertiesR0600",
    "hipUserObjectCreate",
    "hipGraphRetainUserObject",
];

/// Functions that 5.2 exports under C++ names, so that the backend does not find them.
const OF_CPP_IN_5_2: &[&str] = &["hipCreateSurfaceObject", "hipDestroySurfaceObject"];

/// Numbers that grow with each version, such as the ends of enumerations.
const ENDS: &[&str] = &["hipLimitRange", "hipJitOptionNumOptions"];

/// A version whose headers are available.
struct Version {
    name: &'static str,
    /// The package contains hiprtc.h.
    hiprtc: bool,
    /// The headers have `hipDeviceProp_tR0600`, and the older struct under its own name.
    properties: bool,
    /// The source of a copy to the device is a pointer to const.
    constant_sources: bool,
    /// `hipMemPoolProps` has a size at the start of the reserved bytes.
    pool_size: bool,
}

const VERSIONS: [Version; 4] = [
    Version {
        name: "5.2",
        hiprtc: true,
        properties: false,
        constant_sources: false,
        pool_size: false,
    },
    Version {
        name: "6.1",
        hiprtc: true,
        properties: true,
        constant_sources: false,
        pool_size: false,
    },
    Version {
        name: "6.2",
        hiprtc: true,
        properties: true,
        constant_sources: false,
        pool_size: true,
    },
    Version {
        name: "7.1",
        hiprtc: false,
        properties: true,
        constant_sources: true,
        pool_size: true,
    },
];

/// Returns the C declarations of functions, by name.
fn functions() -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    for part in BINDINGS.split("pub fn ").skip(1) {
        let (name, rest) = part.split_once('(').expect("arguments");
        let (arguments, rest) = rest.split_once(") -> ").expect("a result");
        let result = c_type(rest.split_once(';').expect("an end").0);
        let arguments: Vec<String> = arguments
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(|it| c_type(it.split_once(": ").expect("a type").1))
            .collect();
        let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
        all.insert(name, format!("{result} (*)({arguments})"));
    }
    all
}

/// Returns the C spelling of a type of the bindings.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(rest) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(rest));
    }
    if let Some(rest) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(rest));
    }
    let name = rust.strip_prefix("::std::ffi::").unwrap_or(rust);
    match name.strip_suffix("::Type").unwrap_or(name) {
        "c_void" => "void",
        "c_char" => "char",
        "c_uchar" => "unsigned char",
        "c_ushort" => "unsigned short",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_ulonglong" => "unsigned long long",
        "usize" => "size_t",
        "f32" => "float",
        // C does not have a typedef for this enumeration.
        "hipLimit_t" => "enum hipLimit_t",
        other => other,
    }
    .to_owned()
}

/// Asserts in C the size of a struct and the offsets of its fields. The struct comes from the bindings
/// or from the driver layer, which passes its own struct as the C one.
macro_rules! layout {
    ($name:ident { $($fields:tt)* }) => { layout!(sys::$name as $name { $($fields)* }) };
    ($ours:ty as $name:ident { $($field:ident: $header:literal),* $(,)? }) => {{
        let size = size_of::<$ours>();
        let mut text = format!("_Static_assert(sizeof({0}) == {size}, \"{0}\");\n", stringify!($name));
        $(
            let place = offset_of!($ours, $field);
            let (name, field) = (stringify!($name), $header);
            writeln!(text, "_Static_assert(offsetof({name}, {field}) == {place}, \"{name}.{field}\");")
                .expect("text");
        )*
        text
    }};
}

fn layouts(version: &Version) -> String {
    let mut text = [
        layout!(hipPointerAttribute_t {
            devicePointer: "devicePointer",
            hostPointer: "hostPointer"
        }),
        layout!(hipPos { x: "x", y: "y", z: "z" }),
        layout!(hipExtent { width: "width", height: "height", depth: "depth" }),
        layout!(hipPitchedPtr { ptr: "ptr", pitch: "pitch", xsize: "xsize", ysize: "ysize" }),
        layout!(hipMemcpy3DParms {
            srcArray: "srcArray",
            srcPos: "srcPos",
            srcPtr: "srcPtr",
            dstArray: "dstArray",
            dstPos: "dstPos",
            dstPtr: "dstPtr",
            extent: "extent",
            kind: "kind",
        }),
        layout!(hipMemLocation { type_: "type", id: "id" }),
        layout!(hipMemAccessDesc { location: "location", flags: "flags" }),
        layout!(hipMemPoolProps {
            allocType: "allocType",
            handleTypes: "handleTypes",
            location: "location",
            win32SecurityAttributes: "win32SecurityAttributes",
        }),
        layout!(hipUUID { bytes: "bytes" }),
        layout!(ArrayDescription as HIP_ARRAY3D_DESCRIPTOR {
            width: "Width",
            height: "Height",
            depth: "Depth",
            format: "Format",
            channels: "NumChannels",
            flags: "Flags",
        }),
        layout!(ResourceDescription as HIP_RESOURCE_DESC {
            kind: "resType",
            object: "res.array.hArray",
            object: "res.linear.devPtr",
            object: "res.pitch2D.devPtr",
            format: "res.linear.format",
            format: "res.pitch2D.format",
            channels: "res.linear.numChannels",
            channels: "res.pitch2D.numChannels",
            extent: "res.linear.sizeInBytes",
            extent: "res.pitch2D.width",
            reserved: "res.reserved.reserved[10]",
            flags: "flags",
        }),
        layout!(TextureDescription as HIP_TEXTURE_DESC {
            address: "addressMode",
            filter: "filterMode",
            flags: "flags",
            anisotropy: "maxAnisotropy",
            mipmaps: "mipmapFilterMode",
            border: "borderColor",
            reserved: "reserved",
        }),
        layout!(hipResourceDesc { resType: "resType", res: "res.array.array" }),
        // The structs of the driver layer that are passed as HIP's.
        String::from(
            "_Static_assert(offsetof(HIP_RESOURCE_DESC, res.pitch2D.height) == \
             offsetof(HIP_RESOURCE_DESC, res.pitch2D.width) + 8 && \
             offsetof(HIP_RESOURCE_DESC, res.pitch2D.pitchInBytes) == \
             offsetof(HIP_RESOURCE_DESC, res.pitch2D.width) + 16 && \
             HIP_RESOURCE_TYPE_ARRAY == 0 && HIP_RESOURCE_TYPE_LINEAR == 2 && \
             HIP_RESOURCE_TYPE_PITCH2D == 3 && HIP_TR_ADDRESS_MODE_CLAMP == 1 && \
             HIP_TR_ADDRESS_MODE_MIRROR == 2 && HIP_TR_ADDRESS_MODE_BORDER == 3 && \
             HIP_TR_FILTER_MODE_LINEAR == 1 && HIP_TRSF_READ_AS_INTEGER == 1 && \
             sizeof(HIP_RESOURCE_VIEW_DESC) == 112 && HIP_TRSF_NORMALIZED_COORDINATES == 2 && hipArrayLayered == 1 && \
             hipArraySurfaceLoadStore == 2 && hipArrayTextureGather == 8, \"textures\");\n",
        ),
        layout!(hipIpcMemHandle_t { reserved: "reserved" }),
        layout!(hipIpcEventHandle_t { reserved: "reserved" }),
        layout!(hipDeviceProp_tR0000 { gcnArchName: "gcnArchName" }),
        // Zero means no limit, so the versions without a size behave like the others.
        match version.pool_size {
            true => layout!(hipMemPoolProps { maxSize: "maxSize", reserved: "reserved" }),
            false => layout!(hipMemPoolProps { maxSize: "reserved" }),
        },
    ]
    .concat();
    if version.properties {
        text += &layout!(hipDeviceProp_tR0600 { gcnArchName: "gcnArchName" });
    }
    text
}

/// Returns all words in the headers of a folder.
fn words(folder: &Path) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for file in std::fs::read_dir(folder.join("hip")).expect("headers").flatten() {
        let text = std::fs::read(file.path()).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        words.extend(
            text.split(|byte| !is_part(byte)).map(|it| String::from_utf8_lossy(it).into_owned()),
        );
    }
    words
}

/// Returns the assertions for a version, and the number of constants and functions that they check.
fn source(version: &Version, words: &BTreeSet<String>) -> (String, usize) {
    let old = version.name == "5.2";
    let mut text = String::from("#include <stddef.h>\n#include <hip/hip_runtime_api.h>\n");
    if version.hiprtc {
        text += "#include <hip/hiprtc.h>\n";
    }
    if version.properties {
        text += "#include <hip/hip_deprecated.h>\n#undef hipGetDeviceProperties\n\
                 hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *, int);\n";
    } else {
        text += "typedef hipDeviceProp_t hipDeviceProp_tR0000;\n";
    }
    if old {
        text += "#include <amd_comgr.h>\n\
            #define IS(f, ...) _Static_assert( \\\n\
            __builtin_types_compatible_p(__typeof__(&f), __VA_ARGS__), #f);\n\
            _Static_assert(sizeof(amd_comgr_action_info_t) == 8, \"\");\n\
            _Static_assert(sizeof(amd_comgr_status_t) == 4 && !AMD_COMGR_STATUS_SUCCESS, \"\");\n\
            IS(amd_comgr_get_version, void (*)(size_t *, size_t *))\n\
            IS(amd_comgr_create_action_info, amd_comgr_status_t (*)(amd_comgr_action_info_t *))\n\
            IS(amd_comgr_action_info_set_isa_name,\n\
               amd_comgr_status_t (*)(amd_comgr_action_info_t, char const *))\n\
            IS(amd_comgr_destroy_action_info, amd_comgr_status_t (*)(amd_comgr_action_info_t))\n";
    }
    text += &layouts(version);
    let is_absent = |name: &str| {
        let is_compiler = name.starts_with("hiprtc") || name.starts_with("HIPRTC");
        let absent = (old && YOUNGER_THAN_5_2.contains(&name)) || (is_compiler && !version.hiprtc);
        assert_eq!(absent, !words.contains(name), "{name} in the headers of {}", version.name);
        absent || (old && OF_CPP_IN_5_2.contains(&name))
    };
    let mut count = 0;
    for (name, number) in numbers() {
        if is_absent(name) || ENDS.contains(&name) {
            continue;
        }
        let other = RENUMBERED.iter().find(|(other, _)| old && *other == name);
        let number = other.map_or(number, |(_, number)| *number);
        writeln!(text, "_Static_assert({name} == {number}, \"{name}\");").expect("text");
        count += 1;
    }
    for (name, declaration) in functions() {
        if is_absent(name) {
            continue;
        }
        let declaration = match name {
            "hipMemcpyHtoD" | "hipMemcpyHtoDAsync" if version.constant_sources => {
                declaration.replace("hipDeviceptr_t, void *", "hipDeviceptr_t, void const *")
            }
            _ => declaration,
        };
        writeln!(
            text,
            "_Static_assert(__builtin_types_compatible_p(__typeof__(&{name}), {declaration}), \
             \"{name}\");"
        )
        .expect("text");
        count += 1;
    }
    (text, count)
}

/// Returns the C compiler's messages for a text; empty if the text compiles.
fn compile(text: &str, headers: &Path) -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "abi-{}-{}.c",
        std::process::id(),
        text.len()
    ));
    std::fs::write(&file, text).expect("a file");
    let output = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-std=c11", "-fsyntax-only", "-w", "-D__HIP_PLATFORM_AMD__", "-I"])
        .args([&headers.join("include"), &file])
        .output()
        .expect("a C compiler");
    std::fs::remove_file(file).expect("the file");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), errors.is_empty(), "{errors}");
    errors
}

#[test]
fn bindings_are_those_of_every_version() {
    for version in &VERSIONS {
        let folder = format!("hip-headers/{}", version.name);
        let Some(headers) = fetched::fetched(&["headers", version.name], &folder, REQUIRED) else {
            continue;
        };
        let (text, count) = source(version, &words(&headers.join("include")));
        // Every number and function is checked, except those that the version lacks.
        assert!(count + 60 > numbers().len() + functions().len() && count > 350, "{count}");
        let errors = compile(&text, &headers);
        assert!(errors.is_empty(), "{}: {errors}", version.name);
        // Wrong assertions of each kind fail, so the compiler does check them.
        for (right, wrong) in [
            ("(hipErrorNotReady == 600,", "(hipErrorNotReady == 601,"),
            ("(sizeof(hipMemPoolProps) == 88,", "(sizeof(hipMemPoolProps) == 80,"),
            ("offsetof(hipMemcpy3DParms, dstPtr)", "offsetof(hipMemcpy3DParms, srcPtr)"),
            (
                "hipError_t (*)(hipStream_t, hipEvent_t, unsigned int)",
                "hipError_t (*)(hipStream_t, hipEvent_t, size_t)",
            ),
        ] {
            assert!(text.contains(right), "{}: {right}", version.name);
            let errors = compile(&text.replace(right, wrong), &headers);
            assert!(errors.contains("assertion failed"), "{}: {wrong}: {errors}", version.name);
        }
    }
}

#[test]
fn structs_have_the_sizes_that_were_observed() {
    assert_eq!(size_of::<sys::hipDeviceProp_tR0600>(), 1472);
    assert_eq!(offset_of!(sys::hipDeviceProp_tR0600, gcnArchName), 1160);
    assert_eq!(size_of::<sys::hipDeviceProp_tR0000>(), 792);
    assert_eq!(offset_of!(sys::hipDeviceProp_tR0000, gcnArchName), 396);
}

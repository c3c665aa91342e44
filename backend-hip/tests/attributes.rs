//! Compares the translation of device attributes with both vendors' headers: AMD's own headers for
//! programs that are compiled for NVIDIA, and CUDA's.
//!
//! The headers are downloaded; without them the test is skipped, unless
//! `PYGPU_REQUIRE_HIP_HEADERS=1`.

#![allow(clippy::print_stderr, reason = "a skip has its reason printed")]

#[path = "../src/attribute.rs"]
mod attribute;
#[path = "../src/bindings.rs"]
mod bindings;
mod fetched;
mod names;

use names::numbers;
use std::collections::BTreeMap;
use std::path::Path;

const REQUIRED: &str = "PYGPU_REQUIRE_HIP_HEADERS";

/// Reads `case hipDeviceAttributeX: cdattr = cudaDevAttrY;` in AMD's headers for NVIDIA.
fn amd_says(headers: &Path) -> BTreeMap<String, String> {
    let file = headers.join("include/hip/nvidia_detail/nvidia_hip_runtime_api.h");
    let text = std::fs::read_to_string(file).expect("AMD's headers for NVIDIA");
    let cases = text.split("case hipDeviceAttribute").skip(1);
    cases
        .filter_map(|case| {
            let (hip, rest) = case.split_once(':')?;
            let cuda = rest.trim().strip_prefix("cdattr = cudaDevAttr")?.split_once(';')?.0;
            Some((hip.to_owned(), cuda.to_owned()))
        })
        .collect()
}

/// Returns the names of CUDA's attributes, by number.
fn cuda_says(headers: &Path) -> BTreeMap<i32, String> {
    let file = headers.join("include/driver_types.h");
    let text = std::fs::read_to_string(file).expect("CUDA's headers");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("cudaDevAttr"));
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once('=')?;
            let number = rest.trim().split(|it: char| !it.is_ascii_digit()).next()?;
            Some((number.parse().ok()?, name.trim().to_owned()))
        })
        .collect()
}

/// Attributes whose names differ, in addition to those in AMD's own translation.
const RENAMED: &[(&str, &str)] = &[
    ("DeviceOverlap", "GpuOverlap"),
    ("PersistingL2CacheMaxSize", "MaxPersistingL2CacheSize"),
    ("AccessPolicyMaxWindowSize", "MaxAccessPolicyWindowSize"),
    ("ReservedSharedMemPerBlock", "ReservedSharedMemoryPerBlock"),
    // HIP kernels need not opt in to more.
    ("MaxSharedMemoryPerBlock", "MaxSharedMemoryPerBlockOptin"),
];

#[test]
fn attributes_are_translated_as_the_vendors_name_them() {
    let amd = fetched::fetched(&["headers", "5.2"], "hip-headers/5.2", REQUIRED);
    let cuda = fetched::fetched(&["cuda"], "cuda-headers", REQUIRED);
    let (Some(amd), Some(cuda)) = (amd, cuda) else { return };
    let (translation, cuda) = (amd_says(&amd), cuda_says(&cuda));
    assert!(translation.len() > 40 && cuda.len() > 100, "{translation:?} {cuda:?}");
    let hip_names: BTreeMap<u32, Vec<&str>> = numbers().into_iter().fold(
        BTreeMap::new(),
        |mut names: BTreeMap<u32, Vec<&str>>, (name, number)| {
            if let Some(name) = name.strip_prefix("hipDeviceAttribute") {
                names.entry(number).or_default().push(name);
            }
            names
        },
    );
    for (number, hip) in attribute::CUDA {
        let cuda_name = cuda[number].as_str();
        let agrees = hip_names[hip].iter().any(|hip_name| {
            hip_name.eq_ignore_ascii_case(cuda_name)
                || translation.get(*hip_name).is_some_and(|it| it == cuda_name)
                || RENAMED.contains(&(hip_name, cuda_name))
        });
        assert!(agrees, "{number}: {cuda_name} of CUDA, {:?} of HIP", hip_names[hip]);
    }
    // Every attribute that AMD translates is also translated here.
    for (hip, cuda_name) in &translation {
        let number = cuda.iter().find(|(_, name)| *name == cuda_name).expect("CUDA's name").0;
        let ours = attribute::of_hip(*number).unwrap_or_else(|| panic!("{cuda_name}"));
        assert!(hip_names[&(ours as u32)].contains(&hip.as_str()), "{hip} is not {ours}");
    }
}

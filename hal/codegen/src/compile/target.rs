//! Targets of compilation, and which devices can run code for them.

use hal::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A target of compilation, or the architecture of a device: `sm_90`, `compute_75`, `gfx90a:xnack-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// An NVIDIA GPU.
    Cuda {
        /// The compute capability.
        major: u32,
        /// The minor number of the compute capability.
        minor: u32,
        /// The suffix of code that uses features of a single architecture (`a`) or family (`f`).
        suffix: Option<char>,
    },
    /// PTX, which the driver compiles for an NVIDIA GPU of this compute capability or a newer one.
    Ptx {
        /// The compute capability.
        major: u32,
        /// The number after the point.
        minor: u32,
    },
    /// An AMD GPU.
    Hip {
        /// The compilers' name of the processor or of the generic target: `gfx90a`, `gfx11-generic`.
        processor: String,
        /// Features that are on or off, in alphabetical order. For a feature that is not listed,
        /// code runs with either setting.
        features: Vec<(String, bool)>,
    },
}

/// The accepted forms of a target, for messages.
pub const TARGETS: &str = "sm_ and a compute capability (sm_90), compute_ and one for PTX \
    (compute_75), gfx and a processor with its features (gfx90a:xnack-) or a generic target \
    (gfx11-generic)";

/// Sets of targets that have a name.
///
/// `release` is the code of published wheels, which have less than 20 MB. PTX is for every GPU since Turing; exact code
/// for Ampere and Ada (8.x) and for Hopper (9.0) accompanies it, because they are used most, and each further
/// architecture of NVIDIA's adds 2 MB. For AMD it has exact code for the GPUs that ROCm supports most widely, because ROCm before 6.3 loads no
/// generic code, and generic code for the others.
const SETS: [(&str, &str); 1] = [(
    "release",
    "compute_75 sm_80 sm_90 gfx942 gfx90a gfx1030 gfx1100 gfx1201 gfx9-generic gfx9-4-generic \
     gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic",
)];

/// AMD's generic targets with the processors that run their code: "Generic Processors" in LLVM's
/// User Guide for AMDGPU Backend (LLVM 21). Older versions of the guide list gfx940 and gfx941 also.
const GENERIC: [(&str, &[&str]); 6] = [
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx940", "gfx941", "gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    (
        "gfx10-3-generic",
        &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    ),
    (
        "gfx11-generic",
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

/// Features of AMD's processors on which code depends.
const FEATURES: [&str; 2] = ["sramecc", "xnack"];

/// NVIDIA's integrated GPUs. Their code does not run on other GPUs, nor other GPUs' code on them:
/// "binary compatibility is not supported between desktop and Tegra" (CUDA C++ Programming Guide).
const TEGRA: [(u32, u32); 6] = [(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)];

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Target> {
        let target = if let Some(capability) = text.strip_prefix("sm_") {
            cuda(capability)
        } else if let Some(capability) = text.strip_prefix("compute_") {
            match cuda(capability) {
                Some(Target::Cuda { major, minor, suffix: None }) => {
                    Some(Target::Ptx { major, minor })
                }
                _ => None,
            }
        } else {
            hip(text)
        };
        target.ok_or_else(|| {
            Error::invalid("target", format!("target is {text:?}; allowed are {TARGETS}"))
        })
    }
}

fn cuda(capability: &str) -> Option<Target> {
    let digits = capability.trim_end_matches(['a', 'f']);
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    let known = (1..=2).contains(&major.len()) && digits.bytes().all(|it| it.is_ascii_digit());
    let mut letters = capability[digits.len()..].chars();
    match (known, letters.next(), letters.next()) {
        (true, suffix, None) => {
            Some(Target::Cuda { major: major.parse().ok()?, minor: minor.parse().ok()?, suffix })
        }
        _ => None,
    }
}

fn hip(text: &str) -> Option<Target> {
    let mut parts = text.split(':');
    let processor = parts.next()?;
    let is_generic = GENERIC.iter().any(|(name, _)| *name == processor);
    if !is_generic && !is_processor(processor) {
        return None;
    }
    let mut features = Vec::new();
    for part in parts {
        let (name, sign) = part.split_at_checked(part.len().checked_sub(1)?)?;
        let on = match sign {
            "+" => true,
            "-" => false,
            _ => return None,
        };
        if !FEATURES.contains(&name) || features.iter().any(|(known, _)| known == name) {
            return None;
        }
        features.push((name.to_owned(), on));
    }
    features.sort();
    Some(Target::Hip { processor: processor.to_owned(), features })
}

/// Returns true for the name of a single processor.
fn is_processor(name: &str) -> bool {
    let Some(digits) = name.strip_prefix("gfx") else { return false };
    // Generation in decimal, then minor version and stepping of one hexadecimal digit each.
    let Some((generation, stepping)) =
        digits.len().checked_sub(2).and_then(|at| digits.split_at_checked(at))
    else {
        return false;
    };
    (1..=2).contains(&generation.len())
        && generation.bytes().all(|it| it.is_ascii_digit())
        && stepping.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for Target {
    /// Writes the target in the form that compilers accept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cuda { major, minor, suffix: None } => write!(f, "sm_{major}{minor}"),
            Target::Cuda { major, minor, suffix: Some(letter) } => {
                write!(f, "sm_{major}{minor}{letter}")
            }
            Target::Ptx { major, minor } => write!(f, "compute_{major}{minor}"),
            Target::Hip { processor, features } => {
                f.write_str(processor)?;
                features
                    .iter()
                    .try_for_each(|(name, on)| write!(f, ":{name}{}", if *on { '+' } else { '-' }))
            }
        }
    }
}

/// Suits a device better than all PTX and all generic code.
const MACHINE_CODE: u32 = 1 << 16;

impl Target {
    /// True if the code is PTX or generic code: others of its kind may suit a device better.
    pub fn is_generic(&self) -> bool {
        match self {
            Target::Cuda { .. } => false,
            Target::Ptx { .. } => true,
            Target::Hip { processor, .. } => !is_processor(processor),
        }
    }

    /// Returns how many of the same bytes code for both targets has, where 0 is few: 3 for an AMD processor's features,
    /// or for a generic target and its processors; 2 for AMD's processors of one generation; 1 for gfx11 and gfx12,
    /// and for NVIDIA's 8.x and 9.0.
    pub fn likeness(&self, other: &Target) -> u32 {
        let (a, b) = match (self, other) {
            (Target::Hip { processor: a, .. }, Target::Hip { processor: b, .. }) => (a, b),
            (Target::Cuda { major: a, .. }, Target::Cuda { major: b, .. }) => {
                return u32::from([[8, 9], [9, 8]].contains(&[*a, *b]));
            }
            _ => return 0,
        };
        let includes = |name: &str, processor: &str| {
            GENERIC.iter().any(|(it, all)| *it == name && all.contains(&processor))
        };
        let generation = |it: &str| {
            (9..=12).find(|generation| it.starts_with(&format!("gfx{generation}"))).unwrap_or(0)
        };
        match [generation(a), generation(b)] {
            _ if a == b || includes(a, b) || includes(b, a) => 3,
            [a, b] if a > 0 && a == b => 2,
            [11, 12] | [12, 11] => 1,
            _ => 0,
        }
    }

    /// Parses a list of targets separated by commas, semicolons or white space, and removes duplicates.
    /// `release` stands for a set of targets.
    ///
    /// # Errors
    /// `InvalidArgument` that names the invalid target and the accepted forms.
    pub fn parse_list(list: &str) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        let separates = |it: char| it == ',' || it == ';' || it.is_whitespace();
        for text in list.split(separates).filter(|text| !text.is_empty()) {
            let new = match SETS.iter().find(|(name, _)| *name == text) {
                Some((_, set)) => Target::parse_list(set)?,
                None => vec![text.parse()?],
            };
            for target in new {
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        Ok(targets)
    }

    /// Returns how well code for this target suits a device, where larger is better; `None` if the
    /// device cannot run it.
    ///
    /// NVIDIA's devices run code for the same major version and the same or an older minor version, and
    /// PTX of any older version. AMD's devices run code for their processor, or for a generic target that
    /// includes it, if each feature that is set in the code has the device's setting ("Target ID" in
    /// LLVM's User Guide for AMDGPU Backend).
    pub fn fit(&self, device: &Target) -> Option<u32> {
        match (self, device) {
            (
                Target::Cuda { major, minor, suffix },
                Target::Cuda { major: device_major, minor: device_minor, .. },
            ) => {
                let (code, device) = ((*major, *minor), (*device_major, *device_minor));
                let alone = suffix.is_some() || TEGRA.contains(&code) || TEGRA.contains(&device);
                let runs = code == device || (!alone && code.0 == device.0 && code.1 < device.1);
                runs.then(|| MACHINE_CODE + 2 * minor + u32::from(suffix.is_some()))
            }
            (
                Target::Ptx { major, minor },
                Target::Cuda { major: device_major, minor: device_minor, .. },
            ) => {
                let runs = (major, minor) <= (device_major, device_minor);
                runs.then_some(10 * major + minor)
            }
            (
                Target::Hip { processor, features },
                Target::Hip { processor: device_processor, features: device_features },
            ) => {
                let exact = processor == device_processor;
                let includes = |(name, all): &(&str, &[&str])| {
                    name == processor && all.contains(&device_processor.as_str())
                };
                let runs = (exact || GENERIC.iter().any(includes))
                    && features.iter().all(|feature| device_features.contains(feature));
                runs.then_some(if exact { MACHINE_CODE } else { 0 } + features.len() as u32)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn fit(code: &str, device: &str) -> Option<u32> {
        target(code).fit(&target(device))
    }

    #[test]
    fn targets_are_read_and_written_alike() {
        for text in [
            "sm_53",
            "sm_90",
            "sm_90a",
            "sm_100",
            "sm_120f",
            "compute_75",
            "gfx803",
            "gfx90a",
            "gfx1201",
        ] {
            assert_eq!(target(text).to_string(), text);
        }
        for (text, processors) in GENERIC {
            assert_eq!(target(text).to_string(), text);
            assert!(target(text).is_generic() && processors.iter().all(|it| is_processor(it)));
        }
        assert_eq!(target("gfx90a:xnack-").to_string(), "gfx90a:xnack-");
        assert_eq!(target("gfx90a:xnack-:sramecc+").to_string(), "gfx90a:sramecc+:xnack-");
        let capability = Target::Cuda { major: 12, minor: 1, suffix: None };
        assert_eq!(target("sm_121"), capability);
    }

    #[test]
    fn what_is_no_target_is_refused_with_what_is_allowed() {
        let refused = [
            "",
            "foo",
            "sm_",
            "sm_9",
            "sm_1000",
            "sm_9x",
            "sm_90aa",
            "sm_90b",
            "SM_90",
            "90",
            "gfx",
            "gfx9",
            "gfx90",
            "gfx90g",
            "gfx90A",
            "gfx10300",
            "gfx13-generic",
            "gfx9-generic:wave+",
            "compute_",
            "compute_90a",
            "release",
            "gfx90a:",
            "gfx90a:xnack",
            "gfx90a:wave+",
            "gfx90a:xnack+:xnack-",
            "gfx90a xnack-",
            "gfxé1",
            "smé",
        ];
        for text in refused {
            let error = text.parse::<Target>().expect_err(text);
            let detail = error.detail();
            assert!(detail.contains(&format!("{text:?}")) && detail.contains(TARGETS), "{detail}");
        }
    }

    #[test]
    fn lists_take_commas_semicolons_and_blanks() {
        let names = |list: &str| -> Vec<String> {
            Target::parse_list(list).expect(list).iter().map(Target::to_string).collect()
        };
        assert_eq!(
            names(" gfx90a ,sm_90;; gfx90a\tgfx90a:xnack- "),
            ["gfx90a", "sm_90", "gfx90a:xnack-"]
        );
        assert_eq!(names(" ; "), [""; 0]);
        let release = names("sm_80 release");
        assert_eq!(release[..2], ["sm_80", "compute_75"]);
        assert_eq!(release.iter().filter(|it| *it == "sm_80").count(), 1);
        // Every GPU that a driver of today supports runs some of it.
        for device in ["sm_75", "sm_86", "sm_87", "sm_89", "sm_103", "sm_121", "gfx950", "gfx1151"]
        {
            let fits = |code: &String| fit(code, device).is_some();
            assert!(release.iter().any(fits), "{device}");
        }
        assert!(Target::parse_list("gfx90a,foo").is_err());
    }

    #[test]
    fn nvidia_devices_run_code_of_their_major_version_and_no_newer_minor() {
        assert!(fit("sm_80", "sm_86") < fit("sm_86", "sm_86"));
        for (code, device) in [("sm_90", "sm_90"), ("sm_80", "sm_89"), ("sm_120", "sm_121")] {
            assert!(fit(code, device).is_some(), "{code} on {device}");
        }
        for (code, device) in [("sm_86", "sm_80"), ("sm_80", "sm_90"), ("sm_90", "sm_100")] {
            assert_eq!(fit(code, device), None, "{code} on {device}");
        }
        // Code for a single architecture, and integrated GPUs.
        assert!(fit("sm_90", "sm_90") < fit("sm_90a", "sm_90"));
        for (code, device) in [("sm_80", "sm_87"), ("sm_87", "sm_89"), ("sm_100a", "sm_103")] {
            assert_eq!(fit(code, device), None, "{code} on {device}");
        }
        assert!(fit("sm_87", "sm_87").is_some());
    }

    #[test]
    fn what_is_compiled_for_many_comes_after_exact_code() {
        assert!(fit("compute_90", "sm_90") < fit("sm_80", "sm_86"));
        assert!(fit("compute_75", "sm_90") < fit("compute_80", "sm_90"));
        for (code, device) in [("compute_75", "sm_121"), ("compute_75", "sm_87")] {
            assert!(fit(code, device).is_some(), "{code} on {device}");
        }
        assert_eq!(fit("compute_80", "sm_75"), None);
        let device = "gfx942:sramecc+:xnack-";
        assert!(fit("gfx9-4-generic:xnack-", device) < fit("gfx942", device));
        assert!(fit("gfx9-4-generic", device) < fit("gfx9-4-generic:xnack-", device));
        for (code, device) in [
            ("gfx9-4-generic", "gfx90a"),
            ("gfx9-4-generic:xnack+", device),
            ("gfx11-generic", "gfx1201"),
            ("gfx11-generic", "sm_90"),
            ("compute_75", "gfx1100"),
        ] {
            assert_eq!(fit(code, device), None, "{code} on {device}");
        }
    }

    #[test]
    fn targets_of_a_generation_are_alike() {
        for (a, b, likeness) in [
            ("gfx90a", "gfx90a:xnack-", 3),
            ("gfx942", "gfx9-4-generic", 3),
            ("gfx11-generic", "gfx1151", 3),
            ("gfx1201", "gfx12-generic", 3),
            ("gfx90a", "gfx942", 2),
            ("gfx1030", "gfx10-1-generic", 2),
            ("gfx1100", "gfx1201", 1),
            ("gfx12-generic", "gfx1100", 1),
            ("gfx90a", "gfx1030", 0),
            ("gfx1030", "gfx1100", 0),
            ("gfx803", "gfx801", 0),
            ("sm_80", "sm_90", 1),
            ("sm_90", "sm_100", 0),
            ("compute_75", "compute_75", 0),
        ] {
            assert_eq!(target(a).likeness(&target(b)), likeness, "{a} {b}");
            assert_eq!(target(b).likeness(&target(a)), likeness, "{b} {a}");
        }
    }

    #[test]
    fn amd_devices_run_code_whose_features_are_theirs() {
        let device = "gfx90a:sramecc+:xnack-";
        let names = ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"];
        let fits = names.map(|code| fit(code, device));
        assert!(fits.iter().all(Option::is_some) && fits.is_sorted(), "{fits:?}");
        for code in ["gfx90a:xnack+", "gfx90a:sramecc-:xnack-", "gfx908", "gfx90c", "sm_90"] {
            assert_eq!(fit(code, device), None, "{code}");
        }
        // A device with an unspecified setting only runs code that also leaves it unspecified.
        assert!(fit("gfx90a", "gfx90a").is_some());
        assert_eq!(fit("gfx90a:xnack-", "gfx90a"), None);
        assert!(fit("gfx1030", "gfx1030").is_some());
    }
}

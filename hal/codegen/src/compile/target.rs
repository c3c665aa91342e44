//! Targets of compilation, and which devices can run code for them.

use hal::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A target of compilation, or the architecture of a device: `sm_90`, `gfx90a:xnack-`.
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
    /// An AMD GPU.
    Hip {
        /// The compilers' name of the processor: `gfx90a`.
        processor: String,
        /// Features that are on or off, in alphabetical order. For a feature that is not listed,
        /// code runs with either setting.
        features: Vec<(String, bool)>,
    },
}

/// The accepted forms of a target, for messages.
pub const TARGETS: &str =
    "sm_ and a compute capability (sm_90), gfx and a processor with its features (gfx90a:xnack-)";

/// Features of AMD's processors on which code depends.
const FEATURES: [&str; 2] = ["sramecc", "xnack"];

/// NVIDIA's integrated GPUs. Their code does not run on other GPUs, nor other GPUs' code on them:
/// "binary compatibility is not supported between desktop and Tegra" (CUDA C++ Programming Guide).
const TEGRA: [(u32, u32); 6] = [(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)];

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Target> {
        let target = match text.split_at_checked(3) {
            Some(("sm_", capability)) => cuda(capability),
            Some(("gfx", _)) => hip(text),
            _ => None,
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
    // The generation in decimal, then the minor version and the stepping, one hexadecimal digit
    // each.
    let (generation, stepping) = processor.split_at_checked(processor.len().checked_sub(2)?)?;
    let generation = generation.strip_prefix("gfx")?;
    let hexadecimal = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    if !(1..=2).contains(&generation.len())
        || !generation.bytes().all(|it| it.is_ascii_digit())
        || !stepping.bytes().all(hexadecimal)
    {
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

impl fmt::Display for Target {
    /// Writes the target in the form that compilers accept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cuda { major, minor, suffix: None } => write!(f, "sm_{major}{minor}"),
            Target::Cuda { major, minor, suffix: Some(letter) } => {
                write!(f, "sm_{major}{minor}{letter}")
            }
            Target::Hip { processor, features } => {
                f.write_str(processor)?;
                features
                    .iter()
                    .try_for_each(|(name, on)| write!(f, ":{name}{}", if *on { '+' } else { '-' }))
            }
        }
    }
}

impl Target {
    /// Parses a list of targets separated by commas, semicolons or white space, and removes
    /// duplicates.
    ///
    /// # Errors
    /// `InvalidArgument` that names the invalid target and the accepted forms.
    pub fn parse_list(list: &str) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        let separates = |it: char| it == ',' || it == ';' || it.is_whitespace();
        for text in list.split(separates).filter(|text| !text.is_empty()) {
            let target = text.parse()?;
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    /// Returns how well code for this target suits a device, where larger is better; `None` if the
    /// device cannot run it.
    ///
    /// NVIDIA's devices run code for the same major version and the same or an older minor version.
    /// AMD's devices run code for their processor if each feature that is set in the code has the
    /// device's setting ("Target ID" in LLVM's User Guide for AMDGPU Backend).
    pub fn fit(&self, device: &Target) -> Option<u32> {
        match (self, device) {
            (
                Target::Cuda { major, minor, suffix },
                Target::Cuda { major: device_major, minor: device_minor, .. },
            ) => {
                let (code, device) = ((*major, *minor), (*device_major, *device_minor));
                let alone = suffix.is_some() || TEGRA.contains(&code) || TEGRA.contains(&device);
                let runs = code == device || (!alone && code.0 == device.0 && code.1 < device.1);
                runs.then(|| 2 * minor + u32::from(suffix.is_some()))
            }
            (
                Target::Hip { processor, features },
                Target::Hip { processor: device_processor, features: device_features },
            ) => {
                let runs = processor == device_processor
                    && features.iter().all(|feature| device_features.contains(feature));
                runs.then_some(features.len() as u32)
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
        for text in ["sm_53", "sm_90", "sm_90a", "sm_100", "sm_120f", "gfx803", "gfx90a", "gfx1201"]
        {
            assert_eq!(target(text).to_string(), text);
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

//! Reading of settings from environment variables, with one form of error.

use crate::error::{Error, Result};
use std::ffi::OsString;

/// The values that [`bytes`] accepts, for messages.
pub const BYTES: &str = "whole numbers above 0 with K, M, G or T behind";

/// The values that [`switch`] accepts, for messages.
pub const SWITCH: &str = "1, on, true, yes and 0, off, false, no";

/// Returns an environment variable that names a file or folder with code. It counts as unset if the
/// program has more rights than the user that started it (setuid, setgid, capabilities), because
/// the user controls the environment and so would control the code.
pub fn trusted(name: &str) -> Option<OsString> {
    trusted_if(!has_more_rights(), name)
}

fn trusted_if(trusted: bool, name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|_| trusted)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_more_rights() -> bool {
    // SAFETY: the call reads a value that the kernel passed when the program was started.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn has_more_rights() -> bool {
    // SAFETY: these calls have no preconditions.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}

#[cfg(not(unix))]
fn has_more_rights() -> bool {
    false
}

/// Parses the value of the variable `name`; `None` if it is unset or blank. `parse` returns `None`
/// for text that is not allowed.
///
/// # Errors
/// `InvalidArgument` that names the variable, its value and the allowed values.
pub fn parse<T>(
    name: &str,
    value: Option<OsString>,
    allowed: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let value = value.unwrap_or_default();
    let text = value.to_string_lossy();
    if text.trim().is_empty() {
        return Ok(None);
    }
    parse(text.trim())
        .map(Some)
        .ok_or_else(|| Error::invalid("open", format!("{name} is {text:?}; allowed are {allowed}")))
}

/// Parses a number of bytes above 0: `4096`, `64M`, `2 GiB`.
pub fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    let number: usize = digits.trim_end().parse().ok().filter(|&n| n > 0)?;
    number.checked_mul(1 << shift)
}

/// Parses an on-off setting (`1`, `on`, `true`, `yes`, or `0`, `off`, `false`, `no`); `None` for
/// any other text.
pub fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_more_rights_trusts_no_variable() {
        assert!(!has_more_rights());
        assert_eq!(trusted("PATH"), std::env::var_os("PATH"));
        assert!(trusted_if(true, "PATH").is_some());
        assert_eq!(trusted_if(false, "PATH"), None);
    }

    #[test]
    fn sizes_are_read_with_their_suffix() {
        assert_eq!(bytes("123"), Some(123));
        assert_eq!(bytes("64M"), Some(64 << 20));
        assert_eq!(bytes("2 GiB"), Some(2 << 30));
        assert_eq!(bytes("1t"), Some(1 << 40));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "M", "-1", "0", "1.5G", "12X", "99999999999999999999", "9999999999T"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn switches_know_both_sides() {
        assert_eq!(switch("Off"), Some(false));
        assert_eq!(switch("1"), Some(true));
        assert_eq!(switch("2"), None);
    }

    #[test]
    fn a_bad_value_names_the_variable() {
        let error = parse("PYGPU_X", Some("12X".into()), BYTES, bytes).expect_err("no size");
        assert_eq!(error.detail(), format!("PYGPU_X is \"12X\"; allowed are {BYTES}"));
        assert_eq!(parse("PYGPU_X", Some("  ".into()), BYTES, bytes).expect("unset"), None);
        assert_eq!(parse("PYGPU_X", None, BYTES, bytes).expect("unset"), None);
    }
}

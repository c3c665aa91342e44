//! Settings of the host backend, read from the environment once.

use hal::{Error, Result};
use std::env;

/// Memory and threads that the host device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Bytes of memory in all.
    pub memory: usize,
    /// Bytes of freed memory kept for reuse at most.
    pub cache: usize,
    /// Threads that large operations use.
    pub threads: usize,
}

impl HostConfig {
    /// The settings of the environment: `PYGPU_HOST_MEMORY` (bytes, or with a suffix K, M, G
    /// or T; default: the memory of the machine), `PYGPU_HOST_CACHE` (likewise; default: an
    /// eighth of the memory, 1 GiB at most), `PYGPU_HOST_THREADS` (default: the cores that
    /// the process may use).
    ///
    /// # Errors
    /// `InvalidArgument` that names the variable and its value if one cannot be read.
    pub fn from_environment() -> Result<HostConfig> {
        let memory = setting("PYGPU_HOST_MEMORY", parse_bytes)?.unwrap_or_else(physical_memory);
        let cache =
            setting("PYGPU_HOST_CACHE", parse_bytes)?.unwrap_or_else(|| (memory / 8).min(1 << 30));
        let threads = setting("PYGPU_HOST_THREADS", |text| {
            text.parse().ok().filter(|&threads| (1..=4096).contains(&threads))
        })?
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        Ok(HostConfig { memory, cache, threads })
    }
}

fn setting(name: &'static str, parse: impl Fn(&str) -> Option<usize>) -> Result<Option<usize>> {
    let Some(value) = env::var_os(name) else {
        return Ok(None);
    };
    let text = value.to_string_lossy();
    if text.trim().is_empty() {
        return Ok(None);
    }
    parse(text.trim()).map(Some).ok_or_else(|| {
        Error::invalid(
            "open",
            format!(
                "{name} is {text:?}; allowed are whole numbers above 0{}",
                if name == "PYGPU_HOST_THREADS" {
                    " up to 4096"
                } else {
                    " with K, M, G or T behind"
                }
            ),
        )
    })
}

fn parse_bytes(text: &str) -> Option<usize> {
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

fn physical_memory() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: sysconf only reads; it answers -1 for what it does not know.
        let (pages, page) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        if pages > 0 && page > 0 {
            return (pages as usize).saturating_mul(page as usize);
        }
    }
    8 << 30
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_are_read_with_their_suffix() {
        assert_eq!(parse_bytes("123"), Some(123));
        assert_eq!(parse_bytes("64M"), Some(64 << 20));
        assert_eq!(parse_bytes("2 GiB"), Some(2 << 30));
        assert_eq!(parse_bytes("1t"), Some(1 << 40));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "M", "-1", "0", "1.5G", "12X", "99999999999999999999", "9999999999T"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}

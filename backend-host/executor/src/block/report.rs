//! Describes waiting threads in errors.

use super::{Block, Place};
use std::ffi::CStr;
use std::fmt::Write as _;

impl Block {
    /// Describes which threads wait at which place, in a block in which no thread can continue.
    pub(crate) fn describe_waits(&self) -> String {
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for thread in 0..self.threads {
            let (warp, bit) = (&self.warps[self.warp_of(thread)], self.bit(thread));
            let wait = &self.waits[thread as usize];
            let what = if warp.at_barrier & bit != 0 {
                format!("a barrier at {}", text_of(wait.place))
            } else if warp.meeting & bit != 0 {
                format!("lanes {:#x} of their warp at {}", wait.lanes, text_of(wait.place))
            } else {
                continue;
            };
            match groups.iter_mut().find(|(known, _)| *known == what) {
                Some((_, threads)) => threads.push(thread),
                None => groups.push((what, vec![thread])),
            }
        }
        let mut text = format!("{} of {} threads have returned", self.returned, self.threads);
        for (what, threads) in groups.iter().take(8) {
            let _ = write!(text, "; {} wait for {what}", ranges(threads));
        }
        if groups.len() > 8 {
            let _ = write!(text, "; and {} more groups wait", groups.len() - 8);
        }
        text
    }
}

/// Formats a place as `file:line`.
pub(crate) fn text_of((file, line): Place) -> String {
    if file.is_null() {
        return format!("line {line}");
    }
    // SAFETY: the file is a literal of a loaded unit.
    format!("{}:{line}", unsafe { CStr::from_ptr(file) }.to_string_lossy())
}

/// Formats increasing thread numbers, as in `threads 0 to 31, 40`.
fn ranges(threads: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &thread in threads {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == thread => *last = thread,
            _ => parts.push((thread, thread)),
        }
    }
    let shown = parts.iter().take(6).map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    });
    let text = shown.collect::<Vec<_>>().join(", ");
    let more = if parts.len() > 6 { ", ..." } else { "" };
    format!("{} {text}{more}", if threads.len() == 1 { "thread" } else { "threads" })
}

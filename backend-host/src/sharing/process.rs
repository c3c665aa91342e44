//! Identifies a process even if its ID is reused later.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A process: its ID and its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) id: u32,
    /// The start time, in clock ticks since the machine started.
    pub(crate) start: u64,
}

impl ProcessIdentity {
    /// Returns the identity of this process, or `None` if the system does not report it.
    pub(crate) fn own() -> Option<ProcessIdentity> {
        // Cached. A forked child has another ID and looks it up again.
        static ID: AtomicU32 = AtomicU32::new(0);
        static START: AtomicU64 = AtomicU64::new(0);
        let id = std::process::id();
        if ID.load(Ordering::Acquire) == id {
            return Some(ProcessIdentity { id, start: START.load(Ordering::Relaxed) });
        }
        let own = ProcessIdentity::of(id)?;
        START.store(own.start, Ordering::Relaxed);
        ID.store(id, Ordering::Release);
        Some(own)
    }

    /// Returns the identity of a process, or `None` if it has ended.
    pub(crate) fn of(id: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity { id, start: start_of(id)? })
    }

    /// Returns true while the process is running.
    pub(crate) fn is_alive(self) -> bool {
        ProcessIdentity::of(self.id) == Some(self)
    }
}

/// Returns the start time of a process. Returns `None` if it does not exist, or has ended and waits for its
/// parent.
fn start_of(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may contain any characters, including parentheses.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // Field 22 of proc_pid_stat(5). The state is field 3.
    fields.nth(18)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::ProcessIdentity;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let own = ProcessIdentity::own().expect("this process");
        assert!(own.is_alive());
        assert!(!ProcessIdentity { start: own.start + 1, ..own }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let other = ProcessIdentity::of(child.id()).expect("the child's");
        assert!(other.is_alive());
        child.kill().expect("it runs");
        while other.is_alive() {
            std::thread::yield_now();
        }
        child.wait().expect("it has ended");
        assert!(!other.is_alive());
    }
}

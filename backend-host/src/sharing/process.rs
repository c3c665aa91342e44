//! Which process is meant, though its number may be another's later.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A process: its number, and when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    pub(crate) id: u32,
    /// Clock ticks since the machine started.
    pub(crate) start: u64,
}

impl ProcessIdentity {
    /// Returns that of this process; `None` where the system does not tell it.
    pub(crate) fn own() -> Option<ProcessIdentity> {
        // Looked up once. A forked child has another number, so it looks again.
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

    /// Returns that of a process; `None` if it has ended.
    pub(crate) fn of(id: u32) -> Option<ProcessIdentity> {
        Some(ProcessIdentity { id, start: start_of(id)? })
    }

    /// Returns true while the process has not ended.
    pub(crate) fn is_alive(self) -> bool {
        ProcessIdentity::of(self.id) == Some(self)
    }
}

/// When a process started; `None` for one that there is not, or that has ended and waits for its
/// parent.
fn start_of(id: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may have any characters, these among them.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // Field 22 of proc_pid_stat(5), of which the state is the third.
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

//! Managed memory over a reset of the device. The driver takes the addresses away, which numpy's arrays still have:
//! ordinary memory with the same bytes takes their place.

use hal::locks::{LEAF, Ranked};
use std::collections::BTreeMap;

/// The managed memory of a device, and what resets have left of earlier one.
#[derive(Debug, Default)]
pub(super) struct ManagedRanges {
    /// Bytes by address.
    live: Ranked<BTreeMap<u64, usize>, LEAF>,
    detached: Ranked<Vec<Detached>, LEAF>,
}

/// Ordinary pages in the place of managed memory, and the ranges in them that are not freed.
#[derive(Debug)]
struct Detached {
    start: u64,
    bytes: usize,
    ranges: Vec<u64>,
}

/// What the pages held before the reset.
#[derive(Debug)]
pub(super) struct Saved {
    pages: Detached,
    #[cfg(target_os = "linux")]
    copy: Option<std::fs::File>,
}

const PAGE: u64 = 4096;

impl ManagedRanges {
    pub(super) fn add(&self, address: u64, bytes: usize) {
        self.live.lock().insert(address, bytes);
    }

    /// Forgets a range that is about to be freed.
    pub(super) fn remove(&self, address: u64) {
        self.live.lock().remove(&address);
    }

    /// Copies all bytes, for [`ManagedRanges::restore`] behind the reset.
    pub(super) fn save(&self) -> Vec<Saved> {
        let live = std::mem::take(&mut *self.live.lock());
        let mut all: Vec<Detached> = Vec::new();
        for (address, bytes) in live {
            let start = address / PAGE * PAGE;
            let end = (address + bytes as u64).next_multiple_of(PAGE);
            match all.last_mut() {
                // Small ranges share pages.
                Some(last) if start <= last.start + last.bytes as u64 => {
                    last.bytes = last.bytes.max((end - last.start) as usize);
                    last.ranges.push(address);
                }
                _ => all.push(Detached {
                    start,
                    bytes: (end - start) as usize,
                    ranges: vec![address],
                }),
            }
        }
        all.into_iter().map(Saved::of).collect()
    }

    /// Puts ordinary memory in the place of what the driver has taken away.
    pub(super) fn restore(&self, saved: Vec<Saved>) {
        let back = saved.into_iter().filter_map(Saved::put_back);
        let mut back = back.collect::<Vec<_>>();
        self.detached.lock().append(&mut back);
    }

    /// Frees what a reset has left of a range, which nobody uses any longer.
    pub(super) fn free_detached(&self, address: u64) {
        let mut detached = self.detached.lock();
        for pages in detached.iter_mut() {
            pages.ranges.retain(|range| *range != address);
        }
        let ended = detached.extract_if(.., |pages| pages.ranges.is_empty());
        let ended = ended.collect::<Vec<_>>();
        drop(detached);
        ended.iter().for_each(Detached::unmap);
    }
}

#[cfg(target_os = "linux")]
impl Saved {
    /// The system reads the pages, for an access to memory of a device that has failed may be a fault. What it cannot
    /// read is zeros.
    fn of(pages: Detached) -> Saved {
        use std::os::fd::{AsRawFd, FromRawFd};
        // SAFETY: the name ends with a zero.
        let file = unsafe { libc::memfd_create(c"pygpu-managed".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: the descriptor was made above, and nobody else has it.
        let file = (file >= 0).then(|| unsafe { std::fs::File::from_raw_fd(file) });
        let copy = file.filter(|file| file.set_len(pages.bytes as u64).is_ok());
        if let Some(file) = &copy {
            let (mut done, descriptor) = (0, file.as_raw_fd());
            while done < pages.bytes {
                let from = std::ptr::with_exposed_provenance((pages.start as usize) + done);
                let left = pages.bytes - done;
                // SAFETY: the system checks the range, which lies in managed memory.
                let wrote = unsafe { libc::pwrite(descriptor, from, left, done as libc::off_t) };
                let Some(wrote) = usize::try_from(wrote).ok().filter(|wrote| *wrote > 0) else {
                    log::warn!(
                        "managed memory at {:#x} could not be kept over a reset",
                        pages.start
                    );
                    break;
                };
                done += wrote;
            }
        }
        Saved { pages, copy }
    }

    fn put_back(self) -> Option<Detached> {
        use std::os::fd::AsRawFd;
        let Saved { pages, copy } = self;
        let place = std::ptr::with_exposed_provenance_mut(pages.start as usize);
        let (file, flags) = match &copy {
            Some(file) => (file.as_raw_fd(), libc::MAP_PRIVATE),
            None => (-1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        };
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_FIXED_NOREPLACE);
        // SAFETY: nothing that is mapped is replaced; the addresses are those of memory that is gone.
        let mapped = unsafe { libc::mmap(place, pages.bytes, access, flags, file, 0) };
        if mapped == place {
            return Some(pages);
        }
        if mapped != libc::MAP_FAILED {
            // SAFETY: an old system has mapped it elsewhere, just now.
            unsafe { libc::munmap(mapped, pages.bytes) };
        }
        log::warn!("managed memory at {:#x} could not be kept over a reset", pages.start);
        None
    }
}

#[cfg(target_os = "linux")]
impl Detached {
    fn unmap(&self) {
        let place = std::ptr::with_exposed_provenance_mut(self.start as usize);
        // SAFETY: the pages were mapped in the place of ranges that all are freed by now.
        unsafe { libc::munmap(place, self.bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Saved {
    fn of(pages: Detached) -> Saved {
        Saved { pages }
    }

    fn put_back(self) -> Option<Detached> {
        log::warn!("managed memory at {:#x} went with a reset", self.pages.start);
        None
    }
}

#[cfg(not(target_os = "linux"))]
impl Detached {
    fn unmap(&self) {}
}

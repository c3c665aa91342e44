//! Random requests against a model: blocks never overlap, keep their contents, and leave nothing behind.

use super::*;
use crate::memory::segments::state::{Home, OWN};
use crate::sharing::segment::page_size;
use hal::ErrorKind;

/// Counts the file descriptors of this process that are segments.
fn open_segments() -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").expect("the process's descriptors");
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|link| link.to_string_lossy().starts_with("/memfd:pygpu-"))
        .count()
}

/// A small random number generator with a fixed seed: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

/// Writes a number to both ends of a block.
fn stamp(address: usize, bytes: usize, number: u8) {
    for at in [address, address + bytes - 1] {
        // SAFETY: the block has this many bytes, and only this test uses it.
        unsafe { (at as *mut u8).write_volatile(number) };
    }
}

fn is_stamped(address: usize, bytes: usize, number: u8) -> bool {
    // SAFETY: as above.
    [address, address + bytes - 1].iter().all(|&at| unsafe { (at as *const u8).read() } == number)
}

#[test]
fn random_requests_agree_with_a_model() {
    const LIMIT: usize = 24 << 20;
    let mut random = Random(20_261_122);
    let segments = Segments::default();
    let mut live: Vec<(usize, usize, u8, bool)> = Vec::new();
    for step in 0..6000 {
        let grows = live.len() < 300 && random.below(100) < 52;
        if grows || live.is_empty() {
            let bytes = match random.below(20) {
                0 => OWN - page_size() + random.below(3) - 1,
                1 => OWN + random.below(OWN),
                2..6 => 1 + random.below(300_000),
                _ => 1 + random.below(9000),
            };
            let address = segments.allocate(bytes).expect("the system has memory");
            assert_eq!(address % page_size(), 0);
            for &(other, size, ..) in &live {
                assert!(address + bytes <= other || other + size <= address, "{step}: an overlap");
            }
            stamp(address, bytes, step as u8);
            live.push((address, bytes, step as u8, false));
        } else {
            let at = random.below(live.len());
            let (address, bytes, number, exported) = live[at];
            assert!(is_stamped(address, bytes, number), "{step}: another block wrote here");
            let inside = address + random.below(bytes);
            assert_eq!(segments.allocation(inside), Some((address as u64, bytes)));
            if !exported && random.below(10) == 0 {
                let handle = segments.export("test", inside, Kind::Memory).expect("it is plain");
                assert_eq!(segments.export("test", address, Kind::Memory).ok(), Some(handle));
                live[at].3 = true;
                continue;
            }
            live.swap_remove(at);
            // SAFETY: the test's own block.
            assert!(unsafe { segments.free(address, LIMIT) });
            assert_eq!(segments.allocation(inside), None);
            // SAFETY: the call is refused.
            assert!(!unsafe { segments.free(address, LIMIT) }, "{step}: freed twice");
        }
        let kept = segments.kept();
        assert!(kept <= LIMIT, "{step}: {kept} bytes are kept");
        if random.below(500) == 0 {
            let wanted = random.below(LIMIT);
            let freed = segments.release(wanted);
            assert_eq!(segments.kept(), kept - freed);
            assert!(freed >= wanted.min(kept));
        }
        assert!(live.iter().all(|&(address, bytes, number, _)| is_stamped(address, bytes, number)));
    }
    for (address, ..) in live {
        // SAFETY: as above.
        assert!(unsafe { segments.free(address, LIMIT) });
    }
    segments.release(usize::MAX);
    let state = segments.state.lock();
    assert!(state.kept == 0 && state.common.is_empty() && state.free.is_empty());
    assert!(state.by_size.is_empty() && state.blocks.is_empty());
}

#[test]
fn many_small_blocks_need_one_file_and_exported_ones_are_not_used_again() {
    let segments = Segments::default();
    let blocks: Vec<usize> = (0..2000).filter_map(|_| segments.allocate(100)).collect();
    assert_eq!((blocks.len(), segments.state.lock().common.len()), (2000, 1));
    segments.export("test", blocks[7], Kind::Memory).expect("it is plain");
    stamp(blocks[7], 100, 9);
    // SAFETY: the test's own block.
    assert!(unsafe { segments.free(blocks[7], usize::MAX) });
    // SAFETY: the range stays mapped while its segment has other blocks.
    assert_eq!(unsafe { (blocks[7] as *const u8).read_volatile() }, 0, "its page is freed");
    for _ in 0..100 {
        assert_ne!(segments.allocate(100), Some(blocks[7]));
    }
    // SAFETY: as above.
    assert!(unsafe { segments.free(blocks[8], usize::MAX) });
    assert_eq!(segments.allocate(100), Some(blocks[8]), "one that was not exported is");
}

#[test]
fn files_are_closed_with_their_blocks() {
    // Other tests have their own segments meanwhile, so this test identifies its own by their nonce.
    let segments = Segments::default();
    let before = open_segments();
    let blocks: Vec<usize> = (0..20).filter_map(|_| segments.allocate(OWN)).collect();
    assert!(blocks.len() == 20 && open_segments() >= before.min(20));
    let files = |segments: &Segments| {
        let state = segments.state.lock();
        let own = state.blocks.values().filter(|block| matches!(block.home, Home::Own(_))).count();
        own + state.own.values().map(Vec::len).sum::<usize>() + state.common.len()
    };
    assert_eq!(files(&segments), 20);
    for block in blocks {
        // SAFETY: the test's own block.
        assert!(unsafe { segments.free(block, 8 << 20) });
    }
    assert_eq!(files(&segments), 1, "one fits the limit");
    segments.release(1);
    assert_eq!(files(&segments), 0);
}

#[test]
fn addresses_that_are_none_and_handles_of_this_process_are_refused() {
    let segments = Segments::default();
    let block = segments.allocate(64).expect("the system has memory");
    let refused = segments.export("test", block + 64, Kind::Memory).expect_err("behind it");
    assert!(refused.detail().contains("plain memory"), "{refused}");
    let handle = segments.export("test", block, Kind::Memory).expect("it is plain");
    let refused = segments.open("test", &handle, Kind::Memory).expect_err("its own");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.detail().contains("this process"), "{refused}");
    // SAFETY: the call is refused.
    assert!(!unsafe { segments.close(block) });
}

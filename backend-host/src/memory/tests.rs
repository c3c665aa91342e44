//! Tests of kept memory, address lookup, zeroed memory, and the capacity.

use super::block::{BEHIND, FRONT, LARGE, block_size};
use super::*;

#[test]
fn what_is_kept_is_counted_and_goes_when_asked_to() -> Result<()> {
    let memory = Memory::new(1 << 30, 1 << 30);
    let sizes = [1, 64, 100, 5000, 1 << 19, LARGE, 3 << 20, 20 << 20];
    let blocks = sizes.map(|bytes| memory.allocate(bytes));
    assert_eq!(memory.kept(), 0);
    for (block, bytes) in blocks.into_iter().zip(sizes) {
        // SAFETY: the blocks come from the allocations above.
        unsafe { memory.free(block?, bytes) };
    }
    let all: usize = sizes.map(block_size).into_iter().sum();
    assert_eq!(memory.kept(), all);
    memory.trim(all);
    assert_eq!(memory.kept(), all);
    memory.trim(all - 1);
    assert_eq!(memory.kept(), all - block_size(20 << 20));
    memory.trim(block_size(5000) * 2);
    assert!(memory.kept() <= block_size(5000) * 2 && memory.kept() > 0);
    memory.trim(0);
    assert_eq!(memory.kept(), 0);
    assert!(memory.blocks.lock().is_empty());
    Ok(())
}

#[test]
fn an_address_belongs_to_the_allocation_that_is_in_use_there() -> Result<()> {
    let memory = Memory::new(1 << 30, 1 << 30);
    for bytes in [1, 65, 1000, LARGE - 1, LARGE + 1, 5 << 20] {
        let start = memory.allocate(bytes)?;
        let (end, whole) = (start + bytes as u64, Some((start, bytes)));
        assert_eq!([start, end - 1].map(|at| memory.allocation(at)), [whole; 2], "{bytes}");
        assert_eq!([start - 1, end].map(|at| memory.allocation(at)), [None; 2], "{bytes}");
        // SAFETY: the block comes from the allocation above.
        unsafe { memory.free(start, bytes) };
        assert_eq!(memory.allocation(start), None, "{bytes}, freed");
        memory.trim(0);
        assert_eq!(memory.allocation(start), None, "{bytes}, given back");
    }
    let pages = memory.allocate_pages(5000)?;
    assert_eq!(memory.allocation(pages + 4999), Some((pages, 5000)));
    assert_eq!(memory.allocation(pages + 5000), None);
    // SAFETY: as above.
    unsafe { memory.free_pages(pages, 5000) };
    assert_eq!(memory.allocation(pages), None);
    Ok(())
}

#[test]
fn what_is_written_a_little_beside_a_block_harms_no_other_one() -> Result<()> {
    let memory = Memory::new(1 << 30, 1 << 30);
    for bytes in [1, 32, 1000, LARGE - 1, LARGE, 5 << 20] {
        let blocks = [memory.allocate(bytes)?, memory.allocate(bytes)?];
        for block in blocks {
            let front = FRONT - size_of::<usize>();
            // SAFETY: the block's layout has room for its margins.
            unsafe {
                let start = (block as *mut u8).sub(front);
                start.write_bytes(7, front + block_size(bytes) + BEHIND);
            }
        }
        for block in blocks {
            assert_eq!(memory.allocation(block), Some((block, bytes)), "{bytes}");
            assert_eq!(memory.allocation(block + bytes as u64), None, "{bytes}");
            // SAFETY: the block comes from the allocation above.
            unsafe { memory.free(block, bytes) };
        }
        memory.trim(0);
    }
    Ok(())
}

/// The first blocks are as far apart as large ones; the others are closer together.
#[test]
fn many_small_blocks_keep_their_distance_and_are_found() -> Result<()> {
    let memory = Memory::new(1 << 30, 1 << 30);
    let sizes = |it: usize| [16, 64, 100, 1000, 4096][it % 5];
    let blocks: Vec<u64> =
        (0..20_000).map(|it| memory.allocate(sizes(it))).collect::<Result<_>>()?;
    // SAFETY: writes only a block and unused bytes on both sides: the shortest margin on the left, and a
    // margin on the right. In chunks with more blocks, the right margin may contain other blocks, which are
    // written later.
    let write = |it: usize, by: u8, margins: [usize; 2]| unsafe {
        let [front, behind] = margins;
        (blocks[it] as *mut u8).sub(front).write_bytes(by, front + sizes(it) + behind);
    };
    let read = |it: usize| {
        // SAFETY: the allocation has this many bytes.
        unsafe { std::slice::from_raw_parts(blocks[it] as *const u8, sizes(it)) }
    };
    (0..blocks.len()).for_each(|it| write(it, 1, [FRONT - 8, BEHIND]));
    for (it, &start) in blocks.iter().enumerate() {
        let bytes = sizes(it);
        for at in [start, start + bytes as u64 - 1] {
            assert_eq!(memory.allocation(at), Some((start, bytes)));
        }
        assert_eq!([start - 1, start + bytes as u64].map(|at| memory.allocation(at)), [None; 2]);
        write(it, it as u8, [0, 0]);
    }
    // For half of the blocks, to the right up to the minimum distance between blocks.
    (0..blocks.len()).step_by(2).for_each(|it| write(it, it as u8, [0, 1000]));
    for it in 0..blocks.len() {
        assert!(read(it).iter().all(|byte| *byte == it as u8), "{it}");
    }
    for (it, block) in blocks.iter().enumerate() {
        // SAFETY: the block comes from the allocation above.
        unsafe { memory.free(*block, sizes(it)) };
        assert_eq!(memory.allocation(*block), None);
    }
    memory.trim(0);
    assert!(memory.blocks.lock().is_empty());
    assert_eq!(memory.wide().load(Ordering::Relaxed), 0);
    Ok(())
}

/// Other tests of this process allocate memory meanwhile.
#[cfg(target_os = "linux")]
#[test]
fn many_small_blocks_share_pages() -> Result<()> {
    let pages = || -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").expect("the process's memory");
        text.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a number")
    };
    let (memory, before) = (Memory::new(1 << 30, 1 << 30), pages());
    let blocks: Vec<u64> = (0..100_000).map(|_| memory.allocate(16)).collect::<Result<_>>()?;
    // SAFETY: each block has this many bytes.
    blocks.iter().for_each(|&it| unsafe { (it as *mut u8).write_bytes(1, 16) });
    let pages = pages().saturating_sub(before);
    assert!(pages < 60_000, "{pages} pages for {} blocks", blocks.len());
    // SAFETY: the blocks come from the allocations above.
    blocks.into_iter().for_each(|it| unsafe { memory.free(it, 16) });
    Ok(())
}

#[test]
fn large_blocks_are_zero_though_they_were_used() -> Result<()> {
    let memory = Memory::new(1 << 30, 1 << 30);
    assert_eq!(memory.allocate_zeroed(1000)?, None);
    for bytes in [4 << 20, (5 << 20) + 3, 40_000_000] {
        let used = memory.allocate(bytes)?;
        // SAFETY: the allocation has this many bytes.
        unsafe { (used as *mut u8).write_bytes(7, bytes) };
        // SAFETY: the block comes from the allocation above.
        unsafe { memory.free(used, bytes) };
        let zeroed = memory.allocate_zeroed(bytes)?;
        assert!(cfg!(not(target_os = "linux")) || zeroed == Some(used), "{bytes}: a kept block");
        if let Some(address) = zeroed {
            // SAFETY: the allocation has this many bytes.
            let contents = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
            assert!(contents.iter().all(|&byte| byte == 0), "{bytes}");
            // SAFETY: as above.
            unsafe { memory.free(address, bytes) };
        }
    }
    Ok(())
}

/// Tools that watch the allocator thus detect accesses beyond a block.
#[test]
fn blocks_have_their_own_bytes_where_nothing_is_kept() -> Result<()> {
    let memory = Memory::new(1 << 30, 0);
    for bytes in [1, 100, LARGE, 5 << 20] {
        let blocks = [memory.allocate(bytes)?, memory.allocate_plain(bytes)?];
        for start in blocks {
            assert_eq!(memory.allocation(start + bytes as u64 - 1), Some((start, bytes)));
            assert_eq!(memory.allocation(start + bytes as u64), None);
        }
        // SAFETY: the blocks come from the allocations above.
        unsafe {
            memory.free(blocks[0], bytes);
            memory.free_plain(blocks[1], bytes);
        }
        assert_eq!((memory.kept(), memory.used()), (0, 0));
        assert!(memory.blocks.lock().is_empty());
    }
    assert_eq!(memory.allocate_zeroed(5 << 20)?, None);
    Ok(())
}

#[test]
fn the_capacity_holds_and_freed_memory_is_there_again() -> Result<()> {
    let memory = Memory::new(1 << 20, 1 << 20);
    let block = memory.allocate(1 << 19)?;
    let refused = memory.allocate((1 << 19) + 1);
    let text = refused.expect_err("one byte more than is left").to_string();
    for part in ["524289 bytes", "524288 bytes (512.0 KiB) are used", "available of 1048576"] {
        assert!(text.contains(part), "{text}");
    }
    // SAFETY: the block comes from the allocation above.
    unsafe { memory.free(block, 1 << 19) };
    assert_eq!(memory.used(), 0);
    let whole = memory.allocate(1 << 20)?;
    // SAFETY: as above.
    unsafe { memory.free(whole, 1 << 20) };
    Ok(())
}

/// Reading memory that the compiler knows to be uninitialised would be undefined behaviour.
#[test]
fn all_memory_comes_from_one_place() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![folder];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source");
            let is_call = |line: &&str| {
                ["{ alloc", "alloc::alloc"].iter().any(|it| line.contains(&format!("{it}(")))
            };
            let calls = text.lines().filter(is_call);
            found.extend(calls.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }
    assert!(matches!(&found[..], [one] if one.contains("src/memory.rs")), "{found:#?}");
}

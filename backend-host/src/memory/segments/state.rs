//! The blocks of plain memory, and the free ranges between them.

use crate::memory::block::block_size;
use crate::sharing::handle::{Handle, Kind};
use crate::sharing::process::ProcessIdentity;
use crate::sharing::segment::{Segment, page_size};
use hal::{Error, IpcHandle, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The size of a common segment in bytes.
const COMMON: usize = 64 << 20;
/// The size from which a block has its own segment.
pub(super) const OWN: usize = 4 << 20;
/// Freed blocks that span fewer pages wait unchanged, up to `MOST_WAITING` of each size.
const WAITING_SPANS: usize = 17;
const MOST_WAITING: usize = 16;

/// An unused range of a common segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeRange {
    bytes: usize,
    /// An upper bound for the number of bytes that have pages.
    with_pages: usize,
}

#[derive(Debug)]
pub(super) struct CommonSegment {
    segment: Segment,
    /// The number of used blocks.
    live: usize,
    /// True once the range of an exported block is lost to the segment.
    has_lost: bool,
}

/// The segment that contains a block.
#[derive(Debug)]
pub(super) enum Home {
    /// The common segment at this address.
    Common(usize),
    Own(Segment),
}

#[derive(Debug)]
pub(super) struct Block {
    /// The number of bytes that the allocation requested.
    pub(super) bytes: usize,
    /// The bytes of the block's pages and the page before them.
    span: usize,
    pub(super) home: Home,
    exported: Option<Box<IpcHandle>>,
    /// True if the block is freed and waits for a request.
    pub(super) is_waiting: bool,
}

impl Block {
    fn new(bytes: usize, span: usize, home: Home) -> Block {
        Block { bytes, span, home, exported: None, is_waiting: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) common: BTreeMap<usize, CommonSegment>,
    /// Free ranges of common segments, by address and by size.
    pub(super) free: BTreeMap<usize, FreeRange>,
    pub(super) by_size: BTreeSet<(usize, usize)>,
    /// Used and waiting blocks, by address.
    pub(super) blocks: BTreeMap<usize, Block>,
    /// The addresses of waiting blocks, by the number of pages that they span.
    pub(super) waiting: [Vec<usize>; WAITING_SPANS],
    /// Free segments of large blocks, by size.
    pub(super) own: BTreeMap<usize, Vec<Segment>>,
    /// The number of bytes in free pages.
    pub(super) kept: usize,
}

/// Returns the bytes of a block's pages and the page before them.
fn span_of(bytes: usize) -> Option<usize> {
    let page = page_size();
    bytes.max(1).checked_next_multiple_of(page)?.checked_add(page)
}

impl State {
    pub(super) fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let page = page_size();
        let span = span_of(bytes)?;
        if span <= OWN
            && let Some(address) = self.take_waiting(bytes).or_else(|| self.carve(bytes, span))
        {
            return Some(address);
        }
        let span = block_size(span).checked_next_multiple_of(page)?;
        let kept = self.own.get_mut(&span).and_then(Vec::pop);
        let segment = match kept {
            Some(segment) => {
                self.kept -= span;
                segment
            }
            None => Segment::create(span)
                .or_else(|error| {
                    log::debug!("no shared segment of {span} bytes: {error}");
                    // Kept free segments hold descriptors and pages.
                    if self.release(usize::MAX) > 0 { Segment::create(span) } else { Err(error) }
                })
                .ok()?,
        };
        let address = segment.base() + page;
        self.blocks.insert(address, Block::new(bytes, span, Home::Own(segment)));
        Some(address)
    }

    /// Takes a freed block that spans the same number of pages.
    pub(super) fn take_waiting(&mut self, bytes: usize) -> Option<usize> {
        let span = span_of(bytes)?;
        let address = self.waiting.get_mut(span / page_size())?.pop()?;
        let block = self.blocks.get_mut(&address)?;
        block.bytes = bytes;
        block.is_waiting = false;
        self.kept -= span;
        Some(address)
    }

    /// Lets a small block that was not exported wait for a request. Returns false for other blocks, or if
    /// enough blocks wait.
    fn keep_waiting(&mut self, address: usize, limit: usize) -> bool {
        let Some(block) = self.blocks.get_mut(&address) else { return false };
        let Some(waiting) = self.waiting.get_mut(block.span / page_size()) else { return false };
        let fits = self.kept + block.span <= limit && waiting.len() < MOST_WAITING;
        if !fits || block.exported.is_some() || matches!(block.home, Home::Own(_)) {
            return false;
        }
        block.is_waiting = true;
        self.kept += block.span;
        waiting.push(address);
        true
    }

    /// Frees the waiting blocks. Their pages stay.
    fn free_waiting(&mut self) {
        for address in std::mem::take(&mut self.waiting).into_iter().flatten() {
            if let Some(block) = self.blocks.remove(&address) {
                self.kept -= block.span;
                self.free_block(address, block, usize::MAX);
            }
        }
    }

    /// Carves a block from the smallest free range of a common segment that fits.
    fn carve(&mut self, bytes: usize, span: usize) -> Option<usize> {
        let mut found = self.by_size.range((span, 0)..).next().copied();
        if found.is_none() {
            let segment = Segment::create(COMMON).ok()?;
            let base = segment.base();
            self.common.insert(base, CommonSegment { segment, live: 0, has_lost: false });
            self.put_free(base, FreeRange { bytes: COMMON, with_pages: 0 });
            found = Some((COMMON, base));
        }
        let (_, start) = found?;
        let range = self.take_free(start)?;
        if range.bytes > span {
            let bytes = range.bytes - span;
            let with_pages = range.with_pages.min(bytes);
            self.put_free(start + span, FreeRange { bytes, with_pages });
        }
        let (&base, common) = self.common.range_mut(..=start).next_back()?;
        common.live += 1;
        let address = start + page_size();
        self.blocks.insert(address, Block::new(bytes, span, Home::Common(base)));
        Some(address)
    }

    fn put_free(&mut self, start: usize, range: FreeRange) {
        self.kept += range.with_pages;
        self.free.insert(start, range);
        self.by_size.insert((range.bytes, start));
    }

    fn take_free(&mut self, start: usize) -> Option<FreeRange> {
        let range = self.free.remove(&start)?;
        self.kept -= range.with_pages;
        self.by_size.remove(&(range.bytes, start));
        Some(range)
    }

    pub(super) fn free(&mut self, address: usize, limit: usize) -> bool {
        if self.blocks.get(&address).is_none_or(|block| block.is_waiting) {
            return false;
        }
        if !self.keep_waiting(address, limit)
            && let Some(block) = self.blocks.remove(&address)
        {
            self.free_block(address, block, limit);
        }
        true
    }

    fn free_block(&mut self, address: usize, block: Block, limit: usize) {
        let fits = self.kept.saturating_add(block.span) <= limit;
        let base = match block.home {
            Home::Own(segment) => {
                if block.exported.is_some() {
                    // A process that still maps it sees zeros, and does not keep pages alive.
                    segment.punch(0, block.span);
                } else if fits {
                    self.kept += block.span;
                    self.own.entry(block.span).or_default().push(segment);
                }
                return;
            }
            Home::Common(base) => base,
        };
        let start = address - page_size();
        let Some(common) = self.common.get_mut(&base) else { return };
        common.live -= 1;
        let keeps_pages = fits && block.exported.is_none();
        if !keeps_pages {
            common.segment.punch(start - base, block.span);
        }
        if block.exported.is_some() {
            common.has_lost = true;
        } else {
            let with_pages = if keeps_pages { block.span } else { 0 };
            self.merge_free(base, start, FreeRange { bytes: block.span, with_pages });
        }
        self.drop_common_if_idle(base);
    }

    /// Adds a free range, merged with its free neighbours in the same segment.
    fn merge_free(&mut self, base: usize, mut start: usize, mut range: FreeRange) {
        let end = start + range.bytes;
        if !self.common.contains_key(&end)
            && let Some(next) = self.take_free(end)
        {
            range.bytes += next.bytes;
            range.with_pages += next.with_pages;
        }
        let before = self.free.range(base..start).next_back().map(|(&at, range)| (at, range.bytes));
        if let Some((at, bytes)) = before
            && at + bytes == start
            && let Some(previous) = self.take_free(at)
        {
            start = at;
            range.bytes += previous.bytes;
            range.with_pages += previous.with_pages;
        }
        self.put_free(start, range);
    }

    /// Drops a common segment without used blocks if it has lost ranges, or if another one is idle.
    fn drop_common_if_idle(&mut self, base: usize) {
        let idle = self.common.values().filter(|common| common.live == 0).count();
        let Some(common) = self.common.get(&base).filter(|common| common.live == 0) else { return };
        if common.has_lost || idle > 1 {
            self.drop_common(base);
        }
    }

    fn drop_common(&mut self, base: usize) {
        let ranges: Vec<usize> = self.free.range(base..base + COMMON).map(|(&at, _)| at).collect();
        for start in ranges {
            self.take_free(start);
        }
        self.common.remove(&base);
    }

    pub(super) fn release(&mut self, bytes: usize) -> usize {
        let before = self.kept;
        self.free_waiting();
        let freed = |state: &State| before - state.kept;
        while freed(self) < bytes {
            let Some(mut entry) = self.own.last_entry() else { break };
            match entry.get_mut().pop() {
                Some(segment) => self.kept -= segment.bytes(),
                None => drop(entry.remove()),
            }
        }
        while freed(self) < bytes {
            let with_pages = self.free.iter().find(|(_, range)| range.with_pages > 0);
            let Some((&start, _)) = with_pages else { break };
            let Some(mut range) = self.take_free(start) else { break };
            if let Some((base, common)) = self.common.range(..=start).next_back() {
                common.segment.punch(start - base, range.bytes);
            }
            range.with_pages = 0;
            self.put_free(start, range);
        }
        if self.kept == 0 {
            let idle = self.common.iter().filter(|(_, common)| common.live == 0);
            for base in idle.map(|(&base, _)| base).collect::<Vec<_>>() {
                self.drop_common(base);
            }
        }
        freed(self)
    }

    pub(super) fn export(
        &mut self,
        call: &'static str,
        address: usize,
        kind: Kind,
    ) -> Result<IpcHandle> {
        let found = self.blocks.range_mut(..=address).next_back();
        let is_inside =
            |start: usize, block: &Block| !block.is_waiting && address - start < block.bytes;
        let Some((&start, block)) = found.filter(|(start, block)| is_inside(**start, block)) else {
            return Err(Error::invalid(
                call,
                format!(
                    "address {address:#x} cannot be shared: only plain memory can, which \
                     Device::allocate returns (driver.mem_alloc in Python), and arrays have with \
                     PYGPU_ARRAY_MEMORY=plain, if the process has file descriptors left for it \
                     (ulimit -n)"
                ),
            ));
        };
        if let Some(handle) = &block.exported {
            return Ok(**handle);
        }
        let segment = match &block.home {
            Home::Own(segment) => segment,
            Home::Common(base) => match self.common.get(base) {
                Some(common) => &common.segment,
                None => return Err(Error::handle(call, "the memory was freed")),
            },
        };
        let process = ProcessIdentity::own().ok_or_else(|| {
            Error::unsupported(call, "the system does not report this process in /proc")
        })?;
        let offset = start - segment.base();
        let handle = Handle {
            kind,
            process,
            file: segment.descriptor(),
            nonce: segment.nonce(),
            offset: offset as u64,
            length: block.bytes.max(1) as u64,
        }
        .to_octets();
        segment.write(offset - page_size(), &handle.0).map_err(|error| {
            Error::unsupported(call, format!("the handle cannot be written: {error}"))
        })?;
        block.exported = Some(Box::new(handle));
        Ok(handle)
    }
}

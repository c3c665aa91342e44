//! The captures of one device, and the memory that they and their graphs use.
//!
//! A graph replays with the addresses of its capture. So what captured work uses, and what is
//! allocated or freed on a capturing stream, stays until the graph is gone ([`GraphMemory`]).

use super::DriverStream;
use super::capture::capture_of;
use super::graph_memory::{GraphMemory, attach};
use crate::driver::calls::Handle;
use crate::driver::context::Context;
use crate::error::Result;
use crate::locks::{BEGINNING, CAPTURES, LEAF, Ranked};
use crate::status::Status;
use crate::stream::{MayCapture, Stream};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The captures and graphs of one device, and their memory.
#[derive(Debug, Default)]
pub(in crate::driver) struct Captures {
    /// The streams on which a capture was begun; true if the default stream waits for it.
    streams: Ranked<HashMap<u64, (bool, MayCapture)>, LEAF>,
    /// The number of `streams`, and of those that the default stream waits for: 0 nearly
    /// always.
    stream_count: AtomicUsize,
    blocking_count: AtomicUsize,
    /// Held while a capture begins, and by what waits for the whole device, which would end it.
    pub(in crate::driver) beginning: Ranked<(), BEGINNING>,
    /// What each capture under way uses, by the capture's number.
    open: Ranked<HashMap<u64, Open>, CAPTURES>,
    /// Streams that others can reach, with handle and epoch: they may capture at any time.
    exposed: Ranked<HashMap<u64, (Handle, u64)>, LEAF>,
    /// The number of `exposed`.
    exposed_count: AtomicUsize,
    /// How many hold each block: the graph, and the object that stands for it.
    holders: Ranked<HashMap<u64, u32>, LEAF>,
    /// The number of blocks in `holders`: 0 nearly always.
    count: AtomicUsize,
}

/// A capture under way.
#[derive(Debug)]
enum Open {
    /// Begun here, on the stream of this number.
    Own(u64, Arc<GraphMemory>),
    /// Begun by another library, whose graph keeps the memory; its end is not seen here.
    Foreign(Weak<GraphMemory>),
}

/// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`: the default stream waits for one that captures.
const IMPLICIT: c_int = 906;

/// The driver's thread mode in which a call is not refused for a capture elsewhere.
struct Relaxed<'a> {
    context: &'a Context,
    mode: c_int,
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.context.driver.calls.capture_exchange_mode {
            // SAFETY: the mode is one that the driver gave.
            unsafe { exchange(&mut self.mode) };
        }
    }
}

impl Context {
    /// Runs a call that a capture on this or another thread would make the driver refuse.
    pub(in crate::driver) fn outside_captures<R>(&self, call: impl FnOnce() -> R) -> R {
        let exchange = self.driver.calls.capture_exchange_mode;
        let (Some(exchange), true) = (exchange, self.captures.are_possible()) else {
            return call();
        };
        let mut mode = 2;
        // SAFETY: 2 is the relaxed mode; the former one is written in its place.
        if unsafe { exchange(&mut mode) } != Status::SUCCESS {
            return call();
        }
        let _relaxed = Relaxed { context: self, mode };
        call()
    }

    /// True if the default stream must be left alone, since it waits for a stream that
    /// captures: a call on it would end that capture. The context is current.
    pub(in crate::driver) fn default_is_barred(&self) -> bool {
        if self.captures.blocking_count.load(Ordering::Acquire) > 0 {
            return true;
        }
        let Some(info) = self.driver.calls.capture_info.filter(|_| self.captures.any_exposed())
        else {
            return false;
        };
        let (mut state, mut number) = (0, 0);
        // SAFETY: 0 is the default stream; both results are written before the call returns. This
        // question is one that a capture does not mind.
        unsafe { info(0, &mut state, &mut number) == IMPLICIT }
    }

    /// True if some stream captures, whoever began that.
    pub(in crate::driver) fn has_captures(&self) -> bool {
        if self.captures.any() || !self.captures.any_exposed() {
            return self.captures.any();
        }
        let Ok(_scope) = self.enter() else { return false };
        let epoch = self.epoch();
        // Locked meanwhile, so that no stream is destroyed.
        let exposed = self.captures.exposed.lock();
        let mut live = exposed.values().filter(|(_, born)| *born == epoch);
        live.any(|(handle, _)| matches!(capture_of(self, *handle), Ok(Some(_))))
    }

    /// Plain memory. The context is current.
    fn plain(&self, bytes: usize) -> Result<u64> {
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        let code =
            self.outside_captures(|| unsafe { (self.driver.calls.allocate)(&mut address, bytes) });
        self.check("allocate", code)?;
        Ok(address)
    }
}

impl Captures {
    /// True while a capture goes on that was begun here.
    #[inline]
    pub(in crate::driver) fn any(&self) -> bool {
        self.stream_count.load(Ordering::Acquire) > 0
    }

    /// True if another library can reach a stream, and may capture on it.
    #[inline]
    pub(in crate::driver) fn any_exposed(&self) -> bool {
        self.exposed_count.load(Ordering::Acquire) > 0
    }

    /// True if a capture may go on.
    #[inline]
    pub(in crate::driver) fn are_possible(&self) -> bool {
        self.any() || self.any_exposed()
    }

    /// Remembers that others can reach a stream.
    pub(in crate::driver) fn expose(&self, stream: u64, handle: Handle, epoch: u64) {
        let mut exposed = self.exposed.lock();
        exposed.insert(stream, (handle, epoch));
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    /// Forgets a stream before its handle goes.
    pub(in crate::driver) fn conceal(&self, stream: u64) {
        let mut exposed = self.exposed.lock();
        exposed.remove(&stream);
        self.exposed_count.store(exposed.len(), Ordering::Release);
    }

    fn change_streams<R>(
        &self,
        change: impl FnOnce(&mut HashMap<u64, (bool, MayCapture)>) -> R,
    ) -> R {
        let mut streams = self.streams.lock();
        let result = change(&mut streams);
        let blocking = streams.values().filter(|(blocking, _)| *blocking).count();
        self.blocking_count.store(blocking, Ordering::Release);
        self.stream_count.store(streams.len(), Ordering::Release);
        result
    }

    /// Says that a stream is about to capture: before it does, since another thread's question
    /// in between would end the capture.
    pub(in crate::driver) fn announce(&self, stream: u64, blocking: bool) {
        self.change_streams(|streams| streams.insert(stream, (blocking, MayCapture::new())));
    }

    /// Says that a stream captures no longer. False if it was not known to: a reset ends all.
    pub(in crate::driver) fn withdraw(&self, stream: u64) -> bool {
        self.any() && self.change_streams(|streams| streams.remove(&stream)).is_some()
    }

    /// True between [`Captures::announce`] and [`Captures::withdraw`].
    pub(in crate::driver) fn is_announced(&self, stream: u64) -> bool {
        self.any() && self.streams.lock().contains_key(&stream)
    }

    pub(in crate::driver) fn begin(&self, stream: &DriverStream, capture: u64) {
        let own = Open::Own(stream.id(), GraphMemory::new(stream.context()));
        self.open.lock().insert(capture, own);
    }

    /// True if a capture was begun here.
    pub(in crate::driver) fn is_own(&self, capture: u64) -> bool {
        matches!(self.open.lock().get(&capture), Some(Open::Own(..)))
    }

    /// Ends captures whose stream nobody has any longer but the memory that they keep.
    pub(in crate::driver) fn collect(&self, context: &Arc<Context>) {
        if !self.any() {
            return;
        }
        // Dropped behind the lock, and with it the stream, which ends the capture.
        let mut abandoned = Vec::new();
        for open in self.open.lock().values_mut() {
            if let Open::Own(stream, kept) = open
                && kept.is_abandoned(*stream)
            {
                abandoned.push(std::mem::replace(kept, GraphMemory::new(context)));
            }
        }
    }

    /// What keeps the memory of the capture that a stream is part of. The context is current.
    pub(in crate::driver) fn kept(
        &self,
        stream: &DriverStream,
        capture: u64,
    ) -> Result<Arc<GraphMemory>> {
        let mut open = self.open.lock();
        let known = match open.get(&capture) {
            Some(Open::Own(_, kept)) => Some(kept.clone()),
            Some(Open::Foreign(kept)) => kept.upgrade(),
            None => None,
        };
        if let Some(kept) = known {
            return Ok(kept);
        }
        let context = stream.context();
        let kept = GraphMemory::new(context);
        if !attach(context, stream.raw(), &kept)? {
            // Nothing tells when the graph goes: with the stream's object at the earliest.
            stream.keep(kept.clone());
        }
        open.retain(|_, it| !matches!(it, Open::Foreign(kept) if kept.strong_count() == 0));
        open.insert(capture, Open::Foreign(Arc::downgrade(&kept)));
        Ok(kept)
    }

    /// Memory that belongs to a capture and to the object that is made of it.
    pub(in crate::driver) fn allocate(
        &self,
        stream: &DriverStream,
        capture: u64,
        bytes: usize,
    ) -> Result<u64> {
        let context = stream.context();
        let _scope = context.enter()?;
        let kept = self.kept(stream, capture)?;
        let address = context.plain(bytes)?;
        self.hold(&kept, address, 2);
        Ok(address)
    }

    /// Gives a capture a block that its object frees while it goes on.
    pub(in crate::driver) fn keep(
        &self,
        stream: &DriverStream,
        capture: u64,
        address: u64,
    ) -> Result<()> {
        let _scope = stream.context().enter()?;
        self.hold(self.kept(stream, capture)?.as_ref(), address, 1);
        Ok(())
    }

    fn hold(&self, kept: &GraphMemory, address: u64, holders: u32) {
        kept.add_block(address);
        let mut all = self.holders.lock();
        all.insert(address, holders);
        self.count.store(all.len(), Ordering::Release);
    }

    /// True if the block belongs to a capture or graph: then this ends one of its holders.
    #[inline]
    pub(in crate::driver) fn release(&self, context: &Context, address: u64) -> Option<Result<()>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.release_one(context, address)
    }

    fn release_one(&self, context: &Context, address: u64) -> Option<Result<()>> {
        let mut all = self.holders.lock();
        let holders = all.get_mut(&address)?;
        *holders -= 1;
        if *holders > 0 {
            return Some(Ok(()));
        }
        all.remove(&address);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        let free = || {
            let _scope = context.enter()?;
            // SAFETY: nobody holds the block.
            unsafe { context.pool.put_behind_all(context, address) }
        };
        Some(free())
    }

    /// Ends a capture that was begun here, and returns what it uses.
    pub(in crate::driver) fn end(&self, capture: u64) -> Option<Arc<GraphMemory>> {
        match self.open.lock().remove(&capture) {
            Some(Open::Own(_, kept)) => Some(kept),
            _ => None,
        }
    }

    pub(in crate::driver) fn release_all(&self, context: &Context, blocks: &[u64]) -> Result<()> {
        let mut result = Ok(());
        for &address in blocks {
            // One that cannot be freed keeps none of the others.
            result = result.and(self.release_one(context, address).unwrap_or(Ok(())));
        }
        result
    }

    /// Forgets everything, since the device is being reset. What is returned is dropped outside
    /// of locks: owners of foreign memory may do anything.
    #[must_use]
    pub(in crate::driver) fn forget(&self) -> impl Drop + use<> {
        self.change_streams(HashMap::clear);
        self.holders.lock().clear();
        self.count.store(0, Ordering::Release);
        std::mem::take(&mut *self.open.lock()).into_values().collect::<Vec<_>>()
    }
}

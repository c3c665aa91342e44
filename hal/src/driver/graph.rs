//! Captured work, and the memory that it uses.
//!
//! A graph replays with the addresses of its capture. So what is allocated or freed on a
//! capturing stream belongs to the graph, and lives until both the graph and the object that
//! stands for it are gone.

use super::calls::Handle;
use super::context::{Context, lock};
use super::status::optional;
use super::stream::DriverStream;
use crate::error::Result;
use crate::status::Status;
use crate::stream::{Graph, Stream};
use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The captures and graphs of one device, and their memory.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// The streams on which a capture was begun; true if the default stream waits for it.
    streams: Mutex<HashMap<u64, bool>>,
    /// The number of `streams`, and of those that the default stream waits for: 0 nearly
    /// always.
    stream_count: AtomicUsize,
    blocking_count: AtomicUsize,
    /// Blocks of each capture under way, by the capture's number.
    open: Mutex<HashMap<u64, Vec<u64>>>,
    /// How many hold each block: the graph, and the object that stands for it.
    holders: Mutex<HashMap<u64, u32>>,
    /// The number of blocks in `holders`: 0 nearly always.
    count: AtomicUsize,
}

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
    pub(super) fn outside_captures<R>(&self, call: impl FnOnce() -> R) -> R {
        let exchange = self.driver.calls.capture_exchange_mode;
        let (Some(exchange), true) = (exchange, self.captures.any()) else {
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
    pub(super) fn any(&self) -> bool {
        self.stream_count.load(Ordering::Acquire) > 0
    }

    /// True while one goes on that the default stream waits for.
    pub(super) fn any_blocking(&self) -> bool {
        self.blocking_count.load(Ordering::Acquire) > 0
    }

    fn change_streams<R>(&self, change: impl FnOnce(&mut HashMap<u64, bool>) -> R) -> R {
        let mut streams = lock(&self.streams);
        let result = change(&mut streams);
        let blocking = streams.values().filter(|blocking| **blocking).count();
        self.blocking_count.store(blocking, Ordering::Release);
        self.stream_count.store(streams.len(), Ordering::Release);
        result
    }

    /// Says that a stream is about to capture: before it does, since another thread's question
    /// in between would end the capture.
    pub(super) fn announce(&self, stream: u64, blocking: bool) {
        self.change_streams(|streams| streams.insert(stream, blocking));
    }

    /// Says that a stream captures no longer. False if it was not known to: a reset ends all.
    pub(super) fn withdraw(&self, stream: u64) -> bool {
        self.any() && self.change_streams(|streams| streams.remove(&stream)).is_some()
    }

    /// True between [`Captures::announce`] and [`Captures::withdraw`].
    pub(super) fn is_announced(&self, stream: u64) -> bool {
        self.any() && lock(&self.streams).contains_key(&stream)
    }

    pub(super) fn begin(&self, capture: u64) {
        lock(&self.open).insert(capture, Vec::new());
    }

    /// Memory that belongs to a capture and to the object that is made of it.
    pub(super) fn allocate(&self, context: &Context, capture: u64, bytes: usize) -> Result<u64> {
        let _scope = context.enter()?;
        let address = context.plain(bytes)?;
        self.hold(capture, address, 2);
        Ok(address)
    }

    /// Gives a capture a block that its object frees while it goes on.
    pub(super) fn keep(&self, capture: u64, address: u64) {
        self.hold(capture, address, 1);
    }

    fn hold(&self, capture: u64, address: u64, holders: u32) {
        lock(&self.open).entry(capture).or_default().push(address);
        let mut all = lock(&self.holders);
        all.insert(address, holders);
        self.count.store(all.len(), Ordering::Release);
    }

    /// True if the block belongs to a capture or graph: then this ends one of its holders.
    #[inline]
    pub(super) fn release(&self, context: &Context, address: u64) -> Option<Result<()>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.release_one(context, address)
    }

    fn release_one(&self, context: &Context, address: u64) -> Option<Result<()>> {
        let mut all = lock(&self.holders);
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
            // SAFETY: nobody holds the block; the call waits for the device's work, which may
            // be a launch of the graph.
            let code = context.outside_captures(|| unsafe { (context.driver.calls.free)(address) });
            context.check("free", code)
        };
        Some(free())
    }

    /// Ends a capture and gives its blocks.
    pub(super) fn end(&self, capture: u64) -> Vec<u64> {
        lock(&self.open).remove(&capture).unwrap_or_default()
    }

    pub(super) fn release_all(&self, context: &Context, blocks: &[u64]) -> Result<()> {
        let mut result = Ok(());
        for &address in blocks {
            // One that cannot be freed keeps none of the others.
            result = result.and(self.release_one(context, address).unwrap_or(Ok(())));
        }
        result
    }

    /// Forgets everything: the device is being reset.
    pub(super) fn forget(&self) {
        self.change_streams(HashMap::clear);
        lock(&self.open).clear();
        lock(&self.holders).clear();
        self.count.store(0, Ordering::Release);
    }
}

/// Work that was captured, ready to be launched.
#[derive(Debug)]
pub(super) struct DriverGraph {
    context: Arc<Context>,
    epoch: u64,
    graph: Handle,
    executable: Handle,
    nodes: usize,
    blocks: Vec<u64>,
}

impl DriverGraph {
    /// Makes captured work ready, and takes over the capture's blocks.
    pub(super) fn new(
        context: &Arc<Context>,
        epoch: u64,
        graph: Handle,
        blocks: Vec<u64>,
    ) -> Result<DriverGraph> {
        let mut made =
            DriverGraph { context: context.clone(), epoch, graph, executable: 0, nodes: 0, blocks };
        let driver = &context.driver;
        let _scope = context.enter()?;
        let instantiate = optional!(driver, graph_instantiate, "end_capture")?;
        if let Some(nodes) = driver.calls.graph_nodes {
            // SAFETY: without an array the call gives the number only.
            let code = unsafe { nodes(graph, null_mut(), &mut made.nodes) };
            context.check("end_capture", code)?;
        }
        // SAFETY: the graph is live; the handle is written before the call returns.
        let code = unsafe { instantiate(&mut made.executable, graph, 0) };
        context.check("end_capture", code)?;
        Ok(made)
    }
}

impl Drop for DriverGraph {
    fn drop(&mut self) {
        let context = &self.context;
        if !context.is_alive(self.epoch) {
            return;
        }
        let destroy = || {
            let scope = context.enter()?;
            let calls = &context.driver.calls;
            let mut result = Ok(());
            for (destroy, handle) in
                [(calls.graph_exec_destroy, self.executable), (calls.graph_destroy, self.graph)]
            {
                if let Some(destroy) = destroy.filter(|_| handle != 0) {
                    // SAFETY: the handle is live and nobody can reach it any longer; the
                    // driver keeps what a launch under way needs.
                    let code = unsafe { destroy(handle) };
                    result = result.and(context.check("destroy_graph", code));
                }
            }
            drop(scope);
            result.and(context.captures.release_all(context, &self.blocks))
        };
        if let Err(error) = destroy() {
            log::warn!("destroying a graph failed: {error}");
        }
    }
}

impl Graph for DriverGraph {
    fn node_count(&self) -> usize {
        self.nodes
    }

    unsafe fn launch(&self, stream: &dyn Stream) -> Result<()> {
        let stream = DriverStream::own(stream, &self.context)?;
        let launch = optional!(self.context.driver, graph_launch, "launch_graph")?;
        let _scope = self.context.enter_for(self.epoch)?;
        // SAFETY: both handles are live; the caller's promise covers the memory.
        let code = unsafe { launch(self.executable, stream.raw()) };
        self.context.check("launch_graph", code)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

//! Memory that captured work uses stays allocated until the last graph is dropped, even if the
//! arrays are dropped earlier.

use crate::captures::graphs::{capture, numbers, replay};
use crate::context::{Context, Gate, expect_error, pause};
use crate::driver_functions::Raw;
use crate::harness::{Capability, Outcome, tests};
use gpuarray::array::functions;
use gpuarray::memory::{Access, AccessGuard, Allocator, DeviceMemory};
use gpuarray::{Device, DeviceArray, ErrorKind, Result, Stream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

tests![
    arrays_of_a_capture_may_be_dropped needs [Graphs],
    memory_of_an_allocator_is_not_handed_out_anew needs [Graphs],
    memory_released_while_a_graph_uses_it_goes_with_the_graph needs [Graphs],
    memory_is_not_reissued_while_a_graph_uses_it needs [Graphs],
    launches_are_ordered_with_other_streams needs [Graphs],
    memory_is_freed_behind_the_last_launch needs [Graphs],
    two_threads_launch_one_graph needs [Graphs],
    captures_of_another_library_keep_what_they_use needs [GraphObjects, ExternalStreams],
    captures_of_another_library_get_no_freed_blocks needs [Graphs, ExternalStreams],
    captures_of_another_library_spread_to_other_streams needs [Graphs, ExternalStreams],
    a_handle_that_was_given_out_may_capture needs [Graphs, ExternalStreams],
];

const COUNT: usize = 1000;

/// Arrays that are allocated after the capture; graphs must not write them.
struct Others(Vec<DeviceArray<i32>>);

impl Others {
    fn new(context: &Context, stream: &Arc<dyn Stream>) -> Result<Others> {
        let one = || DeviceArray::full(&context.device, &[COUNT], 9)?.on(stream)?.copy();
        Ok(Others((0..20).map(|_| one()).collect::<Result<_>>()?))
    }

    fn check(&self) -> Outcome {
        for other in &self.0 {
            assert_eq!((other.min()?, other.max()?), (9, 9), "somebody has written it");
        }
        Ok(())
    }
}

fn arrays_of_a_capture_may_be_dropped(context: &Context) -> Outcome {
    let stream = context.stream()?;
    for home in [context.device.default_stream(), stream.clone()] {
        let mut x = numbers(context, &home, COUNT)?.on(&stream)?;
        let graph = capture(&stream, || x.update_scalar(functions::Add, 1))?;
        drop(x);
        let others = Others::new(context, &home)?;
        for _ in 0..3 {
            replay(&graph, &stream)?;
        }
        others.check()?;
    }
    Ok(())
}

/// Returns a block again as soon as nothing refers to it, like a pool.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<Arc<DeviceMemory>>>);

// SAFETY: each block is a separate allocation that the list keeps; a block is returned again only
// when nothing refers to it.
unsafe impl Allocator for Pool {
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        let mut all = self.0.lock().unwrap();
        let fits = |it: &&Arc<DeviceMemory>| Arc::strong_count(it) == 1 && it.bytes() >= bytes;
        if let Some(unused) = all.iter().find(fits) {
            return Ok(unused.clone());
        }
        all.push(Arc::new(DeviceMemory::plain(device, bytes)?));
        Ok(all.last().unwrap().clone())
    }
}

fn memory_of_an_allocator_is_not_handed_out_anew(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let pool: Arc<dyn Allocator> = Arc::new(Pool::default());
    let x = numbers(context, &stream, COUNT)?.into_untyped().with_allocator(Some(pool));
    let x = DeviceArray::<i32>::from_untyped(x)?;
    let mut result = None;
    let graph = capture(&stream, || {
        let between = (&x + 1)?;
        result = Some((&between + 1)?);
        Ok(())
    })?;
    // As large as the temporary of the capture, to which nothing refers any longer.
    let other = (&x * 2)?;
    let before = other.to_vec()?;
    replay(&graph, &stream)?;
    assert_eq!(other.to_vec()?, before, "the graph has written another array");
    assert_eq!(result.expect("captured").to_vec()?[5], 7);
    Ok(())
}

/// Captures a fill of all of `memory` with ones.
fn filling(
    stream: &Arc<dyn Stream>,
    memory: &Arc<DeviceMemory>,
) -> Result<Arc<dyn gpuarray::Graph>> {
    capture(stream, || {
        let _guard = AccessGuard::acquire(stream, &[(memory, Access::Write)])?;
        // SAFETY: the memory has `memory.bytes()` bytes, and the guard orders the work.
        unsafe { stream.fill(memory.address(), 1, 1, memory.bytes()) }
    })
}

/// Waits until `free` returns at least this many bytes: another thread may have to free them.
pub(crate) fn wait_for_free<E>(
    free: impl Fn() -> std::result::Result<usize, E>,
    bytes: usize,
) -> Outcome
where
    Box<dyn std::error::Error>: From<E>,
{
    let since = Instant::now();
    while free()? < bytes {
        assert!(since.elapsed() < Duration::from_secs(20), "the memory is not freed");
        pause();
    }
    Ok(())
}

fn memory_released_while_a_graph_uses_it_goes_with_the_graph(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let size = 32 << 20;
    let memory = Arc::new(DeviceMemory::plain(&context.device, size)?);
    let graph = filling(&stream, &memory)?;
    let before = context.free_memory()?;
    memory.release()?;
    assert!(!memory.is_allocated());
    expect_error(memory.release(), ErrorKind::InvalidHandle, &["freed already"])?;
    let refused = AccessGuard::acquire(&stream, &[(&memory, Access::Read)]).map(drop);
    expect_error(refused, ErrorKind::InvalidHandle, &["has been freed"])?;
    assert!(context.device.can_access(memory.address(), size));
    replay(&graph, &stream)?;
    drop(graph);
    wait_for_free(|| context.free_memory(), before + size / 2)?;
    // The memory is already freed, so dropping the object does nothing.
    drop(memory);
    assert_eq!((&context.counting(&[3])? + 1)?.to_vec()?, [1, 2, 3]);
    Ok(())
}

fn memory_is_not_reissued_while_a_graph_uses_it(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let memory = Arc::new(DeviceMemory::plain(&context.device, 4000)?);
    let graph = filling(&stream, &memory)?;
    assert!(memory.is_held_by_graph());
    assert!(memory.reissue()?.is_none());
    assert!(!memory.is_allocated());
    replay(&graph, &stream)?;
    let free = Arc::new(DeviceMemory::plain(&context.device, 4000)?);
    drop(filling(&stream, &free)?);
    assert!(!free.is_held_by_graph());
    assert_eq!(free.reissue()?.map(|it| it.address()), Some(free.address()));
    Ok(())
}

fn launches_are_ordered_with_other_streams(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &first, COUNT)?;
    let graph = capture(&first, || x.update_scalar(functions::Multiply, 3))?;
    // Run the graph once before a gate is closed, so that everything is loaded.
    replay(&graph, &first)?;
    let mut beside = x.on(&second)?;
    beside.fill(5)?;
    let gate = Gate::on(second.as_ref())?;
    beside.fill(6)?;
    // SAFETY: the capture uses only the array.
    unsafe { graph.launch(&first)? };
    beside.update_scalar(functions::Add, 1)?;
    gate.open();
    assert_eq!(x.to_vec()?, [19; COUNT]);
    Ok(())
}

fn memory_is_freed_behind_the_last_launch(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let mut x = numbers(context, &first, COUNT)?;
    let graph = capture(&first, || x.update_scalar(functions::Add, 1))?;
    replay(&graph, &first)?;
    let gate = Gate::on(second.as_ref())?;
    // SAFETY: the capture uses only the array.
    unsafe { graph.launch(&second)? };
    drop((x, graph));
    // Other work may use the array's block only after the launch.
    let others = Others::new(context, &first)?;
    gate.open();
    second.synchronize()?;
    others.check()
}

fn two_threads_launch_one_graph(context: &Context) -> Outcome {
    const LAUNCHES: i32 = 20;
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, COUNT)?;
    let graph = capture(&stream, || x.update_scalar(functions::Add, 1))?;
    std::thread::scope(|scope| {
        let launch = || -> Result<()> {
            let stream = context.stream()?;
            for _ in 0..LAUNCHES {
                // SAFETY: the capture uses only the array.
                unsafe { graph.launch(&stream)? };
            }
            stream.synchronize()
        };
        let threads = [scope.spawn(launch), scope.spawn(launch)];
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    assert_eq!(x.to_vec()?[0], 2 * LAUNCHES);
    if context.can(Capability::Double) {
        assert_eq!(
            Raw::new(context)?.live("overlaps")?,
            0,
            "the driver allows one thread at a time"
        );
    }
    Ok(())
}

/// A stream of another library, with its handle.
struct ExternalLibrary {
    raw: Raw,
    handle: usize,
    stream: Option<Arc<dyn Stream>>,
}

impl ExternalLibrary {
    fn new(context: &Context) -> std::result::Result<ExternalLibrary, Box<dyn std::error::Error>> {
        let raw = Raw::new(context)?;
        context.device.make_current()?;
        let handle = raw.create_stream()?;
        // SAFETY: the handle lives as long as the object.
        let stream = Some(unsafe { context.device.stream_from_handle(handle as u64)? });
        Ok(ExternalLibrary { raw, handle, stream })
    }

    fn stream(&self) -> &Arc<dyn Stream> {
        self.stream.as_ref().unwrap()
    }

    /// Captures work like a library that knows only the handle; returns the executable graph.
    fn capture(
        &self,
        work: impl FnOnce() -> Result<()>,
    ) -> std::result::Result<usize, Box<dyn std::error::Error>> {
        self.raw.begin_capture(self.handle)?;
        let done = work();
        let graph = self.raw.end_capture(self.handle)?;
        done?;
        let executable = self.raw.instantiate(graph)?;
        self.raw.destroy_graph(graph)?;
        Ok(executable)
    }

    fn replay(&self, executable: usize) -> Outcome {
        self.raw.launch_graph(executable, self.handle)?;
        self.raw.synchronize_stream(self.handle)
    }
}

impl Drop for ExternalLibrary {
    fn drop(&mut self) {
        let others = self.stream.take().map(|stream| Arc::downgrade(&stream));
        // A thread frees the graph's memory on the stream; the handle must live until then.
        let since = Instant::now();
        while others.as_ref().is_some_and(|stream| stream.strong_count() > 0) {
            if since.elapsed() > Duration::from_secs(5) {
                return;
            }
            pause();
        }
        let _ = self.raw.destroy_stream(self.handle);
    }
}

fn captures_of_another_library_keep_what_they_use(context: &Context) -> Outcome {
    let external = ExternalLibrary::new(context)?;
    let stream = external.stream();
    let size = 64 << 20;
    let large = Arc::new(DeviceMemory::plain(&context.device, size)?);
    let mut x = numbers(context, stream, COUNT)?;
    context.device.synchronize()?;
    let mut y = None;
    let executable = external.capture(|| {
        assert!(stream.is_capturing()?);
        x.update_scalar(functions::Add, 1)?;
        // The temporary is dropped while the capture is active.
        y = Some((&(&x + &x)? + 1)?);
        let _guard = AccessGuard::acquire(stream, &[(&large, Access::Write)])?;
        // SAFETY: the memory has `size` bytes.
        unsafe { stream.fill(large.address(), 1, 1, size) }
    })?;
    let before = external.raw.free_memory()?;
    drop((x, large));
    let others = Others::new(context, stream)?;
    for _ in 0..2 {
        external.replay(executable)?;
    }
    others.check()?;
    assert_eq!(y.as_ref().expect("captured").to_vec()?[10], 25, "2 (10 + 2) + 1");
    drop(y);
    external.replay(executable)?;
    others.check()?;
    external.raw.destroy_executable(executable)?;
    wait_for_free(|| external.raw.free_memory(), before + size / 2)
}

fn captures_of_another_library_get_no_freed_blocks(context: &Context) -> Outcome {
    let external = ExternalLibrary::new(context)?;
    let stream = external.stream();
    let x = numbers(context, stream, COUNT)?;
    // The stream's list keeps the block of this temporary.
    drop((&x + 1)?);
    stream.synchronize()?;
    let mut large =
        Some(DeviceArray::<u8>::zeros(&context.device, &[8 << 20])?.on(stream)?.copy()?);
    stream.synchronize()?;
    let mut y = None;
    let executable = external.capture(|| {
        y = Some((&x + 1)?);
        large = None;
        context.device.trim_memory(0)
    })?;
    let others = Others::new(context, stream)?;
    external.replay(executable)?;
    others.check()?;
    assert_eq!(y.expect("captured").to_vec()?[1], 2);
    external.raw.destroy_executable(executable)
}

fn captures_of_another_library_spread_to_other_streams(context: &Context) -> Outcome {
    let external = ExternalLibrary::new(context)?;
    let (stream, side) = (external.stream(), context.stream()?);
    let mut x = numbers(context, &side, COUNT)?;
    drop((&x + 1)?);
    side.synchronize()?;
    let event = || context.device.create_event(gpuarray::EventOptions::ORDERING);
    let (fork, join) = (event()?, event()?);
    let executable = external.capture(|| {
        stream.record(fork.as_ref())?;
        side.wait_event(fork.as_ref())?;
        assert!(side.is_capturing()?, "the other stream takes part");
        let between = (&x + 1)?;
        x.update(functions::Add, &between)?;
        drop(between);
        side.record(join.as_ref())?;
        stream.wait_event(join.as_ref())
    })?;
    assert!(!side.is_capturing()?);
    let others = Others::new(context, &side)?;
    external.replay(executable)?;
    others.check()?;
    assert_eq!(x.to_vec()?[3], 7);
    external.raw.destroy_executable(executable)
}

fn a_handle_that_was_given_out_may_capture(context: &Context) -> Outcome {
    let raw = Raw::new(context)?;
    context.device.make_current()?;
    let stream = context.stream()?;
    let mut x = numbers(context, &stream, COUNT)?;
    drop((&x + 1)?);
    stream.synchronize()?;
    let handle = stream.handle() as usize;
    raw.begin_capture(handle)?;
    assert!(stream.is_capturing()?);
    let between = (&x + 1)?;
    x.update(functions::Add, &between)?;
    drop((between, x));
    let graph = raw.end_capture(handle)?;
    let executable = raw.instantiate(graph)?;
    raw.destroy_graph(graph)?;
    let others = Others::new(context, &stream)?;
    raw.launch_graph(executable, handle)?;
    stream.synchronize()?;
    others.check()?;
    raw.destroy_executable(executable)
}

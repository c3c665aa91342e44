//! Page-locked, registered and managed memory, which both the host and kernels can access.

use crate::context::{Context, counting, error_of, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{self, ONE, grid, launch};
use gpuarray::launch::ArgumentList;
use gpuarray::memory::{PinnedMemory, RegisteredMemory};
use gpuarray::{
    Device, Direction, ErrorKind, Feature, Kernel, PinnedOptions, PrefetchTarget, Result, Status,
    Stream, Transfer,
};
use std::sync::Arc;

tests![
    pinned_memory_is_made_with_every_option,
    pinned_memory_is_copied_with_every_option,
    kernels_see_mapped_memory_under_its_address needs [Kernels],
    an_address_inside_pinned_memory_is_found needs [Kernels],
    memory_that_is_not_pinned_has_no_address,
    kernels_see_registered_memory needs [Kernels],
    registered_memory_is_copied_without_waiting,
    managed_memory_is_refused_by_name,
    managed_memory_is_written_by_host_and_kernels needs [Kernels, ManagedMemory],
    managed_memory_is_copied_like_any_other needs [ManagedMemory],
    managed_memory_moves_ahead needs [Driver, ManagedMemory],
    no_bytes_of_managed_memory_are_refused needs [ManagedMemory],
];

fn every_option() -> impl Iterator<Item = PinnedOptions> {
    (0..8).map(|bits| {
        PinnedOptions::default()
            .portable(bits & 1 != 0)
            .mapped(bits & 2 != 0)
            .write_combined(bits & 4 != 0)
    })
}

fn pinned_memory_is_made_with_every_option(context: &Context) -> Outcome {
    for options in every_option() {
        let mut memory = PinnedMemory::with_options(&context.device, 5000, options)?;
        assert_eq!(memory.len(), 5000);
        assert!((memory.pointer() as usize).is_multiple_of(4096), "{options:?}");
        assert!(memory.iter().all(|&byte| byte == 0), "{options:?}");
        memory.fill(7);
        assert!(memory.iter().all(|&byte| byte == 7), "{options:?}");
    }
    Ok(())
}

fn pinned_memory_is_copied_with_every_option(context: &Context) -> Outcome {
    let stream = context.stream()?;
    for options in every_option() {
        let mut memory = PinnedMemory::with_options(&context.device, 4096, options)?;
        let values: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
        memory.copy_from_slice(&values);
        let array = gpuarray::DeviceArray::<u8>::zeros(&context.device, &[4096])?.on(&stream)?;
        // SAFETY: the pinned bytes live until the stream has been waited for.
        unsafe { array.untyped().upload(memory.pointer(), false)? };
        stream.synchronize()?;
        memory.fill(0);
        // SAFETY: as above.
        unsafe { array.untyped().download(memory.pointer(), false)? };
        stream.synchronize()?;
        assert!(memory[..] == values, "{options:?}");
    }
    Ok(())
}

/// Launches `add` on `n` numbers at an address.
fn add_at(
    kernel: &Arc<dyn Kernel>,
    stream: &Arc<dyn Stream>,
    address: u64,
    value: i32,
    n: i32,
) -> Result<()> {
    let mut list = ArgumentList::new();
    list.address(address);
    list.bytes(&value.to_ne_bytes())?;
    list.bytes(&n.to_ne_bytes())?;
    // SAFETY: the callers pass an address of `n` numbers that kernels can use.
    unsafe { list.launch(kernel.as_ref(), &grid(n as u32 / 128 + 1, 128), stream, false) }
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    let (chunks, _) = bytes.as_chunks::<4>();
    chunks.iter().map(|chunk| i32::from_ne_bytes(*chunk)).collect()
}

fn mapped() -> PinnedOptions {
    PinnedOptions::default().portable(true).mapped(true)
}

fn kernels_see_mapped_memory_under_its_address(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let mut memory = PinnedMemory::with_options(&context.device, 4000, mapped())?;
    for (index, chunk) in memory.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *chunk = (index as i32).to_ne_bytes();
    }
    let address = context.device.pinned_address(memory.pointer())?;
    add_at(&kernel, &stream, address, 1000, 1000)?;
    stream.synchronize()?;
    assert_eq!(numbers(&memory), (1000..2000).collect::<Vec<_>>());
    Ok(())
}

fn an_address_inside_pinned_memory_is_found(context: &Context) -> Outcome {
    let memory = PinnedMemory::with_options(&context.device, 8192, mapped())?;
    let start = context.device.pinned_address(memory.pointer())?;
    let inside = context.device.pinned_address(memory.pointer().wrapping_add(5000))?;
    assert_eq!(inside, start + 5000);
    Ok(())
}

fn memory_that_is_not_pinned_has_no_address(context: &Context) -> Outcome {
    let mut local = [0u8; 64];
    let result = context.device.pinned_address(local.as_mut_ptr());
    expect_error(result, ErrorKind::InvalidArgument, &[])
}

fn kernels_see_registered_memory(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let mut bytes = vec![0u8; 3 * 4096];
    let start = bytes.as_mut_ptr();
    {
        // SAFETY: the vector outlives the object.
        let registered =
            unsafe { RegisteredMemory::from_raw(&context.device, start, bytes.len(), mapped())? };
        let address = context.device.pinned_address(registered.pointer())?;
        add_at(&kernel, &stream, address, 3, 3 * 1024)?;
        stream.synchronize()?;
    }
    assert!(numbers(&bytes).iter().all(|&number| number == 3));
    let result = context.device.pinned_address(start);
    expect_error(result, ErrorKind::InvalidArgument, &[])
}

fn registered_memory_is_copied_without_waiting(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let array = gpuarray::DeviceArray::<u8>::full(&context.device, &[8192], 9)?;
    // The copy below uses raw addresses, so it is not ordered after the fill.
    context.device.synchronize()?;
    let mut bytes = vec![0u8; 8192];
    // SAFETY: the object is dropped before the bytes are.
    let registered = unsafe { RegisteredMemory::new(&context.device, &mut bytes)? };
    let to = registered.pointer() as u64;
    let from = array.as_device_pointer();
    let gate = crate::context::Gate::on(stream.as_ref())?;
    let copy = Transfer::linear(Direction::DeviceToHost, to, from, 8192, false);
    // SAFETY: both ranges live until the stream has been waited for.
    unsafe { stream.transfer(&copy)? };
    assert!(!stream.query()?, "the copy waits behind the gate");
    gate.open();
    stream.synchronize()?;
    drop(registered);
    assert!(bytes.iter().all(|&byte| byte == 9));
    Ok(())
}

fn managed_memory_is_refused_by_name(context: &Context) -> Outcome {
    if context.can(Feature::ManagedMemory) {
        return Ok(());
    }
    let stream = context.stream()?;
    let kind = ErrorKind::Unsupported;
    expect_error(context.device.allocate_managed(64), kind, &["allocate_managed"])?;
    // SAFETY: the call is refused.
    let moved = unsafe { stream.prefetch(64, 64, PrefetchTarget::Host) };
    expect_error(moved, kind, &["prefetch"])
}

/// Managed memory that is freed on drop.
struct Managed {
    device: Arc<dyn Device>,
    address: u64,
    count: usize,
}

impl Managed {
    fn new(context: &Context, count: usize) -> Result<Managed> {
        let device = context.device.clone();
        let address = device.allocate_managed(4 * count)?;
        Ok(Managed { device, address, count })
    }

    /// Returns the numbers as a slice of the host.
    fn numbers(&mut self) -> &mut [i32] {
        // SAFETY: the memory has `count` numbers, and the tests wait for kernels first.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut i32, self.count) }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: allocated with these bytes; the tests wait for their kernels.
        unsafe { self.device.free(self.address, 4 * self.count) }.unwrap();
    }
}

fn managed_memory_is_written_by_host_and_kernels(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let mut memory = Managed::new(context, 10_000)?;
    memory.numbers().fill(5);
    for round in 1..=3 {
        add_at(&kernel, &stream, memory.address, 10, 10_000)?;
        stream.synchronize()?;
        let expected = 5 + 11 * round - 1;
        assert!(memory.numbers().iter().all(|&number| number == expected), "round {round}");
        memory.numbers().iter_mut().for_each(|number| *number += 1);
    }
    assert!(context.device.can_access(memory.address, 40_000));
    let mut back = vec![0i32; 10_000];
    programs::read(stream.as_ref(), memory.address, &mut back)?;
    assert!(back == memory.numbers(), "managed memory is copied like any other");
    Ok(())
}

fn managed_memory_is_copied_like_any_other(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut memory = Managed::new(context, 1000)?;
    memory.numbers().copy_from_slice(&counting(1000));
    // SAFETY: the memory is managed, and lives until the stream has been waited for.
    unsafe { stream.prefetch(memory.address, 4000, PrefetchTarget::Device)? };
    let mut back = vec![0i32; 1000];
    programs::read(stream.as_ref(), memory.address, &mut back)?;
    assert_eq!(back, counting(1000));
    Ok(())
}

fn managed_memory_moves_ahead(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let mut memory = Managed::new(context, 100_000)?;
    memory.numbers().fill(1);
    for target in [PrefetchTarget::Device, PrefetchTarget::Host, PrefetchTarget::Device] {
        // SAFETY: the memory is managed, and lives until the stream has been waited for.
        unsafe { stream.prefetch(memory.address, 400_000, target)? };
        add_at(&kernel, &stream, memory.address, 1, 100_000)?;
    }
    // SAFETY: as above.
    unsafe { stream.prefetch(memory.address, 400_000, PrefetchTarget::Host)? };
    stream.synchronize()?;
    assert!(memory.numbers().iter().all(|&number| number == 4));
    let plain = gpuarray::DeviceArray::<i32>::ones(&context.device, &[4])?;
    // SAFETY: the range is allocated. It is not managed, which the call must detect.
    let refused = unsafe { stream.prefetch(plain.as_device_pointer(), 16, PrefetchTarget::Host) };
    expect_error(refused, ErrorKind::InvalidArgument, &["prefetch"])?;
    launch(&programs::kernel(context, "nothing")?, ONE, &stream, ())?;
    stream.synchronize()?;
    Ok(())
}

fn no_bytes_of_managed_memory_are_refused(context: &Context) -> Outcome {
    let error = error_of(context.device.allocate_managed(0));
    assert_eq!(error.status().code, Status::INVALID_VALUE, "{error}");
    Ok(())
}

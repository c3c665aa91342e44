//! Memory that is freed by its owner: pitched memory, managed memory, and blocks of pools.

use crate::context::{Context, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, Managed, Pitched};
use gpuarray::{
    Direction, ErrorKind, Feature, PinnedOptions, PrefetchTarget, Result, Stream, Transfer,
};
use hal::memory::pool::{DevicePool, PinnedPool};
use std::sync::Arc;

tests![
    pitched_memory_is_freed_once,
    pitched_memory_without_rows_is_refused,
    retired_memory_is_refused_and_then_freed,
    managed_memory_is_the_hosts_and_the_devices needs [ManagedMemory],
    managed_memory_moves_only_on_a_stream_of_its_device needs [ManagedMemory, SecondDevice],
    a_missing_feature_is_refused_by_name,
    a_pool_hands_a_block_out_again_when_nobody_refers_to_it,
    a_recalled_block_is_refused_to_its_former_user,
    a_block_whose_memory_was_released_is_not_handed_out,
    a_pool_recalls_no_memory_but_its_own,
    a_pool_has_memory_of_one_device needs [SecondDevice],
    a_pinned_block_goes_back_when_it_is_dropped,
];

/// Queues a write of `value` to every byte.
fn fill(stream: &Arc<dyn Stream>, memory: &Arc<DeviceMemory>, value: u8) -> Result<()> {
    let _guard = AccessGuard::acquire(stream, &[(memory, Access::Write)])?;
    // SAFETY: the memory is allocated until its last use, and the guard orders this one.
    unsafe { stream.fill(memory.address(), u32::from(value), 1, memory.bytes()) }
}

/// Returns the bytes of memory, after the work that writes it.
fn bytes_of(stream: &Arc<dyn Stream>, memory: &Arc<DeviceMemory>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; memory.bytes()];
    let _guard = AccessGuard::acquire(stream, &[(memory, Access::Read)])?;
    let (to, from) = (bytes.as_mut_ptr() as u64, memory.address());
    let copy = Transfer::linear(Direction::DeviceToHost, to, from, bytes.len(), true);
    // SAFETY: the buffer lives until the copy has arrived.
    unsafe { stream.transfer(&copy)? };
    Ok(bytes)
}

fn pitched_memory_is_freed_once(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let rows = Pitched::new(&context.device, 13, 7, 4)?;
    let memory = rows.allocation().memory();
    assert!(rows.pitch() >= 13 && memory.bytes() == 7 * rows.pitch());
    fill(&stream, memory, 9)?;
    assert_eq!(bytes_of(&stream, memory)?, vec![9; memory.bytes()]);
    rows.allocation().free()?;
    expect_error(rows.allocation().free(), ErrorKind::InvalidHandle, &["freed already"])?;
    expect_error(fill(&stream, memory, 1), ErrorKind::InvalidHandle, &[])
}

fn pitched_memory_without_rows_is_refused(context: &Context) -> Outcome {
    for (width, height, name) in [(0, 4, "width"), (4, 0, "height")] {
        let refused = Pitched::new(&context.device, width, height, 4);
        expect_error(refused, ErrorKind::InvalidArgument, &[name, "0"])?;
    }
    Ok(())
}

fn retired_memory_is_refused_and_then_freed(context: &Context) -> Outcome {
    let allocation = Pitched::new(&context.device, 64, 4, 8)?.into_allocation();
    expect_error(allocation.end(), ErrorKind::InvalidHandle, &["in use"])?;
    let hold = allocation.memory().lease()?;
    expect_error(allocation.retire(), ErrorKind::InvalidHandle, &["by its address"])?;
    drop(hold);
    allocation.retire()?;
    let stream = context.stream()?;
    expect_error(fill(&stream, allocation.memory(), 1), ErrorKind::InvalidHandle, &[])?;
    allocation.end()?;
    expect_error(allocation.end(), ErrorKind::InvalidHandle, &["freed already"])
}

fn managed_memory_is_the_hosts_and_the_devices(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let managed = Managed::new(&context.device, 1000)?;
    let memory = managed.allocation().memory();
    fill(&stream, memory, 5)?;
    managed.prefetch(&stream, PrefetchTarget::Host).or_else(|error| match error.kind() {
        // Some drivers cannot prefetch.
        ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })?;
    stream.synchronize()?;
    // SAFETY: no work is queued on the memory, which has 1000 bytes.
    let host = unsafe { std::slice::from_raw_parts_mut(managed.pointer(), 1000) };
    assert!(host.iter().all(|byte| *byte == 5));
    host[3] = 7;
    let bytes = bytes_of(&stream, memory)?;
    assert_eq!(bytes[2..5], [5, 7, 5]);
    expect_error(Managed::new(&context.device, 0), ErrorKind::InvalidArgument, &["bytes", "0"])
}

fn managed_memory_moves_only_on_a_stream_of_its_device(context: &Context) -> Outcome {
    let managed = Managed::new(&context.device, 64)?;
    let other = context.second_device()?.default_stream();
    let refused = managed.prefetch(&other, PrefetchTarget::Device);
    expect_error(refused, ErrorKind::InvalidArgument, &["stream"])
}

fn a_missing_feature_is_refused_by_name(context: &Context) -> Outcome {
    let device = &context.device;
    // Memory of this process: a device without sharing must refuse before it checks the address.
    let own = DeviceMemory::plain(device, 64)?;
    let capture = || -> Result<()> {
        let stream = context.stream()?;
        stream.begin_capture(Default::default())?;
        stream.end_capture().map(drop)
    };
    let tried: [(Feature, Result<()>); 5] = [
        (
            Feature::ManagedMemory,
            device.allocate_managed(64).and_then(|address| {
                // SAFETY: the memory was just allocated, and nothing uses it.
                unsafe { device.free(address, 64) }
            }),
        ),
        (Feature::DriverPool, device.set_release_threshold(usize::MAX)),
        (Feature::Limits, device.limit(0).and_then(|value| device.set_limit(0, value))),
        (Feature::Sharing, device.export_memory(own.address()).map(drop)),
        (Feature::Graphs, capture()),
    ];
    for (feature, result) in tried {
        match context.can(feature) {
            true => result.unwrap_or_else(|error| panic!("{feature:?}: {error}")),
            false => expect_error(result, ErrorKind::Unsupported, &[])?,
        }
    }
    Ok(())
}

fn a_pool_hands_a_block_out_again_when_nobody_refers_to_it(context: &Context) -> Outcome {
    let pool = DevicePool::new();
    let (first, second) = (context.stream()?, context.stream()?);
    assert!(pool.find(&context.device, 1000)?.is_none());
    let block = pool.make(&context.device, 1000)?;
    fill(&first, &block, 1)?;
    let (address, counts) = (block.address(), pool.counts());
    assert_eq!((counts.active_blocks, counts.active_bytes, counts.held_blocks), (1, 1000, 0));
    assert!(pool.find(&context.device, 1000)?.is_none(), "the block is in use");
    drop(block);
    assert_eq!((pool.counts().active_blocks, pool.counts().held_blocks), (0, 1));
    let again = pool.find(&context.device, 1000)?.expect("the block is free");
    assert_eq!(again.address(), address);
    // Ordered after the previous user's work on another stream.
    fill(&second, &again, 2)?;
    assert_eq!(bytes_of(&second, &again)?, vec![2; again.bytes()]);
    pool.stop_holding();
    drop(again);
    assert_eq!(pool.counts(), Default::default());
    Ok(())
}

fn a_recalled_block_is_refused_to_its_former_user(context: &Context) -> Outcome {
    let (pool, stream) = (DevicePool::new(), context.stream()?);
    let block = pool.make(&context.device, 512)?;
    fill(&stream, &block, 1)?;
    pool.recall(&block)?;
    expect_error(fill(&stream, &block, 2), ErrorKind::InvalidHandle, &[])?;
    let again = pool.find(&context.device, 512)?.expect("the block is back");
    assert_eq!(again.address(), block.address());
    assert_eq!(bytes_of(&stream, &again)?[..512], [1; 512]);
    Ok(())
}

fn a_block_whose_memory_was_released_is_not_handed_out(context: &Context) -> Outcome {
    let (pool, stream) = (DevicePool::new(), context.stream()?);
    let block = pool.make(&context.device, 700)?;
    block.release()?;
    // The device may allocate the same address again while the pool still knows the old block.
    let other = pool.make(&context.device, 700)?;
    fill(&stream, &other, 1)?;
    drop(block);
    assert!(pool.find(&context.device, 700)?.is_none(), "there is no such memory");
    assert_eq!((pool.counts().active_blocks, pool.counts().held_blocks), (1, 0));
    drop(other);
    let again = pool.find(&context.device, 700)?.expect("the other block is free");
    fill(&stream, &again, 2)?;
    pool.drain(again.address());
    drop(again);
    pool.free_held();
    assert_eq!(pool.counts(), Default::default());
    Ok(())
}

fn a_pool_recalls_no_memory_but_its_own(context: &Context) -> Outcome {
    let (pool, stream) = (DevicePool::new(), context.stream()?);
    let block = pool.make(&context.device, 4000)?;
    block.release()?;
    // The device may return the block's address again while the pool still knows the block.
    let other = Arc::new(DeviceMemory::plain(&context.device, 100)?);
    pool.recall(&other)?;
    assert!(other.is_allocated());
    fill(&stream, &other, 1)?;
    drop(block);
    assert!(pool.find(&context.device, 4000)?.is_none(), "the block was released");
    expect_error(
        pool.make(&context.device, 8)
            .and_then(|it| pool.recall(&it).and_then(|()| pool.recall(&it))),
        ErrorKind::InvalidHandle,
        &[],
    )
}

fn a_pool_has_memory_of_one_device(context: &Context) -> Outcome {
    let pool = DevicePool::new();
    drop(pool.find(&context.device, 8)?);
    let other = pool.find(&context.second_device()?, 8);
    expect_error(other, ErrorKind::InvalidArgument, &["pool"])
}

fn a_pinned_block_goes_back_when_it_is_dropped(context: &Context) -> Outcome {
    let pool = PinnedPool::new(PinnedOptions::default());
    let mut block = pool.allocate(&context.device, 1000)?;
    assert_eq!(block.len(), 1000);
    block.fill(3);
    let pointer = block.memory().pointer();
    drop(block);
    assert_eq!((pool.counts().held_blocks, pool.counts().active_blocks), (1, 0));
    let again = pool.allocate(&context.device, 995)?;
    assert_eq!((again.memory().pointer(), again.len()), (pointer, 995));
    assert!(again.iter().all(|byte| *byte == 3));
    pool.stop_holding();
    drop(again);
    assert_eq!(pool.counts(), Default::default());
    Ok(())
}

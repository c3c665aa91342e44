//! Allocation, accounting, running out of memory, page-locked memory.

use crate::context::{Context, Gate, error_of, expect_error, pause};
use crate::harness::{Capability, Outcome, tests};
use gpuarray::memory::{DeviceMemory, PinnedMemory, RegisteredMemory};
use gpuarray::{DType, DeviceArray, ErrorKind, Layout, Order, PinnedOptions, Scalar, Status};
use std::sync::Arc;

tests![
    allocated_bytes_are_accounted_and_given_back needs [ExactAccounting],
    running_out_of_memory_says_what_was_asked_used_and_available needs [SmallMemory],
    memory_can_be_used_again_after_running_out needs [SmallMemory],
    a_request_beyond_the_address_space_is_an_ordinary_failure,
    memory_that_is_kept_for_reuse_counts_as_free needs [ExactAccounting, SmallMemory],
    requests_of_many_sizes_leave_nothing_behind needs [ExactAccounting],
    no_bytes_need_no_memory,
    plain_memory_serves_every_stream needs [ExactAccounting],
    a_free_waits_for_the_work_of_its_stream needs [ExactAccounting],
    an_allocation_waits_for_queued_frees_before_it_fails needs [SmallMemory],
    a_failed_request_takes_nothing_from_others needs [SmallMemory],
    released_memory_cannot_be_used_again,
    memory_that_is_held_is_not_freed,
    reissued_memory_is_ordered_behind_its_earlier_uses,
    memory_is_aligned_for_every_type,
    external_memory_keeps_its_owner_until_it_is_dropped,
    pinned_memory_is_zero_writable_and_page_aligned,
    pinned_memory_is_freed_although_queued_work_failed needs [ExactAccounting],
    registered_memory_must_not_overlap,
    memory_that_is_not_registered_cannot_be_unregistered,
    a_filled_array_outlives_its_device_handle,
];

fn allocated_bytes_are_accounted_and_given_back(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let small = DeviceArray::<f32>::zeros(&context.device, &[1000])?;
    assert_eq!(context.free_memory()?, before - 4000);
    let view = small.index(&[(5..9).into()])?;
    drop(small);
    assert_eq!(context.free_memory()?, before - 4000, "a view keeps the memory");
    drop(view);
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn running_out_of_memory_says_what_was_asked_used_and_available(context: &Context) -> Outcome {
    let total = context.device.memory_info()?.total;
    let kept = DeviceArray::<u8>::zeros(&context.device, &[1000])?;
    let (asked, available) = (total.to_string(), (total - 1000).to_string());
    let result = DeviceArray::<u8>::zeros(&context.device, &[total]);
    expect_error(result, ErrorKind::OutOfMemory, &[&asked, "1000", &available])?;
    let error = error_of(context.stream()?.allocate(total));
    assert_eq!(error.status().code, Status::OUT_OF_MEMORY);
    assert_eq!(kept.sum()?, 0);
    Ok(())
}

fn memory_can_be_used_again_after_running_out(context: &Context) -> Outcome {
    let info = context.device.memory_info()?;
    let piece = info.free / 5;
    let mut kept = Vec::new();
    while let Ok(array) = DeviceArray::<u8>::ones(&context.device, &[piece]) {
        kept.push(array);
        assert!(kept.len() <= 5);
    }
    assert_eq!(kept.len(), 5);
    assert!(context.free_memory()? < piece);
    kept.pop();
    let again = DeviceArray::<u8>::full(&context.device, &[piece], 7)?;
    assert_eq!(again.min()?, 7);
    drop((kept, again));
    assert_eq!(context.free_memory()?, info.free);
    Ok(())
}

fn a_request_beyond_the_address_space_is_an_ordinary_failure(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 4096] {
        assert_eq!(error_of(context.device.allocate(bytes)).kind(), ErrorKind::OutOfMemory);
        assert_eq!(
            error_of(context.device.allocate_pinned(bytes, PinnedOptions::default())).kind(),
            ErrorKind::OutOfMemory
        );
        let stream = context.stream()?;
        assert_eq!(error_of(stream.allocate(bytes)).kind(), ErrorKind::OutOfMemory);
    }
    if context.can(Capability::ExactAccounting) {
        assert_eq!(context.free_memory()?, before);
    }
    Ok(())
}

fn memory_that_is_kept_for_reuse_counts_as_free(context: &Context) -> Outcome {
    let total = context.free_memory()?;
    // Kept blocks of one size must not prevent allocations of another size.
    for divisor in [16, 3, 7, 2, 1] {
        let array = DeviceArray::<u8>::ones(&context.device, &[total / divisor])?;
        assert_eq!(context.free_memory()?, total - total / divisor);
        drop(array);
        assert_eq!(context.free_memory()?, total);
    }
    Ok(())
}

fn requests_of_many_sizes_leave_nothing_behind(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let mut kept = Vec::new();
    for step in 0..200usize {
        let size = (step * 7919) % 40_000 + 1;
        kept.push(DeviceArray::<u8>::full(&context.device, &[size], step as u8)?);
        if step % 3 == 0 {
            kept.swap_remove((step * 31) % kept.len());
        }
    }
    for array in &kept {
        assert_eq!(array.min()?, array.max()?, "blocks do not share bytes");
    }
    drop(kept);
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn no_bytes_need_no_memory(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let memory = DeviceMemory::for_stream(&context.device, &context.stream()?, 0)?;
    assert_eq!((memory.address(), memory.bytes()), (0, 0));
    assert_eq!(DeviceMemory::plain(&context.device, 0)?.address(), 0);
    assert!(PinnedMemory::new(&context.device, 0)?.is_empty());
    assert_eq!(context.free_memory()?, before);
    memory.release()?;
    Ok(())
}

fn plain_memory_serves_every_stream(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let memory = Arc::new(DeviceMemory::plain(&context.device, 64)?);
    assert_eq!(context.free_memory()?, before - 64);
    let layout = Layout::contiguous(&[16], 4, Order::C)?;
    for value in 0..3i32 {
        let (memory, stream) = (memory.clone(), context.stream()?);
        let array = gpuarray::Array::from_memory(memory, layout.clone(), DType::Int32, stream)?;
        array.fill(Scalar::new(value))?;
        assert_eq!(DeviceArray::<i32>::from_untyped(array)?.to_vec()?, [value; 16]);
    }
    drop(memory);
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn a_free_waits_for_the_work_of_its_stream(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let stream = context.stream()?;
    let memory = DeviceMemory::for_stream(&context.device, &stream, 4096)?;
    let gate = Gate::on(stream.as_ref())?;
    drop(memory);
    pause();
    assert_eq!(context.free_memory()?, before - 4096, "the stream has not come to the free");
    gate.open();
    stream.synchronize()?;
    assert_eq!(context.free_memory()?, before);
    Ok(())
}

fn an_allocation_waits_for_queued_frees_before_it_fails(context: &Context) -> Outcome {
    let total = context.device.memory_info()?.total;
    let stream = context.stream()?;
    let memory = DeviceMemory::for_stream(&context.device, &stream, total / 2 + 1)?;
    let gate = Gate::on(stream.as_ref())?;
    drop(memory);
    let opener = gate.open_later();
    let second = DeviceMemory::for_stream(&context.device, &stream, total / 2 + 1)?;
    opener.join().unwrap();
    assert!(second.is_allocated());
    Ok(())
}

fn a_failed_request_takes_nothing_from_others(context: &Context) -> Outcome {
    let total = context.device.memory_info()?.total;
    std::thread::scope(|scope| {
        let greedy =
            scope.spawn(|| (0..100_000).all(|_| context.device.allocate(2 * total).is_err()));
        let mut refused = 0;
        while !greedy.is_finished() {
            refused += usize::from(DeviceMemory::plain(&context.device, 64).is_err());
        }
        assert!(greedy.join().unwrap());
        assert_eq!(refused, 0, "small requests failed beside one that is too large");
    });
    Ok(())
}

fn released_memory_cannot_be_used_again(context: &Context) -> Outcome {
    let array = context.counting(&[100])?;
    let memory = array.untyped().memory().clone();
    assert!(memory.is_allocated());
    memory.release()?;
    assert!(!memory.is_allocated());
    expect_error(memory.release(), ErrorKind::InvalidHandle, &["freed already"])?;
    expect_error(array.to_vec(), ErrorKind::InvalidHandle, &["freed"])?;
    expect_error(&array + &array, ErrorKind::InvalidHandle, &["freed"])?;
    Ok(())
}

fn memory_that_is_held_is_not_freed(context: &Context) -> Outcome {
    let memory = Arc::new(DeviceMemory::plain(&context.device, 256)?);
    let (first, second) = (memory.lease()?, memory.lease()?);
    let kind = ErrorKind::InvalidHandle;
    expect_error(memory.release(), kind, &["still used", "2 in all"])?;
    drop(first);
    expect_error(memory.reissue(), kind, &["still used", "1 in all"])?;
    assert!(memory.is_allocated());
    drop(second);
    memory.release()?;
    expect_error(memory.lease(), kind, &["freed"])?;
    expect_error(memory.release(), kind, &["freed already"])?;
    let kept = Arc::new(DeviceMemory::plain(&context.device, 256)?);
    let hold = kept.lease()?;
    let address = kept.address();
    drop(kept);
    assert!(context.device.can_access(address, 256), "the hold keeps the memory");
    drop(hold);
    Ok(())
}

fn reissued_memory_is_ordered_behind_its_earlier_uses(context: &Context) -> Outcome {
    let (first, second) = (context.stream()?, context.stream()?);
    let old = Arc::new(DeviceMemory::plain(&context.device, 64)?);
    let layout = Layout::contiguous(&[16], 4, Order::C)?;
    let before =
        gpuarray::Array::from_memory(old.clone(), layout.clone(), DType::Int32, first.clone())?;
    before.fill(Scalar::new(0i32))?;
    let gate = Gate::on(first.as_ref())?;
    before.fill(Scalar::new(1i32))?;
    let new = Arc::new(old.reissue()?.expect("no graph uses it"));
    assert_eq!((new.address(), new.bytes()), (old.address(), old.bytes()));
    assert!(new.is_allocated() && !old.is_allocated());
    let kind = ErrorKind::InvalidHandle;
    expect_error(before.fill(Scalar::new(3i32)), kind, &["freed"])?;
    expect_error(old.reissue(), kind, &["freed already"])?;
    let after = gpuarray::Array::from_memory(new, layout, DType::Int32, second)?;
    after.fill(Scalar::new(2i32))?;
    gate.open();
    drop((before, old));
    assert_eq!(DeviceArray::<i32>::from_untyped(after)?.to_vec()?, [2; 16]);
    Ok(())
}

fn memory_is_aligned_for_every_type(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let mut kept = Vec::new();
    for bytes in [1, 2, 3, 5, 17, 100, 1000, 1 << 20, (1 << 20) + 1] {
        for memory in [
            DeviceMemory::for_stream(&context.device, &stream, bytes)?,
            DeviceMemory::plain(&context.device, bytes)?,
        ] {
            assert!(memory.address().is_multiple_of(16), "{memory:?}");
            kept.push(memory);
        }
    }
    Ok(())
}

fn external_memory_keeps_its_owner_until_it_is_dropped(context: &Context) -> Outcome {
    let source = context.counting(&[8])?;
    let owner = Arc::new(source.clone());
    let address = source.as_device_pointer();
    // SAFETY: the owner keeps the array that this memory belongs to.
    let memory = unsafe {
        DeviceMemory::from_raw_parts(&context.device, address, 32, Box::new(owner.clone()))
    };
    let layout = Layout::contiguous(&[8], 4, Order::C)?;
    let stream = context.device.default_stream();
    let wrapped = gpuarray::Array::from_memory(Arc::new(memory), layout, DType::Int32, stream)?;
    assert_eq!(Arc::strong_count(&owner), 2);
    wrapped.fill(Scalar::new(3i32))?;
    drop(wrapped);
    assert_eq!(Arc::strong_count(&owner), 1);
    assert_eq!(source.to_vec()?, [3; 8]);
    Ok(())
}

fn pinned_memory_is_zero_writable_and_page_aligned(context: &Context) -> Outcome {
    let mut memory = PinnedMemory::new(&context.device, 10_000)?;
    assert!(memory.iter().all(|&byte| byte == 0));
    memory.fill(9);
    assert!(memory.iter().all(|&byte| byte == 9));
    assert!((memory.pointer() as usize).is_multiple_of(4096), "{:p}", memory.pointer());
    Ok(())
}

fn pinned_memory_is_freed_although_queued_work_failed(context: &Context) -> Outcome {
    let before = context.free_memory()?;
    let memory = PinnedMemory::new(&context.device, 4096)?;
    context.device.default_stream().host_function(Box::new(|| panic!("on purpose")))?;
    drop(memory);
    assert_eq!(context.free_memory()?, before);
    let error = error_of(context.device.synchronize());
    assert_eq!(error.kind(), ErrorKind::LaunchFailed, "the failure is still reported");
    Ok(())
}

fn registered_memory_must_not_overlap(context: &Context) -> Outcome {
    let mut bytes = vec![0u8; 3 * 4096];
    let start = bytes.as_mut_ptr();
    // SAFETY: the object is dropped before the bytes are.
    let first = unsafe { RegisteredMemory::new(&context.device, &mut bytes[4096..8192])? };
    assert_eq!(first.bytes(), 4096);
    for (offset, length) in [(4096, 4096), (0, 4097), (8191, 10), (5000, 1), (0, 12_288)] {
        // SAFETY: the range is inside the vector, which outlives the object.
        let second = unsafe {
            RegisteredMemory::from_raw(
                &context.device,
                start.add(offset),
                length,
                PinnedOptions::default(),
            )
        };
        let error = error_of(second);
        assert_eq!(error.status().code, Status::HOST_MEMORY_ALREADY_REGISTERED, "{error}");
    }
    drop(first);
    // SAFETY: the object is dropped before the bytes are.
    drop(unsafe { RegisteredMemory::new(&context.device, &mut bytes)? });
    expect_error(
        // SAFETY: the range is empty, so the call is refused.
        unsafe { RegisteredMemory::new(&context.device, &mut []) },
        ErrorKind::InvalidArgument,
        &["size 0"],
    )?;
    Ok(())
}

fn memory_that_is_not_registered_cannot_be_unregistered(context: &Context) -> Outcome {
    let mut byte = 0u8;
    // SAFETY: the byte is not registered, so no work can use it.
    let error = error_of(unsafe { context.device.unregister_host(&raw mut byte) });
    assert_eq!(error.status().code, Status::HOST_MEMORY_NOT_REGISTERED);
    Ok(())
}

fn a_filled_array_outlives_its_device_handle(context: &Context) -> Outcome {
    let array = {
        let device = context.backend.device(0)?;
        DeviceArray::<i16>::full(&device, &[4], -3)?
    };
    assert_eq!(array.to_vec()?, [-3; 4]);
    Ok(())
}

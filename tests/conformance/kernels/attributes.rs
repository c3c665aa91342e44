//! Attributes of kernels, and cooperative launches.

use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use crate::programs::{self, grid, launch};
use gpuarray::launch::{ArgumentList, KernelArguments};
use gpuarray::{
    DeviceArray, DeviceAttribute, ErrorKind, Kernel, KernelAttribute, LaunchConfig, Result, Stream,
};
use std::sync::Arc;

tests![
    attributes_are_those_of_the_code needs [Kernels],
    an_unknown_attribute_is_refused needs [Kernels],
    attributes_that_can_be_set_are_kept needs [Kernels, KernelAttributes],
    all_shared_memory_of_a_block_can_be_asked_for needs [Kernels],
    a_value_that_an_attribute_cannot_have_is_refused needs [Kernels],
    occupancy_falls_with_threads_and_shared_memory needs [Kernels],
    static_shared_memory_is_the_kernels_own needs [Kernels],
    a_cooperative_launch_runs needs [Kernels, CooperativeLaunch],
    blocks_of_a_cooperative_launch_wait_for_each_other needs [Kernels, ResidentBlocks],
    a_cooperative_launch_that_does_not_fit_is_refused needs [Kernels, CooperativeLaunch],
    a_kernel_is_used_by_many_threads_at_first_use needs [Kernels],
];

fn attributes_are_those_of_the_code(context: &Context) -> Outcome {
    let module = programs::module(context)?;
    let of = |name: &str, attribute| module.kernel(name)?.attribute(attribute);
    let most = context.device.attribute(DeviceAttribute::MAX_THREADS_PER_BLOCK)?;
    assert_eq!(of("nothing", KernelAttribute::MAX_THREADS_PER_BLOCK)?, most);
    assert_eq!(of("narrow", KernelAttribute::MAX_THREADS_PER_BLOCK)?, 64);
    assert_eq!(of("fixed", KernelAttribute::SHARED_SIZE_BYTES)?, 4096);
    assert_eq!(of("nothing", KernelAttribute::SHARED_SIZE_BYTES)?, 0);
    assert!((1..=255).contains(&of("axpy", KernelAttribute::NUM_REGS)?));
    assert!(of("axpy", KernelAttribute::LOCAL_SIZE_BYTES)? >= 0);
    assert!(of("axpy", KernelAttribute::BINARY_VERSION)? > 0);
    Ok(())
}

fn an_unknown_attribute_is_refused(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "nothing")?;
    for number in [-1, 987_654] {
        let result = kernel.attribute(KernelAttribute(number));
        expect_error(result, ErrorKind::InvalidArgument, &[])?;
        let result = kernel.set_attribute(KernelAttribute(number), 1);
        expect_error(result, ErrorKind::InvalidArgument, &[])?;
    }
    Ok(())
}

fn attributes_that_can_be_set_are_kept(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "dynamic")?;
    for (attribute, value) in [
        (KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, 50 << 10),
        (KernelAttribute::PREFERRED_SHARED_MEMORY_CARVEOUT, 50),
    ] {
        kernel.set_attribute(attribute, value)?;
        assert_eq!(kernel.attribute(attribute)?, value);
    }
    // A limit that the program has lowered is raised for a launch that needs more.
    kernel.set_attribute(KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024)?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    let config = grid(1, 64).shared_bytes(8192);
    launch(&kernel, config, &stream, (&mut out, 2048))?;
    assert_eq!(out.item()?, 2047 * 1024);
    Ok(())
}

fn all_shared_memory_of_a_block_can_be_asked_for(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "dynamic")?;
    // `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
    let most = context.device.attribute(DeviceAttribute(97))?;
    kernel.set_attribute(KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, most)?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
    let config = grid(1, 64).shared_bytes(most as u32);
    launch(&kernel, config, &stream, (&mut out, most / 4))?;
    let last = i64::from(most / 4) - 1;
    assert_eq!(i64::from(out.item()?), last * (last + 1) / 2);
    Ok(())
}

fn a_value_that_an_attribute_cannot_have_is_refused(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "dynamic")?;
    let kind = ErrorKind::InvalidArgument;
    for (attribute, value) in [
        (KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, i32::MAX),
        (KernelAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES, -1),
        (KernelAttribute::NUM_REGS, 16),
    ] {
        expect_error(kernel.set_attribute(attribute, value), kind, &[])?;
    }
    Ok(())
}

fn occupancy_falls_with_threads_and_shared_memory(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "dynamic")?;
    let resident =
        context.device.attribute(DeviceAttribute::MAX_THREADS_PER_MULTIPROCESSOR)? as u32;
    let shared = context.device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK)? as usize;
    let mut last = u32::MAX;
    for threads in [32, 128, 512, 1024] {
        let blocks = kernel.active_blocks(threads, 0)?;
        assert!(blocks >= 1 && blocks * threads <= resident, "{threads}: {blocks} blocks");
        assert!(blocks <= last, "{threads} threads");
        last = blocks;
    }
    assert!(kernel.active_blocks(128, shared)? < kernel.active_blocks(128, 0)?);
    assert!(kernel.active_blocks(128, shared)? >= 1);
    assert_eq!(kernel.active_blocks(128, 1 << 30)?, 0, "such a block never runs");
    expect_error(kernel.active_blocks(0, 0), ErrorKind::InvalidArgument, &[])
}

fn static_shared_memory_is_the_kernels_own(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "fixed")?;
    let stream = context.stream()?;
    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1024])?;
    launch(&kernel, grid(1, 1024), &stream, (&mut out,))?;
    assert_eq!(out.to_vec()?, (0..1024).rev().collect::<Vec<_>>());
    Ok(())
}

pub(crate) fn cooperate(
    kernel: &Arc<dyn Kernel>,
    config: LaunchConfig,
    stream: &Arc<dyn Stream>,
    arguments: impl KernelArguments,
) -> Result<()> {
    let mut list = ArgumentList::new();
    arguments.add_all(&mut list)?;
    // SAFETY: the tests pass the arguments that the kernels declare.
    unsafe { list.launch(kernel.as_ref(), &config, stream, true) }
}

fn a_cooperative_launch_runs(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let mut values = context.counting(&[1000])?;
    cooperate(&kernel, grid(8, 128), &stream, (&mut values, 1, 1000))?;
    assert_eq!(values.to_vec()?, (1..=1000).collect::<Vec<_>>());
    Ok(())
}

fn blocks_of_a_cooperative_launch_wait_for_each_other(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "meet")?;
    let stream = context.stream()?;
    let processors = context.device.attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)? as u32;
    // As many blocks as can run concurrently. If one had to wait for another to end, none would end.
    let blocks = processors * kernel.active_blocks(128, 0)?;
    let mut arrived = DeviceArray::<u32>::zeros(&context.device, &[1])?;
    let mut seen = DeviceArray::<u32>::zeros(&context.device, &[blocks as usize])?;
    cooperate(&kernel, grid(blocks, 128), &stream, (&mut arrived, &mut seen))?;
    assert_eq!((seen.min()?, arrived.item()?), (blocks, blocks));
    Ok(())
}

fn a_cooperative_launch_that_does_not_fit_is_refused(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "add")?;
    let stream = context.stream()?;
    let processors = context.device.attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)? as u32;
    let blocks = processors * kernel.active_blocks(128, 0)? + 1;
    let mut values = context.counting(&[10])?;
    let error = error_of(cooperate(&kernel, grid(blocks, 128), &stream, (&mut values, 1, 10)));
    assert_eq!(error.kind(), ErrorKind::LaunchFailed, "{error}");
    for word in ["add", &blocks.to_string(), "same time"] {
        assert!(error.detail().contains(word), "the text does not name {word}: {error}");
    }
    stream.synchronize()?;
    assert_eq!(values.to_vec()?, (0..10).collect::<Vec<_>>(), "nothing was launched");
    Ok(())
}

fn a_kernel_is_used_by_many_threads_at_first_use(context: &Context) -> Outcome {
    let kernel = programs::kernel(context, "dynamic")?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u32)
            .map(|number| {
                let kernel = &kernel;
                scope.spawn(move || -> Result<()> {
                    let stream = context.stream()?;
                    let mut out = DeviceArray::<i32>::zeros(&context.device, &[1])?;
                    // Each launch needs more shared memory than the previous one may have been
                    // allowed.
                    let config = grid(1, 256).shared_bytes((49 + number) << 10);
                    launch(kernel, config, &stream, (&mut out, 1000))?;
                    assert_eq!(out.item()?, 999 * 500);
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    Ok(())
}

//! Two devices of one backend: copies between them, and kernels that use each other's memory.

use crate::context::{Context, expect_error};
use crate::harness::{Capability, Outcome, tests};
use crate::programs::{self, ONE, SOURCE, read, write};
use backend_host::HostBackend;
use gpuarray::launch::ArgumentList;
use gpuarray::memory::DeviceMemory;
use gpuarray::{
    Device, DeviceArray, ErrorKind, LoadOptions, ModuleSource, Result, Stream, StreamOptions,
};
use std::sync::Arc;

tests![
    peers_are_refused_by_name,
    a_device_is_no_peer_of_itself,
    a_device_of_another_backend_is_no_peer,
    the_second_device_works_like_the_first needs [SecondDevice, Driver],
    copies_between_devices_need_no_access needs [SecondDevice, Driver],
    copies_between_devices_keep_their_streams_order needs [SecondDevice, Driver],
    access_is_enabled_and_disabled_more_than_once needs [Peers],
    kernels_use_a_peers_memory needs [Peers, Kernels],
];

fn peers_are_refused_by_name(context: &Context) -> Outcome {
    if context.can(Capability::Driver) {
        return Ok(());
    }
    let other = context.second_device()?;
    let kind = ErrorKind::Unsupported;
    let named = other.id().to_string();
    assert!(!context.device.can_access_peer(other.as_ref())?);
    let enabled = context.device.enable_peer_access(other.as_ref());
    expect_error(enabled, kind, &["enable_peer_access", &named])?;
    let disabled = context.device.disable_peer_access(other.as_ref());
    expect_error(disabled, kind, &["disable_peer_access", &named])?;
    let (stream, memory) = (context.stream()?, DeviceMemory::plain(&context.device, 8)?);
    let (address, device) = (memory.address(), &context.device);
    // SAFETY: the copy is refused.
    let copied =
        unsafe { device.transfer_peer(stream.as_ref(), address, address, other.as_ref(), 8) };
    expect_error(copied, kind, &["transfer_peer", &named])
}

fn a_device_is_no_peer_of_itself(context: &Context) -> Outcome {
    let device = context.device.as_ref();
    assert!(!device.can_access_peer(device)?);
    let kind = match context.can(Capability::Driver) {
        true => ErrorKind::InvalidArgument,
        false => ErrorKind::Unsupported,
    };
    expect_error(device.enable_peer_access(device), kind, &[])?;
    expect_error(device.disable_peer_access(device), kind, &[])
}

fn a_device_of_another_backend_is_no_peer(context: &Context) -> Outcome {
    if !context.can(Capability::Driver) {
        return Ok(());
    }
    let other = gpuarray::Backend::device(HostBackend::open()?.as_ref(), 0)?;
    let kind = ErrorKind::InvalidArgument;
    assert!(!context.device.can_access_peer(other.as_ref())?);
    let enabled = context.device.enable_peer_access(other.as_ref());
    expect_error(enabled, kind, &["host:0", "another backend"])?;
    let memory = DeviceMemory::plain(&context.device, 8)?;
    let (address, device) = (memory.address(), &context.device);
    let stream = context.stream()?;
    // SAFETY: the copy is refused.
    let copied = unsafe { device.transfer_peer(stream.as_ref(), address, 64, other.as_ref(), 8) };
    expect_error(copied, kind, &["host:0", "another backend"])
}

fn the_second_device_works_like_the_first(context: &Context) -> Outcome {
    let second = context.second_device()?;
    assert_ne!(second.id(), context.device.id());
    let stream = second.create_stream(StreamOptions::default())?;
    // Alternates between the devices on one thread.
    let here = context.counting(&[1000])?;
    let there = DeviceArray::<i32>::full(&second, &[1000], 3)?.on(&stream)?;
    for _ in 0..3 {
        assert_eq!((&here + &here)?.sum()?, 999_000);
        assert_eq!((&there + &there)?.sum()?, 6000);
    }
    context.device.synchronize()?;
    second.synchronize()?;
    assert_eq!(there.untyped().device().id(), second.id());
    Ok(())
}

const COUNT: usize = 10_000;

fn copy(
    stream: &dyn Stream,
    to: (&DeviceMemory, &Arc<dyn Device>),
    from: (&DeviceMemory, &Arc<dyn Device>),
) -> Result<()> {
    let ((to, to_device), (from, from_device)) = (to, from);
    // SAFETY: both memories are large enough, and live until the stream is waited for.
    unsafe {
        let (destination, source) = (to.address(), from.address());
        to_device.transfer_peer(stream, destination, source, from_device.as_ref(), to.bytes())
    }
}

fn copies_between_devices_need_no_access(context: &Context) -> Outcome {
    let (first, second) = (&context.device, &context.second_device()?);
    let values: Vec<i32> = (0..COUNT as i32).collect();
    for owner in [first, second] {
        let stream = owner.create_stream(StreamOptions::default().non_blocking(true))?;
        for pooled in [false, true] {
            let memory = |device: &Arc<dyn Device>| match pooled {
                false => DeviceMemory::plain(device, 4 * COUNT),
                true => DeviceMemory::for_stream(device, &device.default_stream(), 4 * COUNT),
            };
            let (here, there, back) = (memory(first)?, memory(second)?, memory(first)?);
            write(first.default_stream().as_ref(), here.address(), &values)?;
            second.synchronize()?;
            first.synchronize()?;
            copy(stream.as_ref(), (&there, second), (&here, first))?;
            copy(stream.as_ref(), (&back, first), (&there, second))?;
            stream.synchronize()?;
            for (memory, device) in [(&there, second), (&back, first)] {
                let mut seen = vec![0i32; COUNT];
                read(device.default_stream().as_ref(), memory.address(), &mut seen)?;
                assert!(seen == values, "stream of {}, pooled {pooled}", owner.id());
            }
        }
    }
    Ok(())
}

fn copies_between_devices_keep_their_streams_order(context: &Context) -> Outcome {
    let second = context.second_device()?;
    let stream = context.stream()?;
    let array = DeviceArray::<i32>::zeros(&context.device, &[COUNT])?.on(&stream)?.copy()?;
    let there = DeviceMemory::plain(&second, 4 * COUNT)?;
    stream.synchronize()?;
    for value in 1..20 {
        array.clone().fill(value)?;
        copy(stream.as_ref(), (&there, &second), (array.untyped().memory(), &context.device))?;
        array.clone().fill(-1)?;
        stream.synchronize()?;
        let mut seen = vec![0i32; COUNT];
        read(second.default_stream().as_ref(), there.address(), &mut seen)?;
        assert!(seen.iter().all(|&number| number == value), "{value}: {:?}", &seen[..4]);
    }
    Ok(())
}

fn access_is_enabled_and_disabled_more_than_once(context: &Context) -> Outcome {
    let second = context.second_device()?;
    for _ in 0..2 {
        context.device.enable_peer_access(second.as_ref())?;
        context.device.enable_peer_access(second.as_ref())?;
        context.device.disable_peer_access(second.as_ref())?;
        context.device.disable_peer_access(second.as_ref())?;
    }
    Ok(())
}

fn kernels_use_a_peers_memory(context: &Context) -> Outcome {
    let second = context.second_device()?;
    context.device.enable_peer_access(second.as_ref())?;
    let source = ModuleSource::Source { text: SOURCE, name: "programs.cu", options: &[] };
    // SAFETY: the text contains only functions.
    let module = unsafe { context.device.load_module(&source, &LoadOptions::default()) }?;
    let add = module.kernel("add")?;
    let stream = context.stream()?;
    for pooled in [false, true] {
        let memory = match pooled {
            false => DeviceMemory::plain(&second, 400)?,
            true => DeviceMemory::for_stream(&second, &second.default_stream(), 400)?,
        };
        write(second.default_stream().as_ref(), memory.address(), &[7i32; 100])?;
        let mut list = ArgumentList::new();
        list.address(memory.address());
        list.bytes(&1i32.to_ne_bytes())?;
        list.bytes(&100i32.to_ne_bytes())?;
        // SAFETY: the kernel may use the peer's memory, which has a hundred numbers.
        unsafe { list.launch(add.as_ref(), &programs::grid(1, 128), &stream, false)? };
        stream.synchronize()?;
        let mut seen = [0i32; 100];
        read(second.default_stream().as_ref(), memory.address(), &mut seen)?;
        assert_eq!(seen, [8; 100], "pooled {pooled}");
    }
    context.device.disable_peer_access(second.as_ref())?;
    programs::launch(&programs::kernel(context, "nothing")?, ONE, &stream, ())?;
    stream.synchronize()?;
    Ok(())
}

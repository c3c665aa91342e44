//! Memory of other devices, through peer access; memory and events shared between processes.

use crate::context::Context;
use crate::event;
use crate::event::DriverEvent;
use crate::state::DeviceState;
use crate::vendor::optional;
use hal::error::{Error, ErrorKind, Result};
use hal::event::Event;
use hal::properties::IpcHandle;
use hal::status::Status;
use std::sync::Arc;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED` and `_NOT_ENABLED`; HIP's are the same.
const ALREADY_ENABLED: i32 = 704;
const NOT_ENABLED: i32 = 705;

/// Returns true if kernels of `context`'s device can access the other device's memory.
pub(super) fn can_access_peer(context: &Context, peer: &Context) -> Result<bool> {
    if peer.device == context.device {
        return Ok(false);
    }
    let mut answer = 0;
    // SAFETY: both devices belong to the driver; the result is written before the call returns.
    let code = unsafe {
        (context.driver.calls.device_can_access_peer)(&mut answer, context.device, peer.device)
    };
    context.driver.check("can_access_peer", code)?;
    Ok(answer != 0)
}

/// Allows kernels of `context`'s device to access the other device's memory, or forbids it.
pub(super) fn set_peer_access(
    context: &Arc<Context>,
    peer: &DeviceState,
    allowed: bool,
) -> Result<()> {
    let call = if allowed { "enable_peer_access" } else { "disable_peer_access" };
    let (state, peer) = (peer, &peer.context);
    if Arc::ptr_eq(peer, context) {
        return Err(Error::invalid(
            call,
            format!(
                "other is device {}, the device itself; a peer must be another device",
                context.ordinal
            ),
        ));
    }
    let handle = peer.handle()?;
    let vendor = &context.driver.vendor;
    let code = {
        let _scope = context.enter()?;
        match allowed {
            true => vendor.enable_peer(peer.device, handle),
            false => vendor.disable_peer(peer.device, handle),
        }
    };
    match code {
        ALREADY_ENABLED if allowed => {}
        NOT_ENABLED if !allowed => return Ok(()),
        code => context.check(call, code)?,
    }
    // Memory of the stream-ordered pool has separate permissions.
    state.memory.pool.set_access(context.device, allowed)
}

// Other processes.

pub(super) fn export_memory(context: &Context, address: u64) -> Result<IpcHandle> {
    let export = optional!(context.driver, ipc_export_memory, "export_memory")?;
    let _scope = context.enter()?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the driver looks the address up; the handle is written before it returns.
    let code = unsafe { export(&mut handle, address) };
    if code != Status::SUCCESS && context.driver.kind(code) == ErrorKind::InvalidArgument {
        let detail = format!(
            "address {address:#x} cannot be shared: only plain memory can, which \
             Device::allocate returns (driver.mem_alloc in Python), and arrays have with \
             PYGPU_ARRAY_MEMORY=plain"
        );
        return Err(context.driver.error_with("export_memory", code, &detail));
    }
    context.check("export_memory", code)?;
    Ok(handle)
}

pub(super) fn import_memory(context: &Context, handle: &IpcHandle) -> Result<u64> {
    let open = optional!(context.driver, ipc_open_memory, "import_memory")?;
    let _scope = context.enter()?;
    let mut address = 0;
    // SAFETY: the driver checks the handle; the address is written before it returns.
    let code = unsafe { open(&mut address, *handle, context.driver.vendor.ipc_open_flags()) };
    context.check("import_memory", code)?;
    Ok(address)
}

pub(super) fn export_event(context: &Context, event: &dyn Event) -> Result<IpcHandle> {
    let export = optional!(context.driver, ipc_export_event, "export_event")?;
    context.device_id().check_same("export_event", "event", event.device_id())?;
    let event = event::own(event)?.handle_for(context)?;
    let _scope = context.enter()?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the event is live; the handle is written before the call returns.
    let code = unsafe { export(&mut handle, event) };
    if code == Status::INVALID_VALUE || code == Status::INVALID_HANDLE {
        let detail = "the event cannot be shared: make it for other processes (interprocess)";
        return Err(context.driver.error_with("export_event", code, detail));
    }
    context.check("export_event", code)?;
    Ok(handle)
}

pub(super) fn import_event(context: &Arc<Context>, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
    let open = optional!(context.driver, ipc_open_event, "import_event")?;
    let _scope = context.enter()?;
    let epoch = context.epoch();
    let mut event = 0;
    // SAFETY: the driver checks the handle; the event is written before it returns.
    let code = unsafe { open(&mut event, *handle) };
    context.check("import_event", code)?;
    Ok(Arc::new(DriverEvent::over(context, epoch, event, false, true)))
}

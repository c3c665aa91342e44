//! Memory and events that other devices or processes use.

use super::context::Context;
use super::device;
use super::event::{self, DriverEvent};
use super::status::optional;
use crate::device::{Device, IpcHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::status::Status;
use std::sync::Arc;

/// The driver's answers to what is so already.
const ALREADY_ENABLED: i32 = 704;
const NOT_ENABLED: i32 = 705;

/// Start and bytes of the allocation that an address lies in. The context is current.
pub(super) fn address_range(context: &Context, address: u64) -> Result<(u64, usize)> {
    let read = optional!(context.driver, address_range, "address_range")?;
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: the driver looks the address up; the results are written before it returns.
    let code = unsafe { read(&mut start, &mut bytes, address) };
    if code != Status::SUCCESS && context.driver.kind(code) == ErrorKind::InvalidArgument {
        let detail = format!("address {address:#x} lies in no allocation of the device");
        return Err(context.driver.error_with("address_range", code, &detail));
    }
    context.check("address_range", code)?;
    Ok((start, bytes))
}

pub(super) fn can_access_peer(context: &Context, other: &dyn Device) -> Result<bool> {
    let Ok(other) = device::own(other, context) else { return Ok(false) };
    let peer = other.context().device;
    if peer == context.device {
        return Ok(false);
    }
    let mut answer = 0;
    // SAFETY: both devices are the driver's; the result is written before the call returns.
    let code =
        unsafe { (context.driver.calls.device_can_access_peer)(&mut answer, context.device, peer) };
    context.driver.check("can_access_peer", code)?;
    Ok(answer != 0)
}

/// Allows kernels of `context`'s device the other device's memory, or ends that.
pub(super) fn set_peer_access(
    context: &Arc<Context>,
    other: &dyn Device,
    allowed: bool,
) -> Result<()> {
    let call = if allowed { "enable_peer_access" } else { "disable_peer_access" };
    let peer = device::own(other, context)?.context();
    if Arc::ptr_eq(peer, context) {
        return Err(Error::invalid(call, "other is the device itself"));
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
    // Memory of the stream-ordered pool has permissions of its own.
    peer.pool.set_access(peer, context.device, allowed)
}

pub(super) fn export_memory(context: &Context, address: u64) -> Result<IpcHandle> {
    let export = optional!(context.driver, ipc_export_memory, "export_memory")?;
    let _scope = context.enter()?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the driver looks the address up; the handle is written before it returns.
    let code = unsafe { export(&mut handle, address) };
    if code != Status::SUCCESS && context.driver.kind(code) == ErrorKind::InvalidArgument {
        let detail = format!(
            "address {address:#x} cannot be shared: only plain memory can, which \
             Device::allocate gives (driver.mem_alloc in Python)"
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
    let event = event::own(event)?.handle_for(context)?;
    let _scope = context.enter()?;
    let mut handle = IpcHandle([0; 64]);
    // SAFETY: the event is live; the handle is written before the call returns.
    let code = unsafe { export(&mut handle, event) };
    if code == Status::INVALID_VALUE || code == Status::INVALID_HANDLE {
        let detail = "the event cannot be shared: it was not made with interprocess";
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

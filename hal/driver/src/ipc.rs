//! Memory and events that processes share.

use super::context::Context;
use super::errors::optional;
use super::event::{self, DriverEvent};
use hal::device::IpcHandle;
use hal::error::{ErrorKind, Result};
use hal::event::Event;
use hal::status::Status;
use std::sync::Arc;

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

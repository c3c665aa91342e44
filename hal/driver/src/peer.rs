//! Peer access: kernels of one device on the memory of another.

use super::context::Context;
use super::state::DeviceState;
use hal::error::{Error, Result};
use std::sync::Arc;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED` and `_NOT_ENABLED`; HIP's are the same.
const ALREADY_ENABLED: i32 = 704;
const NOT_ENABLED: i32 = 705;

/// True if kernels of `context`'s device can be given the other device's memory.
pub(super) fn can_access_peer(context: &Context, peer: &Context) -> Result<bool> {
    if peer.device == context.device {
        return Ok(false);
    }
    let mut answer = 0;
    // SAFETY: both devices are the driver's; the result is written before the call returns.
    let code = unsafe {
        (context.driver.calls.device_can_access_peer)(&mut answer, context.device, peer.device)
    };
    context.driver.check("can_access_peer", code)?;
    Ok(answer != 0)
}

/// Allows kernels of `context`'s device the other device's memory, or ends that.
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
                "other is device {}, the device itself; a peer is another one",
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
    // Memory of the stream-ordered pool has permissions of its own.
    state.memory.pool.set_access(context.device, allowed)
}

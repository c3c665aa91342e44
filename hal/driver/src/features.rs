//! The features of a driver's device, determined from the driver's functions and the device's
//! attributes, and whether queries of its streams and events work.

use crate::calls::{Handle, NO_TIMING, NON_BLOCKING};
use crate::context::Context;
use crate::state::DeviceState;
use crate::texture::TextureCalls;
use crate::vendor::{Driver, optional};
use codegen::compile::TARGETS;
use hal::device::DeviceAttribute;
use hal::error::{Error, ErrorKind, Result};
use hal::features::{Feature, Features};
use hal::status::Status;
use std::ffi::c_int;

/// `CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH`; the backends translate the number.
pub(super) const COOPERATIVE_LAUNCH: DeviceAttribute = DeviceAttribute(95);

/// Returns the features of a device, without creating a context.
pub(super) fn features(state: &DeviceState) -> Features {
    let (context, driver) = (&state.context, &state.context.driver);
    let calls = &driver.calls;
    let is_set = |attribute| context.attribute(attribute).is_ok_and(|value| value != 0);
    let graphs = calls.capture_begin.is_some()
        && calls.capture_end.is_some()
        && calls.graph_instantiate.is_some()
        && calls.graph_launch.is_some();
    let graph_objects = calls.user_object_create.is_some()
        && calls.graph_retain.is_some()
        && calls.capture_graph.is_some();
    let sharing = calls.ipc_export_memory.is_some()
        && calls.ipc_open_memory.is_some()
        && calls.ipc_close_memory.is_some()
        && calls.ipc_export_event.is_some()
        && calls.ipc_open_event.is_some();
    let textures = TextureCalls::of(context, "features");
    let has = [
        (Feature::Kernels, true),
        (Feature::StreamOrderedReuse, true),
        (Feature::ExternalStreams, true),
        (Feature::Reset, true),
        (Feature::KernelAttributes, calls.function_set_attribute.is_some()),
        (Feature::ParameterInfo, calls.function_parameter.is_some()),
        (
            Feature::CooperativeLaunch,
            calls.launch_cooperative.is_some() && is_set(COOPERATIVE_LAUNCH),
        ),
        (Feature::Graphs, graphs),
        (Feature::GraphObjects, graphs && graph_objects),
        (
            Feature::ManagedMemory,
            calls.allocate_managed.is_some() && is_set(DeviceAttribute::MANAGED_MEMORY),
        ),
        (Feature::DriverPool, state.memory.pool.may_be_pooled()),
        (Feature::Limits, calls.limit.is_some() && calls.set_limit.is_some()),
        (Feature::Sharing, sharing),
        (Feature::Textures, textures.is_ok()),
        (Feature::Surfaces, textures.is_ok_and(|calls| calls.has_surfaces())),
    ];
    let shared = has.into_iter().filter_map(|(feature, present)| present.then_some(feature));
    shared.chain(driver.vendor.features().iter().copied()).collect()
}

// Queries about a device and its addresses.

impl Context {
    /// Returns a numbered attribute, without creating a context.
    pub(super) fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        let mut value = 0;
        let code = match self.driver.vendor.device_attribute(attribute.0) {
            // SAFETY: the driver returned the device; the result is written before the call
            // returns.
            Some(number) => unsafe {
                (self.driver.calls.device_attribute)(&mut value, number, self.device)
            },
            None => Status::INVALID_VALUE,
        };
        match code {
            Status::INVALID_VALUE => Err(self.driver.error_with(
                "attribute",
                code,
                &format!("attribute is {}, which this driver does not know", attribute.0),
            )),
            code => self.driver.check("attribute", code).map(|()| value),
        }
    }

    /// Returns the start and the bytes of the allocation that contains an address. The context is
    /// current.
    pub(super) fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        let read = optional!(self.driver, address_range, "address_range")?;
        let (mut start, mut bytes) = (0, 0);
        // SAFETY: the driver looks the address up; the results are written before it returns.
        let code = unsafe { read(&mut start, &mut bytes, address) };
        if code != Status::SUCCESS && self.driver.kind(code) == ErrorKind::InvalidArgument {
            let detail =
                format!("address is {address:#x}, which is not in an allocation of the device");
            return Err(self.driver.error_with("address_range", code, &detail));
        }
        self.check("address_range", code)?;
        Ok((start, bytes))
    }

    /// Returns the compilers' name of the device, for code that is to run on it.
    ///
    /// # Errors
    /// `Unsupported` if the driver reports a text that is not such a name.
    pub(super) fn target(&self) -> Result<&str> {
        let name = self.architecture.as_str();
        if self.driver.vendor.is_architecture(name) {
            return Ok(name);
        }
        Err(Error::unsupported(
            "target",
            format!(
                "the driver names the architecture of device {}:{} {name:?}, which no compiler \
                 knows (expected is {TARGETS}): copies and fills work there, no kernels",
                self.driver.vendor.name(),
                self.ordinal
            ),
        ))
    }
}

// Queries of streams and events: on some runtimes they return "not ready" forever.

/// The kinds of objects whose queries report completion after their work has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuerySupport {
    pub(super) streams: bool,
    pub(super) events: bool,
    /// True if this holds for events that were never recorded, which count as complete.
    pub(super) unrecorded: bool,
}

impl QuerySupport {
    /// Assumed after a failure, which the next call reports.
    pub(super) const UNKNOWN: QuerySupport =
        QuerySupport { streams: true, events: true, unrecorded: true };

    /// Queries idle objects of a device. The context is current.
    #[cold]
    pub(super) fn of(driver: &Driver, ordinal: usize) -> QuerySupport {
        let support = QuerySupport::try_queries(driver);
        let all = [support.streams, support.events, support.unrecorded];
        if all.contains(&false) {
            log::warn!(
                "device {}:{ordinal} answers queries of idle objects with \"not ready\" \
                 ({support:?}): waits for them cannot be interrupted",
                driver.vendor.name(),
            );
        }
        support
    }

    fn try_queries(driver: &Driver) -> QuerySupport {
        let (calls, mut support) = (&driver.calls, QuerySupport::UNKNOWN);
        let failed = |code: c_int| match code {
            Status::SUCCESS => false,
            _ => {
                driver.vendor.forget_failure();
                true
            }
        };
        let (mut stream, mut event): (Handle, Handle) = (0, 0);
        // SAFETY: the handles are written before the calls return, used while they are live, and
        // destroyed once.
        unsafe {
            if failed((calls.stream_create)(&mut stream, NON_BLOCKING, 0)) {
                return support;
            }
            support.streams = (calls.stream_query)(stream) != Status::NOT_READY;
            if !failed((calls.event_create)(&mut event, NO_TIMING)) {
                support.unrecorded = (calls.event_query)(event) != Status::NOT_READY;
                if !failed((calls.event_record)(event, stream))
                    && !failed((calls.event_synchronize)(event))
                {
                    support.events = (calls.event_query)(event) != Status::NOT_READY;
                }
                failed((calls.event_destroy)(event));
            }
            failed((calls.stream_destroy)(stream));
        }
        support
    }
}

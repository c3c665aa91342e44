//! The features of a driver's device, determined from the driver's functions and the device's attributes.

use crate::state::DeviceState;
use crate::texture_calls::TextureCalls;
use hal::features::{Feature, Features};
use hal::properties::DeviceAttribute;

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

//! What a backend and its devices say of themselves.

use crate::context::{Context, error_of, expect_error};
use crate::harness::{Outcome, tests};
use gpuarray::{DeviceAttribute, ErrorKind, Status};
use std::collections::HashSet;
use std::sync::Arc;

tests![
    a_backend_has_a_name_a_version_and_devices,
    a_device_is_the_same_each_time_it_is_asked_for,
    a_device_number_that_does_not_exist_is_refused_with_its_value,
    properties_are_filled_in,
    attributes_agree_with_the_properties,
    an_unknown_attribute_is_refused_with_its_number,
    streams_have_numbers_of_their_own,
    common_status_codes_have_names,
];

fn a_backend_has_a_name_a_version_and_devices(context: &Context) -> Outcome {
    assert!(["cuda", "hip", "host"].contains(&context.backend.name()));
    assert!(context.backend.version()? > 0);
    assert!(context.backend.device_count()? > 0);
    Ok(())
}

fn a_device_is_the_same_each_time_it_is_asked_for(context: &Context) -> Outcome {
    let again = context.backend.device(0)?;
    assert!(Arc::ptr_eq(&again, &context.device));
    assert_eq!(again.id().backend, context.backend.name());
    assert_eq!(again.id().to_string(), format!("{}:0", context.backend.name()));
    assert_eq!(context.device.default_stream().device_id(), again.id());
    Ok(())
}

fn a_device_number_that_does_not_exist_is_refused_with_its_value(context: &Context) -> Outcome {
    let count = context.backend.device_count()?;
    for ordinal in [count, 4711, usize::MAX] {
        let named = ordinal.to_string();
        expect_error(context.backend.device(ordinal), ErrorKind::InvalidArgument, &[&named])?;
        let error = error_of(context.backend.device(ordinal));
        assert_eq!(error.status().code, Status::INVALID_DEVICE);
    }
    Ok(())
}

fn properties_are_filled_in(context: &Context) -> Outcome {
    let properties = context.device.properties();
    assert!(!properties.name.is_empty());
    assert_eq!(properties.pci_bus_id.matches([':', '.']).count(), 3);
    let info = context.device.memory_info()?;
    assert!(info.free <= info.total);
    assert!(properties.total_memory > 0);
    Ok(())
}

fn attributes_agree_with_the_properties(context: &Context) -> Outcome {
    let of = |attribute| context.device.attribute(attribute);
    let (major, minor) = context.device.properties().compute_capability;
    assert_eq!(of(DeviceAttribute::COMPUTE_CAPABILITY_MAJOR)?, major as i32);
    assert_eq!(of(DeviceAttribute::COMPUTE_CAPABILITY_MINOR)?, minor as i32);
    assert!(of(DeviceAttribute::MULTIPROCESSOR_COUNT)? >= 1);
    assert!(of(DeviceAttribute::MAX_THREADS_PER_BLOCK)? >= 1);
    assert!(of(DeviceAttribute::WARP_SIZE)? >= 1);
    Ok(())
}

fn an_unknown_attribute_is_refused_with_its_number(context: &Context) -> Outcome {
    for number in [-1, 0, 987_654] {
        let result = context.device.attribute(DeviceAttribute(number));
        expect_error(result, ErrorKind::InvalidArgument, &[&number.to_string()])?;
    }
    Ok(())
}

fn streams_have_numbers_of_their_own(context: &Context) -> Outcome {
    let mut seen = HashSet::from([context.device.default_stream().id()]);
    for _ in 0..8 {
        // Each is dropped before the next is made: numbers are not used again.
        assert!(seen.insert(context.stream()?.id()));
        assert!(seen.insert(context.blocking_stream()?.id()));
    }
    assert_eq!(context.device.default_stream().handle(), 0);
    assert_ne!(context.stream()?.handle(), 0);
    Ok(())
}

fn common_status_codes_have_names(context: &Context) -> Outcome {
    for code in [Status::SUCCESS, Status::OUT_OF_MEMORY, Status::INVALID_VALUE] {
        assert!(context.backend.status_name(code).is_some_and(|name| !name.is_empty()));
    }
    assert_eq!(context.backend.status_name(-12345), None);
    Ok(())
}

//! The properties of a backend and its devices.

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
    devices_are_found_by_their_pci_bus_id,
    devices_are_found_by_their_uuid,
    what_names_no_device_is_refused_with_the_devices_there_are,
    limits_of_the_context_are_read_and_set needs [Kernels, Limits],
    a_profiler_is_started_and_stopped needs [Driver],
    what_a_host_has_not_is_refused_by_name needs [HostAddresses],
    two_devices_have_identities_of_their_own needs [SecondDevice, Driver],
];

fn a_backend_has_a_name_a_version_and_devices(context: &Context) -> Outcome {
    assert!(["cuda", "hip", "host", "skeleton"].contains(&context.backend.name()));
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
        // Each stream is dropped before the next is created: identifiers are not reused.
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
        assert!(context.backend.status_message(code).is_some_and(|text| !text.is_empty()));
        // The driver and the tables agree on the name.
        let status = Status::new(context.backend.api(), code);
        assert_eq!(context.backend.status_name(code), status.name());
    }
    assert_eq!(context.backend.status_name(-12345), None);
    assert_eq!(context.backend.status_message(-12345), None);
    Ok(())
}

fn devices_are_found_by_their_pci_bus_id(context: &Context) -> Outcome {
    let id = context.device.properties().pci_bus_id.clone();
    let (domain, rest) = id.split_once(':').expect("a domain");
    let padded = format!(" 0000{domain}:{} ", rest.to_lowercase());
    let mut known = vec![id.clone(), id.to_uppercase(), padded];
    if u32::from_str_radix(domain, 16)? == 0 {
        known.push(rest.to_owned());
    }
    for text in known {
        let found = context.backend.device_by_pci_bus_id(&text)?;
        assert!(Arc::ptr_eq(&found, &context.device), "{text}");
    }
    Ok(())
}

fn devices_are_found_by_their_uuid(context: &Context) -> Outcome {
    let Some(uuid) = context.device.properties().uuid_text() else {
        let refused = context.backend.device_by_uuid("GPU-00000000-0000-0000-0000-000000000000");
        return expect_error(refused, ErrorKind::InvalidArgument, &["UUID"]);
    };
    let digits: String = uuid.trim_start_matches("GPU-").split('-').collect();
    assert_eq!((uuid.len(), digits.len()), (40, 32), "{uuid}");
    for text in [uuid.clone(), uuid.to_uppercase(), digits, uuid[4..].to_owned()] {
        let found = context.backend.device_by_uuid(&text)?;
        assert!(Arc::ptr_eq(&found, &context.device), "{text}");
    }
    Ok(())
}

fn what_names_no_device_is_refused_with_the_devices_there_are(context: &Context) -> Outcome {
    let kind = ErrorKind::InvalidArgument;
    let there = context.device.properties().pci_bus_id.clone();
    for text in ["ffff:ff:1f.7", "7fff:00:00.0"] {
        let refused = context.backend.device_by_pci_bus_id(text);
        expect_error(refused, kind, &[text, &there])?;
    }
    for text in ["", "gpu", "0", "1:2:3:4.5", "0000:zz:00.0", "0000:01:00.x", "GPU-1"] {
        let refused = context.backend.device_by_pci_bus_id(text);
        expect_error(refused, kind, &[&format!("{text:?}"), "domain:bus:device.function"])?;
    }
    for text in ["", "GPU-", "gpu", "GPU-00000000-0000-0000-0000-0000000000"] {
        let refused = context.backend.device_by_uuid(text);
        expect_error(refused, kind, &[&format!("{text:?}"), &there])?;
    }
    Ok(())
}

fn limits_of_the_context_are_read_and_set(context: &Context) -> Outcome {
    // `CU_LIMIT_STACK_SIZE`; HIP uses the same number.
    let stack = context.device.limit(0)?;
    assert!(stack > 0);
    context.device.set_limit(0, stack + 1024)?;
    assert!(context.device.limit(0)? >= stack + 1024);
    context.device.set_limit(0, stack)?;
    for number in [-1, 987_654] {
        assert!(!error_of(context.device.limit(number)).status().is_success());
        assert!(!error_of(context.device.set_limit(number, 1)).status().is_success());
    }
    Ok(())
}

fn a_profiler_is_started_and_stopped(context: &Context) -> Outcome {
    context.device.synchronize()?;
    context.backend.profiler_start()?;
    context.backend.profiler_stop()?;
    Ok(())
}

fn what_a_host_has_not_is_refused_by_name(context: &Context) -> Outcome {
    let kind = ErrorKind::Unsupported;
    // SAFETY: the call is refused.
    expect_error(unsafe { context.device.reset() }, kind, &["reset"])?;
    assert_eq!(context.device.epoch(), 0);
    context.device.make_current()?;
    Ok(())
}

fn two_devices_have_identities_of_their_own(context: &Context) -> Outcome {
    let second = context.second_device()?;
    let (one, two) = (context.device.properties(), second.properties());
    assert_ne!(context.device.id(), second.id());
    assert_ne!(one.pci_bus_id, two.pci_bus_id);
    assert_ne!(one.uuid, two.uuid);
    assert_eq!(context.backend.device_by_pci_bus_id(&two.pci_bus_id)?.id(), second.id());
    assert_eq!(
        context.backend.device_by_uuid(&two.uuid_text().expect("a UUID"))?.id(),
        second.id()
    );
    Ok(())
}

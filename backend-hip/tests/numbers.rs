//! The numbers that `hal` passes to either vendor's driver are valid for HIP.

#[path = "../src/bindings.rs"]
mod bindings;

use bindings::*;
use hal::{Api, KernelAttribute, Status};
use std::collections::HashMap;

/// Returns the constants of an enumeration in the bindings by number, with the first name of each.
fn constants(enumeration: &str) -> HashMap<i32, &'static str> {
    let bindings = include_str!("../src/bindings.rs");
    let start = bindings.find(&format!("pub mod {enumeration} {{")).expect("the enumeration");
    let body = bindings[start..].split("\n}").next().expect("its end");
    let mut all = HashMap::new();
    for line in body.lines().filter_map(|line| line.trim().strip_prefix("pub const ")) {
        let (name, number) = line.split_once(": Type = ").expect("a constant");
        let number = number.trim_end_matches(';').parse().expect("a number");
        all.entry(number).or_insert(name);
    }
    assert!(all.len() > 10);
    all
}

#[test]
fn every_status_has_the_name_of_the_header() {
    for (code, name) in constants("hipError_t") {
        assert_eq!(Status::hip(code).name(), Some(name), "{code}");
    }
    for (code, name) in constants("hiprtcResult") {
        assert_eq!(Status::new(Api::Hiprtc, code).name(), Some(name), "{code}");
    }
    assert_eq!(Status::hip(12345).name(), None);
}

#[test]
fn statuses_are_those_that_both_vendors_number_alike() {
    use hipError_t::*;
    for (number, hip) in [
        (Status::SUCCESS, hipSuccess),
        (Status::INVALID_VALUE, hipErrorInvalidValue),
        (Status::OUT_OF_MEMORY, hipErrorOutOfMemory),
        (Status::NOT_INITIALIZED, hipErrorNotInitialized),
        (Status::DEINITIALIZED, hipErrorDeinitialized),
        (Status::NO_DEVICE, hipErrorNoDevice),
        (Status::INVALID_DEVICE, hipErrorInvalidDevice),
        (Status::INVALID_SOURCE, hipErrorInvalidSource),
        (Status::INVALID_HANDLE, hipErrorInvalidHandle),
        (Status::NOT_FOUND, hipErrorNotFound),
        (Status::NOT_READY, hipErrorNotReady),
        (Status::ILLEGAL_ADDRESS, hipErrorIllegalAddress),
        (Status::LAUNCH_OUT_OF_RESOURCES, hipErrorLaunchOutOfResources),
        (Status::HOST_MEMORY_ALREADY_REGISTERED, hipErrorHostMemoryAlreadyRegistered),
        (Status::HOST_MEMORY_NOT_REGISTERED, hipErrorHostMemoryNotRegistered),
        (Status::LAUNCH_FAILED, hipErrorLaunchFailure),
        (Status::NOT_SUPPORTED, hipErrorNotSupported),
        (Status::UNKNOWN, hipErrorUnknown),
        // The statuses that hal/driver recognises by number.
        (35, hipErrorInsufficientDriver),
        (200, hipErrorInvalidImage),
        (201, hipErrorInvalidContext),
        (209, hipErrorNoBinaryForGpu),
        (214, hipErrorECCNotCorrectable),
        (215, hipErrorUnsupportedLimit),
        (217, hipErrorPeerAccessUnsupported),
        (218, hipErrorInvalidKernelFile),
        (302, hipErrorSharedObjectSymbolNotFound),
        (303, hipErrorSharedObjectInitFailed),
        (702, hipErrorLaunchTimeOut),
        (704, hipErrorPeerAccessAlreadyEnabled),
        (705, hipErrorPeerAccessNotEnabled),
        (709, hipErrorContextIsDestroyed),
        (710, hipErrorAssert),
        (720, hipErrorCooperativeLaunchTooLarge),
        (900, hipErrorStreamCaptureUnsupported),
        (901, hipErrorStreamCaptureInvalidated),
        (902, hipErrorStreamCaptureMerge),
        (903, hipErrorStreamCaptureUnmatched),
        (904, hipErrorStreamCaptureUnjoined),
        (905, hipErrorStreamCaptureIsolation),
        (906, hipErrorStreamCaptureImplicit),
        (907, hipErrorCapturedEvent),
        (908, hipErrorStreamCaptureWrongThread),
    ] {
        assert_eq!(number as u32, hip);
    }
}

#[test]
fn kernel_attributes_and_limits_are_numbered_alike() {
    use KernelAttribute as A;
    use hipFunction_attribute::*;
    for (attribute, hip) in [
        (A::MAX_THREADS_PER_BLOCK, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        (A::SHARED_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        (A::CONST_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
        (A::LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        (A::NUM_REGS, HIP_FUNC_ATTRIBUTE_NUM_REGS),
        (A::PTX_VERSION, HIP_FUNC_ATTRIBUTE_PTX_VERSION),
        (A::BINARY_VERSION, HIP_FUNC_ATTRIBUTE_BINARY_VERSION),
        (A::MAX_DYNAMIC_SHARED_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        (A::PREFERRED_SHARED_MEMORY_CARVEOUT, HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
    ] {
        assert_eq!(attribute.0 as u32, hip);
    }
    // CU_LIMIT_STACK_SIZE, _PRINTF_FIFO_SIZE, _MALLOC_HEAP_SIZE.
    use hipLimit_t::*;
    assert_eq!([hipLimitStackSize, hipLimitPrintfFifoSize, hipLimitMallocHeapSize], [0, 1, 2]);
}

#[test]
fn flags_and_modes_are_the_ones_that_the_table_documents() {
    assert_eq!(hipStreamNonBlocking, 1);
    assert_eq!([hipEventBlockingSync, hipEventDisableTiming, hipEventInterprocess], [1, 2, 4]);
    assert_eq!([hipHostMallocPortable, hipHostMallocMapped, hipHostMallocWriteCombined], [1, 2, 4]);
    assert_eq!([hipHostRegisterPortable, hipHostRegisterMapped], [1, 2]);
    assert_eq!(hipMemAttachGlobal, 1);
    use hipStreamCaptureMode::*;
    let modes =
        [hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed];
    assert_eq!(modes, [0, 1, 2]);
    use hipStreamCaptureStatus::*;
    let states = [
        hipStreamCaptureStatusNone,
        hipStreamCaptureStatusActive,
        hipStreamCaptureStatusInvalidated,
    ];
    assert_eq!(states, [0, 1, 2]);
}

#[test]
fn pools_and_loaders_have_the_numbers_that_hal_uses() {
    use hipMemPoolAttr::*;
    let attributes = [
        hipMemPoolAttrReleaseThreshold,
        hipMemPoolAttrReservedMemCurrent,
        hipMemPoolAttrUsedMemCurrent,
    ];
    assert_eq!(attributes, [4, 5, 7]);
    assert_eq!(hipMemAllocationType::hipMemAllocationTypePinned, 1);
    assert_eq!(hipMemAllocationHandleType::hipMemHandleTypeNone, 0);
    assert_eq!(hipMemLocationType::hipMemLocationTypeDevice, 1);
    use hipMemAccessFlags::*;
    assert_eq!([hipMemAccessFlagsProtNone, hipMemAccessFlagsProtReadWrite], [0, 3]);
    use hipJitOption::*;
    let options = [
        hipJitOptionMaxRegisters,
        hipJitOptionInfoLogBuffer,
        hipJitOptionInfoLogBufferSizeBytes,
        hipJitOptionErrorLogBuffer,
        hipJitOptionErrorLogBufferSizeBytes,
        hipJitOptionOptimizationLevel,
        hipJitOptionGenerateDebugInfo,
        hipJitOptionLogVerbose,
        hipJitOptionGenerateLineInfo,
    ];
    assert_eq!(options, [0, 3, 4, 5, 6, 7, 11, 12, 13]);
    assert_eq!(hiprtcResult::HIPRTC_ERROR_OUT_OF_MEMORY, 1);
}

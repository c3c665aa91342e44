//! Device attributes: pygpu's public numbers are CUDA's, and HIP's attributes have other numbers.

use crate::bindings::hipDeviceAttribute_t as hip;
use std::ffi::c_int;

/// AMD's own attributes keep their numbers, which begin far above CUDA's.
const AMD: std::ops::Range<i32> = hip::hipDeviceAttributeAmdSpecificBegin as i32
    ..hip::hipDeviceAttributeVendorSpecificBegin as i32;

/// Returns HIP's number for the attribute whose number in CUDA is `number`.
pub(crate) fn of_hip(number: i32) -> Option<c_int> {
    if AMD.contains(&number) {
        return Some(number);
    }
    let index = CUDA.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    Some(CUDA[index].1 as c_int)
}

/// CUDA's number and HIP's, in ascending order. ROCm 5 refuses the numbers of attributes that were
/// added later.
pub(crate) const CUDA: &[(i32, hip::Type)] = &[
    (1, hip::hipDeviceAttributeMaxThreadsPerBlock),
    (2, hip::hipDeviceAttributeMaxBlockDimX),
    (3, hip::hipDeviceAttributeMaxBlockDimY),
    (4, hip::hipDeviceAttributeMaxBlockDimZ),
    (5, hip::hipDeviceAttributeMaxGridDimX),
    (6, hip::hipDeviceAttributeMaxGridDimY),
    (7, hip::hipDeviceAttributeMaxGridDimZ),
    (8, hip::hipDeviceAttributeMaxSharedMemoryPerBlock),
    (9, hip::hipDeviceAttributeTotalConstantMemory),
    (10, hip::hipDeviceAttributeWarpSize),
    (11, hip::hipDeviceAttributeMaxPitch),
    (12, hip::hipDeviceAttributeMaxRegistersPerBlock),
    (13, hip::hipDeviceAttributeClockRate),
    (14, hip::hipDeviceAttributeTextureAlignment),
    (15, hip::hipDeviceAttributeDeviceOverlap),
    (16, hip::hipDeviceAttributeMultiprocessorCount),
    (17, hip::hipDeviceAttributeKernelExecTimeout),
    (18, hip::hipDeviceAttributeIntegrated),
    (19, hip::hipDeviceAttributeCanMapHostMemory),
    (20, hip::hipDeviceAttributeComputeMode),
    (21, hip::hipDeviceAttributeMaxTexture1DWidth),
    (22, hip::hipDeviceAttributeMaxTexture2DWidth),
    (23, hip::hipDeviceAttributeMaxTexture2DHeight),
    (24, hip::hipDeviceAttributeMaxTexture3DWidth),
    (25, hip::hipDeviceAttributeMaxTexture3DHeight),
    (26, hip::hipDeviceAttributeMaxTexture3DDepth),
    (30, hip::hipDeviceAttributeSurfaceAlignment),
    (31, hip::hipDeviceAttributeConcurrentKernels),
    (32, hip::hipDeviceAttributeEccEnabled),
    (33, hip::hipDeviceAttributePciBusId),
    (34, hip::hipDeviceAttributePciDeviceId),
    (35, hip::hipDeviceAttributeTccDriver),
    (36, hip::hipDeviceAttributeMemoryClockRate),
    (37, hip::hipDeviceAttributeMemoryBusWidth),
    (38, hip::hipDeviceAttributeL2CacheSize),
    (39, hip::hipDeviceAttributeMaxThreadsPerMultiProcessor),
    (40, hip::hipDeviceAttributeAsyncEngineCount),
    (41, hip::hipDeviceAttributeUnifiedAddressing),
    (50, hip::hipDeviceAttributePciDomainID),
    (51, hip::hipDeviceAttributeTexturePitchAlignment),
    (75, hip::hipDeviceAttributeComputeCapabilityMajor),
    (76, hip::hipDeviceAttributeComputeCapabilityMinor),
    (78, hip::hipDeviceAttributeStreamPrioritiesSupported),
    (79, hip::hipDeviceAttributeGlobalL1CacheSupported),
    (80, hip::hipDeviceAttributeLocalL1CacheSupported),
    (81, hip::hipDeviceAttributeMaxSharedMemoryPerMultiprocessor),
    (82, hip::hipDeviceAttributeMaxRegistersPerMultiprocessor),
    (83, hip::hipDeviceAttributeManagedMemory),
    (84, hip::hipDeviceAttributeIsMultiGpuBoard),
    (85, hip::hipDeviceAttributeMultiGpuBoardGroupID),
    (86, hip::hipDeviceAttributeHostNativeAtomicSupported),
    (87, hip::hipDeviceAttributeSingleToDoublePrecisionPerfRatio),
    (88, hip::hipDeviceAttributePageableMemoryAccess),
    (89, hip::hipDeviceAttributeConcurrentManagedAccess),
    (90, hip::hipDeviceAttributeComputePreemptionSupported),
    (91, hip::hipDeviceAttributeCanUseHostPointerForRegisteredMem),
    (95, hip::hipDeviceAttributeCooperativeLaunch),
    (96, hip::hipDeviceAttributeCooperativeMultiDeviceLaunch),
    // CUDA's limit for kernels that opt in to more shared memory; HIP kernels need not opt in.
    (97, hip::hipDeviceAttributeMaxSharedMemoryPerBlock),
    (99, hip::hipDeviceAttributeHostRegisterSupported),
    (100, hip::hipDeviceAttributePageableMemoryAccessUsesHostPageTables),
    (101, hip::hipDeviceAttributeDirectManagedMemAccessFromHost),
    (106, hip::hipDeviceAttributeMaxBlocksPerMultiProcessor),
    (108, hip::hipDeviceAttributePersistingL2CacheMaxSize),
    (109, hip::hipDeviceAttributeAccessPolicyMaxWindowSize),
    (111, hip::hipDeviceAttributeReservedSharedMemPerBlock),
    (115, hip::hipDeviceAttributeMemoryPoolsSupported),
    (119, hip::hipDeviceAttributeMemoryPoolSupportedHandleTypes),
];

#[cfg(test)]
mod tests {
    use super::{CUDA, of_hip};
    use hal::DeviceAttribute;

    #[test]
    fn numbers_ascend_and_no_two_are_the_same_attribute() {
        assert!(CUDA.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (i, (number, hip)) in CUDA.iter().enumerate() {
            let other = CUDA[..i].iter().find(|(_, other)| other == hip);
            assert_eq!(other.map(|(number, _)| *number), (*number == 97).then_some(8));
        }
    }

    #[test]
    fn every_named_attribute_is_translated_and_others_are_refused() {
        use DeviceAttribute as A;
        for (named, hip) in [
            (A::MAX_THREADS_PER_BLOCK, 56),
            (A::MAX_GRID_DIM_X, 29),
            (A::WARP_SIZE, 87),
            (A::MULTIPROCESSOR_COUNT, 63),
            (A::COMPUTE_CAPABILITY_MAJOR, 23),
            (A::COMPUTE_CAPABILITY_MINOR, 61),
            (A::MANAGED_MEMORY, 24),
        ] {
            assert_eq!(of_hip(named.0), Some(hip));
        }
        assert_eq!(of_hip(10_015), Some(10_015));
        for number in [0, -1, 27, 98, 120, 134, 9999, 20_000, i32::MIN, i32::MAX] {
            assert_eq!(of_hip(number), None, "{number}");
        }
    }
}

// Made by `make bindings` from the headers of HIP 6.2, which are
// Copyright (c) Advanced Micro Devices, Inc., under the MIT licence. Do not edit.

#![allow(dead_code, missing_debug_implementations, missing_docs, non_camel_case_types)]
#![allow(non_snake_case, non_upper_case_globals, unreachable_pub, reason = "made from headers")]

#[derive(PartialEq, Eq, Copy, Clone, Debug, Hash)]
#[repr(C, align(8))]
pub struct __BindgenOpaqueArray8<T>(pub T);
impl<T: Copy + Default, const N: usize> Default for __BindgenOpaqueArray8<[T; N]> {
    fn default() -> Self {
        Self([<T as Default>::default(); N])
    }
}
pub const hipIpcMemLazyEnablePeerAccess: u32 = 1;
pub const hipStreamNonBlocking: u32 = 1;
pub const hipEventBlockingSync: u32 = 1;
pub const hipEventDisableTiming: u32 = 2;
pub const hipEventInterprocess: u32 = 4;
pub const hipHostMallocPortable: u32 = 1;
pub const hipHostMallocMapped: u32 = 2;
pub const hipHostMallocWriteCombined: u32 = 4;
pub const hipMemAttachGlobal: u32 = 1;
pub const hipHostRegisterPortable: u32 = 1;
pub const hipHostRegisterMapped: u32 = 2;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceArch_t {
    pub _bindgen_align: [u32; 0],
    pub _bindgen_opaque_blob: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipUUID_t {
    pub bytes: [::std::ffi::c_char; 16usize],
}
pub type hipUUID = hipUUID_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceProp_tR0600 {
    pub name: [::std::ffi::c_char; 256usize],
    pub uuid: hipUUID,
    pub luid: [::std::ffi::c_char; 8usize],
    pub luidDeviceNodeMask: ::std::ffi::c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: ::std::ffi::c_int,
    pub warpSize: ::std::ffi::c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: ::std::ffi::c_int,
    pub maxThreadsDim: [::std::ffi::c_int; 3usize],
    pub maxGridSize: [::std::ffi::c_int; 3usize],
    pub clockRate: ::std::ffi::c_int,
    pub totalConstMem: usize,
    pub major: ::std::ffi::c_int,
    pub minor: ::std::ffi::c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: ::std::ffi::c_int,
    pub multiProcessorCount: ::std::ffi::c_int,
    pub kernelExecTimeoutEnabled: ::std::ffi::c_int,
    pub integrated: ::std::ffi::c_int,
    pub canMapHostMemory: ::std::ffi::c_int,
    pub computeMode: ::std::ffi::c_int,
    pub maxTexture1D: ::std::ffi::c_int,
    pub maxTexture1DMipmap: ::std::ffi::c_int,
    pub maxTexture1DLinear: ::std::ffi::c_int,
    pub maxTexture2D: [::std::ffi::c_int; 2usize],
    pub maxTexture2DMipmap: [::std::ffi::c_int; 2usize],
    pub maxTexture2DLinear: [::std::ffi::c_int; 3usize],
    pub maxTexture2DGather: [::std::ffi::c_int; 2usize],
    pub maxTexture3D: [::std::ffi::c_int; 3usize],
    pub maxTexture3DAlt: [::std::ffi::c_int; 3usize],
    pub maxTextureCubemap: ::std::ffi::c_int,
    pub maxTexture1DLayered: [::std::ffi::c_int; 2usize],
    pub maxTexture2DLayered: [::std::ffi::c_int; 3usize],
    pub maxTextureCubemapLayered: [::std::ffi::c_int; 2usize],
    pub maxSurface1D: ::std::ffi::c_int,
    pub maxSurface2D: [::std::ffi::c_int; 2usize],
    pub maxSurface3D: [::std::ffi::c_int; 3usize],
    pub maxSurface1DLayered: [::std::ffi::c_int; 2usize],
    pub maxSurface2DLayered: [::std::ffi::c_int; 3usize],
    pub maxSurfaceCubemap: ::std::ffi::c_int,
    pub maxSurfaceCubemapLayered: [::std::ffi::c_int; 2usize],
    pub surfaceAlignment: usize,
    pub concurrentKernels: ::std::ffi::c_int,
    pub ECCEnabled: ::std::ffi::c_int,
    pub pciBusID: ::std::ffi::c_int,
    pub pciDeviceID: ::std::ffi::c_int,
    pub pciDomainID: ::std::ffi::c_int,
    pub tccDriver: ::std::ffi::c_int,
    pub asyncEngineCount: ::std::ffi::c_int,
    pub unifiedAddressing: ::std::ffi::c_int,
    pub memoryClockRate: ::std::ffi::c_int,
    pub memoryBusWidth: ::std::ffi::c_int,
    pub l2CacheSize: ::std::ffi::c_int,
    pub persistingL2CacheMaxSize: ::std::ffi::c_int,
    pub maxThreadsPerMultiProcessor: ::std::ffi::c_int,
    pub streamPrioritiesSupported: ::std::ffi::c_int,
    pub globalL1CacheSupported: ::std::ffi::c_int,
    pub localL1CacheSupported: ::std::ffi::c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: ::std::ffi::c_int,
    pub managedMemory: ::std::ffi::c_int,
    pub isMultiGpuBoard: ::std::ffi::c_int,
    pub multiGpuBoardGroupID: ::std::ffi::c_int,
    pub hostNativeAtomicSupported: ::std::ffi::c_int,
    pub singleToDoublePrecisionPerfRatio: ::std::ffi::c_int,
    pub pageableMemoryAccess: ::std::ffi::c_int,
    pub concurrentManagedAccess: ::std::ffi::c_int,
    pub computePreemptionSupported: ::std::ffi::c_int,
    pub canUseHostPointerForRegisteredMem: ::std::ffi::c_int,
    pub cooperativeLaunch: ::std::ffi::c_int,
    pub cooperativeMultiDeviceLaunch: ::std::ffi::c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: ::std::ffi::c_int,
    pub directManagedMemAccessFromHost: ::std::ffi::c_int,
    pub maxBlocksPerMultiProcessor: ::std::ffi::c_int,
    pub accessPolicyMaxWindowSize: ::std::ffi::c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: ::std::ffi::c_int,
    pub sparseHipArraySupported: ::std::ffi::c_int,
    pub hostRegisterReadOnlySupported: ::std::ffi::c_int,
    pub timelineSemaphoreInteropSupported: ::std::ffi::c_int,
    pub memoryPoolsSupported: ::std::ffi::c_int,
    pub gpuDirectRDMASupported: ::std::ffi::c_int,
    pub gpuDirectRDMAFlushWritesOptions: ::std::ffi::c_uint,
    pub gpuDirectRDMAWritesOrdering: ::std::ffi::c_int,
    pub memoryPoolSupportedHandleTypes: ::std::ffi::c_uint,
    pub deferredMappingHipArraySupported: ::std::ffi::c_int,
    pub ipcEventSupported: ::std::ffi::c_int,
    pub clusterLaunch: ::std::ffi::c_int,
    pub unifiedFunctionPointers: ::std::ffi::c_int,
    pub reserved: [::std::ffi::c_int; 63usize],
    pub hipReserved: [::std::ffi::c_int; 32usize],
    pub gcnArchName: [::std::ffi::c_char; 256usize],
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub clockInstructionRate: ::std::ffi::c_int,
    pub arch: hipDeviceArch_t,
    pub hdpMemFlushCntl: *mut ::std::ffi::c_uint,
    pub hdpRegFlushCntl: *mut ::std::ffi::c_uint,
    pub cooperativeMultiDeviceUnmatchedFunc: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: ::std::ffi::c_int,
    pub isLargeBar: ::std::ffi::c_int,
    pub asicRevision: ::std::ffi::c_int,
}
pub mod hipMemoryType {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemoryTypeUnregistered: Type = 0;
    pub const hipMemoryTypeHost: Type = 1;
    pub const hipMemoryTypeDevice: Type = 2;
    pub const hipMemoryTypeManaged: Type = 3;
    pub const hipMemoryTypeArray: Type = 10;
    pub const hipMemoryTypeUnified: Type = 11;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipPointerAttribute_t {
    pub type_: hipMemoryType::Type,
    pub device: ::std::ffi::c_int,
    pub devicePointer: *mut ::std::ffi::c_void,
    pub hostPointer: *mut ::std::ffi::c_void,
    pub isManaged: ::std::ffi::c_int,
    pub allocationFlags: ::std::ffi::c_uint,
}
pub mod hipError_t {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipSuccess: Type = 0;
    pub const hipErrorInvalidValue: Type = 1;
    pub const hipErrorOutOfMemory: Type = 2;
    pub const hipErrorMemoryAllocation: Type = 2;
    pub const hipErrorNotInitialized: Type = 3;
    pub const hipErrorInitializationError: Type = 3;
    pub const hipErrorDeinitialized: Type = 4;
    pub const hipErrorProfilerDisabled: Type = 5;
    pub const hipErrorProfilerNotInitialized: Type = 6;
    pub const hipErrorProfilerAlreadyStarted: Type = 7;
    pub const hipErrorProfilerAlreadyStopped: Type = 8;
    pub const hipErrorInvalidConfiguration: Type = 9;
    pub const hipErrorInvalidPitchValue: Type = 12;
    pub const hipErrorInvalidSymbol: Type = 13;
    pub const hipErrorInvalidDevicePointer: Type = 17;
    pub const hipErrorInvalidMemcpyDirection: Type = 21;
    pub const hipErrorInsufficientDriver: Type = 35;
    pub const hipErrorMissingConfiguration: Type = 52;
    pub const hipErrorPriorLaunchFailure: Type = 53;
    pub const hipErrorInvalidDeviceFunction: Type = 98;
    pub const hipErrorNoDevice: Type = 100;
    pub const hipErrorInvalidDevice: Type = 101;
    pub const hipErrorInvalidImage: Type = 200;
    pub const hipErrorInvalidContext: Type = 201;
    pub const hipErrorContextAlreadyCurrent: Type = 202;
    pub const hipErrorMapFailed: Type = 205;
    pub const hipErrorMapBufferObjectFailed: Type = 205;
    pub const hipErrorUnmapFailed: Type = 206;
    pub const hipErrorArrayIsMapped: Type = 207;
    pub const hipErrorAlreadyMapped: Type = 208;
    pub const hipErrorNoBinaryForGpu: Type = 209;
    pub const hipErrorAlreadyAcquired: Type = 210;
    pub const hipErrorNotMapped: Type = 211;
    pub const hipErrorNotMappedAsArray: Type = 212;
    pub const hipErrorNotMappedAsPointer: Type = 213;
    pub const hipErrorECCNotCorrectable: Type = 214;
    pub const hipErrorUnsupportedLimit: Type = 215;
    pub const hipErrorContextAlreadyInUse: Type = 216;
    pub const hipErrorPeerAccessUnsupported: Type = 217;
    pub const hipErrorInvalidKernelFile: Type = 218;
    pub const hipErrorInvalidGraphicsContext: Type = 219;
    pub const hipErrorInvalidSource: Type = 300;
    pub const hipErrorFileNotFound: Type = 301;
    pub const hipErrorSharedObjectSymbolNotFound: Type = 302;
    pub const hipErrorSharedObjectInitFailed: Type = 303;
    pub const hipErrorOperatingSystem: Type = 304;
    pub const hipErrorInvalidHandle: Type = 400;
    pub const hipErrorInvalidResourceHandle: Type = 400;
    pub const hipErrorIllegalState: Type = 401;
    pub const hipErrorNotFound: Type = 500;
    pub const hipErrorNotReady: Type = 600;
    pub const hipErrorIllegalAddress: Type = 700;
    pub const hipErrorLaunchOutOfResources: Type = 701;
    pub const hipErrorLaunchTimeOut: Type = 702;
    pub const hipErrorPeerAccessAlreadyEnabled: Type = 704;
    pub const hipErrorPeerAccessNotEnabled: Type = 705;
    pub const hipErrorSetOnActiveProcess: Type = 708;
    pub const hipErrorContextIsDestroyed: Type = 709;
    pub const hipErrorAssert: Type = 710;
    pub const hipErrorHostMemoryAlreadyRegistered: Type = 712;
    pub const hipErrorHostMemoryNotRegistered: Type = 713;
    pub const hipErrorLaunchFailure: Type = 719;
    pub const hipErrorCooperativeLaunchTooLarge: Type = 720;
    pub const hipErrorNotSupported: Type = 801;
    pub const hipErrorStreamCaptureUnsupported: Type = 900;
    pub const hipErrorStreamCaptureInvalidated: Type = 901;
    pub const hipErrorStreamCaptureMerge: Type = 902;
    pub const hipErrorStreamCaptureUnmatched: Type = 903;
    pub const hipErrorStreamCaptureUnjoined: Type = 904;
    pub const hipErrorStreamCaptureIsolation: Type = 905;
    pub const hipErrorStreamCaptureImplicit: Type = 906;
    pub const hipErrorCapturedEvent: Type = 907;
    pub const hipErrorStreamCaptureWrongThread: Type = 908;
    pub const hipErrorGraphExecUpdateFailure: Type = 910;
    pub const hipErrorUnknown: Type = 999;
    pub const hipErrorRuntimeMemory: Type = 1052;
    pub const hipErrorRuntimeOther: Type = 1053;
    pub const hipErrorTbd: Type = 1054;
}
pub mod hipDeviceAttribute_t {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipDeviceAttributeCudaCompatibleBegin: Type = 0;
    pub const hipDeviceAttributeEccEnabled: Type = 0;
    pub const hipDeviceAttributeAccessPolicyMaxWindowSize: Type = 1;
    pub const hipDeviceAttributeAsyncEngineCount: Type = 2;
    pub const hipDeviceAttributeCanMapHostMemory: Type = 3;
    pub const hipDeviceAttributeCanUseHostPointerForRegisteredMem: Type = 4;
    pub const hipDeviceAttributeClockRate: Type = 5;
    pub const hipDeviceAttributeComputeMode: Type = 6;
    pub const hipDeviceAttributeComputePreemptionSupported: Type = 7;
    pub const hipDeviceAttributeConcurrentKernels: Type = 8;
    pub const hipDeviceAttributeConcurrentManagedAccess: Type = 9;
    pub const hipDeviceAttributeCooperativeLaunch: Type = 10;
    pub const hipDeviceAttributeCooperativeMultiDeviceLaunch: Type = 11;
    pub const hipDeviceAttributeDeviceOverlap: Type = 12;
    pub const hipDeviceAttributeDirectManagedMemAccessFromHost: Type = 13;
    pub const hipDeviceAttributeGlobalL1CacheSupported: Type = 14;
    pub const hipDeviceAttributeHostNativeAtomicSupported: Type = 15;
    pub const hipDeviceAttributeIntegrated: Type = 16;
    pub const hipDeviceAttributeIsMultiGpuBoard: Type = 17;
    pub const hipDeviceAttributeKernelExecTimeout: Type = 18;
    pub const hipDeviceAttributeL2CacheSize: Type = 19;
    pub const hipDeviceAttributeLocalL1CacheSupported: Type = 20;
    pub const hipDeviceAttributeLuid: Type = 21;
    pub const hipDeviceAttributeLuidDeviceNodeMask: Type = 22;
    pub const hipDeviceAttributeComputeCapabilityMajor: Type = 23;
    pub const hipDeviceAttributeManagedMemory: Type = 24;
    pub const hipDeviceAttributeMaxBlocksPerMultiProcessor: Type = 25;
    pub const hipDeviceAttributeMaxBlockDimX: Type = 26;
    pub const hipDeviceAttributeMaxBlockDimY: Type = 27;
    pub const hipDeviceAttributeMaxBlockDimZ: Type = 28;
    pub const hipDeviceAttributeMaxGridDimX: Type = 29;
    pub const hipDeviceAttributeMaxGridDimY: Type = 30;
    pub const hipDeviceAttributeMaxGridDimZ: Type = 31;
    pub const hipDeviceAttributeMaxSurface1D: Type = 32;
    pub const hipDeviceAttributeMaxSurface1DLayered: Type = 33;
    pub const hipDeviceAttributeMaxSurface2D: Type = 34;
    pub const hipDeviceAttributeMaxSurface2DLayered: Type = 35;
    pub const hipDeviceAttributeMaxSurface3D: Type = 36;
    pub const hipDeviceAttributeMaxSurfaceCubemap: Type = 37;
    pub const hipDeviceAttributeMaxSurfaceCubemapLayered: Type = 38;
    pub const hipDeviceAttributeMaxTexture1DWidth: Type = 39;
    pub const hipDeviceAttributeMaxTexture1DLayered: Type = 40;
    pub const hipDeviceAttributeMaxTexture1DLinear: Type = 41;
    pub const hipDeviceAttributeMaxTexture1DMipmap: Type = 42;
    pub const hipDeviceAttributeMaxTexture2DWidth: Type = 43;
    pub const hipDeviceAttributeMaxTexture2DHeight: Type = 44;
    pub const hipDeviceAttributeMaxTexture2DGather: Type = 45;
    pub const hipDeviceAttributeMaxTexture2DLayered: Type = 46;
    pub const hipDeviceAttributeMaxTexture2DLinear: Type = 47;
    pub const hipDeviceAttributeMaxTexture2DMipmap: Type = 48;
    pub const hipDeviceAttributeMaxTexture3DWidth: Type = 49;
    pub const hipDeviceAttributeMaxTexture3DHeight: Type = 50;
    pub const hipDeviceAttributeMaxTexture3DDepth: Type = 51;
    pub const hipDeviceAttributeMaxTexture3DAlt: Type = 52;
    pub const hipDeviceAttributeMaxTextureCubemap: Type = 53;
    pub const hipDeviceAttributeMaxTextureCubemapLayered: Type = 54;
    pub const hipDeviceAttributeMaxThreadsDim: Type = 55;
    pub const hipDeviceAttributeMaxThreadsPerBlock: Type = 56;
    pub const hipDeviceAttributeMaxThreadsPerMultiProcessor: Type = 57;
    pub const hipDeviceAttributeMaxPitch: Type = 58;
    pub const hipDeviceAttributeMemoryBusWidth: Type = 59;
    pub const hipDeviceAttributeMemoryClockRate: Type = 60;
    pub const hipDeviceAttributeComputeCapabilityMinor: Type = 61;
    pub const hipDeviceAttributeMultiGpuBoardGroupID: Type = 62;
    pub const hipDeviceAttributeMultiprocessorCount: Type = 63;
    pub const hipDeviceAttributeUnused1: Type = 64;
    pub const hipDeviceAttributePageableMemoryAccess: Type = 65;
    pub const hipDeviceAttributePageableMemoryAccessUsesHostPageTables: Type = 66;
    pub const hipDeviceAttributePciBusId: Type = 67;
    pub const hipDeviceAttributePciDeviceId: Type = 68;
    pub const hipDeviceAttributePciDomainID: Type = 69;
    pub const hipDeviceAttributePersistingL2CacheMaxSize: Type = 70;
    pub const hipDeviceAttributeMaxRegistersPerBlock: Type = 71;
    pub const hipDeviceAttributeMaxRegistersPerMultiprocessor: Type = 72;
    pub const hipDeviceAttributeReservedSharedMemPerBlock: Type = 73;
    pub const hipDeviceAttributeMaxSharedMemoryPerBlock: Type = 74;
    pub const hipDeviceAttributeSharedMemPerBlockOptin: Type = 75;
    pub const hipDeviceAttributeSharedMemPerMultiprocessor: Type = 76;
    pub const hipDeviceAttributeSingleToDoublePrecisionPerfRatio: Type = 77;
    pub const hipDeviceAttributeStreamPrioritiesSupported: Type = 78;
    pub const hipDeviceAttributeSurfaceAlignment: Type = 79;
    pub const hipDeviceAttributeTccDriver: Type = 80;
    pub const hipDeviceAttributeTextureAlignment: Type = 81;
    pub const hipDeviceAttributeTexturePitchAlignment: Type = 82;
    pub const hipDeviceAttributeTotalConstantMemory: Type = 83;
    pub const hipDeviceAttributeTotalGlobalMem: Type = 84;
    pub const hipDeviceAttributeUnifiedAddressing: Type = 85;
    pub const hipDeviceAttributeUnused2: Type = 86;
    pub const hipDeviceAttributeWarpSize: Type = 87;
    pub const hipDeviceAttributeMemoryPoolsSupported: Type = 88;
    pub const hipDeviceAttributeVirtualMemoryManagementSupported: Type = 89;
    pub const hipDeviceAttributeHostRegisterSupported: Type = 90;
    pub const hipDeviceAttributeMemoryPoolSupportedHandleTypes: Type = 91;
    pub const hipDeviceAttributeCudaCompatibleEnd: Type = 9999;
    pub const hipDeviceAttributeAmdSpecificBegin: Type = 10000;
    pub const hipDeviceAttributeClockInstructionRate: Type = 10000;
    pub const hipDeviceAttributeUnused3: Type = 10001;
    pub const hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: Type = 10002;
    pub const hipDeviceAttributeUnused4: Type = 10003;
    pub const hipDeviceAttributeUnused5: Type = 10004;
    pub const hipDeviceAttributeHdpMemFlushCntl: Type = 10005;
    pub const hipDeviceAttributeHdpRegFlushCntl: Type = 10006;
    pub const hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc: Type = 10007;
    pub const hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim: Type = 10008;
    pub const hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim: Type = 10009;
    pub const hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem: Type = 10010;
    pub const hipDeviceAttributeIsLargeBar: Type = 10011;
    pub const hipDeviceAttributeAsicRevision: Type = 10012;
    pub const hipDeviceAttributeCanUseStreamWaitValue: Type = 10013;
    pub const hipDeviceAttributeImageSupport: Type = 10014;
    pub const hipDeviceAttributePhysicalMultiProcessorCount: Type = 10015;
    pub const hipDeviceAttributeFineGrainSupport: Type = 10016;
    pub const hipDeviceAttributeWallClockRate: Type = 10017;
    pub const hipDeviceAttributeAmdSpecificEnd: Type = 19999;
    pub const hipDeviceAttributeVendorSpecificBegin: Type = 20000;
}
pub type hipDeviceptr_t = *mut ::std::ffi::c_void;
#[repr(C)]
#[derive(Debug)]
pub struct hipArray {
    _unused: [u8; 0],
}
pub type hipArray_t = *mut hipArray;
pub mod hipArray_Format {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const HIP_AD_FORMAT_UNSIGNED_INT8: Type = 1;
    pub const HIP_AD_FORMAT_UNSIGNED_INT16: Type = 2;
    pub const HIP_AD_FORMAT_UNSIGNED_INT32: Type = 3;
    pub const HIP_AD_FORMAT_SIGNED_INT8: Type = 8;
    pub const HIP_AD_FORMAT_SIGNED_INT16: Type = 9;
    pub const HIP_AD_FORMAT_SIGNED_INT32: Type = 10;
    pub const HIP_AD_FORMAT_HALF: Type = 16;
    pub const HIP_AD_FORMAT_FLOAT: Type = 32;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct HIP_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: hipArray_Format::Type,
    pub NumChannels: ::std::ffi::c_uint,
    pub Flags: ::std::ffi::c_uint,
}
pub mod hipResourceType {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipResourceTypeArray: Type = 0;
    pub const hipResourceTypeMipmappedArray: Type = 1;
    pub const hipResourceTypeLinear: Type = 2;
    pub const hipResourceTypePitch2D: Type = 3;
}
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone)]
pub struct HIP_TEXTURE_DESC_st {
    pub _bindgen_opaque_blob: [u32; 26usize],
}
pub type HIP_TEXTURE_DESC = HIP_TEXTURE_DESC_st;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct hipResourceDesc {
    pub resType: hipResourceType::Type,
    pub res: hipResourceDesc__bindgen_ty_1,
}
#[repr(C)]
#[repr(align(8))]
#[derive(Copy, Clone)]
pub union hipResourceDesc__bindgen_ty_1 {
    pub _bindgen_opaque_blob: __BindgenOpaqueArray8<[u8; 56usize]>,
}
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct HIP_RESOURCE_DESC_st {
    pub _bindgen_opaque_blob: __BindgenOpaqueArray8<[u8; 144usize]>,
}
pub type HIP_RESOURCE_DESC = HIP_RESOURCE_DESC_st;
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone)]
pub struct HIP_RESOURCE_VIEW_DESC_st {
    pub _bindgen_opaque_blob: __BindgenOpaqueArray8<[u8; 112usize]>,
}
pub type HIP_RESOURCE_VIEW_DESC = HIP_RESOURCE_VIEW_DESC_st;
pub mod hipMemcpyKind {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemcpyHostToHost: Type = 0;
    pub const hipMemcpyHostToDevice: Type = 1;
    pub const hipMemcpyDeviceToHost: Type = 2;
    pub const hipMemcpyDeviceToDevice: Type = 3;
    pub const hipMemcpyDefault: Type = 4;
    pub const hipMemcpyDeviceToDeviceNoCU: Type = 1024;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipPitchedPtr {
    pub ptr: *mut ::std::ffi::c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipMemcpy3DParms {
    pub srcArray: hipArray_t,
    pub srcPos: hipPos,
    pub srcPtr: hipPitchedPtr,
    pub dstArray: hipArray_t,
    pub dstPos: hipPos,
    pub dstPtr: hipPitchedPtr,
    pub extent: hipExtent,
    pub kind: hipMemcpyKind::Type,
}
pub mod hipFunction_attribute {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: Type = 0;
    pub const HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: Type = 1;
    pub const HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: Type = 2;
    pub const HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: Type = 3;
    pub const HIP_FUNC_ATTRIBUTE_NUM_REGS: Type = 4;
    pub const HIP_FUNC_ATTRIBUTE_PTX_VERSION: Type = 5;
    pub const HIP_FUNC_ATTRIBUTE_BINARY_VERSION: Type = 6;
    pub const HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA: Type = 7;
    pub const HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: Type = 8;
    pub const HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: Type = 9;
    pub const HIP_FUNC_ATTRIBUTE_MAX: Type = 10;
}
#[repr(C)]
#[derive(Debug)]
pub struct __hip_texture {
    _unused: [u8; 0],
}
pub type hipTextureObject_t = *mut __hip_texture;
#[repr(C)]
#[derive(Debug)]
pub struct __hip_surface {
    _unused: [u8; 0],
}
pub type hipSurfaceObject_t = *mut __hip_surface;
pub type hipDevice_t = ::std::ffi::c_int;
#[repr(C)]
#[derive(Debug)]
pub struct ihipStream_t {
    _unused: [u8; 0],
}
pub type hipStream_t = *mut ihipStream_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipIpcMemHandle_st {
    pub reserved: [::std::ffi::c_char; 64usize],
}
pub type hipIpcMemHandle_t = hipIpcMemHandle_st;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipIpcEventHandle_st {
    pub reserved: [::std::ffi::c_char; 64usize],
}
pub type hipIpcEventHandle_t = hipIpcEventHandle_st;
#[repr(C)]
#[derive(Debug)]
pub struct ihipModule_t {
    _unused: [u8; 0],
}
pub type hipModule_t = *mut ihipModule_t;
#[repr(C)]
#[derive(Debug)]
pub struct ihipModuleSymbol_t {
    _unused: [u8; 0],
}
pub type hipFunction_t = *mut ihipModuleSymbol_t;
#[repr(C)]
#[derive(Debug)]
pub struct ihipMemPoolHandle_t {
    _unused: [u8; 0],
}
pub type hipMemPool_t = *mut ihipMemPoolHandle_t;
#[repr(C)]
#[derive(Debug)]
pub struct ihipEvent_t {
    _unused: [u8; 0],
}
pub type hipEvent_t = *mut ihipEvent_t;
pub mod hipLimit_t {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipLimitStackSize: Type = 0;
    pub const hipLimitPrintfFifoSize: Type = 1;
    pub const hipLimitMallocHeapSize: Type = 2;
    pub const hipLimitRange: Type = 3;
}
pub mod hipMemPoolAttr {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemPoolReuseFollowEventDependencies: Type = 1;
    pub const hipMemPoolReuseAllowOpportunistic: Type = 2;
    pub const hipMemPoolReuseAllowInternalDependencies: Type = 3;
    pub const hipMemPoolAttrReleaseThreshold: Type = 4;
    pub const hipMemPoolAttrReservedMemCurrent: Type = 5;
    pub const hipMemPoolAttrReservedMemHigh: Type = 6;
    pub const hipMemPoolAttrUsedMemCurrent: Type = 7;
    pub const hipMemPoolAttrUsedMemHigh: Type = 8;
}
pub mod hipMemLocationType {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemLocationTypeInvalid: Type = 0;
    pub const hipMemLocationTypeDevice: Type = 1;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipMemLocation {
    pub type_: hipMemLocationType::Type,
    pub id: ::std::ffi::c_int,
}
pub mod hipMemAccessFlags {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemAccessFlagsProtNone: Type = 0;
    pub const hipMemAccessFlagsProtRead: Type = 1;
    pub const hipMemAccessFlagsProtReadWrite: Type = 3;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipMemAccessDesc {
    pub location: hipMemLocation,
    pub flags: hipMemAccessFlags::Type,
}
pub mod hipMemAllocationType {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemAllocationTypeInvalid: Type = 0;
    pub const hipMemAllocationTypePinned: Type = 1;
    pub const hipMemAllocationTypeMax: Type = 2147483647;
}
pub mod hipMemAllocationHandleType {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipMemHandleTypeNone: Type = 0;
    pub const hipMemHandleTypePosixFileDescriptor: Type = 1;
    pub const hipMemHandleTypeWin32: Type = 2;
    pub const hipMemHandleTypeWin32Kmt: Type = 4;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipMemPoolProps {
    pub allocType: hipMemAllocationType::Type,
    pub handleTypes: hipMemAllocationHandleType::Type,
    pub location: hipMemLocation,
    pub win32SecurityAttributes: *mut ::std::ffi::c_void,
    pub maxSize: usize,
    pub reserved: [::std::ffi::c_uchar; 56usize],
}
pub mod hipJitOption {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipJitOptionMaxRegisters: Type = 0;
    pub const hipJitOptionThreadsPerBlock: Type = 1;
    pub const hipJitOptionWallTime: Type = 2;
    pub const hipJitOptionInfoLogBuffer: Type = 3;
    pub const hipJitOptionInfoLogBufferSizeBytes: Type = 4;
    pub const hipJitOptionErrorLogBuffer: Type = 5;
    pub const hipJitOptionErrorLogBufferSizeBytes: Type = 6;
    pub const hipJitOptionOptimizationLevel: Type = 7;
    pub const hipJitOptionTargetFromContext: Type = 8;
    pub const hipJitOptionTarget: Type = 9;
    pub const hipJitOptionFallbackStrategy: Type = 10;
    pub const hipJitOptionGenerateDebugInfo: Type = 11;
    pub const hipJitOptionLogVerbose: Type = 12;
    pub const hipJitOptionGenerateLineInfo: Type = 13;
    pub const hipJitOptionCacheMode: Type = 14;
    pub const hipJitOptionSm3xOpt: Type = 15;
    pub const hipJitOptionFastCompile: Type = 16;
    pub const hipJitOptionNumOptions: Type = 17;
}
#[repr(C)]
#[derive(Debug)]
pub struct ihipGraph {
    _unused: [u8; 0],
}
pub type hipGraph_t = *mut ihipGraph;
#[repr(C)]
#[derive(Debug)]
pub struct hipGraphNode {
    _unused: [u8; 0],
}
pub type hipGraphNode_t = *mut hipGraphNode;
#[repr(C)]
#[derive(Debug)]
pub struct hipGraphExec {
    _unused: [u8; 0],
}
pub type hipGraphExec_t = *mut hipGraphExec;
#[repr(C)]
#[derive(Debug)]
pub struct hipUserObject {
    _unused: [u8; 0],
}
pub type hipUserObject_t = *mut hipUserObject;
pub type hipHostFn_t =
    ::std::option::Option<unsafe extern "C" fn(userData: *mut ::std::ffi::c_void)>;
pub mod hipStreamCaptureMode {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipStreamCaptureModeGlobal: Type = 0;
    pub const hipStreamCaptureModeThreadLocal: Type = 1;
    pub const hipStreamCaptureModeRelaxed: Type = 2;
}
pub mod hipStreamCaptureStatus {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const hipStreamCaptureStatusNone: Type = 0;
    pub const hipStreamCaptureStatusActive: Type = 1;
    pub const hipStreamCaptureStatusInvalidated: Type = 2;
}
pub type hipStreamCallback_t = ::std::option::Option<
    unsafe extern "C" fn(
        stream: hipStream_t,
        status: hipError_t::Type,
        userData: *mut ::std::ffi::c_void,
    ),
>;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipDeviceProp_tR0000 {
    pub name: [::std::ffi::c_char; 256usize],
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: ::std::ffi::c_int,
    pub warpSize: ::std::ffi::c_int,
    pub maxThreadsPerBlock: ::std::ffi::c_int,
    pub maxThreadsDim: [::std::ffi::c_int; 3usize],
    pub maxGridSize: [::std::ffi::c_int; 3usize],
    pub clockRate: ::std::ffi::c_int,
    pub memoryClockRate: ::std::ffi::c_int,
    pub memoryBusWidth: ::std::ffi::c_int,
    pub totalConstMem: usize,
    pub major: ::std::ffi::c_int,
    pub minor: ::std::ffi::c_int,
    pub multiProcessorCount: ::std::ffi::c_int,
    pub l2CacheSize: ::std::ffi::c_int,
    pub maxThreadsPerMultiProcessor: ::std::ffi::c_int,
    pub computeMode: ::std::ffi::c_int,
    pub clockInstructionRate: ::std::ffi::c_int,
    pub arch: hipDeviceArch_t,
    pub concurrentKernels: ::std::ffi::c_int,
    pub pciDomainID: ::std::ffi::c_int,
    pub pciBusID: ::std::ffi::c_int,
    pub pciDeviceID: ::std::ffi::c_int,
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub isMultiGpuBoard: ::std::ffi::c_int,
    pub canMapHostMemory: ::std::ffi::c_int,
    pub gcnArch: ::std::ffi::c_int,
    pub gcnArchName: [::std::ffi::c_char; 256usize],
    pub integrated: ::std::ffi::c_int,
    pub cooperativeLaunch: ::std::ffi::c_int,
    pub cooperativeMultiDeviceLaunch: ::std::ffi::c_int,
    pub maxTexture1DLinear: ::std::ffi::c_int,
    pub maxTexture1D: ::std::ffi::c_int,
    pub maxTexture2D: [::std::ffi::c_int; 2usize],
    pub maxTexture3D: [::std::ffi::c_int; 3usize],
    pub hdpMemFlushCntl: *mut ::std::ffi::c_uint,
    pub hdpRegFlushCntl: *mut ::std::ffi::c_uint,
    pub memPitch: usize,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub kernelExecTimeoutEnabled: ::std::ffi::c_int,
    pub ECCEnabled: ::std::ffi::c_int,
    pub tccDriver: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedFunc: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: ::std::ffi::c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: ::std::ffi::c_int,
    pub isLargeBar: ::std::ffi::c_int,
    pub asicRevision: ::std::ffi::c_int,
    pub managedMemory: ::std::ffi::c_int,
    pub directManagedMemAccessFromHost: ::std::ffi::c_int,
    pub concurrentManagedAccess: ::std::ffi::c_int,
    pub pageableMemoryAccess: ::std::ffi::c_int,
    pub pageableMemoryAccessUsesHostPageTables: ::std::ffi::c_int,
}
pub mod hiprtcResult {
    #[allow(unused_imports)]
    use super::*;
    pub type Type = ::std::ffi::c_uint;
    pub const HIPRTC_SUCCESS: Type = 0;
    pub const HIPRTC_ERROR_OUT_OF_MEMORY: Type = 1;
    pub const HIPRTC_ERROR_PROGRAM_CREATION_FAILURE: Type = 2;
    pub const HIPRTC_ERROR_INVALID_INPUT: Type = 3;
    pub const HIPRTC_ERROR_INVALID_PROGRAM: Type = 4;
    pub const HIPRTC_ERROR_INVALID_OPTION: Type = 5;
    pub const HIPRTC_ERROR_COMPILATION: Type = 6;
    pub const HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE: Type = 7;
    pub const HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION: Type = 8;
    pub const HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION: Type = 9;
    pub const HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID: Type = 10;
    pub const HIPRTC_ERROR_INTERNAL_ERROR: Type = 11;
    pub const HIPRTC_ERROR_LINKING: Type = 100;
}
#[repr(C)]
#[derive(Debug)]
pub struct _hiprtcProgram {
    _unused: [u8; 0],
}
pub type hiprtcProgram = *mut _hiprtcProgram;
unsafe extern "C" {
    pub fn hipInit(flags: ::std::ffi::c_uint) -> hipError_t::Type;
    pub fn hipRuntimeGetVersion(runtimeVersion: *mut ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipDeviceGet(device: *mut hipDevice_t, ordinal: ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipDeviceGetName(
        name: *mut ::std::ffi::c_char,
        len: ::std::ffi::c_int,
        device: hipDevice_t,
    ) -> hipError_t::Type;
    pub fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) -> hipError_t::Type;
    pub fn hipDeviceGetPCIBusId(
        pciBusId: *mut ::std::ffi::c_char,
        len: ::std::ffi::c_int,
        device: ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t::Type;
    pub fn hipDeviceSynchronize() -> hipError_t::Type;
    pub fn hipDeviceReset() -> hipError_t::Type;
    pub fn hipSetDevice(deviceId: ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipGetDevice(deviceId: *mut ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipGetDeviceCount(count: *mut ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipDeviceGetAttribute(
        pi: *mut ::std::ffi::c_int,
        attr: hipDeviceAttribute_t::Type,
        deviceId: ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipGetDevicePropertiesR0600(
        prop: *mut hipDeviceProp_tR0600,
        deviceId: ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipDeviceGetLimit(pValue: *mut usize, limit: hipLimit_t::Type) -> hipError_t::Type;
    pub fn hipDeviceSetLimit(limit: hipLimit_t::Type, value: usize) -> hipError_t::Type;
    pub fn hipIpcGetMemHandle(
        handle: *mut hipIpcMemHandle_t,
        devPtr: *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipIpcOpenMemHandle(
        devPtr: *mut *mut ::std::ffi::c_void,
        handle: hipIpcMemHandle_t,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipIpcCloseMemHandle(devPtr: *mut ::std::ffi::c_void) -> hipError_t::Type;
    pub fn hipIpcGetEventHandle(
        handle: *mut hipIpcEventHandle_t,
        event: hipEvent_t,
    ) -> hipError_t::Type;
    pub fn hipIpcOpenEventHandle(
        event: *mut hipEvent_t,
        handle: hipIpcEventHandle_t,
    ) -> hipError_t::Type;
    pub fn hipGetLastError() -> hipError_t::Type;
    pub fn hipGetErrorName(hip_error: hipError_t::Type) -> *const ::std::ffi::c_char;
    pub fn hipGetErrorString(hipError: hipError_t::Type) -> *const ::std::ffi::c_char;
    pub fn hipStreamCreateWithPriority(
        stream: *mut hipStream_t,
        flags: ::std::ffi::c_uint,
        priority: ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipDeviceGetStreamPriorityRange(
        leastPriority: *mut ::std::ffi::c_int,
        greatestPriority: *mut ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipStreamDestroy(stream: hipStream_t) -> hipError_t::Type;
    pub fn hipStreamQuery(stream: hipStream_t) -> hipError_t::Type;
    pub fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t::Type;
    pub fn hipStreamWaitEvent(
        stream: hipStream_t,
        event: hipEvent_t,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipStreamGetFlags(
        stream: hipStream_t,
        flags: *mut ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipStreamGetPriority(
        stream: hipStream_t,
        priority: *mut ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipStreamAddCallback(
        stream: hipStream_t,
        callback: hipStreamCallback_t,
        userData: *mut ::std::ffi::c_void,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipEventCreateWithFlags(
        event: *mut hipEvent_t,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t::Type;
    pub fn hipEventDestroy(event: hipEvent_t) -> hipError_t::Type;
    pub fn hipEventSynchronize(event: hipEvent_t) -> hipError_t::Type;
    pub fn hipEventElapsedTime(
        ms: *mut f32,
        start: hipEvent_t,
        stop: hipEvent_t,
    ) -> hipError_t::Type;
    pub fn hipEventQuery(event: hipEvent_t) -> hipError_t::Type;
    pub fn hipPointerGetAttributes(
        attributes: *mut hipPointerAttribute_t,
        ptr: *const ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipMalloc(ptr: *mut *mut ::std::ffi::c_void, size: usize) -> hipError_t::Type;
    pub fn hipHostMalloc(
        ptr: *mut *mut ::std::ffi::c_void,
        size: usize,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipMallocManaged(
        dev_ptr: *mut *mut ::std::ffi::c_void,
        size: usize,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipMemPrefetchAsync(
        dev_ptr: *const ::std::ffi::c_void,
        count: usize,
        device: ::std::ffi::c_int,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipFreeAsync(dev_ptr: *mut ::std::ffi::c_void, stream: hipStream_t) -> hipError_t::Type;
    pub fn hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize) -> hipError_t::Type;
    pub fn hipMemPoolSetAttribute(
        mem_pool: hipMemPool_t,
        attr: hipMemPoolAttr::Type,
        value: *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipMemPoolGetAttribute(
        mem_pool: hipMemPool_t,
        attr: hipMemPoolAttr::Type,
        value: *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipMemPoolSetAccess(
        mem_pool: hipMemPool_t,
        desc_list: *const hipMemAccessDesc,
        count: usize,
    ) -> hipError_t::Type;
    pub fn hipMemPoolCreate(
        mem_pool: *mut hipMemPool_t,
        pool_props: *const hipMemPoolProps,
    ) -> hipError_t::Type;
    pub fn hipMemPoolDestroy(mem_pool: hipMemPool_t) -> hipError_t::Type;
    pub fn hipMallocFromPoolAsync(
        dev_ptr: *mut *mut ::std::ffi::c_void,
        size: usize,
        mem_pool: hipMemPool_t,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipHostGetDevicePointer(
        devPtr: *mut *mut ::std::ffi::c_void,
        hstPtr: *mut ::std::ffi::c_void,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipHostRegister(
        hostPtr: *mut ::std::ffi::c_void,
        sizeBytes: usize,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipHostUnregister(hostPtr: *mut ::std::ffi::c_void) -> hipError_t::Type;
    pub fn hipMemAllocPitch(
        dptr: *mut hipDeviceptr_t,
        pitch: *mut usize,
        widthInBytes: usize,
        height: usize,
        elementSizeBytes: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipFree(ptr: *mut ::std::ffi::c_void) -> hipError_t::Type;
    pub fn hipHostFree(ptr: *mut ::std::ffi::c_void) -> hipError_t::Type;
    pub fn hipMemcpyHtoD(
        dst: hipDeviceptr_t,
        src: *mut ::std::ffi::c_void,
        sizeBytes: usize,
    ) -> hipError_t::Type;
    pub fn hipMemcpyDtoH(
        dst: *mut ::std::ffi::c_void,
        src: hipDeviceptr_t,
        sizeBytes: usize,
    ) -> hipError_t::Type;
    pub fn hipMemcpyHtoDAsync(
        dst: hipDeviceptr_t,
        src: *mut ::std::ffi::c_void,
        sizeBytes: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipMemcpyDtoHAsync(
        dst: *mut ::std::ffi::c_void,
        src: hipDeviceptr_t,
        sizeBytes: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipMemcpyDtoDAsync(
        dst: hipDeviceptr_t,
        src: hipDeviceptr_t,
        sizeBytes: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipModuleGetGlobal(
        dptr: *mut hipDeviceptr_t,
        bytes: *mut usize,
        hmod: hipModule_t,
        name: *const ::std::ffi::c_char,
    ) -> hipError_t::Type;
    pub fn hipMemsetD8Async(
        dest: hipDeviceptr_t,
        value: ::std::ffi::c_uchar,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipMemsetD16Async(
        dest: hipDeviceptr_t,
        value: ::std::ffi::c_ushort,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipMemsetD32Async(
        dst: hipDeviceptr_t,
        value: ::std::ffi::c_int,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t::Type;
    pub fn hipArrayDestroy(array: hipArray_t) -> hipError_t::Type;
    pub fn hipArray3DCreate(
        array: *mut hipArray_t,
        pAllocateArray: *const HIP_ARRAY3D_DESCRIPTOR,
    ) -> hipError_t::Type;
    pub fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t::Type;
    pub fn hipDeviceCanAccessPeer(
        canAccessPeer: *mut ::std::ffi::c_int,
        deviceId: ::std::ffi::c_int,
        peerDeviceId: ::std::ffi::c_int,
    ) -> hipError_t::Type;
    pub fn hipDeviceEnablePeerAccess(
        peerDeviceId: ::std::ffi::c_int,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipDeviceDisablePeerAccess(peerDeviceId: ::std::ffi::c_int) -> hipError_t::Type;
    pub fn hipMemGetAddressRange(
        pbase: *mut hipDeviceptr_t,
        psize: *mut usize,
        dptr: hipDeviceptr_t,
    ) -> hipError_t::Type;
    pub fn hipMemcpyPeerAsync(
        dst: *mut ::std::ffi::c_void,
        dstDeviceId: ::std::ffi::c_int,
        src: *const ::std::ffi::c_void,
        srcDevice: ::std::ffi::c_int,
        sizeBytes: usize,
        stream: hipStream_t,
    ) -> hipError_t::Type;
    pub fn hipModuleUnload(module: hipModule_t) -> hipError_t::Type;
    pub fn hipModuleGetFunction(
        function: *mut hipFunction_t,
        module: hipModule_t,
        kname: *const ::std::ffi::c_char,
    ) -> hipError_t::Type;
    pub fn hipFuncGetAttribute(
        value: *mut ::std::ffi::c_int,
        attrib: hipFunction_attribute::Type,
        hfunc: hipFunction_t,
    ) -> hipError_t::Type;
    pub fn hipModuleLoadDataEx(
        module: *mut hipModule_t,
        image: *const ::std::ffi::c_void,
        numOptions: ::std::ffi::c_uint,
        options: *mut hipJitOption::Type,
        optionValues: *mut *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipModuleLaunchKernel(
        f: hipFunction_t,
        gridDimX: ::std::ffi::c_uint,
        gridDimY: ::std::ffi::c_uint,
        gridDimZ: ::std::ffi::c_uint,
        blockDimX: ::std::ffi::c_uint,
        blockDimY: ::std::ffi::c_uint,
        blockDimZ: ::std::ffi::c_uint,
        sharedMemBytes: ::std::ffi::c_uint,
        stream: hipStream_t,
        kernelParams: *mut *mut ::std::ffi::c_void,
        extra: *mut *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipModuleLaunchCooperativeKernel(
        f: hipFunction_t,
        gridDimX: ::std::ffi::c_uint,
        gridDimY: ::std::ffi::c_uint,
        gridDimZ: ::std::ffi::c_uint,
        blockDimX: ::std::ffi::c_uint,
        blockDimY: ::std::ffi::c_uint,
        blockDimZ: ::std::ffi::c_uint,
        sharedMemBytes: ::std::ffi::c_uint,
        stream: hipStream_t,
        kernelParams: *mut *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks: *mut ::std::ffi::c_int,
        f: hipFunction_t,
        blockSize: ::std::ffi::c_int,
        dynSharedMemPerBlk: usize,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipProfilerStart() -> hipError_t::Type;
    pub fn hipProfilerStop() -> hipError_t::Type;
    pub fn hipLaunchHostFunc(
        stream: hipStream_t,
        fn_: hipHostFn_t,
        userData: *mut ::std::ffi::c_void,
    ) -> hipError_t::Type;
    pub fn hipTexObjectCreate(
        pTexObject: *mut hipTextureObject_t,
        pResDesc: *const HIP_RESOURCE_DESC,
        pTexDesc: *const HIP_TEXTURE_DESC,
        pResViewDesc: *const HIP_RESOURCE_VIEW_DESC,
    ) -> hipError_t::Type;
    pub fn hipTexObjectDestroy(texObject: hipTextureObject_t) -> hipError_t::Type;
    pub fn hipStreamBeginCapture(
        stream: hipStream_t,
        mode: hipStreamCaptureMode::Type,
    ) -> hipError_t::Type;
    pub fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t) -> hipError_t::Type;
    pub fn hipStreamGetCaptureInfo(
        stream: hipStream_t,
        pCaptureStatus: *mut hipStreamCaptureStatus::Type,
        pId: *mut ::std::ffi::c_ulonglong,
    ) -> hipError_t::Type;
    pub fn hipStreamGetCaptureInfo_v2(
        stream: hipStream_t,
        captureStatus_out: *mut hipStreamCaptureStatus::Type,
        id_out: *mut ::std::ffi::c_ulonglong,
        graph_out: *mut hipGraph_t,
        dependencies_out: *mut *const hipGraphNode_t,
        numDependencies_out: *mut usize,
    ) -> hipError_t::Type;
    pub fn hipThreadExchangeStreamCaptureMode(
        mode: *mut hipStreamCaptureMode::Type,
    ) -> hipError_t::Type;
    pub fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t::Type;
    pub fn hipGraphGetNodes(
        graph: hipGraph_t,
        nodes: *mut hipGraphNode_t,
        numNodes: *mut usize,
    ) -> hipError_t::Type;
    pub fn hipGraphInstantiateWithFlags(
        pGraphExec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        flags: ::std::ffi::c_ulonglong,
    ) -> hipError_t::Type;
    pub fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t) -> hipError_t::Type;
    pub fn hipGraphExecDestroy(graphExec: hipGraphExec_t) -> hipError_t::Type;
    pub fn hipUserObjectCreate(
        object_out: *mut hipUserObject_t,
        ptr: *mut ::std::ffi::c_void,
        destroy: hipHostFn_t,
        initialRefcount: ::std::ffi::c_uint,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipGraphRetainUserObject(
        graph: hipGraph_t,
        object: hipUserObject_t,
        count: ::std::ffi::c_uint,
        flags: ::std::ffi::c_uint,
    ) -> hipError_t::Type;
    pub fn hipCreateSurfaceObject(
        pSurfObject: *mut hipSurfaceObject_t,
        pResDesc: *const hipResourceDesc,
    ) -> hipError_t::Type;
    pub fn hipDestroySurfaceObject(surfaceObject: hipSurfaceObject_t) -> hipError_t::Type;
    pub fn hiprtcGetErrorString(result: hiprtcResult::Type) -> *const ::std::ffi::c_char;
    pub fn hiprtcVersion(
        major: *mut ::std::ffi::c_int,
        minor: *mut ::std::ffi::c_int,
    ) -> hiprtcResult::Type;
    pub fn hiprtcAddNameExpression(
        prog: hiprtcProgram,
        name_expression: *const ::std::ffi::c_char,
    ) -> hiprtcResult::Type;
    pub fn hiprtcCompileProgram(
        prog: hiprtcProgram,
        numOptions: ::std::ffi::c_int,
        options: *mut *const ::std::ffi::c_char,
    ) -> hiprtcResult::Type;
    pub fn hiprtcCreateProgram(
        prog: *mut hiprtcProgram,
        src: *const ::std::ffi::c_char,
        name: *const ::std::ffi::c_char,
        numHeaders: ::std::ffi::c_int,
        headers: *mut *const ::std::ffi::c_char,
        includeNames: *mut *const ::std::ffi::c_char,
    ) -> hiprtcResult::Type;
    pub fn hiprtcDestroyProgram(prog: *mut hiprtcProgram) -> hiprtcResult::Type;
    pub fn hiprtcGetLoweredName(
        prog: hiprtcProgram,
        name_expression: *const ::std::ffi::c_char,
        lowered_name: *mut *const ::std::ffi::c_char,
    ) -> hiprtcResult::Type;
    pub fn hiprtcGetProgramLog(
        prog: hiprtcProgram,
        log: *mut ::std::ffi::c_char,
    ) -> hiprtcResult::Type;
    pub fn hiprtcGetProgramLogSize(
        prog: hiprtcProgram,
        logSizeRet: *mut usize,
    ) -> hiprtcResult::Type;
    pub fn hiprtcGetCode(prog: hiprtcProgram, code: *mut ::std::ffi::c_char) -> hiprtcResult::Type;
    pub fn hiprtcGetCodeSize(prog: hiprtcProgram, codeSizeRet: *mut usize) -> hiprtcResult::Type;
    pub fn hipGetDeviceProperties(
        properties: *mut hipDeviceProp_tR0000,
        device: ::std::ffi::c_int,
    ) -> hipError_t::Type;
}

// A single list of all functions of the fake driver: name, preconditions, parameters, arguments.
// The exports, the table for HIP's calls and the declarations are generated from it.
#pragma once

#include "abi.hpp"
#include "rules.hpp"

// clang-format off
#define DRIVER_FUNCTIONS(X) \
    X(cuInit, ALWAYS, (unsigned flags), (flags)) \
    X(cuDriverGetVersion, ALWAYS, (int* version), (version)) \
    X(cuGetErrorName, ALWAYS, (int status, const char** text), (status, text)) \
    X(cuGetErrorString, ALWAYS, (int status, const char** text), (status, text)) \
    X(cuDeviceGetCount, INIT, (int* count), (count)) \
    X(cuDeviceGet, INIT, (CUdevice* device, int ordinal), (device, ordinal)) \
    X(cuDeviceGetName, INIT, (char* name, int length, CUdevice device), (name, length, device)) \
    X(cuDeviceGetUuid_v2, INIT, (CUuuid* uuid, CUdevice device), (uuid, device)) \
    X(cuDeviceGetPCIBusId, INIT, (char* text, int length, CUdevice device), (text, length, device)) \
    X(cuDeviceGetByPCIBusId, INIT, (CUdevice* device, const char* text), (device, text)) \
    X(cuDeviceTotalMem_v2, INIT, (size_t* bytes, CUdevice device), (bytes, device)) \
    X(cuDeviceGetAttribute, INIT, (int* value, int attribute, CUdevice device), (value, attribute, device)) \
    X(cuDeviceCanAccessPeer, INIT, (int* can, CUdevice device, CUdevice peer), (can, device, peer)) \
    X(cuDevicePrimaryCtxRetain, INIT, (Handle* context, CUdevice device), (context, device)) \
    X(cuDevicePrimaryCtxRelease_v2, INIT, (CUdevice device), (device)) \
    X(cuDevicePrimaryCtxReset_v2, INIT, (CUdevice device), (device)) \
    X(cuDevicePrimaryCtxGetState, INIT, (CUdevice device, unsigned* flags, int* active), (device, flags, active)) \
    X(cuDevicePrimaryCtxSetFlags_v2, INIT, (CUdevice device, unsigned flags), (device, flags)) \
    X(cuCtxCreate_v2, INIT, (Handle* context, unsigned flags, CUdevice device), (context, flags, device)) \
    X(cuCtxDestroy_v2, INIT, (Handle context), (context)) \
    X(cuCtxGetCurrent, INIT, (Handle* context), (context)) \
    X(cuCtxSetCurrent, INIT, (Handle context), (context)) \
    X(cuCtxPushCurrent_v2, INIT, (Handle context), (context)) \
    X(cuCtxPopCurrent_v2, INIT, (Handle* context), (context)) \
    X(cuCtxGetDevice, INIT, (CUdevice* device), (device)) \
    X(cuCtxSynchronize, CONTEXT | UNSAFE, (), ()) \
    X(cuCtxGetApiVersion, INIT, (Handle context, unsigned* version), (context, version)) \
    X(cuCtxGetId, INIT, (Handle context, unsigned long long* number), (context, number)) \
    X(cuCtxGetLimit, CONTEXT, (size_t* value, int limit), (value, limit)) \
    X(cuCtxSetLimit, CONTEXT | UNSAFE, (int limit, size_t value), (limit, value)) \
    X(cuCtxGetCacheConfig, CONTEXT, (int* config), (config)) \
    X(cuCtxSetCacheConfig, CONTEXT, (int config), (config)) \
    X(cuCtxGetSharedMemConfig, CONTEXT, (int* config), (config)) \
    X(cuCtxSetSharedMemConfig, CONTEXT, (int config), (config)) \
    X(cuCtxGetStreamPriorityRange, CONTEXT, (int* least, int* greatest), (least, greatest)) \
    X(cuCtxEnablePeerAccess, CONTEXT, (Handle peer, unsigned flags), (peer, flags)) \
    X(cuCtxDisablePeerAccess, CONTEXT, (Handle peer), (peer)) \
    X(cuMemGetInfo_v2, CONTEXT, (size_t* free, size_t* total), (free, total)) \
    X(cuMemAlloc_v2, CONTEXT | UNSAFE, (CUdeviceptr* address, size_t bytes), (address, bytes)) \
    X(cuMemAllocPitch_v2, CONTEXT | UNSAFE, (CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element), (address, pitch, width, height, element)) \
    X(cuMemFree_v2, INIT | STICKY | UNSAFE, (CUdeviceptr address), (address)) \
    X(cuMemGetAddressRange_v2, CONTEXT, (CUdeviceptr* base, size_t* bytes, CUdeviceptr address), (base, bytes, address)) \
    X(cuMemHostAlloc, CONTEXT | UNSAFE, (void** address, size_t bytes, unsigned flags), (address, bytes, flags)) \
    X(cuMemFreeHost, INIT | STICKY | UNSAFE, (void* address), (address)) \
    X(cuMemHostGetDevicePointer_v2, CONTEXT, (CUdeviceptr* address, void* host, unsigned flags), (address, host, flags)) \
    X(cuMemHostGetFlags, CONTEXT, (unsigned* flags, void* host), (flags, host)) \
    X(cuMemHostRegister_v2, CONTEXT | UNSAFE, (void* address, size_t bytes, unsigned flags), (address, bytes, flags)) \
    X(cuMemHostUnregister, CONTEXT | UNSAFE, (void* address), (address)) \
    X(cuMemAllocManaged, CONTEXT | UNSAFE, (CUdeviceptr* address, size_t bytes, unsigned flags), (address, bytes, flags)) \
    X(cuMemPrefetchAsync, CONTEXT, (CUdeviceptr address, size_t bytes, CUdevice device, Handle stream), (address, bytes, device, stream)) \
    X(cuPointerGetAttribute, INIT, (void* value, int attribute, CUdeviceptr address), (value, attribute, address)) \
    X(cuMemcpyHtoD_v2, CONTEXT, (CUdeviceptr to, const void* from, size_t bytes), (to, from, bytes)) \
    X(cuMemcpyDtoH_v2, CONTEXT, (void* to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
    X(cuMemcpyDtoD_v2, CONTEXT, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
    X(cuMemcpyHtoDAsync_v2, CONTEXT, (CUdeviceptr to, const void* from, size_t bytes, Handle stream), (to, from, bytes, stream)) \
    X(cuMemcpyDtoHAsync_v2, CONTEXT, (void* to, CUdeviceptr from, size_t bytes, Handle stream), (to, from, bytes, stream)) \
    X(cuMemcpyDtoDAsync_v2, CONTEXT, (CUdeviceptr to, CUdeviceptr from, size_t bytes, Handle stream), (to, from, bytes, stream)) \
    X(cuMemcpy, CONTEXT, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes)) \
    X(cuMemcpyAsync, CONTEXT, (CUdeviceptr to, CUdeviceptr from, size_t bytes, Handle stream), (to, from, bytes, stream)) \
    X(cuMemcpyPeerAsync, CONTEXT, (CUdeviceptr to, Handle to_context, CUdeviceptr from, Handle from_context, size_t bytes, Handle stream), (to, to_context, from, from_context, bytes, stream)) \
    X(cuMemcpy3D_v2, CONTEXT, (const CUDA_MEMCPY3D* copy), (copy)) \
    X(cuMemcpy3DAsync_v2, CONTEXT, (const CUDA_MEMCPY3D* copy, Handle stream), (copy, stream)) \
    X(cuMemcpy3DPeerAsync, CONTEXT, (const CUDA_MEMCPY3D* copy, Handle stream), (copy, stream)) \
    X(cuArray3DCreate_v2, CONTEXT | UNSAFE, (Handle* array, const CUDA_ARRAY3D_DESCRIPTOR* description), (array, description)) \
    X(cuArrayDestroy, CONTEXT | UNSAFE, (Handle array), (array)) \
    X(cuTexObjectCreate, CONTEXT, (uint64_t* object, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture, const void* view), (object, resource, texture, view)) \
    X(cuTexObjectDestroy, CONTEXT, (uint64_t object), (object)) \
    X(cuSurfObjectCreate, CONTEXT, (uint64_t* object, const CUDA_RESOURCE_DESC* resource), (object, resource)) \
    X(cuSurfObjectDestroy, CONTEXT, (uint64_t object), (object)) \
    X(cuMemsetD8Async, CONTEXT, (CUdeviceptr to, unsigned char value, size_t count, Handle stream), (to, value, count, stream)) \
    X(cuMemsetD16Async, CONTEXT, (CUdeviceptr to, unsigned short value, size_t count, Handle stream), (to, value, count, stream)) \
    X(cuMemsetD32Async, CONTEXT, (CUdeviceptr to, unsigned value, size_t count, Handle stream), (to, value, count, stream)) \
    X(cuMemsetD2D8Async, CONTEXT, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, Handle stream), (to, pitch, value, width, height, stream)) \
    X(cuMemsetD2D16Async, CONTEXT, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, Handle stream), (to, pitch, value, width, height, stream)) \
    X(cuMemsetD2D32Async, CONTEXT, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, Handle stream), (to, pitch, value, width, height, stream)) \
    X(cuMemPoolCreate, INIT, (Handle* pool, const CUmemPoolProps* properties), (pool, properties)) \
    X(cuMemPoolDestroy, INIT, (Handle pool), (pool)) \
    X(cuMemPoolSetAttribute, INIT, (Handle pool, int attribute, void* value), (pool, attribute, value)) \
    X(cuMemPoolGetAttribute, INIT, (Handle pool, int attribute, void* value), (pool, attribute, value)) \
    X(cuMemPoolTrimTo, INIT | UNSAFE, (Handle pool, size_t keep), (pool, keep)) \
    X(cuMemPoolSetAccess, INIT, (Handle pool, const CUmemAccessDesc* map, size_t count), (pool, map, count)) \
    X(cuDeviceGetDefaultMemPool, INIT, (Handle* pool, CUdevice device), (pool, device)) \
    X(cuDeviceGetMemPool, INIT, (Handle* pool, CUdevice device), (pool, device)) \
    X(cuDeviceSetMemPool, INIT, (CUdevice device, Handle pool), (device, pool)) \
    X(cuMemAllocFromPoolAsync, CONTEXT, (CUdeviceptr* address, size_t bytes, Handle pool, Handle stream), (address, bytes, pool, stream)) \
    X(cuMemAllocAsync, CONTEXT, (CUdeviceptr* address, size_t bytes, Handle stream), (address, bytes, stream)) \
    X(cuMemFreeAsync, CONTEXT, (CUdeviceptr address, Handle stream), (address, stream)) \
    X(cuIpcGetMemHandle, CONTEXT, (CUipcHandle* handle, CUdeviceptr address), (handle, address)) \
    X(cuIpcOpenMemHandle_v2, CONTEXT | UNSAFE, (CUdeviceptr* address, CUipcHandle handle, unsigned flags), (address, handle, flags)) \
    X(cuIpcCloseMemHandle, CONTEXT | UNSAFE, (CUdeviceptr address), (address)) \
    X(cuIpcGetEventHandle, CONTEXT, (CUipcHandle* handle, Handle event), (handle, event)) \
    X(cuIpcOpenEventHandle, CONTEXT, (Handle* event, CUipcHandle handle), (event, handle)) \
    X(cuStreamCreate, CONTEXT, (Handle* stream, unsigned flags), (stream, flags)) \
    X(cuStreamCreateWithPriority, CONTEXT, (Handle* stream, unsigned flags, int priority), (stream, flags, priority)) \
    X(cuStreamDestroy_v2, CONTEXT, (Handle stream), (stream)) \
    X(cuStreamQuery, CONTEXT | UNSAFE | QUERY, (Handle stream), (stream)) \
    X(cuStreamSynchronize, CONTEXT | UNSAFE, (Handle stream), (stream)) \
    X(cuStreamWaitEvent, CONTEXT, (Handle stream, Handle event, unsigned flags), (stream, event, flags)) \
    X(cuLaunchHostFunc, CONTEXT, (Handle stream, CUhostFn function, void* data), (stream, function, data)) \
    X(cuStreamAddCallback, CONTEXT, (Handle stream, CUstreamCallback callback, void* data, unsigned flags), (stream, callback, data, flags)) \
    X(cuStreamGetPriority, CONTEXT, (Handle stream, int* priority), (stream, priority)) \
    X(cuStreamGetFlags, CONTEXT, (Handle stream, unsigned* flags), (stream, flags)) \
    X(cuStreamGetCtx, CONTEXT, (Handle stream, Handle* context), (stream, context)) \
    X(cuStreamBeginCapture_v2, CONTEXT, (Handle stream, int mode), (stream, mode)) \
    X(cuStreamEndCapture, CONTEXT, (Handle stream, Handle* graph), (stream, graph)) \
    X(cuStreamIsCapturing, CONTEXT, (Handle stream, int* status), (stream, status)) \
    X(cuStreamGetCaptureInfo, CONTEXT, (Handle stream, int* status, uint64_t* number), \
      (stream, status, number)) \
    X(cuStreamGetCaptureInfo_v2, CONTEXT, (Handle stream, int* status, uint64_t* number, Handle* graph, const Handle** nodes, size_t* count), \
      (stream, status, number, graph, nodes, count)) \
    X(cuUserObjectCreate, INIT, (Handle* object, void* data, CUhostFn destroy, unsigned references, unsigned flags), \
      (object, data, destroy, references, flags)) \
    X(cuUserObjectRelease, INIT, (Handle object, unsigned count), (object, count)) \
    X(cuGraphRetainUserObject, INIT, (Handle graph, Handle object, unsigned count, unsigned flags), (graph, object, count, flags)) \
    X(cuThreadExchangeStreamCaptureMode, INIT, (int* mode), (mode)) \
    X(cuGraphInstantiateWithFlags, CONTEXT | UNSAFE, (Handle* exec, Handle graph, unsigned long long flags), (exec, graph, flags)) \
    X(cuGraphLaunch, CONTEXT | ALONE, (Handle exec, Handle stream), (exec, stream)) \
    X(cuGraphDestroy, INIT, (Handle graph), (graph)) \
    X(cuGraphExecDestroy, INIT, (Handle exec), (exec)) \
    X(cuGraphGetNodes, INIT, (Handle graph, Handle* nodes, size_t* count), (graph, nodes, count)) \
    X(cuEventCreate, CONTEXT, (Handle* event, unsigned flags), (event, flags)) \
    X(cuEventDestroy_v2, CONTEXT, (Handle event), (event)) \
    X(cuEventRecord, CONTEXT, (Handle event, Handle stream), (event, stream)) \
    X(cuEventQuery, CONTEXT | QUERY, (Handle event), (event)) \
    X(cuEventSynchronize, CONTEXT, (Handle event), (event)) \
    X(cuEventElapsedTime, CONTEXT, (float* milliseconds, Handle start, Handle end), (milliseconds, start, end)) \
    X(cuModuleLoadData, CONTEXT, (Handle* module, const void* image), (module, image)) \
    X(cuModuleLoadDataEx, CONTEXT, (Handle* module, const void* image, unsigned count, int* options, void** values), (module, image, count, options, values)) \
    X(cuModuleLoad, CONTEXT, (Handle* module, const char* path), (module, path)) \
    X(cuModuleUnload, CONTEXT | UNSAFE, (Handle module), (module)) \
    X(cuModuleGetFunction, CONTEXT, (Handle* function, Handle module, const char* name), (function, module, name)) \
    X(cuModuleGetGlobal_v2, CONTEXT, (CUdeviceptr* address, size_t* bytes, Handle module, const char* name), (address, bytes, module, name)) \
    X(cuFuncGetAttribute, CONTEXT, (int* value, int attribute, Handle function), (value, attribute, function)) \
    X(cuFuncSetAttribute, CONTEXT, (Handle function, int attribute, int value), (function, attribute, value)) \
    X(cuFuncSetCacheConfig, CONTEXT, (Handle function, int config), (function, config)) \
    X(cuFuncGetParamInfo, CONTEXT, (Handle function, size_t index, size_t* offset, size_t* bytes), (function, index, offset, bytes)) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, CONTEXT, (int* blocks, Handle function, int block, size_t shared, unsigned flags), (blocks, function, block, shared, flags)) \
    X(cuOccupancyMaxPotentialBlockSize, CONTEXT, (int* grid, int* block, Handle function, CUoccupancyB2DSize shared_of, size_t shared, int most), (grid, block, function, shared_of, shared, most)) \
    X(cuLaunchKernel, CONTEXT, (Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, Handle stream, void** parameters, void** extra), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)) \
    X(cuLaunchCooperativeKernel, CONTEXT, (Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, Handle stream, void** parameters), (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)) \
    X(cuLinkCreate_v2, CONTEXT, (unsigned count, int* options, void** values, Handle* link), (count, options, values, link)) \
    X(cuLinkAddData_v2, CONTEXT, (Handle link, int type, void* data, size_t bytes, const char* name, unsigned count, int* options, void** values), (link, type, data, bytes, name, count, options, values)) \
    X(cuLinkAddFile_v2, CONTEXT, (Handle link, int type, const char* path, unsigned count, int* options, void** values), (link, type, path, count, options, values)) \
    X(cuLinkComplete, CONTEXT, (Handle link, void** image, size_t* bytes), (link, image, bytes)) \
    X(cuLinkDestroy, CONTEXT, (Handle link), (link)) \
    X(cuProfilerStart, CONTEXT, (), ()) \
    X(cuProfilerStop, CONTEXT, (), ())
// clang-format on

namespace driver {
#define DECLARE(name, rule, parameters, arguments) int name parameters;
DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE
} // namespace driver

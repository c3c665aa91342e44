// Streams, events, captures, graphs.
#include "hip.hpp"

using hip::at, hip::cuda, hip::out;

namespace {

constexpr unsigned EVENT_FLAGS =
    hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;

// HIP's callbacks have the same parameters as the driver's, with the stream as a pointer.
CUstreamCallback converted(hipStreamCallback_t callback) {
    return reinterpret_cast<CUstreamCallback>(reinterpret_cast<void*>(callback));
}

} // namespace

HIP(hipStreamCreateWithPriority, DEVICE, (hipStream_t * stream, unsigned flags, int priority),
    (stream, flags, priority)) {
    return cuda.cuStreamCreateWithPriority(out(stream), flags, priority);
}

HIP(hipStreamDestroy, DEVICE, (hipStream_t stream), (stream)) {
    return cuda.cuStreamDestroy_v2(at(stream));
}

HIP(hipStreamQuery, DEVICE, (hipStream_t stream), (stream)) {
    return cuda.cuStreamQuery(at(stream));
}

HIP(hipStreamSynchronize, DEVICE, (hipStream_t stream), (stream)) {
    return cuda.cuStreamSynchronize(at(stream));
}

HIP(hipStreamWaitEvent, DEVICE, (hipStream_t stream, hipEvent_t event, unsigned flags),
    (stream, event, flags)) {
    return cuda.cuStreamWaitEvent(at(stream), at(event), flags);
}

HIP(hipStreamGetFlags, DEVICE, (hipStream_t stream, unsigned* flags), (stream, flags)) {
    return cuda.cuStreamGetFlags(at(stream), flags);
}

HIP(hipStreamGetPriority, DEVICE, (hipStream_t stream, int* priority), (stream, priority)) {
    return cuda.cuStreamGetPriority(at(stream), priority);
}

HIP(hipStreamAddCallback, DEVICE,
    (hipStream_t stream, hipStreamCallback_t callback, void* data, unsigned flags),
    (stream, callback, data, flags)) {
    return cuda.cuStreamAddCallback(at(stream), converted(callback), data, flags);
}

HIP(hipLaunchHostFunc, DEVICE, (hipStream_t stream, hipHostFn_t function, void* data),
    (stream, function, data)) {
    return cuda.cuLaunchHostFunc(at(stream), function, data);
}

// ---- events --------------------------------------------------------------------------------

HIP(hipEventCreateWithFlags, DEVICE, (hipEvent_t * event, unsigned flags), (event, flags)) {
    return cuda.cuEventCreate(out(event), flags & EVENT_FLAGS);
}

HIP(hipEventDestroy, DEVICE, (hipEvent_t event), (event)) {
    return cuda.cuEventDestroy_v2(at(event));
}

HIP(hipEventRecord, DEVICE, (hipEvent_t event, hipStream_t stream), (event, stream)) {
    return cuda.cuEventRecord(at(event), at(stream));
}

HIP(hipEventQuery, DEVICE, (hipEvent_t event), (event)) { return cuda.cuEventQuery(at(event)); }

HIP(hipEventSynchronize, DEVICE, (hipEvent_t event), (event)) {
    return cuda.cuEventSynchronize(at(event));
}

HIP(hipEventElapsedTime, DEVICE, (float* milliseconds, hipEvent_t start, hipEvent_t end),
    (milliseconds, start, end)) {
    return cuda.cuEventElapsedTime(milliseconds, at(start), at(end));
}

// ---- captures and graphs -------------------------------------------------------------------

HIP(hipStreamBeginCapture, DEVICE, (hipStream_t stream, hipStreamCaptureMode mode),
    (stream, mode)) {
    return cuda.cuStreamBeginCapture_v2(at(stream), int(mode));
}

HIP(hipStreamEndCapture, DEVICE, (hipStream_t stream, hipGraph_t* graph), (stream, graph)) {
    return cuda.cuStreamEndCapture(at(stream), out(graph));
}

HIP(hipStreamGetCaptureInfo, DEVICE,
    (hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* number),
    (stream, status, number)) {
    int state = 0;
    uint64_t id = 0;
    const int code = cuda.cuStreamGetCaptureInfo(at(stream), &state, &id);
    if (status) *status = hipStreamCaptureStatus(state);
    if (number) *number = id;
    return code;
}

HIP(hipStreamGetCaptureInfo_v2, DEVICE,
    (hipStream_t stream, hipStreamCaptureStatus* status, unsigned long long* number,
     hipGraph_t* graph, hipGraphNode_t const** nodes, size_t* count),
    (stream, status, number, graph, nodes, count)) {
    int state = 0;
    uint64_t id = 0;
    const int code =
        cuda.cuStreamGetCaptureInfo_v2(at(stream), &state, &id, out(graph), nullptr, nullptr);
    if (status) *status = hipStreamCaptureStatus(state);
    if (number) *number = id;
    if (nodes) *nodes = nullptr;
    if (count) *count = 0;
    return code;
}

HIP(hipUserObjectCreate, DEVICE,
    (hipUserObject_t * object, void* data, hipHostFn_t destroy, unsigned references,
     unsigned flags),
    (object, data, destroy, references, flags)) {
    return cuda.cuUserObjectCreate(out(object), data, destroy, references, flags);
}

HIP(hipGraphRetainUserObject, DEVICE,
    (hipGraph_t graph, hipUserObject_t object, unsigned count, unsigned flags),
    (graph, object, count, flags)) {
    return cuda.cuGraphRetainUserObject(at(graph), at(object), count, flags);
}

HIP(hipThreadExchangeStreamCaptureMode, DEVICE, (hipStreamCaptureMode * mode), (mode)) {
    if (!mode) return hipErrorInvalidValue;
    int value = int(*mode);
    const int status = cuda.cuThreadExchangeStreamCaptureMode(&value);
    *mode = hipStreamCaptureMode(value);
    return status;
}

HIP(hipGraphInstantiateWithFlags, DEVICE,
    (hipGraphExec_t * exec, hipGraph_t graph, unsigned long long flags), (exec, graph, flags)) {
    return cuda.cuGraphInstantiateWithFlags(out(exec), at(graph), flags);
}

HIP(hipGraphLaunch, DEVICE | ALONE, (hipGraphExec_t exec, hipStream_t stream), (exec, stream)) {
    return cuda.cuGraphLaunch(at(exec), at(stream));
}

HIP(hipGraphGetNodes, DEVICE, (hipGraph_t graph, hipGraphNode_t* nodes, size_t* count),
    (graph, nodes, count)) {
    return cuda.cuGraphGetNodes(at(graph), out(nodes), count);
}

HIP(hipGraphDestroy, DEVICE, (hipGraph_t graph), (graph)) {
    return cuda.cuGraphDestroy(at(graph));
}

HIP(hipGraphExecDestroy, DEVICE, (hipGraphExec_t exec), (exec)) {
    return cuda.cuGraphExecDestroy(at(exec));
}

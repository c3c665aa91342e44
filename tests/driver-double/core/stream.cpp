#include "capture.hpp"
#include "functions.hpp"
#include "pool.hpp"
#include "work.hpp"

#include <algorithm>

namespace driver {
using namespace core;

namespace {

constexpr int LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5;

int host_function(Handle handle, std::function<void(int)> function, bool after_failure) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    Operation operation;
    operation.host = std::move(function);
    operation.host_after_failure = after_failure;
    return submit(stream, std::move(operation));
}

} // namespace

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = LEAST_PRIORITY;
    if (greatest) *greatest = GREATEST_PRIORITY;
    return 0;
}

int cuStreamCreateWithPriority(Handle* handle, unsigned flags, int priority) {
    if (!handle || flags > 1) return INVALID_VALUE;
    priority = std::clamp(priority, GREATEST_PRIORITY, LEAST_PRIORITY);
    const Ref<Stream> stream = new_stream(current_context(), flags, priority);
    *handle = stream->handle = state().streams.add(stream);
    return 0;
}

int cuStreamCreate(Handle* handle, unsigned flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}

int cuStreamDestroy_v2(Handle handle) {
    const Ref<Stream> stream = state().streams.find(handle);
    if (!stream) return INVALID_HANDLE;
    if (const int status = usable(stream->context)) return status;
    if (stream->capture) abandon(stream);
    // Work that is already queued still runs.
    stream->destroyed = true;
    state().streams.erase(handle);
    return 0;
}

int cuStreamQuery(Handle handle) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (const int status = refuse_if_captured(stream)) return status;
    if (state().silent) return NOT_READY;
    std::vector<Ref<Work>> all;
    if (stream->legacy) {
        all = before(stream);
    } else if (stream->tail) {
        all = {stream->tail};
    }
    // Runs a single operation.
    const auto open = [](const Ref<Work>& work) { return work->state != Work::Done; };
    const auto first = std::find_if(all.begin(), all.end(), open);
    if (first != all.end() && !thread().host_function) step(*first);
    if (const int failure = state().devices[size_t(stream->context->device)].failure) return failure;
    return std::any_of(all.begin(), all.end(), open) ? int(NOT_READY) : 0;
}

int cuStreamSynchronize(Handle handle) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (const int status = refuse_if_captured(stream)) return status;
    const int status = wait_for(stream);
    trim_after_wait(stream->context->device);
    return status;
}

int cuCtxSynchronize() {
    const Ref<Context> context = current_context();
    if (const int status = refuse_if_captured(*context)) return status;
    drain(context);
    trim_after_wait(context->device);
    return usable(context);
}

int cuLaunchHostFunc(Handle handle, CUhostFn function, void* data) {
    if (!function) return INVALID_VALUE;
    return host_function(handle, [=](int) { function(data); }, false);
}

int cuStreamAddCallback(Handle handle, CUstreamCallback callback, void* data, unsigned flags) {
    if (!callback || flags != 0) return INVALID_VALUE;
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (stream->capture) return refuse_if_captured(stream);
    return host_function(handle, [=](int status) { callback(handle, status, data); }, true);
}

int cuStreamGetPriority(Handle handle, int* priority) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (!priority) return INVALID_VALUE;
    *priority = stream->priority;
    return 0;
}

int cuStreamGetFlags(Handle handle, unsigned* flags) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (!flags) return INVALID_VALUE;
    if (stream->capture) return refuse_if_captured(stream); // like a driver of CUDA 13
    *flags = stream->flags;
    return 0;
}

int cuStreamGetCtx(Handle handle, Handle* context) {
    Ref<Stream> stream;
    if (const int status = find_stream(handle, stream)) return status;
    if (!context) return INVALID_VALUE;
    *context = stream->context->handle;
    return 0;
}

} // namespace driver

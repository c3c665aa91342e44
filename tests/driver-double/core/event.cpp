#include "capture.hpp"
#include "functions.hpp"
#include "pool.hpp"
#include "work.hpp"

namespace driver {
using namespace core;

namespace {

enum Flags : unsigned { BLOCKING_SYNC = 1, DISABLE_TIMING = 2, INTERPROCESS = 4 };

int find_event(Handle handle, Ref<Event>& event) {
    event = state().events.find(handle);
    return event ? usable(event->context) : int(INVALID_HANDLE);
}

} // namespace

int cuEventCreate(Handle* handle, unsigned flags) {
    if (!handle || flags > 7) return INVALID_VALUE;
    if ((flags & INTERPROCESS) && !(flags & DISABLE_TIMING)) return INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = current_context();
    event->flags = flags;
    *handle = state().events.add(event);
    return 0;
}

int cuEventDestroy_v2(Handle handle) {
    Ref<Event> event;
    if (const int status = find_event(handle, event)) return status;
    const OneAtATime one(event->capture);
    state().events.erase(handle);
    return 0;
}

int cuEventRecord(Handle event_handle, Handle stream_handle) {
    Ref<Stream> stream;
    if (const int status = find_stream(stream_handle, stream)) return status;
    Ref<Event> event;
    if (const int status = find_event(event_handle, event)) return status;
    if (event->context != stream->context) return INVALID_HANDLE;
    const Ref<Capture> before = event->capture;
    const OneAtATime own(stream->capture), former(before == stream->capture ? nullptr : before);
    if (const int status = check_capture(stream)) return status;
    if (stream->capture) {
        event->capture = stream->capture;
        event->nodes = stream->frontier;
        return 0;
    }
    event->capture = nullptr;
    if (const int status = submit(stream, {}, nullptr, &event->work)) return status;
    // Another process could not run the work that the event waits for.
    if (event->flags & INTERPROCESS) run_unless_host(event->work);
    return 0;
}

int cuEventQuery(Handle handle) {
    Ref<Event> event;
    if (const int status = find_event(handle, event)) return status;
    if (const int status = refuse_if_captured(*event)) return status;
    if (const int status = check_unsafe()) return status;
    const Ref<Work> work = event->work;
    if (state().silent) return NOT_READY;
    if (!work) return state().unrecorded_wait ? int(NOT_READY) : 0;
    if (!thread().host_function) step(work);
    if (const int status = usable(event->context)) return status;
    return work->state == Work::Done ? 0 : int(NOT_READY);
}

int cuEventSynchronize(Handle handle) {
    Ref<Event> event;
    if (const int status = find_event(handle, event)) return status;
    if (const int status = refuse_if_captured(*event)) return status;
    if (const int status = check_unsafe()) return status;
    if (event->work) run(event->work);
    trim_after_wait(event->context->device);
    return usable(event->context);
}

int cuEventElapsedTime(float* milliseconds, Handle start_handle, Handle end_handle) {
    Ref<Event> start, end;
    if (const int status = find_event(start_handle, start)) return status;
    if (const int status = find_event(end_handle, end)) return status;
    if (!milliseconds) return INVALID_VALUE;
    for (const Ref<Event>& event : {start, end}) {
        if (event->capture) return CAPTURED_EVENT;
        if (!event->work || (event->flags & DISABLE_TIMING)) return INVALID_HANDLE;
    }
    if (start->context != end->context) return INVALID_HANDLE;
    for (const Ref<Event>& event : {start, end}) {
        if (event->work->state != Work::Done) return NOT_READY;
    }
    const auto time = end->work->finished - start->work->finished;
    *milliseconds = std::chrono::duration<float, std::milli>(time).count();
    return 0;
}

int cuStreamWaitEvent(Handle stream_handle, Handle event_handle, unsigned flags) {
    Ref<Stream> stream;
    if (const int status = find_stream(stream_handle, stream)) return status;
    Ref<Event> event;
    if (const int status = find_event(event_handle, event)) return status;
    if (flags > 1) return INVALID_VALUE;
    const Ref<Capture> before = event->capture;
    const OneAtATime own(stream->capture), other(before == stream->capture ? nullptr : before);
    int status = 0;
    if (wait_in_capture(stream, *event, status)) return status;
    if (!event->work) return 0;
    return submit(stream, {}, event->work);
}

} // namespace driver

#include "capture.hpp"
#include "functions.hpp"
#include "work.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace core {
namespace {

// Returns true if a blocking stream captures. The legacy stream would wait for it, which is not
// allowed.
bool captured_by_blocking(const Context& context, bool spoil) {
    bool found = false;
    for (const Ref<Stream>& stream : context.streams) {
        if (stream->blocking() && stream->capture) {
            found = true;
            if (spoil) invalidate(*stream->capture);
        }
    }
    return found;
}

void end(const Ref<Capture>& capture) {
    for (const Ref<Stream>& member : capture->members) {
        member->capture = nullptr;
        member->frontier.clear();
    }
    capture->members.clear();
    capture->origin = nullptr;
    if (capture->handle) state().graphs.erase(capture->handle);
    capture->graph = nullptr;
    capture->status = Capture::Ended;
    auto& all = state().captures;
    all.erase(std::remove(all.begin(), all.end(), capture), all.end());
}

// Returns true if the origin waits for every last node of the streams.
bool joined(const Capture& capture) {
    const std::vector<Node>& nodes = capture.graph->nodes;
    std::vector<bool> reached(nodes.size());
    std::vector<int> left = capture.origin->frontier;
    while (!left.empty()) {
        const int node = left.back();
        left.pop_back();
        if (reached[size_t(node)]) continue;
        reached[size_t(node)] = true;
        const std::vector<int>& after = nodes[size_t(node)].after;
        left.insert(left.end(), after.begin(), after.end());
    }
    for (const Ref<Stream>& member : capture.members) {
        for (int node : member->frontier) {
            if (!reached[size_t(node)]) return false;
        }
    }
    return true;
}

} // namespace

static void check_unused(const Capture& capture) {
    if (!capture.in_use) return;
    std::fputs("driver double: two threads change one capture at once\n", stderr);
    std::abort();
}

OneAtATime::OneAtATime(const Ref<Capture>& of) {
    if (!of || of->status == Capture::Ended) return;
    check_unused(*of);
    capture = of;
    capture->in_use = true;
    thread().lock->unlock();
    std::this_thread::yield();
    thread().lock->lock();
}

void invalidate(Capture& capture) {
    if (capture.status == Capture::Active) capture.status = Capture::Invalidated;
}

void abandon(const Ref<Stream>& stream) {
    const Ref<Capture> capture = stream->capture;
    invalidate(*capture);
    if (capture->origin == stream) end(capture);
}

int check_capture(const Ref<Stream>& stream) {
    if (stream->legacy) {
        return captured_by_blocking(*stream->context, true) ? STREAM_CAPTURE_IMPLICIT : 0;
    }
    if (stream->capture && stream->capture->status == Capture::Invalidated) {
        return STREAM_CAPTURE_INVALIDATED;
    }
    return 0;
}

int capture_node(Stream& stream, Node node) {
    check_unused(*stream.capture);
    std::vector<Node>& nodes = stream.capture->graph->nodes;
    node.after = stream.frontier;
    stream.frontier = {int(nodes.size())};
    nodes.push_back(std::move(node));
    return stream.frontier[0];
}

int check_unsafe() {
    const int mode = thread().capture_mode;
    int status = 0;
    for (const Ref<Capture>& capture : state().captures) {
        const bool own = capture->thread == std::this_thread::get_id();
        const bool forbids = (capture->mode == 0 && mode == 0) ||
                             (capture->mode <= 1 && mode <= 1 && own);
        if (!forbids) continue;
        invalidate(*capture);
        status = STREAM_CAPTURE_UNSUPPORTED;
    }
    return status;
}

int refuse_if_captured(const Ref<Stream>& stream) {
    if (stream->legacy && captured_by_blocking(*stream->context, true)) {
        return STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream->capture) return 0;
    invalidate(*stream->capture);
    return STREAM_CAPTURE_UNSUPPORTED;
}

int refuse_if_captured(const Event& event) {
    if (!event.capture) return 0;
    if (event.capture->status == Capture::Ended) return INVALID_VALUE;
    invalidate(*event.capture);
    return CAPTURED_EVENT;
}

int refuse_if_captured(const Context& context) {
    int status = 0;
    for (const Ref<Stream>& stream : context.streams) {
        if (stream->capture) status = refuse_if_captured(stream);
    }
    return status;
}

bool wait_in_capture(const Ref<Stream>& stream, const Event& event, int& status) {
    if (!event.capture && !stream->capture) return false;
    status = check_capture(stream);
    if (status != 0) return true;
    if (!event.capture) {
        // Waiting for an event that was never recorded does nothing.
        if (event.work) {
            invalidate(*stream->capture);
            status = STREAM_CAPTURE_ISOLATION;
        }
        return true;
    }
    Capture& capture = *event.capture;
    if (capture.status == Capture::Ended) {
        status = INVALID_VALUE;
    } else if (capture.status == Capture::Invalidated) {
        status = STREAM_CAPTURE_INVALIDATED;
    } else if (stream->legacy) {
        invalidate(capture);
        status = STREAM_CAPTURE_IMPLICIT;
    } else if (stream->capture && stream->capture != event.capture) {
        invalidate(capture);
        invalidate(*stream->capture);
        status = STREAM_CAPTURE_MERGE;
    } else {
        if (!stream->capture) {
            stream->capture = event.capture;
            capture.members.push_back(stream);
        }
        std::vector<int>& frontier = stream->frontier;
        frontier.insert(frontier.end(), event.nodes.begin(), event.nodes.end());
        std::sort(frontier.begin(), frontier.end());
        frontier.erase(std::unique(frontier.begin(), frontier.end()), frontier.end());
    }
    return true;
}

} // namespace core

namespace driver {
using namespace core;

int cuStreamBeginCapture_v2(Handle handle, int mode) {
    Ref<Stream> stream;
    const int status = find_stream(handle, stream);
    if (status != 0) return status;
    if (mode < 0 || mode > 2) return INVALID_VALUE;
    if (stream->legacy) return STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return ILLEGAL_STATE;
    auto capture = std::make_shared<Capture>();
    capture->graph = std::make_shared<Graph>();
    capture->graph->context = stream->context;
    capture->origin = stream;
    capture->members = {stream};
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->number = ++state().capture_numbers;
    stream->capture = capture;
    state().captures.push_back(capture);
    return 0;
}

int cuStreamEndCapture(Handle handle, Handle* graph) {
    Ref<Stream> stream;
    int status = find_stream(handle, stream);
    if (status != 0) return status;
    if (!graph) return INVALID_VALUE;
    *graph = 0;
    const Ref<Capture> capture = stream->capture;
    const OneAtATime one(capture);
    if (!capture) return ILLEGAL_STATE;
    if (stream != capture->origin) {
        invalidate(*capture);
        return STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->status == Capture::Invalidated) {
        status = STREAM_CAPTURE_INVALIDATED;
    } else if (capture->mode != 2 && capture->thread != std::this_thread::get_id()) {
        status = STREAM_CAPTURE_WRONG_THREAD;
    } else if (!joined(*capture)) {
        status = STREAM_CAPTURE_UNJOINED;
    }
    if (status == 0) {
        *graph = capture->handle ? capture->handle : state().graphs.add(capture->graph);
        capture->handle = 0;
    }
    end(capture);
    return status;
}

int cuStreamIsCapturing(Handle handle, int* out) {
    Ref<Stream> stream;
    const int status = find_stream(handle, stream);
    if (status != 0) return status;
    if (!out) return INVALID_VALUE;
    if (stream->legacy && captured_by_blocking(*stream->context, false)) {
        return STREAM_CAPTURE_IMPLICIT;
    }
    *out = stream->capture ? stream->capture->status : 0;
    return 0;
}

int cuStreamGetCaptureInfo(Handle handle, int* state, uint64_t* number) {
    if (!state || !number) return INVALID_VALUE;
    const int status = cuStreamIsCapturing(handle, state);
    Ref<Stream> stream;
    if (status != 0 || *state == 0 || find_stream(handle, stream) != 0) return status;
    // NVIDIA's driver sets the number only for a valid capture.
    if (*state == Capture::Active) *number = stream->capture->number;
    return 0;
}

int cuStreamGetCaptureInfo_v2(Handle handle, int* state_out, uint64_t* number, Handle* graph,
                              const Handle** nodes, size_t* count) {
    uint64_t own = 0;
    const int status = cuStreamGetCaptureInfo(handle, state_out, number ? number : &own);
    Ref<Stream> stream;
    if (status != 0 || *state_out == 0 || find_stream(handle, stream) != 0) return status;
    const Ref<Capture>& capture = stream->capture;
    if (capture->status != Capture::Active) return 0;
    if (graph) {
        if (!capture->handle) capture->handle = state().graphs.add(capture->graph);
        *graph = capture->handle;
    }
    // No caller here reads the nodes.
    if (nodes) *nodes = nullptr;
    if (count) *count = 0;
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
    if (!mode || *mode < 0 || *mode > 2) return INVALID_VALUE;
    std::swap(*mode, thread().capture_mode);
    return 0;
}

} // namespace driver

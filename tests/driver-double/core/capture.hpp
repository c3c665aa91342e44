// Streams that record a graph instead of running work.
#pragma once

#include "state.hpp"

namespace core {

// Returns 0 if work may be queued on the stream now. Forbidden work invalidates captures.
int check_capture(const Ref<Stream>& stream);

// Adds a node after the stream's last nodes.
int capture_node(Stream& stream, Node node);

// For calls that could wait: returns STREAM_CAPTURE_UNSUPPORTED and invalidates the capture if one forbids
// such calls on this thread.
int check_unsafe();

// The same for calls that wait for a stream, an event or a context.
int refuse_if_captured(const Ref<Stream>& stream);
int refuse_if_captured(const Event& event);
int refuse_if_captured(const Context& context);

void invalidate(Capture& capture);

// For calls that change or end a capture. NVIDIA's driver does not lock it, and crashes if two threads do
// this concurrently; this class ends the process with a message. Other calls may run meanwhile.
class OneAtATime {
public:
    explicit OneAtATime(const Ref<Capture>& capture);
    ~OneAtATime() { if (capture) capture->in_use = false; }
    OneAtATime(const OneAtATime&) = delete;

private:
    Ref<Capture> capture;
};

// Called when a capturing stream is destroyed.
void abandon(const Ref<Stream>& stream);

// Makes a stream wait for an event if either is captured. Returns false if neither is.
bool wait_in_capture(const Ref<Stream>& stream, const Event& event, int& status);

} // namespace core

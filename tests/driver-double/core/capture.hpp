// Streams that record a graph in place of running work.
#pragma once

#include "state.hpp"

namespace core {

// 0 if work may be given to the stream now; what it must not be given invalidates captures.
int check_capture(const Ref<Stream>& stream);

// Adds a node behind the stream's last ones.
int capture_node(Stream& stream, Node node);

// For calls that could wait: STREAM_CAPTURE_UNSUPPORTED, and the capture is invalid, if one
// forbids them to the calling thread.
int check_unsafe();

// The same for calls that wait for a stream, an event or a context.
int refuse_if_captured(const Ref<Stream>& stream);
int refuse_if_captured(const Event& event);
int refuse_if_captured(const Context& context);

void invalidate(Capture& capture);

// For calls that change what a capture contains, its end included. NVIDIA's driver has no lock for that, and
// crashes where two threads do it at once; so does this, with a word why. Others may call meanwhile.
class OneAtATime {
public:
    explicit OneAtATime(const Ref<Capture>& capture);
    ~OneAtATime() { if (capture) capture->in_use = false; }
    OneAtATime(const OneAtATime&) = delete;

private:
    Ref<Capture> capture;
};

// A stream that captures is destroyed.
void abandon(const Ref<Stream>& stream);

// A stream waits for an event of which either is captured. False if neither is.
bool wait_in_capture(const Ref<Stream>& stream, const Event& event, int& status);

} // namespace core

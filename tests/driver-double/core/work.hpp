// Streams' work: queued with all that must run before it, run when something waits for it.
#pragma once

#include "state.hpp"

namespace core {

// The stream of a handle: the current context's for 0 to 2.
int find_stream(Handle handle, Ref<Stream>& stream);

// Queues an operation behind the stream's work and what else is given, or adds it to the
// graph that the stream captures.
int submit(const Ref<Stream>& stream, Operation operation, const Ref<Work>& behind = nullptr,
           Ref<Work>* queued = nullptr);

// Queues outside of any order but the given one.
Ref<Work> enqueue(const Ref<Context>& context, const Ref<Stream>& stream, Operation operation,
                  std::vector<Ref<Work>> after);

// What new work of the stream would have to wait for.
std::vector<Ref<Work>> before(const Ref<Stream>& stream);

// Runs a work and all that it waits for.
void run(Ref<Work> work);

// Runs at most one operation on the way to a work; true if the work is done then.
bool step(Ref<Work> work);

// Runs towards a work, but not into a host function: it may need what the caller holds.
void run_unless_host(Ref<Work> work);

// Runs all work of a context, the newest stream first.
void drain(const Ref<Context>& context);

// Runs what is queued on a stream, and on those that the legacy stream waits for; the status
// of the device.
int wait_for(const Ref<Stream>& stream);

// Starts the life of a stream that has a context.
Ref<Stream> new_stream(const Ref<Context>& context, unsigned flags, int priority);

} // namespace core
